"""`pluriverse run`: step a scene and print a report."""

import time
from typing import Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from pluriverse.cli.console import EXIT_SIMULATION, collected_warnings, errors, output, reported_errors
from pluriverse.cli.options import RunOptions
from pluriverse.cli.session import Session, open_session

# Wall time between two updates of the progress bar [s]: short enough to look smooth, long enough that drawing
# costs nothing.
PROGRESS_INTERVAL = 0.1
# The simulation records blocks of up to 16 steps; multiples of it replay them and nothing else.
BATCH_STEP_COUNT = 16


def run_scene(name: str, options: RunOptions) -> None:
    """Step a scene, with a progress bar and a final table."""
    with collected_warnings() as warning_texts, reported_errors():
        session = open_session(
            name,
            worlds=options.worlds,
            dt=options.dt,
            device=options.device,
            solver=options.solver,
            threads=options.threads,
            strict=options.strict,
            asset_roots=options.asset_roots,
        )
        frame_count = options.frame_count(session.simulation.dt)
        observers = _make_observers(session, options, frame_count)
        step_time = _step(session, frame_count, observers)
        try:
            report = session.simulation.report()
        finally:
            written = [observer.finish() for observer in observers]
        session.simulation.close()
    # The rest of the wall time is spent on recording.
    prepare_time = session.prepare_time + max(0.0, step_time - report.wall_time)
    _show_summary(session, report, prepare_time, warning_texts)
    for text in written:
        output.print(text, highlight=False)
    if report.frozen_worlds:
        raise typer.Exit(EXIT_SIMULATION)


def _make_observers(session: Session, options: RunOptions, frame_count: int) -> list[Any]:
    """Return the observers of the state after every step."""
    observers: list[Any] = []
    if options.record is not None:
        from pluriverse.cli.recording import RunFile, Trajectory, is_recording

        kind = RunFile if is_recording(options.record) else Trajectory
        observers.append(kind(session, options.record, frame_count))
    if options.plot is not None:
        from pluriverse.cli.plot import Plot

        observers.append(Plot(session, options.plot, frame_count))
    if options.picture is not None or options.video is not None:
        from pluriverse.cli.pictures import Picture, Video, parse_size

        size = parse_size(options.size)
        if options.picture is not None:
            observers.append(Picture(session, options.picture, size))
        if options.video is not None:
            observers.append(Video(session, options.video, size))
    if options.view:
        from pluriverse.cli.view import Watch

        observers.append(Watch(session))
    return observers


def _step(session: Session, frame_count: int, observers: list[Any]) -> float:
    """Make all steps and return the time spent in `Simulation.step` [s]."""
    simulation = session.simulation
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps"),
        TimeRemainingColumn(),
    )
    by_step = any(observer.IS_ASKED_EVERY_STEP for observer in observers)
    step_time = 0.0
    done, batch = 0, BATCH_STEP_COUNT
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task(
            f"{session.scene.name}, {session.scene.model.world_count} worlds", total=frame_count
        )
        while done < frame_count:
            batch = min(batch, frame_count - done)
            start = time.perf_counter()
            for count in [1] * batch if by_step else [batch]:
                step_begin = time.perf_counter()
                session.scene.play(simulation, count)
                step_time += time.perf_counter() - step_begin
                for observer in observers:
                    observer.observe()
            spent = time.perf_counter() - start
            done += batch
            progress.update(task, completed=done)
            # Grow slowly, since the first steps also warm caches up.
            target = min(4.0, PROGRESS_INTERVAL / max(spent, 1e-9)) * batch
            batch = BATCH_STEP_COUNT * max(1, int(target / BATCH_STEP_COUNT))
    return step_time


def _show_summary(session: Session, report: Any, prepare_time: float, warning_texts: list[str]) -> None:
    scene, simulation = session.scene, session.simulation
    table = Table(
        title=f"{escape(scene.name)} after {simulation.time:.6g} s", show_header=False, title_justify="left"
    )
    table.add_column(style="bold")
    table.add_column()
    table.add_row("Worlds", f"{report.world_count:,}{_kinds(scene)}")
    threads = f", {session.threads} thread{'s' if session.threads > 1 else ''}"
    table.add_row("Device", f"{scene.model.device}{threads if scene.model.device.is_cpu else ''}")
    table.add_row("Steps", f"{report.step_count:,} of {simulation.dt:.6g} s")
    table.add_row("Loading", f"{session.load_time:.2f} s")
    table.add_row("Kernels and recording", f"{prepare_time:.2f} s")
    table.add_row("Stepping", f"{report.wall_time:.3f} s")
    table.add_row("World-steps per second", f"{report.world_steps_per_second:,.0f}")
    table.add_row("Real-time ratio", f"{report.real_time_ratio:,.1f} (all worlds together)")
    table.add_row(
        "Contacts per world", f"mean {report.contact_count_mean:.1f}, most {report.contact_count_peak}"
    )
    table.add_row(
        "Newton iterations", f"mean {report.iteration_count_mean:.2f}, most {report.iteration_count_peak}"
    )
    table.add_row("Truncated world-steps", _count(report.truncated_step_count))
    table.add_row("Unconverged world-steps", _count(report.unconverged_step_count))
    table.add_row("World-steps with approximate friction", f"{report.approximated_step_count:,}")
    frozen = report.frozen_worlds
    shown = ", ".join(str(world) for world in frozen[:8]) + (", ..." if len(frozen) > 8 else "")
    table.add_row("Frozen worlds", f"[red]{len(frozen):,}[/red] ({shown})" if frozen else "0")
    output.print(table)
    for feature in scene.unsupported_features:
        output.print(f"[yellow]left out:[/yellow] {escape(feature)}", highlight=False)
    for text in warning_texts:
        output.print(f"[yellow]warning:[/yellow] {escape(text)}", highlight=False)


def _kinds(scene: Any) -> str:
    if len(scene.kind_names) == 1:
        return ""
    counts = [scene.kind_of_world.count(kind) for kind in range(len(scene.kind_names))]
    texts = [f"{count} {name}" for name, count in zip(scene.kind_names, counts, strict=True)]
    return f" ({escape(', '.join(texts))})"


def _count(number: int) -> str:
    return f"[yellow]{number:,}[/yellow]" if number else "0"
