"""Envs that share a group: worlds of their own as long as each stays in its cell, and one world else."""

import warnings

import numpy as np
import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import make_params

COUNT = 64  # envs from which one world of all is warned of


def boxes(gym, *, group=None, filter=-1, spacing=1.0, isolate=None, x=0.0, count=COUNT):
    """Return a prepared sim with a falling box in each env, and the tensor of its roots."""
    params = make_params()
    params.isolate_envs = isolate
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)
    plane = gymapi.PlaneParams()
    plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
    gym.add_ground(sim, plane)
    box = gym.create_box(sim, 0.2, 0.2, 0.2)
    lower, upper = gymapi.Vec3(-spacing, -spacing, 0.0), gymapi.Vec3(spacing, spacing, spacing)
    for index in range(count):
        env = gym.create_env(sim, lower, upper, 8)
        turn = gymapi.Quat.from_axis_angle(gymapi.Vec3(1.0, 0.5, 0.0), 0.01 * index)
        pose = gymapi.Transform(gymapi.Vec3(x, 0.0, 0.3), turn)
        gym.create_actor(env, box, pose, "box", index if group is None else group, filter)
    gym.prepare_sim(sim)
    return sim, gym.acquire_actor_root_state_tensor(sim)


def run(gym, sim, roots, steps=20):
    """Return the roots after some steps, relative to their envs."""
    for _ in range(steps):
        gym.simulate(sim)
    gym.refresh_actor_root_state_tensor(sim)
    origins = np.array([list(gym.get_env_origin(env)) for env in sim.envs], dtype=np.float32)
    rows = roots.numpy().copy()
    rows[:, :3] -= origins
    return rows


def test_envs_of_one_group_in_their_cells_are_worlds_of_their_own(gym):
    """Bit for bit as with a group for each, without a warning."""
    apart = boxes(gym)
    with warnings.catch_warnings():
        warnings.simplefilter("error", gymapi.GymWarning)
        shared = boxes(gym, group=0)
        rows = run(gym, *shared)
    assert shared[0].runtime.model.world_count == COUNT
    np.testing.assert_array_equal(rows, run(gym, *apart))


@pytest.mark.parametrize("group", [0, -1])
def test_a_body_that_leaves_its_cell_is_reported_once(gym, group):
    sim, roots = boxes(gym, group=group)
    gym.refresh_actor_root_state_tensor(sim)
    rows = roots.numpy()
    rows[3, 7] = 30.0  # m/s
    gym.set_actor_root_state_tensor(sim, roots)
    with pytest.warns(
        gymapi.GymWarning, match=r"simulate: body 'box' of actor 0 \('box'\) of env 3 left"
    ) as told:
        run(gym, sim, roots, 10)
    assert len(told) == 1


def test_envs_that_are_not_in_their_cells_meet(gym):
    """Boxes at one place, or beyond the edges of their cells, are in one world, as the API has it."""
    with pytest.warns(gymapi.GymWarning, match="64 envs share one world"):
        sim, _ = boxes(gym, group=0, x=0.95)
    assert sim.runtime.model.world_count == 1
    with pytest.warns(gymapi.GymWarning, match="64 envs share one world"):
        sim, _ = boxes(gym, group=0, spacing=0.0)
    assert sim.runtime.model.world_count == 1
    with pytest.warns(gymapi.GymWarning, match="64 envs share one world"):
        sim, _ = boxes(gym, group=0, isolate=False)
    assert sim.runtime.model.world_count == 1
    # Few envs are one world, wherever they are.
    sim, roots = boxes(gym, group=0, spacing=0.05, count=2)
    assert sim.runtime.model.world_count == 1
    rows = run(gym, sim, roots, 30)
    assert np.abs(rows[1, 0] - rows[0, 0]) > 0.05, "they pushed each other apart"


def test_a_shared_world_is_the_same_beside_ordinary_ones(gym):
    """64 boxes at places that overlap have the same bits whether an env of another group is there or not."""
    rows = {}
    for others in (0, 1):
        params = make_params()
        params.isolate_envs = False
        sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)
        plane = gymapi.PlaneParams()
        plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
        gym.add_ground(sim, plane)
        box = gym.create_box(sim, 0.2, 0.2, 0.2)
        for index in range(COUNT + others):
            env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 8)
            turn = gymapi.Quat.from_axis_angle(gymapi.Vec3(1.0, 0.5, 0.0), 0.02 * index)
            pose = gymapi.Transform(gymapi.Vec3(0.21 * (index % 8), 0.21 * (index // 8), 0.15), turn)
            gym.create_actor(env, box, pose, "box", 0 if index < COUNT else 7)
        gym.prepare_sim(sim)
        roots = gym.acquire_actor_root_state_tensor(sim)
        for _ in range(10):
            gym.simulate(sim)
        gym.refresh_actor_root_state_tensor(sim)
        assert sim.runtime.model.world_count == 1 + others
        rows[others] = roots.numpy()[:COUNT].copy()
    np.testing.assert_array_equal(rows[0], rows[1])


def test_envs_whose_shapes_share_a_filter_bit_cannot_meet(gym):
    """So they are worlds of their own, wherever they stand; without the bit they are not."""
    sim, _ = boxes(gym, group=0, filter=1, spacing=0.05, count=3)
    assert sim.runtime.model.world_count == 3
    sim, _ = boxes(gym, group=0, filter=0, spacing=0.05, count=3)
    assert sim.runtime.model.world_count == 1
