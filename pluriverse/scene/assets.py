"""Assets: robots read from files by an importer."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Discriminator, Field, Tag

from pluriverse.scene.assembly import Assembly
from pluriverse.scene.errors import FieldError
from pluriverse.scene.shapes import MATERIAL_FIELDS, Overrides, shape_configuration
from pluriverse.scene.values import (
    IDENTITY,
    Count,
    Name,
    NotNegative,
    Positive,
    Reference,
    Scale,
    Transform,
    parse_scale,
    shown,
)


class Asset(Overrides):
    """What every asset has."""

    id: Reference | None = None
    type: Name
    source: Any
    xform: Transform = Field(default=IDENTITY, validation_alias=AliasChoices("xform", "transform"))
    floating: bool | None = None
    enable_self_collisions: bool = True
    force_show_colliders: bool = False
    hide_collision_shapes: bool = False
    load_visual_shapes: bool = True
    parse_visuals_as_colliders: bool = False
    ignore_inertial_definitions: bool = False
    collapse_fixed_joints: bool = False
    mesh_maxhullvert: Count = 64
    scale: Positive = 1.0
    up_axis: Literal["z", "Z", "x", "X", "y", "Y"] = "z"
    base_joint: Any = None
    parent_body: Any = -1
    override_root_xform: bool = False


class UrdfAsset(Asset):
    """A robot from a URDF file."""

    mesh_scale: Scale = (1.0, 1.0, 1.0)
    joint_ordering: Literal["dfs", "bfs"] | None = "dfs"
    bodies_follow_joint_ordering: bool = True
    split_bimanual_root_articulation: bool = False
    package_dirs: list[Name] = Field(
        default=[], description="where packages of package:// lie, relative to the scene file"
    )


class MjcfAsset(Asset):
    """A robot from a MuJoCo XML file."""

    armature_scale: NotNegative = 1.0
    parse_visuals: bool = True
    parse_meshes: bool = True
    parse_sites: bool = True
    no_class_as_colliders: bool = True
    visual_classes: list[str] = Field(default_factory=lambda: ["visual"])
    collider_classes: list[str] = Field(default_factory=lambda: ["collision"])
    ignore_names: list[str] = Field(default_factory=list)
    ignore_classes: list[str] = Field(default_factory=list)
    external_assets: Any = None
    keyframe: Reference | None = Field(
        default=None, description="initial state; not set: home, stand or the first"
    )


class UsdAsset(Asset):
    """Bodies and articulations from a USD stage."""

    root_path: Name = Field(default="/", description="prim whose subtree is imported")
    ignore_paths: list[str] = Field(
        default_factory=list, description="regular expressions; prims whose path starts so are left out"
    )
    only_load_enabled_rigid_bodies: bool = False
    only_load_enabled_joints: bool = True
    skip_mesh_approximation: bool = False
    load_sites: bool = True
    apply_up_axis_from_stage: bool = False
    force_position_velocity_actuation: bool = False
    joint_drive_gains_scaling: NotNegative = 1.0
    joint_ordering: Literal["dfs", "bfs"] | None = "dfs"
    bodies_follow_joint_ordering: bool = True


class UnsupportedAsset(BaseModel):
    """An asset of a type that is not read yet; its options are not looked at."""

    model_config = ConfigDict(extra="allow", frozen=True)
    id: Any = None
    type: str


def _asset_tag(value: Any) -> Any:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    if isinstance(kind, str):
        return kind.lower() if kind.lower() in ("urdf", "mjcf", "usd") else "unsupported"
    return None if kind is None else "unsupported"


AnyAsset = Annotated[
    Annotated[UrdfAsset, Tag("urdf")]
    | Annotated[MjcfAsset, Tag("mjcf")]
    | Annotated[UsdAsset, Tag("usd")]
    | Annotated[UnsupportedAsset, Tag("unsupported")],
    Discriminator(_asset_tag),
]


def import_asset(assembly: Assembly, asset: Asset | UnsupportedAsset, index: int) -> None:
    """Add an asset to the world, or note what of it is not supported."""
    name = shown(asset.id if asset.id is not None else index)
    kind = asset.type.lower()
    if isinstance(asset, UnsupportedAsset):
        with assembly.at("type"):
            known = ", ".join(ASSET_IMPORTERS)
            assembly.note_unsupported(f"asset[{name}] type={asset.type} (this version reads {known})")
        return
    source = _local_source(assembly, asset.source, name, kind)
    if source is None:
        return
    gaps = [gap for gap, is_asked in _gaps(asset) if is_asked]
    for gap in gaps:
        with assembly.at(gap):
            assembly.note_unsupported(f"asset[{name}] {kind} {gap}")
    from pluriverse.importers.errors import AssetWarning
    from pluriverse.types import ShapeFlags

    builder = assembly.builder
    override = asset.configuration()
    default = builder.default_shape_cfg
    first = builder.shape_count
    builder.default_shape_cfg = shape_configuration(default, override)
    try:
        with assembly.at("source"), warnings.catch_warnings():
            # What the importer warns about is in its report, and from there in the features not supported.
            warnings.simplefilter("ignore", AssetWarning)
            report = ASSET_IMPORTERS[kind](assembly, source, asset)
    finally:
        builder.default_shape_cfg = default
    # The asset's own material gives way to what the scene says about it.
    for field in MATERIAL_FIELDS:
        if field in override:
            array = f"shape_{field}" if field in ("margin", "gap") else f"shape_material_{field}"
            getattr(builder, array)[first:] = override[field]
    # The USD importer hides those of bodies that have something else to show.
    hides = asset.hide_collision_shapes and not isinstance(asset, UsdAsset)
    if hides and not asset.force_show_colliders:
        flags = builder.shape_flags[first:]
        flags[(flags & ShapeFlags.COLLIDE_SHAPES) != 0] &= ~int(ShapeFlags.VISIBLE)
    for entry in report.losses:
        assembly.note_unsupported(f"asset[{name}] {kind} {entry}")


# Common options that say nothing about a USD stage.
_NOT_OF_USD = (
    "scale",
    "parse_visuals_as_colliders",
    "ignore_inertial_definitions",
)


def _gaps(asset: Asset) -> list[tuple[str, bool]]:
    """Return the options that no importer does yet, and whether the asset asks for them."""
    return [
        ("up_axis", asset.up_axis.lower() != "z"),
        ("base_joint", asset.base_joint is not None),
        ("parent_body", asset.parent_body not in (-1, "world", None)),
        ("override_root_xform", asset.override_root_xform),
        ("split_bimanual_root_articulation", getattr(asset, "split_bimanual_root_articulation", False)),
        (
            "bodies_follow_joint_ordering",
            isinstance(asset, UrdfAsset) and not asset.bodies_follow_joint_ordering,
        ),
        *((name, isinstance(asset, UsdAsset) and asset.wrote(name)) for name in _NOT_OF_USD),
        ("external_assets", getattr(asset, "external_assets", None) is not None),
    ]


def _local_source(assembly: Assembly, source: Any, name: str, kind: str) -> str | Path | None:
    """Return the file or the XML text of a source, or None (and a note) if it is not local."""
    with assembly.at("source"):
        if isinstance(source, dict):
            allowed = {"path", "mesh_scale"} if kind == "urdf" else {"path"}
            if set(source) <= allowed and isinstance(source.get("path"), str):
                source = source["path"]
            elif "git" in source or "examples_asset" in source:
                assembly.note_unsupported(f"asset[{name}] {kind} source: {next(iter(source))}")
                return None
        if not isinstance(source, str) or not source.strip():
            raise FieldError(
                f"{shown(source)} is not a source; write a path, {{path: ...}} or the text of the file"
            )
        if source.lstrip().startswith("#usda" if kind == "usd" else "<"):
            return source
        path = assembly.resolve(source)
        if not path.is_file():
            raise FieldError(f"there is no file '{path}' (a path is relative to the scene file)")
        return path


_COMMON_OPTIONS = (
    "floating",
    "load_visual_shapes",
    "scale",
    "force_show_colliders",
    "parse_visuals_as_colliders",
    "enable_self_collisions",
    "ignore_inertial_definitions",
    "collapse_fixed_joints",
    "mesh_maxhullvert",
)
_USD_OPTIONS = (
    "floating",
    "load_visual_shapes",
    "force_show_colliders",
    "hide_collision_shapes",
    "enable_self_collisions",
    "collapse_fixed_joints",
    "mesh_maxhullvert",
    "root_path",
    "ignore_paths",
    "only_load_enabled_rigid_bodies",
    "only_load_enabled_joints",
    "skip_mesh_approximation",
    "load_sites",
    "apply_up_axis_from_stage",
    "force_position_velocity_actuation",
    "joint_drive_gains_scaling",
    "joint_ordering",
    "bodies_follow_joint_ordering",
)
_URDF_OPTIONS = ("mesh_scale", "joint_ordering")
_MJCF_OPTIONS = (
    "armature_scale",
    "parse_meshes",
    "parse_sites",
    "no_class_as_colliders",
    "visual_classes",
    "collider_classes",
    "ignore_names",
    "ignore_classes",
    "keyframe",
)


def _options(asset: Asset, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the options that the scene sets; the importers' defaults are those of the format."""
    options = {name: getattr(asset, name) for name in (*_COMMON_OPTIONS, *names) if asset.wrote(name)}
    return options | {"xform": asset.xform.as_list()}


def _import_urdf(assembly: Assembly, source: str | Path, asset: Any) -> Any:
    options = _options(asset, _URDF_OPTIONS)
    options["package_dirs"] = [assembly.resolve(folder) for folder in asset.package_dirs] or None
    if isinstance(asset.source, dict) and "mesh_scale" in asset.source:
        options["mesh_scale"] = parse_scale(asset.source["mesh_scale"], "mesh_scale")
    return assembly.builder.add_urdf(source, **options)


def _import_mjcf(assembly: Assembly, source: str | Path, asset: Any) -> Any:
    options = _options(asset, _MJCF_OPTIONS)
    options["parse_visuals"] = asset.parse_visuals and options.pop("load_visual_shapes", True)
    return assembly.builder.add_mjcf(source, **options)


def _import_usd(assembly: Assembly, source: str | Path, asset: Any) -> Any:
    options = {name: getattr(asset, name) for name in _USD_OPTIONS if asset.wrote(name)}
    try:
        return assembly.builder.add_usd(source, xform=asset.xform.as_list(), **options)
    except ImportError as error:
        raise FieldError(str(error)) from error


ASSET_IMPORTERS: dict[str, Callable[[Assembly, str | Path, Any], Any]] = {
    "urdf": _import_urdf,
    "mjcf": _import_mjcf,
    "usd": _import_usd,
}
"""What reads the assets of each type; each returns an `ImportReport`."""
