"""Precompiled headers: those of Warp, of which all threads that compile use the same.

Warp precompiles its headers in every thread that compiles, which takes two seconds each.
"""

import os
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
        return self._shared


def share_headers() -> None:
    """Let all threads use the headers that one has precompiled, if any has, from now on."""
    runtime = getattr(getattr(getattr(wp, "_src", None), "context", None), "runtime", None)
    folders = getattr(runtime, "_pch_dirs", None)
    if runtime is None or type(folders) is not dict:
        return  # Warp keeps them in another way, or they are shared already
    for folder in list(folders.values()):
        if os.listdir(folder.name):
            runtime._pch_dirs = _SharedFolders(folders, folder)
            return
