"""Tensors: named arrays of the robots of a simulation, as learning reads and writes them."""

from pluriverse.tensors.robot_tensors import RobotTensors

__all__ = ["RobotTensors"]
