"""A pole on a cart that is seen by cameras: image tensors as observations, as tasks with pictures do it."""
# The imports are those of scripts.
# ruff: noqa: F403, F405

import numpy as np
import torch

from pluriverse.gymtorch import *
from pluriverse.torch_utils import *

from pluriverse import gymapi, gymtorch, gymutil  # isort: skip

CONFIG = {"numEnvs": 3, "width": 32, "height": 24, "depthMax": 6.0}


class VisionCart:
    """Carts with a camera each, fixed beside the rail, and one that rides on the cart."""

    def __init__(self, cfg, asset_root):
        self.cfg = cfg
        self.num_envs = cfg["numEnvs"]
        self.gym = gymapi.acquire_gym()
        sim_params = gymapi.SimParams()
        sim_params.dt = 1.0 / 60.0
        sim_params.up_axis = gymapi.UP_AXIS_Z
        sim_params.gravity = gymapi.Vec3(0.0, 0.0, -9.81)
        sim_params.physx.num_threads = 1
        sim_params.use_gpu_pipeline = False
        args = gymutil.parse_arguments(headless=True, no_graphics=True, custom_parameters=[])
        self.graphics_device_id = args.graphics_device_id
        self.sim = self.gym.create_sim(
            args.compute_device_id, args.graphics_device_id, args.physics_engine, sim_params
        )
        plane = gymapi.PlaneParams()
        plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
        self.gym.add_ground(self.sim, plane)
        self.create_envs(asset_root)
        self.gym.prepare_sim(self.sim)
        states = self.gym.acquire_dof_state_tensor(self.sim)
        self.dof_state = gymtorch.wrap_tensor(states).view(self.num_envs, -1, 2)
        self.obs_buf = torch.zeros((self.num_envs, 3 + 1, cfg["height"], cfg["width"]))

    def create_envs(self, asset_root):
        options = gymapi.AssetOptions()
        options.fix_base_link = True
        options.flip_visual_attachments = True
        options.use_mesh_materials = True
        asset = self.gym.load_asset(self.sim, asset_root, "cartpole.urdf", options)
        camera_properties = gymapi.CameraProperties()
        camera_properties.width = self.cfg["width"]
        camera_properties.height = self.cfg["height"]
        camera_properties.horizontal_fov = 80.0
        camera_properties.enable_tensors = True
        lower, upper = gymapi.Vec3(-3.0, -3.0, 0.0), gymapi.Vec3(3.0, 3.0, 3.0)
        self.envs, self.cameras, self.riders = [], [], []
        self.color_tensors, self.depth_tensors, self.mask_tensors = [], [], []
        self.inverse_views, self.projections = [], []
        for index in range(self.num_envs):
            env = self.gym.create_env(self.sim, lower, upper, int(np.sqrt(self.num_envs)))
            actor = self.gym.create_actor(
                env, asset, gymapi.Transform(gymapi.Vec3(0.0, 0.0, 1.0)), "cart", index, 1, 1
            )
            self.gym.set_rigid_body_segmentation_id(env, actor, 2, 2)
            properties = self.gym.get_actor_dof_properties(env, actor)
            properties["driveMode"] = (gymapi.DOF_MODE_EFFORT, gymapi.DOF_MODE_NONE)
            self.gym.set_actor_dof_properties(env, actor, properties)
            for body in range(self.gym.get_actor_rigid_body_count(env, actor)):
                color = gymapi.Vec3(*np.random.default_rng(body).uniform(0.2, 1.0, 3))
                self.gym.set_rigid_body_color(env, actor, body, gymapi.MESH_VISUAL_AND_COLLISION, color)
            camera = self.gym.create_camera_sensor(env, camera_properties)
            self.gym.set_camera_location(camera, env, gymapi.Vec3(2.5, 0.0, 1.6), gymapi.Vec3(0.0, 0.0, 1.4))
            rider = self.gym.create_camera_sensor(env, camera_properties)
            body = self.gym.find_actor_rigid_body_handle(env, actor, "cart")
            local = gymapi.Transform()
            local.p = gymapi.Vec3(-0.5, 0.0, 0.5)
            local.r = gymapi.Quat.from_axis_angle(gymapi.Vec3(0, 1, 0), np.radians(20.0))
            self.gym.attach_camera_to_body(rider, env, body, local, gymapi.FOLLOW_TRANSFORM)
            for kind, tensors in (
                (gymapi.IMAGE_COLOR, self.color_tensors),
                (gymapi.IMAGE_DEPTH, self.depth_tensors),
                (gymapi.IMAGE_SEGMENTATION, self.mask_tensors),
            ):
                image = self.gym.get_camera_image_gpu_tensor(self.sim, env, camera, kind)
                tensors.append(gymtorch.wrap_tensor(image))
            view = torch.tensor(self.gym.get_camera_view_matrix(self.sim, env, camera))
            self.inverse_views.append(torch.inverse(view))
            projection = self.gym.get_camera_proj_matrix(self.sim, env, camera)
            self.projections.append(torch.tensor(projection))
            self.envs.append(env)
            self.cameras.append(camera)
            self.riders.append(rider)

    def step(self, efforts):
        forces = torch.zeros((self.num_envs, 2))
        forces[:, 0] = efforts
        self.gym.set_dof_actuation_force_tensor(self.sim, unwrap_tensor(forces.flatten()))
        self.gym.simulate(self.sim)
        self.gym.fetch_results(self.sim, True)
        self.gym.refresh_dof_state_tensor(self.sim)
        self.gym.step_graphics(self.sim)
        self.gym.render_all_camera_sensors(self.sim)
        self.gym.start_access_image_tensors(self.sim)
        for index in range(self.num_envs):
            color = self.color_tensors[index][:, :, :3].permute(2, 0, 1).float() / 255.0
            depth = torch.clamp(self.depth_tensors[index], -self.cfg["depthMax"], 0.0)
            self.obs_buf[index, :3] = color
            self.obs_buf[index, 3] = -depth / self.cfg["depthMax"]
        self.gym.end_access_image_tensors(self.sim)
        return self.obs_buf

    def points(self, index, label):
        """Return the points of a label in the sim, from the depth image."""
        points = depth_to_points(
            self.depth_tensors[index], self.inverse_views[index], self.projections[index]
        )
        return points[self.mask_tensors[index].reshape(-1) == label]


@torch.jit.script
def depth_to_points(
    depth: torch.Tensor, inverse_view: torch.Tensor, projection: torch.Tensor
) -> torch.Tensor:
    height, width = depth.shape
    fu, fv = 2.0 / projection[0, 0], 2.0 / projection[1, 1]
    u = torch.arange(0, width, dtype=torch.float32) + 0.5
    v = torch.arange(0, height, dtype=torch.float32) + 0.5
    v2, u2 = torch.meshgrid(v, u, indexing="ij")
    x = -(u2 - width / 2) / width * depth * fu
    y = (v2 - height / 2) / height * depth * fv
    position = torch.stack((x, y, depth, torch.ones_like(depth)), dim=-1).reshape(-1, 4)
    return (position @ inverse_view)[:, 0:3]
