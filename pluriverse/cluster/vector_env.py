"""FleetVectorEnv: environments of a task over many processes, as Gymnasium's vector environment."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

from pluriverse.cluster.crew import ask_parts, parts_as_they_end, start_parts
from pluriverse.cluster.environments import EnvironmentDescription, EnvironmentWorker
from pluriverse.cluster.errors import ClusterError
from pluriverse.cluster.fleet import shared_out
from pluriverse.cluster.part import SNAPSHOT_INTERVAL, Part, Placement
from pluriverse.cluster.runtime import connect, pickled
from pluriverse.envs.registry import find_task, make_task
from pluriverse.envs.task import Task
from pluriverse.envs.vector_env import as_mode, first_seed


@dataclass(frozen=True)
class Transition:
    """One step of the environments of one worker. Arrays have these environments as their first axis."""

    environments: range
    """Which environments, by their indices among all."""
    number: int
    """Number of the step among those of the rollout, from 0 on."""
    observations: Any
    """Observations of the policy."""
    actions: np.ndarray
    """Actions of the policy."""
    rewards: np.ndarray
    """Reward of the step."""
    terminated: np.ndarray
    """Whether the task ended the episode."""
    truncated: np.ndarray
    """Whether time ended it."""
    next_observations: Any
    """Next observations; after a reset, those of the new episode."""
    info: dict[str, Any]
    """As of Gymnasium: `final_obs`, `reward_terms`."""


class FleetVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """A task in many worlds at once, in many processes, as `gymnasium.vector.VectorEnv`, in NumPy.

    Every worker is a Ray actor with neighbouring environments. Environment for environment, `reset` and
    `step` give the bits of a `pluriverse.envs.VectorEnv` of all of them in one process, as long as the task
    lets environments depend on nothing but themselves and draws with `env.uniform` and `env.normal`. A lost
    worker is replaced, once, by one that repeats its work from the last snapshot, with the same bits.

    Args:
        task: Name of a task, as of `make_task`; or a function without arguments that returns a task, such as
            its class, called on the workers; or a task, which is copied to them.
        num_envs: Number of all environments.
        workers: Number of workers; one per core of the cluster if None, but not more than environments.
        threads: CPU threads of each worker.
        gpus: GPUs that Ray sets aside for each worker; parts are allowed.
        device: Device of the worlds on each worker; the GPU that Ray gave it if it has one, else the CPU.
        seed: Seed until `reset(seed=...)` gives another.
        autoreset_mode: As of `pluriverse.envs.VectorEnv`.
        address: Address of a Ray cluster, or "auto"; None uses the one that Ray is connected to, or starts
            one on this machine.
        snapshot_interval: Steps after which each worker sends a snapshot, from which lost work is repeated.

    Raises:
        ClusterError: If there is no such cluster, workers find no place, run other versions, or cannot build
            the task.
        ImportError: If Ray is not installed.
        KeyError: If there is no task of that name.
        TypeError: If `task` is something else.
        ValueError: If a number or mode is not allowed, or the task cannot be sent.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        task: str | Task | Callable[[], Task],
        num_envs: int,
        *,
        workers: int | None = None,
        threads: int = 1,
        gpus: float = 0.0,
        device: str | None = None,
        seed: int = 0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        address: str | None = None,
        snapshot_interval: int = SNAPSHOT_INTERVAL,
    ) -> None:
        # Before all that may fail, since Gymnasium closes what was never finished as well.
        self._parts: list[Part] = []
        for name, value in (
            ("num_envs", num_envs),
            ("workers", workers),
            ("threads", threads),
            ("snapshot_interval", snapshot_interval),
        ):
            if (value is not None or name == "num_envs") and not _is_count(value):
                raise ValueError(
                    f"FleetVectorEnv: {name} is {value!r}, but must be a whole number of at least 1."
                )
        if workers is not None and workers > num_envs:
            raise ValueError(
                f"FleetVectorEnv: {workers} workers cannot share {num_envs} environments. Use at most "
                f"{num_envs} workers."
            )
        if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**31:
            raise ValueError(f"FleetVectorEnv: seed is {seed!r}, but must be a whole number, 0 to 2**31 - 1.")
        self._mode = as_mode(autoreset_mode)
        payload = pickled(
            EnvironmentDescription(_factory(task), int(seed), self._mode), "FleetVectorEnv: the task"
        )
        self.num_envs = int(num_envs)
        self._ray = connect(address, workers or 1, threads)
        if workers is None:
            cores = int(self._ray.cluster_resources().get("CPU", 1.0) / threads)
            workers = max(1, min(cores, self.num_envs))
        placement = Placement(float(threads), float(gpus), threads, device or ("cuda:0" if gpus else "cpu"))
        shares = shared_out(np.ones(self.num_envs), workers)
        self._parts = [
            Part(index, share, payload, placement, int(snapshot_interval), EnvironmentWorker)
            for index, share in enumerate(shares)
        ]
        try:
            start_parts(self._ray, self._parts)
            self._take_spaces()
            # The first one to come back to, for tasks that draw what no seed decides.
            for part in self._parts:
                part.take_snapshot()
        except BaseException:
            self.close()
            raise
        self._ended = np.zeros(self.num_envs, dtype=bool)
        self._observations: list[Any] | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The environments of each worker."""
        return tuple(self._parts)

    @property
    def restart_count(self) -> int:
        """Number of workers that were lost and replaced."""
        return sum(part.restart_count for part in self._parts)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start new episodes, like `pluriverse.envs.VectorEnv.reset`.

        Raises:
            ClusterError: If a worker is lost twice over it.
            ValueError: If a mask does not fit, or leaves out some although there is a seed.
            WorkerTaskError: If the task raises.
        """
        mask = None if options is None else options.get("reset_mask")
        if mask is not None:
            mask = _as_array(mask)
            if mask.dtype != bool or mask.shape != (self.num_envs,):
                raise ValueError(
                    f"FleetVectorEnv.reset: reset_mask is of type {mask.dtype} and shape {mask.shape}, but "
                    f"must be {self.num_envs} truth values."
                )
        first = first_seed(seed)
        # Before any worker is asked: each would see its own part of the mask only.
        if first is not None and mask is not None and not mask.all():
            raise ValueError(
                f"FleetVectorEnv.reset: seed is {first}, which restarts all environments, but reset_mask "
                f"leaves out {int((~mask).sum())} of {self.num_envs}. Pass one of them only."
            )
        self._observations = self._ask("reset", lambda own: (first, None if mask is None else mask[own]))
        self._ended = np.zeros_like(self._ended) if mask is None else self._ended & ~mask
        return _joined(self._observations), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Make one step in all environments, and wait for all workers.

        Raises:
            ClusterError: If a worker is lost twice over it.
            RuntimeError: If `reset` was never called, or has to be called for environments that have ended.
            ValueError: If actions have another shape, or hold NaN.
            WorkerTaskError: If the task raises; reset all environments before going on.
        """
        self._check_begun("step")
        if self._mode is AutoresetMode.DISABLED and self._ended.any():
            raise RuntimeError(
                f"FleetVectorEnv.step: environment {int(np.argmax(self._ended))} has ended, and autoreset is "
                'disabled. Call reset(options={"reset_mask": terminated | truncated}) first.'
            )
        given = self._checked(actions, range(self.num_envs), "FleetVectorEnv.step: actions")
        results = self._ask("step", lambda own: (given[own],))
        self._observations = [result[0] for result in results]
        rewards, terminated, truncated = (
            np.concatenate([result[index] for result in results]) for index in (1, 2, 3)
        )
        self._ended = terminated | truncated
        return _joined(self._observations), rewards, terminated, truncated, _joined_info(results)

    def rollout(self, policy: Callable[[Any, range], Any], *, steps: int) -> Iterator[Transition]:
        """Step all environments with a policy on this process, each worker at its own pace.

        No worker waits for another: as soon as one has observations, the policy is asked and the worker goes
        on. An environment gets the same bits as in a loop over `step`, as far as the policy depends on the
        observations of that environment only. `reset` comes first.

        Args:
            policy: Takes what the environments of a worker see and their range, and returns their actions.
            steps: Steps of each environment.

        Raises:
            ClusterError: If a worker is lost twice over the same work.
            RuntimeError: If `reset` was never called.
            ValueError: If the policy returns actions that do not fit, or if autoreset is disabled.
            WorkerTaskError: If the task raises.
        """
        if not _is_count(steps):
            raise ValueError(
                f"FleetVectorEnv.rollout: steps is {steps!r}, but must be a whole number of at least 1."
            )
        if self._mode is AutoresetMode.DISABLED:
            raise ValueError(
                "FleetVectorEnv.rollout: autoreset is disabled, but nothing else resets environments here. "
                "Pass autoreset_mode='next_step' or 'same_step'."
            )
        self._check_begun("rollout")
        return self._transitions(policy, int(steps))

    def close_extras(self, **_: Any) -> None:
        """End the workers. A cluster that was started for them stays for the next one of this process."""
        for part in self._parts:
            part.kill()

    # parts

    def _transitions(self, policy: Callable[[Any, range], Any], steps: int) -> Iterator[Transition]:
        assert self._observations is not None
        current = self._observations = [_owned(each) for each in self._observations]
        given: list[np.ndarray] = []

        def act(part: Part) -> np.ndarray:
            what = "FleetVectorEnv.rollout: actions of the policy"
            actions = self._checked(policy(current[part.index], part.worlds), part.worlds, what)
            part.begin([("step", (actions,))])
            return actions

        done = [0] * len(self._parts)
        try:
            given.extend(act(part) for part in self._parts)
            for part, results in parts_as_they_end(self._ray, self._parts):
                index = part.index
                observations, rewards, terminated, truncated, info = _owned(results[0])
                transition = Transition(
                    part.worlds,
                    done[index],
                    current[index],
                    given[index],
                    rewards,
                    terminated,
                    truncated,
                    observations,
                    info,
                )
                current[index] = observations
                done[index] += 1
                if done[index] < steps:
                    given[index] = act(part)  # before it is handed out, so that the worker need not wait
                yield transition
        finally:
            for part in self._parts:
                if part.is_busy:  # the policy failed before anybody listened
                    part.finish()

    def _check_begun(self, name: str) -> None:
        if self._observations is None:
            raise RuntimeError(f"FleetVectorEnv.{name}: call reset() first.")

    def _ask(self, name: str, arguments: Callable[[slice], tuple[Any, ...]]) -> list[Any]:
        """Call a method of all workers with what is theirs, and return their results."""
        calls = [[(name, arguments(slice(part.worlds.start, part.worlds.stop)))] for part in self._parts]
        return [results[0] for results in ask_parts(self._parts, calls)]

    def _checked(self, actions: Any, environments: range, what: str) -> np.ndarray:
        """Return a copy of actions, which a lost worker is sent again."""
        given = _as_array(actions)
        expected = (len(environments), *(self.single_action_space.shape or ()))
        if given.shape != expected:
            raise ValueError(
                f"{what} have shape {given.shape}, but must have {expected}: one row of {expected[1]} "
                "numbers for each environment."
            )
        if given.dtype.kind not in "fiub":
            raise ValueError(f"{what} are of type {given.dtype}, but must be real numbers.")
        result = np.array(given, dtype=np.float32)
        if not np.isfinite(result).all():
            row = int(np.argmax(~np.isfinite(result).all(axis=1)))
            raise ValueError(
                f"{what} of environment {environments[row]} are {given[row].tolist()[:12]}, but must be "
                "finite. A policy that gives NaN has diverged: lower its learning rate, or normalize its "
                "observations."
            )
        return result

    def _take_spaces(self) -> None:
        found = [results[0] for results in ask_parts(self._parts, [[("spaces", ())]] * len(self._parts))]
        for part, (observation, action, _) in zip(self._parts, found, strict=True):
            if (observation, action) != found[0][:2]:
                raise ClusterError(
                    f"{part.name} observes {observation} and takes {action}, but {self._parts[0].name} "
                    f"{found[0][0]} and {found[0][1]}. A task needs the same spaces in every part. Where "
                    "robots differ, give tensors the columns of the largest robot of all parts: "
                    "env.tensors(pattern, dof_count=..., body_count=..., foot_count=...)."
                )
        self.single_observation_space, self.single_action_space, metadata = found[0]
        self.metadata = metadata | {"render_modes": []}
        batch_space = gymnasium.vector.utils.batch_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)


def _factory(task: Any) -> Callable[[], Task]:
    """Return a function that makes the task on a worker."""
    if isinstance(task, str):
        find_task(task)
        return lambda: make_task(task)
    if isinstance(task, Task):
        return lambda: task
    if callable(task):
        result: Callable[[], Task] = task
        return result
    raise TypeError(
        f"FleetVectorEnv: task is a {type(task).__name__}, but must be the name of a task, a Task, or a "
        "function that returns one."
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)


def _as_array(values: Any) -> np.ndarray:
    """Return an array of what may be a tensor on any device."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _owned(values: Any) -> Any:
    """Return writable copies, since Ray's arrays are read-only."""
    if isinstance(values, tuple):
        return tuple(_owned(each) for each in values)
    if isinstance(values, dict):
        return {name: _owned(each) for name, each in values.items()}
    return np.array(values)


def _joined(found: Sequence[Any]) -> Any:
    """Return what all parts have, one behind the other."""
    if isinstance(found[0], dict):
        return {name: _joined([each[name] for each in found]) for name in found[0]}
    return np.concatenate(found)


def _joined_info(results: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Return the infos of all parts as that of one batch."""
    infos = [result[4] for result in results]
    info: dict[str, Any] = {}
    if any("final_obs" in each for each in infos):
        # Where no episode has ended, the final observation is the current one.
        info["final_obs"] = _joined(
            [each.get("final_obs", result[0]) for each, result in zip(infos, results, strict=True)]
        )
        info["_final_obs"] = np.concatenate([result[2] | result[3] for result in results])
    terms = [each["reward_terms"] for each in infos if "reward_terms" in each]
    if len(terms) == len(infos):
        info["reward_terms"] = _joined(terms)
    return info
