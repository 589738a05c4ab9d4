"""Kinematic bodies against closed forms: belts, platforms, carts, turntables; and that nothing moves them."""

import warnings

import numpy as np
import pytest

from pluriverse import (
    BodyFlags,
    JointTargetMode,
    ModelBuilder,
    ModelFlags,
    ShapeConfig,
    Simulation,
    SolverSAP,
)
from pluriverse.warnings import StructureEditWarning, UndrivenJointWarning

GRAVITY = 9.81
DT = 0.005
MU = 0.5
IDENTITY = (0.0, 0.0, 0.0, 1.0)
STIFF = ShapeConfig(ke=1e6, tau=0.0, mu=MU, density=1000.0)
EXACT = {"contact_preset_variant": "approx64"}


def simulation_of(builder: ModelBuilder, dt: float = DT, **options) -> Simulation:
    model = builder.finalize("cpu")
    return Simulation(model, SolverSAP(model, **options), dt=dt)


def slab_on(builder: ModelBuilder, height: float) -> int:
    """A flat slab of 16 kg, low enough not to rock, standing at a height."""
    slab = builder.add_body(xform=((0.0, 0.0, height + 0.02), IDENTITY), label="slab")
    builder.add_shape_box(slab, hx=0.2, hy=0.1, hz=0.02, cfg=STIFF)
    return slab


def belt(speed: float, *, slab: bool = True) -> ModelBuilder:
    builder = ModelBuilder()
    body = builder.add_body(is_kinematic=True, label="belt")
    builder.add_shape_box(body, hx=20.0, hy=1.0, hz=0.1, cfg=STIFF)
    builder.joint_qd[0] = speed
    if slab:
        slab_on(builder, 0.1)
    return builder


def test_a_belt_drags_a_slab_by_friction_until_it_moves_along():
    """Up to the speed v of the belt mu g t, lagging v²/(2 mu g) behind; the belt stays where it is."""
    speed = 1.0
    with simulation_of(belt(speed)) as simulation:
        belt_q = simulation.state.joint_q.numpy()[:7].copy()
        simulation.step(20)
        _, v0 = simulation.state.joint_q.numpy()[7], simulation.state.joint_qd.numpy()[6]
        simulation.step(10)
        gained = simulation.state.joint_qd.numpy()[6] - v0
        # A sliding contact floats by mu v_t h in the convex law; as v_t falls, that gives way a little.
        assert gained == pytest.approx(MU * GRAVITY * 10 * DT, rel=0.01)
        simulation.step(100)
        state = simulation.state
        assert state.joint_qd.numpy()[6] == pytest.approx(speed, abs=1e-4)
        assert state.joint_q.numpy()[7] == pytest.approx(
            speed * simulation.time - speed**2 / (2.0 * MU * GRAVITY), rel=0.02
        )
        np.testing.assert_array_equal(state.joint_q.numpy()[:7], belt_q)
        np.testing.assert_array_equal(state.joint_qd.numpy()[:6], [speed, 0.0, 0.0, 0.0, 0.0, 0.0])
        np.testing.assert_array_equal(state.body_qd.numpy()[0], [speed, 0.0, 0.0, 0.0, 0.0, 0.0])


def test_neither_contacts_nor_forces_move_a_kinematic_body():
    """A ton falls on it, a force pulls at it, and it has no mass: position and velocity keep their bits."""
    builder = ModelBuilder()
    plate = builder.add_body(is_kinematic=True, xform=((0.1, 0.2, 0.3), IDENTITY))
    builder.add_shape_box(plate, hx=1.0, hy=1.0, hz=0.05, cfg=ShapeConfig(density=0.0, ke=1e6))
    heavy = builder.add_body(xform=((0.3, 0.0, 0.6), IDENTITY), mass=1000.0, inertia=10.0 * np.eye(3))
    builder.add_shape_box(heavy, hx=0.2, hy=0.2, hz=0.2, cfg=ShapeConfig(density=0.0, ke=1e6))
    builder.joint_qd[:6] = [0.1, -0.2, 0.3, 0.2, 0.1, 0.05]
    with simulation_of(builder) as simulation:
        forces = simulation.state.body_f.numpy()
        forces[0] = 1e5
        before = simulation.state.joint_q.numpy()[:7].copy(), simulation.state.joint_qd.numpy()[:6].copy()
        for _ in range(20):
            simulation.state.body_f.assign(forces)
            simulation.control.joint_f.fill_(1e4)
            simulation.step(3)
        assert simulation.state.joint_qd.numpy()[6:].any()
        np.testing.assert_array_equal(simulation.state.joint_q.numpy()[:7], before[0])
        np.testing.assert_array_equal(simulation.state.joint_qd.numpy()[:6], before[1])
        assert simulation.report().frozen_worlds == ()


def test_a_platform_pushes_with_the_weight_and_the_inertia_of_what_it_carries():
    """On a platform that is accelerated upwards at a, a slab presses with m (g + a), and rides along."""
    acceleration = 2.0
    builder = ModelBuilder()
    lift = builder.add_link(is_kinematic=True, label="lift")
    builder.add_shape_box(lift, hx=1.0, hy=1.0, hz=0.1, cfg=STIFF)
    joint = builder.add_joint_prismatic(
        -1, lift, axis="z", actuator_mode=JointTargetMode.POSITION_VELOCITY, label="shaft"
    )
    builder.add_articulation([joint])
    slab = slab_on(builder, 0.1)
    with simulation_of(builder) as simulation:
        mass = simulation.model.body_mass.numpy()[slab]
        height = simulation.control.joint_target_pos.numpy()
        speed = simulation.control.joint_target_vel.numpy()
        for step in range(1, 201):
            height[0], speed[0] = 0.5 * acceleration * (step * DT) ** 2, acceleration * step * DT
            simulation.control.joint_target_pos.assign(height)
            simulation.control.joint_target_vel.assign(speed)
            simulation.step()
            assert simulation.state.joint_q.numpy()[0] == np.float32(height[0])
            assert simulation.state.joint_qd.numpy()[0] == np.float32(speed[0])
        force = simulation.solver.body_contact_force(simulation.contacts).numpy()
        assert force[slab][2] == pytest.approx(mass * (GRAVITY + acceleration), rel=1e-3)
        np.testing.assert_allclose(force[lift][:3], -force[slab][:3], rtol=1e-5, atol=1e-4)


def pendulum_on_cart() -> ModelBuilder:
    """A point-like bob of 1 kg on a rod of 1 m below a cart on a rail."""
    builder = ModelBuilder()
    cart = builder.add_link(is_kinematic=True, label="cart")
    bob = builder.add_link(mass=1.0, com=(0.0, 0.0, -1.0), inertia=1e-6 * np.eye(3), label="bob")
    rail = builder.add_joint_prismatic(-1, cart, axis="x", actuator_mode=JointTargetMode.VELOCITY)
    hinge = builder.add_joint_revolute(cart, bob, axis="y")
    builder.add_articulation([rail, hinge])
    return builder


def test_a_pendulum_on_an_accelerated_cart_hangs_along_the_apparent_gravity():
    """It stays at tan(q) = a / g while the cart follows v = a t, in relative rest; the cart at a t² / 2."""
    acceleration = 3.0
    builder = pendulum_on_cart()
    builder.joint_q[1] = np.arctan2(acceleration, GRAVITY)
    with simulation_of(builder, **EXACT) as simulation:
        for step in range(1, 201):
            simulation.control.joint_target_vel.assign([acceleration * step * DT, 0.0])
            simulation.step()
        q = simulation.state.joint_q.numpy()
        # Rounding of the target velocity in single precision, over the step, is an acceleration.
        assert q[1] == pytest.approx(np.arctan2(acceleration, GRAVITY), abs=1e-4)
        assert q[0] == pytest.approx(0.5 * acceleration * simulation.time**2, rel=1e-5)
        simulation.step(10)  # at constant speed again: the pendulum begins to swing, the cart does not care
        assert simulation.state.joint_qd.numpy()[0] == np.float32(acceleration * 200 * DT)
        assert abs(simulation.state.joint_qd.numpy()[1]) > 0.1


def test_a_target_of_a_kinematic_body_is_not_reported_as_undriven():
    """It moves as its targets say without any gain, so `Simulation` has nothing to warn of."""
    with simulation_of(pendulum_on_cart(), **EXACT) as simulation:
        simulation.control.joint_target_vel.assign([1.0, 0.0])
        with warnings.catch_warnings():
            warnings.simplefilter("error", UndrivenJointWarning)
            simulation.step()


@pytest.mark.parametrize("mode", [JointTargetMode.NONE, JointTargetMode.VELOCITY])
@pytest.mark.parametrize("root", ["revolute", "free", "ball"])
def test_a_bead_on_a_turntable_flies_outward(root, mode):
    """On a radial rail that spins at w: r0 cosh(w t), whether the angle of the root is advanced or not."""
    rate, start = 2.0, 0.3
    builder = ModelBuilder(gravity=0.0)
    com = (0.4, 0.0, 0.0)
    table = builder.add_link(is_kinematic=True, mass=1.0, inertia=np.eye(3), com=com, label="table")
    bead = builder.add_link(mass=0.2, inertia=1e-3 * np.eye(3), label="bead")
    origin = ((0.0, 0.0, 0.0), IDENTITY)
    if root == "revolute":
        joint = builder.add_joint_revolute(-1, table, axis="z")
    elif root == "ball":
        joint = builder.add_joint_ball(-1, table)
    else:
        joint = builder.add_joint_free(table)
        origin = (com, IDENTITY)  # the velocity given is that of the centre of mass, which stays in place
    rail = builder.add_joint_prismatic(table, bead, axis="y", parent_xform=origin)
    builder.add_articulation([joint, rail])
    spin = 0 if root == "revolute" else 2 if root == "ball" else 5
    dofs = builder.joint_dof_count - 1
    builder.joint_qd[spin] = rate
    builder.joint_target_mode[:dofs] = mode
    builder.joint_target_vel[spin] = rate
    builder.joint_q[-1] = start
    with simulation_of(builder, dt=1e-3, **EXACT) as simulation:
        simulation.step(500)
        angle = rate * simulation.time
        # Semi-implicit velocities and midpoint positions are first order in w dt.
        assert simulation.state.joint_q.numpy()[-1] == pytest.approx(
            start * np.cosh(angle), rel=2 * rate * 1e-3
        )
        turned = simulation.state.body_q.numpy()[table][3:]
        half = 0.0 if mode is JointTargetMode.NONE else 0.5 * angle
        np.testing.assert_allclose(turned, [0.0, 0.0, np.sin(half), np.cos(half)], atol=1e-4)


def test_a_kinematic_crank_leads_the_joint_that_mimics_it():
    """Of a coupled pair the kinematic joint leads, whichever side of the coupling it is on."""
    builder = ModelBuilder(gravity=0.0)
    joints = []
    for kinematic in (True, False, False):
        link = builder.add_link(is_kinematic=kinematic, mass=1.0, inertia=np.eye(3))
        joints.append(builder.add_joint_revolute(-1, link, axis="z", actuator_mode=JointTargetMode.VELOCITY))
        builder.add_articulation([joints[-1]])
    builder.add_constraint_mimic(joints[1], joints[0], coef1=-0.5)
    builder.add_constraint_mimic(joints[0], joints[2], coef1=-0.25)
    builder.joint_target_vel[:] = [1.0, 0.0, 0.0]
    builder.joint_target_mode[1:] = JointTargetMode.NONE
    with simulation_of(builder, **EXACT) as simulation:
        simulation.step(200)
        q, qd = simulation.state.joint_q.numpy(), simulation.state.joint_qd.numpy()
        # The followers move at the rate in one step; the error of position that leaves halves in every step.
        np.testing.assert_allclose(qd, [1.0, -0.5, -4.0], rtol=1e-5)
        np.testing.assert_allclose(q, q[0] * np.array([1.0, -0.5, -4.0]), rtol=1e-3)


def test_bodies_become_dynamic_and_kinematic_between_recorded_steps():
    """Released it falls freely; caught again it stays at once, both in steps recorded before."""
    builder = ModelBuilder()
    ball = builder.add_body(is_kinematic=True, xform=((0.0, 0.0, 5.0), IDENTITY), mass=1.0, inertia=np.eye(3))
    builder.add_shape_sphere(ball, radius=0.1, cfg=ShapeConfig(density=0.0))
    builder.add_ground_plane()
    with simulation_of(builder) as simulation:
        model = simulation.model
        simulation.step(10)
        assert simulation.state.body_q.numpy()[ball][2] == 5.0
        saved = simulation.save()
        model.body_flags.fill_(int(BodyFlags.DYNAMIC))
        simulation.notify_model_changed(ModelFlags.BODY_PROPERTIES)
        simulation.step(40)
        # Positions move at the new velocity of each step: g h^2 (1 + 2 + ... + n).
        fallen = 0.5 * GRAVITY * 40 * 41 * DT**2
        assert simulation.state.body_q.numpy()[ball][2] == pytest.approx(5.0 - fallen, abs=1e-5)
        model.body_flags.fill_(int(BodyFlags.KINEMATIC))
        height = simulation.state.body_q.numpy()[ball][2]
        simulation.step(20)
        assert simulation.state.body_q.numpy()[ball][2] == height
        model.body_flags.fill_(int(BodyFlags.DYNAMIC))
        simulation.restore(saved)
        assert model.body_flags.numpy()[ball] == BodyFlags.KINEMATIC
        simulation.step(5)
        assert simulation.state.body_q.numpy()[ball][2] == 5.0


def test_switching_where_it_cannot_act_is_reported():
    """In a model made without kinematic bodies, and of bodies that hang on others."""
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    with simulation_of(builder) as simulation:
        simulation.model.body_flags.fill_(int(BodyFlags.KINEMATIC))
        with pytest.warns(StructureEditWarning, match="body_flags"):
            simulation.step()
        with pytest.raises(ValueError, match="body_flags: written to after finalize"):
            simulation.notify_model_changed(ModelFlags.BODY_PROPERTIES)
    with simulation_of(pendulum_on_cart()) as simulation:
        simulation.model.body_flags.assign([int(BodyFlags.KINEMATIC)] * 2)
        with pytest.raises(ValueError, match="body_flags of bodies that hang on others"):
            simulation.notify_model_changed(ModelFlags.BODY_PROPERTIES)
    with simulation_of(belt(1.0, slab=False)) as simulation:
        simulation.model.body_mass.fill_(0.0)
        simulation.model.body_flags.fill_(int(BodyFlags.DYNAMIC))
        with pytest.raises(ValueError, match=r"'belt'.*body_flags was set to 1.*mass and inertia"):
            simulation.notify_model_changed(ModelFlags.BODY_PROPERTIES)


def test_only_bodies_that_hang_on_the_world_are_kinematic():
    """Noticed by `add_articulation`, and by `finalize` where the flag was written later."""
    builder = ModelBuilder()
    links = [
        builder.add_link(mass=1.0, inertia=np.eye(3), is_kinematic=k == 1, label=f"l{k}") for k in range(2)
    ]
    joints = [builder.add_joint_revolute(-1, links[0]), builder.add_joint_revolute(*links, label="elbow")]
    message = (
        r"'elbow' \(index 1\): its child body 'l1' \(index 1\) is kinematic, but its parent is body 'l0'"
    )
    with pytest.raises(ValueError, match=message):
        builder.add_articulation(joints)
    builder.body_flags[:] = BodyFlags.DYNAMIC
    builder.add_articulation(joints)
    builder.body_flags[:] = BodyFlags.KINEMATIC
    with pytest.raises(ValueError, match=message):
        builder.finalize("cpu")


def test_a_world_with_a_kinematic_body_does_not_depend_on_its_neighbours():
    """The same bits alone and next to a world without kinematic bodies."""
    plain = ModelBuilder()
    plain.add_ground_plane(cfg=STIFF)
    slab_on(plain, 0.0)
    together = ModelBuilder()
    for world in (plain, belt(1.0), plain, pendulum_on_cart()):
        together.add_world(world)
    alone = ModelBuilder()
    alone.add_world(belt(1.0))
    ordinary = ModelBuilder()
    ordinary.add_world(plain)
    states = []
    for builder in (together, alone, ordinary):
        with simulation_of(builder) as simulation:
            simulation.step(50)
            starts = simulation.model.body_world_start.numpy()
            bodies = simulation.state.body_q.numpy()
            states.append([bodies[starts[w] : starts[w + 1]] for w in range(simulation.model.world_count)])
    np.testing.assert_array_equal(states[0][1], states[1][0])
    np.testing.assert_array_equal(states[0][0], states[2][0])
    np.testing.assert_array_equal(states[0][2], states[2][0])
