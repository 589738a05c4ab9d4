"""Noise, bias and delay of sensors: their statistics, and the same bits in every batch."""

import numpy as np
import pytest

import pluriverse as pv

DT = 0.01

SPINNER = """
<mujoco model="spinner">
  <worldbody>
    <body name="top" pos="0 0 1"><joint name="axis" axis="0 0 1"/><geom type="box" size=".1 .2 .05"/>
      <site name="imu" pos="0.1 0 0"/></body>
  </worldbody>
  <sensor>
    <gyro name="gyro" site="imu"/><jointpos name="angle" joint="axis"/>
    <framequat name="attitude" objtype="site" objname="imu"/>
    <clock name="clock"/>
  </sensor>
</mujoco>
"""


def make(count: int, *, decimation: int = 1) -> pv.Simulation:
    """Tops that spin at 2 rad/s for ever, one per world."""
    robot, builder = pv.ModelBuilder(), pv.ModelBuilder()
    robot.add_mjcf(SPINNER)
    robot.joint_qd[0] = 2.0
    builder.replicate(robot, count)
    return pv.Simulation(builder.finalize("cpu"), dt=DT, decimation=decimation)


def test_white_noise_has_its_standard_deviation_and_leaves_the_truth_alone():
    """3 * 100 worlds * 20 samples: the standard deviation is known to 1 / sqrt(2 n) = 0.9 %, four of that."""
    with make(100) as simulation:
        sensors = simulation.sensors
        assert sensors.set_noise("gyro", std=0.1) == ["gyro"]
        errors = []
        for _ in range(20):
            simulation.step()
            errors.append(sensors["gyro"].numpy() - sensors.true("gyro").numpy())
        np.testing.assert_allclose(np.std(errors), 0.1, rtol=0.036)
        assert abs(np.mean(errors)) < 4 * 0.1 / np.sqrt(6000)
        np.testing.assert_allclose(sensors.true("gyro").numpy()[:, 2], 2.0, rtol=1e-4)
        np.testing.assert_array_equal(sensors["angle"].numpy(), sensors.true("angle").numpy())


def test_bias_stays_through_an_episode_and_is_drawn_anew_at_resets():
    """Without a walk the error is constant from the reset on; worlds that are not reset keep theirs."""
    with make(200) as simulation:
        sensors = simulation.sensors
        sensors.set_noise("gyro", bias=0.5)
        simulation.reset()
        first = sensors["gyro"].numpy() - sensors.true("gyro").numpy()
        simulation.step(3)
        np.testing.assert_allclose(sensors["gyro"].numpy() - sensors.true("gyro").numpy(), first, atol=1e-6)
        np.testing.assert_allclose(first.std(), 0.5, rtol=4 / np.sqrt(1200))
        simulation.reset([0])
        simulation.step()
        again = sensors["gyro"].numpy() - sensors.true("gyro").numpy()
        np.testing.assert_allclose(again[1:], first[1:], atol=1e-6)
        assert np.abs(again[0] - first[0]).min() > 1e-4


def test_bias_walks_with_the_square_root_of_time():
    """After t = 0.5 s its standard deviation is walk * sqrt(t), whatever the step."""
    with make(400, decimation=5) as simulation:
        sensors = simulation.sensors
        sensors.set_noise("gyro", bias_walk=0.2)
        simulation.reset()
        simulation.step(10)
        error = sensors["gyro"].numpy() - sensors.true("gyro").numpy()
        np.testing.assert_allclose(error.std(), 0.2 * np.sqrt(0.5), rtol=4 / np.sqrt(2400))


@pytest.mark.parametrize("decimation", [1, 4])
def test_a_delay_reads_what_was(decimation):
    """At a constant rate the angle is late by rate * delay; right after a reset the oldest value is read."""
    with make(3, decimation=decimation) as simulation:
        sensors = simulation.sensors
        sensors.set_noise("angle", delay=np.array([0.0, 0.05, 0.12]))
        simulation.reset()
        simulation.step()
        assert sensors["angle"].numpy()[2, 0] == 0.0
        simulation.step(20)
        late = sensors.true("angle").numpy()[:, 0] - sensors["angle"].numpy()[:, 0]
        np.testing.assert_allclose(late, [0.0, 0.1, 0.24], atol=1e-5)


def test_a_delay_between_bounds_is_drawn_per_world():
    """Delays of 200 worlds lie between both bounds, in whole samples, and differ."""
    with make(200) as simulation:
        sensors = simulation.sensors
        sensors.set_noise("angle", delay=(0.02, 0.1))
        simulation.reset()
        simulation.step(20)
        late = (sensors.true("angle").numpy() - sensors["angle"].numpy())[:, 0] / (2.0 * DT)
        np.testing.assert_allclose(late, np.round(late), atol=1e-3)
        assert set(np.round(late)) == set(range(2, 11))


def corrupted(simulation: pv.Simulation) -> np.ndarray:
    sensors = simulation.sensors
    sensors.set_noise("*", std=0.1, bias=0.2, bias_walk=0.1, delay=(0.0, 0.05))
    return sensors


def test_a_world_reads_the_same_bits_in_every_batch_and_after_restore():
    """World 5 of 8 alone by its identity, on one thread, many steps in one call; and from a snapshot."""
    with make(8) as simulation, make(1) as alone:
        sensors, single = corrupted(simulation), corrupted(alone)
        sensors.set_seed(3)
        single.set_seed(3, identities=[5])
        simulation.reset()
        alone.reset()
        for _ in range(7):
            simulation.step()
        alone.step(7)
        np.testing.assert_array_equal(single.measured.numpy()[0], sensors.measured.numpy()[5])
        assert (sensors.measured.numpy()[4] != sensors.measured.numpy()[5]).any()
        snapshot = simulation.save()
        simulation.step(5)
        expected = sensors.measured.numpy().copy()
        simulation.restore(snapshot)
        simulation.step(5)
        np.testing.assert_array_equal(sensors.measured.numpy(), expected)


def test_quaternions_stay_of_unit_length_and_readings_keep_their_memory():
    """Noise on an attitude turns it; arrays fetched before stay valid."""
    with make(4) as simulation:
        attitude = simulation.sensors["attitude"]
        pointer = attitude.ptr
        simulation.sensors.set_noise("attitude", std=0.2)
        simulation.step()
        np.testing.assert_allclose(np.linalg.norm(attitude.numpy(), axis=1), 1.0, rtol=1e-6)
        assert simulation.sensors["attitude"].ptr == pointer
        np.testing.assert_allclose(simulation.sensors["clock"].numpy(), DT, rtol=1e-6)


def test_wrong_noise_is_refused_with_the_way_out():
    """Names that are none, negative and not finite values, and values of another shape."""
    with make(2) as simulation:
        sensors = simulation.sensors
        with pytest.raises(KeyError, match="no sensor 'gyo'; did you mean gyro"):
            sensors["gyo"]
        with pytest.raises(KeyError, match="no sensor 'imu_"):
            sensors.set_noise("imu_*", std=1.0)
        for wrong in (-1.0, np.nan, [1.0, 2.0, 3.0], "much"):
            with pytest.raises(ValueError, match="set_noise: std is"):
                sensors.set_noise("gyro", std=wrong)
        with pytest.raises(ValueError, match="lowest delay is above"):
            sensors.set_noise("gyro", delay=(0.2, 0.1))
        with pytest.raises(ValueError, match="set_seed: seed is -1"):
            sensors.set_seed(-1)
