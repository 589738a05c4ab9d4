"""External contacts: pass the contacts of a buffer to MuJoCo Warp, and copy their forces back.

Reads   contacts; poses of bodies; contact properties of geoms
Writes  contacts of MuJoCo Warp's data, one per slot; forces of the buffer

Every slot of the buffer has its own entry in MuJoCo Warp's store, so worlds do not interact. A slot without a
pressing contact holds a separated one.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import fill_struct
from pluriverse.model import Contacts, Topology
from pluriverse.model.contacts import stored_contact_count
from pluriverse.solvers.mujoco.exchange.contact_copy import ContactArrays
from pluriverse.solvers.mujoco.exchange.contact_mixing import mixing_functions
from pluriverse.solvers.mujoco.exchange.maps import NGEOM, ExchangeMaps, geom_of_shape
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup

VEC5 = wp.types.vector(length=5, dtype=wp.float32)
FRICTION_MIN = wp.constant(1e-5)  # `mjMINMU`
FAR_AWAY = wp.constant(1e6)  # m, for slots without contact
CONSTRAINT = wp.constant(1)  # `ContactType.CONSTRAINT`

mix_weight = mixing_functions(wp.float32).mix_weight
mix_solref = mixing_functions(wp.float32).mix_solref
patch_solref = mixing_functions(wp.float32).patch_solref
second_axis = mixing_functions(wp.float32).second_axis


@wp.struct
class GeomProperties:
    """Contact properties in MuJoCo Warp's model, shape [row or 1, geom or body]."""

    geom_bodyid: wp.array[int]
    geom_priority: wp.array[int]
    geom_condim: wp.array[int]
    geom_solmix: wp.array2d[float]
    geom_solref: wp.array2d[wp.vec2]
    geom_solimp: wp.array2d[VEC5]
    geom_friction: wp.array2d[wp.vec3]
    body_invweight0: wp.array2d[wp.vec2]


@wp.struct
class ForceGains:
    """Force-space stiffness and damping, shape [world geom]."""

    is_force: wp.array[int]
    ke: wp.array[float]
    kd: wp.array[float]


@wp.struct
class WarpContactStore:
    """Contacts in MuJoCo Warp's data, shape [entry]."""

    count: wp.array[int]  # [1]
    worldid: wp.array[int]
    geom: wp.array[wp.vec2i]
    flex: wp.array[wp.vec2i]
    elem: wp.array[wp.vec2i]
    vert: wp.array[wp.vec2i]
    dist: wp.array[float]
    pos: wp.array[wp.vec3]
    frame: wp.array[wp.mat33]
    includemargin: wp.array[float]
    friction: wp.array[VEC5]
    solref: wp.array[wp.vec2]
    solreffriction: wp.array[wp.vec2]
    solimp: wp.array[VEC5]
    dim: wp.array[int]
    type: wp.array[int]
    geomcollisionid: wp.array[int]


@wp.func
def in_world(
    shape_body: wp.array[int], body_q: wp.array[wp.transform], shape: int, point: wp.vec3
) -> wp.vec3:
    """Return a point in the frame of the body of a shape in world axes."""
    body = shape_body[shape]
    if body < 0:
        return point
    return wp.transform_point(body_q[body], point)


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.warp.external_contacts")
def clear_external_count(
    group_worlds: wp.array[int],  # [row]
    pressing: wp.array[int],  # [world] contacts that press
):
    """Reset the number of pressing contacts of a world."""
    row, _ = wp.tid()
    pressing[group_worlds[row]] = 0


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.warp.external_contacts")
def push_external_contact(
    slots: wp.array[int],  # [place] slot of the buffer
    slot_rows: wp.array[int],  # [place] row of its world
    group_worlds: wp.array[int],  # [row]
    topology: Topology,
    maps: ExchangeMaps,
    shape_body: wp.array[int],  # [shape]
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    listed: wp.array[int],  # [world]
    frozen: wp.array[int],  # [world]
    contacts: ContactArrays,
    properties: GeomProperties,
    gains: ForceGains,
    target: WarpContactStore,
    pressing: wp.array[int],  # [world] contacts that press
):
    """Pass one slot to MuJoCo Warp."""
    index, _ = wp.tid()
    slot, row = slots[index], slot_rows[index]
    world = group_worlds[row]
    if index == 0:
        target.count[0] = slots.shape[0]
    target.worldid[index] = row
    target.type[index] = CONSTRAINT
    target.geomcollisionid[index] = 0
    if target.flex.shape[0] > index:  # without soft bodies there may be none
        target.flex[index] = wp.vec2i(-1, -1)
        target.elem[index] = wp.vec2i(-1, -1)
        target.vert[index] = wp.vec2i(-1, -1)
    target.dist[index] = FAR_AWAY
    target.includemargin[index] = 0.0
    target.dim[index] = 1
    target.geom[index] = wp.vec2i(0, 0)
    if (
        slot - contacts.start[world] >= stored_contact_count(contacts.start, contacts.count, world)
        or listed[world] == 0
        or frozen[world] != 0
    ):
        return
    shape0, shape1 = contacts.shape0[slot], contacts.shape1[slot]
    geom0 = geom_of_shape(topology, maps, world, shape0)
    geom1 = geom_of_shape(topology, maps, world, shape1)
    if geom0 < 0 or geom1 < 0:
        return
    point0 = in_world(shape_body, body_q, shape0, contacts.point0[slot])
    point1 = in_world(shape_body, body_q, shape1, contacts.point1[slot])
    normal = wp.normalize(contacts.normal[slot])
    margin0, margin1 = contacts.margin0[slot], contacts.margin1[slot]
    distance = wp.dot(normal, point1 - point0)
    if distance >= margin0 + margin1:
        return
    wp.atomic_add(pressing, world, 1)
    first, second = geom0, geom1
    if properties.geom_priority[geom0] > properties.geom_priority[geom1]:
        second = geom0
    if properties.geom_priority[geom1] > properties.geom_priority[geom0]:
        first = geom1
    mix = row % properties.geom_solmix.shape[0]
    weight = mix_weight(properties.geom_solmix[mix, first], properties.geom_solmix[mix, second])
    imp = row % properties.geom_solimp.shape[0]
    solimp = weight * properties.geom_solimp[imp, first]
    solimp += (1.0 - weight) * properties.geom_solimp[imp, second]
    rub = row % properties.geom_friction.shape[0]
    friction = wp.max(properties.geom_friction[rub, first], properties.geom_friction[rub, second])
    friction = wp.max(friction, wp.vec3(FRICTION_MIN, FRICTION_MIN, FRICTION_MIN))
    weights = row % properties.body_invweight0.shape[0]
    inverse_mass = properties.body_invweight0[weights, properties.geom_bodyid[geom0]][0]
    inverse_mass += properties.body_invweight0[weights, properties.geom_bodyid[geom1]][0]
    ref = row % properties.geom_solref.shape[0]
    entry = maps.world_start[world, NGEOM]
    factor = inverse_mass * (1.0 - solimp[1])
    target.solref[index] = mix_solref(
        weight,
        factor,
        gains.is_force[entry + first] != 0,
        gains.is_force[entry + second] != 0,
        wp.vec2(gains.ke[entry + first], gains.kd[entry + first]),
        wp.vec2(gains.ke[entry + second], gains.kd[entry + second]),
        properties.geom_solref[ref, first],
        properties.geom_solref[ref, second],
    )
    if contacts.stiffness.shape[0] > 0:
        if contacts.stiffness[slot] > 0.0:
            target.solref[index] = patch_solref(
                contacts.stiffness[slot],
                factor,
                gains.is_force[entry + geom0] != 0,
                gains.is_force[entry + geom1] != 0,
                wp.vec2(gains.ke[entry + geom0], gains.kd[entry + geom0]),
                wp.vec2(gains.ke[entry + geom1], gains.kd[entry + geom1]),
            )
    target.solreffriction[index] = wp.vec2(0.0, 0.0)
    target.solimp[index] = solimp
    target.friction[index] = VEC5(friction[0], friction[0], friction[1], friction[2], friction[2])
    target.dim[index] = wp.max(properties.geom_condim[first], properties.geom_condim[second])
    target.geom[index] = wp.vec2i(geom0, geom1)
    target.dist[index] = distance
    target.includemargin[index] = margin0 + margin1
    target.pos[index] = 0.5 * (point0 + point1 + (margin0 - margin1) * normal)
    across = second_axis(normal)
    third = wp.cross(normal, across)
    target.frame[index] = wp.mat33(
        normal[0],
        normal[1],
        normal[2],
        across[0],
        across[1],
        across[2],
        third[0],
        third[1],
        third[2],
    )


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.warp.external_contacts")
def pull_external_force(
    slots: wp.array[int],  # [place]
    slot_rows: wp.array[int],  # [place]
    group_worlds: wp.array[int],  # [row]
    listed: wp.array[int],  # [world]
    dist: wp.array[float],  # [place]
    source: wp.array[wp.spatial_vector],  # [place] force and torque, world axes
    force: wp.array[wp.vec3],  # [slot]
):
    """Copy back the force of one slot."""
    index, _ = wp.tid()
    if listed[group_worlds[slot_rows[index]]] == 0:
        return
    result = wp.vec3()
    if dist[index] < FAR_AWAY:
        result = wp.spatial_top(source[index])
    force[slots[index]] = result


class ExternalContacts:
    """Transfer from the slots of a buffer to the contacts of one group.

    Args:
        group: The group.
        contacts: The buffer.
        model: MuJoCo Warp's model of the group.
        data: Its data, with room for all slots of the group's worlds.
        device: Device of all of them.
    """

    def __init__(self, group: MujocoGroup, contacts: Contacts, model: Any, data: Any, device: wp.Device):
        slots, rows = group_slots(group, contacts)
        self.slots: Any = wp.array(slots, dtype=int, device=device)
        self.rows: Any = wp.array(rows, dtype=int, device=device)
        self.properties = fill_struct(GeomProperties, model)
        self.target = fill_struct(WarpContactStore, SimpleNamespace(count=data.nacon), data.contact)


def group_slots(group: MujocoGroup, contacts: Contacts) -> tuple[np.ndarray, np.ndarray]:
    """Return the slots of the worlds of a group, and the row of each."""
    start = contacts.slot_start.numpy().astype(np.int64)
    sizes = (start[1:] - start[:-1])[group.worlds]
    rows = np.repeat(np.arange(group.world_count), sizes)
    first = np.repeat(start[group.worlds] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return (first + np.arange(len(rows))).astype(np.int32), rows.astype(np.int32)
