"""EngineSolver: the part of `SolverMuJoCo` that steps; its engine does the work."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics.body_acceleration import eval_body_accelerations
from pluriverse.dynamics.forward_kinematics import eval_fk_of_worlds
from pluriverse.launch import outside_recordings
from pluriverse.model import Contacts, Control, Model, State
from pluriverse.model.arguments import check_contacts, check_state
from pluriverse.model.world_selection import resolve_worlds
from pluriverse.solvers.base import SolverBase, name_worlds
from pluriverse.solvers.mujoco.attributes.namespace_rows import rows_of_worlds
from pluriverse.solvers.mujoco.engine import Engine
from pluriverse.solvers.mujoco.exchange.body_force import sum_contact_forces
from pluriverse.solvers.mujoco.exchange.contact_copy import copy_contacts
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.warnings import ContactTruncationError, ContactTruncationWarning

# Contacts per shape, for the automatic size of the list of contacts: MuJoCo finds up to 8 for a pair of
# boxes, and a shape rarely has two full patches.
CONTACTS_PER_SHAPE = 8
LIST_BASE = 32


class EngineSolver(SolverBase):
    """A solver that delegates its steps to an engine.

    Args:
        model: Model to simulate.
        use_mujoco_contacts: Whether MuJoCo finds the contacts.
    """

    engine: Engine
    """The engine that steps the worlds."""
    convergence_remedy = (
        "MuJoCo stops at opt.iterations: pass a larger iterations= or tolerance= to SolverMuJoCo."
    )
    """Remedy for steps that do not converge, for messages."""

    # Models and data of MuJoCo are with the threads; a world has its rows, state and contacts. With chunks of
    # 4, 16, 64, 256 and 1024 MiB of the estimate, 512 falling ANYmal take 1, 1.01, 1.03, 1.04 and 1.06 times
    # the world-steps a second, 512 G1 with random targets 1, 1.06, 1.06, 1.07, 1.07.
    chunk_share = 1.0 / 16.0
    steps_body_axes = True
    has_explicit_drives = True

    def __init__(self, model: Model, *, use_mujoco_contacts: bool):
        super().__init__(model)
        self._use_mujoco_contacts = use_mujoco_contacts
        self._no_control: Control | None = None
        self._own_contacts: Contacts | None = None
        self._contacts: Contacts | None = None
        self._stepped: State | None = None
        self._has_outdated_bodies = False  # whether those of `_stepped` were left out
        self._overflown: set[int] = set()

    @property
    def runtime_arrays(self) -> Mapping[str, wp.array]:
        """Arrays that the solver carries from step to step besides the State: rows and warm start."""
        return self.engine.runtime_arrays

    @property
    def is_thread_safe(self) -> bool:
        """Whether threads may step different worlds at the same time."""
        return self.engine.is_thread_safe

    @property
    def is_recordable(self) -> bool:
        """Whether a step only launches kernels, so that it can be recorded into a graph."""
        return self.engine.is_recordable

    @property
    def graph_version(self) -> int:
        """Another number whenever steps recorded before are out of date."""
        return self.engine.graph_version

    @property
    def contact_capacity(self) -> np.ndarray:
        """Slots of the contact buffer, shape [world]."""
        if self._contacts is None:
            return super().contact_capacity
        return np.diff(self._contacts.slot_start.numpy())

    def contacts(self, rigid_contact_max: int | Sequence[int] | None = None) -> Contacts | None:
        """Return a new buffer for the list of MuJoCo's contacts; None if contacts are external.

        Args:
            rigid_contact_max: Slots per world: one number, one per world, or None to estimate them. A world
                with more contacts solves them all, and lists the first.
        """
        if not self._use_mujoco_contacts:
            return None
        if rigid_contact_max is not None:
            return Contacts(self.model, rigid_contact_max)
        capacities = np.zeros(len(self.model.templates), dtype=np.int64)
        for index, template in enumerate(self.model.templates):
            shapes = np.union1d(template.pair_shape0, template.pair_shape1)
            bound = LIST_BASE + CONTACTS_PER_SHAPE * len(shapes)
            capacities[index] = min(CONTACTS_PER_SHAPE * len(template.pair_shape0), bound)
        # Contact pairs of the namespace may name geoms that are not candidates otherwise.
        pairs = rows_of_worlds(ModelRows(self.model), "pair", np.arange(self.model.world_count))
        named = CONTACTS_PER_SHAPE * (pairs >= 0).sum(axis=1)
        return Contacts(self.model, capacities[self.model.world_template] + named)

    def prepare(self, contacts: Contacts) -> None:
        """Allocate everything that `step` needs for a contact buffer, so that it can be recorded.

        Raises:
            TypeError: If `contacts` are of another type.
            ValueError: If `contacts` belong to another model.
        """
        check_contacts(self.model, contacts, f"{type(self).__name__}.prepare: contacts")
        self._contacts = contacts
        self.engine.prepare(contacts)

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
        """Write the state after `dt` [s] into `state_out` and return it.

        Apart from the first call with a contact buffer (see `prepare`), only kernels are launched, so a step
        can be recorded into a graph.

        Args:
            state_in: State at the start of the step.
            state_out: Receives the new state; another object than `state_in`.
            control: Joint forces and drive targets; None for the targets of the model and no forces.
            contacts: With `use_mujoco_contacts`, receives MuJoCo's contacts with their forces; None to keep
                them in the solver, for `update_contacts`. Otherwise the contacts of `state_in`, which receive
                forces; None for no contacts.
            dt: Time step [s].
            worlds: World indices to step, shape [slot]; None for all.

        Raises:
            TypeError: If an argument is of another type.
            ValueError: If `dt` is not positive and finite, both states are the same object, something belongs
                to another model, or an array has another shape or is on another device.
        """
        worlds = self._check_step(state_in, state_out, control, contacts, dt, worlds)
        device = self.model.device
        if control is None and self._no_control is None:
            self._no_control = self.model.control()
        if contacts is None and self._own_contacts is None:
            with outside_recordings(device):
                self._own_contacts = self.contacts() or Contacts(self.model, 0)
        control = self._no_control if control is None else control
        contacts = self._own_contacts if contacts is None else contacts
        assert control is not None
        assert contacts is not None
        if contacts is not self._contacts:
            with outside_recordings(device):
                self.prepare(contacts)
        if not self._follows_step:  # else nobody could write to the control
            control.unify_targets(worlds)
        exchange = self.engine.exchange
        leaves_out_bodies = exchange.maps.float_depth == 0 and state_out.body_qdd is None
        self.engine.follows_step = self._follows_step
        self.engine.lists_contacts = not self._is_followed
        exchange.writes_bodies = not (leaves_out_bodies and self._is_followed)
        exchange.has_outdated_bodies = leaves_out_bodies and self._follows_step
        self._stepped = state_in
        self._has_outdated_bodies = exchange.has_outdated_bodies
        self.engine.step(state_in, state_out, control, contacts, dt, worlds)
        eval_body_accelerations(self.model, worlds, state_in, state_out, dt, self.world_frozen)
        return state_out

    def body_contact_force(
        self, contacts: Contacts, *, state: State | None = None, out: wp.array | None = None
    ) -> wp.array:
        """Return the sum of the contact forces of the last step on each body.

        Moments of torsional and rolling friction are not included, since contacts are listed with forces
        only. If a world has more contacts than slots, only the listed ones count.

        Args:
            contacts: Contacts of the last step, with their forces in `rigid_contact_force`.
            state: State at the start of the step, whose poses give the lever arms; None for the state that
                `step` was last called with. In a `Simulation`, which swaps its states, that state is one step
                ahead unless `decimation` is even.
            out: Array to write, type `wp.spatial_vector`, shape [body]; None for a new one.

        Returns:
            Force [N] and torque about the centre of mass [N·m], world axes, shape [body].

        Raises:
            RuntimeError: If no step was made with these contacts.
            ValueError: If `out` has another shape or type, or is on another device.
        """
        state = state or self._stepped
        if state is not None:
            check_state(self.model, state, f"{type(self).__name__}.body_contact_force: state")
        if state is None or self._contacts is not contacts:
            raise RuntimeError(
                f"{type(self).__name__}.body_contact_force: the last step was not made with these contacts. "
                "Call step() first."
            )
        if state is self._stepped and self._has_outdated_bodies:
            eval_fk_of_worlds(self.model, self.model.structure.worlds, state)
        wrench = self._body_wrenches(out)
        sum_contact_forces(self.model, state, contacts, wrench)
        return wrench

    def update_contacts(self, contacts: Contacts, state: State | None = None) -> None:
        """Write the contacts of the last step, with their forces, into a buffer. Only launches.

        A buffer that was given to `step` has them already.

        Args:
            contacts: Buffer, for example made by `contacts`.
            state: Accepted for compatibility; not used.

        Raises:
            RuntimeError: If no step was made yet.
        """
        if self._contacts is None:
            raise RuntimeError(
                f"{type(self).__name__}.update_contacts: no step was made yet. Call step() first."
            )
        check_contacts(self.model, contacts, f"{type(self).__name__}.update_contacts: contacts")
        if contacts is not self._contacts:
            copy_contacts(self.model, self.model.structure.worlds, self._contacts, contacts)

    def unfreeze(self, worlds: Any = None) -> None:
        """Restart worlds from their State, unfrozen and without warm start.

        Args:
            worlds: Indices, or one truth value per world; on the host or on the device, where they are not
                read back. None for all.

        Raises:
            IndexError: If there is no such world.
            TypeError: If `worlds` are neither whole numbers nor truth values.
            ValueError: If a mask has not one entry per world, or an array is on another device.
        """
        selection = resolve_worlds(self.model, worlds, what=f"{type(self).__name__}.unfreeze")
        super().unfreeze(selection)
        self.engine.reset(selection)

    def _report_truncation(self, *, strict: bool) -> None:
        """Report contacts and constraints without memory, and contacts without a slot in the list."""
        for overflow in self.engine.take_overflow():
            new = np.array(
                [world for world in overflow.worlds if world not in self._overflown], dtype=np.int64
            )
            self._overflown.update(overflow.worlds)
            if new.size or strict:
                self._raise_or_warn(
                    f"{name_worlds(np.array(overflow.worlds))}: {overflow.what} {overflow.remedy}",
                    ContactTruncationError if strict else ContactTruncationWarning,
                    np.array(overflow.worlds),
                )
        unlisted = self._new_worlds("unlisted", self.engine.unlisted_step_count)
        if unlisted.size:
            needed = self.needed_contact_count.numpy()[unlisted]
            worst = int(np.argmax(needed))
            self._raise_or_warn(
                f"{name_worlds(unlisted)}: more contacts than the list of contacts has slots. All of "
                f"them acted, but not all can be read. World {unlisted[worst]} had {needed[worst]}. Pass "
                f"rigid_contact_max={int(needed.max())} or more.",
                ContactTruncationWarning,
                unlisted,
            )
