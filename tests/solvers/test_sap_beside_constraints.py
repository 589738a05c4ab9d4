"""Worlds beside one with constraints, for which Newton's method is another kernel, keep their bits."""

import numpy as np
import pytest

import pluriverse as pv

STEP_COUNT = 140


def stack():
    """Three cubes on each other: twelve contacts, of which eight are between two bodies that move."""
    world = pv.ModelBuilder()
    world.add_ground_plane()
    for index in range(3):
        body = world.add_body(xform=((0.01 * index, 0.0, 0.11 + 0.21 * index), (0.0, 0.0, 0.0, 1.0)))
        world.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
        world.joint_qd[-6] = 0.5 * index
    return world


def heap():
    """Cubes turned at random, which fall onto each other: their iterations begin anew from sweeps."""
    world = pv.ModelBuilder()
    world.add_ground_plane()
    rng = np.random.default_rng(1)
    for index in range(27):
        turn = rng.normal(size=4)
        place = 0.35 * np.array([index % 3, index // 3 % 3, index // 9]) + [0.0, 0.0, 0.2]
        body = world.add_body(xform=(tuple(place), tuple(turn / np.linalg.norm(turn))))
        world.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    return world


def hugger():
    """A trunk on the ground whose two arms press against each other: a contact between two branches."""
    world = pv.ModelBuilder()
    world.add_ground_plane()
    trunk = world.add_link(xform=((0.0, 0.0, 0.1), (0.0, 0.0, 0.0, 1.0)))
    world.add_shape_box(trunk, hx=0.3, hy=0.2, hz=0.1)
    joints = [world.add_joint_free(trunk)]
    for side in (-1.0, 1.0):
        arm = world.add_link()
        world.add_shape_sphere(arm, xform=((0.2, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)), radius=0.06)
        shoulder = ((0.35, 0.1 * side, 0.0), (0.0, 0.0, 0.0, 1.0))
        drive = {"target_ke": 50.0, "target_kd": 2.0, "target_pos": -0.5 * side}
        joints.append(
            world.add_joint_revolute(trunk, arm, parent_xform=shoulder, axis=(0.0, 0.0, 1.0), **drive)
        )
    world.add_articulation(joints)
    return world


def welded():
    """Two cubes that are welded to each other."""
    world = pv.ModelBuilder()
    ends = [world.add_body(xform=((0.0, 0.0, z), (0.0, 0.0, 0.0, 1.0))) for z in (1.0, 2.0)]
    for end in ends:
        world.add_shape_box(end, hx=0.1, hy=0.1, hz=0.1)
    world.add_equality_constraint_weld(*ends)
    return world


def trajectory(scene, *, is_alone, friction_law):
    """Return `joint_q` of the scene after each step, and the largest number of iterations."""
    builder = pv.ModelBuilder()
    builder.add_world(scene())
    coord_count = builder.joint_coord_count
    if not is_alone:
        builder.add_world(welded())
    model = builder.finalize("cpu")
    solver = pv.SolverSAP(model, friction_law=friction_law)
    simulation = pv.Simulation(model, solver, dt=0.005, threads=1)
    positions, most = [], 0
    for _ in range(STEP_COUNT):
        simulation.step()
        positions.append(simulation.state.joint_q.numpy()[:coord_count].copy())
        most = max(most, int(solver.last_solve_iterations.numpy()[0]))
    return np.array(positions), most


@pytest.mark.parametrize(
    ("scene", "friction_law", "iteration_count"),
    [(stack, "coulomb", 1), (heap, "coulomb", 5), (hugger, "convex", 2)],
)
def test_worlds_beside_one_with_constraints_have_the_bits_they_have_alone(
    scene, friction_law, iteration_count
):
    alone, most = trajectory(scene, is_alone=True, friction_law=friction_law)
    beside, _ = trajectory(scene, is_alone=False, friction_law=friction_law)
    np.testing.assert_array_equal(beside, alone)
    assert most >= iteration_count
