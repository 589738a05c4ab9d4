"""Robots of the MuJoCo Menagerie; a folder stands for what its package would fetch."""

import pytest

from pluriverse.scene import SapSceneLoaderError

from .scene_files import load_text

mujoco_menagerie = pytest.importorskip("mujoco_menagerie", reason="mujoco-menagerie is not installed")

ROBOT = "<mujoco model='{}'><worldbody><body><freejoint/><geom size='0.1'/></body></worldbody></mujoco>"


@pytest.fixture
def menagerie(tmp_path, monkeypatch):
    """Return a folder in place of the Menagerie, with two models of one robot."""
    folder = tmp_path / "menagerie" / "unitree_go2"
    folder.mkdir(parents=True)
    robot = mujoco_menagerie.get("unitree_go2")
    for entry in robot.entry_points:
        (folder / entry.file).write_text(ROBOT.format(entry.name))
    monkeypatch.setenv("MENAGERIE_ROOT", str(folder.parent))
    return robot, folder


def load_robot(tmp_path, source, kind="mjcf"):
    return load_text(tmp_path, f"assets:\n  - type: {kind}\n    source:\n      menagerie: {source}\n")


def test_the_robot_alone_is_the_default_and_other_models_have_names(tmp_path, menagerie):
    robot, _ = menagerie
    assert load_robot(tmp_path, "unitree_go2").body_labels[0].startswith(robot.default_model)
    scene = load_robot(tmp_path, f"{{robot: unitree_go2, entry: {robot.default_scene}}}")
    assert scene.body_labels[0].startswith(robot.default_scene)


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("unitree_go3", "mjcf", "has no robot 'unitree_go3'; did you mean unitree_go"),
        ("{robot: unitree_go2, entry: scnee}", "mjcf", "has no model 'scnee'; did you mean scene"),
        ("unitree_go2", "urdf", "write type: mjcf"),
        ("unitree_go1", "mjcf", "not found under MENAGERIE_ROOT"),
        ("../../etc", "mjcf", "has no robot"),
        ("{robt: unitree_go2}", "mjcf", "unknown key 'robt'; did you mean robot"),
        ("3", "mjcf", "3 is not a mapping"),
    ],
)
def test_robots_that_are_not_there(tmp_path, menagerie, source, kind, message):
    with pytest.raises(SapSceneLoaderError, match=message):
        load_robot(tmp_path, source, kind)


def test_offline_a_robot_that_is_not_cached_is_an_error(tmp_path, monkeypatch):
    monkeypatch.delenv("MENAGERIE_ROOT", raising=False)
    monkeypatch.setenv("MENAGERIE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("SAP_WARP_ASSET_OFFLINE", "1")
    with pytest.raises(SapSceneLoaderError, match="mujoco-menagerie prefetch unitree_go2"):
        load_robot(tmp_path, "unitree_go2")


def test_a_robot_refers_to_nothing_outside_of_its_folder(tmp_path, menagerie):
    robot, folder = menagerie
    (tmp_path / "menagerie" / "other.xml").write_text("<mujocoinclude/>")
    (folder / robot.entry(robot.default_model).file).write_text(
        "<mujoco><include file='../other.xml'/></mujoco>"
    )
    with pytest.raises(SapSceneLoaderError, match="outside"):
        load_robot(tmp_path, "unitree_go2")


def test_without_the_package_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mujoco_menagerie", None)
    with pytest.raises(SapSceneLoaderError, match=r"pluriverse\[menagerie\]"):
        load_robot(tmp_path, "unitree_go2")
