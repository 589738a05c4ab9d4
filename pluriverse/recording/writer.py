"""Writer: a recording of a simulation, written while it runs."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

import pluriverse
from pluriverse.model.schema import MOTION_ARRAYS
from pluriverse.recording.appearance import AppearanceWriter
from pluriverse.recording.container import ContainerWriter
from pluriverse.recording.moment import contacts_of
from pluriverse.recording.tables import SHAPE_APPEARANCE, renumbered, rows_of, write_tables
from pluriverse.render.frame_clock import FrameClock

# Incremented when entries of the file change their meaning.
FILE_VERSION = 1
FILE_KIND = "pluriverse recording"
FILE_SUFFIX = ".pvr"
COUNTERS = {
    "frozen": "world_frozen",
    "unconverged": "unconverged_step_count",
    "truncated": "truncated_step_count",
    "contact_count": "last_contact_count",
    "iterations": "last_solve_iterations",
}
"""Per-world entries of each frame, and the solver arrays that they come from."""


class RecordingWriter(FrameClock):
    """Records a simulation to a file, for `RecordedRun`. Made, and started, by `Simulation.record`.

    It records until `stop` or `close`; at its end a `with` block does both. Each frame is in the file once it
    was taken: if the program is killed, no earlier frame is lost.

    Args:
        simulation: The simulation.
        path: File to write, such as "run.pvr"; an old one of that name is replaced.
        worlds: Worlds, or environments of a simulation with variants, to record; all if None.
        fps: Frames per second of simulated time. Frames are taken after whole steps.
        contacts: Whether frames hold the contacts.

    Raises:
        IndexError: If there is no such world.
        OSError: If the file cannot be written.
        ValueError: If `fps` is out of range, or no world is chosen.
    """

    def __init__(
        self,
        simulation: Any,
        path: str | Path,
        *,
        worlds: Any = None,
        fps: float = 30.0,
        contacts: bool = True,
    ) -> None:
        super().__init__(simulation, fps=fps, speed=1.0, what="record")
        model = simulation.model
        count = getattr(simulation, "environment_count", model.world_count)
        self.environments = selected_worlds(worlds, count, "record")
        """Worlds, or environments, that are recorded, shape [recorded world]."""
        self.path = Path(path)
        """The file."""
        self._has_contacts = contacts
        # Environments may later use any of the worlds that were prepared for them.
        moves = count != model.world_count
        self._worlds = np.arange(model.world_count) if moves else self._shown_worlds()
        self._container: ContainerWriter | None = ContainerWriter(self.path)
        container = self._container
        container.add_json(
            "header",
            {
                "kind": FILE_KIND,
                "version": FILE_VERSION,
                "program": pluriverse.__version__,
                "solver": type(simulation.solver).__name__,
                "dt": simulation.dt,
                "decimation": simulation.decimation,
                "fps": self.fps,
                "world_count": model.world_count,
                "environment_count": count,
                "environments": self.environments.tolist(),
                "worlds": self._worlds.tolist(),
            },
        )
        rows = rows_of(model, self._worlds)
        self._shapes = rows.shape
        self._appearance = AppearanceWriter(container, model)
        self._appearance.add_appearances()
        self._appearance.add_meshes(model.shape_source_index.numpy()[rows.shape])
        write_tables(container, model, self._worlds, rows)
        self._body = renumbered(np.arange(model.body_count), rows.body, model.body_count)
        self._last_appearance = self._current_appearance()
        self._appearance_count = 1
        self._frame_count = 0
        self._shown: np.ndarray = np.zeros(0, dtype=np.int64)
        self._is_running = False

    @property
    def frame_count(self) -> int:
        """Number of frames so far."""
        return self._frame_count

    def __exit__(self, *error: object) -> None:
        self.close(with_report=error[0] is None)

    def start(self) -> None:
        """Record, or go on after `stop`: one frame at once, then one whenever it is due in `step`."""
        if not self._is_running:
            super().start()
            self._is_running = True

    def stop(self) -> None:
        """Record no more until `start`."""
        if self._is_running:
            super().stop()
            self._is_running = False

    def capture(self) -> None:
        """Take a frame now.

        Raises:
            OSError: If there is no room on the disk.
            ValueError: If the file was closed.
        """
        if self._container is None or self._container.is_closed:
            raise ValueError(f"record: '{self.path}' was closed. Record into another file.")
        simulation = self._simulation
        self._write_appearance()
        worlds = self._shown_worlds()
        if not np.array_equal(worlds, self._shown):
            self._shown, self._rows = worlds, rows_of(simulation.model, worlds)
        rows, solver = self._rows, simulation.solver
        fields: dict[str, Any] = {
            "time": np.float64(simulation.time),
            "step_count": np.int64(simulation.step_count),
            "look": np.int32(self._appearance_count - 1),
            "world": worlds.astype(np.int32),
        }
        for name, kind in zip(MOTION_ARRAYS, ("coord", "dof", "body", "body"), strict=True):
            values = getattr(simulation.state, name).numpy()
            fields[name] = values[getattr(rows, kind)]
        for name, counter in COUNTERS.items():
            fields[name] = getattr(solver, counter).numpy()[worlds].astype(np.int32)
        if self._has_contacts:
            contacts = contacts_of(simulation, worlds)
            fields["contact_point"] = contacts.point.astype(np.float32)
            fields["contact_force"] = contacts.force.astype(np.float32)
            fields["contact_world"] = contacts.world.astype(np.int32)
        self._container.add(f"frame/{self._frame_count:08d}", _packed(fields))
        self._frame_count += 1

    def close(self, *, with_report: bool = True) -> None:
        """Record no more and close the file, with the report of the simulation unless it is not wanted."""
        self.stop()
        container, self._container = self._container, None
        if container is None:
            return
        try:
            if with_report:
                container.add_json("report", dataclasses.asdict(self._simulation.report()))
        finally:
            if not container.is_closed:  # by an error before
                container.close()

    def _shown_worlds(self) -> np.ndarray:
        if hasattr(self._simulation, "environment_world"):
            worlds: np.ndarray = self._simulation.environment_world.numpy()[self.environments]
            return worlds.astype(np.int64)
        return self.environments

    def _current_appearance(self) -> dict[str, np.ndarray]:
        model = self._simulation.model
        return {name: getattr(model, f"shape_{name}").numpy()[self._shapes] for name in SHAPE_APPEARANCE}

    def _write_appearance(self) -> None:
        """Write the appearance of shapes if it has changed."""
        container, now = self._container, self._current_appearance()
        assert container is not None
        if all(np.array_equal(now[name], self._last_appearance[name]) for name in SHAPE_APPEARANCE):
            return
        self._appearance.add_meshes(now["source_index"])
        for name in SHAPE_APPEARANCE:
            container.add(f"look/{self._appearance_count}/{name}", now[name])
        self._last_appearance = now
        self._appearance_count += 1


def start_recording(simulation: Any, path: str | Path, **options: Any) -> RecordingWriter:
    """Return a writer that records a simulation already; its arguments are those of `RecordingWriter`.

    Raises:
        IndexError: If there is no such world.
        OSError: If the file cannot be written.
        ValueError: If an option is out of range, or the name does not end in `.pvr`, by which
            `pluriverse view` knows a recording.
    """
    path = Path(path)
    if path.suffix.lower() != FILE_SUFFIX:
        raise ValueError(
            f"record: '{path}' ends in '{path.suffix}', but the name of a recording ends in {FILE_SUFFIX}. A "
            "recorder() makes a video; `pluriverse export` makes videos, stages and arrays of a recording."
        )
    writer = RecordingWriter(simulation, path, **options)
    writer.start()
    return writer


def _packed(fields: dict[str, Any]) -> np.ndarray:
    """Return named arrays as one entry: a frame is in the file completely or not at all."""
    arrays = {name: np.asarray(value) for name, value in fields.items()}
    result = np.zeros((), dtype=[(name, array.dtype, array.shape) for name, array in arrays.items()])
    for name, array in arrays.items():
        result[name] = array
    return result


def selected_worlds(worlds: Any, count: int, what: str) -> np.ndarray:
    """Return indices of worlds, all of `count` if None.

    Raises:
        IndexError: If there is no such world.
        ValueError: If none is chosen.
    """
    if worlds is None:
        return np.arange(count)
    selected = np.atleast_1d(np.asarray(worlds))
    if selected.size == 0 or not np.issubdtype(selected.dtype, np.integer):
        raise ValueError(f"{what}: worlds are {worlds!r}, but must be indices of worlds, at least one.")
    bad = selected[(selected < 0) | (selected >= count)]
    if bad.size:
        raise IndexError(
            f"{what}: world {int(bad[0])} does not exist; the model has worlds 0 to {count - 1}."
        )
    return np.unique(selected.astype(np.int64))
