"""Scene: distribute the variants of all entities over worlds, and make one model of them.

An environment holds one variant of every entity. Their layouts form a *tuple*, from which its world is built.
If environments may change their variants, there are worlds for every tuple, contiguous per tuple, of which
one per environment is stepped at a time.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.loop_joints import replace_loop_joints
from pluriverse.builder.shapes import appearance_index, mesh_index
from pluriverse.types import Entity
from pluriverse.variants.assets import load_asset, replace_by_hulls
from pluriverse.variants.assignment import assign_variants
from pluriverse.variants.config import EntityCfg, PreparedWorlds, SceneCfg, VariantEntityCfg, VariantMode
from pluriverse.variants.contents import SceneEntity
from pluriverse.variants.initial_state import apply_initial_state
from pluriverse.variants.layout import find_layouts
from pluriverse.variants.pool import shared_counts
from pluriverse.variants.simulation import VariantScene
from pluriverse.variants.tables import (
    LIVE_STRUCTURE,
    VARIANT_DEPENDENT_FIELDS,
    VARIANT_ENTITIES,
    VariantRows,
    VariantTables,
    count_entities,
)
from pluriverse.variants.validation import check_reserved_names, check_single_layout

# Number of worlds of one model that is surely a mistake: 2**22 smallest worlds take some 10 GB.
WORLD_COUNT_MAX = 2**22


def make_scene(
    config: SceneCfg,
    *,
    device: Any = None,
    add_shared: Callable[[Any], None] | None = None,
    environments: range | None = None,
) -> VariantScene:
    """Read all variants and make a model with the worlds of all environments.

    Args:
        config: What the environments hold.
        device: Device of the model; Warp's default if None.
        add_shared: Adds shapes that all environments share to the `ModelBuilder` it is given.
        environments: The environments to make, a contiguous range of all that `config` describes; all if
            None. They hold, and later draw, the same as in the whole.

    Raises:
        TypeError: If an entity or its assignment is of the wrong type.
        ValueError: If an asset, a state or an assignment is faulty; the message names the entity.
    """
    count = config.num_envs
    if not isinstance(count, int | np.integer) or isinstance(count, bool) or count < 1:
        raise ValueError(f"SceneCfg: num_envs is {count!r}, but it must be a whole number of at least 1.")
    if not config.entities:
        raise ValueError("SceneCfg: there are no entities, so the environments would be empty. Add one.")
    for name, configured in config.entities.items():
        # A plain entity without a name has labels without a prefix; variants must be called something.
        if not isinstance(name, str) or (not name and isinstance(configured, VariantEntityCfg)):
            raise ValueError(f"SceneCfg: the name of an entity is {name!r}, but must be a text, not empty.")
    entities = {name: _read_entity(name, entity, config) for name, entity in config.entities.items()}
    if environments is not None:
        _check_part(config, environments)
        config = dataclasses.replace(config, num_envs=len(environments))
        for entity in entities.values():
            entity.assignment = entity.assignment[environments.start : environments.stop]
    tuples, environment_tuple = _tuples(config, list(entities.values()))
    environment_world, first = _worlds(config, list(entities.values()), tuples, environment_tuple)
    composed = [_compose(list(entities.values()), layouts) for layouts in tuples]
    builder = _build(config, composed, environment_tuple, first)
    if add_shared is not None:
        add_shared(builder)
    model = builder.finalize(device)
    defaults: dict[str, Any] = {}
    if any(entity.has_variants for entity in entities.values()):
        defaults = {name: wp.clone(getattr(model, name)) for name in VARIANT_DEPENDENT_FIELDS}
    tables = VariantTables(model, defaults)
    mesh_index = {mesh.content_key: index for index, mesh in enumerate(model.meshes)}
    appearance_indices = {appearance.content_key: index for index, appearance in enumerate(model.appearances)}
    for position, entity in enumerate(entities.values()):
        for layout, rows in zip(entity.layouts, entity.rows, strict=True):
            if rows is None:
                continue
            variant_row = np.full(len(entity.variants), -1)
            variant_row[layout.variants] = np.arange(len(layout.variants))
            offsets = {
                kind: np.array([each[position][kind] for _, each in composed]) for kind in VARIANT_ENTITIES
            }
            meshes = np.array(
                [mesh_index[mesh.content_key] for mesh in layout.builder.meshes], dtype=np.int32
            )
            appearances = [
                appearance_indices[appearance.content_key] for appearance in layout.builder.appearances
            ]
            rows.name_sources(meshes, np.array(appearances, dtype=np.int32))
            tables.add(entity.name, rows, variant_row, offsets)
    if not tables.is_empty:
        model.guard_structure(live=LIVE_STRUCTURE)
    before = [offsets for _, offsets in composed]
    scene = VariantScene(
        config,
        model,
        entities,
        tuples,
        environment_tuple,
        environment_world,
        first,
        tables,
        defaults,
        before,
        builder,
        environments.start if environments is not None else 0,
    )
    _apply_assignment(scene)
    return scene


def _check_part(config: SceneCfg, environments: range) -> None:
    count = config.num_envs
    if environments.step != 1 or not 0 <= environments.start < environments.stop <= count:
        raise ValueError(
            f"make_scene: environments are {environments}, but must be neighbours among the {count} of the "
            "scene."
        )
    if config.reassignable and config.prepared_worlds is PreparedWorlds.SHARED:
        raise ValueError(
            "make_scene: environments that share worlds (prepared_worlds=PreparedWorlds.SHARED) depend on "
            "each other, so a part of them cannot be made. Use PreparedWorlds.OWN."
        )


def _read_entity(name: str, config: Any, scene: SceneCfg) -> SceneEntity:
    what = f"entity '{name}'"
    if not isinstance(config, EntityCfg):
        raise TypeError(
            f"{what} is a {type(config).__name__}, but must be an EntityCfg or a VariantEntityCfg."
        )
    has_variants = isinstance(config, VariantEntityCfg)
    if isinstance(config, VariantEntityCfg):
        if not config.variants:
            raise ValueError(f"{what}: variants is empty. Name at least one, or use EntityCfg.")
        if config.spec_fn is not None:
            raise ValueError(
                f"{what}: both spec_fn and variants are given. An entity with variants takes what it is from "
                "these alone; leave spec_fn out."
            )
        sources = dict(config.variants)
    else:
        if config.spec_fn is None:
            raise ValueError(f"{what}: spec_fn is missing. Give a function, a builder or a file.")
        sources = {name: config.spec_fn}
    names = tuple(sources)
    builders, specs = [], []
    for variant, source in sources.items():
        which = f"{what}, variant '{variant}'" if has_variants else what
        builder, spec = load_asset(source, which, scene.prepare_builder)
        if builder.body_count + builder.shape_count == 0:
            raise ValueError(f"{which} has no bodies and no shapes. Add something to it.")
        check_reserved_names(which, builder, spec)
        builder.own_gravity = None  # that of the scene acts
        builder = apply_initial_state(builder, config.init_state, which)
        replace_by_hulls(builder)
        builders.append(_close_loops(builder))
        specs.append(spec)
    assignment, shares = np.zeros(scene.num_envs, dtype=np.int64), np.ones(1)
    if isinstance(config, VariantEntityCfg):
        if config.mode is VariantMode.SINGLE_LAYOUT:
            check_single_layout(name, names, builders, specs)
        assignment, shares = assign_variants(name, names, config.assignment, scene.num_envs)
    layouts = find_layouts(names, builders, share=scene.share_layouts)
    single = isinstance(config, VariantEntityCfg) and config.mode is VariantMode.SINGLE_LAYOUT
    if single and scene.share_layouts and len(layouts) > 1:
        other = names[layouts[1].variants[0]]
        raise ValueError(
            f"{what}, variant '{other}' does not fit into the layout of '{names[0]}': names of bodies below "
            "the root, joints, or collision filters differ. Make them agree, or use mode=VariantMode.ANY."
        )
    rows = [
        VariantRows(what, layout, [builders[variant] for variant in layout.variants])
        if len(layout.variants) > 1
        else None
        for layout in layouts
    ]
    return SceneEntity(name, names, has_variants, layouts, rows, assignment, shares)


def _close_loops(builder: Any) -> Any:
    """Return a builder whose loop joints became constraints and parts, with the state that fits."""
    result, cut = replace_loop_joints(builder)
    if len(cut.joint):
        model = builder.finalize("cpu")
        result.joint_q[:], result.joint_qd[:] = model.joint_q.numpy(), model.joint_qd.numpy()
    return result


def _tuples(config: SceneCfg, entities: list[SceneEntity]) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Return the layouts of each kind of world, and the kind of each environment."""
    rows = np.stack([entity.layout_of[entity.assignment] for entity in entities], axis=1)
    if config.reassignable:
        drawn = [np.unique(entity.layout_of[entity.shares > 0.0]).tolist() for entity in entities]
        tuples = list(itertools.product(*drawn))
    else:
        tuples = sorted({tuple(row) for row in rows.tolist()})
    index = {layouts: position for position, layouts in enumerate(tuples)}
    return tuples, np.array([index[tuple(row)] for row in rows.tolist()], dtype=np.int64)


def _worlds(
    config: SceneCfg,
    entities: list[SceneEntity],
    tuples: list[tuple[int, ...]],
    environment_tuple: np.ndarray,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the world of each environment, and the first world of each kind where worlds are prepared."""
    count = config.num_envs
    if not config.reassignable:
        return np.arange(count), None
    worlds = np.full(len(tuples), count, dtype=np.int64)
    rank = np.arange(count)
    if config.prepared_worlds is PreparedWorlds.SHARED:
        chance = np.ones(len(tuples))
        for position, entity in enumerate(entities):
            share = np.bincount(entity.layout_of, weights=entity.shares, minlength=len(entity.layouts))
            chance *= share[[layouts[position] for layouts in tuples]]
        worlds = shared_counts(chance, count, np.bincount(environment_tuple, minlength=len(tuples)))
        for kind in range(len(tuples)):
            members = environment_tuple == kind
            rank[members] = np.arange(int(members.sum()))
    total = int(worlds.sum())
    if total > WORLD_COUNT_MAX:
        raise ValueError(
            f"SceneCfg: {count} environments with {len(tuples)} combinations of layouts each would need "
            f"{total} prepared worlds. Use fewer environments, make variants share layouts (equal bodies and "
            "joints), let environments share worlds (prepared_worlds=PreparedWorlds.SHARED), or set "
            "reassignable=False."
        )
    first = np.concatenate([[0], np.cumsum(worlds)])
    return first[environment_tuple] + rank, first


def _compose(entities: list[SceneEntity], layouts: tuple[int, ...]) -> tuple[Any, list[dict[Entity, int]]]:
    """Return a builder of one kind of world, and how many entities of each kind come before each entity."""
    from pluriverse.model_builder import ModelBuilder

    builder = ModelBuilder()
    offsets = []
    for entity, layout in zip(entities, layouts, strict=True):
        offsets.append(count_entities(builder))
        builder.add_builder(entity.layouts[layout].builder, label_prefix=entity.name or None)
        for mesh in entity.layouts[layout].builder.meshes:
            mesh_index(builder, mesh)  # those of variants that no environment has yet
        for appearance in entity.layouts[layout].builder.appearances:
            appearance_index(builder, appearance, entity.name)
    return builder, offsets


def _build(
    config: SceneCfg,
    composed: list[tuple[Any, Any]],
    environment_tuple: np.ndarray,
    first: np.ndarray | None,
) -> Any:
    """Return a builder with all worlds."""
    from pluriverse.model_builder import ModelBuilder

    builder = ModelBuilder(gravity=config.gravity)
    if first is not None:
        for (source, _), count in zip(composed, np.diff(first).tolist(), strict=True):
            builder.replicate(source, count)
    else:
        bounds = np.flatnonzero(np.diff(environment_tuple)) + 1
        for run in np.split(environment_tuple, bounds):
            builder.replicate(composed[int(run[0])][0], len(run))
    for source, _ in composed:
        for mesh in source.meshes:
            mesh_index(builder, mesh)
        for appearance in source.appearances:
            appearance_index(builder, appearance, "variants")
    if config.ground_height is not None:
        builder.add_ground_plane(config.ground_height)
    return builder


def _apply_assignment(scene: VariantScene) -> None:
    """Give the world of each environment the numbers of its first variants."""
    if scene.tables.is_empty:
        return
    device = scene.model.device

    def to_device(values: np.ndarray) -> Any:
        return wp.array(values.astype(np.int32), dtype=wp.int32, device=device)

    scene.tables.apply(
        to_device(np.arange(scene.environment_count)),
        wp.zeros(0, dtype=wp.bool, device=device),
        to_device(scene.environment_world),
        to_device(scene.environment_tuple),
        {name: to_device(entity.assignment) for name, entity in scene.entities.items()},
    )
