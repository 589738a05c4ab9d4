"""What sticks to something that turns stays where it is, and what rolls goes straight."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pluriverse import (
    CollisionPipeline,
    Contacts,
    JointTargetMode,
    ModelBuilder,
    SolverSAP,
    eval_fk,
)
from tests.oracles.multibody_dense import DenseWorld
from tests.oracles.random_scenes import random_contacts, random_world, randomize_state

IDENTITY = (0.0, 0.0, 0.0, 1.0)
SPEED = 2.0
RADIUS = 0.6


def run(model, step_count: int, dt: float, control=None, each=None, **options):
    """The state after so many steps; `each(step, control)` is called before every one."""
    solver, pipeline = SolverSAP(model, **options), CollisionPipeline(model)
    state, other, contacts = model.state(), model.state(), pipeline.contacts()
    eval_fk(model, state.joint_q, state.joint_qd, state)
    for step in range(step_count):
        if each is not None:
            each(step, control)
        pipeline.collide(state, contacts)
        solver.step(state, other, control, contacts, dt)
        state, other = other, state
    assert solver.world_frozen.numpy().max() == 0
    return state


def turntable(kind: str) -> ModelBuilder:
    """A disc that turns about the vertical axis, with a box that lies on it and turns along."""
    builder = ModelBuilder()
    if kind == "hinge":
        disc = builder.add_link(mass=10.0, inertia=np.eye(3))
        height = ((0.0, 0.0, 1.0), IDENTITY)
        hinge = builder.add_joint_revolute(
            -1, disc, axis="z", parent_xform=height, target_vel=SPEED, target_kd=1e5
        )
        builder.add_articulation([hinge])
        builder.joint_qd[-1] = SPEED
    else:
        disc = builder.add_body(
            xform=((0.0, 0.0, 1.0), IDENTITY), mass=10.0, inertia=np.eye(3), is_kinematic=True
        )
        builder.joint_qd[-1] = SPEED
        if kind == "kinematic":  # otherwise its surface moves and its pose does not
            builder.joint_target_mode[-6:] = [int(JointTargetMode.VELOCITY)] * 6
            builder.joint_target_vel[-1] = SPEED
    builder.add_shape_cylinder(disc, radius=1.0, half_height=0.02)
    # Where the body's origin is and where its centre of mass is must not matter.
    box = builder.add_body(xform=((RADIUS + 0.1, 0.0, 1.07), IDENTITY))
    builder.add_shape_box(box, xform=((-0.1, 0.0, 0.0), IDENTITY), hx=0.05, hy=0.05, hz=0.05)
    builder.joint_qd[-6:] = [0.0, SPEED * RADIUS, 0.0, 0.0, 0.0, SPEED]
    return builder


@pytest.mark.parametrize("kind", ["hinge", "kinematic", "conveyor"])
def test_a_box_on_a_turntable_keeps_its_radius(kind):
    """One turn at 5 ms: along the tangents of its arc it would slide outward by 19 mm."""
    dt = 0.005
    state = run(turntable(kind).finalize("cpu"), round(2.0 * math.pi / SPEED / dt), dt)
    pose = state.body_q.numpy()[-1].astype(float)
    centre = pose[:3] + Rotation.from_quat(pose[3:]).apply([-0.1, 0.0, 0.0])
    assert math.hypot(*centre[:2]) == pytest.approx(RADIUS, abs=1e-4)


@pytest.mark.parametrize("dt", [0.002, 0.01])
def test_an_object_in_the_fingers_of_a_swinging_arm_stays_there(dt):
    """Three hinges about three axes at up to 1.2 rad/s; without chords it creeps by 4 and 19 mm."""
    builder = ModelBuilder()
    drive = {"target_ke": 2e4, "target_kd": 400.0, "armature": 0.05}
    links = [builder.add_link(mass=2.0, com=(0.15, 0.0, 0.0), inertia=0.02 * np.eye(3)) for _ in range(3)]
    joints = [
        builder.add_joint_revolute(
            links[place - 1] if place else -1,
            links[place],
            axis="zyx"[place],
            parent_xform=((0.3 if place else 0.0, 0.0, 0.0), IDENTITY),
            **drive,
        )
        for place in range(3)
    ]
    grip = {"target_ke": 1e4, "target_kd": 50.0, "target_pos": 0.005, "armature": 0.05}
    for side in (1.0, -1.0):
        finger = builder.add_link(mass=0.1, inertia=1e-4 * np.eye(3))
        builder.add_shape_box(finger, hx=0.02, hy=0.01, hz=0.02)
        frame = ((0.35, 0.06 * side, 0.0), IDENTITY)
        joints.append(
            builder.add_joint_prismatic(links[2], finger, axis=(0.0, -side, 0.0), parent_xform=frame, **grip)
        )
    builder.add_articulation(joints)
    thing = builder.add_body(xform=((0.95, 0.0, 0.0), IDENTITY))
    builder.add_shape_box(thing, hx=0.02, hy=0.05, hz=0.06)
    model = builder.finalize("cpu")
    control = model.control()
    target, rate = control.joint_target_pos.numpy().copy(), control.joint_target_vel.numpy().copy()
    phase = np.array([0.0, 1.0, 2.0])

    def swing(step, control):
        time = step * dt
        share = 1.0 - math.exp(-((time / 0.5) ** 2))
        target[:3] = 0.6 * share * (np.sin(2.0 * time + phase) - np.sin(phase))
        rate[:3] = 1.2 * share * np.cos(2.0 * time + phase)
        control.joint_target_pos.assign(target)
        control.joint_target_vel.assign(rate)

    places = []
    for seconds in (0.5, 3.0):
        state = run(model, round(seconds / dt), dt, control, swing)
        hand, held = (state.body_q.numpy()[body].astype(float) for body in (links[2], thing))
        turn = Rotation.from_quat(hand[3:]).inv()
        places.append(
            np.r_[turn.apply(held[:3] - hand[:3]), (turn * Rotation.from_quat(held[3:])).as_rotvec()]
        )
    drift = places[1] - places[0]
    # Fingers yield to the weight along y, their own axis; around it friction has the shortest lever.
    assert math.hypot(drift[0], drift[2]) < 2e-4
    assert np.abs(drift[3:]).max() < 2e-2


def test_a_ball_that_rolls_and_spins_goes_straight():
    """Its points are accelerated, but the point of contact stays below its centre."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    ball = builder.add_body(xform=((0.0, 0.0, 0.1), IDENTITY))
    builder.add_shape_sphere(ball, radius=0.1)
    builder.joint_qd[:] = [2.0, 0.0, 0.0, 0.0, 20.0, 50.0]
    state = run(builder.finalize("cpu"), 100, 0.005)
    np.testing.assert_allclose(state.body_q.numpy()[0, :3], [1.0, 0.0, 0.1], atol=1e-4)
    np.testing.assert_allclose(state.body_qd.numpy()[0], [2.0, 0.0, 0.0, 0.0, 20.0, 50.0], atol=1e-3)


def test_a_rod_that_lands_on_both_ends_gets_no_friction_between_them():
    """Their accelerations point to each other, but by its centre of mass the rod has none."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    rod = builder.add_body(xform=((0.0, 0.0, 0.1), IDENTITY))
    for end in (-0.5, 0.5):
        builder.add_shape_sphere(rod, xform=((end, 0.0, 0.0), IDENTITY), radius=0.1)
    builder.joint_qd[:] = [0.0, 0.0, -3.0, 0.0, 5.0, 0.0]
    model = builder.finalize("cpu")
    solver, pipeline = SolverSAP(model), CollisionPipeline(model)
    state, contacts = model.state(), pipeline.contacts()
    eval_fk(model, state.joint_q, state.joint_qd, state)
    pipeline.collide(state, contacts)
    solver.step(state, model.state(), None, contacts, 0.005)
    impulse = solver.workspace.contact_impulse.numpy()[:2]
    assert (impulse[:, 2] > 1.0).all()
    assert np.abs(impulse[0, :2] - impulse[1, :2]).max() < 1e-6 * impulse[:, 2].max()


def _tree_origin(dense: DenseWorld, body: int, joint_of, parents) -> np.ndarray:
    """The origin of the root body of the tree of a body."""
    while parents[joint_of[body]] >= 0:
        body = int(parents[joint_of[body]])
    return dense.motion[body].position


def _chord(dense: DenseWorld, bodies, kinds, point: np.ndarray) -> np.ndarray:
    """h/2 of the acceleration of the second body at a point against the first, from each other's frames."""
    seen = 0 if kinds[0] > kinds[1] else 1

    def motion(body):
        """Centre, spin, and how a point moves and is accelerated, all in world axes."""
        of = dense.motion[body]
        com = of.rotation @ dense.model.body_com.numpy()[body].astype(float) if body >= 0 else np.zeros(3)
        acceleration = of.acceleration.copy()
        if body >= 0 and kinds[bodies.index(body)] == 2:
            acceleration += np.cross(of.omega, np.cross(of.omega, com))
        rate = lambda x: of.velocity + np.cross(of.omega, x - of.position)  # noqa: E731
        bend = lambda x: (  # noqa: E731
            acceleration
            + np.cross(of.alpha, x - of.position)
            + np.cross(of.omega, np.cross(of.omega, x - of.position))
        )
        return of.position + com, of, rate, bend

    centre, own, rate, bend = motion(bodies[seen])
    _, other, other_rate, other_bend = motion(bodies[1 - seen])
    result = bend(centre) - other_bend(centre)
    result -= 2.0 * np.cross(other.omega, rate(centre) - other_rate(centre))
    turn = own.alpha - other.alpha - np.cross(other.omega, own.omega)
    result += np.cross(turn, point - centre)
    return 0.5 * dense.dt * (result if seen == 1 else -result)


@pytest.mark.parametrize("copies", [1, 9])
def test_chords_equal_those_of_textbook_kinematics(copies):
    """Random trees of all kinds of joints, single bodies, and the ground; also where worlds go in lanes."""
    dt, count = 0.005, 24
    rng = np.random.default_rng(5)
    builder = ModelBuilder()
    world = random_world(rng, (5, 1, 4, 1, 2))
    for _ in range(copies):
        builder.add_world(world)
    model = builder.finalize("cpu")
    state, control = model.state(), model.control()
    contacts = Contacts(model, count)
    for index in range(copies):
        randomize_state(model, state, control, rng, index)
        random_contacts(model, state, control, contacts, rng, index, count)
    solver = SolverSAP(model, max_iterations=0)
    solver.step(state, model.state(), control, contacts, dt)
    sap = solver.workspace
    start = contacts.rigid_contact_start.numpy()
    checked = 0
    for index in {0, copies - 1}:
        dense = DenseWorld(model, state, control, index, dt)
        parents, children = model.joint_parent.numpy(), model.joint_child.numpy()
        roots = {int(children[joint]) for joint in dense.joints if parents[joint] < 0}
        carriers = {int(parents[joint]) for joint in dense.joints}
        joint_of = {int(children[joint]): int(joint) for joint in dense.joints}
        for slot in range(start[index], start[index] + count):
            shapes = [int(getattr(contacts, f"rigid_contact_shape{side}").numpy()[slot]) for side in (0, 1)]
            bodies = [int(model.shape_body.numpy()[shape]) for shape in shapes]
            kinds = []
            for body in bodies:
                alone = body in roots and body not in carriers
                free = alone and model.joint_type.numpy()[joint_of[body]] == 4
                kinds.append(0 if body < 0 else 2 if free else 1)
            side = 1 if bodies[1] >= 0 else 0
            tree = _tree_origin(dense, bodies[side], joint_of, parents)
            point = tree + getattr(sap, f"contact_arm{side}").numpy()[slot]
            wanted = _chord(dense, bodies, kinds, point) @ sap.contact_frame.numpy()[slot][:, :2]
            np.testing.assert_allclose(sap.contact_chord.numpy()[slot], wanted, rtol=1e-8, atol=1e-10)
            checked += int(np.abs(wanted).max() > 1e-3)
    assert checked > 10
