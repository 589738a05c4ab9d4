"""Tendons, general actuators and contact pairs of SolverMuJoCo against plain MuJoCo on the same MJCF."""

import mujoco
import numpy as np
import pytest

from pluriverse import ModelBuilder, ModelFlags, SolverMuJoCo
from pluriverse.importers import AssetWarning
from pluriverse.mujoco_attributes.choices import TrnType
from pluriverse.solvers.mujoco.caveats import MujocoCaveatWarning
from pluriverse.solvers.mujoco.mapping.conversion import convert_model
from pluriverse.solvers.mujoco.options import MujocoOptions

DT = 0.002
# The model keeps its numbers in single precision; an acceleration is the quotient of a few of them.
ACCELERATION_ERROR = 1e-6
# That error over 100 steps.
TRAJECTORY_ERROR = 1e-5

HAND = """
<mujoco model="hand">
  <compiler angle="radian"/>
  <option integrator="implicitfast"><flag contact="disable"/></option>
  <default>
    <joint axis="0 1 0" damping="0.05" armature="0.001" range="-0.3 1.6"/>
    <geom type="capsule" size="0.008" density="1200"/>
    <site size="0.002"/>
    <default class="wrap"><geom type="cylinder" contype="0" conaffinity="0" mass="0"/></default>
  </default>
  <worldbody>
    <site name="forearm" pos="0.015 0 -0.1"/>
    <site name="forearm_back" pos="-0.015 0 -0.1"/>
    <body name="palm">
      <joint name="wrist" range="-0.8 0.8" stiffness="0.2" springref="0.1"/>
      <geom type="box" size="0.01 0.03 0.04" pos="0 0 0.04"/>
      <site name="palm_front" pos="0.012 0 0.06"/>
      <site name="palm_back" pos="-0.012 0 0.06"/>
      <body name="knuckle" pos="0 0 0.085">
        <joint name="spread" axis="1 0 0" range="-0.2 0.2"/>
        <joint name="knuckle"/>
        <geom fromto="0 0 0 0 0 0.04"/>
        <geom name="knuckle_wrap" class="wrap" size="0.009 0.01" quat="1 1 0 0"/>
        <site name="knuckle_side" pos="0.02 0 0"/>
        <site name="proximal_front" pos="0.009 0 0.02"/>
        <body name="middle" pos="0 0 0.045">
          <joint name="middle"/>
          <geom fromto="0 0 0 0 0 0.03"/>
          <geom name="middle_wrap" class="wrap" type="sphere" size="0.0085"/>
          <site name="middle_front" pos="0.009 0 0.015"/>
          <site name="middle_back" pos="-0.009 0 0.015"/>
          <body name="tip" pos="0 0 0.035">
            <joint name="tip"/>
            <geom name="tip" fromto="0 0 0 0 0 0.02"/>
            <site name="tip_front" pos="0.008 0 0.01"/>
          </body>
        </body>
      </body>
      <body name="thumb" pos="0.01 0.03 0.03">
        <joint name="thumb" type="ball" limited="false"/>
        <geom name="thumb" fromto="0 0 0 0.01 0.04 0.01"/>
        <body name="slider" pos="0.01 0.045 0.01">
          <joint name="slide" type="slide" axis="0 0 1" range="-0.01 0.02"/>
          <geom size="0.005 0.004"/>
          <site name="slider" pos="0.001 0 0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <spatial name="flexor" range="0.05 0.4" stiffness="3" damping="0.2"
             springlength="0.1 0.2">
      <site site="forearm"/><site site="palm_front"/>
      <geom geom="knuckle_wrap" sidesite="knuckle_side"/><site site="proximal_front"/>
      <pulley divisor="2"/>
      <site site="proximal_front"/><geom geom="middle_wrap"/><site site="middle_front"/>
      <site site="tip_front"/>
    </spatial>
    <spatial name="extensor" frictionloss="0.02" armature="1e-4">
      <site site="forearm_back"/><site site="palm_back"/><site site="middle_back"/>
    </spatial>
    <fixed name="coupling" range="-0.2 2" limited="true" solreflimit="0.01 0.9">
      <joint joint="middle" coef="1"/><joint joint="tip" coef="-0.75"/>
    </fixed>
    <fixed name="sum"><joint joint="knuckle" coef="0.5"/><joint joint="middle" coef="0.5"/></fixed>
  </tendon>
  <equality>
    <tendon tendon1="coupling" polycoef="0.1 0 0 0 0" solref="0.03 1"/>
    <tendon tendon1="sum" tendon2="extensor" polycoef="0 2 1 0 0" active="false"/>
  </equality>
  <actuator>
    <position name="wrist" joint="wrist" kp="2" kv="0.1"/>
    <muscle name="flex" tendon="flexor" lengthrange="0.1 0.3" force="20" ctrllimited="true" ctrlrange="0 1"/>
    <general name="extend" tendon="extensor" dyntype="filterexact" dynprm="0.05" gainprm="-4"
             actlimited="true" actrange="0 1"/>
    <motor name="spread" joint="spread" gear="0.02" ctrllimited="true" ctrlrange="-1 1"/>
    <general name="impedance" joint="knuckle" biastype="affine" gainprm="0.3" biasprm="0.01 -0.3 -0.01"
             gaintype="affine" forcelimited="true" forcerange="-0.1 0.2"/>
    <intvelocity name="crawl" joint="tip" kp="0.1" actrange="-0.3 1.5"/>
    <motor name="thumb" joint="thumb" gear="0.01 0.02 -0.01"/>
    <general name="thrust" site="tip_front" refsite="palm_front" gear="0.3 0 0.1 0 0.002 0"/>
    <cylinder name="piston" joint="slide" area="0.02" timeconst="0.1"/>
    <damper name="brake" joint="slide" kv="2" ctrlrange="0 1"/>
    <position name="grip" tendon="sum" kp="0.2"/>
  </actuator>
</mujoco>
"""

PADDLES = """
<mujoco model="paddles">
  <option cone="elliptic"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="box" pos="0 0 0.099">
      <freejoint/><geom name="box" type="box" size="0.1 0.1 0.1" contype="0" conaffinity="0"/>
    </body>
    <body name="ball" pos="0.3 0 0.099"><freejoint/><geom name="ball" size="0.1"/></body>
    <body name="other" pos="0.48 0 0.1"><freejoint/><geom name="other" size="0.1"/></body>
  </worldbody>
  <contact>
    <pair name="slide" geom1="box" geom2="floor" condim="4" friction="0.3 0.2 0.01 0.001 0.001"
          solref="0.01 0.8" solimp="0.8 0.9 0.01 0.5 2" margin="0.01" gap="0.005" solreffriction="0.02 1"
          adhesion="3"/>
    <pair name="knock" geom1="other" geom2="ball" condim="1" solref="-5000 -50"/>
  </contact>
</mujoco>
"""


HINGE = (
    '<body name="a" pos="0 0 1"><joint name="p" axis="0 1 0" {}/><geom size="0.1" pos="0.1 0 0.2"/>{}</body>'
)
INNER = (
    '<body name="b" pos="0.3 0 0"><joint name="q" axis="0 1 0" {}/><geom size="0.1" pos="0.1 0 0.2"/></body>'
)
MECHANISMS = {
    "slider crank": """
      <worldbody>
        <body><joint axis="0 1 0"/><geom size="0.05" pos="0 0 0.1"/><site name="crank" pos="0 0 0.2"/></body>
        <body pos="0 0 0.5"><joint type="slide"/><geom size="0.05"/><site name="slider"/></body>
      </worldbody>
      <actuator><general cranksite="crank" slidersite="slider" cranklength="0.6" gear="2"/></actuator>""",
    "free joint": """
      <worldbody><body pos="0 0 1"><freejoint name="f"/><geom size="0.1" pos="0.1 0 0"/></body></worldbody>
      <actuator>
        <motor joint="f" gear="1 2 3 0.1 0.2 0.3"/><motor jointinparent="f" gear="0 0 1 0 0.2 0"/>
      </actuator>""",
    "ball joint": """
      <worldbody>
        <body pos="0 0 1" euler="10 20 30">
          <joint type="ball" name="b" damping="0.1" stiffness="3"/><geom size="0.1" pos="0.1 0 0.2"/>
        </body>
      </worldbody>
      <actuator>
        <motor joint="b" gear="1 2 3"/><motor jointinparent="b" gear="0 0 1"/>
        <position joint="b" kp="3" gear="0 1 0"/>
      </actuator>""",
    "gravity compensation": "<worldbody>"
    + HINGE.format('actuatorgravcomp="true" actuatorfrcrange="-0.2 0.2"', INNER.format("")).replace(
        'pos="0 0 1"', 'pos="0 0 1" gravcomp="0.8"'
    )
    + '</worldbody><actuator><motor joint="p"/></actuator>',
    "several axes": """
      <worldbody>
        <body pos="0 0 1">
          <joint name="x" type="slide" axis="1 0 0"/>
          <joint name="z" type="slide" axis="0 0 1" frictionloss="0.1"/>
          <joint name="r" axis="0 1 0" range="-40 50" armature="0.01" stiffness="3" springref="30"/>
          <geom size="0.1" pos="0.1 0 0.2"/>
        </body>
      </worldbody>
      <tendon>
        <fixed name="t" stiffness="20" springlength="0.3" frictionloss="0.1" damping="2">
          <joint joint="x" coef="1"/><joint joint="r" coef="0.2"/>
        </fixed>
      </tendon>
      <actuator>
        <motor joint="r" gear="3"/><position joint="x" kp="30"/><velocity joint="z" kv="3"/>
        <position tendon="t" kp="4" forcerange="-1 1"/>
      </actuator>""",
    "rest lengths below 0": "<worldbody>"
    + HINGE.format("", INNER.format(""))
    + """</worldbody>
      <tendon>
        <fixed name="t" stiffness="20" springlength="-0.5"><joint joint="p" coef="1"/></fixed>
        <fixed name="u" stiffness="9" springlength="-2 -1"><joint joint="q" coef="1"/></fixed>
      </tendon>""",
    "adhesion": """
      <worldbody>
        <geom type="plane" size="1 1 1"/>
        <body name="a" pos="0 0 0.099"><freejoint/><geom size="0.1"/></body>
      </worldbody>
      <actuator><adhesion body="a" ctrlrange="0 1" gain="20"/></actuator>""",
    "soft constraints": "<worldbody>"
    + HINGE.format("", INNER.format(""))
    + """</worldbody>
      <equality>
        <joint joint1="q" joint2="p" polycoef="0.1 0.5 0.2 0 0" solref="0.05 0.7"
               solimp="0.8 0.9 0.01 0.4 3"/>
        <connect body1="b" anchor="0.1 0 0" solref="-500 -30"/>
      </equality>""",
    "fluid": """
      <option wind="1 2 3" density="100" viscosity="0.2" cone="elliptic" impratio="5">
        <flag frictionloss="disable"/>
      </option>
      <worldbody>
        <body pos="0 0 1"><freejoint/><geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0.2"/></body>
      </worldbody>""",
    "soft limits": "<worldbody>"
    + HINGE.format(
        'range="-5 5" margin="2" solreflimit="0.1 0.8" solimplimit="0.7 0.8 0.01 0.5 2"',
        INNER.format('range="-5 5"'),
    )
    + "</worldbody>",
    "affine gain": "<worldbody>"
    + HINGE.format("", "")
    + """</worldbody>
      <actuator>
        <general joint="p" gaintype="affine" gainprm="1 2 3" biastype="affine" biasprm="1 2 3"/>
        <general joint="p" dyntype="integrator" actlimited="true" actrange="-1 1" gainprm="3"/>
        <damper joint="p" kv="2" ctrlrange="0 1"/><motor joint="p" armature="0.2" damping="0.3"/>
      </actuator>""",
}


MECHANISMS["nonlinear tendons"] = (
    "<worldbody>"
    + HINGE.format("", INNER.format(""))
    + """</worldbody>
      <tendon>
        <fixed stiffness="2 30 40" damping="0.1 0.2 0.3">
          <joint joint="p" coef="1"/><joint joint="q" coef="0.5"/>
        </fixed>
        <fixed stiffness="3" damping="0.2"><joint joint="p" coef="1"/></fixed>
      </tendon>"""
)
MECHANISMS["several controls"] = (
    "<worldbody>"
    + HINGE.format("", INNER.format(""))
    + """
        <body pos="1 0 0"><joint name="ball" type="ball"/><geom size="0.1" pos="0.1 0.05 0.2"/></body>
      </worldbody>
      <actuator>
        <motor joint="q" gear="2"/>
        <pid joint="p" kp="3" ki="2" input="pos vel ff" ctrlrange="-0.5 0.5" velrange="-0.2 0.3"
             ffrange="-0.4 0.1" forcerange="-2 2"/>
        <position joint="q" kp="4"/>
        <orientation joint="ball" kp="3" forcerange="0 0.5"/>
        <pid joint="q" kp="3" input="vel" velrange="-0.3 0.1"/>
        <orientation joint="ball" kp="2" input="vel"/>
        <dcmotor joint="p" resistance="2" motorconst="0.3"/>
        <motor joint="q" gear="3"/>
      </actuator>"""
)


def build(source: str, worlds: int = 1) -> tuple[ModelBuilder, mujoco.MjModel]:
    """Return a builder of some worlds, behind one of another kind, and MuJoCo's own model."""
    robot = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(robot)
    robot.add_mjcf(source, strict=True)
    builder = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(builder)
    other = ModelBuilder()
    other.add_shape_sphere(other.add_body(label="other"), radius=0.1)
    builder.add_world(other)
    builder.replicate(robot, worlds)
    return builder, mujoco.MjModel.from_xml_string(source)


def random_inputs(reference: mujoco.MjModel, seed: int) -> dict[str, np.ndarray]:
    """Return coordinates, velocities, controls and activations, exact in single precision."""
    rng = np.random.default_rng(seed)
    qpos = reference.qpos0.copy()
    for joint in range(reference.njnt):
        if reference.jnt_type[joint] >= 2:
            low, high = reference.jnt_range[joint]
            qpos[reference.jnt_qposadr[joint]] = 0.5 * (low + high) + 0.4 * (high - low) * rng.uniform(-1, 1)
    inputs = {
        "qpos": qpos,
        "qvel": rng.normal(size=reference.nv),
        "ctrl": rng.uniform(-0.5, 1.2, size=reference.nu),
        "act": rng.uniform(0.0, 1.0, size=reference.na),
    }
    return {name: values.astype(np.float32).astype(np.float64) for name, values in inputs.items()}


def forward(model: mujoco.MjModel, inputs: dict[str, np.ndarray]) -> mujoco.MjData:
    data = mujoco.MjData(model)
    for name, values in inputs.items():
        getattr(data, name)[:] = values
    mujoco.mj_forward(model, data)
    return data


def test_a_hand_with_tendons_and_muscles_accelerates_as_in_mujoco():
    """Lengths and moments of tendons, forces of all actuators, and accelerations are MuJoCo's."""
    builder, reference = build(HAND)
    group = convert_model(builder.finalize("cpu"), MujocoOptions())[1]
    converted = group.model
    assert (converted.nv, converted.nu, converted.na) == (reference.nv, reference.nu, reference.na)
    assert (converted.ntendon, converted.nwrap, converted.neq) == (4, reference.nwrap, reference.neq)
    assert len(group.direct_ctrl) == reference.nu - 1  # the servo of the wrist is a drive
    for seed in range(4):
        inputs = random_inputs(reference, seed)
        theirs = forward(reference, inputs)
        ours = forward(converted, inputs)  # the drive is the first actuator in the file, too
        np.testing.assert_allclose(ours.ten_length, theirs.ten_length, rtol=1e-6)
        for name in ("actuator_force", "qfrc_actuator"):
            forces = getattr(theirs, name)
            np.testing.assert_allclose(getattr(ours, name), forces, atol=1e-6 * np.abs(forces).max())
        assert ours.nefc == theirs.nefc
        scale = np.abs(theirs.qacc).max()
        np.testing.assert_allclose(ours.qacc, theirs.qacc, rtol=0.0, atol=ACCELERATION_ERROR * scale)
        np.testing.assert_allclose(ours.act_dot, theirs.act_dot, rtol=1e-5, atol=1e-6)


def actuators_by_row(model, group) -> list[int]:
    """Return the entry of `ctrl` that each actuator of the file became, in a model of one world."""
    names, direct, result = model.mujoco, iter(group.direct_ctrl), []
    for source, kind, target in zip(
        names.ctrl_source.numpy(), names.ctrl_type.numpy(), names.actuator_trnid.numpy(), strict=True
    ):
        drive = group.position_ctrl if kind == 0 else group.velocity_ctrl
        result.append(int(next(direct) if source in (1, 2) else drive[target[0]]))
    return result


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_accelerate_as_in_mujoco(name):
    """Every kind of transmission, spring, limit and option has the accelerations of MuJoCo."""
    source = f"<mujoco>{MECHANISMS[name]}</mujoco>"
    reference = mujoco.MjModel.from_xml_string(source)
    builder = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(builder)
    builder.add_mjcf(source, strict=True)
    model = builder.finalize("cpu")
    (group,) = convert_model(model, MujocoOptions(integrator=int(reference.opt.integrator)))
    place = actuators_by_row(model, group)
    rng = np.random.default_rng(0)
    for _ in range(3):
        qpos, step = reference.qpos0.copy(), 0.1 * rng.normal(size=reference.nv)
        mujoco.mj_integratePos(reference, qpos, step, 1.0)
        numbers = (
            qpos,
            *(rng.uniform(-1.0, 1.0, size) for size in (reference.nv, reference.nu, reference.na)),
        )
        qpos, qvel, ctrl, act = (values.astype(np.float32).astype(np.float64) for values in numbers)
        ours = {"qpos": qpos, "qvel": qvel, "ctrl": np.zeros(reference.nu), "act": act}
        ours["ctrl"][place] = ctrl
        for compiled in (group.model, reference):
            compiled.opt.timestep = DT  # it softens contacts
        result = forward(group.model, ours)
        expected = forward(reference, {**ours, "ctrl": ctrl})
        assert result.nefc == expected.nefc
        scale = np.abs(expected.qacc).max()
        np.testing.assert_allclose(result.qacc, expected.qacc, rtol=0.0, atol=ACCELERATION_ERROR * scale)


def test_contact_pairs_push_as_in_mujoco():
    """A pair has its own dimensions, friction, softness and adhesion, whatever the bits of its geoms."""
    builder, reference = build(PADDLES)
    group = convert_model(builder.finalize("cpu"), MujocoOptions(integrator="euler"))[1]
    assert group.model.npair == reference.npair
    for model in (group.model, reference):
        model.opt.timestep = DT
    inputs = {"qvel": np.random.default_rng(0).normal(size=reference.nv).astype(np.float32).astype(float)}
    ours, theirs = forward(group.model, inputs), forward(reference, inputs)
    assert ours.ncon == theirs.ncon > 4
    order = [np.lexsort(data.contact.pos.T) for data in (ours, theirs)]
    used = theirs.contact.dim[order[1], None] > np.array([1, 1, 3, 4, 4])  # of the coefficients of friction
    for name in ("dim", "friction", "solref", "solreffriction", "solimp", "includemargin", "adhesion"):
        values = [getattr(data.contact, name)[rows] for data, rows in zip((ours, theirs), order, strict=True)]
        if name == "friction":
            values = [used * coefficients for coefficients in values]
        np.testing.assert_allclose(*values, rtol=1e-6, err_msg=name)
    scale = np.abs(theirs.qacc).max()
    np.testing.assert_allclose(ours.qacc, theirs.qacc, rtol=0.0, atol=ACCELERATION_ERROR * scale)


def test_pairs_without_effect_are_reported():
    """Where contacts come from outside, MuJoCo does not look at its pairs."""
    builder, _ = build(PADDLES)
    with pytest.warns(MujocoCaveatWarning, match="the 2 contact pairs of world 1 have no effect"):
        convert_model(builder.finalize("cpu"), MujocoOptions(use_mujoco_contacts=False))


def test_a_hand_moves_as_in_mujoco():
    """Controls of general actuators reach the engine, and activations live on, world by world."""
    builder, reference = build(HAND, worlds=2)
    model = builder.finalize("cpu")
    solver = SolverMuJoCo(model)
    group = solver.groups[1]
    states, control = [model.state(), model.state()], model.control()
    reference.opt.timestep = DT
    targets, ctrl = control.joint_target_pos.numpy(), control.mujoco.ctrl.numpy()
    expected = []
    for row, world in enumerate(group.worlds):
        inputs = random_inputs(reference, row)
        data = mujoco.MjData(reference)
        data.ctrl[:] = inputs["ctrl"]
        wrist = group.first_dof[row] + int(np.flatnonzero(group.position_ctrl >= 0)[0])
        targets[wrist] = inputs["ctrl"][0]
        ctrl[model.mujoco.actuator_world.numpy() == world] = inputs["ctrl"]
        for _ in range(100):
            mujoco.mj_step(reference, data)
        expected.append(data.qpos.copy())
    control.joint_target_pos.assign(targets)
    control.mujoco.ctrl.assign(ctrl)
    for _ in range(100):
        solver.step(*states, control, None, DT)
        states.reverse()
    solver.report(strict=True)
    q = states[0].joint_q.numpy()
    for row, qpos in enumerate(expected):
        own = q[group.first_coord[row] : group.first_coord[row] + reference.nq].copy()
        ball = int(reference.jnt_qposadr[reference.joint("thumb").id])
        own[ball : ball + 4] = np.roll(own[ball : ball + 4], 1)
        np.testing.assert_allclose(own, qpos, atol=TRAJECTORY_ERROR)


def test_worlds_with_other_tendons_are_other_groups_and_numbers_differ_within_one():
    """What a tendon passes is compiled in; its stiffness and the gains of actuators may differ per world."""
    robot = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(robot)
    robot.add_mjcf(HAND)
    builder = ModelBuilder()
    builder.replicate(robot, 3)
    rerouted = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(rerouted)
    rerouted.add_mjcf(HAND.replace('<site site="palm_back"/>', ""))
    builder.add_world(rerouted)
    builder.custom_attributes["mujoco:tendon_stiffness"].values[4] = 7.0
    builder.custom_attributes["mujoco:actuator_gear"].values[11] = (0.5, 0, 0, 0, 0, 0)
    model = builder.finalize("cpu")
    groups = convert_model(model, MujocoOptions())
    assert [group.worlds.tolist() for group in groups] == [[0, 1, 2], [3]]
    np.testing.assert_array_equal(groups[0].value("tendon_stiffness")[:, 0], [3.0, 7.0, 3.0])
    np.testing.assert_array_equal(groups[0].direct_row[1], np.arange(12, 22))
    assert groups[1].model.nwrap == groups[0].model.nwrap - 1


def test_an_edit_of_a_tendon_or_actuator_acts_after_notify_model_changed():
    """Arrays of the namespace may be written to; `notify_model_changed` brings MuJoCo up to date."""
    builder, _ = build(HAND, worlds=2)
    model = builder.finalize("cpu")
    solver = SolverMuJoCo(model)
    stiffness = model.mujoco.tendon_stiffness.numpy()
    stiffness[4] = 11.0
    model.mujoco.tendon_stiffness.assign(stiffness)
    solver.notify_model_changed(ModelFlags.ALL)
    np.testing.assert_array_equal(solver.groups[1].value("tendon_stiffness")[:, 0], [3.0, 11.0])


def test_controls_of_one_actuator_are_assigned_world_by_world():
    """A PID controller of position and velocity pulls to both: m a = kp (u0 - q) + kv (u1 - qd)."""
    source = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(source)
    source.add_mjcf(
        """
        <mujoco>
          <worldbody>
            <body><joint name="x" type="slide" axis="1 0 0"/><geom size="0.1" mass="2"/></body>
          </worldbody>
          <actuator><pid joint="x" kp="3" kv="5" input="pos vel" ctrlrange="-1 1" velrange="-2 2"/></actuator>
        </mujoco>
        """,
        strict=True,
    )
    builder = ModelBuilder()
    builder.replicate(source, 2)
    builder.custom_attributes["mujoco:actuator_ctrlrange"].values[3] = (-0.05, 0.05)
    model = builder.finalize("cpu")
    control, solver, states = model.control(), SolverMuJoCo(model), [model.state(), model.state()]
    assert len(solver.groups) == 1
    control.mujoco.ctrl.assign([0.5, 0.2, 4.0, -0.1])  # of which the ranges let 0.5, 0.2, 1 and -0.05 pass
    solver.step(*states, control, None, DT)
    expected = (3.0 * np.array([0.5, 1.0]) + 5.0 * np.array([0.2, -0.05])) / 2.0
    # The velocity acts implicitly: m dv / dt = f - kv dv.
    np.testing.assert_allclose(states[1].joint_qd.numpy(), expected * DT / (1.0 + 5.0 * DT / 2.0), rtol=1e-5)


def test_the_delay_of_an_actuator_is_reported():
    """Controls act at once; the message tells to write them later."""
    source = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(source)
    text = HAND.replace("<position ", '<position delay="0.01" nsample="8" ', 1)
    assert text != HAND
    with pytest.warns(AssetWarning, match=r"delay of an actuator .* write to the control later"):
        source.add_mjcf(text)
    assert source.custom_frequency_count("mujoco:actuator") == 11


def make_sliders() -> tuple[ModelBuilder, int]:
    """Return a builder of one slider with a site, in the namespace."""
    builder = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(builder)
    body = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_prismatic(-1, body, axis="x", label="slide")])
    return builder, builder.add_site(body, label="mark")


def test_a_force_along_a_site_is_gear_times_control():
    """An actuator made by hand: a = gear * gain * ctrl / m, whatever else there is in other worlds."""
    robot, site = make_sliders()
    robot.add_custom_values(
        {
            "mujoco:actuator_trntype": TrnType.SITE,
            "mujoco:actuator_trnid": (site, -1),
            "mujoco:actuator_gear": (3.0, 0, 0, 0, 0, 0),
            "mujoco:actuator_gainprm": (2.0, *[0.0] * 9),
            "mujoco:ctrl": 0.5,
        }
    )
    builder = ModelBuilder()
    builder.replicate(robot, 2)
    builder.add_world(make_sliders()[0])
    model = builder.finalize("cpu")
    control = model.control()
    control.mujoco.ctrl.assign([0.5, -1.0])
    solver, states = SolverMuJoCo(model), [model.state(), model.state()]
    solver.step(*states, control, None, DT)
    expected = np.array([3.0, -6.0, 0.0]) * DT  # m = 1
    np.testing.assert_allclose(states[1].joint_qd.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            {"mujoco:actuator_trntype": TrnType.TENDON, "mujoco:actuator_label": "pull"},
            r"actuator 'pull' \(row 0\) acts on a TENDON that world 0 does not have",
        ),
        (
            {
                "mujoco:actuator_trnid": (0, -1),
                "mujoco:actuator_gaintype": int(mujoco.mjtGain.mjGAIN_PID),
                "mujoco:actuator_biastype": int(mujoco.mjtBias.mjBIAS_AFFINE),
                "mujoco:actuator_gainprm": [0.0] * 10,
                "mujoco:actuator_ctrlspec": 3,
                "mujoco:actuator_label": "servo",
            },
            r"actuator 'servo' \(row 0\) takes 2 controls, but has rows for 1.*ctrl_source 2",
        ),
        ({"mujoco:ctrl_source": 2}, r"row 0 of mujoco:actuator is a further control .* the row before is no"),
        ({"mujoco:tendon_type": 0, "mujoco:tendon_label": "t"}, r"tendon 't' \(row 0\) has no joint"),
        ({"mujoco:tendon_type": 1, "mujoco:tendon_label": "t"}, r"tendon 't' \(row 0\) passes nothing"),
        (
            {"mujoco:pair_geom1": 0, "mujoco:pair_geom2": 0, "mujoco:pair_label": "p"},
            r"contact pair 'p' \(row 0\) names a shape that is no geom of world 0",
        ),
    ],
)
def test_rows_that_name_nothing_are_refused(rows, message):
    """The error names the row, its name and the remedy."""
    robot, _ = make_sliders()
    robot.add_custom_values(rows)
    with pytest.raises(ValueError, match=message):
        SolverMuJoCo(robot.finalize("cpu"))


def test_rows_of_no_world_are_refused():
    """In a model with worlds, a tendon or pair must be in one of them."""
    scene = ModelBuilder()
    scene.add_world(make_sliders()[0])
    scene.add_custom_values({"mujoco:tendon_type": 0})
    with pytest.raises(ValueError, match="row 0 of mujoco:tendon belongs to no world"):
        SolverMuJoCo(scene.finalize("cpu"))
