"""The candidate pairs of a world: which are near, and where their shapes are relative to each other."""

from collections.abc import Callable
from typing import Any

import warp as wp

from pluriverse.collision.contact_output import ContactOutput, write_counts
from pluriverse.collision.pair_table import COLLIDER_COUNT, PairTable
from pluriverse.collision.shape_state import ShapeModel, ShapeState, bounds_vector

# Least share of the distance of two points that their spins leave to be closed by their speeds: ten times
# the reach is more than any gap. (A spin that turns a body by a radian in a step is not resolved in any
# case.)
LEAST_SHARE = wp.constant(0.1)


@wp.struct
class ShapePair:
    """Two near shapes and their relative pose."""

    world: int
    """World of the pair."""
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
    reach: float
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
def is_near_plane(state: ShapeState, plane: int, shape: int) -> bool:
    """Return whether a shape reaches into the half space below a plane, as far as its bounds tell."""
    rotation = state.rotation[plane]
    up = wp.vec3(rotation[0, 2], rotation[1, 2], rotation[2, 2])
    bounds = state.bounds[shape]
    center = wp.vec3(bounds[0], bounds[1], bounds[2]) - (state.origin[plane] + state.offset[plane])
    extent = wp.abs(up[0]) * bounds[3] + wp.abs(up[1]) * bounds[4] + wp.abs(up[2]) * bounds[5]
    # The bounds of the shape contain its own margin and gap, or what it may move.
    return wp.dot(up, center) - extent <= state.reach[plane]


@wp.func
def pair_speed(state: ShapeState, shape0: int, shape1: int) -> float:
    """Return a bound on the relative speed of points of two shapes that are next to each other [m/s]."""
    spin0, spin1 = state.spin[shape0], state.spin[shape1]
    velocity = state.velocity[shape1] - state.velocity[shape0]
    radius0, radius1 = state.radius[shape0], state.radius[shape1]
    apart = (state.origin[shape1] - state.origin[shape0]) + (state.middle[shape1] - state.middle[shape0])
    spin = wp.length(spin1 - spin0)
    # As bodies that move together: by the point of shape 1, which is in it, and by that of shape 0.
    by1 = wp.length(velocity - wp.cross(spin0, apart)) + spin * radius1
    by0 = wp.length(velocity - wp.cross(spin1, apart)) + spin * radius0
    # As bodies that have nothing to do with each other.
    by_themselves = wp.length(velocity) + wp.length(spin0) * radius0 + wp.length(spin1) * radius1
    return wp.min(wp.min(by0, by1), by_themselves)


@wp.func
def reach_at_change(state: ShapeState, shape0: int, shape1: int, change: float) -> float:
    """Return the distance up to which contacts may act if the relative velocity changes by `change` [m]."""
    lead = wp.max(state.lead[shape0], state.lead[shape1])
    # The points of a contact are next to each other but for its distance d, by which a spin adds spin d.
    spin = wp.max(wp.length(state.spin[shape0]), wp.length(state.spin[shape1]))
    share = wp.max(1.0 - lead * spin, LEAST_SHARE)
    return lead * (pair_speed(state, shape0, shape1) + change) / share


@wp.func
def pair_reach(state: ShapeState, shape0: int, shape1: int) -> float:
    """Return the largest distance [m] at which a pair has contacts; see `ShapePair.reach`."""
    within_gaps = state.gap_reach[shape0] + state.gap_reach[shape1]
    if wp.max(state.lead[shape0], state.lead[shape1]) <= 0.0:
        return wp.min(state.reach[shape0] + state.reach[shape1], within_gaps)
    acting = reach_at_change(state, shape0, shape1, state.change[shape0] + state.change[shape1])
    return wp.min(state.margin[shape0] + state.margin[shape1] + acting, within_gaps)


@wp.func
def is_near(state: ShapeState, shape0: int, shape1: int) -> bool:
    """Return whether the bounds of two shapes are within the reach of their pair."""
    a, b = state.bounds[shape0], state.bounds[shape1]
    if not bounds_overlap(a, b):
        return False
    if wp.max(state.lead[shape0], state.lead[shape1]) <= 0.0:
        return True
    # The bounds hold what each may move by itself.
    less = state.reach[shape0] + state.reach[shape1] - pair_reach(state, shape0, shape1)
    return (
        wp.abs(a[0] - b[0]) <= a[3] + b[3] - less
        and wp.abs(a[1] - b[1]) <= a[4] + b[4] - less
        and wp.abs(a[2] - b[2]) <= a[5] + b[5] - less
    )


@wp.func
def make_shape_pair(state: ShapeState, world: int, shape0: int, shape1: int) -> ShapePair:
    """Return the pair with its relative pose."""
    pair = ShapePair()
    pair.world = world
    pair.shape0 = shape0
    pair.shape1 = shape1
    pair.size0 = state.size[shape0]
    pair.size1 = state.size[shape1]
    rotation0 = state.rotation[shape0]
    inverse0 = wp.transpose(rotation0)
    pair.rotation0 = rotation0
    pair.rotation = inverse0 * state.rotation[shape1]
    pair.position = inverse0 * (
        (state.origin[shape1] - state.origin[shape0]) + (state.offset[shape1] - state.offset[shape0])
    )
    pair.extent = wp.min(state.extent[shape0], state.extent[shape1])
    pair.reach = pair_reach(state, shape0, shape1)
    return pair


@wp.func
def is_larger(state: ShapeState, shape0: int, shape1: int) -> bool:
    """Return whether the second of two shapes is the larger one.

    Where a collider takes either order the larger shape comes first: contact points are computed relative to
    the second, so a small part on a large one keeps its precision. Sizes may differ between worlds of one
    kind, so this is decided in each world.
    """
    return state.extent[shape1] > state.extent[shape0]


def make_pair_kernel(name: str, collide: Any, *, is_symmetric: bool = False) -> Any:
    """Return the kernel `pluriverse.collision.<name>` that gives each near pair of one collider to `collide`.

    Args:
        name: Name of the Warp module.
        collide: Function `(output, model, pair, found) -> found` that adds the contacts of a pair.
        is_symmetric: Whether `collide` takes the two shapes in either order.
    """

    @wp.kernel(enable_backward=False, module=f"pluriverse.collision.{name}")
    def collide_pairs(
        worlds: wp.array[int],  # [slot] the worlds of this launch
        table: PairTable,
        collider: int,
        model: ShapeModel,
        state: ShapeState,
        # out
        output: ContactOutput,
    ):
        world = worlds[wp.tid()]
        if world < 0:
            return
        row = table.world_template[world] * COLLIDER_COUNT + collider
        first_shape = table.world_shape[world]
        found = output.found[world]
        for index in range(table.pair_start[row], table.pair_start[row + 1]):
            shape0 = flat_shape(table.pair_shape0[index], first_shape)
            shape1 = flat_shape(table.pair_shape1[index], first_shape)
            if is_near(state, shape0, shape1):
                if wp.static(is_symmetric):
                    if is_larger(state, shape0, shape1):
                        shape0, shape1 = shape1, shape0
                found = collide(output, model, make_shape_pair(state, world, shape0, shape1), found)
        write_counts(output, world, found)

    return collide_pairs


ColliderLaunch = Callable[[wp.array, PairTable, ShapeModel, ShapeState, ContactOutput, Any], None]
