"""Shapes that touch on a face of a box or the end of a cylinder have closed forms."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.collision.pairs import ShapeSpec, box, collide_pairs, cylinder, ellipsoid

# Rounding of float32 in poses of half a metre, a few operations deep.
ROUNDING = 1e-6
SEMI_AXES = np.array([0.03, 0.05, 0.08])
HALF_HEIGHT = 0.1
BASES = {"box": box(0.3, 0.2, HALF_HEIGHT), "cylinder": cylinder(0.25, HALF_HEIGHT)}


def lie_over(base: ShapeSpec, heights: np.ndarray, seed: int):
    """Return the contacts of turned ellipsoids over the top of a base, turned with it, and the closed form.

    Args:
        base: Box or cylinder.
        heights: Distances of the ellipsoids from the top [m], negative for overlaps, shape [world].
        seed: Of the poses.
    """
    rng = np.random.default_rng(seed)
    count = len(heights)
    frame = Rotation.random(count, random_state=rng)
    turn = Rotation.random(count, random_state=rng)
    # A point of an ellipsoid along a direction n is E^2 n / |E n|, in its own axes.
    down = turn.inv().apply(np.tile([0.0, 0.0, -1.0], (count, 1)))
    lowest = turn.apply(SEMI_AXES**2 * down / np.linalg.norm(SEMI_AXES * down, axis=1)[:, None])
    foot = np.column_stack([rng.uniform(-0.1, 0.1, (count, 2)), HALF_HEIGHT + heights])
    place = rng.uniform(-0.2, 0.2, (count, 3))
    poses0 = np.concatenate([place, frame.as_quat()], axis=1)
    poses1 = np.concatenate([place + frame.apply(foot - lowest), (frame * turn).as_quat()], axis=1)
    worlds = collide_pairs(base, ellipsoid(*SEMI_AXES), poses0, poses1, gap=0.05)
    return worlds, frame.apply([0.0, 0.0, 1.0]), place + frame.apply(foot)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("low", [-0.03, 0.0])
def test_a_smooth_shape_on_a_face_has_the_distance_of_its_lowest_point(name: str, low: float):
    """Apart or overlapping, the shortest connection is the normal of the face through the lowest point."""
    heights = np.random.default_rng(2).uniform(low, low + 0.03, 20)
    worlds, up, points = lie_over(BASES[name], heights, seed=5)
    for contacts, height, normal, point in zip(worlds, heights, up, points, strict=True):
        assert contacts.count == 1
        # Contacts name the lower type first; the ellipsoid has it.
        np.testing.assert_allclose(contacts.distance, [height], rtol=0.0, atol=ROUNDING)
        np.testing.assert_allclose(contacts.normal[0], -normal, rtol=0.0, atol=ROUNDING)
        np.testing.assert_allclose(contacts.point0[0], point, rtol=0.0, atol=2 * ROUNDING)
        np.testing.assert_allclose(contacts.point1[0], point - height * normal, rtol=0.0, atol=2 * ROUNDING)


@pytest.mark.parametrize("beyond", [0.01, 0.03])
def test_a_smooth_shape_beside_a_face_is_farther_away_than_the_plane_of_it(beyond: float):
    """Beside the rim, the plane of a face is no measure: a small ball is as far as the edge is."""
    radius, height = 0.02, 0.01
    # Almost a ball, but collided by support functions.
    ball = ellipsoid(radius, radius, radius)
    pose = np.array([[0.3 + beyond, 0.05, HALF_HEIGHT + radius + height, 0.0, 0.0, 0.0, 1.0]])
    base = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
    (contacts,) = collide_pairs(BASES["box"], ball, base, pose, gap=0.05)
    expected = np.hypot(beyond, radius + height) - radius
    np.testing.assert_allclose(contacts.distance, [expected], rtol=0.0, atol=ROUNDING)


def test_a_shape_below_a_face_near_its_edge_leaves_by_the_nearer_side():
    """The normal of the face is not the minimum translation where the shape is closer to a side."""
    radius, depth, inside = 0.02, 0.03, 0.005
    ball = ellipsoid(radius, radius, radius)
    pose = np.array([[0.3 - inside + radius, 0.05, HALF_HEIGHT - depth + radius, 0.0, 0.0, 0.0, 1.0]])
    base = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
    (contacts,) = collide_pairs(BASES["box"], ball, base, pose, gap=0.05)
    np.testing.assert_allclose(contacts.distance.min(), -inside, rtol=0.0, atol=10 * ROUNDING)
