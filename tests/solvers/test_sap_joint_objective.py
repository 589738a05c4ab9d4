"""Native loops over the terms of joints against the laws of the dense oracle."""

import itertools

import numpy as np
import warp as wp

from pluriverse.solvers.sap.joint_objective import joint_objective_functions
from pluriverse.solvers.sap.workspace import DRIVE, DRY_FRICTION, LIMIT_LOWER, LIMIT_UPPER, SPEED_LIMIT
from tests.oracles.sap_dense import DriveLaw, EffortLaw, FrictionLaw, LimitLaw, SpeedLaw

loops = joint_objective_functions(wp.float64, wp.float64)
FIRST, DT, STEP = 2, 0.005, 0.7


@wp.kernel(enable_backward=False, module="unique")
def evaluate_and_probe(
    terms: wp.array[int],
    velocity: wp.array[wp.float64],
    values: wp.array2d[wp.float64],
    direction: wp.array[wp.float64],
    dt: wp.float64,
    first: int,
    count: int,
    alpha: wp.float64,
    impulse: wp.array[wp.float64],
    curvature: wp.array[wp.float64],
    cost: wp.array[wp.float64],
    probe: wp.array[wp.vec3d],
):
    cost[0] = loops.evaluate_dofs(
        terms,
        velocity,
        values[0],
        values[1],
        values[2],
        values[3],
        values[4],
        values[5],
        values[6],
        values[7],
        values[8],
        values[9],
        dt,
        first,
        count,
        impulse,
        curvature,
    )
    probe[0] = loops.probe_dofs(
        terms,
        velocity,
        values[0],
        values[1],
        values[2],
        values[3],
        values[4],
        values[5],
        values[6],
        values[7],
        values[8],
        values[9],
        dt,
        first,
        count,
        direction,
        alpha,
    )


def make_dofs(rng):
    """Return for every set of terms and several velocities: bits, velocity, laws and their coefficients."""
    dofs = []
    for bits, direct, v in itertools.product(range(32), (False, True), (-3.0, -0.4, 0.01, 0.3, 2.0)):
        mass = rng.uniform(0.5, 2.0)
        drive = (
            EffortLaw(rng.normal(), DT) if direct else DriveLaw(20.0, 1.0, 0.3, 0.1, 0.5, 4.0, 0.0, mass, DT)
        )
        lower = LimitLaw(rng.normal() * 0.01, 1.0, 1e3, 0.01, mass, DT)
        upper = LimitLaw(rng.normal() * 0.01, -1.0, 1e3, 0.01, mass, DT)
        friction, speed = FrictionLaw(0.5, mass, DT, sigma=0.1), SpeedLaw(0.5, mass)
        all_laws = {DRIVE: drive, LIMIT_LOWER: lower, LIMIT_UPPER: upper, DRY_FRICTION: friction}
        all_laws[SPEED_LIMIT] = speed
        offset, gain, most = (drive.effort, 0.0, 1e20) if direct else (drive.bias, drive.gain, 4.0)
        coefficients = [offset, gain, most, lower.r, lower.v_hat, upper.v_hat, friction.r, friction.limit]
        laws = [law for bit, law in all_laws.items() if bits & bit]
        dofs.append((bits, v, laws, [*coefficients, speed.limit, speed.r]))
    return dofs


def test_terms_of_joints_have_cost_impulse_and_curvature_of_their_laws():
    """Every combination of terms is the sum of its laws, at a velocity and along a direction."""
    rng = np.random.default_rng(5)
    dofs = make_dofs(rng)
    count = len(dofs)
    rates = rng.normal(size=count)
    pad = [0.0] * FIRST

    def array(values, dtype):
        return wp.array(values, dtype=dtype, device="cpu")

    values = np.pad(np.array([dof[3] for dof in dofs]).T, ((0, 0), (FIRST, 1)), constant_values=np.nan)
    outputs = [wp.full(count + FIRST + 1, 7.0, dtype=wp.float64, device="cpu") for _ in range(2)]
    cost, probe = (wp.zeros(1, dtype=kind, device="cpu") for kind in (wp.float64, wp.vec3d))
    inputs = [
        array([31] * FIRST + [dof[0] for dof in dofs] + [31], int),
        array([*pad, *(dof[1] for dof in dofs), 0.0], wp.float64),
        array(values, wp.float64),
        array([*pad, *rates, 1.0], wp.float64),
    ]
    arguments = [*inputs, DT, FIRST, count, STEP, *outputs, cost, probe]
    wp.launch(evaluate_and_probe, dim=1, inputs=arguments, device="cpu")

    for output, quantity in zip(outputs, ("impulse", "hessian"), strict=True):
        expected = [sum(getattr(law, quantity)(dof[1]) for law in dof[2]) for dof in dofs]
        found = output.numpy()
        # A few operations, each rounded once.
        np.testing.assert_allclose(found[FIRST:-1], expected, rtol=1e-13, atol=1e-15)
        np.testing.assert_array_equal(np.delete(found, np.arange(FIRST, FIRST + count)), 7.0)
    np.testing.assert_allclose(cost.numpy()[0], sum(law.cost(v) for _, v, laws, _ in dofs for law in laws))
    ends = [(v + STEP * rate, rate, laws) for (_, v, laws, _), rate in zip(dofs, rates, strict=True)]
    expected = [
        sum(law.cost(v) for v, _, laws in ends for law in laws),
        sum(-rate * law.impulse(v) for v, rate, laws in ends for law in laws),
        sum(rate**2 * law.hessian(v) for v, rate, laws in ends for law in laws),
    ]
    np.testing.assert_allclose(probe.numpy()[0], expected, rtol=1e-11)


def test_a_drive_that_is_not_a_number_makes_the_cost_not_a_number():
    """The world is frozen by its cost, so that no bound may make a number of NaN."""
    values = np.ones((10, 1))
    values[0] = np.nan
    cost, probe = (wp.zeros(1, dtype=kind, device="cpu") for kind in (wp.float64, wp.vec3d))
    numbers = [wp.zeros(1, dtype=wp.float64, device="cpu") for _ in range(4)]
    terms = wp.array([DRIVE], dtype=int, device="cpu")
    coefficients = wp.array(values, dtype=wp.float64, device="cpu")
    inputs = [terms, numbers[0], coefficients, numbers[1], DT, 0, 1, STEP, *numbers[2:], cost, probe]
    wp.launch(evaluate_and_probe, dim=1, inputs=inputs, device="cpu")
    assert np.isnan(cost.numpy()[0])
    assert np.isnan(probe.numpy()[0][0])
