"""The benchmarks run, and say why where an engine is missing."""

import importlib.util
import json
import re
import subprocess
import sys
from argparse import ArgumentTypeError, Namespace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import motion
from benchmarks.measure import positive_count
from benchmarks.motion_peers import Peer, PeerError
from benchmarks.motion_scenes import Motion, MovingScene, write_motion
from benchmarks.scenes import ASSETS, SCENES, PileScene

REPOSITORY = Path(__file__).resolve().parent.parent


def run_benchmarks(tmp_path: Path, *arguments: str) -> list[dict]:
    """Run the benchmarks for a moment and return their results."""
    path = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks", "--repeats", "1", "--seconds", "0.01", "--json", str(path)]
    subprocess.run([*command, *arguments], cwd=REPOSITORY, check=True, capture_output=True, timeout=300)
    return json.loads(path.read_text())["results"]


def test_engines_step_the_same_scene(tmp_path):
    """Both engines read the pile, step it, and it stands: boxes at rest are slower than 0.1 m/s."""
    results = run_benchmarks(
        tmp_path, "--scenes", "pile8", "--worlds", "2", "--threads", "1", "--engines", "pluriverse", "mujoco"
    )
    assert [result["configuration"]["engine"] for result in results] == ["pluriverse", "mujoco"]
    for result in results:
        assert result["rate"] > 0.0
        assert result["detail"]["largest_speed"] < 0.1


def test_solver_mujoco_is_compared_with_rollout(tmp_path):
    """The table of SolverMuJoCo has a row per scene, and the mixture is compared with its parts."""
    command = [sys.executable, "-m", "benchmarks.solver_mujoco", "--scenes", "cartpole", "pile8"]
    command += ["--worlds", "4", "--threads", "1", "--steps", "2", "--repeats", "1"]
    process = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True, timeout=300)
    assert "cartpole" in process.stdout
    assert "pile8" in process.stdout
    assert "2 worlds of each in one batch" in process.stdout


def test_numbers_of_threads_are_compared():
    """A line for each number of threads and worlds; the first is once itself, and all took processor time."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--scenes", "cartpole", "--worlds", "4", "8"]
    command += ["--threads", "1", "2", "--steps", "20", "--rounds", "1", "--calls", "1"]
    process = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True, timeout=300)
    pattern = r"cartpole x (\d), (\d) threads, 1 steps a call: +[\d,]+ world-steps/s, "
    pattern += (
        r"([\d.]+) times the first; ([\d.]+) µs of a processor each, ([\d.]+) of the first number of worlds"
    )
    found = re.findall(pattern, process.stdout)
    assert [line[:2] for line in found] == [("4", "1"), ("4", "2"), ("8", "1"), ("8", "2")]
    assert found[0][2] == found[2][2] == "1.00"
    assert [line[4] for line in found[:2]] == ["1.00", "1.00"]
    assert all(float(line[3]) > 0.0 for line in found)


@pytest.mark.skipif(importlib.util.find_spec("newton") is not None, reason="Newton is installed here")
def test_missing_engine_is_named(tmp_path):
    (result,) = run_benchmarks(
        tmp_path, "--scenes", "cartpole", "--worlds", "1", "--threads", "1", "--engines", "newton"
    )
    assert result["rate"] is None
    assert "newton" in result["detail"]["reason"]


@pytest.mark.parametrize("name", [name for name, scene in SCENES.items() if isinstance(scene, PileScene)])
def test_boxes_of_a_pile_do_not_begin_inside_each_other(name):
    """Boxes of one layer are farther apart along x or y than half the width of both together."""
    scene = SCENES[name]
    boxes = scene.boxes()
    for index, (first, first_angle) in enumerate(boxes):
        for second, second_angle in boxes[:index]:
            if abs(first[2] - second[2]) > 2.0 * scene.half_size:
                continue
            # Half the width of a square turned by an angle, along the axis where the two are farther apart.
            widths = [scene.half_size * (1.0 + abs(angle)) for angle in (first_angle, second_angle)]
            apart = max(abs(first[0] - second[0]), abs(first[1] - second[1]))
            assert apart > sum(widths)


def run_module(module: str, *arguments: str) -> str:
    """Run another benchmark, which needs the robots, and return what it prints."""
    if not ASSETS.is_dir():
        pytest.skip(f"no robots in '{ASSETS}': set PLURIVERSE_TEST_ASSETS to a folder that has them")
    command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    return subprocess.run(
        command, cwd=REPOSITORY, check=True, capture_output=True, text=True, timeout=300
    ).stdout


def test_kinds_of_worlds_step_in_one_batch_and_alone():
    """Ten topologies step by themselves and together, and change in a recorded loop without any drift."""
    lines = run_module("benchmarks.variants", "--worlds", "2", "--steps", "2", "--repeats", "1").splitlines()
    assert len([line for line in lines if line.endswith("µs a step")]) == 10
    assert "of the sum" in lines[-1]
    outcome = run_module("benchmarks.variants", "--episodes", "60")
    assert "largest change of an initial state: 0; frozen worlds: ()" in outcome


def test_contact_rich_scenes_are_compared():
    """The hand holds its objects with both solvers, and a pile is compared with a single box.

    A hand that lets go drops objects at more than 0.5 m/s; resting on 1e5 N/m they sink in by less than 1 mm.
    """
    arguments = ["--scenes", "hand", "--sides", "1", "2", "--worlds", "1", "--steps", "20", "--repeats", "1"]
    lines = run_module("benchmarks.contact_rich", *arguments).splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    sap, mujoco, bare = (row for row in rows if row[0] == "hand")
    assert [row[1] for row in (sap, mujoco, bare)] == ["SolverSAP", "SolverMuJoCo", "mujoco.rollout"]
    for row in (sap, mujoco):
        assert int(row[3]) >= 12  # six objects on two points at least
        assert row[7] == "0"
    assert float(sap[4]) < 1.0
    assert float(sap[8]) < 0.5
    assert [row[0] for row in rows[3:]] == ["1", "8"]
    assert rows[3][3] == "1.00"


def test_devices_are_compared_with_both_solvers():
    """A line per solver and number of worlds, with a rate for each device."""
    arguments = ["--scenes", "pile8", "--worlds", "2", "--devices", "cpu", "--solvers", "sap", "mujoco"]
    lines = run_module("benchmarks.devices", *arguments, "--steps", "2", "--repeats", "1").splitlines()
    rates = [re.search(r"x +2: cpu +([\d,]+) world-steps/s$", line) for line in lines]
    assert [float(rate[1].replace(",", "")) > 0.0 for rate in rates if rate] == [True, True]


def test_a_mixture_is_compared_with_its_parts():
    lines = run_module("benchmarks.mixture", "--worlds", "1", "--steps", "2", "--repeats", "1").splitlines()
    assert [line.split()[0] for line in lines] == ["go1", "g1", "arm", "pile8", "sum", "mixture"]


def test_building_reports_time_and_memory():
    """Eight robots are read and built; memory held is more than that of the arrays, which it contains."""
    lines = run_module("benchmarks.building", "--worlds", "256").splitlines()
    assert [line.split(", ")[0] for line in lines] == ["Go1", "8 robots"]
    for line in lines:
        arrays, held, peak = (int(number.replace(",", "")) for number in re.findall(r"([\d,]+) MiB", line))
        assert 0 < arrays <= held <= peak


def test_poses_are_looked_for_by_all_who_are_installed():
    """Of the poses of an arm nearly all are found from 16 starts, and most from one."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.inverse_kinematics"]
    lines = subprocess.run(
        [*command, "--problems", "30", "--repeats", "1"],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    ).stdout.splitlines()
    found = {
        line[:21].strip(): float(line.split("%")[0].split(",")[-1]) for line in lines if "% found" in line
    }
    assert found["Pluriverse, 16 starts"] >= 95.0
    assert found["Pluriverse, 1 start"] >= 60.0


@pytest.mark.parametrize("text", ["0", "-3", "2.5", "all", ""])
def test_numbers_of_things_to_measure_are_positive(text):
    """None of them would end in a figure: an empty batch, no rounds, no threads."""
    assert positive_count("64") == 64
    with pytest.raises(ArgumentTypeError, match="is not a positive integer"):
        positive_count(text)


ENGINE = """
import os, sys
import numpy as np
from benchmarks.engines.moving import serve

class Counter:
    version = "counter 1"
    def __init__(self, scene, world_count):
        if world_count == 13:
            raise ValueError("no room for 13 worlds")
        self.start, self.world_count = float(scene.qpos[0, 0]), world_count
        self.restart()
        self.clear()
    def restart(self):
        self.position = self.start
    def advance(self, targets):
        print("engines write what they like")
        os.write(1, b"from native code as well")
        assert targets.shape == (self.world_count, 1)
        self.position += float(targets[0, 0])
        if self.position > 20.0:
            sys.exit("beyond 20")
    def clear(self):
        self.seen = 0
    def observe(self):
        self.seen += 1
    def quality(self):
        return {"position": str(self.position), "seen": str(self.seen)}

serve(Counter)
"""


def make_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world_count: int) -> Peer:
    """Return an engine that counts, in a process of its own: a start of 5, targets of 1, 2, 1, 2, ..."""
    (tmp_path / "counter_motion.py").write_text(ENGINE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    targets = np.tile(np.array([1.0, 2.0])[:, None, None], (1, world_count, 1))
    starts = np.full((world_count, 1), 5.0)
    scene = MovingScene(tmp_path / "scene.xml", starts, targets, restarts=False)
    return Peer("counter_motion", sys.executable, scene, world_count)


def test_other_engines_answer_rounds_from_processes_of_their_own(tmp_path, monkeypatch):
    """Starts and targets arrive, targets go on over a restart, and time runs only while the engine works."""
    peer = make_peer(tmp_path, monkeypatch, 2)
    assert peer.version == "counter 1"
    assert peer.seconds() == 0.0
    peer.advance(3)
    taken = peer.seconds()
    assert taken > 0.0
    assert peer.quality() == {"position": "9.0", "seen": "1"}
    peer.restart()
    peer.clear_report()
    assert peer.quality() == {"position": "5.0", "seen": "0"}
    assert peer.seconds() == taken
    peer.advance(1)
    assert peer.quality() == {"position": "7.0", "seen": "1"}
    peer.close()


def test_an_engine_that_ends_in_between_says_why(tmp_path, monkeypatch):
    """The request that it does not answer ends in the last line that it wrote."""
    peer = make_peer(tmp_path, monkeypatch, 2)
    with pytest.raises(PeerError, match="beyond 20"):
        peer.advance(100)
    peer.close()


def test_the_others_go_on_without_an_engine_that_ends(monkeypatch, capsys):
    """Its rows are left out, and every other contestant has a ratio for each round."""

    class Steady:
        def __init__(self, *_: object, rounds: int = 99):
            self.left = rounds + 1  # and settling

        def seconds(self) -> float:
            return -0.5 * self.left

        def advance(self, count: int) -> None:
            if self.left == 0:
                raise PeerError("it has had enough")
            self.left -= 1

        def clear_report(self) -> None:
            pass

        def quality(self) -> dict[str, str]:
            return {}

        def close(self) -> None:
            pass

    monkeypatch.setattr(motion, "Rollout", Steady)
    monkeypatch.setattr(motion, "Ours", Steady)
    scene = MovingScene(Path("none.xml"), np.zeros((1, 1)), np.zeros((1, 1, 0)), restarts=False)
    arguments = Namespace(worlds=1, threads=1, rounds=3, control_steps=2, contestants=["sap", "mujoco"])
    brief = Steady(rounds=1)
    brief.advance(1)
    monkeypatch.setattr(motion, "_peers", lambda *_: {"brief": brief})
    rows = motion.measure("nowhere standing", scene, arguments)
    assert [(row.contestant, row.ratios) for row in rows] == [
        (name, [1.0, 1.0, 1.0]) for name in ("rollout", "sap", "mujoco")
    ]
    assert "nowhere standing: brief left out: it has had enough" in capsys.readouterr().out


def test_an_engine_that_cannot_simulate_a_scene_says_why(tmp_path, monkeypatch):
    with pytest.raises(PeerError, match="no room for 13 worlds"):
        make_peer(tmp_path, monkeypatch, 13)
    with pytest.raises(PeerError, match=r"/nowhere/python: No such file"):
        Peer("counter_motion", "/nowhere/python", MovingScene.load(tmp_path / "scene.xml"), 2)


def run_motion(monkeypatch: pytest.MonkeyPatch, sap: float, mujoco: float, *arguments: str) -> int:
    """Run `benchmarks.motion` with these ratios in place of measured ones and return its exit status."""
    rows = [
        motion.Row("go1 limp", name, 1e4, [0.5 * ratio, ratio, 9.0], {})
        for name, ratio in {"rollout": 1.0, "sap": sap, "sap_2mm": sap, "mujoco": mujoco}.items()
    ]
    monkeypatch.setattr(motion, "measure", lambda *_: rows)
    monkeypatch.setattr(motion, "write_motion", lambda *_: None)
    command = ["motion", "--robots", "go1", "--motions", "limp", *arguments]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as exit_:
        motion.main()
    return int(exit_.value.code or 0)


@pytest.mark.parametrize(
    ("sap", "mujoco", "status"), [(2.0, 1.0, 0), (1.99, 1.0, 1), (2.0, 0.99, 1), (3.0, 2.0, 0)]
)
def test_motion_checks_its_goals(monkeypatch, capsys, sap, mujoco, status):
    """Goals are for medians: 2 times rollout for `SolverSAP`, 1 time for `SolverMuJoCo`."""
    assert run_motion(monkeypatch, sap, mujoco, "--check") == status
    assert ("below its goal: go1 limp" in capsys.readouterr().out) == bool(status)
    assert run_motion(monkeypatch, sap, mujoco) == 0


def test_motion_checks_what_the_defaults_cost():
    """Nothing set may take a twentieth more than a gap of 2 mm, compared round by round."""

    def rows(ratios: list[float]) -> list[motion.Row]:
        slow = [motion.Row("arm limp", "sap", 1e4, ratios, {})]
        return [*slow, motion.Row("arm limp", "sap_2mm", 1e4, [3.0, 4.0, 5.0], {})]

    assert motion.below_goals(rows([2.9, 3.9, 4.8])) == []
    (failure,) = motion.below_goals(rows([2.7, 3.6, 4.5]))
    assert "nothing set is 0.90 times as fast as a gap of 2 mm" in failure


def test_motion_fails_its_check_without_any_robot(monkeypatch):
    """A check that measured nothing has not passed."""

    def missing(*_: object) -> None:
        raise FileNotFoundError("no robots here")

    monkeypatch.setattr(motion, "write_motion", missing)
    monkeypatch.setattr(sys, "argv", ["motion", "--robots", "go1", "--check"])
    with pytest.raises(SystemExit) as exit_:
        motion.main()
    assert exit_.value.code == 1


def test_the_arm_holds_its_cube_and_others_are_left_out_by_name():
    """Rows of rollout and both solvers; more than the ground touches the cube; Newton's Python is missing."""
    arguments = ["--robots", "arm", "--motions", "standing", "--contestants", "sap", "mujoco"]
    arguments += ["--worlds", "2", "--rounds", "1", "--control-steps", "2"]
    output = run_module("benchmarks.motion", *arguments, "--newton-python", "/nowhere/python")
    assert "arm standing: newton left out: /nowhere/python: No such file" in output
    found = re.findall(r"arm standing: (\w+) [\d,]+/s.*?contacts (\d+)", output)
    assert [name for name, _ in found] == ["rollout", "sap", "mujoco"]
    assert all(int(contacts) >= 8 for _, contacts in found)


def test_falling_cubes_begin_clear_of_the_arm(tmp_path):
    """No cube begins in the arm or the ground, however it is turned."""
    mujoco = pytest.importorskip("mujoco")
    if not ASSETS.is_dir():
        pytest.skip(f"no robots in '{ASSETS}': set PLURIVERSE_TEST_ASSETS to a folder that has them")
    scene = write_motion("arm", Motion.FALLING, 64, tmp_path)
    model = mujoco.MjModel.from_xml_path(str(scene.path))
    data = mujoco.MjData(model)
    for start in scene.qpos:
        data.qpos[:] = start
        mujoco.mj_forward(model, data)
        assert data.ncon == 0


@pytest.mark.skipif(not (ASSETS / "unitree_go1").is_dir(), reason="needs the robots of the tests' assets")
def test_robots_of_one_world_start_apart_and_have_targets_of_their_own(tmp_path):
    """Five copies of a Go1 in rows of four on one ground, each at the height of the one alone."""
    import mujoco

    alone = write_motion("go1", Motion.RANDOM, 2, tmp_path)
    scene = write_motion("go1", Motion.RANDOM, 2, tmp_path, together=5)
    model = mujoco.MjModel.from_xml_path(str(scene.path))
    assert (model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE).sum() == 1
    assert scene.targets.shape == (64, 2, 5 * alone.targets.shape[2])
    starts = scene.qpos[0].reshape(5, -1)
    np.testing.assert_allclose(starts[:, 2:], np.tile(alone.qpos[0, 2:], (5, 1)))
    np.testing.assert_allclose(
        starts[:, :2] - alone.qpos[0, :2], 1.5 * np.array([[0, 0], [1, 0], [2, 0], [3, 0], [0, 1]])
    )
    assert not np.allclose(scene.targets[..., :12], scene.targets[..., 12:24])
