"""Boxes of a shared group fly into the crawlers of all envs."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Throw a box along the row of envs, put everything back, and throw again."""
    args = common.parse("projectiles", 60, words)
    sim = common.make_sim(args)
    crawler = gym.load_asset(sim, ASSETS, "crawler.xml", gymapi.AssetOptions())
    options = gymapi.AssetOptions()
    options.density = 5000.0
    box = gym.create_box(sim, 0.3, 0.3, 0.3, options)
    envs = []
    for index in range(3):
        envs.append(gym.create_env(sim, gymapi.Vec3(-1, -1, 0), gymapi.Vec3(1, 1, 2), 3))
        actor = gym.create_actor(envs[-1], crawler, common.at(z=0.5), "crawler", index, 1)
        properties = gym.get_actor_dof_properties(envs[-1], actor)
        properties["driveMode"].fill(gymapi.DOF_MODE_NONE)
        properties["damping"].fill(0.0)
        gym.set_actor_dof_properties(envs[-1], actor, properties)
    last = gym.create_env(sim, gymapi.Vec3(-1, -1, 0), gymapi.Vec3(1, 1, 2), 3)
    start = -1.0 * np.array(list(gym.get_env_origin(last)))  # as seen from its env, beside the first one
    thrown = gym.create_actor(last, box, common.at(start[0] - 1.5, start[1], 0.6), "box", -1, 0)
    saved = np.copy(gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL))
    for _ in range(2):
        gym.set_sim_rigid_body_states(sim, saved, gymapi.STATE_ALL)
        states = gym.get_actor_rigid_body_states(last, thrown, gymapi.STATE_NONE)
        states["pose"] = saved[-1:]["pose"]
        states["vel"]["linear"] = (12.0, 0.0, 1.0)
        gym.set_actor_rigid_body_states(last, thrown, states, gymapi.STATE_ALL)
        common.run(sim, args.frames)
        moved = [gym.get_rigid_transform(env, 0).p.x for env in envs]
        print("torsos were pushed by", [round(x, 2) for x in moved], "m")


if __name__ == "__main__":
    main()
