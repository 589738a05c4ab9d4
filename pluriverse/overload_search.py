"""Overload search: which version of a built-in function a call in a kernel means, looked for once.

Warp has some hundred versions of an operator, for vectors, matrices and numbers of each precision, and tries
one after the other to bind the arguments of each call. Where kernels of a step are written for the compiler,
that took two fifths of the time. The version depends on the types of the arguments and on nothing else, and
few combinations of types occur.
"""

import functools
from typing import Any

import warp as wp

# Types whose objects stand for arrays of elements of a type.
_ARRAYS = (wp.array, type(wp.array[float]))


def install() -> None:
    """Have Warp remember the versions of built-in functions that it has found, from now on."""
    adjoint = getattr(getattr(getattr(wp, "_src", None), "codegen", None), "Adjoint", None)
    search = getattr(adjoint, "resolve_func", None)
    if adjoint is None or search is None or hasattr(search, "remembers"):
        return  # Warp searches in another way, or this was done before
    found: dict[Any, Any] = {}

    @functools.wraps(search)
    def resolve_func(
        self: Any, function: Any, types: Any, keyword_types: Any, output_count: Any, *others: Any
    ) -> Any:
        if others or keyword_types or not function.is_builtin():
            return search(self, function, types, keyword_types, output_count, *others)
        names = [_name(one) for one in types]
        if None in names:
            return search(self, function, types, keyword_types, output_count)
        key = (function, len(function.overloads), output_count, *names)
        version = found.get(key)
        if version is None:
            version = found[key] = search(self, function, types, keyword_types, output_count)
        return version

    resolve_func.remembers = True  # type: ignore[attr-defined]
    adjoint.resolve_func = resolve_func


def _name(argument_type: Any) -> Any:
    """Return what stands for the type of an argument; None for a type that is not remembered."""
    if isinstance(argument_type, type):
        return argument_type
    if isinstance(argument_type, _ARRAYS) and isinstance(argument_type.dtype, type):
        return type(argument_type), argument_type.dtype, argument_type.ndim
    return None
