"""Robots of all sizes, of one asset, and one that grows while it stands."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Create arms of several sizes, let one grow, and print how far their hands reach."""
    args = common.parse("actors of other sizes", 60, words)
    sim = common.make_sim(args)
    options = gymapi.AssetOptions()
    options.fix_base_link = True
    asset = gym.load_asset(sim, ASSETS, "arm.urdf", options)
    sizes = (0.5, 1.0, 1.5, 1.0)
    envs = []
    for index, env in enumerate(common.make_envs(sim, len(sizes), 4.0)):
        envs.append(env)
        actor = gym.create_actor(env, asset, common.at(), "arm", index, 1)
        properties = gym.get_actor_dof_properties(env, actor)
        properties["driveMode"].fill(gymapi.DOF_MODE_POS)
        properties["stiffness"].fill(400.0)
        properties["damping"].fill(40.0)
        gym.set_actor_dof_properties(env, actor, properties)
        gym.set_actor_scale(env, actor, sizes[index])

    def act(frame: int) -> None:
        gym.set_actor_scale(envs[3], 0, 1.0 + 0.5 * (frame + 1) / args.frames)

    common.run(sim, args.frames, act)
    hand = gym.find_actor_rigid_body_handle(envs[0], 0, "hand")
    heights = [gym.get_rigid_transform(env, hand).p.z for env in envs]
    masses = [sum(part.mass for part in gym.get_actor_rigid_body_properties(env, 0)) for env in envs]
    for env, height, mass in zip(envs, heights, masses, strict=True):
        print(f"size {gym.get_actor_scale(env, 0):.2f}: hand at {height:.3f} m, {mass:.2f} kg")
    print("grown and built agree:", bool(np.isclose(heights[2], heights[3], rtol=1e-2)))


if __name__ == "__main__":
    main()
