"""Few contacts solved in their own space: which worlds have room for it."""

import numpy as np

import pluriverse as pv
from pluriverse.solvers.sap.workspace import SPACE_DOFS_MAX


def test_worlds_too_large_for_the_space_of_their_contacts_rest_like_others():
    """A model in which no world is small enough has no scratch for it, and must not write any.

    Boxes far apart rest as deep in the ground as one alone, whether their world is small or large.
    """
    heights = []
    for count in (1, SPACE_DOFS_MAX // 6 + 2):
        builder = pv.ModelBuilder()
        builder.add_ground_plane()
        for index in range(count):
            body = builder.add_body(xform=((2.0 * index, 0.0, 0.1), (0.0, 0.0, 0.0, 1.0)))
            builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
        simulation = pv.Simulation(builder.finalize("cpu"), dt=0.005, threads=1)
        simulation.step(100)
        heights.append(simulation.state.body_q.numpy().reshape(-1, 7)[:, 2])
    alone, many = heights
    np.testing.assert_allclose(many, np.full(len(many), alone[0]), atol=1e-6)
