"""Sensor calls: contacts, force sensors, forces of degrees of freedom, attractors."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.gymapi.arguments import as_int
from pluriverse.gymapi.contact_readings import ContactReadings, contact_records
from pluriverse.gymapi.enums import AttractorAxes
from pluriverse.gymapi.errors import GymError, require
from pluriverse.gymapi.joint_efforts import JointEfforts
from pluriverse.gymapi.preparation import PreparingCalls, update_attractors
from pluriverse.gymapi.scene import Attractor, Env, Sim
from pluriverse.gymapi.sensor_readings import SensorReadings
from pluriverse.gymapi.structures import AttractorProperties
from pluriverse.gymapi.tensor import Tensor, acquired
from pluriverse.gymapi.values import SpatialForce, Transform, Vec3
from pluriverse.launch import same_memory


class ForceSensorView:
    """A force sensor of an actor."""

    def __init__(self, calls: "SensorCalls", sim: Sim, index: int):
        self._calls, self._sim, self._index = calls, sim, index

    def get_forces(self) -> SpatialForce:
        """Return force [N] and torque [N·m] of the last `simulate`."""
        if not self._sim.is_prepared:
            return SpatialForce()
        row = self._calls._sensors(self._sim, "get_forces").reading.numpy()[self._index].tolist()
        return SpatialForce(row[:3], row[3:])

    @property
    def global_index(self) -> int:
        """Index of the sensor in the sim."""
        return self._index


class SensorCalls(PreparingCalls):
    """Contacts, sensors and attractors."""

    def _contacts(self, sim: Any, call: str) -> ContactReadings:
        """Return the contact readings of a sim, which is prepared if it is not yet."""
        self._runtime(sim, call)
        readings = sim.part(ContactReadings)
        assert readings is not None  # every prepared sim has them
        return readings

    def _sensors(self, sim: Any, call: str) -> SensorReadings:
        """Return the readings of the force sensors of a sim that has some."""
        self._runtime(sim, call)
        readings = sim.part(SensorReadings)
        assert readings is not None
        return readings

    def _efforts(self, sim: Any, call: str) -> JointEfforts:
        runtime = self._runtime(sim, call)
        return sim.part(JointEfforts) or sim.add_part(JointEfforts(runtime))

    def get_rigid_contact_forces(self, sim: Any) -> np.ndarray:
        """Return the net contact force on each body in the last `simulate` [N], as `Vec3` records."""
        call = "get_rigid_contact_forces"
        return _records(self._contacts(self._sim(sim, call), call).force.numpy())

    def get_env_rigid_contact_forces(self, env: Any) -> np.ndarray:
        """Return the net contact force on each body of an env in the last `simulate` [N]."""
        call = "get_env_rigid_contact_forces"
        found = self._env(env, call)
        forces = self._contacts(found.sim, call).force.numpy()
        return _records(forces[found.body_start : found.body_start + found.body_count])

    def get_vec_env_rigid_contact_forces(self, envs: list[Any]) -> np.ndarray:
        """Return the net contact forces on the bodies of several envs, one after the other [N]."""
        selected = self._env_list(envs, "get_vec_env_rigid_contact_forces")
        parts = [np.zeros(0, dtype=Vec3.dtype), *(self.get_env_rigid_contact_forces(env) for env in selected)]
        return np.concatenate(parts)

    def get_rigid_contacts(self, sim: Any) -> np.ndarray:
        """Return the contacts of the last solver step, as `RigidContact` records."""
        found = self._sim(sim, "get_rigid_contacts")
        self._runtime(found, "get_rigid_contacts")
        return contact_records(found, None)

    def get_env_rigid_contacts(self, env: Any) -> np.ndarray:
        """Return the contacts of the last solver step that bodies of an env take part in."""
        found = self._env(env, "get_env_rigid_contacts")
        self._runtime(found.sim, "get_env_rigid_contacts")
        records = contact_records(found.sim, found.world)
        return records[(records["env0"] == found.index) | (records["env1"] == found.index)]

    def acquire_net_contact_force_tensor(self, sim: Any) -> Tensor:
        """Return the tensor of net contact forces in the last `simulate` [N], shape [body, 3]."""
        call = "acquire_net_contact_force_tensor"
        self._tensors(sim, call)
        return acquired(same_memory(self._contacts(sim, call).force, wp.float32, (sim.body_count, 3)))

    def refresh_net_contact_force_tensor(self, sim: Any) -> bool:
        """Do nothing: the tensor always holds the forces of the last `simulate`."""
        self._tensors(sim, "refresh_net_contact_force_tensor")
        return True

    def acquire_force_sensor_tensor(self, sim: Any) -> Tensor:
        """Return the tensor of the force sensors, force [N] and torque [N·m], shape [sensor, 6].

        `gymtorch.wrap_tensor` makes None of it where no actor has any.
        """
        call = "acquire_force_sensor_tensor"
        device = self._tensors(sim, call).runtime.device
        if sim.sensor_count == 0:
            return acquired(wp.empty((0, 6), dtype=float, device=device))
        return acquired(self._sensors(sim, call).reading)

    def refresh_force_sensor_tensor(self, sim: Any) -> bool:
        """Do nothing: the tensor always holds the readings of the last `simulate`."""
        self._tensors(sim, "refresh_force_sensor_tensor")
        return True

    def get_sensor(self, sim: Any, index: int) -> ForceSensorView | None:
        """Return a force sensor by its index in the sim, None if there is none."""
        found = self._sim(sim, "get_sensor")
        number = as_int(index, "index", "get_sensor")
        return ForceSensorView(self, found, number) if 0 <= number < found.sensor_count else None

    def get_actor_force_sensor_count(self, env: Any, actor_handle: int) -> int:
        """Return the number of force sensors of an actor."""
        return len(self._actor(env, actor_handle, "get_actor_force_sensor_count").asset.force_sensors)

    def get_actor_force_sensor(self, env: Any, actor_handle: int, index: int) -> ForceSensorView | None:
        """Return a force sensor of an actor, None if there is none of that index."""
        actor = self._actor(env, actor_handle, "get_actor_force_sensor")
        number = as_int(index, "index", "get_actor_force_sensor")
        if not 0 <= number < len(actor.asset.force_sensors):
            return None
        return ForceSensorView(self, actor.env.sim, actor.sensor_start + number)

    def enable_actor_dof_force_sensors(self, env: Any, actor_handle: int) -> bool:
        """Collect the forces on degrees of freedom from now on."""
        actor = self._actor(env, actor_handle, "enable_actor_dof_force_sensors")
        actor.dof_force_sensors = True
        if actor.env.sim.is_prepared:
            self._efforts(actor.env.sim, "enable_actor_dof_force_sensors")
        return True

    def get_actor_dof_forces(self, env: Any, actor_handle: int) -> np.ndarray:
        """Return what drives and efforts exert on each degree of freedom, the mean over the last `simulate`.

        Forces are collected for all actors from the first `enable_actor_dof_force_sensors` or
        `acquire_dof_force_tensor` on; before that they are zero.
        """
        actor = self._actor(env, actor_handle, "get_actor_dof_forces")
        count, readings = actor.asset.dof_count, actor.env.sim.part(JointEfforts)
        if readings is None:
            return np.zeros(count, dtype=np.float32)
        return np.array(readings.effort.numpy()[actor.dof_start : actor.dof_start + count])

    def acquire_dof_force_tensor(self, sim: Any) -> Tensor:
        """Return the tensor of what drives and efforts exert on each degree of freedom, shape [dof].

        `gymtorch.wrap_tensor` makes None of it where no actor has any.
        """
        call = "acquire_dof_force_tensor"
        device = self._tensors(sim, call).runtime.device
        if sim.dof_count == 0:
            return acquired(wp.empty(0, dtype=float, device=device))
        return acquired(self._efforts(sim, call).effort)

    def refresh_dof_force_tensor(self, sim: Any) -> bool:
        """Do nothing: the tensor always holds the forces of the last `simulate`."""
        self._tensors(sim, "refresh_dof_force_tensor")
        return True

    def create_rigid_body_attractor(self, env: Any, properties: AttractorProperties) -> int:
        """Add an attractor to an env and return its handle."""
        call = "create_rigid_body_attractor"
        found = self._env(env, call)
        checked = _checked(properties, call)
        actor, body = self._body(found, checked.rigid_handle, call)
        if actor.asset.builder.joint_dof_count == 0:
            raise GymError(
                f"{call}: {actor} is fixed, so nothing can attract it. Load it with fix_base_link=False."
            )
        sim = found.sim
        attractor = Attractor(actor, body, checked, len(sim.attractors))
        sim.attractors.append(attractor)
        found.attractors.append(attractor)
        if sim.is_prepared:
            update_attractors(sim)
        return len(found.attractors) - 1

    def get_attractor_properties(self, env: Any, handle: int) -> AttractorProperties:
        """Return a copy of the properties of an attractor."""
        return self._attractor(env, handle, "get_attractor_properties")[1].properties.copy()

    def set_attractor_properties(self, env: Any, handle: int, properties: AttractorProperties) -> None:
        """Change an attractor; its body stays."""
        call = "set_attractor_properties"
        found, attractor = self._attractor(env, handle, call)
        checked = _checked(properties, call)
        require(
            checked.rigid_handle == attractor.properties.rigid_handle,
            call,
            f"rigid_handle changes from {attractor.properties.rigid_handle} to {checked.rigid_handle}. "
            "Create another attractor for another body.",
        )
        attractor.properties = checked
        found.sim.attractors_changed = True

    def set_attractor_target(self, env: Any, handle: int, target: Transform) -> None:
        """Change the pose, in the env, that an attractor is pulled to."""
        found, attractor = self._attractor(env, handle, "set_attractor_target")
        attractor.properties.target = target
        found.sim.attractors_changed = True

    def _attractor(self, env: Any, handle: Any, call: str) -> tuple[Env, Attractor]:
        found = self._env(env, call)
        names = [f"body {part.properties.rigid_handle}" for part in found.attractors]
        return found, found.attractors[self._entry(handle, names, "attractor", f"env {found.index}", call)]


def _checked(properties: Any, call: str) -> AttractorProperties:
    if not isinstance(properties, AttractorProperties):
        raise TypeError(f"{call}: properties is {properties!r}, but must be a gymapi.AttractorProperties.")
    for name in ("stiffness", "damping"):
        value = getattr(properties, name)
        require(
            bool(np.isfinite(value) and value >= 0.0),
            call,
            f"{name} is {value}, but must be finite and >= 0.",
        )
    require(
        0 <= int(properties.axes) <= int(AttractorAxes.AXIS_ALL),
        call,
        f"axes is {properties.axes!r}, but must be made of the members of AttractorAxes.",
    )
    return properties.copy()


def _records(forces: np.ndarray) -> np.ndarray:
    return np.array(forces, dtype=np.float32).reshape(-1, 3).view(Vec3.dtype).reshape(-1)
