"""A MuJoCo that computes wrong accelerations is neither installed nor used."""

import tomllib
from pathlib import Path

import mujoco
import numpy as np
import pytest
from packaging.requirements import Requirement

from pluriverse import ModelBuilder, SolverMuJoCo

PROJECT = Path(__file__).parents[3] / "pyproject.toml"


def test_the_pins_leave_out_the_faulty_version():
    """MuJoCo and MuJoCo Warp have the same pins, which admit neither 4.0.0 nor what came before 3.14."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    texts = [*project["dependencies"], *project["optional-dependencies"]["mujoco-warp"]]
    pins = {pin.name: pin.specifier for pin in map(Requirement, texts) if pin.name.startswith("mujoco")}
    assert set(pins) == {"mujoco", "mujoco-warp"}
    assert pins["mujoco"] == pins["mujoco-warp"]
    admitted = [
        version for version in ("3.13.0", "3.14.0", "3.17.0", "4.0.0", "4.0.1") if version in pins["mujoco"]
    ]
    assert admitted == ["3.14.0", "3.17.0", "4.0.1"]
    assert mujoco.mj_versionString() in pins["mujoco"]


def test_a_faulty_version_is_refused(monkeypatch):
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    model = builder.finalize("cpu")
    monkeypatch.setattr(mujoco, "mj_versionString", lambda: "4.0.0")
    with pytest.raises(ImportError, match=r"MuJoCo 4\.0\.0 is installed, but its Newton solver"):
        SolverMuJoCo(model)
