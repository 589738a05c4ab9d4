"""Sensors: cameras and rays that look into every world of a batch."""

from pluriverse.builder.cameras import CameraMode
from pluriverse.sensors.camera import CameraOutput, CameraSensor
from pluriverse.sensors.patterns import grid_pattern, lidar_pattern
from pluriverse.sensors.rays import RayAlignment, RaySensor, RayVisibility

__all__ = [
    "CameraMode",
    "CameraOutput",
    "CameraSensor",
    "RayAlignment",
    "RaySensor",
    "RayVisibility",
    "grid_pattern",
    "lidar_pattern",
]
