"""Actuators of MuJoCo on one joint as its drive.

An actuator exerts, with gear g, control u and F the clamp to its force range,

    tau = g F(k u + b0 + b1 g q + b2 g q')

which is a drive of stiffness `-g² b1` and damping `-g² b2`; the control moves its target. Several actuators
on a joint add up. An actuator without stiffness follows a velocity; one without stiffness and damping is an
effort.
"""

import dataclasses

import numpy as np

from pluriverse.importers.description import DofDescription
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.types import JointTargetMode


@dataclasses.dataclass
class ActuatorTerm:
    """Contribution of one actuator to the effort of its joint: offset + ke (0 - q) + kd (0 - q')."""

    name: str
    ke: float
    kd: float
    offset: float
    effort_limit: float
    offset_range: tuple[float, float] = (-np.inf, np.inf)
    """Range of the offset over its control range."""


def symmetric_limit(low: float, high: float, name: str, quantity: str, report: ImportReport) -> float:
    """Return the larger of two bounds of an effort; ones that are not symmetric are reported."""
    if low != -high:
        report.add(
            f"{quantity} that is not symmetric", name, "the effort is limited to the larger bound both ways"
        )
    return max(abs(low), abs(high))


def set_drive(
    dof: DofDescription, terms: list[ActuatorTerm], name: str, length: float, report: ImportReport
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
    dof: DofDescription,
    terms: list[ActuatorTerm],
    spring: float,
    name: str,
    length: float,
    report: ImportReport,
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
        report.add("ctrlrange of a velocity actuator with a stiffness", name, "its control has no range")
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
