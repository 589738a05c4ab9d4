"""Bolts and nuts with an ISO metric thread, as closed meshes.

The thread is the basic profile of ISO 68-1: flanks at 60 degrees, crests cut flat by an eighth of the height
of the sharp triangle and roots by a quarter. Columns of vertices run up the cylinder, each with the corners
of the profile at the heights where the helix passes it.
"""

import numpy as np

from pluriverse.geometry.mesh import Mesh

# Heights of the corners of the profile within a turn, in units of the pitch P: crest P / 8, flank, root P /
# 4.
PROFILE_HEIGHTS = np.array([0.0, 1.0 / 8.0, 7.0 / 16.0, 11.0 / 16.0])
# Depth at those corners, in units of the depth of the thread.
PROFILE_DEPTHS = np.array([0.0, 0.0, 1.0, 1.0])
# Depth of the thread in units of the pitch: 5 / 8 of the height of an equilateral triangle.
THREAD_DEPTH = 5.0 / 8.0 * np.sqrt(3.0) / 2.0
# Smallest number of columns of vertices around the axis; a multiple of six, so that a hexagon has its
# corners.
SEGMENT_COUNT_MIN = 12


def bolt_mesh(
    diameter: float,
    pitch: float,
    length: float,
    *,
    head_diameter: float = 0.0,
    head_height: float = 0.0,
    segments: int = 36,
    name: str = "bolt",
) -> Mesh:
    """Return a threaded rod along +z from the origin, right-handed, with a hexagonal head below it if wanted.

    Args:
        diameter: Outer diameter of the thread [m].
        pitch: Height of a turn [m].
        length: Length of the thread [m].
        head_diameter: Width of the head across its flats [m]; 0 for none.
        head_height: Height of the head [m]; 0 for none.
        segments: Columns of vertices around the thread, a multiple of 6.
        name: What the mesh is called in messages.

    Raises:
        ValueError: If a length is not positive, the thread is deeper than the rod is thick, or the head is
            narrower than the rod.
    """
    _check_thread(name, diameter, pitch, length, segments)
    has_head = head_diameter > 0.0 or head_height > 0.0
    if has_head and not (head_diameter >= diameter and head_height > 0.0):
        raise ValueError(
            f"{name}: the head is {head_diameter} m wide and {head_height} m high, but it must be as wide as "
            f"the thread ({diameter} m) at least and of some height. Give both, or neither for a rod."
        )
    side = _Surface(segments)
    side.add_thread(0.5 * diameter, pitch, length)
    bottom, top = side.rims()
    side.add_cap(top, (0.0, 0.0, length), facing_up=True)
    if has_head:
        collar = side.add_ring(_hexagon(head_diameter, segments), 0.0)
        foot = side.add_ring(_hexagon(head_diameter, segments), -head_height)
        side.add_strip(collar, bottom)
        side.add_strip(foot, collar)
        bottom, height = foot, -head_height
    else:
        height = 0.0
    side.add_cap(bottom, (0.0, 0.0, height), facing_up=False)
    return side.mesh(name)


def nut_mesh(
    diameter: float,
    pitch: float,
    height: float,
    *,
    clearance: float,
    width: float | None = None,
    segments: int = 36,
    name: str = "nut",
) -> Mesh:
    """Return a hexagonal nut from the origin along +z whose thread fits `bolt_mesh` in the same frame.

    Args:
        diameter: Outer diameter of the thread of the bolt [m].
        pitch: Height of a turn [m].
        height: Height of the nut [m].
        clearance: Radial distance between the threads [m]; along the axis the play is 1.15 times this.
        width: Width across the flats [m]; None for 1.6 times the diameter.
        segments: Columns of vertices around the thread, a multiple of 6.
        name: What the mesh is called in messages.

    Raises:
        ValueError: If a length is not positive, the facets of thread and bolt would overlap, or the nut is
            narrower than its hole.
    """
    _check_thread(name, diameter, pitch, height, segments)
    width = 1.6 * diameter if width is None else width
    # Between two columns the facets of the nut come closer to the axis than its vertices.
    sagitta = 0.5 * diameter * (1.0 / np.cos(np.pi / segments) - 1.0)
    if not clearance > sagitta:
        raise ValueError(
            f"{name}: the clearance is {clearance} m, but facets of {segments} columns need more than "
            f"{sagitta:.3g} m. Raise clearance or segments."
        )
    if not width > diameter + 2.0 * clearance:
        raise ValueError(
            f"{name}: the width is {width} m, but the hole needs {diameter + 2.0 * clearance} m. Raise width."
        )
    hole = _Surface(segments)
    hole.add_thread(0.5 * diameter + clearance, pitch, height)
    bottom, top = hole.rims()
    hole.turn_inside_out()
    outer_bottom = hole.add_ring(_hexagon(width, segments), 0.0)
    outer_top = hole.add_ring(_hexagon(width, segments), height)
    hole.add_strip(outer_bottom, outer_top)
    hole.add_strip(outer_top, top)
    hole.add_strip(bottom, outer_bottom)
    return hole.mesh(name)


def _check_thread(name: str, diameter: float, pitch: float, length: float, segments: int) -> None:
    for what, value in (("diameter", diameter), ("pitch", pitch), ("length", length)):
        if not 0.0 < value < np.inf:
            raise ValueError(f"{name}: the {what} of the thread is {value} m, but it must be > 0 and finite.")
    if not 2.0 * THREAD_DEPTH * pitch < diameter:
        raise ValueError(
            f"{name}: a pitch of {pitch} m makes the thread {THREAD_DEPTH * pitch:.3g} m deep, but the "
            f"radius is {0.5 * diameter} m. Lower pitch or raise diameter."
        )
    if segments < SEGMENT_COUNT_MIN or segments % 6:
        raise ValueError(
            f"{name}: segments is {segments}, but a multiple of 6 from {SEGMENT_COUNT_MIN} on is needed."
        )


def _hexagon(width: float, segments: int) -> np.ndarray:
    """Return the distance of a hexagon from its middle in the direction of each column [m]."""
    angle = 2.0 * np.pi * np.arange(segments) / segments
    return 0.5 * width / np.cos((angle + np.pi / 6.0) % (np.pi / 3.0) - np.pi / 6.0)


class _Surface:
    """Vertices in columns around the z axis, and the triangles between them."""

    def __init__(self, segments: int):
        self._segments = segments
        self._vertices: list[np.ndarray] = []
        self._triangles: list[np.ndarray] = []
        self._count = 0
        self._thread = np.zeros((0, 0), dtype=int)

    def add_thread(self, radius: float, pitch: float, length: float) -> None:
        """Add a thread from z = 0 to `length`, facing outwards.

        Corners of the profile beyond the ends are moved to the ends: the removed part becomes triangles
        without area, and the surface stays connected.
        """
        turns = np.arange(-2, int(np.ceil(length / pitch)) + 2)
        heights = (turns[:, None] + PROFILE_HEIGHTS).reshape(-1)
        depths = np.tile(PROFILE_DEPTHS, len(turns))
        columns = np.arange(self._segments + 1)[:, None] / self._segments
        z = pitch * (heights + columns)
        clipped = np.clip(z, 0.0, length)
        # The profile at a height is periodic; np.interp takes it over one turn and its first corner again.
        phase = (clipped / pitch - columns) % 1.0
        depth = np.interp(phase, [*PROFILE_HEIGHTS, 1.0], [*PROFILE_DEPTHS, PROFILE_DEPTHS[0]])
        depth = np.where(clipped == z, depths, depth)
        r = radius - THREAD_DEPTH * pitch * depth
        angle = 2.0 * np.pi * columns
        points = np.stack([r * np.cos(angle), r * np.sin(angle), clipped], axis=-1)
        rows = len(heights)
        index = self._count + np.arange(points[..., 0].size).reshape(self._segments + 1, rows)
        # After a turn the first column comes again, one turn higher.
        index[-1, : -len(PROFILE_HEIGHTS)] = index[0, len(PROFILE_HEIGHTS) :]
        index[-1, -len(PROFILE_HEIGHTS) :] = index[0, -1]
        self._append(points.reshape(-1, 3))
        a, b, c, d = index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:]
        for corners in ((a, b, c), (a, c, d)):
            self._triangles.append(np.stack(corners, axis=-1).reshape(-1, 3))
        self._thread = index[:-1]

    def rims(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the vertices at the lower and at the upper end of the thread, column by column."""
        return self._thread[:, 0], self._thread[:, -1]

    def turn_inside_out(self) -> None:
        """Reverse all triangles so far."""
        self._triangles = [triangles[:, ::-1] for triangles in self._triangles]

    def add_ring(self, radius: np.ndarray, height: float) -> np.ndarray:
        """Add a vertex to each column; return them."""
        angle = 2.0 * np.pi * np.arange(self._segments) / self._segments
        return self._append(
            np.column_stack([radius * np.cos(angle), radius * np.sin(angle), np.full(len(angle), height)])
        )

    def add_strip(self, lower: np.ndarray, upper: np.ndarray) -> None:
        """Connect two rings; from outside, the second one is above the first."""
        a, b, c, d = lower, np.roll(lower, -1), np.roll(upper, -1), upper
        self._triangles += [np.column_stack([a, b, c]), np.column_stack([a, c, d])]

    def add_cap(self, ring: np.ndarray, middle: tuple[float, float, float], *, facing_up: bool) -> None:
        """Close a ring by a fan of triangles."""
        centre = np.repeat(self._append(np.array([middle])), len(ring))
        ends = (ring, np.roll(ring, -1)) if facing_up else (np.roll(ring, -1), ring)
        self._triangles.append(np.column_stack([centre, *ends]))

    def mesh(self, name: str) -> Mesh:
        """Return the surface, equal vertices merged and triangles without area left out."""
        points = np.concatenate(self._vertices).astype(np.float32)
        points, merged = np.unique(points, axis=0, return_inverse=True)
        triangles = merged.reshape(-1)[np.concatenate(self._triangles)]
        a, b, c = triangles.T
        return Mesh(points, triangles[(a != b) & (b != c) & (c != a)], name=name)

    def _append(self, points: np.ndarray) -> np.ndarray:
        first = self._count
        self._vertices.append(points)
        self._count += len(points)
        return np.arange(first, self._count)
