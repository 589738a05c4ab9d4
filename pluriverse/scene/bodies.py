"""Inline bodies."""

from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema

from pluriverse.scene.assembly import Assembly
from pluriverse.scene.errors import FieldError
from pluriverse.scene.selectors import suggestion
from pluriverse.scene.shape_assembly import add_shape
from pluriverse.scene.shapes import AnyShape, Overrides
from pluriverse.scene.values import (
    IDENTITY,
    Name,
    NotNegative,
    Transform,
    Vector,
    parse_vector,
    reported,
    shown,
)


def _parse_inertia(value: Any) -> list[list[float]]:
    """Return a matrix from three principal moments or three rows."""
    if isinstance(value, list | tuple) and len(value) == 3:
        if not any(isinstance(row, list | tuple) for row in value):
            moments = parse_vector(value)
            return [[moments[row] if row == column else 0.0 for column in range(3)] for row in range(3)]
        return [list(parse_vector(row, index)) for index, row in enumerate(value)]
    raise FieldError(
        f"{shown(value)} is not an inertia; write [ixx, iyy, izz] or three rows of three numbers"
    )


_ROW = {"type": "array", "minItems": 3, "maxItems": 3}
Inertia = Annotated[
    list[list[float]],
    PlainValidator(reported(_parse_inertia)),
    WithJsonSchema(_ROW | {"description": "kg·m²"}),
]


class Body(Overrides):
    """A body with its shapes."""

    id: Name
    label: Name | None = None
    transform: Transform = IDENTITY
    mass: NotNegative = Field(
        default=0.0, description="kg, added to what the shapes weigh; a point mass without inertia"
    )
    com: Vector | None = Field(default=None, description="where mass is, m; the body origin if not given")
    inertia: Inertia | None = Field(
        default=None, description="of mass about com, kg·m²: principal moments, or three rows"
    )
    is_kinematic: bool = Field(default=False, description="whether it moves as its state and targets say")
    shapes: list[AnyShape] = Field(default_factory=list)


def add_body(assembly: Assembly, body: Body) -> None:
    """Add a body and its shapes to the world."""
    if body.id in assembly.body_ids:
        raise FieldError(f"the body id {body.id!r} is taken by an earlier body; ids must differ", "id")
    if body.id == "world":
        raise FieldError("'world' means the world itself and cannot be the id of a body", "id")
    index = assembly.builder.add_link(
        xform=body.transform.as_list(),
        mass=body.mass,
        com=body.com,
        inertia=body.inertia,
        is_kinematic=body.is_kinematic,
        label=body.label or body.id,
    )
    assembly.body_ids[body.id] = index
    material = body.configuration()
    for number, shape in enumerate(body.shapes):
        with assembly.at("shapes", number):
            add_shape(assembly, shape, index, material)


def find_body(assembly: Assembly, reference: str | int | None, *path: str) -> int:
    """Return the index of a body named by id, label or index; -1 for the world.

    Raises:
        FieldError: There is no such body.
    """
    labels = assembly.builder.body_label
    if reference is None or reference in ("world", -1):
        return -1
    if isinstance(reference, int):
        if not 0 <= reference < len(labels):
            raise FieldError(f"there is no body {reference}; this world has {len(labels)} bodies", *path)
        return reference
    if reference in assembly.body_ids:
        return assembly.body_ids[reference]
    for matches in (
        [body for body, label in enumerate(labels) if label == reference],
        [body for body, label in enumerate(labels) if label.endswith(f"/{reference}")],
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise FieldError(
                f"{reference!r} is ambiguous, it fits {len(matches)} bodies; give more of the label "
                "or an index",
                *path,
            )
    names = dict.fromkeys(["world", *assembly.body_ids, *labels])
    raise FieldError(f"there is no body {reference!r}; {suggestion(reference, names)}", *path)
