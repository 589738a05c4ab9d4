"""A hand that holds a cube: YAML settings, critic states besides observations, sensors, pushes at random."""
# The imports are those of scripts.
# ruff: noqa: F403, F405

import os

import torch
import yaml

from pluriverse import gymapi, gymtorch
from pluriverse.torch_utils import *
from tests.gymapi.suites.vector_task import VectorTask

SETTINGS = """
name: HoldCube
env:
  numEnvs: 4
  numObservations: 31
  numStates: 63
  controlFrequencyInv: 2
  forceScale: 2.0
  forceDecayInterval: 0.08
  fallDistance: 0.3
  episodeLength: 200
  asset: {assetRoot: ".", assetFileName: "hand.xml"}
sim:
  dt: 0.01667
  substeps: 2
  up_axis: "z"
  use_gpu_pipeline: False
  gravity: [0.0, 0.0, -9.81]
  physx:
    num_threads: 1
    solver_type: 1
    num_position_iterations: 8
    contact_offset: 0.002
    rest_offset: 0.0
    bounce_threshold_velocity: 0.2
    max_depenetration_velocity: 1e3   # a word to YAML 1.1
    default_buffer_size_multiplier: 5.0
    contact_collection: 1
task: {randomization: {}}
"""
FINGERS = {"ff": (0.035, 0.03), "mf": (0.035, 0.0), "rf": (0.035, -0.03), "th": (-0.035, 0.0)}


def hand_mjcf():
    """Return the file of the hand: a palm with three fingers and a thumb, with position actuators."""
    fingers, actuators = "", ""
    for name, (x, y) in FINGERS.items():
        away = 1 if x > 0 else -1
        fingers += f"""
      <body name="{name}proximal" pos="{x} {y} 0.012">
        <joint name="{name}J2" axis="0 1 0" range="-0.8 0.8"/>
        <geom type="capsule" fromto="0 0 0 {0.04 * away} 0 0.02" size="0.008"/>
        <body name="{name}distal" pos="{0.04 * away} 0 0.02">
          <joint name="{name}J1" axis="0 1 0" range="-1.2 1.2"/>
          <geom type="capsule" fromto="0 0 0 0 0 0.04" size="0.008"/>
        </body>
      </body>"""
        actuators += "".join(
            f'<position name="A_{name}{joint}" joint="{name}{joint}" kp="2"/>' for joint in ("J2", "J1")
        )
    return f"""<mujoco model="hand"><compiler angle="radian"/>
  <default><joint damping="0.05" armature="0.002" frictionloss="0.001"/><geom density="800"/></default>
  <worldbody><body name="palm"><geom type="box" size="0.05 0.05 0.012"/>{fingers}</body></worldbody>
  <actuator>{actuators}</actuator></mujoco>"""


class HoldCube(VectorTask):
    """Keep a cube in the hand; a second one shows how it should be turned."""

    def __init__(self, folder, num_envs=4):
        cfg = yaml.safe_load(SETTINGS)
        cfg["env"]["numEnvs"] = num_envs
        cfg["env"]["asset"]["assetRoot"] = folder
        super().__init__(cfg)
        self.states_buf = torch.zeros((self.num_envs, cfg["env"]["numStates"]), device=self.device)
        self.goal_rot = torch.zeros((self.num_envs, 4), device=self.device)

    def create_envs(self):
        asset = self.cfg["env"]["asset"]
        options = gymapi.AssetOptions()
        options.fix_base_link, options.disable_gravity, options.flip_visual_attachments = True, True, False
        options.collapse_fixed_joints, options.thickness, options.angular_damping = True, 0.001, 0.01
        options.use_physx_armature = True
        options.default_dof_drive_mode = gymapi.DOF_MODE_NONE
        path = os.path.join(asset["assetRoot"], asset["assetFileName"])
        hand = self.gym.load_asset(self.sim, os.path.dirname(path), os.path.basename(path), options)
        actuated = [
            self.gym.get_asset_actuator_joint_name(hand, i)
            for i in range(self.gym.get_asset_actuator_count(hand))
        ]
        self.actuated = [self.gym.find_asset_dof_index(hand, name) for name in actuated]
        tips = [name for name in self.gym.get_asset_rigid_body_names(hand) if name.endswith("distal")]
        self.tips = to_torch([self.gym.find_asset_rigid_body_index(hand, n) for n in tips], dtype=torch.long)
        for tip in self.tips:
            self.gym.create_asset_force_sensor(hand, tip, gymapi.Transform())
        cube = self.gym.create_box(self.sim, 0.05, 0.05, 0.05, gymapi.AssetOptions())
        ghost = gymapi.AssetOptions()
        ghost.disable_gravity = True
        goal = self.gym.create_box(self.sim, 0.05, 0.05, 0.05, ghost)
        props = self.gym.get_asset_dof_properties(hand)
        self.lower, self.upper = (to_torch(props[name].copy()) for name in ("lower", "upper"))
        counts = [self.gym.get_asset_rigid_body_count(one) for one in (hand, cube, goal)]
        self.object_body = counts[0]
        hand_pose = gymapi.Transform(p=gymapi.Vec3(0.0, 0.0, 0.5))
        self.object_indices, self.goal_indices = [], []
        for i in range(self.num_envs):
            env = self.gym.create_env(self.sim, gymapi.Vec3(-0.7, -0.7, 0.0), gymapi.Vec3(0.7, 0.7, 0.7), 2)
            self.gym.begin_aggregate(env, sum(counts), 20, True)
            actor = self.gym.create_actor(env, hand, hand_pose, "hand", i, -1, 0)
            self.gym.enable_actor_dof_force_sensors(env, actor)
            place = gymapi.Transform(p=gymapi.Vec3(0.0, 0.0, 0.54))
            body = self.gym.create_actor(env, cube, place, "object", i, 0, 0)
            place.p += gymapi.Vec3(-0.2, -0.06, 0.12)
            mark = self.gym.create_actor(env, goal, place, "goal_object", i + self.num_envs, 0, 0)
            self.gym.set_rigid_body_color(env, mark, 0, gymapi.MESH_VISUAL, gymapi.Vec3(0.6, 0.72, 0.98))
            self.object_indices.append(self.gym.get_actor_index(env, body, gymapi.DOMAIN_SIM))
            self.goal_indices.append(self.gym.get_actor_index(env, mark, gymapi.DOMAIN_SIM))
            self.gym.end_aggregate(env)
            self.envs.append(env)
            self.actors.append(actor)
        for env, actor in zip(self.envs, self.actors, strict=True):
            props = self.gym.get_actor_dof_properties(env, actor)
            props["driveMode"][:] = gymapi.DOF_MODE_POS
            props["stiffness"], props["damping"] = 2.0, 0.1
            self.gym.set_actor_dof_properties(env, actor, props)
        self.object_indices = to_torch(self.object_indices, dtype=torch.long)
        self.goal_indices = to_torch(self.goal_indices, dtype=torch.long)

    def acquire(self):
        super().acquire()
        self.sensors = gymtorch.wrap_tensor(self.gym.acquire_force_sensor_tensor(self.sim))
        self.sensors = self.sensors.view(self.num_envs, len(self.tips) * 6)
        self.dof_forces = gymtorch.wrap_tensor(self.gym.acquire_dof_force_tensor(self.sim))
        self.dof_forces = self.dof_forces.view(self.num_envs, self.num_dof)
        self.bodies = gymtorch.wrap_tensor(self.gym.acquire_rigid_body_state_tensor(self.sim))
        self.bodies = self.bodies.view(self.num_envs, -1, 13)
        self.begin = self.root_states.clone()
        self.targets = torch.zeros((self.num_envs, self.num_dof), dtype=torch.float, device=self.device)
        self.pushes = torch.zeros_like(self.bodies[..., :3])

    def pre_physics_step(self, actions):
        env = self.cfg["env"]
        wanted = scale(actions, self.lower[self.actuated], self.upper[self.actuated])
        self.targets[:, self.actuated] = 0.3 * wanted + 0.7 * self.targets[:, self.actuated]
        self.targets[:] = tensor_clamp(self.targets, self.lower, self.upper)
        self.gym.set_dof_position_target_tensor(self.sim, gymtorch.unwrap_tensor(self.targets))
        self.pushes *= 0.9 ** (self.sim_params.dt / env["forceDecayInterval"])
        pushed = (torch.rand(self.num_envs, device=self.device) < 0.1).nonzero()
        masses = [self.gym.get_actor_rigid_body_properties(e, 1)[0].mass for e in self.envs]
        noise = torch.randn(self.pushes[pushed, self.object_body].shape, device=self.device)
        self.pushes[pushed, self.object_body] = noise * masses[0] * env["forceScale"]
        self.gym.apply_rigid_body_force_tensors(
            self.sim, gymtorch.unwrap_tensor(self.pushes), None, gymapi.LOCAL_SPACE
        )

    def post_physics_step(self):
        self.gym.refresh_rigid_body_state_tensor(self.sim)
        self.gym.refresh_force_sensor_tensor(self.sim)
        self.gym.refresh_dof_force_tensor(self.sim)
        cube = self.root_states[self.object_indices]
        between = quat_mul(cube[:, 3:7], quat_conjugate(self.goal_rot))
        seen = [unscale(self.dof_pos, self.lower, self.upper), cube[:, :7], between]
        seen.append(self.bodies[:, self.tips][:, :, :3].flatten(1))
        self.obs_buf[:] = torch.cat(seen, dim=-1)
        hidden = [0.2 * self.dof_vel, 10.0 * self.dof_forces, 0.2 * self.sensors[:, :16]]
        self.states_buf[:] = torch.cat([self.obs_buf, *hidden], dim=1)
        self.rew_buf[:], self.reset_buf[:] = hold_reward(
            cube,
            self.begin[self.object_indices, :3],
            self.goal_rot,
            self.progress_buf,
            self.cfg["env"]["fallDistance"],
            self.cfg["env"]["episodeLength"],
        )

    def reset_idx(self, env_ids):
        noise = torch_rand_float(-1.0, 1.0, (len(env_ids), 4), device=self.device)
        axes = [to_torch(axis).repeat((len(env_ids), 1)) for axis in ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])]
        turn = quat_mul(
            quat_from_angle_axis(noise[:, 0] * np.pi, axes[0]),
            quat_from_angle_axis(noise[:, 1] * np.pi, axes[1]),
        )
        self.goal_rot[env_ids] = turn
        objects, goals = self.object_indices[env_ids], self.goal_indices[env_ids]
        self.root_states[goals, 3:7] = turn
        self.root_states[objects] = self.begin[objects].clone()
        self.root_states[objects, 0:2] += 0.002 * noise[:, 2:4]
        self.root_states[goals, 7:13] = torch.zeros_like(self.root_states[goals, 7:13])
        both = torch.unique(torch.cat([objects, goals]).to(torch.int32))
        self.gym.set_actor_root_state_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.root_states), gymtorch.unwrap_tensor(both), len(both)
        )
        hands = self.actor_indices[env_ids].to(torch.int32)
        self.dof_pos[env_ids, :], self.dof_vel[env_ids, :], self.targets[env_ids] = 0.0, 0.0, 0.0
        self.gym.set_dof_position_target_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.targets), gymtorch.unwrap_tensor(hands), len(env_ids)
        )
        self.gym.set_dof_state_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.dof_state), gymtorch.unwrap_tensor(hands), len(env_ids)
        )
        self.pushes[env_ids] = 0.0
        self.progress_buf[env_ids], self.reset_buf[env_ids] = 0, 0


@torch.jit.script
def hold_reward(cube, place, goal_rot, progress, fall_dist: float, length: float):
    """Return reward and resets; tensors without a type are tensors to TorchScript."""
    distance = torch.norm(cube[:, :3] - place, p=2, dim=-1)
    turn = quat_mul(cube[:, 3:7], quat_conjugate(goal_rot))
    angle = 2.0 * torch.asin(torch.clamp(torch.norm(turn[:, 0:3], p=2, dim=-1), max=1.0))
    reward = -10.0 * distance + 1.0 / (torch.abs(angle) + 0.1)
    resets = torch.where(distance >= fall_dist, torch.ones_like(progress), torch.zeros_like(progress))
    resets = torch.where(progress >= length - 1, torch.ones_like(resets), resets)
    return reward, resets
