"""Terms of joints: eight degrees of freedom in lanes get the bits of the loop over single ones."""

import numpy as np
import pytest
import warp as wp

from pluriverse import JointType, SolverSAP
from pluriverse.solvers.sap import joint_terms
from pluriverse.solvers.sap import solver as sap_solver
from pluriverse.solvers.sap.workspace import DRIVE, DRY_FRICTION, LIMIT_LOWER, LIMIT_UPPER, SPEED_LIMIT
from pluriverse.types import JointTargetMode
from tests.dynamics.trees import build_model, random_joint_state, random_tree, set_joint_state

DT = 0.005
RESULTS = (
    *("dof_terms", "dof_scale", "drive_offset", "drive_gain", "drive_limit", "limit_lower_bias"),
    *("limit_upper_bias", "limit_regularization", "friction_regularization", "friction_impulse"),
    *("speed_limit", "speed_regularization"),
)
MODES = [int(mode) for mode in JointTargetMode]
HINGES = [JointType.REVOLUTE, JointType.PRISMATIC]


def random_model(seed):
    """Return a model of worlds with 1 to 40 degrees of freedom, some with free roots, and its state."""
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, count, kinds=HINGES) for count in (1, 3, 7, 8, 9, 16, 23, 30)]
    trees += [random_tree(rng, count) for count in (2, 5, 12)]
    model = build_model(trees)
    state = model.state()
    states = [random_joint_state(rng, tree) for tree in trees]
    set_joint_state(state, trees, [one[0] for one in states], [one[1] for one in states])
    return model, state


def draw(rng, size, values):
    """Return single-precision numbers: of `values`, with a random factor."""
    return (rng.choice(values, size) * rng.uniform(0.5, 2.0, size)).astype(np.float32)


def randomize(rng, model, control, *, nan_chance=0.0):
    """Give all degrees of freedom modes, gains, limits and friction of all kinds."""
    size = model.joint_dof_count
    model.joint_target_mode.assign(rng.choice(MODES, size).astype(np.int32))
    numbers = {
        (model, "joint_target_ke"): [0.0, 10.0, 1e4, 1e12],
        (model, "joint_target_kd"): [0.0, 1.0, 1e3, 1e10],
        (model, "joint_target_lower"): [-1.0, -np.inf],
        (model, "joint_target_upper"): [0.2, np.inf],
        (model, "joint_effort_limit"): [5.0, 1e21, np.inf],
        (model, "joint_limit_lower"): [-3.0, -0.01, 0.5, -np.inf],
        (model, "joint_limit_upper"): [3.0, 0.01, -0.5, np.inf],
        (model, "joint_limit_ke"): [0.0, -1.0, 1e3, 1e8, np.nan],
        (model, "joint_limit_kd"): [0.0, -1.0, 10.0, np.nan],
        (model, "joint_friction"): [0.0, 0.0, 0.3],
        (model, "joint_velocity_limit"): [0.5, 1e7, np.inf],
        (control, "joint_target_pos"): [-2.0, 0.3, 2.0],
        (control, "joint_target_vel"): [-2.0, 0.0, 2.0],
        (control, "joint_act"): [0.0, 0.0, 3.0],
    }
    for (holder, name), values in numbers.items():
        drawn = draw(rng, size, values)
        if nan_chance and not name.startswith("joint_limit_k"):
            drawn[rng.random(size) < nan_chance] = np.nan
        getattr(holder, name).assign(drawn)


class FoundError(Exception):
    """Ends a step where the terms of joints are set."""


@pytest.fixture(scope="module", params=["fp32", "fp64"])
def step(request):
    """Return a model, its control and the arguments with which a step sets the terms of joints."""
    model, state = random_model(2)
    solver = SolverSAP(model, contact_solve_precision=request.param)
    found = {}

    def find(*given, **options):
        found.update(given=given, options=options)
        raise FoundError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sap_solver, "set_joint_terms", find)
        with pytest.raises(FoundError):
            solver.step(state, model.state(), model.control(), model.contacts(), DT)
    return model, found["given"][3], found["given"], found["options"]


@pytest.mark.parametrize("nan_chance", [0.0, 0.02])
@pytest.mark.parametrize("approach_damping", [False, True])
@pytest.mark.parametrize("enforce_velocity_limit", [False, True])
def test_terms_in_lanes_have_the_bits_of_single_ones(
    monkeypatch, step, nan_chance, approach_damping, enforce_velocity_limit
):
    """All terms, in all combinations, near limits and away from them; coefficients of absent terms stay."""
    model, control, given, options = step
    sap, dynamics = given[5].data, given[4].data
    options = options | {
        "approach_damping": approach_damping,
        "enforce_velocity_limit": enforce_velocity_limit,
    }
    rng = np.random.default_rng(4)
    seen = 0
    for _ in range(10):
        randomize(rng, model, control, nan_chance=nan_chance)
        for name in ("dof_velocity", "dof_velocity_free"):
            getattr(dynamics, name).assign(draw(rng, model.joint_dof_count, [-30.0, 0.01, 1.0]))
        results = []
        for lanes in (8, 1):
            for name in RESULTS:
                getattr(sap, name).fill_(7)
            with monkeypatch.context() as patch:
                patch.setattr(joint_terms, "lane_count", lambda device, lanes=lanes: lanes)
                joint_terms.set_joint_terms(*given, **options)
            results.append({name: getattr(sap, name).numpy().copy() for name in RESULTS})
        for name in RESULTS:
            np.testing.assert_array_equal(results[0][name], results[1][name], err_msg=name)
        seen |= int(np.bitwise_or.reduce(results[0]["dof_terms"]))
    kinds = DRIVE | LIMIT_LOWER | LIMIT_UPPER | DRY_FRICTION
    assert seen == kinds | (SPEED_LIMIT if enforce_velocity_limit else 0)


def test_entries_that_name_no_world_are_stepped_over(step):
    """A list may have gaps; worlds that are not listed keep what they had."""
    model, _, given, options = step
    sap = given[5].data
    chosen = [0, 3, 8]
    listed = np.full(model.world_count, -1, dtype=np.int32)
    listed[chosen] = chosen
    joint_terms.set_joint_terms(*given, **options)
    expected = sap.dof_scale.numpy().copy()
    sap.dof_scale.fill_(float("nan"))
    joint_terms.set_joint_terms(given[0], wp.array(listed, device="cpu"), *given[2:], **options)
    starts = model.joint_dof_world_start.numpy()
    for world in range(model.world_count):
        part = slice(starts[world], starts[world + 1])
        if world in chosen:
            np.testing.assert_array_equal(sap.dof_scale.numpy()[part], expected[part])
        else:
            assert np.isnan(sap.dof_scale.numpy()[part]).all()
