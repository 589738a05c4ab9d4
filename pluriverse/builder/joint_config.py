"""JointDofConfig: drive, limits and losses of one degree of freedom of a joint."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pluriverse.builder.inputs import AxisLike
from pluriverse.builder.other_names import other_names, same_as
from pluriverse.types import Axis, JointTargetMode


@other_names(target_q=same_as("target_pos"), target_qd=same_as("target_vel"))
@dataclass(kw_only=True)
class JointDofConfig:
    """Axis, limits, drive and losses of one degree of freedom of a joint.

    `target_q` and `target_qd` are other names of `target_pos` and `target_vel`, as arguments and attributes.
    """

    axis: AxisLike = Axis.X
    """Axis in the joint frame; normalized."""
    limit_lower: float = -1.0e10
    """Lower limit of the position [m or rad]."""
    limit_upper: float = 1.0e10
    """Upper limit of the position [m or rad]."""
    limit_ke: float | None = None
    """Stiffness of the limits [N/m or N·m/rad]; None leaves it to the solver. `SolverSAP` has no
    limits with 0."""
    limit_kd: float | None = None
    """Damping of the limits [N·s/m or N·m·s/rad]; None leaves it to the solver."""
    target_pos: float = 0.0
    """Position that the drive pulls to [m or rad]."""
    target_vel: float = 0.0
    """Velocity that the drive pulls to [m/s or rad/s]."""
    target_lower: float = -np.inf
    """Least target of the drive [m or rad, in mode `VELOCITY` m/s or rad/s]; lower ones are clamped."""
    target_upper: float = np.inf
    """Largest target of the drive, likewise."""
    target_ke: float = 0.0
    """Stiffness of the drive [N/m or N·m/rad]."""
    target_kd: float = 0.0
    """Damping of the drive [N·s/m or N·m·s/rad]."""
    damping: float = 0.0
    """Viscous damping [N·s/m or N·m·s/rad]."""
    armature: float = 0.0
    """Inertia of the rotor, added to the diagonal of the mass matrix [kg or kg·m²]."""
    effort_limit: float = 1.0e6
    """Largest force of the drive [N or N·m]; 0 allows no force, infinity any."""
    velocity_limit: float = 1.0e6
    """Rated speed [m/s or rad/s]; `SolverSAP` enforces it on request (`enforce_velocity_limit`)."""
    friction: float = 0.0
    """Dry friction: largest force that holds the joint still [N or N·m]."""
    actuator_mode: JointTargetMode | int | None = None
    """What the drive follows; None decides by the gains when the model is finalized
    (`JointTargetMode.AUTO`)."""

    def merged(self, **values: Any) -> "JointDofConfig":
        """Return a copy with the given values, except those that are None."""
        result = replace(self)
        for name, value in values.items():
            if value is not None:
                setattr(result, name, value)
        return result

    @classmethod
    def create_unlimited(cls, axis: AxisLike = Axis.X) -> "JointDofConfig":
        """Return the configuration of a free degree of freedom."""
        return cls(
            axis=axis,
            limit_lower=-np.inf,
            limit_upper=np.inf,
            limit_ke=0.0,
            limit_kd=0.0,
            effort_limit=np.inf,
            velocity_limit=np.inf,
            actuator_mode=JointTargetMode.NONE,
        )


def mode_value(mode: JointTargetMode | int | None, what: str) -> int:
    """Return the number of an actuator mode.

    Raises:
        ValueError: If there is no such mode; `what` names its owner.
    """
    if mode is None:
        return int(JointTargetMode.AUTO)
    try:
        return int(JointTargetMode(mode))
    except ValueError:
        names = ", ".join(f"{member.name} ({member.value})" for member in JointTargetMode)
        raise ValueError(f"{what}: actuator_mode is {mode!r}, but the modes are {names}.") from None
