"""Actuators: what stands between the commands of a policy and the efforts of joints."""

from pluriverse.actuators.joint_actuators import JointActuators
from pluriverse.actuators.network_actuators import NetworkActuators

__all__ = ["JointActuators", "NetworkActuators"]
