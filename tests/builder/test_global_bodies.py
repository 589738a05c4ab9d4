"""Bodies of no world, copied into every world: the model is the one that an author would have written."""

import numpy as np
import pytest

from pluriverse import Model, ModelBuilder, Simulation
from pluriverse.mujoco_attributes.choices import TrnType
from pluriverse.mujoco_attributes.registration import register_custom_attributes
from tests.builder.robots import assert_models_equal, make_arm, make_pile

NO_TURN = (0.0, 0.0, 0.0, 1.0)


def make_finger() -> ModelBuilder:
    """Return a finger with a tendon that an actuator pulls, held to a second one by constraints."""
    builder = ModelBuilder()
    register_custom_attributes(builder)
    links = [builder.add_link(mass=1.0, inertia=np.eye(3), label=f"finger_{side}") for side in "ab"]
    joints = [
        builder.add_joint_revolute(-1, links[0], axis="y", custom_attributes={"mujoco:limit_margin": 0.1}),
        builder.add_joint_ball(links[0], links[1], parent_xform=((0.0, 0.0, 0.2), NO_TURN)),
    ]
    builder.add_articulation(joints, label="finger")
    mark = builder.add_site(links[1], label="mark")
    tips = [builder.add_shape_sphere(link, radius=0.03, label="tip") for link in links]
    builder.add_shape_collision_filter_pair(*tips)
    builder.add_equality_constraint_connect(links[1], -1, anchor=(0.0, 0.0, 0.1), label="tie")
    row = builder.add_custom_values(
        {"mujoco:tendon_joint": joints[0], "mujoco:tendon_joint_dof": 0, "mujoco:tendon_coef": 2.0}
    )["mujoco:tendon_joint"]
    builder.add_custom_values(
        {
            "mujoco:tendon_label": "flexor",
            "mujoco:tendon_joint_adr": row,
            "mujoco:tendon_joint_num": 1,
            "mujoco:tendon_articulation": 0,
        }
    )
    for kind, target in ((TrnType.JOINT, 0), (TrnType.TENDON, 0), (TrnType.SITE, mark)):
        builder.add_custom_values(
            {"mujoco:actuator_trntype": kind, "mujoco:actuator_trnid": (target, -1), "mujoco:ctrl": 0.5}
        )
    return builder


def assert_same_attributes(one: Model, other: Model) -> None:
    assert one.custom_frequency_counts == other.custom_frequency_counts
    for name, values in vars(one.mujoco).items():
        theirs = getattr(other.mujoco, name)
        if hasattr(values, "numpy"):
            np.testing.assert_array_equal(values.numpy(), theirs.numpy(), err_msg=name)
        else:
            assert values == theirs, name


def test_copied_bodies_are_those_added_to_each_world_by_hand():
    """Every array, index and label is that of worlds in which the copies were authored first."""
    first, last, worlds = make_finger(), make_pile(1), [make_pile(2), make_arm(), make_finger(), make_pile(2)]
    copied = ModelBuilder()
    copied.add_ground_plane()
    copied.add_builder(first)
    for own in worlds:
        copied.add_world(own)
    copied.add_builder(last)
    copied.add_shape_box(-1, label="shared")
    copied.copy_global_bodies()
    copied.copy_global_bodies()  # twice is once
    by_hand = ModelBuilder()
    register_custom_attributes(by_hand)
    by_hand.add_ground_plane()
    for own in worlds:
        by_hand.begin_world()
        for part in (first, last, own):
            by_hand.add_builder(part)
        by_hand.end_world()
    by_hand.add_shape_box(-1, label="shared")
    one, other = copied.finalize("cpu"), by_hand.finalize("cpu")
    assert_models_equal(one, other)
    assert_same_attributes(one, other)
    assert one.mujoco.actuator_world.numpy().tolist() == [0] * 3 + [1] * 3 + [2] * 6 + [3] * 3
    assert one.world_template.tolist() == [0, 1, 2, 0]


def test_a_shape_of_a_copy_is_filtered_against_shared_and_own_ones():
    """Filtered pairs of a global body hold in every world: with the ground, and with a shape of one world."""
    builder = ModelBuilder()
    floor = builder.add_shape_box(-1, label="floor")
    arm = builder.add_shape_sphere(builder.add_body(label="arm"), radius=0.1, label="hand")
    builder.add_shape_collision_filter_pair(floor, arm)
    for _ in range(2):
        builder.add_world(make_pile(1))
    with pytest.raises(ValueError, match=r"body 'arm' \(index 0\) is global.*copy_global_bodies\(\)"):
        builder.finalize("cpu")
    builder.copy_global_bodies()
    model = builder.finalize("cpu")
    assert model.shape_label == ["floor", "hand", "shape_0", "hand", "shape_0"]
    (template,) = model.templates
    pairs = np.stack([template.pair_shape0, template.pair_shape1], axis=1).tolist()
    assert {frozenset(pair) for pair in pairs} == {frozenset((0, 1)), frozenset((-1, 1))}


def test_copies_live_by_the_gravity_of_their_world():
    """A body that was global falls in each world as the world says."""
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3), xform=((0.0, 0.0, 1.0), NO_TURN))
    for gravity in (-9.81, -1.62):
        builder.begin_world(gravity=gravity)
        builder.end_world()
    builder.copy_global_bodies()
    simulation = Simulation(builder.finalize("cpu"), dt=0.01)
    simulation.step(10)
    np.testing.assert_allclose(simulation.state.body_qd.numpy()[:, 2], [-0.981, -0.162], rtol=1e-5)


def test_nothing_happens_without_worlds_or_bodies_of_none():
    alone = make_arm()
    alone.copy_global_bodies()
    assert_models_equal(alone.finalize("cpu"), make_arm().finalize("cpu"))
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_world(make_pile(2))
    builder.copy_global_bodies()
    assert builder.body_world.tolist() == [0, 0]
    builder.begin_world("open")
    with pytest.raises(RuntimeError, match=r"world 1 \('open'\) is still open"):
        builder.copy_global_bodies()


def test_values_that_only_their_attribute_can_move_are_refused():
    builder = ModelBuilder()
    builder.add_custom_attribute(
        ModelBuilder.CustomAttribute(
            "partner",
            int,
            Model.AttributeFrequency.BODY,
            reference_value_transformer=lambda values, context: values,
        )
    )
    builder.add_body(mass=1.0, inertia=np.eye(3), custom_attributes={"partner": 0})
    builder.add_world(make_pile(1))
    with pytest.raises(ValueError, match=r"'partner' has a reference_value_transformer.*add_builder\(\)"):
        builder.copy_global_bodies()


def test_shared_shapes_stand_before_or_behind_all_worlds():
    """A shape between two worlds would be in the range of one of them."""
    builder = ModelBuilder()
    builder.add_world(make_pile(1))
    builder.add_shape_box(-1, label="late")
    builder.add_world(make_pile(1))
    with pytest.raises(ValueError, match=r"shape 'late' \(index 1\) belongs to no world.*worlds 0 and 1"):
        builder.finalize("cpu")
