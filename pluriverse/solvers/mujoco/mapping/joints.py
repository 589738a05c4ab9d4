"""Joints of MuJoCo: their limits, prescribed motion and custom attributes."""

from typing import Any

import numpy as np

from pluriverse.mujoco_attributes.choices import DEFAULT_SOLIMP, DEFAULT_SOLREF, SolrefMode
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.structure import MujocoJoint, StructurePlan, dof_joints, public_dofs
from pluriverse.types import BodyFlags

# Limits [m or rad] from this value on count as none; the builder's default is one.
LIMIT_NONE = 1e9
# Bound [m or rad] that stands for no limit on one side of a range.
FAR = 1e10
# Width [m or rad] of the range of a locked joint, since MuJoCo requires the bounds to differ.
RANGE_MIN = 1e-9
# Efforts [N or N·m] from this value on count as unlimited; the builder's default of 1e6 remains a limit.
EFFORT_UNLIMITED = 1e20
# Armature [kg or kg·m²] of a joint with a prescribed motion: 1e4 N change its speed by 5e-6 m/s in a step of
# 5 ms, which is corrected afterwards. With a larger armature, MuJoCo's line search ends too early for resting
# bodies: boxes on a kinematic platform shake at some rad/s with 1e10, and rest to 2e-3 rad/s with 1e7.
KINEMATIC_ARMATURE = 1e7


def limited_joints(rows: ModelRows, plan: StructurePlan, worlds: np.ndarray) -> np.ndarray:
    """Return which joints have limits in any world, shape [njnt]."""
    dofs = first_dofs(plan)
    lower, upper = (
        rows.gather(name, "dof", worlds)[:, dofs] for name in ("joint_limit_lower", "joint_limit_upper")
    )
    result: np.ndarray = scalar_joints(plan) & ((lower > -LIMIT_NONE) | (upper < LIMIT_NONE)).any(axis=0)
    return result


def scalar_joints(plan: StructurePlan) -> np.ndarray:
    """Return which joints of MuJoCo are slides or hinges, shape [njnt]."""
    return np.array(
        [joint.kind in (MujocoJoint.SLIDE, MujocoJoint.HINGE) for joint in plan.joints], dtype=bool
    )


def first_dofs(plan: StructurePlan) -> np.ndarray:
    """Return the world-local first degree of freedom of each of MuJoCo's joints, shape [njnt]."""
    return public_dofs(plan)[[joint.qvel for joint in plan.joints]]


def kinematic_joints(rows: ModelRows, plan: StructurePlan, worlds: np.ndarray) -> np.ndarray:
    """Return whether each joint moves a kinematic body, shape [row, joint]."""
    flags = rows.gather("body_flags", "body", worlds)[:, plan.template.joint_child]
    result: np.ndarray = (flags & int(BodyFlags.KINEMATIC)) != 0
    return result


def kinematic_dofs(rows: ModelRows, plan: StructurePlan, worlds: np.ndarray) -> np.ndarray:
    """Return whether each of MuJoCo's degrees of freedom moves a kinematic body, shape [row, nv]."""
    return kinematic_joints(rows, plan, worlds)[:, dof_joints(plan)]


def joint_attributes(rows: ModelRows, plan: StructurePlan, worlds: np.ndarray) -> dict[str, np.ndarray]:
    """Return the fields of joints that only custom attributes set, shape [row, njnt or nv, ...].

    The rest position of springs (`springref`) has one number per joint and is no field of `mjModel`.
    """
    dofs, first = public_dofs(plan), np.array([joint.qvel for joint in plan.joints], dtype=np.int64)
    is_free = np.array([joint.kind is MujocoJoint.FREE for joint in plan.joints], dtype=bool)

    def custom(name: str, default: Any) -> np.ndarray:
        values = rows.custom(name, "dof", worlds)
        if values is None:
            return np.tile(np.array(default), (len(worlds), len(dofs), 1))
        return values[:, dofs].reshape(len(worlds), len(dofs), len(default))

    return {
        "jnt_margin": custom("limit_margin", (0.0,))[:, first, 0],
        "jnt_solimp": custom("solimplimit", DEFAULT_SOLIMP)[:, first],
        # The spring of a ball joint pulls to its zero position.
        "jnt_stiffness": np.where(is_free, 0.0, custom("dof_passive_stiffness", (0.0,))[:, first, 0]),
        "jnt_actgravcomp": custom("jnt_actgravcomp", (0.0,))[:, first, 0] != 0.0,
        "dof_solref": custom("solreffriction", DEFAULT_SOLREF),
        "dof_solimp": custom("solimpfriction", DEFAULT_SOLIMP),
        "springref": np.where(scalar_joints(plan), custom("dof_springref", (0.0,))[:, first, 0], 0.0),
    }


def authored_limits(
    rows: ModelRows, plan: StructurePlan, worlds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return when the limit of each joint has its authored `solref`, and these.

    Returns:
        0 for never, 1 for always, 2 where the model has neither stiffness nor damping of it, shape
        [row, njnt]; and the `solref`, shape [row, njnt, 2].
    """
    dofs = first_dofs(plan)
    mode = rows.custom("solreflimit_mode", "dof", worlds)
    authored = rows.custom("solreflimit", "dof", worlds)
    if mode is None or authored is None:
        return np.zeros((len(worlds), len(dofs)), dtype=np.int64), np.zeros((len(worlds), len(dofs), 2))
    mode, authored = mode[:, dofs], authored[:, dofs]
    in_file = (mode == SolrefMode.MJCF_DEFAULT) & (authored != 0.0).any(axis=-1)
    return np.where(mode == SolrefMode.RAW, 1, np.where(in_file, 2, 0)), authored
