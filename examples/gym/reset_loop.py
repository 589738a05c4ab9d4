"""The loop of reinforcement learning: random efforts, and resets of the envs whose robot has fallen."""

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi


def main(words: list[str] | None = None) -> None:
    """Step, reset what fell, and print how often that was."""
    args = common.parse("resets", 120, words)
    sim = common.make_sim(args)
    asset = gym.load_asset(sim, ASSETS, "crawler.xml", gymapi.AssetOptions())
    foot = gym.get_asset_rigid_body_dict(asset)["foot_0"]
    gym.create_asset_force_sensor(asset, foot, gymapi.Transform())
    actors = []
    for index, env in enumerate(common.make_envs(sim, args.num_envs)):
        actor = gym.create_actor(env, asset, common.at(z=0.6), "crawler", index, 1)
        gym.enable_actor_dof_force_sensors(env, actor)
        actors.append(gym.get_actor_index(env, actor, gymapi.DOMAIN_SIM))
    gym.prepare_sim(sim)
    roots = gym.acquire_actor_root_state_tensor(sim).numpy()
    dofs = gym.acquire_dof_state_tensor(sim).numpy()
    sensors = gym.acquire_force_sensor_tensor(sim).numpy()
    first_roots, first_dofs = roots.copy(), dofs.copy()
    first_dofs[1::2, 0] = 0.9  # ankles
    efforts = np.array([part.motor_effort for part in gym.get_asset_actuator_properties(asset)])
    rng = np.random.default_rng(0)
    count = [0]

    def act(frame: int) -> None:
        gym.refresh_actor_root_state_tensor(sim)
        gym.refresh_dof_state_tensor(sim)
        gym.refresh_force_sensor_tensor(sim)
        fallen = np.flatnonzero((roots[:, 2] < 0.3) | (frame == 0)).astype(np.int32)
        if len(fallen):
            count[0] += len(fallen)
            chosen = np.array(actors, dtype=np.int32)[fallen]
            gym.set_actor_root_state_tensor_indexed(sim, first_roots, chosen, len(chosen))
            gym.set_dof_state_tensor_indexed(sim, first_dofs, chosen, len(chosen))
        actions = rng.uniform(-1.0, 1.0, (args.num_envs, len(efforts))) * efforts
        gym.set_dof_actuation_force_tensor(sim, actions.astype(np.float32))

    common.run(sim, args.frames, act)
    print(
        f"{count[0]} resets, sensors of shape {sensors.shape}, all finite: {bool(np.isfinite(roots).all())}"
    )


if __name__ == "__main__":
    main()
