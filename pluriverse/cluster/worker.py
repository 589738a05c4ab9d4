"""Worker: one process that holds some of the worlds of a description and makes calls on them.

Results depend on the previous calls alone, so repeated calls give the same bits. Lost work is repeated that
way (`pluriverse.cluster.part`).
"""

import dataclasses
import os
import pickle
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.cluster.description import BuiltWorlds
from pluriverse.cluster.rows import Rows, read_rows, write_rows
from pluriverse.cluster.runtime import versions
from pluriverse.simulation import SimulationReport
from pluriverse.variants.simulation import VariantSimulation

Call = tuple[str, tuple[Any, ...]]
"""Name of a method of `Worker` and its arguments."""


class Worker:
    """Some worlds in a process of their own."""

    def __init__(self) -> None:
        self._built: BuiltWorlds | None = None
        self._worlds = range(0)

    def versions(self) -> dict[str, str]:
        """Return the versions that decide the bits of a step here."""
        return versions()

    def process_id(self) -> int:
        """Return the number of this process on its machine."""
        return os.getpid()

    def build(self, description: bytes, worlds: range, device: Any, threads: int | None) -> None:
        """Build the worlds of a pickled description, replacing existing ones."""
        import warp as wp

        wp.config.log_level = wp.LOG_ERROR
        self._built = pickle.loads(description).build(worlds, device=device, threads=threads)
        self._worlds = worlds

    def run(self, calls: Sequence[Call]) -> list[Any]:
        """Do some calls in their order and return their results."""
        return [getattr(self, name)(*arguments) for name, arguments in calls]

    def prepare(self) -> None:
        """Compile and record the step."""
        self._worlds_built().simulation.prepare()

    def step(self, count: int) -> None:
        """Make steps."""
        self._worlds_built().step(count)

    def reset(self, worlds: np.ndarray | None, draw: bool) -> None:
        """Reset worlds, by their indices here, to their initial state, with new draws on request."""
        built = self._worlds_built()
        if draw:
            variants = built.simulation
            if isinstance(variants, VariantSimulation) and variants.scene.config.reassignable:
                variants.reassign(worlds)
            if built.randomizer is not None:
                built.randomizer.apply(worlds)
        built.simulation.reset(worlds)

    def write(self, name: str, values: Any, worlds: np.ndarray | None) -> None:
        """Write an array of the state, the control or the model."""
        simulation = self._worlds_built().simulation
        write_rows(simulation, name, values, worlds, "Fleet.write")
        if getattr(simulation.state, name, None) is None and getattr(simulation.control, name, None) is None:
            from pluriverse.model.schema import MODEL_ARRAYS

            simulation.notify_model_changed(MODEL_ARRAYS[name].flag)

    def observe(self, names: Sequence[str]) -> dict[str, Rows]:
        """Return what each world has of some arrays."""
        simulation = self._worlds_built().simulation
        return {name: read_rows(simulation, name, "Fleet.observe") for name in names}

    def call(self, function: bytes, arguments: tuple[Any, ...]) -> Any:
        """Return what a pickled function returns for the simulation and its worlds."""
        return pickle.loads(function)(self._worlds_built().simulation, self._worlds, *arguments)

    def report(self) -> SimulationReport:
        """Return the figures of these worlds; frozen worlds by their indices among all."""
        report = self._worlds_built().simulation.report()
        frozen = tuple(self._worlds.start + world for world in report.frozen_worlds)
        return dataclasses.replace(report, frozen_worlds=frozen)

    def snapshot(self) -> dict[str, Any]:
        """Return everything that further steps, resets and draws depend on."""
        built = self._worlds_built()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "snapshot.npz"
            built.simulation.save(path)
            data = np.fromfile(path, dtype=np.uint8)  # an array, so that it travels without a copy
        episode = None if built.randomizer is None else built.randomizer.episode.numpy().copy()
        return {"simulation": data, "episode": episode}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Come back to a snapshot."""
        built = self._worlds_built()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "snapshot.npz"
            snapshot["simulation"].tofile(path)
            built.simulation.restore(path)
        if built.randomizer is not None:
            built.randomizer.episode.assign(snapshot["episode"])

    def _worlds_built(self) -> BuiltWorlds:
        if self._built is None:
            raise RuntimeError("the worker has no worlds yet; build comes first.")
        return self._built
