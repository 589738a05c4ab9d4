"""The `randomize` block of scene files: properties drawn for every world."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.values import Name, parse_number, reported

if TYPE_CHECKING:
    from pluriverse.randomization import Distribution, Term


def _parse_parameter(value: Any, *path: str | int) -> float | tuple[float, ...]:
    """Return a number, or one per component."""
    if isinstance(value, list | tuple):
        return tuple(parse_number(number, *path, index) for index, number in enumerate(value))
    return parse_number(value, *path)


_JSON_PARAMETER: dict[str, Any] = {
    "anyOf": [{"type": "number"}, {"type": "string"}, {"type": "array", "items": {"type": "number"}}]
}
Parameter = Annotated[
    float | tuple[float, ...],
    PlainValidator(reported(_parse_parameter)),
    WithJsonSchema(_JSON_PARAMETER),
]
Patterns = Name | list[Name]


class GaussianSection(SceneMapping):
    """A normal distribution, truncated where bounds are given."""

    mean: Parameter = 0.0
    std: Parameter
    low: Parameter | None = None
    high: Parameter | None = None


class ChoiceSection(SceneMapping):
    """One of some values."""

    values: list[float] = Field(min_length=1)
    weights: list[float] | None = None


class DistributionSection(SceneMapping):
    """A distribution: exactly one of the keys."""

    uniform: tuple[Parameter, Parameter] | None = None
    log_uniform: tuple[Parameter, Parameter] | None = None
    gaussian: GaussianSection | None = None
    constant: Parameter | None = None
    choice: ChoiceSection | None = None

    @model_validator(mode="after")
    def _one_sound_law(self) -> "DistributionSection":
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            known = ", ".join(type(self).model_fields)
            raise ValueError(f"give exactly one of {known}; there are {', '.join(given) or 'none'}")
        self.distribution()  # its values are checked where it is made
        return self

    def distribution(self) -> "Distribution":
        """Return the distribution."""
        from pluriverse.randomization import Choice, Constant, Gaussian, LogUniform, Uniform

        if self.uniform is not None:
            return Uniform(*self.uniform)
        if self.log_uniform is not None:
            return LogUniform(*self.log_uniform)
        if self.constant is not None:
            return Constant(self.constant)
        if self.choice is not None:
            return Choice(self.choice.values, self.choice.weights)
        assert self.gaussian is not None
        bounds = self.gaussian.given(("low", "high"))
        return Gaussian(self.gaussian.mean, self.gaussian.std, **bounds)


class PseudoInertiaSection(SceneMapping):
    """Mass, centre of mass and inertia together."""

    alpha: DistributionSection | None = None
    d: DistributionSection | None = None
    s: DistributionSection | None = None
    t: DistributionSection | None = None
    entities: Patterns = "*"


class InertiaFactorSection(PseudoInertiaSection):
    """Mass, centre of mass and inertia together, by what is added to the parameters of their factor."""


class InitialStateSection(SceneMapping):
    """Initial states of worlds."""

    root_position: DistributionSection | None = None
    root_rotation: DistributionSection | None = None
    root_velocity: DistributionSection | None = None
    joint_position: DistributionSection | None = None
    joint_velocity: DistributionSection | None = None
    entities: Patterns = "*"


class TermSection(SceneMapping):
    """One thing that is drawn: a property, inertias or initial states."""

    property: Name | None = Field(default=None, description="array of the model, such as shape_material_mu")
    distribution: DistributionSection | None = None
    operation: Literal["absolute", "scale", "offset"] = "absolute"
    entities: Patterns = "*"
    components: list[int] | None = None
    same_for_entities: bool = False
    same_for_components: bool = False
    pseudo_inertia: PseudoInertiaSection | None = None
    inertia_factor: InertiaFactorSection | None = None
    initial_state: InitialStateSection | None = None
    rotation: Name | None = Field(default=None, description="array of poses, such as shape_transform")

    @model_validator(mode="after")
    def _one_kind(self) -> "TermSection":
        kinds = [
            kind
            for kind in ("property", "rotation", "pseudo_inertia", "inertia_factor", "initial_state")
            if getattr(self, kind)
        ]
        if len(kinds) != 1:
            raise ValueError(
                "give exactly one of property, rotation, pseudo_inertia, inertia_factor and initial_state; "
                f"there are {', '.join(kinds) or 'none'}"
            )
        named = kinds[0] in ("property", "rotation")
        if named != (self.distribution is not None):
            raise ValueError("'property' or 'rotation', and 'distribution' belong together; give both")
        if not named:
            other = [key for key in self.given() if key != kinds[0]]
            if other:
                raise ValueError(f"'{other[0]}' says nothing about {kinds[0]}; move it inside, or remove it")
        return self

    def term(self) -> "Term":
        """Return the term."""
        from pluriverse.randomization import (
            InertiaFactor,
            InitialState,
            Operation,
            Property,
            PseudoInertia,
            Rotation,
        )

        for kind, section in (
            (PseudoInertia, self.pseudo_inertia),
            (InertiaFactor, self.inertia_factor),
            (InitialState, self.initial_state),
        ):
            if section is not None:
                return kind(
                    **{
                        name: value.distribution() if isinstance(value, DistributionSection) else value
                        for name, value in section.given().items()
                    }
                )
        assert self.distribution is not None
        if self.rotation is not None:
            law = self.distribution.distribution()
            return Rotation(self.rotation, law, self.entities, self.same_for_entities)
        assert self.property is not None
        return Property(
            self.property,
            self.distribution.distribution(),
            Operation(self.operation),
            self.entities,
            self.components,
            self.same_for_entities,
            self.same_for_components,
        )


class RandomizeSection(SceneMapping):
    """Terms of `LoadedScene.randomizer`."""

    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    terms: list[TermSection] = Field(default_factory=list)

    def check(self, document: Any, target: Any, *, is_part: bool) -> None:
        """Check that the terms fit a model or a simulation; `is_part` as in `Randomizer`.

        Raises:
            SapSceneLoaderError: If one does not; the message names its place.
        """
        from pluriverse.randomization import Randomizer

        for index, section in enumerate(self.terms):
            try:
                Randomizer(target, [section.term()], seed=self.seed, is_part=is_part)
            except (ValueError, KeyError) as error:
                raise document.error(("randomize", "terms", index), str(error.args[0])) from error
        try:
            self.randomizer(target, is_part=is_part)
        except ValueError as error:
            raise document.error(("randomize", "terms"), str(error)) from error

    def randomizer(self, target: Any, *, identities: Any = None, is_part: bool = False) -> Any:
        """Return the `Randomizer` of a model or a simulation; `identities` and `is_part` as there."""
        from pluriverse.randomization import Randomizer

        terms = [section.term() for section in self.terms]
        return Randomizer(target, terms, seed=self.seed, identities=identities, is_part=is_part)
