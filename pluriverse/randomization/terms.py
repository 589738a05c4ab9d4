"""Terms: user-level descriptions of what is randomized."""

import enum
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from pluriverse.randomization.distributions import Distribution

Patterns = Any  # names, wildcards, regular expressions: see pluriverse.selection


class Operation(enum.Enum):
    """How a drawn number changes the property."""

    ABSOLUTE = "absolute"
    """It is the value."""
    SCALE = "scale"
    """It is a factor on the default."""
    OFFSET = "offset"
    """It is added to the default."""


def _distribution_hint(what: str, value: Any) -> str:
    """Return the message for something that is not a distribution, with the probable intention."""
    if isinstance(value, tuple | list) and len(value) == 2:
        low, high = value
        meant = f"Write Uniform({low!r}, {high!r}) for anything between both, or Gaussian({low!r}, {high!r})"
        return f"{what} is {value!r}, but it must be a distribution. {meant} for mean and deviation."
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (
            f"{what} is {value!r}, but it must be a distribution. Write Constant({value!r}) for always that."
        )
    return (
        f"{what} is a {type(value).__name__}, but it must be a distribution, for example Uniform(0.4, 1.2), "
        "Gaussian(1.0, 0.1) or Constant(0.8)."
    )


@dataclass(frozen=True)
class Term:
    """Something that is drawn for every environment.

    Raises:
        TypeError: If something else is given where a distribution is wanted; the message says which ones mean
            the same.
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.type is Distribution or field.type == (Distribution | None):
                value = getattr(self, field.name)
                needed = field.type is Distribution
                if not isinstance(value, Distribution) and (needed or value is not None):
                    raise TypeError(_distribution_hint(f"{type(self).__name__}.{field.name}", value))


@dataclass(frozen=True)
class Property(Term):
    """An array of the model.

    By default, every entity and every component of a vector is drawn independently.
    """

    name: str
    """Name of the array, for example `shape_material_mu`."""
    distribution: Distribution
    """Distribution of the drawn numbers."""
    operation: Operation = Operation.ABSOLUTE
    """How a drawn number changes the property."""
    entities: Patterns = "*"
    """Labels of the bodies, joints or shapes, as names, wildcards or regular expressions."""
    components: Sequence[int] | None = None
    """Components of a vector to draw; of a pose only those of its position. All if None."""
    same_for_entities: bool = False
    """Whether all entities of a world get the same draw."""
    same_for_components: bool = False
    """Whether all components of an entity get the same draw."""


@dataclass(frozen=True)
class Rotation(Term):
    """Orientations of poses: of joint frames, shapes, or welds."""

    name: str
    """Array of poses: `joint_X_p`, `joint_X_c`, `shape_transform` or `equality_constraint_relpose`."""
    distribution: Distribution
    """Rotation vector [rad] applied to each pose, in the axes of its parent frame; three components."""
    entities: Patterns = "*"
    """Labels of the joints, shapes or constraints."""
    same_for_entities: bool = False
    """Whether all entities of a world get the same draw."""


@dataclass(frozen=True)
class PseudoInertia(Term):
    """Mass, centre of mass and inertia of bodies together: the mass of a body is moved by a linear map.

    The pseudo-inertia matrix J of a body becomes J' = U J Uᵀ with

        U = exp(α) [[exp(d1), s12, s13, t1], [0, exp(d2), s23, t2], [0, 0, exp(d3), t3], [0, 0, 0, 1]],

    of which the parameters are drawn ([RuckerWensing2022]). Mass at x goes to A x + t, A being the upper left
    of U / exp(α): extents and the centre of mass are scaled by exp(d) and sheared by s, whatever the size of
    the body. `InertiaFactor` has shears and shifts in metres.
    """

    alpha: Distribution | None = None
    """α: the mass is multiplied by exp(2α), and the inertia with it."""
    d: Distribution | None = None
    """d1, d2, d3: coordinates along the body's axes scale by exp(d), including the centre of mass."""
    s: Distribution | None = None
    """s12, s13, s23: shears, dimensionless, which rotate the principal axes."""
    t: Distribution | None = None
    """Shift of the mass as a whole [m], body axes."""
    entities: Patterns = "*"
    """Labels of the bodies."""


@dataclass(frozen=True)
class InertiaFactor(Term):
    """Mass, centre of mass and inertia of bodies together, by the parameters of the factor of each.

    The pseudo-inertia matrix J = U Uᵀ of a body has the factor ([RuckerWensing2022])

        U = exp(α) [[exp(d1), s12, s13, t1], [0, exp(d2), s23, t2], [0, 0, exp(d3), t3], [0, 0, 0, 1]],

    and what is drawn is added to these parameters. Whatever they are, J is positive definite, so some
    distribution of positive mass has this inertia. The mass is exp(2α), t is the centre of mass.
    """

    alpha: Distribution | None = None
    """Added to α: the mass is multiplied by exp(2α), and the inertia with it."""
    d: Distribution | None = None
    """Added to d1, d2, d3: the extent of the mass along the body's axes is multiplied by exp(d)."""
    s: Distribution | None = None
    """Added to s12, s13, s23 [m]: shears, which rotate the principal axes."""
    t: Distribution | None = None
    """Added to the centre of mass [m], body axes."""
    entities: Patterns = "*"
    """Labels of the bodies."""


@dataclass(frozen=True)
class InitialState(Term):
    """Initial joint coordinates and velocities of worlds, which `Simulation.reset` uses."""

    root_position: Distribution | None = None
    """Added to the position of floating roots [m]."""
    root_rotation: Distribution | None = None
    """Rotation vector applied to floating roots [rad], world axes."""
    root_velocity: Distribution | None = None
    """Added to the velocity of floating roots: linear [m/s], angular [rad/s]; six components."""
    joint_position: Distribution | None = None
    """Added to the coordinates of joints with scalar ones [m, rad]; the result stays within their limits."""
    joint_velocity: Distribution | None = None
    """Added to the velocities of all other joints [m/s, rad/s]."""
    entities: Patterns = "*"
    """Labels of the joints."""


def body_mass(
    distribution: Distribution, *, operation: Operation = Operation.SCALE, entities: Patterns = "*"
) -> Property:
    """Return a term that draws masses [kg] but not inertias.

    This models a point mass at the centre of mass, and raises a warning: for another density or size,
    `PseudoInertia` changes both together.
    """
    warnings.warn(
        "body_mass changes masses without the inertia tensors, as point masses at the centres of mass would. "
        "Use PseudoInertia for bodies of another density or shape.",
        UserWarning,
        stacklevel=2,
    )
    return Property("body_mass", distribution, operation, entities)


def centre_of_mass(distribution: Distribution, *, entities: Patterns = "*") -> Property:
    """Return a term that moves centres of mass [m], body axes; inertias about them stay."""
    return Property("body_com", distribution, Operation.OFFSET, entities)


def friction(
    distribution: Distribution,
    *,
    operation: Operation = Operation.ABSOLUTE,
    entities: Patterns = "*",
    same_for_entities: bool = True,
) -> Property:
    """Return a term that draws coefficients of friction of shapes, the same for all those of a world.

    A shared ground keeps its coefficient, and contacts use that of the pair: with the default rule of
    `SolverSAP`, 0.34 on a ground of 1 gives 0.51. To make the drawn value effective, give the solver
    `friction_combination="minimum"` and the ground the largest friction that is drawn.
    """
    return Property(
        "shape_material_mu", distribution, operation, entities, same_for_entities=same_for_entities
    )


def drive_gains(
    stiffness: Distribution | None = None,
    damping: Distribution | None = None,
    *,
    operation: Operation = Operation.SCALE,
    entities: Patterns = "*",
) -> list[Property]:
    """Return terms that draw stiffness and damping of drives."""
    terms = []
    if stiffness is not None:
        terms.append(Property("joint_target_ke", stiffness, operation, entities))
    if damping is not None:
        terms.append(Property("joint_target_kd", damping, operation, entities))
    return terms


def joint_limits(
    lower: Distribution | None = None,
    upper: Distribution | None = None,
    *,
    operation: Operation = Operation.OFFSET,
    entities: Patterns = "*",
) -> list[Property]:
    """Return terms that draw lower and upper limits of joints [m, rad]."""
    terms = []
    if lower is not None:
        terms.append(Property("joint_limit_lower", lower, operation, entities))
    if upper is not None:
        terms.append(Property("joint_limit_upper", upper, operation, entities))
    return terms


def joint_armature(
    distribution: Distribution, *, operation: Operation = Operation.SCALE, entities: Patterns = "*"
) -> Property:
    """Return a term that draws armatures of joints [kg, kg·m²]."""
    return Property("joint_armature", distribution, operation, entities)


def gravity(distribution: Distribution, *, operation: Operation = Operation.OFFSET) -> Property:
    """Return a term that draws gravity [m/s²], by component."""
    return Property("gravity", distribution, operation)


def geometry_size(
    distribution: Distribution, *, entities: Patterns = "*", same_for_components: bool = True
) -> Property:
    """Return a term that draws factors on the size of shapes, one for all axes; masses stay."""
    return Property(
        "shape_scale",
        distribution,
        Operation.SCALE,
        entities,
        same_for_components=same_for_components,
    )
