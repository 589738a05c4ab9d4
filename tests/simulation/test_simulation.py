"""The rest of the loop: snapshots, external forces, interruption, chunks, wrong arguments."""

import threading

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.math.lanes import LANES
from pluriverse.simulation.chunks import CHUNK_BYTES_MAX, split_worlds
from pluriverse.warnings import FrozenWorldWarning, SimulationError

from .worlds import DT, assert_same_bits, make_model, world_bits


def all_bits(model: pv.Model, simulation: pv.Simulation) -> list[dict[str, np.ndarray]]:
    return [world_bits(model, simulation.state, world) for world in range(model.world_count)]


def test_restored_snapshot_continues_with_the_same_bits():
    """What follows a snapshot follows it again, in the same simulation and in another one."""
    model = make_model(["pile", "arm"])
    with pv.Simulation(model, dt=DT, threads=2) as simulation:
        simulation.step(25)
        snapshot = simulation.save()
        simulation.step(40)
        expected = all_bits(model, simulation)
        simulation.restore(snapshot)
        assert simulation.step_count == 25
        simulation.step(40)
        again = all_bits(model, simulation)
    with pv.Simulation(model, dt=DT, threads=1, record=False) as other:
        other.restore(snapshot)
        other.step(40)
        elsewhere = all_bits(model, other)
    for world in range(2):
        assert_same_bits(again[world], expected[world], "the same simulation")
        assert_same_bits(elsewhere[world], expected[world], "another simulation")


def test_reset_begins_again_with_the_same_bits():
    model = make_model(["pile", "round things"])
    with pv.Simulation(model, dt=DT, threads=1) as simulation:
        simulation.step(31)
        expected = all_bits(model, simulation)
        simulation.state.body_f.fill_(wp.spatial_vector(1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        simulation.reset()
        assert simulation.time == 0.0
        assert not simulation.state.body_f.numpy().any()
        simulation.step(31)
        for world in range(2):
            assert_same_bits(world_bits(model, simulation.state, world), expected[world], "after reset")


def test_reset_of_one_world_leaves_the_others():
    model = make_model(["pile", "flyer", "pile"])
    with pv.Simulation(model, dt=DT, threads=1) as simulation:
        start = world_bits(model, simulation.state, 1)
        simulation.step(11)
        others = all_bits(model, simulation)
        simulation.reset([1])
        assert_same_bits(world_bits(model, simulation.state, 1), start, "the world that was reset")
        for world in (0, 2):
            assert_same_bits(world_bits(model, simulation.state, world), others[world], f"world {world}")
        assert simulation.time == pytest.approx(11 * DT)


def test_external_force_stays_through_all_steps():
    """A force of m g upwards holds a body at its velocity, over odd and even numbers of steps: F = m a."""
    builder = pv.ModelBuilder()
    body = builder.add_body(xform=wp.transform((0.0, 0.0, 10.0), wp.quat_identity()))
    builder.add_shape_sphere(body, radius=0.1)
    model = builder.finalize("cpu")
    mass = float(model.body_mass.numpy()[0])
    with pv.Simulation(model, dt=DT) as simulation:
        weight = wp.spatial_vector(0.0, 0.0, 9.81 * mass, 0.0, 0.0, 0.0)
        simulation.state.body_f.fill_(weight)
        for count in (1, 1, 2, 7):
            simulation.step(count)
        # The difference of force and weight is a rounding of either, 2**-24 relative, for 11 steps.
        assert abs(simulation.state.joint_qd.numpy()[2]) < 11 * DT * 9.81 * 4 * 2.0**-24
        assert simulation.state.body_q.numpy()[0, 2] == pytest.approx(10.0, abs=1e-5)


def test_free_fall_of_a_body_alone_follows_from_step_and_time():
    """The velocity is v0 - g t after any mix of calls."""
    model = make_model(["flyer"])
    with pv.Simulation(model, dt=DT, decimation=4) as simulation:
        simulation.step(3)
        simulation.step(2)
        assert simulation.time == pytest.approx(20 * DT)
        # 20 roundings of a velocity of up to 3 m/s.
        assert simulation.state.joint_qd.numpy()[2] == pytest.approx(
            3.0 - 1.62 * 20 * DT, abs=20 * 3.0 * 2.0**-24
        )


def test_interrupted_step_must_be_reset(monkeypatch):
    """After an interruption worlds stand at different times: to go on is refused until reset or restore."""
    model = make_model(["flyer", "pile"])
    with pv.Simulation(model, dt=DT, threads=2) as simulation:
        simulation.step(2)
        replay = wp.capture_launch

        def interrupt(*arguments: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(wp, "capture_launch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            simulation.step()
        monkeypatch.setattr(wp, "capture_launch", replay)
        with pytest.raises(SimulationError, match=r"reset\(\) or restore\(\)"):
            simulation.step()
        simulation.reset()
        simulation.step()
        assert simulation.step_count == 1


def test_a_step_during_another_one_is_not_taken_for_an_interruption():
    """A second thread is told to wait, not to reset worlds that are being stepped."""
    with pv.Simulation(make_model(["flyer"]), dt=DT, threads=1) as simulation:
        begun, refused = threading.Event(), threading.Event()

        class Pause(pv.simulation.StepStage):
            """Holds a step up until the other thread was refused."""

            is_recorded = False

            def before_step(self, *_: object) -> None:
                begun.set()
                assert refused.wait(60.0)

        simulation.add_stage(Pause())
        thread = threading.Thread(target=simulation.step)
        thread.start()
        assert begun.wait(60.0)
        with pytest.raises(SimulationError, match="another call is stepping this Simulation"):
            simulation.step()
        refused.set()
        thread.join()
        simulation.step()
        assert simulation.step_count == 2


def test_a_solver_belongs_to_the_simulation_that_was_made_last():
    """Shared, a world that one simulation froze did not fall in the other one, without a word."""
    model = make_model(["flyer"])
    solver = pv.SolverSAP(model)
    first = pv.Simulation(model, solver, dt=DT, threads=1)
    first.close()
    first.step()  # nobody else has it
    first.state.joint_qd.fill_(np.nan)
    with pytest.warns(FrozenWorldWarning):
        first.step()
    # As the cell of a notebook does that is run again.
    second = pv.Simulation(model, solver, dt=DT, threads=1)
    with pytest.raises(SimulationError, match="solver of this Simulation was given to another one"):
        first.step()
    fresh = pv.Simulation(model, dt=DT, threads=1)
    for simulation in (second, fresh):
        simulation.step(3)
    np.testing.assert_array_equal(second.state.joint_q.numpy(), fresh.state.joint_q.numpy())
    del second
    first.reset()
    first.step()
    assert first.step_count == 1


def test_closed_simulation_steps_on_in_the_calling_thread():
    model = make_model(["pile"] * 4)
    with pv.Simulation(model, dt=DT, threads=3) as simulation:
        simulation.step(20)
    simulation.step(20)
    with pv.Simulation(model, dt=DT, threads=1) as expected:
        expected.step(40)
    for world in range(4):
        ours = world_bits(model, simulation.state, world)
        assert_same_bits(ours, world_bits(model, expected.state, world), f"world {world}")


@pytest.mark.parametrize("thread_count", [1, 2, 3, 4, 7])
def test_chunks_hold_every_world_once_and_the_same_mix(thread_count):
    """Each world is in one chunk; every mixed chunk has its share of each template, one more or less."""
    templates = np.array([0] * 50 + [1] * 13 + [2] * 1 + [0] * 14)
    byte_counts = np.array([2.0e4, 5.0e4, 1.0e3])[templates]
    chunks = split_worlds(byte_counts, templates, thread_count=thread_count)
    assert sorted(np.concatenate(chunks).tolist()) == list(range(len(templates)))
    assert len(chunks) % thread_count == 0
    for template in range(3):
        shares = [int((templates[chunk] == template).sum()) for chunk in chunks]
        assert max(shares) - min(shares) <= 1
    for chunk in chunks:
        assert (np.diff(templates[chunk]) >= 0).all()
    loads = [byte_counts[chunk].sum() for chunk in chunks]
    assert loads == sorted(loads, reverse=True)


@pytest.mark.parametrize("thread_count", [1, 2, 4])
def test_kinds_that_fill_chunks_have_some_of_their_own(thread_count):
    """A template with a whole chunk of work per thread shares none; the small ones share theirs."""
    templates = np.array([0, 1, 2] * 100)
    byte_counts = np.array([4.0e5, 1.0e5, 1.0e3])[templates]
    chunks = split_worlds(byte_counts, templates, thread_count=thread_count)
    assert sorted(np.concatenate(chunks).tolist()) == list(range(300))
    kinds = [set(templates[chunk].tolist()) for chunk in chunks]
    assert {0} in kinds
    assert all(kind == {0} or 0 not in kind for kind in kinds)
    for kind in ({0}, {1}):
        assert sum(found == kind for found in kinds) % thread_count == 0
    loads = [byte_counts[chunk].sum() for chunk in chunks]
    assert loads == sorted(loads, reverse=True)
    assert max(loads) < 1.3 * CHUNK_BYTES_MAX


@pytest.mark.parametrize(
    ("world_count", "thread_count", "tiled"),
    [(100, 1, 100 // 8), (1003, 1, 1003 // 8), (1003, 2, 1003 // 8), (64, 2, 8), (60, 2, 4)],
)
def test_worlds_of_one_template_come_in_whole_tiles(world_count, thread_count, tiled):
    """As many tiles of eight as there are, unless a thread would wait for the others."""
    templates = np.zeros(world_count, dtype=int)
    chunks = split_worlds(np.full(world_count, 1.0e5), templates, thread_count=thread_count)
    assert sum(len(chunk) // LANES for chunk in chunks) == tiled
    sizes = [len(chunk) for chunk in chunks]
    assert thread_count == 1 or max(sizes) <= 1.25 * min(sizes)


def test_mixed_worlds_come_in_whole_tiles():
    """Ten kinds of ten worlds in several chunks: each kind has its tile in one of them."""
    templates = np.repeat(np.arange(10), 10)
    chunks = split_worlds(np.full(100, 1.0e5), templates, thread_count=1)
    assert len(chunks) > 1
    shares = [np.bincount(templates[chunk], minlength=10) for chunk in chunks]
    assert (np.max(shares, axis=0) >= LANES).all()


def test_worlds_that_touch_less_memory_come_in_larger_chunks():
    """A quarter of the memory of a world makes a quarter of the chunks; every world is in one."""
    templates = np.zeros(640, dtype=int)
    byte_counts = np.full(640, CHUNK_BYTES_MAX / 40)
    large = split_worlds(byte_counts, templates, 1, chunk_share=0.25)
    assert (len(split_worlds(byte_counts, templates, 1)), len(large)) == (16, 4)
    assert sorted(np.concatenate(large).tolist()) == list(range(640))


def test_chunks_are_never_more_than_worlds():
    chunks = split_worlds(np.full(3, 1.0e7), np.zeros(3, dtype=int), thread_count=8)
    assert sorted(np.concatenate(chunks).tolist()) == [0, 1, 2]
    assert all(len(chunk) for chunk in chunks)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dt": 0.0}, "dt is 0.0 s"),
        ({"dt": float("nan")}, "dt is nan s"),
        ({"dt": DT, "decimation": 0}, "decimation is 0"),
        ({"dt": DT, "decimation": 1.5}, "decimation is 1.5"),
        ({"dt": DT, "threads": 0}, "threads is 0"),
        ({"dt": DT, "threads": True}, "threads is True"),
        ({"dt": DT, "rigid_contact_max": -1}, "-1"),
        ({"dt": DT, "rigid_contact_max": [1, 2, 3]}, "3"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    model = make_model(["flyer"])
    with pytest.raises(ValueError, match=message):
        pv.Simulation(model, **arguments)


def test_solver_of_another_model_is_refused():
    model, other = make_model(["flyer"]), make_model(["flyer"])
    with pytest.raises(ValueError, match="another model"):
        pv.Simulation(model, pv.SolverSAP(other), dt=DT)
    with pytest.raises(TypeError, match=r"solver is a str, .*SolverSAP\(model\)"):
        pv.Simulation(model, "sap", dt=DT)


def test_wrong_step_counts_and_worlds_are_named():
    with pv.Simulation(make_model(["flyer"]), dt=DT) as simulation:
        simulation.step(0)
        assert simulation.time == 0.0
        with pytest.raises(ValueError, match="count is -1"):
            simulation.step(-1)
        with pytest.raises(IndexError, match="world 1 does not exist"):
            simulation.reset([1])
