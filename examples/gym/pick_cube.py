"""Arms that grasp a cube by inverse kinematics and lift it."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi

REST = np.array([0.0, 0.6, 0.0, 1.3, 0.0, 1.24, 0.0, 0.04, 0.04], dtype=np.float32)
HALF = 0.02  # m, of the cube
REACH = 0.11  # m, from the hand to between the fingertips


def main(words: list[str] | None = None) -> None:
    """Approach, close, lift, and print how high the cubes are."""
    args = common.parse("pick up a cube", 300, words)
    sim = common.make_sim(args)
    options = gymapi.AssetOptions()
    options.fix_base_link = True
    options.disable_gravity = True
    options.rest_offset, options.contact_offset = 0.0, 0.005
    arm = gym.load_asset(sim, ASSETS, "arm.urdf", options)
    loose = gymapi.AssetOptions()
    loose.density, loose.rest_offset, loose.contact_offset = 400.0, 0.0, 0.005
    cube = gym.create_box(sim, 2 * HALF, 2 * HALF, 2 * HALF, loose)
    link = gym.get_asset_rigid_body_dict(arm)["hand"]
    hands, cubes = [], []
    for index, env in enumerate(common.make_envs(sim, args.num_envs)):
        actor = gym.create_actor(env, arm, common.at(), "arm", index, 1)
        common.hold_arm(env, actor, REST)
        thing = gym.create_actor(env, cube, common.at(0.55 + 0.02 * index, 0.03, HALF), "cube", index, 0)
        hands.append(gym.find_actor_rigid_body_index(env, actor, "hand", gymapi.DOMAIN_SIM))
        cubes.append(gym.get_actor_rigid_body_index(env, thing, 0, gymapi.DOMAIN_SIM))
    gym.prepare_sim(sim)
    bodies = gym.acquire_rigid_body_state_tensor(sim).numpy()
    dofs = gym.acquire_dof_state_tensor(sim).numpy().reshape(args.num_envs, 9, 2)
    jacobian = gym.acquire_jacobian_tensor(sim, "arm").numpy()[:, link - 1, :, :7]
    start = bodies[cubes, :3].copy()

    def act(frame: int) -> None:
        gym.refresh_rigid_body_state_tensor(sim)
        gym.refresh_dof_state_tensor(sim)
        gym.refresh_jacobian_tensors(sim)
        part = frame / args.frames
        goal = start + np.array([0.0, 0.0, REACH + (0.15 if part < 0.25 or part > 0.6 else 0.0)])
        change = common.reach_down(bodies[hands], jacobian, goal, [0.0, 1.0, 0.0])
        targets = np.empty((args.num_envs, 9), dtype=np.float32)
        targets[:, :7] = dofs[:, :7, 0] + change
        targets[:, 7:] = 0.04 if part < 0.45 else 0.0
        gym.set_dof_position_target_tensor(sim, targets)

    common.run(sim, args.frames, act)
    gym.refresh_rigid_body_state_tensor(sim)
    print("cubes lifted by", (bodies[cubes, 2] - start[:, 2]).astype(float).round(3).tolist(), "m")


if __name__ == "__main__":
    main()
