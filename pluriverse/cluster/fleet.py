"""Fleet: the worlds of one description over many processes and machines."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from pluriverse.cluster.crew import ask_parts, parts_as_they_end, start_parts
from pluriverse.cluster.description import describe
from pluriverse.cluster.part import SNAPSHOT_INTERVAL, Part, Placement
from pluriverse.cluster.rows import Rows
from pluriverse.cluster.runtime import connect, pickled
from pluriverse.cluster.worker import Call
from pluriverse.simulation import SimulationReport

Observation = dict[str, Rows]
"""Arrays by their names, cut into worlds."""


class Fleet:
    """Steps the worlds of one description in many processes, with the bits of one process, world for world.

    Every worker is a Ray actor with a `Simulation` of some neighbouring worlds. A lost worker is replaced by
    one that repeats its work from the last snapshot, with the same bits.

    Args:
        scene: Scene file or name of a bundled scene; or a function that takes a `range` of worlds and returns
            a `Simulation` of them, called on the workers.
        worlds: Number of all worlds; that of the scene if None.
        workers: Number of workers; one per core of the cluster if None, but not more than worlds.
        threads: CPU threads of each worker.
        gpus: GPUs that Ray sets aside for each worker; parts are allowed.
        device: Device of the worlds on each worker; the GPU that Ray gave it if it has one, else the CPU.
        dt: Time step of a scene [s], instead of its own.
        decimation: Solver steps in one step.
        strict: Whether worlds in trouble are errors.
        solver: Solver of a scene, "sap" or "mujoco".
        asset_roots: Further folders that a scene may read files from, on this machine.
        address: Address of a Ray cluster, or "auto"; None uses the one that Ray is connected to, or starts
            one on this machine.
        snapshot_interval: Calls after which each worker sends a snapshot, from which lost work is repeated.

    Raises:
        ClusterError: If there is no such cluster, workers find no place, or run other versions.
        ImportError: If Ray is not installed.
        TypeError: If `scene` is neither a scene nor a function.
        ValueError: If a number is out of range, the scene is wrong, or the function cannot be sent.
    """

    def __init__(
        self,
        scene: str | Path | Callable[[range], Any],
        *,
        worlds: int | None = None,
        workers: int | None = None,
        threads: int = 1,
        gpus: float = 0.0,
        device: str | None = None,
        dt: float | None = None,
        decimation: int | None = None,
        strict: bool | None = None,
        solver: str = "sap",
        asset_roots: Sequence[str | Path] = (),
        address: str | None = None,
        snapshot_interval: int = SNAPSHOT_INTERVAL,
    ) -> None:
        for name, value in (
            ("workers", workers),
            ("threads", threads),
            ("snapshot_interval", snapshot_interval),
        ):
            if value is not None and (
                not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1
            ):
                raise ValueError(f"Fleet: {name} is {value!r}, but must be a whole number of at least 1.")
        description = describe(
            scene,
            worlds=worlds,
            solver=solver,
            asset_roots=asset_roots,
            what="Fleet",
            dt=dt,
            decimation=decimation,
            strict=strict,
        )
        count = description.world_count
        if workers is not None and workers > count:
            raise ValueError(
                f"Fleet: {workers} workers cannot share {count} worlds. Use at most {count} workers."
            )
        self._ray = connect(address, workers or 1, threads)
        if workers is None:
            cores = int(self._ray.cluster_resources().get("CPU", 1.0) / threads)
            workers = max(1, min(cores, count))
        payload = pickled(description, "Fleet: the description of the worlds")
        placement = Placement(float(threads), float(gpus), threads, device or ("cuda:0" if gpus else "cpu"))
        self._parts = [
            Part(index, part, payload, placement, int(snapshot_interval))
            for index, part in enumerate(shared_out(description.costs(), workers))
        ]
        self._world_count = count
        try:
            start_parts(self._ray, self._parts)
        except BaseException:
            self.close()
            raise

    @property
    def world_count(self) -> int:
        """Number of all worlds."""
        return self._world_count

    @property
    def parts(self) -> tuple[Part, ...]:
        """The worlds of each worker."""
        return tuple(self._parts)

    @property
    def restart_count(self) -> int:
        """Number of workers that were lost and replaced."""
        return sum(part.restart_count for part in self._parts)

    def step(self, count: int = 1, *, observe: str | Sequence[str] = ()) -> Observation:
        """Make steps of all worlds, wait for the end of them, and return what `observe` names.

        One call that steps and observes takes half as many messages as two.

        Args:
            count: Number of steps.
            observe: Names of arrays to return as they are after the steps.

        Raises:
            ClusterError: If a worker is lost twice over the same work.
            WorkerTaskError: If a worker raises, in strict mode of worlds in trouble.
        """
        names = (observe,) if isinstance(observe, str) else tuple(observe)
        calls: list[Call] = [("step", (int(count),))]
        if names:
            calls.append(("observe", (names,)))
        return _joined(names, [results[-1] for results in self._do([calls] * len(self._parts))])

    def reset(self, worlds: Any = None, *, draw: bool = True) -> None:
        """Reset worlds (default: all) to their initial states.

        Args:
            worlds: Indices, or one truth value per world; None for all.
            draw: Whether to redraw the scene's randomization, and variants.

        Raises:
            IndexError: If there is no such world.
            ValueError: If a mask has not one entry per world.
        """
        self._do([[("reset", (local, draw))] for local in self._local(worlds, "Fleet.reset")])

    def write(self, name: str, values: Any, worlds: Any = None) -> None:
        """Write an array of the states, the controls or the models.

        Args:
            name: Name of the array, such as `joint_target_pos` or `body_mass`.
            values: One number for all; or the entries of the worlds, one after the other, in any shape.
            worlds: Indices in increasing order, or one truth value per world; None for all.

        Raises:
            IndexError: If there is no such world.
            WorkerTaskError: If there is no such array, or values do not fit.
        """
        selection = self._local(worlds, "Fleet.write")
        given = np.array(values)  # a copy: it is sent again if a worker is lost
        if given.ndim == 0:
            self._do([[("write", (name, given, local))] for local in selection])
            return
        sizes = self._entry_counts(name)
        counts = [
            int(sizes[part.index][slice(None) if local is None else local].sum())
            for part, local in zip(self._parts, selection, strict=True)
        ]
        total = sum(counts)
        flat = given.reshape(-1)
        if total == 0 or flat.size % total:
            raise ValueError(
                f"Fleet.write: values of {name} have shape {given.shape}, but these worlds have {total} "
                "entries."
            )
        bounds = np.concatenate([[0], np.cumsum(counts)]) * (flat.size // total)
        self._do(
            [
                [("write", (name, flat[bounds[index] : bounds[index + 1]], local))] if counts[index] else []
                for index, local in enumerate(selection)
            ]
        )

    def set_targets(self, positions: Any = None, velocities: Any = None, worlds: Any = None) -> None:
        """Write the targets of drives, by degree of freedom: positions [m or rad], velocities [m/s or rad/s].

        Raises:
            As `write`.
        """
        for name, values in (("joint_target_pos", positions), ("joint_target_vel", velocities)):
            if values is not None:
                self.write(name, values, worlds)

    def observe(self, names: str | Sequence[str] = ("joint_q", "joint_qd")) -> Observation:
        """Return arrays of all worlds, in the order of the worlds.

        Those of workers on this machine are read where the worker put them; they are joined by one copy.

        Args:
            names: Names of arrays of the state, the control or the model.

        Raises:
            WorkerTaskError: If there is no such array.
        """
        requested = (names,) if isinstance(names, str) else tuple(names)
        found = [results[0] for results in self._do([[("observe", (requested,))]] * len(self._parts))]
        return _joined(requested, found)

    def call(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call a function on every worker and return what each returns.

        Args:
            function: Takes the `Simulation` of a worker and the `range` of its worlds among all. It may
                change the simulation; if work must be repeated, it is called again.
            *arguments: Further arguments.

        Raises:
            ValueError: If the function cannot be sent to workers.
            WorkerTaskError: If it raises.
        """
        payload = pickled(function, "Fleet.call: the function")
        return [results[0] for results in self._do([[("call", (payload, arguments))]] * len(self._parts))]

    def rollout(
        self,
        policy: Callable[[Observation, range], Mapping[str, Any] | None],
        *,
        steps: int,
        step_count: int = 1,
        names: Sequence[str] = ("joint_q", "joint_qd"),
    ) -> Iterator[tuple[Part, int, Observation]]:
        """Control all worlds by a policy on this process, each worker at its own pace.

        No worker waits for another: as soon as one has an observation, the policy is called and the worker
        continues. A world gets the same bits as in a loop over `observe`, `write` and `step`.

        Args:
            policy: Takes what some worlds observe and their range, and returns arrays to write by their
                names, such as `{"joint_target_pos": ...}`, or None.
            steps: How often each world is controlled.
            step_count: Steps between two of these.
            names: Arrays to observe.

        Yields:
            The part, the number of its control step from 0 on, and what it observed before.

        Raises:
            ClusterError: If a worker is lost twice over the same work.
            WorkerTaskError: If a worker raises.
        """
        watch: list[Call] = [("observe", (tuple(names),))]
        done = dict.fromkeys((part.index for part in self._parts), 0)
        for part in self._parts:
            part.begin(watch)
        for part, results in parts_as_they_end(self._ray, self._parts):
            number = done[part.index]
            if number < steps:
                writes = policy(results[-1], part.worlds) or {}
                part.begin(
                    [
                        *(("write", (name, np.array(values), None)) for name, values in writes.items()),
                        ("step", (step_count,)),
                        *(watch if number + 1 < steps else [("observe", ((),))]),
                    ]
                )
                done[part.index] += 1
                yield part, number, results[-1]

    def report(self) -> SimulationReport:
        """Return the figures of all worlds together; the wall time is that of the slowest worker."""
        return joined_report([results[0] for results in self._do([[("report", ())]] * len(self._parts))])

    def close(self) -> None:
        """End the workers. A cluster that was started for them stays for the next fleet of this process."""
        for part in self._parts:
            part.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _do(self, calls: Sequence[Sequence[Call]]) -> list[list[Any]]:
        """Have each part do its calls, and return the results when all have ended."""
        return ask_parts(self._parts, calls)

    def _local(self, worlds: Any, what: str) -> list[np.ndarray | None]:
        """Return, for each part, its selected worlds, counted within the part; None for all."""
        if worlds is None:
            return [None] * len(self._parts)
        selected = np.asarray(worlds)
        if selected.dtype == bool:
            if selected.shape != (self._world_count,):
                raise ValueError(
                    f"{what}: the mask of worlds has shape {selected.shape}, but there are "
                    f"{self._world_count} worlds. Pass one truth value per world."
                )
            selected = np.flatnonzero(selected)
        elif selected.size and not np.issubdtype(selected.dtype, np.integer):
            raise TypeError(f"{what}: worlds are {worlds!r}, but must be whole numbers or truth values.")
        selected = selected.reshape(-1).astype(np.int64)
        if selected.size and not (selected.min() >= 0 and selected.max() < self._world_count):
            wrong = int(selected.min() if selected.min() < 0 else selected.max())
            raise IndexError(
                f"{what}: world {wrong} does not exist; there are worlds 0 to {self._world_count - 1}."
            )
        if (np.diff(selected) <= 0).any():
            raise ValueError(f"{what}: worlds must be named once each, in increasing order.")
        return [
            selected[(selected >= part.worlds.start) & (selected < part.worlds.stop)] - part.worlds.start
            for part in self._parts
        ]

    def _entry_counts(self, name: str) -> list[np.ndarray]:
        """Return how many entries of an array each world has, by part."""
        found = self._do([[("observe", ((name,),))]] * len(self._parts))
        return [np.diff(results[0][name].start) for results in found]


def _joined(names: Sequence[str], found: Sequence[Observation]) -> Observation:
    """Return the rows of all parts together."""
    return {name: Rows.joined([each[name] for each in found]) for name in names}


def shared_out(costs: np.ndarray, count: int) -> list[range]:
    """Return worlds in a number of contiguous ranges of similar cost, none empty.

    Args:
        costs: What each world costs in proportion to the others, shape [world].
        count: Number of ranges, at most one per world.
    """
    total = np.cumsum(costs)
    bounds = np.searchsorted(total, total[-1] * np.arange(1, count) / count, side="left") + 1
    # Every range keeps a world at least.
    bounds = np.maximum.accumulate(np.maximum(bounds - np.arange(count - 1), 1)) + np.arange(count - 1)
    bounds = np.minimum(bounds, len(costs) - np.arange(count - 1, 0, -1))
    edges = [0, *bounds.tolist(), len(costs)]
    return [range(start, end) for start, end in itertools.pairwise(edges)]


def joined_report(reports: Sequence[SimulationReport]) -> SimulationReport:
    """Return one report of the worlds of many."""
    weights = np.array([report.world_count * report.step_count for report in reports], dtype=np.float64)
    weights = weights / weights.sum() if weights.sum() > 0.0 else np.full(len(reports), 1.0 / len(reports))
    return SimulationReport(
        world_count=sum(report.world_count for report in reports),
        step_count=max(report.step_count for report in reports),
        simulated_time=max(report.simulated_time for report in reports),
        wall_time=max(report.wall_time for report in reports),
        contact_count_mean=float(np.dot(weights, [report.contact_count_mean for report in reports])),
        contact_count_peak=max(report.contact_count_peak for report in reports),
        iteration_count_mean=float(np.dot(weights, [report.iteration_count_mean for report in reports])),
        iteration_count_peak=max(report.iteration_count_peak for report in reports),
        unconverged_step_count=sum(report.unconverged_step_count for report in reports),
        readmitted_step_count=sum(report.readmitted_step_count for report in reports),
        approximated_step_count=sum(report.approximated_step_count for report in reports),
        truncated_step_count=sum(report.truncated_step_count for report in reports),
        frozen_worlds=tuple(world for report in reports for world in report.frozen_worlds),
    )
