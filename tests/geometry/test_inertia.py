"""Closed-form mass properties against fine meshes, parallel axes and each other."""

import numpy as np
import pytest
import trimesh

from pluriverse.geometry import (
    MassProperties,
    Mesh,
    box_mass_properties,
    capsule_mass_properties,
    combine_mass_properties,
    cone_mass_properties,
    cylinder_mass_properties,
    ellipsoid_mass_properties,
    quat_to_matrix,
    sphere_mass_properties,
    transform_mass_properties,
)

DENSITY = 700.0


def sphere_mesh(radii):
    mesh = trimesh.creation.icosphere(5, 1.0)
    return mesh.vertices * radii, mesh.faces


def cone_mesh():
    mesh = trimesh.creation.cone(0.1, 0.6, sections=600)
    return mesh.vertices - [0.0, 0.0, 0.3], mesh.faces


def parts(mesh):
    return mesh.vertices, mesh.faces


SHAPES = {
    "sphere": (sphere_mass_properties, (0.3,), lambda: sphere_mesh(0.3)),
    "ellipsoid": (ellipsoid_mass_properties, (0.3, 0.2, 0.1), lambda: sphere_mesh([0.3, 0.2, 0.1])),
    "box": (box_mass_properties, (0.1, 0.2, 0.3), lambda: parts(trimesh.creation.box((0.2, 0.4, 0.6)))),
    "capsule": (
        capsule_mass_properties,
        (0.1, 0.3),
        lambda: parts(trimesh.creation.capsule(0.6, 0.1, count=[96, 96])),
    ),
    "cylinder": (
        cylinder_mass_properties,
        (0.1, 0.3),
        lambda: parts(trimesh.creation.cylinder(0.1, height=0.6, sections=600)),
    ),
    "cone": (cone_mass_properties, (0.1, 0.3), cone_mesh),
}


def assert_close(actual: MassProperties, expected: MassProperties, relative: float) -> None:
    assert actual.mass == pytest.approx(expected.mass, rel=relative)
    np.testing.assert_allclose(actual.com, expected.com, atol=relative * 0.5)
    scale = np.abs(expected.inertia).max()
    np.testing.assert_allclose(actual.inertia, expected.inertia, rtol=0.0, atol=relative * scale)


@pytest.mark.parametrize("shape", SHAPES)
def test_solid_shape_weighs_as_its_fine_mesh(shape):
    """A fine inscribed mesh has the shape's mass properties up to its facets' sagitta (below 0.3 % here)."""
    function, size, mesh = SHAPES[shape]
    assert_close(Mesh(*mesh()).mass_properties(DENSITY), function(*size, DENSITY), 3e-3)


@pytest.mark.parametrize("shape", [name for name in SHAPES if name != "ellipsoid"])
def test_thin_hollow_shape_weighs_as_its_surface(shape):
    """A hollow shape tends to a surface of density * thickness (first order in thickness / size)."""
    function, size, mesh = SHAPES[shape]
    thickness = 1e-4
    surface = Mesh(*mesh(), is_solid=False).mass_properties(DENSITY, thickness=thickness)
    assert_close(function(*size, DENSITY, thickness=thickness), surface, 5e-3)


@pytest.mark.parametrize("shape", SHAPES)
def test_hollow_shape_with_walls_to_the_middle_is_solid(shape):
    """Walls thicker than the shape leave no cavity."""
    function, size, _ = SHAPES[shape]
    assert_close(function(*size, DENSITY, thickness=1.0), function(*size, DENSITY), 1e-12)


def test_cavity_of_a_hollow_box_and_its_wall_make_the_solid():
    """Wall plus the solid that fills the cavity is the solid box."""
    wall = box_mass_properties(0.3, 0.2, 0.1, DENSITY, thickness=0.05)
    core = box_mass_properties(0.25, 0.15, 0.05, DENSITY)
    assert_close(combine_mass_properties([wall, core]), box_mass_properties(0.3, 0.2, 0.1, DENSITY), 1e-12)


def test_halves_of_a_box_make_the_box():
    """Parallel axis theorem: two half boxes side by side are the box."""
    half = box_mass_properties(0.1, 0.2, 0.3, DENSITY)
    halves = [transform_mass_properties(half, [x, 0.0, 0.0], np.eye(3)) for x in (-0.1, 0.1)]
    assert_close(combine_mass_properties(halves), box_mass_properties(0.2, 0.2, 0.3, DENSITY), 1e-12)


def test_turned_inertia_is_r_i_rt():
    """diag(1, 2, 3) rolled by 90 degrees about x is diag(1, 3, 2)."""
    part = MassProperties(2.0, np.array([0.0, 0.5, 0.0]), np.diag([1.0, 2.0, 3.0]))
    turned = transform_mass_properties(
        part, [1.0, 0.0, 0.0], np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])
    )
    np.testing.assert_allclose(turned.inertia, np.diag([1.0, 3.0, 2.0]), atol=1e-12)
    np.testing.assert_allclose(turned.com, [1.0, 0.0, 0.5], atol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sphere_mass_properties(0.0, 1.0), ("sphere", "radius is 0.0")),
        (lambda: sphere_mass_properties(float("nan"), 1.0), ("radius is nan",)),
        (lambda: box_mass_properties(1.0, -1.0, 1.0, 1.0), ("box", "hy is -1.0")),
        (lambda: cylinder_mass_properties(1.0, 1.0, -5.0), ("cylinder", "density is -5.0")),
        (lambda: cone_mass_properties(1.0, 1.0, 5.0, thickness=0.0), ("thickness is 0.0", "margin")),
        (lambda: quat_to_matrix([0.0, 0.0, 0.0, 0.0]), ("not a rotation",)),
    ],
)
def test_impossible_sizes_are_refused(call, words):
    with pytest.raises(ValueError, match=".*".join(words)):
        call()
