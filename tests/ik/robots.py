"""Robots of the tests of inverse kinematics, and what independent formulas say of them."""

import numpy as np
import warp as wp

import pluriverse as pv

IDENTITY = wp.quat(0.0, 0.0, 0.0, 1.0)


def frame(position=(0.0, 0.0, 0.0), rotation=IDENTITY):
    """Return a pose."""
    return wp.transform(wp.vec3(*position), rotation)


def add_link(builder):
    """Add a link whose inertia has no meaning here."""
    return builder.add_link(mass=1.0, inertia=np.eye(3))


def add_planar_arm(builder, lengths):
    """Add an arm in the x-y plane and return its links. Its tip is at x = length in the last."""
    joints, links = [], []
    for index in range(len(lengths)):
        links.append(add_link(builder))
        parent = links[-2] if index else -1
        reach = lengths[index - 1] if index else 0.0
        joints.append(
            builder.add_joint_revolute(
                parent=parent, child=links[-1], axis=(0.0, 0.0, 1.0), parent_xform=frame((reach, 0.0, 0.0))
            )
        )
    builder.add_articulation(joints)
    return links


def planar_tip(lengths, joint_q):
    """Return the position of the tip in the plane, from angles of shape [..., link]."""
    angle = np.cumsum(np.asarray(joint_q, dtype=np.float64), axis=-1)
    return np.stack([(np.cos(angle) * lengths).sum(-1), (np.sin(angle) * lengths).sum(-1)], axis=-1)


def add_every_joint(builder):
    """Add a tree with a joint of each type, two of them below bodies, in frames that are turned."""
    turn = wp.quat_from_axis_angle(wp.normalize(wp.vec3(1.0, 2.0, -0.5)), 0.7)
    shape = {"parent_xform": frame((0.3, -0.1, 0.2), turn), "child_xform": frame((-0.1, 0.2, 0.05), turn)}
    links = [add_link(builder) for _ in range(8)]
    axis = tuple(wp.normalize(wp.vec3(1.0, -1.0, 0.5)))
    dof = pv.JointDofConfig
    joints = [
        builder.add_joint_free(child=links[0], child_xform=shape["child_xform"]),
        builder.add_joint_revolute(parent=links[0], child=links[1], axis=axis, **shape),
        builder.add_joint_prismatic(parent=links[1], child=links[2], axis=axis, **shape),
        builder.add_joint_ball(parent=links[2], child=links[3], **shape),
        builder.add_joint_fixed(parent=links[3], child=links[4], **shape),
        builder.add_joint_d6(
            parent=links[4],
            child=links[5],
            linear_axes=[dof(axis=(1.0, 0.0, 0.0)), dof(axis=(0.0, 1.0, 0.0))],
            angular_axes=[dof(axis=(0.0, 1.0, 0.0)), dof(axis=(0.0, 0.0, 1.0))],
            **shape,
        ),
        builder.add_joint_distance(parent=links[5], child=links[6], max_distance=9.0, **shape),
        builder.add_joint_revolute(parent=links[6], child=links[7], axis=(0.0, 1.0, 0.0), **shape),
    ]
    builder.add_articulation(joints)
    return links


def some_coords(model, rng, spread=1.0):
    """Return random coordinates of a model whose quaternions have length 1."""
    joint_q = spread * rng.uniform(-1.0, 1.0, model.joint_coord_count)
    starts = model.joint_q_start.numpy()
    for joint, kind in enumerate(model.joint_type.numpy()):
        if kind in (pv.JointType.FREE, pv.JointType.DISTANCE, pv.JointType.BALL):
            last = starts[joint + 1]
            joint_q[last - 4 : last] /= np.linalg.norm(joint_q[last - 4 : last])
    return joint_q.astype(np.float32)


def body_poses(model, joint_q):
    """Return poses by `eval_fk`, shape [row, body, 7], for coordinates of shape [row, coord]."""
    poses = []
    for row in np.atleast_2d(joint_q):
        state = model.state()
        pv.eval_fk(model, wp.array(row, dtype=float, device=model.device), model.joint_qd, state)
        poses.append(state.body_q.numpy())
    return np.array(poses)


def rotation_distance(a, b):
    """Return the angle [rad] between orientations given as quaternions xyzw, shape [..., 4]."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    # The sine of half the angle keeps digits where the cosine has none.
    va, wa, vb, wb = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    sine = np.linalg.norm(wb * va - wa * vb - np.cross(va, vb), axis=-1)
    return 2.0 * np.arctan2(sine, np.abs((a * b).sum(-1)))
