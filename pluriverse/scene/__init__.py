"""Scene files: YAML or JSON documents that describe worlds and how to run them."""

from .errors import SapSceneLoaderError, SapUnsupportedSceneFeature
from .loaded_scene import LoadedScene, SceneSettings
from .loader import load_sap_scene, load_sap_scene_config, load_scene_config
from .loader import load_scene as load_scene
from .schema import scene_json_schema
from .shipped import shipped_scenes

SapLoadedScene = LoadedScene

__all__ = [
    "LoadedScene",
    "SapLoadedScene",
    "SapSceneLoaderError",
    "SapUnsupportedSceneFeature",
    "SceneSettings",
    "load_sap_scene",
    "load_sap_scene_config",
    "load_scene_config",
    "scene_json_schema",
    "shipped_scenes",
]
