"""Ctrl-C, Python threads and forked processes."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pluriverse import Simulation
from pluriverse.solvers import SolverMuJoCo, SolverSAP
from tests.reliability.scenes import make_boxes

ROOT = Path(__file__).parents[2]

# Hours of steps on two threads, in one call.
LONG_CALL = """
import signal
import threading
from pluriverse import Simulation
from pluriverse.warnings import SimulationError
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores Ctrl-C
from tests.reliability.scenes import make_boxes
simulation = Simulation(make_boxes(64, box_count=4), dt=0.001, threads=2)
simulation.step(2)
threading.Timer(1.0, lambda: print("stepping", flush=True)).start()
try:
    simulation.step(1_000_000)
except KeyboardInterrupt:
    print("interrupted", flush=True)
try:
    simulation.step()
except SimulationError:
    print("refused", flush=True)
simulation.reset()
simulation.step(3)
print("went on", simulation.step_count, flush=True)
"""


def test_ctrl_c_ends_a_long_call_on_two_threads_at_once():
    """The call raises long before it would have ended; worlds at different times are not stepped."""
    process = subprocess.Popen(
        [sys.executable, "-c", LONG_CALL],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        text=True,
    )
    assert process.stdout is not None
    while process.stdout.readline() not in ("stepping\n", ""):
        pass
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=300.0)
    finally:
        process.kill()
    assert output.splitlines() == ["interrupted", "refused", "went on 3"]


def make_simulation(kind: int) -> Simulation:
    """Return one of three kinds of simulations."""
    model = make_boxes(4 + kind, box_count=1 + kind, hinge=kind == 1)
    solver: Any = SolverMuJoCo(model) if kind == 2 else SolverSAP(model)
    return Simulation(model, solver, dt=0.005, threads=2)


def test_simulations_are_made_and_stepped_in_three_threads_at_once():
    """Recording is one at a time; what each thread gets is, to the bit, what it gets alone."""
    kinds = (0, 1, 2)
    expected = []
    for kind in kinds:
        simulation = make_simulation(kind)
        simulation.step(20)
        expected.append(simulation.state.joint_q.numpy().copy())
    for _ in range(3):
        found: dict[int, Any] = {}
        barrier = threading.Barrier(len(kinds))

        def work(kind: int, found: dict[int, Any] = found, barrier: Any = barrier) -> None:
            try:
                barrier.wait()
                simulation = make_simulation(kind)
                barrier.wait()
                for _ in range(20):
                    simulation.step()
                found[kind] = simulation.state.joint_q.numpy().copy()
            except BaseException as error:  # noqa: BLE001  (looked at below)
                found[kind] = error
                barrier.abort()

        threads = [threading.Thread(target=work, args=(kind,)) for kind in kinds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=300.0)
        for kind in kinds:
            np.testing.assert_array_equal(found[kind], expected[kind])


FIRST_CALLS = """
import threading
import numpy as np
import warp as wp
import pluriverse as pv
from pluriverse import ik, selection

def make_model():
    arm = pv.ModelBuilder()
    link = arm.add_link(mass=1.0, inertia=0.1 * np.eye(3), com=(0.0, 0.0, -0.5))
    arm.add_shape_box(link, hx=0.1, hy=0.1, hz=0.1)
    arm.add_articulation([arm.add_joint_revolute(-1, link, axis="y")], label="arm")
    arm.add_ground_plane()
    builder = pv.ModelBuilder()
    builder.replicate(arm, 2)
    model = builder.finalize(device="cpu")
    model.joint_q.fill_(0.3)
    return model

def loop():
    model = make_model()
    pipeline = pv.CollisionPipeline(model)
    contacts, solver = pipeline.contacts(), pv.SolverSAP(model)
    state, next_state = model.state(), model.state()
    for _ in range(20):
        pipeline.collide(state, contacts)
        solver.step(state, next_state, None, contacts, 0.005)
        state, next_state = next_state, state
    return state.joint_q

def query():
    model = make_model()
    state = model.state()
    pv.eval_fk(model, state.joint_q, state.joint_qd, state)
    pv.eval_world_momenta(model, state)
    pv.eval_jacobian(model, state)
    pv.eval_mass_matrix(model, state)
    return pv.eval_inverse_dynamics(model, state, model.joint_qd)

def solve():
    model = make_model()
    tip = ik.IKObjectivePosition(0, (0.0, 0.0, -1.0), np.array([[-0.6, 0.0, -0.8]], dtype=np.float32))
    coordinates = wp.full((1, model.joint_coord_count), 0.3, dtype=float)
    ik.IKSolver(model, n_problems=1, objectives=[tip]).step(coordinates, coordinates)
    return coordinates

def read():
    model = make_model()
    return selection.ArticulationView(model, "arm").get_dof_positions(model.state())

def simulate():
    with pv.Simulation(make_model(), dt=0.005, threads=1) as simulation:
        simulation.step(20)
        return simulation.state.joint_q

for call in (loop, query, solve, read, simulate):
    barrier, found = threading.Barrier(3), []

    def work():
        barrier.wait()
        found.append(call().numpy())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(found, 3 * [call().numpy()], err_msg=call.__name__)
print("as alone")
"""


def test_first_calls_in_threads_give_what_they_give_alone():
    """Kernels are declared and loaded once, whoever calls first, and the process works on afterwards.

    In two threads with a model each, steps of a loop, queries and views failed, and did so for ever.
    """
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIRST_CALLS],
        cwd=ROOT,
        timeout=300.0,
        check=False,
        capture_output=True,
        text=True,
    )
    assert process.stdout.splitlines()[-1:] == ["as alone"], process.stderr


FORKED = """
import os, sys
from pluriverse import Simulation
from tests.reliability.test_processes import make_simulation
simulations = [make_simulation(kind) for kind in range(3)]
for simulation in simulations:
    simulation.step(5)
child = os.fork()
for simulation in simulations:
    simulation.step(5)
simulations.append(make_simulation(0))  # also one that is made afterwards
simulations[-1].step(5)
bits = b"".join(simulation.state.joint_q.numpy().tobytes() for simulation in simulations)
with open(sys.argv[1] + ("/parent" if child else "/child"), "wb") as file:
    file.write(bits)
if child:
    os.waitpid(child, 0)
else:
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="forks are a matter of Unix")
def test_a_simulation_is_stepped_in_a_forked_process_as_in_its_parent(tmp_path: Path):
    """A child has none of its parent's threads; it makes its own, and gets the same bits."""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path)],
        cwd=ROOT,
        timeout=300.0,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert (tmp_path / "child").read_bytes() == (tmp_path / "parent").read_bytes()
