"""Crawlers lifted at a point beside their torso, by PyTorch tensors if installed, else NumPy arrays."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi, gymtorch

try:
    import torch
except ImportError:
    torch = None


def main(words: list[str] | None = None) -> None:
    """Lift at a point half a metre ahead, so that the torso tips."""
    args = common.parse("forces at points", 20, words)
    sim = common.make_sim(args)
    asset = gym.load_asset(sim, ASSETS, "crawler.xml", gymapi.AssetOptions())
    bodies = gym.get_asset_rigid_body_count(asset)
    for index, env in enumerate(common.make_envs(sim, args.num_envs)):
        gym.create_actor(env, asset, common.at(z=1.0), "crawler", index, 1)
    gym.prepare_sim(sim)
    states = gym.acquire_rigid_body_state_tensor(sim)
    rows = states.numpy() if torch is None else gymtorch.wrap_tensor(states)

    def act(frame: int) -> None:
        gym.refresh_rigid_body_state_tensor(sim)
        points = rows.reshape(args.num_envs, bodies, 13)[..., :3]
        if torch is None:
            points, forces = points.copy(), np.zeros((args.num_envs, bodies, 3), dtype=np.float32)
        else:
            points, forces = points.clone(), torch.zeros((args.num_envs, bodies, 3))
        points[:, 0, 0] += 0.5
        forces[:, 0, 2] = 5.0
        wrap = (lambda tensor: tensor) if torch is None else gymtorch.unwrap_tensor
        gym.apply_rigid_body_force_at_pos_tensors(sim, wrap(forces), wrap(points), gymapi.ENV_SPACE)

    common.run(sim, args.frames, act)
    env = gym.get_env(sim, 0)
    print(f"torso turns at {gym.get_rigid_angular_velocity(env, 0).y:.3f} rad/s about y")


if __name__ == "__main__":
    main()
