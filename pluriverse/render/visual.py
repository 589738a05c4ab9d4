"""Visual model: which shapes each world shows, as triangles with colours and textures, on the host.

Viewers and exporters draw it. The ray caster sees the same shapes, with exact primitives instead of
triangles.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.geometry import Texture
from pluriverse.model import Model
from pluriverse.model.poses import compose
from pluriverse.render.tessellation import tessellate
from pluriverse.types import GeoType, ShapeFlags

# Half side [m] of the square that stands for an endless plane.
PLANE_HALF_SIZE = 50.0


class SeenGeometry(enum.Enum):
    """Which shapes of a world are shown."""

    VISUAL = "visual"
    """Those that are drawn (`ShapeFlags.VISIBLE`)."""
    COLLISION = "collision"
    """Those that collide with shapes (`ShapeFlags.COLLIDE_SHAPES`) and are enabled."""
    ALL = "all"
    """Both."""


@dataclass(frozen=True, eq=False)
class VisualMesh:
    """Triangles of a shape in its own frame, with its size and appearance.

    Part p of the triangles has one colour and one texture. Vertices are shared between triangles; the texture
    coordinates belong to corners.
    """

    vertices: np.ndarray
    """Vertex positions [m], shape [vertex, 3], float32."""
    triangles: np.ndarray
    """Vertex indices, counterclockwise seen from outside, shape [triangle, 3], int32."""
    corner_normals: np.ndarray
    """Unit normals of the corners, smooth except at edges, shape [triangle, 3, 3], float32."""
    corner_uv: np.ndarray | None
    """Texture coordinates of the corners, (0, 0) at the lower left of the image, shape [triangle, 3, 2]; None
    without."""
    triangle_part: np.ndarray
    """Part of each triangle, shape [triangle], int32."""
    part_rgba: np.ndarray
    """Red, green, blue and alpha from 0 to 1 of each part, shape [part, 4]; they multiply the texture."""
    part_texture: tuple[Texture | None, ...]
    """Texture of each part, or None."""
    is_double_sided: bool
    """Whether both sides are visible, as for open meshes."""


@dataclass(frozen=True, eq=False)
class ShapeGroup:
    """Shapes that look the same, to be drawn as instances of one mesh."""

    shapes: np.ndarray
    """Shapes of the model, shape [instance]."""
    mesh: VisualMesh
    """Their appearance."""


class VisualModel:
    """The visible shapes of a model.

    A copy of the arrays of shapes as they are when it is made; `refresh` copies them again.

    Args:
        model: Model to show.
        geometry: Which of its shapes are shown.
    """

    def __init__(self, model: Model, *, geometry: SeenGeometry = SeenGeometry.VISUAL):
        self.model = model
        """Model that is shown."""
        self.geometry = SeenGeometry(geometry)
        """Which shapes are shown."""
        self._meshes: dict[tuple[Any, ...], VisualMesh] = {}
        self.refresh()

    def refresh(self) -> bool:
        """Copy the arrays of shapes again, after variants were assigned, or sizes or colours changed.

        Returns:
            Whether shapes appeared, disappeared or changed; earlier groups are then outdated.
        """
        model = self.model
        before = getattr(self, "_copied", None)
        self._copied = {
            name: getattr(model, f"shape_{name}").numpy().copy()
            for name in (
                "type",
                "flags",
                "enabled",
                "body",
                "world",
                "transform",
                "scale",
                "color",
                "appearance",
                "source_index",
            )
        }
        copied = self._copied
        flags = copied["flags"]
        is_drawn = (flags & int(ShapeFlags.VISIBLE)) != 0
        collides = ((flags & int(ShapeFlags.COLLIDE_SHAPES)) != 0) & copied["enabled"].astype(bool)
        self.shape_visible: np.ndarray = {
            SeenGeometry.VISUAL: is_drawn,
            SeenGeometry.COLLISION: collides,
            SeenGeometry.ALL: is_drawn | collides,
        }[self.geometry]
        """Whether each shape is shown, shape [shape]."""
        self.shape_body: np.ndarray = copied["body"]
        """Body that carries each shape, -1 for none, shape [shape]."""
        self.shape_transform: np.ndarray = copied["transform"].reshape(-1, 7)
        """Pose of each shape in its body [m, xyzw], shape [shape, 7]."""
        return before is None or any(
            not np.array_equal(before[name], copied[name]) for name in copied if name != "transform"
        )

    def shapes_of(self, worlds: Sequence[int] | None = None) -> np.ndarray:
        """Return the visible shapes of some worlds (all if None), including global ones.

        Raises:
            IndexError: If there is no such world.
        """
        world = self._copied["world"]
        if worlds is None:
            return np.flatnonzero(self.shape_visible)
        selected = np.asarray(list(worlds), dtype=np.int64)
        if len(selected) and (selected.min() < 0 or selected.max() >= self.model.world_count):
            bad = selected[(selected < 0) | (selected >= self.model.world_count)]
            raise IndexError(
                f"world {int(bad[0])} does not exist; the model has worlds 0 to {self.model.world_count - 1}."
            )
        return np.flatnonzero(self.shape_visible & (np.isin(world, selected) | (world < 0)))

    def mesh_of(self, shape: int) -> VisualMesh:
        """Return the appearance of a shape; equal shapes share one object."""
        key = self._key(shape)
        if key not in self._meshes:
            self._meshes[key] = self._make(shape)
        return self._meshes[key]

    def groups(self, worlds: Sequence[int] | None = None) -> list[ShapeGroup]:
        """Return the visible shapes of some worlds (all if None), grouped by appearance.

        Raises:
            IndexError: If there is no such world.
        """
        groups: dict[tuple[Any, ...], list[int]] = {}
        for shape in self.shapes_of(worlds).tolist():
            groups.setdefault(self._key(shape), []).append(shape)
        return [ShapeGroup(np.array(shapes), self.mesh_of(shapes[0])) for shapes in groups.values()]

    def poses(self, body_q: np.ndarray, shapes: np.ndarray) -> np.ndarray:
        """Return the poses of shapes in their world [m, xyzw], from those of all bodies, shape [shape, 7]."""
        local = self.shape_transform[shapes].astype(np.float64)
        body = self.shape_body[shapes]
        carrier = np.tile(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), (len(shapes), 1))
        carrier[body >= 0] = np.asarray(body_q, dtype=np.float64).reshape(-1, 7)[body[body >= 0]]
        return compose(carrier, local)

    def _key(self, shape: int) -> tuple[Any, ...]:
        copied = self._copied
        return (
            int(copied["type"][shape]),
            copied["scale"][shape].tobytes(),
            copied["color"][shape].tobytes(),
            int(copied["appearance"][shape]),
            int(copied["source_index"][shape]),
        )

    def _make(self, shape: int) -> VisualMesh:
        copied, model = self._copied, self.model
        source = int(copied["source_index"][shape])
        mesh = model.meshes[source] if source >= 0 else None
        geometry, scale = GeoType(int(copied["type"][shape])), copied["scale"][shape].astype(np.float64)
        triangles = tessellate(geometry, scale, mesh, PLANE_HALF_SIZE)
        color = copied["color"][shape]
        index = int(copied["appearance"][shape])
        appearance = model.appearances[index] if index >= 0 else None
        alpha = 1.0 if appearance is None else appearance.alpha
        skin = getattr(triangles.source, "skin", None)
        uv = triangles.corner_uv
        part = np.zeros(len(triangles.triangles), dtype=np.int32)
        rgba = np.array([[*color, alpha]], dtype=np.float32)
        textures: tuple[Texture | None, ...] = (None if appearance is None else appearance.texture,)
        if wears_skin(triangles.source, color) and appearance is None:
            assert skin is not None
            rgba, textures = skin.part_color, skin.part_texture
            part = part if skin.triangle_part is None else skin.triangle_part
        if uv is not None and appearance is not None:
            uv = uv * np.array(appearance.texture_repeat, dtype=np.float32)
        return VisualMesh(
            triangles.vertices,
            triangles.triangles,
            triangles.corner_normals,
            uv,
            part,
            rgba,
            textures,
            triangles.is_double_sided,
        )


def wears_skin(mesh: Any, color: np.ndarray) -> bool:
    """Return whether a shape of a colour shows the colours of its mesh instead."""
    skin = getattr(mesh, "skin", None)
    if skin is None or not skin.has_colors or mesh.color is None:
        return False
    return bool((np.asarray(mesh.color, dtype=np.float32) == np.asarray(color, dtype=np.float32)).all())
