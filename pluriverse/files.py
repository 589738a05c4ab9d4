"""Files: found in folders of assets, and written so that a reader finds the old or the new content."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

# Depth below a folder down to which a file is looked for.
_SEARCH_DEPTH = 3

# First bytes of a pointer of Git LFS: a few words that stand for content kept elsewhere.
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
LFS_REMEDY = "Fetch it with `git lfs pull`."
"""What messages about a pointer of Git LFS advise."""


def is_lfs_pointer(path: Path) -> bool:
    """Return whether a file is a pointer of Git LFS; False for one that cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(_LFS_POINTER)) == _LFS_POINTER
    except (OSError, ValueError):  # the latter for a name that no file can have
        return False


def find_file(folder: Path, file: str) -> Path | None:
    """Return a file at a relative path below a folder or a folder in it; None if there is none."""
    for depth in range(_SEARCH_DEPTH + 1):
        for found in sorted(folder.glob("/".join(["*"] * depth + [file]))):
            if found.is_file():
                return found
    return None


@contextlib.contextmanager
def replace_file(path: str | Path) -> Iterator[Path]:
    """Yield a new path beside a file, which takes its place, on the disk for good, once the block has ended.

    A program that is killed meanwhile leaves the file as it was, and at most one beside it whose name ends
    in `.part`. After an exception the new file is gone. A link is followed; what is no ordinary file (a
    device, a pipe) is written to directly.

    Args:
        path: File that is to have new content, there already or not.

    Raises:
        OSError: If the folder does not exist or cannot be written to.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield target
        return
    part = target.with_name(f".{target.name[:180]}.{uuid.uuid4().hex[:12]}.part")
    try:
        # Created first: an error names the folder, and the block may open it in any way.
        part.touch(exist_ok=False)
        yield part
        with open(part, "rb+") as file:
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            part.chmod(target.stat().st_mode & 0o7777)
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Flush the new name of a file to the disk, if the system supports it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders, and replaces in one step by itself
        return
    try:
        os.fsync(handle)
    except OSError:
        pass  # some file systems cannot; the content is on the disk nevertheless
    finally:
        os.close(handle)
