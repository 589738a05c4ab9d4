"""Cameras: rows of the custom frequency `render:camera`, which are copied and moved along with bodies."""

import enum
from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.custom_attribute import CustomAttribute, CustomFrequency
from pluriverse.builder.inputs import Transform, as_transform
from pluriverse.model import poses

NAMESPACE = "render"
FREQUENCY = "render:camera"


class CameraMode(enum.IntEnum):
    """How a camera follows the body that carries it."""

    FIXED = 0
    """It is fixed to the body."""
    TRACK = 1
    """It follows the position of the body, and keeps its own orientation in the world."""
    TARGET = 2
    """It is fixed to its body, and turns towards another."""


_ATTRIBUTES = (
    ("camera_world", wp.int32, -1, "world"),
    ("camera_label", str, "", None),
    ("camera_body", wp.int32, -1, "body"),
    ("camera_xform", wp.transform, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), None),
    ("camera_fov", wp.float32, np.radians(45.0), None),
    ("camera_mode", wp.int32, int(CameraMode.FIXED), None),
    ("camera_target", wp.int32, -1, "body"),
    ("camera_resolution", wp.vec2i, (64, 64), None),
)


def add_camera(
    builder: Any,
    body: int,
    *,
    xform: Transform | None,
    fov: float,
    width: int,
    height: int,
    mode: CameraMode,
    target: int,
    label: str | None,
) -> int:
    """Add a camera; see `ModelBuilder.add_camera`."""
    declare_cameras(builder)
    number = builder.custom_frequency_count(FREQUENCY)
    label = f"camera_{number}" if label is None else label
    name = f"camera '{label}' (index {number})"
    builder._check_body(body, name)
    if not 0.0 < fov < np.pi:
        raise ValueError(f"{name}: fov is {fov}, but it must be an angle between 0 and pi (rad).")
    for what, value in (("width", width), ("height", height)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name}: {what} is {value!r}, but it must be a number of pixels >= 1.")
    mode = CameraMode(mode)
    if mode is CameraMode.TARGET:
        builder._check_body(target, f"{name}: target")
        if target < 0:
            raise ValueError(f"{name}: target is {target}, but a camera that turns needs a body to look at.")
    row = builder.add_custom_values(
        {
            "render:camera_label": label,
            "render:camera_body": int(body),
            "render:camera_xform": as_transform(xform, f"{name}: xform").tolist(),
            "render:camera_fov": float(fov),
            "render:camera_mode": int(mode),
            "render:camera_target": int(target),
            "render:camera_resolution": (int(width), int(height)),
        }
    )
    return int(row["render:camera_label"])


def declare_cameras(builder: Any) -> None:
    """Declare the rows of cameras; to do it again changes nothing."""
    if FREQUENCY in builder.custom_frequencies:
        return
    builder.add_custom_frequency(
        CustomFrequency("camera", namespace=NAMESPACE, label_attribute="render:camera_label")
    )
    for name, dtype, default, references in _ATTRIBUTES:
        builder.add_custom_attribute(
            CustomAttribute(
                name, dtype, FREQUENCY, namespace=NAMESPACE, references=references, default=default
            )
        )


def camera_count(builder: Any) -> int:
    """Return the number of cameras of a builder."""
    return builder.custom_frequency_count(FREQUENCY) if FREQUENCY in builder.custom_frequencies else 0


def move_camera_copies(builder: Any, offsets: np.ndarray, first: int) -> None:
    """Move the cameras that no body carries, from row `first` on, by the poses of their copies."""
    count = camera_count(builder) - first
    if count <= 0 or not len(offsets):
        return
    column = builder.custom_attributes["render:camera_xform"].column
    column.grow(first + count)
    rows = column.rows[first:].reshape(len(offsets), -1, 7)
    body = builder.custom_attributes["render:camera_body"].column.resolved(first + count)[first:]
    loose = body.reshape(len(offsets), -1) < 0
    moved = poses.compose(offsets[:, None, :], rows)
    rows[loose] = moved[loose]
    column.given[first:] = True
