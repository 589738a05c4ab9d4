"""Modules of a user's own: installed, in the working directory, or files, with what stands beside them."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType


class OwnModuleError(ImportError):
    """A module of the user's own cannot be imported, or one that it imports."""


def load_own_module(name: str) -> ModuleType:
    """Return a module by its name, or a file by its path; its folder stays on the path for what it imports.

    A module that is not installed is looked for in the working directory, as `python -m` does.

    Args:
        name: Name of the module, or path of a file that ends in `.py`.

    Raises:
        OwnModuleError: If there is none, or a module that it imports is missing.
        ImportError: If a library says that it needs another one.
    """
    if name.endswith(".py"):
        return _load_file(name)
    top = name.partition(".")[0]
    if top not in sys.modules and importlib.util.find_spec(top) is None:
        _add_to_path(Path.cwd())
        importlib.invalidate_caches()  # the file may be newer than the last look into the folder
        if importlib.util.find_spec(top) is None:
            raise OwnModuleError(
                f"there is no module '{top}', neither installed nor in the working directory '{Path.cwd()}'. "
                f"Name the file instead, as in path/{top}.py."
            )
    with _explained_errors(name):
        return importlib.import_module(name)


def _load_file(name: str) -> ModuleType:
    path = Path(name).resolve()
    if not path.is_file():
        raise OwnModuleError(f"there is no file '{name}'.")
    _add_to_path(path.parent)
    importlib.invalidate_caches()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with _explained_errors(name):
        spec.loader.exec_module(module)
    return module


def _add_to_path(folder: Path) -> None:
    # In front, as for scripts. It stays, since functions import too, when they are called.
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@contextmanager
def _explained_errors(name: str) -> Iterator[None]:
    """Say which module a user has to mend."""
    try:
        yield
    except ImportError as error:
        # Those of `import_optional` have no name of a module, and say what to install.
        if error.name is None or name.startswith("pluriverse."):
            raise
        folder = Path(name).resolve().parent if name.endswith(".py") else Path.cwd()
        if not isinstance(error, ModuleNotFoundError):
            raise OwnModuleError(f"'{name}' cannot be imported: {error}") from error
        raise OwnModuleError(
            f"'{name}' needs the module '{error.name}', which is neither installed nor in '{folder}'. "
            "Install it, or put its file there."
        ) from error
