"""Initial state: put an entity where its configuration says."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pluriverse.types import JointType
from pluriverse.variants.config import InitialStateCfg

# Largest error of the length of a quaternion: as of the builder's inputs.
UNIT_ERROR = 0.02


def apply_initial_state(builder: Any, config: InitialStateCfg, what: str) -> Any:
    """Return a builder of the entity as it begins; `builder` may be changed.

    Raises:
        ValueError: If a number is out of range, a pattern matches no joint, or a velocity is given to a root
            that is fixed.
    """
    from pluriverse.model_builder import ModelBuilder

    pos = None if config.pos is None else _vector(config.pos, 3, f"{what}: init_state.pos")
    rot = None if config.rot is None else _vector(config.rot, 4, f"{what}: init_state.rot")
    if rot is not None and abs(float(np.linalg.norm(rot)) - 1.0) > UNIT_ERROR:
        raise ValueError(
            f"{what}: init_state.rot is {rot.tolist()}, but it must be a quaternion x, y, z, w of length 1."
        )
    velocity = np.concatenate(
        [
            _vector(config.lin_vel, 3, f"{what}: init_state.lin_vel"),
            _vector(config.ang_vel, 3, f"{what}: init_state.ang_vel"),
        ]
    )
    roots = np.flatnonzero(builder.joint_parent < 0)
    floating = [int(root) for root in roots if builder.joint_type[root] == JointType.FREE]
    if len(roots) == 1 and floating:
        coord = int(builder.joint_q_start[floating[0]])
        if pos is not None:
            builder.joint_q[coord : coord + 3] = pos
        if rot is not None:
            builder.joint_q[coord + 3 : coord + 7] = rot
    elif pos is not None or rot is not None:
        placed = ModelBuilder()
        position = (0.0, 0.0, 0.0) if pos is None else tuple(pos.tolist())
        rotation = (0.0, 0.0, 0.0, 1.0) if rot is None else tuple(rot.tolist())
        placed.add_builder(builder, xform=(position, rotation))
        builder = placed
    if velocity.any():
        if not floating:
            raise ValueError(
                f"{what}: init_state has the velocity {velocity.tolist()}, but the entity has no floating "
                "root that could have it. Leave lin_vel and ang_vel zero, or give its root a free joint."
            )
        for root in floating:
            dof = int(builder.joint_qd_start[root])
            builder.joint_qd[dof : dof + 6] = velocity
    _set_joints(builder, config.joint_pos, _position_range, "joint_pos", what)
    _set_joints(builder, config.joint_vel, _velocity_range, "joint_vel", what)
    return builder


def _position_range(builder: Any, joint: int) -> tuple[np.ndarray, slice]:
    start = int(builder.joint_q_start[joint])
    stops = [*builder.joint_q_start.tolist(), builder.joint_coord_count]
    return builder.joint_q, slice(start, stops[joint + 1])


def _velocity_range(builder: Any, joint: int) -> tuple[np.ndarray, slice]:
    start = int(builder.joint_qd_start[joint])
    return builder.joint_qd, slice(start, start + int(builder.joint_dof_dim[joint].sum()))


def _set_joints(
    builder: Any,
    values: Mapping[str, Any],
    locate: Callable[[Any, int], tuple[np.ndarray, slice]],
    name: str,
    what: str,
) -> None:
    """Write the values of all joints whose label, or its last part, matches a pattern."""
    for pattern, value in values.items():
        matched = [
            joint
            for joint, label in enumerate(builder.joint_label)
            if re.fullmatch(pattern, label) or re.fullmatch(pattern, label.rpartition("/")[2])
        ]
        if not matched:
            labels = ", ".join(label.rpartition("/")[2] for label in builder.joint_label)
            raise ValueError(
                f"{what}: init_state.{name} has the pattern '{pattern}', which matches no joint; there are "
                f"{labels or 'none'}."
            )
        for joint in matched:
            array, rows = locate(builder, joint)
            given = np.atleast_1d(np.asarray(value, dtype=np.float64))
            if given.shape != (rows.stop - rows.start,) or not np.isfinite(given).all():
                raise ValueError(
                    f"{what}: init_state.{name} gives joint '{builder.joint_label[joint]}' the value "
                    f"{value!r}, but it takes {rows.stop - rows.start} finite numbers."
                )
            array[rows] = given
            if name == "joint_pos":
                dofs = _velocity_range(builder, joint)[1]
                if dofs.stop - dofs.start == len(given):  # drives of joints without quaternions
                    builder.joint_target_pos[dofs] = given


def _vector(value: Any, size: int, what: str) -> np.ndarray:
    vector = np.asarray(value, dtype=np.float64)
    if vector.shape != (size,) or not np.isfinite(vector).all():
        raise ValueError(f"{what} is {value!r}, but it must be {size} finite numbers.")
    return vector
