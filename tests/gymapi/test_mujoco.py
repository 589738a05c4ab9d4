"""The API with SolverMuJoCo: drives, limits, states, tensors, sensors, masses and scale."""

import warnings

import numpy as np
import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import add_env, at, make_sim, undamped

pytest.importorskip("mujoco", reason="mujoco is not installed")
# Steps of first order, and contacts that give way: with substeps of 1 to 2 ms both solvers agree to this.
AGREEMENT = 5e-3


def cart_sims(gym, assets, *, envs=1, substeps=8):
    """Return a sim of each solver with a cartpole in each env."""
    result = {}
    for solver in ("sap", "mujoco"):
        sim = make_sim(substeps=substeps)
        sim.params.solver = solver
        asset = gym.load_asset(sim, assets, "cartpole.urdf", undamped(fix_base_link=True))
        for index in range(envs):
            gym.create_actor(add_env(sim), asset, at(z=2.0), "cartpole", index, 1)
        result[solver] = sim
    return result


def drive(gym, env, mode, stiffness=0.0, damping=0.0, **values):
    properties = gym.get_actor_dof_properties(env, 0)
    properties["driveMode"], properties["stiffness"], properties["damping"] = mode, stiffness, damping
    for name, value in values.items():
        properties[name] = value
    gym.set_actor_dof_properties(env, 0, properties)


@pytest.fixture(autouse=True)
def quiet():
    """What SolverMuJoCo says of assets is tested with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_drives_and_states_agree_with_those_of_sap(gym, assets):
    """Position, velocity and effort drives move a cartpole alike, from states that were set."""
    for mode, gains, command in (
        (gymapi.DOF_MODE_POS, (200.0, 30.0), "set_actor_dof_position_targets"),
        (gymapi.DOF_MODE_VEL, (0.0, 50.0), "set_actor_dof_velocity_targets"),
        (gymapi.DOF_MODE_EFFORT, (0.0, 0.5), "apply_actor_dof_efforts"),
    ):
        found = []
        for sim in cart_sims(gym, assets, substeps=16).values():
            env = gym.get_env(sim, 0)
            drive(gym, env, mode, *gains)
            states = gym.get_actor_dof_states(env, 0, gymapi.STATE_ALL)
            states["pos"], states["vel"] = (0.3, 0.2), (0.5, -0.4)
            gym.set_actor_dof_states(env, 0, states, gymapi.STATE_ALL)
            for _ in range(30):
                getattr(gym, command)(env, 0, np.array([0.7, 0.3]))
                gym.simulate(sim)
            states = gym.get_actor_dof_states(env, 0, gymapi.STATE_ALL)
            found.append([*states["pos"], *states["vel"]])
        np.testing.assert_allclose(found[1], found[0], atol=10 * AGREEMENT if mode == 3 else AGREEMENT)


def test_limits_of_position_speed_and_effort_hold(gym, assets):
    """Pushed with more than its effort, a cart accelerates by that, up to its speed, and stops at its end."""
    sim = cart_sims(gym, assets)["mujoco"]
    env = gym.get_env(sim, 0)
    drive(gym, env, gymapi.DOF_MODE_EFFORT, velocity=(0.5, 20.0), effort=(3.0, 1.0), upper=(0.3, 0.0))
    for _ in range(6):
        gym.apply_actor_dof_efforts(env, 0, np.array([50.0, 0.0]))
        gym.simulate(sim)
    state = gym.get_actor_dof_states(env, 0, gymapi.STATE_ALL)
    # The pole gives way: it counts with m (1 - m l^2 / (I + m l^2)).
    mass = 1.0 + 0.5 * (1.0 - 0.125 / (0.05 + 0.125))
    np.testing.assert_allclose(state["vel"][0], 3.0 / mass * 0.1, rtol=0.05)
    fastest = 0.0
    for _ in range(90):
        gym.apply_actor_dof_efforts(env, 0, np.array([50.0, 0.0]))
        gym.simulate(sim)
        state = gym.get_actor_dof_states(env, 0, gymapi.STATE_ALL)
        fastest = max(fastest, float(state["vel"][0]))
    assert 0.4 < fastest < 0.51
    assert 0.25 < state["pos"][0] < 0.32


def test_tensors_set_and_read_any_env(gym, assets):
    """Indexed setters, targets and body tensors: closed form of a cart and its pole in each env."""
    sim = cart_sims(gym, assets, envs=3)["mujoco"]
    for index in range(3):
        drive(gym, gym.get_env(sim, index), gymapi.DOF_MODE_POS, 1e5, 1e4)
    gym.prepare_sim(sim)
    dofs, bodies = gym.acquire_dof_state_tensor(sim), gym.acquire_rigid_body_state_tensor(sim)
    wanted = np.zeros((6, 2), dtype=np.float32)
    wanted[:, 0] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    gym.set_dof_state_tensor_indexed(sim, wanted, np.array([0, 2], dtype=np.int32), 2)
    gym.set_dof_position_target_tensor_indexed(sim, wanted[:, 0].copy(), np.array([0, 2], dtype=np.int32), 2)
    gym.refresh_dof_state_tensor(sim)
    gym.refresh_rigid_body_state_tensor(sim)
    wanted[2:4] = 0.0
    np.testing.assert_array_equal(dofs.numpy(), wanted)
    np.testing.assert_allclose(bodies.numpy()[2::3, 1], [0.1, 0.0, 0.5], atol=1e-6)
    for _ in range(20):
        gym.simulate(sim)
    gym.refresh_dof_state_tensor(sim)
    np.testing.assert_allclose(dofs.numpy()[:, 0], wanted[:, 0], atol=2e-3)


def test_masses_and_scale_change_between_steps(gym, assets):
    """Twice as heavy a box accelerates half as much; a scaled pole swings as slowly as one of its length.

    Its period grows with the root of the scale: 2 pi sqrt((I + m l^2) / (m g l)).
    """
    sims = cart_sims(gym, assets)
    for sim in sims.values():
        env = gym.get_env(sim, 0)
        drive(gym, env, gymapi.DOF_MODE_POS, (1e6, 0.0), (1e5, 0.0))  # the cart is held
        box = gym.create_actor(env, gym.create_box(sim, 0.2, 0.2, 0.2, undamped()), at(x=3.0), "box", 0, 0)
        for scale in (1.0, 1.69):
            gym.set_actor_scale(env, 0, scale, scale_gains=False)
            states = gym.get_actor_dof_states(env, 0, gymapi.STATE_ALL)
            states["pos"], states["vel"] = (0.0, np.pi - 0.05), 0.0
            gym.set_actor_dof_states(env, 0, states, gymapi.STATE_ALL)
            length, mass, inertia = 0.5 * scale, 0.5 * scale**3, 0.05 * scale**5
            rate = np.sqrt(mass * 9.81 * length / (inertia + mass * length**2))
            for _ in range(30):
                gym.simulate(sim)
            angle = gym.get_actor_dof_states(env, 0, gymapi.STATE_ALL)["pos"][1]
            np.testing.assert_allclose(angle, np.pi - 0.05 * np.cos(0.5 * rate), atol=1e-3)
        body = gym.find_actor_rigid_body_handle(env, box, "box")
        speeds = []
        for factor in (1.0, 2.0):
            properties = gym.get_actor_rigid_body_properties(env, box)
            properties[0].mass *= factor
            gym.set_actor_rigid_body_properties(env, box, properties, True)
            before = gym.get_rigid_linear_velocity(env, body).x
            gym.apply_body_forces(env, body, gymapi.Vec3(16.0, 0, 0))
            gym.simulate(sim)
            speeds.append(gym.get_rigid_linear_velocity(env, body).x - before)
        np.testing.assert_allclose(speeds, [2.0 / 60.0, 1.0 / 60.0], rtol=1e-3)


def test_sensors_read_the_weight(gym):
    """Contact forces and force sensors of a box at rest."""
    sim = make_sim(ground=True)
    sim.params.solver = "mujoco"
    asset = gym.create_box(sim, 0.2, 0.2, 0.2, undamped())
    gym.create_asset_force_sensor(asset, 0, gymapi.Transform())
    env = add_env(sim)
    gym.create_actor(env, asset, at(z=0.1), "box", 0, 0)
    gym.prepare_sim(sim)
    forces, sensors = gym.acquire_net_contact_force_tensor(sim), gym.acquire_force_sensor_tensor(sim)
    for _ in range(120):
        gym.simulate(sim)
    gym.refresh_net_contact_force_tensor(sim)
    gym.refresh_force_sensor_tensor(sim)
    np.testing.assert_allclose(forces.numpy()[0], [0.0, 0.0, 8.0 * 9.81], atol=0.5)
    np.testing.assert_allclose(sensors.numpy()[0], 0.0, atol=0.5)
