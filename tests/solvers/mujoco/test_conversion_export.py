"""Worlds saved as MJCF: import, simulate, save, reload."""

import mujoco
import numpy as np
import pytest

from pluriverse import ModelBuilder, SolverMuJoCo
from pluriverse.solvers.mujoco.conversion import convert_model
from pluriverse.solvers.mujoco.options import MujocoOptions
from tests.solvers.mujoco.test_conversion import initial_data
from tests.solvers.mujoco.test_grouping import build_worlds

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


def test_a_world_that_is_not_there_cannot_be_saved(tmp_path):
    solver = SolverMuJoCo(build_worlds([3]).finalize(device="cpu"))
    with pytest.raises(IndexError, match="world 1 does not exist"):
        solver.save_to_mjcf(tmp_path / "world.xml", world=1)
