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
    place = identities % len(kinds)
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(place)], strict=True):
        builder.replicate(kinds[place[start]], int(end - start))
    return builder
