"""Sensor readings: the net force and torque on bodies with force sensors.

Reads   body_q, body_qd before and after a `simulate`, masses, net contact forces
Writes  force and torque of each sensor

The net force is the change of momentum over the step, so it counts everything: gravity, contact, drives and
what joints transmit. A body at rest reads zero. The part of the contacts is that of the solver.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.gymapi.contact_readings import ContactReadings
from pluriverse.gymapi.scene import Sim
from pluriverse.gymapi.tables import integers
from pluriverse.launch import launch_kernel

_MODULE = "pluriverse.gymapi.sensor_readings"


@wp.struct
class SensorTable:
    """Of each sensor, in the order of the sim."""

    row: wp.array[int]
    """Body, in the order of the sim."""
    body: wp.array[int]
    """Body of the model."""
    pose: wp.array[wp.transform]
    """Pose in the body [m, xyzw]."""
    options: wp.array[int]
    """Bits: 1 counts forward dynamics, 2 contacts, 4 reads in world axes."""


@wp.func
def spin(pose: wp.transform, inertia: wp.mat33, omega: wp.vec3) -> wp.vec3:
    """Return the angular momentum about the centre of mass, world axes."""
    rotation = wp.transform_get_rotation(pose)
    return wp.quat_rotate(rotation, inertia * wp.quat_rotate_inv(rotation, omega))


@wp.kernel(enable_backward=False, module=_MODULE)
def read_sensor(
    sensors: SensorTable,
    body_mass: wp.array[float],  # [body] kg
    body_inertia: wp.array[wp.mat33],  # [body] kg m^2, body axes
    body_com: wp.array[wp.vec3],  # [body] m, body frame
    body_q_before: wp.array[wp.transform],  # [body] m, xyzw
    body_qd_before: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    body_qd: wp.array[wp.spatial_vector],  # [body] m/s, rad/s, world axes
    contact_force: wp.array[wp.vec3],  # [body in the order of the sim]
    contact_torque: wp.array[wp.vec3],  # [body] N m, world axes
    dt: float,
    readings: wp.array2d[float],  # [sensor, 6] N, N m
):
    """Write the reading of one sensor."""
    sensor, _ = wp.tid()
    body, row = sensors.body[sensor], sensors.row[sensor]
    before, after = body_qd_before[body], body_qd[body]
    pose = body_q[body]
    total = body_mass[body] * (wp.spatial_top(after) - wp.spatial_top(before)) / dt
    angular_rate = spin(pose, body_inertia[body], wp.spatial_bottom(after))
    angular_rate = (
        angular_rate - spin(body_q_before[body], body_inertia[body], wp.spatial_bottom(before))
    ) / dt
    options = sensors.options[sensor]
    force = wp.vec3()
    torque = wp.vec3()
    if options & 1:
        force += total - contact_force[row]
        torque += angular_rate - contact_torque[row]
    if options & 2:
        force += contact_force[row]
        torque += contact_torque[row]
    # From the centre of mass to the origin of the sensor.
    frame = pose * sensors.pose[sensor]
    arm = wp.transform_point(pose, body_com[body]) - wp.transform_get_translation(frame)
    torque += wp.cross(arm, force)
    if (options & 4) == 0:
        rotation = wp.transform_get_rotation(frame)
        force = wp.quat_rotate_inv(rotation, force)
        torque = wp.quat_rotate_inv(rotation, torque)
    for k in range(3):
        readings[sensor, k] = force[k]
        readings[sensor, 3 + k] = torque[k]


class SensorReadings:
    """Readings of all force sensors.

    Args:
        sim: The prepared sim.
        contacts: Its contact readings.
    """

    def __init__(self, sim: Sim, contacts: ContactReadings):
        self._sim = sim
        self._runtime = runtime = sim.prepared
        self._contacts = contacts
        device = runtime.device
        actors = sim.actors
        self.table = SensorTable()
        pairs = [(actor, sensor) for actor in actors for sensor in actor.asset.force_sensors]
        self.table.row = integers([actor.body_start + sensor.body for actor, sensor in pairs], device)
        self.table.body = integers([actor.starts["body"] + sensor.body for actor, sensor in pairs], device)
        self.table.options = integers([_options(sensor.properties) for _, sensor in pairs], device)
        self._pairs = pairs
        self.table.pose = wp.array(self._poses(), dtype=wp.transform, device=device)
        self._scales = [actor.scale for actor in actors]
        self.reading = wp.zeros((len(pairs), 6), dtype=float, device=device)
        """Force [N] and torque [N·m], shape [sensor, 6]."""
        state = runtime.simulation.state
        self._body_q, self._body_qd = wp.clone(state.body_q), wp.clone(state.body_qd)
        runtime.before_step.append(self._remember)
        runtime.after_step.append(self._read)

    def _poses(self) -> np.ndarray:
        rows = np.array([sensor.pose._numbers() for _, sensor in self._pairs], dtype=np.float32).reshape(
            -1, 7
        )
        rows[:, :3] *= np.array([actor.scale for actor, _ in self._pairs], dtype=np.float32).reshape(-1, 1)
        return rows

    def _remember(self, dt: float) -> None:
        state = self._runtime.simulation.state
        wp.copy(self._body_q, state.body_q)
        wp.copy(self._body_qd, state.body_qd)
        scales = [actor.scale for actor in self._sim.actors]
        if scales != self._scales:
            self._scales = scales
            self.table.pose.assign(self._poses())

    def _read(self, dt: float) -> None:
        runtime = self._runtime
        model, state = runtime.model, runtime.simulation.state
        launch_kernel(
            read_sensor,
            dim=len(self._pairs),
            inputs=[
                self.table,
                model.body_mass,
                model.body_inertia,
                model.body_com,
                self._body_q,
                self._body_qd,
                state.body_q,
                state.body_qd,
                self._contacts.force,
                self._contacts.torque,
                dt,
            ],
            outputs=[self.reading],
            device=runtime.device,
        )


def _options(properties: Any) -> int:
    return (
        int(bool(properties.enable_forward_dynamics_forces))
        + 2 * int(bool(properties.enable_constraint_solver_forces))
        + 4 * int(bool(properties.use_world_frame))
    )
