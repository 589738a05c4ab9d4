"""Finding the files that a URDF document refers to."""

import contextlib
import functools
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

from pluriverse.importers.path_resolver import PathResolver, as_path

# Files that mark the root folder of a ROS package.
PACKAGE_MARKERS = ("package.xml", "manifest.xml")
# Folders of documents within a package, beside the folders of meshes.
DOCUMENT_FOLDERS = ("urdf", "robots", "robot", "model", "models", "cfg", "xml")
# Folders above that of a document which a reference may start at.
PARENTS_SEARCHED = 3
# Files that a search looks through: packages have some hundreds, home folders many more.
SEARCHED_MAX = 20_000


class AssetFiles:
    """Resolves file references of a document.

    `package://NAME/PATH` is looked up in `package_dirs`, then in a folder NAME above the document, then in
    the package that the document is in (the folder above it with a `package.xml`, or that holds PATH);
    `model://NAME/PATH`, as Gazebo writes it, likewise. A
    relative path starts at the folder of the document, then at those above it within one of `package_dirs`,
    then beside a folder above it that has the name of the path's first part. If the document is a symbolic
    link, files are searched beside both the link and its target.

    Args:
        document: The file of the document; None for text, whose references are relative to the current
            directory.
        package_dirs: Folders that contain packages, or folders by name of the package.
        path_resolver: Finds the files instead of all that.
    """

    def __init__(
        self,
        document: Path | None,
        package_dirs: Mapping[str, str | Path] | Sequence[str | Path] | None,
        path_resolver: PathResolver | None = None,
    ):
        self._resolver = path_resolver
        folder = Path.cwd() if document is None else Path(os.path.abspath(document)).parent
        linked = folder if document is None else document.resolve().parent
        self.is_file = document is not None
        """Whether the document is a file."""
        self.folders = list(dict.fromkeys([folder, linked]))
        """Folders of relative references: that of the document, and that of its link target."""
        self.named: dict[str, Path] = {}
        """Folders of packages by name."""
        self.roots: list[Path] = []
        """Folders that contain packages."""
        if isinstance(package_dirs, Mapping):
            self.named = {name: Path(path) for name, path in package_dirs.items()}
        elif package_dirs is not None:
            paths = [package_dirs] if isinstance(package_dirs, str | Path) else package_dirs
            self.roots = [Path(path) for path in paths]

    def find(self, reference: str) -> tuple[Path | None, list[Path]]:
        """Return the file of a reference, or None, and the places that were searched.

        Raises:
            AssetFileError: If a resolver returns no path.
        """
        if self._resolver is not None:
            base = str(self.folders[0]) if self.is_file else None
            found = self._resolver(base, reference)
            path = as_path(found, reference, file=base or "URDF text", element=f"file '{reference}'")
            return (path if path.is_file() else None), [path]
        candidates = self._candidates(reference)
        return next((path for path in candidates if path.is_file()), None), candidates

    def search(self, reference: str) -> list[Path]:
        """Return files near the document that end like a reference that leads nowhere.

        A folder above the document may have the path as it is written. Else they are in the package of the
        document, or in its folder, where upper and lower case are one; only those are returned that have most
        of the folders of the reference, and none that belongs to another robot or folder.
        """
        if self._resolver is not None:
            return []
        _, is_url, path = reference.strip().rpartition("://")
        written = [part for part in re.split(r"[/\\]", path) if part not in ("", ".", "..")]
        reference_parts = [part.lower() for part in written]
        if not reference_parts or (
            is_url and not reference.strip().startswith(("package://", "model://", "file://"))
        ):
            return []
        for folder in self.folders if self.is_file else ():
            for above in folder.parents[:PARENTS_SEARCHED]:
                if (above / Path(*written)).is_file():
                    return [above / Path(*written)]
        found = [
            (file, [part.lower() for part in file.parts]) for file in self._index.get(reference_parts[-1], ())
        ]
        meant = {os.path.normpath(folder / Path(*written)).lower() for folder in self.folders}
        exact = [file for file, _ in found if str(file).lower() in meant]
        if exact:
            return exact
        for count in range(len(reference_parts), 0, -1):
            matching = [
                file
                for file, parts in found
                if parts[-count:] == reference_parts[-count:]
                and self._may_be_meant(file, count)
                and not _is_passed_by(file, reference_parts, count)
            ]
            if matching:
                return matching
        return []

    def _may_be_meant(self, file: Path, count: int) -> bool:
        """Return whether a file of which a reference has the last `count` parts may belong to the document.

        A package may hold several robots with meshes of the same names. A file outside the robot's own folder
        is meant only where the reference leads to it all the way from the folder that both are in.
        """
        for folder in self.folders:
            if file.is_relative_to(_robot_folder(folder)):
                return True
            common = next((above for above in folder.parents if file.is_relative_to(above)), None)
            if common is not None and len(file.relative_to(common).parts) <= count:
                return True
        return False

    @functools.cached_property
    def _index(self) -> dict[str, list[Path]]:
        """The files near the document by their names in lower case; none for text."""
        index: dict[str, list[Path]] = {}
        roots = dict.fromkeys(self._package(folder) for folder in self.folders) if self.is_file else ()
        count = 0
        for root in roots:
            for folder, folders, names in os.walk(root):
                folders.sort()
                folders[:] = [name for name in folders if not name.startswith(".")]
                count += len(names)
                if count > SEARCHED_MAX:
                    return {}  # this is no package; what part of it was seen would be chance
                for name in names:
                    file = Path(folder, name)
                    if file not in index.setdefault(name.lower(), []):
                        index[name.lower()].append(file)
        return index

    @staticmethod
    def _package(folder: Path) -> Path:
        """Return the folder of the package that a folder is in."""
        for above in (folder, *folder.parents):
            if any((above / marker).is_file() for marker in PACKAGE_MARKERS):
                return above
        return _robot_folder(folder)

    def _candidates(self, reference: str) -> list[Path]:
        reference = reference.strip()
        if reference.startswith(("package://", "model://")):
            name, _, path = reference.partition("://")[2].partition("/")
            return self._package_candidates(name, path)
        if reference.startswith("file://"):
            # Some files write relative paths like that, with the first part in place of a host.
            relative = unquote(reference.removeprefix("file://")).lstrip("/")
            absolute = self.folders[0] / unquote(urlparse(reference).path)
            return [absolute, *(folder / relative for folder in self.folders)]
        if "://" in reference:
            return []  # http: and others are not fetched
        roots = [root.resolve() for root in self.roots]
        first = Path(reference).parts[0] if reference else ""
        candidates = [folder / reference for folder in self.folders]
        for start in self.folders:
            above = [folder for folder in start.parents if any(map(folder.is_relative_to, roots))]
            candidates += [folder / reference for folder in above]
            candidates += [
                folder.parent / reference for folder in (start, *start.parents) if folder.name == first
            ]
        return list(dict.fromkeys(candidates))

    def _package_candidates(self, name: str, path: str) -> list[Path]:
        candidates = []
        if name in self.named:
            candidates.append(self.named[name] / path)
        for root in self.roots:
            candidates.append(root / name / path)
            if root.name == name:
                candidates.append(root / path)
        above = list(dict.fromkeys(folder for start in self.folders for folder in (start, *start.parents)))
        for folder in above:
            if folder.name == name:
                candidates.append(folder / path)
        for folder in above:
            candidates.append(folder / name / path)
        for folder in above:
            if any((folder / marker).is_file() for marker in PACKAGE_MARKERS):
                candidates.append(folder / path)
                break
        # A checkout of a package under another name than the package's.
        candidates += [folder / path for start in self.folders for folder in (start, *start.parents[:2])]
        return list(dict.fromkeys(candidates))


def _robot_folder(folder: Path) -> Path:
    """Return the folder of a robot whose document is in `folder`."""
    return folder.parent if folder.name.lower() in DOCUMENT_FOLDERS else folder


def _is_passed_by(file: Path, reference_parts: list[str], count: int) -> bool:
    """Return whether a reference, in lower case, leads into a folder beside that of a file.

    Its last `count` parts are those of the file. If the part before them is a folder that is there, the
    reference means the file in that folder, where it is missing, and not this one.
    """
    if count >= len(reference_parts) or count >= len(file.parents):
        return False
    with contextlib.suppress(OSError):  # a folder above the package that may not be read
        names = [folder.name.lower() for folder in file.parents[count].iterdir() if folder.is_dir()]
        return reference_parts[-count - 1] in names
    return False
