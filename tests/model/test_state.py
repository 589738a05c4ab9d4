"""State, Control and Contacts: fresh from the model, independent of each other."""

import numpy as np
import pytest
import warp as wp

from pluriverse import Contacts, ModelBuilder
from tests.builder.robots import make_arm, make_pile


@pytest.fixture
def model():
    """Two arms and a pile."""
    scene = ModelBuilder()
    scene.replicate(make_arm(), 2)
    scene.add_world(make_pile())
    scene.joint_target_pos[:] = 0.25
    scene.joint_f[:] = 2.0
    return scene.finalize("cpu")


def test_states_are_independent_copies(model):
    """Writing to one state changes neither another nor the model."""
    one, other = model.state(), model.state()
    one.joint_q.fill_(7.0)
    one.body_f.fill_(1.0)
    np.testing.assert_array_equal(other.joint_q.numpy(), model.joint_q.numpy())
    assert not (model.joint_q.numpy() == 7.0).all()
    assert (one.body_count, one.joint_dof_count) == (model.body_count, model.joint_dof_count)
    assert one.joint_coord_count == model.joint_coord_count
    other.assign(one)
    for name in ("joint_q", "joint_qd", "body_q", "body_qd", "body_f"):
        np.testing.assert_array_equal(getattr(other, name).numpy(), getattr(one, name).numpy())
    other.clear_forces()
    assert not other.body_f.numpy().any()
    assert one.body_f.numpy().all()


def test_states_of_other_models_are_refused(model):
    """assign() names what differs."""
    with pytest.raises(
        ValueError, match=r"joint_coord_count is 43 here and 21 in the other state|joint_coord_count"
    ):
        model.state().assign(make_pile().finalize("cpu").state())


def test_control_begins_with_the_targets_of_the_model(model):
    """control() clones targets and forces; clear() zeroes all of them."""
    control = model.control()
    assert set(control.joint_target_pos.numpy()) == {0.25}
    assert set(control.joint_f.numpy()) == {2.0}
    control.clear()
    for name in ("joint_f", "joint_target_pos", "joint_target_vel", "joint_act"):
        assert not getattr(control, name).numpy().any()
    assert set(model.joint_target_pos.numpy()) == {0.25}


def test_contacts_give_each_world_its_own_slots(model):
    """One capacity for all worlds, or one per world; world w owns start[w] to start[w + 1]."""
    same = Contacts(model, 4)
    assert same.rigid_contact_start.numpy().tolist() == [0, 4, 8, 12]
    each = Contacts(model, [1, 0, 5])
    assert each.rigid_contact_start.numpy().tolist() == [0, 1, 1, 6]
    assert each.rigid_contact_max == each.rigid_contact_shape0.size == each.rigid_contact_force.size == 6
    each.rigid_contact_count.fill_(3)
    each.clear()
    assert not each.rigid_contact_count.numpy().any()


@pytest.mark.parametrize(
    ("capacity", "message"),
    [
        ([1, 2], "2 capacities for 3 worlds"),
        ([1, -2, 3], "capacity of world 1 is -2"),
        (-1, "capacity of world 0 is -1"),
        (2**31, "more than 32-bit indices can address"),
    ],
)
def test_bad_capacities_are_refused(model, capacity, message):
    """The message names the world and the value."""
    with pytest.raises(ValueError, match=message):
        Contacts(model, capacity)


def test_state_in_a_file_comes_back_bit_by_bit(model, tmp_path):
    """Also NaN, infinity and the negative zero; a file of another model changes nothing."""
    path = tmp_path / "state.npz"
    state, other = model.state(), model.state()
    numbers = np.random.default_rng(0).normal(size=state.joint_qd.size).astype(np.float32)
    numbers[:3] = [np.nan, -np.inf, -0.0]
    state.joint_qd.assign(numbers)
    state.save(path)
    other.load(path)
    for name in ("joint_q", "joint_qd", "body_q", "body_qd", "body_f"):
        assert getattr(other, name).numpy().tobytes() == getattr(state, name).numpy().tobytes()
    small = ModelBuilder()
    small.add_world(make_arm())
    foreign = small.finalize("cpu").state()
    before = foreign.joint_q.numpy().copy()
    with pytest.raises(ValueError, match=r"joint_q has shape .* but the model needs"):
        foreign.load(path)
    np.testing.assert_array_equal(foreign.joint_q.numpy(), before)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="is not a state"):
        other.load(path)


def test_data_of_a_contact_lie_in_one_cache_line(model):
    """What is kept of a contact is in 64 bytes, by itself; values are assigned as to any array."""
    contacts = Contacts(model, 4)
    found = [array for name, array in vars(contacts).items() if name.startswith("rigid_contact_")]
    arrays = [array for array in found if getattr(array, "shape", None) == (12,)]
    assert len(arrays) == 8
    first = min(array.ptr for array in arrays)
    assert first % 64 == 0
    places: list[int] = []
    for number, array in enumerate(arrays):
        assert array.strides == (64,)
        places += range(array.ptr - first, array.ptr - first + wp.types.type_size_in_bytes(array.dtype))
        array.fill_(number)
    assert sorted(places) == list(range(64))
    for number, array in enumerate(arrays):
        assert (array.numpy() == number).all()
