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
from pluriverse.launch import launch_kernel

# A contact is idle if it does not act while the relative velocity of its shapes changes by this acceleration
# [m/s²] for the length of the step and by this share of their speeds, or by the larger acceleration where
# that is less. Gravity accelerates what rests; what moves may hit something. Found by trial on robots that
# stand, walk, fall and lie. With the larger acceleration alone a gripper that stands beside a cube has 24
# contacts, not 8. Without the share of the speeds, a tenth of the steps of a G1 with random targets is
# solved again.
ACCELERATION_IDLE = 10.0
ACCELERATION_IDLE_MAX = 100.0
SPEED_SHARE_IDLE = wp.constant(0.5)


@wp.func
def contact_arm(
    place: wp.ref[ShapePlace], body: int, body_q: wp.array[wp.transform], point: wp.vec3
) -> wp.vec3:
    """Return a contact point of a body, -1 for the world, from the middle of its shape, world axes [m]."""
    arm = point - place.origin
    if body >= 0:
        arm = rotation_of(wp.transform_get_rotation(body_q[body])) * point
    return arm - place.middle


@wp.func
def acting_distance(
    place0: wp.ref[ShapePlace],
    place1: wp.ref[ShapePlace],
    normal: wp.vec3,
    velocity: wp.vec3,
    spin0: wp.vec3,
    spin1: wp.vec3,
    distance: float,
    sliding_speed: float,
) -> float:
    """Return up to which distance a contact acts, whose points part at `velocity` (`contact_horizon`) [m]."""
    friction = wp.max(place0.friction, place1.friction)
    time = wp.max(place0.lead, place1.lead) / wp.sqrt(1.0 + friction * friction)
    parting = wp.dot(normal, velocity)
    sliding = wp.length(velocity - parting * normal)
    # It may act anywhere between its points, and by its moments.
    turning = wp.length(spin1 - spin0) * wp.max(place0.spin_length, place1.spin_length)
    between = wp.max(wp.length(spin0), wp.length(spin1)) * wp.max(distance, 0.0)
    opening = wp.max(friction * (sliding + between), sliding_speed)
    return time * (opening + turning - parting)


@wp.func
def is_idle(
    model: wp.ref[ShapeModel],
    state: wp.ref[ShapeState],
    body_q: wp.array[wp.transform],
    output: wp.ref[ContactOutput],
    slot: int,
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
    place0, place1 = state.place[shape0], state.place[shape1]
    lead = wp.max(place0.lead, place1.lead)
    change = place0.change + place1.change
    # Of a shape that may come to move at any speed, nothing is idle.
    spin0, spin1 = place0.spin, place1.spin
    if is_repeated == 0 and change < ANY_SPEED:
        speed = wp.length(place0.velocity) + wp.length(spin0) * place0.radius
        speed += wp.length(place1.velocity) + wp.length(spin1) * place1.radius
        change = wp.min(change, wp.min(usual + SPEED_SHARE_IDLE * speed, usual_max))
    # Most contacts that are kept are so near that they act wherever on the shapes they are.
    parting = sum_of_magnitudes(place1.velocity - place0.velocity)
    parting += sum_of_magnitudes(spin0) * place0.radius + sum_of_magnitudes(spin1) * place1.radius
    if distance < lead * ((1.0 - BOUND_ROUNDING) * change - (1.0 + BOUND_ROUNDING) * parting):
        return False
    arm0 = contact_arm(place0, model.shape_body[shape0], body_q, output.point0[slot])
    arm1 = contact_arm(place1, model.shape_body[shape1], body_q, output.point1[slot])
    velocity = place1.velocity + wp.cross(spin1, arm1) - place0.velocity - wp.cross(spin0, arm0)
    acting = acting_distance(
        place0, place1, output.normal[slot], velocity, spin0, spin1, distance, sliding_speed
    )
    return distance > acting + lead * change


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


@wp.kernel(enable_backward=False, module="pluriverse.collision.idle_contacts")
def partition_world_contacts(
    worlds: wp.array[int],  # [slot] the worlds of this launch
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
    """Put the idle contacts of one world behind the others."""
    thread, _ = wp.tid()
    world = worlds[thread]
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
            idle = is_idle(model, state, body_q, output, slot, usual, usual_max, sliding_speed, is_repeated)
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
    launch_kernel(
        partition_world_contacts,
        dim=worlds.size,
        inputs=[
            worlds,
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
