"""Equality constraints: what holds bodies together or couples joints, in addition to the joints of a tree."""

import abc
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from pluriverse.scene.assembly import Assembly
from pluriverse.scene.bodies import find_body
from pluriverse.scene.mapping import SceneMapping, tag_of, tagged
from pluriverse.scene.selectors import find_joint
from pluriverse.scene.values import Axis, Name, NotNegative, Number, Reference, Transform, Vector
from pluriverse.types import EqType


class Constraint(SceneMapping):
    """Keys of every constraint."""

    id: Name | None = None
    label: Name | None = None
    enabled: bool = True

    @abc.abstractmethod
    def options(self, assembly: Assembly) -> dict[str, Any]:
        """Return the arguments of `ModelBuilder.add_equality_constraint`."""


class _BodyConstraint(Constraint):
    """Keys of a constraint of two bodies."""

    body1: Reference | None = "world"
    body2: Reference | None = "world"
    anchor: Vector | None = Field(default=None, description="m; in body1, of a weld in body2")

    def options(self, assembly: Assembly) -> dict[str, Any]:
        """Return the arguments, bodies as indices."""
        return {
            **self.given(("anchor", "torquescale", "relpose", "axis")),
            "body1": find_body(assembly, self.body1, "body1"),
            "body2": find_body(assembly, self.body2, "body2"),
        }


class ConnectConstraint(_BodyConstraint):
    """A point of one body at a point of another."""

    type: Literal["connect"]


class WeldConstraint(_BodyConstraint):
    """One body at a pose in another; the initial pose if `relpose` is not given."""

    type: Literal["weld"]
    relpose: Transform | None = None
    torquescale: NotNegative | None = None

    def options(self, assembly: Assembly) -> dict[str, Any]:
        """Return the arguments, bodies as indices."""
        options = super().options(assembly)
        if self.relpose is not None and self.wrote("relpose"):
            options["relpose"] = self.relpose.as_list()
        return options


class HingeConstraint(_BodyConstraint):
    """A point and an axis of one body at those of another."""

    type: Literal["hinge"]
    axis: Axis
    torquescale: NotNegative | None = None


class JointConstraint(Constraint):
    """The coordinate of one joint at a polynomial of that of another, or at a value."""

    type: Literal["joint"]
    joint1: Reference = Field(description="joint that follows")
    joint2: Reference | None = Field(default=None, description="joint that leads; none holds joint1 at c0")
    polycoef: list[Number] | None = Field(
        default=None, min_length=1, max_length=5, description="coefficients, constant first; [0, 1]"
    )

    def options(self, assembly: Assembly) -> dict[str, Any]:
        """Return the arguments, joints as indices."""
        labels, ids = assembly.builder.joint_label, assembly.known_joint_ids()
        leader = -1 if self.joint2 is None else find_joint(self.joint2, labels, ids, "joint2")
        return {
            **self.given(("polycoef",)),
            "joint1": find_joint(self.joint1, labels, ids, "joint1"),
            "joint2": leader,
        }


CONSTRAINTS: dict[str, type[Constraint]] = {
    "connect": ConnectConstraint,
    "weld": WeldConstraint,
    "hinge": HingeConstraint,
    "joint": JointConstraint,
}

if TYPE_CHECKING:
    AnyConstraint = Constraint
else:
    AnyConstraint = Annotated[tagged(CONSTRAINTS), tag_of("type")]


def add_constraint(assembly: Assembly, constraint: Constraint) -> None:
    """Add a constraint to the world."""
    kind = next(name for name, model in CONSTRAINTS.items() if isinstance(constraint, model))
    assembly.builder.add_equality_constraint(
        EqType[kind.upper()],
        **constraint.options(assembly),
        label=constraint.label or constraint.id,
        enabled=constraint.enabled,
    )
