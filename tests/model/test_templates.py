"""Templates: worlds are alike exactly if all of their structure is equal."""

import numpy as np
import pytest

from pluriverse import ModelBuilder, ShapeFlags
from pluriverse.model import templates
from pluriverse.model.templates import find_equal_worlds
from tests.builder.robots import make_arm, make_pile


def random_tables(rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return tables of few different small worlds."""
    result = []
    for columns in (2, 1, 0):
        counts = rng.integers(0, 3, 40)
        start = np.concatenate([[0], np.cumsum(counts)])
        result.append((rng.integers(-1, 1, (start[-1], columns)), start))
    return result


def expected_kinds(tables: list[tuple[np.ndarray, np.ndarray]]) -> list[int]:
    """Return the kinds of worlds, compared one by one."""
    seen: dict[tuple[object, ...], int] = {}
    kinds = []
    for world in range(len(tables[0][1]) - 1):
        key = tuple(
            (stop - begin, values[begin:stop].tobytes())
            for values, start in tables
            for begin, stop in [(int(start[world]), int(start[world + 1]))]
        )
        kinds.append(seen.setdefault(key, len(seen)))
    return kinds


@pytest.mark.parametrize("seed", range(5))
def test_equal_worlds_are_found_in_order_of_appearance(seed):
    """The same kinds as a comparison of all worlds with each other finds."""
    tables = random_tables(np.random.default_rng(seed))
    assert find_equal_worlds(tables).tolist() == expected_kinds(tables)


def test_a_hash_collision_does_not_merge_different_worlds(monkeypatch):
    """Rows that share a hash are still compared entry by entry."""
    tables = random_tables(np.random.default_rng(7))
    monkeypatch.setattr(templates, "_hash_rows", lambda rows: np.zeros(len(rows), dtype=np.uint64))
    kinds = find_equal_worlds(tables).tolist()
    assert kinds == expected_kinds(tables)


@pytest.mark.parametrize(
    ("name", "value", "same"),
    [
        ("body_mass", 2.0, True),
        ("shape_material_mu", 0.1, True),
        ("shape_scale", 0.3, True),
        ("joint_limit_upper", 0.5, True),
        ("joint_q", 0.5, True),
        ("shape_collision_group", 2, False),
        ("shape_flags", int(ShapeFlags.VISIBLE), False),
        ("shape_collision_filter_parent", False, False),
        ("joint_collision_filter_parent", False, False),
    ],
)
def test_properties_differ_within_a_template_and_structure_does_not(name, value, same):
    """What users randomize stays per entity; what decides about trees and pairs makes another template."""
    scene = ModelBuilder()
    scene.replicate(make_arm(), 3)
    column = getattr(scene, name)
    first = len(column) // 3
    column[first if name != "joint_q" else first + 1] = value
    model = scene.finalize("cpu")
    assert model.world_template.tolist() == ([0, 0, 0] if same else [0, 1, 0])


def test_unlike_robots_are_unlike_templates():
    """Kinds are numbered as they appear; a hidden shape is no difference."""
    scene = ModelBuilder()
    for source in (make_pile(2), make_arm(), make_pile(2), make_pile(3)):
        scene.add_world(source)
    scene.shape_flags[0] &= ~int(ShapeFlags.VISIBLE)
    model = scene.finalize("cpu")
    assert model.world_template.tolist() == [0, 1, 0, 2]
    assert [template.worlds.tolist() for template in model.templates] == [[0, 2], [1], [3]]
