"""Chains of joints as D6 joints.

An importer describes several joints of one body as a chain of massless links, one joint each. Slides followed
by hinges about axes through one point, each carried by the ones before, equal one D6 joint with the same
coordinates and equations of motion, and without additional links.
"""

import dataclasses

import numpy as np

from pluriverse.importers.description import WORLD, JointDescription, LinkDescription, RobotDescription
from pluriverse.importers.frames import IDENTITY, Frame, make_frame
from pluriverse.types import JointType

# Distance of two anchors, relative to their distances from the origins of their links, up to which they are
# one point: rounding of the transforms between them.
ANCHOR_ROUNDING = 1e-12


def merge_joint_chains(robot: RobotDescription) -> RobotDescription:
    """Return the robot with every chain that equals a D6 joint replaced by one; other chains stay."""
    merged: dict[int, LinkDescription] = {}
    end_of_link: dict[int, int] = {}  # for links that fall away: the link that their chain ends in
    axis_of_link: dict[int, int] = {}  # for links of merged chains: the axis that their joint becomes
    for index, link in enumerate(robot.links):
        chain = [] if link.is_intermediate else _find_chain(robot, index)
        joint = _make_d6([robot.links[part].joint for part in chain]) if len(chain) > 1 else None
        if joint is not None:
            merged[index] = dataclasses.replace(link, parent=robot.links[chain[0]].parent, joint=joint)
            end_of_link.update(dict.fromkeys(chain[:-1], index))
            axis_of_link.update({part: axis for axis, part in enumerate(chain)})
    kept = [index for index in range(len(robot.links)) if index not in end_of_link]
    new_index = {WORLD: WORLD} | {index: number for number, index in enumerate(kept)}
    new_index |= {index: new_index[end] for index, end in end_of_link.items()}
    links = [merged.get(index, robot.links[index]) for index in kept]
    return dataclasses.replace(
        robot,
        links=[dataclasses.replace(link, parent=new_index[link.parent]) for link in links],
        excluded_pairs=[(new_index[a], new_index[b]) for a, b in robot.excluded_pairs],
        loops=[
            dataclasses.replace(loop, links=(new_index[loop.links[0]], new_index[loop.links[1]]))
            for loop in robot.loops
        ],
        loop_joints=[
            dataclasses.replace(loop, links=(new_index[loop.links[0]], new_index[loop.links[1]]))
            for loop in robot.loop_joints
        ],
        couplings=[
            dataclasses.replace(
                coupling,
                link=new_index[coupling.link],
                leader=None if coupling.leader is None else new_index[coupling.leader],
                axis=axis_of_link.get(coupling.link, coupling.axis),
                leader_axis=axis_of_link.get(
                    WORLD if coupling.leader is None else coupling.leader, coupling.leader_axis
                ),
            )
            for coupling in robot.couplings
        ],
    )


def _find_chain(robot: RobotDescription, end: int) -> list[int]:
    """Return the massless links between the joints above a link, outermost last, and the link."""
    chain = [end]
    parent = robot.links[end].parent
    while parent != WORLD and robot.links[parent].is_intermediate:
        link = robot.links[parent]
        if link.mass_properties.mass > 0.0 or link.shapes:
            return [end]
        chain.insert(0, parent)
        parent = link.parent
    return chain


def _make_d6(joints: list[JointDescription]) -> JointDescription | None:
    """Return the D6 joint that moves like joints in series, None if none does."""
    kinds = [joint.type for joint in joints]
    linear_count = kinds.count(JointType.PRISMATIC)
    angular_count = kinds.count(JointType.REVOLUTE)
    in_order = [JointType.PRISMATIC] * linear_count + [JointType.REVOLUTE] * angular_count
    if kinds != in_order or max(linear_count, angular_count) > 3:
        return None
    # Move the frames between the joints to the ends of the chain: rotations outward, which rotates the axes
    # behind them, translations inward, which is possible past slides only.
    parent_frame, rotation = joints[0].parent_frame, IDENTITY
    dofs = []
    for number, joint in enumerate(joints):
        if number > 0:
            inner = joints[number - 1].child_frame
            between = inner.inverse() @ joint.parent_frame
            if number <= linear_count:
                parent_frame = parent_frame @ make_frame(rotation.apply(between.position))
            else:
                size = np.linalg.norm(inner.position) + np.linalg.norm(joint.parent_frame.position)
                if np.linalg.norm(between.position) > ANCHOR_ROUNDING * size:
                    return None
            rotation = rotation @ Frame(np.zeros(3), between.quat)
        assert joint.dof is not None
        axis = rotation.apply(joint.dof.axis)
        dofs.append(dataclasses.replace(joint.dof, axis=axis, origin=joint.origin))
    path = joints[0].label.rpartition("/")[0]
    names = "_".join(joint.label.rpartition("/")[2] for joint in joints)
    return JointDescription(
        f"{path}/{names}" if path else names,
        JointType.D6,
        parent_frame=parent_frame,
        child_frame=joints[-1].child_frame @ rotation.inverse(),
        dofs=dofs,
        linear_count=linear_count,
        q=[joint.q[0] for joint in joints],
        qd=[joint.qd[0] for joint in joints],
        filter_parent=joints[-1].filter_parent,
        custom={key: value for joint in joints[::-1] for key, value in joint.custom.items()},
    )
