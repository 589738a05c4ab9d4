"""An environment that is brought back goes on with the bits of the one that was saved."""

from collections import deque

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pluriverse import envs  # noqa: E402
from pluriverse.envs.snapshot import restore_environment, save_environment  # noqa: E402

from .strangers import Mixed, SwingUp  # noqa: E402


class Counter:
    """Something of the user's own that a task keeps."""

    def __init__(self):
        self.calls = 0
        self.sums = {}


class Remembering(SwingUp):
    """Keeps state in all the ways in which tasks of strangers do."""

    def setup(self, env):
        super().setup(env)
        self.last = torch.zeros(env.env_count, 1)
        self.first_column = self.last[:, 0]  # a view
        self.history = deque([torch.zeros(env.env_count, 1)] * 3, maxlen=3)
        self.generator = np.random.default_rng()
        self.counter = Counter()
        self.shape = (env.env_count, [1, 2])
        self.log = print

    def act(self, env, actions):
        noise = torch.tensor(self.generator.normal(size=actions.shape), dtype=torch.float32)
        super().act(env, actions + 0.1 * noise + 0.1 * torch.rand(1) + 0.1 * self.history[0])
        self.previous = self.last  # the same object under two names
        self.last[:] = actions
        self.history.append(actions.clone())
        self.mean = actions.mean(dim=1)  # made anew in every step
        self.counter.calls += 1
        self.counter.sums[self.counter.calls % 4] = float(actions.sum())

    def observe(self, env):
        seen = super().observe(env)
        total = sum(self.counter.sums.values()) + self.counter.calls
        extra = self.first_column + getattr(self, "mean", 0.0) + getattr(self, "previous", self.last)[:, 0]
        return torch.cat([seen, (extra + total).unsqueeze(1)], dim=1)


def go_on(env, begin, count):
    seen = []
    for step in range(begin, begin + count):
        actions = torch.tensor(np.random.default_rng(step).uniform(-1, 1, env.actions.shape)).float()
        result = env.step(actions)
        seen += [result.observations, result.rewards, result.terminated]
    return [part["policy"] if isinstance(part, dict) else part for part in seen]


@pytest.mark.parametrize(
    "make", [Remembering, Mixed, lambda: envs.make_task("puli-flat"), lambda: envs.make_task("turn")]
)
def test_an_environment_that_is_brought_back_goes_on_with_the_same_bits(make):
    """Another copy, made in the same way, continues after episodes have ended and begun."""
    with envs.Environment(make(), 4, seed=1, threads=1) as env:
        env.reset(seed=5)
        go_on(env, 0, 40)
        saved = save_environment(env)
        expected = go_on(env, 40, 40)
    with envs.Environment(make(), 4, seed=1, threads=1) as other:
        other.reset()
        other.step(torch.zeros_like(other.actions))
        restore_environment(other, saved)
        for place, (first, second) in enumerate(zip(expected, go_on(other, 40, 40), strict=True)):
            assert torch.equal(first, second), place
        if isinstance(other.task, Remembering):
            assert other.task.first_column.data_ptr() == other.task.last.data_ptr()
            assert other.task.previous is other.task.last


def test_what_cannot_be_brought_back_is_named():
    """Memory of the simulation that a task takes only while it acts is not found in a new copy."""

    class Late(SwingUp):
        def act(self, env, actions):
            super().act(env, actions)
            self.late = self.t.joint_positions[:, 0]

    with envs.Environment(Late(), 2, threads=1) as env:
        env.reset()
        env.step(torch.zeros(2, 1))
        saved = save_environment(env)
    with envs.Environment(Late(), 2, threads=1) as other:
        other.reset()
        with pytest.raises(RuntimeError, match=r"Late\.late shows memory of the simulation"):
            restore_environment(other, saved)


def test_an_episode_that_had_ended_has_ended_where_it_is_brought_back():
    """The environment waits for a reset, and its end is not told twice."""

    class Told(SwingUp):
        def setup(self, env):
            super().setup(env)
            self.count = 0

        def finish(self, env, mask):
            self.count += int(mask.sum())

    with envs.Environment(Told(), 2, threads=1, reset_done=False) as env:
        env.reset()
        env.episode_steps[1] = env.max_episode_steps - 1
        env.step(torch.zeros(2, 1))
        saved = save_environment(env)
    with envs.Environment(Told(), 2, threads=1, reset_done=False) as other:
        other.reset()
        restore_environment(other, saved)
        assert other.ended.tolist() == [False, True]
        other.step(torch.zeros(2, 1))
        assert other.task.count == 1
