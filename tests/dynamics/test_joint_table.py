"""Every joint type, as a root, below a body and in a chain, with and without frames and offsets.

Mass matrix, forces and accelerations against MuJoCo in double precision; energy and momenta of motions
without losses, extrapolated to a time step of zero.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from pluriverse import JointType, SolverSAP, eval_fk, eval_world_momenta

from .conftest import DT, Worlds, make_worlds
from .test_bias import joint_force
from .trees import (
    Tree,
    TreeJoint,
    build_model,
    dof_places,
    random_axes,
    random_frame,
    random_inertia,
    random_joint_state,
    set_joint_state,
    tree_damping,
    tree_matrix,
    tree_vector,
)

# Chains of up to five bodies within some metres, in float64: some hundred roundings.
RELATIVE_ERROR = 1e-13
GRAVITY = np.array([1.0, 0.0, -9.75])  # exact in single precision
IDENTITY = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
KINDS = tuple(JointType)
PLACES = ("root", "child", "chain")
VARIATIONS = ("plain", "frames", "com", "frames and com")
CASES = [(kind, place, variation) for kind in KINDS for place in PLACES for variation in VARIATIONS]


@dataclass
class Maker:
    """Makes the joints of one case."""

    rng: np.random.Generator
    variation: str
    losses: bool

    def joint(self, kind: JointType, parent: int) -> TreeJoint:
        rng = self.rng
        framed, offset = "frames" in self.variation, "com" in self.variation
        axes, linear_count = random_axes(rng) if kind is JointType.D6 else (np.zeros((0, 3)), 0)
        if kind is JointType.D6 and not framed:
            axes, linear_count = np.array([*np.eye(3), *np.eye(3)]), 3
        axis = rng.normal(size=3)
        mass = float(np.float32(rng.uniform(0.5, 2.0)))
        lossy = self.losses and kind not in (JointType.FREE, JointType.DISTANCE)
        return TreeJoint(
            kind=kind,
            parent=parent,
            parent_frame=random_frame(rng) if framed else IDENTITY,
            child_frame=random_frame(rng) if framed else IDENTITY,
            axis=np.float32(axis / np.linalg.norm(axis)).astype(float),
            mass=mass,
            com=np.float32(rng.uniform(-0.2, 0.2, 3)).astype(float) if offset else np.zeros(3),
            inertia=random_inertia(rng, mass),
            armature=0.125 if lossy else 0.0,
            damping=0.5 if lossy else 0.0,
            axes=np.float32(axes).astype(float),
            linear_count=linear_count,
        )


def make_tree(index: int, kind: JointType, place: str, variation: str, *, losses: bool) -> Tree:
    """A root of the type with a hinge behind it; the same below a free body; five of the type in a row."""
    maker = Maker(np.random.default_rng(100 + index), variation, losses)
    kinds = {
        "root": [kind, JointType.REVOLUTE],
        "child": [JointType.FREE, kind, JointType.REVOLUTE],
        "chain": [JointType.FREE if kind is JointType.FIXED else kind] + 4 * [kind],
    }[place]
    return Tree([maker.joint(each, entry - 1) for entry, each in enumerate(kinds)], GRAVITY)


@pytest.fixture(scope="module")
def worlds() -> Worlds:
    """Return all cases at random states under random forces, one world each."""
    trees = [make_tree(index, *case, losses=True) for index, case in enumerate(CASES)]
    return make_worlds(trees, wp.float64, seed=9)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].name}-{case[1]}-{case[2]}")
def test_mechanics_are_those_of_mujoco(worlds, case):
    world = CASES.index(case)
    model, workspace = worlds.model, worlds.workspace
    tree, oracle = worlds.trees[world], worlds.oracles[world]
    damping = tree_damping(tree)
    matrix = oracle.mass_matrix() + DT * np.diag(damping)
    actual = tree_matrix(model, world, tree, workspace.mass_row)
    np.testing.assert_allclose(actual, matrix, rtol=0.0, atol=RELATIVE_ERROR * np.abs(matrix).max())
    force = joint_force(worlds, world) + oracle.applied(worlds.body_f[world].astype(np.float64))
    force -= oracle.bias() + damping * oracle.velocity
    actual = tree_vector(model, world, tree, workspace.dof_force)
    np.testing.assert_allclose(actual, force, rtol=0.0, atol=RELATIVE_ERROR * np.abs(force).max())
    acceleration = np.linalg.solve(matrix, force)
    change = tree_vector(model, world, tree, workspace.dof_velocity_free) - oracle.velocity
    # Of the forces' error, what the condition of the matrix makes of it.
    error = RELATIVE_ERROR * np.linalg.cond(matrix) * np.abs(acceleration).max()
    np.testing.assert_allclose(change / DT, acceleration, rtol=0.0, atol=error + 1e-10)


LAWFUL = [(kind, place) for kind in KINDS for place in ("root", "child")]
DURATION = 0.25  # s


def conserved(dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Energies and momenta of all worlds at the start and after `DURATION`, shape [time, world, 7]."""
    trees = []
    for index, (kind, place) in enumerate(LAWFUL):
        tree = make_tree(500 + index, kind, place, "frames and com", losses=False)
        if place == "child":
            tree.gravity = np.zeros(3)
        trees.append(tree)
    model = build_model(trees)
    model.equality_constraint_enabled.fill_(False)  # what a rope does is not the joint's mechanics
    rng = np.random.default_rng(1)
    states = [random_joint_state(rng, tree) for tree in trees]
    for tree, (q, _) in zip(trees, states, strict=True):
        for joint, values in zip(tree.joints, q, strict=True):
            if joint.kind is JointType.D6:
                values[:] = 0.5 * np.tanh(values)  # away from gimbal lock
    state, other = model.state(), model.state()
    set_joint_state(state, trees, [case[0] for case in states], [case[1] for case in states])
    eval_fk(model, state.joint_q, state.joint_qd, state)
    solver = SolverSAP(model, contact_preset_variant="approx64")
    records = [measure(model, state)]
    for _ in range(round(DURATION / dt)):
        solver.step(state, other, None, None, dt)
        state, other = other, state
    return records[0], measure(model, state)


def measure(model, state) -> np.ndarray:
    """Energy, linear and angular momentum of each world, shape [world, 7]."""
    body_q, body_qd = state.body_q.numpy().astype(float), state.body_qd.numpy().astype(float)
    turn = Rotation.from_quat(body_q[:, 3:])
    mass = model.body_mass.numpy().astype(float)
    com = body_q[:, :3] + turn.apply(model.body_com.numpy().astype(float))
    spin = turn.inv().apply(body_qd[:, 3:])
    kinetic = 0.5 * mass * (body_qd[:, :3] ** 2).sum(1)
    kinetic += 0.5 * np.einsum("bi,bij,bj->b", spin, model.body_inertia.numpy().astype(float), spin)
    start = model.body_world_start.numpy()
    gravity = model.gravity.numpy().astype(float)
    momenta = eval_world_momenta(model, state)
    rows = []
    for world in range(model.world_count):
        bodies = slice(start[world], start[world + 1])
        energy = kinetic[bodies].sum() - (mass[bodies, None] * com[bodies] @ gravity[world]).sum()
        rows.append([energy, *momenta.linear.numpy()[world], *momenta.angular.numpy()[world]])
    return np.array(rows)


@pytest.fixture(scope="module")
def drifts() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is conserved at the start, and its change for a time step and for half of it."""
    before, after = conserved(1e-3)
    _, finer = conserved(5e-4)
    return before, after - before, finer - before


@pytest.mark.parametrize("case", LAWFUL, ids=lambda case: f"{case[0].name}-{case[1]}")
def test_energy_and_momenta_are_conserved(drifts, case):
    """Of the first-order drift of semi-implicit steps nothing is left in the limit of small steps."""
    world = LAWFUL.index(case)
    before, coarse, fine = (rows[world] for rows in drifts)
    limit = 2.0 * fine - coarse
    scale = max(np.abs(before).max(), 1.0)
    count = 7 if case[1] == "child" else 1  # a floating mechanism without gravity keeps its momenta, too
    # What is left is of second order in the step, and rounding of states in single precision.
    assert np.abs(limit[:count]).max() <= 2e-4 * scale
    assert np.abs(fine[:count]).max() <= 2e-2 * scale


def test_the_table_covers_every_type():
    assert {case[0] for case in CASES} == set(JointType) == {case[0] for case in LAWFUL}
    assert len(dof_places(make_tree(0, JointType.D6, "root", "plain", losses=True))[0]) == 6
