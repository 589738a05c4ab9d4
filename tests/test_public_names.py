"""Public names: each in one place, loaded on first use, and nothing heavy with the package itself."""

import importlib
import pkgutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import pluriverse


def test_every_name_loads_from_where_the_table_says():
    """The table of the package and its __all__ agree, and every entry exists."""
    assert set(pluriverse.__all__) == set(pluriverse._LAZY_MODULES)
    for name in pluriverse.__all__:
        assert getattr(pluriverse, name) is not None
        assert name in dir(pluriverse)
    with pytest.raises(AttributeError, match="no attribute 'SolverSap'"):
        _ = pluriverse.SolverSap


def test_every_public_name_stands_in_one_package():
    """No name is in the __all__ of two packages."""
    packages = [pluriverse]
    for module in pkgutil.walk_packages(pluriverse.__path__, "pluriverse."):
        if module.ispkg:
            packages.append(importlib.import_module(module.name))
    count = Counter(name for package in packages for name in getattr(package, "__all__", []))
    assert [name for name, times in count.items() if times > 1] == []


def test_importing_the_package_loads_nothing_heavy():
    """The package itself loads neither Warp nor NumPy, and building a model no importer or mesh library."""
    program = (
        "import sys, pluriverse; early = set(sys.modules); pluriverse.ModelBuilder().finalize('cpu');"
        "print(sorted({'warp', 'numpy'} & early), sorted({'mujoco', 'trimesh', 'lxml', 'scipy',"
        "'pydantic', 'typer', 'rich', 'matplotlib'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(pluriverse.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines()[-1] == "[] []"
