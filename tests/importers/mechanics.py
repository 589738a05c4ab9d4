"""What importer tests compute from a builder: poses and the mass matrix, in NumPy from finalized models."""

import numpy as np

from pluriverse.geometry import quat_to_matrix
from pluriverse.model_builder import ModelBuilder
from pluriverse.types import JointType


def randomize_joints(builder: ModelBuilder, seed: int) -> None:
    """Put every joint at a random position (free joints at a random pose)."""
    rng = np.random.default_rng(seed)
    for joint in range(builder.joint_count):
        start = builder.joint_q_start[joint]
        kind = JointType(int(builder.joint_type[joint]))
        if kind is JointType.FREE:
            builder.joint_q[start : start + 3] = rng.uniform(-1.0, 1.0, 3)
            start += 3
        if kind in (JointType.FREE, JointType.BALL):
            quat = rng.normal(size=4)
            builder.joint_q[start : start + 4] = quat / np.linalg.norm(quat)
        else:
            axes = builder.joint_dof_dim[joint].sum()
            builder.joint_q[start : start + axes] = rng.uniform(-1.0, 1.0, axes)


def body_poses(builder: ModelBuilder) -> dict[str, np.ndarray]:
    """Return the pose (position, quaternion xyzw) of every body by label, from forward kinematics."""
    model = builder.finalize("cpu")
    return dict(zip(model.body_label, model.body_q.numpy().astype(np.float64), strict=True))


def mass_matrix(builder: ModelBuilder) -> np.ndarray:
    """Return the mass matrix over `joint_qd`, with armature.

    One world per unit velocity; the kinetic energies of the bodies' velocities are the matrix.
    """
    dof_count = builder.joint_dof_count
    worlds = ModelBuilder()
    for _ in range(dof_count):
        worlds.add_world(builder)
    worlds.joint_qd[:] = np.eye(dof_count).reshape(-1)
    model = worlds.finalize("cpu")
    speed = model.body_qd.numpy().astype(np.float64).reshape(dof_count, -1, 6)
    quats = model.body_q.numpy().reshape(dof_count, -1, 7)[0, :, 3:]
    matrix = np.diag(np.array(builder.joint_armature, dtype=np.float64))
    for body, quat in enumerate(quats):
        turn = quat_to_matrix(quat)
        inertia = turn @ builder.body_inertia[body] @ turn.T
        linear, angular = speed[:, body, :3], speed[:, body, 3:]
        matrix += builder.body_mass[body] * linear @ linear.T + angular @ inertia @ angular.T
    return matrix


def same_rotation(a: np.ndarray, b: np.ndarray) -> float:
    """Return how far two unit quaternions (same order of components) are from the same rotation."""
    return min(float(np.abs(a - b).max()), float(np.abs(a + b).max()))
