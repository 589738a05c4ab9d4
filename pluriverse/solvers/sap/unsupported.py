"""What a model has for MuJoCo only, in the namespace `mujoco`: SolverSAP says once that it leaves it out."""

import warnings

import numpy as np

from pluriverse.model import Model
from pluriverse.model.attributes import find_attribute
from pluriverse.mujoco_attributes.choices import SPATIAL, CtrlSource, TrnType
from pluriverse.solvers.sap.tendon_rows import acting_actuators
from pluriverse.types import JointTargetMode, ShapeFlags
from pluriverse.warnings import PluriverseWarning


class UnsupportedFeatureWarning(PluriverseWarning):
    """A model has forces that only another solver knows."""


def warn_of_unsupported(model: Model) -> None:
    """Warn if a model has spatial tendons, general actuators and the like, which SolverSAP leaves out."""
    counts = {
        "spatial tendons": _count_spatial(model),
        "fixed tendons with dry friction or armature": _count(
            model, "mujoco:tendon_frictionloss", "mujoco:tendon_armature"
        ),
        "constraints between tendons": model.custom_frequency_counts.get("mujoco:tendon_equality", 0),
        "general actuators": _count_actuators(model),
        "contact pairs that their shapes do not make": _count_pairs(model),
        "joint axes with a spring of their own": _count(model, "mujoco:dof_passive_stiffness"),
        "worlds with a fluid": _count(model, "mujoco:density", "mujoco:viscosity"),
    }
    found = [f"{count} {what}" for what, count in counts.items() if count]
    if found:
        warnings.warn(
            f"SolverSAP: the model has {', '.join(found)} in model.mujoco, which act in SolverMuJoCo only. "
            "Use that solver; without register_custom_attributes(), importers make drives of actuators where "
            "they can.",
            UnsupportedFeatureWarning,
            stacklevel=4,
        )


def _count(model: Model, *keys: str) -> int:
    """Return how many entities have an attribute that is not zero, of those named by `keys`."""
    arrays = [find_attribute(model, key) for key in keys]
    found = [array.numpy() != 0.0 for array in arrays if array is not None]
    return int(np.count_nonzero(np.logical_or.reduce(found))) if found else 0


def _count_pairs(model: Model) -> int:
    """Return how many contact pairs have shapes that do not collide, or rub otherwise than the pair says."""
    ends = [find_attribute(model, f"mujoco:pair_geom{number}") for number in (1, 2)]
    if model.custom_frequency_counts.get("mujoco:pair", 0) == 0 or None in ends:
        return 0
    friction, condim = (model.custom_arrays[f"mujoco:pair_{name}"].numpy() for name in ("friction", "condim"))
    sliding = np.where(condim[:, None] == 1, 0.0, friction[:, :2])
    shapes = np.stack([end.numpy() for end in ends], axis=1)
    collides = (shapes >= 0) & (model.shape_flags.numpy()[shapes] & ShapeFlags.COLLIDE_SHAPES != 0)
    rubs_alike = np.isclose(model.shape_material_mu.numpy()[shapes], sliding)
    return int(np.count_nonzero(~(collides & rubs_alike).all(axis=1)))


def _count_actuators(model: Model) -> int:
    """Return how many actuators act through `control.mujoco.ctrl` alone.

    Motors of joints with a drive are not among them: `Control.joint_f` and `joint_act` command these in every
    solver. Nor are those on fixed tendons.
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
    return int(np.count_nonzero(is_direct & ~is_effort & ~acting_actuators(model)))


def _count_spatial(model: Model) -> int:
    kinds = find_attribute(model, "mujoco:tendon_type")
    return 0 if kinds is None else int(np.count_nonzero(kinds.numpy() == SPATIAL))
