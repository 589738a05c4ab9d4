"""Forward kinematics: public body poses and velocities from joint coordinates and velocities.

Reads   joint_q, joint_qd; joint frames and axes, body_com, rigid groups
Writes  body_q, body_qd

body_qd is the velocity of the centre of mass and the angular velocity, in world axes.
"""

import weakref

import warp as wp

from pluriverse.dynamics.body_placing import place_bodies
from pluriverse.dynamics.joint_selection import JointSelection
from pluriverse.dynamics.rigid_groups import (
    RigidGroups,
)
from pluriverse.dynamics.tree_states import make_tree_states
from pluriverse.dynamics.workspace import Workspace
from pluriverse.launch import kept_for, uninterrupted
from pluriverse.model import Model, State
from pluriverse.model.arguments import check_array, check_model, check_state
from pluriverse.types import BodyFlags


class _Scratch:
    """Arrays of `eval_fk`, kept per model: a recorded call stays valid, and later calls allocate nothing."""

    def __init__(self, model: Model):
        self.real = wp.float64
        self.tree_states = make_tree_states(model, self.real)
        self.selection = JointSelection(model)
        self.groups = RigidGroups(model, self.real)


_scratches: weakref.WeakKeyDictionary[Model, _Scratch] = weakref.WeakKeyDictionary()


def eval_body_state(
    model: Model,
    worlds: wp.array,
    state: State,
    workspace: Workspace,
    *,
    due: wp.array | None = None,
    unsettled: wp.array | None = None,
    partly: bool = False,
) -> None:
    """Write the body poses and velocities of `state` from its own joint state, for the worlds given.

    `workspace.groups` must be up to date. With `due`, of shape [world], worlds where it is 0 are left as
    they are; in the others only roots may have other coordinates than in the last call. In worlds where
    `unsettled` is not 0, of the same shape, only the tree states are written. With `partly`, bodies that no
    stage of the next step reads are left out. Overwrites `workspace.tree_states`, of which `node_quat` and
    `node_offset` are a part.
    """
    place_bodies(
        model,
        worlds,
        state.joint_q,
        state.joint_qd,
        (state.body_q, state.body_qd),
        workspace.no_selection,
        workspace.no_selection if due is None else due,
        workspace.no_selection if unsettled is None else unsettled,
        workspace.tree_states,
        workspace.groups,
        workspace.real,
        partly=partly,
    )


def eval_tree_states(model: Model, worlds: wp.array, state: State, workspace: Workspace) -> None:
    """Bring `workspace.tree_states` up to date with the joint state of `state`, for the worlds given.

    `workspace.groups` must be up to date. No bodies of `state` are written.
    """
    place_bodies(
        model,
        worlds,
        state.joint_q,
        state.joint_qd,
        (workspace.no_poses, workspace.no_velocities),
        workspace.no_selection,
        workspace.no_selection,
        workspace.no_selection,
        workspace.tree_states,
        workspace.groups,
        workspace.real,
    )


@uninterrupted
def eval_fk_of_worlds(model: Model, worlds: wp.array, state: State) -> None:
    """Write the body poses and velocities of `state` from its own joint state, for the worlds given.

    Entries of -1 name no world.
    """
    scratch = kept_for(model, _scratches, _Scratch)
    scratch.groups.update(worlds)
    place_bodies(
        model,
        worlds,
        state.joint_q,
        state.joint_qd,
        (state.body_q, state.body_qd),
        scratch.selection.all,
        scratch.selection.all,
        scratch.selection.all,
        scratch.tree_states,
        scratch.groups,
        scratch.real,
    )


@uninterrupted
def eval_fk_of_articulations(model: Model, worlds: wp.array, state: State, mask: wp.array) -> None:
    """Write the bodies of some articulations of the worlds given from the joint state of `state`.

    Bodies of others keep pose and velocity, to the last bit; worlds that have none of the articulations may
    be left out.

    Args:
        model: Model that the state belongs to.
        worlds: Worlds to look at; entries of -1 name none.
        state: State whose `body_q` and `body_qd` are written.
        mask: Articulations to update, truth values of shape [articulation].
    """
    scratch = kept_for(model, _scratches, _Scratch)
    scratch.groups.update(worlds)
    selected = scratch.selection.of_worlds(worlds, mask)
    place_bodies(
        model,
        worlds,
        state.joint_q,
        state.joint_qd,
        (state.body_q, state.body_qd),
        selected,
        scratch.selection.all,
        scratch.selection.all,
        scratch.tree_states,
        scratch.groups,
        scratch.real,
    )


@uninterrupted
def eval_fk(
    model: Model,
    joint_q: wp.array,
    joint_qd: wp.array,
    state: State,
    mask: wp.array | None = None,
    indices: wp.array | None = None,
    body_flag_filter: int = BodyFlags.ALL,
    *,
    joint_mask: wp.array | None = None,
) -> None:
    """Write body poses and velocities of `state` from joint coordinates and velocities.

    Bodies that are not selected keep their pose and velocity, to the last bit, and carry what hangs on them.

    Args:
        model: Model that the joint state belongs to.
        joint_q: Joint coordinates, shape [coord].
        joint_qd: Joint velocities in the public convention, shape [dof].
        state: State whose `body_q` and `body_qd` are written; its joint arrays are not touched.
        mask: Articulations to update, non-zero or True to select, shape [articulation]. All if None.
        indices: Indices of the articulations to update, on the model's device; not together with `mask`.
            Entries that name no articulation have no effect; a solver of the model reports them.
        body_flag_filter: `BodyFlags` of the bodies to update.
        joint_mask: Joints whose child bodies are to be updated, truth values of shape [joint]; joints further
            out are not included by themselves. All if None.

    Raises:
        TypeError: If `model` is no Model, or a mask is no Warp array.
        ValueError: If both `mask` and `indices` are given, or a mask has the wrong shape, type or device.
    """
    check_model(model, "eval_fk")
    check_state(model, state, "eval_fk: state")
    check_array(model, joint_q, (model.joint_coord_count,), wp.float32, "eval_fk: joint_q")
    check_array(model, joint_qd, (model.joint_dof_count,), wp.float32, "eval_fk: joint_qd")
    scratch = kept_for(model, _scratches, _Scratch)
    selected = scratch.selection.of_arguments(mask, indices, joint_mask, int(body_flag_filter))
    scratch.groups.update(model.structure.worlds)
    place_bodies(
        model,
        model.structure.worlds,
        joint_q,
        joint_qd,
        (state.body_q, state.body_qd),
        selected,
        scratch.selection.all,
        scratch.selection.all,
        scratch.tree_states,
        scratch.groups,
        scratch.real,
    )
