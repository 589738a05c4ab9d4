"""Robots of three kinds in each env: an arm, a crawler and a flyer; indices of the sim."""
# The imports are those of scripts.
# ruff: noqa: F403, F405

import torch

from pluriverse import gymapi, gymtorch
from pluriverse.torch_utils import *

NAMES = ("arm", "crawler", "flyer")


def flyer_mjcf():
    """Return the file of a flyer with four rotors on hinges."""
    rotors = "".join(
        f'<body name="rotor{n}" pos="{x} {y} 0.02"><joint name="spin{n}" axis="0 0 1" damping="1e-5"/>'
        '<geom type="cylinder" size="0.05 0.005" mass="0.02"/></body>'
        for n, (x, y) in enumerate(((0.1, 0.1), (-0.1, 0.1), (-0.1, -0.1), (0.1, -0.1)))
    )
    return f"""<mujoco model="flyer"><worldbody><body name="chassis" pos="0 0 0"><freejoint/>
  <geom type="box" size="0.1 0.1 0.02" mass="0.5"/>{rotors}</body></worldbody></mujoco>"""


class Team:
    """Three robots, of which the flyer hovers, the crawler stands and the arm holds a pose."""

    def __init__(self, folder, arm_folder, num_envs=3):
        self.gym, self.num_envs = gymapi.acquire_gym(), num_envs
        params = gymapi.SimParams()
        params.dt, params.substeps, params.up_axis = 1.0 / 60.0, 2, gymapi.UP_AXIS_Z
        params.gravity = gymapi.Vec3(0.0, 0.0, -9.81)
        params.physx.num_threads, params.physx.contact_collection = 1, gymapi.ContactCollection(2)
        self.sim = self.gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)
        plane = gymapi.PlaneParams()
        plane.normal, plane.distance = gymapi.Vec3(0, 0, 1), 0
        self.gym.add_ground(self.sim, plane)
        options = gymapi.AssetOptions()
        options.default_dof_drive_mode = int(gymapi.DOF_MODE_POS)
        free = self.gym.load_asset(self.sim, folder, "crawler.urdf", options)
        options.default_dof_drive_mode = int(gymapi.DOF_MODE_NONE)
        options.max_angular_velocity = 4.0e3
        options.angular_damping = 0.0
        flyer = self.gym.load_asset(self.sim, folder, "flyer.xml", options)
        options = gymapi.AssetOptions()
        options.fix_base_link, options.disable_gravity, options.armature = True, True, 0.01
        arm = self.gym.load_asset(self.sim, arm_folder, "arm.urdf", options)
        assets = dict(zip(NAMES, (arm, free, flyer), strict=True))
        self.counts = {name: self.gym.get_asset_dof_count(asset) for name, asset in assets.items()}
        poses = {
            "arm": gymapi.Transform(p=gymapi.Vec3(0.8, 0.0, 0.0), r=gymapi.Quat.from_euler_zyx(0, 0, 3.1)),
            "crawler": gymapi.Transform(p=gymapi.Vec3(-0.5, 0.5, 0.42)),
            "flyer": gymapi.Transform(p=gymapi.Vec3(0.0, -0.8, 1.0)),
        }
        self.envs, self.handles = [], {name: [] for name in NAMES}
        for i in range(num_envs):
            env = self.gym.create_env(self.sim, gymapi.Vec3(-1.5, -1.5, 0), gymapi.Vec3(1.5, 1.5, 2), 2)
            for name in NAMES:
                handle = self.gym.create_actor(env, assets[name], poses[name], name, i, 0)
                props = self.gym.get_actor_dof_properties(env, handle)
                props["driveMode"][:] = gymapi.DOF_MODE_EFFORT if name == "flyer" else gymapi.DOF_MODE_POS
                props["stiffness"][:] = {"arm": 400.0, "crawler": 60.0, "flyer": 0.0}[name]
                props["damping"][:] = {"arm": 40.0, "crawler": 2.0, "flyer": 0.0}[name]
                self.gym.set_actor_dof_properties(env, handle, props)
                self.handles[name].append(handle)
            self.envs.append(env)
        self.gym.prepare_sim(self.sim)
        wrap = gymtorch.wrap_tensor
        self.roots = wrap(self.gym.acquire_actor_root_state_tensor(self.sim)).view(num_envs, 3, 13)
        self.dofs = wrap(self.gym.acquire_dof_state_tensor(self.sim)).view(num_envs, -1, 2)
        self.bodies = wrap(self.gym.acquire_rigid_body_state_tensor(self.sim)).view(num_envs, -1, 13)
        self.indices = torch.arange(num_envs * 3, dtype=torch.int32).view(num_envs, 3)
        start, self.columns = 0, {}
        for name in NAMES:
            self.columns[name] = slice(start, start + self.counts[name])
            start += self.counts[name]
        self.begin = self.roots.clone(), self.dofs.clone()
        self.targets = torch.zeros_like(self.dofs[..., 0])
        self.targets[:, self.columns["crawler"]] = to_torch([0.6, -1.2] * 4)
        self.begin[1][..., 0] = self.targets
        self.chassis = [
            self.gym.get_actor_rigid_body_index(env, handle, 0, gymapi.DOMAIN_SIM)
            for env, handle in zip(self.envs, self.handles["flyer"], strict=True)
        ]
        bodies = self.gym.get_actor_rigid_body_properties(self.envs[0], self.handles["flyer"][0])
        self.flyer_mass = sum(body.mass for body in bodies)

    def step(self, arm_targets, spin=0.0):
        """Hold the flyer's height by a force on its chassis along its own axis."""
        self.targets[:, self.columns["arm"]] = arm_targets
        self.gym.set_dof_position_target_tensor(self.sim, gymtorch.unwrap_tensor(self.targets))
        efforts = torch.zeros_like(self.targets)
        efforts[:, self.columns["flyer"]] = spin * to_torch([1.0, -1.0, 1.0, -1.0])
        self.gym.set_dof_actuation_force_tensor(self.sim, gymtorch.unwrap_tensor(efforts))
        forces = torch.zeros((self.num_envs * self.bodies.shape[1], 3))
        error = 1.0 - self.roots[:, 2, 2]
        forces[self.chassis, 2] = self.flyer_mass * (9.81 + 9.0 * error - 6.0 * self.roots[:, 2, 9])
        self.gym.apply_rigid_body_force_tensors(
            self.sim, gymtorch.unwrap_tensor(forces), None, gymapi.ENV_SPACE
        )
        self.gym.simulate(self.sim)
        self.gym.fetch_results(self.sim, True)
        self.gym.refresh_actor_root_state_tensor(self.sim)
        self.gym.refresh_dof_state_tensor(self.sim)
        self.gym.refresh_rigid_body_state_tensor(self.sim)

    def reset(self, env_ids, robots=(0, 1, 2)):
        """Put robots of some envs back, both tensors by the same list of actors."""
        some = self.indices[env_ids][:, list(robots)].flatten()
        for name in (NAMES[robot] for robot in robots):
            self.dofs[env_ids, self.columns[name]] = self.begin[1][env_ids, self.columns[name]]
        for robot in robots:
            self.roots[env_ids, robot] = self.begin[0][env_ids, robot]
        roots, dofs = gymtorch.unwrap_tensor(self.roots), gymtorch.unwrap_tensor(self.dofs)
        self.gym.set_actor_root_state_tensor_indexed(self.sim, roots, gymtorch.unwrap_tensor(some), len(some))
        self.gym.set_dof_state_tensor_indexed(self.sim, dofs, gymtorch.unwrap_tensor(some), len(some))
