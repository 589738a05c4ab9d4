"""Sensors for loops of one's own: inertial units, relative poses, contact forces."""

import numpy as np
import pytest
import warp as wp

import pluriverse as newton
from pluriverse.sensors import SensorContact, SensorFrameTransform, SensorIMU

GRAVITY = 9.81
BALL_MASS = 2.0
STEP = 0.005
# The force that holds a ball still after half a second of settling, relative to its weight.
REST_ERROR = 1e-3


def solver_of(name, model):
    return getattr(newton.solvers, name)(model)


def run(model, solver, step_count):
    """Return state and contacts after some steps."""
    pipeline = newton.CollisionPipeline(model)
    contacts, control = pipeline.contacts(), model.control()
    state_0, state_1 = model.state(), model.state()
    newton.eval_fk(model, model.joint_q, model.joint_qd, state_0)
    for _ in range(step_count):
        state_0.clear_forces()
        pipeline.collide(state_0, contacts)
        solver.step(state_0, state_1, control, contacts, STEP)
        solver.update_contacts(contacts, state_0)
        state_0, state_1 = state_1, state_0
    return state_0, contacts


@pytest.fixture(scope="module")
def balls():
    """Two worlds, of one ball and of two, on a common ground; a box that spins far above in both."""
    builder = newton.ModelBuilder()
    builder.add_ground_plane(label="ground")
    for count in (1, 2):
        builder.begin_world()
        for place in range(count):
            pose = wp.transform((place, 0, 0.1), wp.quat_identity())
            ball = builder.add_body(xform=pose, mass=BALL_MASS, label=f"ball_{place}")
            cfg = newton.ModelBuilder.ShapeConfig(density=0.0)
            builder.add_shape_sphere(ball, radius=0.1, cfg=cfg, label=f"skin_{place}")
            builder.body_inertia[ball] = 0.4 * BALL_MASS * 0.01 * np.eye(3)
            builder.add_site(ball, label=f"imu_{place}")
        flyer = builder.add_body(xform=wp.transform((0, 5, 9), wp.quat_identity()), label="flyer")
        builder.add_shape_box(flyer, hx=0.1, hy=0.1, hz=0.1, label="box")
        turn = wp.quat_from_axis_angle(wp.vec3(0, 0, 1), np.pi / 2)
        builder.add_site(flyer, xform=wp.transform((0.5, 0, 0), turn), label="rim")
        builder.joint_qd[-1] = 3.0
        builder.end_world()
    return builder.finalize("cpu")


@pytest.mark.parametrize("solver", ["SolverSAP", "SolverMuJoCo"])
def test_inertial_units_feel_support_fall_and_spin(balls, solver):
    imu = SensorIMU(balls, sites="imu_*")
    rim = SensorIMU(balls, sites="rim")
    state, _ = run(balls, solver_of(solver, balls), 100)
    imu.update(state)
    rim.update(state)
    np.testing.assert_allclose(imu.accelerometer.numpy()[:, 2], GRAVITY, rtol=REST_ERROR)
    # It falls freely, and turns at 3 rad/s with the site 0.5 m from the axis; x of the site is y of the body.
    np.testing.assert_allclose(rim.accelerometer.numpy(), [[0, 9 * 0.5, 0]] * 2, atol=2e-3)
    np.testing.assert_allclose(rim.gyroscope.numpy(), [[0, 0, 3]] * 2, atol=1e-5)


@pytest.mark.parametrize("solver", ["SolverSAP", "SolverMuJoCo"])
def test_contact_forces_hold_the_balls(balls, solver):
    total = SensorContact(balls, sensing_bodies="ball_*")
    apart = SensorContact(
        balls, sensing_shapes="skin_*", counterpart_shapes=["ground", "skin_*"], measure_total=False
    )
    state, contacts = run(balls, solver_of(solver, balls), 100)
    total.update(state, contacts)
    apart.update(state, contacts)
    weight = BALL_MASS * GRAVITY
    np.testing.assert_allclose(total.total_force.numpy(), [[0, 0, weight]] * 3, atol=REST_ERROR * weight)
    np.testing.assert_allclose(total.total_force_friction.numpy(), 0.0, atol=REST_ERROR * weight)
    assert apart.total_force is None
    ground = balls.shape_label.index("ground")
    assert [row[0] for row in apart.counterpart_indices] == [ground] * 3
    assert [len(row) for row in apart.counterpart_indices] == [2, 3, 3]
    forces = apart.force_matrix.numpy()
    assert forces.shape == (3, 3, 3)
    np.testing.assert_allclose(forces[:, 0, 2], weight, rtol=REST_ERROR)
    assert (forces[:, 1:] == 0.0).all()
    np.testing.assert_allclose(apart.position_matrix.numpy()[:, 0, 0], [0, 0, 1], atol=1e-3)


def test_relative_poses(balls):
    sensor = SensorFrameTransform(balls, shapes="box", reference_sites="rim")
    state = balls.state()
    sensor.update(state)
    half = np.sqrt(0.5)
    # Seen from the site, which is turned by 90 degrees, the box lies along +y.
    np.testing.assert_allclose(sensor.transforms.numpy(), [[0, 0.5, 0, 0, 0, -half, half]] * 2, atol=1e-6)


def test_wrong_choices_say_what_is_possible(balls):
    with pytest.raises(ValueError, match=r"shape 'skin_0' .* is a sphere, but no site\. Add a site there"):
        SensorIMU(balls, sites="skin_0")
    with pytest.raises(KeyError, match="no shape matches 'imu_9'"):
        SensorIMU(balls, sites="imu_9")
    with pytest.raises(TypeError, match="both sensing_bodies and sensing_shapes are given"):
        SensorContact(balls, sensing_bodies="ball_0", sensing_shapes="skin_0")
    with pytest.raises(ValueError, match=r"shape 'ground' .* belongs to no world"):
        SensorContact(balls, sensing_shapes="ground")
    with pytest.raises(ValueError, match="names a body twice"):
        SensorContact(balls, sensing_bodies=[0, 0])
    builder = newton.ModelBuilder()
    builder.add_site(builder.add_body(mass=1.0), label="imu")
    model = builder.finalize("cpu")
    with pytest.raises(ValueError, match=r"the state has no accelerations \(body_qdd\)"):
        SensorIMU(model, "imu", request_state_attributes=False).update(model.state())


def test_states_hold_accelerations_on_request():
    robot = newton.ModelBuilder()
    robot.add_body(mass=1.0)
    robot.request_state_attributes("body_qdd")
    builder = newton.ModelBuilder()
    builder.replicate(robot, 2)
    model = builder.finalize("cpu")
    state, _ = run(model, newton.solvers.SolverSAP(model), 1)
    np.testing.assert_allclose(state.body_qdd.numpy(), [[0, 0, -GRAVITY, 0, 0, 0]] * 2, rtol=1e-5)
    assert model.get_requested_state_attributes() == ["body_qdd"]
    with pytest.raises(ValueError, match="'body_parent_f' cannot be requested: the force of a joint"):
        model.request_state_attributes("body_parent_f")
    model.request_contact_attributes("force")
    with pytest.raises(ValueError, match="'torque' cannot be requested"):
        builder.request_contact_attributes("torque")
