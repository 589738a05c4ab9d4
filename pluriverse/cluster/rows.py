"""Rows: an array of a simulation or a fleet, split by world."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.model.schema import ENTITY_OF_ARRAY
from pluriverse.model.world_ranges import world_ranges
from pluriverse.simulation import Simulation


@dataclass(frozen=True)
class Rows:
    """The entries of each world in an array, one world after the other."""

    values: np.ndarray
    """Entries of all worlds, shape [entry, ...]."""
    start: np.ndarray
    """First entry of each world, and the end, shape [world + 1]."""

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, world: int) -> np.ndarray:
        """Return the entries of one world, shape [entry, ...]."""
        if not 0 <= world < len(self):
            raise IndexError(f"world {world} does not exist; there are worlds 0 to {len(self) - 1}.")
        return self.values[self.start[world] : self.start[world + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[world] for world in range(len(self)))

    @property
    def array(self) -> np.ndarray:
        """All entries as one array, shape [world, entry, ...], without a copy.

        Raises:
            ValueError: If worlds have different numbers of entries.
        """
        counts = np.diff(self.start)
        if len(counts) and (counts != counts[0]).any():
            raise ValueError(
                f"worlds have from {counts.min()} to {counts.max()} entries, so they are no box. Take the "
                "rows one by one, or padded()."
            )
        width = int(counts[0]) if len(counts) else 0
        return self.values.reshape(len(self), width, *self.values.shape[1:])

    def padded(self, fill: float = np.nan) -> np.ndarray:
        """Return all entries as one array, shape [world, entry, ...], padded where worlds have fewer."""
        counts = np.diff(self.start)
        shape = (len(self), int(counts.max(initial=0)), *self.values.shape[1:])
        result = np.full(shape, fill, dtype=np.result_type(self.values.dtype, type(fill)))
        filled = np.arange(shape[1]) < counts[:, None]
        result[filled] = self.values
        return result

    @staticmethod
    def joined(parts: "Sequence[Rows]") -> "Rows":
        """Return the rows of the worlds of all parts, in their order."""
        if len(parts) == 1:
            return parts[0]
        counts = np.concatenate([np.diff(part.start) for part in parts])
        return Rows(np.concatenate([part.values for part in parts]), np.concatenate([[0], np.cumsum(counts)]))


def find_array(simulation: Simulation, name: str, what: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return an array of the state, the control or the model, and which entries each world has.

    Args:
        simulation: The simulation.
        name: Name of the array, such as `joint_q`, looked for in that order.
        what: The caller, for messages.

    Returns:
        The Warp array, and the first entry and number of entries of each world, shape [world]. The worlds of
        a simulation with variants are those that its environments are in.

    Raises:
        AttributeError: If there is no such array, or it has no entries that belong to worlds.
    """
    model = simulation.model
    entity = ENTITY_OF_ARRAY.get(name)
    array = None
    for owner in (simulation.state, simulation.control, model):
        array = getattr(owner, name, None)
        if array is not None:
            break
    if entity is None or array is None:
        known = [
            each
            for each in ENTITY_OF_ARRAY
            if any(
                getattr(owner, each, None) is not None
                for owner in (simulation.state, simulation.control, model)
            )
        ]
        raise AttributeError(f"{what}: no array is called {name!r}; there are {', '.join(sorted(known))}.")
    first, count = world_ranges(model, entity)
    if hasattr(simulation, "environment_world"):
        worlds = simulation.environment_world.numpy()
        first, count = first[worlds], count[worlds]
    return array, first, count


def entries_of(first: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries of ranges, one behind the other, and where each range begins among them."""
    start = np.concatenate([[0], np.cumsum(count)])
    return np.arange(int(start[-1])) + np.repeat(first - start[:-1], count), start


def read_rows(simulation: Simulation, name: str, what: str) -> Rows:
    """Return a copy of the entries of each world in an array."""
    array, first, count = find_array(simulation, name, what)
    entries, start = entries_of(first, count)
    return Rows(array.numpy()[entries], start)


def write_rows(simulation: Simulation, name: str, values: Any, worlds: np.ndarray | None, what: str) -> None:
    """Write what worlds have of an array.

    Args:
        simulation: The simulation.
        name: Name of the array.
        values: One value for all entries, or entries of the worlds one behind the other, or shape [world,
            entry, ...].
        worlds: Indices of the worlds; all if None.
        what: The caller, for messages.

    Raises:
        ValueError: If values do not fit.
    """
    array, first, count = find_array(simulation, name, what)
    if worlds is not None:
        first, count = first[worlds], count[worlds]
    entries, _ = entries_of(first, count)
    host = array.numpy()
    given = np.asarray(values, dtype=host.dtype)
    expected = (len(entries), *host.shape[1:])
    if given.ndim and given.size == int(np.prod(expected)):
        given = given.reshape(expected)
    elif given.ndim:
        raise ValueError(
            f"{what}: values of {name} have shape {given.shape}, but these worlds have {len(entries)} "
            f"entries of shape {host.shape[1:]}, {int(np.prod(expected))} numbers in all."
        )
    if not np.isfinite(given).all():
        raise ValueError(f"{what}: values of {name} are not all finite.")
    host = host.copy()
    host[entries] = given
    array.assign(host)
