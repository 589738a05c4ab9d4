"""Cameras of the API: where they are, what they see, and that images mean what scripts take them for."""

import numpy as np
import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import add_env, at, make_params, make_sim, undamped

VISIBLE_BALL = """
<robot name="ball">
  <link name="ball">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><sphere radius="0.5"/></geometry>
      <material name="paint"><color rgba="0 1 0 1"/></material></visual>
    <collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision>
  </link>
</robot>
"""
SIZE = 33


def camera_properties(**values):
    """Return properties of a small square camera."""
    properties = gymapi.CameraProperties()
    properties.width = properties.height = SIZE
    for name, value in values.items():
        setattr(properties, name, value)
    return properties


def looking(gym, env, position, target, **values):
    """Return the handle of a camera that looks from a point to another."""
    handle = gym.create_camera_sensor(env, camera_properties(**values))
    gym.set_camera_location(handle, env, gymapi.Vec3(*position), gymapi.Vec3(*target))
    return handle


def images(gym, sim, env, handle):
    """Return depth and segmentation as things are now."""
    gym.render_all_camera_sensors(sim)
    return tuple(
        gym.get_camera_image(sim, env, handle, kind)
        for kind in (gymapi.IMAGE_DEPTH, gymapi.IMAGE_SEGMENTATION)
    )


def still(gym, sim, radius=0.5):
    """Return a ball that stays where it is."""
    return gym.create_sphere(sim, radius, undamped(fix_base_link=True, disable_gravity=True))


@pytest.mark.parametrize("solver", ["sap", "mujoco"])
def test_envs_without_actors_are_seen_and_stepped(gym, solver):
    """A ground and cameras are a sim: scripts that compare cameras have no more."""
    sim = make_sim(ground=True)
    sim.params.solver = solver
    envs = [add_env(sim) for _ in range(3)]
    cameras = [looking(gym, env, (0.0, 0.001, height), (0.0, 0.0, 0.0)) for height, env in enumerate(envs, 2)]
    for _ in range(2):
        gym.simulate(sim)
        gym.fetch_results(sim, True)
        gym.step_graphics(sim)
    for height, (env, camera) in enumerate(zip(envs, cameras, strict=True), 2):
        depth, _ = images(gym, sim, env, camera)
        np.testing.assert_allclose(depth[SIZE // 2, SIZE // 2], -height, rtol=1e-3)
    assert gym.get_sim_time(sim) == pytest.approx(2.0 / 60.0)
    assert len(gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL)) == 0


def test_actors_that_nothing_moves_are_seen_and_stepped(gym):
    sim = make_sim()
    env = add_env(sim)
    gym.create_actor(env, still(gym, sim), at(z=2.0), "ball", 0, 0)
    camera = looking(gym, env, (0.0, 3.0, 2.0), (0.0, 0.0, 2.0))
    gym.simulate(sim)
    depth, _ = images(gym, sim, env, camera)
    np.testing.assert_allclose(depth[SIZE // 2, SIZE // 2], -2.5, atol=1e-3)


def test_depths_are_negative_distances_along_the_axis(gym):
    """A plane seen from above has one depth; the middle of a ball is nearer by its radius."""
    sim = make_sim(ground=True, gravity=0.0)
    env = add_env(sim)
    gym.create_actor(env, still(gym, sim), at(0.0, 0.0, 1.0), "ball", 0, 0, 7)
    handle = looking(gym, env, (0.0, 0.0, 4.0), (0.0, 0.0, 0.0), horizontal_fov=60.0)
    depth, label = images(gym, sim, env, handle)
    assert depth.shape == label.shape == (SIZE, SIZE)
    assert depth.dtype == np.float32
    assert label.dtype == np.uint32
    assert depth[SIZE // 2, SIZE // 2] == pytest.approx(-2.5, abs=1e-5)
    np.testing.assert_allclose(depth[label == 0], -4.0, rtol=1e-5)
    assert set(np.unique(label)) == {0, 7}
    # The outline of a ball at distance d is a circle of slope r / sqrt(d^2 - r^2).
    slope = np.tan(np.radians(30.0)) * (2.0 * (np.arange(SIZE) + 0.5) / SIZE - 1.0)
    away = np.hypot(*np.meshgrid(slope, slope))
    edge = 0.5 / np.sqrt(3.0**2 - 0.5**2)
    assert (label[away < edge - 1e-6] == 7).all()
    assert (label[away > edge + 1e-6] == 0).all()


def test_nothing_is_infinitely_far_away(gym):
    """What is nearer than the near plane or beyond the far plane is not seen."""
    sim = make_sim(gravity=0.0)
    env = add_env(sim)
    gym.create_actor(env, still(gym, sim), at(3.0), "ball", 0, 0, 7)
    ranges = {"all": (0.001, 100.0), "short": (0.001, 2.0), "far": (3.7, 100.0)}
    handles = {
        name: looking(gym, env, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), near_plane=near, far_plane=far)
        for name, (near, far) in ranges.items()
    }
    seen = {name: images(gym, sim, env, handle) for name, handle in handles.items()}
    middle = SIZE // 2
    assert seen["all"][0][middle, middle] == pytest.approx(-2.5, abs=1e-5)
    for name in ("short", "far"):
        depth, label = seen[name]
        assert np.isneginf(depth).all()
        assert not label.any()
    assert np.isneginf(seen["all"][0][0, 0])


@pytest.mark.parametrize("up", [gymapi.UP_AXIS_Z, gymapi.UP_AXIS_Y])
def test_cameras_look_along_x(gym, up):
    """Not turned, a camera sees +x ahead, the axis that points up above, and the rest by the right hand."""
    params = make_params(gravity=0.0)
    params.up_axis = up
    params.gravity = gymapi.Vec3()
    sim = gym.create_sim(0, 0, gymapi.SIM_PHYSX, params)
    env = add_env(sim)
    upward = np.array([0.0, 0.0, 1.0] if up == gymapi.UP_AXIS_Z else [0.0, 1.0, 0.0])
    right = np.cross((1.0, 0.0, 0.0), upward)
    ball = still(gym, sim, 0.3)
    for label, place in ((1, (4.0, 0.0, 0.0)), (2, 2.0 * upward), (3, 2.0 * right)):
        spot = np.array([4.0, 0.0, 0.0]) + place if label > 1 else np.array(place)
        gym.create_actor(env, ball, gymapi.Transform(gymapi.Vec3(*spot)), "ball", 0, 0, label)
    handle = gym.create_camera_sensor(env, camera_properties())
    gym.set_camera_transform(handle, env, gymapi.Transform())
    _, label = images(gym, sim, env, handle)
    rows, columns = ({k: np.argwhere(label == k)[:, axis].mean() for k in (1, 2, 3)} for axis in (0, 1))
    middle = SIZE // 2
    assert rows[1] == columns[1] == rows[3] == columns[2] == middle
    assert rows[2] < middle - 5
    assert columns[3] > middle + 5
    # The same place, by location.
    other = looking(gym, env, (0.0, 0.0, 0.0), (5.0, 0.0, 0.0))
    np.testing.assert_array_equal(images(gym, sim, env, other)[1], label)
    pose = gym.get_camera_transform(sim, env, other)
    assert np.allclose(list(pose.r), (0.0, 0.0, 0.0, 1.0), atol=1e-7)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_depths_become_points_by_the_matrices_as_scripts_do_it(gym):
    """Rows times the inverse of the view matrix are points in the sim: on the ground and on the box."""
    sim = make_sim(ground=True, gravity=0.0)
    box = gym.create_box(sim, 0.4, 0.6, 0.8)
    envs, handles = [], []
    for index in range(3):
        env = add_env(sim)
        gym.create_actor(env, box, at(0.0, 0.0, 0.4), "box", index, 0, 1)
        handle = gym.create_camera_sensor(env, camera_properties(width=40, height=24, horizontal_fov=70.0))
        gym.set_camera_location(handle, env, gymapi.Vec3(1.2, 0.9, 1.3), gymapi.Vec3(0.0, 0.1, 0.3))
        envs.append(env)
        handles.append(handle)
    gym.prepare_sim(sim)
    for env, handle in zip(envs, handles, strict=True):
        depth, label = images(gym, sim, env, handle)
        projection = np.matrix(gym.get_camera_proj_matrix(sim, env, handle))
        inverse = np.linalg.inv(np.matrix(gym.get_camera_view_matrix(sim, env, handle)))
        fu, fv = 2.0 / projection[0, 0], 2.0 / projection[1, 1]
        height, width = depth.shape
        points = []
        for row in range(height):
            for column in range(width):
                if depth[row, column] < -1e4:
                    continue
                u = -(column + 0.5 - width / 2) / width
                v = (row + 0.5 - height / 2) / height
                d = depth[row, column]
                point = np.array([d * fu * u, d * fv * v, d, 1.0]) @ inverse
                points.append([label[row, column], *np.asarray(point)[0, :3]])
        points = np.array(points)
        origin = np.array(list(gym.get_env_origin(env)))
        ground = points[points[:, 0] == 0][:, 1:]
        assert len(ground) > 100
        np.testing.assert_allclose(ground[:, 2], 0.0, atol=2e-5)
        inside = np.abs(points[points[:, 0] == 1][:, 1:] - origin - (0.0, 0.0, 0.4)) - (0.2, 0.3, 0.4)
        assert len(inside) > 30
        np.testing.assert_allclose(inside.max(axis=1), 0.0, atol=2e-5)


def test_projection_has_one_at_the_near_plane_and_zero_far_away(gym):
    sim = make_sim()
    env = add_env(sim)
    handle = gym.create_camera_sensor(env, camera_properties(width=200, height=100, near_plane=0.1))
    matrix = gym.get_camera_proj_matrix(sim, env, handle)
    near, far = (np.array([0.0, 0.0, -distance, 1.0]) @ matrix for distance in (0.1, 1e9))
    assert near[2] / near[3] == pytest.approx(1.0)
    assert far[2] / far[3] == pytest.approx(0.0, abs=1e-9)
    edge = np.array([1.0, 0.5, -1.0, 1.0]) @ matrix  # 90 degrees wide, half as high
    np.testing.assert_allclose(edge[:2] / edge[3], 1.0, rtol=1e-6)


@pytest.mark.parametrize("mode", [gymapi.FOLLOW_TRANSFORM, gymapi.FOLLOW_POSITION])
def test_bodies_carry_cameras(gym, mode):
    """A body that was moved and turned takes its camera along; FOLLOW_POSITION keeps the axes."""
    sim = make_sim(gravity=0.0)
    env = add_env(sim)
    box = gym.create_actor(env, gym.create_box(sim, 0.1, 0.1, 0.1), at(), "box", 0, 0, 1)
    gym.create_actor(env, still(gym, sim), at(3.0, 1.0), "ahead", 0, 0, 2)
    gym.create_actor(env, still(gym, sim), at(0.0, 4.0), "aside", 0, 0, 3)
    handle = gym.create_camera_sensor(env, camera_properties(horizontal_fov=40.0))
    body = gym.get_actor_rigid_body_handle(env, box, 0)
    gym.attach_camera_to_body(handle, env, body, at(0.2), mode)
    # Scripts ask before the sim is prepared, and go on to build it.
    np.testing.assert_allclose(
        gym.get_camera_view_matrix(sim, env, handle)[3], (0.0, 0.0, 0.2, 1.0), atol=1e-7
    )
    assert not sim.is_prepared
    gym.prepare_sim(sim)
    turn = gymapi.Quat.from_axis_angle(gymapi.Vec3(0.0, 0.0, 1.0), np.pi / 2)
    gym.set_rigid_transform(env, body, gymapi.Transform(gymapi.Vec3(0.0, 1.0, 0.0), turn))
    pose = gym.get_camera_transform(sim, env, handle)
    depth, label = images(gym, sim, env, handle)
    middle = label[SIZE // 2, SIZE // 2]
    if mode == gymapi.FOLLOW_TRANSFORM:
        assert middle == 3
        np.testing.assert_allclose(list(pose.p), (0.0, 1.2, 0.0), atol=1e-6)
        assert depth[SIZE // 2, SIZE // 2] == pytest.approx(-(4.0 - 0.5 - 1.2), abs=1e-4)
    else:
        assert middle == 2
        np.testing.assert_allclose(list(pose.p), (0.2, 1.0, 0.0), atol=1e-6)
        assert depth[SIZE // 2, SIZE // 2] == pytest.approx(-(3.0 - 0.5 - 0.2), abs=1e-4)


def test_labels_are_those_of_bodies_actors_and_grounds(gym, assets):
    """A body has the id it was given, else that of its actor; grounds have theirs; nothing is 0."""
    sim = make_sim()
    plane = gymapi.PlaneParams()
    plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
    plane.segmentation_id = 11
    gym.add_ground(sim, plane)
    cart = gym.load_asset(sim, assets, "cartpole.urdf", undamped(fix_base_link=True))
    env = add_env(sim)
    actor = gym.create_actor(env, cart, at(0.0, 0.0, 1.0), "cart", 0, 0, 5)
    handle = looking(gym, env, (1.0, 0.6, 1.3), (0.1, 0.0, 1.1))
    _, label = images(gym, sim, env, handle)
    assert set(np.unique(label)) == {0, 5, 11}
    gym.set_rigid_body_segmentation_id(env, actor, 2, 6)
    _, label = images(gym, sim, env, handle)
    assert set(np.unique(label)) == {0, 5, 6, 11}
    assert gym.get_rigid_body_segmentation_id(env, actor, 2) == 6


def test_files_show_their_visual_geometry_and_cameras_may_ask_for_the_other(gym, tmp_path):
    """A ball that collides as a box is seen as the ball, in its colour, and by some cameras as the box."""
    (tmp_path / "ball.urdf").write_text(VISIBLE_BALL)
    sim = make_sim(gravity=0.0)
    asset = gym.load_asset(sim, str(tmp_path), "ball.urdf", undamped())
    assert gym.get_asset_rigid_shape_count(asset) == 1  # what collides, as ever
    env = add_env(sim)
    actor = gym.create_actor(env, asset, at(), "ball", 0, 0, 1)
    drawn = looking(gym, env, (2.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    collides = looking(gym, env, (2.0, 0.0, 0.0), (0.0, 0.0, 0.0), use_collision_geometry=True)
    middle = SIZE // 2
    assert images(gym, sim, env, drawn)[0][middle, middle] == pytest.approx(-1.5, abs=1e-5)
    assert images(gym, sim, env, collides)[0][middle, middle] == pytest.approx(-1.9, abs=1e-5)
    assert gym.get_rigid_body_color(env, actor, 0, gymapi.MESH_VISUAL) == gymapi.Vec3(0.0, 1.0, 0.0)
    # A larger actor looks larger too.
    gym.set_actor_scale(env, actor, 2.0)
    assert images(gym, sim, env, drawn)[0][middle, middle] == pytest.approx(-1.0, abs=1e-5)
    assert images(gym, sim, env, collides)[0][middle, middle] == pytest.approx(-1.8, abs=1e-5)


def middle_color(gym, sim, env, handle):
    """Return the colour in the middle of the image of a camera."""
    gym.render_all_camera_sensors(sim)
    image = gym.get_camera_image(sim, env, handle, gymapi.IMAGE_COLOR)
    assert image.shape == (SIZE, 4 * SIZE)
    assert image.dtype == np.uint8
    return image.reshape(SIZE, SIZE, 4)[SIZE // 2, SIZE // 2].astype(int)


def test_colours_textures_and_lights_change_between_pictures(gym):
    """Each call is seen in the next picture, at any time, for the actor it names; a reset undoes it."""
    sim = make_sim(gravity=0.0)
    ball = still(gym, sim)
    envs, actors, handles = [], [], []
    for index in range(2):
        env = add_env(sim)
        actors.append(gym.create_actor(env, ball, at(2.0), "ball", index, 0))
        handles.append(looking(gym, env, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)))
        envs.append(env)
    gym.set_rigid_body_color(envs[0], actors[0], 0, gymapi.MESH_VISUAL, gymapi.Vec3(1.0, 0.0, 0.0))

    def shown():
        return [middle_color(gym, sim, *pair) for pair in zip(envs, handles, strict=True)]

    red, plain = shown()
    assert red[0] > 100
    assert red[1:3].max() < 0.6 * red[0]
    assert red[3] == 255
    gym.set_rigid_body_color(envs[1], actors[1], 0, gymapi.MESH_VISUAL_AND_COLLISION, gymapi.Vec3(0, 0, 1))
    blue = shown()[1]
    assert blue[2] > 1.5 * blue[0]
    assert not np.array_equal(blue, plain)
    assert gym.get_rigid_body_color(envs[1], actors[1], 0, gymapi.MESH_COLLISION) == gymapi.Vec3(0, 0, 1)
    # A texture that is green on the whole, as file scripts make them.
    pixels = np.zeros((8, 8 * 4), dtype=np.uint8)
    pixels[:, 1::4] = 255
    texture = gym.create_texture_from_buffer(sim, 8, 8, pixels)
    gym.reset_actor_materials(envs[1], actors[1], gymapi.MESH_VISUAL_AND_COLLISION)
    gym.set_rigid_body_texture(envs[1], actors[1], 0, gymapi.MESH_VISUAL_AND_COLLISION, texture)
    assert gym.get_rigid_body_texture(envs[1], actors[1], 0, gymapi.MESH_VISUAL) == texture
    first, green = shown()
    np.testing.assert_array_equal(first, red)
    assert green[1] > 1.5 * green[0]
    gym.reset_actor_materials(envs[1], actors[1], gymapi.MESH_VISUAL_AND_COLLISION)
    np.testing.assert_array_equal(shown()[1], plain)
    # No light, no picture; light of one colour shows in what is white.
    dark, bright = gymapi.Vec3(), gymapi.Vec3(0.0, 0.0, 1.0)
    gym.set_light_parameters(sim, 0, dark, dark, gymapi.Vec3(-1.0, 0.0, 0.0))
    assert shown()[1][:3].max() == 0
    gym.set_light_parameters(sim, 0, bright, dark, gymapi.Vec3(-1.0, 0.0, 0.0))
    lit = shown()[1]
    assert lit[2] > 100
    assert lit[:2].max() == 0
    gym.free_texture(sim, texture)
    with pytest.raises(gymapi.GymError, match="texture 1 was freed"):
        gym.set_rigid_body_texture(envs[1], actors[1], 0, gymapi.MESH_VISUAL, texture)


def test_textures_of_files_lie_on_each_side_of_a_box(gym, tmp_path):
    """An image of a file is seen from each side; what is none is named."""
    from PIL import Image

    picture = np.zeros((4, 6, 3), dtype=np.uint8)
    picture[:, :3], picture[:, 3:] = (255, 0, 0), (0, 255, 0)
    Image.fromarray(picture).save(tmp_path / "halves.png")
    sim = make_sim(gravity=0.0)
    env = add_env(sim)
    actor = gym.create_actor(env, gym.create_box(sim, 1.0, 1.0, 1.0), at(), "box", 0, 0, 1)
    texture = gym.create_texture_from_file(sim, str(tmp_path / "halves.png"))
    gym.set_rigid_body_texture(env, actor, 0, gymapi.MESH_VISUAL, texture)
    for side in ((3.0, 0.0, 0.0), (-3.0, 0.0, 0.0), (0.0, 3.0, 0.0), (0.0, -3.0, 0.0)):
        handle = looking(gym, env, side, (0.0, 0.0, 0.0), horizontal_fov=30.0)
        gym.render_all_camera_sensors(sim)
        image = gym.get_camera_image(sim, env, handle, gymapi.IMAGE_COLOR).reshape(SIZE, SIZE, 4).astype(int)
        left, right = image[SIZE // 2, SIZE // 4], image[SIZE // 2, -SIZE // 4]
        assert left[0] > 1.5 * left[1]
        assert right[1] > 1.5 * right[0]
    with pytest.raises(FileNotFoundError, match=r"create_texture_from_file: .*none\.png"):
        gym.create_texture_from_file(sim, str(tmp_path / "none.png"))
    (tmp_path / "text.png").write_text("no image")
    with pytest.raises(ValueError, match=r"create_texture_from_file: .*text\.png"):
        gym.create_texture_from_file(sim, str(tmp_path / "text.png"))


def test_optical_flow_is_the_motion_since_the_last_picture(gym):
    """A wall that moves sideways moves by its way over the width that is seen; a turned camera moves all."""
    sim = make_sim(gravity=0.0)
    env = add_env(sim)
    wall = gym.create_actor(env, gym.create_box(sim, 0.2, 9.0, 9.0), at(2.1), "wall", 0, 0, 1)
    handle = gym.create_camera_sensor(env, camera_properties())
    gym.set_camera_transform(handle, env, gymapi.Transform())
    gym.prepare_sim(sim)

    def flow():
        gym.render_all_camera_sensors(sim)
        image = gym.get_camera_image(sim, env, handle, gymapi.IMAGE_OPTICAL_FLOW)
        assert image.shape == (SIZE, 2 * SIZE)
        assert image.dtype == np.int16
        return image.reshape(SIZE, SIZE, 2) / 2.0**15

    assert (flow() == 0.0).all()
    body = gym.get_actor_rigid_body_handle(env, wall, 0)
    gym.set_rigid_transform(env, body, at(2.1, -0.1, 0.2))
    # At 2 m, 4 m are seen: 0.1 m to the right is 1/40 of the width, 0.2 m up 1/20 of the height.
    np.testing.assert_allclose(flow(), np.broadcast_to((0.025, -0.05), (SIZE, SIZE, 2)), atol=2e-4)
    assert (flow() == 0.0).all()
    turn = 0.05
    pose = gymapi.Transform(gymapi.Vec3(), gymapi.Quat.from_axis_angle(gymapi.Vec3(0.0, 0.0, 1.0), turn))
    gym.set_camera_transform(handle, env, pose)
    # What is in the middle now was to the left of it, by the tangent of the turn.
    middle = flow()[SIZE // 2, SIZE // 2]
    np.testing.assert_allclose(middle, (0.5 * np.tan(turn), 0.0), atol=1e-4)


def test_tensors_keep_their_memory_and_are_filled_with_each_picture(gym):
    """As scripts take them: each camera's right after it was created, before the sim is prepared."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install pluriverse[torch]")
    from pluriverse import gymtorch

    sim = make_sim(ground=True)
    box = gym.create_box(sim, 0.2, 0.2, 0.2)
    kinds = {
        gymapi.IMAGE_COLOR: (torch.uint8, (SIZE, SIZE, 4)),
        gymapi.IMAGE_DEPTH: (torch.float32, (SIZE, SIZE)),
        gymapi.IMAGE_SEGMENTATION: (torch.int32, (SIZE, SIZE)),
        gymapi.IMAGE_OPTICAL_FLOW: (torch.int16, (SIZE, SIZE, 2)),
    }
    envs, handles, tensors = [], [], []
    for index in range(3):
        env = add_env(sim)
        gym.create_actor(env, box, at(0.0, 0.0, 0.5 + 0.1 * index), "box", index, 0, 1)
        handle = looking(gym, env, (1.0, 0.0, 0.8), (0.0, 0.0, 0.3), enable_tensors=True)
        made = {}
        for kind, (dtype, shape) in kinds.items():
            tensor = gymtorch.wrap_tensor(gym.get_camera_image_gpu_tensor(sim, env, handle, kind))
            assert tensor.dtype == dtype
            assert tuple(tensor.shape) == shape
            made[kind] = tensor
        envs.append(env)
        handles.append(handle)
        tensors.append(made)
    gym.prepare_sim(sim)
    before = None
    for _ in range(3):
        for _ in range(5):
            gym.simulate(sim)
        gym.fetch_results(sim, True)
        gym.step_graphics(sim)
        gym.render_all_camera_sensors(sim)
        gym.start_access_image_tensors(sim)
        depth = torch.stack([made[gymapi.IMAGE_DEPTH] for made in tensors])
        for env, handle, made in zip(envs, handles, tensors, strict=True):
            for kind, tensor in made.items():
                image = gym.get_camera_image(sim, env, handle, kind)
                np.testing.assert_array_equal(image.ravel(), tensor.numpy().ravel())
        assert not torch.equal(depth[0], depth[1])
        assert before is None or not torch.equal(depth, before)
        assert (tensors[0][gymapi.IMAGE_OPTICAL_FLOW] != 0).any() == (before is not None)
        gym.end_access_image_tensors(sim)
        before = depth


def test_images_do_not_depend_on_other_envs(gym):
    """Bit for bit: alone, among others with other cameras, whatever their order."""

    def picture(count, chosen, extra):
        sim = make_sim(ground=True)
        box, ball = gym.create_box(sim, 0.3, 0.2, 0.2), gym.create_sphere(sim, 0.15)
        envs = []
        for index in range(count):
            env = add_env(sim)
            gym.create_actor(env, box if index == chosen else ball, at(0.0, 0.0, 0.3), "it", index, 0, 1)
            envs.append(env)
        handles = {}
        for index in reversed(range(count)):
            if extra and index != chosen:
                looking(gym, envs[index], (0.0, 1.0, 1.0), (0.0, 0.0, 0.1))
            handles[index] = looking(gym, envs[index], (1.0, 0.2, 0.8), (0.0, 0.0, 0.1))
        gym.prepare_sim(sim)
        for _ in range(10):
            gym.simulate(sim)
        gym.render_all_camera_sensors(sim)
        env, handle = envs[chosen], handles[chosen]
        return [gym.get_camera_image(sim, env, handle, kind) for kind in range(3)]

    alone = picture(1, 0, False)
    for image, other in zip(alone, picture(5, 3, True), strict=True):
        np.testing.assert_array_equal(image, other)


def test_cameras_come_and_go_at_any_time(gym):
    """One that is created later sees the same; one that was destroyed takes no calls."""
    sim = make_sim(ground=True)
    env = add_env(sim)
    gym.create_actor(env, gym.create_box(sim, 0.2, 0.2, 0.2), at(0.0, 0.0, 0.1), "box", 0, 0, 1)
    first = looking(gym, env, (1.0, 0.0, 0.8), (0.0, 0.0, 0.1))
    gym.prepare_sim(sim)
    seen = images(gym, sim, env, first)
    late = looking(gym, env, (1.0, 0.0, 0.8), (0.0, 0.0, 0.1))
    for image, other in zip(seen, images(gym, sim, env, late), strict=True):
        np.testing.assert_array_equal(image, other)
    gym.set_camera_location(late, env, gymapi.Vec3(0.0, 1.0, 0.8), gymapi.Vec3())
    assert not np.array_equal(images(gym, sim, env, late)[0], seen[0])
    gym.destroy_camera_sensor(sim, env, first)
    with pytest.raises(gymapi.GymError, match="camera 0 of env 0 was destroyed"):
        gym.get_camera_image(sim, env, first, gymapi.IMAGE_DEPTH)
    gym.render_all_camera_sensors(sim)


def test_images_go_to_files(gym, tmp_path):
    """All kinds can be looked at; a folder that is not there, and names of no pictures, are named."""
    from PIL import Image

    sim = make_sim(ground=True)
    env = add_env(sim)
    gym.create_actor(env, gym.create_box(sim, 0.2, 0.2, 0.2), at(0.0, 0.0, 0.1), "box", 0, 0, 1)
    handle = looking(gym, env, (0.6, 0.0, 0.4), (0.0, 0.0, 0.2))
    for kind in gymapi.ImageType:
        path = tmp_path / f"{kind.name}.png"
        gym.write_camera_image_to_file(sim, env, handle, kind, str(path))
        pixels = np.asarray(Image.open(path))
        assert pixels.shape == (SIZE, SIZE, 3)
        assert (len(np.unique(pixels.reshape(-1, 3), axis=0)) > 1) == (kind != gymapi.IMAGE_OPTICAL_FLOW)
    gym.write_camera_image_to_file(sim, env, handle, gymapi.IMAGE_COLOR, str(tmp_path / "plain"))
    assert (tmp_path / "plain.png").is_file()
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*nowhere'"):
        gym.write_camera_image_to_file(sim, env, handle, 0, str(tmp_path / "nowhere" / "a.png"))
    with pytest.raises(ValueError, match=r"write_camera_image_to_file: .*'\.txt' is no format"):
        gym.write_camera_image_to_file(sim, env, handle, 0, str(tmp_path / "a.txt"))


def test_viewers_are_pictured_with_all_envs_and_lines(gym, tmp_path):
    """The file shows what stands before the camera, lines over it, and moves with viewer_camera_look_at."""
    from PIL import Image

    sim = make_sim(ground=True, gravity=0.0)
    box = gym.create_box(sim, 0.5, 0.5, 0.5)
    for index in range(2):
        env = add_env(sim)
        gym.create_actor(env, box, at(0.0, 0.0, 0.5), "box", index, 0)
        color = gymapi.Vec3(1.0, 0.0, 0.0) if index else gymapi.Vec3(0.0, 0.0, 1.0)
        gym.set_rigid_body_color(env, 0, 0, gymapi.MESH_VISUAL, color)
    viewer = gym.create_viewer(sim, gymapi.CameraProperties(width=120, height=60), frames=10)

    def shown(name):
        gym.write_viewer_image_to_file(viewer, str(tmp_path / name))
        image = np.asarray(Image.open(tmp_path / name)).astype(int)
        assert image.shape == (60, 120, 3)
        return image

    # Both boxes, 2 m apart along x, from in front: the first to the right.
    gym.viewer_camera_look_at(viewer, None, gymapi.Vec3(1.0, 3.0, 0.5), gymapi.Vec3(1.0, 0.0, 0.5))
    image = shown("both.png")
    blue = (image[:, :, 2] > 1.5 * image[:, :, 0]) & (image[:, :, 2] > 60)
    red = (image[:, :, 0] > 1.5 * image[:, :, 2]) & (image[:, :, 0] > 60)
    assert blue[:, 60:].any()
    assert not blue[:, :60].any()
    assert red[:, :60].any()
    assert not red[:, 60:].any()
    # The same place, in the frame of the second env.
    gym.viewer_camera_look_at(viewer, env, gymapi.Vec3(-1.0, 3.0, 0.5), gymapi.Vec3(-1.0, 0.0, 0.5))
    np.testing.assert_array_equal(shown("env.png"), image)
    pose = gym.get_viewer_camera_transform(viewer, None)
    np.testing.assert_allclose(list(pose.p), (1.0, 3.0, 0.5), atol=1e-6)
    forward = pose.r.rotate(gymapi.Vec3(0.0, 0.0, 1.0))
    np.testing.assert_allclose(list(forward), (0.0, -1.0, 0.0), atol=1e-6)
    line = np.array([-1.0, 0.0, 0.5, -1.0, 0.0, 1.0], dtype=np.float32)
    gym.add_lines(viewer, env, 1, line, np.array([0.0, 1.0, 0.0], dtype=np.float32))
    lined = shown("lines.png")
    changed = np.argwhere((lined != image).any(axis=2))
    assert len(changed) > 3
    assert (np.abs(changed[:, 1] - 60) <= 1).all()
    assert (changed[:, 0] <= 31).all()
    assert (lined[tuple(changed.T)] == (0, 255, 0)).all()
    gym.clear_lines(viewer)
    np.testing.assert_array_equal(shown("clear.png"), image)
    with pytest.raises(FileNotFoundError, match="write_viewer_image_to_file: there is no folder"):
        gym.write_viewer_image_to_file(viewer, str(tmp_path / "nowhere" / "a.png"))


WRONG = {
    "width": (lambda gym, sim, env: gym.create_camera_sensor(env, camera_properties(width=0)), "width is 0"),
    "angle": (
        lambda gym, sim, env: gym.create_camera_sensor(env, camera_properties(horizontal_fov=180.0)),
        "horizontal_fov is 180.0",
    ),
    "range": (
        lambda gym, sim, env: gym.create_camera_sensor(env, camera_properties(near_plane=5.0, far_plane=1.0)),
        "near_plane is 5.0 m and far_plane 1.0 m",
    ),
    "no camera": (
        lambda gym, sim, env: gym.set_camera_location(4, env, gymapi.Vec3(), gymapi.Vec3(1, 0, 0)),
        "env 0 has no camera 4; it has 1",
    ),
    "nowhere": (
        lambda gym, sim, env: gym.set_camera_location(0, env, gymapi.Vec3(1, 1, 1), gymapi.Vec3(1, 1, 1)),
        "both must be finite, and apart",
    ),
    "kind": (lambda gym, sim, env: gym.get_camera_image(sim, env, 0, 9), "image type is 9"),
    "mode": (
        lambda gym, sim, env: gym.attach_camera_to_body(0, env, 0, gymapi.Transform(), 5),
        "follow mode is 5",
    ),
    "body": (
        lambda gym, sim, env: gym.attach_camera_to_body(0, env, 8, gymapi.Transform(), 1),
        "env 0 has no body 8",
    ),
    "light": (
        lambda gym, sim, env: gym.set_light_parameters(sim, 4, *([gymapi.Vec3()] * 3)),
        "light is 4",
    ),
    "buffer": (
        lambda gym, sim, env: gym.create_texture_from_buffer(sim, 4, 4, np.zeros(7, dtype=np.uint8)),
        "pixels has 7 numbers",
    ),
    "texture": (
        lambda gym, sim, env: gym.set_rigid_body_texture(env, 0, 0, gymapi.MESH_VISUAL, 3),
        "there is no texture 3",
    ),
    "mesh type": (
        lambda gym, sim, env: gym.set_rigid_body_color(env, 0, 0, 7, gymapi.Vec3()),
        "mesh type is 7",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named(gym, name):
    call, message = WRONG[name]
    sim = make_sim()
    env = add_env(sim)
    gym.create_actor(env, still(gym, sim), at(), "ball", 0, 0)
    gym.create_camera_sensor(env, camera_properties())
    with pytest.raises((ValueError, IndexError), match=message):
        call(gym, sim, env)
