"""The commands and their options.

Only what reads the command line is imported here, so that `pluriverse --help` answers at once.
"""

from pathlib import Path
from typing import Annotated

import typer

import pluriverse
from pluriverse.cli.solver_choice import SolverChoice

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
DtOption = Annotated[float | None, typer.Option("--dt", help="Time step in seconds, instead of the scene's.")]
DeviceOption = Annotated[str | None, typer.Option(help="Device to step on: cpu, cuda:0, ...")]
SolverOption = Annotated[
    SolverChoice, typer.Option(help="What moves the worlds; mujoco takes no options from the scene.")
]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores if not given.")]
AssetRootOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--asset-root",
        help="A further folder that the scene may read files from; can be given several times.",
        show_default="the scene's own and the current directory",
    ),
]
StrictOption = Annotated[
    bool | None,
    typer.Option(
        "--strict/--no-strict",
        help="--strict also stops a run when a world is in trouble; --no-strict also goes on without the "
        "features of a scene that are not supported.",
        show_default="strict about the scene, not about the run",
    ),
]


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
def run(
    scene: SceneArgument,
    worlds: Annotated[
        int | None,
        typer.Option("--worlds", "--num-worlds", min=1, help="Number of worlds, instead of the scene's."),
    ] = None,
    duration: Annotated[float, typer.Option(help="Simulated time in seconds.")] = 2.0,
    frames: Annotated[
        int | None,
        typer.Option("--frames", "--steps", min=1, help="Number of steps, instead of a duration."),
    ] = None,
    dt: DtOption = None,
    device: DeviceOption = None,
    solver: SolverOption = SolverChoice.SAP,
    threads: ThreadsOption = None,
    strict: StrictOption = None,
    asset_root: AssetRootOption = None,
    record: Annotated[
        Path | None,
        typer.Option(
            help="Record the run: .pvr to view and export, .npz for arrays, .csv for a table of joints."
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw height, energy and joints of a world of each kind to this file.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the last state of a world of each kind to this file.")
    ] = None,
    video: Annotated[
        Path | None, typer.Option(help="Film a world of each kind: .mp4, .webm, .mov, .mkv or .gif.")
    ] = None,
    size: Annotated[str, typer.Option(help="Width and height of picture and video.")] = "960x600",
    view: Annotated[
        bool, typer.Option("--view", help="Show the worlds in the browser while they are stepped.")
    ] = False,
) -> None:
    """Step a scene, show the progress, and end with a summary."""
    from pluriverse.cli.run import RunOptions, run_scene

    run_scene(
        scene,
        RunOptions(
            worlds=worlds,
            duration=duration,
            frames=frames,
            dt=dt,
            device=device,
            solver=solver,
            threads=threads,
            strict=strict,
            asset_roots=tuple(asset_root or ()),
            record=record,
            plot=plot,
            picture=picture,
            video=video,
            size=size,
            view=view,
        ),
    )


@app.command()
def view(
    scene: Annotated[
        str,
        typer.Argument(
            metavar="SCENE",
            help="A scene file (YAML or JSON), the name of a bundled scene, a robot, or a recording (.pvr).",
        ),
    ],
    worlds: Annotated[
        int | None,
        typer.Option("--worlds", "--num-worlds", min=1, help="Number of worlds, instead of the scene's."),
    ] = None,
    show: Annotated[
        str | None, typer.Option(help="Worlds to show, separated by commas; some of all if not given.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines see the viewer.")
    ] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(help="Port to listen on; a free one if not given.")] = None,
    geometry: Annotated[str, typer.Option(help="Shapes to draw: visual, collision or all.")] = "visual",
    duration: Annotated[
        float | None, typer.Option(help="Wall time in seconds after which to end; until Ctrl-C if not given.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write what is shown at the end as one page of HTML.")
    ] = None,
    dt: DtOption = None,
    device: DeviceOption = None,
    solver: SolverOption = SolverChoice.SAP,
    threads: ThreadsOption = None,
    asset_root: AssetRootOption = None,
) -> None:
    """Step a scene or a robot in real time and show it in the browser, or play a recording."""
    from pluriverse.cli.view import ViewOptions, view_scene

    view_scene(
        scene,
        ViewOptions(
            worlds=worlds,
            show=show,
            host=host,
            port=port,
            geometry=geometry,
            duration=duration,
            html=html,
            dt=dt,
            device=device,
            solver=solver,
            threads=threads,
            asset_roots=tuple(asset_root or ()),
        ),
    )


@app.command()
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
    worlds: Annotated[
        str | None,
        typer.Option(
            "--worlds",
            "--show",
            help="Worlds to export, separated by commas; if not given, all for USD, else some.",
        ),
    ] = None,
    geometry: Annotated[str, typer.Option(help="Shapes to export: visual, collision or all.")] = "visual",
    stride: Annotated[
        int, typer.Option(min=1, help="Every how many frames one is exported (HTML, USD).")
    ] = 1,
    size: Annotated[str, typer.Option(help="Width and height of a video.")] = "960x600",
) -> None:
    """Write a recording as a page, a USD stage, a video or arrays."""
    from pluriverse.cli.export import ExportOptions, export_recording

    export_recording(recording, out, ExportOptions(worlds, geometry, stride, size))


@app.command()
def bench(
    scene: SceneArgument,
    worlds: Annotated[str, typer.Option(help="World counts, separated by commas.")] = "1,64,1024",
    frames: Annotated[
        int | None,
        typer.Option(
            "--frames", "--steps", min=1, help="Steps of a measurement; about a second's worth if not given."
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Measurements per count; the median is shown.")] = 3,
    dt: DtOption = None,
    device: DeviceOption = None,
    solver: SolverOption = SolverChoice.SAP,
    threads: ThreadsOption = None,
    asset_root: AssetRootOption = None,
) -> None:
    """Measure how fast a scene steps, over numbers of worlds."""
    from pluriverse.cli.bench import BenchOptions, bench_scene

    bench_scene(
        scene,
        BenchOptions(
            worlds=worlds,
            frames=frames,
            repeats=repeats,
            dt=dt,
            device=device,
            solver=solver,
            threads=threads,
            asset_roots=tuple(asset_root or ()),
        ),
    )


@app.command()
def info(
    scene: SceneArgument,
    worlds: Annotated[
        int | None,
        typer.Option("--worlds", "--num-worlds", min=1, help="Number of worlds, instead of the scene's."),
    ] = None,
    asset_root: AssetRootOption = None,
) -> None:
    """Show what a scene holds, and what of it is not supported."""
    from pluriverse.cli.info import show_scene

    show_scene(scene, worlds, asset_root or ())


@app.command()
def check(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Scene files (YAML or JSON), or names of bundled scenes."),
    ],
    asset_root: AssetRootOption = None,
    strict: Annotated[bool, typer.Option(help="Whether what is not supported makes a scene invalid.")] = True,
) -> None:
    """Say what is wrong with scene files, without stepping them."""
    from pluriverse.cli.check import check_scenes

    check_scenes(files, asset_root or (), strict=strict)


@app.command()
def sweep(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A sweep file (YAML or JSON).")],
    out: Annotated[Path, typer.Option(help="Folder for the table, in Parquet.")],
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the rows that the folder holds.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; one per core of the cluster if not given.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Ray cluster: an address or auto; this machine alone if not given.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Worlds that a worker steps at a time.")] = 64,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads of each worker.")] = 1,
    gpus: Annotated[float, typer.Option(min=0.0, help="GPUs of each worker; parts are allowed.")] = 0.0,
    device: DeviceOption = None,
    solver: SolverOption = SolverChoice.SAP,
    metrics: Annotated[
        str | None, typer.Option(help="Function that returns further columns, as module:function.")
    ] = None,
    asset_root: AssetRootOption = None,
) -> None:
    """Run a scene with many values of its parameters, over processes and machines."""
    from pluriverse.cli.sweep import SweepOptions, run_sweep

    run_sweep(
        file,
        SweepOptions(
            out=out,
            resume=resume,
            workers=workers,
            address=address,
            batch=batch,
            threads=threads,
            gpus=gpus,
            device=device,
            solver=solver,
            metrics=metrics,
            asset_roots=tuple(asset_root or ()),
        ),
    )


TaskArgument = Annotated[
    str, typer.Argument(metavar="TASK", help="Name of a task, or your own as module:Class or file.py:Class.")
]
PolicyOption = Annotated[
    Path | None,
    typer.Option(help="Policy, or folder of a run.", show_default="runs/TASK/policy.onnx"),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of everything that is drawn.")]
RobotRootOption = Annotated[
    list[Path] | None,
    typer.Option("--asset-root", help="Folder with files of robots; can be given several times."),
]
CommandOption = Annotated[
    str | None,
    typer.Option(help="Velocity of tasks of walking: forwards, left, turning, such as 0.65,0,0."),
]


@app.command()
def tasks() -> None:
    """List the tasks that come with the package."""
    from pluriverse.cli.learn import list_tasks

    list_tasks()


@app.command()
def train(
    task: TaskArgument,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for checkpoints, curve and policy.", show_default="runs/TASK"),
    ] = None,
    envs: Annotated[
        int | None, typer.Option("--envs", "--num-envs", min=1, help="Environments, instead of the task's.")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(min=1, help="Updates in all, instead of the task's.")
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Time to end after, in minutes.")] = None,
    seed: SeedOption = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    begin_with: Annotated[
        Path | None,
        typer.Option(help="Run, also of another task, whose networks to begin with."),
    ] = None,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    learning_threads: Annotated[
        int | None,
        typer.Option(min=1, help="CPU threads of PyTorch.", show_default="PyTorch's own choice"),
    ] = None,
    asset_root: RobotRootOption = None,
    tensorboard: Annotated[bool, typer.Option(help="Whether to write logs for TensorBoard.")] = True,
) -> None:
    """Learn a task, with its curve, checkpoints, and a policy at the end."""
    from pluriverse.cli.learn import TrainOptions
    from pluriverse.cli.learn import train as train_task

    train_task(
        task,
        TrainOptions(
            out=out,
            envs=envs,
            iterations=iterations,
            minutes=minutes,
            seed=seed,
            resume=resume,
            begin_with=begin_with,
            device=device,
            threads=threads,
            learning_threads=learning_threads,
            asset_roots=tuple(asset_root or ()),
            tensorboard=tensorboard,
        ),
    )


@app.command()
def evaluate(
    task: TaskArgument,
    policy: PolicyOption = None,
    envs: Annotated[int, typer.Option("--envs", "--num-envs", min=1, help="Environments.")] = 32,
    episodes: Annotated[int, typer.Option(min=1, help="Least number of episodes.")] = 32,
    seed: SeedOption = 1000,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    asset_root: RobotRootOption = None,
    command: CommandOption = None,
    report: Annotated[Path | None, typer.Option(help="Write the figures to this file, as JSON.")] = None,
) -> None:
    """Run whole episodes with a policy, and print what they gave."""
    from pluriverse.cli.learn import PlayOptions
    from pluriverse.cli.learn import evaluate as evaluate_policy

    evaluate_policy(
        task,
        PlayOptions(
            policy=policy,
            envs=envs,
            episodes=episodes,
            seconds=None,
            seed=seed,
            device=device,
            threads=threads,
            asset_roots=tuple(asset_root or ()),
            command=command,
            video=None,
            report=report,
            port=None,
        ),
    )


@app.command()
def play(
    task: TaskArgument,
    policy: PolicyOption = None,
    envs: Annotated[int, typer.Option("--envs", "--num-envs", min=1, help="Environments.")] = 4,
    seconds: Annotated[float | None, typer.Option(help="Simulated time to end after.")] = None,
    seed: SeedOption = 0,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    asset_root: RobotRootOption = None,
    command: CommandOption = None,
    video: Annotated[Path | None, typer.Option(help="Film it, instead of showing it in the browser.")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the viewer.")] = None,
) -> None:
    """Show in the browser, in real time, what a policy does; or film it."""
    from pluriverse.cli.learn import PlayOptions
    from pluriverse.cli.learn import play as play_policy

    play_policy(
        task,
        PlayOptions(
            policy=policy,
            envs=envs,
            episodes=1,
            seconds=seconds,
            seed=seed,
            device=device,
            threads=threads,
            asset_roots=tuple(asset_root or ()),
            command=command,
            video=video,
            report=None,
            port=port,
        ),
    )


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
    app()
