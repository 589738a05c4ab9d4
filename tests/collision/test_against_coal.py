"""All pairs of convex shapes against coal, an independent library, at random and at degenerate poses.

The poses of the second kind are those at which algorithms break: faces, edges and axes parallel, sides in
line, corners that touch, centres that coincide.
"""

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.collision.pairs import collide_pairs, random_poses
from tests.collision.support_oracle import separation
from tests.collision.test_distances import SHAPES

GAP = 0.1
SIZE = 0.4
"""How large the shapes are [m]: about the diagonal of the smaller ones."""
# What is asked for; what is reached is an order better, see docs/collision.md.
ACCURACY = 1e-4
# Distance [m] from which the direction of a connection is known to the accuracy of its ends.
APART = 1e-2
FACE_COSINE = 0.7
"""Cosine of the angle up to which boxes that overlap may take a face instead of the minimum translation."""
FACE_PREFERENCE = 0.05
"""How much longer the translation by the face may be, relative to the sum of the smaller half extents."""


def poses_of_both_kinds(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return poses of two shapes, random ones and multiples of right angles and of sizes."""
    rng = np.random.default_rng(seed)
    first, second = (random_poses(rng, 30, half) for half in (0.1, 0.35))
    quarter_turns = Rotation.create_group("O").as_quat()
    steps = rng.choice([-0.3, -0.1, 0.0, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5], (len(quarter_turns), 3))
    origin = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (len(quarter_turns), 1))
    first = np.concatenate([first, origin])
    second = np.concatenate([second, np.concatenate([steps, quarter_turns], axis=1)])
    return tuple(poses.astype(np.float32).astype(np.float64) for poses in (first, second))


@pytest.mark.parametrize("names", list(itertools.combinations_with_replacement(SHAPES, 2)), ids="-".join)
def test_distance_normal_and_penetration_agree_with_coal(names: tuple[str, str]):
    """Apart: the same distance along the same normal. Overlapping: coal knows no shorter translation."""
    coal_oracle = pytest.importorskip("tests.collision.coal_oracle")
    shapes = [SHAPES[name] for name in names]
    geometries = [coal_oracle.coal_geometry(shape) for shape in shapes]
    poses = poses_of_both_kinds(seed=len(names[0]) * 31 + len(names[1]))
    errors: dict[str, list[float]] = {"distance": [], "normal": [], "penetration": []}
    for pose0, pose1, contacts in zip(*poses, collide_pairs(*shapes, *poses, gap=GAP), strict=True):
        distance, normal = coal_oracle.coal_distance(geometries[0], pose0, geometries[1], pose1)
        if contacts.count == 0:
            assert distance > 2.0 * GAP - ACCURACY * SIZE
            continue
        deepest = int(contacts.distance.argmin())
        found = contacts.distance[deepest]
        direction = contacts.normal[deepest] * (1.0 if contacts.shape0[deepest] % 2 == 0 else -1.0)
        if distance > 0.0:
            errors["distance"].append(abs(found - distance))
            if distance > APART:
                errors["normal"].append(float(np.linalg.norm(direction - normal)))
        else:
            # The depth is the least over all directions. Along its normal, ours is what the shapes overlap
            # by, and along that of coal they overlap by no less.
            turn = direction @ normal
            if {*names} <= {"box", "plate"} and FACE_COSINE <= turn < 1.0 - 1e-6:
                # Boxes that lie about flat on each other may take a face. A corner of the patch is as deep as
                # the minimum translation, and by no more than the preference deeper.
                size = min(sum(shape.scale) for shape in shapes)
                errors["penetration"].append(max(found - distance, 0.0))
                errors["penetration"].append(max(distance - FACE_PREFERENCE * size - found, 0.0))
                continue
            errors["penetration"].append(abs(found - separation(*shapes, pose0, pose1, direction)))
            errors["penetration"].append(max(separation(*shapes, pose0, pose1, normal) - found, 0.0))
    assert len(errors["distance"]) >= 8
    worst = {kind: max(values, default=0.0) for kind, values in errors.items()}
    report = os.environ.get("PLURIVERSE_ACCURACY_REPORT")
    if report:
        with Path(report).open("a") as file:
            file.write(json.dumps({"names": names, **worst}) + "\n")
    assert worst["distance"] < ACCURACY * SIZE
    # A vertex of a hull is chosen by a direction in single precision: distances to 1e-8, directions to its
    # root.
    assert worst["normal"] < (2.0 * ACCURACY if "hull" in names else ACCURACY)
    assert worst["penetration"] < ACCURACY * SIZE
