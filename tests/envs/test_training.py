"""Training learns in seconds, goes on after a kill, repeats bit for bit, and needs no PyTorch later."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("rsl_rl")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from pluriverse import envs  # noqa: E402
from pluriverse.cli.learn import measure_policy, sparkline  # noqa: E402
from pluriverse.envs.learning.trainer import CHECKPOINT, CURVE, read_checkpoint, read_curve  # noqa: E402
from pluriverse.envs.registry import find_task  # noqa: E402

from .strangers import SwingUp  # noqa: E402

SMALL = envs.LearningConfig(
    env_count=8, steps_per_iteration=8, hidden_sizes=(8, 8), minibatches=2, checkpoint_interval=2
)


@pytest.fixture(autouse=True)
def _one_thread():
    """Let PyTorch use one thread, so that networks this small do not wait for others."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make_trainer(folder=None, *, seed=0, resume=False, config=SMALL) -> envs.Trainer:
    env = envs.Environment(SwingUp(), config.env_count, seed=seed, threads=1)
    return envs.Trainer(env, config, folder=folder, description={"task": "swing"}, resume=resume)


def parameters(trainer: envs.Trainer) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in trainer.ppo.get_policy().parameters()])


def test_a_pole_is_balanced_after_seconds_of_training(tmp_path):
    """Episodes without policy end within a second; after 40 updates they are worth 120 steps."""
    config = replace(find_task("cartpole").config, iterations=40)
    env = envs.Environment(envs.make_task("cartpole"), config.env_count, seed=0, threads=2)
    trainer = envs.Trainer(env, config)
    trainer.train()
    path = envs.export_policy(trainer.ppo.get_policy(), tmp_path / "policy.onnx", {"task": "cartpole"})
    env.close()
    with envs.Environment(envs.make_task("cartpole"), 32, seed=77, threads=2) as fresh:
        idle = measure_policy(fresh, lambda seen: np.zeros((len(seen), 1), dtype=np.float32), 32)
        learnt = measure_policy(fresh, envs.OnnxPolicy(path), 32)
    assert idle["return"] < 60.0
    assert learnt["return"] > 120.0
    assert learnt["length [s]"] > 2.0 * idle["length [s]"]


def test_training_repeats_bit_for_bit_with_its_seed():
    """Equal seeds give equal networks, others do not."""
    results = []
    for seed in (1, 1, 2):
        trainer = make_trainer(seed=seed)
        trainer.train(3)
        results.append(parameters(trainer))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_a_run_goes_on_after_it_was_killed(tmp_path):
    """Updates, steps, time and curve go on; what was noted after the checkpoint is taken out."""
    first = make_trainer(tmp_path)
    first.train(4)
    with open(tmp_path / CURVE, "a") as file:
        file.write('{"iteration": 5, "reward": 0.0}\n{"iterat')  # killed while it wrote
    # What has been learnt by then can be looked at.
    assert envs.OnnxPolicy(tmp_path / "policy.onnx").description["iteration"] == 4
    again = make_trainer(tmp_path, resume=True)
    assert again.iteration == 4
    assert torch.equal(parameters(first), parameters(again))
    again.train(6)
    curve = read_curve(tmp_path)
    assert [point["iteration"] for point in curve] == [1, 2, 3, 4, 5, 6]
    assert curve[-1]["env_steps"] == 6 * 8 * 8
    assert curve[-1]["seconds"] > curve[3]["seconds"]
    assert read_checkpoint(tmp_path)["description"] == {"task": "swing"}


def test_a_run_begins_with_the_networks_of_another(tmp_path):
    """Its first policy is the last one of the other run, also of another task; updates count from zero."""
    first = make_trainer(tmp_path / "first")
    first.train(2)
    env = envs.Environment(SwingUp(), SMALL.env_count, seed=5, threads=1)
    second = envs.Trainer(
        env, SMALL, folder=tmp_path / "second", description={"task": "other"}, begin_with=tmp_path / "first"
    )
    assert torch.equal(parameters(second), parameters(first))
    assert second.iteration == 0
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        envs.Trainer(env, SMALL, begin_with=tmp_path / "none")
    with pytest.raises(ValueError, match="does not fit: its networks are of other sizes"):
        envs.Trainer(env, replace(SMALL, hidden_sizes=(4, 4)), begin_with=tmp_path / "first")


def test_damaged_and_foreign_checkpoints_are_refused(tmp_path):
    """The message says what is wrong."""
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        read_checkpoint(tmp_path)
    trainer = make_trainer(tmp_path)
    trainer.train(2)
    with pytest.raises(ValueError, match="networks are of other sizes"):
        make_trainer(tmp_path, resume=True, config=replace(SMALL, hidden_sizes=(4,)))
    env = envs.Environment(SwingUp(), 8, threads=1)
    with pytest.raises(ValueError, match="checkpoint of the task 'swing', not of 'walk'"):
        envs.Trainer(env, SMALL, folder=tmp_path, description={"task": "walk"}, resume=True)
    (tmp_path / CHECKPOINT).write_bytes(b"PK nonsense")
    with pytest.raises(ValueError, match="no checkpoint, or damaged"):
        read_checkpoint(tmp_path)


def test_a_policy_as_file_gives_the_same_actions_without_pytorch(tmp_path):
    """ONNX and PyTorch agree to rounding of a few layers, for any number of environments."""
    trainer = make_trainer()
    trainer.train(2)
    actor = trainer.ppo.get_policy()
    path = envs.export_policy(actor, tmp_path / "policy.onnx", {"task": "swing"})
    policy = envs.OnnxPolicy(path)
    assert policy.description == {"task": "swing"}
    observations = trainer.env.reset()
    with torch.inference_mode():
        expected = actor(trainer._adapter._grouped(observations)).numpy()
    np.testing.assert_allclose(policy(observations.numpy()), expected, atol=1e-5)
    assert policy(observations[:1].numpy()).shape == (1, 1)
    without = (
        "import sys; sys.modules['torch'] = None; import numpy as np; from pluriverse import envs; "
        "np.save(sys.argv[3], envs.OnnxPolicy(sys.argv[1])(np.load(sys.argv[2])))"
    )
    np.save(tmp_path / "seen.npy", observations.numpy())
    arguments = [str(path), str(tmp_path / "seen.npy"), str(tmp_path / "done.npy")]
    subprocess.run([sys.executable, "-c", without, *arguments], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "done.npy"), policy(observations.numpy()))
    with pytest.raises(ValueError, match=r"shape \(8, 2\), but must have \[env, 3\]"):
        policy(observations[:, :2].numpy())
    (tmp_path / "text.onnx").write_text("no")
    with pytest.raises(ValueError, match="no ONNX file, or damaged"):
        envs.OnnxPolicy(tmp_path / "text.onnx")
    with pytest.raises(FileNotFoundError, match="there is no policy"):
        envs.OnnxPolicy(tmp_path / "none.onnx")


def test_a_curve_is_drawn_from_low_to_high():
    """Means over equal spans, the least as the lowest bar."""
    assert sparkline([float(k) for k in range(8)]).startswith("▁▂▃▄▅▆▇█")
    assert len(sparkline([0.0] * 500, 20).split()[0]) == 20
    assert sparkline([float("nan")]) == ""
