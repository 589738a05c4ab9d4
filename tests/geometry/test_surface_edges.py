"""Edges of triangle meshes: which triangles share them, and whether they close the surface."""

import itertools

import numpy as np
import pytest

from pluriverse.geometry.surface_edges import find_edges, is_closed_surface, rings, side_ends


def random_triangles(count, vertex_count, seed=0):
    """Return triangles of different corners, many edges of which have more than two of them."""
    rng = np.random.default_rng(seed)
    triangles = rng.integers(0, vertex_count, size=(4 * count, 3))
    distinct = (triangles != np.roll(triangles, 1, axis=1)).all(axis=1)
    return triangles[distinct][:count]


def test_edges_are_those_of_a_search_by_hand():
    """Every edge once, sorted, with all its sides; pairs are the edges of two sides."""
    triangles = random_triangles(300, 40)
    edges = find_edges(triangles, 40)
    sides = {}
    for side, ends in enumerate(zip(*side_ends(triangles), strict=True)):
        sides.setdefault(tuple(sorted(int(end) for end in ends)), []).append(side)
    assert list(zip(edges.low.tolist(), edges.high.tolist(), strict=True)) == sorted(sides)
    for number, ends in enumerate(sorted(sides)):
        group = edges.order[edges.start[number] : edges.start[number + 1]]
        assert sorted(group.tolist()) == sides[ends]
        assert (edges.edge[group] == number).all()
    pairs = {tuple(sorted(pair)) for pair in zip(*(part.tolist() for part in edges.pairs()), strict=True)}
    assert pairs == {tuple(group) for group in sides.values() if len(group) == 2}


def test_rings_are_the_neighbours_of_each_vertex():
    triangles = random_triangles(60, 50, seed=3)  # some vertices have no triangle
    start, ring = rings(find_edges(triangles, 50), 50)
    neighbours = [set() for _ in range(50)]
    for first, last in zip(*side_ends(triangles), strict=True):
        neighbours[first].add(int(last))
        neighbours[last].add(int(first))
    assert [ring[a:b].tolist() for a, b in itertools.pairwise(start)] == [
        sorted(group) for group in neighbours
    ]


TETRAHEDRON = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])


@pytest.mark.parametrize(
    ("triangles", "closed"),
    [
        (TETRAHEDRON, True),
        (TETRAHEDRON[:, ::-1], True),
        (TETRAHEDRON[:3], False),
        (np.vstack([TETRAHEDRON[:3], TETRAHEDRON[3:, ::-1]]), False),  # one face is turned over
        (np.vstack([TETRAHEDRON, TETRAHEDRON]), True),
        (np.vstack([TETRAHEDRON, [[0, 0, 1]]]), True),  # a triangle without area runs there and back
        (np.zeros((0, 3), dtype=int), True),
    ],
)
def test_a_surface_is_closed_that_runs_along_each_edge_both_ways(triangles, closed):
    assert is_closed_surface(triangles, 4) is closed
