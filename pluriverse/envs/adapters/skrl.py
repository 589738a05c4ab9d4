"""An environment for skrl, whose agents and trainers take it as it is."""

from typing import Any

import gymnasium
import numpy as np
from skrl.envs.wrappers.torch import Wrapper

from pluriverse.envs.environment import Environment
from pluriverse.envs.vector_env import _space_of


class SkrlEnv(Wrapper):
    """An environment in the interface of `skrl.envs.wrappers.torch.Wrapper`, in PyTorch tensors.

    Args:
        env: The environment, which resets what is done by itself. Of several groups of observations, skrl
            sees `policy`, and `critic` as its state.

    Raises:
        ValueError: If the environment was made with `reset_done=False`.
    """

    def __init__(self, env: Environment) -> None:
        if not env.reset_done:
            raise ValueError(
                "SkrlEnv: skrl expects environments to begin anew by themselves. Make the Environment "
                "without reset_done=False."
            )
        super().__init__(env)
        self._first = env.reset()
        self._spaces = _space_of(self._first)
        limit, count = env.task.action_limit, env.task.action_count
        self._actions = gymnasium.spaces.Box(-limit, limit, (count,), np.float32)
        self._critic: Any = None

    @property
    def unwrapped(self) -> Environment:
        """The environment itself."""
        env: Environment = self._env
        return env

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return int(self._env.env_count)

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """Observations of the policy for one environment."""
        return self._spaces["policy"] if isinstance(self._spaces, gymnasium.spaces.Dict) else self._spaces

    @property
    def state_space(self) -> gymnasium.Space[Any] | None:
        """Observations of the critic for one environment, if they differ."""
        if isinstance(self._spaces, gymnasium.spaces.Dict) and "critic" in self._spaces.spaces:
            return self._spaces["critic"]
        return None

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """An action of one environment."""
        return self._actions

    def reset(self) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes anew the first time; later ones go on, since they begin by themselves."""
        if self._first is None:
            return self._observation(self._env._observe()), {}
        first, self._first = self._first, None
        return self._observation(first), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Make one step in all environments."""
        result = self._env.step(actions)
        # Trainers log the values under this name by default.
        info = {"episode": {f"reward / {name}": term.mean() for name, term in result.reward_terms.items()}}
        return (
            self._observation(result.observations),
            result.rewards.unsqueeze(1),
            result.terminated.unsqueeze(1),
            result.truncated.unsqueeze(1),
            info,
        )

    def state(self) -> Any:
        """Return what the critic sees now, or None."""
        return self._critic

    def render(self, *_: Any, **__: Any) -> None:
        """Do nothing: by default, trainers call this in every step and ignore what it returns.

        `unwrapped.render()` returns a picture.
        """

    def close(self) -> None:
        """End the threads of the simulation."""
        self._env.close()

    def _observation(self, observations: Any) -> Any:
        if isinstance(observations, dict):
            self._critic = observations.get("critic")
            return observations["policy"]
        return observations
