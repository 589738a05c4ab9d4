"""The kinds of world of a scene: what it lists in `worlds`, or the scene itself as the only one."""

from collections.abc import Iterator
from dataclasses import dataclass

from pluriverse.scene.document import FieldPath, SceneDocument, read_scene_document
from pluriverse.scene.errors import FieldError
from pluriverse.scene.local_files import LocalFiles
from pluriverse.scene.schema import BuilderSection, ControlSection, Scene, WorldContent
from pluriverse.scene.validation import validate_scene
from pluriverse.scene.values import Vector3


@dataclass(frozen=True)
class KindPlan:
    """One kind of world, before it is built."""

    name: str
    """Name under which tables list these worlds."""
    count: int
    """Number of worlds, if no total is given."""
    document: SceneDocument
    """The file that describes it."""
    field: FieldPath
    """Path of the field in that file."""
    files: LocalFiles
    """Finds the files that it names."""
    content: WorldContent
    """Contents of a world."""
    builder_section: BuilderSection
    """Settings of the builder."""
    gravity: Vector3 | None
    """Gravity of all its worlds [m/s²], instead of the builder's."""
    gravities: tuple[Vector3, ...]
    """Gravity of its worlds in turn [m/s²]; empty if they are all alike."""
    max_rigid_contact: int | None
    """Contact slots in a world."""
    control: tuple[SceneDocument, LocalFiles, ControlSection] | None
    """Its recorded control, and the scene that names it."""


def plan_kinds(
    document: SceneDocument, scene: Scene, files: LocalFiles, *, strict: bool, features: list[str]
) -> Iterator[KindPlan]:
    """Yield the kinds of world of a scene.

    Raises:
        SapSceneLoaderError: A scene that it refers to is wrong, or does not fit.
    """
    control = None if scene.control is None else (document, files, scene.control)
    if not scene.worlds:
        yield KindPlan(
            name=scene.name or document.path.stem,
            count=1,
            document=document,
            field=(),
            files=files,
            content=scene,
            builder_section=scene.builder,
            gravity=None,
            gravities=tuple(scene.replicate.gravities),
            max_rigid_contact=scene.simulation.max_rigid_contact,
            control=control,
        )
        return
    for index, entry in enumerate(scene.worlds):
        field: FieldPath = ("worlds", index)
        cap = entry.max_rigid_contact or scene.simulation.max_rigid_contact
        gravities = tuple(entry.gravities or scene.replicate.gravities)
        if entry.scene is None:
            yield KindPlan(
                name=entry.kind_name(index),
                count=entry.count,
                document=document,
                field=field,
                files=files,
                content=entry,
                builder_section=scene.builder,
                gravity=entry.gravity,
                gravities=gravities,
                max_rigid_contact=cap,
                control=control,
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
        inner_files = files.inside(inner_path.parent)
        yield KindPlan(
            name=entry.kind_name(index),
            count=entry.count,
            document=inner_document,
            field=(),
            files=inner_files,
            content=inner,
            builder_section=inner.builder,
            gravity=entry.gravity,
            gravities=gravities or tuple(inner.replicate.gravities),
            max_rigid_contact=entry.max_rigid_contact or inner.simulation.max_rigid_contact or cap,
            control=control if inner.control is None else (inner_document, inner_files, inner.control),
        )
