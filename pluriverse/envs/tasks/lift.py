"""Lift: an arm grips an object and lifts it; objects differ from world to world."""

from typing import Any

from pluriverse.builder import ShapeConfig
from pluriverse.envs.tasks.arm import ArmTask
from pluriverse.model_builder import ModelBuilder
from pluriverse.randomization import InitialState, Uniform

# Half the width of the gripped part of an object [m], and half its height; density of wood [kg/m³].
HALF_WIDTHS = (0.02, 0.025, 0.03)
DENSITY = 600.0


class LiftTask(ArmTask):
    """An arm is to grip an object on the ground in front of it and to lift it to a height.

    Objects are boxes, balls, cylinders and capsules of three sizes, dealt out by identity. It sees its
    joints, where the object is and how it lies, and its last actions.
    """

    episode_seconds = 5.0
    goal_height = 0.25
    """Height to which the object is to be lifted [m]."""
    place = (0.46, 0.0)
    """Where objects lie on average [m]."""
    randomization = (
        InitialState(joint_position=Uniform(-0.02, 0.02), entities="heron*"),
        InitialState(
            root_position=Uniform((-0.06, -0.12, 0.0), (0.06, 0.12, 0.0)),
            root_rotation=Uniform((0.0, 0.0, -1.5), (0.0, 0.0, 1.5)),
            entities="object_joint",
        ),
    )

    def world_kind(self, identity: int) -> int:
        """Return the kind of object: one of four shapes in three sizes."""
        return identity % (4 * len(HALF_WIDTHS))

    def build_world(self, identity: int) -> ModelBuilder:
        """Return the object of one environment."""
        kind = self.world_kind(identity)
        half = HALF_WIDTHS[kind // 4]
        builder = ModelBuilder()
        body = builder.add_link(xform=((*self.place, half), (0.0, 0.0, 0.0, 1.0)), label="object")
        joint = builder.add_joint_free(body, label="object_joint")
        builder.add_articulation([joint], label="object")
        config = ShapeConfig(density=DENSITY, mu=1.0)
        if kind % 4 == 0:
            builder.add_shape_box(body, hx=half, hy=half, hz=half, cfg=config)
        elif kind % 4 == 1:
            builder.add_shape_sphere(body, radius=half, cfg=config)
        elif kind % 4 == 2:
            builder.add_shape_cylinder(body, radius=half, half_height=half, cfg=config)
        else:
            lying = ((0.0, 0.0, 0.0), (0.0, 0.7071068, 0.0, 0.7071068))
            builder.add_shape_capsule(body, radius=half, half_height=0.5 * half, xform=lying, cfg=config)
        return builder

    def setup(self, env: Any) -> None:
        """Take the tensors of the arm and of the object."""
        super().setup(env)
        self.object = env.tensors("object").torch
        self._rest = self.object.base_positions[:, 2].clone()

    def observe(self, env: Any) -> Any:
        """Return joints, the object, and the way to it."""
        import torch

        thing = self.object
        return torch.cat(
            [
                *self.felt(),
                thing.base_positions,
                thing.base_quaternions,
                thing.base_positions - self.grip(),
                env.actions,
            ],
            dim=1,
        )

    def reward(self, env: Any) -> dict[str, Any]:
        """Return the terms of the reward."""
        import torch

        place = self.object.base_positions
        distance = (place - self.grip()).norm(dim=1)
        height = (place[:, 2] - self._rest).clamp(0.0, self.goal_height)
        return {
            # Two widths: one that tells from afar where to go, one that tells when it is between the fingers.
            "reach": 0.03 * (1.0 - torch.tanh(distance / 0.3)) + 0.03 * (1.0 - torch.tanh(distance / 0.05)),
            "lift": 1.0 * height * torch.exp(-distance.square() / 0.1**2),
            "held up": 0.2 * (place[:, 2] > 0.8 * self.goal_height).float(),
            "action rate": -0.001 * (env.actions - env.previous_actions).square().sum(dim=1),
        }

    def terminated(self, env: Any) -> Any:
        """Return which objects were pushed out of reach."""
        place = self.object.base_positions
        return (place[:, :2].norm(dim=1) > 1.0) | (place[:, 2] < -0.1)

    def metrics(self, env: Any) -> dict[str, Any]:
        """Return the height of the object [m], and which share is held up."""
        height = self.object.base_positions[:, 2]
        return {"height": height, "held up": (height > 0.8 * self.goal_height).float()}
