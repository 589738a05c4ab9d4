"""Robot files given where a scene is meant: one robot on a ground."""

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
    """Yield the scene that a name means and the folders it may read: of a robot file, one made for it."""
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
    """Return whether a model of MuJoCo brings a plane along; two in one place would carry twice."""
    import mujoco

    try:
        spec = mujoco.MjSpec.from_file(str(path))
    except ValueError:
        return False  # loading the scene will say what is wrong
    return any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.worldbody.geoms)
