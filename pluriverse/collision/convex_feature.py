"""The feature of a shape that looks in a direction: a face, a side line, or nothing but a point."""

import warp as wp

from pluriverse.collision.hull import HullData, facing_face, support_vertex
from pluriverse.collision.rim import rim_direction
from pluriverse.collision.shape_state import BOX, CAPSULE, CONE, CONVEX_MESH, CYLINDER

# Sine of the angle between the axis of a round body and a direction below which it looks there with its end
# alone.
END_ON = wp.constant(0.05)


@wp.struct
class Feature:
    """Part of a surface."""

    count: int
    """Corners of a flat face (3 or more), ends of a straight line (2), or 0 for neither."""
    normal: wp.vec3
    """Outward unit normal of a face, frame of the shape."""
    cosine: float
    """Cosine of the angle between that normal and the direction; 0 without a face."""


@wp.func
def set_circle(points: wp.array[wp.vec3], radius: float, z: float, direction: wp.vec3, count: int) -> int:
    """Store `count` (4 or 8) points of a circle, the first one towards `direction`."""
    first = radius * rim_direction(wp.vec2(direction[0], direction[1]))
    quarter = count // 4
    for index in range(int(4)):
        points[index * quarter] = wp.vec3(first[0], first[1], z)
        if count == 8:
            diagonal = 0.70710678 * wp.vec2(first[0] - first[1], first[0] + first[1])
            points[index * quarter + 1] = wp.vec3(diagonal[0], diagonal[1], z)
        first = wp.vec2(-first[1], first[0])
    return count


@wp.func
def find_feature(
    shape_type: int,
    size: wp.vec3,
    hulls: HullData,
    hull: int,
    direction: wp.vec3,
    circle_count: int,
    points: wp.array[wp.vec3],
) -> Feature:
    """Return what of a shape looks in a direction and store its corners, in the frame of the shape [m].

    Args:
        shape_type: `GeoType`.
        size: Sizes [m].
        hulls: Convex hulls.
        hull: Hull, -1 for none.
        direction: Unit vector, frame of the shape.
        circle_count: Corners that stand for a circle, 4 or 8, the first the farthest along the direction.
        points: Corners in order around the face, shape [8], written.
    """
    feature = Feature()
    radius = size[0]
    half_height = size[1]
    sine = wp.sqrt(direction[0] * direction[0] + direction[1] * direction[1])
    up = wp.where(direction[2] < 0.0, -1.0, 1.0)
    if shape_type == BOX:
        face = int(0)
        if wp.abs(direction[1]) > wp.abs(direction[0]):
            face = 1
        if wp.abs(direction[2]) > wp.max(wp.abs(direction[0]), wp.abs(direction[1])):
            face = 2
        sign = wp.where(direction[face] < 0.0, -1.0, 1.0)
        normal = wp.vec3(0.0, 0.0, 0.0)
        normal[face] = sign
        feature.normal = normal
        feature.cosine = wp.abs(direction[face])
        feature.count = 4
        for index in range(int(4)):
            corner = size
            corner[face] = sign * size[face]
            if index == 0 or index == 3:
                corner[(face + 1) % 3] = -size[(face + 1) % 3]
            if index < 2:
                corner[(face + 2) % 3] = -size[(face + 2) % 3]
            points[index] = corner
    elif shape_type == CONVEX_MESH:
        vertex = support_vertex(hulls, hull, wp.cw_mul(size, direction))
        face = facing_face(hulls, vertex, size, direction)
        feature.normal = wp.normalize(
            wp.vec3(
                hulls.face_normal[face][0] / size[0],
                hulls.face_normal[face][1] / size[1],
                hulls.face_normal[face][2] / size[2],
            )
        )
        feature.cosine = wp.dot(feature.normal, direction)
        start = hulls.corner_start[face]
        feature.count = hulls.corner_start[face + 1] - start
        for index in range(feature.count):
            points[index] = wp.cw_mul(size, hulls.vertex[hulls.corner[start + index]])
    elif shape_type == CYLINDER and wp.abs(direction[2]) >= sine:
        feature.normal = wp.vec3(0.0, 0.0, up)
        feature.cosine = wp.abs(direction[2])
        feature.count = set_circle(points, radius, up * half_height, direction, circle_count)
    elif shape_type == CYLINDER or (shape_type == CAPSULE and sine > END_ON):
        rim = (radius / sine) * wp.vec2(direction[0], direction[1])
        points[0] = wp.vec3(rim[0], rim[1], -half_height)
        points[1] = wp.vec3(rim[0], rim[1], half_height)
        feature.count = 2
    elif shape_type == CONE:
        slant = wp.sqrt(4.0 * half_height * half_height + radius * radius)
        side = (2.0 * half_height * sine + radius * direction[2]) / slant
        if -direction[2] >= side:
            feature.normal = wp.vec3(0.0, 0.0, -1.0)
            feature.cosine = -direction[2]
            feature.count = set_circle(points, radius, -half_height, direction, circle_count)
        elif sine > END_ON:
            rim = (radius / sine) * wp.vec2(direction[0], direction[1])
            points[0] = wp.vec3(rim[0], rim[1], -half_height)
            points[1] = wp.vec3(0.0, 0.0, half_height)
            feature.count = 2
    return feature
