"""Mirror: reflection of tasks in the sagittal plane, for robots with a left and a right side.

Experience of one side is valid for the other ([Mittal2024]). The reflection swaps y for -y in the axes of
the base: vectors keep x and z, angular velocities keep y.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.model import Model
from pluriverse.types import JointType

# Signs of a reflected vector, and of a reflected angular velocity.
VECTOR = (1.0, -1.0, 1.0)
SPIN = (-1.0, 1.0, -1.0)
# Distance of an anchor from the mirror image of its counterpart [m], and difference of their axes, below
# which they are a pair: files are written with a few digits.
PAIR_TOLERANCE = 0.02


@dataclass(frozen=True)
class Reflection:
    """Reflection of a vector: source component and sign of each component.

    Reflections of parts are added up in the order of the parts: `Reflection.signed(1.0, -1.0, 1.0) + joints`.
    """

    source: tuple[int, ...]
    """Source component of each component."""
    sign: tuple[float, ...]
    """Sign of each component."""

    @classmethod
    def signed(cls, *sign: float) -> "Reflection":
        """Return the reflection of components that keep their positions."""
        return cls(tuple(range(len(sign))), tuple(sign))

    def __add__(self, other: "Reflection") -> "Reflection":
        """Return the reflection of two vectors, one after the other."""
        shifted = tuple(source + len(self.source) for source in other.source)
        return Reflection(self.source + shifted, self.sign + other.sign)

    def keep(self, kept: Sequence[int]) -> "Reflection":
        """Return the reflection of some of the components, which must hold the counterpart of each.

        Raises:
            ValueError: If a counterpart is missing.
        """
        order = {old: new for new, old in enumerate(kept)}
        lost = [k for k in kept if self.source[k] not in order]
        if lost:
            raise ValueError(f"Reflection: component {lost[0]} is kept without its counterpart.")
        return Reflection(tuple(order[self.source[k]] for k in kept), tuple(self.sign[k] for k in kept))

    def prepared(self, device: Any) -> Any:
        """Return a function that reflects tensors of shape [row, component]."""
        import torch

        source = torch.tensor(self.source, dtype=torch.int64, device=device)
        sign = torch.tensor(self.sign, dtype=torch.float32, device=device)
        return lambda values: values.index_select(1, source) * sign


@dataclass(frozen=True)
class Mirror:
    """Observations and actions of a task in the mirror."""

    observations: Reflection
    """Reflection of the observations."""
    actions: Reflection
    """Reflection of the actions."""


def mirrored_joints(model: Model, body_q: np.ndarray, names: Sequence[str]) -> Reflection:
    """Return which joint of a robot is the counterpart of each, by anchors and axes in a symmetric pose.

    Args:
        model: Model whose first world has one robot.
        body_q: Poses of all bodies in a pose in which the robot is symmetric to y = 0, shape [body, 7].
        names: Names of its joints of one degree of freedom.

    Raises:
        ValueError: If a joint has no counterpart.
    """
    labels = {label.rpartition("/")[2]: k for k, label in reversed(list(enumerate(model.joint_label)))}
    joints = [labels[name] for name in names]
    parent, frame = model.joint_parent.numpy(), model.joint_X_p.numpy()
    axis, dof_start = model.joint_axis.numpy(), model.joint_qd_start.numpy()
    anchors, axes = np.zeros((len(joints), 3)), np.zeros((len(joints), 3))
    for row, joint in enumerate(joints):
        pose = body_q[parent[joint]] if parent[joint] >= 0 else np.array([0.0, 0, 0, 0, 0, 0, 1])
        anchors[row] = pose[:3] + _turned(pose[3:], frame[joint][:3])
        axes[row] = _turned(pose[3:], _turned(frame[joint][3:], axis[dof_start[joint]]))
    anchor_distance = np.linalg.norm(anchors[None] - (anchors * VECTOR)[:, None], axis=2)
    slides = model.joint_type.numpy()[joints] == JointType.PRISMATIC
    agreement = (axes * np.where(slides[:, None], VECTOR, SPIN)) @ axes.T
    difference = anchor_distance + 1.0 - np.abs(agreement)
    source = difference.argmin(axis=1)
    for row in range(len(joints)):
        if difference[row, source[row]] > PAIR_TOLERANCE or source[source[row]] != row:
            raise ValueError(
                f"mirrored_joints: joint '{names[row]}' has no counterpart on the other side: the nearest is "
                f"'{names[source[row]]}'. Train without symmetric=True."
            )
    sign = np.sign(agreement[np.arange(len(joints)), source])
    return Reflection(tuple(source.tolist()), tuple(sign.tolist()))


def _turned(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return a vector rotated by a unit quaternion xyzw."""
    axis, w = quaternion[:3], quaternion[3]
    cross = 2.0 * np.cross(axis, vector)
    return np.asarray(vector + w * cross + np.cross(axis, cross))
