"""Problems: which worlds a problem moves, and where its coordinates, dofs and bodies are in a row of arrays.

A problem has the coordinates of the whole model, or, with `problem_worlds`, those of one world. Each problem
is computed in one row or, from several starts, in several. Rows hold what belongs to their problem from
column 0 on, in the order of the model; where worlds differ, the columns behind the last are not used.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.ik.followers import Followers
from pluriverse.model import Model
from pluriverse.model.world_ranges import world_ranges
from pluriverse.types import Entity, EqType
from pluriverse.warnings import LoopWarning


class Problems:
    """Problems of inverse kinematics on one model.

    Args:
        model: The model.
        count: Number of problems.
        worlds: World that each problem moves, shape [problem]; None if each moves the whole model.
        mask: Degrees of freedom that may move, truth values of shape [joint_dof_count]; all if None.
        what: Name of the caller, for messages.

    Raises:
        TypeError: If the model is none, or the number is not a whole one.
        ValueError: If there is nothing to move, a world does not exist, or the mask has another shape, type
            or device.
    """

    def __init__(
        self,
        model: Model,
        count: int,
        worlds: Sequence[int] | np.ndarray | None = None,
        mask: wp.array | None = None,
        *,
        what: str,
    ) -> None:
        if not isinstance(model, Model):
            raise TypeError(
                f"{what}: model is a {type(model).__name__}, but must be a Model; call finalize()."
            )
        self.count = read_whole_number(count, 1, f"{what}: n_problems")
        self.model = model
        self.what = what
        if model.joint_dof_count == 0:
            raise ValueError(
                f"{what}: the model has no joint that can move, so there is nothing to solve for."
            )
        first, sizes = {}, {}
        for entity in (Entity.BODY, Entity.JOINT, Entity.JOINT_COORD, Entity.JOINT_DOF):
            first[entity], sizes[entity] = world_ranges(model, entity)
        self.whole_model = worlds is None
        if worlds is None:
            self.world_count = model.world_count
            self.worlds = np.zeros(self.count, dtype=np.int32)
            widths = {entity: int(size.sum()) for entity, size in sizes.items()}
        else:
            self.world_count = 1
            self.worlds = _read_worlds(model, worlds, self.count, what)
            widths = {entity: int(size[self.worlds].max()) for entity, size in sizes.items()}
            if widths[Entity.JOINT_DOF] == 0:
                raise ValueError(f"{what}: no world in problem_worlds has a joint that can move.")
        self.body_count = widths[Entity.BODY]
        self.joint_count = widths[Entity.JOINT]
        self.coord_count = widths[Entity.JOINT_COORD]
        self.dof_count = widths[Entity.JOINT_DOF]
        self._body_first, self._body_size = first[Entity.BODY], sizes[Entity.BODY]
        self._coord_first, self._coord_size = first[Entity.JOINT_COORD], sizes[Entity.JOINT_COORD]
        self.problem_world: wp.array = wp.array(self.worlds, dtype=wp.int32, device=model.device)
        self.followers = Followers(model, what)
        self.dof_coord, self.dof_first = self._scalar_coords(first[Entity.JOINT_DOF])
        self.movable: wp.array = wp.array(self._movable(mask), dtype=wp.int32, device=model.device)
        self._warn_of_loops()

    @property
    def is_state_order(self) -> bool:
        """Whether rows put together are the `joint_q` of a state: one problem, or all worlds in order."""
        if self.whole_model:
            return self.count == 1
        return np.array_equal(self.worlds, np.arange(self.model.world_count))

    def coord_ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first coordinate of each problem in `joint_q` of a state, and how many it has."""
        if self.whole_model:
            zeros = np.zeros(self.count, dtype=np.int32)
            return zeros, np.full(self.count, self.coord_count, dtype=np.int32)
        return self._coord_first[self.worlds].astype(np.int32), self._coord_size[self.worlds].astype(np.int32)

    def find_links(self, link_index: Any, what: str) -> tuple[wp.array, wp.array, wp.array]:
        """Return the column, the world and the node of a link of each problem, shape [problem].

        Args:
            link_index: Body of the model, one for all problems or one for each.
            what: Name of the objective, for messages.

        Raises:
            TypeError: If it is not made of whole numbers.
            ValueError: If there is no such body, or it belongs to another world than the problem.
        """
        given = link_index.numpy() if isinstance(link_index, wp.array) else np.asarray(link_index)
        if given.dtype.kind not in "iu":
            raise TypeError(f"{what}: link_index is {link_index!r}, but must be the index of a body.")
        if given.ndim > 1 or (given.ndim == 1 and len(given) != self.count):
            raise ValueError(
                f"{what}: link_index has shape {given.shape}, but must be one body or one for each of the "
                f"{self.count} problems."
            )
        links = np.broadcast_to(given, (self.count,)).astype(np.int64)
        wrong = np.flatnonzero((links < 0) | (links >= self.model.body_count))
        if len(wrong):
            raise ValueError(
                f"{what}: link_index is {links[wrong[0]]}, but the model has the bodies 0 to "
                f"{self.model.body_count - 1}: {_some(self.model.body_label)}."
            )
        worlds = np.searchsorted(self._body_first, links, side="right") - 1
        # Worlds without bodies begin where the next one does.
        inside = (worlds >= 0) & (links < (self._body_first + self._body_size)[worlds])
        label = self.model.body_label
        if not inside.all():
            body = int(links[np.flatnonzero(~inside)[0]])
            raise ValueError(f"{what}: body {body} ('{label[body]}') belongs to no world and cannot move.")
        if not self.whole_model:
            other = np.flatnonzero(worlds != self.worlds)
            if len(other):
                problem = int(other[0])
                body = int(links[problem])
                raise ValueError(
                    f"{what}: body {body} ('{label[body]}') is in world {worlds[problem]}, but problem "
                    f"{problem} moves world {self.worlds[problem]}. Give link_index one body for each "
                    "problem."
                )
        local = links - self._body_first[worlds]
        nodes = np.zeros(self.count, dtype=np.int32)
        for index, template in enumerate(self.model.templates):
            mine = self.model.world_template[worlds] == index
            nodes[mine] = template.body_node[local[mine]]
        columns = links if self.whole_model else local
        device = self.model.device
        return (
            wp.array(columns.astype(np.int32), dtype=wp.int32, device=device),
            wp.array(worlds.astype(np.int32), dtype=wp.int32, device=device),
            wp.array(nodes, dtype=wp.int32, device=device),
        )

    def _scalar_coords(self, world_dof: np.ndarray) -> tuple[wp.array, wp.array]:
        """Return the coordinate of each dof that has one of its own, -1 for others, and the first flat dof.

        Shapes [problem, dof], in columns of rows, and [problem].
        """
        coords = np.full((self.count, self.dof_count), -1, dtype=np.int32)
        for index, template in enumerate(self.model.templates):
            dof, coord = template.dof_public, template.dof_coord
            if self.whole_model:
                worlds = np.flatnonzero(self.model.world_template == index)[:, None]
                columns = np.where(coord >= 0, coord + self._coord_first[worlds], -1)
                coords[:, world_dof[worlds] + dof] = columns
            else:
                mine = np.flatnonzero(self.model.world_template[self.worlds] == index)
                coords[mine[:, None], dof] = coord
        first = np.zeros(self.count) if self.whole_model else world_dof[self.worlds]
        device = self.model.device
        return wp.array(coords, dtype=wp.int32, device=device), wp.array(
            first.astype(np.int32), dtype=wp.int32, device=device
        )

    def _movable(self, mask: wp.array | None) -> np.ndarray:
        """Return 1 for degrees of freedom that are solved for, 0 for those held or following, shape [dof]."""
        movable = np.ones(self.model.joint_dof_count, dtype=np.int32)
        if mask is not None:
            what = f"{self.what}: joint_dof_mask"
            if not isinstance(mask, wp.array) or mask.dtype is not wp.bool:
                raise ValueError(f"{what} must be a Warp array with dtype wp.bool, not {_kind(mask)}.")
            if mask.shape != movable.shape:
                raise ValueError(
                    f"{what} has shape {mask.shape}, but must have shape ({len(movable)},): one entry for "
                    "each degree of freedom of the model."
                )
            if mask.device != self.model.device:
                raise ValueError(
                    f"{what} is on {mask.device}, but must be on the model device, {self.model.device}."
                )
            movable[~mask.numpy()] = 0
        movable[self.followers.flat_dofs] = 0
        # Rows of a small world have columns behind its last dof, whose entries are read and have no effect.
        return np.concatenate([movable, np.ones(self.dof_count, dtype=np.int32)])

    def _warn_of_loops(self) -> None:
        """Warn once of equality constraints that no solve keeps."""
        model = self.model
        kind = model.equality_constraint_type.numpy()
        enabled = model.equality_constraint_enabled.numpy().astype(bool)
        loops = np.flatnonzero((kind != EqType.JOINT) & enabled)
        if len(loops):
            labels = _some([model.equality_constraint_label[loop] for loop in loops])
            warnings.warn(
                f"{self.what}: the model has {len(loops)} equality constraints between bodies ({labels}), "
                "which inverse kinematics does not keep. Add an IKObjective for each, or solve for the "
                "joints of one side with joint_dof_mask.",
                LoopWarning,
                stacklevel=4,
            )


def _read_worlds(model: Model, worlds: Any, count: int, what: str) -> np.ndarray:
    """Return the world of each problem."""
    given = np.asarray(worlds.numpy() if isinstance(worlds, wp.array) else worlds)
    if given.dtype.kind not in "iu" or given.shape != (count,):
        raise ValueError(
            f"{what}: problem_worlds must be {count} whole numbers, the world of each problem, not an array "
            f"of {given.dtype} of shape {given.shape}."
        )
    wrong = np.flatnonzero((given < 0) | (given >= model.world_count))
    if len(wrong):
        raise ValueError(
            f"{what}: problem_worlds[{wrong[0]}] is {given[wrong[0]]}, but the model has the worlds 0 to "
            f"{model.world_count - 1}."
        )
    return given.astype(np.int32)


def read_whole_number(value: Any, least: int, what: str) -> int:
    """Return a whole number that is at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} is {value!r}, but must be a whole number.")
    if value.__index__() < least:
        raise ValueError(f"{what} is {value}, but must be at least {least}.")
    return int(value.__index__())


def read_number(value: Any, what: str, *, least: float, open_end: bool = False) -> float:
    """Return a finite number that is at least `least`, or above it.

    Raises:
        ValueError: If it is another.
    """
    number = float(value)
    if not (np.isfinite(number) and (number > least if open_end else number >= least)):
        bound = "greater than" if open_end else "at least"
        raise ValueError(f"{what} is {value}, but must be finite and {bound} {least:g}.")
    return number


def _kind(value: Any) -> str:
    return (
        f"an array of {value.dtype.__name__}" if isinstance(value, wp.array) else f"a {type(value).__name__}"
    )


def _some(labels: Sequence[str], most: int = 6) -> str:
    """Return some labels of a list, for messages."""
    shown = ", ".join(f"'{label}'" for label in labels[:most])
    return shown + (", ..." if len(labels) > most else "")
