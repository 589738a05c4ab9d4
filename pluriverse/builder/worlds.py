"""Worlds from builders: `add_world`, `replicate` and `add_builder` copy whole tables.

Each copy is moved to its pose.
"""

import math
import warnings
from collections.abc import Sequence

import numpy as np

from pluriverse.builder.cameras import camera_count, move_camera_copies
from pluriverse.builder.custom_attribute import FREQUENCY_OF_KEY
from pluriverse.builder.custom_attributes import JOINT_CONSTRAINT_COUNT, custom_entity_count
from pluriverse.builder.custom_merge import append_custom_copies, declare_custom_attributes
from pluriverse.builder.equality_copies import append_equality_copies
from pluriverse.builder.inputs import (
    IDENTITY,
    Transform,
    Vector,
    as_gravity,
    as_transform,
    as_vector,
    copied_labels,
)
from pluriverse.builder.sensors import move_sensor_copies, sensor_counts
from pluriverse.builder.shapes import appearance_index, mesh_index
from pluriverse.builder.tables import BuilderTables
from pluriverse.model import poses
from pluriverse.types import FLOATING_JOINTS, Axis, Entity, JointType

_COPIED = (
    Entity.BODY,
    Entity.JOINT,
    Entity.JOINT_COORD,
    Entity.JOINT_DOF,
    Entity.ARTICULATION,
    Entity.SHAPE,
)


def add_builder(
    target: BuilderTables,
    builder: BuilderTables,
    xform: Transform | None = None,
    label_prefix: str | None = None,
) -> None:
    """Add everything in `builder` to the current world (or globally, outside of any).

    Args:
        builder: Builder without worlds; not changed.
        xform: Pose of its origin. It moves everything attached to the world: free joints, the parent frames
            of other joints to the world, and shapes of the world.
        label_prefix: Prefix of its labels, followed by a slash.

    Raises:
        ValueError: If `builder` has worlds of its own, or is this one.
    """
    _check_source(target, builder, "add_builder")
    offset = as_transform(xform, "add_builder: xform")
    _adopt_gravity(target, builder)
    _append_copies(target, builder, offset[None], np.array([target.current_world]), [label_prefix])


def add_world(
    target: BuilderTables,
    builder: BuilderTables,
    xform: Transform | None = None,
    label_prefix: str | None = None,
) -> None:
    """Add a new world that holds everything in `builder`; see `add_builder`.

    The world has the gravity of `builder` if that was set, else that of this builder.

    Raises:
        RuntimeError: If a world is open.
        ValueError: If `builder` has worlds of its own, or is this one.
    """
    _check_source(target, builder, "add_world")
    offset = as_transform(xform, "add_world: xform")
    _append_worlds(target, builder, offset[None], [label_prefix], "add_world")


def replicate(
    target: BuilderTables,
    builder: BuilderTables,
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
            line, a square or a cube of copies, centred at the origin but for the up axis. Zero keeps all
            worlds at the origin, which is best for accuracy: worlds never collide anyway.
        separate_worlds: Whether each copy is a world of its own. If not, all copies go to the current
            world (or are global, outside of any), as by `add_builder`, and collide with each other.
        xforms: Pose of the origin of each copy, instead of `spacing`.
        label_prefix: Prefix of the labels of all copies, followed by a slash.
        label_prefixes: One prefix per copy; None leaves the labels of a copy as they are.
        world_count: Another name of `copy_count`.

    Raises:
        RuntimeError: If a world is open and each copy is to have its own.
        TypeError: If the number of copies is given twice or not at all.
        ValueError: If `builder` has worlds of its own or is this one, a number is out of range, there is
            not one pose or prefix per copy, or both `spacing` and `xforms` or both kinds of prefix are
            given.
    """
    _check_source(target, builder, "replicate")
    if (copy_count is None) == (world_count is None):
        raise TypeError("replicate: give the number of copies once, as copy_count (or world_count).")
    name = "copy_count" if world_count is None else "world_count"
    count = copy_count if world_count is None else world_count
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
        raise ValueError(f"replicate: {name} is {count!r}, but it must be an integer >= 0.")
    offsets = np.tile(IDENTITY, (count, 1))
    if xforms is None:
        offsets[:, :3] = world_offsets(int(count), as_vector(spacing, "replicate: spacing"), target.up_axis)
    else:
        if np.any(as_vector(spacing, "replicate: spacing")):
            raise ValueError("replicate: both spacing and xforms are given; give one of them.")
        _check_length("xforms", xforms, count)
        for copy, xform in enumerate(xforms):
            offsets[copy] = as_transform(xform, f"replicate: xforms[{copy}]")
    prefixes: Sequence[str | None] = [label_prefix] * int(count)
    if label_prefixes is not None:
        if label_prefix is not None:
            raise ValueError("replicate: both label_prefix and label_prefixes are given; give one of them.")
        _check_length("label_prefixes", label_prefixes, count)
        prefixes = label_prefixes
    if separate_worlds:
        _append_worlds(target, builder, offsets, prefixes, "replicate")
    elif count > 0:
        _adopt_gravity(target, builder)
        _append_copies(target, builder, offsets, np.full(count, target.current_world), prefixes)


def _check_source(target: BuilderTables, builder: BuilderTables, what: str) -> None:
    if builder is target:
        raise ValueError(f"{what}: a builder cannot be added to itself. Copy it first (copy.deepcopy).")
    if builder.up_axis is not target.up_axis:
        raise ValueError(
            f"{what}: {builder.up_axis.name.lower()} points up in the builder to add, but "
            f"{target.up_axis.name.lower()} in this one. Give both the same up_axis."
        )
    if builder.world_count:
        raise ValueError(
            f"{what}: the builder to add has {builder.world_count} worlds of its own; worlds do not "
            "nest. Add the builders that its worlds were made from."
        )


def _adopt_gravity(target: BuilderTables, builder: BuilderTables) -> None:
    """Adopt the gravity of a builder that is merged into the current world, if the world has none."""
    if builder.own_gravity is None:
        return
    theirs = as_gravity(builder.own_gravity, builder.up_axis)
    world = target.current_world
    if world >= 0:
        rows = target.tables[Entity.WORLD].view("gravity")
        if np.isnan(rows[world]).any():
            rows[world] = theirs
        mine = rows[world]
    else:
        if target.own_gravity is None:
            target.gravity = builder.own_gravity
        mine = as_gravity(target.gravity, target.up_axis)
    if not np.array_equal(mine, theirs):
        where = f"world {world}" if world >= 0 else "the builder"
        warnings.warn(
            f"add_builder: gravity {theirs.tolist()} m/s² of the added builder is not used, because "
            f"{where} has {mine.tolist()} m/s² already. Set gravity in one place only.",
            stacklevel=3,
        )


def _append_worlds(
    target: BuilderTables,
    builder: BuilderTables,
    offsets: np.ndarray,
    prefixes: Sequence[str | None],
    what: str,
) -> None:
    if target.current_world >= 0:
        raise RuntimeError(
            f"{what}: world {target.current_world} ('{target.world_label[target.current_world]}') is still "
            "open. Call end_world() first, or add_builder() to add to that world."
        )
    declare_custom_attributes(target, builder, what)
    worlds = np.arange(target.world_count, target.world_count + len(offsets))
    added = target.tables[Entity.WORLD].extend(len(offsets))
    if builder.own_gravity is not None:
        target.tables[Entity.WORLD].view("gravity")[added] = as_gravity(builder.own_gravity, builder.up_axis)
    target.world_label += [f"world_{world}" for world in worlds]
    _append_copies(target, builder, offsets, worlds, prefixes)


def _append_copies(
    target: BuilderTables,
    builder: BuilderTables,
    offsets: np.ndarray,
    worlds: np.ndarray,
    prefixes: Sequence[str | None],
) -> None:
    """Append one copy of all entities of `builder` per row of `offsets`, in the given worlds."""
    declare_custom_attributes(target, builder, "add_builder")
    target.requested_state_attributes |= builder.requested_state_attributes
    count = len(offsets)
    bodies, joints, coords, dofs, articulations, shapes = (
        target.tables[entity].extend_copies(builder.tables[entity], count) for entity in _COPIED
    )
    filters = target.shape_filters.extend_copies(builder.shape_filters, count)

    first_body = bodies.start + builder.body_count * np.arange(count)
    first_articulation = articulations.start + builder.articulation_count * np.arange(count)
    _shift(target.column("joint_parent")[joints], first_body, keep_negative=True)
    _shift(target.column("joint_child")[joints], first_body)
    _shift(
        target.column("joint_q_start")[joints],
        coords.start + builder.joint_coord_count * np.arange(count),
    )
    _shift(
        target.column("joint_qd_start")[joints],
        dofs.start + builder.joint_dof_count * np.arange(count),
    )
    _shift(target.column("joint_articulation")[joints], first_articulation, keep_negative=True)
    _shift(target.column("shape_body")[shapes], first_body, keep_negative=True)
    _shift(target.shape_filters.view("shape")[filters], shapes.start + builder.shape_count * np.arange(count))
    if builder.meshes:
        # The last entry, which shapes without a mesh (-1) address, stays -1.
        new_index = np.array([*(mesh_index(target, mesh) for mesh in builder.meshes), -1], dtype=np.int32)
        sources = target.column("shape_source_index")
        sources[shapes] = new_index[sources[shapes]]
    if builder.appearances:
        appearances = [
            appearance_index(target, appearance, "add_builder") for appearance in builder.appearances
        ]
        new_index = np.array([*appearances, -1], dtype=np.int32)
        indices = target.column("shape_appearance")
        indices[shapes] = new_index[indices[shapes]]
    for column, added in (
        ("body_world", bodies),
        ("joint_world", joints),
        ("articulation_world", articulations),
        ("shape_world", shapes),
    ):
        target.column(column)[added] = np.repeat(worlds, (added.stop - added.start) // max(count, 1))

    for mine, theirs in (
        (target.body_label, builder.body_label),
        (target.joint_label, builder.joint_label),
        (target.articulation_label, builder.articulation_label),
        (target.shape_label, builder.shape_label),
    ):
        mine += copied_labels(theirs, prefixes)

    first_joint = joints.start + builder.joint_count * np.arange(count)
    first_equality = target.equality_constraint_count
    append_equality_copies(target, builder, offsets, worlds, first_body, first_joint, prefixes)
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
    steps = {kind: custom_entity_count(builder, FREQUENCY_OF_KEY[kind]) for kind in first}
    begins = {kind: begin + steps[kind] * np.arange(count) for kind, begin in first.items()}
    first_camera, first_sensor = camera_count(target), sensor_counts(target)
    append_custom_copies(target, builder, worlds, begins, prefixes)
    if (offsets != IDENTITY).any():
        move_camera_copies(target, offsets, first_camera)
        move_sensor_copies(target, offsets, first_sensor)
        _move_copies(target, builder, offsets, bodies, joints, coords, dofs, shapes)


def _move_copies(
    target: BuilderTables,
    builder: BuilderTables,
    offsets: np.ndarray,
    bodies: slice,
    joints: slice,
    coords: slice,
    dofs: slice,
    shapes: slice,
) -> None:
    """Move what is attached to the world in each copy by the pose of that copy."""
    count = len(offsets)
    _move(target.column("body_q")[bodies], offsets, np.arange(builder.body_count))
    free = builder.joint_type == JointType.FREE
    rooted = builder.joint_parent < 0
    _move(target.column("joint_X_p")[joints], offsets, np.flatnonzero(rooted & ~free))
    _move(
        target.column("shape_transform")[shapes],
        offsets,
        np.flatnonzero(builder.shape_body < 0),
    )
    free_joints = np.flatnonzero(free & rooted)
    if len(free_joints):
        q = target.column("joint_q")[coords].reshape(count, -1)
        columns = builder.joint_q_start[free_joints][:, None] + np.arange(7)
        frame = builder.joint_X_p[free_joints]
        # Seen from the frames, which stay: the identity, or else X_p^-1 offset X_p.
        displacement = poses.compose(poses.inverse(frame), poses.compose(offsets[:, None, :], frame))
        displacement = np.where((frame == IDENTITY).all(axis=1)[:, None], offsets[:, None, :], displacement)
        q[:, columns] = poses.compose(displacement, q[:, columns])
    floating = np.flatnonzero(np.isin(builder.joint_type, FLOATING_JOINTS) & rooted)
    if len(floating) and (offsets[:, 3:] != IDENTITY[3:]).any():
        qd = target.column("joint_qd")[dofs].reshape(count, -1)
        for part in (0, 3):  # linear velocity, angular velocity: both in world axes
            columns = builder.joint_qd_start[floating][:, None] + part + np.arange(3)
            qd[:, columns] = poses.rotate(
                np.broadcast_to(offsets[:, None, 3:], (count, len(floating), 4)), qd[:, columns]
            )


def world_offsets(world_count: int, spacing: np.ndarray, up_axis: Axis = Axis.Z) -> np.ndarray:
    """Return the position of each world [m], shape [world, 3].

    The axes with a spacing span a line, square or cube, filled along the first axis first, and centred except
    along the up axis, so that worlds stand on the ground.
    """
    offsets = np.zeros((world_count, 3))
    axes = np.flatnonzero(spacing)
    if len(axes) == 0 or world_count == 0:
        return offsets
    side = math.ceil(round(world_count ** (1.0 / len(axes)), 9))  # 64 ** (1 / 3) is 3.9999...
    world = np.arange(world_count)
    for index, axis in enumerate(axes):
        step = world // side**index
        offsets[:, axis] = spacing[axis] * (step if index == len(axes) - 1 else step % side)
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
