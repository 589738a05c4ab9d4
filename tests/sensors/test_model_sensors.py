"""Sensors of robots: MuJoCo's readings on random states of five robots in one batch, with both solvers."""

import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

import pluriverse as pv
from pluriverse.importers.mjcf_sensors import RENAMED, UNREAD
from pluriverse.sensors import SensorType

from .mujoco_oracle import (
    add_all_sensors,
    bodies_of,
    from_qpos,
    sensordata_of_state,
    sensordata_of_step,
    to_qacc,
    to_qpos,
    to_qvel,
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


REST = """
  <actuator><position name="servo" joint="elbow" kp="20" kv="0.5" forcerange="-3 3" gear="2"/>
    <motor name="push" joint="slide" gear="3"/></actuator>
  <tendon>
    <fixed name="cable" range="-0.1 0.1" margin="0.01">
      <joint joint="shoulder" coef="0.5"/><joint joint="elbow" coef="-1.5"/></fixed>
    <spatial name="rope" range="0 0.2"><site site="imu"/><site site="tip"/><pulley divisor="2"/>
      <site site="tip"/><site site="zone"/><site site="imu"/></spatial>
  </tendon>
  <sensor>
    <tendonpos name="rope_length" tendon="rope"/><tendonvel name="rope_speed" tendon="rope"/>
    <tendonlimitpos name="taut" tendon="rope"/><tendonlimitvel name="taut_speed" tendon="rope"/>
    <tendonlimitpos name="slack" tendon="cable"/><tendonlimitvel name="slack_speed" tendon="cable"/>
    <tendonpos name="cable_length" tendon="cable"/><tendonvel name="cable_speed" tendon="cable"/>
    <actuatorpos name="servo_length" actuator="servo"/><actuatorvel name="servo_speed" actuator="servo"/>
    <actuatorfrc name="servo_force" actuator="servo"/><jointactuatorfrc name="elbow_torque" joint="elbow"/>
    <jointactuatorfrc name="push_force" joint="slide"/>
    <ballquat name="tail_attitude" joint="ball"/><ballangvel name="tail_rate" joint="ball"/>
    <jointlimitpos name="beyond" joint="elbow"/><jointlimitvel name="beyond_rate" joint="elbow"/>
    <camprojection name="pixel" site="tip" camera="eye"/>
    <insidesite name="inside" site="zone" objtype="body" objname="base"/>
    <insidesite name="outside" site="zone" objtype="site" objname="tip"/>
  </sensor>
</mujoco>
"""


def test_joints_actuators_tendons_cameras_and_zones_read_what_mujoco_reads():
    """The types that frames do not cover, after a reset and after a step with controls, with SolverMuJoCo."""
    text = CREATURE.replace('axis="0 0 1" armature', 'axis="0 0 1" range="-5 5" limited="true" armature')
    text = text.replace(
        "<worldbody>",
        '<worldbody><camera name="eye" pos="2 0 1" xyaxes="0 1 0 -0.3 0 1" resolution="64 48"/>'
        '<site name="zone" pos="0 0 1.8" size="0.5" type="sphere"/>',
    ).replace("</mujoco>", REST)
    robot, reference = pv.ModelBuilder(), mujoco.MjModel.from_xml_string(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot.add_mjcf(text)
    builder = pv.ModelBuilder()
    builder.add_world(robot)
    model = builder.finalize("cpu")
    for seed, command in ((0, 0.02), (1, 0.5)):
        with pv.Simulation(model, pv.SolverMuJoCo(model), dt=DT) as simulation:
            sensors, state = simulation.sensors, random_state(model, [reference], seed)
            target = simulation.control.joint_target_pos.numpy().copy()
            data = mujoco.MjData(reference)
            dof = int(reference.joint("elbow").dofadr[0])
            target[dof] = command / 2.0  # a gear of 2 has a control of twice the angle
            simulation.control.joint_target_pos.assign(target)
            simulation.reset(state=state)
            before = part(model, simulation.state, 0)
            expected = sensordata_of_state(reference, *before)
            _compare_named(sensors, reference, expected, of_step=False)
            simulation.step()
            expected = sensordata_of_state(reference, *part(model, simulation.state, 0))
            _compare_named(sensors, reference, expected, of_step=False)
            data.qpos[:], data.qvel[:] = to_qpos(reference, before[0]), to_qvel(reference, *before)
            data.ctrl[0] = command
            mujoco.mj_forward(reference, data)
            _compare_named(sensors, reference, data.sensordata, of_step=True)


def _compare_named(sensors, reference, expected: np.ndarray, *, of_step: bool) -> None:
    for sensor in range(reference.nsensor):
        if (int(reference.sensor_needstage[sensor]) == int(mujoco.mjtStage.mjSTAGE_ACC)) != of_step:
            continue
        first = int(reference.sensor_adr[sensor])
        theirs = expected[first : first + int(reference.sensor_dim[sensor])]
        name = reference.sensor(sensor).name
        mine = sensors.true(name).numpy()[0]
        if reference.sensor_datatype[sensor] == mujoco.mjtDataType.mjDATATYPE_QUATERNION:
            mine = mine * np.sign(mine @ theirs)
        scale = max(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(mine, theirs, atol=STATE_ROUNDING * scale, err_msg=name)


@pytest.mark.parametrize("solver_type", [pv.SolverSAP, pv.SolverMuJoCo])
def test_a_body_at_rest_reads_its_weight(solver_type):
    """A box on the ground: touch and the force of its foot carry it, an accelerometer reads gravity."""
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    trunk = builder.add_link(xform=(0, 0, 0.1, 0, 0, 0, 1), mass=3.0, inertia=0.05 * np.eye(3))
    foot = builder.add_link(xform=(0, 0, 0.1, 0, 0, 0, 1), mass=1.0, inertia=0.01 * np.eye(3))
    builder.add_shape_box(foot, hx=0.1, hy=0.1, hz=0.1, cfg=pv.ShapeConfig(density=0.0, mu=0.8))
    builder.add_articulation([builder.add_joint_free(trunk), builder.add_joint_fixed(trunk, foot)])
    builder.add_sensor_imu(trunk)
    builder.add_sensor_force_torque(foot, label="ankle")
    builder.add_sensor(
        "touch",
        body=foot,
        xform=(0, 0, -0.1, 0, 0, 0, 1),
        zone=pv.sensors.SensorZone(pv.GeoType.BOX, (0.2, 0.2, 0.01)),
        label="sole",
    )
    post = builder.add_link(mass=2.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_fixed(-1, post, parent_xform=(2, 0, 1, 0, 0, 0, 1))])
    builder.add_sensor("accelerometer", body=post, label="post")
    builder.add_sensor("force", body=post, label="base")
    model = builder.finalize("cpu")
    with pv.Simulation(model, solver_type(model), dt=DT) as simulation:
        sensors = simulation.sensors
        simulation.step(400)
        weight = 4.0 * 9.81
        # A resting contact moves on by some mm/s²; MuJoCo's soft contacts still settle.
        np.testing.assert_allclose(sensors["sole"].numpy()[0, 0], weight, rtol=2e-3)
        np.testing.assert_allclose(sensors["imu_acc"].numpy()[0], [0, 0, 9.81], atol=0.03)
        # What the trunk presses on the foot with: the foot's weight less that of both.
        np.testing.assert_allclose(sensors["ankle_force"].numpy()[0], [0, 0, -3.0 * 9.81], atol=0.1)
        np.testing.assert_allclose(sensors["post"].numpy()[0], [0, 0, 9.81], rtol=1e-6)
        np.testing.assert_allclose(sensors["base"].numpy()[0], [0, 0, 2.0 * 9.81], rtol=1e-6)


ZONES = """
<mujoco><worldbody><geom type="plane" size="3 3 1"/><body pos="0 0 .1"><freejoint/>
  <geom type="box" size=".1 .1 .1" mass="1"/>
  <site name="above" size=".3" pos="0 0 .3"/><site name="below" size=".3" pos="0 0 -.5"/>
  <site name="small" type="ellipsoid" size=".02 .02 .02" pos="0 0 -.2"/>
  <site name="corner" type="ellipsoid" size=".02 .03 .02" pos=".1 .1 -.2"/></body></worldbody>
<sensor><touch site="above"/><touch site="below"/><touch site="small"/><touch site="corner"/></sensor>
</mujoco>
"""


@pytest.mark.parametrize("solver_type", [pv.SolverSAP, pv.SolverMuJoCo])
def test_touch_looks_for_its_zone_out_of_the_body(solver_type):
    """A zone above a box on the ground reads nothing, one below its weight, an ellipsoid what it meets."""
    reference = mujoco.MjModel.from_xml_string(ZONES)
    data = mujoco.MjData(reference)
    mujoco.mj_step(reference, data, 300)
    builder = pv.ModelBuilder()
    builder.add_mjcf(ZONES)
    model = builder.finalize("cpu")
    with pv.Simulation(model, solver_type(model), dt=DT) as simulation:
        sensors = simulation.sensors
        simulation.step(300)
        read = sensors.data.numpy()[0]
    np.testing.assert_allclose(read, data.sensordata, rtol=1e-2, atol=1e-6)
    np.testing.assert_allclose(read, [0.0, 9.81, 0.0, 9.81 / 4.0], rtol=1e-2, atol=1e-6)


def test_sensors_of_worlds_do_not_depend_on_the_batch(fleet):
    """Every robot of the mixed batch, alone: equal bits; a world without a sensor reads NaN there."""
    model, models = fleet
    with pv.Simulation(model, dt=DT) as simulation, pv.Simulation(model, dt=DT, record=False) as plain:
        state = random_state(model, models, 4)
        for loop in (simulation, plain):
            loop.sensors  # noqa: B018, switches them on
            loop.reset(state=state)
        simulation.step(3)
        for _ in range(3):
            plain.step()
        np.testing.assert_array_equal(simulation.sensors.data.numpy(), plain.sensors.data.numpy())
        names = simulation.sensors.names
        only = [name for name in names if len(simulation.sensors.worlds_with(name)) == 1]
        values = simulation.sensors[only[0]].numpy()
        assert np.isnan(values).all(axis=1).sum() == len(models) - 1


def test_what_is_not_measured_is_reported_with_its_reason():
    """A user sensor, a tendon round a ball, a force of a limit, energy of a rubber band: each names why."""
    text = CREATURE.replace(
        "</mujoco>",
        """<tendon><spatial name="rope" stiffness="2"><site site="imu"/><geom geom="drum"/><site site="tip"/>
        </spatial></tendon>
        <sensor><user name="own" dim="2"/><tendonpos name="rope_length" tendon="rope"/>
        <jointlimitfrc name="stop" joint="elbow"/><e_potential name="energy"/>
        <contact name="speed" geom1="upper" data="linvel"/>
        <distance name="gap" geom1="upper" body2="base" cutoff="1"/><gyro name="gyro" site="imu"/></sensor>
        </mujoco>""",
    )
    text = text.replace(
        '<geom name="upper"', '<geom name="drum" type="sphere" size=".02"/><geom name="upper"'
    )
    builder = pv.ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = builder.add_mjcf(text)
    notes = {entry.entities[0]: entry.consequence for entry in report.entries if "sensor" in entry.feature}
    assert set(notes) == {"own", "rope_length", "stop", "energy", "speed"}
    assert "round a sphere or a cylinder" in notes["rope_length"]
    assert "springs of tendons" in notes["energy"]
    assert all(note.startswith("it is not read: ") for note in notes.values())


FINGERS = """
<mujoco>
  <worldbody>
    <body name="palm"><joint name="wrist" axis="0 0 1"/><geom size="0.1"/>
      <body name="left" pos="0.1 0 0"><joint name="l" axis="0 0 1"/><geom size="0.05" pos="0 0.1 0"/></body>
      <body name="right" pos="-0.1 0 0">
        <joint name="r" axis="0 0 1"/><geom size="0.05" pos="0 0.1 0"/><site name="tip" pos="0 0.1 0"/>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="both"><joint joint="l" coef="0.5"/><joint joint="r" coef="0.5"/></fixed></tendon>
  <equality><joint joint1="l" joint2="r"/></equality>
  <actuator>{actuator}</actuator>
  <sensor>
    <jointactuatorfrc name="wrist_torque" joint="wrist"/>
    <jointactuatorfrc name="left_torque" joint="l"/><jointactuatorfrc name="right_torque" joint="r"/>
  </sensor>
</mujoco>
"""


@pytest.mark.parametrize(
    ("actuator", "measured"),
    [
        ('<motor tendon="both"/>', {"wrist_torque"}),
        ('<motor site="tip" gear="1 0 0 0 0 0"/>', {"left_torque"}),
        ('<adhesion body="palm" ctrlrange="0 1"/>', {"left_torque", "right_torque"}),
        ('<general joint="l" dyntype="filter" dynprm="0.1"/>', {"wrist_torque", "right_torque"}),
        ('<position jointinparent="wrist" kp="3"/>', {"wrist_torque", "left_torque", "right_torque"}),
        ('<position tendon="both" kp="3"/>', {"wrist_torque", "left_torque", "right_torque"}),
    ],
    ids=["tendon", "site", "body", "activation", "servo", "gripper"],
)
def test_forces_of_actuators_count_only_where_all_of_them_are_known(actuator, measured):
    """A joint that an actuator moves which is no drive has no number, and not that of its drive alone."""
    text = FINGERS.format(actuator=actuator)
    builder = pv.ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = builder.add_mjcf(text)
    notes = {entry.entities[0] for entry in report.entries if "sensor jointactfrc" in entry.feature}
    assert notes == {"wrist_torque", "left_torque", "right_torque"} - measured
    if "<position" not in actuator:
        return
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, pv.SolverMuJoCo(model), dt=DT)
    sensors = simulation.sensors
    simulation.control.joint_target_pos.assign(np.where(model.joint_target_mode.numpy() != 0, 0.2, 0.0))
    simulation.step()
    reference = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(reference)
    data.ctrl[:] = 0.2
    mujoco.mj_forward(reference, data)
    mine = [float(sensors[name].numpy()[0, 0]) for name in ("wrist_torque", "left_torque", "right_torque")]
    np.testing.assert_allclose(mine, data.sensordata, rtol=1e-6)


def test_every_sensor_of_mujoco_is_read_or_refused_by_name():
    """The documented table is that of MuJoCo's enum: nothing is missing, and nothing is dropped silently."""
    page = (Path(pv.__file__).parents[1] / "docs" / "sensors.md").read_text()
    for name in dir(mujoco.mjtSensor):
        if name.startswith("mjSENS_"):
            word = name.removeprefix("mjSENS_").lower()
            read = word in RENAMED or word.upper() in SensorType.__members__
            assert read != (word in UNREAD), word
            assert f"`{word}`" in page, word


def test_wrong_sensors_are_refused():
    """Types that are none, joints without an angle, zones left out; the message names the sensor."""
    builder = pv.ModelBuilder()
    body = builder.add_body(mass=1.0, inertia=np.eye(3))
    with pytest.raises(ValueError, match="no sensor of type 'gyroscope'; there are accelerometer"):
        builder.add_sensor("gyroscope", body=body)
    with pytest.raises(ValueError, match=r"sensor 'a' \(index 0\): joint .* has no axis 0"):
        builder.add_sensor("jointpos", joint=0, label="a")
    with pytest.raises(ValueError, match="a touch needs a zone"):
        builder.add_sensor("touch", body=body)
    with pytest.raises(ValueError, match="noise is -1"):
        builder.add_sensor("gyro", body=body, noise=-1.0)
    with pytest.raises(IndexError):
        builder.add_sensor("gyro", body=7)
    assert builder.add_sensor("gyro", body=body) == 0
    with pv.Simulation(builder.finalize("cpu"), dt=DT) as simulation:
        assert simulation.sensors.names == ("gyro_0",)
    bare = pv.ModelBuilder()
    bare.add_body(mass=1.0, inertia=np.eye(3))
    with (
        pv.Simulation(bare.finalize("cpu"), dt=DT) as simulation,
        pytest.raises(KeyError, match="none at all"),
    ):
        simulation.sensors["gyro"]
