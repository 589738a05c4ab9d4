"""A cube of 0.2 m and 8 kg on the ground: numbers found on paper, and by other SAP solvers.

dt = 5 ms, tau = 0.01 s and mu = 0.5 of both shapes, equal stiffness of both shapes.
"""

import numpy as np
import pytest
import warp as wp

from pluriverse import CollisionPipeline, ModelBuilder, ShapeConfig, SolverSAP

DT = 0.005
MASS, GRAVITY, HALF = 8.0, 9.81, 0.1
LOAD = 0.25 * MASS * GRAVITY
"""Force on each corner [N]."""
STIFFNESS = (1e4, 1e6, 1e9)
"""Of each shape [N/m]; of the pair half of it. The last is beyond what the step resolves."""
WEIGHT = {"approx32": 0.5, "drake": 0.3267}
"""Contact weight at a corner [1/kg]: (1 + 3) / 8 of the free body; the norm of J diag(A)^-1 J^T over 3."""


@pytest.fixture(scope="module", params=WEIGHT)
def rested(request):
    """Preset, resting heights and the solver after one second."""
    builder = ModelBuilder()
    for stiffness in STIFFNESS:
        material = ShapeConfig(ke=stiffness, tau=0.01, mu=0.5, gap=0.02)
        world = ModelBuilder()
        world.add_ground_plane(cfg=material)
        body = world.add_body(xform=wp.transform((0.0, 0.0, HALF), wp.quat_identity()))
        world.add_shape_box(body, hx=HALF, hy=HALF, hz=HALF, cfg=material)
        builder.add_world(world)
    model = builder.finalize("cpu")
    state, following = model.state(), model.state()
    pipeline = CollisionPipeline(model)
    contacts = pipeline.contacts()
    solver = SolverSAP(model, contact_preset_variant=request.param)
    for _ in range(400):
        pipeline.collide(state, contacts)
        solver.step(state, following, None, contacts, DT)
        state, following = following, state
    return request.param, state.joint_q.numpy()[2::7], solver


def test_rest_penetration(rested):
    """Load over stiffness (3.924e-3 m and 3.92e-5 m), and the near-rigid floor where that would be less."""
    preset, heights, _ = rested
    pair = 0.5 * np.array(STIFFNESS)
    compliant = LOAD / pair
    near_rigid = WEIGHT[preset] / (4.0 * np.pi**2) * DT * (DT + 0.02) * LOAD
    np.testing.assert_allclose(compliant[:2], [3.924e-3, 3.924e-5], rtol=1e-9)
    assert near_rigid == pytest.approx({"approx32": 3.10e-5, "drake": 2.03e-5}[preset], rel=3e-3)
    expected = [*compliant[:2], near_rigid]
    # The height of 0.1 m is kept in single precision.
    np.testing.assert_allclose(HALF - heights, expected, rtol=1e-3, atol=HALF * 2.0**-23)


def test_regularization_of_the_corners(rested):
    preset, _, solver = rested
    start = solver.workspace.contact_start.numpy()
    soft, stiff = (slice(start[world], start[world] + 4) for world in (0, 2))
    np.testing.assert_allclose(solver.workspace.contact_rn.numpy()[soft], 1.6, rtol=1e-5)
    # The soft cube has sunk in by 4 mm, and with it the midpoint of the contact.
    weight = WEIGHT[preset]
    np.testing.assert_allclose(solver.workspace.contact_weight.numpy()[stiff], weight, rtol=1e-3)
    np.testing.assert_allclose(solver.workspace.contact_rt.numpy()[stiff], 1e-3 * weight, rtol=1e-3)


def test_a_resting_box_takes_at_most_one_newton_iteration(rested):
    _, _, solver = rested
    assert (solver.last_solve_iterations.numpy() <= 1).all()
    np.testing.assert_array_equal(solver.last_converged.numpy(), 1)
