"""Helpers that scripts for Newton bring along: example assets from git, places of worlds, colours, images."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.builder.inputs import as_vector
from pluriverse.builder.worlds import world_offsets
from pluriverse.geometry import Texture
from pluriverse.newton_names import missing
from pluriverse.types import Axis

__all__ = [
    "bourke_color_map",
    "color_linear_to_srgb",
    "color_srgb_to_linear",
    "compute_world_offsets",
    "download_asset",
    "load_texture",
]

ASSETS = "https://github.com/newton-physics/newton-assets.git"
"""Repository of the assets that Newton's examples use."""
ASSETS_COMMIT = "a96f0973b6ae69c90609f9fafef9d2c1db2d6431"
"""Its commit that Newton 1.8 uses."""
# Parts of the sRGB curve (IEC 61966-2-1): below the bound it is a line.
_SRGB_BOUND, _SRGB_SLOPE, _SRGB_OFFSET, _SRGB_POWER = 0.0031308, 12.92, 0.055, 2.4


def __getattr__(name: str) -> Any:
    raise missing("utils", name, kind="module")


def download_asset(
    asset_folder: str,
    cache_dir: str | Path | None = None,
    force_refresh: bool = False,
    ref: str | None = None,
) -> Path:
    """Return a folder of the repository of Newton's example assets, fetched by git unless it is in the cache.

    Args:
        asset_folder: Folder in the repository, such as `unitree_go2`.
        cache_dir: Folder of the cache; None for that of scene files.
        force_refresh: Taken for scripts that pass it. The content of a commit never changes, and a damaged
            entry of the cache is fetched anew in any case.
        ref: Full id of a commit; None for the one that Newton 1.8 uses. Names of branches and tags are
            refused, since what they stand for changes.

    Raises:
        ValueError: If the folder is no plain relative path, or `ref` is no commit.
        AssetFetchError: If it cannot be fetched, or has no such folder.
    """
    from pydantic import ValidationError

    from pluriverse.scene.asset_cache import AssetFetchError, in_cache
    from pluriverse.scene.git_source import GitSource, checkout

    commit = ASSETS_COMMIT if ref is None else ref
    try:
        source = GitSource(repo=ASSETS, rev=commit, path=asset_folder, sparse=[asset_folder])
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise ValueError(f"download_asset: '{asset_folder}' of commit '{commit}': {reason}") from error
    with in_cache(cache_dir):
        files = checkout(source, ())
    folder = files / asset_folder
    if not folder.is_dir():
        raise AssetFetchError(
            f"there is no folder '{asset_folder}' in {ASSETS} at {commit}. Correct the name, or pass the ref "
            "of a commit that has it."
        )
    return folder


def compute_world_offsets(
    world_count: int, spacing: Sequence[float], up_axis: Axis | str | int = Axis.Z
) -> np.ndarray:
    """Return where `ModelBuilder.replicate` puts worlds with a spacing, shape [world, 3].

    Args:
        world_count: Number of worlds.
        spacing: Distance of neighbours along each axis [m]; the axes with a distance span the grid.
        up_axis: Axis along which the grid is not centred.

    Raises:
        ValueError: If the count is negative, or the spacing is not three finite numbers.
    """
    if world_count < 0:
        raise ValueError(f"compute_world_offsets: world_count is {world_count}, but it must be >= 0.")
    step = as_vector(spacing, "compute_world_offsets: spacing")
    return world_offsets(int(world_count), step, Axis.from_any(up_axis))


def color_srgb_to_linear(color: Sequence[float]) -> tuple[float, ...]:
    """Return a colour with components in [0, 1] of sRGB as linear ones (IEC 61966-2-1)."""
    srgb = _colors("color_srgb_to_linear", color)
    curve = ((srgb + _SRGB_OFFSET) / (1.0 + _SRGB_OFFSET)) ** _SRGB_POWER
    linear = np.where(srgb <= _SRGB_SLOPE * _SRGB_BOUND, srgb / _SRGB_SLOPE, curve)
    return tuple(linear.tolist())


def color_linear_to_srgb(color: Sequence[float]) -> tuple[float, ...]:
    """Return a colour with linear components in [0, 1] as sRGB (IEC 61966-2-1)."""
    linear = _colors("color_linear_to_srgb", color)
    curve = (1.0 + _SRGB_OFFSET) * linear ** (1.0 / _SRGB_POWER) - _SRGB_OFFSET
    srgb = np.where(linear <= _SRGB_BOUND, _SRGB_SLOPE * linear, curve)
    return tuple(srgb.tolist())


def _colors(what: str, color: Sequence[float]) -> np.ndarray:
    """Return the components of a colour.

    Raises:
        ValueError: If one is not from 0 to 1.
    """
    values = np.asarray(color, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0.0) & (values <= 1.0)).all():
        raise ValueError(f"{what}: the colour is {color}, but its components must be numbers from 0 to 1.")
    return values


def bourke_color_map(low: float, high: float, value: float) -> list[float]:
    """Return the colour of a value in a range, from blue over cyan, green and yellow to red.

    Args:
        low: Value that is blue, as all below.
        high: Value that is red, as all above.
        value: The value.

    Raises:
        ValueError: If `high` is not above `low`, or a number is not finite.
    """
    if not (np.isfinite([low, high, value]).all() and high > low):
        raise ValueError(
            f"bourke_color_map: {value} between {low} and {high}: give finite numbers, the lower one first."
        )
    # Linear between five colours at equal distances.
    place = 4.0 * (min(max(value, low), high) - low) / (high - low)
    stops = np.array([(0, 0, 1), (0, 1, 1), (0, 1, 0), (1, 1, 0), (1, 0, 0)], dtype=np.float64)
    return [float(np.interp(place, np.arange(5.0), stops[:, channel])) for channel in range(3)]


def load_texture(texture: str | Path | np.ndarray | None) -> np.ndarray | None:
    """Return red, green, blue and alpha of an image, shape [row, column, 4], `uint8`; None for None.

    Args:
        texture: File, or pixels as `Texture` takes them.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file or the array is no image.
    """
    if texture is None:
        return None
    return np.array((Texture(texture) if isinstance(texture, np.ndarray) else Texture.load(texture)).pixels)
