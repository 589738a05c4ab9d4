"""Arrays computed from meshes, kept on disk between runs; files are complete or absent."""

import os
import tempfile
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pluriverse.config import MESH_CACHE_VARIABLE, mesh_cache_folder
from pluriverse.warnings import MeshApproximationWarning


def cache_folder(cache_dir: str | Path | None) -> Path:
    """Return the folder in use: the one given, or that of `pluriverse.config.mesh_cache_dir`."""
    return Path(cache_dir).expanduser() if cache_dir else mesh_cache_folder()


def read_arrays(path: Path) -> dict[str, np.ndarray] | None:
    """Return the arrays of a file by name, None if there is none or it is broken."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None  # not there, cut short or not ours: computed anew and replaced


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], what: str, *, compress: bool) -> None:
    """Write arrays atomically: a reader finds the whole file or none. Warn if writing fails.

    Args:
        path: The file.
        arrays: The arrays by name.
        what: Name of the arrays in the warning.
        compress: Whether space matters more than time.
    """
    save = np.savez_compressed if compress else np.savez
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npz", delete=False) as file:
            save(file, **arrays)  # type: ignore[arg-type]
        os.replace(file.name, path)
    except OSError as error:
        warnings.warn(
            f"{what} could not be kept in '{path.parent}': {error}. Set {MESH_CACHE_VARIABLE} to a "
            "folder that can be written to.",
            MeshApproximationWarning,
            stacklevel=3,
        )
