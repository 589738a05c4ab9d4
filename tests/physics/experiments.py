"""The worlds of the closed-form tests."""

from __future__ import annotations

import numpy as np
import warp as wp

from pluriverse import ModelBuilder, ShapeConfig
from tests.physics.laboratory import GRAVITY, Experiment

CUBE_HALF = 0.1  # m
CUBE_MASS = 8.0  # kg, at the density of water
ROD_MASS = 1.0  # kg
ROD_LENGTH = 0.5  # m, from the hinge to the centre of mass
ROD_INERTIA = 0.02  # kg m^2, about the centre of mass
MU = 0.5


def config(*, ke: float = 1e5, tau: float = 0.0, mu: float = MU, gap: float = 0.02) -> ShapeConfig:
    return ShapeConfig(ke=ke, tau=tau, mu=mu, gap=gap)


def rest_height(ke: float) -> float:
    """Height of a cube that rests on the ground, four corners sharing its weight."""
    return CUBE_HALF - CUBE_MASS * GRAVITY / (4.0 * 0.5 * ke)


def cube_on_ground(**material):
    def build(builder: ModelBuilder) -> None:
        cfg = config(**material)
        builder.add_ground_plane(cfg=cfg)
        body = builder.add_body(xform=wp.transform((0.0, 0.0, rest_height(cfg.ke)), wp.quat_identity()))
        builder.add_shape_box(body, hx=CUBE_HALF, hy=CUBE_HALF, hz=CUBE_HALF, cfg=cfg)

    return build


def ball_on_ground(*, radius: float, **material):
    def build(builder: ModelBuilder) -> None:
        cfg = config(**material)
        builder.add_ground_plane(cfg=cfg)
        body = builder.add_body(xform=wp.transform((0.0, 0.0, radius), wp.quat_identity()))
        builder.add_shape_sphere(body, radius=radius, cfg=cfg)

    return build


def free_body(*, inertia=(0.03, 0.02, 0.01), com=(0.0, 0.0, 0.0)):
    def build(builder: ModelBuilder) -> None:
        builder.add_body(mass=2.0, inertia=np.diag(inertia), com=com)

    return build


def rod(**joint):
    """A rod on a hinge about y, hanging down at q = 0."""

    def build(builder: ModelBuilder) -> None:
        link = builder.add_link(
            mass=ROD_MASS, com=(0.0, 0.0, -ROD_LENGTH), inertia=np.diag((ROD_INERTIA, ROD_INERTIA, 0.001))
        )
        hinge = builder.add_joint_revolute(-1, link, axis=(0.0, 1.0, 0.0), **joint)
        builder.add_articulation([hinge])

    return build


def slider(*, mass: float = 2.0, axis=(0.0, 0.0, 1.0), **joint):
    """A mass on a vertical guide."""

    def build(builder: ModelBuilder) -> None:
        link = builder.add_link(mass=mass, inertia=0.01 * np.eye(3))
        guide = builder.add_joint_prismatic(-1, link, axis=axis, **joint)
        builder.add_articulation([guide])

    return build


def conical_pendulum(builder: ModelBuilder) -> None:
    """A rod on a ball joint."""
    link = builder.add_link(
        mass=ROD_MASS, com=(0.0, 0.0, -ROD_LENGTH), inertia=np.diag((ROD_INERTIA, ROD_INERTIA, 0.001))
    )
    builder.add_articulation([builder.add_joint_ball(-1, link)])


def two_balls(builder: ModelBuilder) -> None:
    """Two free balls of different size, 2 cm apart along x."""
    for radius, x in ((0.1, -0.11), (0.07, 0.08)):
        body = builder.add_body(xform=wp.transform((x, 0.0, 0.0), wp.quat_identity()))
        builder.add_shape_sphere(body, radius=radius, cfg=config(ke=1e5, tau=0.01))


def tilted(angle: float) -> tuple[float, float, float]:
    """Gravity on level ground as on a slope of `angle` [rad] that falls towards +x."""
    return (GRAVITY * np.sin(angle), 0.0, -GRAVITY * np.cos(angle))


STICK_ANGLE = 0.30  # rad, tan = 0.309 < MU, and small enough that the corners with less load stick as well
SLIP_ANGLE = 0.70  # rad, tan = 0.842 > MU
PENDULUM_AMPLITUDE = 0.1  # rad
SLIDE_SPEED = 2.0  # m/s
BALL_RADIUS = 0.1  # m
SPIN = (1.0, 10.0, 2.0)  # rad/s
FALL_VELOCITY = (1.0, -2.0, 3.0)  # m/s
CONE_ANGLE = 0.6  # rad
HOLD_GAIN = 2000.0  # N/m
LIMIT_STIFFNESS = 1e4  # N/m
WEAK_EFFORT = 10.0  # N
BALL_SPEEDS = (1.5, -0.5)  # m/s


def _cone_start() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Coordinates and velocities of steady motion on a cone: the rod turns about the vertical."""
    half = 0.5 * CONE_ANGLE
    # About the pivot: (I_perp - I_axis) w^2 sin cos = m g l sin, with w the rate about the vertical and the
    # rod not turning in itself about anything but the vertical.
    difference = ROD_INERTIA + ROD_MASS * ROD_LENGTH**2 - 0.001
    rate = np.sqrt(ROD_MASS * GRAVITY * ROD_LENGTH / (difference * np.cos(CONE_ANGLE)))
    return (0.0, float(np.sin(half)), 0.0, float(np.cos(half))), (0.0, 0.0, float(rate))


EXPERIMENTS = {
    "free_fall": Experiment(free_body(com=(0.01, 0.02, 0.03)), joint_qd=(*FALL_VELOCITY, 0.0, 0.0, 0.0)),
    "torque_free": Experiment(free_body(), gravity=(0.0, 0.0, 0.0), joint_qd=(0.0, 0.0, 0.0, *SPIN)),
    "pendulum": Experiment(rod(), joint_q=(PENDULUM_AMPLITUDE,)),
    "cone": Experiment(conical_pendulum, joint_q=_cone_start()[0], joint_qd=_cone_start()[1]),
    "stick": Experiment(cube_on_ground(), gravity=tilted(STICK_ANGLE)),
    "slip": Experiment(cube_on_ground(), gravity=tilted(SLIP_ANGLE)),
    "stop": Experiment(cube_on_ground(), joint_qd=(SLIDE_SPEED, 0.0, 0.0, 0.0, 0.0, 0.0)),
    "frictionless": Experiment(cube_on_ground(mu=0.0), joint_qd=(SLIDE_SPEED, 0.0, 0.0, 0.0, 0.0, 0.0)),
    "rest": Experiment(cube_on_ground(ke=1e4, tau=0.01)),
    "roll": Experiment(ball_on_ground(radius=BALL_RADIUS, ke=1e7), joint_qd=(1.0, 0.5, 0.0, 0.0, 0.0, 0.0)),
    "collide": Experiment(
        two_balls,
        gravity=(0.0, 0.0, 0.0),
        joint_qd=(BALL_SPEEDS[0], 0.0, 0.0, 0.0, 0.0, 0.0, BALL_SPEEDS[1], 0.0, 0.0, 0.0, 0.0, 0.0),
    ),
    "limit": Experiment(slider(limit_lower=-0.01, limit_upper=1.0, limit_ke=LIMIT_STIFFNESS, limit_kd=200.0)),
    "hold": Experiment(slider(target_ke=HOLD_GAIN, target_kd=100.0, target_pos=0.05)),
    "hold_rod": Experiment(rod(target_ke=40.0, target_kd=4.0, target_pos=1.0)),
    "saturated": Experiment(slider(target_ke=1e5, target_kd=10.0, target_pos=10.0, effort_limit=WEAK_EFFORT)),
    "no_effort": Experiment(slider(target_ke=1e5, target_kd=10.0, target_pos=10.0, effort_limit=0.0)),
    "track_speed": Experiment(slider(target_kd=400.0, target_vel=0.3)),
    "damped": Experiment(slider(damping=20.0)),
    "dry_hold": Experiment(slider(friction=25.0)),
    "dry_slip": Experiment(slider(friction=8.0)),
    "armature": Experiment(slider(armature=3.0)),
}
