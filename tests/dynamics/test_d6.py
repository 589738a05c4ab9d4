"""D6 joints: closed forms and conservation laws; the random trees of the other tests hold D6 joints too."""

import numpy as np
import pytest
import warp as wp

from pluriverse import JointDofConfig, Model, ModelBuilder, State
from pluriverse.dynamics import Workspace, eval_free_motion, eval_kinematics, integrate

PRINCIPAL = np.array([0.3, 0.5, 0.7])  # kg m^2


def make_d6(linear=(), angular=(), *, com=(0.0, 0.0, 0.0), gravity=0.0, q=(), qd=()) -> Model:
    """Return a body of 2 kg behind one D6 joint to the world."""
    builder = ModelBuilder(gravity=gravity)
    body = builder.add_link(mass=2.0, com=com, inertia=np.diag(PRINCIPAL))
    builder.add_articulation([builder.add_joint_d6(-1, body, linear_axes=linear, angular_axes=angular)])
    builder.joint_q[:] = q
    builder.joint_qd[:] = qd
    return builder.finalize("cpu")


def evaluate(model: Model, state: State, dt: float) -> Workspace:
    """Return the workspace after the stages up to the free motion."""
    workspace = Workspace(model, wp.float64)
    eval_kinematics(model, model.worlds, state, workspace)
    eval_free_motion(model, model.worlds, state, model.control(), workspace, dt)
    return workspace


def body_momenta(state: State) -> tuple[float, np.ndarray]:
    """Return kinetic energy and angular momentum about the world's origin of the body of `make_d6`."""
    from scipy.spatial.transform import Rotation

    pose, velocity = state.body_q.numpy()[0].astype(float), state.body_qd.numpy()[0].astype(float)
    rotation = Rotation.from_quat(pose[3:]).as_matrix()
    spin = rotation @ np.diag(PRINCIPAL) @ rotation.T @ velocity[3:]
    energy = velocity[:3] @ velocity[:3] + 0.5 * velocity[3:] @ spin
    return energy, spin + 2.0 * np.cross(pose[:3], velocity[:3])


def test_gimbal_obeys_the_equations_of_a_universal_joint():
    """Two perpendicular axes, x then y: Lagrange's equations of the kinetic energy with both angles.

    omega in the body is (cos b a', b', sin b a'), so with principal inertias A, B, C
    d/dt((A cos^2 b + C sin^2 b) a') = 0 and B b'' = (C - A) sin b cos b a'^2.
    """
    a_rate, b, b_rate, dt = 1.5, 0.6, -0.8, 1e-3
    model = make_d6(angular=["x", "y"], q=[0.4, b], qd=[a_rate, b_rate])
    workspace = evaluate(model, model.state(), dt)
    b, a_rate, b_rate = (float(np.float32(value)) for value in (b, a_rate, b_rate))
    a_inertia, b_inertia, c_inertia = PRINCIPAL.astype(np.float32).astype(float)
    about_first = a_inertia * np.cos(b) ** 2 + c_inertia * np.sin(b) ** 2
    change = (c_inertia - a_inertia) * np.sin(2.0 * b)
    expected = [-change * b_rate * a_rate / about_first, 0.5 * change * a_rate**2 / b_inertia]
    acceleration = (workspace.dof_velocity_free.numpy() - workspace.dof_velocity.numpy()) / dt
    np.testing.assert_allclose(acceleration, expected, rtol=1e-12)


def test_a_slide_and_turn_in_a_plane_move_the_centre_of_mass_straight():
    """x, y and a turn about z make a free body of the plane: without forces the com moves uniformly."""
    model = make_d6(["x", "y"], ["z"], com=(0.3, -0.2, 0.0), q=[1.0, 2.0, 0.5], qd=[0.2, -0.1, 3.0])
    states = [model.state(), model.state()]
    velocity = states[0].body_qd.numpy()[0].astype(float)
    workspace = Workspace(model, wp.float64)
    dt = 1e-3
    for _ in range(200):
        eval_kinematics(model, model.worlds, states[0], workspace)
        eval_free_motion(model, model.worlds, states[0], model.control(), workspace, dt)
        wp.copy(workspace.dof_velocity_next, workspace.dof_velocity_free)
        integrate(model, model.worlds, *states, workspace, dt)
        states.reverse()
    # Explicit velocity products: an error of first order in dt times the change over 0.2 s.
    np.testing.assert_allclose(states[0].body_qd.numpy()[0], velocity, atol=5.0 * dt)


def test_three_successive_turns_conserve_energy_and_angular_momentum():
    """Three axes span all rotations: a body without forces keeps energy and angular momentum.

    The error of a step is of second order, so halving the step halves the drift over a fixed time.
    """
    drifts = []
    for step_count in (400, 800):
        model = make_d6(angular=["z", "x", "y"], q=[0.2, 0.3, -0.4], qd=[1.0, -2.0, 1.5])
        states, workspace = [model.state(), model.state()], Workspace(model, wp.float64)
        energy, momentum = body_momenta(states[0])
        for _ in range(step_count):
            eval_kinematics(model, model.worlds, states[0], workspace)
            eval_free_motion(model, model.worlds, states[0], model.control(), workspace, 0.4 / step_count)
            wp.copy(workspace.dof_velocity_next, workspace.dof_velocity_free)
            integrate(model, model.worlds, *states, workspace, 0.4 / step_count)
            states.reverse()
        energy_end, momentum_end = body_momenta(states[0])
        drifts.append([abs(energy_end / energy - 1.0), np.linalg.norm(momentum_end - momentum)])
    assert np.max(drifts[0]) < 5e-3
    ratios = np.divide(*drifts)
    np.testing.assert_allclose(ratios, 2.0, rtol=0.2)


@pytest.mark.parametrize("axis", ["x", (0.6, 0.0, 0.8)])
def test_a_d6_joint_of_one_axis_is_a_slider_or_a_hinge(axis):
    """The same body behind a D6 joint of one axis and behind the joint of that axis gets the same results."""
    frames = {
        "parent_xform": (0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 0.5),
        "child_xform": (0.0, 0.4, 0.0, 0.6, 0.0, 0.0, 0.8),
    }
    results = []
    for single in (True, False):
        builder = ModelBuilder()
        links = [
            builder.add_link(mass=1.0, com=(0.1, 0.2, 0.0), inertia=np.diag(PRINCIPAL)) for _ in range(2)
        ]
        config = JointDofConfig(axis=axis, armature=0.1, damping=0.5)
        if single:
            joints = [
                builder.add_joint_revolute(-1, links[0], axis=config, **frames),
                builder.add_joint_prismatic(links[0], links[1], axis=config, **frames),
            ]
        else:
            joints = [
                builder.add_joint_d6(-1, links[0], angular_axes=[config], **frames),
                builder.add_joint_d6(links[0], links[1], linear_axes=[config], **frames),
            ]
        builder.add_articulation(joints)
        builder.joint_q[:] = 0.7, -0.4
        builder.joint_qd[:] = 1.3, 0.9
        model = builder.finalize("cpu")
        workspace = evaluate(model, model.state(), 0.01)
        results.append(np.concatenate([workspace.mass_row.numpy(), workspace.dof_velocity_free.numpy()]))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-13)
