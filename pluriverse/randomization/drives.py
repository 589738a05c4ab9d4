"""Drives: where gains and limits of joints are: in the model, or in stages that drive joints in its place.

`JointActuators` switch the drives of their joints off. A gain drawn in the model would then do nothing, or
drive the joint beside the actuator. What is meant are the gains that act.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.model import Model
from pluriverse.model.entity_names import entity_name
from pluriverse.stages import StepStage
from pluriverse.types import Entity


@dataclass(frozen=True)
class DrivePlace:
    """An array with a property of drives."""

    stage: StepStage | None
    """The stage that has it; None for the model."""
    values: Any
    """The array."""
    found: np.ndarray
    """Which degrees of freedom are meant there, truth values, shape [dof]."""
    entry: np.ndarray
    """Entry of each degree of freedom in the array, shape [dof]."""


def driving_stages(simulation: Any) -> tuple[StepStage, ...]:
    """Return the stages of a simulation that drive joints; none for None, a model alone."""
    stages = () if simulation is None else simulation.stages
    return tuple(stage for stage in stages if stage.driven_dofs.size)


def drive_places(
    model: Model, stages: tuple[StepStage, ...], name: str, found: np.ndarray, index: int
) -> Iterator[DrivePlace]:
    """Yield the arrays that have a property of some drives.

    Args:
        model: The model.
        stages: The stages that drive joints in its place.
        name: Name of the property in the model, one of `DRIVE_ARRAYS`.
        found: Degrees of freedom that are meant, truth values, shape [dof].
        index: Index of the term that draws it, for messages.

    Raises:
        ValueError: If a stage that drives a joint has no such property.
    """
    left = found.copy()
    for stage in stages:
        dofs = stage.driven_dofs
        meant = np.zeros_like(found)
        meant[dofs] = found[dofs]
        if not meant.any():
            continue
        values = stage.drive_parameters.get(name)
        if values is None:
            joint = entity_name(model, Entity.JOINT_DOF, int(np.argmax(meant)))
            raise ValueError(
                f"Randomizer: term {index} draws {name} of {joint}, but the joint is driven by a "
                f"{type(stage).__name__}, which has no such property. Leave the joint out with entities=."
            )
        entry = np.zeros(len(found), dtype=np.int64)
        entry[dofs] = np.arange(len(dofs))
        left &= ~meant
        yield DrivePlace(stage, values, meant, entry)
    if left.any():
        yield DrivePlace(None, getattr(model, name), left, np.arange(len(found)))
