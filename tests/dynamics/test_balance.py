"""Trees that move without forces: velocity products change neither momentum nor energy."""

import warnings

import mujoco
import numpy as np
import pytest
import warp as wp

from pluriverse import (
    JointTargetMode,
    Model,
    ModelBuilder,
    ShapeConfig,
    Simulation,
    SolverSAP,
    State,
    eval_fk,
    eval_mass_matrix,
    eval_world_momenta,
)
from pluriverse.dynamics import PositionIntegration, Workspace, eval_free_motion, eval_kinematics, integrate

UPRIGHT = (0.0, 0.0, 0.0, 1.0)
LENGTH, RADIUS = 0.4, 0.03  # m, of the rods of a chain of 1 kg each
INERTIA = np.array([0.5 * RADIUS**2, *[(3.0 * RADIUS**2 + LENGTH**2) / 12.0] * 2])
AXES = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def add_chain(builder: ModelBuilder, count: int, *, ball: bool = False, free: bool = True) -> None:
    """Add rods end to end, free or hanging on the world, on ball joints or hinges of changing axes."""
    joints, parent = [], -1
    for link in range(count):
        body = builder.add_link(mass=1.0, inertia=np.diag(INERTIA))
        frames = {
            "parent_xform": ((0.5 * LENGTH if link else 0.0, 0.0, 0.0), UPRIGHT),
            "child_xform": ((-0.5 * LENGTH, 0.0, 0.0), UPRIGHT),
        }
        if free and link == 0:
            joints.append(builder.add_joint_free(body))
        elif ball:
            joints.append(builder.add_joint_ball(parent, body, **frames))
        else:
            joints.append(builder.add_joint_revolute(parent, body, axis=AXES[link % 3], **frames))
        parent = body
    builder.add_articulation(joints)


def chains(counts, *, gravity: float = 0.0, **options) -> Model:
    """Return a model with a chain per world."""
    builder = ModelBuilder(gravity=gravity)
    for count in counts:
        builder.begin_world(gravity=(0.0, 0.0, gravity))
        add_chain(builder, count, **options)
        builder.end_world()
    return builder.finalize("cpu")


class FreeFlight:
    """Steps of free motion, recorded."""

    def __init__(self, model: Model, dt: float, joint_qd, joint_q=None):
        self.model, self.dt = model, dt
        self.states = [model.state(), model.state()]
        workspace, control = Workspace(model, wp.float64), model.control()
        mode = PositionIntegration.SEMI_IMPLICIT

        def steps():
            for old, new in (self.states, self.states[::-1]):
                eval_kinematics(model, model.worlds, old, workspace)
                eval_free_motion(model, model.worlds, old, control, workspace, dt, mode=mode)
                wp.copy(workspace.dof_velocity_next, workspace.dof_velocity_free)
                integrate(model, model.worlds, old, new, workspace, dt, mode=mode)

        steps()  # loads the modules, which a recording cannot
        state = self.states[0]
        state.joint_q.assign(model.joint_q if joint_q is None else np.asarray(joint_q, np.float32))
        state.joint_qd.assign(np.asarray(joint_qd, np.float32))
        eval_fk(model, state.joint_q, state.joint_qd, state)
        with wp.ScopedCapture(device="cpu") as capture:
            steps()
        self._graph = capture.graph

    @property
    def state(self):
        """The state now."""
        return self.states[0]

    def run(self, duration: float) -> None:
        """Go on for so long, an even number of steps."""
        for _ in range(round(duration / self.dt / 2.0)):
            wp.capture_launch(self._graph)


def kinetic_energy(model: Model, state: State) -> np.ndarray:
    """Return the kinetic energy [J] of each world, armature included."""
    matrices = eval_mass_matrix(model, state).numpy().astype(float)
    starts = model.joint_dof_world_start.numpy()
    speeds = state.joint_qd.numpy().astype(float)
    energies = []
    for world in range(model.world_count):
        speed = speeds[starts[world] : starts[world + 1]]
        matrix = matrices[world][: speed.size, : speed.size]
        energies.append(0.5 * speed @ matrix @ speed)
    return np.array(energies)


def angular_momentum(model: Model, state: State) -> np.ndarray:
    """Return the angular momentum about the centre of mass [N·m·s], shape [world, 3]."""
    return eval_world_momenta(model, state).angular.numpy().astype(float)


def spins(model: Model, speed: float, *, free: bool = True) -> np.ndarray:
    """Return velocities of free roots that turn at a speed [rad/s], with joints about a third as fast."""
    rng = np.random.default_rng(5)
    speeds = 0.3 * speed * rng.normal(size=model.joint_dof_count)
    starts = model.joint_dof_world_start.numpy()
    for first in starts[: model.world_count] if free else []:
        direction = rng.normal(size=3)
        speeds[first : first + 3] = 0.0
        speeds[first + 3 : first + 6] = speed * direction / np.linalg.norm(direction)
    return speeds


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize(("speed", "tolerance"), [(5.0, 1e-4), (10.0, 0.05)])
def test_a_chain_that_turns_freely_keeps_energy_and_angular_momentum(speed, tolerance, ball):
    """Two, four and six links at 5 ms, which became infinite: E to 1 %, L to rounding at 5 rad/s, in 20 s.

    Rounding of the state, 2^-24 in each of 4,000 steps, would make 2.4e-4 of L if all of it added up. At 10
    rad/s the joints come to rest at times, and an error of (omega h)^3 then leaves no energy for all of L.
    """
    model = chains([2, 4, 6], ball=ball)
    flight = FreeFlight(model, 0.005, spins(model, speed))
    energy, momentum = kinetic_energy(model, flight.state), angular_momentum(model, flight.state)
    flight.run(20.0)
    np.testing.assert_allclose(kinetic_energy(model, flight.state), energy, rtol=0.01)
    error = np.linalg.norm(angular_momentum(model, flight.state) - momentum, axis=1)
    assert (error < tolerance * np.linalg.norm(momentum, axis=1)).all()


@pytest.mark.parametrize("free", [False, True])
def test_a_step_too_large_for_the_motion_adds_no_energy(free):
    """Chains of up to ten links at 20 rad/s and 20 ms, 0.4 rad a step, for 20 s: E does not grow.

    Rounding of the velocities in each of 1,000 steps leaves 1,000 * 2 * 2^-24 = 1e-4.
    """
    model = chains([2, 4, 10], ball=True, free=free)
    flight = FreeFlight(model, 0.02, spins(model, 20.0, free=free))
    energy = kinetic_energy(model, flight.state)
    for _ in range(10):
        flight.run(2.0)
        assert (kinetic_energy(model, flight.state) <= (1.0 + 1e-4) * energy).all()


def test_the_motion_converges_to_that_of_small_runge_kutta_steps():
    """Positions of a chain of four links after 0.5 s differ from MuJoCo's RK4 by less than 0.1 mm at 1.25 ms.

    The difference falls at least in proportion to the step. With products of the old velocity left 3.5 mm.
    """
    model = chains([4])
    speeds = spins(model, 4.0)
    body = '<body pos="{x} 0 0">{joint}<inertial pos="{com} 0 0" mass="1" diaginertia="{inertia}"/>'
    inertia = " ".join(map(str, INERTIA))
    text = body.format(x=0.0, joint="<freejoint/>", com=0.0, inertia=inertia)
    for link in range(1, 4):
        joint = f'<joint axis="{" ".join(map(str, AXES[link % 3]))}"/>'
        place = 0.5 * LENGTH if link == 1 else LENGTH
        text += body.format(x=place, joint=joint, com=0.5 * LENGTH, inertia=inertia)
    text += "</body>" * 4
    option = '<option timestep="1e-4" gravity="0 0 0" integrator="RK4"/>'
    reference = mujoco.MjModel.from_xml_string(f"<mujoco>{option}<worldbody>{text}</worldbody></mujoco>")
    data = mujoco.MjData(reference)
    data.qvel[:] = speeds  # MuJoCo's turns are in body axes, which are those of the world at the start
    for _ in range(5000):
        mujoco.mj_step(reference, data)
    errors = []
    for dt in (0.0025, 0.00125):
        flight = FreeFlight(model, dt, speeds)
        flight.run(0.5)
        errors.append(np.abs(flight.state.body_q.numpy()[:, :3] - data.xipos[1:]).max())
    assert errors[1] < 1e-4
    assert errors[0] / errors[1] > 1.6


def test_a_double_pendulum_keeps_its_energy():
    """Two rods on ball joints, released level at 2.5 ms, for 20 s: the energy oscillates and does not drift.

    It oscillates by h omega / 2 of m g l as with any semi-implicit step, with 8 rad/s at the bottom.
    """
    model = chains([2], gravity=-9.81, ball=True, free=False)
    flight = FreeFlight(model, 0.0025, [0.0, 0.0, 0.0, 0.0, 0.0, 3.0])
    start = kinetic_energy(model, flight.state)[0]
    errors = []
    for _ in range(200):
        flight.run(0.1)
        height = flight.state.body_q.numpy()[:, 2].astype(float).sum()
        errors.append(kinetic_energy(model, flight.state)[0] + 9.81 * height - start)
    scale = 9.81 * 2.0 * LENGTH
    assert np.abs(errors).max() < 0.01 * scale
    assert abs(np.mean(errors[100:]) - np.mean(errors[:100])) < 1e-3 * scale


ROPE_LINK = """
<body pos="{place}">
  <joint type="ball"/>
  <geom type="capsule" fromto="0 0 0 0.05 0 0" size="0.01" density="1000" contype="0" conaffinity="0"/>
"""


@pytest.mark.parametrize(
    ("angle", "axis", "within"), [(0.02, (0.0, 1.0, 0.3), 0.01), (0.2, (0.0, 1.0, 0.0), 0.01)]
)
def test_a_rope_swings_as_with_small_runge_kutta_steps(angle, axis, within):
    """Thirty links of 5 cm fall from nearly level for half a second: 1 cm at 2 ms, 2 to 3 with plain steps.

    They are bent one way, or to and fro in turns.
    """
    count, dt, duration = 30, 0.002, 0.5
    links = "".join(ROPE_LINK.format(place="0.05 0 0" if link else "0 0 2") for link in range(count))
    document = f"<mujoco><worldbody>{links}{'</body>' * count}</worldbody></mujoco>"
    turns = np.zeros((count, 4))
    for link in range(count):
        half = 0.5 * angle * (1.0 if angle < 0.1 else (-1.0) ** link)
        turns[link] = [np.cos(half), *(np.sin(half) * np.array(axis) / np.linalg.norm(axis))]

    def native(integrator: int, step: float) -> np.ndarray:
        reference = mujoco.MjModel.from_xml_string(document)
        reference.opt.timestep, reference.opt.integrator = step, integrator
        data = mujoco.MjData(reference)
        data.qpos[:] = turns.reshape(-1)
        mujoco.mj_step(reference, data, round(duration / step))
        mujoco.mj_kinematics(reference, data)
        return data.xpos[1:].copy()

    exact = native(mujoco.mjtIntegrator.mjINT_RK4, 1e-4)
    plain = np.abs(native(mujoco.mjtIntegrator.mjINT_EULER, dt) - exact).max()
    builder = ModelBuilder()
    builder.add_mjcf(document)
    model = builder.finalize("cpu")
    model.joint_q.assign(turns[:, [1, 2, 3, 0]].reshape(-1))
    with Simulation(model, SolverSAP(model), dt=dt) as simulation:
        simulation.reset()
        simulation.step(round(duration / dt))
        error = np.abs(simulation.state.body_q.numpy()[:, :3] - exact).max()
    assert error < 0.01
    assert error < 0.5 * plain


def test_a_limp_robot_tumbles_without_gaining_energy(robot_assets):
    """A Go1 without gravity, limits and damping, at 10 rad/s and 5 ms for 10 s: E to 1 %, L to 1e-4."""
    robot, builder = ModelBuilder(), ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the file has that is not simulated
        robot.add_mjcf(str(robot_assets / "unitree_go1" / "go1.xml"))
    builder.begin_world(gravity=0.0)
    builder.add_builder(robot)
    builder.end_world()
    model = builder.finalize("cpu")
    model.joint_damping.zero_()
    flight = FreeFlight(model, 0.005, spins(model, 10.0))
    energy, momentum = kinetic_energy(model, flight.state), angular_momentum(model, flight.state)
    flight.run(10.0)
    np.testing.assert_allclose(kinetic_energy(model, flight.state), energy, rtol=0.01)
    assert np.linalg.norm(angular_momentum(model, flight.state) - momentum) < 1e-4 * np.linalg.norm(momentum)


def test_the_centre_of_mass_of_a_turning_chain_moves_straight():
    """At v = p / m, to the rounding of 400 positions of up to 4 m."""
    model = chains([4], ball=True)
    speeds = spins(model, 15.0)
    flight = FreeFlight(model, 0.005, speeds)
    start = eval_world_momenta(model, flight.state)
    com, velocity = start.com.numpy()[0].astype(float), start.linear.numpy()[0] / start.mass.numpy()[0]
    flight.run(2.0)
    end = eval_world_momenta(model, flight.state).com.numpy()[0]
    np.testing.assert_allclose(end, com + 2.0 * velocity, rtol=0.0, atol=400 * 4.0 * 2.0**-24)


def test_robots_at_rest_are_left_alone():
    """Without velocity nothing is corrected, and the second placing of bodies finds nothing to do."""
    model = chains([4])
    workspace, states = Workspace(model, wp.float64), [model.state(), model.state()]
    mode = PositionIntegration.SEMI_IMPLICIT
    eval_kinematics(model, model.worlds, states[0], workspace)
    eval_free_motion(model, model.worlds, states[0], model.control(), workspace, 0.005, mode=mode)
    wp.copy(workspace.dof_velocity_next, workspace.dof_velocity_free)
    workspace.world_due.fill_(7)
    integrate(model, model.worlds, *states, workspace, 0.005, mode=mode)
    assert workspace.world_due.numpy().tolist() == [0]
    np.testing.assert_array_equal(states[1].joint_q.numpy(), states[0].joint_q.numpy())


def turntable() -> tuple[Model, float]:
    """Return an arm on a turntable of 5 rad/s, held by a spring across the radius, and its angle [rad]."""
    radius, offset, mass, stiffness, speed = 0.3, 0.3, 1.0, 2000.0, 5.0
    builder = ModelBuilder(gravity=0.0)
    table = builder.add_link(mass=2.0, inertia=0.1 * np.eye(3))
    arm = builder.add_link(mass=mass, inertia=0.01 * np.eye(3))
    driven = {"target_vel": speed, "target_ke": 0.0, "target_kd": 1000.0, "effort_limit": 1e5}
    held = {"target_pos": 0.0, "target_ke": stiffness, "target_kd": 20.0, "effort_limit": 1e5}
    frames = {"parent_xform": ((radius, 0.0, 0.0), UPRIGHT), "child_xform": ((0.0, -offset, 0.0), UPRIGHT)}
    joints = [
        builder.add_joint_revolute(-1, table, axis=(0.0, 0.0, 1.0), **driven),
        builder.add_joint_revolute(table, arm, axis=(0.0, 0.0, 1.0), **held, **frames),
    ]
    builder.add_articulation(joints)
    # The centrifugal force m omega^2 radius on the centre of mass has the lever `offset` about the joint.
    return builder.finalize("cpu"), -mass * speed**2 * radius * offset / stiffness


def test_a_drive_holds_a_joint_against_centrifugal_force():
    """The joint rests where its spring balances the force, to the 0.5 % that the angle changes the lever."""
    model, angle = turntable()
    with Simulation(model, SolverSAP(model), dt=0.005, threads=1) as simulation:
        simulation.step(600)
        state = simulation.state
        np.testing.assert_allclose(state.joint_q.numpy()[1], angle, rtol=5e-3)
        np.testing.assert_allclose(state.joint_qd.numpy(), [5.0, 0.0], atol=1e-4)


def test_stiction_holds_a_base_whose_arm_turns():
    """An arm of 2 kg turns at 10 rad/s on a box of 10 kg: 60 N that turn, of which friction holds 177 N.

    What remains is the creep of regularized friction, some hundredths of a millimetre to and fro.
    """
    builder = ModelBuilder()
    base = builder.add_link(mass=10.0, inertia=0.1 * np.eye(3))
    builder.add_shape_box(base, hx=0.2, hy=0.2, hz=0.1, cfg=ShapeConfig(density=0.0))
    arm = builder.add_link(mass=2.0, inertia=0.01 * np.eye(3))
    driven = {"target_vel": 10.0, "target_ke": 0.0, "target_kd": 100.0, "effort_limit": 1e4}
    frames = {"parent_xform": ((0.0, 0.0, 0.15), UPRIGHT), "child_xform": ((-0.3, 0.0, 0.0), UPRIGHT)}
    joints = [builder.add_joint_free(base)]
    joints.append(builder.add_joint_revolute(base, arm, axis=(0.0, 0.0, 1.0), **driven, **frames))
    builder.add_articulation(joints)
    builder.add_ground_plane(cfg=ShapeConfig(mu=1.5))
    builder.joint_q[:3] = [0.0, 0.0, 0.1]
    model = builder.finalize("cpu")
    with Simulation(model, SolverSAP(model), dt=0.005, threads=1) as simulation:
        places = []
        for _ in range(60):
            simulation.step(10)
            places.append(simulation.state.joint_q.numpy()[:3].copy())
    assert np.ptp(places[20:], axis=0).max() < 5e-5


@pytest.mark.parametrize("robot", ["unitree_go1/go1.xml", "unitree_g1/g1.xml"])
def test_robots_with_drives_and_limits_tumble_without_gaining_anything(robot_assets, robot):
    """At 20 rad/s and 5 ms, and 10 rad/s and 20 ms, held by drives and limp with limits: L to 1e-3 in 4 s.

    Drives may give at most what their springs hold at the start, which they do not, and limits that the
    start is beyond push the legs back once, by some tenths of the energy. Impulses of the solver change the
    angular momentum by what it leaves of the gradient, 1e-6 a step at most.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the file has that is not simulated
        source = ModelBuilder()
        source.add_mjcf(str(robot_assets / robot))
    builder = ModelBuilder()
    for _ in range(2):
        builder.begin_world(gravity=0.0)
        builder.add_builder(source)
        builder.end_world()
    model = builder.finalize("cpu")
    half = model.joint_dof_count // 2
    driven = np.arange(model.joint_dof_count) < half
    driven[:6] = False
    model.joint_target_mode.assign(np.where(driven, JointTargetMode.POSITION, JointTargetMode.NONE))
    model.joint_target_ke.assign(np.where(driven, 60.0, 0.0).astype(np.float32))
    model.joint_target_kd.assign(np.where(driven, 2.0, 0.0).astype(np.float32))
    for speed, dt in ((20.0, 0.005), (10.0, 0.02)):
        speeds = spins(model, speed)
        speeds[driven] = 0.0
        with Simulation(model, SolverSAP(model), dt=dt, threads=1) as simulation:
            state = simulation.state
            state.joint_qd.assign(speeds.astype(np.float32))
            eval_fk(model, state.joint_q, state.joint_qd, state)
            energy = kinetic_energy(model, state)
            momentum = angular_momentum(model, state)
            for _ in range(8):
                simulation.step(round(0.5 / dt))
                assert (kinetic_energy(model, state) < 1.3 * energy).all()
            error = np.linalg.norm(angular_momentum(model, state) - momentum, axis=1)
            assert (error < 1e-3 * np.linalg.norm(momentum, axis=1)).all()
            assert not simulation.solver.world_frozen.numpy().any()
