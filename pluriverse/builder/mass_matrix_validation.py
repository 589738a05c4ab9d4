"""Mass matrix validation: check that it can be factored in the initial pose.

The pivot of a joint in the factorization M = Lᵀ D L is the articulated inertia that it moves: that of its
child and all descendants with their joints free ([Featherstone2008] ch. 7). It vanishes where joints in
series cancel each other, such as two hinges about one axis with a massless link between, although each of
them carries inertia.
"""

import numpy as np

from pluriverse.builder.mass_validation import NothingToAccelerateError, fill_point_masses, find_descendants
from pluriverse.builder.snapshot import Snapshot
from pluriverse.model import poses
from pluriverse.model.kinematics import group_joints, world_axes
from pluriverse.types import FLOATING_JOINTS, BodyFlags, JointType

# Smallest pivot, relative to the same entry of the mass matrix. Double precision leaves about 1e-15 of a
# pivot that is zero. Real mechanisms stay above: a wrist of 1e-5 kg·m² in line with an arm of 10 kg·m² has
# 1e-6, a bent rope of 10 m 1e-8 at a thickness of 1 cm and 1e-11 at 0.1 mm.
PIVOT_ROUNDING = 1.0e-12
# The same for solvers in single precision: ten roundings of it.
PIVOT_ROUNDING_SINGLE = 1.0e-6


def check_mass_matrix(
    source: Snapshot, joint_depth: np.ndarray, body_q: np.ndarray, body_weld: np.ndarray
) -> str | None:
    """Check the pivots of all joints in the initial poses `body_q` (shape [body, 7]).

    Returns what single precision cannot step, or None. Every joint must carry inertia by itself
    (`check_masses`). Point masses on a joint without a pivot are given the inertia of a ball, with a warning.

    Raises:
        NothingToAccelerateError: If a joint has no inertia left to move.
    """
    joint, pivot = _find_least_pivot(source, joint_depth, body_q)
    while not pivot > PIVOT_ROUNDING:
        body_joint = np.zeros(len(body_weld), dtype=np.int64)
        body_joint[source.joint_child] = np.arange(len(source.joint_child))
        root = body_weld[source.joint_child[joint]]
        if not fill_point_masses(source, root, find_descendants(source, body_joint, body_weld)):
            builder = source.builder
            raise NothingToAccelerateError(
                f"{builder.joint_name(joint)}: the mass matrix is singular in the initial pose (pivot "
                f"{pivot:.3g} of its entry), because later joints cancel this one and nothing between "
                f"has inertia. Give {builder.body_name(int(source.joint_child[joint]))} mass and inertia, "
                "give the joint an armature, or leave one of the joints out."
            )
        joint, pivot = _find_least_pivot(source, joint_depth, body_q)
    if pivot > PIVOT_ROUNDING_SINGLE:
        return None
    return (
        f"{source.builder.joint_name(joint)}: later joints leave it {pivot:.3g} of its entry of the mass "
        "matrix in the initial pose, which a solver in single precision cannot tell from none."
    )


def _find_least_pivot(source: Snapshot, joint_depth: np.ndarray, body_q: np.ndarray) -> tuple[int, float]:
    """Return the joint of least pivot, or the outermost without one, and that pivot relative to its entry.

    They are -1 and 1 if no joint moves.
    """
    point = _tree_points(source, joint_depth, body_q)
    composite = _spatial_inertias(source, body_q, point)
    articulated = composite.copy()
    least_joint, least_pivot = -1, 1.0
    for depth in range(int(joint_depth.max(initial=-1)), -1, -1):
        level = np.flatnonzero(joint_depth == depth)
        # The motion of kinematic bodies is prescribed, whatever their inertia.
        level = level[source.body_flags[source.joint_child[level]] != BodyFlags.KINEMATIC]
        for joints in group_joints(source, level):
            joint_type = JointType(source.joint_type[joints[0]])
            child, parent = source.joint_child[joints], source.joint_parent[joints]
            passed_on = articulated[child]
            if joint_type is not JointType.FIXED:
                motion = _motion_subspace(source, joints, joint_type, body_q, point[child])
                dof = source.joint_qd_start[joints][:, None] + np.arange(motion.shape[2])
                if joint_type in FLOATING_JOINTS:  # angular first here, linear first in the columns
                    dof = np.roll(dof, 3, axis=1)
                armature = source.joint_armature[dof]
                passed_on, least = eliminate_joints(motion, armature, composite[child], passed_on)
                if not least.min() > least_pivot:
                    least_joint, least_pivot = int(joints[np.argmin(least)]), float(least.min())
                if not least_pivot > PIVOT_ROUNDING:
                    return least_joint, least_pivot
            inner = parent >= 0
            np.add.at(articulated, parent[inner], passed_on[inner])
            np.add.at(composite, parent[inner], composite[child[inner]])
    return least_joint, least_pivot


def _tree_points(source: Snapshot, joint_depth: np.ndarray, body_q: np.ndarray) -> np.ndarray:
    """Return the origin of the root body of each body's tree [m]; moments about it lose few digits."""
    point = np.zeros((len(body_q), 3))
    for depth in range(int(joint_depth.max(initial=-1)) + 1):
        joints = np.flatnonzero(joint_depth == depth)
        child, parent = source.joint_child[joints], source.joint_parent[joints]
        point[child] = np.where((parent < 0)[:, None], body_q[child, :3], point[parent])
    return point


def _spatial_inertias(source: Snapshot, body_q: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Return the spatial inertia of each body, [angular; linear], world axes, about the point of its tree."""
    rotation = poses.quat_to_matrix(body_q[:, 3:])
    arm = body_q[:, :3] + poses.rotate(body_q[:, 3:], source.body_com) - point
    mass = source.body_mass[:, None, None]
    cross = _cross_matrices(arm)
    result = np.zeros((len(arm), 6, 6))
    result[:, :3, :3] = rotation @ source.body_inertia @ rotation.transpose(0, 2, 1) - mass * (cross @ cross)
    result[:, :3, 3:] = mass * cross
    result[:, 3:, :3] = -mass * cross
    result[:, 3:, 3:] = mass * np.eye(3)
    return result


def _motion_subspace(
    source: Snapshot, joints: np.ndarray, joint_type: JointType, body_q: np.ndarray, point: np.ndarray
) -> np.ndarray:
    """Return the motions that joints of one type allow, shape [joint, 6, dof], about the given points."""
    child = source.joint_child[joints]
    frame = poses.compose(body_q[child], source.joint_X_c[joints])
    anchor = frame[:, :3] - point
    axes = np.broadcast_to(np.eye(3), (len(joints), 3, 3))
    if joint_type in (JointType.REVOLUTE, JointType.PRISMATIC):
        axes = poses.rotate(frame[:, 3:], source.joint_axis[source.joint_qd_start[joints]])[:, :, None]
    elif joint_type is JointType.D6:
        axes = world_axes(source, joints, frame).transpose(0, 2, 1)
    elif joint_type in FLOATING_JOINTS:
        parent_poses = np.append(body_q, [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]], axis=0)[
            source.joint_parent[joints]
        ]
        axes = poses.quat_to_matrix(poses.compose(parent_poses, source.joint_X_p[joints])[:, 3:])
        axes = np.where((source.joint_parent[joints] < 0)[:, None, None], np.eye(3), axes)
        anchor = body_q[child, :3] + poses.rotate(body_q[child, 3:], source.body_com[child]) - point
    turning = np.concatenate([axes, _cross_matrices(anchor) @ axes], axis=1)
    sliding = np.concatenate([np.zeros_like(axes), axes], axis=1)
    if joint_type is JointType.PRISMATIC:
        return sliding
    if joint_type is JointType.D6:
        linear_count = source.joint_dof_dim[joints[0], 0]
        return np.concatenate([sliding[:, :, :linear_count], turning[:, :, linear_count:]], axis=2)
    return np.concatenate([turning, sliding], axis=2) if joint_type in FLOATING_JOINTS else turning


def eliminate_joints(
    motion: np.ndarray, armature: np.ndarray, composite: np.ndarray, articulated: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what parents see of joints that are free, and the least pivot of each.

    A pivot is relative to the same entry of the mass matrix. Where one is not above `PIVOT_ROUNDING`, the
    articulated inertias are returned unchanged.

    The formula I - I S D⁻¹ Sᵀ I is a difference of what may be almost equal: in a slender rope it loses all
    digits of the inertias about the axes of the links. So that of Joseph takes its place, a sum of squares.

    Args:
        motion: Motions S that the joints allow, [angular; linear], shape [joint, 6, dof].
        armature: Armature of their degrees of freedom, shape [joint, dof].
        composite: Spatial inertias of all that the joints carry, held together, shape [joint, 6, 6].
        articulated: The same with the joints beyond them free, I, shape [joint, 6, 6].
    """
    added = armature[:, :, None] * np.eye(motion.shape[2])
    transposed = motion.transpose(0, 2, 1)
    carried = transposed @ articulated
    pivot = carried @ motion + added
    entries = np.einsum("nii->ni", transposed @ composite @ motion + added)
    scale = 1.0 / np.sqrt(np.where(entries > 0.0, entries, np.inf))
    least = np.linalg.eigvalsh(scale[:, :, None] * pivot * scale[:, None, :])[:, 0]
    if not (least > PIVOT_ROUNDING).all():
        return articulated, least
    gain = np.linalg.solve(pivot, carried)  # how the joint gives way
    rest = np.eye(6) - motion @ gain
    return rest.transpose(0, 2, 1) @ articulated @ rest + gain.transpose(0, 2, 1) @ added @ gain, least


def _cross_matrices(vectors: np.ndarray) -> np.ndarray:
    """Return the cross-product matrices of vectors."""
    result = np.zeros((len(vectors), 3, 3))
    for row, column, component, sign in ((0, 1, 2, -1), (0, 2, 1, 1), (1, 2, 0, -1)):
        result[:, row, column] = sign * vectors[:, component]
        result[:, column, row] = -sign * vectors[:, component]
    return result
