"""Operational space control: hands moved on circles by torques from Jacobians and mass matrices."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi

REST = np.array([0.0, 0.5, 0.0, 1.2, 0.0, 1.4, 0.0, 0.02, 0.02], dtype=np.float32)
KP = 150.0  # 1/s², of the hand
KD = 2.0 * KP**0.5


def main(words: list[str] | None = None) -> None:
    """Follow the circle, and print how far the hands are from it."""
    args = common.parse("operational space control", 180, words)
    sim = common.make_sim(args)
    options = gymapi.AssetOptions()
    options.fix_base_link = True
    options.disable_gravity = True
    options.angular_damping = 0.0
    asset = gym.load_asset(sim, ASSETS, "arm.urdf", options)
    properties = gym.get_asset_dof_properties(asset)
    properties["driveMode"][:7] = gymapi.DOF_MODE_EFFORT
    properties["driveMode"][7:] = gymapi.DOF_MODE_POS
    properties["stiffness"][:7], properties["damping"][:7] = 0.0, 0.0
    properties["stiffness"][7:], properties["damping"][7:] = 800.0, 40.0
    states = np.zeros(9, dtype=gymapi.DofState.dtype)
    states["pos"] = REST
    link = gym.get_asset_rigid_body_dict(asset)["hand"]
    rows = []
    for index, env in enumerate(common.make_envs(sim, args.num_envs)):
        actor = gym.create_actor(env, asset, common.at(), "arm", index, 1)
        gym.set_actor_dof_properties(env, actor, properties)
        gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
        gym.set_actor_dof_position_targets(env, actor, REST)
        rows.append(gym.find_actor_rigid_body_index(env, actor, "hand", gymapi.DOMAIN_SIM))
    start = np.array(list(gym.get_rigid_transform(gym.get_env(sim, 0), link).p))
    gym.prepare_sim(sim)
    bodies = gym.acquire_rigid_body_state_tensor(sim).numpy()
    dofs = gym.acquire_dof_state_tensor(sim).numpy().reshape(args.num_envs, 9, 2)
    jacobian = gym.acquire_jacobian_tensor(sim, "arm").numpy()[:, link - 1, :, :7]
    matrix = gym.acquire_mass_matrix_tensor(sim, "arm").numpy()[:, :7, :7]
    goal = start.copy()

    def act(frame: int) -> None:
        gym.refresh_rigid_body_state_tensor(sim)
        gym.refresh_dof_state_tensor(sim)
        gym.refresh_jacobian_tensors(sim)
        gym.refresh_mass_matrix_tensors(sim)
        angle = frame / 60.0
        goal[1:] = start[1:] + 0.1 * np.array([np.sin(angle), np.cos(angle) - 1.0])
        hand = bodies[rows]
        mobility = np.linalg.inv(matrix)
        inertia = np.linalg.inv(jacobian @ mobility @ jacobian.transpose(0, 2, 1) + 1e-6 * np.eye(6))
        wanted = np.zeros((args.num_envs, 6))
        wanted[:, :3] = KP * (goal - hand[:, :3])
        wanted -= KD * hand[:, 7:]
        efforts = np.zeros((args.num_envs, 9), dtype=np.float32)
        efforts[:, :7] = np.einsum("eij,ei->ej", jacobian, np.einsum("eij,ej->ei", inertia, wanted))
        efforts[:, :7] -= np.einsum("eij,ej->ei", matrix, 2.0 * dofs[:, :7, 1])
        gym.set_dof_actuation_force_tensor(sim, efforts)

    common.run(sim, args.frames, act)
    gym.refresh_rigid_body_state_tensor(sim)
    print(f"largest distance {np.linalg.norm(bodies[rows, :3] - goal, axis=1).max():.4f} m")


if __name__ == "__main__":
    main()
