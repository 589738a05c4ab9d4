"""The house: rooms import only rooms below them, in the order of the map, and no module imports itself."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pluriverse

PACKAGE = Path(pluriverse.__file__).parent
MAP = PACKAGE.parent / "docs" / "architecture.md"
CONTRIBUTING = PACKAGE.parent / "CONTRIBUTING.md"

# Modules of the package itself that every room may use; they use none.
GROUND = (
    *("compile_lock", "config", "copying", "files", "garbage_collection", "kernel_progress", "kernel_source"),
    *("function_arguments", "launch", "launch_list", "newton_names", "options", "overload_search"),
    *("precompilation", "precompiled_headers", "scratch", "warnings"),
)
# What has the import paths of other systems, for scripts written for them. Nothing here uses it.
FOREIGN_PATHS = ("entity", "examples", "gymtorch", "gymutil", "terrain_utils", "torch_utils", "usd", "utils")
# `python -m pluriverse`, which stands above all rooms.
ENTRY = "__main__"
# Methods that make something of a higher room, of the object that they belong to. The import stands in them.
CONVENIENCES = {("simulation.simulation", "viewer")}  # Simulation.viewer
LINES_MAX = 600


def rooms() -> list[str]:
    """Return the rooms as the map lists them, from the ground up; later tables of the page are others."""
    first = re.search(r"(^\| `\w+` \|.*\n)+", MAP.read_text(), flags=re.MULTILINE)
    return re.findall(r"^\| `(\w+)` \|", first.group() if first else "", flags=re.MULTILINE)


def modules() -> dict[str, Path]:
    """Return the files of the package by the names of their modules, without that of the package."""
    result = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        result[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return result


@functools.cache
def parsed(path: Path) -> ast.AST:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text())


def imports(tree: ast.AST, *, deferred: bool, types: bool = False) -> Iterator[str]:
    """Yield what a module imports when it runs.

    `deferred` adds what its functions import, `types` what only type checkers see.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            continue  # most nodes, which hold no import
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not deferred:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from imports(node, deferred=deferred, types=types)


def read_graph(*, deferred: bool, types: bool = False) -> dict[str, set[str]]:
    """Return which modules import which."""
    known = modules()
    edges: dict[str, set[str]] = {}
    for name, path in known.items():
        targets = imports(parsed(path), deferred=deferred, types=types)
        own = {target.removeprefix("pluriverse.") for target in targets if target.startswith("pluriverse.")}
        edges[name] = {target if target in known else target.rpartition(".")[0] for target in own} - {
            name,
            "",
        }
    return edges


def circles(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return what is left without what imports nothing that is left, or what nothing left imports."""
    edges = {name: targets for name, targets in edges.items() if name}
    while True:
        imported = set().union(*edges.values())
        ends = [name for name, targets in edges.items() if name not in imported or not targets & edges.keys()]
        if not ends:
            return edges
        edges = {name: targets - set(ends) for name, targets in edges.items() if name not in ends}


def test_the_map_and_the_guide_list_all_rooms_in_one_order():
    """Every room stands on the map; the guide for contributors has the same order."""
    here = {name.split(".")[0] for name in modules()} - {"", ENTRY, *GROUND, *FOREIGN_PATHS}
    assert set(rooms()) == here
    text = CONTRIBUTING.read_text()
    text = text[text.index("From the ground up:") : text.index("[The map]")]
    assert re.findall(r"`(\w+)`", text) == rooms()


def test_rooms_import_only_rooms_below_them():
    """An import leads down the map, wherever it stands; conveniences are listed."""
    height = {room: place for place, room in enumerate(rooms())} | dict.fromkeys(GROUND, -1)
    up, seen = [], set()
    for name, targets in read_graph(deferred=True).items():
        room = name.split(".")[0]
        if room in ("", ENTRY, *FOREIGN_PATHS):
            continue
        for target in sorted(targets):
            other = target.split(".")[0]
            if (name, other) in CONVENIENCES:
                seen.add((name, other))
            elif height.get(other, len(height)) > height[room]:
                up.append(f"{name} -> {target}")
    assert up == []
    assert seen == CONVENIENCES


def test_modules_do_not_import_each_other():
    """There is no circle of imports, not even through those of functions."""
    assert circles(read_graph(deferred=True)) == {}


def test_types_lead_one_way_too():
    """What only type checkers import makes no circle either."""
    assert circles(read_graph(deferred=True, types=True)) == {}


def test_files_stay_readable():
    """No file of the package is longer than one can read in one sitting."""
    long = [
        path.relative_to(PACKAGE).as_posix()
        for path in modules().values()
        if len(path.read_text().splitlines()) > LINES_MAX
    ]
    assert long == []


def test_what_steps_does_not_know_what_builds():
    """A solver, and the stages that it is made of, work on a model, whoever made it."""
    builds = ("builder", "importers", "model_builder")
    arrows = [
        f"{name} -> {target}"
        for name, targets in read_graph(deferred=True, types=True).items()
        for target in sorted(targets)
        if name.split(".")[0] in ("dynamics", "collision", "solvers") and target.split(".")[0] in builds
    ]
    assert arrows == []


def test_what_only_subclasses_can_do_is_abstract():
    """A base class that lacks a part cannot be made, so nobody meets an error without text in the middle."""
    silent = [
        f"{name}: {node.lineno}"
        for name, path in modules().items()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Raise)
        and node.exc is not None
        and ast.unparse(node.exc) in ("NotImplementedError", "NotImplementedError()")
    ]
    assert silent == []
