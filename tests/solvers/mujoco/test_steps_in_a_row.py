"""Steps in a row: what nobody reads between two steps is left out, and nothing else changes."""

import numpy as np
import pytest

from pluriverse import Simulation
from pluriverse.simulation import StepStage
from pluriverse.solvers.mujoco.solver import SolverMuJoCo
from pluriverse.warnings import FrozenWorldWarning
from tests.solvers.mujoco.worlds import build

DT = 0.004
MIX = ["robot", "boxes", "pendulum"]
STATE = ("joint_q", "joint_qd", "body_q", "body_qd")


def make(decimation: int) -> Simulation:
    model = build(MIX)
    return Simulation(model, SolverMuJoCo(model), dt=DT, decimation=decimation)


def listed(simulation: Simulation) -> list[np.ndarray]:
    """Return the contacts of each world, with their forces."""
    contacts = simulation.contacts
    start, count = contacts.slot_start.numpy(), contacts.rigid_contact_count.numpy()
    slots = np.concatenate([np.arange(first, first + n) for first, n in zip(start, count, strict=False)])
    names = ("shape0", "shape1", "point0", "point1", "normal", "force")
    return [count] + [getattr(contacts, f"rigid_contact_{name}").numpy()[slots] for name in names]


@pytest.mark.parametrize("decimation", [2, 3, 4])
def test_steps_in_a_row_end_like_single_steps(decimation):
    """State, contacts and the number of contacts have the same bits after steps of one and of many."""
    single, many = make(1), make(decimation)
    single.step(12 * decimation)
    many.step(12)
    for name in STATE:
        np.testing.assert_array_equal(
            getattr(many.state, name).numpy(), getattr(single.state, name).numpy(), err_msg=name
        )
    assert listed(single)[0].sum() >= 8
    for a, b in zip(listed(many), listed(single), strict=True):
        np.testing.assert_array_equal(a, b)
    assert many.report().contact_count_mean == single.report().contact_count_mean


@pytest.mark.parametrize("kind", ["robot", "boxes", "pendulum"])
def test_inputs_written_between_calls_act_in_all_steps_of_a_call(kind):
    """Targets, joint forces, wrenches and states written between calls give the bits of single steps."""
    final = []
    for decimation in (1, 4):
        model = build([kind, kind])
        simulation = Simulation(model, SolverMuJoCo(model), dt=DT, decimation=decimation)
        random = np.random.default_rng(1)
        for turn in range(3):
            for array in (
                simulation.control.joint_f,
                simulation.control.joint_target_pos,
                simulation.state.joint_qd,
                simulation.state.body_f,
            ):
                values = array.numpy()
                values[turn:] += random.normal(0.0, 0.3, values[turn:].shape).astype(np.float32)
            simulation.step(4 // decimation)
        final.append([getattr(simulation.state, name).numpy().copy() for name in STATE])
    for a, b in zip(*final, strict=True):
        np.testing.assert_array_equal(a, b)


def test_world_whose_step_was_not_made_takes_its_state_again():
    """Where a step was not made, the next one in a row begins with the state, not with its rows."""
    model = build(["boxes", "robot"])
    solver = SolverMuJoCo(model)
    states = [model.state(), model.state()]
    with solver.in_row(0, 3):
        solver.step(states[0], states[1], None, None, DT)
    solver.engine.exchange.rows.qpos.numpy()[:7] = 1.0  # as a step that failed may leave them
    solver.engine.exchange.known.numpy()[0] = 0
    with solver.in_row(1, 3):
        solver.step(states[1], states[0], None, None, DT)
    change = states[0].joint_q.numpy() - states[1].joint_q.numpy()
    assert 0.0 < np.abs(change).max() < 0.1


def test_forces_on_bodies_refer_to_the_bodies_that_the_last_step_began_with():
    """Lever arms are those at the start of the last step, also where its bodies had been left out."""

    class Before(StepStage):
        def before_substep(self, worlds, state):  # with a stage that may read them, bodies are written
            pass

    forces = []
    for stage in (None, Before()):
        simulation = make(4)
        if stage is not None:
            simulation.add_stage(stage)
        simulation.step(12)
        forces.append(simulation.solver.body_contact_force(simulation.contacts).numpy())
    assert np.abs(forces[0]).max() > 1.0
    np.testing.assert_array_equal(forces[0], forces[1])


def test_world_that_freezes_in_steps_in_a_row_keeps_bodies_that_fit_its_joints():
    """A world that stops in the first of four steps has the state before them; others make all four."""
    model = build(MIX)
    start = model.joint_dof_world_start.numpy()
    final = []
    for decimation in (1, 4):
        simulation = Simulation(model, SolverMuJoCo(model), dt=DT, decimation=decimation)
        simulation.step(8 // decimation)
        force = simulation.control.joint_f.numpy()
        force[start[0] : start[1]] = np.nan
        with pytest.warns(FrozenWorldWarning, match="world 0"):
            simulation.step(8 // decimation)
        final.append([getattr(simulation.state, name).numpy() for name in STATE])
    for a, b in zip(*final, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_array_equal(a, b)
