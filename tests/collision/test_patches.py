"""Patches between two shapes: what rests on what, with which corners, and how steadily."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.collision.pairs import (
    ShapeSpec,
    WorldContacts,
    box,
    capsule,
    collide_pairs,
    cone,
    cylinder,
    ellipsoid,
    hull,
    sphere,
)

CUBE = hull(np.array(np.meshgrid([-0.1, 0.1], [-0.1, 0.1], [-0.1, 0.1])).reshape(3, -1).T.astype(np.float64))
BOX = box(0.1, 0.1, 0.1)
CYLINDER = cylinder(0.1, 0.2)
CAPSULE = capsule(0.1, 0.2)
TABLE = box(1.0, 1.0, 0.1)
GAP = 0.002
# Depth that a body at rest has in these tests [m].
SINK = 1e-4
# Single-precision rounding over half a metre, a few operations deep.
ROUNDING = 5e-7
ORIGIN = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
LYING = Rotation.from_euler("x", np.pi / 2)


def touch(
    lower: ShapeSpec,
    upper: ShapeSpec,
    height: float,
    *,
    turn: Rotation | None = None,
    lower_turn: Rotation | None = None,
    shift: tuple[float, float] = (0.0, 0.0),
    gap: float = GAP,
) -> WorldContacts:
    """Return the contacts of `upper`, its origin `height` above that of `lower`; normals point up."""
    turn = Rotation.identity() if turn is None else turn
    lower_turn = Rotation.identity() if lower_turn is None else lower_turn
    poses0 = np.concatenate([np.zeros(3), lower_turn.as_quat()])[None]
    poses1 = np.concatenate([[*shift, height], turn.as_quat()])[None]
    contacts = collide_pairs(lower, upper, poses0, poses1, gap=gap)[0]
    if contacts.count and contacts.shape0[0] % 2 == 1:
        contacts.point0, contacts.point1 = contacts.point1, contacts.point0
        contacts.normal = -contacts.normal
    return contacts


def assert_distinct(points: np.ndarray, spacing: float) -> None:
    """Assert that no two points are closer than `spacing`."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    assert distances[~np.eye(len(points), dtype=bool)].min() > spacing


RESTING = [
    ("box on box", BOX, BOX, 0.2, {}, 4),
    ("box on box, turned by 45 degrees", BOX, BOX, 0.2, {"turn": Rotation.from_euler("z", np.pi / 4)}, 8),
    ("box overhanging a box", BOX, BOX, 0.2, {"shift": (0.12, 0.05)}, 4),
    ("small box on a table", TABLE, BOX, 0.2, {"turn": Rotation.from_euler("z", 0.3)}, 4),
    (
        "edge of a box on a table",
        TABLE,
        BOX,
        0.1 + 0.1 * np.sqrt(2),
        {"turn": Rotation.from_euler("x", np.pi / 4)},
        2,
    ),
    ("cube hull on box", BOX, CUBE, 0.2, {}, 4),
    ("box on cube hull", CUBE, BOX, 0.2, {"turn": Rotation.from_euler("z", np.pi / 4)}, 8),
    ("cube hull on cube hull", CUBE, CUBE, 0.2, {"shift": (0.05, 0.02)}, 4),
    ("standing cylinder on table", TABLE, CYLINDER, 0.3, {}, 4),
    ("lying cylinder on table", TABLE, CYLINDER, 0.2, {"turn": LYING}, 2),
    ("standing cylinder on cylinder", CYLINDER, CYLINDER, 0.4, {}, 4),
    ("lying cylinder along a cylinder", CYLINDER, CYLINDER, 0.2, {"turn": LYING, "lower_turn": LYING}, 2),
    (
        "lying cylinder across a cylinder",
        CYLINDER,
        CYLINDER,
        0.2,
        {"turn": LYING, "lower_turn": Rotation.from_euler("y", np.pi / 2)},
        1,
    ),
    ("box on a wide cylinder", cylinder(0.3, 0.1), BOX, 0.2, {}, 4),
    ("lying capsule on table", TABLE, CAPSULE, 0.2, {"turn": LYING}, 2),
    ("standing capsule on table", TABLE, CAPSULE, 0.4, {}, 1),
    ("capsule over a narrow box", BOX, CAPSULE, 0.2, {"turn": LYING}, 2),
    ("capsule along a capsule", CAPSULE, CAPSULE, 0.2, {"turn": LYING, "lower_turn": LYING}, 2),
    (
        "capsule across a capsule",
        CAPSULE,
        CAPSULE,
        0.2,
        {"turn": LYING, "lower_turn": Rotation.from_euler("y", np.pi / 2)},
        1,
    ),
    ("capsule along a cylinder", CYLINDER, CAPSULE, 0.2, {"turn": LYING, "lower_turn": LYING}, 2),
    ("lying capsule on cube hull", CUBE, CAPSULE, 0.2, {"turn": LYING}, 2),
    ("standing cone on table", TABLE, cone(0.1, 0.2), 0.3, {}, 4),
    ("ellipsoid on table", TABLE, ellipsoid(0.1, 0.2, 0.05), 0.15, {}, 1),
    ("sphere on table", TABLE, sphere(0.1), 0.2, {}, 1),
    ("sphere on cube hull", CUBE, sphere(0.1), 0.2, {}, 1),
]


@pytest.mark.parametrize(
    ("name", "lower", "upper", "height", "how", "count"), RESTING, ids=[row[0] for row in RESTING]
)
@pytest.mark.parametrize("rise", [-SINK, SINK], ids=["sunk", "hovering"])
def test_shape_at_rest_has_its_whole_patch(
    name: str, lower: ShapeSpec, upper: ShapeSpec, height: float, how: dict, count: int, rise: float
):
    """What rests on a face touches with each corner of the patch, once, equally deep, normal upright."""
    contacts = touch(lower, upper, height + rise, **how)
    assert contacts.count == count
    np.testing.assert_allclose(contacts.distance, rise, atol=ROUNDING)
    np.testing.assert_allclose(contacts.normal[:, 2], 1.0, atol=1e-6)
    # Curved sides have their normal to the square root of the tolerance of the distance.
    np.testing.assert_allclose(contacts.normal[:, :2], 0.0, atol=5e-5)
    if count > 1:
        assert_distinct(contacts.point1, 0.02)


@pytest.mark.parametrize(
    ("lower", "upper"), [(BOX, BOX), (CUBE, CUBE), (BOX, CUBE)], ids=["box", "hull", "mixed"]
)
def test_patch_of_shifted_boxes_is_the_overlap_of_their_faces(lower: ShapeSpec, upper: ShapeSpec):
    """The corners of the patch are those of the rectangle that both faces cover."""
    contacts = touch(lower, upper, 0.2 - SINK, shift=(0.06, -0.03))
    corners = sorted(map(tuple, contacts.point0[:, :2]))
    expected = [(-0.04, -0.1), (-0.04, 0.07), (0.1, -0.1), (0.1, 0.07)]
    np.testing.assert_allclose(corners, expected, atol=ROUNDING)
    np.testing.assert_allclose(contacts.point0[:, 2], 0.1, atol=ROUNDING)
    np.testing.assert_allclose(contacts.point1[:, 2], 0.1 - SINK, atol=ROUNDING)


def test_patch_of_turned_boxes_has_the_area_of_the_octagon():
    """Two equal squares turned by 45 degrees overlap in a regular octagon, area 8 (sqrt 2 - 1) h^2."""
    contacts = touch(BOX, BOX, 0.2 - SINK, turn=Rotation.from_euler("z", np.pi / 4))
    x, y = contacts.point0[:, :2].T
    order = np.argsort(np.arctan2(y, x))
    x, y = x[order], y[order]
    area = 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
    assert area == pytest.approx(8.0 * (np.sqrt(2.0) - 1.0) * 0.01, rel=1e-5)


def test_patch_of_two_tilted_crossing_plates_stays_whole():
    """Plates that cross, tilted by a hair, touch first at two edges, but they still rest on four corners."""
    lower, upper = box(0.5, 0.05, 0.01), box(0.05, 0.5, 0.01)
    for tilt in (0.0, 1e-5, 1e-4, 1e-3):
        contacts = touch(lower, upper, 0.02 - SINK, turn=Rotation.from_euler("xy", [tilt, tilt]), gap=0.01)
        assert contacts.count == 4, tilt
        # Distances along the normal differ across the patch, 5 cm either way, by the tilt.
        assert np.ptp(contacts.distance) <= 2.1 * tilt * 0.1 + ROUNDING


def test_edges_that_cross_have_one_contact():
    """Two boxes edge to edge at right angles touch in one point, along the common perpendicular."""
    lower_turn = Rotation.from_euler("x", np.pi / 4)
    turn = Rotation.from_euler("y", np.pi / 4)
    contacts = touch(BOX, BOX, 0.2 * np.sqrt(2) - SINK, turn=turn, lower_turn=lower_turn)
    assert contacts.count == 1
    assert contacts.distance[0] == pytest.approx(-SINK, abs=ROUNDING)
    np.testing.assert_allclose(contacts.normal, [[0.0, 0.0, 1.0]], atol=1e-6)
    np.testing.assert_allclose(contacts.point0[0], [0.0, 0.0, 0.1 * np.sqrt(2)], atol=ROUNDING)


@pytest.mark.parametrize("upper", [BOX, CUBE, CYLINDER], ids=["box", "hull", "cylinder"])
def test_patch_follows_small_motions_smoothly(upper: ShapeSpec):
    """A hair's motion of a resting body moves its depth by as much, with no corner lost or added."""
    rng = np.random.default_rng(0)
    height = 0.1 + (0.2 if upper is CYLINDER else 0.1) - SINK
    counts, depths = [], []
    for _ in range(40):
        turn = Rotation.from_rotvec(rng.normal(size=3) * 1e-6)
        contacts = touch(TABLE, upper, height, turn=turn, shift=tuple(rng.normal(size=2) * 1e-6))
        counts.append(contacts.count)
        depths.append(contacts.distance.sum())
    assert set(counts) == {4}
    np.testing.assert_allclose(depths, -4 * SINK, atol=4 * 2e-6)


def test_capsule_tilted_on_a_table_touches_with_its_end():
    """The deepest point of a tilted capsule is on its cap; the other contact at the far end of its side."""
    tilt = 0.1
    turn = Rotation.from_euler("x", np.pi / 2 + tilt)
    height = 0.2 * np.sin(tilt) + 0.1 - SINK
    for lower, level in ((TABLE, 0.1), (hull(np.array(CUBE.mesh.vertices) * 10.0), 1.0)):
        contacts = touch(lower, CAPSULE, level + height, turn=turn, gap=0.1)
        assert contacts.count == 2
        assert contacts.distance.min() == pytest.approx(-SINK, abs=ROUNDING * 2)
        far = contacts.distance.argmax()
        # The side's lower line is 0.1 cos(tilt) below the axis along the vertical.
        assert contacts.distance[far] == pytest.approx(
            0.4 * np.sin(tilt) + 0.1 - 0.1 * np.cos(tilt) - SINK, abs=2e-6
        )


def test_capsule_along_the_edge_of_a_box_has_two_contacts():
    """A capsule parallel to an edge and beside it touches at both ends of the edge it covers."""
    turn = Rotation.from_euler("x", np.pi / 2)
    reach = (0.1 - SINK) / np.sqrt(2)
    contacts = touch(box(0.1, 0.15, 0.1), CAPSULE, 0.1 + reach, turn=turn, shift=(0.1 + reach, 0.0))
    assert contacts.count == 2
    np.testing.assert_allclose(np.sort(contacts.point0[:, 1]), [-0.15, 0.15], atol=ROUNDING)
    np.testing.assert_allclose(contacts.distance, -SINK, atol=ROUNDING)


def test_hull_with_a_round_face_keeps_at_most_eight_spread_corners():
    """A 32-sided prism stands on eight corners of its base, spread around it."""
    angles = np.linspace(0.0, 2.0 * np.pi, 32, endpoint=False)
    ring = 0.1 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = np.concatenate([np.c_[ring, np.full(32, -0.1)], np.c_[ring, np.full(32, 0.1)]])
    contacts = touch(TABLE, hull(points), 0.2 - SINK)
    assert 4 <= contacts.count <= 8
    assert_distinct(contacts.point1, 0.05)
    np.testing.assert_allclose(contacts.point1[:, :2].mean(axis=0), 0.0, atol=0.01)
