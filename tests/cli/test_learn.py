"""`pluriverse train`, `evaluate`, `play` and `tasks`, as a user types them."""

import json
import sys

import pytest
from PIL import Image
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("rsl_rl")
pytest.importorskip("onnxruntime")

from pluriverse.cli.app import app

ARGUMENTS = ["--envs", "16", "--threads", "1"]


def call(*arguments) -> tuple[int, str]:
    """Return exit code and all that a command prints, on one line."""
    result = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, [str(part) for part in arguments])
    return result.exit_code, " ".join((result.output + result.stderr).split())


def test_train_resume_and_evaluate(tmp_path):
    """A run leaves checkpoint, curve and policy; it goes on; its policy is measured."""
    folder = tmp_path / "run"
    train = ["train", "cartpole", *ARGUMENTS, "--out", folder, "--learning-threads", "1"]
    code, text = call(*train, "--iterations", "2")
    assert code == 0, text
    assert "policy:" in text
    for name in ("checkpoint.pt", "curve.jsonl", "policy.onnx", "tensorboard"):
        assert (folder / name).exists(), name
    code, text = call(*train, "--iterations", "3")
    assert code == 1
    assert "holds a run already" in text
    code, text = call(*train, "--iterations", "3", "--resume")
    assert code == 0, text
    assert "going on after update 2" in text
    assert len((folder / "curve.jsonl").read_text().splitlines()) == 3
    report = tmp_path / "figures.json"
    code, text = call("evaluate", "cartpole", *ARGUMENTS, "--policy", folder, "--report", report)
    assert code == 0, text
    assert json.loads(report.read_text())["episodes"] == 32


def test_play_films_a_policy(tmp_path):
    """A few steps as a GIF, without display."""
    code, text = call(
        "train", "cartpole", *ARGUMENTS, "--iterations", "1", "--out", tmp_path, "--no-tensorboard"
    )
    assert code == 0, text
    film = tmp_path / "film.gif"
    video = ["--video", film, "--size", "80x50", "--samples", 1]
    code, text = call("play", "cartpole", "--envs", 1, "--policy", tmp_path, "--seconds", 0.2, *video)
    assert code == 0, text
    assert "rendering 7 frames of 80x50" in text
    with Image.open(film) as frames:
        assert frames.size == (80, 50)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "cartpol"], "did you mean cartpole?"),
        (
            ["train", "walk_nowhere:Walk"],
            "there is no module 'walk_nowhere', neither installed nor in the working",
        ),
        (["train", "cartpole", "--minutes", "nan"], "--minutes is nan"),
        (["play", "cartpole", "--video", "film.doc"], "'.doc' is no format of videos"),
        (["play", "cartpole", "--video", "film.gif", "--size", "0x9"], "--size is '0x9'"),
        (["play", "cartpole", "--seconds", 0], "--seconds is 0.0, but must be a positive number"),
        (["evaluate", "cartpole", "--policy", "nowhere"], "there is no policy 'nowhere'"),
        (["evaluate", "puli-flat", "--command", "fast"], "three numbers"),
        (["evaluate", "cartpole", "--command", "1,0,0"], "for tasks of walking"),
    ],
)
def test_what_is_wrong_is_said(arguments, message, tmp_path, monkeypatch):
    """One panel, no traceback."""
    monkeypatch.chdir(tmp_path)
    code, text = call(*arguments)
    assert code == 1
    assert message in text


def test_tasks_are_listed():
    """Each with what it is, and which robot it needs."""
    code, text = call("tasks")
    assert code == 0
    assert "go1-rough" in text
    assert "needs the files of go1" in text


def test_a_task_in_the_working_directory_is_trained_by_its_module(tmp_path, monkeypatch):
    """The console script has the folder of the script on its path, and not the working directory."""
    (tmp_path / "own_pole.py").write_text(
        "from own_goal import Goal\nclass Pole(Goal):\n    pass\n", encoding="utf-8"
    )
    (tmp_path / "own_goal.py").write_text(
        "from pluriverse.envs.tasks.cartpole import CartpoleTask\nclass Goal(CartpoleTask):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(tmp_path))])
    code, text = call("train", "own_pole:Pole", *ARGUMENTS, "--iterations", "1", "--no-tensorboard")
    assert code == 0, text
    assert (tmp_path / "runs" / "own_pole_Pole" / "policy.onnx").exists()
