"""The schema: every array of a model, a state and a control is declared once, as it is."""

import re

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.model.schema import (
    CONTROL_ARRAYS,
    ENTITY_OF_ARRAY,
    MODEL_ARRAYS,
    REQUESTED_ARRAYS,
    STATE_ARRAYS,
    STRUCTURE,
    ControlArrays,
    ModelArrays,
    StateArrays,
    describe_arrays,
)

HOLDERS = {ModelArrays: MODEL_ARRAYS, StateArrays: STATE_ARRAYS, ControlArrays: CONTROL_ARRAYS}
PLAIN = {float: wp.float32, int: wp.int32, bool: wp.bool}
SHORT = {"joint_dof": "dof", "joint_coord": "coord", "equality_constraint": "equality constraint"}


@pytest.fixture(scope="module")
def holders():
    """Return a model of two worlds, its state and its control, by what declares their arrays."""
    builder, arm = pv.ModelBuilder(), pv.ModelBuilder()
    base, link = arm.add_link(), arm.add_link()
    for body in (base, link):
        arm.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    joints = [arm.add_joint_ball(-1, base), arm.add_joint_revolute(base, link, axis=(0.0, 1.0, 0.0))]
    arm.add_articulation(joints)
    builder.replicate(arm, 2)
    builder.request_state_attributes(*REQUESTED_ARRAYS)
    model = builder.finalize("cpu")
    return {ModelArrays: model, StateArrays: model.state(), ControlArrays: model.control()}


@pytest.mark.parametrize("holder", HOLDERS)
def test_every_array_is_declared_and_every_declaration_is_an_array(holder, holders):
    """Names, types and numbers of entries are those of the arrays of a model."""
    target = holders[holder]
    made = {name for name, value in vars(target).items() if isinstance(value, wp.array)}
    assert made - set(getattr(target, "custom_arrays", {})) == set(HOLDERS[holder])
    for name, spec in HOLDERS[holder].items():
        array = getattr(target, name)
        declared = holder.__annotations__[name]
        assert array.dtype is PLAIN.get(declared.dtype, declared.dtype), name
        assert array.ndim == declared.ndim, name
        if spec.entity is not None:
            assert array.shape[0] == getattr(holders[ModelArrays], f"{spec.entity.key}_count"), name


@pytest.mark.parametrize("holder", HOLDERS)
def test_docstrings_say_shape_and_unit(holder):
    """The shape in the docstring begins with the entity declared; drawn lengths and the like have units."""
    described = describe_arrays(holder)
    assert set(described) == set(HOLDERS[holder])
    for name, spec in HOLDERS[holder].items():
        assert described[name].shape, name
        if spec.entity is not None:
            kind = SHORT.get(spec.entity.key, spec.entity.key)
            assert re.match(rf"\[{kind}[,\]]", described[name].shape), name
    assert described.get("body_mass", described[next(iter(described))]).meaning
    if holder is ModelArrays:
        assert described["body_mass"].unit == "kg"
        assert described["joint_target_ke"].unit == "N/m or N·m/rad"
        assert described["shape_material_mu"].unit == ""


def test_declarations_do_not_contradict_themselves():
    """What is structural is not drawn, what must not be negative holds numbers, entries have entities."""
    for name, spec in MODEL_ARRAYS.items():
        assert not (spec.structural and (spec.low is not None or spec.may_be_unset)), name
        assert spec.entity is not None or spec.structural, name
        assert spec.low is not None or not (spec.keeps_positive or spec.may_be_unset), name
        assert bool(spec.flag) == (spec.entity not in (None, pv.Entity.ARTICULATION)), name
    assert set(STRUCTURE) == {name for name, spec in MODEL_ARRAYS.items() if spec.structural}
    assert ENTITY_OF_ARRAY["joint_target_qd"] is pv.Entity.JOINT_DOF


def test_reading_an_array_that_is_not_made_yet_is_an_error():
    """A declaration is no array."""
    with pytest.raises(AttributeError, match=r"ModelArrays\.body_mass has not been made yet"):
        _ = ModelArrays().body_mass


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("shape_material_mu", -0.1, "Give a number >= 0"),
        ("shape_material_ke", -1.0, "or NaN to leave it to the solver"),
        ("joint_damping", -1.0, "Give a number >= 0"),
        ("joint_limit_ke", -2.0, "or NaN to leave it to the solver"),
    ],
)
def test_writes_below_the_bound_are_refused(holders, name, value, remedy):
    """`notify_model_changed` checks each array against the bound that the schema gives it."""
    model = holders[ModelArrays]
    simulation = pv.Simulation(model, pv.SolverSAP(model), dt=0.01)
    array = getattr(model, name)
    before = array.numpy().copy()
    values = before.copy()
    values[0] = value
    array.assign(values)
    try:
        with pytest.raises(ValueError, match=rf"{name}.*{remedy}"):
            simulation.notify_model_changed(MODEL_ARRAYS[name].flag)
    finally:
        array.assign(before)
    values[0] = np.nan if MODEL_ARRAYS[name].may_be_unset else 0.5
    array.assign(values)
    simulation.notify_model_changed(MODEL_ARRAYS[name].flag)
    array.assign(before)
