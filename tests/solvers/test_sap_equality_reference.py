"""Equality constraints of SolverSAP against the dense float64 reference, on random worlds with contacts."""

import numpy as np
import pytest

from pluriverse import Contacts, EqType, JointDofConfig, JointType, ModelBuilder, SolverSAP
from tests.oracles.equality_dense import add_equality
from tests.oracles.multibody_dense import DenseWorld, dense_problem
from tests.oracles.random_scenes import CONSTRAINED_KINDS, random_contacts, random_world, randomize_state

DT = 0.005
TOLERANCE = 1e-10
"""Relative to the size of the array compared: rounding of 1e-16 times the condition of these problems."""
KINDS = ((1,), (3,), (6,), (5, 3), (1, 4, 1, 3), (2, 2, 2, 2))
"""Numbers of bodies of the trees of each kind of world."""
CONTACT_COUNT = 4
SCALAR = (JointType.REVOLUTE, JointType.PRISMATIC, JointType.D6)


def random_pose(rng: np.random.Generator) -> np.ndarray:
    quat = rng.normal(size=4)
    return np.concatenate([rng.normal(size=3), quat / np.linalg.norm(quat)])


def add_random_equality(builder: ModelBuilder, rng: np.random.Generator) -> None:
    """One constraint of every type, violated, between bodies and joints of the same and other trees."""
    template = builder.finalize("cpu").templates[0]
    for kind in (EqType.CONNECT, EqType.WELD, EqType.HINGE, EqType.WELD):
        for _ in range(20):
            body1, body2 = (int(body) for body in rng.integers(-1, builder.body_count, 2))
            still = [body < 0 or template.body_static[body] for body in (body1, body2)]
            welded = min(body1, body2) >= 0 and template.body_weld[body1] == template.body_weld[body2]
            if body1 != body2 and not all(still) and not welded:
                index = builder.add_equality_constraint(
                    kind, body1, body2, anchor=rng.normal(size=3), relpose=random_pose(rng)
                )
                builder.equality_constraint_axis[index] = rng.normal(size=3)
                builder.equality_constraint_torquescale[index] = rng.choice([0.0, 0.5, 1.0])
                break
    axes = [
        (int(joint), axis)
        for joint in np.flatnonzero(np.isin(builder.joint_type, SCALAR))
        for axis in range(builder.joint_dof_dim[joint].sum())
    ]
    for _ in range(4 if len(axes) > 1 else 0):
        (joint1, axis1), (joint2, axis2) = (axes[place] for place in rng.choice(len(axes), 2, replace=False))
        builder.add_equality_constraint_joint(
            joint1, joint2, polycoef=rng.normal(size=5), joint1_axis=axis1, joint2_axis=axis2
        )
    for _ in range(2 if builder.body_count > 2 else 0):
        body1, body2 = (int(body) for body in rng.choice(builder.body_count, 2, replace=False))
        if template.body_weld[body1] != template.body_weld[body2]:  # a rope beside the joints
            frames = {"parent_xform": random_pose(rng), "child_xform": random_pose(rng)}
            builder.add_joint_distance(body1, body2, min_distance=0.9, max_distance=1.0, **frames)
    movable = np.flatnonzero(~template.body_static)
    for _ in range(2):  # loop joints with coordinates, also two of them to one body
        frames = {"parent_xform": random_pose(rng), "child_xform": random_pose(rng)}
        child = int(rng.choice(movable))
        parent = int(rng.choice(np.setdiff1d(np.arange(-1, builder.body_count), child)))
        limited = JointDofConfig(axis=rng.normal(size=3), limit_lower=-0.2, limit_upper=0.1, friction=0.5)
        driven = JointDofConfig(axis=rng.normal(size=3), target_ke=50.0, target_kd=2.0, target_pos=0.3)
        builder.add_joint_d6(parent, child, linear_axes=[limited], angular_axes=[driven], **frames)
    if axes:
        builder.add_equality_constraint_joint(axes[0][0], polycoef=[0.3], joint1_axis=axes[0][1])
        builder.add_equality_constraint_joint(
            axes[-1][0], polycoef=[-0.3], enabled=False, joint1_axis=axes[-1][1]
        )


class Batch:
    """Random worlds, each with constraints of its own and some contacts."""

    def __init__(self) -> None:
        rng = np.random.default_rng(11)
        builder = ModelBuilder()
        for sizes in KINDS:
            world = random_world(rng, sizes, CONSTRAINED_KINDS)
            add_random_equality(world, rng)
            builder.add_world(world)
        self.model = builder.finalize("cpu")
        self.state, self.control = self.model.state(), self.model.control()
        self.contacts = Contacts(self.model, CONTACT_COUNT)
        for world in range(self.model.world_count):
            randomize_state(self.model, self.state, self.control, rng, world)
            random_contacts(self.model, self.state, self.control, self.contacts, rng, world, CONTACT_COUNT)

    def problem(self, world: int):
        def softening(law) -> float:
            return min(1e-7, 1e-6 * 9.81 * law.dt / law.weight)

        problem = dense_problem(
            self.model, self.state, self.control, self.contacts, DT, world=world, softening=softening
        )
        start = self.model.equality_constraint_world_start.numpy()
        dense = DenseWorld(self.model, self.state, self.control, world, DT)
        add_equality(problem, dense, start[world], start[world + 1])
        return problem

    def solve(self, **options) -> SolverSAP:
        options = {"line_search_variant": "exact_root", "contact_preset_variant": "drake"} | options
        solver = SolverSAP(self.model, **options)
        solver.step(self.state, self.model.state(), self.control, self.contacts, DT)
        return solver

    def public(self, world: int) -> np.ndarray:
        """The oracle's index of each internal degree of freedom."""
        return self.model.templates[self.model.world_template[world]].dof_public


@pytest.fixture(scope="module")
def batch():
    return Batch()


def assert_close(actual: np.ndarray, expected: np.ndarray) -> None:
    assert np.linalg.norm(actual - expected) <= TOLERANCE * max(np.linalg.norm(expected), 1e-30)


@pytest.mark.parametrize("iterations", [0, 100])
def test_gradient_and_hessian_equal_the_reference(batch, iterations):
    """At the start and at the minimum, entry by entry: bodies, pairs, and couplings of joints."""
    solver = batch.solve(max_iterations=iterations)
    for world in range(batch.model.world_count):
        problem, public = batch.problem(world), batch.public(world)
        ours = solver.convex_problem(world, DT)
        velocity = np.zeros(len(public))
        velocity[public] = ours.velocity
        hessian = problem.hessian(velocity)[np.ix_(public, public)]
        scale = 1.0 / np.sqrt(np.diag(hessian))
        assert_close(scale[:, None] * ours.hessian * scale, scale[:, None] * hessian * scale)
        gradient, impulse = problem.gradient(velocity)[public], problem.impulse(velocity)[public]
        assert np.linalg.norm(ours.gradient - gradient) <= TOLERANCE * np.linalg.norm(impulse)
        cost = solver.workspace.cost.numpy()[world]
        assert cost == pytest.approx(problem.cost(velocity), rel=1e-9)
    assert solver.workspace.tree_coupled.numpy().any(), "some trees are coupled"


@pytest.mark.parametrize("variant", ["strong_wolfe", "monotone_decay", "armijo_decay", "exact_root"])
def test_minimizer_equals_the_reference(batch, variant):
    solver = batch.solve(
        line_search_variant=variant, optimality_rel_tol=1e-13, cost_rel_tol=0.0, cost_abs_tol=0.0
    )
    dof0 = batch.model.topology.world_dof.numpy()
    for world in range(batch.model.world_count):
        public = batch.public(world)
        velocity = solver.workspace.velocity.numpy()[dof0[world] : dof0[world] + len(public)]
        assert_close(velocity, batch.problem(world).minimize()[public])


def test_every_world_gives_the_same_bits_alone(batch):
    """A step of one world of the batch writes the same bits as a step of all."""
    model = batch.model
    together, alone = model.state(), model.state()
    SolverSAP(model).step(batch.state, together, batch.control, batch.contacts, DT)
    solver = SolverSAP(model)
    for world in range(model.world_count):
        solver.step(
            batch.state, alone, batch.control, batch.contacts, DT, worlds=model.worlds[world : world + 1]
        )
    for name in ("joint_q", "joint_qd", "body_q", "body_qd"):
        assert np.array_equal(getattr(together, name).numpy(), getattr(alone, name).numpy())
