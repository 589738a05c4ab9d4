"""Task: the definition of what a robot learns, which an environment runs in many worlds at once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.envs.mirror import Mirror


class Task:
    """Base class of tasks: the worlds, observations, rewards and episodes of environments.

    Derive from it and define how worlds are built, observations, rewards and the end of episodes:

    * `build` returns the worlds, one per environment, which may differ;
    * `setup` runs once: take tensors (`env.tensors("go1")`), set `action_count`;
    * `act`, `observe`, `reward` and `terminated` run in each step, for all environments at once, on PyTorch
      tensors whose first axis is the environment;
    * `reset` runs for the environments that begin anew, after their worlds have returned to the initial state
      that `randomization` drew;
    * `finish` runs once for each episode, when it ends, on the state at its end: the place for a curriculum.

    `env` is the `Environment`. Arguments and attributes are plain Python: a task that takes parameters takes
    them in `__init__`.
    """

    dt: float = 0.005
    """Time step of the solver [s]."""
    decimation: int = 4
    """Solver steps per action."""
    episode_seconds: float | None = 20.0
    """Simulated time after which an episode is truncated [s]; never if infinite or None."""
    action_count: int = 0
    """Numbers in an action; set it, at the latest in `setup`."""
    action_limit: float = 1.0
    """Actions are clipped to plus and minus this, the bounds of the action space."""
    scene: str | Path | None = None
    """Scene to load instead of `build`: a file, or the name of a bundled one."""
    randomization: Sequence[Any] = ()
    """Terms of `pluriverse.randomization` that are drawn for each episode."""

    def build(self, identities: np.ndarray) -> Any:
        """Return a `ModelBuilder` with one world per environment, or a finished `Model`.

        Args:
            identities: Identity of each environment, shape [env]; 0, 1, 2 ... unless a part of a larger batch
                is made. Differences between worlds should depend on it, not on the index.

        Raises:
            NotImplementedError: If a task has neither this nor `scene`.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: a task says what its worlds are. Define build(self, identities), which "
            "returns a ModelBuilder with len(identities) worlds, or set scene to a scene file."
        )

    def make_solver(self, model: Any) -> Any:
        """Return the solver of a model, or None for `SolverSAP` with its defaults."""
        return None

    def setup(self, env: Any) -> None:
        """Prepare: called once, when there is a simulation, before anything is stepped."""

    def act(self, env: Any, actions: Any) -> None:
        """Turn actions, shape [env, action_count], into targets, efforts or forces for the next step."""
        raise NotImplementedError(
            f"{type(self).__name__}: define act(self, env, actions), for example: "
            "self.robot.torch.joint_position_targets.copy_(self.home + 0.25 * actions)"
        )

    def observe(self, env: Any) -> Any:
        """Return the observations: a tensor [env, number], or several by their names.

        With several, the policy gets `policy` and a critic `critic`, if given.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: define observe(self, env), which returns a tensor of shape [env, "
            "number]."
        )

    def reward(self, env: Any) -> Any:
        """Return the reward of the step, a tensor [env], or its terms by their names, which are added up.

        A number stands for the same in all environments.
        """
        raise NotImplementedError(
            f"{type(self).__name__}: define reward(self, env), which returns a tensor of shape [env]."
        )

    def terminated(self, env: Any) -> Any:
        """Return which environments have failed or succeeded, truth values [env]; None for none."""
        return None

    def finish(self, env: Any, mask: Any) -> None:
        """Called for environments whose episode ends in this step, truth values [env], on its last state.

        It makes no difference when they are reset. An episode that `Environment.reset` breaks off has no end.
        """

    def reset(self, env: Any, mask: Any) -> None:
        """Called for environments that start an episode, truth values [env], after their reset."""

    def mirror(self, env: Any) -> Mirror | None:
        """Return observations and actions in the mirror, for a robot whose two sides are alike; None if not.

        Experience of one side is then also used for the other, with `LearningConfig(symmetric=True)`.
        """
        return None

    def metrics(self, env: Any) -> dict[str, Any]:
        """Return further figures for logs by their names: numbers, or tensors [env] to be averaged."""
        return {}
