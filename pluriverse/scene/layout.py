"""Number of worlds of each kind, and their spacing."""

from collections.abc import Sequence

from pluriverse.scene.values import Vector3

SPACING_DEFAULT: Vector3 = (2.0, 2.0, 0.0)
"""Distance [m] between replicated worlds where neither scene nor caller gives one."""


def allocate_worlds(total: int, counts: Sequence[int]) -> list[int]:
    """Return how many of `total` worlds each kind gets, in proportion to `counts`.

    Raises:
        ValueError: There are fewer worlds than kinds.
    """
    if total < len(counts):
        raise ValueError(
            f"{total} worlds cannot hold {len(counts)} kinds of world; ask for {len(counts)} or more, or run "
            "a scene of one kind"
        )
    count_sum = sum(counts)
    shares = [total * count // count_sum for count in counts]
    # The rest after rounding down goes to the largest remainders; the first kind wins a tie.
    by_remainder = sorted(range(len(counts)), key=lambda kind: -(total * counts[kind] % count_sum))
    for kind in by_remainder[: total - sum(shares)]:
        shares[kind] += 1
    while 0 in shares:
        shares[shares.index(max(shares))] -= 1
        shares[shares.index(0)] += 1
    return shares
