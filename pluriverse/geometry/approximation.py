"""Simpler geometry in place of a mesh: convex parts, fewer triangles, a box or a sphere around it.

Slow results are cached on disk, under a digest of the mesh, the method, its options and the version of the
library that computes it.
"""

import contextlib
import hashlib
import importlib.metadata
import json
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.config import verbosity
from pluriverse.geometry.mesh import Mesh
from pluriverse.geometry.mesh_cache import cache_folder, read_arrays, write_arrays
from pluriverse.geometry.surface_edges import is_closed_surface
from pluriverse.geometry.vertex_merge import merge_vertices
from pluriverse.warnings import MeshApproximationWarning

# Version of the files in the cache; another one is not read.
CACHE_FORMAT = 1
# Time [s] after which a decomposition says that it is under way.
ANNOUNCED_TIME = 2.0
# Volume of the parts beyond that of the mesh, relative, from which on a warning is given.
EXCESS_WARNED = 0.25
# Options of CoACD where ours are not its own, with which a mug takes minutes. Chosen by time, number
# of parts and distance to the surface, on a mug, a bowl and parts of robots (docs/collision.md).
COACD_OPTIONS = {"resolution": 1000, "mcts_nodes": 7, "mcts_iterations": 20, "mcts_max_depth": 1}
# Longest side [m] of a mesh while it is simplified, and how fast the tolerance grows in each of the passes,
# which follow one another as long as there are too many triangles. A pass stops at a squared distance of 1e-9
# * 103**growth, which is 0.3, 3 and 30 % of this side, and takes away first what costs least. So thin walls
# stay as long as anything else can go. A growth of 7, the default of the library, eats them.
SIMPLIFIED_SIDE = 0.1
SIMPLIFIED_GROWTHS = (1, 1, 2, 2, 3)
# The last pass does not count if the volume then differs by more than this, relative.
SIMPLIFIED_VOLUME_TOLERANCE = 0.05
# What fast-simplification takes away if nothing is said, and triangles left, over those that were asked for,
# from which on a warning is given.
SIMPLIFIED_REDUCTION = 0.5
SIMPLIFIED_REST_WARNED = 1.25
# Triangles to which a mesh is simplified before CoACD cuts it, and the change of volume that this may make,
# relative. Only the first of the passes above is made: rather more triangles than other walls.
COACD_TRIANGLE_COUNT = 2000
COACD_VOLUME_TOLERANCE = 0.01
# Package that computes a method.
_PACKAGES = {"coacd": "coacd", "vhacd": "vhacdx", "quadratic": "fast-simplification"}
# Options of fast-simplification with which it is called once, as it is.
_LIBRARY_OPTIONS = {"agg", "lossless"}


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
            ...), by default `COACD_OPTIONS`, and `triangle_count`, to which closed meshes are simplified
            before they are cut (2000 by default, 0 for never); those of `vhacdx.compute_vhacd`; or those of
            `fast_simplification.simplify` (`target_reduction`, 0.5 by default). With its `agg` or `lossless`
            that library has its way; otherwise triangles stay whose loss would ruin thin walls.

    Decompositions that take longer than 2 s say so on stderr. A `MeshApproximationWarning` says if the parts
    of a closed mesh take up more than 1.25 times its volume, or if a simplified mesh has more than 1.25 times
    the triangles that were asked for.

    Raises:
        ValueError: If there is no such method, or it finds nothing.
        ImportError: If the package that computes it is not installed.
        TypeError: If there is no such option, or `triangle_count` is not a number.
    """
    if method in ("convex_hull", "components"):
        if options:
            raise TypeError(f"approximate_mesh: {method} has no options, but {sorted(options)} were given.")
        return [mesh.convex_hull()] if method == "convex_hull" else _component_hulls(mesh)
    if method not in _PACKAGES:
        names = ", ".join(map(repr, ("convex_hull", "components", *_PACKAGES)))
        raise ValueError(f"approximate_mesh: method is {method!r}, but it must be one of {names}.")
    version = _version_of(method)
    if method == "coacd":
        options = {**COACD_OPTIONS, "triangle_count": COACD_TRIANGLE_COUNT, **options}
    path = cache_folder(cache_dir) / f"{_cache_key(mesh, method, options, version)}.npz"
    parts = _read_parts(path)
    if parts is None:
        compute = {"coacd": _coacd_parts, "vhacd": _vhacd_parts, "quadratic": _simplified}[method]
        with _announced(mesh, method):
            parts = compute(mesh, options)
        if not parts:
            raise ValueError(f"{mesh.name}: {method} found no part. Use convex_hull or bounding_box.")
        _write_parts(path, parts)
    if method == "quadratic":
        _warn_of_rest(mesh, options, parts)
        return [
            Mesh(vertices, faces, is_solid=mesh.is_solid, color=mesh.color, name=f"simplified {mesh.name}")
            for vertices, faces in parts
        ]
    hulls = []
    for index, (vertices, faces) in enumerate(parts):
        part = Mesh(vertices, faces, color=mesh.color, name=f"part {index} of {mesh.name}")
        hulls.append(part.convex_hull())
    _warn_of_excess(mesh, method, hulls)
    return hulls


def excess_volume(mesh: Mesh, parts: Sequence[Mesh]) -> float | None:
    """Return how much more volume the parts of a mesh take up than the mesh, relative to the mesh.

    Where parts overlap, their volume counts for each. None for meshes that enclose no volume.
    """
    if not mesh.is_closed:
        return None
    whole = abs(_volume(mesh.vertices, mesh.triangles))
    total = sum(abs(_volume(part.vertices, part.triangles)) for part in parts)
    return total / whole - 1.0 if whole > 0.0 else None


def _volume(vertices: np.ndarray, triangles: np.ndarray) -> float:
    """Return the volume that a closed surface encloses [m³], negative if it is inside out."""
    points = np.asarray(vertices, dtype=np.float64)
    a, b, c = (points - points.mean(axis=0))[np.asarray(triangles).T]
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6.0


def _warn_of_excess(mesh: Mesh, method: str, parts: Sequence[Mesh]) -> None:
    excess = excess_volume(mesh, parts)
    if excess is not None and excess > EXCESS_WARNED:
        finer = {
            "coacd": "a lower threshold (0.05 by default), or 'vhacd'",
            "vhacd": "a higher maxConvexHulls or resolution",
        }.get(method, "'vhacd' or 'coacd'")
        warnings.warn(
            f"{mesh.name}: the parts of {method} ({len(parts)} in all) take up {100 * excess:.0f} % more "
            f"volume than the mesh, so contacts come too early there. For closer parts: {finer}.",
            MeshApproximationWarning,
            stacklevel=3,
        )


def _warn_of_rest(
    mesh: Mesh, options: dict[str, Any], parts: Sequence[tuple[np.ndarray, np.ndarray]]
) -> None:
    wanted = _wanted_count(len(mesh.triangles), options)
    left = sum(len(faces) for _, faces in parts)
    if left > SIMPLIFIED_REST_WARNED * wanted and not _LIBRARY_OPTIONS & options.keys():
        warnings.warn(
            f"{mesh.name}: {left} of {len(mesh.triangles)} triangles are left where {wanted} were asked for, "
            "since with fewer the mesh would have another shape. agg=7 may leave fewer, whatever becomes of "
            "thin walls.",
            MeshApproximationWarning,
            stacklevel=3,
        )


@contextlib.contextmanager
def _announced(mesh: Mesh, method: str) -> Iterator[None]:
    """Say on stderr what takes long, while it is under way, and how long it took."""
    if verbosity() is False:
        yield
        return
    what = f"{method}: {mesh.name} ({len(mesh.triangles)} triangles)"
    faster = {"coacd": " A higher threshold (0.05 by default) takes less."}.get(method, "")

    def announce() -> None:
        print(
            f"{what} is under way; the result is kept for the next time.{faster}", file=sys.stderr, flush=True
        )

    timer = threading.Timer(ANNOUNCED_TIME, announce)
    timer.daemon = True
    began = time.monotonic()
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if (elapsed := time.monotonic() - began) > ANNOUNCED_TIME:
        print(f"{what} took {elapsed:.0f} s.", file=sys.stderr, flush=True)


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

    options = dict(options)
    vertices, triangles = _simplified_for_cutting(mesh, options.pop("triangle_count"))
    coacd.set_log_level("error")
    parts = coacd.run_coacd(coacd.Mesh(vertices.astype(np.float64), triangles), **options)
    return [(np.asarray(vertices), np.asarray(faces)) for vertices, faces in parts]


def _simplified_for_cutting(mesh: Mesh, triangle_count: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices and triangles of about the same surface, at best `triangle_count` of them.

    It is the mesh itself, with equal vertices merged, if that has no more, if fast-simplification is not
    installed, or if the result would be open or of another volume.
    """
    if (
        isinstance(triangle_count, bool)
        or not isinstance(triangle_count, int | np.integer)
        or triangle_count < 0
    ):
        raise TypeError(
            f"approximate_mesh: triangle_count is {triangle_count!r}, but it must be a whole number: the "
            "triangles to which a mesh is simplified before it is cut, or 0 to cut it as it is."
        )
    vertices, merged = merge_vertices(mesh.vertices)
    triangles = merged[mesh.triangles].astype(np.int32)
    if (
        triangle_count == 0
        or len(triangles) <= triangle_count
        or not is_closed_surface(triangles, len(vertices))
    ):
        return vertices, triangles
    try:
        import fast_simplification  # noqa: F401
    except ImportError:
        return vertices, triangles
    wanted = {"target_count": int(triangle_count)}
    return _simplify(vertices, triangles, wanted, SIMPLIFIED_GROWTHS[:1], COACD_VOLUME_TOLERANCE)


def _simplify(
    vertices: np.ndarray,
    triangles: np.ndarray,
    options: dict[str, Any],
    growths: Sequence[int],
    volume_tolerance: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices and triangles of about the same surface, if need be more than were asked for.

    A closed surface stays closed, and keeps its volume to within a relative tolerance.
    """
    import fast_simplification

    wanted = _wanted_count(len(triangles), options)
    factor = np.float32(SIMPLIFIED_SIDE / np.ptp(vertices, axis=0).max())
    points, faces = vertices * factor, triangles
    is_closed, volume = is_closed_surface(faces, len(points)), _volume(points, faces)
    for growth in growths:
        fewer_points, fewer = fast_simplification.simplify(points, faces, **options, agg=growth)
        if is_closed and not (
            is_closed_surface(fewer, len(fewer_points))
            and abs(_volume(fewer_points, fewer) - volume) <= volume_tolerance * abs(volume)
        ):
            break
        points, faces = np.asarray(fewer_points), np.asarray(fewer)
        if len(faces) <= wanted:
            break
        options = {**options, "target_reduction": None, "target_count": wanted}
    return points / factor, faces


def _wanted_count(triangle_count: int, options: dict[str, Any]) -> int:
    """Return the number of triangles that is asked for by options of fast-simplification."""
    if options.get("target_count") is not None:
        return int(options["target_count"])
    return int((1 - options.get("target_reduction", SIMPLIFIED_REDUCTION)) * triangle_count)


def _vhacd_parts(mesh: Mesh, options: dict[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    import vhacdx

    faces = np.insert(mesh.triangles, 0, 3, axis=1).reshape(-1).astype(np.uint32)
    parts = vhacdx.compute_vhacd(mesh.vertices.astype(np.float64), faces, **options)
    return [(np.asarray(v), np.asarray(f).reshape(-1, 3)) for v, f in parts]


def _simplified(mesh: Mesh, options: dict[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    import fast_simplification

    vertices, merged = merge_vertices(mesh.vertices)
    triangles = merged[mesh.triangles].astype(np.int32)
    if not {"target_reduction", "target_count"} & options.keys():
        options = {"target_reduction": SIMPLIFIED_REDUCTION, **options}
    if _LIBRARY_OPTIONS & options.keys():
        points, faces = fast_simplification.simplify(vertices, triangles, **options)
    else:
        points, faces = _simplify(
            vertices, triangles, options, SIMPLIFIED_GROWTHS, SIMPLIFIED_VOLUME_TOLERANCE
        )
    return [(np.asarray(points), np.asarray(faces))] if len(faces) else []


def _version_of(method: str) -> str:
    """Return the version of what computes a method."""
    package = _PACKAGES[method]
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(
            f"approximate_mesh: the method {method!r} needs the package {package}, which is not installed. "
            "Run 'pip install pluriverse[mesh]', or use convex_hull, bounding_box or bounding_sphere."
        ) from None
    if method == "coacd":  # cuts what fast-simplification leaves, if that is installed
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version += " " + importlib.metadata.version(_PACKAGES["quadratic"])
    if method == "quadratic":
        version += f" {SIMPLIFIED_GROWTHS} {SIMPLIFIED_VOLUME_TOLERANCE}"
    return version


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
