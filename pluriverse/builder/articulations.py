"""Articulations: groups of joints that belong together, and free bodies."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from pluriverse.builder.bodies import add_link
from pluriverse.builder.custom_attributes import check_custom_values, put_custom_values
from pluriverse.builder.joints import add_joint_free
from pluriverse.builder.options import LinkOptions
from pluriverse.builder.tables import BuilderTables
from pluriverse.options import with_options
from pluriverse.types import BodyFlags, Entity


@with_options(LinkOptions)
def add_body(builder: BuilderTables, **options: Unpack[LinkOptions]) -> int:
    """Add a free body: a link, its free joint and an articulation of the two.

    The joint is labelled `LABEL_free_joint`, the articulation `LABEL_articulation`.

    Returns:
        Index of the body.

    Raises:
        ValueError: If a value is out of range.
    """
    body = add_link(builder, **options)
    label = builder.body_label[body]
    joint = add_joint_free(builder, child=body, label=f"{label}_free_joint")
    add_articulation(builder, [joint], label=f"{label}_articulation")
    return body


def add_articulation(
    builder: BuilderTables,
    joints: Sequence[int],
    label: str | None = None,
    custom_attributes: Mapping[str, Any] | None = None,
) -> int:
    """Declare that joints belong together, such as those of one robot.

    Every joint must be in one articulation. If a joint is disabled (`enabled=False`), its child moves freely:
    a free joint labelled `BODY_free_joint` takes its place, and the joint itself becomes a loop joint.

    Args:
        joints: Joints, in any order.
        label: Name; `articulation_INDEX` if None.
        custom_attributes: Custom attributes of the articulation, by key.

    Returns:
        Index of the articulation.

    Raises:
        ValueError: If a joint is listed twice, is in another articulation already, or in another world, or
            attaches a kinematic body to another body.
        IndexError: If there is no such joint.
    """
    index = builder.articulation_count
    label = f"articulation_{index}" if label is None else label
    name = f"articulation '{label}' (index {index})"
    if len(joints) == 0:
        raise ValueError(f"{name}: no joints. An articulation needs at least one.")
    seen = set()
    for joint in joints:
        if not isinstance(joint, int | np.integer) or not 0 <= joint < builder.joint_count:
            raise IndexError(
                f"{name}: joint {joint!r} does not exist; there are {builder.joint_count} joints. Use "
                "the indices that add_joint_*() returned."
            )
        if joint in seen:
            raise ValueError(f"{name}: {builder.joint_name(joint)} is listed twice. List every joint once.")
        if builder.joint_articulation[joint] >= 0:
            other = int(builder.joint_articulation[joint])
            raise ValueError(
                f"{name}: {builder.joint_name(joint)} is in articulation "
                f"'{builder.articulation_label[other]}' (index {other}) already. A joint belongs to one "
                "articulation."
            )
        if builder.joint_world[joint] != builder.current_world:
            raise ValueError(
                f"{name}: {builder.joint_name(joint)} is in world {builder.joint_world[joint]}, but the "
                f"articulation is being added to world {builder.current_world}. Add it between the same "
                "begin_world() and end_world() as its joints."
            )
        if builder.joint_enabled[joint]:
            check_kinematic_child(builder, int(joint))
        seen.add(joint)
    custom = check_custom_values(builder, custom_attributes, {Entity.ARTICULATION: 1}, name)
    joints = [_free_if_off(builder, int(joint)) for joint in joints]
    builder.tables[Entity.ARTICULATION].append(articulation_world=builder.current_world)
    put_custom_values(builder, custom, {Entity.ARTICULATION: index})
    builder.column("joint_articulation")[np.asarray(joints)] = index
    builder.articulation_label.append(label)
    return index


def _free_if_off(builder: BuilderTables, joint: int) -> int:
    """Return a joint, or, if it is disabled, a new free joint for its child."""
    if builder.joint_enabled[joint]:
        return joint
    child = int(builder.joint_child[joint])
    return add_joint_free(builder, child, label=f"{builder.body_label[child]}_free_joint")


def check_kinematic_child(builder: BuilderTables, joint: int) -> None:
    """Raise if a joint attaches a kinematic body to another body."""
    parent, child = int(builder.joint_parent[joint]), int(builder.joint_child[joint])
    if parent < 0 or not builder.body_flags[child] & BodyFlags.KINEMATIC:
        return
    raise ValueError(
        f"{builder.joint_name(joint)}: its child {builder.body_name(child)} is kinematic, but its parent is "
        f"{builder.body_name(parent)}. Only a body whose joint is on the world can be kinematic: leave "
        "out is_kinematic=True, or pass parent=-1."
    )
