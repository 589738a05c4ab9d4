"""The loop on a GPU: the motion of the CPU, and its promises to the bit."""

import warnings

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.warnings import ContactTruncationWarning, FrozenWorldWarning
from tests.simulation.worlds import DT, KINDS, assert_same_bits, make_model, world_bits

pytestmark = pytest.mark.gpu

# Until the piles and sticks have hit the ground: rounding has not been amplified yet.
COMPARED_STEP_COUNT = 40
STEP_COUNT = 120
# Devices round products and sums of float32 otherwise (fused or not): some hundred roundings, which the
# first contacts amplify by their stiffness.
TOLERANCE = 2e-4


@pytest.mark.parametrize("preset", ["approx32", "approx64"])
def test_motion_is_that_of_the_cpu(device: str, mixed_kinds: list[str], preset: str):
    """Falling, hitting, rolling, driven: the same on both devices, in both precisions of the solver."""
    ends = []
    for place in ("cpu", device):
        model = make_model(mixed_kinds, place)
        simulation = pv.Simulation(model, pv.SolverSAP(model, contact_preset_variant=preset), dt=DT)
        simulation.step(COMPARED_STEP_COUNT)
        report = simulation.report()
        assert report.frozen_worlds == ()
        assert report.unconverged_step_count == 0
        assert report.contact_count_peak >= 4
        ends.append(simulation.state)
    for name in ("joint_q", "joint_qd", "body_q"):
        cpu, gpu = (getattr(state, name).numpy() for state in ends)
        np.testing.assert_allclose(gpu, cpu, rtol=0, atol=TOLERANCE * (1.0 if name != "joint_qd" else 20.0))


@pytest.mark.parametrize("record", [True, False], ids=["recorded", "launched"])
def test_world_in_a_batch_has_the_bits_of_the_world_alone(device: str, mixed_kinds: list[str], record: bool):
    """Neither neighbours in a warp nor recording change a bit."""
    alone = {}
    for kind in KINDS:
        model = make_model([kind], device)
        simulation = pv.Simulation(model, dt=DT)
        simulation.step(STEP_COUNT)
        alone[kind] = world_bits(model, simulation.state, 0)
    model = make_model(mixed_kinds, device)
    simulation = pv.Simulation(model, dt=DT, record=record)
    simulation.step(STEP_COUNT - 3)
    simulation.step()
    simulation.step(2)
    for world, kind in enumerate(mixed_kinds):
        assert_same_bits(world_bits(model, simulation.state, world), alone[kind], f"world {world}, {kind}")


def test_worlds_are_reset_by_masks_on_the_device_inside_a_recording(device: str, mixed_kinds: list[str]):
    """Worlds of the mask begin again, the others go on; the mask is read when the recording is replayed."""
    model = make_model(mixed_kinds, device)
    simulation = pv.Simulation(model, dt=DT)
    simulation.step(20)
    mask = wp.zeros(len(mixed_kinds), dtype=wp.bool, device=device)
    simulation.reset(mask)
    with wp.ScopedCapture(device=device, force_module_load=False) as capture:
        simulation.reset(mask)
    chosen = np.arange(len(mixed_kinds)) % 3 == 0
    before = [world_bits(model, simulation.state, world) for world in range(len(mixed_kinds))]
    mask.assign(chosen)
    wp.capture_launch(capture.graph)
    beginning = model.state()
    for world, reset in enumerate(chosen):
        expected = world_bits(model, beginning, world) if reset else before[world]
        assert_same_bits(world_bits(model, simulation.state, world), expected, f"world {world}")


def test_a_snapshot_brings_the_bits_back(device: str, mixed_kinds: list[str], tmp_path):
    """What a file brought back moves on as the original did."""
    model = make_model(mixed_kinds, device)
    simulation = pv.Simulation(model, dt=DT)
    simulation.step(30)
    simulation.save(tmp_path / "snapshot.npz")
    simulation.step(30)
    expected = simulation.state.joint_q.numpy()
    simulation.restore(tmp_path / "snapshot.npz")
    simulation.step(30)
    np.testing.assert_array_equal(simulation.state.joint_q.numpy(), expected)


def test_lost_contacts_and_broken_worlds_are_reported(device: str):
    """What goes wrong on the device is reported with its world, and affects no other world."""
    model = make_model(["pile", "arm", "pile"], device)
    simulation = pv.Simulation(model, dt=DT, rigid_contact_max=[64, 64, 2])
    velocity = simulation.state.joint_qd.numpy()
    velocity[model.joint_dof_world_start.numpy()[1]] = np.nan
    simulation.state.joint_qd.assign(velocity)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        simulation.step(60)
        report = simulation.report()
    assert report.frozen_worlds == (1,)
    assert report.truncated_step_count > 0
    assert {(entry.category, entry.message.worlds) for entry in told} == {
        (FrozenWorldWarning, (1,)),
        (ContactTruncationWarning, (2,)),
    }
    assert np.isfinite(world_bits(model, simulation.state, 0)["joint_q"]).all()
