"""URDF collision and visual geometry as shapes."""

from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.geometry import (
    SDF_MAX_RESOLUTION,
    MassProperties,
    Mesh,
    box_mass_properties,
    combine_mass_properties,
    cylinder_mass_properties,
    sphere_mass_properties,
    transform_mass_properties,
)
from pluriverse.geometry.signed_distance import RESOLUTION_LIMIT
from pluriverse.importers.asset_files import AssetFiles
from pluriverse.importers.description import LinkDescription, ShapeDescription
from pluriverse.importers.errors import AssetError, AssetFileError
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.urdf_custom import UrdfCustom
from pluriverse.importers.urdf_document import UrdfDocument
from pluriverse.importers.urdf_links import frame_of
from pluriverse.types import GeoType


class UrdfShapes:
    """Makes shapes of the geometry of a document, reading each mesh file once."""

    def __init__(
        self,
        document: UrdfDocument,
        files: AssetFiles,
        *,
        scale: float,
        mesh_scale: np.ndarray,
        custom: UrdfCustom,
        report: ImportReport,
    ):
        self.custom = custom
        self.file = document.name
        self.files = files
        self.scale = scale
        self.mesh_scale = mesh_scale
        self.report = report
        self.materials = {
            material.name: material.color.rgba
            for material in document.robot.materials
            if material.color is not None
        }
        self.links = {link.get("name"): link for link in document.root.findall("link")}
        self.meshes: dict[tuple[Path, tuple[float, ...]], Mesh] = {}

    def colliders(self, link: Any, label: str) -> list[ShapeDescription]:
        """Return the shapes of the `<collision>` elements of a link."""
        shapes = []
        for number, collision in enumerate(link.collisions):
            name = collision.name or f"collision_{number}"
            shape = self._shape(collision, link.name, f"{label}/{name}", must_exist=True)
            assert shape is not None
            self.custom.set_shape(shape, link.name, "collision", number)
            resolution = self._sdf_resolution(link.name, number)
            if resolution is not None and shape.type is GeoType.MESH:
                # The mesh collides as it is.
                shape.collides = True
                shape.cfg["sdf_max_resolution"] = resolution
                shapes.append(shape)
                continue
            shapes.append(as_collider(shape))
        return shapes

    def _sdf_resolution(self, link: str, number: int) -> int | None:
        """Return the resolution that the `<sdf>` of a `<collision>` asks for, None without one."""
        sdf = self.links[link].findall("collision")[number].find("sdf")
        if sdf is None:
            return None
        resolution = int(sdf.get("resolution", SDF_MAX_RESOLUTION))
        if resolution > RESOLUTION_LIMIT:
            self.report.add(
                f"sdf resolution {resolution}", f"link '{link}'", f"the grid has {RESOLUTION_LIMIT} cells"
            )
        return min(resolution, RESOLUTION_LIMIT)

    def visuals(self, link: Any, label: str) -> list[ShapeDescription]:
        """Return the shapes of the `<visual>` elements of a link, as far as their files exist."""
        shapes = []
        for number, visual in enumerate(link.visuals):
            name = visual.name or f"visual_{number}"
            shape = self._shape(visual, link.name, f"{label}/{name}", must_exist=False)
            if shape is not None:
                shape.collides = False
                self.custom.set_shape(shape, link.name, "visual", number)
                shape.color = self._color(visual.material) or shape.color
                shapes.append(shape)
        return shapes

    def _shape(self, element: Any, link: str, label: str, *, must_exist: bool) -> ShapeDescription | None:
        geometry = element.geometry
        shape = ShapeDescription(label, GeoType.NONE, frame_of(element.origin, self.scale))
        if geometry.box is not None:
            x, y, z = (0.5 * self.scale * float(size) for size in geometry.box.size)
            shape.type, shape.scale = GeoType.BOX, (x, y, z)
        elif geometry.cylinder is not None:
            radius, length = geometry.cylinder.radius, geometry.cylinder.length
            shape.type, shape.scale = GeoType.CYLINDER, (self.scale * radius, 0.5 * self.scale * length, 0.0)
        elif geometry.sphere is not None:
            shape.type, shape.scale = GeoType.SPHERE, (self.scale * geometry.sphere.radius, 0.0, 0.0)
        else:
            mesh = self._mesh(geometry.mesh, link, must_exist=must_exist)
            if mesh is None:
                return None
            shape.type, shape.mesh, shape.color = GeoType.MESH, mesh, mesh.color
        return shape

    def _mesh(self, mesh: Any, link: str, *, must_exist: bool) -> Mesh | None:
        path, places = self.files.find(mesh.filename)
        kind = "collision" if must_exist else "visual"
        if path is None:
            looked = (
                f"not at {', '.join(map(str, places[:6]))}" if places else "such references are not fetched"
            )
            if must_exist:
                raise AssetFileError(
                    f"the collision mesh '{mesh.filename}' was not found ({looked})",
                    file=self.file,
                    element=f"link '{link}'",
                    value=mesh.filename,
                    remedy="Add the file, correct its path, or name the folder of its package with "
                    "package_dirs=.",
                )
            self.report.add("missing visual mesh", mesh.filename, "it is not drawn", ImportSeverity.WARNING)
            return None
        authored = np.broadcast_to(1.0 if mesh.scale is None else mesh.scale, (3,))
        factors = [float(factor) for factor in self.scale * self.mesh_scale * authored]
        key = (path, tuple(factors))
        if key not in self.meshes:
            try:
                self.meshes[key] = Mesh.load(path, factors)
            except ValueError as error:
                if must_exist:
                    raise AssetError(
                        str(error).rstrip("."),
                        file=self.file,
                        element=f"link '{link}'",
                        value=mesh.filename,
                        remedy=f"Repair or replace the {kind} mesh.",
                    ) from error
                self.report.add(
                    "broken visual mesh", mesh.filename, "it is not drawn", ImportSeverity.WARNING
                )
                return None
        return self.meshes[key]

    def _color(self, material: Any) -> tuple[float, float, float] | None:
        if material is None:
            return None
        rgba = material.color.rgba if material.color is not None else self.materials.get(material.name)
        return None if rgba is None else (float(rgba[0]), float(rgba[1]), float(rgba[2]))


def as_collider(shape: ShapeDescription) -> ShapeDescription:
    """Return the shape as one that collides: meshes by their convex hull."""
    shape.collides = True
    if shape.type is GeoType.MESH:
        shape.type = GeoType.CONVEX_MESH
    return shape


def mass_from_shapes(link: LinkDescription, density: float, mesh_maxhullvert: int) -> MassProperties:
    """Return the mass properties of the colliding shapes of a link, solid with `density` [kg/m³]."""
    parts = []
    for shape in link.shapes:
        if shape.collides:
            part = _solid(shape, density, mesh_maxhullvert)
            parts.append(transform_mass_properties(part, shape.frame.position, shape.frame.quat))
    return combine_mass_properties(parts)


def _solid(shape: ShapeDescription, density: float, mesh_maxhullvert: int) -> MassProperties:
    if shape.type is GeoType.BOX:
        return box_mass_properties(*shape.scale, density)
    if shape.type is GeoType.SPHERE:
        return sphere_mass_properties(shape.scale[0], density)
    if shape.type is GeoType.CYLINDER:
        return cylinder_mass_properties(shape.scale[0], shape.scale[1], density)
    assert shape.mesh is not None
    if shape.type is GeoType.MESH and shape.mesh.is_closed:
        return shape.mesh.mass_properties(density)
    return shape.mesh.convex_hull(mesh_maxhullvert).mass_properties(density)
