"""Function arguments: found in calls of functions that take some, and looked for in no others."""

import warp as wp

from pluriverse.function_arguments import install


@wp.func
def double(a: float) -> float:
    return a + a


@wp.func
def square(a: float) -> float:
    return a * a


@wp.func
def apply(function: wp.Function, a: float) -> float:
    return function(a)


@wp.func
def apply_double(a: float, function: wp.Function = double) -> float:
    return function(a)


@wp.func
def shift(a: float) -> float:
    return a + 1.0


@wp.kernel(enable_backward=False, module="unique")
def evaluate(numbers: wp.array[float]):
    thread, _ = wp.tid()
    numbers[thread] = apply(square, shift(2.0)) + apply_double(3.0)


def test_functions_that_a_call_hands_over_are_part_of_what_a_kernel_depends_on(monkeypatch):
    """They are found as Warp itself finds them, given and by default; plain calls are not searched."""
    codegen = wp._src.codegen
    search = codegen.iter_call_callable_arg_targets
    search = getattr(search, "__wrapped__", search)
    searched = []

    def iter_call_callable_arg_targets(adjoint, function, *others):
        searched.append(function)
        return search(adjoint, function, *others)

    found = []
    for is_short in (False, True):
        monkeypatch.setattr(codegen, "iter_call_callable_arg_targets", iter_call_callable_arg_targets)
        if is_short:
            install()
        searched.clear()
        functions = evaluate.adj.get_references()[2]
        assert set(searched) == {apply, apply_double} | (set() if is_short else {shift})
        found.append(list(functions))
    assert found[0] == found[1]
    assert set(found[1]) == {apply, square, shift, apply_double, double}
