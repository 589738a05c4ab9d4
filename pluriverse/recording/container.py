"""Container: a file of named arrays that grows while it is written, and stays readable if it is cut off.

It is an uncompressed ZIP archive of NumPy arrays (`.npy`): once closed, `numpy.load` opens it like any
`.npz`. Closing adds the table of contents. Without it, entries are found one after the other by their
headers, up to the last one whose checksum is right.
"""

import contextlib
import io
import json
import struct
import threading
import zipfile
import zlib
from pathlib import Path
from typing import Any, Self

import numpy as np

from pluriverse.model.archive import DAMAGE, read_array

# Header before each entry of a ZIP archive: signature, method, checksum, sizes, lengths of what follows.
_HEADER = struct.Struct("<4sHHHHHIIIHH")
_SIGNATURE = b"PK\x03\x04"
# Larger entries would need the 64-bit form of that header.
ENTRY_BYTES_MAX = 2**31 - 2**16


class ContainerWriter:
    """Writes arrays to a file; each is durable once `add` has returned.

    Args:
        path: The file; an old one of that name is replaced.

    Raises:
        OSError: If the file cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 (it stays open while a simulation runs)
        self._archive = zipfile.ZipFile(self._file, "w", zipfile.ZIP_STORED)
        self._path = path

    def add(self, name: str, array: Any) -> None:
        """Append an array.

        Raises:
            OSError: If there is no room on the disk.
            ValueError: If the array is larger than 2 GiB.
        """
        data = io.BytesIO()
        # Without pickled objects: to read a file runs no code.
        np.lib.format.write_array(
            data, np.ascontiguousarray(array).reshape(np.shape(array)), allow_pickle=False
        )
        if data.tell() > ENTRY_BYTES_MAX:
            raise ValueError(
                f"'{self._path}': '{name}' takes {data.tell() / 2**30:.1f} GiB, more than 2 GiB. Record "
                "fewer worlds."
            )
        try:
            self._archive.writestr(f"{name}.npy", data.getbuffer())
            self._file.flush()
        except OSError:
            with contextlib.suppress(OSError):
                self.close()
            raise

    def add_json(self, name: str, value: Any) -> None:
        """Append a JSON value, as UTF-8 bytes."""
        self.add(name, np.frombuffer(json.dumps(value).encode(), dtype=np.uint8))

    @property
    def is_closed(self) -> bool:
        """Whether the file is closed."""
        return self._file.closed

    def close(self) -> None:
        """Write the table of contents."""
        try:
            self._archive.close()
        finally:
            self._file.close()


class ContainerReader:
    """Reads arrays of a file that `ContainerWriter` wrote, or was killed while it wrote.

    Args:
        path: The file.
        what: Name of the expected content, for messages.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no such file.
    """

    def __init__(self, path: str | Path, what: str) -> None:
        self._path, self._what = path, what
        self._lock = threading.Lock()
        self._file = open(path, "rb")  # noqa: SIM115 (arrays are read when asked for)
        self._entries: dict[str, tuple[int, int, int]] = {}
        self.is_complete = False
        """Whether the file was closed."""
        try:
            self._find_entries()
        except DAMAGE as error:
            self._file.close()
            raise self._error(str(error) or type(error).__name__) from error

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    @property
    def names(self) -> list[str]:
        """Names of the arrays, in the order in which they were written."""
        return list(self._entries)

    def read(self, name: str) -> np.ndarray:
        """Return an array.

        Raises:
            ValueError: If there is none of that name, or it is damaged.
        """
        if name not in self._entries:
            raise self._error(f"it has no '{name}'")
        offset, size, checksum = self._entries[name]
        with self._lock:  # a viewer reads in a thread of its own
            self._file.seek(offset)
            data = self._file.read(size)
        if len(data) != size or zlib.crc32(data) != checksum:
            raise self._error(f"'{name}' is damaged")
        try:
            return read_array(io.BytesIO(data), name)
        except DAMAGE as error:
            raise self._error(str(error) or type(error).__name__) from error

    def read_json(self, name: str) -> Any:
        """Return a value that `add_json` wrote.

        Raises:
            ValueError: If there is none of that name, or it is damaged.
        """
        try:
            return json.loads(self.read(name).tobytes())
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise self._error(f"'{name}' is damaged") from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _error(self, reason: str) -> ValueError:
        return ValueError(f"'{self._path}' is not {self._what}: {reason.rstrip('.')}.")

    def _find_entries(self) -> None:
        if self._file.read(4) != _SIGNATURE:
            raise ValueError("it begins with other bytes")
        try:
            with zipfile.ZipFile(self._file) as archive:
                entries = archive.infolist()
        except zipfile.BadZipFile:
            self._scan()
            return
        self.is_complete = True
        for entry in entries:
            if entry.compress_type != zipfile.ZIP_STORED:
                raise ValueError("its arrays are compressed")
            self._file.seek(entry.header_offset)
            header = _HEADER.unpack(self._file.read(_HEADER.size))
            offset = entry.header_offset + _HEADER.size + header[9] + header[10]
            self._entries[entry.filename.removesuffix(".npy")] = (offset, entry.file_size, entry.CRC)

    def _scan(self) -> None:
        """Find the entries by their headers, up to the first incomplete one."""
        position = 0
        while True:
            self._file.seek(position)
            head = self._file.read(_HEADER.size)
            if len(head) < _HEADER.size:
                return
            signature, _, _, method, _, _, checksum, size, full_size, name_length, extra_length = (
                _HEADER.unpack(head)
            )
            if signature != _SIGNATURE or method != 0 or size != full_size:
                return
            name = self._file.read(name_length).decode("utf-8", errors="replace")
            offset = position + _HEADER.size + name_length + extra_length
            self._file.seek(offset)
            data = self._file.read(size)
            # The header of an entry that is still being written gives its length as zero.
            if size == 0 or len(data) != size or zlib.crc32(data) != checksum:
                return
            self._entries[name.removesuffix(".npy")] = (offset, size, checksum)
            position = offset + size
