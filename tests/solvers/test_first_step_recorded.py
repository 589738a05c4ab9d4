"""The first step of a solver may be made in a recording, as many scripts do."""

import gc

import numpy as np
import pytest
import warp as wp

from pluriverse import CollisionPipeline, ModelBuilder, SolverMuJoCo, SolverSAP, eval_fk
from pluriverse.selection import ArticulationView


@pytest.fixture(scope="module")
def model():
    """Return the model of two worlds with piles of boxes that touch, so that their velocities are coupled."""
    pile = ModelBuilder()
    for row in range(4):
        for column in range(4 - row):
            position = (0.21 * column + 0.1 * row, 0.0, 0.1 + 0.2 * row)
            box = pile.add_body(xform=wp.transform(position, wp.quat_identity()))
            pile.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1)
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.replicate(pile, 2)
    return builder.finalize("cpu")


class Loop:
    """Two states, contacts and a solver, none of which has made a step."""

    def __init__(self, model, kind, has_control, has_contacts):
        self.solver, self.pipeline = kind(model), CollisionPipeline(model)
        self.control = model.control() if has_control else None
        self.contacts = None
        if has_contacts:
            self.contacts = self.pipeline.contacts() if kind is SolverSAP else self.solver.contacts()
        self.state, self.after = model.state(), model.state()

    def step(self, count):
        for _ in range(count):
            if self.contacts is not None and isinstance(self.solver, SolverSAP):
                self.pipeline.collide(self.state, self.contacts)
            self.solver.step(self.state, self.after, self.control, self.contacts, 0.005)
            self.state, self.after = self.after, self.state


@pytest.mark.parametrize("has_contacts", [True, False])
@pytest.mark.parametrize("has_control", [True, False])
@pytest.mark.parametrize("kind", [SolverSAP, SolverMuJoCo])
def test_the_first_step_may_be_recorded(model, kind, has_control, has_contacts):
    """A replay read tables of the solver from memory that was free by then, and crashed."""
    recorded, launched = (Loop(model, kind, has_control, has_contacts) for _ in range(2))
    with wp.ScopedCapture(device="cpu") as capture:
        recorded.step(2)
    gc.collect()
    clutter = [np.full(size, 0x7F7F7F7F, dtype=np.int32) for size in range(1, 4000)]
    for _ in range(3):
        wp.capture_launch(capture.graph)
    launched.step(6)
    assert clutter
    np.testing.assert_array_equal(recorded.state.joint_q.numpy(), launched.state.joint_q.numpy())
    np.testing.assert_array_equal(recorded.state.joint_qd.numpy(), launched.state.joint_qd.numpy())


def test_contacts_may_be_found_first_in_a_recording(model):
    """`Model.collide` makes a pipeline and contacts, which replays write to after they were let go of."""
    solver, state, after = SolverSAP(model), model.state(), model.state()
    with wp.ScopedCapture(device="cpu") as capture:
        for _ in range(2):
            contacts = model.collide(state)
            solver.step(state, after, None, contacts, 0.005)
            state, after = after, state
    counts = contacts.rigid_contact_count
    del contacts
    gc.collect()
    clutter = [np.full(size, 0x7F7F7F7F, dtype=np.int32) for size in range(1, 4000)]
    for _ in range(3):
        wp.capture_launch(capture.graph)
    launched = Loop(model, SolverSAP, has_control=True, has_contacts=True)
    launched.step(6)
    assert clutter
    np.testing.assert_array_equal(counts.numpy(), launched.contacts.rigid_contact_count.numpy())
    np.testing.assert_array_equal(state.joint_q.numpy(), launched.state.joint_q.numpy())


def test_states_made_in_a_recording_are_made_once(model):
    with wp.ScopedCapture(device="cpu") as capture:
        state, control = model.state(), model.control()
        eval_fk(model, state.joint_q, state.joint_qd, state)
    state.joint_q.fill_(1.0)
    control.joint_f.fill_(2.0)
    wp.capture_launch(capture.graph)
    assert (state.joint_q.numpy() == 1.0).all()
    assert (control.joint_f.numpy() == 2.0).all()


def test_views_may_be_used_first_in_a_recording(model):
    """Tables of positions and numbers of the host are copied once, when they are recorded."""
    views = [ArticulationView(model, "*") for _ in range(2)]
    states = [model.state() for _ in range(2)]

    def move(view, state):
        view.set_root_transforms(state, np.tile([0.5, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0], (2, 10, 1)))
        view.set_dof_velocities(state, np.full((2, 10, 6), 0.25), mask=np.array([True, False]))
        view.eval_fk(state)

    with wp.ScopedCapture(device="cpu") as capture:
        move(views[0], states[0])
    gc.collect()
    clutter = [np.full(size, 0x7F7F7F7F, dtype=np.int32) for size in range(1, 4000)]
    wp.capture_launch(capture.graph)
    move(views[1], states[1])
    assert clutter
    for name in ("joint_q", "joint_qd", "body_q", "body_qd"):
        np.testing.assert_array_equal(getattr(states[0], name).numpy(), getattr(states[1], name).numpy())
    assert states[0].joint_qd.numpy().max() == 0.25
