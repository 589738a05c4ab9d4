"""Contacts that are left out since they cannot act, and those that turn out to act all the same."""

import numpy as np
import pytest

import pluriverse as pv

DT = 0.005


def add_ball(world, position, velocity=(0.0, 0.0, 0.0), radius=0.05, density=1000.0, **material):
    """Add a ball that moves; return its body."""
    body = world.add_body(xform=(*position, 0.0, 0.0, 0.0, 1.0))
    world.add_shape_sphere(body, radius=radius, cfg=pv.ShapeConfig(density=density, ke=1.0e5, **material))
    world.joint_qd[-6:-3] = list(velocity)
    return body


def cradle():
    """A heavy ball at 20 m/s strikes a light one, which reaches a third, 4 cm away, within the same step."""
    world = pv.ModelBuilder(gravity=0.0)
    add_ball(world, (0.0, 0.0, 0.0), (20.0, 0.0, 0.0), density=8000.0)
    add_ball(world, (0.101, 0.0, 0.0), density=100.0)
    add_ball(world, (0.241, 0.0, 0.0), density=1000.0)
    return world


def falling_boxes():
    """Boxes that land on the ground and on each other, tilted, with margins."""
    world = pv.ModelBuilder()
    world.add_ground_plane()
    for index in range(3):
        turn = 0.1 * (index - 1)
        body = world.add_body(xform=(0.02 * index, 0.0, 0.15 + 0.25 * index, turn, 0.0, 0.0, 1.0))
        cfg = pv.ShapeConfig(ke=1.0e5, margin=0.002 * index)
        world.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=cfg)
    return world


def bouncing_balls():
    """Balls of full restitution, one above the other."""
    world = pv.ModelBuilder()
    world.add_ground_plane(cfg=pv.ShapeConfig(restitution=1.0))
    add_ball(world, (0.0, 0.0, 0.3), restitution=1.0)
    add_ball(world, (0.0, 0.0, 0.45), density=100.0, restitution=1.0)
    return world


def pusher():
    """A kinematic box that pushes a ball along the ground at 4 m/s."""
    world = pv.ModelBuilder()
    world.add_ground_plane()
    body = world.add_body(xform=(0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0), is_kinematic=True)
    world.add_shape_box(body, hx=0.05, hy=0.05, hz=0.05)
    world.joint_qd[-6] = 4.0
    add_ball(world, (0.3, 0.0, 0.05))
    return world


def flail():
    """A chain of capsules that spins on a hinge above the ground and strikes a ball."""
    world = pv.ModelBuilder()
    world.add_ground_plane()
    parent, joints = -1, []
    for index in range(3):
        link = world.add_link()
        world.add_shape_capsule(
            link, xform=(0.15, 0.0, 0.0, 0.0, 0.7071068, 0.0, 0.7071068), radius=0.03, half_height=0.1
        )
        joint = world.add_joint_revolute(
            parent,
            link,
            parent_xform=(0.0, 0.0, 0.4, 0.0, 0.0, 0.0, 1.0) if index == 0 else (0.3, 0.0, 0.0, 0, 0, 0, 1),
            axis=(0.0, 1.0, 0.0),
        )
        world.joint_qd[-1] = 8.0 if index == 0 else -4.0
        parent = link
        joints.append(joint)
    world.add_articulation(joints)
    add_ball(world, (0.5, 0.0, 0.05), density=100.0)
    return world


SCENES = {scene.__name__: scene for scene in (cradle, falling_boxes, bouncing_balls, pusher, flail)}


def make_model(*scenes):
    """Return a model of these worlds, each twice."""
    builder = pv.ModelBuilder()
    for scene in scenes:
        builder.replicate(scene(), 2)
    return builder.finalize("cpu")


def trajectory(step_count, *, cull, change=None, decimation=1, record=True, **options):
    """Return `joint_q` and `joint_qd` of all scenes after each step, and the simulation."""
    model = make_model(*SCENES.values())
    simulation = pv.Simulation(
        model,
        pv.SolverSAP(model, optimality_rel_tol=1e-9, contact_linear_solve_precision="fp64", **options),
        dt=DT,
        decimation=decimation,
        threads=1,
        record=record,
        cull_contacts=cull,
    )
    result = []
    for step in range(step_count):
        if change is not None:
            change(simulation, step)
        simulation.step()
        state = simulation.state
        result.append(np.concatenate([state.joint_q.numpy(), state.joint_qd.numpy()]))
    return np.array(result), simulation


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"approach_damping": True},
        {"torsional_friction": True},
        {"friction_law": "convex"},
        {"contact_point_mode": "contact_midpoint"},
    ],
)
def test_motion_is_that_with_all_contacts(options):
    """The convex problem has one minimum, and contacts without force do not move it.

    Both solve to a tolerance of 1e-9, in single-precision states; impacts amplify what differs.
    """
    culled, some = trajectory(24, cull=True, **options)
    full, everything = trajectory(24, cull=False, **options)
    np.testing.assert_allclose(culled, full, rtol=2e-4, atol=2e-4)
    ours, theirs = some.report(), everything.report()
    assert ours.contact_count_mean < 0.7 * theirs.contact_count_mean
    assert ours.readmitted_step_count > 0  # the cradle
    assert theirs.readmitted_step_count == 0


def test_a_contact_that_only_the_solution_reaches_acts_in_the_same_step():
    """The third ball of the cradle is struck in the step in which the first strikes the second."""
    speeds = {}
    for cull in (True, False):
        model = make_model(cradle)
        simulation = pv.Simulation(model, dt=DT, threads=1, cull_contacts=cull)
        simulation.step()
        speeds[cull] = simulation.state.body_qd.numpy()[:3, 0]
        assert (simulation.solver.readmitted_step_count.numpy() > 0).all() == cull
    assert speeds[False][2] > 1.0
    np.testing.assert_allclose(speeds[True], speeds[False], rtol=1e-5)


def test_readmission_does_not_depend_on_recording_or_substeps():
    """Worlds solved again give the same bits from Python, recorded, and as substeps of one recording."""
    by_hand, _ = trajectory(8, cull=True, record=False)
    recorded, _ = trajectory(8, cull=True)
    together, simulation = trajectory(2, cull=True, decimation=4)
    np.testing.assert_array_equal(recorded, by_hand)
    np.testing.assert_array_equal(together, recorded[3::4])
    assert simulation.report().readmitted_step_count > 0


def test_velocities_written_without_poses_of_bodies_are_found():
    """A velocity that was written into `joint_qd` only is not known to collision, and the check finds it."""

    def throw(simulation, step):
        if step == 3:
            qd = simulation.state.joint_qd.numpy()
            start = simulation.model.joint_qd_start.numpy()[simulation.model.joint_world_start.numpy()[2]]
            qd[start + 2] = -30.0  # the lowest box, at the ground
            simulation.state.joint_qd.assign(qd)

    culled, _ = trajectory(8, cull=True, change=throw)
    full, _ = trajectory(8, cull=False, change=throw)
    np.testing.assert_allclose(culled, full, rtol=2e-4, atol=2e-4)


def test_a_ball_falls_freely_until_it_touches():
    """With nothing set, nothing brakes a ball in the air: v = -g t until the step that would penetrate."""
    world = pv.ModelBuilder()
    world.add_ground_plane()
    body = world.add_body(xform=(0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0))
    world.add_shape_sphere(body, radius=0.05)
    model = world.finalize("cpu")
    for cull in (True, False):
        simulation = pv.Simulation(model, dt=DT, threads=1, cull_contacts=cull)
        height, speed = 0.45, 0.0
        while height > (speed + 9.81 * DT) * DT:
            simulation.step()
            speed = -float(simulation.state.joint_qd.numpy()[2])
            height = float(simulation.state.joint_q.numpy()[2]) - 0.05
            assert speed == pytest.approx(9.81 * simulation.time, rel=1e-5)
        assert height < 0.03  # the gap of both shapes together is 0.2 m


@pytest.mark.parametrize(("law", "lift"), [("coulomb", 0.0), ("convex", 1.0)])
def test_sliding_above_the_ground_brings_contacts_with_convex_friction_only(law, lift):
    """A box at 20 m/s, a height h above the ground, parts by v_n = mu |v_t| - h / T if friction is convex.

    So its contacts are listed with convex friction, and none with Coulomb's law, which lets it fly on.
    """
    speed, mu, height = 20.0, 0.6, 0.05
    world = pv.ModelBuilder(gravity=0.0)
    world.add_ground_plane(cfg=pv.ShapeConfig(mu=mu))
    body = world.add_body(xform=(0.0, 0.0, 0.1 + height, 0.0, 0.0, 0.0, 1.0))
    world.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=pv.ShapeConfig(mu=mu, ke=1.0e6))
    world.joint_qd[-6] = speed
    model = world.finalize("cpu")
    speeds = []
    for cull in (True, False):
        solver = pv.SolverSAP(model, friction_law=law)
        simulation = pv.Simulation(model, solver, dt=DT, threads=1, cull_contacts=cull)
        simulation.step()
        count = int(simulation.contacts.rigid_contact_count.numpy()[0])
        assert count == (4 if lift or not cull else 0)
        speeds.append(simulation.state.body_qd.numpy()[0, [0, 2]])
    np.testing.assert_allclose(speeds[0], speeds[1], rtol=1e-5, atol=1e-5)
    assert (speeds[0][1] > 0.1) == bool(lift)
    if not lift:
        assert speeds[0][0] == pytest.approx(speed)


def test_contacts_of_another_step_are_refused():
    """Contacts left out for one time step may act in a longer one."""
    model = make_model(falling_boxes)
    solver, pipeline = pv.SolverSAP(model), pv.CollisionPipeline(model)
    state, after, contacts = model.state(), model.state(), pipeline.contacts()
    pipeline.collide(state, contacts, horizon=solver.contact_horizon(0.001))
    with pytest.raises(
        ValueError, match=r"dt is 0\.01 s, but the contacts were found for a step of 0\.001 s"
    ):
        solver.step(state, after, None, contacts, 0.01)
    pipeline.collide(state, contacts)
    solver.step(state, after, None, contacts, 0.01)


def hammer():
    """A light arm at rest on a hinge, its tip a few centimetres from a ball, above a plane."""
    world = pv.ModelBuilder(gravity=0.0)
    world.add_ground_plane()
    link = world.add_link()
    world.add_shape_capsule(
        link, xform=(0.15, 0.0, 0.0, 0.0, 0.7071068, 0.0, 0.7071068), radius=0.02, half_height=0.13
    )
    joint = world.add_joint_revolute(
        -1, link, parent_xform=(0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0), axis=(0.0, 1.0, 0.0), effort_limit=1e6
    )
    world.add_articulation([joint])
    add_ball(world, (0.3, 0.0, 0.4), density=100.0)
    return world


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_a_burst_of_effort_is_caught_in_its_step(direction):
    """An effort that speeds a resting arm up within a step lets it strike what it does not reach at rest.

    Towards the ball it touches in the same step, which only the velocities found can tell; away from it
    nothing is touched.
    """
    velocities, again = {}, {}
    for cull in (True, False):
        model = make_model(hammer)
        simulation = pv.Simulation(model, dt=DT, threads=1, cull_contacts=cull)
        effort = simulation.control.joint_f.numpy().reshape(2, -1)
        effort[:, 0] = direction * 150.0
        simulation.control.joint_f.assign(effort.reshape(-1))
        simulation.step()
        velocities[cull] = simulation.state.joint_qd.numpy().reshape(2, -1)
        again[cull] = simulation.solver.readmitted_step_count.numpy()
    np.testing.assert_allclose(velocities[True], velocities[False], rtol=1e-4, atol=1e-4)
    assert np.abs(velocities[True][:, 0]).min() > 5.0
    strikes = np.abs(velocities[False][:, 1:]).max() > 0.5
    assert strikes == (direction > 0.0)
    if strikes:
        assert (again[True] > 0).all()


def test_an_impact_is_looked_at_again_and_not_solved_again():
    """A ball that lands loses 4 of 6 m/s, to end its step at the surface. Its contact was there before."""
    world = pv.ModelBuilder()
    world.add_ground_plane()
    add_ball(world, (0.0, 0.0, 0.06), (0.0, 0.0, -6.0))
    model = world.finalize("cpu")
    speeds = []
    for cull in (True, False):
        simulation = pv.Simulation(model, dt=DT, threads=1, cull_contacts=cull)
        simulation.step()
        speeds.append(simulation.state.body_qd.numpy()[0, 2])
        assert simulation.solver.readmitted_step_count.numpy().sum() == 0
    assert speeds[1] == pytest.approx(-0.01 / DT, rel=0.1)
    assert speeds[0] == speeds[1]


@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_contacts_of_what_rests_side_by_side_are_left_out(speed):
    """Of two cubes a millimetre apart, only one that moves towards the other has contacts with it."""
    world = pv.ModelBuilder()
    world.add_ground_plane()
    for x in (-0.0505, 0.0505):
        body = world.add_body(xform=(x, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0))
        world.add_shape_box(body, hx=0.05, hy=0.05, hz=0.05)
    world.joint_qd[0] = speed
    model = world.finalize("cpu")
    velocities, counts = [], []
    for cull in (True, False):
        simulation = pv.Simulation(model, dt=DT, threads=1, cull_contacts=cull)
        simulation.step()
        velocities.append(simulation.state.joint_qd.numpy())
        counts.append(simulation.contacts.rigid_contact_count.numpy()[0])
        assert simulation.solver.readmitted_step_count.numpy().sum() == 0
    np.testing.assert_allclose(*velocities, rtol=0.0, atol=1e-6)
    assert counts == ([8, 12] if speed == 0.0 else [12, 12])
    assert (velocities[0][6] > 0.1) == (speed > 0.0)


def test_a_second_look_leaves_the_contacts_of_the_step_alone():
    """Contacts of suspect pairs come behind those of the world, of which no bit changes."""
    model = make_model(falling_boxes, flail, hammer)
    solver, pipeline, control = pv.SolverSAP(model), pv.CollisionPipeline(model), model.control()
    effort = control.joint_f.numpy()
    for world in np.flatnonzero(model.world_template == model.world_template[-1]):
        effort[model.joint_qd_start.numpy()[model.joint_world_start.numpy()[world]]] = -150.0
    control.joint_f.assign(effort)
    state, after, contacts = model.state(), model.state(), pipeline.contacts()
    start, names = contacts.rigid_contact_start.numpy(), ("shape0", "shape1", "point0", "point1", "normal")
    looked_again = 0
    for _ in range(30):
        again = solver.readmitted_step_count.numpy().copy()
        pipeline.collide(state, contacts, horizon=solver.contact_horizon(DT))
        before = [getattr(contacts, f"rigid_contact_{name}").numpy().copy() for name in names]
        count, found = (
            contacts.rigid_contact_count.numpy().copy(),
            contacts.rigid_contact_found.numpy().copy(),
        )
        solver.step(state, after, control, contacts, DT)
        same = solver.readmitted_step_count.numpy() == again
        np.testing.assert_array_equal(contacts.rigid_contact_count.numpy()[same], count[same])
        np.testing.assert_array_equal(contacts.rigid_contact_found.numpy()[same], found[same])
        for name, old in zip(names, before, strict=True):
            new = getattr(contacts, f"rigid_contact_{name}").numpy()
            for world in np.flatnonzero(same):
                own = slice(start[world], start[world] + count[world])
                np.testing.assert_array_equal(new[own], old[own])
        stages = contacts.culling.stages
        looked_again += int((stages.added_found.numpy() > stages.known.numpy())[same].sum())
        state, after = after, state
    assert looked_again > 1


def test_shapes_that_are_switched_off_are_not_readmitted():
    """A ball that passes through a switched-off plane and ball at 30 m/s is not stopped by a second look."""
    world = pv.ModelBuilder(gravity=0.0)
    world.add_ground_plane()
    add_ball(world, (0.0, 0.0, 0.2))
    add_ball(world, (0.0, 0.0, 0.35), density=100.0)
    model = world.finalize("cpu")
    enabled = model.shape_enabled.numpy()
    enabled[:2] = False
    model.shape_enabled.assign(enabled)
    simulation = pv.Simulation(model, dt=DT, threads=1)
    force = simulation.state.body_f.numpy()
    force[1, 2] = -30.0 / DT * float(model.body_mass.numpy()[1])
    simulation.state.body_f.assign(force)
    simulation.step()
    qd = simulation.state.body_qd.numpy()
    assert qd[1, 2] == pytest.approx(-30.0, rel=1e-3)
    np.testing.assert_array_equal(qd[0], 0.0)
    assert simulation.solver.readmitted_step_count.numpy().sum() == 0


def test_worlds_choose_for_themselves_whether_contacts_are_left_out():
    """A world has the bits that it has if all worlds choose as it does, and so do the contacts listed."""
    runs = {}
    chosen = np.arange(2 * len(SCENES)) % 3 == 1
    for name, cull in (("all", True), ("none", False), ("some", chosen)):
        model = make_model(*SCENES.values())
        simulation = pv.Simulation(model, dt=DT, threads=1, cull_contacts=cull)
        for _ in range(24):
            simulation.step()
        body_world = model.body_world.numpy()
        bodies = np.concatenate([simulation.state.body_q.numpy(), simulation.state.body_qd.numpy()], axis=1)
        counts = simulation.contacts.rigid_contact_count.numpy()[: model.world_count]
        runs[name] = ([bodies[body_world == world] for world in range(model.world_count)], counts)
    differ = 0
    for world, culled in enumerate(chosen):
        alike = "all" if culled else "none"
        np.testing.assert_array_equal(runs["some"][0][world], runs[alike][0][world])
        assert runs["some"][1][world] == runs[alike][1][world]
        differ += runs["all"][1][world] != runs["none"][1][world]
    assert differ > 2


def test_a_wrong_choice_of_worlds_is_named():
    model = make_model(cradle)
    with pytest.raises(ValueError, match=r"cull_contacts has shape \(3,\).*each of the 2 worlds"):
        pv.Simulation(model, dt=DT, cull_contacts=[True, False, True])
    with pytest.raises(TypeError, match=r"cull_contacts is 0\.5, but must be True, False or one per world"):
        pv.Simulation(model, dt=DT, cull_contacts=0.5)
