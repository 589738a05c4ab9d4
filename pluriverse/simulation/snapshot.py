"""Snapshot: all data that the next steps of a simulation depend on, in memory or in a file.

The file is an archive as in `pluriverse.model.archive`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from pluriverse.copying import Uncopied
from pluriverse.model import Control, Model, State
from pluriverse.model.archive import (
    check_fit,
    read_arrays,
    read_integer,
    take_array,
    take_text,
    write_arrays,
)
from pluriverse.model.attributes import find_attribute
from pluriverse.model.schema import REQUESTED_ARRAYS

# Raised when arrays of the file change their meaning.
FILE_VERSION = 2
_WHAT = "a snapshot of a simulation"
_SOLVER = "solver/"
_ADDED = "added/"


@dataclass(frozen=True)
class SimulationSnapshot(Uncopied):
    """All data that the next steps of a simulation depend on, except solver options and time step."""

    copy_remedy = "Keep the snapshot itself: nothing changes it."
    pickle_remedy = "Write it to a file with write(), and read it with SimulationSnapshot.read()."

    step_count: int
    """Solver steps made since the beginning."""
    state: State
    """Copy of the state."""
    control: Control
    """Copy of the control."""
    world_frozen: wp.array[int]
    """Copy of the solver's `world_frozen`, shape [world]."""
    model_arrays: dict[str, Any]
    """Copies of the writable arrays of the model, by name; custom attributes by key.

    Drives that actuators hold off are those of the model without the actuators."""
    structure: str
    """Fingerprint of the structure of the model."""
    stage_driven: np.ndarray
    """1 where a stage drove a degree of freedom in place of the model, on the host, shape [dof]."""
    solver_arrays: dict[str, wp.array] = field(default_factory=dict)
    """Copies of the solver's `runtime_arrays`, by name."""
    added_arrays: dict[str, wp.array] = field(default_factory=dict)
    """Copies of the arrays added with `Simulation.add_snapshot_array`, by name."""

    def write(self, path: str | Path) -> None:
        """Write the snapshot to a file, bit for bit."""
        arrays: dict[str, np.ndarray] = {
            "version": np.array(FILE_VERSION),
            "structure": np.array(self.structure),
            "step_count": np.array(self.step_count, dtype=np.int64),
            "world_frozen": self.world_frozen.numpy(),
            "stage_driven": self.stage_driven,
        }
        for name, array in self.state.arrays().items():
            arrays[f"state/{name}"] = array.numpy()
        for name, array in self.control.arrays().items():
            arrays[f"control/{name}"] = array.numpy()
        for name, array in self.model_arrays.items():
            arrays[f"model/{name}"] = array.numpy()
        for name, array in self.solver_arrays.items():
            arrays[f"{_SOLVER}{name}"] = array.numpy()
        for name, array in self.added_arrays.items():
            arrays[f"{_ADDED}{name}"] = array.numpy()
        write_arrays(path, arrays)

    @staticmethod
    def read(path: str | Path, model: Model) -> "SimulationSnapshot":
        """Return the snapshot in a file.

        Args:
            path: File that `write` made.
            model: Model of the same structure, on any device.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file is not a snapshot, is damaged, or belongs to a model of another structure.
        """
        arrays = read_arrays(path, _WHAT)
        version = read_integer(arrays, "version", path, _WHAT)
        if version != FILE_VERSION:
            raise ValueError(
                f"'{path}': the snapshot has version {version}, but this program reads version "
                f"{FILE_VERSION}. Write it again with this program."
            )
        check_structure(take_text(arrays, "structure", path, _WHAT), model, f"'{path}'")
        state, control = model.state(), model.control()
        frozen: wp.array[int] = wp.zeros(model.world_count, dtype=wp.int32, device=model.device)
        driven: wp.array[int] = wp.zeros(model.joint_dof_count, dtype=wp.int32, device=model.device)
        model_arrays = editable_arrays(model)
        for key, array in {
            "world_frozen": frozen,
            "stage_driven": driven,
            **{
                f"state/{name}": array
                for name, array in state.arrays().items()
                if name not in REQUESTED_ARRAYS or f"state/{name}" in arrays  # else zero, as it is new
            },
            **{f"control/{name}": array for name, array in control.arrays().items()},
            **{f"model/{name}": array for name, array in model_arrays.items()},
        }.items():
            values = take_array(arrays, key, path, _WHAT)
            check_fit(array, values, f"'{path}': {key}")
            array.assign(values)
        return SimulationSnapshot(
            read_integer(arrays, "step_count", path, _WHAT),
            state,
            control,
            frozen,
            model_arrays,
            model.structure.fingerprint,
            driven.numpy(),
            *(
                {
                    name.removeprefix(prefix): _read_array(values, model, f"'{path}': {name}")
                    for name, values in arrays.items()
                    if name.startswith(prefix)
                }
                for prefix in (_SOLVER, _ADDED)
            ),
        )


def _read_array(values: np.ndarray, model: Model, what: str) -> wp.array:
    """Return an array of a file that is not the model's; its shape is checked where it is copied.

    Raises:
        ValueError: If it cannot be one.
    """
    if values.dtype.kind not in "biuf" or values.ndim not in (1, 2, 3, 4):
        raise ValueError(f"{what} has shape {values.shape} and type {values.dtype}. The file was damaged.")
    try:
        return wp.array(values, device=model.device)
    except (RuntimeError, TypeError, KeyError) as error:
        raise ValueError(f"{what} has type {values.dtype}. The file was damaged.") from error


def editable_arrays(model: Model) -> dict[str, Any]:
    """Return copies of the writable arrays of a model; custom attributes by their keys."""
    guarded = model.guarded_arrays
    return {
        name: wp.clone(array)
        for name, array in sorted({**vars(model), **model.custom_arrays}.items())
        if isinstance(array, wp.array) and name not in guarded
    }


def write_editable_arrays(model: Model, arrays: Mapping[str, Any]) -> None:
    """Copy what `editable_arrays` returned back to the model."""
    for name, array in arrays.items():
        wp.copy(find_attribute(model, name), array)


def check_structure(structure: str, model: Model, what: str) -> None:
    """Raise if a fingerprint does not match a model.

    Raises:
        ValueError: If the structures differ.
    """
    if structure != model.structure.fingerprint:
        raise ValueError(
            f"{what}: the snapshot belongs to a model of another structure: other worlds, joints or shapes, "
            "or in another order. Restore it into a simulation of the same model, built in the same way."
        )


class AddedArrays:
    """Named arrays that are saved and restored together with a simulation.

    Args:
        device: Device of the model, which they must be on.
    """

    def __init__(self, device: wp.Device) -> None:
        self._device = device
        self._arrays: dict[str, wp.array] = {}

    def add(self, name: str, array: wp.array) -> None:
        """Add an array, as `name 2`, `name 3` and so on if the name is taken.

        Raises:
            ValueError: If the array is on another device.
        """
        if array.device != self._device:
            raise ValueError(
                f"Simulation.add_snapshot_array: '{name}' is on {array.device}, but the model is on "
                f"{self._device}."
            )
        number, unique = 1, name
        while unique in self._arrays:
            number += 1
            unique = f"{name} {number}"
        self._arrays[unique] = array

    def replace(self, name: str, array: wp.array) -> None:
        """Replace the array of a name.

        Raises:
            ValueError: If the array is on another device.
        """
        self._arrays.pop(name, None)
        self.add(name, array)

    def copies(self) -> dict[str, wp.array]:
        """Return copies of all."""
        return {name: wp.clone(array) for name, array in self._arrays.items()}

    def restore(self, saved_arrays: Mapping[str, wp.array]) -> None:
        """Restore the arrays saved under the same names.

        Raises:
            ValueError: If one has another shape or type now; then nothing changes.
        """
        mine = {name: array for name, array in self._arrays.items() if name in saved_arrays}
        for name, array in mine.items():
            saved = saved_arrays[name]
            if (saved.shape, saved.dtype) != (array.shape, array.dtype):
                raise ValueError(
                    f"Simulation.restore: '{name}' has shape {array.shape} and type {array.dtype.__name__}, "
                    f"but shape {saved.shape} and type {saved.dtype.__name__} in the snapshot. Add the same "
                    "arrays in the same order as where it was saved."
                )
        for name, array in mine.items():
            wp.copy(array, saved_arrays[name])


def copy_if_alike(source: Mapping[str, wp.array], target: Mapping[str, wp.array]) -> None:
    """Copy arrays to those of the same names, if all have the same shapes and types; else none."""
    kinds = [
        {name: (array.shape, array.dtype) for name, array in arrays.items()} for arrays in (source, target)
    ]
    if kinds[0] == kinds[1]:
        for name, array in target.items():
            wp.copy(array, source[name])
