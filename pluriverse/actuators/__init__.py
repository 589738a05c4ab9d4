"""Actuators: models between the commands of a policy and the efforts of joints."""

from typing import Any

from pluriverse.actuators.joint_actuators import JointActuators
from pluriverse.actuators.network_actuators import NetworkActuators
from pluriverse.newton_names import missing

__all__ = ["JointActuators", "NetworkActuators"]


def __getattr__(name: str) -> Any:
    raise missing("actuators", name, kind="module")
