"""Triangle meshes on the device: a tree of boxes, and what is next to what.

Equal vertices are merged and triangles without area left out. Warp's mesh answers which triangles are near a
box and which point of the surface is closest, with the winding number as the sign of the distance. Closed
meshes have a signed distance grid besides, which tells at little cost what is far from the surface, and on
which side.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.collision.height_field_data import FLAT_EDGE
from pluriverse.collision.segment import closest_on_edge
from pluriverse.geometry import Heightfield, Mesh, SignedDistance
from pluriverse.geometry.signed_distance_grid import SignedDistanceData, make_distance_data
from pluriverse.geometry.vertex_merge import merge_vertices
from pluriverse.launch import launch_kernel

# Twice the area of a triangle, relative to its longest edge squared, below which it has none. float32
# vertices give slivers heights of 1e-7 of their edges.
DEGENERATE = 1.0e-6
# Distance, relative to the mesh, below which a boundary edge lies on another triangle: a seam, not a
# boundary.
SEAM = 1.0e-5
# Triangles looked for at a point of a seam: those on either side of a coarser edge, and two more at a corner.
SEAM_TRIANGLE_COUNT = 4

# Relative difference of the factors of a scale up to which it is the same along all axes.
UNIFORM = wp.constant(1.0e-6)

OPEN = wp.constant(0)
"""A sheet: both sides are fronts."""
CLOSED = wp.constant(1)
"""The boundary of a solid."""
GROUND = wp.constant(2)
"""The top of a solid that has no end below."""


@wp.struct
class MeshData:
    """All surfaces of a model, unscaled. Vertices and triangles are numbered through."""

    mesh_surface: wp.array[int]
    """Surface of an entry of `Model.meshes`, -1 for none, shape [mesh]."""
    id: wp.array[wp.uint64]
    """Warp mesh, shape [surface]."""
    kind: wp.array[int]
    """`OPEN`, `CLOSED` or `GROUND`, shape [surface]."""
    first_triangle: wp.array[int]
    """First triangle of each surface, shape [surface + 1]."""
    first_vertex: wp.array[int]
    """First vertex of each surface, shape [surface + 1]."""
    vertex: wp.array[wp.vec3]
    """Position [m], shape [vertex]."""
    triangle: wp.array[wp.vec3i]
    """Vertices, counterclockwise seen from outside of a solid, shape [triangle]."""
    sharp: wp.array[wp.uint8]
    """Bits 0 to 2: edges that are convex (from either side of a sheet) or at a boundary, shape [triangle]."""
    opposite_start: wp.array[int]
    """First vertex beyond each edge in `opposite`, shape [3 * triangle + 1]."""
    opposite: wp.array[int]
    """Vertices of other triangles at an edge, shape [opposite]."""
    ring_start: wp.array[int]
    """First neighbour of each vertex in `ring`, shape [vertex + 1]."""
    ring: wp.array[int]
    """Vertices at the other end of an edge, shape [ring]."""
    edge_normal: wp.array[wp.vec3]
    """Mean normal of the two triangles at an edge, shape [3 * triangle]."""
    edge_spread: wp.array[float]
    """Angle [rad] by which the normals of those triangles are off their mean; pi where there are not two,
    shape [3 * triangle]."""
    owned: wp.array[wp.uint8]
    """Bits 0 to 2: sharp edges that no earlier triangle has; 3 to 5: corners at sharp edges likewise, shape
    [triangle]."""
    first_hull_point: wp.array[int]
    """First vertex of the convex hull of each surface in `hull_point`, shape [surface + 1]."""
    hull_point: wp.array[int]
    """Vertices on the convex hull, shape [hull point]."""
    center: wp.array[wp.vec3]
    """Mean of the vertices [m], shape [surface]."""
    grid: wp.array[int]
    """Signed distance grid of each surface, -1 for none, shape [surface]."""
    distance: SignedDistanceData
    """The grids."""


@wp.func
def closest_triangle_point(a: wp.vec3, b: wp.vec3, c: wp.vec3, point: wp.vec3) -> wp.vec3:
    """Return the point of a triangle closest to a point."""
    cross = wp.cross(b - a, c - a)
    area = wp.length_sq(cross)
    v = wp.dot(wp.cross(point - a, c - a), cross) / area
    w = wp.dot(wp.cross(b - a, point - a), cross) / area
    result = a + v * (b - a) + w * (c - a)
    if v < 0.0 or w < 0.0 or v + w > 1.0:
        result = point + closest_on_edge(a - point, b - point)
        other = point + closest_on_edge(b - point, c - point)
        if wp.length_sq(other - point) < wp.length_sq(result - point):
            result = other
        other = point + closest_on_edge(c - point, a - point)
        if wp.length_sq(other - point) < wp.length_sq(result - point):
            result = other
    return result


@wp.kernel(enable_backward=False, module="pluriverse.collision.mesh_seams")
def find_seam(
    mesh: wp.uint64,
    point: wp.array[wp.vec3],  # [sample] m, on boundary edges
    own: wp.array[int],  # [sample] triangle of the edge
    tolerance: float,  # m
    # out
    found: wp.array2d[int],  # [sample, SEAM_TRIANGLE_COUNT]
):
    """List the other triangles that a point of a boundary edge lies on."""
    sample = wp.tid()
    place = point[sample]
    ball = wp.vec3(tolerance, tolerance, tolerance)
    query = wp.mesh_query_aabb(mesh, place - ball, place + ball)
    face = int(0)
    count = int(0)
    while wp.mesh_query_next(query, face):
        if face != own[sample] and count < found.shape[1]:
            a = wp.mesh_eval_position(mesh, face, 1.0, 0.0)
            b = wp.mesh_eval_position(mesh, face, 0.0, 1.0)
            c = wp.mesh_eval_position(mesh, face, 0.0, 0.0)
            if wp.length(place - closest_triangle_point(a, b, c, place)) < tolerance:
                found[sample, count] = face
                count += 1


class DegenerateMeshError(ValueError):
    """No triangle of a mesh has an area."""


class MeshSet:
    """The surfaces of a model on a device; keeps Warp's meshes alive.

    Args:
        meshes: Meshes and height fields of the model.
        sources: Which of them are needed.
        prepared: Which of them may be needed later; those without area are left out.
        device: Where the arrays go.
        with_grids: Whether closed meshes have signed distance grids.

    Raises:
        ValueError: If all triangles of a mesh are degenerate.
    """

    def __init__(
        self,
        meshes: Sequence[Any],
        sources: Sequence[int],
        prepared: Sequence[int],
        device: Any,
        *,
        with_grids: bool = False,
    ):
        surfaces = [_Surface(meshes[index], device) for index in sources]
        sources = list(sources)
        for index in prepared:
            try:
                surfaces.append(_Surface(meshes[index], device))
            except DegenerateMeshError:
                continue  # only looked at, or refused when a pipeline is made for shapes that use it
            sources.append(index)
        self.sources = sources
        self.data = MeshData()
        mesh_surface = np.full(max(len(meshes), 1), -1)
        mesh_surface[list(sources)] = np.arange(len(surfaces))
        first_vertex = _starts([len(surface.vertices) for surface in surfaces])
        first_triangle = _starts([len(surface.triangles) for surface in surfaces])
        self._meshes = [surface.warp_mesh for surface in surfaces]
        integers = {
            "mesh_surface": mesh_surface,
            "kind": [surface.kind for surface in surfaces],
            "first_triangle": first_triangle,
            "first_vertex": first_vertex,
            "first_hull_point": _starts([len(surface.hull_points) for surface in surfaces]),
            "opposite_start": _joined_starts([surface.opposite_start for surface in surfaces]),
            "ring_start": _joined_starts([surface.ring_start for surface in surfaces]),
        }
        for name in ("opposite", "ring", "hull_points"):
            shifted = [getattr(s, name) + base for s, base in zip(surfaces, first_vertex, strict=False)]
            integers[name.removesuffix("s") if name != "ring" else name] = np.concatenate([*shifted, []])
        for name, values in integers.items():
            setattr(self.data, name, wp.array(np.asarray(values, dtype=np.int32), dtype=int, device=device))
        ids = np.array([mesh.id for mesh in self._meshes], dtype=np.uint64)
        self.data.id = wp.array(ids, dtype=wp.uint64, device=device)
        vertices = np.concatenate([*(surface.vertices for surface in surfaces), np.zeros((0, 3))])
        self.data.vertex = wp.array(vertices.astype(np.float32), dtype=wp.vec3, device=device)
        triangles = [s.triangles + base for s, base in zip(surfaces, first_vertex, strict=False)]
        triangles = np.concatenate([*triangles, np.zeros((0, 3))]).astype(np.int32)
        self.data.triangle = wp.array(triangles, dtype=wp.vec3i, device=device)
        for name in ("sharp", "owned"):
            bits = np.concatenate([*(getattr(surface, name) for surface in surfaces), np.zeros(0)])
            setattr(self.data, name, wp.array(bits.astype(np.uint8), dtype=wp.uint8, device=device))
        normals = np.concatenate([*(surface.edge_normals for surface in surfaces), np.zeros((0, 3))])
        self.data.edge_normal = wp.array(normals.astype(np.float32), dtype=wp.vec3, device=device)
        spreads = np.concatenate([*(surface.edge_spreads for surface in surfaces), np.zeros(0)])
        self.data.edge_spread = wp.array(spreads.astype(np.float32), dtype=float, device=device)
        centers = np.array([surface.vertices.mean(axis=0) for surface in surfaces]).reshape(-1, 3)
        self.data.center = wp.array(centers.astype(np.float32), dtype=wp.vec3, device=device)
        grids, of_surface = [], np.full(len(surfaces), -1)
        for surface, source in zip(range(len(surfaces)), sources, strict=True):
            if with_grids and surfaces[surface].kind == int(CLOSED):
                of_surface[surface] = len(grids)
                grids.append(surfaces[surface].signed_distance(meshes[source]))
        self.data.grid = wp.array(of_surface.astype(np.int32), dtype=int, device=device)
        self.data.distance = make_distance_data(grids, device)


class _Surface:
    """One mesh or height field, its degenerate triangles removed, with the neighbours of its parts."""

    def __init__(self, mesh: Any, device: Any):
        self._device = device
        vertices, merged = merge_vertices(np.asarray(mesh.vertices))
        triangles = merged[np.asarray(mesh.triangles)]
        points = vertices.astype(np.float64)
        a, b, c = points[triangles.T]
        longest = np.max([((p - q) ** 2).sum(axis=1) for p, q in ((a, b), (b, c), (c, a))], axis=0)
        normals = np.cross(b - a, c - a)
        areas = np.linalg.norm(normals, axis=1)
        has_area = areas > DEGENERATE * longest
        if not has_area.any():
            raise DegenerateMeshError(
                f"{mesh.name}: none of its {len(triangles)} triangles has an area, so nothing can touch it. "
                "Repair the mesh, or keep it for display only."
            )
        self.vertices = vertices
        self.triangles = triangles[has_area]
        self.kind = int(OPEN)
        if isinstance(mesh, Heightfield):
            self.kind = int(GROUND)
        elif mesh.is_closed or _is_closed(self.triangles, len(vertices)) or _is_asked_to_be_solid(mesh):
            self.kind = int(CLOSED)
            if np.einsum("ij,ij->i", a, np.cross(b, c)).sum() < 0.0:
                self.triangles, normals = self.triangles[:, ::-1], -normals
        self._normals = normals[has_area] / areas[has_area][:, None]
        self.warp_mesh = wp.Mesh(
            points=wp.array(vertices.astype(np.float32), dtype=wp.vec3, device=device),
            indices=wp.array(self.triangles.reshape(-1).astype(np.int32), dtype=int, device=device),
            support_winding_number=self.kind == int(CLOSED),
        )
        self._find_neighbors(points)
        self._find_sharp_edges(points)
        self.hull_points = _hull_points(points, self.triangles)

    def signed_distance(self, mesh: Mesh) -> SignedDistance:
        """Return the signed distance grid of the surface, a closed one."""
        if mesh.is_closed == _is_closed(self.triangles, len(self.vertices)):
            return mesh.signed_distance()
        # Without its degenerate triangles the surface is closed, but not as it is stored.
        cleaned = Mesh(self.vertices, self.triangles, name=mesh.name)
        cleaned = cleaned.with_signed_distance(**mesh.signed_distance_options)
        return cleaned.signed_distance()

    def _find_neighbors(self, points: np.ndarray) -> None:
        """List the vertices beyond every edge, and those around every vertex."""
        triangles, count = self.triangles, len(points)
        first = triangles.reshape(-1)
        last = triangles[:, [1, 2, 0]].reshape(-1)
        third = triangles[:, [2, 0, 1]].reshape(-1)
        key = np.minimum(first, last) * np.int64(count) + np.maximum(first, last)
        _, edge = np.unique(key, return_inverse=True)
        edge = edge.reshape(-1)
        order = np.argsort(edge, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(edge))])
        shared = np.diff(start)[edge]
        self._edge_of, self._shared = edge, shared
        # The others at an edge: all of its group but the triangle itself.
        rows = np.repeat(np.arange(len(edge)), shared)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(shared) - shared, shared)
        other = order[start[edge[rows]] + place]
        keep = other != rows
        rows, beyond = rows[keep], third[other[keep]]
        seam_rows, seam_beyond = self._seams(points, np.flatnonzero(shared == 1))
        rows, beyond = np.concatenate([rows, seam_rows]), np.concatenate([beyond, seam_beyond])
        self.opposite_start, self.opposite = _ragged(rows, beyond, len(edge))
        both = np.unique(np.concatenate([first * np.int64(count) + last, last * np.int64(count) + first]))
        self.ring_start, self.ring = _ragged(both // count, both % count, count)

    def _seams(self, points: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return boundary edges that lie on other triangles (of other subdivision), and their vertices."""
        if not len(rows):
            return rows, rows
        first = points[self.triangles.reshape(-1)[rows]]
        last = points[self.triangles[:, [1, 2, 0]].reshape(-1)[rows]]
        samples = np.concatenate([first + t * (last - first) for t in (0.25, 0.5, 0.75)])
        found = wp.full((len(samples), SEAM_TRIANGLE_COUNT), -1, dtype=int, device=self._device)
        launch_kernel(
            find_seam,
            dim=len(samples),
            inputs=[
                self.warp_mesh.id,
                wp.array(samples.astype(np.float32), dtype=wp.vec3, device=self._device),
                wp.array(np.tile(rows // 3, 3).astype(np.int32), dtype=int, device=self._device),
                SEAM * float(np.ptp(points, axis=0).max()),
            ],
            outputs=[found],
            device=self._device,
        )
        sample, place = np.nonzero(found.numpy() >= 0)
        beyond = self.triangles[found.numpy()[sample, place]]
        return np.repeat(np.tile(rows, 3)[sample], 3), beyond.reshape(-1)

    def _find_sharp_edges(self, points: np.ndarray) -> None:
        """Mark the edges at which a shape can touch beside the faces."""
        count = len(self.triangles) * 3
        rows = np.repeat(np.arange(count), np.diff(self.opposite_start))
        offset = points[self.opposite] - points[self.triangles.reshape(-1)[rows]]
        length = np.maximum(np.linalg.norm(offset, axis=1), np.finfo(float).tiny)
        sine = np.einsum("ij,ij->i", self._normals[rows // 3], offset) / length
        if self.kind == int(OPEN):
            sine = -np.abs(sine)
        is_sharp = np.diff(self.opposite_start) == 0
        is_sharp[rows[sine < -FLAT_EDGE]] = True
        is_sharp |= self._shared > 2
        bits = is_sharp.reshape(-1, 3).astype(np.uint8) << np.arange(3, dtype=np.uint8)
        self.sharp = bits.sum(axis=1).astype(np.uint8)
        self._find_edge_normals()
        sharp_rows = np.flatnonzero(is_sharp)
        owned = np.zeros(2 * count, dtype=np.uint8)
        _, once = np.unique(self._edge_of[sharp_rows], return_index=True)
        owned[6 * (sharp_rows[once] // 3) + sharp_rows[once] % 3] = 1
        corners = self.triangles.reshape(-1)
        ends = np.union1d(corners[sharp_rows], self.triangles[:, [1, 2, 0]].reshape(-1)[sharp_rows])
        at_end = np.flatnonzero(np.isin(corners, ends))
        _, once = np.unique(corners[at_end], return_index=True)
        owned[6 * (at_end[once] // 3) + 3 + at_end[once] % 3] = 1
        bits = owned.reshape(-1, 6) << np.arange(6, dtype=np.uint8)
        self.owned = bits.sum(axis=1).astype(np.uint8)

    def _find_edge_normals(self) -> None:
        """Compute the mean normal at every edge, and how far from it those of its triangles are."""
        normals = np.repeat(self._normals, 3, axis=0)
        total = np.zeros((self._edge_of.max() + 1, 3))
        np.add.at(total, self._edge_of, normals)
        mean = total[self._edge_of]
        length = np.linalg.norm(mean, axis=1)
        # Folded back onto each other, two triangles have no mean normal.
        is_plain = (self._shared == 2) & (length > DEGENERATE)
        self.edge_normals = np.where(is_plain[:, None], mean / np.maximum(length, DEGENERATE)[:, None], 0.0)
        cosine = np.einsum("ij,ij->i", normals, self.edge_normals)
        self.edge_spreads = np.where(is_plain, np.arccos(np.clip(cosine, -1.0, 1.0)), np.pi)


def has_inside(mesh: Mesh) -> bool:
    """Return whether a mesh is a solid, with a signed distance grid, and not a sheet."""
    if mesh.is_closed:
        return True
    try:
        return _Surface(mesh, "cpu").kind == int(CLOSED)
    except DegenerateMeshError:
        return False


def _is_asked_to_be_solid(mesh: Mesh) -> bool:
    """Return whether a mesh with holes is a solid all the same, as options of its signed distance ask.

    Raises:
        ValueError: If the mesh encloses nothing.
    """
    if not mesh.signed_distance_options:
        return False
    mesh.signed_distance()
    return True


def _is_closed(triangles: np.ndarray, vertex_count: int) -> bool:
    """Return whether the triangles run along every edge as often one way as the other."""
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    key = edges.min(axis=1) * np.int64(vertex_count) + edges.max(axis=1)
    _, edge = np.unique(key, return_inverse=True)
    return not np.any(np.bincount(edge.reshape(-1), weights=np.sign(edges[:, 1] - edges[:, 0])))


def _hull_points(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Return the vertices that a plane can touch: those of the convex hull, all if it is flat."""
    from scipy.spatial import ConvexHull, QhullError

    used = np.unique(triangles)
    try:
        return np.sort(used[ConvexHull(points[used]).vertices])
    except QhullError:
        return used


def _starts(counts: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _joined_starts(starts: list[np.ndarray]) -> np.ndarray:
    """Return the starts of ragged rows of several tables put one after the other."""
    base, joined = 0, [np.zeros(1, dtype=np.int64)]
    for start in starts:
        joined.append(start[1:] + base)
        base += int(start[-1])
    return np.concatenate(joined)


def _ragged(rows: np.ndarray, values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return starts [count + 1] and values sorted by row."""
    order = np.lexsort((values, rows))
    start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
    return start, values[order]


@wp.func
def surface_point(data: MeshData, vertex: int, scale: wp.vec3) -> wp.vec3:
    """Return a vertex [m], frame of the shape."""
    return wp.cw_mul(scale, data.vertex[vertex])


@wp.func
def mirror_sign(scale: wp.vec3) -> float:
    """Return -1 for a scale that mirrors, else 1."""
    return wp.where(scale[0] * scale[1] * scale[2] < 0.0, -1.0, 1.0)


@wp.func
def edge_outward(data: MeshData, row: int, scale: wp.vec3) -> wp.vec3:
    """Return the mean normal of the triangles at an edge of a mesh scaled alike along all axes."""
    return wp.cw_mul(data.edge_normal[row], wp.vec3(wp.sign(scale[0]), wp.sign(scale[1]), wp.sign(scale[2])))


@wp.func
def has_angles(data: MeshData, surface: int, scale: wp.vec3) -> bool:
    """Return whether a solid has the angles with which it is stored, being scaled alike along all axes."""
    low = wp.min(wp.abs(scale[0]), wp.min(wp.abs(scale[1]), wp.abs(scale[2])))
    high = wp.max(wp.abs(scale[0]), wp.max(wp.abs(scale[1]), wp.abs(scale[2])))
    return data.kind[surface] != OPEN and high <= low * (1.0 + UNIFORM)


@wp.func
def is_edge_free(
    data: MeshData,
    row: int,
    scale: wp.vec3,
    position: wp.vec3,
    normal: wp.vec3,
    point: wp.vec3,
    slope: float,
) -> bool:
    """Return whether all beyond an edge lies behind the plane through a point across a normal, up to a slope.

    Args:
        data: The surfaces.
        row: Three times the triangle plus its edge.
        scale: Factors on the surface.
        position: Origin of the points in the frame of the surface [m].
        normal: Unit normal.
        point: Point on the edge [m].
        slope: Sine by which something may rise above the plane.
    """
    result = bool(True)
    for index in range(data.opposite_start[row], data.opposite_start[row + 1]):
        offset = (surface_point(data, data.opposite[index], scale) - position) - point
        result = result and wp.dot(normal, offset) <= slope * wp.length(offset)
    return result


@wp.func
def is_vertex_free(
    data: MeshData,
    vertex: int,
    scale: wp.vec3,
    position: wp.vec3,
    normal: wp.vec3,
    point: wp.vec3,
    slope: float,
) -> bool:
    """Return whether all around a vertex lies behind the plane through it; arguments as in `is_edge_free`."""
    result = bool(True)
    for index in range(data.ring_start[vertex], data.ring_start[vertex + 1]):
        offset = (surface_point(data, data.ring[index], scale) - position) - point
        result = result and wp.dot(normal, offset) <= slope * wp.length(offset)
    return result
