"""Equality constraints as rows of `mujoco:equality_constraint`, as in Newton 1.8.

A row in that form becomes an equality constraint of the builder.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pluriverse.builder.custom_attributes import add_custom_rows
from pluriverse.builder.equality import (
    add_equality_constraint,
    add_equality_constraint_connect,
    add_equality_constraint_weld,
)
from pluriverse.builder.tables import BuilderTables
from pluriverse.types import EqType

PREFIX = "mujoco:equality_constraint_"
CONNECT, WELD, JOINT, TENDON = range(4)
"""Values of `mujoco:equality_constraint_type` (`mujoco.mjtEq`)."""

# Defaults of a row.
DEFAULTS: dict[str, Any] = {
    "type": CONNECT,
    "body1": -1,
    "body2": -1,
    "anchor": (0.0, 0.0, 0.0),
    "torquescale": 0.0,
    "relpose": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    "joint1": -1,
    "joint2": -1,
    "joint1_dof": -1,
    "joint2_dof": -1,
    "polycoef": (0.0,) * 5,
    "label": "",
    "enabled": True,
    "world": None,
    "tendon1": -1,
    "tendon2": -1,
    "objtype": -1,
}
_SOFTNESS = ("mujoco:eq_solref", "mujoco:eq_solimp")


def is_equality_row(values: Mapping[str, Any]) -> bool:
    """Return whether a row of custom values describes an equality constraint."""
    return any(key.startswith(PREFIX) for key in values)


def add_equality_row(builder: BuilderTables, values: Mapping[str, Any]) -> dict[str, int]:
    """Add the equality constraint that a row describes; return its index for every key.

    Raises:
        AttributeError: If a key does not belong to such a row.
        ValueError: If a value is out of range, or of another world.
    """
    row, softness = dict(DEFAULTS), {}
    for key, value in values.items():
        if key in _SOFTNESS:
            softness[key] = value
        elif key.startswith(PREFIX) and key.removeprefix(PREFIX) in DEFAULTS:
            if value is not None:
                row[key.removeprefix(PREFIX)] = value
        else:
            known = ", ".join(PREFIX + name for name in DEFAULTS)
            raise AttributeError(
                f"add_custom_values: {key!r} is no attribute of an equality constraint, which has {known}, "
                f"{', '.join(_SOFTNESS)}."
            )
    if row["world"] not in (None, builder.current_world):
        raise ValueError(
            f"add_custom_values: {PREFIX}world is {row['world']}, but the current world is "
            f"{builder.current_world}. Add the constraint between begin_world() and end_world() of its world."
        )
    common: dict[str, Any] = {"label": row["label"] or None, "enabled": bool(row["enabled"])}
    kind = int(row["type"])
    if kind == TENDON:
        return _add_tendon_row(builder, values, row, softness)
    common["custom_attributes"] = softness
    if kind == CONNECT:
        index = add_equality_constraint_connect(
            builder, int(row["body1"]), int(row["body2"]), row["anchor"], **common
        )
    elif kind == WELD:
        pose = np.array([float(part) for part in row["relpose"]])
        index = add_equality_constraint_weld(
            builder,
            int(row["body1"]),
            int(row["body2"]),
            row["anchor"],
            torquescale=float(row["torquescale"]),
            relpose=pose if pose[3:].any() else None,  # MuJoCo's way to say: as at the start
            **common,
        )
    elif kind == JOINT:
        index = add_equality_constraint(
            builder,
            EqType.JOINT,
            joint1=int(row["joint1"]),
            joint2=int(row["joint2"]),
            joint1_axis=_axis(builder, row, 1),
            joint2_axis=_axis(builder, row, 2),
            polycoef=row["polycoef"],
            **common,
        )
    else:
        raise ValueError(
            f"add_custom_values: {PREFIX}type is {row['type']!r}, but it must be 0 (connect), 1 (weld), "
            "2 (joint) or 3 (tendon)."
        )
    return dict.fromkeys(values, int(index))


def _axis(builder: BuilderTables, row: dict[str, Any], number: int) -> int | None:
    """Return which axis of its joint a degree of freedom is, None where it is not given."""
    dof, joint = int(row[f"joint{number}_dof"]), int(row[f"joint{number}"])
    return None if dof < 0 or joint < 0 else dof - int(builder.joint_qd_start[joint])


def _add_tendon_row(
    builder: BuilderTables, values: Mapping[str, Any], row: dict[str, Any], softness: dict[str, Any]
) -> dict[str, int]:
    added = add_custom_rows(
        builder,
        {
            "mujoco:tendon_equality_tendon1": int(row["tendon1"]),
            "mujoco:tendon_equality_tendon2": int(row["tendon2"]),
            "mujoco:tendon_equality_polycoef": row["polycoef"],
            "mujoco:tendon_equality_label": row["label"],
            "mujoco:tendon_equality_enabled": bool(row["enabled"]),
            **{key.replace("eq_", "tendon_equality_"): value for key, value in softness.items()},
        },
    )
    return dict.fromkeys(values, int(next(iter(added.values()))))
