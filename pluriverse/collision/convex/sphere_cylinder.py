"""Collider of a cylinder and a sphere: the point of the cylinder closest to the centre, in closed form."""

import warp as wp

from pluriverse.collision.contact_output import ContactOutput, add_contact
from pluriverse.collision.hull import HullData
from pluriverse.collision.shape_pair import ShapePair, make_pair_kernel
from pluriverse.collision.shape_state import ShapeModel


@wp.func
def collide_sphere_cylinder(
    output: wp.ref[ContactOutput],
    model: wp.ref[ShapeModel],
    hulls: wp.ref[HullData],
    pair: wp.ref[ShapePair],
    found: int,
) -> int:
    """Add the contact of a cylinder (first) and a sphere (second)."""
    radius = pair.size0[0]
    half_height = pair.size0[1]
    center = pair.position
    distance_axis = wp.sqrt(center[0] * center[0] + center[1] * center[1])
    radial = wp.vec3(1.0, 0.0, 0.0)
    if distance_axis > 0.0:
        radial = wp.vec3(center[0] / distance_axis, center[1] / distance_axis, 0.0)
    side = distance_axis - radius
    cap = wp.abs(center[2]) - half_height
    axial = wp.vec3(0.0, 0.0, wp.where(center[2] < 0.0, -1.0, 1.0))
    # Distance of the centre from the surface, and the direction away from it.
    distance = wp.max(side, cap)
    normal = radial
    if side > 0.0 and cap > 0.0:
        distance = wp.sqrt(side * side + cap * cap)
        normal = (side * radial + cap * axial) / distance
    elif cap > side:
        normal = axial
    if distance - pair.size1[0] <= pair.threshold:
        point = wp.min(distance_axis, radius) * radial
        if side >= cap:
            point = radius * radial
        point[2] = wp.clamp(center[2], -half_height, half_height)
        if cap > side:
            point[2] = axial[2] * half_height
        found = add_contact(
            output,
            model,
            pair.world,
            found,
            pair.shape0,
            pair.shape1,
            point,
            wp.transpose(pair.rotation) * (-pair.size1[0] * normal),
            pair.rotation0 * normal,
            distance - pair.size1[0],
        )
    return found


collide_sphere_cylinder_pairs = make_pair_kernel("sphere_cylinder", collide_sphere_cylinder)
