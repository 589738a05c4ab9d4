"""Where Newton's method over all joints begins: a little closer to free motion than the last velocities."""

import numpy as np

import pluriverse as pv

DT = 0.005
PLATE_COUNT = 6
# Speeds of corners [m/s], and of joints [rad/s], at which they move by half a micrometer in a step, about as
# much as rounding of positions and orientations makes.
LIFTING_SPEED, TURNING_SPEED = 1e-4, 4e-4

# Momentum that a step may lose or gain, relative to all: ten times the tolerance of the solver.
MOMENTUM_TOLERANCE = 1e-5


def _slide(world_count: int, worlds: slice) -> tuple[pv.Simulation, np.ndarray]:
    """Let trains in some `worlds` slide for a step; return the simulation, and what bodies had before [m/s].

    Six plates on four corners each, more than the space of contacts has room for, are joined by hinges.
    Joints turn a little, at random, so that most of the corners are open at the start.
    """
    material = pv.ShapeConfig(mu=0.4)
    train = pv.ModelBuilder()
    links, joints = [], []
    for place in range(PLATE_COUNT):
        link = train.add_link(xform=((-0.5 * place, 0.0, 0.05), (0.0, 0.0, 0.0, 1.0)))
        train.add_shape_box(link, hx=0.2, hy=0.15, hz=0.05, cfg=material)
        if place == 0:
            joints.append(train.add_joint_free(link))
        else:
            ends = [((x, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)) for x in (-0.25, 0.25)]
            hinge = {"parent_xform": ends[0], "child_xform": ends[1], "axis": (0.0, 1.0, 0.0)}
            joints.append(train.add_joint_revolute(links[-1], link, **hinge))
        links.append(link)
    train.add_articulation(joints)
    rng = np.random.default_rng(3)
    speeds = np.zeros((world_count, 6 + PLATE_COUNT - 1))
    speeds[:, 0] = np.linspace(0.3, 1.0, world_count)
    speeds[:, 1] = 0.3
    speeds[:, 2] = LIFTING_SPEED
    speeds[:, 3:] = rng.uniform(-TURNING_SPEED, TURNING_SPEED, speeds[:, 3:].shape)
    speeds = speeds[worlds]
    builder = pv.ModelBuilder()
    builder.replicate(train, len(speeds))
    builder.add_ground_plane(cfg=material)
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, dt=DT, threads=1)
    simulation.step(40)
    state = simulation.state
    state.joint_qd.assign(speeds.reshape(-1).astype(np.float32))
    pv.eval_fk(model, state.joint_q, state.joint_qd, state)
    before = state.body_qd.numpy().copy()
    simulation.step()
    assert simulation.solver.last_converged.numpy().all()
    return simulation, before


def test_what_slides_on_many_contacts_begins_with_those_that_carry():
    """All corners carry, though most of them are open at the velocities of the last step."""
    simulation, _ = _slide(8, slice(0, 8))
    iterations = simulation.solver.last_solve_iterations.numpy()
    assert iterations.mean() < 4.8  # 5.25 from the velocities of the last step


def test_worlds_begin_as_they_do_alone():
    """Whether a world begins closer to free motion depends on its own gradient only."""
    together, _ = _slide(8, slice(0, 8))
    alone, _ = _slide(8, slice(5, 6))
    velocities = together.state.joint_qd.numpy().reshape(8, -1)
    np.testing.assert_array_equal(velocities[5], alone.state.joint_qd.numpy())


def test_trains_that_begin_closer_gain_what_weight_and_contacts_give_them():
    """The momentum of each train changes by the impulses on it; moving the start is none of them."""
    simulation, before = _slide(8, slice(0, 8))
    model = simulation.model
    force = simulation.solver.body_contact_force(simulation.contacts).numpy()[:, :3]
    gain = simulation.state.body_qd.numpy()[:, :3] - before[:, :3]
    mass = model.body_mass.numpy()[:, None]
    weight = mass * model.gravity.numpy()[0]
    left = (mass * gain - DT * (force + weight)).reshape(8, PLATE_COUNT, 3).sum(axis=1)
    momentum = np.linalg.norm((mass * before[:, :3]).reshape(8, PLATE_COUNT, 3).sum(axis=1), axis=1)
    assert (np.linalg.norm(left, axis=1) < MOMENTUM_TOLERANCE * momentum).all()
