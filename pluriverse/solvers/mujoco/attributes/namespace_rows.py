"""Rows of the custom frequencies of the namespace `mujoco` (tendons, actuators, pairs), world by world."""

import numpy as np

from pluriverse.mujoco_attributes.choices import NAMESPACE
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows

NO_ENTRY = -(2**62)
"""Filler where a world has fewer entries than others."""


def rows_of_worlds(rows: ModelRows, frequency: str, worlds: np.ndarray) -> np.ndarray:
    """Return the rows of each world in their order, shape [world, row], -1 where a world has fewer.

    Raises:
        ValueError: If a row belongs to no world, although the model has worlds.
    """
    owner = rows.model.custom_frequency_world.get(f"{NAMESPACE}:{frequency}")
    if owner is None or len(owner) == 0:
        return np.zeros((len(worlds), 0), dtype=np.int64)
    world = owner.astype(np.int64)
    if (world < 0).any():
        placed = [rows.array("body_world"), rows.array("shape_world"), world]
        if rows.model.world_count > 1 or any((entities >= 0).any() for entities in placed):
            row = int(np.argmax(world < 0))
            raise ValueError(
                f"SolverMuJoCo: row {row} of {NAMESPACE}:{frequency} belongs to no world. Add it between "
                "begin_world() and end_world(), or in the builder that the world is made of."
            )
        world = np.zeros_like(world)
    order = np.argsort(world, kind="stable")
    counts = np.bincount(world, minlength=rows.model.world_count)
    start = np.concatenate([[0], np.cumsum(counts)])
    most = int(counts[worlds].max(initial=0))
    position = start[worlds][:, None] + np.arange(most)
    inside = np.arange(most) < counts[worlds][:, None]
    return np.where(inside, order[np.where(inside, position, 0)], -1)


def values_of(rows: ModelRows, name: str, table: np.ndarray) -> np.ndarray:
    """Return an attribute of the rows in a table, shape [world, row, ...]; no row (-1) has `NO_ENTRY`."""
    values = rows.custom_array(name)
    if values is None or len(values) == 0:
        return np.zeros((*table.shape, *(() if values is None else values.shape[1:])))
    taken: np.ndarray = values[np.maximum(table, 0)].copy()
    taken[table < 0] = NO_ENTRY
    return taken


def local_index(rows: ModelRows, kind: str, worlds: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """Return world-local indices of entities, shape [world, ...]; global shapes as `-1 - index`, none -1.

    None is `NO_ENTRY`, so that it differs from the first global shape.
    """
    first = rows.first[kind][worlds].reshape(-1, *([1] * (flat.ndim - 1)))
    local = np.where(flat >= 0, flat - first, NO_ENTRY)
    if kind == "shape":
        shared = (flat >= 0) & np.isin(flat, rows.global_shapes)
        local = np.where(shared, -1 - flat, local)
    return local


def label_of(rows: ModelRows, name: str, row: int, fallback: str) -> str:
    """Return the text of a row."""
    texts = getattr(getattr(rows.model, NAMESPACE, None), name, None)
    return (texts[row] if texts else "") or fallback


def as_columns(*tables: np.ndarray) -> np.ndarray:
    """Return integers, shape [world, column], that are equal exactly where all numbers are."""
    columns = []
    for table in tables:
        flat = table.reshape(len(table), -1)
        if flat.dtype.kind == "f":
            flat = np.ascontiguousarray(flat, dtype=np.float64).view(np.int64)
        columns.append(flat.astype(np.int64))
    return np.concatenate(columns, axis=1)
