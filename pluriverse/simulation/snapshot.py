"""Snapshot: everything that the next steps of a simulation depend on, in memory or in a file.

The file is an archive as in `pluriverse.model.archive`.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from pluriverse.model import Control, Model, State
from pluriverse.model.archive import check_fit, read_arrays, take_array, write_arrays
from pluriverse.model.topology import Template

# Raised when arrays of the file change their meaning.
FILE_VERSION = 1
_WHAT = "a snapshot of a simulation"
_SOLVER = "solver/"


@dataclass(frozen=True)
class SimulationSnapshot:
    """Everything that the next steps of a simulation depend on, except solver options and time step."""

    step_count: int
    """Solver steps made since the beginning."""
    state: State
    """Copy of the state."""
    control: Control
    """Copy of the control."""
    world_frozen: wp.array[int]
    """Copy of the solver's `world_frozen`, shape [world]."""
    model_arrays: dict[str, Any]
    """Copies of the arrays of the model that may be written to, by name, custom attributes by key."""
    structure: str
    """Fingerprint of the structure of the model."""
    solver_arrays: dict[str, wp.array] = field(default_factory=dict)
    """Copies of the solver's `runtime_arrays`, by name."""

    def write(self, path: str | Path) -> None:
        """Write the snapshot to a file, bit for bit."""
        arrays: dict[str, np.ndarray] = {
            "version": np.array(FILE_VERSION),
            "structure": np.array(self.structure),
            "step_count": np.array(self.step_count, dtype=np.int64),
            "world_frozen": self.world_frozen.numpy(),
        }
        for name, array in self.state.arrays().items():
            arrays[f"state/{name}"] = array.numpy()
        for name, array in self.control.arrays().items():
            arrays[f"control/{name}"] = array.numpy()
        for name, array in self.model_arrays.items():
            arrays[f"model/{name}"] = array.numpy()
        for name, array in self.solver_arrays.items():
            arrays[f"{_SOLVER}{name}"] = array.numpy()
        write_arrays(path, arrays)

    @staticmethod
    def read(path: str | Path, model: Model) -> "SimulationSnapshot":
        """Return the snapshot in a file.

        Args:
            path: File that `write` made.
            model: Model of the same structure, on any device.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file is no snapshot, is damaged, or belongs to a model of another structure.
        """
        arrays = read_arrays(path, _WHAT)
        version = take_array(arrays, "version", path, _WHAT)
        if version.shape != () or version != FILE_VERSION:
            raise ValueError(
                f"'{path}': the snapshot has version {version.tolist()}, but this program reads version "
                f"{FILE_VERSION}. Write it again with this program."
            )
        check_structure(str(take_array(arrays, "structure", path, _WHAT)), model, f"'{path}'")
        state, control = model.state(), model.control()
        frozen: wp.array[int] = wp.zeros(model.world_count, dtype=wp.int32, device=model.device)
        model_arrays = editable_arrays(model)
        for key, array in {
            "world_frozen": frozen,
            **{f"state/{name}": array for name, array in state.arrays().items()},
            **{f"control/{name}": array for name, array in control.arrays().items()},
            **{f"model/{name}": array for name, array in model_arrays.items()},
        }.items():
            values = take_array(arrays, key, path, _WHAT)
            check_fit(array, values, f"'{path}': {key}")
            array.assign(values)
        return SimulationSnapshot(
            int(take_array(arrays, "step_count", path, _WHAT)),
            state,
            control,
            frozen,
            model_arrays,
            structure_fingerprint(model),
            {
                name.removeprefix(_SOLVER): wp.array(values, device=model.device)
                for name, values in arrays.items()
                if name.startswith(_SOLVER)
            },
        )


def editable_arrays(model: Model) -> dict[str, Any]:
    """Return copies of the arrays of a model that may be written to, custom attributes by their keys."""
    sealed = model.sealed_arrays
    return {
        name: wp.clone(array)
        for name, array in sorted({**vars(model), **model.custom_arrays}.items())
        if isinstance(array, wp.array)
        and not (name in sealed or name.endswith("_world_start") or name == "worlds")
    }


def structure_fingerprint(model: Model) -> str:
    """Return a text that is equal for models of equal structure and, but by chance, different for others."""
    digest = hashlib.sha256()
    counts = [model.world_count, model.body_count, model.joint_count, model.shape_count]
    digest.update(np.array(counts, dtype=np.int64).tobytes())
    digest.update(np.ascontiguousarray(model.world_template, dtype=np.int64).tobytes())
    for name in model.sealed_arrays:
        digest.update(np.ascontiguousarray(getattr(model, name).numpy()).tobytes())
    for mesh in model.meshes:
        digest.update(np.ascontiguousarray(mesh.vertices).tobytes())
    for template in model.templates:
        for name, value in _template_arrays(template).items():
            digest.update(f"{name}{value.shape}".encode())
            digest.update(value.astype(np.int64).tobytes())
    return digest.hexdigest()


def _template_arrays(template: Template) -> dict[str, np.ndarray]:
    """Return the arrays of a template that the builder gave, and the pairs of shapes."""
    names = ("joint_type", "joint_parent", "joint_child", "pair_shape0", "pair_shape1")
    sizes = np.array([template.body_count, template.shape_count])
    return {"sizes": sizes, **{name: getattr(template, name) for name in names}}


def check_structure(structure: str, model: Model, what: str) -> None:
    """Raise if a fingerprint is not that of a model.

    Raises:
        ValueError: If the structures differ.
    """
    if structure != structure_fingerprint(model):
        raise ValueError(
            f"{what}: the snapshot belongs to a model of another structure: other worlds, joints or shapes, "
            "or in another order. Restore it into a simulation of the same model, built in the same way."
        )
