"""A scene in neutral words, from which both engines are built.

Only what both have is described: rigid bodies, revolute, prismatic, fixed and free joints, viscous joint
damping, PD drives with effort limits, hard joint limits, spheres, capsules, boxes and half-spaces in
compliant point contact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

IDENTITY = (0.0, 0.0, 0.0, 1.0)
WORLD = "world"


class Engine(Enum):
    """Which engine a shape exists in: a body may carry a box here and corner spheres there."""

    BOTH = "both"
    DRAKE = "drake"
    PLURIVERSE = "pluriverse"


@dataclass(frozen=True)
class Material:
    """Contact material of a shape."""

    stiffness: float = 1e4  # N/m
    tau: float = 0.02  # s
    mu: float = 0.5


@dataclass(frozen=True)
class Shape:
    """Collision shape fixed to a body."""

    body: str
    kind: str  # sphere (r), capsule (r, half height), box (half extents), half_space ()
    size: tuple[float, ...]
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = IDENTITY  # xyzw
    material: Material = Material()
    engine: Engine = Engine.BOTH


@dataclass(frozen=True)
class Body:
    """Rigid body with its pose and velocity at the start; the pose counts only for free bodies."""

    name: str
    mass: float
    inertia: tuple[float, float, float]  # kg m^2, about the centre of mass, body axes
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = IDENTITY
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)  # of the body origin
    omega: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Joint:
    """Joint whose child frame is the body frame of the child. Bodies without a joint are free."""

    name: str
    kind: str  # revolute, prismatic, fixed; planar (x, y, turn about z); universal (turns about x, then y)
    parent: str
    child: str
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)  # of the child in the parent at q = 0
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    q: float | tuple[float, ...] = 0.0
    qd: float | tuple[float, ...] = 0.0
    damping: float = 0.0
    armature: float = 0.0  # only where there is a drive, as in Drake
    limit: tuple[float, float] | None = None
    drive: tuple[float, float] | None = None  # ke, kd
    target: tuple[float, float] = (0.0, 0.0)  # position, velocity
    effort_limit: float = np.inf


@dataclass(frozen=True)
class Scene:
    """One world."""

    name: str
    duration: float
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...] = ()
    shapes: tuple[Shape, ...] = ()
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    tolerance: float = 1e-5
    """Allowed difference of positions [m] and angles [rad]."""
    check: Callable[[np.ndarray], None] | None = field(default=None, compare=False)
    """Confirms on the trajectory [step, body, 7] of Drake that the scene does what its name says."""

    @property
    def free_bodies(self) -> tuple[Body, ...]:
        jointed = {joint.child for joint in self.joints}
        return tuple(body for body in self.bodies if body.name not in jointed)


def box_inertia(mass: float, half: tuple[float, float, float]) -> tuple[float, float, float]:
    """Central principal inertia of a solid box with half extents `half` [m]."""
    x, y, z = np.square(np.asarray(half))
    return (mass / 3.0 * (y + z), mass / 3.0 * (x + z), mass / 3.0 * (x + y))


def sphere_inertia(mass: float, radius: float) -> tuple[float, float, float]:
    return (0.4 * mass * radius**2,) * 3


CORNER_RADIUS = 1e-6
"""Radius [m] of the spheres that stand for box corners in Drake, where a box touches in one point only.

They are inset by their own radius, so that they reach exactly as far as the box along its axes; the lever
arms then differ by at most sqrt(3) times this.
"""


def box_shapes(
    body: str, half: tuple[float, float, float], material: Material, *, signs_z: tuple[int, ...] = (-1, 1)
) -> tuple[Shape, ...]:
    """A box in Pluriverse and spheres at its corners in Drake."""
    inset = np.asarray(half) - CORNER_RADIUS
    corners = [
        Shape(
            body, "sphere", (CORNER_RADIUS,), tuple(inset * (x, y, z)), material=material, engine=Engine.DRAKE
        )
        for x in (-1, 1)
        for y in (-1, 1)
        for z in signs_z
    ]
    return (Shape(body, "box", half, material=material, engine=Engine.PLURIVERSE), *corners)


def ground(material: Material, rotation: tuple[float, float, float, float] = IDENTITY) -> Shape:
    return Shape(WORLD, "half_space", (), rotation=rotation, material=material)


def axis_angle(axis: tuple[float, float, float], angle: float) -> tuple[float, float, float, float]:
    """Quaternion xyzw."""
    unit = np.asarray(axis) / np.linalg.norm(axis)
    return (*(np.sin(0.5 * angle) * unit), float(np.cos(0.5 * angle)))
