"""The examples run, and what they print agrees with the physics they show."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name, frames):
    process = subprocess.run(
        [sys.executable, str(EXAMPLES / name), "--frames", str(frames)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(EXAMPLES.parent)},
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_every_example_is_short_and_tested():
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {
        "changing_objects.py",
        "contact_forces.py",
        "crane.py",
        "excavator.py",
        "follow_a_target.py",
        "gravity_per_world.py",
        "handwritten_loop.py",
        "mixed_worlds.py",
        "mobile_arm.py",
        "spinning_boxes.py",
        "two_solvers.py",
        "walk_anywhere.py",
    }
    assert all(len((EXAMPLES / name).read_text().splitlines()) < 100 for name in names)


@pytest.mark.parametrize(
    ("name", "frames", "tolerance"),
    [
        ("handwritten_loop.py", 200, 2e-3),
        ("gravity_per_world.py", 100, 2e-3),
        ("two_solvers.py", 300, 2e-3),
        ("crane.py", 100, 2e-3),
        ("mobile_arm.py", 200, 2e-3),
        ("excavator.py", 400, 2e-3),
        ("follow_a_target.py", 150, 2e-3),
    ],
)
def test_numbers_beside_each_other_agree(name, frames, tolerance):
    """These examples print the simulated number and the exact one, in metres."""
    lines = [line for line in run(name, frames).splitlines() if " m" in line]
    assert lines
    for line in lines:
        simulated, *_, exact = [float(number) for number in re.findall(r"(-?\d+\.\d+) m\b", line)]
        assert simulated == pytest.approx(exact, abs=tolerance)


def test_feet_carry_the_weight():
    *feet, total = run("contact_forces.py", 400).splitlines()
    assert len(feet) == 4
    carried, weight = (float(number) for number in re.findall(r"(\d+\.\d+) N", total))
    assert carried == pytest.approx(weight, rel=1e-3)


def test_friction_of_patches_acts_over_the_face():
    """Its arm is that of the face, to the 8 sectors of a patch, and that of points the way to the corners."""
    lines = run("spinning_boxes.py", 60).splitlines()
    arms = {
        kind: [float(line.split()[-1]) for line in lines if f" m     {kind}" in line]
        for kind in ("points", "patch")
    }
    face, corners = (float(number) for number in re.findall(r"(\d\.\d+)", lines[-1]))
    assert arms["points"] == pytest.approx([corners] * 2, rel=0.06)
    assert arms["patch"] == pytest.approx([face] * 2, rel=0.1)


def test_a_robot_stands_on_every_kind_of_ground():
    """Eight centimetres more or less than at home, which is how far small random steps move it."""
    pytest.importorskip("torch")
    heights = [float(value) for value in re.findall(r"is (\d\.\d+) m over", run("walk_anywhere.py", 25))]
    assert len(heights) == 6
    assert heights == pytest.approx([0.3] * 6, abs=0.08)


def test_mixed_worlds_are_all_reported():
    lines = run("mixed_worlds.py", 100).splitlines()
    assert [line.split(" z =")[0] for line in lines[:7]] == [
        f"world {world}: {kind},"
        for world, kind in enumerate(
            ["1 x rod", "2 x rod", "3 x rod", "4 x rod", "1 x box", "3 x box", "5 x box"]
        )
    ]


def test_environments_hold_other_objects_in_every_episode():
    _, *episodes, last = run("changing_objects.py", 200).splitlines()
    assert last == "frozen worlds: 0"
    held = [line.split(": ")[1] for line in episodes]
    assert len(set(held)) == len(held) == 4
    assert {name for line in held for name in line.split(", ")} == {"box", "ball", "two boxes"}
