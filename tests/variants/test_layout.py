"""Layouts and slots: who shares what, and what a slot is called."""

import mujoco
import numpy as np
import pytest

import pluriverse as pv
from pluriverse.types import GeoType
from pluriverse.variants import SceneCfg, VariantEntityCfg, VariantMode, make_scene
from tests.variants.objects import arm_builder, ball_builder, box_builder, mesh_spec, pile_builder, world_rows


def scene_of(variants, *, count=None, **options):
    mode = options.pop("mode", VariantMode.ANY)
    assignment = options.pop("assignment", None)
    entity = VariantEntityCfg(variants=variants, mode=mode, assignment=assignment)
    return make_scene(
        SceneCfg(num_envs=count or len(variants), entities={"object": entity}, **options), device="cpu"
    )


def test_slots_are_the_union_of_what_variants_have():
    """One visual and two collision meshes, one and four: five slots, two of them off for the first."""
    scene = scene_of({"sphere": mesh_spec(1, 2), "cone": mesh_spec(1, 4)}, mode=VariantMode.SINGLE_LAYOUT)
    (slots,) = scene.slots("object")
    assert [(slot.body_path, slot.role, slot.ordinal) for slot in slots] == [
        ("/prop", "visual", 0),
        ("/prop", "collision", 0),
        ("/prop", "collision", 1),
        ("/prop", "collision", 2),
        ("/prop", "collision", 3),
    ]
    assert [sorted(slot.filled_by) for slot in slots] == [["cone", "sphere"]] * 3 + [["cone"]] * 2
    assert slots[3].filled_by["cone"].endswith("prop_collision_2")
    assert world_rows(scene.model, "shape_enabled", 0).tolist() == [True, True, True, False, False]
    assert world_rows(scene.model, "shape_enabled", 1).tolist() == [True] * 5
    labels = [label for label in scene.model.shape_label if "pad" in label]
    assert labels[:2] == ["object/pluriverse/pad/prop/collision/2", "object/pluriverse/pad/prop/collision/3"]
    assert len(scene.model.templates) == 1


def test_primitive_shapes_and_materials_travel_with_the_variant():
    """A box and a ball share one layout of two slots, and each world has the material of its own."""
    scene = scene_of({"box": box_builder(mu=0.7), "ball": ball_builder()})
    (slots,) = scene.slots("object")
    assert [slot.type for slot in slots] == [GeoType.BOX, GeoType.SPHERE]
    assert world_rows(scene.model, "shape_enabled", 0).tolist() == [True, False]
    assert world_rows(scene.model, "shape_enabled", 1).tolist() == [False, True]
    assert world_rows(scene.model, "shape_material_mu", 0)[0] == np.float32(0.7)


def test_other_bodies_or_joints_make_another_layout():
    scene = scene_of(
        {"box": box_builder(), "pile": pile_builder(3), "arm": arm_builder(2), "ball": ball_builder()}
    )
    assert [len(slots) for slots in scene.slots("object")] == [2, 3, 2]
    assert scene.entities["object"].layout_of.tolist() == [0, 1, 2, 0]
    np.testing.assert_array_equal(np.diff(scene.model.body_world_start.numpy()[:5]), [1, 3, 2, 1])


def test_variants_do_not_share_a_layout_that_filters_apart():
    """Two boxes of one body collide with those of another body in one variant, and not in the other."""

    def make(filtered):
        builder = pile_builder(2)
        if filtered:
            builder.add_shape_collision_filter_pair(0, 1)
        return builder

    scene = scene_of({"with": make(False), "without": make(True), "again": make(True)})
    assert scene.entities["object"].layout_of.tolist() == [0, 1, 1]


def test_joints_of_other_names_are_other_joints():
    left, right = arm_builder(2), arm_builder(2)
    right.joint_label[1] = "arm/elbow"
    assert len(scene_of({"left": left, "right": right}).slots("object")) == 2


def free_spec(change):
    spec = mesh_spec()
    change(spec)
    return spec


def add_child(spec):
    spec.body("prop").add_body(name="lid").add_geom(size=(0.1, 0.1, 0.1))


def add_hinge(spec):
    body = spec.body("prop").add_body(name="lid")
    body.add_joint(axis=(0, 0, 1))
    body.add_geom(size=(0.1, 0.1, 0.1))


def add_ball(spec):
    spec.body("prop").add_geom(size=(0.1, 0.1, 0.1))


def add_sensor(spec):
    spec.add_sensor(type=mujoco.mjtSensor.mjSENS_FRAMEPOS, objtype=mujoco.mjtObj.mjOBJ_BODY, objname="prop")


def give_inertia(spec):
    body = spec.body("prop")
    body.explicitinertial = 1
    body.mass = 1.0
    body.inertia = (0.1, 0.1, 0.1)


def give_full_inertia(spec):
    body = spec.body("prop")
    body.explicitinertial = 1
    body.mass = 1.0
    spec.body("prop").fullinertia = (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("change", "topic"),
    [
        (add_child, "body tree: it has /lid"),
        (add_hinge, "body tree"),
        (add_ball, "primitive geoms: it has .*SPHERE"),
        (add_sensor, "sensors"),
        (give_inertia, "how inertia is given: .*diagonal.*from geoms"),
        (give_full_inertia, "how inertia is given: .*fullinertia.*from geoms"),
    ],
)
def test_a_single_layout_names_who_differs_in_what(change, topic):
    """What the form with one layout does not allow is an error that names the variant and the mismatch."""
    variants = {"first": mesh_spec(), "second": free_spec(change)}
    with pytest.raises(
        ValueError, match=f"entity 'object', variant 'second' differs from variant 'first' in .*{topic}"
    ):
        scene_of(variants, mode=VariantMode.SINGLE_LAYOUT)


def test_a_single_layout_needs_a_floating_base():
    variants = {"held": mesh_spec(free=False), "free": mesh_spec()}
    with pytest.raises(ValueError, match=r"variant 'held' has the roots \[FIXED\].*free joint"):
        scene_of(variants, mode=VariantMode.SINGLE_LAYOUT)


def test_the_names_of_padding_are_reserved():
    with pytest.raises(ValueError, match="begins with 'pluriverse/pad/', which is reserved"):
        scene_of({"one": box_builder(label="pluriverse/pad/box")})
    spec = mesh_spec()
    spec.meshes[0].name = "pluriverse/pad/mesh"
    spec.geoms[0].meshname = "pluriverse/pad/mesh"
    with pytest.raises(ValueError, match="variant 'one': the name 'pluriverse/pad/mesh' begins with"):
        scene_of({"one": spec})


def test_what_is_no_asset_is_named():
    with pytest.raises(TypeError, match="entity 'object', variant 'one': a int is no asset"):
        scene_of({"one": 3})
    with pytest.raises(ValueError, match=r"entity 'object', variant 'one'.*suffix '\.txt'"):
        scene_of({"one": "thing.txt"})
    with pytest.raises(ValueError, match="entity 'object', variant 'one' has no bodies"):
        scene_of({"one": pv.ModelBuilder()})


def test_meshes_of_no_shape_are_left_out():
    """A model has the hulls that collide and the meshes that are seen, not those that hulls came from."""
    scene = scene_of({"sphere": mesh_spec(1, 2), "cone": mesh_spec(0, 1, 0.1)})
    used = set(scene.model.shape_source_index.numpy().tolist()) | set(
        scene.entities["object"].rows[0].arrays["shape_source_index"].ravel().tolist()
    )
    assert used - {-1} == set(range(len(scene.model.meshes)))


def test_whether_a_shape_is_seen_travels_too():
    """Colliders are seen where a variant has nothing else to show; they fill the same slots all the same."""
    from pluriverse.types import ShapeFlags

    scene = scene_of({"shown": mesh_spec(1, 1), "bare": mesh_spec(0, 1)})
    assert len(scene.slots("object")[0]) == 2
    flags = np.array([world_rows(scene.model, "shape_flags", world) for world in range(2)])
    # The visual slot is seen where it is filled, the collider where there is nothing else.
    assert ((flags & ShapeFlags.VISIBLE) != 0).tolist() == [[True, False], [False, True]]


def test_custom_attributes_are_not_lost_in_a_shared_layout():
    """Variants that differ in the values of custom attributes have layouts of their own, and keep them."""

    def make(grip):
        builder = box_builder(0.05 + 0.01 * grip)
        builder.add_custom_attribute(
            pv.ModelBuilder.CustomAttribute("grip", float, pv.Model.AttributeFrequency.BODY)
        )
        builder.custom_attributes["grip"].values[0] = grip
        return builder

    scene = scene_of({"weak": make(1.0), "strong": make(2.0), "also weak": make(1.0)})
    assert scene.entities["object"].layout_of.tolist() == [0, 1, 0]
    assert scene.model.grip.numpy().tolist() == [1.0, 2.0, 1.0]


def test_builders_of_assets_can_be_prepared():
    """What MuJoCo alone knows of a file is kept if its attributes are declared first."""
    from pluriverse.solvers.mujoco import SolverMuJoCo

    def make(condim):
        spec = mesh_spec(0, 1)
        spec.geoms[0].condim = condim
        return spec

    options = {"prepare_builder": SolverMuJoCo.register_custom_attributes, "share_layouts": False}
    scene = scene_of({"plain": make(3), "rolling": make(6)}, **options)
    assert scene.model.mujoco.condim.numpy()[:2].tolist() == [3, 6]
