"""Settings of solvers and simulations after they were made, where an assignment would change nothing."""

import numpy as np
import pytest

import pluriverse as pv


@pytest.fixture(scope="module")
def model() -> pv.Model:
    builder = pv.ModelBuilder()
    builder.add_body(mass=1.0, inertia=0.1 * np.eye(3))
    return builder.finalize(device="cpu")


@pytest.mark.parametrize("kind", [pv.SolverSAP, pv.SolverMuJoCo])
def test_options_of_a_solver_are_those_that_it_was_made_with(kind, model):
    """A valid value acted before the first step only, and a wrong one never."""
    solver = kind(model)
    option = {pv.SolverSAP: "max_iterations", pv.SolverMuJoCo: "iterations"}[kind]
    with pytest.raises(AttributeError, match=rf"Make a new {kind.__name__} with {option}=3"):
        setattr(solver, option, 3)
    for name in ("friction_law", "cone", "anything"):
        with pytest.raises(AttributeError, match=r"Options\.\w+ was assigned 'x'.*Make a new solver"):
            setattr(solver.options, name, "x")
    with pytest.raises(AttributeError, match="with other options"):
        solver.options = None
    with pytest.raises(AttributeError, match=f"Make a new {kind.__name__} of that model"):
        solver.model = model


def test_a_solver_has_no_names_that_nothing_reads(model):
    """Those of other solvers, and misspelt ones; private names and what the class declares may be set."""
    solver = pv.SolverSAP(model)
    with pytest.raises(AttributeError, match=r"SolverSAP has no attribute 'cone'.*begin with an underscore"):
        solver.cone = "elliptic"
    with pytest.raises(AttributeError, match="Did you mean 'friction_law'"):
        solver.fricton_law = "convex"
    solver.sim_time = 2.0
    solver._note = "mine"
    assert (solver.sim_time, solver._note) == (2.0, "mine")


def test_a_solver_of_a_script_sets_what_it_likes_while_it_is_made(model):
    class Damped(pv.SolverSAP):
        """A solver with an attribute of its own."""

        def __init__(self, model: pv.Model) -> None:
            super().__init__(model)
            self.share = 0.5

    solver = Damped(model)
    solver.share = 0.25
    assert solver.share == 0.25
    with pytest.raises(AttributeError, match="Did you mean 'share'"):
        solver.shares = 0.5


def test_the_time_step_of_a_simulation_is_fixed(model):
    simulation = pv.Simulation(model, dt=0.005)
    with pytest.raises(AttributeError, match=r"Make another one: Simulation\(model, dt=0\.01\)"):
        simulation.dt = 0.01
    with pytest.raises(TypeError, match="dt is 'a', but must be a time step in seconds"):
        pv.Simulation(model, dt="a")
