"""What a model has for MuJoCo only, in the namespace `mujoco`: SolverSAP says once that it leaves it out."""

import warnings

import numpy as np

from pluriverse.model import Model
from pluriverse.model.attributes import find_attribute
from pluriverse.warnings import PluriverseWarning

CTRL_DIRECT = 1
"""Value of `ctrl_source` of actuators that are no drive of their joint."""


class UnsupportedFeatureWarning(PluriverseWarning):
    """A model has forces that only another solver knows."""


def warn_of_unsupported(model: Model) -> None:
    """Warn if a model has tendons, general actuators and the like, which SolverSAP does not simulate."""
    counts = {
        "tendons": model.custom_frequency_counts.get("mujoco:tendon", 0),
        "general actuators": _count(model, "mujoco:ctrl_source", equal=CTRL_DIRECT),
        "contact pairs with properties of their own": model.custom_frequency_counts.get("mujoco:pair", 0),
        "joint axes with a spring of their own": _count(model, "mujoco:dof_passive_stiffness"),
        "bodies with gravity compensation": _count(model, "mujoco:gravcomp"),
    }
    found = [f"{count} {what}" for what, count in counts.items() if count]
    if found:
        warnings.warn(
            f"SolverSAP: the model has {', '.join(found)} in model.mujoco, which act in SolverMuJoCo only. "
            "Use that solver, or import without register_custom_attributes() for what both can do.",
            UnsupportedFeatureWarning,
            stacklevel=4,
        )


def _count(model: Model, key: str, *, equal: float | None = None) -> int:
    """Return how many values of an attribute are not zero, or are equal to a number."""
    array = find_attribute(model, key)
    if array is None:
        return 0
    values = array.numpy()
    return int(np.count_nonzero(values if equal is None else values == equal))
