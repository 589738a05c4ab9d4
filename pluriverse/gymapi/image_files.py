"""Image files: images of cameras as pictures."""

from pathlib import Path

import numpy as np

from pluriverse.gymapi.enums import ImageType


def as_picture(image: np.ndarray, kind: ImageType) -> np.ndarray:
    """Return an image as red, green and blue, shape [row, column, 3], uint8.

    Near depths are light, and black means no hit. Each label has its own colour, with black for 0. Optical
    flow is shown as colour, with grey for no motion.
    """
    if kind is ImageType.IMAGE_COLOR:
        return np.ascontiguousarray(image.reshape(*image.shape[:2], -1)[:, :, :3])
    if kind is ImageType.IMAGE_DEPTH:
        depth = -image.astype(np.float64)
        valid = np.isfinite(depth)
        gray = np.zeros(depth.shape)
        if valid.any():
            nearest = max(float(depth[valid].min()), 1.0e-9)
            gray[valid] = 255.0 * nearest / np.maximum(depth[valid], nearest)
        return np.repeat(gray.astype(np.uint8)[:, :, None], 3, axis=2)
    if kind is ImageType.IMAGE_SEGMENTATION:
        label = image.astype(np.int64)
        # Steps of the golden ratio around the circle of hues keep small numbers apart.
        hue = 2.0 * np.pi * (label * 0.6180339887498949 % 1.0)
        parts = [0.5 + 0.45 * np.cos(hue - shift) for shift in (0.0, 2.0 * np.pi / 3.0, 4.0 * np.pi / 3.0)]
        picture = (255.0 * np.stack(parts, axis=2)).astype(np.uint8)
        picture[label == 0] = 0
        return picture
    flow = image.reshape(*image.shape[:2], -1).astype(np.float64)
    most = max(float(np.abs(flow).max()), 1.0)
    shades = 127.5 + 127.5 * flow / most
    blue = np.full(flow.shape[:2], 127.5)
    return np.stack([shades[:, :, 0], shades[:, :, 1], blue], axis=2).astype(np.uint8)


def write_image(call: str, filename: str, picture: np.ndarray) -> None:
    """Write a picture to a file; the format follows from its name, PNG where it has no ending.

    Raises:
        OSError: If the file cannot be written.
        ValueError: If the ending of the name is not that of an image format.
    """
    from pluriverse.render.picture import write_picture

    path = Path(str(filename))
    if not path.suffix:
        path = path.with_suffix(".png")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{call}: there is no folder '{path.parent}' for '{path.name}'. Make it with os.makedirs()."
        )
    try:
        write_picture(path, picture)
    except ValueError as error:
        raise ValueError(f"{call}: {error}") from error
