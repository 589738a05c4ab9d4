"""The benchmarks run, and say why where an engine is missing."""

import importlib.util
import json
import re
import subprocess
import sys
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from benchmarks.measure import positive_count
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
