"""MJCF actuators as drives.

MuJoCo's actuator on a joint exerts, with gear g, control u and F the clamp to `forcerange`,

    tau = g F(k u + b0 + b1 g q + b2 g q')

which is a drive of stiffness `-g² b1` and damping `-g² b2`; the control moves its target. Several actuators
on a joint add up. An actuator without stiffness follows a velocity; one without stiffness and damping is an
effort.

With the namespace `mujoco`, only position and velocity servos that are drives exactly, alone on their joint,
become drives. All others are rows that only SolverMuJoCo uses, with the control `control.mujoco.ctrl`.
"""

import dataclasses
from collections.abc import Collection
from typing import Any

import numpy as np

from pluriverse.importers.description import DofDescription, RobotDescription
from pluriverse.importers.mjcf_bodies import SLIDE
from pluriverse.importers.mjcf_rows import actuator_count
from pluriverse.importers.options import MjcfSettings
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.types import JointTargetMode

TRN_JOINT, TRN_JOINT_IN_PARENT = 0, 1  # mujoco.mjtTrn
GAIN_FIXED, GAIN_AFFINE = 0, 1  # mujoco.mjtGain
BIAS_NONE, BIAS_AFFINE = 0, 1  # mujoco.mjtBias


@dataclasses.dataclass
class _Term:
    """What one actuator adds to the effort of its joint: offset + ke (0 - q) + kd (0 - q')."""

    name: str
    ke: float
    kd: float
    offset: float
    effort_limit: float
    offset_range: tuple[float, float] = (-np.inf, np.inf)
    """Range of the offset over its control range."""


def add_drives(
    robot: RobotDescription,
    model: Any,
    link_of_joint: dict[int, int],
    controls: np.ndarray,
    options: MjcfSettings,
    report: ImportReport,
) -> dict[int, int]:
    """Give the joints of `robot` the drives of the actuators, with targets at the given `controls`.

    Returns:
        The actuators that are drives, and whether their control is a position (0) or a velocity (1); empty
        without the namespace `mujoco`.
    """
    terms: dict[int, list[_Term]] = {}
    servos: dict[int, int] = {}
    registered = options["custom"].namespace.is_registered
    if registered:
        servos = _find_servos(model, link_of_joint, robot)
        _move_springs(model, link_of_joint, robot)
    for actuator in range(actuator_count(model)):
        if registered and actuator not in servos:
            continue
        name = model.actuator(actuator).name or f"actuator {actuator}"
        reason = _unsupported(model, actuator, link_of_joint, robot)
        if reason:
            report.add(f"actuator: {reason}", name, "it exerts nothing")
            continue
        joint = int(model.actuator_trnid[actuator, 0])
        dof = robot.links[link_of_joint[joint]].joint.dof
        assert dof is not None
        terms.setdefault(joint, []).append(
            _term(
                model, actuator, name, float(controls[model.actuator_ctrladr[actuator]]), dof, options, report
            )
        )
    for joint, parts in terms.items():
        dof = robot.links[link_of_joint[joint]].joint.dof
        assert dof is not None
        length = options["scale"] if model.jnt_type[joint] == SLIDE else 1.0
        _set_drive(dof, parts, model.joint(joint).name or f"joint {joint}", length, report)
        if model.jnt_actfrclimited[joint]:
            low, high = model.jnt_actfrcrange[joint]
            if dof.mode is not JointTargetMode.NONE:
                limit = float(max(abs(low), abs(high)))
                dof.effort_limit = limit if dof.effort_limit is None else min(dof.effort_limit, limit)
    _limit_direct_efforts(model, link_of_joint, robot, terms.keys(), report, registered=registered)
    return servos


def _find_servos(model: Any, link_of_joint: dict[int, int], robot: RobotDescription) -> dict[int, int]:
    """Return the actuators that are drives exactly, and whether they follow a position or a velocity."""
    acting: dict[int, int] = {}
    only_on_joints = True
    for actuator in range(actuator_count(model)):
        if int(model.actuator_trntype[actuator]) in (TRN_JOINT, TRN_JOINT_IN_PARENT):
            joint = int(model.actuator_trnid[actuator, 0])
            acting[joint] = acting.get(joint, 0) + 1
        else:
            only_on_joints = False
    result = {}
    for actuator in range(actuator_count(model)):
        joint = int(model.actuator_trnid[actuator, 0])
        if _unsupported(model, actuator, link_of_joint, robot) or acting[joint] > 1:
            continue
        gain, bias = float(model.actuator_gainprm[actuator, 0]), model.actuator_biasprm[actuator, :3]
        low, high = model.actuator_forcerange[actuator]
        changed = [
            getattr(model, f"actuator_{name}", None)
            for name in ("damping", "dampingpoly", "armature", "delay")
        ]
        plain = (
            int(model.actuator_gaintype[actuator]) == GAIN_FIXED
            and int(model.actuator_biastype[actuator]) == BIAS_AFFINE
            and int(model.actuator_dyntype[actuator]) == 0
            and bias[0] == 0.0
            # The effort limit of a drive applies to its joint, and would also limit the forces of tendons.
            and (not model.actuator_forcelimited[actuator] or (low == -high and only_on_joints))
            and not any(table is not None and np.any(table[actuator] != 0.0) for table in changed)
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
        if int(model.actuator_trntype[actuator]) in (TRN_JOINT, TRN_JOINT_IN_PARENT)
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
    report: ImportReport,
    *,
    registered: bool,
) -> None:
    """Limit the sum of the efforts on joints without a drive by `actuatorfrcrange`.

    With the namespace, joints without a range are unlimited, since its actuators act there.
    """
    for joint, link in link_of_joint.items():
        dof = robot.links[link].joint.dof
        if dof is None or joint in driven:
            continue
        if not model.jnt_actfrclimited[joint]:
            if registered:
                dof.effort_limit = np.inf
            continue
        low, high = (float(bound) for bound in model.jnt_actfrcrange[joint])
        name = model.joint(joint).name or f"joint {joint}"
        if dof.target_ke:
            report.add("actuatorfrcrange of a joint with a spring", name, "its effort has no limit")
            continue
        dof.effort_limit = _symmetric(low, high, name, "actuatorfrcrange", report)


def _unsupported(model: Any, actuator: int, link_of_joint: dict[int, int], robot: RobotDescription) -> str:
    """Return why an actuator cannot be a drive, or an empty text."""
    if int(model.actuator_trntype[actuator]) not in (TRN_JOINT, TRN_JOINT_IN_PARENT):
        return "its transmission is not a joint"
    joint = int(model.actuator_trnid[actuator, 0])
    if joint not in link_of_joint:
        return "its joint was removed by floating=False"
    if robot.links[link_of_joint[joint]].joint.dof is None:
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


def _term(
    model: Any,
    actuator: int,
    name: str,
    control: float,
    dof: DofDescription,
    options: MjcfSettings,
    report: ImportReport,
) -> _Term:
    gear = float(model.actuator_gear[model.actuator_outadr[actuator], 0])
    gain = float(model.actuator_gainprm[actuator, 0])
    bias = np.zeros(3)
    if int(model.actuator_biastype[actuator]) == BIAS_AFFINE:
        bias = np.array(model.actuator_biasprm[actuator, :3])
    if int(model.actuator_dyntype[actuator]) != 0:
        report.add("activation dynamics of an actuator", name, "its force follows the control at once")
    delay = getattr(model, "actuator_delay", None)
    if delay is not None and np.any(delay[actuator] != 0.0):
        report.add("delay of an actuator", name, "its force follows the control at once")
    # Rotor inertia and friction of the actuator itself, reflected through the gear.
    for quantity, factor in (("armature", options["armature_scale"]), ("damping", 1.0)):
        table = getattr(model, f"actuator_{quantity}", None)
        if table is not None and np.any(table[actuator] != 0.0):
            reflected = factor * gear**2 * float(np.ravel(table[actuator])[0])
            setattr(dof, quantity, (getattr(dof, quantity) or 0.0) + reflected)
    limit, offset_range = np.inf, (-np.inf, np.inf)
    if model.actuator_forcelimited[actuator]:
        low, high = model.actuator_forcerange[actuator]
        limit = _symmetric(float(low), float(high), name, "forcerange", report)
    first = int(model.actuator_ctrladr[actuator])
    if model.actuator_ctrllimited[first]:
        low, high = (float(bound) for bound in model.actuator_ctrlrange[first])
        control = min(max(control, low), high)
        if not np.any(bias[1:]):  # an effort: its control range bounds the force
            limit = min(limit, abs(gain) * _symmetric(low, high, name, "ctrlrange", report))
        else:
            ends = sorted(gear * (gain * bound + bias[0]) for bound in (low, high))
            offset_range = (ends[0], ends[1])
    return _Term(
        name,
        ke=-bias[1] * gear**2,
        kd=-bias[2] * gear**2,
        offset=gear * (gain * control + bias[0]),
        effort_limit=abs(gear) * limit,
        offset_range=offset_range,
    )


def _symmetric(low: float, high: float, name: str, quantity: str, report: ImportReport) -> float:
    if low != -high:
        report.add(
            f"{quantity} that is not symmetric", name, "the effort is limited to the larger bound both ways"
        )
    return max(abs(low), abs(high))


def _set_drive(
    dof: DofDescription, terms: list[_Term], name: str, length: float, report: ImportReport
) -> None:
    """Set the drive of `dof` to the sum of the terms and of its spring, if any."""
    ke = sum(term.ke for term in terms)
    kd = sum(term.kd for term in terms)
    spring = dof.target_ke or 0.0
    if len(terms) > 1 and any(np.isfinite(term.effort_limit) for term in terms):
        names = " + ".join(term.name for term in terms)
        report.add(
            "effort limits of several actuators on a joint", f"{name} ({names})", "their sum limits the sum"
        )
    effort_limit = sum(term.effort_limit for term in terms)
    if spring > 0.0:
        effort_limit = np.inf  # a clamped drive would clamp the spring too
        if ke > 0.0 or any(np.isfinite(term.effort_limit) for term in terms):
            report.add(
                "stiffness of a joint with an actuator",
                name,
                "spring and actuator are one drive, so that the spring's rest position moves with the target "
                "and the effort of the actuator has no limit",
            )
    # Terms with stiffness set the position target; the remainder sets the velocity target, or is an effort.
    pulling = sum(term.offset for term in terms if term.ke > 0.0) * length
    dragging = sum(term.offset for term in terms if term.ke == 0.0 and term.kd > 0.0) * length
    dof.act = sum(term.offset for term in terms if term.ke == 0.0 and term.kd == 0.0)
    total = ke + spring
    if total > 0.0:
        dof.target_pos = (pulling + spring * (dof.target_pos or 0.0)) / total
    dof.target_vel = dragging / kd if kd > 0.0 else 0.0
    dof.target_ke, dof.target_kd = total, kd
    drags = any(term.ke == 0.0 and term.kd > 0.0 for term in terms)
    if total > 0.0:
        dof.mode = JointTargetMode.POSITION_VELOCITY if drags else JointTargetMode.POSITION
    elif kd > 0.0:
        dof.mode = JointTargetMode.VELOCITY
    else:
        dof.mode = JointTargetMode.EFFORT
    dof.effort_limit = effort_limit
    _bound_targets(dof, terms, spring, name, length, report)
    if dof.mode is not JointTargetMode.EFFORT and any(term.ke == 0.0 and term.kd == 0.0 for term in terms):
        report.add(
            "motor on a joint with a spring or another actuator",
            name,
            "its effort is joint_act of that drive",
            ImportSeverity.NOTE,
        )


def _bound_targets(
    dof: DofDescription, terms: list[_Term], spring: float, name: str, length: float, report: ImportReport
) -> None:
    """Bound the target of a drive by the control ranges of its actuators.

    Position actuators bound the position target, velocity actuators the velocity target of a drive without
    stiffness. The term of a spring does not depend on a control.
    """
    pulling = [term for term in terms if term.ke > 0.0]
    dragging = [term for term in terms if term.ke == 0.0 and term.kd > 0.0]
    acting = pulling or (dragging if spring == 0.0 else [])
    total = dof.target_ke if pulling else dof.target_kd
    lost = (
        [term for term in dragging if np.isfinite(term.offset_range).any()] if acting is not dragging else []
    )
    if lost:
        report.add("ctrlrange of a velocity actuator beside a stiffness", name, "its control has no range")
    if not acting or not total:
        return
    # The current target minus the contribution of the controls: the share of the spring.
    target = (dof.target_pos if pulling else dof.target_vel) or 0.0
    rest = target - length * sum(term.offset for term in acting) / total
    low, high = (sum(term.offset_range[side] for term in acting) for side in (0, 1))
    if np.isfinite(low):
        dof.target_lower = rest + length * low / total
    if np.isfinite(high):
        dof.target_upper = rest + length * high / total
