"""Mass properties of USD bodies: from MassAPI, and from colliders and densities.

The precedence is that of USD: the mass of a body overrides those of its colliders; a density of a prim
overrides that of its ancestors, which overrides that of the material; the builder's density is the default.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pluriverse.geometry import (
    MassProperties,
    box_mass_properties,
    capsule_mass_properties,
    combine_mass_properties,
    cone_mass_properties,
    cylinder_mass_properties,
    quat_to_matrix,
    sphere_mass_properties,
    transform_mass_properties,
)
from pluriverse.importers.description import ShapeDescription
from pluriverse.importers.frames import quat_from_wxyz
from pluriverse.importers.report import ImportSeverity
from pluriverse.importers.usd_source import UsdSource, authored, inverse_matrix, split_matrix
from pluriverse.types import GeoType

NOTHING = MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))
_SOLIDS: dict[GeoType, tuple[int, Callable[..., MassProperties]]] = {  # number of sizes, and the formula
    GeoType.SPHERE: (1, sphere_mass_properties),
    GeoType.BOX: (3, box_mass_properties),
    GeoType.CAPSULE: (2, capsule_mass_properties),
    GeoType.CYLINDER: (2, cylinder_mass_properties),
    GeoType.CONE: (2, cone_mass_properties),
}


def solid_mass(shape: ShapeDescription, density: float, mesh_maxhullvert: int) -> MassProperties:
    """Return the mass properties of a solid shape of `density` [kg/m³], frame of the link."""
    if shape.mesh is not None:
        part = shape.mesh.convex_hull(mesh_maxhullvert).mass_properties(density)
    elif shape.type in _SOLIDS:
        count, formula = _SOLIDS[shape.type]
        part = formula(*shape.scale[:count], density)
    else:
        return NOTHING  # a plane
    return transform_mass_properties(part, shape.frame.position, shape.frame.quat)


def collider_mass(
    source: UsdSource, prim: Any, body: Any, shapes: list[ShapeDescription], density: float, hull: int
) -> MassProperties:
    """Return the mass properties of a collider with the given shapes, frame of the link.

    `density` [kg/m³] is that of its material or of the builder; MassAPI of the collider, or of its ancestors
    up to the body, overrides it.
    """
    part = combine_mass_properties([solid_mass(shape, 1.0, hull) for shape in shapes])
    own = _positive(source, prim, "physics:mass")
    if own > 0.0 and part.mass > 0.0:
        part = _scaled(part, own * source.mass / part.mass)
    else:
        part = _scaled(part, _density(source, prim, body, density))
    return _overridden(source, prim, body, part)


def body_mass(source: UsdSource, prim: Any, parts: list[MassProperties]) -> MassProperties:
    """Return the mass properties of a body whose colliders have the given ones, frame of the link."""
    total = combine_mass_properties(parts)
    mass = _positive(source, prim, "physics:mass") * source.mass
    if mass > 0.0 and total.mass > 0.0:
        total = _scaled(total, mass / total.mass)
    elif mass > 0.0:
        total = MassProperties(mass, np.zeros(3), np.zeros((3, 3)))
    return _overridden(source, prim, prim, total)


def _density(source: UsdSource, prim: Any, body: Any, density: float) -> float:
    """Return the MassAPI density of a prim or its ancestors, else `density` [kg/m³]."""
    while True:
        value = _positive(source, prim, "physics:density")
        if value > 0.0:
            return value * source.mass / source.length**3
        if prim == body:
            return density
        prim = prim.GetParent()


def _overridden(source: UsdSource, prim: Any, body: Any, part: MassProperties) -> MassProperties:
    """Return a part with the MassAPI centre of mass and inertia of the prim, frame of the link."""
    # The frame of the link has no scale, that of the prim may have.
    matrix = inverse_matrix(source.world_frame(body)) @ source.world_matrix(prim)
    mass, com, inertia = part
    authored_com = authored(prim, "physics:centerOfMass")
    if authored_com is not None and np.isfinite(np.array(authored_com)).all():  # -inf: that of the colliders
        moved = matrix[:3, :3] @ np.array(authored_com, dtype=np.float64) + matrix[:3, 3]
        shift = moved - com
        inertia = inertia + mass * (shift @ shift * np.eye(3) - np.outer(shift, shift))
        com = moved
    tensor = authored(prim, "newton:inertia")
    if tensor is not None and len(tensor) > 0:
        rotation = split_matrix(matrix)[0].matrix
        return MassProperties(mass, com, rotation @ _tensor(source, prim, list(tensor)) @ rotation.T)
    diagonal = authored(prim, "physics:diagonalInertia")
    if diagonal is not None and np.any(np.array(diagonal) != 0.0):  # 0: that of the colliders
        moments = np.array([source.number(prim, "physics:diagonalInertia", moment) for moment in diagonal])
        rotation = split_matrix(matrix)[0].matrix @ _principal_rotation(source, prim)
        inertia = rotation @ np.diag(source.mass * source.length**2 * moments) @ rotation.T
    return MassProperties(mass, com, inertia)


def _tensor(source: UsdSource, prim: Any, entries: list[float]) -> np.ndarray:
    """Return the inertia of `newton:inertia`: xx, yy, zz, xy, xz, yz, axes of the prim."""
    if len(entries) != 6 or not np.isfinite(entries).all():
        raise source.error(
            prim,
            f"newton:inertia is {entries}",
            value=entries,
            remedy="Write six finite numbers: Ixx, Iyy, Izz, Ixy, Ixz, Iyz.",
        )
    xx, yy, zz, xy, xz, yz = (source.mass * source.length**2 * entry for entry in entries)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _principal_rotation(source: UsdSource, prim: Any) -> np.ndarray:
    axes = authored(prim, "physics:principalAxes")
    if axes is None:
        return np.eye(3)
    quat = quat_from_wxyz([axes.GetReal(), *axes.GetImaginary()])
    norm = float(np.linalg.norm(quat))
    if norm == 0.0:  # USD's "not given"
        return np.eye(3)
    if not np.isfinite(norm):
        raise source.error(
            prim,
            f"physics:principalAxes is {quat.tolist()} (xyzw), which is no rotation",
            value=quat.tolist(),
            remedy="Write a unit quaternion.",
        )
    return quat_to_matrix(quat / norm)


def _positive(source: UsdSource, prim: Any, name: str) -> float:
    """Return a mass or density; 0 means "not given", and as in USD so do negative values."""
    value = authored(prim, name)
    if value is None:
        return 0.0
    number = source.number(prim, name, value)
    if number < 0.0:
        entity = f"prim '{prim.GetPath()}', {number:g}"
        # Each collider of a body reads the density of the body; report it once.
        if not any(entity in entry.entities for entry in source.report.repairs):
            source.report.add(
                f"negative {name}", entity, "it counts as not given, as in USD", ImportSeverity.REPAIR
            )
    return max(number, 0.0)


def _scaled(part: MassProperties, factor: float) -> MassProperties:
    return MassProperties(factor * part.mass, part.com, factor * part.inertia)
