"""The loop: find contacts, solve, integrate; recorded once per chunk of worlds and replayed on all cores."""

import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import warp as wp

from pluriverse.copying import Uncopied
from pluriverse.launch import is_recorded_by_others, outside_recordings
from pluriverse.model import Contacts, Control, Model, State
from pluriverse.model.arguments import check_seeding, check_state
from pluriverse.model.edits import Edits
from pluriverse.model.schema import FRAME_ARRAYS
from pluriverse.model.world_list import list_worlds
from pluriverse.model.world_selection import resolve_worlds
from pluriverse.simulation.arguments import (
    check_count,
    check_culled_worlds,
    check_numbers,
    check_solver,
    refuse_time_step,
)
from pluriverse.simulation.chunks import split_worlds
from pluriverse.simulation.figures import Figures
from pluriverse.simulation.report import SimulationReport
from pluriverse.simulation.snapshot import (
    AddedArrays,
    SimulationSnapshot,
    check_structure,
    copy_if_alike,
    editable_arrays,
    write_editable_arrays,
)
from pluriverse.simulation.statistics import count_steps
from pluriverse.simulation.step_loop import StepLoop
from pluriverse.simulation.step_turn import StepTurn
from pluriverse.simulation.structure_edits import report_structure
from pluriverse.simulation.undriven import LOOK_AFTER_CALLS, report_undriven
from pluriverse.simulation.world_reset import WorldReset
from pluriverse.solvers import SolverBase
from pluriverse.stages import StepStage, hold_restored_drives, show_held_drives, stage_driven_dofs
from pluriverse.types import ModelFlags
from pluriverse.warnings import SimulationError

if TYPE_CHECKING:
    from pluriverse.recording import RecordingWriter
    from pluriverse.render import Recorder
    from pluriverse.selection.patterns import Patterns
    from pluriverse.sensors import ModelSensors
    from pluriverse.tensors import RobotTensors
    from pluriverse.viewer import BrowserViewer

# Calls of `step` between two readings of a GPU's counters, each of which waits for all of the GPU's work.
CUDA_CHECK_INTERVAL = 100


class Simulation(Uncopied):
    """Steps all worlds of a model: finds contacts, solves and integrates.

    It gives the same bits as a loop of `collide(..., horizon=solver.contact_horizon(dt))`, `solver.step` and
    swap. The result does not depend on `threads` or `record`, and a world does not depend on other worlds.
    The arrays of `state`, `control` and `contacts` keep their addresses; they and tensors made of them stay
    valid.

    Args:
        model: Model to simulate. Its arrays are read live: an edit acts on the next step.
        solver: Solver of `model`, which this takes from a Simulation that has it; `SolverSAP(model)` if None.
        dt: Time step of the solver [s].
        decimation: Solver steps in one `step`, all with the same control and external forces.
        threads: Number of CPU threads; all cores that the process may use if None. Without effect on a GPU,
            and without recording.
        record: Record the step once and replay it. Switched off, every step launches its kernels from Python.
        strict: Raise where a warning would be given.
        rigid_contact_max: Contact slots per world: one number, one per world, or None to estimate them.
        cull_contacts: Leave out contacts that cannot act in a step, for speed. The motion is the same up to
            the tolerance of the solver; switched off, `contacts` lists everything within the gaps. One truth
            value, or one per world.

    Raises:
        TypeError: If `solver` is not a solver, `dt` is no number, or `cull_contacts` has no truth values.
        ValueError: If a number is out of range, `cull_contacts` has another length than there are worlds,
            or `solver` belongs to another model.
    """

    copy_remedy = "save() returns a snapshot that restore() takes, also of another Simulation of the model."
    pickle_remedy = "Make it in the process that steps it."
    seeding: tuple[int, Any] = (0, None)
    """Seed and identities of noise and delays, also of sensors and actuators made later; see `set_seed`."""

    def __init__(
        self,
        model: Model,
        solver: SolverBase | None = None,
        *,
        dt: float,
        decimation: int = 1,
        threads: int | None = None,
        record: bool = True,
        strict: bool = False,
        rigid_contact_max: int | Sequence[int] | None = None,
        cull_contacts: bool | Sequence[bool] = True,
    ) -> None:
        check_numbers(dt, decimation, threads)
        solver = check_solver(model, solver)
        self._model = model
        self._solver = solver
        self._dt = float(dt)
        self._decimation = decimation
        self._strict = strict
        self._control = model.control()
        self._state = model.state()
        # The loop refers to this weakly: only a full garbage collection would free the memory of a cycle.
        simulation = weakref.proxy(self)
        self._loop = StepLoop(
            solver,
            self._state,
            self._control,
            dt=self._dt,
            decimation=decimation,
            threads=threads,
            record=record and solver.is_recordable,
            culled_worlds=check_culled_worlds(model, cull_contacts),
            rigid_contact_max=rigid_contact_max,
            stepped_worlds=lambda: simulation._stepped_worlds,
            split_worlds=lambda byte_counts: simulation._split_worlds(byte_counts),
        )
        self._figures = Figures(solver, self._loop.statistics)
        self._world_reset = WorldReset(
            solver, self._state, self._loop, record=record and solver.is_recordable
        )
        self._added_arrays = AddedArrays(model.device)
        self._frame_edits = Edits(model, FRAME_ARRAYS)

        self._step_count = 0
        # Steps replayed from a recording made outside, which only the device can count.
        self._replayed_step_count = wp.zeros(1, dtype=wp.int64, device=model.device)
        self._is_taken_in = False
        self._structure_reported: set[str] = set()
        self._undriven_reported = False
        self.clear_report()
        self._call_count = 0
        self._observers: list[Any] = []
        self._sensor_stage: Any = None
        self._check_interval = 1 if model.device.is_cpu or strict else CUDA_CHECK_INTERVAL
        self._turn = StepTurn(solver)

    @property
    def model(self) -> Model:
        """The model that is simulated."""
        return self._model

    @property
    def solver(self) -> SolverBase:
        """The solver, with its counters per world."""
        return self._solver

    @property
    def state(self) -> State:
        """The state now. It may be written to, and its arrays stay the same from step to step."""
        return self._state

    @property
    def control(self) -> Control:
        """Forces and drive targets for the next steps. Write into its arrays."""
        return self._control

    @property
    def contacts(self) -> Contacts:
        """Contacts of the last solver step, with their forces."""
        return self._loop.contacts

    @property
    def dt(self) -> float:
        """Time step of the solver [s]."""
        return self._dt

    @dt.setter
    def dt(self, dt: float) -> None:
        refuse_time_step(dt)

    @property
    def decimation(self) -> int:
        """Solver steps in one `step`."""
        return self._decimation

    @property
    def threads(self) -> int:
        """Number of threads that step the worlds."""
        return self._loop.thread_count

    @property
    def time(self) -> float:
        """Simulated time since the beginning [s]."""
        return self.step_count * self._dt

    @property
    def step_count(self) -> int:
        """Solver steps since the beginning, with those replayed from recordings made outside."""
        if not self._is_taken_in or self._is_recorded_by_others:
            return self._step_count
        return self._step_count + int(self._replayed_step_count.numpy()[0])

    @property
    def sensors(self) -> "ModelSensors":
        """The sensors that came with robots or were added to them: `sensors["imu_gyro"]`, shape [world, 3].

        From the first use on they are measured in every step, as part of its recording. If steps came before,
        what only a step can give (accelerations, forces, contacts) is NaN up to the next, with a warning.

        Raises:
            RuntimeError: If a recording is under way and this is the first use.
        """
        if self._sensor_stage is None:
            self._refuse_recording("sensors")
            from pluriverse.simulation.sensing import SensorStage

            stage = SensorStage(weakref.proxy(self))  # which the simulation holds
            stage.begin(self._stepped_worlds)
            self._sensor_stage = stage
            self.add_stage(stage)
        return self._sensor_stage.sensors

    def prepare(self) -> None:
        """Compile and record the step. Without this call, the first `step` does so."""
        if self._loop.is_prepared:
            return
        with outside_recordings(self._model.device):
            self._report_structure()
            self._loop.prepare(self._replayed_step_count)

    def step(self, count: int = 1) -> None:
        """Make `count` steps of `decimation` solver steps each.

        Many steps in one call are faster than many calls, since threads do not wait for each other.
        During a recording (`wp.ScopedCapture` on the device of the model), the steps become part of that
        recording: worlds move, and time passes, when it is replayed, on the thread that does so.

        Raises:
            ValueError: If `count` is negative.
            KeyboardInterrupt: On Ctrl-C, within a few replayed graphs on every thread. The worlds then stand
                at different times, and take further steps only after `reset` or `restore`.
            SimulationError: In strict mode, if a world is in trouble; if an earlier call was interrupted, or
                another one is under way; if the simulation was closed and another one has the solver; or in a
                forked process, if the model is on a GPU.
        """
        check_count("Simulation.step: count", count, lowest=0)
        while self._observers and count > 0:
            part = min(count, *(observer.steps_to_next() for observer in self._observers))
            self._make_steps(part)
            count -= part
            for observer in list(self._observers):
                observer.observe()
        self._make_steps(count)

    def _make_steps(self, count: int) -> None:
        with self._turn:
            if count == 0:
                return
            if self._model.device.is_cuda and self._loop.is_forked:
                raise SimulationError(
                    "Simulation.step: this process was forked from the one that made the simulation, and "
                    "cannot use its GPU. Start processes with multiprocessing.get_context('spawn')."
                )
            self.prepare()
            if self._is_recorded_by_others:
                self._loop.launch(count)
                count_steps(self._replayed_step_count, count * self._decimation)
                self._is_taken_in = True
                return
            start = time.perf_counter()
            self._turn.is_interrupted = True
            self._loop.run(count)
            self._turn.is_interrupted = False
            self._figures.wall_time += time.perf_counter() - start
            self._step_count += count * self._decimation
            self._call_count += 1
            if self._call_count % self._check_interval == 0:
                self._solver.report(strict=self._strict)
            if self._call_count in LOOK_AFTER_CALLS and not self._undriven_reported:
                self._report_undriven()

    def reset(self, worlds: Any = None, *, state: State | SimulationSnapshot | None = None) -> None:
        """Reset worlds (default: all) to a state, unfreeze them, and clear the solver's warm start.

        Control stays as it is. With all worlds and no state given, time restarts at zero, unless the call
        is recorded. Indices and masks on the device are not read back, and the call may then be recorded into
        a graph, which stays valid while steps go on.

        Args:
            worlds: Indices, or one truth value per world; on the host or on the device. None for all.
            state: State, or snapshot, to take the worlds from. None for that in the model (`Model.joint_q`
                and so on), without external forces.

        Raises:
            IndexError: If there is no such world.
            TypeError: If `worlds` are neither whole numbers nor truth values.
            ValueError: If a mask has not one entry per world, an array is on another device, or `state`
                belongs to another model.
        """
        if isinstance(state, SimulationSnapshot):
            check_structure(state.structure, self._model, "Simulation.reset")
            source: State | None = state.state
        else:
            source = state
        if source is not None:
            check_state(self._model, source, "Simulation.reset: state")
        if worlds is None:
            if source is None:
                if not self._is_recorded_by_others:
                    self._set_step_count(0)
                    self.clear_report()
                source = self._model.state()
            self._copy_all(source)
            self._solver.unfreeze()
            everywhere = resolve_worlds(self._model, None, what="Simulation.reset")
            self._world_reset.launch_stages(everywhere)
            return
        self._world_reset.reset(worlds, source)

    def save(self, path: str | Path | None = None) -> SimulationSnapshot:
        """Return a copy of everything that changes from step to step or may be edited, for `restore`.

        Args:
            path: File to write it to as well, a NumPy archive (`.npz`); None for none.

        Raises:
            RuntimeError: If a recording is under way, during which nothing is computed.
        """
        self._refuse_recording("save")
        self._model.unify_targets()
        state, control = self._model.state(), self._model.control()
        state.assign(self.state)
        control.assign(self._control)
        snapshot = SimulationSnapshot(
            self.step_count,
            state,
            control,
            wp.clone(self._solver.world_frozen),
            show_held_drives(self.stages, editable_arrays(self._model)),
            self._model.structure.fingerprint,
            stage_driven_dofs(self),
            {name: wp.clone(array) for name, array in self._solver.runtime_arrays.items()},
            self._added_arrays.copies(),
        )
        if path is not None:
            snapshot.write(path)
        return snapshot

    def add_snapshot_array(self, name: str, array: wp.array) -> None:
        """Save and restore an array of your own together with the simulation.

        A `Randomizer` of a simulation does so with the number of draws. Names identify the arrays, so add
        them in the same order in the simulation that restores a file.

        Args:
            name: Name. If it is taken, the array is called `name 2`, `name 3` and so on.
            array: Array on the device of the model; it is kept, and written to by `restore`.

        Raises:
            ValueError: If the array is on another device.
        """
        self._added_arrays.add(name, array)

    def set_snapshot_array(self, name: str, array: wp.array) -> None:
        """Save and restore an array under a name, in place of the previous one.

        Raises:
            ValueError: If the array is on another device.
        """
        self._added_arrays.replace(name, array)

    def restore(self, snapshot: SimulationSnapshot | str | Path) -> None:
        """Restore a snapshot of this simulation, or of another one of an equal model, bit for bit.

        Restored are state, control, the arrays of the model, time, frozen worlds, added arrays, and the data
        that a solver of the same kind carries from step to step. Contacts are found in the next step. Arrays
        that are not in the snapshot stay as they are, and drives are off only where actuators act now.

        Args:
            snapshot: What `save` returned, or the file it wrote.

        Raises:
            FileNotFoundError: If there is no such file.
            RuntimeError: If a recording is under way, during which nothing is computed.
            ValueError: If the file is damaged, or the model has another structure.
        """
        self._refuse_recording("restore")
        if not isinstance(snapshot, SimulationSnapshot):
            snapshot = SimulationSnapshot.read(snapshot, self._model)
        check_structure(snapshot.structure, self._model, "Simulation.restore")
        self._added_arrays.restore(snapshot.added_arrays)
        write_editable_arrays(self._model, snapshot.model_arrays)
        self._control.assign(snapshot.control)
        hold_restored_drives(self, snapshot.stage_driven)
        self._frame_edits.mark_clean()
        self._solver.sync_from_model()
        self._copy_all(snapshot.state)
        self._solver.unfreeze()
        copy_if_alike(snapshot.solver_arrays, self._solver.runtime_arrays)
        wp.copy(self._solver.world_frozen, snapshot.world_frozen)
        self._set_step_count(snapshot.step_count)
        for stage in self._loop.stages:
            stage.after_restore(self._stepped_worlds, self._state)
        self.clear_report()

    def notify_model_changed(self, flags: ModelFlags | int) -> None:
        """Check edits of the model and update everything derived from the edited arrays.

        Steps read the arrays of the model as they are, so an edit acts on the next step with or without
        notice. After changes of joint frames or centres of mass, the poses and velocities of bodies in the
        state are recomputed from its joint coordinates at once, in the edited worlds.

        Args:
            flags: What was written to (`ModelFlags`).

        Raises:
            RuntimeError: If a recording is under way, during which nothing is computed.
            ValueError: If a value is not allowed, an array of the structure was written to, or a flag is
                unknown.
        """
        self._refuse_recording("notify_model_changed")
        self._solver.notify_model_changed(flags)
        if int(flags) & (ModelFlags.JOINT_PROPERTIES | ModelFlags.BODY_INERTIAL_PROPERTIES):
            edited = list_worlds(self._frame_edits.worlds(), self._model.device)
            self._solver.update_body_poses(edited, self._state)
            self._frame_edits.mark_clean()

    def report(self) -> SimulationReport:
        """Return the figures so far. Warns of failures not reported yet, or raises in strict mode.

        Raises:
            RuntimeError: If a recording is under way, during which nothing is computed.
        """
        self._refuse_recording("report")
        self._report_structure()
        start = time.perf_counter()
        wp.synchronize_device(self._model.device)  # a GPU works on after `step` has returned
        self._figures.wall_time += time.perf_counter() - start
        self._solver.report(strict=self._strict)
        return self._figures.report(self.step_count, self._dt, self._stepped_worlds.size)

    def add_observer(self, observer: Any) -> None:
        """Add an observer of the state, such as a `Recorder`; it is also called after each `step`.

        Args:
            observer: Has `steps_to_next()`, the steps until its next call (1 or more), and `observe()`.
        """
        if observer not in self._observers:
            self._observers.append(observer)

    def remove_observer(self, observer: Any) -> None:
        """Remove an observer."""
        if observer in self._observers:
            self._observers.remove(observer)

    def add_stage(self, stage: StepStage) -> None:
        """Add a stage of your own to every step; it is recorded with the step.

        Args:
            stage: What it launches before and after steps, solver steps and resets.

        Raises:
            RuntimeError: If a recording is under way.
            TypeError: If it is not a stage.
        """
        self._refuse_recording("add_stage")
        self._loop.add_stage(stage)

    @property
    def stages(self) -> tuple[StepStage, ...]:
        """The stages of every step."""
        return tuple(self._loop.stages)

    def set_seed(self, seed: int, *, identities: Any = None) -> None:
        """Restart noise and delays of sensors and actuators at the next resets; see `StepStage.set_seed`."""
        self.seeding = check_seeding(self._model, seed, identities, "set_seed")
        for stage in self._loop.stages:
            stage.set_seed(seed, identities=identities)

    def remove_stage(self, stage: StepStage) -> None:
        """Remove a stage.

        Raises:
            RuntimeError: If a recording is under way.
        """
        self._refuse_recording("remove_stage")
        self._loop.remove_stage(stage)

    def tensors(self, pattern: "Patterns", **options: Any) -> "RobotTensors":
        """Return named arrays `[env, ...]` of robots: what a policy reads, and the targets that it writes.

        They keep their addresses and follow every step and reset, in worlds that differ too.

        Args:
            pattern: Labels of articulations, as for `pluriverse.selection.ArticulationView`.
            options: Options of `pluriverse.tensors.RobotTensors`.

        Raises:
            KeyError: If the pattern finds nothing.
        """
        from pluriverse.tensors import RobotTensors  # declares kernels, which are compiled with the step

        return RobotTensors(self, pattern, **options)

    def recorder(self, **options: Any) -> "Recorder":
        """Return a `pluriverse.render.Recorder`, which makes a video of the steps inside its `with`."""
        from pluriverse.render import Recorder

        return Recorder(self, **options)

    def record(self, path: str | Path, **options: Any) -> "RecordingWriter":
        """Record steps to a `.pvr` file from now on, and return a `pluriverse.recording.RecordingWriter`.

        Its `with` block, or `close`, ends the file, which `pluriverse.recording.RecordedRun` reads.
        """
        from pluriverse.recording.writer import start_recording

        return start_recording(self, path, **options)

    def viewer(self, worlds: Any = None, **options: Any) -> "BrowserViewer":
        """Return a `pluriverse.viewer.BrowserViewer`: this simulation in a browser, while it goes on."""
        from pluriverse.viewer import BrowserViewer

        return BrowserViewer(self, worlds, **options)

    def _repr_html_(self) -> str:
        from pluriverse.render.notebook import simulation_html

        return simulation_html(self)

    def clear_report(self) -> None:
        """Restart the figures of `report` with the next step."""
        self._figures.clear(self.step_count)

    def close(self) -> None:
        """End the threads, and let another `Simulation` have the solver.

        Further steps are made by the calling thread alone, unless another one has it.
        """
        self._loop.close()
        self._turn.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _report_undriven(self) -> None:
        """Warn once of targets that no drive follows."""
        driven = [stage.driven_dofs for stage in self._loop.stages]
        self._undriven_reported = report_undriven(self._model, self._control, driven)

    def _report_structure(self) -> None:
        """Warn of writes to the model that have no effect, each array once; or raise in strict mode."""
        report_structure(self._model, self._structure_reported, strict=self._strict)

    @property
    def _stepped_worlds(self) -> wp.array[int]:
        """The worlds that a step moves."""
        return self._model.structure.worlds

    def _split_worlds(self, byte_counts: np.ndarray) -> tuple[list[wp.array[int]], float, bool]:
        """Return the worlds that a step moves, in chunks for threads, and what a step of all touches [B].

        The last result is whether the chunks will always have these worlds.

        Args:
            byte_counts: Estimate of the memory that a step of each world touches [B], shape [world].
        """
        share = self._solver.chunk_share
        chunks = split_worlds(byte_counts, self._model.world_template, self.threads, share)
        return [list_worlds(chunk, self._model.device) for chunk in chunks], float(byte_counts.sum()), True

    def _copy_all(self, state: State) -> None:
        """Make `state` the state of all worlds and drop all other state."""
        for target in (self._state, self._loop.last_sound):
            target.assign(state)
        self._turn.is_interrupted = False

    @property
    def _is_recorded_by_others(self) -> bool:
        """Whether launches now become part of a user's recording."""
        return is_recorded_by_others(self._model.device)

    def _refuse_recording(self, call: str) -> None:
        """Raise while a recording is under way."""
        if self._is_recorded_by_others:
            raise RuntimeError(
                f"Simulation.{call}: a recording is under way on {self._model.device}, during which nothing "
                "is computed, so there is nothing to read yet. Call it after the wp.ScopedCapture has ended."
            )

    def _set_step_count(self, count: int) -> None:
        self._step_count = count
        self._replayed_step_count.zero_()
