"""Kinematic roots in SolverSAP against the dense float64 reference, with contacts and constraints."""

import numpy as np
import pytest

from pluriverse import BodyFlags, Contacts, JointTargetMode, JointType, ModelBuilder, SolverSAP
from pluriverse.types import FLOATING_JOINTS
from tests.oracles.equality_dense import add_equality
from tests.oracles.kinematic_dense import prescribe, take_out
from tests.oracles.multibody_dense import DenseWorld, dense_problem
from tests.oracles.random_scenes import CONSTRAINED_KINDS, random_contacts, random_world, randomize_state
from tests.solvers.test_sap_equality_reference import add_random_equality, assert_close

DT = 0.005
KINDS = ((3,), (4, 3), (1, 4, 1), (1, 1, 3, 2), (3, 3))
"""Numbers of bodies of the trees of each kind of world; trees of even number have free roots."""
CONTACT_COUNT = 6
MODES = [JointTargetMode.NONE, JointTargetMode.VELOCITY, JointTargetMode.POSITION_VELOCITY]


def make_roots_kinematic(builder: ModelBuilder, rng: np.random.Generator) -> None:
    """Make some roots kinematic: held at their velocity, or following targets."""
    in_tree = builder.joint_articulation >= 0
    roots = np.flatnonzero(in_tree & (builder.joint_parent < 0) & (builder.joint_type != JointType.FIXED))
    chosen = rng.permutation(roots)[: 1 + len(roots) // 2]
    for joint in chosen:
        builder.body_flags[builder.joint_child[joint]] = BodyFlags.KINEMATIC
        first = builder.joint_qd_start[joint]
        dofs = slice(first, first + builder.joint_dof_dim[joint].sum())
        modes = MODES if builder.joint_type[joint] not in (JointType.BALL, *FLOATING_JOINTS) else MODES[:2]
        builder.joint_target_mode[dofs] = rng.choice(modes)
        builder.joint_target_vel[dofs] = rng.normal(size=dofs.stop - dofs.start)
        builder.joint_target_ke[dofs] = 0.0


class Batch:
    """Random worlds with kinematic roots, constraints and contacts."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        builder = ModelBuilder()
        for sizes in KINDS:
            world = random_world(rng, sizes, CONSTRAINED_KINDS)
            add_random_equality(world, rng)
            make_roots_kinematic(world, rng)
            builder.add_world(world)
        self.model = builder.finalize("cpu")
        self.state, self.control = self.model.state(), self.model.control()
        self.contacts = Contacts(self.model, CONTACT_COUNT)
        for world in range(self.model.world_count):
            randomize_state(self.model, self.state, self.control, rng, world)
            random_contacts(self.model, self.state, self.control, self.contacts, rng, world, CONTACT_COUNT)

    def problem(self, world: int, **modes):
        """The dense problem, and which public dofs of the world are prescribed."""
        prescribed = []

        def softening(law) -> float:
            return min(1e-7, 1e-6 * 9.81 * law.dt / max(law.weight, 1e-12))

        def prepare(problem, dense) -> None:
            prescribed.append(prescribe(problem, dense, self.control))

        problem = dense_problem(
            self.model,
            self.state,
            self.control,
            self.contacts,
            DT,
            world=world,
            softening=softening,
            prepare=prepare,
            **modes,
        )
        start = self.model.equality_constraint_world_start.numpy()
        dense = DenseWorld(self.model, self.state, self.control, world, DT)
        add_equality(problem, dense, start[world], start[world + 1])
        take_out(problem, prescribed[0])
        return problem, prescribed[0]


@pytest.fixture(scope="module")
def batch():
    return Batch()


def solve(batch: Batch, **options) -> SolverSAP:
    options = {
        "line_search_variant": "exact_root",
        "contact_preset_variant": "drake",
        "position_integration": "midpoint",
    } | options
    solver = SolverSAP(batch.model, **options)
    solver.step(batch.state, batch.model.state(), batch.control, batch.contacts, DT)
    return solver


@pytest.mark.parametrize("iterations", [0, 100])
def test_gradient_and_hessian_of_the_others_equal_the_reference(batch, iterations):
    """Entry by entry, at the start and at the minimum; prescribed dofs have no gradient."""
    solver = solve(batch, max_iterations=iterations)
    for world in range(batch.model.world_count):
        problem, prescribed = batch.problem(world)
        public = batch.model.templates[batch.model.world_template[world]].dof_public
        free = ~prescribed[public]
        ours = solver.convex_problem(world, DT)
        velocity = np.zeros(len(public))
        velocity[public[free]] = ours.velocity[free]
        inner = np.ix_(public[free], public[free])
        hessian = problem.hessian(velocity)[inner]
        scale = 1.0 / np.sqrt(np.diag(hessian))
        actual = ours.hessian[np.ix_(free, free)]
        assert_close(scale[:, None] * actual * scale, scale[:, None] * hessian * scale)
        gradient, impulse = problem.gradient(velocity)[public], problem.impulse(velocity)[public]
        difference = np.linalg.norm((ours.gradient - gradient)[free])
        # Couplings to a prescribed joint: a stiffness of 1e7 times the rounding of a velocity of 1.
        assert difference <= 1e-9 * max(np.linalg.norm(impulse), 1e-12)
        assert not ours.gradient[~free].any()
        assert not ours.hessian[np.ix_(~free, free)].any()


MODES_OF_PRESET = {
    "standard": {"weight_mode": "delassus", "beta": 0.1, "damps_approach": False},
    "drake": {},
    "approx64": {"weight_mode": "body_inertia", "point_mode": "witness_point"},
}


@pytest.mark.parametrize("preset", MODES_OF_PRESET)
def test_minimizer_equals_the_reference(batch, preset):
    """With weights from the mass matrix and from the two bodies, of which a kinematic one has none."""
    solver = solve(
        batch,
        contact_preset_variant=preset,
        recovery_limited=False,  # which makes it another problem than the reference has
        friction_law="convex",  # as that of the reference is
        optimality_rel_tol=1e-13,
        cost_rel_tol=0.0,
        cost_abs_tol=0.0,
    )
    first = batch.model.topology.world_dof.numpy()
    for world in range(batch.model.world_count):
        problem, prescribed = batch.problem(world, **MODES_OF_PRESET[preset])
        public = batch.model.templates[batch.model.world_template[world]].dof_public
        velocity = solver.workspace.velocity.numpy()[first[world] : first[world] + len(public)]
        free = ~prescribed[public]
        assert_close(velocity[free], problem.minimize()[public[free]])
