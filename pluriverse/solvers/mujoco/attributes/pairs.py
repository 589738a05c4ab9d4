"""Contact pairs with properties of their own, as custom attributes describe them."""

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
        """Add the pairs of one world; one that the conversion made for the same geoms gives way."""
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
        """Give the numbers of the pairs."""
        own = rows_of_worlds(rows, "pair", plan.worlds)
        if own.shape[1] == 0:
            return
        group = table.group
        code = {int(shape): geom for geom, shape in enumerate(group.geom_shape)}
        ends = [
            local_index(rows, "shape", plan.worlds[:1], values_of(rows, name, own[:1]))[0]
            for name in ("pair_geom1", "pair_geom2")
        ]
        made = places_of_pairs(group.model)
        order = [made[frozenset((code[int(a)], code[int(b)]))] for a, b in zip(*ends, strict=True)]
        for attribute, field in _FIELDS:
            edit = table.edit(f"pair_{field}")
            edit[:, order] = values_of(rows, attribute, own).reshape(edit[:, order].shape)


def mix_condim(material: Any, first: int, second: int) -> int:
    """Return the dimensions of a contact of two geoms, by MuJoCo's rule."""
    priority = int(material.priority[first]) - int(material.priority[second])
    if priority:
        return int(material.condim[first if priority > 0 else second])
    return max(int(material.condim[first]), int(material.condim[second]))


def mix_materials(material: Any, first: int, second: int) -> dict[str, np.ndarray]:
    """Return what MuJoCo would make of the properties of two geoms in contact, for an explicit pair.

    Args:
        material: `MaterialValues` of a group.
        first: The first geom.
        second: The second geom.

    Returns:
        Fields of the pair, shape [row, ...].
    """
    priority = int(material.priority[first]) - int(material.priority[second])
    if priority:
        chosen = first if priority > 0 else second
        friction, solref = material.friction[:, chosen], material.solref[:, chosen]
        solimp = material.solimp[:, chosen]
    else:
        friction = np.maximum(material.friction[:, first], material.friction[:, second])
        weights = np.stack([material.solmix[:, first], material.solmix[:, second]], axis=1)
        total = weights.sum(axis=1, keepdims=True)
        share = np.where(total > 0.0, weights / np.where(total > 0.0, total, 1.0), 0.5)[..., None]
        both = [
            np.stack([values[:, first], values[:, second]], axis=1)
            for values in (material.solimp, material.solref)
        ]
        solimp, mean = ((share * values).sum(axis=1) for values in both)
        is_time = np.all(both[1][:, :, 0] > 0.0, axis=1)
        solref = np.where(is_time[:, None], mean, both[1].min(axis=1))
    return {
        "friction": friction[:, [0, 0, 1, 2, 2]],
        "solref": solref,
        "solimp": solimp,
        "margin": material.margin[:, first] + material.margin[:, second],
        "gap": np.zeros(len(friction)),
    }


def places_of_pairs(model: Any) -> dict[frozenset[int], int]:
    """Return where the pair of two geoms is among those of MuJoCo, which sorts them by their geoms."""
    ends = zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True)
    return {frozenset(pair): place for place, pair in enumerate(ends)}


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
