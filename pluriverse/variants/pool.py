"""Pool: prepared worlds of environments, and their allocation when environments change layouts.

Worlds of one kind (tuple of layouts) are contiguous. Either each environment has its own world of every kind,
or all environments share a pool per kind and take a free world. The pool is sized so that draws by the
weights exhaust it with a probability of at most `MISS_PROBABILITY`: the number of environments of a kind has
a binomial distribution. If no world is free, the environment gets the next kind with a free one, which is
counted.

Reads   environment_tuple, variants
Writes  environment_world, the free worlds of each kind; environment_tuple and variants where none was free
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.variants.environments import is_selected

# Probability that a kind has no free world, per kind and draw.
MISS_PROBABILITY = 1e-12


def shared_counts(probability: np.ndarray, environment_count: int, initial: np.ndarray) -> np.ndarray:
    """Return how many worlds of each kind environments share.

    Args:
        probability: Probability that an environment draws each kind.
        environment_count: Number of environments.
        initial: How many of them begin in each kind.
    """
    from scipy.stats import binom

    needed = binom.isf(MISS_PROBABILITY, environment_count, probability).astype(np.int64)
    result: np.ndarray = np.maximum(np.clip(needed, 1, environment_count), initial)
    return result


@wp.struct
class WorldPool:
    """The worlds that no environment has, on the device."""

    first: wp.array[int]  # [kind + 1] first world
    free_count: wp.array[int]  # [kind]
    free_world: wp.array[int]  # [world] those of a kind that are free come first, from its first world on
    fallback_count: wp.array[int]  # [environment] how often it got another kind than it had drawn


@wp.kernel(enable_backward=False, module="pluriverse.variants.pool")
def release_worlds(
    environments: wp.array[int],  # [slot] the environments of this launch
    mask: wp.array[bool],  # [environment] which of them; empty: all
    environment_tuple: wp.array[int],  # [environment] kind of the world that it leaves
    environment_world: wp.array[int],  # [environment] -1 afterwards
    pool: WorldPool,
):
    """Take back the worlds of one kind."""
    kind, _ = wp.tid()
    free = pool.free_count[kind]
    for slot in range(environments.shape[0]):
        environment = environments[slot]
        if is_selected(environment, environment_world.shape[0], mask):
            if environment_tuple[environment] == kind and environment_world[environment] >= 0:
                pool.free_world[pool.first[kind] + free] = environment_world[environment]
                environment_world[environment] = -1
                free += 1
    pool.free_count[kind] = free


@wp.kernel(enable_backward=False, module="pluriverse.variants.pool")
def acquire_worlds(
    environments: wp.array[int],  # [slot] the environments of this launch
    mask: wp.array[bool],  # [environment] which of them; empty: all
    environment_tuple: wp.array[int],  # [environment] kind of the world that it wants
    environment_world: wp.array[int],  # [environment] -1: it has none
    pool: WorldPool,
):
    """Hand out the worlds of one kind, as long as there are any."""
    kind, _ = wp.tid()
    free = pool.free_count[kind]
    for slot in range(environments.shape[0]):
        environment = environments[slot]
        if is_selected(environment, environment_world.shape[0], mask):
            if environment_tuple[environment] == kind and environment_world[environment] < 0 and free > 0:
                free -= 1
                environment_world[environment] = pool.free_world[pool.first[kind] + free]
    pool.free_count[kind] = free


@wp.kernel(enable_backward=False, module="pluriverse.variants.pool")
def use_fallback_worlds(
    environments: wp.array[int],  # [slot] the environments of this launch
    mask: wp.array[bool],  # [environment] which of them; empty: all
    environment_tuple: wp.array[int],  # [environment]
    environment_world: wp.array[int],  # [environment] -1: it has none
    pool: WorldPool,
):
    """Give all environments that have no world one of the next kind that is free, one after the other."""
    count = pool.free_count.shape[0]
    for slot in range(environments.shape[0]):
        environment = environments[slot]
        if is_selected(environment, environment_world.shape[0], mask):
            if environment_world[environment] < 0:
                kind = environment_tuple[environment]
                while pool.free_count[kind] == 0:  # there are at least as many worlds as environments
                    kind = (kind + 1) % count
                free = pool.free_count[kind] - 1
                pool.free_count[kind] = free
                environment_world[environment] = pool.free_world[pool.first[kind] + free]
                environment_tuple[environment] = kind
                times = pool.fallback_count[environment]
                pool.fallback_count[environment] = times + 1


@wp.kernel(enable_backward=False, module="pluriverse.variants.pool")
def fit_variant(
    environments: wp.array[int],  # [slot] the environments of this launch
    mask: wp.array[bool],  # [environment] which of them; empty: all
    environment_tuple: wp.array[int],  # [environment]
    variant_layout: wp.array[int],  # [variant] of one entity
    tuple_layout: wp.array[int],  # [kind] layout of that entity
    tuple_variant: wp.array[int],  # [kind] a variant of that layout
    variant: wp.array[int],  # [environment] of that entity
):
    """Set the variant of an entity in one environment to one of its world's layout."""
    thread, _ = wp.tid()
    environment = environments[thread]
    if not is_selected(environment, variant.shape[0], mask):
        return
    kind = environment_tuple[environment]
    if variant_layout[variant[environment]] != tuple_layout[kind]:
        variant[environment] = tuple_variant[kind]


def make_pool(
    first: np.ndarray, environment_world: np.ndarray, environment_tuple: np.ndarray, device: Any
) -> WorldPool:
    """Return the pool at the beginning, on a device.

    Args:
        first: First world of each kind, and the end, shape [kind + 1].
        environment_world: World of each environment.
        environment_tuple: Its kind.
        device: Device.
    """
    taken = np.bincount(environment_tuple, minlength=len(first) - 1)
    free_world = np.zeros(int(first[-1]), dtype=np.int32)
    occupied = np.zeros(int(first[-1]), dtype=bool)
    occupied[environment_world] = True
    for kind, start in enumerate(first[:-1].tolist()):
        # Taken from the end, so that lower worlds come first.
        worlds = start + np.flatnonzero(~occupied[start : first[kind + 1]])[::-1]
        free_world[start : start + len(worlds)] = worlds
    pool = WorldPool()
    for name, values in {
        "first": first,
        "free_count": np.diff(first) - taken,
        "free_world": free_world,
        "fallback_count": np.zeros(len(environment_world)),
    }.items():
        array: Any = wp.array(np.asarray(values, dtype=np.int32), dtype=wp.int32, device=device)
        setattr(pool, name, array)
    return pool
