"""Aliases: attributes of a configuration that read and write another attribute."""

import functools
from collections.abc import Callable
from typing import Any


def other_names(**properties: property) -> Callable[[type], type]:
    """Give a dataclass further attributes that are also keyword arguments of its constructor.

    They are not fields, so `dataclasses.replace` of a configuration sees each value once.

    Args:
        properties: How to read and write each attribute; None as an argument changes nothing.
    """

    def extend(cls: Any) -> Any:
        generated = cls.__init__

        @functools.wraps(generated)
        def initialize(self: Any, *positional: Any, **named: Any) -> None:
            given = {name: named.pop(name) for name in properties if name in named}
            generated(self, *positional, **named)
            for name, value in given.items():
                if value is not None:
                    setattr(self, name, value)

        cls.__init__ = initialize
        for name, attribute in properties.items():
            setattr(cls, name, attribute)
        return cls

    return extend


def same_as(attribute: str) -> property:
    """Return a property that reads and writes another attribute."""

    def get(config: Any) -> Any:
        return getattr(config, attribute)

    def put(config: Any, value: Any) -> None:
        setattr(config, attribute, value)

    return property(get, put, doc=f"Another name of `{attribute}`.")
