"""Looks: colours, textures and normals of surfaces, as arrays for the shader."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.geometry import TextureMapping
from pluriverse.model import Model
from pluriverse.render.raycast.scene import RayScene, SceneArrays
from pluriverse.render.raycast.trace import RayHit, hit_normal
from pluriverse.render.raycast.tree import surface_of
from pluriverse.types import GeoType

# Largest number of triangles of a smoothly shaded surface. A terrain of millions has triangles as small as
# pixels; finding the smooth edges among them takes longer than many pictures.
SMOOTH_TRIANGLE_COUNT = 1_000_000


@wp.struct
class RayAppearance:
    """How the surfaces of a model look."""

    shape_color: wp.array[wp.vec3]  # [shape] display values from 0 to 1
    shape_appearance: wp.array[int]  # [shape] -1 for none

    appearance_texture: wp.array[int]  # [appearance] -1 for none
    appearance_repeat: wp.array[wp.vec2]  # [appearance]
    appearance_is_uniform: wp.array[int]  # [appearance] 1 if repeats count per metre
    appearance_gloss: wp.array[wp.vec4]  # [appearance] alpha, specular, shininess, emission

    surface_first: wp.array[int]  # [surface] first triangle in the arrays below
    surface_has_uv: wp.array[int]  # [surface]
    surface_part: wp.array[int]  # [surface] first part, -1 for a surface without colours of its own
    surface_color: wp.array[wp.vec3]  # [surface] main colour: a shape of this colour shows the parts
    corner_normal: wp.array[wp.vec3]  # [3 * triangle]
    corner_uv: wp.array[wp.vec2]  # [3 * triangle], empty where no surface has any
    triangle_part: wp.array[int]  # [triangle], empty where no surface has parts
    part_color: wp.array[wp.vec4]  # [part]
    part_texture: wp.array[int]  # [part] -1 for none

    texture_first: wp.array[int]  # [texture] first pixel
    texture_size: wp.array[wp.vec2i]  # [texture] columns, rows
    texture_is_cube: wp.array[int]  # [texture]
    pixel: wp.array[wp.uint32]  # [pixel] red in the lowest byte


@wp.struct
class Surface:
    """Surface data of the point that a ray hit."""

    color: wp.vec3
    """Red, green, blue in linear light."""
    normal: wp.vec3
    """Unit normal for shading, facing the origin of the ray."""
    flat_normal: wp.vec3
    """Unit normal of the geometry, on the same side."""
    alpha: float
    specular: float
    shininess: float
    emission: float


class AppearanceArrays:
    """Makes and owns the appearance arrays of a model.

    Args:
        model: The model.
        arrays: Its ray scene.
    """

    def __init__(self, model: Model, arrays: SceneArrays):
        device = model.device
        self.arrays = RayAppearance()
        surfaces = self.arrays
        surfaces.shape_color, surfaces.shape_appearance = model.shape_color, model.shape_appearance
        self._textures: list[Any] = []
        self._texture_index: dict[bytes, int] = {}
        appearances = model.appearances
        textures = [self._index(appearance.texture) for appearance in appearances]
        surfaces.appearance_texture = _integers(textures, device)
        repeat = np.array([appearance.texture_repeat for appearance in appearances], dtype=np.float32)
        surfaces.appearance_repeat = wp.array(repeat.reshape(-1, 2), dtype=wp.vec2, device=device)
        surfaces.appearance_is_uniform = _integers([a.texture_is_uniform for a in appearances], device)
        gloss = [(a.alpha, a.specular, a.shininess, a.emission) for a in appearances]
        rows = np.array(gloss, dtype=np.float32).reshape(-1, 4)
        surfaces.appearance_gloss = wp.array(rows, dtype=wp.vec4, device=device)
        self._put_surfaces(arrays.surfaces, device)
        self._put_textures(device)

    def _index(self, texture: Any) -> int:
        """Return the index of a texture, -1 for none."""
        if texture is None:
            return -1
        index = self._texture_index.setdefault(texture.content_key, len(self._textures))
        if index == len(self._textures):
            self._textures.append(texture)
        return index

    def _put_surfaces(self, surfaces: list[Any], device: Any) -> None:
        arrays = self.arrays
        counts = [len(surface.triangles) for surface in surfaces]
        skins = [getattr(surface, "skin", None) for surface in surfaces]
        has_uv = [skin is not None and skin.corner_uv is not None for skin in skins]
        has_parts = [
            skin is not None and skin.has_colors and surface.color is not None
            for skin, surface in zip(skins, surfaces, strict=True)
        ]
        # Without given normals the shader uses those of the triangles.
        normals = [
            surface.corner_normals.reshape(-1, 3)
            if count <= SMOOTH_TRIANGLE_COUNT
            else np.zeros((3 * count, 3), dtype=np.float32)
            for surface, count in zip(surfaces, counts, strict=True)
        ]
        uv, parts, colors, textures, first_part = [], [], [], [], []
        for skin, count, with_uv, with_parts in zip(skins, counts, has_uv, has_parts, strict=True):
            uv.append(skin.corner_uv.reshape(-1, 2) if with_uv else np.zeros((3 * count, 2)))
            own = np.zeros(count, dtype=np.int64)
            first_part.append(len(colors) if with_parts else -1)
            if with_parts:
                own = own if skin.triangle_part is None else skin.triangle_part
                colors += skin.part_color.tolist()
                textures += [self._index(texture) for texture in skin.part_texture]
            parts.append(own)
        arrays.surface_first = _integers(np.cumsum([0, *counts])[:-1], device)
        arrays.surface_has_uv = _integers(has_uv, device)
        arrays.surface_part = _integers(first_part, device)
        main = [surface.color or (0.0, 0.0, 0.0) for surface in surfaces]
        arrays.surface_color = wp.array(_rows(main, 3), dtype=wp.vec3, device=device)
        arrays.corner_normal = wp.array(_joined(normals, 3), dtype=wp.vec3, device=device)
        arrays.corner_uv = wp.array(_joined(uv if any(has_uv) else [], 2), dtype=wp.vec2, device=device)
        arrays.triangle_part = _integers(np.concatenate(parts) if any(has_parts) else [], device)
        arrays.part_color = wp.array(_rows(colors, 4), dtype=wp.vec4, device=device)
        arrays.part_texture = _integers(textures, device)

    def _put_textures(self, device: Any) -> None:
        surfaces = self.arrays
        sizes = [(texture.pixels.shape[1], texture.pixels.shape[0]) for texture in self._textures]
        surfaces.texture_first = _integers(np.cumsum([0, *(x * y for x, y in sizes)])[:-1], device)
        surfaces.texture_size = wp.array(
            np.array(sizes, dtype=np.int32).reshape(-1, 2), dtype=wp.vec2i, device=device
        )
        cubes = [texture.mapping is TextureMapping.CUBE for texture in self._textures]
        surfaces.texture_is_cube = _integers(cubes, device)
        pixels = [texture.pixels.view("<u4").reshape(-1) for texture in self._textures]
        flat = np.concatenate(pixels) if pixels else np.zeros(0, dtype=np.uint32)
        surfaces.pixel = wp.array(flat.astype(np.uint32), dtype=wp.uint32, device=device)


def _integers(values: Any, device: Any) -> Any:
    return wp.array(np.asarray(values, dtype=np.int32).reshape(-1), dtype=wp.int32, device=device)


def _rows(values: Any, width: int) -> np.ndarray:
    return np.array(values, dtype=np.float32).reshape(-1, width)


def _joined(blocks: list[np.ndarray], width: int) -> np.ndarray:
    return np.concatenate(blocks).astype(np.float32) if blocks else np.zeros((0, width), dtype=np.float32)


@wp.func
def to_linear(color: wp.vec3) -> wp.vec3:
    """Return display values as linear light."""
    return wp.vec3(
        wp.pow(wp.max(color[0], 0.0), 2.2),
        wp.pow(wp.max(color[1], 0.0), 2.2),
        wp.pow(wp.max(color[2], 0.0), 2.2),
    )


@wp.func
def texel(surfaces: RayAppearance, texture: int, column: int, row: int) -> wp.vec4:
    """Return a pixel of a texture, red, green, blue, alpha from 0 to 1."""
    size = surfaces.texture_size[texture]
    word = surfaces.pixel[surfaces.texture_first[texture] + row * size[0] + column]
    scale = 1.0 / 255.0
    byte = wp.uint32(255)
    return wp.vec4(
        scale * float(word & byte),
        scale * float((word >> wp.uint32(8)) & byte),
        scale * float((word >> wp.uint32(16)) & byte),
        scale * float(word >> wp.uint32(24)),
    )


@wp.func
def sample_tile(
    surfaces: RayAppearance, texture: int, u: float, v: float, first_row: int, rows: int
) -> wp.vec4:
    """Return a texture at pixel coordinates, by bilinear interpolation, within a repeating band of rows."""
    columns = surfaces.texture_size[texture][0]
    x = wp.floor(u - 0.5)
    y = wp.floor(v - 0.5)
    s = u - 0.5 - x
    t = v - 0.5 - y
    x0 = ((int(x) % columns) + columns) % columns
    y0 = ((int(y) % rows) + rows) % rows
    x1 = (x0 + 1) % columns
    y1 = (y0 + 1) % rows
    low = (1.0 - s) * texel(surfaces, texture, x0, first_row + y0) + s * texel(
        surfaces, texture, x1, first_row + y0
    )
    high = (1.0 - s) * texel(surfaces, texture, x0, first_row + y1) + s * texel(
        surfaces, texture, x1, first_row + y1
    )
    return (1.0 - t) * low + t * high


@wp.func
def sample_surface(surfaces: RayAppearance, texture: int, uv: wp.vec2) -> wp.vec4:
    """Return a texture at texture coordinates, (0, 0) at the lower left."""
    size = surfaces.texture_size[texture]
    # The integer part only repeats; removing it first keeps pixels exact far from 0.
    u = uv[0] - wp.floor(uv[0])
    v = uv[1] - wp.floor(uv[1])
    return sample_tile(surfaces, texture, u * float(size[0]), (1.0 - v) * float(size[1]), 0, size[1])


@wp.func
def sample_cube(surfaces: RayAppearance, texture: int, way: wp.vec3) -> wp.vec4:
    """Return a cube texture along a direction from the centre of a shape."""
    x = wp.abs(way[0])
    y = wp.abs(way[1])
    z = wp.abs(way[2])
    face = int(0)
    across = float(0.0)
    up = float(0.0)
    most = wp.max(x, wp.max(y, wp.max(z, 1.0e-12)))
    if x >= y and x >= z:
        face = wp.where(way[0] > 0.0, 0, 1)
        across = wp.where(way[0] > 0.0, way[1], -way[1])
        up = way[2]
    elif y >= z:
        face = wp.where(way[1] > 0.0, 2, 3)
        across = wp.where(way[1] > 0.0, -way[0], way[0])
        up = way[2]
    else:
        face = wp.where(way[2] > 0.0, 4, 5)
        across = way[0]
        up = wp.where(way[2] > 0.0, way[1], -way[1])
    side = surfaces.texture_size[texture][0]
    length = float(side)
    u = wp.clamp(0.5 * (1.0 + across / most) * length, 0.5, length - 0.5)
    v = wp.clamp(0.5 * (1.0 - up / most) * length, 0.5, length - 0.5)
    return sample_tile(surfaces, texture, u, v, face * side, side)


@wp.func
def texture_color(
    scene: RayScene,
    surfaces: RayAppearance,
    appearance_index: int,
    texture: int,
    hit: RayHit,
    point: wp.vec3,
    normal: wp.vec3,
) -> wp.vec4:
    """Return the texture of a shape at a point of its surface (in its frame), as display values."""
    size = wp.max(scene.shape_scale[hit.shape], wp.vec3(1.0e-6, 1.0e-6, 1.0e-6))
    repeat = wp.vec2(1.0, 1.0)
    is_uniform = int(0)
    if appearance_index >= 0:
        repeat = surfaces.appearance_repeat[appearance_index]
        is_uniform = surfaces.appearance_is_uniform[appearance_index]
    result = wp.vec4(1.0, 1.0, 1.0, 1.0)
    if surfaces.texture_is_cube[texture] == 1:
        way = point
        kind = scene.shape_type[hit.shape]
        if hit.face >= 0:
            way = normal
        elif kind != GeoType.SPHERE:
            half_size = size
            if kind == GeoType.CAPSULE or kind == GeoType.CYLINDER or kind == GeoType.CONE:
                half_size = wp.vec3(size[0], size[0], size[1])
            way = wp.cw_div(point, half_size)
        result = sample_cube(surfaces, texture, way)
    elif hit.face >= 0 and surfaces.surface_has_uv[surface_of(scene, hit.shape)] == 1:
        corner = 3 * (surfaces.surface_first[surface_of(scene, hit.shape)] + hit.face)
        w = 1.0 - hit.u - hit.v
        uv = (
            hit.u * surfaces.corner_uv[corner]
            + hit.v * surfaces.corner_uv[corner + 1]
            + w * surfaces.corner_uv[corner + 2]
        )
        result = sample_surface(surfaces, texture, wp.cw_mul(uv, repeat))
    else:
        # Projected along z of the shape, scaled to its size or by the metre.
        u = point[0]
        v = point[1]
        if is_uniform == 0 and hit.face < 0:
            if scene.shape_type[hit.shape] == GeoType.PLANE:
                # An endless plane has no size: a repetition is a metre.
                u = wp.where(scene.shape_scale[hit.shape][0] > 0.0, point[0] / size[0], point[0])
                v = wp.where(scene.shape_scale[hit.shape][1] > 0.0, point[1] / size[1], point[1])
            else:
                u = 0.5 * (1.0 + point[0] / size[0])
                v = 0.5 * (1.0 + point[1] / wp.where(size[1] > 1.0e-5, size[1], size[0]))
        result = sample_surface(surfaces, texture, wp.vec2(u * repeat[0], v * repeat[1]))
    return result


@wp.func
def surface_at(
    scene: RayScene, surfaces: RayAppearance, hit: RayHit, origin: wp.vec3, direction: wp.vec3
) -> Surface:
    """Return the surface data where a ray hits."""
    shape = hit.shape
    rotation = scene.shape_rotation[shape]
    result = Surface()
    result.flat_normal = hit_normal(scene, hit, origin, direction)
    result.normal = result.flat_normal
    result.alpha = 1.0
    result.specular = 0.4
    result.shininess = 0.4
    point = (origin + hit.distance * direction - scene.shape_position[shape]) * rotation
    color = surfaces.shape_color[shape]
    appearance_index = surfaces.shape_appearance[shape]
    texture = int(-1)
    if appearance_index >= 0:
        gloss = surfaces.appearance_gloss[appearance_index]
        result.alpha = gloss[0]
        result.specular = gloss[1]
        result.shininess = gloss[2]
        result.emission = gloss[3]
        texture = surfaces.appearance_texture[appearance_index]
    if hit.face >= 0:
        surface = surface_of(scene, shape)
        triangle = surfaces.surface_first[surface] + hit.face
        w = 1.0 - hit.u - hit.v
        smooth = (
            hit.u * surfaces.corner_normal[3 * triangle]
            + hit.v * surfaces.corner_normal[3 * triangle + 1]
            + w * surfaces.corner_normal[3 * triangle + 2]
        )
        # Normals scale inversely to the surface.
        smooth = rotation * wp.cw_div(smooth, scene.shape_scale[shape])
        if wp.dot(smooth, result.flat_normal) < 0.0:
            smooth = -smooth
        if wp.length_sq(smooth) > 1.0e-12:
            result.normal = wp.normalize(smooth)
        first_part = surfaces.surface_part[surface]
        main = surfaces.surface_color[surface]
        if (
            first_part >= 0
            and appearance_index < 0
            and color[0] == main[0]
            and color[1] == main[1]
            and color[2] == main[2]
        ):
            part = first_part + surfaces.triangle_part[triangle]
            own = surfaces.part_color[part]
            color = wp.vec3(own[0], own[1], own[2])
            result.alpha = own[3]
            texture = surfaces.part_texture[part]
    if texture >= 0:
        normal = result.flat_normal * rotation
        texture_rgba = texture_color(scene, surfaces, appearance_index, texture, hit, point, normal)
        color = wp.cw_mul(color, wp.vec3(texture_rgba[0], texture_rgba[1], texture_rgba[2]))
        result.alpha = result.alpha * texture_rgba[3]
    result.color = to_linear(color)
    return result
