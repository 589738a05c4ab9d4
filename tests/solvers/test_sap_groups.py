"""Groups: what does not touch moves as in a world of its own, whatever else is in its world."""

import itertools

import numpy as np
import pytest

from pluriverse import Model, ModelBuilder, ShapeConfig, Simulation, SolverSAP

DT = 0.005
SPACING = 3.0
COORDS = 19  # of a crawler
DOFS = 18
IDENTITY = (0.0, 0.0, 0.0, 1.0)

LEG = """
    <body pos="{x} {y} 0">
      <joint name="hip{name}" axis="1 0 0" range="-1 1"/>
      <geom type="capsule" fromto="0 0 0 0 {y} -0.05" size="0.02" contype="0" conaffinity="0"/>
      <body pos="0 {y} -0.05">
        <joint name="knee{name}" axis="1 0 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.12" size="0.02" contype="0" conaffinity="0"/>
        <body pos="0 0 -0.15">
          <joint name="ankle{name}" axis="0 1 0" damping="0.01"/>
          <geom type="box" size="0.03 0.03 0.02"/>
        </body>
      </body>
    </body>"""


def _crawler(place: int, mimics: bool) -> ModelBuilder:
    """Return a limp robot on four flat feet, which touch the ground at sixteen points."""
    legs = "".join(
        LEG.format(x=0.15 * a, y=0.1 * b, name=f"_{a}_{b}".replace("-", "m"))
        for a in (-1, 1)
        for b in (-1, 1)
    )
    torso = '<geom type="box" size="0.2 0.1 0.04" mass="4"/>'
    body = f'<body name="torso" pos="{SPACING * (place + 1)} 0 0.221"><freejoint/>{torso}{legs}</body>'
    mimic = '<equality><joint joint1="knee_1_1" joint2="knee_1_m1" polycoef="0 -1 0 0 0"/></equality>'
    robot = ModelBuilder()
    robot.add_mjcf(f"<mujoco><worldbody>{body}</worldbody>{mimic if mimics else ''}</mujoco>")
    return robot


def _world(places: tuple[int, ...], boxes: int = 0, mimics: tuple[int, ...] = ()) -> ModelBuilder:
    """Return a world of crawlers at these places, some with a constraint between knees, and boxes."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    for place in places:
        builder.add_builder(_crawler(place, place in mimics))
    for index in range(boxes):
        body = builder.add_body(xform=((-1.0, 0.5 * index, 0.1), (0.0, 0.0, 0.0, 1.0)))
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    return builder


def _push(model: Model, speeds: list[float], *, threads: int = 1) -> Simulation:
    """Return a simulation in which what is free begins to slide, at these speeds in turns."""
    simulation = Simulation(model, SolverSAP(model), dt=DT, threads=threads)
    simulation.prepare()
    rates, starts = simulation.state.joint_qd.numpy(), model.joint_qd_start.numpy()
    free = [int(a) for a, b in itertools.pairwise(starts) if b - a == 6]
    for index, dof in enumerate(free):
        speed = speeds[index % len(speeds)]
        rates[dof : dof + 2] = speed, 0.3 * speed
    simulation.state.joint_qd.assign(rates)
    return simulation


# Where many contacts come to rest in one step, the laws may have several solutions: not so at these speeds.
SPEEDS = [1.1, 1.6, 2.1]


@pytest.mark.parametrize(("boxes", "mimics"), [(0, ()), (3, ()), (0, (1,))])
def test_robots_that_do_not_touch_move_as_each_does_alone(boxes, mimics):
    """Three robots on 48 points, too many for the space of contacts at once; alone each has its exact law.

    Bits differ where few contacts are left, which are solved at once.
    """
    together = _push(_world((0, 1, 2), boxes, mimics).finalize("cpu"), [*SPEEDS, *([1.0] * boxes)])
    together.step(60)
    report = together.report()
    assert report.unconverged_step_count == 0
    assert report.contact_count_peak >= 48
    # Sliding boxes may be solved all at once, before groups are looked for.
    assert report.approximated_step_count <= (1 if boxes else 0)
    for place in range(3):
        alone = _push(_world((place,), 0, mimics).finalize("cpu"), [SPEEDS[place]])
        alone.step(60)
        coords = slice(COORDS * place, COORDS * (place + 1))
        np.testing.assert_allclose(
            together.state.joint_q.numpy()[coords], alone.state.joint_q.numpy(), rtol=0.0, atol=1e-6
        )


def test_groups_leave_contacts_and_marks_as_they_were():
    """Forces are at the contacts that have them, and the next step begins with all of the world."""
    model = _world((0, 1, 2)).finalize("cpu")
    solver = SolverSAP(model)
    simulation = Simulation(model, solver, dt=DT, threads=1, record=False)
    simulation.step(3)
    sap = solver.workspace
    count = int(sap.contact_count.numpy()[0])
    assert count == 48
    assert int(sap.contact_start.numpy()[0]) == 0
    assert sorted(set(sap.tree_group.numpy())) == [0, 1, 2]
    assert (sap.node_contact.numpy() >= 0).all()
    assert (sap.dof_terms.numpy() >= 0).all()
    assert (sap.tree_active.numpy() == 1).all()
    assert (sap.contact_home.numpy()[:count] == np.arange(count)).all()
    force = simulation.contacts.rigid_contact_force.numpy()[:count]
    shapes = simulation.contacts.rigid_contact_shape1.numpy()[:count]
    weight = 9.81 * model.body_mass.numpy().reshape(3, -1).sum(axis=1)
    robot_of = model.shape_body.numpy()[shapes] // (model.body_count // 3)
    carried = [abs(force[robot_of == robot].sum(axis=0)[2]) for robot in range(3)]
    np.testing.assert_allclose(carried, carried[0], rtol=1e-5)
    assert 0.5 * weight[0] < carried[0] < weight[0]  # its legs give way


def test_impulses_of_all_groups_are_what_their_bodies_gain():
    """Two heaps of nine boxes that fall, solved in turns: m (v' - v - g h) is the impulse on each box."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    rng = np.random.default_rng(5)
    for heap in range(2):
        for index in range(9):
            turn = rng.normal(size=4)
            place = (4.0 * heap + 0.28 * (index % 3), 0.28 * (index // 3), 0.2 + 0.02 * index)
            body = builder.add_body(xform=(place, tuple(turn / np.linalg.norm(turn))))
            builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    model = builder.finalize("cpu")
    solver = SolverSAP(model)
    simulation = Simulation(model, solver, dt=DT, threads=1, record=False)
    mass = model.body_mass.numpy().astype(np.float64)
    grouped, before = 0, np.zeros((model.body_count, 3))
    for _ in range(60):
        if solver.workspace is not None:
            solver.workspace.tree_group.fill_(-2)
        simulation.step()
        grouped += int((solver.workspace.tree_group.numpy() >= 0).any())
        velocity = simulation.state.body_qd.numpy()[:, :3].astype(np.float64)
        force = solver.body_contact_force(simulation.contacts).numpy()[:, :3]
        gained = mass[:, None] * (velocity - before - [0.0, 0.0, -9.81 * DT])
        np.testing.assert_allclose(gained, DT * force, rtol=0.0, atol=1e-4 * mass.max())
        before = velocity
    assert grouped > 10
    assert solver.unconverged_step_count.numpy()[0] == 0


def test_two_groups_touch_one_body_that_moves_as_it_is_told():
    """Stacks on a turntable that is driven move as they do without the other."""

    def turntable(sides: tuple[int, ...]) -> np.ndarray:
        builder = ModelBuilder()
        table = builder.add_link(xform=((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)), is_kinematic=True)
        builder.add_shape_box(table, hx=2.0, hy=2.0, hz=0.1)
        joint = builder.add_joint_revolute(-1, table, axis=(0.0, 0.0, 1.0))
        builder.add_articulation([joint])
        for side in sides:
            for level in range(3):
                body = builder.add_body(xform=((side * 1.0, 0.0, 0.21 + 0.2 * level), (0.0, 0.0, 0.0, 1.0)))
                builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
        model = builder.finalize("cpu")
        simulation = Simulation(model, SolverSAP(model), dt=DT, threads=1)
        simulation.prepare()
        rates = simulation.state.joint_qd.numpy()
        rates[0] = 0.5
        simulation.state.joint_qd.assign(rates)
        simulation.step(60)
        assert simulation.report().unconverged_step_count == 0
        return simulation.state.joint_q.numpy()[1:].reshape(len(sides), -1)

    both = turntable((1, -1))
    for index, side in enumerate((1, -1)):
        alone = turntable((side,))[0]
        np.testing.assert_allclose(both[index], alone, rtol=0.0, atol=2e-5)
        assert abs(alone[1]) > 0.1  # it is carried along


def test_worlds_of_groups_have_the_bits_they_have_alone():
    """In a batch with other worlds, and on two threads."""
    worlds = [((0, 1, 2), 3, ()), ((0,), 0, ()), ((1, 2), 6, (1,)), ((0, 1), 0, (0, 1))]
    builder = ModelBuilder()
    for world in worlds:
        builder.add_world(_world(*world))
    found = []
    for threads in (1, 2):
        simulation = _push(builder.finalize("cpu"), [1.3], threads=threads)
        simulation.step(40)
        found.append(simulation.state.joint_q.numpy())
    np.testing.assert_array_equal(found[0], found[1])
    begin = 0
    for world in worlds:
        alone = _push(_world(*world).finalize("cpu"), [1.3])
        alone.step(40)
        coords = alone.state.joint_q.numpy()
        np.testing.assert_array_equal(found[0][begin : begin + len(coords)], coords)
        begin += len(coords)


def _light_arm(mass: float, *, boxes: int, heavy: float = 0.0, speed: float = 0.0) -> Model:
    """Return an arm that its drive holds up, beside boxes and something heavy that slides freely."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    if heavy:
        slider = builder.add_body(mass=heavy, inertia=heavy * np.eye(3), xform=((0.0, 20.0, 0.5), IDENTITY))
        smooth = ShapeConfig(mu=0.0, density=0.0)
        builder.add_shape_box(slider, hx=2.0, hy=1.0, hz=0.5, cfg=smooth)
        builder.joint_qd[0] = speed
    for index in range(boxes):
        box = builder.add_body(xform=((0.5 * index, -2.0, 0.02), IDENTITY))
        builder.add_shape_box(box, hx=0.02, hy=0.02, hz=0.02)
    link = builder.add_link(mass=mass, com=(0.05, 0.0, 0.0), inertia=2.5e-4 * mass * np.eye(3))
    joint = builder.add_joint_revolute(
        -1,
        link,
        axis="y",
        parent_xform=((0.0, 3.0, 1.0), IDENTITY),
        target_ke=2.5 * mass,
        target_kd=0.05 * mass,
        friction=0.1 * mass,
    )
    builder.add_articulation([joint])
    return builder.finalize("cpu")


@pytest.mark.parametrize("boxes", [2, 5])
@pytest.mark.parametrize(("heavy", "speed"), [(1500.0, 0.0), (1500.0, 30.0)])
def test_what_is_light_moves_as_it_does_alone_beside_what_is_heavy_and_fast(boxes, heavy, speed):
    """An arm of 2 g in a world with 1.5 t: the gradient of each is to be small beside its own momenta."""

    def angle(model: Model) -> float:
        simulation = Simulation(model, SolverSAP(model), dt=DT, threads=1)
        simulation.step(300)
        assert simulation.report().unconverged_step_count == 0
        return float(simulation.state.joint_q.numpy()[-1])

    alone = angle(_light_arm(0.002, boxes=0))
    assert 0.05 < alone < 0.5
    beside = angle(_light_arm(0.002, boxes=boxes, heavy=heavy, speed=speed))
    assert beside == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("seed", [3, 10])
def test_objects_in_a_bin_take_one_iteration_where_one_of_them_moves(seed):
    """Ten boxes and cylinders that were dropped: what rests is as good as solved, whatever moves beside it.

    One creeps or rolls, so the world as a whole is far from its solution at the last velocities.
    """
    builder = ModelBuilder()
    builder.add_ground_plane()
    for x, y in ((0.3, 0.0), (-0.3, 0.0), (0.0, 0.3), (0.0, -0.3)):
        wall = ((x, y, 0.2), IDENTITY)
        builder.add_shape_box(-1, xform=wall, hx=0.02 if x else 0.32, hy=0.02 if y else 0.32, hz=0.2)
    rng = np.random.default_rng(seed)
    for index in range(10):
        turn = rng.normal(size=4)
        place = (*rng.uniform(-0.15, 0.15, 2), 0.1 + 0.1 * index)
        body = builder.add_body(xform=(place, tuple(turn / np.linalg.norm(turn))))
        if index % 2:
            builder.add_shape_cylinder(body, radius=0.04, half_height=0.05)
        else:
            builder.add_shape_box(body, hx=0.06, hy=0.05, hz=0.04)
    model = builder.finalize("cpu")
    simulation = Simulation(model, SolverSAP(model), dt=DT, threads=1)
    simulation.step(400)
    simulation.clear_report()
    simulation.step(60)
    report = simulation.report()
    assert report.contact_count_mean > 25.0
    assert report.unconverged_step_count == 0
    assert report.iteration_count_mean <= 1.5
