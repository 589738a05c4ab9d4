"""Finding the files that a URDF document refers to."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

# Files that mark the root folder of a ROS package.
PACKAGE_MARKERS = ("package.xml", "manifest.xml")


class AssetFiles:
    """Resolves file references of a document.

    `package://NAME/PATH` is looked up in `package_dirs`, then in a folder NAME above the document, then in
    the package that the document is in (the folder above it with a `package.xml`, or that holds PATH). A
    relative path starts at the folder of the document, then at those above it within one of `package_dirs`.

    Args:
        document: The file of the document; None for text, whose references start at the current directory.
        package_dirs: Folders that contain packages, or folders by name of the package.
    """

    def __init__(
        self, document: Path | None, package_dirs: Mapping[str, str | Path] | Sequence[str | Path] | None
    ):
        self.folder = Path.cwd() if document is None else document.resolve().parent
        """Folder that relative references start at."""
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
        """Return the file of a reference, or None, and the places that were looked at."""
        candidates = self._candidates(reference)
        return next((path for path in candidates if path.is_file()), None), candidates

    def _candidates(self, reference: str) -> list[Path]:
        reference = reference.strip()
        if reference.startswith("package://"):
            name, _, path = reference.removeprefix("package://").partition("/")
            return self._package_candidates(name, path)
        if reference.startswith("file://"):
            return [self.folder / unquote(urlparse(reference).path)]
        if "://" in reference:
            return []  # http:, model: and others are not fetched
        roots = [root.resolve() for root in self.roots]
        above = [folder for folder in self.folder.parents if any(map(folder.is_relative_to, roots))]
        return [folder / reference for folder in (self.folder, *above)]

    def _package_candidates(self, name: str, path: str) -> list[Path]:
        candidates = []
        if name in self.named:
            candidates.append(self.named[name] / path)
        for root in self.roots:
            candidates.append(root / name / path)
            if root.name == name:
                candidates.append(root / path)
        above = [self.folder, *self.folder.parents]
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
        candidates += [folder / path for folder in above[:3]]
        return list(dict.fromkeys(candidates))
