"""Simulation parameters out of configuration files: dictionaries with the names of the structures' fields."""

import difflib
import enum
import math
import warnings
from collections.abc import Mapping
from typing import Any

from pluriverse.gymapi.arguments import truth
from pluriverse.gymapi.enums import UpAxis
from pluriverse.gymapi.errors import GymWarning
from pluriverse.gymapi.structures import FlexParams, PhysXParams, SimParams
from pluriverse.gymapi.values import Vec3

_AXES = {"y": UpAxis.UP_AXIS_Y, "z": UpAxis.UP_AXIS_Z}


def parse_sim_config(sim_cfg: Mapping[str, Any], sim_options: SimParams) -> None:
    """Take the entries of a configuration over into simulation parameters.

    Entries have the names of the fields of `SimParams`; `physx` and `flex` are configurations themselves.
    A configuration is a dictionary, or a class or other object with the entries as attributes.
    Numbers may be written as text (YAML reads 1e-3 as text), `up_axis` also as "y" or "z", `gravity` as a
    list. Entries that name no field are left out, with one warning.

    Raises:
        TypeError: If an argument is of the wrong kind.
        ValueError: If a value cannot be that of its field; the message names the entry.
    """
    if not isinstance(sim_options, SimParams):
        raise TypeError(f"parse_sim_config: sim_options is {sim_options!r}, but must be a gymapi.SimParams.")
    entries = dict(_mapping(sim_cfg, "parse_sim_config"))
    physx, flex = entries.pop("physx", None), entries.pop("flex", None)
    if physx is not None:
        parse_physx_config(physx, sim_options.physx)
    if flex is not None:
        parse_flex_config(flex, sim_options.flex)
    _take(entries, sim_options, "parse_sim_config")


def parse_physx_config(physx_cfg: Mapping[str, Any], physx_options: PhysXParams) -> None:
    """Take the entries of a configuration over into `PhysXParams`, as `parse_sim_config` does.

    Raises:
        ValueError: If a value cannot be that of its field.
    """
    _take(_mapping(physx_cfg, "parse_physx_config"), physx_options, "parse_physx_config")


def parse_flex_config(flex_cfg: Mapping[str, Any], flex_options: FlexParams) -> None:
    """Take the entries of a configuration over into `FlexParams`, as `parse_sim_config` does.

    Raises:
        ValueError: If a value cannot be that of its field.
    """
    _take(_mapping(flex_cfg, "parse_flex_config"), flex_options, "parse_flex_config")


def _mapping(entries: Any, call: str) -> Mapping[str, Any]:
    if isinstance(entries, Mapping):
        return entries
    if isinstance(entries, str | bytes | int | float | list | tuple | set | None):
        raise TypeError(f"{call}: the configuration is {entries!r}, but must be a dictionary or a namespace.")
    # Suites of tasks configure by classes in classes, which inherit from each other; others by namespaces.
    names = dict.fromkeys(name for name in dir(entries) if not name.startswith("_"))
    values = {name: getattr(entries, name) for name in names}
    return {name: value for name, value in values.items() if isinstance(value, type) or not callable(value)}


def _take(entries: Mapping[str, Any], target: Any, call: str) -> None:
    """Set the fields of a structure that entries name."""
    known = type(target).__dataclass_fields__
    unknown = []
    for name, value in entries.items():
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            unknown.append(f"'{name}'" + (f" (did you mean '{near[0]}'?)" if near else ""))
            continue
        try:
            setattr(target, name, _converted(value, getattr(target, name)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{call}: {name} is {value!r}: {error}") from None
    if unknown:
        warnings.warn(
            f"{call}: {type(target).__name__} has no field for {', '.join(unknown)}; left out.",
            GymWarning,
            stacklevel=3,
        )


def _converted(value: Any, present: Any) -> Any:
    """Return a value of the kind of the present one."""
    if isinstance(present, UpAxis) and isinstance(value, str) and not value.strip().isdigit():
        name = value.strip().lower().removeprefix("up_axis_")
        if name not in _AXES:
            raise ValueError('write "y", "z", 0 (y) or 1 (z).')
        return _AXES[name]
    if isinstance(present, bool):
        return truth(value)
    if isinstance(present, enum.IntEnum):
        return type(present)(int(value))
    if isinstance(present, int):
        number = float(value)
        if not number.is_integer():
            raise ValueError("write a whole number.")
        return int(number)
    if isinstance(present, float):
        number = float(value)
        if math.isnan(number):
            raise ValueError("write a number.")
        return number
    if isinstance(present, Vec3):
        parts = [float(part) for part in value]
        if len(parts) != 3:
            raise ValueError("write three numbers.")
        return Vec3(*parts)
    return value
