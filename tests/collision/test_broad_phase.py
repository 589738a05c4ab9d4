"""Broad phases: whichever finds the near pairs, the contacts are the same."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.collision.broad_phase import SWEEP_PAIR_COUNT
from tests.collision.pairs import box, plane, random_poses, read_contacts
from tests.collision.surface.test_mesh import MESHES
from tests.collision.test_pipeline import KINDS, assert_same_bits, stored


def crowd(count: int, seed: int, spread: float, *, mesh: bool = False) -> pv.ModelBuilder:
    """Return a world of many shapes above a plane."""
    world = pv.ModelBuilder()
    plane().add(world, -1, gap=0.01)
    rng = np.random.default_rng(seed)
    kinds = [*KINDS, MESHES["bowl"]] if mesh else KINDS
    for index, pose in enumerate(random_poses(rng, count, spread)):
        pose[2] = abs(pose[2])
        kinds[index % len(kinds)].add(world, world.add_body(xform=pose, mass=1.0), gap=0.01)
    return world


def crowds() -> pv.Model:
    """Return worlds of different sizes, some shapes shared by all."""
    builder = pv.ModelBuilder()
    box(3.0, 0.1, 0.3).add(builder, -1, gap=0.01)
    for count, seed, spread, mesh in (
        (40, 1, 0.5, False),
        (3, 2, 0.1, False),
        (25, 3, 0.4, True),
        (40, 4, 0.5, False),
    ):
        builder.add_world(crowd(count, seed, spread, mesh=mesh))
    return builder.finalize("cpu")


@pytest.mark.parametrize("broad_phase", ["nxn", "sap", None])
def test_every_broad_phase_gives_the_same_bits_in_the_same_order(broad_phase: str | None):
    """Contacts agree bit for bit with those of testing every pair, in any state, also where some are lost."""
    model = crowds()
    for capacity in (None, 20):
        reference = pv.CollisionPipeline(model, rigid_contact_max=capacity, broad_phase="explicit")
        pipeline = pv.CollisionPipeline(model, rigid_contact_max=capacity, broad_phase=broad_phase)
        expected, contacts = reference.contacts(), pipeline.contacts()
        state, rng = model.state(), np.random.default_rng(0)
        for _ in range(4):
            reference.collide(state, expected)
            pipeline.collide(state, contacts)
            assert expected.rigid_contact_count.numpy().sum() > 50
            for world in range(model.world_count):
                assert_same_bits(stored(expected, world), stored(contacts, world), 0)
            # Another order along the axes, and another longest axis.
            poses = state.body_q.numpy()
            poses[:, :3] = rng.permuted(poses[:, :3] * rng.uniform(0.5, 1.5, 3), axis=0)
            state.body_q.assign(poses.astype(np.float32))


def test_worlds_are_swept_alone_and_with_others_alike():
    """Sorting remembers an order, but contacts do not depend on it: not on the batch, not on the past."""
    model = crowds()
    pipeline = pv.CollisionPipeline(model, broad_phase="sap")
    contacts, state = pipeline.contacts(), model.state()
    pipeline.collide(state, contacts)
    expected = [stored(contacts, world) for world in range(model.world_count)]
    moved = model.state()
    moved.body_q.assign(state.body_q.numpy()[::-1].copy())
    pipeline.collide(moved, contacts)
    with wp.ScopedCapture(device="cpu") as capture:
        pipeline.collide(state, contacts, worlds=wp.array([2, 0], dtype=int, device="cpu"))
    contacts.clear()
    wp.capture_launch(capture.graph)
    for world in (0, 2):
        assert_same_bits(expected[world], stored(contacts, world), 0)
    assert contacts.rigid_contact_count.numpy()[1] == 0


def test_large_worlds_are_swept_by_default():
    """The choice goes by the number of candidate pairs of each kind of world."""
    model = crowds()
    counts = np.diff(model.topology.template_pair.numpy())
    mode = pv.CollisionPipeline(model)._broad_phase.template_mode
    np.testing.assert_array_equal(mode == 2, counts >= SWEEP_PAIR_COUNT)
    # Each of these shapes may touch most of the others: comparing all of them at once is quickest.
    assert set(mode.tolist()) == {1}
    big = crowd(100, 5, 0.8).finalize("cpu")
    assert pv.CollisionPipeline(big)._broad_phase.template_mode.tolist() == [2]


def test_bodies_of_many_shapes_are_compared_in_blocks_with_the_same_bits():
    """Hulls of a body are next to each other, so they are not sorted; contacts are those of every way."""
    world, rng = pv.ModelBuilder(), np.random.default_rng(6)
    for pose in random_poses(rng, 12, 0.5):
        body = world.add_body(xform=pose, mass=1.0)
        for _ in range(12):
            offset = wp.transform(wp.vec3(*rng.uniform(-0.1, 0.1, 3)), wp.quat_identity())
            world.add_shape_box(body, xform=offset, hx=0.02, hy=0.03, hz=0.04)
    model = world.finalize("cpu")
    pipeline = pv.CollisionPipeline(model)
    assert pipeline._broad_phase.template_mode.tolist() == [1]
    state, results = model.state(), []
    for some in (pipeline, *(pv.CollisionPipeline(model, broad_phase=name) for name in ("explicit", "sap"))):
        contacts = some.contacts()
        some.collide(state, contacts)
        results.append(stored(contacts, 0))
    assert len(results[0][0]) > 20
    for other in results[1:]:
        assert_same_bits(results[0], other, 0)


@pytest.mark.parametrize("broad_phase", ["nxn", "sap"])
def test_diverged_and_disabled_shapes_are_left_out(broad_phase: str):
    """A world with a broken pose has no contacts, a shape that is off none, whatever finds the pairs."""
    model = crowds()
    pipeline = pv.CollisionPipeline(model, broad_phase=broad_phase)
    contacts, state = pipeline.contacts(), model.state()
    poses = state.body_q.numpy()
    poses[2, 0] = np.nan
    state.body_q.assign(poses)
    enabled = model.shape_enabled.numpy()
    off = int(model.topology.world_shape.numpy()[2]) + 3
    enabled[off] = False
    model.shape_enabled.assign(enabled)
    pipeline.collide(state, contacts)
    worlds = read_contacts(model, state, contacts)
    assert worlds[0].count == 0
    assert worlds[2].count > 0
    assert off not in {*worlds[2].shape0, *worlds[2].shape1}


def test_unknown_broad_phase_is_refused():
    """The message names what there is."""
    with pytest.raises(ValueError, match="broad_phase: 'tree' is none of 'explicit', 'nxn', 'sap'"):
        pv.CollisionPipeline(crowd(2, 0, 0.1).finalize("cpu"), broad_phase="tree")
