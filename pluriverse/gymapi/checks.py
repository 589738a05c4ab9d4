"""Checks: convert the handles of calls into objects, or raise a clear error."""

import operator
from typing import Any

import numpy as np

from pluriverse.gymapi.arguments import as_list
from pluriverse.gymapi.asset import Asset
from pluriverse.gymapi.enums import IndexDomain
from pluriverse.gymapi.errors import GymError
from pluriverse.gymapi.scene import Actor, Env, Sim

INVALID_HANDLE = -1
"""Return value of calls that find nothing."""


class Checks:
    """The part of `Gym` that all other parts use."""

    def _sim(self, sim: Any, call: str) -> Sim:
        if not isinstance(sim, Sim):
            raise TypeError(
                f"{call}: sim is {sim!r}, but must be what create_sim() returned (None if it failed)."
            )
        if sim.is_destroyed:
            raise GymError(f"{call}: the sim was destroyed by destroy_sim(). Create another one.")
        return sim

    def _open_sim(self, sim: Any, call: str) -> Sim:
        """Return a sim that is not prepared yet."""
        found = self._sim(sim, call)
        if found.is_prepared:
            raise GymError(
                f"{call}: the sim is prepared, by {found.prepared_by}(), so nothing can be added to it. Call "
                f"{call}() before."
            )
        return found

    def _asset(self, asset: Any, call: str) -> Asset:
        if not isinstance(asset, Asset):
            raise TypeError(
                f"{call}: asset is {asset!r}, but must be what load_asset() or create_box() and its like "
                "returned."
            )
        return asset

    def _env(self, env: Any, call: str) -> Env:
        if not isinstance(env, Env):
            raise TypeError(f"{call}: env is {env!r}, but must be what create_env() or get_env() returned.")
        if env.is_destroyed or env.sim.is_destroyed:
            raise GymError(f"{call}: env {env.index} was destroyed. Use another one.")
        return env

    def _actor(self, env: Any, handle: Any, call: str) -> Actor:
        found = self._env(env, call)
        if not _is_int(handle):
            raise TypeError(
                f"{call}: the actor handle for env {found.index} is {handle!r}, but must be the whole number "
                "that create_actor() returned."
            )
        if not 0 <= handle < len(found.actors):
            raise IndexError(
                f"{call}: env {found.index} has no actor {handle}; it has {len(found.actors)} actors"
                f"{_listed([actor.name for actor in found.actors])}. Use the handle that create_actor() "
                "returned for this env."
            )
        return found.actors[int(handle)]

    def _entry(self, index: Any, names: list[str], what: str, whose: str, call: str) -> int:
        """Return an index that is in range."""
        if not _is_int(index):
            raise TypeError(f"{call}: the {what} of {whose} is {index!r}, but must be a whole number.")
        if not 0 <= index < len(names):
            raise IndexError(f"{call}: {whose} has no {what} {index}; it has {len(names)}{_listed(names)}.")
        return int(index)

    def _body(self, env: Any, handle: Any, call: str) -> tuple[Actor, int]:
        """Return the actor and body of a body handle."""
        found = self._env(env, call)
        if not _is_int(handle):
            raise TypeError(
                f"{call}: the body handle for env {found.index} is {handle!r}, not a whole number."
            )
        result = found.actor_of_body(int(handle))
        if result is None:
            raise IndexError(
                f"{call}: env {found.index} has no body {handle}; {_handles(found.body_count)}. Use "
                "what find_actor_rigid_body_handle() or get_actor_rigid_body_handle() returns (-1 for none)."
            )
        return result

    def _dof(self, env: Any, handle: Any, call: str) -> tuple[Actor, int]:
        """Return the actor and degree of freedom of a handle."""
        found = self._env(env, call)
        result = found.dof_of_handle(int(handle)) if _is_int(handle) else None
        if result is None:
            raise IndexError(
                f"{call}: env {found.index} has no degree of freedom {handle!r}; "
                f"{_handles(found.dof_count)}. Use what find_actor_dof_handle() or get_actor_dof_handle() "
                "returns (-1 for none)."
            )
        return result[0], result[1]

    def _joint(self, env: Any, handle: Any, call: str) -> tuple[Actor, int]:
        """Return the actor and joint of a handle."""
        found = self._env(env, call)
        result = found.joint_of_handle(int(handle)) if _is_int(handle) else None
        if result is None:
            raise IndexError(
                f"{call}: env {found.index} has no joint {handle!r}; "
                f"{_handles(found.joint_count)}. Use what find_actor_joint_handle() or "
                "get_actor_joint_handle() returns (-1 for none)."
            )
        return result[0], result[1]

    def _domain(self, domain: Any, starts: tuple[int, int], local: int, call: str) -> int:
        """Return an index in a domain: `starts` are those of the actor in env and sim."""
        try:
            kind = IndexDomain(int(domain))
        except (TypeError, ValueError):
            raise ValueError(
                f"{call}: the domain is {domain!r}, but must be DOMAIN_ACTOR, DOMAIN_ENV or DOMAIN_SIM."
            ) from None
        if local < 0:
            return INVALID_HANDLE
        return local + (0, *starts)[int(kind)]

    def _env_list(self, envs: Any, call: str) -> list[Env]:
        """Return envs that are given as a list."""
        return [self._env(env, call) for env in as_list(envs, "envs", call)]

    def _numbers(self, values: Any, count: int, call: str, what: str) -> np.ndarray:
        """Return an array of `count` numbers, float32."""
        try:
            array = np.asarray(values.cpu() if hasattr(values, "cpu") else values)
            array = array.astype(np.float32)
        except (TypeError, ValueError):
            raise TypeError(
                f"{call}: the array for {what} is {values!r}, which is not made of numbers."
            ) from None
        if array.shape != (count,):
            raise ValueError(
                f"{call}: the array for {what} has shape {array.shape}, but must have ({count},), one entry "
                "for each degree of freedom in whatever mode."
            )
        return array


def _is_int(value: Any) -> bool:
    """Return whether a value is a whole number: one of Python, NumPy, or a tensor of one element."""
    try:
        operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        return False
    return not isinstance(value, bool | np.bool_)


def _listed(names: list[str]) -> str:
    """Return the first names in brackets."""
    if not names:
        return ""
    shown = ", ".join(f"'{name}'" for name in names[:6])
    return f" ({shown}{', ...' if len(names) > 6 else ''})"


def _handles(count: int) -> str:
    return f"its handles are 0 to {count - 1}" if count else "it has none at all"
