"""What assets and actors consist of. Nothing is simulated."""

import common
from common import ASSETS, gym

from pluriverse import gymapi


def describe(sim: gymapi.Sim, filename: str) -> None:
    """Print bodies, joints and degrees of freedom of an asset, and where an actor of it is."""
    asset = gym.load_asset(sim, ASSETS, filename, gymapi.AssetOptions())
    print(f"{filename}: {gym.get_asset_rigid_body_count(asset)} bodies, ", end="")
    print(
        f"{gym.get_asset_rigid_shape_count(asset)} shapes, {gym.get_asset_joint_count(asset)} joints, ",
        end="",
    )
    print(f"{gym.get_asset_dof_count(asset)} degrees of freedom")
    for index in range(gym.get_asset_joint_count(asset)):
        kind = gym.get_joint_type_string(gym.get_asset_joint_type(asset, index))
        print(f"  joint {index} '{gym.get_asset_joint_name(asset, index)}' ({kind})")
    properties = gym.get_asset_dof_properties(asset)
    for index in range(gym.get_asset_dof_count(asset)):
        limits = [round(float(properties[bound][index]), 3) for bound in ("lower", "upper")]
        text = limits if properties["hasLimits"][index] else "none"
        print(f"  dof {index} '{gym.get_asset_dof_name(asset, index)}', limits {text}")
    for env in common.make_envs(sim, 1):
        actor = gym.create_actor(env, asset, common.at(z=1.0), "actor", 0, 1)
        bodies = gym.get_actor_rigid_body_dict(env, actor)
        states = gym.get_actor_rigid_body_states(env, actor, gymapi.STATE_POS)
        for name, index in sorted(bodies.items(), key=lambda item: item[1]):
            print(f"  body {index} '{name}' at {gymapi.Vec3.from_buffer(states['pose']['p'][index])}")
        print(f"  positions: {gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)['pos'].tolist()}")


def main(words: list[str] | None = None) -> None:
    """Describe some assets."""
    sim = common.make_sim(common.parse("assets", 0, words))
    for filename in ("cartpole.urdf", "cabinet.urdf", "crawler.xml", "arm.urdf"):
        describe(sim, filename)


if __name__ == "__main__":
    main()
