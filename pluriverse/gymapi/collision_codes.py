"""Collision codes: groups and filter bits of the API as groups and filtered pairs of a world.

Two shapes of different actors collide if the groups of the actors are equal or one of them is -1, and the
shapes share no filter bit. Shapes of one actor collide if they share no bit; with filter -1, unless the file
of the asset filters the pair.
"""

from collections.abc import Collection, Sequence

import numpy as np

from pluriverse.model.collision_pairs import groups_collide

# Group of grounds, which collide with everything.
GROUND_GROUP = -(2**30)


def collision_codes(
    actor: np.ndarray, group: np.ndarray, bits: np.ndarray, filtered: Sequence[tuple[int, int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the collision group of each shape of a world, and the pairs to be filtered, shape [pair, 2].

    Groups express as much as they can, since pairs have to be listed one by one.

    Args:
        actor: Actor of each shape.
        group: Group of its actor, -1 for all.
        bits: Its filter bits.
        filtered: Pairs of shapes of one actor that its file keeps apart.
    """
    count = len(actor)
    if count == 0:
        return np.zeros(0, dtype=np.int64), np.zeros((0, 2), dtype=np.int64)
    groups = np.unique(group[group >= 0])
    if len(groups) <= 1:
        # All actors may meet. A negative group does not collide with itself: one for each set of bits.
        _, rank = np.unique(bits, return_inverse=True)
        codes = np.where(bits == 0, 1, -2 - rank.reshape(-1))
    else:
        # A negative group of its own lets a shape meet all others.
        codes = np.where(group >= 0, 1 + np.searchsorted(groups, group), -2 - np.arange(count))
    pairs = [np.asarray(filtered, dtype=np.int64).reshape(-1, 2)]
    if not bits.any() and len(groups) <= 1:
        return codes, pairs[0]  # all may meet
    rows = max(1, 2**24 // count)
    for start in range(0, count, rows):
        row = np.arange(start, min(start + rows, count))[:, None]
        column = np.arange(count)[None, :]
        collides = (group[row] == group[column]) | (group[row] < 0) | (group[column] < 0)
        collides |= actor[row] == actor[column]
        collides &= (bits[row] & bits[column]) == 0
        surplus = (column > row) & groups_collide(codes[row], codes[column]) & ~collides
        first, second = np.nonzero(surplus)
        pairs.append(np.column_stack([first + start, second]))
    return codes, np.concatenate(pairs)


def find_shared_envs(
    groups: Sequence[Sequence[int]], bits: Sequence[Sequence[Collection[int]]]
) -> list[list[int]]:
    """Return the envs by world: those whose actors may meet share one.

    Args:
        groups: Groups of the actors of each env.
        bits: The different filter bits of the shapes of these actors.

    Returns:
        Lists of envs, ascending, in the order of their first env.
    """
    parent = list(range(len(groups)))

    def root(env: int) -> int:
        while parent[env] != env:
            parent[env] = parent[parent[env]]
            env = parent[env]
        return env

    def join(a: int, b: int) -> None:
        a, b = root(a), root(b)
        parent[max(a, b)] = min(a, b)

    bits_of_group: dict[int, set[int]] = {}
    for part, patterns in zip(groups, bits, strict=True):
        for group, found in zip(part, patterns, strict=True):
            bits_of_group.setdefault(group, set()).update(found)
    everyone = set().union(*bits_of_group.values())

    def may_meet(some: Collection[int], others: Collection[int]) -> bool:
        return any((one & other) == 0 for one in some for other in others)

    occupied = [env for env, part in enumerate(groups) if len(part)]
    if may_meet(bits_of_group.get(-1, ()), everyone):
        for env in occupied:
            join(occupied[0], env)
    first_env: dict[int, int] = {}
    # Where all shapes of a group share bits, the group lets nobody meet.
    meeting = {group for group, found in bits_of_group.items() if may_meet(found, found)}
    for env, part in enumerate(groups):
        for group in meeting.intersection(part):
            join(first_env.setdefault(group, env), env)
    worlds: dict[int, list[int]] = {}
    for env in range(len(groups)):
        worlds.setdefault(root(env), []).append(env)
    return list(worlds.values())
