"""Equality constraints as MuJoCo's, for all worlds of a group at once.

Points and poses are held at sites, so that they do not depend on MuJoCo's reference pose:

| Ours | MuJoCo's |
| --- | --- |
| `CONNECT` | connect of two sites |
| `WELD` | weld of two sites |
| `HINGE` | two connects, of points on the axis |
| `JOINT`, mimic | joint |
| `DISTANCE` | a spatial tendon of limited length between two sites |

MuJoCo's constraints give way under a load, the more the lighter the bodies are. The weld that holds a body
together which a loop joint cuts has the largest impedance that MuJoCo takes, so that what the joint carries
does not open it; `eq_solimp` of the constraint says otherwise.
"""

from dataclasses import dataclass, field

import numpy as np

from pluriverse.model import poses
from pluriverse.solvers.mujoco.mapping.frames import as_wxyz
from pluriverse.solvers.mujoco.mapping.joints import FAR, RANGE_MIN
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.solref import DEFAULT_SOLIMP, DEFAULT_SOLREF
from pluriverse.solvers.mujoco.mapping.structure import StructurePlan
from pluriverse.types import EqType

CONNECT, WELD, JOINT = range(3)
"""`mujoco.mjtEq`."""

# The largest impedance that MuJoCo takes: under a load a constraint gives way by (1 - d) / d of what it would
# accelerate by freely in the square of its time constant.
RIGID_IMPEDANCE = 0.9999
# Distance [m] of the two points that hold the axis of a hinge. The torque about them grows with its square;
# this is the size of the joints that close the loops of robots.
HINGE_LENGTH = 0.1


@dataclass
class ConstraintPlan:
    """A constraint of MuJoCo."""

    equality: int
    """World-local equality constraint."""
    kind: int
    """`CONNECT`, `WELD` or `JOINT`."""
    body1: int = -1
    """MuJoCo's body of the first site."""
    body2: int = -1
    joint1: int = -1
    """MuJoCo's joint that follows."""
    joint2: int = -1
    side: float = 0.0
    """Where on the axis of a hinge the point is, in half lengths."""
    holds_part: bool = False
    """Whether it holds a part to the body that a loop joint cut it from."""


@dataclass
class RopePlan:
    """A tendon of MuJoCo that keeps two points within a distance."""

    equality: int
    """World-local equality constraint."""
    body1: int
    """MuJoCo's body of the first site."""
    body2: int
    joint: int
    """World-local distance joint that the numbers come from, -1 for the constraint itself."""


@dataclass
class RopeValues:
    """Ropes of one group, row by row."""

    site1: np.ndarray
    """First point in its body [m], shape [row, rope, 3]."""
    site2: np.ndarray
    """Second point, shape [row, rope, 3]."""
    range: np.ndarray
    """Least and largest distance [m], shape [row, rope, 2]."""
    solref: np.ndarray
    solimp: np.ndarray


@dataclass
class EqualityValues:
    """Constraints of one group, row by row."""

    site1: np.ndarray
    """Pose of the first site in its body (position, xyzw), shape [row, constraint, 7]."""
    site2: np.ndarray
    """Pose of the second one, shape [row, constraint, 7]."""
    data: np.ndarray
    """Coefficients of a joint constraint, shape [row, constraint, 5]."""
    torquescale: np.ndarray
    """Weight of the rotation of a weld, shape [row, constraint]."""
    active: np.ndarray
    """Whether the constraint acts, shape [row, constraint]."""
    solref: np.ndarray
    solimp: np.ndarray


@dataclass
class EqualityPlan:
    """All constraints of a group, in the order of MuJoCo."""

    constraints: list[ConstraintPlan] = field(default_factory=list)
    ropes: list[RopePlan] = field(default_factory=list)

    def by_equality(self, count: int) -> np.ndarray:
        """Return the constraints that stand for each of ours, -1 for none, shape [equality constraint, 2]."""
        result = np.full((count, 2), -1, dtype=np.int64)
        for index, constraint in enumerate(self.constraints):
            place = 0 if result[constraint.equality, 0] < 0 else 1
            result[constraint.equality, place] = index
        return result


def plan_equalities(plan: StructurePlan) -> EqualityPlan:
    """Return the constraints of MuJoCo for worlds of one structure."""
    result = EqualityPlan()
    joint_of = {(joint.joint, joint.place): index for index, joint in enumerate(plan.joints)}
    axes = plan.template.equality_axis.tolist()
    for index, (kind, body1, body2, joint1, joint2) in enumerate(plan.template.equality.tolist()):
        if kind == EqType.JOINT:
            follower, leader = joint_of[joint1, axes[index][0]], joint_of.get((joint2, axes[index][1]), -1)
            result.constraints.append(ConstraintPlan(index, JOINT, joint1=follower, joint2=leader))
            continue
        first, second = (int(plan.body_mj[body]) if body >= 0 else 0 for body in (body1, body2))
        if kind == EqType.DISTANCE:
            result.ropes.append(RopePlan(index, first, second, joint1))
            continue
        made = WELD if kind == EqType.WELD else CONNECT
        for side in (-1.0, 1.0) if kind == EqType.HINGE else (0.0,):
            part = kind == EqType.WELD and joint1 >= 0
            result.constraints.append(ConstraintPlan(index, made, first, second, side=side, holds_part=part))
    return result


def compute_equalities(rows: ModelRows, equalities: EqualityPlan, worlds: np.ndarray) -> EqualityValues:
    """Return poses, coefficients and states of the constraints."""
    order = np.array([constraint.equality for constraint in equalities.constraints], dtype=np.int64)
    kind = np.array([constraint.kind for constraint in equalities.constraints], dtype=np.int64)
    side = np.array([constraint.side for constraint in equalities.constraints], dtype=np.float64)

    def take(name: str) -> np.ndarray:
        return rows.take(f"equality_constraint_{name}", "equality", worlds)[:, order]

    anchor, relpose, torquescale = take("anchor"), take("relpose"), take("torquescale")
    # The rotational stiffness of a hinge grows with the square of the distance of its points.
    arm = 0.5 * HINGE_LENGTH * side * np.sqrt(torquescale)
    point = anchor + arm[..., None] * take("axis")
    turned = np.zeros((*anchor.shape[:-1], 4))
    turned[..., 3] = 1.0
    at_point = np.concatenate([point, turned], axis=-1)
    weld = (kind == WELD)[:, None]
    solimp = _authored(rows, "eq_solimp", order, worlds)
    parts = np.array([constraint.holds_part for constraint in equalities.constraints], dtype=bool)
    as_default = (solimp == np.array(DEFAULT_SOLIMP)).all(axis=-1) & parts
    solimp = np.where(as_default[..., None], [RIGID_IMPEDANCE, RIGID_IMPEDANCE, *DEFAULT_SOLIMP[2:]], solimp)
    # A weld holds a point of the second body, the others a point of the first.
    site1 = np.where(weld, poses.compose(relpose, at_point), at_point)
    other = np.concatenate([poses.compose(poses.inverse(relpose), at_point)[..., :3], turned], axis=-1)
    site2 = np.where(weld, at_point, other)
    return EqualityValues(
        site1=site1,
        site2=site2,
        data=take("polycoef"),
        torquescale=torquescale,
        active=take("enabled") != 0,
        solref=_authored(rows, "eq_solref", order, worlds),
        solimp=solimp,
    )


def compute_ropes(
    rows: ModelRows, equalities: EqualityPlan, plan: StructurePlan, worlds: np.ndarray
) -> RopeValues:
    """Return points and lengths of the ropes."""
    order = np.array([rope.equality for rope in equalities.ropes], dtype=np.int64)
    joints = np.array([rope.joint for rope in equalities.ropes], dtype=np.int64)
    of_joint = (joints >= 0)[:, None]
    dofs = plan.joint_dof[joints] if len(joints) else joints

    def take(name: str) -> np.ndarray:
        return rows.take(f"equality_constraint_{name}", "equality", worlds)[:, order]

    anchor, relpose, polycoef = take("anchor"), take("relpose"), take("polycoef")
    inner = rows.take("joint_X_p", "joint", worlds)[:, joints, :3]
    outer = rows.take("joint_X_c", "joint", worlds)[:, joints, :3]
    at_anchor = np.concatenate(
        [anchor, np.broadcast_to([0.0, 0.0, 0.0, 1.0], (*anchor.shape[:-1], 4))], axis=-1
    )
    second = poses.compose(poses.inverse(relpose), at_anchor)[..., :3]
    bounds = [
        rows.take(f"joint_limit_{side}", "dof", worlds)[:, dofs]
        if rows.model.joint_dof_count
        else polycoef[..., 0]
        for side in ("lower", "upper")
    ]
    least = np.where(of_joint[:, 0], bounds[0], polycoef[..., 0])
    most = np.where(of_joint[:, 0], bounds[1], polycoef[..., 1])
    slack = take("enabled") == 0
    least = np.where(slack | (least < 0.0), -FAR, least)
    most = np.where(slack | (most < 0.0), FAR, np.minimum(most, FAR))
    rigid = most - least < RANGE_MIN
    least, most = (
        np.where(rigid, least - 0.5 * RANGE_MIN, least),
        np.where(rigid, most + 0.5 * RANGE_MIN, most),
    )
    solref, solimp = _authored(rows, "eq_solref", order, worlds), _authored(rows, "eq_solimp", order, worlds)
    return RopeValues(
        site1=np.where(of_joint, inner, anchor),
        site2=np.where(of_joint, outer, second),
        range=np.stack([least, most], axis=-1),
        solref=solref,
        solimp=solimp,
    )


def _authored(rows: ModelRows, name: str, order: np.ndarray, worlds: np.ndarray) -> np.ndarray:
    """Return a custom attribute of constraints, MuJoCo's default where the model has none."""
    values = rows.custom(name, "equality", worlds)
    if values is not None:
        return values[:, order]
    default = DEFAULT_SOLREF if name == "eq_solref" else DEFAULT_SOLIMP
    return np.tile(np.array(default), (len(worlds), len(order), 1))


def site_wxyz(pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return position and quaternion wxyz of poses."""
    return pose[..., :3], as_wxyz(pose[..., 3:])
