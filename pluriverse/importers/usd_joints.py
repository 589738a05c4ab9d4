"""USD joints as joints of links.

A generic joint becomes the D6 joint of the axes that are not locked: first those along X, Y and Z, then those
about X, Y and Z, each carried by the ones before.

USD measures angles in degrees, also in rates and gains. Joint positions are those of body 1 relative to body
0. If the tree runs from body 1 to body 0, axes are reversed and act in the reverse order, so that
coordinates, limits and targets keep their sign. (A joint that both slides and rotates then becomes a chain of
joints with massless links, since a D6 joint slides first.)
"""

import dataclasses
from typing import Any

import numpy as np

from pluriverse.importers.description import DofDescription, JointDescription, LoopDescription
from pluriverse.importers.frames import IDENTITY, Frame, make_frame, quat_from_wxyz
from pluriverse.importers.options import UsdSettings
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.urdf_repair import LIMIT_OF_ZERO
from pluriverse.importers.usd_axes import D6_AXES, UNLIMITED, report_unread_axes
from pluriverse.importers.usd_source import UsdSource, authored
from pluriverse.types import EqType, JointTargetMode, JointType

JOINT_KINDS = (
    "FixedJoint",
    "RevoluteJoint",
    "PrismaticJoint",
    "SphericalJoint",
    "D6Joint",
    "DistanceJoint",
    "CustomJoint",
)
AXES = {"X": 0, "Y": 1, "Z": 2}
# Tolerated gap between the frames of a joint on the stage [m, rad]: files give five digits.
GAP_TOLERANCE = 1e-3


@dataclasses.dataclass
class UsdJoint:
    """A joint of the stage: an edge between two bodies."""

    path: str
    """Path of its prim."""
    kind: str
    """One of `JOINT_KINDS`."""
    description: Any
    """Its description by the physics parser."""
    bodies: tuple[str, str]
    """Paths of body 0 and body 1, empty for the world."""
    frames: tuple[Frame, Frame]
    """Joint frames in body 0 and body 1 (or on the stage)."""


@dataclasses.dataclass
class _Axis:
    """A degree of freedom of a joint."""

    index: int  # 0 to 2: along x, y, z of the joint frame; 3 to 5: about x, y, z
    token: str  # of its limit, drive and state
    limit: Any
    drive: Any

    @property
    def is_angular(self) -> bool:
        return self.index >= 3


def joint_frames(source: UsdSource, path: str, description: Any) -> tuple[Frame, Frame]:
    """Return the frames of a joint in its two bodies, which the parser gives in stage units.

    Raises:
        AssetError: If they are not finite.
    """
    frames = []
    for side in ("0", "1"):
        position = np.array(getattr(description, f"localPose{side}Position"), dtype=np.float64)
        orientation = getattr(description, f"localPose{side}Orientation")
        quat = quat_from_wxyz([orientation.GetReal(), *orientation.GetImaginary()])
        if not (np.isfinite(position).all() and 0.0 < np.linalg.norm(quat) < np.inf):
            raise source.error(
                path,
                f"localPos{side} {position.tolist()} and localRot{side} {quat.tolist()} (xyzw) are no frame",
                value=[*position, *quat],
                remedy="Write finite numbers and a unit quaternion.",
            )
        frames.append(make_frame(source.length * position, quat))
    return frames[0], frames[1]


class UsdJoints:
    """Converts the joints of a stage to joints of links."""

    def __init__(self, source: UsdSource, options: UsdSettings, report: ImportReport):
        self.source = source
        self.options = options
        self.report = report

    def chain(self, joint: UsdJoint, poses: tuple[Frame, Frame], *, reverse: bool) -> list[JointDescription]:
        """Return the joints, at least one, that represent a joint of the stage.

        Args:
            joint: The joint.
            poses: Poses of body 0 and body 1 on the stage.
            reverse: Whether body 1 is the parent.

        Raises:
            AssetError: If a number of the joint is not finite or out of range.
        """
        self._report(joint)
        if joint.kind == "DistanceJoint":
            ends = joint.frames[::-1] if reverse else joint.frames
            distances = self._distances(joint)
            filters = not joint.description.collisionEnabled
            return [
                JointDescription(
                    joint.path, JointType.DISTANCE, *ends, distances=distances, filter_parent=filters
                )
            ]
        relative = (poses[0] @ joint.frames[0]).inverse() @ poses[1] @ joint.frames[1]
        axes = self._axes(joint)
        frames = joint.frames[::-1] if reverse else joint.frames
        common: dict[str, Any] = {"filter_parent": not joint.description.collisionEnabled}
        if joint.kind == "SphericalJoint" or self._is_ball(axes):
            rotation = relative.inverse() if reverse else relative
            self._check_gap(joint, relative, Frame(np.zeros(3), relative.quat))
            ball = JointDescription(
                joint.path, JointType.BALL, *frames, q=rotation.quat.tolist(), qd=[0.0] * 3, **common
            )
            for name in ("armature", "damping", "friction"):
                setattr(ball, name, self._loss(joint.path, name, is_angular=True))
            return [ball]
        if not axes:
            self._check_gap(joint, relative, IDENTITY)
            return [JointDescription(joint.path, JointType.FIXED, *frames, **common)]
        positions = _positions(relative)
        links = []
        motion = IDENTITY
        has_state = False
        for axis in axes:
            state = self._state(joint.path, axis)
            has_state = has_state or state[0] is not None
            dof = self._dof(joint.path, axis)
            position = float(positions[axis.index]) if state[0] is None else state[0]
            if state[0] is None and axis.is_angular:
                position = _into_limits(position, dof)
            kind = JointType.REVOLUTE if axis.is_angular else JointType.PRISMATIC
            label = joint.path if len(axes) == 1 else f"{joint.path}/{axis.token}"
            link = JointDescription(label, kind, dof=dof, q=[position], qd=[state[1]], **common)
            motion = motion @ link.motion()
            links.append(link)
        if not has_state:
            self._check_gap(joint, relative, motion)
        if reverse:
            links.reverse()
            for link in links:
                assert link.dof is not None
                link.dof.axis = -link.dof.axis
        linear_count = sum(not axis.is_angular for axis in axes)
        if len(links) > 1 and not (reverse and 0 < linear_count < len(links)):
            dofs = [link.dof for link in links if link.dof is not None]
            links = [
                JointDescription(
                    joint.path,
                    JointType.D6,
                    dofs=dofs,
                    linear_count=linear_count,
                    q=[link.q[0] for link in links],
                    qd=[link.qd[0] for link in links],
                    **common,
                )
            ]
        links[0].parent_frame, links[-1].child_frame = frames
        return links

    def closure(self, joint: UsdJoint, links: tuple[int, int]) -> LoopDescription | None:
        """Return the constraint of a loop joint, None if the joint does more than constrain.

        `links` are those of body 0 and body 1.
        """
        path, enabled = joint.path, bool(joint.description.jointEnabled)
        axes = self._axes(joint)
        if joint.kind == "DistanceJoint" or any(
            self._loss(path, name, is_angular=True) for name in ("damping", "friction")
        ):
            return None
        loop: LoopDescription | None = None
        if joint.kind == "SphericalJoint" or self._is_ball(axes):
            loop = LoopDescription(path, EqType.CONNECT, links, joint.frames, enabled=enabled)
        elif not axes:
            loop = LoopDescription(path, EqType.WELD, links, joint.frames, enabled=enabled)
        elif len(axes) == 1 and axes[0].is_angular:
            dof = self._dof(path, axes[0])
            if (dof.lower, dof.upper) == (-np.inf, np.inf) and dof.mode is None:
                loop = LoopDescription(path, EqType.HINGE, links, joint.frames, dof.axis, enabled=enabled)
        if loop is not None:
            self._report(joint)
        return loop

    def _distances(self, joint: UsdJoint) -> tuple[float, float]:
        """Return least and largest distance [m] of the points of a distance joint, negative for none."""
        description, source = joint.description, self.source
        least = float(description.limit.lower) if description.minEnabled else -1.0
        most = float(description.limit.upper) if description.maxEnabled else -1.0
        for value in (least, most):
            source.number(joint.path, "the distance", value)
        if most == 0.0 or 0.0 <= most < least:
            raise source.error(
                joint.path,
                f"physics:minDistance is {least} and physics:maxDistance {most}, so no distance is allowed",
                value=(least, most),
                remedy="Write a greater maxDistance, or a negative one for none. To hold two points together "
                "use a PhysicsSphericalJoint.",
            )
        if least <= 0.0 and most < 0.0:
            self.report.add("distance joint without limits", joint.path, "it holds nothing")
        return (
            source.length * least if least >= 0.0 else -1.0,
            source.length * most if most >= 0.0 else -1.0,
        )

    def _axes(self, joint: UsdJoint) -> list[_Axis]:
        """Return the axes of a joint that are not locked, in the order in which they act."""
        description = joint.description
        if joint.kind in ("RevoluteJoint", "PrismaticJoint"):
            is_angular = joint.kind == "RevoluteJoint"
            index = AXES[str(description.axis).rpartition(".")[2]] + (3 if is_angular else 0)
            token = "angular" if is_angular else "linear"
            return [_Axis(index, token, description.limit, description.drive)]
        if joint.kind != "D6Joint":
            return []
        limits = {_token(item.first): item.second for item in description.jointLimits}
        drives = {_token(item.first): item.second for item in description.jointDrives}
        axes = []
        for index, token in enumerate(D6_AXES):
            limit = limits.get(token)
            if limit is None or limit.lower <= limit.upper:
                axes.append(_Axis(index, token, limit, drives.get(token)))
        return axes

    def _is_ball(self, axes: list[_Axis]) -> bool:
        """Return whether the axes are the three of a rotation, without limits or drives."""
        return [axis.index for axis in axes] == [3, 4, 5] and not any(
            (axis.limit is not None and max(abs(axis.limit.lower), abs(axis.limit.upper)) < UNLIMITED)
            or (axis.drive is not None and axis.drive.enabled)
            for axis in axes
        )

    def _dof(self, path: str, axis: _Axis) -> DofDescription:
        source = self.source
        # Values per degree become values per radian, lengths metres.
        unit = np.pi / 180.0 if axis.is_angular else source.length
        direction = np.zeros(3)
        direction[axis.index % 3] = 1.0
        dof = DofDescription(direction, -np.inf, np.inf)
        if axis.limit is not None:  # the parser enables only those with both sides; one is a limit too
            lower, upper = float(axis.limit.lower), float(axis.limit.upper)
            if np.isnan(lower) or np.isnan(upper):
                raise source.error(
                    path,
                    f"the limits of {axis.token} are {lower} and {upper}",
                    value=(lower, upper),
                    remedy="Write numbers, or -inf and inf for none.",
                )
            if lower > upper:  # of a generic joint the axis would be locked: see `_axes`
                self.report.add(
                    "lower limit above the upper one",
                    path,
                    f"{lower:g} and {upper:g} are read as no limits",
                    ImportSeverity.REPAIR,
                )
                lower, upper = -np.inf, np.inf
            dof.lower = -np.inf if lower <= -UNLIMITED else unit * lower
            dof.upper = np.inf if upper >= UNLIMITED else unit * upper
        for name in ("armature", "damping", "friction"):
            setattr(dof, name, self._loss(path, name, is_angular=axis.is_angular))
        speed = self._read(path, "physxJoint:maxJointVelocity", "newton:velocityLimit")
        if speed is not None and speed < UNLIMITED:
            dof.velocity_limit = unit * source.number(path, "the velocity limit", speed, minimum=0.0)
        self._set_limit_gains(path, axis, dof)
        if axis.drive is not None and axis.drive.enabled:
            self._set_drive(path, axis, dof, unit)
        self._limit_effort(path, axis, dof)
        return dof

    def _limit_effort(self, path: str, axis: _Axis, dof: DofDescription) -> None:
        """Limit the total effort on a joint in both directions, as in MuJoCo's schema, or in a URDF."""
        effort = self._read(path, "urdf:limit:effort")
        if effort is not None and dof.effort_limit is None:
            if effort != np.inf:
                effort = self.source.number(path, "urdf:limit:effort", effort, minimum=0.0)
            dof.effort_limit = effort or None
            if effort == 0.0:
                self.report.add("urdf:limit:effort 0", path, LIMIT_OF_ZERO, ImportSeverity.REPAIR)
        ends = [self._read(path, f"mjc:actuatorfrcrange:{end}") for end in ("min", "max")]
        flag = self._read(path, "mjc:actuatorfrclimited")
        if ends == [None, None] or str(flag).lower() == "false":
            return
        low, high = (
            self.source.number(path, "mjc:actuatorfrcrange", 0.0 if end is None else end) for end in ends
        )
        if low != -high:
            self.report.add(
                "mjc:actuatorfrcrange that is not symmetric",
                path,
                "the effort is limited to the larger bound both ways",
            )
        torque = self.source.mass * self.source.length ** (2 if axis.is_angular else 1)
        limit = torque * max(abs(low), abs(high))
        dof.effort_limit = limit if dof.effort_limit is None else min(dof.effort_limit, limit)

    def _set_limit_gains(self, path: str, axis: _Axis, dof: DofDescription) -> None:
        word = "Angular" if axis.is_angular else "Linear"
        factor = self._stiffness_unit(axis.is_angular)
        for field, name in (("limit_ke", "Ke"), ("limit_kd", "Kd")):
            official = "newton:limitStiffness" if name == "Ke" else "newton:limitDamping"
            for what in (official, f"newton:limit{word}{name}"):
                value = self._read(path, what)
                # -inf leaves it to the solver's default.
                if value is not None and not np.isinf(value):
                    setattr(dof, field, factor * self.source.number(path, what, value, minimum=0.0))
                    break
        self._soften_limits(path, axis, dof)

    def _soften_limits(self, path: str, axis: _Axis, dof: DofDescription) -> None:
        """Read the spring of a limit by PhysX's rules: per radian, and no spring without a stiffness."""
        what = f"physxLimit:{axis.token}"
        stiffness, damping = (self._read(path, f"{what}:{name}") for name in ("stiffness", "damping"))
        stiffness = self.source.number(path, f"{what}:stiffness", stiffness or 0.0, minimum=0.0)
        damping = self.source.number(path, f"{what}:damping", damping or 0.0, minimum=0.0)
        if stiffness == 0.0 or dof.limit_ke is not None:
            return
        unit = self.source.mass * self.source.length ** (2 if axis.is_angular else 0)
        dof.limit_ke, dof.limit_kd = unit * stiffness, unit * damping

    def _set_drive(self, path: str, axis: _Axis, dof: DofDescription, unit: float) -> None:
        drive, source = axis.drive, self.source
        gain = self._stiffness_unit(axis.is_angular)
        if axis.is_angular:
            gain *= self.options["joint_drive_gains_scaling"]
        what = f"drive:{axis.token}:physics"
        dof.target_ke = gain * source.number(path, f"{what}:stiffness", drive.stiffness, minimum=0.0)
        dof.target_kd = gain * source.number(path, f"{what}:damping", drive.damping, minimum=0.0)
        dof.target_pos = unit * source.number(path, f"{what}:targetPosition", drive.targetPosition)
        dof.target_vel = unit * source.number(path, f"{what}:targetVelocity", drive.targetVelocity)
        limit = float(drive.forceLimit)
        if limit >= UNLIMITED:
            dof.effort_limit = np.inf
        else:
            torque = source.mass * source.length ** (2 if axis.is_angular else 1)
            dof.effort_limit = torque * source.number(path, f"{what}:maxForce", limit, minimum=0.0)
        if drive.acceleration:
            self.report.add(
                "drive of type acceleration", path, "its gains are those of a force, not per unit of inertia"
            )
        both = dof.target_ke > 0.0 and dof.target_kd > 0.0
        if both and (dof.target_vel != 0.0 or self.options["force_position_velocity_actuation"]):
            dof.mode = JointTargetMode.POSITION_VELOCITY
        elif dof.target_ke > 0.0:
            dof.mode = JointTargetMode.POSITION
        elif dof.target_kd > 0.0:
            dof.mode = JointTargetMode.VELOCITY
        else:
            dof.mode = JointTargetMode.EFFORT

    def _stiffness_unit(self, is_angular: bool) -> float:
        """Return a stiffness of one stage unit in N/m, or of one per degree in N·m/rad."""
        if is_angular:
            return self.source.mass * self.source.length**2 * 180.0 / np.pi
        return self.source.mass

    def _loss(self, path: str, name: str, *, is_angular: bool) -> float | None:
        """Return armature, damping or friction of a joint, None if the file does not give it."""
        names = {
            "armature": ("newton:armature", "newton:jointArmature", "physxJoint:armature", "mjc:armature"),
            "damping": ("newton:damping", "mjc:damping"),
            "friction": ("newton:friction", "newton:jointFriction", "mjc:frictionloss"),
        }[name]
        value = self._read(path, *names)
        if value is None:
            return None
        unit = self.source.mass * (self.source.length**2 if is_angular else 1.0)
        if name == "damping" and is_angular and self._read(path, names[0]) is not None:
            unit *= 180.0 / np.pi  # newton:damping is per degree, mjc:damping per radian
        if name == "friction" and not is_angular:
            unit *= self.source.length
        return unit * self.source.number(path, name, value, minimum=0.0)

    def _state(self, path: str, axis: _Axis) -> tuple[float | None, float]:
        """Return initial position and velocity; a position that the file does not give is None."""
        unit = np.pi / 180.0 if axis.is_angular else self.source.length
        position = self._read(path, f"state:{axis.token}:physics:position")
        velocity = self._read(path, f"state:{axis.token}:physics:velocity")
        what = f"state:{axis.token}:physics"
        return (
            None if position is None else unit * self.source.number(path, f"{what}:position", position),
            0.0 if velocity is None else unit * self.source.number(path, f"{what}:velocity", velocity),
        )

    def _read(self, path: str, *names: str) -> Any:
        return authored(self.source.prims[path], *names)

    def _report(self, joint: UsdJoint) -> None:
        description, axes = joint.description, self._axes(joint)
        free = [axis.token for axis in axes]
        report_unread_axes(self.source.prims[joint.path], free, self.report, is_ball=self._is_ball(axes))
        if min(description.breakForce, description.breakTorque) < UNLIMITED:
            self.report.add("joint that breaks", joint.path, "it holds whatever the force")
        if joint.kind == "SphericalJoint":
            limit = description.limit
            if any(0.0 <= angle < 180.0 for angle in (limit.lower, limit.upper)):  # of the cone
                self.report.add("cone limit of a spherical joint", joint.path, "it turns without limits")
        if joint.description.excludeFromArticulation:
            self.report.add(
                "excludeFromArticulation", joint.path, "it is solved as the others", ImportSeverity.NOTE
            )
        if not joint.description.jointEnabled:
            self.report.add(
                "jointEnabled = false",
                joint.path,
                "it is a constraint that is off; equality_constraint_enabled of the model switches it on",
                ImportSeverity.NOTE,
            )

    def _check_gap(self, joint: UsdJoint, authored_pose: Frame, motion: Frame) -> None:
        """Report joint frames that do not coincide on the stage."""
        gap = motion.inverse() @ authored_pose
        distance = float(np.linalg.norm(gap.position))
        angle = 2.0 * float(np.arcsin(min(1.0, float(np.linalg.norm(gap.quat[:3])))))
        if max(distance, angle) > GAP_TOLERANCE:
            self.report.add(
                "joint frames apart on the stage",
                f"{joint.path} by {distance:.4g} m and {angle:.4g} rad",
                "the bodies start where the joint holds them",
            )


def _token(kind: Any) -> str:
    """Return the name of an axis of a generic joint as attributes have it: `transX`."""
    name = str(kind).rpartition(".")[2]
    return name[0].lower() + name[1:]


def _positions(relative: Frame) -> np.ndarray:
    """Return the positions along x, y, z and the successive angles about x, y, z."""
    m = relative.matrix  # R = Rx(a) Ry(b) Rz(c)
    a = np.arctan2(-m[1, 2], m[2, 2])
    b = np.arcsin(np.clip(m[0, 2], -1.0, 1.0))
    c = np.arctan2(-m[0, 1], m[0, 0])
    # A half rotation about y equals half rotations about x and z.
    x, y, z, w = relative.quat
    if max(abs(x), abs(z)) < 1e-9 * max(abs(y), abs(w)):
        a, b, c = 0.0, 2.0 * np.arctan2(y, w), 0.0
    return np.array([*relative.position, a, (b + np.pi) % (2.0 * np.pi) - np.pi, c])


def _into_limits(angle: float, dof: DofDescription) -> float:
    """Return the angle, or the one a revolution away that the limits allow."""
    assert dof.lower is not None
    assert dof.upper is not None
    for turned in (angle, angle + 2.0 * np.pi, angle - 2.0 * np.pi):
        if dof.lower - GAP_TOLERANCE <= turned <= dof.upper + GAP_TOLERANCE:
            return turned
    return angle
