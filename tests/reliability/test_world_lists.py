"""Lists of worlds on the device that name worlds which do not exist."""

import warnings
from typing import Any

import numpy as np
import pytest
import warp as wp

from pluriverse import Model, Simulation
from pluriverse.collision import CollisionPipeline
from pluriverse.dynamics import eval_fk, eval_ik, eval_loops, eval_mass_matrix
from pluriverse.randomization import Randomizer, Uniform, friction
from pluriverse.selection import BodyView
from pluriverse.solvers import SolverMuJoCo, SolverSAP
from pluriverse.warnings import DeviceIndexError, DeviceIndexWarning
from tests.reliability.scenes import make_boxes

BAD = [-1, 3, 10**6, 2**31 - 1, -(2**31)]


@pytest.fixture(scope="module")
def model() -> Model:
    """Return three worlds of one box."""
    return make_boxes()


def listed(*worlds: int) -> Any:
    """Return a list on the device."""
    return wp.array(np.array(worlds, dtype=np.int32), dtype=wp.int32, device="cpu")


@pytest.mark.parametrize("make", [SolverSAP, SolverMuJoCo])
def test_a_step_leaves_out_worlds_that_do_not_exist_and_says_so(model: Model, make: Any):
    """World 1 gets the bits that it gets alone, the others are untouched, and a warning gives the number."""
    solver, alone = make(model), make(model)
    before, after, expected = model.state(), model.state(), model.state()
    before.joint_qd.fill_(0.5)
    for state in (after, expected):
        state.joint_q.fill_(7.0)
    solver.step(before, after, None, None, 0.01, worlds=listed(*BAD, 1))
    alone.step(before, expected, None, None, 0.01, worlds=listed(1))
    np.testing.assert_array_equal(after.joint_q.numpy(), expected.joint_q.numpy())
    assert (after.joint_q.numpy()[:7] == 7.0).all()
    with pytest.warns(DeviceIndexWarning, match=r"5 indices .* worlds 0 to 2"):
        solver.report()


def test_a_world_that_is_named_twice_is_stepped_once(model: Model):
    """A list of worlds is a set: MuJoCo would otherwise step the world twice."""
    solver, alone = SolverMuJoCo(model), SolverMuJoCo(model)
    before, after, expected = model.state(), model.state(), model.state()
    solver.step(before, after, None, None, 0.01, worlds=listed(2, 2, 2))
    alone.step(before, expected, None, None, 0.01, worlds=listed(2))
    np.testing.assert_array_equal(after.joint_q.numpy(), expected.joint_q.numpy())


def test_other_calls_leave_out_worlds_that_do_not_exist(model: Model):
    """Every public call that takes worlds on the device checks them there, and all count into one report."""
    pipeline, solver = CollisionPipeline(model), SolverSAP(model)
    contacts, state = pipeline.contacts(), model.state()
    contacts.rigid_contact_count.fill_(9)
    pipeline.collide(state, contacts, worlds=listed(*BAD, 1))
    assert contacts.rigid_contact_count.numpy().tolist() == [9, 4, 9]
    model.control().unify_targets(listed(*BAD))
    eval_loops(model, state, worlds=listed(*BAD))
    eval_ik(model, state, wp.clone(model.joint_q), wp.clone(model.joint_qd), worlds=listed(*BAD))
    assert not eval_mass_matrix(model, state, worlds=listed(*BAD)).numpy().any()
    with pytest.raises(DeviceIndexError, match="named no world"):
        solver.report(strict=True)


def test_a_recorded_step_follows_what_the_list_holds(model: Model):
    """What is replayed checks the list anew: it may hold other worlds by then, also wrong ones."""
    solver, worlds = SolverSAP(model), listed(0, 1)
    before, after = model.state(), model.state()
    before.joint_qd.fill_(0.5)
    solver.step(before, after, None, None, 0.01, worlds=worlds)
    with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
        solver.step(before, after, None, None, 0.01, worlds=worlds)
    after.joint_q.fill_(7.0)
    worlds.assign(np.array([2, 2**31 - 1], dtype=np.int32))
    wp.capture_launch(capture.graph)
    assert (after.joint_q.numpy() == 7.0).tolist() == [True] * 14 + [False] * 7
    with pytest.warns(DeviceIndexWarning):
        solver.report()


@pytest.mark.parametrize("bad", BAD)
def test_reset_ignores_indices_on_the_device_that_name_no_world(model: Model, bad: int):
    """The largest index plus one is negative in 32 bits, which a careless comparison lets through."""
    simulation = Simulation(model, dt=0.01, threads=1, record=False)
    simulation.step(2)
    moved = simulation.state.joint_q.numpy().copy()
    simulation.reset(listed(bad, 1))
    now = simulation.state.joint_q.numpy()
    np.testing.assert_array_equal(now[7:14], model.joint_q.numpy()[7:14])
    np.testing.assert_array_equal(now[14:], moved[14:])
    np.testing.assert_array_equal(now[:7], moved[:7])
    with pytest.warns(DeviceIndexWarning, match=rf"1 index .* no world, for example {bad}, .* worlds 0 to 2"):
        simulation.step()


def test_indices_of_64_bits_are_reported_as_they_were_given(model: Model):
    """What has no room in 32 bits is named as it is, not as the index that is left of it."""
    simulation = Simulation(model, dt=0.01, threads=1, record=False)
    simulation.reset(wp.array([1, 2**32 + 1], dtype=wp.int64, device="cpu"))
    with pytest.warns(DeviceIndexWarning, match=r"1 index .* for example 4294967297,"):
        simulation.report()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulation.report()  # each is reported once
        simulation.reset(wp.array([1, 2], dtype=wp.int64, device="cpu"))
        simulation.report()


def test_randomizers_views_and_kinematics_report_indices_on_the_device_that_name_nothing(model: Model):
    """Draws and writes of the others are made, and strict mode raises."""
    simulation = Simulation(model, dt=0.01, threads=1, record=False)
    randomizer = Randomizer(simulation, [friction(Uniform(0.5, 0.6))])
    before = model.shape_material_mu.numpy().copy()
    randomizer.apply(listed(3, -1, 1))
    drawn = (model.shape_material_mu.numpy() != before).reshape(-1)
    assert drawn.any()
    with pytest.warns(DeviceIndexWarning, match=r"2 indices .* no world"):
        simulation.step()
    eval_fk(model, model.joint_q, model.joint_qd, simulation.state, indices=listed(1, 3))
    with pytest.warns(DeviceIndexWarning, match=r"1 index .* no articulation, for example 3, .* 0 to 2"):
        simulation.step()
    view = BodyView(model, "*")
    view.set_attribute("body_q", simulation.state, 0.0, indices=listed(2, 3))
    with pytest.raises(DeviceIndexError, match=r"1 index .* no row, for example 3, .* rows 0 to 2"):
        simulation.solver.report(strict=True)
