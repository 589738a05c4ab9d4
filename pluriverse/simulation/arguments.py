"""Arguments of a simulation: checks of time steps, counts and selections of worlds."""

import math
import warnings
from typing import Any, NoReturn

import numpy as np

from pluriverse.model import Model
from pluriverse.solvers import SolverBase
from pluriverse.solvers.sap import SolverSAP
from pluriverse.warnings import TimeStepWarning

# A time step [s] that is surely a mistake: contacts and joints move too far in it.
LONG_STEP = 0.1


def check_numbers(dt: Any, decimation: Any, threads: Any) -> None:
    """Raise unless the numbers that a simulation is made with are right; warn of a long time step [s].

    Raises:
        TypeError: If the time step is no number.
        ValueError: If a number is out of range.
    """
    _check_time_step(dt)
    check_count("Simulation: decimation", decimation)
    if threads is not None:
        check_count("Simulation: threads", threads)


def _check_time_step(dt: Any) -> None:
    if not isinstance(dt, float | int | np.floating | np.integer) or isinstance(dt, bool):
        raise TypeError(f"Simulation: dt is {dt!r}, but must be a time step in seconds, such as 0.005.")
    if not (dt > 0.0 and math.isfinite(dt)):
        raise ValueError(f"Simulation: dt is {dt} s, but must be a positive, finite time step.")
    if dt > LONG_STEP:
        warnings.warn(
            TimeStepWarning(
                f"Simulation: dt is {dt:g} s, in which a body falls {0.5 * 9.81 * dt * dt:.2g} m. Robots "
                f"are stepped by 0.001 to 0.02 s. dt is in seconds: dt={dt / 1000.0:g} is {dt:g} ms."
            ),
            stacklevel=4,
        )


def check_count(name: str, value: Any, *, lowest: int = 1) -> None:
    """Raise unless a value is a whole number of at least `lowest`.

    Raises:
        ValueError: If it is not.
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < lowest:
        raise ValueError(f"{name} is {value!r}, but must be a whole number of at least {lowest}.")


def refuse_time_step(dt: Any) -> NoReturn:
    """Refuse another time step [s] than the one that steps are recorded with.

    Raises:
        AttributeError: Always.
    """
    raise AttributeError(
        f"Simulation.dt was assigned {dt!r}, but steps are prepared with one time step. Make another one: "
        f"Simulation(model, dt={dt!r}); its restore() takes what save() of this one returns."
    )


def check_solver(model: Model, solver: Any) -> SolverBase:
    """Return the solver of a new simulation; a `SolverSAP` with its defaults if None is given.

    Raises:
        TypeError: If it is no solver.
        ValueError: If it belongs to another model.
    """
    if solver is None:
        return SolverSAP(model)
    if not isinstance(solver, SolverBase):
        raise TypeError(
            f"Simulation: solver is a {type(solver).__name__}, but must be a solver object, such as "
            "SolverSAP(model) or SolverMuJoCo(model)."
        )
    if solver.model is not model:
        raise ValueError("Simulation: the solver was made for another model. Make it with this one.")
    return solver


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
