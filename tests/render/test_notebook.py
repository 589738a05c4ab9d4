"""What a notebook shows of a simulation."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

import pluriverse as pv


def test_a_picture_and_a_table_of_kinds_are_shown(monkeypatch):
    """The table counts worlds of each kind as they were built; the picture is a picture."""
    monkeypatch.setattr("pluriverse.render.notebook.PICTURE_SIZE", (60, 30))
    ball = pv.ModelBuilder()
    ball.add_shape_sphere(ball.add_body(xform=(0, 0, 1, 0, 0, 0, 1)), radius=0.3, color=(1.0, 0.0, 0.0))
    pair = pv.ModelBuilder()
    for x in (0.0, 1.0):
        pair.add_shape_box(pair.add_body(xform=(x, 0, 1, 0, 0, 0, 1)), hx=0.2, hy=0.2, hz=0.2)
    builder = pv.ModelBuilder()
    for world in (ball, pair, ball, ball):
        builder.add_world(world)
    with pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1) as simulation:
        simulation.step(3)
        q = simulation.state.joint_q.numpy().copy()
        q[7] = np.nan
        simulation.state.joint_q.assign(q)
        with pytest.warns(UserWarning, match="frozen|froze"):
            simulation.step(1)
        html = simulation._repr_html_()
    assert "<b>4 worlds</b> · 0.04 s · step 4 of 0.01 s · SolverSAP on cpu" in html
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)[1:]]
    assert rows == [["0, 2, 3", "3", "1", "6", "1", "0.0", ""], ["1", "1", "2", "12", "2", "0.0", "1"]]
    data = base64.b64decode(re.search(r"base64,([^\"]+)", html)[1])
    picture = np.asarray(Image.open(io.BytesIO(data)))
    assert picture.shape == (30, 60, 3)
    assert picture.std() > 5.0
