"""Columns: the arrays of a builder can be read and written in place."""

import inspect

import numpy as np
import pytest
import warp as wp

from pluriverse import ModelBuilder
from pluriverse.builder.columns import Column, Table
from pluriverse.builder.snapshot import COLUMN_NAMES
from pluriverse.model.schema import MODEL_ARRAYS
from tests.builder.robots import make_arm


def test_a_table_keeps_its_values_while_it_grows():
    """Entry k of a thousand is what was put there, whatever was reallocated since."""
    table = Table({"number": Column(np.int32), "row": Column(np.float64, (2,), 7.0)})
    for index in range(1000):
        assert table.append(number=index) == index
    np.testing.assert_array_equal(table.view("number"), np.arange(1000))
    assert (table.view("row") == 7.0).all()


def test_copies_follow_each_other():
    """extend_copies() appends whole copies, entry by entry."""
    source, table = Table({"x": Column(np.int32)}), Table({"x": Column(np.int32)})
    for value in (1, 2):
        source.append(x=value)
    table.append(x=9)
    assert table.extend_copies(source, 3) == slice(1, 7)
    assert table.view("x").tolist() == [9, 1, 2, 1, 2, 1, 2]


def test_writing_to_the_arrays_reaches_the_model():
    """Single entries, slices and whole columns; warp's own types are taken too."""
    builder = make_arm()
    builder.joint_q[0] = 0.25
    builder.joint_target_ke[1:3] = (5.0, 6.0)
    builder.joint_armature = np.full(builder.joint_dof_count, 0.125)
    builder.joint_X_p[1] = wp.transform((1.0, 2.0, 3.0), wp.quat_identity())
    builder.shape_material_mu[:] = 0.5
    builder.body_mass[0] += 1.0
    builder.joint_qd *= 2.0
    model = builder.finalize("cpu")
    assert model.joint_q.numpy()[0] == 0.25
    assert model.joint_target_ke.numpy()[1:3].tolist() == [5.0, 6.0]
    assert set(model.joint_armature.numpy()) == {0.125}
    assert model.joint_X_p.numpy()[1].tolist() == [1, 2, 3, 0, 0, 0, 1]
    assert set(model.shape_material_mu.numpy()) == {0.5}
    assert model.body_mass.numpy()[0] == np.float32(make_arm().body_mass[0] + 1.0)
    assert model.joint_qd.numpy()[0] == -2.0
    np.testing.assert_array_equal(model.state().joint_q.numpy(), model.joint_q.numpy())


def test_what_follows_from_calls_cannot_be_assigned():
    """Indices and creation poses are read-only, and the message says what to do instead."""
    builder = make_arm()
    with pytest.raises(ValueError, match="joint_parent follows from the arguments"):
        builder.joint_parent[0] = 3
    with pytest.raises(AttributeError, match="body_q follows from the arguments of add_link"):
        builder.body_q = np.zeros((builder.body_count, 7))
    with pytest.raises(ValueError, match=r"joint_q has shape \(8|joint_q has shape \(14"):
        builder.joint_q = np.zeros(3)


def test_the_builder_goes_on_after_finalize():
    """finalize() leaves the builder as it was; more can be added."""
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    first = builder.finalize("cpu")
    builder.add_body(mass=2.0, inertia=np.eye(3))
    second = builder.finalize("cpu")
    assert (first.body_count, second.body_count) == (1, 2)
    second.body_mass.fill_(9.0)
    assert builder.body_mass.tolist() == [1.0, 2.0]


def test_columns_are_the_arrays_of_the_model():
    """What a builder shows under the name of an array of the model has its entity, and becomes that array."""
    builder = make_arm()
    model = builder.finalize("cpu")
    shown = [name for name in COLUMN_NAMES if name in MODEL_ARRAYS]
    given = {name for name in shown if MODEL_ARRAYS[name].entity is not None}
    computed = {"body_q", "joint_target_q", "joint_target_mode"}  # from these, or decided by the gains
    assert len(given) > 60
    for name in given:
        column, array = getattr(builder, name), getattr(model, name).numpy()
        assert len(column) == len(array), name
        if name not in computed:
            np.testing.assert_array_equal(array, column.astype(array.dtype), err_msg=name)


def test_a_wrong_keyword_is_refused_with_the_right_one():
    """Options that methods share are known by name, in messages, signatures and documentation."""
    builder = make_arm()
    with pytest.raises(TypeError, match=r"'limit_uper'\. Did you mean 'limit_upper'"):
        builder.add_joint_revolute(-1, 0, limit_uper=1.0)
    signature = inspect.signature(builder.add_shape_box)
    assert [*signature.parameters][:4] == ["body", "hx", "hy", "hz"]
    assert signature.parameters["as_site"].default is False
    assert "cfg: Material, mass and collision behaviour" in builder.add_shape_box.__doc__
