"""Mesh files: the triangles of STL, OBJ, DAE and other files, read by trimesh."""

import functools
import io
import struct
import warnings
import xml.etree.ElementTree as ElementTree
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.files import LFS_REMEDY, is_lfs_pointer
from pluriverse.geometry.appearance import MeshSkin, Texture
from pluriverse.geometry.image_file import check_pixel_count, read_pixels
from pluriverse.geometry.vertex_merge import merge_vertices

# Rotations to +z of the up axes that a DAE file can name.
UPRIGHT = {
    "X_UP": np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    "Y_UP": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "Z_UP": np.eye(3),
}


# Largest unpacked size of a packed mesh file (ZAE, 3MF) [B]. A triangle takes some 200.
UNPACKED_SIZE_MAX = 2**29
# Errors of trimesh and its parsers for a broken file.
_DAMAGE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OSError,
    EOFError,
    SyntaxError,
    ArithmeticError,
    AssertionError,
    MemoryError,
    RuntimeError,  # with RecursionError and NotImplementedError
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


# Length of an STL file without triangles: a header of 80 bytes, with or without the triangle count of 0.
_EMPTY_STL = (80, 84)


class NoTrianglesError(ValueError):
    """A complete mesh file without triangles."""


def load_triangles(
    path: Path, *, apply_up_axis: bool
) -> tuple[np.ndarray, np.ndarray, tuple[float, float, float] | None, MeshSkin | None]:
    """Return vertices [m], triangles, main colour and skin of all parts of a file, placed by its scene graph.

    Raises:
        FileNotFoundError: If there is no such file.
        NoTrianglesError: If it is an STL file of no triangles.
        ValueError: If the file cannot be read, or holds no triangles.
    """
    import trimesh

    if not path.is_file():
        raise FileNotFoundError(f"mesh file '{path}' does not exist.")
    suffix = path.suffix.lower().lstrip(".")
    if is_lfs_pointer(path):
        raise ValueError(f"mesh file '{path}' is a pointer of Git LFS, not the mesh. {LFS_REMEDY}")
    if suffix not in trimesh.available_formats():
        raise ValueError(
            f"mesh file '{path}': files ending in '.{suffix}' cannot be read. Convert it to STL, OBJ, PLY, "
            "GLB or DAE (DAE needs the package pycollada)."
        )
    matrix = np.eye(3)
    if suffix == "dae":
        unit, up_axis = _collada_frame(path)
        matrix = unit * (UPRIGHT[up_axis] if apply_up_axis else matrix)
    _check_archive(path)
    try:
        scene = _load_scene(path, suffix)
    except Exception as error:
        # The reader of DAE files has errors of its own, which are known only once it is loaded.
        if not isinstance(error, _DAMAGE) and not type(error).__module__.startswith("collada"):
            raise
        raise ValueError(f"mesh file '{path}' cannot be read: {type(error).__name__}: {error}") from error
    parts = []
    for node in sorted(scene.graph.nodes_geometry):
        placement, geometry_name = scene.graph[node]
        geometry = scene.geometry[geometry_name]
        if len(getattr(geometry, "faces", ())) > 0:  # points and lines have no surface
            parts.append((matrix @ placement[:3, :3], matrix @ placement[:3, 3], geometry))
    if not parts:
        is_empty = suffix == "stl" and path.stat().st_size in _EMPTY_STL
        raise (NoTrianglesError if is_empty else ValueError)(f"mesh file '{path}' holds no triangles.")
    vertices = [_placed(part.vertices, rotation, offset) for rotation, offset, part in parts]
    starts = np.cumsum([0] + [len(block) for block in vertices])
    triangles = [
        np.asarray(part.faces)[:, :: -1 if np.linalg.det(rotation) < 0.0 else 1]
        + start  # mirrored parts turn over
        for (rotation, _, part), start in zip(parts, starts[:-1], strict=True)
    ]
    largest = max((part for _, _, part in parts), key=lambda part: len(part.faces))
    distinct, merged = merge_vertices(np.concatenate(vertices).astype(np.float32))
    geometries = [part for _, _, part in parts]
    flipped = [bool(np.linalg.det(rotation) < 0.0) for rotation, _, _ in parts]
    color = _main_color(largest)
    return distinct, merged[np.concatenate(triangles)], color, _skin(geometries, flipped, color)


def _check_archive(path: Path) -> None:
    """Check the unpacked size that a packed mesh file declares; readers unpack no more than that.

    Raises:
        ValueError: If it is too large.
    """
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return  # reading it says what is wrong with it
    if size > UNPACKED_SIZE_MAX:
        raise ValueError(
            f"mesh file '{path}' unpacks to {size / 2**20:.0f} MiB, more than {UNPACKED_SIZE_MAX >> 20} MiB. "
            "Reduce the mesh, or store it as STL or OBJ."
        )


def _placed(vertices: Any, rotation: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Return vertices [m] of a part in the frame of the file."""
    array = np.asarray(vertices)
    if np.array_equal(rotation, np.eye(3)) and not offset.any():
        return array  # most parts stand where they are
    placed: np.ndarray = array @ rotation.T + offset
    return placed


def _load_scene(path: Path, suffix: str) -> Any:
    """Return the `trimesh.Scene` of a file without processing.

    Processing is switched off for each part too. Otherwise trimesh would merge vertices with normals and
    texture coordinates, which takes longer than reading them.
    """
    import trimesh
    from trimesh.exchange.load import mesh_loaders

    if suffix not in mesh_loaders:
        return trimesh.load_scene(path, process=False)
    resolver = _warning_resolver()(str(path))
    with path.open("rb") as file:
        loaded = mesh_loaders[suffix](file, file_type=suffix, resolver=resolver)
    entries = loaded if isinstance(loaded, list) else [loaded]
    scene = trimesh.Scene()
    for entry in entries:
        for part in entry.get("geometry", {"": entry}).values():
            part["process"] = False
        geometry = trimesh.load(entry)
        if len(entries) == 1 and isinstance(geometry, trimesh.Scene):
            return geometry
        scene.add_geometry(geometry)
    return scene


@functools.cache
def _warning_resolver() -> Any:
    """Return a resolver class: it reads files that a mesh file refers to, and warns of too large images.

    trimesh itself omits images that Pillow refuses without a message.
    """
    from PIL import Image
    from trimesh.resolvers import FilePathResolver

    class WarningResolver(FilePathResolver):
        def get(self, name: str) -> Any:
            data = super().get(name)
            if Path(name).suffix.lower() in Image.registered_extensions():
                try:
                    with Image.open(io.BytesIO(data)) as image:
                        width, height = image.size
                        check_pixel_count(width, height, "it")
                except (ValueError, Image.DecompressionBombError) as error:
                    warnings.warn(f"texture '{name}' is not drawn: {error}", stacklevel=2)
                    raise
            return data

    return WarningResolver


def _collada_frame(path: Path) -> tuple[float, str]:
    """Return unit [m] and up axis of a DAE file; the standard's defaults are one metre and y."""
    unit, up_axis = 1.0, "Y_UP"
    try:
        for _, element in ElementTree.iterparse(path):
            tag = element.tag.rsplit("}", 1)[-1]
            if tag == "unit":
                unit = float(element.get("meter", "1"))
            elif tag == "up_axis":
                up_axis = (element.text or up_axis).strip()
            elif tag == "asset":
                break
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(f"mesh file '{path}' is not a valid DAE file: {error}") from error
    if not 0.0 < unit < np.inf:
        raise ValueError(f"mesh file '{path}': <unit meter=\"{unit}\"> must be finite and > 0.")
    if up_axis not in UPRIGHT:
        raise ValueError(
            f"mesh file '{path}': <up_axis> is '{up_axis}', but it must be one of {list(UPRIGHT)}."
        )
    return unit, up_axis


def _skin(
    parts: list[Any], flipped: list[bool], main_color: tuple[float, float, float] | None
) -> MeshSkin | None:
    """Return the colours and textures of the triangles of all parts; None if all have one colour."""
    if main_color is None:
        return None  # no part that matters has a material
    colors, textures, corner_uv, triangle_part = [], [], [], []
    images: dict[int, Texture | None] = {}
    for number, (part, is_flipped) in enumerate(zip(parts, flipped, strict=True)):
        faces = np.asarray(part.faces)
        material = getattr(part.visual, "material", None) if part.visual.defined else None
        texture = None
        uv = getattr(part.visual, "uv", None)
        if material is not None and uv is not None and len(uv) == len(part.vertices):
            texture = _texture(material, images)
            corners = np.asarray(uv, dtype=np.float32)[faces]
            corner_uv.append(corners[:, ::-1] if is_flipped else corners)
        else:
            corner_uv.append(np.zeros((len(faces), 3, 2), dtype=np.float32))
        rgba = _material_color(material) if material is not None else (*main_color, 1.0)
        if texture is not None and not hasattr(material, "baseColorFactor"):
            rgba = (1.0, 1.0, 1.0, rgba[3])  # an image of these formats takes the place of the colour
        colors.append(rgba)
        textures.append(texture)
        triangle_part.append(np.full(len(faces), number, dtype=np.int32))
    has_texture = any(texture is not None for texture in textures)
    if not has_texture and len(set(colors)) == 1 and colors[0][3] == 1.0:
        return None
    kinds: dict[tuple[Any, ...], int] = {}
    kind_of_part = []
    for rgba, texture in zip(colors, textures, strict=True):
        kind_of_part.append(kinds.setdefault((rgba, texture), len(kinds)))
    return MeshSkin(
        corner_uv=np.concatenate(corner_uv) if has_texture else None,
        triangle_part=np.array(kind_of_part, dtype=np.int32)[np.concatenate(triangle_part)],
        part_color=np.array([rgba for rgba, _ in kinds]),
        part_texture=[texture for _, texture in kinds],
    )


def _texture(material: Any, images: dict[int, Texture | None]) -> Texture | None:
    """Return the image of a material, or None if it has no readable one."""
    image = getattr(material, "image", None)
    image = getattr(material, "baseColorTexture", None) if image is None else image
    if image is None:
        return None
    if id(image) not in images:
        try:
            images[id(image)] = Texture(read_pixels(image, "the image"), name=str(material.name))
        except (OSError, ValueError, SyntaxError) as error:
            warnings.warn(f"texture of '{material.name}' cannot be read: {error}", stacklevel=2)
            images[id(image)] = None
    return images[id(image)]


def _material_color(material: Any) -> tuple[float, float, float, float]:
    """Return red, green, blue and alpha of a material, from 0 to 1."""
    red, green, blue, alpha = (float(channel) / 255.0 for channel in material.main_color[:4])
    # Some exporters write a dissolve of 0 for opaque materials, so 0 counts as opaque.
    return red, green, blue, alpha if alpha > 0.0 else 1.0


def _main_color(geometry: object) -> tuple[float, float, float] | None:
    """Return the material's main colour (red, green, blue from 0 to 1), or None where the file gives none."""
    visual = getattr(geometry, "visual", None)
    material = getattr(visual, "material", None)
    if material is None or not getattr(visual, "defined", False):
        return None
    red, green, blue = (float(channel) / 255.0 for channel in material.main_color[:3])
    return red, green, blue
