"""Camera: where a picture is taken from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pluriverse.types import Axis

# Vertical field of view of pictures [rad]: that of a short telephoto lens, which distorts little.
PICTURE_FOV = np.radians(32.0)


@dataclass(frozen=True)
class Camera:
    """A camera at a place, looking at a point.

    Raises:
        ValueError: If position and target coincide, a value is not finite, or the field of view is not
            between 0 and π.
    """

    position: tuple[float, float, float]
    """Position [m]."""
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Point in the middle of the picture [m]."""
    up: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Direction that points up in the picture."""
    fov: float = PICTURE_FOV
    """Vertical field of view [rad]."""

    def __post_init__(self) -> None:
        for name in ("position", "target", "up"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if value.shape != (3,) or not np.isfinite(value).all():
                raise ValueError(
                    f"Camera: {name} is {getattr(self, name)!r}, but it must be three finite numbers."
                )
            object.__setattr__(self, name, tuple(value.tolist()))
        if not 0.0 < self.fov < np.pi:
            raise ValueError(f"Camera: fov is {self.fov}, but it must be an angle between 0 and pi (rad).")
        if np.linalg.norm(np.subtract(self.target, self.position)) < 1.0e-9:
            raise ValueError(
                f"Camera: position and target are both {self.position}, so it looks nowhere. Move one."
            )
        if not np.linalg.norm(self.up) > 0.0:
            raise ValueError("Camera: up is zero, but it must be a direction.")

    @property
    def rotation(self) -> np.ndarray:
        """Axes of the camera as columns: right, up, backwards. Shape [3, 3]."""
        return look_rotation(np.subtract(self.target, self.position), self.up)


def look_rotation(direction: np.ndarray, up: Sequence[float] = (0.0, 0.0, 1.0)) -> np.ndarray:
    """Return the axes (right, up, backwards) as columns of a camera that looks along a direction."""
    back = -np.asarray(direction, dtype=np.float64)
    back = back / np.linalg.norm(back)
    right = np.cross(up, back)
    if np.linalg.norm(right) < 1.0e-9 * np.linalg.norm(up):
        right = np.cross((0.0, 1.0, 0.0) if abs(back[1]) < 0.9 else (1.0, 0.0, 0.0), back)
    right = right / np.linalg.norm(right)
    return np.stack([right, np.cross(back, right), back], axis=1)


def fitting_camera(
    corners: np.ndarray,
    *,
    aspect: float,
    azimuth: float,
    elevation: float,
    fov: float = PICTURE_FOV,
    fill: float = 0.86,
    up_axis: Axis = Axis.Z,
) -> Camera:
    """Return the camera in a given direction that just sees all points.

    Args:
        corners: The points [m], shape [point, 3].
        aspect: Width of the picture over its height.
        azimuth: Direction of the camera, from x towards y [rad].
        elevation: Its angle above the horizon [rad].
        fov: Vertical field of view [rad].
        fill: Fraction of the picture that the points span.
        up_axis: Axis that points up in the picture. The azimuth is measured from the axis that follows it
            in the cycle x, y, z towards the next.
    """
    away = np.array(
        [
            np.cos(elevation) * np.cos(azimuth),
            np.cos(elevation) * np.sin(azimuth),
            np.sin(elevation),
        ]
    )
    away = np.roll(away, int(up_axis) + 1)  # a cyclic exchange of axes is a rotation
    axes = look_rotation(-away, up_axis.vector)
    local = corners @ axes
    tangent = np.tan(0.5 * fov) * fill
    # Along each axis of the picture a point (x, z) appears at x / (d - z); these are the bounds of all
    # points.
    centre, distance = np.zeros(2), 0.0
    for axis, slope in ((0, tangent * aspect), (1, tangent)):
        high = (local[:, axis] + slope * local[:, 2]).max()
        low = (local[:, axis] - slope * local[:, 2]).min()
        centre[axis] = 0.5 * (high + low)
        distance = max(distance, 0.5 * (high - low) / slope)
    distance = max(distance, local[:, 2].max() + 0.05)
    eye = axes @ np.array([centre[0], centre[1], distance])
    depth = distance - local[:, 2].mean()
    target = eye - max(depth, 1.0e-3) * away
    return Camera(tuple(eye.tolist()), tuple(target.tolist()), up=up_axis.vector, fov=fov)
