"""Curved shapes on edges, corners, rims and each other face them along a given normal."""

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from pluriverse.collision.convex.curved import curvature_along, support_curvature
from pluriverse.types import GeoType
from tests.collision.pairs import ShapeSpec, box, collide_pairs, cylinder, ellipsoid

SEMI_AXES = np.array([0.03, 0.05, 0.08])
OTHER_AXES = np.array([0.2, 0.1, 0.15])
HALF_EXTENTS = np.array([0.3, 0.2, 0.1])
RADIUS, HALF_HEIGHT = 0.2, 0.1
COUNT = 24
# Rounding of float32 in poses of half a metre, which turns the normal of a curved side by as much over its
# radius of curvature.
ROUNDING = 1e-6
NORMAL_ROUNDING = 5e-6


def ellipsoid_point(semi_axes: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Return the points of an ellipsoid along unit vectors [world, 3], E^2 n / |E n|."""
    return semi_axes**2 * normal / np.linalg.norm(semi_axes * normal, axis=1)[:, None]


def on_edge(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return points of an edge of a box along y, and normals between those of its faces."""
    angle = rng.uniform(0.2, np.pi / 2 - 0.2, COUNT)
    normal = np.column_stack([np.cos(angle), np.zeros(COUNT), np.sin(angle)])
    height = rng.uniform(-0.8, 0.8, COUNT) * HALF_EXTENTS[1]
    return np.column_stack([np.full(COUNT, HALF_EXTENTS[0]), height, np.full(COUNT, HALF_EXTENTS[2])]), normal


def on_corner(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a corner of a box, and normals between those of its faces."""
    normal = rng.uniform(0.3, 1.0, (COUNT, 3))
    return np.tile(HALF_EXTENTS, (COUNT, 1)), normal / np.linalg.norm(normal, axis=1)[:, None]


def on_rim(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return points of the rim of a cylinder, and normals between its side and its end."""
    turn, rise = rng.uniform(-np.pi, np.pi, COUNT), rng.uniform(0.2, np.pi / 2 - 0.2, COUNT)
    across = np.column_stack([np.cos(turn), np.sin(turn), np.zeros(COUNT)])
    end = np.array([0.0, 0.0, 1.0])
    return RADIUS * across + HALF_HEIGHT * end, np.cos(rise)[:, None] * across + np.sin(rise)[:, None] * end


def on_side(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return points of the side of a cylinder, and its normals."""
    turn = rng.uniform(-np.pi, np.pi, COUNT)
    across = np.column_stack([np.cos(turn), np.sin(turn), np.zeros(COUNT)])
    points = RADIUS * across
    points[:, 2] = rng.uniform(-0.8, 0.8, COUNT) * HALF_HEIGHT
    return points, across


def on_ellipsoid(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return points of an ellipsoid, and its normals."""
    normal = rng.normal(size=(COUNT, 3))
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    return ellipsoid_point(OTHER_AXES, normal), normal


BASES = {
    "edge": (box(*HALF_EXTENTS), on_edge),
    "corner": (box(*HALF_EXTENTS), on_corner),
    "rim": (cylinder(RADIUS, HALF_HEIGHT), on_rim),
    "side": (cylinder(RADIUS, HALF_HEIGHT), on_side),
    "ellipsoid": (ellipsoid(*OTHER_AXES), on_ellipsoid),
}

# Translations that end overlaps as shallow as these are surely the minimum ones. Bodies at rest sink in by
# less than a ten-thousandth of their size.
DISTANCES = {"apart": (1e-4, 0.04), "resting": (-3e-6, 3e-6), "overlapping": (-1e-3, -1e-4)}


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("where", DISTANCES)
def test_an_ellipsoid_faces_a_given_point_of_another_shape(name: str, where: str):
    """Two convex shapes whose farthest points along a normal face each other have their distance along it."""
    rng = np.random.default_rng(11)
    shape: ShapeSpec = BASES[name][0]
    points, normals = BASES[name][1](rng)
    distances = rng.uniform(*DISTANCES[where], COUNT)
    frame, turn = Rotation.random(COUNT, random_state=rng), Rotation.random(COUNT, random_state=rng)
    nearest = turn.apply(ellipsoid_point(SEMI_AXES, turn.inv().apply(-normals)))
    place = rng.uniform(-0.2, 0.2, (COUNT, 3))
    middle = points + distances[:, None] * normals - nearest
    poses0 = np.concatenate([place, frame.as_quat()], axis=1)
    poses1 = np.concatenate([place + frame.apply(middle), (frame * turn).as_quat()], axis=1)
    worlds = collide_pairs(shape, ellipsoid(*SEMI_AXES), poses0, poses1, gap=0.05)
    for index, contacts in enumerate(worlds):
        assert contacts.count == 1
        is_first = contacts.shape0[0] % 2 == 0
        sign = 1.0 if is_first else -1.0
        normal = frame[index].apply(normals[index])
        point = place[index] + frame[index].apply(points[index])
        found = contacts.point0[0] if is_first else contacts.point1[0]
        np.testing.assert_allclose(contacts.distance, [distances[index]], rtol=0.0, atol=ROUNDING)
        np.testing.assert_allclose(sign * contacts.normal[0], normal, rtol=0.0, atol=NORMAL_ROUNDING)
        np.testing.assert_allclose(found, point, rtol=0.0, atol=2 * ROUNDING)


@wp.kernel(enable_backward=False, module="tests.collision.convex.curved")
def measure_curvatures(
    shape_type: int,
    size: wp.vec3,
    normal: wp.array[wp.vec3d],
    across: wp.array[wp.vec3d],
    # out
    along: wp.array[wp.float64],
    whole: wp.array[wp.mat33d],
):
    thread, _ = wp.tid()
    along[thread] = curvature_along(shape_type, size, normal[thread], across[thread])
    whole[thread] = support_curvature(shape_type, size, normal[thread])


@pytest.mark.parametrize("shape_type", [GeoType.ELLIPSOID, GeoType.CYLINDER, GeoType.BOX])
def test_a_curvature_along_a_vector_is_that_of_the_matrix(shape_type):
    """The matrix is the derivative of support points by the direction, and symmetric: v . H v is its part."""
    rng = np.random.default_rng(7)
    size = np.array([0.03, 0.05, 0.08])
    normal = rng.normal(size=(COUNT, 3))
    normal[0] = [0.0, 0.0, 1.0]  # along the axis a cylinder has no curvature
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    across = np.cross(normal, rng.normal(size=(COUNT, 3)))
    across /= np.linalg.norm(across, axis=1)[:, None]
    along = wp.full(COUNT, np.nan, dtype=wp.float64, device="cpu")
    whole = wp.empty(COUNT, dtype=wp.mat33d, device="cpu")
    directions = [wp.array(some, dtype=wp.vec3d, device="cpu") for some in (normal, across)]
    wp.launch(
        measure_curvatures,
        dim=(COUNT, 1),
        inputs=[int(shape_type), wp.vec3(*size), *directions],
        outputs=[along, whole],
        device="cpu",
    )
    expected = np.einsum("ni,nij,nj->n", across, whole.numpy(), across)
    np.testing.assert_allclose(along.numpy(), expected, rtol=1e-13, atol=1e-16)
    if shape_type == GeoType.ELLIPSOID:
        step = 1e-6
        moved = ellipsoid_point(size, normal + step * across) - ellipsoid_point(size, normal - step * across)
        derivative = np.einsum("ni,ni->n", moved, across) / (2.0 * step)
        np.testing.assert_allclose(along.numpy(), derivative, rtol=1e-6)
