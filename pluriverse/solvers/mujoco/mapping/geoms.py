"""Shapes as MuJoCo geoms and sites: their structure. `shape_kernels` computes their values."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pluriverse.geometry import Mesh
from pluriverse.mujoco_attributes.choices import DEFAULT_SOLIMP, SolrefMode
from pluriverse.solvers.mujoco.attributes.pairs import paired_shapes
from pluriverse.solvers.mujoco.attributes.tendons import wrapped_shapes
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.structure import StructurePlan
from pluriverse.types import GeoType, ShapeFlags

PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)
"""`mujoco.mjtGeom`."""

GEOM_OF_SHAPE = {
    GeoType.PLANE: PLANE,
    GeoType.HFIELD: HFIELD,
    GeoType.SPHERE: SPHERE,
    GeoType.CAPSULE: CAPSULE,
    GeoType.ELLIPSOID: ELLIPSOID,
    GeoType.CYLINDER: CYLINDER,
    GeoType.BOX: BOX,
    GeoType.MESH: MESH,
    GeoType.CONVEX_MESH: MESH,
    GeoType.CONE: MESH,
}
"""Type of geom of each shape. A finite plane becomes a box, a cone the hull of points on its surface."""

# Base vertices of the hull that represents a cone: the sagitta of an edge is 0.005 of the radius.
CONE_CORNER_COUNT = 32
# Spacing of the grid lines that MuJoCo draws on a plane [m].
PLANE_GRID = 1.0
# Size [m] of a site that is only a point.
POINT_SIZE = 0.005


@dataclass
class ShapePlan:
    """Geoms and sites of a group, each in the order of MuJoCo: body by body."""

    shape: np.ndarray
    """World-local shape where >= 0, else `-1 - flat index` of a global one, shape [entry]."""
    kind: np.ndarray
    """Type of the geom, shape [entry]."""
    body: np.ndarray
    """MuJoCo's body, shape [entry]."""
    is_slab: np.ndarray
    """Whether the entry is a finite plane, shape [entry]."""
    collides: np.ndarray
    """Whether the entry collides with others, shape [entry]."""
    mesh: list[str] = field(default_factory=list)
    """Name of the mesh or height field of each entry, empty for none."""

    def __len__(self) -> int:
        return len(self.shape)


def plan_shapes(
    rows: ModelRows,
    plan: StructurePlan,
    worlds: np.ndarray,
    *,
    skip_visual: bool,
    include_sites: bool,
) -> tuple[ShapePlan, ShapePlan]:
    """Return the geoms and the sites of worlds of one structure."""
    template = plan.template
    own = rows.indices("shape", worlds[:1])[0]
    flat = np.concatenate([rows.global_shapes, own]).astype(np.int64)
    code = np.concatenate([-1 - rows.global_shapes, np.arange(template.shape_count)]).astype(np.int64)
    carrier = rows.array("shape_body")[flat]
    local = np.where(carrier >= 0, carrier - rows.first["body"][worlds[0]], -1)
    body = np.append(plan.body_mj, 0)[local]  # the last entry is for the world
    kind = rows.array("shape_type")[flat]
    flags = rows.array("shape_flags")[flat]
    scale = rows.array("shape_scale")[flat]
    slab = (kind == GeoType.PLANE) & (scale[:, 0] > 0.0) & (scale[:, 1] > 0.0)
    is_site = (flags & ShapeFlags.SITE) != 0
    collides = ((flags & ShapeFlags.COLLIDE_SHAPES) != 0) & ~is_site & (kind != GeoType.NONE)
    geoms = collides if skip_visual else ~is_site & (kind != GeoType.NONE)
    named = np.concatenate([wrapped_shapes(rows), paired_shapes(rows)])  # by tendons and contact pairs
    geoms |= np.isin(flat, named) & ~is_site
    mujoco_kind = np.array([GEOM_OF_SHAPE.get(GeoType(int(value)), SPHERE) for value in kind], dtype=np.int64)
    mujoco_kind[slab] = BOX
    result = []
    for selected in (np.flatnonzero(geoms), np.flatnonzero(is_site & include_sites)):
        order = selected[np.argsort(body[selected], kind="stable")]
        result.append(ShapePlan(code[order], mujoco_kind[order], body[order], slab[order], collides[order]))
    geom_plan, site_plan = result
    # A site is a frame and stays in place: a site of a plane does not become a slab below it.
    site_plan.kind = np.where(site_plan.is_slab, PLANE, site_plan.kind)
    site_plan.is_slab = np.zeros_like(site_plan.is_slab)
    # Sites have no meshes: a shape that a site cannot have becomes a point.
    site_plan.kind = np.where(
        np.isin(site_plan.kind, [SPHERE, CAPSULE, CYLINDER, BOX, ELLIPSOID]), site_plan.kind, SPHERE
    )
    geom_plan.mesh = [
        _mesh_name(rows, int(index)) if kind in (MESH, HFIELD) else ""
        for index, kind in zip(flat_shapes(rows, geom_plan, worlds[:1])[0], geom_plan.kind, strict=True)
    ]
    site_plan.mesh = [""] * len(site_plan)
    return geom_plan, site_plan


def flat_shapes(rows: ModelRows, shapes: ShapePlan, worlds: np.ndarray) -> np.ndarray:
    """Return the flat shape of each entry, shape [row, entry]."""
    return np.where(shapes.shape >= 0, rows.first["shape"][worlds][:, None] + shapes.shape, -1 - shapes.shape)


def mesh_name(kind: int, source: int, scale: Sequence[float]) -> str:
    """Return the name of the mesh or height field of a shape with this type, source and size."""
    return f"{GeoType(kind).name.lower()}_{source}_" + "_".join(f"{value:.9g}" for value in scale)


def _mesh_name(rows: ModelRows, flat: int) -> str:
    kind = int(rows.array("shape_type")[flat])
    source = -1 if kind == GeoType.CONE else int(rows.array("shape_source_index")[flat])
    return mesh_name(kind, source, rows.array("shape_scale")[flat].tolist())


def geom_attributes(rows: ModelRows, shapes: ShapePlan, worlds: np.ndarray) -> dict[str, np.ndarray]:
    """Return the properties of geoms that only custom attributes set, with MuJoCo's defaults.

    Returns:
        `solimp` [row, geom, 5], `solmix` [row, geom], `force_space` (whether stiffness and damping are forces
        where they are given) and `is_authored` (whether `solref` is the authored one) [row, geom], `solref`
        [row, geom, 2]; `condim`, `priority`, `group` [geom].
    """
    flat = flat_shapes(rows, shapes, worlds)

    def custom(name: str, default: Any) -> np.ndarray:
        values = rows.custom_array(name)
        if values is None:
            return np.broadcast_to(np.array(default, dtype=np.float64), (*flat.shape, *np.shape(default)))
        return values.reshape(len(values), *np.shape(default))[flat]

    mode = custom("solref_mode", SolrefMode.MJCF_DEFAULT)
    return {
        "solimp": custom("geom_solimp", DEFAULT_SOLIMP),
        "solmix": custom("geom_solmix", 1.0),
        "force_space": mode == SolrefMode.FORCE_SPACE,
        "is_authored": mode == SolrefMode.RAW,
        "solref": custom("solref", (0.0, 0.0)),
        "condim": custom("condim", 3.0)[0].astype(np.int64),
        "priority": custom("geom_priority", 0.0)[0].astype(np.int64),
        "group": custom("geom_group", 0.0)[0].astype(np.int64),
    }


def hull_of_shape(rows: ModelRows, kind: int, source: int, scale: Sequence[float]) -> Mesh:
    """Return the convex mesh that a mesh or cone collides as, in the frame of the shape.

    Args:
        rows: Arrays of the model.
        kind: `GeoType` of the shape.
        source: Its mesh, an index into `Model.meshes`.
        scale: Its size.

    Raises:
        ValueError: If a mesh is flat, and so has no hull.
    """
    if kind == GeoType.CONE:
        radius, half = float(scale[0]), float(scale[1])
        angle = 2.0 * np.pi * np.arange(CONE_CORNER_COUNT) / CONE_CORNER_COUNT
        base = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full_like(angle, -half)], axis=1)
        ring = np.arange(CONE_CORNER_COUNT)
        following = (ring + 1) % CONE_CORNER_COUNT
        side = np.stack([ring, following, np.full_like(ring, CONE_CORNER_COUNT)], axis=1)
        floor = np.stack([np.zeros_like(ring), following, ring], axis=1)[1:-1]
        return Mesh(np.vstack([base, [0.0, 0.0, half]]), np.vstack([side, floor]), name="cone")
    mesh: Mesh = rows.model.meshes[source]
    return mesh.convex_hull().scaled(list(scale))
