"""SolverMuJoCo against plain MuJoCo on the same MJCF: accelerations, and trajectories of 100 steps."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from pluriverse import ModelBuilder, SolverMuJoCo
from pluriverse.solvers.mujoco.mapping.conversion import convert_model
from pluriverse.solvers.mujoco.options import MujocoOptions

DT = 0.002
# The model keeps its numbers in single precision; an acceleration is the quotient of a few of them.
ACCELERATION_ERROR = 1e-6
# That error over 100 steps, growing as free motion does; contacts amplify it.
TRAJECTORY_ERROR = 1e-5

ARM = """
<mujoco model="arm">
  <compiler angle="radian"/>
  <default>
    <joint armature="0.1" damping="1.5" frictionloss="0.1"/>
    <position forcerange="-87 87"/>
    <geom type="capsule" contype="0" conaffinity="0" density="0"/>
  </default>
  <worldbody>
    <body name="base" pos="0 0 0.1">
      <inertial mass="2.9" pos="-0.04 0 0.05" diaginertia="0.01 0.012 0.013"/>
      <body name="link1" pos="0 0 0.333">
        <inertial mass="2.9" pos="0.004 0.002 -0.05" fullinertia="0.7 0.7 0.01 -0.0001 0.007 0.02"/>
        <joint name="j1" axis="0 0 1" range="-2.89 2.89"/>
        <body name="link2" quat="1 -1 0 0">
          <inertial mass="2.9" pos="-0.003 -0.03 0.003" fullinertia="0.01 0.03 0.03 -0.004 0.001 0.0007"/>
          <joint name="j2" axis="0 0 1" range="-1.76 1.76"/>
          <body name="link3" pos="0 -0.316 0" quat="1 1 0 0">
            <inertial mass="2.3" pos="0.03 0.04 -0.06" fullinertia="0.037 0.036 0.011 -0.005 -0.011 -0.013"/>
            <joint name="j3" axis="0 0 1" range="-2.89 2.89"/>
            <body name="link4" pos="0.0825 0 0" quat="1 1 0 0">
              <inertial mass="2.3" pos="-0.053 0.1 0.027" fullinertia="0.026 0.02 0.028 0.008 -0.001 0.004"/>
              <joint name="j4" axis="0 0 1" range="-3.07 -0.07"/>
              <body name="link5" pos="-0.0825 0.384 0" quat="1 -1 0 0">
                <inertial mass="1.2" pos="-0.011 0.041 -0.038"
                          fullinertia="0.036 0.03 0.011 -0.002 -0.001 0.0002"/>
                <joint name="j5" axis="0 0 1" range="-2.89 2.89"/>
                <body name="link6" quat="1 1 0 0">
                  <inertial mass="1.7" pos="0.06 -0.014 -0.01"
                            fullinertia="0.002 0.004 0.005 0.0001 -0.001 0.0003"/>
                  <joint name="j6" axis="0 0 1" range="-0.01 3.75"/>
                  <body name="hand" pos="0.088 0 0" quat="1 1 0 0">
                    <inertial mass="0.7" pos="0.01 0.004 0.06"
                              fullinertia="0.012 0.01 0.005 -0.0004 -0.001 -0.0007"/>
                    <joint name="j7" axis="0 0 1" range="-2.89 2.89"/>
                    <geom size="0.04 0.1"/>
                    <body name="left" pos="0 0 0.06">
                      <inertial mass="0.015" pos="0 0 0" diaginertia="2e-6 2e-6 8e-7"/>
                      <joint name="f1" type="slide" axis="0 1 0" range="-0.01 0.04" armature="0.01"/>
                    </body>
                    <body name="right" pos="0 0 0.06">
                      <inertial mass="0.015" pos="0 0 0" diaginertia="2e-6 2e-6 8e-7"/>
                      <joint name="f2" type="slide" axis="0 -1 0" range="-0.01 0.04" armature="0.01"/>
                    </body>
                  </body>
                </body>
              </body>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <equality><joint joint1="f1" joint2="f2"/></equality>
  <actuator>
    <position name="a1" joint="j1" kp="450" kv="45"/>
    <position name="a2" joint="j2" kp="450" kv="45"/>
    <position name="a4" joint="j4" kp="350" kv="35"/>
    <velocity name="a6" joint="j6" kv="20"/>
  </actuator>
</mujoco>
"""

FOUR_BAR = """
<mujoco model="four_bar">
  <compiler angle="radian"/>
  <default><geom type="capsule" size="0.02" contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="crank">
      <joint name="crank" axis="0 1 0" damping="0.01"/>
      <geom fromto="0 0 0 0 0 0.2"/>
      <body name="coupler" pos="0 0 0.2">
        <joint name="coupler" axis="0 1 0"/>
        <geom fromto="0 0 0 0.5 0 0.1"/>
      </body>
    </body>
    <body name="rocker" pos="0.5 0 0">
      <joint name="rocker" axis="0 1 0"/>
      <geom fromto="0 0 0 0 0 0.3"/>
    </body>
  </worldbody>
  <equality><connect body1="coupler" body2="rocker" anchor="0.5 0 0.1"/></equality>
  <actuator><motor joint="crank"/></actuator>
</mujoco>
"""

BOXES = """
<mujoco model="boxes">
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <body pos="0 0 0.3"><freejoint/><geom type="box" size="0.1 0.15 0.2"/></body>
    <body pos="0.05 0.02 0.8" quat="0.9 0.1 0.2 0.1"><freejoint/><geom type="capsule" size="0.1 0.2"/></body>
    <body pos="0.3 0.2 0.5"><joint type="ball" pos="0 0 0.3"/><geom type="sphere" size="0.1"/></body>
    <body pos="-0.5 0 0.11">
      <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
      <geom type="cylinder" size="0.1 0.1"/>
    </body>
  </worldbody>
</mujoco>
"""

# A wrist without mass below an arm, held in the world, and a pad without mass that touches the floor. MuJoCo
# weighs both at their centres of mass: where the file says, or the place of the body in its parent.
HELD_TOOL = """
<mujoco model="held_tool">
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <body name="lower" pos="0 0 0.5">
      <joint axis="0 1 0"/><joint axis="0 0 1"/><geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/>
      <body name="upper" pos="0.3 0 0">
        <joint axis="0 1 0"/><geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/>
        <body name="wrist" pos="0.3 0 0">
          <inertial pos="0.1 0.05 0" mass="0" diaginertia="0 0 0"/>
          <body name="pad" pos="0 0.02 -0.35"><geom type="box" size="0.1 0.1 0.2" mass="0"/></body>
        </body>
      </body>
    </body>
  </worldbody>
  <equality><weld body1="wrist"/></equality>
</mujoco>
"""

# Free bodies of all shapes on and beside each other. Contacts are refined further than by default (1e-6): the
# corners of meshes are in another order here, which moves points along a line where MuJoCo stops early.
HEAP = """
<mujoco model="heap">
  <option ccd_tolerance="1e-10" ccd_iterations="200"/>
  <asset>
    <mesh name="wedge" vertex="-0.125 -0.125 -0.0625 0.125 -0.125 -0.0625 0.125 0.125 -0.0625
                               -0.125 0.125 -0.0625 -0.125 -0.0625 0.0625 0.125 -0.0625 0.0625"/>
  </asset>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <body pos="0 0 0.12"><freejoint/><geom type="cylinder" size="0.25 0.125"/></body>
    <body pos="0 0 0.3" quat="1 0 0 0.25"><freejoint/><geom type="box" size="0.25 0.125 0.0625"/></body>
    <body pos="0.02 0 0.42" quat="1 0 1 0.1"><freejoint/><geom type="capsule" size="0.0625 0.125"/></body>
    <body pos="0.25 0 0.3"><freejoint/><geom type="mesh" mesh="wedge"/></body>
    <body pos="0 0.2 0.36" quat="1 0.1 0 0"><freejoint/><geom type="ellipsoid" size="0.125 0.1 0.06"/></body>
    <body pos="0.25 0 0.42" quat="1 1 0 0"><freejoint/><geom type="cylinder" size="0.0625 0.125"/></body>
    <body pos="-0.37 0 0.12" quat="1 1 0 0.1"><freejoint/><geom type="cylinder" size="0.125 0.1"/></body>
    <body pos="-0.6 0 0.09"><freejoint/><geom type="sphere" size="0.1"/></body>
    <body pos="-0.37 0 0.3"><freejoint/><geom type="mesh" mesh="wedge"/></body>
  </worldbody>
</mujoco>
"""


def build(source: str | Path, worlds: int = 1) -> tuple[ModelBuilder, mujoco.MjModel]:
    """Return a builder with the worlds, and MuJoCo's own model of the document."""
    robot = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(robot)
    robot.add_mjcf(source)
    builder = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(builder)
    builder.replicate(robot, worlds)
    inline = isinstance(source, str)
    load = mujoco.MjModel.from_xml_string if inline else mujoco.MjModel.from_xml_path
    return builder, load(str(source))


def options_of(reference: mujoco.MjModel) -> dict:
    """Return the one option that is by default not MuJoCo's; the others are to be those of the document."""
    return {"integrator": int(reference.opt.integrator)}


def random_states(reference: mujoco.MjModel, height: float, count: int = 4):
    """Yield states within the limits of joints, with free bodies at some height above where they begin."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        qpos, qvel = reference.qpos0.copy(), 0.3 * rng.normal(size=reference.nv)
        for joint in range(reference.njnt):
            at, kind = int(reference.jnt_qposadr[joint]), int(reference.jnt_type[joint])
            if kind == mujoco.mjtJoint.mjJNT_FREE:
                qpos[at + 2] += height
            elif kind != mujoco.mjtJoint.mjJNT_BALL:
                low, high = reference.jnt_range[joint] if reference.jnt_limited[joint] else (-0.1, 0.1)
                qpos[at] = 0.5 * (low + high) + 0.3 * (high - low) * rng.uniform(-1.0, 1.0)
        yield qpos.astype(np.float32).astype(np.float64), qvel.astype(np.float32).astype(np.float64)


def assert_same_accelerations(source: str | Path, height: float = 0.0) -> None:
    builder, reference = build(source)
    (group,) = convert_model(builder.finalize(device="cpu"), MujocoOptions(**options_of(reference)))
    converted = group.model
    assert (converted.nq, converted.nv, converted.nu) == (reference.nq, reference.nv, reference.nu)
    assert converted.opt.disableflags == reference.opt.disableflags
    assert converted.opt.enableflags == reference.opt.enableflags
    for qpos, qvel in random_states(reference, height):
        results = []
        for model in (converted, reference):
            model.opt.timestep = DT  # it softens contacts
            data = mujoco.MjData(model)
            data.qpos, data.qvel = qpos, qvel
            mujoco.mj_forward(model, data)
            results.append(data)
        ours, theirs = results
        assert (ours.ncon, ours.nefc) == (theirs.ncon, theirs.nefc)
        scale = np.abs(theirs.qacc).max()
        np.testing.assert_allclose(ours.qacc, theirs.qacc, rtol=0.0, atol=ACCELERATION_ERROR * scale)


@pytest.mark.parametrize(
    "source", [ARM, FOUR_BAR, BOXES, HELD_TOOL], ids=["arm", "four_bar", "boxes", "held_tool"]
)
def test_accelerations_of_mechanisms_are_those_of_mujoco(source):
    assert_same_accelerations(source)


def test_accelerations_in_a_heap_of_all_shapes_are_those_of_mujoco():
    """Cylinders, capsules, ellipsoids, boxes and meshes touch each other in as many points as in MuJoCo."""
    assert_same_accelerations(HEAP)


@pytest.mark.parametrize("robot", ["unitree_go1/go1.xml", "unitree_g1/g1.xml", "newton_examples/nv_ant.xml"])
def test_accelerations_of_robots_are_those_of_mujoco(robot_assets, robot):
    assert_same_accelerations(robot_assets / robot, height=1.0)


def test_accelerations_of_a_hand_are_those_of_mujoco(robot_assets):
    """The hand is described in URDF; both read the MJCF that MuJoCo makes of it."""
    folder = robot_assets / "allegro_hand_description"
    spec = mujoco.MjSpec.from_file(str(folder / "allegro_hand_description_right.urdf"))
    for geom in list(spec.geoms):
        spec.delete(geom)
    for mesh in list(spec.meshes):
        spec.delete(mesh)
    spec.compiler.balanceinertia = True  # the numbers of the file are rounded
    spec.compile()
    assert_same_accelerations(spec.to_xml())


def simulate(source: str | Path, height: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates after 100 steps of two worlds, in MuJoCo's order, and those of plain MuJoCo."""
    builder, reference = build(source, worlds=2)
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model, **options_of(reference))
    (group,) = solver.groups
    states, expected = [model.state(), model.state()], []
    control = model.control()
    q, qd = states[0].joint_q.numpy().copy(), states[0].joint_qd.numpy().copy()
    for row, (qpos, qvel) in enumerate(random_states(reference, height, count=2)):
        write_state(group, row, qpos, qvel, q, qd)
        reference.opt.timestep = DT
        data = mujoco.MjData(reference)
        data.qpos, data.qvel = qpos, qvel
        for _ in range(100):
            mujoco.mj_step(reference, data)
        expected.append(data.qpos.copy())
    states[0].joint_q.assign(q)
    states[0].joint_qd.assign(qd)
    control.clear()
    for _ in range(100):
        solver.step(*states, control, None, DT)
        states.reverse()
    solver.report(strict=True)
    result = [read_qpos(group, row, states[0].joint_q.numpy()) for row in range(2)]
    return np.array(result), np.array(expected)


def write_state(group, row, qpos, qvel, q, qd) -> None:
    """Write a state of MuJoCo's into flat public arrays; frames of free joints are none in these models."""
    for joint, kind in enumerate(group.joint_kind):
        coord, dof = (
            group.first_coord[row] + group.joint_coord[joint],
            group.first_dof[row] + group.joint_dof[joint],
        )
        at, vel = group.joint_qpos[joint], group.joint_qvel[joint]
        if kind == 1:
            count = group.joint_coord_count[joint]
            q[coord : coord + count], qd[dof : dof + count] = qpos[at : at + count], qvel[vel : vel + count]
        elif kind == 2:
            q[coord : coord + 4] = np.roll(qpos[at : at + 4], -1)
            qd[dof : dof + 3] = rotated(qpos[at : at + 4], qvel[vel : vel + 3])
        elif kind == 3:
            q[coord : coord + 3], q[coord + 3 : coord + 7] = (
                qpos[at : at + 3],
                np.roll(qpos[at + 3 : at + 7], -1),
            )
            spin = rotated(qpos[at + 3 : at + 7], qvel[vel + 3 : vel + 6])
            com = group.model.body_ipos[group.body_mj[group.joint_child[joint]]]
            qd[dof : dof + 3] = qvel[vel : vel + 3] + np.cross(spin, rotated(qpos[at + 3 : at + 7], com))
            qd[dof + 3 : dof + 6] = spin


def rotated(quat, vector) -> np.ndarray:
    result = np.zeros(3)
    mujoco.mju_rotVecQuat(result, vector, quat)
    return result


def read_qpos(group, row, q) -> np.ndarray:
    result = np.zeros(group.model.nq)
    for joint, kind in enumerate(group.joint_kind):
        coord, at = group.first_coord[row] + group.joint_coord[joint], group.joint_qpos[joint]
        count = group.joint_coord_count[joint]
        result[at : at + count] = q[coord : coord + count]
        if kind >= 2:
            result[at + count - 4 : at + count] = np.roll(q[coord + count - 4 : coord + count], 1)
    return result


@pytest.mark.parametrize("source", [ARM, FOUR_BAR, BOXES], ids=["arm", "four_bar", "boxes"])
def test_mechanisms_move_as_in_mujoco(source):
    result, expected = simulate(source, 0.0)
    np.testing.assert_allclose(result, expected, atol=TRAJECTORY_ERROR)


@pytest.mark.parametrize("robot", ["unitree_go1/go1.xml", "unitree_g1/g1.xml", "newton_examples/nv_ant.xml"])
def test_robots_move_as_in_mujoco(robot_assets, robot):
    result, expected = simulate(robot_assets / robot, 1.0)
    np.testing.assert_allclose(result, expected, atol=TRAJECTORY_ERROR)
