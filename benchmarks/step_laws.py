"""How far a step of `SolverSAP` is from the laws that it is to obey, whichever way its solution was found.

The distance to the solution of another solver says little where the laws have several solutions, and nothing
where both solvers approximate them. So velocities v and contact impulses p of a step are put into the laws of
the solver page, in NumPy and double precision, as dense matrices: Coulomb's law for each contact, drives,
limits, dry friction, and constraints between two joints. All violations are velocities [m/s or rad/s].
"""

import dataclasses
from typing import Any

import numpy as np

import pluriverse as pv
from pluriverse.solvers.sap.equality import BODIES, DISTANCE, DOFS, OFF
from pluriverse.solvers.sap.workspace import DRIVE, DRY_FRICTION, LIMIT_LOWER, LIMIT_UPPER, SPEED_LIMIT

# Contacts of two lists are the same where they belong to the same shapes and are this close together [m].
SAME_POINT = 1e-6


@dataclasses.dataclass(frozen=True)
class StepLaws:
    """The laws of one world in a step and what was found, with degrees of freedom in the solver's order."""

    mass: np.ndarray
    """A, shape [dof, dof]."""
    free: np.ndarray
    """v* [rad/s or m/s], shape [dof]."""
    velocity: np.ndarray
    """v [rad/s or m/s], shape [dof]."""
    impulse: np.ndarray
    """p of contacts, contact frame [N·s], shape [contact, 3]."""
    jacobian: np.ndarray
    """J of contacts, contact frame, shape [contact, 3, dof]."""
    contact: dict[str, np.ndarray]
    """bias v_hat, rn, rt, mu and soft of contacts, shape [contact], and their chord, shape [contact, 2]."""
    place: np.ndarray
    """Shapes and point of contacts, shape [contact, 5]."""
    joint: dict[str, np.ndarray]
    """Terms of joints, shape [dof]."""
    couplings: list[tuple[np.ndarray, float, float]]
    """J, stiffness and v_hat of each constraint between two degrees of freedom."""
    dt: float

    def joint_impulses(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the impulses of joints at v [N·s or N·m·s], shape [dof], and minus their derivative."""
        v, of, dt = self.velocity, self.joint, self.dt
        terms = of["dof_terms"]
        total, slope = np.zeros(len(v)), np.zeros((len(v), len(v)))

        def add(bit: int, gamma: np.ndarray, stiffness: Any, acts: np.ndarray) -> None:
            has = (terms & bit) != 0
            total[has] += gamma[has]
            slope[np.diag_indices(len(v))] += np.where(has & acts, stiffness, 0.0)

        with np.errstate(divide="ignore", invalid="ignore"):
            effort, limit = of["drive_offset"] - of["drive_gain"] * v, of["drive_limit"]
            add(DRIVE, dt * np.clip(effort, -limit, limit), dt * of["drive_gain"], np.abs(effort) < limit)
            stiffness = 1.0 / of["limit_regularization"]
            for bit, sign, bias in (
                (LIMIT_LOWER, 1.0, of["limit_lower_bias"]),
                (LIMIT_UPPER, -1.0, of["limit_upper_bias"]),
            ):
                lack = bias - sign * v
                add(bit, sign * np.maximum(lack, 0.0) * stiffness, stiffness, lack > 0.0)
            stiffness, most = 1.0 / of["friction_regularization"], of["friction_impulse"]
            dry = -v * stiffness
            add(DRY_FRICTION, np.clip(dry, -most, most), stiffness, np.abs(dry) < most)
            stiffness, excess = 1.0 / of["speed_regularization"], np.abs(v) - of["speed_limit"]
            add(SPEED_LIMIT, -np.sign(v) * np.maximum(excess, 0.0) * stiffness, stiffness, excess > 0.0)
        for row, coupling, bias in self.couplings:
            total += row * coupling * (bias - row @ v)
            slope += coupling * np.outer(row, row)
        return total, slope

    def momentum_violation(self) -> float:
        """Return by how much v would change if momenta were balanced: A (v - v*) = J^T p + joints."""
        impulses, slope = self.joint_impulses()
        rest = self.mass @ (self.velocity - self.free) - impulses
        rest -= np.einsum("cid,ci->d", self.jacobian, self.impulse)
        return float(np.abs(np.linalg.solve(self.mass + slope, rest)).max(initial=0.0))

    def contact_violation(self) -> float:
        """Return by how much a contact is off Coulomb's law: the z of `coulomb.py`, as a velocity.

        Friction is asked for what it should be for the normal impulse there is. So what a contact opens too
        fast counts as that, and not by the larger mobility along the surface, too.
        """
        if not len(self.impulse):
            return 0.0
        p, u, of = self.impulse, self.jacobian @ self.velocity, self.contact
        u[:, :2] += of["chord"]
        responses = np.linalg.solve(self.mass, self.jacobian.reshape(-1, len(self.mass)).T)
        mobility = np.einsum("cid,dci->ci", self.jacobian, responses.reshape(len(self.mass), -1, 3))
        normal = mobility[:, 2] + of["rn"]
        across = 0.5 * (mobility[:, 0] + mobility[:, 1]) + of["rt"]
        z_n = np.maximum(p[:, 2] - (u[:, 2] - of["bias"] + of["rn"] * p[:, 2]) / normal, 0.0)
        z_t = p[:, :2] - (u[:, :2] + of["rt"][:, None] * p[:, :2]) / across[:, None]
        size = np.hypot(np.linalg.norm(z_t, axis=1), of["soft"])
        z_t *= np.minimum(of["mu"] * np.maximum(p[:, 2], 0.0) / size, 1.0)[:, None]
        off = np.column_stack([(p[:, :2] - z_t) * across[:, None], (p[:, 2] - z_n) * normal])
        return float(np.abs(off).max())

    def omission_violation(self, complete: "StepLaws") -> float:
        """Return by how much a contact that only `complete` has closes faster than v_hat."""
        speeds = complete.jacobian[:, 2] @ self.velocity
        worst = 0.0
        for place, speed, bias in zip(complete.place, speeds, complete.contact["bias"], strict=True):
            alike = self.place[(self.place[:, :2] == place[:2]).all(axis=1), 2:]
            if not (np.abs(alike - place[2:]).max(axis=1, initial=0.0) < SAME_POINT).any():
                worst = max(worst, bias - speed)
        return float(worst)


def step_laws(simulation: pv.Simulation, world: int) -> StepLaws:
    """Return the laws of a world in the last step of a simulation with `SolverSAP`, and what was found.

    Raises:
        ValueError: If the world has ropes, or springs without stiffness.
    """
    model, solver, contacts = simulation.model, simulation.solver, simulation.contacts
    sap, dynamics = solver.workspace, solver.dynamics
    template = model.templates[model.world_template[world]]
    dof_first = int(model.topology.world_dof.numpy()[world])
    dofs = slice(dof_first, dof_first + template.dof_count)
    row_first = int(model.topology.world_row.numpy()[world])
    rows = dynamics.mass_row.numpy()[row_first : row_first + template.row_size]
    parent, depth, row = template.dof_parent, template.dof_depth, template.dof_row
    chains: list[list[int]] = []
    for dof in range(template.dof_count):
        chains.append([dof] if parent[dof] < 0 else [*chains[parent[dof]], dof])
    mass = np.zeros((template.dof_count, template.dof_count))
    for dof, chain in enumerate(chains):
        mass[dof, chain] = mass[chain, dof] = rows[row[dof] + depth[chain]]

    start = int(sap.contact_start.numpy()[world])
    slots = np.arange(start, start + int(sap.contact_count.numpy()[world]))
    slots = slots[sap.contact_rn.numpy()[slots] > 0.0]
    motion = dynamics.dof_motion.numpy()[dofs]
    jacobian = np.zeros((len(slots), 3, template.dof_count))
    frames = sap.contact_frame.numpy()[slots]
    for side, sign in ((0, -1.0), (1, 1.0)):
        last = getattr(sap, f"contact_dof{side}").numpy()[slots]
        arms = getattr(sap, f"contact_arm{side}").numpy()[slots]
        for index in np.flatnonzero(last >= 0):
            chain = chains[last[index]]
            rates = motion[chain, 3:] + np.cross(motion[chain, :3], arms[index])
            jacobian[index][:, chain] += sign * (rates @ frames[index]).T
    shapes = [getattr(contacts, f"rigid_contact_shape{side}").numpy()[slots] for side in (0, 1)]
    # The point from the reference point of the tree that moves: of shape 1, or of shape 0 if nothing moves 1.
    arms = np.where(
        (sap.contact_dof1.numpy()[slots] >= 0)[:, None],
        sap.contact_arm1.numpy()[slots],
        sap.contact_arm0.numpy()[slots],
    )
    names = [name for name in dir(sap) if name.startswith(("drive_", "limit_", "friction_", "speed_"))]
    return StepLaws(
        mass=mass,
        free=dynamics.dof_velocity_free.numpy()[dofs],
        velocity=sap.velocity.numpy()[dofs].copy(),
        impulse=sap.contact_impulse.numpy()[slots],
        jacobian=jacobian,
        contact={
            name: getattr(sap, f"contact_{name}").numpy()[slots]
            for name in ("bias", "rn", "rt", "mu", "soft", "chord")
        },
        place=np.column_stack([*shapes, arms]),
        joint={name: getattr(sap, name).numpy()[dofs].copy() for name in (*names, "dof_terms")},
        couplings=_couplings(sap, world, motion, chains),
        dt=simulation.dt,
    )


def _couplings(
    sap: Any, world: int, motion: np.ndarray, chains: list[list[int]]
) -> list[tuple[np.ndarray, float, float]]:
    """Return row, stiffness and wanted velocity of each linear law: of constraints, and of springs."""
    found = []
    spring_start, entry_start = sap.spring_start.numpy(), sap.spring_entry_start.numpy()
    for spring in range(spring_start[world], spring_start[world + 1]):
        gain, impulse = float(sap.spring_gain.numpy()[spring]), float(sap.spring_impulse.numpy()[spring])
        if gain == 0.0:
            if impulse != 0.0:
                raise ValueError(f"step_laws: a spring of world {world} has no stiffness, not checked here.")
            continue
        row, entries = np.zeros(len(chains)), slice(*entry_start[spring : spring + 2])
        np.add.at(row, sap.spring_dof.numpy()[entries], sap.spring_coefficient.numpy()[entries])
        found.append((row, gain, impulse / gain))
    start = sap.equality_start.numpy()
    for term in sap.equality.numpy()[start[world] : start[world + 1]]:
        stiffness = float(term["stiffness_linear"])
        if term["kind"] == DOFS:
            row = np.zeros(len(chains))
            row[term["dof1"]] = 1.0
            if term["dof2"] >= 0:
                row[term["dof2"]] -= term["ratio"]
            found.append((row, stiffness, float(term["bias"][0])))
        elif term["kind"] == BODIES:
            rows = _relative_rows(term, motion, chains)
            if stiffness > 0.0:
                found += [(rows[3 + k], stiffness, float(term["bias"][3 + k])) for k in range(3)]
            values, axes = np.linalg.eigh(term["stiffness_angular"])
            for value, axis in zip(values, axes.T, strict=True):
                if value > 1e-9 * values[-1] > 0.0:
                    found.append((axis @ rows[:3], float(value), float(axis @ term["bias"][:3])))
        elif term["kind"] == DISTANCE and term["two_sided"]:
            row = term["axis"] @ _relative_rows(term, motion, chains)[3:]
            found.append((row, stiffness, float(term["bias"][0])))
        elif term["kind"] != OFF:
            raise ValueError(f"step_laws: world {world} has a rope, whose law is not checked here.")
    return found


def _relative_rows(term: Any, motion: np.ndarray, chains: list[list[int]]) -> np.ndarray:
    """Return the spin and the velocity of the second point against the first, by degrees of freedom."""
    rows = np.zeros((6, len(chains)))
    for side, sign in ((1, -1.0), (2, 1.0)):
        if term[f"dof{side}"] >= 0:
            chain = chains[term[f"dof{side}"]]
            rows[:3, chain] += sign * motion[chain, :3].T
            rows[3:, chain] += sign * (motion[chain, 3:] + np.cross(motion[chain, :3], term[f"arm{side}"])).T
    return rows


def law_violation(simulation: pv.Simulation, complete: pv.Simulation | None = None) -> float:
    """Return by how much any world was off a law in the last step [m/s or rad/s].

    Args:
        simulation: Simulation with `SolverSAP` that has made a step.
        complete: Simulation that has made the same step with all contacts, to find those that are missing.
    """
    worst = 0.0
    for world in range(simulation.model.world_count):
        laws = step_laws(simulation, world)
        worst = max(worst, laws.momentum_violation(), laws.contact_violation())
        if complete is not None:
            worst = max(worst, laws.omission_violation(step_laws(complete, world)))
    return worst


__all__ = ["StepLaws", "law_violation", "step_laws"]
