"""Files that Git LFS has not fetched: a pointer stands in their place, which no parser makes sense of."""

from pathlib import Path

from pluriverse.files import LFS_REMEDY, is_lfs_pointer
from pluriverse.importers.errors import AssetFileError


def check_fetched(path: Path, *, file: str, element: str | None = None) -> None:
    """Raise if a file is a pointer of Git LFS. A file that cannot be read is left to its reader.

    Args:
        path: The file.
        file: What messages call the document: this file, or the one that refers to it.
        element: What refers to it, None for the document itself.

    Raises:
        AssetFileError: If it is one.
    """
    if is_lfs_pointer(path):
        what = "this" if str(path) == file else f"'{path}'"
        raise AssetFileError(
            f"{what} is a pointer of Git LFS, not the file itself",
            file=file,
            element=element,
            value=str(path),
            remedy=LFS_REMEDY,
        )
