"""Walkers that move on to harder tiles when they got far and back when they did not, and come back alone."""
# The imports are those of scripts.
# ruff: noqa: F403, F405, N801, D106

import torch

from pluriverse import gymtorch
from pluriverse.torch_utils import *
from tests.gymapi.suites.walker import Walker, WalkerConfig


class CurriculumConfig(WalkerConfig):
    class env:
        num_envs = 6

    class terrain(WalkerConfig.terrain):
        mesh_type = "heightfield"
        tiles = 3, 2


class CurriculumWalker(Walker):
    """A walker whose tile depends on what it did; the row of a tile is its level."""

    def _init_buffers(self):
        super()._init_buffers()
        rows, columns = self.cfg.terrain.tiles
        self.levels = torch.arange(self.num_envs, device=self.device) // columns % rows
        self.columns = torch.arange(self.num_envs, device=self.device) % columns
        self.tile_origins = torch.from_numpy(self.terrain.origins).to(self.device).to(torch.float)
        self.env_origins = self.tile_origins[self.levels, self.columns]
        self.base_init_state = to_torch([0.0, 0.0, 0.42] + [0.0, 0.0, 0.0, 1.0] + [0.0] * 6)
        self.reset_buf = torch.zeros(self.num_envs, dtype=torch.bool)
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long)
        self.extras = {}

    def check_termination(self, length):
        trunk = torch.norm(self.contact_forces[:, 0, :], dim=-1) > 1.0
        self.reset_buf = trunk | (self.episode_length_buf >= length)
        return self.reset_buf.nonzero(as_tuple=False).flatten()

    def update_terrain_levels(self, env_ids):
        distance = torch.norm(self.root_states[env_ids, :2] - self.env_origins[env_ids, :2], dim=1)
        move_up = distance > self.cfg.terrain.size / 4
        move_down = (distance < 0.2) * ~move_up
        self.levels[env_ids] += 1 * move_up - 1 * move_down
        rows = self.cfg.terrain.tiles[0]
        self.levels[env_ids] = torch.where(
            self.levels[env_ids] >= rows,
            torch.randint_like(self.levels[env_ids], rows),
            torch.clip(self.levels[env_ids], 0),
        )
        self.env_origins[env_ids] = self.tile_origins[self.levels[env_ids], self.columns[env_ids]]

    def reset_idx(self, env_ids):
        if len(env_ids) == 0:
            return
        self.update_terrain_levels(env_ids)
        self.dof_pos[env_ids] = self.rest * torch_rand_float(0.9, 1.1, (len(env_ids), self.num_dof), "cpu")
        self.dof_vel[env_ids] = 0.0
        env_ids_int32 = env_ids.to(dtype=torch.int32)
        self.gym.set_dof_state_tensor_indexed(
            self.sim,
            gymtorch.unwrap_tensor(self.dof_state),
            gymtorch.unwrap_tensor(env_ids_int32),
            len(env_ids_int32),
        )
        self.root_states[env_ids] = self.base_init_state
        self.root_states[env_ids, :3] += self.env_origins[env_ids]
        self.gym.set_actor_root_state_tensor_indexed(
            self.sim,
            gymtorch.unwrap_tensor(self.root_states),
            gymtorch.unwrap_tensor(env_ids_int32),
            len(env_ids_int32),
        )
        self.episode_length_buf[env_ids] = 0
        self.extras["terrain_level"] = torch.mean(self.levels.float())

    def post_physics_step(self, length):
        self.episode_length_buf += 1
        env_ids = self.check_termination(length)
        self.reset_idx(env_ids)
        return env_ids
