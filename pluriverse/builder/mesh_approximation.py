"""Replace the meshes of shapes by simpler geometry for collisions."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.builder.shapes import ShapeBuilder
from pluriverse.geometry import Mesh
from pluriverse.geometry.approximation import approximate_mesh, bounding_box_of, bounding_sphere_of
from pluriverse.model.poses import compose
from pluriverse.types import GeoType, ShapeFlags
from pluriverse.warnings import MeshApproximationWarning

METHODS = ("convex_hull", "components", "bounding_box", "bounding_sphere", "coacd", "vhacd", "quadratic")
"""What `approximate_meshes` can do."""

# What is tried next where a method fails.
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
    builder: ShapeBuilder,
    method: str,
    shape_indices: Iterable[int] | None,
    raise_on_failure: bool,
    keep_visual_shapes: bool,
    cache_dir: str | Path | None,
    options: dict[str, Any],
) -> set[int]:
    """Do what `ModelBuilder.approximate_meshes` says."""
    if method not in METHODS:
        raise ValueError(
            f"approximate_meshes: method is {method!r}, but it must be one of "
            f"{', '.join(map(repr, METHODS))}."
        )
    if options and method in ("bounding_box", "bounding_sphere"):
        raise TypeError(f"approximate_meshes: {method} has no options, but {sorted(options)} were given.")
    done: set[int] = set()
    for shape in _chosen(builder, shape_indices):
        used = _approximate(builder, shape, method, raise_on_failure, keep_visual_shapes, cache_dir, options)
        if used:
            done.add(shape)
    return done


def _chosen(builder: ShapeBuilder, shape_indices: Iterable[int] | None) -> list[int]:
    """Return the shapes with a mesh among those asked for, by default those that collide."""
    types = builder.shape_type
    if shape_indices is None:
        collides = (builder.shape_flags & int(ShapeFlags.COLLIDE_SHAPES)) != 0
        return [int(shape) for shape in np.flatnonzero((types == GeoType.MESH) & collides)]
    chosen = []
    for shape in shape_indices:
        if not 0 <= int(shape) < builder.shape_count:
            raise IndexError(
                f"approximate_meshes: shape {shape!r} does not exist; there are {builder.shape_count} shapes."
            )
        if types[int(shape)] in _MESHED:
            chosen.append(int(shape))
    return chosen


def _approximate(
    builder: ShapeBuilder,
    shape: int,
    method: str,
    raise_on_failure: bool,
    keep_visual_shapes: bool,
    cache_dir: str | Path | None,
    options: dict[str, Any],
) -> bool:
    """Replace one shape by the first method that works; return whether one did."""
    name = builder._shape_name(shape)
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
                stacklevel=4,
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
        _become(builder, shape, kind, builder._mesh_index(parts[0]), scale, None)
        filtered = np.asarray(builder.shape_collision_filter_pairs) if len(parts) > 1 else np.zeros((0, 2))
        partners = [int(b if a == shape else a) for a, b in filtered if shape in (a, b)]
        for number, part in enumerate(parts[1:], start=1):
            copy = _append_copy(builder, shape, f"{builder.shape_label[shape]}_{number}")
            builder.shape_source_index[copy] = builder._mesh_index(part)
            for partner in partners:
                builder.add_shape_collision_filter_pair(copy, partner)
    return True


def _may_grow(builder: ShapeBuilder, shape: int) -> bool:
    """Return whether a shape may be added beside another: in the world that is open, or with none at all."""
    return int(builder.shape_world[shape]) == builder.current_world


def _become(
    builder: ShapeBuilder,
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


def _append_copy(builder: ShapeBuilder, shape: int, label: str) -> int:
    """Add a copy of a shape, without mass, and return it."""
    values = {name: builder._shapes.view(name)[shape].copy() for name in builder._shapes.columns}
    copy = builder._shapes.append(**values)
    builder.shape_label.append(label)
    return copy
