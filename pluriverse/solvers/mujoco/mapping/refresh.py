"""Refresh: update the groups of a model after its arrays were written to."""

from collections.abc import Mapping, Sequence

import numpy as np

from pluriverse.model import Model
from pluriverse.solvers.mujoco.mapping.conversion import compile_group, find_general_bodies
from pluriverse.solvers.mujoco.mapping.fields import SPECIAL_FRAME, FieldTable
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.group_fields import write_fields
from pluriverse.solvers.mujoco.mapping.group_kernels import update_table
from pluriverse.solvers.mujoco.mapping.group_plan import GroupPlan
from pluriverse.solvers.mujoco.mapping.grouping import compiled_numbers
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.options import MujocoOptions
from pluriverse.types import ModelFlags

_FRAMES = (
    ModelFlags.JOINT_PROPERTIES
    | ModelFlags.BODY_PROPERTIES
    | ModelFlags.BODY_INERTIAL_PROPERTIES
    | ModelFlags.JOINT_REFERENCE_POSE_PROPERTIES
)
"""Arrays that inertial frames and joint frames depend on."""


def refresh_groups(
    model: Model, options: MujocoOptions, groups: Sequence[MujocoGroup], flags: ModelFlags
) -> list[set[str]]:
    """Write the changes of a model into its groups.

    The values that the flags name are recomputed and compared with those of the groups.

    Returns:
        Per group, the names of the fields that changed.

    Raises:
        ValueError: If a compiled-in value changed.
    """
    if not flags:
        return [set() for _ in groups]
    rows = ModelRows(model)
    for group in groups:
        _check_structure(rows, group)
    return [_refresh_group(rows, options, group, flags) for group in groups]


def _refresh_group(
    rows: ModelRows, options: MujocoOptions, group: MujocoGroup, flags: ModelFlags
) -> set[str]:
    plan: GroupPlan = group.plan
    simple = frozenset(np.flatnonzero(group.model.body_simple > 0).tolist())
    if simple and flags & _FRAMES:
        table = FieldTable(group)
        update_table(group.kernels, rows, table, ["inertia", "frames"])
        fields = {name: table.edit(name) for name in SPECIAL_FRAME}
        general = find_general_bodies(plan, fields) | _moved_bodies(group, fields)
        if general & simple:
            # The compiled model uses shortcuts that no longer hold for these bodies.
            fresh = compile_group(rows, options, plan, group.general_bodies | general)
            return replace_model(group, fresh)
    return write_fields(group, rows, options, flags)


def _moved_bodies(group: MujocoGroup, fields: Mapping[str, np.ndarray]) -> frozenset[int]:
    """Return the bodies of MuJoCo whose inertial frame or joint frames have changed."""
    moved = np.zeros(group.model.nbody, dtype=bool)
    for name, values in fields.items():
        differs = (values != group.value(name)).any(axis=(0, 2))
        moved[np.flatnonzero(differs) if name.startswith("body") else group.model.jnt_bodyid[differs]] = True
    return frozenset(np.flatnonzero(moved).tolist())


def replace_model(group: MujocoGroup, fresh: MujocoGroup) -> set[str]:
    """Adopt the recompiled model of a group, keeping the memory of existing fields."""
    group.spec, group.model = fresh.spec, fresh.model
    group.general_bodies = fresh.general_bodies
    for name, rows in group.fields.items():
        rows[...] = fresh.value(name)
    for name, rows in fresh.fields.items():
        group.fields.setdefault(name, rows)
    for name in (
        "joint_rotation",
        "mocap_pose",
        "geom_force_space",
        "geom_ke",
        "geom_kd",
        "kernels",
        "start_act",
    ):
        setattr(group, name, getattr(fresh, name))
    group.revision += 1
    return set(group.fields) | {"model"}


def _check_structure(rows: ModelRows, group: MujocoGroup) -> None:
    """Raise if a compiled-in value was changed.

    Raises:
        ValueError: If so.
    """
    now = compiled_numbers(rows, group.worlds)
    if group.compiled is None or np.array_equal(now, np.broadcast_to(group.compiled, now.shape)):
        return
    row = int(np.argmax((now != group.compiled).any(axis=1)))
    world = int(group.worlds[row])
    raise ValueError(
        f"SolverMuJoCo.notify_model_changed: world {world} ('{rows.model.world_label[world]}') has other "
        "drive modes, bodies without mass, or sizes of meshes, cones or finite planes than "
        "when the solver was made, and MuJoCo has these compiled in. Undo the change, or make a new "
        "SolverMuJoCo."
    )
