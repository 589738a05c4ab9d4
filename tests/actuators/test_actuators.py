"""Actuators against closed forms: PD, limits, motor line, lag, delay, networks; in both solvers."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.actuators import JointActuators, NetworkActuators
from pluriverse.warnings import FrozenWorldWarning

DT = 0.002
INERTIA = 0.5  # kg m^2


def make_wheel(**drive) -> pv.ModelBuilder:
    """A wheel on a hinge, without gravity and friction: inertia * acceleration = effort."""
    builder = pv.ModelBuilder(gravity=0.0)
    wheel = builder.add_link(mass=1.0, inertia=INERTIA * np.eye(3))
    joint = builder.add_joint_revolute(-1, wheel, axis=(0, 0, 1), label="wheel", **drive)
    builder.add_articulation([joint])
    return builder


def make(count: int = 1, *, solver=pv.SolverSAP, decimation: int = 1, **drive) -> pv.Simulation:
    builder = pv.ModelBuilder(gravity=0.0)
    builder.replicate(make_wheel(**(drive or {"target_pos": 0.0, "target_ke": 9.0, "target_kd": 1.0})), count)
    model = builder.finalize("cpu")
    return pv.Simulation(model, solver(model), dt=DT, decimation=decimation)


def command(simulation: pv.Simulation, **values) -> None:
    for name, value in values.items():
        array = getattr(simulation.control, name)
        array.assign(np.broadcast_to(np.float32(value), array.shape).copy())


@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
def test_pd_swings_to_its_target_as_the_oscillator_does(solver):
    """A step of the target: x(t) of a damped oscillator; the explicit step errs in the order of dt."""
    with make(solver=solver) as simulation:
        actuators = JointActuators(simulation, stiffness=20.0, damping=1.0)
        command(simulation, joint_target_pos=0.5)
        simulation.step(250)
        time, rate, omega = 0.5, 1.0 / (2 * INERTIA), np.sqrt(20.0 / INERTIA - 1.0 / (4 * INERTIA**2))
        decay = np.exp(-rate * time)
        expected = 0.5 * (1.0 - decay * (np.cos(omega * time) + rate / omega * np.sin(omega * time)))
        np.testing.assert_allclose(simulation.state.joint_q.numpy()[0], expected, atol=0.5 * omega * DT)
        assert actuators.dof.tolist() == [0]


@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
def test_effort_limit_and_removal(solver):
    """Held at its limit the effort gives speed = limit * t / inertia; afterwards the drive acts as before."""
    with make(solver=solver) as simulation, make(solver=solver) as untouched:
        actuators = JointActuators(simulation, "whe*", stiffness=1e4, damping=0.0, effort_limit=2.0)
        command(simulation, joint_target_pos=100.0)
        simulation.step(50)
        np.testing.assert_allclose(simulation.state.joint_qd.numpy()[0], 2.0 * 50 * DT / INERTIA, rtol=1e-4)
        np.testing.assert_allclose(actuators.effort.numpy(), 2.0)
        actuators.remove()
        simulation.reset()
        for loop in (simulation, untouched):
            command(loop, joint_target_pos=0.3)
            loop.step(50)
        np.testing.assert_array_equal(simulation.state.joint_q.numpy(), untouched.state.joint_q.numpy())


def test_a_motor_approaches_its_no_load_speed():
    """Effort stall (1 - v / v0): each step takes the same share of what is missing of v0."""
    with make() as simulation:
        JointActuators(
            simulation, stiffness=0.0, damping=0.0, effort_limit=np.inf, stall_effort=5.0, no_load_speed=4.0
        )
        command(simulation, joint_act=1000.0)
        simulation.step(100)
        share = 1.0 - DT * 5.0 / (4.0 * INERTIA)
        np.testing.assert_allclose(simulation.state.joint_qd.numpy()[0], 4.0 * (1.0 - share**100), rtol=1e-4)
        command(simulation, joint_act=-1000.0)
        simulation.step()  # against the motion it gives more than at standstill
        speed = 4.0 * (1.0 - share**100)
        np.testing.assert_allclose(
            simulation.stages[0].effort.numpy()[0], -5.0 * (1 + speed / 4.0), rtol=1e-3
        )


def test_a_curve_bounds_the_effort_and_a_speed_limit_ends_it():
    """Between two points of the curve the bound is linear; above the speed limit there is none."""
    with make(3) as simulation:
        actuators = JointActuators(
            simulation,
            stiffness=0.0,
            damping=0.0,
            effort_limit=np.inf,
            curve=[(0.0, 4.0), (2.0, 4.0), (6.0, 0.0)],
            velocity_limit=3.5,
        )
        command(simulation, joint_act=100.0)
        state = simulation.model.state()
        state.joint_qd.assign(np.float32([1.0, 3.0, 4.0]))
        pv.eval_fk(simulation.model, state.joint_q, state.joint_qd, state)
        simulation.reset(state=state)
        simulation.step()
        np.testing.assert_allclose(actuators.effort.numpy(), [4.0, 3.0, 0.0], rtol=1e-5)


def test_a_target_that_is_nan_freezes_its_world():
    """Effort limits and ranges of targets do not make a number of it; after a reset the world goes on."""
    with make(3) as simulation:
        simulation.model.joint_target_lower.fill_(-1.0)
        simulation.model.joint_target_upper.fill_(1.0)
        JointActuators(simulation, stiffness=20.0, damping=1.0, effort_limit=2.0, time_constant=0.01)
        command(simulation, joint_target_pos=[0.5, np.nan, 0.5])
        with pytest.warns(FrozenWorldWarning, match=r"world 1: .*control\.joint_target_pos of joint 'wheel'"):
            simulation.step(5)
        command(simulation, joint_target_pos=0.5)
        simulation.reset()
        simulation.step(20)
        q = simulation.state.joint_q.numpy()
        assert q[0] > 0.0
        assert np.array_equal(q, np.full(3, q[0]))


def test_the_lag_is_exact_for_a_constant_command():
    """Y = u (1 - exp(-t / tau)), whatever the step."""
    with make(2) as simulation:
        actuators = JointActuators(simulation, stiffness=0.0, damping=0.0, time_constant=[0.02, 0.0])
        command(simulation, joint_act=3.0)
        simulation.step(15)
        np.testing.assert_allclose(
            actuators.effort.numpy(), [3.0 * (1 - np.exp(-0.03 / 0.02)), 3.0], rtol=1e-5
        )


@pytest.mark.parametrize("decimation", [1, 5])
def test_a_delay_is_of_solver_steps_and_differs_between_worlds(decimation):
    """A command acts after its delay; drawn delays lie between the bounds and do not depend on the batch."""
    with make(3, decimation=decimation) as simulation:
        actuators = JointActuators(simulation, stiffness=0.0, damping=0.0, delay=[0.0, 0.01, 0.02])
        simulation.step(4)
        command(simulation, joint_act=1.0)
        simulation.step(20 // decimation)
        acting = np.array([20, 15, 10])
        speeds = simulation.state.joint_qd.numpy()
        np.testing.assert_allclose(speeds, acting * DT / INERTIA, rtol=1e-4)
        assert actuators.effort.shape == (3,)
    with make(20) as simulation, make(1) as alone:
        drawn = JointActuators(simulation, delay=(0.01, 0.04), seed=4).delay.numpy()
        single = JointActuators(alone, delay=(0.01, 0.04), seed=4, identities=[7]).delay.numpy()
        assert drawn.min() >= 0.01
        assert drawn.max() <= 0.04
        assert len(set(drawn.tolist())) == 20
        assert single[0] == drawn[7]


def test_gains_per_world_and_snapshots():
    """Gains written per world act on the next step; a run continues from a snapshot with the same bits."""
    with make(4, decimation=2) as simulation:
        actuators = JointActuators(simulation, damping=0.5, delay=0.006, time_constant=0.01)
        actuators.stiffness.assign(np.float32([1.0, 2.0, 3.0, 4.0]))
        command(simulation, joint_target_pos=1.0)
        simulation.step(10)
        assert np.all(np.diff(simulation.state.joint_q.numpy()) > 0.0)
        snapshot = simulation.save()
        simulation.step(10)
        expected = simulation.state.joint_q.numpy().copy()
        simulation.restore(snapshot)
        simulation.step(10)
        np.testing.assert_array_equal(simulation.state.joint_q.numpy(), expected)


def gains_network(features: np.ndarray) -> np.ndarray:
    """A PD drive as a network: 9 * error - 1 * velocity."""
    return features @ np.float32([9.0, -1.0])


@pytest.mark.parametrize("record", [True, False], ids=["recorded", "launched"])
def test_a_network_of_gains_moves_as_the_gains_do(tmp_path, record):
    """A function, TorchScript and ONNX files that compute a PD law: the motion of that law, with a reset."""
    networks = [gains_network]
    torch = pytest.importorskip("torch")
    linear = torch.nn.Linear(2, 1, bias=False)
    linear.weight.data[:] = torch.tensor([[9.0, -1.0]])
    torch.jit.script(linear).save(str(tmp_path / "gains.pt"))
    networks.append(tmp_path / "gains.pt")
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    gains = onnx.numpy_helper.from_array(np.float32([[9.0], [-1.0]]), "gains")
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["actuator", width])
        for name, width in (("features", 2), ("efforts", 1))
    ]
    product = onnx.helper.make_node("MatMul", ["features", "gains"], ["efforts"])
    graph = onnx.helper.make_graph([product], "gains", ends[:1], ends[1:], [gains])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10)
    onnx.save(model, tmp_path / "gains.onnx")
    networks.append(tmp_path / "gains.onnx")

    def run(make_actuators) -> np.ndarray:
        builder = pv.ModelBuilder(gravity=0.0)
        builder.replicate(make_wheel(target_pos=0.0, target_ke=9.0, target_kd=1.0), 3)
        with pv.Simulation(builder.finalize("cpu"), dt=DT, decimation=4, record=record) as simulation:
            make_actuators(simulation)
            command(simulation, joint_target_pos=0.7)
            simulation.step(10)
            simulation.reset([1])
            simulation.step(10)
            return simulation.state.joint_q.numpy().copy()

    expected = run(lambda simulation: JointActuators(simulation))
    assert expected[0] > 1.5 * expected[1] > 0.0
    for network in networks:
        result = run(lambda simulation, network=network: NetworkActuators(simulation, network))
        np.testing.assert_allclose(result, expected, rtol=1e-4)


@pytest.mark.parametrize("record", [True, False])
def test_a_network_sees_the_commands_of_tensors_in_the_step_that_takes_them_in(record):
    """Not one solver step later: tensors take commands in at the start of a step."""
    seen = []

    def watch(features: np.ndarray) -> np.ndarray:
        seen.append(float(features[0, 0]))
        return np.zeros(len(features), dtype=np.float32)

    robot = pv.ModelBuilder()
    link = robot.add_link(mass=1.0, inertia=np.eye(3))
    robot.add_articulation([robot.add_joint_revolute(-1, link, axis="z")], label="robot")
    with pv.Simulation(robot.finalize("cpu"), dt=DT, decimation=2, record=record) as simulation:
        tensors = simulation.tensors("robot")
        NetworkActuators(simulation, watch)
        simulation.step()
        seen.clear()
        tensors.joint_position_targets.fill_(0.25)
        simulation.step()
        assert seen == pytest.approx([0.25, 0.25])
        assert tensors.joint_positions.numpy()[0, 0] == 0.0


def test_a_network_sees_the_past():
    """Features are errors now and two steps ago, then velocities; the past begins anew at a reset."""
    seen = []

    def watch(features: np.ndarray) -> np.ndarray:
        seen.append(features.copy())
        return np.zeros(len(features), dtype=np.float32)

    with make() as simulation:
        NetworkActuators(simulation, watch, history=(0, 2), velocity_scale=10.0)
        seen.clear()
        for target in (0.1, 0.2, 0.3, 0.4):
            command(simulation, joint_target_pos=target)
            simulation.step()
        simulation.reset()
        simulation.step()
    np.testing.assert_allclose([row[0, 0] for row in seen], [0.1, 0.2, 0.3, 0.4, 0.4], rtol=1e-6)
    np.testing.assert_allclose([row[0, 1] for row in seen], [0.1, 0.1, 0.1, 0.2, 0.4], rtol=1e-6)


def test_wrong_actuators_are_refused(tmp_path):
    """Joints that are none, values out of range, two actuators of one joint, networks that do not fit."""
    with make(2) as simulation:
        with pytest.raises(KeyError):
            JointActuators(simulation, "knee")
        with pytest.raises(
            ValueError, match=r"stiffness of joint 'wheel' is -1\.0, but it must be finite and >= 0"
        ):
            JointActuators(simulation, stiffness=-1.0)
        with pytest.raises(ValueError, match=r"damping is .*2 numbers"):
            JointActuators(simulation, damping=[1.0, 2.0, 3.0])
        with pytest.raises(ValueError, match="stiffness has no value for joint 'wheel'"):
            JointActuators(simulation, stiffness={"hip*": 3.0})
        with pytest.raises(ValueError, match="stall_effort and no_load_speed belong together"):
            JointActuators(simulation, stall_effort=3.0)
        with pytest.raises(ValueError, match="speeds must ascend from 0"):
            JointActuators(simulation, curve=[(1.0, 2.0), (0.5, 3.0)])
        with pytest.raises(FileNotFoundError):
            NetworkActuators(simulation, tmp_path / "none.pt")
        torch = pytest.importorskip("torch")
        module = torch.nn.Linear(2, 1)
        with pytest.raises(TypeError, match=r"torch module \(Linear\), which takes tensors.*from_numpy"):
            NetworkActuators(simulation, module)
        NetworkActuators(
            simulation, lambda features: module(torch.from_numpy(features)).detach().numpy()
        ).remove()
        with pytest.raises(ValueError, match="gave 4 numbers for 2 actuators"):
            NetworkActuators(simulation, lambda features: features)
        assert simulation.stages == ()
        np.testing.assert_array_equal(simulation.model.joint_effort_limit.numpy() > 0.0, True)
        JointActuators(simulation, stiffness={"*": 3.0, "wheel": 4.0})
        with pytest.raises(ValueError, match="has an actuator of a JointActuators already"):
            JointActuators(simulation)
