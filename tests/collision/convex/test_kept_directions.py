"""Directions kept of earlier steps: contacts are those of a pipeline that has kept none, to the bit."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.collision.convex.kept_directions import KEPT_MAX, make_kept_directions
from pluriverse.collision.pair_table import Collider
from tests.collision.test_broad_phase import crowd
from tests.collision.test_pipeline import assert_same_bits, stored


def kept_places(pipeline: pv.CollisionPipeline) -> np.ndarray:
    """Return the places of all worlds, on a CPU the memory itself."""
    return pipeline._stages._data[Collider.CONVEX].kept.place.numpy()


def crowds() -> pv.Model:
    """Return two worlds of many shapes of all kinds, one of which has more pairs than places."""
    builder = pv.ModelBuilder()
    builder.add_world(crowd(40, 1, 0.4))
    builder.add_world(crowd(5, 2, 0.3))
    return builder.finalize("cpu")


@pytest.mark.parametrize("poison", [False, True], ids=["kept", "wrong"])
def test_contacts_do_not_depend_on_what_was_kept(poison: bool):
    """Bodies drift; the directions kept tell pairs apart, and where they are wrong they tell nothing."""
    model = crowds()
    pipeline = pv.CollisionPipeline(model)
    contacts, state = pipeline.contacts(), model.state()
    rng = np.random.default_rng(0)
    places = kept_places(pipeline)
    used = 0
    for _ in range(30):
        before = places["pair"].copy()
        pipeline.collide(state, contacts)
        used = max(used, int(((places["pair"] == before) & (before > 0)).sum()))
        fresh = pv.CollisionPipeline(model)
        expected = fresh.contacts()
        fresh.collide(state, expected)
        assert expected.rigid_contact_count.numpy().min() > 0
        for world in range(model.world_count):
            assert_same_bits(stored(expected, world), stored(contacts, world), 0)
        poses = state.body_q.numpy()
        poses[:, :3] += rng.normal(size=(len(poses), 3)) * 0.003
        state.body_q.assign(poses)
        if poison:
            places["direction"] = rng.normal(size=places["direction"].shape)
    assert used > 20  # of the same pairs as in the step before


def test_a_direction_is_kept_of_pairs_that_are_apart():
    """Two hulls whose boxes overlap: the direction kept is one along which the hulls are farther apart."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=np.float64)
    tetrahedron = pv.Mesh(corners, np.array([0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]))
    world = pv.ModelBuilder()
    for place, turn in (((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)), ((0.85, 0.85, 0.4), (0.0, 0.0, 1.0, 0.0))):
        body = world.add_body(xform=(*place, *turn), mass=1.0)
        world.add_shape_convex_hull(body, mesh=tetrahedron, cfg=pv.ShapeConfig(gap=0.001))
    builder = pv.ModelBuilder()
    builder.replicate(world, 3)
    model = builder.finalize("cpu")
    pipeline = pv.CollisionPipeline(model)
    contacts = pipeline.contacts()
    pipeline.collide(model.state(), contacts)
    places = kept_places(pipeline)
    np.testing.assert_array_equal(contacts.rigid_contact_count.numpy(), 0)
    np.testing.assert_array_equal(places["pair"], [1, 1, 1])
    direction = places["direction"][0].astype(np.float64)
    assert np.linalg.norm(direction) == pytest.approx(1.0, abs=1e-6)
    second = corners * (-1.0, -1.0, 1.0) + (0.85, 0.85, 0.4)
    assert (second @ direction).min() - (corners @ direction).max() > 0.002
    assert (places["direction"] == places["direction"][0]).all()


def test_worlds_have_as_many_places_as_pairs_up_to_the_most():
    """Numbers of places are powers of two; a world without such pairs has none."""
    kept = make_kept_directions(np.array([0, 1, 3, 128, 5000]), "cpu")
    np.testing.assert_array_equal(np.diff(kept.start.numpy()), [0, 1, 4, KEPT_MAX, KEPT_MAX])
    assert kept.place.size == 5 + 2 * KEPT_MAX
