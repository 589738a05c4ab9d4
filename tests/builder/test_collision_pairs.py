"""Candidate pairs: which shapes may touch, against a plain statement of the rules."""

import itertools

import numpy as np
import pytest

from pluriverse import GeoType, JointType, Model, ModelBuilder, ShapeConfig, ShapeFlags
from pluriverse.model.collision_pairs import groups_collide
from tests.builder.robots import make_arm, make_pile

UP = (0.0, 0.0, 0.0, 1.0)


def pairs_of(model: Model, world: int = 0) -> list[tuple[int, int]]:
    """Return the candidate pairs of a world as flat shape indices, in their order."""
    topology = model.topology
    template = int(topology.world_template.numpy()[world])
    begin, end = topology.template_pair.numpy()[template : template + 2]
    first = int(topology.world_shape.numpy()[world])

    def flat(codes: np.ndarray) -> list[int]:
        return [int(code) + first if code >= 0 else -1 - int(code) for code in codes]

    return list(
        zip(
            flat(topology.pair_shape0.numpy()[begin:end]),
            flat(topology.pair_shape1.numpy()[begin:end]),
            strict=True,
        )
    )


def expected_pairs(builder: ModelBuilder, world: int) -> set[frozenset[int]]:
    """Return the pairs that the rules allow, looked at one by one."""

    def root(body: int) -> int:
        joint = list(builder.joint_child).index(body)
        parent = int(builder.joint_parent[joint])
        fixed = builder.joint_type[joint] == JointType.FIXED
        return root(parent) if fixed and parent >= 0 else body

    def moves(body: int) -> bool:
        while body >= 0:
            joint = list(builder.joint_child).index(body)
            if builder.joint_type[joint] != JointType.FIXED:
                return True
            body = int(builder.joint_parent[joint])
        return False

    def adjacent(a: int, b: int) -> bool:
        return any(
            parent >= 0 and not_filtered and {root(int(parent)), root(int(child))} == {a, b}
            for parent, child, not_filtered in zip(
                builder.joint_parent, builder.joint_child, builder.joint_collision_filter_parent, strict=True
            )
        )

    shapes = [shape for shape in range(builder.shape_count) if builder.shape_world[shape] in (-1, world)]
    filtered = {frozenset(pair) for pair in builder.shape_collision_filter_pairs}
    allowed = set()
    for a, b in itertools.combinations(shapes, 2):
        bodies = [int(builder.shape_body[shape]) for shape in (a, b)]
        roots = [root(body) if body >= 0 else -1 for body in bodies]
        groups = [int(builder.shape_collision_group[shape]) for shape in (a, b)]
        with_parent = all(builder.shape_collision_filter_parent[[a, b]])
        if not all(builder.shape_flags[[a, b]] & ShapeFlags.COLLIDE_SHAPES):
            continue
        if any(builder.shape_flags[[a, b]] & ShapeFlags.SITE) or not groups_collide(*map(np.array, groups)):
            continue
        if roots[0] == roots[1] or not any(moves(body) for body in bodies):
            continue
        if (min(bodies) >= 0 and with_parent and adjacent(*roots)) or frozenset((a, b)) in filtered:
            continue
        allowed.add(frozenset((a, b)))
    return allowed


def make_random_world(rng: np.random.Generator) -> ModelBuilder:
    """Return a builder of random trees with fixed joints, groups, flags, filters and shapes of the world."""
    builder = ModelBuilder()
    joints = []
    for body in range(7):
        builder.add_link(mass=1.0, inertia=np.eye(3))
        parent = int(rng.integers(-1, body)) if body else -1
        filter_parent = bool(rng.random() < 0.7)
        kind = rng.choice(["fixed", "revolute", "free"] if parent < 0 else ["fixed", "revolute"])
        if kind == "fixed":
            joints.append(builder.add_joint_fixed(parent, body, collision_filter_parent=filter_parent))
        elif kind == "revolute":
            joints.append(builder.add_joint_revolute(parent, body, collision_filter_parent=filter_parent))
        else:
            joints.append(builder.add_joint_free(body))
    builder.add_articulation(joints)
    for _ in range(16):
        config = ShapeConfig(
            density=0.0,
            collision_group=int(rng.integers(-2, 3)),
            collision_filter_parent=bool(rng.random() < 0.8),
            has_shape_collision=bool(rng.random() < 0.9),
            is_site=bool(rng.random() < 0.1),
        )
        geometry = rng.choice([GeoType.SPHERE, GeoType.BOX, GeoType.CAPSULE, GeoType.CONE])
        builder.add_shape(body=int(rng.integers(-1, 7)), type=int(geometry), cfg=config)
    for _ in range(4):
        builder.add_shape_collision_filter_pair(*rng.choice(16, size=2, replace=False).tolist())
    return builder


@pytest.mark.parametrize("seed", range(12))
def test_pairs_follow_the_rules(seed):
    """Random trees, groups, flags and filters: the pairs are those that the rules allow, each once."""
    rng = np.random.default_rng(seed)
    scene = ModelBuilder()
    scene.add_ground_plane()
    for _ in range(2):
        scene.add_world(make_random_world(rng))
    scene.add_shape_box(-1, cfg=ShapeConfig(collision_group=-1))
    for _ in range(3):  # a filter between a shape of a world and a shared one
        scene.add_shape_collision_filter_pair(0, int(rng.integers(1, scene.shape_count - 1)))
    model = scene.finalize("cpu")
    for world in range(2):
        pairs = pairs_of(model, world)
        assert len(set(map(frozenset, pairs))) == len(pairs)
        assert set(map(frozenset, pairs)) == expected_pairs(scene, world)


def test_the_lower_type_comes_first_and_shared_shapes_first_among_equals():
    """Shape 0 of a pair has the lower GeoType; of equal ones the shared shape, then the lower index."""
    scene = ModelBuilder()
    scene.add_shape_box(-1)
    source = ModelBuilder()
    for geometry in (GeoType.BOX, GeoType.SPHERE, GeoType.BOX, GeoType.CAPSULE):
        source.add_shape(body=source.add_body(), type=geometry)
    scene.replicate(source, 2)
    scene.add_ground_plane()
    model = scene.finalize("cpu")
    kind = model.shape_type.numpy()
    shared = model.shape_world.numpy() < 0
    for world in range(2):
        for first, second in pairs_of(model, world):
            assert (kind[first], not shared[first], first) < (kind[second], not shared[second], second)


@pytest.mark.parametrize(
    ("a", "b", "collide"),
    [
        (0, 0, False),
        (0, 1, False),
        (0, -1, False),
        (1, 1, True),
        (1, 2, False),
        (1, -1, True),
        (1, -2, True),
        (-1, -1, False),
        (-1, -2, True),
        (-1, 2, True),
    ],
)
def test_shapes_collide_by_the_signs_of_their_groups(a, b, collide):
    """0 collides with nothing, positive with its own and all negative, negative with all but its own."""
    assert bool(groups_collide(np.array(a), np.array(b))) is collide
    assert bool(groups_collide(np.array(b), np.array(a))) is collide


def test_a_pile_pairs_every_box_with_every_other_and_the_ground():
    """Boxes on a plane, n of them: n (n - 1) / 2 + n pairs."""
    scene = ModelBuilder()
    scene.add_ground_plane()
    scene.add_world(make_pile(64))
    model = scene.finalize("cpu")
    assert len(pairs_of(model)) == 64 * 63 // 2 + 64


def test_an_arm_fixed_to_the_world_still_collides_with_the_ground():
    """The first moving link is filtered against the pedestal that it turns on, not against the world."""
    scene = ModelBuilder()
    scene.add_ground_plane()
    scene.add_world(make_arm())
    model = scene.finalize("cpu")
    pairs = {frozenset(pair) for pair in pairs_of(model)}
    pedestal, upper = model.shape_label.index("shape_0"), model.shape_label.index("shape_1")
    assert frozenset((0, upper)) in pairs
    assert frozenset((pedestal, upper)) not in pairs
    assert frozenset((0, pedestal)) not in pairs


def test_a_filter_of_one_world_leaves_the_others_alone():
    """Filtering a pair in one copy makes that copy another kind of world."""
    scene = ModelBuilder()
    scene.replicate(make_pile(2), 3)
    scene.add_shape_collision_filter_pair(3, 2)
    model = scene.finalize("cpu")
    assert [len(pairs_of(model, world)) for world in range(3)] == [1, 0, 1]
    assert model.world_template.tolist() == [0, 1, 0]


def test_many_shapes_are_paired_in_blocks(monkeypatch):
    """The pairs do not depend on how many shapes are looked at in one go."""
    import pluriverse.model.collision_pairs as module

    scene = ModelBuilder()
    scene.add_ground_plane()
    scene.add_world(make_random_world(np.random.default_rng(99)))
    expected = pairs_of(scene.finalize("cpu"))
    monkeypatch.setattr(module, "PAIR_BLOCK_SIZE", 20)
    assert pairs_of(scene.finalize("cpu")) == expected
