"""Robot files in place of scenes: one robot on a ground."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from pluriverse.scene import LoadedScene

FORMATS = {
    ".xml": "mjcf",
    ".mjcf": "mjcf",
    ".urdf": "urdf",
    ".usd": "usd",
    ".usda": "usd",
    ".usdc": "usd",
}
"""Endings of files that are robots rather than scenes, and the types of assets that they are."""


def is_robot_file(name: str) -> bool:
    """Return whether a name is that of a robot file."""
    path = Path(name)
    return path.suffix.lower() in FORMATS and path.is_file()


def place_in_robot(name: str, scene: LoadedScene) -> LoadedScene:
    """Return a scene that names the robot file as its place, where `scene_of` made the scene for it."""
    if not is_robot_file(name):
        return scene
    path = Path(name)
    intro = f"asset[0] {FORMATS[path.suffix.lower()]} "
    features = tuple(f"{name}: {feature.rpartition(intro)[2]}" for feature in scene.unsupported_features)
    return replace(scene, source_path=path, unsupported_features=features)


@contextmanager
def scene_of(name: str, asset_roots: tuple[Path, ...]) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """Yield the scene of a name and the folders it may read; for a robot file, a scene made for it."""
    if not is_robot_file(name):
        yield name, asset_roots
        return
    path = Path(name)
    kind = FORMATS[path.suffix.lower()]
    scene: dict[str, Any] = {
        "schema_version": 1,
        "name": path.stem,
        "assets": [{"type": kind, "source": str(path.resolve())}],
        "ground": {"enabled": True},
    }
    if kind == "mjcf":
        scene |= _mjcf_settings(path)
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{path.stem}.yaml"
        file.write_text(yaml.safe_dump(scene))
        yield str(file), (path.resolve().parent, *asset_roots)


def _mjcf_settings(path: Path) -> dict[str, Any]:
    """Return what a model of MuJoCo says of its scene: the time step, and whether it lacks a ground.

    A model that names no time step means that of MuJoCo, for which its gains and its damping were chosen. A
    second ground plane would double the contact forces.
    """
    import mujoco

    try:
        spec = mujoco.MjSpec.from_file(str(path))
    except ValueError:
        return {}  # loading the scene will say what is wrong
    has_ground = any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.worldbody.geoms)
    settings: dict[str, Any] = {"ground": {"enabled": not has_ground}}
    if spec.option.timestep > 0.0:
        settings["simulation"] = {"dt": float(spec.option.timestep)}
    return settings
