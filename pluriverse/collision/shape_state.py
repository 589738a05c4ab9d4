"""Shape stage: where the shapes of a world are, and boxes that surely hold all their contacts.

Reads   body_q, body_qd of the state; shape_body, shape_transform, shape_scale, _margin, _gap of the model
Writes  `ShapeState`: rotation, position, bounds and motion of every shape; contact counters set to zero

A position is kept in two parts, the origin of the body and the offset of the shape from it. The difference of
two shape positions is then formed as (origin1 - origin0) + (offset1 - offset0): the first term of two near
bodies is exact in floating point, so a world a kilometre away from its origin loses nothing beyond its stored
poses.
"""

from typing import Any

import warp as wp

from pluriverse.collision.contact_horizon import HorizonData
from pluriverse.launch import launch_kernel
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

# By how much velocities are assumed to change in a step at most: this acceleration [m/s²] for the length of
# the step, and this share of the speed. What exceeds it costs a second look at some pairs, not a second
# solution. Found by trial on robots that walk, fall and lie. With half of it, seven of ten steps of a Go1
# with random targets need that look, not four. With twice as much, a falling ANYmal takes a tenth longer.
ACCELERATION_ASSUMED = wp.constant(100.0)
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
    collider: wp.array[int]
    """World-local shapes that have a candidate pair, shape [entry]."""
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
    """Where a shape is and how it moves."""

    rotation: wp.mat33
    """World from shape axes."""
    origin: wp.vec3
    """World position of the body origin [m]."""
    offset: wp.vec3
    """Shape origin (of a slab: its centre) minus body origin [m], world axes."""
    size: wp.vec3
    """Sizes as colliders use them [m]: `shape_scale`, half extents for a slab."""
    middle: wp.vec3
    """Centre of the shape minus body origin [m], world axes."""
    velocity: wp.vec3
    """Velocity of the body at `middle` [m/s]."""
    spin: wp.vec3
    """Angular velocity of the body [rad/s]."""
    extent: float
    """How large the shape is, for tolerances: about half its diagonal [m]."""
    radius: float
    """Radius of a sphere about `middle` that holds the shape, and what its spin counts for besides [m]."""
    threshold: float
    """Margin plus what the shape may move in a step, or plus its gap [m]."""
    margin: float
    """Margin, and with a horizon how far apart contacts may act at no speed besides [m]."""
    gap_threshold: float
    """Margin plus gap [m]."""
    threshold_limit: float
    """Largest `threshold` that can matter, as both gaps limit it [m]."""
    change: float
    """By how much the velocity of no point of the shape is assumed to change in this step [m/s]."""
    lead: float
    """sqrt(1 + (c mu)^2) T of `contact_horizon`: at a speed contacts act up to this times that [s]."""
    friction: float
    """c mu of `contact_horizon`, by the largest coefficient of friction of the world."""
    spin_length: float
    """Largest coefficient of torsional or rolling friction of the world [m]."""


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
    state.place = wp.zeros(shape_count, dtype=ShapePlace, device=device)
    state.bounds = wp.zeros(shape_count, dtype=bounds_vector, device=device)
    return state


@wp.func
def is_number(value: float) -> bool:
    """Return whether a number is finite. (The call of `wp.isfinite` costs ten times as much)."""
    return value - value == 0.0


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
def is_slab(model: ShapeModel, shape: int) -> bool:
    """Return whether a shape is a plane of finite size.

    It collides as a box whose top is the plane and which reaches half its shorter side below: solid as a
    plane is, so that what sinks in is pushed up again and not through.
    """
    return model.shape_geo_type[shape] == GeoType.PLANE and model.shape_type[shape] == GeoType.BOX


@wp.func
def hull_of(model: ShapeModel, shape: int) -> int:
    """Return the convex hull of a shape, -1 for primitives. Its mesh may change from step to step."""
    mesh = model.shape_source_index[shape]
    hull = int(-1)
    if mesh >= 0:
        hull = model.mesh_hull[mesh]
    return hull


@wp.func
def has_its_mesh(model: ShapeModel, shape: int) -> bool:
    """Return whether a shape of a mesh has one that may collide as its type; which one may change."""
    shape_type = model.shape_type[shape]
    if shape_type != GeoType.CONVEX_MESH and shape_type != GeoType.MESH and shape_type != GeoType.HFIELD:
        return True
    mesh = model.shape_source_index[shape]
    if mesh < 0 or mesh >= model.mesh_types.shape[0]:
        return False
    return (model.mesh_types[mesh] & (1 << shape_type)) != 0


@wp.func
def slab_half_extents(scale: wp.vec3) -> wp.vec3:
    """Return the half extents [m] of the box for a plane of width scale[0] and length scale[1]."""
    return wp.vec3(0.5 * scale[0], 0.5 * scale[1], 0.25 * wp.min(scale[0], scale[1]))


@wp.struct
class WorldLead:
    """How far ahead contacts of a world act, by the largest of its materials."""

    tau: float
    """Largest dissipation time that damps an approach [s]."""
    friction: float
    """c mu of `contact_horizon` for the largest coefficient of friction."""
    spin_length: float
    """Largest coefficient of torsional or rolling friction [m]."""
    gap: float
    """Largest gap [m]."""
    slope: float
    """sqrt(1 + (c mu)^2) for the same."""
    is_complete: int
    """Whether no contact of the world is left out."""


@wp.func
def valid_or(value: float, fallback: float) -> float:
    """Return a material value, or the fallback where it is missing."""
    result = float(value)
    if not (value >= 0.0 and value < wp.inf):
        result = fallback
    return result


@wp.func
def raise_lead(lead: WorldLead, model: ShapeModel, shape: int, horizon: HorizonData) -> WorldLead:
    """Return `lead` with the materials of another shape."""
    lead.gap = wp.max(lead.gap, model.shape_gap[shape])
    if horizon.has_tau != 0:
        lead.tau = wp.max(lead.tau, valid_or(horizon.shape_tau[shape], horizon.fallback_tau))
    if horizon.has_mu != 0:
        mu = valid_or(horizon.shape_mu[shape], horizon.fallback_mu)
        lead.friction = wp.max(lead.friction, horizon.sliding_share * mu)
    if horizon.has_moments != 0:
        moment = wp.max(horizon.shape_mu_torsional[shape], horizon.shape_mu_rolling[shape])
        lead.spin_length = wp.max(lead.spin_length, moment)
    return lead


@wp.func
def update_motion(
    shape: int,
    body: int,
    rotation: wp.mat33,
    model: ShapeModel,
    horizon: HorizonData,
    world_lead: WorldLead,
    place: ShapePlace,
) -> ShapePlace:
    """Return `place` with how the shape moves, and as `threshold` where its contacts matter by that [m]."""
    margin = model.shape_margin[shape]
    place.margin = margin
    if horizon.is_limited == 0:
        # Else the pair would be looked at as far as the last call with a horizon wanted.
        place.lead = 0.0
        place.threshold = margin + model.shape_gap[shape]
        return place
    velocity, spin = wp.vec3(), wp.vec3()
    lead, change = float(0.0), float(0.0)
    radius = place.radius + world_lead.spin_length
    if body >= 0:
        tau = float(0.0)
        if horizon.has_tau != 0:
            # Of a pair: dt + tau0 + tau1. The larger of all stands for the other.
            tau = valid_or(horizon.shape_tau[shape], horizon.fallback_tau) + world_lead.tau
        lead = (horizon.dt + tau) * world_lead.slope
        if horizon.is_midway != 0:
            radius += model.shape_gap[shape]
        qd = horizon.body_qd[body]
        arm = place.middle - rotation * horizon.body_com[body]
        spin = wp.spatial_bottom(qd)
        velocity = wp.spatial_top(qd) + wp.cross(spin, arm)
    speed = wp.length(velocity) + wp.length(spin) * radius
    if body >= 0:
        change = CHANGE_ASSUMED * speed + ACCELERATION_ASSUMED * horizon.dt
        if horizon.is_repeated != 0:
            change = wp.max(change, place.change)
        if world_lead.is_complete != 0:
            change = ANY_SPEED
        elif not speed + change < ANY_SPEED:  # NaN too: what is not known to be slow may be anywhere
            change = ANY_SPEED
            speed = float(0.0)
            velocity, spin = wp.vec3(), wp.vec3()
    place.radius = radius
    place.velocity = velocity
    place.spin = spin
    place.lead = lead
    place.friction = world_lead.friction
    place.spin_length = world_lead.spin_length
    place.change = change
    # No pair is looked at beyond its gaps. Without that bound rounding would lose the extents of the shape.
    limit = model.shape_gap[shape] + world_lead.gap
    place.threshold_limit = margin + limit
    at_rest = lead * horizon.sliding_speed
    place.margin = margin + at_rest
    place.threshold = margin + wp.min((speed + change) * lead + at_rest, limit)
    return place


@wp.func
def raise_change(state: ShapeState, shape: int, change: float):
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


@wp.func
def update_shape(
    shape: int,
    model: ShapeModel,
    body_q: wp.array[wp.transform],
    horizon: HorizonData,
    world_lead: WorldLead,
    is_fixed: bool,
    state: ShapeState,
) -> bool:
    """Write rotation, position and bounds of one shape; return whether pose, sizes and mesh are sound.

    A shape that is switched off is sound whatever it is.
    """
    if not has_its_mesh(model, shape):
        # An index that somebody wrote there: it is reported, and must not be followed.
        state.bounds[shape] = bounds_vector(0.0, 0.0, 0.0, NOTHING, NOTHING, NOTHING)
        state.place[shape].threshold = NOTHING
        return False
    # All of it is read and written at once: single fields of a struct in an array cost as much each.
    place = state.place[shape]
    local = model.shape_transform[shape]
    origin = wp.vec3(0.0, 0.0, 0.0)
    offset = wp.transform_get_translation(local)
    q = wp.transform_get_rotation(local)
    body = model.shape_body[shape]
    body_axes = wp.mat33()
    if body >= 0:
        pose = body_q[body]
        body_rotation = wp.transform_get_rotation(pose)
        body_axes = rotation_of(body_rotation)
        origin = wp.transform_get_translation(pose)
        offset = body_axes * offset
        q = body_rotation * q
    rotation = rotation_of(q)

    shape_type = model.shape_type[shape]
    size = model.shape_scale[shape]
    if is_slab(model, shape):
        size = slab_half_extents(size)
        offset -= rotation * wp.vec3(0.0, 0.0, size[2])
    extent = size
    middle = offset
    if shape_type == GeoType.CONVEX_MESH:
        hull = hull_of(model, shape)
        lower = wp.cw_mul(model.hull_lower[hull], size)
        upper = wp.cw_mul(model.hull_upper[hull], size)
        middle += rotation * (0.5 * (lower + upper))
        extent = 0.5 * wp.vec3(
            wp.abs(upper[0] - lower[0]), wp.abs(upper[1] - lower[1]), wp.abs(upper[2] - lower[2])
        )
    elif shape_type == GeoType.MESH or shape_type == GeoType.HFIELD:
        mesh = model.shape_source_index[shape]
        lower = wp.cw_mul(model.mesh_lower[mesh], size)
        upper = wp.cw_mul(model.mesh_upper[mesh], size)
        if shape_type == GeoType.HFIELD:
            # Solid below: what has sunk in by less than the width of the field is found.
            lower[2] = lower[2] - wp.max(upper[0] - lower[0], upper[1] - lower[1])
        middle += rotation * (0.5 * (lower + upper))
        extent = 0.5 * wp.vec3(
            wp.abs(upper[0] - lower[0]), wp.abs(upper[1] - lower[1]), wp.abs(upper[2] - lower[2])
        )
    center = origin + middle
    half = half_extents(shape_type, extent, rotation)
    margin = model.shape_margin[shape]
    place.middle = middle
    radius = wp.length(extent)
    if shape_type == GeoType.CAPSULE:
        radius = extent[0] + extent[1]
    elif shape_type == GeoType.PLANE:
        radius = ANY_SPEED  # without end
    place.radius = radius
    if is_fixed:
        body = -1
    place = update_motion(shape, body, body_axes, model, horizon, world_lead, place)
    threshold = place.threshold
    distance = wp.abs(center[0]) + wp.abs(center[1]) + wp.abs(center[2])
    inflation = threshold + POSITION_ROUNDING * distance

    place.rotation = rotation
    place.origin = origin
    place.offset = offset
    place.size = size
    is_enabled = model.shape_enabled[shape]
    # What comes near a plane depends on its threshold alone; of all others, on their bounds.
    place.threshold = wp.where(is_enabled, threshold, NOTHING)
    place.gap_threshold = margin + model.shape_gap[shape]
    place.extent = wp.where(shape_type == GeoType.PLANE, ANY_SPEED, wp.length(extent))
    state.place[shape] = place
    # Written so that NaN fails each comparison.
    norm = wp.dot(q, q)
    is_valid = distance < POSITION_LIMIT and norm > QUATERNION_NORM_MIN and norm < POSITION_LIMIT
    is_valid = is_valid and is_number(half[0] + half[1] + half[2] + threshold)
    if horizon.is_limited != 0 and body >= 0:
        # The threshold depends on the velocity, but its limits would hide that the velocity is no number.
        qd = horizon.body_qd[body]
        is_valid = is_valid and wp.dot(qd, wp.spatial_vector()) == 0.0
    if is_valid and is_enabled:
        state.bounds[shape] = bounds_vector(
            center[0], center[1], center[2], half[0] + inflation, half[1] + inflation, half[2] + inflation
        )
    else:
        state.bounds[shape] = bounds_vector(0.0, 0.0, 0.0, NOTHING, NOTHING, NOTHING)
    return is_valid or not is_enabled


@wp.kernel(enable_backward=False, module="pluriverse.collision.shape_state")
def update_world_shapes(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    global_shapes: wp.array[int],  # [global shape] flat shape index
    model: ShapeModel,
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    horizon: HorizonData,
    # out
    state: ShapeState,
    contact_found: wp.array[int],  # [world] -1: nothing could be looked for
    contact_count: wp.array[int],  # [world]
):
    """Place those shapes of one world that may touch something, and forget its contacts."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    first_shape = model.world_shape[world]
    template = model.world_template[world]
    start = model.collider_start[template]
    end = model.collider_start[template + 1]
    is_valid = bool(True)
    for entry in range(global_shapes.shape[0]):
        shape = global_shapes[entry]
        if state.bounds[shape][3] == NOTHING and model.shape_enabled[shape]:
            is_valid = False
    lead = WorldLead()
    if horizon.is_limited != 0:
        for entry in range(start, end):
            lead = raise_lead(lead, model, first_shape + model.collider[entry], horizon)
        for entry in range(global_shapes.shape[0]):
            lead = raise_lead(lead, model, global_shapes[entry], horizon)
        lead.slope = wp.sqrt(1.0 + lead.friction * lead.friction)
        if horizon.has_complete != 0:
            lead.is_complete = horizon.world_complete[world]
    for entry in range(start, end):
        shape = first_shape + model.collider[entry]
        is_valid = update_shape(shape, model, body_q, horizon, lead, False, state) and is_valid
    if not is_valid:
        # One diverged body makes the whole world meaningless, and so does NaN that somebody wrote into the
        # place or the size of a shape: the world touches nothing, and the solver freezes it.
        for entry in range(start, end):
            shape = first_shape + model.collider[entry]
            state.bounds[shape] = bounds_vector(0.0, 0.0, 0.0, NOTHING, NOTHING, NOTHING)
    contact_found[world] = wp.where(is_valid, 0, -1)
    contact_count[world] = 0


@wp.kernel(enable_backward=False, module="pluriverse.collision.shape_state")
def update_global_shape(
    global_shapes: wp.array[int],  # [global shape] flat shape index
    model: ShapeModel,
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    horizon: HorizonData,
    # out
    state: ShapeState,
):
    """Place one shape that all worlds share. It does not move."""
    thread, _ = wp.tid()
    shape = global_shapes[thread]
    update_shape(shape, model, body_q, horizon, WorldLead(), True, state)


def update_shapes(
    worlds: wp.array[int],
    global_shapes: wp.array[int],
    model: ShapeModel,
    body_q: wp.array[wp.transform],
    horizon: HorizonData,
    state: ShapeState,
    contact_found: wp.array[int],
    contact_count: wp.array[int],
    device: Any,
) -> None:
    """Write `state` for the shapes of `worlds` and of `global_shapes`, and zero the contact counters.

    Global shapes do not move. Every thread that steps some of the worlds writes them, always the same bits.
    """
    if global_shapes.size:
        launch_kernel(
            update_global_shape,
            dim=global_shapes.size,
            inputs=[global_shapes, model, body_q, horizon],
            outputs=[state],
            device=device,
        )
    launch_kernel(
        update_world_shapes,
        dim=worlds.size,
        inputs=[worlds, global_shapes, model, body_q, horizon],
        outputs=[state, contact_found, contact_count],
        device=device,
    )
