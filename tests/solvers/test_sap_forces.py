"""Forces of contacts, which of them rests deepest, and which keep to Coulomb's law, against NumPy."""

import numpy as np
import pytest
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.solvers.sap.step_status import OPENING_MAX, RESTING_SPEED, _kernels
from pluriverse.solvers.sap.workspace import contact_record, sap_struct, workspace_fields

SLOT_COUNT = 40
# Slots of a world in turn: none, one, several, all, and the last ones.
RANGES = ((0, 0), (7, 8), (3, 17), (0, SLOT_COUNT), (31, SLOT_COUNT))


def make_kernel(real):
    write_forces = _kernels(real, wp.float32).write_forces
    data = sap_struct(real, wp.float32)

    @wp.kernel(enable_backward=False, module="unique")
    def write(
        sap: data,
        bounds: wp.array2d[int],
        rate: real,
        force: wp.array[wp.vec3],
        deepest: wp.array[int],
    ):
        thread, _ = wp.tid()
        deepest[thread] = write_forces(sap, force, bounds[thread, 0], bounds[thread, 1], rate)

    return write, data


def fill_contacts(real, sap, values):
    """Return `sap` with the values of contacts in its arrays, and what has to be kept as long as it."""
    offsets, stride = contact_record(real, wp.float32)
    memory = wp.zeros(SLOT_COUNT * stride + 64, dtype=wp.uint8, device="cpu")
    arrays = {}  # kept: the struct has their addresses only
    for name in values:
        arrays[name] = wp.array(
            ptr=memory.ptr + offsets[name],
            dtype=workspace_fields(real, wp.float32)[name].dtype,
            shape=(SLOT_COUNT,),
            strides=(stride,),
            device="cpu",
            copy=False,
        )
        arrays[name].assign(values[name])
        setattr(sap, name, arrays[name])
    return sap, (memory, arrays)


@pytest.mark.parametrize("real", [wp.float32, wp.float64])
def test_forces_and_the_deepest_contact_at_rest_match_numpy(real):
    """A force is the impulse in world axes over the step. Resting takes a normal impulse and little speed."""
    dtype = wp.dtype_to_numpy(real)
    rng = np.random.default_rng(2)
    impulse = rng.normal(size=(SLOT_COUNT, 3))
    impulse[::3, 2], impulse[::4] = np.abs(impulse[::3, 2]), 0.0
    values = {
        "contact_impulse": impulse,
        "contact_frame": np.linalg.qr(rng.normal(size=(SLOT_COUNT, 3, 3)))[0],
        "contact_gap": -0.01 * rng.random(SLOT_COUNT) + 0.003,
        "contact_velocity": 3.0 * float(RESTING_SPEED) * rng.uniform(-1.0, 1.0, (SLOT_COUNT, 3)),
        "contact_rn": np.ones(SLOT_COUNT),
    }
    values = {name: value.astype(dtype) for name, value in values.items()}
    impulse, gap = values["contact_impulse"], values["contact_gap"]
    # A frame without numbers, as a contact that was left out keeps: its force is zero all the same.
    values["contact_frame"][::4] = np.nan

    write, data = make_kernel(real)
    sap, _memory = fill_contacts(real, data(), values)
    rate = 200.0
    expected = rate * np.einsum("kij,kj->ki", values["contact_frame"], impulse)
    expected[~impulse.any(axis=1)] = 0.0
    rests = (impulse[:, 2] > 0.0) & (np.abs(values["contact_velocity"][:, 2]) < float(RESTING_SPEED))
    assert 3 < rests.sum() < SLOT_COUNT - 3
    for first, end in RANGES:
        force = wp.full(SLOT_COUNT, wp.vec3(-7.0, -7.0, -7.0), dtype=wp.vec3, device="cpu")
        deepest = wp.empty(1, dtype=int, device="cpu")
        bounds = wp.array([[first, end]], dtype=int, device="cpu")
        launch_kernel(write, dim=1, inputs=[sap, bounds, rate], outputs=[force, deepest], device="cpu")
        forces = force.numpy()
        np.testing.assert_allclose(forces[first:end], expected[first:end], rtol=1e-5, atol=1e-4)
        assert (np.delete(forces, np.s_[first:end], axis=0) == -7.0).all()
        depth = np.where(rests, -gap, 0.0)[first:end]
        assert deepest.numpy()[0] == (first + depth.argmax() if (depth > 0.0).any() else -1)


@pytest.mark.parametrize("real", [wp.float32, wp.float64])
def test_contacts_that_push_and_part_from_their_law_are_found(real):
    """u_n = v_hat - R_n p_n holds to `OPENING_MAX` where p_n > 0, and is not asked of the other contacts."""
    approximates = _kernels(real, wp.float32).approximates

    @wp.kernel(enable_backward=False, module="unique")
    def check(sap: sap_struct(real, wp.float32), bounds: wp.array2d[int], found: wp.array[int]):
        thread, _ = wp.tid()
        found[thread] = approximates(sap, bounds[thread, 0], bounds[thread, 1])

    rng = np.random.default_rng(3)
    impulse, velocity = rng.normal(size=(2, SLOT_COUNT, 3))
    bias, rn = rng.normal(size=SLOT_COUNT), 0.1 * rng.random(SLOT_COUNT)
    keeps = bias - rn * impulse[:, 2]
    pushing = np.flatnonzero(impulse[:, 2] > 0.0)
    assert 3 < len(pushing) < SLOT_COUNT - 3
    velocity[pushing, 2] = keeps[pushing]
    results = []
    for slot, excess in ((None, 0.0), (0, 0.5), (1, 0.5), (1, 2.0), (0, -2.0)):
        moved = velocity.copy()
        if slot is not None:
            moved[pushing[slot], 2] += excess * float(OPENING_MAX)
        values = {
            "contact_impulse": impulse,
            "contact_velocity": moved,
            "contact_rn": rn,
            "contact_bias": bias,
        }
        dtype = wp.dtype_to_numpy(real)
        values = {name: value.astype(dtype) for name, value in values.items()}
        sap, _memory = fill_contacts(real, sap_struct(real, wp.float32)(), values)
        found = wp.empty(2, dtype=int, device="cpu")
        bounds = wp.array([[0, SLOT_COUNT], [pushing[1] + 1, SLOT_COUNT]], dtype=int, device="cpu")
        launch_kernel(check, dim=2, inputs=[sap, bounds], outputs=[found], device="cpu")
        results.append(found.numpy().tolist())
    assert results == [[0, 0], [0, 0], [0, 0], [1, 0], [1, 0]]
