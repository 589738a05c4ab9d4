"""Habits of scripts written for Newton that concern states, solvers and the columns of builders."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.warnings import PluriverseWarning


@pytest.fixture(scope="module")
def model():
    """Two worlds, each of a free ball and a pendulum."""
    robot = pv.ModelBuilder()
    robot.add_shape_sphere(robot.add_body(xform=((0.0, 0.0, 2.0), (0.0, 0.0, 0.0, 1.0))), radius=0.1)
    rod = robot.add_link(mass=1.0, inertia=np.eye(3), com=(0.5, 0.0, 0.0))
    robot.add_articulation([robot.add_joint_revolute(-1, rod, axis="y")])
    builder = pv.ModelBuilder()
    builder.replicate(robot, 2)
    return builder.finalize("cpu")


@pytest.mark.parametrize("mask", [[True, False, False], [True, False], [0]], ids=str)
@pytest.mark.parametrize("solver_type", [pv.SolverSAP, pv.SolverMuJoCo])
def test_a_solver_resets_the_worlds_of_a_mask(model, solver_type, mask):
    """World 0 is back at its start, with its force gone; world 1 keeps every bit."""
    solver, state, after = solver_type(model), model.state(), model.state()
    pv.eval_fk(model, model.joint_q, model.joint_qd, state)
    for _ in range(5):
        solver.step(state, after, None, None, 0.01)
        state, after = after, state
    state.body_f.fill_(1.0)
    before = {name: getattr(state, name).numpy() for name in ("joint_q", "joint_qd", "body_q", "body_f")}
    mask = wp.array(mask, dtype=wp.bool, device="cpu") if isinstance(mask[0], bool) else mask
    solver.reset(state, mask)
    for name, moved in before.items():
        value, half = getattr(state, name).numpy(), len(moved) // 2
        start = 0.0 if name == "body_f" else getattr(model, name).numpy()[:half]
        np.testing.assert_array_equal(value[:half], np.broadcast_to(start, value[:half].shape))
        np.testing.assert_array_equal(value[half:], moved[half:])


def test_parts_of_a_state_are_reset_by_their_flags(model):
    solver, state = pv.SolverSAP(model), model.state()
    state.joint_q.fill_(0.5)
    state.joint_qd.fill_(0.5)
    solver.reset(state, flags=pv.StateFlags.JOINT_QD)
    assert (state.joint_q.numpy() == 0.5).all()
    assert (state.joint_qd.numpy() == 0.0).all()
    assert solver.device == model.device
    contacts = pv.CollisionPipeline(model).contacts()
    solver.update_contacts(contacts, state)
    with pytest.raises(TypeError, match=r"SolverSAP\.update_contacts: contacts"):
        solver.update_contacts(state)
    with pytest.raises(IndexError, match=r"SolverSAP\.reset"):
        solver.reset(state, [7])


def test_states_and_controls_refuse_gradients(model):
    assert not model.requires_grad
    assert not model.state(requires_grad=False).requires_grad
    for make in (model.state, model.control):
        with pytest.raises(ValueError, match="requires_grad is True, but steps are not differentiable"):
            make(requires_grad=True)
    np.testing.assert_array_equal(model.joint_target_q_start.numpy(), model.joint_q_start.numpy())


def test_columns_compare_with_lists_as_lists_do():
    builder = pv.ModelBuilder()
    for _ in range(2):
        builder.begin_world()
        builder.add_body(mass=1.0)
        builder.end_world()
    builder.add_shape_sphere(-1, radius=0.1)
    assert builder.body_world == [0, 1]
    assert builder.body_world != [0, 1, 1]
    assert builder.body_world[1:] == [1]
    assert (builder.body_world == 0).tolist() == [True, False]
    assert builder.body_com == [wp.vec3(), [0.0, 0.0, 0.0]]
    builder.joint_q[-7:-4] = wp.vec3(1.0, 2.0, 3.0)
    builder.joint_q[7:] = wp.transform((1.0, 2.0, 3.0), wp.quat_identity())
    assert builder.joint_q[-7:] == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0]
    builder.body_mass += 1.0
    assert builder.body_mass == [2.0, 2.0]
    with pytest.raises(TypeError, match=r"ModelBuilder\.body_mass \+= a list: .* nothing can be appended"):
        builder.body_mass += [1.0, 1.0]
    for add in (builder.joint_q.extend, builder.joint_q.append):
        with pytest.raises(AttributeError, match="nothing can be appended"):
            add(1.0)


def test_what_points_up_is_a_vector_too():
    builder = pv.ModelBuilder(up_axis="Y")
    assert builder.up_vector == (0.0, 1.0, 0.0)
    builder.up_vector = wp.vec3(1.0, 0.0, 0.0)
    assert builder.up_axis is pv.Axis.X
    with pytest.raises(ValueError, match="must be along x, y or z"):
        builder.up_vector = (0.0, 0.6, 0.8)
    assert builder.validate_joint_ordering()


def test_a_pipeline_takes_what_newton_has(model):
    pv.CollisionPipeline(model, max_triangle_pairs=1000, contact_matching="disabled", verify_buffers=False)
    with pytest.warns(PluriverseWarning, match="kinematic_pairs=True changes nothing") as caught:
        pipeline = pv.CollisionPipeline(model, include_static_kinematic_pairs=True)
    assert caught[0].filename == __file__
    pipeline.collide(model.state(), pipeline.contacts(), dt=0.01)
    with pytest.raises(TypeError, match="unexpected keyword argument 'rigid_contacts_max'"):
        pv.CollisionPipeline(model, rigid_contacts_max=3)


def test_dynamics_take_the_scratch_of_newton(model):
    state, scratch = model.state(), wp.empty(1, dtype=wp.spatial_vector, device="cpu")
    J = pv.eval_jacobian(model, state, joint_S_s=scratch)
    H = pv.eval_mass_matrix(model, state, J=J, body_I_s=scratch, joint_S_s=scratch)
    view = pv.selection.ArticulationView(model, "*", homogeneous=False)
    np.testing.assert_array_equal(view.eval_mass_matrix(state, J=J).numpy(), H.numpy())
    np.testing.assert_array_equal(view.eval_jacobian(state, joint_S_s=scratch).numpy(), J.numpy())


def test_contacts_are_measured_where_bodies_are_now():
    """A ball of 0.1 m with a margin of 1 cm, found low, is 0.19 m from the ground when at 0.3 m."""
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    cfg = builder.default_shape_cfg.copy()
    cfg.margin, cfg.gap = 0.01, 0.2
    ball = builder.add_body(xform=((0.0, 0.0, 0.15), (0.0, 0.0, 0.0, 1.0)))
    builder.add_shape_sphere(ball, radius=0.1, cfg=cfg)
    model = builder.finalize("cpu")
    pipeline, state = pv.CollisionPipeline(model), model.state()
    contacts = pipeline.contacts()
    pipeline.collide(state, contacts)
    state.body_q = [[1.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0]]
    distance = wp.full(contacts.rigid_contact_max, np.nan, dtype=float, device="cpu")
    points = [wp.zeros(contacts.rigid_contact_max, dtype=wp.vec3, device="cpu") for _ in range(2)]
    measure = pv.eval_rigid_contact_kinematics
    measure(
        model, state, contacts, out_distance=distance, out_point0_world=points[0], out_point1_world=points[1]
    )
    assert contacts.rigid_contact_count.numpy().tolist() == [1]
    assert distance.numpy()[0] == pytest.approx(0.19, abs=1.0e-6)
    heights = sorted(array.numpy()[0, 2] for array in points)
    np.testing.assert_allclose(heights, [0.0, 0.19], atol=1.0e-6)
    assert np.isnan(distance.numpy()[1:]).all()
    with pytest.raises(ValueError, match="nothing is asked for"):
        measure(model, state, contacts)
    with pytest.raises(ValueError, match="out_distance has type float32 and shape"):
        measure(model, state, contacts, out_distance=distance[:0])
