"""Appearance: how the surface of a shape looks. Colours, textures and the skin of a mesh, on the host."""

import enum
import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.files import LFS_REMEDY, is_lfs_pointer
from pluriverse.geometry.image_file import read_pixels

# Longest side of a texture [pixel]; larger ones are halved until they fit. Robots fill no more of a picture.
TEXTURE_SIZE_MAX = 2048


class TextureMapping(enum.Enum):
    """How a texture is mapped onto a shape."""

    SURFACE = "surface"
    """By the texture coordinates of a mesh; on other shapes along local z, as a slide is projected."""
    CUBE = "cube"
    """As the six faces of a box around the shape, stacked in one image: +x, -x, +y, -y, +z, -z."""


class Texture:
    """An image that colours a surface. Textures are immutable.

    Args:
        pixels: Image of shape [row, column], or [row, column, channel] with 1, 3 or 4 channels, top row
            first; whole numbers from 0 to 255, or fractions from 0 to 1.
        mapping: How it is laid around a shape.
        name: What the texture is called in messages.

    Raises:
        ValueError: If the pixels are no image.
    """

    def __init__(
        self, pixels: Any, *, mapping: TextureMapping = TextureMapping.SURFACE, name: str = "texture"
    ):
        self.name = name
        """Name of the texture in messages."""
        self.mapping = TextureMapping(mapping)
        """How it is mapped onto a shape."""
        self.pixels: np.ndarray = _checked_pixels(pixels, name)
        """Red, green, blue and alpha, top row first, shape [row, column, 4], uint8, read-only."""
        if self.mapping is TextureMapping.CUBE and self.pixels.shape[0] != 6 * self.pixels.shape[1]:
            raise ValueError(
                f"{name}: a cube texture of {self.pixels.shape[0]} rows and {self.pixels.shape[1]} columns, "
                "but six square faces stacked have six times as many rows as columns."
            )

    @functools.cached_property
    def content_key(self) -> bytes:
        """Digest: equal for textures of equal content."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((self.mapping.value, self.pixels.shape)).encode())
        digest.update(self.pixels.tobytes())
        return digest.digest()

    @classmethod
    def load(cls, path: str | Path) -> "Texture":
        """Return the image of a file (what Pillow reads).

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file cannot be read, or has more than 2**26 pixels.
            ImportError: If Pillow is missing.
        """
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"texture '{path}' does not exist.")
        if is_lfs_pointer(path):
            raise ValueError(f"texture '{path}' is a pointer of Git LFS, not the image. {LFS_REMEDY}")
        try:
            from PIL import Image
        except ImportError as error:
            raise ImportError(
                f"texture '{path}': images are read with Pillow. Install it with: pip install pillow"
            ) from error
        try:
            with Image.open(path) as image:
                return cls(read_pixels(image, "it"), name=str(path))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise ValueError(f"texture '{path}' cannot be read: {error}") from error

    def __repr__(self) -> str:
        return f"Texture({self.name!r}, {self.pixels.shape[1]} x {self.pixels.shape[0]})"


class Appearance:
    """How the surface of a shape reflects light, apart from its colour. Appearances are immutable.

    Args:
        texture: Image that multiplies the colour of the shape, or None.
        texture_repeat: How often the texture is repeated along its two axes: over the texture coordinates or
            the size of the shape, or with `texture_is_uniform` per metre.
        texture_is_uniform: Whether `texture_repeat` counts per metre.
        alpha: Opacity from 0 (not seen) to 1.
        specular: Strength of highlights, from 0 to 1.
        shininess: Sharpness of highlights, from 0 to 1.
        emission: Light that the surface gives off itself, relative to its colour, from 0 up.

    Raises:
        ValueError: If a value is out of range.
    """

    def __init__(
        self,
        *,
        texture: Texture | None = None,
        texture_repeat: Sequence[float] = (1.0, 1.0),
        texture_is_uniform: bool = False,
        alpha: float = 1.0,
        specular: float = 0.5,
        shininess: float = 0.5,
        emission: float = 0.0,
    ):
        if texture is not None and not isinstance(texture, Texture):
            raise TypeError(
                f"Appearance: texture is {texture!r}, but it must be a Texture. Use Texture.load(path)."
            )
        for name, value, most in (
            ("alpha", alpha, 1.0),
            ("specular", specular, 1.0),
            ("shininess", shininess, 1.0),
            ("emission", emission, np.inf),
        ):
            if not 0.0 <= value <= most or not np.isfinite(value):
                raise ValueError(
                    f"Appearance: {name} is {value}, but it must be a number from 0 to {most:g}."
                )
        repeat = np.asarray(texture_repeat, dtype=np.float64)
        if repeat.shape != (2,) or not np.isfinite(repeat).all():
            raise ValueError(
                f"Appearance: texture_repeat is {texture_repeat!r}, but it must be two finite numbers."
            )
        self.texture = texture
        """Image that multiplies the colour, or None."""
        self.texture_repeat = (float(repeat[0]), float(repeat[1]))
        """How often the texture is repeated along its two axes."""
        self.texture_is_uniform = bool(texture_is_uniform)
        """Whether `texture_repeat` counts per metre."""
        self.alpha = float(alpha)
        """Opacity from 0 to 1."""
        self.specular = float(specular)
        """Strength of highlights, from 0 to 1."""
        self.shininess = float(shininess)
        """Sharpness of highlights, from 0 to 1."""
        self.emission = float(emission)
        """Light that the surface gives off itself, relative to its colour."""

    @functools.cached_property
    def content_key(self) -> bytes:
        """Digest: equal for appearances of equal content."""
        numbers = (self.alpha, self.specular, self.shininess, self.emission)
        key = repr((numbers, self.texture_repeat, self.texture_is_uniform)).encode()
        texture = b"" if self.texture is None else self.texture.content_key
        return hashlib.blake2b(key + texture, digest_size=16).digest()

    def __repr__(self) -> str:
        return f"Appearance(alpha={self.alpha:g}, texture={self.texture!r})"


class MeshSkin:
    """Colours and textures of the triangles of a mesh.

    A shape wears the skin of its mesh as long as it has the mesh's own colour (`Mesh.color`): a shape that is
    given another colour is painted over.

    Args:
        corner_uv: Texture coordinates of the corners, (0, 0) at the lower left of the image, shape [triangle,
            3, 2]; None without.
        triangle_part: Part that each triangle belongs to, shape [triangle]; None for one part.
        part_color: Red, green, blue and alpha from 0 to 1 of each part, shape [part, 4].
        part_texture: Texture of each part, or None.

    Raises:
        ValueError: If the arrays do not fit together.
    """

    def __init__(
        self,
        *,
        corner_uv: Any = None,
        triangle_part: Any = None,
        part_color: Any = None,
        part_texture: Sequence[Texture | None] | None = None,
    ):
        self.corner_uv: np.ndarray | None = None
        """Texture coordinates of the corners, shape [triangle, 3, 2], float32, or None."""
        if corner_uv is not None:
            self.corner_uv = np.ascontiguousarray(corner_uv, dtype=np.float32)
            self.corner_uv = np.where(np.isfinite(self.corner_uv), self.corner_uv, np.float32(0.0))
        self.triangle_part: np.ndarray | None = None
        """Part of each triangle, shape [triangle], int32, or None for one part."""
        if triangle_part is not None:
            self.triangle_part = np.ascontiguousarray(triangle_part, dtype=np.int32)
        self.part_color: np.ndarray | None = None
        """Red, green, blue and alpha of each part, shape [part, 4], float32; None leaves it to the shape."""
        if part_color is not None:
            self.part_color = np.ascontiguousarray(part_color, dtype=np.float32).reshape(-1, 4)
        count = 1 if self.part_color is None else len(self.part_color)
        self.part_texture: tuple[Texture | None, ...] = tuple(part_texture or (None,) * count)
        """Texture of each part, or None."""
        if self.part_color is not None and len(self.part_texture) != count:
            raise ValueError(
                f"MeshSkin: {count} colours of parts and {len(self.part_texture)} textures, but there must "
                "be as many of one as of the other."
            )
        last = -1 if self.triangle_part is None else int(self.triangle_part.max(initial=-1))
        if last >= len(self.part_texture) or (last >= 0 and self.triangle_part.min() < 0):  # type: ignore[union-attr]
            raise ValueError(f"MeshSkin: a triangle belongs to part {last}, but there are {count} parts.")

    def check(self, triangle_count: int, name: str) -> None:
        """Check that the skin fits a mesh.

        Raises:
            ValueError: If it is of another number of triangles.
        """
        for what, array, shape in (
            ("corner_uv", self.corner_uv, (triangle_count, 3, 2)),
            ("triangle_part", self.triangle_part, (triangle_count,)),
        ):
            if array is not None and array.shape != shape:
                raise ValueError(
                    f"{name}: {what} of the skin has shape {array.shape}, but the mesh needs {shape}."
                )

    @property
    def has_colors(self) -> bool:
        """Whether the skin has colours or textures, not only texture coordinates."""
        return self.part_color is not None

    @functools.cached_property
    def content_key(self) -> bytes:
        """Digest: equal for skins of equal content."""
        digest = hashlib.blake2b(digest_size=16)
        for array in (self.corner_uv, self.triangle_part, self.part_color):
            digest.update(b"-" if array is None else array.tobytes())
        for texture in self.part_texture:
            digest.update(b"-" if texture is None else texture.content_key)
        return digest.digest()


def _checked_pixels(pixels: Any, name: str) -> np.ndarray:
    array = np.asarray(pixels)
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4) or array.size == 0:
        raise ValueError(
            f"{name}: pixels have shape {array.shape}, but an image has [row, column, channel] with 1, 3 or 4"
            " channels."
        )
    if array.dtype != np.uint8:
        scale = 255.0 if array.dtype.kind == "f" else 1.0
        if not (array.min() * scale > -0.5 and array.max() * scale < 255.5):  # NaN too
            raise ValueError(
                f"{name}: pixels go from {array.min()} to {array.max()}, but they must be whole numbers from "
                "0 to 255, or fractions from 0 to 1."
            )
        array = np.clip(np.rint(array.astype(np.float64) * scale), 0.0, 255.0).astype(np.uint8)
    while (
        max(array.shape[1], array.shape[0] if array.shape[0] != 6 * array.shape[1] else 0) > TEXTURE_SIZE_MAX
    ):
        array = array[::2, ::2]
    if array.shape[2] == 1:
        array = np.repeat(array, 3, axis=2)
    if array.shape[2] == 3:
        array = np.concatenate([array, np.full((*array.shape[:2], 1), 255, dtype=np.uint8)], axis=2)
    array = np.array(array, dtype=np.uint8, order="C")
    array.flags.writeable = False
    return array
