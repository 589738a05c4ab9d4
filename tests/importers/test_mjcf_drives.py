"""What becomes of actuators, springs, losses and limits of MJCF joints."""

import mujoco
import numpy as np
import pytest

from pluriverse import ModelBuilder, SolverMuJoCo
from pluriverse.importers import ImportSeverity
from pluriverse.types import JointTargetMode
from tests.importers.test_mjcf_elements import import_mjcf, pendulum


def drive_effort(builder, dof, q, qd):
    """Return the effort of a drive as `SolverSAP` defines it."""
    ke, kd = builder.joint_target_ke[dof], builder.joint_target_kd[dof]
    effort = builder.joint_act[dof] + ke * (builder.joint_target_pos[dof] - q)
    effort += kd * (builder.joint_target_vel[dof] - qd)
    return float(np.clip(effort, -builder.joint_effort_limit[dof], builder.joint_effort_limit[dof]))


ACTUATORS = {
    "position": ('<position joint="hinge" kp="30" kv="2"/>', JointTargetMode.POSITION),
    "position, geared and clamped": (
        '<position joint="hinge" kp="30" kv="2" gear="3" forcerange="-4 4"/>',
        JointTargetMode.POSITION,
    ),
    "position with damping ratio": (
        '<position joint="hinge" kp="30" dampratio="0.7"/>',
        JointTargetMode.POSITION,
    ),
    "velocity": ('<velocity joint="hinge" kv="4" gear="2"/>', JointTargetMode.VELOCITY),
    "damper-like general": (
        '<general joint="hinge" gainprm="5" biastype="affine" biasprm="0.3 -20 -1" gear="1.5"/>',
        JointTargetMode.POSITION,
    ),
    "motor": ('<motor joint="hinge" gear="7" ctrlrange="-0.5 0.5"/>', JointTargetMode.EFFORT),
    "position and velocity": (
        '<position joint="hinge" kp="30" kv="1"/><velocity joint="hinge" kv="4"/>',
        JointTargetMode.POSITION_VELOCITY,
    ),
    "position and motor": (
        '<position joint="hinge" kp="30"/><motor joint="hinge" gear="2"/>',
        JointTargetMode.POSITION,
    ),
}


@pytest.mark.parametrize("kind", ACTUATORS)
def test_drive_exerts_what_the_actuator_does(kind):
    """At random controls, positions and velocities the drive's effort is MuJoCo's `qfrc_actuator`."""
    actuators, mode = ACTUATORS[kind]
    rng = np.random.default_rng(8)
    count = actuators.count("<")
    for control in rng.uniform(-0.8, 0.8, (6, count)):
        key = f'<keyframe><key ctrl="{" ".join(map(str, control))}"/></keyframe>'
        text = pendulum(rest=f"<actuator>{actuators}</actuator>{key}")
        builder, report = import_mjcf(text, strict=True)
        assert builder.joint_target_mode[0] == mode
        model = mujoco.MjSpec.from_string(text).compile()
        data = mujoco.MjData(model)
        data.ctrl[:] = control
        data.qpos[:], data.qvel[:] = rng.uniform(-1.0, 1.0, 2)
        mujoco.mj_forward(model, data)
        effort = drive_effort(builder, 0, data.qpos[0], data.qvel[0])
        assert effort == pytest.approx(data.qfrc_actuator[0], rel=1e-9)
        assert not report.losses


def test_spring_is_a_drive_without_a_master():
    """A joint stiffness pulls to springref with the force of MuJoCo's passive spring."""
    text = pendulum(joint='stiffness="12" springref="0.3" damping="0.7" ref="0.1"')
    builder, _ = import_mjcf(text, strict=True)
    model = mujoco.MjSpec.from_string(text).compile()
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = 0.5, -0.4
    mujoco.mj_forward(model, data)
    force = drive_effort(builder, 0, 0.5, -0.4) - builder.joint_damping[0] * -0.4
    assert force == pytest.approx(data.qfrc_passive[0], rel=1e-9)


def test_spring_and_motor_act_together():
    """Stiffness and a motor on one joint: the spring stays, the motor's effort adds."""
    text = pendulum(
        joint='stiffness="12" springref="0.3"',
        rest='<actuator><motor joint="hinge" gear="5"/></actuator><keyframe><key ctrl="0.4"/></keyframe>',
    )
    builder, report = import_mjcf(text, strict=True)
    assert drive_effort(builder, 0, 0.1, 0.0) == pytest.approx(12 * 0.2 + 5 * 0.4)
    assert report.entries[0].severity is ImportSeverity.NOTE


def test_losses_limits_and_armature_are_carried_over():
    text = pendulum(joint='range="-0.4 0.9" damping="0.3" frictionloss="0.2" armature="0.05"')
    builder, _ = import_mjcf(text, armature_scale=2.0)
    assert builder.joint_limit_lower[0] == pytest.approx(-0.4)
    assert builder.joint_limit_upper[0] == pytest.approx(0.9)
    assert builder.joint_damping[0] == pytest.approx(0.3)
    assert builder.joint_friction[0] == pytest.approx(0.2)
    assert builder.joint_armature[0] == pytest.approx(0.1)


def test_limits_need_not_be_in_radians_nor_act():
    text = pendulum(joint='range="-30 60"').replace('angle="radian"', 'angle="degree"')
    builder, _ = import_mjcf(text)
    assert builder.joint_limit_upper[0] == pytest.approx(np.pi / 3)
    free, _ = import_mjcf(pendulum(joint='range="-1 1" limited="false"'))
    assert free.joint_limit_upper[0] >= 1e9


def test_actuator_of_a_joint_with_actuatorfrcrange_is_limited():
    text = pendulum(
        joint='range="-1 1" actuatorfrcrange="-3 3"',
        rest='<actuator><position joint="hinge" kp="30"/></actuator>',
    )
    builder, _ = import_mjcf(text)
    assert builder.joint_effort_limit[0] == pytest.approx(3.0)


GRIPPER = """
<mujoco>
  <worldbody>
    <body><joint name="left" type="slide" axis="1 0 0"/><geom size="0.1"/></body>
    <body pos="1 0 0"><joint name="right" type="slide" axis="1 0 0"/><geom size="0.1"/></body>
  </worldbody>
  <tendon>
    <fixed name="both"><joint joint="left" coef="0.5"/><joint joint="right" coef="-0.75"/></fixed>
  </tendon>
  <equality><joint joint1="right" joint2="left" polycoef="0 -2 0 0 0"/></equality>
  <actuator>
    <general name="close" tendon="both" gear="1.5" gainprm="0.3" biastype="affine" biasprm="0.1 -100 -7"
      ctrlrange="0 255" forcerange="-9 9"/>
  </actuator>
  <keyframe><key ctrl="90"/></keyframe>
</mujoco>
"""


def test_actuator_of_a_gripper_drives_each_finger():
    """Where an equality couples the joints of a tendon, each drive's effort is MuJoCo's `qfrc_actuator`."""
    builder, report = import_mjcf(GRIPPER)
    assert not any("actuator" in entry.feature for entry in report.entries)
    assert list(builder.joint_target_mode) == [JointTargetMode.POSITION] * 2
    model = mujoco.MjSpec.from_string(GRIPPER).compile()
    data = mujoco.MjData(model)
    data.ctrl[:] = 90.0
    ratio = np.array([1.0, -2.0])
    beyond_the_force_range = [(-2.0, 0.0), (2.0, 0.0)]
    for q, qd in [(0.1, 0.2), (0.12, -0.3), *beyond_the_force_range]:
        data.qpos[:], data.qvel[:] = q * ratio, qd * ratio
        mujoco.mj_forward(model, data)
        efforts = [drive_effort(builder, dof, q * ratio[dof], qd * ratio[dof]) for dof in (0, 1)]
        np.testing.assert_allclose(efforts, data.qfrc_actuator, rtol=1e-9)
    target = (0.3 * 255 + 0.1) / 100 / (1.5 * 2.0)
    assert builder.joint_target_upper[0] == pytest.approx(target)
    assert builder.joint_target_lower[1] == pytest.approx(-2.0 * target)


@pytest.mark.parametrize(
    "change",
    [
        ('<equality><joint joint1="right" joint2="left" polycoef="0 -2 0 0 0"/></equality>', ""),
        ("0 -2 0", "0 2 0"),
    ],
    ids=["joints that move apart", "joints that it pushes against each other"],
)
def test_actuator_of_other_tendons_is_no_drive(change):
    """It pulls its tendon as `control.mujoco.ctrl` says."""
    builder, report = import_mjcf(GRIPPER.replace(*change))
    assert not np.any(builder.joint_target_ke)
    assert "actuator of a tendon" in [entry.feature for entry in report.entries]


def test_a_coupling_through_zero_up_to_rounding_is_one():
    """0.1 times 0.7, both of which files write, is not 0.07."""
    text = GRIPPER.replace('coef="-0.75"', 'coef="0.75"').replace("0 -2 0", "0 0.1 0")
    text = text.replace('name="left"', 'name="left" ref="0.7"').replace(
        'name="right"', 'name="right" ref="0.07"'
    )
    builder, report = import_mjcf(text)
    assert not any("actuator" in entry.feature for entry in report.entries)
    assert list(builder.joint_target_mode) == [JointTargetMode.POSITION] * 2


def test_a_gripper_stays_on_its_tendon_for_mujoco():
    """With MuJoCo's own attributes, `control.mujoco.ctrl` commands it, also where it is an exact servo."""
    servo = '<position name="close" tendon="both" kp="100"/>'
    text = GRIPPER[: GRIPPER.index("<general")] + servo + "</actuator></mujoco>"
    builder = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(builder)
    builder.add_mjcf(text)
    assert not np.any(builder.joint_target_ke)
    model = SolverMuJoCo(builder.finalize("cpu")).mj_model
    assert list(model.actuator_trntype) == [mujoco.mjtTrn.mjTRN_TENDON]
    assert model.actuator_biasprm[0, 1] == -100.0
