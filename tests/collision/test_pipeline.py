"""The pipeline: when contacts exist, how many fit, and that worlds do not notice each other."""

import numpy as np
import pytest
import warp as wp
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
    read_contacts,
    sphere,
)

ROUNDING = 5e-7
CONTACT_ARRAYS = ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1")
KINDS: list[ShapeSpec] = [
    sphere(0.1),
    capsule(0.08, 0.1),
    box(0.1, 0.08, 0.12),
    cylinder(0.09, 0.1),
    cone(0.1, 0.1),
    ellipsoid(0.1, 0.08, 0.12),
    hull(np.random.default_rng(0).normal(size=(30, 3)) * 0.07),
]

SLAB_CORNERS = (
    np.array(np.meshgrid([-0.5, 0.5], [-0.5, 0.5], [-0.1, 0.1])).reshape(3, -1).T.astype(np.float64)
)


def heap(kinds: list[int], seed: int) -> pv.ModelBuilder:
    """Return a world of shapes thrown into a small space above a ground plane."""
    world = pv.ModelBuilder()
    plane().add(world, -1, gap=0.01)
    rng = np.random.default_rng(seed)
    for kind, pose in zip(kinds, random_poses(rng, len(kinds), 0.2), strict=True):
        pose[2] = abs(pose[2])
        KINDS[kind].add(world, world.add_body(xform=pose, mass=1.0), gap=0.01, margin=0.001 * (kind % 3))
    return world


def stored(contacts: pv.Contacts, world: int) -> list[np.ndarray]:
    """Return what is stored of a world's contacts, shape indices relative to the first."""
    start = int(contacts.rigid_contact_start.numpy()[world])
    rows = slice(start, start + int(contacts.rigid_contact_count.numpy()[world]))
    arrays = [getattr(contacts, f"rigid_contact_{name}").numpy()[rows] for name in CONTACT_ARRAYS]
    return [*arrays, contacts.rigid_contact_found.numpy()[world : world + 1]]


def assert_same_bits(first: list[np.ndarray], second: list[np.ndarray], shape_shift: int) -> None:
    """Assert that two worlds have the same contacts, the shapes of the second being numbered higher."""
    for name, a, b in zip((*CONTACT_ARRAYS, "found"), first, second, strict=True):
        np.testing.assert_array_equal(a + shape_shift if name.startswith("shape") else a, b, err_msg=name)


def test_world_has_the_same_contacts_in_any_batch():
    """A heap of all shapes has bit-identical contacts alone and among other worlds, recorded or not."""
    kinds = [0, 1, 2, 3, 4, 5, 6, 2, 1, 6]
    alone = heap(kinds, seed=1).finalize("cpu")
    pipeline = pv.CollisionPipeline(alone)
    contacts = pipeline.contacts()
    pipeline.collide(alone.state(), contacts)
    expected = stored(contacts, 0)
    assert len(expected[0]) > 20

    builder = pv.ModelBuilder()
    builder.add_world(heap([2, 2, 0], seed=2))
    builder.add_world(heap(kinds, seed=1))
    builder.add_world(heap([6, 6, 3, 1], seed=3))
    builder.add_world(heap(kinds, seed=1))
    mixed = builder.finalize("cpu")
    pipeline = pv.CollisionPipeline(mixed)
    contacts, state = pipeline.contacts(), mixed.state()
    pipeline.collide(state, contacts)
    first_shape = mixed.topology.world_shape.numpy()
    for world in (1, 3):
        assert_same_bits(expected, stored(contacts, world), int(first_shape[world]))

    recorded = pipeline.contacts()
    with wp.ScopedCapture(device="cpu") as capture:
        pipeline.collide(state, recorded, worlds=wp.array([3, 1], dtype=int, device="cpu"))
    recorded.clear()
    for _ in range(2):
        wp.capture_launch(capture.graph)
    assert_same_bits(expected, stored(recorded, 1), int(first_shape[1]))
    assert recorded.rigid_contact_count.numpy()[0] == 0  # was not in the list


def test_every_contact_names_the_lower_type_first_and_two_different_bodies():
    """Shape 0 has the lower type, normals point from it to shape 1, and margins are those of the shapes."""
    builder = pv.ModelBuilder()
    for seed in range(6):
        builder.add_world(heap([0, 1, 2, 3, 4, 5, 6], seed=seed))
    model = builder.finalize("cpu")
    shape_type, shape_body, margin = (
        getattr(model, name).numpy() for name in ("shape_type", "shape_body", "shape_margin")
    )
    shape_world = model.shape_world.numpy()
    for world, contacts in enumerate(collide(model, model.state())):
        assert contacts.count == contacts.found > 0
        assert (shape_type[contacts.shape0] <= shape_type[contacts.shape1]).all()
        assert (shape_body[contacts.shape0] != shape_body[contacts.shape1]).all()
        for shapes in (contacts.shape0, contacts.shape1):
            assert set(shape_world[shapes]) <= {world}
        np.testing.assert_allclose(contacts.margin, margin[contacts.shape0] + margin[contacts.shape1])
        assert (contacts.distance - contacts.margin <= 0.02 + ROUNDING).all()


@pytest.mark.parametrize("margin", [0.0, 0.01])
@pytest.mark.parametrize("gap", [0.0, 0.03])
@pytest.mark.parametrize("second", KINDS, ids=lambda shape: shape.type.name)
@pytest.mark.parametrize(
    "first", [plane(), box(0.5, 0.5, 0.1), hull(SLAB_CORNERS)], ids=["plane", "box", "hull"]
)
def test_contacts_exist_up_to_margins_plus_gaps(
    first: ShapeSpec, second: ShapeSpec, margin: float, gap: float
):
    """A contact exists when the distance less both margins is at most the sum of the gaps."""
    up = np.array([[0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0]])
    ground = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
    far = collide_pairs(first, second, ground, up, gap=2.0)[0]
    distance = far.distance.min()
    limit = 2.0 * (margin + gap)
    poses = np.repeat(up, 2, axis=0)
    poses[:, 2] += limit - distance + np.array([-1e-4, 1e-4])
    inside, outside = collide_pairs(
        first, second, np.repeat(ground, 2, axis=0), poses, gap=gap, margin=margin
    )
    assert outside.count == 0
    assert inside.count >= 1
    assert inside.distance.min() == pytest.approx(limit - 1e-4, abs=2e-6)
    np.testing.assert_allclose(inside.margin, 2.0 * margin)


def test_full_world_keeps_its_deepest_contacts():
    """Of more contacts than slots the deepest are kept, none is stale, and all are counted."""
    world = pv.ModelBuilder()
    plane().add(world, -1, gap=0.1)
    rng = np.random.default_rng(0)
    heights = rng.permutation(np.linspace(-0.05, 0.05, 40))
    for index, height in enumerate(heights):
        body = world.add_body(xform=(index, 0.0, 0.1 + height, 0.0, 0.0, 0.0, 1.0), mass=1.0)
        sphere(0.1).add(world, body, gap=0.1)
    model = world.finalize("cpu")
    for capacity in (0, 1, 2, 7, 39, 40, 60):
        contacts = collide(model, model.state(), rigid_contact_max=capacity)[0]
        assert contacts.found == 40
        assert contacts.count == min(capacity, 40)
        np.testing.assert_allclose(np.sort(contacts.distance), np.sort(heights)[:capacity], atol=ROUNDING)
        assert len(set(contacts.shape1)) == contacts.count


def test_full_world_does_not_take_slots_of_its_neighbours():
    """Each world has its own capacity; a crowded one loses contacts, its neighbours none."""
    builder = pv.ModelBuilder()
    for _ in range(3):
        builder.add_world(heap([2, 2, 2, 2, 2, 2], seed=5))
    model = builder.finalize("cpu")
    free = collide(model, model.state())
    capped = collide(model, model.state(), rigid_contact_max=[free[0].found, 3, 500])
    assert [world.count for world in capped] == [free[0].found, 3, free[0].found]
    assert [world.found for world in capped] == [free[0].found] * 3
    np.testing.assert_array_equal(capped[0].point0, free[0].point0)
    np.testing.assert_array_equal(capped[2].point1, free[2].point1)


def test_automatic_capacity_is_bounded_by_pairs_and_by_shapes():
    """Few pairs get room for all their contacts; a crowd gets 32 and five patches for each shape."""
    few = heap([0, 0], seed=0).finalize("cpu")  # two spheres and a plane: three pairs of one contact
    assert pv.CollisionPipeline(few).rigid_contact_capacity.tolist() == [3]
    crowd = heap([2] * 30, seed=0).finalize("cpu")
    assert pv.CollisionPipeline(crowd).rigid_contact_capacity.tolist() == [32 + 5 * 31 * 8]


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_world_with_a_diverged_pose_has_no_contacts(bad: float):
    """A pose that is not finite, or absurd, leaves its own world without contacts and others as they are."""
    builder = pv.ModelBuilder()
    for _ in range(3):
        builder.add_world(heap([0, 1, 2, 3, 4, 5, 6, 2, 6], seed=4))
    model = builder.finalize("cpu")
    state = model.state()
    expected = collide(model, state)
    poses = state.body_q.numpy()
    body_count = len(poses) // 3
    for component in range(7):
        broken = poses.copy()
        broken[body_count + 2, component] = bad
        state.body_q.assign(broken)
        worlds = collide(model, state)
        assert worlds[1].count == 0
        for world in (0, 2):
            np.testing.assert_array_equal(worlds[world].local0, expected[world].local0)


def test_zero_quaternion_has_no_contacts():
    """A pose without an orientation does not hang or produce NaN; -1 tells solvers to freeze the world."""
    poses = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    contacts = collide_pairs(plane(), box(0.1, 0.1, 0.1), poses, poses)[0]
    assert (contacts.count, contacts.found) == (0, -1)


def test_random_heaps_never_have_bad_contacts():
    """Deep, random overlaps of all shapes give finite unit normals and points within the shapes."""
    rng = np.random.default_rng(9)
    builder = pv.ModelBuilder()
    for seed in range(40):
        builder.add_world(heap(rng.integers(0, len(KINDS), 12).tolist(), seed=seed))
    model = builder.finalize("cpu")
    for contacts in collide(model, model.state()):
        for array in (contacts.point0, contacts.point1, contacts.normal):
            assert np.isfinite(array).all()
        np.testing.assert_allclose(np.linalg.norm(contacts.normal, axis=1), 1.0, atol=1e-6)
        assert np.abs(contacts.local0[contacts.shape0 % 13 != 0]).max() < 1.0


def test_finite_plane_is_a_slab():
    """A plane of finite size carries what lies on it, ends at its edges, and pushes up what has sunk in."""
    world = pv.ModelBuilder()
    ShapeSpec(GeoType.PLANE, (2.0, 1.0, 0.0)).add(
        world, -1, xform=(0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0), gap=0.0
    )
    box(0.1, 0.1, 0.1).add(world, world.add_body(mass=1.0), gap=0.0)
    builder = pv.ModelBuilder()
    builder.replicate(world, 5)
    model = builder.finalize("cpu")
    state = model.state()
    poses = np.array(
        [[0.9, 0.4, 0.599], [1.2, 0.0, 0.599], [0.0, 0.65, 0.599], [0.0, 0.0, 0.45], [0.98, 0.0, 0.599]]
    )
    state.body_q.assign(
        np.concatenate([poses, np.tile([0.0, 0.0, 0.0, 1.0], (5, 1))], axis=1).astype(np.float32)
    )
    on, missed, behind, sunk, over_edge = collide(model, state)
    assert (on.count, missed.count, behind.count, over_edge.count) == (4, 0, 0, 4)
    np.testing.assert_allclose(on.distance, -1e-3, atol=ROUNDING)
    np.testing.assert_allclose(on.point0[:, 2], 0.5, atol=ROUNDING)
    assert over_edge.point0[:, 0].max() == pytest.approx(1.0, abs=ROUNDING)
    np.testing.assert_allclose(sunk.normal, [[0.0, 0.0, 1.0]] * sunk.count, atol=1e-6)
    assert sunk.distance.min() == pytest.approx(-0.15, abs=ROUNDING)


def test_shapes_of_the_world_and_shared_shapes_collide_alike():
    """A ground plane shared by all worlds gives the contacts that one in each world gives."""
    poses = random_poses(np.random.default_rng(0), 8, 0.1)
    own = collide_pairs(plane(), box(0.1, 0.1, 0.1), poses, poses, gap=0.01)
    world = pv.ModelBuilder()
    box(0.1, 0.1, 0.1).add(world, world.add_body(mass=1.0), gap=0.01)
    builder = pv.ModelBuilder()
    plane().add(builder, -1, gap=0.01)
    builder.replicate(world, len(poses))
    model = builder.finalize("cpu")
    state = model.state()
    state.body_q.assign(poses.astype(np.float32))
    for a, b in zip(own, collide(model, state), strict=True):
        np.testing.assert_array_equal(a.local0, b.local0)
        np.testing.assert_array_equal(a.local1, b.local1)


def test_shape_offset_from_its_body_has_points_in_the_body_frame():
    """Points are given in the frame of the body, not of the shape."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        offset, pose = random_poses(rng, 2, 0.3)
        world = pv.ModelBuilder()
        plane().add(world, -1, gap=1.0)
        box(0.1, 0.2, 0.3).add(world, world.add_body(xform=pose, mass=1.0), xform=offset, gap=1.0)
        model = world.finalize("cpu")
        contacts = collide(model, model.state())[0]
        turn = Rotation.from_quat(offset[3:])
        in_shape = turn.inv().apply(contacts.local1 - offset[:3])
        np.testing.assert_allclose(
            np.abs(in_shape), np.tile([0.1, 0.2, 0.3], (contacts.count, 1)), atol=ROUNDING
        )
        np.testing.assert_allclose(contacts.point0[:, 2], 0.0, atol=ROUNDING)
        assert contacts.count >= 4


def test_sizes_and_margins_may_change_between_steps():
    """Scale, margin and pose of shapes are read at every step, so worlds of one kind can differ."""
    world = pv.ModelBuilder()
    plane().add(world, -1, gap=0.0)
    sphere(0.1).add(world, world.add_body(xform=(0.0, 0.0, 0.15, 0.0, 0.0, 0.0, 1.0), mass=1.0), gap=0.0)
    builder = pv.ModelBuilder()
    builder.replicate(world, 2)
    model = builder.finalize("cpu")
    pipeline, state = pv.CollisionPipeline(model), model.state()
    contacts = pipeline.contacts()
    pipeline.collide(state, contacts)
    assert contacts.rigid_contact_count.numpy().tolist() == [0, 0]
    scale = model.shape_scale.numpy()
    scale[3] = (0.2, 0.0, 0.0)
    model.shape_scale.assign(scale)
    pipeline.collide(state, contacts)
    assert contacts.rigid_contact_count.numpy().tolist() == [0, 1]
    assert read_contacts(model, state, contacts)[1].distance[0] == pytest.approx(-0.05, abs=ROUNDING)


def test_sizes_of_other_worlds_do_not_change_the_order_of_shapes():
    """Worlds of one kind whose boxes differ in size have the bits each has alone, whichever comes first."""
    world = pv.ModelBuilder()
    for z in (0.0, 0.19):
        body = world.add_body(xform=(0.01, 0.02, z, 0.0, 0.0, 0.1, 0.995), mass=1.0)
        box(0.1, 0.1, 0.1).add(world, body, gap=0.01)
    scales = {
        "larger below": [[0.2, 0.2, 0.1], [0.1, 0.1, 0.1]],
        "larger above": [[0.1] * 3, [0.2, 0.2, 0.1]],
    }
    results: dict[str, list[list[np.ndarray]]] = {name: [] for name in scales}
    for order in (["larger below"], ["larger above"], list(scales), list(scales)[::-1]):
        builder = pv.ModelBuilder()
        builder.replicate(world, len(order))
        model = builder.finalize("cpu")
        model.shape_scale.assign(np.array([scales[name] for name in order], dtype=np.float32).reshape(-1, 3))
        pipeline = pv.CollisionPipeline(model)
        contacts = pipeline.contacts()
        pipeline.collide(model.state(), contacts)
        for index, name in enumerate(order):
            rows = stored(contacts, index)
            results[name].append([rows[0] - 2 * index, rows[1] - 2 * index, *rows[2:]])
    for runs in results.values():
        assert len(runs[0][0]) >= 4
        for run in runs[1:]:
            assert_same_bits(runs[0], run, 0)


def test_plane_finite_in_one_world_and_infinite_in_another_is_refused():
    """Worlds of one kind share their candidate pairs, which tell planes from slabs."""
    world = pv.ModelBuilder()
    ShapeSpec(GeoType.PLANE, (2.0, 1.0, 0.0)).add(world, -1)
    sphere(0.1).add(world, world.add_body(mass=1.0))
    builder = pv.ModelBuilder()
    builder.replicate(world, 3)
    model = builder.finalize("cpu")
    scale = model.shape_scale.numpy()
    scale[2] = 0.0
    model.shape_scale.assign(scale)
    with pytest.raises(ValueError, match=r"in world 1 .*both finite or both infinite"):
        pv.CollisionPipeline(model)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [(-1, "capacity of world 0 is -1"), ([1, 2, 3], "one for each of the 2 worlds"), (2.5, "whole number")],
)
def test_bad_capacity_is_refused(wanted: object, message: str):
    """Capacities are whole numbers >= 0, one or one per world."""
    builder = pv.ModelBuilder()
    builder.replicate(heap([0, 2], seed=0), 2)
    with pytest.raises(ValueError, match=message):
        pv.CollisionPipeline(builder.finalize("cpu"), rigid_contact_max=wanted)


def test_contacts_of_another_pipeline_are_refused():
    """Contacts with other slots than the pipeline has scratch for are an error, not a crash."""
    model = heap([0, 2], seed=0).finalize("cpu")
    other = pv.CollisionPipeline(model, rigid_contact_max=1000).contacts()
    with pytest.raises(ValueError, match="1000 slots"):
        pv.CollisionPipeline(model).collide(model.state(), other)


def test_world_without_shapes_has_no_contacts():
    """A model in which nothing collides is stepped like any other."""
    world = pv.ModelBuilder()
    world.add_body(mass=1.0, inertia=np.eye(3))
    model = world.finalize("cpu")
    assert collide(model, model.state())[0].count == 0


def test_a_shape_switched_off_touches_nothing_until_it_is_on_again():
    """A ball that sinks into a plane and a box touches those that are on; a disabled ball touches nothing."""
    builder = pv.ModelBuilder()
    builder.begin_world()
    builder.add_shape_plane()
    builder.add_shape_box(-1, xform=((0.0, 0.0, 0.1), (0.0, 0.0, 0.0, 1.0)), hx=1.0, hy=1.0, hz=0.1)
    ball = builder.add_body(xform=((0.0, 0.0, 0.25), (0.0, 0.0, 0.0, 1.0)))
    builder.add_shape_sphere(ball, radius=0.3)
    builder.end_world()
    world = builder
    model = world.finalize("cpu")
    pipeline = pv.CollisionPipeline(model)
    contacts, state = pipeline.contacts(), model.state()
    found = {}
    for enabled in ((1, 1, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0), (0, 0, 1), (1, 1, 1)):
        model.shape_enabled.assign(np.array(enabled, dtype=bool))
        pipeline.collide(state, contacts)
        found[enabled] = int(contacts.rigid_contact_count.numpy()[0])
    assert found == {(1, 1, 1): 2, (0, 1, 1): 1, (1, 0, 1): 1, (1, 1, 0): 0, (0, 0, 1): 0}


def test_contacts_without_a_horizon_do_not_remember_the_last_one():
    """A pipeline that served a solver gives a sensor all contacts within the gaps, as a new one does."""
    world = pv.ModelBuilder()
    world.add_ground_plane()
    for index in range(3):
        body = world.add_body(xform=(0.25 * index, 0.0, 0.15, 0.0, 0.0, 0.0, 1.0))
        world.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    model = world.finalize("cpu")
    state, pipeline = model.state(), pv.CollisionPipeline(model)
    contacts = pipeline.contacts()
    pipeline.collide(state, contacts, horizon=pv.SolverSAP(model).contact_horizon(0.001))
    assert contacts.rigid_contact_count.numpy()[0] == 0
    pipeline.collide(state, contacts)
    expected = pv.CollisionPipeline(model).contacts()
    pv.CollisionPipeline(model).collide(state, expected)
    assert expected.rigid_contact_count.numpy()[0] > 12
    assert_same_bits(stored(expected, 0), stored(contacts, 0), 0)
