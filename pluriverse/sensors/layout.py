"""Sensor layout: the sensors of all worlds sorted by world, and which columns each has.

Every world has one row of numbers. A column belongs to a name: the last part of a label, or the whole label
if a world has two of that name. So the sensors of a robot have the same columns in every world that has it,
in the order of its file, and sensors of equal name on different robots share columns.
"""

import dataclasses
from collections import Counter

import numpy as np

from pluriverse.builder.sensors import FREQUENCY, SensorType, read_columns
from pluriverse.model import Model


@dataclasses.dataclass(frozen=True)
class SensorColumns:
    """Columns of the values of a name."""

    first: int
    """First column."""
    dim: int
    """How many."""


class SensorLayout:
    """The sensors of a model by world, on the host.

    Args:
        model: The model.
    """

    world: np.ndarray
    """World of each sensor, ascending, shape [sensor]."""
    row: np.ndarray
    """Row of each sensor in the columns of the model, shape [sensor]."""
    label: list[str]
    """Label of each sensor."""
    name: list[str]
    """Name of each sensor: the last part of its label where that is enough."""
    type: np.ndarray
    """`SensorType` of each sensor, shape [sensor]."""
    dim: np.ndarray
    """Number of columns of each sensor, shape [sensor]."""
    column: np.ndarray
    """First column of each sensor, shape [sensor]."""
    start: np.ndarray
    """First sensor of each world, shape [world + 1]."""
    width: int
    """Number of columns."""

    def __init__(self, model: Model):
        self.columns = read_columns(model) or {}
        world = self.columns.get("world", np.zeros(0, dtype=np.int64))
        owner = model.custom_frequency_world.get(FREQUENCY)
        world = np.maximum(world if owner is None else np.asarray(owner), 0).astype(np.int64)
        self.row = np.argsort(world, kind="stable")
        self.world = world[self.row]
        counts = np.bincount(self.world, minlength=model.world_count)
        self.start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        labels = self.columns.get("label", np.zeros(0, dtype=object))
        self.label = [str(labels[row]) for row in self.row.tolist()]
        self.type = self.columns.get("type", np.zeros(0, dtype=np.int64))[self.row].astype(np.int64)
        self.dim = self.columns.get("dim", np.zeros(0, dtype=np.int64))[self.row].astype(np.int64)
        self.name, self.column = [], np.zeros(len(self.row), dtype=np.int32)
        self.names: dict[str, SensorColumns] = {}
        self.width = 0
        self._place()

    def columns_of_steps(self) -> np.ndarray:
        """Return which columns only a step can give, as accelerations and forces, shape [world, column]."""
        result: np.ndarray = np.zeros((len(self.start) - 1, self.width), dtype=bool)
        for sensor in np.flatnonzero([SensorType(code).needs_step for code in self.type.tolist()]):
            first = self.column[sensor]
            result[self.world[sensor], first : first + self.dim[sensor]] = True
        return result

    def _place(self) -> None:
        placed: dict[tuple[tuple[str, int, int], ...], list[tuple[str, int]]] = {}
        for first, end in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True):
            parts = self.label[first:end], self.type[first:end].tolist(), self.dim[first:end].tolist()
            kind = tuple(zip(*parts, strict=True))
            if kind not in placed:  # worlds of one kind are placed once
                placed[kind] = self._place_kind(kind)
            for sensor, (name, column) in zip(range(first, end), placed[kind], strict=True):
                self.name.append(name)
                self.column[sensor] = column

    def _place_kind(self, kind: tuple[tuple[str, int, int], ...]) -> list[tuple[str, int]]:
        """Return name and first column of each sensor of a kind of worlds."""
        short = Counter(label.rpartition("/")[2] for label, _, _ in kind)
        full = Counter(label for label, _, _ in kind)
        result, taken = [], set()
        for number, (label, code, dim) in enumerate(kind):
            name = label.rpartition("/")[2]
            if short[name] > 1:
                name = label
            if full[label] > 1 and name in taken:
                name = f"{label}_{number}"
            while name in self.names and self.names[name].dim != dim:
                name = f"{name}_{SensorType(code).name.lower()}"  # another robot's word for something else
            taken.add(name)
            if name not in self.names:
                self.names[name] = SensorColumns(self.width, dim)
                self.width += dim
            result.append((name, self.names[name].first))
        return result
