"""Joint frames: where a joint takes the body that it moves."""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.rigid_groups import group_functions
from pluriverse.launch import made_once
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.precision import quat_type, vec3_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.math.spatial import spatial_functions
from pluriverse.model.topology import FREE_BELOW
from pluriverse.types import JointType


@made_once
def joint_functions(real: Any) -> SimpleNamespace:
    """Return the functions on one joint for scalars of type `real`.

    The members are the `wp.func`s `child_pose`, `scalar_rotation`, `scalar_child_pose`, `move_along_axis` and
    `child_from_joint_frame`.
    """
    vec3 = vec3_type(real)
    quat = quat_type(real)
    quat_from_axis_angle = rotation_functions(real).quat_from_axis_angle
    quat_renormalize = rotation_functions(real).quat_renormalize
    matrix_from_quat = rotation_functions(real).matrix_from_quat
    chain_rotation, is_turned = group_functions(real).chain_rotation, group_functions(real).is_turned
    read_vec3 = conversion_functions(real).read_vec3
    read_rotation = conversion_functions(real).read_rotation
    widen_axis = conversion_functions(real).widen_axis
    spatial = spatial_functions(real).spatial

    @wp.func
    def child_from_joint_frame(frame: quat, shift: vec3, child_rotation: quat, child_position: vec3):
        """Return what `child_pose` does, from where the joint takes the child's joint frame."""
        rotation = quat_renormalize(chain_rotation(frame, child_rotation))
        if child_position[0] != real(0.0) or child_position[1] != real(0.0) or child_position[2] != real(0.0):
            shift -= wp.quat_rotate(rotation, child_position)
        return rotation, shift

    @wp.func
    def scalar_rotation(joint_type: int, position: real, axis: vec3, rest: quat) -> quat:
        """Return the orientation on the parent's carrier of the child of a revolute or prismatic joint.

        Args:
            joint_type: Type of the joint.
            position: Its position [rad or m].
            axis: Its axis, in axes of the child.
            rest: The orientation at position 0.
        """
        result = rest
        if joint_type == JointType.REVOLUTE:
            result = quat_from_axis_angle(axis, position)
            if is_turned(rest):
                result = rest * result
        # Here and not later, so that only one product waits for the parent.
        return quat_renormalize(result)

    @wp.func
    def scalar_child_pose(
        joint_type: int,  # revolute or prismatic
        position: real,  # rad or m
        axis: vec3,  # unit, in axes of the child
        rotation_on_parent: quat,  # from `scalar_rotation`
        child_position: vec3,  # m, joint frame in the child body
        parent_rotation: quat,  # of the parent's carrier, to world; identity for the world
    ):
        """Return the pose of the child of a joint of one degree of freedom.

        Returns:
            Orientation of the child, also as a matrix; its origin less that of the parent joint frame [m],
            world axes; the axis, world axes.
        """
        rotation = parent_rotation * rotation_on_parent
        matrix = matrix_from_quat(rotation)
        world_axis = matrix * axis  # a turn leaves its axis where it is
        shift = -(matrix * child_position)
        if joint_type == JointType.PRISMATIC:
            shift += position * world_axis
        return rotation, matrix, shift, world_axis

    @wp.func
    def child_pose(
        joint_type: int,
        joint_q: wp.array[float],  # [coord]
        coord: int,
        parent_rotation: quat,  # of the parent's carrier, to world; identity for the world
        frame: quat,  # joint frame in the parent's carrier
        child_rotation: quat,  # inverse of the joint frame in the child body
        child_position: vec3,  # m, joint frame in the child body
    ):
        """Return the pose of the child of a fixed, ball or free joint.

        Returns:
            Orientation of the child; its origin less that of the parent joint frame [m], world axes; the
            orientation of the parent joint frame.
        """
        anchor = chain_rotation(parent_rotation, frame)
        rotation = anchor
        shift = vec3()
        if joint_type == JointType.BALL:
            rotation = anchor * read_rotation(joint_q, coord)
        elif joint_type == JointType.FREE or joint_type == FREE_BELOW:
            rotation = anchor * read_rotation(joint_q, coord + 3)
            shift = wp.quat_rotate(anchor, read_vec3(joint_q, coord))
        rotation, shift = child_from_joint_frame(rotation, shift, child_rotation, child_position)
        return rotation, shift, anchor

    @wp.func
    def move_along_axis(linear: bool, axis: wp.vec3, position: real, frame: quat, shift: vec3):
        """Move a frame along or about one axis of a D6 joint.

        Args:
            linear: Whether the axis is one to slide along.
            axis: The axis in the frame that the earlier axes have made of the joint frame.
            position: Position of the axis [m or rad].
            frame: Orientation of that frame.
            shift: Its origin less the parent joint frame's [m], world axes.

        Returns:
            Orientation and origin behind the axis, and the motion subspace of the axis about the origin of
            the parent joint frame.
        """
        direction = wp.quat_rotate(frame, widen_axis(axis))
        motion = spatial(direction, wp.cross(shift, direction))
        if linear:
            motion = spatial(vec3(), direction)
            shift += position * direction
        else:
            frame = quat_from_axis_angle(direction, position) * frame
        return frame, shift, motion

    return SimpleNamespace(
        child_pose=child_pose,
        scalar_rotation=scalar_rotation,
        scalar_child_pose=scalar_child_pose,
        move_along_axis=move_along_axis,
        child_from_joint_frame=child_from_joint_frame,
    )
