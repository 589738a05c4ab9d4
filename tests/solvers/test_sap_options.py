"""Options of SolverSAP: names, spellings, presets, and the errors that bad values give."""

import numpy as np
import pytest

from pluriverse import ModelBuilder, Simulation, SolverSAP
from pluriverse.solvers.sap import SapOptions


@pytest.fixture(scope="module")
def model():
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    return builder.finalize(device="cpu")


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("Approx32", "approx32"),
        (" approx-64 ", "approx64"),
        ("approx_32", "approx32"),
        ("DRAKE", "drake"),
        ("Standard", "standard"),
        (None, "standard"),
    ],
)
def test_preset_spellings(given, canonical):
    """Case, surrounding blanks, hyphen and underscore do not matter; None is the default preset."""
    assert SapOptions(contact_preset_variant=given).contact_preset_variant == canonical


@pytest.mark.parametrize("given", ["fp64", "F64", " f64 "])
def test_precision_spellings(given):
    """Both spellings of a precision are accepted."""
    assert SapOptions(contact_solve_precision=given).contact_solve_precision == "fp64"


def test_an_explicit_option_overrides_its_preset_and_nothing_else():
    """The preset fills only what was not given."""
    options = SapOptions(contact_preset_variant="drake", position_integration="midpoint")
    assert options.position_integration == "midpoint"
    assert options.contact_weight_mode == "diag_delassus"
    assert options.contact_linear_solve_precision == "fp64"


@pytest.mark.parametrize(
    ("variant", "preset", "absolute", "relative"),
    [
        ("monotone_decay", "approx32", 0.0, 5e-3),
        ("armijo_decay", "approx32", 1e-30, 1e-12),
        ("armijo_decay", "approx64", 1e-30, 1e-15),
        ("strong_wolfe", "standard", 1e-30, 1e-15),
        ("exact_root", "drake", 1e-30, 1e-15),
    ],
)
def test_cost_tolerances_follow_line_search_and_precision(variant, preset, absolute, relative):
    """Unset cost tolerances depend on how exact the line search and the directions are."""
    options = SapOptions(line_search_variant=variant, contact_preset_variant=preset)
    assert (options.cost_abs_tol, options.cost_rel_tol) == (absolute, relative)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"contact_preset_variant": "Approx 32"}, "standard, approx32, approx64, drake"),
        ({"line_search_variant": "newton"}, "strong_wolfe, monotone_decay, armijo_decay, exact_root"),
        ({"contact_weight_mode": "mass"}, "delassus, diag_delassus, body_inertia"),
        ({"contact_point_mode": "centre"}, "witness_point, contact_midpoint"),
        ({"position_integration": "euler"}, "midpoint, semi_implicit, sap_euler"),
        ({"contact_solve_precision": "fp16"}, "fp32, fp64"),
        ({"max_rigid_contact": 0}, "max_rigid_contact is 0"),
        ({"max_rigid_contact": 1.5}, "integer >= 1"),
        ({"max_iterations": -1}, "max_iterations is -1"),
        ({"contact_beta": 0.0}, "contact_beta is 0.0"),
        ({"contact_sigma": float("nan")}, "contact_sigma is nan"),
        ({"optimality_rel_tol": -1.0}, "optimality_rel_tol is -1.0"),
        ({"rho": 1.0}, "rho is 1.0"),
        ({"armijo_c": 0.0}, "armijo_c is 0.0"),
        ({"graph_conditional": False}, "graph_conditional=False"),
        ({"fallback_mu": -0.1}, "fallback_mu is -0.1"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(model, options, expected):
    """The message names the option, its value and the choices or the range."""
    with pytest.raises(ValueError, match="SolverSAP") as error:
        SolverSAP(model, **options)
    assert expected in str(error.value)


def test_an_unknown_option_is_refused(model):
    """A misspelt keyword is a TypeError, as for any function, which names the option that may be meant."""
    with pytest.raises(TypeError, match=r"'max_iteration'\. Did you mean 'max_iterations'"):
        SolverSAP(model, max_iteration=3)
    with pytest.raises(TypeError, match=r"'solver'\. There are max_rigid_contact, "):
        SolverSAP(model, solver="sap")


def test_options_are_readable_from_the_solver(model):
    """Resolved options can be read as attributes."""
    solver = SolverSAP(model, contact_preset_variant="drake", line_search_variant="exact-root")
    assert solver.line_search_variant == "exact_root"
    assert solver.contact_point_mode == "contact_midpoint"
    assert not hasattr(solver, "no_such_option")


def test_a_model_that_cannot_move_stays_where_it_is():
    """Furniture alone: only fixed joints, or no body at all."""
    furniture = ModelBuilder()
    link = furniture.add_link(mass=1.0, inertia=np.eye(3), xform=((0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0)))
    furniture.add_shape_box(link, hx=0.1, hy=0.1, hz=0.1)
    furniture.add_articulation([furniture.add_joint_fixed(parent=-1, child=link)])
    ground = ModelBuilder()
    ground.add_ground_plane()
    for builder in (furniture, ground):
        simulation = Simulation(builder.finalize(device="cpu"), dt=0.01)
        before = simulation.state.body_q.numpy()
        simulation.step(3)
        np.testing.assert_array_equal(simulation.state.body_q.numpy(), before)
        assert simulation.time == pytest.approx(0.03)
        assert simulation.report().unconverged_step_count == 0


def test_a_builder_in_place_of_a_model_is_refused():
    """The remedy is named."""
    with pytest.raises(TypeError, match="finalize"):
        SolverSAP(ModelBuilder())


@pytest.mark.parametrize("dt", [0.0, -0.01, float("nan"), float("inf")])
def test_a_time_step_that_is_not_positive_is_refused(model, dt):
    """A negative step would turn gravity round."""
    with pytest.raises(ValueError, match="dt is"):
        SolverSAP(model).step(model.state(), model.state(), None, None, dt)


def test_one_state_for_input_and_output_is_refused(model):
    """A frozen world is restored from the input."""
    state = model.state()
    with pytest.raises(ValueError, match="same object"):
        SolverSAP(model).step(state, state, None, None, 0.01)
