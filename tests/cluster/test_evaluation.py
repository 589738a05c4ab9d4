"""Evaluations and sweeps: a row for each episode, the same however work is cut, lost, killed or resumed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from pluriverse.cluster import ClusterError, WorkerTaskError, evaluate, sweep

pytestmark = pytest.mark.usefixtures("ray_cluster")

SCENE = """
simulation: {dt: 0.01}
builder: {gravity: [0, 0, -10]}
bodies:
  - id: block
    mass: 1.0
    inertia: [[0.01, 0, 0], [0, 0.01, 0], [0, 0, 0.01]]
    transform: {p: [0, 0, 5]}
    shapes: [{type: sphere, radius: 0.1, cfg: {density: 0}}]
joints: [{id: hover, type: free, child: block}]
randomize:
  seed: 3
  terms: [{initial_state: {root_velocity: {uniform: [-1.0, 1.0]}}}]
"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("scene") / "fall.yaml"
    path.write_text(SCENE)
    return str(path)


def height(simulation, worlds):
    return {"height": simulation.state.body_q.numpy()[:, 2]}


def test_episodes_are_the_same_in_every_batch(scene):
    """What an episode draws and how it ends depends on its number alone."""
    tables = [
        evaluate(None, scene, episodes=6, steps=10, batch=batch, workers=workers, metrics=height)
        for batch, workers in ((6, 1), (2, 2))
    ]
    assert tables[0].equals(tables[1])
    moved = tables[0]["moved_x"].to_numpy()
    assert len(set(moved)) == 6
    assert tables[0]["episode"].to_pylist() == list(range(6))


def test_falls_follow_the_closed_form_for_every_sample(scene):
    """From rest a body falls by about g t² / 2, whatever its mass; a policy may push it up instead."""
    gravities = [[0, 0, -10.0], [0, 0, -2.0]]
    table = sweep(
        scene,
        {"gravity": gravities, "body_mass@block": {"scale": [1.0, 3.0]}, "dt": [0.001, 0.01]},
        duration=0.2,
        seeds=1,
        batch=3,
        workers=2,
        metrics=height,
    ).to_pylist()
    assert len(table) == 8
    drift = {}
    for row in table:
        assert row["error"] == ""
        assert row["height"] == pytest.approx(5.0 + row["moved_z"], abs=1e-6)
        # Semi-implicit or midpoint steps err by at most g t dt; the initial velocity is the same draw for
        # all.
        fall = row["moved_z"] - 0.5 * row["gravity"][2] * 0.2**2
        drift.setdefault("first", fall)
        assert fall == pytest.approx(drift["first"], abs=2 * 10.0 * 0.2 * 0.01)
        assert row["moved_x"] == pytest.approx(table[0]["moved_x"], abs=1e-5)


def test_policies_control_what_they_see(scene):
    def hover(observation, worlds):
        weight = np.zeros_like(observation["body_qd"].values)
        weight[:, 2] = 10.0
        return {"body_f": weight}

    table = evaluate(hover, scene, episodes=3, steps=5, step_count=2, observe=("body_qd",), workers=1)
    up = table["moved_z"].to_numpy()
    assert np.abs(up).max() <= 0.1 + 1e-6  # at most 1 m/s for 0.1 s, since nothing falls


def test_a_bad_sample_leaves_its_reason_and_the_others_their_rows(scene):
    rows = sweep(scene, [{"body_mass": 1.0}, {"body_mass": -1.0}, {"body_mass": 2.0}], steps=3, workers=1)
    errors = rows["error"].to_pylist()
    assert errors[0] == errors[2] == ""
    assert "body_mass was set to -1.0" in errors[1]
    assert rows["moved_z"].to_pylist()[1] is None


def test_killed_workers_lose_and_double_nothing(scene, tmp_path):
    """The worker of a batch ends itself the first time; the batch is done again, to the same rows."""
    marker = tmp_path / "killed"

    def deadly(simulation, worlds):
        if worlds.start == 2 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return height(simulation, worlds)

    table = evaluate(None, scene, episodes=6, steps=4, batch=2, workers=2, metrics=deadly)
    assert marker.exists()
    assert table.equals(evaluate(None, scene, episodes=6, steps=4, batch=6, workers=1, metrics=height))


def test_work_that_always_ends_its_worker_is_given_up_and_the_rest_is_kept(scene, tmp_path):
    def deadly(simulation, worlds):
        if worlds.start == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return height(simulation, worlds)

    with pytest.raises(ClusterError, match=r"episodes 0 to 1\) was lost 2 times.*rows of 2 pieces are kept"):
        evaluate(None, scene, episodes=6, steps=2, batch=2, workers=1, metrics=deadly, out=tmp_path / "out")
    assert len(list((tmp_path / "out").glob("piece-*.parquet"))) == 2


def test_metrics_of_a_wrong_length_are_an_error(scene):
    with pytest.raises(WorkerTaskError, match="'height' has 3 entries, but must have one for each of the 2"):
        evaluate(None, scene, episodes=2, steps=1, workers=1, metrics=lambda s, w: {"height": [1, 2, 3]})


DRIVER = """
import sys, time
from pluriverse.cluster import evaluate

RESUMES = len(sys.argv) > 3

def slow(simulation, worlds):
    while worlds.start == 4 and not RESUMES:
        time.sleep(0.05)  # until it is killed
    return {"height": simulation.state.body_q.numpy()[:, 2]}

if __name__ == "__main__":
    evaluate(None, sys.argv[1], episodes=12, steps=4, batch=1, workers=1, metrics=slow, out=sys.argv[2],
             resume=RESUMES)
"""


def test_rows_survive_a_killed_driver_and_the_rest_is_done_on_resuming(scene, tmp_path, ray_cluster):
    script, out = tmp_path / "driver.py", tmp_path / "out"
    script.write_text(DRIVER)
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": root + os.pathsep + os.environ.get("PYTHONPATH", "")}
    environment["RAY_ADDRESS"] = ray_cluster.get_runtime_context().gcs_address
    command = [sys.executable, str(script), scene, str(out)]
    driver = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    end = time.monotonic() + 300.0
    while len(list(out.glob("piece-*.parquet"))) < 4 and driver.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    driver.kill()
    driver.wait()
    kept = {path: path.stat().st_mtime_ns for path in out.glob("piece-*.parquet")}
    assert len(kept) == 4, driver.stderr.read().decode()
    subprocess.run([*command, "resume"], env=environment, check=True, capture_output=True, timeout=400)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # nothing was done twice
    rows = pyarrow.parquet.ParquetDataset(sorted(out.glob("piece-*.parquet"))).read()
    whole = evaluate(None, scene, episodes=12, steps=4, batch=4, workers=1, metrics=height)
    assert rows.equals(whole)


def test_folders_of_other_work_are_left_alone(scene, tmp_path):
    out = tmp_path / "out"
    first = evaluate(None, scene, episodes=2, steps=2, workers=1, out=out)
    with pytest.raises(FileExistsError, match="holds results already"):
        evaluate(None, scene, episodes=2, steps=2, workers=1, out=out)
    with pytest.raises(ValueError, match="results of other work"):
        evaluate(None, scene, episodes=2, steps=3, workers=1, out=out, resume=True)
    assert evaluate(None, scene, episodes=2, steps=2, workers=1, out=out, resume=True).equals(first)
    (out / "_manifest.json").write_text("{")
    with pytest.raises(ClusterError, match="is damaged"):
        evaluate(None, scene, episodes=2, steps=2, workers=1, out=out, resume=True)
    with pytest.raises(NotADirectoryError, match="is a file"):
        evaluate(None, scene, episodes=2, steps=2, workers=1, out=out / "_manifest.json")


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        ({}, ValueError, "a parameter"),
        ([], ValueError, "no samples"),
        ("dt", TypeError, "samples are a str"),
        ({"dt": 0.01}, ValueError, "needs a list of values"),
        ({"body_mas": [1.0]}, ValueError, "Did you mean body_mass"),
        ({"body_mass": [float("nan")]}, ValueError, "must be a finite number"),
        ({"body_mass": ["heavy"]}, ValueError, "'heavy'"),
        ({"body_mass": {"times": [1.0]}}, ValueError, "must be a value, or one of"),
        ({"dt": {"scale": [1.0]}}, ValueError, "can only be set"),
        ({"shape_scale": [1.0]}, ValueError, "Use variants"),
        ({"body_q": [1.0]}, ValueError, "InitialState"),
        ({"body_mass@nobody": [1.0]}, KeyError, "no body matches 'nobody'"),
        ([{"dt": 0.1}, {"body_mass": 1.0}], ValueError, "sample 1"),
    ],
)
def test_wrong_samples_are_refused_before_work_begins(scene, samples, error, message):
    with pytest.raises(error, match=message):
        sweep(scene, samples, steps=1, workers=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"episodes": 0, "steps": 1}, "episodes is 0"),
        ({"episodes": 1}, "either steps or duration"),
        ({"episodes": 1, "duration": -1.0}, r"duration is -1\.0"),
        ({"episodes": 1, "steps": 1, "workers": 0}, "workers is 0"),
        ({"episodes": 1, "steps": 1, "resume": True}, "nothing to resume"),
    ],
)
def test_wrong_options_are_refused(scene, arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate(None, scene, **arguments)
