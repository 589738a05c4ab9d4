"""Solutions of `SolverSAP` obey Coulomb's law, as told by dense reference problems in double precision."""

import numpy as np
import pytest

from tests.oracles.coulomb_dense import solve_coulomb, with_bounds
from tests.solvers.test_sap_reference import Batch

# How far the normal impulse that bounds friction may be from that of the solution, where it is held.
BOUND_SHARE = 1e-3


@pytest.fixture(scope="module")
def batch():
    return Batch()


@pytest.mark.parametrize("in_contact_space", [True, False])
def test_solutions_obey_coulombs_law(batch, in_contact_space):
    """M (v - v*) = J^T gamma, with gamma by Coulomb's law at v: exact in contact space, else to 1e-3."""
    solver = batch.solve("standard", friction_law="coulomb", in_contact_space=in_contact_space)
    assert solver.unconverged_step_count.numpy().sum() == 0
    sliding = 0
    for world in range(batch.model.world_count):
        problem = batch.problem(world, "standard")
        dofs, public = batch.internal(world)
        velocity = np.zeros(len(public))
        velocity[public] = solver.workspace.velocity.numpy()[dofs]
        coulomb = with_bounds(problem, None)
        # A share of the impulse of friction, which is part of what the residual is relative to.
        assert coulomb.optimality(velocity) <= (1e-5 if in_contact_space else BOUND_SHARE)
        gamma = coulomb.contact_impulses(velocity)
        mu = np.array([law.mu for law in problem.contacts])
        pushes = (gamma[:, 2] > 0.0) & (mu > 0.0)
        sliding += int((pushes & (np.hypot(gamma[:, 0], gamma[:, 1]) >= 0.999999 * mu * gamma[:, 2])).sum())
    assert sliding > 3


def test_an_independent_solver_finds_the_same_velocities(batch):
    """Convex problems with held bounds, repeated until the bounds agree to 1e-10, in NumPy."""
    solver = batch.solve("standard", friction_law="coulomb")
    for world in range(batch.model.world_count):
        dofs, public = batch.internal(world)
        expected = solve_coulomb(batch.problem(world, "standard"))[public]
        found = solver.workspace.velocity.numpy()[dofs]
        assert np.linalg.norm(found - expected) <= BOUND_SHARE * np.linalg.norm(expected)
