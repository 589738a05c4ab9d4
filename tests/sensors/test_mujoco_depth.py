"""Depth of cameras against MuJoCo's own renderer, where a machine can render without a screen."""

import os
import subprocess
import sys

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.sensors import CameraSensor

WIDTH, HEIGHT = 64, 48
SCENE = f"""
<mujoco model="still">
  <visual><map znear="0.005" zfar="5"/></visual><statistic extent="2" center="0 0 0.5"/>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <camera name="eye" pos="0.3 -2 1.4" xyaxes="1 0.1 0 -0.05 0.5 1" fovy="50" resolution="{WIDTH} {HEIGHT}"/>
    <body pos="0 0 .3"><freejoint/><geom type="box" size=".3 .2 .3"/></body>
    <body pos=".7 .2 .25"><freejoint/><geom type="sphere" size=".25"/></body>
    <body pos="-.7 .1 .4" quat="0.9 0.3 0.2 0"><freejoint/><geom type="capsule" size=".12 .3"/></body>
    <body pos="0 1 .5"><freejoint/><geom type="cylinder" size=".3 .5"/></body>
  </worldbody>
</mujoco>
"""
RENDER = """
import sys
import mujoco, numpy as np
model = mujoco.MjModel.from_xml_string(open(sys.argv[1]).read())
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
renderer = mujoco.Renderer(model, {height}, {width})
renderer.enable_depth_rendering()
renderer.update_scene(data, "eye")
np.save(sys.argv[2], renderer.render())
"""


def mujoco_depth(folder) -> np.ndarray:
    """Return the depth that MuJoCo renders, in a process of its own; skip where it cannot."""
    scene, script, result = folder / "scene.xml", folder / "render.py", folder / "depth.npy"
    scene.write_text(SCENE)
    script.write_text(RENDER.format(width=WIDTH, height=HEIGHT))
    for backend in ("osmesa", "egl"):
        run = subprocess.run(
            [sys.executable, str(script), str(scene), str(result)],
            env={**os.environ, "MUJOCO_GL": backend},
            capture_output=True,
            timeout=600,
            check=False,
        )
        if run.returncode == 0 and result.is_file():
            return np.load(result)
    pytest.skip("MuJoCo renders neither with OSMesa nor with EGL here: install libosmesa6")


def test_depth_is_that_of_mujocos_renderer(tmp_path):
    """Away from edges, where a pixel sees two things, equal but for how MuJoCo draws round shapes."""
    expected = mujoco_depth(tmp_path)
    builder = pv.ModelBuilder()
    builder.add_mjcf(SCENE)
    model = builder.finalize("cpu")
    sensor = CameraSensor(model, "*eye", outputs=["depth"])
    sensor.update(model.state())
    depth = sensor.depth.numpy()[0]
    assert depth.shape == expected.shape == (HEIGHT, WIDTH)
    step = np.zeros_like(expected)
    for axis in (0, 1):
        change = np.abs(np.diff(expected, axis=axis, append=np.take(expected, [-1], axis=axis)))
        step = np.maximum(step, np.maximum(change, np.roll(change, 1, axis=axis)))
    smooth = (step < 0.1) & (expected < 8.0)
    assert smooth.mean() > 0.4  # the rest is sky, the far ground, and edges
    error = np.abs(depth - expected)[smooth] / expected[smooth]
    assert np.median(error) < 1e-3
    assert np.quantile(error, 0.98) < 0.015
