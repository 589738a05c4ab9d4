"""SolverSAP: the stages of one step, in order."""

import dataclasses
import math
import weakref
from typing import Any

import numpy as np
import warp as wp

from pluriverse.collision.contact_horizon import ContactHorizon
from pluriverse.dynamics.body_acceleration import eval_body_accelerations
from pluriverse.dynamics.forward_kinematics import eval_body_state
from pluriverse.dynamics.integration import PositionIntegration, integrate
from pluriverse.dynamics.tree_motion import eval_tree_motion
from pluriverse.dynamics.workspace import Workspace
from pluriverse.launch import outside_recordings
from pluriverse.model import Contacts, Control, Model, State
from pluriverse.model.arguments import check_contacts
from pluriverse.newton_names import missing
from pluriverse.scratch import Scratch
from pluriverse.solvers.base import check_single_precision
from pluriverse.solvers.sap.body_force import sum_contact_forces
from pluriverse.solvers.sap.candidates import CandidateCheck
from pluriverse.solvers.sap.contact import set_contact_terms
from pluriverse.solvers.sap.contact_inputs import (
    ARITHMETIC_MEAN,
    BODY_INERTIA,
    CONTACT_MIDPOINT,
    DELASSUS,
    DIAG_DELASSUS,
    HARMONIC_MEAN,
    MAXIMUM,
    MINIMUM,
    RIGID_STIFFNESS,
    WITNESS_POINT,
    ContactOptions,
)
from pluriverse.solvers.sap.dilation import DILATION_SHARE, DILATION_SPEED
from pluriverse.solvers.sap.equality_terms import set_equality_terms
from pluriverse.solvers.sap.fixed_tendons import FixedTendons
from pluriverse.solvers.sap.inspection import ConvexProblem, convex_problem
from pluriverse.solvers.sap.joint_terms import set_joint_terms
from pluriverse.solvers.sap.moment_terms import set_moment_terms
from pluriverse.solvers.sap.newton import minimize_objectives
from pluriverse.solvers.sap.options import SapOptions, check_option_names
from pluriverse.solvers.sap.progress import START_OLD, START_SOLUTION, START_WRITTEN
from pluriverse.solvers.sap.restitution import add_restitutions
from pluriverse.solvers.sap.spring_terms import SpringSet, set_spring_terms
from pluriverse.solvers.sap.step_status import StepStatus, finalize_steps
from pluriverse.solvers.sap.unsupported import warn_of_unsupported
from pluriverse.solvers.sap.workspace import SapWorkspace
from pluriverse.solvers.springs import BodySpringTable, TendonTable, check_body_springs, check_tendons
from pluriverse.types import ModelFlags

_FRICTION_MODES = {
    "harmonic_mean": HARMONIC_MEAN,
    "arithmetic_mean": ARITHMETIC_MEAN,
    "minimum": MINIMUM,
    "maximum": MAXIMUM,
}
# Largest contact slot count of a world without limit given by `max_rigid_contact`.
_UNLIMITED = 2**31 - 1
_WEIGHT_MODES = {
    "body_inertia": int(BODY_INERTIA),
    "diag_delassus": int(DIAG_DELASSUS),
    "delassus": int(DELASSUS),
}


class SolverSAP(StepStatus):
    """Semi-analytic primal solver: compliant contact with Coulomb friction as one convex problem per step.

    A step finds the velocities v that minimize

        1/2 (v - v*)^T A (v - v*) + sum of the costs of contacts, equality constraints, drives, joint limits
                                     and dry joint friction,

    where A is the mass matrix with armature and implicit damping and v* the velocity of free motion
    ([Castro2022]); then positions follow. Every world is solved by itself, by Newton's method on its own tree
    structure, and needs no neighbour.

    Keyword options (defaults in `SapOptions`):

    - `contact_preset_variant`: `standard` (default), `approx32`, `approx64` or `drake`; stands for these
      options, for `contact_beta`, `approach_damping` and `recovery_limited`, each of which may be given by
      itself: `free_motion_solve_precision`, `contact_solve_precision`,
      `contact_linear_solve_precision`, `sap_contact_weight_precision` (`fp32` or `fp64`),
      `contact_weight_mode` (`delassus`, `body_inertia`, `diag_delassus`),
      `contact_point_mode` (`witness_point`,
      `contact_midpoint`), `position_integration` (`midpoint`, `semi_implicit`, `sap_euler`) and
      `use_f64_boundary_pose` (accepted; poses at the boundary are single precision, and every stage computes
      in its own precision from joint coordinates).
    - `line_search_variant`: `strong_wolfe` (default), `armijo_decay`, `exact_root` or `monotone_decay`, with
      `line_search_max_iterations`, `armijo_c`, `rho`, `line_search_relative_slop`.
    - `max_iterations`, `optimality_abs_tol`, `optimality_rel_tol`, `cost_abs_tol`, `cost_rel_tol`: when to
      stop.
    - `contact_beta`, `contact_sigma`: near-rigid bound and stiction regularization.
    - `friction_combination`: friction of a pair of shapes, `harmonic_mean` (default), `arithmetic_mean`,
      `minimum` or `maximum`. With `minimum` and a ground of large friction the value of the robot holds.
    - `fallback_stiffness` [N/m], `contact_tau_d` [s], `fallback_mu`: for shapes whose own value is missing
      (NaN or invalid). Without a stiffness contacts are near rigid. A friction coefficient of zero is a
      value: it means frictionless.
    - `approach_damping`: whether a contact damps an approach before there is contact: at the distance phi0
      it then resists from phi0 / (dt + tau) on, as the three presets do and [Castro2022] has it, so that a
      foot is braked in the air; otherwise from phi0 / dt, where it would penetrate within the step. Off
      unless a preset is named.
    - `recovery_limited`: whether a contact pushes overlapping shapes apart with no more work than it takes to
      lift them, besides what a stiffness that was given has stored (`recovery.py`), and a constraint between
      bodies closes no faster than they would fall from its error. On in `standard` only.
    - `friction_law`: `coulomb`, with which a contact that slides stays (`coulomb.py`, `dilation.py`), or
      `convex`, with which it opens at mu times its speed. `coulomb` in `standard` only, and there `convex`
      where `torsional_friction` is on.
    - `resting_depth_limit` [m]: depth of a contact at rest from which `report` warns; by default 5 mm or
      three tenths of the thickness of one of the shapes.
    - `restitution_threshold` [m/s]: approach of a contact below which it does not bounce, whatever its
      `restitution`.
    - `torsional_friction`: whether contacts resist turning, by `mu_torsional` about their normal and by
      `mu_rolling` about their tangents; off by default.
    - `max_rigid_contact`: contacts per world that take part; None means as many as the contact buffer holds.
    - `enforce_velocity_limit`: whether `Model.joint_velocity_limit` limits the speed of joints, whatever
      moves them; off by default, since the rated speeds of robot files are meant for whoever commands them.
    - `diag_shift`: added to the diagonal of the Hessian in the linear solve.
    - `static_substep`, `static_substep_iterations`, `static_substep_line_search_iterations`: fixed upper
      counts.
    - `block_size`, `capture_contact_jacobian_snapshots`, `collect_iteration_stats`,
      `check_line_search_errors`, `graph_conditional`: accepted for compatibility. There is no dense matrix to
      tile and no Jacobian to capture; iteration counts are always collected and failures always counted.

    Args:
        model: Model to simulate.
        **options: See above.

    Raises:
        TypeError: If `model` is no Model, or an option is unknown.
        ValueError: If an option's value is not allowed.
    """

    places_shapes_in_row = True
    dynamics: Workspace
    """Kinematics, mass matrix and free motion of the last step."""
    workspace: SapWorkspace | None
    """Contact problem and solution of the last step; None before the first."""
    sim_time: float
    """Sum of the time steps of all calls of `step` [s]. Replays of a recorded graph are not counted."""

    def __init__(self, model: Model, **options: Any):
        super().__init__(model)
        check_option_names(options)
        self.options = SapOptions(**options)
        if self.options.free_motion_solve_precision == "fp32":
            check_single_precision(model, "SolverSAP", "Use free_motion_solve_precision='fp64'.")
        self.dynamics = Workspace(model, self.options.real("free_motion_solve_precision"))
        self.workspace = None
        self.sim_time = 0.0
        self.frame_id = 0
        self._springs: SpringSet | None = None
        self._spring_tables: list[Any] = [None, None]
        tendons = FixedTendons(model)
        warn_of_unsupported(model)
        self._fixed_tendons = tendons if tendons.count else None
        if self._fixed_tendons is not None:
            self._spring_tables[0] = tendons.table
            self._springs = SpringSet(model, *self._spring_tables)
        self._spring_version = 0
        self._bounces = self._has_restitution()
        self._step_duration = math.inf
        self._position_integration = PositionIntegration(self.options.position_integration)
        self._weight_real = self.options.real("sap_contact_weight_precision")
        self._coord_count = wp.array(
            [template.coord_count for template in model.templates],
            dtype=wp.int32,
            device=model.device,
        )
        limit = self.options.max_rigid_contact
        self._contact_limit = _UNLIMITED if limit is None else limit
        self._candidate_check = CandidateCheck(
            model, self.dynamics, self.world_frozen, self.readmitted_step_count
        )
        # A recorded step knows the memory of its workspace, which therefore lives as long as the contacts.
        self._workspaces: weakref.WeakKeyDictionary[Contacts, SapWorkspace] = weakref.WeakKeyDictionary()
        self._no_control: Control | None = None
        self._no_contacts: Contacts | None = None

    def __getattr__(self, name: str) -> Any:
        options = self.__dict__.get("options")
        if options is not None and name in options.__dataclass_fields__:
            return getattr(options, name)
        raise missing("SolverSAP", name)

    def prepare(self, contacts: Contacts) -> None:
        """Allocate the workspace for a contact buffer; `step` then neither allocates nor reads back.

        Raises:
            TypeError: If `contacts` are of another type.
            ValueError: If the coupling blocks of all worlds together exceed what 32-bit indices can address,
                or `contacts` belong to another model.
        """
        check_contacts(self.model, contacts, "SolverSAP.prepare: contacts")
        workspace = self._workspaces.get(contacts)
        if workspace is None:
            with outside_recordings(self.model.device):
                workspace = self._workspaces[contacts] = SapWorkspace(
                    self.model,
                    contacts,
                    self.options.real("contact_solve_precision"),
                    self.options.real("contact_linear_solve_precision"),
                    has_moments=self.options.torsional_friction,
                    springs=None if self._springs is None else self._springs.arrays,
                )
        self.workspace = workspace

    def scratch(self, contacts: Contacts) -> list[Scratch]:
        """Return the arrays in which steps with a contact buffer leave nothing."""
        self.prepare(contacts)
        assert self.workspace is not None
        return [
            *self.dynamics.scratch(),
            *self.workspace.scratch(self.model),
            *self._candidate_check.scratch(),
        ]

    @property
    def contact_capacity(self) -> np.ndarray:
        """Contacts that can take part, shape [world]."""
        if self.workspace is None:
            return super().contact_capacity
        return np.minimum(self.workspace.contact_capacity, self._contact_limit)

    def get_max_contact_count(self) -> int:
        """Return the number of contacts that can take part, over all worlds."""
        return int(self.contact_capacity.sum())

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

        Contacts must have been found for `state_in`. Only kernels are launched, so a step can be recorded
        into a graph. What a contact buffer needs is allocated in its first step, outside of such a recording.

        Args:
            state_in: State at the start of the step.
            state_out: Receives the new state; another object than `state_in`.
            control: Joint forces and drive targets; None for the targets of the model and no forces.
            contacts: Contacts of `state_in`; None for none.
            dt: Time step [s].
            worlds: World indices to step, shape [slot]; None for all.

        Raises:
            TypeError: If an argument is of another type.
            ValueError: If `dt` is not positive and finite, both states are the same object, something belongs
                to another model, or an array has another shape or is on another device.
        """
        worlds = self._check_step(state_in, state_out, control, contacts, dt, worlds)
        model = self.model
        if control is None and self._no_control is None:
            self._no_control = model.control()
        if contacts is None and self._no_contacts is None:
            with outside_recordings(model.device):
                self._no_contacts = Contacts(model, 0)
        control = self._no_control if control is None else control
        contacts = self._no_contacts if contacts is None else contacts
        assert control is not None
        assert contacts is not None
        self.prepare(contacts)
        sap = self.workspace
        assert sap is not None

        is_follower, groups = self._follows_step, self.dynamics.groups
        partly = self._is_followed and groups.leaves_out_bodies and state_out.body_qdd is None
        if not is_follower:  # else nobody could write to the control
            control.unify_targets(worlds)
        mode = self._position_integration
        eval_tree_motion(
            model, worlds, state_in, control, self.dynamics, dt, mode=mode, is_follower=is_follower
        )
        set_joint_terms(
            model,
            worlds,
            state_in,
            control,
            self.dynamics,
            sap,
            contact_sigma=self.options.contact_sigma,
            approach_damping=bool(self.options.approach_damping),
            enforce_velocity_limit=self.options.enforce_velocity_limit,
            dt=dt,
        )
        if self._fixed_tendons is not None:
            self._fixed_tendons.set_springs(worlds, state_in, control)
        self._solve(state_in, contacts, worlds, sap, dt, start=START_OLD)
        if contacts.culling is not None:
            self._check_horizon(contacts.culling.horizon, dt)
            # What was found without the missing contacts is near; the stage of restitution overwrites one
            # copy.
            again = START_WRITTEN if self._bounces else START_SOLUTION
            self._candidate_check.repeat(
                worlds,
                contacts,
                lambda some: self._solve(state_in, contacts, some, sap, dt, start=again),
                check_free=self._bounces,
            )
        integrate(
            model,
            worlds,
            state_in,
            state_out,
            self.dynamics,
            dt,
            mode=mode,
            control=control,
            partly=partly,
        )
        finalize_steps(
            model,
            worlds,
            self._coord_count,
            state_in,
            state_out,
            contacts,
            sap,
            self,
            contact_capacity=self._contact_limit,
            depth_limit=self.options.resting_depth_limit,
            follows_coulomb=self.options.friction_law == "coulomb",
            dt=dt,
            node_is_read=groups.node_is_read,
            is_follower=is_follower,
            partly=partly,
        )
        if is_follower and not self._is_followed and groups.leaves_out_bodies:
            eval_body_state(model, worlds, state_out, self.dynamics, unsettled=self.world_placed)
        eval_body_accelerations(model, worlds, state_in, state_out, dt, self.world_frozen)
        self._step_duration = dt
        self.sim_time += dt
        self.frame_id += 1
        return state_out

    def _solve(
        self,
        state_in: State,
        contacts: Contacts,
        worlds: wp.array,
        sap: SapWorkspace,
        dt: float,
        *,
        start: int,
    ) -> None:
        """Find the velocities at the end of the step from the contacts and the terms of joints."""
        model = self.model
        set_contact_terms(
            model,
            worlds,
            contacts,
            self.dynamics,
            sap,
            self.world_frozen,
            options=self._contact_options(dt),
            weight_real=self._weight_real,
        )
        if sap.has_equality:
            set_equality_terms(
                model,
                worlds,
                state_in,
                self.dynamics,
                sap,
                self.world_frozen,
                dt=dt,
                recovery_limited=bool(self.options.recovery_limited),
            )
        if self._springs is not None:
            set_spring_terms(
                model, worlds, state_in, self.dynamics, sap, self._springs, self.world_frozen, dt=dt
            )
        if sap.has_moments:
            set_moment_terms(
                model,
                worlds,
                contacts,
                sap,
                friction_mode=self._contact_options(dt).friction_mode,
                sigma=self.options.contact_sigma,
            )
        if self._bounces:
            add_restitutions(
                model,
                worlds,
                contacts,
                self.dynamics,
                sap,
                threshold=self.options.restitution_threshold,
                dt=dt,
                is_convex=self.options.friction_law == "convex",
            )
        minimize_objectives(model, worlds, self.dynamics, sap, self.options, dt=dt, start=start)

    def contact_horizon(self, dt: float) -> ContactHorizon | None:
        """Return which contacts a step of `dt` [s] does not need, for `CollisionPipeline.collide`."""
        if self.model.device.is_cuda and not wp.is_conditional_graph_supported():
            return None  # worlds could not be solved again within a recorded step
        model, options = self.model, self.options
        is_convex = options.friction_law == "convex"
        return ContactHorizon(
            dt=dt,
            shape_tau=model.shape_material_tau if options.approach_damping else None,
            fallback_tau=options.contact_tau_d,
            shape_mu=model.shape_material_mu,
            fallback_mu=options.fallback_mu or 0.0,
            shape_mu_torsional=model.shape_material_mu_torsional if options.torsional_friction else None,
            shape_mu_rolling=model.shape_material_mu_rolling if options.torsional_friction else None,
            # Coulomb's law parts no contact. Where it is met by corrections, they leave this much.
            sliding_share=1.0 if is_convex else DILATION_SHARE,
            sliding_speed=0.0 if is_convex else DILATION_SPEED,
            is_midway=options.contact_point_mode == "contact_midpoint",
        )

    def _check_horizon(self, horizon: ContactHorizon, dt: float) -> None:
        """Raise if contacts were left out for a step of another length."""
        if dataclasses.replace(horizon, world_complete=None) != self.contact_horizon(dt):
            raise ValueError(
                f"SolverSAP.step: dt is {dt} s, but the contacts were found for a step of {horizon.dt} s or "
                "for another solver. Pass horizon=solver.contact_horizon(dt) to collide(), or none."
            )

    def notify_model_changed(self, flags: ModelFlags | int) -> None:
        """Check edits of the model and update what depends on them.

        The first shape with `restitution` adds a stage to the step, so a step recorded before is out of date.

        Args:
            flags: What was written to.

        Raises:
            ValueError: If a value is not allowed, an array of the structure was written to, or a flag is
                unknown.
        """
        super().notify_model_changed(flags)
        if int(flags) & ModelFlags.SHAPE_PROPERTIES:
            self.sync_from_model()

    def update_body_poses(self, worlds: wp.array, state: State) -> None:
        """Write poses and velocities of bodies from the joint state, with the bits that `step` gives them."""
        self.dynamics.groups.update(worlds)
        eval_body_state(self.model, worlds, state, self.dynamics)

    def sync_from_model(self) -> None:
        """Find out whether shapes have restitution."""
        self._bounces = self._bounces or self._has_restitution()

    @property
    def graph_version(self) -> int:
        """Another number once shapes have restitution, and with other springs."""
        return 2 * self._spring_version + int(self._bounces)

    def set_springs(
        self, *, tendons: "TendonTable | None" = None, bodies: "BodySpringTable | None" = None
    ) -> bool:
        """Let springs act as terms of the objective; see `SolverBase.set_springs`.

        Tendons take the place of those that the model has in `model.mujoco`; a table of none leaves them out.

        Raises:
            ValueError: If the arrays of a table do not fit each other or the model, or a number is out of
                range.
        """
        if tendons is not None:
            check_tendons(self.model, tendons)
            self._fixed_tendons = None
        if bodies is not None:
            check_body_springs(self.model, bodies)
        for kind, table in enumerate((tendons, bodies)):
            if table is not None:
                owner = table.articulation if kind == 0 else table.body
                self._spring_tables[kind] = table if owner.size else None
        has_springs = any(table is not None for table in self._spring_tables)
        self._springs = SpringSet(self.model, *self._spring_tables) if has_springs else None
        if bodies is not None:
            self.dynamics.groups.read_bodies(bodies.body.numpy())
        self._spring_version += 1
        self._workspaces.clear()
        return True

    def _has_restitution(self) -> bool:
        return bool((self.model.shape_material_restitution.numpy() > 0.0).any())

    def body_contact_force(self, contacts: Contacts, *, out: wp.array | None = None) -> wp.array:
        """Return the sum of the contact forces of the last step on each body.

        Args:
            contacts: Contacts of the last step, of which `rigid_contact_force` has the force of each contact.
            out: Array to write, type `wp.spatial_vector`, shape [body]; None for a new one.

        Returns:
            Force [N] and torque about the centre of mass [N·m], world axes, shape [body].

        Raises:
            RuntimeError: If no step was made with these contacts.
            ValueError: If `out` has another shape or type, or is on another device.
        """
        workspace = self._workspaces.get(contacts) if isinstance(contacts, Contacts) else None
        if workspace is None:
            raise RuntimeError(
                "SolverSAP.body_contact_force: the last step was not made with these contacts. Call "
                "step() first."
            )
        wrench = self._body_wrenches(out)
        sum_contact_forces(
            self.model,
            self.model.structure.worlds,
            contacts,
            self.dynamics,
            workspace,
            wrench,
            dt=self._step_duration,
        )
        return wrench

    def convex_problem(self, world: int, dt: float) -> ConvexProblem:
        """Return the problem that the last step of `dt` [s] solved for a world, as dense arrays.

        This is for tests and for study: the solver itself forms no dense matrix.

        Raises:
            RuntimeError: If no step was made yet, or a `Simulation` has too many worlds to keep all problems.
            IndexError: If there is no such world.
        """
        if self.workspace is None:
            raise RuntimeError("SolverSAP.convex_problem: no step was made yet. Call step() first.")
        if self.shares_scratch:
            raise RuntimeError(
                "SolverSAP.convex_problem: the simulation steps so many worlds that they use the same memory "
                "one after another, and their problems are lost. Use fewer worlds, or record=False."
            )
        if not 0 <= world < self.model.world_count:
            raise IndexError(
                f"SolverSAP.convex_problem: world is {world}, but must be in 0..{self.model.world_count - 1}."
            )
        return convex_problem(self.model, world, self.dynamics, self.workspace, dt=dt)

    def reset_runtime_state(self) -> None:
        """Forget time, counters and frozen worlds. The solver keeps nothing else from step to step."""
        self.sim_time, self.frame_id = 0.0, 0
        for counts in (
            self.unconverged_step_count,
            self.approximated_step_count,
            self.truncated_step_count,
            self.needed_contact_count,
            self.readmitted_step_count,
            self.world_frozen,
        ):
            counts.zero_()
        self.reset_status()
        self._reported.clear()

    def _contact_options(self, dt: float) -> ContactOptions:
        options = self.options
        result = ContactOptions()
        result.beta = options.contact_beta
        result.sigma = options.contact_sigma
        result.fallback_stiffness = options.fallback_stiffness or RIGID_STIFFNESS
        result.fallback_tau = options.contact_tau_d
        result.fallback_mu = options.fallback_mu or 0.0
        result.weight_mode = _WEIGHT_MODES[options.contact_weight_mode]
        result.friction_mode = _FRICTION_MODES[options.friction_combination]
        midpoint = options.contact_point_mode == "contact_midpoint"
        result.point_mode = CONTACT_MIDPOINT if midpoint else WITNESS_POINT
        result.capacity = self._contact_limit
        result.approach_damping = int(bool(options.approach_damping))
        result.recovery_limited = int(bool(options.recovery_limited))
        result.moves_by_chords = int(options.position_integration == "semi_implicit")
        result.dt = dt
        return result
