"""Calls that few scripts make: by asset, by env, by index; the viewer; and that every call is tested."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import pluriverse
from pluriverse import gymapi, gymutil, terrain_utils
from pluriverse.gymapi.gym_absent import _REFUSED as ABSENT
from pluriverse.warnings import ContactTruncationWarning
from tests.gymapi.scenes import add_env, at, make_sim, position_of, undamped
from tests.gymapi.test_every_getter import TENDON


def carts(gym, assets, count=3, **options):
    """Return a sim without gravity with a cartpole in each env."""
    sim = make_sim(gravity=0.0)
    asset = gym.load_urdf(sim, assets, "cartpole.urdf", undamped(fix_base_link=True, **options))
    for index in range(count):
        gym.create_actor(add_env(sim), asset, at(z=1.0), "cartpole", index, 1)
    return sim


def test_every_call_is_made_in_a_test():
    """By name, in a test or an example; getters and finders, and calls that only raise, by tests of all."""
    folders = [Path(__file__).parent, Path(pluriverse.__file__).parents[1] / "examples" / "gym"]
    files = [path for folder in folders for path in folder.glob("*.py")]
    text = "".join(path.read_text() for path in files if path.name not in ("reference_names.py",))
    calls = [name for name in dir(gymapi.Gym) if not name.startswith(("_", "get_", "find_"))]
    calls = [name for name in calls if name not in ABSENT]
    assert [name for name in calls if not re.search(rf"\.{name}\(|\"{name}\"", text)] == []


def test_body_state_tensor_moves_what_its_joints_allow(gym, assets):
    """Boxes go anywhere; a cartpole as its joints do, and poses that tear it apart are refused."""
    sim = carts(gym, assets, 1)
    env = gym.get_env(sim, 0)
    gym.create_actor(env, gym.create_box(sim, 0.1, 0.1, 0.1, undamped()), at(x=3.0), "box", 0, 0)
    gym.prepare_sim(sim)
    bodies = gym.acquire_rigid_body_state_tensor(sim)
    rows = bodies.numpy().copy()
    rows[1:3, 1] += 0.4  # cart and pole along the rail
    rows[1:3, 8] = 0.3
    rows[3, :3], rows[3, 7:10] = (1.0, 2.0, 3.0), (0.1, 0.2, 0.3)
    assert gym.set_rigid_body_state_tensor(sim, rows)
    gym.refresh_rigid_body_state_tensor(sim)
    np.testing.assert_allclose(bodies.numpy(), rows, atol=1e-6)
    states = gym.get_actor_dof_states(env, 0, gymapi.STATE_ALL)
    np.testing.assert_allclose([states["pos"][0], states["vel"][0]], [0.4, 0.3], atol=1e-6)
    rows[2, 2] += 0.5
    with pytest.raises(ValueError, match=r"set_rigid_body_state_tensor: the poses of actor 0 .* apart: body"):
        gym.set_rigid_body_state_tensor(sim, rows)


def test_properties_of_assets_are_those_of_new_actors(gym, assets, tmp_path):
    """Drives, materials and tendons set for an asset; once it has actors they say where to set them."""
    sim = make_sim(ground=True)
    asset = gym.load_urdf(sim, assets, "cartpole.urdf", undamped(fix_base_link=True))
    drives = gym.get_asset_dof_properties(asset)
    drives["driveMode"], drives["stiffness"], drives["damping"] = gymapi.DOF_MODE_POS, 1e4, 1e3
    gym.set_asset_dof_properties(asset, drives)
    box = gym.create_box(sim, 0.2, 0.2, 0.2, undamped())
    shapes = gym.get_asset_rigid_shape_properties(box)
    shapes[0].friction = 0.3
    gym.set_asset_rigid_shape_properties(box, shapes)
    (tmp_path / "finger.xml").write_text(TENDON)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what importers say of tendons is tested with them
        finger = gym.load_mjcf(sim, str(tmp_path), "finger.xml", undamped())
    tendons = gym.get_asset_tendon_properties(finger)
    tendons[0].stiffness = 7.0
    gym.set_asset_tendon_properties(finger, tendons)
    gym.set_asset_fixed_tendon_joint_coefficients(finger, 0, [2.0, 3.0])
    env = add_env(sim)
    for place, part in enumerate((asset, box, finger)):
        gym.create_actor(env, part, at(x=2.0 * place, z=1.0), "part", 0, 1)
    gym.set_actor_dof_position_targets(env, 0, np.array([0.5, 0.0]))
    for _ in range(60):
        gym.simulate(sim)
    np.testing.assert_allclose(position_of(env, 0, 1), [0.0, 0.5, 1.0], atol=2e-3)
    assert gym.get_actor_rigid_shape_properties(env, 1)[0].friction == pytest.approx(0.3)
    assert gym.get_actor_tendon_properties(env, 2)[0].stiffness == 7.0
    assert gym.get_actor_fixed_tendon_joint_coefficients(env, 2, 0) == [2.0, 3.0]


def test_properties_set_between_actors_are_those_of_the_next(gym, assets, tmp_path):
    """Each actor keeps what its asset was when it was created, before and after the sim is prepared."""
    (tmp_path / "finger.xml").write_text(TENDON)
    sim = make_sim(ground=True)
    box = gym.create_box(sim, 0.2, 0.2, 0.2, undamped())
    cart = gym.load_urdf(sim, assets, "cartpole.urdf", undamped(fix_base_link=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what importers say of tendons is tested with them
        finger = gym.load_mjcf(sim, str(tmp_path), "finger.xml", undamped())
    frictions, rests, stiffnesses = (
        [0.2, 0.9, 0.5, 0.9],
        [0.001, 0.004, 0.001, 0.002],
        [10.0, 20.0, 30.0, 40.0],
    )
    envs = []
    for index in range(4):
        shapes = gym.get_asset_rigid_shape_properties(box)
        shapes[0].friction, shapes[0].rest_offset = np.array([[frictions[index]]]), np.array(rests[index])
        shapes[0].filter = index % 2
        gym.set_asset_rigid_shape_properties(box, shapes)
        drives = gym.get_asset_dof_properties(cart)
        drives["stiffness"] = stiffnesses[index]
        gym.set_asset_dof_properties(cart, drives)
        tendons = gym.get_asset_tendon_properties(finger)
        tendons[0].stiffness = stiffnesses[index]
        gym.set_asset_tendon_properties(finger, tendons)
        gym.set_asset_fixed_tendon_joint_coefficients(finger, 0, [1.0 + index, 1.0])
        envs.append(add_env(sim))
        gym.create_actor(envs[-1], box, at(z=0.1), "box", index, -1)
        gym.create_actor(envs[-1], cart, at(x=1.0, z=1.0), "cart", index, 0)
        gym.create_actor(envs[-1], finger, at(x=2.0, z=1.0), "finger", index, 1)

    def check():
        boxes = [gym.get_actor_rigid_shape_properties(env, 0)[0] for env in envs]
        np.testing.assert_allclose([part.friction for part in boxes], frictions)
        np.testing.assert_allclose([part.rest_offset for part in boxes], rests)
        assert [part.filter for part in boxes] == [0, 1, 0, 1]
        assert [gym.get_actor_dof_properties(env, 1)["stiffness"][0] for env in envs] == stiffnesses
        assert [gym.get_actor_tendon_properties(env, 2)[0].stiffness for env in envs] == stiffnesses
        coefficients = [gym.get_actor_fixed_tendon_joint_coefficients(env, 2, 0)[0] for env in envs]
        assert coefficients == [1.0, 2.0, 3.0, 4.0]

    check()
    gym.prepare_sim(sim)
    check()
    model = sim.runtime.model
    rows = [actor.starts["shape"] for actor in sim.actors[::3]]
    np.testing.assert_allclose(model.shape_material_mu.numpy()[rows], frictions)
    np.testing.assert_allclose(model.shape_margin.numpy()[rows], rests)
    np.testing.assert_allclose(model.shape_gap.numpy()[rows], 0.02 - np.array(rests), rtol=1e-6)
    # Of friction with the ground, the mean with its 1, only the first has less than a slope of 0.7.
    params = gym.get_sim_params(sim)
    params.gravity = gymapi.Vec3(0.7 * 9.81, 0.0, -9.81)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gym.set_sim_params(sim, params)
    for _ in range(30):
        gym.simulate(sim)
    travelled = np.array([position_of(env, 0)[0] for env in envs])
    assert travelled[0] > 0.05
    assert (np.abs(travelled[1:]) < 0.01).all()


def test_offsets_of_the_sim_stay_those_of_the_sim(gym):
    """Offsets that nobody gave read as numbers, go back unchanged, and follow the parameters of the sim."""
    sim = make_sim(ground=True)
    box = gym.create_box(sim, 0.2, 0.2, 0.2, undamped())
    env = add_env(sim)
    shapes = gym.get_asset_rigid_shape_properties(box)
    assert (shapes[0].contact_offset, shapes[0].rest_offset) == (0.02, 0.001)
    gym.set_asset_rigid_shape_properties(box, shapes)
    gym.create_actor(env, box, at(z=0.2), "box", 0, 0)
    shapes[0].rest_offset = float("nan")
    gym.set_actor_rigid_shape_properties(env, 0, shapes)
    params = gym.get_sim_params(sim)
    params.physx.rest_offset = np.array([0.01])
    gym.set_sim_params(sim, params)
    for _ in range(60):
        gym.simulate(sim)
    assert gym.get_actor_rigid_shape_properties(env, 0)[0].rest_offset == pytest.approx(0.01)
    assert position_of(env, 0)[2] == pytest.approx(0.1 + 0.01 + 0.01, abs=1e-3)
    gym.set_actor_rigid_shape_properties(env, 0, gym.get_actor_rigid_shape_properties(env, 0))
    params.physx.rest_offset = 0.0
    gym.set_sim_params(sim, params)
    for _ in range(60):
        gym.simulate(sim)
    assert position_of(env, 0)[2] == pytest.approx(0.1, abs=1e-3)


def test_tensors_may_be_acquired_before_the_sim_is_prepared(gym, assets):
    """They are those of the sim, and are filled at once."""
    sim = carts(gym, assets)
    dofs = gym.acquire_dof_state_tensor(sim)
    roots = gym.acquire_actor_root_state_tensor(sim)
    gym.prepare_sim(sim)
    assert dofs.numpy().shape == (gym.get_sim_dof_count(sim), 2)
    np.testing.assert_allclose(roots.numpy()[:, 2], 1.0)
    dofs.numpy()[:, 1] = 1.0
    gym.set_dof_state_tensor(sim, dofs)
    gym.simulate(sim)
    gym.refresh_dof_state_tensor(sim)
    assert (dofs.numpy()[::2, 0] > 0.01).all()


def test_states_of_envs_and_sims_come_back(gym, assets):
    """What is set for an env or the sim is read back, there and by actor; other envs stay."""
    sim = carts(gym, assets)
    first, second = gym.get_env(sim, 0), gym.get_env(sim, 1)
    dofs = gym.get_env_dof_states(second, gymapi.STATE_ALL)
    dofs["pos"], dofs["vel"] = (0.25, 0.5), (1.0, -1.0)
    gym.set_env_dof_states(second, dofs, gymapi.STATE_ALL)
    np.testing.assert_array_equal(gym.get_actor_dof_states(second, 0, gymapi.STATE_ALL), dofs)
    assert not gym.get_env_dof_states(first, gymapi.STATE_ALL)["pos"].any()
    everything = gym.get_sim_dof_states(sim, gymapi.STATE_ALL)
    everything["pos"] = np.arange(6) / 16.0
    gym.set_sim_dof_states(sim, everything, gymapi.STATE_POS)
    np.testing.assert_array_equal(gym.get_sim_dof_states(sim, gymapi.STATE_ALL), everything)
    bodies = gym.get_env_rigid_body_states(first, gymapi.STATE_ALL)
    bodies["pose"]["p"]["z"] += 2.0
    gym.set_env_rigid_body_states(first, bodies, gymapi.STATE_ALL)
    np.testing.assert_allclose(position_of(first, 0), [0.0, 0.0, 3.0], atol=1e-6)
    np.testing.assert_allclose(position_of(second, 0), [0.0, 0.0, 1.0], atol=1e-6)


def test_indexed_controls_reach_the_actors_listed(gym, assets):
    """Velocity targets and actuation forces of some actors; the force tensor reads what was applied."""
    sim = carts(gym, assets)
    for index, mode in enumerate((gymapi.DOF_MODE_VEL, gymapi.DOF_MODE_EFFORT, gymapi.DOF_MODE_EFFORT)):
        properties = gym.get_actor_dof_properties(gym.get_env(sim, index), 0)
        properties["driveMode"], properties["damping"] = mode, 1e5 if index == 0 else 0.0
        gym.set_actor_dof_properties(gym.get_env(sim, index), 0, properties)
    gym.prepare_sim(sim)
    forces = gym.acquire_dof_force_tensor(sim)
    chosen = np.array([0, 1], dtype=np.int32)
    values = np.tile(np.array([0.4, 0.0], dtype=np.float32), 3)
    for _ in range(10):
        gym.set_dof_velocity_target_tensor_indexed(sim, values, chosen, 2)
        gym.set_dof_actuation_force_tensor_indexed(sim, values, chosen, 2)
        gym.simulate(sim)
    speeds = gym.get_sim_dof_states(sim, gymapi.STATE_ALL)["vel"][::2]
    # Upright the pole gives way: the cart accelerates by F / (M + m (1 - m l^2 / (I + m l^2))).
    mass = 1.0 + 0.5 * (1.0 - 0.125 / 0.175)
    np.testing.assert_allclose(speeds, [0.4, 0.4 / mass / 6.0, 0.0], rtol=0.01, atol=1e-6)
    gym.refresh_dof_force_tensor(sim)
    np.testing.assert_allclose(forces.numpy()[2:], [0.4, 0.0, 0.0, 0.0], atol=1e-6)


def test_single_joints_and_bodies(gym, assets):
    """A joint is driven by its handle, and a base is put somewhere by that of its body."""
    sim = carts(gym, assets, 1)
    env = gym.get_env(sim, 0)
    properties = gym.get_actor_dof_properties(env, 0)
    properties["driveMode"], properties["damping"] = gymapi.DOF_MODE_VEL, 1e5
    gym.set_actor_dof_properties(env, 0, properties)
    joint = gym.get_joint_handle(env, "cartpole", "slider_to_cart")
    gym.set_joint_target_velocity(env, joint, 0.3)
    gym.set_rigid_transform(env, gym.get_rigid_handle(env, "cartpole", "slider"), at(1.0, 2.0, 3.0))
    for _ in range(30):
        gym.simulate(sim)
    assert gym.get_joint_velocity(env, joint) == pytest.approx(0.3, rel=1e-3)
    np.testing.assert_allclose(position_of(env, 0), [1.0, 2.0, 3.0], atol=1e-5)
    np.testing.assert_allclose(position_of(env, 0, 1), [1.0, 2.15, 3.0], atol=5e-3)


def test_sims_report_on_themselves(gym, assets, capsys, tmp_path):
    """Timers, dumps of assets, the device; envs that were destroyed take no calls; scenes are not loaded."""
    sim = carts(gym, assets, 2)
    gym.set_sim_device(sim)
    timers = gym.create_performance_timers(sim)
    gym.simulate(sim)
    assert gym.get_performance_timers(sim, timers).physics_sim > 0.0
    gym.destroy_performance_timers(sim, timers)
    asset = gym.get_actor_asset(gym.get_env(sim, 0), 0)
    gym.debug_print_asset(asset)
    gym.debug_print_asset(asset, str(tmp_path / "asset.txt"))
    assert "joint 1 'cart_to_pole'" in (text := capsys.readouterr().out)
    assert (tmp_path / "asset.txt").read_text() == text
    env = gym.get_env(sim, 1)
    gym.destroy_env(env)
    with pytest.raises(gymapi.GymError, match=r"get_actor_count: .*env 1.* was destroyed"):
        gym.get_actor_count(env)
    for call in (gym.attach_sim, gym.load_sim, gym.load_opensim):
        with pytest.raises(NotImplementedError, match="not"):
            call(sim, "scene.usd")
    with pytest.raises(gymapi.GymError, match=r"load_usd: 'none\.usda' cannot be an asset"):
        gym.load_usd(make_sim(), str(tmp_path), "none.usda")


def test_viewer_takes_all_calls(gym, assets, tmp_path):
    """What draws is accepted; what there is no window for says so."""
    sim = carts(gym, assets, 1)
    env = gym.get_env(sim, 0)
    viewer = gym.create_viewer(sim, gymapi.CameraProperties(), frames=1)
    gym.viewer_camera_look_at(viewer, env, gymapi.Vec3(1, 1, 1), gymapi.Vec3())
    size = gym.get_viewer_size(viewer)
    assert size.x > 0
    assert size.y > 0
    gym.subscribe_viewer_mouse_event(viewer, gymapi.MOUSE_LEFT_BUTTON, "shoot")
    gym.poll_viewer_events(viewer)
    gym.set_light_parameters(sim, 0, gymapi.Vec3(), gymapi.Vec3(), gymapi.Vec3())
    gymutil.draw_line(gymapi.Vec3(), gymapi.Vec3(1, 0, 0), gymapi.Vec3(1, 1, 1), gym, viewer, env)
    gym.add_lines(viewer, env, 1, np.zeros(6, dtype=np.float32), np.ones(3, dtype=np.float32))
    gym.draw_env_rigid_contacts(viewer, env, gymapi.Vec3(1, 0, 0), 1.0, False)
    gym.draw_env_soft_contacts(viewer, env)
    gym.clear_lines(viewer)
    own = gym.get_rigid_body_color(env, 0, 1, gymapi.MESH_VISUAL)
    gym.set_rigid_body_color(env, 0, 1, gymapi.MESH_VISUAL, gymapi.Vec3(1, 0, 0))
    assert gym.get_rigid_body_color(env, 0, 1, gymapi.MESH_VISUAL) == gymapi.Vec3(1, 0, 0)
    gym.reset_actor_materials(env, 0, gymapi.MESH_VISUAL)
    assert gym.get_rigid_body_color(env, 0, 1, gymapi.MESH_VISUAL) == own
    gym.write_viewer_image_to_file(viewer, str(tmp_path / "picture.png"))
    assert (tmp_path / "picture.png").stat().st_size > 0


def test_lost_contacts_are_reported(gym):
    """Too few slots for the contacts of a box: a warning says how many it needs."""
    sim = make_sim(ground=True)
    sim.params.max_contacts = 2
    env = add_env(sim)
    gym.create_actor(env, gym.create_box(sim, 0.2, 0.2, 0.2), at(z=0.1), "box", 0, 0)
    with pytest.warns(ContactTruncationWarning, match="needs 4 and has 2"):
        gym.simulate(sim)


def test_actors_of_one_name_and_other_assets_have_no_common_matrix(gym, assets):
    sim = carts(gym, assets, 1)
    box = gym.create_box(sim, 0.1, 0.1, 0.1)
    gym.create_actor(gym.get_env(sim, 0), box, at(x=2.0), "cartpole", 0, 0)
    gym.prepare_sim(sim)
    with pytest.raises(gymapi.GymError, match=r"actors of the name 'cartpole' differ.*different names"):
        gym.acquire_mass_matrix_tensor(sim, "cartpole")


def test_terrain_generators_keep_to_their_sizes():
    """Slopes rise as told, platforms are level, stones and obstacles have heights within their bounds."""

    def field():
        return terrain_utils.SubTerrain("terrain", 40, 40, 0.005, 0.1)

    slope = terrain_utils.sloped_terrain(field(), 0.5).height_field_raw
    np.testing.assert_allclose(slope[:, 0], 0.5 * 0.1 / 0.005 * np.arange(40), atol=1)
    pyramid = terrain_utils.pyramid_sloped_terrain(field(), 0.5, 1.0).height_field_raw
    assert pyramid.max() == pyramid[20, 20] == pyramid[16, 22] > pyramid[2, 20] > pyramid[0, 20] == 0
    np.random.seed(3)  # noqa: NPY002 (the random state that the generators draw from)
    obstacles = terrain_utils.discrete_obstacles_terrain(field(), 0.1, 0.4, 0.8, 12, 1.0).height_field_raw
    assert set(np.unique(obstacles)) <= {-20, -10, 0, 10, 20}
    assert len(np.unique(obstacles)) > 2
    assert not obstacles[15:25, 15:25].any()
    stones = terrain_utils.stepping_stones_terrain(field(), 0.5, 0.3, 0.05, 1.0, -2.0).height_field_raw
    assert stones.min() == -400
    assert np.abs(stones[stones > -400]).max() <= 11
    assert not stones[15:25, 15:25].any()


def test_torch_helpers():
    """Rotations by angle and axis, lengths, bounds."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install pluriverse[torch]")
    from pluriverse import torch_utils

    axis, vector = torch.tensor([[0.0, 0.0, 2.0]]), torch.tensor([[1.0, 0.0, 0.0]])
    turn = torch_utils.quat_from_angle_axis(torch.tensor([0.5 * np.pi]), axis)
    np.testing.assert_allclose(torch_utils.quat_apply(turn, vector), [[0, 1, 0]], atol=1e-6)
    back = torch_utils.quat_apply(torch_utils.quat_conjugate(turn), vector)
    np.testing.assert_allclose(back, [[0, -1, 0]], atol=1e-6)
    np.testing.assert_allclose(torch_utils.normalize(3.0 * axis), [[0, 0, 1]], atol=1e-6)
    np.testing.assert_allclose(torch_utils.quat_unit(2.0 * turn), turn, atol=1e-6)
    low, high = torch.tensor([-1.0, 0.0]), torch.tensor([1.0, 0.5])
    assert torch_utils.tensor_clamp(torch.tensor([-3.0, 3.0]), low, high).tolist() == [-1.0, 0.5]
    numbers = torch_utils.torch_rand_float(-2.0, 3.0, (100, 2), "cpu")
    assert numbers.shape == (100, 2)
    assert -2.0 <= numbers.min() < 0.0 < numbers.max() <= 3.0
    assert torch_utils.get_axis_params(-1.0, 2) == [0.0, 0.0, -1.0]


def test_truth_values_and_devices_are_parsed():
    assert [gymutil.parse_bool(text) for text in ("true", "0", "Yes", False)] == [True, False, True, False]
    with pytest.raises(ValueError, match="parse_bool: 'maybe' is no truth value"):
        gymutil.parse_bool("maybe")
    assert gymutil.parse_device_str("cuda:1") == ("cuda", 1)
    with pytest.raises(ValueError, match="parse_device_str: 'tpu' is no device"):
        gymutil.parse_device_str("tpu")


def test_properties_take_tensors_of_one_number(gym, assets):
    """As scripts draw them: `torch.rand(1, 1)`, or one entry of a tensor."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install pluriverse[torch]")
    sim = make_sim(ground=True)
    env = add_env(sim)
    box = gym.create_actor(env, gym.create_box(sim, 0.1, 0.1, 0.1), at(z=1.0), "box", 0, 0)
    bodies = gym.get_actor_rigid_body_properties(env, box)
    bodies[0].mass = torch.full((1, 1), 3.0)
    gym.set_actor_rigid_body_properties(env, box, bodies)
    shapes = gym.get_actor_rigid_shape_properties(env, box)
    shapes[0].friction = torch.tensor(0.25)
    gym.set_actor_rigid_shape_properties(env, box, shapes)
    assert gym.get_actor_rigid_body_properties(env, box)[0].mass == 3.0
    assert gym.get_actor_rigid_shape_properties(env, box)[0].friction == 0.25
