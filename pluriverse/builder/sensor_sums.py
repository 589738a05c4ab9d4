"""Sums that sensors measure: terms of joint coordinates, and lengths of segments, as for a tendon."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import warp as wp

from pluriverse.builder.custom_attributes import add_custom_rows
from pluriverse.builder.tables import BuilderTables

TERM_FREQUENCY = "sensor:term"
SEGMENT_FREQUENCY = "sensor:segment"
_IDENTITY = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
TERM_ATTRIBUTES = (
    ("term_world", wp.int32, -1, "world"),
    ("term_coord", wp.int32, -1, "joint_coord"),
    ("term_dof", wp.int32, -1, "joint_dof"),
    ("term_coefficient", wp.float32, 1.0, None),
    ("term_offset", wp.float32, 0.0, None),
)
SEGMENT_ATTRIBUTES = (
    ("segment_world", wp.int32, -1, "world"),
    ("segment_body", wp.int32, -1, "body"),
    ("segment_xform", wp.transform, _IDENTITY, None),
    ("segment_reference_body", wp.int32, -1, "body"),
    ("segment_reference_xform", wp.transform, _IDENTITY, None),
    ("segment_weight", wp.float32, 1.0, None),
)


@dataclasses.dataclass(frozen=True)
class SensorTerm:
    """A term of a sum over joint coordinates: coefficient * (q - offset)."""

    coord: int
    """Coordinate of the builder."""
    dof: int
    """Degree of freedom of the builder."""
    coefficient: float = 1.0
    """Factor."""
    offset: float = 0.0
    """Coordinate at which the term is zero."""


@dataclasses.dataclass(frozen=True)
class SensorSegment:
    """A segment between two points on bodies, whose length enters a sum."""

    body: int
    """Body of the first end, -1 for the world."""
    point: tuple[float, float, float]
    """First end in the frame of its body [m]."""
    reference_body: int
    """Body of the second end, -1 for the world."""
    reference_point: tuple[float, float, float]
    """That end [m]."""
    weight: float = 1.0
    """Factor of the length in the sum."""


def add_terms(builder: BuilderTables, terms: Sequence[SensorTerm]) -> dict[str, Any]:
    """Add the terms of a sum; return their range."""
    first = -1
    for term in terms:
        rows = add_custom_rows(
            builder,
            {
                "sensor:term_coord": int(term.coord),
                "sensor:term_dof": int(term.dof),
                "sensor:term_coefficient": float(term.coefficient),
                "sensor:term_offset": float(term.offset),
            },
        )
        row = int(rows["sensor:term_coord"])
        first = row if first < 0 else first
    return {"term": first, "term_count": len(terms)}


def add_segments(builder: BuilderTables, segments: Sequence[SensorSegment]) -> dict[str, Any]:
    """Add the segments of a sum; return their range."""
    first = -1
    for segment in segments:
        rows = add_custom_rows(
            builder,
            {
                "sensor:segment_body": int(segment.body),
                "sensor:segment_xform": [*map(float, segment.point), 0.0, 0.0, 0.0, 1.0],
                "sensor:segment_reference_body": int(segment.reference_body),
                "sensor:segment_reference_xform": [*map(float, segment.reference_point), 0.0, 0.0, 0.0, 1.0],
                "sensor:segment_weight": float(segment.weight),
            },
        )
        row = int(rows["sensor:segment_body"])
        first = row if first < 0 else first
    return {"segment": first, "segment_count": len(segments)}
