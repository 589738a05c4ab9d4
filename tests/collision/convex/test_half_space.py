"""An infinite plane against every shape: lowest points in closed form, and patches that let shapes rest."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pluriverse as pv
from pluriverse.types import GeoType
from tests.collision.pairs import (
    ShapeSpec,
    box,
    capsule,
    collide,
    collide_pairs,
    cone,
    cylinder,
    ellipsoid,
    hull,
    plane,
    random_poses,
    sphere,
    surface_height,
)
from tests.collision.support_oracle import support_heights

CUBE = np.array(np.meshgrid([-0.1, 0.1], [-0.1, 0.1], [-0.1, 0.1])).reshape(3, -1).T.astype(np.float64)
SHAPES = {
    "sphere": sphere(0.1),
    "capsule": capsule(0.1, 0.2),
    "ellipsoid": ellipsoid(0.1, 0.2, 0.3),
    "cylinder": cylinder(0.1, 0.2),
    "box": box(0.1, 0.2, 0.3),
    "cone": cone(0.15, 0.2),
    "hull": hull(np.random.default_rng(3).normal(size=(20, 3)) * 0.1),
    "round_hull": hull(
        (lambda v: 0.2 * v / np.linalg.norm(v, axis=1, keepdims=True))(
            np.random.default_rng(4).normal(size=(64, 3))
        )
    ),
}
# Single-precision rounding of poses and points over half a metre.
ROUNDING = 5e-7
# Depth that a body at rest has in these tests [m].
SINK = 1e-4


@pytest.mark.parametrize("name", SHAPES)
def test_lowest_point_is_that_of_the_support_function(name: str):
    """The deepest contact has the height of the shape's lowest point, and no surface point lies elsewhere."""
    shape = SHAPES[name]
    rng = np.random.default_rng(0)
    poses = random_poses(rng, 300, 0.3).astype(np.float32).astype(np.float64)
    down = Rotation.from_quat(poses[:, 3:]).inv().apply([0.0, 0.0, -1.0])
    lowest = poses[:, 2] - support_heights(shape, down)
    gap = 0.05
    for height, contacts in zip(lowest, collide_pairs(plane(), shape, poses, poses, gap=gap), strict=True):
        if height > 2.0 * gap + ROUNDING:
            assert contacts.count == 0
            continue
        assert contacts.distance.min() == pytest.approx(height, abs=ROUNDING)
        np.testing.assert_array_equal(contacts.normal, [[0.0, 0.0, 1.0]] * contacts.count)
        np.testing.assert_allclose(contacts.point0[:, :2], contacts.point1[:, :2], atol=ROUNDING)
        assert np.abs(contacts.point0[:, 2]).max() <= ROUNDING
        assert np.abs(surface_height(shape, contacts.local1)).max() < ROUNDING
        assert (contacts.distance <= 2.0 * gap + ROUNDING).all()


def test_rim_tilts_with_the_body_exactly_above_the_noise_of_rest():
    """The first rim point of a leaning cylinder is its lowest point for any tilt that motion can cause."""
    tilts = np.array([1e-3, 3e-3, 1e-2, 0.1, 0.5])
    for heading in np.linspace(0.1, 6.0, 7):
        turns = [Rotation.from_euler("z", heading) * Rotation.from_euler("x", tilt) for tilt in tilts]
        quats = np.array([turn.as_quat() for turn in turns])
        down = np.array([turn.inv().apply([0.0, 0.0, -1.0]) for turn in turns])
        height = support_heights(cylinder(0.1, 0.2), down) - SINK
        poses = np.concatenate([np.zeros((len(tilts), 2)), height[:, None], quats], axis=1)
        for contacts in collide_pairs(plane(), cylinder(0.1, 0.2), poses, poses):
            assert contacts.distance.min() == pytest.approx(-SINK, abs=ROUNDING)


def upright(shape: ShapeSpec, turn: Rotation, height: float = -SINK) -> np.ndarray:
    """Return the pose that puts the lowest point of a shape at `height` [m]."""
    down = turn.inv().apply([0.0, 0.0, -1.0])
    return np.concatenate([[0.3, -0.2], [height + support_heights(shape, down)], turn.as_quat()])


RESTING = [
    ("box", SHAPES["box"], Rotation.identity(), 4),
    ("box on its side", SHAPES["box"], Rotation.from_euler("x", np.pi / 2), 4),
    ("box on an edge", box(0.1, 0.1, 0.1), Rotation.from_euler("x", np.pi / 4), 2),
    ("cube as a hull", hull(CUBE), Rotation.from_euler("z", 0.4), 4),
    ("standing cylinder", SHAPES["cylinder"], Rotation.identity(), 4),
    ("standing cylinder upside down", SHAPES["cylinder"], Rotation.from_euler("y", np.pi), 4),
    ("lying cylinder", SHAPES["cylinder"], Rotation.from_euler("x", np.pi / 2), 2),
    ("lying capsule", SHAPES["capsule"], Rotation.from_euler("y", np.pi / 2), 2),
    ("standing capsule", SHAPES["capsule"], Rotation.identity(), 1),
    ("standing cone", SHAPES["cone"], Rotation.identity(), 4),
    ("lying cone", SHAPES["cone"], Rotation.from_euler("x", np.pi / 2 + np.arctan2(0.15, 0.4)), 2),
    ("sphere", SHAPES["sphere"], Rotation.from_euler("x", 0.3), 1),
    ("ellipsoid", SHAPES["ellipsoid"], Rotation.from_euler("x", 0.3), 1),
]


@pytest.mark.parametrize(("name", "shape", "turn", "count"), RESTING, ids=[row[0] for row in RESTING])
def test_resting_shape_has_a_stable_patch(name: str, shape: ShapeSpec, turn: Rotation, count: int):
    """A shape at rest touches with all points of the feature it rests on, each once, equally deep."""
    pose = upright(shape, turn)
    contacts = collide_pairs(plane(), shape, pose[None], pose[None], gap=0.002)[0]
    assert contacts.count == count
    np.testing.assert_allclose(contacts.distance, -SINK, atol=ROUNDING)
    if count > 1:
        spread = np.linalg.norm(contacts.point1[:, None] - contacts.point1[None], axis=-1)
        assert spread[~np.eye(count, dtype=bool)].min() > 0.05
    if count >= 4:
        # The centre of mass is over the middle of the patch.
        np.testing.assert_allclose(contacts.point1[:, :2].mean(axis=0), pose[:2], atol=1e-6)


@pytest.mark.parametrize("name", ["box", "cylinder", "hull cube"])
def test_whole_patch_exists_across_the_gap(name: str):
    """A shape 5 cm above the plane with a gap of 10 cm has the four contacts it will land on."""
    shape = {"box": SHAPES["box"], "cylinder": SHAPES["cylinder"], "hull cube": hull(CUBE)}[name]
    pose = upright(shape, Rotation.identity(), height=0.05)
    contacts = collide_pairs(plane(), shape, pose[None], pose[None], gap=0.05)[0]
    assert contacts.count == 4
    np.testing.assert_allclose(contacts.distance, 0.05, atol=ROUNDING)


def test_thin_plate_within_the_gap_touches_with_its_lower_face_only():
    """The upper corners of a plate thinner than the gap are no contacts, unless they penetrate too."""
    plate = box(0.3, 0.2, 0.005)
    above = upright(plate, Rotation.identity(), height=0.02)
    sunk = upright(plate, Rotation.identity(), height=-0.02)
    counts = [w.count for w in collide_pairs(plane(), plate, above[None], np.stack([above, sunk]), gap=0.1)]
    assert counts == [4, 8]


@pytest.mark.parametrize("name", ["cylinder", "cone"])
def test_rim_points_of_a_standing_body_do_not_swirl(name: str):
    """Tilts of the size of rounding, in any direction, leave the rim points where they are on the body."""
    rng = np.random.default_rng(0)
    shape = SHAPES[name]
    tilts = rng.normal(size=(50, 3)) * [1e-7, 1e-7, 0.0]
    poses = np.array([upright(shape, Rotation.from_rotvec(tilt)) for tilt in tilts])
    points = [
        np.array(sorted(map(tuple, np.round(w.local1, 3))))
        for w in collide_pairs(plane(), shape, poses, poses)
    ]
    for other in points[1:]:
        np.testing.assert_allclose(other, points[0], atol=2e-3)


def test_round_body_turns_over_its_rim_without_jumps():
    """The depth under a tilting cylinder changes in proportion to the tilt: no point appears at depth."""
    shape = SHAPES["cylinder"]
    tilts = np.linspace(0.0, 4e-3, 400)
    turns = [Rotation.from_euler("zx", [0.7, tilt]) for tilt in tilts]
    poses = np.array([[0.0, 0.0, 0.2 - 1e-3, *turn.as_quat()] for turn in turns])
    depth = np.array(
        [np.maximum(-w.distance, 0.0).sum() for w in collide_pairs(plane(), shape, poses, poses, gap=0.01)]
    )
    # Four points at most move by the radius times the step of the tilt.
    assert np.abs(np.diff(depth)).max() < 4 * 0.1 * (tilts[1] - tilts[0]) + 4 * ROUNDING


def test_tilted_plane_gives_the_same_contacts_in_its_own_frame():
    """Turning plane and shape together turns the contacts with them."""
    rng = np.random.default_rng(0)
    shape, turn = SHAPES["box"], Rotation.from_euler("xyz", [0.4, -0.3, 0.2])
    poses = random_poses(rng, 20, 0.2)
    flat = collide_pairs(plane(), shape, poses, poses, gap=0.05)

    world = pv.ModelBuilder()
    plane().add(world, -1, xform=(0.0, 0.0, 0.0, *turn.as_quat()), gap=0.05)
    shape.add(world, world.add_body(mass=1.0, inertia=np.eye(3), lock_inertia=True), gap=0.05)
    builder = pv.ModelBuilder()
    builder.replicate(world, len(poses))
    model = builder.finalize("cpu")
    state = model.state()
    turned = np.concatenate(
        [turn.apply(poses[:, :3]), (turn * Rotation.from_quat(poses[:, 3:])).as_quat()], axis=1
    )
    state.body_q.assign(turned.astype(np.float32))
    for a, b in zip(flat, collide(model, state), strict=True):
        assert a.count == b.count
        order_a, order_b = np.argsort(a.distance), np.argsort(b.distance)
        np.testing.assert_allclose(b.distance[order_b], a.distance[order_a], atol=ROUNDING)
        np.testing.assert_allclose(b.normal, np.tile(turn.apply([0, 0, 1]), (b.count, 1)), atol=1e-6)


def test_scaled_hull_touches_where_its_scaled_vertices_are():
    """A hull with three different factors, has the lowest of its scaled vertices as contact."""
    points = np.random.default_rng(8).normal(size=(40, 3)) * 0.1
    mesh = hull(points).mesh
    scaled = ShapeSpec(GeoType.CONVEX_MESH, (1.5, 0.5, 2.0), mesh)
    poses = random_poses(np.random.default_rng(1), 50, 0.2).astype(np.float32).astype(np.float64)
    down = Rotation.from_quat(poses[:, 3:]).inv().apply([0.0, 0.0, -1.0])
    lowest = poses[:, 2] - support_heights(scaled, down)
    for height, contacts in zip(lowest, collide_pairs(plane(), scaled, poses, poses, gap=0.5), strict=True):
        assert contacts.distance.min() == pytest.approx(height, abs=2 * ROUNDING)
        assert np.abs(surface_height(scaled, contacts.local1)).max() < 2 * ROUNDING


def test_a_shape_turned_by_less_than_the_scalar_part_shows_touches_where_it_is():
    """A plank turned by 4e-4 rad in a body that is turned back lies flat, and so do its contact points."""
    angle, half_length = 4.0e-4, 5.0
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    body = builder.add_body(xform=((0.0, 0.0, 0.1), (0.0, -0.5 * angle, 0.0, 1.0)))
    turned = ((0.0, 0.0, 0.0), (0.0, 0.5 * angle, 0.0, 1.0))
    builder.add_shape_box(body, xform=turned, hx=half_length, hy=0.1, hz=0.1)
    model = builder.finalize(device="cpu")
    pipeline = pv.CollisionPipeline(model)
    contacts, state = pipeline.contacts(), model.state()
    pipeline.collide(state, contacts)
    count = int(contacts.rigid_contact_count.numpy()[0])
    assert count >= 4
    shapes = contacts.rigid_contact_shape0.numpy()[:count], contacts.rigid_contact_shape1.numpy()[:count]
    points = contacts.rigid_contact_point0.numpy()[:count], contacts.rigid_contact_point1.numpy()[:count]
    on_body = np.where((model.shape_body.numpy()[shapes[0]] == body)[:, None], *points)
    pose = state.body_q.numpy()[body]
    height = (Rotation.from_quat(pose[3:]).apply(on_body) + pose[:3])[:, 2]
    np.testing.assert_allclose(height, 0.0, rtol=0.0, atol=half_length * ROUNDING)
