"""USD geometry as shapes: colliders, display geometry and sites."""

from typing import Any

import numpy as np

from pluriverse.geometry import Mesh
from pluriverse.importers.description import ShapeDescription
from pluriverse.importers.frames import Frame, make_frame, quat_from_axis_angle
from pluriverse.importers.options import UsdSettings
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.usd_appearance import UsdAppearances
from pluriverse.importers.usd_source import (
    UsdSource,
    applied_schemas,
    authored,
    inverse_matrix,
    split_matrix,
)
from pluriverse.types import GeoType

# Relative difference up to which scale factors count as equal: files give six digits.
SCALE_TOLERANCE = 1e-4
# Frames whose z axis is the x, y or z axis of the prim: the axis of round shapes is local z.
AXIS_TURNS = {
    "X": quat_from_axis_angle((0.0, 1.0, 0.0), 0.5 * np.pi),
    "Y": quat_from_axis_angle((1.0, 0.0, 0.0), -0.5 * np.pi),
    "Z": np.array([0.0, 0.0, 0.0, 1.0]),
}
ROUND = {
    "Capsule": GeoType.CAPSULE,
    "Capsule_1": GeoType.CAPSULE,
    "Cylinder": GeoType.CYLINDER,
    "Cylinder_1": GeoType.CYLINDER,
    "Cone": GeoType.CONE,
}
# The essential size of a prim: with 0 the prim only marks a place, or is a leftover of a converter.
EXTENTS = {"Sphere": "radius", "Capsule": "radius", "Cube": "size"}
GEOMETRY = ("Sphere", "Cube", "Plane", "Mesh", "Points", *ROUND)
"""Types of prims that become shapes."""
SHOWN_PURPOSES = ("default", "render")


class UsdShapes:
    """Makes shapes from the geometry of a stage, reading each mesh once."""

    def __init__(self, source: UsdSource, options: UsdSettings, report: ImportReport):
        self.source = source
        self.options = options
        self.report = report
        self._meshes: dict[tuple[str, bytes], Mesh] = {}
        self._appearances = UsdAppearances(report)

    def collider(self, prim: Any, approximation: str | None, body: Frame) -> list[ShapeDescription]:
        """Return the colliding shapes of a prim, for a body at the pose `body` on the stage."""
        if self._has_no_extent(prim):
            self.report.add(
                "collider without extent",
                f"prim '{prim.GetPath()}'",
                "it touches nothing and is left out",
                ImportSeverity.REPAIR,
            )
            return []
        shapes = self._shapes(prim, body)
        for number, shape in enumerate(shapes):
            if shape.type is GeoType.MESH:
                shapes[number] = self._approximate(prim, shape, approximation or "none")
            elif shape.type is GeoType.PLANE:
                shape.scale = (0.0, 0.0, 0.0)  # solid everywhere below, whatever part of it is drawn
        for shape in shapes:
            shape.is_visible = self._is_shown(prim)
        return shapes

    def visual(self, prim: Any, body: Frame) -> list[ShapeDescription]:
        """Return the shapes of a prim that is only displayed, none if it is hidden."""
        if not self._is_shown(prim):
            return []
        try:
            shapes = self._shapes(prim, body)
        except ValueError as error:
            self.report.add(
                "broken display geometry",
                str(prim.GetPath()),
                f"it is not drawn: {error}",
                ImportSeverity.WARNING,
            )
            return []
        for shape in shapes:
            shape.collides = False
        return shapes

    def site(self, prim: Any, body: Frame) -> list[ShapeDescription]:
        """Return the shapes of a prim that only marks a frame."""
        shapes = self._shapes(prim, body)
        for shape in shapes:
            shape.collides, shape.is_visible, shape.is_site = False, False, True
        return shapes

    def _shapes(self, prim: Any, body: Frame) -> list[ShapeDescription]:
        kind = str(prim.GetTypeName())
        matrix = inverse_matrix(body) @ self.source.world_matrix(prim)
        frame, stretch = split_matrix(matrix)
        color, appearance = self._appearances.of_prim(prim)
        shape = ShapeDescription(str(prim.GetPath()), GeoType.NONE, frame, color=color, appearance=appearance)
        if kind == "Mesh":
            shape.type, shape.mesh = GeoType.MESH, self._mesh(prim, stretch)
            if shape.mesh.skin is not None and shape.mesh.skin.has_colors:
                shape.color = shape.mesh.color  # the mesh wears what its faces are bound to
            return [shape]
        scale = np.abs(np.diag(stretch))
        is_sheared = np.abs(stretch - np.diag(np.diag(stretch))).max() > SCALE_TOLERANCE * scale.max()
        if is_sheared and kind == "Cube":
            shape.type, shape.mesh = GeoType.CONVEX_MESH, self._sheared_cube(prim, stretch)
            return [shape]
        if is_sheared:
            self.report.add("sheared shape", shape.label, "it has the scale, not the shear")
        if kind == "Points":
            return self._spheres(prim, shape, np.diag(stretch))
        if kind == "Sphere":
            self._warn_uneven(shape.label, scale)
            radius = self._size(prim, "radius")
            shape.type, shape.scale = GeoType.SPHERE, (radius * float(scale.max()), 0.0, 0.0)
        elif kind == "Cube":
            half = 0.5 * self._size(prim, "size") * scale
            shape.type, shape.scale = GeoType.BOX, (float(half[0]), float(half[1]), float(half[2]))
        elif kind == "Plane":
            shape.type = GeoType.PLANE
            axis = self._axis(prim)
            shape.frame = frame @ make_frame(quat=AXIS_TURNS[axis])
            across = {"X": (2, 1), "Y": (0, 2), "Z": (0, 1)}[axis]  # axes of width and length
            shape.scale = (
                self._size(prim, "width") * float(scale[across[0]]),
                self._size(prim, "length") * float(scale[across[1]]),
                0.0,
            )
        else:
            self._set_round(prim, shape, scale)
        return [shape]

    def _sheared_cube(self, prim: Any, stretch: np.ndarray) -> Mesh:
        """Return what a cube becomes under scale and shear."""
        corners = 0.5 * self._size(prim, "size") * (2.0 * np.array(list(np.ndindex(2, 2, 2))) - 1.0)
        # Four corners of each side, counter-clockwise from outside: corner 4 x + 2 y + z.
        sides = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)])
        if np.linalg.det(stretch) < 0.0:
            sides = sides[:, ::-1]
        triangles = np.concatenate([sides[:, :3], sides[:, [0, 2, 3]]])
        return Mesh(corners @ stretch.T, triangles, name=f"cube '{prim.GetPath()}'")

    def _set_round(self, prim: Any, shape: ShapeDescription, scale: np.ndarray) -> None:
        """Make `shape` the capsule, cylinder or cone of a prim."""
        kind = str(prim.GetTypeName())
        axis = "XYZ".index(self._axis(prim))
        across = np.delete(scale, axis)
        self._warn_uneven(shape.label, scale if kind.startswith("Capsule") else across)
        if kind.endswith("_1"):
            radius, top = self._size(prim, "radiusBottom"), self._size(prim, "radiusTop")
            if abs(radius - top) > SCALE_TOLERANCE * max(radius, top):
                raise self.source.error(
                    prim,
                    f"radiusBottom is {radius} and radiusTop {top}, but {kind} prims that taper are not "
                    "supported",
                    value=(radius, top),
                    remedy="Make the radii equal, or use a Mesh or a Cone.",
                )
        else:
            radius = self._size(prim, "radius")
        length = 0.5 * self._size(prim, "height", allow_zero=kind.startswith("Capsule")) * float(scale[axis])
        shape.type, shape.scale = ROUND[kind], (radius * float(across.max()), length, 0.0)
        shape.frame = shape.frame @ make_frame(quat=AXIS_TURNS["XYZ"[axis]])
        if shape.type is GeoType.CAPSULE and length == 0.0:
            shape.type, shape.scale = GeoType.SPHERE, (shape.scale[0], 0.0, 0.0)

    def _spheres(self, prim: Any, shape: ShapeDescription, scale: np.ndarray) -> list[ShapeDescription]:
        self._warn_uneven(shape.label, np.abs(scale))
        points = np.array(prim.GetAttribute("points").Get() or [], dtype=np.float64).reshape(-1, 3)
        widths = np.array(prim.GetAttribute("widths").Get() or [], dtype=np.float64)
        if len(widths) not in (1, len(points)) or not (np.isfinite(points).all() and np.all(widths > 0.0)):
            raise self.source.error(
                prim,
                f"{len(points)} points have {len(widths)} widths, or they are not finite and > 0",
                value=widths.tolist(),
                remedy="Give a width > 0 per point.",
            )
        radii = 0.5 * np.broadcast_to(widths, len(points)) * np.abs(scale).max()
        return [
            ShapeDescription(
                f"{shape.label}/{number}",
                GeoType.SPHERE,
                Frame(shape.frame.apply(scale * point), shape.frame.quat),
                (float(radius), 0.0, 0.0),
                color=shape.color,
            )
            for number, (point, radius) in enumerate(zip(points, radii, strict=True))
        ]

    def _mesh(self, prim: Any, stretch: np.ndarray) -> Mesh:
        original = prim.GetPrimInPrototype() if prim.IsInstanceProxy() else prim
        key = (str(original.GetPath()), np.round(stretch / self.source.length, 9).tobytes())
        if key not in self._meshes:
            self._meshes[key] = self._read_mesh(prim, stretch)
        return self._meshes[key]

    def _read_mesh(self, prim: Any, stretch: np.ndarray) -> Mesh:
        points = np.array(prim.GetAttribute("points").Get() or [], dtype=np.float64).reshape(-1, 3)
        counts = np.array(prim.GetAttribute("faceVertexCounts").Get() or [], dtype=np.int64)
        corners = np.array(prim.GetAttribute("faceVertexIndices").Get() or [], dtype=np.int64)
        if (
            not (len(points) and np.isfinite(points).all())
            or counts.sum() != len(corners)
            or (len(counts) and counts.min() < 3)
        ):
            raise self.source.error(
                prim,
                f"the mesh has {len(points)} points, which must be finite, and {len(corners)} corners for "
                f"faces of {int(counts.sum())}",
                value=len(points),
                remedy="Correct points, faceVertexCounts and faceVertexIndices.",
            )
        # Triangle fan per face: its first corner, and two consecutive ones.
        fan = np.maximum(counts - 2, 0)
        face = np.repeat(np.arange(len(counts)), fan)
        corner_index = np.arange(len(face)) - np.repeat(np.cumsum(fan) - fan, fan)
        first = (np.cumsum(counts) - counts)[face]
        corner = np.column_stack([first, first + corner_index + 1, first + corner_index + 2]).reshape(-1, 3)
        indices = corners[corner]
        is_left_handed = prim.GetAttribute("orientation").Get() == "leftHanded"
        is_turned = is_left_handed != bool(np.linalg.det(stretch) < 0.0)
        if is_turned:
            indices = indices[:, ::-1]
        skin = self._appearances.skin(prim, corner, face, is_turned=is_turned)
        color = None
        if skin is not None and skin.part_color is not None:
            red, green, blue = np.clip(np.average(skin.part_color[:, :3], axis=0), 0.0, 1.0).tolist()
            color = (red, green, blue)
        try:
            return Mesh(points @ stretch.T, indices, name=f"mesh '{prim.GetPath()}'", color=color, skin=skin)
        except ValueError as error:
            raise self.source.error(
                prim, str(error).rstrip("."), remedy="Repair or replace the mesh."
            ) from error

    def _approximate(self, prim: Any, shape: ShapeDescription, approximation: str) -> ShapeDescription:
        """Return the collision shape of a mesh."""
        assert shape.mesh is not None
        if approximation == "boundingCube" and not self.options["skip_mesh_approximation"]:
            lower, upper = (corner.astype(np.float64) for corner in shape.mesh.aabb)
            half = 0.5 * (upper - lower)
            if not half.min() > 0.0:
                raise self.source.error(
                    prim,
                    f"the bounding cube of the mesh has half sizes {half.tolist()} m, but they must be > 0",
                    value=half.tolist(),
                    remedy="Give the mesh a thickness, or use another approximation.",
                )
            shape.frame = shape.frame @ make_frame(0.5 * (lower + upper))
            shape.type, shape.mesh = GeoType.BOX, None
            shape.scale = (float(half[0]), float(half[1]), float(half[2]))
            return shape
        if approximation == "boundingSphere" and not self.options["skip_mesh_approximation"]:
            points = shape.mesh.vertices.astype(np.float64)
            middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
            radius = float(np.linalg.norm(points - middle, axis=1).max())
            shape.frame = shape.frame @ make_frame(middle)
            shape.type, shape.mesh, shape.scale = GeoType.SPHERE, None, (radius, 0.0, 0.0)
            return shape
        if approximation != "convexHull":
            self.report.add(
                f"collision mesh with the approximation {approximation}",
                str(prim.GetPath()),
                "it collides as its convex hull",
            )
        elif self.options["skip_mesh_approximation"]:
            self.report.add(
                "skip_mesh_approximation",
                str(prim.GetPath()),
                "it collides as its convex hull nevertheless: meshes as such do not collide",
            )
        shape.type = GeoType.CONVEX_MESH
        limit = authored(prim, "newton:maxHullVertices", "mjc:maxhullvert")
        if limit is not None and limit >= 0:  # -1 leaves it to the option
            try:
                shape.mesh = shape.mesh.convex_hull(int(limit))
            except ValueError as error:
                raise self.source.error(
                    prim,
                    str(error).rstrip("."),
                    value=limit,
                    remedy="Correct newton:maxHullVertices (or mjc:maxhullvert) or the mesh.",
                ) from error
        return shape

    def _warn_uneven(self, label: str, scale: np.ndarray) -> None:
        if scale.max() - scale.min() > SCALE_TOLERANCE * scale.max():
            self.report.add(
                "round shape with an uneven scale", label, "it stays round, with the largest of the factors"
            )

    def _has_no_extent(self, prim: Any) -> bool:
        """Return whether a prim is a sphere, capsule or cube of size 0."""
        name = EXTENTS.get(str(prim.GetTypeName()))
        return name is not None and float(prim.GetAttribute(name).Get()) == 0.0

    def _size(self, prim: Any, name: str, *, allow_zero: bool = False) -> float:
        value = float(prim.GetAttribute(name).Get())
        if not (0.0 < value < np.inf or (allow_zero and value == 0.0)):
            raise self.source.error(
                prim,
                f"{name} is {value}, but it must be finite and > 0",
                value=value,
                remedy="Correct the size in the file.",
            )
        return value

    def _axis(self, prim: Any) -> str:
        axis = str(prim.GetAttribute("axis").Get())
        if axis not in AXIS_TURNS:
            raise self.source.error(
                prim, f"axis is '{axis}', which is no axis", value=axis, remedy="Write X, Y or Z."
            )
        return axis

    def _is_shown(self, prim: Any) -> bool:
        from pxr import UsdGeom

        imageable = UsdGeom.Imageable(prim)
        return (
            imageable.ComputeVisibility() != UsdGeom.Tokens.invisible
            and str(imageable.ComputePurpose()) in SHOWN_PURPOSES
        )


def is_site(prim: Any) -> bool:
    """Return whether a prim only marks a frame."""
    return bool({"MjcSiteAPI", "NewtonSiteAPI"} & set(applied_schemas(prim)))
