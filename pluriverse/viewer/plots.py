"""Plots: figures of one world over time."""

import enum
from typing import Any

import numpy as np

from pluriverse.model import Model
from pluriverse.recording.moment import Moment, energies
from pluriverse.viewer.layout import world_of

# Points kept per curve: ten seconds at thirty frames a second.
POINT_COUNT = 300


class Plot(enum.Enum):
    """Quantities of a world that can be plotted."""

    JOINTS = "Joint positions"
    VELOCITIES = "Joint velocities"
    ENERGY = "Energies [J]"
    CONTACTS = "Contacts"
    ITERATIONS = "Solver iterations"


# Largest number of joint curves that can still be distinguished.
JOINT_COUNT_MAX = 8
_COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")


class History:
    """The last figures of one world."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.plot = Plot.JOINTS
        """The plotted quantity."""
        self.world = 0
        """World of the plot."""
        self.joints = ""
        """Part of the names of the joints that are plotted."""
        self.is_new = True
        """Whether values were added since `columns` was called."""
        self.clear()

    def clear(self) -> None:
        """Drop all values, after another quantity was selected."""
        self._rows: list[list[float]] = []
        self._entries = [
            entry
            for entry in scalar_joints(self._model, self.world)
            if self.joints.lower() in entry[1].lower()
        ][:JOINT_COUNT_MAX]
        self._dofs = dof_of_coord(self._model)
        self.is_new = True

    def keep(self, moment: Moment) -> None:
        """Store the values of a moment; going back in time starts over."""
        if self._rows and moment.time < self._rows[-1][0]:
            self.clear()
        if self._rows and moment.time == self._rows[-1][0]:
            return
        self._rows.append([moment.time, *self._values(moment)])
        del self._rows[:-POINT_COUNT]
        self.is_new = True

    def names(self) -> list[str]:
        """Return the names of the curves."""
        if self.plot in (Plot.JOINTS, Plot.VELOCITIES):
            return [label for _, label in self._entries] or ["height [m]"]
        return {
            Plot.ENERGY: ["kinetic", "potential"],
            Plot.CONTACTS: ["contacts"],
            Plot.ITERATIONS: ["iterations"],
        }[self.plot]

    def columns(self) -> tuple[np.ndarray, ...]:
        """Return times and the values of each curve."""
        self.is_new = False
        width = 1 + len(self.names())
        table = np.array(self._rows or [[0.0] * width], dtype=np.float64)
        return tuple(np.ascontiguousarray(column) for column in np.nan_to_num(table).T)

    def series(self) -> tuple[dict[str, Any], ...]:
        """Return how the curves are drawn."""
        curves = [
            {"label": name, "stroke": _COLORS[index % len(_COLORS)], "width": 1.5}
            for index, name in enumerate(self.names())
        ]
        return ({"label": "time [s]"}, *curves)

    def _values(self, moment: Moment) -> list[float]:
        if self.plot in (Plot.JOINTS, Plot.VELOCITIES):
            if self._entries and self.plot is Plot.JOINTS:
                return [float(moment.joint_q[coord]) for coord, _ in self._entries]
            if self._entries:
                return [float(moment.joint_qd[self._dofs[coord]]) for coord, _ in self._entries]
            # A world of free bodies has no such joints; the height of the first body says most.
            bodies = np.flatnonzero(world_of(self._model, "body") == self.world)
            return [float(moment.body_q[bodies[0], 2]) if len(bodies) else 0.0]
        if self.plot is Plot.ENERGY:
            return list(energies(self._model, moment, self.world))
        counts = moment.contact_count if self.plot is Plot.CONTACTS else moment.iterations
        return [float(counts[self.world])]


def scalar_joints(model: Model, world: int) -> list[tuple[int, str]]:
    """Return the coordinates of a world's single-coordinate joints, with the last part of their labels."""
    start = model.joint_q_start.numpy()
    mine = np.flatnonzero(world_of(model, "joint") == world)
    return [
        (int(start[joint]), model.joint_label[joint].rpartition("/")[2])
        for joint in mine.tolist()
        if start[joint + 1] - start[joint] == 1
    ]


def dof_of_coord(model: Any) -> np.ndarray:
    """Return the degree of freedom of each coordinate of single-axis joints, -1 for other joints."""
    coord, dof = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    result = np.full(int(coord[-1]), -1)
    single = (np.diff(coord) == 1) & (np.diff(dof) == 1)
    result[coord[:-1][single]] = dof[:-1][single]
    return result
