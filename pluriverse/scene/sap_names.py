"""The names and arguments under which the format's first implementation loads scenes."""

import dataclasses
from pathlib import Path
from typing import Any

from pluriverse.scene.errors import SapUnsupportedSceneFeature
from pluriverse.scene.loaded_scene import LoadedScene
from pluriverse.scene.loader import load_scene, load_scene_config
from pluriverse.scene.values import Vector3

SapLoadedScene = LoadedScene
"""The name of the format's first implementation."""

load_sap_scene_config = load_scene_config


def load_sap_scene(
    path: str | Path,
    *,
    device: Any = None,
    rigid_contact_max: int | None = None,
    requires_grad: bool = False,
    strict: bool = True,
    num_worlds: int | None = None,
    spacing: Vector3 | None = None,
) -> LoadedScene:
    """Return the scene of a YAML or JSON file, ready to be stepped; see `load_scene`.

    Args:
        path: The file, or the name of a bundled scene.
        device: Device of the model; Warp's default if not given.
        rigid_contact_max: Contact slots of all worlds together, shared evenly, instead of the scene's.
        requires_grad: Gradients of the simulation are not supported.
        strict: Whether keys and features that are not supported are errors. Otherwise they are left out and
            listed in `SapLoadedScene.unsupported_features`.
        num_worlds: Number of worlds, instead of the scene's own.
        spacing: Distance [m] between worlds per axis, instead of the scene's own.

    Raises:
        SapSceneLoaderError: The scene is wrong; the message names file, line, field, value and remedy.
        SapUnsupportedSceneFeature: `strict` is set and something is asked for that is not supported.
        ValueError: There is no such device, or a number is out of range.
    """
    scene = load_scene(path, device=device, strict=strict, num_worlds=num_worlds, spacing=spacing)
    if requires_grad:
        feature = "requires_grad=True: gradients of the simulation"
        if strict:
            raise SapUnsupportedSceneFeature(f"not supported: {feature}", (feature,))
        scene = dataclasses.replace(scene, unsupported_features=(*scene.unsupported_features, feature))
    if rigid_contact_max is not None:
        world_count = scene.model.world_count
        if rigid_contact_max < world_count:
            raise ValueError(
                f"rigid_contact_max is {rigid_contact_max}, but {world_count} worlds need a slot each"
            )
        settings = dataclasses.replace(scene.settings, max_rigid_contact=rigid_contact_max // world_count)
        scene = dataclasses.replace(scene, settings=settings)
    return scene
