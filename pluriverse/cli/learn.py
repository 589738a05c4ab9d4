"""`pluriverse train`, `play` and `evaluate`: train a policy, show it, and measure it."""

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pluriverse.cli.console import collected_warnings, errors, fail, output, quiet_warp, reported_errors
from pluriverse.cli.options import (
    FILM_DURATION,
    EvaluateOptions,
    PlayOptions,
    PolicyOptions,
    TrainOptions,
)
from pluriverse.cli.pictures import parse_size, save_film

EXIT_MISSING = 5
"""Exit code: an optional library is not installed."""
EXIT_TASK = 1
"""Exit code: the task, or a value given on the command line, is wrong."""
# Columns of the curve on the terminal.
CURVE_WIDTH = 60
# Seconds between two lines where there is no terminal to draw on.
LINE_INTERVAL = 10.0
_BARS = "▁▂▃▄▅▆▇█"


@contextmanager
def _task_errors() -> Any:
    """Show what users can mend as a panel."""
    from pluriverse.envs.own_modules import OwnModuleError

    try:
        with reported_errors():
            yield
    except OwnModuleError as error:
        raise fail(str(error), "The task cannot be used", EXIT_TASK) from error
    except ImportError as error:
        raise fail(str(error), "A library is missing", EXIT_MISSING) from error
    except (KeyError, TypeError, NotImplementedError) as error:
        text = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
        raise fail(text, "The task cannot be used", EXIT_TASK) from error


def list_tasks() -> None:
    """Print the tasks that come with the package."""
    from pluriverse.envs.registry import TASKS

    table = Table(show_header=False, box=None)
    for entry in TASKS.values():
        needs = f"[dim]needs the files of {entry.robot}[/dim]" if entry.robot else ""
        table.add_row(f"[bold]{entry.name}[/bold]", escape(entry.summary), needs)
    output.print(table)


def train(name: str, options: TrainOptions) -> None:
    """Learn a task, with its curve on the terminal, and write the policy at the end."""
    # Threads of OpenMP that wait for work would keep the cores busy that step the worlds. It reads this once,
    # when PyTorch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    quiet_warp()
    with collected_warnings() as warning_texts, _task_errors():
        from pluriverse.envs.optional import import_optional

        torch = import_optional("torch", extra="learn", purpose="Training and policies")
        import_optional("rsl_rl", extra="learn", purpose="Training and policies")
        from pluriverse.envs.environment import Environment
        from pluriverse.envs.learning.trainer import CHECKPOINT, CURVE, POLICY, Trainer
        from pluriverse.envs.registry import find_task, make_task

        if options.minutes is not None and not (options.minutes > 0.0 and math.isfinite(options.minutes)):
            raise ValueError(f"--minutes is {options.minutes}, but must be a positive number.")
        entry = find_task(name)
        config = entry.config
        if options.envs is not None:
            config = replace(config, env_count=options.envs)
        if options.iterations is not None:
            config = replace(config, iterations=options.iterations)
        folder = options.out or Path("runs") / name.replace(":", "_").replace("/", "_")
        if (folder / CHECKPOINT).exists() and not options.resume:
            raise ValueError(
                f"'{folder}' holds a run already. Go on with it by --resume, or name another folder by --out."
            )
        if options.learning_threads is not None:
            torch.set_num_threads(options.learning_threads)
        task = make_task(name, **_arguments(entry, options.asset_roots, None))
        env = Environment(
            task, config.env_count, seed=options.seed, device=options.device, threads=options.threads
        )
        description = describe(name, env)
        trainer = Trainer(
            env,
            config,
            folder=folder,
            description=description,
            resume=options.resume,
            begin_with=options.begin_with,
        )
        if not options.resume and (folder / CURVE).exists():
            (folder / CURVE).unlink()
        output.print(
            f"{name}: {env.env_count} environments on {env.device}, {env.simulation.threads} simulation and "
            f"{torch.get_num_threads()} learning threads; files in '{folder}'",
            highlight=False,
        )
        if trainer.iteration:
            output.print(f"going on after update {trainer.iteration}", highlight=False)
        writer = _tensorboard(folder) if options.tensorboard else None
        interrupted = _run(trainer, options, writer)
        trainer.save()
        env.close()
    for text in warning_texts:
        errors.print(f"[yellow]warning:[/yellow] {escape(text)}", highlight=False)
    ending = f"interrupted; go on by --resume --out {folder}. " if interrupted else ""
    output.print(f"{ending}policy: {folder / POLICY}", highlight=False)


def _run(trainer: Any, options: TrainOptions, writer: Any) -> bool:
    """Learn until the end or Ctrl-C; return whether it was interrupted."""
    curve = [point["reward"] for point in _old_curve(trainer)]
    show = _Display(trainer.config.iterations, curve)

    def on_progress(progress: Any) -> None:
        show.add(progress)
        if writer is not None:
            write_scalars(writer, progress)

    seconds = None if options.minutes is None else 60.0 * options.minutes
    try:
        with show:
            trainer.train(on_progress=on_progress, max_seconds=seconds)
    except KeyboardInterrupt:
        return True
    finally:
        if writer is not None:
            writer.close()
    return False


def write_scalars(writer: Any, progress: Any) -> None:
    """Write the figures of an update for TensorBoard."""
    step = progress.env_steps
    for name in ("reward", "episode_return", "episode_seconds", "action_std"):
        value = getattr(progress, name)
        if math.isfinite(value):
            writer.add_scalar(f"train/{name}", value, step)
    writer.add_scalar("time/env_steps_per_second", step / max(progress.seconds, 1e-9), step)
    writer.add_scalar("time/simulate_share", progress.simulate_share, step)
    writer.add_scalar("time/learn_share", progress.learn_share, step)
    for name, value in progress.metrics.items():
        writer.add_scalar(name, value, step)


def _tensorboard(folder: Path) -> Any:
    from pluriverse.envs.optional import import_optional

    import_optional("tensorboard", extra="learn", purpose="Logs for TensorBoard")
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder / "tensorboard"))


def _old_curve(trainer: Any) -> list[dict[str, Any]]:
    from pluriverse.envs.learning.trainer import CURVE, read_curve

    if trainer.folder is None or not (trainer.folder / CURVE).exists():
        return []
    return read_curve(trainer.folder)


class _Display:
    """The reward curve and the figures of the last update, redrawn or, without a terminal, as lines."""

    def __init__(self, iterations: int, curve: list[float]):
        self._iterations, self._curve = iterations, curve
        self._live: Live | None = None
        self._last_line = 0.0

    def __enter__(self) -> "_Display":
        if output.is_terminal:
            self._live = Live(Text("compiling kernels ..."), console=output, refresh_per_second=4)
            self._live.__enter__()
        return self

    def __exit__(self, *reason: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*reason)

    def add(self, progress: Any) -> None:
        """Show an update."""
        self._curve.append(progress.reward)
        if self._live is not None:
            self._live.update(self._panel(progress))
        elif progress.iteration == self._iterations or time.monotonic() - self._last_line > LINE_INTERVAL:
            self._last_line = time.monotonic()
            output.print(
                f"update {progress.iteration}/{self._iterations}, {progress.env_steps:,} steps, "
                f"{progress.seconds:.0f} s: reward {progress.reward:.4f}, {_episodes(progress)}",
                highlight=False,
            )

    def _panel(self, progress: Any) -> Table:
        table = Table(show_header=False, box=None, title="mean reward of a step", title_justify="left")
        table.add_column(style="bold")
        table.add_column()
        table.add_row("Curve", sparkline(self._curve))
        table.add_row("Update", f"{progress.iteration:,} of {self._iterations:,}")
        table.add_row("Steps", f"{progress.env_steps:,} ({progress.env_steps / progress.seconds:,.0f}/s)")
        table.add_row("Reward", f"{progress.reward:.4f}")
        table.add_row("Episodes", _episodes(progress))
        other = 1.0 - progress.simulate_share - progress.learn_share
        table.add_row(
            "Time",
            f"{progress.seconds:.0f} s: {progress.simulate_share:.0%} simulation, "
            f"{progress.learn_share:.0%} learning, {other:.0%} policy and task",
        )
        for name, value in progress.metrics.items():
            if name.startswith("metric/"):
                table.add_row(name.removeprefix("metric/"), f"{value:.3f}")
        return table


def _episodes(progress: Any) -> str:
    """Return what is known of episodes, of which none may have ended yet."""
    if not math.isfinite(progress.episode_return):
        return "no episode has ended yet"
    return f"return {progress.episode_return:.2f}, episode {progress.episode_seconds:.1f} s"


def sparkline(values: list[float], width: int = CURVE_WIDTH) -> str:
    """Return a curve of block characters, of means over equal spans, with its least and greatest value."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return ""
    count = min(width, len(known))
    bounds = [round(k * len(known) / count) for k in range(count + 1)]
    means = [sum(known[a:b]) / (b - a) for a, b in pairwise(bounds)]
    low, high = min(means), max(means)
    span = high - low or 1.0
    bars = "".join(_BARS[round((mean - low) / span * (len(_BARS) - 1))] for mean in means)
    return f"{bars}  {low:.3g} to {high:.3g}"


def describe(name: str, env: Any) -> dict[str, Any]:
    """Return the description of the task in a checkpoint or policy."""
    task = env.task
    robots = getattr(task, "robot", None)
    return {
        "task": name,
        "dt": task.dt,
        "decimation": task.decimation,
        "action_count": int(task.action_count),
        "action_limit": float(task.action_limit),
        "action_scale": getattr(task, "action_scale", None),
        "joint_names": list(getattr(robots, "joint_names", [])),
    }


def _arguments(entry: Any, asset_roots: Sequence[Path], command: str | None) -> dict[str, Any]:
    """Return the arguments of a task that follow from options."""
    from pluriverse.envs.registry import takes_argument

    arguments: dict[str, Any] = {}
    if asset_roots and takes_argument(entry, "asset_roots"):
        arguments["asset_roots"] = tuple(asset_roots)
    if command is not None:
        if not takes_argument(entry, "command"):
            raise ValueError(
                f"--command is for tasks of walking, but '{entry.name}' takes no argument 'command'."
            )
        try:
            parts = tuple(float(part) for part in command.split(","))
        except ValueError:
            parts = ()
        if len(parts) != 3 or not all(math.isfinite(part) for part in parts):
            raise ValueError(
                f"--command is {command!r}, but must be three numbers: velocity forwards and to the left "
                "[m/s] and angular velocity [rad/s], such as 0.65,0,0."
            )
        arguments["command"] = parts
    return arguments


def _open(name: str, options: PolicyOptions) -> tuple[Any, Callable[[Any], Any]]:
    """Return an environment and the policy for it."""
    from pluriverse.envs.environment import Environment
    from pluriverse.envs.learning.policy import OnnxPolicy
    from pluriverse.envs.registry import find_task, make_task

    entry = find_task(name)
    arguments = _arguments(entry, options.asset_roots, options.command)
    path = options.policy or Path("runs") / name.replace(":", "_").replace("/", "_") / "policy.onnx"
    if path.is_dir():
        path = path / "policy.onnx"
    policy = OnnxPolicy(path)
    trained_for = policy.description.get("task")
    if trained_for not in (None, name):
        errors.print(
            f"[yellow]warning:[/yellow] '{path}' was learnt for the task '{trained_for}'", highlight=False
        )
    env = Environment(
        make_task(name, **arguments),
        options.envs,
        seed=options.seed,
        device=options.device,
        threads=options.threads,
    )
    return env, policy


def _policy_input(observations: Any) -> Any:
    policy_input = observations["policy"] if isinstance(observations, dict) else observations
    return policy_input.cpu().numpy()


def evaluate(name: str, options: EvaluateOptions) -> None:
    """Run whole episodes with the mean action of a policy, and print what they gave."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    quiet_warp()
    with collected_warnings() as warning_texts, _task_errors():
        env, policy = _open(name, options)
        figures = measure_policy(env, policy, options.episodes)
        env.close()
    table = Table(title=f"{name}: {figures['episodes']} episodes", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    for key, value in figures.items():
        if key != "episodes":
            table.add_row(key, f"{value:.4g}")
    output.print(table)
    for text in warning_texts:
        errors.print(f"[yellow]warning:[/yellow] {escape(text)}", highlight=False)
    if options.report is not None:
        options.report.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        output.print(f"figures: {options.report}", highlight=False)


def measure_policy(env: Any, policy: Callable[[Any], Any], episodes: int) -> dict[str, float]:
    """Return means over the first episodes of the environments, at least so many.

    Each environment counts with the same number of episodes, else short ones would be over-represented.

    Args:
        env: Environment.
        policy: Returns actions for observations as NumPy arrays.
        episodes: Least number of episodes.
    """
    import torch

    rounds = -(-episodes // env.env_count)
    observations = env.reset()
    returns = torch.zeros(env.env_count, device=env.device)
    lengths = torch.zeros(env.env_count, device=env.device)
    finished = torch.zeros(env.env_count, dtype=torch.int64, device=env.device)
    total_return = total_length = failures = 0.0
    sums: dict[str, float] = {}
    counted = 0.0
    while bool((finished < rounds).any()):
        result = env.step(policy(_policy_input(observations)))
        observations = result.observations
        running = finished < rounds
        returns += result.rewards * running
        lengths += running
        if env.task.metrics(env):
            counted += float(running.sum())
            for key, value in env.task.metrics(env).items():
                sums[key] = sums.get(key, 0.0) + float((value * running).sum())
        ended = (result.terminated | result.truncated) & running
        failures += float((result.terminated & running).sum())
        finished += ended
    total_return, total_length = float(returns.sum()), float(lengths.sum())
    count = rounds * env.env_count
    figures = {
        "episodes": count,
        "return": total_return / count,
        "length [s]": total_length / count * env.step_seconds,
        "ended by the task": failures / count,
    }
    return figures | {f"mean {key}": value / max(counted, 1.0) for key, value in sums.items()}


def play(name: str, options: PlayOptions) -> None:
    """Show a policy in the browser in real time, or film it."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    quiet_warp()
    with collected_warnings() as warning_texts, _task_errors():
        if options.seconds is not None and not (options.seconds > 0.0 and math.isfinite(options.seconds)):
            raise ValueError(f"--seconds is {options.seconds}, but must be a positive number.")
        if options.video is not None:
            from pluriverse.render.video import check_video_path

            check_video_path(options.video)
            size = parse_size(options.size)
        env, policy = _open(name, options)
        if options.video is not None:
            _film(env, policy, options, options.video, size)
        else:
            _show(env, policy, options)
        env.close()
    for text in warning_texts:
        errors.print(f"[yellow]warning:[/yellow] {escape(text)}", highlight=False)


def _film(
    env: Any, policy: Callable[[Any], Any], options: PlayOptions, path: Path, size: tuple[int, int]
) -> None:
    observations = env.reset()
    steps = max(1, round((options.seconds or FILM_DURATION) / env.step_seconds))
    with env.simulation.recorder() as recorder:
        for _ in range(steps):
            observations = env.step(policy(_policy_input(observations))).observations
    save_film(recorder, path, size=size, samples=options.samples)
    output.print(f"video: {path}, {recorder.frame_count} frames", highlight=False)


def _show(env: Any, policy: Callable[[Any], Any], options: PlayOptions) -> None:
    from pluriverse.cli.view import _viewer_class

    viewer = _viewer_class()(env.simulation, port=options.port, verbose=False)
    output.print(f"viewer: [link={viewer.url}]{viewer.url}[/link]; Ctrl-C ends")
    observations = env.reset()
    steps = None if options.seconds is None else round(options.seconds / env.step_seconds)
    start, done = time.perf_counter(), 0
    try:
        while steps is None or done < steps:
            observations = env.step(policy(_policy_input(observations))).observations
            viewer.sync()
            done += 1
            time.sleep(max(0.0, start + done * env.step_seconds - time.perf_counter()))
    except KeyboardInterrupt:
        pass
    viewer.close()
