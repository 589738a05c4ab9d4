"""CPU workers: for each thread a model and data of every group, and their addresses for kernels."""

import copy
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import warp as wp

from pluriverse.solvers.mujoco.cpu.library import (
    address_of,
    contact_address,
    field_address,
    find_layout,
    set_memory,
)
from pluriverse.solvers.mujoco.mapping.fields import reference_qpos
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup

# Addresses in a worker, in the order of `addresses`.
_DATA_ARRAYS = (
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
    "solver_niter",
    "xpos",
    "xmat",
)
_MODEL_ARRAYS = (
    "geom_bodyid",
    "geom_priority",
    "geom_condim",
    "geom_solmix",
    "geom_solref",
    "geom_solimp",
    "geom_friction",
    "body_invweight0",
)
_NAMES = ("model", "data", "contact", "warning", "timestep", "disableflags", *_DATA_ARRAYS, *_MODEL_ARRAYS)
ADDRESS_COUNT = wp.constant(len(_NAMES))
(
    MODEL,
    DATA,
    CONTACT,
    WARNING,
    TIMESTEP,
    DISABLEFLAGS,
    QPOS,
    QVEL,
    ACT,
    WARMSTART,
    CTRL,
    QFRC,
    XFRC,
    MOCAP_POS,
    MOCAP_QUAT,
    EQ_ACTIVE,
    NITER,
    XPOS,
    XMAT,
    GEOM_BODYID,
    GEOM_PRIORITY,
    GEOM_CONDIM,
    GEOM_SOLMIX,
    GEOM_SOLREF,
    GEOM_SOLIMP,
    GEOM_FRICTION,
    BODY_INVWEIGHT,
) = (wp.constant(index) for index in range(len(_NAMES)))
# Least memory of data for contacts, constraints and the solver [B]. Unused memory is never touched, so it
# costs address space only.
MEMORY_MIN = 64 << 20


class CpuWorker:
    """Model and data of each group with which one thread steps worlds.

    Args:
        groups: Groups of all worlds.
        memory: Memory of each group's data for contacts, constraints and the solver [B].
        own_models: Whether the worker needs its own models, since others write into theirs at the same time.
    """

    def __init__(self, groups: Sequence[MujocoGroup], memory: Sequence[int], own_models: Sequence[bool]):
        self.sources = [group.model for group in groups]
        self._field_names = [list(group.fields) for group in groups]
        self._revisions = [group.revision for group in groups]
        self.models = [
            copy.copy(group.model) if own else group.model
            for group, own in zip(groups, own_models, strict=True)
        ]
        for model, own in zip(self.models, own_models, strict=True):
            if own:
                model.qpos0[:] = reference_qpos(model)  # fields are derived in it
        self.data = []
        for model, size in zip(self.models, memory, strict=True):
            before = model.narena
            set_memory(model, size)
            self.data.append(mujoco.MjData(model))
            set_memory(model, before)

    def addresses(self) -> np.ndarray:
        """Return the addresses of all groups, shape [group, address]."""
        return np.array(
            [_addresses(model, data) for model, data in zip(self.models, self.data, strict=True)],
            dtype=np.uint64,
        )

    def is_outdated(self, group_index: int, group: MujocoGroup) -> bool:
        """Return whether a group has another model, or more fields that differ between worlds."""
        return (
            group.model is not self.sources[group_index]
            or group.revision != self._revisions[group_index]
            or list(group.fields) != self._field_names[group_index]
        )

    def update_model(self, group_index: int, names: Sequence[str]) -> None:
        """Copy fields that all worlds share from the model of a group, if the worker has its own."""
        source, model = self.sources[group_index], self.models[group_index]
        if model is source:
            return
        for name in names:
            *path, last = name.split(".")
            owner, target = source, model
            for part in path:
                owner, target = getattr(owner, part), getattr(target, part)
            if isinstance(getattr(target, last), np.ndarray):
                getattr(target, last)[...] = getattr(owner, last)
            else:
                setattr(target, last, getattr(owner, last))

    def field_address(self, group_index: int, name: str) -> int:
        """Return the address of a field in the model of a group."""
        return field_address(self.models[group_index], name)


def _addresses(model: Any, data: Any) -> list[int]:
    special = {
        "model": model._address,
        "data": data._address,
        "contact": contact_address(data),
        "warning": address_of(data.warning.number),
        "timestep": model._address + find_layout().model["opt.timestep"],
        "disableflags": model._address + find_layout().model["opt.disableflags"],
    }
    return [
        *special.values(),
        *(address_of(getattr(data, name)) for name in _DATA_ARRAYS),
        *(address_of(getattr(model, name)) for name in _MODEL_ARRAYS),
    ]
