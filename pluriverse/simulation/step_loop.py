"""The recorded step: solver steps of chunks of worlds, launched, or recorded once and replayed by threads."""

import collections
import dataclasses
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import warp as wp

from pluriverse.collision import CollisionPipeline
from pluriverse.garbage_collection import paused_collection
from pluriverse.launch import load_kernels
from pluriverse.model import Control, State
from pluriverse.model.world_list import list_worlds
from pluriverse.precompilation import go_on_precompiling, modules_compiled_later
from pluriverse.scratch import Borrowing, Scratch
from pluriverse.simulation.carry_over import CarryOver
from pluriverse.simulation.chunks import (
    CHUNKS_PER_THREAD,
    THREAD_WORK_BYTES,
    borrowings,
    queue_chunks,
    world_byte_counts,
)
from pluriverse.simulation.recording import ChunkRecording
from pluriverse.simulation.shared_replay import ReplayPlan, SharedReplay, is_shareable
from pluriverse.simulation.statistics import Statistics, count_steps
from pluriverse.simulation.worker_pool import WorkerPool
from pluriverse.solvers import SolverBase
from pluriverse.stages import StepStage

# Number of slices in which many steps of a chunk are replayed; between slices it goes back to the end of the
# queue. So all chunks end at about the same time, even if a core is slower than the others or busy otherwise:
# with 4 cores, one of them shared, 64 worlds of 8 boxes took 10.3 us per world-step in whole chunks and 8.8
# us in slices.
SLICES_PER_CHUNK = 8
# Where several threads share the chunks, a single step of a chunk is replayed in parts of some solver steps,
# of at least so much work [B times steps]. At the end a thread then waits for part of a step, not for all of
# it. 64 Go1 or G1 with random targets so take 10 and 5 % less time on two threads (medians, busy machine).
PART_BYTES = 2 << 20
_ALL_STEPS = slice(None)


class StepLoop:
    """Steps all worlds; the public state is both input and result.

    Args:
        solver: Solver of a model.
        state: The public state.
        control: Forces and drive targets of the steps.
        dt: Time step of the solver [s].
        decimation: Solver steps in one step.
        threads: Number of CPU threads; all cores that the process may use if None.
        record: Whether steps are recorded and replayed.
        culled_worlds: Whether contacts of a world that cannot act are left out, shape [world].
        rigid_contact_max: Contact slots per world, as of `Simulation`.
        stepped_worlds: Returns the worlds that a step moves.
        split_worlds: Returns them in chunks for threads, given an estimate of the memory that a step of each
            world touches [B], shape [world]; what a step of all of them touches [B]; and whether the chunks
            will always have these worlds.
    """

    @paused_collection()  # many a collider is imported here
    def __init__(
        self,
        solver: SolverBase,
        state: State,
        control: Control,
        *,
        dt: float,
        decimation: int,
        threads: int | None,
        record: bool,
        culled_worlds: np.ndarray,
        rigid_contact_max: int | Sequence[int] | None,
        stepped_worlds: Callable[[], wp.array[int]],
        split_worlds: Callable[[np.ndarray], tuple[list[wp.array[int]], float, bool]],
    ) -> None:
        model = solver.model
        self._model = model
        self._solver = solver
        self._state = state
        self._control = control
        self._dt = dt
        self._decimation = decimation
        self._record = record
        self._culls_contacts = bool(culled_worlds.any())
        self._world_complete: wp.array[int] | None = None
        if self._culls_contacts and not culled_worlds.all():
            complete = (~culled_worlds).astype(np.int32)
            self._world_complete = wp.array(complete, dtype=int, device=model.device)
        self._stepped_worlds = stepped_worlds
        self._split_worlds = split_worlds
        contacts = solver.contacts(rigid_contact_max)
        self._pipeline: CollisionPipeline | None = None
        if contacts is None:
            self._pipeline = CollisionPipeline(model, rigid_contact_max=rigid_contact_max)
            contacts = self._pipeline.contacts()
        self.contacts = contacts
        """Contacts of the last solver step."""
        # The solver moves worlds between two states, of which the first is the public one. External forces
        # and custom attributes stay until they are changed, so both have the same.
        self._states = (state, model.state())
        self._states[1].share_inputs(state)
        self.last_sound = model.state()
        """The state of each world before it was frozen."""
        self._carry_over = CarryOver(model, state, self.last_sound, solver.world_frozen)
        self.statistics = Statistics(model.world_count, model.device)
        """Sums over all steps."""
        self.stages: list[StepStage] = []
        """The stages of the step."""
        self.thread_count = (threads or _core_count()) if model.device.is_cpu and record else 1
        """Number of threads that step the worlds."""
        self._pool = WorkerPool(self.thread_count)
        self._shared_replay: SharedReplay | None = None
        # What the last call replayed, which mostly is what the next one does: steps, threads and graphs.
        self._plan: tuple[int, int, list[list[wp.Graph]], ReplayPlan | None] | None = None
        self._chunks: list[ChunkRecording] | None = None
        self._graph_version = solver.graph_version
        self._queues: list[list[int]] = []
        self._step_bytes = 0.0
        self._part_count = 1

    @property
    def is_forked(self) -> bool:
        """Whether the process was forked from the one that made this."""
        return self._pool.is_forked

    @property
    def is_prepared(self) -> bool:
        """Whether steps are compiled, and recorded as the solver and the stages are now."""
        return self.version is not None

    @property
    def version(self) -> object:
        """What stands for the recordings of the steps, another object after each change; None without any."""
        if self._graph_version != self._solver.graph_version:
            return None
        if any(stage.is_outdated for stage in self.stages):
            return None
        return self._chunks

    def add_stage(self, stage: StepStage) -> None:
        """Add a stage, unless it is one already; the next step is recorded with it.

        Raises:
            TypeError: If it is not a stage.
        """
        if not isinstance(stage, StepStage):
            raise TypeError(
                f"Simulation.add_stage: got a {type(stage).__name__}, but a stage derives from "
                "pluriverse.simulation.StepStage."
            )
        if stage not in self.stages:
            self.stages.append(stage)
            self._stages_changed(stage)

    def remove_stage(self, stage: StepStage) -> None:
        """Remove a stage, if it is one."""
        if stage in self.stages:
            self.stages.remove(stage)
            self._stages_changed(stage)

    def _stages_changed(self, stage: StepStage) -> None:
        self.discard()
        if stage.driven_dofs.size:
            for each in self.stages:
                each.drives_changed()

    def discard(self) -> None:
        """Record again before the next step."""
        self._chunks = self._plan = None

    def close(self) -> None:
        """End the threads."""
        self._pool.close()
        self.thread_count = 1
        self._plan = None

    @paused_collection()
    def prepare(self, step_count: wp.array[wp.int64]) -> None:
        """Compile and record the step; `step_count` is what counts steps on the device."""
        self.discard()
        self._graph_version = self._solver.graph_version
        self._solver.prepare(self.contacts)
        for stage in self.stages:
            stage.prepare()
        # A step of no world declares the kernels that a step needs and compiles none of them, so that all can
        # be compiled at once.
        nothing = list_worlds(np.zeros(0), self._model.device)
        if self._is_interleaved:
            self._launch_steps(nothing, 0)
        self._launch_steps(nothing, 1)
        load_kernels(self._model.device, max_workers=_core_count(), later=modules_compiled_later())
        count_steps(step_count, 0)
        byte_counts = world_byte_counts(self._model, self.contacts)
        may_borrow = False
        if not self._record or self._model.device.is_cuda or not self._solver.is_thread_safe:
            worlds = [self._stepped_worlds()]
        else:
            worlds, byte_count, may_borrow = self._split_worlds(byte_counts)
            self._step_bytes = byte_count * self._decimation
            self._part_count = int(min(max(self._step_bytes / len(worlds) / PART_BYTES, 1), self._decimation))
        chunks = self._make_chunks(worlds, byte_counts, may_borrow=may_borrow)
        if self._record:
            for chunk in chunks:
                if self._is_interleaved:
                    chunk.beginning_graph()
                    for substep in range(self._decimation):
                        chunk.substep_graph(substep)
                else:
                    chunk.graphs(1)
                    if self.thread_count > 1:
                        chunk.parts(self._part_count)
        self._chunks, self._plan = chunks, None

    def _make_chunks(
        self, worlds: list[wp.array[int]], byte_counts: np.ndarray, *, may_borrow: bool
    ) -> list[ChunkRecording]:
        """Return the recordings of chunks of worlds, and put them into queues.

        Chunks of a queue are stepped one after another, so they may use the same scratch.
        """
        lists = [chunk.numpy() for chunk in worlds]
        loads = [float(byte_counts[chunk].sum()) for chunk in lists]
        self._queues = queue_chunks(loads, CHUNKS_PER_THREAD * self.thread_count)
        borrowed: list[Borrowing | None] = [None] * len(worlds)
        if may_borrow and len(self._queues) < len(worlds):
            scratches = self._scratch()
            for queue in self._queues:
                found = borrowings([lists[index] for index in queue], scratches)
                for index, borrowing in zip(queue, found, strict=True):
                    borrowed[index] = borrowing
        self._solver.shares_scratch = any(borrowing is not None for borrowing in borrowed)
        return [
            ChunkRecording(chunk, self._launch_steps, self._decimation, self._model.device, borrowing)
            for chunk, borrowing in zip(worlds, borrowed, strict=True)
        ]

    def _scratch(self) -> list[Scratch]:
        """Return the arrays in which steps leave nothing."""
        of_collision = [] if self._pipeline is None else self._pipeline.scratch(self.contacts)
        return self._solver.scratch(self.contacts) + of_collision

    def _in_queues(self, graphs: Callable[[ChunkRecording], list[wp.Graph]]) -> list[list[wp.Graph]]:
        """Return the graphs of all chunks of each queue, in order."""
        assert self._chunks is not None
        chunks = self._chunks
        return [[graph for index in queue for graph in graphs(chunks[index])] for queue in self._queues]

    def launch(self, count: int) -> None:
        """Launch steps, so that they become part of a user's recording.

        Raises:
            RuntimeError: If a stage runs in Python between solver steps.
        """
        assert self._chunks is not None
        for stage in self.stages:
            if not stage.is_recorded:
                raise RuntimeError(
                    f"Simulation.step: a recording is under way, but a {type(stage).__name__} runs in "
                    "Python in every solver step and cannot be recorded. Remove it, or record without it."
                )
        for chunk in self._chunks:
            chunk.launch(count)

    def run(self, count: int) -> None:
        """Make steps."""
        assert self._chunks is not None
        if self._is_interleaved:
            self._make_interleaved_steps(count)
        elif self._record:
            if self._plan is None or self._plan[0] != count:
                self._plan = self._plan_steps(count)
            _, thread_count, recordings, plan = self._plan
            if plan is None:
                self._replay(recordings, thread_count)
            else:
                if self._shared_replay is None:
                    self._shared_replay = SharedReplay(self._pool, self.thread_count)
                self._shared_replay.run(plan, thread_count)
        else:
            for chunk in self._chunks:
                chunk.launch(count)
        go_on_precompiling()

    def _plan_steps(self, count: int) -> tuple[int, int, list[list[wp.Graph]], ReplayPlan | None]:
        """Return what makes `count` steps: that number, the threads, the graphs, and the same for threads."""
        assert self._chunks is not None
        useful_threads = 1 + int(self._step_bytes * count / THREAD_WORK_BYTES)
        thread_count = min(useful_threads, self.thread_count, len(self._queues))
        in_parts = count == 1 and thread_count > 1
        recordings = self._in_queues(
            lambda chunk: chunk.parts(self._part_count) if in_parts else chunk.graphs(count)
        )
        plan = None
        if thread_count > 1 and is_shareable(recordings):
            plan = ReplayPlan(recordings, self._slice_count)
        return count, thread_count, recordings, plan

    @property
    def _slice_count(self) -> int:
        """Slices in which a queue is replayed."""
        return SLICES_PER_CHUNK * max(map(len, self._queues))

    @property
    def _is_interleaved(self) -> bool:
        """Whether there are stages that cannot be recorded, for which each solver step is made by itself."""
        return any(not stage.is_recorded for stage in self.stages)

    def _make_interleaved_steps(self, count: int) -> None:
        """Make steps with Python code between the solver steps, for stages that cannot be recorded."""
        assert self._chunks is not None
        launched = [stage for stage in self.stages if not stage.is_recorded]
        worlds, state = self._stepped_worlds(), self._state
        useful_threads = 1 + int(self._step_bytes / self._decimation / THREAD_WORK_BYTES)
        thread_count = min(useful_threads, self.thread_count, len(self._queues))
        for _ in range(count):
            # A network reads the commands that a recorded stage takes in.
            if self._record:
                self._replay(self._in_queues(_beginning_graphs), thread_count)
            else:
                for chunk in self._chunks:
                    self._launch_steps(chunk.worlds, 0)
            for stage in launched:
                stage.before_step(worlds, state)
            for substep in range(self._decimation):
                for stage in launched:
                    stage.before_substep(worlds, state)
                if self._record:
                    self._replay(self._in_queues(partial(_substep_graphs, substep=substep)), thread_count)
                else:
                    for chunk in self._chunks:
                        self._launch_steps(chunk.worlds, 1, substep)
            for stage in launched:
                stage.after_step(worlds, state)

    def _launch_step(self, index: int, count: int, worlds: wp.array[int]) -> None:
        """Launch solver step number `index` of `count` of some worlds, between the two states in turns."""
        source, target = index % 2, (index + 1) % 2
        state_in, state_out = self._states[source], self._states[target]
        if self._pipeline is not None:
            horizon = self._solver.contact_horizon(self._dt) if self._culls_contacts else None
            if horizon is not None and self._world_complete is not None:
                horizon = dataclasses.replace(horizon, world_complete=self._world_complete)
            self._pipeline.collide(state_in, self.contacts, worlds=worlds, horizon=horizon)
        if any(map(_acts_in_steps, self.stages)) or (
            self._pipeline is not None and not self._solver.places_shapes_in_row
        ):
            index, count = 0, 1  # somebody reads what this step leaves
        with self._solver.in_row(index, count):
            self._solver.step(state_in, state_out, self._control, self.contacts, self._dt, worlds=worlds)
        self.statistics.accumulate(
            worlds, self._solver.last_contact_count, self._solver.last_solve_iterations
        )

    def _launch_steps(
        self, worlds: wp.array[int], step_count: int, first: int = 0, part: slice = _ALL_STEPS
    ) -> None:
        """Launch (part of) solver steps of some worlds from the public state to itself.

        Args:
            worlds: The worlds.
            step_count: Number of solver steps; 0 for what stages do before a step.
            first: Substep that they start at.
            part: Those of the steps that are launched now.
        """
        stages = [stage for stage in self.stages if stage.is_recorded]
        if step_count == 0:
            for stage in stages:
                stage.before_step(worlds, self._state)
        for step in range(step_count)[part]:
            before, after = self._states[step % 2], self._states[(step + 1) % 2]
            if (first + step) % self._decimation == 0 and not self._is_interleaved:
                # All of them first: an actuator reads the commands that another takes in.
                for stage in stages:
                    stage.before_step(worlds, before)
            for stage in stages:
                stage.before_substep(worlds, before)
            self._launch_step(step, step_count, worlds)
            for stage in stages:
                stage.after_substep(worlds, before, after)
            is_last = step + 1 == step_count
            if is_last:
                # Only now: `before` may be the public state, which this overwrites.
                self._carry_over.publish_worlds(worlds, after)
            for stage in stages:
                if (first + step + 1) % self._decimation == 0:
                    stage.after_step(worlds, self._state if is_last else after)

    def _replay(self, recordings: list[list[wp.Graph]], thread_count: int) -> None:
        """Replay the graphs of each queue in order; threads take slice after slice, and wait for none."""
        if thread_count == 1:
            for graphs in recordings:
                for graph in graphs:
                    wp.capture_launch(graph)
            return
        pending = collections.deque((graphs, 0) for graphs in recordings)

        def work(stop: threading.Event) -> None:
            while True:
                try:
                    graphs, first = pending.popleft()
                except IndexError:
                    return
                end = first + max(1, len(graphs) // self._slice_count)
                for graph in graphs[first:end]:
                    if stop.is_set():
                        return
                    wp.capture_launch(graph)
                if end < len(graphs):
                    pending.append((graphs, end))

        self._pool.run(work, thread_count)


def _acts_in_steps(stage: StepStage) -> bool:
    """Return whether a stage does anything in a step; some only follow resets."""
    return any(
        getattr(type(stage), name) is not getattr(StepStage, name)
        for name in ("before_step", "before_substep", "after_substep", "after_step")
    )


def _beginning_graphs(chunk: ChunkRecording) -> list[wp.Graph]:
    """Return what stages do before a step of a chunk."""
    return [chunk.beginning_graph()]


def _substep_graphs(chunk: ChunkRecording, *, substep: int) -> list[wp.Graph]:
    """Return what makes a solver step of a chunk."""
    return [chunk.substep_graph(substep)]


def _core_count() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
