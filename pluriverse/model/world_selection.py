"""World selection: the worlds that an operation concerns, from indices or masks on host or device."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from pluriverse.model.indices import (
    INDEX_TYPES,
    MASK_TYPES,
    IndexErrors,
    IndexKind,
    count_wrong_indices,
    device_array,
    narrow_indices,
    read_mask,
)
from pluriverse.model.model import Model
from pluriverse.model.world_list import is_trusted, list_worlds


@dataclass(frozen=True)
class WorldSelection:
    """Worlds to launch over, for kernels that take a list of worlds and a mask."""

    worlds: wp.array[int]
    """Worlds, shape [slot]. Kernels ignore invalid entries."""
    mask: wp.array[bool]
    """Mask of selected worlds, shape [world]; empty if all of `worlds` are selected."""
    indices: np.ndarray | None
    """The worlds on the host; None if only the device knows them."""


class Environments:
    """Environments of a model, which `resolve_worlds` accepts in place of worlds.

    Args:
        model: The model.
        count: Number of environments.
    """

    kind = IndexKind.ENVIRONMENT

    def __init__(self, model: Model, count: int) -> None:
        self.device = model.device
        self.world_count = count
        self.worlds: wp.array[int] = list_worlds(np.arange(count), model.device)
        self.index_errors: IndexErrors = model.index_errors


def resolve_worlds(model: Model | Environments, worlds: Any, *, what: str) -> WorldSelection:
    """Return the worlds selected by indices or truth values, without reading anything back from the device.

    Indices on the device that name no world are counted, and reported by `SolverBase.report`.

    Args:
        model: Model that the worlds are in; or the environments, for indices of these.
        worlds: None for all; indices; or one truth value per world. On the host or, as a Warp array or by
            DLPack, on the device of the model: indices of 32 or 64 bits, masks of bool or uint8. A resolved
            selection is returned unchanged.
        what: The operation, for messages.

    Raises:
        IndexError: If an index on the host names no world.
        TypeError: If the worlds are neither whole numbers nor truth values.
        ValueError: If a mask has not one entry per world, or an array is on another device.
    """
    if isinstance(worlds, WorldSelection):
        return worlds
    device = model.device
    everywhere: wp.array[bool] = wp.zeros(0, dtype=wp.bool, device=device)
    if worlds is None:
        return WorldSelection(model.worlds, everywhere, np.arange(model.world_count))
    given = device_array(worlds)
    if given is not None:
        if given.device != device:
            raise ValueError(f"{what}: worlds are on {given.device}, but the model is on {device}.")
        if given.dtype in MASK_TYPES and given.shape == (model.world_count,):
            return WorldSelection(model.worlds, read_mask(given), None)
        if given.dtype in INDEX_TYPES and given.ndim == 1:
            if given.size and not is_trusted(given):
                kind = model.kind if isinstance(model, Environments) else IndexKind.WORLD
                count_wrong_indices(given, model.world_count, kind, model.index_errors)
            return WorldSelection(narrow_indices(given), everywhere, None)
        raise (ValueError if given.dtype in (*MASK_TYPES, *INDEX_TYPES) else TypeError)(
            f"{what}: worlds have the type {given.dtype.__name__} and the shape {given.shape}, but must be "
            f"indices of 32 or 64 bits with one axis, or {model.world_count} truth values (bool or uint8)."
        )
    return select_worlds(model, find_worlds(model, worlds, what=what))


def select_worlds(model: Model | Environments, worlds: np.ndarray) -> WorldSelection:
    """Return the selection of worlds that `find_worlds` found."""
    everywhere: wp.array[bool] = wp.zeros(0, dtype=wp.bool, device=model.device)
    listed: wp.array[int] = wp.array(worlds.astype(np.int32), dtype=wp.int32, device=model.device)
    return WorldSelection(listed, everywhere, worlds)


def find_worlds(model: Model | Environments, worlds: Any, *, what: str) -> np.ndarray:
    """Return the worlds selected by indices or truth values on the host, in order, each once.

    Args:
        model: Model that the worlds are in; or the environments, for indices of these.
        worlds: Indices, or one truth value per world.
        what: The operation, for messages.

    Raises:
        IndexError: If an index names no world.
        TypeError: If the worlds are neither whole numbers nor truth values.
        ValueError: If a mask has not one entry per world.
    """
    found = np.asarray(worlds)
    if found.dtype == bool:
        if found.shape != (model.world_count,):
            raise ValueError(
                f"{what}: the mask of worlds has shape {found.shape}, but the model has {model.world_count} "
                "worlds. Pass one truth value per world."
            )
        found = np.flatnonzero(found)
    elif found.size and not np.issubdtype(found.dtype, np.integer):
        raise TypeError(f"{what}: worlds are {worlds!r}, but must be whole numbers or truth values.")
    found = np.unique(found.astype(np.int64))
    if found.size and not (found[0] >= 0 and found[-1] < model.world_count):
        raise IndexError(
            f"{what}: world {int(found[0] if found[0] < 0 else found[-1])} does not exist; the model has "
            f"worlds 0 to {model.world_count - 1}."
        )
    return found
