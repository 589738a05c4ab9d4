"""Robots of different sizes, in worlds of different kinds, for tests of views."""

import numpy as np

import pluriverse as pv

GROUND_LABEL = "ground_plane"


def make_robot(leg_count: int, *, floating: bool) -> pv.ModelBuilder:
    """Return a base with legs of two links each, free or on a hinge, with a shape on each link."""
    builder = pv.ModelBuilder()
    links = {"base": builder.add_link(mass=2.0, com=(0.0, 0.0, 0.1), inertia=np.eye(3), label="base")}
    frame = ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0, 1.0))
    if floating:
        joints = [builder.add_joint_free(child=links["base"], label="root")]
    else:
        joints = [builder.add_joint_revolute(-1, links["base"], parent_xform=frame, axis="z", label="root")]
    for leg in range(leg_count):
        parent = links["base"]
        for part, axis in (("hip", "x"), ("knee", "y")):
            name = f"{part}{leg}"
            links[name] = builder.add_link(mass=0.5, inertia=0.1 * np.eye(3), label=name)
            builder.add_shape_sphere(links[name], radius=0.05, label=f"{name}_skin")
            offset = ((0.1 * (leg + 1), 0.0, -0.2), (0.0, 0.0, 0.0, 1.0))
            joints.append(
                builder.add_joint_revolute(
                    parent, links[name], parent_xform=offset, axis=axis, label=f"{name}_joint"
                )
            )
            parent = links[name]
    builder.add_articulation(joints, label="walker" if floating else "arm")
    return builder


def make_box() -> pv.ModelBuilder:
    """Return a free box."""
    builder = pv.ModelBuilder()
    body = builder.add_body(label="box")
    builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, label="crate")
    return builder


def make_model(worlds: list[list[pv.ModelBuilder]]) -> pv.Model:
    """Return a model with a ground plane and one world per list of robots."""
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    for robots in worlds:
        builder.begin_world()
        for robot in robots:
            builder.add_builder(robot)
        builder.end_world()
    return builder.finalize("cpu")


def equal_worlds() -> pv.Model:
    """Return three worlds with two equal walkers and a box each."""
    walker, box = make_robot(2, floating=True), make_box()
    return make_model([[walker, box, walker]] * 3)


def different_worlds() -> pv.Model:
    """Return worlds with walkers and arms of different sizes, in different numbers; one has only a box."""
    walkers = [make_robot(legs, floating=True) for legs in (1, 3)]
    arms = [make_robot(legs, floating=False) for legs in (2, 1)]
    box = make_box()
    return make_model([[walkers[0], box], [box], [arms[0], box, walkers[1]], [arms[1]], [walkers[1]]])


def fill_with_numbers(array) -> np.ndarray:
    """Give each entry of a Warp array numbers of its own, and return them."""
    shape = array.numpy().shape
    numbers = np.arange(1.0, 1.0 + np.prod(shape), dtype=np.float32).reshape(shape)
    array.assign(numbers)
    return numbers
