"""Options of the commands: each with its default and its text for `--help`, once.

Only the command-line parser is imported here, so that `pluriverse --help` answers at once.
"""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from pluriverse.cli.solver_choice import SolverChoice

WorldsOption = Annotated[
    int | None,
    typer.Option("--worlds", "--num-worlds", min=1, help="Number of worlds, instead of the scene's."),
]
AssetRootOption = Annotated[
    list[Path],
    typer.Option(
        "--asset-root",
        help="A further folder that the scene may read files from; can be given several times.",
        show_default="the scene's own and the current directory",
    ),
]
RobotRootOption = Annotated[
    list[Path],
    typer.Option("--asset-root", help="Folder with files of robots; can be given several times."),
]
DeviceOption = Annotated[str | None, typer.Option(help="Device to step on: cpu, cuda:0, ...")]
SolverOption = Annotated[
    SolverChoice, typer.Option(help="What moves the worlds; mujoco takes no options from the scene.")
]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores if not given.")]
DURATION = 2.0
"""Simulated time of a run whose length is not given [s]."""
FILM_DURATION = 10.0
"""The same of a film of a policy [s]."""
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of everything that is drawn.")]


@dataclass(frozen=True, kw_only=True)
class SceneOptions:
    """Options of commands that step a scene."""

    dt: Annotated[
        float | None, typer.Option("--dt", help="Time step in seconds, instead of the scene's.")
    ] = None
    device: DeviceOption = None
    solver: SolverOption = SolverChoice.SAP
    threads: ThreadsOption = None
    asset_roots: AssetRootOption = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class RunOptions(SceneOptions):
    """Options of `pluriverse run`."""

    worlds: WorldsOption = None
    duration: Annotated[
        float | None, typer.Option(help="Simulated time in seconds.", show_default=f"{DURATION:g}")
    ] = None
    frames: Annotated[
        int | None,
        typer.Option("--frames", "--steps", min=1, help="Number of steps, instead of a duration."),
    ] = None
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--no-strict",
            help="--strict also stops a run when a world is in trouble; --no-strict also goes on without the "
            "features of a scene that are not supported.",
            show_default="strict about a scene, not about a robot file or the run",
        ),
    ] = None
    record: Annotated[
        Path | None,
        typer.Option(
            help="Record the run: .pvr to view and export, .npz for arrays, .csv for a table of joints."
        ),
    ] = None
    plot: Annotated[
        Path | None, typer.Option(help="Draw height, energy and joints of a world of each kind to this file.")
    ] = None
    picture: Annotated[
        Path | None, typer.Option(help="Draw the last state of a world of each kind to this file.")
    ] = None
    video: Annotated[
        Path | None, typer.Option(help="Film a world of each kind: .mp4, .webm, .mov, .mkv or .gif.")
    ] = None
    size: Annotated[str, typer.Option(help="Width and height of picture and video.")] = "960x600"
    view: Annotated[
        bool, typer.Option("--view", help="Show the worlds in the browser while they are stepped.")
    ] = False

    def frame_count(self, dt: float) -> int:
        """Return the number of steps.

        Raises:
            ValueError: The duration is no time, or both are given.
        """
        if self.frames is not None and self.duration is not None:
            raise ValueError(
                f"--frames is {self.frames} and --duration is {self.duration:g}, but each says how long the "
                "run is; give one of them"
            )
        if self.frames is not None:
            return self.frames
        duration = DURATION if self.duration is None else self.duration
        if not (duration > 0.0 and math.isfinite(duration)):
            raise ValueError(f"--duration is {duration}, but it is a positive number of seconds")
        # A duration of 2 s at 0.005 s is 400 steps, although 2 / 0.005 may round to a little more.
        return max(1, math.ceil(round(duration / dt, 9)))


@dataclass(frozen=True, kw_only=True)
class ViewOptions(SceneOptions):
    """Options of `pluriverse view`."""

    worlds: WorldsOption = None
    show: Annotated[
        str | None, typer.Option(help="Worlds to show, separated by commas; some of all if not given.")
    ] = None
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines see the viewer.")
    ] = "127.0.0.1"
    port: Annotated[int | None, typer.Option(help="Port to listen on; a free one if not given.")] = None
    geometry: Annotated[str, typer.Option(help="Shapes to draw: visual, collision or all.")] = "visual"
    duration: Annotated[
        float | None, typer.Option(help="Wall time in seconds after which to end; until Ctrl-C if not given.")
    ] = None
    html: Annotated[Path | None, typer.Option(help="Write what is shown at the end as one page of HTML.")] = (
        None
    )


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of `pluriverse export`."""

    worlds: Annotated[
        str | None,
        typer.Option(
            "--worlds",
            "--show",
            help="Worlds to export, separated by commas; if not given, all for USD, else some.",
        ),
    ] = None
    geometry: Annotated[str, typer.Option(help="Shapes to export: visual, collision or all.")] = "visual"
    stride: Annotated[int, typer.Option(min=1, help="Every how many frames one is exported (HTML, USD).")] = 1
    size: Annotated[str, typer.Option(help="Width and height of a video.")] = "960x600"


@dataclass(frozen=True, kw_only=True)
class BenchOptions(SceneOptions):
    """Options of `pluriverse bench`."""

    worlds: Annotated[str, typer.Option(help="World counts, separated by commas.")] = "1,64,1024"
    frames: Annotated[
        int | None,
        typer.Option(
            "--frames", "--steps", min=1, help="Steps of a measurement; about a second's worth if not given."
        ),
    ] = None
    repeats: Annotated[int, typer.Option(min=1, help="Measurements per count; the median is shown.")] = 3

    def world_counts(self) -> list[int]:
        """Return the numbers of worlds.

        Raises:
            ValueError: They are not a list of positive integers.
        """
        try:
            counts = [int(text) for text in self.worlds.split(",")]
        except ValueError as error:
            raise ValueError(
                f"--worlds is {self.worlds!r}, but it is a list of numbers such as 1,64,1024"
            ) from error
        if min(counts) < 1:
            raise ValueError(f"--worlds is {self.worlds!r}, but every number of worlds is at least 1")
        return counts


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """Options of `pluriverse sweep`."""

    out: Annotated[Path, typer.Option(help="Folder for the table, in Parquet.")]
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the rows that the folder holds.")] = (
        False
    )
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes; one per core of the cluster if not given.")
    ] = None
    address: Annotated[
        str | None, typer.Option(help="Ray cluster: an address or auto; this machine alone if not given.")
    ] = None
    batch: Annotated[int, typer.Option(min=1, help="Worlds that a worker steps at a time.")] = 64
    threads: Annotated[int, typer.Option(min=1, help="CPU threads of each worker.")] = 1
    gpus: Annotated[float, typer.Option(min=0.0, help="GPUs of each worker; parts are allowed.")] = 0.0
    device: DeviceOption = None
    solver: SolverOption = SolverChoice.SAP
    metrics: Annotated[
        str | None, typer.Option(help="Function that returns further columns, as module:function.")
    ] = None
    asset_roots: AssetRootOption = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Options of `pluriverse train`."""

    out: Annotated[
        Path | None,
        typer.Option(help="Folder for checkpoints, curve and policy.", show_default="runs/TASK"),
    ] = None
    envs: Annotated[
        int | None, typer.Option("--envs", "--num-envs", min=1, help="Environments, instead of the task's.")
    ] = None
    iterations: Annotated[int | None, typer.Option(min=1, help="Updates in all, instead of the task's.")] = (
        None
    )
    minutes: Annotated[float | None, typer.Option(help="Time to end after, in minutes.")] = None
    seed: SeedOption = 0
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False
    begin_with: Annotated[
        Path | None, typer.Option(help="Run, also of another task, whose networks to begin with.")
    ] = None
    device: DeviceOption = None
    threads: ThreadsOption = None
    learning_threads: Annotated[
        int | None,
        typer.Option(min=1, help="CPU threads of PyTorch.", show_default="PyTorch's own choice"),
    ] = None
    asset_roots: RobotRootOption = field(default_factory=list)
    tensorboard: Annotated[bool, typer.Option(help="Whether to write logs for TensorBoard.")] = True


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """Options of commands that run a policy."""

    policy: Annotated[
        Path | None,
        typer.Option(help="Policy, or folder of a run.", show_default="runs/TASK/policy.onnx"),
    ] = None
    envs: Annotated[int, typer.Option("--envs", "--num-envs", min=1, help="Environments.")]
    seed: SeedOption
    device: DeviceOption = None
    threads: ThreadsOption = None
    asset_roots: RobotRootOption = field(default_factory=list)
    command: Annotated[
        str | None,
        typer.Option(help="Velocity of tasks of walking: forwards, left, turning, such as 0.65,0,0."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(PolicyOptions):
    """Options of `pluriverse evaluate`."""

    envs: Annotated[int, typer.Option("--envs", "--num-envs", min=1, help="Environments.")] = 32
    episodes: Annotated[int, typer.Option(min=1, help="Least number of episodes.")] = 32
    seed: SeedOption = 1000
    report: Annotated[Path | None, typer.Option(help="Write the figures to this file, as JSON.")] = None


@dataclass(frozen=True, kw_only=True)
class PlayOptions(PolicyOptions):
    """Options of `pluriverse play`."""

    envs: Annotated[int, typer.Option("--envs", "--num-envs", min=1, help="Environments.")] = 4
    seconds: Annotated[
        float | None,
        typer.Option(
            help="Simulated time to end after.", show_default=f"{FILM_DURATION:g} in a video, else Ctrl-C"
        ),
    ] = None
    seed: SeedOption = 0
    video: Annotated[
        Path | None,
        typer.Option(
            help="Film the first environment, instead of showing all in the browser: .mp4, .webm, .mov, .mkv "
            "or .gif."
        ),
    ] = None
    size: Annotated[str, typer.Option(help="Width and height of the video.")] = "480x300"
    samples: Annotated[
        int, typer.Option(min=1, max=4096, help="Rays per pixel of the video: 2 is quick, 12 is smooth.")
    ] = 2
    port: Annotated[int | None, typer.Option(help="Port of the viewer.")] = None


def flattened(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameter `options` is replaced by the fields of its type, own ones first."""
    signature = inspect.signature(command)
    kind: Any = signature.parameters["options"].annotation
    hints = get_type_hints(kind, include_extras=True)
    order = list(dict.fromkeys(name for part in kind.__mro__ for name in inspect.get_annotations(part)))
    fields = sorted(dataclasses.fields(kind), key=lambda part: order.index(part.name))

    @functools.wraps(command)
    def flat(**values: Any) -> None:
        options = kind(**{part.name: values.pop(part.name) for part in fields})
        command(**values, options=options)

    flat.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            *(part for part in signature.parameters.values() if part.name != "options"),
            *(
                inspect.Parameter(
                    part.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=_default(part),
                    annotation=hints[part.name],
                )
                for part in fields
            ),
        ]
    )
    return flat


def _default(part: dataclasses.Field[Any]) -> Any:
    if part.default_factory is not dataclasses.MISSING:
        return part.default_factory()
    return inspect.Parameter.empty if part.default is dataclasses.MISSING else part.default
