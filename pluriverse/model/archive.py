"""Archive: named arrays in a NumPy file (`.npz`), without pickled objects: to read one runs no code."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np


def write_arrays(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays to a file, bit for bit."""
    with open(path, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(path: str | Path, what: str) -> dict[str, np.ndarray]:
    """Return the arrays in a file.

    Args:
        path: File that `write_arrays` made.
        what: What the file should hold, for messages.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is no archive, or is damaged.
    """
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except (
            ValueError,
            EOFError,
            OSError,
            KeyError,
            AttributeError,
            RuntimeError,
            zipfile.BadZipFile,
        ) as error:
            raise ValueError(f"'{path}' is not {what}: {error}.") from error


def take_array(arrays: dict[str, np.ndarray], name: str, path: str | Path, what: str) -> np.ndarray:
    """Return one of the arrays of a file.

    Raises:
        ValueError: If there is no such array.
    """
    if name not in arrays:
        raise ValueError(f"'{path}' is not {what}: it has no array '{name}'.")
    return arrays[name]


def check_fit(array: Any, values: np.ndarray, what: str) -> None:
    """Raise if values from a file do not fit into a Warp array.

    Raises:
        ValueError: If shape or type differ.
    """
    expected = array.numpy()
    if values.shape != expected.shape or values.dtype != expected.dtype:
        raise ValueError(
            f"{what} has shape {values.shape} and type {values.dtype}, but the model needs {expected.shape} "
            f"and {expected.dtype}. The file was damaged or made for another model."
        )
