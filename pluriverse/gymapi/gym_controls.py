"""Control calls on the host: efforts, targets, and forces on bodies."""

from typing import Any

import numpy as np

from pluriverse.gymapi.arguments import as_float, as_int, vector
from pluriverse.gymapi.enums import CoordinateSpace, DofDriveMode
from pluriverse.gymapi.errors import GymError, require
from pluriverse.gymapi.frames import body_rows
from pluriverse.gymapi.preparation import PreparingCalls
from pluriverse.gymapi.scene import Actor
from pluriverse.gymapi.states import dof_rows
from pluriverse.gymapi.store import read, write
from pluriverse.gymapi.values import Vec3
from pluriverse.model import poses

_POS, _VEL, _EFFORT = DofDriveMode.DOF_MODE_POS, DofDriveMode.DOF_MODE_VEL, DofDriveMode.DOF_MODE_EFFORT


class ControlCalls(PreparingCalls):
    """Efforts and targets of degrees of freedom, forces on bodies."""

    def apply_actor_dof_efforts(self, env: Any, actor_handle: int, efforts: Any) -> bool:
        """Add efforts for the next `simulate` [N or N·m]; entries of other modes than EFFORT are ignored."""
        call = "apply_actor_dof_efforts"
        actor = self._actor(env, actor_handle, call)
        self._add_efforts(actor, self._numbers(efforts, actor.asset.dof_count, call, str(actor)))
        return True

    def set_actor_dof_position_targets(self, env: Any, actor_handle: int, targets: Any) -> bool:
        """Set position targets [m or rad]; entries of other modes than POS are ignored."""
        return self._set_targets(env, actor_handle, targets, "set_actor_dof_position_targets", _POS)

    def set_actor_dof_velocity_targets(self, env: Any, actor_handle: int, targets: Any) -> bool:
        """Set velocity targets [m/s or rad/s]; entries of other modes than VEL are ignored."""
        return self._set_targets(env, actor_handle, targets, "set_actor_dof_velocity_targets", _VEL)

    def get_actor_dof_position_targets(self, env: Any, actor_handle: int) -> np.ndarray:
        """Return the position targets [m or rad]."""
        actor = self._actor(env, actor_handle, "get_actor_dof_position_targets")
        return read(actor, "joint_target_pos")[actor.asset.dof_index]

    def get_actor_dof_velocity_targets(self, env: Any, actor_handle: int) -> np.ndarray:
        """Return the velocity targets [m/s or rad/s]."""
        actor = self._actor(env, actor_handle, "get_actor_dof_velocity_targets")
        return read(actor, "joint_target_vel")[actor.asset.dof_index]

    def apply_dof_effort(self, env: Any, dof_handle: int, effort: float) -> None:
        """Add an effort for the next `simulate` [N or N·m], if the degree of freedom is in mode EFFORT."""
        actor, dof = self._dof(env, dof_handle, "apply_dof_effort")
        efforts = np.zeros(actor.asset.dof_count)
        efforts[dof] = as_float(effort, "effort", "apply_dof_effort")
        self._add_efforts(actor, efforts)

    def set_dof_target_position(self, env: Any, dof_handle: int, target: float) -> None:
        """Set a position target [m or rad], if the degree of freedom is in mode POS."""
        call = "set_dof_target_position"
        self._set_target(*self._dof(env, dof_handle, call), as_float(target, "target", call), _POS)

    def set_dof_target_velocity(self, env: Any, dof_handle: int, target: float) -> None:
        """Set a velocity target [m/s or rad/s], if the degree of freedom is in mode VEL."""
        call = "set_dof_target_velocity"
        self._set_target(*self._dof(env, dof_handle, call), as_float(target, "target", call), _VEL)

    def get_dof_target_position(self, env: Any, dof_handle: int) -> float:
        """Return a position target [m or rad]."""
        return self._target(*self._dof(env, dof_handle, "get_dof_target_position"), _POS)

    def get_dof_target_velocity(self, env: Any, dof_handle: int) -> float:
        """Return a velocity target [m/s or rad/s]."""
        return self._target(*self._dof(env, dof_handle, "get_dof_target_velocity"), _VEL)

    def get_dof_position(self, env: Any, dof_handle: int) -> float:
        """Return the position of a degree of freedom [m or rad]."""
        actor, dof = self._dof(env, dof_handle, "get_dof_position")
        return float(dof_rows(actor)[dof, 0])

    def get_dof_velocity(self, env: Any, dof_handle: int) -> float:
        """Return the velocity of a degree of freedom [m/s or rad/s]."""
        actor, dof = self._dof(env, dof_handle, "get_dof_velocity")
        return float(dof_rows(actor)[dof, 1])

    def set_joint_target_position(self, env: Any, joint_handle: int, target: float) -> None:
        """Set the position target of a joint of one degree of freedom [m or rad]."""
        call = "set_joint_target_position"
        self._set_target(*self._single(env, joint_handle, call), as_float(target, "target", call), _POS)

    def set_joint_target_velocity(self, env: Any, joint_handle: int, target: float) -> None:
        """Set the velocity target of a joint of one degree of freedom [m/s or rad/s]."""
        call = "set_joint_target_velocity"
        self._set_target(*self._single(env, joint_handle, call), as_float(target, "target", call), _VEL)

    def get_joint_target_position(self, env: Any, joint_handle: int) -> float:
        """Return the position target of a joint of one degree of freedom [m or rad]."""
        return self._target(*self._single(env, joint_handle, "get_joint_target_position"), _POS)

    def get_joint_target_velocity(self, env: Any, joint_handle: int) -> float:
        """Return the velocity target of a joint of one degree of freedom [m/s or rad/s]."""
        return self._target(*self._single(env, joint_handle, "get_joint_target_velocity"), _VEL)

    def get_joint_position(self, env: Any, joint_handle: int) -> float:
        """Return the position of a joint of one degree of freedom [m or rad]."""
        actor, dof = self._single(env, joint_handle, "get_joint_position")
        return float(dof_rows(actor)[dof, 0])

    def get_joint_velocity(self, env: Any, joint_handle: int) -> float:
        """Return the velocity of a joint of one degree of freedom [m/s or rad/s]."""
        actor, dof = self._single(env, joint_handle, "get_joint_velocity")
        return float(dof_rows(actor)[dof, 1])

    def apply_body_forces(
        self,
        env: Any,
        rigid_handle: int,
        force: Vec3 | None = None,
        torque: Vec3 | None = None,
        space: CoordinateSpace | int = CoordinateSpace.ENV_SPACE,
    ) -> bool:
        """Add a force [N] at the centre of mass and a torque [N·m] on a body for the next `simulate`."""
        call = "apply_body_forces"
        actor, body = self._body(env, rigid_handle, call)
        vectors = [
            np.zeros(3) if part is None else np.array(list(vector(part, what, call)))
            for part, what in ((force, "force"), (torque, "torque"))
        ]
        if _space(space, call) == CoordinateSpace.LOCAL_SPACE:
            rotation = body_rows(actor)[0][body, 3:].astype(np.float64)
            vectors = [poses.rotate(rotation, part) for part in vectors]
        self._add_force(actor, body, vectors[0], vectors[1], call)
        return True

    def apply_body_force_at_pos(
        self,
        env: Any,
        rigid_handle: int,
        force: Vec3,
        pos: Vec3 | None = None,
        space: CoordinateSpace | int = CoordinateSpace.ENV_SPACE,
    ) -> bool:
        """Add a force [N] at a point [m] of a body for the next `simulate`.

        Args:
            env: Env.
            rigid_handle: Body.
            force: Force.
            pos: Point; the centre of mass if None.
            space: Frame of both.
        """
        call = "apply_body_force_at_pos"
        actor, body = self._body(env, rigid_handle, call)
        frame = _space(space, call)
        if pos is None:
            return self.apply_body_forces(env, rigid_handle, vector(force, "force", call), None, space)
        pose = body_rows(actor)[0][body].astype(np.float64)
        com = pose[:3] + poses.rotate(pose[3:], read(actor, "body_com").reshape(-1, 3)[body])
        push = np.array(list(vector(force, "force", call)))
        point = np.array(list(vector(pos, "pos", call)))
        if frame == CoordinateSpace.LOCAL_SPACE:
            push, point = poses.rotate(pose[3:], push), pose[:3] + poses.rotate(pose[3:], point)
        elif frame == CoordinateSpace.GLOBAL_SPACE:
            point = point - actor.env.origin
        self._add_force(actor, body, push, np.cross(point - com, push), call)
        return True

    def _add_force(self, actor: Actor, body: int, force: np.ndarray, torque: np.ndarray, call: str) -> None:
        runtime = self._runtime(actor.env.sim, call)
        row = actor.body_start + body
        for array, part in ((runtime.applied_force, force), (runtime.applied_torque, torque)):
            if runtime.device.is_cpu:
                array.numpy()[row] += part.astype(np.float32)
            else:
                entry = array[row : row + 1]
                entry.assign(entry.numpy() + part.astype(np.float32))
        runtime.has_applied = True

    def _add_efforts(self, actor: Actor, efforts: np.ndarray) -> None:
        moved = actor.dof_properties["driveMode"] == _EFFORT
        if not moved.any():
            return
        rows = read(actor, "joint_act")
        rows[actor.asset.dof_index[moved]] += efforts[moved].astype(np.float32)
        write(actor, "joint_act", rows)
        if actor.env.sim.runtime is not None:
            actor.env.sim.runtime.has_effort = True
        else:
            actor.env.sim.efforts_pending = True

    def _set_targets(self, env: Any, handle: int, targets: Any, call: str, mode: DofDriveMode) -> bool:
        actor = self._actor(env, handle, call)
        values = self._numbers(targets, actor.asset.dof_count, call, str(actor))
        self._write_targets(actor, actor.dof_properties["driveMode"] == mode, values, mode)
        return True

    def _set_target(self, actor: Actor, dof: int, target: float, mode: DofDriveMode) -> None:
        selected = np.arange(actor.asset.dof_count) == dof
        selected &= actor.dof_properties["driveMode"] == mode
        self._write_targets(actor, selected, np.full(actor.asset.dof_count, target), mode)

    @staticmethod
    def _write_targets(actor: Actor, selected: np.ndarray, values: np.ndarray, mode: DofDriveMode) -> None:
        if not selected.any():
            return
        name = "joint_target_pos" if mode == _POS else "joint_target_vel"
        rows = read(actor, name)
        rows[actor.asset.dof_index[selected]] = values[selected]
        write(actor, name, rows)

    @staticmethod
    def _target(actor: Actor, dof: int, mode: DofDriveMode) -> float:
        rows = read(actor, "joint_target_pos" if mode == _POS else "joint_target_vel")
        return float(rows[actor.asset.dof_index[dof]])

    def _single(self, env: Any, joint_handle: int, call: str) -> tuple[Actor, int]:
        actor, joint = self._joint(env, joint_handle, call)
        found = actor.asset.joints[joint]
        if len(found.dofs) != 1:
            raise GymError(
                f"{call}: joint '{found.name}' of {actor} has {len(found.dofs)} degrees of freedom, but this "
                "call is for joints of one. Use the calls on degrees of freedom."
            )
        return actor, found.dofs[0]


def _space(space: Any, call: str) -> CoordinateSpace:
    require(
        as_int(space, "space", call) in (0, 1, 2),
        call,
        f"space is {space!r}, but must be ENV_SPACE, LOCAL_SPACE or GLOBAL_SPACE.",
    )
    return CoordinateSpace(int(space))
