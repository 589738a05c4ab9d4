"""Shortest connection of a curved shape and another one from the features that probably face each other.

A search of simplices (`gjk`) takes a dozen rounds until it tells which vertex or edge of a box faces an
ellipsoid; where they just touch, as at rest, a polytope (`epa`) follows. The point of the box closest to the
middle of the ellipsoid tells mostly the same at once: it is on a face, an edge or a corner. From there
Newton's method (`curved`) needs three or four rounds. If the foot is beyond the end of an edge, that end is
tried.

What is found is checked, so a wrong guess costs time only. With the unit normal n and the support points of
both whole shapes, no connection is shorter than n . (s1(-n) - s0(n)), and the one that is found must be as
short. Shapes that overlap are freed by moving them by their depth along the normal. Another translation could
be shorter, by that depth at most: so it counts only up to the depth that `epa` leaves open, too.
"""

import warp as wp

from pluriverse.collision.components import to_double
from pluriverse.collision.convex.curved import (
    Connection,
    Edges,
    add_edge,
    connect_features,
    is_curved,
    move_along_edges,
)
from pluriverse.collision.convex.epa import DEPTH_TOLERANCE, REFINEMENT_TOLERANCE
from pluriverse.collision.convex.gjk import DISTANCE_TOLERANCE
from pluriverse.collision.convex.support import ConvexPair, support_first, support_second
from pluriverse.collision.hull import HullData
from pluriverse.math.stage_inlining import stage_hint
from pluriverse.types import GeoType

# Rounds of closest points after which features are taken from them. (Two leave the corner of a box that a
# cylinder faces open more often than three, four no less.)
APPROACH_ROUNDS = 3
# Sets of features that are tried: two edges may end before the foot, or others begin.
TRIAL_LIMIT = 4
# Part of a cylinder, from its middle, of which closest points are sought: they differ where it touches.
INNER_PART = wp.constant(wp.float64(0.9))
# How far from a line along the normal both points may be, relative to the size: rounding.
OFF_LINE = wp.constant(wp.float64(1.0e-9))


@wp.struct
class Features:
    """Vertices and edges of two cores that may face each other."""

    edges: Edges
    """The edges of both, axes of the first shape [m]."""
    start0: wp.vec3d
    """Where those of the first core begin, or its vertex, frame of the first shape [m]."""
    start1: wp.vec3d
    """Where those of the second core begin, or its vertex, frame of the second shape [m]."""
    guess: wp.vec3d
    """Direction from the first to the second core, of any length."""


@wp.func
def has_simple_features(shape_type: int) -> bool:
    """Return whether the features of a shape are told by a point close to it."""
    result = shape_type == GeoType.BOX or shape_type == GeoType.CAPSULE or shape_type == GeoType.SPHERE
    return result or is_curved(shape_type)


@wp.func
def closest_inner_point(shape_type: int, size: wp.vec3d, point: wp.vec3d) -> wp.vec3d:
    """Return the point of a core, of a curved one well inside, that is closest to a point, its frame [m]."""
    result = wp.vec3d()
    if shape_type == GeoType.BOX:
        for axis in range(3):
            result[axis] = wp.clamp(point[axis], -size[axis], size[axis])
    elif shape_type == GeoType.CAPSULE:
        result[2] = wp.clamp(point[2], -size[1], size[1])
    elif shape_type == GeoType.CYLINDER:
        radius, half_height = INNER_PART * size[0], INNER_PART * size[1]
        across = wp.sqrt(point[0] * point[0] + point[1] * point[1])
        factor = radius / wp.max(across, radius)
        result = wp.vec3d(factor * point[0], factor * point[1], wp.clamp(point[2], -half_height, half_height))
    elif shape_type == GeoType.ELLIPSOID:
        # The centres of the largest balls inside fill an ellipse: what is close to it is so to the surface.
        least = wp.min(size)
        scaled = wp.vec3d()
        for axis in range(3):
            if size[axis] > least:
                result[axis] = point[axis]
                scaled[axis] = point[axis] * size[axis] / (size[axis] * size[axis] - least * least)
        result = result / wp.max(wp.length(scaled), wp.float64(1.0))
    return result


@wp.func
def add_features(
    features: Features, pair: wp.ref[ConvexPair], owner: int, shape_type: int, size: wp.vec3d, point: wp.vec3d
) -> Features:
    """Return `features` with those of a core that a point faces.

    Args:
        features: Those of the other core.
        pair: The shapes.
        owner: The shape, 0 or 1.
        shape_type: Its type.
        size: Its sizes [m].
        point: Point outside, frame of the shape [m].
    """
    zero = wp.float64(0.0)
    half = size
    if shape_type != GeoType.BOX:
        # All along the axis, if anything. What is across it follows the direction.
        half = wp.vec3d(zero, zero, size[1])
        if shape_type == GeoType.ELLIPSOID or shape_type == GeoType.SPHERE:
            half[2] = zero
    start = half
    for axis in range(3):
        if half[axis] > zero:
            is_between = wp.abs(point[axis]) < half[axis]
            if is_between or point[axis] < zero:
                start[axis] = -half[axis]
            if is_between:
                edge = wp.vec3d()
                edge[axis] = wp.float64(2.0) * half[axis]
                if owner == 0:
                    features.edges = add_edge(features.edges, -edge, 0)
                else:
                    features.edges = add_edge(features.edges, pair.rotation * edge, 1)
    if owner == 0:
        features.start0 = start
    else:
        features.start1 = start
    return features


@wp.func
def guess_features(pair: wp.ref[ConvexPair]) -> Features:
    """Return the features that closest points of two cores face, sought in turn on either."""
    features = Features()
    size0, size1 = to_double(pair.size0), to_double(pair.size1)
    back = wp.transpose(pair.rotation)
    local1 = wp.vec3d()
    point1 = pair.position
    point0 = wp.vec3d()
    for _round in range(int(APPROACH_ROUNDS)):
        point0 = closest_inner_point(pair.type0, size0, point1)
        local1 = closest_inner_point(pair.type1, size1, back * (point0 - pair.position))
        point1 = pair.position + pair.rotation * local1
    features = add_features(features, pair, 0, pair.type0, size0, point1)
    features = add_features(features, pair, 1, pair.type1, size1, back * (point0 - pair.position))
    features.guess = point1 - point0
    return features


@wp.func
def end_edge(features: Features, pair: wp.ref[ConvexPair], is_second: bool, is_at_end: bool) -> Features:
    """Return `features` with the begin or the end of an edge in place of the edge."""
    edge = wp.where(is_second, features.edges.second, features.edges.first)
    owner = wp.where(is_second, features.edges.owner1, features.edges.owner0)
    if not is_second:
        features.edges.first = features.edges.second
        features.edges.owner0 = features.edges.owner1
    features.edges.count -= 1
    if is_at_end:
        if owner == 0:
            features.start0 -= edge
        else:
            features.start1 += wp.transpose(pair.rotation) * edge
    return features


@wp.func
def begin_edges(
    features: Features, pair: wp.ref[ConvexPair], owner: int, shape_type: int, point: wp.vec3d
) -> Features:
    """Return `features` with the edges from the vertex of a core towards another one.

    Args:
        features: Those of both cores.
        pair: The shapes.
        owner: The core, 0 or 1.
        shape_type: Its type.
        point: Another vertex, or of a curved side any point as high as another end, frame of the shape [m].
    """
    start = wp.where(owner == 0, features.start0, features.start1)
    for axis in range(3):
        if shape_type == GeoType.BOX or (axis == 2 and shape_type != GeoType.ELLIPSOID):
            rise = point[axis] - start[axis]
            # The ends of an edge that is among the features already may be either.
            if wp.abs(rise) > wp.abs(start[axis]):
                edge = wp.vec3d()
                edge[axis] = rise
                if owner == 0:
                    features.edges = add_edge(features.edges, -edge, 0)
                else:
                    features.edges = add_edge(features.edges, pair.rotation * edge, 1)
    return features


@wp.func(inline=stage_hint())
def find_facing_points(pair: wp.ref[ConvexPair], hulls: wp.ref[HullData], size: wp.float64) -> Connection:
    """Return the shortest connection of two cores, or of a shallow overlap a translation that ends it.

    Args:
        pair: The shapes.
        hulls: Convex hulls.
        size: Size of the pair [m], for tolerances.

    Returns:
        The connection; none is found if shapes are not among those of this module, or the guess was wrong.
    """
    zero, one = wp.float64(0.0), wp.float64(1.0)
    connection = Connection()
    if not (is_curved(pair.type0) or is_curved(pair.type1)):
        return connection
    if not (has_simple_features(pair.type0) and has_simple_features(pair.type1)):
        return connection
    features = guess_features(pair)
    guess = features.guess
    for _trial in range(int(TRIAL_LIMIT)):
        connection.is_found = False
        if features.edges.count > 2:
            return connection
        connection = connect_features(pair, hulls, guess, features.edges, features.start0, features.start1)
        if not connection.is_found:
            return connection
        guess = connection.normal
        shares = connection.shares
        if features.edges.count > 0 and (shares[0] < zero or shares[0] > one):
            features = end_edge(features, pair, False, shares[0] > one)
        elif features.edges.count > 1 and (shares[1] < zero or shares[1] > one):
            features = end_edge(features, pair, True, shares[1] > one)
        else:
            n = connection.normal
            point0, point1 = support_first(pair, hulls, n), support_second(pair, hulls, -n)
            height = wp.dot(n, point1 - point0)
            tolerance = wp.where(connection.distance > zero, DISTANCE_TOLERANCE, DEPTH_TOLERANCE)
            if connection.distance - height <= tolerance * size:
                connection = move_along_edges(connection, features.edges)
                # Where a curvature has no bounds, as end-on at a rim, turns are small but off all the same.
                off = connection.point1 - connection.point0 - connection.distance * n
                is_shallow = -connection.distance <= REFINEMENT_TOLERANCE * size
                connection.is_found = is_shallow and wp.length(off) <= OFF_LINE * size
                return connection
            # A vertex that is farther: the foot may be on the edge that leads there.
            features = begin_edges(features, pair, 0, pair.type0, point0)
            local = wp.transpose(pair.rotation) * (point1 - pair.position)
            features = begin_edges(features, pair, 1, pair.type1, local)
    connection.is_found = False
    return connection
