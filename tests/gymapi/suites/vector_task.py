"""Base of tasks: parameters from a configuration, buffers, randomization, and a step made of hooks."""

# Scripts draw from NumPy's global generator.
# ruff: noqa: NPY002

import abc
import copy
from typing import Any

import numpy as np
import torch

from pluriverse import gymapi, gymtorch, gymutil


class VectorTask(abc.ABC):
    """A task of many envs.

    Args:
        cfg: Dictionary with `env`, `sim` and `task`, as configuration files give it.
        device: Device of the simulation, such as "cpu" or "cuda:0".
    """

    def __init__(self, cfg: dict[str, Any], device: str = "cpu"):
        self.cfg = copy.deepcopy(cfg)
        kind, number = gymutil.parse_device_str(device)
        self.device = device if kind == "cuda" and cfg["sim"].get("use_gpu_pipeline") else "cpu"
        self.num_envs = cfg["env"]["numEnvs"]
        self.gym = gymapi.acquire_gym()
        self.sim_params = gymapi.SimParams()
        gymutil.parse_sim_config(cfg["sim"], self.sim_params)
        self.sim = self.gym.create_sim(number, -1, gymapi.SIM_PHYSX, self.sim_params)
        if self.sim is None:
            raise RuntimeError("no sim")
        self.envs: list[Any] = []
        self.actors: list[int] = []
        self.create_ground()
        self.create_envs()
        self.randomize(self.cfg["task"].get("randomization", {}))
        self.acquire()
        self.gym.prepare_sim(self.sim)

        torch._C._jit_set_profiling_mode(False)
        self.obs_buf = torch.zeros((self.num_envs, cfg["env"]["numObservations"]), device=self.device)
        self.rew_buf = torch.zeros(self.num_envs, device=self.device)
        self.reset_buf = torch.ones(self.num_envs, device=self.device, dtype=torch.long)
        self.progress_buf = torch.zeros(self.num_envs, device=self.device, dtype=torch.long)

    def create_ground(self):
        plane = gymapi.PlaneParams()
        plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
        plane.static_friction = self.cfg["env"].get("friction", 1.0)
        self.gym.add_ground(self.sim, plane)

    def acquire(self):
        """Wrap the tensors of states; views share their memory."""
        roots = self.gym.acquire_actor_root_state_tensor(self.sim)
        dofs = self.gym.acquire_dof_state_tensor(self.sim)
        self.root_states = gymtorch.wrap_tensor(roots)
        self.dof_state = gymtorch.wrap_tensor(dofs)
        self.num_dof = self.dof_state.shape[0] // self.num_envs
        self.dof_pos = self.dof_state.view(self.num_envs, self.num_dof, 2)[..., 0]
        self.dof_vel = self.dof_state.view(self.num_envs, self.num_dof, 2)[..., 1]
        self.actor_indices = torch.tensor(
            [self.gym.get_actor_index(env, 0, gymapi.DOMAIN_SIM) for env in self.envs],
            dtype=torch.int32,
            device=self.device,
        )

    def randomize(self, settings):
        """Draw properties of the first actor of each env, before the sim is prepared."""
        getters = gymutil.get_property_getter_map(self.gym)
        setters = gymutil.get_property_setter_map(self.gym)
        further = gymutil.get_default_setter_args(self.gym)
        for env, actor in zip(self.envs, self.actors, strict=True):
            if settings.get("scale"):
                low, high = settings["scale"]
                self.gym.set_actor_scale(env, actor, np.random.uniform(low, high))
            for kind, attributes in settings.get("properties", {}).items():
                properties = getters[kind](env, actor)
                for part in [properties] if isinstance(properties, np.ndarray) else properties:
                    before = (
                        part.copy()
                        if isinstance(part, np.ndarray)
                        else {name: getattr(part, name) for name in dir(part) if not name.startswith("_")}
                    )
                    for name, how in attributes.items():
                        gymutil.apply_random_samples(part, before, name, how, 0)
                setters[kind](env, actor, properties, *further[kind])

    @abc.abstractmethod
    def create_envs(self): ...

    @abc.abstractmethod
    def pre_physics_step(self, actions): ...

    @abc.abstractmethod
    def post_physics_step(self): ...

    @abc.abstractmethod
    def reset_idx(self, env_ids): ...

    def step(self, actions):
        """Advance all envs; those that were done are reset first."""
        done = self.reset_buf.nonzero(as_tuple=False).squeeze(-1)
        if len(done) > 0:
            self.reset_idx(done)
        self.pre_physics_step(torch.clamp(actions, -1.0, 1.0))
        for _ in range(self.cfg["env"].get("controlFrequencyInv", 1)):
            self.gym.simulate(self.sim)
        if self.device == "cpu":
            self.gym.fetch_results(self.sim, True)
        self.gym.refresh_actor_root_state_tensor(self.sim)
        self.gym.refresh_dof_state_tensor(self.sim)
        self.progress_buf += 1
        self.post_physics_step()
        return {"obs": self.obs_buf}, self.rew_buf, self.reset_buf, {}
