"""What `add_mjcf` keeps for SolverMuJoCo by itself: MuJoCo is the oracle, and SolverSAP has what it can."""

import warnings

import mujoco
import numpy as np
import pytest

import pluriverse as pv
from pluriverse.importers import AssetWarning
from pluriverse.solvers.sap.unsupported import UnsupportedFeatureWarning
from pluriverse.types import JointTargetMode

DT = 0.002
STEPS = 50

ARM = """<mujoco><option timestep="0.002" integrator="implicitfast" density="1000" viscosity="0.1"/>
<worldbody>
  <body name="upper" gravcomp="0.5"><joint name="shoulder" axis="0 1 0"/>
    <geom size="0.05" fromto="0 0 0 0 0 -0.4" type="capsule"/>
    <body name="lower" pos="0 0 -0.4"><joint name="elbow" axis="0 1 0"/>
      <geom size="0.04" fromto="0 0 0 0 0 -0.3" type="capsule"/></body></body>
</worldbody>
<tendon><fixed name="strap" stiffness="30" damping="1"><joint joint="shoulder" coef="1"/>
  <joint joint="elbow" coef="-0.5"/></fixed></tendon>
<actuator><motor name="lift" joint="shoulder" gear="2" ctrlrange="-3 3"/>
  <general name="pull" tendon="strap" gainprm="4"/></actuator>
<keyframe><key qpos="0.4 0.3" ctrl="0.5 0"/></keyframe></mujoco>"""


def steps(model, solver, control=None):
    state, following = model.state(), model.state()
    for _ in range(STEPS):
        solver.step(state, following, control, None, DT)
        state, following = following, state
    return np.concatenate([state.joint_q.numpy(), state.joint_qd.numpy()])


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
def test_a_file_moves_as_in_mujoco_without_registering_anything():
    """Tendon, gravity compensation, fluid, and actuators with commands of their own; float32: 2e-6 a step."""
    reference = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(reference)
    mujoco.mj_resetDataKeyframe(reference, data, 0)
    data.ctrl[:] = [0.5 + 1.0, -0.7]
    mujoco.mj_step(reference, data, nstep=STEPS)

    builder = pv.ModelBuilder()
    builder.add_mjcf(ARM)
    model = builder.finalize("cpu")
    control = model.control()
    # The keyframe's effort is that of the joint, in every solver; commands of the motor come on top of it.
    np.testing.assert_array_equal(control.joint_act.numpy(), [2.0 * 0.5, 0.0])
    np.testing.assert_array_equal(control.mujoco.ctrl.numpy(), [0.0, 0.0])
    control.mujoco.ctrl.assign([1.0, -0.7])
    found = steps(model, pv.SolverMuJoCo(model), control)
    np.testing.assert_allclose(found, [*data.qpos, *data.qvel], rtol=0.0, atol=STEPS * 2e-6)


def test_the_report_says_what_other_solvers_lack():
    """With SolverSAP the import, and later the solver, report all but the motor."""
    builder = pv.ModelBuilder()
    with pytest.warns(AssetWarning, match="kept in model.mujoco, which SolverMuJoCo uses"):
        report = builder.add_mjcf(ARM)
    lost = {entry.feature: entry.consequence for entry in report.losses}
    kept = "kept in model.mujoco, which SolverMuJoCo uses"
    assert lost["option density, viscosity"] == f"there is no fluid around the bodies; {kept}"
    assert not {"gravcomp", "tendon", "actuator of a tendon"} & lost.keys()  # they act in both
    with pytest.warns(UnsupportedFeatureWarning, match="has 1 worlds with"):
        pv.SolverSAP(builder.finalize("cpu"))


def test_efforts_of_motors_act_in_both_solvers():
    """Without what only MuJoCo has, both take joint_f and the keyframe's effort, and neither warns."""
    xml = ARM[: ARM.index("<tendon>")] + ARM[ARM.index("<actuator>") :]
    xml = xml.replace('<general name="pull" tendon="strap" gainprm="4"/>', '<motor joint="elbow"/>')
    xml = xml.replace(' density="1000" viscosity="0.1"', "")
    builder = pv.ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        builder.add_mjcf(xml)
        assert builder.joint_target_mode.tolist() == [JointTargetMode.EFFORT] * 2
        model = builder.finalize("cpu")
        control = model.control()
        control.joint_f.assign([-0.5, 0.3])
        sap, own = (steps(model, Solver(model), control) for Solver in (pv.SolverSAP, pv.SolverMuJoCo))
    # Both schemes are of first order: they differ by the acceleration, below 30 rad/s², times the step.
    np.testing.assert_allclose(sap, own, rtol=0.0, atol=30.0 * DT)


def test_files_of_different_options_share_a_model():
    """Options and switches of the whole model are those of no file; a fluid is that of its world."""
    water = ARM.replace('integrator="implicitfast"', 'integrator="RK4" iterations="7"')
    air = ARM.replace(' density="1000" viscosity="0.1"', "").replace(
        "<worldbody>", '<option><flag gravity="enable" limit="disable"/></option><worldbody>', 1
    )
    builder = pv.ModelBuilder()
    for xml in (water, air):
        world = pv.ModelBuilder()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssetWarning)
            world.add_mjcf(xml)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            builder.add_world(world)
    model = builder.finalize("cpu")
    assert model.mujoco.integrator.numpy().tolist() == [3]
    assert model.mujoco.iterations.numpy().tolist() == [100]
    assert model.mujoco.flag_limit.numpy().tolist() == [True]
    np.testing.assert_array_equal(model.mujoco.density.numpy(), [1000.0, 0.0])


@pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")
def test_what_is_written_into_the_model_acts():
    """Stiffnesses of contacts and limits that a user gives replace the solref of the file."""
    xml = ARM.replace('axis="0 1 0"/>', 'axis="0 1 0" range="-20 20" solreflimit="0.01 1"/>').replace(
        'size="0.05"', 'size="0.05" solref="0.01 1" condim="4"'
    )
    builder = pv.ModelBuilder()
    builder.add_mjcf(xml)
    model = builder.finalize("cpu")
    assert not model.mujoco.solref.numpy().any()
    assert model.mujoco.condim.numpy().tolist() == [4, 3]
    solver = pv.SolverMuJoCo(model)
    np.testing.assert_allclose(solver.mj_model.jnt_solref, [[0.01, 1.0]] * 2, rtol=1e-7)
    model.joint_limit_ke.assign([1.0e3, np.nan])
    solver.notify_model_changed(pv.ModelFlags.JOINT_DOF_PROPERTIES)
    assert not np.isclose(solver.mj_model.jnt_solref[0, 0], 0.01)
    np.testing.assert_allclose(solver.mj_model.jnt_solref[1], [0.01, 1.0], rtol=1e-7)
    model.joint_limit_ke.fill_(np.nan)
    solver.notify_model_changed(pv.ModelFlags.JOINT_DOF_PROPERTIES)
    np.testing.assert_allclose(solver.mj_model.jnt_solref, [[0.01, 1.0]] * 2, rtol=1e-7)


def test_a_stage_beside_a_document_is_read_as_before():
    """Springs of the `mjc:` schema stay drives of the joints, which every solver has."""
    stage = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "rod" (prepend apiSchemas = ["PhysicsArticulationRootAPI", "PhysicsRigidBodyAPI", "PhysicsMassAPI"])
{
    float physics:mass = 1
    float3 physics:diagonalInertia = (1, 1, 1)
}
def PhysicsRevoluteJoint "hinge"
{
    rel physics:body1 = </rod>
    uniform token physics:axis = "Y"
    uniform double mjc:stiffness = 3
}
"""
    stiffness = []
    for with_document in (False, True):
        builder = pv.ModelBuilder()
        if with_document:
            with pytest.warns(AssetWarning):
                builder.add_mjcf(ARM)
        builder.add_usd(stage)
        stiffness.append(float(builder.joint_target_ke[-1]))
        if with_document:
            assert builder.finalize("cpu").mujoco.dof_passive_stiffness.numpy()[-1] == 0.0
    assert stiffness[0] == stiffness[1] > 0.0
