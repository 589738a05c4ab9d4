"""Terrain: height fields of ground that legged robots are tried on.

Each function returns a `Heightfield` centred on the origin. Sizes are in metres, lengths are rounded to whole
cells of the grid.
"""

import numpy as np

from pluriverse.geometry.heightfield import Heightfield


def flat_terrain(size: tuple[float, float], *, height: float = 0.0) -> Heightfield:
    """Return level ground.

    Args:
        size: Extent along x and y [m].
        height: Height [m].
    """
    _check_size(size, 1.0)
    return Heightfield(np.full((2, 2), float(height)), 2, 2, 0.5 * size[0], 0.5 * size[1])


def random_uniform_terrain(
    size: tuple[float, float],
    *,
    min_height: float = -0.05,
    max_height: float = 0.05,
    step: float = 0.005,
    resolution: float = 0.1,
    sample_distance: float | None = None,
    seed: int = 0,
) -> Heightfield:
    """Return rough ground: independent heights at coarse points, linear between them.

    Args:
        size: Extent along x and y [m].
        min_height: Least height [m].
        max_height: Greatest height [m].
        step: Heights are multiples of this above `min_height` [m]; 0 for any.
        resolution: Distance of grid points [m].
        sample_distance: Distance of the points with heights of their own [m]; `resolution` if None.
        seed: Seed of the random numbers.

    Raises:
        ValueError: If a value is out of range.
    """
    x, y = _grid(size, resolution)
    if not min_height <= max_height or not step >= 0.0:
        raise ValueError(
            f"random_uniform_terrain: min_height is {min_height} m, max_height {max_height} m and step "
            f"{step} m, but heights must be in order and the step >= 0."
        )
    distance = resolution if sample_distance is None else sample_distance
    coarse_x, coarse_y = _grid(size, distance)
    rng = np.random.default_rng(seed)
    heights = rng.uniform(min_height, max_height, (len(coarse_y), len(coarse_x)))
    if step > 0.0:
        heights = min_height + step * np.floor((heights - min_height) / step)
    along_x = np.stack([np.interp(x, coarse_x, row) for row in heights])
    data = np.stack([np.interp(y, coarse_y, column) for column in along_x.T], axis=1)
    return _heightfield(size, data)


def sloped_terrain(
    size: tuple[float, float], *, slope: float = 0.2, platform: float = 1.0, resolution: float = 0.1
) -> Heightfield:
    """Return a pyramid with a level top in the middle (`slope` < 0: a pit), its border at height 0.

    Args:
        size: Extent along x and y [m].
        slope: Rise over run.
        platform: Width of the level square in the middle [m].
        resolution: Distance of grid points [m].

    Raises:
        ValueError: If a value is out of range.
    """
    x, y = _grid(size, resolution)
    _check_length("sloped_terrain", "platform", platform, zero=True)
    return _heightfield(size, slope * _inset(size, x, y, platform))


def stairs_terrain(
    size: tuple[float, float],
    *,
    step_width: float = 0.3,
    step_height: float = 0.15,
    platform: float = 1.0,
    resolution: float = 0.05,
) -> Heightfield:
    """Return stairs that rise (`step_height` < 0: descend) from all sides to a level square in the middle.

    A height field has no vertical walls: each riser is one cell wide.

    Args:
        size: Extent along x and y [m].
        step_width: Depth of a step [m].
        step_height: Height of a step [m].
        platform: Width of the level square in the middle [m].
        resolution: Distance of grid points [m], at most half the depth of a step.

    Raises:
        ValueError: If a value is out of range.
    """
    x, y = _grid(size, resolution)
    _check_length("stairs_terrain", "step_width", step_width)
    _check_length("stairs_terrain", "platform", platform, zero=True)
    if resolution > 0.5 * step_width:
        raise ValueError(
            f"stairs_terrain: the resolution of {resolution} m leaves no level part of steps of {step_width} "
            "m. Make it at most half a step."
        )
    inset = _inset(size, x, y, platform)
    # Grid points up to rounding on an edge belong to the step above.
    return _heightfield(size, step_height * np.floor(inset / step_width + 1e-6))


def wave_terrain(
    size: tuple[float, float],
    *,
    amplitude: float = 0.1,
    wave_count: float = 4.0,
    resolution: float = 0.05,
) -> Heightfield:
    """Return waves along x and y, z = amplitude / 2 (cos kx + sin ky).

    Args:
        size: Extent along x and y [m].
        amplitude: Greatest height [m].
        wave_count: Waves over the extent.
        resolution: Distance of grid points [m].

    Raises:
        ValueError: If a value is out of range.
    """
    x, y = _grid(size, resolution)
    phase_x, phase_y = (2.0 * np.pi * wave_count * axis / np.ptp(axis) for axis in (x, y))
    return _heightfield(size, 0.5 * amplitude * (np.cos(phase_x)[None, :] + np.sin(phase_y)[:, None]))


def discrete_obstacles_terrain(
    size: tuple[float, float],
    *,
    height: float = 0.1,
    min_width: float = 0.2,
    max_width: float = 0.8,
    count: int = 40,
    platform: float = 1.0,
    resolution: float = 0.05,
    seed: int = 0,
) -> Heightfield:
    """Return level ground with rectangular blocks and pits at random places, except in the middle.

    Args:
        size: Extent along x and y [m].
        height: Greatest height of a block and depth of a pit [m]; each has all or half of it.
        min_width: Least width of an obstacle [m].
        max_width: Greatest width of an obstacle [m].
        count: Number of obstacles.
        platform: Width of the level square in the middle [m].
        resolution: Distance of grid points [m].
        seed: Seed of the random numbers.

    Raises:
        ValueError: If a value is out of range.
    """
    x, y = _grid(size, resolution)
    _check_length("discrete_obstacles_terrain", "min_width", min_width)
    if not min_width <= max_width <= min(size):
        raise ValueError(
            f"discrete_obstacles_terrain: min_width is {min_width} m and max_width {max_width} m, but they "
            f"must be in order and fit the ground of {tuple(size)} m."
        )
    rng = np.random.default_rng(seed)
    data = np.zeros((len(y), len(x)))
    for _ in range(count):
        width = rng.uniform(min_width, max_width, 2)
        corner = rng.uniform(-0.5 * np.asarray(size), 0.5 * np.asarray(size) - width)
        columns = (x >= corner[0]) & (x <= corner[0] + width[0])
        rows = (y >= corner[1]) & (y <= corner[1] + width[1])
        data[np.ix_(rows, columns)] = rng.choice([-height, -0.5 * height, 0.5 * height, height])
    data[np.ix_(np.abs(y) <= 0.5 * platform, np.abs(x) <= 0.5 * platform)] = 0.0
    return _heightfield(size, data)


def _heightfield(size: tuple[float, float], heights: np.ndarray) -> Heightfield:
    rows, columns = heights.shape
    return Heightfield(heights, rows, columns, 0.5 * size[0], 0.5 * size[1])


def _grid(size: tuple[float, float], resolution: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates of grid points along x and y [m]."""
    _check_size(size, resolution)
    columns, rows = (max(2, round(length / resolution) + 1) for length in size)
    return np.linspace(-0.5, 0.5, columns) * size[0], np.linspace(-0.5, 0.5, rows) * size[1]


def _inset(size: tuple[float, float], x: np.ndarray, y: np.ndarray, platform: float) -> np.ndarray:
    """Return how far grid points are from the border, at most as far as a square in the middle [m]."""
    inset = np.minimum(0.5 * size[0] - np.abs(x)[None, :], 0.5 * size[1] - np.abs(y)[:, None])
    return np.clip(inset, 0.0, max(0.5 * (min(size) - platform), 0.0))


def _check_size(size: tuple[float, float], resolution: float) -> None:
    if len(size) != 2 or not all(0.0 < length < np.inf for length in size):
        raise ValueError(f"terrain: size is {size}, but two finite lengths > 0 [m] along x and y are needed.")
    if not 0.0 < resolution < np.inf:
        raise ValueError(f"terrain: resolution is {resolution} m, but it must be finite and > 0.")


def _check_length(function: str, name: str, value: float, *, zero: bool = False) -> None:
    if not (0.0 < value < np.inf or (zero and value == 0.0)):
        raise ValueError(
            f"{function}: {name} is {value} m, but it must be finite and {'>=' if zero else '>'} 0."
        )
