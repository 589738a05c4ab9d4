"""Side walls of height fields: beside its border a field is the side of a block."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pluriverse as pv
from tests.collision.pairs import box, collide_pairs, random_poses, sphere
from tests.collision.surface.test_height_field import FLAT, GAP, SEARCH, SHAPES, UPRIGHT, mechanical_energy

BLOCK = box(2.0, 2.0, 4.0)  # what a level field of half width 2 m fills, to 8 m below it
BLOCK_POSE = np.array([0.0, 0.0, -4.0, *UPRIGHT])


def poses_around_the_border(count: int, seed: int) -> np.ndarray:
    """Return poses of shapes outside of the block, near its sides, upper edges and corners."""
    rng = np.random.default_rng(seed)
    poses = random_poses(rng, count, 0.8)
    across = rng.uniform(0.0, 0.5, count)
    along = rng.choice([0.0, 1.0, 1.9, 2.05], count) + rng.uniform(-0.1, 0.1, count)
    sign = rng.choice([-1.0, 1.0], (count, 2))
    places = np.stack([2.0 + across, along], axis=1) * sign
    poses[:, :2] = np.where((np.arange(count) % 2 == 0)[:, None], places, places[:, ::-1])
    poses[:, 2] = rng.choice([-1.0, -0.2, 0.0, 0.15], count) + rng.uniform(-0.1, 0.1, count)
    return poses.astype(np.float32).astype(np.float64)


def deepest(contacts):
    """Return distance and normal, away from the ground, of the deepest contact."""
    index = contacts.distance.argmin()
    return contacts.distance[index], contacts.normal[index] * (1 if contacts.shape0[index] % 2 == 0 else -1)


@pytest.mark.parametrize("name", SHAPES)
def test_the_border_of_a_level_field_is_that_of_a_block(name: str):
    """Around sides, edges and corners: distance and normal of the box that fills the same space."""
    poses = poses_around_the_border(80, seed=9)
    block = np.tile(BLOCK_POSE, (len(poses), 1))
    apart = []
    for pose, a, b in zip(
        poses,
        collide_pairs(FLAT, SHAPES[name], poses, poses, gap=GAP),
        collide_pairs(BLOCK, SHAPES[name], block, poses, gap=GAP),
        strict=True,
    ):
        assert (a.count > 0) == (b.count > 0)
        if b.count > 0 and deepest(b)[0] > 0.01:
            distance, normal = deepest(a)
            expected, reference = deepest(b)
            assert distance == pytest.approx(expected, abs=2 * SEARCH)
            assert normal @ reference > 1.0 - 1e-5
            apart.append((pose, expected, reference))
    assert len(apart) >= 20
    # Moved along the normal until they overlap by 3 mm, half a percent of the shapes: the same at the sides
    # and the top. At an edge the depth is that of one of its triangles, which may be left by another way.
    moved = np.array([pose for pose, _, _ in apart])
    moved[:, :3] -= np.array([(distance + 0.003) * normal for _, distance, normal in apart])
    for (_, _, reference), contacts in zip(
        apart, collide_pairs(FLAT, SHAPES[name], moved, moved), strict=True
    ):
        distance, normal = deepest(contacts)
        if np.abs(reference).max() > 1.0 - 1e-6:
            assert distance == pytest.approx(-0.003, abs=2 * SEARCH)
            assert normal @ reference > 1.0 - 1e-6
        else:
            assert -0.006 < distance < 0.0
            assert normal @ reference > 0.2


@pytest.mark.parametrize("name", ["sphere", "box", "cylinder", "hull"])
def test_a_shape_that_sank_into_a_side_leaves_by_the_shorter_way(name: str):
    """Its middle is 2 cm behind the wall and half a metre below the top: it is pushed out sideways."""
    shape = SHAPES[name]
    for turn in range(4):
        rotation = Rotation.from_euler("z", 0.5 * np.pi * turn)
        pose = np.array([[*rotation.apply([1.98, 0.3, -0.5]), *rotation.as_quat()]])
        (contacts,) = collide_pairs(FLAT, shape, pose, pose)
        distance, normal = deepest(contacts)
        np.testing.assert_allclose(normal, rotation.apply([1.0, 0.0, 0.0]), atol=1e-3)
        (reference,) = collide_pairs(BLOCK, shape, BLOCK_POSE[None], pose)
        assert distance == pytest.approx(deepest(reference)[0], abs=1e-4)


def test_a_ball_that_rolls_against_the_side_of_a_field_stays_outside():
    """Fast and slow, it comes to the wall, not into it, and gains neither height nor energy."""
    material = {"gap": 0.01, "ke": 1e5, "mu": 0.0}
    speeds = [0.5, 3.0, 15.0]
    builder = pv.ModelBuilder()
    for speed in speeds:
        world = pv.ModelBuilder()
        FLAT.add(world, -1, xform=(0.0, 0.0, 0.5, *UPRIGHT), **material)
        body = world.add_body(xform=(2.5, 0.2, 0.1, *UPRIGHT))
        sphere(0.1).add(world, body, **material)
        world.joint_qd[0] = -speed
        builder.add_world(world)
    builder.add_ground_plane(cfg=pv.ShapeConfig(**material))
    model = builder.finalize("cpu")
    pipeline, solver, control = pv.CollisionPipeline(model), pv.SolverSAP(model), model.control()
    contacts, states = pipeline.contacts(), [model.state(), model.state()]
    energy = mechanical_energy(model, states[0])
    nearest, highest = np.full(3, np.inf), np.zeros(3)
    for _ in range(300):
        pipeline.collide(states[0], contacts)
        solver.step(states[0], states[1], control, contacts, 0.005)
        states.reverse()
        place = states[0].body_q.numpy()
        nearest, highest = np.minimum(nearest, place[:, 0]), np.maximum(highest, place[:, 2])
    # Without dissipation a ball dents the wall by speed times sqrt(m / k), where k is that of two in series.
    dent = np.array(speeds) * np.sqrt(model.body_mass.numpy() / 5e4)
    assert (nearest > 2.1 - dent).all()
    assert (nearest < 2.1 + 0.01).all()
    assert (highest < 0.1 + 0.02).all()
    assert (mechanical_energy(model, states[0]) < energy).all()


def test_a_box_rests_on_the_border_and_across_two_fields():
    """Half over the border it lies still, and on the seam of two fields of one height it feels no wall."""
    material = {"gap": 0.002, "ke": 1e5, "mu": 0.7}
    builder = pv.ModelBuilder()
    for neighbour in (False, True):
        world = pv.ModelBuilder()
        FLAT.add(world, -1, **material)
        if neighbour:
            FLAT.add(world, -1, xform=(4.0, 0.0, 0.0, *UPRIGHT), **material)
        body = world.add_body(xform=(2.0 - (0.0 if neighbour else 0.05), 0.03, 0.1, *UPRIGHT))
        box(0.2, 0.2, 0.1).add(world, body, **material)
        builder.add_world(world)
    model = builder.finalize("cpu")
    pipeline, solver, control = pv.CollisionPipeline(model), pv.SolverSAP(model), model.control()
    contacts, states = pipeline.contacts(), [model.state(), model.state()]
    start = states[0].body_q.numpy().copy()
    for _ in range(300):
        pipeline.collide(states[0], contacts)
        solver.step(states[0], states[1], control, contacts, 0.005)
        states.reverse()
    # Rounding of contact points over the static penetration, as for bodies on any ground.
    assert np.abs(states[0].body_qd.numpy()).max() < 2e-5
    moved = states[0].body_q.numpy() - start
    weight = 9.81 * model.body_mass.numpy()
    # Across the seam each field carries half of it, on two corners of the box and two points of the seam.
    np.testing.assert_allclose(moved[1, :3], [0.0, 0.0, -weight[1] / (8 * 5e4)], atol=1e-5)
    # At the border 0.8 of the weight is on the edge, 0.05 m from the middle of the box, and 0.2 on corners
    # 0.2 m from it: it leans over by the difference in depth, and its middle, 0.1 m up, goes with it.
    lean = (0.8 - 0.2) * weight[0] / (2 * 5e4) / 0.25
    np.testing.assert_allclose(moved[0, :2], [0.1 * lean, 0.0], atol=0.02 * 0.1 * lean)


def test_a_rough_border_pushes_nothing_that_stands_clear_of_it():
    """Beside and below a border of any heights there is a vertical wall, and nothing sticks out of it."""
    rough = pv.Heightfield(np.random.default_rng(0).uniform(-0.15, 0.15, (21, 21)), 21, 21, 1.5, 1.5)
    rng = np.random.default_rng(11)
    count = 200
    poses = random_poses(rng, count, 1.2)
    poses[:, 0] = 1.5 + 0.1 + rng.uniform(-0.02, 0.05, count)
    poses[:, 2] = rng.uniform(-0.6, 0.3, count)
    poses[:, 3:] = UPRIGHT
    ground = type(FLAT)(FLAT.type, mesh=rough)
    border = np.linspace(-1.5, 1.5, 21)
    for pose, contacts in zip(poses, collide_pairs(ground, sphere(0.1), poses, poses, gap=GAP), strict=True):
        # The border is straight between grid points, so a ball below both ends of its cell sees a flat wall.
        near = np.abs(border - pose[1]) < 0.15 + 0.2
        if pose[2] < rough.heights[near, -1].min():
            distance, normal = deepest(contacts)
            assert distance == pytest.approx(pose[0] - 1.6, abs=1e-6)
            np.testing.assert_allclose(normal, [1.0, 0.0, 0.0], atol=1e-6)
        elif contacts.count > 0:
            assert deepest(contacts)[0] >= pose[0] - 1.6 - 1e-6


def test_bodies_thrown_at_a_block_of_terrain_stay_outside_and_gain_no_energy():
    """All shapes, at 0.5 to 6 m/s, against sides, edges and corners of rough ground on a plane."""
    material = {"gap": 0.01, "ke": 1e5, "mu": 0.6}
    rng = np.random.default_rng(0)
    builder = pv.ModelBuilder()
    for index in range(36):
        world = pv.ModelBuilder()
        rough = pv.Heightfield(rng.uniform(0.3, 0.6, (11, 11)), 11, 11, 0.5, 0.5)
        world.add_shape_heightfield(heightfield=rough, cfg=pv.ShapeConfig(**material))
        world.add_ground_plane(cfg=pv.ShapeConfig(**material))
        angle, speed = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(0.5, 6.0)
        away = np.array([np.cos(angle), np.sin(angle)])
        turn = Rotation.random(random_state=rng).as_quat()
        body = world.add_body(xform=(*(1.5 * away), rng.uniform(0.3, 0.7), *turn))
        list(SHAPES.values())[index % len(SHAPES)].add(world, body, **material)
        world.joint_qd[:3] = [*(-speed * away), 1.0]
        builder.add_world(world)
    model = builder.finalize("cpu")
    pipeline, solver, control = pv.CollisionPipeline(model), pv.SolverSAP(model), model.control()
    contacts, states = pipeline.contacts(), [model.state(), model.state()]
    start = mechanical_energy(model, states[0])
    for _ in range(60):
        for _ in range(5):
            pipeline.collide(states[0], contacts)
            solver.step(states[0], states[1], control, contacts, 0.005)
            states.reverse()
        # Rounding of positions over the stiffness of the contacts.
        assert (mechanical_energy(model, states[0]) < start + 1e-3).all()
        place = states[0].body_q.numpy()
        assert not ((np.abs(place[:, :2]) < 0.45).all(axis=1) & (place[:, 2] < 0.25)).any()
    assert solver.unconverged_step_count.numpy().sum() == 0
