"""Drives that an asset lacks, from the options `drive_gains` and `effort_limit`."""

import fnmatch
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from pluriverse.importers.description import DofDescription, JointDescription, RobotDescription
from pluriverse.importers.options import Gains, Limits
from pluriverse.types import JointTargetMode


def give_drives(what: str, robot: RobotDescription, drive_gains: Gains, effort_limit: Limits) -> None:
    """Give joints drives and effort limits.

    A pair of gains applies to joints without a drive that do not follow another joint, a limit to those
    without one; drives of mode None or `NONE` count as missing. Mappings apply to the joints that they name,
    and override the asset. The target of such a drive is the joint's initial position.

    Args:
        what: Function that messages name.
        robot: Robot whose joints get drives.
        drive_gains: Stiffness and damping.
        effort_limit: Largest effort.

    Raises:
        ValueError: If a number is out of range, or a name matches no joint.
    """
    for name, drive, target in _selected(what, "drive_gains", robot, drive_gains, _is_undriven):
        drive.target_ke, drive.target_kd = _pair(what, name, target[1])
        drive.mode = JointTargetMode.POSITION if drive.target_ke > 0.0 else JointTargetMode.VELOCITY
        drive.target_pos, drive.target_vel = target[0], 0.0
    for name, drive, target in _selected(what, "effort_limit", robot, effort_limit, _is_unlimited):
        limit = target[1]
        if not _is_number(limit) or not limit >= 0.0:
            raise ValueError(
                f"{what}: effort_limit of {name} is {limit!r}, but it is a number >= 0 (N or N·m)."
            )
        drive.effort_limit = float(limit)


def _is_undriven(dof: DofDescription) -> bool:
    return dof.mode in (None, JointTargetMode.NONE) and not dof.target_ke and not dof.target_kd


def _is_unlimited(dof: DofDescription) -> bool:
    return dof.effort_limit is None or np.isinf(dof.effort_limit)


def _selected(
    what: str,
    option: str,
    robot: RobotDescription,
    given: Any,
    needs: Callable[[DofDescription], bool],
) -> Iterator[tuple[str, DofDescription, tuple[float, Any]]]:
    """Yield the degrees of freedom of an option: joint, dof, (initial coordinate, value)."""
    if given is None:
        return
    joints = [link.joint for link in robot.links] + [loop.joint for loop in robot.loop_joints]
    led = {id(robot.links[coupling.link].joint) for coupling in robot.couplings}
    if not isinstance(given, Mapping):
        for joint in joints:
            if id(joint) not in led:
                for index, dof in enumerate(_dofs(joint)):
                    if needs(dof):
                        yield _name(joint), dof, (_initial(joint, index), given)
        return
    for pattern, value in given.items():
        found = [joint for joint in joints if _dofs(joint) and _matches(joint, pattern)]
        if not found:
            names = ", ".join(_name(joint) for joint in joints if _dofs(joint)) or "none"
            raise ValueError(
                f"{what}: {option} names {pattern!r}, but no joint is called so; there are {names}."
            )
        for joint in found:
            for index, dof in enumerate(_dofs(joint)):
                yield _name(joint), dof, (_initial(joint, index), value)


def _dofs(joint: JointDescription) -> list[DofDescription]:
    return joint.dofs if joint.dof is None else [joint.dof]


def _initial(joint: JointDescription, index: int) -> float:
    return float(joint.q[index]) if index < len(joint.q) else 0.0


def _name(joint: JointDescription) -> str:
    return joint.label.rpartition("/")[2]


def _matches(joint: JointDescription, pattern: str) -> bool:
    return fnmatch.fnmatchcase(_name(joint), pattern) or fnmatch.fnmatchcase(joint.label, pattern)


def _pair(what: str, name: str, gains: Any) -> tuple[float, float]:
    pair = tuple(gains) if isinstance(gains, tuple | list | np.ndarray) else (gains,)
    if len(pair) != 2 or not all(_is_number(gain) and 0.0 <= gain < np.inf for gain in pair) or not any(pair):
        raise ValueError(
            f"{what}: drive_gains of {name} is {gains!r}, but it is a pair (stiffness, damping) of finite "
            "numbers >= 0 that are not both 0."
        )
    return float(pair[0]), float(pair[1])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
