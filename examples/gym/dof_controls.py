"""Cartpoles moved by position, velocity and effort, by calls on single degrees of freedom."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi

MODES = [gymapi.DOF_MODE_POS, gymapi.DOF_MODE_VEL, gymapi.DOF_MODE_EFFORT]


def main(words: list[str] | None = None) -> None:
    """Move the carts and print where they end."""
    args = common.parse("control of degrees of freedom", 120, words)
    sim = common.make_sim(args)
    options = gymapi.AssetOptions()
    options.fix_base_link = True
    asset = gym.load_asset(sim, ASSETS, "cartpole.urdf", options)
    envs = []
    for index, env in enumerate(common.make_envs(sim, 3)):
        envs.append(env)
        actor = gym.create_actor(env, asset, common.at(z=2.0), "cartpole", index, 1)
        properties = gym.get_actor_dof_properties(env, actor)
        properties["driveMode"] = (MODES[index], gymapi.DOF_MODE_POS)
        properties["stiffness"] = (5000.0 if index == 0 else 0.0, 1000.0)
        properties["damping"] = (0.0, 500.0, 0.0)[index], 100.0
        if index == 0:
            properties["damping"][0] = 200.0
        gym.set_actor_dof_properties(env, actor, properties)
    carts = [gym.find_actor_dof_handle(env, 0, "slider_to_cart") for env in envs]
    poles = [gym.find_actor_dof_handle(env, 0, "cart_to_pole") for env in envs]
    gym.set_dof_target_position(envs[0], carts[0], 1.0)
    gym.set_dof_target_position(envs[0], poles[0], np.pi / 4)
    gym.set_dof_target_velocity(envs[1], carts[1], -0.5)

    def act(frame: int) -> None:
        position = gym.get_dof_position(envs[2], carts[2])
        speed = gym.get_dof_velocity(envs[2], carts[2])
        gym.apply_dof_effort(envs[2], carts[2], -50.0 * (position + 0.5) - 20.0 * speed)

    common.run(sim, args.frames, act)
    for env, cart, pole in zip(envs, carts, poles, strict=True):
        positions = [gym.get_dof_position(env, dof) for dof in (cart, pole)]
        print(f"cart at {positions[0]:.3f} m, pole at {positions[1]:.3f} rad")


if __name__ == "__main__":
    main()
