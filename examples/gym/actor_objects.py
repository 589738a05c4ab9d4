"""The same sim in another style: actors, bodies and degrees of freedom as objects."""

import common
from common import ASSETS, gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Drive a cartpole by name, push a box, and let it grow."""
    args = common.parse("actors as objects", 120, words)
    sim = common.make_sim(args)
    options = gymapi.AssetOptions()
    options.fix_base_link = True
    cartpole = gym.load_asset(sim, ASSETS, "cartpole.urdf", options)
    box = gym.create_box(sim, 0.2, 0.2, 0.2)
    env = next(iter(common.make_envs(sim, 1)))
    gym.create_actor(env, cartpole, common.at(z=2.0), "cartpole", 0, 1)
    gym.create_actor(env, box, common.at(x=2.0, z=0.5), "box", 0, 0)

    robot, crate = gymapi.actor_views(env)
    drives = robot.dof_properties
    drives["driveMode"].fill(gymapi.DOF_MODE_POS)
    drives["stiffness"], drives["damping"] = 2000.0, 200.0
    robot.dof_properties = drives
    robot.dofs["slider_to_cart"].position_target = 0.5
    robot.dofs["cart_to_pole"].position_target = 0.3
    crate.scale = 2.0
    crate.bodies["box"].mass = 4.0

    def act(frame: int) -> None:
        if frame < 10:
            crate.bodies["box"].apply_force((80.0, 0.0, 0.0))

    common.run(sim, args.frames, act)
    print({name: round(dof.position, 3) for name, dof in robot.dofs.items()})
    print(f"{crate.name} at {crate.pose.p}, contact force {crate.bodies['box'].contact_force.z:.1f} N")


if __name__ == "__main__":
    main()
