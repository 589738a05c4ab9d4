"""CPU engine: MuJoCo's C engine on all worlds, from kernels, so that a step can be recorded and replayed.

The stages of a step: `push_worlds`, `step_world`, `pull_worlds`, bodies, and the status of each world.
"""

import os
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Contacts, Control, State
from pluriverse.solvers.base import SolverBase
from pluriverse.solvers.mujoco.cpu.clock import stop_clock
from pluriverse.solvers.mujoco.cpu.derivation import PROTECTED, Derivation, derive_world
from pluriverse.solvers.mujoco.cpu.library import (
    address_of,
    field_address,
    find_layout,
    function_addresses,
)
from pluriverse.solvers.mujoco.cpu.memory import LAYOUT, CpuEngineData, CpuStepStatus
from pluriverse.solvers.mujoco.cpu.step import step_world
from pluriverse.solvers.mujoco.cpu.worker import ADDRESS_COUNT, MEMORY_MIN, CpuWorker
from pluriverse.solvers.mujoco.engine import Engine, Overflow
from pluriverse.solvers.mujoco.exchange.contact_copy import contact_arrays
from pluriverse.solvers.mujoco.host_models import prepare_models
from pluriverse.solvers.mujoco.mapping.body_kernels import to_device
from pluriverse.solvers.mujoco.mapping.fields import DERIVED
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.structure import dof_joints

# Bound on the fields of a group that may differ between worlds; `mjModel` has fewer fields.
FIELD_CAPACITY = 256


class CpuEngine(Engine):
    """Steps worlds in MuJoCo's C engine.

    Args:
        solver: Solver that the engine steps for; its status arrays are written.
        groups: Its groups.
        use_mujoco_contacts: Whether MuJoCo finds the contacts; otherwise those handed to `step` are solved.
        update_data_interval: Take the joint state from `state_in` in every so many steps; between them, and
            always if 0, worlds go on from what MuJoCo has.
        memory: Memory for contacts, constraints and the solver [B] that each thread begins with; None for
            what MuJoCo asks for, and no less than `MEMORY_MIN`.
        enforce_velocity_limit: Whether joints keep below `joint_velocity_limit`.
    """

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
        super().__init__(solver, groups, wp.float64, update_data_interval)
        self._limit_speeds = enforce_velocity_limit
        self._external = not use_mujoco_contacts
        self._memory = [max(memory or MEMORY_MIN, 0) for _ in groups]
        self._given_memory = memory
        stop_clock(self)
        self._prepare_models()
        count = self.model.world_count
        self.failed_step_count = solver.failure_counts("failed")
        self._outgrown: list[wp.array] = []
        self._host_counts: tuple[wp.array, np.ndarray, np.ndarray] | None = None
        self._seen_full = np.zeros(count, dtype=np.int32)
        self._seen_failed = np.zeros(count, dtype=np.int32)
        self._make_data()
        for index, group in enumerate(groups):
            self.fields_changed(index, set(group.fields))

    def prepare(self, contacts: Contacts) -> None:
        """Allocate what a step needs for a contact buffer."""
        if self._external and self._data.slot_contact.shape[0] < contacts.slot_count:
            # Steps recorded with other contacts hold the memory of the previous array.
            self._outgrown.append(self._data.slot_contact)
            self._data.slot_contact = wp.full(contacts.slot_count, -1, dtype=int, device=self.model.device)

    def step(
        self,
        state_in: State,
        state_out: State,
        control: Control,
        contacts: Contacts,
        dt: float,
        worlds: wp.array,
    ) -> None:
        """Write the state after `dt` [s] into `state_out`, and contacts with their forces into `contacts`."""
        exchange, frozen = self.exchange, self.solver.world_frozen
        exchange.push(worlds, state_in, control, frozen, dt, follows=self.follows_step)
        launch_kernel(
            step_world,
            dim=worlds.size,
            inputs=[
                worlds,
                self.model.topology,
                exchange.maps,
                self._data,
                exchange.rows.data,
                contact_arrays(contacts),
                int(self._external),
                int(self.lists_contacts),
                self._worker_scratch,
                wp.float64(dt),
                self._step_status(),
            ],
            device=self.model.device,
        )
        exchange.pull(worlds, state_in, state_out, control, frozen, dt)

    def fields_changed(self, group_index: int, names: set[str]) -> None:
        """Take in what was written to a group; names are those of its fields, or of its `model`."""
        group = self.groups[group_index]
        known = self._workers[0]
        if known.is_outdated(group_index, group):
            self._prepare_models()
            self._fill_workers()
        else:
            shared = [name for name in names if name not in group.fields]
            for worker in self._workers:
                worker.update_model(group_index, shared)
        self.exchange.assign_group(group_index)
        if self._external:
            self._assign_contact_gains()

    def tracked_memory(self, group_index: int) -> dict[str, wp.array]:
        """Return the memory of the tracked fields of a group, flat; and of what goes with them."""
        group, device = self.groups[group_index], self.model.device
        result: dict[str, Any] = {}
        for name in group.tracked:
            values = group.fields[name]
            kind = wp.dtype_from_numpy(values.dtype)
            result[name] = wp.array(ptr=address_of(values), dtype=kind, shape=(values.size,), device=device)
        result.update(self.exchange.tracked_rows(group_index))
        result["external_ke"], result["external_kd"] = self._data.geom_ke, self._data.geom_kd
        return result

    def derive_fields(self, group_index: int, selected: wp.array[int]) -> None:
        """Compute the derived fields of worlds with MuJoCo. Only launches."""
        group, model = self.groups[group_index], self.model
        launch_kernel(
            derive_world,
            dim=group.world_count,
            inputs=[
                self._group_worlds[group_index],
                selected,
                group_index,
                self.exchange.maps,
                self._data,
                self._derivation,
                model.topology.world_body,
                model.structure.body_flags,
                self._dof_child[group_index],
            ],
            outputs=[self.solver.world_frozen],
            device=model.device,
        )

    def take_overflow(self) -> list[Overflow]:
        """Return where memory was too small since the last call, and double it there.

        Recorded steps use the larger memory as well.
        """
        counts = self.solver.truncated_step_count, self.failed_step_count
        if self._host_counts is None or self._host_counts[0] is not counts[0]:
            self._host_counts = counts[0], counts[0].numpy(), counts[1].numpy()  # they see what kernels write
        _, full, failed = self._host_counts
        is_full, is_failed = full > self._seen_full, failed > self._seen_failed
        if not (np.count_nonzero(is_full) or np.count_nonzero(is_failed)):
            return []
        result = []
        for index, group in enumerate(self.groups):
            worlds = group.worlds[(is_full | is_failed)[group.worlds]]
            if not len(worlds):
                continue
            lost = int((full - self._seen_full)[worlds].sum())
            missed = int((failed - self._seen_failed)[worlds].sum())
            what = [
                f"{lost} step(s) went without some contacts or constraints" if lost else "",
                f"{missed} step(s) were not made" if missed else "",
            ]
            before = self._workers[0].data[index].narena
            self._memory[index] = 2 * before
            result.append(
                Overflow(
                    worlds.tolist(),
                    f"{' and '.join(part for part in what if part)}, because they need more than the "
                    f"{before} bytes of memory that MuJoCo had for them.",
                    f"It has {2 * before} from now on; pass memory={2 * before} or more to SolverMuJoCo to "
                    "begin with that.",
                )
            )
        self._seen_full, self._seen_failed = full.copy(), failed.copy()
        self._fill_workers()
        return result

    def _prepare_models(self) -> None:
        """Prepare the models, and switch island discovery off where all bodies form one tree.

        There is at most one island then, so the result has the same bits, and a step takes 5 to 10 % less
        time. (With elliptic cones or conjugate gradients, MuJoCo before 3.17 sums an island in another
        order.)
        """
        prepare_models(self.groups)
        for group in self.groups:
            option = group.model.opt
            newton = option.solver == int(mujoco.mjtSolver.mjSOL_NEWTON)
            if group.model.ntree == 1 and newton and option.cone == int(mujoco.mjtCone.mjCONE_PYRAMIDAL):
                option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
            if self._external and option.integrator == int(mujoco.mjtIntegrator.mjINT_RK4):
                raise ValueError(
                    f"SolverMuJoCo: world {int(group.worlds[0])} is to be integrated by RK4, for which "
                    "MuJoCo finds contacts four times a step, so they cannot be given from outside. Use "
                    "another integrator, or use_mujoco_contacts=True."
                )

    def _make_data(self) -> None:
        model, groups = self.model, self.groups
        device, count = model.device, len(groups)
        worker_count = max(1, min(_core_count(), model.world_count))
        layout = find_layout()
        template = mujoco.MjData(groups[0].model)
        offsets = {"data": layout.data, "model": layout.model, "contact": layout.contact}
        values = [
            8 * int(getattr(mujoco.mjtWarning, f"mjWARN_{name}"))
            if kind == "warning"
            else offsets[kind][name]
            for kind, name in LAYOUT
        ]
        values += [layout.contact_size, template.solver_niter.size]
        geom_count = sum(group.world_count * group.model.ngeom for group in groups) if self._external else 0
        data: Any = CpuEngineData()
        self._data = data
        data.function = wp.array(function_addresses(), dtype=wp.uint64, device=device)
        data.layout = wp.array(values, dtype=int, device=device)
        data.worker_count = worker_count
        data.group_count = count
        data.worker_taken = wp.zeros(worker_count, dtype=int, device=device)
        data.world_worker = wp.zeros(model.world_count, dtype=int, device=device)
        data.address = wp.zeros(worker_count * count * ADDRESS_COUNT, dtype=wp.uint64, device=device)
        data.field_count = wp.zeros(count, dtype=int, device=device)
        data.field_source = wp.zeros((count, FIELD_CAPACITY), dtype=wp.uint64, device=device)
        data.field_size = wp.zeros((count, FIELD_CAPACITY), dtype=wp.int64, device=device)
        data.field_target = wp.zeros((worker_count, count, FIELD_CAPACITY), dtype=wp.uint64, device=device)
        derivation: Any = Derivation()
        self._derivation = derivation
        shape = (count, len(PROTECTED))
        derivation.is_derived = wp.zeros((count, FIELD_CAPACITY), dtype=int, device=device)
        derivation.mean_field = wp.full(count, -1, dtype=int, device=device)
        derivation.mass_field = wp.full(count, -1, dtype=int, device=device)
        derivation.protected_target = wp.zeros((worker_count, *shape), dtype=wp.uint64, device=device)
        derivation.protected_source = wp.zeros(shape, dtype=wp.uint64, device=device)
        derivation.protected_size = wp.zeros(shape, dtype=wp.int64, device=device)
        self._group_worlds = [to_device(group.worlds, device) for group in groups]
        structures = [group.plan.structure for group in groups]
        self._dof_child = [
            to_device(structure.template.joint_child[dof_joints(structure)], device)
            for structure in structures
        ]
        data.geom_force_space = wp.zeros(geom_count, dtype=int, device=device)
        data.geom_ke = wp.zeros(geom_count, dtype=wp.float64, device=device)
        data.geom_kd = wp.zeros(geom_count, dtype=wp.float64, device=device)
        data.slot_contact = wp.zeros(0, dtype=int, device=device)
        self._scratch = np.zeros((worker_count, layout.contact_size // 8 + 8))
        self._worker_scratch: Any = _row_addresses(self._scratch, device)
        data.limit_speeds = int(self._limit_speeds)
        data.velocity_limit, data.body_flags = model.joint_velocity_limit, model.structure.body_flags
        dof_count = max(group.model.nv for group in groups) if self._limit_speeds else 0
        self._speeds = np.zeros((worker_count, 3 * dof_count + 1))
        data.speed_scratch = _row_addresses(self._speeds, device)
        self._fill_workers()

    def _fill_workers(self) -> None:
        """Make the workers, and write their addresses where kernels, including recorded ones, read them."""
        worker_count, groups = self._data.worker_count, self.groups
        own_models = [bool(group.fields) or self._external for group in groups]
        memory = [
            size if self._given_memory is not None else max(size, group.model.narena)
            for size, group in zip(self._memory, groups, strict=True)
        ]
        self._workers = [CpuWorker(groups, memory, own_models) for _ in range(worker_count)]
        self._data.address.assign(
            np.concatenate([worker.addresses().reshape(-1) for worker in self._workers])
        )
        target = np.zeros((worker_count, len(groups), FIELD_CAPACITY), dtype=np.uint64)
        source = np.zeros((len(groups), FIELD_CAPACITY), dtype=np.uint64)
        size = np.zeros((len(groups), FIELD_CAPACITY), dtype=np.int64)
        for index, group in enumerate(groups):
            for entry, (name, values) in enumerate(group.fields.items()):
                source[index, entry] = address_of(values)
                size[index, entry] = values.itemsize * int(np.prod(values.shape[1:]))
                for worker_index, worker in enumerate(self._workers):
                    target[worker_index, index, entry] = worker.field_address(index, name)
        self._data.field_count.assign(np.array([len(group.fields) for group in groups], dtype=np.int32))
        self._data.field_source.assign(source)
        self._data.field_size.assign(size)
        self._data.field_target.assign(target)
        self._fill_derivation()

    def _fill_derivation(self) -> None:
        """Write which fields MuJoCo derives, and which must be restored afterwards."""
        groups, derivation = self.groups, self._derivation
        derived = np.zeros((len(groups), FIELD_CAPACITY), dtype=np.int32)
        mean, mass = np.full(len(groups), -1, dtype=np.int32), np.full(len(groups), -1, dtype=np.int32)
        shape = (len(groups), len(PROTECTED))
        source, size = np.zeros(shape, dtype=np.uint64), np.zeros(shape, dtype=np.int64)
        target = np.zeros((len(self._workers), *shape), dtype=np.uint64)
        for index, group in enumerate(groups):
            names = list(group.fields)
            derived[index, : len(names)] = [name in DERIVED for name in names]
            if "stat.meaninertia" in names:
                mean[index], mass[index] = names.index("stat.meaninertia"), names.index("dof_M0")
            if not names:
                continue  # workers have no models of their own
            for number, name in enumerate(PROTECTED):
                values = getattr(group.model, name, None)
                if values is None or name in names:
                    continue
                source[index, number], size[index, number] = address_of(values), values.nbytes
                for worker, each in enumerate(self._workers):
                    target[worker, index, number] = field_address(each.models[index], name)
        derivation.is_derived.assign(derived)
        derivation.mean_field.assign(mean)
        derivation.mass_field.assign(mass)
        derivation.protected_source.assign(source)
        derivation.protected_size.assign(size)
        derivation.protected_target.assign(target)

    def _assign_contact_gains(self) -> None:
        for name, target in (
            ("geom_force_space", self._data.geom_force_space),
            ("geom_ke", self._data.geom_ke),
            ("geom_kd", self._data.geom_kd),
        ):
            values = np.concatenate([np.asarray(getattr(group, name)).reshape(-1) for group in self.groups])
            target.assign(values.astype(np.int32) if name == "geom_force_space" else values)

    def _step_status(self) -> CpuStepStatus:
        status = self.fill_step_status(CpuStepStatus())
        status.failed = self.failed_step_count
        return status


def _row_addresses(rows: np.ndarray, device: Any) -> Any:
    """Return the addresses of the rows of an array on the host."""
    addresses = address_of(rows) + np.arange(len(rows)) * rows.strides[0]
    return wp.array(addresses, dtype=wp.uint64, device=device)


def _core_count() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
