"""Robots from files: their order, drives and masses are those of the file, and they stand."""

import warnings

import numpy as np
import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import add_env, at, make_sim, undamped

# File, whether its base is held, bodies, degrees of freedom.
ROBOTS = {
    "arm": ("franka_description/urdfs/fr3_franka_hand.urdf", True, 14, 9),
    "dog": ("unitree_go1/go1.xml", False, 13, 12),
    "hand": ("allegro_hand_description/allegro_hand_description_right.urdf", True, 21, 16),
    "humanoid": ("newton_examples/nv_humanoid.xml", False, 13, 21),
}


@pytest.fixture
def load(gym, robot_assets):
    def load_robot(name, **options):
        filename, fixed, _, _ = ROBOTS[name]
        sim = make_sim(ground=not fixed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the importers have to say is tested with them
            asset = gym.load_asset(sim, str(robot_assets), filename, undamped(fix_base_link=fixed, **options))
        return sim, asset

    return load_robot


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_have_the_parts_of_their_files(gym, load, name):
    _, asset = load(name)
    _, _, bodies, dofs = ROBOTS[name]
    assert (gym.get_asset_rigid_body_count(asset), gym.get_asset_dof_count(asset)) == (bodies, dofs)
    names = gym.get_asset_dof_names(asset)
    assert len(set(names)) == dofs
    properties = gym.get_asset_dof_properties(asset)
    assert properties["hasLimits"].all()
    assert (properties["lower"] < properties["upper"]).all()


def test_several_joints_of_a_body_stay_separate(gym, load):
    """Hips of the humanoid are three named joints, in the order of the file, with their own motors."""
    _, asset = load("humanoid")
    names = gym.get_asset_dof_names(asset)
    assert [name for name in names if name.startswith("right_hip")] == [
        "right_hip_x",
        "right_hip_z",
        "right_hip_y",
    ]
    assert gym.get_asset_joint_count(asset) == 21
    assert gym.get_asset_actuator_count(asset) == 21
    motors = {part.joint: part.motor_effort for part in gym.get_asset_actuator_properties(asset)}
    properties = gym.get_asset_dof_properties(asset)
    assert (properties["driveMode"] == gymapi.DOF_MODE_EFFORT).all()
    assert motors["right_knee"] > 0.0


def test_arm_holds_its_pose_with_gravity_compensation(gym, load):
    """Efforts of gravity from the mass matrix's Jacobians hold the arm still: J^T m g of all links."""
    sim, asset = load("arm")
    env = add_env(sim)
    actor = gym.create_actor(env, asset, at(), "arm", 0, 1)
    properties = gym.get_actor_dof_properties(env, actor)
    properties["driveMode"].fill(gymapi.DOF_MODE_EFFORT)
    properties["stiffness"], properties["damping"] = 0.0, 0.0
    gym.set_actor_dof_properties(env, actor, properties)
    pose = np.array([0.2, 0.3, -0.1, -1.5, 0.1, 1.8, 0.5, 0.02, 0.02], dtype=np.float32)
    states = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)
    states["pos"] = pose
    gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
    gym.prepare_sim(sim)
    jacobian = gym.acquire_jacobian_tensor(sim, "arm").numpy()[0]
    masses = np.array([part.mass for part in gym.get_actor_rigid_body_properties(env, actor)])[1:]
    for _ in range(30):
        gym.refresh_jacobian_tensors(sim)
        efforts = 9.81 * np.einsum("l,lj->j", masses, jacobian[:, 2, :]).astype(np.float32)
        gym.set_dof_actuation_force_tensor(sim, efforts)
        gym.simulate(sim)
    # Half a second: without compensation the shoulder would fall by a radian; what is left is rounding, and
    # the fingers that mimic each other.
    after = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)["pos"]
    np.testing.assert_allclose(after[:7], pose[:7], atol=2e-3)


def test_dog_stands_on_its_drives(gym, load):
    """With position drives the dog keeps its height and its feet carry its weight."""
    sim, asset = load("dog")
    env = add_env(sim)
    actor = gym.create_actor(env, asset, at(z=0.32), "dog", 0, 1)
    properties = gym.get_actor_dof_properties(env, actor)
    properties["driveMode"].fill(gymapi.DOF_MODE_POS)
    properties["stiffness"], properties["damping"] = 200.0, 4.0
    gym.set_actor_dof_properties(env, actor, properties)
    pose = np.tile([0.0, 0.8, -1.6], 4).astype(np.float32)
    states = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)
    states["pos"] = pose
    gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
    gym.set_actor_dof_position_targets(env, actor, pose)
    for _ in range(120):
        gym.simulate(sim)
    weight = 9.81 * sum(part.mass for part in gym.get_actor_rigid_body_properties(env, actor))
    np.testing.assert_allclose(gym.get_rigid_contact_forces(sim)["z"].sum(), weight, rtol=0.02)
    assert 0.2 < gym.get_rigid_transform(env, 0).p.z < 0.35


def test_loops_with_limits_are_cut_without_shifting_what_comes_behind(gym, robot_assets):
    """The hinge that closes a four-bar linkage is a degree of freedom of its own, in each env."""
    pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")
    sim = make_sim(ground=False, gravity=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asset = gym.load_asset(sim, str(robot_assets / "newton_examples"), "boxes_fourbar.usda", undamped())
    envs = []
    for index in range(3):
        envs.append(add_env(sim))
        gym.create_actor(envs[-1], asset, at(z=1.0 + index), "linkage", index, 1)
    for _ in range(5):
        gym.simulate(sim)
    assert gym.get_actor_dof_count(envs[0], 0) == 4
    bodies = [
        [list(gym.get_rigid_transform(env, body).p) for body in range(gym.get_asset_rigid_body_count(asset))]
        for env in envs
    ]
    for index in (1, 2):
        np.testing.assert_allclose(np.subtract(bodies[index], bodies[0])[:, 2], index, atol=1e-5)


def test_gravity_leaves_parts_of_split_bodies_alone_as_well(gym, robot_assets):
    """A linkage without gravity, cut at a joint of its loop, stays where it is; so does its damping act."""
    pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")
    sim = make_sim()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asset = gym.load_asset(
            sim,
            str(robot_assets / "newton_examples"),
            "boxes_fourbar.usda",
            undamped(disable_gravity=True, linear_damping=1.0),
        )
    env = add_env(sim)
    gym.create_actor(env, asset, at(z=1.0), "linkage", 0, 1)
    before = gym.get_env_rigid_body_states(env, gymapi.STATE_ALL)["pose"]["p"]["z"].copy()
    for _ in range(10):
        gym.simulate(sim)
    model = sim.runtime.model
    assert model.body_count > gym.get_sim_rigid_body_count(sim)
    masses = np.array([part.mass for part in gym.get_actor_rigid_body_properties(env, 0)])
    np.testing.assert_allclose(masses, asset.builder.body_mass, rtol=1e-6)
    after = gym.get_env_rigid_body_states(env, gymapi.STATE_ALL)["pose"]["p"]["z"]
    np.testing.assert_allclose(after, before, atol=1e-5)
    gym.set_actor_scale(env, 0, 1.2)
    np.testing.assert_allclose(model.body_mass.numpy().sum(), masses.sum() * 1.2**3, rtol=1e-5)


def test_usd_robots_are_read_too(gym, robot_assets):
    """The ant of a USD file has the joints of that of the MJCF file, and its base is held if asked for."""
    pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")
    dofs = {}
    for filename in ("nv_ant.xml", "ant.usda"):
        sim = make_sim()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asset = gym.load_asset(
                sim, str(robot_assets / "newton_examples"), filename, undamped(fix_base_link=True)
            )
        env = add_env(sim)
        actor = gym.create_actor(env, asset, at(z=1.0), "ant", 0, 1)
        for _ in range(3):
            gym.simulate(sim)
        np.testing.assert_allclose(list(gym.get_rigid_transform(env, 0).p), [0.0, 0.0, 1.0], atol=1e-6)
        dofs[filename] = gym.get_actor_dof_count(env, actor)
    assert dofs["ant.usda"] == dofs["nv_ant.xml"] == 8
