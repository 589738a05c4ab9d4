"""Grouping: which worlds can share one MuJoCo model.

They have the same template, and agree in everything that MuJoCo compiles in: drive modes, massless bodies,
the sizes of height fields, integer options. Everything else may differ.
"""

import numpy as np

from pluriverse.model.templates import find_equal_worlds
from pluriverse.solvers.mujoco.attributes.extensions import EXTENSIONS
from pluriverse.solvers.mujoco.mapping.group_plan import weightless_bodies
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.options import MujocoOptions
from pluriverse.types import GeoType, ShapeFlags

_FIXED_SIZE = (GeoType.HFIELD,)
"""Shapes whose geometry is compiled in, including its size."""


def find_groups(rows: ModelRows, options: MujocoOptions) -> list[np.ndarray]:
    """Return the worlds of each group, ascending; groups in the order of their first worlds."""
    shared = np.stack(list(options.shared(rows).values()), axis=1)
    kinds = np.zeros(rows.model.world_count, dtype=np.int64)
    count = 0
    for index in range(len(rows.model.templates)):
        worlds = np.flatnonzero(rows.model.world_template == index)
        table = np.concatenate([compiled_numbers(rows, worlds), as_integers(shared[worlds])], axis=1)
        starts = np.arange(len(worlds) + 1)
        kinds[worlds] = count + find_equal_worlds([(table, starts)])
        count = int(kinds[worlds].max(initial=count)) + 1
    groups = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)]
    return sorted(groups, key=lambda worlds: int(worlds[0]))


def compiled_numbers(rows: ModelRows, worlds: np.ndarray) -> np.ndarray:
    """Return the compiled-in values of worlds of one template, shape [row, column]."""
    kind = rows.gather("shape_type", "shape", worlds)
    scale = rows.gather("shape_scale", "shape", worlds)
    fixed = np.isin(kind, _FIXED_SIZE)[..., None] & np.ones(3, dtype=bool)
    slab = (kind == GeoType.PLANE) & (scale[..., :2] > 0.0).all(axis=-1)
    visible = rows.gather("shape_flags", "shape", worlds) & int(ShapeFlags.COLLIDE_SHAPES | ShapeFlags.SITE)
    columns = [
        rows.gather("joint_target_mode", "dof", worlds),
        weightless_bodies(rows, worlds).astype(np.int64),
        slab.astype(np.int64),
        visible,
        as_integers(np.where(fixed, scale, 0.0)).reshape(len(worlds), -1),
    ]
    for name in ("condim", "geom_priority", "geom_group"):
        values = rows.custom(name, "shape", worlds)
        if values is not None:
            columns.append(values.reshape(len(worlds), -1).astype(np.int64))
    columns += [extension.compiled_numbers(rows, worlds) for extension in EXTENSIONS]
    values = rows.custom("sleep_policy", "body", worlds)
    if values is not None:
        columns.append(values)
    for name in ("jnt_actgravcomp", "jnt_actfrclimited"):
        values = rows.custom(name, "dof", worlds)
        if values is not None:
            columns.append(values.reshape(len(worlds), -1).astype(np.int64))
    return np.concatenate([column.reshape(len(worlds), -1) for column in columns], axis=1)


def as_integers(values: np.ndarray) -> np.ndarray:
    """Return integers that are equal exactly if the numbers are, bit by bit."""
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
