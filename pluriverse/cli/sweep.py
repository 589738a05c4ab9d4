"""`pluriverse sweep`: run a scene with many values of its parameters, over workers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from pluriverse.cli.console import collected_warnings, errors, fail, output, quiet_warp, reported_errors
from pluriverse.cli.options import SweepOptions
from pluriverse.envs.own_modules import load_own_module
from pluriverse.scene.errors import SapSceneLoaderError
from pluriverse.scene.sweep_file import read_sweep_file

EXIT_CLUSTER = 4
"""Exit code: the cluster cannot be used, or work failed on it."""
# Largest number of rows shown in the terminal; the table has them all.
ROW_COUNT_SHOWN = 12


def run_sweep(file: str, options: SweepOptions) -> None:
    """Do a sweep with a progress bar, and show the first rows of its table."""
    from pluriverse.cluster import ClusterError, sweep

    quiet_warp()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("batches"),
        TimeRemainingColumn(),
    )
    with collected_warnings() as warning_texts, reported_errors():
        plan = read_sweep_file(file, options.asset_roots)
        metrics = None if options.metrics is None else find_function(options.metrics, "--metrics")
        with Progress(*columns, console=errors, transient=True) as bar:
            task = bar.add_task(escape(Path(file).stem), total=None)
            try:
                table = sweep(
                    plan.scene,
                    plan.samples,
                    seeds=plan.seeds,
                    steps=plan.steps,
                    duration=plan.duration,
                    metrics=metrics,
                    out=options.out,
                    resume=options.resume,
                    workers=options.workers,
                    batch=options.batch,
                    threads=options.threads,
                    gpus=options.gpus,
                    device=options.device,
                    solver=options.solver.value,
                    asset_roots=options.asset_roots,
                    address=options.address,
                    progress=lambda done, total: bar.update(task, completed=done, total=total),
                )
            except (ClusterError, ImportError) as error:
                raise fail(str(error), "The sweep stopped", EXIT_CLUSTER) from error
            except SapSceneLoaderError:
                raise
            except (TypeError, KeyError) as error:
                raise ValueError(str(error.args[0])) from error
    _show(table, options.out)
    for text in warning_texts:
        output.print(f"[yellow]warning:[/yellow] {escape(text)}", highlight=False)


def find_function(name: str, what: str) -> Callable[..., Any]:
    """Return a function given as `module:function`; modules of the working directory and files are found too.

    Raises:
        ValueError: If there is none.
    """
    module_name, _, function_name = name.partition(":")
    if not function_name:
        raise ValueError(f"{what} is {name!r}, but is written as module:function")
    try:
        module = load_own_module(module_name)
        function = getattr(module, function_name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{what} {name!r} cannot be had: {error}") from error
    if not callable(function):
        raise ValueError(f"{what} {name!r} is a {type(function).__name__}, but must be a function")
    # Workers may be on machines that do not have the file: send the function itself.
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(module)
    return function


def _show(table: Any, out: Path) -> None:
    rows = table.to_pylist()
    shown = Table(title=f"{len(rows):,} runs", title_justify="left")
    failed = sum(1 for row in rows if row["error"])
    # Columns that only report success or repeat the number of the run are not shown.
    quiet = ("sample", "seed", "frozen", "unconverged_steps", "truncated_steps", "error")
    names = [
        name
        for name in table.column_names
        if name not in quiet or (name != "sample" and any(row[name] for row in rows))
    ]
    for name in names:
        shown.add_column(escape(name))
    for row in rows[:ROW_COUNT_SHOWN]:
        shown.add_row(*(escape(_text(row[name])) for name in names))
    output.print(shown)
    if len(rows) > ROW_COUNT_SHOWN:
        output.print(f"and {len(rows) - ROW_COUNT_SHOWN:,} more")
    if failed:
        output.print(f"[yellow]{failed:,} runs failed; the column 'error' says why[/yellow]")
    output.print(f"Rows are in {out}, as Parquet.", highlight=False)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
