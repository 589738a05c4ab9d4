"""What MJCF says about pairs, ranges and limits arrives; MuJoCo is the oracle."""

import warnings

import mujoco
import numpy as np
import pytest

import pluriverse as pv
from pluriverse.types import JointTargetMode, ShapeFlags

DT = 0.002
STEPS = 20
# Numbers of the model are in single precision; the motions here do not amplify that.
SINGLE = 1e-5


def in_mujoco(xml, steps):
    """Return the coordinates and velocities that MuJoCo ends in."""
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.timestep, model.opt.integrator = DT, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    return data.qpos.copy(), data.qvel.copy()


def imported(xml, *, registered=True, **options):
    builder = pv.ModelBuilder()
    if registered:
        pv.SolverMuJoCo.register_custom_attributes(builder)
    report = builder.add_mjcf(xml, **options)
    return builder, report


SPINNING = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="5 5 1" friction="0.6 0.08 0.01" condim="3"/>
  <body pos="0 0 0.099"><freejoint/>
    <geom name="ball" type="sphere" size="0.1" mass="1" friction="0.6 0.002 0.0001" condim="{condim}"/></body>
</worldbody><keyframe><key qpos="0 0 0.099 1 0 0 0" qvel="0.5 0 0 0 0 20"/></keyframe></mujoco>"""


@pytest.mark.parametrize("condim", [3, 4, 6])
def test_a_pair_turns_with_the_larger_condim_and_the_larger_coefficients(condim):
    """The floor has condim 3, but what it says of torsion and rolling acts on a ball of condim 4 or 6."""
    xml = SPINNING.format(condim=condim)
    builder, _ = imported(xml)
    np.testing.assert_allclose(builder.shape_material_mu_torsional, [0.08, 0.002])
    np.testing.assert_allclose(builder.shape_material_mu_rolling, [0.01, 0.0001])
    qpos, expected = in_mujoco(xml, STEPS)
    turned = np.zeros(3)  # MuJoCo has the angular velocity of a free joint in axes of the body
    mujoco.mju_rotVecQuat(turned, expected[3:], qpos[3:])
    model = builder.finalize("cpu")
    with pv.Simulation(model, pv.SolverMuJoCo(model), dt=DT) as simulation:
        simulation.step(STEPS)
        found = simulation.state.joint_qd.numpy()
    np.testing.assert_allclose(found, [*expected[:3], *turned], rtol=0.0, atol=20.0 * 1e-4)
    if condim == 3:
        assert found[5] == pytest.approx(20.0, abs=1e-3)
    else:  # much slower than by the torsion of the ball alone, 0.002 m g / I
        assert found[5] < 20.0 - 5.0 * 0.002 * 9.81 / (0.4 * 0.1**2) * STEPS * DT


PAIRED = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="5 5 1" contype="0" conaffinity="0"/>
  <body pos="0 0 0.15"><freejoint/>
    <geom name="ball" type="sphere" size="0.1" mass="1" contype="0" conaffinity="0"/></body>
</worldbody><contact>
  <pair name="rest" geom1="ball" geom2="floor" friction="0.5 0.5 0.01 0.001 0.001"/>
</contact></mujoco>"""


@pytest.mark.parametrize("options", [{}, {"parse_visuals": False}, {"parse_visuals_as_colliders": True}])
def test_geoms_that_a_pair_names_are_there_even_without_visuals(options):
    """The ball comes to rest on the floor by the pair alone, as in MuJoCo."""
    builder, report = imported(PAIRED, **options)
    assert builder.shape_count == 2
    assert not report.losses
    # They collide, so they are drawn like other colliders of a robot that has no visuals.
    flags = int(ShapeFlags.COLLIDE_SHAPES | ShapeFlags.VISIBLE)
    assert (np.asarray(builder.shape_flags) & flags == flags).all()
    expected, _ = in_mujoco(PAIRED, 500)
    model = builder.finalize("cpu")
    with pv.Simulation(model, pv.SolverMuJoCo(model), dt=DT) as simulation:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pv.warnings.ContactTruncationWarning)
            simulation.step(500)
        assert simulation.contacts.rigid_contact_count.numpy().tolist() == [1]
        assert simulation.state.joint_q.numpy()[2] == pytest.approx(expected[2], abs=SINGLE)


def test_a_pair_whose_geom_is_left_out_is_reported():
    """A pair needs both geoms; what an option leaves out takes it along, and the report says so."""
    xml = """<mujoco><asset><mesh name="tetra" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
      <hfield name="hills" nrow="2" ncol="2" size="1 1 1 1"/></asset><worldbody>
      <geom name="floor" type="plane" size="5 5 1"/>
      <body pos="0 0 1"><freejoint/><geom name="ball" size="0.1" mass="1"/>
        <geom name="patch" type="hfield" hfield="hills" mass="0"/></body>
    </worldbody><contact><pair name="rest" geom1="patch" geom2="floor"/></contact></mujoco>"""
    with pytest.warns(
        pv.importers.AssetWarning, match="contact pair .rest.: it is left out, as its geom 'patch' is"
    ):
        imported(xml)


LIMITED = """<mujoco><compiler angle="radian"/><worldbody><body>
  <joint name="hinge" axis="0 0 1" {joint}/>
  <geom size="0.1" pos="0.3 0 0" mass="2" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize("make", [pv.SolverSAP, pv.SolverMuJoCo])
def test_the_effort_of_a_joint_without_actuator_keeps_its_limit(registered, make):
    """A drive that is given later pulls with 3 N·m however far its target is: q' = 3 t / I."""
    builder, report = imported(LIMITED.format(joint='actuatorfrcrange="-3 3"'), registered=registered)
    assert builder.joint_effort_limit.tolist() == [3.0]
    assert not report.losses
    builder.joint_target_ke[:] = 1e4
    builder.joint_target_pos[:] = 100.0
    builder.joint_target_mode[:] = int(JointTargetMode.POSITION)
    model = builder.finalize("cpu")
    inertia = 2.0 * (0.3**2 + 0.4 * 0.1**2)
    with pv.Simulation(model, make(model), dt=DT) as simulation:
        simulation.step(100)
        assert simulation.state.joint_qd.numpy()[0] == pytest.approx(3.0 * 100 * DT / inertia, rel=1e-4)


def test_a_spring_is_not_bounded_by_the_limit_of_actuators_and_the_report_says_so():
    """MuJoCo's actuatorfrcrange limits actuators, and a spring is none."""
    with pytest.warns(pv.importers.AssetWarning, match="actuatorfrcrange of a joint with a spring"):
        builder, _ = imported(
            LIMITED.format(joint='actuatorfrcrange="-3 3" stiffness="50"'), registered=False
        )
    assert builder.joint_effort_limit[0] == np.inf


SERVO = """<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody><body>
  <joint name="hinge" axis="0 0 1" {joint}/>
  <geom size="0.1" pos="0.3 0 0" mass="1" contype="0" conaffinity="0"/></body></worldbody>
  <actuator>{actuators}</actuator></mujoco>"""
GRAVITY_OFF = """<option gravity="0 0 0"/>"""
SERVOS = {
    "position": ('<position joint="hinge" kp="20" kv="2" ctrlrange="-0.5 0.3"/>', "", (-0.5, 0.3)),
    "geared": ('<position joint="hinge" kp="20" kv="9" gear="-2" ctrlrange="-0.5 0.3"/>', "", (-0.15, 0.25)),
    "with an offset": (
        '<general joint="hinge" gainprm="10" biastype="affine" biasprm="2 -20 -2" ctrlrange="-1 1"/>',
        "",
        (-0.4, 0.6),
    ),
    "velocity": ('<velocity joint="hinge" kv="5" ctrlrange="-0.5 0.3"/>', "", (-0.5, 0.3)),
    "two": (
        '<position joint="hinge" kp="10" kv="1" ctrlrange="-1 1"/>'
        '<position joint="hinge" kp="30" ctrlrange="0 1"/>',
        "",
        (-0.25, 1.0),
    ),
    "with a spring": (
        '<position joint="hinge" kp="10" kv="1" ctrlrange="-1 1"/>',
        'stiffness="10" springref="0.2"',
        (-0.4, 0.6),
    ),
    "without a range": ('<position joint="hinge" kp="20" kv="2"/>', "", (-np.inf, np.inf)),
}


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
@pytest.mark.parametrize("kind", list(SERVOS))
def test_the_range_of_a_control_is_that_of_the_target(kind):
    """A target is a control u of which MuJoCo takes clamp(u): the bounds are where the range ends."""
    actuators, joint, bounds = SERVOS[kind]
    builder, _ = imported(SERVO.format(joint=joint, actuators=actuators), registered=False)
    np.testing.assert_allclose(
        [builder.joint_target_lower[0], builder.joint_target_upper[0]], bounds, rtol=1e-9
    )


@pytest.mark.parametrize("kind", ["position", "geared", "velocity", "without a range"])
@pytest.mark.parametrize("target", [1.0, -1.0])
@pytest.mark.parametrize("registered", [False, True])
def test_a_target_out_of_range_moves_a_joint_as_far_as_in_mujoco(kind, target, registered):
    """SolverMuJoCo ends where MuJoCo does with the same control; SolverSAP where the clamped target is."""
    actuators, _, bounds = SERVOS[kind]
    xml = SERVO.format(joint="", actuators=actuators)
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.timestep, model.opt.integrator = DT, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    data.ctrl[:] = target * (-2.0 if kind == "geared" else 1.0)  # u = g q* for a target q* of the joint
    builder, _ = imported(xml, registered=registered)
    ours = builder.finalize("cpu")
    field = "joint_target_vel" if kind == "velocity" else "joint_target_pos"
    mujoco.mj_step(model, data, 1500)
    for make in (pv.SolverMuJoCo, pv.SolverSAP):
        with pv.Simulation(ours, make(ours), dt=DT) as simulation:
            getattr(simulation.control, field).fill_(target)
            simulation.step(1500)
            ends = simulation.state.joint_qd if kind == "velocity" else simulation.state.joint_q
            end = ends.numpy()[0]
        assert end == pytest.approx(np.clip(target, *bounds), abs=1e-3)
        if make is pv.SolverMuJoCo:
            expected = data.qvel if kind == "velocity" else data.qpos
            assert end == pytest.approx(expected[0], abs=1e-4)


def test_a_target_that_is_no_number_is_not_hidden_by_the_range():
    """NaN is no target in range: the world is stopped and named."""
    builder, _ = imported(SERVO.format(joint="", actuators=SERVOS["position"][0]).replace(GRAVITY_OFF, ""))
    model = builder.finalize("cpu")
    for make in (pv.SolverMuJoCo, pv.SolverSAP):
        with pv.Simulation(model, make(model), dt=DT) as simulation:
            simulation.control.joint_target_pos.fill_(np.nan)
            with pytest.warns(UserWarning, match="world 0"):
                simulation.step(2)
            assert list(simulation.report().frozen_worlds) == [0]


def test_a_saved_world_keeps_the_range_of_its_controls(tmp_path):
    """What save_to_mjcf writes bounds controls as the asset did."""
    actuators, _, bounds = SERVOS["geared"]
    builder, _ = imported(SERVO.format(joint="", actuators=actuators).replace(GRAVITY_OFF, ""))
    pv.SolverMuJoCo(builder.finalize("cpu")).save_to_mjcf(tmp_path / "world.xml")
    saved = mujoco.MjModel.from_xml_path(str(tmp_path / "world.xml"))
    np.testing.assert_allclose(saved.actuator_ctrlrange, [bounds], rtol=1e-6)
    assert saved.actuator_ctrllimited.all()


@pytest.mark.parametrize("make", [pv.SolverSAP, pv.SolverMuJoCo])
@pytest.mark.parametrize(("margin", "rest"), [(0.2, 0.3), (1.0, -0.25)])
def test_a_joint_limit_pushes_from_its_margin_on(make, margin, rest):
    """An arm rests at the range minus the margin, where wide margins balance in the middle of the range."""
    joint = f'axis="0 1 0" range="-1 0.5" margin="{margin}" damping="1"'
    xml = LIMITED.format(joint="").replace('axis="0 0 1" ', joint)
    builder, report = imported(xml, registered=False, strict=True)
    assert [str(entry) for entry in report.entries] == [
        "margin of a joint limit (hinge): its range is narrower by the margin, since the limit acts there"
    ]
    np.testing.assert_allclose(builder.joint_limit_upper, rest)
    expected, _ = in_mujoco(xml, 2000)
    model = builder.finalize("cpu")
    with pv.Simulation(model, make(model), dt=DT) as simulation:
        simulation.step(2000)
        found = simulation.state.joint_q.numpy()[0]
    # MuJoCo's limits give way under the weight.
    assert expected[0] == pytest.approx(rest, abs=0.02)
    assert found == pytest.approx(expected[0], abs=SINGLE if make is pv.SolverMuJoCo and margin < 1 else 0.02)


def test_a_margin_that_is_kept_for_mujoco_is_named_by_solver_sap():
    """In a builder for MuJoCo alone ranges and margins are those of the file; SolverSAP has no margins."""
    builder, _ = imported(LIMITED.format(joint='range="-1 0.5" margin="0.2"'))
    assert builder.joint_limit_upper.tolist() == [0.5]
    with pytest.warns(pv.warnings.PluriverseWarning, match="1 joint limits with a margin"):
        pv.SolverSAP(builder.finalize("cpu"))
