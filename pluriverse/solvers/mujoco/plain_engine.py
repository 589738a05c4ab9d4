"""Plain engine: MuJoCo's C engine through its Python package alone, one world after the other.

It uses only public functions of MuJoCo (`mujoco.mj_step`, `mj_contactForce`, `mj_setConst` and so on), so it
works with any version. Its results have the same bits as those of the engine in `cpu`, which the tests check.
Every world takes time in Python, on one thread, and steps cannot be recorded. It serves versions of MuJoCo
that the engine in `cpu` does not support (`engine_choice`), and tests. It does not use `mujoco.rollout`,
which returns neither the warm start of the next step nor contacts.
"""

import copy
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import warp as wp

from pluriverse.model import Contacts, Control, State
from pluriverse.solvers.base import SolverBase
from pluriverse.solvers.mujoco.engine import SPEED_SWEEPS, Engine, Overflow
from pluriverse.solvers.mujoco.host_models import prepare_models
from pluriverse.solvers.mujoco.mapping.fields import SOURCES, update_derived, write_shared
from pluriverse.solvers.mujoco.mapping.group import JointKind, MujocoGroup
from pluriverse.solvers.mujoco.mapping.group_fields import set_mean_inertia
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.types import BodyFlags

# Values from which MuJoCo reports a bad state: `mjMAXVAL`.
VALUE_MAX = 1e10
# Relative excess of a speed over its limit that is tolerated: the precision of the limits, single.
SPEED_ROUNDING = 1e-7
_ROWS = (
    *("qpos", "qvel", "act", "qacc_warmstart", "ctrl", "qfrc_applied", "xfrc_applied"),
    *("mocap_pos", "mocap_quat", "eq_active", "time"),
)
_OUTPUTS = ("qpos", "qvel", "act", "qacc_warmstart")
_STATUS = (
    *("world_frozen", "truncated_step_count", "unconverged_step_count", "needed_contact_count"),
    *("last_truncated_contact_count", "last_solve_iterations", "last_converged", "last_contact_count"),
)
_CONTACTS = (
    "count",
    "found",
    "shape0",
    "shape1",
    "point0",
    "point1",
    "normal",
    "margin0",
    "margin1",
    "force",
)
_BAD, _FULL = (
    [int(getattr(mujoco.mjtWarning, f"mjWARN_{name}")) for name in names]
    for names in (("BADQPOS", "BADQVEL", "BADQACC", "BADCTRL"), ("CONTACTFULL", "CNSTRFULL"))
)


class PlainEngine(Engine):
    """Steps worlds in MuJoCo's C engine, through its Python package.

    Args:
        solver: Solver that the engine steps for; its status arrays are written.
        groups: Its groups.
        use_mujoco_contacts: Whether MuJoCo finds the contacts; must be true.
        update_data_interval: Take the joint state from `state_in` in every so many steps.
        memory: Memory for contacts, constraints and the solver [B]; None for what MuJoCo asks for.
        enforce_velocity_limit: Whether joints keep below `joint_velocity_limit`.

    Raises:
        ValueError: If contacts are external, or the model is not on a CPU.
    """

    is_thread_safe = False
    is_recordable = False

    def __init__(
        self,
        solver: SolverBase,
        groups: Sequence[MujocoGroup],
        *,
        use_mujoco_contacts: bool,
        update_data_interval: int,
        memory: int | None = None,
        enforce_velocity_limit: bool = False,
    ):
        if not use_mujoco_contacts:
            raise ValueError(
                "SolverMuJoCo: use_mujoco_contacts is False, but MuJoCo's Python package cannot be given "
                "contacts. Leave it out, or install a version of mujoco that the requirements of pluriverse "
                "admit."
            )
        super().__init__(solver, groups, wp.float64, update_data_interval)
        model = self.model
        self._limit_speeds = enforce_velocity_limit
        self._memory = memory
        self._lost: set[int] = set()
        self._world_group = np.zeros(model.world_count, dtype=np.int64)
        self._world_row = np.zeros(model.world_count, dtype=np.int64)
        for index, group in enumerate(groups):
            self._world_group[group.worlds] = index
            self._world_row[group.worlds] = np.arange(group.world_count)
        # On a CPU an array of Warp and its view in NumPy have the same memory.
        self._status = {name: getattr(solver, name).numpy() for name in _STATUS}
        self._status["unlisted"] = self.unlisted_step_count.numpy()
        self._status["known"], self._status["stepped"] = (
            array.numpy() for array in (self.exchange.known, self.exchange.stepped)
        )
        self._rows = [
            {name: self.exchange.rows.of_group(groups, index, name).numpy() for name in _ROWS}
            for index in range(len(groups))
        ]
        self._contacts: Contacts | None = None
        self._listed: dict[str, np.ndarray] = {}
        prepare_models(groups)
        self._models: list[Any] = [None] * len(groups)
        self._data: list[Any] = [None] * len(groups)
        for index in range(len(groups)):
            self.fields_changed(index, set())

    def prepare(self, contacts: Contacts) -> None:
        """Set the contact buffer in which contacts are listed."""
        self._contacts = contacts
        self._listed = {name: getattr(contacts, f"rigid_contact_{name}").numpy() for name in _CONTACTS}
        self._listed["start"] = contacts.slot_start.numpy()

    def step(
        self,
        state_in: State,
        state_out: State,
        control: Control,
        contacts: Contacts,
        dt: float,
        worlds: wp.array,
    ) -> None:
        """Write the state after `dt` [s] into `state_out`, and contacts with their forces into `contacts`.

        Raises:
            RuntimeError: If a recording is under way.
        """
        self._refuse_recording("step")
        frozen = self.solver.world_frozen
        self.exchange.push(worlds, state_in, control, frozen, dt)
        if contacts is not self._contacts:
            self.prepare(contacts)
        for world in worlds.numpy().tolist():
            if world >= 0:
                self._step_world(world, dt)
        self.exchange.pull(worlds, state_in, state_out, control, frozen, dt)

    def fields_changed(self, group_index: int, names: set[str]) -> None:
        """Take in what was written to a group; names are those of its fields, or of its `model`."""
        prepare_models(self.groups)
        self._models[group_index] = model = copy.copy(self.groups[group_index].model)
        self._data[group_index] = mujoco.MjData(model)
        self.exchange.assign_group(group_index)

    def tracked_memory(self, group_index: int) -> dict[str, wp.array]:
        """Return the memory of the tracked fields of a group, flat; and of what goes with them."""
        group = self.groups[group_index]
        result: dict[str, Any] = {
            name: wp.array(group.fields[name].reshape(-1), device=self.model.device, copy=False)
            for name in group.tracked
        }
        return {**result, **self.exchange.tracked_rows(group_index)}

    def derive_fields(self, group_index: int, selected: wp.array[int]) -> None:
        """Compute the derived fields of a group with MuJoCo.

        Raises:
            RuntimeError: If a recording is under way.
        """
        self._refuse_recording("sync_worlds")
        group = self.groups[group_index]
        if selected.numpy()[group.worlds].any():
            update_derived(group, set(SOURCES))
            set_mean_inertia(group, ModelRows(self.model))

    def take_overflow(self) -> list[Overflow]:
        """Return where memory was too small since the last call."""
        worlds, self._lost = sorted(self._lost), set()
        if not worlds:
            return []
        what = "steps went without some contacts or constraints, or were not made, for lack of memory."
        return [Overflow(worlds, what, 'Give the asset more: <size memory="..."/>.')]

    def _refuse_recording(self, call: str) -> None:
        if self.model.device.is_capturing:
            raise RuntimeError(
                f"SolverMuJoCo.{call}: a recording is under way, but this version of MuJoCo is stepped "
                "through its Python package, which cannot be recorded. Call it outside of wp.ScopedCapture, "
                "or install a version of mujoco that the requirements of pluriverse admit."
            )

    def _step_world(self, world: int, dt: float) -> None:
        """Make one step of one world, between its rows."""
        index, row = int(self._world_group[world]), int(self._world_row[world])
        model, data, group = self._models[index], self._data[index], self.groups[index]
        status, listed = self._status, self._listed
        for name in (
            "last_truncated_contact_count",
            "last_solve_iterations",
            "last_contact_count",
            "stepped",
        ):
            status[name][world] = 0
        status["last_converged"][world] = 1
        listed["found"][world] = listed["count"][world] = 0
        if status["world_frozen"][world]:
            return
        rows = {name: values[row] for name, values in self._rows[index].items()}
        status["known"][world] = 0
        bounded = all(_is_below(rows[name], VALUE_MAX) for name in ("qpos", "qvel", "act", "ctrl"))
        if not (bounded and all(_is_below(rows[name], np.inf) for name in ("qfrc_applied", "xfrc_applied"))):
            status["world_frozen"][world] = 1
            return
        for name, fields in group.fields.items():
            write_shared(model, name, fields[row])
        model.opt.timestep = dt
        for name in _ROWS[:-1]:
            target = getattr(data, name)
            target[...] = rows[name].reshape(target.shape)
        data.time = float(rows["time"][0])
        data.warning.number[:] = 0
        data.solver_niter[:] = 0
        try:
            mujoco.mj_step(model, data)
        except mujoco.FatalError:
            mujoco.mj_resetData(model, data)
            self._lost.add(world)
            return
        warned = data.warning.number
        if warned[_FULL].any():
            status["last_truncated_contact_count"][world] = 1
            status["truncated_step_count"][world] += 1
            self._lost.add(world)
        iterations = int(data.solver_niter.max())
        status["last_solve_iterations"][world] = iterations
        converged = status["last_converged"][world] = int(not 0 < model.opt.iterations <= iterations)
        if self._limit_speeds:
            self._limit_world(world, model, data, group, dt)
        for name in _OUTPUTS:
            rows[name][...] = getattr(data, name)
        rows["time"][0] = data.time
        if warned[_BAD].any() or not all(_is_below(rows[name], VALUE_MAX) for name in ("qpos", "qvel")):
            status["world_frozen"][world] = 1
            return
        found = self._list_contacts(world, model, data, group)
        status["last_contact_count"][world] = found
        status["needed_contact_count"][world] = max(status["needed_contact_count"][world], found)
        status["unconverged_step_count"][world] += 1 - converged
        status["stepped"][world] = status["known"][world] = 1

    def _list_contacts(self, world: int, model: Any, data: Any, group: MujocoGroup) -> int:
        """Write the contacts that took part in a step, as many as there are slots; return their number."""
        if data.ncon == 0:
            return 0
        contact, listed = data.contact, self._listed
        taken = np.flatnonzero(contact.exclude == 0)
        start, end = (int(slot) for slot in listed["start"][world : world + 2])
        found, taken = len(taken), taken[: end - start]
        listed["found"][world], listed["count"][world] = found, len(taken)
        self._status["unlisted"][world] += int(found > len(taken))
        slots = slice(start, start + len(taken))
        frame = contact.frame[taken].reshape(-1, 3, 3)
        half = 0.5 * contact.dist[taken, None] * frame[:, 0]
        first_shape = int(group.first_shape[self._world_row[world]])
        for side, sign in ((0, -1.0), (1, 1.0)):
            geom = contact.geom[taken, side]
            body, code = model.geom_bodyid[geom], group.geom_shape[geom]
            point = contact.pos[taken] + sign * half - data.xpos[body]
            listed[f"shape{side}"][slots] = np.where(code >= 0, first_shape + code, -1 - code)
            rotation = data.xmat[body].reshape(-1, 3, 3)
            listed[f"point{side}"][slots] = np.einsum("kji,kj->ki", rotation, point)
            listed[f"margin{side}"][slots] = 0.5 * contact.includemargin[taken].astype(np.float32)
        listed["normal"][slots] = frame[:, 0]
        force, result = np.zeros((len(taken), 3)), np.zeros(6)
        for number, entry in enumerate(taken.tolist()):
            if contact.efc_address[entry] >= 0:
                mujoco.mj_contactForce(model, data, entry, result)
                force[number] = frame[number].T @ result[:3]
        listed["force"][slots] = force
        return found

    def _limit_world(self, world: int, model: Any, data: Any, group: MujocoGroup, dt: float) -> None:
        """Limit the speeds of a world; see `cpu.velocity_limit`."""
        row = int(self._world_row[world])
        first, first_body = int(group.first_dof[row]), int(group.first_body[row])
        limits = self.model.joint_velocity_limit.numpy()[first : first + len(group.dof_qvel)]
        flags = self.model.body_flags.numpy()[first_body + group.joint_child]
        free = (group.joint_kind == JointKind.SCALAR) & (flags & int(BodyFlags.KINEMATIC) == 0)
        spans = zip(group.joint_dof[free], group.joint_dof_count[free], strict=True)
        dofs = sorted(dof for begin, count in spans for dof in range(begin, begin + count))
        change, unit, response = np.zeros(model.nv), np.zeros((1, model.nv)), np.zeros((1, model.nv))
        for _ in range(SPEED_SWEEPS):
            found = False
            for dof in dofs:
                address, limit = int(group.dof_qvel[dof]), float(limits[dof])
                speed = data.qvel[address]
                if abs(speed) > limit * (1.0 + SPEED_ROUNDING):
                    found = True
                    unit[0, address] = 1.0
                    mujoco.mj_solveM(model, data, response, unit)
                    unit[0, address] = 0.0
                    step = (np.clip(speed, -limit, limit) - speed) / response[0, address] * response[0]
                    data.qvel[:] += step
                    change += step
            if not found:
                break
        if change.any():
            mujoco.mj_integratePos(model, data.qpos, change, dt)


def _is_below(values: np.ndarray, bound: float) -> bool:
    """Return whether the magnitudes of numbers are below a bound; NaN is not."""
    return bool((np.abs(values) < bound).all())
