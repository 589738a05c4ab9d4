"""Fixed tendons of MJCF files in SolverSAP, and the actuators on them: MuJoCo is the oracle."""

import warnings

import mujoco
import numpy as np
import pytest

import pluriverse as pv
from pluriverse.solvers.sap.unsupported import UnsupportedFeatureWarning
from pluriverse.solvers.springs import no_tendons
from pluriverse.warnings import AssetWarning, FrozenWorldWarning

DT = 0.0005
ARM = """
<mujoco>
  <option gravity="0 0 0" timestep="0.0005" integrator="implicitfast"/>
  <default>
    <joint axis="0 1 0" damping="0.2" armature="0.01"/><geom size="0.03" contype="0" conaffinity="0"/>
  </default>
  <worldbody>
    <body><joint name="a"/><geom type="capsule" fromto="0 0 0 0.3 0 0"/>
      <body pos="0.3 0 0"><joint name="b"/><geom type="capsule" fromto="0 0 0 0.3 0 0"/>
        <body pos="0.3 0 0"><joint name="c"/><geom type="capsule" fromto="0 0 0 0.2 0 0"/></body>
      </body></body>
  </worldbody>
  <tendon>
    <fixed name="t" {tendon}><joint joint="a" coef="1"/><joint joint="c" coef="-0.5"/></fixed>
    <fixed name="u"><joint joint="b" coef="0.7"/></fixed>
  </tendon>
  <actuator>{actuator}</actuator>
</mujoco>
"""
START = np.array([0.3, -0.2, 0.5])
CASES = {
    "spring": ('stiffness="20" damping="0.5"', "", ()),
    "spring with a rest length": ('stiffness="8" springlength="0.4"', "", ()),
    "spring that is slack between two lengths": ('stiffness="30" springlength="-0.2 0.02"', "", ()),
    "spring with a rest length below 0": ('stiffness="20" springlength="-0.5"', "", ()),
    "spring with the rest length that stands for none": ('stiffness="20" springlength="-2 -1"', "", ()),
    "spring that stiffens": ('stiffness="5 20 30" springlength="0.3"', "", ()),
    "spring without a linear part": ('stiffness="0 0 600"', "", ()),
    "spring that softens until it pushes": ('stiffness="20 -90 0" springlength="-0.2 -0.1"', "", ()),
    "damper that stiffens": ('stiffness="20" damping="0.1 0.5 0.8"', "", ()),
    "servo": ("", '<position tendon="t" kp="12" kv="0.4"/>', (0.6,)),
    "servo at its force limit": ("", '<position tendon="t" kp="40" kv="0.4" forcerange="-1.5 1.5"/>', (2.0,)),
    "motor with a gear": (
        "",
        '<motor tendon="t" gear="2" ctrlrange="-0.3 0.3"/>',
        (5.0,),
    ),
    "two actuators and a spring": (
        'stiffness="5"',
        '<general tendon="t" gainprm="3" biastype="affine" biasprm="0.2 -4 -0.3" gear="1.5"/>'
        '<velocity tendon="u" kv="0.8"/>',
        (0.5, -0.4),
    ),
    "servo at the force limit of its tendon": (
        'actuatorfrcrange="-1 0.9"',
        '<position tendon="t" kp="40" kv="0.4"/>',
        (2.0,),
    ),
    "actuators that share the force of their tendon": (
        'actuatorfrcrange="-1 0.9"',
        '<position tendon="t" kp="12" kv="0.4"/><motor tendon="t" gear="-2"/><motor tendon="u"/>',
        (0.9, 0.7, 1.5),
    ),
    "what pushes away": ("", '<general tendon="t" biastype="affine" biasprm="0.2 0.5 0"/>', (0.0,)),
}


def import_arm(tendon, actuator):
    builder = pv.ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("error", AssetWarning)  # nothing is lost
        builder.add_mjcf(ARM.format(tendon=tendon, actuator=actuator))
    return builder


@pytest.mark.parametrize("case", CASES)
def test_a_tendon_moves_its_joints_as_in_mujoco(case):
    """Over a quarter of a second of free motion, in steps so small that integrators agree."""
    tendon, actuator, ctrl = CASES[case]
    reference = mujoco.MjModel.from_xml_string(ARM.format(tendon=tendon, actuator=actuator))
    data = mujoco.MjData(reference)
    data.qpos[:], data.ctrl[:] = START, ctrl
    mujoco.mj_step(reference, data, 500)

    model = import_arm(tendon, actuator).finalize("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the solver leaves nothing out
        simulation = pv.Simulation(model, pv.SolverSAP(model), dt=DT)
    simulation.state.joint_q.assign(START.astype(np.float32))
    if ctrl:
        simulation.control.mujoco.ctrl.assign(np.array(ctrl, dtype=np.float32))
    simulation.step(500)
    moved = np.abs(data.qpos - START).max()
    assert moved > 0.02
    np.testing.assert_allclose(simulation.state.joint_q.numpy(), data.qpos, rtol=0.0, atol=0.01 * moved)


def test_a_limit_holds_the_length():
    """A tendon that a motor pulls against its limit stays there, however hard."""
    model = import_arm('range="-0.3 0.3"', '<motor tendon="t" gear="20"/>').finalize("cpu")
    simulation = pv.Simulation(model, dt=0.005)
    simulation.control.mujoco.ctrl.assign([1.0])
    simulation.step(400)
    q = simulation.state.joint_q.numpy()
    assert 0.3 <= q[0] - 0.5 * q[2] < 0.31


@pytest.mark.parametrize(("margin", "length"), [(0.2, 0.1), (0.9, 0.0)])
def test_a_limit_pushes_from_its_margin_on(margin, length):
    """A tendon that is pulled against its limit rests at the range minus the margin, as in MuJoCo."""
    xml = f'range="-0.3 0.3" margin="{margin}"', '<motor name="pull" tendon="t" ctrlrange="-1 1"/>'
    reference = mujoco.MjModel.from_xml_string(ARM.format(tendon=xml[0], actuator=xml[1]))
    reference.opt.timestep = 0.005
    data = mujoco.MjData(reference)
    data.ctrl[:] = 1.0
    mujoco.mj_step(reference, data, 400)
    simulation = pv.Simulation(import_arm(*xml).finalize("cpu"), dt=0.005)
    simulation.control.mujoco.ctrl.assign([1.0])
    simulation.step(400)
    q = simulation.state.joint_q.numpy()
    # MuJoCo's limits give way by some thousandths.
    assert data.ten_length[0] == pytest.approx(length, abs=0.01)
    assert q[0] - 0.5 * q[2] == pytest.approx(length, abs=0.001)


def test_a_tendon_over_a_ball_joint_is_left_out_and_named():
    """Its length is a part of a quaternion, so SolverSAP leaves it out, as importer and solver tell."""
    xml = """<mujoco><worldbody><body><joint name="j" type="ball"/><geom size="0.1" pos="0 0 -0.3"/></body>
      </worldbody><tendon><fixed name="t" stiffness="5" springlength="0.3"><joint joint="j" coef="1"/></fixed>
      </tendon></mujoco>"""
    builder = pv.ModelBuilder()
    with pytest.warns(AssetWarning, match=r"fixed tendon over a ball or free joint .t.: it exerts nothing"):
        report = builder.add_mjcf(xml)
    assert "kept in model.mujoco, which SolverMuJoCo uses" in report.losses[0].consequence
    model = builder.finalize("cpu")
    with pytest.warns(UnsupportedFeatureWarning, match="1 fixed tendons over ball or free joints"):
        solver = pv.SolverSAP(model)
    simulation = pv.Simulation(model, solver, dt=0.002)
    simulation.step(50)
    np.testing.assert_allclose(simulation.state.joint_q.numpy(), [0.0, 0.0, 0.0, 1.0], atol=1e-6)
    pushed = pv.Simulation(model, pv.SolverMuJoCo(model), dt=0.002)
    pushed.step(50)
    reference = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(reference)
    mujoco.mj_step(reference, data, 50)
    np.testing.assert_allclose(pushed.state.joint_q.numpy(), data.qpos[[1, 2, 3, 0]], atol=1e-4)


@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
def test_a_control_that_is_nan_is_named(solver):
    """Bounds of controls and forces do not make a number of it."""
    servo = '<position tendon="t" kp="12" kv="0.4" ctrlrange="-1 1" forcerange="-5 5"/>'
    model = import_arm("", servo).finalize("cpu")
    simulation = pv.Simulation(model, solver(model), dt=0.002)
    simulation.control.mujoco.ctrl.assign([np.nan])
    with pytest.warns(FrozenWorldWarning, match=r"control\.mujoco\.ctrl of mujoco:actuator 0 is nan"):
        simulation.step(3)


@pytest.mark.parametrize("threads", [1, 2])
def test_controls_change_between_recorded_steps(threads):
    """Each world follows its own control and spring, with the bits that it has alone."""
    robot = import_arm('stiffness="5"', '<position tendon="t" kp="12" kv="0.4"/>')
    builder = pv.ModelBuilder()
    builder.replicate(robot, 12)
    rng = np.random.default_rng(3)
    controls, stiffness = rng.uniform(-1.0, 1.0, (2, 12)), rng.uniform(0.0, 9.0, 12)

    def run(model, rows):
        simulation = pv.Simulation(model, dt=0.002, threads=threads)
        for ctrl in controls[:, rows]:
            simulation.control.mujoco.ctrl.assign(ctrl.astype(np.float32))
            simulation.step(10)
        of_both = np.column_stack([stiffness[rows], np.zeros(len(rows))])
        model.mujoco.tendon_stiffness.assign(of_both.ravel())
        simulation.step(10)
        return simulation.state.joint_q.numpy().reshape(len(rows), -1)

    together = run(builder.finalize("cpu"), np.arange(12))
    for world in (0, 5, 11):
        np.testing.assert_array_equal(together[world], run(robot.finalize("cpu"), np.array([world]))[0])
    assert np.ptp(together[:, 0]) > 0.01


def test_springs_of_a_script_take_the_place_of_those_of_the_file():
    """A table of no tendons leaves them out."""
    model = import_arm("", '<position tendon="t" kp="12"/>').finalize("cpu")
    solver = pv.SolverSAP(model)
    solver.set_springs(tendons=no_tendons(model.device))
    simulation = pv.Simulation(model, solver, dt=0.005)
    simulation.control.mujoco.ctrl.assign([1.0])
    simulation.step(20)
    np.testing.assert_array_equal(simulation.state.joint_q.numpy(), 0.0)


@pytest.mark.parametrize(
    ("key", "row", "value", "message"),
    [
        ("tendon_joint_adr", 0, 2, "'t' .row 0.* rows of mujoco:tendon_joint that do not exist"),
        ("tendon_joint", 1, 7, "'t' .row 0.* a joint that does not exist. Give tendon_joint of 0 to 2"),
        ("tendon_joint_dof", 0, 2, "'t' .row 0.* a degree of freedom that is none of its joint"),
        ("actuator_trnid", 0, (5, -1), "actuator 'pull' .row 0.* acts on tendon 5, but there are 2"),
    ],
)
def test_rows_that_a_script_gets_wrong_are_refused(key, row, value, message):
    """With the name of the tendon or actuator, what is wrong, and what to give."""
    model = import_arm("", '<motor name="pull" tendon="t"/>').finalize("cpu")
    array = getattr(model.mujoco, key)
    values = array.numpy()
    values[row] = value
    array.assign(values)
    with pytest.raises(ValueError, match=f"SolverSAP: .*{message}"):
        pv.SolverSAP(model)


def test_a_tendon_across_worlds_is_refused():
    builder = pv.ModelBuilder()
    builder.replicate(import_arm('stiffness="1"', ""), 2)
    model = builder.finalize("cpu")
    joints = model.mujoco.tendon_joint.numpy()
    dofs = model.mujoco.tendon_joint_dof.numpy()
    joints[1], dofs[1] = joints[1] + 3, dofs[1] + 3
    model.mujoco.tendon_joint.assign(joints)
    model.mujoco.tendon_joint_dof.assign(dofs)
    with pytest.raises(ValueError, match=r"tendon 't' .*joints of several worlds"):
        pv.SolverSAP(model)
