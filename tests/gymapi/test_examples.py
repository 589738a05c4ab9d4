"""The scripts run headless, and what they print agrees with the physics they show."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from pluriverse import gymapi

SCRIPTS = Path(__file__).resolve().parents[2] / "examples" / "gym"

# Script, words of its command line, and what its output must hold.
RUNS = [
    ("values", None, r"back Vec3\(1\.0+, -?0\.0+, 0\.0+\)"),
    ("mass_ratio", "--frames 60 --num_envs 1", r"cube 4: 0\.(89|9)"),
    ("balls", "--frames 20 --levels 3", r"equal to the last bit: True"),
    ("terrain", "--frames 60", r"balls below the ground: 0 of (1|2)\d"),
    ("terrain", "--frames 60 --heightfield", r"balls below the ground: 0 of (1|2)\d"),
    (
        "body_properties",
        "--frames 30",
        r"on at 3\.6[34] m/s\nhovering at 1\.000 m, fallen to 0\.10\d m\ncapsule slides at 1\.000 m/s",
    ),
    ("dof_controls", "--frames 120", r"cart at 1\.00. m, pole at 0\.78. rad\ncart at -0\.99. m"),
    ("forces", "--frames 20 --num_envs 2", r"all alike: True"),
    ("forces_at_points", "--frames 10 --num_envs 2", r"torso turns at -\d"),
    ("projectiles", "--frames 40", r"(torsos were pushed by \[[1-9].*)\n\1"),
    ("spherical_joint", "--frames 90", r"largest error 0\.00"),
    ("joint_sweep", "--frames 16", r"ankle_3: Rotation about Vec3\(0\.707107, 0\.707107, 0\.0+\)"),
    ("asset_info", None, r"body 9 'right_finger' at"),
    ("transforms", "--frames 60", r"drawer_handle \(body 4\) at Vec3\(0\.6(49|50)\d+, -?0\.0+, 0\.75"),
    ("attractor", "--frames 60 --num_envs 2", r"largest distance 0\.00"),
    ("osc", "--frames 60 --num_envs 2", r"largest distance 0\.0[0-3]"),
    ("pick_cube", "--frames 240 --num_envs 1", r"cubes lifted by \[0\.1"),
    ("nut_bolt", "--frames 115 --num_envs 1", r"by \[0\.1[5-9]\] turns\npitches a turn: \[(0\.9|1\.[01])"),
    ("scaling", "--frames 20", r"grown and built agree: True"),
    ("materials", "--frames 2", r"frames: 2"),
    ("convex_pieces", "--frames 60", r"bracket_hull: ball at 0\.03. m\nbracket_pieces: ball at 0\.06. m"),
    ("bin_picking", "--frames 60", r"10 of 10 things in the bin"),
    ("reset_loop", "--frames 40 --num_envs 2", r"all finite: True"),
    ("actor_objects", "--frames 90", r"'slider_to_cart': 0\.5.*\nbox at .* contact force 39\.2 N"),
]


@pytest.mark.parametrize(
    ("name", "words", "expected"), RUNS, ids=[f"{run[0]}-{n}" for n, run in enumerate(RUNS)]
)
@pytest.mark.filterwarnings("error::pluriverse.gymapi.GymWarning")
def test_script_runs_and_shows_its_physics(name, words, expected, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    try:
        importlib.import_module(name).main((words or "").split())
    finally:
        sys.modules.pop(name, None)
    output = capsys.readouterr().out
    assert re.search(expected, output), output


def test_franka_screws_a_nut_down(robot_assets, capsys, monkeypatch):
    """A robot with gripper, from elsewhere, does what the arm of the repository does."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    words = ["--frames", "230", "--num_envs", "1", "--franka", str(robot_assets / "franka_description")]
    try:
        importlib.import_module("nut_bolt").main(words)
    finally:
        sys.modules.pop("nut_bolt", None)
    output = capsys.readouterr().out
    # The play of the thread is a few hundredths of a pitch, so that it takes a third of a turn to tell.
    assert re.search(r"by \[0\.3[3-9]\] turns\npitches a turn: \[(0\.9|1\.[01])", output), output


def test_scripts_are_short_and_all_run():
    """Every script is run above, and shows one idea in under 100 lines."""
    scripts = {path.stem for path in SCRIPTS.glob("*.py")} - {"common"}
    assert scripts == {run[0] for run in RUNS}
    assert all(len(path.read_text().splitlines()) < 100 for path in SCRIPTS.glob("*.py"))


def test_viewer_closes_after_its_frames(gym, monkeypatch):
    """The budget comes from the call, the environment or the default, which a warning names."""
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, gymapi.SimParams())
    env = gym.create_env(sim, gymapi.Vec3(), gymapi.Vec3(), 1)
    gym.create_actor(env, gym.create_sphere(sim, 0.1), gymapi.Transform(), "ball", 0, 0)
    monkeypatch.setenv("PLURIVERSE_GYM_FRAMES", "3")
    viewer = gym.create_viewer(sim, gymapi.CameraProperties())
    gym.subscribe_viewer_keyboard_event(viewer, gymapi.KEY_SPACE, "jump")
    count = 0
    while not gym.query_viewer_has_closed(viewer):
        assert gym.query_viewer_action_events(viewer) == []
        gym.simulate(sim)
        gym.draw_viewer(viewer, sim, True)
        count += 1
    assert count == 3
    monkeypatch.delenv("PLURIVERSE_GYM_FRAMES")
    with pytest.warns(gymapi.GymWarning, match="closes after 600 frames"):
        gym.create_viewer(sim, gymapi.CameraProperties())
