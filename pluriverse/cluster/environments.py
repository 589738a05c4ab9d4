"""Environments of a task on a worker: built, stepped, and restored after the loss of a worker."""

import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.cluster.runtime import versions
from pluriverse.cluster.worker import Call


@dataclass(frozen=True)
class EnvironmentDescription:
    """Description of the environments that workers share."""

    make_task: Callable[[], Any]
    """Returns a new task."""
    seed: int
    """Seed of everything that is drawn."""
    autoreset_mode: Any
    """When environments that have ended are reset, a mode of Gymnasium."""

    def build(self, identities: range, *, device: Any, threads: int | None) -> Any:
        """Return the `VectorEnv` of some of the environments.

        Raises:
            TypeError: If what was made is no task.
            ValueError: If a part of its worlds cannot be made.
        """
        from pluriverse.envs.vector_env import VectorEnv

        task = self.make_task()
        _check_scene(task)
        return VectorEnv(
            task,
            len(identities),
            seed=self.seed,
            autoreset_mode=self.autoreset_mode,
            library="torch",  # also where the worlds are on a GPU
            device=device,
            threads=threads,
            identities=identities,
        )


class EnvironmentWorker:
    """Some environments in a process of their own; answers as `Worker` does."""

    def __init__(self) -> None:
        self._envs: Any = None

    def versions(self) -> dict[str, str]:
        """Return the versions that decide the bits of a step here."""
        return versions()

    def process_id(self) -> int:
        """Return the number of this process on its machine."""
        return os.getpid()

    def build(self, description: bytes, identities: range, device: Any, threads: int | None) -> None:
        """Build environments of a pickled description."""
        import torch
        import warp as wp

        wp.config.log_level = wp.LOG_ERROR
        torch.set_num_threads(threads or 1)  # Ray has set these cores aside for this worker alone
        self._envs = pickle.loads(description).build(identities, device=device, threads=threads)

    def run(self, calls: Sequence[Call]) -> list[Any]:
        """Do some calls in their order and return their results."""
        return [getattr(self, name)(*arguments) for name, arguments in calls]

    def prepare(self) -> None:
        """Compile and record the step."""
        self._envs.env.simulation.prepare()

    def spaces(self) -> tuple[Any, Any, dict[str, Any]]:
        """Return the spaces of the observations and actions of an environment, and the metadata."""
        envs = self._envs
        return envs.single_observation_space, envs.single_action_space, envs.metadata

    def reset(self, seed: int | None, mask: np.ndarray | None) -> Any:
        """Begin episodes anew and return what is observed."""
        options = None if mask is None else {"reset_mask": mask}
        return _plain(self._envs.reset(seed=seed, options=options)[0])

    def step(self, actions: np.ndarray) -> tuple[Any, ...]:
        """Make one step and return what Gymnasium returns."""
        import torch

        return _plain(self._envs.step(torch.tensor(actions, device=self._envs.device)))

    def snapshot(self) -> dict[str, Any]:
        """Return everything that further steps, resets and draws depend on."""
        from pluriverse.envs.snapshot import save_environment

        return self._envs.progress() | {"environment": save_environment(self._envs.env)}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Come back to a snapshot."""
        from pluriverse.envs.snapshot import restore_environment

        progress = dict(snapshot)
        restore_environment(self._envs.env, progress.pop("environment"))
        self._envs.set_progress(progress)


def _plain(values: Any) -> Any:
    """Return tensors, in any nesting, as arrays that can travel."""
    if isinstance(values, tuple):
        return tuple(_plain(each) for each in values)
    if isinstance(values, dict):
        return {name: _plain(each) for name, each in values.items()}
    return np.asarray(values.cpu())


def _check_scene(task: Any) -> None:
    """Refuse scenes that cannot be built in parts by the identities of environments alone."""
    if getattr(task, "scene", None) is None:
        return
    from pluriverse.scene.loader import read_scene

    kinds = len(read_scene(task.scene).kinds)
    if kinds > 1:
        raise ValueError(
            f"{type(task).__name__}: the scene {str(task.scene)!r} has {kinds} kinds of world, and which one "
            "an environment has depends on how many there are. Define build(self, identities) instead, and "
            "let the kind follow from the identity."
        )
