"""Recorded run: a run of a simulation in one file, to view and to export."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from pluriverse.model.schema import MOTION_ARRAYS
from pluriverse.recording.appearance import AppearanceReader
from pluriverse.recording.container import ContainerReader
from pluriverse.recording.moment import ContactPoints, Moment
from pluriverse.recording.recorded_model import RecordedModel
from pluriverse.recording.tables import SHAPE_APPEARANCE, Rows, read_tables, rows_of
from pluriverse.recording.writer import COUNTERS, FILE_KIND, FILE_VERSION
from pluriverse.render.film import Film
from pluriverse.render.visual import SeenGeometry

_WHAT = "a recording of a simulation"
# Errors that NumPy raises for inconsistent values in a file whose checksums are right.
_MISFIT = (KeyError, IndexError, TypeError, AttributeError, ValueError)


class RecordedRun:
    """A run of a simulation, read from a file that `Simulation.record` wrote.

    A file that was cut off, or is still being written, holds the frames up to its last complete one. Frames
    are read on demand. No code in a file is run.

    Args:
        path: The file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is not a recording, is damaged, has no complete frame, or has another version of the
            format.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        """The file."""
        self._container = ContainerReader(path, _WHAT)
        try:
            self._open()
        except BaseException:
            self._container.close()
            raise

    def _open(self) -> None:
        container, path = self._container, self.path
        header = container.read_json("header")
        if not isinstance(header, dict) or header.get("kind") != FILE_KIND:
            raise ValueError(f"'{path}' is not {_WHAT}: it is another archive of arrays.")
        if header.get("version") != FILE_VERSION:
            raise ValueError(
                f"'{path}': the recording has version {header.get('version')} of the format, written by "
                f"pluriverse {header.get('program')}; this program reads version {FILE_VERSION}. "
                "Record it again, or open it with that program."
            )
        self._names = [name for name in container.names if name.startswith("frame/")]
        if not self._names:
            raise ValueError(
                f"'{path}': the recording ends before its first frame; nothing can be shown of it."
            )
        try:
            self.dt = float(header["dt"])
            """Time step of the solver [s]."""
            self.fps = float(header["fps"])
            """Frames per second of simulated time."""
            self.solver = str(header["solver"])
            """Name of the solver's class."""
            self.environments = np.array(header["environments"], dtype=np.int64)
            """Worlds, or environments of a simulation with variants, that were recorded."""
            self.has_environments = header["environment_count"] != header["world_count"]
            """Whether environments may change worlds."""
            self._read_model(header)
        except _MISFIT as error:
            raise ValueError(f"'{path}' is not {_WHAT}: {error}.") from error

    def _read_model(self, header: dict[str, Any]) -> None:
        container = self._container
        worlds = np.array(header["worlds"], dtype=np.int64)
        labels = {
            f"{kind}_label": container.read_json(f"model/{kind}_label")
            for kind in ("body", "joint", "shape", "world")
        }
        tables = read_tables(container)
        appearance = AppearanceReader(container)
        self._appearance_reader = appearance
        counts = {kind: int(tables[f"{kind}_count"].sum()) for kind in ("body", "joint", "coord", "dof")}
        state: dict[str, np.ndarray] = {
            "joint_q": np.zeros(counts["coord"], dtype=np.float32),
            "joint_qd": np.zeros(counts["dof"], dtype=np.float32),
            "body_q": np.tile(np.array([0, 0, 0, 0, 0, 0, 1], dtype=np.float32), (counts["body"], 1)),
            "body_qd": np.zeros((counts["body"], 6), dtype=np.float32),
        }
        self.model = RecordedModel(header["world_count"], worlds, tables, labels, appearance, state)
        """The visible part of the model. Worlds have the indices that they had in the simulation."""
        self._initial = state
        self._counts = tables
        self._rows: dict[bytes, Rows] = {}
        self._appearances: dict[int, dict[str, np.ndarray]] = {}
        first = self._state(0)
        for name in MOTION_ARRAYS:
            getattr(self.model, name).assign(first[name])

    @property
    def is_complete(self) -> bool:
        """Whether the file was closed; otherwise the program was killed, or is still running."""
        return self._container.is_complete

    @property
    def frame_count(self) -> int:
        """Number of frames."""
        return len(self._names)

    @property
    def duration(self) -> float:
        """Time from the first to the last frame at the rate of frames [s]."""
        return (self.frame_count - 1) / self.fps

    @property
    def report(self) -> dict[str, Any] | None:
        """Figures of the run as in `SimulationReport`, None if it never finished."""
        if "report" not in self._container:
            return None
        result: dict[str, Any] = self._container.read_json("report")
        return result

    @property
    def time(self) -> np.ndarray:
        """Simulated time of each frame [s], shape [frame]."""
        return np.array([float(self._frame(frame)["time"]) for frame in range(self.frame_count)])

    def array(self, name: str) -> np.ndarray:
        """Return an array of the state in all frames, such as `joint_q` of shape [frame, coord].

        Entities are those of the recorded worlds, in the order of `model`. Worlds that no environment uses in
        a frame are at zero.

        Args:
            name: `joint_q`, `joint_qd`, `body_q` or `body_qd`.

        Raises:
            KeyError: If there is no such array.
        """
        if name not in MOTION_ARRAYS:
            raise KeyError(f"recording: there is no array '{name}'; there are {', '.join(MOTION_ARRAYS)}.")
        return np.stack([self._state(frame)[name].copy() for frame in range(self.frame_count)])

    def worlds_of(self, frame: int) -> np.ndarray:
        """Return the world of each recorded environment in a frame; without variants, the recorded worlds."""
        return self._frame(frame)["world"].astype(np.int64)

    def moment(self, frame: int) -> Moment:
        """Return the moment of a frame.

        Raises:
            IndexError: If there is no such frame.
        """
        record, state = self._frame(frame), self._state(frame)
        worlds, count = record["world"], self.model.world_count

        def counter(name: str) -> np.ndarray:
            values = np.zeros(count, dtype=np.int32)
            values[worlds] = record[name]
            return values

        counters = {name: counter(name) for name in COUNTERS}
        counters["frozen"] = counters["frozen"] != 0
        return Moment(time=float(record["time"]), step_count=int(record["step_count"]), **state, **counters)

    def contacts(self, frame: int) -> ContactPoints:
        """Return the contacts in a frame; none where they were not recorded.

        Raises:
            IndexError: If there is no such frame.
        """
        record = self._frame(frame)
        if "contact_point" not in (record.dtype.names or ()):
            return ContactPoints(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, dtype=np.int64))
        return ContactPoints(
            record["contact_point"].astype(np.float64),
            record["contact_force"].astype(np.float64),
            record["contact_world"].astype(np.int64),
        )

    def show_frame(self, frame: int) -> None:
        """Set the appearance and poses of `model` to those of a frame, for code that draws a model.

        Raises:
            IndexError: If there is no such frame.
        """
        for name, values in self.appearance(frame).items():
            getattr(self.model, f"shape_{name}").assign(values)
        state = self._state(frame)
        for name in MOTION_ARRAYS:
            getattr(self.model, name).assign(state[name])

    def appearance(self, frame: int) -> dict[str, np.ndarray]:
        """Return how shapes looked in a frame: the arrays of `model` that may change, without `shape_`.

        Raises:
            IndexError: If there is no such frame.
        """
        index = int(self._frame(frame)["look"])
        if index not in self._appearances:
            prefix = "model/shape_" if index == 0 else f"look/{index}/"
            values = {name: self._container.read(f"{prefix}{name}") for name in SHAPE_APPEARANCE}
            values["source_index"] = self._appearance_reader.new_indices(values["source_index"])
            self._appearances[index] = values
        return self._appearances[index]

    def film(
        self, worlds: Sequence[int] | int | None = None, *, geometry: SeenGeometry | str = SeenGeometry.VISUAL
    ) -> Film:
        """Return the frames of some worlds (environments; the first if None), to render them.

        Raises:
            IndexError: If a world was not recorded.
        """
        return RecordedFilm(self, self.recorded_positions(worlds, "film", count_max=1), geometry)

    def recorded_positions(self, worlds: Any, what: str, *, count_max: int | None = None) -> np.ndarray:
        """Return the positions of worlds (environments) among those recorded.

        Args:
            worlds: Indices, or one; None for the first `count_max`, or all.
            what: The caller, for messages.
            count_max: Largest number of worlds that None selects.

        Raises:
            IndexError: If one was not recorded.
            ValueError: If none is named.
        """
        if worlds is None:
            return np.arange(len(self.environments))[:count_max]
        selected = np.atleast_1d(np.asarray(worlds))
        if selected.size == 0 or not np.issubdtype(selected.dtype, np.integer):
            raise ValueError(f"{what}: worlds are {worlds!r}, but must be indices of worlds, at least one.")
        positions = []
        for world in selected.tolist():
            found = np.flatnonzero(self.environments == world)
            if not len(found):
                raise IndexError(
                    f"{what}: world {world} was not recorded; '{self.path}' has {_listed(self.environments)}."
                )
            positions.append(int(found[0]))
        return np.array(positions)

    def close(self) -> None:
        """Close the file."""
        self._container.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        end = "" if self.is_complete else ", cut off"
        return (
            f"RecordedRun('{self.path}', {self.frame_count} frames in {self.duration:.6g} s, worlds "
            f"{_listed(self.environments)}{end})"
        )

    def _frame(self, frame: int) -> np.ndarray:
        if not -self.frame_count <= frame < self.frame_count:
            raise IndexError(
                f"recording: frame {frame} does not exist; '{self.path}' has frames 0 to "
                f"{self.frame_count - 1}."
            )
        record = self._container.read(self._names[frame])
        if record.shape != () or record.dtype.names is None or "world" not in record.dtype.names:
            raise ValueError(f"'{self.path}' is not {_WHAT}: frame {frame} is damaged.")
        return record

    def _state(self, frame: int) -> dict[str, np.ndarray]:
        """Return the state of all recorded worlds in a frame."""
        record = self._frame(frame)
        worlds = record["world"].astype(np.int64)
        key = worlds.tobytes()
        if key not in self._rows:
            self._rows[key] = rows_of(self.model, worlds)
        rows = self._rows[key]
        state = {name: values.copy() for name, values in self._initial.items()}
        for name, kind in zip(MOTION_ARRAYS, ("coord", "dof", "body", "body"), strict=True):
            state[name][getattr(rows, kind)] = record[name]
        return state


class RecordedFilm(Film):
    """The frames of a recording, to render them.

    Args:
        recording: The recording.
        positions: Positions of the shown worlds among those recorded.
        geometry: Which shapes are drawn.
    """

    def __init__(self, recording: RecordedRun, positions: np.ndarray, geometry: SeenGeometry | str) -> None:
        super().__init__(recording.model, recording.fps, geometry)
        self._recording = recording
        self._positions = positions

    @property
    def frame_count(self) -> int:
        """Number of frames."""
        return self._recording.frame_count

    def _worlds_of(self, frame: int) -> list[int]:
        worlds: list[int] = self._recording.worlds_of(frame)[self._positions].tolist()
        return worlds

    def _body_q_of(self, frame: int) -> np.ndarray:
        return self._recording.moment(frame).body_q

    def _appearance_of(self, frame: int) -> dict[str, np.ndarray]:
        return self._recording.appearance(frame)


def _listed(worlds: np.ndarray) -> str:
    if len(worlds) > 2 and (np.diff(worlds) == 1).all():
        return f"{worlds[0]} to {worlds[-1]}"
    shown = ", ".join(str(world) for world in worlds[:12].tolist())
    return shown + (", ..." if len(worlds) > 12 else "")
