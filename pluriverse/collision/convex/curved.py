"""Newton's method for the shortest connection or minimum translation of curved shapes, from a simplex.

Simplices of support points (`gjk`, `epa`) come closer to a curved side by a constant factor a round: the
distance of an ellipsoid from an edge takes 35 rounds. They soon tell, however, which vertices, edges and
faces of flat shapes carry the connection, and on these it is smooth. With the difference of both support
points w(n) = s1(-n) - s0(n) and the sum H of both curvatures, the largest of all n . w(n) over unit vectors n
is the distance, negative if the shapes overlap. It is found by

    (H + d) delta = w - d n ,    d = n . w ,

where delta turns n, across the edges that carry it. H is the second derivative of the support functions: its
eigenvalues are the radii of curvature, and n is its null direction. The points found are on both shapes.
Whether no others are closer, or no other translation is shorter, is for the search of simplices to tell.
"""

import warp as wp

from pluriverse.collision.convex.support import ConvexPair, support_point
from pluriverse.collision.hull import HullData
from pluriverse.math.stage_inlining import stage_hint
from pluriverse.types import GeoType

# From half a dozen rounds of simplices, Newton's method takes three or four.
NEWTON_ROUND_LIMIT = 8
# Squared turn after which the search ends. The next turn would be about this, too small for single precision
# to show; the distance is off by its square, relative to the shapes.
TURN_END = wp.constant(wp.float64(1.0e-12))
# Squared turn beyond which the guess was none.
TURN_LIMIT = wp.constant(wp.float64(0.25))
# Squared sine of the angle between two edges that are one, or squared length of one that has none.
PARALLEL = wp.constant(wp.float64(1.0e-16))


@wp.struct
class Connection:
    """Points of two cores at which their surfaces face each other, in the frame of their pair."""

    is_found: bool
    """Whether there are some; else nothing below is set."""
    normal: wp.vec3d
    """Unit normal from the first to the second core."""
    distance: wp.float64
    """normal . (point1 - point0) [m], negative if the cores overlap."""
    point0: wp.vec3d
    """Point of the first core [m]."""
    point1: wp.vec3d
    """Point of the second core [m]."""
    shares: wp.vec2d
    """Where on the edges that carry it they are, from 0 at their begin to 1 at their end."""


@wp.struct
class Edges:
    """Edges that carry a connection, axes of the first shape [m]."""

    count: int
    """How many there are; 3 for too many."""
    first: wp.vec3d
    """An edge: how far the second shape moves from the first along it."""
    second: wp.vec3d
    """Another one."""
    owner0: int
    """Shape of the first edge, 0 or 1."""
    owner1: int
    """Shape of the second edge."""


@wp.func
def is_curved(shape_type: int) -> bool:
    """Return whether the core of a shape has a curved side that this module knows."""
    result = shape_type == GeoType.ELLIPSOID
    return result or shape_type == GeoType.CYLINDER


@wp.func
def support_curvature(shape_type: int, size: wp.vec3, n: wp.vec3d) -> wp.mat33d:
    """Return the derivative of the support point of a core by its direction, a unit vector [m].

    Args:
        shape_type: Type of the shape.
        size: Sizes [m].
        n: Direction, frame of the shape.
    """
    zero, one = wp.float64(0.0), wp.float64(1.0)
    result = wp.mat33d()
    if shape_type == GeoType.ELLIPSOID:
        x, y, z = wp.float64(size[0]), wp.float64(size[1]), wp.float64(size[2])
        scaled = wp.vec3d(n[0] * x, n[1] * y, n[2] * z)
        length = wp.length(scaled)
        point = wp.vec3d(scaled[0] * x, scaled[1] * y, scaled[2] * z) / length
        square = wp.mat33d(x * x, zero, zero, zero, y * y, zero, zero, zero, z * z)
        result = (one / length) * (square - wp.outer(point, point))
    elif shape_type == GeoType.CYLINDER:
        across = wp.sqrt(n[0] * n[0] + n[1] * n[1])
        if across > zero:
            along = wp.vec3d(-n[1] / across, n[0] / across, zero)
            result = (wp.float64(size[0]) / across) * wp.outer(along, along)
    return result


@wp.func
def curvature_along(shape_type: int, size: wp.vec3, n: wp.vec3d, across: wp.vec3d) -> wp.float64:
    """Return the component of `support_curvature` along a vector, without the matrix [m].

    Args:
        shape_type: Type of the shape.
        size: Sizes [m].
        n: Direction, frame of the shape, a unit vector.
        across: Unit vector across it, frame of the shape.
    """
    zero = wp.float64(0.0)
    result = zero
    if shape_type == GeoType.ELLIPSOID:
        semi_axes = wp.vec3d(wp.float64(size[0]), wp.float64(size[1]), wp.float64(size[2]))
        scaled = wp.cw_mul(n, semi_axes)
        turned = wp.cw_mul(across, semi_axes)
        squared = wp.dot(scaled, scaled)
        along = wp.dot(scaled, turned)
        result = (wp.dot(turned, turned) - along * along / squared) / wp.sqrt(squared)
    elif shape_type == GeoType.CYLINDER:
        squared = n[0] * n[0] + n[1] * n[1]
        if squared > zero:
            along = n[0] * across[1] - n[1] * across[0]
            result = wp.float64(size[0]) * along * along / (squared * wp.sqrt(squared))
    return result


@wp.func
def follow_point(
    shape_type: int, size: wp.vec3, hulls: wp.ref[HullData], hull: int, point: wp.vec3d, n: wp.vec3d
) -> wp.vec3d:
    """Return the farthest point of a core along a unit vector of those that `point` is moved to smoothly [m].

    That is the point itself for a vertex, and of a cylinder one at the same height. Frame of the shape.
    """
    result = point
    if shape_type == GeoType.ELLIPSOID:
        result = support_point(shape_type, size, hulls, hull, n)
    elif shape_type == GeoType.CYLINDER:
        result = support_point(shape_type, size, hulls, hull, n)
        result[2] = point[2]
    return result


@wp.func
def add_edge(edges: Edges, edge: wp.vec3d, owner: int) -> Edges:
    """Return `edges` with another one, if it is none of them."""
    squared = wp.dot(edge, edge)
    if squared <= PARALLEL * wp.dot(edges.first, edges.first) or squared == wp.float64(0.0):
        return edges
    if edges.count == 0:
        edges.count = 1
        edges.first = edge
        edges.owner0 = owner
    else:
        normal = wp.cross(edge, edges.first)
        if wp.dot(normal, normal) > PARALLEL * squared * wp.dot(edges.first, edges.first):
            if edges.count == 1:
                edges.count = 2
                edges.second = edge
                edges.owner1 = owner
            else:
                other = wp.cross(edge, edges.second)
                if wp.dot(other, other) > PARALLEL * squared * wp.dot(edges.second, edges.second):
                    edges.count = 3
    return edges


@wp.func
def find_edges(pair: wp.ref[ConvexPair], a: wp.array[wp.vec3d], b: wp.array[wp.vec3d], count: int) -> Edges:
    """Return the edges between the points of a simplex: of flat shapes, and along the side of cylinders."""
    edges = Edges()
    zero = wp.float64(0.0)
    axis = wp.vec3d(pair.rotation[0, 2], pair.rotation[1, 2], pair.rotation[2, 2])
    for index in range(1, count):
        if pair.type0 == GeoType.CYLINDER:
            edges = add_edge(edges, wp.vec3d(zero, zero, a[0][2] - a[index][2]), 0)
        elif pair.type0 != GeoType.ELLIPSOID:
            edges = add_edge(edges, a[0] - a[index], 0)
        if pair.type1 == GeoType.CYLINDER:
            # Heights are one or the other to the bit; in the axes of the first shape they are rounded.
            height = wp.dot(axis, b[index] - b[0])
            if wp.abs(height) > wp.float64(pair.size1[1]):
                edges = add_edge(edges, height * axis, 1)
        elif pair.type1 != GeoType.ELLIPSOID:
            edges = add_edge(edges, b[index] - b[0], 1)
    return edges


@wp.func
def find_shares(edges: wp.ref[Edges], rest: wp.vec3d) -> wp.vec2d:
    """Return which shares of the edges add up to a vector."""
    zero = wp.float64(0.0)
    shares = wp.vec2d(zero, zero)
    ff = wp.dot(edges.first, edges.first)
    if edges.count == 1:
        shares[0] = wp.dot(rest, edges.first) / ff
    elif edges.count == 2:
        fs = wp.dot(edges.first, edges.second)
        ss = wp.dot(edges.second, edges.second)
        rf, rs = wp.dot(rest, edges.first), wp.dot(rest, edges.second)
        determinant = ff * ss - fs * fs
        shares[0] = (rf * ss - rs * fs) / determinant
        shares[1] = (rs * ff - rf * fs) / determinant
    return shares


@wp.func
def are_on_edges(edges: wp.ref[Edges], shares: wp.vec2d) -> bool:
    """Return whether shares of edges lead to a point of the shapes: of each edge, or of their triangle."""
    zero, one = wp.float64(0.0), wp.float64(1.0)
    result = shares[0] >= zero and shares[0] <= one and shares[1] >= zero and shares[1] <= one
    if edges.count == 2 and edges.owner0 == edges.owner1:
        result = result and shares[0] + shares[1] <= one
    return result


@wp.func(inline=stage_hint())
def connect_features(
    pair: wp.ref[ConvexPair],
    hulls: wp.ref[HullData],
    guess: wp.vec3d,
    edges: wp.ref[Edges],
    start0: wp.vec3d,
    start1: wp.vec3d,
) -> Connection:
    """Return where features of two cores face each other, by Newton's method.

    Points may lie on the lines of edges beyond their ends, see `are_on_edges`, and it is not known whether
    others are closer.

    Args:
        pair: The shapes.
        hulls: Convex hulls.
        guess: Direction from the first to the second core, of any length.
        edges: Edges of both cores, at most two.
        start0: Point of the first core at which its edges begin, frame of that shape [m].
        start1: Point of the second core at which its edges begin, frame of that shape [m].
    """
    connection = Connection()
    back = wp.transpose(pair.rotation)
    n = guess
    if edges.count == 1:
        n -= (wp.dot(n, edges.first) / wp.dot(edges.first, edges.first)) * edges.first
    elif edges.count == 2:
        n = wp.cross(edges.first, edges.second)
        if wp.dot(n, guess) < wp.float64(0.0):
            n = -n
    n = wp.normalize(n)
    point0, point1, w = wp.vec3d(), wp.vec3d(), wp.vec3d()
    distance = wp.float64(0.0)
    is_done = bool(edges.count == 2)
    for _round in range(NEWTON_ROUND_LIMIT):
        local = -(back * n)
        point0 = follow_point(pair.type0, pair.size0, hulls, pair.hull0, start0, n)
        point1 = follow_point(pair.type1, pair.size1, hulls, pair.hull1, start1, local)
        point1 = pair.position + pair.rotation * point1
        w = point1 - point0
        distance = wp.dot(n, w)
        if is_done:
            break
        off = w - distance * n
        turn = wp.vec3d()
        if edges.count == 1:
            across = wp.normalize(wp.cross(n, edges.first))
            stiffness = curvature_along(pair.type0, pair.size0, n, across) + distance
            if is_curved(pair.type1):
                stiffness += curvature_along(pair.type1, pair.size1, local, back * across)
            if not stiffness > wp.float64(0.0):
                return connection  # an edge inside the other shape, which separates nothing
            turn = (wp.dot(off, across) / stiffness) * across
        else:
            curvature = support_curvature(pair.type0, pair.size0, n)
            if is_curved(pair.type1):
                curvature += pair.rotation * support_curvature(pair.type1, pair.size1, local) * back
            # Along the normal there is nothing to turn; any stiffness there makes the matrix regular.
            curvature += wp.trace(curvature) * wp.outer(n, n)
            for axis in range(3):
                curvature[axis, axis] = curvature[axis, axis] + distance
            turn = wp.inverse(curvature) * off
        squared = wp.dot(turn, turn)
        if not squared < TURN_LIMIT:
            return connection
        n = wp.normalize(n + turn)
        is_done = squared < TURN_END
    connection.is_found = is_done
    connection.normal = n
    connection.distance = distance
    connection.point0 = point0
    connection.point1 = point1
    connection.shares = find_shares(edges, distance * n - w)
    return connection


@wp.func
def move_along_edges(connection: Connection, edges: wp.ref[Edges]) -> Connection:
    """Return a connection with its points where they face each other, and not where their edges begin."""
    if edges.count >= 1:
        step = connection.shares[0] * edges.first
        if edges.owner0 == 0:
            connection.point0 -= step
        else:
            connection.point1 += step
    if edges.count == 2:
        step = connection.shares[1] * edges.second
        if edges.owner1 == 0:
            connection.point0 -= step
        else:
            connection.point1 += step
    return connection


@wp.func(inline=stage_hint())
def refine_connection(
    pair: wp.ref[ConvexPair],
    hulls: wp.ref[HullData],
    guess: wp.vec3d,
    is_overlap: bool,
    a: wp.array[wp.vec3d],
    b: wp.array[wp.vec3d],
    count: int,
) -> Connection:
    """Return the connection of the edges and curved sides that carry a guess of it.

    Args:
        pair: The shapes.
        hulls: Convex hulls.
        guess: Direction of that of a simplex, from the first to the second core, of any length.
        is_overlap: Whether it leads out of an overlap.
        a: Its points of the first core, shape [4].
        b: Its points of the second core, shape [4].
        count: How many these are.
    """
    connection = Connection()
    # The edges of a cone turn with the direction.
    if (
        pair.type0 == GeoType.CONE
        or pair.type1 == GeoType.CONE
        or not (is_curved(pair.type0) or is_curved(pair.type1))
    ):
        return connection
    edges = find_edges(pair, a, b, count)
    if edges.count > 2:
        return connection
    start1 = wp.transpose(pair.rotation) * (b[0] - pair.position)
    connection = connect_features(pair, hulls, guess, edges, a[0], start1)
    if (connection.distance < wp.float64(0.0)) != is_overlap:
        connection.is_found = False  # the guess was too far off
    if connection.is_found:
        connection.is_found = are_on_edges(edges, connection.shares)
    return move_along_edges(connection, edges)
