"""Learning libraries take the environments by their own interfaces and checks."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402

from pluriverse import envs  # noqa: E402

from .strangers import Mixed, SwingUp  # noqa: E402


class Failing(SwingUp):
    """Ends where it turns faster than 1 rad/s, which comes at other times in other worlds."""

    def terminated(self, env):
        return self.t.joint_velocities[:, 0].abs() > 1.0


@pytest.mark.filterwarnings("ignore:.*not within the observation space:UserWarning")
@pytest.mark.parametrize("task", [SwingUp, Mixed])
def test_gymnasium_accepts_a_single_environment(task):
    """Gymnasium's own checker: spaces, seeds, determinism, infos."""
    env = envs.SingleEnv(task(), render_mode=None)
    check_env(env, skip_render_check=True, skip_close_check=True)
    env.close()


def test_a_single_environment_is_the_first_of_a_batch():
    """Same seed, same bits."""
    single, batch = envs.SingleEnv(SwingUp(), seed=5), envs.VectorEnv(SwingUp(), 3, seed=5, threads=1)
    first, many = single.reset()[0], batch.reset()[0]
    np.testing.assert_array_equal(first, many[0])
    for _ in range(10):
        first = single.step(np.ones(1, dtype=np.float32))[0]
        many = batch.step(np.ones((3, 1), dtype=np.float32))[0]
        np.testing.assert_array_equal(first, many[0])
    single.close()
    batch.close()


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_next_step_autoreset_is_that_of_gymnasium(library):
    """After the end the next step ignores its action, gives reward 0 and the first observation."""
    env = envs.VectorEnv(Failing(), 4, library=library, threads=1)
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert env.observation_space.shape == (4, 3)
    env.reset(seed=2)
    ended = np.zeros(4, dtype=bool)
    resets = 0
    for _ in range(80):
        actions = env.action_space.sample()
        observations, rewards, terminated, truncated, _ = env.step(
            actions if library == "numpy" else torch.from_numpy(actions)
        )
        assert isinstance(observations, np.ndarray if library == "numpy" else torch.Tensor)
        rewards, terminated, truncated = (np.asarray(part) for part in (rewards, terminated, truncated))
        assert (rewards[ended] == 0.0).all()
        assert not (terminated | truncated)[ended].any()
        resets += int(ended.sum())
        ended = terminated | truncated
    assert resets > 4
    env.close()


def test_same_step_autoreset_gives_what_was_seen_last():
    """`final_obs` of those that ended is not the observation of the new episode."""
    env = envs.VectorEnv(Failing(), 4, autoreset_mode="same_step", threads=1)
    env.reset(seed=2)
    seen = 0
    for _ in range(40):
        observations, _, terminated, truncated, info = env.step(np.ones((4, 1), dtype=np.float32))
        ended = terminated | truncated
        if ended.any():
            seen += 1
            np.testing.assert_array_equal(info["_final_obs"], ended)
            assert (info["final_obs"][ended] != observations[ended]).any()
            np.testing.assert_array_equal(info["final_obs"][~ended][:, :2], observations[~ended][:, :2])
    assert seen
    env.close()


def test_without_autoreset_an_ended_environment_has_to_be_reset():
    """A step of one that has ended is an error; a mask resets it."""
    env = envs.VectorEnv(SwingUp(), 3, autoreset_mode=AutoresetMode.DISABLED, threads=1)
    env.reset(seed=1)
    for _ in range(30):
        _, _, terminated, truncated, _ = env.step(np.zeros((3, 1), dtype=np.float32))
    ended = terminated | truncated
    assert ended.all()
    with pytest.raises(RuntimeError, match="environment 0 has ended, and autoreset is disabled"):
        env.step(np.zeros((3, 1), dtype=np.float32))
    env.reset(options={"reset_mask": ended})
    env.step(np.zeros((3, 1), dtype=np.float32))
    env.close()
    with pytest.raises(ValueError, match="autoreset_mode is 'sometimes'"):
        envs.VectorEnv(SwingUp(), 1, autoreset_mode="sometimes")


class Noting(Failing):
    """Notes in which state each episode of each environment ends."""

    def setup(self, env):
        super().setup(env)
        self.ends = [[] for _ in range(env.env_count)]

    def finish(self, env, mask):
        assert mask.dtype == torch.bool
        for k in mask.nonzero()[:, 0].tolist():
            self.ends[k].append((float(self.t.joint_positions[k, 0]), int(env.episode_steps[k])))


ENDS = 3


def ends_of(how: str) -> list[list[tuple[float, int]]]:
    """Return the first ends of two environments that are reset in some way."""
    task, ones = Noting(), np.ones((2, 1), dtype=np.float32)
    if how == "single":
        single = envs.SingleEnv(task, seed=2)
        for _ in range(ENDS):
            single.reset()
            done = False
            while not done:
                _, _, terminated, truncated, _ = single.step(ones[0])
                done = terminated or truncated
        single.close()
        return task.ends
    env = (
        envs.Environment(task, 2, seed=2, threads=1, reset_done=how == "at once")
        if how in ("at once", "by hand", "late")
        else envs.VectorEnv(task, 2, seed=2, threads=1, autoreset_mode=how)
    )
    env.reset()
    for step in range(1, 120):
        result = env.step(ones)
        if how == "disabled" and (result[2] | result[3]).any():
            env.reset(options={"reset_mask": result[2] | result[3]})
        if how == "by hand" or (how == "late" and step % 40 == 0):
            env.reset(env.ended)
    env.close()
    return task.ends


@pytest.mark.parametrize("how", ["by hand", "late", "next_step", "same_step", "disabled", "single"])
def test_a_task_is_told_of_the_end_of_each_episode_once_in_its_final_state(how):
    """Curricula see the same states to the bit, however environments are reset after an end."""
    expected, found = ends_of("at once"), ends_of(how)
    count = 2 if how == "late" else ENDS
    assert min(steps for ends in expected for _, steps in ends) < 30  # some fail before their time is over
    for first, second in zip(expected, found, strict=False):
        assert len(first) >= ENDS
        assert second[:count] == first[:count]
    if how == "late":
        assert {len(ends) for ends in found} == {3}  # 40, 80 and 119 steps; not once for each of them
    if how == "single":
        assert len(found[0]) == ENDS


def test_a_single_environment_that_has_ended_says_how_it_goes_on():
    """It has no mask to reset by."""
    env = envs.SingleEnv(SwingUp())
    env.reset()
    ended = False
    while not ended:
        ended = env.step(np.zeros(1, dtype=np.float32))[3]
    with pytest.raises(
        RuntimeError, match=r"^SingleEnv\.step: the episode has ended\. Call reset\(\) first\.$"
    ):
        env.step(np.zeros(1, dtype=np.float32))
    env.reset()
    env.step(np.zeros(1, dtype=np.float32))
    env.close()


def test_a_mask_in_the_first_reset_leaves_the_others_in_their_first_episode():
    """Those left out are at its beginning already."""
    env = envs.VectorEnv(SwingUp(), 3, seed=4, threads=1)
    first = env.reset(options={"reset_mask": np.array([True, False, False])})[0]
    assert env.env.episodes.tolist() == [1] * 3
    np.testing.assert_array_equal(first, env.reset(seed=4)[0])
    env.step(np.ones((3, 1), dtype=np.float32))
    with pytest.raises(ValueError, match=r"seed is 4, .* leaves out 2 of 3"):
        env.reset(seed=4, options={"reset_mask": np.array([True, False, False])})
    env.reset(options={"reset_mask": np.array([True, False, False])})
    assert env.env.episodes.tolist() == [2, 1, 1]
    env.close()


def test_pictures_are_small_and_quick_unless_asked_otherwise():
    """Pictures of every adapter take the options of `draw`; those that mean nothing are refused."""
    wide = {"size": (64, 48), "azimuth": 1.0}
    with pytest.raises(TypeError, match=r"no option 'sample'\. Did you mean 'samples'"):
        envs.VectorEnv(SwingUp(), 1, render_mode="rgb_array", render_options={"sample": 1})
    with pytest.raises(TypeError, match="no option 'worlds'"):
        envs.SingleEnv(SwingUp(), render_mode="rgb_array", render_options={"worlds": [0]})
    with pytest.raises(ValueError, match="of no use without render_mode"):
        envs.SingleEnv(SwingUp(), render_options=wide)
    single = envs.SingleEnv(SwingUp(), render_mode="rgb_array")
    single.reset()
    assert single.render().shape == (360, 480, 3)
    np.testing.assert_array_equal(single.render(), single.env.render(size=(480, 360), samples=1))
    single.close()
    batch = envs.VectorEnv(SwingUp(), 2, threads=1, render_mode="rgb_array", render_options=wide)
    batch.reset()
    pictures = batch.render()
    assert [picture.shape for picture in pictures] == [(48, 64, 3)] * 2
    np.testing.assert_array_equal(pictures[1], batch.env.render(worlds=[1], samples=1, **wide))
    batch.close()
    pytest.importorskip("stable_baselines3")
    with envs.Environment(SwingUp(), 2, threads=1) as env:
        images = envs.Sb3VecEnv(env, render_options=wide).get_images()
        assert [image.shape for image in images] == [(48, 64, 3)] * 2


def test_wrappers_of_gymnasium_work():
    """Statistics of episodes by Gymnasium's wrapper are those of the task."""
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs.VectorEnv(SwingUp(), 3, threads=1))
    env.reset(seed=0)
    lengths = []
    for _ in range(70):
        *_, info = env.step(np.zeros((3, 1), dtype=np.float32))
        if "episode" in info:
            lengths += info["episode"]["l"][info["_episode"]].tolist()
    assert lengths
    assert set(lengths) == {30}
    env.close()


def test_rsl_rl_learns_with_its_own_runner():
    """Two updates of its runner, on groups of observations."""
    runners = pytest.importorskip("rsl_rl.runners")
    env = envs.RslRlEnv(envs.Environment(Mixed(), 4, threads=1))
    config = envs.LearningConfig(steps_per_iteration=4, hidden_sizes=(8,), minibatches=2).rsl_rl(seed=0)
    config["obs_groups"]["critic"] = ["critic"]
    config["save_interval"] = 10
    runner = runners.OnPolicyRunner(env, config, log_dir=None, device="cpu")
    runner.learn(2, init_at_random_ep_len=True)
    assert runner.alg.get_policy()(env.get_observations()).shape == (4, 1)
    env.close()


def test_stable_baselines_learns():
    """Its PPO takes the environments, and its statistics know returns of episodes."""
    sb3 = pytest.importorskip("stable_baselines3")
    env = envs.Sb3VecEnv(envs.Environment(SwingUp(), 4, threads=1))
    model = sb3.PPO("MlpPolicy", env, n_steps=16, batch_size=32, n_epochs=1, device="cpu", seed=0)
    model.learn(256)
    assert len(model.ep_info_buffer) >= 4
    assert {info["l"] for info in model.ep_info_buffer} == {30}
    assert env.get_attr("action_count") == [1] * 4
    env.close()


def test_stable_baselines_cannot_call_a_task_for_some_environments_only():
    """The task is of all; only what depends on its arguments alone may be asked of one."""
    pytest.importorskip("stable_baselines3")

    class Goals(SwingUp):
        def move_goal(self, by):
            self.moved = by

        def compute_reward(self, reached, wanted, info):
            return -np.abs(reached - wanted)

    env = envs.Sb3VecEnv(envs.Environment(Goals(), 3, threads=1))
    with pytest.raises(ValueError, match=r"env_method: 'move_goal' is of the task.*indices are \[0\] of 3"):
        env.env_method("move_goal", 2.0, indices=[0])
    assert not hasattr(env.env.task, "moved")
    with pytest.raises(ValueError, match="set_attr: 'moved' is of the task"):
        env.set_attr("moved", 1.0, indices=2)
    assert env.env_method("move_goal", 2.0, indices=[0, 1, 2]) == [None] * 3
    assert env.env.task.moved == 2.0
    rewards = env.env_method("compute_reward", np.ones(5), np.zeros(5), [{}] * 5, indices=[0])
    assert len(rewards) == 1
    assert rewards[0].tolist() == [-1.0] * 5
    env.close()


def test_skrl_is_given_the_shapes_that_it_asks_for():
    """Its wrapper has the spaces, shapes and counts that its agents ask for."""
    pytest.importorskip("skrl")
    env = envs.SkrlEnv(envs.Environment(Mixed(), 4, threads=1))
    observations, _ = env.reset()
    assert observations.shape == (4, 3)
    assert env.observation_space.shape == (3,)
    assert env.state_space.shape == (3,)
    observations, rewards, terminated, truncated, _ = env.step(torch.zeros(4, 1))
    assert rewards.shape == terminated.shape == truncated.shape == (4, 1)
    assert env.state().shape == (4, 3)
    assert env.num_envs == 4
    assert env.num_agents == 1
    env.close()


def test_skrl_learns_with_its_own_trainer():
    """An update of its PPO, with its trainer's settings left alone, changes the policy."""
    pytest.importorskip("skrl")
    from skrl.agents.torch.ppo import PPO
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
    from skrl.trainers.torch import SequentialTrainer

    class Actor(GaussianMixin, Model):
        def __init__(self, **spaces):
            Model.__init__(self, **spaces)
            GaussianMixin.__init__(self)
            self.net = torch.nn.Linear(3, 1)

        def compute(self, inputs, role):
            return self.net(inputs["observations"]), {"log_std": torch.zeros(1)}

    class Critic(DeterministicMixin, Model):
        def __init__(self, **spaces):
            Model.__init__(self, **spaces)
            DeterministicMixin.__init__(self)
            self.net = torch.nn.Linear(3, 1)

        def compute(self, inputs, role):
            return self.net(inputs["states"]), {}

    env = envs.SkrlEnv(envs.Environment(Mixed(), 4, threads=1))
    spaces = {
        "observation_space": env.observation_space,
        "state_space": env.state_space,
        "action_space": env.action_space,
        "device": env.device,
    }
    models = {"policy": Actor(**spaces), "value": Critic(**spaces)}
    memory = RandomMemory(memory_size=8, num_envs=4, device=env.device)
    quiet = {"write_interval": 0, "checkpoint_interval": 0}
    settings = {"rollouts": 8, "learning_epochs": 1, "experiment": quiet}
    agent = PPO(models=models, memory=memory, cfg=settings, **spaces)
    before = models["policy"].net.weight.detach().clone()
    trainer = SequentialTrainer(
        env=env, agents=agent, cfg={"timesteps": 16, "close_environment_at_exit": False}
    )
    trainer.train()
    assert not torch.equal(before, models["policy"].net.weight)
    assert env.render() is None
    assert isinstance(env.unwrapped, envs.Environment)
    env.close()


def test_environments_that_do_not_reset_themselves_are_refused():
    """The message says how to make them."""
    for name, adapter in (("rsl_rl", "RslRlEnv"), ("stable_baselines3", "Sb3VecEnv"), ("skrl", "SkrlEnv")):
        pytest.importorskip(name)
        with (
            envs.Environment(SwingUp(), 1, reset_done=False, threads=1) as env,
            pytest.raises(ValueError, match="without reset_done=False"),
        ):
            getattr(envs, adapter)(env)
