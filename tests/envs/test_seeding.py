"""Noise of sensors and delays of actuators depend on seed and identity of environments, not on the batch."""

import pytest

import pluriverse as pv
from pluriverse.actuators import JointActuators, NetworkActuators

torch = pytest.importorskip("torch")
wp = pytest.importorskip("warp")
from pluriverse import envs  # noqa: E402, needs torch
from pluriverse.envs.snapshot import restore_environment, save_environment  # noqa: E402

XML = """<mujoco model="p"><worldbody><body name="b" pos="0 0 1">
  <joint name="j" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.4" size=".03"/><site name="s"/>
</body></worldbody>
<actuator><position joint="j" kp="5" kv=".2"/></actuator>
<sensor><gyro name="gyro" site="s" noise="0.1"/></sensor></mujoco>"""


class Noisy(envs.Task):
    """A pendulum with a delayed drive and a noisy gyroscope; its episodes end after some steps."""

    action_count = 1
    decimation = 2
    episode_seconds = 0.05

    def __init__(self, *, is_late: bool = False) -> None:
        self.is_late = is_late

    def build(self, identities):
        robot, builder = pv.ModelBuilder(), pv.ModelBuilder()
        robot.add_mjcf(XML)
        builder.replicate(robot, len(identities))
        return builder

    def setup(self, env):
        self.actuators = JointActuators(env.simulation, delay=(0.0, 0.02))
        if not self.is_late:
            env.simulation.sensors.set_noise("gyro", std=0.1, bias=0.2, delay=(0.0, 0.01))
        self.robot = env.tensors("p").torch

    def act(self, env, actions):
        self.robot.joint_position_targets.copy_(actions)

    def observe(self, env):
        gyro = wp.to_torch(env.simulation.sensors["gyro"])  # if late, this is the first use
        return torch.cat([gyro, self.robot.joint_positions, self.robot.joint_torques], dim=1)

    def reward(self, env):
        return self.robot.joint_positions[:, 0]


def run(env: envs.Environment, **options) -> torch.Tensor:
    """Return the observations of a run over two ends of episodes."""
    seen = [env.reset(**options)]
    seen += [env.step(torch.full((env.env_count, 1), 0.5)).observations for _ in range(12)]
    return torch.stack(seen)


def make(seed: int, count: int = 3, **options) -> envs.Environment:
    task = Noisy(is_late=options.pop("is_late", False))
    return envs.Environment(task, count, threads=1, seed=seed, **options)


@pytest.mark.parametrize("is_late", [False, True], ids=["in setup", "in observe"])
def test_noise_and_delays_are_those_of_seed_and_identity(is_late):
    """Another seed gives others, the same seed repeats them, and a part of a batch has its own."""
    with make(1, is_late=is_late) as env, make(2, is_late=is_late) as other:
        first, second = run(env), run(other)
        assert not (first == second).all(dim=2).any()
        delays = env.task.actuators.delay.numpy()
        assert len(set(delays.tolist())) == 3
        assert not (delays == other.task.actuators.delay.numpy()).any()
        assert torch.equal(run(env, seed=2), second)
        assert torch.equal(run(env, seed=1), first)
    with make(1, 1, is_late=is_late, identities=[2]) as part:
        assert torch.equal(run(part)[:, 0], first[:, 2])


def test_a_restored_environment_has_the_seed_of_the_saved_one():
    """Noise goes on with the seed that was saved, whatever the other environment was made with."""
    with make(5) as env, make(6) as other:
        run(env)
        saved = save_environment(env)
        expected = [env.step(torch.full((3, 1), -0.5)).observations for _ in range(8)]
        restore_environment(other, saved)
        for observations in expected:
            assert torch.equal(other.step(torch.full((3, 1), -0.5)).observations, observations)


def test_a_simulation_seeds_what_is_there_and_what_comes_later():
    """`Simulation.set_seed` acts at the next reset; networks forget the past there as at any other."""
    ages = []

    def network(features):
        ages.append(features[:, 1].copy())
        return features[:, 0]

    robot, builder = pv.ModelBuilder(), pv.ModelBuilder()
    robot.add_mjcf(XML)
    builder.replicate(robot, 2)
    model = builder.finalize("cpu")
    with pv.Simulation(model, dt=0.005) as first, pv.Simulation(model, dt=0.005) as second:
        first.set_seed(3, identities=[4, 9])
        before = JointActuators(first, delay=(0.0, 0.1))
        drawn = before.delay.numpy().copy()
        after = JointActuators(second, delay=(0.0, 0.1), seed=7)
        assert not (after.delay.numpy() == drawn).any()
        second.set_seed(3, identities=[4, 9])
        second.reset()
        assert (after.delay.numpy() == drawn).all()
        with pytest.raises(ValueError, match="identities must be 2 whole numbers"):
            second.set_seed(3, identities=[4])
        with pytest.raises(ValueError, match="seed is -1"):
            second.set_seed(-1)
        after.remove()
        NetworkActuators(second, network, history=(0, 1))
        for _ in range(2):
            second.control.joint_target_pos.fill_(0.5)
            second.step(3)
            second.set_seed(3)
            second.reset()
            second.control.joint_target_pos.fill_(-0.5)
            ages.clear()
            second.step()
            assert (ages[0] == -0.5).all()
