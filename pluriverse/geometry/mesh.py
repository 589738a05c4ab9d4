"""Triangle mesh: its arrays, its sources, its mass properties and its convex hull."""

import copy
import functools
import hashlib
import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from pluriverse.geometry.appearance import MeshSkin
from pluriverse.geometry.convex_hull import HULL_VERTEX_COUNT_MIN, compute_convex_hull
from pluriverse.geometry.inertia import MassProperties
from pluriverse.geometry.mesh_normals import compute_corner_normals
from pluriverse.geometry.mesh_shapes import MeshShapes
from pluriverse.geometry.signed_distance import SignedDistance, check_options, compute_signed_distance
from pluriverse.geometry.surface_edges import is_closed_surface
from pluriverse.geometry.vertex_merge import merge_vertices
from pluriverse.geometry.warp_mesh import warp_mesh
from pluriverse.newton_names import explain_missing

# Vertices of a convex hull unless the caller says otherwise. Support queries cost time in proportion to it;
# 64 vertices describe a robot link to about 1 % of its size (a sphere: 0.03 r of sagitta).
MESH_HULL_VERTEX_COUNT = 64


class Mesh(MeshShapes):
    """Triangles in the local frame of the mesh [m].

    Meshes are immutable and compare by identity; `content_key` identifies equal content.

    Args:
        vertices: Vertex positions [m], shape [vertex, 3].
        indices: Three vertex indices per triangle, counterclockwise seen from outside; flat or of shape
            [triangle, 3].
        compute_inertia: Whether the mesh has mass. With False it only displays: its mass properties are zero.
        is_solid: Whether the enclosed volume carries the mass (the mesh must then be closed) or the surface.
        color: Colour as red, green, blue from 0 to 1, or None.
        name: What the mesh is called in messages, for example its file.
        skin: Colours and textures of its triangles, or None.
        normals: Normals of the vertices, kept as given. Nothing here uses them: drawing finds its own.
        uvs: Texture coordinates of the vertices, kept as given. What is drawn is in `skin`.
        maxhullvert: Vertices that the convex hull may have where it collides; None is `MAX_HULL_VERTICES`.

    Raises:
        ValueError: If arrays have wrong shapes, numbers that are not finite, or indices out of range, or
            `maxhullvert` is too small.
    """

    MAX_HULL_VERTICES = MESH_HULL_VERTEX_COUNT
    """Vertices that a convex hull may have unless a mesh says otherwise."""

    def __init__(
        self,
        vertices: Any,
        indices: Any,
        *,
        compute_inertia: bool = True,
        is_solid: bool = True,
        color: Sequence[float] | None = None,
        name: str = "mesh",
        skin: MeshSkin | None = None,
        normals: Any = None,
        uvs: Any = None,
        maxhullvert: int | None = None,
    ):
        self.name = name
        """Name of the mesh in messages."""
        self.vertices: np.ndarray = _checked_vertices(vertices, name)
        """Vertex positions [m], local frame, shape [vertex, 3], float32, read-only."""
        self.indices: np.ndarray = _checked_indices(indices, len(self.vertices), name)
        """Vertex indices, three per triangle, shape [3 * triangle], int32, read-only."""
        self.compute_inertia = compute_inertia
        """Whether the mesh has mass."""
        self.is_solid = is_solid
        """Whether the enclosed volume carries the mass, or the surface."""
        self.color: tuple[float, float, float] | None = None
        """Red, green and blue from 0 to 1, or None."""
        if color is not None:
            red, green, blue = (float(channel) for channel in color)
            self.color = (red, green, blue)
            if not all(0.0 <= channel <= 1.0 for channel in self.color):
                raise ValueError(
                    f"mesh '{name}': color is {self.color}, but red, green and blue must be from 0 to 1."
                )
        self.normals: np.ndarray | None = None if normals is None else np.array(normals, dtype=np.float32)
        """Normals of the vertices as given, or None."""
        self.uvs: np.ndarray | None = None if uvs is None else np.array(uvs, dtype=np.float32)
        """Texture coordinates of the vertices as given, or None."""
        self.maxhullvert = _checked_hull_limit(maxhullvert, name)
        """Vertices that the convex hull may have where it collides."""
        self.skin = skin
        """Colours and textures of the triangles, or None."""
        if skin is not None:
            skin.check(len(self.indices) // 3, name)
        self.is_convex_hull = False
        """Whether the mesh was made by `convex_hull`."""
        self.hull_source: Mesh | None = None
        """The mesh whose hull this one is, used by decompositions; None for other meshes."""
        self._hulls: dict[int, Mesh] = {}
        self._signed_distances: dict[tuple[Any, ...], SignedDistance] = {}
        self._variants: dict[tuple[Any, ...], Mesh] = {}
        self._unscaled: Mesh | None = None
        self.signed_distance_options: dict[str, Any] = {}
        """Options of `signed_distance` for all who give none, see `with_signed_distance`."""

    if not TYPE_CHECKING:
        __getattr__ = explain_missing("Mesh")

    def finalize(self, device: Any = None, requires_grad: bool = False) -> wp.uint64:
        """Return the id of a `wp.Mesh` of the triangles, for mesh queries in kernels of your own.

        It lives as long as this mesh, and is made once per device. Nothing here needs it.

        Args:
            device: Device of the mesh; Warp's default device if None.
            requires_grad: Must be False.

        Raises:
            ValueError: If gradients are asked for.
        """
        if requires_grad:
            raise ValueError(
                f"mesh '{self.name}': requires_grad is True, but meshes here take no gradients. Leave it out."
            )
        return warp_mesh(self, device).id

    @property
    def triangles(self) -> np.ndarray:
        """Vertex indices, shape [triangle, 3], int32."""
        return self.indices.reshape(-1, 3)

    @functools.cached_property
    def content_key(self) -> bytes:
        """Digest of vertices, indices and how they weigh and collide: equal for meshes of equal content."""
        digest = hashlib.blake2b(digest_size=16)
        kind = [len(self.vertices), self.compute_inertia, self.is_solid, self.is_convex_hull]
        digest.update(np.array(kind, dtype=np.int64).tobytes())
        digest.update(self.vertices.tobytes())
        digest.update(self.indices.tobytes())
        if self.skin is not None:
            digest.update(self.skin.content_key)
            digest.update(np.array(self.color or (), dtype=np.float64).tobytes())
        if self.maxhullvert != MESH_HULL_VERTEX_COUNT:
            digest.update(f"hull {self.maxhullvert}".encode())
        if self.signed_distance_options:
            digest.update(repr(sorted(self.signed_distance_options.items())).encode())
        return digest.digest()

    @functools.cached_property
    def aabb(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the bounding box [m], local axes, float32."""
        return self.vertices.min(axis=0), self.vertices.max(axis=0)

    @functools.cached_property
    def corner_normals(self) -> np.ndarray:
        """Unit normals to draw the corners of triangles with, smooth but for edges: [triangle, 3, 3]."""
        return compute_corner_normals(self.vertices, self.triangles)

    @functools.cached_property
    def is_closed(self) -> bool:
        """Whether the surface has no boundary, vertices at equal positions being one."""
        _, merged = merge_vertices(self.vertices)
        return is_closed_surface(merged[self.triangles], len(self.vertices))

    @property
    def is_watertight(self) -> bool:
        """Another name of `is_closed`."""
        return self.is_closed

    def mass_properties(self, density: float, *, thickness: float | None = None) -> MassProperties:
        """Return mass [kg], centre of mass [m] and inertia about it [kg·m²], exact for the triangles.

        A solid mesh is integrated by the divergence theorem: the signed tetrahedra between the triangles and
        a common point have volume, first and second moments in closed form ([Mirtich1996]). Of a surface mesh
        each triangle is a sheet of the given thickness.

        Args:
            density: Density [kg/m³].
            thickness: Thickness of the sheet [m] of a mesh with `is_solid=False`.

        Raises:
            ValueError: If the density is negative, a solid mesh is not closed or encloses no volume, or a
                surface mesh has no thickness.
        """
        if not 0.0 <= density < np.inf:
            raise ValueError(f"{self.name}: density is {density} kg/m³, but it must be finite and >= 0.")
        if density == 0.0 or not self.compute_inertia:
            return MassProperties(0.0, np.zeros(3), np.zeros((3, 3)))
        if self.is_solid:
            return self._solid_mass_properties(density)
        if thickness is None or not 0.0 < thickness < np.inf:
            raise ValueError(
                f"{self.name}: the thickness of the surface is {thickness} m, but a mesh with is_solid=False "
                "weighs area * thickness * density. Give a thickness > 0 (for a shape: its margin), or make "
                "the mesh solid."
            )
        return self._surface_mass_properties(density * thickness)

    def _solid_mass_properties(self, density: float) -> MassProperties:
        if not self.is_closed:
            raise ValueError(
                f"{self.name}: the surface has holes, so it encloses no definite volume to weigh. Repair the "
                "mesh, use its convex_hull(), pass is_solid=False to weigh the surface, or give mass and "
                "inertia of the body."
            )
        centre = 0.5 * (self.aabb[0].astype(np.float64) + self.aabb[1])
        a, b, c = (self.vertices.astype(np.float64) - centre)[self.triangles.T]
        volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
        volume = volumes.sum()
        extent = (self.aabb[1] - self.aabb[0]).astype(np.float64)
        # float32 vertices leave a flat closed surface with a volume of rounding errors; relative to its
        # bounding box.
        if not abs(volume) > 1e-7 * max(extent.prod(), 1e-7 * extent.max() ** 3):
            raise ValueError(
                f"{self.name}: the surface encloses no volume (a bounding box of {extent.tolist()} m holds "
                f"{volume:.3g} m³). Pass is_solid=False to weigh the surface, or give mass and inertia of "
                "the body."
            )
        total = a + b + c
        first = np.einsum("i,ij->j", volumes, total) / 4.0
        # ∫ x xᵀ over a tetrahedron (0, a, b, c) is V/20 (aaᵀ + bbᵀ + ccᵀ + ssᵀ) with s = a + b + c.
        second = _second_moments(volumes, a, b, c, total) / 20.0
        return self._from_moments(
            density, volume, first, second, centre
        )  # an inside-out surface has V, S < 0

    def _surface_mass_properties(self, area_density: float) -> MassProperties:
        centre = 0.5 * (self.aabb[0].astype(np.float64) + self.aabb[1])
        a, b, c = (self.vertices.astype(np.float64) - centre)[self.triangles.T]
        areas = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
        total = a + b + c
        first = np.einsum("i,ij->j", areas, total) / 3.0
        # ∫ x xᵀ over a triangle (a, b, c) is A/12 (aaᵀ + bbᵀ + ccᵀ + ssᵀ) with s = a + b + c.
        second = _second_moments(areas, a, b, c, total) / 12.0
        if not areas.sum() > 0.0:
            raise ValueError(f"{self.name}: every triangle has zero area, so the surface cannot be weighed.")
        return self._from_moments(area_density, areas.sum(), first, second, centre)

    @staticmethod
    def _from_moments(
        density: float, measure: float, first: np.ndarray, second: np.ndarray, centre: np.ndarray
    ) -> MassProperties:
        com = first / measure
        central = (second - measure * np.outer(com, com)) * np.sign(measure)
        inertia = np.trace(central) * np.eye(3) - central
        return MassProperties(density * abs(float(measure)), com + centre, density * inertia)

    def convex_hull(self, max_vertices: int | None = None) -> "Mesh":
        """Return the convex hull, a closed mesh of at most `max_vertices` of the vertices of this one.

        A hull of more vertices is approximated from inside: starting from the extreme points along the axes,
        the point farthest from the hull so far is added until the limit is reached. The result depends on the
        vertices only, and is kept for the next call.

        Args:
            max_vertices: Limit of the number of vertices, `HULL_VERTEX_COUNT_MIN` or more. None is
                `maxhullvert`, and for a mesh that was made as a hull, that mesh itself.

        Raises:
            ValueError: If the vertices lie in a plane, or the limit is too small.
        """
        if max_vertices is None:
            if self.is_convex_hull:
                return self
            max_vertices = self.maxhullvert
        hull = self._hulls.get(max_vertices)
        if hull is None:
            vertices, triangles = compute_convex_hull(self.vertices, max_vertices, self.name)
            hull = Mesh(vertices, triangles, color=self.color, name=f"convex hull of {self.name}")
            hull.is_convex_hull = True
            hull.hull_source = self
            self._hulls[max_vertices] = hull
        return hull

    def with_signed_distance(
        self,
        *,
        max_resolution: int | None = None,
        target_voxel_size: float | None = None,
        narrow_band_range: tuple[float, float] | None = None,
        padding: float | None = None,
    ) -> "Mesh":
        """Return this mesh with options for its signed distance grid, which collisions use; None keeps one.

        The arguments are those of `signed_distance`.

        Raises:
            ValueError: If an option is out of range.
        """
        band = None if narrow_band_range is None else tuple(map(float, narrow_band_range))
        given = {
            "max_resolution": max_resolution,
            "target_voxel_size": target_voxel_size,
            "narrow_band_range": band,
            "padding": padding,
        }
        options = self.signed_distance_options | {
            name: value for name, value in given.items() if value is not None
        }
        check_options(self.name, **options)
        key = tuple(sorted(options.items()))
        if options == self.signed_distance_options:
            return self
        variant = self._variants.get(key)
        if variant is None:
            variant = copy.copy(self)
            variant.signed_distance_options = options
            variant._variants = {}
            variant.__dict__.pop("content_key", None)
            self._variants[key] = variant
        return variant

    def build_sdf(
        self,
        *,
        max_resolution: int | None = None,
        target_voxel_size: float | None = None,
        narrow_band_range: tuple[float, float] | None = None,
        margin: float | None = None,
        cache_dir: str | Path | None = None,
    ) -> SignedDistance:
        """Set the options of the signed distance grid of this mesh, and return the grid.

        Call it before the mesh is given to a builder, which knows meshes by their content.

        Args:
            max_resolution: As of `signed_distance`, like all others.
            target_voxel_size: Edge of a cell [m].
            narrow_band_range: Distances inside and outside [m].
            margin: Distance of the box from the mesh [m]: the `padding`.
            cache_dir: Folder that keeps grids.

        Raises:
            ValueError: If an option is out of range, or the mesh has holes and encloses nothing.
        """
        variant = self.with_signed_distance(
            max_resolution=max_resolution,
            target_voxel_size=target_voxel_size,
            narrow_band_range=narrow_band_range,
            padding=margin,
        )
        self.signed_distance_options = dict(variant.signed_distance_options)
        self.__dict__.pop("content_key", None)
        return self.signed_distance(cache_dir=cache_dir)

    def signed_distance(
        self,
        *,
        max_resolution: int | None = None,
        target_voxel_size: float | None = None,
        narrow_band_range: tuple[float, float] | None = None,
        padding: float | None = None,
        cache_dir: str | Path | None = None,
    ) -> SignedDistance:
        """Return the signed distance from the surface on a grid, negative inside; kept for the next call.

        What is None is taken from `signed_distance_options`, or else the default.

        Args:
            max_resolution: Cells along the longest side of the mesh, 64 by default.
            target_voxel_size: Edge of a cell [m]; takes precedence over `max_resolution`.
            narrow_band_range: Distances inside (<= 0) and outside (>= 0) [m] up to which the grid has all
                its nodes; farther from the surface it has every eighth. By default two cells.
            padding: Distance of the box from the mesh [m], two cells by default; the box has whole blocks of
                eight cells.
            cache_dir: Folder that keeps the grids of meshes of 1000 triangles or more; None for
                `PLURIVERSE_MESH_CACHE`, or else `~/.cache/pluriverse/meshes`.

        Raises:
            ValueError: If an option is out of range, or the mesh has holes and encloses nothing.
        """
        given = {
            "max_resolution": max_resolution,
            "target_voxel_size": target_voxel_size,
            "narrow_band_range": None if narrow_band_range is None else tuple(narrow_band_range),
            "padding": padding,
        }
        options = self.signed_distance_options | {
            name: value for name, value in given.items() if value is not None
        }
        key = tuple(sorted(options.items()))
        grid = self._signed_distances.get(key)
        if grid is None:
            grid = compute_signed_distance(
                self.vertices,
                self.triangles,
                self.name,
                is_closed=self.is_closed,
                cache_dir=cache_dir,
                **options,
            )
            self._signed_distances[key] = grid
        return grid

    def copy(self, vertices: Any = None, indices: Any = None, recompute_inertia: bool = False) -> "Mesh":
        """Return a new mesh with the same content, or with other vertices or triangles.

        Args:
            vertices: Vertex positions [m], shape [vertex, 3]; those of this mesh if None.
            indices: Three vertex indices per triangle; those of this mesh if None. Colours and textures of
                triangles are kept if there are as many.
            recompute_inertia: Changes nothing: mass properties are always those of the triangles.

        Raises:
            ValueError: As the constructor.
        """
        has_skin = indices is None or np.size(indices) == len(self.indices)
        other = Mesh(
            self.vertices if vertices is None else vertices,
            self.indices if indices is None else indices,
            compute_inertia=self.compute_inertia,
            is_solid=self.is_solid,
            color=self.color,
            name=self.name,
            skin=self.skin if has_skin else None,
            normals=self.normals if vertices is None else None,
            uvs=self.uvs if vertices is None else None,
            maxhullvert=self.maxhullvert,
        )
        other.is_convex_hull = self.is_convex_hull and vertices is None and indices is None
        other.signed_distance_options = dict(self.signed_distance_options)
        return other

    def scaled(self, scale: float | Sequence[float]) -> "Mesh":
        """Return this mesh scaled by one factor, or one per axis (negative ones mirror).

        Raises:
            ValueError: If a factor is zero or not finite.
        """
        factors = _checked_scale(scale, self.name)
        triangles = self.triangles[:, ::-1] if factors.prod() < 0.0 else self.triangles
        scaled = Mesh(
            self.vertices * factors,
            triangles,
            compute_inertia=self.compute_inertia,
            is_solid=self.is_solid,
            color=self.color,
            name=self.name,
            skin=_mirrored(self.skin) if factors.prod() < 0.0 else self.skin,
            maxhullvert=self.maxhullvert,
        )
        scaled.is_convex_hull = self.is_convex_hull
        # Lengths would have to be scaled too, by factors that may differ.
        scaled.signed_distance_options = {
            name: value for name, value in self.signed_distance_options.items() if name == "max_resolution"
        }
        return scaled

    @classmethod
    def load(
        cls,
        path: str | Path,
        scale: float | Sequence[float] = 1.0,
        *,
        compute_inertia: bool = True,
        is_solid: bool = True,
        apply_up_axis: bool = False,
    ) -> "Mesh":
        """Return the triangles of a file (STL, OBJ, DAE, PLY, GLB: what trimesh reads) as one mesh.

        The parts of a scene are placed by its scene graph and joined. Lengths of a DAE file are converted to
        metres by its `<unit>`; other formats carry no unit and are taken as metres. The `<up_axis>` of a DAE
        file is ignored unless `apply_up_axis` is set, as ROS tools do and as robot descriptions are authored.
        A file that has not changed gives the same mesh again, with its hulls, for as long as that is in use.

        Args:
            path: The file.
            scale: Factor on all lengths, or one per axis.
            compute_inertia: As for the constructor.
            is_solid: As for the constructor.
            apply_up_axis: Whether a DAE file with another up axis than z is rotated upright.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file cannot be read or holds no triangles.
        """
        from pluriverse.geometry.mesh_file import load_triangles

        key = (cls, str(path), *_file_state(path), apply_up_axis, compute_inertia, is_solid)
        mesh = _LOADED.get(key)
        if mesh is None:
            vertices, triangles, color, skin = load_triangles(Path(path), apply_up_axis=apply_up_axis)
            mesh = cls(
                vertices,
                triangles,
                compute_inertia=compute_inertia,
                is_solid=is_solid,
                color=color,
                name=str(path),
                skin=skin,
            )
            _LOADED[key] = mesh
        if np.all(np.asarray(scale) == 1.0):
            return mesh
        factors = tuple(_checked_scale(scale, mesh.name).tolist())
        scaled = _LOADED.get((*key, *factors))
        if scaled is None:
            scaled = _LOADED[(*key, *factors)] = mesh.scaled(scale)
            scaled._unscaled = mesh  # which then lives as long, for other scales
        return scaled

    def __repr__(self) -> str:
        return f"Mesh({self.name!r}, {len(self.vertices)} vertices, {len(self.indices) // 3} triangles)"


_LOADED: weakref.WeakValueDictionary[tuple[Any, ...], Mesh] = weakref.WeakValueDictionary()
"""Meshes of files that are in use, so that robots of the same parts share them."""


def _second_moments(weights: np.ndarray, *points: np.ndarray) -> np.ndarray:
    """Return the sum of weight x xᵀ over the points x of each part, [part, 3] each."""
    rows = np.ascontiguousarray(np.stack(points).transpose(2, 0, 1))
    # einsum, since products of BLAS may round by the number of its threads.
    moments: np.ndarray = np.einsum("jpi,kpi->jk", rows * weights, rows)
    return moments


def _file_state(path: str | Path) -> tuple[int, int]:
    """Return the key that changes with a file: time of the last change [ns] and size, 0 without one."""
    try:
        state = os.stat(path)
    except OSError:
        return 0, 0  # reading it reports what is wrong with it
    return state.st_mtime_ns, state.st_size


def _mirrored(skin: MeshSkin | None) -> MeshSkin | None:
    """Return the skin for triangles of reversed winding."""
    if skin is None or skin.corner_uv is None:
        return skin
    return MeshSkin(
        corner_uv=skin.corner_uv[:, ::-1],
        triangle_part=skin.triangle_part,
        part_color=skin.part_color,
        part_texture=skin.part_texture,
    )


def _checked_vertices(vertices: Any, name: str) -> np.ndarray:
    array = np.array(vertices, dtype=np.float32, order="C")
    if array.ndim != 2 or array.shape[1] != 3 or len(array) < 3:
        raise ValueError(
            f"{name}: vertices have shape {array.shape}, but [vertex, 3] with 3 or more vertices is needed."
        )
    bad = ~np.isfinite(array).all(axis=1)
    if bad.any():
        index = int(bad.argmax())
        raise ValueError(
            f"{name}: vertex {index} is {array[index].tolist()}; all {int(bad.sum())} vertices that are not "
            "finite must be removed or repaired."
        )
    array.flags.writeable = False
    return array


def _checked_indices(indices: Any, vertex_count: int, name: str) -> np.ndarray:
    array = np.array(indices)
    if array.size == 0:
        raise ValueError(f"{name}: there are no triangles.")
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name}: indices have type {array.dtype}, but integers are needed.")
    if (array.ndim == 2 and array.shape[1] != 3) or array.ndim not in (1, 2) or array.size % 3:
        raise ValueError(
            f"{name}: indices have shape {array.shape}, but three indices per triangle are needed."
        )
    array = array.reshape(-1)
    bad = (array < 0) | (array >= vertex_count)
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(
            f"{name}: triangle {at // 3} uses vertex {int(array[at])}, but there are {vertex_count} vertices "
            f"(0 to {vertex_count - 1})."
        )
    array = np.ascontiguousarray(array, dtype=np.int32)
    array.flags.writeable = False
    return array


def _checked_hull_limit(limit: int | None, name: str) -> int:
    if limit is None:
        return MESH_HULL_VERTEX_COUNT
    if isinstance(limit, bool) or not isinstance(limit, int | np.integer) or limit < HULL_VERTEX_COUNT_MIN:
        raise ValueError(
            f"mesh '{name}': maxhullvert is {limit!r}, but must be an int, {HULL_VERTEX_COUNT_MIN} or more."
        )
    return int(limit)


def _checked_scale(scale: float | Sequence[float], name: str) -> np.ndarray:
    factors = np.asarray(scale, dtype=np.float64)
    if factors.shape not in ((), (1,), (3,)):
        raise ValueError(f"{name}: scale is {scale}, but one factor or one per axis (3) is needed.")
    if not np.all(np.isfinite(factors) & (factors != 0.0)):
        raise ValueError(f"{name}: scale is {scale}, but every factor must be finite and other than 0.")
    return np.broadcast_to(factors, (3,))
