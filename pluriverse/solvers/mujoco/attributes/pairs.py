"""Explicit contact pairs with their own properties, from custom attributes."""

from typing import Any

import numpy as np

from pluriverse.solvers.mujoco.attributes.namespace_rows import (
    as_columns,
    label_of,
    local_index,
    rows_of_worlds,
    values_of,
)
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows

_FIELDS = (
    ("pair_solref", "solref"),
    ("pair_solreffriction", "solreffriction"),
    ("pair_solimp", "solimp"),
    ("pair_margin", "margin"),
    ("pair_gap", "gap"),
    ("pair_adhesion", "adhesion"),
    ("pair_friction", "friction"),
)
"""Attributes and the fields of a pair that they become."""


class Pairs:
    """The extension of contact pairs; see `extensions`."""

    def compiled_numbers(self, rows: ModelRows, worlds: np.ndarray) -> np.ndarray:
        """Return the shapes and the dimensions of the pairs."""
        if rows.custom_array("pair_condim") is None:
            return np.zeros((len(worlds), 0), dtype=np.int64)
        table = rows_of_worlds(rows, "pair", worlds)
        return as_columns(
            values_of(rows, "pair_condim", table),
            local_index(rows, "shape", worlds, values_of(rows, "pair_geom1", table)),
            local_index(rows, "shape", worlds, values_of(rows, "pair_geom2", table)),
        )

    def write(self, writer: Any) -> None:
        """Add the pairs of one world; they replace pairs that the conversion made for the same geoms."""
        rows, worlds = writer.rows, np.array([writer.world])
        table = rows_of_worlds(rows, "pair", worlds)
        known = {frozenset((pair.geomname1, pair.geomname2)): pair for pair in writer.spec.pairs}
        for row, names in zip(table[0], _geoms(writer, table), strict=True):
            label = label_of(rows, "pair_label", int(row), f"pair_{row}")
            if None in names:
                raise ValueError(
                    f"SolverMuJoCo: contact pair '{label}' (row {row}) names a shape that is no geom of "
                    f"world {writer.world}. Give it two shapes that are no sites, of that world or of all "
                    "worlds."
                )
            pair = known.get(frozenset(names))
            if pair is None:
                pair = writer.spec.add_pair(
                    name=writer.take_name("pair", label), geomname1=names[0], geomname2=names[1]
                )
            pair.condim = int(rows.custom_array("pair_condim")[row])
            for attribute, field in _FIELDS:
                value = rows.custom_array(attribute)[row]
                setattr(pair, field, value if np.ndim(value) else float(value))

    def put_fields(self, table: Any, rows: ModelRows, plan: Any) -> None:
        """Write the values of the pairs."""
        own, order = authored_pairs(rows, table.group)
        if not order:
            return
        for attribute, field in _FIELDS:
            edit = table.edit(f"pair_{field}")
            edit[:, order] = values_of(rows, attribute, own).reshape(edit[:, order].shape)


def authored_pairs(rows: ModelRows, group: Any) -> tuple[np.ndarray, list[int]]:
    """Return the rows of the pairs of a group, shape [row, pair], and MuJoCo's index of each."""
    own = rows_of_worlds(rows, "pair", group.worlds)
    if own.shape[1] == 0:
        return own, []
    code = {int(shape): geom for geom, shape in enumerate(group.geom_shape)}
    ends = [
        local_index(rows, "shape", group.worlds[:1], values_of(rows, name, own[:1]))[0]
        for name in ("pair_geom1", "pair_geom2")
    ]
    made = indices_of_pairs(group.model)
    return own, [made[frozenset((code[int(a)], code[int(b)]))] for a, b in zip(*ends, strict=True)]


def mix_condim(condim: np.ndarray, priority: np.ndarray, first: int, second: int) -> int:
    """Return the dimensions of a contact of two geoms, by MuJoCo's rule; arguments have shape [geom]."""
    if priority[first] != priority[second]:
        return int(condim[first if priority[first] > priority[second] else second])
    return int(max(condim[first], condim[second]))


def indices_of_pairs(model: Any) -> dict[frozenset[int], int]:
    """Return the index of the pair of two geoms in MuJoCo, which sorts pairs by their geoms."""
    ends = zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True)
    return {frozenset(pair): index for index, pair in enumerate(ends)}


def paired_shapes(rows: ModelRows) -> np.ndarray:
    """Return the flat shapes of all pairs; they must be geoms even if they collide with nothing else."""
    ends = [rows.custom_array(name) for name in ("pair_geom1", "pair_geom2")]
    shapes = np.concatenate([np.zeros(0, dtype=np.int64), *(end for end in ends if end is not None)])
    return np.unique(shapes[shapes >= 0])


def _geoms(writer: Any, table: np.ndarray) -> list[list[str | None]]:
    """Return the names of the two geoms of each pair of a world."""
    worlds = np.array([writer.world])
    ends = [
        local_index(writer.rows, "shape", worlds, values_of(writer.rows, name, table))[0]
        for name in ("pair_geom1", "pair_geom2")
    ]
    return [[writer.geom_name(int(shape)) for shape in pair] for pair in zip(*ends, strict=True)]
