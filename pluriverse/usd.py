"""USD helpers for scripts: what prims hold, as Warp and NumPy values, and meshes. Needs `pluriverse[usd]`."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.geometry import Mesh
from pluriverse.importers.usd_resolvers import (
    SchemaResolver,
    SchemaResolverMjc,
    SchemaResolverNewton,
    SchemaResolverPhysx,
)
from pluriverse.newton_names import missing
from pluriverse.types import Axis

__all__ = [
    "SchemaResolver",
    "SchemaResolverMjc",
    "SchemaResolverNewton",
    "SchemaResolverPhysx",
    "get_attribute",
    "get_attributes_in_namespace",
    "get_float",
    "get_gprim_axis",
    "get_mesh",
    "get_physics_scenes",
    "get_quat",
    "get_scale",
    "get_transform",
    "has_applied_api_schema",
    "has_attribute",
]


def __getattr__(name: str) -> Any:
    raise missing("usd", name, kind="module")


def has_attribute(prim: Any, name: str) -> bool:
    """Return whether a prim has an attribute with a value that was written."""
    attribute = prim.GetAttribute(name)
    return bool(attribute) and attribute.HasAuthoredValue()


def get_attribute(prim: Any, name: str, default: Any = None) -> object:
    """Return the value of an attribute of a prim, also that of its schema; `default` if there is none."""
    value = _value(prim, name)
    return default if value is None else value


def get_attributes_in_namespace(prim: Any, namespace: str) -> dict[str, Any]:
    """Return the values that a prim has in a namespace, such as "physics", by the whole names."""
    values = {
        attribute.GetName(): attribute.Get()
        for attribute in prim.GetAttributes()
        if attribute.GetName().startswith(f"{namespace.rstrip(':')}:")
    }
    return {name: value for name, value in values.items() if value is not None}


def get_float(prim: Any, name: str, default: float | None = None) -> float | None:
    """Return a number; `default` where it is missing or not finite."""
    value = _value(prim, name)
    return default if value is None or not np.isfinite(value) else float(value)


def get_quat(prim: Any, name: str, default: wp.quat | None = None) -> wp.quat | None:
    """Return a unit quaternion xyzw; `default` where it is missing or has no direction."""
    value = _value(prim, name)
    if value is None:
        return default
    parts = np.array([*value.GetImaginary(), value.GetReal()], dtype=np.float64)
    length = np.linalg.norm(parts)
    return wp.quat(*(parts / length)) if np.isfinite(length) and length > 0.0 else default


def get_gprim_axis(prim: Any, name: str = "axis", default: Axis | str | int = Axis.Z) -> Axis:
    """Return the axis of a round shape."""
    value = _value(prim, name)
    return Axis.from_any(default if value is None else str(value))


def get_transform(prim: Any, local: bool = True, xform_cache: Any = None) -> wp.transform:
    """Return the pose of a prim [lengths of the stage, xyzw].

    Args:
        prim: The prim.
        local: Whether it is that in the parent; else that in the stage.
        xform_cache: A `UsdGeom.XformCache`; a new one if None.
    """
    position, rotation, _ = _parts(prim, local, xform_cache)
    return wp.transform(position, rotation)


def get_scale(prim: Any, local: bool = True, xform_cache: Any = None) -> wp.vec3:
    """Return the factors by which a prim is stretched along its axes; the arguments are as above."""
    return wp.vec3(*_parts(prim, local, xform_cache)[2])


def has_applied_api_schema(prim: Any, schema_name: str) -> bool:
    """Return whether a schema was applied to a prim, also one that is not installed here."""
    names = set(prim.GetAppliedSchemas())
    listed = prim.GetMetadata("apiSchemas")
    if listed is not None:
        names |= set(listed.GetAddedOrExplicitItems())
    return schema_name in names


def get_physics_scenes(
    stage: Any, root_path: str = "/", exclude_paths: Sequence[str] | None = None
) -> list[Any]:
    """Return the physics scenes (`UsdPhysics.Scene`) of a stage at a path or below it, without some paths."""
    from pxr import Usd, UsdPhysics

    scenes = []
    for prim in Usd.PrimRange(stage.GetPrimAtPath(root_path)):
        path = str(prim.GetPath())
        left_out = any(path == out or path.startswith(f"{out}/") for out in exclude_paths or ())
        if prim.IsA(UsdPhysics.Scene) and not left_out:
            scenes.append(UsdPhysics.Scene(prim))
    return scenes


def get_mesh(
    source: Any,
    *,
    root_path: str | None = None,
    compute_inertia: bool = True,
    apply_stage_units: bool = True,
    load_normals: bool = False,
    load_uvs: bool = False,
) -> Mesh:
    """Return the triangles of a mesh, in its own frame, faces with more corners being split.

    Args:
        source: A prim of type `Mesh`; a stage or the path of a file, of which the first mesh is taken.
        root_path: Where in the stage to begin to look; its whole if None.
        compute_inertia: Whether shapes get their mass from the mesh.
        apply_stage_units: Whether lengths become metres, by `metersPerUnit` of the stage.
        load_normals: Changes nothing: drawing finds normals by itself.
        load_uvs: Changes nothing: `add_usd` reads materials and textures.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If there is no mesh, or it has no triangles.
    """
    from pxr import Usd, UsdGeom

    if isinstance(source, str | os.PathLike):
        if not os.path.exists(source):
            raise FileNotFoundError(f"get_mesh: there is no file '{source}'. Correct the path.")
        source = Usd.Stage.Open(os.fspath(source))
    prim = source
    if isinstance(source, Usd.Stage):
        root = source.GetPseudoRoot() if root_path is None else source.GetPrimAtPath(root_path)
        found = [each for each in Usd.PrimRange(root) if each.IsA(UsdGeom.Mesh)] if root else []
        if not found:
            raise ValueError(f"get_mesh: there is no mesh below '{root_path or '/'}'. Name the prim.")
        prim = found[0]
    if not prim or not prim.IsA(UsdGeom.Mesh):
        what = f"'{prim.GetPath()}' of type {prim.GetTypeName() or 'none'}" if prim else "no prim"
        raise ValueError(f"get_mesh: there is {what}, but it must be a Mesh.")
    points = np.array(_value(prim, "points") or [], dtype=np.float64).reshape(-1, 3)
    counts = np.array(_value(prim, "faceVertexCounts") or [], dtype=np.int64)
    corners = np.array(_value(prim, "faceVertexIndices") or [], dtype=np.int64)
    if counts.sum() != len(corners) or (len(counts) and counts.min() < 3):
        raise ValueError(
            f"get_mesh: '{prim.GetPath()}' has {len(corners)} corners for faces of {int(counts.sum())}. "
            "Correct faceVertexCounts and faceVertexIndices."
        )
    # A fan of triangles per face: its first corner, and two consecutive ones.
    face = np.repeat(np.arange(len(counts)), counts - 2)
    corner_index = np.arange(len(face)) - np.repeat(np.cumsum(counts - 2) - (counts - 2), counts - 2)
    first = (np.cumsum(counts) - counts)[face]
    triangles = corners[np.column_stack([first, first + corner_index + 1, first + corner_index + 2])]
    if get_attribute(prim, "orientation") == "leftHanded":
        triangles = triangles[:, ::-1]
    length = UsdGeom.GetStageMetersPerUnit(prim.GetStage()) if apply_stage_units else 1.0
    return Mesh(points * length, triangles.reshape(-1), compute_inertia=compute_inertia)


def _value(prim: Any, name: str) -> Any:
    attribute = prim.GetAttribute(name)
    return attribute.Get() if attribute else None


def _parts(prim: Any, local: bool, xform_cache: Any) -> tuple[Any, Any, Any]:
    """Return position, rotation and factors of the matrix of a prim."""
    from pxr import UsdGeom

    cache = UsdGeom.XformCache() if xform_cache is None else xform_cache
    rows = cache.GetLocalTransformation(prim)[0] if local else cache.GetLocalToWorldTransform(prim)
    matrix = np.array(rows, dtype=np.float64).T  # USD's matrices act on rows
    scale = np.linalg.norm(matrix[:3, :3], axis=0)
    if np.linalg.det(matrix[:3, :3]) < 0.0:
        scale = -scale
    axes = matrix[:3, :3] / np.where(scale == 0.0, 1.0, scale)
    return matrix[:3, 3], wp.quat_from_matrix(wp.mat33(axes)), scale
