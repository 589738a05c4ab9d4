"""Contact forces, status and coupling of SolverSAP: what can be read after a step is true."""

import numpy as np
import pytest
import warp as wp

from pluriverse import CollisionPipeline, Contacts, ModelBuilder, SolverSAP

DT = 0.005
SIDE = 0.2
DENSITY = 1000.0
WEIGHT = DENSITY * SIDE**3 * 9.81
# The worlds come to rest through their dissipation only; 0.75 s bring forces within a thousandth of a weight.
STEP_COUNT = 150


def add_box(builder, x, y, z):
    body = builder.add_body(xform=wp.transform((x, y, z), wp.quat_identity()))
    builder.add_shape_box(body, hx=SIDE / 2, hy=SIDE / 2, hz=SIDE / 2)


def new_builder():
    builder = ModelBuilder()
    shape = builder.default_shape_cfg
    shape.density, shape.ke, shape.tau, shape.mu, shape.gap = DENSITY, 1e5, 0.01, 0.5, 0.002
    return builder


@pytest.fixture(scope="module")
def resting():
    """Worlds: one box; a stack of three; two boxes apart."""
    scene = new_builder()
    scene.add_ground_plane()
    one = new_builder()
    add_box(one, 0.0, 0.0, SIDE / 2)
    stack = new_builder()
    for level in range(3):
        add_box(stack, 0.01 * level, 0.0, SIDE * (level + 0.5))
    apart = new_builder()
    add_box(apart, -1.0, 0.0, SIDE / 2)
    add_box(apart, 1.0, 0.0, SIDE / 2)
    for world in (one, stack, apart):
        scene.add_world(world)
    model = scene.finalize(device="cpu")
    pipeline, solver = CollisionPipeline(model), SolverSAP(model, line_search_variant="exact_root")
    contacts, states = pipeline.contacts(), [model.state(), model.state()]
    for _ in range(STEP_COUNT):
        pipeline.collide(states[0], contacts)
        solver.step(states[0], states[1], None, contacts, DT)
        states.reverse()
    return model, solver, contacts, states


def test_force_on_each_body_balances_its_weight(resting):
    """At rest the contact force on a body is its weight, and the torque about its centre of mass vanishes."""
    _, solver, contacts, _ = resting
    wrench = solver.body_contact_force(contacts).numpy()
    np.testing.assert_allclose(wrench[:, 2], WEIGHT, rtol=1e-3)
    np.testing.assert_allclose(wrench[:, :2], 0.0, atol=1e-3 * WEIGHT)
    np.testing.assert_allclose(wrench[:, 3:], 0.0, atol=1e-3 * WEIGHT * SIDE)


def test_force_per_contact_adds_up_to_what_lies_above(resting):
    """The ground carries all boxes of a stack, the lowest box the two above it."""
    model, _, contacts, _ = resting
    start = contacts.rigid_contact_start.numpy()
    count = contacts.rigid_contact_count.numpy()
    slots = slice(start[1], start[1] + count[1])
    force = contacts.rigid_contact_force.numpy()[slots, 2]
    body0 = model.shape_body.numpy()[contacts.rigid_contact_shape0.numpy()[slots]]
    body1 = model.shape_body.numpy()[contacts.rigid_contact_shape1.numpy()[slots]]
    ground = (body0 < 0) | (body1 < 0)
    assert force[ground].sum() == pytest.approx(3 * WEIGHT, rel=1e-3)
    first = int(model.body_world_start.numpy()[1])
    above = np.minimum(body0, body1)[~ground] == first
    assert np.abs(force[~ground][above].sum()) == pytest.approx(2 * WEIGHT, rel=1e-3)


def test_status_is_true(resting):
    """Contact counts, truncation, convergence and frozen flags say what happened."""
    _, solver, contacts, _ = resting
    np.testing.assert_array_equal(solver.last_contact_count.numpy(), contacts.rigid_contact_count.numpy())
    np.testing.assert_array_equal(solver.last_contact_count.numpy(), [4, 12, 8])
    assert not solver.last_truncated_contact_count.numpy().any()
    assert solver.last_converged.numpy().all()
    assert not solver.unconverged_step_count.numpy().any()
    assert not solver.world_frozen.numpy().any()


def test_too_few_iterations_are_counted_and_reported():
    """A solve that is cut off says so, per world, once; a world at rest in free fall does not."""
    builder = new_builder()
    builder.add_ground_plane()
    box, flying = new_builder(), new_builder()
    add_box(box, 0.0, 0.0, SIDE / 2 - 0.001)
    add_box(flying, 0.0, 0.0, 10.0)
    builder.add_world(box)
    builder.add_world(flying)
    model = builder.finalize(device="cpu")
    pipeline, solver = CollisionPipeline(model), SolverSAP(model, max_iterations=0)
    contacts, states = pipeline.contacts(), [model.state(), model.state()]
    pipeline.collide(states[0], contacts)
    solver.step(*states, None, contacts, DT)
    np.testing.assert_array_equal(solver.last_converged.numpy(), [0, 1])
    np.testing.assert_array_equal(solver.unconverged_step_count.numpy(), [1, 0])
    with pytest.warns(UserWarning, match=r"world 0: 1 step\(s\) ended before") as caught:
        solver.report()
    assert len(caught) == 1


def test_reading_forces_before_a_step_is_refused(resting):
    """There is nothing to read yet, and the message says what to do."""
    model, _, contacts, _ = resting
    with pytest.raises(RuntimeError, match="Call step"):
        SolverSAP(model).body_contact_force(contacts)


def test_an_array_of_another_shape_is_refused(resting):
    """Kernels would write beyond its end."""
    model, solver, contacts, _ = resting
    device, count = model.device, model.body_count
    for out in (wp.zeros(count + 1, dtype=wp.spatial_vector, device=device), wp.zeros(count, device=device)):
        with pytest.raises(ValueError, match=r"SolverSAP.body_contact_force: out is \w+ of shape"):
            solver.body_contact_force(contacts, out=out)


def test_a_limit_below_the_buffer_leaves_out_the_shallowest_contacts():
    """Of two deep and two shallow corners of a tilted box, a solver limited to two takes the deep ones."""
    builder = new_builder()
    builder.add_ground_plane()
    world = new_builder()
    tilt = wp.quat_from_axis_angle(wp.vec3(0.0, 1.0, 0.0), 0.004)
    body = world.add_body(xform=wp.transform((0.0, 0.0, SIDE / 2 - 0.0008), tilt))
    world.add_shape_box(body, hx=SIDE / 2, hy=SIDE / 2, hz=SIDE / 2)
    builder.add_world(world)
    model = builder.finalize(device="cpu")
    pipeline, solver = CollisionPipeline(model), SolverSAP(model, max_rigid_contact=2)
    contacts, states = pipeline.contacts(), [model.state(), model.state()]
    pipeline.collide(states[0], contacts)
    solver.step(*states, None, contacts, DT)
    assert solver.last_contact_count.numpy()[0] == 2
    assert solver.last_truncated_contact_count.numpy()[0] == 2
    gap = solver.workspace.contact_gap.numpy()[:4]
    pushed = contacts.rigid_contact_force.numpy()[:4, 2] > 0.0
    np.testing.assert_array_equal(pushed, gap < np.median(gap))
    with pytest.warns(UserWarning, match="World 0 needs 4 and has 2"):
        solver.report()


def test_a_contact_between_welded_bodies_changes_nothing():
    """Bodies welded together cannot part: a contact forced upon them leaves every bit of the step alone."""
    builder = new_builder()
    box = builder.add_link(mass=1.0, inertia=np.eye(3) * 0.01)
    lid = builder.add_link(mass=0.5, inertia=np.eye(3) * 0.01)
    joints = [builder.add_joint_free(child=box), builder.add_joint_fixed(parent=box, child=lid)]
    builder.add_articulation(joints)
    builder.joint_qd[:] = [0.1, 0.2, 0.3, 1.0, 2.0, 3.0]
    for body in (box, lid):
        builder.add_shape_sphere(body, radius=0.1)
    model = builder.finalize(device="cpu")
    outcomes = []
    for count in (0, 1):
        contacts = Contacts(model, 1)
        contacts.rigid_contact_shape0.fill_(0)
        contacts.rigid_contact_shape1.fill_(1)
        contacts.rigid_contact_normal.fill_(wp.vec3(0.0, 0.0, 1.0))
        contacts.rigid_contact_point0.fill_(wp.vec3(0.0, 0.0, 0.1))
        contacts.rigid_contact_count.fill_(count)
        contacts.rigid_contact_found.fill_(count)
        solver, state = SolverSAP(model, contact_preset_variant="drake"), model.state()
        solver.step(model.state(), state, None, contacts, DT)
        assert solver.last_converged.numpy().all()
        outcomes.append(state.joint_qd.numpy())
    assert outcomes[0].tobytes() == outcomes[1].tobytes()
