"""Shapes: bounds, planes, sites and defaults."""

import dataclasses

import numpy as np
import pytest

from pluriverse import GeoType, Mesh, ModelBuilder, ShapeConfig, ShapeFlags
from pluriverse.model import poses

UP = (0.0, 0.0, 0.0, 1.0)


def directions() -> np.ndarray:
    """Return unit vectors all around, the axes among them."""
    random = np.random.default_rng(0).normal(size=(2000, 3))
    return np.concatenate([np.eye(3), -np.eye(3), random / np.linalg.norm(random, axis=1, keepdims=True)])


def farthest_points(geometry: GeoType, size: np.ndarray) -> np.ndarray:
    """Return the point of a solid that lies farthest in each of `directions`."""
    d = directions()
    radial = d[:, :2] / np.maximum(np.linalg.norm(d[:, :2], axis=1, keepdims=True), 1e-30)
    radius, half = size[0], size[1]
    ends = np.where(d[:, 2:] >= 0.0, half, -half)
    if geometry is GeoType.SPHERE:
        return radius * d
    if geometry is GeoType.BOX:
        return np.where(d >= 0.0, size, -size)
    if geometry is GeoType.ELLIPSOID:
        return size**2 * d / np.linalg.norm(size * d, axis=1, keepdims=True)
    if geometry is GeoType.CAPSULE:
        return radius * d + np.concatenate([np.zeros((len(d), 2)), ends], axis=1)
    disc = np.concatenate([radius * radial, ends], axis=1)
    if geometry is GeoType.CYLINDER:
        return disc
    rim = np.concatenate([radius * radial, np.full((len(d), 1), -half)], axis=1)
    apex = np.broadcast_to([0.0, 0.0, half], d.shape)
    return np.where((np.sum(rim * d, axis=1) > np.sum(apex * d, axis=1))[:, None], rim, apex)


@pytest.mark.parametrize(
    ("geometry", "size"),
    [
        (GeoType.SPHERE, (0.3, 0.0, 0.0)),
        (GeoType.BOX, (0.3, 0.2, 0.5)),
        (GeoType.ELLIPSOID, (0.3, 0.2, 0.5)),
        (GeoType.CAPSULE, (0.3, 0.2, 0.0)),
        (GeoType.CYLINDER, (0.3, 0.2, 0.0)),
        (GeoType.CONE, (0.3, 0.2, 0.0)),
    ],
)
def test_bounds_enclose_a_shape_tightly(geometry, size):
    """The box touches the solid on all six sides, the sphere about its centre touches the farthest point."""
    builder = ModelBuilder()
    builder.add_shape(body=-1, type=geometry, scale=size)
    model = builder.finalize("cpu")
    points = farthest_points(geometry, np.array(size))
    lower, upper = model.shape_aabb_lower.numpy()[0], model.shape_aabb_upper.numpy()[0]
    rounding = 2.0**-24  # single precision of lengths below 1 m
    np.testing.assert_allclose(lower, points.min(axis=0), rtol=0.0, atol=rounding)
    np.testing.assert_allclose(upper, points.max(axis=0), rtol=0.0, atol=rounding)
    distance = np.linalg.norm(points - 0.5 * (lower + upper), axis=1).max()
    np.testing.assert_allclose(model.shape_collision_radius.numpy()[0], distance, rtol=0.0, atol=2 * rounding)


def test_bounds_of_meshes_follow_their_scale():
    """The same mesh at two scales, one of them mirrored."""
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, mesh=mesh)
    builder.add_shape_convex_hull(-1, mesh=mesh, scale=(-2.0, 1.0, 1.0))
    model = builder.finalize("cpu")
    assert model.shape_aabb_lower.numpy().tolist() == [[0, 0, 0], [-2, 0, 0]]
    assert model.shape_aabb_upper.numpy().tolist() == [[1, 2, 3], [0, 2, 3]]
    np.testing.assert_allclose(model.shape_collision_radius.numpy(), [np.sqrt(3.5), np.sqrt(4.25)], rtol=1e-6)


def test_an_infinite_plane_is_bounded_above_only():
    """Its bounds are finite numbers that reach farther than anything else, and end at its surface."""
    builder = ModelBuilder()
    builder.add_ground_plane(height=0.5)
    builder.add_shape_plane(width=2.0, length=4.0)
    model = builder.finalize("cpu")
    lower, upper = model.shape_aabb_lower.numpy(), model.shape_aabb_upper.numpy()
    assert upper[0].tolist() == [1e10, 1e10, 0.0]
    assert (lower[0] <= -1e9).all()
    assert upper[1].tolist() == [1.0, 2.0, 0.0]
    assert lower[1, :2].tolist() == [-1.0, -2.0]
    assert model.shape_transform.numpy()[0].tolist() == [0, 0, 0.5, 0, 0, 0, 1]


@pytest.mark.parametrize(
    "plane", [(0, 0, 2, -1), (1, 1, 1, 0.5), (0, 0, -1, 0.3), (1, 0, 0, 0), (1e-9, 0, -1, 0)]
)
def test_a_plane_equation_becomes_a_pose(plane):
    """Points of the pose's plane satisfy a x + b y + c z + d = 0, and its z is the normal."""
    builder = ModelBuilder()
    builder.add_shape_plane(plane)
    pose = builder.shape_transform[0]
    normal = np.array(plane[:3]) / np.linalg.norm(plane[:3])
    np.testing.assert_allclose(poses.rotate(pose[3:], np.array([0.0, 0.0, 1.0])), normal, rtol=0, atol=1e-8)
    np.testing.assert_allclose(plane[:3] @ pose[:3] + plane[3], 0.0, rtol=0.0, atol=1e-12)


def test_sites_mark_frames():
    """A site has no mass, no collision, group 0; it is visible only if asked for."""
    builder = ModelBuilder()
    body = builder.add_body(mass=1.0, inertia=np.eye(3))
    builder.add_site(body, xform=((0.1, 0.0, 0.0), UP), label="tip")
    builder.add_site(body, visible=True)
    builder.add_shape_box(body, as_site=True)
    assert builder.shape_flags.tolist() == [8, 9, 9]
    assert builder.shape_collision_group.tolist() == [0, 0, 0]
    assert builder.body_mass[0] == 1.0


def test_shapes_take_the_defaults_of_the_builder():
    """default_shape_cfg and rigid_gap fill what the arguments leave out."""
    builder = ModelBuilder()
    builder.rigid_gap = 0.02
    builder.default_shape_cfg.mu = 0.25
    builder.add_shape_sphere(-1)
    builder.add_shape_sphere(-1, cfg=ShapeConfig(gap=0.5, ke=7.0))
    assert builder.shape_gap.tolist() == [0.02, 0.5]
    assert builder.shape_material_mu.tolist() == [0.25, 1.0]
    np.testing.assert_array_equal(builder.shape_material_ke, [np.nan, 7.0])  # NaN: not given


def test_a_damping_is_a_dissipation_time():
    """The damping is ke tau, in the constructor, as an attribute, and in copies with another stiffness."""
    config = ShapeConfig(ke=1e4, kd=200.0)
    assert (config.tau, config.kd) == (0.02, 200.0)
    config.ke = 2e4
    assert (config.tau, config.kd) == (0.02, 400.0)
    config.kd = 100.0
    assert config.tau == 0.005
    assert dataclasses.replace(config, ke=1e3).tau == config.copy().tau == 0.005
    with pytest.raises(ValueError, match=r"kd is -1\.0, but it must be a finite number >= 0"):
        ShapeConfig(kd=-1.0)
    with pytest.raises(ValueError, match="ke is inf N/m, so there is no dissipation time"):
        ShapeConfig(ke=np.inf, kd=1.0)


def test_flags_and_booleans_are_two_views_of_one_thing():
    """ShapeConfig.flags reads and writes the booleans; a site loses its mass."""
    config = ShapeConfig()
    assert config.flags == ShapeFlags.VISIBLE | ShapeFlags.COLLIDE_SHAPES | ShapeFlags.COLLIDE_PARTICLES
    config.flags = ShapeFlags.COLLIDE_SHAPES | ShapeFlags.HYDROELASTIC
    assert (config.is_visible, config.has_shape_collision, config.is_hydroelastic) == (False, True, True)
    config.flags = ShapeFlags.SITE
    assert (config.density, config.collision_group, config.has_shape_collision) == (0.0, 0, False)


def test_colours_come_from_the_argument_or_the_mesh():
    """What is drawn: the colour given, else that of the mesh, else grey."""
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], color=(1.0, 0.5, 0.0))
    builder = ModelBuilder()
    config = ShapeConfig(density=0.0)
    builder.add_shape_mesh(-1, mesh=mesh, cfg=config)
    builder.add_shape_mesh(-1, mesh=mesh, cfg=config, color=(0.0, 0.0, 1.0))
    assert builder.shape_color.tolist() == [[1.0, 0.5, 0.0], [0.0, 0.0, 1.0]]
