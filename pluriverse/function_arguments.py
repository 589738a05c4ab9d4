"""Function arguments: functions that a call hands to a function, looked for only where it takes some.

Warp goes through all calls of a function when it is declared and when the hash of its module is made. It
binds their arguments to find functions among them, on which the result depends, too. That took a fifth of
the time from a model to its first step with a filled kernel cache, while a function that takes functions is
rare: whether it does is told by the types of its parameters.
"""

import functools
from typing import Any

import warp as wp


def install() -> None:
    """Have Warp look for functions among the arguments of those calls only, from now on."""
    source = getattr(wp, "_src", None)
    codegen = getattr(source, "codegen", None)
    search = getattr(codegen, "iter_call_callable_arg_targets", None)
    takes_function = getattr(getattr(source, "types", None), "is_warp_function_annotation", None)
    if codegen is None or search is None or takes_function is None or hasattr(search, "is_short"):
        return  # Warp searches in another way, or this was done before

    @functools.wraps(search)
    def iter_call_callable_arg_targets(adjoint: Any, function: Any, *others: Any, **options: Any) -> Any:
        if isinstance(function, wp.Function) and not function.is_builtin():
            versions = (function, *function.user_overloads.values(), *function.user_templates.values())
            if not any(takes_function(kind) for version in versions for kind in version.input_types.values()):
                return iter(())
        return search(adjoint, function, *others, **options)

    iter_call_callable_arg_targets.is_short = True  # type: ignore[attr-defined]
    codegen.iter_call_callable_arg_targets = iter_call_callable_arg_targets
