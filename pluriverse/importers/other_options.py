"""Options of Newton's importers: accepted so that scripts run, with a warning if they have no effect."""

import warnings
from collections.abc import Mapping
from typing import Any

from pluriverse.config import verbosity
from pluriverse.geometry import MESH_HULL_VERTEX_COUNT
from pluriverse.importers.usd_resolvers import check_resolvers
from pluriverse.warnings import AssetWarning

_DRIVE_MODES = (
    "a drive whose gains and target velocity are all given follows both; set builder.joint_target_mode"
)
_MARGINS = "margin and gap are read as MuJoCo means them"
_MASSLESS = "a massless base is kept where it is fixed; use collapse_fixed_joints=True to merge it"
_CONSTRAINTS = "equality constraints always become those of the model, which both solvers hold"

# An option of a script: its neutral value, and why other values change nothing here.
_WITHOUT_MEANING: Mapping[str, Mapping[str, tuple[Any, str]]] = {
    "add_mjcf": {
        "collapse_massless_fixed_root": (False, _MASSLESS),
        "convert_3d_hinge_to_ball_joints": (
            False,
            "three hinges keep their own coordinates, limits and drives",
        ),
        "convert_mjc_equality_constraints": (True, _CONSTRAINTS),
        "ctrl_direct": (
            False,
            "actuators become drives, which follow the targets of `Control`; those that no drive can express "
            "take control.mujoco.ctrl, as all do after SolverMuJoCo.register_custom_attributes",
        ),
        "legacy_margin_gap": (False, _MARGINS),
        "parse_mujoco_options": (
            True,
            "options of a world are always kept, those of the whole model only where "
            "SolverMuJoCo.register_custom_attributes was called",
        ),
    },
    "add_urdf": {
        "collapse_massless_fixed_root": (False, _MASSLESS),
        "force_position_velocity_actuation": (False, _DRIVE_MODES),
    },
    "add_usd": {
        "convert_mjc_equality_constraints": (True, _CONSTRAINTS),
        "legacy_margin_gap": (False, _MARGINS),
        "parse_mujoco_options": (
            True,
            "options of the stage are only kept where SolverMuJoCo.register_custom_attributes was called",
        ),
        "return_deformable_results": (False, "there are no deformable bodies"),
    },
}

OTHER_OPTIONS = {importer: ("verbose", *options) for importer, options in _WITHOUT_MEANING.items()}
OTHER_OPTIONS["add_usd"] += ("schema_resolvers",)
"""Options that scripts may pass to each importer besides its own."""


def read_other_options(importer: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the options of the importer itself, and whether to print its report.

    Warns of each option that has no effect here.

    Args:
        importer: Name of the method, for example `add_mjcf`.
        options: The arguments of the call.
    """
    own = dict(options)
    is_verbose = bool(own.pop("verbose", verbosity()))
    check_resolvers(own.pop("schema_resolvers", None))
    if own.get("mesh_maxhullvert", 0) is None:
        own["mesh_maxhullvert"] = MESH_HULL_VERTEX_COUNT
    for name, (neutral, reason) in _WITHOUT_MEANING[importer].items():
        value = own.pop(name, neutral)
        if bool(value) != neutral:
            warnings.warn(
                f"{importer}: {name}={value!r} changes nothing: {reason}.", AssetWarning, stacklevel=5
            )
    return own, is_verbose
