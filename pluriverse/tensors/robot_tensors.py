"""RobotTensors: arrays of the robots of a simulation that a policy reads and writes."""

import weakref
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.model import State
from pluriverse.selection.patterns import Patterns
from pluriverse.stages import StagedSimulation, StepStage, stage_driven_dofs
from pluriverse.tensors.commands import CommandArrays, launch_commands
from pluriverse.tensors.contact import (
    ContactTimes,
    FootContacts,
    launch_add_forces,
    launch_clear,
    launch_count_times,
)
from pluriverse.tensors.efforts import launch_add_efforts
from pluriverse.tensors.ground import Ground
from pluriverse.tensors.limits import Limits
from pluriverse.tensors.read import RobotReadings, launch_read
from pluriverse.tensors.table import RobotLayout
from pluriverse.types import Axis

# Default contact force [N] from which a body counts as touching: far below the load of a leg, far above the
# rounding of an opening contact.
CONTACT_THRESHOLD = 1.0
_TIMES = ("contact_times", "air_times", "last_contact_times", "last_air_times")


class RobotTensors:
    """Named arrays `[env, ...]` of the robots of a simulation, one row per robot found, sorted by world.

    Arrays keep their addresses. Kernels recorded in the step fill them at the end of every step and reset, so
    reading costs nothing and references stay valid; `refresh` updates them after a write to
    `simulation.state`. Worlds and robots may differ: rows are padded with zeros (`joint_mask`, `body_mask`,
    `foot_mask`), and a column may mean another joint or body in each row (`joint_names_of`, `body_names_of`,
    `foot_names_of`). What begins with `foot_` has a column per foot, whichever bodies these are.

    The attributes are Warp arrays. `numpy`, `torch` and `jax` hold the same memory as arrays of these
    libraries, without copies.

    Args:
        simulation: The `Simulation` of the robots.
        pattern: Labels of articulations: names, wildcards, regular expressions or indices.
        joints: Joints to keep (default: all). Those of floating bases are never among them.
        bodies: Bodies to keep (default: all); feet are kept in any case.
        feet: Bodies that are feet; by default the last body with collision shapes of each moving chain.
        worlds: Worlds to include; all if None.
        contact_threshold: Force from which a body counts as touching something [N].
        dof_count: Columns of arrays [env, dof]; as many as the robot with the most has if None. Robots with
            fewer are padded, so that parts of a batch of different robots have the columns of the whole.
        body_count: Columns of arrays [env, body], in the same way.
        foot_count: Columns of arrays [env, foot], in the same way.
        is_part: Whether the worlds are a part of a batch, in which a pattern may find nothing, as long as
            some robot is found. This is a `MissingEntityWarning` then, and an error otherwise.

    Raises:
        KeyError: If a pattern finds nothing, unless `is_part`.
        ValueError: If a robot has more than one of the counts of columns, `contact_threshold` is negative or
            no number, or the model's up axis is not z.
    """

    joint_positions: wp.array2d[float]
    """Positions [m or rad], shape [env, dof]; of a ball joint the components of its rotation vector."""
    joint_velocities: wp.array2d[float]
    """Velocities [m/s or rad/s], shape [env, dof]."""
    joint_torques: wp.array2d[float]
    """Efforts of drives in the last step, as means over its solver steps [N or N·m], shape [env, dof]. They
    exclude friction, damping and limits of joints, and `joint_f` of driven ones."""
    joint_position_targets: wp.array2d[float]
    """Position targets of drives [m or rad], shape [env, dof]. Write to it; the next step uses it."""
    joint_velocity_targets: wp.array2d[float]
    """Velocity targets of drives [m/s or rad/s], shape [env, dof]. Write to it; the next step uses it."""
    joint_efforts: wp.array2d[float]
    """Efforts added to those of the drives and limited with them [N or N·m], shape [env, dof]. Write to it;
    the next step uses it. Those of joints without a drive are clamped to the effort limit here."""
    joint_lower: wp.array2d[float]
    """Lower limits of positions [m or rad], shape [env, dof]."""
    joint_upper: wp.array2d[float]
    """Upper limits of positions [m or rad], shape [env, dof]."""
    joint_effort_limits: wp.array2d[float]
    """Largest efforts of drives [N or N·m], shape [env, dof]; `inf` where nothing limits them, as in MJCF
    without `forcerange` and `actuatorfrcrange`."""
    joint_velocity_limits: wp.array2d[float]
    """Largest velocities [m/s or rad/s], shape [env, dof]."""
    default_joint_positions: wp.array2d[float]
    """Initial positions of the model [m or rad], shape [env, dof]."""
    joint_mask: wp.array2d[bool]
    """Which entries are degrees of freedom, not padding, shape [env, dof]."""
    base_positions: wp.array[wp.vec3]
    """Position of the origin of the base [m], world axes, shape [env]. The base is the first body, or the
    world itself where the first joint, not a fixed one, holds the robot to it."""
    base_quaternions: wp.array[wp.quat]
    """Orientation of the base in the world, xyzw, shape [env]."""
    base_linear_velocities: wp.array[wp.vec3]
    """Velocity of the origin of the base [m/s], axes of the base, shape [env]."""
    base_angular_velocities: wp.array[wp.vec3]
    """Angular velocity of the base [rad/s], axes of the base, shape [env]."""
    projected_gravity: wp.array[wp.vec3]
    """Direction of gravity, of length 1, axes of the base, shape [env]; zero without gravity."""
    body_positions: wp.array2d[wp.vec3]
    """Positions of the origins of bodies [m], world axes, shape [env, body]."""
    body_quaternions: wp.array2d[wp.quat]
    """Orientations of bodies in the world, xyzw, shape [env, body]."""
    body_linear_velocities: wp.array2d[wp.vec3]
    """Velocities of the origins of bodies [m/s], world axes, shape [env, body]."""
    body_angular_velocities: wp.array2d[wp.vec3]
    """Angular velocities of bodies [rad/s], world axes, shape [env, body]."""
    contact_forces: wp.array2d[wp.vec3]
    """Sum of the contact forces on each body in the last step, as mean over its solver steps [N], world axes,
    shape [env, body]."""
    contact_times: wp.array2d[float]
    """Time for which each body has been in contact [s], 0 if it is not, shape [env, body]."""
    air_times: wp.array2d[float]
    """Time for which each body has been without contact [s], 0 if it is in contact, shape [env, body]."""
    last_contact_times: wp.array2d[float]
    """Length of the last contact that has ended [s], shape [env, body]."""
    last_air_times: wp.array2d[float]
    """Length of the last flight that has ended [s], shape [env, body]."""
    body_mask: wp.array2d[bool]
    """Which entries are bodies, not padding, shape [env, body]."""
    foot_positions: wp.array2d[wp.vec3]
    """Lowest point of each foot [m], world axes, shape [env, foot]. Spheres, capsules, boxes, cylinders and
    ellipsoids are exact; of meshes it is the lowest corner of the bounding box of the shape."""
    foot_velocities: wp.array2d[wp.vec3]
    """Velocity of the foot at that point [m/s], world axes, shape [env, foot]."""
    foot_heights: wp.array2d[float]
    """Height of that point over the ground below it [m], shape [env, foot]. Planes, terrain, and all other
    colliding shapes are ground, but not the robots themselves. Slightly negative if a foot sinks in; 100 if
    there is no ground within 100 m."""
    base_heights: wp.array[float]
    """Height of the origin of the base over the ground below it [m], shape [env], as `foot_heights`."""
    foot_contact_forces: wp.array2d[wp.vec3]
    """`contact_forces` of the feet [N], world axes, shape [env, foot]."""
    foot_contact_times: wp.array2d[float]
    """`contact_times` of the feet [s], shape [env, foot]. Padding neither touches nor flies: all its times
    are 0."""
    foot_air_times: wp.array2d[float]
    """`air_times` of the feet [s], shape [env, foot]."""
    foot_last_contact_times: wp.array2d[float]
    """`last_contact_times` of the feet [s], shape [env, foot]."""
    foot_last_air_times: wp.array2d[float]
    """`last_air_times` of the feet [s], shape [env, foot]."""
    foot_bodies: wp.array2d[int]
    """Index of each foot among the bodies of its robot, -1 for padding, shape [env, foot]."""
    foot_mask: wp.array2d[bool]
    """Which entries are feet, not padding, shape [env, foot]."""

    def __init__(
        self,
        simulation: StagedSimulation,
        pattern: Patterns,
        *,
        joints: Patterns | None = None,
        bodies: Patterns | None = None,
        feet: Patterns | None = None,
        worlds: Patterns | None = None,
        contact_threshold: float = CONTACT_THRESHOLD,
        dof_count: int | None = None,
        body_count: int | None = None,
        foot_count: int | None = None,
        is_part: bool = False,
    ) -> None:
        if not contact_threshold >= 0.0:
            raise ValueError(
                f"RobotTensors: contact_threshold is {contact_threshold} N, but must be a number >= 0."
            )
        model = simulation.model
        if model.up_axis is not Axis.Z:
            raise ValueError(
                f"RobotTensors: the model has up_axis {model.up_axis.name}, but heights and lowest points of "
                "feet are measured along z. Build it with ModelBuilder(up_axis='Z'); importers turn files."
            )
        layout = RobotLayout(
            model,
            pattern,
            joints=joints,
            bodies=bodies,
            feet=feet,
            worlds=worlds,
            dof_count=dof_count,
            body_count=body_count,
            foot_count=foot_count,
            is_part=is_part,
        )
        self._simulation, self._layout = simulation, layout
        self._libraries: dict[str, SimpleNamespace] = {}
        count, device = len(layout), model.device
        dof_width, body_width, foot_width = layout.dofs.width, layout.bodies.width, layout.feet.width

        def zeros(*shape: int, dtype: Any = float) -> Any:
            return wp.zeros(shape, dtype=dtype, device=device)

        for name in (
            "joint_positions",
            "joint_velocities",
            "joint_torques",
            "joint_position_targets",
            "joint_velocity_targets",
            "joint_efforts",
            "joint_lower",
            "joint_upper",
            "joint_effort_limits",
            "joint_velocity_limits",
            "default_joint_positions",
        ):
            setattr(self, name, zeros(count, dof_width))
        for name in _TIMES:
            setattr(self, name, zeros(count, body_width))
            setattr(self, f"foot_{name}", zeros(count, foot_width))
        for name, dtype in (
            ("base_positions", wp.vec3),
            ("base_quaternions", wp.quat),
            ("base_linear_velocities", wp.vec3),
            ("base_angular_velocities", wp.vec3),
            ("projected_gravity", wp.vec3),
        ):
            setattr(self, name, zeros(count, dtype=dtype))
        for name, dtype in (
            ("body_positions", wp.vec3),
            ("body_quaternions", wp.quat),
            ("body_linear_velocities", wp.vec3),
            ("body_angular_velocities", wp.vec3),
            ("contact_forces", wp.vec3),
        ):
            setattr(self, name, zeros(count, body_width, dtype=dtype))
        self.foot_positions = zeros(count, foot_width, dtype=wp.vec3)
        self.foot_velocities = zeros(count, foot_width, dtype=wp.vec3)
        self.foot_heights = zeros(count, foot_width)
        self.foot_contact_forces = zeros(count, foot_width, dtype=wp.vec3)
        self.base_heights = zeros(count)
        self.joint_mask = _truths(layout.dofs.mask(), device)
        self.body_mask = _truths(layout.bodies.mask(), device)
        self.foot_mask = _truths(layout.feet.mask(), device)
        foot_bodies: Any = wp.array(layout.foot_bodies.astype(np.int32), dtype=wp.int32, device=device)
        self.foot_bodies = foot_bodies
        self._stage = _TensorStage(self, float(contact_threshold))
        simulation.add_stage(self._stage)
        for name in _TIMES:
            simulation.add_snapshot_array(f"robot tensors {name}", getattr(self, name))
        self.refresh()

    def __len__(self) -> int:
        """Number of robots."""
        return len(self._layout)

    def __repr__(self) -> str:
        layout = self._layout
        return (
            f"RobotTensors({len(layout)} robots, {layout.dofs.width} degrees of freedom, "
            f"{layout.bodies.width} bodies, {layout.feet.width} feet)"
        )

    @property
    def simulation(self) -> StagedSimulation:
        """The simulation of the robots."""
        return self._simulation

    @property
    def worlds(self) -> np.ndarray:
        """World of each robot, on the host, shape [env]."""
        return self._layout.world

    @property
    def labels(self) -> list[str]:
        """Label of each robot, shape [env]."""
        return self._layout.labels

    @property
    def joint_names(self) -> list[str]:
        """Name of each degree of freedom, that of its joint.

        Raises:
            ValueError: If a column has another name in another row; see `joint_names_of`.
        """
        return self._column_names("joint_names", self._layout.dof_names, self._layout.dofs.longest)

    @property
    def body_names(self) -> list[str]:
        """Name of each body.

        Raises:
            ValueError: If a column has another name in another row; see `body_names_of`.
        """
        return self._column_names("body_names", self._layout.body_names, self._layout.bodies.longest)

    @property
    def foot_names(self) -> list[str]:
        """Name of each foot.

        Raises:
            ValueError: If a column has another name in another row; see `foot_names_of`.
        """
        return self._column_names("foot_names", self._layout.foot_names, self._layout.feet.longest)

    @property
    def feet(self) -> tuple[int, ...]:
        """Index of each foot among the bodies.

        Raises:
            ValueError: If robots have their feet in other places; see `foot_bodies`.
        """
        places = self._layout.foot_bodies
        differs = (places != places[0]).any(axis=1)
        if differs.any():
            row = int(np.argmax(differs))
            ours, others = ([place for place in places[each].tolist() if place >= 0] for each in (0, row))
            raise ValueError(
                f"RobotTensors.feet: the feet of {self._layout.robot_name(0)} are the bodies {ours}, but "
                f"those of {self._layout.robot_name(row)} the bodies {others}. Use the arrays that have a "
                "column per foot, such as foot_air_times and foot_contact_forces, or foot_bodies [env, foot]."
            )
        return tuple(place for place in places[0].tolist() if place >= 0)

    def joint_names_of(self, row: int) -> list[str]:
        """Return the name of each degree of freedom of one robot, without padding.

        Args:
            row: Row of the robot.

        Raises:
            IndexError: If there is no such row.
        """
        return self._names_of_row("joint_names_of", self._layout.dof_names, row)

    def body_names_of(self, row: int) -> list[str]:
        """Return the name of each body of one robot, without padding.

        Args:
            row: Row of the robot.

        Raises:
            IndexError: If there is no such row.
        """
        return self._names_of_row("body_names_of", self._layout.body_names, row)

    def foot_names_of(self, row: int) -> list[str]:
        """Return the name of each foot of one robot, without padding.

        Args:
            row: Row of the robot.

        Raises:
            IndexError: If there is no such row.
        """
        return self._names_of_row("foot_names_of", self._layout.foot_names, row)

    @property
    def is_floating(self) -> np.ndarray:
        """Whether the base of each robot is free, on the host, shape [env]."""
        return self._layout.is_floating

    @property
    def numpy(self) -> Any:
        """All arrays by their names, as NumPy arrays in the same memory.

        Raises:
            ValueError: If the model is on a GPU.
        """
        if not self._simulation.model.device.is_cpu:
            raise ValueError(
                f"RobotTensors.numpy: the model is on {self._simulation.model.device}, which NumPy cannot "
                "see. Use torch or jax, or array.numpy() for a copy."
            )
        return self._library("numpy", lambda array: array.numpy())

    @property
    def torch(self) -> Any:
        """All arrays by their names, as PyTorch tensors in the same memory.

        Raises:
            ImportError: If PyTorch is not installed.
        """
        return self._library("torch", wp.to_torch)

    @property
    def jax(self) -> Any:
        """All arrays by their names, as JAX arrays in the same memory.

        JAX treats arrays as constant. So do not write to these, fetch them again in every step, and set
        commands with `robots.joint_position_targets.assign(...)`.

        Raises:
            ImportError: If JAX is not installed.
        """
        self._libraries.pop("jax", None)
        return self._library("jax", wp.to_jax)

    def refresh(self) -> None:
        """Update everything except sums over a step from `simulation.state` and the model.

        Steps and resets do so themselves, resets also for limits. Call it after writes to the state, to
        limits in the model outside resets, to the poses of global ground, and to the control if the next
        command repeats the previous one.
        """
        stage, model = self._stage, self._simulation.model
        stage.prepare()
        stage.drives_changed()
        stage.read(model.worlds, stage.everywhere, self._simulation.state)
        stage.command(model.worlds, stage.everywhere)
        stage.limits.read_defaults(model.worlds, stage.everywhere, model.joint_q)

    def _column_names(self, what: str, names: list[list[str]], longest: int) -> list[str]:
        """Return the names of the longest row, if those of all rows begin in the same way."""
        ours = names[longest]
        for row, theirs in enumerate(names):
            if theirs != ours[: len(theirs)]:
                column = next(k for k, name in enumerate(theirs) if name != ours[k])
                raise ValueError(
                    f"RobotTensors.{what}: column {column} is '{ours[column]}' of "
                    f"{self._layout.robot_name(longest)}, but '{theirs[column]}' of "
                    f"{self._layout.robot_name(row)}. Use {what}_of(row) for the names of one row, or make "
                    "tensors of robots of one kind each."
                )
        return list(ours)

    def _names_of_row(self, what: str, names: list[list[str]], row: int) -> list[str]:
        if not -len(names) <= row < len(names):
            raise IndexError(f"RobotTensors.{what}: row is {row}, but there are {len(names)} robots.")
        return list(names[row])

    def _library(self, name: str, convert: Any) -> SimpleNamespace:
        if name not in self._libraries:
            arrays = {key: value for key, value in vars(self).items() if isinstance(value, wp.array)}
            self._libraries[name] = SimpleNamespace(
                **{key: convert(value) for key, value in arrays.items() if not key.startswith("_")}
            )
        return self._libraries[name]


def _truths(values: np.ndarray, device: Any) -> Any:
    return wp.array(values, dtype=wp.bool, device=device)


class _TensorStage(StepStage):
    """Fills the arrays of robot tensors in the recorded step."""

    def __init__(self, tensors: RobotTensors, threshold: float) -> None:
        simulation = tensors.simulation
        # The simulation holds its stages: weakly, so that no cycle keeps the memory of both.
        self._model, self._simulation = simulation.model, weakref.proxy(simulation)
        self._threshold = threshold
        self._table = tensors._layout.to_device()
        self._readings: Any = RobotReadings()
        for name in RobotReadings.__annotations__:
            setattr(self._readings, name, getattr(tensors, name))
        self._commands, self._previous_commands = CommandArrays(), CommandArrays()
        for name, array in (
            ("position", tensors.joint_position_targets),
            ("velocity", tensors.joint_velocity_targets),
            ("effort", tensors.joint_efforts),
        ):
            setattr(self._commands, name, array)
            setattr(self._previous_commands, name, wp.zeros_like(array))
        self._times = ContactTimes()
        self._times.contact, self._times.air = tensors.contact_times, tensors.air_times
        self._times.last_contact, self._times.last_air = (
            tensors.last_contact_times,
            tensors.last_air_times,
        )
        self._feet: Any = FootContacts()
        self._feet.forces, feet_times = tensors.foot_contact_forces, ContactTimes()
        feet_times.contact, feet_times.air = tensors.foot_contact_times, tensors.foot_air_times
        feet_times.last_contact, feet_times.last_air = (
            tensors.foot_last_contact_times,
            tensors.foot_last_air_times,
        )
        self._feet.times = feet_times
        self.limits = Limits(self._model, self._table, tensors._layout.dofs.values, tensors)
        self._stage_driven: Any = wp.zeros(
            self._model.joint_dof_count, dtype=wp.int32, device=self._model.device
        )
        self._torques, self._forces = tensors.joint_torques, tensors.contact_forces
        self._heights = tensors.base_heights, tensors.foot_heights
        self._ground = Ground(self._model, tensors._layout.robot_bodies)
        self._weight = 1.0 / simulation.decimation
        self.everywhere: wp.array[bool] = wp.zeros(0, dtype=wp.bool, device=self._model.device)

    def prepare(self) -> None:
        """Place the ground that all worlds share."""
        self._ground.prepare()

    def drives_changed(self) -> None:
        """Look which stages drive joints, and how strong all drives are."""
        self._stage_driven.assign(stage_driven_dofs(self._simulation))
        self.limits.find_stages(self._simulation)
        self.limits.read(self._model.worlds, self.everywhere)

    def before_step(self, worlds: wp.array[int], state: State) -> None:
        """Take commands in, and begin sums anew."""
        self.command(worlds, self.everywhere)
        self._clear(worlds, self.everywhere, with_times=False, with_feet=False)

    def after_substep(self, worlds: wp.array[int], before: State, after: State) -> None:
        """Read the efforts, when all stages have written theirs, and contact forces."""
        self._add_efforts(worlds, before if self._simulation.solver.has_explicit_drives else after)
        contacts = self._simulation.contacts
        launch_add_forces(self._model, worlds, self._table, contacts, self._weight, self._forces)

    def after_step(self, worlds: wp.array[int], state: State) -> None:
        """Read the state, and count times."""
        dt = self._simulation.dt * self._simulation.decimation
        launch_count_times(
            self._model,
            worlds,
            self._table,
            self._forces,
            self._threshold,
            dt,
            self._times,
            self._feet,
        )
        self.read(worlds, self.everywhere, state)

    def after_reset(self, worlds: wp.array[int], mask: wp.array[bool], state: State) -> None:
        """Read the state and limits, and restart sums and times."""
        self._clear(worlds, mask, with_times=True, with_feet=True)
        self.limits.read(worlds, mask)
        self.read(worlds, mask, state)

    def after_reassign(
        self, worlds: wp.array[int], mask: wp.array[bool], defaults: Mapping[str, wp.array]
    ) -> None:
        """Read where the joints of other variants begin."""
        self.limits.read_defaults(worlds, mask, defaults.get("joint_q", self._model.joint_q))

    def after_restore(self, worlds: wp.array[int], state: State) -> None:
        """Read the state and limits; times have been restored."""
        self.limits.read(worlds, self.everywhere)
        self._clear(worlds, self.everywhere, with_times=False, with_feet=True)
        self.command(worlds, self.everywhere)
        self.read(worlds, self.everywhere, state)

    def read(self, worlds: wp.array[int], mask: wp.array[bool], state: State) -> None:
        """Read the state of worlds."""
        launch_read(self._model, worlds, mask, self._table, state, self._readings)
        self._ground.measure(worlds, mask, self._table, state, self._readings, *self._heights)

    def command(self, worlds: wp.array[int], mask: wp.array[bool]) -> None:
        """Copy changed commands to the control, and changes of the control to the commands."""
        launch_commands(
            self._model,
            worlds,
            mask,
            self._table,
            self._commands,
            self._previous_commands,
            self._stage_driven,
            self._simulation.control,
        )

    def _add_efforts(self, worlds: wp.array[int], state: State) -> None:
        launch_add_efforts(
            self._model,
            worlds,
            self._table,
            self._simulation.control,
            self._stage_driven,
            state,
            self._weight,
            self._torques,
        )

    def _clear(
        self, worlds: wp.array[int], mask: wp.array[bool], *, with_times: bool, with_feet: bool
    ) -> None:
        launch_clear(
            self._model,
            worlds,
            mask,
            self._table,
            self._torques,
            self._forces,
            self._times,
            self._feet,
            with_times=with_times,
            with_feet=with_feet,
        )
