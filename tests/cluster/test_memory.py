"""Memory that runs out ends a worker, whose work is done again once by a new one, to the same bits."""

import sys
from pathlib import Path

import numpy as np
import pytest

from pluriverse.cluster import ClusterError, Fleet, FleetVectorEnv, evaluate
from pluriverse.cluster.errors import is_out_of_memory

pytestmark = [
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are those of Linux"),
]
# More than a worker may add to what it has [bytes].
ALLOWED, WANTED = 256 * 2**20, 2 * 2**30


def run_out_of_memory(marker=None):
    """Allocate beyond a limit of this process; only the first time if there is a file to tell."""
    import resource

    if marker is not None:
        if Path(marker).exists():
            return
        Path(marker).touch()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft = pages * resource.getpagesize() + ALLOWED
    resource.setrlimit(resource.RLIMIT_AS, (soft, resource.getrlimit(resource.RLIMIT_AS)[1]))
    np.ones(WANTED, dtype=np.uint8)


def test_worlds_of_a_worker_without_memory_go_on_in_another_with_the_same_bits(tmp_path):
    marker = str(tmp_path / "once")

    def allocate(simulation, worlds):
        if worlds.start == 0:
            run_out_of_memory(marker)

    with Fleet("cartpole", worlds=4, workers=2, snapshot_interval=3) as fleet:
        for _ in range(4):
            fleet.step(5)
        expected = fleet.observe("joint_q")["joint_q"].values
        fleet.reset()
        first = fleet.parts[0].process_id()
        for step in range(4):
            if step == 2:
                fleet.call(allocate)
            fleet.step(5)
        assert fleet.restart_count == 1
        assert fleet.parts[0].process_id() != first
        np.testing.assert_array_equal(fleet.observe("joint_q")["joint_q"].values, expected)
        with pytest.raises(
            ClusterError, match=r"worker 0 .*lost twice over the same work, call: .*MemoryError"
        ):
            fleet.call(lambda simulation, worlds: run_out_of_memory() if worlds.start == 0 else None)


def test_a_worker_that_the_memory_monitor_kills_at_its_start_needs_memory_not_an_installation(
    ray_cluster, monkeypatch
):
    """Ray's own monitor ends workers of a node that runs low, before they have raised anything."""

    def killed(*_, **__):
        raise ray_cluster.exceptions.OutOfMemoryError("1 worker(s) were killed: the node is low on memory.")

    with Fleet("cartpole", worlds=2, workers=1) as fleet, monkeypatch.context() as patch:
        patch.setattr(ray_cluster, "get", killed)
        with pytest.raises(ClusterError, match=r"could not start: .*low on memory.* fewer worlds"):
            fleet.parts[0].check_start(None)


def test_episodes_of_a_worker_without_memory_are_made_again_once(tmp_path):
    def height(simulation, worlds):
        if worlds.start == 2:
            run_out_of_memory(str(tmp_path / "once"))
        return {"angle": simulation.state.joint_q.numpy().reshape(len(worlds), -1)[:, 1]}

    arguments = {"episodes": 6, "steps": 5, "batch": 2, "workers": 1}
    found = evaluate(None, "cartpole", metrics=height, **arguments)
    assert (tmp_path / "once").exists()
    assert found.equals(evaluate(None, "cartpole", metrics=height, **arguments))

    def greedy(simulation, worlds):
        if worlds.start == 2:
            run_out_of_memory()
        return {}

    message = r"episodes 2 to 3\) was lost 2 times: .*Memory.*rows of 2 pieces are kept"
    with pytest.raises(ClusterError, match=message):
        evaluate(None, "cartpole", metrics=greedy, **arguments)


def test_environments_that_do_not_fit_into_memory_are_refused_with_the_remedy():
    pytest.importorskip("torch")

    def greedy():
        from pluriverse.envs import make_task

        run_out_of_memory()
        return make_task("cartpole")

    with pytest.raises(ClusterError, match=r"worker 0 .*MemoryError.*fewer worlds"):
        FleetVectorEnv(greedy, 2, workers=1)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError("x"), True),
        (RuntimeError("Failed to allocate 42 bytes on device 'cuda:0'"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("world 3 is frozen"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_errors_of_memory_are_distinguished_from_others(error, expected):
    assert is_out_of_memory(error) == expected
