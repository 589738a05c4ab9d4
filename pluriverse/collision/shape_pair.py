"""The candidate pairs of a world: which are near, and where their shapes are relative to each other."""

from typing import Any

import warp as wp

from pluriverse.collision.contact_output import ContactOutput, write_counts
from pluriverse.collision.hull import HullData
from pluriverse.collision.pair_table import COLLIDER_COUNT, WITH_PLANE, PairTable
from pluriverse.collision.shape_state import ShapeModel, ShapePlace, ShapeState, bounds_vector
from pluriverse.math.bit_sets import next_set_bit

# Least share of the distance of two points that their spins leave to be closed by their speeds: ten times
# the threshold is more than any gap. (A spin that turns a body by a radian in a step is not resolved in any
# case.)
LEAST_SHARE = wp.constant(0.1)
# By how much a distance or a place from boxes may be off, relative to the lengths in it: a hundred roundings
# of float32.
BOX_ROUNDING = wp.constant(1.0e-5)
# Share by which a bound is widened that must hold in spite of rounding.
BOUND_ROUNDING = wp.constant(1.0e-3)


@wp.struct
class ShapePair:
    """Two near shapes and their relative pose."""

    world: int
    """World of the pair."""
    index: int
    """Number of the pair among the candidates of its world."""
    shape0: int
    """Flat index of the first shape."""
    shape1: int
    """Flat index of the second shape."""
    size0: wp.vec3
    """Sizes of the first shape [m]."""
    size1: wp.vec3
    """Sizes of the second shape [m]."""
    rotation0: wp.mat33
    """World from first shape axes."""
    rotation: wp.mat33
    """First from second shape axes."""
    position: wp.vec3
    """Origin of the second shape in the frame of the first [m]."""
    extent: float
    """How large the smaller of the two is, for tolerances [m]."""
    threshold: float
    """Largest distance [m] at which the pair has a contact: both margins, and both gaps or what both shapes
    may move in a step, if that is less."""


@wp.func
def flat_shape(local_shape: int, first_shape: int) -> int:
    """Return the flat index of a shape of a pair: world-local index, or -1 - flat index of a global shape."""
    shape = first_shape + local_shape
    if local_shape < 0:
        shape = -1 - local_shape
    return shape


@wp.func
def bounds_overlap(a: bounds_vector, b: bounds_vector) -> bool:
    """Return whether two boxes overlap. Negative extents and NaN never do."""
    return (
        wp.abs(a[0] - b[0]) <= a[3] + b[3]
        and wp.abs(a[1] - b[1]) <= a[4] + b[4]
        and wp.abs(a[2] - b[2]) <= a[5] + b[5]
    )


@wp.func
def plane_normal(state: wp.ref[ShapeState], plane: int) -> wp.vec3:
    """Return the unit normal of a plane, world axes."""
    rotation = state.place[plane].rotation
    return wp.vec3(rotation[0, 2], rotation[1, 2], rotation[2, 2])


@wp.func
def plane_height_bound(state: wp.ref[ShapeState], plane: int, shape: int) -> float:
    """Return a lower bound of the height of a shape over a plane [m]."""
    up = plane_normal(state, plane)
    bounds = state.bounds[shape]
    center = wp.vec3(bounds[0], bounds[1], bounds[2]) - (
        state.place[plane].origin + state.place[plane].offset
    )
    # The bounds hold what the shape may move by itself.
    moved = state.place[shape].threshold
    extent = wp.abs(up[0]) * (bounds[3] - moved) + wp.abs(up[1]) * (bounds[4] - moved)
    return wp.dot(up, center) - extent - wp.abs(up[2]) * (bounds[5] - moved)


@wp.func
def middles_apart(place0: wp.ref[ShapePlace], place1: wp.ref[ShapePlace]) -> wp.vec3:
    """Return the middle of the second of two shapes from that of the first [m], world axes."""
    return (place1.origin - place0.origin) + (place1.middle - place0.middle)


@wp.func
def distance_bound(state: wp.ref[ShapeState], shape0: int, shape1: int) -> float:
    """Return a lower bound of the distance of two shapes that have bounds [m]."""
    a, b = state.bounds[shape0], state.bounds[shape1]
    # The bounds hold what each may move by itself.
    moved = state.place[shape0].threshold + state.place[shape1].threshold
    x = wp.max(wp.abs(a[0] - b[0]) - (a[3] + b[3] - moved), 0.0)
    y = wp.max(wp.abs(a[1] - b[1]) - (a[4] + b[4] - moved), 0.0)
    z = wp.max(wp.abs(a[2] - b[2]) - (a[5] + b[5] - moved), 0.0)
    return wp.sqrt(x * x + y * y + z * z)


@wp.func
def relative_speed(
    apart: wp.vec3,
    velocity0: wp.vec3,
    spin0: wp.vec3,
    radius0: float,
    velocity1: wp.vec3,
    spin1: wp.vec3,
    radius1: float,
) -> float:
    """Return a bound on the relative speed of points of two shapes that are next to each other [m/s].

    Args:
        apart: Middle of the second shape from that of the first [m].
        velocity0: Velocity of the first shape at its middle [m/s].
        spin0: Its angular velocity [rad/s].
        radius0: Radius of a sphere about its middle that holds it [m].
        velocity1: Velocity of the second shape at its middle [m/s].
        spin1: Its angular velocity [rad/s].
        radius1: Radius of a sphere about its middle that holds it [m].
    """
    velocity = velocity1 - velocity0
    spin = wp.length(spin1 - spin0)
    # As bodies that move together: by the point of shape 1, which is in it, and by that of shape 0.
    by1 = wp.length(velocity - wp.cross(spin0, apart)) + spin * radius1
    by0 = wp.length(velocity - wp.cross(spin1, apart)) + spin * radius0
    # As bodies that have nothing to do with each other.
    by_themselves = wp.length(velocity) + wp.length(spin0) * radius0 + wp.length(spin1) * radius1
    return wp.min(wp.min(by0, by1), by_themselves)


@wp.func
def pair_speed(place0: wp.ref[ShapePlace], place1: wp.ref[ShapePlace]) -> float:
    """Return `relative_speed` of two shapes as they move at the start of the step [m/s]."""
    return relative_speed(
        middles_apart(place0, place1),
        place0.velocity,
        place0.spin,
        place0.radius,
        place1.velocity,
        place1.spin,
        place1.radius,
    )


@wp.func
def threshold_at_speed(lead: float, speed: float, spin: float) -> float:
    """Return the distance up to which contacts may act at a speed and the larger of both spins [m]."""
    # The points of a contact are next to each other but for its distance d, by which a spin adds spin d.
    return lead * speed / wp.max(1.0 - lead * spin, LEAST_SHARE)


@wp.func
def threshold_within_gaps(place0: wp.ref[ShapePlace], place1: wp.ref[ShapePlace]) -> float:
    """Return the distance beyond which a pair has no contacts, however fast it is [m]."""
    return place0.gap_threshold + place1.gap_threshold


@wp.func
def pair_threshold(place0: wp.ref[ShapePlace], place1: wp.ref[ShapePlace]) -> float:
    """Return the largest distance [m] at which a pair has contacts; see `ShapePair.threshold`."""
    within_gaps = threshold_within_gaps(place0, place1)
    lead = wp.max(place0.lead, place1.lead)
    if lead <= 0.0:
        return wp.min(place0.threshold + place1.threshold, within_gaps)
    # Contacts may act up to here if the relative velocity changes by as much as is assumed.
    spin = wp.max(wp.length(place0.spin), wp.length(place1.spin))
    speed = pair_speed(place0, place1) + (place0.change + place1.change)
    acting = threshold_at_speed(lead, speed, spin)
    return wp.min(place0.margin + place1.margin + acting, within_gaps)


@wp.func
def sum_of_magnitudes(v: wp.vec3) -> float:
    """Return an upper bound of the length of a vector."""
    return wp.abs(v[0]) + wp.abs(v[1]) + wp.abs(v[2])


@wp.func
def region_speed(place: wp.ref[ShapePlace], other: wp.ref[ShapePlace], distance: float) -> float:
    """Return a bound on the relative speed of points of two shapes that are within `distance` [m/s].

    The point of a shape is in the part of its box that is near the box of the other. Links are next to each
    other at a joint about which they turn: they are slow there, however fast their far ends are.
    """
    away = middles_apart(place, other)
    inverse = wp.transpose(place.rotation)
    between = inverse * other.rotation
    along = inverse * away
    center = wp.vec3(0.0, 0.0, 0.0)
    extent = wp.vec3(0.0, 0.0, 0.0)
    for axis in range(3):
        reach = distance
        for other_axis in range(3):
            reach += wp.abs(between[axis, other_axis]) * wp.abs(other.half[other_axis])
        own = wp.abs(place.half[axis])
        low, high = wp.max(-own, along[axis] - reach), wp.min(own, along[axis] + reach)
        center[axis] = 0.5 * (low + high)
        extent[axis] = 0.5 * wp.max(high - low, 0.0)
    arm = place.rotation * center
    velocity = place.velocity + wp.cross(place.spin, arm)
    velocity -= other.velocity + wp.cross(other.spin, arm - away)
    lengths = sum_of_magnitudes(away) + place.radius + other.radius
    beyond = wp.max(place.spin_length, other.spin_length) + BOX_ROUNDING * lengths
    return wp.length(velocity) + wp.length(place.spin - other.spin) * (wp.length(extent) + beyond)


@wp.func
def near_threshold(place0: wp.ref[ShapePlace], place1: wp.ref[ShapePlace]) -> float:
    """Return `pair_threshold` of shapes with boxes, less where contacts move slower than the shapes [m]."""
    threshold = pair_threshold(place0, place1)
    lead = wp.max(place0.lead, place1.lead)
    change = place0.change + place1.change
    # Where shapes hardly turn, there is nothing to gain.
    turning = wp.length(place1.spin - place0.spin) * wp.min(place0.radius, place1.radius)
    if lead <= 0.0 or turning <= change:
        return threshold
    spin = wp.max(wp.length(place0.spin), wp.length(place1.spin))
    # On the smaller shape less of it is open where that is.
    speed = float(0.0)
    if place1.radius <= place0.radius:
        speed = region_speed(place1, place0, threshold)
    else:
        speed = region_speed(place0, place1, threshold)
    acting = threshold_at_speed(lead, speed + change, spin)
    return wp.min(threshold, place0.margin + place1.margin + acting)


@wp.func
def make_shape_pair(
    world: int,
    index: int,
    shape0: int,
    shape1: int,
    place0: wp.ref[ShapePlace],
    place1: wp.ref[ShapePlace],
    threshold: float,
) -> ShapePair:
    """Return the pair with its relative pose."""
    pair = ShapePair()
    pair.world = world
    pair.index = index
    pair.shape0 = shape0
    pair.shape1 = shape1
    pair.size0 = place0.size
    pair.size1 = place1.size
    inverse0 = wp.transpose(place0.rotation)
    pair.rotation0 = place0.rotation
    pair.rotation = inverse0 * place1.rotation
    pair.position = inverse0 * ((place1.origin - place0.origin) + (place1.offset - place0.offset))
    pair.extent = wp.min(place0.extent, place1.extent)
    pair.threshold = threshold
    return pair


@wp.func
def is_larger(state: wp.ref[ShapeState], shape0: int, shape1: int) -> bool:
    """Return whether the second of two shapes is the larger one.

    Where a collider takes either order the larger shape comes first: contact points are computed relative to
    the second, so a small part on a large one keeps its precision. Sizes may differ between worlds of one
    kind, so this is decided in each world.
    """
    return state.place[shape1].extent > state.place[shape0].extent


def make_pair_kernel(
    name: str,
    collide: Any,
    *,
    data_type: Any = HullData,
    is_symmetric: bool = False,
) -> Any:
    """Return the kernel `pluriverse.collision.<name>` that gives each near pair of one collider to `collide`.

    Args:
        name: Name of the Warp module.
        collide: Function `(output, model, data, pair, found) -> found` that adds the contacts of a pair.
        data_type: Struct of what `collide` needs besides.
        is_symmetric: Whether `collide` takes the two shapes in either order, unless the first is a plane.
    """

    @wp.func
    def collide_world(
        world: int,
        table: wp.ref[PairTable],
        collider: int,
        model: wp.ref[ShapeModel],
        data: wp.ref[data_type],
        state: wp.ref[ShapeState],
        output: wp.ref[ContactOutput],
    ):
        """Add the contacts of all near pairs of one world."""
        template = table.world_template[world]
        first_pair = table.pair_start[template * COLLIDER_COUNT]
        row = template * COLLIDER_COUNT + collider
        end = table.pair_start[row + 1] - first_pair
        first_word = table.near_start[world]
        index = next_set_bit(table.near, first_word, table.pair_start[row] - first_pair, end)
        if index >= end:
            return
        is_plane = ((WITH_PLANE >> collider) & 1) != 0
        first_shape = table.world_shape[world]
        found = output.found[world]
        while index < end:
            shape0 = flat_shape(table.pair_shape0[first_pair + index], first_shape)
            shape1 = flat_shape(table.pair_shape1[first_pair + index], first_shape)
            if wp.static(is_symmetric):
                if not is_plane and is_larger(state, shape0, shape1):
                    shape0, shape1 = shape1, shape0
            place0, place1 = state.place[shape0], state.place[shape1]
            threshold = float(0.0)
            if is_plane:
                threshold = pair_threshold(place0, place1)
            else:
                threshold = near_threshold(place0, place1)
            # Bounds overlap at the speeds of each shape by itself; those of the pair may tell more.
            if is_plane or distance_bound(state, shape0, shape1) <= threshold:
                pair = make_shape_pair(world, index, shape0, shape1, place0, place1, threshold)
                found = collide(output, model, data, pair, found)
            index = next_set_bit(table.near, first_word, index + 1, end)
        write_counts(output, world, found)

    @wp.kernel(enable_backward=False, module=f"pluriverse.collision.{name}")
    def collide_pairs(
        worlds: wp.array[int],  # [slot] the worlds of this launch
        stride: int,  # number of threads, see `world_thread_count`
        table: PairTable,
        collider: int,
        model: ShapeModel,
        data: data_type,
        state: ShapeState,
        # out
        output: ContactOutput,
    ):
        thread, _ = wp.tid()
        for slot in range(thread, worlds.shape[0], stride):
            if worlds[slot] >= 0:
                collide_world(worlds[slot], table, collider, model, data, state, output)

    return collide_pairs
