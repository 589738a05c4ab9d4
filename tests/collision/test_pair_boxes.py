"""Pairs in lanes: those are left out whose boxes are too far apart, and no others."""

import numpy as np
import pytest
import warp as wp

from pluriverse.collision.pair_boxes import drop_distant_pairs, drop_unaffected_pairs
from pluriverse.collision.shape_pair import BOX_ROUNDING, LEAST_SHARE
from pluriverse.collision.shape_state import ANY_SPEED, ShapePlace

SHAPE_COUNT = 30
FIRST_PAIR, FIRST_SHAPE, FIRST_WORD = 5, 2, 1
# sqrt(u^2 + v^2) is at most the larger and this share of the smaller.
CORNER = np.sqrt(2.0) - 1.0


@wp.kernel(enable_backward=False, module="tests.collision.pair_boxes")
def drop_distant(
    place: wp.array[ShapePlace],
    pair_shape0: wp.array[int],
    pair_shape1: wp.array[int],
    begin: int,
    end: int,
    least_count: int,
    # out
    near: wp.array[wp.uint32],
):
    drop_distant_pairs(place, pair_shape0, pair_shape1, begin, end, 5, 2, least_count, near, 1)


@wp.kernel(enable_backward=False, module="tests.collision.pair_boxes")
def drop_unaffected(
    place: wp.array[ShapePlace],
    motion: wp.array[wp.spatial_vector],
    assumed: wp.array[float],
    pair_shape0: wp.array[int],
    pair_shape1: wp.array[int],
    begin: int,
    end: int,
    # out
    near: wp.array[wp.uint32],
):
    drop_unaffected_pairs(place, motion, assumed, pair_shape0, pair_shape1, begin, end, 5, 2, 1, near, 1)


def make_places(rng: np.random.Generator) -> np.ndarray:
    """Return boxes and cylinders, turned and moving at random; some shapes stand still, one is a plane."""
    places = np.zeros(SHAPE_COUNT, dtype=wp.zeros(1, dtype=ShapePlace, device="cpu").numpy().dtype)
    turns, _ = np.linalg.qr(rng.normal(size=(SHAPE_COUNT, 3, 3)))
    places["rotation"] = turns.reshape(places["rotation"].shape)
    for name, size in (("origin", 0.3), ("middle", 0.05), ("velocity", 1.0), ("spin", 3.0)):
        places[name] = rng.normal(size=(SHAPE_COUNT, 3)) * size
    places["half"] = rng.uniform(0.01, 0.2, (SHAPE_COUNT, 3))
    places["half"][1::3, 1] *= -1.0  # cylinders, or what they hold
    places["radius"] = np.linalg.norm(places["half"], axis=1) + 0.01
    places["lead"] = rng.uniform(0.005, 0.03, SHAPE_COUNT)
    places["change"] = rng.uniform(0.0, 0.5, SHAPE_COUNT)
    places["threshold"] = rng.uniform(0.0, 0.05, SHAPE_COUNT)
    places["margin"] = rng.uniform(0.0, 0.005, SHAPE_COUNT)
    places["gap_threshold"] = places["margin"] + rng.uniform(0.0, 0.1, SHAPE_COUNT)
    places["extent"] = np.linalg.norm(places["half"], axis=1)
    for name in ("velocity", "spin", "lead", "change"):
        places[name][3:9] = 0.0
    places["extent"][10] = ANY_SPEED
    places["spin_length"] = 0.004
    return places


def length(v: np.ndarray) -> np.ndarray:
    return np.linalg.norm(v, axis=-1)


def relative_motion(a, b, motion0, motion1) -> tuple[np.ndarray, np.ndarray]:
    """Return the speed of points of two shapes that are next to each other, and the larger spin."""
    apart = (b["origin"] - a["origin"]) + (b["middle"] - a["middle"])
    (spin0, velocity0), (spin1, velocity1) = motion0, motion1
    velocity, turning = velocity1 - velocity0, length(spin1 - spin0)
    speeds = [
        length(velocity - np.cross(spin0, apart)) + turning * b["radius"],
        length(velocity - np.cross(spin1, apart)) + turning * a["radius"],
        length(velocity) + length(spin0) * a["radius"] + length(spin1) * b["radius"],
    ]
    return np.min(speeds, axis=0), np.maximum(length(spin0), length(spin1))


def reaches(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return how far the second of two shapes reaches along the axes of the first [pair, axis]."""
    turn0, turn1 = a["rotation"].reshape(-1, 3, 3), b["rotation"].reshape(-1, 3, 3)
    return half_width(b["half"], np.abs(np.einsum("nij,nik->njk", turn0, turn1)))


def speed_near(a, b, motion0, motion1, distance: np.ndarray) -> np.ndarray:
    """Return a bound on the relative speed of points of two shapes within a distance of each other."""
    speeds = []
    for own, other, (own_spin, own_velocity), (spin, velocity) in (
        (a, b, motion0, motion1),
        (b, a, motion1, motion0),
    ):
        away = (other["origin"] - own["origin"]) + (other["middle"] - own["middle"])
        turn = own["rotation"].reshape(-1, 3, 3)
        along = np.einsum("nij,ni->nj", turn, away)
        reach, half = reaches(own, other) + distance[:, None], np.abs(own["half"])
        low, high = np.maximum(-half, along - reach), np.minimum(half, along + reach)
        arm = np.einsum("nij,nj->ni", turn, 0.5 * (low + high))
        relative = own_velocity + np.cross(own_spin, arm) - velocity - np.cross(spin, arm - away)
        radius = length(0.5 * np.maximum(high - low, 0.0)) + np.maximum(a["spin_length"], b["spin_length"])
        speeds.append(length(relative) + length(own_spin - spin) * radius)
    return np.min(speeds, axis=0)


def speed_of_contacts(
    a, b, motion0, motion1, change: np.ndarray | float, *, least_turning: np.ndarray | float = -1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return how fast contacts of two shapes are at most, but for the change, and the larger spin.

    Of shapes that turn no faster than `least_turning` [m/s] it does not count where they are near each other.
    """
    speed, spin = relative_motion(a, b, motion0, motion1)
    lead = np.maximum(a["lead"], b["lead"])
    farthest = a["margin"] + b["margin"] + acting_distance(lead, speed + change, spin)
    farthest = np.minimum(farthest, a["gap_threshold"] + b["gap_threshold"])
    turning = length(motion1[0] - motion0[0]) * np.minimum(a["radius"], b["radius"])
    near = np.where(turning > least_turning, speed_near(a, b, motion0, motion1, farthest), np.inf)
    return np.minimum(speed, near), spin


def acting_distance(lead: np.ndarray, speed: np.ndarray, spin: np.ndarray) -> np.ndarray:
    return lead * speed / np.maximum(1.0 - lead * spin, LEAST_SHARE)


def half_width(half: np.ndarray, cosines: np.ndarray) -> np.ndarray:
    """Return how far shapes reach along three directions, given by cosines [pair, direction, axis]."""
    u, v, w = np.moveaxis(cosines * np.abs(half)[:, None], 2, 0)
    corner = np.where(half[:, 1] < 0.0, CORNER, 1.0)[:, None]
    return np.maximum(u, v) + corner * np.minimum(u, v) + w


def box_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the distance of two boxes, as the axes of either show it, less what rounding may take."""
    apart = (b["origin"] - a["origin"]) + (b["middle"] - a["middle"])
    turn0, turn1 = a["rotation"].reshape(-1, 3, 3), b["rotation"].reshape(-1, 3, 3)
    cosines = np.abs(np.einsum("nij,nik->njk", turn0, turn1))
    half0, half1 = np.abs(a["half"]), np.abs(b["half"])
    gap0 = np.abs(np.einsum("nij,ni->nj", turn0, apart)) - half0 - half_width(b["half"], cosines)
    gap1 = np.abs(np.einsum("nij,ni->nj", turn1, apart)) - half1
    gap1 -= half_width(a["half"], cosines.transpose(0, 2, 1))
    lengths = np.abs(apart).sum(axis=1) + half0.sum(axis=1) + half1.sum(axis=1)
    return np.maximum(length(np.maximum(gap0, 0.0)), length(np.maximum(gap1, 0.0))) - BOX_ROUNDING * lengths


def make_pairs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return two flat shapes of each candidate pair."""
    pairs = np.argwhere(np.triu(np.ones((SHAPE_COUNT, SHAPE_COUNT)), 1))
    rng.shuffle(pairs)
    return pairs[:, 0], pairs[:, 1]


def names(shapes: np.ndarray) -> wp.array:
    """Return shapes as pairs name them, behind other pairs; the first two belong to all worlds."""
    local = np.where(shapes < FIRST_SHAPE, -1 - shapes, shapes - FIRST_SHAPE)
    return wp.array(np.concatenate([np.zeros(FIRST_PAIR), local]).astype(np.int32), dtype=int, device="cpu")


def to_words(bits: np.ndarray) -> wp.array:
    padded = np.concatenate(
        [np.ones(32 * FIRST_WORD, dtype=bool), bits, np.zeros(-len(bits) % 32, dtype=bool)]
    )
    words = np.packbits(padded, bitorder="little").view("<u4")
    return wp.array(words, dtype=wp.uint32, device="cpu")


def from_words(words: wp.array, count: int) -> np.ndarray:
    bits = np.unpackbits(words.numpy().view(np.uint8), bitorder="little").astype(bool)
    assert bits[: 32 * FIRST_WORD].all()
    return bits[32 * FIRST_WORD :][:count]


def test_no_point_is_faster_than_the_bound_near_the_other_shape():
    """Points of two boxes within 0.05 m of each other, by chance: none is faster than `speed_near` says."""
    rng = np.random.default_rng(4)
    places = make_places(rng)
    places["origin"] *= 0.3
    shape0, shape1 = make_pairs(rng)
    a, b = places[shape0], places[shape1]
    distance = np.full(len(shape0), 0.05)
    motions = (a["spin"], a["velocity"]), (b["spin"], b["velocity"])
    bound = speed_near(a, b, *motions, distance)
    fastest = np.zeros(len(shape0))
    for _ in range(4000):
        arms = [
            np.einsum(
                "nij,nj->ni",
                some["rotation"].reshape(-1, 3, 3),
                some["half"] * rng.uniform(-1, 1, (len(a), 3)),
            )
            for some in (a, b)
        ]
        points = [some["origin"] + some["middle"] + arm for some, arm in zip((a, b), arms, strict=True)]
        velocities = [v + np.cross(w, arm) for (w, v), arm in zip(motions, arms, strict=True)]
        apart = length(points[1] - points[0])
        # Points that are apart turn about each other.
        speed = (
            length(velocities[1] - velocities[0]) - np.maximum(length(a["spin"]), length(b["spin"])) * apart
        )
        fastest = np.maximum(fastest, np.where(apart <= distance, speed, 0.0))
    met = fastest > 0.0
    assert met.sum() > 100
    assert (fastest <= bound + 1e-9).all()
    assert (fastest[met] / bound[met]).max() > 0.7


@pytest.mark.parametrize("share", [1.0, 0.3, 0.02])
def test_distant_pairs_are_left_out(share):
    """Pairs go whose boxes are farther apart than they may come to act, by NumPy in double precision.

    Distances that rounding may put on either side are not looked at. Pairs outside of the range stay.
    """
    rng = np.random.default_rng(0)
    places = make_places(rng)
    shape0, shape1 = make_pairs(rng)
    a, b = (places[some].astype(places.dtype) for some in (shape0, shape1))
    before = rng.random(len(shape0)) < share
    begin, end = 7, len(shape0) - 11
    lead = np.maximum(a["lead"], b["lead"])
    motions = (a["spin"], a["velocity"]), (b["spin"], b["velocity"])
    change = a["change"] + b["change"]
    speed, spin = speed_of_contacts(a, b, *motions, change, least_turning=change)
    assert (speed < 0.9 * relative_motion(a, b, *motions)[0]).mean() > 0.2
    acting = acting_distance(lead, speed + change, spin)
    threshold = np.where(lead > 0.0, a["margin"] + b["margin"] + acting, a["threshold"] + b["threshold"])
    threshold = np.minimum(threshold, a["gap_threshold"] + b["gap_threshold"])
    distance = box_distance(a, b)
    index = np.arange(len(shape0))
    has_boxes = (a["extent"] < ANY_SPEED) & (b["extent"] < ANY_SPEED)
    expected = before & ~(has_boxes & (distance > threshold) & (index >= begin) & (index < end))
    clear = np.abs(distance - threshold) > 1.0e-6
    assert clear.mean() > 0.99
    near = to_words(before)
    wp.launch(
        drop_distant,
        dim=1,
        inputs=[
            wp.array(places, dtype=ShapePlace, device="cpu"),
            names(shape0),
            names(shape1),
            begin,
            end,
            1,
        ],
        outputs=[near],
        device="cpu",
    )
    after = from_words(near, len(before))
    np.testing.assert_array_equal(after[clear], expected[clear])
    assert after.sum() < before.sum()


def test_few_pairs_are_left_to_their_colliders():
    """Where fewer pairs are left than asked for, none goes."""
    rng = np.random.default_rng(1)
    places = make_places(rng)
    shape0, shape1 = make_pairs(rng)
    before = np.zeros(len(shape0), dtype=bool)
    before[[40, 90]] = True
    near = to_words(before)
    wp.launch(
        drop_distant,
        dim=1,
        inputs=[
            wp.array(places, dtype=ShapePlace, device="cpu"),
            names(shape0),
            names(shape1),
            0,
            len(before),
            3,
        ],
        outputs=[near],
        device="cpu",
    )
    np.testing.assert_array_equal(from_words(near, len(before)), before)


def test_no_number_keeps_a_pair():
    """A pair of which something is no number is left to its collider, unless it is beyond its gaps."""
    rng = np.random.default_rng(2)
    shape0, shape1 = make_pairs(rng)
    for name in ("origin", "half", "velocity", "spin", "change", "margin", "gap_threshold"):
        places = make_places(rng)
        places["origin"] *= 0.5
        places[name][20] = np.nan
        near = to_words(np.ones(len(shape0), dtype=bool))
        wp.launch(
            drop_distant,
            dim=1,
            inputs=[
                wp.array(places, dtype=ShapePlace, device="cpu"),
                names(shape0),
                names(shape1),
                0,
                len(shape0),
                1,
            ],
            outputs=[near],
            device="cpu",
        )
        after = from_words(near, len(shape0))
        a, b = places[shape0], places[shape1]
        is_beyond = box_distance(a, b) > a["gap_threshold"] + b["gap_threshold"]
        concerned = ((shape0 == 20) | (shape1 == 20)) & ~is_beyond
        assert concerned.sum() > 3, name
        assert after[concerned].all(), name
        assert not after.all()


def test_pairs_that_move_as_assumed_are_left_out():
    """Pairs go that their new motion keeps apart, or that were looked at that far, by NumPy."""
    rng = np.random.default_rng(3)
    places = make_places(rng)
    motion = np.concatenate([places["spin"], places["velocity"]], axis=1)
    motion += rng.normal(size=motion.shape) * rng.choice([0.0, 0.02, 1.0], (SHAPE_COUNT, 1))
    motion = motion.astype(np.float32)
    assumed = rng.uniform(0.0, 0.5, SHAPE_COUNT).astype(np.float32)
    shape0, shape1 = make_pairs(rng)
    a, b = places[shape0], places[shape1]
    lead = np.maximum(a["lead"], b["lead"])
    change = assumed[shape0] + assumed[shape1]
    motions = (a["spin"], a["velocity"]), (b["spin"], b["velocity"])
    speed, _ = speed_of_contacts(a, b, *motions, change, least_turning=change)
    new0, new1 = motion[shape0], motion[shape1]
    now, spin = speed_of_contacts(a, b, (new0[:, :3], new0[:, 3:]), (new1[:, :3], new1[:, 3:]), 0.0)
    margins = a["margin"] + b["margin"]
    threshold = margins + acting_distance(lead, now, spin)
    looked_at = margins + lead * (speed + change)
    distance = box_distance(a, b)
    limits = [a["threshold"] + b["threshold"], threshold]
    within = np.minimum(threshold, a["gap_threshold"] + b["gap_threshold"])
    has_boxes = (a["extent"] < ANY_SPEED) & (b["extent"] < ANY_SPEED)
    expected = ~(has_boxes & ((distance > np.min(limits, axis=0)) | (within <= looked_at)))
    clear = (np.abs(distance - np.min(limits, axis=0)) > 1.0e-6) & (np.abs(within - looked_at) > 1.0e-6)
    clear |= lead == 0.0
    assert 20 < expected.sum() < 0.9 * len(shape0)
    near = to_words(np.ones(len(shape0), dtype=bool))
    wp.launch(
        drop_unaffected,
        dim=1,
        inputs=[
            wp.array(places, dtype=ShapePlace, device="cpu"),
            wp.array(motion, dtype=wp.spatial_vector, device="cpu"),
            wp.array(assumed, dtype=float, device="cpu"),
            names(shape0),
            names(shape1),
            0,
            len(shape0),
        ],
        outputs=[near],
        device="cpu",
    )
    after = from_words(near, len(shape0))
    assert clear.mean() > 0.95
    np.testing.assert_array_equal(after[clear], expected[clear])


def test_cylinders_side_by_side_are_told_apart():
    """Upright cylinders, turned about their axes, are as far apart as circles are, though boxes overlap."""
    places = make_places(np.random.default_rng(5))[:2]
    places[:] = np.zeros(1, dtype=places.dtype)
    places["half"], places["extent"] = (0.09, -0.09, 0.05), 0.15
    places["origin"][1, 0] = 0.2
    half = np.sqrt(0.5)
    places["rotation"] = np.array([half, -half, 0.0, half, half, 0.0, 0.0, 0.0, 1.0]).reshape(
        places["rotation"].shape[1:]
    )
    places["threshold"], places["gap_threshold"] = 0.002, 0.05
    for distance, stays in ((0.182, True), (0.2, False)):
        places["origin"][1, 1] = distance * 0.6
        places["origin"][1, 0] = distance * 0.8
        near = to_words(np.ones(1, dtype=bool))
        shapes = [wp.array([0] * FIRST_PAIR + [-1 - one], dtype=int, device="cpu") for one in (0, 1)]
        wp.launch(
            drop_distant,
            dim=1,
            inputs=[wp.array(places, dtype=ShapePlace, device="cpu"), *shapes, 0, 1, 1],
            outputs=[near],
            device="cpu",
        )
        assert from_words(near, 1)[0] == stays


def test_the_distance_of_boxes_is_a_lower_bound():
    """No two points of two boxes or cylinders are closer than the bound that decides."""
    rng = np.random.default_rng(4)
    places = make_places(rng)
    shape0, shape1 = make_pairs(rng)
    a, b = places[shape0], places[shape1]
    bound = box_distance(a, b)
    for _ in range(200):
        points = []
        for place in (a, b):
            local = np.sign(rng.uniform(-1.0, 1.0, (len(a), 3))) * rng.random((len(a), 1)) ** 0.1
            angle = rng.uniform(0.0, 2.0 * np.pi, len(a))
            is_round = place["half"][:, 1] < 0.0
            local[is_round, :2] = np.stack([np.cos(angle), np.sin(angle)], axis=1)[is_round]
            local *= np.abs(place["half"])
            turned = np.einsum("nij,nj->ni", place["rotation"].reshape(-1, 3, 3), local)
            points.append(place["origin"] + place["middle"] + turned)
        assert (length(points[1] - points[0]) >= bound).all()
