"""Followers: joints that follow others by a polynomial, q_f = c_0 + c_1 q_l + ... + c_4 q_l^4.

They are no unknowns. Their columns of a Jacobian are added to those of the joints that they follow, times
the derivative of the polynomial, and their coordinates are set from the polynomial after every step.
"""

import numpy as np
import warp as wp

from pluriverse.ik.rows import Rows
from pluriverse.launch import launch_kernel
from pluriverse.model import Model, Topology
from pluriverse.model.world_ranges import world_ranges
from pluriverse.types import Entity, EqType

_MODULE = "pluriverse.ik.followers"


class Followers:
    """The following joints of a model, those that lead before those that follow them.

    Args:
        model: The model.
        what: Name of the caller, for messages.

    Raises:
        ValueError: If a joint follows two others, or itself.
    """

    def __init__(self, model: Model, what: str) -> None:
        kind = model.equality_constraint_type.numpy()
        enabled = model.equality_constraint_enabled.numpy().astype(bool)
        entries = np.flatnonzero((kind == EqType.JOINT) & enabled)
        q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
        sides = []
        for side in ("1", "2"):
            joint = getattr(model, f"equality_constraint_joint{side}").numpy()[entries]
            axis = getattr(model, f"equality_constraint_joint{side}_axis").numpy()[entries]
            known = joint >= 0
            axis = np.where(known, axis, 0)
            sides.append(
                (np.where(known, q_start[joint] + axis, -1), np.where(known, qd_start[joint] + axis, -1))
            )
        order = _leaders_first(sides[0][1], sides[1][1], model, entries, what)
        entries = entries[order]
        self.count = len(entries)
        self.flat_dofs = sides[0][1][order]
        """Degrees of freedom that follow, shape [follower]."""
        coord_first, coord_size = world_ranges(model, Entity.JOINT_COORD)
        dof_first, _ = world_ranges(model, Entity.JOINT_DOF)
        coords = sides[0][0][order]
        world = np.searchsorted(coord_first + coord_size, coords, side="right")
        by_world = np.argsort(world, kind="stable")
        entries, world, order = entries[by_world], world[by_world], order[by_world]
        columns = []
        for coord, dof in sides:
            columns.append(np.where(coord[order] < 0, -1, coord[order] - coord_first[world]))
            columns.append(np.where(dof[order] < 0, -1, dof[order] - dof_first[world]))

        def upload(values: np.ndarray) -> wp.array:
            return wp.array(values.astype(np.int32), dtype=wp.int32, device=model.device)

        self.start = upload(np.searchsorted(world, np.arange(model.world_count + 1)))
        self.coord, self.dof, self.leader_coord, self.leader_dof = (upload(column) for column in columns)
        self.entry = upload(entries)
        self._model = model

    def follow(self, rows: Rows, joint_q: wp.array) -> None:
        """Set the following coordinates of the rows that are due, shape [row, coord]."""
        if self.count == 0:
            return
        launch_kernel(
            follow_row,
            dim=joint_q.shape[0],
            inputs=[
                rows,
                self._model.topology,
                self.start,
                self.coord,
                self.leader_coord,
                self.entry,
                self._model.equality_constraint_polycoef,
            ],
            outputs=[joint_q],
            device=joint_q.device,
        )

    def fold(self, rows: Rows, joint_q: wp.array, jacobian: wp.array) -> None:
        """Move the columns of followers to those that they follow, for rows whose Jacobian is due."""
        if self.count == 0:
            return
        launch_kernel(
            fold_row,
            dim=joint_q.shape[0],
            inputs=[
                rows,
                self._model.topology,
                self.start,
                self.dof,
                self.leader_coord,
                self.leader_dof,
                self.entry,
                self._model.equality_constraint_polycoef,
                joint_q,
            ],
            outputs=[jacobian],
            device=joint_q.device,
        )


@wp.kernel(enable_backward=False, module=_MODULE)
def follow_row(
    rows: Rows,
    topology: Topology,
    start: wp.array[int],  # [world + 1] first follower
    coord: wp.array[int],  # [follower] world-local coordinate
    leader_coord: wp.array[int],  # [follower] world-local coordinate, -1 for a constant
    entry: wp.array[int],  # [follower] equality constraint
    polycoef: wp.array2d[float],  # [equality constraint, power]
    joint_q: wp.array2d[float],  # [row, coord] in and out
):
    """Set the following coordinates of a row."""
    row, _ = wp.tid()
    if rows.place_due[row] == 0:
        return
    first_world = rows.problem_world[rows.row_problem[row]]
    for world in range(first_world, first_world + rows.world_count):
        shift = topology.world_coord[world] - topology.world_coord[first_world]
        for follower in range(start[world], start[world + 1]):
            index = entry[follower]
            value = polycoef[index, 0]
            if leader_coord[follower] >= 0:
                x = joint_q[row, shift + leader_coord[follower]]
                value = polycoef[index, 4]
                for power in range(4):
                    value = value * x + polycoef[index, 3 - power]
            joint_q[row, shift + coord[follower]] = value


@wp.kernel(enable_backward=False, module=_MODULE)
def fold_row(
    rows: Rows,
    topology: Topology,
    start: wp.array[int],  # [world + 1] first follower
    dof: wp.array[int],  # [follower] world-local dof
    leader_coord: wp.array[int],  # [follower] world-local coordinate, -1 for a constant
    leader_dof: wp.array[int],  # [follower] world-local dof, -1 for a constant
    entry: wp.array[int],  # [follower] equality constraint
    polycoef: wp.array2d[float],  # [equality constraint, power]
    joint_q: wp.array2d[float],  # [row, coord]
    jacobian: wp.array3d[float],  # [row, residual, dof] in and out
):
    """Add the columns of followers to those of their leaders, in a row."""
    row, _ = wp.tid()
    if rows.jacobian_due[row] == 0:
        return
    first_world = rows.problem_world[rows.row_problem[row]]
    for world in range(first_world, first_world + rows.world_count):
        coord_shift = topology.world_coord[world] - topology.world_coord[first_world]
        dof_shift = topology.world_dof[world] - topology.world_dof[first_world]
        for back in range(start[world + 1] - start[world]):
            # The last first: a column has all that follows it when it is moved on.
            follower = start[world + 1] - 1 - back
            index = entry[follower]
            column = dof_shift + dof[follower]
            if leader_dof[follower] < 0:
                for residual in range(jacobian.shape[1]):
                    jacobian[row, residual, column] = 0.0
                continue
            x = joint_q[row, coord_shift + leader_coord[follower]]
            ratio = float(0.0)
            for power in range(4):
                ratio = ratio * x + float(4 - power) * polycoef[index, 4 - power]
            leader = dof_shift + leader_dof[follower]
            for residual in range(jacobian.shape[1]):
                moved = jacobian[row, residual, column]
                if moved != 0.0:
                    jacobian[row, residual, leader] = jacobian[row, residual, leader] + ratio * moved
                    jacobian[row, residual, column] = 0.0


def _leaders_first(
    follower: np.ndarray, leader: np.ndarray, model: Model, entries: np.ndarray, what: str
) -> np.ndarray:
    """Return the order in which every dof comes before those that follow it."""
    entry_of = {int(dof): place for place, dof in enumerate(follower)}
    labels = [model.equality_constraint_label[entry] for entry in entries]
    if len(entry_of) < len(follower):
        twice = next(place for place, dof in enumerate(follower) if entry_of[int(dof)] != place)
        raise ValueError(
            f"{what}: the equality constraints '{labels[twice]}' and "
            f"'{labels[entry_of[int(follower[twice])]]}' "
            "move the same joint. Disable one of them in equality_constraint_enabled."
        )
    depth = np.zeros(len(follower), dtype=np.int64)
    for place in range(len(follower)):
        at: int | None = place
        while at is not None and leader[at] >= 0:
            at = entry_of.get(int(leader[at]))
            depth[place] += at is not None
            if depth[place] > len(follower):
                raise ValueError(
                    f"{what}: the joint of the equality constraint '{labels[place]}' follows itself. Disable "
                    "one of the constraints of this circle in equality_constraint_enabled."
                )
    return np.argsort(depth, kind="stable")
