"""Overload search: each combination of types is looked for once, and what is found is what Warp finds."""

import warp as wp

from pluriverse.overload_search import install


class Searches:
    """Replaces Warp's search meanwhile by one that writes down what is asked."""

    def __init__(self, monkeypatch):
        self.adjoint = wp._src.codegen.Adjoint
        search = self.adjoint.resolve_func
        self.search = getattr(search, "__wrapped__", search)
        self.asked = []

        def resolve_func(adjoint, function, types, keyword_types, output_count):
            self.asked.append(types)
            return self.search(adjoint, function, types, keyword_types, output_count)

        monkeypatch.setattr(self.adjoint, "resolve_func", resolve_func)
        install()

    def find(self, name, *types, **keyword_types):
        """Return the version of a built-in function, which Warp's own search finds, too."""
        function = wp._src.context.builtin_functions[name]
        found = self.adjoint.resolve_func(None, function, types, keyword_types, None)
        assert found is self.search(None, function, types, keyword_types, None)
        return found


def test_versions_are_searched_once_for_each_combination_of_types(monkeypatch):
    """Types, their order, elements of arrays and the function tell combinations apart."""
    searches = Searches(monkeypatch)
    calls = [
        ("mul", wp.float32, wp.vec3),
        ("mul", wp.vec3, wp.float32),
        ("mul", wp.float32, wp.float32),
        ("mul", wp.mat33, wp.vec3),
        ("mul", wp.mat33d, wp.vec3d),
        ("add", wp.float32, wp.float32),
        ("address", wp.array[float], wp.int32),
        ("address", wp.array[wp.vec3], wp.int32),
        ("address", wp.array2d[float], wp.int32, wp.int32),
        ("address", wp.indexedarray(dtype=float), wp.int32),
    ]
    versions = [searches.find(*call) for call in calls]
    assert len(searches.asked) == len(calls)
    assert [searches.find(*call) for call in calls] == versions
    again = searches.asked[len(calls) :]
    assert again == [calls[-1][1:]]  # arrays of other kinds are not remembered


def test_calls_with_names_of_arguments_are_searched_each_time(monkeypatch):
    """Names of arguments are not part of what is remembered."""
    searches = Searches(monkeypatch)
    for _ in range(2):
        searches.find("clamp", wp.float32, wp.float32, high=wp.float32)
    assert len(searches.asked) == 2
