"""Shape properties: materials of the shapes of an asset or an actor."""

from typing import Any

import numpy as np

from pluriverse.gymapi.arguments import items
from pluriverse.gymapi.asset import Asset
from pluriverse.gymapi.asset_files import CONTACT_STIFFNESS
from pluriverse.gymapi.errors import GymError, require
from pluriverse.gymapi.scene import Actor
from pluriverse.gymapi.store import asset_rows, read, write
from pluriverse.gymapi.structures import RigidShapeProperties

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
    offsets = actor_offsets(asset, actor)
    bits = np.zeros(asset.shape_count, dtype=np.int64) if actor is None else actor.filter_bits()
    thickness = None if actor is None else actor.shape_thickness
    result = []
    for shape in range(asset.shape_count):
        stiffness = float(rows["stiffness"][shape])
        result.append(
            RigidShapeProperties(
                **{name: float(rows[name][shape]) for name in _ROWS},
                compliance=0.0 if stiffness >= CONTACT_STIFFNESS else 1.0 / stiffness,
                thickness=float(asset.options.thickness if thickness is None else thickness[shape]),
                contact_offset=float(offsets[shape, 0]),
                rest_offset=float(offsets[shape, 1]),
                filter=int(bits[shape]),
            )
        )
    return result


def actor_offsets(asset: Asset, actor: Actor | None) -> np.ndarray:
    """Return contact and rest offsets of the shapes [m], shape [shape, 2]; NaN for those of the sim."""
    if actor is not None and actor.shape_offsets is not None:
        return actor.shape_offsets
    if actor is None:
        return np.column_stack([asset.contact_offset, asset.rest_offset])
    physx = actor.env.sim.params.physx
    return np.column_stack(
        [
            np.where(np.isnan(asset.contact_offset), physx.contact_offset, asset.contact_offset),
            np.where(np.isnan(asset.rest_offset), physx.rest_offset, asset.rest_offset),
        ]
    )


def write_asset_shape_properties(asset: Asset, properties: Any, call: str) -> None:
    """Set the materials of the shapes of an asset."""
    columns = _columns(asset, properties, call, str(asset))
    for name, row in _ROWS.items():
        getattr(asset.builder, row)[:] = columns[name]
    asset.builder.shape_material_ke = _stiffness(columns["compliance"])
    asset.contact_offset, asset.rest_offset = columns["contact_offset"], columns["rest_offset"]
    asset.row_cache.clear()


def write_shape_properties(actor: Actor, properties: Any, call: str) -> None:
    """Set the materials of the shapes of an actor."""
    columns = _columns(actor.asset, properties, call, str(actor))
    bits = columns["filter"].astype(np.int64)
    if not np.array_equal(bits, actor.filter_bits()):
        if actor.env.sim.is_prepared:
            raise GymError(
                f"{call}: filter of the shapes of {actor} changes from {actor.filter_bits().tolist()} to "
                f"{bits.tolist()}, but which shapes may collide is fixed once the sim is "
                f"prepared. Set filters "
                "before prepare_sim() and the first simulate()."
            )
        actor.shape_filter = bits
    for name, row in _ROWS.items():
        write(actor, row, columns[name])
    write(actor, "shape_material_ke", _stiffness(columns["compliance"]))
    offsets = np.column_stack([columns["contact_offset"], columns["rest_offset"]])
    if not np.array_equal(offsets, actor_offsets(actor.asset, actor)):
        actor.shape_offsets = offsets
        write(actor, "shape_margin", offsets[:, 1])
        write(actor, "shape_gap", np.maximum(offsets[:, 0] - offsets[:, 1], 0.0))
    actor.shape_thickness = columns["thickness"]


def _stiffness(compliance: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.minimum(1.0 / compliance, CONTACT_STIFFNESS)


def _columns(asset: Asset, properties: Any, call: str, whose: str) -> dict[str, np.ndarray]:
    """Return the fields of properties as arrays, checked."""
    parts = items(properties, "properties", call)
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
