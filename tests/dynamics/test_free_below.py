"""Free joints below a body: relative coordinates of a body that its parent does not act on."""

import numpy as np
import pytest

from pluriverse import ModelBuilder, SolverSAP, eval_fk, eval_ik

TURN = (0.0, 0.0, np.sin(0.3), np.cos(0.3))
FRAMES = {"parent_xform": ((0.2, -0.1, 0.3), TURN), "child_xform": ((0.1, 0.05, -0.2), (0.6, 0.0, 0.0, 0.8))}
COM = (0.05, 0.1, -0.02)
INERTIA = np.diag([0.03, 0.02, 0.04])


def carrier_with(kind: str, *, gravity: float = -9.81) -> ModelBuilder:
    """A floating arm of two links, and a body on the outer one by a free joint or by six axes."""
    builder = ModelBuilder(gravity=gravity)
    base = builder.add_link(mass=2.0, inertia=np.eye(3), com=(0.1, 0.0, 0.0))
    arm = builder.add_link(mass=1.0, inertia=0.1 * np.eye(3))
    body = builder.add_link(mass=0.7, inertia=INERTIA, com=COM, xform=((0.4, 0.3, 0.6), (0.0, 0.6, 0.0, 0.8)))
    joints = [builder.add_joint_free(base), builder.add_joint_revolute(base, arm, axis=(0.0, 1.0, 1.0))]
    if kind == "free":
        joints.append(builder.add_joint_free(body, parent=arm, **FRAMES))
    elif kind == "six axes":
        axes = ["x", "y", "z"]
        joints.append(builder.add_joint_d6(arm, body, linear_axes=axes, angular_axes=axes, **FRAMES))
    else:
        joints.append(builder.add_joint_free(body))
    builder.add_articulation(joints)
    return builder


def moving(kind: str, steps: int, dt: float, gravity: float):
    """Body poses and velocities from a given motion of all bodies, after steps of dt."""
    model = carrier_with(kind, gravity=gravity).finalize("cpu")
    solver = SolverSAP(model, contact_preset_variant="approx64")
    state, other = model.state(), model.state()
    reference = carrier_with("free").finalize("cpu")
    qd = reference.joint_qd.numpy()
    qd[:] = [0.3, -0.2, 0.1, 0.5, 1.0, -0.8, 1.5, 0.4, 0.2, -0.3, 0.7, -0.5, 0.6]
    reference.joint_qd.assign(qd)
    initial = reference.state()
    eval_fk(reference, reference.joint_q, reference.joint_qd, initial)
    state.body_q.assign(initial.body_q)  # other joints, the same bodies
    state.body_qd.assign(initial.body_qd)
    eval_ik(model, state, state.joint_q, state.joint_qd)
    eval_fk(model, state.joint_q, state.joint_qd, state)
    np.testing.assert_allclose(state.body_q.numpy(), initial.body_q.numpy(), atol=1e-5)
    np.testing.assert_allclose(state.body_qd.numpy(), initial.body_qd.numpy(), atol=1e-5)
    for _ in range(steps):
        solver.step(state, other, None, None, dt)
        state, other = other, state
    return initial, state


def test_the_body_starts_at_its_pose():
    """Whatever the frames and the pose of the parent that the builder was given."""
    builder = ModelBuilder()
    parent = builder.add_link(mass=1.0, inertia=np.eye(3), xform=((1.0, 2.0, 3.0), TURN))
    pose = ((0.4, 0.3, 0.6), (0.0, 0.6, 0.0, 0.8))
    child = builder.add_link(mass=1.0, inertia=np.eye(3), xform=pose)
    joints = [builder.add_joint_free(parent), builder.add_joint_free(child, parent=parent, **FRAMES)]
    builder.add_articulation(joints)
    model = builder.finalize("cpu")
    np.testing.assert_allclose(model.body_q.numpy()[child], [*pose[0], *pose[1]], atol=1e-6)


@pytest.mark.parametrize("gravity", [0.0, -9.81])
def test_it_moves_as_by_six_axes_and_as_in_the_world(gravity):
    """Three descriptions of one motion; they converge to each other with the time step."""
    difference = {}
    for dt in (2e-3, 1e-3):
        ends = {kind: moving(kind, round(0.4 / dt), dt, gravity)[1] for kind in ("free", "six axes", "world")}
        expected = ends["world"].body_q.numpy()
        difference[dt] = [np.abs(ends[kind].body_q.numpy() - expected).max() for kind in ("free", "six axes")]
    for index in range(2):
        assert difference[1e-3][index] < 5e-4
        # Semi-implicit Euler in other coordinates: first order.
        assert difference[1e-3][index] < 0.6 * difference[2e-3][index] + 1e-5


def test_its_centre_of_mass_moves_straight_and_feels_no_parent():
    """Without gravity it keeps its velocity, and the arm the momenta that it would have alone."""
    initial, end = moving("free", 500, 1e-3, 0.0)
    before, after = initial.body_qd.numpy()[2, :3], end.body_qd.numpy()[2, :3]
    np.testing.assert_allclose(after, before, atol=2e-3)  # first order in the step, over a turn of 1 rad
    _, alone = moving("world", 500, 1e-3, 0.0)
    np.testing.assert_allclose(end.body_q.numpy()[:2], alone.body_q.numpy()[:2], atol=1e-5)
