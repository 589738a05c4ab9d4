"""Articulation query: data that functions on whole articulations share, kept once per model.

An articulation's matrices have one column per degree of freedom and six rows per link, in the order of its
joints in the model, padded to the largest articulation.
"""

import weakref
from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics.kinematics import eval_kinematics
from pluriverse.dynamics.workspace import Workspace
from pluriverse.launch import kept_for
from pluriverse.model import Control, Model, State
from pluriverse.model.arguments import check_state
from pluriverse.model.world_list import check_worlds


class ArticulationQuery:
    """Indices of joints and degrees of freedom in their articulations, and a workspace in double precision.

    Args:
        model: The model.
    """

    workspace: Workspace
    """Scratch of the dynamics stages."""
    joint_index: wp.array[int]
    """Index of each joint in its articulation, shape [joint]."""
    dof_index: wp.array[int]
    """Index of each degree of freedom in its articulation, public order, shape [dof]."""
    link_count_max: int
    """Links (joints) of the largest articulation."""
    dof_count_max: int
    """Largest number of degrees of freedom of an articulation."""
    every: wp.array[bool]
    """The empty mask, which stands for all articulations."""
    no_control: Control
    """No forces on the joints."""
    body_articulation: wp.array[int]
    """Articulation of each body, -1 for none, shape [body]."""

    def __init__(self, model: Model) -> None:
        self.workspace = Workspace(model, wp.float64)
        articulation = model.joint_articulation.numpy()
        joint_index = _rank_in_group(articulation)
        dof_counts = np.diff(model.joint_qd_start.numpy())
        dof_index = _rank_in_group(np.repeat(articulation, dof_counts))
        self.joint_index = wp.array(joint_index, dtype=wp.int32, device=model.device)
        self.dof_index = wp.array(dof_index, dtype=wp.int32, device=model.device)
        self.link_count_max = int(joint_index.max(initial=-1)) + 1
        self.dof_count_max = int(dof_index.max(initial=-1)) + 1
        self.every = wp.zeros(0, dtype=wp.bool, device=model.device)
        # Called so, it refers to the model as weakly as `kept_for` does; `model.control()` would not.
        self.no_control = Model.control(model)
        self.no_control.clear()
        body_articulation = np.full(model.body_count, -1, dtype=np.int32)
        body_articulation[model.joint_child.numpy()] = articulation
        self.body_articulation = wp.array(body_articulation, dtype=wp.int32, device=model.device)


_queries: weakref.WeakKeyDictionary[Model, ArticulationQuery] = weakref.WeakKeyDictionary()


def articulation_query(model: Model) -> ArticulationQuery:
    """Return the query of a model, made on the first call."""
    return kept_for(model, _queries, ArticulationQuery)


def eval_query(model: Model, state: State, worlds: wp.array | None) -> tuple[ArticulationQuery, wp.array]:
    """Compute the kinematics of a state in the query's workspace; return the query and the worlds."""
    check_state(model, state, "state")
    selected = check_worlds(model, worlds, what="worlds")
    query = articulation_query(model)
    eval_kinematics(model, selected, state, query.workspace)
    return query, selected


def check_mask(model: Model, mask: wp.array | None, what: str) -> wp.array:
    """Return a mask of articulations; an empty one selects all.

    Raises:
        TypeError: If the mask is not made of truth values.
        ValueError: If it has not one entry per articulation, or is on another device.
    """
    if mask is None:
        return articulation_query(model).every
    if not isinstance(mask, wp.array):
        raise TypeError(f"{what}: mask is a {type(mask).__name__}, but must be a Warp array of truth values.")
    if mask.dtype is not wp.bool:
        raise TypeError(f"{what}: mask is of type {mask.dtype.__name__}, but must be made of truth values.")
    if mask.shape != (model.articulation_count,) or mask.device != model.device:
        raise ValueError(
            f"{what}: mask has shape {mask.shape} on {mask.device}, but the model has "
            f"{model.articulation_count} articulations on {model.device}; pass one entry per articulation."
        )
    return mask


def output_array(
    out: wp.array | None, shape: tuple[int, ...], model: Model, what: str, *, types: tuple[Any, ...]
) -> wp.array:
    """Return the array to write to, a new one of the first of the types if None is given.

    Raises:
        ValueError: If a given array has another shape, type or device.
    """
    if out is None:
        return wp.zeros(shape, dtype=types[0], device=model.device)
    if not isinstance(out, wp.array):
        raise TypeError(f"{what}: a {type(out).__name__} was given, but a Warp array is needed.")
    if tuple(out.shape) != shape or out.dtype not in types or out.device != model.device:
        names = " or ".join(dtype.__name__ for dtype in types)
        raise ValueError(
            f"{what}: the array to write to has shape {tuple(out.shape)} and type {out.dtype.__name__} on "
            f"{out.device}, but must have shape {shape} and type {names} on {model.device}."
        )
    return out


def _rank_in_group(group: np.ndarray) -> np.ndarray:
    """Return how many earlier entries are in the group of each entry."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    first = np.searchsorted(ordered, ordered, side="left")
    ranks = np.empty(len(group), dtype=np.int32)
    ranks[order] = np.arange(len(group)) - first
    return ranks
