"""Step status: the status of each world of a group after a step of MuJoCo Warp, and its contacts.

Reads   rows, contacts, counters and overflow bits of MuJoCo Warp's data
Writes  contacts with their forces; status of each world; rows of worlds that were not to be stepped
"""

import warp as wp

from pluriverse.model import Topology
from pluriverse.solvers.mujoco.exchange.contact_copy import ContactArrays
from pluriverse.solvers.mujoco.exchange.maps import NA, NQ, NV, ExchangeMaps, rows_struct, shape_of_geom

# Values from which squares overflow within a few steps.
VALUE_MAX = wp.constant(1e10)

Rows = rows_struct(wp.float32)


@wp.struct
class WarpContacts:
    """Contacts in MuJoCo Warp's data, shape [contact]."""

    count: wp.array[int]  # [1] found, of all worlds of the group
    world: wp.array[int]  # row
    geom: wp.array[wp.vec2i]
    dist: wp.array[float]
    pos: wp.array[wp.vec3]
    frame: wp.array[wp.mat33]
    margin: wp.array[float]
    efc_address: wp.array2d[int]
    force: wp.array[wp.spatial_vector]  # force and torque, world axes


@wp.struct
class WarpStepStatus:
    """Status of each world, shape [world]."""

    listed: wp.array[int]  # 1 where the world is to be stepped
    frozen: wp.array[int]
    known: wp.array[int]
    stepped: wp.array[int]
    overflow: wp.array[int]  # bits of all overflows since they were last reported
    row_count: wp.array[int]  # most constraint rows of a step so far
    full: wp.array[int]
    full_now: wp.array[int]
    iterations: wp.array[int]
    converged: wp.array[int]
    unconverged: wp.array[int]
    contact_count: wp.array[int]
    needed_count: wp.array[int]
    unlisted: wp.array[int]


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.warp.step_status")
def list_world(
    worlds: wp.array[int],
    listed: wp.array[int],  # [world] 1: to be stepped
):
    """Mark a world for stepping."""
    thread, _ = wp.tid()
    listed[worlds[thread]] = 1


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.warp.step_status")
def keep_row(
    group_worlds: wp.array[int],  # [row]
    maps: ExchangeMaps,
    group: int,
    qpos0: wp.array2d[float],  # [row or 1, nq]
    listed: wp.array[int],  # [world]
    frozen: wp.array[int],  # [world]
    rows: Rows,
    kept: Rows,
):
    """Save the rows of a world that is not listed; give a frozen one a valid state for the step."""
    row, _ = wp.tid()
    world = group_worlds[row]
    qpos = maps.world_start[world, NQ]
    qvel = maps.world_start[world, NV]
    act = maps.world_start[world, NA]
    if listed[world] == 0:
        for k in range(maps.count[group, NQ]):
            kept.qpos[qpos + k] = rows.qpos[qpos + k]
        for k in range(maps.count[group, NV]):
            kept.qvel[qvel + k] = rows.qvel[qvel + k]
            kept.qacc_warmstart[qvel + k] = rows.qacc_warmstart[qvel + k]
        for k in range(maps.count[group, NA]):
            kept.act[act + k] = rows.act[act + k]
        kept.time[world] = rows.time[world]
    if frozen[world] != 0:
        for k in range(maps.count[group, NQ]):
            rows.qpos[qpos + k] = qpos0[row % qpos0.shape[0], k]
        for k in range(maps.count[group, NV]):
            rows.qvel[qvel + k] = 0.0
            rows.qacc_warmstart[qvel + k] = 0.0
        for k in range(maps.count[group, NA]):
            rows.act[act + k] = 0.0


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.warp.step_status")
def clear_world_contact(worlds: wp.array[int], contacts: ContactArrays):
    """Clear the contacts of a world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    contacts.found[world] = 0
    contacts.count[world] = 0


@wp.func
def in_body(shape_body: wp.array[int], body_q: wp.array[wp.transform], shape: int, point: wp.vec3) -> wp.vec3:
    """Return a point of the world in the frame of the body of a shape."""
    body = shape_body[shape]
    if body < 0:
        return point
    return wp.transform_point(wp.transform_inverse(body_q[body]), point)


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.warp.step_status")
def list_contact(
    group_worlds: wp.array[int],  # [row]
    topology: Topology,
    maps: ExchangeMaps,
    shape_body: wp.array[int],  # [shape]
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    listed: wp.array[int],  # [world] 1: to be stepped
    frozen: wp.array[int],  # [world]
    source: WarpContacts,
    contacts: ContactArrays,
):
    """List one contact that took part in the step."""
    contact, _ = wp.tid()
    if contact >= source.count[0] or source.efc_address[contact, 0] < 0:
        return
    world = group_worlds[source.world[contact]]
    if listed[world] == 0 or frozen[world] != 0:
        return
    place = wp.atomic_add(contacts.found, world, 1)
    slot = contacts.start[world] + place
    if slot >= contacts.start[world + 1]:
        return
    geom = source.geom[contact]
    shape0 = shape_of_geom(topology, maps, world, geom[0])
    shape1 = shape_of_geom(topology, maps, world, geom[1])
    frame = source.frame[contact]
    normal = wp.vec3(frame[0, 0], frame[0, 1], frame[0, 2])
    half = 0.5 * source.dist[contact] * normal
    contacts.shape0[slot] = shape0
    contacts.shape1[slot] = shape1
    contacts.point0[slot] = in_body(shape_body, body_q, shape0, source.pos[contact] - half)
    contacts.point1[slot] = in_body(shape_body, body_q, shape1, source.pos[contact] + half)
    contacts.normal[slot] = normal
    contacts.margin0[slot] = 0.5 * source.margin[contact]
    contacts.margin1[slot] = 0.5 * source.margin[contact]
    contacts.force[slot] = wp.spatial_top(source.force[contact])


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.warp.step_status")
def finalize_row(
    group_worlds: wp.array[int],  # [row]
    maps: ExchangeMaps,
    group: int,
    iteration_limit: int,
    overflow: wp.array[int],  # [row] bits of MuJoCo Warp, taken here
    lost_mask: int,  # the bits that mean lost contacts or constraints
    row_count: wp.array[int],  # [row] constraint rows
    solver_iterations: wp.array[int],  # [row]
    contacts: ContactArrays,
    external: wp.array[int],  # [world] external contacts and press; empty where MuJoCo found them
    rows: Rows,
    kept: Rows,
    status: WarpStepStatus,
):
    """Write the status of one world."""
    row, _ = wp.tid()
    world = group_worlds[row]
    qpos = maps.world_start[world, NQ]
    qvel = maps.world_start[world, NV]
    act = maps.world_start[world, NA]
    bits = overflow[row]
    overflow[row] = 0
    if status.listed[world] == 0:
        for k in range(maps.count[group, NQ]):
            rows.qpos[qpos + k] = kept.qpos[qpos + k]
        for k in range(maps.count[group, NV]):
            rows.qvel[qvel + k] = kept.qvel[qvel + k]
            rows.qacc_warmstart[qvel + k] = kept.qacc_warmstart[qvel + k]
        for k in range(maps.count[group, NA]):
            rows.act[act + k] = kept.act[act + k]
        rows.time[world] = kept.time[world]
        return
    sound = status.frozen[world] == 0
    for k in range(maps.count[group, NQ]):
        if not wp.abs(rows.qpos[qpos + k]) < VALUE_MAX:
            sound = False
    for k in range(maps.count[group, NV]):
        if not wp.abs(rows.qvel[qvel + k]) < VALUE_MAX:
            sound = False
    if external.shape[0] != 0 and contacts.found[world] < 0:
        sound = False  # a body or shape has no finite place, so nothing is known about contacts
    status.full_now[world] = 0
    status.iterations[world] = 0
    status.converged[world] = 1
    status.contact_count[world] = 0
    if not sound:
        status.frozen[world] = 1
        status.known[world] = 0
        status.stepped[world] = 0
        if external.shape[0] == 0:
            contacts.found[world] = 0
            contacts.count[world] = 0
        return
    found = int(0)
    capacity = contacts.start[world + 1] - contacts.start[world]
    if external.shape[0] == 0:
        found = contacts.found[world]
        contacts.count[world] = wp.min(found, capacity)
    else:
        found = external[world]
    status.stepped[world] = 1
    status.known[world] = 1
    status.contact_count[world] = found
    status.needed_count[world] = wp.max(status.needed_count[world], found)
    status.row_count[world] = wp.max(status.row_count[world], row_count[row])
    if found > capacity:
        status.unlisted[world] = status.unlisted[world] + 1
    iterations = solver_iterations[row]
    status.iterations[world] = iterations
    if iteration_limit > 0 and iterations >= iteration_limit:
        status.converged[world] = 0
        status.unconverged[world] = status.unconverged[world] + 1
    if (bits & lost_mask) != 0:
        status.overflow[world] = status.overflow[world] | bits
        status.full_now[world] = 1
        status.full[world] = status.full[world] + 1


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.warp.step_status")
def set_time_step(
    timestep: wp.array[float],  # [1] s
    dt: float,  # s
):
    """Set the time step of a group [s]."""
    group, _ = wp.tid()
    timestep[group] = dt
