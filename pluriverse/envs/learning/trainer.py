"""Trainer: proximal policy optimization by rsl_rl on an environment, with checkpoints to resume from."""

import contextlib
import io
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from pluriverse.envs.adapters.rsl_rl import RslRlEnv
from pluriverse.envs.environment import Environment, StepResult
from pluriverse.envs.learning.config import LearningConfig
from pluriverse.envs.learning.policy import export_policy

CHECKPOINT = "checkpoint.pt"
POLICY = "policy.onnx"
CURVE = "curve.jsonl"


@dataclass
class Progress:
    """Figures of one update."""

    iteration: int
    """Updates so far."""
    env_steps: int
    """Steps of all environments so far."""
    seconds: float
    """Time spent so far, including the runs that this one resumes [s]."""
    reward: float
    """Mean reward of a step of an environment."""
    episode_return: float
    """Mean return of the episodes that ended last; NaN before any has."""
    episode_seconds: float
    """Mean simulated length of the episodes that ended last [s]; NaN before any has."""
    simulate_share: float
    """Share of the time of this update that went into stepping the simulation."""
    learn_share: float
    """Share that went into the networks."""
    action_std: float
    """Mean standard deviation of actions."""
    metrics: dict[str, float]
    """Terms of the reward per second and metrics of the task, as means over the update."""


class Trainer:
    """Trains a policy, and keeps checkpoints in a folder.

    A run repeats bit for bit with its seed, on the same machine with the same number of threads. One that
    resumes from a checkpoint starts new episodes.

    Args:
        env: Environment.
        config: Settings.
        folder: Folder for checkpoints and curves; None keeps nothing.
        description: Description of the task in checkpoints, plain values.
        resume: Whether to resume from the checkpoint in the folder, if there is one.
        begin_with: Checkpoint, or folder of a run, with the initial networks, possibly of another task with
            the same observations and actions. A resumed run uses its own.

    Raises:
        FileNotFoundError: If `resume` is set without a folder, or there is nothing at `begin_with`.
        ValueError: If a checkpoint is of another task, or its networks do not fit.
    """

    def __init__(
        self,
        env: Environment,
        config: LearningConfig,
        *,
        folder: str | Path | None = None,
        description: dict[str, Any] | None = None,
        resume: bool = False,
        begin_with: str | Path | None = None,
    ) -> None:
        self.env, self.config = env, config
        self.folder = None if folder is None else Path(folder)
        self.description = dict(description or {})
        torch.manual_seed(env.seed)
        self._adapter = _SummedEnv(env)
        self.ppo = _make_ppo(self._adapter, config)
        self.iteration = 0
        self.env_steps = 0
        self.seconds = 0.0
        self._returns: list[float] = []
        self._lengths: list[float] = []
        self._return = torch.zeros(env.env_count, device=env.device)
        self._length = torch.zeros(env.env_count, device=env.device)
        self._simulate_time = 0.0
        self._time_steps()
        if begin_with is not None:
            self._take_networks(begin_with, read_checkpoint(begin_with))
        if resume:
            if self.folder is None:
                raise FileNotFoundError("Trainer: resume needs the folder of the run that it goes on from.")
            if (self.folder / CHECKPOINT).exists():
                self.load(self.folder / CHECKPOINT)
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def train(
        self,
        iterations: int | None = None,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        stop: Callable[[Progress], bool] | None = None,
        max_seconds: float | None = None,
    ) -> Progress | None:
        """Train up to a total number of updates, and return the figures of the last one.

        Args:
            iterations: Updates in all; those of the settings if None.
            on_progress: Called with the figures of every update.
            stop: Whether to end after an update.
            max_seconds: Time after which to end, including the runs that this one resumes [s].
        """
        total = self.config.iterations if iterations is None else iterations
        observations = self._adapter.get_observations()
        self.ppo.train_mode()
        progress = None
        while self.iteration < total:
            progress, observations = self._iterate(observations)
            self._note(progress)
            if on_progress is not None:
                on_progress(progress)
            if self.iteration % self.config.checkpoint_interval == 0:
                self.save()
            if stop is not None and stop(progress):
                break
            if max_seconds is not None and self.seconds >= max_seconds:
                break
        self.save()
        return progress

    def _iterate(self, observations: Any) -> tuple[Progress, Any]:
        config, env = self.config, self.env
        start = time.perf_counter()
        simulate_before = self._simulate_time
        total = torch.zeros(env.env_count, device=env.device)
        self._adapter.sums.clear()
        with torch.inference_mode():
            for _ in range(config.steps_per_iteration):
                actions = self.ppo.act(observations)
                observations, rewards, dones, extras = self._adapter.step(actions)
                self.ppo.process_env_step(observations, rewards, dones, extras)
                self._count(rewards, dones)
                total += rewards
            collected = time.perf_counter()
            self.ppo.compute_returns(observations)
        self.ppo.update()
        end = time.perf_counter()
        self.iteration += 1
        self.env_steps += config.steps_per_iteration * env.env_count
        self.seconds += end - start
        steps = config.steps_per_iteration
        recent = slice(-max(100, env.env_count), None)
        self._returns, self._lengths = self._returns[recent], self._lengths[recent]
        span = end - start
        return (
            Progress(
                self.iteration,
                self.env_steps,
                self.seconds,
                float(total.mean()) / steps,
                _mean(self._returns),
                _mean(self._lengths) * env.step_seconds,
                (self._simulate_time - simulate_before) / span,
                (end - collected) / span,
                float(self.ppo.get_policy().output_std.detach().mean()),
                {name: float(value.mean()) / steps for name, value in self._adapter.sums.items()},
            ),
            observations,
        )

    def _count(self, rewards: Any, dones: Any) -> None:
        self._return += rewards
        self._length += 1
        ended = dones.bool()
        if bool(ended.any()):
            self._returns += self._return[ended].tolist()
            self._lengths += self._length[ended].tolist()
            self._return.masked_fill_(ended, 0.0)
            self._length.masked_fill_(ended, 0.0)

    def _time_steps(self) -> None:
        """Measure the time spent in the simulation."""
        simulation = self.env.simulation
        step = simulation.step

        def timed(count: int = 1) -> None:
            start = time.perf_counter()
            step(count)
            self._simulate_time += time.perf_counter() - start

        simulation.step = timed  # type: ignore[method-assign]

    # files

    def save(self, path: str | Path | None = None) -> Path | None:
        """Write a checkpoint atomically, and return its path; None without a folder.

        Without a path it goes to the folder, together with the policy, so that a killed run can be inspected.
        """
        if path is None:
            if self.folder is None:
                return None
            path = self.folder / CHECKPOINT
            description = self.description | {"iteration": self.iteration}
            policy = export_policy(self.ppo.get_policy(), self.folder / f"partial.{POLICY}", description)
            os.replace(policy, self.folder / POLICY)
        path = Path(path)
        content = {
            "format": 1,
            "ppo": self.ppo.save(),
            "iteration": self.iteration,
            "env_steps": self.env_steps,
            "seconds": self.seconds,
            "seed": self.env.seed,
            "config": self.config.as_dict(),
            "description": self.description,
            "random": torch.get_rng_state(),
            "learning_rate": float(self.ppo.learning_rate),
        }
        partial = path.with_name(path.name + ".partial")
        with open(partial, "wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        return path

    def load(self, path: str | Path) -> None:
        """Go on from a checkpoint.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If it is damaged or of another task.
        """
        content = read_checkpoint(path)
        known = content["description"].get("task")
        own = self.description.get("task")
        if known is not None and own is not None and known != own:
            raise ValueError(
                f"'{path}' is a checkpoint of the task '{known}', not of '{own}'. Use another folder, or "
                "train that task."
            )
        self._take_networks(path, content)
        self.iteration, self.env_steps = int(content["iteration"]), int(content["env_steps"])
        self.seconds = float(content["seconds"])
        self.ppo.learning_rate = content["learning_rate"]
        torch.set_rng_state(content["random"])
        if self.folder is not None:
            _cut_curve(self.folder / CURVE, self.iteration)

    def _take_networks(self, path: str | Path, content: dict[str, Any]) -> None:
        try:
            self.ppo.load(content["ppo"], None, True)
        except RuntimeError as error:
            raise ValueError(
                f"'{path}' does not fit: its networks are of other sizes than those of the task and settings "
                f"now ({str(error).splitlines()[-1].strip()}). Use another run, or the settings of then."
            ) from error

    def _note(self, progress: Progress) -> None:
        """Append the figures of an update to the curve."""
        if self.folder is not None:
            with open(self.folder / CURVE, "a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(progress)) + "\n")


class _SummedEnv(RslRlEnv):
    """An environment that accumulates its logs over an update instead of reporting every step."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self.sums: dict[str, Any] = {}

    def log(self, result: StepResult) -> dict[str, Any]:
        """Add the terms of the reward and the metrics of a step to their sums."""
        self._add("reward", result.reward_terms)
        self._add("metric", self.env.task.metrics(self.env))
        return {}

    def _add(self, kind: str, values: dict[str, Any]) -> None:
        for name, value in values.items():
            key = f"{kind}/{name}"
            if key in self.sums:
                self.sums[key] += value
            else:
                self.sums[key] = torch.as_tensor(value, dtype=torch.float32).clone()


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Return the contents of a checkpoint; only plain values and tensors are unpickled.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged.
    """
    path = Path(path)
    if path.is_dir():
        path = path / CHECKPOINT
    if not path.exists():
        raise FileNotFoundError(f"there is no checkpoint '{path}'. Train first: pluriverse train TASK.")
    try:
        content = torch.load(path, weights_only=True, map_location="cpu")
    except Exception as error:  # whatever a damaged file makes of it
        raise ValueError(f"'{path}' is no checkpoint, or damaged: {error}") from error
    if not isinstance(content, dict) or content.get("format") != 1:
        raise ValueError(f"'{path}' is no checkpoint of this program.")
    return content


def read_curve(folder: str | Path) -> list[dict[str, Any]]:
    """Return the figures of all updates of a run."""
    path = Path(folder) / CURVE
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _cut_curve(path: Path, iteration: int) -> None:
    """Remove the entries that a killed run wrote after the checkpoint, including an incomplete line."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["iteration"] <= iteration:
                kept.append(line)
        except (json.JSONDecodeError, KeyError):
            break
    path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


def _make_ppo(env: RslRlEnv, config: LearningConfig) -> Any:
    from rsl_rl.algorithms import PPO

    settings = config.rsl_rl(env.env.seed)
    observations = env.get_observations()
    if "critic" in observations.keys():  # noqa: SIM118, a TensorDict iterates over rows
        settings["obs_groups"]["critic"] = ["critic"]
    if config.symmetric:
        settings["algorithm"]["symmetry_cfg"] = {
            "use_data_augmentation": True,
            "data_augmentation_func": _mirroring(env.env),
        }
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its networks
        return PPO.construct_algorithm(observations, env, settings, env.device)


def _mirroring(env: Environment) -> Callable[..., Any]:
    """Return a function that appends mirrored rows to observations and actions, as rsl_rl calls it."""
    mirror = env.task.mirror(env)
    if mirror is None:
        raise ValueError(
            f"LearningConfig: symmetric is set, but {type(env.task).__name__} does not say what it looks "
            "like in the mirror. Define mirror(self, env), or leave symmetric out."
        )
    reflect_observations = mirror.observations.prepared(env.device)
    reflect_actions = mirror.actions.prepared(env.device)

    def with_mirrored(*, env: Any, obs: Any = None, actions: Any = None) -> tuple[Any, Any]:
        if obs is not None:
            reflected = obs.clone()
            for group in obs.keys():  # noqa: SIM118, a TensorDict iterates over rows
                reflected[group] = reflect_observations(obs[group])
            obs = torch.cat([obs, reflected])
        if actions is not None:
            actions = torch.cat([actions, reflect_actions(actions)])
        return obs, actions

    return with_mirrored


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")
