"""Terms of the manipulator equation: they add up to inverse dynamics, and that of gravity does its work."""

import numpy as np
import pytest
import warp as wp

from pluriverse import (
    eval_inverse_dynamics,
    eval_inverse_dynamics_force,
    eval_inverse_dynamics_passive,
    eval_mass_matrix,
    eval_world_momenta,
)

from .trees import unset

# Sums along chains of up to 35 dofs with entries of order 100: some hundred roundings.
RELATIVE_ERROR = 1e-11


@pytest.fixture
def terms(worlds):
    """Mass matrix, g and C v of all worlds, in double precision."""
    model = worlds.model
    mass_matrix = unset(*eval_mass_matrix(model, worlds.state).shape)
    gravity, coriolis = unset(model.joint_dof_count), unset(model.joint_dof_count)
    eval_inverse_dynamics_passive(
        model, worlds.state, mass_matrix=mass_matrix, gravity_force=gravity, coriolis_force=coriolis
    )
    return mass_matrix, gravity, coriolis


def test_the_terms_add_up_to_inverse_dynamics(worlds, terms):
    """M dv/dt + C v + g is the force that inverse dynamics asks for, but for damping and external forces."""
    model = worlds.model
    mass_matrix, gravity, coriolis = terms
    wanted = np.random.default_rng(7).normal(size=model.joint_dof_count)
    joint_qdd = wp.array(wanted, dtype=wp.float64, device="cpu")
    joint_f = unset(model.joint_dof_count)
    eval_inverse_dynamics_force(
        model,
        worlds.state,
        mass_matrix=mass_matrix,
        joint_qdd=joint_qdd,
        coriolis_force=coriolis,
        gravity_force=gravity,
        joint_f=joint_f,
    )
    state = model.state()
    state.joint_q.assign(worlds.state.joint_q)
    state.joint_qd.assign(worlds.state.joint_qd)
    expected = eval_inverse_dynamics(model, state, joint_qdd, unset(model.joint_dof_count)).numpy()
    expected = expected - model.joint_damping.numpy().astype(float) * state.joint_qd.numpy().astype(float)
    error = RELATIVE_ERROR * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(joint_f.numpy(), expected, rtol=0.0, atol=error)


def test_gravity_does_the_work_of_gravity(worlds, terms):
    """The power of g is the rate of the potential energy, -gravity . P; P is the momentum of the world."""
    model, state = worlds.model, worlds.state
    power = terms[1].numpy() * state.joint_qd.numpy().astype(float)
    momentum = eval_world_momenta(model, state).linear.numpy()
    begin = np.append(model.topology.world_dof.numpy(), model.joint_dof_count)
    for world in range(model.world_count):
        expected = -float(model.gravity.numpy()[world].astype(float) @ momentum[world])
        actual = power[begin[world] : begin[world + 1]].sum()
        assert actual == pytest.approx(expected, rel=1e-9, abs=1e-9 * np.abs(power).max())


def test_a_mask_leaves_zeros_and_a_recording_follows_the_state(worlds):
    """Articulations not asked for get zeros; a recorded call gives the bits of a direct one."""
    model = worlds.model
    chosen = np.arange(model.articulation_count) % 2 == 0
    mask = wp.array(chosen, dtype=bool, device="cpu")
    state = model.state()
    force, direct = (wp.zeros(model.joint_dof_count, dtype=float, device="cpu") for _ in range(2))
    eval_inverse_dynamics_passive(model, state, coriolis_force=force, mask=mask)
    with wp.ScopedCapture(device="cpu") as capture:
        eval_inverse_dynamics_passive(model, state, coriolis_force=force, mask=mask)
    state.joint_q.assign(worlds.state.joint_q)
    state.joint_qd.assign(worlds.state.joint_qd)
    wp.capture_launch(capture.graph)
    eval_inverse_dynamics_passive(model, state, coriolis_force=direct, mask=mask)
    np.testing.assert_array_equal(force.numpy(), direct.numpy())
    owner = np.repeat(model.joint_articulation.numpy(), np.diff(model.joint_qd_start.numpy()))
    assert not force.numpy()[~chosen[owner]].any()
    assert force.numpy()[chosen[owner]].any()


def test_what_cannot_be_meant_is_refused(worlds):
    model, state = worlds.model, worlds.state
    force = wp.zeros(model.joint_dof_count, dtype=float, device="cpu")
    with pytest.raises(ValueError, match="pass an array for mass_matrix, gravity_force or coriolis_force"):
        eval_inverse_dynamics_passive(model, state)
    with pytest.raises(ValueError, match="are one array; pass two"):
        eval_inverse_dynamics_passive(model, state, gravity_force=force, coriolis_force=force)
    with pytest.raises(ValueError, match=r"gravity_force: .*shape \(3,\)"):
        eval_inverse_dynamics_passive(model, state, gravity_force=wp.zeros(3, dtype=float, device="cpu"))
