"""Contact readings: the contact force on each body, as a mean over substeps.

Reads   contacts with their forces, body_q, body_com
Writes  net force and torque on each body
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.gymapi.enums import ContactCollection
from pluriverse.gymapi.runtime import Runtime
from pluriverse.gymapi.scene import Sim
from pluriverse.gymapi.values import RigidContact
from pluriverse.launch import launch_kernel
from pluriverse.model import Contacts, State, Topology, poses
from pluriverse.model.contacts import stored_contact_count

_MODULE = "pluriverse.gymapi.contact_readings"


_FRICTIONS = (("friction", "mu"), ("torsion_friction", "mu_torsional"), ("rolling_friction", "mu_rolling"))
"""Fields of contacts, and the material of which they have the mean of both shapes."""


@wp.kernel(enable_backward=False, module=_MODULE)
def add_contact_forces(
    worlds: wp.array[int],
    body_row: wp.array[int],  # [body of the model]
    shape_body: wp.array[int],  # [shape]
    contact_start: wp.array[int],  # [world + 1]
    contact_count: wp.array[int],  # [world]
    contact_shape0: wp.array[int],  # [slot]
    contact_shape1: wp.array[int],  # [slot]
    contact_point0: wp.array[wp.vec3],  # [slot] m, body frame
    contact_point1: wp.array[wp.vec3],  # [slot] m, body frame
    contact_force: wp.array[wp.vec3],  # [slot] N, world axes
    topology: Topology,
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_com: wp.array[wp.vec3],  # [body] m, body frame
    weight: wp.array[float],  # [1] of each substep; or, negative, the last substep alone counts
    net_force: wp.array[wp.vec3],  # [body] N, world axes
    net_torque: wp.array[wp.vec3],  # [body] N m about the centre of mass, world axes
):
    """Add the contacts of one world to the readings of its bodies."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    share = weight[0]
    if share < 0.0:
        share = 1.0
        template = topology.world_template[world]
        first = topology.world_body[world]
        count = topology.template_body[template + 1] - topology.template_body[template]
        for body in range(first, first + count):
            row = body_row[body]
            if row >= 0:
                net_force[row] = wp.vec3()
                net_torque[row] = wp.vec3()
    if share == 0.0:
        return
    start = contact_start[world]
    for slot in range(start, start + stored_contact_count(contact_start, contact_count, world)):
        force = share * contact_force[slot]
        if wp.length_sq(force) == 0.0:
            continue  # most contacts are near ones that do not push
        for side in range(2):
            shape = contact_shape0[slot]
            point = contact_point0[slot]
            push = -force
            if side == 1:
                shape = contact_shape1[slot]
                point = contact_point1[slot]
                push = force
            if shape < 0 or shape >= shape_body.shape[0]:
                continue  # somebody wrote there
            body = shape_body[shape]
            if body >= 0:
                row = body_row[body]
                arm = wp.quat_rotate(wp.transform_get_rotation(body_q[body]), point - body_com[body])
                net_force[row] = net_force[row] + push
                net_torque[row] = net_torque[row] + wp.cross(arm, push)


class ContactReadings:
    """Net contact forces of the last `simulate`.

    Args:
        runtime: The prepared sim.
    """

    def __init__(self, runtime: Runtime):
        self._runtime = runtime
        device, count = runtime.device, runtime.bodies.body.size
        self.force = wp.zeros(count, dtype=wp.vec3, device=device)
        """Force on each body [N], shape [body]."""
        self.torque = wp.zeros(count, dtype=wp.vec3, device=device)
        """Torque about its centre of mass [N·m], shape [body]."""
        self._weight = wp.zeros(1, dtype=float, device=device)
        self._weight_given = 0.0
        runtime.before_step.append(self._begin)
        runtime.read_contacts = self.collect

    def _begin(self, dt: float) -> None:
        """Clear the readings, and set the weight of the substeps, which recorded steps read."""
        self.force.zero_()
        self.torque.zero_()
        collection = int(self._runtime.params.physx.contact_collection)
        weight = -1.0
        if collection == ContactCollection.CC_ALL_SUBSTEPS:
            weight = 1.0 / self._runtime.substeps
        elif collection == ContactCollection.CC_NEVER:
            weight = 0.0
        if weight != self._weight_given:
            self._weight.fill_(weight)
            self._weight_given = weight

    def collect(self, contacts: Contacts, state: State, worlds: wp.array) -> None:
        """Add the contacts of one substep of some worlds. Only launches."""
        model = self._runtime.model
        launch_kernel(
            add_contact_forces,
            dim=worlds.size,
            inputs=[
                worlds,
                self._runtime.body_row,
                model.structure.shape_body,
                contacts.slot_start,
                contacts.rigid_contact_count,
                contacts.rigid_contact_shape0,
                contacts.rigid_contact_shape1,
                contacts.rigid_contact_point0,
                contacts.rigid_contact_point1,
                contacts.rigid_contact_force,
                model.topology,
                state.body_q,
                model.body_com,
                self._weight,
            ],
            outputs=[self.force, self.torque],
            device=model.device,
        )


def contact_records(sim: Sim, world: int | None) -> np.ndarray:
    """Return the contacts of the last solver step, of one world or all, as `RigidContact` records."""
    runtime = sim.prepared
    model, contacts = runtime.model, runtime.simulation.contacts
    start, count = contacts.slot_start.numpy(), contacts.rigid_contact_count.numpy()
    worlds = range(model.world_count) if world is None else [world]
    slots = np.concatenate(
        [np.zeros(0, dtype=np.int64), *(start[w] + np.arange(count[w]) for w in worlds)]
    ).astype(np.int64)
    records = np.zeros(len(slots), dtype=RigidContact.dtype)
    if not len(slots):
        return records
    body_env = np.full(model.body_count + 1, -1)
    body_local = np.full(model.body_count + 1, -1)
    for actor in sim.actors:
        bodies = actor.starts["body"] + np.arange(actor.asset.body_count)
        body_env[bodies] = actor.env.index
        body_local[bodies] = actor.env_body_start + np.arange(actor.asset.body_count)
    normal = contacts.rigid_contact_normal.numpy()[slots]
    force = contacts.rigid_contact_force.numpy()[slots]
    if int(sim.params.physx.contact_collection) == ContactCollection.CC_NEVER:
        force = np.zeros_like(force)
    pushed = np.sum(force * normal, axis=1)
    margins, points = np.zeros(len(slots)), []
    for side in (0, 1):
        shape = getattr(contacts, f"rigid_contact_shape{side}").numpy()[slots]
        body = model.shape_body.numpy()[shape]
        point = getattr(contacts, f"rigid_contact_point{side}").numpy()[slots]
        margin = getattr(contacts, f"rigid_contact_margin{side}").numpy()[slots]
        margins += margin
        records[f"env{side}"], records[f"body{side}"] = body_env[body], body_local[body]
        _put(records[f"local_pos{side}"], point)
        _put(records[f"offset{side}"], normal * (margin if side == 0 else -margin)[:, None])
        for field, material in _FRICTIONS:
            records[field] += 0.5 * getattr(model, f"shape_material_{material}").numpy()[shape]
        points.append(_in_world(model, runtime.simulation.state.body_q.numpy().reshape(-1, 7), body, point))
    _put(records["normal"], normal)
    records["lambda"] = pushed
    _put(records["lambda_friction"], force - pushed[:, None] * normal)
    records["min_dist"] = margins
    records["initial_overlap"] = margins - np.sum((points[1] - points[0]) * normal, axis=1)
    return records


def _in_world(model: Any, body_q: np.ndarray, body: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return the world positions of points in body frames."""
    result = point.astype(np.float64)
    moving = body >= 0
    pose = body_q[body[moving]].astype(np.float64)
    result[moving] = pose[:, :3] + poses.rotate(pose[:, 3:], result[moving])
    return result


def _put(field: np.ndarray, rows: np.ndarray) -> None:
    """Write rows of three numbers into a field of `Vec3` records."""
    for k, name in enumerate("xyz"):
        field[name] = rows[:, k]
