"""Mesh files: the triangles of STL, OBJ, DAE and other files, read by trimesh."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.geometry.vertex_merge import merge_vertices

# Rotations to +z of the up axes that a DAE file can name.
UPRIGHT = {
    "X_UP": np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    "Y_UP": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "Z_UP": np.eye(3),
}


def load_triangles(
    path: Path, *, apply_up_axis: bool
) -> tuple[np.ndarray, np.ndarray, tuple[float, float, float] | None]:
    """Return vertices [m], triangles and main colour of all parts of a file, placed by its scene graph.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file cannot be read or holds no triangles.
    """
    import trimesh

    if not path.is_file():
        raise FileNotFoundError(f"mesh file '{path}' does not exist.")
    suffix = path.suffix.lower().lstrip(".")
    if suffix not in trimesh.available_formats():
        raise ValueError(
            f"mesh file '{path}': files ending in '.{suffix}' cannot be read. Convert it to STL, OBJ, PLY, "
            "GLB or DAE (DAE needs the package pycollada)."
        )
    matrix = np.eye(3)
    if suffix == "dae":
        unit, up_axis = _collada_frame(path)
        matrix = unit * (UPRIGHT[up_axis] if apply_up_axis else matrix)
    try:
        scene = _load_scene(path, suffix)
    # what trimesh and the parsers below it run into with a broken file
    except (ValueError, LookupError, TypeError, AttributeError, OSError, EOFError, SyntaxError) as error:
        raise ValueError(f"mesh file '{path}' cannot be read: {type(error).__name__}: {error}") from error
    parts = []
    for node in sorted(scene.graph.nodes_geometry):
        placement, geometry_name = scene.graph[node]
        geometry = scene.geometry[geometry_name]
        if len(getattr(geometry, "faces", ())) > 0:  # points and lines have no surface
            parts.append((matrix @ placement[:3, :3], matrix @ placement[:3, 3], geometry))
    if not parts:
        raise ValueError(f"mesh file '{path}' holds no triangles.")
    vertices = [_placed(part.vertices, turn, offset) for turn, offset, part in parts]
    starts = np.cumsum([0] + [len(block) for block in vertices])
    triangles = [
        np.asarray(part.faces)[:, :: -1 if np.linalg.det(turn) < 0.0 else 1]
        + start  # mirrored parts turn over
        for (turn, _, part), start in zip(parts, starts[:-1], strict=True)
    ]
    largest = max((part for _, _, part in parts), key=lambda part: len(part.faces))
    distinct, merged = merge_vertices(np.concatenate(vertices).astype(np.float32))
    return distinct, merged[np.concatenate(triangles)], _main_color(largest)


def _placed(vertices: Any, turn: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Return vertices [m] of a part in the frame of the file."""
    array = np.asarray(vertices)
    if np.array_equal(turn, np.eye(3)) and not offset.any():
        return array  # most parts stand where they are
    placed: np.ndarray = array @ turn.T + offset
    return placed


def _load_scene(path: Path, suffix: str) -> Any:
    """Return the `trimesh.Scene` of a file, as it stands there.

    The parts of a scene ask for no processing themselves, since trimesh would otherwise merge their vertices
    with normals and texture coordinates, which takes longer than reading them.
    """
    import trimesh
    from trimesh.exchange.load import mesh_loaders

    if suffix not in mesh_loaders:
        return trimesh.load_scene(path, process=False)
    with path.open("rb") as file:
        loaded = mesh_loaders[suffix](
            file, file_type=suffix, resolver=trimesh.resolvers.FilePathResolver(str(path))
        )
    entries = loaded if isinstance(loaded, list) else [loaded]
    scene = trimesh.Scene()
    for entry in entries:
        for part in entry.get("geometry", {"": entry}).values():
            part["process"] = False
        geometry = trimesh.load(entry)
        if len(entries) == 1 and isinstance(geometry, trimesh.Scene):
            return geometry
        scene.add_geometry(geometry)
    return scene


def _collada_frame(path: Path) -> tuple[float, str]:
    """Return unit [m] and up axis of a DAE file; by the standard one metre and y where it names none."""
    unit, up_axis = 1.0, "Y_UP"
    try:
        for _, element in ElementTree.iterparse(path):
            tag = element.tag.rsplit("}", 1)[-1]
            if tag == "unit":
                unit = float(element.get("meter", "1"))
            elif tag == "up_axis":
                up_axis = (element.text or up_axis).strip()
            elif tag == "asset":
                break
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(f"mesh file '{path}' is not a valid DAE file: {error}") from error
    if not 0.0 < unit < np.inf:
        raise ValueError(f"mesh file '{path}': <unit meter=\"{unit}\"> must be finite and > 0.")
    if up_axis not in UPRIGHT:
        raise ValueError(
            f"mesh file '{path}': <up_axis> is '{up_axis}', but it must be one of {list(UPRIGHT)}."
        )
    return unit, up_axis


def _main_color(geometry: object) -> tuple[float, float, float] | None:
    """Return the material's main colour (red, green, blue from 0 to 1), or None where the file gives none."""
    visual = getattr(geometry, "visual", None)
    material = getattr(visual, "material", None)
    if material is None or not getattr(visual, "defined", False):
        return None
    red, green, blue = (float(channel) / 255.0 for channel in material.main_color[:3])
    return red, green, blue
