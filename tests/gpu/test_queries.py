"""Questions about articulations on a GPU: the answers of the CPU; views read and write device arrays."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse import Entity
from pluriverse.selection import ArticulationView
from tests.simulation.worlds import make_model

pytestmark = pytest.mark.gpu

# Sums along chains of a few bodies in float32.
TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def models(device: str, mixed_kinds: list[str]) -> list[pv.Model]:
    """Return the same worlds on the CPU and on the device, with velocities."""
    models = [make_model(mixed_kinds, place) for place in ("cpu", device)]
    for model in models:
        model.joint_qd.assign(np.sin(np.arange(model.joint_dof_count)).astype(np.float32))
    return models


@pytest.mark.parametrize(
    "evaluate",
    [
        lambda model, state: pv.eval_jacobian(model, state),
        lambda model, state: pv.eval_mass_matrix(model, state),
        lambda model, state: pv.eval_inverse_dynamics(model, state, state.joint_qd),
        lambda model, state: state.body_qd,
    ],
    ids=["jacobian", "mass matrix", "inverse dynamics", "forward kinematics"],
)
def test_queries_agree_with_the_cpu(models: list[pv.Model], evaluate):
    """Jacobians, mass matrices, forces and velocities of bodies do not depend on the device."""
    results = []
    for model in models:
        state = model.state()
        pv.eval_fk(model, state.joint_q, state.joint_qd, state)
        results.append(evaluate(model, state).numpy())
    assert np.abs(results[0]).max() > 0.1
    np.testing.assert_allclose(
        results[1], results[0], rtol=TOLERANCE, atol=TOLERANCE * np.abs(results[0]).max()
    )


def test_views_write_masked_rows_inside_a_recording(device: str, mixed_kinds: list[str]):
    """A replay reads values and mask anew, writes the chosen robots and leaves the bits of the others."""
    model = make_model(mixed_kinds, device)
    view, state = ArticulationView(model, "*", homogeneous=False), model.state()
    shape = view.get_attribute_padded("joint_qd", state).shape
    values = wp.zeros(shape, dtype=float, device=device)
    mask = wp.zeros(view.count, dtype=bool, device=device)
    view.set_dof_velocities(state, values, mask)
    with wp.ScopedCapture(device=device, force_module_load=False) as capture:
        view.set_dof_velocities(state, values, mask)
    before = view.get_attribute_padded("joint_qd", state).numpy()
    wanted = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    chosen = np.arange(view.count) % 3 == 0
    values.assign(wanted)
    mask.assign(chosen)
    wp.capture_launch(capture.graph)
    after = view.get_attribute_padded("joint_qd", state).numpy()
    present = view.padding_mask(Entity.JOINT_DOF).numpy()
    np.testing.assert_array_equal(after[chosen][present[chosen]], wanted[chosen][present[chosen]])
    np.testing.assert_array_equal(after[~chosen], before[~chosen])
