"""What the terms of joints are made of: arrays of state, control and model, and constants."""

import math

import warp as wp

# Near-rigid parameter of drives and limits: stiffer ones than the period 0.1 dt needs are softened to it,
# which bounds the condition number of the Hessian ([Castro2022] section V.B with beta = 0.1).
NEAR_RIGID = wp.constant(0.1**2 / (4.0 * math.pi**2))
# Time [s] in which a joint comes back from beyond a limit that nobody gave a stiffness: that of a contact of
# two shapes with nothing set.
LIMIT_RECOVERY_TIME = wp.constant(0.02)
# Floor of 1 / A_ii [1/kg or 1/(kg·m²)]; only a division guard.
INVERSE_MASS_MIN = wp.constant(1e-12)
# Effort limits from here on [N or N·m] count as none; the builder's default of 1e6 stays a limit.
EFFORT_UNLIMITED = wp.constant(1e20)

# Speed limits from here on [m/s or rad/s], such as the builder's default of 1e6, count as none.
SPEED_UNLIMITED = wp.constant(1e6)


@wp.struct
class JointTermInputs:
    """Arrays of state, control and model that the terms depend on; see `Model` for units and shapes."""

    joint_q: wp.array[float]
    target_pos: wp.array[float]
    target_vel: wp.array[float]
    act: wp.array[float]
    target_mode: wp.array[int]
    target_lower: wp.array[float]
    target_upper: wp.array[float]
    target_ke: wp.array[float]
    target_kd: wp.array[float]
    effort_limit: wp.array[float]
    limit_lower: wp.array[float]
    limit_upper: wp.array[float]
    limit_ke: wp.array[float]
    limit_kd: wp.array[float]
    friction: wp.array[float]
    velocity_limit: wp.array[float]
    enforce_velocity_limit: int
