"""Steps in MuJoCo Warp: the motion of the C engine, in single precision, for groups of different worlds.

MuJoCo Warp compiles kernels for what its models hold, so all tests here share one kind of model.
"""

import numpy as np
import pytest

import warp as wp
from pluriverse import Model, ModelBuilder, ModelFlags, Simulation
from pluriverse.solvers.mujoco.solver import SolverMuJoCo
from tests.solvers.mujoco.worlds import NO_TURN, pendulum, world_slice

pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install pluriverse[mujoco-warp]")

DT = 0.004
RADIUS = 0.1
MASS = 1000.0 * 4.0 / 3.0 * np.pi * RADIUS**3
DEVICES = [
    "cpu",
    pytest.param(
        "cuda:0",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(
                not wp.is_cuda_available(), reason="needs a CUDA device: MuJoCo Warp is tested by emulation"
            ),
        ],
    ),
]


def ball() -> ModelBuilder:
    """Return a sphere that falls on the ground."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    body = builder.add_body(xform=((0.0, 0.0, 0.12), NO_TURN))
    builder.add_shape_sphere(body, radius=RADIUS)
    return builder


def build(kinds: str = "bpb", device: str = "cpu") -> Model:
    """Return worlds with a ball (b) or a pendulum (p) each; gravity differs from world to world."""
    parts = {"b": ball(), "p": pendulum()}
    builder = ModelBuilder()
    for kind in kinds:
        builder.add_world(parts[kind])
    model = builder.finalize(device=device)
    for world in range(len(kinds)):
        model.set_gravity(-9.81 + 2.0 * world, world=world)
    velocity = model.joint_qd.numpy()
    velocity[:] = 0.1 * np.sin(np.arange(len(velocity)))
    model.joint_qd.assign(velocity)
    return model


def make_solver(model: Model, **arguments) -> SolverMuJoCo:
    return SolverMuJoCo(model, use_mujoco_cpu=False, **arguments)


@pytest.mark.parametrize("device", DEVICES)
def test_motion_is_that_of_the_c_engine(device: str):
    """Two groups with a gravity per world move as in double precision, before and after contact."""
    model, reference = build(device=device), build()
    simulation = Simulation(model, make_solver(model), dt=DT)
    expected = Simulation(reference, SolverMuJoCo(reference), dt=DT)
    assert len(simulation.solver.groups) == 2
    for count, tolerance in ((10, 1e-6), (100, 2e-5)):
        simulation.step(count)
        expected.step(count)
        # One rounding of float32 per step and stage, none amplified by these scenes.
        np.testing.assert_allclose(
            simulation.state.joint_q.numpy(), expected.state.joint_q.numpy(), atol=tolerance
        )
    contacts = simulation.contacts
    assert contacts.rigid_contact_count.numpy().tolist() == [1, 0, 1]
    force, start = contacts.rigid_contact_force.numpy(), contacts.rigid_contact_start.numpy()
    other, other_start = (
        expected.contacts.rigid_contact_force.numpy(),
        expected.contacts.rigid_contact_start.numpy(),
    )
    for world in (0, 2):
        np.testing.assert_allclose(force[start[world]], other[other_start[world]], rtol=1e-3, atol=1e-2)


def test_recorded_steps_and_restored_ones_have_the_same_bits():
    """Recording changes nothing, and a snapshot holds what MuJoCo Warp carries from step to step."""
    model = build()
    recorded = Simulation(model, make_solver(model), dt=DT)
    recorded.step(20)
    snapshot = recorded.save()
    recorded.step(10)
    bits = recorded.state.joint_q.numpy().copy()
    recorded.restore(snapshot)
    recorded.step(10)
    np.testing.assert_array_equal(recorded.state.joint_q.numpy(), bits)
    other = build()
    by_hand = Simulation(other, make_solver(other), dt=DT, record=False)
    by_hand.step(30)
    np.testing.assert_array_equal(by_hand.state.joint_q.numpy(), bits)


def test_a_frozen_world_and_one_not_listed_keep_still():
    """NaN in a world stops that world only; worlds that are not listed lose nothing."""
    model = build()
    solver = make_solver(model)
    states = [model.state(), model.state()]
    velocity = states[0].joint_qd.numpy()
    velocity[0] = np.nan
    states[0].joint_qd.assign(velocity)
    solver.step(*states, None, None, DT)
    assert solver.world_frozen.numpy().tolist() == [1, 0, 0]
    assert np.isfinite(world_slice(model, states[1].joint_q.numpy(), "joint_coord", 2)).all()
    np.testing.assert_array_equal(
        world_slice(model, states[1].joint_q.numpy(), "joint_coord", 0),
        world_slice(model, states[0].joint_q.numpy(), "joint_coord", 0),
    )
    # World 2 rests for a step, then goes on with the bits that it would have had.
    states.reverse()
    only = wp.array([1], dtype=wp.int32, device=model.device)
    solver.step(*states, None, None, DT, worlds=only)
    rows = solver.engine.exchange.rows.of_group(solver.groups, 0, "qpos").numpy()[1]
    fresh = build()
    reference = make_solver(fresh)
    pair = [fresh.state(), fresh.state()]
    reference.step(*pair, None, None, DT)
    np.testing.assert_array_equal(
        rows, reference.engine.exchange.rows.of_group(reference.groups, 0, "qpos").numpy()[1]
    )


def test_overflow_is_reported_once_and_grows():
    """Contacts without room are counted on the device, reported with need and room, and get room."""
    model = build("bb")
    simulation = Simulation(model, make_solver(model, njmax=2), dt=DT)
    with pytest.warns(UserWarning, match=r"constraint rows are needed and 2 fit.*njmax=") as record:
        _step_one_by_one(simulation, 150)
    assert len(record) == 1
    assert (simulation.solver.truncated_step_count.numpy() > 0).any()
    height = simulation.state.body_q.numpy()[:, 2]
    np.testing.assert_allclose(height, RADIUS, atol=5e-3)  # it rests on the ground all the same


def _step_one_by_one(simulation: Simulation, count: int) -> None:
    for _ in range(count):
        simulation.step()


def test_what_mujoco_warp_does_not_know_is_named(monkeypatch):
    """The error says which world it is about, and what to do."""

    def refuse(*arguments):
        raise NotImplementedError("mjTRN_SO3 not supported.")

    monkeypatch.setattr("mujoco_warp.put_model", refuse)
    with pytest.raises(NotImplementedError, match=r"world 0 \('world_0'\): mjTRN_SO3 not .* C engine"):
        make_solver(build("pb"))


def test_edits_act_after_notify_model_changed():
    """Fields that differ between worlds are written in place, so recorded steps see them."""
    model = build("bb")
    simulation = Simulation(model, make_solver(model), dt=DT)
    simulation.step(2)
    before = simulation.state.joint_qd.numpy().reshape(2, 6)[:, 2].copy()
    model.set_gravity(-1.0, world=0)
    model.set_gravity(-2.0, world=1)
    simulation.notify_model_changed(ModelFlags.MODEL_PROPERTIES)
    simulation.step()
    gained = simulation.state.joint_qd.numpy().reshape(2, 6)[:, 2] - before
    np.testing.assert_allclose(gained, [-DT, -2.0 * DT], rtol=1e-4)


def test_a_state_written_between_intervals_is_taken_in_later():
    """With update_data_interval=2 a velocity written into the State acts in every second step."""
    model = build("bb")
    solver, states, spins = make_solver(model, update_data_interval=2), [model.state(), model.state()], []
    for step in range(5):
        velocity = states[0].joint_qd.numpy()
        velocity[5] = 1.0 + step
        states[0].joint_qd.assign(velocity)
        solver.step(*states, None, None, DT)
        spins.append(float(states[1].joint_qd.numpy()[5]))
    np.testing.assert_allclose(spins, [1.0, 1.0, 3.0, 3.0, 5.0], atol=1e-5)


def test_contacts_fed_in_act_as_in_the_c_engine():
    """Contacts of a pipeline make the motion that they make in the C engine, and get their forces back."""
    model, reference = build(), build()
    simulation = Simulation(model, make_solver(model, use_mujoco_contacts=False), dt=DT)
    expected = Simulation(reference, SolverMuJoCo(reference, use_mujoco_contacts=False), dt=DT)
    for count, tolerance in ((10, 1e-6), (100, 2e-5)):
        simulation.step(count)
        expected.step(count)
        np.testing.assert_allclose(
            simulation.state.joint_q.numpy(), expected.state.joint_q.numpy(), atol=tolerance
        )
    assert simulation.solver.last_contact_count.numpy().tolist() == [1, 0, 1]
    force = simulation.contacts.rigid_contact_force.numpy()
    start = simulation.contacts.rigid_contact_start.numpy()
    for world in (0, 2):
        # At rest by now, it carries its own weight.
        weight = MASS * (9.81 - 2.0 * world)
        assert force[start[world], 2] == pytest.approx(weight, rel=0.02)
    np.testing.assert_allclose(force, expected.contacts.rigid_contact_force.numpy(), rtol=1e-3, atol=0.05)
