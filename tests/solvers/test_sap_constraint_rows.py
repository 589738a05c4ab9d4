"""Worlds with equality constraints are solved in the space of their contacts."""

from collections.abc import Callable

import numpy as np
import pytest

import pluriverse as pv
from benchmarks.step_laws import law_violation
from pluriverse import Contacts, ModelBuilder, SolverSAP
from pluriverse.solvers.sap.contact_list import STICKING_SPEED
from tests.oracles.coulomb_dense import contact_impulses, solve_coulomb, with_bounds
from tests.oracles.equality_dense import add_equality
from tests.oracles.multibody_dense import DenseWorld, dense_problem
from tests.oracles.random_scenes import random_contacts, random_world, randomize_state
from tests.solvers.test_sap_reference import DT, PRESETS, softening

KINDS = ((6,), (5, 3), (1, 4, 1, 3), (8,))
"""Numbers of bodies of the trees of each kind of world."""
COUPLINGS = (1, 4, 2, 3)
SCALAR = (pv.JointType.REVOLUTE, pv.JointType.PRISMATIC)
# Relative difference of velocities that the default tolerance of the gradient leaves.
AGREEMENT = 1e-4


def couple_joints(world: ModelBuilder, rng: np.random.Generator, count: int) -> None:
    """Constrain joints of the same tree and of others, and one by a constraint that is switched off."""
    joints = [int(j) for j in np.flatnonzero(np.isin(world.joint_type, SCALAR))]
    for index in range(count):
        first, second = rng.choice(joints, 2, replace=False)
        polycoef = (rng.normal(), *rng.normal(size=2), 0.0, 0.0)
        world.add_equality_constraint_joint(int(first), int(second), polycoef=polycoef)
        if index == 0:
            world.add_equality_constraint_joint(joints[0], polycoef=[0.3], enabled=False)


def close_loops(world: ModelBuilder, rng: np.random.Generator, count: int) -> None:
    """Constrain points and rotations of bodies: a hinge, and one of three other kinds."""
    template = world.finalize("cpu").templates[0]
    movable = np.flatnonzero(~template.body_static)
    for kind in (pv.EqType.HINGE, (pv.EqType.CONNECT, pv.EqType.WELD, pv.EqType.DISTANCE)[count % 3]):
        body1, body2 = (int(body) for body in rng.choice(movable, 2, replace=False))
        if template.body_weld[body1] == template.body_weld[body2]:
            body2 = -1
        quat = rng.normal(size=4)
        pose = np.concatenate([rng.normal(size=3), quat / np.linalg.norm(quat)])
        if kind == pv.EqType.DISTANCE:
            frames = {"parent_xform": pose, "child_xform": pose}
            world.add_joint_distance(body2, body1, min_distance=0.9, max_distance=0.9, **frames)
            continue
        index = world.add_equality_constraint(kind, body2, body1, anchor=rng.normal(size=3), relpose=pose)
        world.equality_constraint_axis[index] = rng.normal(size=3)
        world.equality_constraint_torquescale[index] = rng.choice([0.5, 1.0])


class Batch:
    """Random worlds with contacts, whose constraints `add` writes."""

    def __init__(self, add: Callable, contact_count: int) -> None:
        rng = np.random.default_rng(5)
        builder = ModelBuilder()
        for sizes, count in zip(KINDS, COUPLINGS, strict=True):
            world = random_world(rng, sizes, (*SCALAR, pv.JointType.BALL, *SCALAR))
            add(world, rng, count)
            builder.add_world(world)
        self.model = builder.finalize("cpu")
        self.state, self.control = self.model.state(), self.model.control()
        self.contacts = Contacts(self.model, contact_count)
        for world in range(self.model.world_count):
            randomize_state(self.model, self.state, self.control, rng, world)
            random_contacts(self.model, self.state, self.control, self.contacts, rng, world, contact_count)

    def problem(self, world: int):
        problem = dense_problem(
            self.model,
            self.state,
            self.control,
            self.contacts,
            DT,
            world=world,
            softening=softening,
            **PRESETS["standard"],
        )
        start = self.model.equality_constraint_world_start.numpy()
        dense = DenseWorld(self.model, self.state, self.control, world, DT)
        add_equality(problem, dense, start[world], start[world + 1])
        return problem

    def solve(self, law: str, *, in_contact_space: bool = True) -> SolverSAP:
        # Constraints of random bodies are far open, which the reference undoes within a step.
        solver = SolverSAP(
            self.model, position_integration="midpoint", friction_law=law, recovery_limited=False
        )
        solver.prepare(self.contacts)
        if not in_contact_space:
            solver.workspace.space_dof_count = 0
        solver.step(self.state, self.model.state(), self.control, self.contacts, DT)
        assert solver.unconverged_step_count.numpy().sum() == 0
        return solver

    def velocity(self, solver: SolverSAP, world: int) -> np.ndarray:
        """Velocities of a world, in the oracle's order."""
        dof0 = self.model.topology.world_dof.numpy()[world]
        public = self.model.templates[self.model.world_template[world]].dof_public
        result = np.zeros(len(public))
        result[public] = solver.workspace.velocity.numpy()[dof0 : dof0 + len(public)]
        return result


@pytest.mark.parametrize("add", [couple_joints, close_loops])
def test_convex_solutions_equal_the_reference(add):
    """In the space of contacts, for which there are few enough, and outside of it."""
    batch = Batch(add, contact_count=4)
    for in_contact_space in (True, False):
        solver = batch.solve("convex", in_contact_space=in_contact_space)
        for world in range(batch.model.world_count):
            found, expected = batch.velocity(solver, world), batch.problem(world).minimize()
            assert np.linalg.norm(found - expected) <= AGREEMENT * np.linalg.norm(expected)


@pytest.mark.parametrize(("add", "contact_count"), [(couple_joints, 4), (couple_joints, 8), (close_loops, 4)])
def test_solutions_obey_coulombs_law(add, contact_count):
    """A (v - v*) = J^T gamma with all impulses at v, to ten times the tolerance of the gradient.

    With four contacts an independent solver finds the same velocities. With eight, Coulomb's law has two
    solutions in one of these worlds, and that solver finds the other one.
    """
    batch = Batch(add, contact_count)
    solver = batch.solve("coulomb")
    assert solver.approximated_step_count.numpy().sum() == 0
    pushing = 0
    for world in range(batch.model.world_count):
        problem, found = batch.problem(world), batch.velocity(solver, world)
        coulomb = with_bounds(problem, None)
        assert coulomb.optimality(found) <= 1e-5
        if contact_count == 4:
            expected = solve_coulomb(problem)
            assert np.linalg.norm(found - expected) <= AGREEMENT * np.linalg.norm(expected)
        pushing += int((contact_impulses(coulomb, found)[:, 2] > 0.0).sum())
    assert pushing >= contact_count


def test_every_world_with_constraints_gives_the_same_bits_alone():
    """Grippers and linkages in one batch, and each of them alone."""
    builders = [_gripper(count, cube) for count, cube in ((2, True), (4, True), (14, True), (2, False))]
    builders += [_linkage(pv.EqType.CONNECT), _linkage(pv.EqType.HINGE)]
    together = ModelBuilder()
    for builder in builders:
        together.add_world(builder)
    results = []
    for model in (together.finalize("cpu"), *(_alone(builder).finalize("cpu") for builder in builders)):
        simulation = pv.Simulation(model, dt=0.005, threads=1)
        simulation.step(20)
        results.append(simulation.state.joint_q.numpy())
    np.testing.assert_array_equal(results[0], np.concatenate(results[1:]))


def _alone(builder: ModelBuilder) -> ModelBuilder:
    """Return a builder of one world."""
    single = ModelBuilder()
    single.add_world(builder)
    return single


def _gripper(fingers: int, cube: bool) -> ModelBuilder:
    """Fingers on a rail, each of which mirrors the one before, about a cube on the ground."""
    builder = ModelBuilder()
    drive = {"target_ke": 1000.0, "target_kd": 50.0, "effort_limit": 20.0, "friction": 0.2}
    joints = []
    for index in range(fingers):
        link = builder.add_link(mass=0.1, inertia=np.eye(3) * 1e-5)
        builder.add_shape_box(link, hx=0.01, hy=0.02, hz=0.02)
        place = ((-0.05 if index % 2 == 0 else 0.05, 0.1 * (index // 2), 0.03), (0.0, 0.0, 0.0, 1.0))
        axis = (1.0 if index % 2 == 0 else -1.0, 0.0, 0.0)
        joints.append(
            builder.add_joint_prismatic(-1, link, parent_xform=place, axis=axis, target_pos=0.002, **drive)
        )
        builder.add_articulation([joints[-1]])
        if index > 0:
            builder.add_equality_constraint_joint(joints[-1], joints[-2], polycoef=[0.0, 1.0, 0.0, 0.0, 0.0])
    if cube:
        body = builder.add_body(xform=((0.0, 0.0, 0.02), (0.0, 0.0, 0.0, 1.0)))
        builder.add_shape_box(body, hx=0.02, hy=0.02, hz=0.02)
    builder.add_ground_plane()
    return builder


def _linkage(kind: pv.EqType) -> ModelBuilder:
    """Two arms of two bars that hang from a beam, joined at their ends, where a ball touches the ground."""
    builder = ModelBuilder()
    turn = pv.JointDofConfig(axis=(0.0, 1.0, 0.0), target_ke=20.0, target_kd=1.0, effort_limit=10.0)
    outward = 0.3
    inward = np.arcsin(0.5 + np.sin(outward)) + outward  # the ends meet below the middle of the beam
    tips = []
    for side in (-1.0, 1.0):
        parent, place, joints = -1, (0.1 * side, 0.0, 0.32), []
        for tilt in (-outward * side, inward * side):
            bar = builder.add_link(mass=0.2, inertia=np.eye(3) * 1e-3, com=(0.0, 0.0, -0.1))
            frame = (place, (0.0, np.sin(0.5 * tilt), 0.0, np.cos(0.5 * tilt)))
            joints.append(builder.add_joint_d6(parent, bar, angular_axes=[turn], parent_xform=frame))
            parent, place = bar, (0.0, 0.0, -0.2)
        builder.add_articulation(joints)
        tips.append(parent)
    builder.add_shape_sphere(tips[0], xform=(place, (0.0, 0.0, 0.0, 1.0)), radius=0.01)
    axis = {"axis": (0.0, 1.0, 0.0)} if kind == pv.EqType.HINGE else {}
    builder.add_equality_constraint(kind, *tips, anchor=place, **axis)
    builder.add_ground_plane()
    return builder


@pytest.mark.parametrize("kind", [pv.EqType.CONNECT, pv.EqType.HINGE])
def test_linkages_take_few_iterations(kind):
    """A linkage that is pushed along the ground is solved by whole steps, as if it had no loop."""
    model = _linkage(kind).finalize("cpu")
    simulation = pv.Simulation(model, dt=0.005, decimation=1, threads=1)
    rng = np.random.default_rng(3)
    counts, touches = [], 0
    for step in range(100):
        if step % 10 == 0:
            simulation.control.joint_target_pos.assign(rng.uniform(-0.3, 0.3, 4).astype(np.float32))
        simulation.step()
        counts.append(int(simulation.solver.last_solve_iterations.numpy()[0]))
        assert simulation.solver.last_line_search_iterations.numpy()[0] == 0
        touches += int(simulation.solver.workspace.contact_impulse.numpy()[0][2] > 0.0)
        ends = [pose[:3] - 0.2 * _vertical(pose[3:]) for pose in simulation.state.body_q.numpy()[[1, 3]]]
        assert np.linalg.norm(ends[0] - ends[1]) < 1e-4
    assert 10 < touches < 100
    assert np.mean(counts) < 1.2


def _vertical(quat: np.ndarray) -> np.ndarray:
    """The z axis of a body in the world."""
    x, y, z, w = quat
    return np.array([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)])


CLOSING_MU = 0.3


def _close_fingers(places: np.ndarray) -> pv.Simulation:
    """Return worlds in which fingers are 9 mm from cubes that are turned and moved, rows of `places`."""
    world_count = len(places)
    builder = ModelBuilder()
    for _ in range(world_count):
        builder.add_world(_gripper(2, True))
    model = builder.finalize("cpu")
    model.shape_material_mu.fill_(CLOSING_MU)
    simulation = pv.Simulation(model, dt=0.005, decimation=1, threads=1)
    target = simulation.control.joint_target_pos.numpy().reshape(world_count, -1)
    target[:, :2] = 0.04
    simulation.control.joint_target_pos.assign(target.ravel())
    q = simulation.state.joint_q.numpy().reshape(world_count, -1)
    q[:, :2] = 0.01
    q[:, 7], q[:, 8] = np.sin(0.5 * places[:, 0]), np.cos(0.5 * places[:, 0])
    q[:, 2:4] += places[:, 1:]
    simulation.state.joint_q.assign(q.ravel())
    pv.eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
    return simulation


def test_fingers_that_close_on_turned_cubes_obey_coulombs_law():
    """The cubes slide on the ground and along the fingers while these turn them, with up to twelve contacts.

    Contacts opened too fast in a quarter of these steps, where so many between moving bodies were solved with
    convex friction, or where the states of contacts recurred. Each world gives the same bits alone.
    """
    rng = np.random.default_rng(1)
    limit = np.array([[0.3], [0.003], [0.01]])  # angle [rad], along and across the fingers [m]
    places = rng.uniform(-limit, limit, (3, 8)).T
    simulation = _close_fingers(places)
    worst = 0.0
    for _ in range(12):
        simulation.step()
        worst = max(worst, law_violation(simulation))
    # Contacts that slide no faster may have convex friction, by which they open.
    assert worst < CLOSING_MU * STICKING_SPEED
    assert simulation.solver.approximated_step_count.numpy().sum() == 0
    together = simulation.state.joint_q.numpy().reshape(len(places), -1)
    for world in (0, 3):
        alone = _close_fingers(places[[world]])
        alone.step(12)
        np.testing.assert_array_equal(alone.state.joint_q.numpy(), together[world])


def test_mirrored_fingers_beside_a_cube_take_few_iterations():
    """A cube at rest and fingers that move are solved by whole steps: one, or two where friction turns.

    Outside of contact space they take a line search at each change of a contact or of friction.
    """
    model = _gripper(2, True).finalize("cpu")
    simulation = pv.Simulation(model, dt=0.005, decimation=1, threads=1)
    counts = []
    for step in range(60):
        if step == 30:
            target = simulation.control.joint_target_pos.numpy()
            target[:2] = -0.004
            simulation.control.joint_target_pos.assign(target)
        simulation.step()
        counts.append(int(simulation.solver.last_solve_iterations.numpy()[0]))
        q = simulation.state.joint_q.numpy()
        assert abs(q[0] - q[1]) < 1e-5
    assert simulation.solver.last_line_search_iterations.numpy()[0] == 0
    assert np.mean(counts) < 1.5
    assert max(counts) <= 3


def test_more_constraints_than_fit_contact_space_are_solved_outside_of_it():
    """Twenty-six fingers, twenty-five of which mirror another one, move as two do."""
    positions = []
    for count in (2, 26):
        simulation = pv.Simulation(_gripper(count, False).finalize("cpu"), dt=0.005, threads=1)
        simulation.step(10)
        assert simulation.solver.unconverged_step_count.numpy().sum() == 0
        positions.append(simulation.state.joint_q.numpy())
    np.testing.assert_allclose(positions[1], np.full(26, positions[0][0]), rtol=1e-4, atol=1e-7)
