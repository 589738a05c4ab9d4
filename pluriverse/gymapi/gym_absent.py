"""Calls of features that do not exist here: soft bodies, particles, USD export.

Counts and lists say so, since scripts ask before they go on; what would make or change some raises.
"""

from collections.abc import Callable
from typing import Any, NoReturn

from pluriverse.gymapi.checks import Checks
from pluriverse.gymapi.values import IndexRange

_NO_SOFT = "soft bodies, cloth and particles are not simulated. Build the thing of rigid bodies and joints."
_NO_PRESSURE = "soft bodies, and so their pneumatic pressure, are not simulated. Use efforts on joints."
_NO_EXPORT = "sims are not written to USD stages. Keep the files that assets were loaded from."
_NO_SERVER = "asset servers are not reached. Load files from a folder."

_REFUSED = {
    **dict.fromkeys(
        (
            "create_cloth_grid",
            "create_tet_grid",
            "acquire_particle_state_tensor",
            "refresh_particle_state_tensor",
            "set_particle_state_tensor",
            "set_particle_state_tensor_indexed",
        ),
        _NO_SOFT,
    ),
    **dict.fromkeys(
        (
            "acquire_pneumatic_pressure_tensor",
            "acquire_pneumatic_target_tensor",
            "refresh_pneumatic_pressure_tensor",
            "refresh_pneumatic_target_tensor",
            "set_pneumatic_pressure_tensor",
            "set_pneumatic_pressure_tensor_indexed",
            "set_pneumatic_target_tensor",
            "set_pneumatic_target_tensor_indexed",
            "get_pneumatic_pressure",
            "get_pneumatic_target",
            "set_pneumatic_pressure",
            "set_pneumatic_target",
        ),
        _NO_PRESSURE,
    ),
    **dict.fromkeys(
        (
            "create_usd_exporter",
            "destroy_usd_exporter",
            "export_usd_asset",
            "export_usd_sim",
            "get_usd_export_root",
            "set_usd_export_root",
        ),
        _NO_EXPORT,
    ),
    "omni_connect": _NO_SERVER,
}
"""Calls that raise, and why."""


class AbsentCalls(Checks):
    """Soft bodies and USD export: nothing, and errors that say so."""

    def get_asset_soft_body_count(self, asset: Any) -> int:
        """Return 0."""
        self._asset(asset, "get_asset_soft_body_count")
        return 0

    def get_asset_soft_materials(self, asset: Any) -> list[Any]:
        """Return no materials."""
        self._asset(asset, "get_asset_soft_materials")
        return []

    def get_actor_soft_body_count(self, env: Any, actor_handle: int) -> int:
        """Return 0."""
        self._actor(env, actor_handle, "get_actor_soft_body_count")
        return 0

    def get_actor_soft_materials(self, env: Any, actor_handle: int) -> list[Any]:
        """Return no materials."""
        self._actor(env, actor_handle, "get_actor_soft_materials")
        return []

    def set_actor_soft_materials(self, env: Any, actor_handle: int, materials: Any) -> bool:
        """Take back the empty list that `get_actor_soft_materials` returns.

        Raises:
            NotImplementedError: If it is another thing.
        """
        self._actor(env, actor_handle, "set_actor_soft_materials")
        if not (isinstance(materials, list | tuple) and not materials):
            raise NotImplementedError(f"set_actor_soft_materials: {_NO_SOFT}")
        return True

    def get_actor_tetrahedra_range(self, env: Any, actor_handle: int, body: int = 0) -> IndexRange:
        """Return an empty range."""
        self._actor(env, actor_handle, "get_actor_tetrahedra_range")
        return IndexRange(0, 0)

    def get_actor_triangle_range(self, env: Any, actor_handle: int, body: int = 0) -> IndexRange:
        """Return an empty range."""
        self._actor(env, actor_handle, "get_actor_triangle_range")
        return IndexRange(0, 0)

    def get_sim_tetrahedra_count(self, sim: Any) -> int:
        """Return 0."""
        self._sim(sim, "get_sim_tetrahedra_count")
        return 0

    def get_sim_tetrahedra(self, sim: Any) -> tuple[list[Any], list[Any]]:
        """Return no tetrahedra and no stresses."""
        self._sim(sim, "get_sim_tetrahedra")
        return [], []

    def get_sim_triangle_count(self, sim: Any) -> int:
        """Return 0; soft triangles are meant."""
        self._sim(sim, "get_sim_triangle_count")
        return 0

    def get_sim_triangles(self, sim: Any) -> list[Any]:
        """Return no triangles."""
        self._sim(sim, "get_sim_triangles")
        return []

    def get_soft_contacts(self, sim: Any) -> list[Any]:
        """Return no contacts."""
        self._sim(sim, "get_soft_contacts")
        return []

    def reset_actor_particles_to_rest(self, env: Any, actor_handle: int) -> bool:
        """Accept an actor; it has no particles."""
        self._actor(env, actor_handle, "reset_actor_particles_to_rest")
        return True


def _refusal(name: str, reason: str) -> Callable[..., NoReturn]:
    """Return a call that raises."""

    def call(self: AbsentCalls, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"{name}: {reason}")

    call.__name__, call.__qualname__ = name, f"AbsentCalls.{name}"
    call.__doc__ = "Not supported.\n\nRaises:\n    NotImplementedError: Always.\n"
    return call


for _name, _reason in _REFUSED.items():
    setattr(AbsentCalls, _name, _refusal(_name, _reason))
