"""External assets: files from elsewhere at places below an MJCF model, where it looks for them.

Models of a collection leave out what they share with others. The folder of the model is laid out anew, of
links to its own files and to the external ones, and the model is read from there.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field, model_validator

from pluriverse.scene.assembly import Assembly
from pluriverse.scene.asset_cache import AssetFetchError
from pluriverse.scene.errors import FieldError
from pluriverse.scene.git_source import GitSource, InnerPath, checkout
from pluriverse.scene.local_files import is_below
from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.sources import OpenedSource, Source
from pluriverse.scene.values import Name


class ExternalAsset(SceneMapping):
    """A file or a folder, and where below the folder of the model it is to be."""

    target: InnerPath = Field(description="relative to the folder of the model")
    source: Source | None = Field(default=None, description="a path or {git: ...}, as of an asset")
    path: Name | None = Field(default=None, description="file or folder, relative to the scene file")
    git: GitSource | None = None

    @model_validator(mode="after")
    def _one_source(self) -> "ExternalAsset":
        if [self.source, self.path, self.git].count(None) != 2:
            raise ValueError("give one of 'source', 'path' and 'git'")
        if self.source is not None and self.source.path is None and self.source.git is None:
            raise ValueError("'source' is a path or {git: ...} here")
        return self

    def find(self, assembly: Assembly) -> tuple[Path, tuple[Path, ...]]:
        """Return the file or folder, and the folders that it may lie in.

        Raises:
            FieldError: There is no such thing, or it may not be read.
        """
        path = self.path if self.source is None else self.source.path
        git = self.git if self.source is None else self.source.git
        if git is None:
            assert path is not None
            return assembly.files.find(path), tuple(assembly.files.roots)
        try:
            root = checkout(git, assembly.files.roots).resolve()
        except AssetFetchError as error:
            raise FieldError(str(error)) from error
        found = root / git.path
        if not found.exists() or not is_below(found, [root]):
            raise FieldError(f"the checkout has no file or folder '{git.path}' of its own")
        return found, (root,)


@contextmanager
def laid_out(
    assembly: Assembly, source: OpenedSource, external: Sequence[ExternalAsset]
) -> Iterator[OpenedSource]:
    """Return the source in a folder with external files where the model expects them.

    Raises:
        FieldError: A file is missing, or its place is taken.
    """
    if not external:
        yield source
        return
    if not isinstance(source.content, Path):
        raise FieldError(
            "external_assets go with a file; the text of a model has no folder", "external_assets"
        )
    folder = source.content.parent
    roots = list(source.roots)
    with tempfile.TemporaryDirectory(prefix="pluriverse_model_") as name:
        layout = Path(name)
        _link_all(folder, layout)
        for index, asset in enumerate(external):
            with assembly.at("external_assets", index):
                path, more = asset.find(assembly)
                roots += more
                target = layout / asset.target
                if os.path.lexists(target):
                    raise FieldError(f"the model has '{asset.target}' itself; leave this entry out", "target")
                _make_real(target.parent, layout)
                target.symlink_to(path.resolve(), target_is_directory=path.is_dir())
        yield OpenedSource(layout / source.content.name, tuple(dict.fromkeys([*roots, folder.resolve()])))


def _link_all(folder: Path, layout: Path) -> None:
    """Fill a folder with links to everything in another one."""
    for path in folder.iterdir():
        (layout / path.name).symlink_to(path.resolve(), target_is_directory=path.is_dir())


def _make_real(folder: Path, layout: Path) -> None:
    """Turn links to folders on the way to a place into folders of links, so that something can be added."""
    if folder == layout:
        return
    _make_real(folder.parent, layout)
    if folder.is_symlink():
        original = folder.resolve()
        if not original.is_dir():
            raise FieldError(f"'{folder.relative_to(layout)}' is a file of the model", "target")
        folder.unlink()
        folder.mkdir()
        _link_all(original, folder)
    else:
        folder.mkdir(exist_ok=True)
