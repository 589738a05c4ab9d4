"""Height fields: exact where flat, at the distance of their triangles where not, solid below."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pluriverse as pv
from pluriverse.geometry import stairs_terrain, wave_terrain
from pluriverse.types import GeoType
from tests.collision.pairs import (
    SHAPES,
    ShapeSpec,
    box,
    collide,
    collide_pairs,
    cone,
    cylinder,
    plane,
    random_poses,
    read_contacts,
    sphere,
)

UPRIGHT = (0.0, 0.0, 0.0, 1.0)
GAP = 0.1
# Single-precision rounding of points over the 0.5 m of a pair, a few operations deep.
ROUNDING = 1e-6
# Curved sides meet a plane at a point known to the tolerance of the search.
SEARCH = 4e-6


def field(heights: np.ndarray, half: float) -> ShapeSpec:
    """Return a square height field of half width `half` [m]."""
    return ShapeSpec(GeoType.HFIELD, mesh=pv.Heightfield(heights, *heights.shape, half, half))


FLAT = field(np.zeros((41, 37)), 2.0)
ROUGH = field(np.random.default_rng(0).uniform(-0.15, 0.15, (21, 21)), 1.5)


def poses_above(count: int, seed: int, low: float, high: float) -> np.ndarray:
    """Return poses in the middle of a field at heights from low to high, as float32 holds them."""
    rng = np.random.default_rng(seed)
    poses = random_poses(rng, count, 0.8)
    poses[:, 2] = rng.uniform(low, high, count)
    return poses.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("name", SHAPES)
def test_flat_height_field_is_a_plane(name: str):
    """On level triangles every shape has the depth that it has on a plane, and normals of exactly +z."""
    poses = poses_above(40, seed=1, low=0.02, high=0.5)
    on_field = collide_pairs(FLAT, SHAPES[name], poses, poses, gap=GAP)
    on_plane = collide_pairs(plane(), SHAPES[name], poses, poses, gap=GAP)
    for a, b in zip(on_field, on_plane, strict=True):
        assert (a.count > 0) == (b.count > 0)
        if a.count:
            assert a.distance.min() == pytest.approx(b.distance.min(), abs=ROUNDING)
            np.testing.assert_array_equal(np.abs(a.normal), np.tile([0.0, 0.0, 1.0], (a.count, 1)))
            np.testing.assert_allclose(np.where(a.shape0 % 2 == 0, a.point0[:, 2], 0.0), 0.0, atol=ROUNDING)


@pytest.mark.parametrize("name", SHAPES)
def test_slope_is_a_tilted_plane(name: str):
    """Triangles of one tilted plane push along its normal, with no edge between them in the way."""
    slope = np.linspace(-1.0, 1.0, 33)[None, :] * 0.6 + np.linspace(-1.0, 1.0, 29)[:, None] * 0.3
    tilted = ShapeSpec(GeoType.HFIELD, mesh=pv.Heightfield(slope, 29, 33, 2.0, 2.0))
    normal = np.array([-0.3, -0.15, 1.0]) / np.linalg.norm([-0.3, -0.15, 1.0])
    turn = Rotation.align_vectors([normal], [[0.0, 0.0, 1.0]])[0]
    level = poses_above(20, seed=2, low=0.05, high=0.4)
    # The same shape seen from the plane.
    poses = np.concatenate(
        [turn.apply(level[:, :3]), (turn * Rotation.from_quat(level[:, 3:])).as_quat()], axis=1
    )
    on_field = collide_pairs(tilted, SHAPES[name], poses, poses, gap=GAP)
    on_plane = collide_pairs(plane(), SHAPES[name], level, level, gap=GAP)
    for a, b in zip(on_field, on_plane, strict=True):
        assert (a.count > 0) == (b.count > 0)
        if a.count:
            assert a.distance.min() == pytest.approx(b.distance.min(), abs=2 * ROUNDING)
            np.testing.assert_allclose(a.normal, np.tile(normal, (a.count, 1)), atol=2e-6)


@pytest.mark.parametrize("name", SHAPES)
def test_distance_to_rough_ground_agrees_with_coal(name: str):
    """Above the ground the deepest contact has the distance and direction to the nearest triangle."""
    coal_oracle = pytest.importorskip("tests.collision.coal_oracle")
    poses = poses_above(60, seed=3, low=0.2, high=0.6)
    ground, shape = (coal_oracle.coal_geometry(spec) for spec in (ROUGH, SHAPES[name]))
    origin = np.array([0.0, 0.0, 0.0, *UPRIGHT])
    compared = 0
    for pose, contacts in zip(poses, collide_pairs(ROUGH, SHAPES[name], poses, poses, gap=GAP), strict=True):
        distance, normal = coal_oracle.coal_distance(ground, origin, shape, pose)
        if contacts.count == 0:
            assert distance > 2.0 * GAP - ROUNDING
        elif distance > ROUNDING:
            deepest = contacts.distance.argmin()
            assert contacts.distance[deepest] == pytest.approx(distance, abs=SEARCH)
            # The direction of curved sides is right to the square root of the tolerance of coal's search.
            if distance > 0.01:
                assert contacts.normal[deepest] @ normal > 1.0 - 1e-5
            compared += 1
        else:
            assert contacts.distance.min() < ROUNDING
    assert compared >= 10


@pytest.mark.parametrize("name", SHAPES)
def test_shape_sunk_into_level_ground_is_pushed_up_by_its_depth(name: str):
    """However deep a shape is below a level surface, its contacts push it straight up by that much."""
    poses = poses_above(12, seed=4, low=-0.6, high=-0.05)
    for a, b in zip(
        collide_pairs(FLAT, SHAPES[name], poses, poses),
        collide_pairs(plane(), SHAPES[name], poses, poses),
        strict=True,
    ):
        assert a.distance.min() == pytest.approx(b.distance.min(), abs=ROUNDING)
        np.testing.assert_array_equal(a.normal, np.tile([0.0, 0.0, 1.0], (a.count, 1)))


def test_ball_rolling_over_level_ground_sees_no_edge():
    """At any place, on edges and corners of triangles too, a ball has one contact straight up below it."""
    steps = np.linspace(-0.9, 0.9, 181)
    places = np.concatenate([np.stack([steps, np.full(181, y)], axis=1) for y in (0.0, 0.05, 0.1, 0.0333)])
    places = np.concatenate([places, np.stack([steps, steps * 40.0 / 36.0], axis=1)])
    fixed = np.tile([0.0999, *UPRIGHT], (len(places), 1))
    poses = np.concatenate([places, fixed], axis=1)
    worlds = collide_pairs(FLAT, sphere(0.1), poses, poses, gap=0.01)
    for place, contacts in zip(places, worlds, strict=True):
        assert contacts.count == 1
        np.testing.assert_array_equal(contacts.normal, [[0.0, 0.0, 1.0]])
        np.testing.assert_allclose(contacts.point1[0, :2], place, atol=ROUNDING)


def test_box_on_many_triangles_keeps_its_four_corners():
    """Of the contacts with hundreds of triangles the corners of the box stay, wherever it is turned to."""
    rng = np.random.default_rng(5)
    for angle in rng.uniform(0.0, np.pi, 20):
        turn = Rotation.from_euler("z", angle)
        pose = np.array([[*rng.uniform(-0.5, 0.5, 2), 0.2999, *turn.as_quat()]])
        contacts = collide_pairs(FLAT, box(0.4, 0.5, 0.3), pose, pose, gap=0.01)[0]
        assert contacts.count == 4
        np.testing.assert_allclose(np.abs(contacts.local1), np.tile([0.4, 0.5, 0.3], (4, 1)), atol=ROUNDING)


def test_height_field_ends_at_its_border():
    """Beyond the border shapes fall; a ball over the border touches the edge."""
    poses = np.array([[2.05, 0.0, 0.05, *UPRIGHT], [2.2, 0.0, -0.1, *UPRIGHT], [1.95, 0.0, 0.09, *UPRIGHT]])
    over, outside, on = collide_pairs(FLAT, sphere(0.1), poses, poses)
    assert (over.count, outside.count, on.count) == (1, 0, 1)
    np.testing.assert_allclose(over.normal, [[np.sqrt(0.5), 0.0, np.sqrt(0.5)]], atol=ROUNDING)
    assert over.distance[0] == pytest.approx(0.05 * np.sqrt(2.0) - 0.1, abs=ROUNDING)


def test_height_field_may_be_scaled_turned_and_far_away():
    """Scale, pose and a shared field move the ground, and only that."""
    rng = np.random.default_rng(6)
    pose = np.array([3.0, -2.0, 1.0, *Rotation.from_euler("xyz", [0.2, -0.1, 1.0]).as_quat()])
    poses = poses_above(20, seed=7, low=0.2, high=0.5)
    turn = Rotation.from_quat(pose[3:])
    moved = np.concatenate(
        [turn.apply(poses[:, :3]) + pose[:3], (turn * Rotation.from_quat(poses[:, 3:])).as_quat()], axis=1
    )
    heights = rng.uniform(-0.1, 0.1, (16, 16))
    results = []
    for place, scale, unit, given in ((None, None, 1.0, poses), (pose, (2.0, 0.5, 4.0), 1.0, moved)):
        factors = np.ones(3) if scale is None else np.array(scale)
        world = pv.ModelBuilder()
        world.add_shape_heightfield(
            heightfield=pv.Heightfield(heights / factors[2], 16, 16, 1.5 / factors[0], 1.5 / factors[1]),
            scale=scale,
            xform=place,
            cfg=pv.ShapeConfig(gap=GAP * unit),
        )
        SHAPES["box"].add(world, world.add_body(mass=1.0, inertia=np.eye(3), lock_inertia=True), gap=GAP)
        builder = pv.ModelBuilder()
        builder.replicate(world, len(given))
        model = builder.finalize("cpu")
        state = model.state()
        state.body_q.assign(given.astype(np.float32))
        results.append(collide(model, state))
    for a, b in zip(*results, strict=True):
        assert a.count == b.count or min(a.count, b.count) > 2
        if a.count:
            assert a.distance.min() == pytest.approx(b.distance.min(), abs=2e-6)


def mechanical_energy(model: pv.Model, state: pv.State) -> np.ndarray:
    """Return kinetic plus potential energy of each free body [J]."""
    mass, inertia, com = (getattr(model, f"body_{name}").numpy() for name in ("mass", "inertia", "com"))
    pose, velocity = state.body_q.numpy().astype(np.float64), state.body_qd.numpy().astype(np.float64)
    turn = Rotation.from_quat(pose[:, 3:])
    spin = turn.inv().apply(velocity[:, 3:])
    height = pose[:, 2] + turn.apply(com)[:, 2]
    kinetic = 0.5 * mass * (velocity[:, :3] ** 2).sum(axis=1) + 0.5 * np.einsum(
        "bi,bij,bj->b", spin, inertia, spin
    )
    return kinetic + 9.81 * mass * height


@pytest.mark.parametrize("terrain", ["waves", "stairs"])
def test_bodies_dropped_on_terrain_come_to_rest(terrain: str):
    """Bodies on uneven ground never gain energy; those that do not roll come to rest, and none sinks in."""
    ground = {
        "waves": wave_terrain((6.0, 6.0), amplitude=0.1, wave_count=6.0, resolution=0.1),
        "stairs": stairs_terrain((6.0, 6.0), step_width=0.4, step_height=0.1),
    }[terrain]
    material = {"gap": 0.005, "ke": 1e5, "mu": 0.8}
    angular = [box(0.12, 0.1, 0.08), box(0.3, 0.2, 0.05), box(0.1, 0.1, 0.1)]
    shapes = [*angular, cylinder(0.1, 0.1), cone(0.12, 0.1), SHAPES["hull"]]
    rng = np.random.default_rng(8)
    builder = pv.ModelBuilder()
    builder.add_shape_heightfield(heightfield=ground, cfg=pv.ShapeConfig(**material))
    for index in range(18):
        world = pv.ModelBuilder()
        place = (*rng.uniform(-0.5, 0.5, 2), 0.9, *Rotation.random(random_state=rng).as_quat())
        shapes[index % len(shapes)].add(world, world.add_body(xform=place), **material)
        builder.add_world(world)
    model = builder.finalize("cpu")
    # Under the default preset one of these boxes goes on rocking at some cm/s (docs/solver_sap.md, limits).
    solver = pv.SolverSAP(model, contact_preset_variant="approx32")
    pipeline, control = pv.CollisionPipeline(model), model.control()
    contacts, states = pipeline.contacts(), [model.state(), model.state()]
    energies = []
    for step in range(1100):
        if step % 50 == 0:
            energies.append(mechanical_energy(model, states[0]))
        pipeline.collide(states[0], contacts)
        solver.step(states[0], states[1], control, contacts, 0.005)
        states.reverse()
    # What the springs of the contacts hold, (m g)^2 / 2 k, a few times over in an impact.
    spring = (9.81 * model.body_mass.numpy()) ** 2 / 1e5
    assert (np.diff(energies, axis=0) < 4.0 * spring).all()
    speed = np.abs(states[0].body_qd.numpy()).max(axis=1)
    assert speed[np.arange(18) % len(shapes) < len(angular)].max() < 1e-3
    pipeline.collide(states[0], contacts)
    for world in read_contacts(model, states[0], contacts):
        assert world.count == 0 or world.distance.min() > -5e-3


def test_height_field_on_a_moving_body_is_refused():
    """Height fields belong to the world."""
    builder = pv.ModelBuilder()
    body = builder.add_body(mass=1.0)
    with pytest.raises(ValueError, match="a height field is fixed to the world"):
        builder.add_shape(body=body, type=GeoType.HFIELD, src=FLAT.mesh)
    with pytest.raises(TypeError, match=r"needs a pluriverse.Heightfield"):
        builder.add_shape(body=-1, type=GeoType.HFIELD)
    with pytest.raises(ValueError, match="factors of a height field are > 0"):
        builder.add_shape_heightfield(heightfield=FLAT.mesh, scale=(1.0, -1.0, 1.0))
