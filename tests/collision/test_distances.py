"""Distances, normals and points of every pair of convex shapes, by certificates, an oracle and MuJoCo.

A contact (n, x0, x1, d) with x0, x1 on the surfaces proves itself when the shapes are apart: the separation
along n, from support functions, bounds the distance from below, the length of x1 - x0 from above. When they
overlap, the separation along n bounds the signed distance from below; that no other direction separates more
is for the oracle.
"""

import itertools

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pluriverse.types import GeoType
from tests.collision.pairs import (
    SHAPES,
    ShapeSpec,
    WorldContacts,
    box,
    collide_pairs,
    random_poses,
    sphere,
    surface_height,
)
from tests.collision.support_oracle import separation, signed_distance

NAMES = list(itertools.combinations_with_replacement(SHAPES, 2))
GAP = 0.1
# Single-precision rounding of points and of a normal over the 0.5 m of a pair, a few operations deep.
ROUNDING = 1e-6
# A patch counts as containing the closest points if its distance is right to 1e-5 of the smaller shape (0.4
# m).
PATCH_TOLERANCE = 4e-6
# Boxes that overlap take a face of theirs within 20 degrees of one of the other, although another direction
# may be a shorter translation by this part of the sum of the half extents of the smaller box.
FACE_COSINE = 0.93
FACE_PREFERENCE = 0.05
# The oracle falls short by this at ridges of the separation, where its random steps advance slowly.
ORACLE_SHORTFALL = 2e-4


def make_poses(count: int, seed: int, spread: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Return poses of two shapes as float32 holds them; by default about half of them overlap."""
    rng = np.random.default_rng(seed)
    return tuple(
        random_poses(rng, count, half).astype(np.float32).astype(np.float64) for half in (0.1, spread)
    )


def deepest(
    contacts: WorldContacts, names: tuple[str, str], poses: tuple[np.ndarray, np.ndarray]
) -> tuple[int, tuple[ShapeSpec, ShapeSpec], tuple[np.ndarray, np.ndarray]]:
    """Return the index of the deepest contact, and shapes and poses in the order in which it names them."""
    order = (0, 1) if contacts.shape0[0] % 2 == 0 else (1, 0)
    shapes = tuple(SHAPES[names[side]] for side in order)
    return int(contacts.distance.argmin()), shapes, tuple(poses[side] for side in order)


@pytest.mark.parametrize("names", NAMES, ids="-".join)
def test_contacts_prove_the_signed_distance(names: tuple[str, str]):
    """Points lie on the surfaces, and bounds from both sides meet at the distance of the deepest contact."""
    count = 16
    poses = make_poses(count, seed=NAMES.index(names))
    worlds = collide_pairs(SHAPES[names[0]], SHAPES[names[1]], *poses, gap=GAP)
    for world, contacts in enumerate(worlds):
        pair_poses = (poses[0][world], poses[1][world])
        oracle, _ = signed_distance(SHAPES[names[0]], SHAPES[names[1]], *pair_poses)
        if contacts.count == 0:
            assert oracle > 2.0 * GAP - ORACLE_SHORTFALL
            continue
        np.testing.assert_allclose(np.linalg.norm(contacts.normal, axis=1), 1.0, atol=ROUNDING)
        index, shapes, ordered = deepest(contacts, names, pair_poses)
        # Body frames are shape frames here.
        assert np.abs(surface_height(shapes[0], contacts.local0)).max() < 2 * ROUNDING
        assert np.abs(surface_height(shapes[1], contacts.local1)).max() < 2 * ROUNDING
        distance = contacts.distance[index]
        assert distance <= 2.0 * GAP + ROUNDING
        along = separation(*shapes, *ordered, contacts.normal[index])
        if {*names} <= {"box", "plate"} and distance < 0.0 and along < distance - PATCH_TOLERANCE:
            # Boxes that lie about flat on each other may take a face. Corners beside the patch are deeper,
            # those of the patch by no more than the preference.
            for rotation in (Rotation.from_quat(pose[3:]).as_matrix() for pose in pair_poses):
                assert np.abs(contacts.normal[index] @ rotation).max() > FACE_COSINE
            assert distance >= oracle - FACE_PREFERENCE * min(sum(shape.scale) for shape in shapes)
        else:
            assert along == pytest.approx(distance, abs=PATCH_TOLERANCE)
            assert distance >= oracle - PATCH_TOLERANCE
        if distance > 0.0:
            connection = contacts.point1[index] - contacts.point0[index]
            assert np.linalg.norm(connection) <= distance + 2 * ROUNDING
        else:
            assert distance <= oracle + ORACLE_SHORTFALL + 2e-3 * abs(oracle)


MUJOCO_TYPES = {
    "sphere": "sphere",
    "capsule": "capsule",
    "ellipsoid": "ellipsoid",
    "cylinder": "cylinder",
    "box": "box",
}


def mujoco_distances(names: tuple[str, str], poses: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return MuJoCo's signed distances of two shapes at given poses, shape [pose]."""
    bodies = ""
    for name in names:
        size = " ".join(map(str, SHAPES[name].scale))
        bodies += f'<body mocap="true"><geom type="{MUJOCO_TYPES[name]}" size="{size}"/></body>'
    option = '<option ccd_tolerance="1e-10" ccd_iterations="200"/>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{option}<worldbody>{bodies}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    distances = []
    for pair in zip(*poses, strict=True):
        for body, pose in enumerate(pair):
            data.mocap_pos[body], data.mocap_quat[body] = pose[:3], pose[[6, 3, 4, 5]]
        mujoco.mj_kinematics(model, data)
        distances.append(mujoco.mj_geomDistance(model, data, 0, 1, 10.0, np.zeros(6)))
    return np.array(distances)


@pytest.mark.parametrize(
    "names", list(itertools.combinations_with_replacement(MUJOCO_TYPES, 2)), ids="-".join
)
def test_distance_of_separated_shapes_agrees_with_mujoco(names: tuple[str, str]):
    """Apart, the distance has one value, and MuJoCo computes it by its own algorithms."""
    poses = make_poses(80, seed=5, spread=0.5)
    expected = mujoco_distances(names, poses)
    worlds = collide_pairs(SHAPES[names[0]], SHAPES[names[1]], *poses, gap=GAP)
    # MuJoCo ends its search between curved shapes early: its distances of ellipsoids are off by up to 2e-4,
    # to either side, while ours are proven above. Other shapes end at its relative tolerance.
    tolerance = 3e-4 if "ellipsoid" in names else 2e-5
    compared = 0
    for distance, contacts in zip(expected, worlds, strict=True):
        if 5e-4 < distance < 2.0 * GAP - 5e-4:
            assert contacts.distance.min() == pytest.approx(distance, abs=tolerance)
            compared += 1
        elif distance > 2.0 * GAP + 5e-4:
            assert contacts.count == 0
    assert compared >= 10


@pytest.mark.parametrize("names", NAMES, ids="-".join)
def test_swapping_two_shapes_mirrors_the_contact(names: tuple[str, str]):
    """Which of two shapes comes first changes nothing but signs and order."""
    poses = make_poses(40, seed=11)
    forth = collide_pairs(SHAPES[names[0]], SHAPES[names[1]], *poses, gap=GAP)
    back = collide_pairs(SHAPES[names[1]], SHAPES[names[0]], poses[1], poses[0], gap=GAP)
    for world, (a, b) in enumerate(zip(forth, back, strict=True)):
        assert a.count == b.count or abs(a.count - b.count) <= 2  # corners of a patch at the limit of the gap
        if a.count == 0:
            continue
        either = PATCH_TOLERANCE
        if a.distance.min() < 0.0 and names[0] == names[1] and names[0] in ("box", "plate"):
            either += FACE_PREFERENCE * sum(SHAPES[names[0]].scale)  # of equal boxes the face of the first
        assert a.distance.min() == pytest.approx(b.distance.min(), abs=either)
        flip = 1.0 if (a.shape0[0] % 2) != (b.shape0[0] % 2) else -1.0
        i, j = a.distance.argmin(), b.distance.argmin()
        if a.distance.min() > 0.0 and a.count == 1:
            # Apart, the direction is unique; a curved edge has it to the square root of the rounding of
            # distances.
            assert flip * (a.normal[i] @ b.normal[j]) > 1.0 - 1e-5, world


@pytest.mark.parametrize("shape", ["box", "hull", "cylinder", "cone"])
def test_a_sphere_deep_inside_is_pushed_out_the_short_way(shape: str):
    """The depth of a sphere inside a shape is the distance of its centre from the surface plus its radius."""
    rng = np.random.default_rng(1)
    centers = rng.uniform(-0.04, 0.04, (30, 3))
    poses0 = random_poses(rng, 30, 0.0)
    poses1 = np.concatenate([Rotation.from_quat(poses0[:, 3:]).apply(centers), poses0[:, 3:]], axis=1)
    radius = 0.02
    expected = surface_height(SHAPES[shape], centers) - radius
    for world, contacts in enumerate(collide_pairs(SHAPES[shape], sphere(radius), poses0, poses1)):
        assert contacts.count == 1
        assert contacts.distance[0] == pytest.approx(expected[world], abs=ROUNDING)


def test_touching_at_one_point_is_neither_missed_nor_doubled():
    """Shapes moved together until they touch within rounding have contacts of distance zero."""
    rng = np.random.default_rng(2)
    for names in NAMES:
        first, second = SHAPES[names[0]], SHAPES[names[1]]
        poses0, poses1 = make_poses(6, seed=int(rng.integers(1000)))
        for world, contacts in enumerate(collide_pairs(first, second, poses0, poses1, gap=1.0)):
            index, _, _ = deepest(contacts, names, (poses0[world], poses1[world]))
            sign = 1.0 if contacts.shape0[0] % 2 == 0 else -1.0
            poses1[world, :3] -= sign * contacts.normal[index] * contacts.distance[index]
        for world, contacts in enumerate(collide_pairs(first, second, poses0, poses1, gap=1e-5)):
            assert contacts.count >= 1, (names, world)
            assert contacts.distance.min() == pytest.approx(0.0, abs=PATCH_TOLERANCE), (names, world)


def test_coincident_centres_have_a_finite_normal():
    """Two equal shapes at the very same pose still get a unit normal and a depth."""
    pose = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
    for name, shape in SHAPES.items():
        contacts = collide_pairs(shape, shape, pose, pose)[0]
        assert contacts.count >= 1, name
        assert np.isfinite(contacts.distance).all()
        assert (contacts.distance < 0.0).any(), name
        np.testing.assert_allclose(np.linalg.norm(contacts.normal, axis=1), 1.0, atol=1e-5, err_msg=name)


def test_far_from_the_origin_only_the_stored_pose_loses_precision():
    """Shapes 1 km off the origin, at poses that float32 holds exactly, have the contacts they have there."""
    shift = np.array([1024.0, -512.0, 256.0])
    rng = np.random.default_rng(4)
    for names in [
        ("box", "box"),
        ("capsule", "capsule"),
        ("box", "capsule"),
        ("cylinder", "hull"),
        ("sphere", "cylinder"),
    ]:
        poses0, poses1 = make_poses(20, seed=int(rng.integers(1000)))
        for poses in (poses0, poses1):
            poses[:, :3] = np.round(poses[:, :3] * 2**12) / 2**12
        near = collide_pairs(SHAPES[names[0]], SHAPES[names[1]], poses0, poses1, gap=GAP)
        for poses in (poses0, poses1):
            poses[:, :3] += shift
        far = collide_pairs(SHAPES[names[0]], SHAPES[names[1]], poses0, poses1, gap=GAP)
        for a, b in zip(near, far, strict=True):
            np.testing.assert_array_equal(a.normal, b.normal)
            np.testing.assert_array_equal(a.local0, b.local0)
            np.testing.assert_array_equal(a.local1, b.local1)


def test_small_box_on_a_large_one_keeps_its_precision():
    """Corners of a 2 cm box 400 m off the centre of a 1 km box are right to 1e-6 of the small one."""
    ground, small = box(500.0, 500.0, 1.0), box(0.01, 0.02, 0.03)
    place = np.float32([400.0, -300.0, 1.03 - 1e-5])
    yaw = Rotation.from_euler("z", 0.3).as_quat()
    poses0 = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
    contacts = collide_pairs(ground, small, poses0, np.concatenate([place, yaw])[None])[0]
    assert contacts.count == 4
    corners = sorted(map(tuple, np.round(np.abs(contacts.local1), 7)))
    np.testing.assert_allclose(corners, [(0.01, 0.02, 0.03)] * 4, atol=2e-8)
    assert {GeoType.BOX} == {ground.type, small.type}
