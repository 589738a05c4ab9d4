"""The clock of MuJoCo stands while an engine steps, and goes on afterwards."""

import gc

import mujoco
import pytest

from pluriverse.solvers.mujoco.cpu import clock
from pluriverse.solvers.mujoco.cpu.clock import clock_pointer
from pluriverse.solvers.mujoco.solver import SolverMuJoCo
from tests.solvers.mujoco.worlds import build

STEP = int(mujoco.mjtTimer.mjTIMER_STEP)


@pytest.fixture(autouse=True)
def _as_if_without_solvers(monkeypatch):
    """Begin with a running clock, whatever solvers other tests have left."""
    gc.collect()
    pointer = clock_pointer()
    before = pointer.value
    monkeypatch.setattr(clock, "_stops", 0)
    pointer.value = before or clock._clock
    yield
    gc.collect()
    pointer.value = before


def step_duration() -> float:
    """Return what MuJoCo's timer says of some steps of data of a user's own [s]."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='1'/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 20)
    assert data.timer[STEP].number == 20
    return float(data.timer[STEP].duration)


def test_the_clock_stands_while_a_solver_exists():
    """MuJoCo's timers count no time from the first solver on, and do again after the last one is gone."""
    assert step_duration() > 0.0
    first, second = (SolverMuJoCo(build(["boxes"])) for _ in range(2))
    assert step_duration() == 0.0
    del first
    gc.collect()
    assert step_duration() == 0.0
    del second
    gc.collect()
    assert step_duration() > 0.0


def test_a_clock_of_the_users_is_left_alone():
    """A function that was set from Python is called as before."""
    calls = []

    def tell_time() -> float:
        calls.append(None)
        return float(len(calls))

    mujoco.set_mjcb_time(tell_time)
    try:
        solver = SolverMuJoCo(build(["boxes"]))
        assert step_duration() > 0.0
        del solver
        gc.collect()
        assert mujoco.get_mjcb_time() is tell_time
    finally:
        mujoco.set_mjcb_time(None)
