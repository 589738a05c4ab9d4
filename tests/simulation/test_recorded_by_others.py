"""Steps inside somebody else's recording become part of it, and time passes when it is replayed."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv

from .test_public_state import SOLVERS, make_simulation
from .worlds import assert_same_bits, world_bits


def assert_equal_worlds(ours: pv.Simulation, theirs: pv.Simulation) -> None:
    for world in range(ours.model.world_count):
        found = world_bits(ours.model, ours.state, world)
        assert_same_bits(found, world_bits(theirs.model, theirs.state, world), f"world {world}")


@pytest.mark.parametrize("decimation", [1, 2])
@pytest.mark.parametrize("record", [True, False], ids=["recorded", "launched"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_steps_in_a_recording_are_made_when_it_is_replayed(solver, record, decimation):
    """Nothing moves while recording, even if the simulation was never stepped; then as without it."""
    options = {"record": record, "decimation": decimation}
    with make_simulation(solver, **options) as plain, make_simulation(solver, **options) as simulation:
        with wp.ScopedCapture(device="cpu") as capture:
            simulation.step()
            simulation.step(2)
            assert simulation.step_count == 0
        assert simulation.time == 0.0
        assert_equal_worlds(simulation, plain)
        for replay in (1, 2):
            wp.capture_launch(capture.graph)
            plain.step(3)
            assert_equal_worlds(simulation, plain)
            assert simulation.step_count == plain.step_count == 3 * replay * decimation
        simulation.step()
        plain.step()
        wp.capture_launch(capture.graph)
        plain.step(3)
        assert_equal_worlds(simulation, plain)
        assert simulation.time == plain.time
        figures, expected = simulation.report(), plain.report()
        assert figures.step_count == expected.step_count
        assert figures.contact_count_mean == expected.contact_count_mean
        simulation.reset()
        assert simulation.time == 0.0


def test_control_steps_and_resets_fit_into_one_recording():
    """Drive targets, steps and the reset of chosen worlds, replayed, give the bits of the same calls."""
    targets = np.linspace(-0.3, 0.3, 64)

    def tick(simulation, source, mask):
        wp.copy(simulation.control.joint_target_pos, source)
        simulation.step(2)
        simulation.reset(mask)

    with make_simulation() as plain, make_simulation() as simulation:
        size, count = plain.model.joint_dof_count, plain.model.world_count
        source = wp.zeros(size, dtype=float, device="cpu")
        mask = wp.zeros(count, dtype=bool, device="cpu")
        simulation.step()
        plain.step()
        with wp.ScopedCapture(device="cpu") as capture:
            tick(simulation, source, mask)
        for chosen in ([0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 0, 0]):
            source.assign(targets[:size])
            mask.assign(np.array(chosen, dtype=bool))
            wp.capture_launch(capture.graph)
            tick(plain, source, mask)
            assert_equal_worlds(simulation, plain)


def test_a_step_count_that_was_replayed_is_saved_and_restored():
    with make_simulation() as simulation:
        with wp.ScopedCapture(device="cpu") as capture:
            simulation.step(5)
        wp.capture_launch(capture.graph)
        snapshot = simulation.save()
        wp.capture_launch(capture.graph)
        assert simulation.step_count == 10
        simulation.restore(snapshot)
        assert simulation.step_count == 5


@pytest.mark.parametrize("call", ["save", "report", "restore", "notify_model_changed"])
def test_what_reads_results_is_refused_in_a_recording(call):
    """Nothing is computed meanwhile, so a snapshot would hold what memory held before."""
    with make_simulation() as simulation:
        simulation.step()
        given = {"restore": [simulation.save()], "notify_model_changed": [pv.ModelFlags.ALL]}
        arguments = given.get(call, [])
        with (
            wp.ScopedCapture(device="cpu"),
            pytest.raises(RuntimeError, match=f"Simulation.{call}: a recording is under way on cpu"),
        ):
            getattr(simulation, call)(*arguments)
