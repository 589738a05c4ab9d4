"""Equality constraints of Pluriverse and Drake: ball, weld and coupler constraints of the same mechanisms."""

import numpy as np
import pytest

pytest.importorskip("pydrake", reason="Drake is not installed")

from pydrake.math import RigidTransform
from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant
from pydrake.multibody.tree import FixedOffsetFrame, RevoluteJoint, RotationalInertia, SpatialInertia
from pydrake.systems.analysis import Simulator

from pluriverse import EqType, ModelBuilder, SolverSAP

DT = 0.005
STEP_COUNT = 200
GRAVITY = (0.3, -9.81, 0.0)
MASS, INERTIA = 1.0, (0.02, 0.03, 0.04)
IDENTITY = (0.0, 0.0, 0.0, 1.0)
TOLERANCE = 2e-5
"""[rad or m]: single-precision positions, a rounding of 6e-8 per step in 200 steps of a swinging linkage."""


def drake_plant() -> MultibodyPlant:
    plant = MultibodyPlant(DT)
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
    plant.mutable_gravity_field().set_gravity_vector(GRAVITY)
    return plant


def drake_simulate(plant: MultibodyPlant, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Positions after each step, shape [step, coord]."""
    plant.Finalize()
    context = plant.CreateDefaultContext()
    plant.SetPositions(context, q)
    plant.SetVelocities(context, v)
    simulator = Simulator(plant, context)
    simulator.Initialize()
    history = []
    for step in range(STEP_COUNT):
        simulator.AdvanceTo((step + 0.5) * DT)
        history.append(plant.GetPositions(context).copy())
    return np.array(history)


def simulate(builder: ModelBuilder) -> np.ndarray:
    """Coordinates after each step with the preset `drake`, shape [step, coord]."""
    model = builder.finalize("cpu")
    solver = SolverSAP(model, contact_preset_variant="drake")
    state, other = model.state(), model.state()
    history = []
    for _ in range(STEP_COUNT):
        solver.step(state, other, None, None, DT)
        state, other = other, state
        history.append(state.joint_q.numpy().astype(float))
    assert solver.unconverged_step_count.numpy()[0] == 0
    return np.array(history)


def pendulums(hinges: list[tuple[int, float]], coms: list[float], q: list[float], v: list[float]):
    """Hinges about z (parent link or -1, place along the parent's x) with a rod each, in both systems."""
    plant = drake_plant()
    builder = ModelBuilder(gravity=GRAVITY)
    bodies, joints, links, chains = [], [], [], {}
    for index, ((parent, place), com) in enumerate(zip(hinges, coms, strict=True)):
        inertia = SpatialInertia.MakeFromCentralInertia(MASS, [com, 0, 0], RotationalInertia(*INERTIA))
        bodies.append(plant.AddRigidBody(f"link_{index}", inertia))
        above = plant.world_body() if parent < 0 else bodies[parent]
        frame = plant.AddFrame(
            FixedOffsetFrame(f"frame_{index}", above.body_frame(), RigidTransform([place, 0, 0]))
        )
        joints.append(
            plant.AddJoint(RevoluteJoint(f"joint_{index}", frame, bodies[-1].body_frame(), [0, 0, 1]))
        )
        links.append(builder.add_link(mass=MASS, com=(com, 0, 0), inertia=np.diag(INERTIA)))
        joint = builder.add_joint_revolute(
            -1 if parent < 0 else links[parent], links[-1], axis="z", parent_xform=((place, 0, 0), IDENTITY)
        )
        chains.setdefault(index if parent < 0 else parent, []).append(joint)
    for chain in chains.values():
        builder.add_articulation(chain)
    builder.joint_q[:], builder.joint_qd[:] = q, v
    return plant, bodies, joints, builder


@pytest.mark.parametrize("gap", [0.0, 0.01])
def test_four_bar_linkage_swings_as_in_drake(gap):
    """A ball constraint closes the loop, from an exact start and from an open one."""
    crank, coupler, rocker = 0.5, 1.2, 0.9
    angle = 1.2
    tip = crank * np.array([np.cos(angle), np.sin(angle)])
    end = tip + coupler * np.array([np.cos(0.2), np.sin(0.2)])
    place = end[0] - np.sqrt(rocker**2 - end[1] ** 2)  # of the rocker's hinge on the x axis
    lean = np.arctan2(end[1], end[0] - place)
    q = np.array([angle, 0.2 - angle, lean + gap])
    v = np.zeros(3)
    plant, bodies, _, builder = pendulums(
        [(-1, 0.0), (0, crank), (-1, place)], [0.2, 0.6, 0.4], q.tolist(), v.tolist()
    )
    plant.AddBallConstraint(bodies[1], [coupler, 0, 0], bodies[2], [rocker, 0, 0])
    builder.add_equality_constraint(
        EqType.CONNECT, 1, 2, anchor=(coupler, 0, 0), relpose=((coupler - rocker, 0, 0), IDENTITY)
    )
    expected = drake_simulate(plant, q, v)
    assert np.ptp(expected[:, 0]) > 0.5, "it swings"
    assert np.abs(simulate(builder) - expected).max() < TOLERANCE


@pytest.mark.parametrize("parent", [-1, 0])
def test_coupled_pendulums_swing_as_in_drake(parent):
    """A coupler q1 = 1.5 q0 + 0.2 between two trees, and along one chain."""
    ratio, offset = 1.5, 0.2
    q, v = [0.3, 0.3 * ratio + offset + 0.05], [1.0, 0.0]
    plant, _, joints, builder = pendulums([(-1, 0.0), (parent, 0.4)], [0.2, 0.3], q, v)
    plant.AddCouplerConstraint(joints[1], joints[0], ratio, offset)
    builder.add_constraint_mimic(1, 0, coef0=offset, coef1=ratio)
    expected = drake_simulate(plant, np.array(q), np.array(v))
    assert np.ptp(expected[:, 0]) > 0.5, "they swing"
    assert np.abs(simulate(builder) - expected).max() < TOLERANCE


def test_welded_free_bodies_fall_as_in_drake():
    """Two free bodies welded corner to corner, tumbling.

    Drake gives all six rows of a weld one weight, this solver one to the point and one to the rotation. Both
    are near rigid, so that they differ by 2.5e-4 of the velocity that the constraint takes away in a step,
    which is little where the bodies start with the velocities of one rigid body.
    """
    plant = drake_plant()
    builder = ModelBuilder(gravity=GRAVITY)
    inertia = SpatialInertia.MakeFromCentralInertia(MASS, [0, 0, 0], RotationalInertia(*INERTIA))
    bodies = [plant.AddRigidBody(f"body_{index}", inertia) for index in range(2)]
    for x in (0.0, 1.0):
        builder.add_body(mass=MASS, inertia=np.diag(INERTIA), xform=((x, 0, 0), IDENTITY))
    plant.AddWeldConstraint(bodies[0], RigidTransform([0.5, 0, 0]), bodies[1], RigidTransform([-0.5, 0, 0]))
    builder.add_equality_constraint_weld(0, 1, anchor=(-0.5, 0, 0))
    spin, speed = np.array([0.4, 0.3, 1.0]), np.array([0.2, 0.1, 0.0])
    velocities = [[*spin, *speed], [*spin, *(speed + np.cross(spin, [1.0, 0, 0]))]]
    builder.joint_qd[:] = np.ravel([[*v[3:], *v[:3]] for v in velocities])
    q = np.array([[1, 0, 0, 0, x, 0, 0] for x in (0.0, 1.0)], dtype=float).ravel()
    expected = drake_simulate(plant, q, np.ravel(velocities))
    actual = simulate(builder)
    for start in (0, 7):
        place, turn = expected[:, start + 4 : start + 7], np.roll(expected[:, start : start + 4], -1, axis=1)
        turn /= np.linalg.norm(turn, axis=1, keepdims=True)
        assert np.abs(actual[:, start : start + 3] - place).max() < TOLERANCE
        ours = actual[:, start + 3 : start + 7]
        chord = np.minimum(np.linalg.norm(ours - turn, axis=1), np.linalg.norm(ours + turn, axis=1))
        assert 2.0 * chord.max() < TOLERANCE
