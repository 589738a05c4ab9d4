"""Measures all engines on all scenes, one process each, and prints a table; see `--help`."""

import argparse
import dataclasses
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.scenes import SCENES, PileScene, write_scene

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One engine in one way of running it."""

    engine: str
    """Module in `benchmarks.engines`."""
    threads: int
    """Number of threads."""
    call: str
    """`many` steps in one call, or a `single` one."""

    @property
    def name(self) -> str:
        """Name in the table."""
        plural = "s" if self.threads > 1 else ""
        return f"{self.engine}, {self.threads} thread{plural}, {self.call}"


@dataclasses.dataclass(frozen=True)
class Measurement:
    """Result of one configuration on one scene."""

    scene: str
    worlds: int
    configuration: Configuration
    rate: float | None
    """World-steps per second, None where there is no result."""
    detail: dict[str, object]
    """All that the engine told, or why there is no result."""


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--scenes", nargs="+", default=list(SCENES), choices=list(SCENES), metavar="SCENE")
    parser.add_argument("--worlds", nargs="+", type=int, default=[1, 64, 1024])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--engines", nargs="+", default=["pluriverse", "mujoco", "newton", "physx"])
    parser.add_argument("--newton-python", default=sys.executable, help="interpreter with newton[sim]")
    parser.add_argument("--physx-python", default=sys.executable, help="interpreter with sapien")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="least duration of a repeat")
    parser.add_argument("--timeout", type=float, default=180.0, help="longest run of an engine [s]")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    arguments = parser.parse_args()
    interpreters = {"newton": arguments.newton_python, "physx": arguments.physx_python}

    results: list[Measurement] = []
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        for scene in arguments.scenes:
            path = write_scene(scene, Path(folder))
            for worlds in arguments.worlds:
                for configuration in _configurations(arguments, scene):
                    interpreter = interpreters.get(configuration.engine, sys.executable)
                    result = _run(arguments, interpreter, scene, path, worlds, configuration)
                    results.append(result)
                    text = f"{result.rate:12,.0f}" if result.rate else f"no result: {result.detail['reason']}"
                    console.print(f"{scene} x {worlds}: {configuration.name}: {text}", highlight=False)
    console.print(_table(results))
    if arguments.json:
        arguments.json.write_text(json.dumps(_document(results), indent=2))


def _configurations(arguments: argparse.Namespace, scene: str) -> list[Configuration]:
    """Return the ways of running a scene that make sense: Newton's graph and PhysX use one thread."""
    result = []
    for engine in arguments.engines:
        if engine == "physx" and not isinstance(SCENES[scene], PileScene):
            continue
        for threads in arguments.threads:
            if engine in ("newton", "physx"):
                if threads == 1:
                    result.append(Configuration(engine, 1, "many"))
                continue
            result.append(Configuration(engine, threads, "many"))
            if threads > 1:
                result.append(Configuration(engine, threads, "single"))
    return result


def _run(
    arguments: argparse.Namespace,
    interpreter: str,
    scene: str,
    path: Path,
    worlds: int,
    configuration: Configuration,
) -> Measurement:
    """Measure one configuration in a process of its own."""
    command = [interpreter, "-m", f"benchmarks.engines.{configuration.engine}", str(path)]
    command += [
        "--worlds",
        str(worlds),
        "--threads",
        str(configuration.threads),
        "--call",
        configuration.call,
    ]
    command += ["--repeats", str(arguments.repeats), "--seconds", str(arguments.seconds)]
    try:
        process = subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, timeout=arguments.timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return Measurement(
            scene, worlds, configuration, None, {"reason": f"longer than {arguments.timeout:.0f} s"}
        )
    if process.returncode != 0:
        lines = process.stderr.strip().splitlines() or [f"exit status {process.returncode}"]
        return Measurement(scene, worlds, configuration, None, {"reason": lines[-1]})
    detail = json.loads(process.stdout.strip().splitlines()[-1])
    return Measurement(scene, worlds, configuration, detail["world_steps_per_second"], detail)


def _table(results: list[Measurement]) -> Table:
    """Return all results with the ratio of Pluriverse to each peer that ran in the same way."""
    table = Table(title="World-steps per second, median")
    for column in ("scene", "worlds", "engine", "threads", "steps a call", "rate", "Pluriverse / this"):
        table.add_column(column, justify="left" if column in ("scene", "engine", "steps a call") else "right")
    for result in results:
        rate = f"{result.rate:,.0f}" if result.rate else "-"
        ours = _ours(results, result)
        ratio = f"{ours / result.rate:.2f}" if ours and result.rate else ""
        way = result.configuration
        table.add_row(result.scene, str(result.worlds), way.engine, str(way.threads), way.call, rate, ratio)
    return table


def _ours(results: list[Measurement], peer: Measurement) -> float | None:
    """Return the rate of Pluriverse on the same scene with as many worlds, threads and calls."""
    if peer.configuration.engine == "pluriverse":
        return None
    same = dataclasses.replace(peer.configuration, engine="pluriverse")
    for result in results:
        if (result.scene, result.worlds, result.configuration) == (peer.scene, peer.worlds, same):
            return result.rate
    return None


def _document(results: list[Measurement]) -> dict[str, object]:
    """Return the results with the machine that they were measured on."""
    return {
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "system": platform.platform()},
        "results": [dataclasses.asdict(result) for result in results],
    }


def _processor() -> str:
    """Return the name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


if __name__ == "__main__":
    main()
