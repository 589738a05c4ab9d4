"""Integration: scalar joints that advance in lanes get the bits of those that advance one by one."""

import numpy as np
import pytest
import warp as wp

from pluriverse import JointType
from pluriverse.dynamics import PositionIntegration, Workspace, eval_free_motion, eval_kinematics, integration
from pluriverse.dynamics.balance import CALM, CONSTRAINED, DRIFTING, JOINTS_CONSTRAINED

from .trees import build_model, random_joint_state, random_tree, set_joint_state

DT = 0.01
HINGES = [JointType.REVOLUTE, JointType.PRISMATIC]
REGIMES = [int(regime) for regime in (CALM, DRIFTING, CONSTRAINED, JOINTS_CONSTRAINED)]


def chain(rng, count, root):
    """Return a chain, in which all numberings of scalar joints follow each other."""
    tree = random_tree(rng, count, kinds=HINGES, root=root, shuffled=False, single=True)
    for entry, joint in enumerate(tree.joints):
        joint.parent = entry - 1
    return tree


def mixed_trees(rng):
    """Return trees with rows of more and fewer than eight scalar joints, and with all other joints."""
    trees = [chain(rng, count, JointType.REVOLUTE) for count in (1, 8, 9, 20, 33)]
    trees += [chain(rng, count, JointType.FREE) for count in (1, 17)]
    trees += [random_tree(rng, count, kinds=HINGES) for count in (5, 25)]
    return trees + [random_tree(rng, count) for count in (3, 9, 16)]


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("mode", PositionIntegration)
@pytest.mark.parametrize("real", [wp.float32, wp.float64])
def test_joints_in_lanes_have_the_bits_of_joints_one_by_one(monkeypatch, real, mode, in_place):
    """In trees of all regimes, among joints of all kinds, also where the new state is the old one."""
    rng = np.random.default_rng(12)
    trees = mixed_trees(rng)
    joint_states = [random_joint_state(rng, tree) for tree in trees]
    model = build_model(trees)
    assert (np.diff(model.templates[4].dof_coord) == 1).all()
    state, workspace = model.state(), Workspace(model, real)
    # These come between the joints and the bodies; they would add their own.
    monkeypatch.setattr(integration, "classify_tree_motions", lambda *_: None)
    monkeypatch.setattr(integration, "conserve_momenta", lambda *_: None)
    draws = {name: rng.normal(size=model.joint_dof_count) for name in ("dof_velocity_next", "dof_kick")}
    regimes = rng.choice(REGIMES, model.tree_count).astype(np.int32)

    results = []
    for lanes in (8, 1):
        monkeypatch.setattr(integration, "lane_count", lambda device, lanes=lanes: lanes)
        set_joint_state(state, trees, [one[0] for one in joint_states], [one[1] for one in joint_states])
        eval_kinematics(model, model.worlds, state, workspace)
        eval_free_motion(model, model.worlds, state, model.control(), workspace, DT, mode=mode)
        for name, values in draws.items():
            getattr(workspace, name).assign(values)
        workspace.tree_regime.assign(regimes)
        new = state if in_place else model.state()
        if not in_place:
            new.joint_q.fill_(float("nan"))
            new.joint_qd.fill_(float("nan"))
        integration.integrate(model, model.worlds, state, new, workspace, DT, mode=mode)
        results.append((new.joint_q.numpy().copy(), new.joint_qd.numpy().copy()))
    for in_lanes, one_by_one in zip(*results, strict=True):
        assert np.isfinite(in_lanes).all()
        np.testing.assert_array_equal(in_lanes, one_by_one)
