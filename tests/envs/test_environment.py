"""Environments repeat bit for bit, alone or in a batch, and say what a user did wrong."""

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import pluriverse as pv  # noqa: E402
from pluriverse import envs  # noqa: E402
from pluriverse.entity import VariantEntityCfg  # noqa: E402
from pluriverse.envs.random import EnvironmentRandom  # noqa: E402
from pluriverse.randomization import Uniform, friction  # noqa: E402
from pluriverse.scene import SceneCfg  # noqa: E402
from pluriverse.variants import make_scene  # noqa: E402
from pluriverse.warnings import MissingEntityWarning  # noqa: E402

from .strangers import Chains, Mixed, Pushed, SceneTask, SwingUp, add_chain  # noqa: E402

STEPS = 75  # two and a half episodes


def actions_of(identities, step: int) -> torch.Tensor:
    """Return actions that depend on the environment and the step only."""
    rows = [np.random.default_rng([int(identity), step]).uniform(-1, 1, 1) for identity in identities]
    return torch.tensor(np.array(rows), dtype=torch.float32)


def run(task, identities, *, seed=3, threads=2, steps=STEPS) -> list[torch.Tensor]:
    """Return all that a run gives, each of shape [env, ...]."""
    with envs.Environment(task, len(identities), seed=seed, identities=identities, threads=threads) as env:
        seen = [env.reset()]
        for step in range(steps):
            result = env.step(actions_of(identities, step))
            seen += [result.observations, result.rewards, result.terminated, result.truncated]
        return [part["policy"] if isinstance(part, dict) else part for part in seen]


@pytest.mark.parametrize("task", [SwingUp, Mixed, Pushed])
def test_an_environment_goes_through_the_same_episodes_alone_and_in_a_batch(task):
    """Bit for bit, on one thread and on two; draws follow seed, identity, episode and step."""
    batch = run(task(), range(7))
    for identity in (0, 5):
        alone = run(task(), [identity], threads=1)
        for whole, own in zip(batch, alone, strict=True):
            assert torch.equal(whole[identity], own[0])
    again = run(task(), range(7), threads=1)
    assert all(torch.equal(first, second) for first, second in zip(batch, again, strict=True))
    other = run(task(), range(7), seed=4)
    assert not torch.equal(batch[0], other[0])
    assert not torch.equal(batch[0][0], batch[0][5])


def test_an_environment_goes_through_the_same_episodes_among_four_thousand():
    """Bit for bit, over the end of an episode: reductions and threads that split a batch do not show."""
    batch = run(Mixed(), range(4096), steps=32)
    for identity in (0, 4095):
        alone = run(Mixed(), [identity], threads=1, steps=32)
        for whole, own in zip(batch, alone, strict=True):
            assert torch.equal(whole[identity], own[0])


def test_worlds_of_a_scene_stand_in_the_same_place_whatever_the_batch():
    """Coordinates that depend on the size of the batch would round differently."""
    batch = run(SceneTask(), range(5), steps=10)
    alone = run(SceneTask(), [3], steps=10)
    assert all(torch.equal(whole[3], own[0]) for whole, own in zip(batch, alone, strict=True))
    with envs.Environment(SceneTask(), 5, threads=1) as env:
        bodies = env.model.body_q.numpy().reshape(5, -1, 7)
        assert (bodies == bodies[0]).all()


def test_a_part_of_different_robots_is_that_of_the_whole():
    """With the columns of the whole, and although robots and shapes that are named are in other parts."""
    batch = run(Chains(), range(6), steps=32)
    for identity, missing in (
        (1, "no shape matches 'grip'; there are arm"),
        (5, "no articulation matches 'short'"),
    ):
        with pytest.warns(MissingEntityWarning, match=f"{missing}.*another part may have some"):
            alone = run(Chains(), [identity], threads=1, steps=32)
        for whole, own in zip(batch, alone, strict=True):
            assert torch.equal(whole[identity], own[0])


def test_what_no_environment_has_is_an_error_in_a_whole_batch():
    task = Chains()
    task.randomization = (friction(Uniform(0.5, 1.0), entities="girp"),)
    with pytest.raises(KeyError, match="no shape matches 'girp'; did you mean grip"):
        envs.Environment(task, 6)
    with pytest.warns(MissingEntityWarning, match="no shape matches 'girp'; did you mean grip"):
        envs.Environment(task, 2, identities=[4, 5]).close()


def test_more_joints_than_columns_are_refused():
    task = Chains()
    task.columns = {"dof_count": 2}
    with pytest.raises(ValueError, match=r"dof_count is 2, but 'long' \(row 4, world 4\) has 3"):
        envs.Environment(task, 6)
    task.columns = {"foot_count": 1.5}
    with pytest.raises(ValueError, match=r"foot_count is 1\.5, but must be a whole number"):
        envs.Environment(task, 6)


def test_a_seed_brings_a_used_environment_back_to_its_first_episode():
    """Reset with a seed forgets episodes, commands and draws."""
    with envs.Environment(SwingUp(), 5, seed=1, threads=1) as env:
        runs = []
        for _ in range(2):
            seen = [env.reset(seed=9)]
            seen += [env.step(torch.full((5, 1), 0.5)).observations for _ in range(2)]
            seen += [env.step(actions_of(range(5), 1)).observations]
            env.reset(seed=9)  # while the commands are those that come next
            seen += [env.step(actions_of(range(5), 1)).observations]
            for step in range(40):
                seen.append(env.step(actions_of(range(5), step)).observations)
            runs.append(torch.stack(seen))
        assert torch.equal(*runs)


def test_episodes_end_by_the_task_or_by_time_and_begin_anew():
    """Truncation comes after so many steps; what was seen last is not what is seen next."""
    task = SwingUp()
    with envs.Environment(task, 4, threads=1) as env:
        env.reset()
        assert env.max_episode_steps == 30
        ended = 0
        for step in range(1, 31):
            result = env.step(torch.zeros(4, 1))
            assert not (result.terminated & result.truncated).any()
            ended += int(result.terminated.sum())
            if step == 30 and not ended:
                assert result.truncated.all()
                assert (env.episode_steps == 0).all()
                assert (env.episodes == 2).all()
                assert not torch.equal(result.final_observations, result.observations)
        assert ended == 0


def test_environments_that_have_ended_go_on_until_they_are_reset():
    """`ended` says which; as a mask it resets those and no others."""

    class Noting(SwingUp):
        def reset(self, env, mask):
            self.begun = mask.tolist()

    with envs.Environment(Noting(), 3, threads=1, reset_done=False) as env:
        env.reset()
        env.episode_steps[1] = env.max_episode_steps - 1
        for _ in range(2):
            assert env.step(torch.ones(3, 1)).truncated.tolist() == [False, True, False]
        assert env.ended.tolist() == [False, True, False]
        env.reset(env.ended)
        assert env.task.begun == [False, True, False]
        assert env.actions[:, 0].tolist() == [1.0, 0.0, 1.0]
        assert env.episode_steps.tolist() == [2, 0, 2]
        assert not env.ended.any()


@pytest.mark.parametrize("seconds", [1e9, 10**12, float("inf"), None, np.float32(1e30)])
def test_an_episode_without_end_is_not_truncated(seconds):
    """More steps than are counted in 32 bits once ended every episode in its first step."""
    task = SwingUp()
    task.episode_seconds = seconds
    with envs.Environment(task, 2, threads=1) as env:
        env.reset()
        assert not env.step(torch.zeros(2, 1)).truncated.any()
        assert env.max_episode_steps == 2**31 - 1
        task.episode_seconds = 0.04  # a curriculum may change it
        assert env.step(torch.zeros(2, 1)).truncated.all()


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), "20", [1.0]])
def test_a_time_of_episodes_that_is_none_is_refused(seconds):
    """With the task and the value, before anything is stepped."""
    task = SwingUp()
    task.episode_seconds = seconds
    with pytest.raises(ValueError, match=r"SwingUp: episode_seconds is .*must be a positive time.*math\.inf"):
        envs.Environment(task, 2, threads=1)


def test_a_world_that_freezes_ends_its_episode_and_goes_on():
    """NaN written into a world ends that episode only."""
    with envs.Environment(SwingUp(), 3, threads=1) as env:
        env.reset()
        velocity = env.simulation.state.joint_qd.numpy().copy()
        velocity[1] = np.nan
        env.simulation.state.joint_qd = velocity
        with pytest.warns(UserWarning, match="world 1"):
            result = env.step(torch.zeros(3, 1))
        assert result.terminated.tolist() == [False, True, False]
        assert torch.isfinite(result.observations).all()
        assert not env.step(torch.zeros(3, 1)).terminated.any()


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (torch.zeros(3), r"actions have shape \(3,\), but must have \(3, 1\)"),
        (torch.zeros(2, 1), r"shape \(2, 1\)"),
        (torch.full((3, 1), float("nan")), r"environment 0 are .nan.*has diverged"),
        (torch.zeros(3, 1, dtype=torch.complex64), "complex"),
    ],
)
def test_actions_that_do_not_fit_are_refused(actions, message):
    """The message says what is wrong and what to do."""
    with envs.Environment(SwingUp(), 3, threads=1) as env:
        with pytest.raises(RuntimeError, match="call reset"):
            env.step(torch.zeros(3, 1))
        env.reset()
        with pytest.raises(ValueError, match=message):
            env.step(actions)


def test_actions_of_other_types_are_taken_and_clipped():
    """Integers, doubles and NumPy arrays are numbers; what is too large is cut to the limit."""
    with envs.Environment(SwingUp(), 2, threads=1) as env:
        env.reset()
        for given in (np.ones((2, 1)), torch.full((2, 1), 7, dtype=torch.int64), [[9.0], [1.0]]):
            env.step(given)
            assert env.actions.tolist() == [[1.0], [1.0]]


class Unfinished(envs.Task):
    action_count = 1


class WrongWorlds(SwingUp):
    def build(self, identities):
        return super().build(identities[:1])


class ViewedReward(SwingUp):
    """Gives terms that are views of memory of the simulation and of its own."""

    def setup(self, env):
        super().setup(env)
        self.own = torch.zeros(env.env_count)

    def reward(self, env):
        self.own += 1.0
        return {"angle": self.t.joint_positions[:, 0], "own": self.own, "alive": 0.5, "fast": self.own > 2.0}


@pytest.mark.parametrize("reset_done", [True, False])
def test_terms_of_the_reward_may_be_kept(reset_done):
    """They stay those of the step in which the episode ended, and add up to its reward."""
    with envs.Environment(ViewedReward(), 3, threads=1, reset_done=reset_done) as env:
        env.reset()
        kept = [env.step(torch.ones(3, 1)) for _ in range(32)]
        for step, result in enumerate(kept):
            assert result.reward_terms["own"].tolist() == [step + 1.0] * 3
            assert result.reward_terms["alive"].tolist() == [0.5] * 3
            assert {term.dtype for term in result.reward_terms.values()} == {torch.float32}
            torch.testing.assert_close(sum(result.reward_terms.values()), result.rewards)
            seen = result.observations if result.final_observations is None else result.final_observations
            assert torch.equal(result.reward_terms["angle"].sin(), seen[:, 0])
        assert not reset_done or kept[29].final_observations is not None


class NumpyReward(SwingUp):
    def reward(self, env):
        return np.zeros(env.env_count, dtype=np.float32)


class NumpyTerm(SwingUp):
    def reward(self, env):
        return {"alive": 1.0, "pace": np.zeros(env.env_count, dtype=np.float32)}


class NoReward(SwingUp):
    def reward(self, env):
        pass


class NoWorlds(SwingUp):
    def build(self, identities):
        super().build(identities)


class WrongReward(SwingUp):
    def reward(self, env):
        return self.t.joint_positions


class WrongObservation(SwingUp):
    def observe(self, env):
        return self.t.joint_positions[:, 0]


class InfiniteReward(SwingUp):
    def reward(self, env):
        return {"alive": self.t.joint_positions[:, 0] * 0.0, "pace": 1.0 / env.actions[:, 0]}


class InfiniteObservation(SwingUp):
    def observe(self, env):
        return torch.cat([self.t.joint_positions, env.actions.log()], dim=1)


class WrongEnd(SwingUp):
    def terminated(self, env):
        return self.t.joint_positions[:, 0]


class NoActions(SwingUp):
    action_count = 0


def test_tasks_that_do_not_fit_themselves_say_so():
    """Each mistake is named, with the class and the remedy."""
    with pytest.raises(NotImplementedError, match="Unfinished: a task says what its worlds are"):
        envs.Environment(Unfinished(), 2)
    with pytest.raises(TypeError, match=r"pass an instance, SwingUp\(\)"):
        envs.Environment(SwingUp, 2)
    with pytest.raises(TypeError, match=r"envs\.make_task\('cartpole'\)"):
        envs.Environment("cartpole", 1)
    with (
        envs.Environment(SwingUp(), 1, threads=1) as made,
        pytest.raises(TypeError, match="got an Environment where a task is expected"),
    ):
        envs.VectorEnv(made, 1)
    with pytest.raises(ValueError, match=r"WrongWorlds\.build: made 1 worlds for 3 environments"):
        envs.Environment(WrongWorlds(), 3)
    with pytest.raises(ValueError, match="NoActions: action_count is 0"):
        envs.Environment(NoActions(), 1)
    with pytest.raises(ValueError, match="env_count is 0"):
        envs.Environment(SwingUp(), 0)
    with pytest.raises(TypeError, match=r"NoWorlds\.build: returned None, but must return a ModelBuilder"):
        envs.Environment(NoWorlds(), 1)
    for task, message in (
        (WrongReward(), r"WrongReward\.reward: the reward is \(2, 1\), but must be a tensor of shape .2."),
        (NumpyReward(), "the reward is a ndarray of numpy, but must be a tensor"),
        (NumpyTerm(), "pace is a ndarray of numpy, but must be a tensor"),
        (NoReward(), "the reward is of type NoneType"),
        (WrongEnd(), "truth values"),
    ):
        with envs.Environment(task, 2, threads=1) as env:
            env.reset()
            with pytest.raises(ValueError, match=message):
                env.step(torch.zeros(2, 1))
    with envs.Environment(InfiniteReward(), 2, threads=1) as env:
        env.reset()
        with pytest.raises(ValueError, match=r"InfiniteReward\.reward: pace is inf in environment 1"):
            env.step(torch.tensor([[1.0], [0.0]]))
    with (
        envs.Environment(InfiniteObservation(), 2, threads=1) as env,
        pytest.raises(ValueError, match="is -inf in column 1 of environment 0, but must be finite"),
    ):
        env.reset()
    with (
        envs.Environment(WrongObservation(), 2, threads=1) as env,
        pytest.raises(ValueError, match=r"observe: observe\(\) is \(2,\)"),
    ):
        env.reset()


class Variants(Chains):
    """Chains of one and of two links as variants of a scene, by identity."""

    columns: dict = {"dof_count": 2}  # noqa: RUF012
    randomization = ()
    reassignable, returned = False, "model"

    def build(self, identities):
        chains = VariantEntityCfg(
            variants={f"{n} links": functools.partial(add_chain, pv.ModelBuilder(), n) for n in (1, 2)},
            assignment=lambda count: [int(identity) % 2 for identity in identities],
        )
        entities = {"chain": chains}
        config = SceneCfg(len(identities), entities, ground_height=-5.0, reassignable=self.reassignable)
        scene = make_scene(config, device="cpu")
        return scene if self.returned == "scene" else scene.model

    def setup(self, env):
        self.t = env.tensors("short", **self.columns).torch


def test_environments_keep_the_variants_of_a_scene():
    """Its model serves in the whole and in a part; a scene whose variants change is refused."""
    batch = run(Variants(), range(4), steps=10)
    alone = run(Variants(), [3], steps=10)
    assert all(torch.equal(whole[3], own[0]) for whole, own in zip(batch, alone, strict=True))
    task = Variants()
    task.reassignable = True
    with pytest.raises(ValueError, match=r"made 8 worlds for 4 environments.*leave reassignable=True out"):
        envs.Environment(task, 4)
    task.returned = "scene"
    with pytest.raises(TypeError, match=r"returned a VariantScene, but .* Return its model\. .*reassignable"):
        envs.Environment(task, 4)


def test_a_task_is_that_of_one_environment_until_it_is_closed_or_gone():
    """Two environments of one task would both observe the worlds of the second, without a word."""
    task = SwingUp()
    first = envs.Environment(task, 2, seed=0, threads=1)
    first.reset()
    with pytest.raises(ValueError, match=r"this SwingUp is the task of another.*\(with 2 .*close\(\)"):
        envs.Environment(task, 3, seed=1, threads=1)
    assert task.t.joint_positions.shape == (2, 1)
    first.step(torch.zeros(2, 1))  # the refusal has changed nothing
    first.close()
    first.step(torch.zeros(2, 1))
    second = envs.Environment(task, 3, seed=1, threads=1)
    for call in (first.reset, lambda: first.step(torch.zeros(2, 1))):
        with pytest.raises(RuntimeError, match="another environment has taken over the SwingUp"):
            call()
    seen = second.reset()
    del second
    third = envs.Environment(task, 3, seed=1, threads=1)
    assert torch.equal(third.reset(), seen)
    third.close()


class Distracted(SwingUp):
    """Has no hash, and cannot be set up at first."""

    __hash__ = None
    tries = 0

    def setup(self, env):
        self.tries += 1
        if self.tries == 1:
            raise LookupError("nothing there")
        super().setup(env)


def test_a_task_whose_setup_failed_may_be_tried_again():
    """Also while the error is kept, as notebooks do with that of the last cell."""
    task = Distracted()
    with pytest.raises(LookupError) as kept:
        envs.Environment(task, 1, threads=1)
    with envs.Environment(task, 1, threads=1) as env:
        assert env.reset().shape == (1, 3)
    del kept


def test_a_seed_is_for_all_environments():
    """With a mask it would take targets and episodes from those in the middle of theirs."""
    with envs.Environment(SwingUp(), 3, threads=1) as env:
        env.reset()
        env.step(torch.ones(3, 1))
        before = env.simulation.control.joint_f.numpy().copy()
        with pytest.raises(ValueError, match=r"seed is 4, .* leaves out 2 of 3"):
            env.reset(torch.tensor([True, False, False]), seed=4)
        assert env.seed == 0
        assert env.episodes.tolist() == [1] * 3
        assert before.all()
        np.testing.assert_array_equal(env.simulation.control.joint_f.numpy(), before)
        whole = env.reset(torch.ones(3, dtype=torch.bool), seed=4)
        assert torch.equal(whole, env.reset(seed=4))


class Doubly(SwingUp):
    """Computes in the default type of PyTorch."""

    def reward(self, env):
        return {"angle": self.t.joint_positions[:, 0], "alive": torch.ones(env.env_count)}


def test_tasks_run_where_double_precision_is_the_default_of_pytorch():
    """Actions, observations and rewards stay in single precision, with the same bits."""
    tasks = [Doubly, *(lambda name=name: envs.make_task(name) for name in ("puli-flat", "lift", "turn"))]

    def seen(make) -> list[torch.Tensor]:
        with envs.Environment(make(), 2, threads=1) as env:
            first = env.reset()
            result = env.step(np.ones(env.actions.shape))
            return [first, result.observations, result.rewards, *result.reward_terms.values()]

    expected = [seen(make) for make in tasks]
    torch.set_default_dtype(torch.float64)
    try:
        found = [seen(make) for make in tasks]
    finally:
        torch.set_default_dtype(torch.float32)
    for first, second in zip(expected, found, strict=True):
        assert {part.dtype for part in second} == {torch.float32}
        for one, other in zip(first, second, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


def test_random_numbers_are_uniform_and_normal():
    """Mean and variance within five standard errors."""
    import warp as wp

    count, width = 64, 400
    identity = wp.array(np.arange(count), dtype=wp.int32, device="cpu")
    zeros = wp.zeros(count, dtype=wp.int32, device="cpu")
    random = EnvironmentRandom(identity, zeros, zeros, 1)
    numbers = random.uniform(-1.0, 3.0, width)
    error = 5.0 / np.sqrt(count * width)
    assert abs(float(numbers.mean()) - 1.0) < error * 4.0 / np.sqrt(12.0)
    assert float(numbers.min()) > -1.0
    assert float(numbers.max()) < 3.0
    assert abs(float(random.normal(2.0, width).std()) - 2.0) < 2.0 * error
    assert not torch.equal(random.uniform(0.0, 1.0), random.uniform(0.0, 1.0))
    with pytest.raises(ValueError, match="count is 0"):
        random.uniform(0.0, 1.0, 0)
    random.uniform(0.0, 1.0, 1)
    for wrong in (1.0, 2.5, True, "2"):
        with pytest.raises(TypeError, match=r"count is .*The mean of normal\(std, count\) is zero"):
            random.normal(0.0, wrong)
    assert random.normal(1.0, np.int64(2)).shape == (count, 2)


@pytest.mark.parametrize("kind", [tuple, list, np.array, torch.tensor])
def test_bounds_may_be_given_for_each_number(kind):
    """Tuples as configurations hold them, lists, arrays and tensors give the same numbers."""
    import warp as wp

    identity = wp.array(np.arange(500), dtype=wp.int32, device="cpu")
    zeros = wp.zeros(500, dtype=wp.int32, device="cpu")
    numbers = EnvironmentRandom(identity, zeros, zeros, 1).uniform(kind([-1.0, 5.0]), kind([1.0, 7.0]), 2)
    alike = EnvironmentRandom(identity, zeros, zeros, 1).uniform(-1.0, 1.0, 2) + torch.tensor([0.0, 6.0])
    torch.testing.assert_close(numbers, alike)
    spread = EnvironmentRandom(identity, zeros, zeros, 1).normal(kind([1.0, 10.0]), 2).std(dim=0)
    assert float(spread[1] / spread[0]) == pytest.approx(10.0, rel=0.3)
