"""Unsound values: numbers in writable arrays that no step can use, named where a world has frozen.

Arrays may be written at any time, by a policy on the device too, so nobody looks at their numbers until a
world has frozen. Then most likely one of them is the cause.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from pluriverse.model.control import Control
from pluriverse.model.entity_names import entity_name
from pluriverse.model.schema import CONTROL_ARRAYS, MODEL_ARRAYS, STATE_ARRAYS, ArraySpec
from pluriverse.model.state import State
from pluriverse.model.world_ranges import world_ranges
from pluriverse.types import Entity

if TYPE_CHECKING:
    from pluriverse.model.model import Model

# Kinds of entities that have names. All are in worlds, but for shapes that all worlds share.
_NAMED = (
    Entity.WORLD,
    Entity.BODY,
    Entity.JOINT,
    Entity.JOINT_DOF,
    Entity.JOINT_COORD,
    Entity.SHAPE,
    Entity.EQUALITY_CONSTRAINT,
)


def find_unsound_values(
    model: "Model", world: int, state: State | None, control: Control | None
) -> list[str]:
    """Return a description of each array with numbers that a world cannot be stepped with, in words.

    Args:
        model: Model of the world.
        world: The world.
        state: Its state, of which external forces are looked at; None for none.
        control: Its commands; None for none.
    """
    found = []
    for name, kind, array, spec in _writable(model, state, control):
        values = array.numpy()
        rows = _rows_of(model, kind, world)
        if not rows.size:
            continue
        own = values[rows].reshape(len(rows), -1)
        bad = np.isnan(own) if spec is None else spec.are_unsound(own)
        if bad.any():
            row = int(np.argmax(bad.any(axis=1)))
            more = int(bad.any(axis=1).sum()) - 1
            also = f", and so are {more} more" if more else ""
            value = own[row][np.argmax(bad[row])]
            owner = int(rows[row])
            entity = f"{kind} {owner}" if isinstance(kind, str) else entity_name(model, kind, owner)
            found.append(f"{name} of {entity} is {value}{also}")
    return found


def _writable(
    model: "Model", state: State | None, control: Control | None
) -> Iterator[tuple[str, Entity | str, wp.array, ArraySpec | None]]:
    """Yield the arrays of numbers that steps read and users write, commands first."""
    holders: list[tuple[str, Any, dict[str, ArraySpec]]] = []
    if control is not None:
        # The targets by coordinates agree with those by degrees of freedom after a step.
        specs = {name: spec for name, spec in CONTROL_ARRAYS.items() if name != "joint_target_q"}
        holders.append(("control", control, specs))
    if state is not None:  # the rest of it is as it was before the world froze
        holders.append(("state", state, {"body_f": STATE_ARRAYS["body_f"]}))
    holders.append(("model", model, MODEL_ARRAYS))
    for owner, holder, specs in holders:
        for name, spec in specs.items():
            array = getattr(holder, name)
            if spec.entity in _NAMED and not spec.structural and _holds_numbers(array):
                yield f"{owner}.{name}", spec.entity, array, spec
        for key, array in holder.custom_arrays.items():
            kind = model.attribute_specs[key].frequency
            if _holds_numbers(array) and (isinstance(kind, str) or kind in _NAMED):
                yield f"{owner}.{key.replace(':', '.')}", kind, array, None


def _holds_numbers(array: Any) -> bool:
    """Return whether an attribute is an array, with entries, of numbers that may be NaN."""
    if not isinstance(array, wp.array) or not array.size:
        return False
    return getattr(array.dtype, "_wp_scalar_type_", array.dtype) in (wp.float32, wp.float64)


def _rows_of(model: "Model", kind: Entity | str, world: int) -> np.ndarray:
    """Return the entries that belong to a world, or to all; rows of custom frequencies name their world."""
    if isinstance(kind, str):
        for key, spec in model.attribute_specs.items():
            if spec.frequency == kind and spec.references == Entity.WORLD.key:
                owner = model.custom_arrays[key].numpy()
                return np.flatnonzero((owner == world) | (owner < 0))
        return np.arange(0)
    first, count = world_ranges(model, kind)
    rows = np.arange(first[world], first[world] + count[world])
    if kind is Entity.SHAPE:
        rows = np.concatenate([rows, np.flatnonzero(model.shape_world.numpy() < 0)])
    return rows
