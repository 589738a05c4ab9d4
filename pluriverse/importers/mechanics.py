"""Mechanics of a described robot: rigid groups, what can move, merging of welded links."""

import dataclasses

import numpy as np

from pluriverse.geometry import combine_mass_properties, transform_mass_properties
from pluriverse.importers.description import (
    WORLD,
    LinkDescription,
    LoopDescription,
    LoopJointDescription,
    RobotDescription,
    ShapeDescription,
)
from pluriverse.importers.frames import IDENTITY, Frame
from pluriverse.importers.report import ImportReport
from pluriverse.model.attributes import GRAVITY_COMPENSATION
from pluriverse.types import JointType


def find_rigid_groups(robot: RobotDescription, *, mocap_moves: bool = False) -> list[int]:
    """Return, per link, the first of the links welded together with it, or `WORLD` if that is the world.

    Args:
        robot: The robot.
        mocap_moves: Whether mocap bodies count as ones that move, as they do where neighbours are filtered.
    """
    groups: list[int] = []
    for index, link in enumerate(robot.links):
        if link.joint.type is not JointType.FIXED or (mocap_moves and link.is_mocap):
            groups.append(index)
        else:
            groups.append(WORLD if link.parent == WORLD else groups[link.parent])
    return groups


def find_group_parents(robot: RobotDescription, groups: list[int]) -> dict[int, int]:
    """Return the parent group of each moving group, with which it does not collide.

    Links that only connect joints do not count.
    """
    parents: dict[int, int] = {}
    for group in set(groups) - {WORLD}:
        if not robot.links[group].joint.filter_parent:
            continue
        parent = robot.links[group].parent
        while parent != WORLD and robot.links[parent].is_intermediate:
            parent = robot.links[parent].parent
        parents[group] = WORLD if parent == WORLD else groups[parent]
    return parents


def find_initial_poses(robot: RobotDescription, xform: Frame = IDENTITY) -> list[Frame]:
    """Return the initial pose of each link in the world, for a robot at `xform`."""
    poses: list[Frame] = []
    for link in robot.links:
        parent = xform if link.parent == WORLD else poses[link.parent]
        joint = link.joint
        poses.append(parent @ joint.parent_frame @ joint.motion() @ joint.child_frame.inverse())
    return poses


def merge_welded_links(robot: RobotDescription, report: ImportReport) -> RobotDescription:
    """Return the robot with welded links merged; welds to the world, or marked to be kept, stay.

    Mass, centre of mass, inertia, shapes and the joints further out are carried over exactly.
    """
    kept: list[LinkDescription] = []
    target: list[int] = []  # per old link: index of the kept link it is part of
    placement: list[Frame] = []  # per old link: its frame in that link
    moved_shapes: dict[int, ShapeDescription] = {}  # by identity of the old ones
    for link in robot.links:
        parent = link.parent
        to_parent = (
            link.joint.parent_frame if parent == WORLD else placement[parent] @ link.joint.parent_frame
        )
        if parent == WORLD or link.joint.type is not JointType.FIXED or link.joint.is_kept:
            joint = dataclasses.replace(link.joint, parent_frame=to_parent)
            new_parent = WORLD if parent == WORLD else target[parent]
            target.append(len(kept))
            placement.append(IDENTITY)
            kept.append(
                dataclasses.replace(
                    link,
                    parent=new_parent,
                    joint=joint,
                    shapes=list(link.shapes),
                    origins=dict(link.origins),
                    custom=dict(link.custom),
                )
            )
            continue
        into = kept[target[parent]]
        frame = to_parent @ link.joint.child_frame.inverse()
        target.append(target[parent])
        placement.append(frame)
        moved = transform_mass_properties(link.mass_properties, frame.position, frame.matrix)
        _merge_compensation(into, link, report)
        into.mass_properties = combine_mass_properties([into.mass_properties, moved])
        for shape in link.shapes:
            moved_shapes[id(shape)] = dataclasses.replace(shape, frame=frame @ shape.frame)
            into.shapes.append(moved_shapes[id(shape)])
        into.origins |= {origin: frame @ own for origin, own in link.origins.items()}
        report.merged_links[link.label] = into.label
        report.merged_poses[link.label] = np.concatenate([frame.position, frame.quat])
    pairs = [
        (a if a == WORLD else target[a], b if b == WORLD else target[b]) for a, b in robot.excluded_pairs
    ]
    loops = [_move_loop(loop, target, placement) for loop in robot.loops]
    loop_joints = [_move_loop_joint(loop, target, placement) for loop in robot.loop_joints]
    couplings = [
        dataclasses.replace(
            coupling,
            link=target[coupling.link],
            leader=None if coupling.leader is None else target[coupling.leader],
        )
        for coupling in robot.couplings
    ]
    return dataclasses.replace(
        robot,
        links=kept,
        excluded_pairs=[pair for pair in pairs if pair[0] != pair[1]],
        excluded_shapes=[
            (moved_shapes.get(id(a), a), moved_shapes.get(id(b), b)) for a, b in robot.excluded_shapes
        ],
        paired_shapes=[
            (moved_shapes.get(id(a), a), moved_shapes.get(id(b), b)) for a, b in robot.paired_shapes
        ],
        loops=[loop for loop in loops if loop.links[0] != loop.links[1]],
        loop_joints=[loop for loop in loop_joints if loop.links[0] != loop.links[1]],
        couplings=couplings,
        tree_labels={target[root]: label for root, label in robot.tree_labels.items()},
    )


def _merge_compensation(into: LinkDescription, link: LinkDescription, report: ImportReport) -> None:
    """Give a link the compensation of gravity that leaves it the weight of both."""
    shares = [part.custom.get(GRAVITY_COMPENSATION, 0.0) for part in (into, link)]
    masses = [part.mass_properties.mass for part in (into, link)]
    if shares[0] == shares[1] or masses[1] == 0.0:
        return
    into.custom[GRAVITY_COMPENSATION] = float(np.average(shares, weights=masses))
    report.add(
        "gravity compensation of merged links",
        link.label,
        f"'{into.label}' has the weight of both, which acts at its centre of mass",
    )


def _move_loop(loop: LoopDescription, target: list[int], placement: list[Frame]) -> LoopDescription:
    """Return a loop after its links were merged into others, given per old link."""
    first, second = (
        (link, frame) if link == WORLD else (target[link], placement[link] @ frame)
        for link, frame in zip(loop.links, loop.frames, strict=True)
    )
    return dataclasses.replace(loop, links=(first[0], second[0]), frames=(first[1], second[1]))


def _move_loop_joint(
    loop: LoopJointDescription, target: list[int], placement: list[Frame]
) -> LoopJointDescription:
    """Return a loop joint after its links were merged into others, given per old link."""
    parent, child = loop.links
    joint = dataclasses.replace(loop.joint, child_frame=placement[child] @ loop.joint.child_frame)
    if parent != WORLD:
        joint.parent_frame = placement[parent] @ joint.parent_frame
    links = (parent if parent == WORLD else target[parent], target[child])
    return dataclasses.replace(loop, links=links, joint=joint)
