"""A pyramid of balls that falls apart, is put back from a saved state, and falls apart again alike."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Drop the balls twice from the same state."""
    levels = {"name": "--levels", "type": int, "default": 5, "help": "levels of the pyramid"}
    args = common.parse("pyramid of balls", 60, words, levels)
    sim = common.make_sim(args)
    ball = gym.load_asset(sim, ASSETS, "ball.urdf", gymapi.AssetOptions())
    for env in common.make_envs(sim, 1):
        for level in range(args.levels):
            side = args.levels - level
            for k in range(side * side):
                x, y = 0.22 * (k % side) + 0.11 * level, 0.22 * (k // side) + 0.11 * level
                gym.create_actor(env, ball, common.at(x, y, 0.15 + 0.19 * level), None, 0, 0)
    saved = np.copy(gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL))
    ends = []
    for _ in range(2):
        common.run(sim, args.frames)
        ends.append(np.copy(gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL)))
        gym.set_sim_rigid_body_states(sim, saved, gymapi.STATE_ALL)
    heights = ends[0]["pose"]["p"]["z"]
    print(f"{len(heights)} balls, lowest at {heights.min():.3f} m, highest at {heights.max():.3f} m")
    print("equal to the last bit:", bool((ends[0] == ends[1]).all()))


if __name__ == "__main__":
    main()
