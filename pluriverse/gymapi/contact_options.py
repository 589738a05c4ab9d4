"""Contact options: solver options that follow from the materials and parameters of a sim."""

from typing import Any

import numpy as np

from pluriverse.model import Model
from pluriverse.model_builder import ModelBuilder


def is_mujoco(params: Any) -> bool:
    """Return whether the parameters of a sim choose `SolverMuJoCo`."""
    return str(params.solver).lower().removeprefix("solver") == "mujoco"


def has_friction_moments(model: Model) -> bool:
    """Return whether a shape has rolling or torsional friction."""
    return any(
        bool((coefficients.numpy() > 0.0).any())
        for coefficients in (model.shape_material_mu_rolling, model.shape_material_mu_torsional)
    )


def contact_options(model: Model, params: Any) -> dict[str, Any]:
    """Return keyword options of the solver of a sim. `SolverMuJoCo` has none, and warns of restitution."""
    if is_mujoco(params):
        return {}
    return {
        "restitution_threshold": float(params.physx.bounce_threshold_velocity),
        "torsional_friction": has_friction_moments(model),
    }


def let_shapes_turn(builder: ModelBuilder) -> None:
    """Set MuJoCo's contact dimension of shapes with torsional or rolling friction."""
    rolling, torsional = builder.shape_material_mu_rolling > 0.0, builder.shape_material_mu_torsional > 0.0
    shapes = np.flatnonzero(rolling | torsional)
    if len(shapes):
        builder.add_custom_attribute(
            ModelBuilder.CustomAttribute(
                "condim",
                int,
                "shape",
                namespace="mujoco",
                default=3,
                values={int(shape): 6 if rolling[shape] else 4 for shape in shapes},
            )
        )
