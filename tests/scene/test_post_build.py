"""Edits after building: which entries they select and what they write."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluriverse.scene import SapSceneLoaderError
from pluriverse.scene.errors import FieldError
from pluriverse.scene.selectors import Selection
from pluriverse.types import GeoType, ShapeFlags

from .scene_files import BOX, CHAIN, load_text


def edited(folder, *operations, text=CHAIN):
    """Return the model of a scene with post-build operations."""
    return load_text(
        folder, f"{text}post_build:\n" + "".join(f"  - {operation}\n" for operation in operations)
    ).model


# ten entries, so that the expected indices can be read off
@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, range(10)),
        ({"range": "all"}, range(10)),
        ({"range": "head:3"}, [0, 1, 2]),
        ({"range": "tail:3"}, [7, 8, 9]),
        ({"range": "tail:99"}, range(10)),
        ({"range": "from:6"}, [6, 7, 8, 9]),
        ({"range": "from:-2"}, [8, 9]),
        ({"range": [2, 5]}, [2, 3, 4]),
        ({"range": [2, None]}, range(2, 10)),
        ({"range": [-3, -1]}, [7, 8]),
        ({"range": [8, 99]}, [8, 9]),
        ({"index": 4}, [4]),
        ({"index": -1}, [9]),
    ],
)
def test_selectors_select_the_listed_indices(selector, expected):
    assert Selection.model_validate(selector).indices(10) == list(expected)


@settings(deadline=None)
@given(st.integers(-20, 20), st.integers(-20, 20) | st.none(), st.integers(1, 15))
def test_ranges_are_python_slices(start, end, length):
    expected = list(range(length))[start:end]
    selection = Selection.model_validate({"range": [start, end]})
    if expected:
        assert selection.indices(length) == expected
    else:
        with pytest.raises(FieldError, match="selects nothing"):
            selection.indices(length)


def test_set_array_by_value_values_and_from_array(tmp_path):
    model = edited(
        tmp_path,
        "{op: set_array, array: joint_armature, value: 0.5}",
        "{op: set_array, array: joint_armature, range: [1, 3], values: [1 / 4, 2]}",
        "{op: set_array, array: joint_q, range: tail:2, values: [0.1, 0.2]}",
        "{op: set_array, array: joint_target_pos, range: head:2, from_array: joint_q, "
        "from_range: {range: from:1}}",
        "{op: set_array, array: shape_material_mu, index: 0, value: 0}",
        "{op: set_array, array: joint_target_mode, index: -1, value: velocity}",
    )
    np.testing.assert_allclose(model.joint_armature.numpy(), [0.5, 0.25, 2])
    np.testing.assert_allclose(model.joint_q.numpy(), [0, 0.1, 0.2], rtol=2.0**-23)
    np.testing.assert_allclose(model.joint_target_pos.numpy(), [0.1, 0.2, 0], rtol=2.0**-23)
    np.testing.assert_allclose(model.shape_material_mu.numpy(), [0, 1, 1, 1])
    assert model.joint_target_mode.numpy().tolist() == [0, 0, 2]


def test_every_named_array_can_be_edited(tmp_path):
    """The names in the format's list are arrays of the model, and an edit arrives in each."""
    shape = "margin gap material_ke material_tau material_mu material_restitution material_mu_torsional"
    shape += " material_mu_rolling material_kh collision_group flags"
    joint = "q qd target_pos target_vel target_ke target_kd target_mode armature"
    names = [f"shape_{name}" for name in shape.split()] + [f"joint_{name}" for name in joint.split()]
    for name in names:
        model = edited(tmp_path, f"{{op: set_array, array: {name}, index: 1, value: 3}}")
        assert getattr(model, name).numpy()[1] == 3


def test_copy_array_copies_ranges_between_arrays(tmp_path):
    model = edited(
        tmp_path,
        "{op: set_array, array: joint_q, values: [0.25, 0.5, 0.75]}",
        "{op: copy_array, src: joint_q, dst: joint_target_pos}",
        "{op: copy_array, src: joint_q, dst: joint_target_vel, src_range: {index: 2}, dst_range: {index: 0}}",
    )
    np.testing.assert_array_equal(model.joint_target_pos.numpy(), [0.25, 0.5, 0.75])
    np.testing.assert_array_equal(model.joint_target_vel.numpy(), [0.75, 0, 0])


@pytest.mark.parametrize(
    ("selector", "joints"),
    [
        ("joint: shoulder", [0]),
        ("joint: arm/slide", [1]),
        ("joint_label: left/wrist", [2]),  # the end of a label after a slash
        ("joint: 1", [1]),
        ("joint: -1", [2]),
        ("joints: [wrist, arm/shoulder]", [0, 2]),
        ("joint_labels: [slide]", [1]),
        ("label_prefix: arm/s", [0, 1]),
        ("match: left", [2]),
        ("range: from:1", [1, 2]),
        ("index: 0", [0]),
        ("range: all", [0, 1, 2]),
    ],
)
def test_joint_selectors(tmp_path, selector, joints):
    model = edited(
        tmp_path,
        f"{{op: set_joint_targets, {selector}, ke: 10, kd: 2, mode: position_velocity}}",
        f"{{op: set_joint_armature, {selector}, value: 0.5}}",
    )
    chosen = np.isin(np.arange(3), joints)
    np.testing.assert_array_equal(model.joint_target_ke.numpy(), 10.0 * chosen)
    np.testing.assert_array_equal(model.joint_target_kd.numpy(), 2.0 * chosen)
    np.testing.assert_array_equal(model.joint_target_mode.numpy(), 3 * chosen)
    np.testing.assert_array_equal(model.joint_armature.numpy(), 0.5 * chosen)


def test_joints_of_several_degrees_of_freedom_are_set_as_a_whole(tmp_path):
    model = edited(tmp_path, "{op: set_joint_armature, joint: box_free, value: 2}", text=BOX)
    np.testing.assert_array_equal(model.joint_armature.numpy(), [2] * 6)


def test_set_joint_q_and_copying_it_to_targets(tmp_path):
    text = CHAIN.replace("bodies:", "bodies:\n  - {id: box, shapes: [{}]}").replace(
        "joints:", "joints:\n  - {id: free, type: free, child: box}"
    )
    model = edited(
        tmp_path,
        "{op: set_joint_q, joint: free, offset: 2, value: 3}",
        "{op: set_joint_q, joint: arm/slide, value: 0.5}",
        "{op: set_joint_q, index: -1, value: 0.25}",
        "{op: copy_joint_q_to_joint_targets, match: r}",  # arm/... and free, which has no target position
        text=text,
    )
    np.testing.assert_array_equal(model.joint_q.numpy(), [0, 0, 3, 0, 0, 0, 1, 0, 0.5, 0.25])
    np.testing.assert_array_equal(model.joint_target_pos.numpy(), [0] * 7 + [0.5, 0.25])


def test_add_shape_to_bodies_and_to_the_world(tmp_path):
    model = edited(
        tmp_path,
        "{op: add_shape, body: upper, type: sphere, radius: 0.05, label: knob, cfg: {density: 0}}",
        "{op: add_shape, hx: 1, hy: 1, hz: 0.1, label: table}",
    )
    label = model.shape_label
    assert model.shape_body.numpy()[[label.index("knob"), label.index("table")]].tolist() == [0, -1]
    assert model.shape_world.numpy()[label.index("table")] == 0  # each world has its own table


def test_scale_sphere_shapes(tmp_path):
    model = edited(tmp_path, "{op: scale_sphere_shapes, factor: 0.5}")
    np.testing.assert_allclose(model.shape_scale.numpy()[:3, 0], [0.1, 0.05, 0.05], rtol=2.0**-23)


def test_set_attr_acts_on_what_is_added_later(tmp_path):
    model = edited(
        tmp_path,
        "{op: set_attr, name: gravity, value: -2}",
        "{op: set_attr, name: rigid_gap, value: 0.5}",
        "{op: add_shape, type: box, body: tool}",
    )
    np.testing.assert_array_equal(model.gravity.numpy(), [[0, 0, -2]])
    np.testing.assert_allclose(model.shape_gap.numpy()[:4], [0.1, 0.1, 0.1, 0.5], rtol=2.0**-23)


WRONG = {
    "unmatched prefix": (
        "{op: set_joint_targets, label_prefix: robot/, ke: 1}",
        "label_prefix: no joint label starts with 'robot/'; there are arm/shoulder",
    ),
    "unmatched substring": ("{op: set_joint_targets, match: knee}", "match: no joint label contains 'knee'"),
    "unknown joint": ("{op: set_joint_armature, joint: wirst, value: 1}", "did you mean arm/left/wrist"),
    "unknown joint in a list": (
        "{op: set_joint_targets, joints: [wrist, w]}",
        r"joints\[1\]: there is no joint 'w'",
    ),
    "joint index": (
        "{op: set_joint_targets, joint: 3}",
        "joint: there is no joint 3; this world has 3 joints",
    ),
    "two selectors": (
        "{op: set_joint_targets, joint: wrist, range: all}",
        "'joint' and 'range' exclude each other",
    ),
    "index and range": (
        "{op: set_array, array: joint_q, index: 0, range: all, value: 1}",
        "exclude each other",
    ),
    "index": (
        "{op: set_array, array: joint_q, index: 3, value: 1}",
        "index: index 3 is out of range; the array has 3",
    ),
    "empty range": ("{op: set_array, array: joint_q, range: [2, 1], value: 1}", "range: .*selects nothing"),
    "head of none": (
        "{op: set_array, array: joint_q, range: head:0, value: 1}",
        "range: 'head:0' selects nothing",
    ),
    "misspelt range": (
        "{op: set_array, array: joint_q, range: first:2, value: 1}",
        "range: 'first:2' is not a range",
    ),
    "range without number": (
        "{op: set_array, array: joint_q, range: head:x, value: 1}",
        "'x' is not an integer",
    ),
    "negative head": (
        "{op: set_array, array: joint_q, range: head:-1, value: 1}",
        "a negative number of entries",
    ),
    "half a range": ("{op: set_array, array: joint_q, range: [1], value: 1}", r"\[1\] is not a range"),
    "no value": ("{op: set_array, array: joint_q}", "give one of 'value', 'values' and 'from_array'"),
    "two values": ("{op: set_array, array: joint_q, value: 1, values: [1]}", "this has value and values"),
    "number of values": (
        "{op: set_array, array: joint_q, values: [1, 2]}",
        "values: 2 values for 3 selected entries",
    ),
    "type of value": (
        "{op: set_array, array: joint_q, values: [1, 2, up]}",
        r"values\[2\]: 'up' is not a number",
    ),
    "negative stiffness": ("{op: set_array, array: joint_target_ke, value: -1}", "value: -1 is negative"),
    "fractional group": (
        "{op: set_array, array: shape_collision_group, value: 1.5}",
        "value: 1.5 is not an integer",
    ),
    "unknown mode": (
        "{op: set_joint_targets, joint: wrist, mode: positon}",
        "mode: 'positon' is not a drive mode",
    ),
    "unknown mode in an array": (
        "{op: set_array, array: joint_target_mode, value: 9}",
        "value: 9 is not a drive mode",
    ),
    "lengths of a copy": (
        "{op: copy_array, src: shape_gap, dst: joint_q, src_range: {range: head:2}}",
        "2 entries of shape_gap do not fit 3 entries of joint_q",
    ),
    "length of from_array": (
        "{op: set_array, array: joint_q, from_array: joint_qd, from_range: {index: 0}}",
        "from_range: 1 entries of joint_qd do not fit 3",
    ),
    "from_range alone": (
        "{op: set_array, array: joint_q, value: 1, from_range: {index: 0}}",
        "needs 'from_array'",
    ),
    "range that is no mapping": (
        "{op: set_array, array: joint_q, from_array: joint_qd, from_range: head:2}",
        "from_range: 'head:2' is not a mapping",
    ),
    "negative armature": ("{op: set_joint_armature, value: -1}", "value: -1 is out of range"),
    "targets of free joints": (
        "{op: copy_joint_q_to_joint_targets, range: all}",
        "name the joints by 'joint', 'joints', 'label_prefix' or 'match'",
    ),
    "misspelt argument": ("{op: set_joint_targets, joint: wrist, stiffness: 1}", "unknown key 'stiffness'"),
    "missing argument": ("{op: set_joint_q, joint: wrist}", "value: this required key is missing"),
    "operation without name": ("{joint: wrist, value: 1}", "the required key 'op' is missing"),
    "unknown body": ("{op: add_shape, body: lowr}", "body: there is no body 'lowr'; did you mean lower?"),
    "unknown shape": ("{op: add_shape, type: bx}", "there is no type 'bx'; did you mean box?"),
    "size of another shape": ("{op: add_shape, type: sphere, hx: 1}", "hx: unknown key 'hx'"),
    "gravity of two numbers": (
        "{op: set_attr, name: gravity, value: [1, 2]}",
        "value: .* is not a list of 3 numbers",
    ),
    "operation that is no mapping": ("set_array", "'set_array' is not a mapping"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_operations_name_their_place(tmp_path, name):
    operation, message = WRONG[name]
    with pytest.raises(SapSceneLoaderError, match=rf"scene\.yaml:11: post_build\[0\].*{message}"):
        edited(tmp_path, operation)


def test_an_ambiguous_joint_names_the_candidates(tmp_path):
    text = CHAIN.replace("arm/slide", "other/shoulder")
    with pytest.raises(
        SapSceneLoaderError, match=r"ambiguous, it fits arm/shoulder \(index 0\), other/shoulder"
    ):
        edited(
            tmp_path,
            "{op: set_joint_q, joint: shoulder, value: 1}",
            text=text.replace("id: shoulder", "id: s"),
        )


def test_nothing_to_scale_or_to_aim_at_is_an_error(tmp_path):
    with pytest.raises(SapSceneLoaderError, match="no sphere to scale"):
        edited(tmp_path, "{op: scale_sphere_shapes, factor: 2}", text=BOX)
    with pytest.raises(SapSceneLoaderError, match="none of the selected joints has a target position"):
        edited(tmp_path, "{op: copy_joint_q_to_joint_targets, joint: box_free}", text=BOX)


def test_values_of_another_array_come_from_the_same_range_by_default(tmp_path):
    """Targets from coordinates, beside a free joint that has more coordinates than targets."""
    text = (
        CHAIN.replace("joints:", "  - {id: cube, shapes: [{type: box}]}\njoints:")
        + "  - {id: free, type: free, child: cube}\n"
        + "post_build:\n  - {op: set_array, array: joint_q, range: head:3, values: [0.1, 0.2, 0.3]}\n"
        + "  - {op: set_array, array: joint_target_pos, range: head:3, from_array: joint_q}\n"
    )
    model = load_text(tmp_path, text).model
    np.testing.assert_allclose(model.joint_target_pos.numpy()[:3], [0.1, 0.2, 0.3], rtol=1e-6)


def write_ring(folder):
    """Write the mesh of a ring, four times as wide as high, that lies in the xy plane."""
    import trimesh

    trimesh.creation.annulus(0.1, 0.2, 0.1).export(folder / "ring.stl")
    return "  - {id: ring, transform: {p: [0, 0, 2]}, shapes: [{type: mesh, path: ring.stl, label: rim}]}\n"


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("bounding_box", GeoType.BOX),
        ("convex_hull", GeoType.CONVEX_MESH),
        ("bounding_sphere", GeoType.SPHERE),
    ],
)
def test_meshes_are_approximated(tmp_path, method, kind):
    """A box around the ring has its extent; masses stay those of the ring."""
    text = "ground: false\n" + CHAIN.replace("joints:", write_ring(tmp_path) + "joints:")
    text += "  - {id: free, type: free, child: ring}\n"
    before = load_text(tmp_path, text).model
    model = edited(tmp_path, f"{{op: approximate_meshes, method: {method}}}", text=text)
    shape = list(model.shape_label).index("rim")
    assert before.shape_type.numpy()[shape] == GeoType.MESH
    assert model.shape_type.numpy()[shape] == kind
    np.testing.assert_array_equal(model.body_mass.numpy(), before.body_mass.numpy())
    if method == "bounding_box":
        np.testing.assert_allclose(sorted(model.shape_scale.numpy()[shape]), [0.05, 0.2, 0.2], rtol=0.02)


def test_only_meshes_that_collide_are_approximated_and_only_those_chosen(tmp_path):
    text = "ground: false\n" + CHAIN.replace("joints:", write_ring(tmp_path) + "joints:")
    text += "  - {id: free, type: free, child: ring}\n"
    text = text.replace(
        "label: rim}",
        "label: rim}, {type: mesh, path: ring.stl, label: paint, cfg: {has_shape_collision: false}}",
    )
    model = edited(tmp_path, "{op: approximate_meshes, method: bounding_box, match: rim}", text=text)
    kinds = dict(zip(model.shape_label, model.shape_type.numpy().tolist(), strict=True))
    assert (kinds["rim"], kinds["paint"]) == (GeoType.BOX, GeoType.MESH)
    # A scene without such a mesh has nothing to approximate.
    edited(tmp_path, "{op: approximate_meshes, method: bounding_box}")
    for operation, message in (
        (
            "{op: approximate_meshes, match: rym}",
            r"post_build\[0\].match: no label of a mesh.*did you mean rim",
        ),
        ("{op: approximate_meshes, method: box}", r"post_build\[0\].method: 'box' is not allowed here"),
        ("{op: approximate_meshes, method: bounding_box, options: {a: 1}}", "no options"),
    ):
        with pytest.raises(SapSceneLoaderError, match=message):
            edited(tmp_path, operation, text=text)


def test_a_visual_copy_of_an_approximated_mesh_may_stay(tmp_path):
    text = "ground: false\n" + CHAIN.replace("joints:", write_ring(tmp_path) + "joints:")
    text += "  - {id: free, type: free, child: ring}\n"
    operation = "{op: approximate_meshes, method: bounding_box, keep_visual_shapes: true}"
    model = edited(tmp_path, operation, text=text)
    kinds = model.shape_type.numpy()
    collides = (model.shape_flags.numpy() & ShapeFlags.COLLIDE_SHAPES) != 0
    assert not collides[kinds == GeoType.MESH].any()
    assert (kinds == GeoType.BOX).sum() == 2


FLOATING = """
schema_version: 1
bodies:
  - {id: base, mass: 2, inertia: [0.1, 0.1, 0.1]}
  - {id: leg, mass: 1, inertia: [0.1, 0.1, 0.1]}
joints:
  - {id: root, type: free, child: base}
  - {id: knee, type: revolute, parent: base, child: leg, axis: y}
"""


def test_targets_of_all_joints_leave_out_the_free_joint_of_a_floating_robot(tmp_path):
    """A robot's joints are driven by one line; the joint that lets it float has no drive, which is said."""
    with pytest.warns(UserWarning, match=r"post_build\[0\].*leaves out 'root': a free joint has no drive"):
        model = edited(tmp_path, "{op: set_joint_targets, range: all, ke: 100, kd: 5}", text=FLOATING)
    np.testing.assert_array_equal(model.joint_target_ke.numpy(), [0.0] * 6 + [100.0])
    assert model.joint_target_mode.numpy()[:6].tolist() == [0] * 6
    with pytest.raises(SapSceneLoaderError, match=r"'root': a free joint has no drive"):
        edited(tmp_path, "{op: set_joint_targets, joint: root, ke: 100}", text=FLOATING)
