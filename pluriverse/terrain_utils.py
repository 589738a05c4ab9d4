"""Terrain generators for scripts: heights on a grid as whole numbers, and meshes of them.

Heights are in units of `vertical_scale`, of type int16; rows run along x.
"""

from collections.abc import Sequence

import numpy as np

# Scripts seed the global generator (np.random.seed) to get the same terrain again.
# ruff: noqa: NPY002

__all__ = [
    "SubTerrain",
    "convert_heightfield_to_trimesh",
    "discrete_obstacles_terrain",
    "pyramid_sloped_terrain",
    "pyramid_stairs_terrain",
    "random_uniform_terrain",
    "sloped_terrain",
    "stairs_terrain",
    "stepping_stones_terrain",
    "wave_terrain",
]


# Samples of a patch of terrain: 8192 in each direction.
SAMPLE_COUNT_MAX = 2**26


class SubTerrain:
    """A patch of terrain, level to begin with.

    Args:
        terrain_name: Name.
        width: Number of samples along x.
        length: Number of samples along y.
        vertical_scale: Height of one unit [m].
        horizontal_scale: Distance of samples [m].
    """

    def __init__(
        self,
        terrain_name: str = "terrain",
        width: int = 256,
        length: int = 256,
        vertical_scale: float = 1.0,
        horizontal_scale: float = 1.0,
    ):
        if int(width) < 2 or int(length) < 2 or not (vertical_scale > 0.0 and horizontal_scale > 0.0):
            raise ValueError(
                f"SubTerrain '{terrain_name}': width {width} and length {length} must be at least 2, "
                f"vertical_scale {vertical_scale} and horizontal_scale {horizontal_scale} positive."
            )
        if int(width) * int(length) > SAMPLE_COUNT_MAX:
            raise ValueError(
                f"SubTerrain '{terrain_name}': width {width} times length {length} makes more than "
                f"{SAMPLE_COUNT_MAX:,} samples. Use fewer, or a larger horizontal_scale."
            )
        self.terrain_name = terrain_name
        self.width = int(width)
        self.length = int(length)
        self.vertical_scale = float(vertical_scale)
        self.horizontal_scale = float(horizontal_scale)
        self.height_field_raw = np.zeros((self.width, self.length), dtype=np.int16)

    def units(self, height: float) -> int:
        """Return a height [m] in whole units."""
        return int(height / self.vertical_scale)

    def samples(self, length: float) -> int:
        """Return a horizontal length [m] in samples, at least one."""
        return max(int(length / self.horizontal_scale), 1)


def sloped_terrain(terrain: SubTerrain, slope: float = 1.0) -> SubTerrain:
    """Add a slope along x to the terrain."""
    rise = slope * terrain.horizontal_scale / terrain.vertical_scale
    terrain.height_field_raw += (rise * np.arange(terrain.width))[:, None].astype(np.int16)
    return terrain


def pyramid_sloped_terrain(terrain: SubTerrain, slope: float = 1.0, platform_size: float = 1.0) -> SubTerrain:
    """Add a pyramid of `slope` with a level platform of a size [m] in the middle."""
    x = np.arange(terrain.width)
    y = np.arange(terrain.length)
    inset = np.minimum(np.minimum(x, terrain.width - 1 - x)[:, None], np.minimum(y, terrain.length - 1 - y))
    rise = slope * terrain.horizontal_scale / terrain.vertical_scale
    half = terrain.samples(platform_size) // 2
    limit = max((min(terrain.width, terrain.length) - 1) // 2 - half, 0)
    terrain.height_field_raw += (rise * np.minimum(inset, limit)).astype(np.int16)
    return terrain


def stairs_terrain(terrain: SubTerrain, step_width: float, step_height: float) -> SubTerrain:
    """Add stairs along x; sizes of a step in metres."""
    step = np.arange(terrain.width) // terrain.samples(step_width) + 1
    terrain.height_field_raw += (step * terrain.units(step_height))[:, None].astype(np.int16)
    return terrain


def pyramid_stairs_terrain(
    terrain: SubTerrain, step_width: float, step_height: float, platform_size: float = 1.0
) -> SubTerrain:
    """Add stairs on all sides of a level platform in the middle; sizes in metres."""
    width, height = terrain.samples(step_width), terrain.units(step_height)
    platform = terrain.samples(platform_size)
    low, high = np.zeros(2, dtype=int), np.array([terrain.width, terrain.length])
    level = 0
    while (high - low > platform).all() and (high - low > 2 * width).all():
        low, high, level = low + width, high - width, level + height
        terrain.height_field_raw[low[0] : high[0], low[1] : high[1]] = level
    return terrain


def wave_terrain(terrain: SubTerrain, num_waves: int = 1, amplitude: float = 1.0) -> SubTerrain:
    """Add waves along x and y; `amplitude` [m] from trough to crest of both together."""
    if num_waves > 0:
        size = 0.5 * terrain.units(amplitude)
        x = 2.0 * np.pi * num_waves * np.arange(terrain.width) / terrain.width
        y = 2.0 * np.pi * num_waves * np.arange(terrain.length) / terrain.length
        waves = 0.5 * size * (np.cos(y)[None, :] + np.sin(x)[:, None])
        terrain.height_field_raw += waves.astype(np.int16)
    return terrain


def random_uniform_terrain(
    terrain: SubTerrain,
    min_height: float,
    max_height: float,
    step: float = 1.0,
    downsampled_scale: float | None = None,
) -> SubTerrain:
    """Add random heights in steps [m], drawn at a distance [m] and linear between."""
    distance = terrain.horizontal_scale if downsampled_scale is None else downsampled_scale
    levels = np.arange(terrain.units(min_height), terrain.units(max_height) + 1, max(terrain.units(step), 1))
    extent = terrain.horizontal_scale * np.array([terrain.width, terrain.length])
    counts = np.maximum((extent / distance).astype(int), 2)
    coarse = np.random.choice(levels, counts)
    coarse_x, coarse_y = (np.linspace(0.0, size, count) for size, count in zip(extent, counts, strict=True))
    x, y = np.linspace(0.0, extent[0], terrain.width), np.linspace(0.0, extent[1], terrain.length)
    along_y = np.stack([np.interp(y, coarse_y, row) for row in coarse])
    heights = np.stack([np.interp(x, coarse_x, column) for column in along_y.T], axis=1)
    terrain.height_field_raw += np.rint(heights).astype(np.int16)
    return terrain


def discrete_obstacles_terrain(
    terrain: SubTerrain,
    max_height: float,
    min_size: float,
    max_size: float,
    num_rects: int,
    platform_size: float = 1.0,
) -> SubTerrain:
    """Add random blocks and pits to the terrain, but none to a platform in the middle; sizes in metres."""
    top = terrain.units(max_height)
    heights = np.array([-top, -top // 2, top // 2, top])
    sizes = np.arange(terrain.samples(min_size), terrain.samples(max_size) + 1, 4)
    field = terrain.height_field_raw
    for _ in range(num_rects):
        width, length = int(np.random.choice(sizes)), int(np.random.choice(sizes))
        x = np.random.randint(0, max(terrain.width - width, 1))
        y = np.random.randint(0, max(terrain.length - length, 1))
        field[x : x + width, y : y + length] = np.random.choice(heights)
    _level_platform(terrain, platform_size)
    return terrain


def stepping_stones_terrain(
    terrain: SubTerrain,
    stone_size: float,
    stone_distance: float,
    max_height: float,
    platform_size: float = 1.0,
    depth: float = -10.0,
) -> SubTerrain:
    """Add square stones of random heights over a pit; sizes in metres."""
    size, gap = terrain.samples(stone_size), terrain.samples(stone_distance)
    top = terrain.units(max_height)
    field = terrain.height_field_raw
    field[:, :] = terrain.units(depth)
    for y in range(0, terrain.length, size + gap):
        first = int(np.random.randint(0, size + 1)) - size
        for x in range(first, terrain.width, size + gap):
            field[max(x, 0) : max(x + size, 0), y : y + size] = np.random.randint(-top - 1, top + 1)
    _level_platform(terrain, platform_size)
    return terrain


def _level_platform(terrain: SubTerrain, platform_size: float) -> None:
    """Make the middle level, at height 0."""
    half = terrain.samples(platform_size) // 2
    x, y = terrain.width // 2, terrain.length // 2
    terrain.height_field_raw[max(x - half, 0) : x + half, max(y - half, 0) : y + half] = 0


def convert_heightfield_to_trimesh(
    height_field_raw: np.ndarray,
    horizontal_scale: float,
    vertical_scale: float,
    slope_threshold: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices [m] (float32, [vertex, 3]) and triangles (uint32, [triangle, 3]) of heights.

    Args:
        height_field_raw: Heights, shape [x, y].
        horizontal_scale: Distance of samples [m].
        vertical_scale: Height of one unit [m].
        slope_threshold: Slopes steeper than this become vertical, by moving the lower vertex under the upper
            one; none if None.
    """
    heights = np.asarray(height_field_raw).astype(np.float64)
    rows, columns = heights.shape
    x, y = np.meshgrid(np.arange(rows, dtype=float), np.arange(columns, dtype=float), indexing="ij")
    if slope_threshold is not None:
        limit = slope_threshold * horizontal_scale / vertical_scale
        x += _shift(heights, limit, 0)
        y += _shift(heights, limit, 1)
    vertices = np.stack([x * horizontal_scale, y * horizontal_scale, heights * vertical_scale], axis=-1)
    index = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = (
        part.reshape(-1) for part in (index[:-1, :-1], index[1:, :-1], index[:-1, 1:], index[1:, 1:])
    )
    triangles = np.stack([np.stack([a, d, c], axis=1), np.stack([a, b, d], axis=1)], axis=1).reshape(-1, 3)
    return vertices.reshape(-1, 3).astype(np.float32), triangles.astype(np.uint32)


def _shift(heights: np.ndarray, limit: float, axis: int) -> np.ndarray:
    """Return by how many samples vertices move along an axis, so that steep slopes become vertical."""
    step = np.diff(heights, axis=axis)
    shift = np.zeros_like(heights)
    lower: Sequence[slice] = [slice(None)] * 2
    ahead, behind = list(lower), list(lower)
    ahead[axis], behind[axis] = slice(0, -1), slice(1, None)
    shift[tuple(ahead)] += step > limit
    shift[tuple(behind)] -= step < -limit
    return shift
