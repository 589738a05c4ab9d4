"""Inertia that the joints of a described robot move, with the joints beyond them held or free.

A base without mass, as `base_footprint` often is, takes none of the motion of the arm on it, however heavy
that is: turning the base and turning the joint back moves nothing, and the mass matrix is singular.
"""

import numpy as np

from pluriverse.builder.mass_matrix_validation import eliminate_joints
from pluriverse.geometry import MassProperties
from pluriverse.importers.description import WORLD, JointDescription, RobotDescription
from pluriverse.importers.frames import Frame
from pluriverse.importers.mechanics import find_initial_poses
from pluriverse.types import JointType

# Smallest pivot, relative to the same entry of the mass matrix. Files give angles to five digits, and axes
# that are parallel but for those leave the square of that.
PIVOT_ROUNDING = 1.0e-10


def find_joint_without_pivot(
    robot: RobotDescription, extra: list[list[MassProperties]], armature: list[float]
) -> int | None:
    """Return the outermost link whose joint finds no articulated inertia ([Featherstone2008] ch. 7), or None.

    Args:
        robot: The robot, every joint of which carries inertia by itself.
        extra: What each link carries besides its own mass, link frame.
        armature: Armature of the degrees of freedom of each link's joint.
    """
    poses = find_initial_poses(robot)
    composite = np.array(
        [
            sum(_spatial_inertia(part, pose) for part in (link.mass_properties, *more))
            for link, more, pose in zip(robot.links, extra, poses, strict=True)
        ]
    )
    articulated = composite.copy()
    for index in reversed(range(len(robot.links))):
        link = robot.links[index]
        if link.is_kinematic:
            continue  # its motion is prescribed, whatever it carries
        passed_on = articulated[index]
        if link.joint.type is not JointType.FIXED:
            motion = _motions(link.joint, poses[index])
            added = np.full((1, motion.shape[1]), armature[index])
            eliminated, least = eliminate_joints(motion[None], added, composite[None, index], passed_on[None])
            if not least[0] > PIVOT_ROUNDING:
                return index
            passed_on = eliminated[0]
        if link.parent != WORLD:
            articulated[link.parent] += passed_on
            composite[link.parent] += composite[index]
    return None


def find_effective_inertias(robot: RobotDescription, armature: list[float]) -> list[float]:
    """Return what the joint of each link feels with all others free: 1 / (M⁻¹) of its degree of freedom.

    That is in the initial pose, in kg·m² or kg, and 0 for joints of more than one axis and of none.

    Args:
        robot: The robot.
        armature: Armature of the degrees of freedom of each link's joint.
    """
    poses = find_initial_poses(robot)
    motions = [
        np.zeros((6, 0)) if link.joint.type is JointType.FIXED else _motions(link.joint, pose)
        for link, pose in zip(robot.links, poses, strict=True)
    ]
    start = np.cumsum([0] + [motion.shape[1] for motion in motions])
    mass_matrix = np.zeros((start[-1], start[-1]))
    for index in range(len(robot.links)):
        ancestors, above = [], index
        while above != WORLD:
            ancestors.append(above)
            above = robot.links[above].parent
        columns = np.concatenate([np.arange(start[part], start[part + 1]) for part in ancestors])
        jacobian = np.concatenate([motions[part] for part in ancestors], axis=1)
        inertia = _spatial_inertia(robot.links[index].mass_properties, poses[index])
        mass_matrix[np.ix_(columns, columns)] += jacobian.T @ inertia @ jacobian
    mass_matrix += np.diag(np.repeat(armature, np.diff(start)))
    mobility = np.diagonal(np.linalg.pinv(mass_matrix, hermitian=True))
    return [
        0.0 if link.joint.dof is None or not mobility[first] > 0.0 else float(1.0 / mobility[first])
        for link, first in zip(robot.links, start[:-1], strict=True)
    ]


def _spatial_inertia(part: MassProperties, pose: Frame) -> np.ndarray:
    """Return the spatial inertia [angular; linear] about the origin of the world, in its axes."""
    rotation = pose.matrix
    cross = _cross(pose.apply(part.com))
    result = np.empty((6, 6))
    result[:3, :3] = rotation @ part.inertia @ rotation.T - part.mass * (cross @ cross)
    result[:3, 3:] = part.mass * cross
    result[3:, :3] = -part.mass * cross
    result[3:, 3:] = part.mass * np.eye(3)
    return result


def _motions(joint: JointDescription, pose: Frame) -> np.ndarray:
    """Return the motions that a joint allows its link, [angular; linear] by degree of freedom."""
    frame = pose @ joint.child_frame
    rotation = frame.matrix
    if joint.type in (JointType.REVOLUTE, JointType.PRISMATIC):
        assert joint.dof is not None
        axes = (rotation @ joint.dof.axis)[:, None]
        linear_count = int(joint.type is JointType.PRISMATIC)
    elif joint.type is JointType.D6:
        axes = np.stack([rotation @ dof.axis for dof in joint.dofs], axis=1)
        linear_count = joint.linear_count
    elif joint.type is JointType.BALL:
        axes, linear_count = rotation, 0
    else:
        axes, linear_count = np.concatenate([np.eye(3), np.eye(3)], axis=1), 3
    linear, angular = axes[:, :linear_count], axes[:, linear_count:]
    return np.block([[np.zeros_like(linear), angular], [linear, _cross(frame.position) @ angular]])


def _cross(vector: np.ndarray) -> np.ndarray:
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
