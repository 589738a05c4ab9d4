"""Robots of the builder tests, and the comparison of whole models."""

import numpy as np

import pluriverse
from pluriverse import Model, ModelBuilder
from pluriverse.model import poses
from pluriverse.model.schema import MODEL_ARRAYS

PER_WORLD = ("gravity", "worlds")


def make_arm() -> ModelBuilder:
    """Return a builder of an arm on a pedestal, with a ball in its reach; all joint types occur."""
    builder = ModelBuilder()
    pedestal = builder.add_link(mass=2.0, inertia=np.eye(3), label="pedestal")
    upper = builder.add_link(label="upper")
    lower = builder.add_link(label="lower")
    slider = builder.add_link(mass=0.5, inertia=0.1 * np.eye(3), label="slider")
    wrist = builder.add_link(label="wrist")
    builder.add_shape_cylinder(pedestal, radius=0.1, half_height=0.2)
    builder.add_shape_capsule(
        upper, radius=0.03, half_height=0.2, xform=((0.0, 0.0, 0.2), (0.0, 0.0, 0.0, 1.0))
    )
    builder.add_shape_box(lower, hx=0.02, hy=0.03, hz=0.2, xform=((0.0, 0.0, 0.2), (0.0, 0.0, 0.0, 1.0)))
    builder.add_shape_sphere(wrist, radius=0.05)
    turned = (0.0, np.sin(0.2), 0.0, np.cos(0.2))
    joints = [
        builder.add_joint_fixed(-1, pedestal, parent_xform=((0.1, 0.2, 0.3), turned)),
        builder.add_joint_revolute(
            pedestal,
            upper,
            axis=(0.0, 1.0, 1.0),
            parent_xform=((0.0, 0.0, 0.2), (0.0, 0.0, 0.0, 1.0)),
            target_ke=9.0,
        ),
        builder.add_joint_revolute(
            upper,
            lower,
            axis="y",
            parent_xform=((0.0, 0.0, 0.4), turned),
            child_xform=((0.1, 0.0, 0.0), turned),
        ),
        builder.add_joint_prismatic(lower, slider, axis="z", limit_lower=-0.1, limit_upper=0.1),
        builder.add_joint_ball(slider, wrist, child_xform=((0.0, 0.02, 0.01), turned)),
    ]
    builder.add_articulation(joints, label="arm")
    ball = builder.add_body(xform=((0.5, 0.0, 1.0), turned), label="ball")
    builder.add_shape_sphere(ball, radius=0.1, xform=((0.03, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)))
    builder.add_shape_box(-1, hx=0.2, hy=0.2, hz=0.01, xform=((1.0, 0.0, 0.0), turned), label="table")
    builder.add_shape_collision_filter_pair(0, 4)
    builder.joint_q[:3] = (0.3, -0.4, 0.05)
    builder.joint_q[3:7] = poses.quat_from_axis_angle(np.array([0.6, 0.0, 0.8]), np.array(0.7))
    builder.joint_qd[:] = np.linspace(-1.0, 1.0, builder.joint_dof_count)
    return builder


def make_pile(count: int = 3) -> ModelBuilder:
    """Return a builder of boxes above each other."""
    builder = ModelBuilder()
    for level in range(count):
        box = builder.add_body(xform=((0.0, 0.0, 0.2 + 0.2 * level), (0.0, 0.0, 0.0, 1.0)))
        builder.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1)
    return builder


def model_arrays(model: Model) -> dict[str, np.ndarray]:
    """Return every array of a model, its topology included, on the host."""
    arrays = {name: getattr(model, name).numpy() for name in MODEL_ARRAYS}
    for name in pluriverse.model.Topology.vars:
        arrays[f"topology.{name}"] = getattr(model.topology, name).numpy()
    return arrays


def assert_models_equal(one: Model, other: Model) -> None:
    """Assert that two models agree in every bit and every label."""
    ours, theirs = model_arrays(one), model_arrays(other)
    for name, array in ours.items():
        assert array.dtype == theirs[name].dtype, name
        assert array.tobytes() == theirs[name].tobytes(), name
    for name in ("body_label", "joint_label", "articulation_label", "shape_label"):
        assert getattr(one, name) == getattr(other, name), name
    for name, kind in Model.__annotations__.items():
        if kind is int:
            assert getattr(one, name) == getattr(other, name), name
