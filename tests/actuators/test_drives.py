"""Joints under actuators: what is drawn, what is read, and what is commanded is that of the actuators."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.actuators import JointActuators, NetworkActuators
from pluriverse.randomization import Operation, Property, PseudoInertia, Randomizer, Uniform, dr, drive_gains

DT = 0.002
XML = """<mujoco model="p"><worldbody><body pos="0 0 1">
  <joint name="j" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.4" size=".03"/>
  <body pos="0 0 -.4">
    <joint name="k" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".03"/>
  </body>
</body></worldbody>
<actuator>
  <position name="shoulder" joint="j" kp="5" kv=".2" forcerange="-2 2"/>
  <position name="elbow" joint="k" kp="3" kv=".1" forcerange="-1 1"/>
</actuator>
<sensor>
  <actuatorfrc name="shoulder_effort" actuator="shoulder"/>
  <jointactuatorfrc name="joint_effort" joint="j"/>
</sensor></mujoco>"""
TERMS = [
    *drive_gains(Uniform(0.5, 2.0), Uniform(0.5, 2.0)),
    Property("joint_effort_limit", Uniform(0.5, 2.0), Operation.SCALE),
]
DRAWN = ("joint_target_ke", "joint_target_kd", "joint_effort_limit")


def make(count: int = 3, *, solver=pv.SolverSAP, decimation: int = 1) -> pv.Simulation:
    robot, builder = pv.ModelBuilder(), pv.ModelBuilder()
    robot.add_mjcf(XML)
    builder.replicate(robot, count)
    model = builder.finalize("cpu")
    return pv.Simulation(model, solver(model), dt=DT, decimation=decimation)


def drives_of(simulation: pv.Simulation, joint: int) -> np.ndarray:
    return np.array([getattr(simulation.model, name).numpy()[joint::2] for name in DRAWN])


def actuators_of(actuators: JointActuators) -> np.ndarray:
    parts = actuators.stiffness, actuators.damping, actuators.effort_limit
    return np.array([part.numpy() for part in parts])


@pytest.mark.parametrize("is_first", [True, False], ids=["randomizer first", "actuators first"])
def test_gains_are_drawn_where_they_act(is_first):
    """Actuators get the factors that drives get without them; the drives are off until they are removed."""
    with make() as plain, make() as simulation:
        expected = Randomizer(plain, TERMS, seed=3)
        if is_first:
            randomizer = Randomizer(simulation, TERMS, seed=3)
        actuators = JointActuators(simulation, "j", stiffness=5.0, damping=0.2, effort_limit=2.0)
        if not is_first:
            randomizer = Randomizer(simulation, TERMS, seed=3)
        for worlds in (None, [1], np.array([True, False, True])):
            expected.apply(worlds)
            randomizer.apply(worlds)
            np.testing.assert_array_equal(actuators_of(actuators), drives_of(plain, 0))
            np.testing.assert_array_equal(drives_of(simulation, 0), 0.0)
            np.testing.assert_array_equal(drives_of(simulation, 1), drives_of(plain, 1))
        snapshot, drawn = simulation.save(), actuators_of(actuators)
        assert len(np.unique(drawn)) == 9
        randomizer.restore()
        np.testing.assert_allclose(actuators_of(actuators), [[5.0] * 3, [0.2] * 3, [2.0] * 3])
        simulation.restore(snapshot)
        np.testing.assert_array_equal(actuators_of(actuators), drawn)
        actuators.remove()
        expected.apply()
        randomizer.apply()
        np.testing.assert_array_equal(drives_of(simulation, 0), drives_of(plain, 0))


def test_masses_are_drawn_beside_actuators_in_mujoco():
    """Drives whose place actuators take are off, and have a limit of 0 where models are compiled again."""
    with make(2, solver=pv.SolverMuJoCo) as simulation:
        JointActuators(simulation, "j")
        Randomizer(simulation, [PseudoInertia(alpha=Uniform(0.05, 0.1))]).apply()
        simulation.control.joint_target_pos.fill_(0.5)
        simulation.step(10)
        first, second = simulation.state.joint_qd.numpy().reshape(2, 2)
        assert np.all(np.abs(first) > 0.1)
        assert np.all(first != second)


@pytest.mark.parametrize("others", ['<motor joint="j"/>', '<motor tendon="t"/>'], ids=["motor", "tendon"])
@pytest.mark.parametrize("bounds", ["", 'actuatorfrcrange="-.5 .5"'], ids=["unbounded", "bounded"])
def test_actuators_leave_others_of_their_joint_alone(others, bounds):
    """Motors and tendons act beside actuators as without them, within the range of the joint."""
    text = f"""<mujoco><option gravity="0 0 0"/><worldbody><body>
      <joint name="j" axis="0 1 0" {bounds}/><geom size=".1" mass="1"/></body></worldbody>
    <tendon><fixed name="t"><joint joint="j" coef=".5"/></fixed></tendon>
    <actuator>{others}</actuator></mujoco>"""
    builder = pv.ModelBuilder()
    pv.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_mjcf(text)
    model = builder.finalize("cpu")
    with pv.Simulation(model, pv.SolverMuJoCo(model), dt=DT) as simulation:
        start, motions = simulation.save(), []
        limits: list = [model.joint_effort_limit.numpy().copy()]
        for is_acting in (False, True):
            simulation.restore(start)
            if is_acting:
                actuators = JointActuators(simulation, "j", stiffness=0.0, damping=0.0)
            simulation.control.mujoco.ctrl.fill_(3.0)
            simulation.step(10)
            motions.append(simulation.state.joint_qd.numpy()[0])
        assert motions[0] == motions[1] > 0.1
        # A variant may write the limit, or leave it, which is that of a user then.
        actuators.mark_drives()
        actuators.take_drives()
        limits.append(model.joint_effort_limit.numpy().copy())
        model.joint_effort_limit.fill_(0.25)
        actuators.mark_drives()
        actuators.take_drives()
        limits.append(model.joint_effort_limit.numpy().copy())
        model.joint_effort_limit.fill_(0.125)
        actuators.remove()
        limits.append(model.joint_effort_limit.numpy().copy())
        np.testing.assert_array_equal(np.ravel(limits)[1:], [limits[0][0], 0.25, 0.125])


def test_what_an_actuator_lacks_is_not_drawn():
    """A network has no gains: a term that would do nothing names the joint and the way out."""
    with make(2) as simulation:
        randomizer = Randomizer(simulation, TERMS)
        NetworkActuators(simulation, lambda features: features[:, 0], "j")
        for _ in range(2):
            with pytest.raises(
                ValueError, match=r"term 0 draws joint_target_ke of joint '.*j'.*NetworkActuators.*entities="
            ):
                randomizer.apply()
        others = [*drive_gains(Uniform(0.5, 2.0), entities="*k"), TERMS[-1]]
        Randomizer(simulation, others).apply()


def test_values_of_actuators_are_checked_as_those_of_drives():
    """A stiffness of 5 less up to 6 may be negative."""
    with make(2) as simulation:
        JointActuators(simulation, "j", stiffness=8.0)
        draw = Property("joint_target_ke", Uniform(-6.0, 0.0), Operation.OFFSET, "*j")
        Randomizer(simulation, [draw])
        simulation.stages[0].remove()
        with pytest.raises(ValueError, match="has the default 5"):
            Randomizer(simulation, [draw])


@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
@pytest.mark.parametrize("is_first", [True, False], ids=["tensors first", "actuators first"])
def test_efforts_of_actuators_are_read(solver, is_first):
    """Torques and sensors have what actuators exert, the mean over the solver steps or the last; not 0."""
    with make(solver=solver, decimation=2) as simulation:
        if is_first:
            robots = simulation.tensors("p")
            assert simulation.sensors.width == 2
        actuators = JointActuators(simulation, "j", effort_limit=[1.0, 2.0, 3.0])
        if not is_first:
            robots = simulation.tensors("p")
        np.testing.assert_array_equal(robots.numpy.joint_effort_limits[:, 0], [1.0, 2.0, 3.0])
        np.testing.assert_array_equal(robots.numpy.joint_effort_limits[:, 1], 1.0)
        robots.numpy.joint_position_targets[:] = [[0.1, 0.1], [0.6, -0.1], [-0.9, 0.2]]
        sensors = simulation.sensors
        efforts = []
        for number in (1, 3):
            simulation.step(number)
            effort = actuators.effort.numpy()
            efforts.append(effort.copy())
            for name in ("shoulder_effort", "joint_effort"):
                np.testing.assert_allclose(sensors[name].numpy()[:, 0], effort, rtol=1e-6)
            # The effort changes little from the one solver step to the other.
            np.testing.assert_allclose(robots.numpy.joint_torques[:, 0], effort, rtol=0.05)
            assert np.all(np.abs(robots.numpy.joint_torques[:, 1]) > 0.05)
        assert efforts[0][0] != efforts[1][0]
        simulation.reset()
        np.testing.assert_array_equal(sensors["joint_effort"].numpy(), 0.0)
        actuators.remove()
        np.testing.assert_array_equal(robots.numpy.joint_effort_limits[:, 0], 2.0)


def test_an_effort_reaches_an_actuator_of_a_joint_without_drive():
    """`joint_efforts` is the feedforward of an actuator, whether or not the file had a drive."""
    robot, builder = pv.ModelBuilder(), pv.ModelBuilder()
    robot.add_mjcf(XML[: XML.index("<actuator>")] + "</mujoco>")
    builder.replicate(robot, 2)
    with pv.Simulation(builder.finalize("cpu"), dt=DT) as simulation:
        robots = simulation.tensors("p")
        actuators = JointActuators(simulation, "j", stiffness=0.0, damping=0.0, effort_limit=2.0)
        robots.numpy.joint_efforts[:] = [[0.3, 0.0], [0.5, 0.0]]
        for _ in range(2):
            simulation.step()
            np.testing.assert_allclose(actuators.effort.numpy(), [0.3, 0.5])
            np.testing.assert_allclose(robots.numpy.joint_torques[:, 0], [0.3, 0.5])
            np.testing.assert_allclose(robots.numpy.joint_efforts[:, 0], [0.3, 0.5])


def test_a_factor_of_one_changes_no_motion_of_a_task():
    """The environment draws gains of actuators that its task makes in `setup`."""
    torch = pytest.importorskip("torch")
    from pluriverse import envs

    class Pendulum(envs.Task):
        action_count = 2

        def __init__(self, randomization=()):
            self.randomization = randomization

        def build(self, identities):
            robot, builder = pv.ModelBuilder(), pv.ModelBuilder()
            robot.add_mjcf(XML)
            builder.replicate(robot, len(identities))
            return builder

        def setup(self, env):
            actuators = JointActuators(env.simulation)
            actuators.stiffness.fill_(6.0)
            self.robot = env.tensors("p").torch

        def act(self, env, actions):
            self.robot.joint_position_targets.copy_(actions)

        def observe(self, env):
            return self.robot.joint_positions

        def reward(self, env):
            return self.robot.joint_torques[:, 0]

    unity = [*dr.pd_gains((1.0, 1.0), (1.0, 1.0)), dr.effort_limits((1.0, 1.0))]
    results = []
    for task in (Pendulum(), Pendulum(unity), Pendulum(dr.pd_gains((0.5, 0.9)))):
        with envs.Environment(task, 2, threads=1) as env:
            env.reset()
            for _ in range(20):
                result = env.step(torch.full((2, 2), 0.6))
            results.append((result.observations, result.rewards))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    assert bool((results[0][1] != 0.0).all())
    assert not torch.equal(results[0][0], results[2][0])


@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
def test_a_snapshot_from_before_actuators_leaves_the_drives_off(solver):
    """Otherwise the drive would act beside the actuator that took its place."""
    with make(solver=solver) as simulation:
        start, drives = simulation.save(), drives_of(simulation, 0)
        actuators = JointActuators(simulation, "j", stiffness=7.0)
        runs = []
        for _ in range(2):
            simulation.control.joint_target_pos.fill_(1.0)
            simulation.step(20)
            runs.append(simulation.state.joint_q.numpy().copy())
            simulation.restore(start)
            np.testing.assert_array_equal(drives_of(simulation, 0), 0.0)
            np.testing.assert_array_equal(actuators.stiffness.numpy(), 7.0)
        np.testing.assert_array_equal(*runs)
        actuators.remove()
        np.testing.assert_array_equal(drives_of(simulation, 0), drives)


@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
@pytest.mark.parametrize("from_file", [True, False])
def test_a_snapshot_with_actuators_lets_the_drives_act_without_them(solver, from_file, tmp_path):
    """Otherwise the robot would hang limp, under the last efforts of the actuators."""
    path = tmp_path / "snapshot.npz"
    with make(solver=solver) as simulation:
        drives = drives_of(simulation, 0)
        actuators = JointActuators(simulation, "j", stiffness=7.0)
        simulation.control.joint_target_pos.fill_(1.0)
        simulation.control.joint_f.fill_(0.25)  # of the user, for joint k
        simulation.step(20)
        snapshot = simulation.save(path)
        assert (simulation.control.joint_f.numpy()[0::2] != 0.25).all()
        simulation.model.joint_target_ke.fill_(0.0)
        actuators.remove()
        simulation.restore(path if from_file else snapshot)
        np.testing.assert_array_equal(drives_of(simulation, 0), drives)
        np.testing.assert_array_equal(simulation.control.joint_f.numpy(), [0.0, 0.25] * 3)
        simulation.step(20)
        found = simulation.state.joint_q.numpy()
    with make(solver=solver) as plain:
        for name in ("joint_q", "joint_qd", "body_q", "body_qd"):
            getattr(plain.state, name).assign(getattr(snapshot.state, name))
        plain.control.joint_target_pos.fill_(1.0)
        plain.control.joint_f.assign(np.float32([0.0, 0.25] * 3))
        plain.step(20)
        np.testing.assert_allclose(found, plain.state.joint_q.numpy(), rtol=1e-4, atol=1e-5)


def test_a_limit_without_a_drive_is_saved_as_it_was_written():
    """It is not held off, so a snapshot has what a user has written since the actuators were made."""
    builder = pv.ModelBuilder(gravity=0.0)
    link = builder.add_link(mass=1.0, inertia=0.1 * np.eye(3))
    builder.add_articulation([builder.add_joint_revolute(-1, link, axis="y", effort_limit=5.0)])
    with pv.Simulation(builder.finalize("cpu"), dt=DT) as simulation:
        limit = simulation.model.joint_effort_limit
        JointActuators(simulation)
        limit.fill_(2.0)
        snapshot = simulation.save()
        assert limit.numpy().tolist() == [2.0]
        limit.fill_(3.0)
        simulation.restore(snapshot)
        assert limit.numpy().tolist() == [2.0]
