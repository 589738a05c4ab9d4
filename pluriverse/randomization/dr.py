"""Terms under the names of mjlab's event terms: `from pluriverse.randomization import dr`.

Each function takes a range (low, high), of numbers or of numbers per component, or any `Distribution`; the
operation by its name there ("abs", "scale", "add"); and the law by its name ("uniform", "log_uniform",
"gaussian", of which the range is mean and standard deviation). Pass the result, or the entries of a list, to
a `Randomizer`.
"""

from typing import Any, Literal

from pluriverse.randomization.distributions import Distribution, Gaussian, LogUniform, Uniform
from pluriverse.randomization.terms import (
    Operation,
    Patterns,
    Property,
    PseudoInertia,
    Rotation,
)
from pluriverse.randomization.terms import body_mass as _body_mass

Law = Literal["uniform", "log_uniform", "gaussian"]
OperationName = Literal["abs", "scale", "add"]

_LAWS: dict[str, Any] = {"uniform": Uniform, "log_uniform": LogUniform, "gaussian": Gaussian}
_OPERATIONS = {"abs": Operation.ABSOLUTE, "scale": Operation.SCALE, "add": Operation.OFFSET}


def _term(
    name: str,
    what: str,
    ranges: Any,
    operation: str,
    distribution: str,
    entities: Patterns,
    shared_random: bool,
    components: Any = None,
) -> Property:
    return Property(
        name,
        _distribution(what, ranges, distribution),
        _operation(what, operation),
        entities,
        components=components,
        same_for_entities=shared_random,
    )


def _distribution(what: str, ranges: Any, distribution: str) -> Distribution:
    if isinstance(ranges, Distribution):
        return ranges
    if distribution not in _LAWS:
        raise ValueError(f"dr.{what}: distribution is {distribution!r}, but it is one of {list(_LAWS)}.")
    try:
        low, high = ranges
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"dr.{what}: ranges is {ranges!r}, but it is (low, high), or a Distribution."
        ) from error
    law: Distribution = _LAWS[distribution](low, high)
    return law


def _operation(what: str, operation: str) -> Operation:
    if operation not in _OPERATIONS:
        raise ValueError(f"dr.{what}: operation is {operation!r}, but it is one of {list(_OPERATIONS)}.")
    return _OPERATIONS[operation]


def _property(name: str, what: str, default: OperationName, unit: str) -> Any:
    """Return the function of one array of the model."""

    def make(
        ranges: Any,
        *,
        operation: OperationName = default,
        distribution: Law = "uniform",
        entities: Patterns = "*",
        shared_random: bool = False,
    ) -> Property:
        return _term(name, what, ranges, operation, distribution, entities, shared_random)

    make.__name__ = make.__qualname__ = what
    make.__doc__ = f"Return a term that draws `{name}` [{unit}]; see the module for the arguments."
    return make


geom_friction = _property("shape_material_mu", "geom_friction", "abs", "-")
geom_size = _property("shape_scale", "geom_size", "scale", "m")
geom_pos = _property("shape_transform", "geom_pos", "add", "m")
geom_rgba = _property("shape_color", "geom_rgba", "abs", "-")
geom_margin = _property("shape_margin", "geom_margin", "abs", "m")
geom_gap = _property("shape_gap", "geom_gap", "abs", "m")
body_com_offset = _property("body_com", "body_com_offset", "add", "m")
joint_armature = _property("joint_armature", "joint_armature", "scale", "kg or kg·m²")
joint_damping = _property("joint_damping", "joint_damping", "scale", "N·s/m or N·m·s")
joint_friction = _property("joint_friction", "joint_friction", "scale", "N or N·m")
effort_limits = _property("joint_effort_limit", "effort_limits", "scale", "N or N·m")
gravity = _property("gravity", "gravity", "add", "m/s²")


def body_mass(
    ranges: Any,
    *,
    operation: OperationName = "scale",
    distribution: Law = "uniform",
    entities: Patterns = "*",
) -> Property:
    """Return a term that draws masses [kg] but not inertias, with a warning; prefer `pseudo_inertia`."""
    law = _distribution("body_mass", ranges, distribution)
    return _body_mass(law, operation=_operation("body_mass", operation), entities=entities)


def pseudo_inertia(
    *,
    alpha_range: Any = None,
    d_range: Any = None,
    s_range: Any = None,
    t_range: Any = None,
    d1_range: Any = None,
    d2_range: Any = None,
    d3_range: Any = None,
    distribution: Law = "uniform",
    entities: Patterns = "*",
) -> PseudoInertia:
    """Return a term that draws mass, centre of mass and inertia together, J' = U J Uᵀ.

    Args:
        alpha_range: Range of α, half the logarithm of the factor on mass and inertia.
        d_range: Range of d1, d2 and d3, logarithms of the factors on extents along the axes.
        s_range: Range of the shears s12, s13 and s23.
        t_range: Range of the shifts along the axes [m].
        d1_range: Range of d1 alone, in place of `d_range`; 0 if only others are given.
        d2_range: As `d1_range`, of d2.
        d3_range: As `d1_range`, of d3.
        distribution: Law, as for all functions.
        entities: Labels of the bodies.

    Raises:
        ValueError: If `d_range` is given together with one of its components, or if a range is not a range.
    """
    single = (d1_range, d2_range, d3_range)
    if any(part is not None for part in single):
        if d_range is not None or distribution != "uniform":
            raise ValueError(
                "dr.pseudo_inertia: d1_range, d2_range and d3_range take the place of d_range, and are "
                "uniform. Give either, or a Distribution of three components as d_range."
            )
        bounds = [(0.0, 0.0) if part is None else part for part in single]
        d_range = Uniform(tuple(low for low, _ in bounds), tuple(high for _, high in bounds))
    alpha, d, s, t = (
        None if ranges is None else _distribution("pseudo_inertia", ranges, distribution)
        for ranges in (alpha_range, d_range, s_range, t_range)
    )
    return PseudoInertia(alpha, d, s, t, entities)


def geom_quat(
    ranges: Any, *, distribution: Law = "uniform", entities: Patterns = "*", shared_random: bool = False
) -> Rotation:
    """Return a term that rotates shapes by a rotation vector [rad], axes of their bodies."""
    law = _distribution("geom_quat", ranges, distribution)
    return Rotation("shape_transform", law, entities, shared_random)


def pd_gains(
    kp_range: Any = None,
    kd_range: Any = None,
    *,
    operation: OperationName = "scale",
    distribution: Law = "uniform",
    entities: Patterns = "*",
) -> list[Property]:
    """Return terms that draw stiffness and damping of drives."""
    pairs = (("joint_target_ke", kp_range), ("joint_target_kd", kd_range))
    return [
        _term(name, "pd_gains", ranges, operation, distribution, entities, False)
        for name, ranges in pairs
        if ranges is not None
    ]


def joint_limits(
    lower_range: Any = None,
    upper_range: Any = None,
    *,
    operation: OperationName = "add",
    distribution: Law = "uniform",
    entities: Patterns = "*",
) -> list[Property]:
    """Return terms that draw the lower and upper limits of joints [m, rad]."""
    pairs = (("joint_limit_lower", lower_range), ("joint_limit_upper", upper_range))
    return [
        _term(name, "joint_limits", ranges, operation, distribution, entities, False)
        for name, ranges in pairs
        if ranges is not None
    ]
