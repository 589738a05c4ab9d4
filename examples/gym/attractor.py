"""Hands of arms pulled along a circle by attractors."""

import math

import common
from common import ASSETS, gym

from pluriverse import gymapi

REST = (0.0, 0.5, 0.0, 1.2, 0.0, 1.4, 0.0, 0.02, 0.02)


def main(words: list[str] | None = None) -> None:
    """Pull, and print how far the hands are from their targets."""
    args = common.parse("attractors", 180, words)
    sim = common.make_sim(args)
    options = gymapi.AssetOptions()
    options.fix_base_link = True
    asset = gym.load_asset(sim, ASSETS, "arm.urdf", options)
    envs, attractors, centres = [], [], []
    for index, env in enumerate(common.make_envs(sim, args.num_envs)):
        envs.append(env)
        actor = gym.create_actor(env, asset, common.at(), "arm", index, 2)
        states = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)
        states["pos"] = REST
        gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
        properties = gym.get_actor_dof_properties(env, actor)
        properties["damping"] = 5.0
        properties["driveMode"][7:] = gymapi.DOF_MODE_POS
        properties["stiffness"][7:] = 1e4
        gym.set_actor_dof_properties(env, actor, properties)
        bodies = gym.get_actor_rigid_body_dict(env, actor)
        poses = gym.get_actor_rigid_body_states(env, actor, gymapi.STATE_POS)["pose"]
        attractor = gymapi.AttractorProperties()
        attractor.stiffness, attractor.damping = 5e5, 5e3
        attractor.axes = gymapi.AXIS_ALL
        attractor.rigid_handle = gym.find_actor_rigid_body_handle(env, actor, "hand")
        attractor.target = poses[bodies["hand"]]
        centres.append(gymapi.Transform.from_buffer(poses[bodies["hand"]]))
        attractors.append(gym.create_rigid_body_attractor(env, attractor))

    def act(frame: int) -> None:
        time = gym.get_sim_time(sim)
        for index, (env, attractor) in enumerate(zip(envs, attractors, strict=True)):
            target = gym.get_attractor_properties(env, attractor).target
            target.p.y = centres[index].p.y + 0.1 * math.sin(1.5 * time + index)
            target.p.z = centres[index].p.z + 0.1 * math.cos(1.5 * time + index) - 0.1 * math.cos(index)
            gym.set_attractor_target(env, attractor, target)

    common.run(sim, args.frames, act)
    hand = gym.find_actor_rigid_body_handle(envs[0], 0, "hand")
    errors = []
    for env, attractor in zip(envs, attractors, strict=True):
        way = gym.get_rigid_transform(env, hand).p - gym.get_attractor_properties(env, attractor).target.p
        errors.append(way.length())
    print(f"largest distance {max(errors):.4f} m")


if __name__ == "__main__":
    main()
