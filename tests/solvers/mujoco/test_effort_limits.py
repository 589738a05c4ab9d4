"""Effort limits of drives in MuJoCo: a servo at its limit exerts it, and ranges of joints bound the sum."""

import warnings

import mujoco
import numpy as np
import pytest

import pluriverse as pv

STEPS, DT = 20, 0.002
TEXT = """
<mujoco>
  <option gravity="0 0 0" integrator="implicitfast"/>
  <worldbody><body>
    <joint name="j" axis="0 0 1" {joint}/>
    <geom size="0.05" pos="0.1 0 0" mass="0.9"/><site name="s" pos="0.1 0 0"/>
  </body></worldbody>
  <tendon><fixed name="t"><joint joint="j" coef="0.5"/></fixed></tendon>
  <actuator>{actuators}</actuator>
</mujoco>
"""
POSITION = '<position joint="j" kp="1000" kv="20" forcerange="-1 1"/>'
VELOCITY = '<velocity joint="j" kv="20" forcerange="-1 1"/>'
UNBOUNDED = '<position joint="j" kp="1000" kv="20"/>'
PULL = '<motor tendon="t" gear="4"/>'
URDF = """
<robot name="arm"><link name="base"/>
  <link name="rod"><inertial><origin xyz="0.1 0 0"/><mass value="0.9"/>
    <inertia ixx="0.0009" iyy="0.0009" izz="0.0009" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 0 1"/>
    <limit lower="-9" upper="9" effort="1" velocity="100"/></joint>
</robot>
"""


def reference_speed(text, control):
    """Return the speed of the joint after all steps in MuJoCo."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.ctrl[:] = control
    model.opt.timestep = DT
    mujoco.mj_step(model, data, nstep=STEPS)
    return data.qvel[0]


def speed(builder, controls=(), limit=None):
    """Return the speed of the joint after all steps with its target far ahead."""
    model = builder.finalize("cpu")
    solver = pv.SolverMuJoCo(model)
    if limit is not None:
        model.joint_effort_limit.fill_(limit)
        solver.notify_model_changed(pv.ModelFlags.JOINT_DOF_PROPERTIES)
    simulation = pv.Simulation(model, solver, dt=DT)
    if model.joint_target_mode.numpy().any():
        simulation.control.joint_target_pos.fill_(30.0)
        simulation.control.joint_target_vel.fill_(30.0)
    if any(controls):
        simulation.control.mujoco.ctrl.assign(controls)
    simulation.step(STEPS)
    return simulation.state.joint_qd.numpy()[0]


@pytest.mark.parametrize("registered", [False, True], ids=["plain", "registered"])
@pytest.mark.parametrize(
    ("joint", "actuators", "pull"),
    [
        ("", POSITION, 0.0),
        ("", VELOCITY, 0.0),
        ('actuatorfrcrange="-1 1"', UNBOUNDED, 0.0),
        ('actuatorfrcrange="-1 1"', POSITION, 0.0),
        ("", POSITION + PULL, -0.2),
    ],
    ids=["position", "velocity", "joint", "both alike", "beside a tendon"],
)
def test_limits_act_where_the_document_has_them(joint, actuators, pull, registered):
    """A servo at its own limit has no damping left; MuJoCo keeps it where only the joint has a range."""
    text = TEXT.format(joint=joint, actuators=actuators)
    builder = pv.ModelBuilder()
    if registered:
        pv.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_mjcf(text)
    expected = reference_speed(text, [30.0, pull] if pull else [30.0])
    np.testing.assert_allclose(speed(builder, [0.0, pull]), expected, rtol=1e-5)


def test_a_servo_and_its_joint_keep_a_limit_each():
    """What a tendon adds to a servo at its limit reaches the range of the joint."""
    text = TEXT.format(joint='actuatorfrcrange="-1.2 1.2"', actuators=POSITION + PULL)
    builder = pv.ModelBuilder()
    pv.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_mjcf(text)
    expected = reference_speed(text, [30.0, 0.2])
    np.testing.assert_allclose(speed(builder, [30.0, 0.2]), expected, rtol=1e-5)


@pytest.mark.parametrize("registered", [False, True], ids=["plain", "registered"])
@pytest.mark.parametrize("actuator", [PULL, '<motor site="s" gear="0 4 0 0 0 0"/>'], ids=["tendon", "site"])
def test_the_range_of_a_joint_without_a_drive_bounds_what_acts_on_it(actuator, registered):
    """Tendons and sites pass on what the joint has a range for."""
    text = TEXT.format(joint='actuatorfrcrange="-0.1 0.1"', actuators=actuator)
    builder = pv.ModelBuilder()
    if registered:
        pv.SolverMuJoCo.register_custom_attributes(builder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that SolverSAP has no actuators on sites
        builder.add_mjcf(text)
    expected = reference_speed(text, [1.0])
    np.testing.assert_allclose(speed(builder, [1.0]), expected, rtol=1e-5)


def test_a_drive_of_any_origin_exerts_its_limit():
    """The speed is that of a constant torque, also once the limit is another."""
    builder = pv.ModelBuilder()
    builder.add_urdf(URDF, drive_gains=(1000.0, 20.0), floating=False)
    inertia = 0.9 * 0.1**2 + 0.0009
    for limit in (None, 0.5, 2.0):
        expected = (limit or 1.0) * STEPS * DT / inertia
        np.testing.assert_allclose(speed(builder, limit=limit), expected, rtol=1e-5)


def test_two_drives_of_a_joint_share_its_limit():
    """Position and velocity targets are two actuators in MuJoCo, which the joint bounds together."""
    builder = pv.ModelBuilder()
    builder.add_mjcf(TEXT.format(joint="", actuators=POSITION))
    builder.joint_target_mode[0] = pv.JointTargetMode.POSITION_VELOCITY
    compiled = pv.SolverMuJoCo(builder.finalize("cpu")).groups[0].model
    assert compiled.jnt_actfrcrange.tolist() == [[-1.0, 1.0]]
    assert compiled.actuator_forcelimited.tolist() == [0, 0]


def shared_drive(limit):
    """Return a builder with a joint whose own range bounds its servo."""
    builder = pv.ModelBuilder()
    builder.add_mjcf(TEXT.format(joint="", actuators=POSITION))
    builder.joint_target_mode[0] = pv.JointTargetMode.POSITION_VELOCITY
    builder.joint_effort_limit[0] = limit
    return builder


def alone_drive(limit):
    """Return a builder with a joint whose servo has the limit."""
    builder = pv.ModelBuilder()
    builder.add_mjcf(TEXT.format(joint="", actuators=POSITION))
    builder.joint_effort_limit[0] = limit
    return builder


@pytest.mark.parametrize("make", [alone_drive, shared_drive])
def test_a_limit_of_zero_switches_a_drive_off(make, tmp_path):
    """The solver takes it at any time, exactly, and a saved world keeps it."""
    path = tmp_path / "world.xml"
    solver = pv.SolverMuJoCo(make(0.0).finalize("cpu"), save_to_mjcf=path)
    compiled = solver.groups[0].model
    assert not compiled.jnt_actfrcrange.any()
    assert not compiled.actuator_forcerange.any()
    assert speed(make(0.0)) == 0.0
    saved = path.read_text(encoding="utf-8")
    assert abs(reference_speed(saved, [30.0] * compiled.nu)) < 1e-8
    assert speed(make(0.0), limit=1.0) == pytest.approx(speed(make(1.0)))
