"""Cut parts: bodies of a model that `finalize` cut from bodies of actors, where a joint closes a loop.

They are welded to the body that they were cut from (`pluriverse.builder.split_bodies`).
"""

import numpy as np

from pluriverse.model import Model


def find_origins(model: Model, is_own: np.ndarray) -> np.ndarray:
    """Return the body that each body of a model is, or was cut from.

    Args:
        model: Model.
        is_own: Whether a body was there before, shape [body].
    """
    origin = np.arange(model.body_count)
    ends = [getattr(model, f"equality_constraint_body{side}").numpy() for side in (1, 2)]
    for part, body in (ends, ends[::-1]):
        welds = (part >= 0) & (body >= 0)
        welds[welds] = ~is_own[part[welds]] & is_own[body[welds]]
        origin[part[welds]] = body[welds]
    return origin
