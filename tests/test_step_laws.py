"""The laws of a step, which `benchmarks.motion` puts velocities and impulses into, as closed forms."""

import dataclasses

import numpy as np
import pytest

import pluriverse as pv
from benchmarks.step_laws import law_violation, step_laws

# Rounding of the solver: 1e-16 times 4e3 for near-rigid laws and the condition of A.
EXACT = 1e-9
DT = 0.005


def slide_box(law: str, speed: float = 2.0) -> pv.Simulation:
    """Return the step in which a box that rests on the ground has been set to a speed."""
    config, builder = pv.ShapeConfig(mu=1.0, density=1000.0), pv.ModelBuilder()
    body = builder.add_body(xform=((0.0, 0.0, 0.1), (0.0, 0.0, 0.0, 1.0)))
    builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=config)
    builder.add_ground_plane(cfg=config)
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, pv.SolverSAP(model, friction_law=law), dt=DT, decimation=1, threads=1)
    simulation.state.joint_qd.assign(np.array([speed, 0, 0, 0, 0, 0], dtype=np.float32))
    pv.eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
    simulation.step()
    return simulation


def test_a_box_that_slides_obeys_the_laws():
    """Impulses of Coulomb's law stop the fall, and friction of mu h g slows it."""
    simulation = slide_box("coulomb")
    assert law_violation(simulation, simulation) < EXACT
    assert simulation.solver.approximated_step_count.numpy()[0] == 0


def test_a_box_that_parts_by_convex_friction_is_off_coulombs_law():
    """It opens at mu v of what it slides at, and a contact alone cannot stop more than its own share."""
    laws = step_laws(slide_box("convex"), 0)
    opening = (laws.jacobian @ laws.velocity)[:, 2]
    assert opening.max() > 0.5
    assert laws.momentum_violation() < EXACT
    assert 0.1 < laws.contact_violation() <= opening.max() * 1.1


def test_velocities_that_are_off_by_so_much_are_found():
    """Momenta differ by A e, and contacts that sink faster by e are off their law by e."""
    laws = step_laws(slide_box("coulomb"), 0)
    sinking = np.tile([0.0, 0.0, -1e-3], len(laws.impulse))
    fall = np.linalg.lstsq(laws.jacobian.reshape(-1, 6), sinking)[0]
    moved = dataclasses.replace(laws, velocity=laws.velocity + fall)
    np.testing.assert_allclose(moved.momentum_violation(), np.abs(fall).max(), rtol=1e-6)
    np.testing.assert_allclose(moved.contact_violation(), 1e-3, rtol=1e-6)


def test_a_contact_that_was_left_out_is_found():
    """What is missing closes at the velocity of the fall that it should stop."""
    laws = step_laws(slide_box("coulomb"), 0)
    none = dataclasses.replace(
        laws,
        velocity=laws.free,
        impulse=laws.impulse[:0],
        jacobian=laws.jacobian[:0],
        place=laws.place[:0],
    )
    assert laws.omission_violation(laws) == 0.0
    assert none.momentum_violation() < EXACT
    np.testing.assert_allclose(none.omission_violation(laws), 9.81 * DT, rtol=1e-3)


@pytest.fixture(scope="module")
def joints() -> pv.Simulation:
    """Return a step of hinges: with drives within and at their limit, limits, friction, and coupled ones."""
    builder = pv.ModelBuilder()
    kinds = (
        {"target_pos": 0.5, "target_ke": 100.0, "target_kd": 10.0},
        {"target_pos": 5.0, "target_ke": 1000.0, "target_kd": 10.0, "effort_limit": 2.0},
        {"limit_lower": 0.01, "limit_upper": 1.0},
        {"limit_lower": -1.0, "limit_upper": -0.01},
        {"friction": 0.2},
        {"friction": 20.0},
        {"velocity_limit": 0.5},
        {},
        {},
    )
    rows = []
    for kind in kinds:
        link = builder.add_link(mass=1.0, inertia=np.eye(3) * 0.05)
        rows.append(builder.add_joint_revolute(-1, link, axis=(0.0, 0.0, 1.0), **kind))
        builder.add_articulation(rows[-1:])
    builder.add_equality_constraint_joint(rows[-2], rows[-1], polycoef=[0.0, 2.0, 0.0, 0.0, 0.0])
    model = builder.finalize("cpu")
    solver = pv.SolverSAP(model, enforce_velocity_limit=True)
    simulation = pv.Simulation(model, solver, dt=DT, decimation=1, threads=1)
    speeds = np.array([0.0, 0.0, -0.1, 0.1, 1.0, 1.0, 3.0, 1.0, 0.0], dtype=np.float32)
    simulation.state.joint_qd.assign(speeds)
    simulation.step()
    return simulation


def test_joints_obey_their_laws(joints):
    """Impulses of all terms balance the momenta, each on its own degree of freedom."""
    laws = step_laws(joints, 0)
    assert np.abs(laws.joint_impulses()[0]).min() > 1e-4  # every term acts
    assert law_violation(joints) < EXACT


@pytest.mark.parametrize("dof", range(9))
def test_a_joint_that_is_off_its_law_is_found(joints, dof):
    """Near the solution the laws are linear, and the violation is the distance to it."""
    laws = step_laws(joints, 0)
    off = np.zeros(9)
    off[dof] = 1e-6
    moved = dataclasses.replace(laws, velocity=laws.velocity + off)
    np.testing.assert_allclose(moved.momentum_violation(), 1e-6, rtol=1e-3)
