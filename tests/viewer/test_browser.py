"""The viewer in a real browser, without a display: what a person would see and click."""

import io
import shutil
import threading
import time

import numpy as np
import pytest

import pluriverse as pv

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: chromium)")
# Software rendering on a shared core takes seconds a picture.
PATIENCE = 300.0
# Left of the panel and above the hint about software rendering there is nothing but the scene.
SCENE_BOX = {"x": 0, "y": 160, "width": 900, "height": 560}


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as run:
        browser = run.chromium.launch(
            executable_path=CHROMIUM,
            args=[
                "--no-sandbox",
                "--use-angle=swiftshader",
                "--enable-unsafe-swiftshader",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
            ],
        )
        yield browser
        browser.close()


def open_page(browser, viewer):
    page = browser.new_page(viewport={"width": 1240, "height": 760})
    page.set_default_timeout(1e3 * PATIENCE)
    page.troubles = []
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.on("console", lambda text: page.troubles.append(text.text) if text.type == "error" else None)
    page.goto(viewer.url)
    page.get_by_role("button", name="Step", exact=True).wait_for()
    return page


def picture(page, box=None) -> np.ndarray:
    from PIL import Image

    return np.asarray(
        Image.open(io.BytesIO(page.screenshot(clip=box or SCENE_BOX))).convert("RGB"),
        dtype=int,
    )


def settled_picture(page, shows=lambda seen: True) -> np.ndarray:
    """Return a picture once two in a row are equal and show something.

    A picture may come to rest before the browser has drawn what it was sent, so say what to wait for.
    """
    end = time.monotonic() + PATIENCE
    before = picture(page)
    while True:
        page.wait_for_timeout(700)
        now = picture(page)
        if differing(now, before) < 1e-4 and shows(now):
            return now
        assert time.monotonic() < end, "the picture never came to rest, or does not show it"
        before = now


def differing(first, second) -> float:
    """Return the part of the pixels that differ clearly."""
    return float((np.abs(first - second).max(axis=2) > 24).mean())


def of_colour(seen, channel) -> np.ndarray:
    """Return which pixels are clearly red (channel 0), green or blue."""
    others = np.delete(seen, channel, axis=2)
    return (seen[:, :, channel : channel + 1] - others > 60).all(axis=2)


def shows_red(seen) -> bool:
    return of_colour(seen, 0).sum() > 500


def until(page, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "the page did not do it in time"
        page.wait_for_timeout(100)


def test_a_person_sees_robots_and_the_buttons_work(browser):
    scene = pv.load_scene("mixed")
    with scene.simulation(threads=1) as simulation, pv.view(simulation, verbose=False) as viewer:
        viewer.is_playing = False
        runner = threading.Thread(target=viewer.run, daemon=True)
        runner.start()
        page = open_page(browser, viewer)

        def picture_with(robots: bool):
            with viewer.changing() as stage:
                for handle in stage.view.handles:
                    handle.visible = robots
            return settled_picture(page)

        # The robots fill a hundredth of the picture at least, once the browser has drawn them.
        until(page, lambda: differing(picture_with(robots=True), picture_with(robots=False)) > 0.01)
        picture_with(robots=True)
        page.get_by_role("button", name="Step", exact=True).click()
        until(page, lambda: simulation.step_count == 1)
        page.get_by_role("button", name="Play", exact=True).click()
        until(page, lambda: simulation.step_count > 30)
        page.get_by_role("button", name="Pause", exact=True).click()
        until(page, lambda: not viewer.is_playing)
        before = settled_picture(page)
        page.get_by_label("Bounding boxes").check(force=True)
        until(page, lambda: bool(viewer.stage.overlays.shown))
        until(page, lambda: differing(before, picture(page)) > 0.001)
        page.get_by_role("button", name="Reset", exact=True).click()
        until(page, lambda: simulation.step_count == 0)
        assert page.troubles == []
        page.close()
        simulation.step(1)  # a client that has gone takes nothing along


def test_a_person_sees_a_world_change_its_variant(browser):
    from pluriverse.variants import SceneCfg, VariantEntityCfg, make_scene

    def thing(add):
        builder = pv.ModelBuilder()
        add(builder, builder.add_body(xform=(0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0)))
        return builder

    variants = {
        "ball": thing(lambda builder, body: builder.add_shape_sphere(body, radius=0.5)),
        "plate": thing(lambda builder, body: builder.add_shape_box(body, hx=0.6, hy=0.6, hz=0.02)),
    }
    scene = make_scene(
        SceneCfg(
            num_envs=1,
            entities={"thing": VariantEntityCfg(variants=variants, assignment=lambda count: [0] * count)},
            reassignable=True,
        )
    )
    with scene.simulation(dt=0.005, threads=1) as simulation, pv.view(simulation, verbose=False) as viewer:
        page = open_page(browser, viewer)
        before = settled_picture(page)
        simulation.reassign(variants={"thing": [1]})
        simulation.reset()
        until(page, lambda: differing(before, picture(page)) > 0.01)
        assert page.troubles == []
        page.close()


def test_a_person_scrubs_through_a_recording_and_plays_its_page(browser, tmp_path):
    """The slider shows other frames; the exported page moves by itself, without a network."""
    from pluriverse.recording import RecordedRun
    from pluriverse.viewer import export_html

    builder = pv.ModelBuilder()
    body = builder.add_body(xform=(0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_box(body, hx=0.4, hy=0.4, hz=0.4, color=(0.9, 0.2, 0.1))
    builder.add_ground_plane()
    path = tmp_path / "run.pvr"
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1)
    with simulation.record(path, fps=20):
        simulation.step(80)
    with pv.view(path, verbose=False) as viewer:
        viewer.is_playing = False
        viewer.frame = 0
        page = open_page(browser, viewer)
        high = settled_picture(page, shows_red)
        page.get_by_role("button", name="Step", exact=True).click()
        until(page, lambda: viewer.frame == 1)
        slider = page.get_by_role("slider").first
        slider.focus()
        slider.press("End")
        until(page, lambda: viewer.frame == viewer.recording.frame_count - 1)
        until(page, lambda: differing(high, picture(page)) > 0.005)
        assert page.troubles == []
        page.close()
    with RecordedRun(path) as recording:
        export_html(recording, tmp_path / "run.html")
    page = browser.new_page(viewport={"width": 480, "height": 480})
    page.set_default_timeout(1e3 * PATIENCE)
    page.troubles = []
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.route("http*://**", lambda route: route.abort())
    page.goto((tmp_path / "run.html").as_uri())
    page.locator("canvas").first.wait_for()
    box = {"x": 0, "y": 150, "width": 480, "height": 200}
    seen = []

    def has_moved():
        seen.append(picture(page, box))
        return differing(seen[0], seen[-1]) > 0.005

    until(page, has_moved)
    assert page.troubles == []
    page.close()


def test_a_person_pulls_a_body_with_the_mouse(browser):
    """Ctrl and a drag upwards lift a ball that floats; letting go ends the force."""
    builder = pv.ModelBuilder()
    body = builder.add_body(xform=(0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_sphere(body, radius=0.3, color=(0.9, 0.2, 0.1))
    model = builder.finalize("cpu")
    model.set_gravity(0.0)
    with pv.Simulation(model, dt=0.01, threads=1) as simulation, pv.view(simulation, verbose=False) as viewer:
        runner = threading.Thread(target=viewer.run, daemon=True)
        runner.start()
        page = open_page(browser, viewer)
        rows, columns = np.nonzero(of_colour(settled_picture(page, shows_red), 0))
        x, y = SCENE_BOX["x"] + columns.mean(), SCENE_BOX["y"] + rows.mean()
        page.keyboard.down("Control")
        page.mouse.move(x, y)
        page.mouse.down()
        for step in range(1, 9):
            page.mouse.move(x, y - 15 * step)
            page.wait_for_timeout(100)
        until(page, lambda: viewer.pull is not None and viewer.pull.target is not None)
        until(page, lambda: viewer.pull.target[2] > 1.1)  # the last of the moves
        until(page, lambda: simulation.state.body_q.numpy()[0, 2] > 1.02)
        page.mouse.up()
        page.keyboard.up("Control")
        until(page, lambda: viewer.pull is None)
        assert not simulation.state.body_f.numpy().any()
        # Viser's page says this of its own way to stop the browser from zooming.
        assert [text for text in page.troubles if "preventDefault" not in text] == []
        page.close()


def test_a_browser_that_goes_away_while_it_pulls_lets_go(browser):
    """Nothing of a client stays behind: the force ends, time goes on, and the next client sees the same."""
    builder = pv.ModelBuilder()
    body = builder.add_body(xform=(0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_sphere(body, radius=0.3, color=(0.9, 0.2, 0.1))
    model = builder.finalize("cpu")
    model.set_gravity(0.0)
    with pv.Simulation(model, dt=0.01, threads=1) as simulation, pv.view(simulation, verbose=False) as viewer:
        runner = threading.Thread(target=viewer.run, daemon=True)
        runner.start()
        page = open_page(browser, viewer)
        rows, columns = np.nonzero(of_colour(settled_picture(page, shows_red), 0))
        x, y = SCENE_BOX["x"] + columns.mean(), SCENE_BOX["y"] + rows.mean()
        page.keyboard.down("Control")
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x, y - 60, steps=4)
        until(page, lambda: viewer.pull is not None and viewer.pull.target is not None)
        other = open_page(browser, viewer)
        page.close()
        until(other, lambda: viewer.pull is None)
        until(other, lambda: not simulation.state.body_f.numpy().any())  # by the next step
        count = simulation.step_count
        until(other, lambda: simulation.step_count > count + 10)
        assert other.troubles == []
        other.close()
        until_closed = time.monotonic() + PATIENCE
        while viewer.server.get_clients():
            assert time.monotonic() < until_closed
            time.sleep(0.05)
        assert viewer.is_running


def test_a_script_of_the_actor_api_is_seen_and_hears_keys(browser):
    """Its envs and lines are seen from where it looks; keys and clicks reach it; Close ends it."""
    from pluriverse import gymapi

    gym = gymapi.acquire_gym()
    params = gymapi.SimParams()
    params.up_axis, params.gravity = gymapi.UP_AXIS_Z, gymapi.Vec3(0.0, 0.0, 0.0)
    sim = gym.create_sim(0, 0, gymapi.SIM_PHYSX, params)
    viewer = gym.create_viewer(sim, gymapi.CameraProperties(), window=True)
    env = gym.create_env(sim, gymapi.Vec3(-1.0, -1.0, -1.0), gymapi.Vec3(1.0, 1.0, 1.0), 1)
    ball = gym.create_sphere(sim, 0.3)
    actor = gym.create_actor(env, ball, gymapi.Transform(gymapi.Vec3(0.0, 0.0, 1.0)), "ball", 0, 0)
    gym.set_rigid_body_color(env, actor, 0, gymapi.MESH_VISUAL, gymapi.Vec3(0.9, 0.1, 0.1))
    gym.viewer_camera_look_at(viewer, env, gymapi.Vec3(2.0, 0.0, 1.0), gymapi.Vec3(0.0, 0.0, 1.0))
    gym.subscribe_viewer_keyboard_event(viewer, gymapi.KEY_R, "reset")
    gym.subscribe_viewer_mouse_event(viewer, gymapi.MOUSE_LEFT_BUTTON, "shoot")
    line = np.array([[0.0, -0.6, 0.5], [0.0, -0.6, 1.5]], dtype=np.float32)
    gym.add_lines(viewer, env, 1, line, np.array([0.0, 0.0, 1.0], dtype=np.float32))
    gym.prepare_sim(sim)
    gym.draw_viewer(viewer, sim)
    heard = []

    def script():
        while not gym.query_viewer_has_closed(viewer):
            gym.simulate(sim)
            heard.extend(gym.query_viewer_action_events(viewer))
            gym.draw_viewer(viewer, sim)
            gym.sync_frame_time(sim)

    runner = threading.Thread(target=script, daemon=True)
    runner.start()
    page = open_page(browser, viewer.window)
    seen = settled_picture(page, lambda seen: shows_red(seen) and of_colour(seen, 2)[:, :800].sum() > 50)
    blue = of_colour(seen, 2)
    rows, columns = np.nonzero(of_colour(seen, 0))
    # It looks along -x, at the middle of the window: y is to the right, and the line to the left of the ball.
    assert abs(columns.mean() - 620.0) < 25.0
    assert abs(rows.mean() + SCENE_BOX["y"] - 380.0) < 25.0
    assert np.nonzero(blue[:, :800])[1].max() < columns.min()  # right of that is the panel
    page.keyboard.press("r")
    until(page, lambda: ("reset", 1.0) in heard and ("reset", 0.0) in heard)
    page.mouse.click(310, 570)
    until(page, lambda: ("shoot", 1.0) in heard)
    np.testing.assert_allclose(gym.get_viewer_mouse_position(viewer), (0.25, 0.75), atol=0.01)
    assert gym.get_viewer_size(viewer) == (1240, 760)
    page.get_by_role("button", name="Close", exact=True).click()
    until(page, lambda: not runner.is_alive())
    assert page.troubles == []
    page.close()
    gym.destroy_sim(sim)
