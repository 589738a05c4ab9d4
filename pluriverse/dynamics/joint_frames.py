"""Joint frames: where a joint takes the body that it moves."""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.rigid_groups import group_functions
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.precision import quat_type, vec3_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.math.spatial import spatial_functions
from pluriverse.model.topology import FREE_BELOW
from pluriverse.types import JointType


@functools.cache
def joint_functions(real: Any) -> SimpleNamespace:
    """Return the functions on one joint for scalars of type `real`.

    The members are the `wp.func`s `child_pose`, `move_along_axis` and `child_from_joint_frame`.
    """
    vec3 = vec3_type(real)
    quat = quat_type(real)
    quat_from_axis_angle = rotation_functions(real).quat_from_axis_angle
    quat_renormalize = rotation_functions(real).quat_renormalize
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
    def child_pose(
        joint_type: int,
        joint_q: wp.array[float],  # [coord]
        coord: int,
        joint_axis: wp.array[wp.vec3],  # [dof] unit, joint frame
        public_dof: int,
        parent_rotation: quat,  # of the parent's carrier, to world; identity for the world
        frame: quat,  # joint frame in the parent's carrier
        child_rotation: quat,  # inverse of the joint frame in the child body
        child_position: vec3,  # m, joint frame in the child body
    ):
        """Place the child of any joint but a D6.

        Returns:
            Orientation of the child; its origin less that of the parent joint frame [m], world axes; the axis
            of a revolute or prismatic joint, world axes; the orientation of the parent joint frame (of other
            joints than a revolute one).
        """
        anchor = parent_rotation
        rotation = parent_rotation
        shift = vec3()
        axis = vec3()
        if joint_type == JointType.REVOLUTE:
            # From one body to the next there is one product: all else does not wait for the parent.
            own_axis = widen_axis(joint_axis[public_dof])
            joint_rotation = quat_from_axis_angle(own_axis, real(joint_q[coord]))
            if is_turned(frame):
                joint_rotation = frame * joint_rotation
            rotation = parent_rotation * joint_rotation
            axis = wp.quat_rotate(rotation, own_axis)  # the turn leaves its axis where it is
        else:
            anchor = chain_rotation(parent_rotation, frame)
            rotation = anchor
            if joint_type == JointType.PRISMATIC:
                axis = wp.quat_rotate(anchor, widen_axis(joint_axis[public_dof]))
                shift = real(joint_q[coord]) * axis
            elif joint_type == JointType.BALL:
                rotation = anchor * read_rotation(joint_q, coord)
            elif joint_type == JointType.FREE or joint_type == FREE_BELOW:
                rotation = anchor * read_rotation(joint_q, coord + 3)
                shift = wp.quat_rotate(anchor, read_vec3(joint_q, coord))
        rotation, shift = child_from_joint_frame(rotation, shift, child_rotation, child_position)
        return rotation, shift, axis, anchor

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
        child_pose=child_pose, move_along_axis=move_along_axis, child_from_joint_frame=child_from_joint_frame
    )
