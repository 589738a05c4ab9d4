"""Evaluations and sweeps: many episodes of a scene over workers, and a table of the results."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack

import numpy as np

from pluriverse.cluster.description import Description, SceneDescription, describe
from pluriverse.cluster.episodes import EpisodeJob, Metrics, Piece, Policy
from pluriverse.cluster.farm import run_pieces
from pluriverse.cluster.runtime import connect, pickled
from pluriverse.cluster.samples import Samples, make_samples
from pluriverse.cluster.table import ResultTable, fingerprint
from pluriverse.options import completed, with_options
from pluriverse.simulation.snapshot import editable_arrays

# Worlds of one simulation of a worker: enough to keep its cores busy, few enough that a lost one costs
# little.
BATCH_DEFAULT = 64


class EpisodeOptions(TypedDict, total=False):
    """Options of `evaluate` and `sweep`."""

    steps: int | None
    """Control steps of an episode."""
    duration: float | None
    """Length of an episode [s], instead of `steps`."""
    step_count: Annotated[int, 1]
    """Steps of the simulation in a control step."""
    observe: Annotated[Sequence[str], ("joint_q", "joint_qd")]
    """Arrays that the policy sees."""
    metrics: Metrics | None
    """Called on the workers at the end of episodes with the simulation and their range. Returns further
    columns by their names, with one entry per world."""
    out: str | Path | None
    """Folder for the rows, in Parquet; None keeps them in memory, where they end with this process."""
    resume: Annotated[bool, False]
    """Whether existing rows in `out` are kept and only missing ones computed."""
    workers: int | None
    """Number of workers; one per core of the cluster if None."""
    batch: Annotated[int, BATCH_DEFAULT]
    """Worlds that a worker steps at a time."""
    threads: Annotated[int, 1]
    """CPU threads of each worker."""
    gpus: Annotated[float, 0.0]
    """GPUs that Ray sets aside for each worker."""
    device: str | None
    """Device of the worlds; the GPU of the worker if it has one, else the CPU."""
    solver: Annotated[str, "sap"]
    """Solver of a scene, "sap" or "mujoco"."""
    asset_roots: Annotated[Sequence[str | Path], ()]
    """Further folders that a scene may read files from."""
    address: str | None
    """Address of a Ray cluster, "auto", or None for this machine."""
    progress: Callable[[int, int], None] | None
    """Called with the number of batches done and of all."""


@with_options(EpisodeOptions)
def evaluate(
    policy: Policy | None,
    scene: str | Path | Callable[[range], Any],
    *,
    episodes: int,
    dt: float | None = None,
    **options: Unpack[EpisodeOptions],
) -> Any:
    """Evaluate a policy in many episodes of a scene, and return a table with a row for each.

    The scene's randomization is drawn for each episode by its number, so an episode is the same in every
    batch, on every worker, and in every later evaluation.

    Args:
        policy: Called on the workers, before every control step, with what the worlds observe (`Rows` by the
            names of `observe`) and the range of their episodes. Returns arrays to write by their names, such
            as `{"joint_target_pos": ...}`, or None. It is sent to workers, so it must be a function of a
            module or hold nothing but data. None lets the recorded control of the scene act, or none.
        scene: Scene file or name of a bundled scene; or a function that takes a `range` of episodes and
            returns a `Simulation` with a world for each.
        episodes: Number of episodes, of each kind of world of the scene.
        dt: Time step of a scene [s], instead of its own.

    Returns:
        A `pyarrow.Table`: `episode`, `kind` where there are several, `moved_x`, `moved_y`, `moved_z` of the
        first body [m], `frozen`, `unconverged_steps`, `truncated_steps`, the columns of `metrics`, and
        `error`, which is empty where all went well.

    Raises:
        ClusterError: If the cluster cannot be used, or work was lost twice.
        FileExistsError: If `out` has rows and `resume` is not set.
        ImportError: If Ray or Arrow is not installed.
        ValueError: If a number is out of range, the scene is wrong, or something cannot be sent.
        WorkerTaskError: If policy or metrics raise something that is no matter of single worlds.
    """
    given: EpisodeOptions = completed(EpisodeOptions, options)
    _check_counts("evaluate", episodes=episodes)
    description, kind_names = _episodes_of(scene, episodes, given, dt=dt, what="evaluate")
    pieces = [
        Piece(kind, part, seeds=tuple(part))
        for kind in range(len(kind_names))
        for part in _batches(range(episodes), given["batch"])
    ]
    job = _job(description, kind_names, policy, given, what="evaluate")
    return _run(job, pieces, given)


@with_options(EpisodeOptions)
def sweep(
    scene: str | Path,
    samples: Any,
    *,
    seeds: int = 1,
    policy: Policy | None = None,
    **options: Unpack[EpisodeOptions],
) -> Any:
    """Run a scene with many values of its parameters, and return a table with a row for each.

    Every sample has its own worlds, which are stepped together with those of samples with the same time step
    and solver options. All samples share the draws of a seed, so that differences come from the parameters.

    Args:
        scene: Scene file or name of a bundled scene.
        samples: A mapping from parameters to lists of values, of which all combinations are made; or a list
            of mappings from parameters to a value. Parameters are `dt`, `solver.NAME` for an option of the
            solver, or an array of the model such as `shape_material_mu`, with `@PATTERN` for entities of some
            labels. A list or a value in `{"scale": ...}` or `{"add": ...}` changes what the scene says.
        seeds: How often each sample is run, each time with other draws of what the scene randomizes.
        policy: As of `evaluate`; None lets the recorded control of the scene act, or none.

    Returns:
        A `pyarrow.Table` as of `evaluate`, with the columns `run`, `sample`, `seed` and one for each
        parameter. A sample that the scene cannot have leaves its reason in `error`.

    Raises:
        As `evaluate`; KeyError: If a pattern of a parameter finds nothing.
    """
    given: EpisodeOptions = completed(EpisodeOptions, options)
    _check_counts("sweep", seeds=seeds)
    if not isinstance(scene, str | Path):
        raise TypeError(f"sweep: scene is a {type(scene).__name__}, but must be a scene file or its name.")
    table = make_samples(samples, "sweep")
    count = len(table) * seeds
    description, kind_names = _episodes_of(scene, count, given, dt=None, what="sweep")
    pieces = []
    for kind in range(len(kind_names)):
        first = 0
        for solver_options, members in table.shared_groups():
            runs = [(sample, seed) for sample in members for seed in range(seeds)]
            for part in _batches(range(len(runs)), given["batch"]):
                selected = runs[part.start : part.stop]
                pieces.append(
                    Piece(
                        kind,
                        range(first + part.start, first + part.stop),
                        tuple(sample for sample, _ in selected),
                        tuple(seed for _, seed in selected),
                        tuple(solver_options.items()),
                    )
                )
            first += len(runs)
    job = _job(description, kind_names, policy, given, what="sweep", samples=table, column="run")
    _check_samples(job, table)
    return _run(job, pieces, given)


def _job(
    description: Description,
    kind_names: tuple[str, ...],
    policy: Policy | None,
    given: EpisodeOptions,
    *,
    what: str,
    samples: Samples | None = None,
    column: str = "episode",
) -> EpisodeJob:
    """Return what all workers do."""
    return EpisodeJob(
        description,
        *_length(what, given["steps"], given["duration"]),
        given["step_count"],
        policy,
        tuple(given["observe"]),
        given["metrics"],
        samples,
        given["device"] or ("cuda:0" if given["gpus"] else "cpu"),
        given["threads"],
        column,
        kind_names,
    )


def _run(job: EpisodeJob, pieces: list[Piece], given: EpisodeOptions) -> Any:
    """Do all pieces over workers and return the table of their rows."""
    workers = given["workers"]
    if workers is not None:
        _check_counts("workers", workers=workers)
    results = ResultTable(
        given["out"], work=_fingerprint(job, pieces), piece_count=len(pieces), resume=given["resume"]
    )
    if len(results.done) < len(pieces):
        ray = connect(given["address"], workers or 1, job.threads)
        if workers is None:
            workers = max(1, int(ray.cluster_resources().get("CPU", 1.0) / job.threads))
        payload = pickled(job, "the policy, the metrics or the worlds")
        run_pieces(
            ray,
            payload,
            pieces,
            results,
            workers=workers,
            cpus=float(job.threads),
            gpus=float(given["gpus"]),
            progress=given["progress"],
        )
    return results.table()


def _episodes_of(
    scene: Any, count: int, given: EpisodeOptions, *, dt: float | None, what: str
) -> tuple[Description, tuple[str, ...]]:
    """Return the description of so many worlds of each kind, all at one place, and the names of the kinds."""
    for name in ("batch", "threads", "step_count"):
        _check_counts(what, **{name: given[name]})
    is_scene = isinstance(scene, str | Path)
    description = describe(
        scene,
        worlds=None if is_scene else count,
        solver=given["solver"],
        asset_roots=given["asset_roots"],
        what=what,
        dt=dt,
    )
    if not isinstance(description, SceneDescription):
        return description, ("worlds",)
    kinds = description.read.kinds
    # The position of a world must not affect its result.
    description = dataclasses.replace(description, counts=(count,) * len(kinds), spacing=(0.0, 0.0, 0.0))
    return description, tuple(kind.plan.name for kind in kinds)


def _batches(episodes: range, size: int) -> list[range]:
    return [episodes[start : start + size] for start in range(0, len(episodes), size)]


def _length(what: str, steps: int | None, duration: float | None) -> tuple[int, float | None]:
    if (steps is None) == (duration is None):
        raise ValueError(f"{what}: give either steps or duration, the length of an episode.")
    if steps is not None:
        _check_counts(what, steps=steps)
        return int(steps), None
    if not (isinstance(duration, int | float) and 0.0 < duration < np.inf):
        raise ValueError(f"{what}: duration is {duration!r}, but must be a positive number of seconds.")
    return 0, float(duration)


def _check_counts(what: str, **counts: Any) -> None:
    for name, value in counts.items():
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{what}: {name} is {value!r}, but must be a whole number of at least 1.")


def _check_samples(job: EpisodeJob, samples: Samples) -> None:
    """Raise, here and at once, if a parameter names nothing in any kind of world."""
    from pluriverse.randomization.targets import entity_of, find_targets

    model = _first_worlds(job)
    for parameter in samples.parameters:
        if not parameter.is_shared:
            find_targets(model, entity_of(parameter.array), parameter.pattern, f"sweep: {parameter.key}")


def _first_worlds(job: EpisodeJob) -> Any:
    """Return a model with one world of each kind."""
    assert isinstance(job.description, SceneDescription)
    read = job.description.read
    return read.build("cpu", counts=[1] * len(read.kinds)).model


def _fingerprint(job: EpisodeJob, pieces: list[Piece]) -> str:
    """Return the key that identifies this work. Functions count by their names."""
    values: list[Any] = [
        job.steps,
        job.duration,
        job.step_count,
        list(job.observe),
        [_name(job.policy), _name(job.metrics)],
        [
            [piece.kind, piece.episodes.start, piece.episodes.stop, piece.samples, piece.seeds]
            for piece in pieces
        ],
        [[list(piece.options)] for piece in pieces],
    ]
    if job.samples is not None:
        values += [[dataclasses.astuple(each) for each in job.samples.parameters], list(job.samples.values)]
    if isinstance(job.description, SceneDescription):
        model = _first_worlds(job)
        settings = job.description.read.settings
        values += [model.structure.fingerprint, job.description.solver, job.description.options]
        values += [settings.dt, settings.solver_options]
        for name, array in editable_arrays(model).items():
            values += [name, array.numpy()]
    else:
        values.append(_name(getattr(job.description, "factory", None)))
    return fingerprint(*values)


def _name(function: Any) -> str:
    return (
        f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
    )
