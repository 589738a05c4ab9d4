"""Named tensors of robots agree with the state by independent formulas, in worlds that differ."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

import pluriverse as pv
from pluriverse import envs
from pluriverse.selection import ArticulationView

ROBOTS = Path(pv.__file__).parent / "scenes" / "robots"
PULI, CARTPOLE = ROBOTS / "puli.xml", ROBOTS / "cartpole.urdf"
DT, DECIMATION = 0.004, 2
ROUNDING = 2.0**-23  # of float32, relative

ARM = """
<mujoco><worldbody>
  <body name="rod" pos="0 0 2"><joint name="swing" type="ball"/>
    <geom type="capsule" size="0.02 0.2" pos="0 0 -0.2"/>
    <body name="tip" pos="0 0 -0.4"><joint name="bend" axis="0 1 0"/>
      <geom type="sphere" size="0.05" pos="0 0 -0.1"/></body>
  </body>
</worldbody></mujoco>
"""


def make_model() -> pv.Model:
    """Two quadrupeds on the ground, one of them beside a box, and a chain with a ball joint."""
    puli, arm, box = pv.ModelBuilder(), pv.ModelBuilder(), pv.ModelBuilder()
    puli.add_mjcf(PULI)
    arm.add_mjcf(ARM)
    box.add_mjcf(PULI)
    body = box.add_body(xform=((2.0, 0.0, 0.5), (0.0, 0.0, 0.0, 1.0)), label="box")
    box.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    builder = pv.ModelBuilder()
    for world in (puli, arm, box):
        builder.add_world(world)
    builder.add_ground_plane()
    return builder.finalize("cpu")


@pytest.fixture(scope="module")
def simulation():
    model = make_model()
    with pv.Simulation(model, dt=DT, decimation=DECIMATION, threads=2) as simulation:
        yield simulation


@pytest.fixture(scope="module")
def robots(simulation):
    """Tensors of all three robots, after some steps in which they move and touch."""
    robots = simulation.tensors("*")
    velocity = simulation.model.joint_qd.numpy().copy()
    velocity += np.random.default_rng(1).normal(scale=0.3, size=velocity.shape)
    simulation.state.joint_qd = velocity
    simulation.step(60)
    return robots


def matrix(q: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a quaternion xyzw."""
    result = np.zeros(9)
    mujoco.mju_quat2Mat(result, np.array([q[3], *q[:3]], dtype=np.float64))
    return result.reshape(3, 3)


def test_joints_are_those_of_the_state_and_rows_are_padded(simulation, robots):
    """Entries of the model, in its order; a ball joint as MuJoCo's rotation vector; zeros behind."""
    model, state = simulation.model, simulation.state
    joint_q, joint_qd = state.joint_q.numpy(), state.joint_qd.numpy()
    q_start, qd_start = model.joint_coord_world_start.numpy(), model.joint_dof_world_start.numpy()
    for row in (0, 2):
        world = robots.worlds[row]
        assert (robots.numpy.joint_positions[row, :12] == joint_q[q_start[world] + 7 :][:12]).all()
        assert (robots.numpy.joint_velocities[row, :12] == joint_qd[qd_start[world] + 6 :][:12]).all()
    q = joint_q[q_start[1] : q_start[1] + 4].astype(np.float64)
    vector = np.zeros(3)
    mujoco.mju_quat2Vel(vector, np.array([q[3], *q[:3]]), 1.0)
    np.testing.assert_allclose(robots.numpy.joint_positions[1, :3], vector, atol=8 * ROUNDING)
    assert robots.numpy.joint_positions[1, 3] == joint_q[q_start[1] + 4]
    assert robots.numpy.joint_mask.sum(axis=1).tolist()[:3] == [12, 4, 12]
    assert (robots.numpy.joint_positions[1, 4:] == 0.0).all()


def test_base_is_in_its_own_axes(simulation, robots):
    """Velocity of the origin and gravity, turned by the transpose of the rotation matrix."""
    model, state = simulation.model, simulation.state
    body = model.body_world_start.numpy()[0]
    pose, velocity = state.body_q.numpy()[body], state.body_qd.numpy()[body].astype(np.float64)
    R = matrix(pose[3:])
    arm = R @ model.body_com.numpy()[body]
    tensors = robots.numpy
    assert (tensors.base_positions[0] == pose[:3]).all()
    linear = R.T @ (velocity[:3] - np.cross(velocity[3:], arm))
    np.testing.assert_allclose(tensors.base_linear_velocities[0], linear, atol=1e-5)
    np.testing.assert_allclose(tensors.base_angular_velocities[0], R.T @ velocity[3:], atol=1e-5)
    np.testing.assert_allclose(tensors.projected_gravity[0], R.T @ [0.0, 0.0, -1.0], atol=16 * ROUNDING)
    # The chain hangs on the world: its base does not move.
    assert not robots.is_floating[1]
    assert (tensors.base_linear_velocities[1] == 0.0).all()
    np.testing.assert_array_equal(tensors.projected_gravity[1], [0.0, 0.0, -1.0])


def test_contact_forces_carry_the_robot(simulation):
    """At rest the forces on all bodies sum up to the weight, and feet have touched since they landed."""
    with pv.Simulation(simulation.model, dt=DT, decimation=DECIMATION, threads=1) as own:
        robots = own.tensors("*", worlds=[0])
        tensors = robots.numpy
        tensors.joint_position_targets[:] = tensors.default_joint_positions
        model = own.model
        steps = 400
        own.step(steps)
        bodies = slice(model.body_world_start.numpy()[0], model.body_world_start.numpy()[1])
        weight = 9.81 * model.body_mass.numpy()[bodies].sum()
        # What moves still is the settling of the drives: less than a hundredth of the weight.
        np.testing.assert_allclose(
            tensors.contact_forces[0].sum(axis=0), [0.0, 0.0, weight], atol=0.01 * weight
        )
        touching = tensors.contact_forces[0, :, 2] > 1.0
        assert touching.any()
        assert ((tensors.contact_times[0] > 0.0) == touching).all()
        assert ((tensors.air_times[0] > 0.0) == ~touching)[tensors.body_mask[0]].all()
        span = steps * DT * DECIMATION
        total = tensors.contact_times[0] + tensors.last_air_times[0]
        assert (total[touching] <= span * (1.0 + steps * ROUNDING)).all()
        own.reset([0])
        assert (tensors.contact_times[0] == 0.0).all()
        assert (tensors.air_times[0] == 0.0).all()
        assert (tensors.contact_forces[0] == 0.0).all()
        assert (tensors.foot_contact_times[0] == 0.0).all()
        np.testing.assert_array_equal(tensors.joint_positions[0], tensors.default_joint_positions[0])


def test_feet_are_the_lowest_points_of_their_shapes(simulation, robots):
    """The foot of a leg is a sphere: its bottom lies a radius below its centre."""
    model, state = simulation.model, simulation.state
    shape = [
        index
        for index in range(model.shape_count)
        if model.shape_world.numpy()[index] == 0 and "foot" in model.shape_label[index].lower()
    ]
    names = robots.body_names_of(0)
    assert robots.foot_names_of(0) == [names[place] for place in robots.numpy.foot_bodies[0]]
    assert len(shape) == 4
    for place, index in enumerate(shape):
        pose = state.body_q.numpy()[model.shape_body.numpy()[index]]
        centre = pose[:3] + matrix(pose[3:]) @ model.shape_transform.numpy()[index][:3]
        bottom = centre - [0.0, 0.0, model.shape_scale.numpy()[index][0]]
        np.testing.assert_allclose(robots.numpy.foot_positions[0, place], bottom, atol=1e-5)
        assert robots.numpy.foot_heights[0, place] == robots.numpy.foot_positions[0, place, 2]
    assert robots.numpy.base_heights[0] == robots.numpy.base_positions[0, 2]


@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
def test_joint_torques_are_what_moves_a_hinge(solver):
    """A hinge without gravity gains the angular momentum that its drive gives, limited or not."""
    builder = pv.ModelBuilder()
    inertia, ke, kd, limit = 0.3, 4.0, 0.2, 0.5
    one = pv.ModelBuilder()
    for name, bound in (("free", 1e6), ("weak", limit)):
        link = one.add_link(mass=1.0, inertia=inertia * np.eye(3), label=name)
        joint = one.add_joint_revolute(
            -1, link, axis="z", target_ke=ke, target_kd=kd, effort_limit=bound, label=f"{name} hinge"
        )
        one.add_articulation([joint], label=name)
    builder.add_world(one)
    model = builder.finalize("cpu")
    with pv.Simulation(model, solver(model), dt=DT, decimation=3, threads=1) as simulation:
        robots = simulation.tensors("*")
        robots.numpy.joint_position_targets[:] = 1.0
        for _ in range(20):
            before = robots.numpy.joint_velocities.copy()
            simulation.step()
            change = inertia * (robots.numpy.joint_velocities - before) / (3 * DT)
            # MuJoCo takes damping implicitly and reports it at the beginning: dt kd / inertia apart.
            slack = 0.0 if solver is pv.SolverSAP else DT * kd / inertia
            np.testing.assert_allclose(robots.numpy.joint_torques, change, rtol=2 * slack + 1e-3, atol=1e-4)
        assert robots.numpy.joint_torques[1, 0] == pytest.approx(limit, rel=1e-5)


def test_commands_and_control_agree_whoever_was_written_to(simulation):
    """A command reaches the control; a later write to the control reaches the command."""
    with pv.Simulation(simulation.model, dt=DT, threads=1) as own:
        robots = own.tensors("*")
        targets, dof = robots.numpy.joint_position_targets, own.model.joint_dof_world_start.numpy()[0] + 6
        targets[0, 0] = 0.25
        own.step()
        assert own.control.joint_target_pos.numpy()[dof] == np.float32(0.25)
        values = own.control.joint_target_pos.numpy().copy()
        values[dof] = -0.5
        own.control.joint_target_pos.assign(values)
        own.step()
        assert own.control.joint_target_pos.numpy()[dof] == np.float32(-0.5)
        assert targets[0, 0] == np.float32(-0.5)
        robots.numpy.joint_efforts[0, 1] = 2.0
        own.step()
        assert own.control.joint_act.numpy()[dof + 1] == np.float32(2.0)


def test_tensors_of_torch_share_the_memory_and_a_snapshot_brings_them_back(simulation):
    """What a policy took at the start shows each later step; restore returns times as well."""
    torch = pytest.importorskip("torch")
    with pv.Simulation(simulation.model, dt=DT, threads=1) as own:
        robots = own.tensors("*")
        positions = robots.torch.joint_positions
        own.step(50)
        assert torch.equal(positions, torch.from_numpy(robots.numpy.joint_positions))
        snapshot = own.save()
        kept = {
            name: getattr(robots.numpy, name).copy()
            for name in ("joint_positions", "contact_times", "air_times", "foot_air_times")
        }
        own.step(30)
        own.restore(snapshot)
        for name, values in kept.items():
            np.testing.assert_array_equal(getattr(robots.numpy, name), values)


def test_a_world_reads_the_same_bits_alone_and_among_others(simulation, robots):
    """Robots do not notice their neighbours in the tensors either."""
    alone = pv.ModelBuilder()
    puli = pv.ModelBuilder()
    puli.add_mjcf(PULI)
    alone.add_world(puli)
    alone.add_ground_plane()
    readings = {}
    for name, model in (("mixed", simulation.model), ("alone", alone.finalize("cpu"))):
        with pv.Simulation(model, dt=DT, decimation=DECIMATION, threads=2) as own:
            tensors = own.tensors("*").numpy
            own.step(80)
            readings[name] = {
                key: np.atleast_1d(value[0])[: 12 if "joint" in key else 13].copy()
                for key, value in vars(tensors).items()
            }
    for key, value in readings["alone"].items():
        np.testing.assert_array_equal(readings["mixed"][key][: len(value)], value, err_msg=key)


def test_heights_are_over_the_ground_of_each_world():
    """A plane that leans, waves, stairs beside a crate, and nothing; a robot's own shapes do not count."""
    probe = pv.ModelBuilder()
    probe.add_mjcf(
        """<mujoco model="probe"><worldbody><body name="base" pos="0.3 0.2 1"><freejoint/>
        <geom type="box" size=".1 .1 .1"/><body name="leg" pos="0 0 -.2"><joint axis="0 1 0"/>
        <geom type="box" size=".05 .05 .02"/><body name="foot" pos="0.4 0 -.2"><joint axis="0 1 0"/>
        <geom type="sphere" size=".05"/></body></body></body></worldbody></mujoco>"""
    )
    lean, waves, stairs = pv.ModelBuilder(), pv.ModelBuilder(), pv.ModelBuilder()
    field = pv.geometry.wave_terrain((8.0, 8.0), resolution=0.05, amplitude=0.1, wave_count=2.0)
    for world in (lean, waves, stairs):
        world.add_builder(probe)
    lean.add_shape_plane(plane=(-0.6, 0.0, 0.8, 0.0))
    waves.add_shape_heightfield(heightfield=field)
    stairs.add_ground_plane()
    stairs.add_shape_box(-1, xform=((0.7, 0.2, 0.1), (0.0, 0.0, 0.0, 1.0)), hx=0.1, hy=0.1, hz=0.15)
    crate = stairs.add_body(xform=((0.3, 0.2, 0.25), (0.0, 0.0, 0.0, 1.0)))
    stairs.add_shape_box(crate, hx=0.2, hy=0.2, hz=0.05)
    builder = pv.ModelBuilder()
    for world in (lean, waves, stairs, probe):
        builder.add_world(world)
    with pv.Simulation(builder.finalize("cpu"), dt=DT, threads=2) as simulation:
        robots = simulation.tensors("probe")
        tensors = robots.numpy
        x, y = tensors.foot_positions[0, 0, :2]
        np.testing.assert_allclose([x, y], [0.7, 0.2], atol=1e-6)
        vertices = np.asarray(field.vertices)
        grid = {(round(vx, 3), round(vy, 3)): vz for vx, vy, vz in vertices.tolist()}
        base = [1.0 - 0.75 * 0.3, 1.0 - grid[0.3, 0.2], 0.7, 100.0]
        foot = [0.55 - 0.75 * 0.7, 0.55 - grid[0.7, 0.2], 0.3, 100.0]
        # Vertices are float32, and rays take two divisions.
        np.testing.assert_allclose(tensors.base_heights, base, atol=1e-5)
        np.testing.assert_allclose(tensors.foot_heights[:, 0], foot, atol=1e-5)
        simulation.step(10)
        fall = robots.numpy.foot_positions[2, 0, 2] - 0.25
        np.testing.assert_allclose(tensors.foot_heights[2, 0], fall, atol=1e-5)
        simulation.reset()
        np.testing.assert_allclose(tensors.foot_heights[:, 0], foot, atol=1e-5)


def test_what_is_fixed_to_a_trunk_or_a_hip_is_no_foot():
    """As in many URDF files: an IMU's housing on the trunk, a cover on the hip, a foot fixed to the shank."""
    robot, links, joints = pv.ModelBuilder(), {}, []
    links["trunk"] = robot.add_link(mass=1.0, inertia=np.eye(3), label="trunk")
    joints.append(robot.add_joint_free(links["trunk"]))
    for name, parent, moves in (
        ("imu", "trunk", False),
        ("hip", "trunk", True),
        ("cover", "hip", False),
        ("shank", "hip", True),
        ("foot", "shank", False),
        ("frame", "foot", False),
    ):
        links[name] = robot.add_link(mass=1.0, inertia=np.eye(3), label=name)
        add = robot.add_joint_revolute if moves else robot.add_joint_fixed
        joints.append(add(links[parent], links[name]))
        if name != "frame":
            robot.add_shape_sphere(links[name], radius=0.02)
    robot.add_articulation(joints, label="robot")
    with pv.Simulation(robot.finalize("cpu"), dt=DT, threads=1) as simulation:
        assert simulation.tensors("robot").foot_names == ["foot"]


def test_feet_are_those_of_each_robot_where_bodies_differ(simulation, robots):
    """A chain of two bodies has its foot where a quadruped has a hip: columns of feet follow each robot."""
    arrays = robots.numpy
    legs = [3, 6, 9, 12]
    assert arrays.foot_bodies.tolist() == [legs, [1, -1, -1, -1], legs, [0, -1, -1, -1]]
    assert arrays.foot_mask.sum(axis=1).tolist() == [4, 1, 4, 1]
    for row, places in enumerate(arrays.foot_bodies):
        feet = places[places >= 0]
        assert robots.foot_names_of(row) == [robots.body_names_of(row)[place] for place in feet]
        for name in ("contact_times", "air_times", "last_contact_times", "last_air_times", "contact_forces"):
            ours, theirs = getattr(arrays, f"foot_{name}")[row], getattr(arrays, name)[row]
            np.testing.assert_array_equal(ours[: len(feet)], theirs[feet])
            assert (ours[len(feet) :] == 0.0).all()
    assert (arrays.foot_contact_times[[0, 2]] > 0.0).any()
    assert arrays.foot_air_times[1, 0] > 0.0
    for name in ("feet", "joint_names", "body_names", "foot_names"):
        with pytest.raises(ValueError, match=rf"RobotTensors.{name}: .*'puli'.*\(row 1, world 1\)"):
            getattr(robots, name)
    with pytest.raises(IndexError, match="row is 4, but there are 4 robots"):
        robots.foot_names_of(4)


def test_joints_may_be_selected(simulation, robots):
    """Columns are those of the joints that are kept; the base is still that of the robot."""
    knees = simulation.tensors("puli", joints="*knee")
    columns = [k for k, name in enumerate(robots.joint_names_of(0)) if name.endswith("knee")]
    assert knees.joint_names == [robots.joint_names_of(0)[column] for column in columns]
    np.testing.assert_array_equal(knees.numpy.joint_positions[0], robots.numpy.joint_positions[0, columns])
    np.testing.assert_array_equal(knees.numpy.base_positions[0], robots.numpy.base_positions[0])
    assert knees.is_floating.all()
    with pytest.raises(KeyError, match="include_joints: no joint matches 'wheel'"):
        simulation.tensors("puli", joints="wheel")


def test_columns_have_names_where_the_names_of_all_robots_begin_alike():
    """Chains of one to three links: shorter ones are padded, and no column means two things."""
    builder = pv.ModelBuilder()
    for length in (1, 3, 2):
        builder.begin_world()
        parent, joints = -1, []
        for number in range(length):
            link = builder.add_link(label=f"link{number}", mass=1.0, inertia=np.eye(3))
            joints.append(builder.add_joint_revolute(parent, link, label=f"joint{number}"))
            builder.add_shape_sphere(link, radius=0.1)
            parent = link
        builder.add_articulation(joints, label="chain")
        builder.end_world()
    with pv.Simulation(builder.finalize("cpu"), dt=DT, threads=1) as own:
        chains = own.tensors("chain")
    assert chains.joint_names == ["joint0", "joint1", "joint2"]
    assert chains.body_names == ["link0", "link1", "link2"]
    assert chains.joint_names_of(2) == ["joint0", "joint1"]
    with pytest.raises(ValueError, match=r"are the bodies \[0\], but those of .* the bodies \[2\]"):
        _ = chains.feet


def test_wrong_names_are_refused(simulation):
    """The message says what there is."""
    with pytest.raises(KeyError, match="no articulation matches 'go1'"):
        simulation.tensors("go1")
    with pytest.raises(KeyError, match="RobotTensors: feet: no body matches 'paw'"):
        simulation.tensors("*", feet="paw")
    with pytest.raises(ValueError, match="contact_threshold is nan"):
        simulation.tensors("*", contact_threshold=float("nan"))


def test_rows_are_those_of_a_view(simulation, robots):
    """The order of robots is that of selection."""
    view = ArticulationView(simulation.model, "*", homogeneous=False)
    assert robots.labels == view.articulation_labels
    assert robots.worlds.tolist() == list(view.row_world)


def test_a_model_whose_up_axis_is_not_z_is_refused():
    builder = pv.ModelBuilder(up_axis="Y")
    builder.add_shape_box(builder.add_body(label="robot"), hx=0.1, hy=0.1, hz=0.1)
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1)
    with pytest.raises(ValueError, match=r"RobotTensors: the model has up_axis Y.*up_axis='Z'"):
        simulation.tensors("*")


def test_feet_are_without_padding():
    """A place below 0 would be the last body."""
    builder, robot = pv.ModelBuilder(), pv.ModelBuilder()
    envs.add_robot(robot, "puli")
    builder.replicate(robot, 2)
    with pv.Simulation(builder.finalize("cpu"), dt=0.005) as simulation:
        narrow, wide = simulation.tensors("puli"), simulation.tensors("puli", foot_count=6)
        assert wide.feet == narrow.feet
        assert len(wide.feet) == len(wide.foot_names) == 4
