"""Mesh assets: the meshes that the geoms of a group may have, and which one each has in each world.

MuJoCo compiles meshes in, size included, but which of them a geom has is a number that may differ between
worlds (`geom_dataid`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pluriverse.model import poses
from pluriverse.solvers.mujoco.mapping.frames import as_wxyz, as_xyzw
from pluriverse.solvers.mujoco.mapping.geoms import MESH, ShapePlan, flat_shapes, mesh_name
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.types import GeoType


@dataclass(frozen=True)
class MeshAsset:
    """A mesh of MuJoCo."""

    kind: int
    """`GeoType` of its shapes."""
    source: int
    """Index into `Model.meshes`, -1 for cones."""
    scale: tuple[float, float, float]
    """Size that it is compiled in."""
    shape: int = field(compare=False)
    """A flat shape that has or may have it, for messages."""
    geom: int = -1
    """Geom that has it alone, for its size changes on the device; -1 for all geoms of this size."""

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells meshes of a group apart: the size only where it does not change."""
        return (self.kind, self.source, self.geom, self.scale if self.geom < 0 else None)

    @property
    def name(self) -> str:
        """Name in MuJoCo's model."""
        name = mesh_name(self.kind, self.source, self.scale)
        return name if self.geom < 0 else f"{name}_geom_{self.geom}"


def find_assets(
    rows: ModelRows, shapes: ShapePlan, worlds: np.ndarray, sized: np.ndarray | None = None
) -> tuple[list[MeshAsset], np.ndarray]:
    """Return the meshes of the geoms of worlds of one structure, and the number of each.

    Args:
        rows: Arrays of the model.
        shapes: The geoms.
        worlds: Worlds of one structure.
        sized: Whether the size of each geom changes on the device, shape [geom]; None for none.

    Returns:
        The meshes, those of the first world in front, and the place of that of each geom among them, shape
        [row, geom]; -1 for geoms without a mesh.
    """
    flat = flat_shapes(rows, shapes, worlds)
    number = np.full(flat.shape, -1, dtype=np.int64)
    entries = np.flatnonzero(shapes.kind == MESH)
    if not len(entries):
        return [], number
    chosen = flat[:, entries]
    kind = rows.array("shape_type")[chosen]
    source = np.where(kind == GeoType.CONE, -1, rows.array("shape_source_index")[chosen])
    scale = rows.array("shape_scale")[chosen]
    alone = np.full(len(shapes), -1) if sized is None else np.where(sized, np.arange(len(shapes)), -1)
    owner = np.broadcast_to(alone[entries], kind.shape)
    told = np.where(owner[..., None] < 0, scale, 0.0)
    keys = np.concatenate([kind[..., None], source[..., None], told, owner[..., None]], axis=-1)
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
            int(chosen.reshape(-1)[index]),
            int(keys[index, 5]),
        )
        for index in first[order].tolist()
    ]
    number[:, entries] = rank[inverse.reshape(-1)].reshape(chosen.shape)
    # A slot for a mesh that no variant fills yet has none.
    is_mesh = np.array([asset.source >= 0 or asset.kind == GeoType.CONE for asset in found], dtype=bool)
    places = np.append(np.where(is_mesh, np.cumsum(is_mesh) - 1, -1), -1)
    return [asset for asset, keep in zip(found, is_mesh, strict=True) if keep], places[number]


def place_meshes(
    model: Any, assets: Sequence[MeshAsset], number: np.ndarray, pos: np.ndarray, quat: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the poses of geoms in MuJoCo, and their meshes.

    MuJoCo moves the frame of a mesh to its centre, along its principal axes.

    Args:
        model: Compiled model.
        assets: Its meshes.
        number: Which of them each geom has, -1 for none, shape [row, geom].
        pos: Positions of the shapes in their bodies [m], shape [row, geom, 3].
        quat: Rotations (wxyz), shape [row, geom, 4].

    Returns:
        Positions, rotations, and `geom_dataid`.

    Raises:
        KeyError: If a mesh was not compiled in.
    """
    pos, quat = pos.copy(), quat.copy()
    dataid = np.broadcast_to(model.geom_dataid, number.shape).copy()
    ids = np.array([model.mesh(asset.name).id for asset in assets], dtype=np.int64)
    rows, geoms = np.nonzero(number >= 0)
    if len(rows):
        mesh = ids[number[rows, geoms]]
        own = np.concatenate([model.mesh_pos[mesh], as_xyzw(model.mesh_quat[mesh])], axis=-1)
        pose = np.concatenate([pos[rows, geoms], as_xyzw(quat[rows, geoms])], axis=-1)
        pose = poses.compose(pose, own)
        pos[rows, geoms], quat[rows, geoms] = pose[:, :3], as_wxyz(pose[:, 3:])
        dataid[rows, geoms] = mesh
    return pos, quat, dataid


def mesh_box(model: Any, mesh: int) -> tuple[np.ndarray, np.ndarray]:
    """Return centre and half extents [m] of the box about a mesh, in the frame that MuJoCo gave it."""
    first = int(model.mesh_vertadr[mesh])
    vertices = model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])].astype(np.float64)
    lower, upper = vertices.min(axis=0), vertices.max(axis=0)
    return 0.5 * (lower + upper), 0.5 * (upper - lower)


def mesh_bounds(model: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `geom_size`, `geom_aabb` and `geom_rbound` of a geom with each mesh, as MuJoCo compiles them."""
    boxes = [mesh_box(model, mesh) for mesh in range(model.nmesh)]
    centre = np.array([box[0] for box in boxes]).reshape(-1, 3)
    half = np.array([box[1] for box in boxes]).reshape(-1, 3)
    size = np.abs(centre) + half
    return size, np.concatenate([centre, half], axis=1), np.linalg.norm(size, axis=1)
