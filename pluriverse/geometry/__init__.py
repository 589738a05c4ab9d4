"""Geometry on the host: triangle meshes, convex hulls and mass properties."""

from typing import Any

from pluriverse.geometry.appearance import Appearance as Appearance
from pluriverse.geometry.appearance import MeshSkin, TextureMapping
from pluriverse.geometry.appearance import Texture as Texture
from pluriverse.geometry.approximation import approximate_mesh
from pluriverse.geometry.convex_hull import HULL_VERTEX_COUNT_MIN
from pluriverse.geometry.heightfield import Heightfield as Heightfield
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
from pluriverse.geometry.mesh import MESH_HULL_VERTEX_COUNT
from pluriverse.geometry.mesh import Mesh as Mesh
from pluriverse.geometry.screw_thread import bolt_mesh, nut_mesh
from pluriverse.geometry.signed_distance import SDF_MAX_RESOLUTION, SignedDistance
from pluriverse.geometry.terrain import (
    discrete_obstacles_terrain,
    flat_terrain,
    random_uniform_terrain,
    sloped_terrain,
    stairs_terrain,
    wave_terrain,
)
from pluriverse.newton_names import missing

__all__ = [
    "HULL_VERTEX_COUNT_MIN",
    "MESH_HULL_VERTEX_COUNT",
    "SDF_MAX_RESOLUTION",
    "MassProperties",
    "MeshSkin",
    "SignedDistance",
    "TextureMapping",
    "approximate_mesh",
    "bolt_mesh",
    "box_mass_properties",
    "capsule_mass_properties",
    "combine_mass_properties",
    "cone_mass_properties",
    "cylinder_mass_properties",
    "discrete_obstacles_terrain",
    "ellipsoid_mass_properties",
    "flat_terrain",
    "nut_mesh",
    "quat_to_matrix",
    "random_uniform_terrain",
    "sloped_terrain",
    "sphere_mass_properties",
    "stairs_terrain",
    "transform_mass_properties",
    "wave_terrain",
]


def __getattr__(name: str) -> Any:
    raise missing("geometry", name, kind="module")
