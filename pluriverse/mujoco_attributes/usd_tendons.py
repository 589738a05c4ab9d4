"""Tendons of the `mjc:` schema of USD (`MjcTendon`) as rows of the namespace `mujoco`.

A fixed tendon (`mjc:type`) passes joints with a factor each (`mjc:path:coef`), a spatial one sites and geoms,
and pulleys where a new segment begins (`mjc:path:segments`, with a divisor for each). `mjc:path` names the
prims, `mjc:path:indices` gives their order if a prim repeats or the order differs. Values are used unchanged.
"""

import warnings
from typing import Any

import numpy as np

from pluriverse.mujoco_attributes.choices import FIXED, SPATIAL, WrapType
from pluriverse.mujoco_attributes.usd_prims import LIMITED, articulation_of, authored, targets_of
from pluriverse.types import GeoType, ShapeFlags
from pluriverse.warnings import AssetWarning

_ROUND = (GeoType.SPHERE, GeoType.CYLINDER)
"""Shapes that a tendon can go around."""
_NUMBERS = ("stiffness", "damping", "frictionloss", "margin", "armature")
_POLYNOMIALS = ("stiffness", "damping")
"""Attributes that may be followed by coefficients of the next two powers."""
_ARRAYS = (
    ("solref_limit", "solreflimit", 2),
    ("solimp_limit", "solimplimit", 5),
    ("solref_friction", "solreffriction", 2),
    ("solimp_friction", "solimpfriction", 5),
    ("springlength", "springlength", 2),
)
_RANGES = (
    ("tendon_range", "range", "tendon_limited", "limited"),
    (
        "tendon_actuator_force_range",
        "actuatorfrcrange",
        "tendon_actuator_force_limited",
        "actuatorfrclimited",
    ),
)


def is_tendon(prim: Any, context: dict[str, Any]) -> bool:
    """Return whether a prim is a tendon."""
    return str(prim.GetTypeName()) == "MjcTendon"


def tendon_rows(prim: Any, context: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a tendon and of its path; none, with a warning, if the path is invalid."""
    try:
        kind = _type(prim)
        passed = _joints(prim, context) if kind == FIXED else _wraps(prim, context)
        row = _numbers(prim)
    except ValueError as problem:
        warnings.warn(
            f"prim '{prim.GetPath()}': {problem}, so the tendon is left out.", AssetWarning, stacklevel=6
        )
        return []
    builder, part = context["builder"], "joint" if kind == FIXED else "wrap"
    owner = next((entry["owner"] for entry in passed if entry.get("owner", -1) >= 0), -1)
    rows = [
        {name: value for name, value in entry.items() if name != "owner"}
        | {f"tendon_{part}_articulation": owner}
        for entry in passed
    ]
    row |= {
        "tendon_label": str(prim.GetName()),
        "tendon_type": kind,
        "tendon_articulation": owner,
        f"tendon_{part}_adr": builder.custom_frequency_count(f"mujoco:tendon_{part}"),
        f"tendon_{part}_num": len(rows),
    }
    return [{f"mujoco:{name}": value for name, value in entry.items()} for entry in (*rows, row)]


def _type(prim: Any) -> int:
    value = authored(prim, "mjc:type")
    kinds = {"fixed": FIXED, "spatial": SPATIAL}
    if value is not None and str(value).lower() not in kinds:
        raise ValueError(f"mjc:type is '{value}', but must be 'fixed' or 'spatial'")
    return kinds["spatial" if value is None else str(value).lower()]


def _path(prim: Any) -> list[str]:
    """Return the prims on a tendon's path, in order."""
    targets = targets_of(prim, "mjc:path")
    indices = _list(prim, "mjc:path:indices") or list(range(len(targets)))
    if not indices:
        raise ValueError("mjc:path names nothing")
    wrong = [index for index in indices if not 0 <= index < len(targets)]
    if wrong:
        raise ValueError(f"mjc:path:indices has {wrong[0]}, but mjc:path names {len(targets)} prims")
    return [targets[index] for index in indices]


def _joints(prim: Any, context: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the joints of a fixed tendon."""
    path, builder = _path(prim), context["builder"]
    coefficients = _list(prim, "mjc:path:coef")
    if len(coefficients) != len(path):
        raise ValueError(f"mjc:path:coef has {len(coefficients)} numbers for {len(path)} joints")
    rows = []
    for name, coefficient in zip(path, coefficients, strict=True):
        joint, dof = context["path_joint_map"].get(name), context["path_dof_map"].get(name)
        if joint is None or dof is None:
            raise ValueError(
                f"mjc:path names '{name}', which is no joint with a coordinate that was imported"
            )
        if int(builder.joint_dof_dim[joint].sum()) != 1:
            raise ValueError(f"mjc:path names '{name}', which has other than one degree of freedom")
        owner = int(builder.joint_articulation[joint])
        rows.append(
            {
                "tendon_joint": joint,
                "tendon_joint_dof": dof,
                "tendon_coef": float(coefficient),
                "owner": owner,
            }
        )
    return rows


def _wraps(prim: Any, context: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the sites, geoms and pulleys of a spatial tendon."""
    path, builder = _path(prim), context["builder"]
    segments, divisors = _list(prim, "mjc:path:segments"), _list(prim, "mjc:path:divisors")
    sides, side_targets = _list(prim, "mjc:sideSites:indices"), targets_of(prim, "mjc:sideSites")
    for name, entries in (("mjc:path:segments", segments), ("mjc:sideSites:indices", sides)):
        if entries and len(entries) != len(path):
            raise ValueError(f"{name} has {len(entries)} entries for a path of {len(path)}")
    rows: list[dict[str, Any]] = []
    for index, name in enumerate(path):
        shape = context["path_shape_map"].get(name)
        if shape is None:
            raise ValueError(f"mjc:path names '{name}', which is no shape that was imported")
        if segments and segments[index] != (segments[index - 1] if index else 0):
            rows.append(
                {
                    "tendon_wrap_type": int(WrapType.PULLEY),
                    "tendon_wrap_prm": _divisor(segments, divisors, index),
                }
            )
        is_site = bool(int(builder.shape_flags[shape]) & ShapeFlags.SITE)
        if not is_site and int(builder.shape_type[shape]) not in _ROUND:
            raise ValueError(f"mjc:path names '{name}', which is neither a site nor a sphere or cylinder")
        side = -1
        if sides and sides[index] >= 0 and not is_site:
            side = _side_site(sides[index], side_targets, context)
        rows.append(
            {
                "tendon_wrap_type": int(WrapType.SITE if is_site else WrapType.GEOM),
                "tendon_wrap_shape": shape,
                "tendon_wrap_sidesite": side,
                "owner": articulation_of(builder, int(builder.shape_body[shape])),
            }
        )
    return rows


def _divisor(segments: list[Any], divisors: list[Any], index: int) -> float:
    segment = int(segments[index])
    if segment < (int(segments[index - 1]) if index else 0):
        raise ValueError(f"mjc:path:segments goes back to {segment}")
    if segment >= len(divisors) or not 0.0 < divisors[segment] < np.inf:
        raise ValueError(f"mjc:path:divisors has no number > 0 for segment {segment}")
    return float(divisors[segment])


def _side_site(index: int, targets: list[str], context: dict[str, Any]) -> int:
    if index >= len(targets):
        raise ValueError(f"mjc:sideSites:indices has {index}, but mjc:sideSites names {len(targets)} sites")
    shape = context["path_shape_map"].get(targets[index])
    if shape is None or not int(context["builder"].shape_flags[shape]) & ShapeFlags.SITE:
        raise ValueError(f"mjc:sideSites names '{targets[index]}', which is no site that was imported")
    return int(shape)


def _numbers(prim: Any) -> dict[str, Any]:
    """Return the properties of a tendon that are authored."""
    row: dict[str, Any] = {}
    for name in _NUMBERS:
        values = _list(prim, f"mjc:{name}")
        size = 3 if name in _POLYNOMIALS else 1
        if len(values) > size:
            raise ValueError(f"mjc:{name} has {len(values)} numbers, but may have {size}")
        if values:
            row[f"tendon_{name}"] = float(values[0])
        if len(values) > 1:
            row[f"tendon_{name}poly"] = [float(value) for value in (*values[1:], 0.0)][:2]
    for name, attribute, size in _ARRAYS:
        values = _list(prim, f"mjc:{attribute}")
        if not values:
            continue
        if attribute == "springlength" and len(values) == 1:
            values = [values[0], -1.0]
        if len(values) != size:
            raise ValueError(f"mjc:{attribute} has {len(values)} numbers, but must have {size}")
        row[f"tendon_{name}"] = [float(value) for value in values]
    for name, attribute, flag, limited in _RANGES:
        ends = [authored(prim, f"mjc:{attribute}:{end}") for end in ("min", "max")]
        if any(end is not None for end in ends):
            row[name] = [0.0 if end is None else float(end) for end in ends]
        choice = authored(prim, f"mjc:{limited}")
        if choice is not None:
            if str(choice).lower() not in LIMITED:
                raise ValueError(f"mjc:{limited} is '{choice}', but must be one of {', '.join(LIMITED)}")
            row[flag] = LIMITED[str(choice).lower()]
    return row


def _list(prim: Any, name: str) -> list[Any]:
    value = authored(prim, name)
    return [] if value is None else list(np.ravel(value).tolist())
