"""Meshes of simple solids, under Newton's names."""

import itertools
from typing import Annotated, Any, Self, TypedDict, Unpack

import numpy as np

from pluriverse.options import completed, with_options
from pluriverse.types import Axis


class MeshShapeOptions(TypedDict, total=False):
    """Options of all simple solids."""

    compute_normals: Annotated[bool, True]
    """Changes nothing: normals are computed when a mesh is drawn."""
    compute_uvs: Annotated[bool, True]
    """Changes nothing: texture coordinates belong to `MeshSkin`."""
    compute_inertia: Annotated[bool, True]
    """As for the constructor."""


class EllipsoidOptions(MeshShapeOptions, total=False):
    """Options of spheres and ellipsoids."""

    num_latitudes: Annotated[int, 32]
    """Bands from pole to pole, 2 or more."""
    num_longitudes: Annotated[int, 32]
    """Sectors around the axis, 3 or more."""
    reverse_winding: Annotated[bool, False]
    """Whether the triangles face inwards; the mesh then has no mass."""


class MeshShapes:
    """Constructors of `Mesh` for simple solids, centred on the origin, vertices on the true surface."""

    @classmethod
    @with_options(MeshShapeOptions)
    def create_box(
        cls,
        hx: float,
        hy: float | None = None,
        hz: float | None = None,
        *,
        duplicate_vertices: bool = True,
        **options: Unpack[MeshShapeOptions],
    ) -> Self:
        """Return a box of 12 triangles.

        Args:
            hx: Half its extent along x [m].
            hy: Half its extent along y [m]; that along x if None.
            hz: Half its extent along z [m]; that along x if None.
            duplicate_vertices: Whether each face has 4 separate vertices, 24 in all rather than 8.

        Raises:
            ValueError: If a half extent is not positive and finite.
        """
        half = (hx, hx if hy is None else hy, hx if hz is None else hz)
        _check("create_box", hx=half[0], hy=half[1], hz=half[2])
        corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3))) * half
        quads = np.array(_BOX_QUADS)
        if duplicate_vertices:
            corners, quads = corners[quads.reshape(-1)], np.arange(24).reshape(6, 4)
        return _make(cls, corners, _split(quads), options, "box")

    @classmethod
    @with_options(EllipsoidOptions)
    def create_sphere(
        cls,
        radius: float = 1.0,
        **options: Unpack[EllipsoidOptions],
    ) -> Self:
        """Return a sphere, its poles on the z axis.

        Args:
            radius: Its radius [m].

        Raises:
            ValueError: If the radius is not positive and finite, or a number is too small.
        """
        _check("create_sphere", radius=radius)
        return cls.create_ellipsoid(radius, radius, radius, **options)

    @classmethod
    @with_options(EllipsoidOptions)
    def create_ellipsoid(
        cls,
        rx: float = 1.0,
        ry: float = 1.0,
        rz: float = 1.0,
        **options: Unpack[EllipsoidOptions],
    ) -> Self:
        """Return an ellipsoid, its poles on the z axis.

        Args:
            rx: Semi-axis along x [m].
            ry: Semi-axis along y [m].
            rz: Semi-axis along z [m].

        Raises:
            ValueError: If a semi-axis is not positive and finite, or a number is too small.
        """
        _check("create_ellipsoid", rx=rx, ry=ry, rz=rz)
        given: EllipsoidOptions = completed(EllipsoidOptions, options)
        _check_count("create_ellipsoid", "num_latitudes", given["num_latitudes"], 2)
        angles = np.linspace(0.0, np.pi, given["num_latitudes"] + 1)
        vertices, triangles = _sweep(
            "create_ellipsoid", "num_longitudes", np.sin(angles), -np.cos(angles), given["num_longitudes"]
        )
        if given["reverse_winding"]:
            triangles, given["compute_inertia"] = triangles[:, ::-1], False
        return _make(cls, vertices * (rx, ry, rz), triangles, given, "ellipsoid")

    @classmethod
    @with_options(MeshShapeOptions)
    def create_capsule(
        cls,
        radius: float,
        half_height: float,
        *,
        up_axis: Axis | str | int = Axis.Y,
        segments: int = 32,
        **options: Unpack[MeshShapeOptions],
    ) -> Self:
        """Return a cylinder with half spheres at both ends.

        Args:
            radius: Its radius [m].
            half_height: Half the length of the cylinder, without the caps [m].
            up_axis: Its axis; y, as in Newton, unless another is given.
            segments: Sectors around the axis, 4 or more; each cap has a quarter as many bands.

        Raises:
            ValueError: If a length is not positive and finite, there is no such axis, or `segments` is below
                4.
        """
        _check("create_capsule", radius=radius, half_height=half_height)
        _check_count("create_capsule", "segments", segments, 4)
        angles = np.linspace(0.0, 0.5 * np.pi, segments // 4 + 1)
        outline = np.concatenate([np.sin(angles), np.cos(angles)]) * radius
        cap = np.concatenate([-np.cos(angles), np.sin(angles)]) * radius
        heights = cap + np.repeat([-half_height, half_height], len(angles))
        vertices, triangles = _sweep("create_capsule", "segments", outline, heights, segments)
        return _make(cls, _turn(vertices, up_axis), triangles, options, "capsule")

    @classmethod
    @with_options(MeshShapeOptions)
    def create_cylinder(
        cls,
        radius: float,
        half_height: float,
        *,
        up_axis: Axis | str | int = Axis.Y,
        segments: int = 32,
        top_radius: float | None = None,
        **options: Unpack[MeshShapeOptions],
    ) -> Self:
        """Return a cylinder, or a cone without its tip.

        Args:
            radius: Its radius, with `top_radius` that of the lower end [m].
            half_height: Half its length [m].
            up_axis: Its axis; y, as in Newton, unless another is given.
            segments: Sectors around the axis, 3 or more.
            top_radius: Radius of the upper end [m]; `radius` if None.

        Raises:
            ValueError: If a length is not positive and finite, there is no such axis, or `segments` is below
                3.
        """
        top = radius if top_radius is None else top_radius
        _check("create_cylinder", radius=radius, half_height=half_height, top_radius=top)
        outline = np.array([0.0, radius, top, 0.0])
        heights = np.array([-1.0, -1.0, 1.0, 1.0]) * half_height
        vertices, triangles = _sweep("create_cylinder", "segments", outline, heights, segments)
        return _make(cls, _turn(vertices, up_axis), triangles, options, "cylinder")

    @classmethod
    @with_options(MeshShapeOptions)
    def create_cone(
        cls,
        radius: float,
        half_height: float,
        *,
        up_axis: Axis | str | int = Axis.Y,
        segments: int = 32,
        **options: Unpack[MeshShapeOptions],
    ) -> Self:
        """Return a cone, its tip at +`half_height` and its base at -`half_height` of its axis.

        Args:
            radius: Radius of the base [m].
            half_height: Half its height [m].
            up_axis: Its axis; y, as in Newton, unless another is given.
            segments: Sectors around the axis, 3 or more.

        Raises:
            ValueError: If a length is not positive and finite, there is no such axis, or `segments` is below
                3.
        """
        _check("create_cone", radius=radius, half_height=half_height)
        outline, heights = np.array([0.0, radius, 0.0]), np.array([-1.0, -1.0, 1.0]) * half_height
        vertices, triangles = _sweep("create_cone", "segments", outline, heights, segments)
        return _make(cls, _turn(vertices, up_axis), triangles, options, "cone")

    @classmethod
    @with_options(MeshShapeOptions)
    def create_plane(
        cls,
        width: float,
        length: float,
        **options: Unpack[MeshShapeOptions],
    ) -> Self:
        """Return a rectangle in z = 0 that faces +z; its mass, if any, is that of a sheet.

        Args:
            width: Extent along x [m].
            length: Extent along y [m].

        Raises:
            ValueError: If an extent is not positive and finite.
        """
        _check("create_plane", width=width, length=length)
        corners = np.array([[-0.5, -0.5, 0.0], [0.5, -0.5, 0.0], [0.5, 0.5, 0.0], [-0.5, 0.5, 0.0]])
        triangles = _split(np.arange(4).reshape(1, 4))
        return _make(cls, corners * (width, length, 1.0), triangles, options, "plane", is_solid=False)


# Corners of the faces of a box, counterclockwise from outside; corner 4 i + 2 j + k has x, y, z > 0 where i,
# j, k are 1.
_BOX_QUADS = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def _split(quads: np.ndarray) -> np.ndarray:
    """Return two triangles per quadrilateral."""
    return quads[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)


def _sweep(
    what: str, name: str, radius: np.ndarray, height: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the surface of revolution about z of an outline that starts and ends on the axis, from below."""
    _check_count(what, name, count, 3)
    angles = 2.0 * np.pi * np.arange(count) / count
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    inner = np.arange(1, len(radius) - 1)
    rings = np.empty((len(inner), count, 3))
    rings[:, :, :2] = radius[inner, None, None] * around
    rings[:, :, 2] = height[inner, None]
    vertices = np.concatenate([rings.reshape(-1, 3), [[0.0, 0.0, height[0]], [0.0, 0.0, height[-1]]]])
    this, following = np.arange(count), (np.arange(count) + 1) % count
    start = count * np.arange(len(inner) - 1)[:, None]
    quads = np.stack(
        [start + this, start + following, start + count + following, start + count + this], axis=-1
    )
    last = count * (len(inner) - 1)
    bottom, top = np.full(count, len(vertices) - 2), np.full(count, len(vertices) - 1)
    triangles = [
        np.stack([bottom, following, this], axis=1),
        _split(quads.reshape(-1, 4)),
        np.stack([last + this, last + following, top], axis=1),
    ]
    return vertices, np.concatenate(triangles)


def _turn(vertices: np.ndarray, up_axis: Axis | str | int) -> np.ndarray:
    """Return vertices rotated so that z becomes `up_axis`."""
    return np.roll(vertices, int(Axis.from_any(up_axis)) + 1, axis=1)


def _make(
    cls: Any,
    vertices: np.ndarray,
    triangles: np.ndarray,
    options: MeshShapeOptions,
    name: str,
    is_solid: bool = True,
) -> Any:
    has_mass = options.get("compute_inertia", True)
    return cls(vertices, triangles, compute_inertia=has_mass, is_solid=is_solid, name=name)


def _check(what: str, **lengths: float) -> None:
    for name, value in lengths.items():
        if not 0.0 < value < np.inf:
            raise ValueError(f"Mesh.{what}: {name} is {value}, but it must be finite and > 0 (m).")


def _check_count(what: str, name: str, count: int, least: int) -> None:
    if isinstance(count, bool) or int(count) != count or count < least:
        raise ValueError(f"Mesh.{what}: {name} is {count}, but it must be a whole number >= {least}.")
