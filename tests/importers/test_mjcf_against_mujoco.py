"""Imported MJCF robots have the masses, kinematics and mass matrix that MuJoCo gives them."""

import mujoco
import numpy as np
import pytest

from pluriverse.collision import CollisionPipeline
from pluriverse.geometry import quat_to_matrix
from pluriverse.model_builder import ModelBuilder
from pluriverse.solvers.sap import SolverSAP
from tests.importers.mechanics import body_poses, mass_matrix, randomize_joints, same_rotation

pytestmark = pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")

ROBOTS = {
    "go1": "unitree_go1/go1.xml",
    "g1": "unitree_g1/g1.xml",
    "ant": "newton_examples/nv_ant.xml",
    "humanoid": "newton_examples/nv_humanoid.xml",
    "tabletop": "newton_examples/tabletop.xml",
}
# Coordinates and velocities of a model are float32; chains of up to ten links and lever arms of a metre or
# two multiply their rounding by some tens.
POSE_TOLERANCE = 1e-5
MASS_TOLERANCE = 2e-6  # relative to the largest entry


def compile_reference(path):
    """Return MuJoCo's model; sensors that refer to nothing are left out, as the importer does."""
    spec = mujoco.MjSpec.from_file(str(path))
    for sensor in list(spec.sensors):
        spec.delete(sensor)
    return spec.compile()


def locate_joint(builder, model, joint):
    """Return the joint of the builder that a joint of MuJoCo is, or is an axis of, and which axis."""
    by_name = {label.rpartition("/")[2]: index for index, label in enumerate(builder.joint_label)}
    body = model.jnt_bodyid[joint]
    first = model.body_jntadr[body]
    names = [model.joint(index).name for index in range(first, first + model.body_jntnum[body])]
    if "_".join(names) in by_name:
        return by_name["_".join(names)], joint - first
    return by_name[model.joint(joint).name], 0


def copy_state(builder, model, data):
    """Set MuJoCo's qpos to the builder's joint_q, joint by joint, and return T with qvel = T joint_qd."""
    transform = np.zeros((model.nv, model.nv))
    for joint in range(model.njnt):
        index, axis = locate_joint(builder, model, joint)
        coord, dof = builder.joint_q_start[index] + axis, builder.joint_qd_start[index] + axis
        qpos, qvel = model.jnt_qposadr[joint], model.jnt_dofadr[joint]
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            data.qpos[qpos : qpos + 3] = builder.joint_q[coord : coord + 3]
            data.qpos[qpos + 3 : qpos + 7] = np.roll(builder.joint_q[coord + 3 : coord + 7], 1)
            turn = quat_to_matrix(builder.joint_q[coord + 3 : coord + 7])
            x, y, z = turn @ builder.body_com[builder.joint_child[index]]
            cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
            # v_origin = v_com - omega x com = v_com + com x omega; MuJoCo's omega is in body axes.
            transform[qvel : qvel + 3, dof : dof + 3] = np.eye(3)
            transform[qvel : qvel + 3, dof + 3 : dof + 6] = cross
            transform[qvel + 3 : qvel + 6, dof + 3 : dof + 6] = turn.T
        elif model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_BALL:
            data.qpos[qpos : qpos + 4] = np.roll(builder.joint_q[coord : coord + 4], 1)
            turn = quat_to_matrix(builder.joint_q[coord : coord + 4])
            transform[qvel : qvel + 3, dof : dof + 3] = turn.T
        else:
            data.qpos[qpos] = builder.joint_q[coord]
            transform[qvel, dof] = 1.0
    return transform


def check_against_mujoco(builder, model, seed):
    randomize_joints(builder, seed)
    data = mujoco.MjData(model)
    transform = copy_state(builder, model, data)
    mujoco.mj_forward(model, data)
    poses = body_poses(builder)
    for body in range(1, model.nbody):
        label = next(label for label in poses if label.endswith("/" + model.body(body).name))
        np.testing.assert_allclose(poses[label][:3], data.xpos[body], rtol=0.0, atol=POSE_TOLERANCE)
        assert same_rotation(np.roll(poses[label][3:], 1), data.xquat[body]) < POSE_TOLERANCE
    expected = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, expected)
    expected = transform.T @ expected @ transform
    np.testing.assert_allclose(mass_matrix(builder), expected, atol=MASS_TOLERANCE * np.abs(expected).max())


@pytest.mark.parametrize("robot", ROBOTS)
def test_robot_has_mujocos_poses_and_mass_matrix(robot_assets, robot):
    """Forward kinematics and mass matrix at random joint positions; serial joints of one body included."""
    path = robot_assets / ROBOTS[robot]
    builder = ModelBuilder()
    builder.add_mjcf(path)
    model = compile_reference(path)
    assert builder.body_mass.sum() == pytest.approx(model.body_mass[1:].sum(), rel=1e-12)
    check_against_mujoco(builder, model, seed=4)


JOINTS = """
<mujoco model="zoo"><compiler angle="degree" eulerseq="zyx"/>
  <default><joint armature="0.02"/><geom density="800"/></default>
  <worldbody>
    <body name="base" pos="0.1 0.2 0.3" euler="10 20 30">
      <joint name="slide" type="slide" axis="1 2 0.5" ref="0.2" range="-1 1" damping="3"/>
      <joint name="first" axis="0 1 0" pos="0.05 0 0.1" ref="25"/>
      <joint name="second" axis="0.3 0 1" pos="0 0.1 0" frictionloss="0.4"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0.1 0.2 0.3"/>
      <body name="wrist" pos="0 0 0.4" xyaxes="0 1 0 -1 0 0">
        <joint name="ball" type="ball" pos="0.02 0 0" armature="0"/>
        <inertial pos="0.1 0.02 0.03" mass="0.7" fullinertia="0.01 0.02 0.015 0.001 0.002 -0.001"/>
        <body name="plate" pos="0.1 0 0" quat="1 1 0 0"><geom type="box" size="0.1 0.2 0.05"/>
          <body name="tip" axisangle="0 1 0 40">
            <joint name="tip_x" axis="1 0 0"/><joint name="tip_y" axis="0 1 0"/>
            <joint name="tip_z" axis="0 0 1"/>
            <geom type="ellipsoid" size="0.05 0.1 0.15" pos="0 0.1 0"/></body>
        </body>
      </body>
    </body>
    <body name="free" pos="1 0 1" zaxis="1 1 1"><freejoint name="float"/>
      <geom type="cylinder" size="0.1 0.2" pos="0.1 0.2 0.3" euler="40 0 0"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_all_kinds_of_joints_have_mujocos_poses_and_mass_matrix(seed):
    """Slide, hinges off the origin, ball, weld, three hinges at a point, free; ref, euler, xyaxes, zaxis."""
    builder = ModelBuilder()
    builder.add_mjcf(JOINTS)
    check_against_mujoco(builder, mujoco.MjSpec.from_string(JOINTS).compile(), seed)


MANY_AXES = """
<mujoco model="axes"><compiler angle="radian"/>
  <worldbody>
    <body name="cart" pos="0.1 0.2 0.3" quat="1 0.2 0.3 0.4">
      <joint name="x" type="slide" axis="1 0.2 0" pos="1 2 3" ref="0.3" range="-1 2"/>
      <joint name="y" type="slide" axis="0 1 0.1" ref="-0.2" damping="3"/>
      <joint name="yaw" axis="0.1 0 1" pos="0.05 0 0.1" ref="0.4" range="-3 3" stiffness="2" springref="0.1"/>
      <joint name="pitch" axis="0 1 0" pos="0.05 0 0.1" ref="-0.5" frictionloss="0.4"/>
      <joint name="roll" axis="1 0 0" pos="0.05 0 0.1" armature="0.02"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/>
      <body name="offset" pos="0 0 0.4">
        <joint name="a" axis="0 1 0"/><joint name="b" axis="1 0 0" pos="0 0.1 0"/>
        <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/></body>
      <body name="swung" pos="0.3 0 0.4">
        <joint name="c" axis="0 1 0"/><joint name="d" type="slide" axis="1 0 0"/>
        <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0"/></body>
    </body>
  </worldbody>
  <actuator><position joint="pitch" kp="7"/><motor joint="y" gear="2"/></actuator>
  <keyframe><key name="home" qpos="1 2 3 4 5 6 7 8 9" qvel="9 8 7 6 5 4 3 2 1" ctrl="0.5 0.25"/></keyframe>
</mujoco>
"""


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_slides_and_hinges_of_one_body_are_one_joint_with_mujocos_mechanics(seed):
    """Skew axes, an anchor off the origin and ref on every axis give MuJoCo's poses and mass matrix."""
    builder = ModelBuilder()
    builder.add_mjcf(MANY_AXES)
    check_against_mujoco(builder, mujoco.MjSpec.from_string(MANY_AXES).compile(), seed)


def test_only_what_is_a_d6_joint_becomes_one():
    """Hinges with anchors apart, and a slide behind a hinge, stay chains of joints."""
    builder = ModelBuilder()
    builder.add_mjcf(MANY_AXES)
    assert [label.rpartition("/")[2] for label in builder.joint_label] == ["x_y_yaw_pitch_roll", *"abcd"]
    assert builder.joint_dof_dim.tolist() == [[2, 3], [0, 1], [0, 1], [0, 1], [1, 0]]
    assert [label.rpartition("/")[2] for label in builder.body_label] == [
        "cart",
        "a_link",
        "offset",
        "c_link",
        "swung",
    ]


def test_limits_drives_and_losses_stay_with_their_axis():
    """What the file says about one joint of a body arrives at the axis that the joint becomes."""
    builder = ModelBuilder()
    builder.add_mjcf(MANY_AXES)
    assert builder.joint_limit_lower[:5].tolist() == [-1.0, -np.inf, -3.0, -np.inf, -np.inf]
    assert builder.joint_damping[:5].tolist() == [0.0, 3.0, 0.0, 0.0, 0.0]
    assert builder.joint_friction[:5].tolist() == [0.0, 0.0, 0.0, 0.4, 0.0]
    assert builder.joint_armature[:5].tolist() == [0.0, 0.0, 0.0, 0.0, 0.02]
    assert builder.joint_target_ke[:5].tolist() == [0.0, 0.0, 2.0, 7.0, 0.0]
    assert builder.joint_target_pos[:5].tolist() == [0.0, 0.0, 0.1, 0.5, 0.0]
    assert builder.joint_act[:5].tolist() == [0.0, 0.5, 0.0, 0.0, 0.0]
    assert builder.joint_q.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    assert builder.joint_qd.tolist() == [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]


def test_authored_pose_is_the_initial_pose():
    """At the initial coordinates (ref for hinges and slides) every body stands as MuJoCo puts it at qpos0."""
    builder = ModelBuilder()
    builder.add_mjcf(JOINTS)
    model = mujoco.MjSpec.from_string(JOINTS).compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    poses = body_poses(builder)
    for name in ("base", "wrist", "plate", "tip", "free"):
        label = next(label for label in poses if label.endswith("/" + name))
        np.testing.assert_allclose(poses[label][:3], data.body(name).xpos, atol=POSE_TOLERANCE)
        assert same_rotation(np.roll(poses[label][3:], 1), data.body(name).xquat) < POSE_TOLERANCE


def test_merging_welded_bodies_keeps_the_mass_matrix():
    """`collapse_fixed_joints` changes the number of bodies, not the mechanics."""
    kept, merged = ModelBuilder(), ModelBuilder()
    kept.add_mjcf(JOINTS)
    report = merged.add_mjcf(JOINTS, collapse_fixed_joints=True)
    assert merged.body_count == kept.body_count - 1
    assert report.merged_links == {
        "zoo/worldbody/base/wrist/plate": "zoo/worldbody/base/wrist",
    }
    assert merged.joint_label == [label for label in kept.joint_label if not label.endswith("plate/fixed")]
    assert merged.shape_label == kept.shape_label
    for builder in (kept, merged):
        randomize_joints(builder, 5)
    merged.joint_q[:] = kept.joint_q
    expected = mass_matrix(kept)
    np.testing.assert_allclose(
        mass_matrix(merged), expected, rtol=0.0, atol=MASS_TOLERANCE * np.abs(expected).max()
    )


def test_scale_scales_lengths_and_inertias():
    """Twice the size at the same mass: poses twice as far, inertias four times, slide limits twice."""
    small, large = ModelBuilder(), ModelBuilder()
    small.add_mjcf(JOINTS)
    large.add_mjcf(JOINTS, scale=2.0)
    np.testing.assert_allclose(large.body_mass, small.body_mass)
    np.testing.assert_allclose(large.body_inertia, 4.0 * small.body_inertia, rtol=1e-12)
    np.testing.assert_allclose(large.shape_scale, 2.0 * small.shape_scale)
    assert large.joint_limit_upper[0] == pytest.approx(2.0 * small.joint_limit_upper[0])
    small_poses, large_poses = body_poses(small), body_poses(large)
    for label, pose in small_poses.items():
        np.testing.assert_allclose(large_poses[label][:3], 2.0 * pose[:3], atol=POSE_TOLERANCE)


def test_xform_moves_everything():
    """A turn and a shift of the model's world frame moves every body, welded, hinged or free."""
    turn = np.array([0.0, 0.0, np.sin(0.4), np.cos(0.4)])
    here, there = ModelBuilder(), ModelBuilder()
    here.add_mjcf(JOINTS)
    there.add_mjcf(JOINTS, xform=((1.0, -2.0, 3.0), turn))
    moved = body_poses(there)
    for label, pose in body_poses(here).items():
        expected = quat_to_matrix(turn) @ pose[:3] + [1.0, -2.0, 3.0]
        np.testing.assert_allclose(moved[label][:3], expected, atol=POSE_TOLERANCE)


@pytest.mark.parametrize("seed", [0, 1])
def test_humanoid_accelerates_as_in_mujoco(robot_assets, seed):
    """From rest, springs, motors, gravity and armature of the humanoid give MuJoCo's accelerations.

    One step of 1e-7 s: damping changes the speeds by its rate (below 1e3 /s) times the step, 1e-4 relative.
    """
    path = robot_assets / ROBOTS["humanoid"]
    builder = ModelBuilder()
    builder.add_mjcf(path, xform=((0.0, 0.0, 5.0), (0.0, 0.0, 0.0, 1.0)))
    model = compile_reference(path)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    lower, upper = (np.asarray(limit)[6:] for limit in (builder.joint_limit_lower, builder.joint_limit_upper))
    builder.joint_q[7:] = lower + rng.uniform(0.2, 0.8, len(lower)) * (upper - lower)
    transform = copy_state(builder, model, data)
    data.ctrl[:] = rng.uniform(-1.0, 1.0, model.nu)
    for actuator in range(model.nu):
        index, axis = locate_joint(builder, model, model.actuator_trnid[actuator, 0])
        effort = model.actuator_gear[actuator, 0] * data.ctrl[actuator]
        builder.joint_act[builder.joint_qd_start[index] + axis] = effort
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.jnt_stiffness[0] = 0.0  # that of the free joint, which the import reports
    mujoco.mj_forward(model, data)

    finalized = builder.finalize("cpu")
    solver = SolverSAP(finalized, contact_preset_variant="approx64")
    before, after, dt = finalized.state(), finalized.state(), 1e-7
    pipeline = CollisionPipeline(finalized)
    contacts = pipeline.contacts()
    solver.step(before, after, finalized.control(), contacts, dt)
    actual = transform @ (after.joint_qd.numpy().astype(np.float64) / dt)
    scale = np.abs(data.qacc).max()
    np.testing.assert_allclose(actual, data.qacc, rtol=0.0, atol=3e-4 * scale)
