"""Meshes of shapes: read from files, with axes and corners reordered on request."""

import dataclasses
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.files import LFS_REMEDY, is_lfs_pointer
from pluriverse.importers.asset_files import AssetFiles
from pluriverse.scene.assembly import Assembly
from pluriverse.scene.asset_references import check_mesh, check_references
from pluriverse.scene.errors import FieldError
from pluriverse.scene.local_files import is_below, outside_message
from pluriverse.scene.shapes import MeshShape

# Relative excess of a hull's volume over that of its mesh that counts as rounding in the file.
CONVEX_VOLUME_TOLERANCE = 1e-3
# A hull keeps 64 vertices by default, so a mesh of many more is better off with its triangles.
CONVEX_VERTEX_COUNT_MAX = 64

# Formats of plain triangles, which cannot unpack to more than the file.
MESH_SUFFIXES = (".stl", ".obj", ".ply", ".off", ".dae", ".glb", ".gltf")


def add_mesh(assembly: Assembly, shape: MeshShape, body: int, options: dict[str, Any]) -> int:
    """Add a mesh; a convex one collides as its hull, which is the same and quicker, others as triangles."""
    builder = assembly.builder
    with assembly.at("path"):
        mesh = _read_mesh(assembly, shape)
    if shape.is_solid is not None:
        options["cfg"] = dataclasses.replace(options["cfg"], is_solid=shape.is_solid)
    add_shape = builder.add_shape_mesh
    if options["cfg"].has_shape_collision and options["cfg"].is_solid and _is_convex(mesh):
        add_shape = builder.add_shape_convex_hull
    return int(add_shape(body, mesh=mesh, scale=shape.mesh_scale, **options))


def _is_convex(mesh: Any) -> bool:
    """Return whether a mesh fills its convex hull."""
    from pluriverse.geometry import HULL_VERTEX_COUNT_MIN

    if not mesh.is_closed or len(mesh.vertices) > CONVEX_VERTEX_COUNT_MAX:
        return False
    vertex_count = max(len(mesh.vertices), HULL_VERTEX_COUNT_MIN)  # all of them, so that nothing is cut off
    hull = mesh.convex_hull(max_vertices=vertex_count)
    mass, hull_mass = mesh.mass_properties(1.0).mass, hull.mass_properties(1.0).mass
    return bool(mass >= (1.0 - CONVEX_VOLUME_TOLERANCE) * hull_mass)


def _read_mesh(assembly: Assembly, shape: MeshShape) -> Any:
    """Return the mesh of a file, its axes and the corners of its triangles reordered as the scene says."""
    from pluriverse.geometry import Mesh

    path = assembly.files.find_file(shape.path, "mesh file")
    scale = np.ones(3)
    if path.suffix.lower() == ".urdf":
        path, scale = _first_mesh(assembly, path)
    if path.suffix.lower() not in MESH_SUFFIXES:
        raise FieldError(
            f"files ending in {path.suffix!r} are not read; convert it to one of {', '.join(MESH_SUFFIXES)}"
        )
    check_mesh(path, assembly.files.roots)
    mesh = Mesh.load(path, scale.tolist(), is_solid=shape.is_solid is not False)
    if shape.axis_order is None and shape.face_order is None:
        return mesh
    axes = list(shape.axis_order or (0, 1, 2))
    corners = list(shape.face_order or (0, 1, 2))
    return Mesh(
        mesh.vertices[:, axes],
        mesh.triangles[:, corners],
        is_solid=mesh.is_solid,
        color=mesh.color,
        name=mesh.name,
    )


def _first_mesh(assembly: Assembly, path: Path) -> tuple[Path, np.ndarray]:
    """Return the mesh of the first link of a URDF file that has one, its colliders first, and its scale."""
    roots = assembly.files.roots
    check_references("urdf", path, roots, [])
    if is_lfs_pointer(path):
        raise FieldError(f"'{path}' is a pointer of Git LFS, not the file. {LFS_REMEDY}")
    try:
        robot = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    except ElementTree.ParseError as error:
        raise FieldError(f"'{path}' is not valid XML: {error}") from error
    for link in robot.iter("link"):
        for kind in ("collision", "visual"):
            element = link.find(f"{kind}/geometry/mesh")
            if element is None:
                continue
            found, paths = AssetFiles(path, None).find(element.get("filename", ""))
            if found is None:
                searched = ", ".join(f"'{candidate}'" for candidate in paths[:3])
                raise FieldError(
                    f"the mesh of link '{link.get('name')}' of '{path}' is missing (at {searched})"
                )
            if not is_below(found, roots):
                raise FieldError(outside_message(found.resolve(), roots))
            numbers = [float(word) for word in element.get("scale", "1 1 1").split()]
            return found, np.array(numbers if len(numbers) == 3 else numbers[:1] * 3)
    raise FieldError(f"no link of '{path}' has a mesh")
