"""Worlds for the tests of the engines: a robot that stands, boxes that fall, a body on a ball joint."""

from pathlib import Path

import numpy as np

import pluriverse
from pluriverse import Model, ModelBuilder

ROBOT = Path(pluriverse.__file__).parent / "scenes" / "robots" / "puli.xml"
NO_TURN = (0.0, 0.0, 0.0, 1.0)
TURN_X = (float(np.sin(0.25)), 0.0, 0.0, float(np.cos(0.25)))
TURN_Y = (0.0, float(np.sin(0.15)), 0.0, float(np.cos(0.15)))
BOX_HALF = 0.1
BOX_MASS = 8.0


def robot() -> ModelBuilder:
    """Return a quadruped on its own ground."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_mjcf(str(ROBOT), xform=((0.0, 0.0, 0.5), NO_TURN))
    return builder


def boxes(count: int = 2) -> ModelBuilder:
    """Return boxes just above each other and above the ground."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    for level in range(count):
        body = builder.add_body(xform=((0.0, 0.0, 0.11 + 0.21 * level), NO_TURN), label=f"box_{level}")
        builder.add_shape_box(body, hx=BOX_HALF, hy=BOX_HALF, hz=BOX_HALF)
    return builder


def pendulum() -> ModelBuilder:
    """Return a body on a ball joint whose frames are turned on both sides."""
    builder = ModelBuilder()
    link = builder.add_link()
    builder.add_shape_box(link, hx=0.1, hy=0.05, hz=0.2)
    joint = builder.add_joint_ball(
        -1, link, parent_xform=((0.0, 0.0, 1.3), TURN_X), child_xform=((0.0, 0.0, 0.3), TURN_Y)
    )
    builder.add_articulation([joint])
    return builder


KINDS = {"robot": robot, "boxes": boxes, "pendulum": pendulum}


def build(kinds: list[str]) -> Model:
    """Return a model with a world per kind; every world has initial velocities of its own kind."""
    parts = {kind: KINDS[kind]() for kind in set(kinds)}
    builder = ModelBuilder()
    for kind in kinds:
        builder.add_world(parts[kind])
    model = builder.finalize(device="cpu")
    velocity, start = model.joint_qd.numpy(), model.joint_dof_world_start.numpy()
    for world in range(len(kinds)):
        velocity[start[world] : start[world + 1]] = 0.1 * np.sin(np.arange(start[world + 1] - start[world]))
    model.joint_qd.assign(velocity)
    return model


def world_slice(model: Model, values: np.ndarray, kind: str, world: int) -> np.ndarray:
    """Return the entries of a world, `kind` being `body`, `joint_coord` or `joint_dof`."""
    start = getattr(model, f"{kind}_world_start").numpy()
    return values[start[world] : start[world + 1]]
