"""MJCF actuators as drives (see `actuator_drives`).

Motors are efforts of their joints, and rows that `control.mujoco.ctrl` commands in SolverMuJoCo, like
actuators that can be no drive. In a builder for MuJoCo, only position and velocity servos that are drives
exactly, alone on their joint, become drives.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from pluriverse.importers.actuator_drives import ActuatorTerm, set_drive, symmetric_limit
from pluriverse.importers.description import DofDescription, RobotDescription
from pluriverse.importers.mjcf_enums import MjJoint, MjTrn
from pluriverse.importers.mjcf_rows import actuator_count, unkept_actuator
from pluriverse.importers.mjcf_source import MjcfSource
from pluriverse.importers.mjcf_switches import is_switched_off
from pluriverse.importers.mjcf_tendon_levers import is_fixed_tendon, passes_rotation, tendon_levers
from pluriverse.importers.options import MjcfSettings
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.mujoco_attributes.choices import BIAS_AFFINE, BIAS_NONE, GAIN_AFFINE, GAIN_FIXED


def add_drives(
    robot: RobotDescription,
    source: MjcfSource,
    link_of_joint: dict[int, int],
    controls: np.ndarray,
    options: MjcfSettings,
    report: ImportReport,
) -> tuple[dict[int, int], set[int]]:
    """Give the joints of `robot` the drives of the actuators, with targets at the given `controls`.

    The controls of motors become 0 in `controls`, since their efforts are those of the joints from now on.

    Returns:
        The actuators that targets of drives command, and whether these are positions (0) or velocities (1);
        and all that are drives, including motors.
    """
    model = source.model
    terms: dict[int, list[ActuatorTerm]] = {}
    driving: set[int] = set()
    servos: dict[int, int] = {}
    namespace = options["custom"].namespace
    if namespace.is_asked:
        servos = _find_servos(model, link_of_joint, robot)
        _move_springs(model, link_of_joint, robot)
    for actuator in range(actuator_count(model)):
        if namespace.is_asked and actuator not in servos:
            continue
        name = model.actuator(actuator).name or f"actuator {actuator}"
        levers = _levers(model, actuator)
        reason = _unsupported(model, actuator, levers, link_of_joint, robot)
        unkept = unkept_actuator(source, actuator, options)
        if not reason:
            _reflect(model, actuator, name, levers, link_of_joint, robot, options, report)
        if is_switched_off(model, actuator):
            continue
        if reason and is_linear_on_tendon(model, actuator):
            if not unkept:
                _report_on_tendon(model, actuator, name, options, report)
                continue
            reason = unkept
        if reason:
            if not unkept:
                namespace.keeps(f"actuator: {reason}", name)
            report.add(f"actuator: {reason}", name, "it exerts nothing")
            continue
        control = float(controls[model.actuator_ctrladr[actuator]])
        limit = _force_limit(model, actuator, name, report)
        driving.add(actuator)
        for joint, lever in levers.items():
            term = _term(model, actuator, name, control, lever, limit, report)
            terms.setdefault(joint, []).append(term)
        if term.ke > 0.0 or term.kd > 0.0:
            servos[actuator] = 0 if term.ke > 0.0 else 1
        else:
            controls[model.actuator_ctrladr[actuator]] = 0.0
    for joint, parts in terms.items():
        dof = robot.links[link_of_joint[joint]].joint.dof
        assert dof is not None
        length = options["scale"] if model.jnt_type[joint] == MjJoint.SLIDE else 1.0
        set_drive(dof, parts, model.joint(joint).name or f"joint {joint}", length, report)
        if model.jnt_actfrclimited[joint]:
            _limit_sum(model, joint, dof, driving, options, report)
    _limit_direct_efforts(model, link_of_joint, robot, terms.keys(), options, report)
    return servos, driving


def is_linear_on_tendon(model: Any, actuator: int) -> bool:
    """Return whether an actuator pulls a fixed tendon as a motor or a servo does."""
    return int(model.actuator_trntype[actuator]) == MjTrn.TENDON and not _unlike_servo(model, actuator)


def _unlike_servo(model: Any, actuator: int) -> str:
    """Return why an actuator on a tendon does not pull it as a motor or a servo does, or an empty text."""
    tendon = int(model.actuator_trnid[actuator, 0])
    if not is_fixed_tendon(model, tendon):
        return "its tendon is spatial"
    if passes_rotation(model, tendon):
        return "its tendon passes a ball or free joint"
    if int(model.actuator_dyntype[actuator]) != 0:
        return "it has activation dynamics, and pulls a tendon"
    if int(model.actuator_gaintype[actuator]) != GAIN_FIXED or int(model.actuator_biastype[actuator]) not in (
        BIAS_NONE,
        BIAS_AFFINE,
    ):
        return "it pulls a tendon with a gain or bias that is none of a motor or servo"
    return ""


def _report_on_tendon(
    model: Any, actuator: int, name: str, options: MjcfSettings, report: ImportReport
) -> None:
    """Report that an actuator stays on its tendon, and what it lacks there."""
    report.add("actuator of a tendon", name, "control.mujoco.ctrl commands it", ImportSeverity.NOTE)
    for quantity, fields in (("armature", ("armature",)), ("damping", ("damping", "dampingpoly"))):
        if any(_has(model, field, actuator) for field in fields):
            options["custom"].namespace.keeps(f"{quantity} of an actuator on a tendon", name)
            report.add(f"{quantity} of an actuator on a tendon", name, "it has none")
    if _has(model, "delay", actuator):
        report.add("delay of an actuator", name, "its force follows the control at once")


def _has(model: Any, field: str, actuator: int) -> bool:
    """Return whether a field of an actuator, which older versions of MuJoCo may lack, is not 0."""
    table = getattr(model, f"actuator_{field}", None)
    return table is not None and bool(np.any(table[actuator] != 0.0))


def _is_on_joint(model: Any, actuator: int) -> bool:
    return int(model.actuator_trntype[actuator]) in (MjTrn.JOINT, MjTrn.JOINT_IN_PARENT)


def _levers(model: Any, actuator: int) -> Mapping[int, tuple[float, float]]:
    """Return the joints that an actuator may drive, each with its lever (`tendon_levers`)."""
    if _is_on_joint(model, actuator):
        return {int(model.actuator_trnid[actuator, 0]): (1.0, 1.0)}
    return tendon_levers(model, actuator)


def _find_servos(model: Any, link_of_joint: dict[int, int], robot: RobotDescription) -> dict[int, int]:
    """Return the actuators that are drives exactly, and whether they follow a position or a velocity.

    Those on tendons are not: MuJoCo keeps a tendon's one force, in place of a drive for each of its joints.
    """
    acting_at_all = [
        actuator for actuator in range(actuator_count(model)) if not is_switched_off(model, actuator)
    ]
    on_joints = [actuator for actuator in acting_at_all if _is_on_joint(model, actuator)]
    acting = Counter(int(model.actuator_trnid[actuator, 0]) for actuator in on_joints)
    result = {}
    for actuator in on_joints:
        joint = int(model.actuator_trnid[actuator, 0])
        if _unsupported(model, actuator, [joint], link_of_joint, robot) or acting[joint] > 1:
            continue
        gain, bias = float(model.actuator_gainprm[actuator, 0]), model.actuator_biasprm[actuator, :3]
        low, high = model.actuator_forcerange[actuator]
        plain = (
            int(model.actuator_gaintype[actuator]) == GAIN_FIXED
            and int(model.actuator_biastype[actuator]) == BIAS_AFFINE
            and int(model.actuator_dyntype[actuator]) == 0
            and bias[0] == 0.0
            and (
                not model.actuator_forcelimited[actuator]
                or (low == -high and (not model.jnt_actfrclimited[joint] or _is_slack(model, joint, high)))
            )
            and not any(
                _has(model, field, actuator) for field in ("damping", "dampingpoly", "armature", "delay")
            )
        )
        if plain and gain > 0.0 and bias[1] == -gain:
            result[actuator] = 0
        elif plain and gain > 0.0 and bias[1] == 0.0 and bias[2] == -gain:
            result[actuator] = 1
    return result


def _move_springs(model: Any, link_of_joint: dict[int, int], robot: RobotDescription) -> None:
    """Keep springs of joints with actuators or limited efforts as MuJoCo's own, apart from the drive."""
    acted = {
        int(model.actuator_trnid[actuator, 0])
        for actuator in range(actuator_count(model))
        if _is_on_joint(model, actuator)
    }
    for joint, link in link_of_joint.items():
        dof = robot.links[link].joint.dof
        if dof is None or not dof.target_ke or not (joint in acted or model.jnt_actfrclimited[joint]):
            continue
        dof.custom["mujoco:dof_passive_stiffness"] = dof.target_ke
        dof.custom["mujoco:dof_springref"] = dof.target_pos
        dof.mode = dof.target_ke = dof.target_kd = dof.target_pos = dof.effort_limit = None


def _limit_direct_efforts(
    model: Any,
    link_of_joint: dict[int, int],
    robot: RobotDescription,
    driven: Collection[int],
    options: MjcfSettings,
    report: ImportReport,
) -> None:
    """Limit the sum of the efforts on joints without a drive by `actuatorfrcrange`.

    For MuJoCo, joints without a range are unlimited, since its actuators act there.
    """
    for joint, link in link_of_joint.items():
        dof = robot.links[link].joint.dof
        if dof is None or joint in driven:
            continue
        if not model.jnt_actfrclimited[joint]:
            if options["custom"].namespace.is_asked:
                dof.effort_limit = np.inf
            continue
        if dof.target_ke:
            name = model.joint(joint).name or f"joint {joint}"
            report.add("actuatorfrcrange of a joint with a spring", name, "its effort has no limit")
            continue
        _limit_sum(model, joint, dof, (), options, report)


def _limit_sum(
    model: Any,
    joint: int,
    dof: DofDescription,
    driving: Collection[int],
    options: MjcfSettings,
    report: ImportReport,
) -> None:
    """Limit the sum of the efforts on a joint by its `actuatorfrcrange`.

    Args:
        model: MuJoCo's model.
        joint: Index of the joint.
        dof: What becomes of it.
        driving: Actuators that are drives, of this or other joints.
        options: Options of the import.
        report: Report of the import.
    """
    if dof.effort_limit is not None and _is_slack(model, joint, dof.effort_limit, driving):
        return
    low, high = (float(bound) for bound in model.jnt_actfrcrange[joint])
    name = model.joint(joint).name or f"joint {joint}"
    limit = symmetric_limit(low, high, name, "actuatorfrcrange", report)
    dof.effort_limit = limit if dof.effort_limit is None else min(dof.effort_limit, limit)
    dof.custom.update(options["custom"].namespace.selected(jnt_actfrclimited=True))


def _is_slack(model: Any, joint: int, limit: float, driving: Collection[int] = ()) -> bool:
    """Return whether actuators of at most `limit` [N or N·m] never reach the range of their joint.

    What tendons, sites and bodies pass on to the joint adds to it, and so does its compensation of gravity.
    """
    if limit > np.abs(model.jnt_actfrcrange[joint]).min() or model.jnt_actgravcomp[joint]:
        return False
    return all(
        _is_on_joint(model, actuator) or actuator in driving or is_switched_off(model, actuator)
        for actuator in range(actuator_count(model))
    )


def _unsupported(
    model: Any, actuator: int, joints: Collection[int], link_of_joint: dict[int, int], robot: RobotDescription
) -> str:
    """Return why an actuator cannot be a drive of `joints`, or an empty text."""
    if not joints:
        on_tendon = int(model.actuator_trntype[actuator]) == MjTrn.TENDON
        return (_unlike_servo(model, actuator) if on_tendon else "") or "its transmission is not a joint"
    if not link_of_joint.keys() >= set(joints):
        return "its joint was removed by floating=False"
    if any(robot.links[link_of_joint[joint]].joint.dof is None for joint in joints):
        return "its joint is a ball or free joint"
    if int(model.actuator_gaintype[actuator]) not in (GAIN_FIXED, GAIN_AFFINE) or int(
        model.actuator_biastype[actuator]
    ) not in (BIAS_NONE, BIAS_AFFINE):
        return "its force is not an affine function of control, position and velocity"
    if int(model.actuator_gaintype[actuator]) == GAIN_AFFINE and np.any(
        model.actuator_gainprm[actuator, 1:3] != 0.0
    ):
        return "its gain depends on position or velocity"
    if int(model.actuator_biastype[actuator]) == BIAS_AFFINE and np.any(
        model.actuator_biasprm[actuator, 1:3] > 0.0
    ):
        return "it pushes away from its target (negative stiffness or damping)"
    return ""


def _reflect(
    model: Any,
    actuator: int,
    name: str,
    levers: Mapping[int, tuple[float, float]],
    link_of_joint: dict[int, int],
    robot: RobotDescription,
    options: MjcfSettings,
    report: ImportReport,
) -> None:
    """Add rotor inertia and friction of an actuator to its joints, reflected through the gear.

    The actuator has none from now on: its row in the namespace `mujoco` would add them again.
    """
    gear = float(model.actuator_gear[model.actuator_outadr[actuator], 0])
    for quantity, factor in (("armature", options["armature_scale"]), ("damping", 1.0)):
        if not _has(model, quantity, actuator):
            continue
        table = getattr(model, f"actuator_{quantity}")
        for joint, (lever, advance) in levers.items():
            dof = robot.links[link_of_joint[joint]].joint.dof
            assert dof is not None
            reflected = factor * gear**2 * lever * advance * float(np.ravel(table[actuator])[0])
            setattr(dof, quantity, (getattr(dof, quantity) or 0.0) + reflected)
        table[actuator] = 0.0
    if _has(model, "dampingpoly", actuator):
        report.add("nonlinear damping of an actuator", name, "only the linear part acts")


def _force_limit(model: Any, actuator: int, name: str, report: ImportReport) -> float:
    """Return the bound of the force of an actuator before its gear [N or N·m], inf for none."""
    limit = np.inf
    if model.actuator_forcelimited[actuator]:
        low, high = model.actuator_forcerange[actuator]
        limit = symmetric_limit(float(low), float(high), name, "forcerange", report)
    if int(model.actuator_trntype[actuator]) == MjTrn.TENDON:
        limit = min(limit, _tendon_force_limit(model, int(model.actuator_trnid[actuator, 0]), report))
    return limit


def _tendon_force_limit(model: Any, tendon: int, report: ImportReport) -> float:
    """Return the bound of the force that the actuators of a tendon exert together [N], inf for none.

    Each drive has its own limit, so of several actuators each is limited by it.
    """
    if not model.tendon_actfrclimited[tendon]:
        return np.inf
    name = model.tendon(tendon).name or f"tendon {tendon}"
    acting = [
        actuator
        for actuator in range(actuator_count(model))
        if int(model.actuator_trntype[actuator]) == MjTrn.TENDON
        and int(model.actuator_trnid[actuator, 0]) == tendon
        and not is_switched_off(model, actuator)
    ]
    if len(acting) > 1:
        report.add(
            "actuatorfrcrange of a tendon with several actuators",
            name,
            "it limits each of its actuators and not their sum",
        )
    low, high = (float(bound) for bound in model.tendon_actfrcrange[tendon])
    return symmetric_limit(low, high, name, "actuatorfrcrange", report)


def _term(
    model: Any,
    actuator: int,
    name: str,
    control: float,
    lever: tuple[float, float],
    limit: float,
    report: ImportReport,
) -> ActuatorTerm:
    """Return what an actuator of limited force exerts on a joint; for `lever` see `tendon_levers`."""
    gear = float(model.actuator_gear[model.actuator_outadr[actuator], 0])
    force, length = gear * lever[0], gear * lever[1]
    gain = float(model.actuator_gainprm[actuator, 0])
    bias = np.zeros(3)
    if int(model.actuator_biastype[actuator]) == BIAS_AFFINE:
        bias = np.array(model.actuator_biasprm[actuator, :3])
    if int(model.actuator_dyntype[actuator]) != 0:
        report.add("activation dynamics of an actuator", name, "its force follows the control at once")
    if _has(model, "delay", actuator):
        report.add("delay of an actuator", name, "its force follows the control at once")
    offset_range = (-np.inf, np.inf)
    first = int(model.actuator_ctrladr[actuator])
    if model.actuator_ctrllimited[first]:
        low, high = (float(bound) for bound in model.actuator_ctrlrange[first])
        control = min(max(control, low), high)
        if not np.any(bias[1:]):  # an effort: its control range bounds the force
            limit = min(limit, abs(gain) * symmetric_limit(low, high, name, "ctrlrange", report))
        else:
            ends = sorted(force * (gain * bound + bias[0]) for bound in (low, high))
            offset_range = (ends[0], ends[1])
    return ActuatorTerm(
        name,
        ke=-bias[1] * force * length,
        kd=-bias[2] * force * length,
        offset=force * (gain * control + bias[0]),
        effort_limit=abs(force) * limit,
        offset_range=offset_range,
    )
