"""CPU contacts: list the contacts that MuJoCo found in a step, or pass it external ones instead.

Reads   contacts in MuJoCo's data, or a contact buffer; contact properties of geoms
Writes  a contact buffer with forces, or contacts in MuJoCo's data
"""

import warp as wp

from pluriverse.model import Topology
from pluriverse.model.contacts import stored_contact_count
from pluriverse.solvers.mujoco.cpu.memory import (
    ADD_CONTACT,
    CONTACT_FORCE,
    CONTACT_SIZE,
    DISABLE_CONTACT,
    FRICTION_MIN,
    ISLAND,
    L_DIM,
    L_DIST,
    L_EFC,
    L_ELEM,
    L_EXCLUDE,
    L_FLEX,
    L_FRAME,
    L_FRICTION,
    L_GEOM,
    L_GEOM1,
    L_GEOM2,
    L_MARGIN,
    L_NCON,
    L_POS,
    L_SOLIMP,
    L_SOLREF,
    L_VERT,
    MAKE_CONSTRAINT,
    PROJECT_CONSTRAINT,
    REFERENCE_CONSTRAINT,
    STEP1,
    STEP2,
    CpuEngineData,
    body_pose,
    call,
    narrow,
    read_mat33,
    read_vec2,
    read_vec3,
    widen,
    write_vec3,
)
from pluriverse.solvers.mujoco.cpu.native_call import (
    add_contact,
    clear_memory,
    contact_force,
    read_integer,
    read_number,
    write_integer,
    write_number,
)
from pluriverse.solvers.mujoco.cpu.worker import (
    BODY_INVWEIGHT,
    CONTACT,
    DATA,
    DISABLEFLAGS,
    GEOM_BODYID,
    GEOM_CONDIM,
    GEOM_FRICTION,
    GEOM_PRIORITY,
    GEOM_SOLIMP,
    GEOM_SOLMIX,
    GEOM_SOLREF,
    MODEL,
)
from pluriverse.solvers.mujoco.exchange.contact_copy import ContactArrays
from pluriverse.solvers.mujoco.exchange.contact_mixing import mixing_functions
from pluriverse.solvers.mujoco.exchange.maps import (
    NGEOM,
    ExchangeMaps,
    geom_of_shape,
    shape_of_geom,
)

mix_weight = mixing_functions(wp.float64).mix_weight
mix_solref = mixing_functions(wp.float64).mix_solref
patch_solref = mixing_functions(wp.float64).patch_solref
second_axis = mixing_functions(wp.float64).second_axis


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
    are_read: int,
) -> int:
    """Write the contacts that took part in the step, as many as there are slots; return their number.

    Where they are not read before the next step, they are only counted.
    """
    layout = engine.layout
    total = read_integer(engine.address[base + DATA], layout[L_NCON])
    start = contacts.start[world]
    capacity = contacts.start[world + 1] - start
    if are_read == 0:
        capacity = 0
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
    if are_read != 0:
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
    stiffness: float,
    address: wp.uint64,
):
    """Write friction, impedance and reference of a contact, mixed from its geoms as MuJoCo does.

    The weights are those of `solmix`, and a geom of higher priority decides alone. For force-space gains, the
    time constant and damping ratio come from the sum of the inverse masses of both bodies. A contact of a
    pressure patch has its own `stiffness` [N/m] instead, others 0.
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
    if stiffness > 0.0:
        solref = patch_solref(
            wp.float64(stiffness),
            factor,
            engine.geom_force_space[row + geom0] != 0,
            engine.geom_force_space[row + geom1] != 0,
            wp.vec2d(engine.geom_ke[row + geom0], engine.geom_kd[row + geom0]),
            wp.vec2d(engine.geom_ke[row + geom1], engine.geom_kd[row + geom1]),
        )
    write_number(address, layout[L_SOLREF], solref[0])
    write_number(address, layout[L_SOLREF] + 8, solref[1])


@wp.func
def is_shape_of(topology: Topology, maps: ExchangeMaps, world: int, shape: int) -> bool:
    """Return whether a flat shape belongs to a world or is global."""
    if shape < 0 or shape >= maps.shape_number.shape[0]:
        return False
    group = maps.world_group[world]
    local = shape - topology.world_shape[world]
    return (local >= 0 and local < maps.group_shape[group + 1] - maps.group_shape[group]) or (
        maps.shape_number[shape] >= 0
    )


@wp.func
def push_external_contacts(
    topology: Topology,
    maps: ExchangeMaps,
    engine: CpuEngineData,
    base: int,
    world: int,
    contacts: ContactArrays,
    scratch: wp.uint64,
) -> int:
    """Pass the pressing contacts of a world to MuJoCo; return their number, -1 if one names no shape."""
    layout = engine.layout
    start = contacts.start[world]
    added = int(0)
    for slot in range(start, start + stored_contact_count(contacts.start, contacts.count, world)):
        engine.slot_contact[slot] = -1
        if not (
            is_shape_of(topology, maps, world, contacts.shape0[slot])
            and is_shape_of(topology, maps, world, contacts.shape1[slot])
        ):
            return -1  # somebody wrote there; to leave the contact out would be a wrong simulation
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
                stiffness = float(0.0)
                if contacts.stiffness.shape[0] > 0:
                    stiffness = contacts.stiffness[slot]
                set_contact_parameters(maps, engine, base, world, geom0, geom1, stiffness, scratch)
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
def pull_external_forces(engine: CpuEngineData, base: int, world: int, contacts: ContactArrays):
    """Write the forces of external contacts."""
    start = contacts.start[world]
    for slot in range(start, start + stored_contact_count(contacts.start, contacts.count, world)):
        force = wp.vec3()
        contact = engine.slot_contact[slot]
        if contact >= 0:
            address = engine.address[base + CONTACT] + wp.uint64(contact * engine.layout[CONTACT_SIZE])
            force = force_on_second(engine, base, contact, address)
        contacts.force[slot] = force


@wp.func
def step_with_external_contacts(
    topology: Topology,
    maps: ExchangeMaps,
    engine: CpuEngineData,
    base: int,
    world: int,
    contacts: ContactArrays,
    scratch: wp.uint64,
) -> int:
    """Make a step with our contacts in place of MuJoCo's; return 1 after an error, -1 for a bad contact.

    `mj_step1` finds no contacts, so the constraints are rebuilt after it, from its positions and velocities,
    before `mj_step2` solves and integrates.
    """
    model, data = engine.address[base + MODEL], engine.address[base + DATA]
    flags = engine.address[base + DISABLEFLAGS]
    switches = read_integer(flags, 0)
    write_integer(flags, 0, switches | DISABLE_CONTACT)
    failed = call(engine, STEP1, model, data)
    write_integer(flags, 0, switches)
    if failed == 0:
        if push_external_contacts(topology, maps, engine, base, world, contacts, scratch) < 0:
            return -1
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
