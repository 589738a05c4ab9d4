"""A ball joint driven to rotation vectors, without gravity."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Drive the joints of four envs to targets of their own."""
    args = common.parse("ball joints", 120, words)
    sim = common.make_sim(args, ground=False, gravity=0.0)
    options = gymapi.AssetOptions()
    options.fix_base_link = True
    asset = gym.load_asset(sim, ASSETS, "spherical_joint.urdf", options)
    for index, name in enumerate(gym.get_asset_dof_names(asset)):
        kind = gym.get_dof_type_string(gym.get_asset_dof_type(asset, index))
        print(f"{name}: {kind}, limits: {bool(gym.get_asset_dof_properties(asset)['hasLimits'][index])}")
    states = np.zeros(3, dtype=gymapi.DofState.dtype)
    rng = np.random.default_rng(0)
    envs, targets = [], []
    for index, env in enumerate(common.make_envs(sim, args.num_envs)):
        envs.append(env)
        actor = gym.create_actor(env, asset, common.at(z=1.0), "joint", index, 1)
        properties = gym.get_actor_dof_properties(env, actor)
        properties["driveMode"].fill(gymapi.DOF_MODE_POS)
        properties["stiffness"].fill(2000.0)
        properties["damping"].fill(200.0)
        gym.set_actor_dof_properties(env, actor, properties)
        targets.append(rng.uniform(-1.5, 1.5, 3))
        states["pos"] = targets[-1]
        gym.set_actor_dof_position_targets(env, actor, states["pos"])  # a view with gaps
    common.run(sim, args.frames)
    errors = [
        np.abs(gym.get_actor_dof_states(env, 0, gymapi.STATE_POS)["pos"] - target).max()
        for env, target in zip(envs, targets, strict=True)
    ]
    print(f"largest error {max(errors):.4f} rad")


if __name__ == "__main__":
    main()
