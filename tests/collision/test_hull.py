"""Hulls as colliders hold them: flat faces as polygons, the search for the farthest vertex."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.collision.hull import FACE_CORNER_COUNT, HullData, make_hull_data, support_vertex
from tests.collision.pairs import hull

CUBE = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T.astype(np.float64)
PRISM_SIDES = 24
ANGLES = np.linspace(0.0, 2.0 * np.pi, PRISM_SIDES, endpoint=False)
RING = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
CLOUD = np.random.default_rng(0).normal(size=(300, 3))
SHAPES = {
    "cube": CUBE,
    "thin plate": CUBE * [1.0, 1.0, 1e-3],
    "needle": CUBE * [1e-3, 1e-3, 1.0],
    "tiny cube": CUBE * 1e-4,
    "far cube": CUBE + np.array([100.0, 50.0, -70.0]),
    "prism": np.concatenate([np.c_[RING, -np.ones(PRISM_SIDES)], np.c_[RING, np.ones(PRISM_SIDES)]]),
    "cloud": CLOUD,
    "ball": CLOUD / np.linalg.norm(CLOUD, axis=1, keepdims=True),
    "tetrahedron": np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]),
}


@wp.kernel(enable_backward=False, module="tests.collision.hull")
def find_support(hulls: HullData, directions: wp.array[wp.vec3], hull: int, vertex: wp.array[int]):
    index = wp.tid()
    vertex[index] = support_vertex(hulls, hull, directions[index])


def rows(starts: wp.array, values: wp.array) -> list[np.ndarray]:
    """Return the rows of a ragged array."""
    return np.split(values.numpy(), starts.numpy()[1:-1])


@pytest.mark.parametrize("name", SHAPES)
def test_faces_are_flat_outward_and_cover_the_hull(name: str):
    """All vertices are behind every face, its corners on it, each vertex has faces, and volumes add up."""
    mesh = hull(SHAPES[name]).mesh
    data, lower, upper = make_hull_data([mesh], "cpu")
    vertices = data.vertex.numpy().astype(np.float64)
    size = np.ptp(vertices, axis=0).max()
    rounding = 2e-6 * np.abs(vertices).max()
    np.testing.assert_array_equal([lower[0], upper[0]], [vertices.min(axis=0), vertices.max(axis=0)])
    normals = data.face_normal.numpy().astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-6)
    for normal, corners in zip(normals, rows(data.corner_start, data.corner), strict=True):
        assert 3 <= len(corners) <= FACE_CORNER_COUNT
        assert len(set(corners.tolist())) == len(corners)
        heights = vertices @ normal
        # Triangles of one face may differ in direction by FACE_FLATNESS.
        assert heights.max() - heights[corners].min() <= rounding + 1e-4 * size
    faces = rows(data.vertex_face_start, data.vertex_face)
    assert min(map(len, faces)) >= 3


def test_triangles_of_flat_faces_are_merged():
    """A cube has six faces of four corners, a prism two round ends, of which eight corners are kept."""
    for name, face_count in (("cube", 6), ("thin plate", 6), ("needle", 6), ("tiny cube", 6), ("prism", 26)):
        data, _, _ = make_hull_data([hull(SHAPES[name]).mesh], "cpu")
        counts = np.diff(data.corner_start.numpy())
        assert len(counts) == face_count, name
        assert sorted(counts)[-1] == (8 if name == "prism" else 4), name


@pytest.mark.parametrize("name", SHAPES)
def test_farthest_vertex_is_found(name: str):
    """The vertex found is as far out as the farthest of all, and of equals the first."""
    meshes = [hull(SHAPES["cube"]).mesh, hull(SHAPES[name]).mesh]
    data, _, _ = make_hull_data(meshes, "cpu")
    vertices = data.vertex.numpy().astype(np.float64)
    first = data.vertex_start.numpy()[1]
    directions = np.random.default_rng(1).normal(size=(500, 3))
    directions = np.concatenate([directions, np.eye(3), -np.eye(3)]).astype(np.float32)
    found = wp.full(len(directions), -1, dtype=int, device="cpu")
    wp.launch(
        find_support,
        dim=len(directions),
        inputs=[data, wp.array(directions, dtype=wp.vec3, device="cpu"), 1],
        outputs=[found],
        device="cpu",
    )
    heights = directions.astype(np.float64) @ vertices[first:].T
    reached = heights[np.arange(len(directions)), found.numpy() - first]
    np.testing.assert_allclose(reached, heights.max(axis=1), atol=1e-6 * np.abs(heights).max())
    # Along an axis a height is a coordinate, without rounding.
    np.testing.assert_array_equal(found.numpy()[-6:] - first, heights[-6:].argmax(axis=1))


def test_equal_meshes_are_stored_once():
    """Two hundred shapes of one mesh cost the vertices of one."""
    mesh = hull(SHAPES["cloud"]).mesh
    world = pv.ModelBuilder()
    for index in range(200):
        body = world.add_body(xform=(10.0 * index, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), mass=1.0)
        world.add_shape_convex_hull(body, mesh=mesh)
    model = world.finalize("cpu")
    pipeline = pv.CollisionPipeline(model)
    assert len(model.meshes) == 1
    contacts = pipeline.contacts()
    pipeline.collide(model.state(), contacts)
    assert contacts.rigid_contact_found.numpy().tolist() == [0]
