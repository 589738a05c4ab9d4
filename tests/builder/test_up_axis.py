"""Builders in which x or y points up, as scripts of graphics and of Newton have them."""

import warnings

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.recording import RecordedRun

# A box on a free joint, authored with z up as MuJoCo files are: three times as high as it is wide.
TOWER = """<mujoco><worldbody><body pos="0 0 {height}"><freejoint/>
<geom type="box" size="{x} {y} {z}"/></body></worldbody></mujoco>"""


def settle(builder, solver_type, step_count=300):
    """Return model and state after `step_count` steps of 5 ms."""
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, dt=0.005, solver=solver_type(model))
    simulation.step(step_count)
    return model, simulation.state


@pytest.mark.parametrize("axis", ["x", pv.Axis.Y, 2])
def test_a_ball_rests_on_the_ground_plane_below_it(axis):
    up = np.array(pv.Axis.from_any(axis).vector)
    builder = pv.ModelBuilder(up_axis=axis)
    builder.add_ground_plane(height=0.5)
    ball = builder.add_body(xform=(*(0.65 * up), 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_sphere(ball, radius=0.1)
    model, state = settle(builder, pv.SolverSAP)
    assert model.up_axis is pv.Axis.from_any(axis)
    np.testing.assert_allclose(model.gravity.numpy(), [-9.81 * up], rtol=1.0e-6)
    # It sinks in by the compliance of the contact, less than a millimetre for this mass of 4 kg.
    np.testing.assert_allclose(state.body_q.numpy()[0, :3], 0.6 * up, atol=1.0e-3)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_a_ball_rests_on_a_height_field_that_rises_along_the_up_axis(axis):
    builder = pv.ModelBuilder(up_axis=axis)
    up = np.array(builder.up_vector)
    builder.add_shape_heightfield(heightfield=pv.Heightfield(np.full((5, 5), 0.25), 5, 5, 2.0, 2.0))
    builder.add_shape_sphere(builder.add_body(xform=(*(0.4 * up), 0.0, 0.0, 0.0, 1.0)), radius=0.1)
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1)
    simulation.step(60)
    np.testing.assert_allclose(simulation.state.body_q.numpy()[0, :3], 0.35 * up, atol=2e-3)


def test_gravity_is_a_number_along_the_up_axis_everywhere():
    world = pv.ModelBuilder(up_axis="y", gravity=-1.62)
    world.add_shape_sphere(world.add_body(), radius=0.1)
    builder = pv.ModelBuilder(up_axis=pv.Axis.Y)
    builder.add_world(world)
    builder.begin_world(gravity=-3.7)
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    builder.end_world()
    model = builder.finalize("cpu")
    np.testing.assert_allclose(model.gravity.numpy(), [[0.0, -1.62, 0.0], [0.0, -3.7, 0.0]], rtol=1.0e-6)
    model.set_gravity(-9.81, world=1)
    np.testing.assert_allclose(model.gravity.numpy()[1], [0.0, -9.81, 0.0], rtol=1.0e-6)


@pytest.mark.parametrize("solver_type", [pv.SolverSAP, pv.SolverMuJoCo])
def test_an_mjcf_robot_stands_upright_where_y_points_up(solver_type):
    builder = pv.ModelBuilder(up_axis="y")
    builder.add_ground_plane()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the gravity of the file is that of the builder, turned as the robot
        builder.add_mjcf(TOWER.format(height=0.31, x=0.1, y=0.1, z=0.3))
    _, state = settle(builder, solver_type, 200)
    pose = state.body_q.numpy()[0]
    np.testing.assert_allclose(pose[:3], [0.0, 0.3, 0.0], atol=2.0e-3)


def test_a_file_authored_with_y_up_is_not_turned_where_y_points_up():
    builder = pv.ModelBuilder(up_axis=pv.Axis.Y)
    builder.add_mjcf(TOWER.format(height=0.0, x=0.1, y=0.3, z=0.1), up_axis=pv.Axis.Y)
    np.testing.assert_allclose(builder.joint_q[3:7], [0.0, 0.0, 0.0, 1.0], atol=1.0e-12)


def test_copies_stand_apart_on_the_ground_and_not_above_it():
    robot = pv.ModelBuilder(up_axis="y")
    robot.add_shape_sphere(robot.add_body(), radius=0.1)
    builder = pv.ModelBuilder(up_axis="y")
    builder.replicate(robot, 4, spacing=(2.0, 0.0, 2.0))
    places = builder.finalize("cpu").joint_q.numpy().reshape(4, 7)[:, :3]
    np.testing.assert_allclose(places.mean(axis=0), 0.0, atol=1.0e-6)
    assert np.ptp(places, axis=0).tolist() == [2.0, 0.0, 2.0]


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_a_picture_and_a_recording_of_it_show_what_points_up(axis, tmp_path):
    up = np.array(pv.Axis.from_any(axis).vector)
    builder = pv.ModelBuilder(up_axis=axis)
    tower = builder.add_body()
    builder.add_shape_box(
        tower, **dict(zip(("hx", "hy", "hz"), 0.1 + 0.4 * up, strict=True)), color=(1, 0, 0)
    )
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, dt=0.01)
    with simulation.record(tmp_path / "run.pvr"):
        simulation.step()
    with RecordedRun(tmp_path / "run.pvr") as recording:
        recording.show_frame(-1)
        pictures = [pv.draw(seen, size=(64, 64), samples=4) for seen in (model, recording)]
    for picture in pictures:
        red = picture[..., 0].astype(int) - picture[..., 1] > 60
        rows, columns = np.nonzero(red)
        assert np.ptp(rows) > 2 * np.ptp(columns)
