"""Moment: everything that a viewer shows and a recording stores about a simulation at one time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.model import Model


@dataclass(frozen=True)
class ContactPoints:
    """Contacts of worlds at a moment."""

    point: np.ndarray
    """Points in the world [m], shape [contact, 3]."""
    force: np.ndarray
    """Forces on the body of the second shape [N], world axes, shape [contact, 3]."""
    world: np.ndarray
    """World of each, shape [contact]."""


@dataclass(frozen=True)
class Moment:
    """A simulation at one time, as viewers need it."""

    time: float
    """Simulated time [s]."""
    step_count: int
    """Solver steps so far."""
    body_q: np.ndarray
    """Poses of all bodies [m, xyzw], shape [body, 7]."""
    body_qd: np.ndarray
    """Velocities of all bodies, linear at the centre of mass, then angular, shape [body, 6]."""
    joint_q: np.ndarray
    """Joint coordinates, shape [coord]."""
    joint_qd: np.ndarray
    """Joint velocities, shape [dof]."""
    frozen: np.ndarray
    """Whether each world is frozen, shape [world]."""
    unconverged: np.ndarray
    """Steps of each world without convergence, shape [world]."""
    truncated: np.ndarray
    """Steps of each world that lost contacts, shape [world]."""
    contact_count: np.ndarray
    """Contacts of each world in the last step, shape [world]."""
    iterations: np.ndarray
    """Iterations of the solver for each world in the last step, shape [world]."""


def moment_of(simulation: Any) -> Moment:
    """Return a copy of the current moment of a simulation."""
    state, solver = simulation.state, simulation.solver
    return Moment(
        time=simulation.time,
        step_count=simulation.step_count,
        body_q=state.body_q.numpy().reshape(-1, 7).copy(),
        body_qd=state.body_qd.numpy().reshape(-1, 6).copy(),
        joint_q=state.joint_q.numpy().copy(),
        joint_qd=state.joint_qd.numpy().copy(),
        frozen=solver.world_frozen.numpy() != 0,
        unconverged=solver.unconverged_step_count.numpy().copy(),
        truncated=solver.truncated_step_count.numpy().copy(),
        contact_count=solver.last_contact_count.numpy().copy(),
        iterations=solver.last_solve_iterations.numpy().copy(),
    )


def contacts_of(simulation: Any, worlds: np.ndarray) -> ContactPoints:
    """Return the contacts of some worlds in the last step."""
    contacts, model = simulation.contacts, simulation.model
    start, count = contacts.rigid_contact_start.numpy(), contacts.rigid_contact_count.numpy()
    capacity = np.diff(start)
    slots, owner = [], []
    for world in worlds.tolist():
        stored = int(np.clip(count[world], 0, capacity[world]))
        slots.append(np.arange(start[world], start[world] + stored))
        owner.append(np.full(stored, world))
    slot = np.concatenate(slots) if slots else np.zeros(0, dtype=np.int64)
    shape = contacts.rigid_contact_shape0.numpy()[slot]
    body = model.shape_body.numpy()[shape]
    local = contacts.rigid_contact_point0.numpy()[slot].astype(np.float64)
    poses = simulation.state.body_q.numpy().reshape(-1, 7)[np.maximum(body, 0)].astype(np.float64)
    points = np.where((body >= 0)[:, None], poses[:, :3] + rotated(poses[:, 3:], local), local)
    force = contacts.rigid_contact_force.numpy()[slot].astype(np.float64)
    return ContactPoints(points, force, np.concatenate(owner) if owner else np.zeros(0, dtype=np.int64))


def rotated(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return vectors rotated by unit quaternions xyzw, shape [row, 3]."""
    axis, real = quaternion[:, :3], quaternion[:, 3:]
    twice = 2.0 * np.cross(axis, vector)
    return vector + real * twice + np.cross(axis, twice)


def energies(model: Model, moment: Moment, world: int) -> tuple[float, float]:
    """Return the kinetic and the potential energy of a world [J], of its bodies' masses alone."""
    start = model.body_world_start.numpy()
    bodies = slice(int(start[world]), int(start[world + 1])) if model.world_count > 1 else slice(None)
    mass = model.body_mass.numpy()[bodies].astype(np.float64)
    pose = moment.body_q[bodies].astype(np.float64)
    velocity = moment.body_qd[bodies].astype(np.float64)
    inertia = model.body_inertia.numpy()[bodies].astype(np.float64)
    com = pose[:, :3] + rotated(pose[:, 3:], model.body_com.numpy()[bodies].astype(np.float64))
    opposite = pose[:, 3:] * np.array([-1.0, -1.0, -1.0, 1.0])
    spin = rotated(opposite, velocity[:, 3:])
    turning = 0.5 * np.einsum("bi,bij,bj->", spin, inertia, spin)
    moving = 0.5 * float((mass * (velocity[:, :3] ** 2).sum(axis=1)).sum())
    gravity = model.gravity.numpy().reshape(-1, 3)[world if len(model.gravity) > 1 else 0].astype(np.float64)
    return moving + float(turning), -float((mass * (com @ gravity)).sum())
