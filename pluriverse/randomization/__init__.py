"""Randomization: properties of worlds drawn on the device, separately for each world."""

from pluriverse.randomization.distributions import (
    Choice,
    Constant,
    Distribution,
    Gaussian,
    LogUniform,
    Uniform,
)
from pluriverse.randomization.randomizer import Randomizer
from pluriverse.randomization.terms import (
    InertiaFactor,
    InitialState,
    Operation,
    Property,
    PseudoInertia,
    Rotation,
    Term,
    body_mass,
    centre_of_mass,
    drive_gains,
    friction,
    geometry_size,
    gravity,
    joint_armature,
    joint_limits,
)

__all__ = [
    "Choice",
    "Constant",
    "Distribution",
    "Gaussian",
    "InertiaFactor",
    "InitialState",
    "LogUniform",
    "Operation",
    "Property",
    "PseudoInertia",
    "Randomizer",
    "Rotation",
    "Term",
    "Uniform",
    "body_mass",
    "centre_of_mass",
    "drive_gains",
    "friction",
    "geometry_size",
    "gravity",
    "joint_armature",
    "joint_limits",
]
