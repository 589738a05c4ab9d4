"""Connections from guessed features are those that a search of simplices finds; most guesses are right."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from pluriverse.collision.convex.facing import find_facing_points
from pluriverse.collision.convex.support import ConvexPair
from pluriverse.collision.convex.witness_points import find_shortest_way
from pluriverse.collision.hull import HullData
from pluriverse.types import GeoType

COUNT = 300
SHAPES = {
    "box": (GeoType.BOX, (0.3, 0.2, 0.1)),
    "plate": (GeoType.BOX, (0.5, 0.5, 0.02)),
    "cylinder": (GeoType.CYLINDER, (0.2, 0.1, 0.0)),
    "rod": (GeoType.CYLINDER, (0.05, 0.5, 0.0)),
    "disc": (GeoType.CYLINDER, (0.4, 0.02, 0.0)),
    "ellipsoid": (GeoType.ELLIPSOID, (0.3, 0.2, 0.1)),
    "egg": (GeoType.ELLIPSOID, (0.05, 0.05, 0.4)),
    "capsule": (GeoType.CAPSULE, (0.1, 0.3, 0.0)),
    "sphere": (GeoType.SPHERE, (0.1, 0.1, 0.1)),
}
# Double precision: errors of the search are 1e-12 of the shapes, those of its normals about the root of that.
DISTANCE_ERROR, NORMAL_ERROR = 1e-11, 1e-6
# Beyond it cores are apart in both searches.
APART = 1e-6


@wp.kernel(enable_backward=False, module="unique")
def search_both(
    type0: wp.array[int],  # [pair]
    type1: wp.array[int],  # [pair]
    size0: wp.array[wp.vec3],  # [pair] m
    size1: wp.array[wp.vec3],  # [pair] m
    rotation: wp.array[wp.mat33d],  # [pair]
    position: wp.array[wp.vec3d],  # [pair] m
    hulls: HullData,
    # out
    facing: wp.array2d[wp.float64],  # [pair, 5] whether it is found, distance [m], normal
    searched: wp.array2d[wp.float64],  # [pair, 5] whether it is near, distance [m], normal
):
    index = wp.tid()
    pair = ConvexPair()
    pair.type0 = type0[index]
    pair.type1 = type1[index]
    pair.size0 = size0[index]
    pair.size1 = size1[index]
    pair.hull0 = -1
    pair.hull1 = -1
    pair.rotation = rotation[index]
    pair.position = position[index]
    size = wp.float64(wp.min(wp.length(pair.size0), wp.length(pair.size1)))
    one = find_facing_points(pair, hulls, size)
    other = find_shortest_way(pair, hulls, pair.position, wp.float64(1.0e9), size)
    facing[index, 0] = wp.where(one.is_found, wp.float64(1.0), wp.float64(0.0))
    facing[index, 1] = wp.length(one.point1 - one.point0)
    searched[index, 0] = wp.where(other.is_near, wp.float64(1.0), wp.float64(0.0))
    searched[index, 1] = wp.dot(other.normal, other.point1 - other.point0)
    for axis in range(3):
        facing[index, 2 + axis] = one.normal[axis]
        searched[index, 2 + axis] = other.normal[axis]


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """Return what both searches find, for random poses of every two shapes of which one is curved."""
    rng = np.random.default_rng(3)
    names = [(a, b) for a in SHAPES for b in ("cylinder", "rod", "disc", "ellipsoid", "egg")]
    total = COUNT * len(names)
    direction = rng.normal(size=(total, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    position = direction * rng.uniform(0.15, 0.9, (total, 1))
    types = np.repeat([[SHAPES[a][0], SHAPES[b][0]] for a, b in names], COUNT, axis=0).astype(np.int32)
    sizes = np.repeat([[SHAPES[a][1], SHAPES[b][1]] for a, b in names], COUNT, axis=0).astype(np.float32)
    facing, searched = (wp.zeros((total, 5), dtype=wp.float64, device="cpu") for _ in range(2))
    arrays = [
        wp.array(np.ascontiguousarray(values), dtype=dtype, device="cpu")
        for values, dtype in [
            (types[:, 0], int),
            (types[:, 1], int),
            (sizes[:, 0], wp.vec3),
            (sizes[:, 1], wp.vec3),
            (Rotation.random(total, random_state=rng).as_matrix(), wp.mat33d),
            (position, wp.vec3d),
        ]
    ]
    wp.launch(search_both, dim=total, inputs=[*arrays, HullData()], outputs=[facing, searched], device="cpu")
    rows = zip(np.split(facing.numpy(), len(names)), np.split(searched.numpy(), len(names)), strict=True)
    return dict(zip(names, rows, strict=True))


@pytest.mark.parametrize("first", SHAPES)
def test_facing_points_are_the_closest_ones(first: str, found: dict):
    """What is found is what an independent search finds; of ellipsoids almost every guess is right."""
    for (one, other), (facing, searched) in found.items():
        if one != first:
            continue
        is_apart = searched[:, 1] > APART
        is_found = is_apart & (facing[:, 0] > 0.0)
        np.testing.assert_allclose(
            facing[is_found, 1], searched[is_found, 1], rtol=0.0, atol=DISTANCE_ERROR, err_msg=other
        )
        np.testing.assert_allclose(
            facing[is_found, 2:], searched[is_found, 2:], rtol=0.0, atol=NORMAL_ERROR, err_msg=other
        )
        # The ends of cylinders are faces, which are looked at before.
        has_ends = any(SHAPES[name][0] == GeoType.CYLINDER for name in (one, other))
        assert is_found.sum() >= (0.3 if has_ends else 0.95) * is_apart.sum(), other
