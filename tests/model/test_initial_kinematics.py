"""Initial poses and velocities: against homogeneous matrices, and against the motion they belong to."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pluriverse import JointType, ModelBuilder, eval_fk
from pluriverse.builder.snapshot import Snapshot
from pluriverse.model.kinematics import eval_initial_kinematics
from tests.builder.robots import make_arm

ROUNDING = 1e-13  # a few dozen operations in double precision on numbers near 1


def matrix(pose: np.ndarray) -> np.ndarray:
    """Return the homogeneous matrix of a pose (p, xyzw)."""
    result = np.eye(4)
    result[:3, :3] = Rotation.from_quat(pose[3:]).as_matrix()
    result[:3, 3] = pose[:3]
    return result


def axis_values(source: Snapshot, joint: int) -> list[tuple[float, bool]]:
    """Return the position of each axis of a D6 joint, and whether it is linear."""
    first, end = source.joint_q_start[joint : joint + 2]
    return [(source.joint_q[first + k], k < source.joint_dof_dim[joint, 0]) for k in range(end - first)]


def body_matrices(source: Snapshot) -> dict[int, np.ndarray]:
    """Return the pose of each body as a matrix: X_WB = X_WP X_p X_J(q) X_c^-1."""
    result = {-1: np.eye(4)}
    joints = list(range(len(source.joint_type)))
    while joints:
        joint = joints.pop(0)
        parent = int(source.joint_parent[joint])
        if parent not in result:
            joints.append(joint)
            continue
        q = source.joint_q[source.joint_q_start[joint] : source.joint_q_start[joint + 1]]
        dof = int(source.joint_qd_start[joint])
        move = np.eye(4)
        kind = JointType(source.joint_type[joint])
        if kind is JointType.REVOLUTE:
            move[:3, :3] = Rotation.from_rotvec(q[0] * source.joint_axis[dof]).as_matrix()
        elif kind is JointType.PRISMATIC:
            move[:3, 3] = q[0] * source.joint_axis[dof]
        elif kind is JointType.BALL:
            move[:3, :3] = Rotation.from_quat(q).as_matrix()
        elif kind is JointType.FREE:
            move = matrix(q)
        elif kind is JointType.D6:
            for place, (value, linear) in enumerate(axis_values(source, joint)):
                step = np.eye(4)
                if linear:
                    step[:3, 3] = value * source.joint_axis[dof + place]
                else:
                    step[:3, :3] = Rotation.from_rotvec(value * source.joint_axis[dof + place]).as_matrix()
                move = move @ step
        frames = matrix(source.joint_X_p[joint]), np.linalg.inv(matrix(source.joint_X_c[joint]))
        result[int(source.joint_child[joint])] = result[parent] @ frames[0] @ move @ frames[1]
    return result


def joint_depths(source: Snapshot) -> np.ndarray:
    """Return how many joints lie between each joint and the world."""
    mover = {int(child): joint for joint, child in enumerate(source.joint_child)}

    def depth(joint: int) -> int:
        parent = int(source.joint_parent[joint])
        return 0 if parent < 0 else 1 + depth(mover[parent])

    return np.array([depth(joint) for joint in range(len(source.joint_type))])


def make_machine() -> ModelBuilder:
    """Return a builder of a free body with joint frames and two D6 joints on it, moving."""
    rng = np.random.default_rng(3)

    def frame() -> list[float]:
        return [*rng.uniform(-0.5, 0.5, 3), *Rotation.random(rng=rng).as_quat()]

    builder = ModelBuilder()
    links = [
        builder.add_link(mass=1.0, inertia=np.eye(3), com=rng.uniform(-0.3, 0.3, 3), xform=frame())
        for _ in range(3)
    ]
    axes = rng.normal(size=(8, 3))
    frames = [{"parent_xform": frame(), "child_xform": frame()} for _ in links]
    joints = [
        builder.add_joint_free(links[0], **frames[0]),
        builder.add_joint_d6(links[0], links[1], linear_axes=axes[:2], angular_axes=axes[2:5], **frames[1]),
        builder.add_joint_d6(links[1], links[2], linear_axes=axes[5:6], angular_axes=axes[6:], **frames[2]),
    ]
    builder.add_articulation(joints)
    builder.joint_q[7:] = rng.uniform(-1.0, 1.0, 8)
    builder.joint_qd[:] = rng.uniform(-1.0, 1.0, 14)
    return builder


@pytest.fixture(params=[make_arm, make_machine])
def make(request):
    """Makes a builder; together the two have joints of all types, off-centre frames, and motion."""
    return request.param


def snapshot(builder: ModelBuilder) -> Snapshot:
    """Return the columns of a builder as `finalize` uses them."""
    source = Snapshot(builder)
    source.normalize()
    return source


def test_poses_are_the_product_of_the_joint_transforms(make):
    """All joint types with frames on both sides, against products of 4x4 matrices."""
    source = snapshot(make())
    body_q, _ = eval_initial_kinematics(source, joint_depths(source))
    expected = body_matrices(source)
    for body, pose in enumerate(body_q):
        np.testing.assert_allclose(matrix(pose), expected[body], rtol=0.0, atol=ROUNDING)


def test_velocities_are_the_derivative_of_the_poses(make):
    """Moving every joint at its velocity for a short time moves each centre of mass at body_qd.

    Central differences over a step of 1e-5 s are exact to the step squared (times third derivatives near 1)
    plus rounding over the step: 1e-10 + 1e-16 / 1e-5.
    """
    source = snapshot(make())
    _, body_qd = eval_initial_kinematics(source, joint_depths(source))
    step, tolerance = 1e-5, 2e-9
    moved = []
    for sign in (1.0, -1.0):
        ahead = snapshot(make())
        advance(ahead, sign * step)
        moved.append(body_matrices(ahead))
    for body in range(len(body_qd)):
        com = np.append(source.body_com[body], 1.0)
        after, before = (matrices[body] for matrices in moved)
        linear = ((after - before) @ com)[:3] / (2.0 * step)
        angular = Rotation.from_matrix(after[:3, :3] @ before[:3, :3].T).as_rotvec() / (2.0 * step)
        np.testing.assert_allclose(body_qd[body], [*linear, *angular], rtol=0.0, atol=tolerance)


def test_the_device_agrees_with_the_host(make):
    """eval_fk of the initial coordinates gives the initial poses and velocities, to single precision."""
    model = make().finalize("cpu")
    state = model.state()
    state.body_q.fill_(float("nan"))
    state.body_qd.fill_(float("nan"))
    eval_fk(model, model.joint_q, model.joint_qd, state)
    np.testing.assert_allclose(state.body_q.numpy(), model.body_q.numpy(), rtol=0.0, atol=2e-6)
    np.testing.assert_allclose(state.body_qd.numpy(), model.body_qd.numpy(), rtol=0.0, atol=5e-6)


def advance(source: Snapshot, time: float) -> None:
    """Move the joint coordinates at the joint velocities for a short time."""
    for joint, kind in enumerate(source.joint_type):
        q = source.joint_q[source.joint_q_start[joint] : source.joint_q_start[joint + 1]]
        qd = source.joint_qd[source.joint_qd_start[joint] : source.joint_qd_start[joint + 1]]
        if kind == JointType.BALL:
            q[:] = (Rotation.from_rotvec(time * qd) * Rotation.from_quat(q)).as_quat()
        elif kind == JointType.FREE:
            # In the world the body moves; the coordinates follow from its pose.
            parent, child = matrix(source.joint_X_p[joint]), matrix(source.joint_X_c[joint])
            body = parent @ matrix(q) @ np.linalg.inv(child)
            com = source.body_com[source.joint_child[joint]]
            moved = np.eye(4)
            moved[:3, :3] = Rotation.from_rotvec(time * qd[3:]).as_matrix() @ body[:3, :3]
            moved[:3, 3] = body[:3, 3] + body[:3, :3] @ com + time * qd[:3] - moved[:3, :3] @ com
            joint_pose = np.linalg.inv(parent) @ moved @ child
            q[:3], q[3:] = joint_pose[:3, 3], Rotation.from_matrix(joint_pose[:3, :3]).as_quat()
        else:
            q += time * qd


def test_a_double_pendulum_has_the_textbook_velocities():
    """Two rods of 1 m, hinges at 1 and 2 rad/s: the second com moves at w1 l + (w1 + w2) l / 2."""
    builder = ModelBuilder()
    down = ((0.0, 0.0, -1.0), (0.0, 0.0, 0.0, 1.0))
    rods = [builder.add_link(mass=1.0, inertia=np.eye(3), com=(0.0, 0.0, -0.5)) for _ in range(2)]
    joints = [
        builder.add_joint_revolute(-1, rods[0], axis="y"),
        builder.add_joint_revolute(rods[0], rods[1], axis="y", parent_xform=down),
    ]
    builder.add_articulation(joints)
    builder.joint_qd[:] = (1.0, 2.0)
    body_qd = builder.finalize("cpu").state().body_qd.numpy()
    np.testing.assert_allclose(body_qd[0], [-0.5, 0, 0, 0, 1, 0], rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(body_qd[1], [-1.0 - 0.5 * 3.0, 0, 0, 0, 3, 0], rtol=0.0, atol=1e-6)


def test_the_pose_of_a_link_behind_a_hinge_follows_from_joint_q():
    """The pose given to add_link counts for free joints only; bodies never start where their joint is not."""
    builder = ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3), xform=((5.0, 5.0, 5.0), (0.0, 0.0, 0.0, 1.0)))
    builder.add_articulation(
        [
            builder.add_joint_prismatic(
                -1, link, axis="x", parent_xform=((0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0))
            )
        ]
    )
    builder.joint_q[0] = 0.5
    assert builder.finalize("cpu").state().body_q.numpy()[0].tolist() == [0.5, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
