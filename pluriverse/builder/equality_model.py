"""Equality constraints of a model: check the table of a builder and put it on the device."""

import numpy as np
import warp as wp

from pluriverse.builder.inputs import QUATERNION_LENGTH_TOLERANCE
from pluriverse.builder.snapshot import COLUMN_NAMES, Snapshot, WorldRanges
from pluriverse.model import Model, poses
from pluriverse.model.topology import Template
from pluriverse.types import EqType

_PREFIX = "equality_constraint_"
_STRUCTURE = ("type", "body1", "body2", "joint1", "joint2", "joint1_axis", "joint2_axis")


class EqualityColumns:
    """The equality constraints of a builder at the moment of `finalize`."""

    def __init__(self, source: Snapshot):
        self.source = source
        self.columns = {
            name.removeprefix(_PREFIX): getattr(source, name)
            for name in COLUMN_NAMES
            if name.startswith(_PREFIX)
        }
        self.ranges = WorldRanges(self.columns["world"], source.authored_world_count)
        """First constraint of each world."""

    def __len__(self) -> int:
        return len(self.columns["type"])

    def name(self, index: int) -> str:
        """Return the name of a constraint in messages."""
        return self.source.builder.constraint_name(index)

    def structure(self) -> tuple[np.ndarray, np.ndarray]:
        """Return types, bodies, joints and axes, world-local, and the first constraint of each world."""
        bounds = self.ranges.bounds
        inside = slice(int(bounds[0]), int(bounds[-1]))
        count = np.diff(bounds)
        rows = np.stack([self.columns[name][inside] for name in _STRUCTURE], axis=1).astype(np.int64)
        for columns, kind in (((1, 2), "body"), ((3, 4), "joint")):
            first = np.repeat(self.source.ranges[kind].bounds[:-1], count)
            for column in columns:
                rows[:, column] = np.where(rows[:, column] >= 0, rows[:, column] - first, -1)
        return rows, bounds - bounds[0]

    def check(self) -> None:
        """Check the values of the arrays, which users may have written to.

        Raises:
            ValueError: If one is not finite or contradicts another.
        """
        if len(self) == 0:
            return
        body_kind = self.columns["type"] != EqType.JOINT
        for column in ("anchor", "axis", "torquescale", "polycoef"):
            values = self.columns[column].reshape(len(self), -1)
            bad = ~np.isfinite(values).all(axis=1)
            if column == "torquescale":
                bad |= values[:, 0] < 0.0
            if column == "axis":
                bad |= ~(np.linalg.norm(values, axis=1) > 0.0)
            if bad.any():
                index = int(np.argmax(bad))
                raise ValueError(
                    f"{self.name(index)}: equality_constraint_{column} is {values[index].tolist()}, but it "
                    "must be finite, a torquescale >= 0 and an axis not zero. Check what was written to the "
                    "array."
                )
        relpose = self.columns["relpose"]
        given = body_kind & ~np.isnan(relpose).all(axis=1)
        off = np.abs(np.linalg.norm(relpose[:, 3:], axis=1) - 1.0)
        bad = given & ~(np.isfinite(relpose).all(axis=1) & (off <= QUATERNION_LENGTH_TOLERANCE))
        if bad.any():
            index = int(np.argmax(bad))
            raise ValueError(
                f"{self.name(index)}: equality_constraint_relpose is {relpose[index].tolist()}, but it must "
                "be a position and a unit quaternion x, y, z, w, or all NaN for the initial pose."
            )

    def check_structure(self, templates: list[Template]) -> None:
        """Check that each constraint acts on bodies that can move relative to each other.

        Raises:
            ValueError: If one does not.
        """
        for template in templates:
            for offset in range(len(template.equality)):
                kind, body1, body2, *_ = template.equality[offset].tolist()
                if kind == EqType.JOINT:
                    continue
                still = [body < 0 or bool(template.body_static[body]) for body in (body1, body2)]
                welded = body1 >= 0 and body2 >= 0 and template.body_weld[body1] == template.body_weld[body2]
                if all(still) or welded:
                    index = int(self.ranges.bounds[template.worlds[0]] + offset)
                    names = [
                        self.source.builder.body_name(int(self.columns[column][index]))
                        for column in ("body1", "body2")
                    ]
                    raise ValueError(
                        f"{self.name(index)}: {names[0]} and {names[1]} cannot move against each other, so "
                        "there is nothing to constrain. Remove the constraint, or the fixed joints between "
                        "them."
                    )

    def complete(self, body_q: np.ndarray) -> None:
        """Normalize axes, and fill in missing poses from the initial `body_q`, [body, 7]."""
        axis = self.columns["axis"]
        axis /= np.linalg.norm(axis, axis=1, keepdims=True)
        self.columns["relpose"][:] = self._relposes(body_q)

    def put(self, model: Model) -> None:
        """Write the arrays of the model that are not columns."""
        published = self.ranges.published.astype(np.int32)
        model.equality_constraint_count = len(self)
        model.equality_constraint_world_start = wp.array(published, dtype=wp.int32, device=model.device)
        model.equality_constraint_label = list(self.source.builder.equality_constraint_label)

    def _relposes(self, body_q: np.ndarray) -> np.ndarray:
        """Return the pose of the second body in the first, from `body_q` where none was given."""
        relpose = self.columns["relpose"].copy()
        placed = np.vstack([body_q.reshape(-1, 7), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])  # -1: the world
        pose1, pose2 = placed[self.columns["body1"]], placed[self.columns["body2"]]
        missing = np.isnan(relpose).all(axis=1)
        relpose[missing] = poses.compose(poses.inverse(pose1), pose2)[missing]
        relpose[:, 3:] /= np.linalg.norm(relpose[:, 3:], axis=1, keepdims=True)
        return relpose
