"""The `pluriverse` command: what it prints, writes and returns."""

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from pluriverse.cli.app import app
from pluriverse.scene import bundled_scenes

runner = CliRunner()

BALL = """
simulation: {dt: 0.01, max_rigid_contact: 4}
bodies: [{id: ball, transform: {p: [0, 0, 1]}, shapes: [{type: sphere, radius: 0.1}]}]
joints: [{id: free, type: free, child: ball}]
"""


@pytest.fixture
def ball(tmp_path):
    path = tmp_path / "ball.yaml"
    path.write_text(BALL, encoding="utf-8")
    return str(path)


def invoke(*arguments):
    """Run the command with a wide terminal, so that tables and paths are not wrapped."""
    return runner.invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "300"})


def rows(output):
    """Return the rows of a table of two columns."""
    cells = [line.strip("│ ").split("│") for line in output.splitlines() if line.startswith("│")]
    return {row[0].strip(): row[1].strip() for row in cells if len(row) == 2}


def test_run_ends_with_a_summary(ball):
    result = invoke("run", ball, "--duration", 0.5, "--worlds", 3, "--threads", 2, "--device", "cpu")
    assert result.exit_code == 0, result.output
    table = rows(result.stdout)
    assert table["Worlds"] == "3"
    assert table["Device"] == "cpu, 2 threads"
    assert table["Steps"] == "50 of 0.01 s"
    assert float(table["World-steps per second"].replace(",", "")) > 0.0
    assert table["Frozen worlds"] == table["Truncated world-steps"] == table["Unconverged world-steps"] == "0"


def test_run_with_mujoco(ball):
    """The same scene runs in MuJoCo, by name; another name is a wrong command line."""
    result = invoke("run", ball, "--duration", 0.2, "--worlds", 2, "--solver", "mujoco", "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert rows(result.stdout)["Frozen worlds"] == "0"
    assert invoke("run", ball, "--solver", "euler").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        (["--frames", 7], "7 of 0.01 s"),
        (["--duration", 0.055], "6 of 0.01 s"),  # a duration is rounded up to whole steps
        (["--duration", 0.3], "30 of 0.01 s"),  # although 0.3 / 0.01 is a little above 30
        (["--frames", 4, "--dt", 0.001], "4 of 0.001 s"),
        (["--duration", 0.0001], "1 of 0.01 s"),
    ],
)
def test_frames_duration_and_dt(ball, arguments, steps):
    assert rows(invoke("run", ball, *arguments).stdout)["Steps"] == steps


def test_record_holds_the_trajectory(ball, tmp_path):
    """A ball in free fall: the recorded height is that of semi-implicit Euler, h - g dt² n (n + 1) / 2."""
    path = tmp_path / "out.npz"
    result = invoke("run", ball, "--frames", 20, "--worlds", 2, "--record", path)
    assert result.exit_code == 0, result.output
    assert f"recorded 20 steps of 2 worlds in {path}" in result.stdout
    record = np.load(path)
    step = np.arange(21)
    np.testing.assert_allclose(record["time"], 0.01 * step, rtol=1e-12)
    assert record["joint_q"].shape == (21, 14)
    assert record["joint_qd"].shape == (21, 12)
    assert record["body_q"].shape == (21, 2, 7)
    assert record["contact_count"].shape == (20, 2)
    np.testing.assert_allclose(record["joint_qd"][:, 2], -9.81 * 0.01 * step, rtol=1e-5)
    # 20 additions of float32 numbers below 1 m round by 2**-24 m each.
    heights = record["body_q"][:, :, 2]
    euler = 1.0 - 0.5 * 9.81 * 0.01**2 * step * (step + 1)
    np.testing.assert_allclose(heights, np.stack([euler] * 2, axis=1), rtol=0, atol=20 * 2.0**-24)
    assert record["body_world_start"].tolist() == [0, 1, 2, 2]
    assert record["joint_dof_world_start"].tolist() == [0, 6, 12, 12]
    assert record["body_label"].tolist() == ["ball", "ball"]
    assert record["kind_of_world"].tolist() == [0, 0]
    assert float(record["dt"]) == 0.01


def test_plot_draws_a_picture_of_each_kind(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "out.png"
    result = invoke("run", "mixed", "--frames", 5, "--plot", path)
    assert result.exit_code == 0, result.output
    assert "drew quadruped, quadruped_on_the_moon, humanoid, arm, pile" in result.stdout
    assert path.read_bytes().startswith(b"\x89PNG")


def test_picture_and_video_show_a_world_of_each_kind(tmp_path, ball):
    picture, video = tmp_path / "out.png", tmp_path / "out.gif"
    result = invoke("run", ball, "--frames", 8, "--picture", picture, "--video", video, "--size", "48x32")
    assert result.exit_code == 0, result.output
    with Image.open(picture) as image:
        assert image.size == (48, 32)
    with Image.open(video) as film:
        assert film.size == (48, 32)
        assert film.n_frames == 3  # 0.08 s at 30 frames per second, and the first
    assert "3 frames" in result.stdout


def test_truncation_is_reported_and_stops_a_strict_run(tmp_path):
    """A box on the ground has four contacts; with room for two, the run says so, and a strict one fails."""
    path = tmp_path / "box.yaml"
    path.write_text(
        "simulation: {dt: 0.01, max_rigid_contact: 2}\n"
        "bodies: [{id: box, transform: {p: [0, 0, 0.5]}, shapes: [{}]}]\n"
        "joints: [{id: free, type: free, child: box}]\n"
    )
    result = invoke("run", path, "--frames", 20)
    assert result.exit_code == 0
    assert int(rows(result.stdout)["Truncated world-steps"]) > 0
    assert "warning: world 0:" in result.stdout
    strict = invoke("run", path, "--frames", 20, "--strict")
    assert strict.exit_code == 3
    assert "The simulation stopped" in strict.stderr
    assert "world 0" in strict.stderr


def test_a_frozen_world_is_reported_and_sets_the_exit_code(tmp_path):
    """A body thrown at 1e38 m/s leaves the range of numbers in one world; the exit code tells."""
    path = tmp_path / "fast.yaml"
    path.write_text(
        "bodies: [{id: a, shapes: [{}]}]\n"
        "joints: [{id: free, type: free, child: a}]\n"
        "ground: false\n"
        "builder: {gravity: -1.0e+38}\n"
        "simulation: {dt: 10}\n"
    )
    result = invoke("run", path, "--frames", 20)
    assert result.exit_code == 3, result.output
    assert rows(result.stdout)["Frozen worlds"].startswith("1")


WRONG = {
    "missing file": (["run", "none.yaml"], 1, "there is no such scene file"),
    "unknown bundled scene": (["run", "quadrupet"], 1, "did you mean quadruped?"),
    "time step": (["run", "BALL", "--dt", -1], 1, "--dt is -1.0"),
    "duration": (["run", "BALL", "--duration", 0], 1, "--duration is 0.0"),
    "two durations": (
        ["run", "BALL", "--frames", 5, "--duration", 1],
        1,
        "--frames is 5 and --duration is 1, but each says",
    ),
    "device": (["run", "BALL", "--device", "cuda:99"], 1, "--device is 'cuda:99', but this machine has cpu"),
    "record to nowhere": (["run", "BALL", "--record", "/none/a.npz"], 1, "there is no folder '/none'"),
    "record too much": (
        ["run", "BALL", "--worlds", 9, "--frames", 10**8, "--record", "a.npz"],
        1,
        "more than 8 GiB",
    ),
    "plot of no kind": (["run", "BALL", "--plot", "a.doc"], 1, "is no picture"),
    "picture of no kind": (["run", "BALL", "--picture", "a.doc"], 1, "is no picture"),
    "video of no kind": (["run", "BALL", "--video", "a.doc"], 1, "no format of videos"),
    "video to nowhere": (["run", "BALL", "--video", "/none/a.gif"], 1, "the folder '/none' does not exist"),
    "no size": (["run", "BALL", "--picture", "a.png", "--size", "0x9"], 1, "--size is '0x9'"),
    "plot to nowhere": (["run", "BALL", "--plot", "/none/a.png"], 1, "there is no folder '/none'"),
    "world counts": (["bench", "BALL", "--worlds", "1,many"], 1, "list of numbers such as 1,64,1024"),
    "world count of zero": (["bench", "BALL", "--worlds", "0"], 1, "at least 1"),
    "too few worlds": (["run", "mixed", "--worlds", 2], 1, "2 worlds cannot hold 5 kinds"),
    "no worlds": (["run", "BALL", "--worlds", 0], 2, "--worlds"),
    "no frames": (["run", "BALL", "--frames", 0], 2, "--frames"),
    "unknown option": (["run", "BALL", "--fast"], 2, "No such option"),
    "no scene": (["run"], 2, "Missing argument"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_of_users_are_panels_without_traceback(ball, name):
    arguments, code, message = WRONG[name]
    result = invoke(*[ball if argument == "BALL" else argument for argument in arguments])
    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_strictness_about_the_scene(tmp_path):
    path = tmp_path / "scene.yaml"
    path.write_text(BALL + "post_build: [{op: dissolve_meshes}]\n")
    result = invoke("run", path, "--frames", 1)
    assert result.exit_code == 1
    assert "not supported" in result.stderr
    assert "--no-strict" in result.stderr
    result = invoke("run", path, "--frames", 1, "--no-strict")
    assert result.exit_code == 0, result.output
    assert "left out:" in result.stdout
    assert "post_build op=dissolve_meshes" in result.stdout


def test_bench_measures_each_number_of_worlds(ball):
    result = invoke("bench", ball, "--worlds", "1,4", "--frames", 5, "--repeats", 2, "--threads", 1)
    assert result.exit_code == 0, result.output
    words = [line.split() for line in result.stdout.splitlines()]
    lines = [row for row in words if row and row[0].isdecimal()]
    assert [int(cells[0]) for cells in lines] == [1, 4]
    assert all(float(cells[2].replace(",", "")) > 0.0 for cells in lines)


def test_info_counts_each_kind():
    result = invoke("info", "mixed", "--worlds", 16)
    assert result.exit_code == 0, result.output
    cells = {
        row[0].strip(): [cell.strip() for cell in row[1:]]
        for row in (line.strip("│").split("│") for line in result.stdout.splitlines() if line.startswith("│"))
    }
    assert cells["worlds"] == ["4", "2", "4", "2", "4"]
    assert cells["dofs"] == ["18", "18", "27", "14", "48"]
    assert cells["bodies"] == ["13", "13", "22", "10", "8"]
    assert cells["mass"][:3] == ["12 kg", "12 kg", "50 kg"]
    assert cells["gravity"][:2] == ["-9.81 m/s²", "-1.62 m/s²"]


def test_info_lists_what_is_not_supported(tmp_path):
    path = tmp_path / "scene.yaml"
    path.write_text(BALL + "post_build: [{op: set_array, array: body_mass, value: 1}]\n")
    result = invoke("info", path)
    assert result.exit_code == 0, result.output
    assert "not supported:" in result.stdout
    assert "post_build array 'body_mass'" in result.stdout


def test_check_names_every_problem_of_every_file(tmp_path, ball):
    """One line per problem, with file and line; the exit code tells whether there is any."""
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{\n "simulation": {"dt": 0},\n "bodies": [\n  {"id": "a", "mas": 1}\n ]\n}')
    loose = tmp_path / "loose.yaml"
    loose.write_text(BALL.replace("free, child: ball", "revolute, child: bal"))
    result = invoke("check", wrong, ball, loose, "quadrupet")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{wrong}:2: simulation.dt: 0 is out of range; it must be greater than 0",
        f"{wrong}:4: bodies[0].mas: unknown key 'mas'; did you mean mass?",
        f"{ball}: valid",
        f"{loose}:4: joints[0].child: there is no body 'bal'; did you mean ball?",
        "quadrupet: there is no such file, nor a bundled scene of this name; did you mean quadruped?",
    ]
    assert "3 of 4 scenes are not valid" in result.stderr


def test_check_counts_unsupported_features_as_errors_by_default(tmp_path):
    path = tmp_path / "scene.yaml"
    path.write_text(BALL + "post_build:\n  - {op: set_array, array: body_mass, value: 1}\ncolour: red\n")
    for arguments, code in ((["--strict"], 1), (["--no-strict"], 0)):
        result = invoke("check", path, *arguments)
        assert result.exit_code == (1 if "colour" in path.read_text() else code), result.output
    path.write_text(path.read_text().replace("colour: red\n", ""))
    for arguments, code in (([], 1), (["--no-strict"], 0)):
        result = invoke("check", path, *arguments)
        assert result.exit_code == code, result.output
        assert f"{path}:6: post_build[0].array: post_build array 'body_mass'" in result.stdout
        assert result.stdout.count("valid") == (1 if code == 0 else 0)


def test_check_of_nothing_is_a_wrong_command_line():
    assert invoke("check").exit_code == 2


def test_scenes_and_schema():
    result = invoke("scenes")
    for name in bundled_scenes():
        assert name in result.stdout
    assert json.loads(invoke("schema").stdout)["title"] == "Scene"


def test_version_and_help_do_not_load_warp():
    """The command line answers at once; what takes seconds to import loads where it is needed.

    When it ends, Python no longer goes through all objects in search of unreachable cycles.
    """
    code = (
        "import atexit, gc, sys; sys.argv = ['pluriverse', '--help']\n"
        "atexit.register(lambda: print('frozen:', gc.get_freeze_count() > 0))\n"
        "from pluriverse.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert not {'warp', 'mujoco', 'numpy', 'pydantic'} & set(sys.modules), sorted(sys.modules)\n"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert "bench" in process.stdout
    assert "frozen: True" in process.stdout
    assert invoke("--version").stdout.startswith("pluriverse 0.")
