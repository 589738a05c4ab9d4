"""Flags and gravity of a document act on what it adds; MuJoCo is the oracle."""

import warnings

import mujoco
import numpy as np
import pytest

import pluriverse as pv
from pluriverse.importers import AssetWarning

DT = 0.002
STEPS = 50
# Numbers of the model are in single precision; the motions here do not amplify that.
SINGLE = 1e-5

# A slide that a spring pulls against damping, dry friction and a limit, beside one that rests on a post.
DOCUMENT = """<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="implicitfast">
    <flag {flags}/></option><worldbody>
  <geom name="post" type="box" size="0.1 0.1 0.1" pos="1 0 0"/>
  <body name="cart"><joint name="rail" type="slide" axis="1 0 0" range="-0.01 0.01" stiffness="40"
    springref="0.5" damping="3" frictionloss="2"/><geom size="0.05" mass="1"/></body>
  <body name="lift" pos="1 0 0.149"><joint name="up" type="slide" axis="0 0 1"/>
    <geom size="0.05" mass="1"/></body>
  <body name="twin" pos="0 2 0"><joint name="second" type="slide" axis="1 0 0"/>
    <geom size="0.05" mass="1"/></body>
</worldbody><equality><joint joint1="second" joint2="rail"/></equality></mujoco>"""


def in_mujoco(xml, steps=STEPS):
    """Return the coordinates that MuJoCo ends in."""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    return data.qpos.copy()


def stepped(builder, make, steps=STEPS):
    """Return the coordinates after some steps of a solver."""
    model = builder.finalize("cpu")
    with pv.Simulation(model, make(model), dt=DT, threads=1) as simulation:
        simulation.step(steps)
        return simulation.state.joint_q.numpy().copy()


@pytest.mark.parametrize(
    "flags", ["constraint", "contact", "limit", "frictionloss", "equality", "spring", "damper", "gravity"]
)
def test_what_a_flag_disables_does_not_act(flags):
    """Both solvers move as MuJoCo, SolverSAP up to what its stiffer limits and contacts yield."""
    xml = DOCUMENT.format(flags=f'{flags}="disable"')
    builder = pv.ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("error", AssetWarning)
        report = builder.add_mjcf(xml, strict=True)
    assert any(entry.consequence for entry in report.entries)
    expected = in_mujoco(xml)
    np.testing.assert_allclose(stepped(builder, pv.SolverMuJoCo), expected, rtol=0.0, atol=3e-4)
    # MuJoCo's default constraints give way by a few millimetres here; the effects of the flags are larger.
    np.testing.assert_allclose(stepped(builder, pv.SolverSAP), expected, rtol=0.0, atol=4e-3)


def test_flags_leave_other_documents_alone():
    """A ball of a document without contacts falls through the ground on which another one rests."""
    ball = """<mujoco><option><flag contact="{0}"/></option><worldbody><body pos="{1} 0 0.1"><freejoint/>
      <geom size="0.1" mass="1"/></body></worldbody></mujoco>"""
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    builder.add_mjcf(ball.format("enable", 0))
    builder.add_mjcf(ball.format("disable", 1))
    for make in (pv.SolverSAP, pv.SolverMuJoCo):
        rests, falls = stepped(builder, make).reshape(2, 7)[:, 2]
        assert rests == pytest.approx(0.1, abs=1e-3)
        # The parabola of semi-implicit Euler.
        assert falls == pytest.approx(0.1 - 0.5 * 9.81 * STEPS * (STEPS + 1) * DT**2, abs=SINGLE)


FALLING = """<mujoco><option gravity="{gravity}"/><worldbody><body name="b" pos="0 0 1"><freejoint/>
  <geom size="0.1" mass="1"/></body></worldbody></mujoco>"""


def gravity_of(builder):
    return builder.finalize("cpu").gravity.numpy().tolist()


@pytest.mark.parametrize("gravity", [[0.0, 0.0, 0.0], [0.0, 0.0, -1.5], [0.5, 0.0, -9.0]])
def test_the_first_document_brings_its_gravity(gravity):
    """Alone, in an open world, and in each copy of a builder, which other worlds do not notice."""
    xml = FALLING.format(gravity=" ".join(map(str, gravity)))
    robot = pv.ModelBuilder()
    report = robot.add_mjcf(xml, strict=True)
    assert "option gravity" in [entry.feature for entry in report.entries]
    worlds = pv.ModelBuilder()
    worlds.replicate(robot, 2)
    worlds.begin_world()
    worlds.add_mjcf(xml, strict=True)
    worlds.end_world()
    worlds.begin_world()
    worlds.add_mjcf(FALLING.format(gravity="0 0 -9.8"), strict=True)  # 9.81 is meant
    worlds.end_world()
    np.testing.assert_allclose(gravity_of(worlds), [gravity] * 3 + [[0.0, 0.0, -9.81]], rtol=1e-6)


@pytest.mark.parametrize("case", ["set", "world set", "bodies", "mounted", "turned"])
def test_a_gravity_that_does_not_act_is_reported(case):
    """What the user or an earlier document says goes first, and axes that may mean either are not guessed."""
    builder, options, gravity = pv.ModelBuilder(), {}, [0.0, 0.0, -9.81]
    if case == "set":
        builder.gravity = -3.0
        gravity = [0.0, 0.0, -3.0]
    elif case == "world set":
        gravity = [0.0, 0.0, -3.0]
        builder.begin_world(gravity=-3.0)
    elif case in ("bodies", "mounted"):
        body = builder.add_body(mass=1.0, inertia=np.eye(3))
        options = {"parent_body": body} if case == "mounted" else {}
    else:
        options = {"up_axis": "y"}
    with pytest.warns(AssetWarning, match=r"option gravity.*set builder.gravity"):
        builder.add_mjcf(FALLING.format(gravity="0 0 -1.5"), **options)
    if case == "world set":
        builder.end_world()
    np.testing.assert_allclose(gravity_of(builder), [gravity], rtol=1e-6)


@pytest.mark.parametrize("make", [pv.SolverSAP, pv.SolverMuJoCo])
@pytest.mark.parametrize("loss", ['damping="3"', 'frictionloss="2"', 'armature="0.5"'])
def test_a_free_joint_has_its_losses(loss, make):
    """A thrown ball is slowed as in MuJoCo: by damping and armature, and by dry friction per axis."""
    xml = f"""<mujoco><option timestep="0.002" integrator="implicitfast"/><worldbody>
      <body pos="0 0 2"><joint type="free" {loss}/><geom size="0.1" mass="1"/></body></worldbody>
      <keyframe><key qpos="0 0 2 1 0 0 0" qvel="1 0.5 0 0 0 0"/></keyframe></mujoco>"""
    builder = pv.ModelBuilder()
    builder.add_mjcf(xml, strict=True)
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    for _ in range(STEPS):
        mujoco.mj_step(model, data)
    assert abs(data.qpos[:3] - [0.1, 0.05, 2.0 - 0.5 * 9.81 * 0.1**2]).max() > 1e-3  # it is noticed
    np.testing.assert_allclose(stepped(builder, make)[:3], data.qpos[:3], rtol=0.0, atol=2.0 * SINGLE)


GROUPS = """<mujoco><option timestep="0.002" integrator="implicitfast" actuatorgroupdisable="1 3"/><worldbody>
  <body name="arm"><joint name="hinge" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.02"/></body></worldbody>
  <actuator>
    <position name="stiff" joint="hinge" kp="60" group="1" armature="0.05" damping="0.5"/>
    <muscle name="muscle" joint="hinge" force="20" lengthrange="-1 1" group="3"/>
    <position name="soft" joint="hinge" kp="2" kv="0.1" group="2"/>
    <motor name="pull" joint="hinge" group="1"/>
  </actuator><keyframe><key ctrl="1 1 0.2 5"/></keyframe></mujoco>"""


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize("make", [pv.SolverSAP, pv.SolverMuJoCo])
def test_actuators_of_disabled_groups_exert_nothing(make, registered):
    """Their armature and damping stay, as in MuJoCo; the note names them; the others act."""
    model = mujoco.MjModel.from_xml_string(GROUPS)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, nstep=150)
    builder = pv.ModelBuilder()
    if registered:
        pv.SolverMuJoCo.register_custom_attributes(builder)
    with warnings.catch_warnings():
        if not registered:  # nothing is left out, by the importer or the solver
            warnings.simplefilter("error")
        report = builder.add_mjcf(GROUPS, keyframe=0, strict=True)
        notes = {entry.feature: entry.entities for entry in report.entries}
        assert notes["option actuatorgroupdisable"] == ["stiff", "muscle", "pull"]
        if registered and make is pv.SolverSAP:
            return  # it has no actuator with damping of its own
        q = stepped(builder, make, 150)
    # Steps of first order: the two schemes differ by the acceleration times the step.
    np.testing.assert_allclose(q, data.qpos, rtol=0.0, atol=SINGLE if make is pv.SolverMuJoCo else 5e-3)


CURVED = """<mujoco><option timestep="0.002" integrator="implicitfast"><flag {flag}="disable"/></option>
  <worldbody><body><joint name="hinge" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.02"/></body></worldbody>
  <tendon><fixed name="t" {tendon}><joint joint="hinge" coef="1"/></fixed></tendon>
  <actuator><motor joint="hinge" {actuator}/></actuator></mujoco>"""


@pytest.mark.parametrize("make", [pv.SolverSAP, pv.SolverMuJoCo])
@pytest.mark.parametrize(
    ("flag", "tendon", "actuator"),
    [
        ("spring", 'stiffness="1 20 30" springlength="-0.5"', ""),
        ("damper", 'damping="0.2 2 3"', ""),
        ("damper", "", 'damping="2"'),
    ],
)
def test_flags_disable_polynomials_and_losses_of_actuators(flag, tendon, actuator, make):
    """Nothing of them remains: the arm falls as one without."""
    xml = CURVED.format(flag=flag, tendon=tendon, actuator=actuator)
    builder = pv.ModelBuilder()
    builder.add_mjcf(xml)
    expected = in_mujoco(xml)
    bare = CURVED.format(flag=flag, tendon="", actuator="")
    np.testing.assert_allclose(in_mujoco(bare), expected, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(stepped(builder, make), expected, rtol=0.0, atol=2e-3)


def test_the_force_of_a_disabled_actuator_is_not_measured():
    """Its sensor would read what the other actuators of the joint exert; the report says why it does not."""
    sensors = '<sensor><actuatorfrc actuator="{}"/></sensor></mujoco>'
    for actuator, count in (("stiff", 0), ("soft", 1)):
        builder = pv.ModelBuilder()
        report = builder.add_mjcf(GROUPS.replace("</mujoco>", sensors.format(actuator)))
        reasons = [entry.consequence for entry in report.entries if entry.feature == "sensor actuatorfrc"]
        assert len(reasons) == 1 - count
        assert all("group of its actuator is disabled" in reason for reason in reasons)
