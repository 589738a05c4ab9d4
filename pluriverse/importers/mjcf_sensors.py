"""Sensors of an MJCF document, as those of `ModelBuilder.add_sensor`; the rest is reported with reasons."""

import dataclasses
from collections.abc import Collection
from typing import Any

import numpy as np

from pluriverse.builder.sensor_sides import CONTACT_FIELDS, CONTACT_REDUCTIONS, SensorContacts
from pluriverse.builder.sensor_sums import SensorSegment, SensorTerm
from pluriverse.builder.sensors import SensorType, SensorZone, add_sensor
from pluriverse.importers.description import Placement
from pluriverse.importers.frames import Frame, make_frame, quat_from_wxyz
from pluriverse.importers.mjcf_enums import MjGeom, MjJoint, MjObj, MjTrn, MjWrap
from pluriverse.importers.mjcf_observers import SensorElement
from pluriverse.importers.mjcf_source import MjcfSource
from pluriverse.importers.mjcf_switches import is_switched_off
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.types import GeoType

GEOM_TYPES: dict[int, GeoType] = {
    MjGeom.SPHERE: GeoType.SPHERE,
    MjGeom.CAPSULE: GeoType.CAPSULE,
    MjGeom.ELLIPSOID: GeoType.ELLIPSOID,
    MjGeom.CYLINDER: GeoType.CYLINDER,
    MjGeom.BOX: GeoType.BOX,
}
FRAME_TABLES: dict[int, str] = {MjObj.GEOM: "geom", MjObj.SITE: "site", MjObj.CAMERA: "cam"}
"""Beginnings of the names of the arrays with the frames of objects."""
RENAMED = {
    "tendonpos": SensorType.JOINTPOS,
    "tendonvel": SensorType.JOINTVEL,
    "actuatorpos": SensorType.JOINTPOS,
    "actuatorvel": SensorType.JOINTVEL,
    "actuatorfrc": SensorType.JOINTACTUATORFRC,
    "jointactfrc": SensorType.JOINTACTUATORFRC,
}
"""Types that measure the same, by MuJoCo's name."""
SIDED = (SensorType.CONTACT, SensorType.GEOMDIST, SensorType.GEOMNORMAL, SensorType.GEOMFROMTO)
"""Types that concern the shapes of two sides."""
UNREAD = {
    "jointlimitfrc": "solvers do not tell the forces of limits one by one",
    "tendonlimitfrc": "solvers do not tell the forces of limits one by one",
    "tendonactfrc": "the forces of actuators on tendons stay inside SolverMuJoCo",
    "tactile": "there is no field of touch over a mesh",
    "user": "what it measures is code of a program that uses the file",
    "plugin": "plugins do not run",
}
"""Why a type is not measured, by MuJoCo's name."""


class _UnreadError(Exception):
    """Why a sensor is not measured."""


@dataclasses.dataclass
class _Frame:
    """A frame of the document in the builder."""

    body: int
    xform: list[float]


class SensorReader:
    """Adds the sensors of a document to a builder.

    Args:
        builder: Builder that has the bodies and joints of the document.
        source: The document.
        placement: Where these are.
        pose: Where the world frame of the document is.
        scale: Factor on lengths.
        drives: Actuators that are drives of joints.
        report: Report of the import.
    """

    def __init__(
        self,
        builder: Any,
        source: MjcfSource,
        placement: Placement,
        pose: Frame,
        scale: float,
        drives: Collection[int],
        report: ImportReport,
    ):
        self._builder, self._model, self._placement = builder, source.model, placement
        self._pose, self._scale, self._report = pose, scale, report
        self._drives = drives
        self._is_merged = not builder.is_for_mujoco  # all that acts on a joint is one drive

    def add(self, sensors: list[SensorElement]) -> None:
        """Add those that can be measured, and report the others with the reason."""
        for number, sensor in enumerate(sensors):
            name = sensor.name or f"{sensor.type}_{number}"
            try:
                self._add(sensor, name)
            except _UnreadError as reason:
                self._report.add(
                    f"sensor {sensor.type}", name, f"it is not read: {reason}", ImportSeverity.NOTE
                )

    def _add(self, sensor: SensorElement, name: str) -> None:
        word = sensor.type
        if word in UNREAD:
            raise _UnreadError(UNREAD[word])
        kind = RENAMED.get(word) or SensorType.__members__.get(word.upper())
        if kind is None:
            raise _UnreadError("this type is not known")
        options: dict[str, Any] = {}
        if kind in SIDED:
            options |= self._sides(sensor, kind)
        elif sensor.kind == MjObj.JOINT:
            options |= self._joint(sensor, kind)
        elif sensor.kind == MjObj.TENDON:
            tendon = self._index(MjObj.TENDON, sensor.object)
            is_limit = kind in (SensorType.TENDONLIMITPOS, SensorType.TENDONLIMITVEL)
            options |= self._tendon_limit(tendon) if is_limit else self._tendon(tendon, 1.0)
        elif sensor.kind == MjObj.ACTUATOR:
            options |= self._actuator(self._index(MjObj.ACTUATOR, sensor.object), word)
        elif sensor.kind in (MjObj.BODY, MjObj.XBODY, MjObj.GEOM, MjObj.SITE, MjObj.CAMERA):
            frame = self._frame(sensor.kind, sensor.object)
            options |= {"body": frame.body, "xform": frame.xform}
        if sensor.reference and kind not in SIDED:
            frame = self._frame(sensor.reference_kind, sensor.reference)
            options |= {"reference_body": frame.body, "reference_xform": frame.xform}
        if kind is SensorType.TOUCH:
            options["zone"] = self._zone(sensor.object)
        elif kind is SensorType.INSIDESITE:
            options["zone"] = self._zone(sensor.reference)
        elif kind is SensorType.MAGNETOMETER:
            field = np.asarray(self._model.opt.magnetic, dtype=np.float64)
            options["parameter"] = self._pose.matrix @ field
        elif kind is SensorType.CAMPROJECTION:
            options["parameter"] = self._lens(sensor.reference)
        elif kind is SensorType.E_POTENTIAL:
            if np.any(self._model.tendon_stiffness):
                raise _UnreadError("the energy of springs of tendons stays inside SolverMuJoCo")
            options["terms"] = self._springs()
        elif kind is SensorType.E_KINETIC and np.any(self._model.tendon_armature):
            raise _UnreadError("the energy of the armature of tendons stays inside SolverMuJoCo")
        elif kind is SensorType.RANGEFINDER and (
            sensor.kind != MjObj.SITE or sensor.options[0] not in (0, 1)
        ):
            raise _UnreadError("a range finder has one ray and tells its distance; use a CameraSensor")
        add_sensor(
            self._builder,
            kind,
            cutoff=sensor.cutoff,
            noise=sensor.noise,
            delay=sensor.delay,
            label=f"{self._report.label}/{name}",
            **options,
        )

    def _index(self, kind: int, name: str) -> int:
        import mujoco

        index = mujoco.mj_name2id(self._model, kind, name) if name else -1
        if index < 0:
            raise _UnreadError(f"there is no '{name}' (any more)")
        return int(index)

    def _frame(self, kind: int, name: str) -> _Frame:
        """Return a body and the pose of a frame on it."""
        model, index = self._model, self._index(MjObj.XBODY if kind == MjObj.BODY else kind, name)
        if kind in (MjObj.BODY, MjObj.XBODY):
            body = index
            local = (model.body_ipos[index], model.body_iquat[index]) if kind == MjObj.BODY else None
        else:
            table = FRAME_TABLES.get(kind)
            if table is None:
                raise _UnreadError(f"'{name}' is nothing with a frame")
            if kind == MjObj.CAMERA and int(model.cam_mode[index]) != 0:
                raise _UnreadError(f"camera '{name}' turns by itself")
            body = int(getattr(model, f"{table}_bodyid")[index])
            local = (getattr(model, f"{table}_pos")[index], getattr(model, f"{table}_quat")[index])
        body_index = -1 if body == 0 else self._placement.bodies.get(("body", body))
        if body_index is None:
            raise _UnreadError(f"the body of '{name}' was left out")
        frame = self._pose if body == 0 else self._placement.frames["body", body]
        if local is not None:
            frame = frame @ make_frame(self._scale * local[0], quat_from_wxyz(local[1]))
        return _Frame(body_index, [*frame.position, *frame.quat])

    def _sides(self, sensor: SensorElement, kind: SensorType) -> dict[str, Any]:
        """Return the sides of a sensor of contacts or distances, and what it measures."""
        options: dict[str, Any] = {}
        for prefix, what, name in (
            ("", sensor.kind, sensor.object),
            ("reference_", sensor.reference_kind, sensor.reference),
        ):
            if not name:
                continue
            if what == MjObj.SITE:
                frame = self._frame(MjObj.SITE, name)
                options |= {"body": frame.body, "xform": frame.xform, "zone": self._zone(name)}
            elif what == MjObj.GEOM:
                shape = self._placement.shapes.get(("geom", self._index(MjObj.GEOM, name)))
                if shape is None:
                    raise _UnreadError(f"geom '{name}' was left out")
                options[f"{prefix}shape"] = shape
            else:
                options[f"{prefix}body"] = self._frame(MjObj.XBODY, name).body
        if kind is SensorType.CONTACT:
            bits, reduce, slots = sensor.options
            words = list(CONTACT_FIELDS)
            if bits >> len(words):
                raise _UnreadError("velocities of contacts are not told; read those of bodies")
            options["contacts"] = SensorContacts(
                tuple(word for frame, word in enumerate(words) if bits >> frame & 1),
                CONTACT_REDUCTIONS[reduce],
                slots,
                is_subtree=sensor.kind == MjObj.XBODY,
                is_reference_subtree=sensor.reference_kind == MjObj.XBODY,
            )
        return options

    def _zone(self, site: str) -> SensorZone:
        index = self._index(MjObj.SITE, site)
        kind = GEOM_TYPES.get(int(self._model.site_type[index]))
        if kind is None:
            raise _UnreadError(f"site '{site}' has no volume")
        size = self._scale * np.asarray(self._model.site_size[index], dtype=np.float64)
        return SensorZone(kind, (float(size[0]), float(size[1]), float(size[2])))

    def _lens(self, camera: str) -> list[float]:
        """Return focal lengths and centre of the image of a camera [pixel]."""
        index = self._index(MjObj.CAMERA, camera)
        width, height = (float(value) for value in self._model.cam_resolution[index])
        sensor_size = np.asarray(self._model.cam_sensorsize[index], dtype=np.float64)
        if sensor_size.any():
            focal, principal = self._model.cam_intrinsic[index][:2], self._model.cam_intrinsic[index][2:]
            pixels = np.array([width, height]) / sensor_size
            return [
                float(focal[0] * pixels[0]),
                float(focal[1] * pixels[1]),
                0.5 * width - float(principal[0] * pixels[0]),
                0.5 * height - float(principal[1] * pixels[1]),
            ]
        focal_length = 0.5 * height / np.tan(0.5 * np.deg2rad(float(self._model.cam_fovy[index])))
        return [focal_length, focal_length, 0.5 * width, 0.5 * height]

    def _joint(self, sensor: SensorElement, kind: SensorType) -> dict[str, Any]:
        index = self._index(MjObj.JOINT, sensor.object)
        joint = self._placement.joints.get(("joint", index))
        if joint is None:
            raise _UnreadError(f"joint '{sensor.object}' was left out")
        if kind in (SensorType.BALLQUAT, SensorType.BALLANGVEL):
            return {"joint": joint}
        if sensor.type != "jointactfrc":
            margin = float(np.ravel(self._model.jnt_margin[index])[0])
            return {"terms": [self._term(index, 1.0)], "parameter": [margin]}
        acting = self._actuators_of(index) + self._actuators_around(index)
        if not acting:
            return {"terms": []}
        self._check_drives(acting, sensor.object, index)
        return {"terms": [self._term(index, 1.0)]}

    def _term(self, joint: int, coefficient: float) -> SensorTerm:
        model, placement = self._model, self._placement
        joint_index, dof = placement.joints.get(("joint", joint)), placement.dofs.get(("joint", joint))
        name = model.joint(joint).name or f"joint {joint}"
        if joint_index is None or dof is None:
            raise _UnreadError(f"joint '{name}' was left out")
        if int(model.jnt_type[joint]) not in (MjJoint.SLIDE, MjJoint.HINGE):
            raise _UnreadError(f"joint '{name}' has no single position")
        within = dof - int(self._builder.joint_qd_start[joint_index])
        return SensorTerm(int(self._builder.joint_q_start[joint_index]) + within, dof, coefficient)

    def _tendon(self, tendon: int, factor: float) -> dict[str, Any]:
        """Return the joint terms, or the segments between sites, that make up a tendon."""
        model = self._model
        first = int(model.tendon_adr[tendon])
        wraps = list(range(first, first + int(model.tendon_num[tendon])))
        kinds = [int(model.wrap_type[wrap]) for wrap in wraps]
        if any(kind == MjWrap.JOINT for kind in kinds):
            return {
                "terms": [
                    self._term(int(model.wrap_objid[wrap]), factor * float(model.wrap_prm[wrap]))
                    for wrap in wraps
                ]
            }
        if not set(kinds) <= {MjWrap.PULLEY, MjWrap.SITE}:
            raise _UnreadError("the way of a tendon round a sphere or a cylinder stays inside SolverMuJoCo")
        segments, before, weight = [], None, factor
        for wrap, kind in zip(wraps, kinds, strict=True):
            if kind == MjWrap.PULLEY:
                weight, before = factor / float(model.wrap_prm[wrap]), None
                continue
            frame = self._frame(MjObj.SITE, model.site(int(model.wrap_objid[wrap])).name)
            if before is not None:
                ends = [(float(p[0]), float(p[1]), float(p[2])) for p in (before.xform, frame.xform)]
                segments.append(SensorSegment(before.body, ends[0], frame.body, ends[1], weight))
            before = frame
        return {"segments": segments}

    def _tendon_limit(self, tendon: int) -> dict[str, Any]:
        """Return the parts of a tendon, and its limits; none if it has no limits."""
        model = self._model
        if not bool(model.tendon_limited[tendon]):
            return {"terms": [], "parameter": [-np.inf, np.inf, 0.0]}
        limits = np.asarray(model.tendon_range[tendon], dtype=np.float64)
        margin = float(np.ravel(model.tendon_margin[tendon])[0])
        parts = self._tendon(tendon, 1.0)
        scale = self._scale if "segments" in parts else 1.0
        return parts | {"parameter": [scale * float(limits[0]), scale * float(limits[1]), scale * margin]}

    def _actuator(self, actuator: int, word: str) -> dict[str, Any]:
        model = self._model
        target, gear = int(model.actuator_trnid[actuator, 0]), self._gear(actuator)
        transmission = int(model.actuator_trntype[actuator])
        if word == "actuatorfrc":
            if is_switched_off(model, actuator):
                raise _UnreadError("the group of its actuator is disabled, so it exerts nothing")
            if transmission != MjTrn.JOINT:
                raise _UnreadError("the forces of actuators that are no drives stay inside SolverMuJoCo")
            acting = self._actuators_of(target)
            self._check_drives(acting, model.joint(target).name, target)
            if len(acting) > 1 or gear == 0.0:
                raise _UnreadError("several actuators on a joint are one drive, of which the sum is known")
            return {"terms": [self._term(target, 1.0 / gear)]}
        if transmission == MjTrn.TENDON:
            return self._tendon(target, gear)
        if transmission != MjTrn.JOINT:
            raise _UnreadError("the lengths of actuators on sites and bodies stay inside SolverMuJoCo")
        return {"terms": [self._term(target, gear)]}

    def _gear(self, actuator: int) -> float:
        rows = getattr(self._model, "actuator_outadr", None)
        return float(self._model.actuator_gear[actuator if rows is None else int(rows[actuator])][0])

    def _actuators_of(self, joint: int) -> list[int]:
        """Return the actuators on a joint."""
        model = self._model
        return [
            actuator
            for actuator in range(len(model.actuator_trntype))
            if int(model.actuator_trntype[actuator]) in (MjTrn.JOINT, MjTrn.JOINT_IN_PARENT)
            and int(model.actuator_trnid[actuator, 0]) == joint
            and not is_switched_off(model, actuator)
        ]

    def _actuators_around(self, joint: int) -> list[int]:
        """Return the actuators on tendons, sites and bodies that may move a joint."""
        model, result = self._model, []
        moved = int(model.jnt_bodyid[joint])
        for actuator in range(len(model.actuator_trntype)):
            joints, bodies = self._reach(actuator)
            is_reached = joint in joints or any(moved in self._bodies_up(body) for body in bodies)
            if is_reached and not is_switched_off(model, actuator):
                result.append(actuator)
        return result

    def _reach(self, actuator: int) -> tuple[set[int], set[int]]:
        """Return the joints that an actuator on a tendon, sites or a body passes, and the bodies it pulls."""
        model = self._model
        kind, ends = (
            int(model.actuator_trntype[actuator]),
            [int(end) for end in model.actuator_trnid[actuator]],
        )
        if kind in (MjTrn.SITE, MjTrn.SLIDER_CRANK):
            return set(), {int(model.site_bodyid[end]) for end in ends if end >= 0}
        if kind == MjTrn.BODY:
            return set(), {ends[0]}
        joints: set[int] = set()
        bodies: set[int] = set()
        if kind == MjTrn.TENDON:
            first = int(model.tendon_adr[ends[0]])
            for wrap in range(first, first + int(model.tendon_num[ends[0]])):
                what, index = int(model.wrap_type[wrap]), int(model.wrap_objid[wrap])
                if what == MjWrap.JOINT:
                    joints.add(index)
                elif what == MjWrap.SITE:
                    bodies.add(int(model.site_bodyid[index]))
                elif what in (MjWrap.SPHERE, MjWrap.CYLINDER):
                    bodies.add(int(model.geom_bodyid[index]))
        return joints, bodies

    def _bodies_up(self, body: int) -> list[int]:
        """Return a body and those that it hangs on."""
        result = [body]
        while result[-1] != 0:
            result.append(int(self._model.body_parentid[result[-1]]))
        return result

    def _check_drives(self, actuators: list[int], name: str, joint: int) -> None:
        """Raise if more than its drive acts on a joint."""
        if not set(actuators) <= set(self._drives):
            raise _UnreadError(f"actuators that are no drives act on '{name}', inside SolverMuJoCo")
        if self._is_merged and float(np.ravel(self._model.jnt_stiffness[joint])[0]) != 0.0:
            raise _UnreadError(f"the spring of '{name}' and its actuator are one drive, whose sum is known")
        motors = [actuator for actuator in actuators if not self._model.actuator_biastype[actuator]]
        if self._is_merged and motors:
            if np.any(self._model.actuator_dyntype[motors]):
                raise _UnreadError(f"the activation of a motor of '{name}' stays inside SolverMuJoCo")
            self._report.add(
                "force sensor of a motor",
                name,
                "it measures joint_act; it does not know of control.mujoco.ctrl",
                ImportSeverity.NOTE,
            )

    def _springs(self) -> list[SensorTerm]:
        """Return the springs of the joints, which store energy."""
        model, terms = self._model, []
        for joint in range(int(model.njnt)):
            stiffness = float(np.ravel(model.jnt_stiffness[joint])[0])
            if stiffness == 0.0 or int(model.jnt_type[joint]) not in (MjJoint.SLIDE, MjJoint.HINGE):
                continue
            term = self._term(joint, stiffness)
            rest = float(model.qpos_spring[int(model.jnt_qposadr[joint])])
            terms.append(dataclasses.replace(term, offset=rest))
        return terms
