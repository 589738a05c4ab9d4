"""A bin of five boxes welded together, filled with brackets and balls, stirred by the hand of an arm."""

import math

import common
from common import ASSETS, gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Fill the bin, stir, and count what stayed inside."""
    args = common.parse("clutter in a bin", 120, words)
    sim = common.make_sim(args)
    fixed = gymapi.AssetOptions()
    fixed.fix_base_link = True
    fixed.collapse_fixed_joints = True
    arm = gym.load_asset(sim, ASSETS, "arm.urdf", fixed)
    walls = [gym.create_box(sim, *size, fixed) for size in ((0.5, 0.02, 0.2), (0.02, 0.5, 0.2))]
    bracket = gym.load_asset(sim, ASSETS, "bracket_pieces.urdf", gymapi.AssetOptions())
    ball = gym.create_sphere(sim, 0.04)
    env = next(iter(common.make_envs(sim, 1)))
    centre = 0.6
    actor = gym.create_actor(env, arm, common.at(), "arm", 0, 1)
    for side in (-0.25, 0.25):
        gym.create_actor(env, walls[0], common.at(centre, side, 0.1), "wall", 0, 0)
        gym.create_actor(env, walls[1], common.at(centre + side, 0.0, 0.1), "wall", 0, 0)
    things = []
    for index in range(10):
        x, y = centre - 0.1 + 0.2 * (index % 2), -0.1 + 0.2 * (index // 2 % 2)
        asset = bracket if index % 3 == 0 else ball
        things.append(gym.create_actor(env, asset, common.at(x, y, 0.15 + 0.22 * (index // 4)), None, 0, 0))
    states = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)
    states["pos"] = (0.0, 0.5, 0.0, 1.2, 0.0, 1.44, 0.0, 0.0, 0.0)
    gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
    properties = gym.get_actor_dof_properties(env, actor)
    properties["damping"].fill(20.0)
    gym.set_actor_dof_properties(env, actor, properties)
    attractor = gymapi.AttractorProperties()
    attractor.stiffness, attractor.damping, attractor.axes = 1e6, 1e4, gymapi.AXIS_ALL
    attractor.rigid_handle = gym.find_actor_rigid_body_handle(env, actor, "hand")
    attractor.target = gym.get_rigid_transform(env, attractor.rigid_handle)
    handle = gym.create_rigid_body_attractor(env, attractor)
    begin = gymapi.Transform(attractor.target.p, attractor.target.r)

    def act(frame: int) -> None:
        angle = 0.05 * frame
        target = gymapi.Transform(begin.p, begin.r)
        target.p.x = begin.p.x + min(angle, 1.0) * (centre - begin.p.x) + 0.1 * math.sin(angle)
        target.p.y = 0.1 * math.sin(2.0 * angle)
        gym.set_attractor_target(env, handle, target)

    common.run(sim, args.frames, act)
    inside = 0
    for thing in things:
        place = gym.get_rigid_transform(env, gym.get_actor_root_rigid_body_handle(env, thing)).p
        inside += abs(place.x - centre) < 0.3 and abs(place.y) < 0.3 and place.z > 0.0
    print(f"{inside} of {len(things)} things in the bin; contacts: {len(gym.get_env_rigid_contacts(env))}")


if __name__ == "__main__":
    main()
