"""Calls of the step with objects of other models, with nothing, and with arrays of other sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import warp as wp

from pluriverse import Contacts, Model, State
from pluriverse.collision import CollisionPipeline
from pluriverse.dynamics import Workspace, eval_fk, eval_ik, eval_jacobian, eval_kinematics, integrate
from pluriverse.solvers import SolverMuJoCo, SolverSAP
from tests.reliability.scenes import make_boxes

SOLVERS = {
    "sap": SolverSAP,
    "mujoco": SolverMuJoCo,
    "mujoco_fed": lambda model: SolverMuJoCo(model, use_mujoco_contacts=False),
}


@pytest.fixture(scope="module")
def model() -> Model:
    """Return three worlds of one box."""
    return make_boxes()


@pytest.fixture(scope="module")
def other() -> Model:
    """Return worlds with as many boxes in all, in another order."""
    return make_boxes(1, box_count=3)


@pytest.fixture(scope="module", params=list(SOLVERS))
def solver(request: Any, model: Model) -> Any:
    """Return each solver of the three worlds."""
    return SOLVERS[request.param](model)


def short_state(model: Model) -> State:
    """Return a state whose first array is empty, as somebody gets it who takes an array of another model."""
    return State(wp.zeros(0, dtype=float), model.joint_qd, model.body_q, model.body_qd)


def contacts_with(model: Model, name: str, value: Any) -> Contacts:
    """Return contacts in which an array was replaced behind their back."""
    contacts = Contacts(model, 4)
    object.__setattr__(contacts, name, value)
    return contacts


STATES: dict[str, Callable[[Model, Model], Any]] = {
    "none": lambda model, other: None,
    "array": lambda model, other: model.joint_q,
    "of another model": lambda model, other: other.state(),
    "another model": lambda model, other: other,
    "with an empty array": lambda model, other: short_state(model),
}
CONTROLS: dict[str, Callable[[Model, Model], Any]] = {
    "array": lambda model, other: model.joint_f,
    "of another model": lambda model, other: other.control(),
    "model": lambda model, other: model,
}
CONTACTS: dict[str, Callable[[Model, Model], Any]] = {
    "array": lambda model, other: model.joint_f,
    "of another model": lambda model, other: Contacts(other, 4),
    "with an empty array": lambda model, other: contacts_with(
        model, "rigid_contact_shape0", wp.zeros(0, dtype=int)
    ),
    "with a short array": lambda model, other: contacts_with(
        model, "rigid_contact_force", wp.zeros(1, dtype=wp.vec3)
    ),
    "with no array": lambda model, other: contacts_with(model, "rigid_contact_count", None),
}
WORLDS: dict[str, tuple[Any, type[Exception]]] = {
    "a list": ([0, 1], TypeError),
    "64-bit": (lambda: wp.array([0], dtype=wp.int64), TypeError),
    "two axes": (lambda: wp.zeros((1, 2), dtype=int), ValueError),
    "truth values": (lambda: wp.ones(3, dtype=wp.bool), TypeError),
}


@pytest.mark.parametrize("name", STATES)
def test_a_step_refuses_a_state_of_another_model(solver: Any, model: Model, other: Model, name: str):
    """Neither the state before nor the one after may be anything but a state of the solver's model."""
    bad, good = STATES[name](model, other), model.state()
    with pytest.raises((TypeError, ValueError), match=r"step: state_in.*(state|shape)"):
        solver.step(bad, good, None, None, 0.01)
    with pytest.raises((TypeError, ValueError), match=r"step: state_out.*(state|shape)"):
        solver.step(good, bad, None, None, 0.01)


@pytest.mark.parametrize("name", CONTROLS)
def test_a_step_refuses_a_control_of_another_model(solver: Any, model: Model, other: Model, name: str):
    """A control of another model has other degrees of freedom, or the same number in another order."""
    with pytest.raises((TypeError, ValueError), match=r"step: control"):
        solver.step(model.state(), model.state(), CONTROLS[name](model, other), None, 0.01)


@pytest.mark.parametrize("name", CONTACTS)
def test_a_step_refuses_contacts_of_another_model(solver: Any, model: Model, other: Model, name: str):
    """Contacts of another model name its shapes."""
    with pytest.raises((TypeError, ValueError), match=r"step: contacts"):
        solver.step(model.state(), model.state(), None, CONTACTS[name](model, other), 0.01)
    with pytest.raises((TypeError, ValueError), match=r"prepare: contacts"):
        solver.prepare(CONTACTS[name](model, other))


@pytest.mark.parametrize("name", WORLDS)
def test_a_step_refuses_worlds_that_are_no_list_on_the_device(solver: Any, model: Model, name: str):
    """Worlds of a step are int32 on the device."""
    value, error = WORLDS[name]
    with pytest.raises(error, match="worlds"):
        solver.step(
            model.state(), model.state(), None, None, 0.01, worlds=value() if callable(value) else value
        )


@pytest.mark.parametrize("dt", [0.0, -1.0, float("nan"), float("inf"), None, "0.01", [0.01]])
def test_a_step_refuses_a_time_step_that_is_none(solver: Any, model: Model, dt: Any):
    """A time step is a positive, finite number."""
    with pytest.raises(ValueError, match="dt is"):
        solver.step(model.state(), model.state(), None, None, dt)


def test_collide_refuses_what_belongs_to_another_model(model: Model, other: Model):
    """`collide` reads poses by the bodies of its model and writes by the slots of its contacts."""
    pipeline = CollisionPipeline(model)
    for make in STATES.values():
        with pytest.raises((TypeError, ValueError), match=r"collide: state"):
            pipeline.collide(make(model, other), pipeline.contacts())
    for make in (*CONTACTS.values(), lambda model, other: None):
        with pytest.raises((TypeError, ValueError), match=r"collide: contacts"):
            pipeline.collide(model.state(), make(model, other))
    with pytest.raises(ValueError, match="slots"):
        pipeline.collide(model.state(), Contacts(model, 1000))


def test_what_an_equal_model_made_is_taken(model: Model):
    """A model built in the same way has the same structure, so its states fit."""
    twin = make_boxes()
    solver, state_out = SolverSAP(model), model.state()
    solver.step(twin.state(), state_out, twin.control(), Contacts(twin, 4), 0.01)
    expected = model.state()
    solver.step(model.state(), expected, model.control(), Contacts(model, 4), 0.01)
    np.testing.assert_array_equal(state_out.joint_q.numpy(), expected.joint_q.numpy())


def test_the_stages_of_dynamics_refuse_what_belongs_to_another_model(model: Model, other: Model):
    """Kinematics and what builds upon it follow indices of the model into the arrays they are given."""
    workspace, foreign = Workspace(model, wp.float64), Workspace(other, wp.float64)
    with pytest.raises(ValueError, match="another model"):
        eval_kinematics(model, model.worlds, model.state(), foreign)
    with pytest.raises(ValueError, match="another model"):
        integrate(model, model.worlds, model.state(), other.state(), workspace, 0.01)
    with pytest.raises(ValueError, match="shape"):
        eval_fk(model, wp.zeros(1, dtype=float), model.joint_qd, model.state())
    with pytest.raises(TypeError, match="indices"):
        eval_fk(model, model.joint_q, model.joint_qd, model.state(), indices=[0])
    with pytest.raises(ValueError, match="another model"):
        eval_ik(model, other.state(), model.joint_q, model.joint_qd)
    with pytest.raises(TypeError, match="joint_q"):
        eval_ik(model, model.state(), None, model.joint_qd)
    with pytest.raises(TypeError, match="mask"):
        eval_jacobian(model, model.state(), mask=[True])


def test_an_array_of_contacts_keeps_its_place_when_it_is_assigned(model: Model):
    """An assignment copies, as with a model and a control, and refuses another size."""
    contacts = Contacts(model, 4)
    before = contacts.rigid_contact_shape0.ptr
    contacts.rigid_contact_shape0 = wp.ones(12, dtype=int)
    assert contacts.rigid_contact_shape0.ptr == before
    with pytest.raises(ValueError, match="rigid_contact_shape0"):
        contacts.rigid_contact_shape0 = wp.ones(1, dtype=int)


@pytest.mark.parametrize("name", ["sap", "mujoco_fed"])
@pytest.mark.parametrize("shape", [-1, 10**6, 2**31 - 1, 1])
def test_a_contact_that_names_a_shape_of_another_world_freezes_its_world(model: Model, name: str, shape: int):
    """A contact of no shape, or of a body of another world, is no contact that could be left out quietly."""
    solver, contacts = SOLVERS[name](model), Contacts(model, 4)
    contacts.rigid_contact_count.fill_(1)
    first = contacts.rigid_contact_start.numpy()[:3]
    shapes = contacts.rigid_contact_shape0.numpy()
    shapes[first] = [0, 1, 2]
    shapes[first[2]] = shape
    contacts.rigid_contact_shape0.assign(shapes)
    ground = contacts.rigid_contact_shape1
    ground.fill_(3)
    contacts.rigid_contact_normal.fill_(wp.vec3(0.0, 0.0, -1.0))
    before, after = model.state(), model.state()
    solver.step(before, after, None, contacts, 0.01)
    assert solver.world_frozen.numpy().tolist() == [0, 0, 1]
    np.testing.assert_array_equal(after.joint_q.numpy()[14:], before.joint_q.numpy()[14:])


@pytest.mark.parametrize("name", ["sap", "mujoco_fed"])
@pytest.mark.parametrize("count", [-1, -(2**31), 5, 2**31 - 1])
def test_a_count_of_contacts_outside_of_its_slots_is_bounded(model: Model, name: str, count: int):
    """A world has between none and all of its slots, whatever is written into `rigid_contact_count`."""
    solver, contacts = SOLVERS[name](model), Contacts(model, 1)
    contacts.rigid_contact_shape0 = np.array([0, 1, 2], dtype=np.int32)
    contacts.rigid_contact_shape1.fill_(3)
    contacts.rigid_contact_normal.fill_(wp.vec3(0.0, 0.0, -1.0))
    contacts.rigid_contact_count.fill_(count)
    solver.step(model.state(), model.state(), None, contacts, 0.01)
    assert (solver.last_contact_count.numpy() <= 1).all()
    assert (solver.last_contact_count.numpy() >= 0).all()
    assert np.isfinite(solver.body_contact_force(contacts).numpy()).all()
