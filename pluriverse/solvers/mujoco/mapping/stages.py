"""Stages: which fields of `mjModel` depend on which arrays of the model, and the structs of their memory.

The stages read arrays and write fields, by kernels: when a model is converted, after a notification on the
host, and, for tracked arrays, on the device. Fields that MuJoCo itself derives come last.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.solvers.mujoco.mapping.fields import DERIVED
from pluriverse.types import ModelFlags

_NONE = ModelFlags(0)
POSE_FLAGS = (
    ModelFlags.JOINT_PROPERTIES | ModelFlags.BODY_PROPERTIES | ModelFlags.JOINT_REFERENCE_POSE_PROPERTIES
)
"""Flags that frames of bodies and joints depend on."""
DOF_FLAGS = (
    ModelFlags.JOINT_DOF_PROPERTIES
    | ModelFlags.JOINT_DOF_FORCE_PROPERTIES
    | ModelFlags.JOINT_DOF_INERTIAL_PROPERTIES
    | ModelFlags.BODY_PROPERTIES
)
"""Flags that limits, losses and armature depend on."""


@dataclass(frozen=True)
class Stage:
    """A step of the mapping."""

    reads: frozenset[str]
    """Arrays of `Model` that it reads."""
    fields: tuple[str, ...]
    """Fields of `mjModel` that it writes."""
    flags: ModelFlags
    """Notifications after which it runs; none for a stage that depends on fields which MuJoCo derived."""


def _stage(reads: Iterable[str], fields: Iterable[str], flags: ModelFlags = _NONE) -> Stage:
    return Stage(frozenset(reads), tuple(fields), flags)


FRAME_ARRAYS = ("joint_X_p", "joint_X_c", "joint_axis")
STAGES: dict[str, Stage] = {
    "gravity": _stage(["gravity"], ["opt.gravity"], ModelFlags.MODEL_PROPERTIES),
    "inertia": _stage(
        ["body_mass", "body_com", "body_inertia"],
        ["body_mass", "body_ipos", "body_iquat", "body_inertia"],
        ModelFlags.BODY_INERTIAL_PROPERTIES,
    ),
    "frames": _stage(FRAME_ARRAYS, ["body_pos", "body_quat", "jnt_pos", "jnt_axis"], POSE_FLAGS),
    "dofs": _stage(
        ["joint_armature", "joint_damping", "joint_friction"],
        ["dof_armature", "dof_damping", "dof_frictionloss"],
        DOF_FLAGS,
    ),
    "ranges": _stage(
        ["joint_limit_lower", "joint_limit_upper", "joint_effort_limit"],
        ["jnt_range", "jnt_actfrcrange"],
        DOF_FLAGS,
    ),
    "drives": _stage(
        ["joint_target_ke", "joint_target_kd", "joint_effort_limit", *FRAME_ARRAYS],
        ["actuator_gainprm", "actuator_biasprm", "actuator_gear", "actuator_forcerange"],
        DOF_FLAGS | POSE_FLAGS | ModelFlags.ACTUATOR_PROPERTIES,
    ),
    "placement": _stage(
        ["shape_transform", "shape_scale", "shape_source_index"],
        [
            "geom_pos",
            "geom_quat",
            "geom_size",
            "geom_rbound",
            "geom_aabb",
            "geom_dataid",
            "site_pos",
            "site_quat",
        ],
        ModelFlags.SHAPE_PROPERTIES,
    ),
    "materials": _stage(
        [
            "shape_material_ke",
            "shape_material_ke_per_mass",
            "shape_material_tau",
            "shape_material_mu",
            "shape_material_mu_torsional",
            "shape_material_mu_rolling",
            "shape_margin",
        ],
        ["geom_friction", "geom_solref", "geom_margin", "body_margin"],
        ModelFlags.SHAPE_PROPERTIES,
    ),
    "switches": _stage(["shape_enabled"], ["geom_contype", "geom_conaffinity"]),
    "pairs": _stage(
        [
            "shape_material_ke",
            "shape_material_ke_per_mass",
            "shape_material_tau",
            "shape_material_mu",
            "shape_material_mu_torsional",
            "shape_material_mu_rolling",
            "shape_margin",
            "shape_enabled",
        ],
        ["pair_friction", "pair_solref", "pair_margin", "pair_gap"],
    ),
    "constraints": _stage(
        [
            "equality_constraint_anchor",
            "equality_constraint_axis",
            "equality_constraint_torquescale",
            "equality_constraint_relpose",
            "equality_constraint_polycoef",
            "equality_constraint_enabled",
            "joint_limit_lower",
            "joint_limit_upper",
            "joint_X_p",
            "joint_X_c",
        ],
        ["eq_data", "site_pos", "site_quat", "tendon_range"],
        ModelFlags.CONSTRAINT_PROPERTIES | POSE_FLAGS | DOF_FLAGS,
    ),
    "derived": _stage(
        ["body_mass", "body_com", "body_inertia", "joint_armature", *FRAME_ARRAYS],
        [*DERIVED, "stat.meaninertia"],
    ),
    "limits": _stage(
        [
            "joint_limit_ke",
            "joint_limit_kd",
            "body_mass",
            "body_com",
            "body_inertia",
            "joint_armature",
            *FRAME_ARRAYS,
        ],
        ["jnt_solref"],
    ),
    "tendon_limits": _stage(
        ["body_mass", "body_com", "body_inertia", "joint_armature", *FRAME_ARRAYS], ["tendon_solref_lim"]
    ),
}
"""The stages, in their order."""

KNOWN_ARRAYS = frozenset(name for stage in STAGES.values() for name in stage.reads)
"""Arrays of `Model` that can be tracked."""
WITHOUT_EFFECT = frozenset(
    [
        *("body_q", "body_qd", "joint_q", "joint_qd", "joint_f", "joint_act"),
        *(
            "joint_target_lower",
            "joint_target_upper",
            "joint_target_pos",
            "joint_target_vel",
            "joint_target_q",
            "joint_target_qd",
        ),
        *("joint_velocity_limit", "shape_color", "shape_appearance", "shape_flags", "shape_gap"),
        "shape_material_kh",
        *("shape_material_restitution", "shape_aabb_lower", "shape_aabb_upper", "shape_collision_radius"),
    ]
)
"""Arrays of `Model` that MuJoCo does not use once a solver is made, or that engines read directly."""
# Inputs of tendon lengths in addition to those of `derived`: the sites that tendons run through.
TENDON_ARRAYS = STAGES["placement"].reads | STAGES["constraints"].reads
EXTRA_FIELDS = ("mocap_pos", "mocap_quat", "eq_active", "external_ke", "external_kd", "geom_gap")
"""Arrays that are written along with the fields: rows of `mjData` that depend on the model alone, gains for
mixing external contacts, and switches of geoms in MuJoCo Warp."""
MESH_FIELDS = ("mesh_vert", "mesh_polynormal")
"""Fields of meshes whose sizes change."""
INTEGERS = ("geom_dataid", "geom_contype", "geom_conaffinity")


def field_names() -> tuple[str, ...]:
    """Return the names of all fields that may be tracked."""
    return tuple(dict.fromkeys(name for stage in STAGES.values() for name in stage.fields))


def attribute_of(name: str) -> str:
    """Return the name of a field in the structs of kernels."""
    return name.replace(".", "_")


@made_once
def fields_struct(real: Any) -> Any:
    """Return the `wp.struct` of the fields of a group, flat, with numbers of type `real`.

    A field that a group does not track, or that its engine lacks, is empty. `EXTRA_FIELDS` come last.
    """
    annotations: dict[str, Any] = {
        attribute_of(name): wp.array(dtype=wp.int32 if name in INTEGERS else real) for name in field_names()
    }
    annotations["mesh_vert"] = wp.array(dtype=wp.float32)
    annotations["mesh_polynormal"] = wp.array(dtype=real)
    for name in EXTRA_FIELDS:
        annotations[name] = wp.array(dtype=wp.uint8 if name == "eq_active" else real)
    return wp.struct(type("GroupFields", (), {"__annotations__": annotations, "__module__": __name__}))


@made_once
def field_writers(real: Any) -> Any:
    """Return the `wp.func`s that write numbers, 3-vectors and quaternions (as wxyz) into flat fields.

    Fields without entries are skipped.
    """

    @wp.func
    def write(field: wp.array(dtype=real), entry: int, value: wp.float64):
        if entry < field.shape[0]:
            field[entry] = real(value)

    @wp.func
    def write_vec3(field: wp.array(dtype=real), entry: int, value: wp.vec3d):
        if 3 * entry < field.shape[0]:
            for k in range(3):
                field[3 * entry + k] = real(value[k])

    @wp.func
    def write_quat(field: wp.array(dtype=real), entry: int, value: wp.quatd):
        if 4 * entry < field.shape[0]:
            field[4 * entry] = real(value[3])
            for k in range(3):
                field[4 * entry + 1 + k] = real(value[k])

    return SimpleNamespace(write=write, write_vec3=write_vec3, write_quat=write_quat)


@wp.func
def widen(value: wp.vec3) -> wp.vec3d:
    """Return a vector in double precision."""
    return wp.vec3d(wp.float64(value[0]), wp.float64(value[1]), wp.float64(value[2]))


@wp.func
def widen_quat(value: wp.quat) -> wp.quatd:
    """Return a quaternion in double precision."""
    return wp.quatd(wp.float64(value[0]), wp.float64(value[1]), wp.float64(value[2]), wp.float64(value[3]))


@wp.func
def widen_pose(pose: wp.transform) -> wp.transformd:
    """Return a pose in double precision."""
    return wp.transformd(
        widen(wp.transform_get_translation(pose)), widen_quat(wp.transform_get_rotation(pose))
    )


@wp.func
def rotated(rotation: wp.quatd, vector: wp.vec3d) -> wp.vec3d:
    """Return a vector rotated by a quaternion of nearly unit length, as `poses.rotate` does."""
    axis = wp.vec3d(rotation[0], rotation[1], rotation[2])
    across = wp.float64(2.0) * wp.cross(axis, vector)
    return vector + rotation[3] * across + wp.cross(axis, across)


@wp.func
def composed(a: wp.transformd, b: wp.transformd) -> wp.transformd:
    """Return the pose `b` given in the frame `a`."""
    rotation = wp.transform_get_rotation(a)
    position = wp.transform_get_translation(a) + rotated(rotation, wp.transform_get_translation(b))
    return wp.transformd(position, rotation * wp.transform_get_rotation(b))


@wp.func
def inverted(pose: wp.transformd) -> wp.transformd:
    """Return the inverse of a pose."""
    rotation = wp.quat_inverse(wp.transform_get_rotation(pose))
    return wp.transformd(-rotated(rotation, wp.transform_get_translation(pose)), rotation)


@wp.func
def selected_world(worlds: wp.array[int], selected: wp.array[int], row: int) -> int:
    """Return the world of a row of a group, -1 if it is not selected."""
    world = worlds[row]
    if selected[world] == 0:
        return -1
    return world


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.mapping.stages")
def select_world(
    worlds: wp.array[int],  # [slot] entries that name no world are ignored
    mask: wp.array[bool],  # [world] which of them; empty: all
    selected: wp.array[int],  # [world] out
):
    """Mark one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0 or world >= selected.shape[0]:
        return
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    selected[world] = 1
