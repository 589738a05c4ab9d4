"""Drives and efforts: modes, gains, how long commands last."""

import warnings

import numpy as np
import pytest

from pluriverse import gymapi
from pluriverse.warnings import PluriverseWarning
from tests.gymapi.scenes import add_env, at, dof_state, make_sim, set_modes, undamped

MASS = 1.5  # kg of cart and pole


@pytest.fixture
def cart(gym, assets):
    """Return sim, env and handle of a cartpole fixed to its env, without gravity."""
    sim = make_sim(gravity=0.0)
    asset = gym.load_asset(sim, assets, "cartpole.urdf", undamped(fix_base_link=True))
    env = add_env(sim)
    return sim, env, gym.create_actor(env, asset, at(z=1.0), "cartpole", 0, 1)


def test_effort_accelerates_for_one_frame(gym, cart):
    """Efforts of a frame add up, act over its whole time, and are gone in the next."""
    sim, env, actor = cart
    set_modes(gym, env, actor, gymapi.DOF_MODE_EFFORT)
    gym.apply_actor_dof_efforts(env, actor, np.array([1.0, 0.0]))
    slider = gym.find_actor_dof_handle(env, actor, "slider_to_cart")
    gym.apply_dof_effort(env, slider, 2.0)
    gym.simulate(sim)
    # The pole hangs on the cart: one push of 3 N on M(q) qdd = tau.
    rows = gym.acquire_mass_matrix_tensor(sim, "cartpole").numpy()[0]
    expected = np.linalg.solve(rows, [3.0, 0.0]) / 60.0
    np.testing.assert_allclose(dof_state(gym, env, actor)["vel"], expected, rtol=2e-3)
    speed = dof_state(gym, env, actor)["vel"].copy()
    gym.simulate(sim)
    np.testing.assert_allclose(dof_state(gym, env, actor)["vel"], speed, rtol=2e-3)


def test_position_drive_of_any_stiffness_holds_its_target(gym, cart):
    """Gains of 1e10 do not explode; velocity targets are ignored; the drive does not wrap."""
    sim, env, actor = cart
    set_modes(gym, env, actor, gymapi.DOF_MODE_POS, 1e10, 1e9)
    targets = np.array([0.5, 7.0])
    gym.set_actor_dof_position_targets(env, actor, targets)
    gym.set_actor_dof_velocity_targets(env, actor, np.array([9.0, 9.0]))
    for _ in range(240):
        gym.simulate(sim)
    np.testing.assert_allclose(dof_state(gym, env, actor)["pos"], targets, atol=0.02)
    np.testing.assert_array_equal(gym.get_actor_dof_velocity_targets(env, actor), [0.0, 0.0])


def test_velocity_drive_reaches_its_target(gym, cart):
    sim, env, actor = cart
    set_modes(gym, env, actor, gymapi.DOF_MODE_VEL, 0.0, 500.0)
    gym.set_actor_dof_velocity_targets(env, actor, np.array([0.5, -1.0]))
    for _ in range(60):
        gym.simulate(sim)
    np.testing.assert_allclose(dof_state(gym, env, actor)["vel"], [0.5, -1.0], rtol=1e-2)


def test_commands_go_to_degrees_of_freedom_in_their_mode(gym, cart):
    """Entries for other modes are ignored, whatever call they come by; single calls too."""
    sim, env, actor = cart
    properties = gym.get_actor_dof_properties(env, actor)
    properties["driveMode"] = (gymapi.DOF_MODE_EFFORT, gymapi.DOF_MODE_POS)
    properties["stiffness"], properties["damping"] = (0.0, 400.0), (0.0, 40.0)
    gym.set_actor_dof_properties(env, actor, properties)
    gym.set_actor_dof_position_targets(env, actor, np.array([3.0, 0.3]))
    gym.prepare_sim(sim)
    gym.set_dof_position_target_tensor(sim, np.array([2.0, 0.4], dtype=np.float32))
    gym.set_dof_target_position(env, gym.find_actor_dof_handle(env, actor, "slider_to_cart"), 1.0)
    assert gym.get_actor_dof_position_targets(env, actor).tolist() == pytest.approx([0.0, 0.4])
    gym.set_dof_actuation_force_tensor(sim, np.array([5.0, 5.0], dtype=np.float32))
    assert sim.runtime.simulation.control.joint_act.numpy().tolist() == [5.0, 0.0]


def test_passive_damping_slows_without_drive(gym, cart):
    """Gains left in mode NONE are a passive damper: speed decays as exp(-c t / m)."""
    sim, env, actor = cart
    set_modes(gym, env, actor, gymapi.DOF_MODE_NONE, 0.0, 3.0)
    states = dof_state(gym, env, actor)
    states["vel"] = (1.0, 0.0)
    gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
    properties = gym.get_actor_dof_properties(env, actor)
    properties["damping"] = (3.0, 1e4)  # holds the pole, so that the mass is that of both
    gym.set_actor_dof_properties(env, actor, properties)
    for _ in range(30):
        gym.simulate(sim)
    expected = np.exp(-3.0 * 0.5 / MASS)
    # Implicit in time, at 120 steps a second: the error is half of c dt / m over the time.
    np.testing.assert_allclose(dof_state(gym, env, actor)["vel"][0], expected, rtol=0.01)


def test_effort_limit_holds_for_drives_and_efforts(gym, cart):
    sim, env, actor = cart
    properties = gym.get_actor_dof_properties(env, actor)
    properties["driveMode"] = (gymapi.DOF_MODE_EFFORT, gymapi.DOF_MODE_POS)
    properties["effort"] = (2.0, 500.0)
    properties["stiffness"], properties["damping"] = (0.0, 1e5), (0.0, 1e4)
    gym.set_actor_dof_properties(env, actor, properties)
    gym.enable_actor_dof_force_sensors(env, actor)
    gym.apply_actor_dof_efforts(env, actor, np.array([100.0, 0.0]))
    gym.simulate(sim)
    np.testing.assert_allclose(dof_state(gym, env, actor)["vel"][0], 2.0 / MASS / 60.0, rtol=2e-3)
    np.testing.assert_allclose(gym.get_actor_dof_forces(env, actor)[0], 2.0, rtol=1e-6)


def test_speed_limit_holds(gym, cart):
    """A cart pushed with all its effort goes no faster than its limit."""
    sim, env, actor = cart
    set_modes(gym, env, actor, gymapi.DOF_MODE_EFFORT)
    properties = gym.get_actor_dof_properties(env, actor)
    properties["velocity"][0] = 0.5
    gym.set_actor_dof_properties(env, actor, properties)
    for _ in range(30):
        gym.apply_actor_dof_efforts(env, actor, np.array([50.0, 0.0]))
        gym.simulate(sim)
    np.testing.assert_allclose(dof_state(gym, env, actor)["vel"][0], 0.5, rtol=0.02)


def test_ball_joint_follows_a_rotation_vector(gym, assets):
    """A position drive turns a ball joint to the rotation of its target, at any stiffness."""
    for stiffness in (5.0, 1e8):
        sim = make_sim(gravity=0.0)
        asset = gym.load_asset(sim, assets, "branched.urdf", undamped(fix_base_link=True))
        env = add_env(sim)
        actor = gym.create_actor(env, asset, at(), "robot", 0, 1)
        set_modes(gym, env, actor, gymapi.DOF_MODE_POS, stiffness, 0.05 * stiffness)
        target = np.array([0.0, 0.6, -1.2, 0.9, 0.0])
        gym.set_actor_dof_position_targets(env, actor, target)
        for _ in range(120):
            gym.simulate(sim)
        np.testing.assert_allclose(dof_state(gym, env, actor)["pos"][1:4], target[1:4], atol=0.01)


def test_joint_calls_are_those_of_their_degree_of_freedom(gym, cart):
    _, env, actor = cart
    set_modes(gym, env, actor, gymapi.DOF_MODE_POS, 100.0, 10.0)
    joint = gym.get_joint_handle(env, "cartpole", "cart_to_pole")
    gym.set_joint_target_position(env, joint, 0.25)
    assert gym.get_joint_target_position(env, joint) == 0.25
    assert gym.get_joint_name(env, joint) == "cart_to_pole"
    np.testing.assert_allclose(list(gym.get_joint_transform(env, joint).p), [0.12, 0.0, 1.0], atol=1e-6)
    frame = gym.get_dof_frame(env, gym.find_actor_dof_handle(env, actor, "cart_to_pole"))
    np.testing.assert_allclose(list(frame.axis), [1.0, 0.0, 0.0], atol=1e-6)
    assert gym.get_joint_position(env, joint) == 0.0


MOTOR = """<mujoco><option viscosity="{viscosity}"/><worldbody>
  <body pos="0 0 1"><freejoint/><geom size="0.1"/>
  <body><joint name="j" axis="0 0 1"/><geom size="0.05" pos="0.3 0 0"/></body></body></worldbody>
  <actuator><motor joint="j" gear="15"/></actuator></mujoco>"""


@pytest.mark.parametrize("mode", [gymapi.DOF_MODE_NONE, gymapi.DOF_MODE_EFFORT])
def test_motors_of_a_file_are_no_reason_for_a_warning(gym, tmp_path, mode):
    """Efforts of its DOF command a motor in either mode; a ragdoll switches it off."""
    (tmp_path / "doll.xml").write_text(MOTOR.format(viscosity=0))
    sim = make_sim(gravity=0.0)
    env = add_env(sim)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asset = gym.load_asset(sim, str(tmp_path), "doll.xml", undamped())
        actor = gym.create_actor(env, asset, at(), "doll", 0, 1)
        set_modes(gym, env, actor, mode)
        gym.apply_actor_dof_efforts(env, actor, np.array([0.5]))
        gym.simulate(sim)
    assert (dof_state(gym, env, actor)["vel"][0] > 0.1) == (mode == gymapi.DOF_MODE_EFFORT)


@pytest.mark.filterwarnings("ignore::pluriverse.warnings.AssetWarning")
def test_what_only_the_other_solver_has_is_told_in_words_of_this_api(gym, tmp_path):
    """The remedy is a parameter of the sim, and no class or call that scripts do not know."""
    (tmp_path / "doll.xml").write_text(MOTOR.format(viscosity=1))
    sim = make_sim()
    asset = gym.load_asset(sim, str(tmp_path), "doll.xml", undamped())
    gym.create_actor(add_env(sim), asset, at(), "doll", 0, 1)
    with pytest.warns(PluriverseWarning, match="^prepare_sim: the model has 1 worlds with a fluid") as found:
        gym.prepare_sim(sim)
    (text,) = [str(warning.message) for warning in found if "fluid" in str(warning.message)]
    assert 'sim_params.solver = "mujoco"' in text
    assert "register_custom_attributes" not in text
