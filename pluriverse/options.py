"""Options that several functions share, each declared once with its default and meaning.

A function takes them as `**options: Unpack[JointOptions]`, which type checkers and editors follow, where
`JointOptions` is a `TypedDict` whose entries have docstrings, and defaults as `Annotated[int, 64]`.
`with_options` gives the function the full signature and documentation, and refuses other names.
"""

import ast
import difflib
import functools
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

Method = TypeVar("Method", bound=Callable[..., Any])


def with_options(
    options: type, *, tolerated: Collection[str] = (), sections: str = ""
) -> Callable[[Method], Method]:
    """Return a decorator that gives a method with `**options` the signature and documentation of them all.

    The method refuses other names (`TypeError`), but for those that are `tolerated`: it sees to them itself.
    `sections` (`Returns:`, `Raises:`) end its documentation, for methods that share them.
    """
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for name, (hint, default) in _declarations(options).items()
    ]
    meanings = _meanings(options)

    def decorate(method: Method) -> Method:
        signature = inspect.signature(method)
        own = [part for part in signature.parameters.values() if part.kind is not part.VAR_KEYWORD]
        names = [*(part.name for part in own), *(part.name for part in added)]

        @functools.wraps(method)
        def checked(*arguments: Any, **keywords: Any) -> Any:
            for name in keywords:
                if name not in names and name not in tolerated:
                    close = difflib.get_close_matches(name, names, n=1)
                    raise TypeError(
                        f"{method.__name__}() got an unexpected keyword argument '{name}'. "
                        + (f"Did you mean '{close[0]}'?" if close else f"There are {', '.join(names[1:])}.")
                    )
            return method(*arguments, **keywords)

        checked.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
        checked.__doc__ = _with_arguments(
            "\n\n".join(filter(None, (inspect.getdoc(method), sections))), meanings
        )
        return checked  # type: ignore[return-value]

    return decorate


def defaults_of(options: type) -> dict[str, Any]:
    """Return the defaults of options by name."""
    return {name: default for name, (_, default) in _declarations(options).items()}


def completed(options: type, given: Mapping[str, Any]) -> Any:
    """Return all options by name, those that were not given at their defaults."""
    return {**defaults_of(options), **given}


@functools.cache
def _declarations(options: type) -> dict[str, tuple[Any, Any]]:
    """Return the types and defaults of options; the default is None where an option has none."""
    hints = get_type_hints(options, include_extras=True)
    return {
        name: get_args(hint) if get_origin(hint) is Annotated else (hint, None)
        for name, hint in hints.items()
    }


@functools.cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """Return the source of the classes of a module by name."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _meanings(options: type) -> dict[str, str]:
    """Return what the docstrings of options say, by name."""
    pending, result = [options.__name__], {}
    sources = _classes(options.__module__)
    while pending:
        source = sources[pending.pop(0)]
        pending += [ast.unparse(base) for base in source.bases if ast.unparse(base) in sources]
        for declared, meaning in itertools.pairwise(source.body):
            if isinstance(declared, ast.AnnAssign):
                result[declared.target.id] = " ".join(meaning.value.value.split())  # type: ignore
    return {name: result[name] for name in _declarations(options)}


def _with_arguments(text: str, meanings: Mapping[str, str]) -> str:
    """Return a docstring with more arguments."""
    entries = "".join(
        textwrap.fill(f"{name}: {meaning}", 105, initial_indent="    ", subsequent_indent="        ") + "\n"
        for name, meaning in meanings.items()
    )
    end = re.search(r"^(Returns|Raises):$", text, re.MULTILINE)
    head, tail = (text, "") if end is None else (text[: end.start()], text[end.start() :])
    if "\nArgs:\n" not in head:
        head = head.rstrip("\n") + "\n\nArgs:\n"
    return head.rstrip("\n") + "\n" + entries + ("\n" + tail if tail else "")
