"""States on the host: bodies and degrees of freedom of actors, envs and sims as structured arrays.

Arrays are copies. Setting a state acts at once: getters return it before the next step.
"""

from typing import Any

import numpy as np

from pluriverse.gymapi.enums import StateFlags
from pluriverse.gymapi.frames import body_rows
from pluriverse.gymapi.scene import Actor, fixed_root_frame, unit_poses
from pluriverse.gymapi.store import prototype, read, write
from pluriverse.gymapi.values import DofState, RigidBodyState
from pluriverse.model import poses
from pluriverse.types import JointType

# Largest deviation of a body from the pose that its joints allow [m, and error of the rotation] in a state
# that is accepted: some hundred roundings of float32 for robots of metres, far from their origin.
CONSISTENCY = 1.0e-3


def body_states(actors: list[Actor], flags: int) -> np.ndarray:
    """Return the states of the bodies of actors."""
    rows = [np.zeros((0, 13), dtype=np.float32)]
    for actor in actors:
        body_q, body_qd = body_rows(actor)
        rows.append(np.concatenate([body_q, body_qd], axis=1))
    return _body_records(np.concatenate(rows), flags)


def all_body_states(rows: np.ndarray, flags: int) -> np.ndarray:
    """Return the states of bodies from their rows, shape [body, 13]."""
    return _body_records(rows, flags)


def _body_records(rows: np.ndarray, flags: int) -> np.ndarray:
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    if not int(flags) & StateFlags.STATE_POS:
        rows[:, :7] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    if not int(flags) & StateFlags.STATE_VEL:
        rows[:, 7:] = 0.0
    return rows.view(RigidBodyState.dtype).reshape(-1)


def record_rows(states: Any, count: int, dtype: np.dtype, width: int, call: str, what: str) -> np.ndarray:
    """Return a structured array as rows of numbers, checked; a copy.

    Raises:
        TypeError: If the array has another type.
        ValueError: If it has another length.
    """
    array = np.asarray(states)
    if array.dtype != dtype:
        raise TypeError(
            f"{call}: the states of {what} have type {array.dtype}, but must have that of what the getter "
            f"returns ({dtype})."
        )
    if array.shape != (count,):
        raise ValueError(
            f"{call}: the states have shape {array.shape}, but {what} has {count} entries. Edit and pass "
            "what the getter returns."
        )
    return np.array(array).view(np.float32).reshape(count, width)


def set_body_states(actor: Actor, rows: np.ndarray, flags: int, call: str) -> None:
    """Set the states of the bodies of an actor from rows, shape [body, 13].

    Raises:
        ValueError: If the joints do not allow it.
    """
    body_q, body_qd = body_rows(actor)
    if int(flags) & StateFlags.STATE_POS:
        body_q = unit_poses(rows[:, :7])
    if int(flags) & StateFlags.STATE_VEL:
        body_qd = np.array(rows[:, 7:])
    if not np.isfinite(body_q).all() or not np.isfinite(body_qd).all():
        raise ValueError(f"{call}: states of {actor} hold numbers that are not finite.")
    asset = actor.asset
    root = asset.root_body
    set_root(actor, body_q[root], body_qd[root])
    if asset.body_count == 1:
        return
    in_world = body_q.astype(np.float32)
    if actor.env.sim.is_prepared:
        in_world[:, :3] += actor.env.offset.astype(np.float32)
    joint_q, joint_qd, placed = _joint_state_of(actor, in_world, body_qd)
    error = np.abs(placed[:, :3] - in_world[:, :3]).max(axis=1)
    turned = np.abs(np.abs(np.sum(placed[:, 3:] * in_world[:, 3:], axis=1)) - 1.0)
    worst = int(np.argmax(np.maximum(error, turned)))
    size = 1.0 + float(np.abs(in_world[:, :3]).max())
    if max(float(error[worst]), float(turned[worst])) > CONSISTENCY * size:
        raise ValueError(
            f"{call}: the poses of {actor} tear its joints apart: body '{asset.body_names[worst]}' is "
            f"{error[worst]:.3g} m from where the other bodies and its joint put it. Set the root with "
            "set_actor_root_state_tensor() and joints with set_actor_dof_states()."
        )
    write(actor, "joint_q", joint_q)
    write(actor, "joint_qd", joint_qd)
    if actor.env.sim.is_prepared:
        # The poses as given, so that they come back to the last bit.
        actor.env.sim.prepared.update_body_poses()
        write(actor, "body_q", in_world)
        write(actor, "body_qd", body_qd)


def set_root(actor: Actor, pose: np.ndarray, velocity: np.ndarray) -> None:
    """Set the pose of the root of an actor in its env, shape [7], and its velocity, shape [6]."""
    asset = actor.asset
    offset = actor.env.offset if actor.env.sim.is_prepared else np.zeros(3)
    row = np.asarray(pose, dtype=np.float32).copy()
    row[:3] += offset.astype(np.float32)
    if asset.is_free:
        coord = int(asset.builder.joint_q_start[asset.root_joint])
        dof = int(asset.builder.joint_qd_start[asset.root_joint])
        joint_q, joint_qd = read(actor, "joint_q"), read(actor, "joint_qd")
        joint_q[coord : coord + 7] = row
        joint_qd[dof : dof + 6] = velocity
        write(actor, "joint_q", joint_q)
        write(actor, "joint_qd", joint_qd)
    else:
        frames = read(actor, "joint_X_p").reshape(-1, 7)
        if asset.root_type is JointType.FIXED:
            frames[asset.root_joint] = fixed_root_frame(asset, row)
        else:
            # As far behind the body as its joint has moved it.
            body = body_rows(actor)[0][asset.root_body].astype(np.float64)
            body[:3] += offset
            behind = poses.compose(poses.inverse(body), frames[asset.root_joint].astype(np.float64))
            frames[asset.root_joint] = poses.compose(row.astype(np.float64), behind)
        write(actor, "joint_X_p", frames)


def _joint_state_of(
    actor: Actor, body_q: np.ndarray, body_qd: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return joint coordinates and velocities of bodies of an actor, and the poses that follow from them."""
    return prototype(actor.asset).joint_state_of(actor, body_q, body_qd)


def dof_rows(actor: Actor) -> np.ndarray:
    """Return position and velocity of the degrees of freedom of an actor, shape [dof, 2]."""
    asset = actor.asset
    rows = np.zeros((asset.dof_count, 2), dtype=np.float32)
    if asset.dof_count == 0:
        return rows
    joint_q = read(actor, "joint_q")
    rows[:, 0] = joint_q[asset.dof_coord]
    for dof in np.flatnonzero(asset.dof_ball_axis == 0).tolist():
        first = asset.dofs[dof].coord
        rows[dof : dof + 3, 0] = rotation_vector(joint_q[first : first + 4])
    rows[:, 1] = read(actor, "joint_qd")[asset.dof_index]
    return rows


def set_dof_rows(actor: Actor, rows: np.ndarray, flags: int) -> None:
    """Set the joint state of an actor from rows, shape [dof, 2]."""
    asset = actor.asset
    if asset.dof_count == 0:
        return
    if int(flags) & StateFlags.STATE_POS:
        joint_q = read(actor, "joint_q")
        scalar = asset.dof_ball_axis < 0
        joint_q[asset.dof_coord[scalar]] = rows[scalar, 0]
        for dof in np.flatnonzero(asset.dof_ball_axis == 0).tolist():
            first = asset.dofs[dof].coord
            joint_q[first : first + 4] = quat_of_rotation_vector(rows[dof : dof + 3, 0])
        write(actor, "joint_q", joint_q)
    if int(flags) & StateFlags.STATE_VEL:
        joint_qd = read(actor, "joint_qd")
        joint_qd[asset.dof_index] = rows[:, 1]
        write(actor, "joint_qd", joint_qd)


def dof_records(actors: list[Actor], flags: int) -> np.ndarray:
    """Return the states of the degrees of freedom of actors."""
    rows = np.concatenate([np.zeros((0, 2), dtype=np.float32), *(dof_rows(actor) for actor in actors)])
    if not int(flags) & StateFlags.STATE_POS:
        rows[:, 0] = 0.0
    if not int(flags) & StateFlags.STATE_VEL:
        rows[:, 1] = 0.0
    return np.ascontiguousarray(rows).view(DofState.dtype).reshape(-1)


def rotation_vector(quat: np.ndarray) -> np.ndarray:
    """Return the rotation vector [rad] of a unit quaternion, of length at most pi."""
    q = np.asarray(quat, dtype=np.float64)
    q = -q if q[3] < 0.0 else q
    sine = float(np.linalg.norm(q[:3]))
    factor = 2.0 * np.arctan2(sine, q[3]) / sine if sine > 1.0e-12 else 2.0
    return factor * q[:3]


def quat_of_rotation_vector(rotation: np.ndarray) -> np.ndarray:
    """Return the unit quaternion of a rotation vector [rad]."""
    vector = np.asarray(rotation, dtype=np.float64)
    angle = float(np.linalg.norm(vector))
    factor = np.sin(0.5 * angle) / angle if angle > 1.0e-12 else 0.5
    return np.append(factor * vector, np.cos(0.5 * angle))
