"""Custom attributes of states and controls in a simulation: they stay until they are written to."""

import numpy as np
import pytest
import warp as wp

from pluriverse import Model, ModelBuilder, Simulation

Frequency, Assignment = Model.AttributeFrequency, Model.AttributeAssignment


def make_simulation(worlds: int = 3) -> Simulation:
    """Return a simulation of falling balls with attributes of all kinds of entities."""
    ball = ModelBuilder()
    for name, dtype, frequency, assignment in (
        ("heat", wp.vec3, Frequency.BODY, Assignment.STATE),
        ("wet", bool, Frequency.WORLD, Assignment.STATE),
        ("step", int, Frequency.ONCE, Assignment.STATE),
        ("gain", float, Frequency.JOINT_DOF, Assignment.CONTROL),
        ("label", float, Frequency.SHAPE, Assignment.MODEL),
        ("charge", float, "lab:cable", Assignment.STATE),
    ):
        if isinstance(frequency, str):
            ball.add_custom_frequency(ModelBuilder.CustomFrequency("cable", namespace="lab"))
        ball.add_custom_attribute(
            ModelBuilder.CustomAttribute(name, dtype, frequency, assignment, namespace="lab")
        )
    body = ball.add_body(custom_attributes={"lab:heat": (1.0, 2.0, 3.0)})
    ball.add_shape_sphere(body, radius=0.1)
    ball.add_custom_values(**{"lab:charge": 5.0})
    ball.add_custom_values(**{"lab:charge": 6.0})
    builder = ModelBuilder()
    builder.replicate(ball, worlds)
    return Simulation(builder.finalize("cpu"), dt=0.01, threads=1)


def test_attributes_of_a_state_stay_from_step_to_step():
    """Two states take turns; what was written to one is seen after each number of steps."""
    simulation = make_simulation()
    simulation.state.lab.heat.fill_(wp.vec3(7.0, 7.0, 7.0))
    for count in (1, 1, 2):
        simulation.step(count)
        np.testing.assert_array_equal(simulation.state.lab.heat.numpy(), np.full((3, 3), 7.0))


@pytest.mark.parametrize("worlds", [[1], np.array([False, True, False])], ids=["index", "mask"])
def test_reset_of_worlds_puts_their_attributes_back(worlds):
    """Only what belongs to the worlds concerned begins again."""
    simulation = make_simulation()
    state = simulation.state
    state.lab.heat.fill_(wp.vec3(7.0, 7.0, 7.0))
    state.lab.wet.fill_(value=True)
    state.lab.charge.fill_(0.0)
    state.lab.step.fill_(4)
    simulation.step(3)
    simulation.reset(worlds)
    names = simulation.state.lab
    np.testing.assert_array_equal(names.heat.numpy(), [[7, 7, 7], [1, 2, 3], [7, 7, 7]])
    np.testing.assert_array_equal(names.wet.numpy(), [True, False, True])
    np.testing.assert_array_equal(names.charge.numpy(), [0, 0, 5, 6, 0, 0])
    np.testing.assert_array_equal(names.step.numpy(), [4])  # of no world
    simulation.reset()
    np.testing.assert_array_equal(simulation.state.lab.heat.numpy(), [[1, 2, 3]] * 3)
    np.testing.assert_array_equal(simulation.state.lab.step.numpy(), [0])


def test_a_snapshot_holds_attributes_of_state_control_and_model(tmp_path):
    """What is restored, from memory or from a file, is what was saved, bit for bit."""
    simulation = make_simulation()
    simulation.step(5)
    simulation.state.lab.charge.assign(np.arange(6.0))
    simulation.control.lab.gain.fill_(0.1)
    simulation.model.lab.label.assign([0.1, 0.2, 0.3])
    snapshot = simulation.save(tmp_path / "snapshot.npz")
    for source in (snapshot, tmp_path / "snapshot.npz"):
        simulation.state.lab.charge.zero_()
        simulation.control.lab.gain.zero_()
        simulation.model.lab.label.zero_()
        simulation.restore(source)
        np.testing.assert_array_equal(simulation.state.lab.charge.numpy(), np.arange(6.0))
        np.testing.assert_array_equal(simulation.control.lab.gain.numpy(), np.full(18, np.float32(0.1)))
        np.testing.assert_array_equal(simulation.model.lab.label.numpy(), np.float32([0.1, 0.2, 0.3]))


def test_a_state_in_a_file_has_its_attributes(tmp_path):
    """State.save and State.load carry attributes; a file without them is refused."""
    simulation, plain = make_simulation(), ModelBuilder()
    state = simulation.model.state()
    state.lab.heat.fill_(wp.vec3(1.0, 0.1, 3.0))
    state.save(tmp_path / "state.npz")
    other = simulation.model.state()
    other.load(tmp_path / "state.npz")
    np.testing.assert_array_equal(other.lab.heat.numpy(), state.lab.heat.numpy())
    for _ in range(3):
        plain.add_body(mass=1.0, inertia=np.eye(3))
    plain.finalize("cpu").state().save(tmp_path / "plain.npz")
    with pytest.raises(ValueError, match="lab:heat"):
        other.load(tmp_path / "plain.npz")
