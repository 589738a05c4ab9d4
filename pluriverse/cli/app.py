"""The commands; `options` has what can be given to them.

Only what reads the command line is imported here, so that `pluriverse --help` answers at once.
"""

import atexit
import gc
from pathlib import Path
from typing import Annotated

import typer

import pluriverse
from pluriverse.cli.options import (
    AssetRootOption,
    BenchOptions,
    EvaluateOptions,
    ExportOptions,
    PlayOptions,
    RunOptions,
    SweepOptions,
    TrainOptions,
    ViewOptions,
    WorldsOption,
    flattened,
)
from pluriverse.garbage_collection import paused_collection

app = typer.Typer(
    name="pluriverse",
    help="Step many independent rigid-body worlds at once, all of them different.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

SceneArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENE", help="A scene file (YAML or JSON), the name of a bundled scene, or a robot."
    ),
]
SceneOrRecording = Annotated[
    str,
    typer.Argument(
        metavar="SCENE",
        help="A scene file (YAML or JSON), the name of a bundled scene, a robot, or a recording (.pvr).",
    ),
]
TaskArgument = Annotated[
    str, typer.Argument(metavar="TASK", help="Name of a task, or your own as module:Class or file.py:Class.")
]


def _begin_precompiling(device: str | None) -> None:
    """With an empty kernel cache, let the compiler begin while Python imports the rest.

    That a device does not exist is said later, where the scene is loaded.
    """
    if device not in (None, "cpu"):
        return
    import warp as wp

    from pluriverse.cli.console import quiet_warp
    from pluriverse.precompilation import begin_precompiling

    quiet_warp()
    begin_precompiling(wp.get_device(device), is_importing=True)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"pluriverse {pluriverse.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
@flattened
def run(scene: SceneArgument, options: RunOptions) -> None:
    """Step a scene, show the progress, and end with a summary."""
    with paused_collection():
        _begin_precompiling(options.device)
        from pluriverse.cli.run import run_scene

    run_scene(scene, options)


@app.command()
@flattened
def view(scene: SceneOrRecording, options: ViewOptions) -> None:
    """Step a scene or a robot in real time and show it in the browser, or play a recording."""
    with paused_collection():
        _begin_precompiling(options.device)
        from pluriverse.cli.view import view_scene

    view_scene(scene, options)


@app.command()
@flattened
def export(
    recording: Annotated[str, typer.Argument(metavar="RECORDING", help="A recording: run.pvr")],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="What to write: .html (a page that plays), .usd, .usda, .usdc, .mp4, .webm, .mov, .mkv, "
            ".gif, or .npz (arrays).",
        ),
    ],
    options: ExportOptions,
) -> None:
    """Write a recording as a page, a USD stage, a video or arrays."""
    from pluriverse.cli.export import export_recording

    export_recording(recording, out, options)


@app.command()
@flattened
def bench(scene: SceneArgument, options: BenchOptions) -> None:
    """Measure how fast a scene steps, over numbers of worlds."""
    with paused_collection():
        _begin_precompiling(options.device)
        from pluriverse.cli.bench import bench_scene

    bench_scene(scene, options)


@app.command()
def info(scene: SceneOrRecording, worlds: WorldsOption = None, asset_roots: AssetRootOption = []) -> None:  # noqa: B006
    """Show what a scene holds, and what of it is not supported; or what a recording holds."""
    from pluriverse.cli.info import show_scene

    show_scene(scene, worlds, asset_roots)


@app.command()
def check(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Scene files (YAML or JSON), or names of bundled scenes."),
    ],
    asset_roots: AssetRootOption = [],  # noqa: B006
    strict: Annotated[bool, typer.Option(help="Whether what is not supported makes a scene invalid.")] = True,
) -> None:
    """Say what is wrong with scene files, without stepping them."""
    from pluriverse.cli.check import check_scenes

    check_scenes(files, asset_roots, strict=strict)


@app.command()
@flattened
def sweep(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A sweep file (YAML or JSON).")],
    options: SweepOptions,
) -> None:
    """Run a scene with many values of its parameters, over processes and machines."""
    with paused_collection():
        from pluriverse.cli.sweep import run_sweep

    run_sweep(file, options)


@app.command()
def tasks() -> None:
    """List the tasks that come with the package."""
    from pluriverse.cli.learn import list_tasks

    list_tasks()


@app.command()
@flattened
def train(task: TaskArgument, options: TrainOptions) -> None:
    """Learn a task, with its curve, checkpoints, and a policy at the end."""
    _begin_precompiling(options.device)
    from pluriverse.cli.learn import train as train_task

    train_task(task, options)


@app.command()
@flattened
def evaluate(task: TaskArgument, options: EvaluateOptions) -> None:
    """Run whole episodes with a policy, and print what they gave."""
    _begin_precompiling(options.device)
    from pluriverse.cli.learn import evaluate as evaluate_policy

    evaluate_policy(task, options)


@app.command()
@flattened
def play(task: TaskArgument, options: PlayOptions) -> None:
    """Show in the browser, in real time, what a policy does; or film it."""
    _begin_precompiling(options.device)
    from pluriverse.cli.learn import play as play_policy

    play_policy(task, options)


@app.command()
def scenes() -> None:
    """List the scenes that ship with the package."""
    from pluriverse.cli.info import list_scenes

    list_scenes()


@app.command()
def schema() -> None:
    """Print the JSON Schema of scene files, for editors."""
    from pluriverse.cli.info import print_schema

    print_schema()


def main() -> None:
    """Run the command line."""
    # Python looks for unreachable cycles several times while it ends, among all that declares the kernels.
    # Nothing here waits to be freed by that, and it takes a quarter of a short run.
    atexit.register(gc.freeze)
    app()
