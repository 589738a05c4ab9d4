"""MujocoOptions: MuJoCo's options, resolved from constructor, model and defaults.

A value comes from the constructor of `SolverMuJoCo`, else from the custom attribute `model.mujoco.<option>`,
which may differ between worlds, else from MuJoCo, except that the integrator is `implicitfast`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pluriverse.mujoco_attributes.choices import FLAGS_OFF, FLAGS_ON
from pluriverse.solvers.fixed_settings import FixedOptions
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows

_NAMES: dict[str, tuple[str, ...]] = {
    "solver": ("pgs", "cg", "newton"),
    "integrator": ("euler", "rk4", "implicit", "implicitfast", "discrete"),
    "cone": ("pyramidal", "elliptic"),
    "jacobian": ("dense", "sparse", "auto"),
}
"""Names of the members of `mjtSolver`, `mjtIntegrator`, `mjtCone` and `mjtJacobian`, by number."""

IMPLICIT_FAST = 3
"""`mujoco.mjtIntegrator.mjINT_IMPLICITFAST`."""

BATCHED = (
    "impratio",
    "tolerance",
    "ls_tolerance",
    "ccd_tolerance",
    "density",
    "viscosity",
    "wind",
    "magnetic",
)
"""Options of `mjOption` that may differ between the worlds of a group. Other differences split groups."""

SHARED = (
    "iterations",
    "ls_iterations",
    "ccd_iterations",
    "sdf_iterations",
    "sdf_initpoints",
    "noslip_iterations",
    "noslip_tolerance",
    "solver",
    "integrator",
    "cone",
    "jacobian",
    "sleep_tolerance",
)
"""Options of `mjOption` that are the same for all worlds of a group."""


@dataclass(kw_only=True)
class MujocoOptions(FixedOptions):
    """The keyword arguments of `SolverMuJoCo` that concern MuJoCo's model; see there. None: not given."""

    iterations: int | None = None
    ls_iterations: int | None = None
    ccd_iterations: int | None = None
    sdf_iterations: int | None = None
    sdf_initpoints: int | None = None
    noslip_iterations: int | None = None
    noslip_tolerance: float | None = None
    solver: int | str | None = None
    integrator: int | str | None = None
    cone: int | str | None = None
    jacobian: int | str | None = None
    impratio: float | None = None
    tolerance: float | None = None
    ls_tolerance: float | None = None
    ccd_tolerance: float | None = None
    sleep_tolerance: float | None = None
    density: float | None = None
    viscosity: float | None = None
    wind: Sequence[float] | None = None
    magnetic: Sequence[float] | None = None
    enable_multiccd: bool | None = None
    enable_sleeping: bool | None = None
    disable_contacts: bool | None = None
    disable_sensors: bool | None = None
    include_sites: bool = True
    skip_visual_only_geoms: bool = True
    use_mujoco_contacts: bool = True
    enforce_velocity_limit: bool = False
    """Whether the engine keeps joints below `joint_velocity_limit`."""
    keep_margins: bool = True
    """Whether margins are always passed on; MuJoCo Warp before 3.17 accepts none on boxes and meshes."""

    def __post_init__(self) -> None:
        for name, names in _NAMES.items():
            value = getattr(self, name)
            if value is not None:
                _number_of(name, value, names)
        for name in ("wind", "magnetic"):
            value = getattr(self, name)
            if value is not None and (np.shape(value) != (3,) or not np.isfinite(value).all()):
                raise ValueError(f"SolverMuJoCo: {name} is {value!r}, but it must be three finite numbers.")
        for name in (
            "iterations",
            "ls_iterations",
            "ccd_iterations",
            "sdf_iterations",
            "sdf_initpoints",
            "noslip_iterations",
        ):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | np.integer) and value >= 0):
                raise ValueError(f"SolverMuJoCo: {name} is {value!r}, but it must be a whole number >= 0.")
        for name in (
            "impratio",
            "tolerance",
            "ls_tolerance",
            "ccd_tolerance",
            "sleep_tolerance",
            "noslip_tolerance",
            "density",
            "viscosity",
        ):
            value = getattr(self, name)
            if value is not None and not (np.ndim(value) == 0 and 0.0 <= float(value) < np.inf):
                raise ValueError(f"SolverMuJoCo: {name} is {value!r}, but it must be a finite number >= 0.")
        if self.impratio == 0.0:
            raise ValueError("SolverMuJoCo: impratio is 0, but it must be a number > 0.")
        self.fix()

    def shared(self, rows: ModelRows) -> dict[str, np.ndarray]:
        """Return the options that split groups, shape [world]: those of `SHARED`, and the switches.

        Switches are 1 where on.
        """
        count = rows.model.world_count
        result = {name: self._resolve(name, rows, count) for name in SHARED}
        default = {"energy": 0, "invdiscrete": 0}
        for name in (*FLAGS_ON, *FLAGS_OFF):
            values = _by_world(rows.custom_array(f"flag_{name}"), count)
            result[f"flag_{name}"] = np.full(count, default.get(name, 1)) if values is None else values != 0
        for argument, flag, is_enable in (
            ("enable_multiccd", "flag_multiccd", True),
            ("disable_contacts", "flag_contact", False),
            ("disable_sensors", "flag_sensor", False),
        ):
            value = getattr(self, argument)
            if value is not None:
                result[flag] = np.full(count, bool(value) == is_enable)
        sleeping = _by_world(rows.custom_array("enable_sleeping"), count)
        if self.enable_sleeping is not None or sleeping is None:
            sleeping = np.full(count, bool(self.enable_sleeping))
        result["flag_sleep"] = sleeping != 0
        return result

    def batched(self, rows: ModelRows) -> dict[str, np.ndarray]:
        """Return the options of `BATCHED` and gravity, shape [world] or [world, 3]."""
        result = {name: self._resolve(name, rows, rows.model.world_count) for name in BATCHED}
        result["gravity"] = rows.array("gravity")
        return result

    def _resolve(self, name: str, rows: ModelRows, count: int) -> np.ndarray:
        import mujoco

        given = getattr(self, name)
        if given is not None:
            value = _number_of(name, given, _NAMES[name]) if name in _NAMES else given
            return np.broadcast_to(np.asarray(value, dtype=np.float64), (count, *np.shape(value))).copy()
        authored = _by_world(rows.custom_array(name), count)
        if authored is not None:
            return authored.astype(np.float64)
        default = IMPLICIT_FAST if name == "integrator" else getattr(mujoco.MjOption(), name)
        return np.broadcast_to(np.asarray(default, dtype=np.float64), (count, *np.shape(default))).copy()


OPTION_NAMES = tuple(
    field.name
    for field in fields(MujocoOptions)
    if field.name not in ("keep_margins", "enforce_velocity_limit")
)
"""Keyword arguments of `SolverMuJoCo` that are options here."""


def write_option(option: Any, values: dict[str, np.ndarray], world: int) -> None:
    """Write the resolved options of a world (`shared` and `batched`) into an `mjOption`."""
    import mujoco

    for name, entries in values.items():
        value = entries[world]
        if name.startswith("flag_"):
            _switch(option, name.removeprefix("flag_"), bool(value), mujoco)
        elif np.ndim(value):
            getattr(option, name)[:] = value
        elif name in BATCHED or name in ("sleep_tolerance", "noslip_tolerance"):
            setattr(option, name, float(value))
        else:
            setattr(option, name, int(value))


def _switch(option: Any, name: str, on: bool, mujoco: Any) -> None:
    """Set a switch; whether it disables or enables depends on the version of MuJoCo."""
    disable = getattr(mujoco.mjtDisableBit, f"mjDSBL_{name.upper()}", None)
    enable = getattr(mujoco.mjtEnableBit, f"mjENBL_{name.upper()}", None)
    if disable is not None:
        bit = int(disable)
        option.disableflags = option.disableflags & ~bit if on else option.disableflags | bit
    elif enable is not None:
        bit = int(enable)
        option.enableflags = option.enableflags | bit if on else option.enableflags & ~bit


def _by_world(values: np.ndarray | None, count: int) -> np.ndarray | None:
    """Return an attribute given once, or once per world, for each world."""
    if values is None:
        return None
    if len(values) == count:
        return values
    if len(values) == 1:
        return np.repeat(values, count, axis=0)
    raise ValueError(
        f"SolverMuJoCo: an option in model.mujoco has {len(values)} values, but the model has {count} "
        "worlds. Give one value, or one per world."
    )


def _number_of(name: str, value: int | str, names: tuple[str, ...]) -> int:
    """Return the number of a choice that is given by name or number."""
    if isinstance(value, str) and value.lower() in names:
        return names.index(value.lower())
    if isinstance(value, int | np.integer) and 0 <= int(value) < len(names):
        return int(value)
    raise ValueError(
        f"SolverMuJoCo: {name} is {value!r}, but it must be one of {', '.join(repr(n) for n in names)}, or "
        f"its number from 0 to {len(names) - 1}."
    )
