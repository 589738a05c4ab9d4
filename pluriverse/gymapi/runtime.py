"""Runtime: a prepared sim. Its model, the loop, and the calls before and after each step."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics.forward_kinematics import eval_fk_of_articulations
from pluriverse.dynamics.gravity_compensation import gravity_compensation
from pluriverse.gymapi.actor_simulation import ActorSimulation, ActorStage
from pluriverse.gymapi.ball_drives import drive_ball
from pluriverse.gymapi.body_forces import sum_body_forces
from pluriverse.gymapi.contact_options import contact_options, has_friction_moments
from pluriverse.gymapi.enums import DofDriveMode
from pluriverse.gymapi.errors import GymError
from pluriverse.gymapi.structures import SimParams
from pluriverse.gymapi.tables import (
    ActorTable,
    BodyTable,
    DofTable,
    find_body_rows,
    find_split_parts,
    integers,
)
from pluriverse.launch import launch_kernel
from pluriverse.model import Contacts, Model, State
from pluriverse.simulation import Simulation
from pluriverse.solvers.base import SolverBase
from pluriverse.solvers.springs import no_tendons
from pluriverse.springs.response import Springs
from pluriverse.types import ModelFlags

SOLVERS = ("sap", "mujoco")
"""Values of `SimParams.solver`."""
SAP_OPTIONS = {
    # Shapes are as stiff as their time step resolves. With 0.1 a load of ten thousand times the mass of its
    # support sinks in by a centimetre; with 1 it sinks in by the size of a box. A walking robot takes some 10
    # % more Newton iterations with 0.1.
    "contact_beta": 0.1,
    "friction_combination": "arithmetic_mean",
    "enforce_velocity_limit": True,
}
"""Options of SolverSAP that scripts do not set by `SimParams.solver_options`."""
MUJOCO_OPTIONS = {"enforce_velocity_limit": True}
"""The same of SolverMuJoCo."""
SHARED_TREE_COUNT = 64
"""Number of robots and objects in a world from which on no contact is omitted (`cull_contacts`)."""


def make_solver(model: Model, name: str, options: dict[str, Any]) -> SolverBase:
    """Return the solver of a name.

    Raises:
        ValueError: If there is none of that name.
        GymError: If it is not installed.
    """
    key = str(name).lower().removeprefix("solver")
    if key == "sap":
        from pluriverse.solvers.sap import SolverSAP
        from pluriverse.solvers.sap.unsupported import UnsupportedFeatureWarning, describe_unsupported

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsupportedFeatureWarning)  # its remedy is not one of this API
            sap = SolverSAP(model, **{**SAP_OPTIONS, **options})
        found = describe_unsupported(model)
        if found:
            warnings.warn(
                f'prepare_sim: {found}. Set sim_params.solver = "mujoco" before create_sim() to have them.',
                UnsupportedFeatureWarning,
                stacklevel=6,
            )
        return sap
    if key == "mujoco":
        import pluriverse

        if "SolverMuJoCo" not in pluriverse.__all__:
            raise GymError("prepare_sim: sim_params.solver is 'mujoco', which this version lacks. Use 'sap'.")
        solver: SolverBase = pluriverse.SolverMuJoCo(model, **{**MUJOCO_OPTIONS, **options})
        return solver
    raise ValueError(f"prepare_sim: sim_params.solver is {name!r}, but must be one of {', '.join(SOLVERS)}.")


class Runtime:
    """The model of a sim, its loop, and the tables that tensors are read and written by.

    Args:
        model: The model of all actors.
        params: Parameters of the sim, which it shares.
        actors: Where the actors are in the model.
        dofs: Where the degrees of freedom are.
        bodies: Where the bodies are.
    """

    def __init__(
        self, model: Model, params: SimParams, actors: ActorTable, dofs: DofTable, bodies: BodyTable
    ):
        self.model = model
        self.params = params
        """Parameters of the sim."""
        self.substeps = max(int(params.substeps), 1)
        self.device = self.model.device
        self.read_contacts: Callable[[Contacts, State, wp.array], None] | None = None
        """Launches the readings of contacts after each solver step, in the recorded step."""
        self.sums_in_step = wp.zeros(1, dtype=wp.bool, device=self.device)
        """Whether recorded steps write external forces, one entry."""
        self._sums_in_step = False
        self._always = wp.ones(1, dtype=wp.bool, device=self.device)
        self.simulation = self._make_simulation()
        self.changed = ModelFlags(0)
        """Flags of the arrays of the model written to since the last step."""
        self.moved: wp.array[bool] = wp.ones(self.model.articulation_count, dtype=wp.bool, device=self.device)
        """Articulations whose body poses do not yet follow their joint coordinates."""
        self.any_moved = True
        # Without separate envs there is one world, whose index in articulations is -1.
        self._articulation_world = np.maximum(self.model.articulation_world.numpy(), 0)
        self._world_list: wp.array[int] = wp.empty(self.model.world_count, dtype=wp.int32, device=self.device)
        self.actors, self.dofs, self.bodies = actors, dofs, bodies
        self.body_row = integers(find_body_rows(self.model, self.bodies), self.device)
        """Index in the sim of each body of the model; -2 - index for a part that was cut from a body."""
        self.split_parts = find_split_parts(self.model, self.bodies)
        """Parts that were cut from bodies of the model, by body."""
        self.no_indices: wp.array[int] = wp.empty(0, dtype=wp.int32, device=self.device)
        self.no_vectors: wp.array[wp.vec3] = wp.empty(0, dtype=wp.vec3, device=self.device)
        self.applied_force = wp.zeros(bodies.body.size, dtype=wp.vec3, device=self.device)
        self.applied_torque = wp.zeros(bodies.body.size, dtype=wp.vec3, device=self.device)
        self.warned_of_copies = False
        """Whether the warning about host calls on a GPU was given."""
        self.has_applied = False
        self.has_effort = False
        self.has_body_force = False
        self.has_passive_force = self._find_passive_force()
        self.has_jointed_root = bool(actors.root_moves.numpy().any())
        self.ball_rows = integers(np.flatnonzero(dofs.ball_axis.numpy() == 0), self.device)
        """First rows of ball joints."""
        self.before_step: list[Callable[[float], None]] = []
        """Called before each `simulate`, with its duration [s]: forces that depend on the state."""
        self.before_substep: list[Callable[[float], None]] = []
        """Called before each solver step, with its duration [s]."""
        self._springs: list[Springs] = []
        self.after_substep: list[Callable[[int], None]] = []
        """Called after each solver step, with its number."""
        self.after_step: list[Callable[[float], None]] = []
        """Called after each `simulate`, with its duration [s]."""

    def _make_simulation(self) -> Simulation:
        params = self.params
        threads = int(params.physx.num_threads)
        self.has_friction_moments = has_friction_moments(self.model)
        solver = make_solver(
            self.model, params.solver, {**contact_options(self.model, params), **params.solver_options}
        )
        # Tendons act by the properties of actors (`tendon_forces.py`), and actuators on them not at all.
        solver.set_springs(tendons=no_tendons(self.device))
        return ActorSimulation(
            ActorStage(self._push, self._read),
            self.model,
            solver,
            dt=params.dt / self.substeps,
            decimation=1,
            threads=threads if threads > 0 else None,
            rigid_contact_max=params.max_contacts,
            cull_contacts=self._find_culled_worlds(),
        )

    def _find_culled_worlds(self) -> np.ndarray:
        """Return for each world whether contacts that cannot act are left out, shape [world].

        A contact that was left out and is missed has its whole world solved again: of many robots in one
        world, some miss one in every step.
        """
        tree_count = np.array([template.tree_count for template in self.model.templates])
        return tree_count[self.model.world_template] < SHARED_TREE_COUNT

    def _push(self, state: State, worlds: wp.array) -> None:
        """Launch the external forces of one solver step, which `sums_in_step` switches on."""
        self._launch_body_forces(state, worlds, self.sums_in_step)

    def _read(self, state: State, worlds: wp.array) -> None:
        """Launch the readings of one solver step."""
        if self.read_contacts is not None:
            self.read_contacts(self.simulation.contacts, state, worlds)

    def set_params(self, params: SimParams) -> None:
        """Apply changed parameters: gravity at once, time step and substeps with a new loop."""
        old = self.params
        for name in ("use_gpu_pipeline", "solver", "solver_options", "max_contacts", "isolate_envs"):
            if getattr(params, name) != getattr(old, name):
                raise GymError(
                    f"set_sim_params: {name} cannot change from {getattr(old, name)!r} to "
                    f"{getattr(params, name)!r} once the sim is prepared. Set it before create_sim()."
                )
        if params.gravity != old.gravity:
            self.model.set_gravity(list(params.gravity))
            self.changed |= ModelFlags.MODEL_PROPERTIES
        self.params = params.copy()
        threshold, old_threshold = (one.physx.bounce_threshold_velocity for one in (params, old))
        if (params.dt, int(params.substeps), threshold) != (old.dt, int(old.substeps), old_threshold):
            self._rebuild_simulation()

    def _rebuild_simulation(self) -> None:
        """Continue with a new loop and solver from the same state."""
        snapshot = self.simulation.save()
        self.simulation.close()
        self.substeps = max(int(self.params.substeps), 1)
        self.simulation = self._make_simulation()
        for springs in self._springs:
            springs.attach(self.simulation)
            self.simulation.add_stage(springs)
        self.simulation.restore(snapshot)

    def add_springs(self, springs: Springs) -> None:
        """Add springs to every solver step."""
        self._springs.append(springs)
        self.simulation.add_stage(springs)

    def mark_kinematics(self, articulation: int, world: int) -> None:
        """Mark the body poses of an articulation as outdated, and unfreeze its world."""
        self.any_moved = True
        frozen = self.simulation.solver.world_frozen
        if self.device.is_cpu:
            self.moved.numpy()[articulation] = True
            frozen.numpy()[world] = 0
        else:
            self.moved[articulation : articulation + 1].fill_(True)
            frozen[world : world + 1].fill_(0)

    def update_body_poses(self) -> None:
        """Recompute the body poses of the moved articulations from their joint coordinates."""
        if not self.any_moved:
            return
        eval_fk_of_articulations(self.model, self._moved_worlds(), self.simulation.state, self.moved)
        self.moved.zero_()
        self.any_moved = False

    def _moved_worlds(self) -> wp.array:
        """Return a list with the worlds of moved articulations, and -1 in all other entries.

        On a GPU it has all worlds, since reading the marks would wait for the device.
        """
        if not self.device.is_cpu:
            return self.model.structure.worlds
        worlds = self._articulation_world[self.moved.numpy()]
        listed = self._world_list.numpy()
        listed.fill(-1)
        listed[worlds] = worlds
        return self._world_list

    def apply_changes(self) -> None:
        """Update everything derived from properties that were set."""
        if self.changed:
            flags, self.changed = self.changed, ModelFlags(0)
            if flags & ModelFlags.SHAPE_PROPERTIES and not self.has_friction_moments:
                if has_friction_moments(self.model):  # the solver has no kernels for them so far
                    self._rebuild_simulation()
            # Poses of bodies are computed here, for the actors concerned only.
            self.simulation.solver.notify_model_changed(flags)
        self.update_body_poses()

    def step(self) -> None:
        """Make the solver steps of one `simulate`."""
        dt = self.params.dt
        self.apply_changes()
        for action in self.before_step:
            action(dt)
        if self._needs_substeps:
            self._switch_sums(on=False)
            self._step_by_substeps(dt)
        else:
            self._switch_sums(on=self.has_passive_force or self.has_applied)
            self.simulation.step(self.substeps)
        for action in self.after_step:
            action(dt)
        if self.has_applied:
            self.applied_force.zero_()
            self.applied_torque.zero_()
            self.has_applied = False
        if self.has_effort:
            self.simulation.control.joint_act.zero_()
            self.has_effort = False

    @property
    def _needs_substeps(self) -> bool:
        """Whether substeps need calls between them that a recorded step cannot make."""
        return bool(self.ball_rows.size or self._springs or self.before_substep or self.after_substep)

    def _step_by_substeps(self, dt: float) -> None:
        """Make the solver steps of one `simulate` of duration `dt` [s], one by one."""
        for number in range(self.substeps):
            if self.has_passive_force or self.has_applied:
                state = self.simulation.state
                self._launch_body_forces(state, self.model.structure.worlds, self._always)
                self.has_body_force = True
            elif self.has_body_force:
                self._clear_body_forces()
            for action in self.before_substep:
                action(dt / self.substeps)
            if self.ball_rows.size:
                self._drive_balls()
            self.simulation.step()
            for report in self.after_substep:
                report(number)

    def _drive_balls(self) -> None:
        state, control = self.simulation.state, self.simulation.control
        launch_kernel(
            drive_ball,
            dim=self.ball_rows.size,
            inputs=[
                self.ball_rows,
                self.dofs,
                self.model.joint_target_kd,
                state.joint_q,
                control.joint_target_pos,
            ],
            outputs=[control.joint_target_vel],
            device=self.device,
        )

    def _switch_sums(self, *, on: bool) -> None:
        """Set whether recorded steps write external forces; otherwise earlier forces are cleared."""
        if on != self._sums_in_step:
            self.sums_in_step.fill_(on)
            self._sums_in_step = on
        if on:
            self.has_body_force = True
        elif self.has_body_force and not self._needs_substeps:
            self._clear_body_forces()

    def _clear_body_forces(self) -> None:
        self.simulation.state.body_f.zero_()
        self.has_body_force = False

    def _launch_body_forces(self, state: State, worlds: wp.array, enabled: wp.array) -> None:
        """Write the external forces of some worlds at a state, if `enabled` says so. Only launches."""
        launch_kernel(
            sum_body_forces,
            dim=worlds.size,
            inputs=[
                worlds,
                self.model.topology,
                enabled,
                self.body_row,
                self.bodies,
                self.model.gravity,
                gravity_compensation(self.model),
                self.model.body_mass,
                self.model.body_inertia,
                state.body_q,
                state.body_qd,
                self.applied_force,
                self.applied_torque,
                self.params.dt / self.substeps,
            ],
            outputs=[state.body_f],
            device=self.device,
        )

    def _find_passive_force(self) -> bool:
        """Return whether a body has damping, a speed limit, or no gravity or gyroscopic force."""
        bodies = self.bodies
        return bool(
            bodies.flags.numpy().any()
            or any(rate.numpy().any() for rate in (bodies.linear_damping, bodies.angular_damping))
            or any(np.isfinite(limit.numpy()).any() for limit in (bodies.linear_limit, bodies.angular_limit))
        )

    def set_body_flags(self, start: int, flags: np.ndarray) -> None:
        """Write the flags of bodies, from a row on."""
        self._write_table(self.bodies.flags, start, flags)
        self.has_passive_force = self.has_passive_force or bool(np.any(flags))

    def set_drive_modes(self, start: int, modes: np.ndarray, stiffness: np.ndarray) -> None:
        """Write drive modes and stiffnesses, from a row on; clear efforts where drives no longer take any."""
        rows = slice(start, start + len(modes))
        if len(stiffness) and self.device.is_cpu:
            self.dofs.stiffness.numpy()[rows] = stiffness
        elif len(stiffness):
            self.dofs.stiffness[rows].assign(np.ascontiguousarray(stiffness))
        self._write_table(self.dofs.drive_mode, start, modes)
        idle = modes != DofDriveMode.DOF_MODE_EFFORT
        if self.has_effort and idle.any():
            act = self.simulation.control.joint_act
            values = act.numpy()
            values[self.dofs.dof.numpy()[rows][idle]] = 0.0
            if not self.device.is_cpu:
                act.assign(values)

    def _write_table(self, table: wp.array, start: int, values: np.ndarray) -> None:
        values = np.asarray(values, dtype=np.int32)
        if not len(values):
            return
        if self.device.is_cpu:
            table.numpy()[start : start + len(values)] = values
        else:
            table[start : start + len(values)].assign(values)

    def close(self) -> None:
        """End the threads."""
        self.simulation.close()
