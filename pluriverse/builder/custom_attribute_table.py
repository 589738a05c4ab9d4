"""The custom attributes of a builder, of which most have no value in most builders."""

from collections.abc import ItemsView, Mapping
from typing import Any

from pluriverse.builder.custom_attribute import CustomAttribute
from pluriverse.types import Entity


class CustomAttributeTable(dict[str, CustomAttribute]):
    """The custom attributes of a builder, by key.

    Declarations without values may be shared with other builders: a robot from a file has 170 of them, and
    copies for each of many assets would cost more than all else. A look-up makes a shared one the builder's
    own, so that its values can be written to; `read` does not.
    """

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)
        self._keys_of: dict[Entity | str, list[str]] = {}
        self._count_then = 0

    def keys_of(self, frequency: Entity | str) -> list[str]:
        """Return the keys of the attributes of a frequency."""
        # Attributes are declared, and never taken away.
        if self._count_then != len(self):
            self._keys_of = {}
            for key, attribute in self.read_all():
                self._keys_of.setdefault(attribute.frequency, []).append(key)
            self._count_then = len(self)
        return self._keys_of.get(frequency, [])

    def read_of(self, frequency: Entity | str) -> list[CustomAttribute]:
        """Return the attributes of a frequency, to be read only."""
        return [dict.__getitem__(self, key) for key in self.keys_of(frequency)]

    def share(self, declarations: Mapping[str, CustomAttribute]) -> None:
        """Add declarations that are not there, without copies; their columns must be marked as shared."""
        if self:
            self.update({key: value for key, value in declarations.items() if key not in self})
        else:
            self.update(declarations)

    def read(self, key: str) -> CustomAttribute | None:
        """Return an attribute to be read only, or None."""
        return dict.get(self, key)

    def read_all(self) -> ItemsView[str, CustomAttribute]:
        """Return all attributes by key, to be read only."""
        return super().items()

    def __getitem__(self, key: str) -> CustomAttribute:
        attribute = super().__getitem__(key)
        if attribute.column.is_shared:
            attribute = attribute.declaration()
            super().__setitem__(key, attribute)
        return attribute

    def get(self, key: str, default: Any = None) -> Any:
        """Return an attribute, or `default`."""
        try:
            return self[key]
        except KeyError:
            return default

    def values(self) -> Any:
        """Return all attributes."""
        return [self[key] for key in self]

    def items(self) -> Any:
        """Return all attributes by key."""
        return [(key, self[key]) for key in self]
