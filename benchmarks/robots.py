"""Robots of strangers: imports every robot that installed packages carry, and steps each in both solvers.

`python -m benchmarks.robots [FOLDER ...] [--steps 200] [--batch] [--match anymal]`

URDF files stand or fall on a free base, MJCF files as authored; the lowest shape begins a centimetre above
the ground. A row says what became of a file: time of the import, repairs, and per solver the largest speed at
the end. With `--batch` all of them are stepped at once afterwards, one world each, and compared to the bit
with what each did alone.
"""

import argparse
import dataclasses
import os
import site
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp
from rich.console import Console
from rich.table import Table

import pluriverse as pv
from pluriverse.warnings import SimulationWarning

DT = 0.005  # s
CLEARANCE = 0.01  # m, of the lowest shape above the ground in the beginning
SOLVERS = {"SolverSAP": pv.SolverSAP, "SolverMuJoCo": pv.SolverMuJoCo}
# Folders of packages with documents that are wrong on purpose, or no robots by themselves.
LEFT_OUT = ("test_assets", "testing", "testdata", "test_data", "__pycache__")
# Speed [m/s] above which a robot on the ground has come apart: it falls from a centimetre.
SPEED_MAX = 50.0


@dataclasses.dataclass
class Trial:
    """What became of one file."""

    path: Path
    """The file."""
    builder: pv.ModelBuilder | None = None
    """The robot on the ground, None if it was refused."""
    problem: str = ""
    """Why it was refused."""
    import_time: float = 0.0
    """Processor time of the import [s], without compiling."""
    repairs: int = 0
    """Features that were repaired."""
    joint_q: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    """Coordinates after the steps, by solver."""
    speed: dict[str, float] = dataclasses.field(default_factory=dict)
    """Largest speed of a body after the steps [m/s], by solver."""
    remarks: list[str] = dataclasses.field(default_factory=list)
    """What the simulation warned of, lost or froze."""


def main() -> int:
    """Read the command line, try all robots, print; return how many failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.robots", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="where to look instead of installed packages")
    parser.add_argument("--match", default="", help="only files whose path contains this")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--solvers", nargs="+", default=list(SOLVERS), choices=list(SOLVERS))
    parser.add_argument("--batch", action="store_true", help="step all in one batch, too")
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    console = Console(width=160)
    paths = [path for path in find_robots(arguments.folders) if arguments.match in str(path)]
    trials = []
    for path in paths:
        trial = try_robot(path, arguments.steps, arguments.solvers)
        trials.append(trial)
        console.print(f"{'ok' if succeeded(trial) else 'FAILED':7}{path.name}", highlight=False)
    console.print(make_table(trials, arguments.solvers))
    failed = sum(not succeeded(trial) for trial in trials)
    took = [trial.import_time for trial in trials if trial.builder is not None]
    if took:
        console.print(
            f"{len(trials)} files, {failed} failed; import {np.mean(took):.3f} s of CPU in the mean"
        )
    if arguments.batch:
        for solver in arguments.solvers:
            failed += not try_batch(trials, solver, arguments.steps, console)
    return failed


def find_robots(folders: Sequence[Path] = ()) -> list[Path]:
    """Return the URDF and MJCF files of robots in `folders`, or in all installed packages."""
    found = [path for folder in folders or map(Path, site.getsitepackages()) for path in _robots_in(folder)]
    return sorted(set(found))


def _robots_in(folder: Path) -> Iterator[Path]:
    for root, names, files in os.walk(folder):
        names[:] = [name for name in names if name not in LEFT_OUT]
        for file in files:
            path = Path(root) / file
            if path.suffix == ".urdf":
                yield path
            elif path.suffix == ".xml":
                text = path.read_text(errors="replace")
                if "<mujoco" in text and ("<body" in text or "<include" in text) and "<worldbody" in text:
                    yield path


def place_robot(path: Path) -> tuple[pv.ModelBuilder, Any]:
    """Return a builder of a robot just above the ground, and the report of its import.

    Raises:
        AssetError: If the file is refused.
    """
    robot = pv.ModelBuilder()
    if path.suffix == ".urdf":
        report = robot.add_urdf(path, floating=True)
    else:
        report = robot.add_mjcf(path)
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    builder.add_builder(robot, xform=((0.0, 0.0, _lift(robot)), (0.0, 0.0, 0.0, 1.0)))
    return builder, report


def _lift(robot: pv.ModelBuilder) -> float:
    """Return how far a robot has to be lifted for its colliders to be above the ground [m]."""
    if robot.body_count == 0 or robot.shape_count == 0:
        return 0.0
    model = robot.finalize("cpu")
    body = model.shape_body.numpy()
    solid = (model.shape_flags.numpy() & int(pv.ShapeFlags.COLLIDE_SHAPES)) != 0
    solid &= (body >= 0) & (model.shape_type.numpy() != int(pv.GeoType.PLANE))
    if not solid.any():
        return 0.0
    lower, upper = model.shape_aabb_lower.numpy()[solid], model.shape_aabb_upper.numpy()[solid]
    corners = np.stack(
        [np.where(np.array(bits, dtype=bool), lower, upper) for bits in np.ndindex(2, 2, 2)], axis=1
    )
    for pose in (model.shape_transform.numpy()[solid], model.body_q.numpy()[body[solid]]):
        corners = _rotate(pose[:, None, 3:], corners) + pose[:, None, :3]
    return float(max(CLEARANCE - corners[..., 2].min(), 0.0))


def _rotate(quat: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    axis, real = quat[..., :3], quat[..., 3:]
    across = 2.0 * np.cross(axis, vectors)
    return vectors + real * across + np.cross(axis, across)


def try_robot(path: Path, step_count: int, solvers: Sequence[str]) -> Trial:
    """Import one robot and step it alone."""
    trial = Trial(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.process_time()
        try:
            robot = pv.ModelBuilder()
            add = robot.add_urdf if path.suffix == ".urdf" else robot.add_mjcf
            report = add(path)
            trial.import_time = time.process_time() - begin
            trial.repairs = len(report.repairs)
            trial.builder, _ = place_robot(path)
        except ValueError as error:
            trial.problem = str(error)
            return trial
    scene = pv.ModelBuilder()
    scene.add_world(trial.builder)
    for solver in solvers:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model = scene.finalize("cpu")
                simulation = pv.Simulation(model, SOLVERS[solver](model), dt=DT, threads=1)
            except ValueError as error:
                trial.builder, trial.problem = None, f"{solver}: {error}"
                return trial
            simulation.step(step_count)
        trial.joint_q[solver] = simulation.state.joint_q.numpy().copy()
        trial.speed[solver] = float(
            np.linalg.norm(simulation.state.body_qd.numpy()[:, :3], axis=1).max(initial=0)
        )
        trial.remarks += _remarks(solver, simulation.report())
        trial.remarks += [
            f"{solver}: {str(warning.message).splitlines()[0]}"
            for warning in caught
            if issubclass(warning.category, SimulationWarning)
        ]
    return trial


def _remarks(solver: str, report: Any) -> list[str]:
    remarks = []
    if report.frozen_worlds:
        remarks.append(f"{solver}: frozen")
    if report.truncated_step_count:
        remarks.append(f"{solver}: {report.truncated_step_count} steps lost contacts")
    return remarks


def succeeded(trial: Trial) -> bool:
    """Return whether a robot was imported, and stands or lies."""
    return (
        trial.builder is not None
        and all(np.isfinite(q).all() for q in trial.joint_q.values())
        and all(speed < SPEED_MAX for speed in trial.speed.values())
        and not any("frozen" in remark or "lost contacts" in remark for remark in trial.remarks)
    )


def make_table(trials: Sequence[Trial], solvers: Sequence[str]) -> Table:
    """Return the table of what became of each file."""
    table = Table(title=f"robots, steps of {1e3 * DT:g} ms")
    for title in ("file", "bodies", "dofs", "shapes", "import, CPU s", "repairs", *solvers, "remarks"):
        table.add_column(title, justify="left" if title in ("file", "remarks") else "right", overflow="fold")
    for trial in trials:
        name = "/".join(trial.path.parts[-2:])
        if trial.builder is None:
            table.add_row(name, *[""] * (5 + len(solvers)), f"refused: {trial.problem[-300:]}")
            continue
        builder = trial.builder
        counts = (builder.body_count, builder.joint_dof_count, builder.shape_count - 1)
        speeds = [f"{trial.speed[solver]:.2f} m/s" for solver in solvers]
        row = [*map(str, counts), f"{trial.import_time:.2f}", str(trial.repairs), *speeds]
        table.add_row(name, *row, "; ".join(trial.remarks)[:200])
    return table


def try_batch(trials: Sequence[Trial], solver: str, step_count: int, console: Console) -> bool:
    """Step all robots at once, one world each, and print whether each did what it does alone."""
    taken = [trial for trial in trials if trial.builder is not None]
    scene = pv.ModelBuilder()
    for trial in taken:
        scene.add_world(trial.builder)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each has been told of alone; the report says what is lost here
        model = scene.finalize("cpu")
        simulation = pv.Simulation(model, SOLVERS[solver](model), dt=DT)
        simulation.prepare()
        made = time.perf_counter() - begin
        simulation.step(step_count)
    report = simulation.report()
    start = model.joint_coord_world_start.numpy()
    joint_q = simulation.state.joint_q.numpy()
    other = [
        trial.path.name
        for world, trial in enumerate(taken)
        if joint_q[start[world] : start[world + 1]].tobytes() != trial.joint_q[solver].tobytes()
    ]
    console.print(
        f"{solver}: {len(taken)} robots in one batch, made in {made:.1f} s, "
        f"{1e3 * report.wall_time / report.step_count:.1f} ms a step, {len(report.frozen_worlds)} frozen, "
        f"{report.truncated_step_count} steps that lost contacts, {len(other)} other than alone {other[:8]}"
    )
    return not (other or report.frozen_worlds or report.truncated_step_count)


if __name__ == "__main__":
    sys.exit(main())
