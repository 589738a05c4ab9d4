"""Collider of an infinite plane (a half space, solid below its local +z) with every other shape.

A shape meets a plane at its lowest points, known in closed form. To rest, it needs the whole feature that
faces the plane: the four corners of a face of a box, four points of the rim of a cylinder. A point of another
feature counts once it penetrates: it takes up load continuously then, while the many points of a thin or
small shape that merely lie within the gap do not become contacts.

Points are computed in the frame of the shape, so the plane may be far from its origin.
"""

import warp as wp

from pluriverse.collision.components import largest_component
from pluriverse.collision.contact_output import ContactOutput, add_contact
from pluriverse.collision.convex.rim import rim_direction
from pluriverse.collision.hull import HullData, facing_face, support_vertex
from pluriverse.collision.shape_pair import ShapePair, make_pair_kernel
from pluriverse.collision.shape_state import ShapeModel, hull_of
from pluriverse.types import GeoType

# Sine of the tilt of a capsule from upright below which only its lower end meets the plane: its side line,
# where the second point lies, is then too steep to carry anything.
CAPSULE_UPRIGHT = wp.constant(0.05)
# Fraction of the lean at which a cone upside down would lie on its side, below which only its apex meets the
# plane.
APEX_LEAN = wp.constant(0.1)


# Points that one shape can offer: eight corners of a box, or of the face of a hull and its lowest vertex.
CANDIDATE_CAPACITY = wp.constant(9)

# A candidate is a surface point of the shape [m], its own frame, and the largest height [m] at which it is a
# contact.


@wp.func
def set_candidate(
    candidates: wp.array[wp.vec4], index: int, x: float, y: float, z: float, limit: float
) -> int:
    """Store one candidate and return the number of them."""
    candidates[index] = wp.vec4(x, y, z, limit)
    return index + 1


@wp.func
def find_capsule_points(size: wp.vec3, up: wp.vec3, threshold: float, candidates: wp.array[wp.vec4]) -> int:
    """Return the lowest point of a capsule and the lowest point of its side line at the other end."""
    radius = size[0]
    lower_end = wp.where(up[2] > 0.0, -size[1], size[1])
    count = set_candidate(
        candidates, 0, -radius * up[0], -radius * up[1], lower_end - radius * up[2], threshold
    )
    sine = wp.sqrt(up[0] * up[0] + up[1] * up[1])
    if sine > CAPSULE_UPRIGHT:
        across = radius / sine
        count = set_candidate(candidates, 1, -across * up[0], -across * up[1], -lower_end, threshold)
    return count


@wp.func
def find_box_points(
    half: wp.vec3, up: wp.vec3, threshold: float, margin: float, candidates: wp.array[wp.vec4]
) -> int:
    """Return the corners of a box, those of the lowest face as facing the plane."""
    face = largest_component(up)
    lower_bit = wp.where(up[face] > 0.0, 0, 1)
    for corner in range(8):
        candidates[corner] = wp.vec4(
            wp.where((corner & 1) != 0, half[0], -half[0]),
            wp.where((corner & 2) != 0, half[1], -half[1]),
            wp.where((corner & 4) != 0, half[2], -half[2]),
            wp.where(((corner >> face) & 1) == lower_bit, threshold, margin),
        )
    return 8


@wp.func
def find_ellipsoid_points(size: wp.vec3, up: wp.vec3, threshold: float, candidates: wp.array[wp.vec4]) -> int:
    """Return the lowest point of an ellipsoid: -E^2 n / |E n| for semi-axes E."""
    scaled = wp.cw_mul(size, up)
    point = -wp.cw_mul(size, scaled) / wp.length(scaled)
    return set_candidate(candidates, 0, point[0], point[1], point[2], threshold)


@wp.func
def find_rim_points(
    radius: float, z: float, up: wp.vec3, first_limit: float, limit: float, candidates: wp.array[wp.vec4]
) -> wp.vec2:
    """Store four points of a circle, the lowest first, and return the x and y of the first."""
    rim = radius * rim_direction(-wp.vec2(up[0], up[1]))
    candidates[0] = wp.vec4(rim[0], rim[1], z, first_limit)
    candidates[1] = wp.vec4(-rim[1], rim[0], z, limit)
    candidates[2] = wp.vec4(-rim[0], -rim[1], z, limit)
    candidates[3] = wp.vec4(rim[1], -rim[0], z, limit)
    return rim


@wp.func
def find_cylinder_points(
    size: wp.vec3, up: wp.vec3, threshold: float, margin: float, candidates: wp.array[wp.vec4]
) -> int:
    """Return four rim points of the lower cap and the other end of the lowest side line."""
    lower_end = wp.where(up[2] > 0.0, -size[1], size[1])
    is_standing = wp.abs(up[2]) >= wp.sqrt(up[0] * up[0] + up[1] * up[1])
    cap_limit = wp.where(is_standing, threshold, margin)
    side_limit = wp.where(is_standing, margin, threshold)
    rim = find_rim_points(size[0], lower_end, up, threshold, cap_limit, candidates)
    return set_candidate(candidates, 4, rim[0], rim[1], -lower_end, side_limit)


@wp.func
def find_cone_points(
    size: wp.vec3, up: wp.vec3, threshold: float, margin: float, candidates: wp.array[wp.vec4]
) -> int:
    """Return four rim points of the base (facing if it stands) and the apex."""
    radius = size[0]
    half_height = size[1]
    sine = wp.sqrt(up[0] * up[0] + up[1] * up[1])
    # The base looks along -z, the side along (2 h, r) in (radius, z), over its length.
    slant = wp.sqrt(4.0 * half_height * half_height + radius * radius)
    is_standing = up[2] >= (2.0 * half_height * sine - radius * up[2]) / slant
    base_limit = wp.where(is_standing, threshold, margin)
    side_limit = wp.where(is_standing, margin, threshold)
    # The cone rests on its rim, or on its apex alone if the axis leans less than a side does.
    is_on_apex = up[2] < 0.0 and sine * radius < -up[2] * 2.0 * half_height * APEX_LEAN
    rim_limit = wp.where(is_on_apex, margin, threshold)
    find_rim_points(radius, -half_height, up, rim_limit, base_limit, candidates)
    return set_candidate(candidates, 4, 0.0, 0.0, half_height, side_limit)


@wp.func
def find_hull_points(
    hulls: wp.ref[HullData],
    hull: int,
    scale: wp.vec3,
    up: wp.vec3,
    threshold: float,
    candidates: wp.array[wp.vec4],
) -> int:
    """Return the corners of the face that looks at the plane and, if not one of them, the lowest vertex."""
    lowest = support_vertex(hulls, hull, -wp.cw_mul(scale, up))
    face = facing_face(hulls, lowest, scale, -up)
    count = int(0)
    is_corner = bool(False)
    for index in range(hulls.corner_start[face], hulls.corner_start[face + 1]):
        vertex = hulls.corner[index]
        is_corner = is_corner or vertex == lowest
        point = wp.cw_mul(scale, hulls.vertex[vertex])
        candidates[count] = wp.vec4(point[0], point[1], point[2], threshold)
        count += 1
    if not is_corner:
        point = wp.cw_mul(scale, hulls.vertex[lowest])
        candidates[count] = wp.vec4(point[0], point[1], point[2], threshold)
        count += 1
    return count


@wp.func
def collide_half_space(
    output: wp.ref[ContactOutput],
    model: wp.ref[ShapeModel],
    hulls: wp.ref[HullData],
    pair: wp.ref[ShapePair],
    found: int,
) -> int:
    """Add the contacts of a plane (first) and a shape (second)."""
    # The plane's normal in the frame of the shape.
    up = wp.vec3(pair.rotation[2, 0], pair.rotation[2, 1], pair.rotation[2, 2])
    margin = model.shape_margin[pair.shape0] + model.shape_margin[pair.shape1]
    shape_type = model.shape_type[pair.shape1]
    size = pair.size1
    threshold = pair.threshold
    candidates = wp.zeros(shape=CANDIDATE_CAPACITY, dtype=wp.vec4)
    count = int(0)
    if shape_type == GeoType.SPHERE:
        count = set_candidate(candidates, 0, -size[0] * up[0], -size[0] * up[1], -size[0] * up[2], threshold)
    elif shape_type == GeoType.CAPSULE:
        count = find_capsule_points(size, up, threshold, candidates)
    elif shape_type == GeoType.BOX:
        count = find_box_points(size, up, threshold, margin, candidates)
    elif shape_type == GeoType.CYLINDER:
        count = find_cylinder_points(size, up, threshold, margin, candidates)
    elif shape_type == GeoType.ELLIPSOID:
        count = find_ellipsoid_points(size, up, threshold, candidates)
    elif shape_type == GeoType.CONE:
        count = find_cone_points(size, up, threshold, margin, candidates)
    elif shape_type == GeoType.CONVEX_MESH:
        count = find_hull_points(hulls, hull_of(model, pair.shape1), size, up, threshold, candidates)

    normal = wp.vec3(pair.rotation0[0, 2], pair.rotation0[1, 2], pair.rotation0[2, 2])
    for index in range(count):
        candidate = candidates[index]
        point = wp.vec3(candidate[0], candidate[1], candidate[2])
        on_plane = pair.rotation * point + pair.position
        height = on_plane[2]
        if height <= candidate[3]:
            on_plane[2] = 0.0
            found = add_contact(
                output,
                model,
                pair.world,
                found,
                pair.shape0,
                pair.shape1,
                on_plane,
                point,
                normal,
                height,
            )
    return found


collide_half_space_pairs = make_pair_kernel("half_space", collide_half_space)
