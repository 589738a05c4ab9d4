"""Which geoms may touch, expressed for MuJoCo: contact bits, excluded bodies, explicit pairs.

Two geoms of MuJoCo touch if `contype` of one and `conaffinity` of the other share a bit. Geoms that may touch
the same others form a *colour*; colour k has bit k as its `contype`, and the bits of the colours that it may
touch as its `conaffinity`, which is exact for up to 31 colours. Beyond that whole bodies are excluded from
each other, and as a last resort pairs are listed one by one, so the result is always exact.
"""

from dataclasses import dataclass, field

import numpy as np

COLOUR_COUNT = 31
"""Colours that contact bits can represent. MuJoCo's are signed integers, so the last bit is not used."""

_FREE, _NO, _YES = -1, 0, 1


@dataclass
class CollisionMasks:
    """Contact filtering of one group."""

    contype: np.ndarray
    """Bits that a geom has, shape [geom]."""
    conaffinity: np.ndarray
    """Bits that a geom touches, shape [geom]."""
    filter_parent: bool
    """Whether MuJoCo filters neighbours across a joint itself."""
    excludes: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of MuJoCo's bodies that never touch."""
    pairs: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of geoms that may touch although their bits do not match."""
    colour_count: int = 0
    """Colours that the geoms need."""


def assign_masks(
    body: np.ndarray,
    weld: np.ndarray,
    weld_parent: np.ndarray,
    allowed: np.ndarray,
    mocap: np.ndarray | None = None,
    held: np.ndarray | None = None,
) -> CollisionMasks:
    """Return bits, excludes and pairs for geoms.

    Args:
        body: MuJoCo's body of each geom, shape [geom].
        weld: First of the bodies welded together, for each of MuJoCo's bodies, 0 being the world, shape
            [nbody].
        weld_parent: `weld` of the body above, for each of MuJoCo's bodies, shape [nbody].
        allowed: Which geoms may touch, symmetric, shape [geom, geom].
        mocap: Mocap body that each of MuJoCo's bodies is or is welded to, 0 for none, shape [nbody].
        held: The same of the body above each moving body, 0 for others, shape [nbody]. MuJoCo filters the two
            by its rule of parents, though they are those of a body and the world.
    """
    relation = np.where(allowed, _YES, _NO)
    root = weld[body]
    relation[root[:, None] == root[None, :]] = _FREE  # MuJoCo never lets them touch
    above = weld_parent[root]
    neighbours = (root[:, None] == above[None, :]) | (above[:, None] == root[None, :])
    neighbours &= (root[:, None] != 0) & (root[None, :] != 0)
    filtered = neighbours
    if mocap is not None and held is not None:
        beside = held[root][:, None] == mocap[body][None, :]
        beside &= held[root][:, None] != 0
        filtered = neighbours | beside | beside.T
    filter_parent = not (filtered & (relation == _YES)).any()
    if filter_parent:
        relation[neighbours] = _FREE
    colours, table = _colour(relation)
    excludes: list[tuple[int, int]] = []
    if _bit_count(table) > COLOUR_COUNT:
        excludes = _exclude_bodies(body, relation)
        for first, second in excludes:
            both = (body[:, None] == first) & (body[None, :] == second)
            relation[both | both.T] = _FREE
        colours, table = _colour(relation)
    return _masks_of(colours, table, relation, filter_parent, excludes)


def _masks_of(
    colours: np.ndarray,
    table: np.ndarray,
    relation: np.ndarray,
    filter_parent: bool,
    excludes: list[tuple[int, int]],
) -> CollisionMasks:
    touching = np.flatnonzero((table == _YES).any(axis=1))
    # If bits run out, the colours with the fewest geoms get none, since each of their pairs must be listed.
    size = np.bincount(colours, minlength=len(table))[touching]
    kept = np.sort(touching[np.argsort(-size, kind="stable")][:COLOUR_COUNT])
    contype = np.zeros(len(table), dtype=np.int64)
    conaffinity = np.zeros(len(table), dtype=np.int64)
    for bit, colour in enumerate(kept):
        contype[colour] = 1 << bit
        partners = kept[table[colour, kept] == _YES]
        conaffinity[partners] |= 1 << bit
    named = np.setdiff1d(touching, kept)
    uncoloured = np.isin(colours, named)
    first, second = np.nonzero(np.triu((relation == _YES) & (uncoloured[:, None] | uncoloured[None, :]), 1))
    return CollisionMasks(
        contype=contype[colours],
        conaffinity=conaffinity[colours],
        filter_parent=filter_parent,
        excludes=excludes,
        pairs=list(zip(first.tolist(), second.tolist(), strict=True)),
        colour_count=len(touching),
    )


def _bit_count(table: np.ndarray) -> int:
    return int((table == _YES).any(axis=1).sum())


def _colour(relation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the colour of each geom, and which colours touch, shape [colour, colour]."""
    count = len(relation)
    colours = np.full(count, -1, dtype=np.int64)
    merged = np.zeros((0, count), dtype=relation.dtype)  # per colour: what its geoms say about each geom
    table = np.zeros((0, 0), dtype=relation.dtype)
    for geom in range(count):
        row = relation[geom]
        said = np.full(len(table), _FREE, dtype=relation.dtype)  # about the colours so far
        for other in range(len(table)):
            values = row[colours == other]
            said[other] = values.max(initial=_FREE)
        clash = (merged != _FREE) & (row[None, :] != _FREE) & (merged != row[None, :])
        table_clash = (table != _FREE) & (said[None, :] != _FREE) & (table != said[None, :])
        fitting = np.flatnonzero(~clash.any(axis=1) & ~table_clash.any(axis=1))
        if len(fitting):
            colour = int(fitting[0])
        else:
            colour = len(table)
            merged = np.vstack([merged, np.full((1, count), _FREE, dtype=relation.dtype)])
            table = np.pad(table, ((0, 1), (0, 1)), constant_values=_FREE)
            said = np.append(said, _FREE)
        colours[geom] = colour
        merged[colour] = np.maximum(merged[colour], row)
        table[colour] = np.maximum(table[colour], said)
        table[:, colour] = table[colour]
    return colours, table


def _exclude_bodies(body: np.ndarray, relation: np.ndarray) -> list[tuple[int, int]]:
    """Return the pairs of bodies of which no geoms touch, though MuJoCo would let them."""
    bodies = np.unique(body)
    members = (body[None, :] == bodies[:, None]).astype(np.int64)
    forbidden = members @ (relation == _NO).astype(np.int64) @ members.T
    required = members @ (relation == _YES).astype(np.int64) @ members.T
    first, second = np.nonzero(np.triu((forbidden > 0) & (required == 0), 1))
    return [(int(bodies[a]), int(bodies[b])) for a, b in zip(first, second, strict=True)]
