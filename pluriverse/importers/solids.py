"""Mass properties of a link's shapes as solids, for files with missing or impossible mass or inertia."""

from collections.abc import Callable
from typing import Any

from pluriverse.geometry import (
    MassProperties,
    box_mass_properties,
    capsule_mass_properties,
    combine_mass_properties,
    cone_mass_properties,
    cylinder_mass_properties,
    ellipsoid_mass_properties,
    sphere_mass_properties,
    transform_mass_properties,
)
from pluriverse.importers.description import LinkDescription, ShapeDescription
from pluriverse.types import GeoType

_SOLIDS: dict[GeoType, tuple[int, Callable[..., MassProperties]]] = {  # number of sizes, and the formula
    GeoType.SPHERE: (1, sphere_mass_properties),
    GeoType.BOX: (3, box_mass_properties),
    GeoType.CAPSULE: (2, capsule_mass_properties),
    GeoType.CYLINDER: (2, cylinder_mass_properties),
    GeoType.CONE: (2, cone_mass_properties),
    GeoType.ELLIPSOID: (3, ellipsoid_mass_properties),
}


def mass_from_shapes(link: LinkDescription, density: float, mesh_maxhullvert: int) -> MassProperties:
    """Return the mass properties of the colliding shapes of a link, solid with `density` [kg/m³]."""
    parts = []
    for shape in link.shapes:
        part = _solid(shape, density, mesh_maxhullvert) if shape.collides else None
        if part is not None:
            parts.append(transform_mass_properties(part, shape.frame.position, shape.frame.quat))
    return combine_mass_properties(parts)


def _solid(shape: ShapeDescription, density: float, mesh_maxhullvert: int) -> MassProperties | None:
    """Return the mass properties of a solid shape in its own frame, None for one without volume."""
    if shape.type in _SOLIDS:
        count, formula = _SOLIDS[shape.type]
        return formula(*shape.scale[:count], density)
    mesh: Any = shape.mesh
    if shape.type is GeoType.MESH and mesh.is_closed:
        closed: MassProperties = mesh.mass_properties(density)
        return closed
    if shape.type in (GeoType.MESH, GeoType.CONVEX_MESH):
        hull: MassProperties = mesh.convex_hull(mesh_maxhullvert).mass_properties(density)
        return hull
    return None  # a plane or a height field
