"""Views: actors, bodies and degrees of freedom as objects with properties, over the data of the calls."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pluriverse.gymapi.enums import CoordinateSpace, StateFlags
from pluriverse.gymapi.gym import acquire_gym
from pluriverse.gymapi.scene import Actor, Env
from pluriverse.gymapi.values import RigidBodyState, Transform, Vec3

_gym = acquire_gym()


class ActorView:
    """An actor as an object.

    Args:
        env: Env that it is in.
        actor: Its handle, or its name.

    Raises:
        IndexError: If there is no such actor.
    """

    def __init__(self, env: Env, actor: int | str):
        handle = _gym.find_actor_handle(env, actor) if isinstance(actor, str) else actor
        if isinstance(actor, str) and handle < 0:
            names = ", ".join(f"'{found.name}'" for found in env.actors) or "none"
            raise IndexError(f"ActorView: env {env.index} has no actor '{actor}'. Its actors are {names}.")
        self._actor: Actor = _gym._actor(env, handle, "ActorView")
        self.env = env
        """Env that the actor is in."""
        self.handle = int(handle)
        """Handle for calls."""

    @property
    def name(self) -> str:
        """Name."""
        return self._actor.name

    @property
    def index(self) -> int:
        """Index in the sim, for calls named `*_indexed`."""
        return self._actor.index

    @property
    def scale(self) -> float:
        """Size relative to the asset."""
        return self._actor.scale

    @scale.setter
    def scale(self, value: float) -> None:
        _gym.set_actor_scale(self.env, self.handle, value)

    @property
    def pose(self) -> Transform:
        """Pose of the root in the env."""
        return Transform.from_buffer(self._root()["pose"][0])

    @pose.setter
    def pose(self, value: Transform) -> None:
        root = self._root()
        root["pose"] = np.array(Transform._of(value)).view(Transform.dtype)
        _gym.set_actor_root_state(self.env, self.handle, root, StateFlags.STATE_POS)

    @property
    def velocity(self) -> np.ndarray:
        """Linear [m/s] and angular velocity [rad/s] of the root, shape [6]."""
        return self._root().view(np.float32).reshape(13)[7:].copy()

    @velocity.setter
    def velocity(self, values: Any) -> None:
        row = self._root().view(np.float32).reshape(1, 13)
        row[0, 7:] = values
        record = np.ascontiguousarray(row).view(RigidBodyState.dtype).reshape(1)
        _gym.set_actor_root_state(self.env, self.handle, record, StateFlags.STATE_VEL)

    @property
    def dof_names(self) -> list[str]:
        """Names of the degrees of freedom."""
        return [dof.name for dof in self._actor.asset.dofs]

    @property
    def dof_positions(self) -> np.ndarray:
        """Positions of the degrees of freedom [m or rad], shape [dof]."""
        return _gym.get_actor_dof_states(self.env, self.handle, StateFlags.STATE_ALL)["pos"].copy()

    @dof_positions.setter
    def dof_positions(self, values: Any) -> None:
        self._set_dofs("pos", values, StateFlags.STATE_POS)

    @property
    def dof_velocities(self) -> np.ndarray:
        """Velocities of the degrees of freedom [m/s or rad/s], shape [dof]."""
        return _gym.get_actor_dof_states(self.env, self.handle, StateFlags.STATE_ALL)["vel"].copy()

    @dof_velocities.setter
    def dof_velocities(self, values: Any) -> None:
        self._set_dofs("vel", values, StateFlags.STATE_VEL)

    @property
    def dof_properties(self) -> np.ndarray:
        """Limits, drives and losses of the degrees of freedom: a copy; assign it to change them."""
        return _gym.get_actor_dof_properties(self.env, self.handle)

    @dof_properties.setter
    def dof_properties(self, values: Any) -> None:
        _gym.set_actor_dof_properties(self.env, self.handle, values)

    @property
    def position_targets(self) -> np.ndarray:
        """Position targets [m or rad], shape [dof]; what is not in mode POS ignores them."""
        return _gym.get_actor_dof_position_targets(self.env, self.handle)

    @position_targets.setter
    def position_targets(self, values: Any) -> None:
        _gym.set_actor_dof_position_targets(self.env, self.handle, values)

    @property
    def velocity_targets(self) -> np.ndarray:
        """Velocity targets [m/s or rad/s], shape [dof]; what is not in mode VEL ignores them."""
        return _gym.get_actor_dof_velocity_targets(self.env, self.handle)

    @velocity_targets.setter
    def velocity_targets(self, values: Any) -> None:
        _gym.set_actor_dof_velocity_targets(self.env, self.handle, values)

    def apply_efforts(self, efforts: Any) -> None:
        """Add efforts for the next `simulate` [N or N·m]; what is not in mode EFFORT ignores them."""
        _gym.apply_actor_dof_efforts(self.env, self.handle, efforts)

    @property
    def bodies(self) -> dict[str, "ActorBodyView"]:
        """The bodies by name."""
        return {
            name: ActorBodyView(self, body, self._actor.env_body_start + body)
            for body, name in enumerate(self._actor.asset.body_names)
        }

    @property
    def dofs(self) -> dict[str, "ActorDofView"]:
        """The degrees of freedom by name."""
        return {
            dof.name: ActorDofView(self, number, self._actor.env_dof_start + number)
            for number, dof in enumerate(self._actor.asset.dofs)
        }

    def _root(self) -> np.ndarray:
        return _gym.get_actor_root_state(self.env, self.handle)

    def _set_dofs(self, field: str, values: Any, flags: StateFlags) -> None:
        states = _gym.get_actor_dof_states(self.env, self.handle, StateFlags.STATE_ALL)
        states[field] = values
        _gym.set_actor_dof_states(self.env, self.handle, states, flags)

    def __repr__(self) -> str:
        return f"ActorView({self._actor})"


class ActorBodyView:
    """A body of an actor. Made by `ActorView.bodies`."""

    def __init__(self, actor: ActorView, index: int, handle: int):
        self.actor = actor
        """Actor that it belongs to."""
        self.index = index
        """Index in the actor."""
        self.handle = handle
        """Handle for calls."""

    @property
    def name(self) -> str:
        """Name."""
        return self.actor._actor.asset.body_names[self.index]

    @property
    def pose(self) -> Transform:
        """Pose in the env."""
        return _gym.get_rigid_transform(self.actor.env, self.handle)

    @property
    def linear_velocity(self) -> Vec3:
        """Velocity of the centre of mass [m/s]."""
        return _gym.get_rigid_linear_velocity(self.actor.env, self.handle)

    @property
    def angular_velocity(self) -> Vec3:
        """Angular velocity [rad/s]."""
        return _gym.get_rigid_angular_velocity(self.actor.env, self.handle)

    @property
    def mass(self) -> float:
        """Mass [kg]; to set it changes the inertia in proportion."""
        return _gym.get_actor_rigid_body_properties(self.actor.env, self.actor.handle)[self.index].mass

    @mass.setter
    def mass(self, value: float) -> None:
        properties = _gym.get_actor_rigid_body_properties(self.actor.env, self.actor.handle)
        properties[self.index].mass = float(value)
        _gym.set_actor_rigid_body_properties(self.actor.env, self.actor.handle, properties, True)

    @property
    def contact_force(self) -> Vec3:
        """Net contact force in the last `simulate` [N]."""
        forces = _gym.get_env_rigid_contact_forces(self.actor.env)
        return Vec3.from_buffer(forces[self.handle])

    def apply_force(
        self,
        force: Any,
        point: Any = None,
        *,
        space: CoordinateSpace = CoordinateSpace.ENV_SPACE,
    ) -> None:
        """Add a force [N] for the next `simulate`, at a point [m] or at the centre of mass."""
        _gym.apply_body_force_at_pos(self.actor.env, self.handle, force, point, space)

    def __repr__(self) -> str:
        return f"ActorBodyView('{self.name}' of {self.actor._actor})"


class ActorDofView:
    """A degree of freedom of an actor. Made by `ActorView.dofs`."""

    def __init__(self, actor: ActorView, index: int, handle: int):
        self.actor = actor
        """Actor that it belongs to."""
        self.index = index
        """Index in the actor."""
        self.handle = handle
        """Handle for calls."""

    @property
    def name(self) -> str:
        """Name."""
        return self.actor._actor.asset.dofs[self.index].name

    @property
    def position(self) -> float:
        """Position [m or rad]."""
        return _gym.get_dof_position(self.actor.env, self.handle)

    @property
    def velocity(self) -> float:
        """Velocity [m/s or rad/s]."""
        return _gym.get_dof_velocity(self.actor.env, self.handle)

    @property
    def position_target(self) -> float:
        """Position target [m or rad]; ignored unless in mode POS."""
        return _gym.get_dof_target_position(self.actor.env, self.handle)

    @position_target.setter
    def position_target(self, value: float) -> None:
        _gym.set_dof_target_position(self.actor.env, self.handle, value)

    @property
    def velocity_target(self) -> float:
        """Velocity target [m/s or rad/s]; ignored unless in mode VEL."""
        return _gym.get_dof_target_velocity(self.actor.env, self.handle)

    @velocity_target.setter
    def velocity_target(self, value: float) -> None:
        _gym.set_dof_target_velocity(self.actor.env, self.handle, value)

    def apply_effort(self, effort: float) -> None:
        """Add an effort for the next `simulate` [N or N·m]; ignored unless in mode EFFORT."""
        _gym.apply_dof_effort(self.actor.env, self.handle, effort)

    def __repr__(self) -> str:
        return f"ActorDofView('{self.name}' of {self.actor._actor})"


def actor_views(env: Env) -> Iterator[ActorView]:
    """Return the actors of an env as objects, in order."""
    return (ActorView(env, handle) for handle in range(len(env.actors)))
