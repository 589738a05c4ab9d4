"""Contacts between branches of one tree, which are left out of the factors of its Hessian."""

import numpy as np

import pluriverse as pv


def _hugger(*, with_tail: bool = False) -> pv.ModelBuilder:
    """A trunk on the ground that presses its two arms of two links against each other.

    A tail of two links has its end on the trunk.
    """
    builder = pv.ModelBuilder()
    trunk = builder.add_link(xform=((0.0, 0.0, 0.1), (0.0, 0.0, 0.0, 1.0)))
    builder.add_shape_box(trunk, hx=0.3, hy=0.2, hz=0.1)
    joints = [builder.add_joint_free(trunk)]
    for side in (-1.0, 1.0):
        upper, fore = builder.add_link(), builder.add_link()
        builder.add_shape_sphere(upper, radius=0.03)
        builder.add_shape_sphere(fore, radius=0.06)
        drive = {"target_ke": 50.0, "target_kd": 2.0}
        shoulder = ((0.35, 0.1 * side, 0.0), (0.0, 0.0, 0.0, 1.0))
        joints.append(
            builder.add_joint_revolute(
                trunk, upper, parent_xform=shoulder, axis=(0.0, 0.0, 1.0), target_pos=-0.5 * side, **drive
            )
        )
        elbow = ((0.2, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        joints.append(
            builder.add_joint_revolute(upper, fore, parent_xform=elbow, axis=(0.0, 1.0, 0.0), **drive)
        )
    if with_tail:
        stem, leaf = builder.add_link(), builder.add_link()
        builder.add_shape_sphere(leaf, radius=0.06)
        hip = ((-0.1, 0.0, 0.15), (0.0, 0.0, 0.0, 1.0))
        knee = ((-0.1, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        joints.append(builder.add_joint_revolute(trunk, stem, parent_xform=hip, axis=(0.0, 1.0, 0.0)))
        joints.append(builder.add_joint_revolute(stem, leaf, parent_xform=knee, axis=(0.0, 1.0, 0.0)))
    builder.add_articulation(joints)
    return builder


def _simulate(*, with_rope: bool) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return velocities of 40 steps, the couplings of trees after these, and iterations in each step.

    The world may hold two boxes on a rope, for which trees are coupled as blocks.
    """
    builder = pv.ModelBuilder()
    world = _hugger()
    if with_rope:
        ends = [world.add_body(xform=((0.0, 0.0, z), (0.0, 0.0, 0.0, 1.0))) for z in (1.0, 2.0)]
        for end in ends:
            world.add_shape_box(end, hx=0.1, hy=0.1, hz=0.1)
        world.add_joint_distance(*ends, max_distance=1.2)
    builder.replicate(world, 1)
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, pv.SolverSAP(model, friction_law="convex"), dt=0.005, threads=1)
    dofs = 10
    velocities, couplings, iterations = [], [], []
    for _ in range(40):
        simulation.step()
        workspace = simulation.solver.workspace
        velocities.append(simulation.state.joint_qd.numpy()[:dofs].copy())
        couplings.append(int(workspace.tree_coupled.numpy()[0]))
        iterations.append(int(workspace.iterations.numpy()[0]))
    return np.array(velocities), np.array(couplings), iterations


def test_contacts_between_branches_are_solved_as_with_a_dense_block():
    """Leaving contacts out of the factors makes the same Newton steps as a dense block for the tree.

    In worlds with ropes, trees are coupled as blocks.
    """
    velocities, couplings, iterations = _simulate(with_rope=False)
    expected, expected_couplings, expected_iterations = _simulate(with_rope=True)
    assert expected_couplings.any()  # the arms do touch
    assert not couplings.any()
    assert iterations == expected_iterations
    np.testing.assert_allclose(velocities, expected, rtol=0, atol=1e-12)


def test_contacts_along_a_branch_go_into_packed_rows_after_iterations_with_blocks():
    """Trees that an earlier iteration had as blocks leave nothing to later ones without."""

    def run(*, had_blocks: bool) -> tuple[np.ndarray, int]:
        builder = pv.ModelBuilder()
        builder.replicate(_hugger(with_tail=True), 1)
        builder.add_ground_plane()
        model = builder.finalize("cpu")
        solver = pv.SolverSAP(model, friction_law="convex")
        simulation = pv.Simulation(model, solver, dt=0.005, threads=1)
        touching = 0
        for _ in range(60):
            if solver.workspace is not None and had_blocks:
                solver.workspace.tree_coupled.fill_(1)
            simulation.step()
            workspace = solver.workspace
            first, count = workspace.contact_start.numpy()[0], workspace.contact_count.numpy()[0]
            found = slice(first, first + count)
            pairs = np.stack([workspace.contact_dof0.numpy()[found], workspace.contact_dof1.numpy()[found]])
            acts = workspace.contact_impulse.numpy()[found, 2] != 0.0
            between = pairs[:, acts & (pairs >= 0).all(axis=0)]
            on_trunk = int((between.min(axis=0, initial=99) <= 5).sum()) if between.size else 0
            touching += int(on_trunk > 0 and between.shape[1] > on_trunk)
        return simulation.state.joint_qd.numpy().copy(), touching

    expected, touching = run(had_blocks=False)
    assert touching > 10  # the tail the trunk, while the arms touch each other
    np.testing.assert_array_equal(run(had_blocks=True)[0], expected)


def test_such_worlds_have_the_same_bits_alone_and_among_others():
    """Worlds of a launch share the scratch of these contacts, which leaves no trace."""

    def run(speeds: list[float], threads: int) -> np.ndarray:
        builder = pv.ModelBuilder()
        builder.replicate(_hugger(), len(speeds))
        builder.add_ground_plane()
        model = builder.finalize("cpu")
        solver = pv.SolverSAP(model, friction_law="convex")
        simulation = pv.Simulation(model, solver, dt=0.005, threads=threads)
        joint_qd = simulation.state.joint_qd.numpy().reshape(len(speeds), -1)
        joint_qd[:, 0] = speeds
        simulation.state.joint_qd.assign(joint_qd.reshape(-1))
        simulation.step(30)
        return simulation.state.joint_qd.numpy().reshape(len(speeds), -1).copy()

    speeds = [0.0, 0.3, -0.5, 1.0, 0.1]
    for threads in (1, 2):
        together = run(speeds, threads)
        for world, speed in enumerate(speeds):
            np.testing.assert_array_equal(together[world], run([speed], 1)[0])
