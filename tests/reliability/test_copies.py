"""`copy` and `pickle`, as scripts use them to keep a state, and to send a builder to another process."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import pluriverse as pv
from tests.simulation.worlds import assert_same_bits, world_bits

ROBOT = """
<mujoco>
  <asset><mesh name="wedge" vertex="0 0 0 .1 0 0 0 .1 0 0 0 .1 .1 .1 0"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 .1"/><camera name="eye" pos="0 0 1"/>
    <body name="base" pos="0 0 .3">
      <freejoint/><geom type="box" size=".1 .1 .05"/><site name="imu"/>
      <body name="leg"><joint name="hip" axis="0 1 0" damping=".1"/><geom type="mesh" mesh="wedge"/></body>
    </body>
  </worldbody>
  <tendon><fixed name="t"><joint joint="hip" coef="1"/></fixed></tendon>
  <actuator><position joint="hip" kp="5"/><motor tendon="t"/></actuator>
  <sensor><accelerometer site="imu"/><jointpos joint="hip"/></sensor>
</mujoco>
"""


def make_builder() -> pv.ModelBuilder:
    robot, builder = pv.ModelBuilder(), pv.ModelBuilder()
    robot.add_mjcf(ROBOT)
    builder.replicate(robot, 2)
    return builder


def run(builder: pv.ModelBuilder) -> list[dict[str, np.ndarray]]:
    model = builder.finalize("cpu")
    with pv.Simulation(model, dt=0.005, threads=1) as simulation:
        simulation.control.mujoco.ctrl.fill_(0.3)
        simulation.step(20)
        return [world_bits(model, simulation.state, world) for world in range(model.world_count)]


def test_copies_of_states_and_controls_have_their_own_numbers():
    """As `old = copy.copy(state)` is meant: what is written later does not reach it."""
    model = make_builder().finalize("cpu")
    for original in (model.state(), model.control()):
        for make_copy in (copy.copy, copy.deepcopy):
            before = {name: array.numpy().copy() for name, array in original.arrays().items()}
            copied = make_copy(original)
            for array in original.arrays().values():
                array.assign(array.numpy() + np.float32(1.0))
            assert type(copied) is type(original)
            assert copied.arrays().keys() == before.keys()
            for name, array in copied.arrays().items():
                np.testing.assert_array_equal(array.numpy(), before[name])


def test_what_cannot_be_copied_or_pickled_says_what_to_do_instead():
    model = make_builder().finalize("cpu")
    with pv.Simulation(model, dt=0.005) as simulation:
        remedies = {
            model: ("finalize", "ModelBuilder"),
            simulation: (r"save\(\)", "in the process"),
            simulation.solver: ("another solver", "where it is used"),
            simulation.contacts: (r"numpy\(\)", r"numpy\(\)"),
            pv.CollisionPipeline(model): ("another pipeline", "where it is used"),
        }
        for one, (instead_of_copying, instead_of_pickling) in remedies.items():
            for make_copy in (copy.copy, copy.deepcopy):
                with pytest.raises(TypeError, match=rf"{type(one).__name__} .*{instead_of_copying}"):
                    make_copy(one)
            with pytest.raises(TypeError, match=rf"{type(one).__name__} .*{instead_of_pickling}"):
                pickle.dumps(one)
        with pytest.raises(TypeError, match=r"Keep the snapshot itself"):
            copy.deepcopy(simulation.save())
        with pytest.raises(TypeError, match=r"State .*save\(\)"):
            pickle.dumps(simulation.state)


def test_builders_are_copied_and_pickled_with_all_that_they_hold():
    """Each moves as the original does, to the bit, however they were handed on."""
    builder = make_builder()
    expected = run(builder)
    for other in (copy.deepcopy(builder), pickle.loads(pickle.dumps(builder))):
        for world, bits in enumerate(run(other)):
            assert_same_bits(bits, expected[world], f"world {world}")


def test_a_builder_can_be_sent_to_another_process():
    """Workers that are not forked get their arguments pickled."""
    builder = make_builder()
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        found = pool.apply(run, (builder,))
    for world, bits in enumerate(run(builder)):
        assert_same_bits(bits, found[world], f"world {world}")
