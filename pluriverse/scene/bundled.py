"""The scenes that ship with the package."""

from importlib import resources
from pathlib import Path

from pluriverse.scene.errors import SapSceneLoaderError
from pluriverse.scene.selectors import suggestion


def bundled_scenes() -> dict[str, Path]:
    """Return the files of the bundled scenes by name."""
    folder = Path(str(resources.files("pluriverse") / "scenes"))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def find_scene_file(name: str | Path) -> Path:
    """Return the file of a scene given by path or by the name of a bundled scene.

    Raises:
        SapSceneLoaderError: There is neither.
    """
    path = Path(name)
    if path.exists():
        return path
    bundled = bundled_scenes()
    if str(name) in bundled:
        return bundled[str(name)]
    if path.suffix or len(path.parts) > 1:
        raise SapSceneLoaderError(f"{path}: there is no such scene file")
    raise SapSceneLoaderError(
        f"{path}: there is no such file, nor a bundled scene of this name; {suggestion(str(name), bundled)}"
    )
