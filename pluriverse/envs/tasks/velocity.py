"""Velocity: a legged robot follows velocity commands, on ground of several kinds at once."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from pluriverse.envs.dealing import deal_worlds
from pluriverse.envs.mirror import SPIN, VECTOR, Mirror, Reflection, mirrored_joints
from pluriverse.envs.robots import Robot, add_robot, get_robot
from pluriverse.envs.task import Task
from pluriverse.envs.tasks.velocity_terms import TERMS, VelocityTerms
from pluriverse.model_builder import ModelBuilder
from pluriverse.randomization import InitialState, Uniform, friction
from pluriverse.types import JointType

# Extent of uneven ground [m]: what a robot at the highest command covers in an episode lies inside.
TERRAIN_SIZE = (48.0, 48.0)
# Distance of the points of the ground [m].
TERRAIN_RESOLUTION = 0.2


class VelocityTask(Task):
    """A legged robot follows commanded velocities forwards, sideways and about the vertical.

    What it sees: velocity and angular velocity of the base in its own axes, the direction of gravity, the
    command, positions and velocities of joints, its last actions. Actions are offsets of the targets of its
    drives from the home pose, times `action_scale`.

    Args:
        robot: Name of a robot (`pluriverse.envs.robots.ROBOTS`), or a `Robot` of your own.
        terrains: Kinds of ground, dealt out in turn to the environments: `flat`, `rough`, `waves`, `slope`,
            `stairs`, `blocks`.
        asset_roots: Folders with files of robots.
        forward: Least and greatest commanded velocity forwards [m/s].
        sideways: Least and greatest commanded velocity to the left [m/s].
        turning: Least and greatest commanded angular velocity about the vertical [rad/s].
        command: Command of all environments (m/s, m/s, rad/s), instead of random ones.
        push: Greatest change of the horizontal velocity of the base by which robots are pushed about every
            `push_seconds` [m/s].
        weights: Weights of terms of the reward that differ from those of the class. That of torques must suit
            the weight of the robot: its term must be small compared with that of tracking.

    Raises:
        KeyError: If a robot, kind of ground or term of the reward is unknown.
        ValueError: If a range is not two numbers, the least first.
    """

    dt = 0.01
    decimation = 2
    episode_seconds = 20.0
    action_limit = 10.0
    action_scale = 0.25
    """Offset of targets per unit of action [rad]."""
    command_seconds = 10.0
    """Time after which another velocity is commanded [s]."""
    driven: tuple[str, ...] = ("*",)
    """Joints that actions move, by name or wildcard; the others stay at home."""
    push_seconds = 3.0
    """Mean time between two pushes [s]."""
    least_upright = 0.5
    """Cosine of the lean at which a robot counts as fallen."""
    tracking_width = 0.5
    """Error at which the reward of tracking has fallen to 1/e [m/s, rad/s]."""
    swing_seconds = 0.25
    """Flight of a foot that is neither rewarded nor punished [s]."""
    weights = {  # noqa: RUF012, constants of the class
        "tracking": 1.5,
        "turning": 0.75,
        "vertical velocity": -2.0,
        "roll and pitch rate": -0.05,
        "orientation": -1.0,
        "torques": -2.0e-4,
        "accelerations": -2.5e-7,
        "action rate": -0.01,
        "swing": 1.0,
        "pose": -0.05,
    }
    """Weight of each term of the reward per second; read when the first step is rewarded."""

    def __init__(
        self,
        robot: str | Robot = "puli",
        *,
        terrains: Sequence[str] = ("flat",),
        asset_roots: Sequence[str | Path] = (),
        forward: tuple[float, float] = (0.0, 1.0),
        sideways: tuple[float, float] = (-0.3, 0.3),
        turning: tuple[float, float] = (-0.6, 0.6),
        command: tuple[float, float, float] | None = None,
        push: float = 0.0,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        self.robot_name = robot
        self.robot_data = get_robot(robot) if isinstance(robot, str) else robot
        self.terrains = tuple(terrains)
        unknown = [kind for kind in self.terrains if kind not in TERRAINS]
        if unknown or not self.terrains:
            raise KeyError(
                f"VelocityTask: terrains are {list(self.terrains)}, but must be some of "
                f"{', '.join(TERRAINS)}."
            )
        self.asset_roots = tuple(asset_roots)
        self.ranges = tuple(
            _checked_range(name, bounds)
            for name, bounds in (("forward", forward), ("sideways", sideways), ("turning", turning))
        )
        self.command = command
        self.push = push
        unknown = sorted(set(weights or {}) - set(self.weights))
        if unknown:
            raise KeyError(
                f"VelocityTask: there is no term {', '.join(unknown)} of the reward; there are "
                f"{', '.join(self.weights)}."
            )
        self.weights = {**self.weights, **(weights or {})}
        self.randomization = [
            InitialState(
                root_rotation=Uniform((0.0, 0.0, -3.1416), (0.0, 0.0, 3.1416)),
                root_velocity=Uniform(-0.3, 0.3),
                joint_position=Uniform(-0.1, 0.1),
            ),
            friction(Uniform(0.6, 1.2)),
        ]

    def build(self, identities: np.ndarray) -> ModelBuilder:
        """Return one world per environment, its ground dealt out by identity."""
        kinds = [TERRAINS[kind](number) for number, kind in enumerate(self.terrains)]
        worlds = []
        for ground in kinds:
            lift = 0.0 if ground is None else ground.highest_near()
            world = ModelBuilder()
            add_robot(world, self.robot_name, asset_roots=self.asset_roots, lift=lift)
            if ground is None:
                world.add_ground_plane()
            else:
                world.add_shape_heightfield(heightfield=ground, label="ground")
            worlds.append(world)
        return deal_worlds(worlds, identities)

    def setup(self, env: Any) -> None:
        """Take the tensors of the robot, and room for commands."""
        import torch

        feet = self.robot_data.feet or None
        self.robot = env.tensors(self.robot_data.name, feet=_present(env.model, feet))
        tensors = self.robot.torch
        self.t = tensors
        self.home = tensors.joint_position_targets.clone()
        names = self.robot.joint_names
        self.moved = [k for k, name in enumerate(names) if matches(name, self.driven)]
        self.action_count = len(self.moved)
        self._moved = torch.tensor(self.moved, dtype=torch.int64, device=env.device)
        self.reference = self.home.clone()
        """Targets of joints for actions of zero, shape [env, dof]."""
        self._start_q = env.simulation.state.body_q.numpy().copy()
        self._velocity = wp.to_torch(env.simulation.state.joint_qd)
        # Worlds are dealt one robot each, so their free joints are in the order of environments.
        is_free = env.model.joint_type.numpy() == JointType.FREE
        base_dofs = env.model.joint_qd_start.numpy()[: len(is_free)][is_free]
        self._base_dof = torch.tensor(base_dofs, dtype=torch.int64, device=env.device)
        self.commands = torch.zeros((env.env_count, 3), dtype=torch.float32, device=env.device)
        low, high = zip(*self.ranges, strict=True)
        self._low, self._high = (
            torch.tensor(bound, dtype=torch.float32, device=env.device) for bound in (low, high)
        )
        if self.command is not None:
            self._low = self._high = torch.tensor(self.command, dtype=torch.float32, device=env.device)
        names = self.robot.body_names
        trunk = [k for k, name in enumerate(names) if matches(name, self.robot_data.trunk)]
        # Indexing by a list makes a tensor at every use, at five times the cost.
        self.trunk = torch.tensor(trunk, dtype=torch.int64, device=env.device)
        self.last_velocities = torch.zeros_like(tensors.joint_velocities)
        self._terms: VelocityTerms | None = None
        self.command_steps = max(1, round(self.command_seconds / env.step_seconds))

    def act(self, env: Any, actions: Any) -> None:
        """Move the targets of the drives."""
        self.last_velocities.copy_(self.t.joint_velocities)
        targets = self.t.joint_position_targets
        targets.copy_(self.reference)
        targets.index_add_(1, self._moved, actions, alpha=self.action_scale)
        if self.push > 0.0:
            self._push(env)

    def _push(self, env: Any) -> None:
        """Change the velocity of bases at once, in one step out of many."""
        drawn = env.uniform(-1.0, 1.0, 3)
        is_now = (drawn[:, 2] + 1.0) * self.push_seconds < 2.0 * env.step_seconds
        change = self.push * drawn[:, :2] * is_now.unsqueeze(1)
        for axis in range(2):
            self._velocity.index_add_(0, self._base_dof + axis, change[:, axis])

    def observe(self, env: Any) -> Any:
        """Return what the robot senses, and its command."""
        import torch

        t = self.t
        if self.command is None and env.max_episode_steps > self.command_steps:
            self._command(env, (env.episode_steps > 0) & (env.episode_steps % self.command_steps == 0))
        return torch.cat(
            [
                t.base_linear_velocities * 2.0,
                t.base_angular_velocities * 0.25,
                t.projected_gravity,
                self.commands,
                t.joint_positions - self.home,
                t.joint_velocities * 0.05,
                env.actions,
            ],
            dim=1,
        )

    def reward(self, env: Any) -> dict[str, Any]:
        """Return the terms of the reward."""
        if self._terms is None:
            # Not in `setup`: actions exist only once it has said how many there are.
            self._terms = VelocityTerms(
                self.robot,
                commands=self.commands,
                actions=env.actions,
                previous_actions=env.previous_actions,
                home=self.reference,
                last_velocities=self.last_velocities,
                weights={name: self.weights[name] for name in TERMS},
                tracking_width=self.tracking_width,
                swing_seconds=self.swing_seconds,
                dt=env.step_seconds,
            )
        return self._terms()

    def terminated(self, env: Any) -> Any:
        """Return which robots have fallen: the trunk or a thigh touches, or it leans."""
        fallen = self.t.projected_gravity[:, 2] > -self.least_upright
        if len(self.trunk):
            touching = self.t.contact_times.index_select(1, self.trunk) > 0.0
            fallen = fallen | touching.any(dim=1)
        return fallen

    def reset(self, env: Any, mask: Any) -> None:
        """Command new velocities."""
        self._command(env, mask)

    def mirror(self, env: Any) -> Mirror:
        """Return observations and actions in the mirror.

        Raises:
            ValueError: If a joint has no counterpart on the other side.
        """
        joints = mirrored_joints(env.model, self._start_q, self.robot.joint_names)
        actions = joints.keep(self.moved)
        velocities = Reflection.signed(*VECTOR) + Reflection.signed(*SPIN) + Reflection.signed(*VECTOR)
        return Mirror(velocities + Reflection.signed(1.0, -1.0, -1.0) + joints + joints + actions, actions)

    def metrics(self, env: Any) -> dict[str, Any]:
        """Return the velocity forwards and what was commanded [m/s]."""
        return {
            "forward velocity": self.t.base_linear_velocities[:, 0],
            "forward command": self.commands[:, 0],
        }

    def _command(self, env: Any, mask: Any) -> None:
        import torch

        drawn = env.uniform(self._low, self._high, 3)
        torch.where(mask.unsqueeze(1), drawn, self.commands, out=self.commands)


def _checked_range(name: str, bounds: Any) -> tuple[float, float]:
    """Return the least and greatest value of a command."""
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not -np.inf < low <= high < np.inf:
        raise ValueError(
            f"VelocityTask: {name} is {bounds!r}, but must be two numbers, the least and the greatest value "
            f"commanded, such as {name}=(0.0, 1.0). A single command is command=(forward, left, turning)."
        )
    return low, high


def _terrain(kind: str, **options: Any) -> Any:
    """Return a function that makes uneven ground."""
    from pluriverse import geometry

    return getattr(geometry, kind)(TERRAIN_SIZE, resolution=TERRAIN_RESOLUTION, **options)


TERRAINS: dict[str, Any] = {
    "flat": lambda number: None,
    "rough": lambda number: _terrain(
        "random_uniform_terrain", min_height=-0.03, max_height=0.03, sample_distance=0.4, seed=number
    ),
    "waves": lambda number: _terrain("wave_terrain", amplitude=0.08, wave_count=16.0),
    "slope": lambda number: _terrain("sloped_terrain", slope=0.15),
    "stairs": lambda number: _terrain("stairs_terrain", step_height=0.06, step_width=0.4),
    "blocks": lambda number: _terrain("discrete_obstacles_terrain", height=0.06, count=2000, seed=number),
}
"""Ground of each kind, made from the number of the kind; None is the plane."""


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a name fits one of several wildcards."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _present(model: Any, patterns: Any) -> Any:
    """Return the patterns that find a body; None if there are none, so that feet are found by themselves."""
    if not patterns:
        return None
    names = {label.rpartition("/")[2] for label in model.body_label}
    found = [pattern for pattern in patterns if any(matches(name, [pattern]) for name in names)]
    return found or None
