"""Sums that sensors measure: shares of joint coordinates, and lengths of stretches, as of a tendon."""

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
    """A share of a sum over joint coordinates: coefficient * (q - offset)."""

    coord: int
    """Coordinate of the builder."""
    dof: int
    """Degree of freedom of the builder."""
    coefficient: float = 1.0
    """Factor."""
    offset: float = 0.0
    """Where the share is zero."""


@dataclasses.dataclass(frozen=True)
class SensorSegment:
    """A stretch between two points on bodies, of which a sum has the length."""

    body: int
    """Body that one end is on, -1 for the world."""
    point: tuple[float, float, float]
    """That end in the frame of the body [m]."""
    reference_body: int
    """Body that the other end is on, -1 for the world."""
    reference_point: tuple[float, float, float]
    """That end [m]."""
    weight: float = 1.0
    """How often the sum has the length."""


def add_terms(builder: BuilderTables, terms: Sequence[SensorTerm]) -> dict[str, Any]:
    """Add the shares of a sum; return where they are."""
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
    """Add the stretches of a sum; return where they are."""
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
