"""A quadruped learns to walk on six kinds of ground at once: one environment, worlds that differ.

Learn it with `pluriverse train examples/walk_anywhere.py:Walk`; run by itself it takes random steps.
"""

import argparse

import torch

import pluriverse as pv
from pluriverse import envs, geometry
from pluriverse.randomization import InitialState, Uniform, friction

SIZE = (16.0, 16.0)  # m
GROUNDS = {
    "plane": None,
    "rough": geometry.random_uniform_terrain(SIZE, resolution=0.2, min_height=-0.02, max_height=0.02),
    "waves": geometry.wave_terrain(SIZE, resolution=0.2, amplitude=0.08, wave_count=8),
    "slope": geometry.sloped_terrain(SIZE, resolution=0.2, slope=0.15),
    "stairs": geometry.stairs_terrain(SIZE, resolution=0.1, step_height=0.05, step_width=0.4),
    "blocks": geometry.discrete_obstacles_terrain(SIZE, resolution=0.1, height=0.05, count=400),
}


class Walk(envs.Task):
    """Puli walks forwards at the commanded speed."""

    dt, decimation, episode_seconds, action_limit = 0.01, 2, 20.0, 10.0
    randomization = (
        InitialState(joint_position=Uniform(-0.1, 0.1), root_velocity=Uniform(-0.2, 0.2)),
        friction(Uniform(0.6, 1.2)),
    )

    def build(self, identities):
        """Return a world per environment."""
        kinds, worlds = [], pv.ModelBuilder()
        for ground in GROUNDS.values():
            world = pv.ModelBuilder()
            envs.add_robot(world, "puli", lift=0.0 if ground is None else ground.highest_near())
            if ground is None:
                world.add_ground_plane()
            else:
                world.add_shape_heightfield(heightfield=ground)
            kinds.append(world)
        for identity in identities:
            worlds.add_world(kinds[identity % len(kinds)])
        return worlds

    def setup(self, env):
        """Take the tensors of the robot."""
        self.robot = env.tensors("puli").torch
        self.home = self.robot.joint_position_targets.clone()
        self.action_count = self.home.shape[1]
        self.speed = torch.zeros(env.env_count)

    def reset(self, env, mask):
        """Draw a speed."""
        self.speed[mask] = env.uniform(0.3, 0.9)[mask]

    def act(self, env, actions):
        """Move the targets of the drives."""
        self.robot.joint_position_targets.copy_(self.home + 0.25 * actions)

    def observe(self, env):
        """Return what the robot senses."""
        r = self.robot
        base = [r.base_linear_velocities, r.base_angular_velocities, r.projected_gravity, self.speed[:, None]]
        joints = [r.joint_positions - self.home, 0.05 * r.joint_velocities]
        return torch.cat([*base, *joints, r.foot_heights, env.actions], dim=1)

    def reward(self, env):
        """Return the terms of the reward."""
        r, dt = self.robot, env.step_seconds
        velocity, lifted = r.base_linear_velocities, r.foot_air_times > 0.0
        return {
            "speed": dt * torch.exp(-((velocity[:, 0] - self.speed) ** 2 + velocity[:, 1] ** 2) / 0.1),
            "straight": -0.05 * dt * r.base_angular_velocities.square().sum(dim=1),
            "level": -dt * r.projected_gravity[:, :2].square().sum(dim=1),
            "smooth": -0.01 * dt * (env.actions - env.previous_actions).square().sum(dim=1),
            "torque": -1e-4 * dt * r.joint_torques.square().sum(dim=1),
            "clearance": 0.5 * dt * (lifted * r.foot_heights.clamp(0.0, 0.08)).sum(dim=1),
        }

    def terminated(self, env):
        """Return who has fallen."""
        return (self.robot.projected_gravity[:, 2] > -0.5) | (self.robot.base_heights < 0.12)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=100)
    task, frames = Walk(), parser.parse_args().frames
    with envs.Environment(task, 2 * len(GROUNDS), seed=1) as environment:
        environment.reset()
        for _ in range(frames):
            environment.step(0.5 * torch.randn(environment.env_count, task.action_count))
        for kind, height in zip(GROUNDS, task.robot.base_heights.tolist(), strict=False):
            print(f"{kind}: the trunk is {height:.2f} m over the ground")
