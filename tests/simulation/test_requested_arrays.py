"""Accelerations that states hold on request are those of the last step, however many steps a call makes."""

import copy

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.sensors import SensorIMU
from pluriverse.simulation import StepStage
from pluriverse.warnings import FrozenWorldWarning

from .worlds import DT, make_model

KINDS = ["arm", "pile", "flyer"]
SOLVERS = {"sap": pv.SolverSAP, "mujoco": pv.SolverMuJoCo}
COUNTS = (1, 2, 3, 4, 7, 1, 20)
GRAVITY = 9.81


@pytest.fixture(scope="module")
def model():
    """Three worlds that differ, whose states hold accelerations."""
    result = make_model(KINDS)
    result.request_state_attributes("body_qdd")
    return result


@pytest.fixture(scope="module", params=SOLVERS)
def solver(request):
    return request.param


@pytest.fixture(scope="module")
def velocity_changes(model, solver):
    """Return the change of body_qd in each step, divided by the time step."""
    with pv.Simulation(model, SOLVERS[solver](model), dt=DT, threads=1) as simulation:
        velocities = [simulation.state.body_qd.numpy().copy()]
        for _ in range(sum(COUNTS)):
            simulation.step()
            velocities.append(simulation.state.body_qd.numpy().copy())
    return np.diff(velocities, axis=0) / np.float32(DT)


@pytest.mark.parametrize(
    "options",
    [{}, {"record": False}, {"threads": 1, "decimation": 3}],
    ids=["recorded", "launched", "decimated"],
)
def test_accelerations_are_those_of_the_last_step(model, solver, velocity_changes, options):
    """The public array, at its address, is the change of velocity in the last solver step."""
    with pv.Simulation(model, SOLVERS[solver](model), dt=DT, **options) as simulation:
        accelerations = simulation.state.body_qdd
        step_count = 0
        for count in COUNTS:
            step_count += count * simulation.decimation
            if step_count > len(velocity_changes):
                break
            simulation.step(count)
            expected = velocity_changes[step_count - 1]
            np.testing.assert_allclose(accelerations.numpy(), expected, rtol=1e-5, atol=1e-5)
        assert step_count > 20
        assert simulation.state.body_qdd is accelerations


class Jerk(StepStage):
    """Keeps how accelerations change in a step, where steps are launched."""

    def after_substep(self, worlds, before, after):
        self.change = after.body_qdd.numpy() - before.body_qdd.numpy()


def test_stages_find_accelerations_before_and_after_a_step(model, velocity_changes, solver):
    with pv.Simulation(model, SOLVERS[solver](model), dt=DT, record=False) as simulation:
        simulation.add_stage(stage := Jerk())
        for count in (1, 2, 3):
            simulation.step(count)
            last = simulation.step_count - 1
            expected = velocity_changes[last] - (velocity_changes[last - 1] if last else 0.0)
            np.testing.assert_allclose(stage.change, expected, rtol=1e-5, atol=2e-5)


def test_an_accelerometer_reads_nothing_in_free_fall_and_gravity_at_rest(solver):
    """Also if the loop makes one step a call, as loops that read sensors do."""
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    ball = builder.add_body(xform=wp.transform((0, 0, 0.3), wp.quat_identity()))
    builder.add_shape_sphere(ball, radius=0.1)
    builder.add_site(ball, label="imu")
    model = builder.finalize("cpu")
    imu = SensorIMU(model, sites="imu")
    with pv.Simulation(model, SOLVERS[solver](model), dt=0.002) as simulation:
        for step_count, expected in ((20, 0.0), (600, GRAVITY)):
            for _ in range(step_count):
                simulation.step()
            imu.update(simulation.state)
            np.testing.assert_allclose(imu.accelerometer.numpy(), [[0, 0, expected]], atol=1e-3 * GRAVITY)


def test_accelerations_begin_again_with_a_reset(model, solver):
    """They are zero as in a new state, and those of the given state where it has some."""
    body = model.body_world_start.numpy()
    with pv.Simulation(model, SOLVERS[solver](model), dt=DT) as simulation:
        accelerations = simulation.state.body_qdd
        for _ in range(3):  # launched, then recorded, then replayed
            simulation.step()
            moved = copy.copy(simulation.state)
            values = accelerations.numpy().copy()
            assert values.any(axis=1).all()
            simulation.reset([1])
            values[body[1] : body[2]] = 0.0
            np.testing.assert_array_equal(accelerations.numpy(), values)
        simulation.reset([1], state=moved)
        np.testing.assert_array_equal(accelerations.numpy(), moved.body_qdd.numpy())
        simulation.reset()
        assert not accelerations.numpy().any()
        simulation.reset(state=moved)
        np.testing.assert_array_equal(accelerations.numpy(), moved.body_qdd.numpy())
        simulation.solver.reset(simulation.state, [2])
        assert not accelerations.numpy()[body[2] :].any()
        assert accelerations.numpy()[: body[2]].any()


def test_a_state_without_accelerations_stands_for_zero(model, tmp_path):
    """By assignment, and from files; those with accelerations return bit for bit."""
    plain = make_model(KINDS)
    path = tmp_path / "state.npz"
    with pv.Simulation(model, dt=DT) as simulation, pv.Simulation(plain, dt=DT) as other:
        simulation.step(3)
        snapshot = simulation.save(path)
        moved = simulation.state.body_qdd.numpy().copy()
        assert moved.any()
        for saved in (path, snapshot):
            simulation.step()
            simulation.restore(saved)
            np.testing.assert_array_equal(simulation.state.body_qdd.numpy(), moved)
        other.restore(path)
        other.step()
        other.save(path)
        simulation.restore(path)
        np.testing.assert_array_equal(simulation.state.body_qd.numpy(), other.state.body_qd.numpy())
        assert not simulation.state.body_qdd.numpy().any()
        state = model.state()
        for load in (lambda: state.assign(plain.state()), lambda: state.load(path)):
            state.body_qdd.fill_(1.0)
            plain.state().save(path)
            load()
            assert not state.body_qdd.numpy().any()


def test_frozen_worlds_do_not_accelerate(model, solver):
    """Neither in the step that finds NaN nor later; the others do as before."""
    body, dof = model.body_world_start.numpy(), model.joint_dof_world_start.numpy()
    with pv.Simulation(model, SOLVERS[solver](model), dt=DT) as simulation:
        simulation.step(3)
        velocities = simulation.state.joint_qd.numpy().copy()
        velocities[dof[1]] = np.nan
        simulation.state.joint_qd = velocities
        with pytest.warns(FrozenWorldWarning, match="world 1"):
            simulation.step()
        for _ in range(2):
            accelerations = simulation.state.body_qdd.numpy()
            assert not accelerations[body[1] : body[2]].any()
            assert accelerations[: body[1]].any(axis=1).all()
            simulation.step()
