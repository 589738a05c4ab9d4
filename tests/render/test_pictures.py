"""Pictures and video: what is where in them, files, and wrong arguments."""

import numpy as np
import pytest
from PIL import Image

import pluriverse as pv
from pluriverse.render import Camera, PictureRenderer, PictureStyle

FLAT = PictureStyle(shadows=False, ambient_occlusion=False, grid=False)


def make_model() -> pv.Model:
    """Two worlds: a red ball, a green box; the ground is shared."""
    ball, box = pv.ModelBuilder(), pv.ModelBuilder()
    ball.add_shape_sphere(ball.add_body(xform=(0, 0, 0.5, 0, 0, 0, 1)), radius=0.5, color=(1.0, 0.0, 0.0))
    box.add_shape_box(box.add_body(xform=(0, 0, 0.5, 0, 0, 0, 1)), color=(0.0, 1.0, 0.0))
    builder = pv.ModelBuilder()
    builder.add_world(ball)
    builder.add_world(box)
    builder.add_ground_plane()
    return builder.finalize("cpu")


@pytest.fixture(scope="module")
def model() -> pv.Model:
    return make_model()


def red(picture: np.ndarray) -> np.ndarray:
    """Return which pixels are red."""
    return (picture[:, :, 0] > 2.0 * picture[:, :, 1].astype(float)) & (picture[:, :, 0] > 60)


def green(picture: np.ndarray) -> np.ndarray:
    """Return which pixels are green."""
    return (picture[:, :, 1] > 2.0 * picture[:, :, 0].astype(float)) & (picture[:, :, 1] > 60)


def test_a_ball_covers_the_solid_angle_that_it_has(model):
    """Seen from a distance d, a ball of radius r is a disc of tan(asin(r / d)) in the picture."""
    camera = Camera((4.0, 0.0, 0.5), (0.0, 0.0, 0.5), fov=np.radians(30.0))
    picture = pv.draw(model, camera=camera, size=(200, 200), samples=1, style=FLAT)
    radius = np.tan(np.arcsin(0.5 / 4.0)) / np.tan(np.radians(15.0)) * 100.0
    # Pixels along the rim are in or out: of order the square root of its length.
    assert red(picture).sum() == pytest.approx(np.pi * radius**2, abs=4.0 * np.sqrt(2.0 * np.pi * radius))
    rows, columns = np.nonzero(red(picture))
    np.testing.assert_allclose([rows.mean(), columns.mean()], 99.5, atol=0.5)


def test_each_world_shows_only_itself_and_both_stand_side_by_side(model):
    """World 0 has no green, world 1 no red; together they stand beside each other."""
    one, other = (pv.draw(model, worlds=world, size=(80, 60), samples=1) for world in (0, 1))
    assert red(one).any()
    assert not green(one).any()
    assert green(other).any()
    assert not red(other).any()
    both = pv.draw(model, worlds=[0, 1], size=(160, 100), samples=1, azimuth=-np.pi / 2)
    assert np.nonzero(red(both))[1].max() < np.nonzero(green(both))[1].min()


def test_shadow_lies_opposite_to_the_sun(model):
    """The ground behind the ball is darker than in front of it, by the sun's share; not without shadows."""
    camera = Camera((0.0, 0.0, 6.0), (0.0, 0.0, 0.0), up=(0.0, 1.0, 0.0), fov=np.radians(60.0))
    brightness = {}
    for shadows in (True, False):
        style = PictureStyle(
            sun_direction=(1.0, 0.0, 1.0), shadows=shadows, ambient_occlusion=False, grid=False
        )
        picture = pv.draw(model, camera=camera, size=(120, 120), samples=4, style=style).astype(float)
        # A point 1 m from the middle is 60 / (6 tan 30°) = 17 pixels away from it.
        brightness[shadows] = picture[60, 60 - 17].mean(), picture[60, 60 + 17].mean()
    assert brightness[True][0] < 0.8 * brightness[True][1]
    assert brightness[False][0] == pytest.approx(brightness[False][1], abs=3.0)


def test_texture_of_a_plane_repeats_by_the_metre():
    """A checker of black and white on a plane: squares where they belong."""
    checker = pv.Texture(np.kron([[0, 255], [255, 0]], np.ones((8, 8))).astype(np.uint8))
    builder = pv.ModelBuilder()
    plane = builder.add_ground_plane(color=(1.0, 1.0, 1.0))
    builder.set_appearance(plane, pv.Appearance(texture=checker, texture_is_uniform=True, specular=0.0))
    camera = Camera((0.0, 0.0, 10.0), (0.0, 0.0, 0.0), up=(0.0, 1.0, 0.0), fov=2.0 * np.arctan(0.2))
    style = PictureStyle(shadows=False, ambient_occlusion=False)
    picture = pv.draw(builder.finalize("cpu"), camera=camera, size=(80, 80), samples=1, style=style)
    x = (np.arange(80) + 0.5) / 20.0 - 2.0  # 4 m wide
    for row, y in ((5, -x[5]), (27, -x[27])):
        lower, left = (y % 1.0) < 0.5, (x % 1.0) < 0.5
        clear = np.abs(x * 2.0 - np.round(x * 2.0)) > 0.2  # away from edges, which are blended
        # The lower left square of the image is its second row, first column: white.
        np.testing.assert_array_equal((picture[row, :, 0] > 128)[clear], (lower == left)[clear])


def test_what_is_transparent_shows_what_is_behind():
    """Through a pane of a quarter's opacity the ball is still red; behind an opaque one it is not."""
    results = []
    for alpha in (0.25, 1.0):
        builder = pv.ModelBuilder()
        builder.add_shape_sphere(-1, radius=0.4, color=(1.0, 0.0, 0.0))
        pane = builder.add_shape_box(-1, xform=(1, 0, 0, 0, 0, 0, 1), hx=0.01, color=(0.0, 0.0, 0.0))
        builder.set_appearance(pane, pv.Appearance(alpha=alpha, specular=0.0))
        camera = Camera((5.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        picture = pv.draw(builder.finalize("cpu"), camera=camera, size=(41, 41), samples=1, style=FLAT)
        results.append(bool(red(picture)[20, 20]))
    assert results == [True, False]


def test_picture_is_written(tmp_path, model):
    """The file holds the pixels that are returned."""
    picture = pv.draw(model, path=tmp_path / "a.png", size=(40, 30), samples=2)
    assert picture.shape == (30, 40, 3)
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "a.png")), picture)


def test_recorder_takes_a_frame_whenever_its_time_has_come(tmp_path, model):
    """A second at 20 frames per second is 21 frames, however it is stepped; the ball falls in the video."""
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(xform=(0, 0, 6, 0, 0, 0, 1)), radius=0.5, color=(1, 0, 0))
    falling = builder.finalize("cpu")
    frames = []
    for counts in ([200], [1] * 200, [7] * 28 + [4]):
        simulation = pv.Simulation(falling, pv.SolverSAP(falling), dt=0.005, threads=1)
        with simulation.recorder(fps=20) as recorder:
            for count in counts:
                simulation.step(count)
        simulation.step(50)  # no longer recorded
        frames.append([poses[0, 2] for poses, _ in recorder._frames])
    assert len(frames[0]) == 21
    np.testing.assert_array_equal(frames[0], frames[1])
    np.testing.assert_array_equal(frames[0], frames[2])
    step = np.arange(21) * 10  # each moves by the velocity at its end
    np.testing.assert_allclose(frames[0], 6.0 - 0.5 * 9.81 * 0.005**2 * step * (step + 1), atol=5e-5)
    camera = Camera((12.0, 0.0, 3.5), (0.0, 0.0, 3.5), fov=np.radians(40.0))
    path = recorder.save(tmp_path / "a.gif", size=(60, 60), samples=1, camera=camera)
    with Image.open(path) as video:
        assert video.n_frames == 21
        heights = []
        for frame in (0, 20):
            video.seek(frame)
            heights.append(np.nonzero(red(np.asarray(video.convert("RGB"))))[0].mean())
    # 4.9 m of the 8.7 m that 60 rows see; rows count downwards.
    assert heights[1] - heights[0] == pytest.approx(60 * 4.93 / (2 * 12 * np.tan(np.radians(20))), abs=1.5)


def test_video_is_written(tmp_path, model):
    """The file holds as many frames as were recorded, of the asked size, made even."""
    av = pytest.importorskip("av")
    simulation = pv.Simulation(model, pv.SolverSAP(model), dt=0.01, threads=1)
    with simulation.recorder(worlds=[0], fps=25) as recorder:
        simulation.step(12)
    recorder.save(tmp_path / "a.mp4", size=(65, 48), samples=1)
    with av.open(str(tmp_path / "a.mp4")) as container:
        frames = list(container.decode(video=0))
    assert len(frames) == recorder.frame_count == 4
    assert (frames[0].width, frames[0].height) == (64, 48)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"worlds": [5]}, IndexError, "world 5 does not exist; the model has worlds 0 to 1"),
        ({"worlds": []}, ValueError, "list of worlds is empty"),
        ({"worlds": [1.5]}, TypeError, "whole numbers"),
        ({"spacing": np.nan}, ValueError, "spacing is nan"),
        ({"size": (0, 30)}, ValueError, "size is \\(0, 30\\)"),
        ({"size": (40.5, 30)}, ValueError, "size is"),
        ({"samples": 0}, ValueError, "samples is 0"),
        ({"camera": 3}, TypeError, "camera is 3"),
        ({"camera": ((0, 0, 1), (0, 0, 1))}, ValueError, "looks nowhere"),
        ({"camera": "none"}, KeyError, "no camera 'none'"),
        ({"path": "a.xyz", "size": (4, 4), "samples": 1}, ValueError, "no format of pictures"),
    ],
)
def test_wrong_pictures_are_refused(model, options, error, message):
    """Errors name what is wrong and what is right."""
    with pytest.raises(error, match=message):
        pv.draw(model, **options)


def test_wrong_videos_are_refused(tmp_path, model):
    """No frames, no format, no folder, no such world, no rate."""
    simulation = pv.Simulation(model, pv.SolverSAP(model), dt=0.01, threads=1)
    recorder = simulation.recorder()
    with pytest.raises(ValueError, match="there are no frames"):
        recorder.save(tmp_path / "a.gif")
    with pytest.raises(ValueError, match="no format of videos"):
        recorder.save(tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        recorder.save(tmp_path / "none" / "a.gif")
    with pytest.raises(IndexError, match="world 9 does not exist"):
        simulation.recorder(worlds=[9])
    with pytest.raises(ValueError, match="fps is 0"):
        simulation.recorder(fps=0)
    with pytest.raises(TypeError, match="Call finalize"):
        pv.draw(pv.ModelBuilder())


def test_no_floor_is_drawn_through_terrain_that_worlds_share():
    """Hills below the robots of worlds are their ground; a robot without any stands on a floor."""
    robot = pv.ModelBuilder()
    robot.add_shape_sphere(robot.add_body(xform=(0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)), radius=0.2)
    builder = pv.ModelBuilder()
    builder.replicate(robot, 2)
    x, y = np.meshgrid(np.linspace(0.0, 12.0, 24), np.linspace(0.0, 12.0, 24))
    hills = pv.Heightfield(0.2 * np.sin(x) * np.sin(y), 24, 24, 3.0, 3.0)
    builder.add_shape_heightfield(heightfield=hills, color=(1.0, 0.0, 0.0))
    model = builder.finalize("cpu")
    assert PictureRenderer(model).layout(model.state(), [0, 1]).floor is None
    alone = robot.finalize("cpu")
    assert PictureRenderer(alone).layout(alone.state(), [0]).floor is not None


@pytest.mark.parametrize("up_axis", ["x", "y"])
def test_pictures_are_the_same_whatever_axis_points_up(up_axis):
    """Floor, sun, sky, camera and places of worlds turn with the scene: few pixels differ, by rounding.

    What is drawn by chance, soft shadows and occlusion, has other directions then, and is left out.
    """
    style = PictureStyle(shadows=False, ambient_occlusion=False)
    pictures = []
    for axis in ("z", up_axis):
        robot = pv.ModelBuilder(up_axis=axis)
        # A cyclic exchange of axes is a rotation.
        place, size = (np.roll(v, int(robot.up_axis) + 1) for v in ((0.1, 0.2, 0.3), (0.2, 0.1, 0.3)))
        body = robot.add_body(xform=(place, (0.0, 0.0, 0.0, 1.0)))
        robot.add_shape_box(body, hx=size[0], hy=size[1], hz=size[2])
        builder = pv.ModelBuilder(up_axis=axis)
        builder.replicate(robot, 3)
        model = builder.finalize("cpu")
        simulation = pv.Simulation(model, dt=0.01)
        pictures.append(
            pv.draw(simulation, worlds=[0, 1, 2], size=(96, 64), samples=4, style=style).astype(int)
        )
    difference = np.abs(pictures[0] - pictures[1])
    assert pictures[0].std() > 10.0
    assert (difference <= 2).mean() > 0.98
