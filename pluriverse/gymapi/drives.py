"""Drives: the properties of degrees of freedom as rows of the model.

| mode | stiffness | model drive | stiffness of the drive | damping of the drive | damping of the joint |
|---|---|---|---|---|---|
| NONE | 0 | NONE | 0 | 0 | damping |
| NONE, EFFORT | > 0 | POSITION (its target is that of the spring) | stiffness | 0 | damping |
| EFFORT | 0 | EFFORT | 0 | 0 | damping |
| POS | any | POSITION | stiffness | damping | 0 |
| VEL | any | VELOCITY | 0 | damping | 0 |

A ball joint with a position drive is a VELOCITY drive whose target follows the rotation error: see
`pluriverse.gymapi.ball_drives`.
"""

from typing import Any

import numpy as np

from pluriverse.gymapi.asset import LIMIT_NONE, UNLIMITED
from pluriverse.gymapi.enums import DofDriveMode
from pluriverse.types import JointTargetMode

ROWS = (
    "joint_target_mode",
    "joint_target_ke",
    "joint_target_kd",
    "joint_damping",
    "joint_effort_limit",
    "joint_velocity_limit",
    "joint_friction",
    "joint_armature",
    "joint_limit_lower",
    "joint_limit_upper",
)
"""Arrays of the model that follow from the properties."""

_NONE, _POS, _VEL, _EFFORT = (int(mode) for mode in DofDriveMode)


def drive_rows(properties: np.ndarray, ball_axis: np.ndarray, dt: float) -> dict[str, np.ndarray]:
    """Return the rows of the model for degrees of freedom.

    Args:
        properties: Structured array, shape [dof].
        ball_axis: Component of the rotation vector of a ball joint, -1 elsewhere, shape [dof].
        dt: Time step of the solver [s].
    """
    mode = properties["driveMode"]
    stiffness, damping = properties["stiffness"], properties["damping"]
    ball = ball_axis >= 0
    passive = (mode == _NONE) | (mode == _EFFORT)
    sprung = passive & (stiffness > 0.0) & ~ball
    target_mode = np.select(
        [sprung, mode == _EFFORT, mode == _POS, mode == _VEL],
        [
            JointTargetMode.POSITION,
            JointTargetMode.EFFORT,
            JointTargetMode.POSITION,
            JointTargetMode.VELOCITY,
        ],
        JointTargetMode.NONE,
    )
    target_mode = np.where(ball & (mode == _POS), int(JointTargetMode.VELOCITY), target_mode)
    target_kd = np.where(passive, 0.0, damping)
    # Implicit in the position that the step ends at, as the drives of other joints are.
    target_kd = np.where(ball & (mode == _POS), damping + dt * stiffness, target_kd)
    limited = properties["hasLimits"]
    effort = np.where(properties["effort"] >= UNLIMITED, np.inf, properties["effort"])
    return {
        "joint_target_mode": target_mode.astype(np.int32),
        "joint_target_ke": np.where((sprung | (mode == _POS)) & ~ball, stiffness, 0.0).astype(np.float32),
        "joint_target_kd": target_kd.astype(np.float32),
        "joint_damping": np.where(passive, damping, 0.0).astype(np.float32),
        "joint_effort_limit": np.where(sprung & (mode == _NONE), np.inf, effort).astype(np.float32),
        "joint_velocity_limit": properties["velocity"].astype(np.float32),
        "joint_friction": properties["friction"].astype(np.float32),
        "joint_armature": properties["armature"].astype(np.float32),
        "joint_limit_lower": np.where(limited, properties["lower"], -10.0 * LIMIT_NONE).astype(np.float32),
        "joint_limit_upper": np.where(limited, properties["upper"], 10.0 * LIMIT_NONE).astype(np.float32),
    }


def check_dof_properties(
    properties: Any, like: np.ndarray, names: list[str], call: str, whose: str
) -> np.ndarray:
    """Return properties as an array of their own.

    Raises:
        TypeError: If it is not a structured array with the fields of `DOF_PROPERTIES_DTYPE`.
        ValueError: If its length or a value is wrong.
    """
    array = np.asarray(properties)
    if array.dtype.names is None or set(array.dtype.names) != set(like.dtype.names or ()):
        raise TypeError(
            f"{call}: properties of {whose} have type {array.dtype}, but must be a structured array with the "
            f"fields {', '.join(like.dtype.names or ())}. Edit what get_actor_dof_properties() returns."
        )
    if array.shape != like.shape:
        raise ValueError(
            f"{call}: properties have shape {array.shape}, but {whose} has {len(like)} degrees of freedom."
        )
    result = np.empty_like(like)
    for name in like.dtype.names or ():
        result[name] = array[name]
    known = np.isin(result["driveMode"], [int(mode) for mode in DofDriveMode])
    checks = [("driveMode", known, "one of DOF_MODE_NONE, _POS, _VEL, _EFFORT")]
    for name in ("stiffness", "damping", "velocity", "effort", "friction", "armature"):
        checks.append((name, result[name] >= 0.0, "a number >= 0"))
    ordered = ~result["hasLimits"] | (result["lower"] <= result["upper"])
    checks.append(("lower", ordered, "at most `upper`"))
    for name, sound, allowed in checks:
        if not sound.all():
            k = int(np.argmin(sound))
            raise ValueError(
                f"{call}: {name} of degree of freedom {k} ('{names[k]}') of {whose} is {result[name][k]}, "
                f"but must be {allowed}."
            )
    return result
