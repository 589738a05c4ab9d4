"""Ray scene: the arrays that rays are cast against, for kernels and for the host that makes them."""

import weakref
from typing import Any

import numpy as np
import warp as wp

from pluriverse.model import Model
from pluriverse.render.visual import SeenGeometry
from pluriverse.types import GeoType, ShapeFlags

SEEN_FLAGS = {
    SeenGeometry.VISUAL: int(ShapeFlags.VISIBLE),
    SeenGeometry.COLLISION: int(ShapeFlags.COLLIDE_SHAPES),
    SeenGeometry.ALL: int(ShapeFlags.VISIBLE | ShapeFlags.COLLIDE_SHAPES),
}
MESHED = (GeoType.MESH, GeoType.CONVEX_MESH, GeoType.HFIELD)


@wp.struct
class PlacedShape:
    """Data of a shape for rays, gathered since functions take arguments by value."""

    rotation: wp.mat33
    """Axes as columns, in the world."""
    position: wp.vec3
    """Origin [m], in the world."""
    size: wp.vec3
    """As `Model.shape_scale`."""
    kind: int
    """`GeoType`."""
    mesh: wp.uint64
    """Warp mesh, 0 for none."""


@wp.struct
class RayScene:
    """The shapes that rays are cast against.

    Shapes belong to groups: group w holds those of world w, the last group the global ones. Each group has a
    tree of boxes over its bounded shapes, a complete binary tree in one array: node n has the children 2 n
    and 2 n + 1, node 1 is the root, and the last half of the nodes are leaves of one shape each. Endless
    planes are kept outside the trees.
    """

    # model
    shape_body: wp.array[int]  # [shape]
    shape_type: wp.array[int]  # [shape]
    shape_flags: wp.array[int]  # [shape]
    shape_enabled: wp.array[bool]  # [shape]
    shape_transform: wp.array[wp.transform]  # [shape] m, xyzw
    shape_scale: wp.array[wp.vec3]  # [shape] m
    shape_source_index: wp.array[int]  # [shape]
    visible_flags: int  # a shape is seen that has one of these flags
    only_enabled: int  # 1 if a shape must be enabled as well

    # surfaces: triangle meshes; a mesh of the model counts once as it is and once as its hull
    mesh_surface: wp.array[int]  # [mesh]
    hull_surface: wp.array[int]  # [mesh]
    surface_id: wp.array[wp.uint64]  # [surface]
    surface_lower: wp.array[wp.vec3]  # [surface] m
    surface_upper: wp.array[wp.vec3]  # [surface] m

    # groups
    entry_start: wp.array[int]  # [group + 1] bounded shapes
    entry_shape: wp.array[int]  # [entry]
    plane_start: wp.array[int]  # [group + 1] endless planes
    plane_shape: wp.array[int]  # [plane]
    node_start: wp.array[int]  # [group + 1]

    # where shapes are now
    shape_rotation: wp.array[wp.mat33]  # [shape]
    shape_position: wp.array[wp.vec3]  # [shape] m
    shape_visible: wp.array[int]  # [shape] 1 or 0
    placed: wp.array[PlacedShape]  # [shape] the same and more, for rays
    entry_order: wp.array[int]  # [entry] shapes along a curve that fills space
    entry_code: wp.array[int]  # [entry] place on that curve
    entry_lower: wp.array[wp.vec3]  # [entry] m, in the order of entry_shape
    entry_upper: wp.array[wp.vec3]  # [entry] m
    node_lower: wp.array[wp.vec3]  # [node] m
    node_upper: wp.array[wp.vec3]  # [node] m


class SceneArrays:
    """Makes and owns the arrays of a ray scene.

    Args:
        model: Model whose shapes are seen.
        geometry: Which of them.
        hidden: Shapes that are never seen, shape [shape]; None for none.
    """

    def __init__(self, model: Model, geometry: SeenGeometry, *, hidden: np.ndarray | None = None):
        device = model.device
        self.scene = RayScene()
        scene = self.scene
        for name in ("body", "type", "flags", "enabled", "transform", "scale", "source_index"):
            setattr(scene, f"shape_{name}", getattr(model, f"shape_{name}"))
        scene.visible_flags = SEEN_FLAGS[geometry]
        scene.only_enabled = int(geometry is SeenGeometry.COLLISION)
        self.group_count = model.world_count + 1
        """Number of groups: the worlds, and the global one."""
        hidden = np.zeros(model.shape_count, dtype=bool) if hidden is None else hidden
        self._make_surfaces(model, hidden)
        self._make_groups(model, hidden)
        count = model.shape_count
        scene.shape_rotation = wp.zeros(count, dtype=wp.mat33, device=device)
        scene.shape_position = wp.zeros(count, dtype=wp.vec3, device=device)
        scene.shape_visible = wp.zeros(count, dtype=wp.int32, device=device)
        scene.placed = wp.zeros(count, dtype=PlacedShape, device=device)

    def _make_surfaces(self, model: Model, hidden: np.ndarray) -> None:
        """Make Warp meshes of the meshes that shapes have or may be given."""
        device, scene = model.device, self.scene
        types, source = model.shape_type.numpy(), model.shape_source_index.numpy()
        visible = ((model.shape_flags.numpy() & scene.visible_flags) != 0) & ~hidden
        if "shape_source_index" not in model.guarded_arrays:
            visible[:] = True  # variants may give a shape another mesh
            as_mesh = {index for index, mesh in enumerate(model.meshes) if not mesh_is_hull(mesh)}
            as_hull = {index for index, mesh in enumerate(model.meshes) if mesh_is_hull(mesh)}
        else:
            as_mesh, as_hull = set(), set()
        meshed = visible & np.isin(types, [int(kind) for kind in MESHED]) & (source >= 0)
        is_hull = types == int(GeoType.CONVEX_MESH)
        as_hull |= set(source[meshed & is_hull].tolist())
        as_mesh |= set(source[meshed & ~is_hull].tolist())
        self.surfaces: list[Any] = []
        """Mesh or height field of each surface."""
        self._warp_meshes: list[wp.Mesh] = []
        mesh_surface = np.full(max(len(model.meshes), 1), -1, dtype=np.int32)
        hull_surface = mesh_surface.copy()
        for index in sorted(as_mesh):
            mesh_surface[index] = self._add_surface(model.meshes[index], device)
        for index in sorted(as_hull):
            hull_surface[index] = self._add_surface(model.meshes[index].convex_hull(), device)
        lower = [surface.vertices.min(axis=0) for surface in self.surfaces]
        upper = [surface.vertices.max(axis=0) for surface in self.surfaces]
        scene.mesh_surface = wp.array(mesh_surface, dtype=wp.int32, device=device)
        scene.hull_surface = wp.array(hull_surface, dtype=wp.int32, device=device)
        ids = [mesh.id for mesh in self._warp_meshes]
        scene.surface_id = wp.array(np.array(ids, dtype=np.uint64), dtype=wp.uint64, device=device)
        scene.surface_lower = _vectors(lower, device)
        scene.surface_upper = _vectors(upper, device)

    def _add_surface(self, mesh: Any, device: Any) -> int:
        self.surfaces.append(mesh)
        self._warp_meshes.append(warp_mesh(mesh, device))
        return len(self.surfaces) - 1

    def _make_groups(self, model: Model, hidden: np.ndarray) -> None:
        device, scene = model.device, self.scene
        types, scale = model.shape_type.numpy(), model.shape_scale.numpy().reshape(-1, 3)
        flags = model.shape_flags.numpy()
        first = model.topology.world_shape.numpy()
        counts = np.array([template.shape_count for template in model.templates])[model.world_template]
        group = np.full(model.shape_count, model.world_count, dtype=np.int64)
        entry = np.repeat(first, counts) + _ramp(counts)
        group[entry] = np.repeat(np.arange(model.world_count), counts)
        endless = (types == int(GeoType.PLANE)) & ~(scale[:, :2] > 0.0).all(axis=1)
        is_hidden_site = ((flags & int(ShapeFlags.SITE)) != 0) & ((flags & int(ShapeFlags.VISIBLE)) == 0)
        is_drawable = (types != int(GeoType.NONE)) & ~is_hidden_site & ~hidden
        order = np.argsort(group, kind="stable")
        entries = order[(is_drawable & ~endless)[order]]
        planes = order[(is_drawable & endless)[order]]
        entry_count = np.bincount(group[entries], minlength=self.group_count)
        plane_count = np.bincount(group[planes], minlength=self.group_count)
        leaves = 2 ** np.ceil(np.log2(np.maximum(entry_count, 1))).astype(np.int64)
        node_start = np.concatenate([[0], np.cumsum(2 * leaves)])
        self.entry_count_max = int(entry_count.max(initial=0))
        """Most bounded shapes of a group."""
        for name, values in (
            ("entry_start", np.concatenate([[0], np.cumsum(entry_count)])),
            ("entry_shape", entries),
            ("plane_start", np.concatenate([[0], np.cumsum(plane_count)])),
            ("plane_shape", planes),
            ("node_start", node_start),
        ):
            setattr(scene, name, wp.array(values.astype(np.int32), dtype=wp.int32, device=device))
        count = len(entries)
        scene.entry_order = wp.array(np.arange(count, dtype=np.int32), dtype=wp.int32, device=device)
        scene.entry_code = wp.zeros(count, dtype=wp.int32, device=device)
        scene.entry_lower = wp.zeros(count, dtype=wp.vec3, device=device)
        scene.entry_upper = wp.zeros(count, dtype=wp.vec3, device=device)
        # Rays miss a tree that was never placed.
        scene.node_lower = wp.full(int(node_start[-1]), wp.vec3(1.0e30), dtype=wp.vec3, device=device)
        scene.node_upper = wp.full(int(node_start[-1]), wp.vec3(-1.0e30), dtype=wp.vec3, device=device)


def mesh_is_hull(mesh: Any) -> bool:
    """Return whether a mesh was made as a convex hull."""
    return bool(getattr(mesh, "is_convex_hull", False))


_WARP_MESHES: weakref.WeakKeyDictionary[Any, dict[str, wp.Mesh]] = weakref.WeakKeyDictionary()


def warp_mesh(mesh: Any, device: Any) -> wp.Mesh:
    """Return the triangles of a mesh or height field as a Warp mesh, made once per object and device."""
    made = _WARP_MESHES.setdefault(mesh, {})
    key = str(device)
    if key not in made:
        points = wp.array(np.asarray(mesh.vertices, dtype=np.float32), dtype=wp.vec3, device=device)
        indices = np.ascontiguousarray(np.asarray(mesh.triangles, dtype=np.int32).reshape(-1))
        made[key] = wp.Mesh(points=points, indices=wp.array(indices, dtype=wp.int32, device=device))
    return made[key]


def _vectors(values: list[np.ndarray], device: Any) -> Any:
    rows = np.array(values, dtype=np.float32).reshape(-1, 3)
    return wp.array(rows, dtype=wp.vec3, device=device)


def _ramp(counts: np.ndarray) -> np.ndarray:
    """Return 0, 1, ... for each count, one after the other."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
