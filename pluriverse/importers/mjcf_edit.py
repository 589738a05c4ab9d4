"""Edits of an MJCF document before it is compiled: removal of elements by options or for missing files."""

from pathlib import Path
from typing import Any

from pluriverse.importers.mjcf_observers import take_sensor
from pluriverse.importers.mjcf_source import class_names, matches, read_class_parents
from pluriverse.importers.options import MjcfSettings
from pluriverse.importers.report import ImportReport, ImportSeverity


def edit_document(spec: Any, options: MjcfSettings, report: ImportReport) -> None:
    """Remove elements from a document (`mujoco.MjSpec`) and report the consequences."""
    import mujoco

    for sensor in list(spec.sensors):
        options["custom"].sensors.append(take_sensor(sensor))
        spec.delete(sensor)  # so that one that refers to nothing does no harm
    if options["ignore_inertial_definitions"]:
        spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    if options["ignore_names"]:
        _remove_names(spec, options, report)
    if options["ignore_classes"]:
        parents = read_class_parents(spec)
        for geom in list(spec.geoms):
            if any(matches(options["ignore_classes"], name) for name in class_names(geom, parents)):
                spec.delete(geom)
    if options["parse_meshes"]:
        _remove_missing_visuals(spec, options, report)
    else:
        _remove_meshes(spec, options, report)


def _remove_names(spec: Any, options: MjcfSettings, report: ImportReport) -> None:
    def ignored() -> list[Any]:
        return [b for b in spec.bodies if b.name != "world" and matches(options["ignore_names"], b.name)]

    # Before any body is removed: not every version of MuJoCo lists keyframes afterwards, or trims them
    # correctly.
    if any(body.find_all("joint") for body in ignored()):
        for number, key in enumerate(list(spec.keys)):
            report.add(
                "keyframe",
                key.name or f"keyframe {number}",
                "it cannot be used, since its numbers count joints that ignore_names leaves out",
            )
            spec.delete(key)
    # Removing a body removes its descendants, so the list must be rebuilt after each removal.
    while bodies := ignored():
        spec.delete(bodies[0])
    for elements in (list(spec.geoms), list(spec.sites)):
        for element in elements:
            if element.name and matches(options["ignore_names"], element.name):
                spec.delete(element)


def _remove_meshes(spec: Any, options: MjcfSettings, report: ImportReport) -> None:
    for geom in list(spec.geoms):
        if geom.meshname:  # mesh geoms, and primitives fitted to a mesh
            if _gives_mass(geom, options):
                report.add(
                    "mesh that gives mass", geom.parent.name, "its mass is missing with parse_meshes=False"
                )
            spec.delete(geom)
    for mesh in list(spec.meshes):
        spec.delete(mesh)


def _remove_missing_visuals(spec: Any, options: MjcfSettings, report: ImportReport) -> None:
    """Remove visual geoms without mass whose mesh file is missing; for other geoms that stays an error."""
    folder = Path(spec.modelfiledir) / spec.meshdir
    for mesh in list(spec.meshes):
        if not mesh.file or (folder / mesh.file).is_file() or mesh.file in spec.assets:
            continue
        name = mesh.name or Path(mesh.file).stem
        users = [geom for geom in spec.geoms if geom.meshname == name]
        if all(not (g.contype or g.conaffinity or _gives_mass(g, options)) for g in users):
            report.add("missing visual mesh", mesh.file, "it is not drawn", ImportSeverity.WARNING)
            for geom in users:
                spec.delete(geom)
            spec.delete(mesh)


def _gives_mass(geom: Any, options: MjcfSettings) -> bool:
    return not geom.parent.explicitinertial or options["ignore_inertial_definitions"]
