"""The visual model: which shapes a world shows, and their triangles."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.geometry.mesh_normals import compute_corner_normals
from pluriverse.render import SeenGeometry, VisualModel


def make_worlds() -> pv.Model:
    """Two worlds that differ: a ball, and a box with a hidden collider; the ground is shared."""
    builder = pv.ModelBuilder()
    ball, box = pv.ModelBuilder(), pv.ModelBuilder()
    ball.add_shape_sphere(ball.add_body(xform=(0, 0, 1, 0, 0, 0, 1)), radius=0.5, label="ball")
    body = box.add_body(xform=(1, 0, 2, 0, 0, 0, 1))
    box.add_shape_box(body, xform=(0, 0, 1, 0, 0, 0, 1), cfg=pv.ShapeConfig(has_shape_collision=False))
    box.add_shape_sphere(body, cfg=pv.ShapeConfig(is_visible=False))
    builder.add_world(ball)
    builder.add_world(box)
    builder.add_ground_plane()
    return builder.finalize("cpu")


def test_a_world_shows_its_own_and_the_shared_shapes():
    """Visual and collision geometry of each world; no world sees another."""
    model = make_worlds()
    visual = VisualModel(model)
    collision = VisualModel(model, geometry=SeenGeometry.COLLISION)
    names = np.array(model.shape_label)
    types = model.shape_type.numpy()
    assert sorted(types[visual.shapes_of([0])]) == [pv.GeoType.PLANE, pv.GeoType.SPHERE]
    assert sorted(types[visual.shapes_of([1])]) == [pv.GeoType.PLANE, pv.GeoType.BOX]
    assert sorted(types[collision.shapes_of([1])]) == [pv.GeoType.PLANE, pv.GeoType.SPHERE]
    assert names[visual.shapes_of([0])[0]] == "ball"
    box = visual.shapes_of([1])[0]
    np.testing.assert_allclose(visual.poses(model.body_q.numpy(), np.array([box]))[0, :3], [1.0, 0.0, 3.0])
    with pytest.raises(IndexError, match="world 5 does not exist; the model has worlds 0 to 1"):
        visual.shapes_of([5])


def test_triangles_of_primitives_enclose_their_volume():
    """Volumes by the divergence theorem, within what 32 sides lose (1 - sinc(2π/32) = 0.6 % a direction)."""
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(-1, radius=0.5)
    builder.add_shape_box(-1, hx=0.1, hy=0.2, hz=0.3)
    builder.add_shape_capsule(-1, radius=0.2, half_height=0.3)
    builder.add_shape_cylinder(-1, radius=0.2, half_height=0.3)
    builder.add_shape_cone(-1, radius=0.2, half_height=0.3)
    builder.add_shape_ellipsoid(-1, rx=0.1, ry=0.2, rz=0.3)
    exact = [
        4 / 3 * np.pi * 0.5**3,
        8 * 0.1 * 0.2 * 0.3,
        np.pi * 0.2**2 * 0.6 + 4 / 3 * np.pi * 0.2**3,
        np.pi * 0.2**2 * 0.6,
        np.pi * 0.2**2 * 0.6 / 3,
        4 / 3 * np.pi * 0.1 * 0.2 * 0.3,
    ]
    visual = VisualModel(builder.finalize("cpu"))
    for shape, volume in enumerate(exact):
        mesh = visual.mesh_of(shape)
        a, b, c = mesh.vertices[mesh.triangles].astype(float).transpose(1, 0, 2)
        found = np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0
        assert (1 - 0.006) ** 3 * volume <= found <= volume * (1 + 1e-6), shape


def test_shapes_that_look_alike_are_one_group():
    """A hundred copies are instances of one mesh; another colour is another group, seen after refresh."""
    part = pv.ModelBuilder()
    part.add_shape_box(part.add_body())
    builder = pv.ModelBuilder()
    builder.replicate(part, 100)
    model = builder.finalize("cpu")
    visual = VisualModel(model)
    assert [len(group.shapes) for group in visual.groups()] == [100]
    assert not visual.refresh()
    colors = model.shape_color.numpy()
    colors[7] = (1.0, 0.0, 0.0)
    model.shape_color.assign(colors)
    assert visual.refresh()
    assert sorted(len(group.shapes) for group in visual.groups()) == [1, 99]


def test_normals_are_smooth_on_a_sphere_and_sharp_on_a_box():
    """A fine sphere's corner normals are those of the sphere; a box's are those of its faces."""
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(-1, radius=2.0)
    builder.add_shape_box(-1)
    visual = VisualModel(builder.finalize("cpu"))
    ball, box = visual.mesh_of(0), visual.mesh_of(1)
    radial = ball.vertices[ball.triangles] / 2.0
    # The mean of the faces around a vertex leans by less than a face of 2π/32 at the poles.
    assert np.linalg.norm(ball.corner_normals - radial, axis=2).max() < 0.5 * 2.0 * np.pi / 32
    assert np.abs(box.corner_normals).max(axis=2).min() == 1.0


def test_degenerate_triangles_have_finite_normals():
    """A triangle without area does no harm."""
    vertices = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0]], dtype=np.float32)
    normals = compute_corner_normals(vertices, np.array([[0, 1, 2], [0, 1, 3]]))
    np.testing.assert_allclose(normals[1], [[0, 0, 1]] * 3)
    assert np.isfinite(normals).all()
