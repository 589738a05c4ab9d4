"""Every getter and finder works at any time: while envs are built, once the sim is prepared, after steps."""

import inspect
import warnings

import pytest

from pluriverse import gymapi
from pluriverse.gymapi.gym_absent import AbsentCalls
from tests.gymapi.scenes import add_env, at, make_sim

TENDON = """
<mujoco model="finger"><worldbody><body name="palm"><geom size="0.05"/>
  <body name="a" pos="0.1 0 0"><joint name="a" axis="0 1 0"/><geom size="0.02"/>
    <body name="b" pos="0.1 0 0"><joint name="b" axis="0 1 0"/><geom size="0.02"/></body></body></body>
  </worldbody>
  <tendon><fixed name="pull"><joint joint="a" coef="1"/><joint joint="b" coef="-0.5"/></fixed></tendon>
  <actuator><motor name="motor" joint="a" gear="3"/></actuator>
</mujoco>
"""
# What to pass for each parameter, by its name.
VALUES = {
    "flags": 3,
    "domain": gymapi.DOMAIN_SIM,
    "name": "a",
    "actor_name": "finger",
    "body_name": "b",
    "joint_name": "b",
    "type": 1,
    "mesh_type": gymapi.MESH_VISUAL,
    "envs": "envs",
    "filename": "picture.png",
    "camera_handle": 0,
}


def getters():
    return sorted(
        name
        for name in dir(gymapi.Gym)
        if name.startswith(("get_", "find_"))
        and name not in vars(AbsentCalls)
        and name not in ("get_viewer_camera_transform", "get_viewer_mouse_position", "get_viewer_size")
    )


@pytest.fixture(scope="module")
def stages(gym, tmp_path_factory):
    """Return sims that are being built, prepared, and stepped, each with envs, an asset and an attractor."""
    folder = tmp_path_factory.mktemp("finger")
    (folder / "finger.xml").write_text(TENDON)
    result = {}
    for stage in ("built", "prepared", "stepped"):
        sim = make_sim(ground=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what importers say of tendons is tested with them
            asset = gym.load_asset(sim, str(folder), "finger.xml")
        gym.create_asset_force_sensor(asset, 0, gymapi.Transform())
        envs = []
        for index in range(2):
            envs.append(add_env(sim))
            gym.create_actor(envs[-1], asset, at(z=0.5), "finger", index, -1)
            attractor = gymapi.AttractorProperties()
            attractor.rigid_handle = 0
            gym.create_rigid_body_attractor(envs[-1], attractor)
            gym.create_camera_sensor(envs[-1], gymapi.CameraProperties(width=4, height=3))
        if stage != "built":
            gym.prepare_sim(sim)
        if stage == "stepped":
            for _ in range(3):
                gym.simulate(sim)
        result[stage] = (sim, envs, asset)
    return result


@pytest.mark.parametrize("stage", ["built", "prepared", "stepped"])
def test_every_getter_works_at_any_time(gym, stages, stage):
    sim, envs, asset = stages[stage]
    # Getters of contacts and images make the model, so they come last in a sim that is being built.
    for name in sorted(getters(), key=lambda name: "contact" in name or name == "get_camera_image"):
        call = getattr(gym, name)
        given = []
        for parameter in inspect.signature(call).parameters.values():
            fixed = {"sim": sim, "env": envs[1], "asset": asset, "envs": envs}
            if parameter.name in fixed:
                given.append(fixed[parameter.name])
            elif parameter.default is inspect.Parameter.empty:
                given.append(VALUES.get(parameter.name, 0))
        assert call(*given) is not None, name


def test_tendons_and_actuators_are_read(gym, stages):
    """Fixed tendons and motors of an MJCF file are listed with what they act on."""
    _, envs, asset = stages["stepped"]
    assert gym.get_asset_tendon_count(asset) == 1
    assert gym.get_actor_tendon_name(envs[0], 0, 0) == "pull"
    assert gym.get_actor_fixed_tendon_joint_coefficients(envs[0], 0, 0) == [1.0, -0.5]
    assert gym.find_actor_fixed_tendon_joint_index(envs[0], 0, 0, "b") == 1
    gym.set_actor_tendon_offset(envs[0], 0, 0, 0.25)
    properties = gym.get_actor_tendon_properties(envs[0], 0)
    properties[0].damping = 0.5
    gym.set_actor_tendon_properties(envs[0], 0, properties)
    assert gym.get_actor_tendon_offset(envs[0], 0, 0) == 0.25
    assert gym.get_actor_tendon_properties(envs[0], 0)[0].damping == 0.5
    assert gym.get_actor_tendon_properties(envs[1], 0)[0].damping == 0.0
    motor = gym.get_asset_actuator_properties(asset)[0]
    assert (motor.name, motor.joint, motor.motor_effort) == ("motor", "a", 3.0)
    assert gym.get_asset_dof_properties(asset)["driveMode"].tolist() == [
        gymapi.DOF_MODE_EFFORT,
        gymapi.DOF_MODE_NONE,
    ]


def test_aggregates_are_counted(gym):
    """Actors between the two calls join; the model is the same as without."""
    sim = make_sim()
    box = gym.create_box(sim, 0.1, 0.1, 0.1)
    env = add_env(sim)
    assert gym.begin_aggregate(env, 2, 2, True)
    gym.create_actor(env, box, at(), "a", 0, 0)
    gym.create_actor(env, box, at(x=1.0), "b", 0, 0)
    assert gym.end_aggregate(env)
    gym.create_actor(env, box, at(x=2.0), "c", 0, 0)
    assert gym.create_aggregate(env, [2])
    with pytest.raises(gymapi.GymError, match="is in an aggregate already"):
        gym.create_aggregate(env, [0])
    assert gym.get_env_aggregate_count(env) == 2
    assert [len(part.actors) for part in env.aggregates] == [2, 1]


def test_many_envs_of_the_shared_group_are_warned_of(gym):
    sim = make_sim()
    ball = gym.create_sphere(sim, 0.1)
    for env in range(64):
        # The first ball lies in the cell of another env, so the envs cannot be worlds of their own.
        gym.create_actor(add_env(sim), ball, at(x=5.0 if env == 0 else 0.0), "ball")
    with pytest.warns(
        gymapi.GymWarning, match="64 envs share one world.*Pass the index of the env as `group`"
    ):
        gym.prepare_sim(sim)
    assert sim.runtime.model.world_count == 1


@pytest.mark.parametrize("solver", ["sap", "mujoco"])
def test_either_solver_can_be_chosen(gym, solver):
    """A box falls, rests and carries its weight with both solvers; contact is as stiff as each makes it."""
    sim = make_sim(ground=True)
    sim.params.solver = solver
    env = add_env(sim)
    gym.create_actor(env, gym.create_box(sim, 0.2, 0.2, 0.2), at(z=0.2), "box", 0, 0)
    gym.prepare_sim(sim)
    forces = gym.acquire_net_contact_force_tensor(sim).numpy()
    for _ in range(120):
        gym.simulate(sim)
    assert 0.08 < gym.get_rigid_transform(env, 0).p.z < 0.105
    assert abs(forces[0, 2] - 8.0 * 9.81) < 1.0
