"""Bodies fixed to others: what is written to the model counts at once, and a selection may part a group."""

import numpy as np
import pytest
import warp as wp

from pluriverse import JointType, ModelBuilder, eval_fk
from pluriverse.dynamics import PositionIntegration, Workspace, eval_free_motion, eval_kinematics, integrate

from .conftest import DT
from .trees import build_model, random_joint_state, random_tree, set_joint_state

MODE = PositionIntegration.SEMI_IMPLICIT


@pytest.fixture(scope="module")
def case():
    """Return a model of two equal worlds with welded bodies, and its joint state."""
    rng = np.random.default_rng(8)
    tree = random_tree(
        rng, 14, root=JointType.FREE, kinds=[JointType.FIXED] * 3 + [JointType.REVOLUTE], single=True
    )
    q, qd = random_joint_state(rng, tree)
    model = build_model([tree, tree])
    state = model.state()
    set_joint_state(state, [tree, tree], [q, q], [qd, qd])
    return model, state


def advance(model, state, workspace):
    """Return joint and body state after a step of free motion."""
    after = model.state()
    eval_kinematics(model, model.worlds, state, workspace)
    eval_free_motion(model, model.worlds, state, model.control(), workspace, DT, mode=MODE)
    wp.copy(workspace.dof_velocity_next, workspace.dof_velocity_free)
    integrate(model, model.worlds, state, after, workspace, DT, mode=MODE)
    return [getattr(after, name).numpy() for name in ("joint_q", "joint_qd", "body_q", "body_qd")]


@pytest.mark.parametrize("name", ["joint_X_p", "joint_X_c", "body_mass", "body_com", "body_inertia"])
def test_what_is_written_to_a_welded_body_counts_in_the_next_step(case, name):
    """A workspace that has seen other values gives the bits of a new one; the other world keeps its own."""
    model, state = case
    workspace = Workspace(model, wp.float64)
    before = advance(model, state, workspace)
    template = model.templates[0]
    welded = [n for n in range(template.node_count) if template.node_dof_count[n] == 0]
    node = welded[len(welded) // 2]
    entry = template.node_joint[node] if name.startswith("joint") else template.node_body[node]
    array = getattr(model, name)
    given = array.numpy().copy()
    changed = given.copy()
    changed[entry] = 1.5 * changed[entry]
    if name.startswith("joint"):
        changed[entry, 3:] = given[entry, [4, 5, 6, 3]]
    array.assign(changed)
    try:
        after = advance(model, state, workspace)
        expected = advance(model, state, Workspace(model, wp.float64))
    finally:
        array.assign(given)
    for old, new, fresh in zip(before, after, expected, strict=True):
        np.testing.assert_array_equal(new, fresh)
        half = len(new) // 2
        np.testing.assert_array_equal(new[half:], old[half:])
    assert not np.array_equal(before[1], after[1]) or not np.array_equal(before[2], after[2])
    for old, new in zip(before, advance(model, state, workspace), strict=True):
        np.testing.assert_array_equal(old, new)  # and back again


def test_a_selected_body_follows_a_welded_one_that_was_left_where_it_is():
    """Base, plate and bracket are fixed in a row, a wheel turns on the bracket; the plate has been moved."""
    builder = ModelBuilder()
    base, plate, bracket, wheel = (builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(4))
    joints = [
        builder.add_joint_free(base),
        builder.add_joint_fixed(base, plate, parent_xform=((1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))),
        builder.add_joint_fixed(plate, bracket, parent_xform=((0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))),
        builder.add_joint_revolute(
            bracket, wheel, axis=(0.0, 0.0, 1.0), parent_xform=((0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0))
        ),
    ]
    builder.add_articulation(joints)
    model = builder.finalize(device="cpu")
    state = model.state()
    eval_fk(model, model.joint_q, model.joint_qd, state)
    np.testing.assert_allclose(state.body_q.numpy()[wheel, :3], [1.0, 1.0, 1.0], rtol=0.0, atol=1e-6)
    places = state.body_q.numpy()
    half = np.sqrt(0.5)
    places[plate] = [0.0, 0.0, 5.0, 0.0, 0.0, half, half]  # turned by 90 degrees about z
    state.body_q.assign(places)
    mask = np.isin(model.joint_child.numpy(), [bracket, wheel])
    eval_fk(
        model, model.joint_q, model.joint_qd, state, joint_mask=wp.array(mask, dtype=wp.bool, device="cpu")
    )
    moved = state.body_q.numpy()
    np.testing.assert_array_equal(moved[[base, plate]], places[[base, plate]])
    np.testing.assert_allclose(moved[bracket, :3], [-1.0, 0.0, 5.0], rtol=0.0, atol=2e-6)
    np.testing.assert_allclose(moved[wheel, :3], [-1.0, 0.0, 6.0], rtol=0.0, atol=2e-6)
    np.testing.assert_allclose(np.abs(moved[wheel, 3:] @ places[plate, 3:]), 1.0, rtol=0.0, atol=1e-6)
