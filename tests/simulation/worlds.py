"""Worlds of different kinds, for tests of the loop."""

import numpy as np
import warp as wp

import pluriverse as pv

DT = 0.005

FIRM = pv.ShapeConfig(density=500.0, ke=1.0e5, tau=0.01, mu=0.6)


def make_pile() -> pv.ModelBuilder:
    """Three boxes that fall on each other askew: contacts between moving bodies."""
    builder = pv.ModelBuilder()
    for level in range(3):
        turn = wp.quat_from_axis_angle(wp.vec3(0.0, 0.0, 1.0), 0.3 * level)
        body = builder.add_body(xform=wp.transform((0.02 * level, 0.0, 0.12 + 0.22 * level), turn))
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=FIRM)
    return builder


def make_arm() -> pv.ModelBuilder:
    """A chain of three links with drives, limits, dry friction and armature, above the ground."""
    builder = pv.ModelBuilder()
    parent, joints = -1, []
    for level in range(3):
        link = builder.add_link()
        builder.add_shape_capsule(
            link,
            xform=wp.transform((0.0, 0.0, -0.15), wp.quat_identity()),
            radius=0.03,
            half_height=0.12,
            cfg=FIRM,
        )
        joints.append(
            builder.add_joint_revolute(
                parent,
                link,
                parent_xform=wp.transform((0.0, 0.0, 0.5 if level == 0 else -0.3), wp.quat_identity()),
                axis=(0.0, 1.0, 0.0) if level != 1 else (1.0, 0.0, 0.0),
                target_pos=0.8,
                target_ke=8.0,
                target_kd=0.5,
                effort_limit=3.0,
                limit_lower=-0.5,
                limit_upper=0.6,
                armature=0.01,
                friction=0.05,
            )
        )
        parent = link
    builder.add_articulation(joints)
    return builder


def make_round_things() -> pv.ModelBuilder:
    """A sphere that rolls and a capsule that falls over, apart from each other."""
    builder = pv.ModelBuilder()
    ball = builder.add_body(xform=wp.transform((0.0, 0.0, 0.11), wp.quat_identity()))
    builder.add_shape_sphere(ball, radius=0.1, cfg=FIRM)
    tilt = wp.quat_from_axis_angle(wp.vec3(1.0, 0.0, 0.0), 0.1)
    stick = builder.add_body(xform=wp.transform((1.0, 0.0, 0.31), tilt))
    builder.add_shape_capsule(stick, radius=0.05, half_height=0.25, cfg=FIRM)
    builder.joint_qd[0:3] = [1.0, 0.5, 0.0]
    return builder


def make_flyer() -> pv.ModelBuilder:
    """A spinning body without any contact."""
    builder = pv.ModelBuilder(gravity=-1.62)
    body = builder.add_body(xform=wp.transform((0.0, 0.0, 50.0), wp.quat_identity()))
    builder.add_shape_box(body, hx=0.1, hy=0.2, hz=0.3, cfg=FIRM)
    builder.joint_qd[0:6] = [0.1, 0.2, 3.0, 1.0, 5.0, 0.1]
    return builder


KINDS = {
    "pile": make_pile,
    "arm": make_arm,
    "round things": make_round_things,
    "flyer": make_flyer,
}


def make_model(kinds: list[str], device: str = "cpu") -> pv.Model:
    """Return a model with a ground plane and one world per name."""
    made = {kind: KINDS[kind]() for kind in set(kinds)}
    builder = pv.ModelBuilder()
    builder.add_ground_plane(cfg=FIRM)
    for kind in kinds:
        builder.add_world(made[kind])
    return builder.finalize(device)


def world_bits(model: pv.Model, state: pv.State, world: int) -> dict[str, np.ndarray]:
    """Return copies of the arrays of one world, to compare bit by bit."""
    bounds = {
        "joint_q": model.joint_coord_world_start,
        "joint_qd": model.joint_dof_world_start,
        "body_q": model.body_world_start,
        "body_qd": model.body_world_start,
    }
    result = {}
    for name, start in bounds.items():
        begin, end = start.numpy()[world : world + 2]
        result[name] = getattr(state, name).numpy()[begin:end].copy()
    return result


def assert_same_bits(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], what: str) -> None:
    """Fail unless both worlds are equal in each bit."""
    for name, values in ours.items():
        assert values.tobytes() == theirs[name].tobytes(), (
            f"{what}: {name} differs by up to {np.abs(values - theirs[name]).max()}"
        )
