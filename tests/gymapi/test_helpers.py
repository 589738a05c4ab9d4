"""Helper modules: command lines, PyTorch tensors, terrain."""

import numpy as np
import pytest

from pluriverse import gymapi, gymtorch, gymutil, terrain_utils
from tests.gymapi.scenes import add_env, at, make_sim


def test_arguments_have_what_scripts_read():
    custom = [
        {"name": "--num_envs", "type": int, "default": 7, "help": "envs"},
        {"name": "--fast", "action": "store_true", "help": "be quick"},
    ]
    words = ["--sim_device", "cpu", "--pipeline", "gpu", "--fast", "--headless"]
    args = gymutil.parse_arguments("test", headless=True, custom_parameters=custom, args=words)
    assert (args.num_envs, args.fast, args.headless) == (7, True, True)
    assert (args.sim_device_type, args.compute_device_id) == ("cpu", 0)
    # A CPU device forces the CPU pipeline.
    assert (args.use_gpu, args.use_gpu_pipeline, args.pipeline) == (False, False, "cpu")
    assert args.physics_engine is gymapi.SIM_PHYSX
    with pytest.raises(ValueError, match="has no 'name'"):
        gymutil.parse_arguments(custom_parameters=[{"type": int}], args=[])
    with pytest.raises(ValueError, match="'tpu' is no device"):
        gymutil.parse_arguments(args=["--sim_device", "tpu"])


def test_lines_have_as_many_colours_as_lines(gym):
    sim = make_sim()
    env = add_env(sim)
    viewer = gym.create_viewer(sim, gymapi.CameraProperties(), frames=1)
    for geometry, count in (
        (gymutil.AxesGeometry(0.5), 3),
        (gymutil.WireframeBoxGeometry(1, 2, 3), 12),
        (gymutil.WireframeBBoxGeometry([gymapi.Vec3(), gymapi.Vec3(1, 1, 1)]), 12),
        (gymutil.WireframeSphereGeometry(0.1, 4, 6, None, (1, 1, 0)), 42),
    ):
        assert geometry.num_lines() == count == len(geometry.vertices())
        gymutil.draw_lines(geometry, gym, viewer, env, at(z=1.0))
    lengths = gymutil.WireframeBoxGeometry(1, 2, 3).vertices().view(np.float32).reshape(-1, 2, 3)
    edges = np.linalg.norm(lengths[:, 1] - lengths[:, 0], axis=1)
    np.testing.assert_allclose(np.sort(edges), np.repeat([1.0, 2.0, 3.0], 4))


def test_torch_shares_the_memory_of_tensors(gym, assets):
    """Views stay valid, setters take wrapped tensors, and descriptors keep tensors alive."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install pluriverse[torch]")
    sim = make_sim(gravity=0.0)
    asset = gym.load_asset(sim, assets, "cartpole.urdf", gymapi.AssetOptions())
    for index in range(2):
        env = add_env(sim)
        gym.create_actor(env, asset, at(z=1.0), "cartpole", index, 1)
    gym.prepare_sim(sim)
    descriptor = gym.acquire_actor_root_state_tensor(sim)
    roots = gymtorch.wrap_tensor(descriptor)
    assert (descriptor.shape, descriptor.ndim, descriptor.device) == ((2, 13), 2, -1)
    assert descriptor.data_ptr == roots.data_ptr()
    assert descriptor.dtype == gymapi.DTYPE_FLOAT32
    wanted = roots.clone()
    wanted[1, :3] = torch.tensor([0.5, 0.25, 2.0])
    indices = torch.tensor([1], dtype=torch.int64)
    assert gym.set_actor_root_state_tensor_indexed(
        sim, gymtorch.unwrap_tensor(wanted), gymtorch.unwrap_tensor(indices), 1
    )
    gym.refresh_actor_root_state_tensor(sim)
    assert torch.equal(roots, wanted)
    kept = gymtorch.unwrap_tensor(torch.full((4, 2), 3.0))
    assert kept.numpy()[0, 0] == 3.0
    part = gymtorch.wrap_tensor(descriptor, offsets=(0, 7), counts=(2, 3))
    assert part.shape == (2, 3)
    with pytest.raises(TypeError, match=r"type torch\.float64 is not supported"):
        gymtorch.unwrap_tensor(torch.zeros(3, dtype=torch.float64))
    with pytest.raises(gymapi.GymError, match="not contiguous"):
        gymtorch.unwrap_tensor(torch.zeros((3, 4)).T)
    gym.set_dof_velocity_target_tensor(sim, torch.zeros((2, 2, 1)))  # extra axes


def test_torch_rotations_agree_with_those_of_values():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install pluriverse[torch]")
    from pluriverse import torch_utils

    turns = [gymapi.Quat.from_euler_zyx(0.3, -0.2, 1.0), gymapi.Quat.from_euler_zyx(-1.0, 0.4, 0.1)]
    a, b = (torch_utils.to_torch([list(turn)]) for turn in turns)
    np.testing.assert_allclose(torch_utils.quat_mul(a, b)[0], list(turns[0] * turns[1]), atol=1e-6)
    vector = torch_utils.to_torch([[1.0, 2.0, 3.0]])
    expected = list(turns[0].rotate(gymapi.Vec3(1, 2, 3)))
    np.testing.assert_allclose(torch_utils.quat_rotate(a, vector)[0], expected, atol=1e-6)
    np.testing.assert_allclose(
        torch_utils.quat_rotate_inverse(a, torch_utils.quat_rotate(a, vector)), vector, atol=1e-5
    )
    angles = torch.tensor([[0.3, -0.2, 1.0]]).T
    np.testing.assert_allclose(torch_utils.quat_from_euler_xyz(*angles)[0], list(turns[0]), atol=1e-6)


def test_terrain_meshes_have_the_heights_of_their_field():
    """Vertices lie over the samples, triangles face up, and steep slopes become vertical."""
    terrain = terrain_utils.SubTerrain("stairs", 12, 8, 0.01, 0.5)
    terrain_utils.stairs_terrain(terrain, 1.5, 0.2)
    assert terrain.height_field_raw[:, 0].tolist() == [20] * 3 + [40] * 3 + [60] * 3 + [80] * 3
    vertices, triangles = terrain_utils.convert_heightfield_to_trimesh(terrain.height_field_raw, 0.5, 0.01)
    np.testing.assert_allclose(vertices[:, 2].reshape(12, 8), 0.01 * terrain.height_field_raw, atol=1e-6)
    corners = vertices[triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (normals[:, 2] > 0.0).all()
    steep, _ = terrain_utils.convert_heightfield_to_trimesh(terrain.height_field_raw, 0.5, 0.01, 0.3)
    assert steep[:, 0].reshape(12, 8)[2, 0] == steep[:, 0].reshape(12, 8)[3, 0]


@pytest.mark.parametrize("up", [gymapi.UP_AXIS_Z, gymapi.UP_AXIS_Y])
def test_ball_rests_at_the_height_of_a_height_field(gym, up):
    """Over a flat step the ball lies on it, in either convention of what is up, in any env of the grid."""
    params = gymapi.SimParams()
    params.up_axis = up
    params.gravity = gymapi.Vec3(0, -9.81, 0) if up == gymapi.UP_AXIS_Y else gymapi.Vec3(0, 0, -9.81)
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)
    field = gymapi.HeightFieldParams()
    field.nbRows, field.nbColumns = 9, 17
    field.row_scale = field.column_scale = 0.5
    field.vertical_scale = 0.1
    field.transform.p = gymapi.Vec3(2.0, 4.0, 0.0) if up == gymapi.UP_AXIS_Z else gymapi.Vec3(2.0, 0.0, 4.0)
    samples = np.zeros((9, 17), dtype=np.int16)
    samples[:, 10:] = 5  # half a metre high from 5 m on along the columns
    gym.add_heightfield(sim, samples.T.flatten(), field)
    ball = gym.create_sphere(sim, 0.1)
    heights = []
    for index, along in enumerate((1.0, 6.5)):
        env = gym.create_env(sim, gymapi.Vec3(-0.5, -0.5, -0.5), gymapi.Vec3(0.5, 0.5, 0.5), 4)
        place = (1.0, along, 0.8) if up == gymapi.UP_AXIS_Z else (1.0, 0.8, along)
        gym.create_actor(env, ball, at(*place), "ball", index, 0)
        heights.append(env)
    for _ in range(90):
        gym.simulate(sim)
    component = "z" if up == gymapi.UP_AXIS_Z else "y"
    found = [getattr(gym.get_rigid_transform(env, 0).p, component) for env in heights]
    np.testing.assert_allclose(found, [0.102, 0.602], atol=2e-3)


def test_setters_take_arrays_of_vectors(gym):
    """Forces may be a Warp array of vectors, of numbers, or a NumPy array; all give the same push."""
    import warp as wp

    sim = make_sim(gravity=0.0)
    env = add_env(sim)
    gym.create_actor(env, gym.create_sphere(sim, 0.1), at(), "ball", 0, 0)
    gym.prepare_sim(sim)
    pushes = np.array([[1.0, 2.0, 3.0]], dtype=np.float32)
    speeds = []
    for forces in (pushes, pushes.reshape(1, 1, 3), wp.array(pushes, dtype=wp.vec3), wp.array(pushes)):
        gym.set_rigid_linear_velocity(env, 0, gymapi.Vec3())
        gym.apply_rigid_body_force_tensors(sim, forces)
        gym.simulate(sim)
        speeds.append(list(gym.get_rigid_linear_velocity(env, 0)))
    assert speeds[0][2] > 0.0
    assert speeds == [speeds[0]] * 4
