"""Views of bodies, joints, shapes and worlds by label."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse import Entity
from pluriverse.selection import BodyView, JointView, ShapeView, WorldView

from .robots import GROUND_LABEL, different_worlds, equal_worlds, fill_with_numbers


def test_bodies_by_label():
    """One entry per body and world; where worlds have different numbers, one after the other."""
    model = different_worlds()
    state = model.state()
    numbers = fill_with_numbers(state.body_qd)
    boxes = BodyView(model, "box")
    assert boxes.row_shape == (3, 1)
    assert boxes.world_ids.numpy().tolist() == [0, 1, 2]
    found = [body for body, label in enumerate(model.body_label) if label == "box"]
    np.testing.assert_array_equal(
        boxes.get_attribute("body_qd", state, copy=True).numpy()[:, 0], numbers[found]
    )
    knees = BodyView(model, "knee*")
    assert knees.row_shape == (knees.count,)
    assert knees.body_labels == [label for label in model.body_label if label.startswith("knee")]
    shapes = ShapeView(model, "knee*")
    np.testing.assert_array_equal(knees.layout(Entity.SHAPE).index, shapes.row_ids)


def test_joints_of_different_types_are_ragged():
    """The root of a walker has 7 coordinates, that of an arm one."""
    model = different_worlds()
    roots = JointView(model, "root", worlds=[0, 2, 3])
    assert np.diff(roots.offsets(Entity.JOINT_COORD)).tolist() == [7, 1, 7, 1]
    only = JointView(model, "root", joint_types=[pv.JointType.REVOLUTE])
    assert only.get_attribute("joint_q", model.state()).shape == (2, 1, 1)
    with pytest.raises(KeyError, match="has one of the types"):
        JointView(model, "root", joint_types=[pv.JointType.BALL])


def test_shapes_that_all_worlds_share():
    model = equal_worlds()
    ground = ShapeView(model, GROUND_LABEL)
    assert ground.row_world.tolist() == [-1]
    ground.set_attribute("shape_material_mu", model, 0.25)
    assert model.shape_material_mu.numpy()[model.shape_label.index(GROUND_LABEL)] == 0.25
    assert ground.get_attribute("shape_is_solid", model).numpy().all()
    ground.set_attribute("shape_is_solid", model, False)
    solid = model.shape_is_solid.numpy()
    assert np.flatnonzero(~solid).tolist() == ground.row_ids.tolist()


def test_worlds_hold_all_their_entities():
    """Rows of a world view are the ranges of the worlds, as a box where the worlds are equal."""
    model = equal_worlds()
    state = model.state()
    numbers = fill_with_numbers(state.joint_q)
    worlds = WorldView(model)
    assert worlds.get_attribute("joint_q", state).shape == (3, 1, model.joint_coord_count // 3)
    np.testing.assert_array_equal(worlds.get_attribute("joint_q", state).numpy().reshape(-1), numbers)
    worlds.set_gravity([[0.0, 0.0, -1.0]], indices=[1])
    np.testing.assert_array_equal(model.gravity.numpy()[:, 2], np.float32([-9.81, -1.0, -9.81]))

    mixed = different_worlds()
    some = WorldView(mixed, [1, 3])
    start = mixed.body_world_start.numpy()
    assert some.layout(Entity.BODY).index.tolist() == [
        *range(start[1], start[2]),
        *range(start[3], start[4]),
    ]
    mass = some.get_attribute_padded("body_mass", mixed).numpy()
    assert mass.shape == (2, 3)
    assert (mass > 0.0).tolist() == some.padding_mask(Entity.BODY).numpy().tolist()


def test_constraints_of_worlds_are_switched():
    """Equality constraints belong to worlds, and may be switched off world by world."""
    pair = pv.ModelBuilder()
    bodies = [pair.add_body(mass=1.0, inertia=np.eye(3)) for _ in range(2)]
    pair.add_equality_constraint_weld(*bodies)
    builder = pv.ModelBuilder()
    builder.replicate(pair, 3)
    model = builder.finalize("cpu")
    worlds = WorldView(model)
    worlds.set_attribute("equality_constraint_enabled", model, False, indices=[1])
    assert model.equality_constraint_enabled.numpy().tolist() == [True, False, True]
    worlds.set_attribute("equality_constraint_polycoef", model, 0.5, indices=[2])
    assert model.equality_constraint_polycoef.numpy()[:, 4].tolist() == [0.0, 0.0, 0.5]


def test_values_on_the_device_are_not_read_back():
    """A recorded write of a ragged view follows the values."""
    model = different_worlds()
    knees, state = JointView(model, "knee*"), model.state()
    values = wp.zeros((knees.count, 1), dtype=float, device="cpu")
    knees.set_attribute("joint_q", state, values)
    with wp.ScopedCapture(device="cpu") as capture:
        knees.set_attribute("joint_q", state, values)
    wanted = fill_with_numbers(values)
    wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(knees.get_attribute("joint_q", state, copy=True).numpy(), wanted)
