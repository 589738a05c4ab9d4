"""Assets: robots read from files by an importer."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Discriminator, Field, Tag

from pluriverse.importers.options import MjcfOptions, UrdfOptions, UsdOptions, XmlOptions
from pluriverse.options import defaults_of
from pluriverse.scene.assembly import Assembly
from pluriverse.scene.asset_references import check_references
from pluriverse.scene.bodies import find_body
from pluriverse.scene.errors import FieldError
from pluriverse.scene.external_assets import ExternalAsset, laid_out
from pluriverse.scene.joints import BaseJoint
from pluriverse.scene.patterns import Pattern
from pluriverse.scene.shapes import MATERIAL_FIELDS, Overrides, shape_configuration
from pluriverse.scene.sources import OpenedSource, Source, open_source
from pluriverse.scene.values import (
    IDENTITY,
    Count,
    Name,
    NotNegative,
    Positive,
    Reference,
    Scale,
    Transform,
    shown,
)
from pluriverse.types import ShapeFlags

Gains = tuple[NotNegative, NotNegative]
# Characters of a document in which its first element is looked for.
PROLOG_SIZE_MAX = 100_000
# What the message of a missing file ends with.
ELSEWHERE = "Files elsewhere are read below folders that asset_roots= (--asset-root) adds."


class Asset(Overrides):
    """Keys of every asset."""

    id: Reference | None = None
    type: Name
    source: Source
    xform: Transform = Field(default=IDENTITY, validation_alias=AliasChoices("xform", "transform"))
    floating: bool | None = None
    enable_self_collisions: bool = True
    force_show_colliders: bool = False
    hide_collision_shapes: bool = False
    hide_visuals: bool = False
    load_visual_shapes: bool = True
    parse_visuals_as_colliders: bool = False
    ignore_inertial_definitions: bool = False
    collapse_fixed_joints: bool = False
    mesh_maxhullvert: Count = 64
    drive_gains: Gains | dict[Name, Gains] | None = Field(
        default=None,
        description="stiffness and damping of drives for joints that have none, or these by joint",
    )
    effort_limit: NotNegative | dict[Name, NotNegative] | None = Field(
        default=None, description="largest effort of drives that the asset has no limit for, or by joint"
    )
    scale: Positive = 1.0
    up_axis: Literal["z", "Z", "x", "X", "y", "Y"] = Field(
        default="z", description="axis of the asset that shall point up; USD stages say so themselves"
    )
    base_joint: BaseJoint | None = Field(
        default=None, description="joint that holds the base; null for a fixed or free one, as floating says"
    )
    parent_body: Reference | None = Field(
        default=-1, description="body of an earlier asset that the base is mounted on"
    )
    override_root_xform: bool = Field(
        default=False, description="xform is the pose of the first body, not of the asset's origin"
    )
    register_mujoco_custom_attributes: bool = Field(
        default=False, description="keep the asset's MuJoCo-specific attributes, for SolverMuJoCo"
    )


class UrdfAsset(Asset):
    """A robot from a URDF file."""

    mesh_scale: Scale = (1.0, 1.0, 1.0)
    joint_ordering: Literal["dfs", "bfs", "dfs_by_name"] | None = "dfs"
    bodies_follow_joint_ordering: bool = True
    split_bimanual_root_articulation: bool = False
    planar_joints_turn: bool = False
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
    skip_equality_constraints: bool = False
    visual_classes: list[Pattern] = Field(default_factory=lambda: ["visual"])
    collider_classes: list[Pattern] = Field(default_factory=lambda: ["collision"])
    ignore_names: list[Pattern] = Field(default_factory=list)
    ignore_classes: list[Pattern] = Field(default_factory=list)
    external_assets: list[ExternalAsset] | None = Field(
        default=None, description="files from elsewhere, put below the folder of the model"
    )
    keyframe: Reference | None = Field(
        default=None, description="initial state; not set: home, stand or the first"
    )


class UsdAsset(Asset):
    """Bodies and articulations from a USD stage."""

    root_path: Name = Field(default="/", description="prim whose subtree is imported")
    ignore_paths: list[Pattern] = Field(
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
    """An asset of a type that is not supported yet; its options are not checked."""

    model_config = ConfigDict(extra="allow", frozen=True)
    id: Any = None
    type: str


ASSET_TYPES = ("urdf", "mjcf", "usd")
"""The types of assets, which scenes may write in any case."""


def _asset_tag(value: Any) -> Any:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    if isinstance(kind, str):
        return kind.lower() if kind.lower() in ASSET_TYPES else "unsupported"
    return None if kind is None else "unsupported"


AnyAsset = Annotated[
    Annotated[UrdfAsset, Tag("urdf")]
    | Annotated[MjcfAsset, Tag("mjcf")]
    | Annotated[UsdAsset, Tag("usd")]
    | Annotated[UnsupportedAsset, Tag("unsupported")],
    Discriminator(_asset_tag),
]


def register_mujoco_attributes(builder: Any) -> None:
    """Declare the MuJoCo-specific attributes of assets in a builder."""
    from pluriverse.mujoco_attributes.registration import register_custom_attributes

    register_custom_attributes(builder)


def import_asset(assembly: Assembly, asset: Asset | UnsupportedAsset, index: int) -> None:
    """Add an asset to the world, or note what of it is not supported."""
    name = shown(asset.id if asset.id is not None else index)
    kind = asset.type.lower()
    if isinstance(asset, UnsupportedAsset):
        with assembly.at("type"):
            known = ", ".join(ASSET_IMPORTERS)
            assembly.note_unsupported(f"asset[{name}] type={asset.type} (this version reads {known})")
        return
    with assembly.at("source"):
        source = open_source(assembly, asset.source, kind, name)
    if source is None:
        return
    for gap in [gap for gap, is_asked in _gaps(asset) if is_asked]:
        with assembly.at(gap):
            assembly.note_unsupported(f"asset[{name}] {kind} {gap}")
    with laid_out(assembly, source, getattr(asset, "external_assets", None) or ()) as combined:
        _place(assembly, asset, combined, kind, name)


def _place(assembly: Assembly, asset: Asset, source: OpenedSource, kind: str, name: str) -> None:
    """Add an asset to the world from a source that can be read."""
    _check_kind(source.content, kind)
    packages = _package_folders(assembly, asset) if kind == "urdf" else []
    with assembly.at("source"):
        check_references(kind, source.content, source.roots, packages)
    if asset.register_mujoco_custom_attributes:
        register_mujoco_attributes(assembly.builder)
    report, first_shape = _import(assembly, source.content, asset, kind)
    _override_material(assembly.builder, asset.configuration(), first_shape)
    # The USD importer hides those of bodies that have something else to show.
    hides = asset.hide_collision_shapes and not isinstance(asset, UsdAsset)
    if hides and not asset.force_show_colliders:
        _hide_colliders(assembly.builder, first_shape)
    for entry in report.losses:
        assembly.note_unsupported(f"asset[{name}] {kind} {entry}")


def _check_kind(content: Path | str, kind: str) -> None:
    """Check that an XML document is not of another type than the scene says.

    Raises:
        FieldError: It is.
    """
    if kind == "usd":
        return
    text = content
    if isinstance(content, Path):
        with content.open(encoding="utf-8", errors="replace") as file:
            text = file.read(PROLOG_SIZE_MAX)
    root = re.search(r"<(robot|mujoco)[\s>/]", re.sub(r"(?s)<!--.*?(-->|$)", "", str(text)))
    found = None if root is None else {"robot": "urdf", "mujoco": "mjcf"}[root[1]]
    if root is not None and found != kind:
        raise FieldError(f"the document is a <{root[1]}>; write type: {found}", "type")


def _import(assembly: Assembly, content: Path | str, asset: Asset, kind: str) -> tuple[Any, int]:
    """Add an asset, and return the importer's report and the first shape of the asset."""
    from pluriverse.importers.base_attachment import BaseAttachmentError
    from pluriverse.importers.errors import AssetError, AssetFileError
    from pluriverse.warnings import AssetWarning

    builder = assembly.builder
    attachment = _attachment(assembly, asset)
    default = builder.default_shape_cfg
    first_shape = builder.shape_count
    builder.default_shape_cfg = shape_configuration(default, asset.configuration())
    try:
        with assembly.at("source"), warnings.catch_warnings():
            # Warnings of the importer are in its report, and from there in the unsupported features.
            warnings.simplefilter("ignore", AssetWarning)
            try:
                return ASSET_IMPORTERS[kind](assembly, content, asset, attachment), first_shape
            except BaseAttachmentError as error:
                wrong = error
            except AssetError as error:
                if isinstance(error, AssetFileError) or "opening file" in str(error):
                    raise FieldError(f"{error} {ELSEWHERE}") from error
                raise
        with assembly.at(wrong.option):
            raise wrong
    finally:
        builder.default_shape_cfg = default


def _override_material(builder: Any, override: dict[str, Any], first_shape: int) -> None:
    """Override the asset's own material by that of the scene."""
    for field in MATERIAL_FIELDS:
        if field in override:
            array = f"shape_{field}" if field in ("margin", "gap") else f"shape_material_{field}"
            getattr(builder, array)[first_shape:] = override[field]


def _hide_colliders(builder: Any, first_shape: int) -> None:
    flags = builder.shape_flags[first_shape:]
    flags[(flags & ShapeFlags.COLLIDE_SHAPES) != 0] &= ~int(ShapeFlags.VISIBLE)


def _attachment(assembly: Assembly, asset: Asset) -> dict[str, Any]:
    """Return the importer's options for the attachment of the asset's base."""
    options: dict[str, Any] = {
        "xform": asset.xform.as_list(),
        "parent_body": find_body(assembly, asset.parent_body, "parent_body"),
        "override_root_xform": asset.override_root_xform,
    }
    if not isinstance(asset, UsdAsset):  # a stage says itself what is up
        options["up_axis"] = asset.up_axis
    if asset.base_joint is not None:
        joint = asset.base_joint
        options["base_joint"] = {
            "joint_type": joint.type,
            "child_xform": joint.child_xform.as_list(),
            "label": joint.label,
            "collision_filter_parent": joint.collision_filter_parent,
            **joint.motion(assembly.builder.default_joint_cfg),
        }
    return options


# Options of the importer of each type of assets.
_OPTIONS = {"urdf": UrdfOptions, "mjcf": MjcfOptions, "usd": UsdOptions}
# Those that `_attachment` and the importers below see to.
_SEEN_TO = ("xform", "up_axis", "base_joint", "parent_body", "override_root_xform", "package_dirs")


def _gaps(asset: Asset) -> list[tuple[str, bool]]:
    """Return the options that no importer does, and whether the asset asks for them."""
    if not isinstance(asset, UsdAsset):
        return []
    xml_only = [name for name in defaults_of(XmlOptions) if name not in defaults_of(UsdOptions)]
    return [
        ("up_axis", asset.up_axis.lower() != "z"),
        *((name, asset.wrote(name)) for name in xml_only if name != "up_axis"),
    ]


def _options(asset: Asset, kind: str) -> dict[str, Any]:
    """Return the options that the scene sets; the importers' defaults are those of the format."""
    names = [name for name in defaults_of(_OPTIONS[kind]) if name not in _SEEN_TO and asset.wrote(name)]
    return {name: getattr(asset, name) for name in names}


def _package_folders(assembly: Assembly, asset: Any) -> list[Path]:
    """Return the folders in which packages of a URDF file are looked for."""
    named = [assembly.files.find_folder(folder) for folder in asset.package_dirs]
    return named + assembly.files.further_roots


def _import_urdf(assembly: Assembly, content: Path | str, asset: Any, attachment: dict[str, Any]) -> Any:
    options = _options(asset, "urdf")
    options["package_dirs"] = _package_folders(assembly, asset) or None
    if asset.source.mesh_scale is not None:
        options["mesh_scale"] = asset.source.mesh_scale
    return assembly.builder.add_urdf(content, **attachment, **options)


def _import_mjcf(assembly: Assembly, content: Path | str, asset: Any, attachment: dict[str, Any]) -> Any:
    options = _options(asset, "mjcf")
    options["parse_visuals"] = asset.parse_visuals and asset.load_visual_shapes
    return assembly.builder.add_mjcf(content, **attachment, **options)


def _import_usd(assembly: Assembly, content: Path | str, asset: Any, attachment: dict[str, Any]) -> Any:
    try:
        return assembly.builder.add_usd(content, **attachment, **_options(asset, "usd"))
    except ImportError as error:
        raise FieldError(str(error)) from error


ASSET_IMPORTERS: dict[str, Callable[[Assembly, Path | str, Any, dict[str, Any]], Any]] = {
    "urdf": _import_urdf,
    "mjcf": _import_mjcf,
    "usd": _import_usd,
}
"""Readers of the types of assets; each returns an `ImportReport`."""
