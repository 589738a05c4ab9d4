"""Drives, limits and states that a joint of a stage has under a name of no axis of it.

Multiple-apply schemas are named after what they act on: `PhysicsDriveAPI:angular` drives a revolute joint,
`PhysicsDriveAPI:rotY` an axis of a generic one. usd-core takes no notice of any other name.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pluriverse.importers.description import RobotDescription
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.usd_source import applied_schemas, authored

D6_AXES = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")
# Forces and limits from this value on mean "unlimited" in USD (the largest number in single precision).
UNLIMITED = 3.0e38
PROPERTY = re.compile(r"(drive|limit|state):(\w+):physics:(\w+)")
"""A property of a drive, limit or state: kind, axis, and what it is of it."""
SCHEMAS = {"drive": "PhysicsDriveAPI", "limit": "PhysicsLimitAPI", "state": "PhysicsJointStateAPI"}
"""The schema of each kind. usd-core does not know the last one, whose properties are read without it too."""
MEMBERS = {
    "drive": ("type", "stiffness", "damping", "maxForce", "targetPosition", "targetVelocity"),
    "limit": ("low", "high"),
    "state": ("position", "velocity", "appliedForce"),  # the last one is a result
}
"""The properties of each kind."""
# What limits a joint in place of PhysicsLimitAPI.
_OWN_LIMITS = {
    "PhysicsRevoluteJoint": "physics:lowerLimit and upperLimit",
    "PhysicsPrismaticJoint": "physics:lowerLimit and upperLimit",
    "PhysicsSphericalJoint": "physics:coneAngle0Limit and coneAngle1Limit",
    "PhysicsDistanceJoint": "physics:minDistance and maxDistance",
}
_INERT = {
    "drive": "it exerts nothing",
    "limit": "it does not act",
    "state": "it is not where the joint starts",
}


def report_unread_axes(prim: Any, free: Sequence[str], report: ImportReport, *, is_ball: bool) -> None:
    """Report drives, limits and states of a joint that no reader uses. Those that would do nothing are noted.

    Args:
        prim: The joint.
        free: Names of its axes that are not locked: `angular`, `linear`, or some of a generic joint.
        report: Report of the import.
        is_ball: Whether the axes are the three of a ball joint, which has a rotation in place of angles.
    """
    applied = [schema.partition(":") for schema in applied_schemas(prim)]
    named = {(kind, name[2]): None for kind, api in SCHEMAS.items() for name in applied if name[0] == api}
    for name in map(str, prim.GetAuthoredPropertyNames()):
        found = PROPERTY.fullmatch(name)
        if found and found.group(3) in MEMBERS[found.group(1)] and authored(prim, name) is not None:
            named[found.group(1), found.group(2)] = None
    for kind, axis in named:
        consequence = _misfit(prim, kind, axis, free)
        if is_ball and kind == "state" and axis in free:
            consequence = "a joint that turns about all axes starts as its bodies stand"
        if consequence:
            acts = not axis or _acts(prim, kind, axis)
            report.add(
                f"{kind}:{axis}" if axis else f"{SCHEMAS[kind]} without the name of an axis",
                str(prim.GetPath()),
                f"{_INERT[kind]}: {consequence}",
                ImportSeverity.LOSS if acts else ImportSeverity.NOTE,
            )


def report_limp_drives(robot: RobotDescription, report: ImportReport) -> None:
    """Warn of drives with gains that an effort limit of 0 keeps from acting, as authored."""
    for joint in [*(link.joint for link in robot.links), *(loop.joint for loop in robot.loop_joints)]:
        for dof in joint.dofs if joint.dof is None else [joint.dof]:
            if dof.effort_limit == 0.0 and (dof.target_ke or dof.target_kd):
                report.add(
                    "drive with a force limit of 0",
                    joint.label,
                    "it exerts nothing; if that is a placeholder, leave physics:maxForce out, or pass "
                    'effort_limit={"*": ...}',
                    ImportSeverity.WARNING,
                )


def _misfit(prim: Any, kind: str, axis: str, free: Sequence[str]) -> str:
    """Return why a drive, limit or state of that name is not used; an empty text if it is."""
    joint, api = str(prim.GetTypeName()), SCHEMAS[kind]
    is_generic = joint == "PhysicsJoint"
    if kind == "limit" and is_generic:
        if axis == "distance":
            return "a generic joint limits its axes only"
        fitting: Sequence[str] = D6_AXES
    else:
        fitting = () if kind == "limit" else free
    if axis in fitting:
        is_applied = kind == "state" or f"{api}:{axis}" in applied_schemas(prim)
        return "" if is_applied else f"apply {api}:{axis} to the joint"
    if is_generic and axis in D6_AXES:
        return "that axis is locked"
    if kind == "limit" and joint in _OWN_LIMITS:
        return f"the limits of a {joint} are {_OWN_LIMITS[joint]}"
    if not fitting:
        return "all axes of the joint are locked" if is_generic else f"a {joint} has no {kind}"
    return f"the joint takes {api}:{', '.join(fitting)}"


def _acts(prim: Any, kind: str, axis: str) -> bool:
    """Return whether a drive, limit or state does anything, had it the name of an axis."""

    def value(member: str, default: float) -> float:
        number = authored(prim, f"{kind}:{axis}:physics:{member}")
        return default if number is None else float(number)

    if kind == "limit":
        return value("low", -np.inf) > -UNLIMITED or value("high", np.inf) < UNLIMITED
    first, second = ("stiffness", "damping") if kind == "drive" else ("position", "velocity")
    return value(first, 0.0) != 0.0 or value(second, 0.0) != 0.0
