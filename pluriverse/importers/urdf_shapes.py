"""URDF collision and visual geometry as shapes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pluriverse.geometry import SDF_MAX_RESOLUTION, Appearance, Mesh, Texture
from pluriverse.geometry.mesh_file import NoTrianglesError
from pluriverse.geometry.signed_distance import RESOLUTION_LIMIT
from pluriverse.importers.asset_files import AssetFiles
from pluriverse.importers.description import ShapeDescription
from pluriverse.importers.errors import AssetError, AssetFileError
from pluriverse.importers.fetched import check_fetched
from pluriverse.importers.frames import make_frame
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.urdf_contact import contact_material
from pluriverse.importers.urdf_custom import UrdfCustom
from pluriverse.importers.urdf_document import UrdfDocument
from pluriverse.importers.urdf_elements import Link, Material, Shape
from pluriverse.types import GeoType


class UrdfShapes:
    """Makes shapes from the geometry of a document, reading each mesh file once."""

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
        self.materials = document.robot.materials
        self.textures: dict[str, Texture | None] = {}
        self.meshes: dict[tuple[Path, tuple[float, ...]], Mesh] = {}

    def colliders(self, link: Link, label: str) -> list[ShapeDescription]:
        """Return the shapes of the `<collision>` elements of a link."""
        shapes = []
        material = contact_material(link.element)
        for number, collision in enumerate(link.collisions):
            name = collision.name or f"collision_{number}"
            shape = self._shape(collision, link.name, f"{label}/{name}", must_exist=True)
            if shape is None:
                continue
            shape.cfg |= material
            self.custom.set_shape(shape, link.name, "collision", number)
            resolution = self._sdf_resolution(link.name, collision)
            if resolution is not None and shape.type is GeoType.MESH:
                # The mesh collides with its own triangles.
                shape.collides = True
                shape.cfg["sdf_max_resolution"] = resolution
                shapes.append(shape)
                continue
            shapes.append(as_collider(shape))
        return shapes

    def _sdf_resolution(self, link: str, collision: Shape) -> int | None:
        """Return the resolution of the `<sdf>` of a `<collision>`, None without one."""
        sdf = collision.element.find("sdf")
        if sdf is None:
            return None
        resolution = int(sdf.get("resolution", SDF_MAX_RESOLUTION))
        if resolution > RESOLUTION_LIMIT:
            self.report.add(
                f"sdf resolution {resolution}", f"link '{link}'", f"the grid has {RESOLUTION_LIMIT} cells"
            )
        return min(resolution, RESOLUTION_LIMIT)

    def visuals(self, link: Link, label: str) -> list[ShapeDescription]:
        """Return the shapes of the `<visual>` elements of a link whose files exist."""
        shapes = []
        for number, visual in enumerate(link.visuals):
            name = visual.name or f"visual_{number}"
            shape = self._shape(visual, link.name, f"{label}/{name}", must_exist=False)
            if shape is not None:
                shape.collides = False
                self.custom.set_shape(shape, link.name, "visual", number)
                self._paint(shape, visual.material)
                shapes.append(shape)
        return shapes

    def _shape(self, authored: Shape, link: str, label: str, *, must_exist: bool) -> ShapeDescription | None:
        geometry = authored.geometry
        shape = ShapeDescription(label, GeoType.NONE, authored.origin.scaled(self.scale))

        def numbers(attribute: str) -> list[float]:
            return [float(part) for part in geometry.get(attribute).split()]

        if geometry.tag in ("cylinder", "capsule"):
            # Capsules are no part of URDF, but in use; the length is that of the cylinder.
            shape.type = GeoType.CYLINDER if geometry.tag == "cylinder" else GeoType.CAPSULE
            (radius,), (length,) = numbers("radius"), numbers("length")
            shape.scale = (self.scale * radius, 0.5 * self.scale * length, 0.0)
        elif geometry.tag == "plane":  # of Bullet: without end, through the origin
            shape.type, shape.scale = GeoType.PLANE, (0.0, 0.0, 0.0)
            shape.frame = shape.frame @ make_frame(quat=_turn_to(numbers("normal")))
        elif geometry.tag == "box":
            x, y, z = (0.5 * self.scale * size for size in numbers("size"))
            shape.type, shape.scale = GeoType.BOX, (x, y, z)
        elif geometry.tag == "sphere":
            shape.type, shape.scale = GeoType.SPHERE, (self.scale * numbers("radius")[0], 0.0, 0.0)
        else:
            factors = (1.0,) if geometry.get("scale") is None else numbers("scale")
            mesh = self._mesh(geometry.get("filename"), factors, link, must_exist=must_exist)
            if mesh is None:
                return None
            shape.type, shape.mesh, shape.color = GeoType.MESH, mesh, mesh.color
        return shape

    def _mesh(self, filename: str, scale: Sequence[float], link: str, *, must_exist: bool) -> Mesh | None:
        path, tried = self.files.find(filename)
        kind = "collision" if must_exist else "visual"
        if path is None:
            found = self.files.search(filename)
            if len(found) == 1:
                path = found[0]
                self.report.add(
                    "mesh elsewhere than written",
                    f"link '{link}', {filename}",
                    f"it is read from {path.parent}",
                    ImportSeverity.REPAIR,
                )
        if path is None:
            searched = (
                f"not at {', '.join(map(str, tried[:6]))}" if tried else "such references are not fetched"
            )
            if found:
                searched += f"; it could be any of {', '.join(map(str, found[:4]))}"
            if must_exist:
                raise AssetFileError(
                    f"the collision mesh '{filename}' was not found ({searched})",
                    file=self.file,
                    element=f"link '{link}'",
                    value=filename,
                    remedy="Add the file, correct its path, or name the folder of its package with "
                    "package_dirs=.",
                )
            self.report.add("missing visual mesh", filename, "it is not drawn", ImportSeverity.WARNING)
            return None
        authored = np.broadcast_to(scale, (3,))
        factors = [float(factor) for factor in self.scale * self.mesh_scale * authored]
        key = (path, tuple(factors))
        if key not in self.meshes:
            if must_exist:
                check_fetched(path, file=self.file, element=f"link '{link}'")
            try:
                self.meshes[key] = Mesh.load(path, factors)
            except NoTrianglesError:
                self.report.add(
                    f"{kind} mesh without triangles",
                    f"link '{link}', {filename}",
                    "there is nothing of it; it is left out",
                    ImportSeverity.REPAIR if must_exist else ImportSeverity.WARNING,
                )
                return None
            except ValueError as error:
                if must_exist:
                    raise AssetError(
                        str(error).rstrip("."),
                        file=self.file,
                        element=f"link '{link}'",
                        value=filename,
                        remedy=f"Repair or replace the {kind} mesh.",
                    ) from error
                self.report.add(
                    "broken visual mesh", str(error).rstrip("."), "it is not drawn", ImportSeverity.WARNING
                )
                return None
        return self.meshes[key]

    def _paint(self, shape: ShapeDescription, material: Material | None) -> None:
        """Give a shape the colour, opacity and texture of a `<material>`, which may refer to one by name."""
        if material is None:
            return
        if material.is_reference:
            material = self.materials.get(material.name, material)
        alpha = 1.0
        if material.rgba is not None:
            red, green, blue, alpha = material.rgba
            shape.color = (red, green, blue)
        texture = self._texture(material.texture) if material.texture else None
        alpha = min(max(alpha, 0.0), 1.0) if np.isfinite(alpha) else 1.0
        if alpha == 0.0:
            shape.is_visible = False
        if texture is not None and material.rgba is None:
            shape.color = (1.0, 1.0, 1.0)
        if texture is not None or alpha < 1.0:
            shape.appearance = Appearance(texture=texture, alpha=alpha)

    def _texture(self, name: str) -> Texture | None:
        if name not in self.textures:
            path, _ = self.files.find(name)
            self.textures[name] = None
            if path is None:
                self.report.add("missing texture", name, "it is not drawn", ImportSeverity.WARNING)
            else:
                try:
                    self.textures[name] = Texture.load(path)
                except (ValueError, ImportError) as error:
                    self.report.add("texture", name, f"it is not drawn: {error}", ImportSeverity.WARNING)
        return self.textures[name]


def _turn_to(normal: list[float]) -> np.ndarray:
    """Return the quaternion (xyzw) that turns z to a direction, about an axis across both."""
    x, y, z = np.array(normal) / np.linalg.norm(normal)
    # Half of the way between the two; opposite to z the axis may be any.
    if z < -1.0 + 1e-12:
        return np.array([1.0, 0.0, 0.0, 0.0])
    return np.array([-y, x, 0.0, 1.0 + z])


def as_collider(shape: ShapeDescription) -> ShapeDescription:
    """Return the shape as one that collides: meshes by their convex hull."""
    shape.collides = True
    if shape.type is GeoType.MESH:
        shape.type = GeoType.CONVEX_MESH
    return shape
