"""Whether the poses of a world are finite, for the stages that end the steps of solvers."""

import warp as wp


@wp.func
def are_finite_bodies(
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    begin: int,
    end: int,
) -> bool:
    """Return whether pose and velocity of some bodies are finite.

    Entries are summed up, which spares a test of each: a sum with NaN or infinity in it is not finite.
    """
    position = wp.vec3()
    rotation = wp.vec4()
    velocity = wp.spatial_vector()
    for body in range(begin, end):
        pose = body_q[body]
        turn = wp.transform_get_rotation(pose)
        position += wp.transform_get_translation(pose)
        rotation += wp.vec4(turn[0], turn[1], turn[2], turn[3])
        velocity += body_qd[body]
    total = wp.spatial_top(velocity) + wp.spatial_bottom(velocity) + position
    rotations = rotation[0] + rotation[1] + rotation[2] + rotation[3]
    return wp.isfinite(total[0] + total[1] + total[2] + rotations)
