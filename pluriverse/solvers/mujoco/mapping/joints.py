"""Limits, losses and armature of MuJoCo's joints, for all worlds of a group at once."""

from dataclasses import dataclass

import numpy as np

from pluriverse.solvers.mujoco.attributes.actuators import driven_dofs
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.solref import (
    DEFAULT_SOLIMP,
    DEFAULT_SOLREF,
    SolrefMode,
    solref_of_gains,
)
from pluriverse.solvers.mujoco.mapping.structure import MujocoJoint, StructurePlan
from pluriverse.types import BodyFlags, JointTargetMode

# Limits [m or rad] from here on count as none, as do those of the builder's default.
LIMIT_NONE = 1e9
# Bound [m or rad] that stands for none where the other side of a range has one.
FAR = 1e10
# Width [m or rad] of the range of a locked joint, for MuJoCo wants the bounds to differ.
RANGE_MIN = 1e-9
# Efforts [N or N·m] from here on count as unlimited; the builder's default of 1e6 stays a limit.
EFFORT_UNLIMITED = 1e20
# Armature [kg or kg·m²] of what is prescribed: 1e4 N change its speed by 5e-6 m/s in a step of 5 ms, before
# that is taken back. MuJoCo ends its line search too early for what rests on a larger one: with 1e10 boxes on
# a kinematic platform shake at some rad/s, with 1e7 they are at rest to 2e-3 rad/s.
KINEMATIC_ARMATURE = 1e7


@dataclass
class JointValues:
    """Joint properties of one group, row by row."""

    jnt_limited: np.ndarray
    """Whether a joint has limits in any world, shape [njnt]."""
    jnt_range: np.ndarray
    """Limits [m or rad], shape [row, njnt, 2]."""
    jnt_margin: np.ndarray
    """Distance [m or rad] from a limit at which it begins to act, shape [row, njnt]."""
    jnt_solimp: np.ndarray
    """Impedance of the limits, shape [row, njnt, 5]."""
    jnt_actfrclimited: np.ndarray
    """Whether drives of a joint have an effort limit in any world, shape [njnt]."""
    jnt_actfrcrange: np.ndarray
    """Range of the sum of the drive forces [N or N·m], shape [row, njnt, 2]."""
    jnt_stiffness: np.ndarray
    """Stiffness of the spring [N/m or N·m/rad], shape [row, njnt]."""
    spring_rest: np.ndarray
    """Rest position of the spring [m or rad], shape [row, njnt]."""
    jnt_actgravcomp: np.ndarray
    """Whether gravity compensation counts as a drive force, shape [njnt]."""
    dof_armature: np.ndarray
    """Added inertia [kg or kg·m²], shape [row, nv]."""
    dof_damping: np.ndarray
    """Viscous damping [N·s/m or N·m·s/rad], shape [row, nv]."""
    dof_frictionloss: np.ndarray
    """Dry friction [N or N·m], shape [row, nv]."""
    dof_solref: np.ndarray
    """`solref` of dry friction, shape [row, nv, 2]."""
    dof_solimp: np.ndarray
    """Impedance of dry friction, shape [row, nv, 5]."""


def compute_joint_values(rows: ModelRows, plan: StructurePlan, worlds: np.ndarray) -> JointValues:
    """Return limits, losses and armature."""
    count, joint_count, dof_count = len(worlds), len(plan.joints), plan.qvel_count
    dofs = public_dofs(plan)

    def by_dof(name: str) -> np.ndarray:
        return rows.take(name, "dof", worlds)[:, dofs]

    def custom(name: str, default: tuple[float, ...]) -> np.ndarray:
        values = rows.custom(name, "dof", worlds)
        if values is None:
            return np.tile(np.array(default), (count, dof_count, 1))
        return values[:, dofs].reshape(count, dof_count, len(default))

    first = np.array([joint.qvel for joint in plan.joints], dtype=np.int64)
    scalar = np.array(
        [joint.kind in (MujocoJoint.SLIDE, MujocoJoint.HINGE) for joint in plan.joints], dtype=bool
    )
    is_free = np.array([joint.kind is MujocoJoint.FREE for joint in plan.joints], dtype=bool)
    lower, upper = by_dof("joint_limit_lower")[:, first], by_dof("joint_limit_upper")[:, first]
    limited = scalar & ((lower > -LIMIT_NONE) | (upper < LIMIT_NONE)).any(axis=0)
    lower, upper = np.maximum(lower, -FAR), np.minimum(upper, FAR)
    middle = 0.5 * (lower + upper)
    locked = upper - lower < RANGE_MIN
    jnt_range = np.stack(
        [
            np.where(locked, middle - 0.5 * RANGE_MIN, lower),
            np.where(locked, middle + 0.5 * RANGE_MIN, upper),
        ],
        axis=-1,
    )
    effort = by_dof("joint_effort_limit")[:, first]
    driven = (by_dof("joint_target_mode") != JointTargetMode.NONE).any(axis=0)[first]
    driven |= np.isin(dofs[first], driven_dofs(rows, worlds))
    effort_limited = scalar & driven & (effort < EFFORT_UNLIMITED).any(axis=0)
    bound = np.minimum(effort, EFFORT_UNLIMITED)
    armature = by_dof("joint_armature")
    armature[kinematic_joints(rows, plan, worlds)[:, dof_joints(plan)]] = KINEMATIC_ARMATURE
    actgravcomp = custom("jnt_actgravcomp", (0.0,))[0, first, 0] != 0.0
    return JointValues(
        jnt_limited=limited,
        jnt_range=jnt_range,
        jnt_margin=custom("limit_margin", (0.0,))[:, first, 0],
        jnt_solimp=custom("solimplimit", DEFAULT_SOLIMP)[:, first],
        jnt_actfrclimited=effort_limited,
        jnt_actfrcrange=np.stack([-bound, bound], axis=-1),
        # The spring of a ball joint pulls to its coordinates at zero.
        jnt_stiffness=np.where(~is_free, custom("dof_passive_stiffness", (0.0,))[:, first, 0], 0.0),
        spring_rest=np.where(scalar, custom("dof_springref", (0.0,))[:, first, 0], 0.0),
        jnt_actgravcomp=actgravcomp if joint_count else np.zeros(0, dtype=bool),
        dof_armature=armature,
        dof_damping=by_dof("joint_damping"),
        dof_frictionloss=by_dof("joint_friction"),
        dof_solref=custom("solreffriction", DEFAULT_SOLREF),
        dof_solimp=custom("solimpfriction", DEFAULT_SOLIMP),
    )


def compute_limit_solref(
    rows: ModelRows, plan: StructurePlan, worlds: np.ndarray, inverse_weight: np.ndarray, solimp: np.ndarray
) -> np.ndarray:
    """Return `jnt_solref`, shape [row, njnt, 2].

    Limits whose gains are not given have MuJoCo's own, those with gains push with such forces, and those with
    an authored `solref` (`SolrefMode.RAW`) have that.

    Args:
        rows: Arrays of the model.
        plan: Structure of the group.
        worlds: Worlds of the group.
        inverse_weight: `dof_invweight0`, shape [row, nv].
        solimp: `jnt_solimp`, shape [row, njnt, 5].
    """
    first = np.array([joint.qvel for joint in plan.joints], dtype=np.int64)
    dofs = public_dofs(plan)[first]
    stiffness = rows.take("joint_limit_ke", "dof", worlds)[:, dofs]
    damping = rows.take("joint_limit_kd", "dof", worlds)[:, dofs]
    factor = inverse_weight[:, first] * (1.0 - solimp[:, :, 1])
    forces = solref_of_gains(stiffness, damping, factor)
    mode = rows.custom("solreflimit_mode", "dof", worlds)
    authored = rows.custom("solreflimit", "dof", worlds)
    if mode is None or authored is None:
        return forces
    return np.where(mode[:, dofs][..., None] == SolrefMode.RAW, authored[:, dofs], forces)


def public_dofs(plan: StructurePlan) -> np.ndarray:
    """Return the world-local public degree of freedom of each of MuJoCo's, shape [nv]."""
    public = np.zeros(plan.qvel_count, dtype=np.int64)
    for joint in plan.joints:
        size = _DOF_COUNT[joint.kind]
        public[joint.qvel : joint.qvel + size] = joint.dof + np.arange(size)
    return public


def dof_joints(plan: StructurePlan) -> np.ndarray:
    """Return the world-local joint of each of MuJoCo's degrees of freedom, shape [nv]."""
    joints = np.zeros(plan.qvel_count, dtype=np.int64)
    for joint in plan.joints:
        joints[joint.qvel : joint.qvel + _DOF_COUNT[joint.kind]] = joint.joint
    return joints


def kinematic_joints(rows: ModelRows, plan: StructurePlan, worlds: np.ndarray) -> np.ndarray:
    """Return whether each joint moves a kinematic body, shape [row, joint]."""
    flags = rows.take("body_flags", "body", worlds)[:, plan.template.joint_child]
    result: np.ndarray = (flags & int(BodyFlags.KINEMATIC)) != 0
    return result


_DOF_COUNT = {MujocoJoint.FREE: 6, MujocoJoint.BALL: 3, MujocoJoint.SLIDE: 1, MujocoJoint.HINGE: 1}
