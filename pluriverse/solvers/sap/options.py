"""Options of SolverSAP: names, spellings, presets and defaults, validated in one place."""

import difflib
import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.solvers.fixed_settings import FixedOptions

# Relative tolerance of the gradient: velocities to single precision.
OPTIMALITY_DEFAULT = wp.constant(1e-6)
PRESETS: dict[str, dict[str, Any]] = {
    "standard": {
        "use_f64_boundary_pose": True,
        "free_motion_solve_precision": "fp64",
        "contact_solve_precision": "fp64",
        "contact_linear_solve_precision": "fp64",
        "sap_contact_weight_precision": "fp64",
        "contact_weight_mode": "delassus",
        "contact_point_mode": "contact_midpoint",
        "contact_beta": 0.1,
        "position_integration": "semi_implicit",
        "approach_damping": False,
        "recovery_limited": True,
        "friction_law": "coulomb",
    },
    "approx32": {
        "use_f64_boundary_pose": False,
        "free_motion_solve_precision": "fp32",
        "contact_solve_precision": "fp64",
        "contact_linear_solve_precision": "fp32",
        "sap_contact_weight_precision": "fp32",
        "contact_weight_mode": "body_inertia",
        "contact_point_mode": "witness_point",
        "contact_beta": 1.0,
        "position_integration": "midpoint",
        "approach_damping": True,
        "recovery_limited": False,
        "friction_law": "convex",
    },
    "approx64": {
        "use_f64_boundary_pose": True,
        "free_motion_solve_precision": "fp64",
        "contact_solve_precision": "fp64",
        "contact_linear_solve_precision": "fp64",
        "sap_contact_weight_precision": "fp64",
        "contact_weight_mode": "body_inertia",
        "contact_point_mode": "witness_point",
        "contact_beta": 1.0,
        "position_integration": "midpoint",
        "approach_damping": True,
        "recovery_limited": False,
        "friction_law": "convex",
    },
    "drake": {
        "use_f64_boundary_pose": True,
        "free_motion_solve_precision": "fp64",
        "contact_solve_precision": "fp64",
        "contact_linear_solve_precision": "fp64",
        "sap_contact_weight_precision": "fp64",
        "contact_weight_mode": "diag_delassus",
        "contact_point_mode": "contact_midpoint",
        "contact_beta": 1.0,
        "position_integration": "sap_euler",
        "approach_damping": True,
        "recovery_limited": False,
        "friction_law": "convex",
    },
}
"""Values that `contact_preset_variant` stands for; a keyword given explicitly overrides its entry."""

DEFAULT_PRESET = "standard"
"""The preset of a solver that is given none."""

CHOICES: dict[str, tuple[str, ...]] = {
    "contact_preset_variant": tuple(PRESETS),
    "line_search_variant": ("strong_wolfe", "monotone_decay", "armijo_decay", "exact_root"),
    "contact_weight_mode": ("delassus", "diag_delassus", "body_inertia"),
    "contact_point_mode": ("witness_point", "contact_midpoint"),
    "position_integration": ("midpoint", "semi_implicit", "sap_euler"),
    "friction_combination": ("harmonic_mean", "arithmetic_mean", "minimum", "maximum"),
    "friction_law": ("coulomb", "convex"),
}

STRONG_WOLFE, MONOTONE_DECAY, ARMIJO_DECAY, EXACT_ROOT = (
    wp.constant(CHOICES["line_search_variant"].index(name))
    for name in ("strong_wolfe", "monotone_decay", "armijo_decay", "exact_root")
)
"""Numbers of the line searches in kernels."""

_PRECISIONS = {"fp32": "fp32", "f32": "fp32", "fp64": "fp64", "f64": "fp64"}
_REAL = {"fp32": wp.float32, "fp64": wp.float64}
_SPELLINGS = {"approx_32": "approx32", "approx_64": "approx64"}

# Default relative cost tolerance of a line search that stops at the first decrease. It ends the iteration
# once another step can gain no more than half a percent of the cost; the gradient test stays the stricter
# one.
MONOTONE_COST_REL_TOL = 5e-3
# For line searches that find the minimum along the direction, the cost test only has to catch stagnation at
# rounding.
EXACT_COST_REL_TOL = 1e-15
EXACT_COST_ABS_TOL = 1e-30
# With a Hessian in single precision the last digits of the minimum come slowly: directions along which it is
# badly conditioned (a light foot under a heavy robot) are only right to a few per cent. What is left of the
# cost at this relative change is a velocity of 1e-6 of those in the problem, the same as the gradient test
# asks for.
SINGLE_COST_REL_TOL = 1e-12


def normalize_choice(option: str, value: object) -> str:
    """Return the canonical spelling of an enumerated option.

    Raises:
        ValueError: If `value` is not one of the choices of `option`; the message lists them.
    """
    text = str(value).strip().lower().replace("-", "_")
    text = _SPELLINGS.get(text, text)
    if text not in CHOICES[option]:
        raise ValueError(
            f"SolverSAP: {option} is {value!r}, but must be one of {', '.join(CHOICES[option])}."
        )
    return text


def normalize_precision(option: str, value: object) -> str:
    """Return `fp32` or `fp64`.

    Raises:
        ValueError: If `value` is no known spelling of a precision.
    """
    text = str(value).strip().lower()
    if text not in _PRECISIONS:
        raise ValueError(f"SolverSAP: {option} is {value!r}, but must be one of fp32, fp64 (or f32, f64).")
    return _PRECISIONS[text]


@dataclass(kw_only=True)
class SapOptions(FixedOptions):
    """Keyword options of SolverSAP; `None` means the default that is derived from others.

    See `SolverSAP` for what each one does.
    """

    max_rigid_contact: int | None = None
    fallback_mu: float | None = None
    fallback_stiffness: float | None = None
    contact_beta: float | None = None
    contact_sigma: float = 1e-3
    friction_combination: str = "harmonic_mean"
    contact_tau_d: float = 0.01
    block_size: int | None = None
    diag_shift: float = 0.0
    max_iterations: int = 100
    optimality_abs_tol: float = 1e-14
    optimality_rel_tol: float = OPTIMALITY_DEFAULT
    cost_abs_tol: float | None = None
    cost_rel_tol: float | None = None
    line_search_max_iterations: int = 40
    armijo_c: float = 1e-4
    rho: float = 0.8
    line_search_relative_slop: float | None = None
    line_search_variant: str = "strong_wolfe"
    contact_preset_variant: str | None = None
    use_f64_boundary_pose: bool | None = None
    free_motion_solve_precision: str | None = None
    contact_solve_precision: str | None = None
    contact_linear_solve_precision: str | None = None
    sap_contact_weight_precision: str | None = None
    contact_weight_mode: str | None = None
    contact_point_mode: str | None = None
    position_integration: str | None = None
    capture_contact_jacobian_snapshots: bool = False
    collect_iteration_stats: bool = False
    check_line_search_errors: bool = False
    graph_conditional: bool = True
    enforce_velocity_limit: bool = False
    approach_damping: bool | None = None
    recovery_limited: bool | None = None
    friction_law: str | None = None
    restitution_threshold: float = 0.2
    resting_depth_limit: float | None = None
    torsional_friction: bool = False
    static_substep: bool = False
    static_substep_iterations: int = 8
    static_substep_line_search_iterations: int = 6

    def __post_init__(self) -> None:
        """Check every option and replace each `None` by the value it stands for.

        Raises:
            ValueError: If an option is out of range; the message names it, its value and what is allowed.
        """
        preset = normalize_choice("contact_preset_variant", self.contact_preset_variant or DEFAULT_PRESET)
        self.contact_preset_variant = preset
        if self.friction_law is None and self.torsional_friction:
            self.friction_law = "convex"  # Contacts that resist turning have no other.
        for name, value in PRESETS[preset].items():
            if getattr(self, name) is None:
                setattr(self, name, value)
        for name in (
            "free_motion_solve_precision",
            "contact_solve_precision",
            "contact_linear_solve_precision",
            "sap_contact_weight_precision",
        ):
            setattr(self, name, normalize_precision(name, getattr(self, name)))
        for name in (
            "line_search_variant",
            "contact_weight_mode",
            "contact_point_mode",
            "position_integration",
            "friction_combination",
            "friction_law",
        ):
            setattr(self, name, normalize_choice(name, getattr(self, name)))

        monotone = self.line_search_variant == "monotone_decay"
        if self.cost_abs_tol is None:
            self.cost_abs_tol = 0.0 if monotone else EXACT_COST_ABS_TOL
        if self.cost_rel_tol is None:
            single = self.contact_linear_solve_precision == "fp32"
            exact = SINGLE_COST_REL_TOL if single else EXACT_COST_REL_TOL
            self.cost_rel_tol = MONOTONE_COST_REL_TOL if monotone else exact
        if self.line_search_relative_slop is None:
            # A thousand roundings of the cost: below that its slope along the direction is noise.
            epsilon = 2.0**-52 if self.contact_solve_precision == "fp64" else 2.0**-23
            self.line_search_relative_slop = 1000.0 * epsilon

        if self.torsional_friction and self.friction_law == "coulomb":
            raise ValueError(
                "SolverSAP: friction_law is 'coulomb' with torsional_friction=True, but contacts "
                "that resist turning have convex friction only. Use friction_law='convex', or leave "
                "torsional_friction out."
            )
        if self.max_rigid_contact is not None:
            self._require_count(
                "max_rigid_contact", 1, "contact slots per world, or None for the buffer's capacity"
            )
        for name in (
            "enforce_velocity_limit",
            "torsional_friction",
            "approach_damping",
            "recovery_limited",
        ):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"SolverSAP: {name} is {getattr(self, name)!r}, but must be True or False.")
        self._require_count("max_iterations", 0, "Newton iterations")
        self._require_count("line_search_max_iterations", 1, "line search iterations")
        self._require_count("static_substep_iterations", 1, "Newton iterations of a fixed-count substep")
        self._require_count("static_substep_line_search_iterations", 1, "line search iterations")
        for name in ("contact_beta", "contact_sigma"):
            self._require_real(name, positive=True)
        if self.fallback_stiffness is not None:
            self._require_real("fallback_stiffness", positive=True)
        for name in (
            "optimality_abs_tol",
            "optimality_rel_tol",
            "cost_abs_tol",
            "cost_rel_tol",
            "line_search_relative_slop",
            "diag_shift",
            "restitution_threshold",
            "contact_tau_d",
        ):
            self._require_real(name)
        for name in ("fallback_mu", "resting_depth_limit"):
            if getattr(self, name) is not None:
                self._require_real(name)
        for name in ("rho", "armijo_c"):
            self._require_real(name, positive=True)
            if not getattr(self, name) < 1.0:
                raise ValueError(f"SolverSAP: {name} is {getattr(self, name)}, but must lie between 0 and 1.")
        if not self.graph_conditional:
            raise ValueError(
                "SolverSAP: graph_conditional=False is not available: all Newton iterations run inside one "
                "kernel, so there are no conditional graph nodes to turn off. Leave it at True."
            )
        self.fix()

    def _require_count(self, name: str, low: int, meaning: str) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
            raise ValueError(f"SolverSAP: {name} is {value!r}, but must be an integer >= {low} ({meaning}).")

    def _require_real(self, name: str, positive: bool = False) -> None:
        value = getattr(self, name)
        number = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value < 0.0 or (positive and value == 0.0):
            bound = "> 0" if positive else ">= 0"
            raise ValueError(f"SolverSAP: {name} is {value!r}, but must be a finite number {bound}.")

    def real(self, name: str) -> Any:
        """Return the Warp scalar type of the precision option `name`."""
        return _REAL[getattr(self, name)]


def check_option_names(names: Iterable[str]) -> None:
    """Raise if a name is not that of an option of SolverSAP.

    Raises:
        TypeError: If so.
    """
    known = [field.name for field in fields(SapOptions)]
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            remedy = f"Did you mean '{close[0]}'?" if close else f"There are {', '.join(known)}."
            raise TypeError(f"SolverSAP() got an unexpected keyword argument '{name}'. {remedy}")


@made_once
def newton_options_struct(real: Any) -> Any:
    """Return the `wp.struct` of the scalars that steer Newton's method, for contact precision `real`."""

    @wp.struct
    class NewtonOptions:
        dt: real
        iterations_max: int
        optimality_abs_tol: real
        optimality_rel_tol: real
        cost_abs_tol: real
        cost_rel_tol: real
        cost_alpha_min: real
        diag_shift: real
        line_search_variant: int
        line_search_iterations_max: int
        armijo_c: real
        rho: real
        relative_slop: real
        friction_follows: int

    return NewtonOptions


def newton_options(options: SapOptions, real: Any, dt: float) -> Any:
    """Return the options of Newton's method for a step of `dt` [s], as a `newton_options_struct`."""
    result = newton_options_struct(real)()
    result.dt = dt
    result.iterations_max = (
        options.static_substep_iterations if options.static_substep else options.max_iterations
    )
    result.optimality_abs_tol = options.optimality_abs_tol
    result.optimality_rel_tol = options.optimality_rel_tol
    result.cost_abs_tol = options.cost_abs_tol
    result.cost_rel_tol = options.cost_rel_tol
    result.cost_alpha_min = 0.0 if options.line_search_variant == "monotone_decay" else 0.5
    result.diag_shift = options.diag_shift
    result.line_search_variant = CHOICES["line_search_variant"].index(options.line_search_variant)
    result.line_search_iterations_max = (
        options.static_substep_line_search_iterations
        if options.static_substep
        else options.line_search_max_iterations
    )
    result.armijo_c = options.armijo_c
    result.rho = options.rho
    result.relative_slop = options.line_search_relative_slop
    result.friction_follows = int(options.friction_law == "coulomb")
    return result
