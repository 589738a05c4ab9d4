"""An environment for rsl_rl, whose runners take it as it is."""

from typing import Any

import torch
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from pluriverse.envs.environment import Environment, StepResult


class RslRlEnv(VecEnv):
    """An environment in the interface of `rsl_rl.env.VecEnv`.

    Observations of a task that gives one tensor are the group `policy`.

    Args:
        env: The environment, which resets what is done by itself.

    Raises:
        ValueError: If the environment was made with `reset_done=False`.
    """

    def __init__(self, env: Environment) -> None:
        if not env.reset_done:
            raise ValueError(
                "RslRlEnv: rsl_rl expects environments to begin anew by themselves. Make the Environment "
                "without reset_done=False."
            )
        self.env = env
        self.num_envs = env.env_count
        self.num_actions = int(env.task.action_count)
        self.max_episode_length = env.max_episode_steps
        self.device = str(env.device)
        self.cfg = {
            "task": type(env.task).__name__,
            "num_envs": env.env_count,
            "seed": env.seed,
            "dt": env.task.dt,
            "decimation": env.task.decimation,
        }
        self._observations = self._grouped(env.reset())

    @property
    def episode_length_buf(self) -> Any:
        """Steps of each environment in its episode, shape [env]."""
        return self.env.episode_steps

    @episode_length_buf.setter
    def episode_length_buf(self, steps: Any) -> None:
        self.env.episode_steps.copy_(steps)

    @property
    def unwrapped(self) -> Environment:
        """The environment itself."""
        return self.env

    def get_observations(self) -> TensorDict:
        """Return what was observed last."""
        return self._observations

    def reset(self) -> tuple[TensorDict, dict[str, Any]]:
        """Begin all episodes anew."""
        self._observations = self._grouped(self.env.reset())
        return self._observations, {}

    def step(self, actions: Any) -> tuple[TensorDict, Any, Any, dict[str, Any]]:
        """Make one step in all environments."""
        result = self.env.step(actions)
        self._observations = self._grouped(result.observations)
        extras: dict[str, Any] = {"time_outs": result.truncated}
        log = self.log(result)
        if log:
            extras["log"] = log
        return self._observations, result.rewards, (result.terminated | result.truncated).long(), extras

    def log(self, result: StepResult) -> dict[str, Any]:
        """Return means of the terms of the reward and of the metrics of a step, under their names in logs."""
        values = {f"/reward/{name}": term for name, term in result.reward_terms.items()}
        values |= {f"/metric/{name}": value for name, value in self.env.task.metrics(self.env).items()}
        # Means at once: what a metric shows may be gone when the log is written.
        return {
            name: value.float().mean() if isinstance(value, torch.Tensor) else value
            for name, value in values.items()
        }

    def close(self) -> None:
        """End the threads of the simulation."""
        self.env.close()

    def _grouped(self, observations: Any) -> TensorDict:
        groups = observations if isinstance(observations, dict) else {"policy": observations}
        return TensorDict(groups, batch_size=[self.num_envs], device=self.device)
