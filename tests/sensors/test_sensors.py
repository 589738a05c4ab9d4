"""Cameras and ray sensors: closed forms, MuJoCo, many worlds, following a simulation, wrong arguments."""

import multiprocessing
import os

import mujoco
import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.render.model_camera import ModelCameras
from pluriverse.sensors import (
    CameraMode,
    CameraSensor,
    RayAlignment,
    RaySensor,
    RayVisibility,
    grid_pattern,
    lidar_pattern,
)

DOWN = (0.0, 0.0, -0.2, 0.0, 0.0, 0.0, 1.0)


def make_part(size: float) -> pv.ModelBuilder:
    """A box 1 m above its origin with a camera that looks down from below it, and a fixed camera."""
    part = pv.ModelBuilder()
    body = part.add_body(xform=(0, 0, 1, 0, 0, 0, 1), label="robot")
    part.add_shape_box(body, hx=size, hy=size, hz=0.1)
    part.add_camera(body, xform=DOWN, label="down", width=16, height=12, fov=1.2)
    part.add_camera(-1, xform=(3, 0, 1, 0.5, 0.5, 0.5, 0.5), label="side", width=16, height=12)
    return part


@pytest.fixture(scope="module")
def model() -> pv.Model:
    """Two worlds of a small and one of a large box, 5 m apart, over one ground."""
    builder = pv.ModelBuilder()
    builder.replicate(make_part(0.2), 2, (5, 0, 0))
    builder.add_world(make_part(0.5))
    builder.add_ground_plane()
    return builder.finalize("cpu")


def test_depth_of_a_plane_is_its_distance_in_every_pixel(model):
    """Depth is along the axis; the distance along a ray is longer by 1 / cos."""
    sensor = CameraSensor(model, "down", outputs=["depth", "distance", "normal"])
    sensor.update(model.state())
    depth, distance = sensor.depth.numpy(), sensor.distance.numpy()
    np.testing.assert_allclose(depth, 0.8, atol=1e-6)
    slope = np.tan(0.6)
    x = ((np.arange(16) + 0.5) / 8.0 - 1.0) * slope * 16 / 12
    y = (1.0 - (np.arange(12) + 0.5) / 6.0) * slope
    stretch = np.sqrt(1.0 + x[None, :] ** 2 + y[:, None] ** 2)
    np.testing.assert_allclose(distance, np.broadcast_to(0.8 * stretch, distance.shape), rtol=1e-6)
    np.testing.assert_allclose(sensor.normal.numpy(), np.broadcast_to([0, 0, 1], (3, 12, 16, 3)), atol=1e-6)


def test_segmentation_names_shape_body_and_world(model):
    """Each camera sees the body of its own world, at its own place, and the ground that is nobody's."""
    sensor = CameraSensor(model, "side", outputs=["shape", "body", "world", "depth"])
    sensor.update(model.state())
    body, world, shape = sensor.body.numpy(), sensor.world.numpy(), sensor.shape.numpy()
    assert sensor.camera_world.tolist() == [0, 1, 2]
    for camera in range(3):
        assert set(np.unique(body[camera])) == {-2, -1, camera}
        np.testing.assert_array_equal(world[camera][body[camera] == camera], camera)
        np.testing.assert_array_equal(world[camera][body[camera] == -1], -1)
        np.testing.assert_array_equal(body[camera] == -2, shape[camera] == -1)
        np.testing.assert_array_equal(body[camera] == -2, np.isinf(sensor.depth.numpy()[camera]))
    np.testing.assert_array_equal(body[0] >= 0, body[1] >= 0)
    assert (body[2] >= 0).sum() > (body[0] >= 0).sum()


def test_images_are_the_same_in_any_company_and_on_any_threads(model):
    """World 2 alone, and all worlds on 1 and 3 threads and without recording: equal bits."""
    outputs = ["depth", "normal", "shape", "color"]
    expected = CameraSensor(model, "side", width=80, height=60, outputs=outputs, threads=1)
    expected.launch(model.state())
    for threads in (1, 3):
        sensor = CameraSensor(model, "side", width=80, height=60, outputs=outputs, threads=threads)
        for _ in range(2):
            sensor.update(model.state())
        for name in outputs:
            np.testing.assert_array_equal(getattr(sensor, name).numpy(), getattr(expected, name).numpy())
    builder = pv.ModelBuilder()
    builder.add_world(make_part(0.5))
    builder.add_ground_plane()
    alone = builder.finalize("cpu")
    sensor = CameraSensor(alone, "side", width=80, height=60, outputs=outputs)
    sensor.update(alone.state())
    for name in ("depth", "normal", "color"):
        np.testing.assert_array_equal(getattr(sensor, name).numpy()[0], getattr(expected, name).numpy()[2])


def test_launch_can_be_recorded_with_a_step(model):
    """A graph of the measurement replays it at another pose; arrays stay where they are."""
    sensor = CameraSensor(model, "down")
    state = model.state()
    sensor.launch(state)
    pointer = sensor.depth.ptr
    with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
        sensor.launch(state)
    poses = state.body_q.numpy().copy()
    poses[:, 2] += [0.5, 1.0, 1.5]
    state.body_q.assign(poses)
    wp.capture_launch(capture.graph)
    np.testing.assert_allclose(sensor.depth.numpy()[:, 6, 8], [1.3, 1.8, 2.3], atol=1e-6)
    assert sensor.depth.ptr == pointer


def test_near_and_far_hide_what_is_beyond(model):
    """What is closer than near or farther than far along the axis is not seen."""
    for near, far, seen in ((0.0, 0.7, False), (0.0, 0.9, True), (0.9, 2.0, False)):
        sensor = CameraSensor(model, "down", near=near, far=far)
        sensor.update(model.state())
        assert np.isfinite(sensor.depth.numpy()).all() == seen


def test_colour_shows_the_shape_and_keeps_its_bytes(model):
    """Red, green, blue, alpha; the memory is that of the image of every update."""
    model.shape_color.assign(np.tile([0.0, 0.0, 1.0], (model.shape_count, 1)).astype(np.float32))
    sensor = CameraSensor(model, "side", outputs="color")
    image = sensor.color
    sensor.update(model.state())
    middle = image.numpy()[:, 6, 8].astype(int)
    assert (middle[:, 2] > middle[:, 0] + 60).all()
    assert (middle[:, 3] == 255).all()


def test_cameras_of_mjcf_see_what_mujoco_says(model):
    """Fixed, tracking and targeting cameras stand and look as in MuJoCo, after their bodies have moved."""
    xml = """<mujoco><worldbody><camera name="world" pos="2 1 3" xyaxes="0 1 0 -1 0 1"/>
    <camera name="aim" mode="targetbody" target="b" pos="3 3 2"/>
    <body name="a" pos="1 0 1"><freejoint/><geom size=".1"/>
    <camera name="on" pos=".1 .2 .3" euler="10 20 30" fovy="60"/>
    <camera name="track" mode="track" pos="0 -2 1" xyaxes="1 0 0 0 1 2"/></body>
    <body name="b" pos="0 1 1"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    reference = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(reference)
    builder = pv.ModelBuilder()
    builder.add_mjcf(xml)
    mine = builder.finalize("cpu")
    quat = np.array([0.5, 0.1, -0.3, 0.8])
    quat /= np.linalg.norm(quat)
    data.qpos[:7] = [0.3, -0.4, 1.5, quat[3], *quat[:3]]
    data.qpos[7:10] = [0.5, 0.6, 0.7]
    mujoco.mj_forward(reference, data)
    state = mine.state()
    poses = state.body_q.numpy().copy()
    poses[0] = [0.3, -0.4, 1.5, *quat]
    poses[1, :3] = [0.5, 0.6, 0.7]
    state.body_q.assign(poses)
    cameras = ModelCameras(mine)
    position, rotation = cameras.poses(state)
    for row, label in enumerate(cameras.label):
        camera = reference.camera(label.rsplit("/", 1)[-1]).id
        np.testing.assert_allclose(position[row], data.cam_xpos[camera], atol=2e-6, err_msg=label)
        np.testing.assert_allclose(
            rotation[row], data.cam_xmat[camera].reshape(3, 3), atol=2e-6, err_msg=label
        )
        assert cameras.fov[row] == pytest.approx(np.radians(reference.cam_fovy[camera]))
    assert len(cameras.label) == 4


def test_cameras_of_usd_stand_where_the_stage_says():
    """A camera below a body moves with it; its field of view follows from aperture and focal length."""
    pytest.importorskip("pxr")
    text = """#usda 1.0
    (metersPerUnit = 1
     upAxis = "Z")
    def Cube "box" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"])
    { double3 xformOp:translate = (1, 0, 2)
      uniform token[] xformOpOrder = ["xformOp:translate"]
      def Camera "eye" { float focalLength = 24
        float verticalAperture = 12
        float horizontalAperture = 24
        double3 xformOp:translate = (0, 0, 3)
        uniform token[] xformOpOrder = ["xformOp:translate"]
      }
    }"""
    builder = pv.ModelBuilder()
    builder.add_usd(text)
    cameras = ModelCameras(builder.finalize("cpu"))
    position, _ = cameras.poses(cameras.model.state())
    np.testing.assert_allclose(position, [[1.0, 0.0, 5.0]], atol=1e-6)
    assert cameras.label == ["/box/eye"]
    assert cameras.fov[0] == pytest.approx(2.0 * np.arctan(0.25))
    assert cameras.resolution.tolist() == [[128, 64]]


def test_height_scan_of_a_leaning_robot_looks_straight_down():
    """Heights of a slope are z = s x in the frame that turns with the body; it is no obstacle itself."""
    builder = pv.ModelBuilder()
    yaw, lean = 0.7, 0.4
    turn = wp.quat_from_axis_angle(wp.vec3(0, 0, 1), yaw) * wp.quat_from_axis_angle(wp.vec3(1, 0, 0), lean)
    body = builder.add_body(xform=((2.0, 1.0, 3.0), tuple(turn)), label="base")
    builder.add_shape_box(body, hx=2.0, hy=2.0, hz=0.2)
    slope = 0.2
    builder.add_shape_plane(plane=(-slope, 0.0, 1.0, 0.0))
    model = builder.finalize("cpu")
    rays = grid_pattern((0.4, 0.2), 0.1)
    sensor = RaySensor(model, rays, bodies="base", alignment=RayAlignment.YAW)
    sensor.update(model.state())
    x = 2.0 + np.cos(yaw) * rays[0][:, 0] - np.sin(yaw) * rays[0][:, 1]
    np.testing.assert_allclose(sensor.distance.numpy()[0], 3.0 - slope * x, atol=2e-6)
    np.testing.assert_allclose(sensor.point.numpy()[0][:, 2], slope * x, atol=2e-6)
    blind = RaySensor(
        model, rays, bodies="base", alignment=RayAlignment.YAW, visibility=RayVisibility.ALL, max_distance=9.0
    )
    blind.update(model.state())
    assert (blind.distance.numpy() < 0.5).all()
    assert set(blind.shape.numpy().reshape(-1)) == {0}


def test_lidar_in_a_room_measures_its_walls():
    """In a box seen from inside, distances are those to its planes; beyond the reach there is nothing."""
    builder = pv.ModelBuilder()
    builder.add_shape_box(-1, hx=4.0, hy=3.0, hz=2.0)
    body = builder.add_body(xform=(1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 1.0), label="lidar")
    builder.add_shape_sphere(body, radius=0.1)
    model = builder.finalize("cpu")
    rays = lidar_pattern(channels=3, columns=40)
    sensor = RaySensor(model, rays, bodies="lidar", max_distance=4.0)
    sensor.update(model.state())
    way = rays[1]
    with np.errstate(divide="ignore"):
        walls = (np.copysign([4.0, 3.0, 2.0], way) - [1.0, 0.5, 0.0]) / way
    expected = walls.min(axis=1)
    expected[expected > 4.0] = np.inf
    np.testing.assert_allclose(sensor.distance.numpy()[0], expected, atol=2e-6)
    assert np.isinf(expected).any()


def test_sensor_follows_a_simulation():
    """A sensor measures after every second step: what the state at that time says."""
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(xform=(0, 0, 2, 0, 0, 0, 1), label="ball"), radius=0.1)
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, pv.SolverSAP(model), dt=0.01, threads=1)
    sensor = RaySensor(model, grid_pattern((0, 0)), bodies="ball")
    sensor.follow(simulation, every=2)
    heights = []
    for _ in range(6):
        simulation.step()
        heights.append((float(sensor.distance.numpy()[0, 0]), float(simulation.state.body_q.numpy()[0, 2])))
    measured, true = np.array(heights).T
    np.testing.assert_allclose(measured[1::2], true[1::2], atol=1e-6)
    np.testing.assert_allclose(measured[2::2], true[1:-1:2], atol=1e-6)


def make_falling(count: int) -> pv.ModelBuilder:
    ball, builder = pv.ModelBuilder(), pv.ModelBuilder()
    body = ball.add_body(xform=(0, 0, 2, 0, 0, 0, 1), label="ball")
    ball.add_shape_sphere(body, radius=0.1)
    builder.replicate(ball, count)
    builder.add_ground_plane()
    return builder


@pytest.mark.parametrize("threads", [1, 2])
def test_a_sensor_sees_where_a_reset_put_worlds(threads):
    """After a reset of any kind, replayed too, its worlds are measured at once, and others are not."""
    with pv.Simulation(make_falling(3).finalize("cpu"), dt=0.01, threads=threads) as simulation:
        scan = RaySensor(simulation.model, grid_pattern((0, 0)), bodies="ball", threads=threads)
        pixels = CameraSensor(
            simulation.model,
            bodies="ball",
            width=1,
            height=1,
            xform=(0, 0, 0, 0, 0, 0, 1),
            geometry="collision",
        )
        scan.follow(simulation, every=4)
        pixels.follow(simulation, every=4)

        def seen() -> np.ndarray:
            return np.array([scan.distance.numpy()[:, 0], pixels.depth.numpy()[:, 0, 0]])

        def heights() -> np.ndarray:
            return simulation.state.body_q.numpy()[:, 2].copy()

        np.testing.assert_allclose(seen()[0], 2.0, atol=1e-6)
        for world in (0, 2, 0, 1):  # launched, then recorded, then replayed
            simulation.step(4)
            before, at_four = seen(), heights()
            np.testing.assert_allclose(before[0], at_four, atol=1e-6)
            simulation.step(2)
            simulation.reset([world])
            expected = at_four.copy()
            expected[world] = 2.0
            np.testing.assert_allclose(seen()[0], expected, atol=1e-6)
            simulation.step(2)
            np.testing.assert_allclose(seen()[0], heights(), atol=1e-6)
        snapshot = simulation.save()
        simulation.step(5)
        mask = wp.array([True, False, True], dtype=wp.bool, device="cpu")
        old = seen()
        simulation.reset(mask)
        np.testing.assert_allclose(seen()[0, [0, 2]], 2.0, atol=1e-6)
        np.testing.assert_array_equal(seen()[:, 1], old[:, 1])
        simulation.restore(snapshot)
        np.testing.assert_allclose(seen()[0], heights(), atol=1e-6)
        simulation.step(1)
        simulation.reset()
        np.testing.assert_allclose(seen()[0], 2.0, atol=1e-6)
        simulation.step(3)
        np.testing.assert_allclose(seen()[0], 2.0, atol=1e-6)
        simulation.step()
        np.testing.assert_allclose(seen()[0], heights(), atol=1e-6)
        assert heights()[0] < 2.0


def test_a_sensor_measures_in_a_forked_process():
    """The threads of a sensor are not in a process forked from its own, which makes others."""
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    model = make_falling(4).finalize("cpu")
    state = model.state()
    rays = grid_pattern((1.0, 1.0), 0.02)
    scan = RaySensor(model, rays, bodies="ball", threads=2)
    scan.update(state)
    assert scan._pool is not None
    expected = scan.distance.numpy().copy()
    scan.distance.zero_()

    def measure(results) -> None:
        scan.update(state)
        results.put(scan.distance.numpy().copy())

    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=measure, args=(results,), daemon=True)
    process.start()
    try:
        measured = results.get(timeout=30.0)
    finally:
        process.kill()
        process.join()
    np.testing.assert_array_equal(measured, expected)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda m: CameraSensor(m, "none"), KeyError, "no camera matches 'none'"),
        (lambda m: CameraSensor(m, "down", width=0), ValueError, "size is \\(0, 12\\)"),
        (lambda m: CameraSensor(m, "down", outputs=["colour"]), ValueError, "there are depth, distance"),
        (lambda m: CameraSensor(m, "down", outputs=[]), ValueError, "no output is asked for"),
        (lambda m: CameraSensor(m, "down", near=2.0, far=1.0), ValueError, "near is 2.0"),
        (lambda m: CameraSensor(m, "down", bodies="robot"), ValueError, "both given"),
        (lambda m: CameraSensor(m, bodies="arm"), KeyError, "no body matches 'arm'"),
        (lambda m: CameraSensor(m, "down").color, AttributeError, "color is not measured"),
        (lambda m: RaySensor(m, ([], []), bodies="robot"), ValueError, "one or more"),
        (lambda m: RaySensor(m, grid_pattern(), bodies="arm"), KeyError, "no body matches"),
        (lambda m: RaySensor(m, ([(0, 0, 0)], [(0, 0, 0)]), bodies="robot"), ValueError, "other than 0"),
        (lambda m: grid_pattern((1, 1), 0.0), ValueError, "resolution 0.0"),
        (lambda m: lidar_pattern(columns=0), ValueError, "columns is 0"),
        (lambda m: make_part(0.1).add_camera(7), IndexError, "7"),
        (lambda m: make_part(0.1).add_camera(0, fov=4.0), ValueError, "fov is 4.0"),
        (lambda m: make_part(0.1).add_camera(0, width=0), ValueError, "width is 0"),
        (lambda m: make_part(0.1).add_camera(0, mode=CameraMode.TARGET), ValueError, "needs a body"),
    ],
)
def test_wrong_sensors_are_refused(model, make, error, message):
    """Errors name what is wrong."""
    with pytest.raises(error, match=message):
        make(model)
