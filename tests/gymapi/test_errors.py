"""Errors name the call, the env, the actor and the remedy."""

import numpy as np
import pytest
import warp as wp

from pluriverse import gymapi
from tests.gymapi.scenes import add_env, at, make_params, make_sim, undamped


@pytest.fixture
def scene(gym, assets):
    sim = make_sim()
    asset = gym.load_asset(sim, assets, "cartpole.urdf", undamped(fix_base_link=True))
    env = add_env(sim)
    return sim, env, gym.create_actor(env, asset, at(), "cartpole", 0, 1), asset


CASES = {
    "handle of no actor": (
        lambda gym, sim, env, actor, asset: gym.get_actor_dof_count(env, 7),
        IndexError,
        r"get_actor_dof_count: env 0 has no actor 7; it has 1 actors \('cartpole'\). Use the handle that",
    ),
    "handle that is no number": (
        lambda gym, sim, env, actor, asset: gym.get_actor_name(env, "cartpole"),
        TypeError,
        "get_actor_name: the actor handle for env 0 is 'cartpole', but must be the whole number",
    ),
    "body handle of a failed search": (
        lambda gym, sim, env, actor, asset: gym.get_rigid_transform(env, -1),
        IndexError,
        "get_rigid_transform: env 0 has no body -1; its handles are 0 to 2",
    ),
    "body handle of an env without actors": (
        lambda gym, sim, env, actor, asset: gym.get_rigid_transform(add_env(sim), 0),
        IndexError,
        "get_rigid_transform: env 1 has no body 0; it has none at all. Use what find_actor_rigid_body",
    ),
    "missing asset": (
        lambda gym, sim, env, actor, asset: gym.create_actor(env, None, at()),
        TypeError,
        "create_actor: asset is None, but must be what load_asset",
    ),
    "short array": (
        lambda gym, sim, env, actor, asset: gym.apply_actor_dof_efforts(env, actor, [1.0]),
        ValueError,
        r"apply_actor_dof_efforts: the array for actor 0 \('cartpole'\) of env 0 has shape \(1,\)",
    ),
    "plain array as properties": (
        lambda gym, sim, env, actor, asset: gym.set_actor_dof_properties(env, actor, np.zeros(2)),
        TypeError,
        "set_actor_dof_properties: properties of actor 0 .* must be a structured array with the "
        "fields hasLim",
    ),
    "states of another type": (
        lambda gym, sim, env, actor, asset: gym.set_actor_dof_states(env, actor, np.zeros((2, 2)), 3),
        TypeError,
        "set_actor_dof_states: the states of actor 0",
    ),
    "states of another length": (
        lambda gym, sim, env, actor, asset: gym.set_actor_dof_states(
            env, actor, np.zeros(3, gymapi.DofState.dtype), 3
        ),
        ValueError,
        r"the states have shape \(3,\), but actor 0 .* has 2 entries",
    ),
    "actor after a tensor": (
        lambda gym, sim, env, actor, asset: (
            gym.acquire_dof_state_tensor(sim),
            gym.create_actor(env, asset, at()),
        ),
        gymapi.GymError,
        r"create_actor: the sim is prepared, by acquire_dof_state_tensor\(\)",
    ),
    "actor in a closed env": (
        lambda gym, sim, env, actor, asset: (add_env(sim), gym.create_actor(env, asset, at())),
        gymapi.GymError,
        "create_actor: env 0 is closed, because env 1 was created after it",
    ),
    "actor after preparing": (
        lambda gym, sim, env, actor, asset: (gym.prepare_sim(sim), gym.create_actor(env, asset, at())),
        gymapi.GymError,
        "create_actor: the sim is prepared",
    ),
    "scale of zero": (
        lambda gym, sim, env, actor, asset: gym.set_actor_scale(env, actor, 0.0),
        ValueError,
        "set_actor_scale: scale of actor 0 .* is 0.0, but must be one number > 0",
    ),
    "negative mass": (
        lambda gym, sim, env, actor, asset: set_mass(gym, env, actor, -1.0),
        ValueError,
        "mass of body 'cart' of actor 0 .* is -1.0 kg",
    ),
    "properties of too few bodies": (
        lambda gym, sim, env, actor, asset: gym.set_actor_rigid_body_properties(env, actor, []),
        ValueError,
        "set_actor_rigid_body_properties: 0 properties were given, but actor 0 .* has 3 bodies",
    ),
    "sim without envs": (
        lambda gym, sim, env, actor, asset: gym.render_all_camera_sensors(make_sim()),
        gymapi.GymError,
        r"^render_all_camera_sensors: the sim has no env. Call create_env\(\) first",
    ),
    "aggregate left open": (
        lambda gym, sim, env, actor, asset: (gym.begin_aggregate(env, 9, 9, True), gym.prepare_sim(sim)),
        gymapi.GymError,
        "an aggregate of env 0 is still open. Call end_aggregate",
    ),
    "aggregate never opened": (
        lambda gym, sim, env, actor, asset: gym.end_aggregate(env),
        gymapi.GymError,
        "end_aggregate: no aggregate of env 0 is open",
    ),
    "aggregate too small": (
        lambda gym, sim, env, actor, asset: (
            gym.begin_aggregate(env, 2, 9, True),
            gym.create_actor(env, asset, at()),
        ),
        gymapi.GymError,
        "aggregate with max_bodies = 2, which would have 3",
    ),
    "sensor after an actor": (
        lambda gym, sim, env, actor, asset: gym.create_asset_force_sensor(asset, 0, at()),
        gymapi.GymError,
        "create_asset_force_sensor: Asset.*has 1 actors already",
    ),
    "wrong file type": (
        lambda gym, sim, env, actor, asset: gym.load_asset(sim, ".", "robot.step"),
        ValueError,
        "load_asset: filename is 'robot.step', but must end in one of .urdf",
    ),
    "negative damping of an asset": (
        lambda gym, sim, env, actor, asset: gym.create_sphere(sim, 0.1, undamped(linear_damping=-1.0)),
        ValueError,
        "create_sphere: options.linear_damping is -1.0, but must be >= 0 and finite",
    ),
    "no speed allowed": (
        lambda gym, sim, env, actor, asset: gym.create_sphere(sim, 0.1, undamped(max_linear_velocity=0.0)),
        ValueError,
        "create_sphere: options.max_linear_velocity is 0.0, but must be > 0, infinite for none",
    ),
    "wrong parameters": (
        lambda gym, sim, env, actor, asset: gym.add_ground(sim, gymapi.SimParams()),
        TypeError,
        "add_ground: params is SimParams.* but must be a gymapi.PlaneParams",
    ),
    "unknown name of a matrix": (
        lambda gym, sim, env, actor, asset: (gym.prepare_sim(sim), gym.acquire_jacobian_tensor(sim, "ant")),
        gymapi.GymError,
        "acquire_jacobian_tensor: there is no actor 'ant'. The names are 'cartpole'",
    ),
    "no viewer": (
        lambda gym, sim, env, actor, asset: gym.query_viewer_has_closed(None),
        TypeError,
        "query_viewer_has_closed: viewer is None",
    ),
    "destroyed sim": (
        lambda gym, sim, env, actor, asset: (gym.destroy_sim(sim), gym.simulate(sim)),
        gymapi.GymError,
        "simulate: the sim was destroyed",
    ),
    "drive mode of no meaning": (
        lambda gym, sim, env, actor, asset: set_field(gym, env, actor, "driveMode", 9),
        ValueError,
        "driveMode of degree of freedom 0 .'slider_to_cart'. of actor 0",
    ),
}


def set_mass(gym, env, actor, mass):
    properties = gym.get_actor_rigid_body_properties(env, actor)
    properties[1].mass = mass
    gym.set_actor_rigid_body_properties(env, actor, properties)


def set_field(gym, env, actor, name, value):
    properties = gym.get_actor_dof_properties(env, actor)
    properties[name] = value
    gym.set_actor_dof_properties(env, actor, properties)


@pytest.mark.parametrize("case", list(CASES))
def test_wrong_calls_say_what_is_wrong(gym, scene, case):
    act, kind, message = CASES[case]
    with pytest.raises(kind, match=message):
        act(gym, *scene)


def test_wrong_tensors_say_what_is_wrong(gym, scene):
    sim, _, _, _ = scene
    gym.prepare_sim(sim)
    with pytest.raises(
        ValueError, match="set_dof_state_tensor: the tensor has 3 entries, but must have 4: 2 for"
    ):
        gym.set_dof_state_tensor(sim, np.zeros(3, dtype=np.float32))
    states = np.zeros((2, 2), dtype=np.float32)
    with pytest.raises(
        IndexError, match=r"index 5 names no actor; the sim has actors 0 to 0\. Indices are those of"
    ):
        gym.set_dof_state_tensor_indexed(sim, states, np.array([5], dtype=np.int32), 1)
    wide = np.array([2**32])  # whose lower half is 0, the index of an actor
    for indices in (wide, wp.array(wide, dtype=wp.int64, device="cpu")):
        with pytest.raises(IndexError, match="the index tensor holds 4294967296, which is no index"):
            gym.set_dof_state_tensor_indexed(sim, states, indices, 1)
    with pytest.raises(ValueError, match="the count is 2, but the index tensor has 1 entries"):
        gym.set_dof_state_tensor_indexed(sim, states, np.array([0], dtype=np.int32), 2)
    with pytest.raises(TypeError, match="the index tensor has type float64, but must be whole numbers"):
        gym.set_dof_state_tensor_indexed(sim, states, np.array([0.0]), 1)
    with pytest.raises(TypeError, match="the tensor is 'states', but must be a tensor"):
        gym.set_dof_state_tensor(sim, "states")


def test_what_scripts_test_for_none_returns_none_with_a_reason(gym, assets, tmp_path):
    """Sims without a device are None, and a warning says why; assets that cannot be read raise."""
    params = make_params()
    params.use_gpu_pipeline = True
    with pytest.warns(gymapi.GymWarning, match="create_sim: there is no device 'cuda:99'"):
        assert gym.create_sim(99, -1, gymapi.SIM_PHYSX, params) is None
    sim = make_sim()
    with pytest.raises(gymapi.GymError, match=r"'none.urdf' cannot be an asset.*there is no file"):
        gym.load_asset(sim, assets, "none.urdf")
    (tmp_path / "two.xml").write_text(
        "<mujoco><worldbody>"
        + "".join(f'<body name="b{k}"><freejoint/><geom size="0.1"/></body>' for k in range(2))
        + "</worldbody></mujoco>"
    )
    with pytest.raises(
        gymapi.GymError, match=r"2 bodies that hang on the world .b0, b1., but an asset is one"
    ):
        gym.load_asset(sim, str(tmp_path), "two.xml")


def test_gravity_across_the_up_axis_is_warned_of(gym):
    params = gymapi.SimParams()
    params.up_axis = gymapi.UP_AXIS_Z
    with pytest.warns(gymapi.GymWarning, match="UP_AXIS_Z points up. Set sim_params.gravity"):
        gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)


def test_parameters_change_between_steps(gym):
    """Gravity, time step and substeps change at once; what cannot change says so."""
    sim = make_sim()
    env = add_env(sim)
    gym.create_actor(env, gym.create_sphere(sim, 0.1, undamped()), at(), "ball", 0, 0)
    gym.simulate(sim)
    params = gym.get_sim_params(sim)
    params.gravity, params.dt, params.substeps = gymapi.Vec3(1.0, 0.0, 0.0), 0.1, 4
    gym.set_sim_params(sim, params)
    gym.simulate(sim)
    velocity = gym.get_rigid_linear_velocity(env, 0)
    np.testing.assert_allclose(list(velocity), [0.1, 0.0, -9.81 / 60.0], rtol=1e-5, atol=1e-7)
    assert gym.get_sim_time(sim) == pytest.approx(1.0 / 60.0 + 0.1)
    params.use_gpu_pipeline = True
    with pytest.raises(gymapi.GymError, match="use_gpu_pipeline cannot change from False to True"):
        gym.set_sim_params(sim, params)
