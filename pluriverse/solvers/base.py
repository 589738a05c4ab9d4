"""Base of all solvers: the step interface, per-world status, and warnings or errors for failures.

A kernel cannot raise. It counts, per world, what went wrong; `SolverBase.report` turns the counts into one
Python warning that names the worlds and the remedy, or into an exception in strict mode.
"""

import abc
import contextlib
import math
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.collision.contact_horizon import ContactHorizon
from pluriverse.copying import Uncopied
from pluriverse.dynamics.forward_kinematics import eval_fk_of_worlds
from pluriverse.model import Contacts, Control, Model, State
from pluriverse.model.arguments import check_contacts, check_control, check_state
from pluriverse.model.indices import IndexKind
from pluriverse.model.unsound_values import find_unsound_values
from pluriverse.model.world_bounds import world_bounds
from pluriverse.model.world_list import check_worlds
from pluriverse.model.world_selection import resolve_worlds
from pluriverse.scratch import Scratch
from pluriverse.solvers.fixed_settings import FixedSettings
from pluriverse.solvers.model_change import apply_model_change, check_structure
from pluriverse.solvers.reset import reset_worlds
from pluriverse.solvers.springs import BodySpringTable, TendonTable
from pluriverse.solvers.unfreeze import unfreeze_worlds
from pluriverse.types import ModelFlags, StateFlags
from pluriverse.warnings import (
    ContactTruncationError,
    ContactTruncationWarning,
    ConvergenceError,
    ConvergenceWarning,
    DeviceIndexError,
    DeviceIndexWarning,
    FrozenWorldError,
    FrozenWorldWarning,
    SimulationError,
    SimulationWarning,
)

# Number of worlds that a message lists by index; it only counts the rest.
_WORLDS_NAMED = 8
# Arrays that it lists by name where one of them made a world freeze.
_CAUSES_NAMED = 3
_NO_WORLDS = np.zeros(0, dtype=np.int64)
# Failures that are counted for each world. The counts follow each other in memory: after each call of a step
# function one look tells that there are none.
FAILURE_KINDS = ("frozen", "truncated", "unconverged", "deep", "unlisted", "failed")
# Calls that take indices on the device, for messages.
_CALLS_WITH_INDICES = {
    IndexKind.WORLD: "step, collide, reset",
    IndexKind.ENVIRONMENT: "reset, reassign, a Randomizer",
    IndexKind.ROW: "a setter of a view",
    IndexKind.ARTICULATION: "eval_fk, eval_ik",
}


class SolverBase(FixedSettings, Uncopied):
    """Moves the state of a model by one time step.

    Args:
        model: Model to be simulated. Its arrays are read live: an edit acts on the next step.

    Raises:
        ValueError: If a joint of the model has nothing to accelerate, for want of mass or inertia.
    """

    copy_remedy = "Make another solver of the model."
    pickle_remedy = "Make the solver where it is used."
    model: Model
    """Model that the solver was made for."""
    last_solve_iterations: wp.array[int]
    """Newton iterations of the last step, shape [world]."""
    last_line_search_iterations: wp.array[int]
    """Line search trials of the last step beyond the first of each search, shape [world]."""
    last_converged: wp.array[int]
    """1 where the last step met its convergence test, shape [world]."""
    last_contact_count: wp.array[int]
    """Contacts that took part in the last step, shape [world]."""
    last_truncated_contact_count: wp.array[int]
    """Contacts of the last step for which there was no slot, shape [world]."""
    unconverged_step_count: wp.array[int]
    """Steps so far that ended without convergence, shape [world]."""
    approximated_step_count: wp.array[int]
    """Steps so far in which friction met Coulomb's law approximately where it was to follow it, shape
    [world]."""
    truncated_step_count: wp.array[int]
    """Steps so far that lost a contact for want of slots, shape [world]."""
    needed_contact_count: wp.array[int]
    """Largest number of contacts that a step so far has found, shape [world]."""
    readmitted_step_count: wp.array[int]
    """Steps so far that were solved again since contacts which were left out could have acted, shape
    [world]."""
    world_frozen: wp.array[int]
    """1 where a world was stopped because its state was no longer finite, shape [world]."""
    convergence_remedy = (
        "Raise max_iterations, loosen optimality_rel_tol, or use a precision of fp64 "
        "(contact_preset_variant='approx64')."
    )
    """Remedy for steps that do not converge, for messages."""

    steps_body_axes = False
    """Whether angular velocities of free and ball joints are stepped along the axes of the child, in
    which their accelerations are; else along those of the world, or of the parent."""
    chunk_share = 1.0
    """Memory that a step touches for each world, relative to the estimate of `world_byte_counts`. It tells
    how many worlds a thread steps together."""
    shares_scratch = False
    """Whether a `Simulation` has steps of worlds leave their scratch in the same places (`scratch`)."""
    places_shapes_in_row = False
    """Whether steps in a row (`in_row`) place all bodies that a `CollisionPipeline` reads."""
    has_explicit_drives = False
    """Whether drives act on the state at the start of a step; else on that at its end."""

    def __init__(self, model: Model):
        if not isinstance(model, Model):
            raise TypeError(
                f"{type(self).__name__}: model is a {type(model).__name__}, but must be a pluriverse.Model. "
                "Call finalize() on the ModelBuilder first."
            )
        check_structure(model)
        if model.dynamics_obstacle is not None:
            raise ValueError(f"{type(self).__name__}: {model.dynamics_obstacle}")
        self.model = model
        for name in (
            "last_solve_iterations",
            "last_line_search_iterations",
            "last_converged",
            "last_contact_count",
            "last_truncated_contact_count",
            "needed_contact_count",
            "readmitted_step_count",
            "approximated_step_count",
        ):
            setattr(self, name, wp.zeros(model.world_count, dtype=wp.int32, device=model.device))
        shape = (len(FAILURE_KINDS), model.world_count)
        self._failures = wp.zeros(shape, dtype=wp.int32, device=model.device)
        self.world_frozen = self.failure_counts("frozen")
        self.truncated_step_count = self.failure_counts("truncated")
        self.unconverged_step_count = self.failure_counts("unconverged")
        # Of steps in a row between which nobody reads anything: whether one comes before this, and after it.
        self._follows_step = False
        self._is_followed = False
        self._reported: dict[str, np.ndarray] = {}
        # What the last step was called with, for messages.
        self._given: tuple[State | None, Control | None] = (None, None)
        # To make such a view takes 8 us, four of which would be half the step of a robot.
        self._host_views: dict[str, tuple[wp.array, np.ndarray]] = {}
        self._world_bounds: list[wp.array[int]] | None = None
        self._holder: weakref.ref[Any] | None = None
        self._was_held = False

    @abc.abstractmethod
    def prepare(self, contacts: Contacts) -> None:
        """Allocate and compile everything that `step` needs, so that it can be recorded into a graph."""

    @abc.abstractmethod
    def step(
        self,
        state_in: State,
        state_out: State,
        control: Control | None,
        contacts: Contacts | None,
        dt: float,
        *,
        worlds: wp.array | None = None,
    ) -> State:
        """Write the state after `dt` [s] into `state_out` and return it; `worlds` lists those to step."""

    @property
    def holder(self) -> object:
        """The simulation that steps with this solver; None if there is none, or none any more."""
        return None if self._holder is None else self._holder()

    @property
    def was_held(self) -> bool:
        """Whether some simulation has had it."""
        return self._was_held

    def hold(self, holder: Any) -> None:
        """Give the solver to a simulation, or to none with None."""
        self._holder = None if holder is None else weakref.ref(holder)
        self._was_held = True

    def failure_counts(self, kind: str) -> wp.array[int]:
        """Return the counts of one of the `FAILURE_KINDS`, shape [world]."""
        counts: wp.array[int] = self._failures[FAILURE_KINDS.index(kind)]
        return counts

    @contextlib.contextmanager
    def in_row(self, index: int, count: int) -> Iterator[None]:
        """Let calls of `step` make number `index` of `count` steps between which no user reads or writes.

        So poses and velocities of bodies, and contacts, may be left out of all results but the last. A
        `CollisionPipeline` may read between them if `places_shapes_in_row`.
        """
        self._follows_step, self._is_followed = index > 0, index + 1 < count
        try:
            yield
        finally:
            self._follows_step = self._is_followed = False

    @property
    def runtime_arrays(self) -> Mapping[str, wp.array]:
        """Arrays that the solver carries from step to step besides the State, by name; for snapshots."""
        return {}

    def scratch(self, contacts: Contacts) -> list[Scratch]:
        """Return the arrays in which steps with a contact buffer leave nothing, for `Simulation`."""
        return []

    @property
    def is_thread_safe(self) -> bool:
        """Whether threads may step different worlds at the same time."""
        return True

    @property
    def is_recordable(self) -> bool:
        """Whether a step only launches kernels, so that it can be recorded into a graph."""
        return True

    @property
    def graph_version(self) -> int:
        """Another number whenever steps recorded before are out of date."""
        return 0

    def set_springs(
        self, *, tendons: "TendonTable | None" = None, bodies: "BodySpringTable | None" = None
    ) -> bool:
        """Let springs act in every step, in place of those of the same kind before.

        Numbers in the tables may be written to at any time, but those that say what a spring acts on.

        Args:
            tendons: Springs on sums of joint coordinates; None to leave them as they are.
            bodies: Springs that pull bodies to poses; None to leave them as they are.

        Returns:
            Whether the solver takes them as terms of its own, which contacts and limits feel as they do each
            other. Otherwise a stage of the simulation has to write their forces.
        """
        return False

    def contacts(self, rigid_contact_max: int | Sequence[int] | None = None) -> Contacts | None:
        """Return a new contact buffer if `step` finds contacts by itself.

        Args:
            rigid_contact_max: Slots per world: one number, one per world, or None to estimate them.

        Returns:
            The buffer, or None if a `CollisionPipeline` has to find the contacts.
        """
        return None

    def update_body_poses(self, worlds: wp.array, state: State) -> None:
        """Write poses and velocities of bodies from the joint state, with the bits that `step` gives them."""
        eval_fk_of_worlds(self.model, worlds, state)

    def contact_horizon(self, dt: float) -> ContactHorizon | None:
        """Return which contacts a step of `dt` [s] can do without, for `CollisionPipeline.collide`.

        None, the answer of a solver that knows no better, is for all contacts within the gaps.
        """
        return None

    def sync_from_model(self) -> None:  # most solvers keep nothing of them
        """Update the solver's copies of the arrays of the model, after all were written to."""

    def track_model(  # most solvers read the arrays themselves
        self, names: Iterable[str] | Mapping[str, np.ndarray | None], *, meshes: Sequence[Any] = ()
    ) -> None:
        """Prepare for arrays of the model that are written to on the device.

        Args:
            names: Names of arrays; or these with a mask each of the entries that may take any value.
            meshes: Meshes that shapes may come to have: flat shapes of a world, and indices of meshes and
                sizes, shape [variant, shape] and [variant, shape, 3].

        Raises:
            ValueError: If the solver cannot do with such a change; the message names it.
        """

    def sync_worlds(self, worlds: Any = None) -> None:
        """Update the solver's copies of the arrays named to `track_model`. Only launches.

        Args:
            worlds: Indices, or one truth value per world, on host or device; None for all.
        """

    @property
    def device(self) -> wp.Device:
        """Device of the model."""
        return self.model.device

    def update_contacts(self, contacts: Contacts, state: State | None = None) -> None:
        """Check the contacts: `step` has written their forces already.

        Args:
            contacts: Contacts of this model.
            state: Not read.

        Raises:
            TypeError: If `contacts` are of another type.
            ValueError: If they belong to another model.
        """
        check_contacts(self.model, contacts, f"{type(self).__name__}.update_contacts: contacts")

    def reset(self, state: State, world_mask: Any = None, flags: StateFlags | int | None = None) -> None:
        """Reset worlds of a state to the initial state of the model, and unfreeze them.

        Args:
            state: State to write to.
            world_mask: Truth values, shape [world]; one more, for what is global, is ignored. Or indices of
                worlds. All worlds if None.
            flags: Parts that are put back; all if None. Poses and velocities of bodies follow from joints in
                the next step; call `eval_fk` to have them before, if only some of these were put back.

        Raises:
            IndexError: If there is no such world.
            TypeError: If `state` is no state, or the worlds are neither whole numbers nor truth values.
            ValueError: If `state` belongs to another model, or a mask has not one entry per world.
        """
        name = f"{type(self).__name__}.reset"
        check_state(self.model, state, f"{name}: state")
        selection = resolve_worlds(self.model, _without_global(self.model, world_mask), what=name)
        if self._world_bounds is None:
            self._world_bounds = world_bounds(self.model)
        parts = StateFlags.ALL if flags is None else StateFlags(int(flags))
        reset_worlds(self.model, selection, self._world_bounds, state, parts)
        self.unfreeze(selection)

    def unfreeze(self, worlds: Any = None) -> None:
        """Unfreeze worlds, after their state was set to finite values.

        Args:
            worlds: Indices, or one truth value per world; on the host or on the device, where they are not
                read back. None for all.

        Raises:
            IndexError: If there is no such world.
            TypeError: If `worlds` are neither whole numbers nor truth values.
            ValueError: If a mask has not one entry per world, or an array is on another device.
        """
        selection = resolve_worlds(self.model, worlds, what=f"{type(self).__name__}.unfreeze")
        unfreeze_worlds(selection, self.world_frozen)
        self.report_again(selection.indices)

    def report_again(self, worlds: np.ndarray | None) -> None:
        """Let `report` name worlds again if they freeze again.

        Args:
            worlds: The worlds that were unfrozen; None if only the device knows them, so that it is all.
        """
        if worlds is None:
            self._reported.pop("frozen", None)
        elif "frozen" in self._reported:
            self._reported["frozen"][worlds] = False

    def notify_model_changed(self, flags: ModelFlags | int) -> None:
        """Check what was written into the model, and bring up to date what follows from it.

        Steps read the arrays of the model as they are, so an edit acts on the next step with or without
        notice. This call reads arrays back to the host and cannot be recorded.

        Args:
            flags: What was written to.

        Raises:
            ValueError: If a value is not allowed, an array of the structure was written to, or a flag is
                unknown.
        """
        unknown = int(flags) & ~int(ModelFlags.ALL)
        if unknown:
            raise ValueError(
                f"{type(self).__name__}.notify_model_changed: there is no flag {unknown:#x}; use members of "
                "pluriverse.ModelFlags."
            )
        apply_model_change(self.model, ModelFlags(flags))

    def report(self, *, strict: bool = False) -> None:
        """Turn failures since the last call into one warning per kind, each world being named once.

        Raises:
            DeviceIndexError: In strict mode, if indices on the device named nothing.
            FrozenWorldError: In strict mode, if a world was frozen.
            ContactTruncationError: In strict mode, if a world had fewer contact slots than contacts.
            ConvergenceError: In strict mode, if a step did not converge.
            DeepContactError: In strict mode, if a world of `SolverSAP` rests deeper than its limit.
        """
        self._report_device_indices(strict=strict)
        if np.count_nonzero(self._host_view("failures", self._failures)):
            self._report_failures(strict=strict)

    def _report_failures(self, *, strict: bool) -> None:
        """Report what is counted in `failure_counts`; called only where one of them is not zero."""
        frozen = self._new_worlds("frozen", self.world_frozen)
        if frozen.size:
            self._raise_or_warn(
                f"{name_worlds(frozen)}: the state was no longer finite, so the world was frozen in its "
                f"last finite state; all others go on. {self._guess_cause(int(frozen[0]))}; then put it back "
                "by reset(worlds) of the Simulation. In a loop of your own, call reset(state, worlds) of the "
                "solver, or set a sound state and call unfreeze(worlds).",
                FrozenWorldError if strict else FrozenWorldWarning,
                frozen,
            )
        self._report_truncation(strict=strict)
        unconverged = self._new_worlds("unconverged", self.unconverged_step_count)
        if unconverged.size:
            steps = self.unconverged_step_count.numpy()[unconverged]
            self._raise_or_warn(
                f"{name_worlds(unconverged)}: {int(steps.sum())} step(s) ended before the solver met its "
                f"tolerance; the last iterate was used. {self.convergence_remedy}",
                ConvergenceError if strict else ConvergenceWarning,
                unconverged,
            )

    def _check_step(
        self,
        state_in: State,
        state_out: State,
        control: Control | None,
        contacts: Contacts | None,
        dt: float,
        worlds: wp.array | None,
    ) -> wp.array:
        """Check the arguments of `step`; return the worlds as kernels can take them.

        Raises:
            TypeError: If an argument is of another type.
            ValueError: If `dt` is not positive and finite, both states are the same object, or something
                belongs to another model.
        """
        what = f"{type(self).__name__}.step"
        if not isinstance(dt, float | int | np.floating | np.integer) or not (dt > 0.0 and math.isfinite(dt)):
            raise ValueError(f"{what}: dt is {dt!r} s, but must be a positive, finite time step.")
        check_state(self.model, state_in, f"{what}: state_in")
        check_state(self.model, state_out, f"{what}: state_out")
        if state_in is state_out:
            raise ValueError(
                f"{what}: state_in and state_out are the same object. Pass two states and swap them "
                "after the step; a frozen world is restored from state_in."
            )
        if control is not None:
            check_control(self.model, control, f"{what}: control")
        if contacts is not None:
            check_contacts(self.model, contacts, f"{what}: contacts")
        self._given = state_in, control
        return check_worlds(self.model, worlds, what=what)

    def _guess_cause(self, world: int) -> str:
        """Return what made the state of a world infinite, or NaN, as far as one can see it, in words."""
        found = find_unsound_values(self.model, world, *self._given)
        if found:
            listed = "; ".join(found[:_CAUSES_NAMED])
            rest = f"; and {len(found) - _CAUSES_NAMED} more arrays" if len(found) > _CAUSES_NAMED else ""
            return f"In world {world}, {listed}{rest}. Write numbers that it can be stepped with"
        return (
            "Look for NaN in what was set, for gains or stiffnesses that are far too large, for a time step "
            "that is too long, or for contacts that were written with shapes of other worlds"
        )

    def _report_device_indices(self, *, strict: bool) -> None:
        """Report indices on the device that named no world, environment or row of a view."""
        if not self.model.index_errors.exist:
            return
        for wrong in self.model.index_errors.take():
            noun = wrong.kind.name.lower()
            found = "1 index" if wrong.count == 1 else f"{wrong.count} indices"
            self._raise_or_warn(
                f"{found} on the device named no {noun}, for example {wrong.example}, and had no effect. "
                f"There are {noun}s 0 to {wrong.bound - 1}. Correct the indices passed to "
                f"{_CALLS_WITH_INDICES[wrong.kind]} or another call.",
                DeviceIndexError if strict else DeviceIndexWarning,
                np.zeros(0, dtype=np.int64),
            )

    def _report_truncation(self, *, strict: bool) -> None:
        """Report the worlds that solved without some of their contacts."""
        truncated = self._new_worlds("truncated", self.truncated_step_count)
        if truncated.size:
            needed = self.needed_contact_count.numpy()[truncated]
            capacity = self.contact_capacity[truncated]
            worst = int(np.argmax(needed - capacity))
            self._raise_or_warn(
                f"{name_worlds(truncated)}: more contacts than slots, the shallowest ones were left out. "
                f"World {truncated[worst]} needs {needed[worst]} and has {capacity[worst]}. Pass "
                f"rigid_contact_max={int(needed.max())} or more (simulation.max_rigid_contact in a scene).",
                ContactTruncationError if strict else ContactTruncationWarning,
                truncated,
            )

    @property
    def contact_capacity(self) -> np.ndarray:
        """Contact slots of each world, shape [world]."""
        return np.zeros(self.model.world_count, dtype=np.int64)

    def _body_wrenches(self, out: wp.array | None) -> wp.array:
        """Return `out`, or a new array of a wrench per body.

        Raises:
            ValueError: If `out` is none of these.
        """
        model = self.model
        if out is None:
            return wp.zeros(model.body_count, dtype=wp.spatial_vectorf, device=model.device)
        shape = (model.body_count,)
        if out.shape != shape or out.dtype is not wp.spatial_vectorf or out.device != model.device:
            raise ValueError(
                f"{type(self).__name__}.body_contact_force: out is {out.dtype.__name__} of shape "
                f"{out.shape} on {out.device}, but must be wp.spatial_vector of shape {shape} on "
                f"{model.device}."
            )
        return out

    def _new_worlds(self, kind: str, counts: wp.array) -> np.ndarray:
        """Return the worlds whose count is non-zero and that were not reported for this kind yet."""
        values = self._host_view(kind, counts)
        if not np.count_nonzero(values):
            return _NO_WORLDS
        bad = values != 0
        known = self._reported.get(kind)
        new = bad if known is None else bad & ~known
        self._reported[kind] = bad if known is None else bad | known
        return np.flatnonzero(new)

    def _host_view(self, kind: str, counts: wp.array) -> np.ndarray:
        """Return numbers of the device on the host; on a CPU a view, made once."""
        view = self._host_views.get(kind)
        if view is None or view[0] is not counts:
            view = counts, counts.numpy()
            if self.model.device.is_cpu:
                self._host_views[kind] = view  # it sees what kernels write
        return view[1]

    @staticmethod
    def _raise_or_warn(
        message: str, kind: type[SimulationWarning] | type[SimulationError], worlds: np.ndarray
    ) -> None:
        problem = kind(message, worlds.tolist())
        if isinstance(problem, Warning):
            warnings.warn(problem, stacklevel=5)
        else:
            raise problem


def check_single_precision(model: Model, solver: str, remedy: str) -> None:
    """Check that a solver in single precision can step a model.

    Raises:
        ValueError: If only double precision can; the message begins with `solver` and ends with `remedy`.
    """
    if model.single_precision_obstacle is not None:
        raise ValueError(f"{solver}: {model.single_precision_obstacle} {remedy}")


def name_worlds(worlds: np.ndarray) -> str:
    """Return worlds in words, the first of them by index."""
    named = ", ".join(str(world) for world in worlds[:_WORLDS_NAMED])
    rest = f" and {worlds.size - _WORLDS_NAMED} more" if worlds.size > _WORLDS_NAMED else ""
    return f"world{'s' if worlds.size > 1 else ''} {named}{rest}"


def _without_global(model: Model, mask: Any) -> Any:
    """Return a mask of worlds without its last entry, if that is for what is global."""
    shape = getattr(mask, "shape", None) or np.shape(mask if mask is not None else ())
    dtype = getattr(mask, "dtype", None) or np.asarray(mask if mask is not None else ()).dtype
    if mask is not None and tuple(shape) == (model.world_count + 1,) and dtype in (wp.bool, np.dtype(bool)):
        return mask[:-1]
    return mask
