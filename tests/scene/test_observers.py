"""Sensors and cameras of a scene file, on robots of any format and on inline bodies."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.scene import SapSceneLoaderError

URDF = """
<robot name="bot"><link name="base"><inertial><mass value="2"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="arm"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" effort="10" velocity="5"/></joint></robot>
"""
SCENE = """
schema_version: 1
simulation: {dt: 0.01, num_worlds: 3}
ground: false
assets:
  - {type: urdf, source: bot.urdf, floating: true}
sensors:
  - {type: accelerometer, body: bot/base, label: acc}
  - {type: jointpos, joint: elbow, label: angle}
  - {type: touch, body: bot/arm, zone: {type: sphere, size: [0.1, 0, 0]}, label: tip}
cameras:
  - {label: side, xform: {p: [3, 0, 0], q: [0.5, 0.5, 0.5, 0.5]}, width: 8, height: 6}
  - {label: chase, body: bot/base, mode: target, target: bot/arm}
"""


def load(folder, text: str):
    (folder / "bot.urdf").write_text(URDF)
    (folder / "scene.yaml").write_text(text)
    return pv.load_scene(folder / "scene.yaml")


def test_sensors_and_cameras_of_a_scene_are_in_every_world(tmp_path):
    """A falling robot reads no acceleration; each world has both cameras."""
    scene = load(tmp_path, SCENE)
    with scene.simulation() as simulation:
        sensors = simulation.sensors
        simulation.step(3)
        assert sensors.names == ("acc", "angle", "tip")
        assert sensors["acc"].shape == (3, 3)
        np.testing.assert_allclose(sensors["acc"].numpy(), 0.0, atol=1e-3)
        np.testing.assert_array_equal(sensors["tip"].numpy(), 0.0)
    labels = scene.model.custom_arrays["render:camera_label"]
    assert labels == ["side", "chase"] * 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("type: accelerometer", "type: accelerator", r"sensors\[0\].type: there is no sensor 'accelerator'"),
        ("joint: elbow", "joint: knee", r"sensors\[1\].joint"),
        (", zone: {type: sphere, size: [0.1, 0, 0]}", "", r"sensors\[2\].*a touch needs a zone"),
        (", target: bot/arm", "", r"cameras\[1\].mode: .*needs a 'target'"),
        ("width: 8", "width: 0", r"cameras\[0\].width"),
    ],
)
def test_wrong_entries_are_named_with_file_and_field(tmp_path, old, new, message):
    """The error has the field, what is wrong, and what there is."""
    assert old in SCENE
    with pytest.raises(SapSceneLoaderError, match=message):
        load(tmp_path, SCENE.replace(old, new))
