"""Cameras and sensors of an MJCF document, as rows of the namespace `mujoco`: to be read, none measures."""

import dataclasses
from typing import Any

import numpy as np

from pluriverse.builder.cameras import CameraMode
from pluriverse.importers.description import Placement
from pluriverse.importers.frames import Frame, make_frame, quat_from_wxyz
from pluriverse.importers.mjcf_enums import MjObj
from pluriverse.importers.mjcf_source import MjcfSource
from pluriverse.importers.report import ImportReport, ImportSeverity

# Kinds of objects (`mujoco.mjtObj`) that sensors are on, and what they become.
KINDS: dict[int, str] = {
    MjObj.BODY: "body",
    MjObj.XBODY: "body",
    MjObj.JOINT: "joint_dof",
    MjObj.GEOM: "shape",
    MjObj.SITE: "shape",
    MjObj.CAMERA: "mujoco:camera",
}

CAMERA_MODES = (
    CameraMode.FIXED,
    CameraMode.TRACK,
    CameraMode.TRACK,
    CameraMode.TARGET,
    CameraMode.TARGET,
)
"""By mujoco.mjtCamLight."""
DEFAULT_RESOLUTION = (64, 64)


@dataclasses.dataclass(frozen=True)
class SensorElement:
    """A `<sensor>` element as authored."""

    name: str
    type: str
    """The measured quantity, by MuJoCo's name."""
    kind: int
    """Kind of the object it is on (`mujoco.mjtObj`)."""
    object: str
    """Name of that object."""
    reference_kind: int
    """Kind of the object that it measures against."""
    reference: str
    """Name of that object, empty for none."""
    cutoff: float
    noise: float
    delay: float = 0.0
    """Delay of its readings [s]."""
    options: tuple[int, ...] = (0, 0, 0)
    """Bits of the reported data, for types with several; reduction of contacts; number of contacts."""


def take_sensor(sensor: Any) -> SensorElement:
    """Return the contents of an element of a document (`mujoco.MjsSensor`)."""
    return SensorElement(
        sensor.name,
        sensor.type.name.removeprefix("mjSENS_").lower(),
        int(sensor.objtype),
        sensor.objname,
        int(sensor.reftype),
        sensor.refname,
        float(sensor.cutoff),
        float(sensor.noise),
        float(getattr(sensor, "delay", 0.0)),
        tuple(int(value) for value in sensor.intprm[:3]),
    )


def add_cameras(
    builder: Any, source: MjcfSource, placement: Placement, xform: Frame, scale: float
) -> dict[int, int]:
    """Add the cameras; return their rows by their index in the document.

    A camera looks along -z of its frame, with y up.
    """
    model = source.model
    rows = {}
    for camera in range(model.ncam):
        body = int(model.cam_bodyid[camera])
        frame = make_frame(scale * model.cam_pos[camera], quat_from_wxyz(model.cam_quat[camera]))
        body_index = -1 if body == 0 else placement.bodies.get(("body", body))
        if body_index is None:
            continue
        pose = xform @ frame if body == 0 else placement.frames["body", body] @ frame
        target = placement.bodies.get(("body", int(model.cam_targetbodyid[camera])), -1)
        added = builder.add_custom_values(
            {
                "mujoco:camera_label": model.camera(camera).name,
                "mujoco:camera_body": body_index,
                "mujoco:camera_xform": [*pose.position, *pose.quat],
                "mujoco:camera_fovy": float(np.deg2rad(model.cam_fovy[camera])),
                "mujoco:camera_mode": int(model.cam_mode[camera]),
                "mujoco:camera_target": target,
                "mujoco:camera_resolution": model.cam_resolution[camera],
            }
        )
        rows[camera] = added["mujoco:camera_body"]
    return rows


def add_visual_cameras(
    builder: Any,
    source: MjcfSource,
    placement: Placement,
    xform: Frame,
    scale: float,
    report: ImportReport,
) -> None:
    """Add the cameras as by `ModelBuilder.add_camera`, for pictures and sensors."""
    model = source.model
    for camera in range(model.ncam):
        body = int(model.cam_bodyid[camera])
        body_index = -1 if body == 0 else placement.bodies.get(("body", body))
        if body_index is None:
            continue
        name = model.camera(camera).name or f"camera_{camera}"
        frame = make_frame(scale * model.cam_pos[camera], quat_from_wxyz(model.cam_quat[camera]))
        pose = xform @ frame if body == 0 else placement.frames["body", body] @ frame
        mode = CAMERA_MODES[int(model.cam_mode[camera])]
        target = placement.bodies.get(("body", int(model.cam_targetbodyid[camera])), -1)
        if int(model.cam_mode[camera]) in (2, 4):
            report.add(
                "camera that follows a centre of mass",
                name,
                "it follows the origin of the body",
                ImportSeverity.NOTE,
            )
        if mode is CameraMode.TARGET and target < 0:
            mode = CameraMode.FIXED
        fov = float(np.deg2rad(model.cam_fovy[camera]))
        width, height = (int(value) for value in model.cam_resolution[camera])
        if width * height <= 1:
            width, height = DEFAULT_RESOLUTION  # MuJoCo's default is a single pixel
        if not 0.0 < fov < np.pi or int(model.cam_projection[camera]) != 0:
            report.add("orthographic camera", name, "it is left out")
            continue
        builder.add_camera(
            body_index,
            xform=[*pose.position, *pose.quat],
            fov=fov,
            width=width,
            height=height,
            mode=mode,
            target=target,
            label=f"{report.label}/{name}",
        )


def add_sensors(
    builder: Any,
    source: MjcfSource,
    sensors: list[SensorElement],
    placement: Placement,
    cameras: dict[int, int],
) -> None:
    """Add the sensors, with the indices of the entities that they are on, if these are in the model."""
    for sensor in sensors:
        kind, index = _find(source, sensor.kind, sensor.object, placement, cameras)
        reference_kind, reference = _find(source, sensor.reference_kind, sensor.reference, placement, cameras)
        builder.add_custom_values(
            {
                "mujoco:sensor_label": sensor.name,
                "mujoco:sensor_type": sensor.type,
                "mujoco:sensor_object_kind": kind,
                "mujoco:sensor_object": index,
                "mujoco:sensor_object_label": sensor.object,
                "mujoco:sensor_reference_kind": reference_kind,
                "mujoco:sensor_reference": reference,
                "mujoco:sensor_cutoff": sensor.cutoff,
                "mujoco:sensor_noise": sensor.noise,
            }
        )


def _find(
    source: MjcfSource, kind: int, name: str, placement: Placement, cameras: dict[int, int]
) -> tuple[str, int]:
    """Return the kind and the index in the builder of a named object; an empty kind and -1 for none."""
    import mujoco

    index = mujoco.mj_name2id(source.model, kind, name) if kind in KINDS and name else -1
    if index < 0:
        return "", -1
    tables: dict[int, tuple[dict[Any, int], Any]] = {
        MjObj.BODY: (placement.bodies, ("body", index)),
        MjObj.XBODY: (placement.bodies, ("body", index)),
        MjObj.JOINT: (placement.dofs, ("joint", index)),
        MjObj.GEOM: (placement.shapes, ("geom", index)),
        MjObj.SITE: (placement.shapes, ("site", index)),
        MjObj.CAMERA: (cameras, index),
    }
    table, key = tables[kind]
    return (KINDS[kind], table[key]) if key in table else ("", -1)
