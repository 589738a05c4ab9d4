"""Geometry on the host: triangle meshes, convex hulls and mass properties."""

from pluriverse.geometry.inertia import (
    MassProperties,
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
from pluriverse.geometry.mesh import MESH_HULL_VERTEX_COUNT, Mesh

__all__ = [
    "MESH_HULL_VERTEX_COUNT",
    "MassProperties",
    "Mesh",
    "box_mass_properties",
    "capsule_mass_properties",
    "combine_mass_properties",
    "cone_mass_properties",
    "cylinder_mass_properties",
    "ellipsoid_mass_properties",
    "quat_to_matrix",
    "sphere_mass_properties",
    "transform_mass_properties",
]
