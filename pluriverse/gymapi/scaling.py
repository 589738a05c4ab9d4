"""Scaling: give an actor another size at the same density.

With the factor s between the sizes, lengths (shapes, centres of mass, joint frames, linear positions and
their limits) change by s, masses by s^3 and inertias by s^5. Gains change like the inertia that they act on,
so that drives stay as quick and as damped as they were: s^5 about a hinge, s^3 along a slide. In joint angles
an actor without gravity then moves exactly as at its old size.
"""

import numpy as np

from pluriverse.gymapi.drives import ROWS, drive_rows
from pluriverse.gymapi.enums import DofType
from pluriverse.gymapi.scene import Actor
from pluriverse.gymapi.store import read, write
from pluriverse.types import EqType, GeoType

GAINS = ("stiffness", "damping", "effort", "friction", "armature")
"""Properties of degrees of freedom that change with the inertia."""


def scale_actor(actor: Actor, scale: float, *, gains: bool) -> None:
    """Give an actor the size `scale` times that of its asset. Its root stays where it is."""
    factor = scale / actor.scale
    asset = actor.asset
    builder = asset.builder
    actor.scale = float(scale)
    if asset.shape_count:
        transform = read(actor, "shape_transform").reshape(-1, 7)
        transform[:, :3] *= factor
        write(actor, "shape_transform", transform)
        size = read(actor, "shape_scale").reshape(-1, 3)
        size[builder.shape_type != GeoType.PLANE] *= factor
        write(actor, "shape_scale", size)
    for watcher in actor.env.sim.shape_watchers:
        watcher.rescale(actor)
    write(actor, "body_mass", read(actor, "body_mass") * factor**3)
    write(actor, "body_inertia", read(actor, "body_inertia") * factor**5)
    write(actor, "body_com", read(actor, "body_com") * factor)
    has_parent = builder.joint_parent >= 0
    parent_frame = read(actor, "joint_X_p").reshape(-1, 7)
    child_frame = read(actor, "joint_X_c").reshape(-1, 7)
    root_frame = parent_frame[asset.root_joint].copy()
    parent_frame[has_parent, :3] *= factor
    child_frame[:, :3] *= factor
    parent_frame[asset.root_joint] = root_frame
    write(actor, "joint_X_p", parent_frame)
    write(actor, "joint_X_c", child_frame)
    _scale_couplings(actor, factor)
    _scale_positions(actor, factor)
    _scale_dofs(actor, factor, gains)


def _scale_couplings(actor: Actor, factor: float) -> None:
    """Scale the polynomials by which joints follow others (`<mimic>`): y = sum of c_k x^k."""
    builder = actor.asset.builder
    joints = [builder.equality_constraint_joint1, builder.equality_constraint_joint2]
    coupled = np.flatnonzero(builder.equality_constraint_type == EqType.JOINT)
    if not len(coupled):
        return
    # The last entry stands for no joint. For a joint with linear and angular axes, the axis decides.
    linear = np.append(builder.joint_dof_dim[:, 0], 0)
    axes = [builder.equality_constraint_joint1_axis, builder.equality_constraint_joint2_axis]
    follows, leads = (
        axis[coupled] < linear[joint[coupled]] for joint, axis in zip(joints, axes, strict=True)
    )
    rows = read(actor, "equality_constraint_polycoef").reshape(-1, 5)
    powers = follows[:, None].astype(int) - leads[:, None] * np.arange(5)
    rows[coupled] *= float(factor) ** powers
    write(actor, "equality_constraint_polycoef", rows)


def _scale_positions(actor: Actor, factor: float) -> None:
    """Scale positions, velocities and targets of slides."""
    asset = actor.asset
    slides = np.array([dof.type is DofType.DOF_TRANSLATION for dof in asset.dofs], dtype=bool)
    if not slides.any():
        return
    for name, entries in (
        ("joint_q", asset.dof_coord[slides]),
        ("joint_qd", asset.dof_index[slides]),
        ("joint_target_pos", asset.dof_index[slides]),
        ("joint_target_vel", asset.dof_index[slides]),
    ):
        rows = read(actor, name)
        rows[entries] *= factor
        write(actor, name, rows)


def _scale_dofs(actor: Actor, factor: float, gains: bool) -> None:
    asset = actor.asset
    if asset.dof_count == 0:
        return
    slides = np.array([dof.type is DofType.DOF_TRANSLATION for dof in asset.dofs], dtype=bool)
    properties = actor.dof_properties.copy()
    for name in ("lower", "upper", "velocity"):
        properties[name] = _product(properties[name], np.where(slides, factor, 1.0))
    if gains:
        for name in GAINS:
            properties[name] = _product(properties[name], np.where(slides, factor**3, factor**5))
        # A force along a slide also scales with the longer distance.
        properties["effort"] = _product(properties["effort"], np.where(slides, factor, 1.0))
        properties["friction"] = _product(properties["friction"], np.where(slides, factor, 1.0))
    set_dof_properties(actor, properties)


def _product(values: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return products; values that mean "no limit" stay."""
    unlimited = ~(np.abs(values) < np.finfo(np.float32).max)
    return np.where(unlimited, values, np.where(unlimited, 0.0, values) * factor).astype(np.float32)


def set_dof_properties(actor: Actor, properties: np.ndarray) -> None:
    """Make checked properties those of the degrees of freedom of an actor."""
    sim = actor.env.sim
    actor.dof_properties = properties
    dt = sim.params.dt / sim.params.substeps
    derived = drive_rows(properties, actor.asset.dof_ball_axis, dt)
    for name in ROWS:
        rows = read(actor, name)
        if not np.array_equal(rows[actor.asset.dof_index], derived[name]):
            rows[actor.asset.dof_index] = derived[name]
            write(actor, name, rows)
    if sim.runtime is not None:
        properties = actor.dof_properties
        sim.runtime.set_drive_modes(actor.dof_start, properties["driveMode"], properties["stiffness"])
