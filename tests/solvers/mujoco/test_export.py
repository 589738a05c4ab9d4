"""Worlds saved as MJCF: import, simulate, save, reload."""

import mujoco
import numpy as np
import pytest

from pluriverse import JointTargetMode, ModelBuilder, SolverMuJoCo
from pluriverse.mujoco_attributes.choices import SolrefMode
from pluriverse.solvers.mujoco.mapping.conversion import convert_model
from pluriverse.solvers.mujoco.options import MujocoOptions
from tests.solvers.mujoco.attributes.test_extensions import HAND, MECHANISMS, actuators_by_row
from tests.solvers.mujoco.mapping.test_conversion import initial_data
from tests.solvers.mujoco.mapping.test_grouping import build_worlds

# MuJoCo writes six digits; stiff constraints multiply what is lost by a thousand.
XML_ROUNDING = 1e-5


def test_a_saved_world_is_the_world(tmp_path):
    """The file of a world, read by MuJoCo, accelerates as the world does at its initial state."""
    model = build_worlds([3, 4]).finalize(device="cpu")
    solver = SolverMuJoCo(model)
    path = tmp_path / "world.xml"
    solver.save_to_mjcf(path, world=1)
    saved = mujoco.MjModel.from_xml_path(str(path))
    alone = convert_model(build_worlds([4]).finalize(device="cpu"), MujocoOptions())[0]
    ours = initial_data(build_worlds([4]).finalize(device="cpu"), alone)
    data = mujoco.MjData(saved)
    mujoco.mj_resetDataKeyframe(saved, data, saved.key("initial").id)
    np.testing.assert_allclose(data.qpos, ours.qpos, atol=XML_ROUNDING)
    np.testing.assert_allclose(data.qvel, ours.qvel, atol=XML_ROUNDING)
    saved.jnt_solref[:] = alone.model.jnt_solref  # gains as forces are not saved
    ours.ctrl[:] = data.ctrl
    mujoco.mj_forward(saved, data)
    mujoco.mj_forward(alone.model, ours)
    assert (data.ncon, data.nefc) == (ours.ncon, ours.nefc)
    scale = np.abs(ours.qacc).max()
    np.testing.assert_allclose(data.qacc, ours.qacc, atol=1e-3 * scale)


def test_a_robot_survives_import_simulation_saving_and_reloading(robot_assets, tmp_path):
    """Go1, imported, stepped, saved and imported again, is the same machine and moves alike."""
    results = []
    source = robot_assets / "unitree_go1" / "go1.xml"
    for turn in range(2):
        builder = ModelBuilder()
        builder.add_mjcf(source)
        model = builder.finalize(device="cpu")
        solver = SolverMuJoCo(model)
        joints = {label.rpartition("/")[2]: index for index, label in enumerate(model.joint_label)}
        q = model.joint_q.numpy().copy()
        for name, index in joints.items():
            if name.endswith("calf_joint"):
                q[model.joint_q_start.numpy()[index]] = -1.8
        model.joint_q.assign(q)
        states = [model.state(), model.state()]
        for _ in range(50):
            solver.step(*states, None, None, 0.002)
            states.reverse()
        solver.report(strict=True)
        results.append(np.sort(states[0].joint_q.numpy()))
        results.append(np.sort(model.body_mass.numpy()))
        source = tmp_path / f"go1_{turn}.xml"
        solver.save_to_mjcf(source)
    np.testing.assert_allclose(results[2], results[0], atol=1e-3)
    np.testing.assert_allclose(results[3], results[1], rtol=XML_ROUNDING)


@pytest.mark.parametrize(
    "source", [HAND, f"<mujoco>{MECHANISMS['several controls']}</mujoco>"], ids=["hand", "controls"]
)
def test_tendons_and_actuators_are_saved(source, tmp_path):
    """A file that the constructor writes accelerates as the document that its world was imported from."""
    builder = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(builder)
    builder.add_mjcf(source)
    model = builder.finalize(device="cpu")
    path = tmp_path / "hand.xml"
    solver = SolverMuJoCo(model, save_to_mjcf=path)
    saved, reference = mujoco.MjModel.from_xml_path(str(path)), mujoco.MjModel.from_xml_string(source)
    assert (saved.nv, saved.nu, saved.na, saved.ntendon) == (
        reference.nv,
        reference.nu,
        reference.na,
        reference.ntendon,
    )
    place = actuators_by_row(model, solver.groups[0])  # drives come first in a saved file
    results = []
    for compiled in (saved, reference):
        rng = np.random.default_rng(0)
        data = mujoco.MjData(compiled)
        qpos, ctrl = reference.qpos0.copy(), rng.uniform(0.0, 1.0, compiled.nu)
        mujoco.mj_integratePos(reference, qpos, 0.1 * rng.normal(size=reference.nv), 1.0)
        data.qpos, data.qvel = qpos, rng.normal(size=reference.nv)
        data.ctrl[place if compiled is saved else np.arange(len(place))] = ctrl
        compiled.opt.timestep, compiled.opt.integrator = 0.002, solver.groups[0].model.opt.integrator
        mujoco.mj_forward(compiled, data)
        results.append(data.qacc.copy())
    scale = np.abs(results[1]).max()
    np.testing.assert_allclose(results[0], results[1], atol=1e-4 * scale)


def test_authored_softness_of_limits_is_saved_and_gains_as_forces_are_not(tmp_path):
    """RAW limits come back as they are; others have MuJoCo's default, as MJCF has no word for forces."""
    builder = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(builder)
    for mode in (SolrefMode.RAW, SolrefMode.FORCE_SPACE):
        link = builder.add_link(mass=1.0, inertia=np.eye(3))
        attributes = {"mujoco:solreflimit_mode": int(mode), "mujoco:solreflimit": (0.05, 0.7)}
        limits = {"limit_lower": -1.0, "limit_upper": 1.0, "limit_ke": 500.0, "limit_kd": 20.0}
        joint = builder.add_joint_revolute(-1, link, axis="y", custom_attributes=attributes, **limits)
        builder.add_articulation([joint])
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model)
    solver.save_to_mjcf(tmp_path / "limits.xml")
    saved = mujoco.MjModel.from_xml_path(str(tmp_path / "limits.xml"))
    np.testing.assert_allclose(saved.jnt_solref, [[0.05, 0.7], [0.02, 1.0]])
    np.testing.assert_allclose(solver.groups[0].model.jnt_solref[0], [0.05, 0.7], rtol=1e-6)
    assert solver.groups[0].model.jnt_solref[1, 0] != 0.02
    again = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(again)
    again.add_mjcf(tmp_path / "limits.xml")
    names = again.finalize(device="cpu").mujoco
    np.testing.assert_allclose(names.solreflimit.numpy()[0], [0.05, 0.7], rtol=1e-6)
    assert names.solreflimit_mode.numpy().tolist() == [SolrefMode.RAW, SolrefMode.MJCF_DEFAULT]


def test_a_world_that_is_not_there_cannot_be_saved(tmp_path):
    solver = SolverMuJoCo(build_worlds([3]).finalize(device="cpu"))
    with pytest.raises(IndexError, match="world 1 does not exist"):
        solver.save_to_mjcf(tmp_path / "world.xml", world=1)


def test_the_keyframe_has_efforts_where_steps_have_them(tmp_path):
    """Without stiffness the velocity takes them, as joint_act / kd."""
    builder = ModelBuilder()
    link, ball = (builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(2))
    builder.add_articulation([builder.add_joint_prismatic(-1, link, axis="x")])
    builder.add_articulation([builder.add_joint_ball(-1, ball)])
    builder.joint_target_mode[:] = int(JointTargetMode.POSITION_VELOCITY)
    builder.joint_target_kd[:], builder.joint_act[:] = 2.0, 3.0
    path = tmp_path / "world.xml"
    SolverMuJoCo(builder.finalize("cpu"), save_to_mjcf=path)
    saved = mujoco.MjModel.from_xml_path(str(path))
    gain, damping = saved.actuator_gainprm[:, 0], -saved.actuator_biasprm[:, 2]
    np.testing.assert_array_equal(gain, damping)
    np.testing.assert_array_equal((gain * saved.key_ctrl[0])[gain > 0.0], 3.0)
