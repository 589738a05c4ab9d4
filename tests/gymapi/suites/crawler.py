"""A crawler with four legs of two joints: position targets, foot sensors, a goal, heading in TorchScript."""
# The imports are those of scripts.
# ruff: noqa: F403, F405

import numpy as np
import torch

from pluriverse import gymapi, gymtorch
from pluriverse.torch_utils import *
from tests.gymapi.suites.vector_task import VectorTask

LEGS = ("FL", "FR", "RL", "RR")


def crawler_urdf():
    """Return the file of the robot."""
    inertial = (
        '<inertial><mass value="{m}"/>'
        '<inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    parts = [
        '<robot name="crawler"><link name="trunk">'
        + inertial.format(m=6.0, i=0.08)
        + '<collision><geometry><box size="0.4 0.2 0.1"/></geometry></collision></link>'
    ]
    for leg in LEGS:
        x, y = (0.2 if leg[0] == "F" else -0.2), (0.12 if leg[1] == "L" else -0.12)
        for part, parent, place, limit in (
            ("thigh", "trunk", f"{x} {y} 0", "-1 1.5"),
            ("calf", f"{leg}_thigh", "0 0 -0.2", "-2.5 -0.3"),
        ):
            low, high = limit.split()
            parts.append(
                f'<link name="{leg}_{part}">'
                + inertial.format(m=0.6, i=0.003)
                + '<collision><origin xyz="0 0 -0.1"/>'
                + '<geometry><cylinder radius="0.02" length="0.16"/></geometry>'
                + f'</collision></link><joint name="{leg}_{part}_joint" type="revolute"><axis xyz="0 1 0"/>'
                + f'<origin xyz="{place}"/><parent link="{parent}"/><child link="{leg}_{part}"/>'
                + f'<limit effort="30" lower="{low}" upper="{high}" velocity="20"/></joint>'
            )
        parts.append(
            f'<link name="{leg}_foot">'
            + inertial.format(m=0.1, i=0.0001)
            + '<collision><geometry><sphere radius="0.03"/></geometry></collision></link>'
            + f'<joint name="{leg}_foot_fixed" type="fixed" dont_collapse="true"><origin xyz="0 0 -0.2"/>'
            + f'<parent link="{leg}_calf"/><child link="{leg}_foot"/></joint>'
        )
    return "".join(parts) + "</robot>"


CONFIG = {
    "env": {"numEnvs": 4, "numObservations": 34, "controlFrequencyInv": 2, "friction": 1.0},
    "sim": {
        "dt": 0.01,
        "substeps": 2,
        "up_axis": 1,
        "gravity": [0.0, 0.0, -9.81],
        "physx": {"num_threads": 1, "num_velocity_iterations": 0, "contact_collection": 2},
    },
    "task": {
        "randomization": {
            "properties": {
                "rigid_shape_properties": {
                    "friction": {
                        "range": [0.6, 1.2],
                        "operation": "scaling",
                        "distribution": "uniform",
                        "num_buckets": 64,
                    }
                }
            }
        }
    },
}


class Crawler(VectorTask):
    """Go to a goal that is an actor of its own, with which nothing collides."""

    asset_root = "."

    def create_envs(self):
        options = gymapi.AssetOptions()
        options.default_dof_drive_mode = gymapi.DOF_MODE_POS
        options.collapse_fixed_joints = True
        options.angular_damping = 0.0
        options.armature = 0.01
        asset = self.gym.load_asset(self.sim, self.asset_root, "crawler.urdf", options)
        self.num_bodies = self.gym.get_asset_rigid_body_count(asset)
        names = self.gym.get_asset_rigid_body_names(asset)
        for foot in [name for name in names if "foot" in name]:
            self.gym.create_asset_force_sensor(
                asset, self.gym.find_asset_rigid_body_index(asset, foot), gymapi.Transform()
            )
        marker = gymapi.AssetOptions()
        marker.fix_base_link = True
        goal = self.gym.create_sphere(self.sim, 0.05, marker)
        properties = self.gym.get_asset_dof_properties(asset)
        properties["stiffness"].fill(60.0)
        properties["damping"].fill(2.0)
        lower, upper = properties["lower"].copy(), properties["upper"].copy()
        self.lower, self.upper = to_torch(lower, device=self.device), to_torch(upper, device=self.device)
        self.rest = torch.clamp(to_torch([0.6, -1.2] * 4, device=self.device), self.lower, self.upper)
        pose = gymapi.Transform(p=gymapi.Vec3(0.0, 0.0, 0.42))
        for index in range(self.num_envs):
            env = self.gym.create_env(self.sim, gymapi.Vec3(-1, -1, 0), gymapi.Vec3(1, 1, 1), 2)
            self.gym.begin_aggregate(env, self.num_bodies + 1, 32, True)
            actor = self.gym.create_actor(env, asset, pose, "crawler", index, 1, 0)
            self.gym.set_actor_dof_properties(env, actor, properties)
            self.gym.enable_actor_dof_force_sensors(env, actor)
            ball = self.gym.create_actor(env, goal, gymapi.Transform(), "goal", index + self.num_envs, 0, 0)
            self.gym.set_rigid_body_color(env, ball, 0, gymapi.MESH_VISUAL, gymapi.Vec3(0.6, 0.72, 0.98))
            self.gym.end_aggregate(env)
            self.envs.append(env)
            self.actors.append(actor)
        self.feet = [self.gym.find_actor_rigid_body_handle(self.envs[0], 0, f"{leg}_foot") for leg in LEGS]

    def acquire(self):
        super().acquire()
        sensors = self.gym.acquire_force_sensor_tensor(self.sim)
        bodies = self.gym.acquire_rigid_body_state_tensor(self.sim)
        efforts = self.gym.acquire_dof_force_tensor(self.sim)
        self.sensors = gymtorch.wrap_tensor(sensors).view(self.num_envs, 4, 6)
        self.bodies = gymtorch.wrap_tensor(bodies).view(self.num_envs, self.num_bodies + 1, 13)
        self.efforts = gymtorch.wrap_tensor(efforts).view(self.num_envs, self.num_dof)
        self.roots = self.root_states.view(self.num_envs, 2, 13)
        self.begin = self.roots.clone()
        self.heading_axis = to_torch([1.0, 0.0, 0.0], device=self.device).repeat((self.num_envs, 1))

    def pre_physics_step(self, actions):
        spread = 0.25 * (self.upper - self.lower)
        targets = tensor_clamp(self.rest + actions * spread, self.lower, self.upper)
        self.gym.set_dof_position_target_tensor(self.sim, gymtorch.unwrap_tensor(targets))

    def post_physics_step(self):
        self.gym.refresh_force_sensor_tensor(self.sim)
        self.gym.refresh_rigid_body_state_tensor(self.sim)
        self.gym.refresh_dof_force_tensor(self.sim)
        robot, goal = self.roots[:, 0], self.roots[:, 1]
        self.obs_buf[:], self.rew_buf[:] = crawler_observations(
            robot,
            goal[:, :3],
            self.heading_axis,
            self.dof_pos,
            self.dof_vel,
            self.lower,
            self.upper,
            self.sensors,
        )
        fallen = robot[:, 2] < 0.12
        self.reset_buf[:] = (fallen | (self.progress_buf >= 100)).long()

    def reset_idx(self, env_ids):
        self.roots[env_ids] = self.begin[env_ids]
        turn = torch_rand_float(-np.pi, np.pi, (len(env_ids), 1), device=self.device).squeeze(-1)
        zero = torch.zeros_like(turn)
        self.roots[env_ids, 0, 3:7] = quat_from_euler_xyz(zero, zero, turn)
        self.roots[env_ids, 1, :2] = 2.0 * torch_random_dir_2((len(env_ids), 1), self.device)
        self.dof_pos[env_ids] = self.rest
        self.dof_vel[env_ids] = 0.0
        robots = self.actor_indices[env_ids]
        both = torch.stack([robots, robots + 1], dim=1).flatten().to(torch.int32)
        self.gym.set_actor_root_state_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.root_states), gymtorch.unwrap_tensor(both), len(both)
        )
        self.gym.set_dof_state_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.dof_state), gymtorch.unwrap_tensor(robots), len(robots)
        )
        self.reset_buf[env_ids] = 0
        self.progress_buf[env_ids] = 0


@torch.jit.script
def crawler_observations(
    robot: torch.Tensor,
    goal: torch.Tensor,
    forward: torch.Tensor,
    dof_pos: torch.Tensor,
    dof_vel: torch.Tensor,
    lower: torch.Tensor,
    upper: torch.Tensor,
    sensors: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return observations and reward."""
    turn, place = robot[:, 3:7], robot[:, :3]
    back, shift = tf_inverse(turn, place)
    seen = tf_apply(back, shift, goal)
    to_goal = normalize(goal - place)
    heading = (get_basis_vector(turn, forward) * to_goal).sum(dim=-1)
    linear = quat_rotate_inverse(turn, robot[:, 7:10])
    roll, pitch, yaw = get_euler_xyz(turn)
    angles = torch.stack([normalize_angle(roll), normalize_angle(pitch), copysign(1.0, yaw)], dim=-1)
    force = torch.clamp(sensors[:, :, 2], -100.0, 100.0) / 100.0
    parts = [
        place[:, 2:],
        angles,
        linear,
        robot[:, 10:13],
        seen,
        unscale(dof_pos, lower, upper),
        0.1 * dof_vel,
    ]
    observations = torch.cat((torch.cat(parts, dim=-1), force, heading.unsqueeze(-1)), dim=-1)
    return observations, 0.5 * heading - 0.1 * torch.norm(seen, dim=-1)
