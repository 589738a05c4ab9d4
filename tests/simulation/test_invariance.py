"""A world does not notice its neighbours, the threads, or how the step is made."""

import ctypes

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.dynamics.workspace import scratch_ranges
from pluriverse.simulation import chunks, step_loop

from .worlds import DT, KINDS, assert_same_bits, make_model, world_bits

# Long enough for all to hit the ground, slide, roll and come to lie.
STEP_COUNT = 120
NAMES = list(KINDS)


@pytest.fixture(scope="module")
def alone() -> dict[str, dict[str, np.ndarray]]:
    """The end of each kind of world, alone, stepped with the loop that a user writes by hand."""
    ends = {}
    for kind in NAMES:
        model = make_model([kind])
        pipeline = pv.CollisionPipeline(model)
        contacts = pipeline.contacts()
        solver = pv.SolverSAP(model)
        state, other, control = model.state(), model.state(), model.control()
        for _ in range(STEP_COUNT):
            pipeline.collide(state, contacts, horizon=solver.contact_horizon(DT))
            solver.step(state, other, control, contacts, DT)
            state, other = other, state
        ends[kind] = world_bits(model, state, 0)
        assert np.isfinite(ends[kind]["joint_q"]).all()
    return ends


@pytest.mark.parametrize("record", [True, False], ids=["recorded", "launched"])
@pytest.mark.parametrize("threads", [1, 4])
def test_world_among_63_of_other_kinds_has_the_bits_of_the_world_alone(alone, threads, record):
    """Neither the batch, nor the position in it, nor threads, nor recording change a bit."""
    order = np.random.default_rng(7).permutation(np.repeat(np.arange(len(NAMES)), 64 // len(NAMES)))
    kinds = [NAMES[index] for index in order]
    model = make_model(kinds)
    with pv.Simulation(model, dt=DT, threads=threads, record=record) as simulation:
        simulation.step(STEP_COUNT)
        for world, kind in enumerate(kinds):
            assert_same_bits(
                world_bits(model, simulation.state, world), alone[kind], f"world {world}, {kind}"
            )


@pytest.mark.parametrize(("part_bytes", "count"), [(1, 3), (1 << 40, 1)])
def test_steps_in_parts_have_the_bits_of_whole_ones(alone, monkeypatch, part_bytes, count):
    """Threads that share a step part by part make the steps of a world alone."""
    monkeypatch.setattr(step_loop, "PART_BYTES", part_bytes)
    monkeypatch.setattr(step_loop, "THREAD_WORK_BYTES", 1)
    replayed = []
    replay = step_loop.StepLoop._replay

    def noted(loop, recordings, thread_count):
        replayed.append((thread_count, {len(graphs) for graphs in recordings}))
        replay(loop, recordings, thread_count)

    share = step_loop.SharedReplay.run

    def noted_plan(shared, plan, thread_count):
        replayed.append((thread_count, {len(graphs) for graphs in plan.recordings}))
        share(shared, plan, thread_count)

    monkeypatch.setattr(step_loop.StepLoop, "_replay", noted)
    monkeypatch.setattr(step_loop.SharedReplay, "run", noted_plan)
    model = make_model(NAMES * 4)
    with pv.Simulation(model, dt=DT, decimation=3, threads=3) as simulation:
        for _ in range(STEP_COUNT // 3):
            simulation.step()
        assert simulation.report().step_count == STEP_COUNT
        for world, kind in enumerate(NAMES * 4):
            assert_same_bits(
                world_bits(model, simulation.state, world), alone[kind], f"world {world}, {kind}"
            )
    assert replayed == [(3, {count})] * (STEP_COUNT // 3)


def spoil_scratch(loop: step_loop.StepLoop) -> None:
    """Fill the scratch of all worlds with bits that are NaN, or -1 in integers."""
    for scratch in loop._scratch():
        stride, begin = scratch.array.strides[0], scratch.array.ptr
        for first, count in zip(scratch.first.tolist(), scratch.count.tolist(), strict=True):
            ctypes.memset(begin + first * stride, 0xFF, count * stride)


def test_chunks_that_borrow_scratch_have_the_bits_of_a_world_alone(alone, monkeypatch):
    """Chunks of a queue use the places of one of them; what is left there changes no bit of another."""
    monkeypatch.setattr(chunks, "CHUNK_BYTES_MAX", 50_000)
    monkeypatch.setattr(step_loop, "THREAD_WORK_BYTES", 1)
    kinds = NAMES * 8
    model = make_model(kinds)
    with pv.Simulation(model, dt=DT, decimation=3, threads=2) as simulation:
        solver = simulation.solver
        simulation.prepare()
        recordings, queues = simulation._loop._chunks, simulation._loop._queues
        assert len(queues) == 4
        assert sum(chunk._borrowing is not None for chunk in recordings) >= 4
        for _ in range(STEP_COUNT // 3):
            spoil_scratch(simulation._loop)
            simulation.step()
        for world, kind in enumerate(kinds):
            assert_same_bits(
                world_bits(model, simulation.state, world), alone[kind], f"world {world}, {kind}"
            )
        # Those who borrow leave their own places alone.
        first, count = scratch_ranges(model)["row"]
        masses = solver.dynamics.mass_row.numpy()
        for chunk in recordings:
            for world in chunk.worlds.numpy():
                is_written = np.isfinite(masses[first[world] : first[world] + count[world]]).all()
                assert is_written == (chunk._borrowing is None)
        # Forces on bodies need what each world has kept.
        forces = solver.body_contact_force(simulation.contacts).numpy().reshape(8, -1, 6)
        assert np.abs(forces).max() > 1.0
        assert (forces == forces[0]).all()
        with pytest.raises(RuntimeError, match="use the same memory"):
            solver.convex_problem(0, DT)


def test_scratch_is_written_before_it_is_read_in_each_solver_step(alone, monkeypatch):
    """Also in a later step of a row, what an earlier one left in scratch changes no bit."""
    launch = step_loop.StepLoop._launch_step

    def launch_spoilt(loop, index, count, worlds):
        if worlds.size:
            spoil_scratch(loop)
        launch(loop, index, count, worlds)

    monkeypatch.setattr(step_loop.StepLoop, "_launch_step", launch_spoilt)
    model = make_model(NAMES)
    with pv.Simulation(model, dt=DT, decimation=3, record=False) as simulation:
        simulation.step(STEP_COUNT // 3)
        for world, kind in enumerate(NAMES):
            assert_same_bits(world_bits(model, simulation.state, world), alone[kind], kind)


def test_steps_one_by_one_have_the_bits_of_many_in_one_call(alone):
    """Blocks of recorded steps, single steps, and odd counts between them: the same bits."""
    model = make_model(NAMES)
    with pv.Simulation(model, dt=DT, threads=2) as simulation:
        simulation.step()
        simulation.step(34)
        for _ in range(5):
            simulation.step()
        simulation.step(STEP_COUNT - 40)
        assert simulation.step_count == STEP_COUNT
        assert simulation.time == pytest.approx(STEP_COUNT * DT)
        for world, kind in enumerate(NAMES):
            assert_same_bits(world_bits(model, simulation.state, world), alone[kind], kind)


@pytest.mark.parametrize("decimation", [2, 3])
def test_decimation_makes_as_many_solver_steps_in_each_step(alone, decimation):
    """`decimation` steps of the solver in one step, with an even and an odd number."""
    model = make_model(NAMES)
    with pv.Simulation(model, dt=DT, decimation=decimation, threads=2) as simulation:
        simulation.step()
        simulation.step(STEP_COUNT // decimation - 1)
        assert simulation.step_count == STEP_COUNT
        for world, kind in enumerate(NAMES):
            assert_same_bits(world_bits(model, simulation.state, world), alone[kind], kind)


def test_world_steps_are_counted_with_their_contacts_and_iterations():
    """Every world-step is counted once: a flyer has no contact, a resting pile three times four."""
    model = make_model(["flyer", "pile"])
    with pv.Simulation(model, dt=DT, threads=1) as simulation:
        simulation.step(300)
        simulation.clear_report()
        simulation.step(50)
        report = simulation.report()
        counts = simulation.contacts.rigid_contact_count.numpy()
    assert (report.world_count, report.step_count) == (2, 50)
    assert counts[0] == 0
    assert counts[1] >= 12  # four corners or more between each of three pairs of faces
    assert report.contact_count_mean == pytest.approx(counts.sum() / 2)  # at rest, so the same in every step
    assert report.contact_count_peak == counts[1]
    assert report.iteration_count_peak >= 1
    assert report.frozen_worlds == ()
    assert report.world_steps_per_second == pytest.approx(100 / report.wall_time)
