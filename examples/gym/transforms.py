"""Handles of a cabinet followed by their poses while drawer and door open."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Open both, and compare the pose of a handle with what its joint says."""
    args = common.parse("poses of handles", 120, words)
    sim = common.make_sim(args)
    options = gymapi.AssetOptions()
    options.fix_base_link = True
    asset = gym.load_asset(sim, ASSETS, "cabinet.urdf", options)
    print("bodies:", gym.get_asset_rigid_body_names(asset))
    envs = list(common.make_envs(sim, 1))
    actor = gym.create_actor(envs[0], asset, common.at(z=0.5), "cabinet", 0, 2)
    properties = gym.get_actor_dof_properties(envs[0], actor)
    properties["driveMode"].fill(gymapi.DOF_MODE_POS)
    properties["stiffness"].fill(1e6)
    properties["damping"].fill(1e5)
    gym.set_actor_dof_properties(envs[0], actor, properties)
    names = gym.get_actor_dof_names(envs[0], actor)
    targets = np.where(np.array(names) == "drawer_joint", 0.3, -1.2)
    gym.set_actor_dof_position_targets(envs[0], actor, targets)
    common.run(sim, args.frames)
    states = gym.get_actor_rigid_body_states(envs[0], actor, gymapi.STATE_POS)
    offset = gymapi.Transform(gymapi.Vec3(0.0, 0.0, 0.0))
    for handle in ("door_handle", "drawer_handle"):
        index = gym.find_actor_rigid_body_index(envs[0], actor, handle, gymapi.DOMAIN_ACTOR)
        pose = gymapi.Transform.from_buffer(states["pose"][index]) * offset
        print(f"{handle} (body {index}) at {pose.p}")


if __name__ == "__main__":
    main()
