"""Lift: an arm grips an object and lifts it; objects differ from world to world."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from pluriverse.builder import ShapeConfig
from pluriverse.envs.robots import Robot, find_robot, get_robot
from pluriverse.envs.tasks.arm import GRIP_OFFSET, ArmTask, rotated
from pluriverse.model_builder import ModelBuilder
from pluriverse.randomization import InitialState, Uniform

# Half the width of the gripped part of an object [m], and half its height; density of wood [kg/m³].
HALF_WIDTHS = (0.02, 0.025, 0.03)
SHAPE_COUNT = 4
DENSITY = 600.0
# Heron, as in its file: height of the shoulder, lengths of upper arm, forearm, and from wrist to hand [m].
SHOULDER_HEIGHT, UPPER_ARM, FOREARM, WRIST = 0.26, 0.36, 0.32, 0.08
TOOL = WRIST + GRIP_OFFSET[2]
# Largest opening of a finger [m].
OPENING = 0.045
# Distance from the middle of an object at which the gripper is about it [m].
NEAR = 0.02


class LiftTask(ArmTask):
    """An arm is to grip an object on the ground in front of it and to lift it to a height.

    Objects are boxes, balls, cylinders and capsules of three sizes, dealt out by identity. Actions move the
    point where the gripper, which always points down, is to be: along x, y and z by up to `hand_speed` [m/s],
    about the vertical by up to `roll_speed` [rad/s]; the last one opens the fingers by up to `finger_speed`
    [m/s]. The joints follow from that in closed form. It sees its joints, where the object is, how it lies
    and how wide it is, which fingers touch something, and its last actions.

    The reward has stages: approach of the gripper, closing about the object, height, and holding it up.
    """

    episode_seconds = 4.0
    goal_height = 0.15
    """Height by which the object is to be lifted [m]."""
    start_height = 0.15
    """Height of the middle of the gripper in the beginning [m]."""
    hand_speed = 0.5
    """Largest speed of the commanded point of the gripper [m/s]."""
    roll_speed = 3.0
    """Fastest turning of the gripper about the vertical [rad/s]."""
    finger_speed = 0.2
    object_position = (0.46, 0.0)
    """Mean initial position of objects [m]."""
    low, high = (0.34, -0.22, 0.028), (0.58, 0.22, 0.35)
    """Corners of the box in which the gripper moves [m]."""
    randomization = (
        InitialState(joint_position=Uniform(-0.02, 0.02), entities="heron*"),
        InitialState(
            root_position=Uniform((-0.06, -0.12, 0.0), (0.06, 0.12, 0.0)),
            root_rotation=Uniform((0.0, 0.0, -1.5), (0.0, 0.0, 1.5)),
            entities="object_joint",
        ),
    )

    def robot(self) -> Robot:
        """Return Heron with its gripper over the place where objects lie."""
        heron = get_robot("heron")
        shoulder, elbow, wrist = _reach(self.object_position[0], self.start_height)
        home = {"shoulder_pitch": shoulder, "elbow_pitch": elbow, "wrist_pitch": wrist}
        return replace(heron, files=(str(find_robot("heron")),), home={**heron.home, **home})

    def objects(self) -> list[ModelBuilder]:
        """Return the objects: four shapes in each size."""
        return [self._object(shape, half) for half in HALF_WIDTHS for shape in range(SHAPE_COUNT)]

    def _object(self, shape: int, half: float) -> ModelBuilder:
        builder = ModelBuilder()
        body = builder.add_link(xform=((*self.object_position, half), (0.0, 0.0, 0.0, 1.0)), label="object")
        joint = builder.add_joint_free(body, label="object_joint")
        builder.add_articulation([joint], label="object")
        config = ShapeConfig(density=DENSITY, mu=1.0)
        if shape == 0:
            builder.add_shape_box(body, hx=half, hy=half, hz=half, cfg=config)
        elif shape == 1:
            builder.add_shape_sphere(body, radius=half, cfg=config)
        elif shape == 2:
            builder.add_shape_cylinder(body, radius=half, half_height=half, cfg=config)
        else:
            lying = ((0.0, 0.0, 0.0), (0.0, 0.7071068, 0.0, 0.7071068))
            builder.add_shape_capsule(body, radius=half, half_height=0.5 * half, xform=lying, cfg=config)
        return builder

    def setup(self, env: Any) -> None:
        """Take the tensors of the arm and of the object."""
        import torch

        super().setup(env)
        self.action_count = 5
        self.object = env.tensors("object").torch
        self._rest = self.object.base_positions[:, 2].clone()
        names = self.arm.joint_names
        joints = ("base_yaw", "shoulder_pitch", "elbow_pitch", "wrist_pitch", "wrist_roll")
        self._columns = [names.index(name) for name in joints]
        fingers = [k for k, name in enumerate(names) if "finger" in name]
        self._fingers = torch.tensor(fingers, dtype=torch.int64, device=env.device)
        bodies = [k for k, name in enumerate(self.arm.body_names) if "finger" in name]
        self._finger_bodies = torch.tensor(bodies, dtype=torch.int64, device=env.device)
        start = [self.object_position[0], self.object_position[1], self.start_height, 0.0, OPENING]
        limits = [(*self.low, -1.6, 0.0), (*self.high, 1.6, OPENING)]
        speeds = [*[self.hand_speed] * 3, self.roll_speed, self.finger_speed]
        self._begin = torch.tensor(start, dtype=torch.float32, device=env.device)
        self.goal = self._begin.repeat(env.env_count, 1)
        """Target of the gripper: position [m], angle about the vertical [rad], opening [m], shape [env,
        5]."""
        self._least, self._most = (
            torch.tensor(bound, dtype=torch.float32, device=env.device) for bound in limits
        )
        self._change = env.step_seconds * torch.tensor(speeds, dtype=torch.float32, device=env.device)
        sizes = env.identities // SHAPE_COUNT % len(HALF_WIDTHS)
        widths = np.array(HALF_WIDTHS, dtype=np.float32)[sizes]
        self._ahead = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float32, device=env.device)
        self._half_width = torch.tensor(widths, dtype=torch.float32, device=env.device)

    def act(self, env: Any, actions: Any) -> None:
        """Move the commanded point of the gripper, and the joint targets accordingly."""
        import torch

        goal = self.goal
        goal += self._change * actions
        torch.clamp(goal, self._least, self._most, out=goal)
        yaw = torch.atan2(goal[:, 1], goal[:, 0])
        shoulder, elbow, wrist = _reach(torch.hypot(goal[:, 0], goal[:, 1]), goal[:, 2])
        # The hand looks down, so that its roll counts against the yaw of the base.
        for column, angle in zip(self._columns, (yaw, shoulder, elbow, wrist, yaw - goal[:, 3]), strict=True):
            self.targets[:, column] = angle
        self.targets[:, self._fingers] = goal[:, 4:]
        torch.clamp(self.targets, self.t.joint_lower, self.t.joint_upper, out=self.targets)
        self.t.joint_position_targets.copy_(self.targets)

    def reset(self, env: Any, mask: Any) -> None:
        """Begin with the gripper at the start."""
        import torch

        self.goal.copy_(torch.where(mask.unsqueeze(1), self._begin, self.goal))
        super().reset(env, mask)

    def observe(self, env: Any) -> Any:
        """Return joints, the object, and the way to it."""
        import torch

        item = self.object
        way = item.base_positions - self.grip()
        ahead = rotated(item.base_quaternions, self._ahead)
        return torch.cat(
            [
                *self.felt(),
                self.goal,
                item.base_positions,
                ahead,
                10.0 * way,
                torch.sin(self.goal[:, 3:4]),
                self._half_width.unsqueeze(1) * 20.0,
                self._touching(),
                env.actions,
            ],
            dim=1,
        )

    def _touching(self) -> Any:
        """Return which fingers touch something, shape [env, finger]."""
        return (self.t.contact_times.index_select(1, self._finger_bodies) > 0.0).float()

    def reward(self, env: Any) -> dict[str, Any]:
        """Return the terms of the reward."""
        import torch

        object_position = self.object.base_positions
        distance = (object_position - self.grip()).norm(dim=1)
        near = (1.0 - (distance - NEAR) / NEAR).clamp(0.0, 1.0)
        opening = self.goal[:, 4] / OPENING
        gripped = near * self._touching().amin(dim=1)
        return {
            "reach": 0.05 * (1.0 - torch.tanh(distance / 0.1)),
            "close": 0.05 * near * (1.0 - opening),
            "grip": 0.05 * gripped,
            "lift": 0.3 * gripped * (self.height() / self.goal_height).clamp(0.0, 1.0),
            "held up": 0.2 * self.held_up().float(),
            "action rate": -0.001 * (env.actions - env.previous_actions).square().sum(dim=1),
        }

    def height(self) -> Any:
        """Return by how much each object is lifted [m], shape [env]."""
        return self.object.base_positions[:, 2] - self._rest

    def held_up(self) -> Any:
        """Return which objects are at the goal, truth values [env]."""
        return self.height() > 0.8 * self.goal_height

    def terminated(self, env: Any) -> Any:
        """Return which objects were pushed out of reach."""
        object_position = self.object.base_positions
        return (object_position[:, :2].norm(dim=1) > 0.8) | (object_position[:, 2] < -0.1)

    def metrics(self, env: Any) -> dict[str, Any]:
        """Return the distance to the object [m], and the share of time at the goal."""
        return {
            "distance": (self.object.base_positions - self.grip()).norm(dim=1),
            "held up": self.held_up().float(),
        }


def _reach(radius: Any, height: Any) -> tuple[Any, Any, Any]:
    """Return the angles of shoulder, elbow and wrist for a gripper that points down [rad].

    Upper arm and forearm are two sides of a triangle whose third goes from the shoulder to the wrist.

    Args:
        radius: Distance of the middle of the gripper from the axis of the base [m].
        height: Its height over the ground [m].
    """
    if isinstance(radius, float):
        lib: Any = math
        clamp = lambda value: min(max(value, -1.0), 1.0)  # noqa: E731
    else:
        import torch as lib

        clamp = lambda value: value.clamp(-1.0, 1.0)  # noqa: E731
    up = height + (TOOL - SHOULDER_HEIGHT)
    cosine = (radius * radius + up * up - UPPER_ARM**2 - FOREARM**2) / (2.0 * UPPER_ARM * FOREARM)
    elbow = lib.acos(clamp(cosine))
    inner = lib.atan2(FOREARM * lib.sin(elbow), UPPER_ARM + FOREARM * lib.cos(elbow))
    shoulder = lib.atan2(radius, up) - inner
    return shoulder, elbow, math.pi - shoulder - elbow
