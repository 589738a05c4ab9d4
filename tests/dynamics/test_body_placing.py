"""Placing bodies: eight worlds in lanes get the bits that each gets by itself."""

import copy

import numpy as np
import pytest
import warp as wp

from pluriverse import JointType
from pluriverse.dynamics import Workspace, body_placing
from pluriverse.dynamics.forward_kinematics import eval_body_state, eval_tree_states
from pluriverse.dynamics.tree_states import is_plain

from .trees import build_model, random_frame, random_inertia, random_joint_state, random_tree, set_joint_state

PLAIN = [
    JointType.REVOLUTE,
    JointType.REVOLUTE,
    JointType.PRISMATIC,
    JointType.FIXED,
    JointType.FIXED,
    JointType.D6,
]
ROOTS = [
    JointType.FREE,
    JointType.FIXED,
    JointType.REVOLUTE,
    JointType.PRISMATIC,
    JointType.D6,
]
UNTURNED = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
STATES = ("tree_ref", "node_quat", "node_offset", "node_velocity", "node_turn", "joint_q", "joint_qd")


def plain_tree(rng, root, *, count=9, kinds=PLAIN):
    """Return a tree of joints that lanes can place; some have frames that are not turned or moved."""
    tree = random_tree(rng, count, root=root, kinds=kinds)
    for joint in tree.joints[::2]:
        joint.parent_frame = np.concatenate([joint.parent_frame[:3], UNTURNED[3:]])
        joint.child_frame = UNTURNED
    return tree


def varied(rng, tree):
    """Return a tree of the same structure with other numbers."""
    tree = copy.deepcopy(tree)
    for joint in tree.joints:
        joint.com = rng.uniform(-0.2, 0.2, 3)
        joint.inertia = random_inertia(rng, joint.mass)
        if rng.random() < 0.5:
            joint.parent_frame, joint.child_frame = random_frame(rng), random_frame(rng)
        else:
            joint.child_frame = UNTURNED
    return tree


class Placed:
    """Worlds of some trees at random states, with everything that placing writes set to NaN."""

    def __init__(self, trees, real, seed=3):
        rng = np.random.default_rng(seed)
        states = [random_joint_state(rng, tree) for tree in trees]
        self.model = build_model(trees)
        self.state = self.model.state()
        set_joint_state(self.state, trees, [state[0] for state in states], [state[1] for state in states])
        self.workspace = Workspace(self.model, real)
        self.workspace.groups.update(self.model.worlds)
        self.spoil()

    def spoil(self):
        """Set what placing writes to NaN, and let it forget which joint state that was of."""
        data = self.workspace.tree_states
        for array in (self.state.body_q, self.state.body_qd, *(getattr(data, name) for name in STATES)):
            array.fill_(float("nan"))
        data.world_groups.zero_()

    def results(self):
        arrays = [self.state.body_q, self.state.body_qd]
        arrays += [getattr(self.workspace.tree_states, name) for name in (*STATES, "world_groups")]
        return [array.numpy().copy() for array in arrays]

    def flags(self, values):
        return wp.array(np.asarray(values, dtype=np.int32), device="cpu")


def listed(worlds):
    return wp.array(np.asarray(worlds, dtype=np.int32), device="cpu")


def assert_as_one_by_one(monkeypatch, placed, act):
    """Check that what `act` launches has the same results in lanes as with one world a thread."""
    results = []
    for lanes in (8, 1):
        with monkeypatch.context() as patch:
            patch.setattr(body_placing, "lane_count", lambda device, lanes=lanes: lanes)
            placed.spoil()
            act()
        results.append(placed.results())
    for in_lanes, one_by_one in zip(*results, strict=True):
        np.testing.assert_array_equal(in_lanes, one_by_one)
    return results[0]


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("real", [wp.float32, wp.float64])
def test_worlds_in_lanes_have_the_bits_of_worlds_alone(monkeypatch, real, root, alike):
    """Whether they have the same frames and centres of mass or others, with all kinds of plain roots."""
    rng = np.random.default_rng(int(root))
    tree = plain_tree(rng, root, count=14)
    placed = Placed([tree if alike else varied(rng, tree) for _ in range(11)], real)
    model, workspace = placed.model, placed.workspace
    assert is_plain(model.templates[0])
    assert len(model.templates) == 1
    bodies = assert_as_one_by_one(
        monkeypatch, placed, lambda: eval_body_state(model, model.worlds, placed.state, workspace)
    )[0]
    assert np.isfinite(bodies).all()


@pytest.mark.parametrize("kind", [JointType.REVOLUTE, JointType.D6])
def test_worlds_that_differ_in_axes_only_are_not_taken_for_alike(monkeypatch, kind):
    """One world of a tile has joint axes of its own; those of a D6 joint are part of no frame."""
    tree = plain_tree(np.random.default_rng(9), kind, kinds=[kind])
    other = copy.deepcopy(tree)
    for joint in other.joints:
        joint.axis, joint.axes = -joint.axis, -joint.axes
    placed = Placed([tree] * 5 + [other] + [tree] * 2, wp.float64)
    model, workspace = placed.model, placed.workspace
    assert_as_one_by_one(
        monkeypatch, placed, lambda: eval_body_state(model, model.worlds, placed.state, workspace)
    )


def test_lists_may_mix_templates_and_have_gaps(monkeypatch):
    """A tile may hold entries without a world, other templates, and worlds that lanes cannot place."""
    rng = np.random.default_rng(8)
    first, second = plain_tree(rng, JointType.FREE), plain_tree(rng, JointType.FIXED, count=5)
    ball = plain_tree(rng, JointType.FREE, kinds=[JointType.BALL])
    assert not is_plain(build_model([ball]).templates[0])
    trees = [first] * 9 + [second] * 7 + [ball] * 3 + [varied(rng, first) for _ in range(9)]
    placed = Placed(trees, wp.float64)
    model, workspace = placed.model, placed.workspace
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(model.world_count)
        order[:: seed + 4] = -1
        if seed == 5:
            order = order[:5]
        assert_as_one_by_one(
            monkeypatch,
            placed,
            lambda order=order: eval_body_state(model, listed(order), placed.state, workspace),
        )


def test_only_worlds_that_are_due_are_placed_again(monkeypatch):
    """After their roots have moved; the others keep all bits, whatever their number among eight is."""
    rng = np.random.default_rng(5)
    tree = plain_tree(rng, JointType.FREE)
    placed = Placed([tree] * 8 + [varied(rng, tree) for _ in range(8)], wp.float64)
    model, workspace, state = placed.model, placed.workspace, placed.state
    before = state.joint_q.numpy().copy()
    after = before.copy()
    starts = model.joint_q_start.numpy()[:-1][model.joint_type.numpy() == JointType.FREE]
    after[starts[:, None] + np.arange(7)] += 0.1

    for chance in (0.1, 0.5, 0.9, 1.0):
        due = placed.flags(rng.random(model.world_count) < chance)

        def act(due=due):
            state.joint_q.assign(before)
            eval_body_state(model, model.worlds, state, workspace, unsettled=due)
            state.joint_q.assign(after)
            eval_body_state(model, model.worlds, state, workspace, due=due)

        assert np.isfinite(assert_as_one_by_one(monkeypatch, placed, act)[0]).all()


def test_no_bodies_are_written_where_all_worlds_are_unsettled(monkeypatch):
    rng = np.random.default_rng(6)
    placed = Placed([plain_tree(rng, JointType.FREE)] * 8, wp.float64)
    model, workspace = placed.model, placed.workspace
    every = placed.flags([1] * 8)
    results = assert_as_one_by_one(
        monkeypatch,
        placed,
        lambda: eval_body_state(model, model.worlds, placed.state, workspace, unsettled=every),
    )
    assert np.isnan(results[0]).all()
    assert np.isfinite(results[2]).all()


@pytest.mark.parametrize("changed_count", [0, 1, 2, 5, 8])
def test_worlds_with_tree_states_of_their_joint_state_are_skipped(monkeypatch, changed_count):
    """What was in their place stays there, whatever the number of others among eight is."""
    rng = np.random.default_rng(7)
    tree = plain_tree(rng, JointType.FREE)
    placed = Placed([tree] * 8, wp.float64)
    model, workspace, state = placed.model, placed.workspace, placed.state
    before = state.joint_qd.numpy().copy()
    after = before.reshape(8, -1).copy()
    after[rng.permutation(8)[:changed_count], -1] += 1.0

    def act():
        state.joint_qd.assign(before)
        eval_tree_states(model, model.worlds, state, workspace)
        workspace.tree_states.node_offset.fill_(7.0)
        state.joint_qd.assign(after.ravel())
        eval_tree_states(model, model.worlds, state, workspace)

    offsets = assert_as_one_by_one(monkeypatch, placed, act)[4].reshape(8, -1)
    assert (offsets == 7.0).all(axis=1).sum() == 8 - changed_count


def test_a_failed_world_does_not_spread_in_lanes(monkeypatch):
    """NaN in the joint state of one world of eight stays there."""
    rng = np.random.default_rng(9)
    placed = Placed([plain_tree(rng, JointType.FREE)] * 8, wp.float64)
    model, state = placed.model, placed.state
    values = state.joint_q.numpy().reshape(8, -1).copy()
    values[3] = np.nan
    state.joint_q.assign(values.ravel())
    bodies = assert_as_one_by_one(
        monkeypatch, placed, lambda: eval_body_state(model, model.worlds, state, placed.workspace)
    )[0].reshape(8, -1)
    assert np.isnan(bodies[3]).any()
    assert np.isfinite(bodies[np.arange(8) != 3]).all()


def test_worlds_that_cease_to_be_alike_are_read_one_by_one(monkeypatch):
    """A write to the model of one world acts there and in no other."""
    rng = np.random.default_rng(10)
    placed = Placed([plain_tree(rng, JointType.FREE)] * 8, wp.float64)
    model, state, workspace = placed.model, placed.state, placed.workspace
    eval_body_state(model, model.worlds, state, workspace)
    before = state.body_q.numpy().reshape(8, -1).copy()
    for name in ("joint_X_p", "body_com"):
        values = getattr(model, name).numpy().reshape(8, -1, getattr(model, name).numpy().shape[-1]).copy()
        values[2, :, 0] += 0.25
        getattr(model, name).assign(values.reshape(getattr(model, name).numpy().shape))
        workspace.groups.update(model.worlds)
        after = assert_as_one_by_one(
            monkeypatch, placed, lambda: eval_body_state(model, model.worlds, state, workspace)
        )[0].reshape(8, -1)
        others = np.arange(8) != 2
        np.testing.assert_array_equal(after[others], before[others])
    assert (after[2] != before[2]).any()
