"""The scene files and command lines of the documentation work."""

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pluriverse.cli.app import app
from pluriverse.scene import bundled_scenes, load_scene
from pluriverse.scene.document import read_scene_document
from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.schema import SolverOptions
from pluriverse.scene.validation import validate_scene

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("index", range(len(blocks("scenes.md", "yaml"))))
def test_scenes_of_the_page_are_valid(tmp_path, index):
    text = blocks("scenes.md", "yaml")[index]
    path = tmp_path / "scene.yaml"
    path.write_text(text, encoding="utf-8")
    features: list[str] = []
    validate_scene(read_scene_document(path), strict=True, features=features)
    assert features == []
    if "assets:" not in text and "schema_version" in text:
        shutil.copytree(bundled_scenes()["quadruped"].parent / "robots", tmp_path / "robots")
        (tmp_path / "quadruped.yaml").write_text(bundled_scenes()["quadruped"].read_text())
        assert load_scene(path, device="cpu").model.body_count > 0


def test_every_key_of_the_format_is_on_the_page():
    """A key that a scene may write is documented; the solver's options are on the solver's page."""
    scenes, clusters = ((DOCS / page).read_text(encoding="utf-8") for page in ("scenes.md", "cluster.md"))

    def models(model=SceneMapping):
        for below in model.__subclasses__():
            yield below
            yield from models(below)

    missing = {
        name
        for model in models()
        for name in model.model_fields
        if model is not SolverOptions
        and not re.search(rf"\b{name}\b", clusters if model.__module__.endswith("sweep_file") else scenes)
    }
    assert missing == set()


@pytest.mark.parametrize("line", "\n".join(blocks("cli.md", "bash")).split("\n"))
def test_command_lines_of_the_page_run(tmp_path, monkeypatch, line):
    if not line:
        return
    monkeypatch.chdir(tmp_path)
    program, *arguments = line.split()
    assert program == "pluriverse"
    if "run.pvr" in arguments and "run" not in arguments:  # a recording that an earlier line makes
        recorded = CliRunner().invoke(app, ["run", "mixed", "--frames", "5", "--record", "run.pvr"])
        assert recorded.exit_code == 0, recorded.output
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
