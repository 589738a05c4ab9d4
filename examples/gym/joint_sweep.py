"""Every degree of freedom of a robot swept through its range, one after the other."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Set joint positions and print the frame of what moves."""
    which = {"name": "--asset", "type": str, "default": "crawler.xml", "help": "file in the folder of assets"}
    args = common.parse("sweep of joints", 40, words, which)
    sim = common.make_sim(args, ground=False, gravity=0.0)
    options = gymapi.AssetOptions()
    options.fix_base_link = True
    asset = gym.load_asset(sim, ASSETS, args.asset, options)
    names = gym.get_asset_dof_names(asset)
    properties = gym.get_asset_dof_properties(asset)
    lower = np.where(properties["hasLimits"], properties["lower"], -np.pi)
    upper = np.where(properties["hasLimits"], properties["upper"], np.pi)
    states = np.zeros(len(names), dtype=gymapi.DofState.dtype)
    states["pos"] = rest = np.clip(0.0, lower, upper)
    envs = list(common.make_envs(sim, 1))
    actor = gym.create_actor(envs[0], asset, common.at(z=1.5), "robot", 0, 1)

    def act(frame: int) -> None:
        dof = frame * len(names) // args.frames
        part = frame * len(names) / args.frames - dof
        states["pos"] = rest
        states["pos"][dof] = lower[dof] + part * (upper[dof] - lower[dof])
        gym.set_actor_dof_states(envs[0], actor, states, gymapi.STATE_POS)

    common.run(sim, args.frames, act)
    for index, name in enumerate(names):
        kind = gym.get_dof_type_string(gym.get_asset_dof_type(asset, index))
        frame = gym.get_dof_frame(envs[0], gym.get_actor_dof_handle(envs[0], actor, index))
        print(f"{name}: {kind} about {frame.axis} at {frame.origin}")


if __name__ == "__main__":
    main()
