"""Sensors and cameras of a world, on bodies and joints that the scene or its assets have."""

from typing import Any, Literal

from pydantic import Field

from pluriverse.scene.assembly import Assembly
from pluriverse.scene.bodies import find_body
from pluriverse.scene.errors import FieldError
from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.selectors import find_joint
from pluriverse.scene.values import (
    IDENTITY,
    Count,
    Index,
    Name,
    NotNegative,
    Positive,
    Reference,
    Transform,
    Vector,
)
from pluriverse.types import GeoType


class SensorZoneMapping(SceneMapping):
    """The volume of a `touch` or `insidesite` sensor, in its frame."""

    type: Literal["sphere", "capsule", "ellipsoid", "cylinder", "box"]
    size: Vector = Field(description="m; as shape_scale: radius, half height, or half extents")


class Sensor(SceneMapping):
    """A sensor; `simulation.sensors` measures it under its label."""

    type: Name = Field(description="what it measures, in MuJoCo's word: gyro, accelerometer, jointpos ...")
    label: Name | None = None
    body: Reference | None = Field(default="world", description="body that carries it")
    xform: Transform = Field(default=IDENTITY, description="its frame in the body")
    joint: Reference | None = Field(default=None, description="joint that it is on")
    axis: Index = Field(default=0, description="axis of a joint with several")
    reference_body: Reference | None = Field(default=None, description="body whose frame it measures in")
    reference_xform: Transform = IDENTITY
    zone: SensorZoneMapping | None = None
    parameter: Vector | None = Field(default=None, description="field of a magnetometer")
    cutoff: NotNegative = 0.0
    noise: NotNegative = Field(default=0.0, description="standard deviation")
    delay: NotNegative = Field(default=0.0, description="s")


class SceneCamera(SceneMapping):
    """A camera, for `CameraSensor` and for pictures; it looks along -z, with y up."""

    label: Name | None = None
    body: Reference | None = Field(default="world", description="body that carries it")
    xform: Transform = Field(default=IDENTITY, description="its frame in the body")
    fov: Positive = Field(default=0.785, description="vertical, rad")
    width: Count = 64
    height: Count = 64
    mode: Literal["fixed", "track", "target"] = "fixed"
    target: Reference | None = Field(default=None, description="body that it turns towards")


def add_scene_sensor(assembly: Assembly, sensor: Sensor) -> None:
    """Add a sensor to the world.

    Raises:
        FieldError: There is no such type, body or joint.
        ValueError: A value is out of range, or something that the type needs is missing.
    """
    from pluriverse.builder.sensors import SensorType, SensorZone, add_sensor

    if sensor.type.upper() not in SensorType.__members__:
        words = ", ".join(kind.name.lower() for kind in SensorType)
        raise FieldError(f"there is no sensor {sensor.type!r}; there are {words}", "type")
    options: dict[str, Any] = {}
    if sensor.joint is not None:
        labels, ids = assembly.builder.joint_label, assembly.known_joint_ids()
        options["joint"] = find_joint(sensor.joint, labels, ids, "joint")
    if sensor.reference_body is not None:
        options["reference_body"] = find_body(assembly, sensor.reference_body, "reference_body")
        options["reference_xform"] = sensor.reference_xform.as_list()
    if sensor.zone is not None:
        size = sensor.zone.size
        options["zone"] = SensorZone(GeoType[sensor.zone.type.upper()], (size[0], size[1], size[2]))
    add_sensor(
        assembly.builder,
        sensor.type,
        body=find_body(assembly, sensor.body, "body"),
        xform=sensor.xform.as_list(),
        axis=sensor.axis,
        parameter=sensor.parameter,
        cutoff=sensor.cutoff,
        noise=sensor.noise,
        delay=sensor.delay,
        label=sensor.label,
        **options,
    )


def add_scene_camera(assembly: Assembly, camera: SceneCamera) -> None:
    """Add a camera to the world.

    Raises:
        FieldError: There is no such body.
        ValueError: A value is out of range.
    """
    from pluriverse.builder.cameras import CameraMode

    if camera.mode == "target" and camera.target is None:
        raise FieldError("a camera that turns towards a body needs a 'target'", "mode")
    assembly.builder.add_camera(
        find_body(assembly, camera.body, "body"),
        xform=camera.xform.as_list(),
        fov=camera.fov,
        width=camera.width,
        height=camera.height,
        mode=CameraMode[camera.mode.upper()],
        target=-1 if camera.target is None else find_body(assembly, camera.target, "target"),
        label=camera.label,
    )
