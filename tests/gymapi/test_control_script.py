"""A script through the whole life of an actor, as those for Isaac Gym are written.

Creation in a loop with cached handles, aggregates, every drive mode by whole arrays, states of actors, envs
and the sim, and indices in every domain.
"""

import math

import numpy as np
import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import make_sim, set_modes, undamped

ENV_COUNT = 3
FRAME = 1.0 / 60.0  # s


@pytest.fixture
def script(gym, assets):
    """Return sim, envs and actors of cart-poles: one per env, and two in an aggregate of the last env."""
    sim = make_sim(gravity=0.0)
    asset = gym.load_asset(sim, assets, "cartpole.urdf", undamped(fix_base_link=True))
    lower, upper, pose = gymapi.Vec3(-9.0, -9.0, 0.0), gymapi.Vec3(9.0, 9.0, 2.0), gymapi.Transform()
    envs = []
    actor_handles = []
    for i in range(ENV_COUNT):
        env = gym.create_env(sim, lower, upper, 2)
        envs.append(env)
        actor_handle = gym.create_actor(env, asset, pose, "actor", i, 1)
        actor_handles.append(actor_handle)
    max_bodies = 2 * gym.get_asset_rigid_body_count(asset)
    max_shapes = 2 * gym.get_asset_rigid_shape_count(asset)
    env = gym.create_env(sim, lower, upper, 2)
    gym.begin_aggregate(env, max_bodies, max_shapes, True)
    for name in ("left", "right"):
        actor_handles.append(gym.create_actor(env, asset, pose, name, ENV_COUNT, 1))
    gym.end_aggregate(env)
    return sim, [*envs, env], actor_handles


def test_components_of_an_actor_are_counted(gym, script):
    _, envs, actors = script
    for env, actor in zip(envs, actors, strict=False):
        assert gym.get_actor_rigid_body_count(env, actor) == 3
        assert gym.get_actor_joint_count(env, actor) == 2
        assert gym.get_actor_dof_count(env, actor) == 2
    assert gym.get_actor_count(envs[-1]) == 2


def test_every_drive_mode_does_what_its_name_says(gym, script):
    """Free, pushed, held at random targets within the limits, and turned at a speed, one after the other."""
    sim, envs, actors = script
    env, actor = envs[1], actors[1]
    num_dofs = gym.get_actor_dof_count(env, actor)

    set_modes(gym, env, actor, gymapi.DOF_MODE_NONE, 0.0, 0.0)
    gym.simulate(sim)
    assert not gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)["vel"].any()

    # Efforts add up within a frame, and are gone in the next one. The cart and the pole weigh 1.5 kg.
    set_modes(gym, env, actor, gymapi.DOF_MODE_EFFORT, 0.0, 0.0)
    efforts = np.array([6.0, 0.0]).astype(np.float32)
    gym.apply_actor_dof_efforts(env, actor, efforts)
    gym.apply_actor_dof_efforts(env, actor, 0.5 * efforts)
    gym.simulate(sim)
    gym.simulate(sim)
    velocity = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)["vel"]
    state = gym.get_actor_rigid_body_states(env, actor, gymapi.STATE_ALL)
    momentum = 1.0 * velocity[0] + 0.5 * (state["vel"]["linear"]["y"][2])
    assert momentum == pytest.approx(9.0 * FRAME, rel=1e-3)

    set_modes(gym, env, actor, gymapi.DOF_MODE_POS, 1000.0, 200.0)
    dof_props = gym.get_actor_dof_properties(env, actor)
    lower_limits = np.maximum(dof_props["lower"], -math.pi)
    ranges = np.minimum(dof_props["upper"], math.pi) - lower_limits
    targets = lower_limits + ranges * np.random.default_rng(3).random(num_dofs).astype("f")
    gym.set_actor_dof_position_targets(env, actor, targets)
    for _ in range(300):
        gym.simulate(sim)
    np.testing.assert_allclose(
        gym.get_actor_dof_states(env, actor, gymapi.STATE_POS)["pos"], targets, atol=1e-3
    )

    set_modes(gym, env, actor, gymapi.DOF_MODE_VEL, 0.0, 600.0)
    targets = np.array([0.1, -0.2]).astype("f")
    gym.set_actor_dof_velocity_targets(env, actor, targets)
    for _ in range(60):
        gym.simulate(sim)
    np.testing.assert_allclose(
        gym.get_actor_dof_states(env, actor, gymapi.STATE_VEL)["vel"], targets, atol=1e-3
    )
    other = gym.get_actor_dof_states(envs[0], actors[0], gymapi.STATE_ALL)
    assert not other["pos"].any()  # its env was never driven
    assert not other["vel"].any()


def test_states_are_saved_and_restored_for_actor_env_and_sim(gym, script):
    sim, envs, actors = script
    env, actor = envs[-1], actors[-1]
    saved = np.copy(gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL))
    of_env = np.copy(gym.get_env_rigid_body_states(env, gymapi.STATE_ALL))
    of_actor = np.copy(gym.get_actor_rigid_body_states(env, actor, gymapi.STATE_ALL))
    dof_states = np.copy(gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL))
    assert saved["pose"]["p"].dtype.names == saved["vel"]["linear"].dtype.names == ("x", "y", "z")
    assert saved["pose"]["r"].dtype.names == ("x", "y", "z", "w")
    assert (len(of_env), len(of_actor)) == (6, 3)

    for restore in (
        lambda: gym.set_sim_rigid_body_states(sim, saved, gymapi.STATE_ALL),
        lambda: gym.set_env_rigid_body_states(env, of_env, gymapi.STATE_ALL),
        lambda: gym.set_actor_rigid_body_states(env, actor, of_actor, gymapi.STATE_ALL),
        lambda: gym.set_actor_dof_states(env, actor, dof_states, gymapi.STATE_ALL),
    ):
        moved = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)
        moved["pos"] += 0.1
        moved["vel"] += 0.2
        gym.set_actor_dof_states(env, actor, moved, gymapi.STATE_ALL)
        gym.simulate(sim)
        assert abs(gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)["pos"]).min() > 0.09
        restore()
        now = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)
        np.testing.assert_allclose(now["pos"], dof_states["pos"], atol=1e-6)
        np.testing.assert_allclose(now["vel"], dof_states["vel"], atol=1e-6)


def test_an_index_in_each_domain_leads_to_the_same_body_and_degree_of_freedom(gym, script):
    sim, envs, actors = script
    env, actor = envs[-1], actors[-1]  # the second of two in the fourth env
    domains = (gymapi.DOMAIN_ACTOR, gymapi.DOMAIN_ENV, gymapi.DOMAIN_SIM)
    bodies = [gym.find_actor_rigid_body_index(env, actor, "pole", domain) for domain in domains]
    assert bodies == [2, 5, 3 * ENV_COUNT + 5]
    dofs = [gym.find_actor_dof_index(env, actor, "cart_to_pole", domain) for domain in domains]
    assert dofs == [1, 3, 2 * ENV_COUNT + 3]
    states = (
        gym.get_actor_rigid_body_states(env, actor, gymapi.STATE_ALL),
        gym.get_env_rigid_body_states(env, gymapi.STATE_ALL),
        gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL),
    )
    assert len({state[body].tobytes() for state, body in zip(states, bodies, strict=True)}) == 1
