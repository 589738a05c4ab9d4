"""Layouts: variants of equal structure share the indices of their bodies, joints and shapes.

A variant is then a row of values: masses, joint frames, gains, poses and sizes of shapes. Its shapes are laid
out in *slots*, the union over all variants. A slot is identified by its body, its role, and its number among
slots of both; it is disabled for variants without a shape for it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pluriverse.builder.shapes import appearance_index, mesh_index
from pluriverse.builder.snapshot import COLUMN_NAMES
from pluriverse.types import GeoType, ShapeFlags

PADDING_PREFIX = "pluriverse/pad/"
"""First part of the labels of slots that the first variant of a layout does not fill."""


@dataclass(frozen=True)
class Slot:
    """Place of a shape in a layout."""

    body_path: str
    """Label of the body below the root, with a slash in front; "/" for the world."""
    role: str
    """Its role, "visual", "collision" or "site"."""
    ordinal: int
    """Number among the slots of this body and role."""
    type: GeoType
    """Its geometry."""
    filled_by: dict[str, str] = field(default_factory=dict, compare=False)
    """Label of the shape of each variant that fills it."""


@dataclass
class Layout:
    """Variants that share one structure."""

    builder: Any
    """A builder of the first variant, with all slots."""
    variants: list[int]
    """Variants, as indices of the entity, in the order of their rows."""
    slots: list[Slot]
    """Slots, in the order of the shapes of `builder`."""
    slot_of_shape: list[np.ndarray]
    """Slot of each shape of each variant, in the order of `variants`."""


class _Group:
    """A layout while variants are added to it."""

    def __init__(self) -> None:
        self.variants: list[int] = []
        self.slot_of_key: dict[tuple[Any, ...], int] = {}
        self.slot_of_shape: list[np.ndarray] = []
        self.filler: list[tuple[int, int]] = []  # variant and shape that a slot was made for
        self.filters: set[tuple[int, int]] = set()
        self.fillings: set[frozenset[int]] = set()

    def add(self, variant: int, builder: Any) -> bool:
        """Add a variant of equal structure, if its collision filters do not contradict the others."""
        keys = _slot_keys(builder)
        known = dict(self.slot_of_key)
        slots = np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
        pairs = np.sort(slots[np.asarray(builder.shape_collision_filter_pairs)], axis=1)
        filters = {(int(a), int(b)) for a, b in pairs}
        filled = frozenset(slots.tolist())
        for first, second in self.filters - filters:
            if first in filled and second in filled:
                return False
        for first, second in filters - self.filters:
            if any(first in other and second in other for other in self.fillings):
                return False
        for shape, slot in enumerate(slots.tolist()):
            if slot == len(self.filler):
                self.filler.append((variant, shape))
        self.variants.append(variant)
        self.slot_of_key = known
        self.slot_of_shape.append(slots)
        self.filters |= filters
        self.fillings.add(filled)
        return True


def find_layouts(names: Sequence[str], builders: Sequence[Any], *, share: bool) -> list[Layout]:
    """Return the layouts of the variants of an entity, in the order of their first variants.

    Args:
        names: Names of the variants.
        builders: Their builders.
        share: Whether variants of equal structure share a layout.
    """
    groups: dict[Any, list[_Group]] = {}
    ordered: list[_Group] = []
    for variant, builder in enumerate(builders):
        key = _structure(builder) if share else variant
        alike = groups.setdefault(key, [])
        if not any(group.add(variant, builder) for group in alike):
            group = _Group()
            group.add(variant, builder)
            alike.append(group)
            ordered.append(group)
    return [_layout(group, names, builders) for group in ordered]


def body_paths(builder: Any) -> list[str]:
    """Return the labels of bodies without that of their root, which begins with a slash."""
    parent = np.full(builder.body_count, -1, dtype=np.int64)
    parent[builder.joint_child] = builder.joint_parent
    paths = []
    for body, label in enumerate(builder.body_label):
        root, steps = body, 0
        while parent[root] >= 0 and steps < builder.body_count:
            root, steps = int(parent[root]), steps + 1
        top = builder.body_label[root]
        inside = label[len(top) :] if label.startswith(f"{top}/") else "" if body == root else f"/{label}"
        paths.append(f"/{top.rpartition('/')[2]}{inside}")
    return paths


def used_meshes(builder: Any) -> list[int]:
    """Return the indices of the meshes that shapes have."""
    return [index for index in np.unique(builder.shape_source_index).tolist() if index >= 0]


def shape_role(flags: int) -> str:
    """Return what a shape of these flags is for."""
    if flags & ShapeFlags.SITE:
        return "site"
    return "collision" if flags & ShapeFlags.COLLIDE_SHAPES else "visual"


def _structure(builder: Any) -> tuple[Any, ...]:
    """Return the common structure of variants of one layout; roots may have different names."""
    below = tuple(path.partition("/")[2].partition("/")[2] for path in body_paths(builder))
    joints = tuple(
        label.rpartition("/")[2] if parent >= 0 else ""
        for label, parent in zip(builder.joint_label, builder.joint_parent, strict=True)
    )
    arrays = (
        builder.joint_type,
        builder.joint_parent,
        builder.joint_child,
        builder.joint_dof_dim,
        builder.joint_articulation,
        builder.joint_collision_filter_parent & (builder.joint_parent >= 0),
        builder.joint_enabled,
        builder.joint_target_mode,  # which actuators there are
        builder.body_flags,
        builder.body_mass > 0.0,  # whether a body is only a joint between two others
        *(
            getattr(builder, f"equality_constraint_{name}")
            for name in ("type", "body1", "body2", "joint1", "joint2")
        ),
    )
    contents = (np.ascontiguousarray(array).tobytes() for array in arrays)
    return (
        builder.body_count,
        builder.articulation_count,
        below,
        joints,
        *contents,
        *_custom_contents(builder),
    )


def _custom_contents(builder: Any) -> Iterator[tuple[str, bytes, Any]]:
    """Yield the custom attributes that have values. Variants share a layout only if these agree."""
    columns = {key: attribute.column for key, attribute in builder.custom_attributes.read_all()}
    for key, column in sorted((key, column) for key, column in columns.items() if column.size):
        if column.given.any():
            rows = column.rows
            yield key, column.given.tobytes(), repr(rows.tolist()) if rows.dtype == object else rows.tobytes()


def _slot_keys(builder: Any) -> list[tuple[Any, ...]]:
    """Return the key that each shape shares with those of other variants in the same slot, and its number."""
    counts: dict[tuple[Any, ...], int] = {}
    keys = []
    finite = (builder.shape_scale[:, :2] > 0.0).all(axis=1)  # a plane with both sizes collides as a slab
    fields = [
        builder.meshes[index].content_key if type == GeoType.HFIELD and index >= 0 else ""
        for index, type in zip(builder.shape_source_index.tolist(), builder.shape_type.tolist(), strict=True)
    ]
    for body, flags, kind, group, filtered, solid, slab, heights in zip(
        builder.shape_body.tolist(),
        builder.shape_flags.tolist(),
        builder.shape_type.tolist(),
        builder.shape_collision_group.tolist(),
        builder.shape_collision_filter_parent.tolist(),
        builder.shape_is_solid.tolist(),
        finite.tolist(),
        fields,
        strict=True,
    ):
        key = (
            body,
            flags & ~int(ShapeFlags.VISIBLE),
            kind,
            group,
            filtered,
            solid,
            slab and kind == GeoType.PLANE,
            heights,
        )
        number = counts.get(key, 0)
        counts[key] = number + 1
        keys.append((*key, number))
    return keys


def _layout(group: _Group, names: Sequence[str], builders: Sequence[Any]) -> Layout:
    """Return a group as a layout: a builder of the first variant with a shape for every slot."""
    from pluriverse.model_builder import ModelBuilder

    first = builders[group.variants[0]]
    builder = ModelBuilder()
    builder.add_builder(first)
    builder.own_gravity = None  # that of the scene acts
    paths = body_paths(first)
    slots: list[Slot] = []
    ordinals: dict[tuple[str, str], int] = {}
    for slot, (variant, shape) in enumerate(group.filler):
        source = builders[variant]
        body = int(source.shape_body[shape])
        path, role = paths[body] if body >= 0 else "/", shape_role(int(source.shape_flags[shape]))
        ordinal = ordinals.get((path, role), 0)
        ordinals[path, role] = ordinal + 1
        slots.append(Slot(path, role, ordinal, GeoType(int(source.shape_type[shape]))))
        if slot >= first.shape_count:
            _add_slot(builder, source, shape, f"{PADDING_PREFIX}{path.strip('/')}/{role}/{ordinal}")
    for variant, shape_slots in zip(group.variants, group.slot_of_shape, strict=True):
        for shape, slot in enumerate(shape_slots.tolist()):
            slots[slot].filled_by[names[variant]] = builders[variant].shape_label[shape]
        # Meshes of all variants, so that a shape can use any of them.
        for index in used_meshes(builders[variant]):
            mesh_index(builder, builders[variant].meshes[index])
        for appearance in builders[variant].appearances:
            appearance_index(builder, appearance, names[variant])
    mine = {tuple(pair) for pair in np.sort(builder.shape_collision_filter_pairs, axis=1).tolist()}
    for pair in sorted(group.filters - mine):
        builder.add_shape_collision_filter_pair(*pair)
    return Layout(builder, group.variants, slots, group.slot_of_shape)


def _add_slot(builder: Any, source: Any, shape: int, label: str) -> None:
    """Add a massless copy of a shape of another builder."""
    mesh_index = int(source.shape_source_index[shape])
    appearance = int(source.shape_appearance[shape])
    config = builder.default_shape_cfg.copy()
    config.density = 0.0
    added = builder.add_shape(
        body=int(source.shape_body[shape]),
        type=int(source.shape_type[shape]),
        scale=source.shape_scale[shape],
        src=source.meshes[mesh_index] if mesh_index >= 0 else None,
        cfg=config,
        appearance=source.appearances[appearance] if appearance >= 0 else None,
        label=label,
    )
    for name in SHAPE_COLUMNS:
        getattr(builder, name)[added] = getattr(source, name)[shape]


SHAPE_COLUMNS = tuple(
    name
    for name in COLUMN_NAMES
    if name.startswith("shape_")
    and name not in ("shape_body", "shape_type", "shape_source_index", "shape_appearance", "shape_world")
)
"""Columns of a builder that describe a shape, without its body, type, mesh and appearance."""
