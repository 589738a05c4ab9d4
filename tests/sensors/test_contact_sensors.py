"""Sensors of contacts and distances read what MuJoCo reads, in worlds that differ."""

import mujoco
import numpy as np
import pytest

import pluriverse as pv
from pluriverse.sensors import SensorContacts

from .mujoco_oracle import to_qpos, to_qvel
from .test_model_sensors import part

DT = 0.002

SCENE = """
<mujoco model="walker">
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <geom name="kerb" type="box" size=".2 .2 .05" pos="0.4 0 0.03"/>
    <body name="trunk" pos="0 0 .19"><freejoint/>
      <geom name="trunk" type="box" size=".1 .08 .05" mass="3"/>
      <site name="patch" type="box" size=".12 .05 .2" pos="0 0.1 -0.1"/>
      <body name="left" pos="0 .1 0"><joint axis="0 1 0"/>
        <geom name="left_leg" type="capsule" fromto="0 0 0 0 0 -.15" size=".03"/>
        <body name="toe" pos="0 0 -.17"><joint axis="1 0 0"/>
          <geom name="toe" type="sphere" size=".035"/></body></body>
      <body name="right" pos="0 -.1 0"><joint axis="0 1 0"/>
        <geom name="right_leg" type="cylinder" fromto="0 0 0 0 0 -.18" size=".03"/></body>
      <body name="tail" pos=".25 0 0"><joint axis="0 1 0"/>
        <geom name="tail" type="ellipsoid" size=".1 .05 .11"/></body>
    </body>
  </worldbody>
  <sensor>%s</sensor>
</mujoco>
"""
ALL = "found force torque dist pos normal tangent"
REDUCTIONS = ("mindist", "maxforce", "netforce")
SIDES = (
    'geom1="toe"',
    'geom1="floor" body2="right"',
    'subtree1="trunk" num="3"',
    'body1="left"',
    'site="patch" num="2"',
    'subtree1="left" geom2="floor"',
    'body1="world"',
    "",
)
CONTACTS = "".join(
    f'<contact name="{reduce}{number}" {side} reduce="{reduce}" data="{ALL}"/>'
    for reduce in REDUCTIONS
    for number, side in enumerate(SIDES)
)
PAIRS = (
    'geom1="toe" geom2="floor"',
    'geom1="kerb" geom2="tail"',
    'geom1="trunk" geom2="toe"',
    'body1="right" geom2="left_leg"',
    'body1="tail" body2="right"',
    'geom1="right_leg" geom2="kerb"',
)
DISTANCES = "".join(
    f'<{kind} name="{kind}{number}_{cutoff}" {pair} cutoff="{cutoff}"/>'
    for kind in ("distance", "normal", "fromto")
    for cutoff in (0, 0.15, 2)
    for number, pair in enumerate(PAIRS)
)


def make_model(sensors: str) -> tuple[pv.Model, mujoco.MjModel]:
    """The walker in two worlds behind one with a ball, which has a sensor of its own."""
    ball, robot, builder = pv.ModelBuilder(), pv.ModelBuilder(), pv.ModelBuilder()
    body = ball.add_body(mass=1.0, inertia=np.eye(3), xform=((0.0, 0.0, 0.1), (0.0, 0.0, 0.0, 1.0)))
    ball.add_shape_sphere(body, radius=0.1)
    ball.add_sensor("contact", body=body, label="ball")
    robot.add_mjcf(SCENE % sensors)
    for world in (ball, robot, robot):
        builder.add_world(world)
    return builder.finalize("cpu"), mujoco.MjModel.from_xml_string(SCENE % sensors)


def test_contacts_read_what_mujoco_reads():
    """Standing on the floor and a kerb, as MuJoCo solves it: its own contacts, forces and order."""
    model, reference = make_model(CONTACTS)
    with pv.Simulation(model, pv.SolverMuJoCo(model), dt=DT) as simulation:
        sensors = simulation.sensors
        simulation.step(60)
        for _ in range(3):
            before = part(model, simulation.state, 1)
            simulation.step()
            data = mujoco.MjData(reference)
            data.qpos[:], data.qvel[:] = to_qpos(reference, before[0]), to_qvel(reference, *before)
            mujoco.mj_forward(reference, data)
            assert data.ncon >= 3
            for sensor in range(reference.nsensor):
                name, first = reference.sensor(sensor).name, int(reference.sensor_adr[sensor])
                theirs = data.sensordata[first : first + int(reference.sensor_dim[sensor])]
                values = sensors.true(name).numpy()
                assert np.isnan(values[0]).all()
                # Both end at the tolerance of MuJoCo's solver, from other starts: to 1e-4 of the weight.
                np.testing.assert_allclose(values[1], theirs, atol=2e-3, rtol=2e-3, err_msg=name)
                np.testing.assert_array_equal(values[1], values[2])


def test_distances_read_what_mujoco_reads():
    """Random states: apart, beyond the cutoff, and overlapping; first side to second."""
    model, reference = make_model(DISTANCES)
    starts = model.joint_coord_world_start.numpy(), model.joint_dof_world_start.numpy()
    rng, overlaps = np.random.default_rng(3), 0
    with pv.Simulation(model, dt=DT) as simulation:
        sensors = simulation.sensors
        for _ in range(4):
            state = model.state()
            joint_q = state.joint_q.numpy().copy()
            span = slice(starts[0][1], starts[0][2])
            joint_q[span] += 0.3 * rng.normal(size=joint_q[span].shape).astype(np.float32)
            joint_q[span][3:7] /= np.linalg.norm(joint_q[span][3:7])
            state.joint_q.assign(joint_q)
            pv.eval_fk(model, state.joint_q, state.joint_qd, state)
            simulation.reset(state=state)
            data = mujoco.MjData(reference)
            data.qpos[:] = to_qpos(reference, joint_q[span])
            mujoco.mj_forward(reference, data)
            for sensor in range(reference.nsensor):
                name, first = reference.sensor(sensor).name, int(reference.sensor_adr[sensor])
                theirs = data.sensordata[first : first + int(reference.sensor_dim[sensor])]
                mine = sensors.true(name).numpy()[1]
                if name.startswith("distance"):
                    overlaps += theirs[0] < 0.0
                    # MuJoCo's own algorithm ends at a tolerance of 1e-6; curved overlaps are flat to both.
                    np.testing.assert_allclose(mine, theirs, atol=1e-4, err_msg=name)
                elif name.startswith("normal"):
                    np.testing.assert_allclose(mine, theirs, atol=2e-2, err_msg=name)
                elif theirs.any():
                    # Closest points may slide along edges and faces that lie beside each other.
                    gap, own = theirs[3:] - theirs[:3], mine[3:] - mine[:3]
                    np.testing.assert_allclose(own, gap, atol=5e-3, err_msg=name)
    assert overlaps > 2


@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
def test_a_ball_at_rest_presses_on_the_ground_with_its_weight(solver):
    """Of near contacts none counts, and the force is that on the second side; in a batch of any kind."""
    builder, high = pv.ModelBuilder(), 0.1005
    for height in (0.1, 0.1, high):
        ball = pv.ModelBuilder()
        body = ball.add_body(mass=2.0, inertia=np.eye(3), xform=((0, 0, height), (0, 0, 0, 1)), label="ball")
        shape = ball.add_shape_sphere(body, radius=0.1, cfg=pv.ShapeConfig(density=0.0))
        contacts = SensorContacts(("force", "found", "pos"))
        ball.add_sensor("contact", shape=shape, contacts=contacts, label="foot")
        ball.add_sensor("contact", body=-1, reference_body=body, label="ground")
        builder.add_world(ball)
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    with pv.Simulation(model, solver(model), dt=DT) as simulation:
        sensors = simulation.sensors
        simulation.step()
        assert sensors["foot"].numpy()[2, 0] == 0.0
        simulation.step(500)
        foot, ground = sensors["foot"].numpy(), sensors["ground"].numpy()
        weight = 2.0 * 9.81
        np.testing.assert_allclose(foot[:2, :4], [[1, 0, 0, -weight]] * 2, atol=0.02 * weight)
        np.testing.assert_allclose(foot[:2, 4:6], 0.0, atol=1e-5)
        np.testing.assert_allclose(ground[0], [1, 0, 0, weight], atol=0.02 * weight)
        np.testing.assert_array_equal(foot[0], foot[1])


def test_wrong_sides_are_refused():
    """The message names the sensor, the value and what may be said."""
    builder = pv.ModelBuilder()
    body = builder.add_body(mass=1.0, inertia=np.eye(3))
    shape = builder.add_shape_sphere(body, radius=0.1)
    with pytest.raises(ValueError, match=r"'a'.*pass body or shape, not both"):
        builder.add_sensor("contact", body=body, shape=shape, label="a")
    with pytest.raises(IndexError, match="reference_shape is 4, but there are shapes 0 to 0"):
        builder.add_sensor("contact", reference_shape=4)
    with pytest.raises(ValueError, match="a distance is measured between two sides"):
        builder.add_sensor("geomdist", shape=shape, cutoff=1.0)
    with pytest.raises(ValueError, match=r"fields are \('forces',\).*found, force, torque"):
        builder.add_sensor("contact", contacts=SensorContacts(("forces",)))
    with pytest.raises(ValueError, match=r"reduce is 'sum'.*netforce"):
        builder.add_sensor("contact", contacts=SensorContacts(reduce="sum"))
    with pytest.raises(ValueError, match="slots is 0"):
        builder.add_sensor("contact", contacts=SensorContacts(slots=0))
    with pytest.raises(ValueError, match="a gyro takes no shape"):
        builder.add_sensor("gyro", shape=shape)
