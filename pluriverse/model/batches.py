"""Batches: worlds of similar size, for stages that launch one thread per degree of freedom of a world."""

from dataclasses import dataclass

import numpy as np
import warp as wp

from pluriverse.model.topology import Template

# Degrees of freedom are rounded up to multiples of this. Half a warp of 32 lanes: a Go1 (18), a cartpole (2)
# and a G1 (35) fall into different classes, robots that differ in a gripper mostly do not.
DOF_CLASS_STEP = 16


@dataclass(frozen=True)
class Batch:
    """Worlds of one size class."""

    worlds: wp.array
    """World indices, those of one template next to each other, int32, shape [slot]."""
    templates: tuple[int, ...]
    """Templates that the worlds belong to, in the order of `worlds`."""
    dof_count_max: int
    """Largest number of degrees of freedom of a world in the batch."""


def make_batches(templates: list[Template], device: wp.Device) -> list[Batch]:
    """Group the worlds by their number of degrees of freedom, rounded up."""
    classes: dict[int, list[int]] = {}
    for index, template in enumerate(templates):
        classes.setdefault(-(-template.dof_count // DOF_CLASS_STEP), []).append(index)
    return [
        Batch(
            worlds=wp.array(
                np.concatenate([templates[index].worlds for index in members]).astype(np.int32),
                dtype=wp.int32,
                device=device,
            ),
            templates=tuple(members),
            dof_count_max=max(templates[index].dof_count for index in members),
        )
        for _, members in sorted(classes.items())
    ]
