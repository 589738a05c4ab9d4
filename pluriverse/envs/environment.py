"""Environment: a task in many worlds at once, in PyTorch tensors."""

import gc
import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from pluriverse.envs.optional import import_optional
from pluriverse.envs.random import OBSERVATION_COUNTER, RESET_COUNTER, EnvironmentRandom
from pluriverse.envs.task import Task
from pluriverse.launch import record
from pluriverse.model import Model
from pluriverse.model_builder import ModelBuilder
from pluriverse.randomization import Randomizer
from pluriverse.simulation import Simulation, StepStage
from pluriverse.solvers.sap import SolverSAP
from pluriverse.tensors import RobotTensors

# Spacing of the worlds of a scene [m]: worlds are separate spaces, so all are at the origin.
NO_SPACING = (0.0, 0.0, 0.0)
# Most steps of an episode, since they are counted in 32 bits: a year and more of simulated time.
EPISODE_STEPS_MAX = 2**31 - 1
# Remedy for scenes that have a world for each variant of an environment.
_VARIANTS_KEPT = (
    "If it is a scene of variants, leave reassignable=True out: each keeps its world and variant."
)


@dataclass
class StepResult:
    """Result of a step of an environment. Tensors are new in each step, and may be kept."""

    observations: Any
    """Next observations, [env, number] or several by name; after a reset those of the new episode."""
    rewards: Any
    """Reward of the step, shape [env]."""
    terminated: Any
    """Whether the task ended the episode, shape [env]."""
    truncated: Any
    """Whether time ended it, shape [env]."""
    final_observations: Any = None
    """Final observations of ended episodes, if these are reset at once and some have ended; else None."""
    reward_terms: dict[str, Any] = field(default_factory=dict)
    """Terms of the reward by their names, shape [env] each."""


# The environment of each task that has one, by the identity of the task: a task of a user may have no hash.
_ENVIRONMENTS: "weakref.WeakValueDictionary[int, Environment]" = weakref.WeakValueDictionary()


class Environment:
    """A task in many worlds at once.

    Runs with the same seed are identical to the bit. An environment has the same episodes in a batch of 1 or
    of 4,096: its draws depend on `seed`, its identity, its episode and step.

    Args:
        task: The task, which is this environment's alone until `close`: it holds tensors of these worlds.
        env_count: Number of environments, one world each.
        seed: Seed of all draws, 0 to 2**31 - 1.
        device: Device of simulation and tensors; the best there is if None.
        threads: CPU threads of the simulation; all cores if None.
        identities: Identity of each environment, if it is a part of a larger batch; 0, 1, 2 ... if None. In
            a part, patterns of terms and tensors may find nothing, with a warning.
        reset_done: Whether environments are reset in the step in which they end. Otherwise they go on until
            `reset(env.ended)`.
        strict: Whether a failing world is an error instead of a warning.

    Raises:
        ImportError: If PyTorch is not installed.
        TypeError: If `task` is not a `Task`, or does not build a model.
        ValueError: If a number is out of range, the task is that of another environment, or it does not fit
            itself.
    """

    def __init__(
        self,
        task: Task,
        env_count: int,
        *,
        seed: int = 0,
        device: Any = None,
        threads: int | None = None,
        identities: Sequence[int] | np.ndarray | None = None,
        reset_done: bool = True,
        strict: bool = False,
    ) -> None:
        torch = import_optional("torch", extra="learn", purpose="environments")
        if isinstance(task, type):
            raise TypeError(
                f"Environment: got the class {task.__name__}; pass an instance, {task.__name__}()."
            )
        if isinstance(task, str):
            raise TypeError(
                f"Environment: task is the name {task!r}; pass the task itself, envs.make_task({task!r})."
            )
        if isinstance(task, Environment):
            raise TypeError(
                "Environment: got an Environment where a task is expected. VectorEnv and SingleEnv make an "
                "environment of their own: pass them a new task."
            )
        if not isinstance(task, Task):
            raise TypeError(
                f"Environment: task is a {type(task).__name__}, but must derive from pluriverse.envs.Task."
            )
        if not isinstance(env_count, int | np.integer) or isinstance(env_count, bool) or env_count < 1:
            raise ValueError(
                f"Environment: env_count is {env_count!r}, but must be a whole number of at least 1."
            )
        _release(task)
        self._torch = torch
        self.task = task
        self.reset_done = reset_done
        self._is_part = identities is not None
        self._identities = _checked_identities(identities, int(env_count))
        model = self._build(device)
        solver = task.make_solver(model)
        self.simulation = Simulation(
            model, solver, dt=task.dt, decimation=task.decimation, threads=threads, strict=strict
        )
        count, wp_device = int(env_count), model.device
        self._identity: Any = wp.array(self._identities, dtype=wp.int32, device=wp_device)
        self._episode: Any = wp.zeros(count, dtype=wp.int32, device=wp_device)
        self._step: Any = wp.zeros(count, dtype=wp.int32, device=wp_device)
        self._ended: Any = wp.zeros(count, dtype=wp.bool, device=wp_device)
        self.episodes = wp.to_torch(self._episode)
        """Episodes that each environment has started, shape [env]."""
        self.episode_steps = wp.to_torch(self._step)
        """Steps that each environment has made in its episode, shape [env]."""
        self.ended = wp.to_torch(self._ended)
        """Whether the episode of each environment has ended and no other has begun, shape [env].

        Always false if environments are reset in the step in which they end.
        """
        counts = {"episodes": self._episode, "episode steps": self._step, "ended": self._ended}
        for name, array in counts.items():
            self.simulation.add_snapshot_array(f"environment {name}", array)
        self.device = self.episodes.device
        self._frozen = wp.to_torch(self.simulation.solver.world_frozen)
        self._robots: list[RobotTensors] = []
        self._randomizer: Randomizer | None = None
        self._seed(seed)
        task.setup(self)
        self._restart_stages()
        if not isinstance(task.action_count, int | np.integer) or task.action_count < 1:
            raise ValueError(
                f"{type(task).__name__}: action_count is {task.action_count!r}, but must be the number of "
                "numbers in an action. Set it as an attribute of the class, or in setup()."
            )
        _ = self.max_episode_steps  # refuses a time that is none now, not in the first step
        shape = (count, int(task.action_count))
        self.actions = torch.zeros(shape, dtype=torch.float32, device=self.device)
        """Actions of the last step, clipped, shape [env, action_count]; zero at the start of an episode."""
        self.previous_actions = torch.zeros_like(self.actions)
        """Actions of the step before, shape [env, action_count]."""
        self._starting_array: Any = wp.zeros(count, dtype=wp.bool, device=wp_device)
        self._starting = wp.to_torch(self._starting_array)
        self._everywhere = torch.ones(count, dtype=torch.bool, device=self.device)
        self._is_ready = False
        if len(task.randomization):
            # After setup, so that defaults are what acts, such as gains of actuators made there.
            self._randomizer = Randomizer(
                self.simulation,
                list(task.randomization),
                seed=self.seed,
                identities=self._identities,
                is_part=self._is_part,
            )
        self._is_closed = False
        self._has_task = True
        _ENVIRONMENTS[id(task)] = self  # not before everything went well, or a second try would be refused

    # what there is

    @property
    def env_count(self) -> int:
        """Number of environments."""
        return len(self._identities)

    @property
    def identities(self) -> np.ndarray:
        """Identity of each environment, on the host, shape [env]."""
        return self._identities

    @property
    def model(self) -> Model:
        """The model of all worlds."""
        return self.simulation.model

    @property
    def step_seconds(self) -> float:
        """Simulated time of a step [s]."""
        return self.task.dt * self.task.decimation

    @property
    def max_episode_steps(self) -> int:
        """Steps after which an episode is truncated: those of `episode_seconds`, but 2**31 - 1 at most.

        Raises:
            ValueError: If `episode_seconds` of the task is no positive number.
        """
        seconds = self.task.episode_seconds
        if seconds is None:
            return EPISODE_STEPS_MAX
        if not isinstance(seconds, int | float | np.number) or not seconds > 0.0:
            raise ValueError(
                f"{type(self.task).__name__}: episode_seconds is {seconds!r}, but must be a positive time "
                "[s]. Set it to math.inf or None for episodes that time does not end."
            )
        return max(1, round(min(float(seconds) / self.step_seconds, EPISODE_STEPS_MAX)))

    def tensors(self, pattern: Any, **options: Any) -> RobotTensors:
        """Return the tensors of robots, one row per environment, in the order of environments.

        Args:
            pattern: Labels of articulations, as for `Simulation.tensors`.
            options: Options of `RobotTensors`. Where robots differ, `dof_count` and the like give a part of a
                batch the columns of the whole.

        Raises:
            KeyError: If the pattern finds nothing.
            ValueError: If an environment has none or several of them.
        """
        robots = self.simulation.tensors(pattern, **({"is_part": self._is_part} | options))
        found = np.bincount(robots.worlds, minlength=self.env_count)
        if (found != 1).any():
            env = int(np.argmax(found != 1))
            raise ValueError(
                f"Environment.tensors: {pattern!r} means {found[env]} articulations in the world of "
                f"environment {env}, but a task has one row per environment. Narrow the pattern; the "
                f"articulations there are {sorted(set(self.model.articulation_label))[:8]}."
            )
        self._robots.append(robots)
        return robots

    def uniform(self, low: Any, high: Any, count: int | None = None) -> Any:
        """Return random numbers between bounds, a tensor [env] or [env, count]; see `EnvironmentRandom`."""
        return self._random.uniform(low, high, count)

    def normal(self, std: Any, count: int | None = None) -> Any:
        """Return normally distributed random numbers, a tensor [env] or [env, count]."""
        return self._random.normal(std, count)

    # what happens

    def reset(self, mask: Any = None, *, seed: int | None = None) -> Any:
        """Start new episodes and return the observations of all environments.

        Args:
            mask: Which environments, truth values [env]; all if None.
            seed: New seed. With it, all environments restart at their first episode.

        Raises:
            RuntimeError: If another environment has taken over the task since `close`.
            ValueError: If mask or seed do not fit, or the mask leaves out some although there is a seed.
        """
        self._check_task("reset")
        selected = self._everywhere if mask is None else self._as_mask(mask)
        if seed is not None:
            if not bool(selected.all()):
                raise ValueError(
                    f"Environment.reset: seed is {seed}, which restarts all environments, but the mask "
                    f"leaves out {int((~selected).sum())} of {self.env_count}. Pass one of them only."
                )
            self._seed(seed)
            self.episodes.zero_()
            self.simulation.control.assign(self.model.control())
            for robots in self._robots:
                robots.refresh()  # or a command that was given before would not be new
            self.simulation.reset()
            self._restart_stages()
        self._begin(selected)
        self._is_ready = True
        return self._observe()

    def step(self, actions: Any) -> StepResult:
        """Make one step in all environments.

        Args:
            actions: Tensor or array, shape [env, action_count].

        Raises:
            RuntimeError: If `reset` was never called, or another environment has taken over the task.
            ValueError: If actions have another shape, or hold NaN.
        """
        torch, task = self._torch, self.task
        if not self._is_ready:
            self._check_task("step")
            raise RuntimeError("Environment.step: call reset() first.")
        given = self._as_actions(actions)
        self.previous_actions.copy_(self.actions)
        torch.clamp(given, -task.action_limit, task.action_limit, out=self.actions)
        self._random.begin()
        task.act(self, self.actions)
        self.simulation.step()
        self.episode_steps += 1
        terminated = self._terminated()
        truncated = (self.episode_steps >= self.max_episode_steps) & ~terminated
        rewards, terms = self._rewards()
        result = StepResult(self._observe(), rewards, terminated, truncated, reward_terms=terms)
        done = terminated | truncated
        if not self.reset_done:
            done &= ~self.ended  # each episode ends once, however long its environment goes on
        if bool(done.any()):
            task.finish(self, done)
            if self.reset_done:
                result.final_observations = result.observations
                self._begin(done)
                result.observations = self._observe()
            else:
                self.ended |= done
        return result

    def render(self, **options: Any) -> np.ndarray:
        """Return a picture of the worlds, [row, column, 3] of uint8; options of `pluriverse.draw`."""
        from pluriverse.render import draw

        picture = np.asarray(draw(self.simulation, **options))
        return picture[..., :3]

    def close(self) -> None:
        """End the threads of the simulation, and leave the task to another environment that asks for it."""
        self._is_closed = True
        self.simulation.close()

    def __enter__(self) -> "Environment":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # parts

    def _check_task(self, what: str) -> None:
        if not self._has_task:
            raise RuntimeError(
                f"Environment.{what}: after close() another environment has taken over the "
                f"{type(self.task).__name__}, which now shows its worlds. Make a task for each environment."
            )

    def _build(self, device: Any) -> Model:
        task, count = self.task, len(self._identities)
        if task.scene is not None:
            from pluriverse.scene import load_scene

            # If worlds had different positions, their bits would depend on the size of the batch.
            model: Any = load_scene(task.scene, num_worlds=count, device=device, spacing=NO_SPACING).model
        else:
            built = task.build(self._identities)
            if not isinstance(built, Model | ModelBuilder):
                remedy = "Does it end without return?"
                if isinstance(getattr(built, "model", None), Model):  # a scene, which is long to print
                    built, remedy = f"a {type(built).__name__}", f"Return its model. {_VARIANTS_KEPT}"
                raise TypeError(
                    f"{type(task).__name__}.build: returned {built}, but must return a ModelBuilder or a "
                    f"Model. {remedy}"
                )
            model = built if isinstance(built, Model) else built.finalize(device)
        if model.world_count != count:
            raise ValueError(
                f"{type(task).__name__}.build: made {model.world_count} worlds for {count} environments. Add "
                "one world per identity, for example with builder.replicate(robot, len(identities))."
                + (f" {_VARIANTS_KEPT}" if model.world_count > count else "")
            )
        return model

    def _seed(self, seed: int) -> None:
        if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**31:
            raise ValueError(f"Environment: seed is {seed!r}, but must be a whole number, 0 to 2**31 - 1.")
        self.seed = int(seed)
        self._return_graph: wp.Graph | None = None
        self._recorded_stages: tuple[StepStage, ...] | None = None
        self._random = EnvironmentRandom(self._identity, self._episode, self._step, self.seed)
        self._restart_stages()
        if self._randomizer is not None:
            self._randomizer.restart(self.seed)

    def _restart_stages(self) -> None:
        """Restart noise of sensors and delays of actuators: resets before the first episode do not count."""
        self.simulation.set_seed(self.seed, identities=self._identities)

    def _begin(self, mask: Any) -> None:
        """Start episodes of environments."""
        self._starting.copy_(mask)
        self._return_worlds()
        self.episodes += mask
        self.episode_steps.masked_fill_(mask, 0)
        self.ended.masked_fill_(mask, False)
        kept = ~mask.unsqueeze(1)
        self.actions *= kept
        self.previous_actions *= kept
        self._random.begin(RESET_COUNTER)
        self.task.reset(self, mask)

    def _return_worlds(self) -> None:
        """Randomize and reset worlds, by a replayed recording from the second call on.

        Some thirty launches from Python would take as long as stepping thirty robots, and some environment
        ends in almost every step. The first call loads the kernels, which a recording requires.
        """
        simulation = self.simulation
        if self._recorded_stages != simulation.stages:
            self._recorded_stages, self._return_graph = simulation.stages, None
            self._launch_return()
            return
        if self._return_graph is None:
            # Python stages, and solvers that are updated through Python, cannot be recorded.
            if not isinstance(simulation.solver, SolverSAP) or not all(
                stage.is_recorded for stage in simulation.stages
            ):
                self._launch_return()
                return
            self._return_graph = record(self.model.device, self._launch_return)
        wp.capture_launch(self._return_graph)

    def _launch_return(self) -> None:
        if self._randomizer is not None:
            self._randomizer.apply(self._starting_array)
        self.simulation.reset(self._starting_array)

    def _observe(self) -> Any:
        torch = self._torch
        self._random.begin(OBSERVATION_COUNTER)
        observation = self.task.observe(self)
        parts = observation if isinstance(observation, dict) else {"observe()": observation}
        for name, part in parts.items():
            if not isinstance(part, torch.Tensor) or part.shape[:1] != (self.env_count,) or part.ndim < 2:
                raise ValueError(
                    f"{type(self.task).__name__}.observe: {name} is {_described(part)}, but must be a tensor "
                    f"of shape [{self.env_count}, number]."
                )
            if not math.isfinite(float(part.sum())):
                self._refuse_infinite(part, f"observe: {name}")
        # Tensors of robots change with the next step, but learners keep observations.
        if isinstance(observation, dict):
            return {name: _owned(part) for name, part in observation.items()}
        return _owned(observation)

    def _rewards(self) -> tuple[Any, dict[str, Any]]:
        # A world that froze in the step shows its last valid state, which determines its reward.
        given = self.task.reward(self)
        if isinstance(given, dict) and given:
            terms = {name: self._checked_reward(name, term) for name, term in given.items()}
            total: Any = sum(terms.values())
        else:
            terms, total = {}, self._checked_reward("the reward", given)
        if not math.isfinite(float(total.sum())):
            for name, term in (terms or {"the reward": total}).items():
                self._refuse_infinite(term, f"reward: {name}")
        if terms:
            # Terms may be views of what a reset or the next step changes. One copy holds all of them.
            copies = self._torch.stack(tuple(terms.values())).detach().float().unbind()
            terms = dict(zip(terms, copies, strict=True))
        return _owned(total), terms

    def _checked_reward(self, name: str, values: Any) -> Any:
        torch, expected = self._torch, (self.env_count,)
        if isinstance(values, torch.Tensor) and values.shape == expected:
            return values
        if isinstance(values, int | float | np.number):  # the same for all
            return torch.full(expected, float(values), dtype=torch.float32, device=self.device)
        raise ValueError(
            f"{type(self.task).__name__}.reward: {name} is {_described(values)}, but must be a tensor of "
            f"shape [{self.env_count}]."
        )

    def _refuse_infinite(self, values: Any, what: str) -> None:
        """Raise for non-finite numbers, which would silently ruin a policy."""
        finite = self._torch.isfinite(values).reshape(self.env_count, -1)
        if bool(finite.all()):
            return  # only the sum was too large
        env, column = self._torch.nonzero(~finite)[0].tolist()
        where = f"column {column} of environment {env}" if values.ndim > 1 else f"environment {env}"
        raise ValueError(
            f"{type(self.task).__name__}.{what} is {float(values.reshape(self.env_count, -1)[env, column])} "
            f"in {where}, but must be finite. Look for a division by a length or time that can be zero, or a "
            "root of a negative number."
        )

    def _terminated(self) -> Any:
        ended = self.task.terminated(self)
        frozen = self._frozen != 0
        if ended is None:
            return frozen
        if getattr(ended, "shape", None) != (self.env_count,) or ended.dtype != self._torch.bool:
            shape = tuple(ended.shape) if hasattr(ended, "shape") else type(ended).__name__
            raise ValueError(
                f"{type(self.task).__name__}.terminated: the result is {shape} of type "
                f"{getattr(ended, 'dtype', None)}, but must be truth values of shape [{self.env_count}]."
            )
        return ended | frozen

    def _as_actions(self, actions: Any) -> Any:
        torch = self._torch
        if not isinstance(actions, torch.Tensor):
            actions = torch.as_tensor(np.asarray(actions))
        expected = tuple(self.actions.shape)
        if tuple(actions.shape) != expected:
            raise ValueError(
                f"Environment.step: actions have shape {tuple(actions.shape)}, but must have {expected}: one "
                f"row of {expected[1]} numbers for each of the {expected[0]} environments."
            )
        if actions.is_complex():
            raise ValueError("Environment.step: actions are complex numbers, but must be real.")
        if actions.device != self.device:
            raise ValueError(
                f"Environment.step: actions are on {actions.device}, but the environment is on "
                f"{self.device}. Move them there: actions.to({str(self.device)!r})."
            )
        actions = actions.detach().to(torch.float32)
        # A sum of finite numbers may overflow, but one that is finite has finite parts.
        if not math.isfinite(float(actions.sum())) and not bool(torch.isfinite(actions).all()):
            env = int(torch.nonzero(~torch.isfinite(actions).all(dim=1))[0])
            raise ValueError(
                f"Environment.step: actions of environment {env} are {actions[env].tolist()[:12]}, but must "
                "be finite. A policy that gives NaN has diverged: lower its learning rate, or normalize its "
                "observations."
            )
        return actions

    def _as_mask(self, mask: Any) -> Any:
        torch = self._torch
        given = torch.as_tensor(np.asarray(mask) if not isinstance(mask, torch.Tensor) else mask)
        given = given.to(self.device, copy=True)  # it may be `ended`, which changes as episodes begin
        if given.dtype != torch.bool or tuple(given.shape) != (self.env_count,):
            raise ValueError(
                f"Environment.reset: mask is of type {given.dtype} and shape {tuple(given.shape)}, but must "
                f"be {self.env_count} truth values."
            )
        return given


def _release(task: Task) -> None:
    """Take a task from the environment that has it, if that is closed.

    Raises:
        ValueError: If that is not closed.
    """
    if _owner_of(task) is None:
        return
    gc.collect()  # an environment that nobody holds any more may still be there
    owner = _owner_of(task)
    if owner is None:
        return
    if not owner._is_closed:
        name = type(task).__name__
        raise ValueError(
            f"Environment: this {name} is the task of another environment already (with {owner.env_count} "
            f"worlds), and holds tensors of its worlds. Make a task for each environment, such as a second "
            f"{name}, or close() the other one first."
        )
    owner._has_task = owner._is_ready = False


def _owner_of(task: Task) -> Environment | None:
    owner = _ENVIRONMENTS.get(id(task))
    return owner if owner is not None and owner.task is task else None


def _described(values: Any) -> str:
    """Return what a task has returned in place of a tensor of some shape, for messages."""
    kind, shape = type(values), getattr(values, "shape", None)
    if shape is None:
        return f"of type {kind.__name__}"
    return f"{tuple(shape)}" if kind.__module__ == "torch" else f"a {kind.__name__} of {kind.__module__}"


def _owned(values: Any) -> Any:
    """Return a copy, which does not change with the next step as tensors of robots do."""
    return values.detach().clone().float().contiguous()


def _checked_identities(identities: Any, count: int) -> np.ndarray:
    values = np.arange(count) if identities is None else np.asarray(identities)
    if values.shape != (count,) or not np.issubdtype(values.dtype, np.integer):
        raise ValueError(
            f"Environment: identities have shape {values.shape} and type {values.dtype}, but must be one "
            f"whole number for each of the {count} environments."
        )
    if values.min() < 0 or values.max() >= 2**31:
        raise ValueError(f"Environment: identities are {values}, but must be from 0 to 2**31 - 1.")
    return values.astype(np.int32)
