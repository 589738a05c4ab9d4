"""`pluriverse sweep`: a file in, a table out, and mistakes reported with their line."""

import pytest
from typer.testing import CliRunner

pytest.importorskip("ray", reason="the extra 'cluster' is not installed")

from pluriverse.cli.app import app
from tests.cluster.local_cluster import cluster_of_this_process

SWEEP = """
scene: cartpole
steps: 2
grid:
  body_mass: {scale: [1.0, 2.0]}
"""


def sweep(tmp_path, text, *options):
    file = tmp_path / "sweep.yaml"
    file.write_text(text)
    arguments = ["sweep", str(file), "--out", str(tmp_path / "out"), *options]
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})  # wide, so that no path is wrapped


def test_a_sweep_writes_a_row_per_sample(tmp_path, monkeypatch):
    import pyarrow.parquet

    (tmp_path / "figures.py").write_text(
        "def speed(simulation, worlds):\n    return {'speed': simulation.state.joint_qd.numpy()[::2]}\n"
    )
    monkeypatch.chdir(tmp_path)
    with cluster_of_this_process(1):
        result = sweep(tmp_path, SWEEP, "--workers", "1", "--metrics", "figures:speed")
        assert result.exit_code == 0, result.output
        rows = pyarrow.parquet.read_table(tmp_path / "out").to_pylist()
        assert [row["body_mass"] for row in rows] == [1.0, 2.0]
        assert all(isinstance(row["speed"], float) for row in rows)
        assert sweep(tmp_path, SWEEP).exit_code == 1  # the folder holds results
        assert sweep(tmp_path, SWEEP, "--resume", "--metrics", "figures:speed").exit_code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SWEEP.replace("steps: 2", "step: 2"), "sweep.yaml:3: step: unknown key 'step'"),
        (SWEEP.replace("steps: 2", ""), "give either 'duration' or 'steps'"),
        (SWEEP.replace("cartpole", "cartpoel.yaml"), "sweep.yaml:2: scene"),
        (SWEEP.replace("body_mass", "body_mas"), "Did you mean body_mass"),
        ("[1, 2]", "a sweep file"),
    ],
)
def test_mistakes_in_a_sweep_file_are_reported(tmp_path, text, message):
    result = sweep(tmp_path, text)
    assert result.exit_code == 1
    assert message in " ".join(result.output.replace("│", " ").split())


def test_missing_metrics_functions_are_reported(tmp_path):
    for name in ("height", "no_such_module:height", "math:pi"):
        result = sweep(tmp_path, SWEEP, "--metrics", name)
        assert result.exit_code == 1
        assert "--metrics" in result.output
