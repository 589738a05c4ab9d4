"""Warp engine: one MuJoCo Warp model per group, with a row per world; groups run side by side on a GPU.

On a CPU this is an emulation, many times slower than MuJoCo's C engine, of what runs on a GPU.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Contacts, Control, State
from pluriverse.solvers.base import SolverBase
from pluriverse.solvers.mujoco.engine import Engine, Overflow
from pluriverse.solvers.mujoco.exchange.contact_copy import contact_arrays
from pluriverse.solvers.mujoco.exchange.maps import ExchangeRows
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.warp.external_contacts import (
    ExternalContacts,
    ForceGains,
    clear_external_count,
    group_slots,
    pull_external_force,
    push_external_contact,
)
from pluriverse.solvers.mujoco.warp.group import WarpGroup, load_mujoco_warp
from pluriverse.solvers.mujoco.warp.step_status import (
    WarpStepStatus,
    clear_world_contact,
    finalize_row,
    keep_row,
    list_contact,
    list_world,
)
from pluriverse.solvers.mujoco.warp.velocity_limit import limit_row_speeds

# Growth factor of capacities that were too small.
GROWTH = 2


class WarpEngine(Engine):
    """Steps worlds in MuJoCo Warp, all of a group together.

    Args:
        solver: Solver that the engine steps for; its status arrays are written.
        groups: The groups of its model.
        use_mujoco_contacts: Whether MuJoCo Warp finds the contacts; otherwise those handed to `step` are
            solved.
        update_data_interval: Take the joint state from `state_in` in every so many steps.
        nconmax: Capacity of contacts per world; None for an estimate.
        njmax: Capacity of constraint rows per world; None for an estimate.
        graph_conditional: Whether iterations end on a GPU once all worlds of a group have converged.
        enforce_velocity_limit: Whether joints keep below `joint_velocity_limit`.

    Raises:
        ImportError: If MuJoCo Warp is not installed.
        ValueError: If worlds differ in a field that MuJoCo Warp shares within a group.
    """

    is_thread_safe = False

    def __init__(
        self,
        solver: SolverBase,
        groups: Sequence[MujocoGroup],
        *,
        use_mujoco_contacts: bool,
        update_data_interval: int,
        nconmax: int | None = None,
        njmax: int | None = None,
        graph_conditional: bool = True,
        enforce_velocity_limit: bool = False,
    ):
        load_mujoco_warp()
        super().__init__(solver, groups, wp.float32, update_data_interval)
        device, count = self.model.device, self.model.world_count
        self._external = not use_mujoco_contacts
        self._external_buffer: Contacts | None = None
        self._external_contacts: list[ExternalContacts] = []
        self._external_count: Any = wp.zeros(count if self._external else 0, dtype=int, device=device)
        self._kept = ExchangeRows(groups, wp.float32, device)
        self._nconmax: list[int | None] = [nconmax] * len(groups)
        self._njmax: list[int | None] = [njmax] * len(groups)
        self._retired: list[WarpGroup] = []
        self._arrays: dict[str, wp.array] = {
            name: wp.zeros(count, dtype=int, device=device) for name in ("listed", "overflow", "row_count")
        }
        self._graph_conditional = graph_conditional
        self._limit_speeds = enforce_velocity_limit
        # A conditional loop can be recorded on the stream of the recording only.
        side_by_side = device.is_cuda and len(groups) > 1 and not graph_conditional
        self._streams = [wp.Stream(device) for _ in groups] if side_by_side else []
        self.warp_groups: list[WarpGroup] = [self._make_group(index) for index in range(len(groups))]
        self._gains = ForceGains()
        self._assign_gains()
        for index in range(len(groups)):
            self.exchange.assign_group(index)

    def prepare(self, contacts: Contacts) -> None:
        """Allocate what a step needs for a contact buffer."""
        if not self._external or contacts is self._external_buffer:
            return
        self._external_buffer = contacts
        for index, group in enumerate(self.groups):
            if len(group_slots(group, contacts)[0]) > self.warp_groups[index].data.naconmax:
                self._replace_group(index)
        self._make_external_contacts()

    def _make_external_contacts(self) -> None:
        if self._external_buffer is None:
            return
        self._external_contacts = [
            ExternalContacts(group, self._external_buffer, part.model, part.data, self.model.device)
            for group, part in zip(self.groups, self.warp_groups, strict=True)
        ]

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
        device = self.model.device
        arrays, frozen = self._arrays, self.solver.world_frozen
        arrays["listed"].zero_()
        launch_kernel(list_world, dim=worlds.size, inputs=[worlds], outputs=[arrays["listed"]], device=device)
        self.exchange.push(worlds, state_in, control, frozen, dt)
        listing = contact_arrays(contacts)
        if not self._external:
            launch_kernel(clear_world_contact, dim=worlds.size, inputs=[worlds, listing], device=device)
        self._fork(lambda index: self._step_group(index, state_in, listing, dt))
        self.exchange.pull(worlds, state_in, state_out, control, frozen, dt)

    def fields_changed(self, group_index: int, names: set[str]) -> None:
        """Take in what was written to a group; names are those of its fields, or of its `model`."""
        part = self.warp_groups[group_index]
        if part.is_outdated:
            self._replace_group(group_index)
        else:
            for name in names:
                part.write_field(name)
        self._assign_gains()
        self.exchange.assign_group(group_index)

    def knows_field(self, name: str) -> bool:
        """Return whether a field of `mjModel` may differ between worlds in MuJoCo Warp."""
        return name == "opt.gravity" or self.warp_groups[0].is_batched(name)

    def tracked_memory(self, group_index: int) -> dict[str, wp.array]:
        """Return the memory of the tracked fields of a group, flat; and of what goes with them."""
        result = self.warp_groups[group_index].tracked_memory()
        result.update(self.exchange.tracked_rows(group_index))
        if self._external:
            result["external_ke"], result["external_kd"] = self._gains.ke, self._gains.kd
        return result

    def derive_fields(self, group_index: int, selected: wp.array[int]) -> None:
        """Compute the derived fields of a group with MuJoCo Warp. Only launches.

        It does so for all worlds of the group; those that did not change get the same values.
        """
        self.warp_groups[group_index].derive_fields()

    def take_overflow(self) -> list[Overflow]:
        """Return where memory was too small since the last call, and double it; recorded steps keep theirs.

        MuJoCo Warp has one contact store for all worlds of a group, so an overflow concerns all of them.
        """
        bits = self._arrays["overflow"].numpy().copy()
        if not bits.any():
            return []
        self._arrays["overflow"].zero_()
        rows_needed = self._arrays["row_count"].numpy()
        kinds = load_mujoco_warp().OverflowType
        result = []
        for index, (group, part) in enumerate(zip(self.groups, self.warp_groups, strict=True)):
            worlds = group.worlds[bits[group.worlds] != 0]
            if not len(worlds):
                continue
            data, raised = part.data, int(np.bitwise_or.reduce(bits[worlds]))
            per_world = data.naconmax // group.world_count
            what, remedy = [], []
            if raised & int(kinds.NEFC | kinds.NJMAX_NNZ):
                needed = int(rows_needed[worlds].max())
                self._njmax[index] = max(GROWTH * data.njmax, needed)
                what.append(f"{needed} constraint rows are needed and {data.njmax} fit")
                remedy.append(f"njmax={self._njmax[index]}")
            if raised & ~int(kinds.NEFC | kinds.NJMAX_NNZ):
                found = max(int(data.nacon.numpy()[0]), int(data.ncollision.numpy()[0]))
                self._nconmax[index] = max(GROWTH * per_world, math.ceil(found / group.world_count))
                what.append(f"{found} contacts were found in all worlds like these and {data.naconmax} fit")
                remedy.append(f"nconmax={self._nconmax[index]}")
            self._replace_group(index)
            result.append(
                Overflow(
                    worlds.tolist(),
                    f"contacts or constraints were lost: {' and '.join(what)}.",
                    f"There is room from now on, but not in steps that were recorded before; pass "
                    f"{', '.join(remedy)} or more to SolverMuJoCo to begin with that.",
                )
            )
        return result

    def _make_group(self, index: int) -> WarpGroup:
        slot_count = None
        if self._external:
            buffer = self._external_buffer
            slot_count = 0 if buffer is None else len(group_slots(self.groups[index], buffer)[0])
        return WarpGroup(
            self.groups,
            index,
            self.exchange.rows,
            self.model.device,
            None if self._external else self._nconmax[index],
            self._njmax[index],
            slot_count,
            graph_conditional=self._graph_conditional,
            limit_speeds=self._limit_speeds,
        )

    def _replace_group(self, index: int) -> None:
        """Rebuild model and data of a group. The old ones stay, for steps that were recorded with them."""
        self._retired.append(self.warp_groups[index])
        self.warp_groups[index] = self._make_group(index)
        self._make_external_contacts()
        self.graph_version += 1
        if self.on_rebuild is not None:
            self.on_rebuild()

    def _fork(self, work: Any) -> None:
        """Run a task for all groups, on a GPU concurrently."""
        if not self._streams:
            for index in range(len(self.groups)):
                work(index)
            return
        main = wp.get_stream(self.model.device)
        start = main.record_event()
        for index, stream in enumerate(self._streams):
            stream.wait_event(start)
            with wp.ScopedStream(stream, sync_enter=False):
                work(index)
        for stream in self._streams:
            main.wait_event(stream.record_event())

    def _step_group(self, index: int, state_in: State, listing: Any, dt: float) -> None:
        part, model, arrays = self.warp_groups[index], self.model, self._arrays
        device, group = model.device, self.groups[index]
        solver, data = self.solver, part.data
        with wp.ScopedDevice(device):  # MuJoCo Warp launches on the current device
            launch_kernel(
                keep_row,
                dim=group.world_count,
                inputs=[
                    part.worlds,
                    self.exchange.maps,
                    index,
                    part.model.qpos0,
                    arrays["listed"],
                    solver.world_frozen,
                    self.exchange.rows.data,
                    self._kept.data,
                ],
                device=device,
            )
            if self._external:
                self._push_external(index, state_in, listing)
            part.step(dt)
            if part.masses is not None:
                limit_row_speeds(
                    part.worlds,
                    model.topology,
                    self.exchange.maps,
                    model.joint_velocity_limit,
                    model.structure.body_flags,
                    part.masses,
                    dt,
                    self.exchange.rows.data,
                )
            if self._external:
                self._pull_external(index, listing)
            else:
                launch_kernel(
                    list_contact,
                    dim=data.naconmax,
                    inputs=[
                        part.worlds,
                        model.topology,
                        self.exchange.maps,
                        model.structure.shape_body,
                        state_in.body_q,
                        arrays["listed"],
                        solver.world_frozen,
                        part.contacts,
                        listing,
                    ],
                    device=device,
                )
            launch_kernel(
                finalize_row,
                dim=group.world_count,
                inputs=[
                    part.worlds,
                    self.exchange.maps,
                    index,
                    int(part.model.opt.iterations),
                    data.overflow,
                    _lost_bits(part.module),
                    data.nefc,
                    data.solver_niter,
                    listing,
                    self._external_count,
                    self.exchange.rows.data,
                    self._kept.data,
                    self._step_status(),
                ],
                device=device,
            )

    def _push_external(self, index: int, state_in: State, listing: Any) -> None:
        """Pass the contacts of a group to MuJoCo Warp."""
        part, external, model = self.warp_groups[index], self._external_contacts[index], self.model
        device = model.device
        launch_kernel(
            clear_external_count,
            dim=part.worlds.size,
            inputs=[part.worlds, self._external_count],
            device=device,
        )
        launch_kernel(
            push_external_contact,
            dim=external.slots.size,
            inputs=[
                external.slots,
                external.rows,
                part.worlds,
                model.topology,
                self.exchange.maps,
                model.structure.shape_body,
                state_in.body_q,
                self._arrays["listed"],
                self.solver.world_frozen,
                listing,
                external.properties,
                self._gains,
                external.target,
                self._external_count,
            ],
            device=device,
        )

    def _pull_external(self, index: int, listing: Any) -> None:
        """Copy back the contact forces of a group."""
        part, external = self.warp_groups[index], self._external_contacts[index]
        launch_kernel(
            pull_external_force,
            dim=external.slots.size,
            inputs=[
                external.slots,
                external.rows,
                part.worlds,
                self._arrays["listed"],
                external.target.dist,
                part.contact_force,
                listing.force,
            ],
            device=self.model.device,
        )

    def _assign_gains(self) -> None:
        """Write force-space stiffness and damping, for external contacts."""
        if not self._external:
            return
        device = self.model.device
        for name, field in (("is_force", "geom_force_space"), ("ke", "geom_ke"), ("kd", "geom_kd")):
            values = np.concatenate([np.asarray(getattr(group, field)).reshape(-1) for group in self.groups])
            kind = np.int32 if name == "is_force" else np.float32
            array = getattr(self._gains, name)
            if array is None or array.size != values.size:
                fresh: Any = wp.array(values.astype(kind), device=device)
                setattr(self._gains, name, fresh)
            else:
                array.assign(values.astype(kind))

    def _step_status(self) -> WarpStepStatus:
        status = self.fill_step_status(WarpStepStatus())
        for name, array in self._arrays.items():
            setattr(status, name, array)
        return status


def _lost_bits(module: Any) -> int:
    """Return the overflow bits that mean that contacts or constraints were lost."""
    kinds = module.OverflowType
    names = ("NEFC", "NJMAX_NNZ", "BROADPHASE", "NARROWPHASE", "CCD", "HFIELD")
    result = 0
    for name in names:
        result |= int(getattr(kinds, name))
    return result
