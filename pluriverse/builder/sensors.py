"""Sensors of robots: rows of the custom frequency `sensor:sensor`, copied along with bodies.

A sensor is on a frame of a body, on a joint, or on the world. Its `SensorType` says what it measures. The
names are those of MuJoCo's `<sensor>` elements, and so are the values.
"""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.custom_attribute import CustomAttribute, CustomFrequency
from pluriverse.builder.custom_attributes import (
    add_custom_attribute,
    add_custom_frequency,
    add_custom_rows,
    custom_frequency_count,
)
from pluriverse.builder.inputs import Transform, as_transform
from pluriverse.builder.sensor_sides import SensorContacts, side_values
from pluriverse.builder.sensor_sums import (
    SEGMENT_ATTRIBUTES,
    SEGMENT_FREQUENCY,
    TERM_ATTRIBUTES,
    TERM_FREQUENCY,
    SensorSegment,
    SensorTerm,
    add_segments,
    add_terms,
)
from pluriverse.builder.tables import BuilderTables
from pluriverse.builder.world_scope import check_body
from pluriverse.model import poses
from pluriverse.types import GeoType

NAMESPACE = "sensor"
FREQUENCY = "sensor:sensor"


class SensorType(enum.IntEnum):
    """What a sensor measures. Vectors are in the axes of the sensor's frame unless stated otherwise."""

    ACCELEROMETER = 1
    """Specific force: acceleration of the frame's origin minus gravity [m/s²], 3 numbers."""
    VELOCIMETER = 2
    """Velocity of the frame's origin [m/s], 3 numbers."""
    GYRO = 3
    """Angular velocity [rad/s], 3 numbers."""
    FORCE = 4
    """Force that the parent exerts on the body through its joint [N], 3 numbers."""
    TORQUE = 5
    """Torque likewise, about the frame's origin [N·m], 3 numbers."""
    MAGNETOMETER = 6
    """Magnetic field of the world, 3 numbers."""
    TOUCH = 7
    """Sum of the normal forces of the body's contacts in or behind the zone of the sensor [N], 1 number."""
    RANGEFINDER = 8
    """Distance along +z to the next shape of another body [m], -1 for none, 1 number."""
    CAMPROJECTION = 9
    """Pixel (column, row) at which a camera sees the frame's origin, 2 numbers."""
    JOINTPOS = 10
    """Position of a hinge or slide, or a sum of positions [rad or m], 1 number."""
    JOINTVEL = 11
    """Velocity of the same [rad/s or m/s], 1 number."""
    JOINTACTUATORFRC = 12
    """Force of drives on the same [N·m or N], 1 number."""
    JOINTLIMITPOS = 13
    """Distance to the exceeded limit, negative; 0 within the limits [rad or m], 1 number."""
    JOINTLIMITVEL = 14
    """Its rate of change; 0 within the limits [rad/s or m/s], 1 number."""
    BALLQUAT = 15
    """Orientation of a ball joint, quaternion wxyz, 4 numbers."""
    BALLANGVEL = 16
    """Angular velocity of a ball joint, child axes [rad/s], 3 numbers."""
    FRAMEPOS = 17
    """Position of the frame in the world, or in a reference frame [m], 3 numbers."""
    FRAMEQUAT = 18
    """Orientation likewise, quaternion wxyz, 4 numbers."""
    FRAMEXAXIS = 19
    """x axis of the frame in the world, or in a reference frame, 3 numbers."""
    FRAMEYAXIS = 20
    """y axis likewise, 3 numbers."""
    FRAMEZAXIS = 21
    """z axis likewise, 3 numbers."""
    FRAMELINVEL = 22
    """Velocity of the frame in the world, or relative to a reference frame [m/s], 3 numbers."""
    FRAMEANGVEL = 23
    """Angular velocity likewise [rad/s], 3 numbers."""
    FRAMELINACC = 24
    """Acceleration of the frame's origin minus gravity, world axes [m/s²], 3 numbers."""
    FRAMEANGACC = 25
    """Angular acceleration, world axes [rad/s²], 3 numbers."""
    SUBTREECOM = 26
    """Centre of mass of the body and all its descendants, world axes [m], 3 numbers."""
    SUBTREELINVEL = 27
    """Velocity of that centre of mass, world axes [m/s], 3 numbers."""
    SUBTREEANGMOM = 28
    """Angular momentum about that centre of mass, world axes [kg·m²/s], 3 numbers."""
    INSIDESITE = 29
    """1 if the frame's origin is within the zone of the reference, else 0; 1 number."""
    E_POTENTIAL = 30
    """Potential energy of gravity and springs [J], 1 number."""
    E_KINETIC = 31
    """Kinetic energy [J], 1 number."""
    CLOCK = 32
    """Time since the world was reset [s], 1 number."""
    CONTACT = 33
    """Contacts of a shape, body, subtree or zone, with anything or with another of these; see
    `SensorContacts`."""
    GEOMDIST = 34
    """Signed distance of two shapes or bodies, at most the cutoff [m], 1 number."""
    GEOMNORMAL = 35
    """Unit vector from the closest point of the first one to that of the second, world axes; 0 beyond the
    cutoff; 3 numbers."""
    GEOMFROMTO = 36
    """These two points, world axes [m], 0 beyond the cutoff, 6 numbers."""
    TENDONLIMITPOS = 37
    """Distance of such a sum to the limit that it exceeds, negative; 0 within [m or rad], 1 number."""
    TENDONLIMITVEL = 38
    """Its rate of change; 0 within the limits [m/s or rad/s], 1 number."""

    @property
    def dim(self) -> int:
        """Number of components; 0 for contacts, where the fields decide."""
        return _DIM.get(self, 3)

    @property
    def needs_step(self) -> bool:
        """Whether it measures accelerations or forces, which belong to a step and not to a state."""
        return self in _OF_STEP


_DIM = {
    **dict.fromkeys(
        (
            SensorType.TOUCH,
            SensorType.RANGEFINDER,
            SensorType.JOINTPOS,
            SensorType.JOINTVEL,
            SensorType.JOINTACTUATORFRC,
            SensorType.JOINTLIMITPOS,
            SensorType.JOINTLIMITVEL,
            SensorType.INSIDESITE,
            SensorType.E_POTENTIAL,
            SensorType.E_KINETIC,
            SensorType.CLOCK,
            SensorType.GEOMDIST,
            SensorType.TENDONLIMITPOS,
            SensorType.TENDONLIMITVEL,
        ),
        1,
    ),
    SensorType.CAMPROJECTION: 2,
    SensorType.CONTACT: 0,
    SensorType.GEOMFROMTO: 6,
    SensorType.BALLQUAT: 4,
    SensorType.FRAMEQUAT: 4,
}
_OF_STEP = (
    SensorType.ACCELEROMETER,
    SensorType.FORCE,
    SensorType.TORQUE,
    SensorType.TOUCH,
    SensorType.JOINTACTUATORFRC,
    SensorType.FRAMELINACC,
    SensorType.FRAMEANGACC,
    SensorType.CONTACT,
)
_SIDED_TYPES = (
    SensorType.CONTACT,
    SensorType.GEOMDIST,
    SensorType.GEOMNORMAL,
    SensorType.GEOMFROMTO,
)
_JOINT_TYPES = (
    SensorType.JOINTPOS,
    SensorType.JOINTVEL,
    SensorType.JOINTACTUATORFRC,
    SensorType.JOINTLIMITPOS,
    SensorType.JOINTLIMITVEL,
)
_SUM_TYPES = (
    *_JOINT_TYPES,
    SensorType.TENDONLIMITPOS,
    SensorType.TENDONLIMITVEL,
    SensorType.E_POTENTIAL,
)
_BALL_TYPES = (SensorType.BALLQUAT, SensorType.BALLANGVEL)
_ZONES = (GeoType.SPHERE, GeoType.CAPSULE, GeoType.ELLIPSOID, GeoType.CYLINDER, GeoType.BOX)

_IDENTITY = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
_ATTRIBUTES = (
    ("sensor_world", wp.int32, -1, "world"),
    ("sensor_label", str, "", None),
    ("sensor_type", wp.int32, 0, None),
    ("sensor_dim", wp.int32, 0, None),
    ("sensor_body", wp.int32, -1, "body"),
    ("sensor_xform", wp.transform, _IDENTITY, None),
    ("sensor_is_relative", wp.int32, 0, None),
    ("sensor_reference_body", wp.int32, -1, "body"),
    ("sensor_reference_xform", wp.transform, _IDENTITY, None),
    ("sensor_zone_type", wp.int32, 0, None),
    ("sensor_zone_size", wp.vec3, (0.0, 0.0, 0.0), None),
    ("sensor_coord", wp.int32, -1, "joint_coord"),
    ("sensor_dof", wp.int32, -1, "joint_dof"),
    ("sensor_term", wp.int32, -1, TERM_FREQUENCY),
    ("sensor_term_count", wp.int32, 0, None),
    ("sensor_segment", wp.int32, -1, SEGMENT_FREQUENCY),
    ("sensor_segment_count", wp.int32, 0, None),
    ("sensor_side", wp.int32, 0, None),
    ("sensor_shape", wp.int32, -1, "shape"),
    ("sensor_reference_side", wp.int32, 0, None),
    ("sensor_reference_shape", wp.int32, -1, "shape"),
    ("sensor_fields", wp.int32, 0, None),
    ("sensor_reduce", wp.int32, 0, None),
    ("sensor_slots", wp.int32, 0, None),
    ("sensor_parameter", wp.vec4, (0.0, 0.0, 0.0, 0.0), None),
    ("sensor_cutoff", wp.float32, 0.0, None),
    ("sensor_noise", wp.float32, 0.0, None),
    ("sensor_delay", wp.float32, 0.0, None),
)


@dataclasses.dataclass(frozen=True)
class SensorZone:
    """The volume of a touch or inside sensor: a shape in the frame of the sensor."""

    type: GeoType
    """Sphere, capsule, ellipsoid, cylinder or box."""
    size: tuple[float, float, float]
    """Size as in `Model.shape_scale` [m]."""


def as_sensor_type(value: Any) -> SensorType:
    """Return the type with a name or a number.

    Raises:
        ValueError: If there is no such type.
    """
    if isinstance(value, str) and value.upper() in SensorType.__members__:
        return SensorType[value.upper()]
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        if int(value) in set(SensorType):
            return SensorType(int(value))
    words = ", ".join(kind.name.lower() for kind in SensorType)
    raise ValueError(f"add_sensor: there is no sensor of type {value!r}; there are {words}.")


def add_sensor(
    builder: BuilderTables,
    type: SensorType | str,
    *,
    body: int | None = None,
    xform: Transform | None = None,
    joint: int | None = None,
    axis: int = 0,
    shape: int | None = None,
    reference_body: int | None = None,
    reference_xform: Transform | None = None,
    reference_shape: int | None = None,
    zone: SensorZone | None = None,
    contacts: SensorContacts | None = None,
    terms: Sequence[SensorTerm] | None = None,
    segments: Sequence[SensorSegment] = (),
    parameter: Sequence[float] | None = None,
    cutoff: float = 0.0,
    noise: float = 0.0,
    delay: float = 0.0,
    label: str | None = None,
) -> int:
    """Add a sensor, which `Simulation.sensors` measures in every world: `simulation.sensors[label]`.

    Robots from any file can be given sensors: `builder.add_sensor("gyro", body=report.bodies[0])`.

    Args:
        type: What it measures: a `SensorType`, or its name in either case, as in MJCF.
        body: Body that carries it, -1 or None for the world. For contacts and distances, the first side,
            where -1 means the shapes fixed to the world, and None any shape.
        xform: Frame of the sensor in that body [m, xyzw]; the frame of the body if None.
        joint: Joint that it is on, for `jointpos`, `jointvel`, `jointactuatorfrc`, `jointlimitpos`,
            `jointlimitvel`, `ballquat` and `ballangvel`.
        axis: Axis of a D6 joint.
        shape: Shape in place of `body`, for contacts and distances.
        reference_body: Body whose frame `frame*` sensors measure in, that of the zone of `insidesite`, or
            of the camera of `camprojection`; -1 for the world, None for none. For contacts and distances, the
            second side.
        reference_xform: The frame in that body.
        reference_shape: Shape in place of `reference_body`, for contacts and distances.
        zone: Volume that selects the contacts of `touch` and `contact`, or that `insidesite` tests the
            frame's origin against.
        contacts: What a `contact` sensor measures; number and net force if None.
        terms: Terms of a sum over joint coordinates in place of `joint`; springs of `e_potential`.
        segments: Segments whose lengths such a sum also contains, as for a tendon.
        parameter: The field in the world of `magnetometer`; focal lengths and centre of the image [pixel]
            of `camprojection`; lowest and highest value and margin of `tendonlimit*`; the margin of
            `jointlimit*`.
        cutoff: Largest absolute value of its components, 0 for no bound; not for quaternions, axes and
            contacts. For distances the largest measured one [m]; 0 measures overlaps only.
        noise: Standard deviation of the noise of each sample, in the unit of the sensor.
        delay: Delay of its readings [s].
        label: Name; `TYPE_INDEX` if None.

    Returns:
        Index of the sensor.

    Raises:
        IndexError: If there is no such body.
        ValueError: If a value is out of range, or an argument that the type needs is missing.
    """
    declare_sensors(builder)
    kind = as_sensor_type(type)
    number = custom_frequency_count(builder, FREQUENCY)
    label = f"{kind.name.lower()}_{number}" if label is None else label
    name = f"sensor '{label}' (index {number})"
    if body is not None:
        check_body(builder, body, name)
    if reference_body is not None:
        check_body(builder, reference_body, f"{name}: reference_body")
    for what, value in (("cutoff", cutoff), ("noise", noise), ("delay", delay)):
        if not (np.isfinite(value) and value >= 0.0):
            raise ValueError(f"{name}: {what} is {value}, but it must be a finite number >= 0.")
    values: dict[str, Any] = {
        "label": label,
        "type": int(kind),
        "dim": kind.dim,
        "body": -1 if body is None else int(body),
        "xform": as_transform(xform, f"{name}: xform").tolist(),
        "is_relative": int(reference_body is not None),
        "reference_body": -1 if reference_body is None else int(reference_body),
        "reference_xform": as_transform(reference_xform, f"{name}: reference_xform").tolist(),
        "cutoff": float(cutoff),
        "noise": float(noise),
        "delay": float(delay),
    }
    if parameter is not None:
        values["parameter"] = [*map(float, parameter), 0.0, 0.0, 0.0, 0.0][:4]
    values |= _zone_values(kind, zone, name)
    if kind in _SIDED_TYPES:
        values |= side_values(
            name,
            (body, shape, zone is not None),
            (reference_body, reference_shape),
            shape_count=builder.shape_count,
            contacts=(contacts or SensorContacts()) if kind is SensorType.CONTACT else contacts,
            is_contact=kind is SensorType.CONTACT,
        )
    elif shape is not None or reference_shape is not None or contacts is not None:
        raise ValueError(
            f"{name}: a {kind.name.lower()} takes no shape, reference_shape or contacts; pass body."
        )
    if kind in _SUM_TYPES:
        if terms is None and not segments and kind in _JOINT_TYPES:
            terms = [_joint_term(builder, joint, axis, name)]
        values |= add_terms(builder, terms or ()) | add_segments(builder, segments)
    elif kind in _BALL_TYPES:
        values |= _ball_values(builder, joint, name)
    elif joint is not None:
        raise ValueError(f"{name}: joint is {joint}, but a {kind.name.lower()} is on a body; pass body.")
    rows = add_custom_rows(builder, {f"sensor:sensor_{key}": value for key, value in values.items()})
    return int(rows["sensor:sensor_type"])


def add_sensor_imu(
    builder: BuilderTables,
    body: int,
    *,
    xform: Transform | None = None,
    accelerometer_noise: float = 0.0,
    gyro_noise: float = 0.0,
    delay: float = 0.0,
    label: str = "imu",
) -> tuple[int, int, int]:
    """Add an inertial measurement unit: sensors `LABEL_acc`, `LABEL_gyro` and `LABEL_quat` on one frame.

    Args:
        body: Body that carries it.
        xform: Its frame in the body.
        accelerometer_noise: Standard deviation of the specific force [m/s²].
        gyro_noise: Standard deviation of the angular velocity [rad/s].
        delay: Delay of its readings [s].
        label: First part of the three names.

    Returns:
        Indices of accelerometer, gyro and orientation (`framequat`).

    Raises:
        IndexError: If there is no such body.
        ValueError: If a value is out of range.
    """
    frame: dict[str, Any] = {"body": body, "xform": xform, "delay": delay}
    return (
        add_sensor(builder, "accelerometer", noise=accelerometer_noise, label=f"{label}_acc", **frame),
        add_sensor(builder, "gyro", noise=gyro_noise, label=f"{label}_gyro", **frame),
        add_sensor(builder, "framequat", label=f"{label}_quat", **frame),
    )


def add_sensor_force_torque(
    builder: BuilderTables,
    body: int,
    *,
    xform: Transform | None = None,
    noise: float = 0.0,
    delay: float = 0.0,
    label: str = "wrist",
) -> tuple[int, int]:
    """Add sensors `LABEL_force` and `LABEL_torque` of the load that a body's joint transmits to it.

    Args:
        body: Child body of the joint.
        xform: Frame of the sensor in the body; torques are about its origin.
        noise: Standard deviation [N and N·m].
        delay: Delay of its readings [s].
        label: First part of the two names.

    Returns:
        Indices of both sensors.

    Raises:
        IndexError: If there is no such body.
        ValueError: If a value is out of range.
    """
    frame: dict[str, Any] = {"body": body, "xform": xform, "noise": noise, "delay": delay}
    return (
        add_sensor(builder, "force", label=f"{label}_force", **frame),
        add_sensor(builder, "torque", label=f"{label}_torque", **frame),
    )


def _zone_values(kind: SensorType, zone: SensorZone | None, name: str) -> dict[str, Any]:
    if zone is None:
        if kind in (SensorType.TOUCH, SensorType.INSIDESITE):
            raise ValueError(
                f"{name}: a {kind.name.lower()} needs a zone, for example "
                "zone=SensorZone(GeoType.SPHERE, (0.02, 0, 0))."
            )
        return {}
    shape, size = GeoType(zone.type), np.asarray(zone.size, dtype=np.float64)
    if shape not in _ZONES:
        allowed = ", ".join(one.name.lower() for one in _ZONES)
        raise ValueError(f"{name}: the zone is a {shape.name.lower()}, but it must be a {allowed}.")
    if size.shape != (3,) or not np.isfinite(size).all() or not size[0] > 0.0:
        raise ValueError(f"{name}: the zone has the size {zone.size}, but it needs 3 numbers, in metres.")
    return {"zone_type": int(shape), "zone_size": size.tolist()}


def _joint_term(builder: BuilderTables, joint: int | None, axis: int, name: str) -> SensorTerm:
    """Return the coordinate of a single-axis joint, or of one axis of a joint with several."""
    joint = _checked_joint(builder, joint, name)
    first, first_dof = int(builder.joint_q_start[joint]), int(builder.joint_qd_start[joint])
    linear, angular = (int(count) for count in builder.joint_dof_dim[joint])
    coords = _coord_count(builder, joint)
    if coords != linear + angular or not 0 <= axis < coords:
        raise ValueError(
            f"{name}: joint '{builder.joint_label[joint]}' has no axis {axis} with a position of its own; "
            "choose a hinge, a slide or an axis of a D6 joint, or ballquat for a ball joint."
        )
    return SensorTerm(first + axis, first_dof + axis)


def _coord_count(builder: BuilderTables, joint: int) -> int:
    starts = np.append(np.asarray(builder.joint_q_start), builder.joint_coord_count)
    return int(starts[joint + 1] - starts[joint])


def _checked_joint(builder: BuilderTables, joint: int | None, name: str) -> int:
    if joint is None or not 0 <= int(joint) < builder.joint_count:
        raise ValueError(
            f"{name}: joint is {joint}, but it must be the index of one of the {builder.joint_count} joints."
        )
    return int(joint)


def _ball_values(builder: BuilderTables, joint: int | None, name: str) -> dict[str, Any]:
    joint = _checked_joint(builder, joint, name)
    if _coord_count(builder, joint) != 4:
        raise ValueError(f"{name}: joint '{builder.joint_label[joint]}' is no ball joint; pass one that is.")
    return {"coord": int(builder.joint_q_start[joint]), "dof": int(builder.joint_qd_start[joint])}


def declare_sensors(builder: BuilderTables) -> None:
    """Declare the rows of sensors; declaring them again changes nothing."""
    if FREQUENCY in builder.custom_frequencies:
        return
    add_custom_frequency(builder, CustomFrequency("term", namespace=NAMESPACE))
    add_custom_frequency(builder, CustomFrequency("segment", namespace=NAMESPACE))
    add_custom_frequency(
        builder, CustomFrequency("sensor", namespace=NAMESPACE, label_attribute="sensor:sensor_label")
    )
    for frequency, attributes in (
        (TERM_FREQUENCY, TERM_ATTRIBUTES),
        (SEGMENT_FREQUENCY, SEGMENT_ATTRIBUTES),
        (FREQUENCY, _ATTRIBUTES),
    ):
        for name, dtype, default, references in attributes:
            add_custom_attribute(
                builder,
                CustomAttribute(
                    name, dtype, frequency, namespace=NAMESPACE, references=references, default=default
                ),
            )


def sensor_counts(builder: BuilderTables) -> tuple[int, int]:
    """Return the number of sensors of a builder, and of the segments that they measure."""
    if FREQUENCY not in builder.custom_frequencies:
        return 0, 0
    return custom_frequency_count(builder, FREQUENCY), custom_frequency_count(builder, SEGMENT_FREQUENCY)


def move_sensor_copies(builder: BuilderTables, offsets: np.ndarray, first: tuple[int, int]) -> None:
    """Move the frames of world-fixed sensors with their copies.

    Args:
        builder: Builder.
        offsets: Pose of each copy, shape [copy, 7].
        first: `sensor_counts` before there were copies.
    """
    for row, count, prefix in zip(first, sensor_counts(builder), ("sensor", "segment"), strict=True):
        if count <= row or not len(offsets):
            continue
        for part in ("", "reference_"):
            column = builder.custom_attributes[f"sensor:{prefix}_{part}xform"].column
            column.grow(count)
            rows = column.rows[row:].reshape(len(offsets), -1, 7)
            bodies = builder.custom_attributes[f"sensor:{prefix}_{part}body"].column
            loose = bodies.resolved(count)[row:].reshape(len(offsets), -1) < 0
            moved = poses.compose(offsets[:, None, :], rows)
            rows[loose] = moved[loose]
            column.given[row:] = True


def read_columns(model: Any) -> Mapping[str, np.ndarray] | None:
    """Return the columns of the sensors of a model on the host, by their names; None for no sensors."""
    if not model.custom_frequency_counts.get(FREQUENCY, 0):
        return None
    columns: dict[str, np.ndarray] = {}
    for attributes in (_ATTRIBUTES, TERM_ATTRIBUTES, SEGMENT_ATTRIBUTES):
        for name, dtype, _, _ in attributes:
            values = model.custom_arrays[f"{NAMESPACE}:{name}"]
            columns[name.removeprefix("sensor_")] = (
                np.array(values, dtype=object) if dtype is str else values.numpy()
            )
    return columns
