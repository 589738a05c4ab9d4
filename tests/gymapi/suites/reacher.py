"""An arm that reaches for a box on a table: configuration by classes, randomized before and between actors.

Properties are read, changed and set for every env as it is built, resets go by indices, and commands come
from the Jacobian in TorchScript, as manipulation tasks do it. Nobody sees the viewer.
"""
# The imports are those of scripts, and so is NumPy's global generator.
# ruff: noqa: D106, F403, F405, N801, NPY002

import math

import numpy as np
import torch

from pluriverse import gymapi, gymtorch, gymutil
from pluriverse.torch_utils import *


class BaseConfig:
    """What all such tasks share."""

    class sim:
        dt = 1.0 / 120.0
        substeps = 1
        up_axis = "z"
        gravity = (0.0, 0.0, -9.81)
        use_gpu_pipeline = False

        class physx:
            solver_type = 1
            num_position_iterations = 8
            contact_offset = 0.005
            rest_offset = 0.0

    class env:
        num_envs = 4
        spacing = 1.0


class ReacherConfig(BaseConfig):
    """This task."""

    class control:
        stiffness = 400.0
        damping = 40.0
        lag = 0.05

    class domain_rand:
        friction = (0.4, 1.4)
        added_mass = (0.0, 0.2)
        yaw = math.pi


@torch.jit.script
def orientation_error(desired, current):
    # type: (Tensor, Tensor) -> Tensor
    turn = quat_mul(desired, quat_conjugate(current))
    return turn[:, 0:3] * torch.sign(turn[:, 3]).unsqueeze(-1)


@torch.jit.script
def damped_least_squares(jacobian, error, lag):
    # type: (Tensor, Tensor, float) -> Tensor
    transposed = torch.transpose(jacobian, 1, 2)
    damping = torch.eye(6) * lag**2
    return (transposed @ torch.inverse(jacobian @ transposed + damping) @ error.unsqueeze(-1)).squeeze(-1)


class Reacher:
    """Hold the hand above the box, pointing down."""

    def __init__(self, cfg, asset_root):
        self.cfg, self.asset_root = cfg, asset_root
        self.gym = gymapi.acquire_gym()
        self.device = "cpu"
        self.num_envs = cfg.env.num_envs
        params = gymapi.SimParams()
        gymutil.parse_sim_config(cfg.sim, params)
        self.sim = self.gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)
        plane = gymapi.PlaneParams()
        plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
        self.gym.add_ground(self.sim, plane)
        self._load()
        self._create_envs()
        self.viewer = self.gym.create_viewer(self.sim, gymapi.CameraProperties())
        self.gym.subscribe_viewer_keyboard_event(self.viewer, gymapi.KEY_ESCAPE, "quit")
        self.gym.subscribe_viewer_keyboard_event(self.viewer, gymapi.KEY_R, "reset")
        self.gym.viewer_camera_look_at(
            self.viewer, None, gymapi.Vec3(3.0, 3.0, 2.0), gymapi.Vec3(0.0, 0.0, 0.5)
        )
        self.gym.prepare_sim(self.sim)
        self._acquire()
        self.reset_idx(torch.arange(self.num_envs))

    def _load(self):
        options = gymapi.AssetOptions()
        options.fix_base_link = True
        options.disable_gravity = True
        options.armature = 0.01
        options.collapse_fixed_joints = False
        options.default_dof_drive_mode = int(gymapi.DOF_MODE_POS)
        self.arm = self.gym.load_asset(self.sim, self.asset_root, "arm.urdf", options)
        self.num_dof = self.gym.get_asset_dof_count(self.arm)
        self.link = self.gym.get_asset_rigid_body_dict(self.arm)["hand"]
        loose = gymapi.AssetOptions()
        loose.density = 400.0
        self.box = self.gym.create_box(self.sim, 0.05, 0.05, 0.05, loose)
        fixed = gymapi.AssetOptions()
        fixed.fix_base_link = True
        self.table = self.gym.create_box(self.sim, 0.5, 0.8, 0.1, fixed)

    def _create_envs(self):
        gym, span = self.gym, self.cfg.env.spacing
        drive = gym.get_asset_dof_properties(self.arm)
        drive["driveMode"].fill(gymapi.DOF_MODE_POS)
        drive["stiffness"].fill(self.cfg.control.stiffness)
        drive["damping"].fill(self.cfg.control.damping)
        self.lower, self.upper = to_torch(drive["lower"]), to_torch(drive["upper"])
        frictions = np.random.uniform(*self.cfg.domain_rand.friction, self.num_envs)
        self.envs, self.boxes, self.hands, self.frictions = [], [], [], frictions
        for index in range(self.num_envs):
            env = gym.create_env(
                self.sim,
                gymapi.Vec3(-span, -span, 0.0),
                gymapi.Vec3(span, span, span),
                int(self.num_envs**0.5),
            )
            gym.begin_aggregate(env, 12, 12, True)
            # The friction of the asset changes between actors: each keeps what it was made with.
            shapes = gym.get_asset_rigid_shape_properties(self.box)
            for shape in shapes:
                shape.friction = frictions[index]
            gym.set_asset_rigid_shape_properties(self.box, shapes)
            table = gymapi.Transform(p=gymapi.Vec3(0.55, 0.0, 0.05))
            gym.create_actor(env, self.table, table, "table", index, 0)
            place = gymapi.Transform(p=gymapi.Vec3(0.5, 0.0, 0.125))
            place.r = gymapi.Quat.from_axis_angle(
                gymapi.Vec3(0.0, 0.0, 1.0), np.random.uniform(-1.0, 1.0) * self.cfg.domain_rand.yaw
            )
            box = gym.create_actor(env, self.box, place, "box", index, 0)
            bodies = gym.get_actor_rigid_body_properties(env, box)
            bodies[0].mass += np.random.uniform(*self.cfg.domain_rand.added_mass)
            gym.set_actor_rigid_body_properties(env, box, bodies, recomputeInertia=True)
            gym.set_rigid_body_color(
                env, box, 0, gymapi.MESH_VISUAL_AND_COLLISION, gymapi.Vec3(*np.random.uniform(0.0, 1.0, 3))
            )
            arm = gym.create_actor(env, self.arm, gymapi.Transform(), "arm", index, 2)
            gym.set_actor_dof_properties(env, arm, drive)
            gym.enable_actor_dof_force_sensors(env, arm)
            gym.end_aggregate(env)
            self.envs.append(env)
            self.boxes.append(gym.get_actor_rigid_body_index(env, box, 0, gymapi.DOMAIN_SIM))
            self.hands.append(gym.find_actor_rigid_body_index(env, arm, "hand", gymapi.DOMAIN_SIM))

    def _acquire(self):
        gym, sim, count = self.gym, self.sim, self.num_envs
        self.roots = gymtorch.wrap_tensor(gym.acquire_actor_root_state_tensor(sim)).view(count, -1, 13)
        self.dofs = gymtorch.wrap_tensor(gym.acquire_dof_state_tensor(sim)).view(count, -1, 2)
        self.bodies = gymtorch.wrap_tensor(gym.acquire_rigid_body_state_tensor(sim))
        self.contacts = gymtorch.wrap_tensor(gym.acquire_net_contact_force_tensor(sim))
        jacobian = gymtorch.wrap_tensor(gym.acquire_jacobian_tensor(sim, "arm"))
        self.jacobian = jacobian[:, self.link - 1, :, :7]
        self.actors = torch.arange(3 * count, dtype=torch.int32).view(count, 3)
        self.rest = to_torch([0.0, 0.6, 0.0, 1.3, 0.0, 1.24, 0.0, 0.04, 0.04])
        self.down = to_torch([1.0, 0.0, 0.0, 0.0]).repeat(count, 1)
        self.targets = self.rest.repeat(count, 1)
        self.start = self.roots.clone()
        self.refresh()

    def refresh(self):
        self.gym.refresh_actor_root_state_tensor(self.sim)
        self.gym.refresh_dof_state_tensor(self.sim)
        self.gym.refresh_rigid_body_state_tensor(self.sim)
        self.gym.refresh_net_contact_force_tensor(self.sim)
        self.gym.refresh_jacobian_tensors(self.sim)

    def reset_idx(self, env_ids):
        spread = 0.1 * (torch.rand((len(env_ids), self.num_dof)) - 0.5)
        self.dofs[env_ids, :, 0] = tensor_clamp(self.rest + spread, self.lower, self.upper)
        self.dofs[env_ids, :, 1] = 0.0
        self.targets[env_ids] = self.dofs[env_ids, :, 0]
        arms, boxes = self.actors[env_ids, 2].flatten(), self.actors[env_ids, 1].flatten()
        self.gym.set_dof_position_target_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.targets), gymtorch.unwrap_tensor(arms), len(arms)
        )
        self.gym.set_dof_state_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.dofs.view(-1, 2)), gymtorch.unwrap_tensor(arms), len(arms)
        )
        self.roots[env_ids, 1] = self.start[env_ids, 1]
        self.gym.set_actor_root_state_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.roots), gymtorch.unwrap_tensor(boxes), len(boxes)
        )

    def step(self):
        goal = self.bodies[self.boxes, :3].clone()
        goal[:, 2] += 0.25
        hand = self.bodies[self.hands]
        error = torch.cat([goal - hand[:, :3], orientation_error(self.down, hand[:, 3:7])], dim=-1)
        move = damped_least_squares(self.jacobian, error, self.cfg.control.lag)
        self.targets[:, :7] = self.dofs[:, :7, 0] + move
        self.gym.set_dof_position_target_tensor(self.sim, gymtorch.unwrap_tensor(self.targets))
        self.gym.simulate(self.sim)
        if self.device == "cpu":
            self.gym.fetch_results(self.sim, True)
        self.refresh()
        self.render()
        return torch.linalg.norm(error[:, :3], dim=-1)

    def render(self):
        for event in self.gym.query_viewer_action_events(self.viewer):
            if event.action == "reset" and event.value > 0:
                self.reset_idx(torch.arange(self.num_envs))
        self.gym.step_graphics(self.sim)
        self.gym.draw_viewer(self.viewer, self.sim, True)
        self.gym.poll_viewer_events(self.viewer)
