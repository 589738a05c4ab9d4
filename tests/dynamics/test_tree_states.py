"""Poses that a step leaves behind are those that the next one begins with, if no user has written since."""

import numpy as np
import pytest
import warp as wp

from pluriverse.dynamics import PositionIntegration, Workspace, eval_free_motion, eval_kinematics, integrate

from .conftest import DT, random_trees, welded_trees
from .trees import build_model, random_joint_state, set_joint_state

# What the stages after kinematics read.
RESULTS = (
    "tree_ref",
    "node_quat",
    "node_rotation",
    "node_offset",
    "node_com",
    "group_com",
    "group_inertia",
    "node_velocity",
    "dof_motion",
    "dof_velocity",
)


@pytest.fixture
def stepped():
    """Return a model of all joint kinds, the state after a step, and the workspace that made it."""
    rng = np.random.default_rng(31)
    trees = [*random_trees()[:6], *welded_trees()[:2]]
    joint_states = [random_joint_state(rng, tree) for tree in trees]
    model = build_model(trees)
    states, control = [model.state(), model.state()], model.control()
    set_joint_state(states[0], trees, *(list(column) for column in zip(*joint_states, strict=True)))
    workspace = Workspace(model, wp.float64)
    mode = PositionIntegration.SEMI_IMPLICIT
    eval_kinematics(model, model.worlds, states[0], workspace)
    eval_free_motion(model, model.worlds, states[0], control, workspace, DT, mode=mode)
    wp.copy(workspace.dof_velocity_next, workspace.dof_velocity_free)
    integrate(model, model.worlds, states[0], states[1], workspace, DT, mode=mode)
    return model, states[1], workspace


def kinematics(model, state, workspace):
    """Return what the kinematics stage computes."""
    eval_kinematics(model, model.worlds, state, workspace)
    return {name: getattr(workspace, name).numpy().copy() for name in RESULTS}


def nothing(model, state):
    """Leave all as it is."""


def one_coordinate(model, state):
    """Move a single coordinate of the last world."""
    joint_q = state.joint_q.numpy()
    joint_q[-1] += 0.25
    state.joint_q.assign(joint_q)


def one_velocity(model, state):
    """Change a single velocity of the first world."""
    joint_qd = state.joint_qd.numpy()
    joint_qd[0] -= 0.5
    state.joint_qd.assign(joint_qd)


def axes(model, state):
    """Reverse the axes of all joints."""
    model.joint_axis.assign(-model.joint_axis.numpy())


def frames(model, state):
    """Move all joints on their parents."""
    frames = model.joint_X_p.numpy()
    frames[:, 1] += 0.1
    model.joint_X_p.assign(frames)


def centres(model, state):
    """Move the centres of mass, which public velocities of free bodies belong to."""
    model.body_com.assign(model.body_com.numpy() + np.array([0.01, 0.0, 0.02], dtype=np.float32))


@pytest.mark.parametrize("change", [nothing, one_coordinate, one_velocity, axes, frames, centres])
def test_the_next_step_begins_with_the_bits_of_a_new_solver(stepped, change):
    model, state, workspace = stepped
    before = kinematics(model, state, workspace)
    change(model, state)
    found = kinematics(model, state, workspace)
    expected = kinematics(model, state, Workspace(model, wp.float64))
    for name in RESULTS:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    if change is not nothing:
        assert any((found[name] != before[name]).any() for name in RESULTS)


def test_another_state_in_between_leaves_nothing_behind(stepped):
    """A solver may step two states in turn, as planners do."""
    model, state, workspace = stepped
    expected = kinematics(model, state, workspace)
    kinematics(model, model.state(), workspace)
    found = kinematics(model, state, workspace)
    for name in RESULTS:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def test_a_state_that_no_one_wrote_to_is_not_computed_again(stepped):
    """Otherwise all above would hold with nothing kept: marks in what is kept stay."""
    model, state, workspace = stepped
    eval_kinematics(model, model.worlds, state, workspace)
    workspace.node_quat.fill_(float("nan"))
    eval_kinematics(model, model.worlds, state, workspace)
    moving = [
        first + node
        for world, first in enumerate(model.joint_world_start.numpy()[: model.world_count])
        for node in np.flatnonzero(model.templates[model.world_template[world]].node_dof_count > 0)
    ]
    assert np.isnan(workspace.node_rotation.numpy()[moving]).all()
