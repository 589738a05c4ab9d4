"""The importers as methods of `ModelBuilder`, loaded on first use."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pluriverse.importers.options import MjcfOptions, UrdfOptions, UsdOptions
from pluriverse.importers.other_options import OTHER_OPTIONS, read_other_options
from pluriverse.options import completed, with_options

if TYPE_CHECKING:
    from pluriverse.importers.report import ImportReport


@with_options(MjcfOptions, tolerated=OTHER_OPTIONS["add_mjcf"])
def add_mjcf(
    builder: Any,
    source: Any,
    *,
    path_resolver: Callable[[str | None, str], str] | None = None,
    **options: Unpack[MjcfOptions],
) -> "ImportReport":
    """Add the bodies, joints, shapes, drives and initial state of a MuJoCo model to `builder`.

    See `docs/importers.md` for what becomes of each element.

    Args:
        builder: The `ModelBuilder` to add to; its `default_shape_cfg` and `default_joint_cfg` supply what
            MJCF lacks.
        source: Path of an MJCF file, its XML text, or a `mujoco.MjSpec`, which is not changed.
        path_resolver: Finds the files that the document refers to: called with the folder of the document
            (None for text) and the reference with its `meshdir` or `texturedir`, it returns a path. For
            `<include>` it may return XML text. None goes by MuJoCo's rules.

    Returns:
        Report of what was added and what could not be represented.

    Raises:
        AssetError: If the document cannot be read, or a value in it is impossible.
        UnsupportedAssetError: If there are features that cannot be represented and `strict` is set.
        ValueError: If an option is out of range, or contradicts another.
    """
    from pluriverse.importers.mjcf import import_mjcf

    importer = functools.partial(import_mjcf, path_resolver=path_resolver)
    return _add("add_mjcf", MjcfOptions, importer, builder, source, options)


@with_options(UrdfOptions, tolerated=OTHER_OPTIONS["add_urdf"])
def add_urdf(
    builder: Any,
    source: str | Path,
    *,
    path_resolver: Callable[[str | None, str], str] | None = None,
    **options: Unpack[UrdfOptions],
) -> "ImportReport":
    """Add the links, joints and shapes of a URDF robot to `builder`.

    See `docs/importers.md` for what becomes of each element.

    Args:
        builder: The `ModelBuilder` to add to; its `default_shape_cfg` and `default_joint_cfg` supply what
            URDF lacks (material, armature, limit gains). Links without `<inertial>` get their mass from their
            colliders and the density of `default_shape_cfg`.
        source: Path of a URDF file, or its XML text.
        path_resolver: Finds meshes and textures: called with the folder of the document (None for text) and
            the reference as written, such as `package://robot/arm.stl`, it returns a path. None searches as
            `docs/importers.md` says.

    Returns:
        Report of what was added and what could not be represented.

    Raises:
        AssetError: If the document cannot be read, or a value in it is impossible.
        AssetFileError: If a collision mesh is missing.
        UnsupportedAssetError: If there are features that cannot be represented and `strict` is set.
        ValueError: If an option is out of range, or contradicts another.
    """
    from pluriverse.importers.urdf import import_urdf

    importer = functools.partial(import_urdf, path_resolver=path_resolver)
    return _add("add_urdf", UrdfOptions, importer, builder, source, options)


@with_options(UsdOptions, tolerated=OTHER_OPTIONS["add_usd"])
def add_usd(
    builder: Any,
    source: str | Path | Any,
    *,
    path_resolver: Callable[[str | None, str], str] | None = None,
    **options: Unpack[UsdOptions],
) -> "ImportReport":
    """Add the rigid bodies, joints, colliders and display geometry of a USD stage to `builder`.

    Lengths are in `metersPerUnit` of the stage; without it they are in centimetres, USD's default, with a
    warning. The physics scene of the stage, if there is one, sets `builder.gravity`. See `docs/importers.md`
    for what becomes of each schema.

    Args:
        builder: The `ModelBuilder` to add to; its `default_shape_cfg` and `default_joint_cfg` supply what the
            stage lacks.
        source: Path of a USD file (usd, usda, usdc, usdz), the text of a usda file, or a `Usd.Stage`.
        path_resolver: Finds layers and textures: called with the folder of the layer (None for text) and the
            reference as written, such as `./props/cup.usd`, it returns a path. None goes by USD's resolver.

    Returns:
        Report of what was added and what could not be represented.

    Raises:
        ImportError: If usd-core is not installed.
        AssetError: If the stage cannot be read, or a value in it is impossible.
        AssetFileError: If there is no such file.
        UnsupportedAssetError: If there are features that cannot be represented and `strict` is set.
        ValueError: If an option is out of range, or contradicts another.
    """
    from pluriverse.importers.usd import import_usd

    importer = functools.partial(import_usd, path_resolver=path_resolver)
    return _add("add_usd", UsdOptions, importer, builder, source, options)


def _add(
    name: str,
    kind: type,
    importer: Callable[..., "ImportReport"],
    builder: Any,
    source: Any,
    given: Mapping[str, Any],
) -> "ImportReport":
    """Call an importer with all its options, given or by default, and complete its report."""
    own_options, is_verbose = read_other_options(name, given)
    report = importer(builder, source, completed(kind, own_options))
    report.map_labels(builder.body_label, builder.joint_label, builder.shape_label)
    if is_verbose:
        print(report.summary())
    return report
