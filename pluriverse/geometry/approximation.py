"""Simpler geometry in place of a mesh: convex parts, fewer triangles, a box or a sphere around it.

Slow results are cached on disk, under a digest of the mesh, the method, its options and the version of the
library that computes it.
"""

import hashlib
import importlib.metadata
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.geometry.mesh import Mesh
from pluriverse.geometry.mesh_cache import cache_folder, read_arrays, write_arrays

# Version of the files in the cache; another one is not read.
CACHE_FORMAT = 1
# Package that computes a method.
_PACKAGES = {"coacd": "coacd", "vhacd": "vhacdx", "quadratic": "fast-simplification"}


def approximate_mesh(
    mesh: Mesh, method: str = "convex_hull", *, cache_dir: str | Path | None = None, **options: Any
) -> list[Mesh]:
    """Return the meshes that replace a mesh in collisions.

    Args:
        mesh: The mesh.
        method: `"convex_hull"`: its hull; `"components"`: the hull of each connected piece; `"coacd"` or
            `"vhacd"`: the hulls of a convex decomposition; `"quadratic"`: one mesh of fewer triangles, by
            quadric error.
        cache_dir: Folder that keeps decompositions and simplifications; None for `PLURIVERSE_MESH_CACHE`, or
            else `~/.cache/pluriverse/meshes`.
        **options: Options of the method: those of `coacd.run_coacd` (`threshold`, `max_convex_hull`, `seed`
        ...), of
            `vhacdx.compute_vhacd`, or of `fast_simplification.simplify` (`target_reduction`, 0.5 by default).

    Raises:
        ValueError: If there is no such method, or it finds nothing.
        ImportError: If the package that computes it is not installed.
        TypeError: If there is no such option.
    """
    if method in ("convex_hull", "components"):
        if options:
            raise TypeError(f"approximate_mesh: {method} has no options, but {sorted(options)} were given.")
        return [mesh.convex_hull()] if method == "convex_hull" else _component_hulls(mesh)
    if method not in _PACKAGES:
        names = ", ".join(map(repr, ("convex_hull", "components", *_PACKAGES)))
        raise ValueError(f"approximate_mesh: method is {method!r}, but it must be one of {names}.")
    version = _version_of(method)
    path = cache_folder(cache_dir) / f"{_cache_key(mesh, method, options, version)}.npz"
    parts = _read_parts(path)
    if parts is None:
        compute = {"coacd": _coacd_parts, "vhacd": _vhacd_parts, "quadratic": _simplified}[method]
        parts = compute(mesh, options)
        if not parts:
            raise ValueError(f"{mesh.name}: {method} found no part. Use convex_hull or bounding_box.")
        _write_parts(path, parts)
    if method == "quadratic":
        return [
            Mesh(vertices, faces, is_solid=mesh.is_solid, color=mesh.color, name=f"simplified {mesh.name}")
            for vertices, faces in parts
        ]
    hulls = []
    for index, (vertices, faces) in enumerate(parts):
        part = Mesh(vertices, faces, color=mesh.color, name=f"part {index} of {mesh.name}")
        hulls.append(part.convex_hull())
    return hulls


def bounding_box_of(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pose [m, xyzw] and half extents [m] of a small oriented box around points [point, 3].

    For points in a plane or on a line, each half extent is at least a thousandth of the largest one.
    """
    import trimesh
    from scipy.spatial import QhullError
    from scipy.spatial.transform import Rotation

    points = np.asarray(points, dtype=np.float64)
    lower, upper = points.min(axis=0), points.max(axis=0)
    half, rotation, centre = 0.5 * (upper - lower), Rotation.identity(), 0.5 * (lower + upper)
    if (half > 1e-6 * half.max()).all():
        try:
            to_box, extents = trimesh.bounds.oriented_bounds(points)
            if np.prod(extents) < np.prod(2.0 * half):
                rotation, half = Rotation.from_matrix(to_box[:3, :3].T), 0.5 * np.asarray(extents)
                centre = -to_box[:3, :3].T @ to_box[:3, 3]
        except QhullError:
            pass  # nearly flat: the box along the axes stays
    return np.concatenate([centre, rotation.as_quat()]), np.maximum(half, 1e-3 * half.max())


def bounding_sphere_of(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Return centre [m] and radius [m] of a small sphere around points [point, 3].

    The method is Ritter's; the sphere is at most a few percent larger than the smallest one.
    """
    points = np.asarray(points, dtype=np.float64)
    first = points[np.linalg.norm(points - points.mean(axis=0), axis=1).argmax()]
    last = points[np.linalg.norm(points - first, axis=1).argmax()]
    centre, radius = 0.5 * (first + last), 0.5 * float(np.linalg.norm(last - first))
    for _ in range(len(points)):
        distances = np.linalg.norm(points - centre, axis=1)
        far = int(distances.argmax())
        if distances[far] <= radius * (1.0 + 1e-12):
            break
        grown = 0.5 * (radius + float(distances[far]))
        centre = centre + (points[far] - centre) * (distances[far] - grown) / distances[far]
        radius = grown
    return centre, max(radius, float(np.linalg.norm(points - centre, axis=1).max()))


def _component_hulls(mesh: Mesh) -> list[Mesh]:
    """Return the hull of each connected piece of a mesh; coincident vertices count as one."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    _, merged = np.unique(np.asarray(mesh.vertices), axis=0, return_inverse=True)
    corners = merged.reshape(-1)[np.asarray(mesh.triangles)]
    ends = np.concatenate([corners[:, :2], corners[:, 1:]])
    count = int(merged.max()) + 1
    graph = coo_matrix((np.ones(len(ends)), ends.T), shape=(count, count))
    piece_of = connected_components(graph, directed=False)[1][corners[:, 0]]
    pieces = []
    for number, piece in enumerate(dict.fromkeys(piece_of.tolist())):  # in the order of the triangles
        triangles = np.asarray(mesh.triangles)[piece_of == piece]
        used, renumbered = np.unique(triangles, return_inverse=True)
        part = Mesh(
            np.asarray(mesh.vertices)[used],
            renumbered.reshape(-1, 3),
            compute_inertia=False,
            color=mesh.color,
            name=f"piece {number} of {mesh.name}",
        )
        pieces.append(part.convex_hull())
    return pieces


def _coacd_parts(mesh: Mesh, options: dict[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    import coacd

    coacd.set_log_level("error")
    parts = coacd.run_coacd(coacd.Mesh(mesh.vertices.astype(np.float64), mesh.triangles), **options)
    return [(np.asarray(vertices), np.asarray(faces)) for vertices, faces in parts]


def _vhacd_parts(mesh: Mesh, options: dict[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    import vhacdx

    faces = np.insert(mesh.triangles, 0, 3, axis=1).reshape(-1).astype(np.uint32)
    parts = vhacdx.compute_vhacd(mesh.vertices.astype(np.float64), faces, **options)
    return [(np.asarray(v), np.asarray(f).reshape(-1, 3)) for v, f in parts]


def _simplified(mesh: Mesh, options: dict[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    import fast_simplification

    from pluriverse.geometry.vertex_merge import merge_vertices

    vertices, merged = merge_vertices(mesh.vertices)
    if not {"target_reduction", "target_count"} & options.keys():
        options = {"target_reduction": 0.5, **options}
    points, faces = fast_simplification.simplify(vertices, merged[mesh.triangles].astype(np.int32), **options)
    return [(np.asarray(points), np.asarray(faces))] if len(faces) else []


def _version_of(method: str) -> str:
    package = _PACKAGES[method]
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(
            f"approximate_mesh: the method {method!r} needs the package {package}, which is not installed. "
            "Run 'pip install pluriverse[mesh]', or use convex_hull, bounding_box or bounding_sphere."
        ) from None


def _cache_key(mesh: Mesh, method: str, options: dict[str, Any], version: str) -> str:
    digest = hashlib.blake2b(mesh.vertices.tobytes(), digest_size=20)
    digest.update(mesh.indices.tobytes())
    digest.update(json.dumps([CACHE_FORMAT, method, version, options], sort_keys=True, default=repr).encode())
    return digest.hexdigest()


def _read_parts(path: Path) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """Return the meshes of a file, None if there is none or it is broken."""
    arrays = read_arrays(path)
    if arrays is None or "count" not in arrays:
        return None
    count = int(arrays["count"])
    names = [(f"vertices{k}", f"faces{k}") for k in range(count)]
    if not all(name in arrays for pair in names for name in pair):
        return None
    return [(arrays[vertices], arrays[faces]) for vertices, faces in names]


def _write_parts(path: Path, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
    """Write meshes for the next call."""
    arrays: dict[str, Any] = {"count": np.array(len(parts))}
    for index, (vertices, faces) in enumerate(parts):
        arrays[f"vertices{index}"], arrays[f"faces{index}"] = vertices, faces
    write_arrays(path, arrays, "the approximation of a mesh", compress=True)
