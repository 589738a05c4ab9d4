"""The test of widths never leaves out a pair that is within reach."""

import itertools

import numpy as np
import pytest

from tests.collision.pairs import collide, pair_model
from tests.collision.test_distances import SHAPES, make_poses

NAMES = [
    names
    for names in itertools.combinations_with_replacement(SHAPES, 2)
    if not {*names} <= {"sphere", "capsule"} and {*names} & {"cylinder", "disc", "cone", "hull", "ellipsoid"}
]
# Part of a distance, above the rounding of a float32, by which gaps are off it.
CLOSE = 1e-4


@pytest.mark.parametrize("names", NAMES, ids="-".join)
def test_a_gap_just_above_the_distance_has_a_contact_and_one_just_below_has_none(names: tuple[str, str]):
    """Pairs are separated by widths only where support functions would find no contact either."""
    count = 12
    poses = make_poses(count, seed=NAMES.index(names), spread=0.6)
    model = pair_model(SHAPES[names[0]], SHAPES[names[1]], count, gap=2.0, margin=0.0)
    state = model.state()
    state.body_q.assign(np.stack(poses, axis=1).reshape(-1, 7).astype(np.float32))
    distance = np.array([world.distance.min() for world in collide(model, state)])
    apart = distance > 0.01
    assert apart.sum() > 3
    for part, has_contact in ((1.0 + CLOSE, True), (1.0 - CLOSE, False)):
        gap = np.repeat(0.5 * part * np.maximum(distance, 0.0), 2)
        model.shape_gap.assign(gap.astype(np.float32))
        found = np.array([world.count > 0 for world in collide(model, state)])
        np.testing.assert_array_equal(found[apart], has_contact)
