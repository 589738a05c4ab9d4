"""Bodies: mass, centre of mass and inertia of shapes and of what is given."""

import numpy as np
import pytest

from pluriverse import Mesh, ModelBuilder, ShapeConfig
from pluriverse.model import poses

UP = (0.0, 0.0, 0.0, 1.0)
ROUNDING = 1e-12  # a few operations in double precision on numbers near 1, relative


def box_mesh(half: tuple[float, float, float]) -> Mesh:
    """Return a closed mesh of a box."""
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    return Mesh(corners, np.array([[0, 1, 3]])).convex_hull()


def test_shapes_add_up_like_the_parts_of_a_rigid_body():
    """A box cut in eight turned to any pose has the mass, com and inertia of the whole."""
    half = np.array([0.3, 0.2, 0.1])
    pose = np.array([0.4, -0.2, 0.7, *poses.quat_from_axis_angle(np.array([0.0, 0.6, 0.8]), np.array(0.9))])
    cut, whole = ModelBuilder(), ModelBuilder()
    config = ShapeConfig(density=600.0)
    body = cut.add_link()
    for signs in np.ndindex(2, 2, 2):
        part = np.array([*((np.array(signs) - 0.5) * half), *UP])
        cut.add_shape_box(
            body, hx=half[0] / 2, hy=half[1] / 2, hz=half[2] / 2, xform=poses.compose(pose, part), cfg=config
        )
    whole.add_shape_box(whole.add_link(), hx=half[0], hy=half[1], hz=half[2], xform=pose, cfg=config)
    mass = 600.0 * 8.0 * half.prod()
    turn = poses.quat_to_matrix(pose[3:])
    inertia = turn @ np.diag(mass / 3.0 * (np.sum(half**2) - half**2)) @ turn.T
    for builder in (cut, whole):
        np.testing.assert_allclose(builder.body_mass[0], mass, rtol=ROUNDING)
        np.testing.assert_allclose(builder.body_com[0], pose[:3], rtol=0.0, atol=ROUNDING)
        np.testing.assert_allclose(builder.body_inertia[0], inertia, rtol=0.0, atol=10 * ROUNDING * mass)


def test_mass_is_a_point_mass_that_shapes_add_to():
    """mass= sits at com without inertia; a shape elsewhere adds by the parallel axis theorem."""
    builder = ModelBuilder()
    body = builder.add_link(mass=2.0, com=(0.0, 0.0, 1.0))
    builder.add_shape_sphere(body, radius=0.5, cfg=ShapeConfig(density=2.0 / (4.0 / 3.0 * np.pi * 0.125)))
    # Two masses of 2 kg, 1 m apart: reduced mass 1 kg at distance 1 m, plus the sphere's own 2/5 m r².
    own = 0.4 * 2.0 * 0.25
    np.testing.assert_allclose(builder.body_mass[0], 4.0, rtol=ROUNDING)
    np.testing.assert_allclose(builder.body_com[0], (0.0, 0.0, 0.5), rtol=0.0, atol=ROUNDING)
    np.testing.assert_allclose(
        builder.body_inertia[0], np.diag([1 + own, 1 + own, own]), rtol=0.0, atol=ROUNDING
    )


def test_meshes_and_hulls_weigh_what_they_enclose():
    """A box as a primitive, as a mesh, as a hull, and as a scaled and mirrored mesh: the same mass."""
    half = (0.3, 0.2, 0.1)
    builder = ModelBuilder()
    builder.add_shape_box(builder.add_link(), hx=half[0], hy=half[1], hz=half[2])
    builder.add_shape_mesh(builder.add_link(), mesh=box_mesh(half))
    builder.add_shape_convex_hull(builder.add_link(), mesh=box_mesh(half))
    builder.add_shape_mesh(builder.add_link(), mesh=box_mesh((1.0, 1.0, 1.0)), scale=(-0.3, 0.2, 0.1))
    for other in range(1, 4):  # vertices are single precision
        np.testing.assert_allclose(builder.body_mass[other], builder.body_mass[0], rtol=1e-6)
        np.testing.assert_allclose(builder.body_inertia[other], builder.body_inertia[0], rtol=0, atol=1e-5)


def test_a_hollow_shape_weighs_its_walls():
    """is_solid=False leaves walls as thick as the margin: the outer solid less the inner one."""
    builder = ModelBuilder()
    config = ShapeConfig(is_solid=False, margin=0.1, density=10.0)
    builder.add_shape_box(builder.add_link(), hx=0.5, hy=0.4, hz=0.3, cfg=config)
    np.testing.assert_allclose(
        builder.body_mass[0], 80.0 * (0.5 * 0.4 * 0.3 - 0.4 * 0.3 * 0.2), rtol=ROUNDING
    )
    with pytest.raises(ValueError, match=r"shape 'shape_1' \(index 1\): box: the wall thickness is 0"):
        builder.add_shape_box(builder.add_link(), cfg=ShapeConfig(is_solid=False))


def test_what_adds_no_mass():
    """Sites, planes, shapes without density, static shapes and shapes on a locked body."""
    builder = ModelBuilder()
    body = builder.add_link(mass=1.0, inertia=np.eye(3))
    locked = builder.add_link(mass=1.0, inertia=np.eye(3), lock_inertia=True)
    builder.add_shape_sphere(locked)
    builder.add_site(body)
    builder.add_shape_sphere(body, as_site=True)
    builder.add_shape_plane(body=body)
    builder.add_shape_sphere(body, cfg=ShapeConfig(density=0.0))
    builder.add_shape(body=body, type=3, is_static=True)
    assert builder.body_mass.tolist() == [1.0, 1.0]
    np.testing.assert_array_equal(builder.body_inertia, [np.eye(3)] * 2)


def test_default_body_armature_adds_to_the_inertia():
    """It goes on the diagonal when the body is created."""
    builder = ModelBuilder()
    builder.default_body_armature = 0.25
    builder.add_link(inertia=np.eye(3), mass=1.0)
    np.testing.assert_array_equal(builder.body_inertia[0], 1.25 * np.eye(3))


def test_a_tiny_body_keeps_its_inertia():
    """No absolute floor: a cube of 5 mm and 0.125 g has an inertia of 5.2e-10 kg·m²."""
    builder = ModelBuilder()
    builder.add_shape_box(builder.add_body(), hx=0.0025, hy=0.0025, hz=0.0025)
    model = builder.finalize("cpu")
    expected = 0.125e-3 * 0.005**2 / 6.0
    np.testing.assert_allclose(np.diagonal(model.body_inertia.numpy()[0]), expected, rtol=1e-6)


def test_a_free_point_mass_becomes_a_ball_with_a_warning():
    """Mass alone cannot turn; the inertia that is filled in scales with the mass and is reported."""
    builder = ModelBuilder()
    builder.add_body(mass=1.0, label="pebble")
    with pytest.warns(UserWarning, match=r"body 'pebble' \(index 0\): a mass of 1 kg without any inertia"):
        model = builder.finalize("cpu")
    radius = (3.0 / (4.0 * np.pi * 1000.0)) ** (1.0 / 3.0)
    np.testing.assert_allclose(model.body_inertia.numpy()[0], np.eye(3) * 0.4 * radius**2, rtol=1e-6)
    assert not builder.body_inertia.any()


def test_replicated_arms_of_hinged_point_masses_are_built():
    """Arms of bodies with a mass and nothing else, each at its joint, as introductions show them."""
    arm = ModelBuilder()
    base, forearm = arm.add_link(mass=1.0), arm.add_link(mass=1.0)
    joints = [arm.add_joint_fixed(parent=-1, child=base), arm.add_joint_revolute(parent=base, child=forearm)]
    arm.add_articulation(joints=joints)
    scene = ModelBuilder()
    scene.add_ground_plane()
    scene.replicate(arm, world_count=4, spacing=(2.0, 0.0, 0.0))
    with pytest.warns(UserWarning, match=r"'body_1' .* and 3 more: a mass of 1 kg without any inertia"):
        model = scene.finalize("cpu")
    assert (model.world_count, model.body_count) == (4, 8)
    inertia = model.body_inertia.numpy()
    assert not inertia[0::2].any()  # what is fixed needs none
    np.testing.assert_allclose(inertia[1::2], np.tile(np.eye(3) * inertia[1, 0, 0], (4, 1, 1)))
    assert inertia[1, 0, 0] == pytest.approx(0.4 * (3.0 / (4.0 * np.pi * 1000.0)) ** (2.0 / 3.0))


def test_a_point_mass_swings_and_slides():
    """A pendulum bob and a cart need no inertia of their own."""
    builder = ModelBuilder()
    bob, cart = builder.add_link(mass=1.0, com=(0.0, 0.0, -1.0)), builder.add_link(mass=1.0)
    builder.add_articulation(
        [builder.add_joint_revolute(-1, bob, axis="y"), builder.add_joint_prismatic(-1, cart)]
    )
    model = builder.finalize("cpu")
    assert not model.body_inertia.numpy().any()


def test_a_massless_frame_may_be_fixed_to_a_massive_body():
    """Bodies fixed together weigh together."""
    builder = ModelBuilder()
    base, frame = builder.add_link(), builder.add_link()
    builder.add_shape_box(frame, xform=((1.0, 0.0, 0.0), UP))
    builder.add_articulation([builder.add_joint_free(base), builder.add_joint_fixed(base, frame)])
    assert builder.finalize("cpu").body_mass.numpy()[0] == 0.0
