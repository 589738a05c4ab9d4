"""Known ways for such a simulator to go wrong without a word, each with a test that this one does not.

Closed forms (test_closed_forms.py):
- lever arm of rounded shapes up to their centre: `test_sliding_ball_ends_in_pure_rolling...`, and
  `test_contact_points_of_round_shapes_lie_on_the_surface`, `test_lying_capsule_rolls_by_its_radius` here
- no friction becomes a default friction: `test_zero_friction_is_frictionless`
- damping, dry friction, armature dropped: `test_damped_fall...`, `test_dry_friction...`, `test_armature...`
- an effort limit of zero means unlimited: `test_effort_limit_of_zero_means_no_effort`

Here:
- small inertia inflated to a floor: `test_inertia_of_a_millimetre_part_is_its_own`
- joint velocity reported as that of the body: `test_body_velocity_is_that_of_the_centre_of_mass`
- warm start that outlives a reset: `test_reset_state_repeats_the_same_bits`
- rotations of first order only: `test_exponential_map_conserves_energy_under_the_drake_preset`
- contact forces not readable: `test_contact_forces_carry_the_weight`
- immovable contacts loosen convergence: `test_contacts_between_immovable_shapes_change_nothing`
- frame of a free joint applied twice: `test_free_joint_starts_where_its_body_was_put`
- overflow silent, busy world starves others: `test_overflow_is_counted_in_its_own_world_only`
- failure reported as success: `test_unconverged_steps_are_counted...`, `test_world_with_nan_is_frozen_alone`
- no control, no sensible step: `test_step_without_control`, `test_time_step_must_be_positive`
- listed order changes the dynamics: `test_order_of_bodies_and_joints_does_not_matter`
- drives that do nothing: `test_drive_follows_its_gains_without_a_mode`
- edits of the model ignored: `test_edits_of_the_model_act_on_the_next_step`
- worlds must be alike: every test, the worlds of a batch differ
- order of contacts decided by timing: `test_repeated_runs_give_the_same_bits`

Velocity-product forces of moving axes are in the reference of `tests/solvers`; what concerns importers and
scene files is in `tests/importers` and `tests/scene`.
"""

import warnings

import numpy as np
import pytest
import warp as wp

from pluriverse import CollisionPipeline, JointTargetMode, ModelBuilder, ShapeConfig, SolverSAP, eval_fk
from tests.oracles.multibody_dense import rotation_matrix
from tests.physics.laboratory import GRAVITY

DT = 0.005


class Loop:
    """A model with its solver and everything that a step needs."""

    def __init__(self, worlds, *, rigid_contact_max=None, preset="approx32", **options):
        builder = ModelBuilder()
        for build in worlds:
            world = ModelBuilder()
            build(world)
            builder.add_world(world)
        self.model = builder.finalize("cpu")
        self.state, self.following = self.model.state(), self.model.state()
        self.control = self.model.control()
        self.pipeline = CollisionPipeline(self.model, rigid_contact_max=rigid_contact_max)
        self.contacts = self.pipeline.contacts()
        self.solver = SolverSAP(self.model, contact_preset_variant=preset, **options)

    def set_velocity(self, *velocity: float) -> None:
        self.state.joint_qd.assign(np.array(velocity, dtype=np.float32))
        eval_fk(self.model, self.state.joint_q, self.state.joint_qd, self.state)

    def run(self, step_count: int, dt: float = DT) -> None:
        for _ in range(step_count):
            self.pipeline.collide(self.state, self.contacts)
            self.solver.step(self.state, self.following, self.control, self.contacts, dt)
            self.state, self.following = self.following, self.state

    def world_q(self, world: int) -> np.ndarray:
        start = self.model.joint_coord_world_start.numpy()
        return self.state.joint_q.numpy()[start[world] : start[world + 1]]


MATERIAL = ShapeConfig(ke=1e5, tau=0.01, mu=0.5, gap=0.01)


def at(x: float, y: float, z: float) -> wp.transform:
    return wp.transform((x, y, z), wp.quat_identity())


def box_on_ground(builder: ModelBuilder) -> None:
    builder.add_ground_plane(cfg=MATERIAL)
    body = builder.add_body(xform=at(0.0, 0.0, 0.1))
    builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=MATERIAL)


def two_boxes_on_ground(builder: ModelBuilder) -> None:
    box_on_ground(builder)
    body = builder.add_body(xform=at(0.5, 0.0, 0.12))
    builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=MATERIAL)


def two_link_arm(builder: ModelBuilder, *, tip_first: bool = False, drives: bool = False) -> None:
    """Two links of different mass on hinges; bodies and joints may be listed tip first."""
    properties = [
        {"mass": 1.0, "com": (0.2, 0.0, 0.0), "inertia": np.diag((0.01, 0.02, 0.03))},
        {"mass": 0.3, "com": (0.1, 0.05, 0.0), "inertia": np.diag((0.004, 0.003, 0.002))},
    ]
    links = {}
    for entry in (1, 0) if tip_first else (0, 1):
        links[entry] = builder.add_link(**properties[entry])
    drive = {"target_ke": 20.0, "target_kd": 1.0, "target_pos": 0.4} if drives else {}
    joints = []
    for entry in (1, 0) if tip_first else (0, 1):
        parent, place = (-1, at(0.0, 0.0, 1.0)) if entry == 0 else (links[0], at(0.4, 0.0, 0.0))
        joints.append(
            builder.add_joint_revolute(
                parent, links[entry], parent_xform=place, axis=(0.0, 1.0, 0.2), **drive
            )
        )
    builder.add_articulation(joints)


def test_contact_points_of_round_shapes_lie_on_the_surface():
    def round_shapes(builder):
        builder.add_ground_plane(cfg=MATERIAL)
        ball = builder.add_body(xform=at(0.0, 0.0, 0.099))
        builder.add_shape_sphere(ball, radius=0.1, cfg=MATERIAL)
        rod = builder.add_body(xform=wp.transform((1.0, 0.0, 0.049), (0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5))))
        builder.add_shape_capsule(rod, radius=0.05, half_height=0.2, cfg=MATERIAL)

    loop = Loop([round_shapes])
    loop.pipeline.collide(loop.state, loop.contacts)
    count = int(loop.contacts.rigid_contact_count.numpy()[0])
    poses, bodies = loop.state.body_q.numpy(), loop.model.shape_body.numpy()
    heights = []
    for slot in range(count):
        for side in (0, 1):
            body = bodies[getattr(loop.contacts, f"rigid_contact_shape{side}").numpy()[slot]]
            point = getattr(loop.contacts, f"rigid_contact_point{side}").numpy()[slot]
            if body >= 0:
                heights.append((rotation_matrix(poses[body, 3:]) @ point + poses[body, :3])[2])
    assert count == 3, "one for the ball, two for the rod"
    np.testing.assert_allclose(heights, -1e-3, atol=1e-6)


@pytest.mark.parametrize("preset", ["approx32", "drake"])
def test_lying_capsule_rolls_by_its_radius(preset):
    """Pushed sideways, a cylinder-like rod ends rolling: v = omega r, not half of it."""

    def rod(builder):
        builder.add_ground_plane(cfg=MATERIAL)
        body = builder.add_body(xform=wp.transform((0.0, 0.0, 0.05), (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))))
        builder.add_shape_capsule(body, radius=0.05, half_height=0.2, cfg=MATERIAL)

    loop = Loop([rod], preset=preset)
    loop.set_velocity(0.5, 0.0, 0.0, 0.0, 0.0, 0.0)
    loop.run(200)
    velocity = loop.state.joint_qd.numpy()
    assert velocity[0] > 0.25
    assert velocity[4] * 0.05 == pytest.approx(velocity[0], rel=5e-3)


def test_inertia_of_a_millimetre_part_is_its_own():
    """A cube of 5 mm and 0.125 g has 5.2e-10 kg m^2, and a torque turns it accordingly."""

    def crumb(builder):
        body = builder.add_body()
        builder.add_shape_box(body, hx=0.0025, hy=0.0025, hz=0.0025, cfg=ShapeConfig(density=1000.0))

    loop = Loop([crumb, box_on_ground])
    expected = 1.25e-4 * 0.005**2 / 6.0
    np.testing.assert_allclose(
        loop.model.body_inertia.numpy()[0], expected * np.eye(3), rtol=1e-5, atol=1e-15
    )
    force = loop.state.body_f.numpy()
    force[0] = [0.0, 0.0, 0.0, 0.0, 0.0, 1e-9]
    loop.state.body_f.assign(force)
    loop.run(1)
    assert loop.state.joint_qd.numpy()[5] == pytest.approx(1e-9 / expected * DT, rel=1e-4)


def test_body_velocity_is_that_of_the_centre_of_mass():
    """A hinge at 1 rad/s moves centres of mass 0.5 m and 1.5 m away at 0.5 m/s and 1.5 m/s."""

    def chain(builder):
        links = [builder.add_link(mass=1.0, com=(0.5, 0.0, 0.0), inertia=0.1 * np.eye(3)) for _ in range(2)]
        joints = [
            builder.add_joint_revolute(-1, links[0], axis=(0.0, 0.0, 1.0)),
            builder.add_joint_revolute(
                links[0], links[1], parent_xform=at(1.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0)
            ),
        ]
        builder.add_articulation(joints)

    loop = Loop([chain])
    loop.set_velocity(1.0, 0.0)
    expected = [[0.0, 0.5, 0.0, 0.0, 0.0, 1.0], [0.0, 1.5, 0.0, 0.0, 0.0, 1.0]]
    np.testing.assert_allclose(loop.state.body_qd.numpy(), expected, atol=1e-6)


def test_reset_state_repeats_the_same_bits():
    """Nothing but the state decides a step, so a world that is put back does the same again."""
    loop = Loop([box_on_ground, two_boxes_on_ground])
    start = loop.model.state()
    loop.run(50)
    first = loop.state.joint_q.numpy().copy()
    loop.state.assign(start)
    loop.run(50)
    np.testing.assert_array_equal(loop.state.joint_q.numpy(), first)


def test_repeated_runs_give_the_same_bits():
    runs = []
    for _ in range(2):
        loop = Loop([two_boxes_on_ground, box_on_ground])
        loop.set_velocity(*np.linspace(-1.0, 1.0, 18))
        loop.run(50)
        runs.append(loop.state.joint_q.numpy().copy())
    np.testing.assert_array_equal(*runs)


def test_exponential_map_conserves_energy_under_the_drake_preset():
    def top(builder):
        builder.add_body(mass=1.0, inertia=np.diag((0.03, 0.02, 0.01)))

    loop = Loop([top], preset="drake", position_integration="midpoint")
    loop.model.set_gravity(0.0)
    loop.set_velocity(0.0, 0.0, 0.0, 0.1, 10.0, 0.1)

    def energy() -> float:
        rotation = rotation_matrix(loop.state.body_q.numpy()[0, 3:])
        omega = loop.state.body_qd.numpy()[0, 3:]
        return float(0.5 * omega @ rotation @ np.diag((0.03, 0.02, 0.01)) @ rotation.T @ omega)

    initial = energy()
    loop.run(400)
    assert energy() == pytest.approx(initial, rel=2e-3)


@pytest.mark.parametrize("preset", ["approx32", "drake"])
def test_contact_forces_carry_the_weight(preset):
    loop = Loop([box_on_ground, two_boxes_on_ground], preset=preset)
    loop.run(200)
    start, count = loop.contacts.rigid_contact_start.numpy(), loop.contacts.rigid_contact_count.numpy()
    forces, bodies = loop.contacts.rigid_contact_force.numpy(), loop.model.shape_body.numpy()
    for world, weight in ((0, 8.0 * GRAVITY), (1, 16.0 * GRAVITY)):
        slots = slice(start[world], start[world] + count[world])
        sign = np.where(bodies[loop.contacts.rigid_contact_shape1.numpy()[slots]] >= 0, 1.0, -1.0)
        total = (sign[:, None] * forces[slots]).sum(axis=0)
        np.testing.assert_allclose(total, [0.0, 0.0, weight], atol=1e-3 * weight)


def test_contacts_between_immovable_shapes_change_nothing():
    def with_fixed_boxes(builder):
        box_on_ground(builder)
        for x in (2.0, 2.1):
            builder.add_shape_box(-1, xform=at(x, 0.0, 0.0), hx=0.1, hy=0.1, hz=0.1, cfg=MATERIAL)

    loop = Loop([box_on_ground, with_fixed_boxes], line_search_variant="monotone_decay")
    loop.set_velocity(*(0.7, 0.2, -0.5, 1.0, 2.0, 3.0) * 2)
    loop.run(60)
    np.testing.assert_array_equal(loop.world_q(0), loop.world_q(1))


def test_free_joint_starts_where_its_body_was_put():
    def turned(builder):
        link = builder.add_link(
            xform=wp.transform((1.0, 2.0, 3.0), (0.5, 0.5, 0.5, 0.5)), mass=1.0, inertia=np.eye(3)
        )
        builder.add_articulation([builder.add_joint_free(link)])

    loop = Loop([turned])
    loop.set_velocity(1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    np.testing.assert_allclose(loop.state.body_q.numpy()[0], [1.0, 2.0, 3.0, 0.5, 0.5, 0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(loop.state.body_qd.numpy()[0, :3], [1.0, 0.0, 0.0], atol=1e-6)

    def shifted(builder):
        link = builder.add_link(xform=at(1.0, 0.0, 1.0), mass=1.0, inertia=np.eye(3))
        frame = wp.transform((0.0, 0.0, 1.0), (0.5, 0.5, 0.5, 0.5))
        builder.add_articulation([builder.add_joint_free(link, parent_xform=frame)])

    loop = Loop([shifted])
    np.testing.assert_allclose(loop.state.body_q.numpy()[0, :3], [1.0, 0.0, 1.0], atol=1e-6)
    loop.set_velocity(1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    loop.run(10)
    # The velocity is that of world axes, although the joint's frame is turned.
    assert loop.state.body_q.numpy()[0, 0] == pytest.approx(1.0 + 10 * DT, abs=1e-5)


def test_overflow_is_counted_in_its_own_world_only():
    """A world with too few slots keeps its deepest contacts, says so, and takes nothing from others."""
    loop = Loop([two_boxes_on_ground, box_on_ground, two_boxes_on_ground], rigid_contact_max=[5, 8, 16])
    free = Loop([two_boxes_on_ground, box_on_ground, two_boxes_on_ground], rigid_contact_max=16)
    loop.run(40)
    free.run(40)
    np.testing.assert_array_equal(loop.contacts.rigid_contact_found.numpy()[1:], [4, 8])
    np.testing.assert_array_equal(loop.solver.last_truncated_contact_count.numpy(), [3, 0, 0])
    np.testing.assert_array_equal(loop.solver.last_contact_count.numpy(), [5, 4, 8])
    assert loop.solver.truncated_step_count.numpy()[0] > 0
    for world in (1, 2):
        np.testing.assert_array_equal(loop.world_q(world), free.world_q(world))
    with pytest.warns(UserWarning, match=r"world 0.*needs 8.*has 5"):
        loop.solver.report()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loop.solver.report()  # said once


def test_unconverged_steps_are_counted_and_reported():
    loop = Loop([box_on_ground, box_on_ground], max_iterations=1, optimality_rel_tol=1e-12)
    loop.set_velocity(1.0, 0.5, -2.0, 3.0, -4.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    loop.run(3)
    counts = loop.solver.unconverged_step_count.numpy()
    assert counts[0] > 0
    with pytest.warns(UserWarning, match=r"world.*0.*max_iterations"):
        loop.solver.report()


def test_world_with_nan_is_frozen_alone():
    loop = Loop([box_on_ground, box_on_ground, two_boxes_on_ground])
    alone = Loop([box_on_ground, box_on_ground, two_boxes_on_ground])
    control = loop.control.joint_f.numpy()
    control[0] = np.nan
    loop.control.joint_f.assign(control)
    loop.run(20)
    alone.run(20)
    np.testing.assert_array_equal(loop.solver.world_frozen.numpy(), [1, 0, 0])
    assert np.isfinite(loop.state.joint_q.numpy()).all()
    for world in (1, 2):
        np.testing.assert_array_equal(loop.world_q(world), alone.world_q(world))
    with pytest.warns(UserWarning, match=r"world 0\b"):
        loop.solver.report()


def test_step_without_control():
    loop = Loop([two_link_arm])
    other = Loop([two_link_arm])
    loop.solver.step(loop.state, loop.following, None, None, DT)
    other.solver.step(other.state, other.following, other.control, other.contacts, DT)
    np.testing.assert_array_equal(loop.following.joint_q.numpy(), other.following.joint_q.numpy())


@pytest.mark.parametrize("dt", [0.0, -0.005, np.nan, np.inf])
def test_time_step_must_be_positive(dt):
    loop = Loop([two_link_arm])
    with pytest.raises(ValueError, match=r"dt"):
        loop.solver.step(loop.state, loop.following, None, None, dt)


def test_order_of_bodies_and_joints_does_not_matter():
    loop = Loop(
        [lambda b: two_link_arm(b, drives=True), lambda b: two_link_arm(b, tip_first=True, drives=True)]
    )
    loop.run(100)
    np.testing.assert_array_equal(loop.world_q(0), loop.world_q(1)[::-1])


def test_drive_follows_its_gains_without_a_mode():
    """Gains alone make a drive; a joint without gains has none."""
    loop = Loop([lambda b: two_link_arm(b, drives=True), two_link_arm])
    loop.model.set_gravity(0.0)
    loop.run(600)
    np.testing.assert_allclose(loop.world_q(0), 0.4, atol=1e-3)
    np.testing.assert_allclose(loop.world_q(1), 0.0, atol=1e-6)


def test_edits_of_the_model_act_on_the_next_step():
    """Gravity, gains, masses and friction are read live."""
    loop = Loop([two_link_arm, box_on_ground])
    loop.run(1)
    loop.model.set_gravity((0.0, 0.0, 0.0))
    mode, ke = loop.model.joint_target_mode.numpy(), loop.model.joint_target_ke.numpy()
    mode[0], ke[0] = JointTargetMode.POSITION, 50.0
    loop.model.joint_target_mode.assign(mode)
    loop.model.joint_target_ke.assign(ke)
    before = loop.state.joint_qd.numpy().copy()
    loop.control.joint_target_pos.assign(np.full(8, 1.0, dtype=np.float32))
    loop.run(1)
    after = loop.state.joint_qd.numpy()
    assert after[0] > before[0] + 0.1, "the drive that was switched on pushes"
    assert after[4] >= before[4] - 1e-6, "without gravity the box no longer falls"
