"""Rows of fixed tendons and of actuators on them in the namespace `mujoco`: checked, and which act.

Scripts may write such rows themselves, so what they refer to is looked at before `fixed_tendons.py` makes
springs of them.
"""

import numpy as np

from pluriverse.model import Model
from pluriverse.model.attributes import find_attribute
from pluriverse.mujoco_attributes.choices import (
    BIAS_AFFINE,
    BIAS_NONE,
    FIXED,
    GAIN_FIXED,
    CtrlSource,
    TrnType,
)
from pluriverse.mujoco_attributes.registration import AUTO


def check_rows(model: Model) -> None:
    """Check what fixed tendons, and actuators on tendons, refer to.

    Raises:
        ValueError: If a row is wrong.
    """
    count = model.custom_frequency_counts.get("mujoco:tendon", 0)
    if not count:
        return
    labels = find_attribute(model, "mujoco:tendon_label")
    adr, num = host_column(model, "joint_adr"), host_column(model, "joint_num")
    joint, dof = host_column(model, "joint"), host_column(model, "joint_dof")

    def refuse(wrong: np.ndarray, problem: str) -> None:
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"SolverSAP: tendon '{labels[row]}' (row {row} of mujoco:tendon) {problem}")

    fixed = host_column(model, "type") == FIXED
    refuse(
        fixed & (num > 0) & ((adr < 0) | (adr + num > len(joint))),
        "passes rows of mujoco:tendon_joint that do not exist. Give tendon_joint_adr and tendon_joint_num "
        f"within the {len(joint)} there are.",
    )
    own = np.flatnonzero(fixed & (num > 0))
    tendon, entry = np.repeat(own, num[own]), joint_rows(model, own)[1]

    def refuse_entry(wrong: np.ndarray, problem: str) -> None:
        refuse(np.bincount(tendon[wrong], minlength=count) > 0, problem)

    refuse_entry(
        (joint[entry] < 0) | (joint[entry] >= model.joint_count),
        f"passes a joint that does not exist. Give tendon_joint of 0 to {model.joint_count - 1}.",
    )
    first, end = (model.joint_qd_start.numpy()[joint[entry] + shift] for shift in (0, 1))
    given = np.where(dof[entry] >= 0, dof[entry], first)
    refuse_entry(
        (given < first) | (given >= end),
        "passes a degree of freedom that is none of its joint. Give tendon_joint_dof of one that it has, or "
        "-1 for its first.",
    )
    world = world_of_dofs(model, given)
    least, most = np.full(count, model.world_count), np.full(count, -1)
    np.minimum.at(least, tendon, world)
    np.maximum.at(most, tendon, world)
    refuse(least < most, "passes joints of several worlds. Give each world a tendon of its own.")
    source = find_attribute(model, "mujoco:ctrl_source")
    if source is not None and source.size:
        kind, target = (
            find_attribute(model, f"mujoco:actuator_{name}").numpy() for name in ("trntype", "trnid")
        )
        wrong = np.flatnonzero((kind == TrnType.TENDON) & ((target[:, 0] < 0) | (target[:, 0] >= count)))
        if len(wrong):
            row = int(wrong[0])
            label = find_attribute(model, "mujoco:actuator_label")[row]
            raise ValueError(
                f"SolverSAP: actuator '{label}' (row {row} of mujoco:actuator) acts on tendon "
                f"{target[row, 0]}, but there are {count}. Give actuator_trnid of 0 to {count - 1}."
            )


def joint_rows(model: Model, tendons: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where the joints of each of some tendons begin in a list of all, and the rows of that list."""
    counts = host_column(model, "joint_num")[tendons]
    start = np.concatenate([[0], np.cumsum(counts)])
    first = host_column(model, "joint_adr")[tendons] - start[:-1]
    return start, np.arange(start[-1]) + np.repeat(first, counts)


def simulated_tendons(model: Model) -> np.ndarray:
    """Return which tendons SolverSAP has, shape [tendon]: fixed ones over joints that move along axes.

    The coordinates of a ball or free joint are no lengths whose rates are its velocities.
    """
    own = np.flatnonzero((host_column(model, "type") == FIXED) & (host_column(model, "joint_num") > 0))
    start, entry = joint_rows(model, own)
    joint = host_column(model, "joint")[entry]
    dofs, coords = (np.diff(first.numpy())[joint] for first in (model.joint_qd_start, model.joint_q_start))
    turns = np.bincount(
        np.repeat(own, np.diff(start))[dofs != coords], minlength=len(host_column(model, "type"))
    )
    result: np.ndarray = np.isin(np.arange(len(turns)), own) & (turns == 0)
    return result


def acting_rows(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return the tendon and the actuator, -1 for none, of each spring that a model has, by world."""
    none = np.zeros(0, dtype=np.int64)
    if not model.custom_frequency_counts.get("mujoco:tendon", 0):
        return none, none
    limited, bounds = host_column(model, "limited"), host_column(model, "range")
    is_limited = (limited == 1) | ((limited == AUTO) & (bounds[:, 0] < bounds[:, 1]))
    is_elastic = np.logical_or.reduce(
        [
            (host_column(model, name).reshape(len(limited), -1) != 0.0).any(axis=1)
            for name in ("stiffness", "stiffnesspoly", "damping", "dampingpoly")
        ]
    )
    acts = simulated_tendons(model) & (is_elastic | is_limited)
    tendon = np.flatnonzero(acts)
    actuator = np.flatnonzero(acting_actuators(model))
    if len(actuator):
        target = find_attribute(model, "mujoco:actuator_trnid").numpy()[actuator, 0]
        tendon, actuator = (
            np.concatenate([tendon, target]),
            np.concatenate([np.full(len(tendon), -1), actuator]),
        )
    else:
        actuator = np.full(len(tendon), -1)
    joint = host_column(model, "joint")[host_column(model, "joint_adr")[tendon]]
    world = world_of_dofs(model, model.joint_qd_start.numpy()[joint])
    order = np.lexsort((actuator, tendon, world))
    return tendon[order], actuator[order]


def acting_actuators(model: Model) -> np.ndarray:
    """Return which actuators of a model act on fixed tendons by `control.mujoco.ctrl`."""
    source = find_attribute(model, "mujoco:ctrl_source")
    if source is None or source.size == 0 or not model.custom_frequency_counts.get("mujoco:tendon", 0):
        return np.zeros(0 if source is None else source.size, dtype=bool)
    kind, target, dynamics, gain, bias = (
        find_attribute(model, f"mujoco:actuator_{name}").numpy()
        for name in ("trntype", "trnid", "dyntype", "gaintype", "biastype")
    )
    on_tendon = (kind == TrnType.TENDON) & (target[:, 0] >= 0)
    is_simulated = simulated_tendons(model)[np.where(on_tendon, target[:, 0], 0)]
    is_linear = (dynamics == 0) & (gain == GAIN_FIXED) & np.isin(bias, (BIAS_NONE, BIAS_AFFINE))
    is_direct = source.numpy() == CtrlSource.CTRL_DIRECT
    return on_tendon & is_simulated & is_linear & is_direct & ~idle_actuators(model)


def idle_actuators(model: Model) -> np.ndarray:
    """Return which actuators of a model exert nothing at any control, as those that a document disables."""
    gain, bias, gainprm, biasprm = (
        find_attribute(model, f"mujoco:actuator_{name}").numpy()
        for name in ("gaintype", "biastype", "gainprm", "biasprm")
    )
    pulls = np.where(gain == GAIN_FIXED, gainprm[:, 0] != 0.0, (gainprm != 0.0).any(axis=1))
    is_biased = (bias != BIAS_NONE) & ((bias != BIAS_AFFINE) | (biasprm[:, :3] != 0.0).any(axis=1))
    return ~pulls & ~is_biased


def world_of_dofs(model: Model, dofs: np.ndarray) -> np.ndarray:
    """Return the worlds of degrees of freedom."""
    return np.searchsorted(model.topology.world_dof.numpy(), dofs, side="right") - 1


def host_column(model: Model, name: str) -> np.ndarray:
    """Return an attribute of tendons, or of the joints that they pass."""
    return np.asarray(find_attribute(model, f"mujoco:tendon_{name}").numpy())
