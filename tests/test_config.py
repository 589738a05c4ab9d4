"""Settings of the process: each has an effect, and an unknown setting is refused with a list of all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pluriverse as pv

ROOT = Path(pv.__file__).resolve().parents[1]
BALL = '<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'


def run(program, **environment):
    """Return what a program prints, both streams together, with an empty environment of settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PLURIVERSE", "WARP"))}
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=kept | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return result.stdout


@pytest.mark.parametrize(("value", "is_printed"), [(None, False), (True, True), (False, False)])
def test_verbose_is_the_default_of_importers(monkeypatch, capsys, value, is_printed):
    """True prints the report of every import that does not say otherwise."""
    monkeypatch.setattr(pv.config, "verbose", value)
    pv.ModelBuilder().add_mjcf(BALL)
    assert ("MJCF text" in capsys.readouterr().out) is is_printed
    pv.ModelBuilder().add_mjcf(BALL, verbose=not is_printed)
    assert ("MJCF text" in capsys.readouterr().out) is not is_printed


def test_quiet_prints_nothing_and_verbose_prints_modules(tmp_path):
    """False leaves out the lines of Warp and the progress of compiling, also with an empty kernel cache."""
    program = (
        "import pluriverse as pv; pv.config.verbose = {}; pv.config.kernel_cache_dir = {!r};"
        "import warp as wp; from pluriverse import launch;"
        "kernel = launch.make_launches;"
        "wp.launch(kernel, dim=1, inputs=[wp.zeros(3, dtype=wp.uint64, device='cpu'), 0], device='cpu')"
    )
    printed = run(program.format(False, str(tmp_path / "quiet"))).splitlines()
    assert [line for line in printed if "warning" not in line] == []  # Warp's on a machine without a driver
    assert "Module pluriverse.launch_list" in run(program.format(True, str(tmp_path / "quiet")))
    assert any((tmp_path / "quiet").rglob("*launch_list*"))


def test_a_kernel_cache_comes_too_late_where_one_is_in_use(tmp_path):
    import warp as wp

    wp.init()
    with pytest.raises(RuntimeError, match=r"kernel_cache_dir.*Warp has begun.*WARP_CACHE_PATH"):
        pv.config.kernel_cache_dir = tmp_path
    assert pv.config.kernel_cache_dir is None


def test_folders_take_the_place_of_their_environment_variables(monkeypatch, tmp_path):
    """A setting, else the variable, else a folder below the home."""
    for name, variable, folder in (
        ("mesh_cache_dir", "PLURIVERSE_MESH_CACHE", pv.config.mesh_cache_folder),
        ("asset_cache_dir", "SAP_WARP_ASSET_CACHE", pv.config.asset_cache_folder),
    ):
        monkeypatch.delenv(variable, raising=False)
        assert folder().is_relative_to(Path.home() / ".cache")
        monkeypatch.setenv(variable, "/elsewhere")
        assert folder() == Path("/elsewhere")
        monkeypatch.setattr(pv.config, name, tmp_path)
        assert folder() == tmp_path


def test_meshes_are_kept_where_the_setting_says(monkeypatch, tmp_path):
    """Files of a decomposition or a signed distance appear in that folder."""
    monkeypatch.setattr(pv.config, "mesh_cache_dir", tmp_path)
    pv.Mesh.create_sphere(0.1).signed_distance(max_resolution=8)
    assert list(tmp_path.rglob("*.npz"))


def test_robots_are_found_in_the_roots(monkeypatch, tmp_path):
    from pluriverse.envs.robots import find_robot, get_robot

    file = tmp_path / "robots" / get_robot("go1").files[0]
    file.parent.mkdir(parents=True)
    file.write_text(BALL)
    monkeypatch.setattr(pv.config, "asset_roots", [str(tmp_path)])
    assert find_robot("go1") == file


def test_offline_is_a_setting(monkeypatch):
    monkeypatch.setenv("SAP_WARP_ASSET_OFFLINE", "1")
    assert pv.config.is_offline()
    monkeypatch.setattr(pv.config, "offline", False)
    assert not pv.config.is_offline()


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("quiet", True, AttributeError, r"no such setting.*verbose.*wp\.config"),
        ("verbose", 1, TypeError, "give True, False or None"),
        ("mesh_cache_dir", 3, TypeError, "path of a folder"),
        ("asset_roots", "/robots", TypeError, "list of folders"),
        ("asset_roots", [3], TypeError, "every folder"),
    ],
)
def test_what_is_no_setting_is_refused(name, value, error, message):
    with pytest.raises(error, match=message):
        setattr(pv.config, name, value)


def test_an_unknown_setting_is_named_when_read():
    with pytest.raises(AttributeError, match=r"no setting 'verify_cuda'.*mesh_cache_dir"):
        _ = pv.config.verify_cuda
