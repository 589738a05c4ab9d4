"""Few contacts solved in their own space: which worlds have room for it."""

import numpy as np

import pluriverse as pv
from pluriverse.solvers.sap.workspace import SPACE_DOFS_MAX


def test_worlds_too_large_for_the_space_of_their_contacts_rest_like_others():
    """A model in which no world is small enough has no scratch for it, and must not write any.

    Boxes far apart rest as deep in the ground as one alone, whether their world is small or large.
    """
    heights = []
    for count in (1, SPACE_DOFS_MAX // 6 + 2):
        builder = pv.ModelBuilder()
        builder.add_ground_plane()
        for index in range(count):
            body = builder.add_body(xform=((2.0 * index, 0.0, 0.1), (0.0, 0.0, 0.0, 1.0)))
            builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
        simulation = pv.Simulation(builder.finalize("cpu"), dt=0.005, threads=1)
        simulation.step(100)
        heights.append(simulation.state.body_q.numpy().reshape(-1, 7)[:, 2])
    alone, many = heights
    np.testing.assert_allclose(many, np.full(len(many), alone[0]), atol=1e-6)


def _walker(*, with_drives: bool = True, studs: int = 0) -> pv.ModelBuilder:
    """A trunk on four legs, with drives or limp, which slides where it is pushed.

    There are so many spheres in its belly, 20 mm above what it lies on.
    """
    builder = pv.ModelBuilder()
    trunk = builder.add_link(xform=((0.0, 0.0, 0.5), (0.0, 0.0, 0.0, 1.0)))
    builder.add_shape_box(trunk, hx=0.3, hy=0.2, hz=0.1)
    weightless = pv.ModelBuilder.ShapeConfig(density=0.0)
    for index in range(studs):
        place = (0.05 * (index % 10) - 0.225, 0.08 * (index // 10) - 0.12, -0.06)
        builder.add_shape_sphere(trunk, xform=(place, (0.0, 0.0, 0.0, 1.0)), radius=0.02, cfg=weightless)
    joints = [builder.add_joint_free(trunk)]
    drive = {"target_ke": 200.0, "target_kd": 4.0, "effort_limit": 80.0} if with_drives else {"damping": 0.5}
    up, down = ((0.0, 0.0, 0.15), (0.0, 0.0, 0.0, 1.0)), ((0.0, 0.0, -0.15), (0.0, 0.0, 0.0, 1.0))
    for x in (-0.3, 0.3):
        for y in (-0.25, 0.25):
            thigh, shank = builder.add_link(), builder.add_link()
            builder.add_shape_capsule(thigh, radius=0.03, half_height=0.15)
            builder.add_shape_sphere(shank, radius=0.04)
            hip = ((x, y, 0.0), (0.0, 0.0, 0.0, 1.0))
            joints.append(
                builder.add_joint_revolute(
                    trunk, thigh, parent_xform=hip, child_xform=up, axis=(0.0, 1.0, 0.0), **drive
                )
            )
            joints.append(
                builder.add_joint_revolute(
                    thigh, shank, parent_xform=down, child_xform=up, axis=(1.0, 0.0, 0.0), **drive
                )
            )
    builder.add_articulation(joints)
    return builder


def test_every_step_of_pushed_walkers_converges():
    """Near the minimum the cost along a direction is rounding, which must not keep steps from being taken.

    Of these 20,480 steps nine ended at the limit of iterations, after a thousand trials of the line search,
    when a slope within the rounding of contact velocities sent it back.
    """
    worlds = pv.ModelBuilder()
    worlds.replicate(_walker(), 512)
    worlds.add_ground_plane()
    model = worlds.finalize("cpu")
    simulation = pv.Simulation(model, dt=0.01, threads=1)
    rng = np.random.default_rng(1)
    simulation.step(60)
    trials = 0
    for step in range(40):
        velocities = simulation.state.joint_qd.numpy().reshape(512, -1).copy()
        if step % 4 == 0:
            velocities[:, :2] += rng.uniform(-1.0, 1.0, (512, 2))
            simulation.state.joint_qd.assign(velocities.ravel())
            pv.eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
        targets = np.zeros(velocities.shape, np.float32)
        targets[:, 6:] = rng.normal(0.0, 0.3, (512, 8))
        simulation.control.joint_target_pos.assign(targets.ravel())
        simulation.step()
        trials = max(trials, int(simulation.solver.last_line_search_iterations.numpy().max()))
    assert simulation.solver.unconverged_step_count.numpy().sum() == 0
    assert trials < 200


def _plank(hovering: int) -> pv.ModelBuilder:
    """A plank on three feet, with so many more spheres 1 mm above the ground."""
    builder = pv.ModelBuilder()
    body = builder.add_body(xform=((0.0, 0.0, 0.1), (0.0, 0.0, 0.0, 1.0)))
    builder.add_shape_box(body, hx=0.3, hy=0.2, hz=0.02)
    weightless = pv.ModelBuilder.ShapeConfig(density=0.0)
    for x, y in ((0.25, 0.0), (-0.25, 0.15), (-0.25, -0.15)):
        builder.add_shape_sphere(
            body, xform=((x, y, -0.07), (0.0, 0.0, 0.0, 1.0)), radius=0.03, cfg=weightless
        )
    for index in range(hovering):
        x, y = 0.05 * (index % 6) - 0.15, 0.05 * (index // 6) - 0.1
        builder.add_shape_sphere(
            body, xform=((x, y, -0.069), (0.0, 0.0, 0.0, 1.0)), radius=0.03, cfg=weightless
        )
    builder.add_ground_plane()
    return builder


def test_contacts_that_do_not_act_change_nothing():
    """A plank that slides on three feet moves alike, and takes as many iterations, if 60 more are near."""
    results = []
    for hovering in (0, 21, 60):
        model = _plank(hovering).finalize("cpu")
        solver = pv.SolverSAP(model, friction_law="coulomb")
        simulation = pv.Simulation(model, solver=solver, dt=0.005, decimation=1, threads=1)
        velocity = simulation.state.joint_qd.numpy()
        velocity[:2] = (1.0, 0.3)
        simulation.state.joint_qd.assign(velocity)
        pv.eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
        for _ in range(10):
            simulation.step()
            assert solver.last_solve_iterations.numpy()[0] == 1
        assert solver.last_contact_count.numpy()[0] == 3 + hovering
        results.append(simulation.state.joint_qd.numpy())
    alone = results[0]
    for among in results[1:]:
        np.testing.assert_allclose(among, alone, atol=1e-6)
    assert alone[0] < 0.99


def test_few_contacts_are_solved_at_once_beside_many_degrees_of_freedom():
    """A plank that slides on three feet takes one iteration, with twenty balls in the air."""
    speeds = []
    for balls in (0, 20):
        builder = _plank(0)
        for index in range(balls):
            ball = builder.add_body(xform=((0.5 * index, 0.0, 10.0), (0.0, 0.0, 0.0, 1.0)))
            builder.add_shape_sphere(ball, radius=0.1)
        model = builder.finalize("cpu")
        solver = pv.SolverSAP(model, friction_law="coulomb")
        simulation = pv.Simulation(model, solver=solver, dt=0.005, decimation=1, threads=1)
        velocity = simulation.state.joint_qd.numpy()
        velocity[:2] = (1.0, 0.3)
        simulation.state.joint_qd.assign(velocity)
        pv.eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
        for _ in range(10):
            simulation.step()
            assert solver.last_solve_iterations.numpy()[0] == 1
        speeds.append(simulation.state.joint_qd.numpy()[:6])
    np.testing.assert_allclose(speeds[1], speeds[0], atol=1e-6)


def test_sliding_robots_move_as_with_all_contacts():
    """Limp walkers that slide on their bellies and legs move alike, if contacts that cannot act are left out.

    Some forty contacts are near each of them. The same ones act, in the same order, whether the others are
    there or not.
    """
    worlds = pv.ModelBuilder()
    worlds.replicate(_walker(with_drives=False, studs=30), 4)
    worlds.add_ground_plane()
    model = worlds.finalize("cpu")
    paths = []
    for cull in (True, False):
        simulation = pv.Simulation(model, dt=0.005, threads=1, cull_contacts=cull)
        positions = simulation.state.joint_q.numpy().reshape(4, -1)
        positions[:, 2] = 0.11
        positions[:, 7::2] = 0.5 * np.pi  # legs along the ground
        simulation.state.joint_q.assign(positions.ravel())
        velocities = simulation.state.joint_qd.numpy().reshape(4, -1)
        velocities[:, 0] += np.array([1.5, 1.0, 2.0, 3.0])
        velocities[:, 1] += np.array([0.0, -2.0, 0.5, 1.0])
        simulation.state.joint_qd.assign(velocities.ravel())
        pv.eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
        path, listed = [], []
        for _ in range(40):
            simulation.step()
            listed.append(simulation.solver.last_contact_count.numpy().copy())
            path.append(simulation.state.joint_qd.numpy().reshape(4, -1).copy())
        paths.append(np.array(path))
        assert simulation.solver.unconverged_step_count.numpy().sum() == 0
    culled, full = paths
    assert np.max(listed, axis=0).min() > 24
    assert np.hypot(full[20, :, 0], full[20, :, 1]).min() > 0.05  # they slide
    np.testing.assert_allclose(culled, full, rtol=1e-5, atol=1e-5)


def test_contacts_left_out_at_first_are_found():
    """A rod that falls on one end is stopped by the other end too, though that one rises until then.

    At the velocities before the step, and without impulses, the second one does not touch.
    """
    builder = pv.ModelBuilder()
    body = builder.add_body(xform=((0.0, 0.0, 0.03), (0.0, 0.0, 0.0, 1.0)))
    builder.add_shape_capsule(
        body, radius=0.03, half_height=0.3, xform=((0.0, 0.0, 0.0), (0.0, 0.70710678, 0.0, 0.70710678))
    )
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    speeds = []
    for law in ("coulomb", "convex"):
        solver = pv.SolverSAP(model, friction_law=law)
        simulation = pv.Simulation(model, solver=solver, dt=0.005, decimation=1, threads=1)
        velocity = simulation.state.joint_qd.numpy()
        velocity[2], velocity[4] = -0.3, 2.0  # one end at -0.9 m/s, the other at 0.3 m/s
        simulation.state.joint_qd.assign(velocity)
        pv.eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
        simulation.step()
        assert solver.last_converged.numpy().all()
        impulses = solver.workspace.contact_impulse.numpy()[:2, 2]
        speeds.append((np.sort(impulses), simulation.state.joint_qd.numpy()))
    np.testing.assert_allclose(speeds[0][0], speeds[1][0], rtol=1e-3, atol=1e-9)
    assert np.all(speeds[0][0] > 0.0)


def test_contacts_that_free_motion_closes_are_solved_with_the_first():
    """One of two feet under a wide board hits the ground, the other one rises from it at 1 mm/s.

    Gravity alone would close both, so both are solved at once, though the blow to one lifts the other.
    """
    builder = pv.ModelBuilder()
    body = builder.add_body(xform=((0.0, 0.0, 0.1), (0.0, 0.0, 0.0, 1.0)))
    builder.add_shape_box(body, hx=0.3, hy=0.2, hz=0.02)
    weightless = pv.ModelBuilder.ShapeConfig(density=0.0)
    for x in (0.05, -0.05):
        builder.add_shape_sphere(
            body, xform=((x, 0.0, -0.07), (0.0, 0.0, 0.0, 1.0)), radius=0.03, cfg=weightless
        )
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    solver = pv.SolverSAP(model, friction_law="coulomb")
    simulation = pv.Simulation(model, solver=solver, dt=0.005, decimation=1, threads=1)
    velocity = simulation.state.joint_qd.numpy()
    velocity[2], velocity[4] = -0.1495, 3.01  # the feet at -0.3 m/s and at 1 mm/s
    simulation.state.joint_qd.assign(velocity)
    pv.eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
    simulation.prepare()
    solver.workspace.space_slot.fill_(-1)
    simulation.step()
    assert solver.last_converged.numpy().all()
    listed = solver.workspace.space_slot.numpy()
    impulses = solver.workspace.contact_impulse.numpy()[:2, 2]
    assert np.count_nonzero(impulses > 0.0) == 1
    assert sorted(listed[listed >= 0]) == [0, 1]


def test_scratch_has_the_size_of_the_contacts_and_degrees_of_freedom():
    """A ball that can touch the ground in one point has no scratch for sixteen contacts."""
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    model = builder.finalize("cpu")
    solver = pv.SolverSAP(model)
    simulation = pv.Simulation(model, solver=solver, dt=0.005, threads=1)
    simulation.step()
    workspace = solver.workspace
    count = int(workspace.contact_capacity.max())
    assert workspace.space_slot.size == count < 16
    padded = 8 * -(-3 * count // 8)  # rows of whole vector registers
    assert workspace.space_basis.size == padded * 6
    assert workspace.space_mobility.size == 3 * count * padded
