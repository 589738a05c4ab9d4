"""Views and tensors of PyTorch and JAX: one memory for both sides, on the device of the model."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse import Entity
from pluriverse.selection import ArticulationView, WorldView

from .robots import different_worlds, equal_worlds, fill_with_numbers

torch = pytest.importorskip("torch", reason="needs PyTorch")


def test_a_torch_tensor_is_the_memory_of_the_state():
    """What a tensor of a view shows is the state; what is written to it moves the robot."""
    model = equal_worlds()
    view, state = ArticulationView(model, "walker"), model.state()
    velocities = wp.to_torch(view.get_dof_velocities(state))
    numbers = fill_with_numbers(state.joint_qd)
    np.testing.assert_array_equal(velocities.numpy(), view.get_dof_velocities(state).numpy())
    velocities[1, :, 0] = 7.0
    changed = state.joint_qd.numpy() != numbers
    assert changed.sum() == view.count_per_world
    assert set(state.joint_qd.numpy()[changed]) == {7.0}


def test_setters_take_torch_tensors_and_masks():
    """A policy hands over its actions and a boolean tensor of the worlds to reset, as they are."""
    model = equal_worlds()
    view, state = ArticulationView(model, "walker"), model.state()
    fill_with_numbers(state.joint_q)
    before = view.get_dof_positions(state).numpy().copy()
    wanted = torch.from_numpy(np.random.default_rng(3).normal(size=before.shape).astype(np.float32))
    mask = torch.tensor([True, False, True])
    view.set_dof_positions(state, wanted, mask)
    after = view.get_dof_positions(state).numpy()
    np.testing.assert_array_equal(after[[0, 2]], wanted.numpy()[[0, 2]])
    np.testing.assert_array_equal(after[1], before[1])


def test_ragged_worlds_come_padded_as_one_tensor():
    """Robots that differ give one padded tensor with its mask; setting it back changes nothing else."""
    model = different_worlds()
    view, state = ArticulationView(model, "*", homogeneous=False), model.state()
    numbers = fill_with_numbers(state.joint_q)
    tensor = wp.to_torch(view.get_attribute_padded("joint_q", state))
    valid = wp.to_torch(view.padding_mask(Entity.JOINT_COORD))
    assert tensor.shape == valid.shape
    assert int(valid.sum()) == model.joint_coord_count
    tensor += 1.0
    view.set_attribute("joint_q", state, tensor)
    np.testing.assert_array_equal(state.joint_q.numpy(), numbers + 1.0)


def test_a_policy_in_torch_drives_a_simulation_through_one_memory():
    """Tensors taken once stay those of control; targets written to them act on the next recorded step."""
    robot = pv.ModelBuilder(gravity=0.0)
    link = robot.add_link(mass=1.0, inertia=np.eye(3) * 0.1)
    robot.add_articulation([robot.add_joint_revolute(-1, link, target_ke=100.0, target_kd=20.0)], label="arm")
    builder = pv.ModelBuilder()
    builder.replicate(robot, 4)
    with pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=2) as simulation:
        arms = ArticulationView(simulation.model, "arm")
        targets = wp.to_torch(arms.get_attribute("joint_target_pos", simulation.control))
        for angle in (0.5, -0.25):
            targets.copy_(angle * torch.arange(4.0).reshape(targets.shape))
            simulation.step(300)
            reached = wp.to_torch(arms.get_dof_positions(simulation.state))
            # Critically damped at 5 per second with 3 s to settle: off by at most 16 e^-15.
            torch.testing.assert_close(reached, targets, rtol=0.0, atol=1e-5)


def test_gravity_of_worlds_is_a_tensor():
    """What belongs to worlds is shared like the rest."""
    model = equal_worlds()
    gravity = wp.to_torch(WorldView(model).get_attribute("gravity", model))
    gravity[1] = torch.tensor([0.0, 0.0, -1.62])
    np.testing.assert_array_equal(model.gravity.numpy()[1], np.float32([0.0, 0.0, -1.62]))
    assert (model.gravity.numpy()[0] != model.gravity.numpy()[1]).any()


def test_jax_arrays_share_and_are_accepted():
    """JAX arrays are read-only views of the same memory, and setters take them."""
    jnp = pytest.importorskip("jax.numpy", reason="needs JAX")
    model = equal_worlds()
    view, state = ArticulationView(model, "walker"), model.state()
    fill_with_numbers(state.joint_q)
    positions = view.get_dof_positions(state)
    seen = wp.to_jax(positions.contiguous())
    np.testing.assert_array_equal(np.asarray(seen), positions.numpy())
    view.set_dof_positions(state, jnp.asarray(seen) * 2.0)
    np.testing.assert_array_equal(view.get_dof_positions(state).numpy(), 2.0 * np.asarray(seen))
    view.set_dof_positions(
        state, jnp.zeros(positions.shape, dtype=jnp.float32), jnp.array([True, False, False])
    )
    after = view.get_dof_positions(state).numpy()
    assert not after[0].any()
    assert after[1:].all()
