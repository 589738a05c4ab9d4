"""A pull that ends in one thread while another one applies it."""

import threading

import numpy as np

import pluriverse as pv
from pluriverse.viewer.pull import Pull


def test_a_pull_that_ends_while_its_force_is_computed_leaves_none(monkeypatch):
    """The browser's thread ends it after the loop that steps computed a force, and before it wrote that."""
    builder = pv.ModelBuilder()
    body = builder.add_body(xform=(0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_sphere(body, radius=0.3)
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1)
    pull = Pull(simulation, body, None)
    pull.target = np.array([0.0, 0.0, 2.0])
    pull.apply()
    assert simulation.state.body_f.numpy()[body, 2] > 0.0

    end = threading.Thread(target=pull.release)
    write = pull._exert

    def write_late(force):
        if force.any():
            end.start()
            end.join(0.5)  # it may end now, or has to wait
        write(force)

    monkeypatch.setattr(pull, "_exert", write_late)
    pull.apply()
    end.join(300.0)
    assert not end.is_alive()
    assert not simulation.state.body_f.numpy().any()
