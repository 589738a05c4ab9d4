"""What is computed from a model on request agrees with the arrays it comes from."""

import numpy as np
import pytest

import pluriverse as pv
from tests.builder.robots import make_arm, make_pile


@pytest.fixture(scope="module")
def model():
    """Two arms and a pile above a shared ground."""
    scene = pv.ModelBuilder()
    scene.add_ground_plane()
    scene.replicate(make_arm(), 2)
    scene.add_world(make_pile())
    return scene.finalize("cpu")


def test_articulations_end_where_the_next_begins(model):
    start = model.articulation_start.numpy()
    np.testing.assert_array_equal(model.articulation_end.numpy(), start[1:])
    joints = [np.flatnonzero(model.joint_articulation.numpy() == index) for index in range(len(start) - 1)]
    assert model.max_joints_per_articulation == max(len(owned) for owned in joints)
    dofs = np.diff(model.joint_qd_start.numpy())
    assert model.max_dofs_per_articulation == max(int(dofs[owned].sum()) for owned in joints)


def test_the_ancestor_of_a_joint_moves_its_parent_body(model):
    child, parent = model.joint_child.numpy(), model.joint_parent.numpy()
    ancestor = model.joint_ancestor.numpy()
    assert (parent >= 0).any()
    for joint, above in enumerate(ancestor):
        assert parent[joint] == (-1 if above < 0 else child[above])


def test_inverses_times_the_masses_are_one(model):
    np.testing.assert_allclose(model.body_mass.numpy() * model.body_inv_mass.numpy(), 1.0, rtol=1e-6)
    product = model.body_inertia.numpy() @ model.body_inv_inertia.numpy()
    # The inverse is rounded once, and so is each of three products, times the condition of the inertia.
    condition = np.linalg.cond(model.body_inertia.numpy()).max()
    identity = np.broadcast_to(np.eye(3), product.shape)
    np.testing.assert_allclose(product, identity, rtol=0.0, atol=4.0 * 2.0**-24 * condition)


def test_shapes_are_listed_with_their_bodies(model):
    shapes = model.body_shapes
    assert sorted(shape for owned in shapes.values() for shape in owned) == list(range(model.shape_count))
    body = model.shape_body.numpy()
    assert all(body[shape] == owner for owner, owned in shapes.items() for shape in owned)


def test_pairs_of_worlds_hold_shapes_of_the_world_or_shared_ones(model):
    """Every pair lies in one world or meets the ground, none twice, and each world of a kind has as many."""
    pairs = model.shape_contact_pairs.numpy()
    assert len(pairs) == model.shape_contact_pair_count > 0
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    world = model.shape_world.numpy()[pairs]
    assert ((world[:, 0] == world[:, 1]) | (world.min(axis=1) == -1)).all()
    counts = np.bincount(world.max(axis=1), minlength=3)
    assert counts[0] == counts[1]
    assert (counts > 0).all()


def test_a_model_of_nothing_has_nothing_derived():
    model = pv.ModelBuilder().finalize("cpu")
    assert model.up_axis is pv.Axis.Z
    assert model.max_dofs_per_articulation == model.max_joints_per_articulation == 0
    assert (
        model.shape_contact_pairs.shape == model.joint_ancestor.shape == model.articulation_end.shape == (0,)
    )
    assert model.body_shapes == {-1: []}
