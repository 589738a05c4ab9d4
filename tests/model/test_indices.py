"""Indices and masks of every type that tensors of worlds and rows come in, read on the device."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.model.indices import narrow_indices, read_mask
from pluriverse.selection import ArticulationView
from tests.simulation.worlds import DT, make_model

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("number_type", [wp.int32, wp.int64, wp.uint32, wp.uint64])
def test_what_has_more_than_31_bits_is_no_index(number_type):
    """2**32 is not 0, and 2**32 + 1 not 1."""
    limits = np.iinfo(wp.dtype_to_numpy(number_type))
    numbers = [number for number in (0, 5, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**63 - 1, -1, -(2**32))
               if limits.min <= number <= limits.max]  # fmt: skip
    indices = wp.array(
        np.array(numbers, dtype=wp.dtype_to_numpy(number_type)), dtype=number_type, device="cpu"
    )
    expected = [number if 0 <= number < 2**31 else -1 for number in numbers]
    np.testing.assert_array_equal(narrow_indices(indices).numpy(), expected)
    np.testing.assert_array_equal(narrow_indices(indices[::2]).numpy(), expected[::2])


def test_every_byte_but_zero_is_true():
    mask = wp.array(np.array([0, 1, 2, 128, 255], dtype=np.uint8), dtype=wp.uint8, device="cpu")
    assert read_mask(mask).numpy().tolist() == [False, True, True, True, True]


CHOICES = {
    "int32 indices": torch.tensor([2, 0], dtype=torch.int32),
    "int64 indices": torch.tensor([2, 0]),
    "int64 indices among others": torch.tensor([2, 2**32 + 1, 0, -(2**32), 7]),
    "strided indices": torch.tensor([2, 1, 0, 1])[::2],
    "nonzero of a mask": torch.tensor([True, False, True]).nonzero(as_tuple=False).squeeze(-1),
    "bool mask": torch.tensor([True, False, True]),
    "uint8 mask": torch.tensor([1, 0, 255], dtype=torch.uint8),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_reset_takes_tensors_of_every_type(choice):
    """Worlds 0 and 2 begin anew, 1 does not; a recorded call reads what the tensor holds when replayed."""
    model = make_model(["flyer"] * 3)
    with pv.Simulation(model, dt=DT, threads=1) as simulation:
        height = wp.to_torch(simulation.state.body_q)[:, 2]
        begin = height.clone()
        simulation.step(10)
        simulation.reset(CHOICES[choice])
        assert (height == begin).tolist() == [True, False, True]
        chosen = CHOICES[choice].clone()
        with wp.ScopedCapture(device="cpu") as capture:
            simulation.reset(chosen)
        simulation.step(10)
        chosen.zero_()  # world 0, or no world
        wp.capture_launch(capture.graph)
        is_mask = chosen.dtype in (torch.bool, torch.uint8)
        assert (height == begin).tolist() == [not is_mask, False, False]


def test_a_reset_says_which_types_it_takes():
    model = make_model(["flyer"] * 3)
    with pv.Simulation(model, dt=DT, threads=1) as simulation:
        for wrong, kind in ((torch.tensor([0.0, 1.0]), TypeError), (torch.tensor([[0], [1]]), ValueError),
                            (torch.tensor([1, 0], dtype=torch.uint8), ValueError)):  # fmt: skip
            with pytest.raises(kind, match="indices of 32 or 64 bits with one axis, or 3 truth values"):
                simulation.reset(wrong)


def test_views_take_tensors_of_every_type():
    """Rows 0 and 2 are written."""
    model = make_model(["arm"] * 3)
    view, state = ArticulationView(model, "*"), model.state()
    for name, chosen in CHOICES.items():
        state.joint_q.zero_()
        view.set_dof_positions(
            state, 1.0, **{"mask" if chosen.dtype in (torch.bool, torch.uint8) else "indices": chosen}
        )
        assert view.get_dof_positions(state).numpy().reshape(3, -1).max(axis=1).tolist() == [1, 0, 1], name
    with pytest.raises(TypeError, match="does not fit into int32"):
        view.set_attribute("joint_target_mode", model, np.full(9, 2**32))
