"""Robots that other packages carry: they import, lie finite in both solvers, and share a batch."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from benchmarks.robots import SOLVERS, find_robots, succeeded, try_batch, try_robot

pytestmark = pytest.mark.filterwarnings("ignore")  # what files lack is not the matter here

STEP_COUNT = 30
# Package, and files below it. Drake, MuJoCo Warp and Gymnasium are installed with the tests: a dozen robots
# are always tried; example-robot-data has 400 MB and dm_control 100 MB.
ROBOTS = [
    ("pydrake", "share/drake/examples/acrobot/Acrobot.urdf"),
    ("pydrake", "share/drake/examples/kuka_iiwa_arm/models/objects/block_for_pick_and_place.urdf"),
    ("pydrake", "share/drake/examples/pendulum/Pendulum.urdf"),
    ("mujoco_warp", "test_data/humanoid/humanoid.xml"),
    ("gymnasium", "envs/mujoco/assets/ant.xml"),
    ("gymnasium", "envs/mujoco/assets/half_cheetah.xml"),
    ("gymnasium", "envs/mujoco/assets/hopper.xml"),
    ("gymnasium", "envs/mujoco/assets/humanoid.xml"),
    ("gymnasium", "envs/mujoco/assets/inverted_double_pendulum.xml"),
    ("gymnasium", "envs/mujoco/assets/pusher_v5.xml"),
    ("gymnasium", "envs/mujoco/assets/swimmer.xml"),
    ("gymnasium", "envs/mujoco/assets/walker2d_v5.xml"),
    ("cmeel.prefix", "share/example-robot-data/robots/bolt_description/robots/bolt.urdf"),
    ("cmeel.prefix", "share/example-robot-data/robots/double_pendulum_description/urdf/double_pendulum.urdf"),
    ("cmeel.prefix", "share/example-robot-data/robots/icub_description/robots/icub_reduced.urdf"),
    ("cmeel.prefix", "share/example-robot-data/robots/hyq_description/robots/hyq_no_sensors.urdf"),
    ("cmeel.prefix", "share/example-robot-data/robots/romeo_description/urdf/romeo_laas_small.urdf"),
    ("cmeel.prefix", "share/example-robot-data/robots/tiago_description/robots/tiago_no_hand.urdf"),
    ("cmeel.prefix", "share/example-robot-data/robots/talos_data/robots/talos_left_arm.urdf"),
    ("cmeel.prefix", "share/example-robot-data/robots/ur_description/urdf/ur5_robot.urdf"),
    ("dm_control", "suite/cheetah.xml"),
]


def locate(package: str, file: str) -> Path | None:
    """Return a file of an installed package, None if there is none."""
    spec = importlib.util.find_spec("numpy" if "." in package else package)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    folder = folder.parent / package if "." in package else folder
    return folder / file if (folder / file).is_file() else None


@pytest.fixture(scope="module")
def trials():
    """Return a function that tries a robot once."""
    made = {}

    def trial(path):
        if path not in made:
            made[path] = try_robot(path, STEP_COUNT, list(SOLVERS))
        return made[path]

    return trial


@pytest.mark.parametrize(("package", "file"), ROBOTS, ids=[Path(file).stem for _, file in ROBOTS])
def test_robot_lies_finite_in_both_solvers(package, file, trials):
    """Each is read with nothing set, and neither falls apart nor loses contacts."""
    path = locate(package, file)
    if path is None:
        pytest.skip(f"no {file} in {package} here: example-robot-data and dm_control have all these robots")
    trial = trials(path)
    assert succeeded(trial), (trial.problem, trial.remarks, trial.speed)
    assert set(trial.joint_q) == set(SOLVERS)
    assert all(np.abs(q).max(initial=0.0) < 100.0 for q in trial.joint_q.values())


@pytest.mark.parametrize("solver", SOLVERS)
def test_robots_in_one_batch_move_as_alone(solver, trials, capsys):
    """One world each: the same bits, and room for all contacts, with nothing set."""
    from rich.console import Console

    paths = [path for package, file in ROBOTS if (path := locate(package, file)) is not None]
    assert len(paths) >= 12
    assert try_batch([trials(path) for path in paths], solver, STEP_COUNT, Console())
    assert f"{len(paths)} robots in one batch" in capsys.readouterr().out


def test_robots_are_found_and_fragments_left_out(tmp_path):
    """A folder's URDF files, and the MJCF files with bodies: no shared defaults, no documents of tests."""
    (tmp_path / "a.urdf").write_text('<robot name="a"><link name="b"/></robot>')
    (tmp_path / "b.xml").write_text("<mujoco><worldbody><body/></worldbody></mujoco>")
    (tmp_path / "shared.xml").write_text("<mujoco><default/></mujoco>")
    (tmp_path / "package.xml").write_text("<package/>")
    (tmp_path / "testdata").mkdir()
    (tmp_path / "testdata" / "c.urdf").write_text("<robot/>")
    assert [path.name for path in find_robots([tmp_path])] == ["a.urdf", "b.xml"]
