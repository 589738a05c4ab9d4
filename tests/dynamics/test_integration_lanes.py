"""Integration: scalar joints that advance in lanes get the bits of those that advance one by one."""

import copy

import numpy as np
import pytest
import warp as wp

from pluriverse import JointType
from pluriverse.dynamics import PositionIntegration, Workspace, eval_free_motion, eval_kinematics, integration
from pluriverse.dynamics.balance import CALM, CONSTRAINED, DRIFTING, JOINTS_CONSTRAINED
from pluriverse.dynamics.free_body_lanes import free_body_lanes
from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import launch_kernel
from pluriverse.model import Topology

from .trees import build_model, random_joint_state, random_tree, set_joint_state

DT = 0.01
advance_free_bodies = free_body_lanes(wp.float64).advance_free_bodies
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


@wp.kernel(enable_backward=False)
def advance_lone_bodies(
    worlds: wp.array[int],
    topology: Topology,
    joint_X_p: wp.array[wp.transform],
    joint_X_c: wp.array[wp.transform],
    body_com: wp.array[wp.vec3],
    joint_q: wp.array[float],
    data: workspace_struct(wp.float64),
    dt: wp.float64,
    joint_q_out: wp.array[float],
    joint_qd_out: wp.array[float],
    done: wp.array[int],
):
    thread, _ = wp.tid()
    done[thread] = advance_free_bodies(
        worlds,
        8 * thread,
        topology,
        joint_X_p,
        joint_X_c,
        body_com,
        joint_q,
        data,
        dt,
        joint_q_out,
        joint_qd_out,
    )


def robots_with_objects(rng, count):
    """Return worlds of one structure, of a robot that floats and three bodies, with numbers of their own."""
    robot = random_tree(rng, 4, kinds=HINGES, root=JointType.FREE, shuffled=False, single=True)
    trees = []
    for _ in range(count):
        tree = copy.deepcopy(robot)
        for place in range(3):
            body = random_tree(rng, 1, root=JointType.FREE).joints[0]
            if place == 0:  # no arm, and frames that are not turned
                body.parent_frame = body.child_frame = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
            tree.joints.append(body)
        tree.body_order = tree.joint_order = list(range(len(tree.joints)))
        trees.append(tree)
    return trees


@pytest.mark.parametrize("case", ["slow", "fast", "prescribed"])
@pytest.mark.parametrize("in_place", [False, True])
def test_free_bodies_in_lanes_have_the_bits_of_those_one_by_one(monkeypatch, in_place, case):
    """In all worlds of a batch; a tile goes one by one where a body turns too far or its motion is given."""
    rng = np.random.default_rng(3)
    trees = robots_with_objects(rng, 18)
    joint_states = [random_joint_state(rng, tree) for tree in trees]
    model = build_model(trees)
    assert len(model.templates) == 1
    state, workspace = model.state(), Workspace(model, wp.float64)
    monkeypatch.setattr(integration, "classify_tree_motions", lambda *_: None)
    monkeypatch.setattr(integration, "conserve_momenta", lambda *_: None)
    next_velocity = rng.normal(size=model.joint_dof_count)
    if case == "fast":
        next_velocity[model.joint_dof_world_start.numpy()[11] - 6 :][:3] *= 200.0
    mode = PositionIntegration.SEMI_IMPLICIT
    arrays = (model.joint_X_p, model.joint_X_c, model.body_com, state.joint_q)

    results = []
    for lanes in (8, 1):
        monkeypatch.setattr(integration, "lane_count", lambda device, lanes=lanes: lanes)
        set_joint_state(state, trees, [one[0] for one in joint_states], [one[1] for one in joint_states])
        eval_kinematics(model, model.worlds, state, workspace)
        eval_free_motion(model, model.worlds, state, model.control(), workspace, DT, mode=mode)
        workspace.dof_velocity_next.assign(next_velocity)
        if case == "prescribed":
            workspace.tree_prescribed.numpy()[model.topology.world_tree.numpy()[9] + 2] = 1
        if lanes == 8:
            new = model.state()
            done = wp.full(2, -1, dtype=int, device="cpu")
            for array in (new.joint_q, new.joint_qd):
                array.fill_(float("nan"))
            launch_kernel(
                advance_lone_bodies,
                dim=2,
                inputs=[model.worlds, model.topology, *arrays, workspace.data, wp.float64(DT)],
                outputs=[new.joint_q, new.joint_qd, done],
                device="cpu",
            )
            assert done.numpy().tolist() == [1, int(case == "slow")]
            written = np.isfinite(new.joint_q.numpy()).reshape(18, -1)
            assert (written.sum(axis=1) == [21] * 8 + [21 * int(case == "slow")] * 8 + [0] * 2).all()
        new = state if in_place else model.state()
        integration.integrate(model, model.worlds, state, new, workspace, DT, mode=mode)
        results.append((new.joint_q.numpy().copy(), new.joint_qd.numpy().copy()))
    for in_lanes, one_by_one in zip(*results, strict=True):
        assert np.isfinite(in_lanes).all()
        np.testing.assert_array_equal(in_lanes, one_by_one)
