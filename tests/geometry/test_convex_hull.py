"""Convex hulls: exact, reduced, deterministic, and refused for flat points."""

import numpy as np
import pytest
import trimesh

import pluriverse as pv
from pluriverse.geometry import MESH_HULL_VERTEX_COUNT, Mesh, convex_hull
from pluriverse.geometry.convex_hull import DIRECT_POINT_COUNTS, compute_convex_hull


def volume(mesh):
    return mesh.mass_properties(1.0).mass


def planes(mesh):
    """Return outward unit normals and offsets of the triangles."""
    a, b, c = mesh.vertices.astype(np.float64)[mesh.triangles.T]
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    return normals, np.einsum("ij,ij->i", normals, a)


def test_hull_of_a_convex_mesh_is_the_mesh():
    """A box with a dent has the hull of the box; its triangles look outwards."""
    box = trimesh.creation.box((2.0, 1.0, 0.5))
    vertices = np.vstack([box.vertices, [[0.0, 0.0, 0.1]]])
    hull = Mesh(vertices, box.faces).convex_hull()
    assert len(hull.vertices) == 8
    assert len(hull.triangles) == 12
    assert volume(hull) == pytest.approx(1.0, rel=1e-6)
    normals, offsets = planes(hull)
    assert np.all(offsets > 0.0)  # the origin is inside
    assert np.all(vertices @ normals.T <= offsets + 1e-6)


@pytest.mark.parametrize("limit", [8, 16, 64])
def test_reduced_hull_lies_inside_and_keeps_the_bounding_box(limit):
    """All vertices are taken from the mesh, so the hull is inside; extreme points along the axes are kept."""
    sphere = trimesh.creation.icosphere(4, 1.0)
    rotation = trimesh.transformations.rotation_matrix(0.3, [1.0, 2.0, 3.0])[:3, :3]
    mesh = Mesh(sphere.vertices @ rotation.T * [1.0, 0.6, 0.3] + 5.0, sphere.faces)
    hull = mesh.convex_hull(limit)
    assert len(hull.vertices) <= limit
    assert {tuple(v) for v in hull.vertices} <= {tuple(v) for v in mesh.vertices}
    np.testing.assert_array_equal(hull.aabb, mesh.aabb)
    normals, offsets = planes(hull)
    assert np.all(hull.vertices @ normals.T <= offsets + 1e-6)
    assert volume(hull) < volume(mesh)


def test_more_vertices_come_closer():
    """The volume grows with the limit; 64 vertices hold more than 85 % of a sphere.

    The best polyhedron of 64 vertices inscribed in a sphere holds 92 %; greedy insertion loses a few more.
    """
    sphere = trimesh.creation.icosphere(4, 1.0)
    mesh = Mesh(sphere.vertices, sphere.faces)
    volumes = [volume(mesh.convex_hull(limit)) for limit in (8, 16, 32, 64, 128)]
    assert volumes == sorted(volumes)
    assert volumes[3] > 0.85 * volume(mesh)


def test_hull_does_not_depend_on_the_order_of_vertices():
    """Permuting the vertices gives the same hull, bit for bit, as a set of points."""
    points = np.random.default_rng(1).normal(size=(400, 3)).astype(np.float32)
    order = np.random.default_rng(2).permutation(len(points))
    hulls = [Mesh(p, np.arange(399)).convex_hull(32) for p in (points, points[order])]
    np.testing.assert_array_equal(hulls[0].vertices, hulls[1].vertices)
    np.testing.assert_array_equal(hulls[0].indices, hulls[1].indices)


def test_hull_is_made_once():
    sphere = trimesh.creation.icosphere(2, 1.0)
    mesh = Mesh(sphere.vertices, sphere.faces)
    assert mesh.convex_hull() is mesh.convex_hull(MESH_HULL_VERTEX_COUNT)


def test_a_mesh_may_say_how_many_vertices_its_hull_has():
    """The hull that collides obeys it, through copies, scaling and a builder; it is part of the content."""
    sphere = trimesh.creation.icosphere(3, 1.0)
    mesh = Mesh(sphere.vertices, sphere.faces, maxhullvert=20)
    assert [len(part.convex_hull().vertices) for part in (mesh, mesh.copy(), mesh.scaled(2.0))] == [20] * 3
    assert len(mesh.convex_hull(32).vertices) == 32
    assert mesh.content_key != Mesh(sphere.vertices, sphere.faces).content_key
    builder = pv.ModelBuilder()
    for part in (mesh, Mesh(sphere.vertices, sphere.faces)):
        builder.add_shape_convex_hull(builder.add_body(), mesh=part)
    assert [len(part.convex_hull().vertices) for part in builder.meshes] == [20, Mesh.MAX_HULL_VERTICES]
    for wrong in (4, 10.5, True):
        with pytest.raises(ValueError, match=r"maxhullvert is .* 8 or more"):
            Mesh(sphere.vertices, sphere.faces, maxhullvert=wrong)


def test_flat_mesh_has_no_hull():
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]], name="sheet")
    with pytest.raises(ValueError, match=r"sheet: the vertices lie in a plane.*thicker"):
        mesh.convex_hull()


def test_limit_below_eight_is_refused():
    box = trimesh.creation.box((1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="at most 4 vertices"):
        Mesh(box.vertices, box.faces).convex_hull(4)


def test_hull_made_with_a_larger_limit_is_its_own_hull():
    """Whoever asks the hull for its hull, as the collision pipeline does, gets all of its vertices."""
    sphere = trimesh.creation.icosphere(3, 1.0)
    hull = Mesh(sphere.vertices, sphere.faces).convex_hull(128)
    assert len(hull.vertices) == 128
    assert hull.convex_hull() is hull
    assert len(hull.scaled(2.0).convex_hull().vertices) == 128
    assert len(hull.convex_hull(16).vertices) == 16


@pytest.mark.parametrize("radii", [(1.0, 1.0, 1.0), (1.0, 0.5, 0.2)])
def test_a_reduced_hull_is_the_same_with_and_without_the_full_one(monkeypatch, radii):
    """Bit for bit: the points farthest out are vertices of the full hull."""
    points = trimesh.creation.icosphere(3).vertices * radii
    assert DIRECT_POINT_COUNTS[0] <= len(points) <= DIRECT_POINT_COUNTS[1]
    direct = compute_convex_hull(points, 64, "ball")
    monkeypatch.setattr("pluriverse.geometry.convex_hull.DIRECT_POINT_COUNTS", (0, 0))
    for one, other in zip(direct, compute_convex_hull(points, 64, "ball"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_points_within_faces_are_no_vertices_of_a_hull():
    """A box of 1538 points, turned so that those of its faces are off by rounding, has eight."""
    box = trimesh.creation.box((1.0, 2.0, 3.0)).subdivide().subdivide().subdivide().subdivide()
    assert len(box.vertices) > DIRECT_POINT_COUNTS[0]
    turn = trimesh.transformations.euler_matrix(0.3, 0.5, 0.7)[:3, :3]
    vertices, _ = compute_convex_hull((box.vertices @ turn).astype(np.float32), 64, "box")
    assert len(vertices) <= 64
    span = np.ptp(vertices @ turn.T, axis=0)
    np.testing.assert_allclose(span, (1.0, 2.0, 3.0), rtol=1e-6)


@pytest.mark.parametrize("radii", [(1.0, 1.0, 1.0), (1.0, 0.5, 0.2)])
def test_a_hull_of_very_many_points_is_nearly_that_of_the_full_hull(monkeypatch, radii):
    """Made of the points farthest in some directions: of the mesh, in its bounds, with its volume."""
    points = trimesh.creation.icosphere(5, 1.0).vertices * radii
    full, _ = compute_convex_hull(points, 64, "ball")
    monkeypatch.setattr(convex_hull, "DIRECT_POINT_COUNTS", (0, -1))
    monkeypatch.setattr(convex_hull, "MANY_POINTS", len(points))
    quick, triangles = compute_convex_hull(points, 64, "ball")
    assert len(quick) == len(full) == 64
    assert {tuple(row) for row in quick.round(9)} <= {tuple(row) for row in points.round(9)}
    np.testing.assert_allclose((quick.min(axis=0), quick.max(axis=0)), (-np.array(radii), radii), atol=1e-12)
    volumes = [trimesh.convex.convex_hull(part).volume for part in (quick, full)]
    assert volumes[0] > 0.98 * volumes[1]
    assert trimesh.Trimesh(quick, triangles, process=False).volume == pytest.approx(volumes[0])


def test_a_hull_of_very_many_points_and_few_corners_is_exact(monkeypatch):
    rng = np.random.default_rng(0)
    points = np.concatenate(
        [rng.uniform(-0.9, 0.9, (3000, 3)), 2.0 * np.array(list(np.ndindex(2, 2, 2))) - 1.0]
    )
    monkeypatch.setattr(convex_hull, "DIRECT_POINT_COUNTS", (0, -1))
    monkeypatch.setattr(convex_hull, "MANY_POINTS", len(points))
    vertices, _ = compute_convex_hull(points, 64, "box")
    assert len(vertices) == 8
