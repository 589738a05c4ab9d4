"""Equality constraints in MuJoCo: their structure. `constraint_kernels` computes their values.

Constraints act between sites, so that they do not depend on MuJoCo's reference pose:

| Ours | MuJoCo's |
| --- | --- |
| `CONNECT` | connect of two sites |
| `WELD` | weld of two sites |
| `HINGE` | two connects, of points on the axis |
| `JOINT`, mimic | joint |
| `DISTANCE` | a spatial tendon of limited length between two sites |

MuJoCo's constraints are compliant, the more so the lighter the bodies are. The weld that joins the parts of a
body split at a loop joint has the largest impedance that MuJoCo allows, so that the load of the joint does
not open it, unless `eq_solimp` of the constraint is given.
"""

from dataclasses import dataclass, field

import numpy as np

from pluriverse.mujoco_attributes.choices import DEFAULT_SOLIMP, DEFAULT_SOLREF
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.structure import StructurePlan
from pluriverse.types import EqType

CONNECT, WELD, JOINT = range(3)
"""`mujoco.mjtEq`."""

# The largest impedance that MuJoCo allows. Under a load a constraint yields by (1 - d) / d times the free
# acceleration times the square of its time constant.
RIGID_IMPEDANCE = 0.9999
# Distance [m] of the two points that fix the axis of a hinge. Its rotational stiffness grows with the square
# of it; this is the size of the loop joints of robots.
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
    """Position of the point on the axis of a hinge, in half lengths."""
    holds_part: bool = False
    """Whether it joins a part to the body from which it was split at a loop joint."""


@dataclass
class DistancePlan:
    """A tendon of MuJoCo that bounds the distance of two points."""

    equality: int
    """World-local equality constraint."""
    body1: int
    """MuJoCo's body of the first site."""
    body2: int
    joint: int
    """World-local distance joint that the numbers come from, -1 for the constraint itself."""


@dataclass
class EqualityPlan:
    """All constraints of a group, in the order of MuJoCo."""

    constraints: list[ConstraintPlan] = field(default_factory=list)
    distances: list[DistancePlan] = field(default_factory=list)

    def by_equality(self, count: int) -> np.ndarray:
        """Return the constraints that stand for each of ours, -1 for none, shape [equality constraint, 2]."""
        result = np.full((count, 2), -1, dtype=np.int64)
        for index, constraint in enumerate(self.constraints):
            slot = 0 if result[constraint.equality, 0] < 0 else 1
            result[constraint.equality, slot] = index
        return result


def plan_equalities(plan: StructurePlan) -> EqualityPlan:
    """Return the constraints of MuJoCo for worlds of one structure."""
    result = EqualityPlan()
    joint_of = {(joint.joint, joint.part): index for index, joint in enumerate(plan.joints)}
    axes = plan.template.equality_axis.tolist()
    for index, (kind, body1, body2, joint1, joint2) in enumerate(plan.template.equality.tolist()):
        if kind == EqType.JOINT:
            follower, leader = joint_of[joint1, axes[index][0]], joint_of.get((joint2, axes[index][1]), -1)
            result.constraints.append(ConstraintPlan(index, JOINT, joint1=follower, joint2=leader))
            continue
        first, second = (int(plan.body_mj[body]) if body >= 0 else 0 for body in (body1, body2))
        if kind == EqType.DISTANCE:
            result.distances.append(DistancePlan(index, first, second, joint1))
            continue
        made = WELD if kind == EqType.WELD else CONNECT
        for side in (-1.0, 1.0) if kind == EqType.HINGE else (0.0,):
            part = kind == EqType.WELD and joint1 >= 0
            result.constraints.append(ConstraintPlan(index, made, first, second, side=side, holds_part=part))
    return result


def authored_constraints(
    rows: ModelRows, equalities: EqualityPlan, worlds: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the custom attributes of constraints, with MuJoCo's defaults where they are absent.

    Returns:
        `eq_solref`, `eq_solimp`, shape [row, constraint, ...], and `tendon_solref_lim`, `tendon_solimp_lim`,
        shape [row, distance constraint, ...].
    """
    order = np.array([constraint.equality for constraint in equalities.constraints], dtype=np.int64)
    distances = np.array([distance.equality for distance in equalities.distances], dtype=np.int64)
    parts = np.array([constraint.holds_part for constraint in equalities.constraints], dtype=bool)
    solimp = _authored(rows, "eq_solimp", order, worlds)
    as_default = (solimp == np.array(DEFAULT_SOLIMP)).all(axis=-1) & parts
    rigid = [RIGID_IMPEDANCE, RIGID_IMPEDANCE, *DEFAULT_SOLIMP[2:]]
    return {
        "eq_solref": _authored(rows, "eq_solref", order, worlds),
        "eq_solimp": np.where(as_default[..., None], rigid, solimp),
        "tendon_solref_lim": _authored(rows, "eq_solref", distances, worlds),
        "tendon_solimp_lim": _authored(rows, "eq_solimp", distances, worlds),
    }


def _authored(rows: ModelRows, name: str, order: np.ndarray, worlds: np.ndarray) -> np.ndarray:
    """Return a custom attribute of constraints, MuJoCo's default where the model has none."""
    values = rows.custom(name, "equality", worlds)
    if values is not None:
        return values[:, order]
    default = DEFAULT_SOLREF if name == "eq_solref" else DEFAULT_SOLIMP
    return np.tile(np.array(default), (len(worlds), len(order), 1))
