"""Reward of following a commanded velocity, term by term.

Reads   robot tensors, commands, actions
Writes  value of each term per environment, times its weight

Thirty operations of PyTorch would cost more than stepping a hundred robots; here they are one launch. A
thread does one environment, so that its reward does not depend on the batch.
"""

from collections.abc import Mapping
from typing import Any

import warp as wp

from pluriverse.launch import RECORDING, launch_kernel

TERMS = (
    "tracking",
    "turning",
    "vertical velocity",
    "roll and pitch rate",
    "orientation",
    "torques",
    "accelerations",
    "action rate",
    "swing",
    "pose",
)
"""Terms in the order of the rows of the result."""
# A foot has landed in this step where it has touched for one step; half a step is room for rounding.
LANDING_STEPS = wp.constant(1.5)
# Command below which feet are not asked to swing [m/s].
STANDING_COMMAND = wp.constant(0.1)


@wp.func
def squared_distance(first: wp.array2d[float], second: wp.array2d[float], row: int) -> float:
    """Return the squared distance of two rows."""
    total = float(0.0)
    for column in range(first.shape[1]):
        difference = first[row, column] - second[row, column]
        total += difference * difference
    return total


@wp.func
def flight_of(
    foot_contact_times: wp.array2d[float],
    foot_last_air_times: wp.array2d[float],
    swing_seconds: float,
    dt: float,
    row: int,
) -> float:
    """Return by how much the feet that have landed in this step flew longer than `swing_seconds` [s]."""
    total = float(0.0)
    for foot in range(foot_contact_times.shape[1]):  # padding has not touched
        touched, flown = foot_contact_times[row, foot], foot_last_air_times[row, foot]
        if touched > 0.0 and touched < LANDING_STEPS * dt and flown > 0.0:
            total += flown - swing_seconds
    return total


@wp.kernel(enable_backward=False, module="pluriverse.envs.tasks.velocity_terms")
def value_terms(
    # robot
    base_linear_velocities: wp.array[wp.vec3],  # [env] m/s, base axes
    base_angular_velocities: wp.array[wp.vec3],  # [env] rad/s, base axes
    projected_gravity: wp.array[wp.vec3],  # [env] base axes
    joint_positions: wp.array2d[float],  # [env, dof] rad
    joint_velocities: wp.array2d[float],  # [env, dof] rad/s
    joint_torques: wp.array2d[float],  # [env, dof] N·m
    foot_contact_times: wp.array2d[float],  # [env, foot] s
    foot_last_air_times: wp.array2d[float],  # [env, foot] s
    # task
    commands: wp.array2d[float],  # [env, 3] m/s, m/s, rad/s
    actions: wp.array2d[float],  # [env, dof]
    previous_actions: wp.array2d[float],  # [env, dof]
    home: wp.array2d[float],  # [env, dof] rad
    last_velocities: wp.array2d[float],  # [env, dof] rad/s, before the step
    weights: wp.array[float],  # [term] 1/s
    tracking_width: float,  # m/s, rad/s
    swing_seconds: float,  # s
    dt: float,  # s, of a step of the environment
    # out
    values: wp.array2d[float],  # [term, env]
):
    """Value the step of one environment."""
    env, _ = wp.tid()
    velocity, spin = base_linear_velocities[env], base_angular_velocities[env]
    gravity = projected_gravity[env]
    forward, sideways = commands[env, 0], commands[env, 1]
    error = wp.vec2(forward - velocity[0], sideways - velocity[1])
    turn_error = commands[env, 2] - spin[2]
    width = tracking_width * tracking_width
    torque = float(0.0)
    for dof in range(joint_torques.shape[1]):
        torque += joint_torques[env, dof] * joint_torques[env, dof]
    flight = float(0.0)
    if forward * forward + sideways * sideways > STANDING_COMMAND * STANDING_COMMAND:
        flight = flight_of(foot_contact_times, foot_last_air_times, swing_seconds, dt, env)
    values[0, env] = dt * weights[0] * wp.exp(-wp.dot(error, error) / width)
    values[1, env] = dt * weights[1] * wp.exp(-turn_error * turn_error / width)
    values[2, env] = dt * weights[2] * velocity[2] * velocity[2]
    values[3, env] = dt * weights[3] * (spin[0] * spin[0] + spin[1] * spin[1])
    values[4, env] = dt * weights[4] * (gravity[0] * gravity[0] + gravity[1] * gravity[1])
    values[5, env] = dt * weights[5] * torque
    values[6, env] = weights[6] * squared_distance(joint_velocities, last_velocities, env) / dt
    values[7, env] = dt * weights[7] * squared_distance(actions, previous_actions, env)
    values[8, env] = dt * weights[8] * flight
    values[9, env] = dt * weights[9] * squared_distance(joint_positions, home, env)


class VelocityTerms:
    """The terms of the reward of one environment, as a launch that is made once.

    Args:
        robot: Tensors of the robots.
        commands: Commanded velocities [m/s, m/s, rad/s], tensor of shape [env, 3].
        actions: Actions of the step, shape [env, dof].
        previous_actions: Actions of the step before, shape [env, dof].
        home: Positions of joints at home, shape [env, dof].
        last_velocities: Velocities of joints before the step, shape [env, dof].
        weights: Weight of each term per second; terms without one count nothing.
        tracking_width: Error at which the reward of tracking has fallen to 1/e [m/s, rad/s].
        swing_seconds: Flight of a foot that is neither rewarded nor punished [s].
        dt: Simulated time of a step [s].

    Raises:
        KeyError: If there is a weight for a term that does not exist.
    """

    def __init__(
        self,
        robot: Any,
        *,
        commands: Any,
        actions: Any,
        previous_actions: Any,
        home: Any,
        last_velocities: Any,
        weights: Mapping[str, float],
        tracking_width: float,
        swing_seconds: float,
        dt: float,
    ) -> None:
        unknown = sorted(set(weights) - set(TERMS))
        if unknown:
            raise KeyError(
                f"VelocityTerms: there is no term {', '.join(unknown)} of the reward; there are "
                f"{', '.join(TERMS)}. Terms of your own are added in reward()."
            )
        device, count = robot.base_positions.device, robot.base_positions.size
        values = wp.zeros((len(TERMS), count), dtype=float, device=device)
        tensors = (commands, actions, previous_actions, home, last_velocities)
        self._launch = launch_kernel(
            value_terms,
            dim=count,
            inputs=[
                robot.base_linear_velocities,
                robot.base_angular_velocities,
                robot.projected_gravity,
                robot.joint_positions,
                robot.joint_velocities,
                robot.joint_torques,
                robot.foot_contact_times,
                robot.foot_last_air_times,
                *(wp.from_torch(tensor) for tensor in tensors),
                wp.array([weights.get(name, 0.0) for name in TERMS], dtype=float, device=device),
                tracking_width,
                swing_seconds,
                dt,
            ],
            outputs=[values],
            device=device,
            record_cmd=True,
        )
        self._values = wp.to_torch(values)

    def __call__(self) -> dict[str, Any]:
        """Return the terms by their names, tensors of shape [env], which the next call overwrites."""
        with RECORDING:
            self._launch.launch()
        return dict(zip(TERMS, self._values, strict=True))
