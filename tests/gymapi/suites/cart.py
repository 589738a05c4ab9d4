"""A pole on a cart, by efforts: TorchScript reward, randomized masses, drives and size."""
# The imports are those of scripts.
# ruff: noqa: F403, F405

import torch

from pluriverse.gymtorch import *
from pluriverse.torch_utils import *
from tests.gymapi.suites.vector_task import VectorTask

from pluriverse import gymapi  # isort: skip

CONFIG = {
    "env": {"numEnvs": 6, "numObservations": 4, "maxEffort": 400.0, "resetDistance": 3.0},
    "sim": {
        "dt": 0.0166,
        "substeps": 2,
        "up_axis": "z",
        "gravity": [0.0, 0.0, -9.81],
        "use_gpu_pipeline": False,
        "physx": {"num_threads": 1, "solver_type": 1, "contact_offset": 0.02, "rest_offset": "1e-3"},
    },
    "task": {
        "randomization": {
            "scale": (0.9, 1.1),
            "properties": {
                "rigid_body_properties": {
                    "mass": {"range": [0.8, 1.2], "operation": "scaling", "distribution": "uniform"}
                },
                "dof_properties": {
                    "damping": {"range": [0.01, 0.1], "operation": "additive", "distribution": "loguniform"}
                },
            },
        }
    },
}


class Cart(VectorTask):
    """Keep the pole up."""

    asset_root = "."

    def create_envs(self):
        options = gymapi.AssetOptions()
        options.fix_base_link = True
        options.angular_damping = 0.0
        asset = self.gym.load_asset(self.sim, self.asset_root, "cartpole.urdf", options)
        lower, upper = gymapi.Vec3(-2.0, -5.0, 0.0), gymapi.Vec3(2.0, 5.0, 4.0)
        pose = gymapi.Transform()
        pose.p.z = 2.0
        for index in range(self.num_envs):
            env = self.gym.create_env(self.sim, lower, upper, int(self.num_envs**0.5))
            actor = self.gym.create_actor(env, asset, pose, "cart", index, 1, 0)
            properties = self.gym.get_actor_dof_properties(env, actor)
            properties["driveMode"] = (gymapi.DOF_MODE_EFFORT, gymapi.DOF_MODE_NONE)
            properties["stiffness"][:] = 0.0
            properties["damping"][:] = 0.0
            self.gym.set_actor_dof_properties(env, actor, properties)
            self.envs.append(env)
            self.actors.append(actor)

    def pre_physics_step(self, actions):
        efforts = torch.zeros((self.num_envs, self.num_dof), device=self.device, dtype=torch.float)
        efforts[:, 0] = actions[:, 0] * self.cfg["env"]["maxEffort"]
        self.gym.set_dof_actuation_force_tensor(self.sim, unwrap_tensor(efforts))

    def post_physics_step(self):
        self.obs_buf[:, 0::2] = self.dof_pos
        self.obs_buf[:, 1::2] = self.dof_vel
        self.rew_buf[:], self.reset_buf[:] = pole_reward(
            self.obs_buf, self.progress_buf, self.cfg["env"]["resetDistance"], 500
        )

    def reset_idx(self, env_ids):
        noise = torch_rand_float(-0.1, 0.1, (len(env_ids), self.num_dof), device=self.device)
        self.dof_pos[env_ids] = noise
        self.dof_vel[env_ids] = 0.0
        indices = self.actor_indices[env_ids]
        self.gym.set_dof_state_tensor_indexed(
            self.sim, unwrap_tensor(self.dof_state), unwrap_tensor(indices), len(indices)
        )
        self.reset_buf[env_ids] = 0
        self.progress_buf[env_ids] = 0


@torch.jit.script
def pole_reward(obs, progress, reset_distance, length):
    # type: (Tensor, Tensor, float, int) -> tuple[Tensor, Tensor]
    angle = normalize_angle(obs[:, 2])
    reward = 1.0 - angle * angle - 0.01 * torch.abs(obs[:, 1])
    out = (torch.abs(obs[:, 0]) > reset_distance) | (torch.abs(angle) > 1.57)
    reward = torch.where(out, torch.ones_like(reward) * -2.0, reward)
    reset = torch.where(out | (progress >= length - 1), torch.ones_like(progress), torch.zeros_like(progress))
    return reward, reset
