"""Step thousands of independent rigid-body worlds at once, all of them different.

`ModelBuilder` describes worlds on the host, `ModelBuilder.finalize` makes a `Model` of them on a device, and
`Simulation`, or a loop over `CollisionPipeline.collide` and `SolverSAP.step`, moves its `State`.

The names below load on first use, so that importing the package costs next to nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

from pluriverse.garbage_collection import paused_collection

if TYPE_CHECKING:
    from pluriverse.builder import JointDofConfig, ShapeConfig
    from pluriverse.collision import CollisionPipeline, eval_rigid_contact_kinematics
    from pluriverse.dynamics import (
        eval_fk,
        eval_ik,
        eval_inverse_dynamics,
        eval_inverse_dynamics_force,
        eval_inverse_dynamics_passive,
        eval_jacobian,
        eval_loops,
        eval_mass_matrix,
        eval_momenta,
        eval_world_momenta,
    )
    from pluriverse.geometry import Appearance, Heightfield, Mesh, Texture
    from pluriverse.model import Contacts, Control, Model, State
    from pluriverse.model_builder import ModelBuilder
    from pluriverse.render import draw
    from pluriverse.scene import load_scene
    from pluriverse.simulation import Simulation
    from pluriverse.solvers.mujoco import SolverMuJoCo
    from pluriverse.solvers.sap import SolverSAP
    from pluriverse.types import (
        Axis,
        BodyFlags,
        Entity,
        EqType,
        GeoType,
        JointTargetMode,
        JointType,
        ModelFlags,
        ShapeFlags,
    )
    from pluriverse.viewer import view

__version__ = "0.1.0"

_LAZY_MODULES = {
    "Appearance": "pluriverse.geometry",
    "Axis": "pluriverse.types",
    "BodyFlags": "pluriverse.types",
    "CollisionPipeline": "pluriverse.collision",
    "Contacts": "pluriverse.model",
    "Control": "pluriverse.model",
    "Entity": "pluriverse.types",
    "EqType": "pluriverse.types",
    "GeoType": "pluriverse.types",
    "Heightfield": "pluriverse.geometry",
    "JointDofConfig": "pluriverse.builder",
    "JointTargetMode": "pluriverse.types",
    "JointType": "pluriverse.types",
    "Mesh": "pluriverse.geometry",
    "Model": "pluriverse.model",
    "ModelBuilder": "pluriverse.model_builder",
    "ModelFlags": "pluriverse.types",
    "ShapeConfig": "pluriverse.builder",
    "ShapeFlags": "pluriverse.types",
    "Simulation": "pluriverse.simulation",
    "SolverMuJoCo": "pluriverse.solvers.mujoco",
    "SolverSAP": "pluriverse.solvers.sap",
    "State": "pluriverse.model",
    "Texture": "pluriverse.geometry",
    "draw": "pluriverse.render",
    "eval_fk": "pluriverse.dynamics",
    "eval_ik": "pluriverse.dynamics",
    "eval_inverse_dynamics": "pluriverse.dynamics",
    "eval_inverse_dynamics_force": "pluriverse.dynamics",
    "eval_inverse_dynamics_passive": "pluriverse.dynamics",
    "eval_jacobian": "pluriverse.dynamics",
    "eval_loops": "pluriverse.dynamics",
    "eval_mass_matrix": "pluriverse.dynamics",
    "eval_momenta": "pluriverse.dynamics",
    "eval_rigid_contact_kinematics": "pluriverse.collision",
    "eval_world_momenta": "pluriverse.dynamics",
    "load_scene": "pluriverse.scene",
    "view": "pluriverse.viewer",
}
"""Module that each public name is loaded from on first use."""

_FOREIGN_NAMES = {
    "AxisType": "pluriverse.types",
    "MAXVAL": "pluriverse.types",
    "StateFlags": "pluriverse.types",
    "use_coord_layout_targets": "pluriverse.types",
}
"""Names that only scripts written for Newton look for here."""

__all__ = [
    "Appearance",
    "Axis",
    "BodyFlags",
    "CollisionPipeline",
    "Contacts",
    "Control",
    "Entity",
    "EqType",
    "GeoType",
    "Heightfield",
    "JointDofConfig",
    "JointTargetMode",
    "JointType",
    "Mesh",
    "Model",
    "ModelBuilder",
    "ModelFlags",
    "ShapeConfig",
    "ShapeFlags",
    "Simulation",
    "SolverMuJoCo",
    "SolverSAP",
    "State",
    "Texture",
    "draw",
    "eval_fk",
    "eval_ik",
    "eval_inverse_dynamics",
    "eval_inverse_dynamics_force",
    "eval_inverse_dynamics_passive",
    "eval_jacobian",
    "eval_loops",
    "eval_mass_matrix",
    "eval_momenta",
    "eval_rigid_contact_kinematics",
    "eval_world_momenta",
    "load_scene",
    "view",
]


_LAZY_ROOMS = (
    "actuators",
    "cluster",
    "config",
    "envs",
    "examples",
    "geometry",
    "gymapi",
    "ik",
    "importers",
    "math",
    "randomization",
    "recording",
    "render",
    "scene",
    "selection",
    "sensors",
    "solvers",
    "tensors",
    "types",
    "usd",
    "utils",
    "variants",
    "viewer",
    "warnings",
)
"""Modules below this one that are attributes of it without being imported."""


def __getattr__(name: str) -> Any:
    if name in _LAZY_ROOMS:
        with paused_collection():
            return importlib.import_module(f"pluriverse.{name}")
    module = _LAZY_MODULES.get(name) or _FOREIGN_NAMES.get(name)
    if module is None:
        from pluriverse.newton_names import missing

        raise missing("", name, kind="module")
    with paused_collection():
        value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
