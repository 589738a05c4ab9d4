"""Cartpole: a cart holds a pole upright that is hinged to it."""

from typing import Any

import numpy as np

from pluriverse.envs.robots import add_robot
from pluriverse.envs.task import Task
from pluriverse.model_builder import ModelBuilder
from pluriverse.randomization import InitialState, Uniform


class CartpoleTask(Task):
    """A cart is pushed along its rail so that the pole stays upright.

    It sees position and velocity of cart and pole; the action is the force on the cart, times `force` [N].
    Every step that the pole stands is worth 1, less for a pole that leans. An episode fails where the pole
    leans by more than 0.5 rad, or the cart is 2 m from the middle.
    """

    dt = 0.01
    decimation = 2
    episode_seconds = 5.0
    action_count = 1
    action_limit = 1.0
    force = 15.0
    """Force of a whole action [N]."""
    randomization = (InitialState(joint_position=Uniform(-0.15, 0.15), joint_velocity=Uniform(-0.15, 0.15)),)

    def build(self, identities: np.ndarray) -> ModelBuilder:
        """Return as many carts with poles."""
        robot, builder = ModelBuilder(), ModelBuilder()
        add_robot(robot, "cartpole")
        builder.replicate(robot, len(identities))
        return builder

    def setup(self, env: Any) -> None:
        """Take the tensors of cart and pole."""
        self.t = env.tensors("cartpole").torch

    def act(self, env: Any, actions: Any) -> None:
        """Push the cart."""
        self.t.joint_efforts[:, 0] = self.force * actions[:, 0]

    def observe(self, env: Any) -> Any:
        """Return positions and velocities of cart and pole."""
        import torch

        return torch.cat([self.t.joint_positions, self.t.joint_velocities], dim=1)

    def reward(self, env: Any) -> Any:
        """Return 1 for a pole that stands upright, less if it leans or the cart is far from the middle."""
        cart, pole = self.t.joint_positions[:, 0], self.t.joint_positions[:, 1]
        return 1.0 - pole.square() - 0.2 * cart.square() - 0.01 * env.actions[:, 0].square()

    def terminated(self, env: Any) -> Any:
        """Return which poles have fallen, and which carts are too far out."""
        return (self.t.joint_positions[:, 1].abs() > 0.5) | (self.t.joint_positions[:, 0].abs() > 2.0)
