"""Root state: pose and velocity of the roots of articulations, floating or fixed.

A floating base has its pose in the first 7 coordinates and its velocity in the first 6 degrees of freedom of
its free or distance joint. A fixed base has the frame of its root joint in the model, and no velocity.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import array_of, same_memory
from pluriverse.model import Model, State
from pluriverse.selection.layout import Layout
from pluriverse.selection.sources import check_source
from pluriverse.selection.transfer import gather, scatter
from pluriverse.selection.values import as_device_array
from pluriverse.types import FLOATING_JOINTS, JointType

_POSE_SIZE = 7
_VELOCITY_SIZE = 6


class RootState:
    """Reads and writes the roots of articulations.

    Args:
        model: Model that the articulations are in.
        root_joint: First joint of each articulation.
        row_shape: Shape of the rows.
    """

    is_floating: np.ndarray
    """Whether the root joint is free or a distance joint, shape [row]."""
    types: np.ndarray
    """`JointType` of the root joint, shape [row]."""

    def __init__(self, model: Model, root_joint: np.ndarray, row_shape: tuple[int, ...]) -> None:
        self.model = model
        self.row_shape = row_shape
        self.types = model.joint_type.numpy()[root_joint]
        self.is_floating = np.isin(self.types, FLOATING_JOINTS)
        coord = model.joint_q_start.numpy()[root_joint]
        dof = model.joint_qd_start.numpy()[root_joint]
        floating, fixed = np.flatnonzero(self.is_floating), np.flatnonzero(~self.is_floating)
        self._floating_q = _Part(coord[floating], floating, _POSE_SIZE, row_shape, model.device)
        self._floating_qd = _Part(dof[floating], floating, _VELOCITY_SIZE, row_shape, model.device)
        self._fixed_frame = _Part(_POSE_SIZE * root_joint[fixed], fixed, _POSE_SIZE, row_shape, model.device)

    @property
    def is_mixed(self) -> bool:
        """Whether some bases float and others are fixed."""
        return bool(self.is_floating.any() and not self.is_floating.all())

    def alias_transforms(self, source: Model | State) -> wp.array | None:
        """Return the poses, of the shape of the rows, in the memory of their array; None if irregular."""
        joint_q, _ = check_source(source, "joint_q", self.model, what="get_root_transforms")
        if self.is_floating.all() and self._floating_q.strides is not None:
            return self._floating_q.alias(joint_q, wp.transform)
        if not self.is_floating.any() and self._fixed_frame.strides is not None:
            return self._fixed_frame.alias(_floats(self.model.joint_X_p), wp.transform)
        return None

    def copy_transforms(self, source: Model | State) -> wp.array:
        """Return a copy of the poses, of the shape of the rows."""
        joint_q, _ = check_source(source, "joint_q", self.model, what="get_root_transforms")
        out = wp.empty(self.row_shape, dtype=wp.transform, device=self.model.device)
        self._floating_q.gather(joint_q, out)
        self._fixed_frame.gather(_floats(self.model.joint_X_p), out)
        return out

    def set_transforms(self, target: Model | State, values: Any, selected: wp.array) -> None:
        """Write the poses of the selected rows."""
        what = "set_root_transforms"
        joint_q, _ = check_source(target, "joint_q", self.model, what=what)
        poses, _ = as_device_array(values, wp.transform, [self.row_shape], self.model.device, what=what)
        self._floating_q.scatter(poses, selected, joint_q)
        self._fixed_frame.scatter(poses, selected, _floats(self.model.joint_X_p))

    def alias_velocities(self, source: Model | State) -> wp.array | None:
        """Return the velocities, of the shape of the rows, in the memory of `joint_qd`; None if irregular."""
        joint_qd, _ = check_source(source, "joint_qd", self.model, what="get_root_velocities")
        if self.is_floating.all() and self._floating_qd.strides is not None:
            return self._floating_qd.alias(joint_qd, wp.spatial_vectorf)
        return None

    def copy_velocities(self, source: Model | State) -> wp.array:
        """Return a copy of the velocities, of the shape of the rows; zero for a fixed base."""
        joint_qd, _ = check_source(source, "joint_qd", self.model, what="get_root_velocities")
        out = wp.zeros(shape=self.row_shape, dtype=wp.spatial_vectorf, device=self.model.device)
        self._floating_qd.gather(joint_qd, out)
        return out

    def set_velocities(self, target: Model | State, values: Any, selected: wp.array) -> None:
        """Write the velocities of the selected rows."""
        what = "set_root_velocities"
        if not self.is_floating.all():
            row = int(np.argmin(self.is_floating))
            raise ValueError(
                f"{what}: row {row} of the view has a fixed base, whose root joint is of type "
                f"{JointType(int(self.types[row])).name}, and which cannot have a velocity. Use a view of "
                "articulations with a free joint at the root."
            )
        joint_qd, _ = check_source(target, "joint_qd", self.model, what=what)
        device = self.model.device
        velocities, _ = as_device_array(values, wp.spatial_vectorf, [self.row_shape], device, what=what)
        self._floating_qd.scatter(velocities, selected, joint_qd)


class _Part:
    """Some consecutive numbers of each of some rows, in an array of numbers.

    Args:
        first: First number of each row in the array.
        rows: The rows.
        size: Numbers of a row.
        row_shape: Shape of all rows of the view.
        device: Device of the arrays.
    """

    strides: tuple[int, ...] | None
    """Distance between rows along each axis, in numbers; None if irregular, or if not all rows are here."""

    def __init__(
        self, first: np.ndarray, rows: np.ndarray, size: int, row_shape: tuple[int, ...], device: Any
    ) -> None:
        self._row_count = int(np.prod(row_shape))
        self._size = size
        self._row_shape = row_shape
        self._first = first
        numbers = np.arange(size)
        self._index = _integers((first[:, None] + numbers).reshape(-1), device)
        self._element = _integers((rows[:, None] * size + numbers).reshape(-1), device)
        self._row = _integers(np.repeat(rows, size), device)
        self.strides = None
        if len(rows) == self._row_count and len(rows):
            self.strides = Layout(first, np.arange(len(rows) + 1), row_shape, True, device).strides

    def alias(self, array: wp.array, dtype: Any) -> wp.array:
        """Return the rows in the memory of the array."""
        assert self.strides is not None
        number_bytes = array.strides[0]
        return same_memory(
            array,
            dtype,
            self._row_shape,
            strides=tuple(stride * number_bytes for stride in self.strides),
            byte_offset=int(self._first[0]) * number_bytes,
        )

    def gather(self, array: wp.array, out: wp.array) -> None:
        """Copy the rows out of the array."""
        gather(self._index, self._element, array, _floats(out), self._row_count * self._size)

    def scatter(self, values: wp.array, selected: wp.array, array: wp.array) -> None:
        """Copy the selected rows into the array."""
        numbers = _floats(values)
        scatter(self._index, self._element, self._row, selected, numbers, numbers.size, array)


def _floats(array: wp.array) -> wp.array:
    """Return a contiguous array as its numbers, in the same memory."""
    return same_memory(array, wp.float32, (array.size * wp.types.type_size(array.dtype),))


def _integers(values: np.ndarray, device: Any) -> wp.array:
    return array_of(values.astype(np.int32), wp.int32, device)
