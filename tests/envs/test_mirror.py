"""A robot with two equal sides does in the mirror what it does: physics, observations and actions agree."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pluriverse import envs  # noqa: E402
from pluriverse.envs.mirror import Reflection, mirrored_joints  # noqa: E402
from pluriverse.envs.tasks.velocity import VelocityTask  # noqa: E402

# Both sides differ by the rounding of single precision, which contacts make larger within these steps.
TOLERANCE = 5e-3


def run_both_ways(task: envs.Task, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what was observed under actions, mirrored, and what was observed under mirrored actions."""
    task.randomization = []
    generator = torch.Generator().manual_seed(3)
    with envs.Environment(task, 2, threads=1, reset_done=False) as env:
        observations = env.reset()
        mirror = task.mirror(env)
        reflect_action, reflect = mirror.actions.prepared("cpu"), mirror.observations.prepared("cpu")
        assert torch.equal(reflect(reflect(observations)), observations)
        task.commands[:] = torch.tensor([[0.5, 0.2, 0.3], [0.5, -0.2, -0.3]])
        for _ in range(steps):
            action = 0.5 * torch.randn((1, task.action_count), generator=generator)
            observations = env.step(torch.cat([action, reflect_action(action)])).observations
    return reflect(observations[:1])[0], observations[1]


def test_puli_does_in_the_mirror_what_it_does():
    """Equal to mirrored actions are mirrored motions, under feet that touch the ground."""
    expected, found = run_both_ways(VelocityTask("puli"), 8)
    assert expected.abs().max() > 0.5
    torch.testing.assert_close(found, expected, rtol=0.0, atol=TOLERANCE)


def test_g1_steps_in_the_mirror_half_a_period_later(robot_assets):
    """With the clock half a period ahead in the mirror, targets of joints are mirrored too."""
    task = envs.make_task("g1-walk", asset_roots=[robot_assets])
    task.randomization = []
    with envs.Environment(task, 2, threads=1) as env:
        env.reset()
        joints = task.mirror(env).actions.prepared("cpu")
        half = round(0.5 * task.gait.period / env.step_seconds)
        assert half * env.step_seconds == pytest.approx(0.5 * task.gait.period, abs=env.step_seconds)
        task.gait.period = 2.0 * half * env.step_seconds
        task.commands[:] = torch.tensor([[0.5, 0.2, 0.0], [0.5, -0.2, 0.0]])
        env.episode_steps.copy_(torch.tensor([3, 3 + half]))
        task.act(env, torch.zeros(env.actions.shape))
        offsets = (task.reference - task.home)[:, task.moved]
    assert offsets.abs().max() > 0.1
    torch.testing.assert_close(offsets[1], joints(offsets[:1])[0], rtol=0.0, atol=1e-4)


def test_a_robot_without_two_sides_is_named():
    """One leg alone has no counterpart; the message says which joint, and what to do."""
    task = VelocityTask("puli")
    with envs.Environment(task, 1, threads=1) as env:
        body_q = env.simulation.state.body_q.numpy()
        leg = task.robot.joint_names[:3]
        with pytest.raises(ValueError, match=rf"joint '{leg[0]}' has no counterpart.*symmetric"):
            mirrored_joints(env.model, body_q, leg)


def test_reflections_are_joined_and_cut():
    """Components keep their partners; one without its partner is an error."""
    whole = Reflection.signed(1.0, -1.0) + Reflection((1, 0), (1.0, -1.0))
    assert whole.source == (0, 1, 3, 2)
    values = torch.arange(4.0)[None]
    assert whole.prepared("cpu")(values).tolist() == [[0.0, -1.0, 3.0, -2.0]]
    assert whole.keep([2, 3]).source == (1, 0)
    with pytest.raises(ValueError, match="component 2 is kept without its counterpart"):
        whole.keep([0, 2])


def test_a_task_that_has_no_mirror_cannot_be_trained_with_one():
    """The message names the task and the method."""
    pytest.importorskip("rsl_rl")
    config = envs.LearningConfig(env_count=2, steps_per_iteration=2, hidden_sizes=(4,), symmetric=True)
    with (
        envs.Environment(envs.make_task("cartpole"), 2, threads=1) as env,
        pytest.raises(ValueError, match=r"CartpoleTask does not say.*mirror\(self, env\)"),
    ):
        envs.Trainer(env, config)


def test_training_counts_what_both_sides_experienced():
    """With symmetric=True a policy comes closer to its own mirror image than without."""
    pytest.importorskip("rsl_rl")
    asymmetry = {}
    for symmetric in (False, True):
        config = envs.LearningConfig(
            env_count=8, steps_per_iteration=8, hidden_sizes=(16,), minibatches=2, symmetric=symmetric
        )
        with envs.Environment(VelocityTask("puli"), 8, seed=1, threads=1) as env:
            trainer = envs.Trainer(env, config)
            trainer.train(15)
            mirror = env.task.mirror(env)
            seen = trainer.ppo.get_policy()
            observations = env.reset()
            reflected = mirror.observations.prepared("cpu")(observations)
            with torch.inference_mode():
                rows = trainer._adapter.get_observations().clone()
                rows["policy"] = observations
                actions = seen(rows).clone()
                rows["policy"] = reflected
                other = seen(rows)
            difference = mirror.actions.prepared("cpu")(actions) - other
            asymmetry[symmetric] = float(np.abs(difference.numpy()).mean())
    assert asymmetry[True] < asymmetry[False]
