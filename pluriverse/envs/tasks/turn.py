"""Turn: a hand turns a cube about the vertical without dropping it."""

from typing import Any

import numpy as np

from pluriverse.builder import ShapeConfig
from pluriverse.envs.robots import add_robot
from pluriverse.envs.task import Task
from pluriverse.model_builder import ModelBuilder
from pluriverse.randomization import InitialState, Uniform

# Half the side of cubes [m], dealt out by identity; density [kg/m³].
HALF_SIDES = (0.024, 0.027, 0.03)
DENSITY = 400.0
# Height of the palm's surface [m].
PALM_TOP = 0.312


class TurnTask(Task):
    """A hand of four fingers that looks up is to turn the cube on its palm about the vertical.

    It sees its joints and their targets, where the cube is and how it lies and turns, and its last actions.
    Actions are offsets of the targets of its drives from home, times `action_scale` [rad]. Cubes are of three
    sizes. An episode fails where the cube has left the palm.
    """

    dt = 0.005
    decimation = 8
    episode_seconds = 10.0
    action_limit = 1.0
    action_scale = 0.6
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
        builder = ModelBuilder()
        place = identities % len(worlds)
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(place)], strict=True):
            builder.replicate(worlds[place[start]], int(end - start))
        return builder

    def setup(self, env: Any) -> None:
        """Take the tensors of hand and cube."""
        self.hand = env.tensors("hand").torch
        self.cube = env.tensors("cube").torch
        self.home = self.hand.joint_position_targets.clone()
        self.action_count = self.home.shape[1]
        self._palm = self.home.new_tensor([0.0, 0.0, PALM_TOP])

    def act(self, env: Any, actions: Any) -> None:
        """Move the targets of the drives."""
        import torch

        torch.add(self.home, actions, alpha=self.action_scale, out=self.hand.joint_position_targets)

    def observe(self, env: Any) -> Any:
        """Return joints, the cube, and the last actions."""
        import torch

        hand, cube = self.hand, self.cube
        return torch.cat(
            [
                hand.joint_positions,
                0.1 * hand.joint_velocities,
                hand.joint_position_targets - hand.joint_positions,
                10.0 * (cube.base_positions - self._palm),
                cube.base_quaternions,
                0.1 * cube.body_angular_velocities[:, 0],
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
        place = self.cube.base_positions
        return (place[:, :2].norm(dim=1) > 0.07) | (place[:, 2] < PALM_TOP - 0.05)

    def metrics(self, env: Any) -> dict[str, Any]:
        """Return the angular velocity about the vertical [rad/s]."""
        return {"turning rate": self.cube.body_angular_velocities[:, 0, 2]}
