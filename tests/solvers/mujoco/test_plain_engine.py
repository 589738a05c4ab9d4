"""The plain engine, on MuJoCo's public functions: the oracle of the engine that calls MuJoCo from kernels."""

import mujoco
import numpy as np
import pytest
import warp as wp
from mujoco import rollout

import pluriverse as pv
from pluriverse.solvers.mujoco.cpu import library
from pluriverse.solvers.mujoco.plain_engine import PlainEngine
from pluriverse.solvers.mujoco.solver import SolverMuJoCo
from pluriverse.warnings import FrozenWorldWarning, PluriverseWarning
from tests.solvers.mujoco.mapping.test_grouping import build_worlds
from tests.solvers.mujoco.worlds import build

DT = 0.004
MIX = ["robot", "boxes", "pendulum", "robot", "boxes"]
STATUS = ("last_contact_count", "last_solve_iterations", "last_converged", "needed_contact_count")
CONTACTS = ("count", "found", "shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1", "force")
# Contacts are computed in double precision and stored in single: one rounding of forces of up to 1e3 N.
ROUNDING = 2.0**-22


@pytest.fixture
def unknown_version(monkeypatch):
    """MuJoCo as if the engine in `cpu` found a field missing."""
    monkeypatch.setattr(library, "find_misfit", lambda: "The place of 'ncon' was not found.")


def plain(model: pv.Model, **options) -> SolverMuJoCo:
    with pytest.warns(PluriverseWarning, match=r"place of 'ncon' was not found\. Worlds are stepped through"):
        solver = SolverMuJoCo(model, **options)
    assert isinstance(solver.engine, PlainEngine)
    return solver


def step_both(solvers: list[SolverMuJoCo], count: int, model: pv.Model) -> list[tuple[pv.State, object]]:
    """Return the state and the contacts of each solver after some steps with drive targets and forces."""
    results = []
    for solver in solvers:
        contacts, control = solver.contacts(), model.control()
        control.joint_f.assign(0.1 * np.sin(np.arange(model.joint_dof_count)))
        states = [model.state(), model.state()]
        for _ in range(count):
            solver.step(*states, control, contacts, DT)
            states.reverse()
        results.append((states[0], contacts))
    return results


def assert_same(model: pv.Model, solvers: list[SolverMuJoCo], count: int) -> None:
    """Compare states in every bit, contacts to rounding, and what became of the steps."""
    (state, contacts), (expected, listed) = step_both(solvers, count, model)
    for name in ("joint_q", "joint_qd", "body_q", "body_qd"):
        np.testing.assert_array_equal(getattr(state, name).numpy(), getattr(expected, name).numpy(), name)
    for name in solvers[0].runtime_arrays:
        mine, theirs = (solver.runtime_arrays[name].numpy() for solver in solvers)
        np.testing.assert_array_equal(mine, theirs, name)
    for name in STATUS:
        mine, theirs = (getattr(solver, name).numpy() for solver in solvers)
        np.testing.assert_array_equal(mine, theirs, name)
    used = np.concatenate(
        [
            start + np.arange(found)
            for start, found in zip(
                listed.slot_start.numpy(), listed.rigid_contact_count.numpy(), strict=False
            )
        ]
    ).astype(np.int64)
    for name in CONTACTS:
        mine, theirs = (getattr(each, f"rigid_contact_{name}").numpy() for each in (contacts, listed))
        if name not in ("count", "found"):
            mine, theirs = mine[used], theirs[used]
        bound = ROUNDING * (np.abs(theirs).max(initial=1.0))
        np.testing.assert_allclose(mine, theirs, rtol=0.0, atol=bound, err_msg=name)


def test_both_engines_take_the_same_steps(unknown_version):
    """Mixed robots, boxes in contact and joints of all kinds, with fields of each world's own."""
    for model, count in ((build(MIX), 40), (build_worlds([3, 4, 5]).finalize(device="cpu"), 20)):
        with pytest.MonkeyPatch.context() as known:
            known.setattr(library, "find_misfit", lambda: "")
            reference = SolverMuJoCo(model)
        assert not isinstance(reference.engine, PlainEngine)
        assert_same(model, [plain(model), reference], count)


def test_both_engines_limit_speeds_alike(unknown_version):
    """The joints of a robot that begin too fast come within their limits, by the same impulses."""
    model = build(["robot"])
    model.joint_velocity_limit.fill_(0.5)
    model.joint_qd.assign(np.where(np.arange(model.joint_dof_count) < 6, 0.0, 3.0))
    with pytest.MonkeyPatch.context() as known:
        known.setattr(library, "find_misfit", lambda: "")
        reference = SolverMuJoCo(model, enforce_velocity_limit=True)
    solvers = [plain(model, enforce_velocity_limit=True), reference]
    (state, _), (expected, _) = step_both(solvers, 1, model)
    speeds = np.abs(state.joint_qd.numpy()[6:])
    assert speeds.max() == pytest.approx(0.5, rel=1e-5)
    np.testing.assert_allclose(state.joint_qd.numpy(), expected.joint_qd.numpy(), rtol=1e-6, atol=1e-6)


def test_steps_are_those_of_rollout():
    """Many steps of both engines' model in `mujoco.rollout` end in the same bits as ours."""
    model = build(["robot"])
    solver = SolverMuJoCo(model)
    states, control = [model.state(), model.state()], model.control()
    solver.step(*states, control, None, DT)
    rows = solver.engine.exchange.rows
    (group,) = solver.groups
    group.model.opt.timestep = DT
    start = np.concatenate([rows.time.numpy(), rows.qpos.numpy(), rows.qvel.numpy(), rows.act.numpy()])
    warmstart, ctrl = rows.qacc_warmstart.numpy()[None].copy(), rows.ctrl.numpy().copy()
    data = mujoco.MjData(group.model)
    assert len(start) == mujoco.mj_stateSize(group.model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    trajectory, _ = rollout.rollout(
        group.model, data, start[None], np.tile(ctrl, (1, 30, 1)), initial_warmstart=warmstart
    )
    for _ in range(30):
        states.reverse()
        solver.step(*states, control, None, DT)
    nq = group.model.nq
    np.testing.assert_array_equal(trajectory[0, -1, 1 : nq + 1], rows.qpos.numpy())
    np.testing.assert_array_equal(trajectory[0, -1, nq + 1 : nq + 1 + group.model.nv], rows.qvel.numpy())


def test_a_simulation_runs_without_recording(unknown_version):
    """It steps, resets and freezes as ever; recordings of somebody else are refused."""
    model = build(["boxes", "pendulum"])
    solver = plain(model)
    simulation = pv.Simulation(model, solver, dt=DT)
    velocity = simulation.state.joint_qd.numpy()
    velocity[0] = np.nan
    simulation.state.joint_qd.assign(velocity)
    with pytest.warns(FrozenWorldWarning, match="world 0"):
        simulation.step(5)
    assert solver.world_frozen.numpy().tolist() == [1, 0]
    simulation.reset([0])
    simulation.step(2)
    assert solver.world_frozen.numpy().tolist() == [0, 0]
    with (
        pytest.raises(RuntimeError, match="a recording is under way"),
        wp.ScopedCapture(device="cpu", force_module_load=False),
    ):
        solver.step(model.state(), model.state(), None, simulation.contacts, DT)
    with pytest.raises(ValueError, match="Python package cannot be given contacts"):
        plain(model, use_mujoco_contacts=False)


def test_arrays_that_are_tracked_reach_it(unknown_version):
    model = build(["boxes", "boxes"])
    solver = plain(model)
    solver.track_model(["body_mass", "gravity"])
    mass = model.body_mass.numpy()
    mass[2:] *= 2.0
    model.body_mass.assign(mass)
    solver.sync_worlds([1])
    (group,) = solver.groups
    np.testing.assert_allclose(group.value("body_subtreemass")[:, 0], [16.0, 32.0])
    with pytest.MonkeyPatch.context() as known:
        known.setattr(library, "find_misfit", lambda: "")
        fresh = SolverMuJoCo(model)
    for name in ("dof_invweight0", "body_invweight0"):
        np.testing.assert_allclose(group.value(name), fresh.groups[0].value(name), rtol=1e-12)


def test_this_version_of_mujoco_is_known():
    assert library.find_misfit() == ""


def test_a_version_without_a_function_is_found_out(monkeypatch):
    monkeypatch.setattr(library, "FUNCTIONS", (*library.FUNCTIONS, "mj_noSuchFunction"))
    library.function_addresses.cache_clear()
    library.find_misfit.cache_clear()
    try:
        assert "has no function mj_noSuchFunction" in library.find_misfit()
    finally:
        library.function_addresses.cache_clear()
        library.find_misfit.cache_clear()
