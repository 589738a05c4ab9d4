"""Geometry of shapes: sizes that each kind needs, mass properties, and the pose of a plane."""

from collections.abc import Callable, Sequence

import numpy as np

from pluriverse.builder.shape_config import ShapeConfig
from pluriverse.geometry import (
    Heightfield,
    MassProperties,
    Mesh,
    box_mass_properties,
    capsule_mass_properties,
    cone_mass_properties,
    cylinder_mass_properties,
    ellipsoid_mass_properties,
    sphere_mass_properties,
)
from pluriverse.types import GeoType, ShapeFlags

# Sizes that each geometry needs, all > 0.
_SIZES: dict[GeoType, tuple[str, ...]] = {
    GeoType.SPHERE: ("radius",),
    GeoType.CAPSULE: ("radius", "half_height"),
    GeoType.CYLINDER: ("radius", "half_height"),
    GeoType.CONE: ("radius", "half_height"),
    GeoType.BOX: ("hx", "hy", "hz"),
    GeoType.ELLIPSOID: ("rx", "ry", "rz"),
}
_MASS_PROPERTIES: dict[GeoType, Callable[..., MassProperties]] = {
    GeoType.SPHERE: sphere_mass_properties,
    GeoType.CAPSULE: capsule_mass_properties,
    GeoType.CYLINDER: cylinder_mass_properties,
    GeoType.CONE: cone_mass_properties,
    GeoType.BOX: box_mass_properties,
    GeoType.ELLIPSOID: ellipsoid_mass_properties,
}

# Sizes [m] whose volumes and inertias are beyond single precision, and soon beyond double.
SIZE_MAX = 1e18


def check_size(geometry: GeoType, size: np.ndarray, name: str) -> np.ndarray:
    """Return the size with unused components zero, or raise."""
    if not (np.abs(size[np.isfinite(size)]) < SIZE_MAX).all():
        raise ValueError(f"{name}: the size is {size.tolist()}, but shapes are smaller than {SIZE_MAX:g} m.")
    if geometry is GeoType.PLANE:
        if size[0] < 0.0 or size[1] < 0.0:
            raise ValueError(
                f"{name}: width is {size[0]} m and length {size[1]} m, but they must be >= 0 (0 for "
                "infinite)."
            )
        return np.array([size[0], size[1], 0.0])
    if geometry in (GeoType.MESH, GeoType.CONVEX_MESH):
        if not size.all():
            raise ValueError(f"{name}: scale is {size.tolist()}, but no factor may be 0.")
        return size
    if geometry is GeoType.HFIELD:
        if not (size > 0.0).all():
            raise ValueError(f"{name}: scale is {size.tolist()}, but the factors of a height field are > 0.")
        return size
    names = _SIZES[geometry]
    for component, value in zip(names, size, strict=False):
        if not value > 0.0:
            raise ValueError(
                f"{name}: {component} is {value} m, but a {geometry.name} needs {component} > 0."
            )
    size = size.copy()
    size[len(names) :] = 0.0
    return size


def flags_of(config: ShapeConfig, geometry: GeoType) -> int:
    """Return the flags of a shape: planes and height fields are never compliant."""
    flags = config.flags
    if geometry in (GeoType.PLANE, GeoType.HFIELD):
        flags &= ~int(ShapeFlags.HYDROELASTIC)
    return flags


def shape_mass(
    geometry: GeoType,
    size: np.ndarray,
    mesh: Mesh | Heightfield | None,
    config: ShapeConfig,
    name: str,
) -> MassProperties:
    """Return the mass properties of a shape in its own frame."""
    if geometry is GeoType.PLANE or isinstance(mesh, Heightfield):
        return MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))
    thickness = None if config.is_solid else config.margin
    try:
        if mesh is None:
            sizes = [float(value) for value in size[: len(_SIZES[geometry])]]
            return _MASS_PROPERTIES[geometry](*sizes, config.density, thickness=thickness)
        if not mesh.compute_inertia:
            return MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))
        if geometry is GeoType.CONVEX_MESH:
            mesh = mesh.convex_hull()
        if not (size == 1.0).all():
            mesh = mesh.scaled(size.tolist())
        if mesh.is_solid and not config.is_solid:
            mesh = Mesh(mesh.vertices, mesh.indices, is_solid=False, name=mesh.name)
        return mesh.mass_properties(config.density, thickness=config.margin)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def plane_pose(plane: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the pose with local z along the normal of a plane, at the point nearest to the origin."""
    coefficients = np.asarray(plane, dtype=np.float64)
    norm = float(np.linalg.norm(coefficients[:3])) if coefficients.shape == (4,) else 0.0
    if not 0.0 < norm < np.inf or not np.isfinite(coefficients).all():
        raise ValueError(
            f"add_shape_plane: plane is {np.asarray(plane).tolist()}, but it must be (a, b, c, d) with a "
            "normal (a, b, c) that is not zero."
        )
    normal = coefficients[:3] / norm
    # The shortest rotation from z to the normal; for -z any rotation by pi about a horizontal axis.
    quat = np.array([-normal[1], normal[0], 0.0, 1.0 + normal[2]])
    length = np.linalg.norm(quat)
    quat = quat / length if length > 1.0e-8 else np.array([1.0, 0.0, 0.0, 0.0])
    return np.concatenate([-coefficients[3] / norm * normal, quat])
