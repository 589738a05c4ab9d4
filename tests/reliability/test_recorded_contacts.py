"""Recorded steps keep what they were recorded with, whatever the solver is used for meanwhile."""

from typing import Any

import numpy as np
import pytest

from pluriverse import Contacts, Simulation
from pluriverse.solvers import SolverMuJoCo, SolverSAP
from tests.reliability.scenes import make_boxes

SOLVERS: dict[str, Any] = {
    "sap": SolverSAP,
    "mujoco_fed": lambda model: SolverMuJoCo(model, use_mujoco_contacts=False),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_a_step_by_hand_with_other_contacts_leaves_recorded_steps_intact(name: str):
    """What a recorded step works on lives as long as its contacts. MuJoCo's warm start is the last one."""
    results = []
    for is_disturbed in (False, True):
        model = make_boxes(8)
        solver = SOLVERS[name](model)
        simulation = Simulation(model, solver, dt=0.005, threads=1)
        simulation.step(4)
        for capacity in range(20, 40) if is_disturbed else ():
            solver.step(model.state(), model.state(), None, Contacts(model, capacity), 0.005)
            np.full(100_000, 1e30)  # whoever gets the memory next
        for _ in range(20):
            simulation.step()
        results.append(simulation.state.joint_q.numpy().copy())
    np.testing.assert_allclose(*results, rtol=0.0, atol=0.0 if name == "sap" else 1e-4)
