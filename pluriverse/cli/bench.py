"""`pluriverse bench`: how fast a scene steps, over numbers of worlds."""

import statistics

from rich.box import SIMPLE_HEAD
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from pluriverse.cli.console import collected_warnings, errors, output, reported_errors
from pluriverse.cli.options import BenchOptions
from pluriverse.cli.session import open_session

# A measurement this long [s] is far above the clock's resolution and averages over the scheduler's slices.
MEASUREMENT_TIME = 1.0
# Steps before the first measurement; they warm caches up and tell how many steps fill the time.
WARM_UP_STEP_COUNT = 10


def bench_scene(name: str, options: BenchOptions) -> None:
    """Measure a scene with each number of worlds and show a table."""
    table = Table(
        title=f"{escape(name)}: median of {options.repeats}",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
    )
    for title in ("worlds", "steps", "world-steps/s", "real time", "ms/step"):
        table.add_column(title, justify="right")
    for title in ("contacts", "newton", "prepare"):
        table.add_column(title, justify="right", style="dim")
    live = Live(table, console=errors, transient=True)
    with collected_warnings() as warning_texts, reported_errors(), live:
        for count in options.world_counts():
            table.add_row(*_measure(name, count, options))
            live.refresh()
    output.print(table)
    for text in warning_texts:
        output.print(f"[yellow]warning:[/yellow] {escape(text)}", highlight=False)


def _measure(name: str, world_count: int, options: BenchOptions) -> tuple[str, ...]:
    """Return a row of the table."""
    session = open_session(
        name,
        worlds=world_count,
        dt=options.dt,
        device=options.device,
        solver=options.solver,
        threads=options.threads,
        strict=None,
        asset_roots=options.asset_roots,
    )
    simulation = session.simulation
    simulation.step(WARM_UP_STEP_COUNT)
    report = simulation.report()
    frames = options.frames or max(
        1, int(MEASUREMENT_TIME * WARM_UP_STEP_COUNT / max(report.wall_time, 1e-9))
    )
    speeds: list[float] = []
    for _ in range(options.repeats):
        # Each measurement covers the same motion.
        simulation.reset()
        simulation.step(frames)
        report = simulation.report()
        speeds.append(report.world_steps_per_second)
    simulation.close()
    speed = statistics.median(speeds)
    return (
        f"{world_count:,}",
        f"{frames:,}",
        f"{speed:,.0f}",
        f"{speed * simulation.dt:,.1f}",
        f"{1e3 * world_count / speed:.4g}",
        f"{report.contact_count_mean:.1f}",
        f"{report.iteration_count_mean:.2f}",
        f"{session.load_time + session.prepare_time:.2f} s",
    )
