"""Archive: named arrays in a NumPy file (`.npz`), without pickled objects: to read one runs no code.

Arrays are stored uncompressed, so reading an archive never takes more memory than the file's size.
"""

import contextlib
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.files import replace_file

# Errors of NumPy and zipfile for files that are damaged or forged.
DAMAGE = (
    ValueError,
    EOFError,
    OSError,
    KeyError,
    AttributeError,
    TypeError,
    SyntaxError,
    OverflowError,
    MemoryError,
    RuntimeError,
    struct.error,
    tokenize.TokenError,
    zlib.error,
    zipfile.BadZipFile,
)


def write_arrays(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays to a file, bit for bit. The old file stays until the new one is complete and on disk.

    Raises:
        OSError: If the file cannot be written; the old one is then as it was.
    """
    with replace_file(path) as part, open(part, "wb") as file:
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
    with open(Path(path), "rb") as file:
        try:
            return _read(file)
        except DAMAGE as error:
            reason = str(error) or type(error).__name__
            raise ValueError(f"'{path}' is not {what}: {reason.rstrip('.')}.") from error


def _read(file: Any) -> dict[str, np.ndarray]:
    with contextlib.closing(zipfile.ZipFile(file)) as archive:
        entries = archive.infolist()
        length = file.seek(0, 2)
        if len({entry.filename for entry in entries}) != len(entries):
            raise ValueError("two arrays have one name")
        stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
        if not stored or sum(entry.file_size for entry in entries) > length:
            raise ValueError("its arrays are compressed, or claim to be larger than the file")
        arrays = {}
        for entry in entries:
            with archive.open(entry) as member:
                arrays[entry.filename.removesuffix(".npy")] = read_array(member, entry.filename)
        return arrays


def read_array(stream: Any, name: str) -> np.ndarray:
    """Return an array from a stream that holds nothing else.

    The header is trusted only as far as there are bytes.

    Args:
        stream: Stream of the bytes of a `.npy` file.
        name: What the array is called in messages.

    Raises:
        ValueError: If it is damaged, or holds objects. Damage may also raise the other exceptions in
            `DAMAGE`.
    """
    version = np.lib.format.read_magic(stream)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read_header is None:
        raise ValueError(f"'{name}' has the format {version}, which is unknown")
    shape, fortran, dtype = read_header(stream)
    if dtype.hasobject:
        raise ValueError(f"'{name}' holds objects, which are not read")
    data = stream.read()
    if any(size < 0 for size in shape):
        raise ValueError(f"'{name}' has the shape {shape}")
    count = 1
    for size in shape:
        count *= size
    if count * dtype.itemsize != len(data):
        raise ValueError(f"'{name}' has {len(data)} bytes, not those of shape {shape}")
    if count == 0 or dtype.itemsize == 0:
        return np.zeros(shape, dtype=dtype)
    return np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if fortran else "C").copy()


def take_array(arrays: dict[str, np.ndarray], name: str, path: str | Path, what: str) -> np.ndarray:
    """Return one of the arrays of a file.

    Raises:
        ValueError: If there is no such array.
    """
    if name not in arrays:
        raise ValueError(f"'{path}' is not {what}: it has no array '{name}'.")
    return arrays[name]


def read_integer(arrays: dict[str, np.ndarray], name: str, path: str | Path, what: str) -> int:
    """Return a non-negative whole number of a file.

    Raises:
        ValueError: If there is no such number.
    """
    value = take_array(arrays, name, path, what)
    if value.shape != () or not np.issubdtype(value.dtype, np.integer) or value < 0:
        raise ValueError(f"'{path}' is not {what}: {name} is {_short(value)}, but must be a number >= 0.")
    return int(value)


def take_text(arrays: dict[str, np.ndarray], name: str, path: str | Path, what: str) -> str:
    """Return a text of a file.

    Raises:
        ValueError: If there is no such text.
    """
    value = take_array(arrays, name, path, what)
    if value.shape != () or value.dtype.kind != "U":
        raise ValueError(f"'{path}' is not {what}: {name} is {_short(value)}, but must be a text.")
    return str(value)


def _short(value: np.ndarray) -> str:
    return f"{value.item()!r:.40}" if value.shape == () else f"an array of shape {value.shape}"


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
