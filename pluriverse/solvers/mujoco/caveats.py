"""Caveats: properties of a model that MuJoCo treats differently, told once, at conversion or after edits."""

import warnings
from collections.abc import Iterable, Sequence

import mujoco
import numpy as np

from pluriverse.model import Model
from pluriverse.solvers.mujoco.attributes.namespace_rows import rows_of_worlds
from pluriverse.solvers.mujoco.mapping.body_kernels import LEAST, MASS_INSTEAD
from pluriverse.solvers.mujoco.mapping.geoms import flat_shapes, geom_attributes
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.group_plan import GroupPlan
from pluriverse.solvers.mujoco.mapping.joints import KINEMATIC_ARMATURE, kinematic_dofs
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.structure import dof_joints, public_dofs
from pluriverse.solvers.mujoco.options import MujocoOptions
from pluriverse.types import GeoType, ShapeFlags
from pluriverse.warnings import PluriverseWarning

# Speed limits [m/s or rad/s] from this value on count as none; the builder's default is one.
SPEED_UNLIMITED = 1e6
# Excess of the volume of a mesh's hull from which it is reported [relative].
HULL_EXCESS = 0.02
# Coefficient of friction from which a body on pyramidal cones rests (a cube of 8 kg at 5 ms: 160 m up with 0,
# 57 mm with 0.0005, 3.7 mm with 0.001, none with 0.01).
SLICK = 0.01
# Number of entities that a message names before it only counts the rest.
NAMED = 4


class MujocoCaveatWarning(PluriverseWarning):
    """A property of a model that MuJoCo treats differently."""


def warn_of_caveats(rows: ModelRows, options: MujocoOptions, plan: GroupPlan, group: MujocoGroup) -> None:
    """Warn of properties that MuJoCo treats differently, and keep the texts in `group.notes`."""
    notes = (
        "" if options.enforce_velocity_limit else _speed_limits(rows, plan),
        _hulls(rows, plan),
        _restitution(rows, plan),
        _cones(rows, plan),
        _patches(rows, options, plan),
        _kinematic_armature(rows, plan),
        _margins(options, plan, group, rows),
        _clamped_masses(rows, plan, group),
        _pairs(rows, options, plan),
        _mixed_gains(rows, options, plan, group),
        _slick(rows, plan, group),
    )
    _tell(group, notes, stacklevel=6)


def warn_of_edited_shapes(model: Model, groups: Sequence[MujocoGroup]) -> None:
    """Warn of properties of materials that were not there at the conversion."""
    rows = ModelRows(model)
    for group in groups:
        _tell(group, (_restitution(rows, group.plan), _slick(rows, group.plan, group)), stacklevel=5)


def _tell(group: MujocoGroup, notes: Iterable[str], stacklevel: int) -> None:
    """Warn of what was not told yet, an empty note being none."""
    for note in notes:
        if note and note not in group.notes:
            group.notes.append(note)
            warnings.warn(MujocoCaveatWarning(f"SolverMuJoCo: {note}"), stacklevel=stacklevel)


def _speed_limits(rows: ModelRows, plan: GroupPlan) -> str:
    dofs = public_dofs(plan.structure)
    limit = rows.gather("joint_velocity_limit", "dof", plan.worlds)[:, dofs]
    joints = dof_joints(plan.structure)[(limit < SPEED_UNLIMITED).any(axis=0)]
    if len(joints) == 0:
        return ""
    names = _joint_names(rows, plan, np.unique(joints))
    return (
        f"joint_velocity_limit of {names} is not enforced, since MuJoCo does not limit joint speeds. Pass "
        "enforce_velocity_limit=True to enforce them after each step."
    )


def _restitution(rows: ModelRows, plan: GroupPlan) -> str:
    flat = flat_shapes(rows, plan.geoms, plan.worlds)[:, plan.geoms.collides]
    elastic = (rows.array("shape_material_restitution")[flat] > 0.0).any(axis=0)
    if not elastic.any():
        return ""
    names = [rows.model.shape_label[shape] for shape in flat[0, elastic]]
    return (
        f"restitution of shape {_listed(names)} is not used, since MuJoCo has no such coefficient: contacts "
        "bounce by their softness (mujoco:solref). Use SolverSAP, whose contacts have it."
    )


def _hulls(rows: ModelRows, plan: GroupPlan) -> str:
    flat = flat_shapes(rows, plan.geoms, plan.worlds[:1])[0]
    kind = rows.array("shape_type")[flat]
    names = []
    for shape in flat[plan.geoms.collides & (kind == GeoType.MESH)]:
        mesh = rows.model.meshes[int(rows.array("shape_source_index")[shape])]
        if mesh.is_convex_hull:
            continue
        if mesh.is_closed:
            hull = mesh.convex_hull().mass_properties(1.0).mass
            if hull <= (1.0 + HULL_EXCESS) * mesh.mass_properties(1.0).mass:
                continue
        names.append(rows.model.shape_label[shape])
    if not names:
        return ""
    return (
        f"shape {_listed(names)} collides as the convex hull of its mesh, as MuJoCo supports convex meshes "
        "only. Decompose it into convex parts, or pass contacts of a pipeline (use_mujoco_contacts=False)."
    )


def _cones(rows: ModelRows, plan: GroupPlan) -> str:
    flat = flat_shapes(rows, plan.geoms, plan.worlds[:1])[0]
    cones = flat[rows.array("shape_type")[flat] == GeoType.CONE]
    if len(cones) == 0:
        return ""
    names = _listed([rows.model.shape_label[shape] for shape in cones])
    return f"shape {names} is a cone, which MuJoCo lacks; it collides as the hull of 33 points on it."


def _patches(rows: ModelRows, options: MujocoOptions, plan: GroupPlan) -> str:
    flat = flat_shapes(rows, plan.geoms, plan.worlds[:1])[0]
    required = int(ShapeFlags.HYDROELASTIC | ShapeFlags.COLLIDE_SHAPES)
    soft = flat[(rows.array("shape_flags")[flat] & required) == required]
    if len(soft) == 0 or not options.use_mujoco_contacts:
        return ""
    names = _listed([rows.model.shape_label[shape] for shape in soft])
    return (
        f"shape {names} is hydroelastic, which MuJoCo lacks; it has point contacts of stiffness ke. Pass "
        "use_mujoco_contacts=False for pressure patches."
    )


def _kinematic_armature(rows: ModelRows, plan: GroupPlan) -> str:
    kinematic = kinematic_dofs(rows, plan.structure, plan.worlds)
    armature = rows.gather("joint_armature", "dof", plan.worlds)[:, public_dofs(plan.structure)]
    lost = (kinematic & (armature != 0.0)).any(axis=0)
    if not lost.any():
        return ""
    names = _joint_names(rows, plan, np.unique(dof_joints(plan.structure)[lost]))
    return (
        f"joint_armature of {names} is replaced by {KINEMATIC_ARMATURE:g}, which keeps the motion of "
        "kinematic bodies as prescribed."
    )


def _margins(options: MujocoOptions, plan: GroupPlan, group: MujocoGroup, rows: ModelRows) -> str:
    margin = rows.array("shape_margin")[flat_shapes(rows, plan.geoms, plan.worlds)]
    lost = (margin != group.value("geom_margin")).any(axis=0)
    if not options.use_mujoco_contacts or not lost.any():
        return ""
    flat = flat_shapes(rows, plan.geoms, plan.worlds[:1])[0]
    names = _listed([rows.model.shape_label[shape] for shape in flat[lost]])
    return (
        f"shape_margin of {names} counts as 0, since MuJoCo Warp before 3.17 refuses margins next to boxes "
        "and meshes. Give no margin, update mujoco and mujoco-warp, use MuJoCo on the CPU "
        "(use_mujoco_cpu=True), or pass contacts of a pipeline (use_mujoco_contacts=False)."
    )


def _clamped_masses(rows: ModelRows, plan: GroupPlan, group: MujocoGroup) -> str:
    """Report bodies whose mass or inertia is raised to what MuJoCo accepts."""
    moving = {joint.body for joint in plan.structure.joints}
    mass, moments = group.value("body_mass"), group.value("body_inertia")
    raised = _equal(mass, MASS_INSTEAD) | _equal(moments, LEAST).any(axis=2)
    light = np.flatnonzero(raised.any(axis=0)).tolist()
    first = int(group.first_body[0])
    names = [
        rows.model.body_label[first + body.body]
        for index, body in enumerate(plan.structure.bodies)
        if body is not None and index in moving and index in light
    ]
    if not names:
        return ""
    return (
        f"body {_listed(names)} has no mass or no inertia, nor has what is fixed to it. MuJoCo gets "
        f"{MASS_INSTEAD:g} kg or {LEAST:g} kg·m², with the drag of a box of up to "
        f"{1e3 * np.sqrt(6.0 * LEAST / MASS_INSTEAD):.2g} mm in a fluid. Give it both if that matters."
    )


def _equal(values: np.ndarray, number: float) -> np.ndarray:
    """Return where values are a number, up to the rounding of single precision."""
    result: np.ndarray = np.isclose(values, number, rtol=1e-6, atol=0.0)
    return result


def _pairs(rows: ModelRows, options: MujocoOptions, plan: GroupPlan) -> str:
    count = rows_of_worlds(rows, "pair", plan.worlds[:1]).shape[1]
    if count == 0 or options.use_mujoco_contacts:
        return ""
    return (
        f"the {count} contact pairs of world {int(plan.worlds[0])} have no effect, as contacts come from "
        "outside (use_mujoco_contacts=False). Give the properties to the shapes, or let MuJoCo find the "
        "contacts."
    )


def _mixed_gains(rows: ModelRows, options: MujocoOptions, plan: GroupPlan, group: MujocoGroup) -> str:
    """Report force-space gains: they depend on both bodies, which MuJoCo ignores when it mixes gains."""
    given = group.geom_force_space & ~np.isnan(group.geom_ke)
    forces = (given & plan.geoms.collides).any(axis=0)
    if not options.use_mujoco_contacts or not forces.any():
        return ""
    flat = flat_shapes(rows, plan.geoms, plan.worlds[:1])[0]
    names = _listed([rows.model.shape_label[shape] for shape in flat[forces]])
    return (
        f"stiffness and damping of shape {names} are forces (solref_mode FORCE_SPACE), which MuJoCo treats "
        "as those of a mass of 1 kg where it finds contacts. Pass contacts of a pipeline "
        "(use_mujoco_contacts=False) for exact forces."
    )


def _slick(rows: ModelRows, plan: GroupPlan, group: MujocoGroup) -> str:
    """Report hardly any friction: pyramidal cones are then so flat that bodies at rest are thrown up."""
    if group.model.opt.cone != int(mujoco.mjtCone.mjCONE_PYRAMIDAL):
        return ""
    flat = flat_shapes(rows, plan.geoms, plan.worlds)
    slick = rows.array("shape_material_mu")[flat] < SLICK
    slick &= plan.geoms.collides & (geom_attributes(rows, plan.geoms, plan.worlds)["condim"] > 1)
    # Of two geoms that touch, the larger coefficient counts.
    worlds = slick.sum(axis=1) > 1
    if not worlds.any():
        return ""
    names = _listed(
        [rows.model.shape_label[shape] for shape in flat[np.argmax(worlds), slick[np.argmax(worlds)]]]
    )
    return (
        f"friction of shape {names} is below {SLICK:g}: where two of them touch, MuJoCo's pyramidal cones "
        "are so flat that they throw bodies up. Pass cone='elliptic', or take contacts of one dimension "
        "(mujoco:condim = 1)."
    )


def _joint_names(rows: ModelRows, plan: GroupPlan, joints: np.ndarray) -> str:
    first = int(rows.first["joint"][plan.worlds[0]])
    return f"joint {_listed([rows.model.joint_label[first + joint] for joint in joints])}"


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:NAMED])
    return shown + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
