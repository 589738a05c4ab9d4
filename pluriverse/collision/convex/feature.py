"""The feature of a shape that looks in a direction: a face, a side line, or nothing but a point."""

import warp as wp

from pluriverse.collision.components import largest_component
from pluriverse.collision.convex.rim import rim_direction
from pluriverse.collision.hull import HullData, facing_face, support_vertex
from pluriverse.types import GeoType

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
    is_circle: bool
    """Whether the face is round, and its corners eight points of the rim, the first one farthest out."""


@wp.func
def set_circle(points: wp.array[wp.vec3], start: int, radius: float, z: float, direction: wp.vec3) -> int:
    """Store eight points of a circle, the first one towards `direction`; return their number."""
    first = radius * rim_direction(wp.vec2(direction[0], direction[1]))
    for index in range(int(4)):
        diagonal = 0.70710678 * wp.vec2(first[0] - first[1], first[0] + first[1])
        points[start + 2 * index] = wp.vec3(first[0], first[1], z)
        points[start + 2 * index + 1] = wp.vec3(diagonal[0], diagonal[1], z)
        first = wp.vec2(-first[1], first[0])
    return 8


@wp.func
def find_feature(
    shape_type: int,
    size: wp.vec3,
    hulls: wp.ref[HullData],
    hull: int,
    direction: wp.vec3,
    points: wp.array[wp.vec3],
    start: int,
) -> Feature:
    """Return what of a shape looks in a direction and store its corners, in the frame of the shape [m].

    Args:
        shape_type: `GeoType`.
        size: Sizes [m].
        hulls: Convex hulls.
        hull: Hull, -1 for none.
        direction: Unit vector, frame of the shape.
        points: Corners in order around the face, written.
        start: Where in `points` they begin; there is room for eight.
    """
    feature = Feature()
    radius = size[0]
    half_height = size[1]
    sine = wp.sqrt(direction[0] * direction[0] + direction[1] * direction[1])
    up = wp.where(direction[2] < 0.0, -1.0, 1.0)
    if shape_type == GeoType.BOX:
        face = largest_component(direction)
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
            points[start + index] = corner
    elif shape_type == GeoType.CONVEX_MESH:
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
        first = hulls.corner_start[face]
        feature.count = hulls.corner_start[face + 1] - first
        for index in range(feature.count):
            points[start + index] = wp.cw_mul(size, hulls.vertex[hulls.corner[first + index]])
    elif shape_type == GeoType.CYLINDER and wp.abs(direction[2]) >= sine:
        feature.normal = wp.vec3(0.0, 0.0, up)
        feature.cosine = wp.abs(direction[2])
        feature.count = set_circle(points, start, radius, up * half_height, direction)
        feature.is_circle = True
    elif shape_type == GeoType.CYLINDER or (shape_type == GeoType.CAPSULE and sine > END_ON):
        rim = (radius / sine) * wp.vec2(direction[0], direction[1])
        points[start] = wp.vec3(rim[0], rim[1], -half_height)
        points[start + 1] = wp.vec3(rim[0], rim[1], half_height)
        feature.count = 2
    elif shape_type == GeoType.CONE:
        slant = wp.sqrt(4.0 * half_height * half_height + radius * radius)
        side = (2.0 * half_height * sine + radius * direction[2]) / slant
        if -direction[2] >= side:
            feature.normal = wp.vec3(0.0, 0.0, -1.0)
            feature.cosine = -direction[2]
            feature.count = set_circle(points, start, radius, -half_height, direction)
            feature.is_circle = True
        elif sine > END_ON:
            rim = (radius / sine) * wp.vec2(direction[0], direction[1])
            points[start] = wp.vec3(rim[0], rim[1], -half_height)
            points[start + 1] = wp.vec3(0.0, 0.0, half_height)
            feature.count = 2
    return feature
