"""Worlds from builders: `add_world`, `replicate` and `add_builder` copy whole tables.

A copy is shifted to where it stands.
"""

import math
import warnings
from collections.abc import Sequence

import numpy as np

from pluriverse.builder.cameras import camera_count, move_camera_copies
from pluriverse.builder.custom_attribute import FREQUENCY_OF_KEY
from pluriverse.builder.custom_attributes import JOINT_CONSTRAINT_COUNT
from pluriverse.builder.custom_merge import append_custom_copies, declare_custom_attributes
from pluriverse.builder.equality import EqualityBuilder
from pluriverse.builder.inputs import (
    IDENTITY,
    Transform,
    Vector,
    as_gravity,
    as_transform,
    as_vector,
    copied_labels,
)
from pluriverse.builder.sensors import move_sensor_copies, sensor_count
from pluriverse.model import poses
from pluriverse.types import FLOATING_JOINTS, Axis, JointType


class WorldBuilder(EqualityBuilder):
    """The part of a builder that copies other builders."""

    def add_builder(
        self, builder: "WorldBuilder", xform: Transform | None = None, label_prefix: str | None = None
    ) -> None:
        """Add everything in `builder` to the current world (or globally, outside of any).

        Args:
            builder: Builder without worlds; not changed.
            xform: Where its origin stands. Moves what is attached to the world: free joints, the parent
                frames of other joints to the world, and shapes of the world.
            label_prefix: Put before its labels, with a slash.

        Raises:
            ValueError: If `builder` has worlds of its own, or is this one.
        """
        self._check_source(builder, "add_builder")
        offset = as_transform(xform, "add_builder: xform")
        self._adopt_gravity(builder)
        self._append_copies(builder, offset[None], np.array([self.current_world]), [label_prefix])

    def add_world(
        self, builder: "WorldBuilder", xform: Transform | None = None, label_prefix: str | None = None
    ) -> None:
        """Add a new world that holds everything in `builder`; see `add_builder`.

        The world has the gravity of `builder` if that was set, else that of this builder.

        Raises:
            RuntimeError: If a world is open.
            ValueError: If `builder` has worlds of its own, or is this one.
        """
        self._check_source(builder, "add_world")
        offset = as_transform(xform, "add_world: xform")
        self._append_worlds(builder, offset[None], [label_prefix], "add_world")

    def replicate(
        self,
        builder: "WorldBuilder",
        copy_count: int | None = None,
        spacing: Vector = (0.0, 0.0, 0.0),
        *,
        separate_worlds: bool = True,
        xforms: Sequence[Transform] | None = None,
        label_prefix: str | None = None,
        label_prefixes: Sequence[str | None] | None = None,
        world_count: int | None = None,
    ) -> None:
        """Add `copy_count` new worlds that each hold everything in `builder`; see `add_world`.

        Args:
            builder: Builder without worlds; not changed.
            copy_count: Number of copies.
            spacing: Distance of neighbouring copies along each axis [m]. The axes with a distance span a
                line, a square or a cube of copies, centred at the origin but for the up axis. Zero keeps
                all worlds at the origin, which is best for accuracy: worlds never collide anyway.
            separate_worlds: Whether each copy is a world of its own. If not, all copies go to the current
                world (or are global, outside of any), as by `add_builder`, and collide with each other.
            xforms: Where the origin of each copy stands, instead of `spacing`.
            label_prefix: Put before the labels of all copies, with a slash.
            label_prefixes: One prefix per copy; None leaves the labels of a copy as they are.
            world_count: Another name of `copy_count`.

        Raises:
            RuntimeError: If a world is open and each copy is to have its own.
            TypeError: If the number of copies is given twice or not at all.
            ValueError: If `builder` has worlds of its own or is this one, a number is out of range, there is
                not one pose or prefix per copy, or both `spacing` and `xforms` or both kinds of prefix are
                given.
        """
        self._check_source(builder, "replicate")
        if (copy_count is None) == (world_count is None):
            raise TypeError("replicate: give the number of copies once, as copy_count (or world_count).")
        name = "copy_count" if world_count is None else "world_count"
        count = copy_count if world_count is None else world_count
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
            raise ValueError(f"replicate: {name} is {count!r}, but it must be an integer >= 0.")
        offsets = np.tile(IDENTITY, (count, 1))
        if xforms is None:
            offsets[:, :3] = world_offsets(int(count), as_vector(spacing, "replicate: spacing"), self.up_axis)
        else:
            if np.any(as_vector(spacing, "replicate: spacing")):
                raise ValueError("replicate: both spacing and xforms are given; give one of them.")
            _check_length("xforms", xforms, count)
            for copy, xform in enumerate(xforms):
                offsets[copy] = as_transform(xform, f"replicate: xforms[{copy}]")
        prefixes: Sequence[str | None] = [label_prefix] * int(count)
        if label_prefixes is not None:
            if label_prefix is not None:
                raise ValueError(
                    "replicate: both label_prefix and label_prefixes are given; give one of them."
                )
            _check_length("label_prefixes", label_prefixes, count)
            prefixes = label_prefixes
        if separate_worlds:
            self._append_worlds(builder, offsets, prefixes, "replicate")
        elif count > 0:
            self._adopt_gravity(builder)
            self._append_copies(builder, offsets, np.full(count, self.current_world), prefixes)

    def copy_global_bodies(self) -> None:
        """Give every world a copy of the bodies and joints of no world.

        A model with worlds cannot have bodies of no world. With them go their articulations, shapes, equality
        constraints and custom attributes, and rows of custom frequencies that refer to them. Shapes attached
        to the world itself (`body=-1`) stay shared. A world has its copies, under the same labels, in front
        of what is its own, so indices of entities change. Without worlds or such bodies nothing happens.

        Call it when all worlds and all bodies were added.

        Raises:
            RuntimeError: If a world is open.
            ValueError: If a custom attribute has values that cannot be taken along.
        """
        from pluriverse.builder.global_bodies import copy_global_bodies

        if self.current_world >= 0:
            raise RuntimeError(
                f"copy_global_bodies: world {self.current_world} "
                f"('{self.world_label[self.current_world]}') is still open. Call end_world() first."
            )
        copy_global_bodies(self)

    def _check_source(self, builder: "WorldBuilder", what: str) -> None:
        if builder is self:
            raise ValueError(f"{what}: a builder cannot be added to itself. Copy it first (copy.deepcopy).")
        if builder.up_axis is not self.up_axis:
            raise ValueError(
                f"{what}: {builder.up_axis.name.lower()} points up in the builder to add, but "
                f"{self.up_axis.name.lower()} in this one. Give both the same up_axis."
            )
        if builder.world_count:
            raise ValueError(
                f"{what}: the builder to add has {builder.world_count} worlds of its own; worlds do not "
                "nest. Add the builders that its worlds were made from."
            )

    def _adopt_gravity(self, builder: "WorldBuilder") -> None:
        """Take over the gravity of a builder that is merged into the current world, if that has none."""
        if builder._gravity is None:
            return
        theirs = as_gravity(builder._gravity, builder.up_axis)
        world = self.current_world
        if world >= 0:
            rows = self._worlds.view("gravity")
            if np.isnan(rows[world]).any():
                rows[world] = theirs
            mine = rows[world]
        else:
            if self._gravity is None:
                self.gravity = builder._gravity
            mine = as_gravity(self.gravity, self.up_axis)
        if not np.array_equal(mine, theirs):
            place = f"world {world}" if world >= 0 else "the builder"
            warnings.warn(
                f"add_builder: gravity {theirs.tolist()} m/s² of the added builder is not used, because "
                f"{place} has {mine.tolist()} m/s² already. Set gravity in one place only.",
                stacklevel=3,
            )

    def _append_worlds(
        self, builder: "WorldBuilder", offsets: np.ndarray, prefixes: Sequence[str | None], what: str
    ) -> None:
        if self.current_world >= 0:
            raise RuntimeError(
                f"{what}: world {self.current_world} ('{self.world_label[self.current_world]}') is still "
                "open. Call end_world() first, or add_builder() to add to that world."
            )
        declare_custom_attributes(self, builder, what)
        worlds = np.arange(self.world_count, self.world_count + len(offsets))
        added = self._worlds.extend(len(offsets))
        if builder._gravity is not None:
            self._worlds.view("gravity")[added] = as_gravity(builder._gravity, builder.up_axis)
        self.world_label += [f"world_{world}" for world in worlds]
        self._append_copies(builder, offsets, worlds, prefixes)

    def _append_copies(
        self,
        builder: "WorldBuilder",
        offsets: np.ndarray,
        worlds: np.ndarray,
        prefixes: Sequence[str | None],
    ) -> None:
        """Append one copy of all entities of `builder` per row of `offsets`, in the given worlds."""
        declare_custom_attributes(self, builder, "add_builder")
        count = len(offsets)
        bodies = self._bodies.extend_copies(builder._bodies, count)
        joints = self._joints.extend_copies(builder._joints, count)
        coords = self._coords.extend_copies(builder._coords, count)
        dofs = self._dofs.extend_copies(builder._dofs, count)
        articulations = self._articulations.extend_copies(builder._articulations, count)
        shapes = self._shapes.extend_copies(builder._shapes, count)
        filters = self._filters.extend_copies(builder._filters, count)

        first_body = bodies.start + builder.body_count * np.arange(count)
        first_articulation = articulations.start + builder.articulation_count * np.arange(count)
        _shift(self._joints.view("parent")[joints], first_body, keep_negative=True)
        _shift(self._joints.view("child")[joints], first_body)
        _shift(
            self._joints.view("q_start")[joints], coords.start + builder.joint_coord_count * np.arange(count)
        )
        _shift(self._joints.view("qd_start")[joints], dofs.start + builder.joint_dof_count * np.arange(count))
        _shift(self._joints.view("articulation")[joints], first_articulation, keep_negative=True)
        _shift(self._shapes.view("body")[shapes], first_body, keep_negative=True)
        _shift(self._filters.view("shape")[filters], shapes.start + builder.shape_count * np.arange(count))
        if builder.meshes:
            # The last entry, which the shapes without a mesh (-1) address, stays -1.
            mesh_index = np.array([*(self._mesh_index(mesh) for mesh in builder.meshes), -1], dtype=np.int32)
            self._shapes.view("mesh")[shapes] = mesh_index[self._shapes.view("mesh")[shapes]]
        if builder.appearances:
            appearances = [self._appearance_index(look, "add_builder") for look in builder.appearances]
            appearance_index = np.array([*appearances, -1], dtype=np.int32)
            looks = self._shapes.view("appearance")
            looks[shapes] = appearance_index[looks[shapes]]
        for table, added in (
            (self._bodies, bodies),
            (self._joints, joints),
            (self._articulations, articulations),
            (self._shapes, shapes),
        ):
            table.view("world")[added] = np.repeat(worlds, (added.stop - added.start) // max(count, 1))

        for mine, theirs in (
            (self.body_label, builder.body_label),
            (self.joint_label, builder.joint_label),
            (self.articulation_label, builder.articulation_label),
            (self.shape_label, builder.shape_label),
        ):
            mine += copied_labels(theirs, prefixes)

        first_joint = joints.start + builder.joint_count * np.arange(count)
        first_equality = self.equality_constraint_count
        self._append_equality_copies(builder, offsets, worlds, first_body, first_joint, prefixes)
        first = {
            "body": bodies.start,
            "joint": joints.start,
            "joint_coord": coords.start,
            "joint_dof": dofs.start,
            "joint_constraint": JOINT_CONSTRAINT_COUNT * joints.start - dofs.start,
            "articulation": articulations.start,
            "shape": shapes.start,
            "equality_constraint": first_equality,
        }
        steps = {kind: builder.custom_entity_count(FREQUENCY_OF_KEY[kind]) for kind in first}
        begins = {kind: begin + steps[kind] * np.arange(count) for kind, begin in first.items()}
        first_camera, first_sensor = camera_count(self), sensor_count(self)
        append_custom_copies(self, builder, worlds, begins, prefixes)
        if (offsets != IDENTITY).any():
            move_camera_copies(self, offsets, first_camera)
            move_sensor_copies(self, offsets, first_sensor)
            self._move_copies(builder, offsets, bodies, joints, coords, dofs, shapes)

    def _move_copies(
        self,
        builder: "WorldBuilder",
        offsets: np.ndarray,
        bodies: slice,
        joints: slice,
        coords: slice,
        dofs: slice,
        shapes: slice,
    ) -> None:
        """Move what is attached to the world in each copy by the pose of that copy."""
        count = len(offsets)
        _move(self._bodies.view("q")[bodies], offsets, np.arange(builder.body_count))
        free = builder.joint_type == JointType.FREE
        rooted = builder.joint_parent < 0
        _move(self._joints.view("X_p")[joints], offsets, np.flatnonzero(rooted & ~free))
        _move(self._shapes.view("transform")[shapes], offsets, np.flatnonzero(builder.shape_body < 0))
        free_joints = np.flatnonzero(free & rooted)
        if len(free_joints):
            q = self._coords.view("q")[coords].reshape(count, -1)
            columns = builder.joint_q_start[free_joints][:, None] + np.arange(7)
            frame = builder.joint_X_p[free_joints]
            # Seen from the frames, which stay: the identity, or else X_p^-1 offset X_p.
            seen = poses.compose(poses.inverse(frame), poses.compose(offsets[:, None, :], frame))
            seen = np.where((frame == IDENTITY).all(axis=1)[:, None], offsets[:, None, :], seen)
            q[:, columns] = poses.compose(seen, q[:, columns])
        floating = np.flatnonzero(np.isin(builder.joint_type, FLOATING_JOINTS) & rooted)
        if len(floating) and (offsets[:, 3:] != IDENTITY[3:]).any():
            qd = self._dofs.view("qd")[dofs].reshape(count, -1)
            for part in (0, 3):  # linear velocity, angular velocity: both in world axes
                columns = builder.joint_qd_start[floating][:, None] + part + np.arange(3)
                qd[:, columns] = poses.rotate(
                    np.broadcast_to(offsets[:, None, 3:], (count, len(floating), 4)), qd[:, columns]
                )


def world_offsets(world_count: int, spacing: np.ndarray, up_axis: Axis = Axis.Z) -> np.ndarray:
    """Return where each world stands [m], shape [world, 3].

    The axes with a spacing span a line, square or cube, filled along the first of them first, and centred
    except along the axis that points up, so that worlds stand on the ground.
    """
    offsets = np.zeros((world_count, 3))
    axes = np.flatnonzero(spacing)
    if len(axes) == 0 or world_count == 0:
        return offsets
    side = math.ceil(round(world_count ** (1.0 / len(axes)), 9))  # 64 ** (1 / 3) is 3.9999...
    world = np.arange(world_count)
    for place, axis in enumerate(axes):
        step = world // side**place
        offsets[:, axis] = spacing[axis] * (step if place == len(axes) - 1 else step % side)
    centre = offsets.min(axis=0) + 0.5 * (offsets.max(axis=0) - offsets.min(axis=0))
    centre[up_axis] = 0.0
    return offsets - centre


def _check_length(name: str, values: Sequence[object], count: int) -> None:
    if len(values) != count:
        raise ValueError(f"replicate: {name} has {len(values)} entries, but there are {count} copies.")


def _shift(values: np.ndarray, first: np.ndarray, *, keep_negative: bool = False) -> None:
    """Add the first index of each copy to the indices in it."""
    if not len(values):
        return
    rows = values.reshape(len(first), -1)
    shifted = rows + first[:, None]
    rows[...] = np.where(rows < 0, rows, shifted) if keep_negative else shifted


def _move(values: np.ndarray, offsets: np.ndarray, entries: np.ndarray) -> None:
    """Move the poses of some entries of every copy by the pose of the copy."""
    if len(entries):
        rows = values.reshape(len(offsets), -1, 7)
        rows[:, entries] = poses.compose(offsets[:, None, :], rows[:, entries])
