"""Replace the meshes of shapes by simpler geometry for collisions."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.builder.shapes import add_shape_collision_filter_pair, mesh_index
from pluriverse.builder.tables import BuilderTables
from pluriverse.geometry import Mesh
from pluriverse.geometry.approximation import approximate_mesh, bounding_box_of, bounding_sphere_of
from pluriverse.model.poses import compose
from pluriverse.types import Entity, GeoType, ShapeFlags
from pluriverse.warnings import MeshApproximationWarning

METHODS = ("convex_hull", "components", "bounding_box", "bounding_sphere", "coacd", "vhacd", "quadratic")
"""Methods of `approximate_meshes`."""

# Fallback of each method.
_FALLBACK = {
    "components": "convex_hull",
    "coacd": "convex_hull",
    "vhacd": "convex_hull",
    "quadratic": "convex_hull",
    "convex_hull": "bounding_box",
}
_DECOMPOSITIONS = ("components", "coacd", "vhacd")
_MESHED = (GeoType.MESH, GeoType.CONVEX_MESH)


def approximate_meshes(
    builder: BuilderTables,
    method: str = "convex_hull",
    shape_indices: Iterable[int] | None = None,
    raise_on_failure: bool = False,
    keep_visual_shapes: bool = False,
    *,
    cache_dir: str | Path | None = None,
    **options: Any,
) -> set[int]:
    """Replace meshes by simpler geometry in collisions. Masses do not change.

    Call it before the builder is replicated or added to another one, so that all copies share the result.

    Args:
        method: `"convex_hull"`; `"components"`, the hull of each connected piece, as a separate shape;
            `"bounding_box"` (oriented); `"bounding_sphere"`; `"coacd"` or `"vhacd"`:
            a convex decomposition, each part a separate shape; `"quadratic"`: a mesh of fewer triangles.
        shape_indices: Shapes concerned, of which those without a mesh are ignored; None for all meshes that
            collide.
        raise_on_failure: Whether to raise if a method fails. Otherwise a warning names the shape, and the
            convex hull is used, or the box if that fails too.
        keep_visual_shapes: Whether the mesh stays visible, as a shape that does not collide.
        cache_dir: Folder that keeps decompositions and simplifications; see `approximate_mesh`.
        **options: Options of the method, such as `threshold` of CoACD; see `approximate_mesh`.

    Returns:
        The shapes that were replaced. Further parts are added after the last shape, as `LABEL_1` and so on.

    Raises:
        ValueError: If there is no such method, or a shape in a closed world becomes several.
        IndexError: If there is no such shape.
        TypeError: If the method has no such option.
        ImportError: If a package is missing and `raise_on_failure` is set.
    """
    if method not in METHODS:
        raise ValueError(
            f"approximate_meshes: method is {method!r}, but it must be one of "
            f"{', '.join(map(repr, METHODS))}."
        )
    if options and method in ("bounding_box", "bounding_sphere"):
        raise TypeError(f"approximate_meshes: {method} has no options, but {sorted(options)} were given.")
    done: set[int] = set()
    for shape in _selected(builder, shape_indices):
        used = _approximate(builder, shape, method, raise_on_failure, keep_visual_shapes, cache_dir, options)
        if used:
            done.add(shape)
    return done


def _selected(builder: BuilderTables, shape_indices: Iterable[int] | None) -> list[int]:
    """Return the shapes with a mesh among the given ones, by default those that collide."""
    types = builder.shape_type
    if shape_indices is None:
        collides = (builder.shape_flags & int(ShapeFlags.COLLIDE_SHAPES)) != 0
        return [int(shape) for shape in np.flatnonzero((types == GeoType.MESH) & collides)]
    selected = []
    for shape in shape_indices:
        if not 0 <= int(shape) < builder.shape_count:
            raise IndexError(
                f"approximate_meshes: shape {shape!r} does not exist; there are {builder.shape_count} shapes."
            )
        if types[int(shape)] in _MESHED:
            selected.append(int(shape))
    return selected


def _approximate(
    builder: BuilderTables,
    shape: int,
    method: str,
    raise_on_failure: bool,
    keep_visual_shapes: bool,
    cache_dir: str | Path | None,
    options: dict[str, Any],
) -> bool:
    """Replace one shape by the first method that succeeds; return whether one did."""
    name = builder.shape_name(shape)
    mesh = builder.meshes[int(builder.shape_source_index[shape])]
    if method in _DECOMPOSITIONS and mesh.hull_source is not None:
        mesh = mesh.hull_source  # importers have made a hull of it
    scale = builder.shape_scale[shape].copy()
    points = np.asarray(mesh.vertices, dtype=np.float64) * scale
    while True:
        parts: list[Mesh] = []
        try:
            if method not in ("bounding_box", "bounding_sphere"):
                parts = approximate_mesh(mesh, method, cache_dir=cache_dir, **options)
            break
        except (ValueError, RuntimeError, ImportError) as error:
            following = _FALLBACK.get(method)
            if raise_on_failure or following is None:
                raise type(error)(f"{name}: {error}") from error
            warnings.warn(
                f"{name}: {method} failed ({error}); {following} is used instead.",
                MeshApproximationWarning,
                stacklevel=3,
            )
            method, options = following, {}
    if len(parts) > 1 and not _may_grow(builder, shape):
        raise ValueError(
            f"{name}: {method} makes {len(parts)} shapes of it, but its world is closed. Approximate the "
            "meshes of a builder before it is added to a world or replicated."
        )
    if keep_visual_shapes:
        copy = _append_copy(builder, shape, f"{builder.shape_label[shape]}_visual")
        collides = int(ShapeFlags.COLLIDE_SHAPES | ShapeFlags.COLLIDE_PARTICLES | ShapeFlags.HYDROELASTIC)
        builder.shape_flags[copy] &= ~collides
        builder.shape_flags[shape] &= ~int(ShapeFlags.VISIBLE)
    if method == "bounding_box":
        pose, half = bounding_box_of(points)
        _become(builder, shape, GeoType.BOX, -1, half, pose)
    elif method == "bounding_sphere":
        centre, radius = bounding_sphere_of(points)
        pose = np.concatenate([centre, [0.0, 0.0, 0.0, 1.0]])
        _become(builder, shape, GeoType.SPHERE, -1, np.array([radius, 0.0, 0.0]), pose)
    else:
        kind = GeoType.MESH if method == "quadratic" else GeoType.CONVEX_MESH
        _become(builder, shape, kind, mesh_index(builder, parts[0]), scale, None)
        filtered = builder.shape_filters.view("shape") if len(parts) > 1 else np.zeros((0, 2))
        partners = [int(b if a == shape else a) for a, b in filtered if shape in (a, b)]
        for number, part in enumerate(parts[1:], start=1):
            copy = _append_copy(builder, shape, f"{builder.shape_label[shape]}_{number}")
            builder.shape_source_index[copy] = mesh_index(builder, part)
            for partner in partners:
                add_shape_collision_filter_pair(builder, copy, partner)
    return True


def _may_grow(builder: BuilderTables, shape: int) -> bool:
    """Return whether a shape may be added next to another: in the open world, or without any worlds."""
    return int(builder.shape_world[shape]) == builder.current_world


def _become(
    builder: BuilderTables,
    shape: int,
    kind: GeoType,
    mesh: int,
    scale: np.ndarray,
    pose: np.ndarray | None,
) -> None:
    """Give a shape another geometry, at a pose in its old frame."""
    builder.shape_type[shape] = int(kind)
    builder.shape_source_index[shape] = mesh
    builder.shape_scale[shape] = scale
    if pose is not None:
        builder.shape_transform[shape] = compose(builder.shape_transform[shape], pose)


def _append_copy(builder: BuilderTables, shape: int, label: str) -> int:
    """Add a copy of a shape, without mass, and return it."""
    shapes = builder.tables[Entity.SHAPE]
    copy = shapes.append(**{name: shapes.view(name)[shape].copy() for name in shapes.columns})
    builder.shape_label.append(label)
    return copy
