"""Scene view: the shapes of selected worlds in the browser, as instances of one mesh per appearance."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pluriverse.model import Model
from pluriverse.recording.moment import rotated
from pluriverse.render.visual import SeenGeometry, ShapeGroup, VisualMesh, VisualModel
from pluriverse.types import GeoType

# Colour of frozen worlds: a red that robots do not have.
FROZEN_COLOR = (255, 20, 20)
# Sides [m] of the ground grid.
GROUND_SIZE = 200.0
# Opacity of shapes that are drawn translucent to show what lies inside.
SEEN_THROUGH_OPACITY = 0.35
# Depth of the grid below the plane [m], so that it does not show through what lies on the plane.
GROUND_DEPTH = 1e-3


class _Instances:
    """Shapes of equal appearance, drawn as one batch."""

    def __init__(self, group: ShapeGroup, slot: np.ndarray, handles: list[tuple[Any, np.ndarray | None]]):
        self.shapes = group.shapes
        """Shapes of the model, shape [instance]."""
        self.slot = slot
        """Index of each instance's world among those shown, shape [instance]."""
        self.handles = handles
        """Drawn batches, one per part of the mesh, with the colours of the instances if these can change."""
        self._positions: np.ndarray | None = None
        self._wxyzs: np.ndarray | None = None

    def move(self, positions: np.ndarray, wxyzs: np.ndarray) -> None:
        """Move the instances, and send only what changed."""
        if self._positions is None or not np.array_equal(positions, self._positions):
            self._positions = positions
            for handle, _ in self.handles:
                handle.batched_positions = positions
        if self._wxyzs is None or not np.array_equal(wxyzs, self._wxyzs):
            self._wxyzs = wxyzs
            for handle, _ in self.handles:
                handle.batched_wxyzs = wxyzs


class SceneView:
    """The shapes of selected worlds, drawn into a Viser scene.

    Args:
        scene: `viser.SceneApi` to draw into.
        model: Model to draw.
        worlds: The worlds.
        offsets: Drawing offset of each world [m], shape [world, 3].
        geometry: Which shapes are drawn.
        name: Prefix of all node names.
    """

    def __init__(
        self,
        scene: Any,
        model: Model,
        worlds: np.ndarray,
        offsets: np.ndarray,
        *,
        geometry: SeenGeometry = SeenGeometry.VISUAL,
        name: str = "/worlds",
    ) -> None:
        self._scene = scene
        self._model = model
        self._worlds = np.asarray(worlds)
        self._offsets = offsets
        self._name = name
        self._place = np.full(model.world_count, -1)
        self._place[self._worlds] = np.arange(len(self._worlds))
        self.visual = VisualModel(model, geometry=geometry)
        """The visible shapes."""
        self._drawn: list[_Instances] = []
        self._frozen = np.zeros(len(self._worlds), dtype=bool)
        self._grids: list[Any] = []
        self._own_opacity: dict[str, float | None] = {}
        self._is_seen_through = False
        self._drag: tuple[Any, str] | None = None
        self._build()

    @property
    def instance_count(self) -> int:
        """Number of shapes drawn."""
        return sum(len(each.shapes) for each in self._drawn)

    @property
    def batch_count(self) -> int:
        """Number of drawn batches."""
        return sum(len(each.handles) for each in self._drawn)

    def instance_at(self, handle: Any, instance: int | None) -> tuple[int, int]:
        """Return the shape of an instance of a drawn batch, and the index of its shown world; -1 for none."""
        for each in self._drawn:
            if any(handle is drawn for drawn, _ in each.handles):
                if instance is not None and 0 <= instance < len(each.shapes):
                    return int(each.shapes[instance]), int(each.slot[instance])
        return -1, -1

    def set_drag(self, callback: Any, modifier: str) -> None:
        """Report shapes that are dragged with the left button and keys, as Viser's `on_drag` does."""
        self._drag = callback, modifier
        for handle in self.handles:
            handle.on_drag("left", modifier=modifier)(callback)

    def see_through(self, is_seen_through: bool) -> None:
        """Draw untextured shapes translucent, or opaque again."""
        self._is_seen_through = is_seen_through
        for each in self._drawn:
            for handle, colors in each.handles:
                if colors is not None:
                    own = self._own_opacity[handle.name]
                    handle.opacity = min(SEEN_THROUGH_OPACITY, own or 1.0) if is_seen_through else own

    @property
    def handles(self) -> list[Any]:
        """All drawn batches."""
        return [handle for each in self._drawn for handle, _ in each.handles]

    def remove(self) -> None:
        """Remove everything from the scene."""
        for handle in self.handles:
            handle.remove()
        for grid in self._grids:
            grid.remove()
        self._grids = []
        self._drawn = []

    def refresh(self) -> bool:
        """Redraw if shapes changed: other variants, sizes or colours. Return whether they did."""
        if not self.visual.refresh():
            return False
        self.remove()
        self._build()
        return True

    def update(self, body_q: np.ndarray, frozen: np.ndarray | None = None) -> None:
        """Move everything to the current body poses.

        Args:
            body_q: Poses of all bodies [m, xyzw], shape [body, 7].
            frozen: Whether each world of the model is frozen, shape [world].
        """
        if self._drawn:
            pose = self.visual.poses(body_q, np.concatenate([each.shapes for each in self._drawn]))
            slot = np.concatenate([each.slot for each in self._drawn])
            positions = (pose[:, :3] + self._offsets[slot]).astype(np.float32)
            wxyzs = pose[:, [6, 3, 4, 5]].astype(np.float32)
            # A pose with a NaN would make the browser drop the whole batch.
            unsound = ~np.isfinite(pose).all(axis=1)
            positions[unsound], wxyzs[unsound] = (0.0, 0.0, -1e3), (1.0, 0.0, 0.0, 0.0)
            first = 0
            for each in self._drawn:
                end = first + len(each.shapes)
                each.move(positions[first:end], wxyzs[first:end])
                first = end
        if frozen is not None:
            self._color(np.asarray(frozen, dtype=bool)[self._worlds])

    def _color(self, frozen: np.ndarray) -> None:
        if np.array_equal(frozen, self._frozen):
            return
        self._frozen = frozen
        for each in self._drawn:
            for handle, colors in each.handles:
                if colors is not None:
                    shown = np.where(
                        frozen[each.slot][:, None], np.array(FROZEN_COLOR, dtype=np.uint8), colors
                    )
                    handle.batched_colors = shown.astype(np.uint8)

    def _build(self) -> None:
        grounds: list[np.ndarray] = []
        for index, group in enumerate(self.visual.groups(self._worlds.tolist())):
            kind = int(self._model.shape_type.numpy()[group.shapes[0]])
            world = self._model.shape_world.numpy()[group.shapes]
            if kind == int(GeoType.PLANE) and (self.visual.shape_body[group.shapes] < 0).all():
                grounds.append(group.shapes)
                continue
            instances = self._instances(group, world)
            name = f"{self._name}/{index}"
            handles = self._draw(name, instances[0], group.mesh)
            self._drawn.append(_Instances(ShapeGroup(instances[0], group.mesh), instances[1], handles))
        if grounds:
            self._draw_grounds(np.concatenate(grounds))
        self._frozen = np.zeros(len(self._worlds), dtype=bool)
        if self._drag is not None:
            self.set_drag(*self._drag)
        if self._is_seen_through:
            self.see_through(True)

    def _draw_grounds(self, shapes: np.ndarray) -> None:
        """Draw planes: one endless plane if all are the same, else a patch of each under its world."""
        pose = self.visual.shape_transform[shapes].astype(np.float64)
        world = self._model.shape_world.numpy()[shapes]
        offset = np.zeros((len(shapes), 3))
        offset[world >= 0] = self._offsets[self._place[world[world >= 0]]]
        is_common = bool(np.allclose(pose, pose[0], atol=1e-6))
        if is_common:
            pose, offset = pose[:1], np.zeros((1, 3))
        apart = np.linalg.norm(offset[1:] - offset[:-1], axis=1)
        side = GROUND_SIZE if not apart.any() else 0.9 * float(apart[apart > 0.0].min())
        for index, (frame, shift) in enumerate(zip(pose, offset, strict=True)):
            normal = rotated(frame[None, 3:], np.array([[0.0, 0.0, 1.0]]))[0]
            grid = self._scene.add_grid(
                f"{self._name}/ground/{index}",
                side,
                side,
                cell_size=0.5,
                section_size=1.0,
                infinite_grid=is_common,
                fade_distance=40.0,
                plane_color=(170, 178, 188),
                plane_opacity=1.0,
                wxyz=tuple(frame[[6, 3, 4, 5]].tolist()),
                position=tuple((frame[:3] + shift - GROUND_DEPTH * normal).tolist()),
            )
            self._grids.append(grid)

    def _instances(self, group: ShapeGroup, world: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the shapes to draw and the index of each one's world; every world shows global shapes."""
        own, shared = group.shapes[world >= 0], group.shapes[world < 0]
        count = len(self._worlds)
        shapes = np.concatenate([own, np.repeat(shared, count)])
        places = np.concatenate([self._place[world[world >= 0]], np.tile(np.arange(count), len(shared))])
        return shapes.astype(np.int64), places.astype(np.int64)

    def _draw(self, name: str, shapes: np.ndarray, mesh: VisualMesh) -> list[tuple[Any, np.ndarray | None]]:
        """Draw instances of a mesh, one batch per part of it."""
        count = len(shapes)
        identity = np.tile(np.array([1.0, 0.0, 0.0, 0.0], dtype=np.float32), (count, 1))
        origin = np.zeros((count, 3), dtype=np.float32)
        handles: list[tuple[Any, np.ndarray | None]] = []
        for part, (rgba, texture) in enumerate(zip(mesh.part_rgba, mesh.part_texture, strict=True)):
            member = mesh.triangle_part == part
            if not member.any():
                continue
            vertices, faces, uv = unshared(mesh, member)
            label = f"{name}/{part}"
            if texture is not None and uv is not None:
                textured = textured_mesh(vertices, faces, uv, texture, rgba)
                handle = self._scene.add_batched_meshes_trimesh(label, textured, identity, origin, lod="off")
                handles.append((handle, None))
                continue
            colors = np.tile((255.0 * np.clip(rgba[:3], 0.0, 1.0)).round().astype(np.uint8), (count, 1))
            handle = self._scene.add_batched_meshes_simple(
                label,
                vertices,
                faces,
                identity,
                origin,
                batched_colors=colors,
                opacity=float(rgba[3]) if rgba[3] < 1.0 else None,
                side="double" if mesh.is_double_sided else "front",
                lod="off",
            )
            self._own_opacity[handle.name] = handle.opacity
            handles.append((handle, colors))
        return handles


def unshared(mesh: VisualMesh, member: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return some triangles of a mesh, with separate vertices where normals differ: edges stay sharp.

    Returns:
        Vertices [m], shape [vertex, 3]; indices, shape [triangle, 3]; texture coordinates, shape [vertex, 2].
    """
    corner = mesh.triangles[member].reshape(-1)
    normal = np.round(mesh.corner_normals[member].reshape(-1, 3), 3)
    keys = [corner[:, None].astype(np.float64), normal]
    uv = None
    if mesh.corner_uv is not None:
        uv = mesh.corner_uv[member].reshape(-1, 2)
        keys.append(uv.astype(np.float64))
    _, first, inverse = np.unique(np.hstack(keys), axis=0, return_index=True, return_inverse=True)
    vertices = np.ascontiguousarray(mesh.vertices[corner[first]], dtype=np.float32)
    faces = inverse.reshape(-1, 3).astype(np.uint32)
    return vertices, faces, None if uv is None else uv[first].astype(np.float64)


def textured_mesh(
    vertices: np.ndarray, faces: np.ndarray, uv: np.ndarray, texture: Any, rgba: Sequence[float] | np.ndarray
) -> Any:
    """Return a mesh of trimesh with an image on it."""
    import trimesh
    from PIL import Image

    pixels = texture.pixels.astype(np.float64) * np.array([*rgba[:3], 1.0])
    image = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8), mode="RGBA").convert("RGB")
    material = trimesh.visual.material.PBRMaterial(
        baseColorTexture=image, metallicFactor=0.0, roughnessFactor=0.8
    )
    visual = trimesh.visual.TextureVisuals(uv=uv, material=material)
    return trimesh.Trimesh(vertices, faces, visual=visual, process=False)
