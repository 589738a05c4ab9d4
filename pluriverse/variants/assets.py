"""Assets: a builder from the source of a configuration: a function, a spec, a builder or a file."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MESH_SUFFIXES = (".obj", ".stl", ".ply", ".off", ".dae", ".glb", ".gltf")
USD_SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")


def load_asset(
    source: Any, what: str, prepare_builder: Callable[[Any], None] | None = None
) -> tuple[Any, Any]:
    """Return a builder without worlds of an asset, and the `mujoco.MjSpec` that it was made from, or None.

    Args:
        source: As `EntityCfg.spec_fn`.
        what: Entity and variant, for messages.
        prepare_builder: Called with the new builder first.

    Raises:
        TypeError: If the source is nothing that can be read.
        ValueError: If the asset is faulty; the message names entity and variant.
    """
    from pluriverse.model_builder import ModelBuilder

    asset = source
    if callable(source) and not isinstance(source, ModelBuilder):
        asset = source()
    if isinstance(asset, ModelBuilder):
        if asset.world_count:
            raise ValueError(
                f"{what}: the builder has {asset.world_count} worlds of its own. Return one without: "
                "what stands in an environment is put into a world there."
            )
        builder = ModelBuilder()
        builder.add_builder(asset)
        return builder, None
    builder = ModelBuilder()
    if prepare_builder is not None:
        prepare_builder(builder)
    try:
        if isinstance(asset, str | Path):
            _add_file(builder, Path(asset))
            return builder, None
        if type(asset).__name__ == "MjSpec":
            builder.add_mjcf(asset)
            return builder, asset
    except (ValueError, OSError) as error:
        raise ValueError(f"{what}: {error}") from error
    raise TypeError(
        f"{what}: a {type(asset).__name__} is no asset. Give a function that returns a mujoco.MjSpec or a "
        "ModelBuilder, one of these, or the path of an MJCF, URDF, USD or mesh file."
    )


def replace_by_hulls(builder: Any) -> None:
    """Replace the meshes of convex shapes by their hulls, so that a model knows which meshes collide.

    The hull of a mesh without a shape is prepared for collisions only if it is marked as a hull. Meshes that
    no shape uses any more are dropped.
    """
    from pluriverse.builder.shapes import mesh_index
    from pluriverse.types import GeoType

    meshes: list[Any] = [
        builder.meshes[index] if index >= 0 else None for index in builder.shape_source_index.tolist()
    ]
    for shape in np.flatnonzero(builder.shape_type == GeoType.CONVEX_MESH).tolist():
        meshes[shape] = meshes[shape].convex_hull()
    builder.meshes, builder.mesh_of_content = [], {}
    for shape, mesh in enumerate(meshes):
        if mesh is not None:
            builder.shape_source_index[shape] = mesh_index(builder, mesh)


def _add_file(builder: Any, path: Path) -> None:
    """Add what a file holds to a builder."""
    suffix = path.suffix.lower()
    if suffix in USD_SUFFIXES:
        builder.add_usd(path)
    elif suffix in MESH_SUFFIXES:
        _add_mesh(builder, path)
    elif suffix == ".urdf" or (suffix == ".xml" and _root_tag(path) == "robot"):
        builder.add_urdf(path)
    elif suffix in (".xml", ".mjcf"):
        builder.add_mjcf(path)
    else:
        known = ", ".join((".xml", ".mjcf", ".urdf", *USD_SUFFIXES, *MESH_SUFFIXES))
        raise ValueError(f"'{path}' has the suffix '{suffix}', but assets end in one of {known}.")


def _root_tag(path: Path) -> str:
    """Return the name of the root element of an XML file, without its rest."""
    try:
        for _event, element in ElementTree.iterparse(path, events=("start",)):
            return element.tag
    except ElementTree.ParseError:
        pass  # the importer says what is wrong with it
    return ""


def _add_mesh(builder: Any, path: Path) -> None:
    """Add a free body drawn as the mesh, with the collisions and the mass of its convex hull."""
    from pluriverse.geometry import Mesh

    mesh = Mesh.load(path)
    body = builder.add_body(label=path.stem)
    hull = builder.default_shape_cfg.copy()
    hull.is_visible = False
    builder.add_shape_convex_hull(body, mesh=mesh, cfg=hull, label=f"{path.stem}/hull")
    visual = builder.default_shape_cfg.copy()
    visual.has_shape_collision = visual.has_particle_collision = False
    visual.density = 0.0
    builder.add_shape_mesh(body, mesh=mesh, cfg=visual, label=f"{path.stem}/mesh")
