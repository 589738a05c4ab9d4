"""Sources of assets: a local file, text in the scene, a git repository, or the MuJoCo Menagerie."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from pluriverse.config import OFFLINE_VARIABLE, is_offline
from pluriverse.scene.assembly import Assembly
from pluriverse.scene.asset_cache import AssetFetchError
from pluriverse.scene.errors import FieldError
from pluriverse.scene.git_source import GitSource, checkout, parse_inner_path
from pluriverse.scene.local_files import is_below, outside_message
from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.selectors import suggestion
from pluriverse.scene.values import Name, Scale, shown


class MenagerieSource(SceneMapping):
    """A robot of the MuJoCo Menagerie."""

    robot: Name = Field(description="its folder in the Menagerie, for example unitree_go2")
    entry: Name | None = Field(default=None, description="one of its models; the robot alone if not given")

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, data: Any) -> Any:
        return {"robot": data} if isinstance(data, str) else data

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(core_schema)]}


class Source(SceneMapping):
    """Source of an asset: exactly one of the keys; `mesh_scale` may be added to any."""

    path: Name | None = Field(default=None, description="a file, relative to the scene file, or its text")
    git: GitSource | None = None
    menagerie: MenagerieSource | None = None
    examples_asset: Name | None = Field(
        default=None,
        description="a file of the example assets of the package newton, which must be installed",
    )
    mesh_scale: Scale | None = Field(default=None, description="URDF: factor on all meshes, or one per axis")

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, data: Any) -> Any:
        if isinstance(data, str) and data.strip():
            return {"path": data}
        if not isinstance(data, dict | Source):
            message = f"{shown(data)} is not a source; write a path, {{path: ...}}, {{git: ...}}, " + (
                "{menagerie: ...} or the text of the file"
            )
            raise PydanticCustomError("scene_value", "{message}", {"path": (), "message": message})
        return data

    @model_validator(mode="after")
    def _one_place(self) -> "Source":
        given = [name for name in ("path", "git", "menagerie", "examples_asset") if self.wrote(name)]
        if len(given) != 1:
            found = f"; this has {' and '.join(given)}" if given else ""
            raise ValueError(f"give one of 'path', 'git', 'menagerie' and 'examples_asset'{found}")
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(core_schema)]}


@dataclass(frozen=True)
class OpenedSource:
    """A source that importers can read."""

    content: Path | str
    """The file, or the text itself."""
    roots: tuple[Path, ...]
    """Folders that the file, and what it refers to, may lie in."""


def open_source(assembly: Assembly, source: Source, kind: str, name: str) -> OpenedSource | None:
    """Return the file or text of an asset, fetched if need be; None (and a note) if it cannot be supported.

    Args:
        assembly: The world that the asset is for; its current field is that of the source.
        source: The source.
        kind: Type of the asset.
        name: What the asset is called in notes.

    Raises:
        FieldError: There is no such file, or it may not be read.
    """
    local_roots = tuple(assembly.files.roots)
    if source.examples_asset is not None:
        return _open_example(assembly, source.examples_asset, f"asset[{name}] {kind}")
    if source.git is not None:
        try:
            folder = checkout(source.git, local_roots).resolve()
        except AssetFetchError as error:
            raise FieldError(str(error), "git") from error
        path = folder / source.git.path
        if not path.is_file():
            raise FieldError(f"the checkout has no file '{source.git.path}'", "git", "path")
        if not is_below(path, [folder]):
            raise FieldError(outside_message(path.resolve(), [folder]), "git", "path")
        return OpenedSource(path, (folder,))
    if source.menagerie is not None:
        return _open_menagerie(source.menagerie, kind)
    assert source.path is not None
    if source.path.lstrip("\ufeff \t\r\n").startswith("#usda" if kind == "usd" else "<"):
        return OpenedSource(source.path, local_roots)
    return OpenedSource(assembly.files.find_file(source.path), local_roots)


def _open_example(assembly: Assembly, file: str, asset: str) -> OpenedSource | None:
    """Return a file of newton's example assets; None (and a note) without that package."""
    package = importlib.util.find_spec("newton")
    folders = [] if package is None else list(package.submodule_search_locations or [])
    if not folders:
        assembly.note_unsupported(
            f"{asset} source: examples_asset {shown(file)} is a file of the package newton, which is not "
            "installed; pip install newton, or give a copy of the file as path"
        )
        return None
    # Only the folder is looked up; nothing of the package is imported.
    folder = Path(folders[0], "examples", "assets").resolve()
    path = folder / parse_inner_path(file, "examples_asset")
    if not path.is_file():
        names = [found.relative_to(folder).as_posix() for found in folder.rglob("*") if found.is_file()]
        raise FieldError(
            f"the examples of newton have no asset {shown(file)}; {suggestion(file, sorted(names))}",
            "examples_asset",
        )
    if not is_below(path, [folder]):
        raise FieldError(outside_message(path.resolve(), [folder]), "examples_asset")
    return OpenedSource(path, (folder,))


def _open_menagerie(source: MenagerieSource, kind: str) -> OpenedSource:
    """Return the model of a robot of the Menagerie."""
    if kind != "mjcf":
        raise FieldError(f"the Menagerie holds MJCF models, not {kind}; write type: mjcf", "menagerie")
    try:
        import mujoco_menagerie
    except ImportError as error:
        raise FieldError(
            "robots of the MuJoCo Menagerie need the package mujoco-menagerie: pip install "
            "'pluriverse[menagerie]'",
            "menagerie",
        ) from error
    if source.robot not in mujoco_menagerie.names():
        known = suggestion(source.robot, mujoco_menagerie.names())
        raise FieldError(f"the Menagerie has no robot {source.robot!r}; {known}", "menagerie")
    robot = mujoco_menagerie.get(source.robot)
    entry = source.entry if source.entry is not None else robot.default_model
    if entry not in robot.entry_names:
        raise FieldError(
            f"the robot {source.robot!r} has no model {entry!r}; {suggestion(entry, robot.entry_names)}",
            "menagerie",
        )
    cache = mujoco_menagerie.Cache()
    if is_offline() and cache.root is None and not cache.is_cached(robot):
        raise FieldError(
            f"the robot {source.robot!r} is not in the cache '{cache.dir}', and {OFFLINE_VARIABLE} forbids "
            f"to fetch it; run mujoco-menagerie prefetch {source.robot} once",
            "menagerie",
        )
    try:
        path = robot.xml(entry, cache)
    except mujoco_menagerie.MenagerieError as error:
        raise FieldError(f"the robot {source.robot!r} could not be fetched: {error}", "menagerie") from error
    if not path.is_file():
        raise FieldError(f"there is no file '{path}' for the model {entry!r}", "menagerie")
    return OpenedSource(path, (path.parent.resolve(),))
