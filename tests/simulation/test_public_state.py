"""The arrays of the state stay where they are, take what is assigned to them, and lose nothing to NaN."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.warnings import FrozenWorldWarning

from .worlds import DT, assert_same_bits, make_model, world_bits

KINDS = ["arm", "pile", "flyer", "round things"]
SOLVERS = {"sap": pv.SolverSAP, "mujoco": pv.SolverMuJoCo}
ARRAYS = ("joint_q", "joint_qd", "body_q", "body_qd", "body_f")


def make_simulation(solver: str = "sap", **options) -> pv.Simulation:
    """Return a simulation of four worlds that differ."""
    model = make_model(KINDS)
    return pv.Simulation(model, SOLVERS[solver](model), dt=DT, threads=1, **options)


def addresses(simulation: pv.Simulation) -> dict[str, int]:
    return {name: getattr(simulation.state, name).ptr for name in ARRAYS}


@pytest.mark.parametrize("decimation", [1, 2])
@pytest.mark.parametrize("record", [True, False], ids=["recorded", "launched"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_arrays_and_tensors_of_the_state_stay_valid(solver, record, decimation):
    """What a user took before shows each later step, reset and restore."""
    torch = pytest.importorskip("torch")
    with make_simulation(solver, record=record, decimation=decimation) as simulation:
        state, joint_q = simulation.state, simulation.state.joint_q
        tensor, memory = wp.to_torch(joint_q), addresses(simulation)
        body_q = state.body_q.numpy()  # shares the memory on a CPU
        flyer = simulation.model.joint_coord_world_start.numpy()[2]
        heights = [float(tensor[flyer + 2])]
        snapshot = simulation.save()
        for count in (1, 1, 2, 3):
            simulation.step(count)
            heights.append(float(tensor[flyer + 2]))
        assert (np.diff(heights[1:]) > 0.0).all()  # it flies upwards
        assert heights[1] > heights[0]
        simulation.restore(snapshot)
        assert float(tensor[flyer + 2]) == heights[0]
        simulation.step(2)
        simulation.reset()
        assert float(tensor[flyer + 2]) == heights[0]
        simulation.step(1)
        assert torch.equal(tensor, wp.to_torch(simulation.state.joint_q))
        np.testing.assert_array_equal(body_q, simulation.state.body_q.numpy())
        assert addresses(simulation) == memory
        assert simulation.state is state


@pytest.mark.parametrize("record", [True, False], ids=["recorded", "launched"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_assignment_to_an_array_of_the_state_moves_the_world(solver, record):
    """A body put at 5 m by assignment falls from there; an assigned force holds it against gravity."""
    with make_simulation(solver, record=record) as simulation:
        simulation.step()
        model, state = simulation.model, simulation.state
        coord, dof = model.joint_coord_world_start.numpy()[2], model.joint_dof_world_start.numpy()[2]
        body, memory = model.body_world_start.numpy()[2], addresses(simulation)
        joint_q, joint_qd = state.joint_q.numpy().copy(), np.zeros(model.joint_dof_count)
        joint_q[coord + 2] = 5.0
        state.joint_q = wp.array(joint_q, dtype=float, device="cpu")
        state.joint_qd = joint_qd
        for _ in range(3):  # nothing takes turns
            simulation.step()
            height = state.joint_q.numpy()[coord + 2]
            assert height == pytest.approx(5.0, abs=1e-3)
            assert state.body_q.numpy()[body, 2] == height
        mass, gravity = model.body_mass.numpy()[body], model.gravity.numpy()[2]
        force = np.zeros((model.body_count, 6), dtype=np.float32)
        force[body, :3] = -mass * gravity
        state.body_f = force
        before = state.joint_qd.numpy()[dof : dof + 3].copy()
        simulation.step(10)
        change = state.joint_qd.numpy()[dof : dof + 3] - before
        np.testing.assert_allclose(change, 0.0, atol=1e-5 * 10 * DT * 1.62)
        assert addresses(simulation) == memory


def test_assignments_take_tensors_and_refuse_what_does_not_fit():
    """Arrays of any library and number type are taken over; other sizes and fractions for integers not."""
    torch = pytest.importorskip("torch")
    with make_simulation() as simulation:
        model, state = simulation.model, simulation.state
        expected = np.arange(model.joint_dof_count, dtype=np.float32)
        for values in (
            torch.arange(model.joint_dof_count),
            torch.arange(model.joint_dof_count, dtype=torch.float64, requires_grad=True),
            torch.arange(2 * model.joint_dof_count, dtype=torch.float32)[::2] / 2,
            wp.array(np.arange(model.joint_dof_count), dtype=int, device="cpu"),
            list(range(model.joint_dof_count)),
        ):
            state.joint_qd.zero_()
            state.joint_qd = values
            np.testing.assert_array_equal(state.joint_qd.numpy(), expected)
        poses = torch.arange(7.0 * model.body_count).reshape(-1, 7)
        state.body_q = poses
        np.testing.assert_array_equal(state.body_q.numpy(), poses.numpy())
        with pytest.raises(ValueError, match=r"State.joint_qd has shape \(\d+,\), .* have \(3,\)"):
            state.joint_qd = [0.0, 1.0, 2.0]
        with pytest.raises(TypeError, match=r"Model.body_flags holds .*int32.* float64"):
            model.body_flags = np.full(model.body_count, 1.5)
        with pytest.raises(TypeError, match=r"State.joint_qd holds .*float32.* complex128"):
            state.joint_qd = np.zeros(model.joint_dof_count, dtype=complex)
        with pytest.raises(TypeError, match=r"Model.body_flags holds .*int32.* int64"):
            model.body_flags = np.full(model.body_count, 2**32)


@pytest.mark.parametrize("decimation", [1, 2])
@pytest.mark.parametrize("record", [True, False], ids=["recorded", "launched"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_world_with_nan_written_into_its_state_returns_to_its_last_finite_one(solver, record, decimation):
    """Whatever array the NaN is in, the world is put back to what the last step left, bit for bit."""
    with make_simulation(solver, record=record, decimation=decimation) as simulation:
        model = simulation.model
        simulation.step(3)
        for name, start in (
            ("joint_q", model.joint_coord_world_start),
            ("joint_qd", model.joint_dof_world_start),
        ):
            before = world_bits(model, simulation.state, 1)
            values = getattr(simulation.state, name).numpy().copy()
            values[start.numpy()[1] + 2] = np.nan
            setattr(simulation.state, name, values)
            with pytest.warns(FrozenWorldWarning, match="world 1"):
                simulation.step(2)
            assert_same_bits(world_bits(model, simulation.state, 1), before, f"NaN in {name}")
            simulation.solver.unfreeze([1])
            simulation.step(2)  # it goes on from there
            moved = world_bits(model, simulation.state, 1)
            assert np.isfinite(moved["joint_q"]).all()
            assert (moved["joint_q"] != before["joint_q"]).any()


@pytest.mark.parametrize("choice", [None, [1]], ids=["all", "one"])
def test_a_reset_state_is_what_a_world_with_nan_returns_to(choice):
    """NaN right after a reset, before any step: the world is as the reset left it."""
    with make_simulation() as simulation:
        simulation.step(10)
        simulation.reset(choice)
        before = world_bits(simulation.model, simulation.state, 1)
        values = simulation.state.joint_q.numpy().copy()
        values[simulation.model.joint_coord_world_start.numpy()[1]] = np.inf
        simulation.state.joint_q = values
        with pytest.warns(FrozenWorldWarning, match="world 1"):
            simulation.step()
        assert_same_bits(world_bits(simulation.model, simulation.state, 1), before, "after the reset")
