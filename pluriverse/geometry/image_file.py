"""Image files: limits of their unpacked size. A file of a few kilobytes may unpack to gigabytes."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

# Pixels of an image: 8192 in each direction, which are 256 MiB as red, green, blue and alpha.
PIXEL_COUNT_MAX = 2**26
# A PNG file begins with this, the length and name of its first part, then width and height.
_PNG_START = b"\x89PNG\r\n\x1a\n"
_PNG_SIZE_PLACE = 16


def check_pixel_count(width: int, height: int, name: str) -> None:
    """Raise if an image has too many pixels.

    Raises:
        ValueError: If it has.
    """
    if width * height > PIXEL_COUNT_MAX:
        raise ValueError(
            f"{name} has {width} x {height} pixels, more than {PIXEL_COUNT_MAX:,}. Scale the image down."
        )


def read_pixels(image: Any, name: str) -> np.ndarray:
    """Return red, green, blue and alpha of a `PIL.Image`, shape [row, column, 4].

    Raises:
        OSError: If the file is damaged.
        ValueError: If it is damaged, or has too many pixels.
    """
    width, height = image.size
    check_pixel_count(width, height, name)
    return np.asarray(image.convert("RGBA"))


def check_png(source: Path | bytes, name: str) -> None:
    """Raise if a file or its content is a PNG image of too many pixels. Nothing is unpacked.

    Raises:
        ValueError: If it is.
    """
    if isinstance(source, bytes):
        head = source[: _PNG_SIZE_PLACE + 8]
    else:
        try:
            with source.open("rb") as file:
                head = file.read(_PNG_SIZE_PLACE + 8)
        except OSError:
            return  # reading it reports what is wrong with it
    if head.startswith(_PNG_START) and len(head) == _PNG_SIZE_PLACE + 8:
        width, height = struct.unpack_from(">II", head, _PNG_SIZE_PLACE)
        check_pixel_count(width, height, name)
