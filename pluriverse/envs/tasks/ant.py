"""Ant: a ball on four legs runs forwards."""

from typing import Any

import numpy as np

from pluriverse.envs.robots import add_robot
from pluriverse.envs.task import Task
from pluriverse.model_builder import ModelBuilder
from pluriverse.randomization import InitialState, Uniform


class AntTask(Task):
    """A ball on four legs of two hinges each is to run along x.

    It sees the height and orientation of the torso, its velocities in its own axes, positions and velocities
    of joints, and its last actions. Actions are torques, times `torque` [N·m]. A step is worth the distance
    covered, less for large actions; an episode fails where the torso lies on the ground or on its back.
    """

    dt = 0.01
    decimation = 2
    episode_seconds = 15.0
    action_limit = 1.0
    torque = 20.0
    """Torque of a whole action [N·m]."""
    randomization = (InitialState(joint_position=Uniform(-0.1, 0.1), root_velocity=Uniform(-0.1, 0.1)),)

    def build(self, identities: np.ndarray) -> ModelBuilder:
        """Return as many ants on the plane."""
        robot, builder = ModelBuilder(), ModelBuilder()
        add_robot(robot, "ant")
        builder.replicate(robot, len(identities))
        builder.add_ground_plane()
        return builder

    def setup(self, env: Any) -> None:
        """Take the tensors of the ant."""
        self.t = env.tensors("ant").torch
        self.action_count = self.t.joint_positions.shape[1]

    def act(self, env: Any, actions: Any) -> None:
        """Exert torques."""
        import torch

        torch.mul(actions, self.torque, out=self.t.joint_efforts)

    def observe(self, env: Any) -> Any:
        """Return how the torso stands and moves, and how the joints do."""
        import torch

        t = self.t
        return torch.cat(
            [
                t.base_positions[:, 2:],
                t.base_quaternions,
                t.base_linear_velocities,
                t.base_angular_velocities,
                t.joint_positions,
                t.joint_velocities * 0.1,
                env.actions,
            ],
            dim=1,
        )

    def reward(self, env: Any) -> dict[str, Any]:
        """Return the terms of the reward."""
        import torch

        # The base velocity is in base axes; what counts is the world's x.
        forward = self.t.body_linear_velocities[:, 0, 0]
        return {
            "forward": env.step_seconds * forward,
            "upright": 0.01 * torch.ones_like(forward),
            "effort": -0.001 * env.actions.square().sum(dim=1),
        }

    def terminated(self, env: Any) -> Any:
        """Return which torsos lie."""
        return (self.t.base_positions[:, 2] < 0.24) | (self.t.projected_gravity[:, 2] > 0.0)

    def metrics(self, env: Any) -> dict[str, Any]:
        """Return the velocity along x [m/s]."""
        return {"forward velocity": self.t.body_linear_velocities[:, 0, 0]}
