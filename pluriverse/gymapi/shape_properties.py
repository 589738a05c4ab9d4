"""Shape properties: materials of the shapes of an asset or an actor."""

import warnings
from typing import Any

import numpy as np

from pluriverse.gymapi.arguments import as_list
from pluriverse.gymapi.asset import Asset
from pluriverse.gymapi.asset_files import CONTACT_STIFFNESS
from pluriverse.gymapi.errors import GymError, GymWarning, require
from pluriverse.gymapi.scene import Actor
from pluriverse.gymapi.store import asset_rows, read, write
from pluriverse.gymapi.structures import PhysXParams, RigidShapeProperties

_ROWS = {
    "friction": "shape_material_mu",
    "rolling_friction": "shape_material_mu_rolling",
    "torsion_friction": "shape_material_mu_torsional",
    "restitution": "shape_material_restitution",
}


def read_shape_properties(asset: Asset, actor: Actor | None) -> list[RigidShapeProperties]:
    """Return the materials of the shapes of an actor, or of its asset."""
    rows = {
        name: asset_rows(asset, row) if actor is None else read(actor, row)
        for name, row in (*_ROWS.items(), ("stiffness", "shape_material_ke"))
    }
    offsets = shape_offsets(asset, actor)
    bits = asset.filter_bits if actor is None else actor.filter_bits()
    thickness = asset.thickness if actor is None else actor.shape_thickness
    result = []
    for shape in range(asset.shape_count):
        stiffness = float(rows["stiffness"][shape])
        result.append(
            RigidShapeProperties(
                **{name: float(rows[name][shape]) for name in _ROWS},
                compliance=0.0 if stiffness >= CONTACT_STIFFNESS else 1.0 / stiffness,
                thickness=float(thickness[shape]),
                contact_offset=float(offsets[shape, 0]),
                rest_offset=float(offsets[shape, 1]),
                filter=int(bits[shape]),
            )
        )
    return result


def shape_offsets(asset: Asset, actor: Actor | None) -> np.ndarray:
    """Return contact and rest offsets of the shapes of an actor, or of new ones [m], shape [shape, 2]."""
    return resolved_offsets(asset.offsets if actor is None else actor.shape_offsets, asset.sim.params.physx)


def resolved_offsets(given: np.ndarray, physx: PhysXParams) -> np.ndarray:
    """Return offsets of shapes [m], shape [shape, 2], with those of the sim where NaN is given."""
    return np.where(np.isnan(given), (physx.contact_offset, physx.rest_offset), given)


def write_asset_shape_properties(asset: Asset, properties: Any, call: str) -> None:
    """Set the materials of the shapes of actors that are created from now on."""
    columns = _columns(asset, properties, call, str(asset))
    asset.override_rows({row: columns[name] for name, row in _ROWS.items()})
    asset.override_rows({"shape_material_ke": _stiffness(columns["compliance"])})
    asset.offsets = _given_offsets(asset.offsets, shape_offsets(asset, None), columns)
    if asset.actor_count == 0:
        asset.first_offsets = asset.offsets
    asset.filter_bits = columns["filter"].astype(np.int64)
    asset.thickness = columns["thickness"]


def offset_rows(offsets: np.ndarray) -> dict[str, np.ndarray]:
    """Return the rows of the model that follow from offsets of shapes."""
    return {
        "shape_margin": offsets[:, 1],
        "shape_gap": np.maximum(offsets[:, 0] - offsets[:, 1], 0.0),
    }


def write_shape_properties(actor: Actor, properties: Any, call: str) -> None:
    """Set the materials of the shapes of an actor."""
    columns = _columns(actor.asset, properties, call, str(actor))
    bits = columns["filter"].astype(np.int64)
    if not np.array_equal(bits, actor.filter_bits()):
        if actor.env.sim.is_prepared:
            raise GymError(
                f"{call}: filter of the shapes of {actor} changes from {actor.filter_bits().tolist()} to "
                f"{bits.tolist()}, but which shapes may collide is fixed once the sim is prepared. Set "
                "filters before prepare_sim() and the first simulate()."
            )
        actor.shape_filter = bits
    for name, row in _ROWS.items():
        write(actor, row, columns[name])
    write(actor, "shape_material_ke", _stiffness(columns["compliance"]))
    before = shape_offsets(actor.asset, actor)
    actor.shape_offsets = _given_offsets(actor.shape_offsets, before, columns)
    after = shape_offsets(actor.asset, actor)
    if actor.env.sim.is_prepared and not np.array_equal(before, after):
        for row, values in offset_rows(after).items():
            write(actor, row, values)
    actor.shape_thickness = columns["thickness"]


def _given_offsets(given: np.ndarray, present: np.ndarray, columns: dict[str, np.ndarray]) -> np.ndarray:
    """Return offsets to set: values that are as they were read stay, also where they are those of the sim."""
    requested = np.column_stack([columns["contact_offset"], columns["rest_offset"]])
    return np.where(np.isnan(requested) | (requested == present), given, requested)


def _stiffness(compliance: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.minimum(1.0 / compliance, CONTACT_STIFFNESS)


def _columns(asset: Asset, properties: Any, call: str, whose: str) -> dict[str, np.ndarray]:
    """Return the fields of properties as arrays, checked."""
    parts = as_list(properties, "properties", call)
    require(
        len(parts) == asset.shape_count,
        call,
        f"{len(parts)} properties were given, but {whose} has {asset.shape_count} shapes; pass one for each.",
    )
    for shape, part in enumerate(parts):
        if not isinstance(part, RigidShapeProperties):
            raise TypeError(f"{call}: entry {shape} is {part!r}, but must be a gymapi.RigidShapeProperties.")
    columns = {}
    for name in RigidShapeProperties.__dataclass_fields__:
        columns[name] = np.array([getattr(part, name) for part in parts], dtype=np.float64)
        if name == "friction":
            columns[name] = _without_negative_friction(columns[name], call, whose)
        low = -np.inf if name == "filter" else 0.0
        offset = name in ("contact_offset", "rest_offset")  # NaN: that of the sim
        sound = (columns[name] >= low) | (np.isnan(columns[name]) & offset)
        if not sound.all():
            shape = int(np.argmin(sound))
            raise ValueError(
                f"{call}: {name} of shape {shape} of {whose} is {columns[name][shape]}, but must be >= 0."
            )
    if (columns["restitution"] > 1.0).any():
        shape = int(np.argmax(columns["restitution"]))
        raise ValueError(
            f"{call}: restitution of shape {shape} of {whose} is {columns['restitution'][shape]}, but must "
            "be in 0 to 1: no bounce gives more speed than there was."
        )
    return columns


def _without_negative_friction(friction: np.ndarray, call: str, whose: str) -> np.ndarray:
    """Return the coefficients with 0 in place of negative ones, which some scripts draw, with a warning."""
    if (friction < 0.0).any():
        shape = int(np.argmax(friction < 0.0))
        warnings.warn(
            f"{call}: friction of shape {shape} of {whose} is {friction[shape]}; coefficients below 0 count "
            "as 0. Draw them from a range that begins at 0.",
            GymWarning,
            stacklevel=5,
        )
    return np.where(friction < 0.0, 0.0, friction)
