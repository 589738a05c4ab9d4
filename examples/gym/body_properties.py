"""Three envs in which masses, materials, gravity and velocities of bodies are set one by one."""

import common
from common import ASSETS, gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Let balls of other masses hit each other, others hover, and a capsule slide."""
    args = common.parse("properties of bodies and shapes", 60, words)
    sim = common.make_sim(args, ground=False)
    plane = gymapi.PlaneParams()
    plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
    plane.static_friction = plane.dynamic_friction = 0.0  # a pair has the mean of both shapes
    gym.add_ground(sim, plane)
    options = gymapi.AssetOptions()
    options.angular_damping = 0.0
    ball = gym.load_asset(sim, ASSETS, "ball.urdf", options)
    options.disable_gravity = True  # of what is loaded from now on
    hovering = gym.load_asset(sim, ASSETS, "ball.urdf", options)
    options.disable_gravity = False
    capsule = gym.create_capsule(sim, 0.1, 0.4, options)
    envs = list(common.make_envs(sim, 1, 6.0))

    heavy = gym.create_actor(envs[0], ball, common.at(0.0, 0.0, 0.101), "heavy", 0, 0)
    gym.create_actor(envs[0], ball, common.at(1.0, 0.0, 0.101), "light", 0, 0)
    properties = gym.get_actor_rigid_body_properties(envs[0], heavy)
    properties[0].mass *= 10.0
    gym.set_actor_rigid_body_properties(envs[0], heavy, properties, True)
    for actor in range(2):
        shapes = gym.get_actor_rigid_shape_properties(envs[0], actor)
        shapes[0].friction, shapes[0].restitution, shapes[0].compliance = 0.0, 1.0, 1e-6
        gym.set_actor_rigid_shape_properties(envs[0], actor, shapes)
    gym.set_rigid_linear_velocity(
        envs[0], gym.get_rigid_handle(envs[0], "heavy", "ball"), gymapi.Vec3(2, 0, 0)
    )

    envs += list(common.make_envs(sim, 1, 6.0))
    still = gym.create_actor(envs[1], hovering, common.at(z=1.0), "still", 1, 0)
    falling = gym.create_actor(envs[1], hovering, common.at(x=1.0, z=1.0), "falling", 1, 0)
    properties = gym.get_actor_rigid_body_properties(envs[1], falling)
    properties[0].flags = gymapi.RIGID_BODY_NONE
    gym.set_actor_rigid_body_properties(envs[1], falling, properties)

    envs += list(common.make_envs(sim, 1, 6.0))
    slippery = gym.create_actor(envs[2], capsule, common.at(z=0.102), "slippery", 2, 0)
    shapes = gym.get_actor_rigid_shape_properties(envs[2], slippery)
    shapes[0].friction = 0.0
    gym.set_actor_rigid_shape_properties(envs[2], slippery, shapes)
    print("bodies of the capsule:", gym.get_actor_rigid_body_names(envs[2], slippery))
    gym.set_rigid_linear_velocity(
        envs[2], gym.get_rigid_handle(envs[2], "slippery", "capsule"), gymapi.Vec3(1, 0, 0)
    )

    common.run(sim, args.frames)
    hit = gym.get_rigid_linear_velocity(envs[0], 1).x
    print(f"light ball goes on at {hit:.2f} m/s")
    heights = [gym.get_rigid_transform(envs[1], actor).p.z for actor in (still, falling)]
    print(f"hovering at {heights[0]:.3f} m, fallen to {heights[1]:.3f} m")
    print(f"capsule slides at {gym.get_rigid_linear_velocity(envs[2], 0).x:.3f} m/s")


if __name__ == "__main__":
    main()
