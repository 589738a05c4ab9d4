"""Tree motion: eight worlds in lanes have the bits of the stages one by one, whatever stands beside them."""

import copy

import numpy as np
import pytest
import warp as wp

from pluriverse import JointType
from pluriverse.dynamics import PositionIntegration, Workspace, eval_free_motion, eval_kinematics
from pluriverse.dynamics.balance import CALM, DRIFTING, SWINGING
from pluriverse.dynamics.spin import TURN_MAX
from pluriverse.dynamics.tree_motion import eval_tree_motion

from .trees import build_model, random_joint_state, random_tree, set_joint_state, world_range

DT = 0.004
MODE = PositionIntegration.SEMI_IMPLICIT
PLAIN = [
    JointType.PRISMATIC,
    JointType.REVOLUTE,
    JointType.REVOLUTE,
    JointType.FIXED,
    JointType.D6,
    JointType.BALL,
]
# What later stages of a step read, by what it is an array of.
WRITTEN = {
    "tree": ["tree_ref", "tree_energy", "tree_regime", "tree_spin"],
    "joint": ["node_rotation", "node_offset", "node_com"],
    "dof": ["dof_motion", "dof_velocity", "dof_force", "dof_product", "dof_velocity_free", "dof_kick"],
    "row": ["mass_row", "factor_row"],
}


def make_kind(seed, root, kinds=None, count=12):
    """Return a tree or several; those of a seed have the same structure, frames and masses."""
    tree = random_tree(np.random.default_rng(seed), count, root=root, kinds=kinds or PLAIN)
    for joint in tree.joints[1:]:
        if joint.parent < 0 and joint.kind == JointType.BALL:
            joint.kind = JointType.REVOLUTE  # a body that spins about a ball joint does not go in lanes
    return tree


def make_copies(tree, count, rng, *, alike=0):
    """Return worlds of one structure, each with numbers of its own, and a state of each.

    The first `alike` have the same masses and frames. Some rest, some are too fast for the step.
    """
    copies = []
    for entry in range(count):
        one = copy.deepcopy(tree)
        for joint in one.joints if entry >= alike else ():
            joint.mass = float(np.float32(joint.mass * rng.uniform(0.5, 2.0)))
            joint.com = (joint.com + rng.uniform(-0.1, 0.1, 3)).astype(np.float32).astype(float)
            joint.parent_frame[:3] += np.float32(rng.uniform(-0.1, 0.1))
            if joint.kind == JointType.FREE and entry % 2 == 1:
                joint.armature, joint.damping = 0.25, 0.5
        one.gravity = rng.uniform(-9.0, 9.0, 3).astype(np.float32).astype(float)
        q, qd = random_joint_state(rng, one)
        copies.append((one, q, [(1.0, 30.0, 1.0, 0.0, 1.0)[entry % 5] * values for values in qd]))
    return copies


def run(cases, real, *, together, listed=None, spoil=None, push=None, read=None):
    """Return the workspace and the model after the stages of all cases, all worlds of one model.

    Later stages read the bodies `read`, all if None.
    """
    trees, q, qd = [list(column) for column in zip(*cases, strict=True)]
    model = build_model(trees)
    state, control = model.state(), model.control()
    set_joint_state(state, trees, q, qd)
    rng = np.random.default_rng(7)
    control.joint_f.assign(rng.normal(size=control.joint_f.shape).astype(np.float32))
    armature, damping = model.joint_armature.numpy(), model.joint_damping.numpy()
    starts = model.joint_dof_world_start.numpy()
    for world, tree in enumerate(trees):
        for joint, start in zip(tree.joint_order, model_dof_starts(model, world), strict=True):
            if tree.joints[joint].kind == JointType.FREE:  # the builder takes none of free joints
                armature[start : start + 6] = tree.joints[joint].armature
                damping[start : start + 6] = tree.joints[joint].damping
    model.joint_armature.assign(armature)
    model.joint_damping.assign(damping)
    for world in spoil or ():
        values = state.joint_qd.numpy()
        values[starts[world] : starts[world + 1]] = np.nan
        state.joint_qd.assign(values)
    for world in push or ():
        values = state.body_f.numpy()
        values[model.body_world_start.numpy()[world]] = 3.0
        state.body_f.assign(values)
    worlds = model.worlds if listed is None else wp.array(listed, dtype=int, device="cpu")
    workspace = Workspace(model, real)
    workspace.groups.read_bodies(np.arange(model.body_count) if read is None else read)
    if together:
        eval_tree_motion(model, worlds, state, control, workspace, DT, mode=MODE)
    else:
        eval_kinematics(model, worlds, state, workspace)
        eval_free_motion(model, worlds, state, control, workspace, DT, mode=MODE)
    return model, workspace


def model_dof_starts(model, world):
    """Return the first dof of each joint of a world."""
    template = model.templates[model.world_template[world]]
    starts = np.zeros(template.node_count, dtype=int)
    starts[template.node_joint] = template.node_qd
    return model.joint_dof_world_start.numpy()[world] + starts


def assert_world_agrees(model, workspace, world, expected_model, expected_workspace, expected_world):
    for kind, names in WRITTEN.items():
        for name in names:
            np.testing.assert_array_equal(
                world_range(model, world, getattr(workspace, name), kind),
                world_range(expected_model, expected_world, getattr(expected_workspace, name), kind),
                err_msg=name,
            )
    roots = model.templates[model.world_template[world]].tree_node
    np.testing.assert_array_equal(
        world_range(model, world, workspace.node_composite, "joint")[roots],
        world_range(expected_model, expected_world, expected_workspace.node_composite, "joint")[roots],
    )


def ran_in_lanes(model, workspace, world):
    """Return whether a world was in a tile: the inertias of groups stay in the lanes."""
    return not world_range(model, world, workspace.group_inertia, "joint").any()


ROOTS = [JointType.FREE, JointType.FIXED, JointType.REVOLUTE, JointType.D6]


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.name)
@pytest.mark.parametrize("real", [wp.float32, wp.float64])
def test_lanes_have_the_bits_of_the_stages(real, root):
    """Worlds of one structure with numbers of their own: welded bodies, several trees, fixed bases."""
    rng = np.random.default_rng(3)
    for seed in range(4):
        cases = make_copies(make_kind(seed, root), 19, rng, alike=10)
        model, lanes = run(cases, real, together=True)
        stages = run(cases, real, together=False)[1]
        # Products count in some worlds, not in others.
        moves = {int(DRIFTING)} if root is JointType.FREE else {int(DRIFTING), int(SWINGING)}
        regimes = set(stages.tree_regime.numpy().tolist())
        assert int(CALM) in regimes
        assert regimes & moves
        assert regimes <= moves | {int(CALM)}
        in_lanes = [ran_in_lanes(model, lanes, world) for world in range(19)]
        assert in_lanes == [True] * 16 + [False] * 3
        for world in range(19):
            assert_world_agrees(model, lanes, world, model, stages, world)


@pytest.mark.parametrize("real", [wp.float32, wp.float64])
def test_bodies_that_spin_have_the_bits_of_the_stages(real):
    """Free bodies alone, slow in the first tile; in the second, one of them turns too far for lanes."""
    rng = np.random.default_rng(4)
    tree = make_kind(1, JointType.FREE, count=5)
    tree.joints += [copy.deepcopy(tree.joints[0]) for _ in range(3)]
    tree.body_order, tree.joint_order = list(range(8)), list(range(8))

    def largest_turn(case):
        return DT * max(np.linalg.norm(velocity[3:]) for velocity in case[2][-3:])

    slow = [case for case in make_copies(tree, 20, rng) if largest_turn(case) < 0.5 * TURN_MAX][:8]
    fast = make_copies(tree, 8, rng)
    assert max(map(largest_turn, fast)) > TURN_MAX
    cases = slow + fast
    model, lanes = run(cases, real, together=True)
    stages = run(cases, real, together=False)[1]
    assert np.abs(stages.tree_spin.numpy()).max() > 0.0
    for world in range(16):
        assert ran_in_lanes(model, lanes, world)
        assert_world_agrees(model, lanes, world, model, stages, world)


def test_welded_bodies_that_nobody_reads_are_left_out():
    """Of bodies fixed to others only those that a later stage reads are written, with the same bits."""
    rng = np.random.default_rng(9)
    cases = make_copies(make_kind(0, JointType.FREE, kinds=[JointType.REVOLUTE, JointType.FIXED]), 8, rng)
    welded = [joint for joint in range(1, 12) if cases[0][0].joints[joint].kind == JointType.FIXED]
    assert len(welded) >= 3
    expected = run(cases, wp.float64, together=True)[1]
    model, lanes = run(cases, wp.float64, together=True, read=np.zeros(0, dtype=int))
    template = model.templates[0]
    left_out = (template.node_carrier >= 0) & (template.node_dof_count == 0)
    read = template.node_body[left_out][1]  # of the first world: what holds of one holds of all like it
    some = run(cases, wp.float64, together=True, read=np.array([read]))[1]
    for world in range(8):
        for name in WRITTEN["joint"]:
            whole, none, one = (
                world_range(model, world, getattr(workspace, name), "joint").copy()
                for workspace in (expected, lanes, some)
            )
            assert np.abs(whole[left_out]).max() > 0.0
            assert not none[left_out].any()
            whole[left_out & (template.node_body != read)] = 0.0
            np.testing.assert_array_equal(one, whole)
            whole[left_out] = 0.0
            np.testing.assert_array_equal(none, whole)
        for kind in ("tree", "dof", "row"):
            for name in WRITTEN[kind]:
                np.testing.assert_array_equal(
                    world_range(model, world, getattr(lanes, name), kind),
                    world_range(model, world, getattr(expected, name), kind),
                )


def test_a_lane_does_not_notice_the_others():
    """Worlds in any order, in part of a list, among other kinds and entries without a world, and alone."""
    rng = np.random.default_rng(5)
    first, second = make_kind(2, JointType.FREE), make_kind(3, JointType.FIXED)
    cases = make_copies(first, 12, rng) + make_copies(second, 12, rng)
    model, expected = run(cases, wp.float64, together=False)
    for listed in (
        rng.permutation(12),  # one tile and four left over
        rng.permutation(24),
        [0, 1, 2, 3, -1, 4, 5, 6, 7, 8, 9, 10, -1, -1, -1, -1, *range(12, 20)],
        [*range(16, 24), 3],
    ):
        lanes = run(cases, wp.float64, together=True, listed=listed)[1]
        for world in listed:
            if world >= 0:
                assert_world_agrees(model, lanes, world, model, expected, world)
        for world in set(range(24)) - set(listed):
            assert not world_range(model, world, lanes.mass_row, "row").any()
    for world in (3, 20):
        model_alone, alone = run(cases[world : world + 1], wp.float64, together=True)
        # `joint_f` is drawn for all worlds, so that a world alone has that of the first.
        expected_alone = run(cases[world : world + 1], wp.float64, together=False)[1]
        assert_world_agrees(model_alone, alone, 0, model_alone, expected_alone, 0)


def test_a_diverged_world_leaves_the_lanes_beside_it_alone():
    """NaN in the velocity of one lane; a force on a body of another takes the tile out of the lanes."""
    rng = np.random.default_rng(6)
    cases = make_copies(make_kind(5, JointType.FREE), 16, rng)
    model, expected = run(cases, wp.float64, together=False, push=[9])
    spoiled = run(cases, wp.float64, together=True, spoil=[2], push=[9])[1]
    for world in range(16):
        assert ran_in_lanes(model, spoiled, world) == (world < 8)
        if world != 2:
            assert_world_agrees(model, spoiled, world, model, expected, world)
    assert np.isnan(world_range(model, 2, spoiled.dof_velocity_free, "dof")).any()


def test_joints_without_formulas_in_lanes_take_the_stages():
    """Free joints below bodies, at any place in a tree, and single bodies that spin about a ball joint."""
    rng = np.random.default_rng(8)
    for tree in (
        make_kind(6, JointType.FREE, kinds=[JointType.FREE]),
        make_kind(6, JointType.BALL, count=1),
    ):
        cases = make_copies(tree, 8, rng)
        model, lanes = run(cases, wp.float64, together=True)
        stages = run(cases, wp.float64, together=False)[1]
        for world in range(8):
            assert not ran_in_lanes(model, lanes, world)
            assert_world_agrees(model, lanes, world, model, stages, world)
