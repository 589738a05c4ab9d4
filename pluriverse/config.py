"""Settings of the process: what it prints, where it keeps and finds files.

A setting that is None is that of its environment variable, and without one the default. Settings hold for
what is done after they were made, in this process; worker processes go by the environment variables.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

verbose: bool | None = None
"""What is printed besides warnings and errors: True for a report of each import, and each module of kernels
that is loaded; False for nothing, not even the progress of compiling; None for the progress alone."""
kernel_cache_dir: str | Path | None = None
"""Folder of compiled kernels, set before the first of them is used; `WARP_CACHE_PATH`, or Warp's default."""
mesh_cache_dir: str | Path | None = None
"""Folder of what is computed from meshes; `PLURIVERSE_MESH_CACHE`, or `~/.cache/pluriverse/meshes`."""
asset_cache_dir: str | Path | None = None
"""Folder of fetched assets; `SAP_WARP_ASSET_CACHE`, or `~/.cache/sap_warp/assets`."""
asset_roots: Sequence[str | Path] | None = None
"""Folders in which files of robots are looked for, after those given to a call; `PLURIVERSE_ASSETS`."""
offline: bool | None = None
"""Whether fetching assets is forbidden; `SAP_WARP_ASSET_OFFLINE`, or False."""

MESH_CACHE_VARIABLE = "PLURIVERSE_MESH_CACHE"
ASSET_CACHE_VARIABLE = "SAP_WARP_ASSET_CACHE"
ASSET_ROOTS_VARIABLE = "PLURIVERSE_ASSETS"
OFFLINE_VARIABLE = "SAP_WARP_ASSET_OFFLINE"

_SWITCHES = ("verbose", "offline")
_FOLDERS = ("kernel_cache_dir", "mesh_cache_dir", "asset_cache_dir")
_SETTINGS = (*_SWITCHES, *_FOLDERS, "asset_roots")


def verbosity() -> bool | None:
    """Return what is printed: `verbose`."""
    return verbose


def mesh_cache_folder() -> Path:
    """Return the folder of what is computed from meshes."""
    return _folder(mesh_cache_dir, MESH_CACHE_VARIABLE, "pluriverse/meshes")


def asset_cache_folder() -> Path:
    """Return the folder of fetched assets."""
    return _folder(asset_cache_dir, ASSET_CACHE_VARIABLE, "sap_warp/assets")


def asset_folders() -> list[Path]:
    """Return the folders in which files of robots are looked for."""
    if asset_roots is not None:
        return [Path(folder).expanduser() for folder in asset_roots]
    return [Path(part) for part in os.environ.get(ASSET_ROOTS_VARIABLE, "").split(os.pathsep) if part]


def is_offline() -> bool:
    """Return whether fetching assets is forbidden."""
    if offline is not None:
        return offline
    return os.environ.get(OFFLINE_VARIABLE, "").strip().lower() in ("1", "true", "yes", "on")


def _folder(given: str | Path | None, variable: str, default: str) -> Path:
    folder = given or os.environ.get(variable)
    return Path(folder).expanduser() if folder else Path.home() / ".cache" / default


def _use_kernel_cache(folder: str | Path | None) -> None:
    import warp as wp

    path = None if folder is None else str(Path(folder).expanduser())
    context = getattr(getattr(wp, "_src", None), "context", None)
    if getattr(context, "runtime", None) is not None and path != wp.config.kernel_cache_dir:
        raise RuntimeError(
            f"pluriverse.config.kernel_cache_dir = {str(folder)!r}: Warp has begun to use "
            f"'{wp.config.kernel_cache_dir}'. Set it before anything is put on a device, or set "
            "WARP_CACHE_PATH."
        )
    wp.config.kernel_cache_dir = path


class _Config(ModuleType):
    """The module, which checks what is assigned to it."""

    def __setattr__(self, name: str, value: Any) -> None:
        what = f"pluriverse.config.{name} = {value!r}"
        if name.startswith("__"):
            super().__setattr__(name, value)  # Python's own, such as the loader of a reload
            return
        if name not in _SETTINGS:
            raise AttributeError(
                f"{what}: there is no such setting. There are {', '.join(_SETTINGS)}. What a simulation does "
                "is set by arguments of its parts, Warp by wp.config."
            )
        if value is not None:
            if name in _SWITCHES and not isinstance(value, bool):
                raise TypeError(f"{what}: give True, False or None.")
            if name in _FOLDERS and not isinstance(value, str | Path):
                raise TypeError(f"{what}: give the path of a folder, or None.")
            if name == "asset_roots":
                if isinstance(value, str | Path) or not isinstance(value, Sequence):
                    raise TypeError(f"{what}: give a list of folders, or None.")
                if not all(isinstance(folder, str | Path) for folder in value):
                    raise TypeError(f"{what}: every folder must be a path.")
                value = tuple(value)
        if name == "kernel_cache_dir":
            _use_kernel_cache(value)
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"pluriverse.config has no setting '{name}'. There are {', '.join(_SETTINGS)}. What a simulation "
            "does is set by arguments of its parts, Warp by wp.config."
        )


sys.modules[__name__].__class__ = _Config
