"""Actuators of the `mjc:` schema of USD (`MjcActuator`) as rows of the namespace `mujoco`.

They act on a joint, a tendon, a body or a site, which `mjc:target` names; their controls are
`control.mujoco.ctrl`. Values are used unchanged.
"""

import warnings
from typing import Any

import numpy as np

from pluriverse.mujoco_attributes.choices import TrnType, as_number
from pluriverse.mujoco_attributes.usd_prims import LIMITED, articulation_of, authored, targets_of
from pluriverse.warnings import AssetWarning

_RANGES = (
    ("ctrl", "ctrlRange", "ctrlLimited"),
    ("force", "forceRange", "forceLimited"),
    ("act", "actRange", "actLimited"),
)
_ARRAYS = (
    ("gear", "gear", 6),
    ("dynprm", "dynPrm", 10),
    ("gainprm", "gainPrm", 10),
    ("biasprm", "biasPrm", 10),
)
_TYPES = (("dyntype", "dynType"), ("gaintype", "gainType"), ("biastype", "biasType"))


def is_actuator(prim: Any, context: dict[str, Any]) -> bool:
    """Return whether a prim is an actuator."""
    return str(prim.GetTypeName()) == "MjcActuator"


def actuator_rows(prim: Any, context: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the row of an actuator; none, with a warning, if its target was not imported."""
    target = _target(prim, context)
    if target is None:
        warnings.warn(
            f"prim '{prim.GetPath()}': mjc:target is {targets_of(prim, 'mjc:target')}, which is no joint, "
            "tendon, body or site that was imported, so the actuator is left out.",
            AssetWarning,
            stacklevel=6,
        )
        return []
    row: dict[str, Any] = {
        "actuator_label": str(prim.GetName()),
        "actuator_target_label": targets_of(prim, "mjc:target")[0],
        "actuator_trntype": target[0],
        "actuator_trnid": target[1:],
        "actuator_articulation": _articulation(context["builder"], *target[:2]),
    }
    for name, attribute, size in _ARRAYS:
        value = authored(prim, f"mjc:{attribute}")
        if value is not None:
            entries = np.array(context["builder"].custom_attributes[f"mujoco:actuator_{name}"].column.default)
            entries[: min(len(value), size)] = np.array(value)[:size]
            row[f"actuator_{name}"] = entries
    for name, attribute in _TYPES:
        value = authored(prim, f"mjc:{attribute}")
        if value is not None:
            row[f"actuator_{name}"] = as_number(f"actuator_{name}", value)
    for name, bounds, flag in (*_RANGES, ("length", "lengthRange", "")):
        ends = [authored(prim, f"mjc:{bounds}:{end}") for end in ("min", "max")]
        if any(end is not None for end in ends):
            row[f"actuator_{name}range"] = [0.0 if end is None else float(end) for end in ends]
            if flag:
                row[f"actuator_has_{name}range"] = 1
        limited = authored(prim, f"mjc:{flag}") if flag else None
        if limited is not None:
            row[f"actuator_{name}limited"] = LIMITED[str(limited).lower()]
    for name, attribute, kind in (
        ("cranklength", "crankLength", float),
        ("armature", "armature", float),
        ("damping", "damping", float),
        ("actdim", "actDim", int),
        ("actearly", "actEarly", bool),
    ):
        value = authored(prim, f"mjc:{attribute}")
        if value is not None:
            row[f"actuator_{name}"] = kind(value)
    return [{f"mujoco:{name}": value for name, value in row.items()}]


def _target(prim: Any, context: dict[str, Any]) -> tuple[TrnType, int, int] | None:
    """Return kind and index of what an actuator acts on, and of a second site (-1 for none)."""
    targets = targets_of(prim, "mjc:target")
    if len(targets) != 1:
        return None
    path = targets[0]
    if path in context["path_dof_map"]:
        in_parent = bool(authored(prim, "mjc:jointInParent"))
        kind = TrnType.JOINT_IN_PARENT if in_parent else TrnType.JOINT
        return kind, context["path_dof_map"][path], -1
    if path in context["path_row_map"].get("mujoco:tendon", {}):
        return TrnType.TENDON, context["path_row_map"]["mujoco:tendon"][path], -1
    if path in context["path_shape_map"]:
        for relation, kind in (("mjc:sliderSite", TrnType.SLIDERCRANK), ("mjc:refSite", TrnType.SITE)):
            others = targets_of(prim, relation)
            if others:
                other = context["path_shape_map"].get(others[0])
                return None if other is None else (kind, context["path_shape_map"][path], other)
        return TrnType.SITE, context["path_shape_map"][path], -1
    if path in context["path_body_map"]:
        return TrnType.BODY, context["path_body_map"][path], -1
    return None


def _articulation(builder: Any, kind: TrnType, index: int) -> int:
    """Return the articulation that a target belongs to, -1 for none."""
    if kind in (TrnType.JOINT, TrnType.JOINT_IN_PARENT):
        joint = int(np.searchsorted(builder.joint_qd_start, index, side="right")) - 1
        return int(builder.joint_articulation[joint])
    if kind is TrnType.TENDON:
        return int(builder.custom_attributes["mujoco:tendon_articulation"].values[index])
    return articulation_of(builder, index if kind is TrnType.BODY else int(builder.shape_body[index]))
