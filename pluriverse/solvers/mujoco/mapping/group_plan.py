"""GroupPlan: the compiled-in structure of a group, and its derivation."""

from dataclasses import dataclass

import numpy as np

from pluriverse.solvers.mujoco.mapping.collision_masks import CollisionMasks, assign_masks
from pluriverse.solvers.mujoco.mapping.drives import DrivePlan, plan_drives
from pluriverse.solvers.mujoco.mapping.equality import (
    EqualityPlan,
    plan_equalities,
)
from pluriverse.solvers.mujoco.mapping.geoms import (
    ShapePlan,
    plan_shapes,
)
from pluriverse.solvers.mujoco.mapping.mesh_assets import MeshAsset, find_assets
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.structure import StructurePlan
from pluriverse.solvers.mujoco.options import MujocoOptions


@dataclass
class GroupPlan:
    """The compiled-in structure of a group."""

    worlds: np.ndarray
    """Worlds of the group, shape [row]."""
    structure: StructurePlan
    geoms: ShapePlan
    sites: ShapePlan
    drives: DrivePlan
    equalities: EqualityPlan
    masks: CollisionMasks
    assets: list[MeshAsset]
    """Meshes that geoms have in any world, or may be given."""
    sized: np.ndarray
    """Whether the size of a geom with a mesh changes on the device, shape [geom]."""


def plan_group(rows: ModelRows, options: MujocoOptions, worlds: np.ndarray) -> GroupPlan:
    """Return the structure of worlds that share one."""
    structure = StructurePlan(rows.template(worlds), weightless_bodies(rows, worlds[:1])[0])
    geoms, sites = plan_shapes(
        rows,
        structure,
        worlds,
        skip_visual=options.skip_visual_only_geoms,
        include_sites=options.include_sites,
    )
    return GroupPlan(
        worlds=worlds,
        structure=structure,
        geoms=geoms,
        sites=sites,
        drives=plan_drives(rows, structure, worlds),
        equalities=plan_equalities(structure),
        masks=_find_masks(structure, geoms),
        assets=find_assets(rows, geoms, worlds)[0],
        sized=np.zeros(len(geoms), dtype=bool),
    )


def weightless_bodies(rows: ModelRows, worlds: np.ndarray) -> np.ndarray:
    """Return which bodies have no mass and nothing attached to them, shape [row, body]."""
    template = rows.template(worlds)
    mass = rows.gather("body_mass", "body", worlds)
    inertia = np.abs(rows.gather("body_inertia", "body", worlds)).reshape(*mass.shape, 9).max(axis=-1)
    attached = np.zeros(template.body_count, dtype=bool)
    carrier = rows.gather("shape_body", "shape", worlds[:1])[0]
    attached[carrier[carrier >= 0] - rows.first["body"][worlds[0]]] = True
    constrained = template.equality[:, 1:3]
    attached[constrained[constrained >= 0]] = True
    return (mass == 0.0) & (inertia == 0.0) & ~attached


def _find_masks(structure: StructurePlan, geoms: ShapePlan) -> CollisionMasks:
    """Return the contact bits that let the candidate pairs of the template touch, and no others."""
    template = structure.template
    index_of = {int(code): index for index, code in enumerate(geoms.shape)}
    allowed = np.zeros((len(geoms), len(geoms)), dtype=bool)
    for first, second in zip(template.pair_shape0.tolist(), template.pair_shape1.tolist(), strict=True):
        if first in index_of and second in index_of:
            allowed[index_of[first], index_of[second]] = allowed[index_of[second], index_of[first]] = True
    weld = structure.body_weld
    above = np.array([0 if body is None else weld[body.parent] for body in structure.bodies], dtype=np.int64)
    return assign_masks(geoms.body, weld, above[weld], allowed, *structure.body_mocap)
