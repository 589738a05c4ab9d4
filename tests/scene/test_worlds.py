"""Replication, and several kinds of world in one file."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluriverse.scene import SapSceneLoaderError, load_scene
from pluriverse.scene.layout import allocate_worlds

from .scene_files import BOX, CHAIN, load_text, write_scene

MIXED = """
simulation: {max_rigid_contact: 64}
builder: {gravity: -9.81}
replicate: {spacing: [0, 0, 0]}
worlds:
  - count: 2
    name: boxes
    bodies: [{id: box, shapes: [{}]}]
    joints: [{id: free, type: free, child: box}]
  - scene: chain.yaml
    count: 3
    gravity: [0, 0, -1.62]
  - bodies: [{id: ball, shapes: [{type: sphere, radius: 0.1}]}]
    joints: [{id: free, type: free, child: ball}]
    post_build: [{op: set_attr, name: gravity, value: -3}]
    max_rigid_contact: 7
"""


def test_the_layout_of_worlds(tmp_path):
    """Five worlds at the default spacing of two metres stand in rows of three, centred."""
    scene = load_text(tmp_path, BOX, num_worlds=5)
    expected = [(-2, -1), (0, -1), (2, -1), (-2, 1), (0, 1)]
    np.testing.assert_array_equal(scene.state.joint_q.numpy().reshape(5, 7)[:, :2], expected)
    np.testing.assert_array_equal(scene.state.body_q.numpy()[:, :2], expected)
    assert scene.model.body_world.numpy().tolist() == [0, 1, 2, 3, 4]


def test_spacing_along_one_axis_makes_a_line_and_z_is_not_centred(tmp_path):
    scene = load_text(tmp_path, BOX + "replicate: {num_worlds: 3, spacing: [0, 1, 0]}")
    np.testing.assert_array_equal(scene.state.body_q.numpy()[:, 1], [-1, 0, 1])
    scene = load_text(tmp_path, BOX + "replicate: {num_worlds: 3, spacing: [0, 0, 1]}")
    np.testing.assert_array_equal(scene.state.body_q.numpy()[:, 2], [1, 2, 3])


def test_the_number_of_worlds(tmp_path):
    """The argument wins over `simulation`, this over `replicate`."""
    text = BOX + "replicate: {num_worlds: 2}\n"
    assert load_text(tmp_path, text).model.world_count == 2
    text += "simulation: {num_worlds: 3}\n"
    assert load_text(tmp_path, text).model.world_count == 3
    assert load_text(tmp_path, text, num_worlds=4).model.world_count == 4
    with pytest.raises(ValueError, match="num_worlds is 0"):
        load_text(tmp_path, text, num_worlds=0)


def test_what_hangs_on_the_world_moves_with_it(tmp_path):
    """Joints to the world and shapes of the world are placed with their world; the ground is shared."""
    text = (
        CHAIN + "post_build: [{op: add_shape, label: table}]\nreplicate: {num_worlds: 2, spacing: [4, 0, 0]}"
    )
    scene = load_text(tmp_path, text)
    model = scene.model
    tables = [index for index, label in enumerate(model.shape_label) if label == "table"]
    np.testing.assert_array_equal(model.shape_transform.numpy()[tables, 0], [-2, 2])
    upper = [index for index, label in enumerate(model.body_label) if label == "upper"]
    np.testing.assert_array_equal(scene.state.body_q.numpy()[upper, 0], [-2, 2])
    assert scene.shape_labels.count("ground_plane") == 1
    assert scene.body_labels == ["upper", "lower", "tool"] * 2


def test_kinds_of_world(tmp_path):
    write_scene(tmp_path, CHAIN, "chain.yaml")
    scene = load_text(tmp_path, MIXED)
    model = scene.model
    assert scene.kind_names == ("boxes", "chain", "kind_2")
    assert scene.kind_of_world == (0, 0, 1, 1, 1, 2)
    np.testing.assert_array_equal(np.diff(model.body_world_start.numpy()[:-1]), [1, 1, 3, 3, 3, 1])
    gravity = [-9.81, -9.81, -1.62, -1.62, -1.62, -3]
    np.testing.assert_allclose(model.gravity.numpy()[:, 2], gravity, rtol=2.0**-23)
    assert scene.settings.max_rigid_contact == (64, 64, 64, 64, 64, 7)
    assert scene.shape_labels.count("ground_plane") == 1
    assert len(model.templates) == 3


def test_kinds_share_a_given_number_of_worlds(tmp_path):
    write_scene(tmp_path, CHAIN, "chain.yaml")
    scene = load_text(tmp_path, MIXED, num_worlds=12)
    assert [scene.kind_of_world.count(kind) for kind in range(3)] == [4, 6, 2]
    with pytest.raises(SapSceneLoaderError, match="2 worlds cannot hold 3 kinds of world"):
        load_text(tmp_path, MIXED, num_worlds=2)


def test_kinds_are_placed_one_after_the_other(tmp_path):
    write_scene(tmp_path, CHAIN, "chain.yaml")
    text = MIXED.replace("spacing: [0, 0, 0]", "spacing: [1, 0, 0]")
    scene = load_text(tmp_path, text)
    roots = scene.model.body_world_start.numpy()[:-2]
    np.testing.assert_array_equal(scene.state.body_q.numpy()[roots, 0], np.arange(6) - 2.5)


def test_a_kind_holds_the_same_as_its_scene_alone(tmp_path):
    """The world of a mixed scene is that of the scene it was taken from, builder defaults included."""
    text = (
        CHAIN
        + "builder: {rigid_gap: 0.03, defaults: {shape: {mu: 0.3}, joint: {armature: 0.2}}}\nground: false"
    )
    alone = load_scene(write_scene(tmp_path, text, "chain.yaml"), device="cpu").model
    mixed = load_text(tmp_path, "ground: false\nworlds: [{scene: chain.yaml}]").model
    for name in ("body_mass", "body_inertia", "shape_material_mu", "shape_gap", "joint_armature", "joint_q"):
        np.testing.assert_array_equal(getattr(alone, name).numpy(), getattr(mixed, name).numpy())


def test_scenes_with_another_ground_do_not_mix(tmp_path):
    write_scene(tmp_path, BOX + "ground: {height: -1}", "low.yaml")
    with pytest.raises(
        SapSceneLoaderError, match=r"worlds\[0\]\.scene: all worlds share the ground of this file"
    ):
        load_text(tmp_path, "worlds: [{scene: low.yaml}]")
    assert load_text(tmp_path, "ground: {height: -1}\nworlds: [{scene: low.yaml}]").model.shape_count == 2


def test_mixed_scenes_do_not_nest(tmp_path):
    write_scene(tmp_path, MIXED, "inner.yaml")
    with pytest.raises(SapSceneLoaderError, match=r"'inner.yaml' has 'worlds' itself"):
        load_text(tmp_path, "worlds: [{scene: inner.yaml}]")


def test_an_error_in_a_scene_of_a_kind_names_that_file(tmp_path):
    inner = write_scene(tmp_path, BOX.replace("child: box", "child: bx"), "inner.yaml")
    with pytest.raises(SapSceneLoaderError, match=rf"{inner}:7: joints\[0\]\.child: there is no body 'bx'"):
        load_text(tmp_path, "worlds: [{scene: inner.yaml}]")
    with pytest.raises(
        SapSceneLoaderError, match=r"scene\.yaml:3: worlds\[0\]\.joints\[0\]\.child: there is no body 'bx'"
    ):
        load_text(
            tmp_path,
            "worlds:\n  - bodies: [{id: box, shapes: [{}]}]\n    joints: [{id: free, type: free, child: bx}]",
        )


def test_a_cap_for_some_kinds_only_is_an_error(tmp_path):
    write_scene(tmp_path, CHAIN, "chain.yaml")
    with pytest.raises(
        SapSceneLoaderError, match="max_rigid_contact is set for some kinds of world but not for 'boxes'"
    ):
        load_text(tmp_path, MIXED.replace("simulation: {max_rigid_contact: 64}", ""))


@settings(deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(0, 500))
def test_shares_add_up_and_are_within_one_of_proportion(counts, extra):
    total = len(counts) + extra
    shares = allocate_worlds(total, counts)
    assert sum(shares) == total
    assert min(shares) >= 1
    exact = np.array(counts) * total / sum(counts)
    if exact.min() >= 1.0:
        assert np.abs(np.array(shares) - exact).max() < 1.0
    if total == sum(counts):
        assert shares == counts


def test_worlds_may_have_gravities_in_turn(tmp_path):
    """Of all worlds of a scene, or of one kind; begun again where there are more worlds."""
    text = BOX + "replicate: {num_worlds: 5, gravities: [-9.81, [1, 0, -1.62]]}\n"
    gravity = load_text(tmp_path, text).model.gravity.numpy()
    np.testing.assert_allclose(gravity[:, 2], [-9.81, -1.62, -9.81, -1.62, -9.81], rtol=1e-6)
    np.testing.assert_allclose(gravity[:, 0], [0, 1, 0, 1, 0])
    write_scene(tmp_path, BOX, "box.yaml")
    outer = (
        "worlds:\n  - {scene: box.yaml, count: 3, gravities: [-1, -2]}\n"
        "  - {scene: box.yaml, name: heavy, count: 2, gravity: -20}\n"
    )
    gravity = load_text(tmp_path, outer).model.gravity.numpy()
    np.testing.assert_allclose(gravity[:, 2], [-1, -2, -1, -20, -20])
    gravity = load_text(tmp_path, outer, num_worlds=10).model.gravity.numpy()
    np.testing.assert_allclose(gravity[:, 2], [-1, -2] * 3 + [-20] * 4)


def test_worlds_of_other_gravities_fall_apart(tmp_path):
    """Each by g t**2 / 2 (1 + h / t) with steps h, as if it were alone."""
    text = (
        BOX
        + "simulation: {dt: 0.01}\nground: false\nreplicate: {num_worlds: 3, gravities: [-9.81, -1.62, 0]}\n"
    )
    simulation = load_text(tmp_path, text).simulation(threads=1)
    simulation.step(50)
    fallen = 1.0 - simulation.state.body_q.numpy()[:, 2]
    # A step moves by the velocity at its end.
    expected = np.array([9.81, 1.62, 0]) * 0.01**2 * 50 * 51 / 2
    np.testing.assert_allclose(fallen, expected, rtol=1e-4, atol=1e-6)
