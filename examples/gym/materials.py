"""Colours and segmentation ids of bodies: stored and given back, without effect on physics."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Give every body of some assets a colour."""
    args = common.parse("visual options", 10, words)
    sim = common.make_sim(args)
    rng = np.random.default_rng(0)
    options = gymapi.AssetOptions()
    options.fix_base_link = True
    options.use_mesh_materials = True
    options.mesh_normal_mode = gymapi.COMPUTE_PER_FACE
    files = ("arm.urdf", "cabinet.urdf", "bracket_hull.urdf")
    for index, (env, name) in enumerate(zip(common.make_envs(sim, len(files)), files, strict=True)):
        asset = gym.load_asset(sim, ASSETS, name, options)
        actor = gym.create_actor(env, asset, common.at(z=0.5), name, index, 1)
        for body in range(gym.get_actor_rigid_body_count(env, actor)):
            color = gymapi.Vec3(*rng.uniform(size=3))
            gym.set_rigid_body_color(env, actor, body, gymapi.MESH_VISUAL_AND_COLLISION, color)
            gym.set_rigid_body_segmentation_id(env, actor, body, 10 * index + body)
        print(name, gym.get_rigid_body_color(env, actor, 0, gymapi.MESH_VISUAL))
    common.run(sim, args.frames)
    print("frames:", gym.get_frame_count(sim))


if __name__ == "__main__":
    main()
