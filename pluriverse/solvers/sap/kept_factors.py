"""Kept factors: whether Newton's next direction is found with the factors of the last one.

Contacts at rest took a second factorization a step, since the friction of one of them turned by a hundredth.
So factors are kept where two such directions likely end the iteration. Such a step is a whole one. Where it
did not lower the gradient, the next direction has factors of its own and a line search.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once

# What a direction with kept factors leaves of the gradient at best.
KEPT_SHARE = wp.constant(0.01)
# Share of the tolerance that the gradient has to fall to after it: directions with factors of their own leave
# far less.
KEPT_MARGIN = wp.constant(0.2)


@made_once
def kept_factor_functions(real: Any) -> SimpleNamespace:
    """Return `may_keep_factors`."""

    @wp.func(inline=True)
    def may_keep_factors(norm: real, norm_before: real, wanted: real, kept: int) -> int:
        """Return whether a whole step with kept factors likely brings the gradient's norm down to `wanted`.

        The last whole step brought it from `norm_before` to `norm`; two more may follow if that one had
        factors of its own, one if it had `kept` ones.
        """
        share = wp.max(norm / norm_before, real(KEPT_SHARE))
        left = share * norm
        if kept == 0:
            left *= share
        return int(left <= wanted)

    return SimpleNamespace(may_keep_factors=may_keep_factors)
