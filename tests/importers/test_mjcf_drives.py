"""What becomes of actuators, springs, losses and limits of MJCF joints."""

import mujoco
import numpy as np
import pytest

from pluriverse import ModelBuilder, SolverMuJoCo
from pluriverse.importers import AssetWarning, ImportSeverity
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


def test_a_gripper_pulls_with_the_force_that_its_tendon_may_have():
    """`actuatorfrcrange` of the tendon bounds the drives of the fingers as `forcerange` does."""
    text = GRIPPER.replace('name="both"', 'name="both" actuatorfrcrange="-2 2"')
    builder, report = import_mjcf(text)
    assert not report.losses
    data = mujoco.MjData(model := mujoco.MjModel.from_xml_string(text))
    data.qpos[:] = [-2.0, 4.0]  # the servo would pull with its 9 N
    mujoco.mj_forward(model, data)
    efforts = [drive_effort(builder, dof, data.qpos[dof], 0.0) for dof in (0, 1)]
    np.testing.assert_allclose(efforts, data.qfrc_actuator, rtol=1e-9)
    several = text.replace("</actuator>", '<motor tendon="both"/></actuator>')
    with pytest.warns(AssetWarning, match=r"several actuators \(both\): it limits each of its"):
        import_mjcf(several)


def test_what_a_motor_adds_to_its_joint_is_there_once():
    """Armature and damping of a motor belong to the joint, and not to its row for SolverMuJoCo again."""
    text = pendulum(rest='<actuator><motor joint="hinge" gear="2" armature="0.3" damping="0.4"/></actuator>')
    builder, _ = import_mjcf(text)
    ours = SolverMuJoCo(builder.finalize("cpu")).mj_model
    model = mujoco.MjModel.from_xml_string(text)
    inertia, force = [], []
    for own in (ours, model):
        data = mujoco.MjData(own)
        data.qvel[:] = 1.0
        mujoco.mj_forward(own, data)
        full = np.zeros((1, 1))
        mujoco.mj_fullM(own, data, full)
        inertia.append(full[0, 0])
        force.append(data.qfrc_passive[0])
    assert inertia[0] == pytest.approx(inertia[1], rel=1e-6)
    assert force[0] == pytest.approx(force[1], rel=1e-6)


ON_TENDONS = """<mujoco><worldbody>
  <site name="w"/>
  <body><joint name="hinge" axis="0 1 0"/><geom size="0.1" pos="0 0 1"/><site name="s" pos="0 0 1"/></body>
  <body pos="2 0 0"><joint name="ball" type="ball"/><geom size="0.1"/></body>
</worldbody><tendon>
  <fixed name="t"><joint joint="hinge" coef="1"/></fixed>
  <fixed name="over a ball"><joint joint="ball" coef="1"/></fixed>
  <spatial name="spatial"><site site="s"/><site site="w"/></spatial>
</tendon><actuator>{actuator}</actuator></mujoco>"""
REASONS = {
    '<general tendon="t" dyntype="filter" dynprm="0.1"/>': "it has activation dynamics, and pulls a tendon",
    '<general tendon="t" gaintype="affine" gainprm="1 2 0"/>': "it pulls a tendon with a gain or bias that",
    '<motor tendon="over a ball"/>': "its tendon passes a ball or free joint",
    '<motor tendon="spatial"/>': "its tendon is spatial",
    '<motor site="s" gear="1 0 0 0 0 0"/>': "its transmission is not a joint",
}


@pytest.mark.parametrize("actuator", REASONS)
def test_the_report_says_why_an_actuator_exerts_nothing(actuator):
    """Each on a tendon has its own reason, although those of other tendons act."""
    with pytest.warns(AssetWarning, match=f"actuator: {REASONS[actuator]}"):
        _, report = import_mjcf(ON_TENDONS.format(actuator=actuator))
    assert "actuator of a tendon" not in [entry.feature for entry in report.entries]


def test_losses_of_an_actuator_on_a_tendon_are_reported():
    """SolverSAP has no armature or damping of tendons' actuators."""
    text = GRIPPER.replace("0 -2 0", "0 2 0").replace('gear="1.5"', 'gear="1.5" armature="1" damping="2"')
    with pytest.warns(AssetWarning):
        _, report = import_mjcf(text)
    losses = {entry.feature: entry.consequence for entry in report.losses}
    for quantity in ("armature", "damping"):
        assert "it has none; kept in model.mujoco" in losses[f"{quantity} of an actuator on a tendon"]


def test_fixed_tendons_that_a_scale_leaves_out_are_reported():
    """Their coefficients would need units."""
    with pytest.warns(AssetWarning, match=r"tendon .both.: it is left out, as the option scale"):
        import_mjcf(GRIPPER, scale=2.0)
