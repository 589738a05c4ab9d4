"""Validation: check that the contents of a builder form a valid model.

Every message names the entity, the value and the remedy.
"""

from collections.abc import Callable

import numpy as np
import warp as wp

from pluriverse.builder.articulations import check_kinematic_child
from pluriverse.builder.inputs import QUATERNION_LENGTH_TOLERANCE
from pluriverse.builder.snapshot import COLUMN_NAMES, Snapshot
from pluriverse.builder.tables import BuilderTables
from pluriverse.model.schema import MODEL_ARRAYS
from pluriverse.types import FLOATING_JOINTS, BodyFlags, Entity, GeoType, JointTargetMode, JointType

_SUPPORTED_SHAPES = tuple(geometry for geometry in GeoType if geometry is not GeoType.NONE)


def check_articulations(builder: BuilderTables) -> None:
    """Check that joints are in articulations of their world, or in none.

    Raises:
        ValueError: If one is not.
    """
    owner = np.asarray(builder.joint_articulation)
    inside = owner >= 0
    known = (owner >= -1) & (owner < builder.articulation_count)
    bad = ~known
    world = np.asarray(builder.articulation_world)
    bad[inside & known] = world[owner[inside & known]] != np.asarray(builder.joint_world)[inside & known]
    if bad.any():
        joint = int(np.argmax(bad))
        raise ValueError(
            f"{builder.joint_name(joint)}: joint_articulation is {owner[joint]}, but it must be an "
            f"articulation of its world, of {builder.articulation_count} in all, or -1 for a joint that "
            "closes a loop."
        )


def check_structure(source: Snapshot) -> None:
    """Check that bodies and joints form trees within one world each.

    Raises:
        ValueError: If they do not.
    """
    builder = source.builder
    _check_world_order(source)
    if source.authored_world_count and (source.body_world < 0).any():
        body = int(np.argmax(source.body_world < 0))
        raise ValueError(
            f"{builder.body_name(body)} is global, but the model has {source.authored_world_count} "
            "worlds: a body belongs to one world. Add it between begin_world() and end_world(), or call "
            "copy_global_bodies() before finalize() to give each world a copy; shapes that all worlds share "
            "are attached to the world itself (body=-1)."
        )
    unknown = ~np.isin(source.body_flags, (BodyFlags.DYNAMIC, BodyFlags.KINEMATIC))
    if unknown.any():
        body = int(np.argmax(unknown))
        raise ValueError(
            f"{builder.body_name(body)}: body_flags is {source.body_flags[body]}, but it must be "
            f"BodyFlags.DYNAMIC ({int(BodyFlags.DYNAMIC)}) or KINEMATIC ({int(BodyFlags.KINEMATIC)})."
        )
    is_attached = (source.joint_parent >= 0) & (source.body_flags[source.joint_child] == BodyFlags.KINEMATIC)
    if is_attached.any():
        check_kinematic_child(builder, int(np.argmax(is_attached)))
    if not source.joint_enabled.all():
        joint = int(np.argmin(source.joint_enabled))
        raise ValueError(
            f"{builder.joint_name(joint)}: joint_enabled is false, but it is what moves "
            f"{builder.body_name(int(source.joint_child[joint]))}. Pass enabled=False when it is added, so "
            "that the body also gets a free joint, or let a joint that closes a loop be off."
        )
    unknown = ~np.isin(source.shape_type, _SUPPORTED_SHAPES)
    if unknown.any():
        shape = int(np.argmax(unknown))
        raise ValueError(
            f"{builder.shape_name(shape)}: shape_type {source.shape_type[shape]} is no geometry. "
            "Use a primitive, a mesh or a convex hull."
        )

    mover_count = np.bincount(source.joint_child, minlength=len(source.body_mass))
    if (mover_count > 1).any():
        body = int(np.argmax(mover_count > 1))
        joints = " and ".join(
            builder.joint_name(int(joint)) for joint in np.flatnonzero(source.joint_child == body)
        )
        raise ValueError(
            f"{builder.body_name(body)} is the child of {joints}, but one joint moves a body. List exactly "
            "one of them in add_articulation(); joints outside of all articulations close loops."
        )
    if (mover_count == 0).any():
        body = int(np.argmax(mover_count == 0))
        raise ValueError(
            f"{builder.body_name(body)} has no joint. Connect it by add_joint_*(), use add_body() for a "
            "body that moves freely, or add_joint_fixed(parent=-1, ...) to hold it still."
        )
    loose = source.joint_articulation < 0
    if loose.any():
        joint = int(np.argmax(loose))
        raise ValueError(
            f"{builder.joint_name(joint)} is in no articulation. List it in add_articulation([...]), "
            "with the other joints of the same mechanism."
        )


def _check_world_order(source: Snapshot) -> None:
    """Check that global entities come before the first world or after the last."""
    builder = source.builder
    inside = np.flatnonzero(source.shape_world >= 0)
    between = np.flatnonzero(source.shape_world < 0)
    between = between[(between > inside[0]) & (between < inside[-1])] if len(inside) else between[:0]
    if len(between):
        shape = int(between[0])
        raise ValueError(
            f"{builder.shape_name(shape)} belongs to no world, but stands between shapes of the worlds "
            f"{source.shape_world[inside[inside < shape][-1]]} and "
            f"{source.shape_world[inside[inside > shape][0]]}. Add what all worlds share before the first "
            "world or after the last."
        )


def check_values(source: Snapshot) -> None:
    """Check the numbers of joints, degrees of freedom and shapes.

    Raises:
        ValueError: If one is not finite, negative where it must not be, or contradicts another.
    """
    builder = source.builder
    _check_single_precision(source)
    _check_poses(source.joint_X_p, "joint_X_p", builder.joint_name, "parent_xform=")
    _check_poses(source.joint_X_c, "joint_X_c", builder.joint_name, "child_xform=")
    _check_poses(source.shape_transform, "shape_transform", builder.shape_name, "xform=")
    _check_joint_coordinates(source)
    _check_dofs(source)
    _check_shapes(source)
    if not np.isfinite(source.gravity).all():
        world = int(np.argmin(np.isfinite(source.gravity).all(axis=1)))
        raise ValueError(
            f"world '{source.world_label[world]}' (index {world}): gravity is "
            f"{source.gravity[world].tolist()} m/s², but it must be finite. Set ModelBuilder.gravity, or "
            "gravity= of begin_world()."
        )


def _check_single_precision(source: Snapshot) -> None:
    """Check that no finite number becomes infinite in the single precision of a model."""
    builder = source.builder
    largest = float(np.finfo(np.float32).max)
    for name, values in sorted(vars(source).items()):
        if not isinstance(values, np.ndarray) or values.dtype != np.float64 or not len(values):
            continue
        sound = ~(np.abs(values) > largest) | np.isinf(values)  # NaN and infinity are judged by meaning
        if sound.all():
            continue
        row = int(np.argmin(sound.reshape(len(values), -1).all(axis=1)))
        kind = name.split("_")[0]
        if kind == "joint" and len(values) == len(source.dof_joint):
            entity = builder.joint_name(int(source.dof_joint[row]))
        elif kind == "joint" and len(values) == len(source.joint_type):
            entity = builder.joint_name(row)
        elif kind in ("body", "shape"):
            entity = getattr(builder, f"{kind}_name")(row)
        else:
            entity = f"entry {row}"
        raise ValueError(
            f"{entity}: {name} is {values[row].tolist()}, which is too large: a model has numbers of single "
            f"precision, up to {largest:.2g}. Use SI units and sizes of real things."
        )


def _check_poses(poses: np.ndarray, what: str, name: Callable[[int], str], remedy: str) -> None:
    finite = np.isfinite(poses).all(axis=1)
    if not finite.all():
        index = int(np.argmin(finite))
        raise ValueError(
            f"{name(index)}: {what} is {poses[index].tolist()}, but all numbers must be finite. Check "
            f"{remedy}"
        )
    unit = np.abs(np.linalg.norm(poses[:, 3:], axis=1) - 1.0) <= QUATERNION_LENGTH_TOLERANCE
    if not unit.all():
        index = int(np.argmin(unit))
        raise ValueError(
            f"{name(index)}: {what} has the quaternion {poses[index, 3:].tolist()}, but a rotation has "
            f"length 1. Write a unit quaternion x, y, z, w, or check {remedy}"
        )


def _check_joint_coordinates(source: Snapshot) -> None:
    builder = source.builder
    for what, values, start in (
        ("joint_q", source.joint_q, source.joint_q_start),
        ("joint_qd", source.joint_qd, source.joint_qd_start),
    ):
        if not np.isfinite(values).all():
            index = int(np.argmin(np.isfinite(values)))
            joint = int(np.searchsorted(start, index, side="right")) - 1
            raise ValueError(
                f"{builder.joint_name(joint)}: {what}[{index}] is {values[index]}, but it must be "
                "finite. Write a number before finalize()."
            )
    for joint_types, offset in ((FLOATING_JOINTS, 3), ((JointType.BALL,), 0)):
        joints = np.flatnonzero(np.isin(source.joint_type, joint_types))
        quats = source.joint_q[source.joint_q_start[joints][:, None] + offset + np.arange(4)]
        unit = np.abs(np.linalg.norm(quats, axis=1) - 1.0) <= QUATERNION_LENGTH_TOLERANCE
        if not unit.all():
            row = int(np.argmin(unit))
            raise ValueError(
                f"{builder.joint_name(int(joints[row]))}: joint_q holds the quaternion "
                f"{quats[row].tolist()}, but a rotation has length 1. Write a unit quaternion x, y, z, w."
            )


def _check_numbers(source: Snapshot, entity: Entity, name: Callable[[int], str], remedy: str) -> None:
    """Check the columns of plain numbers of a kind of entity, as the schema declares them."""
    for array, spec in MODEL_ARRAYS.items():
        if spec.entity is not entity or spec.dtype is not wp.float32 or array not in COLUMN_NAMES:
            continue
        values = getattr(source, array)
        bad = spec.are_unsound(values)
        if bad.any():
            row = int(np.argmax(bad))
            need = "a number" if spec.may_be_infinite else "finite"
            bound = "" if spec.low is None else f" and >= {spec.low:g}"
            raise ValueError(
                f"{name(row)}: {array} is {values[row]}, but it must be {need}{bound}. Check "
                f"{remedy.format(array.split('_', 1)[1])}, or what was written to the array."
            )


def _check_dofs(source: Snapshot) -> None:
    builder = source.builder

    def name(dof: int) -> str:
        joint = int(source.dof_joint[dof])
        return f"{builder.joint_name(joint)}, axis {dof - source.joint_qd_start[joint]}"

    _check_numbers(source, Entity.JOINT_DOF, name, "{}= of the joint")
    _check_distances(source)
    spans = np.zeros(len(source.joint_qd), dtype=bool)
    spans[source.joint_qd_start[:-1][source.joint_type == JointType.DISTANCE]] = True
    crossed = (source.joint_limit_lower > source.joint_limit_upper) & ~spans
    if crossed.any():
        dof = int(np.argmax(crossed))
        raise ValueError(
            f"{name(dof)}: limit_lower is {source.joint_limit_lower[dof]} and limit_upper "
            f"{source.joint_limit_upper[dof]}, so no position is allowed. Swap them; for no limit use "
            "-inf and inf."
        )
    crossed = source.joint_target_lower > source.joint_target_upper
    if crossed.any():
        dof = int(np.argmax(crossed))
        raise ValueError(
            f"{name(dof)}: target_lower is {source.joint_target_lower[dof]} and target_upper "
            f"{source.joint_target_upper[dof]}, so no target is allowed. Swap them; for no bounds use -inf "
            "and inf."
        )
    length = np.linalg.norm(source.joint_axis, axis=1)
    bad = ~(np.isfinite(length) & (length > 0.0))
    if bad.any():
        dof = int(np.argmax(bad))
        raise ValueError(
            f"{name(dof)}: joint_axis is {source.joint_axis[dof].tolist()}, which has no direction. Write "
            "a finite vector that is not zero."
        )
    bad = ~np.isin(source.joint_target_mode, [int(mode) for mode in JointTargetMode])
    if bad.any():
        dof = int(np.argmax(bad))
        raise ValueError(
            f"{name(dof)}: joint_target_mode is {source.joint_target_mode[dof]}, which is no JointTargetMode "
            "(-1 to 4)."
        )
    position = np.isin(
        source.joint_target_mode, (JointTargetMode.POSITION, JointTargetMode.POSITION_VELOCITY)
    )
    scalar = ~np.isin(source.joint_type, (JointType.BALL, *FLOATING_JOINTS))[source.dof_joint]
    bad = (
        ~scalar
        & (source.joint_target_ke > 0.0)
        & (position | (source.joint_target_mode == JointTargetMode.AUTO))
    )
    if bad.any():
        dof = int(np.argmax(bad))
        kind = JointType(source.joint_type[source.dof_joint[dof]]).name.lower()
        raise ValueError(
            f"{name(dof)}: joint_target_ke is {source.joint_target_ke[dof]}, but a {kind} joint has no "
            "position drive. Set target_ke to 0; target_kd drives its velocity."
        )
    limited = np.isfinite(source.joint_limit_lower) | np.isfinite(source.joint_limit_upper)
    bad = ~scalar & limited & ~spans & ~(source.joint_limit_ke <= 0.0)
    if bad.any():
        dof = int(np.argmax(bad))
        kind = JointType(source.joint_type[source.dof_joint[dof]]).name.lower()
        raise ValueError(
            f"{name(dof)}: the limits are {source.joint_limit_lower[dof]} and "
            f"{source.joint_limit_upper[dof]}, but a {kind} joint has no limits. Use a D6 joint, whose axes "
            "have, or set joint_limit_ke to 0."
        )


def _check_distances(source: Snapshot) -> None:
    """Check the distances of distance joints, which are stored in the limits of their first dof."""
    joints = np.flatnonzero(source.joint_type == JointType.DISTANCE)
    first = source.joint_qd_start[joints]
    least, most = source.joint_limit_lower[first], source.joint_limit_upper[first]
    bad = (most == 0.0) | ((most > 0.0) & (least > most)) | np.isposinf(least)
    if bad.any():
        index = int(np.argmax(bad))
        raise ValueError(
            f"{source.builder.joint_name(int(joints[index]))}: min_distance is {least[index]} m and "
            f"max_distance {most[index]} m (joint_limit_lower and joint_limit_upper of its first axis), but "
            "no distance > 0 lies between. Negative ones are no limits; to hold two points together use "
            "add_joint_ball()."
        )


def _check_shapes(source: Snapshot) -> None:
    builder = source.builder
    _check_numbers(source, Entity.SHAPE, builder.shape_name, "the ShapeConfig")
    finite = np.isfinite(source.shape_scale).all(axis=1)
    used = np.ones((len(finite), 3), dtype=bool)
    used[np.isin(source.shape_type, (GeoType.SPHERE, GeoType.PLANE))] = (True, False, False)
    used[np.isin(source.shape_type, (GeoType.CAPSULE, GeoType.CYLINDER, GeoType.CONE))] = (True, True, False)
    meshed = np.isin(source.shape_type, (GeoType.MESH, GeoType.CONVEX_MESH, GeoType.HFIELD))
    plane = source.shape_type == GeoType.PLANE
    fits = (
        (source.shape_scale > 0.0) | ~used | (meshed[:, None] & (source.shape_scale != 0.0)) | plane[:, None]
    )
    bad = ~(finite & fits.all(axis=1)) | (plane & (source.shape_scale < 0.0).any(axis=1))
    if bad.any():
        shape = int(np.argmax(bad))
        raise ValueError(
            f"{builder.shape_name(shape)}: shape_scale is {source.shape_scale[shape].tolist()}, but a "
            f"{GeoType(source.shape_type[shape]).name} needs finite sizes > 0 (planes: >= 0, mesh "
            "factors: not 0)."
        )
    bad = meshed != (source.shape_source_index >= 0)
    bad |= source.shape_source_index >= len(builder.meshes)
    if bad.any():
        shape = int(np.argmax(bad))
        raise ValueError(
            f"{builder.shape_name(shape)}: a {GeoType(source.shape_type[shape]).name} with "
            f"shape_source_index {source.shape_source_index[shape]}, but meshes, convex hulls and "
            f"height fields need the index of one (0 to {len(builder.meshes) - 1}), primitives -1."
        )
