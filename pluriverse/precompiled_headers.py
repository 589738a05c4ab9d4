"""Precompiled headers: those of Warp, which all threads that compile share, now and in later processes.

Warp precompiles its headers in every thread that compiles, which takes one to two seconds each, and drops
them with the process. Here they are kept beside the kernels, each file with a checksum. A damaged file, such
as one that was not yet on the disk when a machine lost power, can crash the compiler and with it the process.
So a process removes what does not match its checksum before it compiles for the first time.
"""

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Any

import warp as wp

# Names of headers that the compiler for CPUs makes.
_HEADERS = "builtin_*.pch"


class _SharedFolders(dict[int, Any]):
    """Folders of precompiled headers by thread: that of one thread for all that have none.

    A header has its compiler flags in its name, and is moved into place when it is complete. So threads that
    write into one folder do not disturb each other.
    """

    def __init__(self, folders: dict[int, Any], shared: Any) -> None:
        super().__init__(folders)
        self._shared = shared

    def __contains__(self, thread: object) -> bool:
        return True

    def __missing__(self, thread: int) -> Any:
        os.makedirs(self._shared.name, exist_ok=True)  # the kernel cache may have been cleared
        return self._shared


class _KeptFolder:
    """A folder of headers that outlives the process. Those that were damaged are removed on first use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_checked = False

    @property
    def name(self) -> str:
        """Path of the folder, as Warp asks for it when it compiles, one thread at a time."""
        if not self._is_checked:
            self._is_checked = True
            for header in self._path.glob(_HEADERS):
                _remove_if_damaged(header)
        return str(self._path)


def seal_headers(folder: str | Path | None) -> None:
    """Write the checksums of headers that have none, once the compiler has made or used them."""
    if folder is None:
        return
    for header in Path(folder).glob(_HEADERS):
        seal = _seal_of(header)
        if not seal.exists():
            with contextlib.suppress(OSError):  # without a checksum it is made anew by the next process
                seal.write_text(_checksum(header), encoding="ascii")


def _remove_if_damaged(header: Path) -> None:
    with contextlib.suppress(OSError):
        seal = _seal_of(header)
        if not seal.exists() or seal.read_bytes() != _checksum(header).encode():
            seal.unlink(missing_ok=True)
            header.unlink(missing_ok=True)


def _seal_of(header: Path) -> Path:
    return header.with_name(f"{header.name}.sha256")


def _checksum(header: Path) -> str:
    return hashlib.sha256(header.read_bytes()).hexdigest()


def share_headers() -> None:
    """Let all threads use the headers that are kept beside the kernels, from now on.

    Where none can be kept, they use those that one of them has precompiled, if any has.
    """
    context = getattr(getattr(wp, "_src", None), "context", None)
    runtime = getattr(context, "runtime", None)
    folders = getattr(runtime, "_pch_dirs", None)
    if runtime is None or type(folders) is not dict:
        return  # Warp keeps them in another way, or they are shared already
    kept = _kept_folder(context)
    if kept is not None:
        runtime._pch_dirs = _SharedFolders(folders, _KeptFolder(kept))
        return
    for folder in list(folders.values()):
        if os.listdir(folder.name):
            runtime._pch_dirs = _SharedFolders(folders, folder)
            return


def _kept_folder(context: Any) -> Path | None:
    """Return the folder of the headers of this Warp on this processor; None where there is no such.

    Warp names a file in it by the flags of the compiler.
    """
    cache = wp.config.kernel_cache_dir
    processor = getattr(context, "_get_host_cpu_name", None)
    features = getattr(context, "_get_cpu_feature_set", None)
    compiler = getattr(context, "_get_cpu_toolchain_version", None)
    if not cache or not wp.config.cache_kernels or processor is None or features is None or compiler is None:
        return None
    try:
        header = Path(wp.__file__).parent / "native" / "builtin.h"
        stamp = header.stat()  # headers that were installed anew are precompiled anew
        parts = (header, stamp.st_size, stamp.st_mtime_ns, processor(), *sorted(features()), compiler())
        key = hashlib.sha256(repr(parts).encode()).hexdigest()[:8]
        folder = Path(cache) / f"wp_pluriverse.headers_{key}"
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None
