"""Warp group: model and data of the worlds of one structure in MuJoCo Warp."""

import copy
import functools
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel, same_memory
from pluriverse.solvers.mujoco.exchange.maps import ExchangeRows
from pluriverse.solvers.mujoco.mapping.fields import reference_qpos
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.shape_kernels import FAR_APART
from pluriverse.solvers.mujoco.warp.step_status import (
    WarpContacts,
    set_time_step,
)
from pluriverse.solvers.mujoco.warp.velocity_limit import make_mass_rows

# Rows of `mjData` that MuJoCo Warp works on in place.
_ROWS = (
    "qpos",
    "qvel",
    "act",
    "qacc_warmstart",
    "ctrl",
    "qfrc_applied",
    "xfrc_applied",
    "mocap_pos",
    "mocap_quat",
    "eq_active",
    "time",
)


# Fields that MuJoCo Warp shares within a group and for which the first world's value suffices: lengths that
# only scale the speed at which trees fall asleep.
_TAKEN_FROM_FIRST = ("dof_length",)


@functools.cache
def load_mujoco_warp() -> Any:
    """Return the module `mujoco_warp`.

    Raises:
        ImportError: If it is not installed, or made for another MuJoCo; the message names the remedy.
    """
    try:
        import mujoco_warp
    except ImportError as error:
        raise ImportError(
            "SolverMuJoCo: to step in MuJoCo Warp (on a GPU, or with use_mujoco_cpu=False) the package "
            "mujoco-warp is needed. Install pluriverse[mujoco-warp]."
        ) from error
    import mujoco

    versions = mujoco.mj_versionString(), version("mujoco-warp")
    if len({tuple(text.split(".")[:2]) for text in versions}) > 1:
        raise ImportError(
            f"SolverMuJoCo: mujoco {versions[0]} and mujoco-warp {versions[1]} do not belong together. "
            f"Install both in one version, such as mujoco-warp=={'.'.join(versions[0].split('.')[:2])}.*."
        )
    return mujoco_warp


class WarpGroup:
    """Model and data of one group in MuJoCo Warp.

    Args:
        groups: All groups.
        index: Which one.
        rows: Rows of all worlds.
        device: Device of the group.
        nconmax: Capacity of contacts per world; None for an estimate.
        njmax: Capacity of constraint rows per world; None for an estimate.
        slot_count: External contacts of all worlds; None where MuJoCo Warp finds them.
        graph_conditional: Whether iterations end on a GPU once all worlds have converged.
        limit_speeds: Whether joint speeds are limited.
    """

    def __init__(
        self,
        groups: Sequence[MujocoGroup],
        index: int,
        rows: ExchangeRows,
        device: wp.Device,
        nconmax: int | None,
        njmax: int | None,
        slot_count: int | None,
        *,
        graph_conditional: bool,
        limit_speeds: bool,
    ):
        self.module = load_mujoco_warp()
        self.group = groups[index]
        self.field_names = list(self.group.fields)
        self.source, self.revision = self.group.model, self.group.revision
        with wp.ScopedDevice(device):
            host = self._host_model()
            per_world = [name for name in self.field_names if not name.startswith("opt.")]
            known = [name for name in per_world if self.is_batched(name)]
            if self.group.switched:
                known.append("geom_gap")
            self.model = self._put_model(host, known)
            self.model.opt.warn_overflow = 0  # the bits are read by `finalize_row`
            self.model.opt.timestep = wp.zeros(1, dtype=float)
            self.model.opt.graph_conditional = graph_conditional
            self.model.opt.run_collision_detection = slot_count is None
            self.data = self.module.make_data(
                host,
                nworld=self.group.world_count,
                nconmax=nconmax,
                njmax=njmax,
                naconmax=None if slot_count is None else max(slot_count, 1),
            )
            for name in _ROWS:
                self._adopt(name, rows.of_group(groups, index, name))
            for name in self.field_names:
                self.write_field(name)
            if self.group.switched:
                self._switch_geoms()
            count = self.data.naconmax
            self.worlds: Any = wp.array(self.group.worlds.astype(np.int32), dtype=int)
            self.contact_ids: Any = wp.array(np.arange(count, dtype=np.int32), dtype=int)
            self.contact_force: Any = wp.zeros(count, dtype=wp.spatial_vector)
            self.masses = make_mass_rows(self.model, self.data) if limit_speeds else None
        self.contacts = WarpContacts()
        for name, array in {
            "count": self.data.nacon,
            "world": self.data.contact.worldid,
            "geom": self.data.contact.geom,
            "dist": self.data.contact.dist,
            "pos": self.data.contact.pos,
            "frame": self.data.contact.frame,
            "margin": self.data.contact.includemargin,
            "efc_address": self.data.contact.efc_address,
            "force": self.contact_force,
        }.items():
            setattr(self.contacts, name, array)

    @property
    def is_outdated(self) -> bool:
        """Whether the group has another model now, or more fields that differ between worlds."""
        group = self.group
        return (
            group.model is not self.source
            or group.revision != self.revision
            or list(group.fields) != self.field_names
        )

    def write_field(self, name: str) -> None:
        """Write a field of the group into the model, for all worlds."""
        group = self.group
        if name in ("geom_contype", "geom_conaffinity"):
            self._switch_geoms()
            return
        if name == "opt.impratio":
            values = 1.0 / np.sqrt(np.asarray(group.value(name), dtype=np.float32))
            self.model.opt.impratio_invsqrt = wp.array(values, dtype=float)
            return
        owner: Any = self.model
        *path, last = name.split(".")
        for part in path:
            owner = getattr(owner, part)
        array = getattr(owner, last, None)
        if not isinstance(array, wp.array):
            return  # a field that only the C engine knows, such as a bounding volume
        values = group.fields[name] if name in group.fields else group.shared(name)[None]
        if path:
            fresh: Any = wp.array(
                np.asarray(values, dtype=np.float32), dtype=array.dtype, device=array.device
            )
            if fresh.shape == array.shape:
                array.assign(fresh)
            else:
                setattr(owner, last, fresh)
        elif name in _TAKEN_FROM_FIRST:
            array.assign(np.asarray(group.shared(name), dtype=np.float32).reshape(array.shape))
        elif name in group.fields and array.shape[0] != group.world_count:
            raise ValueError(
                f"SolverMuJoCo: {name} differs between worlds {int(group.worlds[0])} and "
                f"{int(group.worlds[-1])}, but MuJoCo Warp has one value for all worlds of a group. Give "
                "them the same, or step on a CPU."
            )
        else:
            shape = array.numpy().shape
            array.assign(np.broadcast_to(np.asarray(values).reshape(-1, *shape[1:]), shape).copy())

    def step(self, dt: float) -> None:
        """Make a step of `dt` [s] of all worlds of the group."""
        timestep = self.model.opt.timestep
        launch_kernel(set_time_step, dim=timestep.size, inputs=[timestep, dt], device=timestep.device)
        self.module.step(self.model, self.data)
        self.module.contact_force(self.model, self.data, self.contact_ids, True, self.contact_force)

    def tracked_memory(self) -> dict[str, wp.array]:
        """Return the memory of the tracked fields, flat."""
        result = {}
        for name in self.group.tracked:
            owner = self.model.opt if name.startswith("opt.") else self.model
            array = getattr(owner, name.removeprefix("opt."))
            if array.size:
                result[name] = _flat(array)
        if self.group.switched:
            result["geom_gap"] = _flat(self.model.geom_gap)
        return result

    def derive_fields(self) -> None:
        """Compute the derived fields of all worlds. Only launches."""
        with wp.ScopedDevice(self.model.qpos0.device):
            self.module.set_const(self.model, self.data, restore=False)

    def _put_model(self, host: Any, batched: list[str]) -> Any:
        """Return MuJoCo Warp's model, with a row per world for the fields named.

        Raises:
            NotImplementedError: If it uses a feature that MuJoCo Warp lacks.
        """
        try:
            return self.module.put_model(host, dict.fromkeys(batched, self.group.world_count))
        except NotImplementedError as error:
            raise NotImplementedError(
                f"SolverMuJoCo: MuJoCo Warp does not take world {int(self.group.worlds[0])} "
                f"('{self.group.spec.modelname}'): "
                f"{error} Leave that out, or step in MuJoCo's C engine (on a CPU)."
            ) from error

    def _switch_geoms(self) -> None:
        """Keep geoms that lost their contact bits from contact; MuJoCo Warp filters pairs only at its start.

        The gap only affects where contacts are searched for.
        """
        group, masks = self.group, self.group.plan.masks
        off = (group.value("geom_contype") | group.value("geom_conaffinity")) == 0
        off &= (masks.contype | masks.conaffinity) != 0
        self.model.geom_gap.assign(np.where(off, -FAR_APART, 0.0).astype(np.float32))

    def _host_model(self) -> Any:
        """Return the group's model with all geoms enabled, without flags that MuJoCo Warp lacks."""
        host, masks = copy.copy(self.group.model), self.group.plan.masks
        host.qpos0[:] = reference_qpos(host)
        host.geom_contype[:], host.geom_conaffinity[:] = masks.contype, masks.conaffinity
        known = 0
        for bit in self.module.DisableBit:
            known |= int(bit)
        host.opt.disableflags &= known
        return host

    def is_batched(self, name: str) -> bool:
        """Return whether a field of `mjModel` may differ between worlds in MuJoCo Warp."""
        field_type = self.module.Model.__dataclass_fields__.get(name)
        shape: tuple[Any, ...] = getattr(getattr(field_type, "type", None), "shape", ())
        return bool(shape) and shape[0] == "*"

    def _adopt(self, name: str, rows: wp.array) -> None:
        """Make the data use the rows in place."""
        old = getattr(self.data, name)
        if old.size == 0:
            return
        view = same_memory(rows, old.dtype, old.shape)
        if hasattr(old, "_is_batched"):
            view._is_batched = True
        setattr(self.data, name, view)


def _flat(array: wp.array) -> wp.array:
    """Return the memory of an array of numbers of four bytes as one axis."""
    kind = wp.int32 if array.dtype is wp.int32 else wp.float32
    return same_memory(array, kind, (array.capacity // 4,))
