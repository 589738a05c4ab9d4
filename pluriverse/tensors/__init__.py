"""Tensors: named arrays of the robots of a simulation, for learning."""

from pluriverse.tensors.robot_tensors import RobotTensors

__all__ = ["RobotTensors"]
