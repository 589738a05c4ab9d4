"""Mechanics of a described robot: what hangs rigidly together, what can move, merging of welded links."""

import dataclasses

import numpy as np

from pluriverse.geometry import MassProperties, combine_mass_properties, transform_mass_properties
from pluriverse.importers.description import (
    WORLD,
    JointDescription,
    LinkDescription,
    LoopDescription,
    LoopJointDescription,
    RobotDescription,
    ShapeDescription,
)
from pluriverse.importers.errors import AssetError
from pluriverse.importers.frames import IDENTITY, Frame
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.types import JointType

# Relative rounding of authored inertias: files give five or six digits, so that a rotated or merged inertia
# can leave the set of possible ones by this much of its largest entry.
INERTIA_ROUNDING = 1e-5


def find_rigid_groups(robot: RobotDescription) -> list[int]:
    """Return, per link, the first of the links welded together with it, or `WORLD` if that is the world."""
    groups: list[int] = []
    for index, link in enumerate(robot.links):
        if link.joint.type is not JointType.FIXED:
            groups.append(index)
        else:
            groups.append(WORLD if link.parent == WORLD else groups[link.parent])
    return groups


def find_group_parents(robot: RobotDescription, groups: list[int]) -> dict[int, int]:
    """Return the group that each moving group hangs on and does not collide with.

    Links that only stand between joints do not count.
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
    """Return the initial pose of each link in the world, for a robot that stands at `xform`."""
    poses: list[Frame] = []
    for link in robot.links:
        parent = xform if link.parent == WORLD else poses[link.parent]
        joint = link.joint
        poses.append(parent @ joint.parent_frame @ joint.motion() @ joint.child_frame.inverse())
    return poses


def merge_welded_links(robot: RobotDescription, report: ImportReport) -> RobotDescription:
    """Return the robot with links welded to others made part of them; welds to the world or to be kept stay.

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
                )
            )
            continue
        into = kept[target[parent]]
        frame = to_parent @ link.joint.child_frame.inverse()
        target.append(target[parent])
        placement.append(frame)
        moved = transform_mass_properties(link.mass_properties, frame.position, frame.matrix)
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
        loops=[loop for loop in loops if loop.links[0] != loop.links[1]],
        loop_joints=[loop for loop in loop_joints if loop.links[0] != loop.links[1]],
        couplings=couplings,
        tree_labels={target[root]: label for root, label in robot.tree_labels.items()},
    )


def _move_loop(loop: LoopDescription, target: list[int], placement: list[Frame]) -> LoopDescription:
    """Return a loop after its links became part of others, given per old link."""
    first, second = (
        (link, frame) if link == WORLD else (target[link], placement[link] @ frame)
        for link, frame in zip(loop.links, loop.frames, strict=True)
    )
    return dataclasses.replace(loop, links=(first[0], second[0]), frames=(first[1], second[1]))


def _move_loop_joint(
    loop: LoopJointDescription, target: list[int], placement: list[Frame]
) -> LoopJointDescription:
    """Return a joint that closes a loop after its links became part of others, given per old link."""
    parent, child = loop.links
    joint = dataclasses.replace(loop.joint, child_frame=placement[child] @ loop.joint.child_frame)
    if parent != WORLD:
        joint.parent_frame = placement[parent] @ joint.parent_frame
    links = (parent if parent == WORLD else target[parent], target[child])
    return dataclasses.replace(loop, links=links, joint=joint)


def check_masses(robot: RobotDescription, report: ImportReport, *, armature_default: float) -> None:
    """Check that masses and inertias are possible and that every joint has inertia to move.

    Joints without an armature of their own will have `armature_default`.

    Raises:
        AssetError: If a mass or inertia is negative or not finite, or a joint moves nothing that has inertia.
    """
    for link in robot.links:
        _check_link(robot, link, report)
    children: list[list[int]] = [[] for _ in robot.links]
    for index, link in enumerate(robot.links):
        if link.parent != WORLD:
            children[link.parent].append(index)
    halves: list[list[MassProperties]] = [[] for _ in robot.links]  # what loop joints move of their children
    for loop in robot.loop_joints:
        parent, child = loop.links
        if parent != WORLD:
            frame = loop.joint.parent_frame @ loop.joint.motion() @ loop.joint.child_frame.inverse()
            whole = robot.links[child].mass_properties
            half = MassProperties(0.5 * whole.mass, whole.com, 0.5 * whole.inertia)
            halves[parent].append(transform_mass_properties(half, frame.position, frame.matrix))
    carried: list[MassProperties] = [link.mass_properties for link in robot.links]
    for index in reversed(range(len(robot.links))):
        parts = [robot.links[index].mass_properties, *halves[index]]
        for child in children[index]:
            joint = robot.links[child].joint
            frame = joint.parent_frame @ joint.motion() @ joint.child_frame.inverse()
            parts.append(transform_mass_properties(carried[child], frame.position, frame.matrix))
        carried[index] = combine_mass_properties(parts)
        _check_joint(robot, robot.links[index], carried[index], armature_default)


def _check_link(robot: RobotDescription, link: LinkDescription, report: ImportReport) -> None:
    mass, com, inertia = link.mass_properties
    if not 0.0 <= mass < np.inf:
        raise AssetError(
            f"the mass is {mass} kg, but it must be finite and not negative",
            file=robot.source,
            element=link.element,
            value=mass,
            remedy="Correct the mass, or let it follow from the shapes with "
            "ignore_inertial_definitions=True.",
        )
    if not (np.isfinite(com).all() and np.isfinite(inertia).all()):
        raise AssetError(
            f"the centre of mass {com.tolist()} m or the inertia {inertia.tolist()} kg·m² is not finite",
            file=robot.source,
            element=link.element,
            value=inertia.tolist(),
            remedy="Correct the numbers, or let them follow from the shapes with "
            "ignore_inertial_definitions=True.",
        )
    smallest, middle, largest = np.linalg.eigvalsh(inertia)
    if smallest < -INERTIA_ROUNDING * max(largest, 0.0) or largest < 0.0:
        raise AssetError(
            f"the inertia has a negative principal moment ({smallest:.6g} kg·m²), which no body has",
            file=robot.source,
            element=link.element,
            value=inertia.tolist(),
            remedy="Correct the products of inertia, or use ignore_inertial_definitions=True.",
        )
    if smallest + middle < largest * (1.0 - INERTIA_ROUNDING):
        report.add(
            "impossible inertia",
            link.element,
            "the largest principal moment exceeds the sum of the others, which no body has; used as authored",
            ImportSeverity.NOTE,
        )


def _check_joint(
    robot: RobotDescription, link: LinkDescription, carried: MassProperties, armature_default: float
) -> None:
    joint = link.joint
    if joint.type is JointType.FIXED or link.is_kinematic:
        return
    armature = _armature(joint, armature_default)
    if joint.type is JointType.REVOLUTE:
        assert joint.dof is not None
        axis = joint.child_frame.matrix @ joint.dof.axis
        arm = np.cross(axis, carried.com - joint.child_frame.position)
        inertia = float(axis @ carried.inertia @ axis + carried.mass * (arm @ arm)) + armature
    elif joint.type is JointType.PRISMATIC or (joint.dofs and joint.linear_count == len(joint.dofs)):
        inertia = carried.mass + armature
    else:
        inertia = min(carried.mass, float(np.linalg.eigvalsh(carried.inertia)[0])) + armature
        if joint.type is JointType.BALL and carried.mass > 0.0:
            offset = carried.com - joint.child_frame.position
            about = carried.inertia + carried.mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
            inertia = float(np.linalg.eigvalsh(about)[0]) + armature
    if not inertia > 0.0:
        raise AssetError(
            f"joint '{joint.label}' moves it and what hangs on it, which have a mass of {carried.mass:.6g} "
            "kg and no inertia against this motion, so the equations of motion have no solution",
            file=robot.source,
            element=link.element,
            value=carried.mass,
            remedy="Give the link mass and inertia (or a colliding shape and a density), fix it to its "
            "neighbour, or give the joint an armature.",
        )


def _armature(joint: JointDescription, armature_default: float) -> float:
    """Return the least armature of the degrees of freedom of a joint."""
    if joint.type is JointType.FREE:
        return 0.0
    armatures = [dof.armature for dof in joint.dofs] or [joint.dof.armature if joint.dof else joint.armature]
    return min(armature_default if armature is None else armature for armature in armatures)
