"""End inertias: find what a joint moves at the end of a tree without mass or inertia to resist it.

A joint inside a tree carries what hangs on it, in a way that depends on the pose. At the end of a tree a
body, with all that is fixed to it, needs mass and inertia of its own in every pose.
"""

from collections.abc import Callable

import numpy as np

from pluriverse.geometry.inertia import AXIS_ROUNDING, least_stored_inertia
from pluriverse.model import poses
from pluriverse.types import FLOATING_JOINTS, BodyFlags, JointType

# Half of the bound that models are built with, and half of what storage may lose: what was built is never
# refused for the rounding of its arrays.
ROUNDING = 0.5 * AXIS_ROUNDING


def find_unresisting(column: Callable[[str], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return which bodies at the ends of trees lack mass, and which lack inertia that their joint turns.

    Kinematic bodies need neither. Armature counts as inertia.

    Args:
        column: Returns the array of a name of the model, of one tree or of many. Every body has a joint.

    Returns:
        Two arrays of shape [body]. True stands at the body that the joint moves.
    """
    mass, inertia = column("body_mass"), _stored(column("body_inertia"))
    heavy = (mass > 0.0) & _is_definite(inertia)
    massless, inert = np.zeros(len(mass), dtype=bool), np.zeros(len(mass), dtype=bool)
    if heavy.all():
        return massless, inert
    joint_type, child, parent = (column(f"joint_{name}") for name in ("type", "child", "parent"))
    body_joint = np.zeros(len(mass), dtype=np.int64)
    body_joint[child] = np.arange(len(child))
    # A loop joint leads to a body that has a joint in an articulation already.
    in_tree = np.flatnonzero(column("joint_articulation") >= 0)
    body_joint[child[in_tree]] = in_tree
    moves = joint_type[body_joint] != JointType.FIXED
    root, pose = _weld(column, body_joint, moves)
    ends = moves & (column("body_flags") != BodyFlags.KINEMATIC)
    inner = parent[(joint_type != JointType.FIXED) & (parent >= 0)]
    ends[root[inner][root[inner] >= 0]] = False
    light = np.flatnonzero(ends & ~heavy)
    parts = np.flatnonzero(np.isin(root, light))
    total = np.bincount(root[parts], weights=mass[parts], minlength=len(mass))
    massless[light] = ~(total[light] > 0.0)
    light = light[~massless[light]]
    turns = column("joint_dof_dim").reshape(-1, 2)[body_joint[light], 1]
    light = light[turns > 0]
    if len(light):
        parts = parts[np.isin(root[parts], light)]
        inert[light] = ~_resists_turning(column, light, parts, root, pose, body_joint[light])
    return massless, inert


def _stored(inertia: np.ndarray) -> np.ndarray:
    """Return the least that stored inertias stand for, shape [body, 3, 3]."""
    own = inertia.reshape(-1, 3, 3).astype(np.float64)
    return 0.5 * (own + least_stored_inertia(own))


def _is_definite(inertia: np.ndarray) -> np.ndarray:
    """Return which inertias resist turning about every axis."""
    if not len(inertia):
        return np.zeros(0, dtype=bool)
    principal = np.linalg.eigvalsh(inertia)
    result: np.ndarray = principal[:, 0] > ROUNDING * principal[:, 2]
    return result


def _weld(
    column: Callable[[str], np.ndarray], body_joint: np.ndarray, moves: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the moving body that each body is or is fixed to (-1 for the world), and its pose in that."""
    holder = np.arange(len(moves))
    pose = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (len(moves), 1))
    is_fixed = ~moves
    joint = body_joint[is_fixed]
    holder[is_fixed] = column("joint_parent")[joint]
    frame, child_frame = (column(name).reshape(-1, 7)[joint] for name in ("joint_X_p", "joint_X_c"))
    pose[is_fixed] = poses.compose(frame.astype(np.float64), poses.inverse(child_frame.astype(np.float64)))
    chained = np.flatnonzero(is_fixed)
    while len(chained):
        chained = chained[holder[chained] >= 0]
        chained = chained[is_fixed[holder[chained]]]
        pose[chained] = poses.compose(pose[holder[chained]], pose[chained])
        holder[chained] = holder[holder[chained]]
    return holder, pose


def _resists_turning(
    column: Callable[[str], np.ndarray],
    bodies: np.ndarray,
    parts: np.ndarray,
    root: np.ndarray,
    pose: np.ndarray,
    joints: np.ndarray,
) -> np.ndarray:
    """Return which of the bodies, with the parts fixed to them, have the inertia that their joints turn."""
    mass = column("body_mass")[parts].astype(np.float64)
    local = column("body_com").reshape(-1, 3)[parts].astype(np.float64)
    com = pose[parts, :3] + poses.rotate(pose[parts, 3:], local)
    slot = np.searchsorted(bodies, root[parts])
    total, weighted = np.zeros(len(bodies)), np.zeros((len(bodies), 3))
    np.add.at(total, slot, mass)
    np.add.at(weighted, slot, mass[:, None] * com)
    frame = column("joint_X_c").reshape(-1, 7)[joints].astype(np.float64)
    joint_type = column("joint_type")[joints]
    floats = np.isin(joint_type, FLOATING_JOINTS)
    pivot = np.where(floats[:, None], weighted / total[:, None], frame[:, :3])
    arm = com - pivot[slot]
    rotation = poses.quat_to_matrix(pose[parts, 3:])
    own = _stored(column("body_inertia"))[parts]
    square = np.sum(arm * arm, axis=1)[:, None, None] * np.eye(3) - arm[:, :, None] * arm[:, None, :]
    inertia = np.zeros((len(bodies), 3, 3))
    np.add.at(inertia, slot, rotation @ own @ rotation.transpose(0, 2, 1) + mass[:, None, None] * square)
    principal = np.linalg.eigvalsh(inertia)
    linear, turns = column("joint_dof_dim").reshape(-1, 2)[joints].T
    first = column("joint_qd_start")[joints] + linear
    # Turning about one, two or three axes needs as many principal inertias, whichever axes these are.
    least = principal[np.arange(len(bodies)), 3 - turns]
    single = (turns == 1) & ~floats
    axis = poses.rotate(
        frame[single, 3:], column("joint_axis").reshape(-1, 3)[first[single]].astype(np.float64)
    )
    least[single] = np.einsum("ni,nij,nj->n", axis, inertia[single], axis)
    armature = column("joint_armature")
    for offset in range(3):
        has = turns > offset
        least[has] = np.maximum(least[has], armature[first[has] + offset])
    result: np.ndarray = least > ROUNDING * principal[:, 2]
    return result
