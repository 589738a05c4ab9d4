"""Loop coordinates: coordinates of loop joints, from the poses of the two bodies that each connects.

The trees determine all body poses, from which the coordinates and velocities of loop joints follow. Motion
that the joint does not allow (a loop that starts open) has no coordinate and is ignored.
"""

import numpy as np

from pluriverse.builder.loop_joints import CutJoints
from pluriverse.builder.snapshot import Snapshot
from pluriverse.model import poses
from pluriverse.model.kinematics import IDENTITY_ROTATION, group_joints, rotate_axes
from pluriverse.types import JointType

# Newton steps for successive angles. They converge quadratically: an error of some tenths is at rounding
# after five or six; the rest is for axes far from right angles.
ANGLE_STEP_COUNT = 20
# Error [rad] above which angles count as not converged, and another starting point is tried.
ANGLE_ERROR = 1e-9
# Rotations [rad] of the second axis by which other starting points differ from the given coordinates.
OTHER_BEGINNINGS = (0.9, -0.9, 1.8, -1.8, 2.7)


def find_loop_coordinates(source: Snapshot, cut: CutJoints, body_q: np.ndarray, body_qd: np.ndarray) -> None:
    """Write `joint_q` and `joint_qd` of loop joints.

    Of equivalent coordinates those closest to the given ones are taken, including full revolutions.

    Args:
        source: Columns of the builder.
        cut: The joints.
        body_q: Poses of the bodies, shape [body, 7].
        body_qd: Their velocities, those of the centre of mass, shape [body, 6].
    """
    body_of = np.full(len(source.joint_type), -1, dtype=np.int64)
    body_of[cut.joint] = cut.body
    for joints in group_joints(source, cut.joint):
        frame1 = _frames(body_q, source.joint_parent[joints], source.joint_X_p[joints])
        frame2 = _frames(body_q, body_of[joints], source.joint_X_c[joints])
        relative = poses.compose(poses.inverse(frame1), frame2)
        point = frame2[:, :3]
        rate = _rates(source, body_q, body_qd, body_of[joints], point)
        rate -= _rates(source, body_q, body_qd, source.joint_parent[joints], point)
        back = poses.inverse(frame1)[:, 3:]
        linear, angular = poses.rotate(back, rate[:, :3]), poses.rotate(back, rate[:, 3:])
        if source.joint_type[joints[0]] == JointType.BALL:
            source.joint_q[source.joint_q_start[joints][:, None] + np.arange(4)] = relative[:, 3:]
            source.joint_qd[source.joint_qd_start[joints][:, None] + np.arange(3)] = angular
            continue
        count = int(source.joint_dof_dim[joints[0], 0])
        coords = source.joint_q_start[joints][:, None] + np.arange(source.joint_dof_dim[joints[0]].sum())
        dofs = source.joint_qd_start[joints][:, None] + np.arange(coords.shape[1])
        _find_angles(source, joints, coords[:, count:], relative[:, 3:])
        _, axes = rotate_axes(source, joints)
        source.joint_q[coords[:, :count]] = _factors(axes[:, :count], relative[:, :3])
        source.joint_qd[dofs[:, :count]] = _factors(axes[:, :count], linear)
        source.joint_qd[dofs[:, count:]] = _factors(axes[:, count:], angular)


def _frames(body_q: np.ndarray, body: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """Return joint frames in the world."""
    carrier = np.where((body >= 0)[:, None], body_q[body], [0.0, 0.0, 0.0, *IDENTITY_ROTATION])
    return poses.compose(carrier, frame)


def _rates(
    source: Snapshot, body_q: np.ndarray, body_qd: np.ndarray, body: np.ndarray, point: np.ndarray
) -> np.ndarray:
    """Return the velocity at a point and the angular velocity of bodies, world axes, 0 for the world."""
    com = body_q[body, :3] + poses.rotate(body_q[body, 3:], source.body_com[body])
    rate = body_qd[body].copy()
    rate[:, :3] += np.cross(rate[:, 3:], point - com)
    rate[body < 0] = 0.0
    return rate


def _factors(axes: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the coefficients of axes (shape [joint, axis, 3]) whose combinations are closest to vectors."""
    return np.einsum("jai,ji->ja", np.linalg.pinv(axes).swapaxes(1, 2), target)


def _find_angles(source: Snapshot, joints: np.ndarray, coords: np.ndarray, rotation: np.ndarray) -> None:
    """Write the successive angles of rotations (quaternions), by Newton's method."""
    if coords.shape[1] == 0:
        return
    given = source.joint_q[coords]
    error = _improve(source, joints, coords, rotation)
    found = source.joint_q[coords].copy()
    for shift in OTHER_BEGINNINGS if coords.shape[1] > 1 else ():
        if (error < ANGLE_ERROR).all():
            break
        source.joint_q[coords] = given
        source.joint_q[coords[:, 1]] += shift
        other = _improve(source, joints, coords, rotation)
        better = (other < ANGLE_ERROR) & (error >= ANGLE_ERROR)
        found[better], error[better] = source.joint_q[coords][better], other[better]
    source.joint_q[coords] = found


def _improve(source: Snapshot, joints: np.ndarray, coords: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Iterate the angles in `joint_q`; return the remaining angle [rad] between the rotations."""
    angular = slice(-coords.shape[1], None)
    for step in range(ANGLE_STEP_COUNT + 1):
        moved, axes = rotate_axes(source, joints)
        rest = poses.quat_multiply(rotation, moved[:, 3:] * [-1.0, -1.0, -1.0, 1.0])
        rest = np.where(rest[:, 3:] < 0.0, -rest, rest)
        sine = np.linalg.norm(rest[:, :3], axis=1)
        angle = 2.0 * np.arctan2(sine, rest[:, 3])
        if step < ANGLE_STEP_COUNT:
            scale = np.divide(angle, sine, out=np.full_like(sine, 2.0), where=sine > 0.0)
            source.joint_q[coords] += _factors(axes[:, angular], scale[:, None] * rest[:, :3])
    return angle
