"""Cameras: rows of the custom frequency `render:camera`, which are copied and moved with bodies."""

import enum

import numpy as np
import warp as wp

from pluriverse.builder.custom_attribute import CustomAttribute, CustomFrequency
from pluriverse.builder.custom_attributes import (
    add_custom_attribute,
    add_custom_frequency,
    add_custom_rows,
    custom_frequency_count,
)
from pluriverse.builder.inputs import Transform, as_transform
from pluriverse.builder.tables import BuilderTables
from pluriverse.builder.world_scope import check_body
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
    """It is fixed to its body, and points at another body."""


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
    builder: BuilderTables,
    body: int = -1,
    *,
    xform: Transform | None = None,
    fov: float = 0.785,
    width: int = 64,
    height: int = 64,
    mode: CameraMode = CameraMode.FIXED,
    target: int = -1,
    label: str | None = None,
) -> int:
    """Add a camera, for `CameraSensor` and for pictures (`pv.draw(..., camera=label)`).

    Args:
        body: Body that carries it, -1 for the world.
        xform: Pose in the frame of the body. The camera looks along -z, with y up.
        fov: Vertical field of view [rad].
        width: Columns of its image.
        height: Rows of its image.
        mode: Whether it is fixed to its body, keeps its orientation, or points at another body.
        target: Body that it points at, with `CameraMode.TARGET`.
        label: Name; `camera_INDEX` if None.

    Returns:
        Index of the camera.

    Raises:
        IndexError: If there is no such body.
        ValueError: If a value is out of range.
    """
    declare_cameras(builder)
    number = custom_frequency_count(builder, FREQUENCY)
    label = f"camera_{number}" if label is None else label
    name = f"camera '{label}' (index {number})"
    check_body(builder, body, name)
    if not 0.0 < fov < np.pi:
        raise ValueError(f"{name}: fov is {fov}, but it must be an angle between 0 and pi (rad).")
    for what, value in (("width", width), ("height", height)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name}: {what} is {value!r}, but it must be a number of pixels >= 1.")
    mode = CameraMode(mode)
    if mode is CameraMode.TARGET:
        check_body(builder, target, f"{name}: target")
        if target < 0:
            raise ValueError(
                f"{name}: target is {target}, but a camera of mode TARGET needs a body to look at."
            )
    row = add_custom_rows(
        builder,
        {
            "render:camera_label": label,
            "render:camera_body": int(body),
            "render:camera_xform": as_transform(xform, f"{name}: xform").tolist(),
            "render:camera_fov": float(fov),
            "render:camera_mode": int(mode),
            "render:camera_target": int(target),
            "render:camera_resolution": (int(width), int(height)),
        },
    )
    return int(row["render:camera_label"])


def declare_cameras(builder: BuilderTables) -> None:
    """Declare the rows of cameras; repeated calls change nothing."""
    if FREQUENCY in builder.custom_frequencies:
        return
    add_custom_frequency(
        builder, CustomFrequency("camera", namespace=NAMESPACE, label_attribute="render:camera_label")
    )
    for name, dtype, default, references in _ATTRIBUTES:
        add_custom_attribute(
            builder,
            CustomAttribute(
                name, dtype, FREQUENCY, namespace=NAMESPACE, references=references, default=default
            ),
        )


def camera_count(builder: BuilderTables) -> int:
    """Return the number of cameras of a builder."""
    return custom_frequency_count(builder, FREQUENCY) if FREQUENCY in builder.custom_frequencies else 0


def move_camera_copies(builder: BuilderTables, offsets: np.ndarray, first: int) -> None:
    """Move the cameras attached to the world, from row `first` on, by the poses of their copies."""
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
