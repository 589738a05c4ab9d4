"""Finalize: make a model from a builder.

The steps: take the columns, check the values, find the worlds of equal structure, sort each structure and
pair its shapes, check the masses, compute the initial poses, put everything on the device.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.custom_model import put_custom_attributes
from pluriverse.builder.custom_once import warn_of_values_of_others
from pluriverse.builder.distance_joints import add_distance_constraints
from pluriverse.builder.equality_model import EqualityColumns
from pluriverse.builder.loop_coordinates import find_loop_coordinates
from pluriverse.builder.loop_joints import replace_loop_joints
from pluriverse.builder.mass_matrix_validation import check_mass_matrix
from pluriverse.builder.mass_validation import NothingToAccelerateError, check_masses
from pluriverse.builder.plane_validation import warn_of_repeated_ground
from pluriverse.builder.snapshot import COLUMN_NAMES, Snapshot
from pluriverse.builder.structure import build_templates
from pluriverse.builder.tables import BuilderTables
from pluriverse.builder.validation import check_articulations, check_structure, check_values
from pluriverse.geometry.shape_bounds import compute_shape_bounds
from pluriverse.model import Model
from pluriverse.model.batches import make_batches
from pluriverse.model.kinematics import eval_initial_kinematics
from pluriverse.model.schema import MODEL_ARRAYS
from pluriverse.model.topology import make_topology
from pluriverse.types import BodyFlags, ShapeFlags

# Columns of builders from which arrays of the model of the same name are computed.
_COMPUTED = ("body_q", "joint_target_q")


def make_model(builder: BuilderTables, device: Any, make_pipeline: Callable[[Model], Any]) -> Model:
    """Return the model of everything in `builder`.

    Args:
        builder: The tables.
        device: Device of the model.
        make_pipeline: Makes the collision pipeline of a model for `Model.collide`.

    Raises:
        RuntimeError: If a world is still open.
        ValueError: If the description is not a valid model.
    """
    if builder.current_world >= 0:
        raise RuntimeError(
            f"finalize: world {builder.current_world} ('{builder.world_label[builder.current_world]}') is "
            "still open. Call end_world() first."
        )
    check_articulations(builder)
    builder, cut = replace_loop_joints(builder)
    source = Snapshot(add_distance_constraints(builder))
    check_structure(source)
    source.drop_floating_drives()
    check_values(source)
    source.decide_target_modes()
    source.normalize()
    warn_of_repeated_ground(source)
    warn_of_values_of_others(source)
    equality = EqualityColumns(source)
    equality.check()
    templates, world_template = build_templates(source, equality.structure())
    equality.check_structure(templates)
    joint_depth, body_weld = _flatten(source, templates)
    body_q, body_qd = eval_initial_kinematics(source, joint_depth)
    if len(cut.joint):
        find_loop_coordinates(source, cut, body_q, body_qd)
        body_q, body_qd = eval_initial_kinematics(source, joint_depth)
    model = Model(device, make_pipeline)
    model.request_state_attributes(*builder.requested_state_attributes)
    try:
        slender = check_masses(source, body_q, body_weld)
        folded = check_mass_matrix(source, joint_depth, body_q, body_weld)
        model.single_precision_obstacle = slender or folded
    except NothingToAccelerateError as error:
        # Poses and Jacobians need no masses; solvers refuse such a model.
        model.dynamics_obstacle = str(error)
    _put_counts(model, source)
    _put_worlds(model, source)
    equality.complete(body_q)
    _put_columns(model, source)
    _put_bodies(model, source, body_q, body_qd)
    _put_joints(model, source)
    _put_articulations(model, source)
    _put_shapes(model, source)
    equality.put(model)
    model.templates, model.world_template = templates, world_template
    first = {name: source.ranges[name].bounds[:-1] for name in ("body", "joint", "coord", "dof", "shape")}
    model.topology, model.world_row_count, model.tree_count = make_topology(
        templates, world_template, first, device
    )
    model.worlds = _integers(np.arange(source.world_count), device)
    model.batches = make_batches(templates, device)
    model.connect_targets()
    put_custom_attributes(model, source.builder)
    # If there are kinematic bodies, steps read the flags, so these may change.
    model.guard_structure(live=("body_flags",) if model.has_kinematic_bodies else ())
    return model


def _flatten(source: Snapshot, templates: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return, for all worlds, the depth of each joint and the root of each group of welded bodies."""
    joint_depth = np.zeros(len(source.joint_type), dtype=np.int64)
    body_weld = np.zeros(len(source.body_mass), dtype=np.int64)
    for template in templates:
        first_joint = source.ranges["joint"].bounds[template.worlds][:, None]
        first_body = source.ranges["body"].bounds[template.worlds][:, None]
        joint_depth[first_joint + template.node_joint] = template.node_depth
        body_weld[first_body + np.arange(template.body_count)] = first_body + template.body_weld
    return joint_depth, body_weld


def _put_counts(model: Model, source: Snapshot) -> None:
    model.world_count = source.world_count
    model.body_count = len(source.body_mass)
    model.joint_count = len(source.joint_type)
    model.joint_coord_count = len(source.joint_q)
    model.joint_dof_count = len(source.joint_qd)
    model.joint_constraint_count = int(source.ranges["constraint"].published[-1])
    model.articulation_count = len(source.articulation_world)
    model.shape_count = len(source.shape_type)
    model.particle_count = 0


def _put_worlds(model: Model, source: Snapshot) -> None:
    device = model.device
    model.gravity = _to_device(source.gravity, wp.vec3, device)
    model.up_axis = source.builder.up_axis
    model.world_label = source.world_label
    starts = {name: _integers(ranges.published, device) for name, ranges in source.ranges.items()}
    model.body_world_start = starts["body"]
    model.shape_world_start = starts["shape"]
    model.joint_world_start = starts["joint"]
    model.articulation_world_start = starts["articulation"]
    model.joint_dof_world_start = starts["dof"]
    model.joint_coord_world_start = starts["coord"]
    model.joint_constraint_world_start = starts["constraint"]
    model.particle_world_start = _integers(np.zeros(source.world_count + 2), device)


def _put_columns(model: Model, source: Snapshot) -> None:
    """Copy the columns to the device, as the arrays that the schema declares."""
    for name in COLUMN_NAMES:
        if name in MODEL_ARRAYS and name not in _COMPUTED:
            setattr(model, name, _to_device(getattr(source, name), MODEL_ARRAYS[name].dtype, model.device))


def _put_bodies(model: Model, source: Snapshot, body_q: np.ndarray, body_qd: np.ndarray) -> None:
    model.body_q = _to_device(body_q, wp.transform, model.device)
    model.body_qd = _to_device(body_qd, wp.spatial_vectorf, model.device)
    model.has_kinematic_bodies = bool((source.body_flags == BodyFlags.KINEMATIC).any())
    model.body_label = list(source.builder.body_label)


def _put_joints(model: Model, source: Snapshot) -> None:
    model.joint_q_start = _integers(source.joint_q_start, model.device)
    model.joint_qd_start = _integers(source.joint_qd_start, model.device)
    model.joint_label = list(source.builder.joint_label)


def _put_articulations(model: Model, source: Snapshot) -> None:
    device = model.device
    counts = np.bincount(source.joint_articulation, minlength=model.articulation_count)
    model.articulation_start = _integers(np.concatenate([[0], np.cumsum(counts)]), device)
    model.articulation_joint = _integers(np.argsort(source.joint_articulation, kind="stable"), device)
    model.articulation_label = list(source.builder.articulation_label)


def _put_shapes(model: Model, source: Snapshot) -> None:
    device = model.device
    required = int(ShapeFlags.HYDROELASTIC | ShapeFlags.COLLIDE_SHAPES)
    model.has_hydroelastic_shapes = bool((source.shape_flags & required == required).any())
    model.shape_enabled = wp.ones(model.shape_count, dtype=wp.bool, device=device)
    model.meshes = list(source.builder.meshes)
    model.appearances = list(source.builder.appearances)
    lower, upper, radius = compute_shape_bounds(
        source.shape_type, source.shape_scale, source.shape_source_index, model.meshes
    )
    model.shape_aabb_lower, model.shape_aabb_upper = (
        _to_device(corner, wp.vec3, device) for corner in (lower, upper)
    )
    model.shape_collision_radius = _to_device(radius, wp.float32, device)
    model.shape_label = list(source.builder.shape_label)


def _integers(values: np.ndarray, device: Any) -> Any:
    return _to_device(values, wp.int32, device)


def _to_device(values: np.ndarray, dtype: Any, device: Any) -> Any:
    """Return an array on the device from values in double precision."""
    on_host = {wp.int32: np.int32, wp.bool: np.bool_}.get(dtype, np.float32)
    return wp.array(np.ascontiguousarray(values, dtype=on_host), dtype=dtype, device=device)
