"""The scenes that Drake and Pluriverse are compared on, each short enough not to be chaotic."""

from __future__ import annotations

import numpy as np

from tests.drake.description import (
    WORLD,
    Body,
    Engine,
    Joint,
    Material,
    Scene,
    Shape,
    axis_angle,
    box_inertia,
    box_shapes,
    ground,
    sphere_inertia,
)

SOFT = Material(stiffness=1e4, tau=0.02, mu=0.5)
STIFF = Material(stiffness=1e9, tau=0.02, mu=0.5)


def _free_box(name: str, mass: float, half, **pose) -> Body:
    return Body(name, mass, box_inertia(mass, half), **pose)


def tumbling_box() -> Scene:
    half = (0.1, 0.15, 0.2)
    box = _free_box(
        "box",
        4.0,
        half,
        position=(0, 0, 0.5),
        rotation=axis_angle((1, 2, 3), 0.7),
        velocity=(1.0, 0.3, 0.0),
        omega=(2.0, 3.0, -1.0),
    )

    def check(poses):
        assert poses[-1, 0, 2] < 0.25, "it falls"
        assert np.ptp(poses[:, 0, 3:], axis=0).max() > 0.3, "it turns"

    # Three impacts of sliding corners amplify the rounding of the states, 1e-7, to 1e-5.
    return Scene(
        "tumbling_box",
        1.0,
        (box,),
        shapes=(ground(SOFT), *box_shapes("box", half, SOFT)),
        check=check,
        tolerance=3e-5,
    )


def rigid_box() -> Scene:
    """A contact too stiff for the step: the near-rigid floor of the regularization decides."""
    half = (0.1, 0.15, 0.05)
    box = _free_box("box", 3.0, half, position=(0, 0, 0.08), rotation=axis_angle((1, 0.4, 0), 0.05))
    return Scene("rigid_box", 1.0, (box,), shapes=(ground(STIFF), *box_shapes("box", half, STIFF)))


def box_stack() -> Scene:
    halves = [(0.2, 0.2, 0.1), (0.15, 0.16, 0.1), (0.1, 0.12, 0.1)]
    shapes = [ground(SOFT)]
    bodies = []
    height = 0.0
    for index, half in enumerate(halves):
        name = f"box_{index}"
        bodies.append(
            _free_box(name, 2.0, half, position=(0.01 * index, 0.0, height + half[2] + 2e-3 * (index + 1)))
        )
        height += 2.0 * half[2]
        # In Drake the corners below carry a box, and the face above is a box for the next one's corners.
        shapes.extend(box_shapes(name, half, SOFT, signs_z=(-1,)))
        if index < 2:
            shapes.append(Shape(name, "box", half, material=SOFT, engine=Engine.DRAKE))

    def check(poses):
        assert np.all(np.diff(poses[-1, :, 2]) > 0.19), "the stack stands"

    return Scene("box_stack", 1.5, tuple(bodies), shapes=tuple(shapes), check=check)


def _falling_rod(name: str, shapes: tuple[Shape, ...], tolerance: float) -> Scene:
    tilt = axis_angle((0.2, 1, 0), 0.15)
    body = Body("rod", 1.5, (0.02, 0.02, 0.003), position=(0, 0, 0.21), rotation=tilt)

    def check(poses):
        assert poses[0, 0, 2] > 0.19, "it starts upright"
        assert poses[-1, 0, 2] < 0.06, "it ends lying"

    return Scene(name, 2.0, (body,), shapes=(ground(SOFT), *shapes), check=check, tolerance=tolerance)


ROD_RADIUS = 0.05
ROD_ENDS = (-0.15, 0.15)


def _rod_balls(engine: Engine) -> tuple[Shape, ...]:
    return tuple(
        Shape("rod", "sphere", (ROD_RADIUS,), (0, 0, z), material=SOFT, engine=engine) for z in ROD_ENDS
    )


def falling_dumbbell() -> Scene:
    return _falling_rod("falling_dumbbell", _rod_balls(Engine.BOTH), 1e-5)


def falling_capsule() -> Scene:
    """A capsule here, the balls at its ends in Drake, which gives a capsule on a plane one point only.

    The second point of our capsule lies on its side line, not on the round end: it is higher by less than
    radius * tilt^2 / 2, 1e-4 m at the tilt of 0.07 rad at which the second end lands.
    """
    capsule = Shape("rod", "capsule", (ROD_RADIUS, ROD_ENDS[1]), material=SOFT, engine=Engine.PLURIVERSE)
    return _falling_rod("falling_capsule", (capsule, *_rod_balls(Engine.DRAKE)), 2e-4)


def sliding_sphere() -> Scene:
    radius, mass = 0.1, 1.0
    ball = Body("ball", mass, sphere_inertia(mass, radius), position=(0, 0, radius), velocity=(1.5, 0.5, 0.0))

    def check(poses):
        speed = np.linalg.norm(poses[-1, 0, :2] - poses[-2, 0, :2]) / 0.005
        assert abs(speed - 5.0 / 7.0 * np.hypot(1.5, 0.5)) < 0.02, "it ends rolling"

    shapes = (ground(SOFT), Shape("ball", "sphere", (radius,), material=SOFT))
    return Scene(
        "sliding_sphere",
        1.0,
        (ball,),
        shapes=shapes,
        check=check,
    )


def incline(angle: float, name: str) -> Scene:
    half = (0.1, 0.1, 0.05)
    slope = axis_angle((0, 1, 0), angle)
    normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
    box = _free_box("box", 1.0, half, position=tuple(0.051 * normal), rotation=slope)
    shapes = (ground(SOFT, slope), *box_shapes("box", half, SOFT))

    def check(poses):
        distance = np.linalg.norm(poses[-1, 0, :3] - poses[100, 0, :3])
        slides = np.tan(angle) > SOFT.mu
        assert (distance > 0.1) if slides else (distance < 1e-3)

    return Scene(name, 1.0, (box,), shapes=shapes, check=check)


def pendulum() -> Scene:
    rod = Body("rod", 1.0, (0.02, 0.02, 0.001), com=(0, 0, -0.25))
    hinge = Joint("hinge", "revolute", WORLD, "rod", axis=(0, 1, 0), q=1.0, qd=0.5, damping=0.05)
    return Scene("pendulum", 2.0, (rod,), (hinge,))


def double_pendulum() -> Scene:
    rods = tuple(Body(f"rod_{i}", 1.0, (0.02, 0.02, 0.001), com=(0.01, 0.02, -0.25)) for i in range(2))
    joints = (
        Joint("hinge_0", "revolute", WORLD, "rod_0", axis=(0, 1, 0), q=1.0, damping=0.02),
        Joint("hinge_1", "revolute", "rod_0", "rod_1", (0, 0, -0.5), axis=(1, 1, 0), q=-0.5, damping=0.1),
    )
    return Scene("double_pendulum", 2.0, rods, joints)


def planar_joint() -> Scene:
    """A plate that slides on a slope and turns about its normal, its centre of mass off the joint."""
    plate = Body("plate", 2.0, (0.02, 0.03, 0.05), com=(0.1, -0.05, 0.02))
    joint = Joint("plane", "planar", WORLD, "plate", q=(0.1, 0.2, 0.3), qd=(0.4, -0.6, 3.0), damping=0.3)
    return Scene("planar_joint", 1.5, (plate,), (joint,), gravity=(1.0, -2.0, -9.0))


def universal_joint() -> Scene:
    """A pendulum on a gimbal with another behind it, both swinging about both axes."""
    rods = tuple(Body(f"rod_{i}", 1.0, (0.02, 0.03, 0.01), com=(0.01, 0.02, -0.25)) for i in range(2))
    joints = (
        Joint("gimbal_0", "universal", WORLD, "rod_0", q=(0.4, 0.5), qd=(1.0, -2.0), damping=0.02),
        Joint(
            "gimbal_1",
            "universal",
            "rod_0",
            "rod_1",
            (0, 0, -0.5),
            q=(-0.3, 0.6),
            qd=(-1.0, 2.0),
            damping=0.1,
        ),
    )
    return Scene("universal_joint", 2.0, rods, joints)


def _arm_bodies() -> tuple[Body, ...]:
    masses = (3.0, 2.5, 2.0, 1.0, 0.8, 0.4)
    return tuple(
        Body(f"link_{i}", mass, box_inertia(mass, (0.04, 0.05, 0.12)), com=(0.0, 0.01, 0.1))
        for i, mass in enumerate(masses)
    )


def arm_with_drives(name: str = "arm_with_drives", effort_limit: float = np.inf) -> Scene:
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    targets = (0.8, 0.6, -0.9, 0.5, 0.7, -1.0)
    joints = tuple(
        Joint(
            f"joint_{i}",
            "revolute",
            WORLD if i == 0 else f"link_{i - 1}",
            f"link_{i}",
            (0, 0, 0.1) if i == 0 else (0, 0, 0.2),
            axes[i],
            q=0.1 * i,
            damping=0.2,
            armature=0.05,
            drive=(200.0, 10.0),
            target=(targets[i], 0.1),
            effort_limit=effort_limit,
        )
        for i in range(6)
    )
    return Scene(name, 2.0, _arm_bodies(), joints)


def saturated_drive() -> Scene:
    """Drives too weak for the load: the arm sinks while they push with all they have."""

    def check(poses):
        assert poses[-1, 5, 2] < poses[0, 5, 2] - 0.1, "it sinks"

    scene = arm_with_drives("saturated_drive", effort_limit=6.0)
    return Scene(scene.name, 1.0, scene.bodies, scene.joints, check=check)


def gripper() -> Scene:
    """Two driven fingers squeeze a box and hold it against gravity by friction alone."""
    half = (0.03, 0.04, 0.05)
    pad = Material(stiffness=2e4, tau=0.02, mu=0.8)
    bodies = [Body("palm", 1.0, (0.01, 0.01, 0.01))]
    joints = [
        Joint(
            "lift",
            "prismatic",
            WORLD,
            "palm",
            (0, 0, 0.5),
            axis=(0, 0, 1),
            drive=(2000.0, 200.0),
            target=(0.1, 0.0),
        )
    ]
    shapes = [Shape("box", "box", half, material=pad)]
    for side, sign in (("left", -1.0), ("right", 1.0)):
        bodies.append(Body(f"finger_{side}", 0.2, (1e-4, 1e-4, 1e-4)))
        joints.append(
            Joint(
                f"slide_{side}",
                "prismatic",
                "palm",
                f"finger_{side}",
                (sign * 0.05, 0, -0.1),
                axis=(-sign, 0, 0),
                damping=5.0,
                drive=(500.0, 20.0),
                target=(0.05, 0.0),
                effort_limit=12.0,
            )
        )
        for y in (-0.02, 0.02):
            for z in (-0.02, 0.02):
                shapes.append(Shape(f"finger_{side}", "sphere", (0.01,), (0.0, y, z), material=pad))
    bodies.append(_free_box("box", 0.5, half, position=(0.002, 0.0, 0.4)))

    def check(poses):
        assert poses[-1, 3, 2] > 0.45, "lifted"
        assert poses[400, 3, 2] - poses[-1, 3, 2] < 1e-3, (
            "held for the last 3 s, but for the creep of stiction"
        )

    return Scene("gripper", 5.0, tuple(bodies), tuple(joints), tuple(shapes), check=check)


def quadruped() -> Scene:
    """Twelve drives hold a torso on four spherical feet."""
    bodies = [
        Body("torso", 8.0, box_inertia(8.0, (0.2, 0.1, 0.05)), position=(0, 0, 0.36), com=(0.01, 0.0, 0.01))
    ]
    joints, shapes = [], [ground(SOFT)]
    for leg, (x, y) in enumerate([(0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1)]):
        side = np.sign(y)
        bodies += [
            Body(f"hip_{leg}", 0.6, (6e-4, 8e-4, 8e-4)),
            Body(f"thigh_{leg}", 1.0, (5e-3, 5e-3, 1e-3), com=(0, 0, -0.08)),
            Body(f"shank_{leg}", 0.2, (1e-3, 1e-3, 1e-4), com=(0, 0, -0.1)),
        ]
        drive = {"drive": (80.0, 2.0), "damping": 0.05, "armature": 0.01, "effort_limit": 30.0}
        joints += [
            Joint(f"hip_{leg}", "revolute", "torso", f"hip_{leg}", (x, y, 0), (1, 0, 0), **drive),
            Joint(
                f"thigh_{leg}",
                "revolute",
                f"hip_{leg}",
                f"thigh_{leg}",
                (0, 0.08 * side, 0),
                (0, 1, 0),
                q=0.7,
                target=(0.7, 0.0),
                **drive,
            ),
            Joint(
                f"knee_{leg}",
                "revolute",
                f"thigh_{leg}",
                f"shank_{leg}",
                (0, 0, -0.2),
                (0, 1, 0),
                q=-1.4,
                target=(-1.4, 0.0),
                **drive,
            ),
        ]
        shapes.append(Shape(f"shank_{leg}", "sphere", (0.02,), (0, 0, -0.2), material=SOFT))

    def check(poses):
        assert 0.25 < poses[-1, 0, 2] < 0.36, "it stands"
        assert np.abs(poses[-1, 0, 3:5]).max() < 0.05, "it is level"

    return Scene("quadruped", 2.0, tuple(bodies), tuple(joints), tuple(shapes), check=check)


def limit_impact() -> Scene:
    rod = Body("rod", 1.0, (0.02, 0.02, 0.001), com=(0, 0, -0.25))
    hinge = Joint("hinge", "revolute", WORLD, "rod", axis=(0, 1, 0), q=1.2, damping=0.01, limit=(-0.3, 1.5))

    def check(poses):
        angle = 2.0 * np.arctan2(poses[:, 0, 4], poses[:, 0, 6])
        assert angle.min() < -0.29
        assert angle.min() > -0.35

    return Scene("limit_impact", 1.5, (rod,), (hinge,), check=check)


def all_scenes() -> list[Scene]:
    return [
        tumbling_box(),
        rigid_box(),
        box_stack(),
        falling_dumbbell(),
        falling_capsule(),
        sliding_sphere(),
        incline(0.4, "incline_stick"),
        incline(0.6, "incline_slide"),
        pendulum(),
        double_pendulum(),
        planar_joint(),
        universal_joint(),
        arm_with_drives(),
        saturated_drive(),
        gripper(),
        quadruped(),
        limit_impact(),
    ]
