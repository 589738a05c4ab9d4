"""A world in trouble is named, with numbers and a remedy, and the others go on as if nothing had happened."""

import re
import warnings

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.warnings import (
    ContactTruncationError,
    ContactTruncationWarning,
    ConvergenceError,
    ConvergenceWarning,
    FrozenWorldError,
    FrozenWorldWarning,
    SimulationError,
)

from .worlds import DT, assert_same_bits, make_model, world_bits

KINDS = ["arm", "pile", "round things", "pile", "flyer"]


def spoil(simulation: pv.Simulation, world: int) -> None:
    """Put NaN into the first velocity of a world."""
    velocities = simulation.state.joint_qd.numpy()
    velocities[simulation.model.joint_dof_world_start.numpy()[world]] = np.nan
    simulation.state.joint_qd.assign(velocities)


@pytest.mark.parametrize("record", [True, False], ids=["recorded", "launched"])
def test_nan_freezes_the_one_world_and_no_other_bit_changes(record):
    """NaN in world 1 stops world 1 in its last finite state; all others move as without it."""
    model = make_model(KINDS)
    with pv.Simulation(model, dt=DT, threads=2, record=record) as sound:
        sound.step(60)
        with pv.Simulation(model, dt=DT, threads=2, record=record) as simulation:
            simulation.step(30)
            force = np.zeros((model.body_count, 6), dtype=np.float32)
            body = model.body_world_start.numpy()[1]
            force[body] = np.nan
            before = world_bits(model, simulation.state, 1)
            simulation.state.body_f.assign(force)
            with pytest.warns(FrozenWorldWarning, match="world 1: ") as caught:
                simulation.step(30)
            assert len([warning for warning in caught if warning.category is FrozenWorldWarning]) == 1
            assert simulation.report().frozen_worlds == (1,)
            for world in (0, 2, 3, 4):
                ours = world_bits(model, simulation.state, world)
                assert_same_bits(ours, world_bits(model, sound.state, world), f"world {world}")
            assert_same_bits(world_bits(model, simulation.state, 1), before, "the frozen world")


def test_frozen_world_is_reported_once_and_unfreezes_with_reset():
    """One warning however many steps follow; after `reset` of the world it runs as from the beginning."""
    model = make_model(KINDS)
    with pv.Simulation(model, dt=DT, threads=1) as simulation:
        simulation.step(10)
        ten_steps = world_bits(model, simulation.state, 2)
        spoil(simulation, 2)
        with pytest.warns(FrozenWorldWarning, match="world 2"):
            simulation.step()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            simulation.step(5)
            simulation.step(5)
            simulation.reset([2])
            assert simulation.report().frozen_worlds == ()
            simulation.step(10)
        assert_same_bits(world_bits(model, simulation.state, 2), ten_steps, "the world after reset")


def test_frozen_world_moves_again_after_what_the_warning_says():
    """Calls that the Simulation has, and others that its solver has."""
    model = make_model(KINDS)
    with pv.Simulation(model, dt=DT, threads=1) as simulation:
        solver = simulation.solver
        remedies = {
            r"by (\w+)\(worlds\) of the Simulation": lambda name: getattr(simulation, name)([2]),
            r"call (\w+)\(state, worlds\) of the solver": lambda name: getattr(solver, name)(
                simulation.state, [2]
            ),
            r"set a sound state and call (\w+)\(worlds\)": lambda name: getattr(solver, name)([2]),
        }
        for pattern, follow in remedies.items():
            spoil(simulation, 2)
            with pytest.warns(FrozenWorldWarning, match=pattern) as caught:
                simulation.step()
            follow(re.search(pattern, str(caught[0].message)).group(1))
            assert simulation.report().frozen_worlds == ()
            before = world_bits(model, simulation.state, 2)
            simulation.step()
            assert (world_bits(model, simulation.state, 2)["joint_q"] != before["joint_q"]).any()


def test_frozen_world_raises_in_strict_mode():
    model = make_model(KINDS)
    with pv.Simulation(model, dt=DT, threads=1, strict=True) as simulation:
        spoil(simulation, 4)
        with pytest.raises(FrozenWorldError, match="world 4"):
            simulation.step()


def test_contact_slots_too_few_warn_once_with_numbers_and_remedy():
    """The pile needs 12 contacts or more and has 5: both numbers are named, and what to pass."""
    model = make_model(["flyer", "pile"])
    with pv.Simulation(model, dt=DT, threads=1, rigid_contact_max=5) as simulation:
        with pytest.warns(ContactTruncationWarning) as caught:
            simulation.step(100)
        messages = [str(entry.message) for entry in caught if entry.category is ContactTruncationWarning]
        assert len(messages) == 1
        needed = int(simulation.solver.needed_contact_count.numpy()[1])
        assert needed > 5
        assert "world 1" in messages[0]
        assert f"needs {needed} and has 5" in messages[0]
        assert f"rigid_contact_max={needed}" in messages[0]
        with warnings.catch_warnings():
            warnings.simplefilter("error", ContactTruncationWarning)
            simulation.step(10)
        assert simulation.report().truncated_step_count > 0


def test_contact_slots_as_the_warning_says_are_enough():
    """The remedy that the warning names works."""
    model = make_model(["pile"])
    with pv.Simulation(model, dt=DT, threads=1, rigid_contact_max=5) as simulation:
        with pytest.warns(ContactTruncationWarning):
            simulation.step(100)
        needed = int(simulation.solver.needed_contact_count.numpy()[0])
    # With all contacts the boxes do not sink in, so fewer or as many are needed.
    with (
        warnings.catch_warnings(),
        pv.Simulation(model, dt=DT, threads=1, rigid_contact_max=needed) as simulation,
    ):
        warnings.simplefilter("error", ContactTruncationWarning)
        simulation.step(100)


def test_contact_slots_too_few_raise_in_strict_mode():
    model = make_model(["pile"])
    with (
        pv.Simulation(model, dt=DT, threads=1, rigid_contact_max=3, strict=True) as simulation,
        pytest.raises(ContactTruncationError, match="has 3"),
    ):
        simulation.step(100)


def test_solve_that_runs_out_of_iterations_warns_and_raises_in_strict_mode():
    """Things on the ground need an iteration."""
    model = make_model(["flyer", "round things"])
    for strict, expected in ((False, ConvergenceWarning), (True, ConvergenceError)):
        solver = pv.SolverSAP(model, max_iterations=0)
        with pv.Simulation(model, solver, dt=DT, threads=1, strict=strict) as simulation:
            context = (
                pytest.raises(expected, match="world 1")
                if strict
                else pytest.warns(expected, match="world 1")
            )
            with context:
                simulation.step(100)


def test_strict_errors_share_a_class():
    for kind in (ContactTruncationError, ConvergenceError, FrozenWorldError):
        assert issubclass(kind, SimulationError)
