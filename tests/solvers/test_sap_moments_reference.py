"""Rolling and torsional friction of SolverSAP against the dense float64 reference, on random worlds."""

import numpy as np
import pytest

from pluriverse import Contacts, ModelBuilder, SolverSAP
from tests.oracles.multibody_dense import DenseWorld, dense_problem
from tests.oracles.patch_dense import PatchLaw, add_moments
from tests.oracles.random_scenes import random_contacts, random_world, randomize_state
from tests.oracles.sap_dense import ContactLaw
from tests.solvers.test_sap_equality_reference import assert_close

DT = 0.005
KINDS = ((1,), (1, 1, 1), (4,), (5, 3), (1, 4, 1, 3))
CONTACT_COUNT = 6
EXACT = {
    "contact_preset_variant": "drake",
    "line_search_variant": "exact_root",
    "optimality_rel_tol": 1e-13,
    "cost_rel_tol": 0.0,
    "cost_abs_tol": 0.0,
    "torsional_friction": True,
}


@pytest.fixture(scope="module")
def batch():
    """Random worlds whose shapes have any mix of coefficients, with zeros."""
    rng = np.random.default_rng(5)
    builder = ModelBuilder()
    for sizes in KINDS:
        world = random_world(rng, sizes)
        count = world.shape_count
        world.shape_material_mu_rolling[:] = rng.choice([0.0, 1e-3, 0.05], count)
        world.shape_material_mu_torsional[:] = rng.choice([0.0, 5e-3, 0.2], count)
        builder.add_world(world)
    model = builder.finalize("cpu")
    state, control, contacts = model.state(), model.control(), Contacts(model, CONTACT_COUNT)
    for world in range(model.world_count):
        randomize_state(model, state, control, rng, world)
        random_contacts(model, state, control, contacts, rng, world, CONTACT_COUNT)
    return model, state, control, contacts


@pytest.mark.parametrize("iterations", [0, 100])
def test_problem_and_minimizer_equal_the_reference(batch, iterations):
    """Gradient and Hessian, entry by entry, at the start and at the minimum, and the minimum itself."""
    model, state, control, contacts = batch
    solver = SolverSAP(model, **(EXACT | {"max_iterations": iterations}))
    solver.step(state, model.state(), control, contacts, DT)
    sliding = 0
    for world in range(model.world_count):
        problem = dense_problem(model, state, control, contacts, DT, world=world)
        add_moments(problem, DenseWorld(model, state, control, world, DT), contacts)
        public = model.templates[model.world_template[world]].dof_public
        ours = solver.convex_problem(world, DT)
        velocity = np.zeros(len(public))
        velocity[public] = ours.velocity
        hessian = problem.hessian(velocity)[np.ix_(public, public)]
        scale = 1.0 / np.sqrt(np.diag(hessian))
        assert_close(scale[:, None] * ours.hessian * scale, scale[:, None] * hessian * scale)
        impulse = np.linalg.norm(problem.impulse(velocity))
        assert np.linalg.norm(ours.gradient - problem.gradient(velocity)[public]) <= 1e-10 * impulse
        for jacobian, law in zip(problem.jacobians, problem.contacts, strict=True):
            gamma = law.impulse(jacobian @ velocity)
            sliding += bool(gamma[2] > 0.0 and gamma[3:].any())
        if iterations:
            assert_close(ours.velocity, problem.minimize()[public])
    assert sliding > 5, "some contacts transmit moments"


def test_oracle_is_the_gradient_of_its_cost():
    """Finite differences of cost and impulse, in all regions of the cone."""
    rng = np.random.default_rng(2)
    regions = set()
    for _ in range(60):
        contact = ContactLaw(rng.normal() * 1e-3, 1e4, 0.02, 0.5, 1.0, DT)
        law = PatchLaw(contact, rng.choice([0.0, 0.01]), rng.choice([0.0, 0.05]), 50.0)
        v = rng.normal(size=6) * np.array([0.1, 0.1, 0.3, 3.0, 3.0, 3.0])
        if rng.uniform() < 0.3:
            v[[0, 1, 3, 4, 5]] *= 1e-4
            v[2] = -abs(v[2])
        _, kappa = law._project(v)
        regions.add((kappa is None, bool(law.impulse(v).any())))
        step = 1e-6
        numeric = [(law.cost(v + step * e) - law.cost(v - step * e)) / (2.0 * step) for e in np.eye(6)]
        size = np.linalg.norm(law.impulse(v)) + 1e-6
        np.testing.assert_allclose(-np.array(numeric), law.impulse(v), atol=1e-4 * size)
    assert regions == {(True, True), (False, True), (True, False)}
