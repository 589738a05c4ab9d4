"""A fleet gives every world the bits of one process, also where workers are lost."""

import os
import signal
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.cluster import ClusterError, Fleet, WorkerTaskError
from pluriverse.cluster.fleet import shared_out

pytestmark = pytest.mark.usefixtures("ray_cluster")
WORLD_COUNT = 8
STEP_COUNT = 24


@pytest.fixture(scope="module")
def alone():
    """Coordinates of the mixed scene in one process, after some steps under targets, by world."""
    with pv.load_scene("mixed", num_worlds=WORLD_COUNT).simulation(threads=1) as simulation:
        simulation.control.joint_target_pos.fill_(0.1)
        simulation.step(STEP_COUNT)
        start = simulation.model.joint_coord_world_start.numpy()
        return np.split(simulation.state.joint_q.numpy().copy(), start[1:WORLD_COUNT])


@pytest.fixture(scope="module")
def fleet():
    with Fleet("mixed", worlds=WORLD_COUNT, workers=2, snapshot_interval=3) as fleet:
        yield fleet


def check_equal(rows, expected):
    assert len(rows) == len(expected)
    for world, (row, value) in enumerate(zip(rows, expected, strict=True)):
        np.testing.assert_array_equal(row, value, err_msg=f"world {world}")


def begin(fleet):
    fleet.reset()
    fleet.set_targets(0.1)


def test_worlds_of_two_workers_have_the_bits_of_one_process(fleet, alone):
    begin(fleet)
    fleet.step(STEP_COUNT // 2)
    check_equal(fleet.step(STEP_COUNT // 2, observe="joint_q")["joint_q"], alone)
    report = fleet.report()
    assert (report.world_count, report.frozen_worlds) == (WORLD_COUNT, ())


@pytest.mark.parametrize("step_before_the_kill", [0, 2, 5])
def test_a_killed_worker_is_replaced_and_its_work_done_again_to_the_same_bits(
    fleet, alone, step_before_the_kill
):
    """Whether the last snapshot is older than what was asked since or not, nothing is lost or done twice."""
    begin(fleet)
    restarts = fleet.restart_count
    for step in range(6):
        if step == step_before_the_kill:
            os.kill(fleet.parts[1].process_id(), signal.SIGKILL)
        fleet.step(STEP_COUNT // 6)
    check_equal(fleet.observe("joint_q")["joint_q"], alone)
    assert fleet.restart_count == restarts + 1


def test_worlds_at_their_own_pace_have_the_bits_of_a_loop(fleet):
    def policy(observation, worlds):
        return {"joint_target_pos": 0.1 * np.sin(observation["joint_qd"].values)}

    begin(fleet)
    numbers = [(part.index, number) for part, number, _ in fleet.rollout(policy, steps=4, step_count=3)]
    paced = fleet.observe("joint_q")["joint_q"]
    assert sorted(numbers) == [(part, number) for part in range(2) for number in range(4)]
    begin(fleet)
    for _ in range(4):
        fleet.set_targets(policy(fleet.observe(), range(WORLD_COUNT))["joint_target_pos"])
        fleet.step(3)
    check_equal(fleet.observe("joint_q")["joint_q"], paced)


def test_values_that_were_written_over_are_sent_again_as_they_were(fleet):
    """Callers use the same array for the targets of every step; a replay needs those of each."""
    targets = np.empty(len(fleet.observe("joint_target_pos")["joint_target_pos"].values), dtype=np.float32)

    def play(kill):
        begin(fleet)
        fleet.parts[1].take_snapshot()
        for step in range(2):
            targets[:] = 0.1 * step
            fleet.set_targets(targets)
            fleet.step(3)
        if kill:
            os.kill(fleet.parts[1].process_id(), signal.SIGKILL)
        targets[:] = 5.0
        return fleet.step(1, observe="joint_q")["joint_q"]

    fleet_interval = [part._interval for part in fleet.parts]
    for part in fleet.parts:
        part._interval = 100  # so that all of it is played again
    check_equal(play(True), list(play(False)))
    for part, interval in zip(fleet.parts, fleet_interval, strict=True):
        part._interval = interval


def test_resets_and_writes_reach_the_worlds_that_are_meant(fleet):
    """Worlds 1 and 6 live on different workers; only they go back, and only their masses change."""
    begin(fleet)
    initial, mass = fleet.observe("joint_q")["joint_q"], fleet.observe("body_mass")["body_mass"]
    fleet.step(5)
    moved = fleet.observe("joint_q")["joint_q"]
    fleet.reset([1, 6])
    check_equal(
        fleet.observe("joint_q")["joint_q"], [(initial if w in (1, 6) else moved)[w] for w in range(8)]
    )
    doubled = np.concatenate([2.0 * mass[1], 2.0 * mass[6]])
    fleet.write("body_mass", doubled, worlds=[1, 6])
    check_equal(
        fleet.observe("body_mass")["body_mass"], [mass[w] * (2 if w in (1, 6) else 1) for w in range(8)]
    )
    fleet.write("body_mass", mass.values)


def test_functions_run_where_the_worlds_are(fleet):
    def count_bodies(simulation, worlds, factor):
        return worlds.start, simulation.model.body_count * factor

    results = fleet.call(count_bodies, 2)
    assert [first for first, _ in results] == [part.worlds.start for part in fleet.parts]
    assert sum(bodies for _, bodies in results) == 2 * len(fleet.observe("body_mass")["body_mass"].values)


def test_wrong_arguments_are_refused_and_leave_the_fleet_in_order(fleet):
    with pytest.raises(WorkerTaskError, match=r"worker 0 .*no array is called 'joint_quu'"):
        fleet.observe("joint_quu")
    with pytest.raises(IndexError, match="world 8 does not exist"):
        fleet.reset([8])
    with pytest.raises(ValueError, match="mask of worlds has shape"):
        fleet.reset(np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="values of body_mass have shape"):
        fleet.write("body_mass", [1.0, 2.0])
    with pytest.raises(WorkerTaskError, match="not all finite"):
        fleet.write("joint_target_pos", np.nan)
    lock = __import__("threading").Lock()
    with pytest.raises(ValueError, match="cannot be sent to workers"):
        fleet.call(lambda simulation, worlds: lock)
    with pytest.raises(WorkerTaskError, match="ZeroDivisionError"):
        fleet.call(lambda simulation, worlds: 1 / 0)
    fleet.step(1)


def test_a_worker_lost_twice_over_the_same_work_is_an_error(fleet):
    """What ends its process each time, such as memory, must not be tried for ever."""
    with pytest.raises(ClusterError, match=r"worker 0 .* was lost twice over the same work, call"):
        fleet.call(lambda simulation, worlds: os.kill(os.getpid(), signal.SIGKILL))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"worlds": 0}, "worlds is 0"),
        ({"worlds": 5, "workers": 6}, "6 workers cannot share 5 worlds"),
        ({"workers": 0}, "workers is 0"),
        ({"solver": "bullet"}, "solver is 'bullet'"),
        ({"snapshot_interval": 2.5}, r"snapshot_interval is 2\.5"),
    ],
)
def test_wrong_options_are_refused_before_workers_start(arguments, message):
    with pytest.raises(ValueError, match=message):
        Fleet("mixed", **arguments)


def test_factories_are_checked():
    with pytest.raises(TypeError, match="must be a scene file"):
        Fleet(3)
    with pytest.raises(ValueError, match="needs the number of all worlds"):
        Fleet(lambda worlds: None)
    with pytest.raises(ClusterError, match="the factory returned a NoneType for worlds 0 to 1"):
        Fleet(lambda worlds: None, worlds=2, workers=1)
    lock = __import__("threading").Lock()
    with pytest.raises(ValueError, match="cannot be sent to workers"):
        Fleet(lambda worlds: lock, worlds=2)


def test_a_factory_gives_the_worlds_that_it_is_asked_for():
    def make(worlds):
        import pluriverse as pv

        builder = pv.ModelBuilder()
        for world in worlds:
            builder.begin_world()
            body = builder.add_body(xform=(0.0, 0.0, 1.0 + world, 0.0, 0.0, 0.0, 1.0))
            builder.add_shape_sphere(body, radius=0.1)
            builder.end_world()
        return pv.Simulation(builder.finalize("cpu"), dt=0.005, threads=1)

    with Fleet(make, worlds=3, workers=2) as fleet:
        fleet.step(2)
        heights = fleet.observe("body_q")["body_q"].array[:, 0, 2]
    time, dt = 0.01, 0.005
    fall = 0.5 * 9.81 * time**2  # steps of first order err by g t dt / 2
    np.testing.assert_allclose(heights, 1.0 + np.arange(3) - fall, atol=0.5 * 9.81 * time * dt + 1e-6)


@pytest.mark.parametrize(
    ("address", "variable", "expected"),
    [(None, None, "local"), (None, "10.0.0.1:6379", "10.0.0.1:6379"), ("auto", "10.0.0.1:6379", "auto")],
)
def test_a_cluster_that_nobody_named_is_not_used(monkeypatch, address, variable, expected):
    """Ray itself would take one that another program left running here, and refuse to be told its size."""
    from pluriverse.cluster import runtime

    given = {}
    fake = SimpleNamespace(is_initialized=lambda: False, init=given.update)
    monkeypatch.setattr(runtime, "load_ray", lambda: fake)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if variable is not None:
        monkeypatch.setenv("RAY_ADDRESS", variable)
    runtime.connect(address, 2, 1.0)
    assert given["address"] == expected
    assert ("num_cpus" in given) == (expected == "local")


def test_a_cluster_that_does_not_start_is_an_error_of_the_cluster(monkeypatch):
    """Ray raises a bare exception where its processes take too long to start."""
    from pluriverse.cluster import runtime

    def fail(**_):
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(runtime, "load_ray", lambda: SimpleNamespace(is_initialized=lambda: False, init=fail))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(ClusterError, match=r"no Ray cluster can be used on this machine: .*timed out"):
        runtime.connect(None, 2, 1.0)


def test_workers_of_other_versions_are_refused(monkeypatch):
    from pluriverse.cluster import runtime

    with pytest.raises(ClusterError, match=r"warp-lang 1\.2\.3 there and"):
        runtime.check_versions(runtime.versions() | {"warp-lang": "1.2.3"}, "n1")


def test_without_ray_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'pluriverse\[cluster\]'"):
        Fleet("mixed", worlds=8, workers=2)


def test_ranges_share_the_costs():
    """Ranges are of neighbours, none is empty, and none costs more than its share and a world."""
    costs = np.array([1.0] * 30 + [30.0] * 10)
    for count in (1, 2, 7, 40):
        ranges = shared_out(costs, count)
        assert [world for part in ranges for world in part] == list(range(40))
        assert min(len(part) for part in ranges) >= 1
        sums = [costs[part.start : part.stop].sum() for part in ranges]
        assert max(sums) <= costs.sum() / count + costs.max()
