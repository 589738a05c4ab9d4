"""Rest lengths of spatial tendons that no file gives."""

import mujoco
import numpy as np

import pluriverse as pv

DT = 0.002
SLIDERS = """
<mujoco><option gravity="0 0 0" timestep="0.002"/><worldbody>
  <body><joint type="slide" axis="1 0 0" stiffness="20" springref="0.4" damping="8"/>
    <geom size="0.1" mass="2"/><site name="a"/></body>
  <body pos="0 1 0"><joint type="slide" axis="1 0 0" stiffness="20" damping="8"/>
    <geom size="0.1" mass="2"/><site name="b"/></body>
  <body pos="0 2 0"><joint type="slide" axis="1 0 0" stiffness="20" springref="0.4" damping="8"/>
    <geom size="0.1" mass="2"/><site name="c"/></body>
  <site name="wall_a" pos="-1 0 0"/><site name="wall_b" pos="-1 1 0"/><site name="wall_c" pos="-1 2 0"/>
</worldbody><tendon>
  <spatial stiffness="30"><site site="a"/><site site="wall_a"/></spatial>
  <spatial stiffness="30"><site site="b"/><site site="wall_b"/></spatial>
  <spatial stiffness="30" springlength="1.1"><site site="c"/><site site="wall_c"/></spatial>
</tendon></mujoco>
"""


def test_spatial_tendons_rest_where_the_springs_of_the_joints_do():
    """At `springref`, at zero, and at the length of the file: the sliders come to rest where MuJoCo's do."""
    reference = mujoco.MjModel.from_xml_string(SLIDERS)
    data = mujoco.MjData(reference)
    mujoco.mj_step(reference, data, 2000)
    builder = pv.ModelBuilder()
    pv.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_mjcf(SLIDERS)
    model = builder.finalize("cpu")
    with pv.Simulation(model, pv.SolverMuJoCo(model), dt=DT) as simulation:
        simulation.step(2000)
        rest = simulation.state.joint_q.numpy()
    np.testing.assert_allclose(rest, data.qpos, atol=1e-4)
    np.testing.assert_allclose(rest, [0.4, 0.0, 0.22], atol=1e-4)  # (20 0.4 + 30 0.1) / 50
