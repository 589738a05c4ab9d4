"""Component calls: names, counts, handles and indices of bodies, shapes, joints and degrees of freedom."""

from typing import Any

import numpy as np

from pluriverse.gymapi.arguments import as_float, as_int, as_list
from pluriverse.gymapi.checks import INVALID_HANDLE, Checks
from pluriverse.gymapi.errors import require
from pluriverse.gymapi.frames import dof_frames, joint_transforms
from pluriverse.gymapi.preparation import update_tendons
from pluriverse.gymapi.scene import Actor
from pluriverse.gymapi.structures import ActuatorProperties, TendonProperties
from pluriverse.gymapi.tendons import (
    actor_tendons,
    put_tendon_properties,
    tendons_act,
)
from pluriverse.gymapi.values import DofFrame, IndexRange, Transform


class ComponentCalls(Checks):
    """Components of actors."""

    def get_actor_rigid_body_count(self, env: Any, actor_handle: int) -> int:
        """Return the number of bodies."""
        return self._actor(env, actor_handle, "get_actor_rigid_body_count").asset.body_count

    def get_actor_rigid_body_names(self, env: Any, actor_handle: int) -> list[str]:
        """Return the names of the bodies."""
        return list(self._actor(env, actor_handle, "get_actor_rigid_body_names").asset.body_names)

    def get_actor_rigid_body_dict(self, env: Any, actor_handle: int) -> dict[str, int]:
        """Return the index of each body in the actor by name."""
        return _indices(self._actor(env, actor_handle, "get_actor_rigid_body_dict").asset.body_names)

    def get_actor_rigid_body_handle(self, env: Any, actor_handle: int, index: int) -> int:
        """Return the handle of a body by its index in the actor, -1 if there is none."""
        actor = self._actor(env, actor_handle, "get_actor_rigid_body_handle")
        return _handle(
            as_int(index, "index", "get_actor_rigid_body_handle"),
            actor.asset.body_count,
            actor.env_body_start,
        )

    def find_actor_rigid_body_handle(self, env: Any, actor_handle: int, name: str) -> int:
        """Return the handle of a body, -1 if there is none of that name."""
        actor = self._actor(env, actor_handle, "find_actor_rigid_body_handle")
        return _handle(actor.asset.body_index(name), actor.asset.body_count, actor.env_body_start)

    def get_actor_root_rigid_body_handle(self, env: Any, actor_handle: int) -> int:
        """Return the handle of the root body."""
        actor = self._actor(env, actor_handle, "get_actor_root_rigid_body_handle")
        return actor.env_body_start + actor.asset.root_body

    def get_actor_rigid_body_index(self, env: Any, actor_handle: int, body: int, domain: int) -> int:
        """Return the index of a body, given by its index in the actor."""
        call = "get_actor_rigid_body_index"
        actor = self._actor(env, actor_handle, call)
        body = as_int(body, "body", call)
        local = body if 0 <= body < actor.asset.body_count else INVALID_HANDLE
        return self._domain(domain, (actor.env_body_start, actor.body_start), local, call)

    def find_actor_rigid_body_index(self, env: Any, actor_handle: int, name: str, domain: int) -> int:
        """Return the index of a body, -1 if there is none of that name."""
        call = "find_actor_rigid_body_index"
        actor = self._actor(env, actor_handle, call)
        starts = (actor.env_body_start, actor.body_start)
        return self._domain(domain, starts, actor.asset.body_index(name), call)

    def get_rigid_handle(self, env: Any, actor_name: str, body_name: str) -> int:
        """Return the handle of a body of the first actor of a name, -1 if there is none."""
        actor = self._named(env, actor_name, "get_rigid_handle")
        return (
            INVALID_HANDLE
            if actor is None
            else self.find_actor_rigid_body_handle(env, actor.handle, body_name)
        )

    def get_rigid_name(self, env: Any, rigid_handle: int) -> str:
        """Return the name of a body."""
        actor, body = self._body(env, rigid_handle, "get_rigid_name")
        return actor.asset.body_names[body]

    def get_actor_rigid_shape_count(self, env: Any, actor_handle: int) -> int:
        """Return the number of shapes."""
        return self._actor(env, actor_handle, "get_actor_rigid_shape_count").asset.shape_count

    def get_actor_rigid_body_shape_indices(self, env: Any, actor_handle: int) -> list[IndexRange]:
        """Return the shapes of each body."""
        asset = self._actor(env, actor_handle, "get_actor_rigid_body_shape_indices").asset
        return [IndexRange(part.start, part.count) for part in asset.body_shape_ranges]

    def get_actor_joint_count(self, env: Any, actor_handle: int) -> int:
        """Return the number of joints."""
        return len(self._actor(env, actor_handle, "get_actor_joint_count").asset.joints)

    def get_actor_joint_names(self, env: Any, actor_handle: int) -> list[str]:
        """Return the names of the joints."""
        return [joint.name for joint in self._actor(env, actor_handle, "get_actor_joint_names").asset.joints]

    def get_actor_joint_dict(self, env: Any, actor_handle: int) -> dict[str, int]:
        """Return the index of each joint in the actor by name."""
        asset = self._actor(env, actor_handle, "get_actor_joint_dict").asset
        return _indices([joint.name for joint in asset.joints])

    def get_actor_joint_handle(self, env: Any, actor_handle: int, index: int) -> int:
        """Return the handle of a joint by its index in the actor, -1 if there is none."""
        actor = self._actor(env, actor_handle, "get_actor_joint_handle")
        return _handle(
            as_int(index, "index", "get_actor_joint_handle"), len(actor.asset.joints), actor.env_joint_start
        )

    def find_actor_joint_handle(self, env: Any, actor_handle: int, name: str) -> int:
        """Return the handle of a joint, -1 if there is none of that name."""
        actor = self._actor(env, actor_handle, "find_actor_joint_handle")
        return _handle(actor.asset.joint_index(name), len(actor.asset.joints), actor.env_joint_start)

    def get_actor_joint_index(self, env: Any, actor_handle: int, joint: int, domain: int) -> int:
        """Return the index of a joint, given by its index in the actor."""
        call = "get_actor_joint_index"
        actor = self._actor(env, actor_handle, call)
        joint = as_int(joint, "joint", call)
        local = joint if 0 <= joint < len(actor.asset.joints) else INVALID_HANDLE
        return self._domain(domain, (actor.env_joint_start, actor.joint_start), local, call)

    def find_actor_joint_index(self, env: Any, actor_handle: int, name: str, domain: int) -> int:
        """Return the index of a joint, -1 if there is none of that name."""
        call = "find_actor_joint_index"
        actor = self._actor(env, actor_handle, call)
        starts = (actor.env_joint_start, actor.joint_start)
        return self._domain(domain, starts, actor.asset.joint_index(name), call)

    def get_joint_handle(self, env: Any, actor_name: str, joint_name: str) -> int:
        """Return the handle of a joint of the first actor of a name, -1 if there is none."""
        actor = self._named(env, actor_name, "get_joint_handle")
        return (
            INVALID_HANDLE if actor is None else self.find_actor_joint_handle(env, actor.handle, joint_name)
        )

    def get_joint_name(self, env: Any, joint_handle: int) -> str:
        """Return the name of a joint."""
        actor, joint = self._joint(env, joint_handle, "get_joint_name")
        return actor.asset.joints[joint].name

    def get_actor_joint_transforms(self, env: Any, actor_handle: int) -> np.ndarray:
        """Return where the frames of the joints are in the env, as `Transform` records."""
        return joint_transforms(self._actor(env, actor_handle, "get_actor_joint_transforms"))

    def get_joint_transform(self, env: Any, joint_handle: int) -> Transform:
        """Return where the frame of a joint is in the env."""
        actor, joint = self._joint(env, joint_handle, "get_joint_transform")
        return Transform.from_buffer(joint_transforms(actor)[joint])

    def get_actor_dof_count(self, env: Any, actor_handle: int) -> int:
        """Return the number of degrees of freedom."""
        return self._actor(env, actor_handle, "get_actor_dof_count").asset.dof_count

    def get_actor_dof_names(self, env: Any, actor_handle: int) -> list[str]:
        """Return the names of the degrees of freedom."""
        return [dof.name for dof in self._actor(env, actor_handle, "get_actor_dof_names").asset.dofs]

    def get_actor_dof_dict(self, env: Any, actor_handle: int) -> dict[str, int]:
        """Return the index of each degree of freedom in the actor by name."""
        asset = self._actor(env, actor_handle, "get_actor_dof_dict").asset
        return _indices([dof.name for dof in asset.dofs])

    def get_actor_dof_handle(self, env: Any, actor_handle: int, index: int) -> int:
        """Return the handle of a degree of freedom by its index in the actor, -1 if there is none."""
        actor = self._actor(env, actor_handle, "get_actor_dof_handle")
        return _handle(
            as_int(index, "index", "get_actor_dof_handle"), actor.asset.dof_count, actor.env_dof_start
        )

    def find_actor_dof_handle(self, env: Any, actor_handle: int, name: str) -> int:
        """Return the handle of a degree of freedom, -1 if there is none of that name."""
        actor = self._actor(env, actor_handle, "find_actor_dof_handle")
        return _handle(actor.asset.dof_index_of(name), actor.asset.dof_count, actor.env_dof_start)

    def get_actor_dof_index(self, env: Any, actor_handle: int, dof: int, domain: int) -> int:
        """Return the index of a degree of freedom, given by its index in the actor."""
        call = "get_actor_dof_index"
        actor = self._actor(env, actor_handle, call)
        dof = as_int(dof, "dof", call)
        local = dof if 0 <= dof < actor.asset.dof_count else INVALID_HANDLE
        return self._domain(domain, (actor.env_dof_start, actor.dof_start), local, call)

    def find_actor_dof_index(self, env: Any, actor_handle: int, name: str, domain: int) -> int:
        """Return the index of a degree of freedom, -1 if there is none of that name."""
        call = "find_actor_dof_index"
        actor = self._actor(env, actor_handle, call)
        starts = (actor.env_dof_start, actor.dof_start)
        return self._domain(domain, starts, actor.asset.dof_index_of(name), call)

    def get_actor_dof_frames(self, env: Any, actor_handle: int) -> np.ndarray:
        """Return point and axis of each degree of freedom in the env, as `DofFrame` records."""
        return dof_frames(self._actor(env, actor_handle, "get_actor_dof_frames"))

    def get_dof_frame(self, env: Any, dof_handle: int) -> DofFrame:
        """Return point and axis of a degree of freedom in the env."""
        actor, dof = self._dof(env, dof_handle, "get_dof_frame")
        return DofFrame.from_buffer(dof_frames(actor)[dof])

    def get_actor_actuator_count(self, env: Any, actor_handle: int) -> int:
        """Return the number of actuators of the MJCF file."""
        return len(self._actor(env, actor_handle, "get_actor_actuator_count").asset.actuators)

    def get_actor_actuator_name(self, env: Any, actor_handle: int, index: int) -> str:
        """Return the name of an actuator."""
        return self._actor_actuator(env, actor_handle, index, "get_actor_actuator_name").name

    def get_actor_actuator_joint_name(self, env: Any, actor_handle: int, index: int) -> str:
        """Return the name of the joint of an actuator."""
        return self._actor_actuator(env, actor_handle, index, "get_actor_actuator_joint_name").joint

    def get_actor_actuator_properties(self, env: Any, actor_handle: int) -> list[ActuatorProperties]:
        """Return what the file says about each actuator."""
        asset = self._actor(env, actor_handle, "get_actor_actuator_properties").asset
        return [part.copy() for part in asset.actuators]

    def find_actor_actuator_index(self, env: Any, actor_handle: int, name: str) -> int:
        """Return the index of an actuator, -1 if there is none of that name."""
        asset = self._actor(env, actor_handle, "find_actor_actuator_index").asset
        names = [part.name for part in asset.actuators]
        return names.index(name) if name in names else INVALID_HANDLE

    def _actor_actuator(self, env: Any, handle: int, index: Any, call: str) -> ActuatorProperties:
        actor = self._actor(env, handle, call)
        names = [part.name for part in actor.asset.actuators]
        return actor.asset.actuators[self._entry(index, names, "actuator", str(actor), call)]

    def get_actor_tendon_count(self, env: Any, actor_handle: int) -> int:
        """Return the number of fixed tendons."""
        return len(self._actor(env, actor_handle, "get_actor_tendon_count").asset.tendons)

    def get_actor_tendon_name(self, env: Any, actor_handle: int, tendon: int) -> str:
        """Return the name of a tendon."""
        actor = self._actor(env, actor_handle, "get_actor_tendon_name")
        return self._actor_tendon(actor, tendon, "get_actor_tendon_name").properties.name

    def get_actor_tendon_properties(self, env: Any, actor_handle: int) -> list[TendonProperties]:
        """Return the properties of each tendon."""
        actor = self._actor(env, actor_handle, "get_actor_tendon_properties")
        return [tendon.properties.copy() for tendon in actor_tendons(actor)]

    def set_actor_tendon_properties(
        self, env: Any, actor_handle: int, properties: list[TendonProperties]
    ) -> bool:
        """Set the properties of each tendon."""
        call = "set_actor_tendon_properties"
        actor = self._actor(env, actor_handle, call)
        tendons, parts = actor_tendons(actor), as_list(properties, "properties", call)
        require(
            len(parts) == len(tendons),
            call,
            f"{len(parts)} properties were given, but {actor} has {len(tendons)} tendons.",
        )
        put_tendon_properties(tendons, parts, call, str(actor))
        _update_tendons(actor)
        return True

    def get_actor_tendon_offset(self, env: Any, actor_handle: int, tendon: int) -> float:
        """Return what is added to the length of a tendon."""
        actor = self._actor(env, actor_handle, "get_actor_tendon_offset")
        self._actor_tendon(actor, tendon, "get_actor_tendon_offset")
        return 0.0 if actor.tendon_offsets is None else actor.tendon_offsets[tendon]

    def set_actor_tendon_offset(self, env: Any, actor_handle: int, tendon: int, offset: float) -> bool:
        """Set what is added to the length of a tendon."""
        actor = self._actor(env, actor_handle, "set_actor_tendon_offset")
        self._actor_tendon(actor, tendon, "set_actor_tendon_offset")
        if actor.tendon_offsets is None:
            actor.tendon_offsets = [0.0] * len(actor.asset.tendons)
        actor.tendon_offsets[tendon] = as_float(offset, "offset", "set_actor_tendon_offset")
        _update_tendons(actor)
        return True

    def find_actor_tendon_index(self, env: Any, actor_handle: int, name: str) -> int:
        """Return the index of a tendon, -1 if there is none of that name."""
        asset = self._actor(env, actor_handle, "find_actor_tendon_index").asset
        names = [tendon.properties.name for tendon in asset.tendons]
        return names.index(name) if name in names else INVALID_HANDLE

    def get_actor_fixed_tendon_joint_name(self, env: Any, actor_handle: int, tendon: int, index: int) -> str:
        """Return the name of a joint of a tendon."""
        call = "get_actor_fixed_tendon_joint_name"
        actor = self._actor(env, actor_handle, call)
        found = self._actor_tendon(actor, tendon, call)
        names = [actor.asset.dofs[dof].name for dof in found.dofs]
        return names[self._entry(index, names, "joint", f"tendon {tendon} of {actor}", call)]

    def find_actor_fixed_tendon_joint_index(self, env: Any, actor_handle: int, tendon: int, name: str) -> int:
        """Return the place of a joint in a tendon, -1 if it is not one of its joints."""
        call = "find_actor_fixed_tendon_joint_index"
        actor = self._actor(env, actor_handle, call)
        names = [actor.asset.dofs[dof].name for dof in self._actor_tendon(actor, tendon, call).dofs]
        return names.index(name) if name in names else INVALID_HANDLE

    def get_actor_fixed_tendon_joint_coefficients(
        self, env: Any, actor_handle: int, tendon: int
    ) -> list[float]:
        """Return the coefficients of the joints of a tendon."""
        call = "get_actor_fixed_tendon_joint_coefficients"
        return list(self._actor_tendon(self._actor(env, actor_handle, call), tendon, call).coefficients)

    def set_actor_fixed_tendon_joint_coefficients(
        self, env: Any, actor_handle: int, tendon: int, values: list[float]
    ) -> bool:
        """Set the coefficients of the joints of a tendon."""
        call = "set_actor_fixed_tendon_joint_coefficients"
        actor = self._actor(env, actor_handle, call)
        found = self._actor_tendon(actor, tendon, call)
        values = as_list(values, "values", call)
        require(
            len(values) == len(found.dofs),
            call,
            f"{len(values)} coefficients were given, but tendon {tendon} of {actor} has "
            f"{len(found.dofs)} joints.",
        )
        found.coefficients = [as_float(value, "a coefficient", call) for value in values]
        _update_tendons(actor)
        return True

    def _actor_tendon(self, actor: Actor, index: Any, call: str) -> Any:
        tendons = actor_tendons(actor)
        names = [tendon.properties.name for tendon in tendons]
        return tendons[self._entry(index, names, "tendon", str(actor), call)]

    def _named(self, env: Any, name: str, call: str) -> Actor | None:
        return next((actor for actor in self._env(env, call).actors if actor.name == name), None)


def _update_tendons(actor: Actor) -> None:
    """Update the forces of tendons of a prepared sim after a change."""
    sim = actor.env.sim
    if sim.is_prepared and (sim.has_tendon_forces or tendons_act(actor)):
        update_tendons(sim)


def _handle(index: int, count: int, start: int) -> int:
    return start + index if 0 <= index < count else INVALID_HANDLE


def _indices(names: list[str]) -> dict[str, int]:
    """Return the first index of each name."""
    result: dict[str, int] = {}
    for index, name in enumerate(names):
        result.setdefault(name, index)
    return result
