"""Mass properties in closed form: solids of uniform density, hollow solids, and sums of rigid parts.

Every function returns the mass [kg], the centre of mass [m] and the rotational inertia about that centre
[kg·m²], in the axes of the shape: spheres, boxes and ellipsoids are centred at the origin, the axis of a
capsule, cylinder or cone is local z with `half_height` on either side of the origin (for a capsule without
the caps; a cone has its apex at +z). A hollow shape has walls of the given `thickness` inside its outer
surface; all computations are in float64.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class MassProperties(NamedTuple):
    """Mass, centre of mass and rotational inertia of a rigid part."""

    mass: float
    """Mass [kg]."""
    com: np.ndarray
    """Centre of mass [m], axes of the part, shape [3], float64."""
    inertia: np.ndarray
    """Rotational inertia about the centre of mass [kg·m²], axes of the part, shape [3, 3], float64."""


def sphere_mass_properties(
    radius: float, density: float, *, thickness: float | None = None
) -> MassProperties:
    """Return the mass properties of a sphere with `radius` [m], hollow if `thickness` [m] is given.

    Raises:
        ValueError: If a size or the thickness is not positive, or the density is negative.
    """
    _check("sphere", density, thickness, radius=radius)
    return _walled(_sphere, (radius,), density, thickness)


def box_mass_properties(
    hx: float, hy: float, hz: float, density: float, *, thickness: float | None = None
) -> MassProperties:
    """Return the mass properties of a box with half extents [m], hollow if `thickness` [m] is given.

    Raises:
        ValueError: If a size or the thickness is not positive, or the density is negative.
    """
    _check("box", density, thickness, hx=hx, hy=hy, hz=hz)
    return _walled(_box, (hx, hy, hz), density, thickness)


def ellipsoid_mass_properties(
    a: float, b: float, c: float, density: float, *, thickness: float | None = None
) -> MassProperties:
    """Return the mass properties of an ellipsoid with semi-axes [m], hollow if `thickness` [m] is given.

    The cavity of a hollow ellipsoid is the ellipsoid with every semi-axis shorter by `thickness`.

    Raises:
        ValueError: If a size or the thickness is not positive, or the density is negative.
    """
    _check("ellipsoid", density, thickness, a=a, b=b, c=c)
    return _walled(_ellipsoid, (a, b, c), density, thickness)


def capsule_mass_properties(
    radius: float, half_height: float, density: float, *, thickness: float | None = None
) -> MassProperties:
    """Return the mass properties of a capsule along z [m], hollow if `thickness` [m] is given.

    Raises:
        ValueError: If a size or the thickness is not positive, or the density is negative.
    """
    _check("capsule", density, thickness, radius=radius, half_height=half_height)

    def cavity(size: Sequence[float], wall: float) -> tuple[float, ...] | None:
        return (size[0] - wall, size[1]) if size[0] > wall else None

    return _walled(_capsule, (radius, half_height), density, thickness, cavity)


def cylinder_mass_properties(
    radius: float, half_height: float, density: float, *, thickness: float | None = None
) -> MassProperties:
    """Return the mass properties of a cylinder along z [m], hollow if `thickness` [m] is given.

    Raises:
        ValueError: If a size or the thickness is not positive, or the density is negative.
    """
    _check("cylinder", density, thickness, radius=radius, half_height=half_height)
    return _walled(_cylinder, (radius, half_height), density, thickness)


def cone_mass_properties(
    radius: float, half_height: float, density: float, *, thickness: float | None = None
) -> MassProperties:
    """Return the mass properties of a cone along z, apex at +z [m], hollow if `thickness` [m] is given.

    The cavity of a hollow cone is the similar cone about the same insphere centre, so that base and side
    walls have the same thickness.

    Raises:
        ValueError: If a size or the thickness is not positive, or the density is negative.
    """
    _check("cone", density, thickness, radius=radius, half_height=half_height)
    outer = _cone(radius, half_height)
    if thickness is not None:
        # Section through the axis: a triangle of base 2r, height 2h and two slant sides; its incircle is the
        # insphere.
        slant = float(np.hypot(radius, 2.0 * half_height))
        inradius = 2.0 * radius * half_height / (radius + slant)
        ratio = (inradius - thickness) / inradius
        if ratio > 0.0:
            centre = np.array([0.0, 0.0, inradius - half_height])
            cavity = _cone(ratio * radius, ratio * half_height)
            outer = _subtract(outer, _shifted(cavity, (1.0 - ratio) * centre))
    return _properties(outer, density)


def transform_mass_properties(
    part: MassProperties, position: Sequence[float] | np.ndarray, rotation: np.ndarray
) -> MassProperties:
    """Return the mass properties of `part` in a frame where its pose is `position` [m] and `rotation`.

    The inertia transforms as R I Rᵀ and stays about the centre of mass. `rotation` is a 3x3 matrix or a
    quaternion xyzw.
    """
    matrix = np.asarray(rotation, dtype=np.float64)
    if matrix.shape == (4,):
        matrix = quat_to_matrix(matrix)
    com = np.asarray(position, dtype=np.float64) + matrix @ part.com
    inertia = matrix @ part.inertia @ matrix.T
    return MassProperties(part.mass, com, 0.5 * (inertia + inertia.T))


def combine_mass_properties(parts: Sequence[MassProperties]) -> MassProperties:
    """Return the mass properties of a rigid union of `parts` given in one frame (parallel axis theorem).

    The centre of mass of parts that have no mass is the origin.
    """
    mass = float(sum(part.mass for part in parts))
    com = np.zeros(3)
    if mass > 0.0:
        com = sum((part.mass * np.asarray(part.com) for part in parts), com) / mass
    inertia = np.zeros((3, 3))
    for part in parts:
        inertia += part.inertia + part.mass * _point_inertia(np.asarray(part.com) - com)
    return MassProperties(mass, com, inertia)


# Relative to the largest principal inertia, the inertia about a joint that is not rounding of the precision
# in which it is summed and factored. A wire of a millimetre has 1e-7 at a length of 1 m, 1e-9 at 10 m.
AXIS_ROUNDING = 1.0e-12


def least_stored_inertia(inertia: np.ndarray) -> np.ndarray:
    """Return what single precision leaves of inertias about any axis, shape [..., 3, 3], axes as given.

    Models are stored in it. Each entry keeps its own digits, so an axis of the frame keeps as slender an
    inertia as any. In other axes the inertia is a difference of large entries: about the axis of a rod that
    lies askew in its frame, it may lose 1e-7 of the largest.
    """
    # Errors e |J_ij| change the inertia about an axis a by less than e times Σ a_i² Σ_j |J_ij|. Twice that
    # is taken off, so that the stored inertia is right to a half.
    lost = 2.0 * 2.0**-24 * np.abs(inertia).sum(axis=-1)
    return inertia - lost[..., None] * np.eye(3)


def quat_to_matrix(quat: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the rotation matrix of the quaternion `quat` (xyzw), normalized first, in float64.

    Raises:
        ValueError: If the quaternion has no direction (zero or not finite).
    """
    q = np.asarray(quat, dtype=np.float64)
    norm = np.linalg.norm(q)
    if not 0.0 < norm < np.inf:
        raise ValueError(
            f"quaternion {q.tolist()} is not a rotation: pass four finite numbers, not all zero."
        )
    x, y, z, w = q / norm
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
            [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
            [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


# A solid is described by (volume V, centroid c, second moments S = ∫ x xᵀ dV about the origin of its axes):
# these add and subtract, which is all that hollow shapes need. The inertia per unit density is tr(S) 1 - S
# about the centroid.
_Solid = tuple[float, np.ndarray, np.ndarray]


def _sphere(radius: float) -> _Solid:
    return _ellipsoid(radius, radius, radius)


def _ellipsoid(a: float, b: float, c: float) -> _Solid:
    volume = 4.0 / 3.0 * np.pi * a * b * c
    return volume, np.zeros(3), volume / 5.0 * np.diag([a * a, b * b, c * c])


def _box(hx: float, hy: float, hz: float) -> _Solid:
    volume = 8.0 * hx * hy * hz
    return volume, np.zeros(3), volume / 3.0 * np.diag([hx * hx, hy * hy, hz * hz])


def _cylinder(radius: float, half_height: float) -> _Solid:
    volume = 2.0 * np.pi * radius**2 * half_height
    return volume, np.zeros(3), volume * np.diag([radius**2 / 4.0, radius**2 / 4.0, half_height**2 / 3.0])


def _capsule(radius: float, half_height: float) -> _Solid:
    volume, com, second = _cylinder(radius, half_height)
    caps = 4.0 / 3.0 * np.pi * radius**3  # both half spheres
    # A half sphere reaches from its base plane at z = h: <z> = h + 3r/8, <(z-h)²> = r²/5, <x²> = r²/5.
    zz = half_height**2 + 0.75 * half_height * radius + 0.2 * radius**2
    return volume + caps, com, second + caps * np.diag([0.2 * radius**2, 0.2 * radius**2, zz])


def _cone(radius: float, half_height: float) -> _Solid:
    height = 2.0 * half_height
    volume = np.pi * radius**2 * height / 3.0
    com = np.array([0.0, 0.0, 0.25 * height - half_height])
    central_zz = 3.0 / 80.0 * height**2
    second = volume * np.diag([0.15 * radius**2, 0.15 * radius**2, central_zz + com[2] ** 2])
    return volume, com, second


def _shorter(size: Sequence[float], wall: float) -> tuple[float, ...] | None:
    """Return every length of `size` minus `wall`, or None if no cavity remains."""
    inner = tuple(length - wall for length in size)
    return inner if min(inner) > 0.0 else None


def _walled(
    solid: Callable[..., _Solid],
    size: Sequence[float],
    density: float,
    thickness: float | None,
    cavity: Callable[[Sequence[float], float], tuple[float, ...] | None] = _shorter,
) -> MassProperties:
    outer = solid(*size)
    inner_size = cavity(size, thickness) if thickness is not None else None
    return _properties(_subtract(outer, solid(*inner_size)) if inner_size else outer, density)


def _shifted(solid: _Solid, offset: np.ndarray) -> _Solid:
    volume, com, second = solid
    moved = com + offset
    return volume, moved, second + volume * (np.outer(moved, moved) - np.outer(com, com))


def _subtract(outer: _Solid, inner: _Solid) -> _Solid:
    volume = outer[0] - inner[0]
    return volume, (outer[0] * outer[1] - inner[0] * inner[1]) / volume, outer[2] - inner[2]


def _properties(solid: _Solid, density: float) -> MassProperties:
    volume, com, second = solid
    central = second - volume * np.outer(com, com)
    return MassProperties(density * volume, com, density * (np.trace(central) * np.eye(3) - central))


def _point_inertia(offset: np.ndarray) -> np.ndarray:
    return np.dot(offset, offset) * np.eye(3) - np.outer(offset, offset)


def _check(shape: str, density: float, thickness: float | None, **sizes: Any) -> None:
    for name, size in sizes.items():
        if not 0.0 < size < np.inf:
            raise ValueError(f"{shape}: {name} is {size} m, but a size must be finite and > 0.")
    if not 0.0 <= density < np.inf:
        raise ValueError(f"{shape}: density is {density} kg/m³, but it must be finite and >= 0.")
    if thickness is not None and not 0.0 < thickness < np.inf:
        raise ValueError(
            f"{shape}: the wall thickness is {thickness} m, but a hollow shape needs walls of thickness > 0. "
            "Give the wall thickness (for a shape: its margin), or make the shape solid."
        )
