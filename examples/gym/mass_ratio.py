"""A stack of cubes, each ten times as heavy as the one below it."""

import common
from common import gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Build the stack, wait, and print how far each cube sank."""
    args = common.parse("stack of growing masses", 120, words)
    sim = common.make_sim(args)
    cubes = []
    for level in range(5):
        options = gymapi.AssetOptions()
        options.density = 100.0 * 10.0**level
        cubes.append(gym.create_box(sim, 0.2, 0.2, 0.2, options))
    envs = []
    for index, env in enumerate(common.make_envs(sim, args.num_envs)):
        envs.append(env)
        for level, cube in enumerate(cubes):
            gym.create_actor(env, cube, common.at(z=0.103 + 0.204 * level), f"cube_{level}", index, 0)
    common.run(sim, args.frames)
    states = gym.get_env_rigid_body_states(envs[0], gymapi.STATE_POS)
    for level, height in enumerate(states["pose"]["p"]["z"]):
        print(f"cube {level}: {height:.3f} m, sank {0.102 + 0.202 * level - height:.4f} m")


if __name__ == "__main__":
    main()
