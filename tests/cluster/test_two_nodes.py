"""Two Ray nodes on this machine: the worlds of a node that is killed go on elsewhere, to the same bits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="the extra 'cluster' is not installed")

from tests.cluster.local_cluster import PATIENCE

# A process of its own, since the cluster of the other tests has one node.
SCRIPT = """
import numpy as np
import ray
from ray.cluster_utils import Cluster

import pluriverse as pv
from pluriverse.cluster import Fleet
from tests.cluster.local_cluster import started

if __name__ == "__main__":
    with pv.load_scene("cartpole", num_worlds=8).simulation(threads=1) as simulation:
        simulation.step(20)
        alone = simulation.state.joint_q.numpy().copy()
    head = {"num_cpus": 2, "include_dashboard": False}
    cluster = started(lambda: Cluster(initialize_head=True, head_node_args=head))
    second = started(lambda: cluster.add_node(num_cpus=1))
    ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
    cluster.wait_for_nodes()
    with Fleet("cartpole", worlds=8, workers=3) as fleet:
        nodes = [each[0] for each in fleet.call(lambda s, w: [ray.get_runtime_context().get_node_id()])]
        assert len(set(nodes)) == 2, nodes
        fleet.step(10)
        cluster.remove_node(second, allow_graceful=False)
        started(lambda: cluster.add_node(num_cpus=1))
        fleet.step(10)
        assert fleet.restart_count == 1, fleet.restart_count
        assert np.array_equal(fleet.observe("joint_q")["joint_q"].values, alone)
    ray.shutdown()
    cluster.shutdown()
    print("equal")
"""


def test_the_worlds_of_a_killed_node_go_on_elsewhere_with_the_same_bits(tmp_path):
    script = tmp_path / "nodes.py"
    script.write_text(SCRIPT)
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": root + os.pathsep + os.environ.get("PYTHONPATH", "")}
    environment.pop("RAY_ADDRESS", None)
    environment |= PATIENCE
    run = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=500
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
    assert "equal" in run.stdout
