"""Idle stage: contacts that will not act go behind those that may, where the solver does not look.

Reads   contacts of a world, motion of their shapes
Writes  the same contacts in another order; `count` without the idle ones, and how many these are

Pairs are looked at as far as shapes may come with any change of velocity that is common, so that few steps
need a second look. A contact found there that would not act if velocities changed by less is *idle*. The
solver checks it by the velocities that it found (`solvers.sap.candidates`), which is cheaper than a contact
in all of its iterations. Contacts that may act keep their order.
"""

from typing import Any

import warp as wp

from pluriverse.collision.contact_horizon import HorizonData
from pluriverse.collision.contact_output import ContactOutput
from pluriverse.collision.shape_pair import BOUND_ROUNDING, sum_of_magnitudes
from pluriverse.collision.shape_state import ANY_SPEED, ShapeModel, ShapePlace, ShapeState, rotation_of
from pluriverse.launch import launch_kernel, world_thread_count

# A contact is idle if it does not act while the relative velocity of its shapes changes by this acceleration
# [m/s²] for the length of the step and by this share of their speeds, or by the larger acceleration where
# that is less. Gravity accelerates what rests; what moves may hit something. Found by trial on robots that
# stand, walk, fall and lie. With the larger acceleration alone a gripper that stands beside a cube has 24
# contacts, not 8. Without the share of the speeds, a tenth of the steps of a G1 with random targets is
# solved again.
ACCELERATION_IDLE = 10.0
ACCELERATION_IDLE_MAX = 100.0
SPEED_SHARE_IDLE = wp.constant(0.5)


@wp.struct
class PairMotion:
    """What all contacts of two shapes share. Those of a pair follow each other."""

    shape0: int
    """First shape, -1 before there is any."""
    shape1: int
    """Second shape."""
    velocity: wp.vec3
    """Velocity of the middle of the second shape relative to that of the first [m/s]."""
    lead: float
    """The larger `ShapePlace.lead` [s]."""
    friction: float
    """The larger `ShapePlace.friction`."""
    time: float
    """T of `contact_horizon` [s]."""
    turning: float
    """Speed at which spins make a contact act by its moments [m/s]."""
    spin: float
    """The larger angular speed [rad/s]."""
    change: float
    """By how much the velocities of the shapes change together at most, usually [m/s]."""
    near: float
    """A contact that is nearer than this acts wherever on the shapes it is [m]."""
    slack: float
    """By how much contacts act from further away than at the middles of the shapes [m]."""
    is_placed: int
    """Whether the rotations are known."""
    rotation0: wp.mat33
    """World from body axes of the first shape."""
    rotation1: wp.mat33
    """World from body axes of the second shape."""


@wp.func
def set_pair(
    pair: wp.ref[PairMotion],
    shape0: int,
    shape1: int,
    place0: wp.ref[ShapePlace],
    place1: wp.ref[ShapePlace],
    spin0: wp.vec3,
    spin1: wp.vec3,
):
    """Write what `acting_distance` needs of two shapes that spin [rad/s]."""
    pair.shape0 = shape0
    pair.shape1 = shape1
    pair.is_placed = 0
    pair.lead = wp.max(place0.lead, place1.lead)
    pair.friction = wp.max(place0.friction, place1.friction)
    pair.time = pair.lead / wp.sqrt(1.0 + pair.friction * pair.friction)
    # A contact may act anywhere between its points, and by its moments.
    pair.turning = wp.length(spin1 - spin0) * wp.max(place0.spin_length, place1.spin_length)
    pair.spin = wp.max(wp.length(spin0), wp.length(spin1))


@wp.func
def acting_distance(
    pair: wp.ref[PairMotion],
    normal: wp.vec3,
    velocity: wp.vec3,
    distance: float,
    sliding_speed: float,
) -> float:
    """Return up to which distance a contact acts, whose points part at `velocity` (`contact_horizon`) [m]."""
    parting = wp.dot(normal, velocity)
    sliding = wp.length(velocity - parting * normal)
    between = pair.spin * wp.max(distance, 0.0)
    opening = wp.max(pair.friction * (sliding + between), sliding_speed)
    return pair.time * (opening + pair.turning - parting)


@wp.func
def measure_pair(
    state: wp.ref[ShapeState],
    pair: wp.ref[PairMotion],
    shape0: int,
    shape1: int,
    usual: float,
    usual_max: float,
    is_repeated: int,
):
    """Write how two shapes move, and by how much that changes usually."""
    place0, place1 = state.place[shape0], state.place[shape1]
    spin0, spin1 = place0.spin, place1.spin
    set_pair(pair, shape0, shape1, place0, place1, spin0, spin1)
    change = place0.change + place1.change
    # Of a shape that may come to move at any speed, nothing is idle.
    if is_repeated == 0 and change < ANY_SPEED:
        speed = wp.length(place0.velocity) + wp.length(spin0) * place0.radius
        speed += wp.length(place1.velocity) + wp.length(spin1) * place1.radius
        change = wp.min(change, wp.min(usual + SPEED_SHARE_IDLE * speed, usual_max))
    pair.change = change
    parting = sum_of_magnitudes(place1.velocity - place0.velocity)
    parting += sum_of_magnitudes(spin0) * place0.radius + sum_of_magnitudes(spin1) * place1.radius
    pair.near = pair.lead * ((1.0 - BOUND_ROUNDING) * change - (1.0 + BOUND_ROUNDING) * parting)


@wp.func
def body_rotation(body: int, body_q: wp.array[wp.transform]) -> wp.mat33:
    """Return the rotation matrix of a body, -1 for the world."""
    rotation = wp.identity(n=3, dtype=float)
    if body >= 0:
        rotation = rotation_of(wp.transform_get_rotation(body_q[body]))
    return rotation


@wp.func
def contact_arm(place: wp.ref[ShapePlace], body: int, rotation: wp.mat33, point: wp.vec3) -> wp.vec3:
    """Return a contact point of a body, -1 for the world, from the middle of its shape, world axes [m]."""
    arm = point - place.origin
    if body >= 0:
        arm = rotation * point
    return arm - place.middle


@wp.func
def is_idle(
    model: wp.ref[ShapeModel],
    state: wp.ref[ShapeState],
    body_q: wp.array[wp.transform],
    output: wp.ref[ContactOutput],
    slot: int,
    pair: wp.ref[PairMotion],
    usual: float,
    usual_max: float,
    sliding_speed: float,
    is_repeated: int,
) -> bool:
    """Return whether a contact does not act if velocities change by no more than is usual."""
    distance = output.separation[slot]
    if not distance > 0.0:
        return False
    shape0, shape1 = output.shape0[slot], output.shape1[slot]
    if shape0 != pair.shape0 or shape1 != pair.shape1:
        measure_pair(state, pair, shape0, shape1, usual, usual_max, is_repeated)
    # So near are most contacts that are kept.
    if distance < pair.near:
        return False
    body0, body1 = model.shape_body[shape0], model.shape_body[shape1]
    if pair.is_placed == 0:
        pair.is_placed = 1
        pair.rotation0 = body_rotation(body0, body_q)
        pair.rotation1 = body_rotation(body1, body_q)
    place0, place1 = state.place[shape0], state.place[shape1]
    arm0 = contact_arm(place0, body0, pair.rotation0, output.point0[slot])
    arm1 = contact_arm(place1, body1, pair.rotation1, output.point1[slot])
    velocity = place1.velocity + wp.cross(place1.spin, arm1) - place0.velocity - wp.cross(place0.spin, arm0)
    acting = acting_distance(pair, output.normal[slot], velocity, distance, sliding_speed)
    return distance > acting + pair.lead * pair.change


@wp.func
def swap_contacts(output: wp.ref[ContactOutput], a: int, b: int):
    """Exchange two contacts."""
    shape0 = output.shape0[a]
    shape1 = output.shape1[a]
    point0 = output.point0[a]
    point1 = output.point1[a]
    normal = output.normal[a]
    margin0 = output.margin0[a]
    margin1 = output.margin1[a]
    separation = output.separation[a]
    output.shape0[a] = output.shape0[b]
    output.shape1[a] = output.shape1[b]
    output.point0[a] = output.point0[b]
    output.point1[a] = output.point1[b]
    output.normal[a] = output.normal[b]
    output.margin0[a] = output.margin0[b]
    output.margin1[a] = output.margin1[b]
    output.separation[a] = output.separation[b]
    output.shape0[b] = shape0
    output.shape1[b] = shape1
    output.point0[b] = point0
    output.point1[b] = point1
    output.normal[b] = normal
    output.margin0[b] = margin0
    output.margin1[b] = margin1
    output.separation[b] = separation


@wp.func
def partition_contacts_of_world(
    world: int,
    model: wp.ref[ShapeModel],
    state: wp.ref[ShapeState],
    body_q: wp.array[wp.transform],
    usual: float,
    usual_max: float,
    sliding_speed: float,
    is_repeated: int,
    has_stiffness: int,
    output: wp.ref[ContactOutput],
    stiffness: wp.array[float],
    idle_count: wp.array[int],
):
    """Put the idle contacts of one world behind the others."""
    pair = PairMotion()
    pair.shape0 = -1
    start = output.start[world]
    count = output.count[world]
    kept = int(0)
    for index in range(count):
        slot = start + index
        idle = bool(False)
        own = float(0.0)
        if has_stiffness != 0:
            own = stiffness[slot]
        # A pressure patch acts as it was found.
        if own == 0.0:
            idle = is_idle(
                model, state, body_q, output, slot, pair, usual, usual_max, sliding_speed, is_repeated
            )
        if not idle:
            if kept != index:
                swap_contacts(output, start + kept, slot)
                if has_stiffness != 0:
                    stiffness[slot] = stiffness[start + kept]
                    stiffness[start + kept] = own
            kept += 1
    idle_count[world] = count - kept
    output.count[world] = kept
    # Of a world that ran out of slots the number stays that of all contacts, for which it needs slots.
    if output.found[world] == count:
        output.found[world] = kept


@wp.kernel(enable_backward=False, module="pluriverse.collision.idle_contacts")
def partition_world_contacts(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    stride: int,  # number of threads, see `world_thread_count`
    model: ShapeModel,
    state: ShapeState,
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    usual: float,  # m/s, change of the relative velocity of shapes at rest for which contacts are idle
    usual_max: float,  # m/s, the same of shapes at any speed
    sliding_speed: float,  # m/s, see `contact_horizon`
    is_repeated: int,
    has_stiffness: int,
    # out
    output: ContactOutput,
    stiffness: wp.array[float],  # [slot] N/m
    idle_count: wp.array[int],  # [world]
):
    """Put the idle contacts of some worlds behind the others, one world after the other."""
    thread, _ = wp.tid()
    for slot in range(thread, worlds.shape[0], stride):
        partition_contacts_of_world(
            worlds[slot],
            model,
            state,
            body_q,
            usual,
            usual_max,
            sliding_speed,
            is_repeated,
            has_stiffness,
            output,
            stiffness,
            idle_count,
        )


def partition_idle_contacts(
    worlds: wp.array[int],
    model: ShapeModel,
    state: ShapeState,
    body_q: wp.array[wp.transform],
    horizon: HorizonData,
    output: ContactOutput,
    stiffness: wp.array[float] | None,
    idle_count: wp.array[int],
    device: Any,
) -> None:
    """Put the idle contacts of the worlds behind the others, and write how many they are."""
    threads = world_thread_count(worlds)
    launch_kernel(
        partition_world_contacts,
        dim=threads,
        inputs=[
            worlds,
            threads,
            model,
            state,
            body_q,
            ACCELERATION_IDLE * horizon.dt,
            ACCELERATION_IDLE_MAX * horizon.dt,
            horizon.sliding_speed,
            horizon.is_repeated,
            int(stiffness is not None),
        ],
        outputs=[output, stiffness, idle_count],
        device=device,
    )
