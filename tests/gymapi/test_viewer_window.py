"""The window of a viewer without a browser: what it shows where, and what reaches the script."""

import socket
import threading
import time

import numpy as np
import pytest

from pluriverse import gymapi
from tests.viewer.waiting import wait_until

pytest.importorskip("viser", reason="the extra 'view' is not installed")


@pytest.fixture(params=[gymapi.UP_AXIS_Z, gymapi.UP_AXIS_Y], ids=["z up", "y up"])
def up(request):
    return request.param


def make_sim(gym, up=gymapi.UP_AXIS_Z, env_count=4):
    """Return a sim of balls at (0.5, 0.5, 0.5) of envs of side 2, without gravity."""
    params = gymapi.SimParams()
    params.up_axis, params.gravity = up, gymapi.Vec3(0.0, 0.0, 0.0)
    params.dt = 0.01
    params.physx.num_threads = 1
    sim = gym.create_sim(0, 0, gymapi.SIM_PHYSX, params)
    plane = gymapi.PlaneParams()
    plane.normal = gymapi.Vec3(0.0, 1.0, 0.0) if up == gymapi.UP_AXIS_Y else gymapi.Vec3(0.0, 0.0, 1.0)
    gym.add_ground(sim, plane)
    ball = gym.create_sphere(sim, 0.1)
    for index in range(env_count):
        env = gym.create_env(sim, gymapi.Vec3(-1.0, -1.0, -1.0), gymapi.Vec3(1.0, 1.0, 1.0), 2)
        gym.create_actor(env, ball, gymapi.Transform(gymapi.Vec3(0.5, 0.5, 0.5)), "ball", index, 0)
    return sim


@pytest.fixture
def shown(gym, up):
    """A sim and its viewer, with the window open."""
    sim = make_sim(gym, up)
    viewer = gym.create_viewer(sim, gymapi.CameraProperties(), window=True)
    gym.draw_viewer(viewer, sim)
    assert viewer.window is None  # nothing can be seen before the sim is prepared, and envs may still come
    gym.prepare_sim(sim)
    gym.draw_viewer(viewer, sim)
    yield sim, viewer
    gym.destroy_viewer(viewer)
    gym.destroy_sim(sim)


def drawn_points(viewer):
    """Return where the shapes on bodies are drawn [m], sorted."""
    points = [
        handle.batched_positions
        for each in viewer.window.stage.view._drawn
        for handle, _ in each.handles
        if (viewer.window.stage.view.visual.shape_body[each.shapes] >= 0).all()
    ]
    points = np.concatenate(points)
    return points[np.lexsort(points.T)]


def test_envs_stand_where_the_script_put_them(gym, shown):
    """A ball is drawn at the origin of its env plus its place in it, and follows what is written."""
    sim, viewer = shown
    origins = np.array([list(gym.get_env_origin(gym.get_env(sim, index))) for index in range(4)])
    expected = origins + 0.5
    assert len(np.unique(origins, axis=0)) == 4
    np.testing.assert_allclose(drawn_points(viewer), expected[np.lexsort(expected.T)], atol=1e-6)
    env = gym.get_env(sim, 1)
    states = gym.get_actor_rigid_body_states(env, 0, gymapi.STATE_ALL)
    states["pose"]["p"]["x"] = 0.25
    gym.set_actor_rigid_body_states(env, 0, states, gymapi.STATE_ALL)
    gym.draw_viewer(viewer, sim)  # without a step in between
    expected[1, 0] -= 0.25
    expected = expected[np.lexsort(expected.T)]
    wait_until(lambda: np.allclose(drawn_points(viewer), expected, atol=1e-6))


def test_the_ground_is_drawn_as_it_lies(shown, up):
    (ground,) = shown[1].window.stage.view._grids
    w, x, y, z = ground.wxyz
    normal = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
    np.testing.assert_allclose(normal, [0, 1, 0] if up == gymapi.UP_AXIS_Y else [0, 0, 1], atol=1e-6)


def test_colours_that_calls_set_are_drawn(gym, shown):
    sim, viewer = shown
    gym.set_rigid_body_color(gym.get_env(sim, 2), 0, 0, gymapi.MESH_VISUAL, gymapi.Vec3(1.0, 0.0, 0.0))

    def has_red():
        with viewer.window.changing() as stage:
            return any(
                colors is not None and (colors == [255, 0, 0]).all()
                for each in stage.view._drawn
                for _, colors in each.handles
            )

    wait_until(has_red)


def test_keys_and_clicks_reach_the_script(gym, shown):
    """A key goes down in one query and comes up in the next; one that repeats stays down."""
    viewer = shown[1]
    gym.subscribe_viewer_keyboard_event(viewer, gymapi.KEY_R, "reset")
    gym.subscribe_viewer_keyboard_event(viewer, gymapi.KEY_F5, "reload")  # browsers keep it: a button only
    gym.subscribe_viewer_mouse_event(viewer, gymapi.MOUSE_LEFT_BUTTON, "shoot")
    gym.subscribe_viewer_mouse_event(viewer, gymapi.MOUSE_SCROLL_UP, "zoom")
    commands = list(viewer.window.server.gui._command_handle_from_uuid.values())
    assert [(command.label, command.hotkey) for command in commands] == [("reset", "R")]
    assert gym.query_viewer_action_events(viewer) == []
    press = commands[0]._impl.trigger_cb[0]
    press(None)
    assert gym.query_viewer_action_events(viewer) == [("reset", 1.0)]
    press(None)
    (event,) = gym.query_viewer_action_events(viewer)
    assert (event.action, event.value) == ("reset", 1.0)
    assert gym.query_viewer_action_events(viewer) == [("reset", 0.0)]
    assert gym.query_viewer_action_events(viewer) == []
    with pytest.raises(ValueError, match=r"key is 4711, but must be one of gymapi\.KeyboardInput, such"):
        gym.subscribe_viewer_keyboard_event(viewer, 4711, "none")
    with pytest.raises(ValueError, match=r"event is 'left', but must be one of gymapi\.MouseInput"):
        gym.subscribe_viewer_mouse_event(viewer, "left", "none")


def test_lines_come_and_go(gym, shown):
    sim, viewer = shown
    env = gym.get_env(sim, 3)
    origin = np.array(list(gym.get_env_origin(env)))
    ends = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=np.float32)
    gym.add_lines(viewer, env, 1, ends, np.array([0.0, 1.0, 0.0], dtype=np.float32))

    def drawn():
        gym.draw_viewer(viewer, sim)
        return viewer.window._drawn_lines

    wait_until(lambda: drawn() is not None)
    np.testing.assert_allclose(drawn().points[0], origin + ends, atol=1e-6)
    assert drawn().colors[0].tolist() == [[0, 255, 0]] * 2
    gym.clear_lines(viewer)
    wait_until(lambda: drawn() is None)


def test_a_pull_acts_beside_the_forces_of_the_script(gym, shown):
    """The spring draws a ball towards its target, once a step however often it is drawn."""
    sim, viewer = shown
    window = viewer.window
    env = gym.get_env(sim, 1)
    body = int(sim.runtime.body_row.numpy().tolist().index(1))
    window.pull_body(body)
    window.pull.target = window.pull.position + np.array([0.3, 0.0, 0.0])
    start = window.pull.position
    for _ in range(200):
        gym.draw_viewer(viewer, sim)
        gym.draw_viewer(viewer, sim)
        gym.simulate(sim)
    np.testing.assert_allclose(window.pull.position - start, [0.3, 0.0, 0.0], atol=0.02)
    window.pull_body(None)
    others = [gym.get_actor_rigid_body_states(gym.get_env(sim, k), 0, gymapi.STATE_POS) for k in (0, 2, 3)]
    assert all(float(states["pose"]["p"]["x"][0]) == 0.5 for states in others)
    assert float(gym.get_actor_rigid_body_states(env, 0, gymapi.STATE_POS)["pose"]["p"]["x"][0]) > 0.75


def test_pause_holds_the_script_and_close_ends_it(gym):
    sim = make_sim(gym, env_count=1)
    viewer = gym.create_viewer(sim, gymapi.CameraProperties(), window=True)
    gym.prepare_sim(sim)
    gym.draw_viewer(viewer, sim)
    window = viewer.window

    def script():
        while not gym.query_viewer_has_closed(viewer):
            gym.simulate(sim)
            gym.draw_viewer(viewer, sim)
            gym.sync_frame_time(sim)

    thread = threading.Thread(target=script, daemon=True)
    thread.start()
    wait_until(lambda: sim.frame_count > 3)
    window.step_once()  # pauses
    wait_until(lambda: not window._requested_steps)
    count = sim.frame_count
    window.step_once()
    wait_until(lambda: not window._requested_steps and sim.frame_count > count)
    assert sim.frame_count <= count + 2  # one, and one that may have been under way
    window.ask_to_close()
    thread.join(300.0)
    assert not thread.is_alive()
    gym.destroy_sim(sim)  # without destroy_viewer, as many scripts do
    assert not window.is_running
    assert gym.query_viewer_has_closed(viewer)


def test_frames_keep_pace_with_the_clock_only_in_a_window(gym):
    """40 frames of 10 ms take 0.4 s at least at speed 1, half of that at speed 2."""
    sim = make_sim(gym, env_count=1)
    viewer = gym.create_viewer(sim, gymapi.CameraProperties(), window=True)
    gym.prepare_sim(sim)
    gym.draw_viewer(viewer, sim)
    for speed, least in ((1.0, 0.39), (2.0, 0.19)):
        viewer.window.speed = speed
        begin = (
            time.monotonic()
        )  # before the time from which the window counts, or a pause in between would lack
        gym.simulate(sim)
        gym.sync_frame_time(sim)
        for _ in range(40):
            gym.simulate(sim)
            gym.sync_frame_time(sim)
        assert time.monotonic() - begin > least
    gym.destroy_sim(sim)


def test_the_camera_goes_where_the_script_says(gym, shown):
    sim, viewer = shown
    env = gym.get_env(sim, 3)
    gym.viewer_camera_look_at(viewer, env, gymapi.Vec3(1.0, 2.0, 3.0), gymapi.Vec3(0.0, 0.5, 0.0))
    origin = np.array(list(gym.get_env_origin(env)))
    camera = viewer.window.server.initial_camera
    np.testing.assert_allclose(camera.position - origin, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(camera.look_at - origin, [0.0, 0.5, 0.0])
    pose = gym.get_viewer_camera_transform(viewer, env)
    np.testing.assert_allclose(list(pose.p), [1.0, 2.0, 3.0], atol=1e-6)


def test_the_environment_asks_for_a_window(gym, monkeypatch):
    sim = make_sim(gym, env_count=1)
    monkeypatch.delenv("PLURIVERSE_GYM_FRAMES", raising=False)
    monkeypatch.setenv("PLURIVERSE_GYM_VIEWER", "browser")
    viewer = gym.create_viewer(sim, gymapi.CameraProperties())  # without the warning of the frame budget
    assert viewer.frames is None
    monkeypatch.setenv("PLURIVERSE_GYM_VIEWER", "glfw")
    with pytest.raises(ValueError, match="PLURIVERSE_GYM_VIEWER is 'glfw', but must be 'browser'"):
        gym.create_viewer(sim, gymapi.CameraProperties())
    gym.prepare_sim(sim)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        viewer = gym.create_viewer(sim, gymapi.CameraProperties(), window=True, port=port)
        with pytest.raises(OSError, match=f"port {port} of 127.0.0.1 cannot be had"):
            gym.draw_viewer(viewer, sim)
    gym.destroy_sim(sim)
