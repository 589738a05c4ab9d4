"""Local files of a scene, and the folders that they may lie in.

A scene may come from anywhere, so it names files of its own folder, of the current directory (from which the
format's first implementation counts paths) and of folders that the caller adds, and no others: neither by
`..` or an absolute path, nor by a symbolic link.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pluriverse.scene.errors import FieldError
from pluriverse.scene.values import shown


class LocalFiles:
    """Finds the files that a scene names.

    Args:
        folder: Folder of the scene file, where relative paths are looked up first.
        further_roots: Folders, in addition to it and the current directory, that files may lie in.
    """

    def __init__(self, folder: Path, further_roots: Iterable[str | Path] = ()):
        self.further_roots = [Path(root).expanduser().resolve() for root in further_roots]
        """The further folders, which may hold packages of URDF files."""
        folders = [folder.resolve(), Path.cwd().resolve(), *self.further_roots]
        self.roots: list[Path] = list(dict.fromkeys(folders))
        """The folders that files may lie in, symbolic links followed, in the order of the search."""

    def inside(self, folder: Path) -> "LocalFiles":
        """Return the file finder for a scene file in another folder, with the same permissions."""
        return LocalFiles(folder, self.roots)

    def find_file(self, name: str, what: str = "file") -> Path:
        """Return a file by its path.

        Raises:
            FieldError: There is no such file, or it lies elsewhere.
        """
        path = self._find(name)
        if path is None or not path.is_file():
            raise self._missing(what, name)
        return path

    def find_folder(self, name: str) -> Path:
        """Return a folder by its path.

        Raises:
            FieldError: There is no such folder, or it lies elsewhere.
        """
        path = self._find(name)
        if path is None or not path.is_dir():
            raise self._missing("folder", name)
        return path

    def find(self, name: str) -> Path:
        """Return a file or folder by its path.

        Raises:
            FieldError: There is neither, or it lies elsewhere.
        """
        path = self._find(name)
        if path is None:
            raise self._missing("file or folder", name)
        return path

    def _missing(self, what: str, name: str) -> FieldError:
        return FieldError(
            f"there is no {what} '{self.roots[0] / name}' (a path is relative to the scene file); files "
            "elsewhere are found below a folder that asset_roots= (--asset-root) adds"
        )

    def _find(self, name: str) -> Path | None:
        """Return the first of the roots' files of that name, or None if there is none."""
        if "\0" in name:
            raise FieldError(f"{shown(name)} is not a path")
        outside = None
        for root in self.roots:
            path = root / name
            try:
                if not path.exists():
                    continue
                if is_below(path, self.roots):
                    return path
            except (OSError, RuntimeError) as error:  # a name too long, a link to itself
                raise FieldError(f"{shown(name)} cannot be followed: {error}") from error
            outside = path.resolve()
        if outside is not None:
            raise FieldError(outside_message(outside, self.roots))
        return None


def is_below(path: Path, roots: Sequence[Path]) -> bool:
    """Return whether a path, symbolic links followed, lies in one of the folders."""
    actual = path.resolve()
    return any(actual.is_relative_to(root) for root in roots)


def outside_message(path: Path, roots: Sequence[Path]) -> str:
    """Return the message for a file outside of the folders that a scene may read."""
    folders = ", ".join(f"'{root}'" for root in roots)
    return (
        f"'{path}' lies outside of the folders that this scene may read ({folders}); add its folder with "
        "asset_roots= (--asset-root)"
    )
