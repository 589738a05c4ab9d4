"""Gym: every call of the actor API, as methods of one object."""

from typing import Any

from pluriverse.gymapi.gym_absent import AbsentCalls
from pluriverse.gymapi.gym_appearance import AppearanceCalls
from pluriverse.gymapi.gym_assets import AssetCalls
from pluriverse.gymapi.gym_cameras import CameraCalls
from pluriverse.gymapi.gym_components import ComponentCalls
from pluriverse.gymapi.gym_controls import ControlCalls
from pluriverse.gymapi.gym_envs import EnvCalls
from pluriverse.gymapi.gym_properties import PropertyCalls
from pluriverse.gymapi.gym_sensors import SensorCalls
from pluriverse.gymapi.gym_simulation import SimulationCalls
from pluriverse.gymapi.gym_states import StateCalls
from pluriverse.gymapi.gym_tensors import TensorCalls
from pluriverse.gymapi.gym_viewer import ViewerCalls


class Gym(
    SimulationCalls,
    AssetCalls,
    EnvCalls,
    ComponentCalls,
    PropertyCalls,
    ControlCalls,
    StateCalls,
    TensorCalls,
    SensorCalls,
    CameraCalls,
    AppearanceCalls,
    ViewerCalls,
    AbsentCalls,
):
    """The calls of the actor API. It has no state of its own; `acquire_gym` returns the one there is."""


_gym = Gym()


def acquire_gym(*_: Any) -> Gym:
    """Return the object with the calls of the API."""
    return _gym
