"""Store: read and write the rows of an actor, before and after the model is made.

Names are those of the arrays of `Model`, `State` and `Control`. Before, rows of the actor (or of its asset)
stand for the arrays; afterwards slices of the arrays do.
"""

import warnings
from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics import eval_fk, eval_ik
from pluriverse.gymapi.asset import Asset
from pluriverse.gymapi.errors import GymWarning
from pluriverse.gymapi.runtime import Runtime
from pluriverse.gymapi.scene import Actor
from pluriverse.gymapi.split_parts import find_origins
from pluriverse.model import Model
from pluriverse.model.schema import CONTROL_ARRAYS, ENTITY_OF_ARRAY, FRAME_ARRAYS, MODEL_ARRAYS, MOTION_ARRAYS
from pluriverse.types import Entity

_START_KEY = {
    Entity.BODY: "body",
    Entity.JOINT: "joint",
    Entity.JOINT_COORD: "coord",
    Entity.JOINT_DOF: "dof",
    Entity.SHAPE: "shape",
    Entity.EQUALITY_CONSTRAINT: "equality",
}


def start_key(name: str) -> str:
    """Return the key of `Actor.starts` for the first row of an array."""
    return _START_KEY[ENTITY_OF_ARRAY[name]]


_DIVIDED = ("body_mass", "body_inertia")
"""Arrays of which each part of a split body has an equal share."""


def asset_rows(asset: Asset, name: str) -> np.ndarray:
    """Return rows of an asset, as new actors have them."""
    return asset.overrides.get(name, first_rows(asset, name))


def first_rows(asset: Asset, name: str) -> np.ndarray:
    """Return the rows of an asset that its first actor had, and all actors without rows of their own."""
    cache = asset.row_cache
    if name not in cache:
        values = getattr(asset.builder, name)
        cache[name] = values.astype(np.int32 if values.dtype.kind == "i" else np.float32)
    return cache[name]


def read(actor: Actor, name: str) -> np.ndarray:
    """Return the rows of an actor; a copy."""
    runtime = actor.env.sim.runtime
    if runtime is None:
        return np.array(actor.rows.get(name, first_rows(actor.asset, name)))
    rows = np.array(_view(runtime, actor, name))
    for local, parts in _split_bodies(runtime, actor, name):
        if name in _DIVIDED:
            rows[local] *= 1 + len(parts)
    return rows


def write(actor: Actor, name: str, rows: np.ndarray) -> None:
    """Set the rows of an actor, and mark everything derived from them as outdated."""
    runtime = actor.env.sim.runtime
    if runtime is None:
        like = first_rows(actor.asset, name)
        actor.rows[name] = np.asarray(rows, dtype=like.dtype).reshape(like.shape)
        return
    kind = start_key(name)
    start, stop = actor.starts[kind], actor.starts[kind] + _count(actor.asset, name)
    if start == stop:
        return
    array = _array(runtime, name)
    cut = _split_bodies(runtime, actor, name)
    if cut:
        rows = np.array(rows, dtype=np.float32).reshape(stop - start, -1)
        for local, parts in cut:
            if name in _DIVIDED:
                rows[local] /= 1 + len(parts)
            for part in parts:
                _put(array, part, part + 1, rows[local])
    _put(array, start, stop, rows)
    if name not in MOTION_ARRAYS and name not in CONTROL_ARRAYS:
        runtime.changed |= MODEL_ARRAYS[name].flag
    if name in ("joint_q", "joint_qd", *FRAME_ARRAYS):
        runtime.mark_kinematics(actor.starts["articulation"], actor.env.world)


def _put(array: Any, start: int, stop: int, rows: np.ndarray) -> None:
    """Write rows of an array of the model."""
    if array.device.is_cpu:
        view = array.numpy()[start:stop]
        view[...] = np.asarray(rows).reshape(view.shape)
    else:
        kind_of = np.int32 if array.dtype is wp.int32 else np.float32
        array[start:stop].assign(np.ascontiguousarray(rows, dtype=kind_of))


def _split_bodies(runtime: Runtime, actor: Actor, name: str) -> list[tuple[int, list[int]]]:
    """Return the split bodies of an actor, for arrays that parts share: index in the actor, parts."""
    if not runtime.split_parts or name not in ("body_com", *_DIVIDED):
        return []
    start = actor.starts["body"]
    bodies = range(start, start + actor.asset.body_count)
    return [(body - start, parts) for body, parts in runtime.split_parts.items() if body in bodies]


def _array(runtime: Runtime, name: str) -> Any:
    if name in MOTION_ARRAYS:
        return getattr(runtime.simulation.state, name)
    if name in CONTROL_ARRAYS:
        return getattr(runtime.simulation.control, name)
    return getattr(runtime.model, name)


def _count(asset: Asset, name: str) -> int:
    """Return how many rows of an array an asset has."""
    return int(getattr(asset.builder, f"{ENTITY_OF_ARRAY[name].key}_count"))


def _view(runtime: Runtime, actor: Actor, name: str) -> np.ndarray:
    kind = start_key(name)
    start = actor.starts[kind]
    stop = start + _count(actor.asset, name)
    array = _array(runtime, name)
    if array.device.is_cpu or start == stop:
        return array.numpy()[start:stop]
    if not runtime.warned_of_copies:
        runtime.warned_of_copies = True
        warnings.warn(
            "calls on the host copy data from the GPU and wait for it; use tensors where it matters.",
            GymWarning,
            stacklevel=4,
        )
    return array[start:stop].numpy()


class Prototype:
    """A model of an asset alone, on the CPU: it gives the poses of an actor before the sim is prepared.

    Args:
        asset: The asset.
    """

    def __init__(self, asset: Asset):
        self.model: Model = asset.builder.finalize("cpu")
        self.state = self.model.state()
        self._count = asset.body_count
        # Parts that were cut from bodies are the last ones.
        self._origin = find_origins(self.model, np.arange(self.model.body_count) < self._count)

    def place(self, actor: Actor) -> tuple[np.ndarray, np.ndarray]:
        """Return poses and velocities of the bodies of an actor."""
        self._take(actor)
        eval_fk(self.model, self.state.joint_q, self.state.joint_qd, self.state)
        body_q, body_qd = self.state.body_q.numpy(), self.state.body_qd.numpy()
        return body_q.reshape(-1, 7)[: self._count], body_qd.reshape(-1, 6)[: self._count]

    def joint_state_of(
        self, actor: Actor, body_q: np.ndarray, body_qd: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return joint coordinates and velocities of bodies, and the poses that follow from them."""
        self._take(actor)
        self.state.body_q.numpy()[...] = body_q[self._origin]
        self.state.body_qd.numpy()[...] = body_qd[self._origin]
        eval_ik(self.model, self.state, self.state.joint_q, self.state.joint_qd)
        joint_q, joint_qd = self.state.joint_q.numpy().copy(), self.state.joint_qd.numpy().copy()
        eval_fk(self.model, self.state.joint_q, self.state.joint_qd, self.state)
        return joint_q, joint_qd, self.state.body_q.numpy().reshape(-1, 7)[: self._count]

    def _take(self, actor: Actor) -> None:
        for name in ("joint_X_p", "joint_X_c"):
            target = getattr(self.model, name).numpy()
            target[...] = read(actor, name).reshape(target.shape)
        self.model.body_com.numpy()[...] = read(actor, "body_com").reshape(-1, 3)[self._origin]
        self.state.joint_q.numpy()[...] = read(actor, "joint_q")
        self.state.joint_qd.numpy()[...] = read(actor, "joint_qd")


def prototype(asset: Asset) -> Prototype:
    """Return the prototype of an asset."""
    if asset.prototype is None:
        asset.prototype = Prototype(asset)
    found: Prototype = asset.prototype
    return found
