"""VectorEnv: an environment as Gymnasium's vector environment, in NumPy or PyTorch."""

import difflib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from pluriverse.envs.environment import Environment
from pluriverse.envs.task import Task

# Options of pictures: a video takes hundreds, so one should take a tenth of a second on two cores.
RENDER_OPTIONS: Mapping[str, Any] = {"size": (480, 360), "samples": 1}
# Arguments of `draw` that an environment chooses itself, one picture for each world as it is now.
CHOSEN_RENDER_OPTIONS = ("simulation", "worlds", "state", "path")


class VectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """A task in many worlds at once, as `gymnasium.vector.VectorEnv`.

    NumPy arrays share memory with the tensors that the task computes. Those of a step are new, and may be
    kept.

    Args:
        task: What is to be learnt.
        num_envs: Number of environments.
        seed: Seed until `reset(seed=...)` gives another.
        autoreset_mode: `AutoresetMode.NEXT_STEP` (the default of Gymnasium): an environment that has ended is
            reset by the next step, whose action for it is ignored. `SAME_STEP`: it is reset at once, and
            `info["final_obs"]` has the last observation. `DISABLED`: reset it by
            `reset(options={"reset_mask": mask})`.
        library: `"numpy"`, or `"torch"` for tensors on the device of the simulation.
        device: Device of the simulation; NumPy needs a CPU.
        threads: CPU threads of the simulation; all cores if None.
        identities: Identity of each environment, if it is a part of a larger batch.
        render_mode: `"rgb_array"`, or None.
        render_options: Options of `pluriverse.draw` for pictures, such as `{"size": (960, 600)}`; by default
            480 by 360 pixels and one ray per pixel.

    Raises:
        TypeError: If there is no such option of pictures.
        ValueError: If an option is none of the known ones.
    """

    metadata = {"render_modes": ["rgb_array"], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        task: Task,
        num_envs: int,
        *,
        seed: int = 0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        library: str = "numpy",
        device: Any = None,
        threads: int | None = None,
        identities: Sequence[int] | np.ndarray | None = None,
        render_mode: str | None = None,
        render_options: Mapping[str, Any] | None = None,
    ) -> None:
        if library not in ("numpy", "torch"):
            raise ValueError(f"VectorEnv: library is {library!r}, but must be 'numpy' or 'torch'.")
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"VectorEnv: render_mode is {render_mode!r}, but must be 'rgb_array' or None.")
        if render_options is not None and render_mode is None:
            raise ValueError("VectorEnv: render_options are of no use without render_mode='rgb_array'.")
        self._render_options = completed_render_options(render_options)
        self._mode = as_mode(autoreset_mode)
        if library == "numpy" and device is None:
            device = "cpu"
        self._library, self._first_seed = library, seed
        self.env = Environment(
            task,
            num_envs,
            seed=seed,
            device=device,
            threads=threads,
            identities=identities,
            reset_done=self._mode is AutoresetMode.SAME_STEP,
        )
        if library == "numpy" and self.env.device.type != "cpu":
            raise ValueError(
                f"VectorEnv: NumPy cannot see {self.env.device}. Pass library='torch' or device='cpu'."
            )
        self.num_envs = self.env.env_count
        self.render_mode = render_mode
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": max(1, round(1.0 / self.env.step_seconds)),
            "autoreset_mode": self._mode,
        }
        self.single_action_space = gymnasium.spaces.Box(
            -task.action_limit, task.action_limit, (task.action_count,), np.float32
        )
        observations = self.env.reset()
        self.single_observation_space = _space_of(observations)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, self.num_envs)
        self.observation_space = gymnasium.vector.utils.batch_space(
            self.single_observation_space, self.num_envs
        )
        self._is_fresh = True

    @property
    def device(self) -> Any:
        """Device of the tensors."""
        return self.env.device

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin episodes anew.

        Args:
            seed: Seed of all draws from now on; of several the first. None goes on with the draws so far.
            options: `{"reset_mask": mask}` resets some environments only; a seed resets all.

        Raises:
            ValueError: If a seed or mask does not fit, or there is a seed and the mask leaves out some.
        """
        first = first_seed(seed)
        mask = None if options is None else options.get("reset_mask")
        if first is None and self._is_fresh:
            # So the first episode is that of the seed of the constructor. Nothing has been stepped, so those
            # that a mask leaves out stay where they are.
            if mask is not None:
                self.env._as_mask(mask)
            first, mask = self._first_seed, None
        self._is_fresh = False
        observations = self.env.reset(mask, seed=first)
        return self._out(observations), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Make one step in all environments."""
        env, self._is_fresh = self.env, False
        if self._mode is AutoresetMode.NEXT_STEP:
            reset = env.ended.clone()  # the step adds those that end in it
            given = env._as_actions(actions) * ~reset.unsqueeze(1)
            result = env.step(given)
            if bool(reset.any()):
                # They were stepped with the others, but only their initial observations count.
                result.observations = env.reset(reset)
                keep = ~reset
                result.rewards = result.rewards * keep
                result.terminated = result.terminated & keep
                result.truncated = result.truncated & keep
        else:
            if self._mode is AutoresetMode.DISABLED and bool(env.ended.any()):
                ended = int(env.ended.nonzero()[0])
                raise RuntimeError(
                    f"VectorEnv.step: environment {ended} has ended, and autoreset is disabled. Call "
                    'reset(options={"reset_mask": terminated | truncated}) first.'
                )
            result = env.step(actions)
        info: dict[str, Any] = {}
        if result.final_observations is not None:
            ended = self._plain(result.terminated | result.truncated)
            info = {"final_obs": self._out(result.final_observations), "_final_obs": ended}
        if result.reward_terms:
            info["reward_terms"] = {name: self._plain(term) for name, term in result.reward_terms.items()}
        return (
            self._out(result.observations),
            self._plain(result.rewards),
            self._plain(result.terminated),
            self._plain(result.truncated),
            info,
        )

    def progress(self) -> dict[str, Any]:
        """Return the state outside the environment that later calls depend on, for `set_progress`."""
        return {"is_fresh": self._is_fresh}

    def set_progress(self, progress: dict[str, Any]) -> None:
        """Come back to where `progress` was taken."""
        self._is_fresh = progress["is_fresh"]

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return a picture of each environment, if `render_mode` is `rgb_array`."""
        if self.render_mode is None:
            return None
        return pictures_of(self.env, self._render_options)

    def close_extras(self, **_: Any) -> None:
        """End the threads of the simulation."""
        self.env.close()

    def _plain(self, values: Any) -> Any:
        return values.numpy() if self._library == "numpy" else values

    def _out(self, observations: Any) -> Any:
        if isinstance(observations, dict):
            return {name: self._plain(part) for name, part in observations.items()}
        return self._plain(observations)


class SingleEnv(gymnasium.Env[Any, Any]):
    """A task in one world, as `gymnasium.Env`, in NumPy.

    It goes through the episodes of the first environment of a batch with the same seed.

    Args:
        task: What is to be learnt.
        seed: Seed until `reset(seed=...)` gives another.
        identity: Which environment of a batch it is, of which patterns may then find nothing, with a
            warning; the only one of a batch of its own if None.
        render_mode: `"rgb_array"`, or None.
        render_options: Options of pictures, as of `VectorEnv`.
        threads: CPU threads of the simulation.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(
        self,
        task: Task,
        *,
        seed: int = 0,
        identity: int | None = None,
        render_mode: str | None = None,
        render_options: Mapping[str, Any] | None = None,
        threads: int | None = 1,
    ) -> None:
        self._batch = VectorEnv(
            task,
            1,
            seed=seed,
            autoreset_mode=AutoresetMode.DISABLED,
            identities=None if identity is None else [identity],
            render_mode=render_mode,
            render_options=render_options,
            threads=threads,
        )
        self.render_mode = render_mode
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": self._batch.metadata["render_fps"],
        }
        self.observation_space = self._batch.single_observation_space
        self.action_space = self._batch.single_action_space

    @property
    def env(self) -> Environment:
        """The environment itself."""
        return self._batch.env

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        observations, info = self._batch.reset(seed=seed)
        return _first(observations), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Make one step.

        Raises:
            RuntimeError: If the episode has ended.
            ValueError: If the action has another shape, or holds NaN.
        """
        if bool(self.env.ended.any()):
            raise RuntimeError("SingleEnv.step: the episode has ended. Call reset() first.")
        given = np.asarray(action)
        expected = self.action_space.shape
        if given.shape != expected:
            raise ValueError(f"SingleEnv.step: the action has shape {given.shape}, but must have {expected}.")
        observations, rewards, terminated, truncated, info = self._batch.step(given[None])
        terms = {name: float(term[0]) for name, term in info.get("reward_terms", {}).items()}
        return (
            _first(observations),
            float(rewards[0]),
            bool(terminated[0]),
            bool(truncated[0]),
            {"reward_terms": terms} if terms else {},
        )

    def render(self) -> Any:
        """Return a picture, if `render_mode` is `rgb_array`."""
        pictures = self._batch.render()
        return None if pictures is None else pictures[0]

    def close(self) -> None:
        """End the threads of the simulation."""
        self._batch.close()


def _first(observations: Any) -> Any:
    if isinstance(observations, dict):
        return {name: part[0] for name, part in observations.items()}
    return observations[0]


def completed_render_options(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return options of pictures, those that are not given at their quick defaults.

    Raises:
        TypeError: If there is no such option.
    """
    if given:
        from pluriverse.render import draw

        known = [name for name in inspect.signature(draw).parameters if name not in CHOSEN_RENDER_OPTIONS]
        for name in given:
            if name not in known:
                close = difflib.get_close_matches(str(name), known, n=1)
                hint = f"Did you mean '{close[0]}'?" if close else f"There are {', '.join(known)}."
                raise TypeError(f"render_options: there is no option {name!r}. {hint}")
    return {**RENDER_OPTIONS, **(given or {})}


def pictures_of(env: Environment, options: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
    """Return a picture of each environment."""
    return tuple(env.render(worlds=[world], **options) for world in range(env.env_count))


def as_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return the mode of a name.

    Raises:
        ValueError: If there is none.
    """
    if isinstance(mode, AutoresetMode):
        return mode
    for known in AutoresetMode:
        if mode in (known.value, known.name, known.name.lower()):
            return known
    names = ", ".join(repr(known.name.lower()) for known in AutoresetMode)
    raise ValueError(f"VectorEnv: autoreset_mode is {mode!r}, but must be one of {names}.")


def first_seed(seed: Any) -> int | None:
    """Return the seed of the batch; of several the first, which all environments draw from."""
    if seed is None or isinstance(seed, int | np.integer):
        return None if seed is None else int(seed) % 2**31
    known = [each for each in seed if each is not None]
    return int(known[0]) % 2**31 if known else None


def _space_of(observations: Any) -> gymnasium.Space[Any]:
    if isinstance(observations, dict):
        return gymnasium.spaces.Dict({name: _space_of(part) for name, part in observations.items()})
    return gymnasium.spaces.Box(-np.inf, np.inf, tuple(observations.shape[1:]), np.float32)
