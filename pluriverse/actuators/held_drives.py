"""HeldDrives: the drives of the model whose place actuators take, held off meanwhile.

Reads   modes, gains and effort limits of the model, which variants write when an environment changes its own
Writes  gains and limits: 0; parameters of actuators that have those of the model

The effort limit of a joint without a drive stays: nothing is to be held off, and the limit may be the range
of the joint for other actuators, on its tendons for example.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model.drive_effort import DRIVE_ARRAYS, EFFORT_LIMIT
from pluriverse.simulation import Simulation
from pluriverse.types import JointTargetMode, ModelFlags

_MODULE = "pluriverse.actuators.held_drives"


@wp.func
def is_off(mode: int, is_limit: int) -> bool:
    """Return whether a value is held at 0."""
    return is_limit == 0 or mode != JointTargetMode.NONE


@wp.kernel(enable_backward=False, module=_MODULE)
def mark_drive(
    dofs: wp.array[int],  # [actuator]
    mode: wp.array[int],  # [dof] `JointTargetMode`
    is_limit: int,  # 1: values are effort limits
    # in and out
    values: wp.array[float],  # [dof] of the model
    held: wp.array[float],  # [actuator]
):
    """Mark a drive, so that it shows whether something writes it."""
    actuator, _ = wp.tid()
    dof = dofs[actuator]
    if not is_off(mode[dof], is_limit):
        held[actuator] = values[dof]
    values[dof] = wp.nan


@wp.kernel(enable_backward=False, module=_MODULE)
def take_drive(
    dofs: wp.array[int],  # [actuator]
    mode: wp.array[int],  # [dof] `JointTargetMode`
    is_limit: int,  # 1: values are effort limits
    # in and out
    values: wp.array[float],  # [dof] of the model
    held: wp.array[float],  # [actuator]
):
    """Switch off a drive, and hold what was written to it since it was marked."""
    actuator, _ = wp.tid()
    dof = dofs[actuator]
    if not wp.isnan(values[dof]):
        held[actuator] = values[dof]
    values[dof] = wp.where(is_off(mode[dof], is_limit), 0.0, held[actuator])


@wp.kernel(enable_backward=False, module=_MODULE)
def follow_drive(
    dofs: wp.array[int],  # [actuator]
    values: wp.array[float],  # [dof] of the model
    # out
    parameter: wp.array[float],  # [actuator]
):
    """Take what was written to a drive since it was marked."""
    actuator, _ = wp.tid()
    value = values[dofs[actuator]]
    if not wp.isnan(value):
        parameter[actuator] = value


class HeldDrives:
    """Drives of the model that are off, since actuators take their place.

    Args:
        simulation: The simulation.
        dofs: Their degrees of freedom, shape [actuator].
        followers: Parameters of the actuators that are those of the model, by their names there, each of
            shape [actuator].
    """

    def __init__(self, simulation: Simulation, dofs: np.ndarray, followers: dict[str, wp.array]) -> None:
        model = simulation.model
        self._simulation, self._dofs = simulation, dofs
        self._device_dofs = wp.array(dofs, dtype=wp.int32, device=model.device)
        self._mode: Any = model.joint_target_mode
        self._arrays = {name: getattr(model, name) for name in DRIVE_ARRAYS}
        self._followers: dict[str, list[wp.array]] = {
            name: [followers[name]] if name in followers else [] for name in DRIVE_ARRAYS
        }
        self._held: dict[str, Any] = {}
        for name, array in self._arrays.items():
            values = array.numpy()[dofs]
            self._held[name] = wp.array(values, dtype=wp.float32, device=model.device)
        self.take()
        simulation.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES)

    def follow(self, name: str, values: wp.array) -> None:
        """Let `values` follow a drive too, if its parameter does, shape [actuator]."""
        if self._followers[name]:
            self._followers[name].append(values)

    def mark(self) -> None:
        """Mark the drives, before something may write them."""
        for name, array in self._arrays.items():
            self._launch(mark_drive, self._inputs(name), [array, self._held[name]])

    def take(self) -> None:
        """Take over what was written since drives were marked, and switch them off again."""
        for name, array in self._arrays.items():
            for follower in self._followers[name]:
                self._launch(follow_drive, [self._device_dofs, array], [follower])
        self.hold()

    def hold(self) -> None:
        """Switch off the drives, and hold what they are now; parameters that follow them stay."""
        for name, array in self._arrays.items():
            self._launch(take_drive, self._inputs(name), [array, self._held[name]])

    @property
    def held(self) -> Mapping[str, wp.array]:
        """The drives as `release` leaves them, by the names of their arrays, each of shape [actuator]."""
        self.mark()  # takes in the limits that a user has written where there is no drive
        self.hold()
        return self._held

    def release(self) -> None:
        """Let the drives of the model act again."""
        simulation = self._simulation
        has_drive = self._mode.numpy()[self._dofs] != JointTargetMode.NONE
        for name, array in self._arrays.items():
            held = has_drive if name == EFFORT_LIMIT else slice(None)
            values = array.numpy().copy()
            values[self._dofs[held]] = self._held[name].numpy()[held]
            array.assign(values)
        forces: Any = simulation.control.joint_f
        left = forces.numpy().copy()
        left[self._dofs] = 0.0
        forces.assign(left)
        simulation.notify_model_changed(ModelFlags.JOINT_DOF_PROPERTIES)

    def _inputs(self, name: str) -> list[Any]:
        return [self._device_dofs, self._mode, int(name == EFFORT_LIMIT)]

    def _launch(self, kernel: Any, inputs: list[Any], outputs: list[Any]) -> None:
        launch_kernel(
            kernel, dim=len(self._dofs), inputs=inputs, outputs=outputs, device=self._device_dofs.device
        )
