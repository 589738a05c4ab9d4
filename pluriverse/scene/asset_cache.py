"""The cache of fetched assets: entries are complete or absent.

An entry is a folder with `files/`, what was fetched, and `source.json`, where it came from and the size of
every file. It is filled in a folder of another name and renamed at the end, so that neither a broken download
nor a second process leaves a part of one behind. Processes that want the same entry wait for each other.
"""

import contextlib
import json
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pluriverse.config import ASSET_CACHE_VARIABLE, asset_cache_folder

# Polling interval of a process that waits for another [s].
LOCK_INTERVAL = 0.05
# Age after which leftovers of an interrupted process are deleted [s]: longer than any fetch may take.
STAGING_AGE_MAX = 86400.0

_FILES = "files"
_MANIFEST = "source.json"


class AssetFetchError(ValueError):
    """An asset could not be fetched; the message says why and what to do."""


_FOLDER: ContextVar[str | Path | None] = ContextVar("_FOLDER", default=None)


@contextlib.contextmanager
def in_cache(folder: str | Path | None) -> Iterator[None]:
    """Use another folder as the cache while the context lasts; None changes nothing."""
    token = _FOLDER.set(folder if folder is not None else _FOLDER.get())
    try:
        yield
    finally:
        _FOLDER.reset(token)


def cache_folder() -> Path:
    """Return the folder of the cache."""
    folder = _FOLDER.get()
    return Path(folder).expanduser() if folder else asset_cache_folder()


def stored_files(entry: Path) -> Path | None:
    """Return the folder of files of an entry of the cache, or None if the entry is missing or damaged."""
    try:
        manifest = json.loads((entry / _MANIFEST).read_text(encoding="utf-8"))
        sizes = manifest["files"].items()
        intact = all((entry / _FILES / name).stat().st_size == size for name, size in sizes)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return entry / _FILES if intact else None


def store(entry: Path, source: dict[str, Any], fill: Callable[[Path], None], *, wait: float) -> Path:
    """Return the folder of files of an entry, after `fill` has made it if need be.

    Args:
        entry: Folder of the entry.
        source: Origin of the files, for information.
        fill: Writes the files into an empty folder.
        wait: How long to wait for another process that fills the same entry [s].

    Raises:
        AssetFetchError: The cache cannot be written, or another process does not come to an end.
    """
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        with _locked(entry.with_name(entry.name + ".lock"), wait):
            # Another process may have been quicker.
            files = stored_files(entry)
            return files if files is not None else _fill(entry, source, fill)
    except OSError as error:
        raise AssetFetchError(
            f"the asset cache '{cache_folder()}' cannot be written: {error.strerror or error}; set "
            f"{ASSET_CACHE_VARIABLE} to a folder that can"
        ) from error


def _fill(entry: Path, source: dict[str, Any], fill: Callable[[Path], None]) -> Path:
    _delete_abandoned(entry)
    staging = entry.with_name(f"{entry.name}.part-{uuid.uuid4().hex}")
    try:
        (staging / _FILES).mkdir(parents=True)
        fill(staging / _FILES)
        sizes = {
            path.relative_to(staging / _FILES).as_posix(): path.stat().st_size
            for path in sorted((staging / _FILES).rglob("*"))
            if path.is_file()
        }
        manifest = {**source, "files": sizes}
        (staging / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        if entry.exists():  # damaged, or it would have been used
            discarded = entry.with_name(f"{entry.name}.part-{uuid.uuid4().hex}")
            entry.rename(discarded)
            shutil.rmtree(discarded, ignore_errors=True)
        try:
            staging.rename(entry)
        except OSError:
            # Without a lock (some network file systems have none) another process may have come first.
            if stored_files(entry) is None:
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return entry / _FILES


def _delete_abandoned(entry: Path) -> None:
    """Delete the leftovers of killed processes for this entry."""
    for path in entry.parent.glob(f"{entry.name}.part-*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > STAGING_AGE_MAX:
                shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path, wait: float) -> Iterator[None]:
    """Hold the lock of a file, which the system releases even if the process is killed."""
    try:
        import fcntl
    except ImportError:  # Windows; the rename at the end still keeps entries complete
        yield
        return
    deadline = time.monotonic() + wait
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise AssetFetchError(
                        f"another process has been fetching this asset for {wait:.0f} s (it holds '{path}'); "
                        "let it end, or end it, and try again"
                    ) from error
                time.sleep(LOCK_INTERVAL)
        yield
