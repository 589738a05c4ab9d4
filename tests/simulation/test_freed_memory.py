"""Freed memory: what nobody uses any more is freed at once, not by a garbage collection many models later."""

import gc
import weakref

import numpy as np
import pytest
import warp as wp

import pluriverse as pv


@pytest.fixture
def uncollected():
    """No garbage collection while a test runs."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def boxes():
    """Return a model of two worlds, in each of which a box falls to the ground."""
    box = pv.ModelBuilder()
    box.add_shape_box(
        box.add_body(label="box", xform=((0.0, 0.0, 0.2), (0.0, 0.0, 0.0, 1.0))), hx=0.1, hy=0.1, hz=0.1
    )
    builder = pv.ModelBuilder()
    builder.replicate(box, 2)
    builder.add_ground_plane()
    return builder.finalize("cpu")


def simulation_with_resets():
    """Simulate, and reset often enough that resets are recorded."""
    model = boxes()
    simulation = pv.Simulation(model, dt=0.005)
    for _ in range(4):
        simulation.step(2)
        simulation.reset([1])
    return simulation, model, simulation.solver, simulation.contacts


def simulation_that_is_observed():
    """Simulate with sensors, robot tensors, and a picture."""
    model = boxes()
    simulation = pv.Simulation(model, dt=0.005)
    tensors = simulation.tensors("*")
    assert simulation.sensors is not None
    simulation.step(2)
    pv.draw(simulation, size=(16, 16))
    return tensors, simulation, model


def simulation_by_mujoco():
    """Simulate by MuJoCo's engine."""
    model = boxes()
    simulation = pv.Simulation(model, pv.SolverMuJoCo(model), dt=0.005)
    simulation.step(2)
    return simulation, model, simulation.solver


def loop_of_a_user():
    """Step in a loop of one's own, with kinematics and dynamics."""
    model = boxes()
    solver, states, control = pv.SolverSAP(model), (model.state(), model.state()), model.control()
    contacts = model.contacts()
    pv.eval_fk(model, model.joint_q, model.joint_qd, states[0])
    pv.eval_mass_matrix(model, states[0])
    pv.eval_jacobian(model, states[0])
    force = wp.zeros(model.joint_dof_count, dtype=float, device=model.device)
    pv.eval_inverse_dynamics_passive(model, states[0], gravity_force=force)
    model.collide(states[0], contacts)
    solver.step(states[0], states[1], control, contacts, 0.005)
    return model, solver, contacts


@pytest.mark.parametrize(
    "make", [simulation_with_resets, simulation_that_is_observed, simulation_by_mujoco, loop_of_a_user]
)
def test_what_is_dropped_is_freed_at_once(make, uncollected):
    """The garbage collector does not know how much memory arrays take, and waits for hundreds of models."""
    alive = [weakref.ref(made) for made in make()]
    assert [type(made()).__name__ for made in alive if made() is not None] == []


def test_the_pipeline_of_a_model_lives_as_long_as_its_contacts(uncollected):
    """The model refers to it weakly; a second call for the same contacts does not make a second one."""
    model = boxes()
    contacts = model.contacts()
    pipeline = contacts.pipeline
    model.collide(model.state(), contacts)
    assert contacts.pipeline is pipeline
    assert model.contacts().pipeline is pipeline
    np.testing.assert_array_equal(contacts.rigid_contact_count.numpy(), [4, 4])
