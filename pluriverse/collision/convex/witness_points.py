"""Closest points of two convex shapes, or the minimum translation if they overlap, in double precision.

Most shapes that touch do so on a face of a box or the end of a cylinder. That is looked at first
(`find_face_witness`): the point of the other shape that is farthest down there decides, in closed form. Of
curved shapes the features that face each other are guessed (`facing`). All else is left to the search for
the shortest connection (`gjk`) and the minimum translation (`epa`).
"""

import warp as wp

from pluriverse.collision.components import to_double, to_single
from pluriverse.collision.convex.curved import refine_connection
from pluriverse.collision.convex.facing import find_facing_points
from pluriverse.collision.convex.shortest_way import ShortestWay, make_shortest_way
from pluriverse.collision.convex.support import ConvexPair, core_radius, support_first, support_second
from pluriverse.collision.hull import HullData
from pluriverse.math.stage_inlining import stage_hint
from pluriverse.types import GeoType

# A face normal takes the place of the direction found if it separates as much, to this fraction of the size.
ALIGNED = wp.constant(1.0e-7)

find_shortest_way = make_shortest_way(
    ConvexPair, wp.ref[HullData], support_first, support_second, refine_connection, inline=stage_hint()
)


@wp.struct
class Witness:
    """Closest or deepest points of two shapes, axes of the first, from the origin of the second [m]."""

    is_near: bool
    """Whether they are close enough to matter; else only the normal is set."""
    normal: wp.vec3
    """Unit normal from the first to the second shape; if they do not matter, one that separates them."""
    point0: wp.vec3
    """Point of the first shape."""
    point1: wp.vec3
    """Point of the second shape."""
    distance: float
    """normal . (point1 - point0)."""


@wp.func
def find_witness(
    pair: wp.ref[ConvexPair], hulls: wp.ref[HullData], size: float, max_distance: float
) -> Witness:
    """Return the closest points of two shapes, or their deepest points if they overlap.

    Args:
        pair: The shapes.
        hulls: Convex hulls.
        size: Size of the pair [m], for tolerances.
        max_distance: Distance [m] beyond which they do not matter.
    """
    witness = Witness()
    radius0 = wp.float64(core_radius(pair.type0, pair.size0))
    radius1 = wp.float64(core_radius(pair.type1, pair.size1))
    core_distance = wp.float64(max_distance) + radius0 + radius1
    way = ShortestWay()
    facing = find_facing_points(pair, hulls, wp.float64(size))
    if facing.is_found:
        way.is_near = facing.distance <= core_distance
        way.normal = facing.normal
        way.point0 = facing.point0
        way.point1 = facing.point1
    else:
        way = find_shortest_way(pair, hulls, pair.position, core_distance, wp.float64(size))
    witness.is_near = way.is_near
    witness.normal = to_single(way.normal)
    if not way.is_near:
        return witness
    point0 = way.point0 + radius0 * way.normal
    point1 = way.point1 - radius1 * way.normal
    witness.distance = wp.float32(wp.dot(way.normal, point1 - point0))
    witness.point0 = to_single(point0 - pair.position)
    witness.point1 = to_single(point1 - pair.position)
    return witness


@wp.func
def is_below_face(shape_type: int, size: wp.vec3d, axis: int, point: wp.vec3d, depth: wp.float64) -> bool:
    """Return whether the shortest way from a face of a shape to a point, or out of it, is along its normal.

    The shape reaches at least `depth` from the foot of the point to all sides of the face, and as far below
    the point. So a ball of that radius about the point is inside the shape: no translation out is shorter.

    Args:
        shape_type: `BOX` or `CYLINDER`.
        size: Sizes [m].
        axis: Axis of the shape that is normal to the face.
        point: The point, frame of the shape [m].
        depth: How far it is below the face [m], 0 above.
    """
    result = bool(False)
    if shape_type == GeoType.BOX:
        j, k = (axis + 1) % 3, (axis + 2) % 3
        result = (
            wp.abs(point[j]) + depth <= size[j]
            and wp.abs(point[k]) + depth <= size[k]
            and depth <= size[axis]
        )
    elif shape_type == GeoType.CYLINDER:
        rim = size[0] - depth
        result = (
            rim >= wp.float64(0.0)
            and point[0] * point[0] + point[1] * point[1] <= rim * rim
            and depth <= size[1]
        )
    return result


@wp.func
def find_face_witness(pair: wp.ref[ConvexPair], hulls: wp.ref[HullData], face_axis: int) -> Witness:
    """Return the closest or deepest points of two shapes if a face has one of them; else nothing is near.

    The face looks towards the other shape, whose farthest point against the normal has its foot on the face.
    Where the shapes are apart, that foot is the closest point: the plane of the face separates them by that
    distance. Where they overlap, the difference of both shapes holds that of the shape with the face and this
    one point, and so a ball as large as the depth (`is_below_face`).

    Args:
        pair: The shapes.
        hulls: Convex hulls.
        face_axis: Axis of the first shape (0 to 2) or second shape (3 to 5) normal to the face, -1 for none.
    """
    witness = Witness()
    if face_axis < 0:
        return witness
    zero = wp.float64(0.0)
    axis = face_axis % 3
    unit = wp.vec3d(zero, zero, zero)
    if face_axis < 3:
        size = to_double(pair.size0)
        half = wp.where(pair.type0 == GeoType.CYLINDER, size[1], size[axis])
        unit[axis] = wp.where(pair.position[axis] < zero, wp.float64(-1.0), wp.float64(1.0))
        point1 = support_second(pair, hulls, -unit)
        point1 -= wp.float64(core_radius(pair.type1, pair.size1)) * unit
        distance = wp.dot(unit, point1) - half
        witness.is_near = is_below_face(pair.type0, size, axis, point1, wp.max(-distance, zero))
        point0 = point1 - distance * unit
    else:
        size = to_double(pair.size1)
        half = wp.where(pair.type1 == GeoType.CYLINDER, size[1], size[axis])
        outward = wp.vec3d(pair.rotation[0, axis], pair.rotation[1, axis], pair.rotation[2, axis])
        # From the second shape to the middle of the first.
        outward = wp.where(wp.dot(outward, pair.position) > zero, -outward, outward)
        unit = -wp.normalize(outward)
        point0 = support_first(pair, hulls, unit)
        point0 += wp.float64(core_radius(pair.type0, pair.size0)) * unit
        distance = wp.dot(unit, pair.position + half * outward - point0)
        local = wp.transpose(pair.rotation) * (point0 - pair.position)
        witness.is_near = is_below_face(pair.type1, size, axis, local, wp.max(-distance, zero))
        point1 = point0 + distance * unit
    witness.normal = to_single(unit)
    witness.distance = wp.float32(distance)
    witness.point0 = to_single(point0 - pair.position)
    witness.point1 = to_single(point1 - pair.position)
    return witness


@wp.func
def align_to_face(
    pair: wp.ref[ConvexPair],
    hulls: wp.ref[HullData],
    witness: Witness,
    face: int,
    normal: wp.vec3,
    size: float,
) -> Witness:
    """Return `witness` with the normal of a face of either shape, if that separates the shapes as well.

    Where a curved side penetrates a face, the search for the minimum translation ends with a normal and a
    point that are off by the square root of its tolerance, to another side at every step: bodies at rest
    would rock. The normal of the face and the farthest point of the curved side along it are exact.

    Args:
        pair: The shapes.
        hulls: Convex hulls.
        witness: Deepest points.
        face: Which shape has the face, 0 or 1.
        normal: Normal of the face, from the first to the second shape, axes of the first.
        size: Size of the pair [m], for tolerances.
    """
    n = wp.normalize(to_double(normal))
    radius0 = wp.float64(core_radius(pair.type0, pair.size0))
    radius1 = wp.float64(core_radius(pair.type1, pair.size1))
    point0 = support_first(pair, hulls, n) + radius0 * n
    point1 = support_second(pair, hulls, -n) - radius1 * n
    distance = wp.dot(n, point1 - point0)
    if distance >= wp.float64(witness.distance - ALIGNED * size):
        if face == 0:
            point0 = point1 - distance * n
        else:
            point1 = point0 + distance * n
        witness.normal = to_single(n)
        witness.distance = wp.float32(distance)
        witness.point0 = to_single(point0 - pair.position)
        witness.point1 = to_single(point1 - pair.position)
    return witness
