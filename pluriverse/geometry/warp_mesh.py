"""Meshes of Warp made of triangle meshes, for queries in kernels of one's own."""

import weakref
from typing import Any

import warp as wp

# By triangle mesh, then device. Kept outside the meshes: copies of a mesh share no memory of Warp.
_MADE: weakref.WeakKeyDictionary[Any, dict[str, wp.Mesh]] = weakref.WeakKeyDictionary()


def warp_mesh(mesh: Any, device: Any = None) -> wp.Mesh:
    """Return the mesh of Warp with the triangles of a mesh, made once per device and kept as long as `mesh`.

    Args:
        mesh: A `Mesh`, or anything with `vertices` [m] and `indices` that do not change.
        device: Device of the result; Warp's default device if None.
    """
    target = wp.get_device(device)
    made = _MADE.setdefault(mesh, {})
    if target.alias not in made:
        made[target.alias] = wp.Mesh(
            points=wp.array(mesh.vertices, dtype=wp.vec3, device=target),
            indices=wp.array(mesh.indices, dtype=wp.int32, device=target),
        )
    return made[target.alias]
