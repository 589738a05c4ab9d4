"""Turn: a hand turns a cube about the vertical without dropping it."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.builder import ShapeConfig
from pluriverse.envs.dealing import deal_worlds
from pluriverse.envs.robots import add_robot
from pluriverse.envs.task import Task
from pluriverse.model_builder import ModelBuilder
from pluriverse.randomization import InitialState, Uniform

# Half the side of cubes [m], dealt out by identity; density [kg/m³].
HALF_SIDES = (0.024, 0.027, 0.03)
DENSITY = 400.0
# Height of the palm's surface [m].
PALM_TOP = 0.312
# Fingers in the order of their places about the palm; opposite ones move alike.
FINGERS = ("first", "second", "third", "fourth")
# How fast pressing sets in and ends, over the sine of the phase.
PRESS_STEEPNESS = 2.0


@dataclass
class Twist:
    """How fingers turn an object, as targets of joints before the policy adds its own.

    Two opposite fingers press and sweep around, while the other two come back; then they change over.
    """

    period: float = 0.77
    """Time after which all is as it was [s]."""
    sweep: float = 0.44
    """Motion of a finger around, to both sides [rad]."""
    open_knuckle: float = 0.07
    """Knuckle of a finger that does not press [rad]."""
    press_knuckle: float = -0.79
    """What pressing adds to it [rad]."""
    open_bend: float = 0.0
    """Bend of a finger that does not press [rad]."""
    press_bend: float = -0.15
    """What pressing adds to it [rad]."""
    overlap: float = 0.05
    """Share of the time by which both pairs press together; negative for a pause."""


class TurnTask(Task):
    """A hand of four fingers that looks up is to turn the cube on its palm about the vertical.

    The targets of its drives follow a `Twist`; actions are offsets from it, times `action_scale` [rad]. It
    sees its joints and their targets, where the cube is and how it lies and turns, sine and cosine of the
    clock of the twist, and its last actions. Cubes are of three sizes. An episode fails where the cube has
    left the palm.
    """

    dt = 0.01
    decimation = 4
    twist = Twist()
    episode_seconds = 10.0
    action_limit = 1.0
    action_scale = 0.3
    """Offset of targets of a whole action [rad]."""
    greatest_rate = 2.0
    """Angular velocity up to which turning is rewarded [rad/s]."""
    randomization = (
        InitialState(joint_position=Uniform(-0.05, 0.05), entities="hand*"),
        InitialState(
            root_position=Uniform((-0.004, -0.004, 0.0), (0.004, 0.004, 0.0)),
            root_rotation=Uniform((0.0, 0.0, -0.8), (0.0, 0.0, 0.8)),
            entities="cube_joint",
        ),
    )

    def build(self, identities: np.ndarray) -> ModelBuilder:
        """Return one hand with a cube per environment."""
        worlds = []
        for half in HALF_SIDES:
            world = ModelBuilder()
            add_robot(world, "hand")
            body = world.add_link(
                xform=((0.0, 0.0, PALM_TOP + half + 0.002), (0.0, 0.0, 0.0, 1.0)), label="cube"
            )
            joint = world.add_joint_free(body, label="cube_joint")
            world.add_articulation([joint], label="cube")
            config = ShapeConfig(density=DENSITY, mu=0.8)
            world.add_shape_box(body, hx=half, hy=half, hz=half, cfg=config)
            worlds.append(world)
        return deal_worlds(worlds, identities)

    def setup(self, env: Any) -> None:
        """Take the tensors of hand and cube."""
        import torch

        robots = env.tensors("hand")
        self.hand, self.hand_names = robots.torch, robots.joint_names
        self.cube = env.tensors("cube").torch
        self.home = self.hand.joint_position_targets.clone()
        self.action_count = self.home.shape[1]
        columns = [
            [self.hand_names.index(f"{finger}_{joint}") for finger in FINGERS]
            for joint in ("spread", "knuckle", "bend")
        ]
        self._joints = torch.tensor(columns, dtype=torch.int64, device=env.device)
        self._pair = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float32, device=env.device)
        self.reference = self.home.clone()
        """Targets of joints for actions of zero, shape [env, dof]."""
        self._palm = self.home.new_tensor([0.0, 0.0, PALM_TOP])

    def act(self, env: Any, actions: Any) -> None:
        """Move the targets of the drives about those of the twist."""
        import torch

        twist, phase = self.twist, self._phase(env)
        wave = torch.sin(phase) * self._pair
        press = (PRESS_STEEPNESS * (wave + twist.overlap)).clamp(0.0, 1.0)
        offsets = (
            twist.sweep * torch.cos(phase) * self._pair,
            twist.open_knuckle + twist.press_knuckle * press,
            twist.open_bend + twist.press_bend * press,
        )
        self.reference.copy_(self.home)
        for columns, offset in zip(self._joints, offsets, strict=True):
            self.reference.index_add_(1, columns, offset)
        torch.add(self.reference, actions, alpha=self.action_scale, out=self.hand.joint_position_targets)

    def _phase(self, env: Any) -> Any:
        """Return the phase of the clock [rad], shape [env, 1]."""
        return (2.0 * math.pi * env.step_seconds / self.twist.period) * env.episode_steps.unsqueeze(1).float()

    def observe(self, env: Any) -> Any:
        """Return joints, the cube, and the last actions."""
        import torch

        hand, cube, phase = self.hand, self.cube, self._phase(env)
        return torch.cat(
            [
                hand.joint_positions,
                0.1 * hand.joint_velocities,
                hand.joint_position_targets - hand.joint_positions,
                10.0 * (cube.base_positions - self._palm),
                cube.base_quaternions,
                0.1 * cube.body_angular_velocities[:, 0],
                torch.sin(phase),
                torch.cos(phase),
                env.actions,
            ],
            dim=1,
        )

    def reward(self, env: Any) -> dict[str, Any]:
        """Return the terms of the reward."""
        rate = self.cube.body_angular_velocities[:, 0, 2]
        way = (self.cube.base_positions[:, :2]).norm(dim=1)
        return {
            "turning": env.step_seconds * rate.clamp(-self.greatest_rate, self.greatest_rate),
            "centre": -0.2 * way,
            "action rate": -0.001 * (env.actions - env.previous_actions).square().sum(dim=1),
        }

    def terminated(self, env: Any) -> Any:
        """Return which cubes have left the palm."""
        position = self.cube.base_positions
        return (position[:, :2].norm(dim=1) > 0.07) | (position[:, 2] < PALM_TOP - 0.05)

    def metrics(self, env: Any) -> dict[str, Any]:
        """Return the angular velocity about the vertical [rad/s]."""
        return {"turning rate": self.cube.body_angular_velocities[:, 0, 2]}
