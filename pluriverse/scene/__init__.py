"""Scene files: YAML or JSON documents that describe worlds and how to run them.

`load_scene` is public as `pluriverse.load_scene`.
"""

from typing import Any

from pluriverse.scene.bundled import bundled_scenes
from pluriverse.scene.check import SceneCheck, check_scene
from pluriverse.scene.control_sequence import ControlSequence, Recording, load_sap_control_sequence
from pluriverse.scene.errors import SapSceneLoaderError, SapUnsupportedSceneFeature
from pluriverse.scene.loaded_scene import LoadedScene, SceneSettings
from pluriverse.scene.loader import load_scene as load_scene
from pluriverse.scene.loader import load_scene_config
from pluriverse.scene.sap_names import SapLoadedScene, load_sap_scene, load_sap_scene_config
from pluriverse.scene.schema import scene_json_schema

__all__ = [
    "ControlSequence",
    "LoadedScene",
    "Recording",
    "SapLoadedScene",
    "SapSceneLoaderError",
    "SapUnsupportedSceneFeature",
    "SceneCheck",
    "SceneSettings",
    "bundled_scenes",
    "check_scene",
    "load_sap_control_sequence",
    "load_sap_scene",
    "load_sap_scene_config",
    "load_scene_config",
    "scene_json_schema",
]


def __getattr__(name: str) -> Any:
    """Load `SceneCfg`, the configuration of scenes with variants (`pluriverse.variants`), on first use."""
    if name == "SceneCfg":
        from pluriverse.variants.config import SceneCfg

        return SceneCfg
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
