"""Where the shapes of a world are and how they move, as `shape_update` writes and colliders read it.

A position is kept in two parts, the origin of the body and the offset of the shape from it. The difference of
two shape positions is then formed as (origin1 - origin0) + (offset1 - offset0): the first term of two near
bodies is exact in floating point, so a world a kilometre away from its origin loses nothing beyond its stored
poses.
"""

import itertools
from typing import Any

import warp as wp

from pluriverse.scratch import zeros_on_demand
from pluriverse.types import GeoType

# Position [m] beyond which a pose counts as diverged. Products of two such lengths stay far from the float32
# limit.
POSITION_LIMIT = wp.constant(1.0e8)
# Squared norm of a quaternion below which it has no direction (a unit quaternion that drifted stays near 1).
QUATERNION_NORM_MIN = wp.constant(1.0e-4)
# Half extent [m] of the bounds of a shape that must not touch anything.
NOTHING = wp.constant(-1.0e30)
# Bounds are widened by this fraction of the position: 4 roundings of float32 (2**-24 each), the most that
# the sums behind a position can be off by.
POSITION_ROUNDING = wp.constant(2.4e-7)

# By how much velocities are assumed to change in a step at most: at rest by this acceleration [m/s²] for the
# length of the step; in motion, which may end at something, by this share of the speed more, as far as to
# the larger acceleration; and beyond it by a tenth of the speed. What exceeds it costs a second look at
# some pairs, not a second solution. Found by trial on robots that stand, walk, fall and lie. With half of the
# larger acceleration, seven of ten steps of a Go1 with random targets need that look, not four. With twice as
# much, a falling ANYmal takes a tenth longer.
ACCELERATION_AT_REST = wp.constant(20.0)
ACCELERATION_ASSUMED = wp.constant(100.0)
SPEED_SHARE_ASSUMED = wp.constant(0.5)
CHANGE_ASSUMED = wp.constant(0.1)
# Speed [m/s] so large that every contact within the gaps is wanted, and yet finite, so that 0 times it is 0.
ANY_SPEED = wp.constant(1.0e9)


class bounds_vector(wp.types.vector(length=6, dtype=wp.float32)):  # noqa: N801 (a Warp type, named like one)
    """Axis-aligned box: centre and half extents [m]."""


@wp.struct
class ShapeModel:
    """What the collision stages read of the model and of the convex hulls."""

    world_template: wp.array[int]
    """Template, shape [world]."""
    world_shape: wp.array[int]
    """First flat shape index, shape [world]."""
    collider_start: wp.array[int]
    """First entry of each template in `collider`, shape [template + 1]."""
    world_body: wp.array[int]
    """First flat body index, shape [world]."""
    collider: wp.array[int]
    """World-local shapes that have a candidate pair, shape [entry]."""
    collider_record: wp.array[wp.vec4i]
    """These with what is equal in all worlds of a template: the shape, its world-local body or -1, `GeoType`
    that collides, 1 if it is a slab (see `is_slab`), shape [entry]."""
    global_record: wp.array[wp.vec4i]
    """The same of shapes outside of all worlds, by their flat indices, shape [global shape]."""
    shape_body: wp.array[int]
    """Body, -1 for the world frame, shape [shape]."""
    shape_type: wp.array[int]
    """`GeoType` that collides: a finite plane is a box here, see `is_slab`, shape [shape]."""
    shape_geo_type: wp.array[int]
    """`GeoType` as the model has it, shape [shape]."""
    shape_transform: wp.array[wp.transform]
    """Pose in the body frame [m, xyzw], shape [shape]."""
    shape_scale: wp.array[wp.vec3]
    """Sizes as the model has them [m], meshes: factors, shape [shape]."""
    shape_margin: wp.array[float]
    """Thickness added around the shape [m], shape [shape]."""
    shape_gap: wp.array[float]
    """Distance at which contacts begin to exist [m], shape [shape]."""
    shape_enabled: wp.array[bool]
    """Whether the shape takes part, shape [shape]."""
    shape_source_index: wp.array[int]
    """Mesh, -1 for primitives, shape [shape]."""
    mesh_hull: wp.array[int]
    """Convex hull of a mesh, -1 if no shape collides as it, shape [mesh]."""
    hull_lower: wp.array[wp.vec3]
    """Lower corner of the unscaled hull [m], shape [hull]."""
    hull_upper: wp.array[wp.vec3]
    """Upper corner of the unscaled hull [m], shape [hull]."""
    mesh_types: wp.array[int]
    """What a mesh may collide as: the sum of 2**`GeoType` over these, shape [mesh]."""
    mesh_lower: wp.array[wp.vec3]
    """Lower corner of the unscaled mesh or height field [m], shape [mesh]."""
    mesh_upper: wp.array[wp.vec3]
    """Upper corner of the unscaled mesh or height field [m], shape [mesh]."""


@wp.struct
class ShapePlace:
    """Where a shape is and how it moves.

    Kernels load it four numbers at a time. What tells whether two shapes are near each other comes first.
    """

    rotation: wp.mat33
    """World from shape axes."""
    origin: wp.vec3
    """World position of the body origin [m]."""
    middle: wp.vec3
    """Centre of the shape minus body origin [m], world axes."""
    radius: float
    """Radius of a sphere about `middle` that holds the shape, and what its spin counts for besides [m]."""
    half: wp.vec3
    """Half extents of a box about `middle` that holds the shape [m], shape axes. The second is negative if an
    elliptic cylinder of these extents, with its axis along z, holds the shape too."""
    lead: float
    """sqrt(1 + (c mu)^2) T of `contact_horizon`: at a speed contacts act up to this times that [s]."""
    velocity: wp.vec3
    """Velocity of the body at `middle` [m/s]."""
    change: float
    """By how much the velocity of no point of the shape is assumed to change in this step [m/s]."""
    spin: wp.vec3
    """Angular velocity of the body [rad/s]."""
    threshold: float
    """Margin plus what the shape may move in a step, or plus its gap [m]."""
    margin: float
    """Margin, and with a horizon how far apart contacts may act at no speed besides [m]."""
    gap_threshold: float
    """Margin plus gap [m]."""
    extent: float
    """How large the shape is, for tolerances: about half its diagonal [m]."""
    spin_length: float
    """Largest coefficient of torsional or rolling friction of the world [m]."""
    offset: wp.vec3
    """Shape origin (of a slab: its centre) minus body origin [m], world axes."""
    friction: float
    """c mu of `contact_horizon`, by the largest coefficient of friction of the world."""
    size: wp.vec3
    """Sizes as colliders use them [m]: `shape_scale`, half extents for a slab."""
    threshold_limit: float
    """Largest `threshold` that can matter, as both gaps limit it [m]."""


def place_fields() -> str:
    """Return native code that declares the index of the first number of each field of `ShapePlace`.

    `middle_at` is that of `middle`, `PLACE_SIZE` how many numbers there are.
    """
    sizes = {name: getattr(field.type, "_length_", 1) for name, field in ShapePlace.vars.items()}
    starts = itertools.accumulate(sizes.values(), initial=0)
    names = [*(f"{name}_at" for name in sizes), "PLACE_SIZE"]
    fields = ", ".join(f"{name} = {start}" for name, start in zip(names, starts, strict=True))
    return f"""
    enum {{ {fields} }};
    static_assert(sizeof(*place.data) == PLACE_SIZE * sizeof(float), "ShapePlace has other numbers");
"""


@wp.struct
class ShapeState:
    """Where the shapes are; written by this stage, read by the colliders."""

    place: wp.array[ShapePlace]
    """Pose, sizes and motion, shape [shape]. All of a shape is read together."""
    bounds: wp.array[bounds_vector]
    """World box around shape, margin and what the shape may move in a step, or its gap [m], shape [shape]."""


def make_shape_state(shape_count: int, device: Any) -> ShapeState:
    """Return the arrays for `shape_count` shapes."""
    state = ShapeState()
    state.place = zeros_on_demand(shape_count, ShapePlace, device)
    state.bounds = zeros_on_demand(shape_count, bounds_vector, device)
    return state


@wp.func
def rotation_of(q: wp.quat) -> wp.mat33:
    """Return the rotation matrix of a quaternion of any length: the factor 2 / |q|^2 normalizes it."""
    s = 2.0 / (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    xs = q[0] * s
    ys = q[1] * s
    zs = q[2] * s
    wx = q[3] * xs
    wy = q[3] * ys
    wz = q[3] * zs
    xx = q[0] * xs
    xy = q[0] * ys
    xz = q[0] * zs
    yy = q[1] * ys
    yz = q[1] * zs
    zz = q[2] * zs
    return wp.mat33(
        1.0 - yy - zz, xy - wz, xz + wy, xy + wz, 1.0 - xx - zz, yz - wx, xz - wy, yz + wx, 1.0 - xx - yy
    )


@wp.func
def is_meshed(shape_type: int) -> bool:
    """Return whether a shape has its geometry from a mesh or height field."""
    result = shape_type == GeoType.HFIELD
    result = result or shape_type == GeoType.MESH
    return result or shape_type == GeoType.CONVEX_MESH


@wp.func
def half_extents(shape_type: int, size: wp.vec3, rotation: wp.mat33) -> wp.vec3:
    """Return the half extents [m] along world axes of a shape centred on its frame."""
    r00 = rotation[0, 0]
    r01 = rotation[0, 1]
    r02 = rotation[0, 2]
    r10 = rotation[1, 0]
    r11 = rotation[1, 1]
    r12 = rotation[1, 2]
    r20 = rotation[2, 0]
    r21 = rotation[2, 1]
    r22 = rotation[2, 2]
    half = wp.vec3(size[0], size[0], size[0])
    if shape_type == GeoType.CAPSULE:
        half = half + size[1] * wp.vec3(wp.abs(r02), wp.abs(r12), wp.abs(r22))
    elif shape_type == GeoType.CYLINDER or shape_type == GeoType.CONE:
        # A disc of unit radius reaches sqrt(1 - z^2) along a world axis, z being its normal's component.
        half = wp.vec3(
            size[1] * wp.abs(r02) + size[0] * wp.sqrt(wp.max(0.0, r00 * r00 + r01 * r01)),
            size[1] * wp.abs(r12) + size[0] * wp.sqrt(wp.max(0.0, r10 * r10 + r11 * r11)),
            size[1] * wp.abs(r22) + size[0] * wp.sqrt(wp.max(0.0, r20 * r20 + r21 * r21)),
        )
    elif shape_type == GeoType.ELLIPSOID:
        half = wp.vec3(
            wp.length(wp.vec3(r00 * size[0], r01 * size[1], r02 * size[2])),
            wp.length(wp.vec3(r10 * size[0], r11 * size[1], r12 * size[2])),
            wp.length(wp.vec3(r20 * size[0], r21 * size[1], r22 * size[2])),
        )
    elif shape_type == GeoType.BOX or is_meshed(shape_type):
        half = wp.vec3(
            wp.abs(r00) * size[0] + wp.abs(r01) * size[1] + wp.abs(r02) * size[2],
            wp.abs(r10) * size[0] + wp.abs(r11) * size[1] + wp.abs(r12) * size[2],
            wp.abs(r20) * size[0] + wp.abs(r21) * size[1] + wp.abs(r22) * size[2],
        )
    return half


@wp.func
def is_slab(model: wp.ref[ShapeModel], shape: int) -> bool:
    """Return whether a shape is a plane of finite size.

    It collides as a box whose top is the plane and which reaches half its shorter side below: solid as a
    plane is, so that what sinks in is pushed up again and not through.
    """
    return model.shape_geo_type[shape] == GeoType.PLANE and model.shape_type[shape] == GeoType.BOX


@wp.func
def hull_of(model: wp.ref[ShapeModel], shape: int) -> int:
    """Return the convex hull of a shape, -1 for primitives. Its mesh may change from step to step."""
    mesh = model.shape_source_index[shape]
    hull = int(-1)
    if mesh >= 0:
        hull = model.mesh_hull[mesh]
    return hull


@wp.func
def slab_half_extents(scale: wp.vec3) -> wp.vec3:
    """Return the half extents [m] of the box for a plane of width scale[0] and length scale[1]."""
    return wp.vec3(0.5 * scale[0], 0.5 * scale[1], 0.25 * wp.min(scale[0], scale[1]))


@wp.func
def raise_change(state: wp.ref[ShapeState], shape: int, change: float):
    """Let a shape be assumed to change its velocity by `change` [m/s], if that is more than was assumed."""
    more = change - state.place[shape].change
    if more > 0.0:
        state.place[shape].change = change
        bounds = state.bounds[shape]
        if bounds[3] >= 0.0:
            threshold = state.place[shape].threshold
            grown = wp.max(
                wp.min(threshold + more * state.place[shape].lead, state.place[shape].threshold_limit),
                threshold,
            )
            for axis in range(3, 6):
                bounds[axis] = bounds[axis] + (grown - threshold)
            state.bounds[shape] = bounds
            state.place[shape].threshold = grown
