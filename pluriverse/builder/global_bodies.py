"""Global bodies: copy the bodies and joints that belong to no world into every world.

Copied are the global bodies, joints, articulations and equality constraints, the shapes on these bodies, and
the rows of custom frequencies that belong to them. Global shapes that are attached to the world itself stay
shared by all worlds. In each world the copies precede its own entities.
"""

import numpy as np

from pluriverse.builder.custom_attribute import FREQUENCY_OF_KEY, CustomAttribute
from pluriverse.builder.custom_attribute_table import CustomAttributeTable
from pluriverse.builder.custom_attributes import JOINT_CONSTRAINT_COUNT, custom_entity_count, rows_of
from pluriverse.builder.custom_merge import kinds_of_rows
from pluriverse.builder.tables import BuilderTables
from pluriverse.types import Entity

_WORLD = Entity.WORLD.key
_WITH_WORLD = ("body", "joint", "articulation", "equality_constraint", "shape")
"""Kinds of entities that have a world."""


class Layout:
    """The new order of the entities of one kind: front, worlds, back.

    Args:
        world: World of each entity so far, -1 for none.
        copied: Which entities of no world are copied into each world.
        world_count: Number of worlds.
    """

    def __init__(self, world: np.ndarray, copied: np.ndarray, world_count: int):
        shared, own = np.flatnonzero(copied), np.flatnonzero(~copied)
        inside = np.flatnonzero(world >= 0)
        first = inside[0] if len(inside) else len(world)
        outside = np.where(own < first, -1, world_count)
        block = np.concatenate(
            [
                np.repeat(np.arange(world_count), len(shared)),
                np.where(world[own] >= 0, world[own], outside),
            ]
        )
        origin = np.concatenate([np.tile(shared, world_count), own])
        is_own = np.arange(len(origin)) >= len(shared) * world_count
        order = np.lexsort((origin, is_own, block))
        self.origin = origin[order]
        """Former index of each entity."""
        self.world = np.where(block[order] < world_count, block[order], -1)
        """World of each entity."""
        new_index = np.empty(len(order), dtype=np.int64)
        new_index[order] = np.arange(len(order))
        self.copied = copied
        """Which of the former entities are copied."""
        self._copies = new_index[~is_own].reshape(world_count, len(shared))
        self._rank = np.cumsum(copied) - 1
        self._new_index = np.full(len(world) + 1, -1)  # the last entry is that of index -1
        self._new_index[own] = new_index[is_own]

    def moved(self, index: np.ndarray, world: np.ndarray) -> np.ndarray:
        """Return the new indices of entities for the given worlds; -1 stays."""
        index = np.asarray(index, dtype=np.int64)
        if not len(self.copied):
            return index
        is_copied = (index >= 0) & self.copied[np.maximum(index, 0)]
        result = self._new_index[np.maximum(index, -1)]
        if is_copied.any():
            world = np.broadcast_to(world, index.shape)[is_copied]
            result[is_copied] = self._copies[world, self._rank[index[is_copied]]]
        return result


class PartLayout:
    """The new order of coordinates or degrees of freedom of joints.

    Args:
        joints: New order of the joints.
        counts: Number of these per joint, shape [joint] in the former order.
    """

    def __init__(self, joints: Layout, counts: np.ndarray):
        self._joints = joints
        self._former = np.append(0, np.cumsum(counts)).astype(np.int64)
        own = counts[joints.origin]
        self.start = np.cumsum(own) - own
        """First entry of each joint."""
        first = np.repeat(self._former[joints.origin] - self.start, own)
        self.origin = first + np.arange(int(own.sum()))
        """Former index of each entry."""
        self.world = np.repeat(joints.world, own)
        """World of each entry."""
        self.copied = np.repeat(joints.copied, counts)
        """Which of the former entries are copied."""

    def moved(self, index: np.ndarray, world: np.ndarray) -> np.ndarray:
        """Return the new indices of entries for the given worlds; -1 stays."""
        index = np.asarray(index, dtype=np.int64)
        if self._former[-1] == 0:
            return index
        joint = np.searchsorted(self._former, np.maximum(index, 0), side="right") - 1
        moved_index = self.start[self._joints.moved(joint, world)] + index - self._former[joint]
        return np.where(index >= 0, moved_index, index)


Order = Layout | PartLayout


def copy_global_bodies(builder: BuilderTables) -> None:
    """Copy the global bodies and joints into every world.

    A model with worlds cannot have global bodies. Their articulations, shapes, equality constraints and
    custom attributes are copied too, and rows of custom frequencies that refer to them. Shapes attached to
    the world itself (`body=-1`) stay shared. In each world the copies, under the same labels, precede its own
    entities, so indices change. Without worlds or such bodies nothing happens.

    Call it when all worlds and all bodies were added.

    Raises:
        RuntimeError: If a world is open.
        ValueError: If a custom attribute has values that cannot be copied.
    """
    if builder.current_world >= 0:
        raise RuntimeError(
            f"copy_global_bodies: world {builder.current_world} "
            f"('{builder.world_label[builder.current_world]}') is still open. Call end_world() first."
        )
    worlds = {kind: getattr(builder, f"{kind}_world") for kind in _WITH_WORLD}
    copied = {kind: world < 0 for kind, world in worlds.items()}
    copied["shape"] = copied["shape"] & (builder.shape_body >= 0)
    if builder.world_count == 0 or not any(mask.any() for mask in copied.values()):
        return
    orders: dict[str, Order] = {
        kind: Layout(world, copied[kind], builder.world_count) for kind, world in worlds.items()
    }
    joints = orders["joint"]
    assert isinstance(joints, Layout)
    dof_count = builder.joint_dof_dim.sum(axis=1).astype(np.int64)
    coord_count = np.diff(np.append(builder.joint_q_start, builder.joint_coord_count))
    orders["joint_dof"] = PartLayout(joints, dof_count)
    orders["joint_coord"] = PartLayout(joints, coord_count)
    orders["joint_constraint"] = PartLayout(joints, JOINT_CONSTRAINT_COUNT - dof_count)
    kinds = {key: _kinds_of(builder, attribute) for key, attribute in builder.custom_attributes.items()}
    orders |= _order_rows(builder, copied, orders, kinds)
    attributes = CustomAttributeTable(
        {
            key: _moved_attribute(builder, attribute, kinds[key], orders)
            for key, attribute in builder.custom_attributes.items()
        }
    )
    _move_tables(builder, orders)
    for key in builder.custom_frequencies:
        rows = builder.custom_rows[key].taken(orders[key].origin)
        rows.view("world")[:] = orders[key].world
        builder.custom_rows[key] = rows
    builder.custom_attributes = attributes


def _kinds_of(builder: BuilderTables, attribute: CustomAttribute) -> np.ndarray | None:
    """Return the kind that the value of each row refers to, empty for none; None if no row refers to any."""
    if attribute.row_references is None and attribute.references is None:
        return None
    size = custom_entity_count(builder, attribute.frequency)
    if attribute.row_references is None:
        return np.full(size, attribute.references)
    return np.array([kind or "" for kind in kinds_of_rows(builder, attribute, size)], dtype=str)


def _order_rows(
    builder: BuilderTables,
    copied: dict[str, np.ndarray],
    orders: dict[str, Order],
    kinds: dict[str, np.ndarray | None],
) -> dict[str, Order]:
    """Return the new order of the rows of custom frequencies.

    If one global row refers to a copied entity, all global rows of its kind are copied, so that ranges of
    rows stay contiguous.
    """
    known = dict(copied)
    known |= {kind: order.copied for kind, order in orders.items() if isinstance(order, PartLayout)}
    world = {key: rows_of(builder, key).view("world").copy() for key in builder.custom_frequencies}
    known |= {key: np.zeros(len(rows), dtype=bool) for key, rows in world.items()}
    found = True
    while found:
        found = False
        for attribute in builder.custom_attributes.values():
            key, kind = attribute.frequency_key, kinds[attribute.key]
            if kind is None or key not in world or known[key].any():
                continue
            loose = np.flatnonzero(world[key] < 0)
            if _refers_to(attribute.column.resolved(len(world[key]))[loose], kind[loose], known):
                known[key] = world[key] < 0
                found = True
    return {key: Layout(rows, known[key], builder.world_count) for key, rows in world.items()}


def _refers_to(values: np.ndarray, kinds: np.ndarray, marked: dict[str, np.ndarray]) -> bool:
    """Return whether a value is the index of a marked entity."""
    for kind in set(kinds.tolist()) & set(marked):
        index = values[kinds == kind]
        if marked[kind][index[index >= 0]].any():
            return True
    return False


def _moved_attribute(
    builder: BuilderTables, attribute: CustomAttribute, kinds: np.ndarray | None, orders: dict[str, Order]
) -> CustomAttribute:
    """Return a custom attribute in the new order, with the indices that it holds.

    Raises:
        ValueError: If only the attribute's transformer knows how its values change.
    """
    result = attribute.copied()
    if attribute.reference_value_transformer is not None and attribute.column.given.any():
        raise ValueError(
            f"copy_global_bodies: {attribute.label} has a reference_value_transformer, which handles whole "
            "builders only. Put the global bodies into a separate builder, and add it to each "
            "world by add_builder()."
        )
    order = orders.get(attribute.frequency_key)
    world = np.arange(attribute.column.size)  # one of the whole model is seen from world 0
    if order is not None:
        count = custom_entity_count(builder, attribute.frequency)
        result.column = attribute.column.taken(order.origin, count)
        world = order.world
        kinds = None if kinds is None else kinds[order.origin]
    rows = result.column.rows
    if kinds is None or len(rows) == 0:
        return result
    for kind in set(kinds.tolist()):
        indices = np.flatnonzero(kinds[: len(rows)] == kind)
        seen_from = world[indices][(slice(None), *([None] * (rows.ndim - 1)))]
        if kind == _WORLD:
            rows[indices] = np.where(rows[indices] < 0, seen_from, rows[indices])
        elif kind in orders:
            rows[indices] = orders[kind].moved(rows[indices], seen_from)
    return result


def _move_tables(builder: BuilderTables, orders: dict[str, Order]) -> None:
    """Reorder the tables of the builder."""
    filters = _moved_filters(builder, orders["shape"])
    for kind, order in orders.items():
        entity = FREQUENCY_OF_KEY.get(kind)
        if entity not in builder.tables:
            continue
        builder.tables[entity] = builder.tables[entity].taken(order.origin)
        if isinstance(order, Layout):
            builder.column(f"{kind}_world")[:] = order.world
            labels = getattr(builder, f"{kind}_label")
            setattr(builder, f"{kind}_label", [labels[index] for index in order.origin.tolist()])
    for column, holder, kind in (
        ("joint_parent", "joint", "body"),
        ("joint_child", "joint", "body"),
        ("joint_articulation", "joint", "articulation"),
        ("shape_body", "shape", "body"),
        ("equality_constraint_body1", "equality_constraint", "body"),
        ("equality_constraint_body2", "equality_constraint", "body"),
        ("equality_constraint_joint1", "equality_constraint", "joint"),
        ("equality_constraint_joint2", "equality_constraint", "joint"),
    ):
        values = builder.column(column)
        values[:] = orders[kind].moved(values, builder.column(f"{holder}_world"))
    for column, kind in (("joint_q_start", "joint_coord"), ("joint_qd_start", "joint_dof")):
        order = orders[kind]
        assert isinstance(order, PartLayout)
        builder.column(column)[:] = order.start
    builder.shape_filters.size = 0
    added = builder.shape_filters.extend(len(filters))
    builder.shape_filters.view("shape")[added] = filters


def _moved_filters(builder: BuilderTables, order: Order) -> np.ndarray:
    """Return the filtered pairs of shapes; a pair with a copied shape becomes one per world."""
    assert isinstance(order, Layout)
    pairs = builder.shape_filters.view("shape").astype(np.int64)
    world = builder.shape_world[pairs].max(axis=1, initial=-1)
    everywhere = order.copied[pairs].any(axis=1) & (world < 0)
    count = builder.world_count
    pairs = np.concatenate([pairs[~everywhere], np.tile(pairs[everywhere], (count, 1))])
    world = np.concatenate([world[~everywhere], np.repeat(np.arange(count), int(everywhere.sum()))])
    return order.moved(pairs, world[:, None])
