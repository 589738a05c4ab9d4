"""Order of quaternions, and initial poses of free bodies in MuJoCo's model."""

import numpy as np

from pluriverse.model import poses
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.structure import MujocoJoint, StructurePlan


def as_wxyz(quat: np.ndarray) -> np.ndarray:
    """Return quaternions xyzw in MuJoCo's order."""
    return np.roll(quat, 1, axis=-1)


def as_xyzw(quat: np.ndarray) -> np.ndarray:
    """Return quaternions of MuJoCo in ours."""
    return np.roll(quat, -1, axis=-1)


def initial_poses(rows: ModelRows, plan: StructurePlan, world: int) -> dict[int, np.ndarray]:
    """Return the initial pose (position [m], xyzw) of each of MuJoCo's bodies with a free joint, by body.

    MuJoCo uses it for `qpos0` only: a free body has its pose in the coordinates.
    """
    worlds = np.array([world])
    inner = rows.gather("joint_X_p", "joint", worlds)[0]
    outer = rows.gather("joint_X_c", "joint", worlds)[0]
    q = rows.gather("joint_q", "coord", worlds)[0]
    body_q = rows.gather("body_q", "body", worlds)[0]
    result = {}
    for joint in plan.joints:
        if joint.kind is not MujocoJoint.FREE:
            continue
        body = plan.bodies[joint.body]
        assert body is not None
        if plan.template.joint_parent[joint.joint] >= 0:  # it floats below a body
            pose = body_q[body.body]
        else:
            coord = int(plan.joint_coord[joint.joint])
            pose = poses.compose(inner[joint.joint], q[coord : coord + 7])
            pose = poses.compose(pose, poses.inverse(outer[joint.joint]))
        result[joint.body] = np.append(pose[:3], pose[3:] / np.linalg.norm(pose[3:]))
    return result
