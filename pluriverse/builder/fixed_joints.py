"""Collapsing of fixed joints: bodies that are fixed to others become part of them.

Mass, centre of mass, inertia, shapes, further joints, equality constraints, sensors and cameras are carried
over exactly, so that what moves moves as before, with fewer bodies and joints.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.custom_attributes import JOINT_CONSTRAINT_COUNT
from pluriverse.builder.custom_merge import taken_custom_attributes
from pluriverse.builder.sensors import SensorType
from pluriverse.builder.tables import BuilderTables
from pluriverse.geometry.inertia import MassProperties, combine_mass_properties, transform_mass_properties
from pluriverse.model import poses
from pluriverse.model.attributes import GRAVITY_COMPENSATION
from pluriverse.types import Entity, EqType, JointType
from pluriverse.warnings import PluriverseWarning

_IDENTITY = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
# Frames given by custom attributes, with the attributes that hold the bodies they are fixed to.
_FRAMES = (
    ("render:camera_xform", "render:camera_body"),
    ("sensor:sensor_xform", "sensor:sensor_body"),
    ("sensor:sensor_reference_xform", "sensor:sensor_reference_body"),
    ("sensor:segment_xform", "sensor:segment_body"),
    ("sensor:segment_reference_xform", "sensor:segment_reference_body"),
)


def collapse_fixed_joints(
    builder: BuilderTables, verbose: bool = False, joints_to_keep: Sequence[str | int] | None = None
) -> dict[str, dict[int, Any]]:
    """Make bodies that are fixed to others, or to the world, part of them; indices of entities change.

    Fixed joints that close a loop stay, and so do those whose force a sensor measures, with a warning.
    Articulations that are left without joints are removed.

    Args:
        verbose: Whether to print what became part of what.
        joints_to_keep: Labels or indices of fixed joints that stay.

    Returns:
        By former indices: `body_remap`, `joint_remap` and `articulation_remap` give the new index of each
        entity that is left (and -1 of -1); `body_merged_parent` gives the former index of the body that
        each other body is part of now, -1 for the world, and `body_merged_transform` its frame there.

    Raises:
        IndexError: If a joint to be kept does not exist.
        ValueError: If no joint has the label of one to be kept.
    """
    kept = _joints_to_keep(builder, joints_to_keep or ()) | _measured_joints(builder)
    welds, into, frame = _find_groups(builder, kept)
    body_kept = np.flatnonzero(~np.isin(np.arange(builder.body_count), builder.joint_child[welds]))
    body_index = _new_indices(body_kept, builder.body_count)
    merged = np.setdiff1d(np.arange(builder.body_count), body_kept)
    if verbose:
        for joint in welds:
            child = int(builder.joint_child[joint])
            print(f"{builder.joint_name(joint)}: {builder.body_name(child)} becomes part of", end=" ")
            print(builder.body_name(int(into[child])))
    _merge_masses(builder, merged, into, frame)
    _move_frames(builder, into, frame)
    joint_kept = np.setdiff1d(np.arange(builder.joint_count), welds)
    articulation = builder.joint_articulation
    emptied = np.setdiff1d(articulation[welds], articulation[joint_kept])
    articulation_kept = np.setdiff1d(np.arange(builder.articulation_count), emptied)
    within = (builder.equality_constraint_type != EqType.JOINT) & (
        into[builder.equality_constraint_body1] == into[builder.equality_constraint_body2]
    )
    orders = {
        "body": body_kept,
        "joint": joint_kept,
        "joint_constraint": _constraints_of(builder, joint_kept),
        "articulation": articulation_kept,
        "equality_constraint": np.flatnonzero(~within),
    }
    builder.custom_attributes = taken_custom_attributes(builder, orders, {"body": into[:-1]})
    _take_tables(builder, orders, body_index[into])
    return {
        "body_remap": {-1: -1, **_remap(body_kept)},
        "joint_remap": _remap(joint_kept),
        "articulation_remap": _remap(articulation_kept),
        "body_merged_parent": {int(body): int(into[body]) for body in merged},
        "body_merged_transform": {int(body): wp.transform(*frame[body]) for body in merged},
    }


def _joints_to_keep(builder: BuilderTables, named: Sequence[str | int]) -> set[int]:
    """Return the indices of joints given by labels or indices."""
    result: set[int] = set()
    for value in [named] if isinstance(named, str) else named:
        if isinstance(value, str):
            found = {joint for joint, label in enumerate(builder.joint_label) if label == value}
            if not found:
                raise ValueError(
                    f"collapse_fixed_joints: joints_to_keep has {value!r}, but no joint has this label. "
                    "Labels are in ModelBuilder.joint_label."
                )
            result |= found
        elif isinstance(value, int | np.integer) and 0 <= value < builder.joint_count:
            result.add(int(value))
        else:
            raise IndexError(
                f"collapse_fixed_joints: joints_to_keep has {value!r}, but there are {builder.joint_count} "
                "joints. Give labels, or indices that add_joint_*() returned."
            )
    return result


def _measured_joints(builder: BuilderTables) -> set[int]:
    """Return the fixed joints whose force is measured, and warn of them."""
    kinds = builder.custom_attributes.get("sensor:sensor_type")
    if kinds is None:
        return set()
    count = kinds.column.size
    measures = np.isin(kinds.column.resolved(count), (SensorType.FORCE, SensorType.TORQUE))
    bodies = builder.custom_attributes["sensor:sensor_body"].column.resolved(count)[measures]
    found = np.flatnonzero(
        (builder.joint_type == JointType.FIXED) & np.isin(builder.joint_child, bodies[bodies >= 0])
    )
    if len(found):
        warnings.warn(
            f"collapse_fixed_joints: {builder.joint_name(int(found[0]))}"
            + (f" and {len(found) - 1} more are" if len(found) > 1 else " is")
            + " kept, because sensors measure the force there. Name the joints in joints_to_keep, or leave "
            "the sensors out.",
            PluriverseWarning,
            stacklevel=3,
        )
    return set(found.tolist())


def _find_groups(builder: BuilderTables, kept: set[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the joints to remove, the body that each body is part of then, and its frame there.

    Bodies and frames have a last entry for the world (-1), so that indices can be looked up as they are.
    """
    kinds, parents, children = builder.joint_type, builder.joint_parent, builder.joint_child
    holds = builder.joint_articulation >= 0
    joint_count = np.bincount(children, minlength=builder.body_count)
    # A joint of no articulation closes a loop, unless nothing else holds its child.
    candidates = (kinds == JointType.FIXED) & builder.joint_enabled & (holds | (joint_count[children] == 1))
    weld_of = {
        int(children[joint]): int(joint) for joint in np.flatnonzero(candidates) if int(joint) not in kept
    }
    while True:
        into, frame = _follow(builder, weld_of)
        welds = np.array(sorted(weld_of.values()), dtype=np.int64)
        rest = np.setdiff1d(np.arange(builder.joint_count), welds)
        # The ends of a joint that stays must not become one body, and its child not part of the world.
        ends, child = into[parents[rest]], into[children[rest]]
        wrong = rest[(ends == child) | (child < 0)]
        blocked = {
            body for joint in wrong for body in (int(children[joint]), int(parents[joint])) if body in weld_of
        }
        if not blocked:
            return welds, into, frame
        weld_of = {body: joint for body, joint in weld_of.items() if body not in blocked}


def _follow(builder: BuilderTables, weld_of: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the body that each body is part of, and its frame there, with a last entry for the world."""
    into = np.arange(-1, builder.body_count)
    into = np.append(into[1:], -1)
    frame = np.tile(_IDENTITY, (builder.body_count + 1, 1))
    for body in weld_of:
        chain = [body]
        while (parent := int(builder.joint_parent[weld_of[chain[-1]]])) in weld_of:
            if parent in chain:  # a ring of fixed joints, which finalize refuses
                return _follow(builder, {key: value for key, value in weld_of.items() if key not in chain})
            chain.append(parent)
        into[body] = parent
        for link in chain:
            joint = weld_of[link]
            step = poses.compose(builder.joint_X_p[joint], poses.inverse(builder.joint_X_c[joint]))
            frame[body] = poses.compose(step, frame[body])
    return into, frame


def _merge_masses(builder: BuilderTables, merged: np.ndarray, into: np.ndarray, frame: np.ndarray) -> None:
    """Add the masses of bodies to those that they become part of, and keep the motion of free ones."""
    com_before = builder.body_com.copy()
    attribute = builder.custom_attributes.get(GRAVITY_COMPENSATION)
    for target in np.unique(into[merged]):
        if target < 0:
            continue
        if attribute is not None and attribute.column.size > 0:
            # The weight of all, which acts at their centre of mass.
            members = [target, *merged[into[merged] == target]]
            shares = attribute.column.resolved(builder.body_count)[members]
            masses = builder.body_mass[members]
            if (shares != shares[0]).any() and masses.sum() > 0.0:
                attribute.values[int(target)] = float(np.average(shares, weights=masses))
        parts = [_mass_of(builder, target)]
        for body in merged[into[merged] == target]:
            parts.append(transform_mass_properties(_mass_of(builder, body), frame[body, :3], frame[body, 3:]))
        total = combine_mass_properties(parts)
        builder.body_mass[target] = total.mass
        builder.body_com[target] = total.com if total.mass > 0.0 else com_before[target]
        builder.body_inertia[target] = total.inertia
    # The velocity of a free joint is that of the centre of mass.
    for joint in np.flatnonzero(builder.joint_type == JointType.FREE):
        child, dof = int(builder.joint_child[joint]), int(builder.joint_qd_start[joint])
        shift = builder.body_com[child] - com_before[child]
        rate = builder.joint_qd[dof + 3 : dof + 6]
        if shift.any() and rate.any():
            coord = int(builder.joint_q_start[joint])
            rotation = poses.quat_multiply(
                builder.joint_X_p[joint, 3:], builder.joint_q[coord + 3 : coord + 7]
            )
            builder.joint_qd[dof : dof + 3] += np.cross(rate, poses.rotate(rotation, shift))


def _mass_of(builder: BuilderTables, body: int) -> MassProperties:
    return MassProperties(
        float(builder.body_mass[body]), np.array(builder.body_com[body]), np.array(builder.body_inertia[body])
    )


def _move_frames(builder: BuilderTables, into: np.ndarray, frame: np.ndarray) -> None:
    """Express what is fixed to bodies in the frames of those that these become part of."""
    for column, bodies in (
        ("joint_X_p", builder.joint_parent),
        ("joint_X_c", builder.joint_child),
        ("shape_transform", builder.shape_body),
    ):
        values = builder.column(column)
        moved = into[bodies] != bodies
        values[moved] = poses.compose(frame[bodies[moved]], values[moved])
    kind = builder.equality_constraint_type
    first, second = (frame[getattr(builder, f"equality_constraint_body{end}")] for end in (1, 2))
    holder = np.where((kind == EqType.WELD)[:, None], second, first)
    of_bodies = kind != EqType.JOINT
    for name, moved in (
        ("anchor", holder[:, :3] + poses.rotate(holder[:, 3:], builder.equality_constraint_anchor)),
        ("axis", poses.rotate(first[:, 3:], builder.equality_constraint_axis)),
        (
            "relpose",
            poses.compose(poses.compose(first, builder.equality_constraint_relpose), poses.inverse(second)),
        ),
    ):
        builder.column(f"equality_constraint_{name}")[of_bodies] = moved[of_bodies]
    for key, holder_key in _FRAMES:
        attribute = builder.custom_attributes.get(key)
        if attribute is None or attribute.column.size == 0:
            continue
        custom = attribute.column
        body = builder.custom_attributes[holder_key].column.resolved(custom.size)
        moved = into[body] != body
        custom.rows[moved] = poses.compose(frame[body[moved]], custom.rows[moved])
        custom.given[moved] = True


def _constraints_of(builder: BuilderTables, joints: np.ndarray) -> np.ndarray:
    """Return the joint constraints of joints."""
    counts = JOINT_CONSTRAINT_COUNT - builder.joint_dof_dim.sum(axis=1).astype(np.int64)
    first = np.cumsum(counts) - counts
    within = np.arange(int(counts[joints].sum())) - np.repeat(
        np.cumsum(counts[joints]) - counts[joints], counts[joints]
    )
    return np.repeat(first[joints], counts[joints]) + within


def _new_indices(kept: np.ndarray, count: int) -> np.ndarray:
    """Return the new index of each entity, -1 for those removed and, at the end, for -1."""
    new_index = np.full(count + 1, -1, dtype=np.int64)
    new_index[kept] = np.arange(len(kept))
    return new_index


def _remap(kept: np.ndarray) -> dict[int, int]:
    return {int(former): new for new, former in enumerate(kept)}


def _take_tables(builder: BuilderTables, orders: dict[str, np.ndarray], body_of: np.ndarray) -> None:
    """Remove entities from the tables, and renumber what refers to them."""
    counts = {"joint": builder.joint_count, "articulation": builder.articulation_count}
    new_index = {kind: _new_indices(orders[kind], count) for kind, count in counts.items()}
    for kind, entity in (
        ("body", Entity.BODY),
        ("joint", Entity.JOINT),
        ("articulation", Entity.ARTICULATION),
        ("equality_constraint", Entity.EQUALITY_CONSTRAINT),
    ):
        builder.tables[entity] = builder.tables[entity].taken(orders[kind])
        labels = getattr(builder, f"{kind}_label")
        setattr(builder, f"{kind}_label", [labels[index] for index in orders[kind].tolist()])
    for column, new in (
        ("joint_parent", body_of),
        ("joint_child", body_of),
        ("joint_articulation", new_index["articulation"]),
        ("shape_body", body_of),
        ("equality_constraint_body1", body_of),
        ("equality_constraint_body2", body_of),
        ("equality_constraint_joint1", new_index["joint"]),
        ("equality_constraint_joint2", new_index["joint"]),
    ):
        values = builder.column(column)
        values[:] = new[values]
