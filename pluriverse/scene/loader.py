"""Loading a scene: from a file to a model that can be stepped.

The order of the stages is part of the format: builder defaults, assets, bodies with their shapes, joints,
articulations, initial positions, post-build operations, then (ours) recorded control, joints that close loops
and constraints; then the world is replicated and the ground added.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.precompilation import begin_precompiling
from pluriverse.scene.assembly import Assembly
from pluriverse.scene.assets import import_asset, register_mujoco_attributes
from pluriverse.scene.bodies import add_body
from pluriverse.scene.bundled import find_scene_file
from pluriverse.scene.capacity import check_capacity
from pluriverse.scene.constraints import add_constraint
from pluriverse.scene.control_sequence import ControlSequence, Recording, find_recording
from pluriverse.scene.document import SceneDocument, read_scene_document
from pluriverse.scene.errors import SapSceneLoaderError, SapUnsupportedSceneFeature
from pluriverse.scene.joints import (
    add_articulation,
    add_joint,
    add_loop_joint,
    articulate_remaining_joints,
    fix_unjointed_bodies,
    set_initial_joint_q,
)
from pluriverse.scene.layout import SPACING_DEFAULT, allocate_worlds
from pluriverse.scene.loaded_scene import LoadedScene, SceneSettings
from pluriverse.scene.local_files import LocalFiles
from pluriverse.scene.observers import add_scene_camera, add_scene_sensor
from pluriverse.scene.schema import BuilderSection, Scene, SimulationSection
from pluriverse.scene.shapes import shape_configuration
from pluriverse.scene.validation import check_version, validate_scene
from pluriverse.scene.values import IDENTITY_ROTATION, Vector3
from pluriverse.scene.variants import build_variant_scene
from pluriverse.scene.world_kinds import KindPlan, plan_kinds
from pluriverse.types import Entity

# A longer step [s] is more likely a number of milliseconds.
DT_USUAL_MAX = 0.2


@dataclass
class _Kind:
    """One kind of world of a scene, assembled."""

    plan: KindPlan
    assembly: Assembly
    recording: Recording | None


@dataclass
class ReadScene:
    """A scene whose kinds of world are assembled, one world of each."""

    document: SceneDocument
    scene: Scene
    kinds: list[_Kind]
    counts: list[int]
    settings: SceneSettings
    features: list[str]
    files: LocalFiles
    variants: dict[str, dict[str, _Kind]]
    """Variants of each entity of the block `variants`, assembled."""

    def build(
        self,
        device: Any,
        *,
        counts: Sequence[int] | None = None,
        spacing: Vector3 | None = None,
        worlds: range | None = None,
    ) -> LoadedScene:
        """Return the scene with all its worlds, or another number of each kind, or some of its worlds.

        A part of the worlds is identical to these worlds in the whole: they have the same positions, and
        `LoadedScene.randomizer` draws the same values for them.

        Args:
            device: Device of the model.
            counts: Number of worlds of each kind, instead of the scene's own.
            spacing: Distance [m] between worlds per axis, instead of the scene's own.
            worlds: The worlds to build, of all that the counts describe; all if None.

        Raises:
            SapSceneLoaderError: What the scene describes is no valid model.
            ValueError: `worlds` are not worlds of the scene, or cannot be built apart.
        """
        counts = self.counts if counts is None else counts
        total = sum(counts)
        spacing = spacing if spacing is not None else self.scene.replicate.spacing or SPACING_DEFAULT
        offsets = _world_offsets(total, spacing)
        gravities = [_gravities(kind, count) for kind, count in zip(self.kinds, counts, strict=True)]
        settings, first_world = self.settings, 0
        if worlds is not None:
            _check_part(worlds, total)
            spans = _spans(counts, worlds)
            first_world = worlds.start
            counts = [end - start for start, end in spans]
            offsets = offsets[worlds.start : worlds.stop]
            gravities = [
                rows if rows is None else rows[start:end]
                for rows, (start, end) in zip(gravities, spans, strict=True)
            ]
            if isinstance(settings.max_rigid_contact, tuple):
                capacity = settings.max_rigid_contact[worlds.start : worlds.stop]
                settings = replace(settings, max_rigid_contact=capacity)
        variant_scene = None
        if self.scene.variants is not None:
            variant_scene = self._build_variants(total, device, worlds)
            builder, model = variant_scene.builder, variant_scene.model
        else:
            builder = _compose(self, counts, offsets, gravities)
            try:
                model = builder.finalize(device=device)
            except ValueError as error:
                raise self._model_error(str(error)) from error
            if model.dynamics_obstacle is not None:  # a scene is there to be simulated
                raise self._model_error(model.dynamics_obstacle)
        if self.scene.randomize is not None:
            target = model if variant_scene is None else variant_scene
            self.scene.randomize.check(self.document, target, is_part=worlds is not None)
        control = model.control()
        sequences = list(self._sequences(model, counts, offsets))
        for sequence in sequences:
            sequence.apply(control, 0, settings.dt)
        return LoadedScene(
            name=self.scene.name or self.document.path.stem,
            source_path=self.document.path,
            builder=builder,
            model=model,
            state=model.state(),
            control=control,
            settings=settings,
            unsupported_features=tuple(self.features),
            kind_names=tuple(kind.plan.name for kind in self.kinds),
            kind_of_world=(0,) * model.world_count
            if variant_scene is not None
            else tuple(kind for kind, count in enumerate(counts) for _ in range(count)),
            control_sequences=tuple(sequences),
            randomize=self.scene.randomize,
            variant_scene=variant_scene,
            first_world=first_world,
            is_part=worlds is not None,
        )

    def _build_variants(self, count: int, device: Any, worlds: range | None) -> Any:
        """Return the worlds of a scene with variants."""
        section, content = self.scene.variants, self.kinds[0].assembly.builder
        assert section is not None
        configs = {}
        for name, entity in section.entities.items():
            builders = {variant: kind.assembly.builder for variant, kind in self.variants[name].items()}
            configs[name] = entity.config(builders)
        try:
            return build_variant_scene(
                section,
                content,
                configs,
                world_count=count,
                worlds=worlds,
                gravity=content.gravity,
                add_shared=lambda builder: _add_ground(self, builder),
                device=device,
            )
        except ValueError as error:
            raise self.document.error(("variants",), str(error)) from error

    def _sequences(self, model: Any, counts: Sequence[int], offsets: np.ndarray) -> Iterator[ControlSequence]:
        """Yield the recorded control of each kind that has one."""
        first = 0
        for kind, count in zip(self.kinds, counts, strict=True):
            if kind.recording is not None and count:
                yield ControlSequence(kind.recording, model, first, offsets[first : first + count])
            first += count

    def _model_error(self, message: str) -> SapSceneLoaderError:
        """Return the error of the finished model, at the entry that caused it."""
        for kind in self.kinds:
            field = kind.assembly.field_of(message)
            if field is not None:
                return kind.plan.document.error(field, message)
        return self.document.error((), message)


def read_scene(
    path: str | Path,
    *,
    num_worlds: int | None = None,
    strict: bool = True,
    asset_roots: Sequence[str | Path] = (),
) -> ReadScene:
    """Return a scene with one world of each kind assembled. The arguments are those of `load_scene`.

    Raises:
        SapSceneLoaderError: The scene is wrong.
        SapUnsupportedSceneFeature: `strict` is set and the scene asks for something that is not supported.
    """
    if num_worlds is not None and num_worlds < 1:
        raise ValueError(f"num_worlds is {num_worlds}; a scene needs at least one world")
    document = read_scene_document(find_scene_file(path))
    features: list[str] = []
    scene = validate_scene(document, strict=strict, features=features)
    files = LocalFiles(document.path.parent, asset_roots)
    plans = list(plan_kinds(document, scene, files, strict=strict, features=features))
    requested = num_worlds or scene.simulation.num_worlds or scene.replicate.num_worlds
    counts = [plan.count for plan in plans]
    if requested is not None:
        try:
            counts = allocate_worlds(requested, counts)
        except ValueError as error:
            raise document.error(("worlds",), str(error)) from error
    kinds = [_assemble(plan, features) for plan in plans]
    variants = {
        entity: {
            variant: _assemble(
                replace(
                    plans[0],
                    name=variant,
                    field=("variants", "entities", entity, "variants", variant),
                    content=content,
                    gravity=None,
                    control=None,
                ),
                features,
            )
            for variant, content in section.variants.items()
        }
        for entity, section in (scene.variants.entities if scene.variants else {}).items()
    }
    try:
        check_capacity(
            [kind.assembly.builder for kind in kinds], counts, [plan.max_rigid_contact for plan in plans]
        )
    except ValueError as error:
        raise document.error((), str(error)) from error
    _warn_of_slips(scene)
    settings = _settings(document, scene.simulation, plans, counts)
    if features and strict:
        raise SapUnsupportedSceneFeature(
            "\n".join(f"not supported: {feature}" for feature in features)
            + "\nload the scene with strict=False (--no-strict) to go on without",
            tuple(features),
        )
    return ReadScene(document, scene, kinds, counts, settings, features, files, variants)


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
        path: The file, or the name of a bundled scene.
        device: Device of the model; Warp's default if not given.
        num_worlds: Number of worlds, instead of the scene's own. Kinds of world share it in proportion to
            their counts.
        spacing: Distance [m] between worlds per axis, instead of the scene's own.
        strict: Whether keys and features that are not supported are errors. Otherwise they are left out and
            listed in `LoadedScene.unsupported_features`.
        asset_roots: Folders that the scene may read files from, besides its own and the current directory.

    Raises:
        SapSceneLoaderError: The scene is wrong; the message names file, line, field, value and remedy.
        ValueError: There is no such device.
        SapUnsupportedSceneFeature: `strict` is set and the scene asks for something that is not supported.
    """
    import warp as wp

    target = wp.get_device(device)
    begin_precompiling(target)
    read = read_scene(path, num_worlds=num_worlds, strict=strict, asset_roots=asset_roots)
    return read.build(target, spacing=spacing)


def load_scene_config(path: str | Path) -> dict[str, Any]:
    """Return the contents of a scene file, of which only the version is checked.

    Raises:
        SapSceneLoaderError: The file cannot be read, or is of another version.
    """
    document = read_scene_document(find_scene_file(path))
    check_version(document)
    return document.data


def _assemble(plan: KindPlan, features: list[str]) -> _Kind:
    """Return one world of a kind. The errors of all entries of a section are raised together."""
    from pluriverse.model_builder import ModelBuilder

    builder = ModelBuilder()
    assembly = Assembly(builder, plan.document, plan.field, features, plan.files)
    _apply_defaults(assembly, plan.builder_section)
    content = plan.content
    for index, asset in enumerate(content.assets):
        with assembly.entry("assets", index):
            import_asset(assembly, asset, index)
    for index, body in enumerate(content.bodies):
        with assembly.entry("bodies", index):
            add_body(assembly, body)
    # Later sections refer to these, and would repeat their errors in other words.
    assembly.raise_errors()
    for index, joint in enumerate(content.joints):
        with assembly.entry("joints", index):
            add_joint(assembly, joint)
    assembly.raise_errors()
    for index, articulation in enumerate(content.articulations):
        with assembly.entry("articulations", index):
            add_articulation(assembly, articulation, index)
    with assembly.at("joints"):
        articulate_remaining_joints(assembly)
        fix_unjointed_bodies(assembly)
    for index, entry in enumerate(content.initial_joint_q):
        with assembly.entry("initial_joint_q", index):
            set_initial_joint_q(assembly, entry)
    for index, operation in enumerate(content.post_build):
        with assembly.entry("post_build", index):
            operation.apply(assembly)
    assembly.raise_errors()
    recording = _start_recorded_control(plan, builder)
    for index, joint in enumerate(content.joints):
        with assembly.entry("joints", index):
            add_loop_joint(assembly, joint)
    for index, constraint in enumerate(content.constraints):
        with assembly.entry("constraints", index):
            add_constraint(assembly, constraint)
    for index, sensor in enumerate(content.sensors):
        with assembly.entry("sensors", index):
            add_scene_sensor(assembly, sensor)
    for index, camera in enumerate(content.cameras):
        with assembly.entry("cameras", index):
            add_scene_camera(assembly, camera)
    assembly.raise_errors()
    if plan.gravity is not None:
        builder.gravity = plan.gravity
    return _Kind(plan, assembly, recording)


def _start_recorded_control(plan: KindPlan, builder: Any) -> Recording | None:
    """Start a world where its recorded control starts, and return the recording."""
    if plan.control is None:
        return None
    document, files, section = plan.control
    recording = find_recording(document, section, files)
    for name, rows, unit in (
        ("joint_q", recording.joint_q, "coordinates"),
        ("joint_qd", recording.joint_qd, "degrees of freedom"),
        ("joint_target_pos", recording.joint_target_pos[0], "degrees of freedom"),
    ):
        if rows is None:
            continue
        array = getattr(builder, name)
        if len(rows) != len(array):
            raise document.error(
                ("control", "source"),
                f"'{section.source}': a row of {name} has {len(rows)} numbers, but a world of this scene has "
                f"{len(array)} {unit}; record it again, or correct the rows",
            )
        array[:] = rows
    return recording


def _apply_defaults(assembly: Assembly, section: BuilderSection) -> None:
    """Apply the builder section of a scene."""
    builder = assembly.builder
    for name in ("rigid_gap", "gravity", "default_body_armature"):
        value = getattr(section, name)
        if value is not None:
            setattr(builder, name, value)
    if section.register_mujoco_custom_attributes:
        register_mujoco_attributes(builder)
    builder.default_shape_cfg = shape_configuration(builder.default_shape_cfg, section.defaults.shape.given())
    builder.default_joint_cfg = builder.default_joint_cfg.merged(**section.defaults.joint.given())


def _world_offsets(count: int, spacing: Vector3) -> np.ndarray:
    """Return the position of each world [m], shape [world, 3]."""
    from pluriverse.builder.worlds import world_offsets

    distances = np.asarray(spacing, dtype=np.float64)
    if distances.shape != (3,) or not (np.abs(distances) * count <= np.finfo(np.float32).max).all():
        raise ValueError(
            f"load_scene: spacing is {spacing!r}, but it must be three numbers [m] that leave {count} worlds "
            "at places of single precision."
        )
    return world_offsets(count, distances)


def _check_part(worlds: range, total: int) -> None:
    if worlds.step != 1 or not 0 <= worlds.start < worlds.stop <= total:
        raise ValueError(
            f"worlds are {worlds}, but a part of this scene is a range of neighbours among its {total} "
            "worlds."
        )


def _spans(counts: Sequence[int], worlds: range) -> list[tuple[int, int]]:
    """Return which worlds of each kind, counted within the kind, are among some worlds of the scene."""
    ends = np.cumsum(counts)
    begins = ends - np.asarray(counts)
    first = np.clip(worlds.start - begins, 0, counts)
    last = np.clip(worlds.stop - begins, 0, counts)
    return list(zip(first.tolist(), last.tolist(), strict=True))


def _gravities(kind: _Kind, count: int) -> np.ndarray | None:
    """Return the gravity of each world of a kind [m/s²], shape [world, 3]; None if it is the builder's."""
    if not kind.plan.gravities:
        return None
    return np.resize(np.array(kind.plan.gravities, dtype=np.float64), (count, 3))


def _compose(
    read: ReadScene, counts: Sequence[int], offsets: np.ndarray, gravities: Sequence[np.ndarray | None]
) -> Any:
    """Return a builder that holds all worlds and the ground."""
    from pluriverse.model_builder import ModelBuilder

    scene = read.scene
    composed = ModelBuilder()
    _apply_defaults(_combined_assembly(read, composed), scene.builder)
    first = 0
    for kind, count, rows in zip(read.kinds, counts, gravities, strict=True):
        if not count:
            continue
        xforms = [(*offset, *IDENTITY_ROTATION) for offset in offsets[first : first + count].tolist()]
        try:
            composed.replicate(kind.assembly.builder, count, xforms=xforms)
        except ValueError as error:
            raise kind.plan.document.error(kind.plan.field, str(error)) from error
        if rows is not None:
            composed.tables[Entity.WORLD].view("gravity")[first : first + count] = rows
        first += count
    _add_ground(read, composed)
    return composed


def _combined_assembly(read: ReadScene, builder: Any) -> Assembly:
    """Return the assembly of the shared part of a scene."""
    return Assembly(builder, read.document, (), [], read.files)


def _add_ground(read: ReadScene, builder: Any) -> None:
    """Add the ground of a scene, with its defaults for shapes."""
    ground, assembly = read.scene.ground, _combined_assembly(read, builder)
    if not ground.enabled:
        return
    _apply_defaults(assembly, read.scene.builder)
    with assembly.at("ground"):
        override = ground.cfg.given() if ground.cfg is not None else {}
        cfg = shape_configuration(builder.default_shape_cfg, override)
        if ground.terrain is None:
            builder.add_ground_plane(height=ground.height, cfg=cfg, label=ground.label)
            return
        with assembly.at("terrain"):
            heightfield = ground.terrain.heightfield(assembly)
        pose = (0.0, 0.0, ground.height, *IDENTITY_ROTATION)
        builder.add_shape_heightfield(xform=pose, heightfield=heightfield, cfg=cfg, label=ground.label)


def _warn_of_slips(scene: Scene) -> None:
    """Warn of values that are allowed but probably unintended."""
    dt = scene.simulation.dt
    if dt > DT_USUAL_MAX:
        warnings.warn(
            f"simulation.dt is {dt:g} s, where steps are mostly 0.001 to 0.02 s; milliseconds are written as "
            f"{1e-3 * dt:g}",
            stacklevel=3,
        )
    if scene.builder.gravity is not None and scene.builder.gravity[2] > 0.0:
        warnings.warn(
            f"builder.gravity is {scene.builder.gravity[2]:g} m/s² along z, which is upwards; that of the "
            "Earth is -9.81",
            stacklevel=3,
        )


def _settings(
    document: SceneDocument, simulation: SimulationSection, kinds: list[KindPlan], counts: list[int]
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
