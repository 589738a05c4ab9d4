"""State calls on the host."""

from typing import Any

import numpy as np

from pluriverse.gymapi.arguments import as_int, vector
from pluriverse.gymapi.arguments import transform as pose_of
from pluriverse.gymapi.enums import StateFlags
from pluriverse.gymapi.errors import require
from pluriverse.gymapi.frames import body_rows
from pluriverse.gymapi.preparation import PreparingCalls
from pluriverse.gymapi.scene import pose_row
from pluriverse.gymapi.states import (
    all_body_states,
    body_states,
    dof_records,
    record_rows,
    set_body_states,
    set_dof_rows,
    set_root,
)
from pluriverse.gymapi.values import DofState, RigidBodyState, Transform, Vec3


class StateCalls(PreparingCalls):
    """States of bodies and degrees of freedom, as structured arrays that are copies."""

    def get_actor_rigid_body_states(self, env: Any, actor_handle: int, flags: int) -> np.ndarray:
        """Return the states of the bodies of an actor; what `flags` leave out is zero."""
        return body_states(
            [self._actor(env, actor_handle, "get_actor_rigid_body_states")],
            as_int(flags, "flags", "get_actor_rigid_body_states"),
        )

    def get_env_rigid_body_states(self, env: Any, flags: int) -> np.ndarray:
        """Return the states of the bodies of an env; what `flags` leave out is zero."""
        return body_states(
            self._env(env, "get_env_rigid_body_states").actors,
            as_int(flags, "flags", "get_env_rigid_body_states"),
        )

    def get_sim_rigid_body_states(self, sim: Any, flags: int) -> np.ndarray:
        """Return the states of the bodies of a sim; what `flags` leave out is zero."""
        found = self._sim(sim, "get_sim_rigid_body_states")
        if found.runtime is not None:
            rows = self._tensors(found, "get_sim_rigid_body_states").read_body_rows()
            return all_body_states(rows, as_int(flags, "flags", "get_sim_rigid_body_states"))
        return body_states(found.actors, as_int(flags, "flags", "get_sim_rigid_body_states"))

    def set_actor_rigid_body_states(self, env: Any, actor_handle: int, states: Any, flags: int) -> bool:
        """Put the bodies of an actor where an array says.

        Raises:
            ValueError: If its joints do not allow it.
        """
        call = "set_actor_rigid_body_states"
        return self._set_bodies([self._actor(env, actor_handle, call)], states, flags, call)

    def set_env_rigid_body_states(self, env: Any, states: Any, flags: int) -> bool:
        """Put the bodies of an env where an array says; see `set_actor_rigid_body_states`."""
        call = "set_env_rigid_body_states"
        return self._set_bodies(self._env(env, call).actors, states, flags, call)

    def set_sim_rigid_body_states(self, sim: Any, states: Any, flags: int) -> bool:
        """Put the bodies of a sim where an array says; see `set_actor_rigid_body_states`."""
        call = "set_sim_rigid_body_states"
        return self._set_bodies(self._sim(sim, call).actors, states, flags, call)

    @staticmethod
    def _set_bodies(actors: list[Any], states: Any, flags: int, call: str) -> bool:
        flags = as_int(flags, "flags", call)
        count = sum(actor.asset.body_count for actor in actors)
        what = str(actors[0]) if len(actors) == 1 else f"{len(actors)} actors"
        rows = record_rows(states, count, RigidBodyState.dtype, 13, call, what)
        start = 0
        for actor in actors:
            stop = start + actor.asset.body_count
            set_body_states(actor, rows[start:stop], flags, call)
            start = stop
        return True

    def get_actor_dof_states(self, env: Any, actor_handle: int, flags: int) -> np.ndarray:
        """Return the states of the degrees of freedom of an actor; what `flags` leave out is zero."""
        return dof_records(
            [self._actor(env, actor_handle, "get_actor_dof_states")],
            as_int(flags, "flags", "get_actor_dof_states"),
        )

    def get_env_dof_states(self, env: Any, flags: int) -> np.ndarray:
        """Return the states of the degrees of freedom of an env."""
        return dof_records(
            self._env(env, "get_env_dof_states").actors, as_int(flags, "flags", "get_env_dof_states")
        )

    def get_sim_dof_states(self, sim: Any, flags: int) -> np.ndarray:
        """Return the states of the degrees of freedom of a sim."""
        return dof_records(
            self._sim(sim, "get_sim_dof_states").actors, as_int(flags, "flags", "get_sim_dof_states")
        )

    def set_actor_dof_states(self, env: Any, actor_handle: int, states: Any, flags: int) -> bool:
        """Put the joints of an actor where an array says. Targets of drives stay as they are."""
        call = "set_actor_dof_states"
        return self._set_dofs([self._actor(env, actor_handle, call)], states, flags, call)

    def set_env_dof_states(self, env: Any, states: Any, flags: int) -> bool:
        """Put the joints of an env where an array says."""
        call = "set_env_dof_states"
        return self._set_dofs(self._env(env, call).actors, states, flags, call)

    def set_sim_dof_states(self, sim: Any, states: Any, flags: int) -> bool:
        """Put the joints of a sim where an array says."""
        call = "set_sim_dof_states"
        return self._set_dofs(self._sim(sim, call).actors, states, flags, call)

    @staticmethod
    def _set_dofs(actors: list[Any], states: Any, flags: int, call: str) -> bool:
        flags = as_int(flags, "flags", call)
        count = sum(actor.asset.dof_count for actor in actors)
        what = str(actors[0]) if len(actors) == 1 else f"{len(actors)} actors"
        rows = record_rows(states, count, DofState.dtype, 2, call, what)
        require(bool(np.isfinite(rows).all()), call, f"states of {what} hold numbers that are not finite.")
        start = 0
        for actor in actors:
            stop = start + actor.asset.dof_count
            set_dof_rows(actor, rows[start:stop], flags)
            start = stop
        return True

    def get_actor_root_state(self, env: Any, actor_handle: int) -> np.ndarray:
        """Return the state of the root body of an actor, one record."""
        actor = self._actor(env, actor_handle, "get_actor_root_state")
        root = actor.asset.root_body
        return body_states([actor], StateFlags.STATE_ALL)[root : root + 1]

    def set_actor_root_state(self, env: Any, actor_handle: int, state: Any, flags: int) -> bool:
        """Put the root of an actor where a record says; the actor moves along as one."""
        call = "set_actor_root_state"
        actor = self._actor(env, actor_handle, call)
        row = record_rows(state, 1, RigidBodyState.dtype, 13, call, str(actor))[0]
        body_q, body_qd = body_rows(actor)
        root = actor.asset.root_body
        pose = pose_row(Transform(row[:3], row[3:7])) if int(flags) & StateFlags.STATE_POS else body_q[root]
        velocity = row[7:] if int(flags) & StateFlags.STATE_VEL else body_qd[root]
        require(
            bool(np.isfinite(pose).all() and np.isfinite(velocity).all()),
            call,
            f"the state of {actor} holds numbers that are not finite.",
        )
        set_root(actor, pose, velocity)
        return True

    def get_rigid_transform(self, env: Any, rigid_handle: int) -> Transform:
        """Return the pose of a body in its env."""
        actor, body = self._body(env, rigid_handle, "get_rigid_transform")
        row = body_rows(actor)[0][body].tolist()
        return Transform(row[:3], row[3:])

    def set_rigid_transform(self, env: Any, rigid_handle: int, transform: Transform) -> None:
        """Put a body at a pose in its env; the root takes its actor along.

        Raises:
            ValueError: If the joints of the body do not allow it.
        """
        call = "set_rigid_transform"
        actor, body = self._body(env, rigid_handle, call)
        row = pose_row(pose_of(transform, "transform", "set_rigid_transform"))
        require(bool(np.isfinite(row).all()), call, f"transform is {transform!r}, but must be finite.")
        body_q, body_qd = body_rows(actor)
        if body == actor.asset.root_body:
            set_root(actor, row, body_qd[body])
            return
        body_q[body] = row
        set_body_states(actor, np.concatenate([body_q, body_qd], axis=1), StateFlags.STATE_ALL, call)

    def get_rigid_linear_velocity(self, env: Any, rigid_handle: int) -> Vec3:
        """Return the velocity of the centre of mass of a body [m/s]."""
        actor, body = self._body(env, rigid_handle, "get_rigid_linear_velocity")
        return Vec3(*body_rows(actor)[1][body, :3].tolist())

    def get_rigid_angular_velocity(self, env: Any, rigid_handle: int) -> Vec3:
        """Return the angular velocity of a body [rad/s]."""
        actor, body = self._body(env, rigid_handle, "get_rigid_angular_velocity")
        return Vec3(*body_rows(actor)[1][body, 3:].tolist())

    def set_rigid_linear_velocity(self, env: Any, rigid_handle: int, velocity: Vec3) -> None:
        """Set the velocity of the centre of mass of a body [m/s], as far as its joint allows."""
        self._set_velocity(env, rigid_handle, velocity, slice(0, 3), "set_rigid_linear_velocity")

    def set_rigid_angular_velocity(self, env: Any, rigid_handle: int, velocity: Vec3) -> None:
        """Set the angular velocity of a body [rad/s], as far as its joint allows."""
        self._set_velocity(env, rigid_handle, velocity, slice(3, 6), "set_rigid_angular_velocity")

    def _set_velocity(self, env: Any, handle: int, velocity: Any, part: slice, call: str) -> None:
        actor, body = self._body(env, handle, call)
        body_q, body_qd = body_rows(actor)
        body_qd[body, part] = list(vector(velocity, "velocity", call))
        if body == actor.asset.root_body:
            set_root(actor, body_q[body], body_qd[body])
        else:
            rows = np.concatenate([body_q, body_qd], axis=1)
            set_body_states(actor, rows, StateFlags.STATE_VEL, call)

    def get_vec_rigid_transform(self, envs: list[Any], rigid_handles: Any) -> np.ndarray:
        """Return the poses of bodies of several envs, by one handle or one for each env."""
        return self._of_bodies(envs, rigid_handles, "get_vec_rigid_transform")["pose"]

    def get_vec_rigid_linear_velocity(self, envs: list[Any], rigid_handles: Any) -> np.ndarray:
        """Return the linear velocities of bodies of several envs."""
        return self._of_bodies(envs, rigid_handles, "get_vec_rigid_linear_velocity")["vel"]["linear"]

    def get_vec_rigid_angular_velocity(self, envs: list[Any], rigid_handles: Any) -> np.ndarray:
        """Return the angular velocities of bodies of several envs."""
        return self._of_bodies(envs, rigid_handles, "get_vec_rigid_angular_velocity")["vel"]["angular"]

    def get_vec_actor_dof_states(self, envs: list[Any], actor_handles: Any, flags: int) -> np.ndarray:
        """Return the states of the degrees of freedom of actors of several envs, one after the other."""
        call = "get_vec_actor_dof_states"
        selected = self._env_list(envs, call)
        handles = _each(actor_handles, len(selected), call)
        actors = [self._actor(env, handle, call) for env, handle in zip(selected, handles, strict=True)]
        return dof_records(actors, as_int(flags, "flags", call))

    def _of_bodies(self, envs: list[Any], handles: Any, call: str) -> np.ndarray:
        records, selected = [], self._env_list(envs, call)
        for env, handle in zip(selected, _each(handles, len(selected), call), strict=True):
            actor, body = self._body(env, handle, call)
            records.append(body_states([actor], StateFlags.STATE_ALL)[body])
        return np.array(records, dtype=RigidBodyState.dtype)


def _each(handles: Any, count: int, call: str) -> list[int]:
    """Return a handle for each env."""
    if np.ndim(handles) == 0:
        return [handles] * count
    require(len(handles) == count, call, f"{len(handles)} handles were given for {count} envs.")
    return list(handles)
