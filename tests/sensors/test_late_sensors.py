"""Sensors that are first used after steps: what only those steps could give is not known and not made up."""

import warnings

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.warnings import SensorWarning

DT = 0.002
STEP_COUNT = 300
OF_STEPS = ("ft_force", "ft_torque", "bump", "sole", "imu_acc")
OF_STATES = ("imu_gyro", "imu_quat", "height", "clock")
BARE = pv.ShapeConfig(density=0.0)
ZONE = pv.sensors.SensorZone(pv.GeoType.BOX, (0.2, 0.2, 0.2))


def make_plate() -> pv.ModelBuilder:
    """A plate of 2 kg, held by the world, with a box of 1 kg on it."""
    builder = pv.ModelBuilder()
    plate = builder.add_link(mass=2.0, inertia=np.eye(3))
    builder.add_shape_box(plate, hx=0.5, hy=0.5, hz=0.02, cfg=BARE)
    builder.add_articulation([builder.add_joint_fixed(-1, plate)])
    builder.add_sensor_force_torque(plate, label="ft")
    box = builder.add_body(xform=((0.2, 0, 0.12), (0, 0, 0, 1)), mass=1.0, inertia=0.01 * np.eye(3))
    builder.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1, cfg=BARE)
    builder.add_sensor("contact", body=box, label="bump")
    builder.add_sensor("touch", body=box, zone=ZONE, cutoff=100.0, label="sole")
    return builder


def make_flyer() -> pv.ModelBuilder:
    """A body that turns as it falls, with an inertial unit."""
    builder = pv.ModelBuilder()
    body = builder.add_body(xform=((0, 0, 5), (0, 0, 0, 1)), mass=1.0, inertia=np.eye(3))
    builder.joint_qd[3:6] = [1.0, 2.0, 3.0]
    builder.add_sensor_imu(body, label="imu")
    builder.add_sensor("framepos", body=body, label="height")
    builder.add_sensor("clock", label="clock")
    return builder


@pytest.fixture(scope="module")
def model():
    """A world of each."""
    builder = pv.ModelBuilder()
    builder.add_world(make_plate())
    builder.add_world(make_flyer())
    return builder.finalize("cpu")


def world_of(name: str) -> int:
    return int(name not in ("ft_force", "ft_torque", "bump", "sole"))


@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
def test_sensors_used_late_are_unknown_or_right(model, solver):
    """Forces, contacts and accelerations are NaN with a warning, all else is right; all is after a step."""
    with (
        pv.Simulation(model, solver(model), dt=DT) as early,
        pv.Simulation(model, solver(model), dt=DT) as late,
    ):
        expected = early.sensors
        early.step(STEP_COUNT)
        late.step(STEP_COUNT)
        with pytest.warns(SensorWarning) as caught:
            sensors = late.sensors
        assert caught[0].filename == __file__
        message = str(caught[0].message)
        assert f"first used after {STEP_COUNT} solver step(s)" in message
        for name in OF_STEPS:
            assert np.isnan(sensors[name].numpy()[world_of(name)]).all(), name
            assert repr(name) in message
        for name in OF_STATES:
            assert repr(name) not in message
            reading = sensors[name].numpy()[world_of(name)]
            np.testing.assert_allclose(
                reading, expected[name].numpy()[world_of(name)], rtol=1e-6, err_msg=name
            )
        assert sensors["clock"].numpy()[1, 0] == np.float32(late.time)
        np.testing.assert_allclose(expected["ft_force"].numpy()[0], [0, 0, 3.0 * 9.81], rtol=1e-2, atol=0.1)
        assert sensors is late.sensors  # and no second warning
        early.step()
        late.step()
        np.testing.assert_array_equal(sensors.data.numpy(), expected.data.numpy())
        np.testing.assert_array_equal(sensors.measured.numpy(), expected.measured.numpy())


def test_unknown_readings_stay_unknown_through_noise_bounds_and_delay():
    """No cutoff makes a number of them; a delayed sensor knows nothing until what it reads was measured."""
    robot = make_plate()
    robot.add_sensor("touch", body=1, zone=ZONE, cutoff=100.0, noise=0.1, delay=3 * DT, label="late")
    robot.add_sensor("accelerometer", body=1, cutoff=5.0, noise=0.1, label="bounded")
    with pv.Simulation(robot.finalize("cpu"), dt=DT) as simulation:
        simulation.step(2)
        with pytest.warns(SensorWarning, match="'late'"):
            sensors = simulation.sensors
        unknown = []
        for _ in range(5):
            unknown.append([bool(np.isnan(sensors[name].numpy()).any()) for name in ("late", "bounded")])
            simulation.step()
        assert unknown == [[True, True], [True, False], [True, False], [True, False], [False, False]]


def test_sensors_used_before_steps_or_after_a_reset_give_no_warning(model):
    """Then accelerations and forces count as zero, as documented."""
    with pv.Simulation(model, dt=DT) as simulation, warnings.catch_warnings():
        warnings.simplefilter("error")
        simulation.step(2)
        simulation.reset()
        sensors = simulation.sensors
        assert sensors["clock"].numpy()[1, 0] == 0.0
        np.testing.assert_array_equal(sensors["bump"].numpy()[0], 0.0)
        simulation.step(2)
        assert np.isfinite(sensors["bump"].numpy()[0]).all()
