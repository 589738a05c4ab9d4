"""`run --record FILE.pvr`, `export` and `view` of recordings, as they are typed."""

import numpy as np
import pytest
from typer.testing import CliRunner

from pluriverse.cli.app import app


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.pvr"
    result = invoke("run", "mixed", "--duration", 0.2, "--threads", 1, "--record", path)
    assert result.exit_code == 0, result.output
    assert "recorded 7 frames in" in " ".join(result.stdout.split())
    return path


def test_arrays_are_exported(path, tmp_path):
    assert invoke("export", path, tmp_path / "a.npz").exit_code == 0
    arrays = np.load(tmp_path / "a.npz")
    assert arrays["body_q"].shape == (7, len(arrays["body_label"]), 7)
    assert np.abs(np.diff(arrays["time"]) - 1 / 30).max() <= float(arrays["dt"])


def test_a_stage_and_a_film_are_exported(path, tmp_path):
    pytest.importorskip("pxr", reason="the extra 'usd' is not installed")
    assert invoke("export", path, tmp_path / "a.usdc", "--worlds", "0,3").exit_code == 0
    assert (tmp_path / "a.usdc").read_bytes()[:8] == b"PXR-USDC"
    result = invoke("export", path, tmp_path / "a.gif", "--worlds", "0,3", "--size", "60x40")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "a.gif").read_bytes()[:6] == b"GIF89a"
    assert "rendering 7 frames of 60x40" in result.stderr


def test_a_page_is_exported(path, tmp_path):
    pytest.importorskip("viser", reason="the extra 'view' is not installed")
    result = invoke("export", path, tmp_path / "a.html", "--stride", 2)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "a.html").read_text().lstrip().lower().startswith("<!doctype html")


def test_a_recording_is_viewed(path):
    pytest.importorskip("viser", reason="the extra 'view' is not installed")
    result = invoke("view", path, "--show", "0,3", "--duration", 0.3)
    assert result.exit_code == 0, result.output
    assert "7 frames, 0.2 s" in " ".join(result.stdout.split())
    result = invoke("view", path, "--show", 99, "--duration", 0.3)
    assert result.exit_code == 1
    assert "world 99 does not exist" in " ".join(result.output.split())


def test_a_run_is_watched(tmp_path):
    pytest.importorskip("viser", reason="the extra 'view' is not installed")
    result = invoke("run", "mixed", "--frames", 20, "--threads", 1, "--view")
    assert result.exit_code == 0, result.output
    assert "viewer: http://localhost:" in result.stdout


def test_a_recording_says_what_it_holds(path):
    """It was read as a scene, which is not UTF-8."""
    result = invoke("info", path)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.replace("│", " ").split())
    for row in (
        "frames 7, 30 a second",
        "time 0 s to 0.2 s",
        "worlds 8 (0, 1, 2, 3, 4, 5, 6, 7)",
        "SolverSAP",
    ):
        assert row in said


def test_wrong_exports_are_refused(path, tmp_path):
    cases = {
        ("export", path, tmp_path / "a.obj"): "ends in '.obj', but it must be one of .html",
        ("export", tmp_path / "none.pvr", tmp_path / "a.usd"): "No such file",
        ("export", path, tmp_path / "none" / "a.usd"): "there is no folder",
        (
            "export",
            path,
            tmp_path / "a.usd",
            "--worlds",
            "5-7",
        ): "--worlds is '5-7', but it is a list of worlds",
        ("export", path, tmp_path / "a.usd", "--worlds", "77"): "world 77 was not recorded",
        ("view", path, "--show", "5-7"): "--show is '5-7', but it is a list of worlds such as 0,3,7",
        ("run", "mixed", "--record", tmp_path / "none" / "a.pvr"): "there is no folder",
    }
    (tmp_path / "other.pvr").write_text("not a recording")
    cases["export", tmp_path / "other.pvr", tmp_path / "a.usd"] = "is not a recording of a simulation"
    cases["info", tmp_path / "other.pvr"] = "is not a recording of a simulation"
    cases["view", tmp_path / "other.pvr"] = "is not a recording of a simulation"
    for arguments, message in cases.items():
        result = invoke(*arguments)
        assert result.exit_code == 1, (arguments, result.output)
        # Panels break lines, so words are compared without spaces and frames.
        said = "".join(result.output.replace("│", "").split())
        assert "".join(message.split()) in said, (arguments, result.output)
