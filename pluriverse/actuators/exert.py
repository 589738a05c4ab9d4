"""Actuator stage: from the commands of a policy to the efforts of joints, in every solver step.

Reads   joint_q, joint_qd; joint_target_pos, joint_target_vel, joint_act of a control; the actuators' arrays
Writes  joint_f of the control; the actuators' memory

    u = k (q*(t - T) - q) + d (v*(t - T) - v) + e(t - T)        delayed by T, with feedforward e
    u' = u held between the bounds of the motor at speed v        torque-speed curve, effort limit
    y' = (u' - y) / tau                                           first-order lag

The motor is that of [Hughes2013] ch. 3: an effort of `stall (1 - v / v0)` in the direction of motion, so none
at the no-load speed v0, and `stall (1 + |v| / v0)` against it, both within the effort limit.
"""

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.math.bounds import bounded
from pluriverse.math.counter_random import open_uniform_of, philox

_MODULE = "pluriverse.actuators.exert"
ACTUATOR_STREAM = wp.constant(wp.uint32(0x61637475))


@wp.struct
class ActuatorArrays:
    """Of each actuated degree of freedom, sorted by world."""

    start: wp.array[int]  # [world + 1]
    dof: wp.array[int]  # [actuator]
    coord: wp.array[int]  # [actuator]
    stiffness: wp.array[float]  # [actuator] N m/rad or N/m
    damping: wp.array[float]  # [actuator] N m s/rad or N s/m
    effort_limit: wp.array[float]  # [actuator] N m or N
    velocity_limit: wp.array[float]  # [actuator] rad/s or m/s
    stall_effort: wp.array[float]  # [actuator] N m or N, infinite for no motor curve
    no_load_speed: wp.array[float]  # [actuator] rad/s or m/s
    time_constant: wp.array[float]  # [actuator] s
    delay_low: wp.array[float]  # [actuator] s
    delay_high: wp.array[float]  # [actuator] s
    delay: wp.array[float]  # [actuator] s, drawn at resets
    target_lower: wp.array[float]  # [dof]
    target_upper: wp.array[float]  # [dof]
    curve_speed: wp.array[float]  # [point] rad/s or m/s, ascending from 0; empty for no curve
    curve_effort: wp.array[float]  # [point] N m or N
    effort: wp.array[float]  # [actuator] what is exerted
    history: wp.array3d[float]  # [sample, actuator, position, velocity, effort]
    sample: wp.array[int]  # [world] solver steps since the reset
    episode: wp.array[int]  # [world] resets
    identity: wp.array[int]  # [world]
    seed: wp.array[int]  # [1] an array, so that a recorded reset reads it
    dt: float  # s


@wp.func
def curve_value(speeds: wp.array[float], efforts: wp.array[float], speed: float) -> float:
    """Return the largest effort at a speed: linear between points, the last one beyond them."""
    last = speeds.shape[0] - 1
    result = efforts[last]
    if speed <= speeds[0]:
        result = efforts[0]
    else:
        for point in range(last):
            if speed >= speeds[point] and speed < speeds[point + 1]:
                share = (speed - speeds[point]) / (speeds[point + 1] - speeds[point])
                result = efforts[point] + share * (efforts[point + 1] - efforts[point])
    return result


@wp.func
def limited_effort(actuators: ActuatorArrays, actuator: int, desired: float, speed: float) -> float:
    """Return the requested effort clamped to what an actuator can exert at a speed."""
    upper = actuators.effort_limit[actuator]
    lower = -upper
    stall = actuators.stall_effort[actuator]
    if stall < wp.inf:
        share = speed / actuators.no_load_speed[actuator]
        upper = wp.min(upper, wp.max(stall * (1.0 - share), 0.0))
        lower = wp.max(lower, wp.min(-stall * (1.0 + share), 0.0))
    if actuators.curve_speed.shape[0] > 0:
        bound = curve_value(actuators.curve_speed, actuators.curve_effort, wp.abs(speed))
        if speed >= 0.0:
            upper = wp.min(upper, bound)
        if speed <= 0.0:
            lower = wp.max(lower, -bound)
    fastest = actuators.velocity_limit[actuator]
    if speed >= fastest:
        upper = 0.0
    if speed <= -fastest:
        lower = 0.0
    return bounded(desired, lower, upper)


@wp.kernel(enable_backward=False, module=_MODULE)
def exert_world(
    worlds: wp.array[int],  # [slot]
    actuators: ActuatorArrays,
    joint_q: wp.array[float],  # [coord]
    joint_qd: wp.array[float],  # [dof]
    target_pos: wp.array[float],  # [dof]
    target_vel: wp.array[float],  # [dof]
    act: wp.array[float],  # [dof]
    joint_f: wp.array[float],  # [dof]
):
    """Write the efforts of the actuators of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    sample = actuators.sample[world]
    depth = actuators.history.shape[0]
    for actuator in range(actuators.start[world], actuators.start[world + 1]):
        dof = actuators.dof[actuator]
        position = bounded(target_pos[dof], actuators.target_lower[dof], actuators.target_upper[dof])
        velocity = target_vel[dof]
        feedforward = act[dof]
        if depth > 0:
            slot = sample % depth
            actuators.history[slot, actuator, 0] = position
            actuators.history[slot, actuator, 1] = velocity
            actuators.history[slot, actuator, 2] = feedforward
            late = int(wp.floor(actuators.delay[actuator] / actuators.dt + 0.5))
            late = wp.clamp(late, 0, wp.min(sample, depth - 1))
            slot = (sample - late) % depth
            position = actuators.history[slot, actuator, 0]
            velocity = actuators.history[slot, actuator, 1]
            feedforward = actuators.history[slot, actuator, 2]
        speed = joint_qd[dof]
        desired = actuators.stiffness[actuator] * (position - joint_q[actuators.coord[actuator]])
        desired += actuators.damping[actuator] * (velocity - speed) + feedforward
        effort = limited_effort(actuators, actuator, desired, speed)
        tau = actuators.time_constant[actuator]
        if tau > 0.0:
            # The exact solution of the lag over a step with constant u'.
            before = actuators.effort[actuator]
            effort = before + (1.0 - wp.exp(-actuators.dt / tau)) * (effort - before)
        actuators.effort[actuator] = effort
        joint_f[dof] = effort
    actuators.sample[world] = sample + 1


@wp.kernel(enable_backward=False, module=_MODULE)
def begin_world(
    worlds: wp.array[int],  # [slot]
    mask: wp.array[bool],  # [world] empty for all
    actuators: ActuatorArrays,
):
    """Clear efforts and commands of one world, and draw its delays."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0 or world >= actuators.sample.shape[0]:
        return
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    actuators.sample[world] = 0
    actuators.episode[world] = actuators.episode[world] + 1
    first = actuators.start[world]
    for actuator in range(first, actuators.start[world + 1]):
        actuators.effort[actuator] = 0.0
        block = philox(
            wp.uint32(actuators.identity[world]),
            wp.uint32(actuators.episode[world]),
            wp.uint32(actuator - first),
            wp.uint32(0),
            wp.uint32(actuators.seed[0]),
            ACTUATOR_STREAM,
        )
        low = actuators.delay_low[actuator]
        share = float(open_uniform_of(block.word0))
        actuators.delay[actuator] = low + share * (actuators.delay_high[actuator] - low)


def exert_worlds(worlds, actuators, state, control, device) -> None:
    """Write the efforts of the actuators of worlds into `joint_f` of a control."""
    launch_kernel(
        exert_world,
        dim=worlds.size,
        inputs=[
            worlds,
            actuators,
            state.joint_q,
            state.joint_qd,
            control.joint_target_pos,
            control.joint_target_vel,
            control.joint_act,
        ],
        outputs=[control.joint_f],
        device=device,
    )


def begin_worlds(worlds, mask, actuators, device) -> None:
    """Reset the actuators of worlds."""
    launch_kernel(begin_world, dim=worlds.size, inputs=[worlds, mask, actuators], device=device)
