"""Activations of actuators start with those of the keyframe."""

import mujoco
import numpy as np

import pluriverse as pv

STEPS, DT = 40, 0.002
TEXT = """
<mujoco>
  <option gravity="0 0 0" integrator="implicitfast" timestep="0.002"/>
  <worldbody>
    <body><joint name="j" type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>
    <body pos="0 1 0"><joint name="k" type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>
  </worldbody>
  <actuator>
    <motor joint="k"/>
    <general joint="k" dyntype="filter" dynprm="0.2" gainprm="3"/>
    <intvelocity joint="j" kp="100" kv="20" actrange="-1 1"/>
  </actuator>
  <keyframe>
    <key name="first" qpos="0.5 0" act="0.75 0.5"/><key name="second" qpos="0 0" act="-2 0.25"/>
  </keyframe>
</mujoco>
"""


def reference(number):
    """Return MuJoCo's model and the coordinates it moves to from a keyframe."""
    model = mujoco.MjModel.from_xml_string(TEXT)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, number)
    mujoco.mj_step(model, data, nstep=STEPS)
    return model, data.qpos


def test_worlds_start_with_the_activations_of_their_keyframe_and_resets_do(tmp_path):
    """Two worlds of one file and of other keyframes move as in MuJoCo, also once they began again."""
    builder = pv.ModelBuilder()
    for number in (0, 1):
        robot = pv.ModelBuilder()
        pv.SolverMuJoCo.register_custom_attributes(robot)
        report = robot.add_mjcf(TEXT, keyframe=number)
        builder.add_world(robot)
        np.testing.assert_array_equal(report.keyframes[number].act, reference(number)[0].key_act[number])
    model = builder.finalize("cpu")
    solver = pv.SolverMuJoCo(model)
    expected = np.concatenate([reference(number)[1] for number in (0, 1)])
    simulation = pv.Simulation(model, solver, dt=DT)
    for _ in range(2):
        simulation.step(STEPS)
        np.testing.assert_allclose(simulation.state.joint_q.numpy(), expected, rtol=1e-5, atol=1e-6)
        simulation.reset()
    simulation.step(3)
    simulation.reset(np.array([False, True]))  # the other world goes on
    simulation.step(STEPS)
    np.testing.assert_allclose(simulation.state.joint_q.numpy()[2:], expected[2:], rtol=1e-5, atol=1e-6)
    assert abs(simulation.state.joint_q.numpy()[1] - expected[1]) > 1e-4

    solver.save_to_mjcf(str(tmp_path / "world.xml"), world=1)
    saved = mujoco.MjModel.from_xml_path(str(tmp_path / "world.xml"))
    np.testing.assert_allclose(saved.key("initial").act, [-2.0, 0.25])
