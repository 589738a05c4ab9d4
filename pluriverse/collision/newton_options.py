"""Arguments of Newton's collision pipeline: taken, with a warning where they ask for what cannot be."""

import warnings
from collections.abc import Mapping
from typing import Any

from pluriverse.warnings import PluriverseWarning

_CAPACITY = "memory is sized by the model, and contacts that do not fit are reported"
_SOFT = "there are no soft bodies"
_NARROW = "the narrow phase is not exchanged"
_MATCHING = "contacts are matched from step to step inside of the solvers"

# Argument, the values that ask for nothing, and why others change nothing.
_OPTIONS: Mapping[str, tuple[tuple[Any, ...], str]] = {
    "max_triangle_pairs": ((), _CAPACITY),
    "shape_pairs_max": ((), _CAPACITY),
    "soft_contact_max": ((), _SOFT),
    "soft_contact_margin": ((), _SOFT),
    "contact_reduction_hashtable_size_factor": ((), _CAPACITY),
    "verify_buffers": ((True, False), _CAPACITY),
    "contact_matching_pos_threshold": ((), _MATCHING),
    "contact_matching_normal_dot_threshold": ((), _MATCHING),
    "shape_pairs_filtered": ((None,), "candidate pairs are those of the model; filter pairs in the builder"),
    "include_static_kinematic_pairs": (
        (None, False),
        "what is prescribed and what stands still do not push each other",
    ),
    "enable_rigid_soft_full_surface_contact": ((None, False), _SOFT),
    "narrow_phase": ((None,), _NARROW),
    "sdf_hydroelastic_config": ((None,), "hydroelastic contact is set by ShapeConfig(is_hydroelastic=True)"),
    "contact_matching": ((None, False, "disabled"), _MATCHING),
    "contact_report": ((None, False), "forces and points of contacts are in Contacts"),
    "speculative_config": ((None,), "gaps follow the speed of bodies by themselves"),
}


def read_newton_options(options: Mapping[str, Any]) -> None:
    """Warn of what cannot act. Arguments whose values only size memory are taken without a word.

    Raises:
        TypeError: If there is no such argument.
    """
    for name, value in options.items():
        if name not in _OPTIONS:
            raise TypeError(f"CollisionPipeline() got an unexpected keyword argument {name!r}")
        neutral, reason = _OPTIONS[name]
        if not neutral or any(value is one or (isinstance(value, str) and value == one) for one in neutral):
            continue
        warnings.warn(
            f"CollisionPipeline: {name}={value!r} changes nothing: {reason}.", PluriverseWarning, stacklevel=3
        )
