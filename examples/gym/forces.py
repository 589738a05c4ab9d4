"""Crawlers pushed about by a tensor of forces and torques."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Push the torsos up and turn them, every half second with the other sign."""
    args = common.parse("force tensors", 60, words)
    sim = common.make_sim(args)
    asset = gym.load_asset(sim, ASSETS, "crawler.xml", gymapi.AssetOptions())
    bodies = gym.get_asset_rigid_body_count(asset)
    for index, env in enumerate(common.make_envs(sim, args.num_envs)):
        gym.create_actor(env, asset, common.at(z=1.0), "crawler", index, 1)
    gym.prepare_sim(sim)
    forces = np.zeros((args.num_envs, bodies, 3), dtype=np.float32)
    torques = np.zeros((args.num_envs, bodies, 3), dtype=np.float32)

    def act(frame: int) -> None:
        sign = 1.0 if frame // 30 % 2 == 0 else -1.0
        forces[:, 0, 2] = 12.0
        torques[:, 0, 2] = 0.5 * sign
        gym.apply_rigid_body_force_tensors(sim, forces, torques, gymapi.ENV_SPACE)

    common.run(sim, args.frames, act)
    roots = gym.acquire_actor_root_state_tensor(sim).numpy()
    print("heights:", roots[:, 2].astype(float).round(3).tolist())
    print("all alike:", bool((roots == roots[0]).all()))


if __name__ == "__main__":
    main()
