"""User-defined custom attributes in asset files: values of declared attributes on elements."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pluriverse.importers.errors import AssetError
from pluriverse.types import Entity

TRUE, FALSE = ("true", "1", "yes", "enable"), ("false", "0", "no", "disable")


def set_value(builder: Any, attribute: Any, value: Any) -> None:
    """Set an attribute of the current world, or of the whole model; warn where that has another value."""
    world = attribute.frequency is Entity.WORLD
    row = max(builder.current_world, 0) if world else 0
    values = attribute.values
    if row in values and not np.array_equal(attribute.convert(values[row]), attribute.convert(value)):
        where = f"world {row}" if world else "the whole model"
        warnings.warn(
            f"{attribute.label} of {where} was {values[row]} so far and is {value} in the asset added now, "
            "which is used. Give all assets the same.",
            stacklevel=4,
        )
    if world:
        values[row] = value
    else:
        attribute.column.put_once(attribute.convert(value), np.array([builder.current_world]))


def parse_text(text: str, attribute: Any) -> Any:
    """Return the value of a text in an XML attribute.

    Raises:
        ValueError: If it is not a value of the attribute's type.
    """
    if attribute.dtype is str:
        return text
    kind = attribute.column.rows.dtype.kind
    parts = text.replace(",", " ").split()
    if kind == "b":
        lowered = [part.lower() for part in parts]
        if not all(part in TRUE + FALSE for part in lowered):
            raise ValueError(f"{attribute.label}: {text!r} is neither 'true' nor 'false'.")
        numbers: list[Any] = [part in TRUE for part in lowered]
    else:
        try:
            numbers = [int(part, 0) if kind in "iu" else float(part) for part in parts]
        except ValueError:
            numbers = []
        if not numbers:
            raise ValueError(f"{attribute.label}: {text!r} is not made of numbers.")
    return numbers[0] if len(numbers) == 1 and not attribute.column.shape else numbers


class XmlAttributes:
    """The custom attributes that elements of an XML format carry, for a builder that declares them.

    Args:
        builder: Builder that declares them.
        kind: "mjcf" or "urdf".
        file: What messages call the document.
    """

    def __init__(self, builder: Any, kind: str, file: str = ""):
        self._kind = kind
        self.file = file
        """Name of the document in messages."""
        # Attributes that SolverMuJoCo declares are read from MuJoCo's compiled model, including defaults.
        self._attributes = [
            attribute
            for _, attribute in builder.custom_attributes.read_all()
            if attribute.namespace != "mujoco" and not attribute.is_custom_frequency
        ]

    def names(self, frequencies: Iterable[Entity]) -> set[str]:
        """Return the names of XML attributes that elements of some kinds may carry."""
        selected = set(frequencies)
        return {self._name(attribute) for attribute in self._attributes if attribute.frequency in selected}

    def read(
        self,
        element: Mapping[str, str],
        frequencies: Iterable[Entity],
        what: str,
        context: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the values that an element carries, by the keys of their attributes.

        Args:
            element: Its XML attributes.
            frequencies: Kinds of entities that it becomes.
            what: Its name in messages.
            context: Second argument of transformers.

        Raises:
            AssetError: If a text is not a valid value of its attribute.
        """
        selected, result = set(frequencies), {}
        for attribute in self._attributes:
            text = element.get(self._name(attribute))
            if attribute.frequency not in selected or text is None:
                continue
            transformer = getattr(attribute, f"{self._kind}_value_transformer")
            try:
                value = parse_text(text, attribute) if transformer is None else transformer(text, context)
                attribute.convert(value)
            except (TypeError, ValueError) as error:
                raise AssetError(
                    str(error).rstrip("."),
                    file=self.file,
                    element=what,
                    value=text,
                    remedy=f"Correct '{self._name(attribute)}' there, or the type of the attribute.",
                ) from error
            result[attribute.key] = value
        return result

    def _name(self, attribute: Any) -> str:
        return str(getattr(attribute, f"{self._kind}_attribute_name"))
