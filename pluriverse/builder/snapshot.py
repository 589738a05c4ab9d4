"""Snapshot: the columns of a builder at the moment of `finalize`, completed and cleaned."""

import warnings
from typing import Any

import numpy as np

from pluriverse.builder.columns import ColumnView
from pluriverse.builder.inputs import as_gravity
from pluriverse.builder.tables import BuilderTables
from pluriverse.model.kinematics import JointColumns
from pluriverse.types import FLOATING_JOINTS, Entity, JointTargetMode, JointType
from pluriverse.warnings import PluriverseWarning

COLUMN_NAMES = tuple(value.name for value in vars(BuilderTables).values() if isinstance(value, ColumnView))
"""The columns that builders expose."""


class WorldRanges:
    """First entities of one kind in each world.

    Args:
        world: World of each entity: -1 in front, then worlds in ascending order, then -1 again.
        world_count: Number of worlds that were opened.
        sizes: Weight of each entity; 1 if None.
    """

    def __init__(self, world: np.ndarray, world_count: int, sizes: np.ndarray | None = None):
        sizes = np.ones(len(world), dtype=np.int64) if sizes is None else sizes
        total = int(sizes.sum())
        inside = world >= 0
        counts = np.bincount(world[inside], weights=sizes[inside], minlength=world_count).astype(np.int64)
        front = int(sizes[: np.argmax(inside)].sum()) if inside.any() else total
        bounds = front + np.concatenate([[0], np.cumsum(counts)])
        self.published = np.append(bounds if world_count else [total, total], total)
        """As in `*_world_start`, shape [world + 2]; [n, n, n] without worlds."""
        self.bounds = bounds if world_count else np.array([0, total])
        """First entity of each simulated world and the end of the last, shape [world + 1]."""


class Snapshot(JointColumns):
    """Copies of all columns of a builder, under their names in the model."""

    joint_target_mode: np.ndarray
    joint_target_pos: np.ndarray
    joint_target_q: np.ndarray
    body_inertia: np.ndarray

    def __init__(self, builder: BuilderTables):
        for name in COLUMN_NAMES:
            setattr(self, name, np.array(builder.column(name)))
        self.builder = builder
        self.authored_world_count = builder.world_count
        self.world_count = max(builder.world_count, 1)
        self.world_label = list(builder.world_label) or ["world_0"]
        rows = builder.tables[Entity.WORLD].view("gravity")
        gravity = rows.copy() if builder.world_count else np.full((1, 3), np.nan)
        self.gravity = np.where(np.isnan(gravity), as_gravity(builder.gravity, builder.up_axis), gravity)
        self.joint_q_start = np.append(self.joint_q_start, builder.joint_coord_count)
        self.joint_qd_start = np.append(self.joint_qd_start, builder.joint_dof_count)
        self.filters = builder.shape_filters.view("shape").copy()
        dof_count = self.joint_dof_dim.sum(axis=1)
        coord_count = np.diff(self.joint_q_start)
        worlds = self.authored_world_count
        self.ranges = {
            "body": WorldRanges(self.body_world, worlds),
            "shape": WorldRanges(self.shape_world, worlds),
            "joint": WorldRanges(self.joint_world, worlds),
            "articulation": WorldRanges(self.articulation_world, worlds),
            "dof": WorldRanges(self.joint_world, worlds, dof_count),
            "coord": WorldRanges(self.joint_world, worlds, coord_count),
            "constraint": WorldRanges(self.joint_world, worlds, 6 - dof_count),
        }
        """First entities of each kind in each world."""
        self.dof_joint = np.repeat(np.arange(len(dof_count)), dof_count)
        """Joint of each degree of freedom."""
        self._unify_targets()

    def __getattr__(self, name: str) -> Any:
        # Columns are set by name in __init__; this declaration is for type checkers.
        raise AttributeError(name)

    def _unify_targets(self) -> None:
        """Adopt targets that were written by coordinate.

        Raises:
            ValueError: If a target was written under both names, with different values.
        """
        written = self.joint_target_q != self._joint_target_q_before
        offset = np.arange(len(self.dof_joint)) - self.joint_qd_start[self.dof_joint]
        scalar = (np.diff(self.joint_q_start) == self.joint_dof_dim.sum(axis=1))[self.dof_joint]
        coord = np.where(scalar, self.joint_q_start[self.dof_joint] + offset, -1)
        dofs = np.flatnonzero(scalar & written[coord]) if len(written) else np.zeros(0, dtype=np.int64)
        given, before = self.joint_target_pos[dofs], self._joint_target_q_before[coord[dofs]]
        clash = np.flatnonzero((given != before) & (given != self.joint_target_q[coord[dofs]]))
        if len(clash):
            dof = dofs[clash[0]]
            raise ValueError(
                f"{self.builder.joint_name(int(self.dof_joint[dof]))}: joint_target_pos is "
                f"{self.joint_target_pos[dof]} and joint_target_q is {self.joint_target_q[coord[dof]]}, but "
                "both are the target of the same drive. Write to one of them."
            )
        self.joint_target_pos[dofs] = self.joint_target_q[coord[dofs]]

    def drop_floating_drives(self) -> None:
        """Remove the drives of free joints that were given a stiffness, with a warning.

        Scripts write the gains of a robot to all its degrees of freedom. A free base has no motors: neither
        stiffness nor damping meant for motors may act on it.
        """
        follows = np.isin(
            self.joint_target_mode,
            (JointTargetMode.POSITION, JointTargetMode.POSITION_VELOCITY, JointTargetMode.AUTO),
        )
        floating = np.isin(self.joint_type, FLOATING_JOINTS)
        given = floating[self.dof_joint] & follows & (self.joint_target_ke > 0.0)
        if not given.any():
            return
        joints = np.unique(self.dof_joint[given])
        dofs = np.isin(self.dof_joint, joints)
        self.joint_target_ke[dofs] = 0.0
        self.joint_target_kd[dofs] = 0.0
        self.joint_target_mode[dofs] = int(JointTargetMode.NONE)
        others = f" and {len(joints) - 1} more" if len(joints) > 1 else ""
        warnings.warn(
            f"{self.builder.joint_name(int(joints[0]))}{others}: joint_target_ke and joint_target_kd of a "
            "free joint are ignored, since it has no position drive. Write gains to the degrees of freedom "
            "after it only; target_kd alone drives the velocity of a free joint.",
            PluriverseWarning,
            stacklevel=4,
        )

    def decide_target_modes(self) -> None:
        """Replace `JointTargetMode.AUTO` by the mode that the gains imply."""
        ke, kd, target_vel = self.joint_target_ke, self.joint_target_kd, self.joint_target_vel
        decided = np.select(
            [(ke > 0.0) & (kd * target_vel != 0.0), ke > 0.0, kd > 0.0],
            [JointTargetMode.POSITION_VELOCITY, JointTargetMode.POSITION, JointTargetMode.VELOCITY],
            JointTargetMode.NONE,
        )
        auto = self.joint_target_mode == JointTargetMode.AUTO
        self.joint_target_mode = np.where(auto, decided, self.joint_target_mode).astype(np.int32)

    def normalize(self) -> None:
        """Give quaternions and axes unit length."""
        for pose in (self.joint_X_p, self.joint_X_c, self.shape_transform):
            _normalize(pose[:, 3:])
        _normalize(self.joint_axis)
        for joint_types, offset in ((FLOATING_JOINTS, 3), ((JointType.BALL,), 0)):
            joints = np.flatnonzero(np.isin(self.joint_type, joint_types))
            columns = self.joint_q_start[joints][:, None] + offset + np.arange(4)
            quats = self.joint_q[columns]
            _normalize(quats)
            self.joint_q[columns] = quats


def _normalize(rows: np.ndarray) -> None:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    # Rows of length 1 keep their bits.
    np.divide(rows, length, out=rows, where=length != 1.0)
