"""Ground that a world has more than once, as of files that each bring a floor."""

import warnings

import numpy as np

from pluriverse.builder.snapshot import Snapshot
from pluriverse.model import poses
from pluriverse.types import GeoType, ShapeFlags
from pluriverse.warnings import RepeatedGroundWarning

# Planes closer than this, in direction and offset [m], count as the same.
_TOLERANCE = 1e-5


def warn_of_repeated_ground(source: Snapshot) -> None:
    """Warn if infinite planes of a world, or one of a world and a shared one, coincide.

    Each of them makes contacts of its own with what stands on it.
    """
    is_ground = (
        (source.shape_type == GeoType.PLANE)
        & (source.shape_body < 0)
        & (source.shape_flags & ShapeFlags.COLLIDE_SHAPES != 0)
        & ~source.shape_scale[:, :2].any(axis=1)
    )
    shapes = np.flatnonzero(is_ground)
    if len(shapes) < 2:
        return
    world, group = source.shape_world[shapes], source.shape_collision_group[shapes]
    transform = source.shape_transform[shapes].astype(np.float64)
    normal = poses.rotate(transform[:, 3:], np.array([0.0, 0.0, 1.0]))
    offset = np.sum(normal * transform[:, :3], axis=1)
    plane = np.column_stack([group, np.round(np.column_stack([normal, offset]) / _TOLERANCE)])
    _, kind = np.unique(plane, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    # The first plane of its kind in each world, or of those that all worlds share.
    _, first, place = np.unique(
        np.column_stack([world, kind]), axis=0, return_index=True, return_inverse=True
    )
    same = shapes[first[place.reshape(-1)]]
    shared = np.full(kind.max() + 1, -1)
    shared[kind[world < 0][::-1]] = shapes[world < 0][::-1]
    same = np.where(shared[kind] >= 0, shared[kind], same)
    repeated = np.flatnonzero(same != shapes)
    if not len(repeated):
        return
    index = repeated[0]
    others = f", and {len(repeated) - 1} more" if len(repeated) > 1 else ""
    builder = source.builder
    where = "" if world[index] >= 0 else " of all worlds"
    warnings.warn(
        f"{builder.shape_name(int(shapes[index]))}{where} is the same plane as "
        f"{builder.shape_name(int(same[index]))}{others}: what stands there touches both, in twice as many "
        "contacts. Add the ground once: leave out add_ground_plane() if a file brings a floor, and the floor "
        "of further files with ignore_names=.",
        RepeatedGroundWarning,
        stacklevel=4,
    )
