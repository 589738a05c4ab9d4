"""Precompiled headers: those of Warp, which all threads that compile share, now and in later processes.

Warp precompiles its headers in every thread that compiles, which takes one to two seconds each, and drops
them with the process. Here they are kept beside the kernels. Headers that the compiler cannot use, such as
those of a file that was damaged, are removed by Warp, which then compiles without them.
"""

import hashlib
import os
import types
from pathlib import Path
from typing import Any

import warp as wp


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
        runtime._pch_dirs = _SharedFolders(folders, types.SimpleNamespace(name=str(kept)))
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
