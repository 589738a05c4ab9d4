"""Sensors of robots, and cameras and rays in every world of a batch."""

from typing import Any

from pluriverse.builder.cameras import CameraMode
from pluriverse.builder.sensor_sides import SensorContacts
from pluriverse.builder.sensors import SensorType, SensorZone
from pluriverse.newton_names import missing
from pluriverse.sensors.camera import CameraOutput, CameraSensor
from pluriverse.sensors.contact_sensor import SensorContact
from pluriverse.sensors.frame_sensors import SensorFrameTransform, SensorIMU
from pluriverse.sensors.model_sensors import ModelSensors
from pluriverse.sensors.patterns import grid_pattern, lidar_pattern
from pluriverse.sensors.rays import RayAlignment, RaySensor, RayVisibility

__all__ = [
    "CameraMode",
    "CameraOutput",
    "CameraSensor",
    "ModelSensors",
    "RayAlignment",
    "RaySensor",
    "RayVisibility",
    "SensorContact",
    "SensorContacts",
    "SensorFrameTransform",
    "SensorIMU",
    "SensorType",
    "SensorZone",
    "grid_pattern",
    "lidar_pattern",
]


def __getattr__(name: str) -> Any:
    raise missing("sensors", name, kind="module")
