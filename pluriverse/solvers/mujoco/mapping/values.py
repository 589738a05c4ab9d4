"""GroupValues: everything that MuJoCo's model of a group is made of, computed for all its worlds at once.

The description that is compiled takes the first row; the model of every other world is the compiled one with
its own row written over it. So both come from the same numbers.
"""

import functools
from dataclasses import dataclass

import numpy as np

from pluriverse.solvers.mujoco.mapping.collision_masks import CollisionMasks, assign_masks
from pluriverse.solvers.mujoco.mapping.drives import DrivePlan, DriveValues, compute_drive_values, plan_drives
from pluriverse.solvers.mujoco.mapping.equality import (
    EqualityPlan,
    EqualityValues,
    RopeValues,
    compute_equalities,
    compute_ropes,
    plan_equalities,
)
from pluriverse.solvers.mujoco.mapping.frames import Frames, compute_frames
from pluriverse.solvers.mujoco.mapping.geoms import (
    GeomValues,
    MaterialValues,
    ShapePlan,
    compute_materials,
    compute_placement,
    plan_shapes,
)
from pluriverse.solvers.mujoco.mapping.inertia import Inertias, compute_inertias
from pluriverse.solvers.mujoco.mapping.joints import JointValues, compute_joint_values
from pluriverse.solvers.mujoco.mapping.mesh_assets import MeshAsset, find_assets
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.structure import StructurePlan
from pluriverse.solvers.mujoco.options import MujocoOptions


@dataclass
class GroupPlan:
    """The structure of a group: what is compiled in."""

    worlds: np.ndarray
    """Worlds of the group, shape [row]."""
    structure: StructurePlan
    geoms: ShapePlan
    sites: ShapePlan
    drives: DrivePlan
    equalities: EqualityPlan
    masks: CollisionMasks
    assets: list[MeshAsset]
    """Meshes that geoms have in any world, or may come to have."""
    sized: np.ndarray
    """Whether the size of a geom with a mesh changes on the device, shape [geom]."""


class GroupValues:
    """The numbers of a group, row by row, computed when first asked for.

    Args:
        rows: Arrays of the model.
        plan: Structure of the group.
    """

    def __init__(self, rows: ModelRows, plan: GroupPlan):
        self.rows, self.plan = rows, plan

    @functools.cached_property
    def frames(self) -> Frames:
        """Poses of bodies and joints."""
        return compute_frames(self.rows, self.plan.structure, self.plan.worlds)

    @functools.cached_property
    def inertias(self) -> Inertias:
        """Mass properties."""
        return compute_inertias(self.rows, self.plan.structure, self.plan.worlds)

    @functools.cached_property
    def joints(self) -> JointValues:
        """Limits, losses and armature."""
        return compute_joint_values(self.rows, self.plan.structure, self.plan.worlds)

    @functools.cached_property
    def drives(self) -> DriveValues:
        """Gains of drives."""
        return compute_drive_values(
            self.rows,
            self.plan.structure,
            self.plan.drives,
            self.plan.worlds,
            self.frames.joint_rotation,
        )

    @functools.cached_property
    def geoms(self) -> GeomValues:
        """Poses and sizes of geoms."""
        return compute_placement(self.rows, self.plan.geoms, self.plan.worlds)

    @functools.cached_property
    def meshes(self) -> np.ndarray:
        """Which of the meshes of the plan each geom has, -1 for none, shape [row, geom].

        Raises:
            ValueError: If a mesh is not among them, so that MuJoCo does not have it.
        """
        found, number = find_assets(self.rows, self.plan.geoms, self.plan.worlds, self.plan.sized)
        place = {asset.key: index for index, asset in enumerate(self.plan.assets)}
        for asset in found:
            if asset.key not in place:
                label = self.rows.model.shape_label[asset.shape]
                raise ValueError(
                    f"SolverMuJoCo.notify_model_changed: shape '{label}' (index {asset.shape}) has another "
                    f"mesh or size ({asset.name}) than when the solver was made, and MuJoCo has these "
                    "compiled in. Undo the change, or make a new SolverMuJoCo."
                )
        return np.array([place[asset.key] for asset in found] + [-1], dtype=np.int64)[number]

    @functools.cached_property
    def materials(self) -> MaterialValues:
        """Contact properties of geoms."""
        return compute_materials(self.rows, self.plan.geoms, self.plan.worlds)

    @functools.cached_property
    def sites(self) -> GeomValues:
        """Poses and sizes of sites."""
        return compute_placement(self.rows, self.plan.sites, self.plan.worlds)

    @functools.cached_property
    def equalities(self) -> EqualityValues:
        """Equality constraints."""
        return compute_equalities(self.rows, self.plan.equalities, self.plan.worlds)

    @functools.cached_property
    def ropes(self) -> RopeValues:
        """Distance constraints."""
        return compute_ropes(self.rows, self.plan.equalities, self.plan.structure, self.plan.worlds)


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
    mass = rows.take("body_mass", "body", worlds)
    inertia = np.abs(rows.take("body_inertia", "body", worlds)).reshape(*mass.shape, 9).max(axis=-1)
    attached = np.zeros(template.body_count, dtype=bool)
    carrier = rows.take("shape_body", "shape", worlds[:1])[0]
    attached[carrier[carrier >= 0] - rows.first["body"][worlds[0]]] = True
    held = template.equality[:, 1:3]
    attached[held[held >= 0]] = True
    return (mass == 0.0) & (inertia == 0.0) & ~attached


def _find_masks(structure: StructurePlan, geoms: ShapePlan) -> CollisionMasks:
    """Return the contact bits that let the candidate pairs of the template touch, and no others."""
    template = structure.template
    place = {int(code): index for index, code in enumerate(geoms.shape)}
    allowed = np.zeros((len(geoms), len(geoms)), dtype=bool)
    for first, second in zip(template.pair_shape0.tolist(), template.pair_shape1.tolist(), strict=True):
        if first in place and second in place:
            allowed[place[first], place[second]] = allowed[place[second], place[first]] = True
    weld = structure.body_weld
    above = np.array([0 if body is None else weld[body.parent] for body in structure.bodies], dtype=np.int64)
    return assign_masks(geoms.body, weld, above[weld], allowed)
