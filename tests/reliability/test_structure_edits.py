"""Indices written into the structure of a model: they act nowhere, and are reported."""

import numpy as np
import pytest

from pluriverse import ModelBuilder, Simulation
from pluriverse.model.schema import STRUCTURE
from pluriverse.solvers import SolverMuJoCo, SolverSAP
from pluriverse.warnings import StructureEditWarning

GARBAGE = [-7, 10**6, 2**31 - 1, -(2**31)]


def make_model():
    """Return two worlds with a free box on the ground and two hinges that an equality constraint couples."""
    kind = ModelBuilder()
    box = kind.add_body(xform=((0.0, 0.0, 0.099), (0.0, 0.0, 0.0, 1.0)))
    kind.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1)
    hinges = []
    for index in range(2):
        link = kind.add_link(
            xform=((1.0 + index, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0)), mass=1.0, inertia=0.1 * np.eye(3)
        )
        hinges.append(
            kind.add_joint_revolute(
                -1, link, parent_xform=((1.0 + index, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0)), axis=(0.0, 1.0, 0.0)
            )
        )
        kind.add_articulation([hinges[-1]])
        kind.add_shape_sphere(link, radius=0.05)
    kind.add_equality_constraint_joint(joint1=hinges[0], joint2=hinges[1])
    builder = ModelBuilder()
    builder.replicate(kind, 2)
    builder.add_ground_plane()
    return builder.finalize(device="cpu")


@pytest.mark.parametrize("make", [SolverSAP, SolverMuJoCo])
def test_what_is_written_into_the_structure_reaches_no_kernel(make):
    """A step with garbage in all arrays of the structure has the bits of one without, and a warning."""
    clean, dirty = (Simulation(model := make_model(), make(model), dt=0.005, threads=1) for _ in range(2))
    clean.step()
    dirty.step()
    for place, name in enumerate(STRUCTURE):
        array = getattr(dirty.model, name)
        if array.size:
            values = array.numpy()
            values[...] = np.resize(GARBAGE[place % 4 :], values.shape).astype(values.dtype)
            array.assign(values)
    dirty.contacts.rigid_contact_start.fill_(10**6)
    for simulation in (clean, dirty):
        simulation.step(4)
    np.testing.assert_array_equal(dirty.state.joint_q.numpy(), clean.state.joint_q.numpy())
    np.testing.assert_array_equal(dirty.state.body_q.numpy(), clean.state.body_q.numpy())
    with pytest.warns(StructureEditWarning, match="shape_body"):
        dirty.report()


def test_a_solver_is_not_made_of_a_structure_that_was_written_to():
    """What is evaluated on the host when a solver is made must be the structure that steps use."""
    model = make_model()
    model.joint_child.fill_(10**6)
    for make in (SolverSAP, SolverMuJoCo):
        with pytest.raises(ValueError, match=r"joint_child.*after finalize"):
            make(model)
