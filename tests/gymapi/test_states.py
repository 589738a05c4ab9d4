"""States: what is set comes back, on the host and by tensors, before and after the sim is prepared."""

import numpy as np
import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import add_env, at, make_sim, undamped

ROUNDING = 2.0**-23


def make_robots(gym, assets, *, gravity=-9.81, count=3):
    """Return a sim with a floating robot, a fixed cartpole and a box in each env."""
    sim = make_sim(gravity=gravity, ground=True)
    robot = gym.load_asset(sim, assets, "branched.urdf", undamped())
    cartpole = gym.load_asset(sim, assets, "cartpole.urdf", undamped(fix_base_link=True))
    box = gym.create_box(sim, 0.2, 0.2, 0.2, undamped())
    envs = []
    for index in range(count):
        env = add_env(sim)
        gym.create_actor(env, robot, at(z=1.0), "robot", index, 1)
        gym.create_actor(env, cartpole, at(y=1.0, z=2.0), "cartpole", index, 2)
        gym.create_actor(env, box, at(x=0.6, z=0.3 + 0.1 * index), "box", index, 0)
        envs.append(env)
    return sim, envs


def random_roots(sim, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(sim.actor_count, 13)).astype(np.float32)
    rows[:, 3:7] /= np.linalg.norm(rows[:, 3:7], axis=1, keepdims=True)
    rows[:, 2] += 3.0
    rows[1::3, 7:] = 0.0  # cartpoles are held
    return rows


def test_tensors_come_back_bit_for_bit(gym, assets):
    """Root and DOF states, set together, are read back to the last bit, again and again."""
    sim, _ = make_robots(gym, assets)
    gym.prepare_sim(sim)
    roots, dofs = gym.acquire_actor_root_state_tensor(sim), gym.acquire_dof_state_tensor(sim)
    ball = np.tile([False, True, True, True, False, False, False], 3)
    for seed in range(3):
        wanted, states = random_roots(sim, seed), np.zeros((sim.dof_count, 2), dtype=np.float32)
        states[:] = np.random.default_rng(seed).uniform(-0.1, 0.1, states.shape)
        gym.set_dof_state_tensor(sim, states)
        gym.set_actor_root_state_tensor(sim, wanted)
        gym.set_dof_state_tensor(sim, states)
        gym.refresh_actor_root_state_tensor(sim)
        gym.refresh_dof_state_tensor(sim)
        np.testing.assert_array_equal(roots.numpy()[0::3], wanted[0::3])
        np.testing.assert_array_equal(roots.numpy()[2::3], wanted[2::3])
        # A held base is placed by a joint frame, whose rotation is normalized once more.
        np.testing.assert_allclose(roots.numpy()[1::3], wanted[1::3], rtol=0, atol=4 * ROUNDING)
        np.testing.assert_array_equal(dofs.numpy()[~ball], states[~ball])
        # Rotation vectors pass through a quaternion.
        np.testing.assert_allclose(dofs.numpy()[ball], states[ball], rtol=0, atol=4 * ROUNDING)


def test_host_body_states_come_back_bit_for_bit(gym, assets):
    """Saving and restoring the bodies of a whole sim restores the bits, and the motion that follows."""
    sim, _ = make_robots(gym, assets)
    for _ in range(20):
        gym.simulate(sim)
    saved = np.copy(gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL))
    for _ in range(20):
        gym.simulate(sim)
    later = np.copy(gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL))
    gym.set_sim_rigid_body_states(sim, saved, gymapi.STATE_ALL)
    np.testing.assert_array_equal(gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL), saved)
    for _ in range(20):
        gym.simulate(sim)
    again = gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL)
    # Joint angles are computed anew from the poses: some roundings, which 40 steps carry along.
    np.testing.assert_allclose(
        again.view(np.float32).reshape(-1, 13)[:, :7],
        later.view(np.float32).reshape(-1, 13)[:, :7],
        rtol=0,
        atol=1e-4,
    )


def test_getters_agree_before_and_after_preparing(gym, assets):
    """Poses of bodies, properties and states are the same before the model exists and after."""
    sim, envs = make_robots(gym, assets)
    states = gym.get_actor_dof_states(envs[1], 0, gymapi.STATE_ALL)
    states["pos"] = (0.1, 0.2, -0.3, 0.4, 0.5)
    states["vel"] = 0.3
    gym.set_actor_dof_states(envs[1], 0, states, gymapi.STATE_ALL)
    gym.set_actor_scale(envs[2], 0, 1.5)

    def everything():
        bodies = gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL)
        dofs = gym.get_sim_dof_states(sim, gymapi.STATE_ALL)
        masses = [part.mass for part in gym.get_actor_rigid_body_properties(envs[2], 0)]
        return [np.copy(bodies).view(np.float32), np.copy(dofs).view(np.float32), np.array(masses)]

    before = everything()
    gym.prepare_sim(sim)
    for early, late in zip(before, everything(), strict=True):
        np.testing.assert_array_equal(early, late)


def test_forward_kinematics_follows_at_once(gym, assets):
    """Bodies are where joints were set, before any step: closed form of a cart and its pole."""
    sim, envs = make_robots(gym, assets)
    for prepared in (False, True):
        if prepared:
            gym.prepare_sim(sim)
        states = gym.get_actor_dof_states(envs[0], 1, gymapi.STATE_NONE)
        states["pos"] = (0.7, np.pi / 2)
        states["vel"] = (0.0, 2.0)
        gym.set_actor_dof_states(envs[0], 1, states, gymapi.STATE_ALL)
        pole = gym.get_actor_rigid_body_states(envs[0], 1, gymapi.STATE_ALL)[2]
        np.testing.assert_allclose(pole["pose"]["p"].tolist(), [0.12, 1.7, 2.0], atol=1e-6)
        # The velocity is that of the centre of mass, half a metre along the pole, which lies along -y.
        np.testing.assert_allclose(pole["vel"]["linear"].tolist(), [0.0, 0.0, -1.0], atol=1e-6)
        handle = gym.find_actor_rigid_body_handle(envs[0], 1, "pole")
        np.testing.assert_allclose(
            list(gym.get_rigid_angular_velocity(envs[0], handle)), [2, 0, 0], atol=1e-6
        )


def test_indexed_setters_touch_the_actors_listed(gym, assets):
    """Indices are those of actors, for DOF states too; an actor without joints is skipped."""
    sim, envs = make_robots(gym, assets, gravity=0.0)
    gym.prepare_sim(sim)
    roots, dofs = gym.acquire_actor_root_state_tensor(sim), gym.acquire_dof_state_tensor(sim)
    root_before, dof_before = roots.numpy().copy(), dofs.numpy().copy()
    wanted = random_roots(sim)
    states = np.full((sim.dof_count, 2), 0.05, dtype=np.float32)
    chosen = np.array([3, 5, 0], dtype=np.int32)  # robot and box of the second env, then one beyond the count
    assert gym.set_actor_root_state_tensor_indexed(sim, wanted, chosen, 2)
    assert gym.set_dof_state_tensor_indexed(sim, states, chosen.astype(np.int64), 2)
    gym.refresh_actor_root_state_tensor(sim)
    gym.refresh_dof_state_tensor(sim)
    root_before[[3, 5]] = wanted[[3, 5]]
    np.testing.assert_array_equal(roots.numpy(), root_before)
    changed = np.arange(7, 12)  # the robot of the second env
    np.testing.assert_allclose(dofs.numpy()[changed], states[changed], atol=4 * ROUNDING)
    others = np.delete(np.arange(sim.dof_count), changed)
    np.testing.assert_array_equal(dofs.numpy()[others], dof_before[others])
    assert gym.get_actor_dof_states(envs[1], 0, gymapi.STATE_ALL)["pos"][0] == np.float32(0.05)


def test_held_base_can_be_relocated(gym, assets):
    """Writing the root of a fixed base moves the whole actor; its joints stay."""
    sim, envs = make_robots(gym, assets)
    gym.prepare_sim(sim)
    rows = gym.acquire_actor_root_state_tensor(sim).numpy().copy()
    rows[1, :3] = (0.5, -0.5, 3.0)
    gym.set_actor_root_state_tensor_indexed(sim, rows, np.array([1], dtype=np.int32), 1)
    for _ in range(3):
        gym.simulate(sim)
    bodies = gym.get_actor_rigid_body_states(envs[0], 1, gymapi.STATE_ALL)
    np.testing.assert_allclose(bodies["pose"]["p"][0].tolist(), [0.5, -0.5, 3.0], atol=1e-6)


def test_inconsistent_body_states_are_refused(gym, assets):
    _, envs = make_robots(gym, assets)
    states = gym.get_actor_rigid_body_states(envs[0], 1, gymapi.STATE_ALL)
    states["pose"]["p"]["x"][2] += 0.5
    with pytest.raises(
        ValueError, match=r"actor 1 \('cartpole'\) of env 0 tear its joints apart: body 'pole'"
    ):
        gym.set_actor_rigid_body_states(envs[0], 1, states, gymapi.STATE_ALL)


def run(gym, assets, threads, order):
    sim = make_sim(ground=True)
    sim.params.physx.num_threads = threads
    robot = gym.load_asset(sim, assets, "branched.urdf")
    box = gym.create_box(sim, 0.2, 0.2, 0.2)
    envs = {}
    for place, index in enumerate(order):
        envs[index] = add_env(sim)
        gym.create_actor(envs[index], robot, at(z=0.5 + 0.1 * index), "robot", place, 1)
        gym.create_actor(envs[index], box, at(x=0.02 * index, z=1.0), "box", place, 0)
    for _ in range(40):
        gym.simulate(sim)
    return [np.copy(gym.get_env_rigid_body_states(envs[i], gymapi.STATE_ALL)) for i in range(len(order))]


def test_results_depend_neither_on_threads_nor_on_the_place_of_an_env(gym, assets):
    """The same env gives the same bits anywhere in the grid, on any number of threads, in every run."""
    reference = run(gym, assets, 1, range(6))
    for other in (run(gym, assets, 1, range(6)), run(gym, assets, 3, [3, 1, 5, 0, 2, 4])):
        for mine, theirs in zip(reference, other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("name", "shape"), [("dof_state", (0, 2)), ("dof_force", (0,)), ("force_sensor", (0, 6))]
)
def test_tensors_of_no_component_are_none_to_torch(gym, name, shape):
    """Scripts of quadcopters ask so whether there are joints to command, and acquire everything first."""
    pytest.importorskip("torch")
    from pluriverse import gymtorch

    sim = make_sim(ground=True)
    box = gym.create_box(sim, 0.2, 0.2, 0.2, undamped())
    gym.create_actor(add_env(sim), box, at(z=1.0), "box", 0, 0)
    gym.prepare_sim(sim)
    tensor = getattr(gym, f"acquire_{name}_tensor")(sim)
    assert tensor.shape == shape
    assert gymtorch.wrap_tensor(tensor) is None
    assert getattr(gym, f"refresh_{name}_tensor")(sim)
    assert gymtorch.wrap_tensor(gym.acquire_actor_root_state_tensor(sim)).shape == (1, 13)
