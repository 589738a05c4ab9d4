"""Robots whose limits nobody stiffened behave as in MuJoCo, without the custom attributes as well."""

import mujoco
import numpy as np
import pytest

import pluriverse as pv

DT = 0.005
# A light shank that begins half a radian beyond its limit, as robots do whose zero pose is not among theirs.
LEG = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body pos="0 0 1">
      <joint name="hip" axis="0 1 0" range="-1 1"/>
      <inertial mass="1" pos="0 0 -0.1" diaginertia="0.005 0.005 0.001"/>
      <body pos="0 0 -0.2">
        <joint name="knee" axis="0 1 0" range="-2.8 -0.5"/>
        <inertial mass="0.2" pos="0 0 -0.1" diaginertia="0.0005 0.0005 0.0001"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("registered", [False, True])
def test_a_limit_violated_at_the_start_moves_as_in_mujoco(registered):
    """Gains as by default say nothing, so the limit is MuJoCo's own, which its step resolves."""
    builder = pv.ModelBuilder()
    if registered:
        pv.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_mjcf(LEG)
    model = builder.finalize("cpu")
    plain = mujoco.MjModel.from_xml_string(LEG)
    plain.opt.timestep, plain.opt.integrator = DT, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(plain)
    with pv.Simulation(model, pv.SolverMuJoCo(model), dt=DT) as simulation:
        for _ in range(100):
            simulation.step()
            mujoco.mj_step(plain, data)
        # The model keeps its numbers in single precision, and half a second of swinging amplifies that.
        np.testing.assert_allclose(simulation.state.joint_q.numpy(), data.qpos, rtol=0.0, atol=1e-4)
        assert not simulation.report().frozen_worlds


def test_gains_that_were_set_are_forces():
    """A limit of 500 N·m/rad holds a static torque of 5 N·m 0.01 rad beyond its end."""
    builder = pv.ModelBuilder(gravity=0.0)
    link = builder.add_link(mass=1.0, inertia=np.eye(3) * 0.1)
    hinge = builder.add_joint_revolute(
        -1, link, limit_lower=-1.0, limit_upper=1.0, limit_ke=500.0, limit_kd=20.0
    )
    builder.add_articulation([hinge])
    builder.joint_q[:] = 1.0
    model = builder.finalize("cpu")
    with pv.Simulation(model, pv.SolverMuJoCo(model), dt=DT) as simulation:
        simulation.control.joint_f.fill_(5.0)
        simulation.step(1000)
        # The impedance at this violation is its largest, 0.95, for which the gains are exact.
        assert simulation.state.joint_q.numpy()[0] - 1.0 == pytest.approx(0.01, rel=1e-3)


def test_a_limit_of_an_asset_is_that_of_mujoco_until_its_gains_are_changed():
    """A limit without solref rests where MuJoCo has it; with gains of its own, where force and gain say."""
    builder = pv.ModelBuilder(gravity=0.0)
    pv.SolverMuJoCo.register_custom_attributes(builder)
    with pytest.warns(pv.importers.AssetWarning, match="gravity"):
        builder.add_mjcf(LEG.replace("-2.8 -0.5", "-2.8 0.5"))
    model = builder.finalize("cpu")
    assert model.mujoco.solreflimit_mode.numpy().tolist() == [pv.solvers.mujoco.SolrefMode.MJCF_DEFAULT] * 2
    solver = pv.SolverMuJoCo(model)
    (group,) = solver.groups
    np.testing.assert_array_equal(group.model.jnt_solref, [[0.02, 1.0]] * 2)
    gains = model.joint_limit_ke.numpy()
    gains[1] = 500.0
    model.joint_limit_ke.assign(gains)
    solver.notify_model_changed(pv.ModelFlags.JOINT_DOF_PROPERTIES)
    np.testing.assert_array_equal(group.model.jnt_solref[0], [0.02, 1.0])
    # The force of a violation beyond the width of the impedance, with the inverse weight w of the joint.
    weight, dmax = group.model.dof_invweight0[1], group.model.jnt_solimp[1, 1]
    timeconst, dampratio = group.model.jnt_solref[1]
    assert 1.0 / (timeconst * dampratio) ** 2 / (weight * (1.0 - dmax)) == pytest.approx(500.0, rel=1e-5)
