"""Selection: the degrees of freedom that a group of actuators drives, sorted by world."""

from dataclasses import dataclass

import numpy as np

from pluriverse.model import Model
from pluriverse.selection.patterns import Patterns, match_labels


@dataclass(frozen=True)
class ActuatedDofs:
    """Degrees of freedom with their own position coordinate, sorted by world."""

    dof: np.ndarray
    """Degree of freedom of the model, shape [actuator]."""
    coord: np.ndarray
    """Its coordinate, shape [actuator]."""
    world: np.ndarray
    """Its world, ascending, shape [actuator]."""
    start: np.ndarray
    """First actuator of each world, shape [world + 1]."""
    label: list[str]
    """Label of the joint of each actuator."""


def select_dofs(model: Model, joints: Patterns, what: str) -> ActuatedDofs:
    """Return the degrees of freedom of joints that match a pattern.

    Args:
        model: The model.
        joints: Labels or patterns of joints.
        what: Who asks, for messages.

    Raises:
        KeyError: If there is no such joint.
        ValueError: If none of them has a position of its own.
    """
    found = match_labels(
        model.joint_label, np.arange(model.joint_count), joints, what=f"{what}: joints", kind="joint"
    )
    first_dof, first_coord = model.joint_qd_start.numpy(), model.joint_q_start.numpy()
    dof_count, coord_count = np.diff(first_dof), np.diff(first_coord)
    selected = np.flatnonzero(np.asarray(found) & (dof_count == coord_count) & (dof_count > 0))
    if len(selected) == 0:
        raise ValueError(
            f"{what}: none of the joints {joints!r} is a hinge, a slide or a D6 joint, whose axes have "
            "positions of their own. Choose others."
        )
    counts = dof_count[selected]
    joint = np.repeat(selected, counts)
    axis = np.arange(len(joint)) - np.repeat(np.cumsum(counts) - counts, counts)
    world = np.maximum(model.joint_world.numpy()[joint].astype(np.int64), 0)
    order = np.lexsort((first_dof[joint] + axis, world))
    sizes = np.bincount(world, minlength=model.world_count)
    return ActuatedDofs(
        (first_dof[joint] + axis)[order].astype(np.int32),
        (first_coord[joint] + axis)[order].astype(np.int32),
        world[order],
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        [model.joint_label[index] for index in joint[order].tolist()],
    )
