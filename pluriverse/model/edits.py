"""Edits: in which worlds arrays of a model were written to, so that derived values of other worlds stay.

Recomputing a value may change its bits, if only by rounding. A world that was not edited must not change
because another one was.
"""

from collections.abc import Sequence

import numpy as np

from pluriverse.model.contents import ModelContents


class Edits:
    """Remembers arrays of a model, on the host, to tell in which worlds they changed.

    Args:
        model: The model.
        names: Names of arrays with an entry per joint, coordinate, degree of freedom or body.
    """

    def __init__(self, model: ModelContents, names: Sequence[str]) -> None:
        self._model = model
        joint_world = model.joint_world.numpy()
        dof_counts = np.diff(model.joint_qd_start.numpy())
        coord_counts = np.diff(model.joint_q_start.numpy())
        worlds = {
            "joint_q": np.repeat(joint_world, coord_counts),
            "joint_qd": np.repeat(joint_world, dof_counts),
            "joint_axis": np.repeat(joint_world, dof_counts),
        }
        body_world = model.body_world.numpy()
        self._world = {
            name: worlds.get(name, joint_world if name.startswith("joint") else body_world) for name in names
        }
        self._reference = {name: self._read(name) for name in names}

    def worlds(self, names: Sequence[str] | None = None) -> np.ndarray:
        """Return the worlds in which one of the arrays (default: all) changed since `mark_clean`."""
        changed = np.zeros(self._model.world_count, dtype=bool)
        for name in names or self._reference:
            rows = (self._read(name) != self._reference[name]).any(axis=1)
            worlds = self._world[name][rows]
            if (worlds < 0).any():  # of no world, so that all have it
                changed[:] = True
            changed[worlds] = True
        return np.flatnonzero(changed)

    def mark_clean(self) -> None:
        """Take the current values of all arrays as the reference."""
        self._reference = {name: self._read(name) for name in self._reference}

    def _read(self, name: str) -> np.ndarray:
        """Return the bits of an array, shape [entry, number]."""
        values = np.ascontiguousarray(getattr(self._model, name).numpy())
        width = values.size // max(len(values), 1)
        return values.reshape(len(values), width).view(np.uint32).copy()
