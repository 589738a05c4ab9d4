"""Views of bodies, joints, shapes and worlds, selected by their labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pluriverse.model import Model
from pluriverse.selection.layout import owned_by, ranges
from pluriverse.selection.patterns import Patterns
from pluriverse.selection.view import View, resolve_worlds, select_rows, simulated_worlds
from pluriverse.types import Entity


class BodyView(View):
    """Bodies of any worlds, selected by their labels.

    Args:
        model: Model to look at.
        pattern: Labels with or without wildcards, regular expressions, or indices of bodies.
        worlds: Worlds, by their labels or indices; all if None.

    Raises:
        KeyError: If a pattern finds nothing.
    """

    def __init__(self, model: Model, pattern: Patterns, *, worlds: Patterns | None = None) -> None:
        body_world = simulated_worlds(model, model.body_world.numpy())
        rows = select_rows(
            model, Entity.BODY, model.body_label, body_world, pattern, worlds, what=type(self).__name__
        )
        super().__init__(model, Entity.BODY, rows, body_world[rows])
        self._add_layout(Entity.SHAPE, *owned_by(self.row_ids, model.shape_body.numpy()))

    @property
    def body_labels(self) -> list[str]:
        """Label of each row."""
        return self.labels(Entity.BODY)


class JointView(View):
    """Joints of any worlds, with their coordinates and degrees of freedom, selected by their labels.

    Args:
        model: Model to look at.
        pattern: Labels with or without wildcards, regular expressions, or indices of joints.
        worlds: Worlds, by their labels or indices; all if None.
        joint_types: Types (`JointType`) to keep; all if None.

    Raises:
        KeyError: If a pattern finds nothing, or nothing of these types.
    """

    def __init__(
        self,
        model: Model,
        pattern: Patterns,
        *,
        worlds: Patterns | None = None,
        joint_types: Sequence[int] | None = None,
    ) -> None:
        joint_world = simulated_worlds(model, model.joint_world.numpy())
        rows = select_rows(
            model, Entity.JOINT, model.joint_label, joint_world, pattern, worlds, what=type(self).__name__
        )
        if joint_types is not None:
            rows = rows[np.isin(model.joint_type.numpy()[rows], joint_types)]
            if not rows.size:
                raise KeyError(
                    f"JointView: no joint that matches {pattern!r} has one of the types {joint_types}."
                )
        super().__init__(model, Entity.JOINT, rows, joint_world[rows])
        self._add_layout(Entity.JOINT_COORD, *owned_ranges(self.row_ids, model.joint_q_start.numpy()))
        self._add_layout(Entity.JOINT_DOF, *owned_ranges(self.row_ids, model.joint_qd_start.numpy()))

    @property
    def joint_labels(self) -> list[str]:
        """Label of each row."""
        return self.labels(Entity.JOINT)


class ShapeView(View):
    """Shapes of any worlds, also those that all worlds share (world -1), selected by their labels.

    Args:
        model: Model to look at.
        pattern: Labels with or without wildcards, regular expressions, or indices of shapes.
        worlds: Worlds, by their labels or indices; all, and what they share, if None.

    Raises:
        KeyError: If a pattern finds nothing.
    """

    def __init__(self, model: Model, pattern: Patterns, *, worlds: Patterns | None = None) -> None:
        shape_world = simulated_worlds(model, model.shape_world.numpy())
        rows = select_rows(
            model, Entity.SHAPE, model.shape_label, shape_world, pattern, worlds, what=type(self).__name__
        )
        super().__init__(model, Entity.SHAPE, rows, shape_world[rows])

    @property
    def shape_labels(self) -> list[str]:
        """Label of each row."""
        return self.labels(Entity.SHAPE)


class WorldView(View):
    """Worlds, with all bodies, joints, shapes and so on that they hold, selected by their labels.

    Args:
        model: Model to look at.
        worlds: Labels of worlds with or without wildcards, regular expressions, or indices; all by default.

    Raises:
        KeyError: If a pattern finds nothing.
    """

    def __init__(self, model: Model, worlds: Patterns = "*") -> None:
        rows = resolve_worlds(model, worlds, what=type(self).__name__)
        super().__init__(model, Entity.WORLD, rows, rows)
        for frequency in (
            Entity.BODY,
            Entity.JOINT,
            Entity.JOINT_COORD,
            Entity.JOINT_DOF,
            Entity.ARTICULATION,
            Entity.SHAPE,
            Entity.EQUALITY_CONSTRAINT,
        ):
            start = getattr(model, f"{frequency.key}_world_start").numpy()
            if model.world_count == 1 and start[0] == start[1]:  # no authored world: everything is in world 0
                start = np.array([0, start[-1]])
            self._add_layout(frequency, *owned_ranges(self.row_ids, start[: model.world_count + 1]))

    def set_gravity(self, gravity: Any, mask: Any = None, *, indices: Any = None) -> None:
        """Set gravity [m/s²] as a vector in world axes, shape [3] or one per world; see `set_attribute`."""
        self.set_attribute("gravity", self.model, gravity, mask, indices=indices)


def owned_ranges(rows: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries of the range of each row, row after row, and where each row begins."""
    counts = start[rows + 1] - start[rows]
    return ranges(start[rows], counts), np.concatenate([[0], np.cumsum(counts)])
