"""What is borrowed from MuJoCo's memory stays in one folder, behind the interface of an engine."""

import re
from pathlib import Path

import pluriverse.solvers.mujoco as room

FOLDER = Path(room.__file__).parent
MODULES = {path.relative_to(FOLDER).as_posix(): path.read_text() for path in sorted(FOLDER.rglob("*.py"))}


def test_only_the_choice_of_an_engine_knows_the_c_engine():
    """No other module of the package imports from the folder, so it can be taken out."""
    package = FOLDER.parents[1]
    knowing = [
        path.relative_to(FOLDER).as_posix() if path.is_relative_to(FOLDER) else path.name
        for path in sorted(package.rglob("*.py"))
        if "pluriverse.solvers.mujoco.cpu" in re.sub(r'"[^"\n]*"', "", path.read_text())
    ]
    assert {name for name in knowing if not name.startswith("cpu/")} == {"engine_choice.py"}


def test_only_the_c_engine_reads_addresses_and_has_native_code():
    """Nobody else calls by address or writes to memory that is not an array's."""
    for name, text in MODULES.items():
        if not name.startswith("cpu/"):
            for word in ("ctypes", "func_native", r"\._address\b", "__array_interface__"):
                assert not re.search(word, text), (name, word)
