"""Sensors of robots: MuJoCo's readings on random states of five robots in one batch, with both solvers."""

import warnings

import mujoco
import numpy as np
import pytest

import pluriverse as pv

from .mujoco_oracle import (
    add_all_sensors,
    bodies_of,
    from_qpos,
    sensordata_of_state,
    sensordata_of_step,
    to_qacc,
)

DT = 0.002
# Values are float32; positions of some metres and velocities of some m/s come out of a chain of rotations.
STATE_ROUNDING = 2e-5
# Accelerations are differences of float32 velocities over a step of 2 ms: 6e-8 * 5 m/s / 2 ms = 1.5e-4, and
# as much for what each of the joints above adds.
STEP_ROUNDING = 2e-3

CREATURE = """
<mujoco model="creature">
  <option magnetic="0.1 -0.5 0.2"/>
  <worldbody>
    <body name="base" pos="0 0 1">
      <freejoint/><geom type="box" size=".2 .1 .05" pos="0.02 0.01 0"/>
      <site name="imu" pos="0.1 0.02 0.03" quat="0.9 0.1 0.3 -0.2"/>
      <body name="arm" pos="0.2 0 0">
        <joint name="shoulder" axis="0 1 0" stiffness="3" springref="10"/>
        <geom name="upper" type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
        <body name="fore" pos="0.3 0 0">
          <joint name="slide" type="slide" axis="1 0 0.2"/><joint name="elbow" axis="0 0 1" armature="0.02"/>
          <geom type="box" size=".1 .03 .02" pos=".1 0 .01"/>
          <site name="tip" pos=".2 0 0" quat="0.3 0.5 0.7 0.1" size="0.05 0.04 0.03" type="box"/>
        </body>
      </body>
      <body name="tail" pos="-0.2 0 0"><joint name="ball" type="ball"/>
        <geom type="capsule" fromto="0 0 0 0 .1 -.3" size=".03"/></body>
    </body>
    <body name="post" pos="1 1 0"><geom type="cylinder" size=".1 .5" mass="5"/></body>
  </worldbody>
</mujoco>
"""
ROBOTS = ("creature", "nv_ant", "nv_humanoid", "go1", "g1")
FILES = {
    "nv_ant": "newton_examples/nv_ant.xml",
    "nv_humanoid": "newton_examples/nv_humanoid.xml",
    "go1": "unitree_go1/go1.xml",
    "g1": "unitree_g1/g1.xml",
}


def read_spec(name: str, folder) -> mujoco.MjSpec:
    """Return a robot over a plane, with all sensors and without actuators."""
    spec = (
        mujoco.MjSpec.from_string(CREATURE)
        if name == "creature"
        else mujoco.MjSpec.from_file(str(folder / FILES[name]))
    )
    for kind in ("keys", "actuators", "equalities", "tendons"):
        for element in list(getattr(spec, kind)):
            spec.delete(element)
    for joint in spec.joints:
        if joint.type in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL):
            joint.stiffness = 0.0 * joint.stiffness  # reported by the importer, and no spring in ours
    if not any(geom.type == mujoco.mjtGeom.mjGEOM_PLANE for geom in spec.worldbody.geoms):
        spec.worldbody.add_geom(name="ground", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.1])
    add_all_sensors(spec, np.random.default_rng(len(name)))
    return spec


@pytest.fixture(scope="module")
def fleet(robot_assets):
    """Five robots, one per world, and MuJoCo's models of them."""
    builder, models = pv.ModelBuilder(), []
    for name in ROBOTS:
        spec, robot = read_spec(name, robot_assets), pv.ModelBuilder()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = robot.add_mjcf(spec.copy(), keyframe=None)
        unread = [entry for entry in report.entries if entry.feature.startswith("sensor")]
        assert unread == []
        builder.add_world(robot)
        models.append(spec.compile())
    return builder.finalize("cpu"), models


def random_state(model: pv.Model, models, seed: int) -> pv.State:
    """Every robot at its own random configuration and velocity, 0.8 m above where it begins."""
    rng, state = np.random.default_rng(seed), model.state()
    joint_q, joint_qd = state.joint_q.numpy().copy(), state.joint_qd.numpy().copy()
    starts = model.joint_coord_world_start.numpy(), model.joint_dof_world_start.numpy()
    for world, reference in enumerate(models):
        qpos = mujoco.MjData(reference).qpos.copy()
        mujoco.mj_integratePos(reference, qpos, 0.3 * rng.normal(size=reference.nv), 1.0)
        qpos[2] += 0.8
        joint_q[starts[0][world] : starts[0][world + 1]] = from_qpos(reference, qpos)
        joint_qd[starts[1][world] : starts[1][world + 1]] = rng.normal(size=reference.nv)
    state.joint_q.assign(joint_q)
    state.joint_qd.assign(joint_qd)
    pv.eval_fk(model, state.joint_q, state.joint_qd, state)
    return state


def part(model: pv.Model, state: pv.State, world: int) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates and velocities of one world."""
    coord, dof = model.joint_coord_world_start.numpy(), model.joint_dof_world_start.numpy()
    return (
        state.joint_q.numpy()[coord[world] : coord[world + 1]].copy(),
        state.joint_qd.numpy()[dof[world] : dof[world + 1]].copy(),
    )


def compare(sensors, world: int, reference: mujoco.MjModel, expected: np.ndarray, *, of_step: bool) -> int:
    """Compare the sensors of one world that belong to steps, or to states; return how many there are."""
    own, count = sensors.data.numpy()[world, sensors.columns_of(world)], 0
    assert own.shape == expected.shape
    for sensor in range(reference.nsensor):
        if (int(reference.sensor_needstage[sensor]) == int(mujoco.mjtStage.mjSTAGE_ACC)) != of_step:
            continue
        if reference.sensor_type[sensor] == mujoco.mjtSensor.mjSENS_CLOCK:
            continue
        first = int(reference.sensor_adr[sensor])
        span = slice(first, first + int(reference.sensor_dim[sensor]))
        mine, theirs = own[span], expected[span]
        if reference.sensor_datatype[sensor] == mujoco.mjtDataType.mjDATATYPE_QUATERNION:
            mine = mine * np.sign(mine @ theirs)  # both signs are one orientation
        name = f"world {world}, {reference.sensor(sensor).name}"
        bound = STEP_ROUNDING if of_step else STATE_ROUNDING
        scale = max(1.0, np.abs(expected[span]).max()) if not of_step else max(10.0, np.abs(theirs).max())
        np.testing.assert_allclose(mine, theirs, rtol=0.0, atol=bound * scale, err_msg=name)
        count += 1
    return count


@pytest.mark.parametrize("solver_type", [pv.SolverSAP, pv.SolverMuJoCo])
def test_five_robots_read_what_mujoco_reads(fleet, solver_type):
    """After a step from random states: the state's sensors at its end, those of the step at its beginning."""
    model, models = fleet
    with pv.Simulation(model, solver_type(model), dt=DT) as simulation:
        sensors = simulation.sensors
        for seed in range(2):
            state = random_state(model, models, seed)
            simulation.reset(state=state)
            before = [part(model, simulation.state, world) for world in range(len(models))]
            for world, reference in enumerate(models):
                expected = sensordata_of_state(reference, *before[world])
                compare(sensors, world, reference, expected, of_step=False)
            simulation.step()
            after = [part(model, simulation.state, world) for world in range(len(models))]
            count = 0
            for world, reference in enumerate(models):
                expected = sensordata_of_state(reference, *after[world])
                count += compare(sensors, world, reference, expected, of_step=False)
                qacc = to_qacc(
                    reference,
                    before[world],
                    after[world],
                    DT,
                    steps_body_axes=simulation.solver.steps_body_axes,
                )
                wrench = sensors_wrench(sensors, model)
                wrenches = {body: wrench[own] for body, own in bodies_of(reference, model, world).items()}
                expected = sensordata_of_step(reference, before[world], qacc, wrenches)
                count += compare(sensors, world, reference, expected, of_step=True)
            assert count > 250


def sensors_wrench(sensors, model: pv.Model) -> np.ndarray:
    """Return the contact wrench of each body that the sensors took for the last step."""
    return sensors._wrench.numpy()
