"""A bracket as one convex hull, and as the convex pieces of its file: a ball fits only into the second."""

import common
from common import ASSETS, gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Drop a ball onto the inner corner of both."""
    args = common.parse("convex pieces", 60, words)
    sim = common.make_sim(args)
    options = gymapi.AssetOptions()
    options.fix_base_link = True
    options.override_com = options.override_inertia = True
    ball = gym.create_sphere(sim, 0.03)
    heights = {}
    envs = common.make_envs(sim, 2)
    for index, (env, name) in enumerate(zip(envs, ("bracket_hull", "bracket_pieces"), strict=True)):
        asset = gym.load_asset(sim, ASSETS, f"{name}.urdf", options)
        gym.create_actor(env, asset, common.at(), name, index, 0)
        gym.create_actor(env, ball, common.at(x=0.03, z=0.25), "ball", index, 0)
        heights[name] = env
    common.run(sim, args.frames)
    for name, env in heights.items():
        print(f"{name}: ball at {gym.get_rigid_transform(env, 1).p.z:.3f} m")


if __name__ == "__main__":
    main()
