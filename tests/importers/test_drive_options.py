"""Robots whose files have no actuators: a target is reported, and an option gives them drives."""

import warnings

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.types import JointTargetMode
from pluriverse.warnings import AssetWarning, UndrivenJointWarning

DT = 0.004
URDF = """<robot name="arm"><link name="base"/>
  <link name="upper">INERTIAL</link>
  <link name="rail">INERTIAL</link>
  <link name="copy">INERTIAL</link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="50" velocity="3"/></joint>
  <joint name="slide" type="prismatic"><parent link="upper"/><child link="rail"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1"/></joint>
  <joint name="echo" type="revolute"><parent link="base"/><child link="copy"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="50" velocity="3"/><mimic joint="shoulder"/></joint>
</robot>"""
INERTIA = '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
URDF = URDF.replace("INERTIAL", f'<inertial><mass value="1"/>{INERTIA}</inertial>')
MJCF = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="upper"><joint name="shoulder" axis="0 0 1"/><geom size="0.1" mass="1" pos="0.2 0 0"/>
    <body name="rail"><joint name="slide" type="slide" axis="1 0 0"/><geom size="0.1" mass="2"/></body></body>
</worldbody><actuator>{}</actuator></mujoco>"""


def imported(source, **options):
    builder = pv.ModelBuilder(gravity=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = (
            builder.add_urdf(source, **options) if "<robot" in source else builder.add_mjcf(source, **options)
        )
    builder.gravity = 0.0
    return builder, report


@pytest.mark.parametrize("source", [URDF, MJCF.format("")], ids=["urdf", "mjcf"])
@pytest.mark.parametrize("make", [pv.SolverSAP, pv.SolverMuJoCo])
def test_a_target_that_no_drive_follows_is_reported_once(source, make):
    """The warning names the joints and the remedy; a joint that another leads is not among them."""
    builder, _ = imported(source)
    model = builder.finalize("cpu")
    with pv.Simulation(model, make(model), dt=DT) as simulation:
        simulation.control.joint_target_pos.fill_(0.5)
        with pytest.warns(
            UndrivenJointWarning, match=r"shoulder', .*slide': a target or joint_act is set.*drive_gains"
        ):
            simulation.step()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            simulation.step(20)
        assert simulation.state.joint_q.numpy()[0] == pytest.approx(0.0, abs=1e-6)


def test_targets_set_after_the_first_step_are_seen_too():
    builder, _ = imported(URDF)
    with pv.Simulation(builder.finalize("cpu"), dt=DT) as simulation:
        for _ in range(9):
            simulation.step()
        simulation.control.joint_target_vel.fill_(0.5)
        with pytest.warns(UndrivenJointWarning, match="shoulder"):
            simulation.step()


def test_nothing_is_reported_where_drives_follow_or_no_target_is_set():
    """Silence for robots without targets, with drives, and for free bodies."""
    for options in ({}, {"drive_gains": (100.0, 5.0)}):
        builder, _ = imported(URDF, **options)
        builder.add_shape_sphere(builder.add_body(), radius=0.1)
        with pv.Simulation(builder.finalize("cpu"), dt=DT) as simulation, warnings.catch_warnings():
            warnings.simplefilter("error")
            if options:
                simulation.control.joint_target_pos.fill_(0.3)
            simulation.step(12)


def test_targets_that_the_model_begins_with_are_nobodys_wish():
    """A keyframe sets them, and a controller by torques takes the gains away: it needs no drives."""
    builder, _ = imported(URDF, drive_gains=(100.0, 5.0))
    builder.joint_target_pos[:2] = [0.4, 0.1]
    model = builder.finalize("cpu")
    model.joint_target_ke.zero_()
    model.joint_target_kd.zero_()
    with pv.Simulation(model, dt=DT) as simulation, warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(9):
            simulation.step()
        simulation.control.joint_target_pos.zero_()  # another target, be it 0
        with pytest.warns(UndrivenJointWarning, match="shoulder"):
            simulation.step()


@pytest.mark.parametrize("source", [URDF, MJCF.format("")], ids=["urdf", "mjcf"])
def test_drive_gains_let_a_robot_follow_its_targets(source):
    """A pair drives every joint that has no drive and no leader; the file's effort limits stay."""
    builder, _ = imported(source, drive_gains=(400.0, 40.0), effort_limit=30.0)
    joints = {
        label.rpartition("/")[2]: int(builder.joint_qd_start[joint])
        for joint, label in enumerate(builder.joint_label)
    }
    for name in ("shoulder", "slide"):
        dof = joints[name]
        assert builder.joint_target_mode[dof] == JointTargetMode.POSITION
        assert (builder.joint_target_ke[dof], builder.joint_target_kd[dof]) == (400.0, 40.0)
    assert builder.joint_effort_limit[joints["slide"]] == 30.0
    if "echo" in joints:
        assert builder.joint_target_ke[joints["echo"]] == 0.0
        assert builder.joint_effort_limit[joints["shoulder"]] == 50.0
    model = builder.finalize("cpu")
    with pv.Simulation(model, dt=DT) as simulation:
        simulation.control.joint_target_pos.fill_(0.3)
        simulation.step(1000)
        np.testing.assert_allclose(simulation.state.joint_q.numpy(), 0.3, atol=1e-3)


def test_a_robot_whose_file_has_an_effort_of_0_is_driven():
    """URDF demands a number, and exporters write 0; the options act as if there were none."""
    source = URDF.replace('effort="50" velocity="3"', 'effort="0" velocity="0"')
    builder = pv.ModelBuilder(gravity=0.0)
    with pytest.warns(AssetWarning, match=r"effort limit 0 \(<limit> of joint 'shoulder'.*read as no limit"):
        builder.add_urdf(source, drive_gains=(200.0, 10.0), effort_limit=100.0)
    np.testing.assert_allclose(builder.joint_effort_limit[:2], 100.0)
    with pv.Simulation(builder.finalize("cpu"), dt=DT) as simulation:
        simulation.control.joint_target_pos.fill_(0.5)
        simulation.step(1000)
        np.testing.assert_allclose(simulation.state.joint_q.numpy()[:2], 0.5, atol=1e-3)


def test_mappings_are_for_the_joints_that_they_name_whatever_the_asset_says():
    """Names with wildcards; others stay as they are; a drive of the asset is replaced."""
    servo = '<position joint="shoulder" kp="7" kv="1" forcerange="-9 9"/>'
    builder, _ = imported(
        MJCF.format(servo), drive_gains={"sl*": (50.0, 4.0)}, effort_limit={"shoulder": 3.0, "*/slide": 5.0}
    )
    np.testing.assert_allclose(builder.joint_target_ke, [7.0, 50.0])
    np.testing.assert_allclose(builder.joint_effort_limit, [3.0, 5.0])
    builder, _ = imported(MJCF.format(servo), drive_gains=(50.0, 0.0))
    np.testing.assert_allclose(builder.joint_target_ke, [7.0, 50.0])
    builder, _ = imported(MJCF.format(servo), drive_gains={"shoulder": (0.0, 2.0)})
    assert builder.joint_target_mode.tolist() == [JointTargetMode.VELOCITY, JointTargetMode.AUTO]


def test_a_robot_that_begins_bent_is_held_there():
    """The target of a drive that an option gives is where the joint begins."""
    xml = MJCF.format("").replace("</worldbody>", '</worldbody><keyframe><key qpos="0.7 0.1"/></keyframe>')
    builder, _ = imported(xml, drive_gains=(50.0, 5.0))
    np.testing.assert_allclose(builder.joint_target_pos, [0.7, 0.1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drive_gains": {"elbow": (1.0, 1.0)}}, r"names 'elbow', but no joint .* there are shoulder, slide"),
        ({"drive_gains": 100.0}, r"drive_gains of shoulder is 100.0, but it is a pair"),
        ({"drive_gains": (-1.0, 1.0)}, r"drive_gains of shoulder is \(-1.0, 1.0\)"),
        ({"drive_gains": (0.0, 0.0)}, r"not both 0"),
        ({"effort_limit": -1.0}, r"effort_limit of slide is -1.0"),
        ({"effort_limit": {"wheel*": 1.0}}, r"effort_limit names 'wheel\*'"),
    ],
)
def test_what_an_option_cannot_mean_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        imported(URDF, **options)
