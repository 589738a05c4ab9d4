"""Fixed settings: what a solver is made with, which an assignment later on would not change."""

import abc
import inspect
from dataclasses import fields
from difflib import get_close_matches
from typing import Any


class FixedOptions:
    """Base of the options of a solver: dataclasses whose entries are fixed once they are checked."""

    _are_fixed = False

    def fix(self) -> None:
        """Refuse assignments from now on."""
        object.__setattr__(self, "_are_fixed", True)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._are_fixed:
            raise AttributeError(
                f"{type(self).__name__}.{name} was assigned {value!r}, but steps are prepared with the "
                "options that a solver was made with. Make a new solver with other ones."
            )
        object.__setattr__(self, name, value)


class FixedType(abc.ABCMeta):
    """Type of classes whose objects refuse attributes that they did not get while they were made."""

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        """Make an object, which is complete then."""
        made = super().__call__(*arguments, **options)
        made._is_made = True
        return made


class FixedSettings(metaclass=FixedType):
    """Base of solvers: refuses what nothing would read.

    That is another model, other options, and public names that are neither declared nor set by `__init__`.
    """

    _is_made = False

    def __setattr__(self, name: str, value: Any) -> None:
        # Steps set private attributes, and some that are there.
        if self._is_made and name[0] != "_" and (name not in self.__dict__ or name in ("model", "options")):
            _refuse(self, name, value)
        object.__setattr__(self, name, value)


def _refuse(solver: Any, name: str, value: Any) -> None:
    """Refuse an assignment, unless the class declares the name.

    Raises:
        AttributeError: If it does not, or if it is what the solver was made with.
    """
    kind = type(solver)
    options = {field.name for field in fields(solver.options)} if hasattr(solver, "options") else set()
    options |= set(inspect.signature(kind.__init__).parameters) - {"self", "settings"}
    if name in options or name == "options":
        other = "of that model" if name == "model" else f"with {name}={value!r}"
        raise AttributeError(
            f"{kind.__name__}.{name} was assigned {value!r}, but steps are prepared with what a solver was "
            f"made with. Make a new {kind.__name__} {'with other options' if name == 'options' else other}."
        )
    if hasattr(kind, name) or any(name in vars(base).get("__annotations__", {}) for base in kind.__mro__):
        return
    close = get_close_matches(name, [*options, *vars(solver)], n=1)
    remedy = f"Did you mean '{close[0]}'?" if close else "Let names of your own begin with an underscore."
    raise AttributeError(
        f"{kind.__name__} has no attribute '{name}', so nothing would read what is assigned. {remedy}"
    )
