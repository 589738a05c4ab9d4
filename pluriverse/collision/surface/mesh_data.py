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

from pluriverse.collision.segment import closest_on_edge
from pluriverse.collision.surface.height_field_data import FLAT_EDGE
from pluriverse.collision.surface.mesh_edge_data import (
    average_edge_normals,
    mark_sharp_edges,
    measure_triangles,
)
from pluriverse.geometry import Heightfield, Mesh, SignedDistance
from pluriverse.geometry.signed_distance_grid import SignedDistanceData, make_distance_data
from pluriverse.geometry.surface_edges import find_edges, is_closed_surface, rings
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
    sample, _ = wp.tid()
    position = point[sample]
    ball = wp.vec3(tolerance, tolerance, tolerance)
    query = wp.mesh_query_aabb(mesh, position - ball, position + ball)
    face = int(0)
    count = int(0)
    while wp.mesh_query_next(query, face):
        if face != own[sample] and count < found.shape[1]:
            a = wp.mesh_eval_position(mesh, face, 1.0, 0.0)
            b = wp.mesh_eval_position(mesh, face, 0.0, 1.0)
            c = wp.mesh_eval_position(mesh, face, 0.0, 0.0)
            if wp.length(position - closest_triangle_point(a, b, c, position)) < tolerance:
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
        merged = merged.astype(np.int32)  # half the memory to go through
        triangles = merged[np.asarray(mesh.triangles)]
        points = vertices.astype(np.float64)
        normals, areas, longest = measure_triangles(points, triangles)
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
        elif self._is_closed(mesh, merged, has_area) or _is_asked_to_be_solid(mesh):
            self.kind = int(CLOSED)
            a, b, c = points[triangles.T]
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

    def _is_closed(self, mesh: Mesh, merged: np.ndarray, has_area: np.ndarray) -> bool:
        """Return whether a mesh is closed as it is stored, or without its degenerate triangles."""
        count = len(self.vertices)
        if "is_closed" not in mesh.__dict__:  # the vertices are merged here already, which takes long
            mesh.__dict__["is_closed"] = is_closed_surface(merged[mesh.triangles], count)
        return mesh.is_closed or (not has_area.all() and is_closed_surface(self.triangles, count))

    def signed_distance(self, mesh: Mesh) -> SignedDistance:
        """Return the signed distance grid of the surface, a closed one."""
        if mesh.is_closed == is_closed_surface(self.triangles, len(self.vertices)):
            return mesh.signed_distance()
        # Without its degenerate triangles the surface is closed, but not as it is stored.
        cleaned = Mesh(self.vertices, self.triangles, name=mesh.name)
        cleaned = cleaned.with_signed_distance(**mesh.signed_distance_options)
        return cleaned.signed_distance()

    def _find_neighbors(self, points: np.ndarray) -> None:
        """List the vertices beyond every edge, and those around every vertex."""
        triangles, count = self.triangles, len(points)
        third = triangles[:, [2, 0, 1]].reshape(-1)
        edges = self._edges = find_edges(triangles, count)
        self._shared = edges.share_count[edges.edge]
        # Nearly all edges have two triangles: each finds its other at once.
        one, other = edges.pairs()
        # At other edges the others are all of the group but the triangle itself.
        many = edges.order[self._shared[edges.order] > 2]
        shared = self._shared[many]
        rows = np.repeat(many, shared)
        entry = np.arange(len(rows)) - np.repeat(np.cumsum(shared) - shared, shared)
        neighbor = edges.order[edges.start[edges.edge[rows]] + entry]
        rows, beyond = rows[neighbor != rows], third[neighbor[neighbor != rows]]
        seam_rows, seam_beyond = self._seams(points, np.flatnonzero(self._shared == 1))
        rows, beyond = np.concatenate([rows, seam_rows]), np.concatenate([beyond, seam_beyond])
        counts = np.bincount(rows, minlength=len(third)) + (self._shared == 2)
        self.opposite_start = np.concatenate([[0], np.cumsum(counts)])
        self.opposite = np.empty(self.opposite_start[-1], dtype=np.int32)
        self.opposite[self.opposite_start[one]] = third[other]
        self.opposite[self.opposite_start[other]] = third[one]
        order = np.lexsort((beyond, rows))
        rows = rows[order]
        rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
        self.opposite[self.opposite_start[rows] + rank] = beyond[order]
        self.ring_start, self.ring = rings(edges, count)

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
        sample, side = np.nonzero(found.numpy() >= 0)
        beyond = self.triangles[found.numpy()[sample, side]]
        return np.repeat(np.tile(rows, 3)[sample], 3), beyond.reshape(-1)

    def _find_sharp_edges(self, points: np.ndarray) -> None:
        """Mark the edges at which a shape can touch besides its faces."""
        corners = self.triangles.reshape(-1)
        is_sharp = mark_sharp_edges(
            points,
            self.triangles,
            self._normals,
            (self.opposite_start, self.opposite),
            FLAT_EDGE,
            self.kind == int(OPEN),
        )
        is_sharp |= self._shared > 2
        bits = is_sharp.reshape(-1, 3).astype(np.uint8) << np.arange(3, dtype=np.uint8)
        self.sharp = bits.sum(axis=1).astype(np.uint8)
        self.edge_normals, self.edge_spreads = average_edge_normals(
            self._edges.pairs(), self._normals, DEGENERATE
        )
        sharp_rows = np.flatnonzero(is_sharp)
        owned = np.zeros((len(self.triangles), 6), dtype=np.uint8)
        # The first triangle of each sharp edge and of each of its ends owns it.
        once = _first_places(self._edges.edge[sharp_rows], len(self._edges.low))
        owned.reshape(-1)[6 * (sharp_rows[once] // 3) + sharp_rows[once] % 3] = 1
        is_end = np.zeros(len(points), dtype=bool)
        is_end[corners[sharp_rows]] = is_end[self.triangles[:, [1, 2, 0]].reshape(-1)[sharp_rows]] = True
        at_end = np.flatnonzero(is_end[corners])
        once = _first_places(corners[at_end], len(points))
        owned.reshape(-1)[6 * (at_end[once] // 3) + 3 + at_end[once] % 3] = 1
        self.owned = (owned << np.arange(6, dtype=np.uint8)).sum(axis=1).astype(np.uint8)


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


def _hull_points(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Return the vertices that a plane can touch: those of the convex hull, all if it is flat."""
    from scipy.spatial import ConvexHull, QhullError

    is_used = np.zeros(len(points), dtype=bool)
    is_used[triangles] = True
    used = np.flatnonzero(is_used)
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


def _first_places(values: np.ndarray, count: int) -> np.ndarray:
    """Return, for each value from 0 to `count` - 1 that occurs, where it first does."""
    first = np.full(count, -1, dtype=np.int64)
    first[values[::-1]] = np.arange(len(values))[::-1]  # of several assignments the last one counts
    return first[first >= 0]


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


@wp.func
def vertex_inward(data: MeshData, vertex: int, scale: wp.vec3, point: wp.vec3) -> wp.vec3:
    """Return the sum of the unit vectors from a vertex, at a point [m], along the edges that meet there."""
    result = wp.vec3(0.0, 0.0, 0.0)
    for index in range(data.ring_start[vertex], data.ring_start[vertex + 1]):
        result = result + wp.normalize(surface_point(data, data.ring[index], scale) - point)
    return result
