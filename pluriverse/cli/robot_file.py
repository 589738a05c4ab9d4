"""Robot files in place of scenes: one robot on a ground."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

FORMATS = {
    ".xml": "mjcf",
    ".mjcf": "mjcf",
    ".urdf": "urdf",
    ".usd": "usd",
    ".usda": "usd",
    ".usdc": "usd",
}
"""Endings of files that are robots rather than scenes, and the types of assets that they are."""


@contextmanager
def scene_of(name: str, asset_roots: tuple[Path, ...]) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """Yield the scene of a name and the folders it may read; for a robot file, a scene made for it."""
    path = Path(name)
    if path.suffix.lower() not in FORMATS or not path.is_file():
        yield name, asset_roots
        return
    kind = FORMATS[path.suffix.lower()]
    scene = {
        "schema_version": 1,
        "name": path.stem,
        "assets": [{"type": kind, "source": str(path.resolve())}],
        "ground": {"enabled": not (kind == "mjcf" and _has_ground(path))},
    }
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{path.stem}.yaml"
        file.write_text(yaml.safe_dump(scene))
        yield str(file), (path.resolve().parent, *asset_roots)


def _has_ground(path: Path) -> bool:
    """Return whether a model of MuJoCo has a ground plane; a second one would double the contact forces."""
    import mujoco

    try:
        spec = mujoco.MjSpec.from_file(str(path))
    except ValueError:
        return False  # loading the scene will say what is wrong
    return any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.worldbody.geoms)
