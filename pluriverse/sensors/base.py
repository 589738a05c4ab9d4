"""Common base of cameras and ray sensors: worlds, threads, and updates after steps and resets."""

import abc
import os
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import record
from pluriverse.model import Model, State
from pluriverse.model.world_list import list_selected_worlds, trust_worlds
from pluriverse.render import RayCaster
from pluriverse.render.raycast.tree import make_shared_trees, make_world_trees
from pluriverse.stages import StepStage

# Rays that are worth another thread, which takes some tens of microseconds to wake up.
THREAD_RAYS = 4096


class Sensor(abc.ABC):
    """Measures all worlds of a model; a base class.

    Args:
        caster: The shapes that it sees.
        threads: Threads on a CPU; as many as cores if None.
    """

    def __init__(self, caster: RayCaster, threads: int | None):
        if threads is not None and threads < 1:
            raise ValueError(f"sensor: threads is {threads}, but it must be at least 1.")
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._caster = caster
        self._threads = threads or cores
        self._graphs: dict[int, tuple[Any, list[Any]]] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._pool_process = 0

    @property
    def model(self) -> Model:
        """The model that is measured."""
        return self._caster.model

    @abc.abstractmethod
    def _ray_count(self) -> int:
        """Return the number of rays of a world."""

    @abc.abstractmethod
    def _sense(self, state: State, worlds: wp.array[int]) -> None:
        """Launch the measurement of worlds."""

    def launch(self, state: State, worlds: wp.array[int] | None = None) -> None:
        """Launch the measurement of worlds (default: all), an array on the device.

        Allocates nothing and reads nothing back, so that it can be recorded together with a step.
        """
        worlds = self.model.worlds if worlds is None else worlds
        make_shared_trees(self._caster.arrays, state.body_q)
        self._launch_worlds(state, worlds)

    def _launch_worlds(self, state: State, worlds: wp.array[int]) -> None:
        nothing: wp.array[bool] = self._everywhere
        make_world_trees(worlds, nothing, self._caster.arrays, state.body_q)
        self._sense(state, worlds)

    @property
    def _everywhere(self) -> Any:
        if not hasattr(self, "_mask"):
            self._mask: Any = wp.zeros(0, dtype=wp.bool, device=self.model.device)
        return self._mask

    def update(self, state: State) -> None:
        """Measure all worlds in a state, on several threads where there are enough rays.

        On a CPU the launches are recorded for each state (of which a simulation has two) and replayed.
        """
        device = self.model.device
        threads = min(self._threads, max(1, self._ray_count() // THREAD_RAYS), self.model.world_count)
        if not device.is_cpu or device.is_capturing:
            self.launch(state)
            return
        key = state.body_q.ptr or 0
        if key not in self._graphs:
            self.launch(state)  # loads the kernels
            graphs = []
            # More chunks than threads: worlds differ, and the first idle thread takes the next chunk.
            count = 1 if threads == 1 else min(self.model.world_count, 4 * threads)
            for chunk in np.array_split(np.arange(self.model.world_count, dtype=np.int32), count):
                worlds: Any = wp.array(chunk, dtype=wp.int32, device=device)
                graphs.append((record(device, partial(self._launch_worlds, state, worlds)), worlds))
            if len(self._graphs) > 4:
                self._graphs.clear()  # states come and go: those of the past are not kept for ever
            self._graphs[key] = (state, graphs)
        make_shared_trees(self._caster.arrays, state.body_q)
        recorded = [graph for graph, _ in self._graphs[key][1]]
        if threads == 1:
            for graph in recorded:
                wp.capture_launch(graph)
            return
        if (
            self._pool is None or self._pool_process != os.getpid()
        ):  # a forked process has none of its threads
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="pluriverse-sensor")
            self._pool_process = os.getpid()
        list(self._pool.map(wp.capture_launch, recorded))

    def follow(self, simulation: Any, *, every: int = 1) -> None:
        """Measure after every so many steps of a simulation from now on, and now.

        Worlds that are reset are measured at once, the others are not; so are all after `restore`.

        Raises:
            RuntimeError: If a recording is under way.
            ValueError: If `every` is less than 1, or the simulation has another model.
        """
        if not isinstance(every, int | np.integer) or every < 1:
            raise ValueError(f"sensor: every is {every!r}, but it must be a number of steps, 1 or more.")
        if simulation.model is not self.model:
            raise ValueError("sensor: the simulation has another model than the sensor was made for.")
        follower = _Follower(self, simulation, int(every))
        simulation.add_stage(follower)
        simulation.add_observer(follower)
        self.update(simulation.state)


class _Follower(StepStage):
    """Updates a sensor while a simulation runs: as an observer after steps, as a stage after resets."""

    def __init__(self, sensor: Sensor, simulation: Any, every: int):
        # The simulation holds its observers: weakly, so that no cycle keeps the memory of both.
        self._sensor, self._simulation, self._every = sensor, weakref.proxy(simulation), every
        self._last = self._count()
        self._lists: dict[int, wp.array] = {}

    def _count(self) -> int:
        return int(self._simulation.step_count // self._simulation.decimation)

    def _steps_since(self) -> int:
        """Return the steps since the last update. A reset of all worlds, which is one, restarts time."""
        now = self._count()
        if now < self._last:
            self._last = 0
        return now - self._last

    def steps_to_next(self) -> int:
        """Return after how many steps it is to be updated."""
        return max(1, self._every - self._steps_since())

    def observe(self) -> None:
        """Update if it is time."""
        if self._steps_since() >= self._every:
            self._last = self._count()
            self._sensor.update(self._simulation.state)

    def after_reset(self, worlds: wp.array[int], mask: wp.array[bool], state: State) -> None:
        """Measure the worlds that were reset."""
        model = self._sensor.model
        if worlds is model.worlds and not mask.size:
            self._sensor.update(state)  # on several threads
            return
        if worlds.size not in self._lists:
            empty = wp.empty(worlds.size, dtype=wp.int32, device=model.device)
            self._lists[worlds.size] = trust_worlds(empty)
        selected = self._lists[worlds.size]
        list_selected_worlds(worlds, mask, selected)
        self._sensor._launch_worlds(state, selected)

    def after_restore(self, worlds: wp.array[int], state: State) -> None:
        """Measure all worlds."""
        self._last = self._count()
        self._sensor.update(state)
