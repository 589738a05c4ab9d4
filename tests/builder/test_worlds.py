"""Copies of builders: equal however they are made, in their place, costing only what they hold."""

import copy

import numpy as np
import pytest

from pluriverse import ModelBuilder
from pluriverse.builder.worlds import world_offsets
from pluriverse.model import poses
from tests.builder.robots import assert_models_equal, make_arm, make_pile, model_arrays

# Poses are computed in double precision and stored in single: a few roundings of coordinates below 8 m.
FLOAT32_POSE = 8.0 * 2.0**-23


def test_replicate_equals_repeated_add_world_bit_for_bit():
    """replicate() is add_world() many times over."""
    one, other = ModelBuilder(), ModelBuilder()
    for builder in (one, other):
        builder.add_ground_plane()
    one.replicate(make_arm(), 5)
    for _ in range(5):
        other.add_world(make_arm())
    assert_models_equal(one.finalize("cpu"), other.finalize("cpu"))


def test_add_world_equals_a_world_opened_by_hand_bit_for_bit():
    """add_world() is begin_world(), add_builder(), end_world()."""
    one, other = ModelBuilder(), ModelBuilder()
    one.replicate(make_arm(), 2)
    one.add_world(make_pile())
    for source in (make_arm(), make_arm(), make_pile()):
        other.begin_world()
        other.add_builder(source)
        other.end_world()
    assert_models_equal(one.finalize("cpu"), other.finalize("cpu"))


def test_worlds_authored_call_by_call_equal_copies():
    """Bodies added between begin_world() and end_world() make the same model as copies of a builder."""

    def author(builder: ModelBuilder) -> None:
        for level in range(3):
            box = builder.add_body(xform=((0.0, 0.0, 0.2 + 0.2 * level), (0.0, 0.0, 0.0, 1.0)), label="box")
            builder.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1, label="side")

    by_hand, source, copied = ModelBuilder(), ModelBuilder(), ModelBuilder()
    for _ in range(3):
        by_hand.begin_world()
        author(by_hand)
        by_hand.end_world()
    author(source)
    copied.replicate(source, 3)
    assert_models_equal(by_hand.finalize("cpu"), copied.finalize("cpu"))
    assert len(by_hand.finalize("cpu").templates) == 1


def test_adding_does_not_change_the_source():
    """The builder that is copied stays what it was."""
    source = make_arm()
    before = copy.deepcopy(source)
    scene = ModelBuilder()
    scene.replicate(source, 3, spacing=(1.0, 2.0, 3.0))
    scene.joint_q[:] = 0.5
    assert_models_equal(source.finalize("cpu"), before.finalize("cpu"))


def test_a_moved_copy_is_the_original_seen_from_elsewhere():
    """Moving a world by X moves every body pose by X and turns every velocity."""
    turn = poses.quat_from_axis_angle(np.array([0.0, 0.6, 0.8]), np.array(1.1))
    offset = np.concatenate([[1.0, -2.0, 0.5], turn])
    scene = ModelBuilder()
    scene.add_world(make_arm())
    scene.add_world(make_arm(), xform=offset)
    model = scene.finalize("cpu")
    count = model.body_count // 2
    body_q = model.body_q.numpy().astype(np.float64)
    np.testing.assert_allclose(
        body_q[count:, :3], poses.compose(offset, body_q[:count])[:, :3], rtol=0.0, atol=FLOAT32_POSE
    )
    expected = poses.quat_to_matrix(poses.compose(offset, body_q[:count])[:, 3:])
    np.testing.assert_allclose(
        poses.quat_to_matrix(body_q[count:, 3:]), expected, rtol=0.0, atol=FLOAT32_POSE
    )
    body_qd = model.body_qd.numpy().astype(np.float64).reshape(-1, 2, 3)
    quats = np.broadcast_to(turn, (count, 2, 4))
    np.testing.assert_allclose(
        body_qd[count:], poses.rotate(quats, body_qd[:count]), rtol=0.0, atol=FLOAT32_POSE
    )
    table = [index for index, label in enumerate(model.shape_label) if label == "table"]
    shape_q = model.shape_transform.numpy().astype(np.float64)[table]
    np.testing.assert_allclose(shape_q[1], poses.compose(offset, shape_q[0]), rtol=0.0, atol=FLOAT32_POSE)
    assert len(model.templates) == 1


@pytest.mark.parametrize(
    ("count", "spacing", "expected"),
    [
        (3, (0.0, 0.0, 0.0), [(0, 0, 0)] * 3),
        (3, (2.0, 0.0, 0.0), [(-2, 0, 0), (0, 0, 0), (2, 0, 0)]),
        (
            3,
            (0.0, 0.0, 2.0),
            [(0, 0, 0), (0, 0, 2), (0, 0, 4)],
        ),  # z is not centred: worlds stand on the ground
        (5, (2.0, 2.0, 0.0), [(-2, -1, 0), (0, -1, 0), (2, -1, 0), (-2, 1, 0), (0, 1, 0)]),
        (4, (0.0, 2.0, 4.0), [(0, -1, 0), (0, 1, 0), (0, -1, 4), (0, 1, 4)]),
        (1, (2.0, 2.0, 2.0), [(0, 0, 0)]),
    ],
)
def test_spacing_lays_worlds_out_in_a_centred_grid(count, spacing, expected):
    """The layout that scene files document."""
    np.testing.assert_allclose(world_offsets(count, np.array(spacing)), expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("side", [2, 3, 4, 5, 6, 7, 10])
def test_a_cube_of_worlds_is_a_cube(side):
    """side³ worlds fill side layers along each axis, although side³ ** (1/3) rounds to something else."""
    offsets = world_offsets(side**3, np.array([1.0, 1.0, 1.0]))
    assert np.ptp(offsets, axis=0).tolist() == [side - 1.0] * 3


def test_spacing_moves_free_bodies_and_world_joints():
    """World i stands at its offset: free joints, frames of joints to the world, shapes of the world."""
    scene = ModelBuilder()
    scene.replicate(make_arm(), 2, spacing=(4.0, 0.0, 0.0))
    model = scene.finalize("cpu")
    start = model.body_world_start.numpy()
    body_q = model.body_q.numpy()
    shift = body_q[start[1] : start[2]] - body_q[start[0] : start[1]]
    np.testing.assert_allclose(shift, [[4.0, 0, 0, 0, 0, 0, 0]] * len(shift), rtol=0.0, atol=FLOAT32_POSE)


def test_labels_repeat_or_take_a_prefix():
    """Labels stay unchanged from world to world unless a prefix is asked for."""
    source = make_pile(1)
    scene = ModelBuilder()
    scene.replicate(source, 2)
    scene.add_world(source, label_prefix="left")
    assert scene.body_label == ["body_0", "body_0", "left/body_0"]
    assert scene.joint_label[2] == "left/body_0_free_joint"
    assert scene.shape_label == ["shape_0", "shape_0", "left/shape_0"]
    assert scene.articulation_label[1:] == ["body_0_articulation", "left/body_0_articulation"]
    assert scene.world_label == ["world_0", "world_1", "world_2"]


def test_copies_in_one_world_equal_builders_added_to_it_one_by_one():
    """replicate(separate_worlds=False) is add_builder() many times over, in an open world or globally."""
    place = (1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    elsewhere = (-1.0, 0.0, 0.5, 0.0, 0.0, 0.6, 0.8)
    for in_world in (True, False):
        one, other = ModelBuilder(), ModelBuilder()
        for builder in (one, other):
            if in_world:
                builder.begin_world()
        one.replicate(
            make_arm(), 2, separate_worlds=False, xforms=[place, elsewhere], label_prefixes=["left", None]
        )
        other.add_builder(make_arm(), place, label_prefix="left")
        other.add_builder(make_arm(), elsewhere)
        for builder in (one, other):
            if in_world:
                builder.end_world()
        assert one.world_count == int(in_world)
        assert_models_equal(one.finalize("cpu"), other.finalize("cpu"))


def test_poses_and_prefixes_of_copies_equal_worlds_added_one_by_one():
    """replicate(xforms, label_prefixes) gives each world its own; names of the count mean the same."""
    xforms = [(float(copy), 0.0, 0.0, 0.0, 0.0, 0.0, 1.0) for copy in range(3)]
    one, other = ModelBuilder(), ModelBuilder()
    one.replicate(make_arm(), world_count=3, xforms=xforms, label_prefixes=["a", "b", "a"])
    for xform, prefix in zip(xforms, ["a", "b", "a"], strict=True):
        other.add_world(make_arm(), xform, label_prefix=prefix)
    assert_models_equal(one.finalize("cpu"), other.finalize("cpu"))
    assert one.body_label == other.body_label


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, TypeError, "number of copies once"),
        ({"copy_count": 2, "world_count": 2}, TypeError, "number of copies once"),
        ({"copy_count": True}, ValueError, "copy_count is True"),
        ({"copy_count": 2, "xforms": [None]}, ValueError, "xforms has 1 entries, but there are 2 copies"),
        ({"copy_count": 1, "label_prefixes": []}, ValueError, "label_prefixes has 0 entries"),
        ({"copy_count": 1, "label_prefixes": ["a"], "label_prefix": "b"}, ValueError, "give one"),
        ({"copy_count": 1, "xforms": [None], "spacing": (1, 0, 0)}, ValueError, "both spacing and xforms"),
    ],
)
def test_contradicting_arguments_of_replicate_are_refused(arguments, error, message):
    builder = ModelBuilder()
    with pytest.raises(error, match=message):
        builder.replicate(make_arm(), **arguments)
    assert builder.world_count == builder.body_count == 0


def test_gravity_belongs_to_the_world():
    """A world has the gravity it was opened with, else that of its builder, else that of the scene."""
    plain, moon, sideways = make_pile(1), make_pile(1), make_pile(1)
    moon.gravity = -1.62
    sideways.gravity = (1.0, 0.0, 0.0)
    scene = ModelBuilder(gravity=-5.0)
    scene.add_world(plain)
    scene.add_world(moon)
    scene.begin_world(gravity=(0.0, 0.0, -3.0))
    scene.add_builder(plain)
    scene.end_world()
    scene.begin_world()
    scene.add_builder(sideways)
    scene.end_world()
    model = scene.finalize("cpu")
    expected = [[0, 0, -5], [0, 0, -1.62], [0, 0, -3], [1, 0, 0]]
    np.testing.assert_array_equal(model.gravity.numpy(), np.array(expected, dtype=np.float32))


def test_gravity_that_cannot_be_used_is_reported():
    """Two builders of different gravity in one world: the second one's is not dropped silently."""
    scene = ModelBuilder()
    one, other = make_pile(1), make_pile(1)
    one.gravity, other.gravity = -1.0, -2.0
    scene.begin_world()
    scene.add_builder(one)
    with pytest.warns(
        UserWarning, match=r"-2\.0\] m/s² of the added builder is not used, because world 0 has"
    ):
        scene.add_builder(other)


def test_set_gravity_changes_the_worlds_asked_for():
    """set_gravity() takes a vector, a z component, or a vector per world."""
    scene = ModelBuilder()
    scene.replicate(make_pile(1), 3)
    model = scene.finalize("cpu")
    model.set_gravity(-1.0)
    model.set_gravity((1.0, 2.0, 3.0), world=1)
    np.testing.assert_array_equal(model.gravity.numpy(), [[0, 0, -1], [1, 2, 3], [0, 0, -1]])
    model.set_gravity([[0, 0, -2], [0, 0, -4]], world=[0, 2])
    np.testing.assert_array_equal(model.gravity.numpy()[:, 2], [-2, 3, -4])
    with pytest.raises(IndexError, match="world 3 does not exist; the model has worlds 0 to 2"):
        model.set_gravity(-1.0, world=3)
    with pytest.raises(ValueError, match=r"gravity is \[1.0, 2.0\]"):
        model.set_gravity((1.0, 2.0))


def test_an_extra_copy_costs_its_own_state_and_parameters_only():
    """Every array of a model is constant or grows by the same number of bytes with each copy.

    What a copy costs is bounded by the entities it holds, times the bytes of their properties.
    """

    def size_of(count: int) -> dict[str, int]:
        scene = ModelBuilder()
        scene.add_ground_plane()
        scene.replicate(make_arm(), count)
        return {name: array.nbytes for name, array in model_arrays(scene.finalize("cpu")).items()}

    few, more, many = size_of(2), size_of(10), size_of(18)
    for name in few:
        assert many[name] - more[name] == more[name] - few[name], name
    for name in few:
        if name.startswith("topology.") and not name.startswith("topology.world_"):
            assert many[name] == few[name], f"{name} is kept once per template"
    per_copy = (sum(many.values()) - sum(few.values())) / 16
    arm = make_arm()
    per_entity = {
        "body_count": 28 + 24 + 4 + 36 + 12 + 4 + 4,
        "joint_count": 4 * 9 + 2 * 28 + 8 + 1 + 4,
        "joint_coord_count": 4,
        "joint_dof_count": 19 * 4 + 12,
        "articulation_count": 8,
        "shape_count": 7 * 4 + 28 + 12 * 4 + 11 * 4 + 1,
    }
    bound = sum(getattr(arm, name) * size for name, size in per_entity.items()) + 30 * 4
    assert per_copy <= bound


def test_meshes_are_shared_by_content():
    """Copies, and meshes of equal content, share one entry."""
    from pluriverse import Mesh

    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=np.float32)
    hull = Mesh(corners, np.array([[0, 1, 3]])).convex_hull()

    def make_source() -> ModelBuilder:
        source = ModelBuilder()
        body = source.add_body()
        source.add_shape_convex_hull(body, mesh=Mesh(hull.vertices, hull.indices))
        source.add_shape_sphere(body)
        return source

    scene = ModelBuilder()
    scene.replicate(make_source(), 3)
    scene.add_world(make_source())
    model = scene.finalize("cpu")
    assert len(model.meshes) == 1
    assert model.shape_source_index.numpy().tolist() == [0, -1] * 4
    assert model.shape_source[:2] == [model.meshes[0], None]
    assert len(model.templates) == 1


def test_misuse_of_worlds_is_explained():
    """Worlds do not nest, and builders do not contain themselves."""
    scene, source = ModelBuilder(), make_pile(1)
    with pytest.raises(RuntimeError, match="no world is open"):
        scene.end_world()
    scene.begin_world(label="first")
    with pytest.raises(RuntimeError, match=r"world 0 \('first'\) is still open"):
        scene.begin_world()
    with pytest.raises(RuntimeError, match="still open"):
        scene.add_world(source)
    with pytest.raises(RuntimeError, match="still open"):
        scene.replicate(source, 2)
    with pytest.raises(RuntimeError, match=r"finalize: world 0 \('first'\) is still open"):
        scene.finalize("cpu")
    scene.end_world()
    with pytest.raises(ValueError, match="cannot be added to itself"):
        scene.add_builder(scene)
    with pytest.raises(ValueError, match="1 worlds of its own; worlds do not nest"):
        source.add_world(scene)
    with pytest.raises(ValueError, match="copy_count is -1"):
        scene.replicate(source, -1)


def test_a_model_without_worlds_is_one_world_listed_as_global():
    """*_world is -1 and *_world_start [n, n, n], but the topology covers everything as world 0."""
    model = make_arm().finalize("cpu")
    assert model.world_count == 1
    assert set(model.body_world.numpy()) == {-1}
    assert model.body_world_start.numpy().tolist() == [6, 6, 6]
    assert model.joint_dof_world_start.numpy().tolist() == [12, 12, 12]
    topology = model.topology
    for name in ("world_body", "world_joint", "world_coord", "world_dof", "world_shape"):
        assert getattr(topology, name).numpy().tolist() == [0]
    assert topology.template_body.numpy().tolist() == [0, 6]
    scene = ModelBuilder()
    scene.add_world(make_arm())
    alone = scene.finalize("cpu")
    for name in ("node_joint", "dof_row", "pair_shape0", "pair_shape1"):
        np.testing.assert_array_equal(getattr(topology, name).numpy(), getattr(alone.topology, name).numpy())


def test_an_empty_builder_makes_an_empty_model():
    """Nothing in, nothing out; also no worlds asked for, and worlds without anything in them."""
    model = ModelBuilder().finalize("cpu")
    assert (model.world_count, model.body_count, model.shape_count) == (1, 0, 0)
    scene = ModelBuilder()
    scene.add_ground_plane()
    scene.replicate(ModelBuilder(), 2)
    scene.replicate(make_pile(), 0)
    model = scene.finalize("cpu")
    assert model.world_count == 2
    assert model.shape_world_start.numpy().tolist() == [1, 1, 1, 1]
    assert model.state().joint_q.size == 0


@pytest.mark.parametrize("place", [0, 5, 63])
def test_a_world_is_built_the_same_alone_and_among_others(place):
    """The arrays of a world, its initial poses included, do not depend in one bit on the other worlds."""
    xform = (1.3, -0.7, 0.2, *poses.quat_from_axis_angle(np.array([0.6, 0.8, 0.0]), np.array(0.3)))
    alone, crowd = ModelBuilder(), ModelBuilder()
    alone.add_world(make_arm(), xform=xform)
    for world in range(64):
        if world == place:
            crowd.add_world(make_arm(), xform=xform)
        else:
            crowd.add_world(make_arm() if world % 3 else make_pile())
    ours, theirs = alone.finalize("cpu"), crowd.finalize("cpu")
    columns = {
        "body": ("body_q", "body_qd", "body_mass", "body_inertia", "body_com"),
        "shape": ("shape_transform", "shape_scale", "shape_aabb_lower", "shape_collision_radius"),
        "joint_coord": ("joint_q",),
        "joint_dof": ("joint_qd", "joint_axis", "joint_target_ke", "joint_limit_upper"),
    }
    for kind, names in columns.items():
        begin, end = getattr(theirs, f"{kind}_world_start").numpy()[place : place + 2]
        for name in names:
            mine = getattr(ours, name).numpy()
            assert mine.tobytes() == getattr(theirs, name).numpy()[begin:end].tobytes(), name
