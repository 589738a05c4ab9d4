"""Springs as terms of SolverSAP: they feel contacts and each other, at any stiffness and time step."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from benchmarks.step_laws import law_violation
from pluriverse.solvers.springs import BodySpringTable, TendonTable

G = 9.81
MASS, SIDE = 2.0, 0.2
ALONG_Z = 1 << 2
ALL_AXES = 0b111111


def integers(*values):
    return wp.array(np.array(values, dtype=np.int32), device="cpu")


def numbers(*values):
    return wp.array(np.array(values, dtype=np.float32), device="cpu")


def poses(*values):
    return wp.array(np.array(values, dtype=np.float32), dtype=wp.transform, device="cpu")


def body_spring(body, target, stiffness, *, damping=0.0, axes=ALL_AXES):
    """Return the table of a spring that pulls the origin of a body to a pose."""
    table = BodySpringTable()
    table.body, table.axes = integers(body), integers(axes)
    table.stiffness, table.damping = numbers(stiffness), numbers(damping)
    table.offset, table.target = poses([0, 0, 0, 0, 0, 0, 1]), poses(target)
    return table


def tendon(model, coefficients, rest, stiffness, *, damping=0.0):
    """Return the table of a tendon over the first joints of the first articulation of a model."""
    count = len(coefficients)
    table = TendonTable()
    table.articulation, table.first_dof = integers(0), integers(0)
    table.dof_count, table.tendon_start = integers(model.joint_dof_count), integers(0, 1)
    table.entry_start, table.entry_dof = integers(0, count), integers(*range(count))
    table.entry_coord, table.coefficient = integers(*range(count)), numbers(*coefficients)
    table.offset, table.rest, table.force = numbers(0.0), numbers(rest), numbers(0.0)
    table.stiffness, table.damping = numbers(stiffness), numbers(damping)
    table.lower, table.upper, table.limit_stiffness = numbers(-np.inf), numbers(np.inf), numbers(0.0)
    return table


def boxes(world_count):
    """Return worlds of a box at rest on the ground."""
    box = pv.ModelBuilder()
    density = pv.ModelBuilder.ShapeConfig(density=MASS / SIDE**3)
    body = box.add_body(xform=((0.0, 0.0, 0.5 * SIDE), (0.0, 0.0, 0.0, 1.0)))
    box.add_shape_box(body, hx=0.5 * SIDE, hy=0.5 * SIDE, hz=0.5 * SIDE, cfg=density)
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    builder.replicate(box, world_count)
    return builder.finalize("cpu")


def contact_wrench(simulation, world, about):
    """Return force and torque about a point of all contacts of a world, on their second shapes."""
    contacts = simulation.contacts
    start = contacts.slot_start.numpy()[world]
    slots = slice(start, start + int(contacts.rigid_contact_count.numpy()[world]))
    force = contacts.rigid_contact_force.numpy()[slots]
    pose = simulation.state.body_q.numpy()
    body = simulation.model.shape_body.numpy()[contacts.rigid_contact_shape1.numpy()[slots]]
    point = contacts.rigid_contact_point1.numpy()[slots].copy()
    for row, owner in enumerate(body):
        if owner >= 0:
            turn = np.array(wp.quat_to_matrix(wp.quat(*map(float, pose[owner, 3:])))).reshape(3, 3)
            point[row] = pose[owner, :3] + turn @ point[row]
    return force.sum(axis=0), np.cross(point - about, force).sum(axis=0)


@pytest.mark.parametrize(("stiffness", "dt"), [(1e3, 0.005), (1e5, 0.02)])
def test_a_spring_presses_with_all_its_force(stiffness, dt):
    """A box at rest, pulled into the ground, presses on it with m g + k e, however stiff the spring is.

    A force that is implicit without knowledge of the contact is weaker by 1 + k h^2 / m: by 21 in the second
    case.
    """
    model = boxes(2)
    depth = 0.01
    with pv.Simulation(model, dt=dt, threads=1) as simulation:
        target = [0.0, 0.0, 0.5 * SIDE - depth, 0.0, 0.0, 0.0, 1.0]
        assert simulation.solver.set_springs(bodies=body_spring(1, target, stiffness, axes=ALONG_Z))
        simulation.step(100)
        height = simulation.state.joint_q.numpy()[[2, 9]]
        for world, pull in ((0, 0.0), (1, stiffness * (height[1] - target[2]))):
            force, _ = contact_wrench(simulation, world, np.zeros(3))
            np.testing.assert_allclose(force[2], MASS * G + pull, rtol=1e-3)
        # As deep as a contact of the default stiffness gives way, not as the spring would.
        assert height[1] > 0.5 * SIDE - 0.2 * depth
        assert simulation.solver.last_converged.numpy().all()


def test_springs_are_solved_in_the_space_of_contacts():
    """A box that a spring drags over the ground takes whole steps, and obeys Coulomb's law to rounding."""
    model = boxes(2)
    solver = pv.SolverSAP(model)
    with pv.Simulation(model, solver, dt=0.005, decimation=1, threads=1) as simulation:
        target = [0.05, 0.02, 0.5 * SIDE, 0.0, 0.0, np.sin(0.2), np.cos(0.2)]
        assert solver.set_springs(bodies=body_spring(1, target, 3e3, damping=30.0))
        fastest = 0.0
        for _ in range(20):
            simulation.step()
            assert solver.last_line_search_iterations.numpy().sum() == 0
            assert law_violation(simulation) < 1e-6
            fastest = max(fastest, np.abs(simulation.state.joint_qd.numpy()[6:8]).max())
        assert fastest > 0.01  # it slides
        assert solver.approximated_step_count.numpy().sum() == 0
        assert solver.unconverged_step_count.numpy().sum() == 0


def test_a_tendon_driven_finger_presses_on_a_cube():
    """At rest tendon, contact and drives balance at both joints of a finger: c T + J^T f - k q = 0."""
    length, coefficients, stiffness, rest, hold = 0.1, (1.0, 0.6), 200.0, -0.4, 3.0
    builder = pv.ModelBuilder(gravity=0.0)
    builder.default_shape_cfg.mu = 0.0  # so that it does not creep along the cube for long
    links = []
    for index in range(2):
        links.append(builder.add_link())
        builder.add_shape_capsule(
            links[-1],
            xform=((0.5 * length, 0.0, 0.0), (0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5))),
            radius=0.01,
            half_height=0.5 * length,
        )
        builder.add_joint_revolute(
            links[-2] if index else -1,
            links[-1],
            parent_xform=((length * index, 0.0, 0.2 * (1 - index)), (0.0, 0.0, 0.0, 1.0)),
            axis="y",
            armature=1e-4,
            target_ke=hold,
            target_kd=0.3,
        )
    builder.add_articulation([0, 1])
    builder.add_shape_box(-1, xform=((0.19, 0.0, 0.3), (0.0, 0.0, 0.0, 1.0)), hx=0.05, hy=0.05, hz=0.05)
    model = builder.finalize("cpu")
    with pv.Simulation(model, dt=0.01, threads=1) as simulation:
        # Turning about y by less than nothing lifts the finger to the cube above it.
        simulation.solver.set_springs(tendons=tendon(model, coefficients, rest, stiffness, damping=2.0))
        simulation.step(300)
        q = simulation.state.joint_q.numpy()
        pull = stiffness * (rest - np.dot(coefficients, q))
        assert pull < -10.0  # it is held far from its rest length
        np.testing.assert_allclose(simulation.state.joint_qd.numpy(), 0.0, atol=1e-3)
        origins = simulation.state.body_q.numpy()[:, :3]
        shape1 = simulation.contacts.rigid_contact_shape1.numpy()[0]
        sign = 1.0 if model.shape_body.numpy()[shape1] >= 0 else -1.0
        for joint in range(2):
            _, torque = contact_wrench(simulation, 0, origins[joint])
            balance = sign * torque[1] + coefficients[joint] * pull - hold * q[joint]
            np.testing.assert_allclose(balance, 0.0, atol=0.005 * abs(pull))


@pytest.mark.parametrize("branches", [False, True], ids=["chain", "branches"])
def test_the_hessian_holds_the_springs(branches):
    """It is A + g c c^T, also where a tendon couples joints of different branches of a tree."""
    builder = pv.ModelBuilder(gravity=0.0)
    root = builder.add_link(mass=1.0, inertia=np.eye(3))
    joints = [builder.add_joint_revolute(-1, root, axis="z")]
    parent = root
    for _ in range(2):
        link = builder.add_link(mass=0.5, inertia=0.1 * np.eye(3))
        frame = ((0.3, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        joints.append(builder.add_joint_revolute(parent, link, axis="y", parent_xform=frame))
        parent = root if branches else link
    builder.add_articulation(joints)
    model = builder.finalize("cpu")
    c, stiffness, damping, dt = np.array([0.5, 1.0, -2.0]), 40.0, 3.0, 0.01
    with pv.Simulation(model, dt=dt, threads=1, record=False) as simulation:
        solver = simulation.solver
        solver.set_springs(tendons=tendon(model, c, 0.2, stiffness, damping=damping))
        simulation.step()
        problem = solver.convex_problem(0, dt)
        a, gain = problem.dynamics_matrix, dt * (damping + dt * stiffness)
        np.testing.assert_allclose(problem.hessian, a + gain * np.outer(c, c), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(problem.gradient, 0.0, atol=1e-8)
        # From rest: (A + g c c^T) v = h k L0 c.
        expected = np.linalg.solve(problem.hessian, dt * stiffness * 0.2 * c)
        np.testing.assert_allclose(simulation.state.joint_qd.numpy(), expected, rtol=1e-4, atol=1e-7)


def test_a_world_with_a_spring_does_not_depend_on_others():
    """The pulled box moves with the same bits alone, among others, and stepped by hand."""
    target = [0.05, -0.02, 0.3, 0.0, 0.0, 0.6, 0.8]
    results = []
    for world_count, place, record in ((1, 0, True), (3, 2, True), (3, 1, False)):
        with pv.Simulation(boxes(world_count), dt=0.01, threads=1, record=record) as simulation:
            table = body_spring(place, target, 300.0, damping=10.0)
            simulation.solver.set_springs(bodies=table)
            simulation.step(30)
            results.append(simulation.state.joint_q.numpy()[7 * place : 7 * place + 7].tobytes())
    assert len(set(results)) == 1


def test_springs_of_another_kind_stay():
    """Springs on bodies, given later, leave tendons as they are; a spring at rest pulls to its target."""
    builder = pv.ModelBuilder(gravity=0.0)
    joints = []
    for _ in range(2):
        link = builder.add_link(mass=1.0, inertia=np.eye(3))
        joints.append(builder.add_joint_prismatic(-1, link, axis="x"))
    builder.add_articulation(joints)
    model = builder.finalize("cpu")
    with pv.Simulation(model, dt=0.01, threads=1) as simulation:
        solver = simulation.solver
        solver.set_springs(tendons=tendon(model, (1.0, -1.0), 0.5, 1e5, damping=1e3))
        solver.set_springs(bodies=body_spring(0, [0.3, 0, 0, 0, 0, 0, 1], 50.0, damping=20.0, axes=1))
        simulation.step(600)
        np.testing.assert_allclose(simulation.state.joint_q.numpy(), [0.3, -0.2], atol=1e-3)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("body", integers(7), r"body\[0\] is 7, but must be in 0..1"),
        ("stiffness", numbers(1.0, 2.0), "stiffness has 2 entries, but must have 1: one for each spring"),
        ("stiffness", numbers(-1.0), r"stiffness\[0\] is -1.0, but must be finite and >= 0"),
        ("target", poses([0, 0, np.nan, 0, 0, 0, 1]), r"target\[0\] is .*nan.* but must be a number"),
        ("axes", integers(64), r"axes\[0\] is 64, but must be in 0..63"),
    ],
)
def test_a_wrong_table_of_body_springs_is_refused(name, value, message):
    """A table that does not fit says which entry is wrong, and the springs before stay."""
    with pv.Simulation(boxes(2), dt=0.01, threads=1, record=False) as simulation:
        table = body_spring(1, [0, 0, 0.3, 0, 0, 0, 1], 10.0)
        setattr(table, name, value)
        with pytest.raises(ValueError, match=message):
            simulation.solver.set_springs(bodies=table)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("entry_dof", integers(0, 2), r"entry_dof\[1\] is 2, but must be in 0..1"),
        ("entry_coord", integers(0, -1), r"entry_coord\[1\] is -1, but must be in 0..1"),
        ("entry_start", integers(0, 3), "entry_dof has 2 entries, but must have 3"),
        ("tendon_start", integers(1, 1), r"tendon_start is \[1, 1\], but must begin at 0"),
        ("dof_count", integers(3), r"dof_count\[0\] is 3 from degree of freedom 0, but the model has 2"),
        ("rest", numbers(np.nan), r"rest\[0\] is nan, but must be a number"),
    ],
)
def test_a_wrong_table_of_tendons_is_refused(name, value, message):
    """The same for tendons; limits may be infinite."""
    builder = pv.ModelBuilder(gravity=0.0)
    links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(2)]
    builder.add_articulation([builder.add_joint_prismatic(-1, link, axis="x") for link in links])
    model = builder.finalize("cpu")
    with pv.Simulation(model, dt=0.01, threads=1, record=False) as simulation:
        table = tendon(model, (1.0, -1.0), 0.5, 1e3)
        assert simulation.solver.set_springs(tendons=table)
        setattr(table, name, value)
        with pytest.raises(ValueError, match=message):
            simulation.solver.set_springs(tendons=table)
