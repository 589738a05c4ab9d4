"""Ray patterns: origins and directions of the rays of a sensor, in its own axes."""

from collections.abc import Sequence

import numpy as np


def grid_pattern(
    size: Sequence[float] = (1.6, 1.0),
    resolution: float = 0.1,
    *,
    direction: Sequence[float] = (0.0, 0.0, -1.0),
) -> tuple[np.ndarray, np.ndarray]:
    """Return parallel rays on a grid around the sensor, such as those of a height scan.

    Args:
        size: Extent along x and y [m].
        resolution: Spacing of the rays [m].
        direction: Their direction.

    Returns:
        Origins [m] and directions, shape [ray, 3], x fastest.

    Raises:
        ValueError: If a length is not positive, or the direction is zero.
    """
    if len(size) != 2 or not all(0.0 <= length < np.inf for length in size) or not 0.0 < resolution < np.inf:
        raise ValueError(
            f"grid_pattern: size is {size} and resolution {resolution}, but they must be two lengths >= 0 "
            "and one > 0 (m)."
        )
    way = np.asarray(direction, dtype=np.float64)
    if way.shape != (3,) or not 0.0 < np.linalg.norm(way) < np.inf:
        raise ValueError(f"grid_pattern: direction is {direction}, but it must be a vector other than 0.")
    axes = [
        resolution * (np.arange(count) - 0.5 * (count - 1))
        for count in (int(length / resolution + 1e-6) + 1 for length in size)
    ]
    y, x = np.meshgrid(axes[1], axes[0], indexing="ij")
    origins = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
    return origins, np.tile(way / np.linalg.norm(way), (len(origins), 1))


def lidar_pattern(
    *,
    channels: int = 16,
    vertical: tuple[float, float] = (-np.pi / 12, np.pi / 12),
    horizontal: tuple[float, float] = (-np.pi, np.pi),
    columns: int = 360,
) -> tuple[np.ndarray, np.ndarray]:
    """Return rays from one point in all directions, such as those of a spinning lidar.

    Args:
        channels: Number of vertical angles.
        vertical: Lowest and highest angle above the xy plane [rad].
        horizontal: First and last angle from x towards y [rad]; for a full revolution the last one is
            omitted.
        columns: Rays per channel.

    Returns:
        Origins [m] and directions, shape [channels * columns, 3], columns fastest.

    Raises:
        ValueError: If a count is less than 1, or angles are not two finite numbers.
    """
    for name, count in (("channels", channels), ("columns", columns)):
        if not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"lidar_pattern: {name} is {count!r}, but it must be a whole number, 1 or more.")
    for name, angles in (("vertical", vertical), ("horizontal", horizontal)):
        if np.shape(angles) != (2,) or not np.isfinite(angles).all():
            raise ValueError(f"lidar_pattern: {name} is {angles!r}, but it must be two finite angles [rad].")
    is_full = abs(abs(horizontal[1] - horizontal[0]) - 2.0 * np.pi) < 1.0e-6
    azimuth = np.linspace(*horizontal, columns, endpoint=not is_full)
    elevation = np.linspace(*vertical, channels) if channels > 1 else np.array([0.5 * sum(vertical)])
    e, a = np.meshgrid(elevation, azimuth, indexing="ij")
    directions = np.stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)], axis=-1).reshape(-1, 3)
    return np.zeros_like(directions), directions
