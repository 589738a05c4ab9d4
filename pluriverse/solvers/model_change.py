"""Model change: check what was written into a model between steps, and bring up to date what follows from it.

Steps read the arrays of a model as they are, so an edit acts without notice. What follows from arrays and is
kept is little: the bounds of shapes, and the initial poses of bodies.
"""

from collections.abc import Sequence

import numpy as np
import warp as wp

from pluriverse.dynamics import eval_ik
from pluriverse.dynamics.forward_kinematics import eval_fk_of_worlds
from pluriverse.geometry.shape_bounds import compute_shape_bounds
from pluriverse.model import Model
from pluriverse.model.end_inertias import find_unresisting
from pluriverse.model.entity_names import entity_name
from pluriverse.model.schema import MODEL_ARRAYS
from pluriverse.model.world_list import list_worlds
from pluriverse.types import BodyFlags, Entity, GeoType, JointTargetMode, JointType, ModelFlags

# Largest error of the length of a unit quaternion or axis [relative]: as in the checks of the builder.
UNIT_ERROR = 0.02
# Largest asymmetry of an inertia, relative to its largest entry: some roundings of float32.
SYMMETRY_ERROR = 1e-5

_DOF_FLAGS = (
    ModelFlags.JOINT_DOF_PROPERTIES
    | ModelFlags.JOINT_DOF_FORCE_PROPERTIES
    | ModelFlags.JOINT_DOF_INERTIAL_PROPERTIES
)


def apply_model_change(model: Model, flags: ModelFlags) -> None:
    """Check the arrays that the flags name, then compute anew what is kept of them, in the worlds edited.

    Raises:
        ValueError: If a value is not allowed, or the structure of the model was written to.
    """
    check_structure(model)
    if flags & ModelFlags.BODY_INERTIAL_PROPERTIES:
        _check_masses(model)
    if flags & _DOF_FLAGS:
        _check_dofs(model)
    if flags & ModelFlags.MODEL_PROPERTIES:
        _check(
            np.isfinite(_rows(model.gravity)).all(axis=1), model, "gravity", "world", "Give finite numbers."
        )
    if flags & ModelFlags.SHAPE_PROPERTIES:
        _check_shapes(model)
        _update_bounds(model)
    if flags & ModelFlags.JOINT_PROPERTIES:
        _check_frames(model)
    if flags & ModelFlags.BODY_PROPERTIES:
        _check_flags(model)
        _check_poses(model, "body_q", "body")
        _check(
            np.isfinite(_rows(model.body_qd)).all(axis=1), model, "body_qd", "body", "Give finite numbers."
        )
        # Every step begins from joint coordinates. Where those were written to as well, they count.
        if not flags & (ModelFlags.JOINT_PROPERTIES | ModelFlags.JOINT_REFERENCE_POSE_PROPERTIES):
            moved = list_worlds(model.initial_edits.worlds(("body_q", "body_qd")), model.device)
            eval_ik(model, model, model.joint_q, model.joint_qd, worlds=moved)  # type: ignore[arg-type]
    if flags & (
        ModelFlags.JOINT_PROPERTIES
        | ModelFlags.JOINT_REFERENCE_POSE_PROPERTIES
        | ModelFlags.BODY_PROPERTIES
        | ModelFlags.BODY_INERTIAL_PROPERTIES
    ):
        edited = list_worlds(model.initial_edits.worlds(), model.device)
        eval_fk_of_worlds(model, edited, model)  # type: ignore[arg-type]
        model.initial_edits.mark_clean()


def check_structure(model: Model) -> None:
    """Raise if an array was written to that only acts when a model is made.

    Raises:
        ValueError: If the structure of the model was written to.
    """
    changed = model.changed_structure()
    if changed:
        raise ValueError(structure_message(changed))


def structure_message(changed: Sequence[str]) -> str:
    """Return what to say about writes without effect."""
    return (
        f"{', '.join(changed)}: written to after finalize, which evaluated the structure of the model, so "
        "the change has no effect or only a part of it. Undo it, or set it on the ModelBuilder and finalize "
        "again."
    )


def _check_masses(model: Model) -> None:
    mass = model.body_mass.numpy()
    _check(np.isfinite(mass) & (mass >= 0.0), model, "body_mass", "body", "Give a finite mass >= 0 kg.")
    _check(np.isfinite(_rows(model.body_com)).all(axis=1), model, "body_com", "body", "Give finite numbers.")
    inertia = model.body_inertia.numpy().reshape(-1, 3, 3).astype(np.float64)
    scale = np.abs(inertia).max(axis=(1, 2), initial=0.0)
    finite = np.isfinite(inertia).all(axis=(1, 2))
    asymmetry = np.abs(inertia - inertia.transpose(0, 2, 1)).max(axis=(1, 2), initial=0.0)
    _check(
        finite & (asymmetry <= SYMMETRY_ERROR * scale),
        model,
        "body_inertia",
        "body",
        "Give a finite, symmetric matrix.",
    )
    lowest = np.linalg.eigvalsh(inertia)[:, 0] if len(inertia) else np.zeros(0)
    _check(
        lowest >= -SYMMETRY_ERROR * scale,
        model,
        "body_inertia",
        "body",
        "Give moments of inertia >= 0 kg·m².",
    )
    massless, inert = find_unresisting(lambda name: getattr(model, name).numpy())
    remedy = "A joint moves the body, with nothing on it that could lend it any: give it"
    _check(~massless, model, "body_mass", "body", f"{remedy} mass > 0 kg.")
    _check(~inert, model, "body_inertia", "body", f"{remedy} moments of inertia > 0 kg·m².")


def _check_flags(model: Model) -> None:
    """Check that bodies are dynamic or kinematic, and that no dynamic one lacks mass or inertia."""
    flags = model.body_flags.numpy()
    known = np.isin(flags, (BodyFlags.DYNAMIC, BodyFlags.KINEMATIC))
    _check(known, model, "body_flags", "body", "Give BodyFlags.DYNAMIC or BodyFlags.KINEMATIC.")
    massless, inert = find_unresisting(lambda name: getattr(model, name).numpy())
    remedy = "Give the body mass and inertia before it becomes dynamic, or leave it kinematic."
    _check(~(massless | inert), model, "body_flags", "body", remedy)


def _check_dofs(model: Model) -> None:
    _check_bounds(model, Entity.JOINT_DOF)
    lower, upper = model.joint_limit_lower.numpy(), model.joint_limit_upper.numpy()
    ordered = lower <= upper
    ordered_targets = model.joint_target_lower.numpy() <= model.joint_target_upper.numpy()
    _check(ordered_targets, model, "joint_target_lower", "dof", "Keep it at or below joint_target_upper.")
    spans = model.joint_qd_start.numpy()[:-1][model.joint_type.numpy() == JointType.DISTANCE]
    ordered[spans] = (upper[spans] < 0.0) | ((upper[spans] > 0.0) & ordered[spans])
    _check(ordered, model, "joint_limit_lower", "dof", "Keep it at or below joint_limit_upper.")
    modes = [mode for mode in JointTargetMode if mode is not JointTargetMode.AUTO]
    known = np.isin(model.joint_target_mode.numpy(), modes)
    _check(known, model, "joint_target_mode", "dof", f"Use one of {[int(mode) for mode in modes]}.")


def _check_bounds(model: Model, entity: Entity) -> None:
    """Check the numbers of entities against the bounds that the schema gives them."""
    for name, spec in MODEL_ARRAYS.items():
        if spec.entity is entity and spec.low is not None and getattr(model, name).dtype is wp.float32:
            values = getattr(model, name).numpy()
            sound = values >= spec.low
            remedy = f"Give a number >= {spec.low:g}"
            if spec.may_be_unset:
                sound |= np.isnan(values)
                remedy += ", or NaN to leave it to the solver"
            _check(sound, model, name, "dof" if entity is Entity.JOINT_DOF else entity.key, f"{remedy}.")


def _check_shapes(model: Model) -> None:
    _check_poses(model, "shape_transform", "shape")
    kind, scale = model.shape_type.numpy(), _rows(model.shape_scale)
    meshed = np.isin(kind, [GeoType.MESH, GeoType.CONVEX_MESH, GeoType.HFIELD])
    needed = np.zeros(len(kind), dtype=np.int64)  # leading sizes that must be positive
    for count, types in (
        (1, (GeoType.SPHERE,)),
        (2, (GeoType.CAPSULE, GeoType.CYLINDER, GeoType.CONE)),
        (3, (GeoType.BOX, GeoType.ELLIPSOID)),
    ):
        needed[np.isin(kind, types)] = count
    sound = np.isfinite(scale).all(axis=1)
    for axis in range(3):
        sound &= (scale[:, axis] > 0.0) | (needed <= axis)
        sound &= (scale[:, axis] != 0.0) | ~meshed
    _check(sound, model, "shape_scale", "shape", "Give finite, positive sizes.")
    _check_bounds(model, Entity.SHAPE)
    for name in ("shape_margin", "shape_gap"):
        _check(
            np.isfinite(getattr(model, name).numpy()), model, name, "shape", "Give a finite length >= 0 m."
        )


def _check_frames(model: Model) -> None:
    _check_poses(model, "joint_X_p", "joint")
    _check_poses(model, "joint_X_c", "joint")
    length = np.linalg.norm(_rows(model.joint_axis), axis=1)
    scalar = length > 0.0  # dofs of ball and free joints have no axis of their own
    sound = ~scalar & np.isfinite(length) | (np.abs(length - 1.0) <= UNIT_ERROR)
    _check(sound, model, "joint_axis", "dof", "Give an axis of length 1.")
    _check(np.isfinite(model.joint_q.numpy()), model, "joint_q", "coordinate", "Give a finite number.")
    _check(np.isfinite(model.joint_qd.numpy()), model, "joint_qd", "dof", "Give a finite number.")


def _check_poses(model: Model, name: str, kind: str) -> None:
    rows = _rows(getattr(model, name))
    unit = np.abs(np.linalg.norm(rows[:, 3:], axis=1) - 1.0) <= UNIT_ERROR
    sound = np.isfinite(rows).all(axis=1) & unit
    _check(sound, model, name, kind, "Give a finite position and a quaternion xyzw of length 1.")


def _update_bounds(model: Model) -> None:
    """Compute boxes and spheres around the shapes anew."""
    if model.shape_count == 0:
        return
    lower, upper, radius = compute_shape_bounds(
        model.shape_type.numpy(),
        _rows(model.shape_scale).astype(np.float64),
        model.shape_source_index.numpy(),
        model.meshes,
    )
    model.shape_aabb_lower.assign(lower.astype(np.float32))
    model.shape_aabb_upper.assign(upper.astype(np.float32))
    model.shape_collision_radius.assign(radius.astype(np.float32))


def _rows(array: wp.array) -> np.ndarray:
    values: np.ndarray = array.numpy()
    return values.reshape(len(values), -1) if len(values) else np.zeros((0, 7))


def _check(sound: np.ndarray, model: Model, name: str, kind: str, remedy: str) -> None:
    """Raise for the first entry that is not sound."""
    if sound.all():
        return
    entry = int(np.argmin(sound))
    value = getattr(model, name).numpy()[entry].tolist()
    raise ValueError(f"{_entity(model, kind, entry)}: {name} was set to {value}. {remedy}")


def _entity(model: Model, kind: str, entry: int) -> str:
    """Return the name of an entity, for messages."""
    part_of_joint = {"dof": Entity.JOINT_DOF, "coordinate": Entity.JOINT_COORD}.get(kind)
    if part_of_joint is not None:
        return f"{entity_name(model, part_of_joint, entry)}, {kind} {entry}"
    return entity_name(model, Entity[kind.upper()], entry)
