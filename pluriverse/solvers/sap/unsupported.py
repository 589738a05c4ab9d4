"""What a model has for MuJoCo only, in the namespace `mujoco`: SolverSAP says once that it leaves it out."""

import warnings

import numpy as np

from pluriverse.model import Model
from pluriverse.model.attributes import find_attribute
from pluriverse.mujoco_attributes.choices import FIXED, SPATIAL, CtrlSource, TrnType
from pluriverse.solvers.sap.tendon_rows import (
    acting_actuators,
    host_column,
    idle_actuators,
    joint_rows,
    simulated_tendons,
)
from pluriverse.types import JointTargetMode, ShapeFlags
from pluriverse.warnings import PluriverseWarning

# Bounds of joints [m or rad] from this value on are none, as the builder's default.
LIMIT_NONE = 1e9


class UnsupportedFeatureWarning(PluriverseWarning):
    """A model has forces that only another solver knows."""


def warn_of_unsupported(model: Model) -> None:
    """Warn if a model has spatial tendons, general actuators and the like, which SolverSAP leaves out."""
    found = describe_unsupported(model)
    if found:
        remedy = "Use that solver"
        if _count_actuators(model):
            remedy += (
                "; without register_custom_attributes(), importers make drives of actuators where they can"
            )
        warnings.warn(f"SolverSAP: {found}. {remedy}.", UnsupportedFeatureWarning, stacklevel=4)


def describe_unsupported(model: Model) -> str:
    """Return what of a model only SolverMuJoCo simulates, as a text without a remedy; empty if nothing."""
    counts = {
        "spatial tendons": _count_spatial(model),
        "fixed tendons over ball or free joints": _count_over_rotations(model),
        "fixed tendons with dry friction or armature": _count(
            model, "mujoco:tendon_frictionloss", "mujoco:tendon_armature"
        ),
        "constraints between tendons": model.custom_frequency_counts.get("mujoco:tendon_equality", 0),
        "general actuators": _count_actuators(model),
        "contact pairs of shapes that do not collide": _count_idle_pairs(model),
        "joint axes with a spring of their own": _count(model, "mujoco:dof_passive_stiffness"),
        "joint limits with a margin": _count_margins(model),
        "worlds with a fluid": _count(model, "mujoco:density", "mujoco:viscosity"),
    }
    found = [f"{count} {what}" for what, count in counts.items() if count]
    parts = []
    if found:
        parts.append(f"the model has {', '.join(found)} in model.mujoco, which act in SolverMuJoCo only")
    rubbing = _count_rubbing_pairs(model)
    if rubbing:
        parts.append(
            f"the shapes of {rubbing} contact pairs in model.mujoco touch with their own friction, in "
            "SolverMuJoCo with that of the pair"
        )
    exceeding = _count_pulled_past_limits(model)
    if exceeding:
        parts.append(
            f"the effort limit of {exceeding} joint axes bounds their drives, in SolverMuJoCo also what "
            "actuators of tendons add"
        )
    return "; ".join(parts)


def _count(model: Model, *keys: str) -> int:
    """Return how many entities have an attribute that is not zero, of those named by `keys`."""
    arrays = [find_attribute(model, key) for key in keys]
    found = [array.numpy() != 0.0 for array in arrays if array is not None]
    return int(np.count_nonzero(np.logical_or.reduce(found))) if found else 0


def _pairs(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return the shapes of each contact pair, shape [pair, 2], and whether both collide, shape [pair]."""
    ends = [find_attribute(model, f"mujoco:pair_geom{number}") for number in (1, 2)]
    if model.custom_frequency_counts.get("mujoco:pair", 0) == 0 or None in ends:
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=bool)
    shapes = np.stack([end.numpy() for end in ends], axis=1)
    flags = model.shape_flags.numpy()[shapes]
    return shapes, ((shapes >= 0) & (flags & ShapeFlags.COLLIDE_SHAPES != 0)).all(axis=1)


def _count_idle_pairs(model: Model) -> int:
    """Return how many contact pairs have a shape that does not collide."""
    return int(np.count_nonzero(~_pairs(model)[1]))


def _count_rubbing_pairs(model: Model) -> int:
    """Return how many contact pairs have shapes that touch, but rub otherwise than the pair says."""
    shapes, collides = _pairs(model)
    if not len(shapes):
        return 0
    friction, condim = (model.custom_arrays[f"mujoco:pair_{name}"].numpy() for name in ("friction", "condim"))
    sliding = np.where(condim[:, None] == 1, 0.0, friction[:, :2])
    rubs_alike = np.isclose(model.shape_material_mu.numpy()[shapes], sliding).all(axis=1)
    return int(np.count_nonzero(collides & ~rubs_alike))


def _count_actuators(model: Model) -> int:
    """Return how many actuators act through `control.mujoco.ctrl` alone.

    Motors of joints with a drive are not among them: `Control.joint_f` and `joint_act` command these in every
    solver. Nor are those on fixed tendons, and those that exert nothing.
    """
    source = find_attribute(model, "mujoco:ctrl_source")
    if source is None or source.size == 0:
        return 0
    kind, target, dynamics, bias = (
        model.custom_arrays[f"mujoco:actuator_{name}"].numpy()
        for name in ("trntype", "trnid", "dyntype", "biastype")
    )
    on_joint = np.isin(kind, (TrnType.JOINT, TrnType.JOINT_IN_PARENT))
    dof = np.where(on_joint, target[:, 0], -1)
    mode = np.append(model.joint_target_mode.numpy(), JointTargetMode.NONE)[dof]
    is_effort = (mode != JointTargetMode.NONE) & (dynamics == 0) & (bias == 0)
    is_direct = source.numpy() == CtrlSource.CTRL_DIRECT
    return int(np.count_nonzero(is_direct & ~is_effort & ~acting_actuators(model) & ~idle_actuators(model)))


def _count_spatial(model: Model) -> int:
    kinds = find_attribute(model, "mujoco:tendon_type")
    return 0 if kinds is None else int(np.count_nonzero(kinds.numpy() == SPATIAL))


def _count_over_rotations(model: Model) -> int:
    if not model.custom_frequency_counts.get("mujoco:tendon", 0):
        return 0
    is_fixed, joints = (
        model.custom_arrays[f"mujoco:tendon_{name}"].numpy() for name in ("type", "joint_num")
    )
    return int(np.count_nonzero((is_fixed == FIXED) & (joints > 0) & ~simulated_tendons(model)))


def _count_pulled_past_limits(model: Model) -> int:
    """Return on how many axes actuators of tendons act whose effort limit bounds the sum of all actuators."""
    is_summed = find_attribute(model, "mujoco:jnt_actfrclimited")
    actuators = np.flatnonzero(acting_actuators(model))
    if is_summed is None or not len(actuators):
        return 0
    tendons = np.unique(find_attribute(model, "mujoco:actuator_trnid").numpy()[actuators, 0])
    entries = joint_rows(model, tendons)[1]
    first = model.joint_qd_start.numpy()[host_column(model, "joint")[entries]]
    dof = host_column(model, "joint_dof")[entries]
    pulled = np.unique(np.where(dof >= 0, dof, first))
    return int(np.count_nonzero(is_summed.numpy().reshape(-1)[pulled]))


def _count_margins(model: Model) -> int:
    """Return how many axes have a limit that pushes before it is reached."""
    margin = find_attribute(model, "mujoco:limit_margin")
    if margin is None:
        return 0
    lower, upper = model.joint_limit_lower.numpy(), model.joint_limit_upper.numpy()
    is_limited = (lower > -LIMIT_NONE) | (upper < LIMIT_NONE)
    return int(np.count_nonzero(is_limited & (margin.numpy() != 0.0)))
