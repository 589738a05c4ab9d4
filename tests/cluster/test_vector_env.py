"""Environments over workers give the bits of one process, also where workers are lost."""

import os
import signal
import threading

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("gymnasium")

from pluriverse import envs
from pluriverse.cluster import ClusterError, FleetVectorEnv, WorkerTaskError
from pluriverse.cluster.environments import EnvironmentDescription
from tests.envs.strangers import Chains, Mixed, Pushed

pytestmark = pytest.mark.usefixtures("ray_cluster")
ENV_COUNT = 5
STEP_COUNT = 40  # more than an episode


def actions_of(environments, step):
    """Return actions that depend on the environment and the step only."""
    rows = [np.random.default_rng([env, step]).uniform(-1, 1, 1) for env in environments]
    return np.array(rows, dtype=np.float32)


def flat(values):
    """Return all arrays in a result."""
    if isinstance(values, dict):
        return [array for name in sorted(values) for array in flat(values[name])]
    return [each for value in values for each in flat(value)] if isinstance(values, tuple) else [values]


def play(env, before_step=lambda step: None, steps=STEP_COUNT):
    """Return all that an environment gives, from a reset on."""
    seen = flat(env.reset(seed=4))
    buffer = np.empty((ENV_COUNT, 1), dtype=np.float32)
    for step in range(steps):
        before_step(step)
        buffer[:] = actions_of(range(ENV_COUNT), step)  # the same array again, as learners do
        seen += flat(env.step(buffer))
    return seen


def check_equal(found, expected):
    assert len(found) == len(expected)
    for place, (first, second) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(first, second, err_msg=str(place))
        assert first.dtype == second.dtype


@pytest.fixture(scope="module")
def alone():
    """What one process gives."""
    env = envs.VectorEnv(Pushed(), ENV_COUNT, seed=4, threads=1)
    yield play(env)
    env.close()


@pytest.fixture(scope="module")
def fleet():
    env = FleetVectorEnv(Pushed, ENV_COUNT, workers=2, snapshot_interval=8)
    yield env
    env.close()


def test_environments_of_two_workers_have_the_bits_of_one_process(fleet, alone):
    check_equal(play(fleet), alone)
    assert fleet.single_action_space.shape == (1,)
    assert fleet.observation_space.shape == (ENV_COUNT, 3)


@pytest.mark.parametrize("step_before_the_kill", [0, 7, 29])
def test_a_killed_worker_is_replaced_and_its_steps_made_again_to_the_same_bits(
    fleet, alone, step_before_the_kill
):
    def kill(step):
        if step == step_before_the_kill:
            os.kill(fleet.parts[1].process_id(), signal.SIGKILL)

    restarts = fleet.restart_count
    check_equal(play(fleet, kill), alone)
    assert fleet.restart_count == restarts + 1


def test_workers_at_their_own_pace_give_the_bits_of_a_loop(fleet, alone):
    """A slow worker holds up no other, and the order in which workers answer changes nothing."""
    first, _ = fleet.reset(seed=4)
    numbers = {part.index: iter(range(STEP_COUNT)) for part in fleet.parts}
    owner = {part.worlds: part.index for part in fleet.parts}

    def policy(observations, environments):
        assert observations.shape == (len(environments), 3)
        return actions_of(environments, next(numbers[owner[environments]]))

    expected = alone[1:]
    stride = len(expected) // STEP_COUNT
    count = 0
    for each in fleet.rollout(policy, steps=STEP_COUNT):
        own = slice(each.environments.start, each.environments.stop)
        whole = expected[each.number * stride : (each.number + 1) * stride]
        found = flat((each.next_observations, each.rewards, each.terminated, each.truncated, each.info))
        check_equal(found, [array[own] for array in whole])
        before = alone[0] if each.number == 0 else expected[(each.number - 1) * stride]
        np.testing.assert_array_equal(each.observations, before[own])
        np.testing.assert_array_equal(each.actions, actions_of(each.environments, each.number))
        count += 1
    assert count == 2 * STEP_COUNT
    np.testing.assert_array_equal(first, alone[0])


def test_a_slow_worker_holds_up_no_other(tmp_path):
    """One makes its first step when the other one has made all of its steps."""
    done = tmp_path / "done"

    class Slow(Pushed):
        def act(self, env, actions):
            import time

            end = time.monotonic() + 300.0
            while env.identities[0] == 0 and not done.exists() and time.monotonic() < end:
                time.sleep(0.01)
            super().act(env, actions)

    env = FleetVectorEnv(Slow, 2, workers=2)
    env.reset()
    order = []
    for each in env.rollout(lambda seen, which: np.zeros((1, 1)), steps=8):
        order.append((each.environments.start, each.number))
        if order[-1] == (1, 7):
            done.touch()
    env.close()
    assert order == [(start, number) for start in (1, 0) for number in range(8)]


@pytest.mark.parametrize("mode", ["same_step", "disabled"])
def test_groups_of_observations_and_all_ways_to_reset_are_those_of_one_process(mode):
    """`Mixed` has worlds of two kinds by identity, and is observed in two groups."""

    def play_all(env):
        seen = flat(env.reset(seed=2))
        for step in range(34):
            result = env.step(actions_of(range(3), step))
            seen += flat(result)
            ended = result[2] | result[3]
            if mode == "disabled" and ended.any():
                with pytest.raises(RuntimeError, match=f"environment {np.argmax(ended)} has ended"):
                    env.step(np.zeros((3, 1)))
                seen += flat(env.reset(options={"reset_mask": ended}))
        env.close()
        return seen

    expected = play_all(envs.VectorEnv(Mixed(), 3, autoreset_mode=mode, threads=1))
    check_equal(play_all(FleetVectorEnv(Mixed(), 3, workers=2, autoreset_mode=mode)), expected)


def test_stable_use_goes_on_after_mistakes(fleet, alone):
    """Wrong actions reach no worker, so that none steps while another refuses."""
    fleet.reset(seed=4)
    with pytest.raises(ValueError, match=r"shape \(3, 1\), but must have \(5, 1\)"):
        fleet.step(np.zeros((3, 1)))
    wrong = np.zeros((5, 1))
    wrong[4] = np.nan
    with pytest.raises(ValueError, match="of environment 4 are"):
        fleet.step(wrong)
    with pytest.raises(ValueError, match="must be real numbers"):
        fleet.step(np.zeros((5, 1), dtype=complex))
    with pytest.raises(ValueError, match="reset_mask is of type"):
        fleet.reset(options={"reset_mask": [True]})
    some = np.arange(fleet.num_envs) == 0
    with pytest.raises(ValueError, match="restarts all environments, but reset_mask leaves out 4"):
        fleet.reset(seed=3, options={"reset_mask": some})
    with pytest.raises(ValueError, match="steps is 0"):
        fleet.rollout(lambda seen, which: None, steps=0)
    with pytest.raises(ValueError, match="actions of the policy have shape"):
        list(fleet.rollout(lambda seen, which: np.zeros(3), steps=2))
    for _ in fleet.rollout(lambda seen, which: np.zeros((len(which), 1)), steps=5):
        break  # whoever stops listening may go on otherwise
    check_equal(play(fleet, steps=3), alone[: 1 + 3 * ((len(alone) - 1) // STEP_COUNT)])


class Failing(Pushed):
    def reward(self, env):
        if (env.episode_steps > 2).any():
            raise ZeroDivisionError("no reward")
        return super().reward(env)


def test_a_task_that_raises_is_reported_with_its_worker():
    env = FleetVectorEnv(Failing, 2, workers=2)
    with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
        env.step(np.zeros((2, 1)))
    env.reset()
    env.step(np.zeros((2, 1)))
    env.step(np.zeros((2, 1)))
    with pytest.raises(WorkerTaskError, match=r"worker 0 .*ZeroDivisionError: no reward"):
        env.step(np.zeros((2, 1)))
    env.reset()
    env.step(np.zeros((2, 1)))
    env.close()


class NarrowChains(Chains):
    """Each part has the columns of its own robots."""

    columns: dict = {}  # noqa: RUF012


def test_different_robots_may_be_split_if_the_columns_are_given():
    """The first worker has no long chain and no grip; bits are those of one process."""
    actions = np.linspace(-1.0, 1.0, 6, dtype=np.float32)[:, None]
    seen = []
    for env in (envs.VectorEnv(Chains(), 6, threads=1), FleetVectorEnv(Chains, 6, workers=2)):
        seen.append([flat(env.reset())[0], *(flat(env.step(actions))[0] for _ in range(3))])
        env.close()
    check_equal(*seen)
    with pytest.raises(ClusterError, match=r"same spaces in every part.*env\.tensors\(pattern, dof_count="):
        FleetVectorEnv(NarrowChains, 6, workers=2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((Pushed, 0), ValueError, "num_envs is 0"),
        ((Pushed, 2.5), ValueError, r"num_envs is 2\.5"),
        (("cartpol", 2), KeyError, "cartpole"),
        ((3, 2), TypeError, "task is a int"),
        ((Pushed, 2, {"workers": 3}), ValueError, "3 workers cannot share 2 environments"),
        ((Pushed, 2, {"seed": -1}), ValueError, "seed is -1"),
        ((Pushed, 2, {"autoreset_mode": "never"}), ValueError, "autoreset_mode is 'never'"),
        ((lambda: 3, 2, {"workers": 1}), ClusterError, "task is a int, but must derive"),
    ],
)
def test_wrong_options_are_refused(arguments, error, message):
    *operands, options = arguments if isinstance(arguments[-1], dict) else (*arguments, {})
    with pytest.raises(error, match=message):
        FleetVectorEnv(*operands, **options)


def test_tasks_that_cannot_be_sent_are_refused():
    lock = threading.Lock()
    with pytest.raises(ValueError, match="FleetVectorEnv: the task cannot be sent to workers"):
        FleetVectorEnv(lambda: lock, 2)


def test_scenes_of_several_kinds_are_refused_with_the_remedy():
    """Which kind a world has would depend on the number of worlds in its part."""

    class Several(Pushed):
        scene = "mixed"

    description = EnvironmentDescription(Several, 0, "next_step")
    with pytest.raises(ValueError, match=r"Several: the scene 'mixed' has \d+ kinds of world.*Define build"):
        description.build(range(2), device="cpu", threads=1)
