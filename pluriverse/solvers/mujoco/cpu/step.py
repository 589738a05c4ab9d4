"""CPU step: one MuJoCo step of each world, in the worker of whichever thread runs it.

Reads   rows; fields that differ between worlds; contacts, where they are external
Writes  rows; contacts with their forces; what became of each world

A thread acquires a worker, writes the world's fields and rows into it, lets MuJoCo step, and reads the rows
back. So memory grows with threads, not with worlds, and stays in the caches of a core.
"""

import warp as wp

from pluriverse.model import Topology
from pluriverse.model.contacts import stored_contact_count
from pluriverse.solvers.mujoco.cpu.contacts import (
    list_contacts,
    pull_external_forces,
    step_with_external_contacts,
)
from pluriverse.solvers.mujoco.cpu.memory import (
    INTEGRATE_POSITIONS,
    ISLAND_COUNT,
    L_BAD_CTRL,
    L_BAD_QPOS,
    L_CONSTRAINT_FULL,
    L_CONTACT_FULL,
    L_ITERATIONS,
    L_NCON,
    L_TIME,
    RESET_DATA,
    SOLVE_MASS,
    STEP,
    YIELD,
    CpuEngineData,
    CpuStepStatus,
    are_finite,
    are_sound,
    call,
)
from pluriverse.solvers.mujoco.cpu.native_call import (
    acquire_worker,
    clear_memory,
    copy_memory,
    get_numbers,
    largest_integer,
    put_bytes,
    put_numbers,
    read_integer,
    read_number,
    release_worker,
    write_integer,
    write_number,
)
from pluriverse.solvers.mujoco.cpu.velocity_limit import limit_speeds
from pluriverse.solvers.mujoco.cpu.worker import (
    ACT,
    ADDRESS_COUNT,
    CTRL,
    DATA,
    EQ_ACTIVE,
    MOCAP_POS,
    MOCAP_QUAT,
    MODEL,
    NITER,
    QFRC,
    QPOS,
    QVEL,
    TIMESTEP,
    WARMSTART,
    WARNING,
    XFRC,
)
from pluriverse.solvers.mujoco.exchange.contact_copy import ContactArrays
from pluriverse.solvers.mujoco.exchange.maps import (
    NA,
    NBODY,
    NEQ,
    NMOCAP,
    NQ,
    NU,
    NV,
    ExchangeMaps,
    rows_struct,
)

Rows = rows_struct(wp.float64)


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.cpu.step")
def step_world(
    worlds: wp.array[int],
    topology: Topology,
    maps: ExchangeMaps,
    engine: CpuEngineData,
    rows: Rows,
    contacts: ContactArrays,
    external: int,  # 1: the contacts come from outside, 0: MuJoCo finds and lists them
    are_read: int,  # 0: these contacts are not read before the next step
    worker_scratch: wp.array[wp.uint64],  # [worker] memory for one contact
    dt: wp.float64,
    status: CpuStepStatus,
):
    """Make one step of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    status.stepped[world] = 0
    status.full_now[world] = 0
    start = contacts.start[world]
    if status.frozen[world] != 0:
        status.contact_count[world] = 0
        status.iterations[world] = 0
        if external == 0:
            contacts.found[world] = 0
            contacts.count[world] = 0
        for slot in range(start, start + stored_contact_count(contacts.start, contacts.count, world)):
            contacts.force[slot] = wp.vec3()
        return

    group = maps.world_group[world]
    qpos, nq = maps.world_start[world, NQ], maps.count[group, NQ]
    qvel, nv = maps.world_start[world, NV], maps.count[group, NV]
    act, na = maps.world_start[world, NA], maps.count[group, NA]
    ctrl, nu = maps.world_start[world, NU], maps.count[group, NU]
    body, nbody = maps.world_start[world, NBODY], maps.count[group, NBODY]
    mocap, nmocap = maps.world_start[world, NMOCAP], maps.count[group, NMOCAP]
    eq, neq = maps.world_start[world, NEQ], maps.count[group, NEQ]

    sound = are_sound(rows.qpos, qpos, nq) and are_sound(rows.qvel, qvel, nv)
    sound = sound and are_sound(rows.ctrl, ctrl, nu) and are_sound(rows.act, act, na)
    sound = (
        sound
        and are_finite(rows.qfrc_applied, qvel, nv)
        and are_finite(rows.xfrc_applied, 6 * body, 6 * nbody)
    )

    if external != 0 and contacts.found[world] < 0:
        sound = False  # a body or shape has no finite place, so nothing is known about contacts

    count = int(0)
    iterations = int(0)
    converged = int(1)
    failed = int(0)
    if sound:
        # The worker of the previous world, which the same thread has just released, is warm in the cache.
        before = wp.max(worlds[wp.max(thread - 1, 0)], 0)
        worker = acquire_worker(
            engine.worker_taken, engine.world_worker[before], engine.worker_count, engine.function[YIELD]
        )
        engine.world_worker[world] = worker
        base = (worker * engine.group_count + group) * ADDRESS_COUNT
        model, data = engine.address[base + MODEL], engine.address[base + DATA]
        for entry in range(engine.field_count[group]):
            size = engine.field_size[group, entry]
            row = wp.uint64(wp.int64(maps.world_row[world]) * size)
            copy_memory(
                engine.field_target[worker, group, entry], engine.field_source[group, entry] + row, size
            )
        write_number(engine.address[base + TIMESTEP], 0, dt)
        put_numbers(engine.address[base + QPOS], rows.qpos, qpos, nq)
        put_numbers(engine.address[base + QVEL], rows.qvel, qvel, nv)
        put_numbers(engine.address[base + ACT], rows.act, act, na)
        put_numbers(engine.address[base + WARMSTART], rows.qacc_warmstart, qvel, nv)
        put_numbers(engine.address[base + CTRL], rows.ctrl, ctrl, nu)
        put_numbers(engine.address[base + QFRC], rows.qfrc_applied, qvel, nv)
        put_numbers(engine.address[base + XFRC], rows.xfrc_applied, 6 * body, 6 * nbody)
        put_numbers(engine.address[base + MOCAP_POS], rows.mocap_pos, 3 * mocap, 3 * nmocap)
        put_numbers(engine.address[base + MOCAP_QUAT], rows.mocap_quat, 4 * mocap, 4 * nmocap)
        put_bytes(engine.address[base + EQ_ACTIVE], rows.eq_active, eq, neq)
        write_number(data, engine.layout[L_TIME], rows.time[world])
        warning = engine.address[base + WARNING]
        for kind in range(L_CONTACT_FULL, L_BAD_CTRL + 1):
            write_integer(warning, engine.layout[kind], 0)
        island_count = engine.layout[ISLAND_COUNT]
        clear_memory(engine.address[base + NITER], wp.int64(4 * island_count))

        if external != 0:
            failed = step_with_external_contacts(
                topology, maps, engine, base, world, contacts, worker_scratch[worker]
            )
        else:
            failed = call(engine, STEP, model, data)

        if failed != 0:
            call(engine, RESET_DATA, model, data)
            if failed < 0:  # a contact that names no shape: the world is frozen
                sound = False
                failed = 0
        else:
            for kind in range(L_BAD_QPOS, L_BAD_CTRL + 1):
                if read_integer(warning, engine.layout[kind]) != 0:
                    sound = False
            full = read_integer(warning, engine.layout[L_CONTACT_FULL])
            if full + read_integer(warning, engine.layout[L_CONSTRAINT_FULL]) != 0:
                status.full_now[world] = 1
                status.full[world] = status.full[world] + 1
            iterations = largest_integer(engine.address[base + NITER], island_count)
            limit = read_integer(model, engine.layout[L_ITERATIONS])
            if iterations >= limit and limit > 0:
                converged = 0
            if engine.limit_speeds != 0:
                limit_speeds(
                    world,
                    topology,
                    maps,
                    engine.velocity_limit,
                    engine.body_flags,
                    engine.function[SOLVE_MASS],
                    engine.function[INTEGRATE_POSITIONS],
                    model,
                    data,
                    engine.address[base + QPOS],
                    engine.address[base + QVEL],
                    engine.speed_scratch[worker],
                    nv,
                    dt,
                )
            get_numbers(engine.address[base + QPOS], rows.qpos, qpos, nq)
            get_numbers(engine.address[base + QVEL], rows.qvel, qvel, nv)
            get_numbers(engine.address[base + ACT], rows.act, act, na)
            get_numbers(engine.address[base + WARMSTART], rows.qacc_warmstart, qvel, nv)
            rows.time[world] = read_number(data, engine.layout[L_TIME])
            sound = sound and are_sound(rows.qpos, qpos, nq) and are_sound(rows.qvel, qvel, nv)
            if sound:
                if external != 0:
                    pull_external_forces(engine, base, world, contacts)
                    count = read_integer(data, engine.layout[L_NCON])
                else:
                    count = list_contacts(topology, maps, engine, base, world, contacts, are_read)
        release_worker(engine.worker_taken, worker)

    status.iterations[world] = iterations
    status.converged[world] = converged
    status.contact_count[world] = count
    if not sound:
        status.frozen[world] = 1
    if failed != 0:
        status.failed[world] = status.failed[world] + 1
    if sound and failed == 0:
        status.stepped[world] = 1
        status.known[world] = 1
        status.needed_count[world] = wp.max(status.needed_count[world], count)
        if converged == 0:
            status.unconverged[world] = status.unconverged[world] + 1
        if external == 0 and count > contacts.start[world + 1] - start:
            status.unlisted[world] = status.unlisted[world] + 1
    else:
        status.known[world] = 0
        if external == 0:
            contacts.found[world] = 0
            contacts.count[world] = 0
        for slot in range(start, start + stored_contact_count(contacts.start, contacts.count, world)):
            contacts.force[slot] = wp.vec3()
