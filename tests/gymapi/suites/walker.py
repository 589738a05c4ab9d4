"""A legged robot on terrain: configuration classes, friction by env, efforts, heights under the robot."""
# The imports are those of scripts.
# ruff: noqa: F403, F405, N801, D106, NPY002

import numpy as np
import torch

import pluriverse
from pluriverse import gymapi, gymtorch, gymutil, terrain_utils
from pluriverse.torch_utils import *


class WalkerConfig:
    """Settings as classes, of which tasks derive their own."""

    class env:
        num_envs = 4

    class terrain:
        mesh_type = "trimesh"
        tiles = 2, 3
        size = 4.0
        border = 2.0
        horizontal_scale = 0.1
        vertical_scale = 0.005
        slope_threshold = 0.75

    class control:
        stiffness = 60.0
        damping = 2.0
        decimation = 4

    class sim:
        dt = 0.005
        substeps = 1
        up_axis = 1
        gravity = [0.0, 0.0, -9.81]  # noqa: RUF012

        class physx:
            num_threads = 1
            solver_type = 1
            bounce_threshold_velocity = 0.5
            contact_collection = 2


def class_to_dict(settings):
    """Return nested classes as dictionaries."""
    if not hasattr(settings, "__dict__"):
        return settings
    names = [name for name in dir(settings) if not name.startswith("_")]
    return {name: class_to_dict(getattr(settings, name)) for name in names}


class Terrain:
    """Tiles of different kinds in one field."""

    def __init__(self, cfg):
        self.cfg = cfg
        pixels = int(cfg.size / cfg.horizontal_scale)
        self.border = int(cfg.border / cfg.horizontal_scale)
        rows, columns = cfg.tiles
        shape = rows * pixels + 2 * self.border, columns * pixels + 2 * self.border
        self.heights = np.zeros(shape, dtype=np.int16)
        self.origins = np.zeros((rows, columns, 3))
        for row in range(rows):
            for column in range(columns):
                tile = terrain_utils.SubTerrain(
                    "tile",
                    width=pixels,
                    length=pixels,
                    vertical_scale=cfg.vertical_scale,
                    horizontal_scale=cfg.horizontal_scale,
                )
                difficulty = (row + 1) / rows
                kind = (row * columns + column) % 5
                if kind == 0:
                    terrain_utils.pyramid_sloped_terrain(tile, slope=-0.3 * difficulty, platform_size=1.0)
                elif kind == 1:
                    terrain_utils.pyramid_stairs_terrain(tile, 0.31, 0.1 * difficulty, platform_size=1.0)
                elif kind == 2:
                    terrain_utils.random_uniform_terrain(
                        tile, min_height=-0.03, max_height=0.03, step=0.005, downsampled_scale=0.2
                    )
                elif kind == 3:
                    terrain_utils.discrete_obstacles_terrain(tile, 0.1, 0.5, 1.0, 6, platform_size=1.0)
                else:
                    terrain_utils.wave_terrain(tile, num_waves=1, amplitude=0.2)
                x, y = self.border + row * pixels, self.border + column * pixels
                self.heights[x : x + pixels, y : y + pixels] = tile.height_field_raw
                middle = tile.height_field_raw[
                    pixels // 2 - 5 : pixels // 2 + 5, pixels // 2 - 5 : pixels // 2 + 5
                ]
                self.origins[row, column] = (
                    (row + 0.5) * cfg.size,
                    (column + 0.5) * cfg.size,
                    middle.max() * cfg.vertical_scale,
                )


class Walker:
    """The task, which makes its sim itself."""

    def __init__(self, cfg, asset_root, args):
        self.cfg, self.asset_root = cfg, asset_root
        self.gym = gymapi.acquire_gym()
        params = gymapi.SimParams()
        params.physx.use_gpu = args.use_gpu
        params.physx.num_subscenes = args.subscenes
        params.use_gpu_pipeline = args.use_gpu_pipeline
        gymutil.parse_sim_config(class_to_dict(cfg.sim), params)
        self.device = args.sim_device if args.use_gpu_pipeline else "cpu"
        self.num_envs = cfg.env.num_envs
        self.sim = self.gym.create_sim(args.compute_device_id, -1, args.physics_engine, params)
        self.terrain = Terrain(cfg.terrain)
        getattr(self, f"_create_{cfg.terrain.mesh_type}")()
        self._create_envs()
        self.gym.prepare_sim(self.sim)
        self._init_buffers()

    def _create_heightfield(self):
        params = gymapi.HeightFieldParams()
        params.column_scale = params.row_scale = self.cfg.terrain.horizontal_scale
        params.vertical_scale = self.cfg.terrain.vertical_scale
        params.nbRows, params.nbColumns = self.terrain.heights.shape
        extent = [(count - 1) * self.cfg.terrain.horizontal_scale for count in self.terrain.heights.shape]
        params.transform.p.x = 0.5 * extent[0] - self.cfg.terrain.border
        params.transform.p.y = 0.5 * extent[1] - self.cfg.terrain.border
        params.transform.p.z = 0.0
        params.static_friction = params.dynamic_friction = 1.0
        self.gym.add_heightfield(self.sim, self.terrain.heights.flatten(order="F"), params)

    def _create_trimesh(self):
        cfg = self.cfg.terrain
        vertices, triangles = terrain_utils.convert_heightfield_to_trimesh(
            self.terrain.heights, cfg.horizontal_scale, cfg.vertical_scale, cfg.slope_threshold
        )
        params = gymapi.TriangleMeshParams()
        params.nb_vertices, params.nb_triangles = vertices.shape[0], triangles.shape[0]
        params.transform.p.x = params.transform.p.y = -cfg.border
        params.static_friction = params.dynamic_friction = 1.0
        self.gym.add_triangle_mesh(
            self.sim, vertices.flatten(order="C"), triangles.flatten(order="C"), params
        )

    def _create_envs(self):
        options = gymapi.AssetOptions()
        options.default_dof_drive_mode = gymapi.DOF_MODE_EFFORT
        options.collapse_fixed_joints = True
        options.flip_visual_attachments = True
        options.angular_damping = options.linear_damping = 0.0
        asset = self.gym.load_asset(self.sim, self.asset_root, "crawler.urdf", options)
        self.num_dof = self.gym.get_asset_dof_count(asset)
        drives = self.gym.get_asset_dof_properties(asset)
        shapes = self.gym.get_asset_rigid_shape_properties(asset)
        self.friction = torch_rand_float(0.5, 1.25, (64, 1), device="cpu").unsqueeze(-1)
        self.torque_limits = torch.tensor([drives["effort"][k].item() for k in range(self.num_dof)])
        origins = torch.from_numpy(self.terrain.origins).to(torch.float).view(-1, 3)
        self.envs = []
        pose = gymapi.Transform()
        for index in range(self.num_envs):
            env = self.gym.create_env(
                self.sim, gymapi.Vec3(0.0, 0.0, 0.0), gymapi.Vec3(0.0, 0.0, 0.0), int(np.sqrt(self.num_envs))
            )
            origin = origins[index % len(origins)].clone()
            origin[:2] += torch_rand_float(-0.2, 0.2, (2, 1), device="cpu").squeeze(1)
            origin[2] += 0.45
            pose.p = gymapi.Vec3(*origin)
            for shape in shapes:
                shape.friction = self.friction[index % 64]
            self.gym.set_asset_rigid_shape_properties(asset, shapes)
            actor = self.gym.create_actor(env, asset, pose, "walker", index, 0, 0)
            self.gym.set_actor_dof_properties(env, actor, drives)
            bodies = self.gym.get_actor_rigid_body_properties(env, actor)
            bodies[0].mass += np.random.uniform(-1.0, 1.0)
            self.gym.set_actor_rigid_body_properties(env, actor, bodies, recomputeInertia=True)
            self.envs.append(env)
        names = self.gym.get_asset_rigid_body_names(asset)
        feet = [name for name in names if "foot" in name]
        self.feet = torch.zeros(len(feet), dtype=torch.long)
        for index, name in enumerate(feet):
            self.feet[index] = self.gym.find_actor_rigid_body_handle(self.envs[0], 0, name)

    def _init_buffers(self):
        self.root_states = gymtorch.wrap_tensor(self.gym.acquire_actor_root_state_tensor(self.sim))
        dofs = gymtorch.wrap_tensor(self.gym.acquire_dof_state_tensor(self.sim))
        contacts = gymtorch.wrap_tensor(self.gym.acquire_net_contact_force_tensor(self.sim))
        self.dof_state = dofs
        self.dof_pos = dofs.view(self.num_envs, self.num_dof, 2)[..., 0]
        self.dof_vel = dofs.view(self.num_envs, self.num_dof, 2)[..., 1]
        self.contact_forces = contacts.view(self.num_envs, -1, 3)
        self.gravity = to_torch(get_axis_params(-1.0, 2), device=self.device).repeat((self.num_envs, 1))
        self.rest = to_torch([0.6, -1.2] * 4, device=self.device)
        self.heights = torch.tensor(self.terrain.heights).to(self.device)
        grid = torch.linspace(-0.3, 0.3, 4)
        x, y = torch.meshgrid(grid, grid, indexing="ij")
        self.points = torch.zeros(self.num_envs, x.numel(), 3)
        self.points[:, :, 0], self.points[:, :, 1] = x.flatten(), y.flatten()
        self.dof_pos[:], self.dof_vel[:] = self.rest, 0.0
        indices = torch.arange(self.num_envs, dtype=torch.int32)
        self.gym.set_dof_state_tensor_indexed(
            self.sim, gymtorch.unwrap_tensor(self.dof_state), gymtorch.unwrap_tensor(indices), len(indices)
        )

    def step(self, actions):
        """Hold the joints near their rest by efforts, several steps of the sim long."""
        for _ in range(self.cfg.control.decimation):
            error = 0.2 * actions + self.rest - self.dof_pos
            efforts = self.cfg.control.stiffness * error - self.cfg.control.damping * self.dof_vel
            efforts = torch.clip(efforts, -self.torque_limits, self.torque_limits)
            self.gym.set_dof_actuation_force_tensor(self.sim, gymtorch.unwrap_tensor(efforts))
            self.gym.simulate(self.sim)
            self.gym.fetch_results(self.sim, True)
            self.gym.refresh_dof_state_tensor(self.sim)
        self.gym.refresh_actor_root_state_tensor(self.sim)
        self.gym.refresh_net_contact_force_tensor(self.sim)
        turn = self.root_states[:, 3:7]
        return torch.cat(
            [
                quat_rotate_inverse(turn, self.root_states[:, 7:10]),
                quat_rotate_inverse(turn, self.root_states[:, 10:13]),
                quat_rotate_inverse(turn, self.gravity),
                self.dof_pos - self.rest,
                self.dof_vel,
                torch.clip(self.root_states[:, 2].unsqueeze(1) - self.measured_heights(), -1.0, 1.0),
            ],
            dim=-1,
        )

    def push(self, speed):
        """Give all robots a velocity, by the tensor of all roots."""
        self.root_states[:, 7:9] = torch_rand_float(-speed, speed, (self.num_envs, 2), device=self.device)
        self.gym.set_actor_root_state_tensor(self.sim, gymtorch.unwrap_tensor(self.root_states))

    def measured_heights(self):
        """Return the heights of the terrain [m] at points around the robots, turned with them."""
        turn = self.root_states[:, 3:7].repeat(1, self.points.shape[1])
        yaw = turn.clone().view(-1, 4)
        yaw[:, :2] = 0.0
        places = quat_apply(normalize(yaw), self.points) + self.root_states[:, :3].unsqueeze(1)
        cells = ((places + self.cfg.terrain.border) / self.cfg.terrain.horizontal_scale).long()
        x = torch.clip(cells[:, :, 0].view(-1), 0, self.heights.shape[0] - 2)
        y = torch.clip(cells[:, :, 1].view(-1), 0, self.heights.shape[1] - 2)
        found = torch.min(self.heights[x, y], self.heights[x + 1, y])
        return found.view(self.num_envs, -1) * self.cfg.terrain.vertical_scale


VERSION = pluriverse.__version__
