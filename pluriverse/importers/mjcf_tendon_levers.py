"""Fixed tendons of MJCF whose joints move as one, as in grippers: levers of actuators on these joints.

Equalities couple such joints: q_i = r_i q for one coordinate q. So a tendon of length sum(c_i q_i) has the
length a_i q_i, a_i = sum(c_j r_j) / r_i, seen from each of its joints, and pulls there with the lever c_i:
what an actuator exerts on a joint depends on that joint alone, as a drive's effort does.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pluriverse.importers.mjcf_enums import MjEq, MjJoint, MjTrn, MjWrap


def tendon_levers(model: Any, actuator: int) -> Mapping[int, tuple[float, float]]:
    """Return the joints that a servo on a tendon moves as one, each with its c_i and a_i.

    Nothing for other actuators, and where the joints can move apart or would push against each other.
    """
    is_servo = int(model.actuator_dyntype[actuator]) == 0 and model.actuator_biasprm[actuator, 1] < 0.0
    if int(model.actuator_trntype[actuator]) != MjTrn.TENDON or not is_servo:
        return {}
    tendon = int(model.actuator_trnid[actuator, 0])
    if not is_fixed_tendon(model, tendon):
        return {}
    wraps = _wraps(model, tendon)
    coefs: dict[int, float] = {}
    for joint, coef in zip(model.wrap_objid[wraps], model.wrap_prm[wraps], strict=True):
        coefs[int(joint)] = coefs.get(int(joint), 0.0) + float(coef)
    ratios = _coupled_joints(model, next(iter(coefs)))
    if not coefs.keys() <= ratios.keys():
        return {}
    length = sum(coef * ratios[joint] for joint, coef in coefs.items())
    levers = {joint: (coef, length / ratios[joint]) for joint, coef in coefs.items()}
    return levers if all(lever * advance > 0.0 for lever, advance in levers.values()) else {}


def is_fixed_tendon(model: Any, tendon: int) -> bool:
    """Return whether the length of a tendon is a sum of joint coordinates."""
    return bool(np.all(model.wrap_type[_wraps(model, tendon)] == MjWrap.JOINT))


def passes_rotation(model: Any, tendon: int) -> bool:
    """Return whether a fixed tendon passes a ball or free joint.

    Its length has the first coordinate of the joint, which of a ball joint is the real part of a quaternion
    and no angle. MuJoCo pulls at the first degree of freedom nonetheless.
    """
    if not is_fixed_tendon(model, tendon):
        return False
    kinds = model.jnt_type[model.wrap_objid[_wraps(model, tendon)]]
    return bool(np.isin(kinds, (MjJoint.BALL, MjJoint.FREE)).any())


def _wraps(model: Any, tendon: int) -> slice:
    first = int(model.tendon_adr[tendon])
    return slice(first, first + int(model.tendon_num[tendon]))


def _coupled_joints(model: Any, joint: int) -> dict[int, float]:
    """Return the joints that equalities hold proportional to a joint, each with its ratio to that one."""
    ratios = {joint: 1.0}
    for _ in range(model.neq):  # each pass reaches joints one equality further away
        for equality in range(model.neq):
            first, second = int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])
            if int(model.eq_type[equality]) != MjEq.JOINT or second < 0 or not model.eq_active0[equality]:
                continue
            # q1 - q1_0 = p(q2 - q2_0)
            offset, ratio, *further = (float(value) for value in model.eq_data[equality, :5])
            origins = model.qpos0[model.jnt_qposadr[[first, second]]]
            is_through_zero = np.isclose(offset + origins[0], ratio * origins[1], rtol=1e-9, atol=1e-12)
            if ratio == 0.0 or any(further) or not is_through_zero:
                continue
            if second in ratios:
                ratios.setdefault(first, ratio * ratios[second])
            elif first in ratios:
                ratios[second] = ratios[first] / ratio
    return ratios
