"""Loading a scene: from a file to a model that can be stepped.

The order of the stages is part of the format: builder defaults, assets, bodies with their shapes, joints,
articulations, initial positions, post-build operations; then the world is replicated and the ground added.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.scene.assembly import Assembly
from pluriverse.scene.assets import import_asset
from pluriverse.scene.bodies import (
    add_articulation,
    add_body,
    add_joint,
    articulate_remaining_joints,
    set_initial_joint_q,
)
from pluriverse.scene.document import FieldPath, SceneDocument, read_scene_document
from pluriverse.scene.errors import FieldError, SapUnsupportedSceneFeature
from pluriverse.scene.layout import SPACING_DEFAULT, share_worlds
from pluriverse.scene.loaded_scene import LoadedScene, SceneSettings
from pluriverse.scene.local_files import LocalFiles
from pluriverse.scene.schema import BuilderSection, Scene, SimulationSection, WorldContent
from pluriverse.scene.shapes import shape_configuration
from pluriverse.scene.shipped import find_scene_file
from pluriverse.scene.validation import validate_scene
from pluriverse.scene.values import IDENTITY_ROTATION, Vector3


@dataclass
class _Kind:
    """One kind of world of the scene."""

    name: str
    count: int
    document: SceneDocument
    field: FieldPath
    files: LocalFiles
    content: WorldContent
    builder_section: BuilderSection
    gravity: Vector3 | None
    max_rigid_contact: int | None


def load_scene(
    path: str | Path,
    *,
    device: Any = None,
    num_worlds: int | None = None,
    spacing: Vector3 | None = None,
    strict: bool = True,
    asset_roots: Sequence[str | Path] = (),
) -> LoadedScene:
    """Return the scene of a YAML or JSON file, ready to be stepped.

    Args:
        path: The file, or the name of a scene that ships with the package.
        device: Device of the model; Warp's default if not given.
        num_worlds: Number of worlds, instead of the scene's own. Kinds of world share it in proportion to
            their counts.
        spacing: Distance [m] between worlds per axis, instead of the scene's own.
        strict: Whether keys and features that are not supported are errors. Otherwise they are left out and
            listed in `LoadedScene.unsupported_features`.
        asset_roots: Folders that the scene may read files from, beside its own and the current directory.

    Raises:
        SapSceneLoaderError: The scene is wrong; the message names file, line, field, value and remedy.
        ValueError: There is no such device.
        SapUnsupportedSceneFeature: `strict` is set and the scene asks for something that is not supported.
    """
    import warp as wp

    target = wp.get_device(device)
    if num_worlds is not None and num_worlds < 1:
        raise ValueError(f"num_worlds is {num_worlds}; a scene needs at least one world")
    document = read_scene_document(find_scene_file(path))
    features: list[str] = []
    scene = validate_scene(document, strict=strict, features=features)
    if scene.control is not None:
        features.append(document.located(("control",), "recorded control sequences"))
    files = LocalFiles(document.path.parent, asset_roots)
    kinds = list(_kinds(document, scene, files, strict=strict, features=features))
    wanted = num_worlds or scene.simulation.num_worlds or scene.replicate.num_worlds
    counts = [kind.count for kind in kinds]
    if wanted is not None:
        try:
            counts = share_worlds(wanted, counts)
        except ValueError as error:
            raise document.error(("worlds",), str(error)) from error
    settings = _settings(document, scene.simulation, kinds, counts)
    builders = [_assemble(kind, features) for kind in kinds]
    if features and strict:
        raise SapUnsupportedSceneFeature(
            "\n".join(f"not supported: {feature}" for feature in features)
            + "\nload the scene with strict=False (--no-strict) to go on without",
            tuple(features),
        )
    spacing = spacing if spacing is not None else scene.replicate.spacing or SPACING_DEFAULT
    builder = _compose(document, scene, kinds, builders, counts, spacing)
    try:
        model = builder.finalize(device=target)
    except ValueError as error:
        raise document.error((), str(error)) from error
    return LoadedScene(
        name=scene.name or document.path.stem,
        source_path=document.path,
        builder=builder,
        model=model,
        state=model.state(),
        control=model.control(),
        settings=settings,
        unsupported_features=tuple(features),
        kind_names=tuple(kind.name for kind in kinds),
        kind_of_world=tuple(kind for kind, count in enumerate(counts) for _ in range(count)),
    )


def load_scene_config(path: str | Path) -> dict[str, Any]:
    """Return what a scene file says, unchecked but for its version."""
    document = read_scene_document(find_scene_file(path))
    return document.data


def _kinds(
    document: SceneDocument, scene: Scene, files: LocalFiles, *, strict: bool, features: list[str]
) -> Iterator[_Kind]:
    """Yield the kinds of world of a scene: those listed in `worlds`, or the scene itself as the only one."""
    if not scene.worlds:
        yield _Kind(
            scene.name or document.path.stem,
            1,
            document,
            (),
            files,
            scene,
            scene.builder,
            None,
            scene.simulation.max_rigid_contact,
        )
        return
    for index, entry in enumerate(scene.worlds):
        field: FieldPath = ("worlds", index)
        cap = entry.max_rigid_contact or scene.simulation.max_rigid_contact
        if entry.scene is None:
            yield _Kind(
                entry.kind_name(index),
                entry.count,
                document,
                field,
                files,
                entry,
                scene.builder,
                entry.gravity,
                cap,
            )
            continue
        try:
            inner_path = files.find_file(entry.scene, "scene file")
        except FieldError as error:
            raise document.error((*field, "scene"), str(error)) from error
        inner_document = read_scene_document(inner_path)
        inner = validate_scene(inner_document, strict=strict, features=features)
        if inner.worlds:
            raise document.error(
                (*field, "scene"), f"'{entry.scene}' has 'worlds' itself; list its kinds here instead"
            )
        if "ground" in inner.model_fields_set and inner.ground != scene.ground:
            raise document.error(
                (*field, "scene"),
                f"all worlds share the ground of this file, but '{entry.scene}' has another one; give both "
                "files the same 'ground'",
            )
        if inner.control is not None:
            features.append(inner_document.located(("control",), "recorded control sequences"))
        yield _Kind(
            entry.kind_name(index),
            entry.count,
            inner_document,
            (),
            files.inside(inner_path.parent),
            inner,
            inner.builder,
            entry.gravity,
            entry.max_rigid_contact or inner.simulation.max_rigid_contact or cap,
        )


def _assemble(kind: _Kind, features: list[str]) -> Any:
    """Return a builder that holds one world of a kind."""
    from pluriverse.builder import ModelBuilder

    builder = ModelBuilder()
    assembly = Assembly(builder, kind.document, kind.field, features, kind.files)
    _apply_defaults(assembly, kind.builder_section)
    content = kind.content
    for index, asset in enumerate(content.assets):
        with assembly.at("assets", index):
            import_asset(assembly, asset, index)
    for index, body in enumerate(content.bodies):
        with assembly.at("bodies", index):
            add_body(assembly, body)
    for index, joint in enumerate(content.joints):
        with assembly.at("joints", index):
            add_joint(assembly, joint)
    for index, articulation in enumerate(content.articulations):
        with assembly.at("articulations", index):
            add_articulation(assembly, articulation, index)
    with assembly.at("joints"):
        articulate_remaining_joints(assembly)
    for index, entry in enumerate(content.initial_joint_q):
        with assembly.at("initial_joint_q", index):
            set_initial_joint_q(assembly, entry)
    for index, operation in enumerate(content.post_build):
        with assembly.at("post_build", index):
            operation.apply(assembly)
    if kind.gravity is not None:
        builder.gravity = kind.gravity
    return builder


def _apply_defaults(assembly: Assembly, section: BuilderSection) -> None:
    """Apply the builder section of a scene."""
    builder = assembly.builder
    for name in ("rigid_gap", "gravity", "default_body_armature"):
        value = getattr(section, name)
        if value is not None:
            setattr(builder, name, value)
    builder.default_shape_cfg = shape_configuration(builder.default_shape_cfg, section.defaults.shape.given())
    builder.default_joint_cfg = builder.default_joint_cfg.merged(**section.defaults.joint.given())


def _compose(
    document: SceneDocument,
    scene: Scene,
    kinds: list[_Kind],
    builders: list[Any],
    counts: list[int],
    spacing: Vector3,
) -> Any:
    """Return a builder that holds all worlds and the ground."""
    from pluriverse.builder import ModelBuilder
    from pluriverse.builder.worlds import world_offsets

    composed = ModelBuilder()
    composed_assembly = Assembly(composed, document, (), [], LocalFiles(document.path.parent))
    _apply_defaults(composed_assembly, scene.builder)
    offsets = iter(world_offsets(sum(counts), np.asarray(spacing, dtype=np.float64)))
    for kind, builder, count in zip(kinds, builders, counts, strict=True):
        try:
            if len(kinds) == 1 or not any(spacing):
                composed.replicate(builder, count, spacing)
            else:
                for _ in range(count):
                    composed.add_world(builder, (*next(offsets), *IDENTITY_ROTATION))
        except ValueError as error:
            raise kind.document.error(kind.field, str(error)) from error
    if scene.ground.enabled:
        with composed_assembly.at("ground"):
            override = scene.ground.cfg.given() if scene.ground.cfg is not None else {}
            composed.add_ground_plane(
                height=scene.ground.height,
                cfg=shape_configuration(composed.default_shape_cfg, override),
                label=scene.ground.label,
            )
    return composed


def _settings(
    document: SceneDocument, simulation: SimulationSection, kinds: list[_Kind], counts: list[int]
) -> SceneSettings:
    from pluriverse.solvers.sap.options import SapOptions

    caps = [kind.max_rigid_contact for kind in kinds]
    capacity: int | tuple[int, ...] | None
    if len(set(caps)) == 1:
        capacity = caps[0]
    elif None in caps:
        unset = next(kind.name for kind in kinds if kind.max_rigid_contact is None)
        raise document.error(
            ("worlds",),
            f"max_rigid_contact is set for some kinds of world but not for '{unset}'; set it for all, or in "
            "'simulation'",
        )
    else:
        capacity = tuple(
            cap for cap, count in zip(caps, counts, strict=True) for _ in range(count) if cap is not None
        )
    options = simulation.solver.given()
    try:
        SapOptions(**options)
    except ValueError as error:
        raise document.error(("simulation", "solver"), str(error)) from error
    return SceneSettings(dt=simulation.dt, solver_options=options, max_rigid_contact=capacity)


# The names under which the format's first implementation offers the same.
load_sap_scene = load_scene
load_sap_scene_config = load_scene_config
