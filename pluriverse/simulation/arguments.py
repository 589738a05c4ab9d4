"""Arguments of a simulation: checks of time steps, counts and selections of worlds."""

import math
import warnings
from typing import Any

import numpy as np

from pluriverse.model import Model
from pluriverse.warnings import TimeStepWarning

# A time step [s] that is surely a mistake: contacts and joints move too far in it.
LONG_STEP = 0.1


def check_time_step(dt: float) -> None:
    """Raise unless a time step [s] is positive and finite; warn of one that is long.

    Raises:
        ValueError: If it is not.
    """
    if not (dt > 0.0 and math.isfinite(dt)):
        raise ValueError(f"Simulation: dt is {dt} s, but must be a positive, finite time step.")
    if dt > LONG_STEP:
        warnings.warn(
            TimeStepWarning(
                f"Simulation: dt is {dt:g} s, in which a body falls {0.5 * 9.81 * dt * dt:.2g} m. Robots "
                f"are stepped by 0.001 to 0.02 s. dt is in seconds: dt={dt / 1000.0:g} is {dt:g} ms."
            ),
            stacklevel=3,
        )


def check_count(name: str, value: Any, *, lowest: int = 1) -> None:
    """Raise unless a value is a whole number of at least `lowest`.

    Raises:
        ValueError: If it is not.
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < lowest:
        raise ValueError(f"{name} is {value!r}, but must be a whole number of at least {lowest}.")


def check_culled_worlds(model: Model, wanted: Any) -> np.ndarray:
    """Return for each world whether contacts that cannot act are left out, shape [world].

    Raises:
        TypeError: If there are other values than truth values.
        ValueError: If there is neither one of them nor one per world.
    """
    culled = np.asarray(wanted)
    if culled.dtype != np.bool_:
        raise TypeError(f"Simulation: cull_contacts is {wanted!r}, but must be True, False or one per world.")
    if culled.shape not in ((), (model.world_count,)):
        raise ValueError(
            f"Simulation: cull_contacts has shape {culled.shape}, but must be one truth value, or one for "
            f"each of the {model.world_count} worlds."
        )
    return np.broadcast_to(culled, model.world_count)
