"""Random numbers of environments: each has its own, whatever the batch.

Reads   identity, episode and step of each environment
Writes  uniform numbers
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import RECORDING, launch_kernel
from pluriverse.math.counter_random import open_uniform_of, philox

# Second word of the key of environment draws, which keeps them distinct from those of randomizers.
ENVIRONMENT_STREAM = wp.constant(wp.uint32(0x656E7673))
# Draws of one call are distinguished by their index, calls of one step by this offset.
CALL_NUMBER_COUNT = 1 << 12
# Draws in a reset and in an observation are told apart from those of other functions by the highest bits of
# the place. All environments observe again where one of them begins anew, and the others have to see the same
# noise as alone.
RESET_COUNTER = 1 << 30
OBSERVATION_COUNTER = 1 << 29
# Which argument of `draw_uniform` is the place.
COUNTER_ARGUMENT = 4


@wp.kernel(enable_backward=False, module="pluriverse.envs.random")
def draw_uniform(
    identity: wp.array[int],  # [env]
    episode: wp.array[int],  # [env]
    step: wp.array[int],  # [env]
    seed: int,
    counter: int,
    values: wp.array2d[float],  # [env, number] out
):
    """Draw one number of one environment, uniform between 0 and 1."""
    env, number = wp.tid()
    block = philox(
        wp.uint32(identity[env]),
        wp.uint32(episode[env]),
        wp.uint32(step[env]),
        wp.uint32(counter + number),
        wp.uint32(seed),
        ENVIRONMENT_STREAM,
    )
    values[env, number] = wp.float32(open_uniform_of(block.word0))


class EnvironmentRandom:
    """Draws numbers that depend on seed, identity, episode and step of an environment and nothing else.

    Args:
        identity: Identity of each environment, shape [env].
        episode: Episodes begun by each environment, shape [env]; read at every draw.
        step: Steps made in the episode, shape [env]; read at every draw.
        seed: Seed of all draws.
    """

    def __init__(self, identity: Any, episode: Any, step: Any, seed: int) -> None:
        self._arrays = (identity, episode, step)
        self._seed = seed
        self._call = 0
        self._draws: dict[int, tuple[Any, Any]] = {}

    def begin(self, counter: int = 0) -> None:
        """Begin with the first call of a step, or at another place."""
        self._call = counter // CALL_NUMBER_COUNT

    def uniform(self, low: Any, high: Any, count: int | None = None) -> Any:
        """Return numbers uniform between two bounds, a tensor [env], or [env, count].

        Args:
            low: Lower bound: a number, or a tensor or sequence that fits the result, one per number.
            high: Upper bound.
            count: Numbers per environment; None for one without an axis.

        Raises:
            TypeError: If `count` is not a whole number.
            ValueError: If `count` is out of range.
        """
        width = 1 if count is None else count
        if not isinstance(width, int | np.integer) or isinstance(width, bool):
            raise TypeError(
                f"uniform, normal: count is {count!r}, but must be a whole number, how many to draw for each "
                "environment. The mean of normal(std, count) is zero: add another one to the result."
            )
        if not 0 < width <= CALL_NUMBER_COUNT:
            raise ValueError(
                f"uniform, normal: count is {count}, but must be between 1 and {CALL_NUMBER_COUNT}. Draw in "
                "several calls."
            )
        if width not in self._draws:
            self._draws[width] = self._prepared(width)
        draw, numbers = self._draws[width]
        draw.set_param_at_index(COUNTER_ARGUMENT, self._call * CALL_NUMBER_COUNT)
        with RECORDING:
            draw.launch()
        self._call += 1
        # Arithmetic makes a new tensor, so that the next draw may use the same memory.
        drawn = numbers[:, 0] if count is None else numbers
        low, high = (_as_bound(bound, drawn) for bound in (low, high))
        return low + (high - low) * drawn

    def _prepared(self, width: int) -> tuple[Any, Any]:
        """Return a launch that draws so many numbers per environment, and the tensor that it fills."""
        identity = self._arrays[0]
        values = wp.empty((identity.size, width), dtype=float, device=identity.device)
        draw = launch_kernel(
            draw_uniform,
            dim=(identity.size, width),
            inputs=[*self._arrays, self._seed, 0],
            outputs=[values],
            device=identity.device,
            record_cmd=True,
        )
        return draw, wp.to_torch(values)

    def normal(self, std: Any, count: int | None = None) -> Any:
        """Return numbers of a normal distribution about zero, a tensor [env], or [env, count].

        Args:
            std: Standard deviation: a number, or a tensor or sequence that fits the result, one per number.
            count: Numbers per environment; None for one without an axis.

        Raises:
            TypeError: If `count` is not a whole number.
            ValueError: If `count` is out of range.
        """
        import torch

        drawn = self.uniform(0.0, 1.0, count)
        return _as_bound(std, drawn) * torch.special.ndtri(drawn.double()).float()


def _as_bound(bound: Any, drawn: Any) -> Any:
    """Return a number or a tensor as it is, a list, tuple or array as a tensor beside the numbers drawn."""
    import torch

    if not isinstance(bound, list | tuple | np.ndarray):
        return bound
    return torch.as_tensor(bound, dtype=drawn.dtype, device=drawn.device)
