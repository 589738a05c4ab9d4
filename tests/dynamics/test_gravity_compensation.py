"""Gravity compensation of MJCF files: forces as in MuJoCo, in every solver."""

import mujoco
import numpy as np
import pytest
import warp as wp

import pluriverse as pv

ARM = """
<mujoco>
  <option gravity="0.5 -1 -9.81" timestep="0.001"/>
  <worldbody>
    <body name="upper" pos="0 0 1" gravcomp="{upper}">
      <joint name="shoulder" axis="0 1 0"/><geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/>
      <body name="bracket" pos="0.3 0 0" gravcomp="0.5">
        <geom type="box" size="0.03 0.02 0.05"/>
        <body name="lower" gravcomp="1.25">
          <joint name="elbow" axis="0 1 0"/><joint name="roll" axis="1 0 0"/>
          <geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0.1"/>
          <body name="tool" pos="0.2 0 0">
            <joint type="ball"/><geom type="box" size="0.04 0.02 0.02" pos="0.03 0 0"/>
          </body>
        </body>
      </body>
    </body>
    <body name="balloon" pos="1 0 1" gravcomp="0.9"><freejoint/><geom size="0.05" pos="0.02 0 0"/></body>
  </worldbody>
</mujoco>
"""


def import_arm(upper=1.0):
    builder = pv.ModelBuilder()
    report = builder.add_mjcf(ARM.format(upper=upper), strict=True)
    assert not report.losses
    return builder


def test_forces_are_those_of_mujoco():
    """What holds the joints at rest, with bodies of joints, without, and loose ones."""
    model = import_arm().finalize("cpu")
    reference = mujoco.MjModel.from_xml_string(ARM.format(upper=1.0))
    data = mujoco.MjData(reference)
    rng = np.random.default_rng(2)
    state = model.state()
    for _ in range(5):
        data.qpos[:3] = rng.uniform(-2.0, 2.0, 3)
        data.qpos[3:7] = rng.normal(size=4)
        mujoco.mj_normalizeQuat(reference, data.qpos)
        mujoco.mj_forward(reference, data)
        q = data.qpos.copy()
        q[3:7], q[10:14] = q[[4, 5, 6, 3]], q[[11, 12, 13, 10]]
        state.joint_q.assign(q.astype(np.float32))
        force = wp.zeros(model.joint_dof_count, dtype=wp.float64)
        pv.eval_inverse_dynamics_passive(model, state, gravity_force=force)
        expected = data.qfrc_bias - data.qfrc_gravcomp
        # Those of the ball joint and of the loose body are told in the frames of the child there.
        np.testing.assert_allclose(force.numpy()[:3], expected[:3], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(force.numpy()[6:9], expected[6:9], rtol=1e-5, atol=1e-6)
        assert np.abs(data.qfrc_gravcomp[:3]).max() > 0.1


def test_solvers_move_alike():
    """A quarter of a second of free motion, in steps of a millisecond."""
    builder = import_arm()
    reference = mujoco.MjModel.from_xml_string(ARM.format(upper=1.0))
    data = mujoco.MjData(reference)
    mujoco.mj_step(reference, data, 250)
    for solver in (pv.SolverSAP, pv.SolverMuJoCo):
        model = builder.finalize("cpu")
        simulation = pv.Simulation(model, solver(model), dt=0.001)
        simulation.step(250)
        q = simulation.state.joint_q.numpy()
        np.testing.assert_allclose(q[:3], data.qpos[:3], rtol=0.0, atol=2e-3)
        np.testing.assert_allclose(q[7:10], data.qpos[7:10], rtol=0.0, atol=2e-4)


@pytest.mark.parametrize("world_count", [1, 24])
def test_compensation_may_change_between_recorded_steps(world_count):
    """Each world takes the share it has now, with the bits that it has among others alone.

    Of eight worlds, which are stepped together, some, all and none are compensated.
    """
    builder, together = import_arm(0.0), pv.ModelBuilder()
    together.replicate(builder, world_count)
    model = together.finalize("cpu")
    shares = model.mujoco.gravcomp.numpy().reshape(world_count, -1)
    rng = np.random.default_rng(4)
    chosen = np.float32(rng.uniform(0.0, 1.2, shares.shape))
    chosen[:8:3], chosen[16:] = 0.0, 0.0
    simulation = pv.Simulation(model, dt=0.002)
    simulation.step(5)
    before = simulation.state.joint_q.numpy().reshape(world_count, -1)
    assert np.array_equal(before, np.broadcast_to(before[0], before.shape))
    model.mujoco.gravcomp.assign(chosen.ravel())
    simulation.step(20)
    found = simulation.state.joint_q.numpy().reshape(world_count, -1)
    for world in {0, world_count // 24, world_count // 2, world_count - 1}:
        single = builder.finalize("cpu")
        alone = pv.Simulation(single, dt=0.002)
        alone.step(5)
        single.mujoco.gravcomp.assign(chosen[world])
        alone.step(20)
        np.testing.assert_array_equal(found[world], alone.state.joint_q.numpy())
    if world_count > 1:
        assert not np.array_equal(found[0], found[1])


def test_weightless_arms_stay_where_they_are():
    """Nothing that is wholly compensated moves."""
    text = ARM.format(upper=1.0)
    for share in ("0.5", "1.25", "0.9"):
        text = text.replace(f'gravcomp="{share}"', 'gravcomp="1"')
    builder = pv.ModelBuilder()
    builder.add_mjcf(text.replace('<body name="tool"', '<body name="tool" gravcomp="1"'))
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, dt=0.002)
    before = simulation.state.joint_q.numpy()
    simulation.step(500)
    np.testing.assert_allclose(simulation.state.joint_q.numpy(), before, rtol=0.0, atol=1e-6)


def test_merged_links_keep_the_weight_of_both():
    """The bracket has no joint; merged into the upper arm, both weigh what they weighed before."""
    model, merged, collapsed = import_arm().finalize("cpu"), pv.ModelBuilder(), import_arm()
    report = merged.add_mjcf(ARM.format(upper=1.0), collapse_fixed_joints=True)
    assert [entry.feature for entry in report.losses] == ["gravity compensation of merged links"]
    collapsed.collapse_fixed_joints()
    expected = ((1.0 - model.mujoco.gravcomp.numpy()) * model.body_mass.numpy()).sum()
    for one in (merged.finalize("cpu"), collapsed.finalize("cpu")):
        assert one.body_count == model.body_count - 1
        weight = ((1.0 - one.mujoco.gravcomp.numpy()) * one.body_mass.numpy()).sum()
        assert weight == pytest.approx(expected, rel=1e-6)
