"""SolverSAP against the dense float64 reference, on random worlds with every kind of term.

Poses, velocities and contacts are handed over in single precision and read by both as the same numbers; from
there on both compute in double precision, so what is left is rounding.
"""

import numpy as np
import pytest

from pluriverse import Contacts, ModelBuilder, SolverSAP
from tests.oracles.multibody_dense import dense_problem
from tests.oracles.random_scenes import (
    copy_contacts,
    copy_world,
    random_contacts,
    random_world,
    randomize_state,
)

DT = 0.005
TOLERANCE = 1e-10
"""Relative to the size of the vector compared: rounding of 1e-16 times the condition of these problems."""

KINDS = ((1,), (1, 1, 1), (4,), (5, 3), (1, 4, 1, 3), (6,), (2, 2, 2, 2, 2))
"""Numbers of bodies of the trees of each kind of world."""
CONTACT_COUNT = 8
PRESETS = {
    "standard": {
        "weight_mode": "delassus",
        "point_mode": "contact_midpoint",
        "beta": 0.1,
        "damps_approach": False,
    },
    "drake": {"weight_mode": "diag_delassus", "point_mode": "contact_midpoint"},
    "approx64": {"weight_mode": "body_inertia", "point_mode": "witness_point"},
}


def softening(law) -> float:
    """How the solver scales the rounding of the tangential norm so that small parts can stick."""
    return min(1e-7, 1e-6 * 9.81 * law.dt / law.weight)


class Batch:
    """All kinds of worlds, each with random contacts, and the dense problem of each."""

    def __init__(self, copies: int = 1):
        rng = np.random.default_rng(8)
        builder = ModelBuilder()
        self.worlds = []
        for sizes in KINDS:
            world = random_world(rng, sizes)
            for _ in range(copies):
                builder.add_world(world)
        self.model = builder.finalize("cpu")
        self.state, self.control = self.model.state(), self.model.control()
        self.contacts = Contacts(self.model, CONTACT_COUNT)
        for world in range(self.model.world_count):
            source = world - world % copies
            randomize_state(self.model, self.state, self.control, rng, world)
            if world == source:
                count = CONTACT_COUNT if world > 0 else 2
                random_contacts(self.model, self.state, self.control, self.contacts, rng, world, count)
            else:
                copy_world(self.model, self.state, source, world)
                copy_contacts(self.model, self.contacts, source, world)

    def problem(self, world: int, preset: str):
        return dense_problem(
            self.model,
            self.state,
            self.control,
            self.contacts,
            DT,
            world=world,
            softening=softening,
            **PRESETS[preset],
        )

    def solve(self, preset: str, *, in_contact_space: bool = True, **options) -> SolverSAP:
        # The free motion of the reference has the gyroscopic forces at the start of the step.
        # Its friction is convex; `test_sap_coulomb_reference` has Coulomb's law.
        options = {
            "line_search_variant": "exact_root",
            "position_integration": "midpoint",
            "friction_law": "convex",
        } | options
        solver = SolverSAP(self.model, contact_preset_variant=preset, **options)
        solver.prepare(self.contacts)
        if not in_contact_space:
            solver.workspace.space_dof_count = 0
        solver.step(self.state, self.model.state(), self.control, self.contacts, DT)
        return solver

    def internal(self, world: int) -> tuple[slice, np.ndarray]:
        """The world's internal degrees of freedom, and the oracle's index of each."""
        topology = self.model.topology
        template = topology.world_template.numpy()[world]
        first, end = topology.template_dof.numpy()[template : template + 2]
        start = topology.world_dof.numpy()[world]
        return slice(start, start + end - first), topology.dof_public.numpy()[first:end]

    def mass_matrix(self, solver: SolverSAP, world: int) -> np.ndarray:
        """A, unpacked, in the oracle's order."""
        topology = self.model.topology
        dofs, public = self.internal(world)
        first = topology.template_dof.numpy()[topology.world_template.numpy()[world]]
        parent, depth = topology.dof_parent.numpy()[first:], topology.dof_depth.numpy()[first:]
        rows = topology.world_row.numpy()[world] + topology.dof_row.numpy()[first:]
        values = solver.dynamics.mass_row.numpy()
        count = dofs.stop - dofs.start
        matrix = np.zeros((count, count))
        for dof in range(count):
            ancestor = dof
            while ancestor >= 0:
                entry = values[rows[dof] + depth[ancestor]]
                matrix[public[dof], public[ancestor]] = matrix[public[ancestor], public[dof]] = entry
                ancestor = parent[ancestor]
        return matrix


@pytest.fixture(scope="module")
def batch():
    return Batch()


def assert_close(actual: np.ndarray, expected: np.ndarray) -> None:
    assert np.linalg.norm(actual - expected) <= TOLERANCE * max(np.linalg.norm(expected), 1e-30)


def tree_has_terms(batch: Batch, solver: SolverSAP, world: int, public: np.ndarray) -> np.ndarray:
    """Whether each dof, in the oracle's order, belongs to a tree that takes part in the minimization."""
    topology = batch.model.topology
    template = topology.world_template.numpy()[world]
    first_node, first_dof = topology.template_node.numpy()[template], topology.template_dof.numpy()[template]
    nodes = first_node + topology.dof_node.numpy()[first_dof : first_dof + len(public)]
    trees = topology.world_tree.numpy()[world] + topology.node_tree.numpy()[nodes]
    active = np.zeros(len(public), dtype=bool)
    active[public] = solver.workspace.tree_active.numpy()[trees] != 0
    return active


@pytest.mark.parametrize("preset", PRESETS)
def test_problem_data_equals_the_reference(batch, preset):
    """A, v* and every contact's gap, weight and regularization."""
    solver = batch.solve(preset, max_iterations=0)
    sap, dynamics = solver.workspace, solver.dynamics
    starts = batch.contacts.rigid_contact_start.numpy()
    for world in range(batch.model.world_count):
        problem = batch.problem(world, preset)
        dofs, public = batch.internal(world)
        assert_close(batch.mass_matrix(solver, world), problem.a)
        assert_close(dynamics.dof_velocity_free.numpy()[dofs], problem.v_star[public])
        slots = slice(starts[world], starts[world] + len(problem.contacts))
        for name, field in (
            ("gap", "phi0"),
            ("weight", "weight"),
            ("rt", "r_t"),
            ("rn", "r_n"),
            ("mu", "mu"),
        ):
            expected = np.array([getattr(law, field) for law in problem.contacts])
            assert_close(getattr(sap, f"contact_{name}").numpy()[slots], expected)


@pytest.mark.parametrize("preset", PRESETS)
def test_cost_and_gradient_equal_the_reference(batch, preset):
    solver = batch.solve(preset, max_iterations=0)
    for world in range(batch.model.world_count):
        problem = batch.problem(world, preset)
        dofs, public = batch.internal(world)
        gradient = np.zeros(len(public))
        gradient[public] = solver.workspace.gradient.numpy()[dofs]
        # The iteration starts from v0, but at v* in trees without any term, which take no part in it.
        part = tree_has_terms(batch, solver, world, public)
        start = np.where(part, problem.v0, problem.v_star)
        assert_close(solver.workspace.velocity.numpy()[dofs], start[public])
        assert_close(gradient * part, problem.gradient(start) * part)
        assert solver.workspace.cost.numpy()[world] == pytest.approx(problem.cost(start), rel=TOLERANCE)


def test_newton_direction_equals_the_reference():
    """H d = -g with the reference's Hessian and gradient, for many gradients at the same state."""
    copies = 24
    batch = Batch(copies)
    solver = batch.solve("drake", max_iterations=1, in_contact_space=False)
    for world in range(batch.model.world_count):
        problem = batch.problem(world, "drake")
        dofs, public = batch.internal(world)
        momentum = np.zeros(len(public))
        momentum[public] = solver.workspace.direction_momentum.numpy()[dofs]
        direction = np.linalg.solve(problem.a, momentum)
        start = np.where(tree_has_terms(batch, solver, world, public), problem.v0, problem.v_star)
        hessian, gradient = problem.hessian(start), problem.gradient(start)
        scale = 1.0 / np.sqrt(np.diag(hessian))
        assert_close(scale * (hessian @ direction), -scale * gradient)


@pytest.mark.parametrize("preset", PRESETS)
def test_few_contacts_are_solved_at_once(preset):
    """Without drives, limits and dry friction the objective is quadratic but for contacts: one iteration."""
    batch = Batch(1)
    model = batch.model
    for name in ("joint_target_mode", "joint_friction"):
        getattr(model, name).zero_()
    model.joint_limit_lower.fill_(-1e6)
    model.joint_limit_upper.fill_(1e6)
    solver = batch.solve(preset, line_search_variant="armijo_decay")
    plain = batch.solve(preset, line_search_variant="armijo_decay", in_contact_space=False)
    contact_count = batch.contacts.rigid_contact_count.numpy()
    for world in range(model.world_count):
        dofs, public = batch.internal(world)
        expected = batch.problem(world, preset).minimize()[public]
        found = solver.workspace.velocity.numpy()[dofs]
        # The default `optimality_rel_tol` is 1e-6.
        assert np.linalg.norm(found - expected) <= 1e-5 * np.linalg.norm(expected)
        if 0 < 3 * contact_count[world] <= len(public):
            assert solver.workspace.iterations.numpy()[world] == 1
            assert plain.workspace.iterations.numpy()[world] > 1


@pytest.mark.parametrize("iterations", [0, 100])
def test_hessian_equals_the_reference(batch, iterations):
    """At the start and at the minimum: sweeps and coupled blocks against J^T G J, entry by entry."""
    solver = batch.solve("drake", max_iterations=iterations)
    coupled = 0
    for world in range(batch.model.world_count):
        problem = batch.problem(world, "drake")
        ours = solver.convex_problem(world, DT)
        _, public = batch.internal(world)
        velocity = np.zeros(len(public))
        velocity[public] = ours.velocity
        expected = problem.hessian(velocity)[np.ix_(public, public)]
        scale = 1.0 / np.sqrt(np.diag(expected))
        assert_close(scale[:, None] * ours.hessian * scale, scale[:, None] * expected * scale)
        coupled += int(solver.workspace.tree_coupled.numpy().any())
    assert coupled, "some trees are coupled by contacts"


@pytest.mark.parametrize("preset", PRESETS)
def test_minimizer_equals_the_reference(batch, preset):
    # Both tests are set below rounding: the cost stagnates when the gradient is still 1e-8 of the momenta.
    solver = batch.solve(preset, optimality_rel_tol=1e-14, cost_rel_tol=0.0, cost_abs_tol=0.0)
    regions = set()
    for world in range(batch.model.world_count):
        problem = batch.problem(world, preset)
        expected = problem.minimize()
        dofs, public = batch.internal(world)
        assert_close(solver.workspace.velocity.numpy()[dofs], expected[public])
        start = batch.contacts.rigid_contact_start.numpy()[world]
        impulses = solver.workspace.contact_impulse.numpy()[start : start + len(problem.contacts)]
        # gamma = (v_hat - v) / R: the smallest R amplifies the rounding of the velocity.
        amplification = max(1.0, max(np.max(1.0 / law.r) for law in problem.contacts))
        expected_impulses = problem.contact_impulses(expected)
        assert np.abs(impulses - expected_impulses).max() <= 1e-12 * amplification
        regions |= {
            law.region(j @ expected) for j, law in zip(problem.jacobians, problem.contacts, strict=True)
        }
    assert regions == {"stiction", "sliding", "none", "frictionless"}, "every region of the cone is visited"


@pytest.mark.parametrize("variant", ["strong_wolfe", "monotone_decay", "armijo_decay", "exact_root"])
def test_every_line_search_ends_at_the_same_minimum(batch, variant):
    tight = {"optimality_rel_tol": 1e-13, "cost_rel_tol": 0.0, "cost_abs_tol": 0.0}
    solver = batch.solve("drake", line_search_variant=variant, **tight)
    for world in range(batch.model.world_count):
        dofs, public = batch.internal(world)
        assert_close(
            solver.workspace.velocity.numpy()[dofs], batch.problem(world, "drake").minimize()[public]
        )


def test_mixed_precision_finds_the_minimum_to_single_precision(batch):
    """A, v* and the weights in single precision: 2^-24 times the condition of A, up to some hundred here."""
    solver = batch.solve("approx32")
    for world in range(batch.model.world_count):
        dofs, public = batch.internal(world)
        expected = batch.problem(world, "approx64").minimize()[public]
        error = solver.workspace.velocity.numpy()[dofs] - expected
        assert np.linalg.norm(error) < 5e-5 * np.linalg.norm(expected)
        assert solver.last_converged.numpy()[world] == 1
