"""JointActuators: PD drives with the delay, limits, motor curve and lag of real actuators."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import warp as wp

from pluriverse.actuators.exert import ActuatorArrays, begin_worlds, exert_worlds
from pluriverse.actuators.held_drives import HeldDrives
from pluriverse.actuators.selection import select_dofs
from pluriverse.model import State
from pluriverse.model.arguments import check_seeding
from pluriverse.model.drive_effort import DRIVE_ARRAYS
from pluriverse.selection.patterns import Patterns
from pluriverse.simulation import Simulation, StepStage

# Longest delay in solver steps.
DELAY_STEPS_MAX = 4096


class JointActuators(StepStage):
    """Actuators of joints, evaluated in every solver step of the recorded step.

    Commands stay in place: `joint_target_pos`, `joint_target_vel` and `joint_act` of
    `Simulation.control`, or the targets of `Simulation.tensors`. The drives of the model are switched off for
    the joints concerned (gains and effort limits of the model 0), and the actuators write `Control.joint_f`
    of these. Unlike a drive of the model, which solvers integrate implicitly, an actuator uses the state
    before the step, like real electronics; stiff gains need short steps.

    The parameters are Warp arrays with an entry per actuator, sorted by world; write to them at any time, for
    example different gains per world. Their initial values are given here: a number, one per actuator (shape
    [actuator]), or a mapping from patterns of joint labels to numbers.

    Args:
        simulation: The simulation.
        joints: Labels or patterns of the joints.
        stiffness: Gain of the position error [N·m/rad or N/m]; that of the model's drives if None.
        damping: Gain of the velocity error [N·m·s/rad or N·s/m]; that of the model's drives if None.
        effort_limit: Largest effort [N·m or N]; that of the model's drives if None.
        velocity_limit: Speed above which there is no effort in the direction of motion [rad/s or m/s]; no
            limit if None.
        stall_effort: Effort of the motor at standstill [N·m or N]; with `no_load_speed` it defines the
            torque-speed line.
        no_load_speed: Speed at which the motor exerts no effort [rad/s or m/s].
        curve: Points (speed, largest effort) of another torque-speed curve, from speed 0 on.
        time_constant: Of a first-order lag of the effort [s], 0 for none.
        delay: Delay of commands [s]: one value, or a tuple of a lowest and a highest one, between which every
            actuator draws one at each reset of its world.
        seed: Seed of the delays, 0 to 2**31 - 1, until `Simulation.set_seed` gives another, as an environment
            does; that of the simulation if None.
        identities: Identity on which the delays of each world depend, shape [world]; that of the simulation,
            by default the index, if None.

    Raises:
        KeyError: If there is no such joint.
        ValueError: If a value is out of range, or joints have actuators already.
    """

    dof: np.ndarray
    """Degree of freedom of each actuator, on the host, shape [actuator]."""
    world: np.ndarray
    """World of each actuator, on the host, shape [actuator]."""
    label: list[str]
    """Label of the joint of each actuator."""

    def __init__(
        self,
        simulation: Simulation,
        joints: Patterns = "*",
        *,
        stiffness: Any = None,
        damping: Any = None,
        effort_limit: Any = None,
        velocity_limit: Any = None,
        stall_effort: Any = None,
        no_load_speed: Any = None,
        curve: Sequence[tuple[float, float]] | None = None,
        time_constant: Any = 0.0,
        delay: Any = 0.0,
        seed: int | None = None,
        identities: Any = None,
    ):
        what = type(self).__name__
        self._simulation, self._model = simulation, simulation.model
        model, device = self._model, self._model.device
        selected = select_dofs(model, joints, what)
        self.dof, self.world, self.label = selected.dof, selected.world, selected.label
        _claim(simulation, self.dof, self.label, what)
        if (stall_effort is None) != (no_load_speed is None):
            raise ValueError(f"{what}: stall_effort and no_load_speed belong together; give both or none.")
        arrays: Any = ActuatorArrays()
        arrays.start = wp.array(selected.start, dtype=wp.int32, device=device)
        arrays.dof = wp.array(selected.dof, dtype=wp.int32, device=device)
        arrays.coord = wp.array(selected.coord, dtype=wp.int32, device=device)
        low, high = delay if isinstance(delay, tuple) and len(delay) == 2 else (delay, delay)
        own = {
            "stiffness": (stiffness, model.joint_target_ke.numpy()[self.dof], 0.0, False),
            "damping": (damping, model.joint_target_kd.numpy()[self.dof], 0.0, False),
            "effort_limit": (effort_limit, model.joint_effort_limit.numpy()[self.dof], 0.0, True),
            "velocity_limit": (velocity_limit, np.inf, 0.0, True),
            "stall_effort": (stall_effort, np.inf, 0.0, True),
            "no_load_speed": (no_load_speed, 1.0, 1e-9, False),
            "time_constant": (time_constant, 0.0, 0.0, False),
            "delay_low": (low, 0.0, 0.0, False),
            "delay_high": (high, 0.0, 0.0, False),
        }
        for name, (value, default, least, may_be_endless) in own.items():
            values = self._values(name, default if value is None else value, least, may_be_endless)
            setattr(arrays, name, wp.array(values, dtype=wp.float32, device=device))
        if (arrays.delay_low.numpy() > arrays.delay_high.numpy()).any():
            raise ValueError(f"{what}: the lowest delay is above the highest one. Pass (low, high).")
        arrays.delay = wp.clone(arrays.delay_low)
        arrays.target_lower, arrays.target_upper = model.joint_target_lower, model.joint_target_upper
        points = _check_curve(curve, what)
        arrays.curve_speed = wp.array(points[:, 0], dtype=wp.float32, device=device)
        arrays.curve_effort = wp.array(points[:, 1], dtype=wp.float32, device=device)
        arrays.effort = wp.zeros(len(self.dof), dtype=wp.float32, device=device)
        arrays.history = self._make_history(float(arrays.delay_high.numpy().max(initial=0.0)))
        for name in ("sample", "episode"):
            setattr(arrays, name, wp.zeros(model.world_count, dtype=wp.int32, device=device))
        arrays.identity = wp.zeros(model.world_count, dtype=wp.int32, device=device)
        arrays.seed = wp.zeros(1, dtype=wp.int32, device=device)
        arrays.dt = simulation.dt
        self._arrays = arrays
        default_seed, default_identities = simulation.seeding
        self.set_seed(
            default_seed if seed is None else seed,
            identities=default_identities if identities is None else identities,
        )
        given = dict(zip(DRIVE_ARRAYS, (stiffness, damping, effort_limit), strict=True))
        followers = dict(zip(DRIVE_ARRAYS, (self.stiffness, self.damping, self.effort_limit), strict=True))
        followers = {name: array for name, array in followers.items() if given[name] is None}
        self._drives = HeldDrives(simulation, self.dof, followers)
        for name in (*own, "effort", "history", "delay", "sample", "episode"):
            if getattr(arrays, name).size:
                simulation.add_snapshot_array(f"actuators {name}", getattr(arrays, name))
        everywhere: wp.array = wp.zeros(0, dtype=wp.bool, device=device)
        begin_worlds(model.worlds, everywhere, arrays, device)
        simulation.add_stage(self)

    @property
    def driven_dofs(self) -> np.ndarray:
        """Degrees of freedom that it drives, on the host."""
        return self.dof

    @property
    def drive_parameters(self) -> dict[str, wp.array]:
        """Gains and effort limits, which act in place of those of the model's drives."""
        return dict(zip(DRIVE_ARRAYS, (self.stiffness, self.damping, self.effort_limit), strict=True))

    def drive_default(self, name: str) -> wp.array:
        """Return what draws of a parameter are relative to; it follows variants as the parameter does."""
        default = super().drive_default(name)
        self._drives.follow(name, default)
        return default

    def mark_drives(self) -> None:
        """Mark the drives of the model, before variants write theirs."""
        self._drives.mark()

    def take_drives(self) -> None:
        """Take over what variants wrote, where this has the values of the model, and hold it off."""
        self._drives.take()

    @property
    def held_drives(self) -> Mapping[str, wp.array]:
        """Drives of the model, which act again after `remove`."""
        return self._drives.held

    def hold_drives(self) -> None:
        """Hold off the drives that a snapshot has restored; gains and limits here stay."""
        self._drives.hold()

    @property
    def stiffness(self) -> wp.array:
        """Gain of the position error [N·m/rad or N/m], shape [actuator]."""
        return self._arrays.stiffness

    @property
    def damping(self) -> wp.array:
        """Gain of the velocity error [N·m·s/rad or N·s/m], shape [actuator]."""
        return self._arrays.damping

    @property
    def effort_limit(self) -> wp.array:
        """Largest effort [N·m or N], shape [actuator]."""
        return self._arrays.effort_limit

    @property
    def velocity_limit(self) -> wp.array:
        """Speed from which there is no effort in the direction of motion [rad/s or m/s], shape [actuator]."""
        return self._arrays.velocity_limit

    @property
    def stall_effort(self) -> wp.array:
        """Effort of the motor at standstill [N·m or N], infinite for no motor, shape [actuator]."""
        return self._arrays.stall_effort

    @property
    def no_load_speed(self) -> wp.array:
        """Speed at which the motor exerts no effort [rad/s or m/s], shape [actuator]."""
        return self._arrays.no_load_speed

    @property
    def time_constant(self) -> wp.array:
        """Time constant of the lag [s], 0 for none, shape [actuator]."""
        return self._arrays.time_constant

    @property
    def delay(self) -> wp.array:
        """Delay of commands [s], drawn at resets, shape [actuator]; at most the highest one given."""
        return self._arrays.delay

    @property
    def effort(self) -> wp.array:
        """Effort exerted in the last solver step [N·m or N], shape [actuator]."""
        return self._arrays.effort

    def remove(self) -> None:
        """Remove the actuators; the drives of the model act again."""
        self._drives.release()
        self._simulation.remove_stage(self)

    def set_seed(self, seed: int, *, identities: Any = None) -> None:
        """Set the seed of the delays, which are drawn with it at the next reset of each world.

        Args:
            seed: Seed, 0 to 2**31 - 1.
            identities: Identity on which the delays of each world depend, shape [world]; its index if None.

        Raises:
            ValueError: If a number is out of range, or there is not one identity per world.
        """
        number, selected = check_seeding(self._model, seed, identities, type(self).__name__)
        self._arrays.seed.fill_(number)
        self._arrays.identity.assign(selected)
        self._arrays.episode.zero_()

    def before_substep(self, worlds: wp.array[int], state: State) -> None:
        """Write the efforts for the solver step that follows."""
        exert_worlds(worlds, self._arrays, state, self._simulation.control, self._model.device)

    def after_reset(self, worlds: wp.array[int], mask: wp.array[bool], state: State) -> None:
        """Clear efforts and commands, and draw delays."""
        begin_worlds(worlds, mask, self._arrays, self._model.device)

    def _values(self, name: str, value: Any, least: float, may_be_endless: bool) -> np.ndarray:
        """Return a parameter per actuator."""
        count, what = len(self.dof), type(self).__name__
        if isinstance(value, dict):
            values = np.full(count, np.nan)
            for pattern, number in value.items():
                for index, label in enumerate(self.label):
                    if fnmatchcase(label, pattern) or fnmatchcase(label.rpartition("/")[2], pattern):
                        values[index] = number
            missing = np.flatnonzero(np.isnan(values))
            if missing.size:
                raise ValueError(
                    f"{what}: {name} has no value for joint '{self.label[int(missing[0])]}'. Add a pattern "
                    'that fits it; {"*": VALUE} first fits all.'
                )
        else:
            try:
                values = np.broadcast_to(np.asarray(value, dtype=np.float64), (count,))
            except (TypeError, ValueError):
                raise ValueError(
                    f"{what}: {name} is {value!r}, but it must be a number, {count} numbers (one per "
                    "actuator), or a mapping from joint labels to numbers."
                ) from None
        good = (values >= least) & (np.isfinite(values) | may_be_endless)
        if not good.all():
            index = int(np.argmin(good))
            raise ValueError(
                f"{what}: {name} of joint '{self.label[index]}' is {values[index]}, but it must be "
                f"{'' if may_be_endless else 'finite and '}{'> 0' if least > 0.0 else '>= 0'}."
            )
        return values.astype(np.float32)

    def _make_history(self, longest: float) -> wp.array:
        steps = int(np.floor(longest / self._simulation.dt + 0.5))
        if steps >= DELAY_STEPS_MAX:
            raise ValueError(
                f"{type(self).__name__}: a delay of {longest} s is {steps} solver steps of "
                f"{self._simulation.dt} s, more than {DELAY_STEPS_MAX - 1}. Choose a shorter one."
            )
        depth = steps + 1 if steps else 0
        return wp.zeros((depth, len(self.dof), 3), dtype=wp.float32, device=self._model.device)


def _claim(simulation: Simulation, dofs: np.ndarray, labels: list[str], what: str) -> None:
    """Raise if a joint has actuators already."""
    for stage in simulation.stages:
        shared = np.flatnonzero(np.isin(dofs, stage.driven_dofs))
        if shared.size:
            raise ValueError(
                f"{what}: joint '{labels[int(shared[0])]}' has an actuator of a {type(stage).__name__} "
                "already. Choose other joints, or call remove() of the other first."
            )


def _check_curve(curve: Sequence[tuple[float, float]] | None, what: str) -> np.ndarray:
    """Return the points of a torque-speed curve."""
    if curve is None:
        return np.zeros((0, 2))
    points = np.asarray(curve, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 2 or not np.isfinite(points).all():
        raise ValueError(f"{what}: curve is {curve!r}, but it must be two points (speed, effort) or more.")
    if points[0, 0] != 0.0 or (np.diff(points[:, 0]) <= 0.0).any() or (points[:, 1] < 0.0).any():
        raise ValueError(
            f"{what}: curve is {curve!r}, but its speeds must ascend from 0, and its efforts be >= 0."
        )
    return points
