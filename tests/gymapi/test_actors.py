"""Envs and actors: order, indices, names, groups."""

import numpy as np
import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import add_env, at, make_params, make_sim, position_of, undamped


def test_bodies_follow_the_tree_with_siblings_by_name(gym, assets):
    """Depth first from the root, whatever the order of the file; a ball joint has three DOFs."""
    sim = make_sim()
    asset = gym.load_asset(sim, assets, "branched.urdf")
    assert gym.get_asset_rigid_body_names(asset) == ["base", "apple", "ball", "zebra"]
    assert gym.get_asset_joint_names(asset) == ["apple_joint", "apple_tip", "zebra_joint"]
    names = ["apple_joint", "apple_tip_x", "apple_tip_y", "apple_tip_z", "zebra_joint"]
    assert gym.get_asset_dof_names(asset) == names
    assert gym.get_asset_joint_type(asset, 1) == gymapi.JOINT_BALL
    types = [gym.get_asset_dof_type(asset, dof) for dof in range(5)]
    assert types == [gymapi.DOF_TRANSLATION, *[gymapi.DOF_ROTATION] * 4]
    ranges = gym.get_asset_rigid_body_shape_indices(asset)
    assert [(part.start, part.count) for part in ranges] == [(0, 0), (0, 1), (1, 1), (2, 1)]


def test_indices_count_in_order_of_creation(gym, assets):
    """Indices are right while later envs do not exist yet, in each domain."""
    sim = make_sim()
    cartpole = gym.load_asset(sim, assets, "cartpole.urdf")
    box = gym.create_box(sim, 0.1, 0.1, 0.1)
    bodies = dofs = 0
    for index in range(3):
        env = add_env(sim)
        first = gym.create_actor(env, box, at(), "box", index, 0)
        second = gym.create_actor(env, cartpole, at(), "cartpole", index, 1)
        assert gym.get_actor_index(env, second, gymapi.DOMAIN_SIM) == 2 * index + 1
        assert gym.find_actor_index(env, "cartpole", gymapi.DOMAIN_ENV) == second
        pole = gym.find_actor_rigid_body_index(env, second, "pole", gymapi.DOMAIN_SIM)
        assert pole == bodies + 3
        assert gym.find_actor_rigid_body_handle(env, second, "pole") == 3
        assert gym.find_actor_dof_index(env, second, "cart_to_pole", gymapi.DOMAIN_SIM) == dofs + 1
        assert gym.get_rigid_name(env, 3) == "pole"
        assert gym.find_actor_handle(env, "nobody") == gymapi.INVALID_HANDLE
        assert gym.find_actor_rigid_body_index(env, first, "pole", gymapi.DOMAIN_SIM) == -1
        bodies, dofs = gym.get_sim_rigid_body_count(sim), gym.get_sim_dof_count(sim)
    assert (bodies, dofs, gym.get_sim_actor_count(sim)) == (12, 6, 6)


@pytest.mark.parametrize("whole", [np.int32, np.array, "torch"])
def test_handles_may_be_array_scalars(gym, assets, whole):
    """Scripts look actors up in tensors; a fraction or a truth value is no handle."""
    if whole == "torch":
        whole = pytest.importorskip("torch", reason="PyTorch is not installed").tensor
    sim = make_sim()
    env = add_env(sim)
    actor = gym.create_actor(env, gym.load_asset(sim, assets, "cartpole.urdf"), at(), "cartpole", 0, 1)
    assert gym.find_actor_rigid_body_index(env, whole(actor), "pole", gymapi.DOMAIN_ENV) == 2
    assert gym.get_rigid_name(env, whole(2)) == "pole"
    for wrong in (whole(actor) + 0.5, True):
        with pytest.raises(TypeError, match="actor handle for env 0"):
            gym.get_actor_name(env, wrong)


def test_envs_fill_a_grid(gym):
    """Columns run along x, rows along the other horizontal axis."""
    for axis, second in ((gymapi.UP_AXIS_Z, 1), (gymapi.UP_AXIS_Y, 2)):
        params = make_params(gravity=0.0)
        params.up_axis = axis
        sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)
        origins = []
        for _ in range(4):
            env = gym.create_env(sim, gymapi.Vec3(-1, -2, -3), gymapi.Vec3(1, 2, 3), 3)
            origins.append(list(gym.get_env_origin(env)))
        expected = np.zeros((4, 3))
        expected[:3, 0] = [0.0, 2.0, 4.0]
        expected[3, second] = 4.0 if second == 1 else 6.0
        np.testing.assert_array_equal(origins, expected)


def test_many_envs_share_one_template(gym, assets):
    """Envs of equal content are worlds of one kind; an env of other content is one more."""
    sim = make_sim(ground=True)
    cartpole = gym.load_asset(sim, assets, "cartpole.urdf")
    for index in range(40):
        env = add_env(sim)
        gym.create_actor(env, cartpole, at(z=1.0), "cartpole", index, 1)
        if index == 39:
            gym.create_actor(env, gym.create_box(sim, 0.1, 0.1, 0.1), at(x=1.0), "box", index, 0)
    gym.prepare_sim(sim)
    assert sim.runtime.model.world_count == 40
    assert len(sim.runtime.model.templates) == 2


def collide(gym, first, second):
    """Return whether a ball falls through a held box, of given (group, filter), to the height below."""
    sim = make_sim()
    held = undamped(fix_base_link=True)
    box, ball = gym.create_box(sim, 1.0, 1.0, 0.2, held), gym.create_sphere(sim, 0.1, undamped())
    env = add_env(sim)
    gym.create_actor(env, box, at(), "box", *first)
    fallen = gym.create_actor(env, ball, at(z=0.25), "ball", *second)
    for _ in range(30):
        gym.simulate(sim)
    return bool(position_of(env, fallen)[2] > 0.0)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0, 0), (0, 0), True),
        ((0, 1), (0, 2), True),
        ((0, 3), (0, 2), False),
        ((0, 0), (1, 0), False),
        ((-1, 0), (1, 0), True),
        ((-1, -1), (-1, -1), True),
        ((0, 1), (0, 0), True),
    ],
)
def test_groups_and_filters_decide_who_collides(gym, first, second, expected):
    """Equal groups or -1 meet; shapes that share a filter bit do not."""
    assert collide(gym, first, second) is expected


def test_shared_group_reaches_other_envs(gym):
    """A ball of group -1, created in one env, lies on a box of another."""
    sim = make_sim()
    box = gym.create_box(sim, 1.0, 1.0, 0.2, undamped(fix_base_link=True))
    ball = gym.create_sphere(sim, 0.1, undamped())
    first = add_env(sim)
    gym.create_actor(first, box, at(), "box", 0, 0)
    second = add_env(sim)
    gym.create_actor(second, box, at(), "box", 1, 0)
    x = gym.get_env_origin(second).x
    shared = gym.create_actor(second, ball, at(x=-x, z=0.25), "ball", -1, 0)
    own = gym.create_actor(second, ball, at(z=0.25), "own", 1, 0)
    lost = gym.create_actor(second, ball, at(x=-x, y=0.2, z=0.25), "lost", 1, 0)
    for _ in range(40):
        gym.simulate(sim)
    heights = [position_of(second, actor)[2] for actor in (shared, own, lost)]
    assert sim.runtime.model.world_count == 1
    np.testing.assert_allclose(heights[:2], 0.2 + 2 * 0.001, atol=1e-3)
    assert heights[2] < -0.5
    np.testing.assert_allclose(position_of(second, shared)[0], -x, atol=1e-5)
