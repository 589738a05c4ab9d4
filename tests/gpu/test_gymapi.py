"""The actor API with both pipelines: the same numbers, whichever device they are on."""

import warnings

import numpy as np
import pytest
import warp as wp

from pluriverse import gymapi
from tests.gymapi.scenes import add_env, at, make_params, undamped, write_assets
from tests.gymapi.test_every_getter import TENDON

pytestmark = pytest.mark.gpu

ENV_COUNT = 16
STEP_COUNT = 30


def run(device: str, folder: str) -> dict[str, np.ndarray]:
    """Drive robots by tensors next to falling boxes, reset some envs, and return what the tensors hold."""
    gym = gymapi.acquire_gym()
    params = make_params()
    on_gpu = device != "cpu"
    params.use_gpu_pipeline = params.physx.use_gpu = on_gpu
    sim = gym.create_sim(int(device.partition(":")[2] or 0), -1, gymapi.SIM_PHYSX, params)
    plane = gymapi.PlaneParams()
    plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
    gym.add_ground(sim, plane)
    robot = gym.load_asset(sim, folder, "branched.urdf", undamped(fix_base_link=True))
    box = gym.create_box(sim, 0.2, 0.2, 0.2, undamped())
    for index in range(ENV_COUNT):
        env = add_env(sim)
        gym.create_actor(env, robot, at(z=1.0), "robot", index, 1)
        if index % 2:
            gym.create_actor(env, box, at(x=0.9, z=0.15 + 0.01 * index), "box", index, 0)
    gym.prepare_sim(sim)
    tensors = {
        "roots": gym.acquire_actor_root_state_tensor(sim),
        "dofs": gym.acquire_dof_state_tensor(sim),
        "bodies": gym.acquire_rigid_body_state_tensor(sim),
        "contacts": gym.acquire_net_contact_force_tensor(sim),
        "jacobian": gym.acquire_jacobian_tensor(sim, "robot"),
        "mass": gym.acquire_mass_matrix_tensor(sim, "robot"),
    }
    rng = np.random.default_rng(0)
    beginning = tensors["roots"].numpy().copy()
    for step in range(STEP_COUNT):
        efforts = rng.uniform(-0.5, 0.5, sim.dof_count).astype(np.float32)
        gym.set_dof_actuation_force_tensor(sim, on_device(efforts, sim))
        if step == 20:
            rows = on_device(np.arange(0, sim.actor_count, 3, dtype=np.int32), sim)
            gym.set_actor_root_state_tensor_indexed(sim, on_device(beginning, sim), rows, len(rows))
        gym.simulate(sim)
        gym.fetch_results(sim, True)
    gym.refresh_actor_root_state_tensor(sim)
    gym.refresh_dof_state_tensor(sim)
    gym.refresh_rigid_body_state_tensor(sim)
    gym.refresh_net_contact_force_tensor(sim)
    gym.refresh_jacobian_tensors(sim)
    gym.refresh_mass_matrix_tensors(sim)
    result = {name: tensor.numpy().copy() for name, tensor in tensors.items()}
    gym.destroy_sim(sim)
    return result


def on_device(values: np.ndarray, sim: gymapi.Sim):
    """Return values as an array on the device of a sim."""
    return wp.array(values, device=sim.device)


def test_tensors_hold_the_numbers_of_the_cpu(device: str, tmp_path):
    """States, forces of contacts, Jacobians and mass matrices after driven steps and a reset."""
    write_assets(tmp_path)
    cpu, gpu = run("cpu", str(tmp_path)), run(device, str(tmp_path))
    assert np.abs(cpu["contacts"]).max() > 1.0
    for name, expected in cpu.items():
        # Thirty steps of fused products and contacts; forces of contacts are stiff.
        scale = np.abs(expected).max() * (10.0 if name == "contacts" else 1.0)
        np.testing.assert_allclose(gpu[name], expected, rtol=0, atol=1e-3 * scale, err_msg=name)


def run_changes(device: str, folder: str) -> dict[str, np.ndarray]:
    """Scale robots mid-run together with a reset, bounce balls, pull tendons; return states and masses."""
    gym = gymapi.acquire_gym()
    params = make_params()
    params.use_gpu_pipeline = params.physx.use_gpu = device != "cpu"
    sim = gym.create_sim(int(device.partition(":")[2] or 0), -1, gymapi.SIM_PHYSX, params)
    plane = gymapi.PlaneParams()
    plane.normal, plane.restitution = gymapi.Vec3(0.0, 0.0, 1.0), 0.8
    gym.add_ground(sim, plane)
    robot = gym.load_asset(sim, folder, "branched.urdf", undamped(fix_base_link=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what importers say of tendons is tested with them
        finger = gym.load_asset(sim, folder, "finger.xml", undamped())
    ball = gym.create_sphere(sim, 0.1, undamped())
    for index in range(4):
        env = add_env(sim)
        gym.create_actor(env, robot, at(z=1.0), "robot", index, 1)
        gym.create_actor(env, ball, at(x=0.9, z=0.3 + 0.05 * index), "ball", index, 0)
        gym.create_actor(env, finger, at(x=-0.9, z=1.0), "finger", index, 1)
        shapes = gym.get_actor_rigid_shape_properties(env, 1)
        shapes[0].restitution, shapes[0].rolling_friction, shapes[0].torsion_friction = 0.8, 0.01, 0.02
        gym.set_actor_rigid_shape_properties(env, 1, shapes)
        tendons = gym.get_actor_tendon_properties(env, 2)
        tendons[0].stiffness, tendons[0].fixed_spring_rest_length = 0.2, 0.3
        gym.set_actor_tendon_properties(env, 2, tendons)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gymapi.GymWarning)  # calls on the host copy data from a GPU
        for step in range(STEP_COUNT):
            if step in (5, 15):
                env = gym.get_env(sim, step // 5)
                gym.set_actor_scale(env, 0, 1.3)
                states = gym.get_actor_dof_states(env, 0, gymapi.STATE_ALL)
                states["pos"], states["vel"] = 0.02, 0.1
                gym.set_actor_dof_states(env, 0, states, gymapi.STATE_ALL)
                gym.set_actor_tendon_offset(env, 2, 0, 0.1)
            gym.simulate(sim)
        result = {
            "bodies": gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL).view(np.float32).copy(),
            "dofs": gym.get_sim_dof_states(sim, gymapi.STATE_ALL).view(np.float32).copy(),
            "masses": np.array([part.mass for part in gym.get_actor_rigid_body_properties(env, 0)]),
        }
    gym.destroy_sim(sim)
    return result


def test_changes_between_steps_have_the_effect_of_the_cpu(device: str, tmp_path):
    """Scale, resets, restitution, rolling friction and tendons, set by calls on the host."""
    write_assets(tmp_path)
    (tmp_path / "finger.xml").write_text(TENDON)
    cpu, gpu = run_changes("cpu", str(tmp_path)), run_changes(device, str(tmp_path))
    for name, expected in cpu.items():
        atol = 1e-3 * np.abs(expected).max()
        np.testing.assert_allclose(gpu[name], expected, rtol=0, atol=atol, err_msg=name)
