"""Mesh assets: the meshes that the geoms of a group may have, and the one of each geom in each world.

MuJoCo compiles meshes in, size included, but which of them a geom has is a number that may differ between
worlds (`geom_dataid`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pluriverse.model.entity_names import entity_name
from pluriverse.solvers.mujoco.mapping.geoms import MESH, ShapePlan, flat_shapes, mesh_name
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.types import Entity, GeoType


@dataclass(frozen=True)
class MeshAsset:
    """A mesh of MuJoCo."""

    kind: int
    """`GeoType` of its shapes."""
    source: int
    """Index into `Model.meshes`, -1 for cones."""
    scale: tuple[float, float, float]
    """Size at which it is compiled."""
    shape: int = field(compare=False)
    """A flat shape that has or may be given it, for messages."""
    geom: int = -1
    """The only geom that uses it, since its size changes on the device; -1 for all geoms of this size."""

    @property
    def key(self) -> tuple[Any, ...]:
        """Key of the mesh in its group, without the size if that may change."""
        return (self.kind, self.source, self.geom, self.scale if self.geom < 0 else None)

    @property
    def name(self) -> str:
        """Name in MuJoCo's model."""
        name = mesh_name(self.kind, self.source, self.scale)
        return name if self.geom < 0 else f"{name}_geom_{self.geom}"


def find_assets(
    rows: ModelRows, shapes: ShapePlan, worlds: np.ndarray, sized: np.ndarray | None = None
) -> tuple[list[MeshAsset], np.ndarray]:
    """Return the meshes of the geoms of worlds of one structure, and the index of each geom's mesh.

    Args:
        rows: Arrays of the model.
        shapes: The geoms.
        worlds: Worlds of one structure.
        sized: Whether the size of each geom changes on the device, shape [geom]; None for none.

    Returns:
        The meshes, those of the first world first, and the index of each geom's mesh among them, shape [row,
        geom]; -1 for geoms without a mesh.
    """
    flat = flat_shapes(rows, shapes, worlds)
    number = np.full(flat.shape, -1, dtype=np.int64)
    entries = np.flatnonzero(shapes.kind == MESH)
    if not len(entries):
        return [], number
    indices = flat[:, entries]
    kind = rows.array("shape_type")[indices]
    source = np.where(kind == GeoType.CONE, -1, rows.array("shape_source_index")[indices])
    scale = rows.array("shape_scale")[indices]
    alone = np.full(len(shapes), -1) if sized is None else np.where(sized, np.arange(len(shapes)), -1)
    owner = np.broadcast_to(alone[entries], kind.shape)
    size = np.where(owner[..., None] < 0, scale, 0.0)
    keys = np.concatenate([kind[..., None], source[..., None], size, owner[..., None]], axis=-1)
    keys = keys.reshape(-1, 6)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    found = [
        MeshAsset(
            int(keys[index, 0]),
            int(keys[index, 1]),
            tuple(scale.reshape(-1, 3)[index].tolist()),
            int(indices.reshape(-1)[index]),
            int(keys[index, 5]),
        )
        for index in first[order].tolist()
    ]
    number[:, entries] = rank[inverse.reshape(-1)].reshape(indices.shape)
    # A mesh slot that no variant fills yet has no mesh.
    is_mesh = np.array([asset.source >= 0 or asset.kind == GeoType.CONE for asset in found], dtype=bool)
    places = np.append(np.where(is_mesh, np.cumsum(is_mesh) - 1, -1), -1)
    return [asset for asset, keep in zip(found, is_mesh, strict=True) if keep], places[number]


def check_assets(
    rows: ModelRows, shapes: ShapePlan, worlds: np.ndarray, sized: np.ndarray, assets: Sequence[MeshAsset]
) -> None:
    """Raise if a geom has a mesh that is not compiled in.

    Raises:
        ValueError: If so; the message names the shape.
    """
    known = {asset.key for asset in assets}
    for asset in find_assets(rows, shapes, worlds, sized)[0]:
        if asset.key not in known:
            name = entity_name(rows.model, Entity.SHAPE, asset.shape)
            raise ValueError(
                f"SolverMuJoCo.notify_model_changed: {name} has another "
                f"mesh or size ({asset.name}) than when the solver was made, and MuJoCo has these "
                "compiled in. Undo the change, or make a new SolverMuJoCo."
            )


def mesh_box(model: Any, mesh: int) -> tuple[np.ndarray, np.ndarray]:
    """Return centre and half extents [m] of the box around a mesh, in the frame that MuJoCo gave it."""
    first = int(model.mesh_vertadr[mesh])
    vertices = model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])].astype(np.float64)
    lower, upper = vertices.min(axis=0), vertices.max(axis=0)
    return 0.5 * (lower + upper), 0.5 * (upper - lower)
