"""How kernels are declared: the worlds of a launch first, and the axes of every array beside it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pluriverse

PACKAGE = Path(pluriverse.__file__).parent
# Rooms whose kernels are stages of a step, of which one thread does one world.
STAGE_ROOMS = ("collision", "dynamics", "sensors", "simulation", "solvers")
# Kernels there that are launched for something else: shapes of all worlds, joints, articulations or
# sites that a user lists, parts of a mesh, counters, rows of MuJoCo Warp's models.
OF_OTHER_THINGS = {
    *("find_seam", "measure_triangle", "mark_sharp_edge", "average_edge_normal", "update_global_shape"),
    *("mark_articulation", "_mark_articulation", "mark_masked_articulation", "select_joint"),
    *("split_force", "sum_force", "add_to_count", "take_world"),
    *("clear_external_count", "push_external_contact", "pull_external_force"),
    *("measure_site", "relate_shape"),
    *("keep_row", "list_contact", "finalize_row", "set_time_step", "limit_row_speed"),
}


def kernels() -> Iterator[tuple[str, ast.FunctionDef, list[str]]]:
    """Yield the module of each kernel from the package on, the kernel, and the lines of the module."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        if "wp.kernel" in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef) and any(
                    ast.unparse(decorator).startswith("wp.kernel") for decorator in node.decorator_list
                ):
                    yield path.relative_to(PACKAGE).as_posix(), node, text.splitlines()


def test_stages_take_their_worlds_first():
    """The first argument of a stage kernel is the list of worlds that it may touch."""
    known = set()
    for module, kernel, _ in kernels():
        if module.split("/")[0] not in STAGE_ROOMS:
            continue
        if kernel.name in OF_OTHER_THINGS:
            known.add(kernel.name)
            continue
        first = kernel.args.args[0]
        assert (first.arg, ast.unparse(first.annotation)) == ("worlds", "wp.array[int]"), (
            module,
            kernel.name,
        )
    assert known == OF_OTHER_THINGS


def test_the_axes_of_every_array_stand_beside_it():
    """Each array of a kernel has a comment that names its axes, `[world, dof]`, with units behind them.

    The leading list of worlds needs none.
    """
    missing = [
        f"{module}: {kernel.name}({argument.arg})"
        for module, kernel, lines in kernels()
        for argument in kernel.args.args
        if argument.annotation is not None and "array" in ast.unparse(argument.annotation)
        if argument is not kernel.args.args[0] or argument.arg != "worlds"
        if not re.search(r"#.*\[", lines[argument.end_lineno - 1])
    ]
    assert missing == []


def test_kernels_are_compiled_once():
    """Each kernel takes two coordinates of its thread, since Warp compiles those of one twice on a CPU.

    It makes a variant for contiguous arrays and one for others, which doubles the time of a cold start.
    """
    doubled = [
        f"{module}: {kernel.name}"
        for module, kernel, _ in kernels()
        for node in ast.walk(kernel)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "wp.tid"
        if not any(
            isinstance(assignment, ast.Assign)
            and assignment.value is node
            and isinstance(assignment.targets[0], ast.Tuple)
            for assignment in ast.walk(kernel)
        )
    ]
    assert not doubled


def test_what_declares_kernels_is_made_once_in_all_threads():
    """`functools.cache` lets two threads declare one kernel each, of which one fails; `made_once` does not.

    A factory declares kernels, functions, structs or types of Warp, or calls another factory.
    """
    cached, factories = [], set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
                if "made_once" in decorators:
                    factories.add(node.name)
                if any(re.match(r"(functools\.)?(lru_)?cache\b", decorator) for decorator in decorators):
                    cached.append((path.relative_to(PACKAGE).as_posix(), node))
    assert factories
    of_warp = r"@wp\.|\bwp\.(types|(func|func_native|kernel|struct)\()"
    declares = re.compile(rf"{of_warp}|\b({'|'.join(factories)})\(")
    assert [f"{path}: {node.name}" for path, node in cached if declares.search(ast.unparse(node))] == []
