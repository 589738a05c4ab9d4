"""`MjcActuator` and joint springs of the `mjc:` schema of USD as drives (see `actuator_drives`).

Where the builder has the namespace `mujoco` they are its rows instead.
"""

import dataclasses
from typing import Any

import numpy as np

from pluriverse.importers.actuator_drives import ActuatorTerm, set_drive, symmetric_limit
from pluriverse.importers.description import DofDescription, RobotDescription
from pluriverse.importers.mass_repair import least_armature
from pluriverse.importers.pivots import find_effective_inertias
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.usd_custom import UsdCustom
from pluriverse.importers.usd_source import UsdSource, authored
from pluriverse.types import JointTargetMode, JointType

ACTUATOR = "MjcActuator"


@dataclasses.dataclass
class _Target:
    """A joint of one axis that actuators and springs act on."""

    dof: DofDescription
    is_angular: bool
    is_driven: bool
    """Whether a drive of UsdPhysics drives it."""
    inertia: float
    """Effective inertia of the joint with all others free [kg·m² or kg], for damping ratios; else 0."""


def add_actuators(
    robot: RobotDescription,
    source: UsdSource,
    custom: UsdCustom,
    report: ImportReport,
    *,
    armature_default: float,
) -> None:
    """Give the joints of `robot` the drives of the actuators and springs on the stage. Masses must be known.

    Controls are 0 in the beginning, or what their range has next to it.

    Raises:
        AssetError: If a number is not finite.
    """
    if not any(_is_meant(prim, custom) for prim in source.prims.values()):
        return
    inertias = [0.0] * len(robot.links)
    if any(
        _is_actuator(prim) and _parameters(prim, "mjc:biasPrm")[2] > 0.0 for prim in source.prims.values()
    ):
        armatures = [least_armature(link.joint, armature_default) for link in robot.links]
        inertias = find_effective_inertias(robot, armatures)
    targets = {
        link.joint.label: _Target(
            link.joint.dof, link.joint.type is JointType.REVOLUTE, link.joint.dof.mode is not None, inertia
        )
        for link, inertia in zip(robot.links, inertias, strict=True)
        if link.joint.dof is not None
    }
    for path, prim in source.prims.items():
        if "mjc:stiffness" not in custom.names and _is_joint(prim):
            _add_spring(path, prim, targets, source, report)
    terms: dict[str, list[ActuatorTerm]] = {}
    for path, prim in source.prims.items():
        if not _is_actuator(prim) or custom.has_rows(prim):
            continue
        joints = [str(target) for target in prim.GetRelationship("mjc:target").GetTargets()]
        target = targets.get(joints[0]) if len(joints) == 1 else None
        reason = _unsupported(prim, target)
        if reason or target is None:
            report.add(f"{ACTUATOR}: {reason}", path, "it exerts nothing")
        elif target.is_driven:
            report.add(
                f"{ACTUATOR} of a joint with a drive", path, "the drive has its place", ImportSeverity.NOTE
            )
        else:
            terms.setdefault(joints[0], []).append(_term(path, prim, target, source, report))
    for joint, parts in terms.items():
        target = targets[joint]
        limit = target.dof.effort_limit if not target.dof.target_ke else None  # that of the joint, before
        set_drive(target.dof, parts, joint, 1.0 if target.is_angular else source.length, report)
        if limit is not None and target.dof.effort_limit is not None:
            target.dof.effort_limit = min(limit, target.dof.effort_limit)


def _is_actuator(prim: Any) -> bool:
    return str(prim.GetTypeName()) == ACTUATOR


def _is_joint(prim: Any) -> bool:
    return "Joint" in str(prim.GetTypeName())


def _is_meant(prim: Any, custom: UsdCustom) -> bool:
    """Return whether a prim is an actuator, or a joint with a spring, that is no row of the namespace."""
    if _is_actuator(prim):
        return not custom.has_rows(prim)
    return (
        "mjc:stiffness" not in custom.names
        and _is_joint(prim)
        and authored(prim, "mjc:stiffness") is not None
    )


def _add_spring(
    path: str, prim: Any, targets: dict[str, _Target], source: UsdSource, report: ImportReport
) -> None:
    """Give a joint the spring of `mjc:stiffness`, a drive with a constant target."""
    stiffness = authored(prim, "mjc:stiffness")
    if stiffness is None or source.number(path, "mjc:stiffness", stiffness, minimum=0.0) == 0.0:
        return
    target = targets.get(path)
    if target is None or target.is_driven:
        report.add("mjc:stiffness", path, "it is no joint of one axis without a drive, so there is no spring")
        return
    rest = source.number(path, "mjc:springref", authored(prim, "mjc:springref") or 0.0)
    dof = target.dof
    dof.mode = JointTargetMode.POSITION
    dof.target_ke, dof.target_kd = _gain_unit(target, source) * float(stiffness), 0.0
    dof.target_pos = float(np.radians(rest)) if target.is_angular else source.length * rest  # USD has degrees
    if dof.effort_limit is not None and np.isfinite(dof.effort_limit):
        report.add("effort limit of a joint with a spring", path, "its effort has no limit")
    dof.effort_limit = np.inf


def _gain_unit(target: _Target, source: UsdSource) -> float:
    """Return a stiffness of one stage unit, per radian where the joint turns."""
    return source.mass * source.length**2 if target.is_angular else source.mass


def _unsupported(prim: Any, target: _Target | None) -> str:
    """Return why an actuator cannot be a drive, or an empty text."""
    if target is None:
        return "it acts on no joint of one axis"
    gain_type, bias_type = (_type(prim, f"mjc:{name}Type", start) for name, start in _TYPES)
    gain, bias = (_parameters(prim, f"mjc:{name}Prm") for name in ("gain", "bias"))
    if gain_type not in ("fixed", "affine") or bias_type not in ("none", "affine"):
        return "its force is not an affine function of control, position and velocity"
    if gain_type == "affine" and gain[1:].any():
        return "its gain depends on position or velocity"
    if bias_type == "affine" and (bias[1] > 0.0 or (bias[2] > 0.0 and gain[0] != -bias[1])):
        return "it pushes away from its target (negative stiffness or damping)"
    return ""


# Kinds of functions and what they are where the stage does not say.
_TYPES = (("gain", "fixed"), ("bias", "none"))


def _type(prim: Any, name: str, start: str) -> str:
    value = authored(prim, name)
    return start if value is None else str(value)


def _parameters(prim: Any, name: str) -> np.ndarray:
    """Return the first three parameters of a gain (1, 0, 0 where there are none) or bias (0, 0, 0)."""
    values = authored(prim, name)
    result = np.array([1.0, 0.0, 0.0] if name == "mjc:gainPrm" else [0.0, 0.0, 0.0])
    if values is not None:
        result[: len(values)] = np.array(values, dtype=np.float64)[:3]
    return result


def _term(path: str, prim: Any, target: _Target, source: UsdSource, report: ImportReport) -> ActuatorTerm:
    gear_values = authored(prim, "mjc:gear")
    gear = 1.0 if gear_values is None or not len(gear_values) else float(gear_values[0])
    gain = float(_parameters(prim, "mjc:gainPrm")[0])
    bias = (
        _parameters(prim, "mjc:biasPrm") if _type(prim, "mjc:biasType", "none") == "affine" else np.zeros(3)
    )
    for name, value in (("mjc:gear", gear), ("mjc:gainPrm", gain), *(("mjc:biasPrm", part) for part in bias)):
        source.number(path, name, value)
    if _type(prim, "mjc:dynType", "none") != "none":
        report.add("activation dynamics of an actuator", path, "its force follows the control at once")
    for name in ("armature", "damping"):  # of the actuator itself, reflected through the gear
        value = authored(prim, f"mjc:{name}")
        if value is not None and float(np.ravel(value)[0]) != 0.0:
            own = source.number(path, f"mjc:{name}", float(np.ravel(value)[0]), minimum=0.0)
            added = _gain_unit(target, source) * gear**2 * own
            setattr(target.dof, name, (getattr(target.dof, name) or 0.0) + added)
    unit = _gain_unit(target, source)
    if bias[2] > 0.0:  # of a position servo: the ratio to the critical damping of what the joint feels
        bias[2] *= -2.0 * np.sqrt(-bias[1] * target.inertia / unit) / abs(gear)
    limit, control, offset_range = np.inf, 0.0, (-np.inf, np.inf)
    forces = _range(path, prim, "force", source)
    if forces is not None:
        limit = symmetric_limit(*forces, path, "mjc:forceRange", report)
    controls = _range(path, prim, "ctrl", source)
    if controls is not None:
        control = min(max(control, controls[0]), controls[1])
        if not bias[1:].any():  # an effort: its control range bounds the force
            limit = min(limit, abs(gain) * symmetric_limit(*controls, path, "mjc:ctrlRange", report))
        else:
            ends = sorted(gear * (gain * bound + bias[0]) for bound in controls)
            offset_range = (ends[0], ends[1])
    force = unit if target.is_angular else unit * source.length
    # The offset of a servo is a length or an angle times a gain, that of a motor a force.
    share = unit if bias[1:].any() else force
    return ActuatorTerm(
        path,
        ke=-unit * bias[1] * gear**2,
        kd=-unit * bias[2] * gear**2,
        offset=share * gear * (gain * control + bias[0]),
        effort_limit=force * abs(gear) * limit,
        offset_range=(share * offset_range[0], share * offset_range[1]),
    )


def _range(path: str, prim: Any, name: str, source: UsdSource) -> tuple[float, float] | None:
    """Return the bounds of a control or force, None without any."""
    flag = str(authored(prim, f"mjc:{name}Limited")).lower()
    ends = [authored(prim, f"mjc:{name}Range:{end}") for end in ("min", "max")]
    if flag == "false" or (ends == [None, None] and flag != "true"):
        return None
    low, high = (
        source.number(path, f"mjc:{name}Range:{end}", 0.0 if value is None else value)
        for end, value in zip(("min", "max"), ends, strict=True)
    )
    return low, high
