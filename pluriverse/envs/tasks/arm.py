"""Arm: what the tasks of the arm with a gripper have in common."""

from typing import Any

import numpy as np

from pluriverse.envs.dealing import deal_worlds
from pluriverse.envs.robots import Robot, add_robot
from pluriverse.envs.task import Task
from pluriverse.model_builder import ModelBuilder

# The gripper's middle, ahead of the hand [m]: between the pads of the fingers.
GRIP_OFFSET = (0.0, 0.0, 0.09)


class ArmTask(Task):
    """Base of tasks of Heron, an arm of six joints with two fingers.

    Actions move the targets of the drives: each by up to `speed` [rad/s], of the fingers together by up to
    `finger_speed` [m/s].
    """

    dt = 0.01
    decimation = 2
    episode_seconds = 4.0
    speed = 2.0
    """Fastest motion of the target of a joint [rad/s]."""
    finger_speed = 0.1
    """Fastest motion of the targets of the fingers [m/s]."""

    def robot(self) -> str | Robot:
        """Return the arm, or its name."""
        return "heron"

    def objects(self) -> list[ModelBuilder]:
        """Return what lies before the arm in each kind of world; they are dealt out by identity."""
        return [ModelBuilder()]

    def build(self, identities: np.ndarray) -> ModelBuilder:
        """Return one world per environment, the arm and a thing on the ground."""
        robot, worlds = self.robot(), []
        for item in self.objects():
            world = ModelBuilder()
            add_robot(world, robot)
            world.add_builder(item)
            worlds.append(world)
        builder = deal_worlds(worlds, identities)
        builder.add_ground_plane()
        return builder

    def setup(self, env: Any) -> None:
        """Take the tensors of the arm."""
        import torch

        self.arm = env.tensors("heron")
        self.t = self.arm.torch
        self.home = self.t.joint_position_targets.clone()
        names = self.arm.joint_names
        is_finger = ["finger" in name for name in names]
        self.palm = self.arm.body_names.index("hand")
        self.action_count = is_finger.count(False) + 1
        # The action that moves each joint, and how far in a step; all fingers follow the last action.
        moving = torch.cumsum(torch.tensor([not f for f in is_finger]), 0) - 1
        moving[is_finger] = self.action_count - 1
        step = [env.step_seconds * (self.finger_speed if f else self.speed) for f in is_finger]
        self._moving = moving.to(env.device)
        self._step = torch.tensor(step, dtype=torch.float32, device=env.device)
        self.targets = self.home.clone()
        self._offset = torch.tensor(GRIP_OFFSET, dtype=torch.float32, device=env.device)

    def act(self, env: Any, actions: Any) -> None:
        """Move the targets, within the limits of the joints."""
        import torch

        t = self.t
        self.targets += self._step * actions.index_select(1, self._moving)
        torch.clamp(self.targets, t.joint_lower, t.joint_upper, out=self.targets)
        t.joint_position_targets.copy_(self.targets)

    def reset(self, env: Any, mask: Any) -> None:
        """Begin with the targets at home."""
        import torch

        self.targets.copy_(torch.where(mask.unsqueeze(1), self.home, self.targets))
        self.t.joint_position_targets.copy_(self.targets)

    def grip(self) -> Any:
        """Return the middle of the gripper [m], world axes, shape [env, 3]."""
        return self.t.body_positions[:, self.palm] + rotated(
            self.t.body_quaternions[:, self.palm], self._offset
        )

    def felt(self) -> list[Any]:
        """Return what the arm feels of itself."""
        return [
            self.t.joint_positions - self.home,
            0.1 * self.t.joint_velocities,
            self.targets - self.t.joint_positions,
        ]


def rotated(quaternions: Any, vectors: Any) -> Any:
    """Return vectors turned by unit quaternions xyzw, shape [env, 3]."""
    import torch

    axis, w = quaternions[:, :3], quaternions[:, 3:]
    vectors = vectors.expand_as(axis)
    cross = 2.0 * torch.linalg.cross(axis, vectors)
    return vectors + w * cross + torch.linalg.cross(axis, cross)
