"""Solutions of `SolverSAP` obey Coulomb's law, as shown by dense reference problems in double precision."""

import numpy as np
import pytest

from tests.oracles.coulomb_dense import solve_coulomb, with_bounds
from tests.solvers.test_sap_reference import Batch

# Relative difference of velocities, for the world that leaves contact space.
AGREEMENT = 1e-3


@pytest.fixture(scope="module")
def batch():
    return Batch()


def test_solutions_obey_coulombs_law(batch):
    """M (v - v*) = J^T gamma, with gamma by Coulomb's law at v."""
    solver = batch.solve("standard", friction_law="coulomb")
    assert solver.unconverged_step_count.numpy().sum() == 0
    sliding, errors = 0, []
    for world in range(batch.model.world_count):
        problem = batch.problem(world, "standard")
        dofs, public = batch.internal(world)
        velocity = np.zeros(len(public))
        velocity[public] = solver.workspace.velocity.numpy()[dofs]
        coulomb = with_bounds(problem, None)
        errors.append(coulomb.optimality(velocity))
        gamma = coulomb.contact_impulses(velocity)
        mu = np.array([law.mu for law in problem.contacts])
        pushes = (gamma[:, 2] > 0.0) & (mu > 0.0)
        sliding += int((pushes & (np.hypot(gamma[:, 0], gamma[:, 1]) >= 0.999999 * mu * gamma[:, 2])).sum())
    assert sliding > 3
    # One world leaves contact space, where its joints stick and slip in turns.
    assert sorted(errors)[-2] <= 1e-5
    assert max(errors) <= AGREEMENT


def _openings(batch, law):
    """Return by how much contacts that push open beyond v_hat [m/s], and mu |v_t|, for each world."""
    solver = batch.solve("standard", friction_law=law, in_contact_space=False)
    assert solver.unconverged_step_count.numpy().sum() == 0
    sap = solver.workspace
    openings = []
    for start, count in zip(sap.contact_start.numpy(), sap.contact_count.numpy(), strict=False):
        slots = slice(start, start + count)
        velocity, impulse = sap.contact_velocity.numpy()[slots], sap.contact_impulse.numpy()[slots]
        rn, mu = sap.contact_rn.numpy()[slots], sap.contact_mu.numpy()[slots]
        pushes = (impulse[:, 2] > 0.0) & (rn > 0.0)
        friction = np.hypot(impulse[:, 0], impulse[:, 1])
        assert (friction <= mu * impulse[:, 2] * (1.0 + 1e-9))[pushes].all()
        opening = velocity[:, 2] + rn * impulse[:, 2] - sap.contact_bias.numpy()[slots]
        slip = mu * np.hypot(velocity[:, 0], velocity[:, 1])
        openings.append((np.abs(opening[pushes]), slip[pushes]))
    return openings


def test_outside_contact_space_contacts_open_by_no_more_than_the_tolerance(batch):
    """By 5 % of mu |v_t| or 0.02 m/s, or a quarter of what they did where three rounds do not find that."""
    found, convex = _openings(batch, "coulomb"), _openings(batch, "convex")
    within = 0
    for (opening, slip), (before, _) in zip(found, convex, strict=True):
        tolerance = np.maximum(0.02, 0.05 * slip) * 1.1  # slip changes with the last correction
        within += (opening <= tolerance).all()
        assert (opening <= np.maximum(tolerance, 0.25 * before.max(initial=0.0))).all()
    assert within >= len(found) - 1
    assert max(before.max(initial=0.0) for before, _ in convex) > 1.0


def test_an_independent_solver_finds_the_same_velocities(batch):
    """Convex problems with held bounds, repeated until the bounds agree to 1e-10, in NumPy."""
    solver = batch.solve("standard", friction_law="coulomb")
    for world in range(batch.model.world_count):
        dofs, public = batch.internal(world)
        expected = solve_coulomb(batch.problem(world, "standard"))[public]
        found = solver.workspace.velocity.numpy()[dofs]
        assert np.linalg.norm(found - expected) <= AGREEMENT * np.linalg.norm(expected)


def test_a_tolerance_below_rounding_keeps_to_coulombs_law(batch):
    """It gave convex friction instead, or no convergence, once rounding let no further step be found."""
    tight = {"optimality_rel_tol": 1e-14, "cost_rel_tol": 0.0, "cost_abs_tol": 0.0}
    solver = batch.solve("standard", friction_law="coulomb", contact_linear_solve_precision="fp64", **tight)
    assert solver.unconverged_step_count.numpy().sum() == 0
    errors = []
    for world in range(batch.model.world_count):
        dofs, public = batch.internal(world)
        velocity = np.zeros(len(public))
        velocity[public] = solver.workspace.velocity.numpy()[dofs]
        errors.append(with_bounds(batch.problem(world, "standard"), None).optimality(velocity))
    # One world leaves contact space.
    # Rounding, 1e-16, times 1e3 for near-rigid contacts and the condition of A.
    assert sorted(errors)[-2] <= 1e-9
