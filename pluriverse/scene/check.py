"""Checking a scene file: all errors that loading it would raise, without stepping it."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pluriverse.scene.bundled import find_scene_file
from pluriverse.scene.errors import SapSceneLoaderError, SapUnsupportedSceneFeature
from pluriverse.scene.loader import read_scene


@dataclass(frozen=True)
class SceneCheck:
    """Errors of a scene file."""

    path: Path
    """The file."""
    errors: tuple[str, ...]
    """Errors, each with file, line, field, value and remedy; empty for a valid scene."""
    unsupported_features: tuple[str, ...]
    """Features of the format that this version does not support, each with file, line and field."""
    warnings: tuple[str, ...]
    """Warnings of loading the scene."""

    @property
    def is_valid(self) -> bool:
        """Whether the scene loads (with `strict=False`, where features are not supported)."""
        return not self.errors


def check_scene(path: str | Path, *, asset_roots: Sequence[str | Path] = ()) -> SceneCheck:
    """Return what is wrong with a scene file.

    Its assets are read (and fetched, if need be), and one world of each kind is made into a model; nothing is
    stepped. Errors of one section are found together; those of later sections may appear once these are
    fixed.

    Args:
        path: The file, or the name of a bundled scene.
        asset_roots: Folders that the scene may read files from, besides its own and the current directory.
    """
    errors: list[str] = []
    features: tuple[str, ...] = ()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            try:
                scene = read_scene(path, asset_roots=asset_roots)
            except SapUnsupportedSceneFeature as error:
                features = error.features
                scene = read_scene(path, strict=False, asset_roots=asset_roots)
            scene.build("cpu", counts=[1] * len(scene.kinds))
        except SapSceneLoaderError as error:
            errors = str(error).splitlines()
    texts = tuple(dict.fromkeys(str(warning.message) for warning in caught))
    try:
        file = find_scene_file(path)
    except SapSceneLoaderError:
        file = Path(path)
    return SceneCheck(file, tuple(errors), features, texts)
