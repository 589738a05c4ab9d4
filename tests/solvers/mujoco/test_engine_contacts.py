"""Contacts of a `CollisionPipeline` fed into MuJoCo: its own step, with our contacts in it."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from pluriverse import CollisionPipeline, ModelBuilder, ShapeConfig, Simulation
from pluriverse.solvers.mujoco import SolrefMode
from pluriverse.solvers.mujoco.solver import SolverMuJoCo
from tests.solvers.mujoco.test_engine_step import rows_of
from tests.solvers.mujoco.worlds import NO_TURN, build, world_slice

DT = 0.004
FLOAT32_ROUNDING = 2.0**-23
GRAVITY = 9.81


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_feeding_mujoco_its_own_contacts_makes_its_own_step(cone: str):
    """The constraints made of external contacts are those that MuJoCo makes of its own."""
    model = build(["robot", "boxes"])
    own, fed = SolverMuJoCo(model, cone=cone), SolverMuJoCo(model, cone=cone, use_mujoco_contacts=False)
    contacts, state, after = own.contacts(), model.state(), model.state()
    for _ in range(200):
        own.step(state, after, None, contacts, DT)
        state, after = after, state
    # The next step from this state, once with what MuJoCo finds in it, once with the same handed over.
    own.unfreeze()
    expected, found = model.state(), own.contacts()
    own.step(state, expected, None, found, DT)
    assert (found.rigid_contact_count.numpy() > 0).all()
    force = found.rigid_contact_force.numpy().copy()
    result = model.state()
    fed.step(state, result, None, found, DT)
    np.testing.assert_array_equal(fed.last_contact_count.numpy(), own.last_contact_count.numpy())
    # Points are rounded to single precision (1e-7 m at 1 m), and a contact pushes back with
    # K = 1 / (0.95^2 0.02^2) = 2770 1/s^2, so dt K 1e-7 = 1e-6 m/s.
    for world in range(2):
        np.testing.assert_allclose(rows_of(fed, "qvel", world), rows_of(own, "qvel", world), atol=2e-6)
    np.testing.assert_allclose(found.rigid_contact_force.numpy(), force, rtol=1e-3, atol=0.05)


def test_boxes_rest_on_contacts_fed_in():
    """Contacts of our own pipeline hold robot and boxes up, and their forces carry the weight."""
    model = build(["boxes", "robot"])
    simulation = Simulation(model, SolverMuJoCo(model, use_mujoco_contacts=False), dt=DT, threads=2)
    simulation.step(1200)  # the robot settles on its drives
    contacts = simulation.contacts
    start, count = contacts.rigid_contact_start.numpy(), contacts.rigid_contact_count.numpy()
    force, shape0 = contacts.rigid_contact_force.numpy(), contacts.rigid_contact_shape0.numpy()
    mass = model.body_mass.numpy()
    for world in range(2):
        slots = slice(start[world], start[world] + count[world])
        on_ground = force[slots][shape0[slots] == model.shape_world_start.numpy()[world]]
        weight = GRAVITY * world_slice(model, mass, "body", world).sum()
        np.testing.assert_allclose(on_ground.sum(axis=0)[2], weight, rtol=5e-3)
    assert np.abs(simulation.state.joint_qd.numpy()).max() < 0.05


def test_fed_contacts_do_not_depend_on_neighbours():
    """A world with external contacts has the same bits alone, in a crowd, and on several threads."""

    def state_of(kinds: list[str], world: int, threads: int) -> np.ndarray:
        model = build(kinds)
        simulation = Simulation(model, SolverMuJoCo(model, use_mujoco_contacts=False), dt=DT, threads=threads)
        simulation.step(60)
        return world_slice(model, simulation.state.joint_q.numpy(), "joint_coord", world)

    alone = state_of(["boxes"], 0, 1)
    np.testing.assert_array_equal(state_of(["pendulum", "robot", "boxes"] * 3, 8, 3), alone)


def test_force_space_stiffness_sinks_by_the_weight():
    """With SOLREF_MODE_FORCE_SPACE a sphere sinks by m g / ke, whatever its mass."""
    sinking = 0.004  # m, above solimp's width of 1 mm, where the impedance is dmax
    builder = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(builder)
    for density in (500.0, 4000.0):
        mass = density * 4.0 / 3.0 * np.pi * 0.1**3
        ke = mass * GRAVITY / sinking
        config = ShapeConfig(density=density, ke=ke, tau=2.0 * np.sqrt(mass / ke))
        builder.begin_world()
        ground = ShapeConfig(ke=ke, tau=2.0 * np.sqrt(mass / ke))
        builder.add_ground_plane(
            cfg=ground, custom_attributes={"mujoco:solref_mode": int(SolrefMode.FORCE_SPACE)}
        )
        body = builder.add_body(xform=((0.0, 0.0, 0.1), NO_TURN))
        builder.add_shape_sphere(
            body,
            radius=0.1,
            cfg=config,
            custom_attributes={"mujoco:solref_mode": int(SolrefMode.FORCE_SPACE)},
        )
        builder.end_world()
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model, use_mujoco_contacts=False)
    simulation = Simulation(model, solver, dt=0.002)
    simulation.step(1000)
    depth = 0.1 - simulation.state.body_q.numpy()[:, 2]
    np.testing.assert_allclose(depth, sinking, rtol=0.01)


def test_contacts_cannot_be_fed_to_four_stages():
    model = build(["boxes"])
    with pytest.raises(ValueError, match="RK4"):
        SolverMuJoCo(model, use_mujoco_contacts=False, integrator="rk4")


def test_pipeline_contacts_by_hand():
    """`collide`, then `step`, swap: as in `Simulation`, with the same bits."""
    model = build(["boxes"])
    solver, pipeline = SolverMuJoCo(model, use_mujoco_contacts=False), CollisionPipeline(model)
    contacts, state, after = pipeline.contacts(), model.state(), model.state()
    for _ in range(30):
        pipeline.collide(state, contacts)
        solver.step(state, after, model.control(), contacts, DT)
        state, after = after, state
    simulation = Simulation(model, SolverMuJoCo(model, use_mujoco_contacts=False), dt=DT)
    simulation.step(30)
    np.testing.assert_array_equal(state.joint_q.numpy(), simulation.state.joint_q.numpy())


@pytest.mark.parametrize("arguments", [{}, {"use_mujoco_contacts": False}], ids=["found", "fed in"])
def test_contact_forces_of_a_body_change_its_momentum(arguments):
    """What a tumbling box gains in a step is its weight and the wrench of its contacts, about its centre."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    turned = (0.1, 0.05, 0.02, 1.0) / np.linalg.norm((0.1, 0.05, 0.02, 1.0))
    for spin in (0.0, 2.0):
        builder.begin_world()
        for level in range(2):
            body = builder.add_body(xform=((0.02 * level, 0.0, 0.14 + 0.24 * level), turned))
            builder.add_shape_box(body, hx=0.1, hy=0.12, hz=0.1, cfg=ShapeConfig(density=1000.0))
        builder.joint_qd[-12:] = [0.2, -0.1, -0.5, 0.0, spin, 0.5] * 2
        builder.end_world()
    model = builder.finalize("cpu")
    solver = SolverMuJoCo(model, integrator="euler", **arguments)
    pipeline = CollisionPipeline(model) if arguments else None
    contacts = pipeline.contacts() if pipeline else solver.contacts()
    with pytest.raises(RuntimeError, match="the last step was not made with these contacts"):
        solver.body_contact_force(contacts)
    short = wp.zeros(3, dtype=wp.spatial_vector, device="cpu")
    states, inertia, touched = [model.state(), model.state()], model.body_inertia.numpy(), 0
    mass = model.body_mass.numpy()
    for _ in range(60):
        if pipeline:
            pipeline.collide(states[0], contacts)
        solver.step(*states, None, contacts, DT)
        with pytest.raises(ValueError, match=r"shape \(3,\) on cpu, but must be .* of shape \(4,\)"):
            solver.body_contact_force(contacts, out=short)
        wrench = solver.body_contact_force(contacts).numpy()
        before, after = (state.body_qd.numpy().astype(np.float64) for state in states)
        gained = mass[:, None] * (after[:, :3] - before[:, :3]) / DT
        gained[:, 2] += 9.81 * mass
        np.testing.assert_allclose(wrench[:, :3], gained, atol=0.05)
        for body in range(model.body_count):
            turns = [Rotation.from_quat(state.body_q.numpy()[body, 3:]) for state in states]
            # MuJoCo's step is I dw/dt + w x I w = torque in the axes of the body, w at its beginning.
            first, second = (
                turn.inv().apply(qd[body, 3:]) for turn, qd in zip(turns, (before, after), strict=True)
            )
            rate = inertia[body] @ (second - first) / DT
            torque = turns[0].apply(rate + np.cross(first, inertia[body] @ first))
            np.testing.assert_allclose(wrench[body, 3:], torque, atol=0.02)
        touched += int((np.abs(wrench[:, 3:]) > 3.0).any())
        states.reverse()
    assert touched > 10
