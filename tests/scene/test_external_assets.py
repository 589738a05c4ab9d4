"""Files from elsewhere below the folder of an MJCF model."""

import pytest

from pluriverse.scene import SapSceneLoaderError, load_scene

from .scene_files import write_scene
from .test_git_source import MESH, cache, commit_files  # noqa: F401 (a fixture)

MODEL = (
    "<mujoco><compiler meshdir='meshes'/><asset><mesh name='a' file='own.obj'/>"
    "<mesh name='b' file='shared/part.obj'/></asset><worldbody><body><freejoint/><geom type='mesh' mesh='a'/>"
    "<geom type='mesh' mesh='b'/></body></worldbody></mujoco>"
)


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a scene with a model that lacks a mesh, and that mesh elsewhere."""
    (tmp_path / "model" / "meshes").mkdir(parents=True)
    (tmp_path / "model" / "robot.xml").write_text(MODEL)
    (tmp_path / "model" / "meshes" / "own.obj").write_text(MESH)
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "part.obj").write_text(MESH)
    return tmp_path


def load(folder, *entries):
    text = "assets:\n  - type: mjcf\n    source: model/robot.xml\n    external_assets:\n"
    text += "".join(f"      - {entry}\n" for entry in entries)
    return load_scene(write_scene(folder, text), device="cpu")


@pytest.mark.parametrize(
    "entry",
    [
        "{target: meshes/shared/part.obj, path: library/part.obj}",
        "{target: meshes/shared/part.obj, source: library/part.obj}",
        "{target: meshes/shared/part.obj, source: {path: library/part.obj}}",
        "{target: meshes/shared, path: library}",
    ],
)
def test_the_model_finds_the_file_where_it_looks_for_it(folder, entry):
    """And the folder of the model stays as it is."""
    assert load(folder, entry).model.shape_count == 3  # two meshes and the ground
    assert sorted(path.name for path in folder.glob("model/**/*.*")) == ["own.obj", "robot.xml"]


@pytest.mark.parametrize("form", ["git: {}", "source: {{git: {}}}"])
def test_external_assets_come_from_git(folder, cache, form):  # noqa: F811
    commit = commit_files(folder / "repository", {"parts/part.obj": MESH})
    git = f"{{repo: 'file://{folder}/repository', rev: '{commit}', path: parts}}"
    assert load(folder, "{target: meshes/shared, " + form.format(git) + "}").model.shape_count == 3


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "{target: meshes/shared, path: nowhere}",
            r":5: assets\[0\].external_assets\[0\]: there is no file or folder",
        ),
        (
            "{target: meshes/own.obj, path: library/part.obj}",
            r"\[0\].target: the model has 'meshes/own.obj' itself",
        ),
        (
            "{target: robot.xml/a, path: library/part.obj}",
            r"\[0\].target: 'robot.xml' is a file of the model",
        ),
        ("{target: ../a, path: library/part.obj}", r"\[0\].target: '../a' leads out"),
        ("{target: /a, path: library/part.obj}", r"\[0\].target: '/a' must be relative"),
        ("{target: a, path: /etc/passwd}", r"external_assets\[0\]: '/etc/passwd' lies outside"),
        ("{target: a}", r"external_assets\[0\]: give one of 'source', 'path' and 'git'"),
        ("{target: a, path: b, source: c}", r"external_assets\[0\]: give one of 'source', 'path' and 'git'"),
        ("{target: a, source: {menagerie: b}}", r"'source' is a path or"),
        ("{path: library}", r"external_assets\[0\].target: this required key is missing"),
    ],
)
def test_what_is_wrong_is_named(folder, entry, message):
    with pytest.raises(SapSceneLoaderError, match=message):
        load(folder, entry)
