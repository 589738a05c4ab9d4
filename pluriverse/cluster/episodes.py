"""Episodes: worlds that run from their initial state, each yielding one row of figures."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.cluster.description import BuiltWorlds, Description, SceneDescription
from pluriverse.cluster.errors import is_out_of_memory
from pluriverse.cluster.rows import find_array, read_rows, write_rows
from pluriverse.cluster.samples import SOLVER_PREFIX, Samples, write_samples
from pluriverse.simulation import Simulation

Policy = Callable[[dict[str, Any], range], Mapping[str, Any] | None]
"""Takes what worlds observe (`Rows` by name) and their range; returns arrays to write by name, or None."""
Metrics = Callable[[Simulation, range], Mapping[str, Any]]
"""Takes the simulation at the end and the range of its episodes; returns columns with one entry per world."""


@dataclass(frozen=True)
class Piece:
    """Episodes that one simulation makes together."""

    kind: int
    """Kind of world of a scene."""
    episodes: range
    """Places of these episodes among all of their kind."""
    samples: tuple[int, ...] = ()
    """Sample of each, where there are samples."""
    seeds: tuple[int, ...] = ()
    """Seed of the draws of each."""
    options: tuple[tuple[str, Any], ...] = ()
    """Values that all of them share: the time step and options of the solver."""

    def __str__(self) -> str:
        return f"episodes {self.episodes.start} to {self.episodes.stop - 1}"


@dataclass(frozen=True)
class EpisodeJob:
    """Parameters common to all episodes."""

    description: Description
    """The worlds. Those of a scene have one kind of world for each of its kinds, all equally many."""
    steps: int
    """Control steps of an episode; simulation steps without a policy."""
    duration: float | None
    """Length of an episode [s], in place of a number of steps."""
    step_count: int
    """Steps of the simulation in a control step."""
    policy: Policy | None
    """Controls the worlds."""
    observe: tuple[str, ...]
    """Arrays that the policy sees."""
    metrics: Metrics | None
    """Figures at the end, in addition to those of every row."""
    samples: Samples | None
    """Parameters in which worlds differ."""
    device: str | None
    """Device of the worlds."""
    threads: int
    """CPU threads of a worker."""
    column: str = "episode"
    """Name of the column that numbers the rows."""
    kind_names: tuple[str, ...] = ()
    """Names of the kinds of world of a scene."""

    def run(self, piece: Piece) -> dict[str, Any]:
        """Return the columns of the episodes of a piece; the row of one that cannot be made says why."""
        try:
            return self._run(piece)
        except (ValueError, RuntimeError) as error:
            if is_out_of_memory(error):
                raise  # no fault of the episodes: another worker may have it
            if len(piece.episodes) == 1:
                return self._names(piece) | {"error": [f"{type(error).__name__}: {error}"]}
            # One bad sample must not fail its neighbours.
            columns = [self.run(single) for single in _singles(piece)]
            names = dict.fromkeys(name for each in columns for name in each)
            return {name: [value for each in columns for value in each.get(name, [None])] for name in names}

    def _run(self, piece: Piece) -> dict[str, Any]:
        built = self._build(piece)
        with built.simulation as simulation:
            if built.randomizer is not None:
                built.randomizer.apply()
            if self.samples is not None:
                write_samples(simulation, self.samples, piece.samples, "sweep")
            if built.randomizer is not None or self.samples is not None:
                simulation.reset()
            start = _root_pose(simulation)
            self._play(built, piece)
            columns = self._names(piece) | _figures(simulation, start)
            if self.metrics is not None:
                columns |= self._own_figures(simulation, piece)
        return columns | {"error": [""] * len(piece.episodes)}

    def _build(self, piece: Piece) -> BuiltWorlds:
        if not isinstance(self.description, SceneDescription):
            return self.description.build(piece.episodes, device=self.device, threads=self.threads)
        description, shared = self.description, dict(piece.options)
        solver = {
            name.removeprefix(SOLVER_PREFIX): value
            for name, value in shared.items()
            if name.startswith(SOLVER_PREFIX)
        }
        options = description.options | ({"dt": shared["dt"]} if "dt" in shared else {})
        description = dataclasses.replace(description, options=options, solver_options=solver)
        first = sum(description.counts[: piece.kind])
        worlds = range(first + piece.episodes.start, first + piece.episodes.stop)
        identities = piece.seeds or None
        return description.build(worlds, device=self.device, threads=self.threads, identities=identities)

    def _play(self, built: BuiltWorlds, piece: Piece) -> None:
        simulation = built.simulation
        steps = self.steps
        if self.duration is not None:
            length = simulation.dt * simulation.decimation * self.step_count
            steps = max(1, int(np.ceil(round(self.duration / length, 9))))
        if self.policy is None:
            built.step(steps * self.step_count)
            return
        for _ in range(steps):
            observation = {name: read_rows(simulation, name, "observe") for name in self.observe}
            writes = self.policy(observation, piece.episodes) or {}
            for name, values in writes.items():
                write_rows(simulation, name, values, None, "the policy")
            simulation.step(self.step_count)

    def _names(self, piece: Piece) -> dict[str, Any]:
        columns: dict[str, Any] = {self.column: list(piece.episodes)}
        if len(self.kind_names) > 1:
            columns["kind"] = [self.kind_names[piece.kind]] * len(piece.episodes)
        if self.samples is not None:
            columns |= {"sample": list(piece.samples), "seed": list(piece.seeds)}
            columns |= self.samples.columns(piece.samples)
        return columns

    def _own_figures(self, simulation: Simulation, piece: Piece) -> dict[str, Any]:
        assert self.metrics is not None
        found = dict(self.metrics(simulation, piece.episodes))
        for name, values in found.items():
            if len(values) != len(piece.episodes):
                raise TypeError(
                    f"metrics: '{name}' has {len(values)} entries, but must have one for each of the "
                    f"{len(piece.episodes)} worlds of the simulation."
                )
        return {name: np.asarray(values).tolist() for name, values in found.items()}


def _singles(piece: Piece) -> list[Piece]:
    return [
        dataclasses.replace(
            piece,
            episodes=piece.episodes[index : index + 1],
            samples=piece.samples[index : index + 1],
            seeds=piece.seeds[index : index + 1],
        )
        for index in range(len(piece.episodes))
    ]


def _root_pose(simulation: Simulation) -> np.ndarray:
    """Return the position of the first body of each world [m], shape [world, 3]; NaN where there is none."""
    array, first, count = find_array(simulation, "body_q", "episode")
    positions = np.full((len(first), 3), np.nan)
    has = count > 0
    positions[has] = array.numpy()[first[has], :3]
    return positions


def _figures(simulation: Simulation, start: np.ndarray) -> dict[str, Any]:
    """Return the columns of every row: the motion of the first body, and failures."""
    moved = _root_pose(simulation) - start
    worlds: Any = slice(None)
    if hasattr(simulation, "environment_world"):
        worlds = simulation.environment_world.numpy()
    solver = simulation.solver
    return {
        "moved_x": moved[:, 0].tolist(),
        "moved_y": moved[:, 1].tolist(),
        "moved_z": moved[:, 2].tolist(),
        "frozen": (solver.world_frozen.numpy()[worlds] != 0).tolist(),
        "unconverged_steps": solver.unconverged_step_count.numpy()[worlds].tolist(),
        "truncated_steps": solver.truncated_step_count.numpy()[worlds].tolist(),
    }
