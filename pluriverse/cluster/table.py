"""Result table: rows of many pieces of work, written one by one, so that none is lost or duplicated.

The rows are a folder of Parquet files, one per piece, which any reader of Parquet opens as one table. A piece
is written under another name and then renamed, so a file that exists is complete.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.cluster.errors import ClusterError
from pluriverse.files import replace_file

MANIFEST = "_manifest.json"
"""What the results in a folder are results of. Readers of Parquet leave files with an underscore out."""
# Raised when the meaning of the files changes.
FORMAT_VERSION = 1


def load_arrow() -> Any:
    """Return the module `pyarrow`, with `pyarrow.parquet` loaded.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "tables of pluriverse.cluster are those of Apache Arrow, which is not installed. Install it "
            "with: pip install 'pluriverse[cluster]'"
        ) from error
    return pyarrow


def fingerprint(*values: Any) -> str:
    """Return a text that is equal for equal texts, numbers, arrays, and lists and mappings of them."""
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype}{value.shape}".encode())
            digest.update(np.ascontiguousarray(value).tobytes())
        else:
            digest.update(json.dumps(value, sort_keys=True, default=str).encode())
    return digest.hexdigest()


class ResultTable:
    """The rows of pieces of work, in memory or in a folder.

    Args:
        path: Folder for the rows; None keeps them in memory.
        work: What `fingerprint` returned for the work.
        piece_count: Number of pieces.
        resume: Whether rows that are there already stay, and their pieces count as done.

    Raises:
        FileExistsError: If there are rows already and `resume` was not asked for.
        ImportError: If Arrow is not installed.
        NotADirectoryError: If the path is a file.
        ValueError: If the rows there are of other work.
    """

    def __init__(self, path: str | Path | None, *, work: str, piece_count: int, resume: bool) -> None:
        self._arrow = load_arrow()
        self._path = None if path is None else Path(path)
        self._pieces: dict[int, Any] = {}
        if self._path is None:
            if resume:
                raise ValueError(
                    "there is nothing to resume: rows are kept in memory. Name a folder for them."
                )
            return
        if self._path.exists() and not self._path.is_dir():
            raise NotADirectoryError(f"'{self._path}' is a file, but results are written to a folder.")
        manifest = {"format": FORMAT_VERSION, "work": work, "pieces": piece_count}
        file = self._path / MANIFEST
        if file.exists():
            if not resume:
                raise FileExistsError(
                    f"'{self._path}' holds results already. Go on with them by resume=True (--resume), or "
                    "name another folder."
                )
            self._check_manifest(file, manifest)
        else:
            self._path.mkdir(parents=True, exist_ok=True)
            if any(self._path.glob("*.parquet")):
                raise FileExistsError(f"'{self._path}' holds tables of something else. Name another folder.")
            _write_atomically(file, json.dumps(manifest, indent=1).encode())
        for part in sorted(self._path.glob("piece-*.parquet")):
            self._pieces[int(part.stem.partition("-")[2])] = None

    @property
    def done(self) -> set[int]:
        """The pieces whose rows are there."""
        return set(self._pieces)

    def add(self, piece: int, columns: Mapping[str, Any]) -> None:
        """Keep the rows of a piece; rows that are there already stay as they are."""
        if piece in self._pieces:
            return
        table = self._arrow.table(dict(columns))
        if self._path is None:
            self._pieces[piece] = table
            return
        sink = self._arrow.BufferOutputStream()
        self._arrow.parquet.write_table(table, sink)
        _write_atomically(self._path / f"piece-{piece:06d}.parquet", sink.getvalue().to_pybytes())
        self._pieces[piece] = None

    def table(self) -> Any:
        """Return all rows there are as a `pyarrow.Table`, in the order of the pieces."""
        tables = [
            self._arrow.parquet.read_table(self._path / f"piece-{piece:06d}.parquet")
            if self._path is not None
            else self._pieces[piece]
            for piece in sorted(self._pieces)
        ]
        return self._arrow.concat_tables(tables, promote_options="permissive")

    @staticmethod
    def _check_manifest(file: Path, manifest: dict[str, Any]) -> None:
        try:
            found = json.loads(file.read_text())
        except ValueError as error:
            raise ClusterError(
                f"'{file}' is damaged: {error}. Remove the folder to do the work from its beginning."
            ) from error
        if found != manifest:
            raise ValueError(
                f"'{file.parent}' holds results of other work: another scene, samples, length, seed or "
                "number of worlds. Name another folder, or ask for the same work."
            )


def _write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    with replace_file(path) as part:
        part.write_bytes(data)
