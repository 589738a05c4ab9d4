"""CPU step: one step of each world in MuJoCo, by the lane of whichever thread comes along.

Reads   rows; fields that differ between worlds; contacts, where they are fed in
Writes  rows; contacts with their forces; what became of each world

A thread takes a lane, puts the world's fields and rows into it, lets MuJoCo step, and takes the rows out. So
memory grows with threads, not with worlds, and stays in the caches of a core.
"""

import warp as wp

from pluriverse.model import Topology
from pluriverse.solvers.mujoco.contact_copy import ContactArrays
from pluriverse.solvers.mujoco.contact_mixing import mixing_functions
from pluriverse.solvers.mujoco.cpu_lane import (
    ACT,
    ADDRESS_COUNT,
    BODY_INVWEIGHT,
    CONTACT,
    CTRL,
    DATA,
    DISABLEFLAGS,
    EQ_ACTIVE,
    GEOM_BODYID,
    GEOM_CONDIM,
    GEOM_FRICTION,
    GEOM_PRIORITY,
    GEOM_SOLIMP,
    GEOM_SOLMIX,
    GEOM_SOLREF,
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
    XMAT,
    XPOS,
)
from pluriverse.solvers.mujoco.exchange_maps import (
    NA,
    NBODY,
    NEQ,
    NGEOM,
    NMOCAP,
    NQ,
    NU,
    NV,
    ExchangeMaps,
    geom_of_shape,
    rows_struct,
    shape_of_geom,
)
from pluriverse.solvers.mujoco.native_call import (
    add_contact,
    call_guarded,
    clear_memory,
    contact_force,
    copy_memory,
    get_numbers,
    leave_lane,
    put_bytes,
    put_numbers,
    read_integer,
    read_number,
    take_lane,
    write_integer,
    write_number,
)
from pluriverse.solvers.mujoco.velocity_limit import limit_speeds

# Places of functions in `engine_library.function_addresses`.
STEP = wp.constant(0)
STEP1 = wp.constant(1)
STEP2 = wp.constant(2)
ADD_CONTACT = wp.constant(3)
MAKE_CONSTRAINT = wp.constant(4)
ISLAND = wp.constant(5)
PROJECT_CONSTRAINT = wp.constant(6)
REFERENCE_CONSTRAINT = wp.constant(7)
CONTACT_FORCE = wp.constant(8)
RESET_DATA = wp.constant(9)
SOLVE_MASS = wp.constant(10)
INTEGRATE_POSITIONS = wp.constant(11)
HANDLER = wp.constant(12)

# Offsets [B] in `CpuEngineData.layout`: of numbers in structs, fields of a contact, counters of warnings.
LAYOUT = (
    ("data", "ncon"),
    ("data", "time"),
    ("model", "opt.iterations"),
    ("contact", "dist"),
    ("contact", "pos"),
    ("contact", "frame"),
    ("contact", "includemargin"),
    ("contact", "friction"),
    ("contact", "solref"),
    ("contact", "solimp"),
    ("contact", "dim"),
    ("contact", "geom1"),
    ("contact", "geom2"),
    ("contact", "geom"),
    ("contact", "flex"),
    ("contact", "elem"),
    ("contact", "vert"),
    ("contact", "exclude"),
    ("contact", "efc_address"),
    ("warning", "CONTACTFULL"),
    ("warning", "CNSTRFULL"),
    ("warning", "BADQPOS"),
    ("warning", "BADQVEL"),
    ("warning", "BADQACC"),
    ("warning", "BADCTRL"),
)
(
    L_NCON,
    L_TIME,
    L_ITERATIONS,
    L_DIST,
    L_POS,
    L_FRAME,
    L_MARGIN,
    L_FRICTION,
    L_SOLREF,
    L_SOLIMP,
    L_DIM,
    L_GEOM1,
    L_GEOM2,
    L_GEOM,
    L_FLEX,
    L_ELEM,
    L_VERT,
    L_EXCLUDE,
    L_EFC,
    L_CONTACT_FULL,
    L_CONSTRAINT_FULL,
    L_BAD_QPOS,
    L_BAD_QVEL,
    L_BAD_QACC,
    L_BAD_CTRL,
) = (wp.constant(index) for index in range(len(LAYOUT)))
# Behind them: the size of a contact [B], and the number of islands that count iterations.
CONTACT_SIZE = wp.constant(len(LAYOUT))
ISLAND_COUNT = wp.constant(len(LAYOUT) + 1)

# MuJoCo's bits and bounds: `mjDSBL_CONTACT`, `mjMAXVAL`, `mjMINMU`.
DISABLE_CONTACT = wp.constant(1 << 4)
VALUE_MAX = wp.constant(wp.float64(1e10))
FRICTION_MIN = wp.constant(wp.float64(1e-5))

Rows = rows_struct(wp.float64)
mix_weight = mixing_functions(wp.float64).mix_weight
mix_solref = mixing_functions(wp.float64).mix_solref
second_axis = mixing_functions(wp.float64).second_axis


@wp.struct
class CpuEngineData:
    """What the engine keeps for its kernel."""

    function: wp.array[wp.uint64]
    layout: wp.array[int]
    lane_count: int
    group_count: int
    lane_taken: wp.array[int]  # [lane]
    world_lane: wp.array[int]  # [world] lane of the last step
    address: wp.array[wp.uint64]  # [lane, group, address]
    # fields that differ between the worlds of a group
    field_count: wp.array[int]  # [group]
    field_source: wp.array2d[wp.uint64]  # [group, field] address of the first row
    field_size: wp.array2d[wp.int64]  # [group, field] bytes of a row
    field_target: wp.array3d[wp.uint64]  # [lane, group, field] address in the lane's model
    # contacts fed in
    geom_force_space: wp.array[int]  # [world geom]
    geom_ke: wp.array[wp.float64]
    geom_kd: wp.array[wp.float64]
    slot_contact: wp.array[int]  # [slot] contact of MuJoCo, -1 for none
    # limits of joint speeds
    limit_speeds: int  # 1: they are enforced
    velocity_limit: wp.array[float]  # [dof] of the model
    speed_scratch: wp.array[wp.uint64]  # [lane] memory for three vectors of degrees of freedom


@wp.struct
class CpuOutcome:
    """What became of each world, shape [world]."""

    frozen: wp.array[int]
    known: wp.array[int]
    stepped: wp.array[int]  # 1: the rows hold a new state
    failed: wp.array[int]  # steps so far that ended with an error of MuJoCo
    full: wp.array[int]  # steps so far in which contacts or constraints found no memory
    full_now: wp.array[int]
    iterations: wp.array[int]
    converged: wp.array[int]
    unconverged: wp.array[int]  # steps so far that ended at the limit of iterations
    contact_count: wp.array[int]
    needed_count: wp.array[int]  # most contacts of a step so far
    unlisted: wp.array[int]  # steps so far with more contacts than the list has slots


@wp.func
def are_sound(values: wp.array(dtype=wp.float64), first: int, count: int) -> bool:
    """Return whether numbers are finite and within what MuJoCo allows."""
    for k in range(count):  # noqa: SIM110, Warp knows no generators
        if not wp.abs(values[first + k]) < VALUE_MAX:
            return False
    return True


@wp.func
def are_finite(values: wp.array(dtype=wp.float64), first: int, count: int) -> bool:
    """Return whether numbers are finite."""
    for k in range(count):  # noqa: SIM110
        if not wp.isfinite(values[first + k]):
            return False
    return True


@wp.func
def read_vec3(address: wp.uint64, offset: int) -> wp.vec3d:
    """Return three numbers in memory."""
    return wp.vec3d(
        read_number(address, offset), read_number(address, offset + 8), read_number(address, offset + 16)
    )


@wp.func
def read_vec2(address: wp.uint64, offset: int) -> wp.vec2d:
    """Return two numbers in memory."""
    return wp.vec2d(read_number(address, offset), read_number(address, offset + 8))


@wp.func
def write_vec3(address: wp.uint64, offset: int, value: wp.vec3d):
    """Write three numbers to memory."""
    for k in range(3):
        write_number(address, offset + 8 * k, value[k])


@wp.func
def read_mat33(address: wp.uint64, offset: int) -> wp.mat33d:
    """Return nine numbers in memory, row by row."""
    matrix = wp.mat33d()
    for row in range(3):
        for column in range(3):
            matrix[row, column] = read_number(address, offset + 8 * (3 * row + column))
    return matrix


@wp.func
def call(engine: CpuEngineData, function: int, model: wp.uint64, data: wp.uint64) -> int:
    """Call a function of MuJoCo on a model and data; return 1 if it ended with an error."""
    return call_guarded(
        engine.function[function],
        model,
        data,
        engine.function[HANDLER],
        engine.function[HANDLER + 1],
        engine.function[HANDLER + 2],
        engine.function[HANDLER + 3],
    )


@wp.func
def body_pose(engine: CpuEngineData, base: int, geom: int):
    """Return position and rotation of the body that carries a geom, as in the step just made."""
    body = read_integer(engine.address[base + GEOM_BODYID], 4 * geom)
    return read_vec3(engine.address[base + XPOS], 24 * body), read_mat33(
        engine.address[base + XMAT], 72 * body
    )


@wp.func
def narrow(a: wp.vec3d) -> wp.vec3:
    """Return a vector in single precision."""
    return wp.vec3(float(a[0]), float(a[1]), float(a[2]))


@wp.func
def widen(a: wp.vec3) -> wp.vec3d:
    """Return a vector in double precision."""
    return wp.vec3d(wp.float64(a[0]), wp.float64(a[1]), wp.float64(a[2]))


@wp.func
def force_on_second(engine: CpuEngineData, base: int, contact: int, address: wp.uint64) -> wp.vec3:
    """Return the force on the body of the second geom [N], world axes."""
    if read_integer(address, engine.layout[L_EFC]) < 0:
        return wp.vec3()
    force = contact_force(
        engine.function[CONTACT_FORCE], engine.address[base + MODEL], engine.address[base + DATA], contact
    )
    return narrow(wp.transpose(read_mat33(address, engine.layout[L_FRAME])) * force)


@wp.func
def list_contacts(
    topology: Topology,
    maps: ExchangeMaps,
    engine: CpuEngineData,
    base: int,
    world: int,
    contacts: ContactArrays,
) -> int:
    """Write the contacts that took part in the step, as many as there are slots; return their number."""
    layout = engine.layout
    total = read_integer(engine.address[base + DATA], layout[L_NCON])
    start = contacts.start[world]
    capacity = contacts.start[world + 1] - start
    found = int(0)
    for contact in range(total):
        address = engine.address[base + CONTACT] + wp.uint64(contact * layout[CONTACT_SIZE])
        if read_integer(address, layout[L_EXCLUDE]) == 0:
            if found < capacity:
                slot = start + found
                geom0 = read_integer(address, layout[L_GEOM1])
                geom1 = read_integer(address, layout[L_GEOM2])
                normal = read_vec3(address, layout[L_FRAME])
                middle = read_vec3(address, layout[L_POS])
                half = wp.float64(0.5) * read_number(address, layout[L_DIST]) * normal
                position0, rotation0 = body_pose(engine, base, geom0)
                position1, rotation1 = body_pose(engine, base, geom1)
                contacts.shape0[slot] = shape_of_geom(topology, maps, world, geom0)
                contacts.shape1[slot] = shape_of_geom(topology, maps, world, geom1)
                contacts.point0[slot] = narrow(wp.transpose(rotation0) * (middle - half - position0))
                contacts.point1[slot] = narrow(wp.transpose(rotation1) * (middle + half - position1))
                contacts.normal[slot] = narrow(normal)
                margin = 0.5 * float(read_number(address, layout[L_MARGIN]))
                contacts.margin0[slot] = margin
                contacts.margin1[slot] = margin
                contacts.force[slot] = force_on_second(engine, base, contact, address)
            found += 1
    contacts.found[world] = found
    contacts.count[world] = wp.min(found, capacity)
    return found


@wp.func
def set_contact_parameters(
    maps: ExchangeMaps,
    engine: CpuEngineData,
    base: int,
    world: int,
    geom0: int,
    geom1: int,
    address: wp.uint64,
):
    """Write friction, impedance and reference of a contact, mixed from its geoms as MuJoCo does.

    The weights are those of `solmix`, and a geom of higher priority decides alone. Where stiffness and
    damping are forces, the time constant and damping ratio come from the sum of the inverse masses of both
    bodies.
    """
    layout = engine.layout
    first, second = geom0, geom1
    priority0 = read_integer(engine.address[base + GEOM_PRIORITY], 4 * geom0)
    priority1 = read_integer(engine.address[base + GEOM_PRIORITY], 4 * geom1)
    if priority0 > priority1:
        second = geom0
    if priority1 > priority0:
        first = geom1
    mix0 = read_number(engine.address[base + GEOM_SOLMIX], 8 * first)
    mix1 = read_number(engine.address[base + GEOM_SOLMIX], 8 * second)
    weight = mix_weight(mix0, mix1)
    other = wp.float64(1.0) - weight

    condim = wp.max(
        read_integer(engine.address[base + GEOM_CONDIM], 4 * first),
        read_integer(engine.address[base + GEOM_CONDIM], 4 * second),
    )
    write_integer(address, layout[L_DIM], condim)
    for k in range(5):
        write_number(
            address,
            layout[L_SOLIMP] + 8 * k,
            weight * read_number(engine.address[base + GEOM_SOLIMP], 40 * first + 8 * k)
            + other * read_number(engine.address[base + GEOM_SOLIMP], 40 * second + 8 * k),
        )
        axis = wp.clamp(k - 1, 0, 2)  # sliding twice, torsion, rolling twice
        friction = wp.max(
            read_number(engine.address[base + GEOM_FRICTION], 24 * first + 8 * axis),
            read_number(engine.address[base + GEOM_FRICTION], 24 * second + 8 * axis),
        )
        write_number(address, layout[L_FRICTION] + 8 * k, wp.max(friction, FRICTION_MIN))

    body0 = read_integer(engine.address[base + GEOM_BODYID], 4 * geom0)
    body1 = read_integer(engine.address[base + GEOM_BODYID], 4 * geom1)
    inverse_mass = read_number(engine.address[base + BODY_INVWEIGHT], 16 * body0) + read_number(
        engine.address[base + BODY_INVWEIGHT], 16 * body1
    )
    dmax = read_number(address, layout[L_SOLIMP] + 8)
    factor = inverse_mass * (wp.float64(1.0) - dmax)
    row = maps.world_start[world, NGEOM]
    solref = mix_solref(
        weight,
        factor,
        engine.geom_force_space[row + first] != 0,
        engine.geom_force_space[row + second] != 0,
        wp.vec2d(engine.geom_ke[row + first], engine.geom_kd[row + first]),
        wp.vec2d(engine.geom_ke[row + second], engine.geom_kd[row + second]),
        read_vec2(engine.address[base + GEOM_SOLREF], 16 * first),
        read_vec2(engine.address[base + GEOM_SOLREF], 16 * second),
    )
    write_number(address, layout[L_SOLREF], solref[0])
    write_number(address, layout[L_SOLREF] + 8, solref[1])


@wp.func
def feed_contacts(
    topology: Topology,
    maps: ExchangeMaps,
    engine: CpuEngineData,
    base: int,
    world: int,
    contacts: ContactArrays,
    scratch: wp.uint64,
) -> int:
    """Hand the contacts of a world that press to MuJoCo; return how many."""
    layout = engine.layout
    start = contacts.start[world]
    added = int(0)
    for slot in range(start, start + contacts.count[world]):
        engine.slot_contact[slot] = -1
        geom0 = geom_of_shape(topology, maps, world, contacts.shape0[slot])
        geom1 = geom_of_shape(topology, maps, world, contacts.shape1[slot])
        if geom0 >= 0 and geom1 >= 0:
            position0, rotation0 = body_pose(engine, base, geom0)
            position1, rotation1 = body_pose(engine, base, geom1)
            point0 = position0 + rotation0 * widen(contacts.point0[slot])
            point1 = position1 + rotation1 * widen(contacts.point1[slot])
            normal = wp.normalize(widen(contacts.normal[slot]))
            margin0, margin1 = wp.float64(contacts.margin0[slot]), wp.float64(contacts.margin1[slot])
            distance = wp.dot(normal, point1 - point0)
            if distance < margin0 + margin1:
                clear_memory(scratch, wp.int64(layout[CONTACT_SIZE]))
                write_number(scratch, layout[L_DIST], distance)
                write_number(scratch, layout[L_MARGIN], margin0 + margin1)
                middle = wp.float64(0.5) * (point0 + point1 + (margin0 - margin1) * normal)
                write_vec3(scratch, layout[L_POS], middle)
                across = second_axis(normal)
                write_vec3(scratch, layout[L_FRAME], normal)
                write_vec3(scratch, layout[L_FRAME] + 24, across)
                write_vec3(scratch, layout[L_FRAME] + 48, wp.cross(normal, across))
                write_integer(scratch, layout[L_GEOM1], geom0)
                write_integer(scratch, layout[L_GEOM2], geom1)
                write_integer(scratch, layout[L_GEOM], geom0)
                write_integer(scratch, layout[L_GEOM] + 4, geom1)
                for k in range(2):
                    write_integer(scratch, layout[L_FLEX] + 4 * k, -1)
                    write_integer(scratch, layout[L_ELEM] + 4 * k, -1)
                    write_integer(scratch, layout[L_VERT] + 4 * k, -1)
                write_integer(scratch, layout[L_EFC], -1)
                set_contact_parameters(maps, engine, base, world, geom0, geom1, scratch)
                full = add_contact(
                    engine.function[ADD_CONTACT],
                    engine.address[base + MODEL],
                    engine.address[base + DATA],
                    scratch,
                )
                if full == 0:
                    engine.slot_contact[slot] = added
                    added += 1
    return added


@wp.func
def read_fed_forces(engine: CpuEngineData, base: int, world: int, contacts: ContactArrays):
    """Write the forces of contacts that were fed in."""
    start = contacts.start[world]
    for slot in range(start, start + contacts.count[world]):
        force = wp.vec3()
        contact = engine.slot_contact[slot]
        if contact >= 0:
            address = engine.address[base + CONTACT] + wp.uint64(contact * engine.layout[CONTACT_SIZE])
            force = force_on_second(engine, base, contact, address)
        contacts.force[slot] = force


@wp.func
def step_with_fed_contacts(
    topology: Topology,
    maps: ExchangeMaps,
    engine: CpuEngineData,
    base: int,
    world: int,
    contacts: ContactArrays,
    scratch: wp.uint64,
) -> int:
    """Make a step with our contacts in place of MuJoCo's; return 1 after an error.

    `mj_step1` finds no contacts, so the constraints are made anew behind it, with what it made of positions
    and velocities, before `mj_step2` solves and integrates.
    """
    model, data = engine.address[base + MODEL], engine.address[base + DATA]
    flags = engine.address[base + DISABLEFLAGS]
    switches = read_integer(flags, 0)
    write_integer(flags, 0, switches | DISABLE_CONTACT)
    failed = call(engine, STEP1, model, data)
    write_integer(flags, 0, switches)
    if failed == 0:
        feed_contacts(topology, maps, engine, base, world, contacts, scratch)
        failed = call(engine, MAKE_CONSTRAINT, model, data)
    if failed == 0:
        failed = call(engine, ISLAND, model, data)
    if failed == 0:
        failed = call(engine, PROJECT_CONSTRAINT, model, data)
    if failed == 0:
        failed = call(engine, REFERENCE_CONSTRAINT, model, data)
    if failed == 0:
        failed = call(engine, STEP2, model, data)
    return failed


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.cpu_step")
def step_world(
    worlds: wp.array[int],
    topology: Topology,
    maps: ExchangeMaps,
    engine: CpuEngineData,
    rows: Rows,
    contacts: ContactArrays,
    feed: int,  # 1: the contacts are fed in, 0: MuJoCo finds and lists them
    lane_scratch: wp.array[wp.uint64],  # [lane] memory for one contact
    dt: wp.float64,
    outcome: CpuOutcome,
):
    """Make one step of one world."""
    world = worlds[wp.tid()]
    outcome.stepped[world] = 0
    outcome.full_now[world] = 0
    start = contacts.start[world]
    if outcome.frozen[world] != 0:
        outcome.contact_count[world] = 0
        outcome.iterations[world] = 0
        if feed == 0:
            contacts.found[world] = 0
            contacts.count[world] = 0
        for slot in range(start, start + contacts.count[world]):
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

    count = int(0)
    iterations = int(0)
    converged = int(1)
    failed = int(0)
    if sound:
        # The lane of the world before, which the same thread has just left, is warm.
        lane = take_lane(
            engine.lane_taken, engine.world_lane[worlds[wp.max(wp.tid() - 1, 0)]], engine.lane_count
        )
        engine.world_lane[world] = lane
        base = (lane * engine.group_count + group) * ADDRESS_COUNT
        model, data = engine.address[base + MODEL], engine.address[base + DATA]
        for entry in range(engine.field_count[group]):
            size = engine.field_size[group, entry]
            row = wp.uint64(wp.int64(maps.world_row[world]) * size)
            copy_memory(
                engine.field_target[lane, group, entry], engine.field_source[group, entry] + row, size
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
        for island in range(engine.layout[ISLAND_COUNT]):
            write_integer(engine.address[base + NITER], 4 * island, 0)

        if feed != 0:
            failed = step_with_fed_contacts(topology, maps, engine, base, world, contacts, lane_scratch[lane])
        else:
            failed = call(engine, STEP, model, data)

        if failed != 0:
            call(engine, RESET_DATA, model, data)
        else:
            for kind in range(L_BAD_QPOS, L_BAD_CTRL + 1):
                if read_integer(warning, engine.layout[kind]) != 0:
                    sound = False
            full = read_integer(warning, engine.layout[L_CONTACT_FULL])
            if full + read_integer(warning, engine.layout[L_CONSTRAINT_FULL]) != 0:
                outcome.full_now[world] = 1
                outcome.full[world] = outcome.full[world] + 1
            for island in range(engine.layout[ISLAND_COUNT]):
                iterations = wp.max(iterations, read_integer(engine.address[base + NITER], 4 * island))
            limit = read_integer(model, engine.layout[L_ITERATIONS])
            if iterations >= limit and limit > 0:
                converged = 0
            if engine.limit_speeds != 0:
                limit_speeds(
                    world,
                    topology,
                    maps,
                    engine.velocity_limit,
                    engine.function[SOLVE_MASS],
                    engine.function[INTEGRATE_POSITIONS],
                    model,
                    data,
                    engine.address[base + QPOS],
                    engine.address[base + QVEL],
                    engine.speed_scratch[lane],
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
                if feed != 0:
                    read_fed_forces(engine, base, world, contacts)
                    count = read_integer(data, engine.layout[L_NCON])
                else:
                    count = list_contacts(topology, maps, engine, base, world, contacts)
        leave_lane(engine.lane_taken, lane)

    outcome.iterations[world] = iterations
    outcome.converged[world] = converged
    outcome.contact_count[world] = count
    if not sound:
        outcome.frozen[world] = 1
    if failed != 0:
        outcome.failed[world] = outcome.failed[world] + 1
    if sound and failed == 0:
        outcome.stepped[world] = 1
        outcome.known[world] = 1
        outcome.needed_count[world] = wp.max(outcome.needed_count[world], count)
        if converged == 0:
            outcome.unconverged[world] = outcome.unconverged[world] + 1
        if feed == 0 and count > contacts.start[world + 1] - start:
            outcome.unlisted[world] = outcome.unlisted[world] + 1
    else:
        outcome.known[world] = 0
        if feed == 0:
            contacts.found[world] = 0
            contacts.count[world] = 0
        for slot in range(start, start + contacts.count[world]):
            contacts.force[slot] = wp.vec3()
