"""State stage: draw where worlds begin.

Reads   the defaults of joint_q, joint_qd; joint limits; episode
Writes  joint_q, joint_qd of the model
"""

import warp as wp

from pluriverse.randomization.sampling import Sampler, draw
from pluriverse.randomization.write import Episode, Targets, rotated, selected_environment
from pluriverse.types import JointType

# Draws of one joint: 3 of position, 3 of rotation, 6 of velocity, 6 coordinates, 6 joint velocities.
NUMBER_COUNT = wp.constant(24)


@wp.struct
class StateSamplers:
    """Distributions of what is added."""

    root_position: Sampler
    root_rotation: Sampler
    root_velocity: Sampler
    joint_position: Sampler
    joint_velocity: Sampler


@wp.kernel(enable_backward=False, module="pluriverse.randomization.state")
def write_initial_state(
    episode: Episode,
    targets: Targets,
    samplers: StateSamplers,
    term: int,
    # model
    joint_type: wp.array[int],  # [joint]
    joint_parent: wp.array[int],  # [joint]
    joint_q_start: wp.array[int],  # [joint + 1]
    joint_qd_start: wp.array[int],  # [joint + 1]
    joint_limit_lower: wp.array[float],  # [dof]
    joint_limit_upper: wp.array[float],  # [dof]
    default_q: wp.array[float],  # [coord]
    default_qd: wp.array[float],  # [dof]
    # out
    joint_q: wp.array[float],  # [coord]
    joint_qd: wp.array[float],  # [dof]
):
    """Draw the initial joint state of one world."""
    thread, _ = wp.tid()
    environment = selected_environment(episode, thread)
    if environment < 0:
        return
    world = episode.world[environment]
    count = episode.count[environment]
    identity = episode.identity[environment]
    seed = episode.seed
    for target in range(targets.start[world], targets.start[world + 1]):
        joint = targets.entity[target]
        counter = targets.local[target] * NUMBER_COUNT
        coord = joint_q_start[joint]
        dof = joint_qd_start[joint]
        coord_count = joint_q_start[joint + 1] - coord
        dof_count = joint_qd_start[joint + 1] - dof
        if joint_type[joint] == JointType.FREE:
            if joint_parent[joint] < 0:
                rotation_vector = wp.vec3()
                for axis in range(3):
                    step = draw(samplers.root_position, axis, identity, count, counter + axis, term, seed)
                    joint_q[coord + axis] = wp.float32(wp.float64(default_q[coord + axis]) + step)
                    rotation_vector[axis] = wp.float32(
                        draw(samplers.root_rotation, axis, identity, count, counter + 3 + axis, term, seed)
                    )
                before = wp.quat(
                    default_q[coord + 3], default_q[coord + 4], default_q[coord + 5], default_q[coord + 6]
                )
                after = rotated(rotation_vector, before)
                for axis in range(4):
                    joint_q[coord + 3 + axis] = after[axis]
                for axis in range(6):
                    step = draw(samplers.root_velocity, axis, identity, count, counter + 6 + axis, term, seed)
                    joint_qd[dof + axis] = wp.float32(wp.float64(default_qd[dof + axis]) + step)
        else:
            if coord_count == dof_count and joint_type[joint] != JointType.BALL:
                for axis in range(coord_count):
                    step = draw(samplers.joint_position, 0, identity, count, counter + 12 + axis, term, seed)
                    moved = wp.float32(wp.float64(default_q[coord + axis]) + step)
                    if step != wp.float64(0.0):
                        moved = wp.clamp(moved, joint_limit_lower[dof + axis], joint_limit_upper[dof + axis])
                    joint_q[coord + axis] = moved
            for axis in range(dof_count):
                step = draw(samplers.joint_velocity, 0, identity, count, counter + 18 + axis, term, seed)
                joint_qd[dof + axis] = wp.float32(wp.float64(default_qd[dof + axis]) + step)
