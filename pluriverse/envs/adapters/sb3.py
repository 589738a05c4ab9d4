"""An environment for Stable-Baselines3, whose algorithms take it as it is."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from pluriverse.envs.environment import Environment
from pluriverse.envs.vector_env import _space_of, completed_render_options, pictures_of

# Methods that depend on their arguments alone. Replay with other goals asks one environment for all of them.
METHODS_OF_ARGUMENTS = ("compute_reward",)


class Sb3VecEnv(VecEnv):
    """An environment in the interface of `stable_baselines3.common.vec_env.VecEnv`.

    Args:
        env: The environment, on a CPU, which resets what is done by itself.
        render_options: Options of pictures, as of `pluriverse.envs.VectorEnv`.

    Raises:
        TypeError: If there is no such option of pictures.
        ValueError: If the environment is on a GPU, or was made with `reset_done=False`.
    """

    def __init__(self, env: Environment, *, render_options: Mapping[str, Any] | None = None) -> None:
        if env.device.type != "cpu":
            raise ValueError(
                f"Sb3VecEnv: Stable-Baselines3 works with NumPy, which cannot see {env.device}. Make the "
                "Environment with device='cpu'."
            )
        if not env.reset_done:
            raise ValueError(
                "Sb3VecEnv: Stable-Baselines3 expects environments to begin anew by themselves. Make the "
                "Environment without reset_done=False."
            )
        self.env = env
        self._render_options = completed_render_options(render_options)
        self.render_mode = "rgb_array"
        self._actions: np.ndarray | None = None
        limit, count = env.task.action_limit, env.task.action_count
        self._returns = np.zeros(env.env_count)
        self._lengths = np.zeros(env.env_count, dtype=np.int64)
        super().__init__(
            env.env_count,
            _space_of(env.reset()),
            gymnasium.spaces.Box(-limit, limit, (count,), np.float32),
        )

    def reset(self) -> Any:
        """Begin all episodes anew and return what is observed."""
        seed = next((seed for seed in self._seeds if seed is not None), None)
        observations = self.env.reset(seed=None if seed is None else seed % 2**31)
        self._returns[:], self._lengths[:] = 0.0, 0
        self._reset_seeds()
        self._reset_options()
        return _plain(observations)

    def step_async(self, actions: np.ndarray) -> None:
        """Store the actions of the next step."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Make one step in all environments."""
        result = self.env.step(self._actions)
        rewards = result.rewards.numpy()
        done = (result.terminated | result.truncated).numpy()
        self._returns += rewards
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        final = _plain(result.final_observations)
        truncated = result.truncated.numpy()
        for env in np.flatnonzero(done):
            last = (
                {name: part[env] for name, part in final.items()} if isinstance(final, dict) else final[env]
            )
            infos[env] = {
                "terminal_observation": last,
                "TimeLimit.truncated": bool(truncated[env]),
                "episode": {"r": float(self._returns[env]), "l": int(self._lengths[env])},
            }
        self._returns[done], self._lengths[done] = 0.0, 0
        return _plain(result.observations), rewards, done, infos

    def close(self) -> None:
        """End the threads of the simulation."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute, once for each environment asked for."""
        owner = self if attr_name in ("render_mode",) else self._owner(attr_name)
        return [getattr(owner, attr_name)] * len(self._selected(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the task, which all environments share.

        Raises:
            ValueError: If it is asked for some environments only.
        """
        self._check_all("set_attr", attr_name, indices)
        setattr(self._owner(attr_name), attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **options: Any) -> list[Any]:
        """Call a method of the task or the environment once, and return its result for each asked for.

        Raises:
            ValueError: If it is asked for some environments only.
        """
        if method_name not in METHODS_OF_ARGUMENTS:
            self._check_all("env_method", method_name, indices)
        result = getattr(self._owner(method_name), method_name)(*args, **options)
        return [result] * len(self._selected(indices))

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return false: nothing is wrapped. Returns and lengths of episodes are in the infos nevertheless."""
        return [False] * len(self._selected(indices))

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Return a picture of each environment."""
        return pictures_of(self.env, self._render_options)

    def _owner(self, name: str) -> Any:
        return self.env.task if hasattr(self.env.task, name) else self.env

    def _check_all(self, what: str, name: str, indices: Any) -> None:
        if set(self._selected(indices)) != set(range(self.num_envs)):
            raise ValueError(
                f"Sb3VecEnv.{what}: '{name}' is of the task that all environments share, but indices are "
                f"{indices!r} of {self.num_envs}. Leave them out; a method of the task may take a mask."
            )

    def _selected(self, indices: Any) -> list[int]:
        return list(self._get_indices(indices))


def _plain(observations: Any) -> Any:
    if observations is None:
        return None
    if isinstance(observations, dict):
        return {name: part.numpy() for name, part in observations.items()}
    return observations.numpy()
