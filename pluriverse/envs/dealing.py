"""Dealing: distribute worlds of a few kinds over many environments."""

from collections.abc import Sequence

import numpy as np

from pluriverse.model_builder import ModelBuilder


def deal_worlds(kinds: Sequence[ModelBuilder], identities: np.ndarray) -> ModelBuilder:
    """Return one world per environment, cycling through the kinds: identity 0 has the first.

    Worlds of a kind share what they are made of.

    Args:
        kinds: A world of each kind.
        identities: Identity of each environment, shape [env].
    """
    builder = ModelBuilder()
    kind_index = identities % len(kinds)
    starts = np.flatnonzero(np.diff(kind_index, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(kind_index)], strict=True):
        builder.replicate(kinds[kind_index[start]], int(end - start))
    return builder
