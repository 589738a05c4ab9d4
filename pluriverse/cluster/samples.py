"""Samples: values of parameters, one set for each world of a sweep."""

import difflib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.model.schema import ENTITY_OF_ARRAY, MODEL_ARRAYS
from pluriverse.model.world_ranges import world_ranges
from pluriverse.randomization.targets import entity_of, find_targets
from pluriverse.simulation import Simulation

SOLVER_PREFIX = "solver."
"""Options of the solver are called by this and their name."""
OPERATIONS = ("set", "scale", "add")
"""What a value does to the property: replace it, or change what the scene says."""


@dataclass(frozen=True)
class Parameter:
    """The property that a column of samples sets."""

    key: str
    """Name of the column: `dt`, `solver.NAME`, or an array of the model, perhaps with `@PATTERN`."""
    operation: str = "set"
    """One of `OPERATIONS`."""

    @property
    def is_shared(self) -> bool:
        """Whether all worlds of a simulation have the same value."""
        return self.key == "dt" or self.key.startswith(SOLVER_PREFIX)

    @property
    def array(self) -> str:
        """Name of the array of the model."""
        return self.key.partition("@")[0]

    @property
    def pattern(self) -> str:
        """Labels of the entities, with wildcards."""
        return self.key.partition("@")[2] or "*"


@dataclass(frozen=True)
class Samples:
    """Sets of values, one after the other."""

    parameters: tuple[Parameter, ...]
    """The columns."""
    values: tuple[tuple[Any, ...], ...]
    """Values, shape [sample][parameter]."""

    def __len__(self) -> int:
        return len(self.values)

    def columns(self, selected: Sequence[int]) -> dict[str, Any]:
        """Return the columns of some samples, as they stand in the table."""
        return {
            parameter.key: [self.values[index][column] for index in selected]
            for column, parameter in enumerate(self.parameters)
        }

    def shared_groups(self) -> list[tuple[dict[str, Any], list[int]]]:
        """Return the samples that one simulation can hold: options and indices of the samples."""
        groups: dict[str, tuple[dict[str, Any], list[int]]] = {}
        for index, row in enumerate(self.values):
            options = {
                parameter.key: value
                for parameter, value in zip(self.parameters, row, strict=True)
                if parameter.is_shared
            }
            groups.setdefault(json.dumps(options, sort_keys=True, default=str), (options, []))[1].append(
                index
            )
        return list(groups.values())


def make_samples(given: Any, what: str) -> Samples:
    """Return samples from a grid or a list.

    Args:
        given: A mapping from each parameter to its values, of which all combinations are made, the last
            parameter changing first; or a list of mappings from each parameter to its value. A value, or the
            list of values, may be `{"scale": ...}` or `{"add": ...}` to change what the scene says.
        what: The caller, for messages.

    Raises:
        TypeError: If they are neither.
        ValueError: If there are none, or one is no number.
    """
    if isinstance(given, Mapping):
        if not given:
            raise ValueError(f"{what}: there are no samples. Name a parameter and its values.")
        columns = []
        for key, values in given.items():
            operation, values = _operation(values, what, key)
            if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str) or not len(values):
                raise ValueError(
                    f"{what}: {key} is {values!r}, but a grid needs a list of values, at least one."
                )
            columns.append((_parameter(key, operation, what), [_value(v, what, key) for v in values]))
        parameters = tuple(parameter for parameter, _ in columns)
        return Samples(parameters, tuple(itertools.product(*(values for _, values in columns))))
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise TypeError(
            f"{what}: samples are a {type(given).__name__}, but must be a mapping from parameters to lists "
            "of values, or a list of mappings from parameters to a value."
        )
    if not given:
        raise ValueError(f"{what}: there are no samples.")
    names = list(given[0]) if isinstance(given[0], Mapping) else []
    if not names:
        raise ValueError(f"{what}: sample 0 is {given[0]!r}, but must map parameters to values.")
    rows: list[tuple[Any, ...]] = []
    operations: dict[str, str] = {}
    for index, sample in enumerate(given):
        if not isinstance(sample, Mapping) or list(sample) != names:
            raise ValueError(
                f"{what}: sample {index} is {sample!r}, but every sample names the same parameters, those of "
                f"sample 0: {', '.join(names)}."
            )
        row = []
        for key, value in sample.items():
            operation, value = _operation(value, what, key)
            if operations.setdefault(key, operation) != operation:
                raise ValueError(f"{what}: sample {index}: {key} is {operation} here and another one before.")
            row.append(_value(value, what, key))
        rows.append(tuple(row))
    return Samples(tuple(_parameter(key, operations[key], what) for key in names), tuple(rows))


def write_samples(simulation: Simulation, samples: Samples, selected: Sequence[int], what: str) -> None:
    """Give world i of a simulation the values of sample `chosen[i]`.

    Raises:
        KeyError: If a pattern finds nothing.
        ValueError: If a value is not allowed.
    """
    model = simulation.model
    flags = 0
    for position, parameter in enumerate(samples.parameters):
        if parameter.is_shared:
            continue
        array = getattr(model, parameter.array)
        kind = entity_of(parameter.array)
        found = find_targets(model, kind, parameter.pattern, f"{what}: {parameter.key}")
        first, count = world_ranges(model, kind)
        host = array.numpy().copy()
        for world, index in enumerate(selected):
            entries = first[world] + np.flatnonzero(found[first[world] : first[world] + count[world]])
            value = np.asarray(samples.values[index][position], dtype=np.float64)
            if value.ndim and value.shape != host.shape[1:]:
                raise ValueError(
                    f"{what}: {parameter.key} is {value.tolist()}, but has {host.shape[1:]} components."
                )
            if parameter.operation == "scale":
                host[entries] = host[entries] * value
            elif parameter.operation == "add":
                host[entries] = host[entries] + value
            else:
                host[entries] = value
        array.assign(host)
        flags |= int(MODEL_ARRAYS[parameter.array].flag)
    if flags:
        simulation.notify_model_changed(flags)


def _operation(value: Any, what: str, key: str) -> tuple[str, Any]:
    if not isinstance(value, Mapping):
        return "set", value
    if len(value) != 1 or next(iter(value)) not in OPERATIONS:
        raise ValueError(
            f"{what}: {key} is {dict(value)!r}, but must be a value, or one of "
            + ", ".join(f"{{{name}: ...}}" for name in OPERATIONS)
            + "."
        )
    return next(iter(value.items()))


def _parameter(key: str, operation: str, what: str) -> Parameter:
    parameter = Parameter(str(key), operation)
    if parameter.is_shared:
        if operation != "set":
            raise ValueError(f"{what}: {key} can only be set, not {operation}.")
        return parameter
    if parameter.array not in ENTITY_OF_ARRAY:
        close = difflib.get_close_matches(parameter.array, ENTITY_OF_ARRAY, n=3)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise ValueError(
            f"{what}: there is no parameter {key!r}. Parameters are dt, {SOLVER_PREFIX}NAME for an option of "
            f"the solver, or an array of the model such as shape_material_mu or body_mass@base.{hint}"
        )
    if parameter.array == "shape_scale":
        raise ValueError(f"{what}: sizes of shapes are no parameter of a sweep. Use variants of the scene.")
    try:
        entity_of(parameter.array)
    except ValueError as error:
        raise ValueError(f"{what}: {key}: {error}") from error
    return parameter


def _value(value: Any, what: str, key: str) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if key.startswith(SOLVER_PREFIX) and isinstance(value, str | bool):
        return value
    numbers = np.asarray(value if not isinstance(value, bool) else "", dtype=object).reshape(-1)
    if not all(isinstance(number, int | float) and np.isfinite(number) for number in numbers):
        raise ValueError(
            f"{what}: {key} has the value {value!r}, but must be a finite number or a list of them."
        )
    return value
