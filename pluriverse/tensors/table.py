"""Table: indices of the joints, bodies and feet of each robot in the arrays of a model."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from pluriverse.model import Model
from pluriverse.selection import ArticulationView
from pluriverse.selection.patterns import Patterns, leaf, match_labels, present_patterns
from pluriverse.types import FLOATING_JOINTS, Entity, JointType, ShapeFlags

# Value of `RobotTable.axis` for a degree of freedom whose coordinate is its position.
SCALAR = wp.constant(-1)


@wp.struct
class RobotTable:
    """Which entries of the model each robot owns, for kernels. Rows are robots, sorted by world."""

    world_row: wp.array[int]  # [world + 1] first row of each world
    dof_start: wp.array[int]  # [row + 1] first entry of each row below
    dof: wp.array[int]  # [entry] degree of freedom of the model
    coord: wp.array[int]  # [entry] its coordinate; of a ball joint the first of the quaternion
    axis: wp.array[int]  # [entry] SCALAR, or which component of the rotation vector of a ball joint
    body_start: wp.array[int]  # [row + 1]
    body: wp.array[int]  # [entry] body of the model
    base_body: wp.array[int]  # [row] body that is the base; -1 for a base that is the world
    base_joint: wp.array[int]  # [row] root joint
    foot_start: wp.array[int]  # [row + 1]
    foot_body: wp.array[int]  # [entry] body of the model
    foot_index: wp.array[int]  # [entry] place of the body in its row
    foot_shape_start: wp.array[int]  # [foot entry + 1]
    foot_shape: wp.array[int]  # [entry] shapes of the foot that collide
    body_row: wp.array[int]  # [body of the model] row, or -1
    body_index: wp.array[int]  # [body of the model] place in that row


@dataclass(frozen=True)
class Ragged:
    """Entries of each row, row after row."""

    values: np.ndarray
    """Owned entities, shape [entry]."""
    start: np.ndarray
    """First entry of each row, shape [row + 1]."""
    least_width: int = 0
    """Columns to have at least."""

    @property
    def width(self) -> int:
        """Columns: the most entries of a row, or more on request."""
        return int(np.diff(self.start).max(initial=self.least_width))

    @property
    def rows(self) -> np.ndarray:
        """Row of each entry."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @property
    def places(self) -> np.ndarray:
        """Place of each entry in its row."""
        return np.arange(len(self.values)) - self.start[self.rows]

    def keep(self, kept: np.ndarray) -> "Ragged":
        """Return the entries for which `kept` is true."""
        return Ragged(self.values[kept], np.concatenate([[0], np.cumsum(kept)])[self.start])

    def of(self, row: int) -> np.ndarray:
        """Return what one row owns."""
        return self.values[self.start[row] : self.start[row + 1]]

    @property
    def longest(self) -> int:
        """Row with the most entries, the first of several."""
        return int(np.argmax(np.diff(self.start)))

    def split(self, values: list[Any]) -> list[list[Any]]:
        """Return one value per entry as a list for each row."""
        start = self.start.tolist()
        return [values[first:end] for first, end in pairwise(start)]

    def mask(self) -> np.ndarray:
        """Return which entries [row, width] there are."""
        return np.arange(self.width) < np.diff(self.start)[:, None]

    def padded(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Return one value per entry as [row, width], with `fill` where there is no entry."""
        result = np.full((len(self.start) - 1, self.width), fill, dtype=values.dtype)
        result[self.rows, self.places] = values
        return result


class RobotLayout:
    """The robots of tensors, on the host.

    Args:
        model: Model.
        pattern: Labels of articulations.
        joints: Joints to keep; None for all. Those of floating bases never count.
        bodies: Bodies to keep; None for all.
        feet: Bodies that are feet; None for the last with collision shapes of all chains that can move.
        worlds: Worlds; None for all.
        dof_count: Columns of degrees of freedom; None for the most of a robot.
        body_count: Columns of bodies; None for the most of a robot.
        foot_count: Columns of feet; None for the most of a robot.
        is_part: Whether patterns may find nothing, with a warning, as long as some robot is found.

    Raises:
        KeyError: If a pattern finds nothing.
        ValueError: If a robot has more than a count of columns.
    """

    def __init__(
        self,
        model: Model,
        pattern: Patterns,
        *,
        joints: Patterns | None,
        bodies: Patterns | None,
        feet: Patterns | None,
        worlds: Patterns | None,
        dof_count: int | None,
        body_count: int | None,
        foot_count: int | None,
        is_part: bool,
    ) -> None:
        if is_part:
            numbers = np.arange(model.articulation_count)
            known = present_patterns(
                model.articulation_label, numbers, pattern, what="RobotTensors", kind="articulation"
            )
            pattern = known or pattern  # without a robot there is nothing to return, and the view says so
        view = ArticulationView(model, pattern, worlds=worlds, homogeneous=False)
        self.model = model
        self.world = np.asarray(view.row_world)
        """World of each robot, ascending, shape [env]."""
        self.labels = view.articulation_labels
        """Label of each robot."""
        self._dof_joint, self._dof_coord, self._dof_axis = _dof_coordinates(model)
        joints_of = _owned(view, Entity.JOINT)
        kept_joints = view
        if joints is not None:
            if is_part:
                own_labels, places = view.labels(Entity.JOINT), joints_of.places
                joints = present_patterns(
                    own_labels, places, joints, what="RobotTensors: joints", kind="joint"
                )
            # The base of a robot is its own, whether its joint is kept or not.
            kept_joints = ArticulationView(
                model, pattern, include_joints=joints, worlds=worlds, homogeneous=False
            )
        dofs = _owned(kept_joints, Entity.JOINT_DOF)
        dofs = dofs.keep(self._dof_coord[dofs.values] >= 0)
        self.dofs = self._with_columns(dofs, "dof_count", dof_count)
        """Degrees of freedom of each robot, without those of its floating base."""
        links = _owned(view, Entity.BODY)
        self.robot_bodies = links.values
        """All bodies of the robots, whether selected or not."""
        shapes = _collision_shapes(model)
        kept = np.ones(model.body_count, dtype=bool)
        if bodies is not None:
            kept = _match(model.body_label, links.values, bodies, "bodies", is_part=is_part)
        if feet is not None:
            is_foot = _match(model.body_label, links.values, feet, "feet", is_part=is_part)
        else:
            is_foot = _last_bodies(model, np.diff(shapes.start) > 0)
        self.bodies = self._with_columns(links.keep((kept | is_foot)[links.values]), "body_count", body_count)
        """Bodies of each robot."""
        self._body_index = np.full(model.body_count, -1)
        self._body_index[self.bodies.values] = self.bodies.places
        self.feet = self._with_columns(links.keep(is_foot[links.values]), "foot_count", foot_count)
        """Bodies of each robot that are feet."""
        counts = np.diff(shapes.start)[self.feet.values]
        self._foot_shapes = Ragged(
            shapes.values[_ranges(shapes.start[self.feet.values], counts)],
            np.concatenate([[0], np.cumsum(counts)]),
        )
        self.base_joint = joints_of.values[joints_of.start[:-1]]
        """Root joint of each robot, shape [env]."""
        types, child = model.joint_type.numpy()[self.base_joint], model.joint_child.numpy()[self.base_joint]
        self.is_floating = np.isin(types, FLOATING_JOINTS)
        """Whether the base of each robot is free, shape [env]."""
        self.base_body = np.where(self.is_floating | (types == JointType.FIXED), child, -1)
        """Body that is the base of each robot; -1 where the base is the world, shape [env]."""

    def __len__(self) -> int:
        return len(self.world)

    def _with_columns(self, entries: Ragged, option: str, count: int | None) -> Ragged:
        """Return entries with as many columns as are asked for."""
        if count is None:
            return entries
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
            raise ValueError(f"RobotTensors: {option} is {count!r}, but must be a whole number >= 0.")
        row = entries.longest
        if len(entries.of(row)) > count:
            raise ValueError(
                f"RobotTensors: {option} is {count}, but {self.robot_name(row)} has "
                f"{len(entries.of(row))}. Give the most that a robot of the whole batch has."
            )
        return replace(entries, least_width=int(count))

    @cached_property
    def foot_bodies(self) -> np.ndarray:
        """Place of each foot among the bodies of its robot, -1 for padding, shape [env, foot]."""
        return self.feet.padded(self._body_index[self.feet.values], -1)

    @cached_property
    def dof_names(self) -> list[list[str]]:
        """Names of the degrees of freedom of each robot: that of the joint, numbered where it has several."""
        joint = self._dof_joint[self.dofs.values]
        _, first, inverse, counts = np.unique(
            joint, return_index=True, return_inverse=True, return_counts=True
        )
        names = [leaf(self.model.joint_label[each]) for each in joint]
        for entry in np.flatnonzero(counts[inverse] > 1).tolist():
            names[entry] += f":{entry - first[inverse[entry]]}"
        return self.dofs.split(names)

    @cached_property
    def body_names(self) -> list[list[str]]:
        """Names of the bodies of each robot."""
        return self.bodies.split([leaf(self.model.body_label[body]) for body in self.bodies.values])

    @cached_property
    def foot_names(self) -> list[list[str]]:
        """Names of the feet of each robot."""
        return self.feet.split([leaf(self.model.body_label[body]) for body in self.feet.values])

    def robot_name(self, row: int) -> str:
        """Return the name of a robot, for messages."""
        return f"'{self.labels[row]}' (row {row}, world {self.world[row]})"

    def scalar_coords(self) -> np.ndarray:
        """Return the coordinate of each degree of freedom [entry], -1 for those without one."""
        dofs = self.dofs.values
        return np.where(self._dof_axis[dofs] == int(SCALAR), self._dof_coord[dofs], -1)

    def to_device(self) -> Any:
        """Return the table on the device of the model."""
        model = self.model
        table = RobotTable()
        body_row = np.full(model.body_count, -1)
        body_row[self.bodies.values] = self.bodies.rows
        arrays = {
            "world_row": np.searchsorted(self.world, np.arange(model.world_count + 1)),
            "dof_start": self.dofs.start,
            "dof": self.dofs.values,
            "coord": self._dof_coord[self.dofs.values],
            "axis": self._dof_axis[self.dofs.values],
            "body_start": self.bodies.start,
            "body": self.bodies.values,
            "base_body": self.base_body,
            "base_joint": self.base_joint,
            "foot_start": self.feet.start,
            "foot_body": self.feet.values,
            "foot_index": self._body_index[self.feet.values],
            "foot_shape_start": self._foot_shapes.start,
            "foot_shape": self._foot_shapes.values,
            "body_row": body_row,
            "body_index": self._body_index,
        }
        for name, values in arrays.items():
            setattr(table, name, wp.array(values.astype(np.int32), dtype=wp.int32, device=model.device))
        return table


def _owned(view: ArticulationView, frequency: Entity) -> Ragged:
    layout = view.layout(frequency)
    return Ragged(np.asarray(layout.index), np.asarray(layout.start))


def _match(
    labels: list[str], owned: np.ndarray, patterns: Patterns, option: str, *, is_part: bool
) -> np.ndarray:
    """Return which of the robots' bodies match patterns."""
    own_labels, what = [labels[body] for body in owned], f"RobotTensors: {option}"
    if is_part:
        patterns = present_patterns(own_labels, owned, patterns, what=what, kind="body")
    result = np.zeros(len(labels), dtype=bool)
    result[owned] = match_labels(own_labels, owned, patterns, what=what, kind="body")
    return result


def _dof_coordinates(model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return joint, coordinate and axis of each degree of freedom; the coordinate is -1 for floating ones."""
    types = model.joint_type.numpy()
    q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    joint = np.repeat(np.arange(model.joint_count), np.diff(qd_start))
    axis = np.arange(len(joint)) - qd_start[joint]
    is_ball = types[joint] == JointType.BALL
    coord = np.where(is_ball, q_start[joint], q_start[joint] + axis)
    coord[np.isin(types[joint], FLOATING_JOINTS)] = -1
    return joint, coord, np.where(is_ball, axis, int(SCALAR))


def _collision_shapes(model: Model) -> Ragged:
    """Return the shapes of each body that collide."""
    body, flags = model.shape_body.numpy(), model.shape_flags.numpy()
    collides = np.flatnonzero((flags & int(ShapeFlags.COLLIDE_SHAPES) != 0) & (body >= 0))
    collides = collides[np.argsort(body[collides], kind="stable")]
    return Ragged(collides, np.searchsorted(body[collides], np.arange(model.body_count + 1)))


def _last_bodies(model: Model, has_shapes: np.ndarray) -> np.ndarray:
    """Return which bodies are the last with shapes of a moving chain.

    Bodies fixed to another count as part of it: a sensor housing on the trunk is not the end of a leg, nor is
    a cover on a hip, since the leg continues.
    """
    kinds, child, above = (getattr(model, f"joint_{name}").numpy() for name in ("type", "child", "parent"))
    parent = np.full(model.body_count + 1, -1)  # the last entry is that of the world
    parent[child] = above
    is_fixed = np.zeros(model.body_count + 1, dtype=bool)
    is_fixed[child] = (kinds == JointType.FIXED) & (above >= 0)
    shaped = np.append(has_shapes, False)
    leader = np.where(is_fixed, parent, np.arange(model.body_count + 1))
    below = np.zeros(model.body_count + 1, dtype=bool)  # has a body with shapes below
    while True:
        further = leader[leader]
        deeper = below.copy()
        deeper[parent[shaped | below]] = True
        if (further == leader).all() and (deeper == below)[:-1].all():
            break
        leader, below = further, deeper
    goes_on = np.zeros(model.body_count + 1, dtype=bool)
    goes_on[leader[parent[(shaped | below) & ~is_fixed]]] = True
    return (has_shapes & ~below[:-1]) & ~goes_on[leader[:-1]]


def _ranges(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the numbers of consecutive ranges, one after the other."""
    start = np.cumsum(count) - count
    return np.repeat(first - start, count) + np.arange(int(count.sum()))
