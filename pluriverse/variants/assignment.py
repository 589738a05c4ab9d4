"""Assignment: the initial variant of each environment."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Quotas closer to each other than this [worlds] count as equal: they come from proportional weights, with a
# few roundings of float64.
QUOTA_ROUNDING = 1e-9


def share_out(weights: Sequence[float] | np.ndarray, count: int) -> np.ndarray:
    """Return the share of `count` of each weight, by the largest remainder method.

    Each weight gets its quota rounded down; the rest goes to the largest remainders, in order.
    """
    shares = np.asarray(weights, dtype=np.float64)
    quotas = shares / shares.sum() * count
    floors = np.floor(quotas + QUOTA_ROUNDING)
    remainders = np.round((quotas - floors) / QUOTA_ROUNDING)
    order = np.argsort(-remainders, kind="stable")
    counts = floors.astype(np.int64)
    counts[order[: count - int(counts.sum())]] += 1
    return counts


def assign_variants(
    entity: str, names: Sequence[str], assignment: Any, environment_count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the variant of each environment, and the share of each variant in later draws (sum 1).

    Raises:
        TypeError: If the assignment is none of the three forms.
        ValueError: If it does not fit; the message names the entity.
    """
    if assignment is None or isinstance(assignment, Mapping):
        weights = _weights(entity, names, assignment or {})
        counts = share_out(weights, environment_count)
        return np.repeat(np.arange(len(names)), counts), weights / weights.sum()
    if not callable(assignment):
        raise TypeError(
            f"entity '{entity}': assignment is a {type(assignment).__name__}, but must be None, weights by "
            "variant, or a function of the number of environments."
        )
    selected = np.asarray(assignment(environment_count))
    if selected.shape != (environment_count,):
        raise ValueError(
            f"entity '{entity}': assignment({environment_count}) returned {selected.size} indices of shape "
            f"{selected.shape}, but must return one for each of the {environment_count} environments."
        )
    if selected.size and not np.issubdtype(selected.dtype, np.integer):
        raise ValueError(
            f"entity '{entity}': assignment({environment_count}) returned {selected.dtype} numbers, but must "
            "return whole ones, the indices of variants."
        )
    bad = np.flatnonzero((selected < 0) | (selected >= len(names)))
    if len(bad):
        raise ValueError(
            f"entity '{entity}': assignment({environment_count}) gives environment {bad[0]} the variant "
            f"{selected[bad[0]]}, but there are variants 0 to {len(names) - 1} ({', '.join(names)})."
        )
    counts = np.bincount(selected, minlength=len(names))
    return selected.astype(np.int64), counts / max(environment_count, 1)


def _weights(entity: str, names: Sequence[str], assignment: Mapping[str, float]) -> np.ndarray:
    unknown = [name for name in assignment if name not in names]
    if unknown:
        raise ValueError(
            f"entity '{entity}': assignment has a weight for '{unknown[0]}', but the variants are "
            f"{', '.join(names)}."
        )
    weights = np.array([float(assignment.get(name, 1.0)) for name in names])
    for name, weight in zip(names, weights.tolist(), strict=True):
        if not (weight >= 0.0 and np.isfinite(weight)):
            raise ValueError(
                f"entity '{entity}': the weight of variant '{name}' is {weight}, but it must be a finite "
                "number >= 0."
            )
    if not weights.sum() > 0.0:
        raise ValueError(
            f"entity '{entity}': all weights are zero, so no variant could be assigned. Give one of "
            f"{', '.join(names)} a weight > 0."
        )
    return weights
