"""How much faster more threads are: `python -m benchmarks.scaling [--scenes go1] [--worlds 64]`."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.scenes import SCENES, write_scene

REPOSITORY = Path(__file__).resolve().parent.parent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--scenes", nargs="+", default=["go1", "g1", "pile8"], choices=list(SCENES))
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2, 3, 4])
    parser.add_argument("--call", choices=["many", "single"], default="many")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for scene in arguments.scenes:
            path = write_scene(scene, Path(folder))
            rates = [_rate(path, arguments, threads) for threads in arguments.threads]
            for threads, rate in zip(arguments.threads, rates, strict=True):
                label = f"{scene} x {arguments.worlds}, {threads} threads"
                print(f"{label}: {rate:10,.0f} world-steps/s, {rate / rates[0]:.2f} times one thread")


def _rate(path: Path, arguments: argparse.Namespace, threads: int) -> float:
    command = [sys.executable, "-m", "benchmarks.engines.pluriverse", str(path)]
    command += ["--worlds", str(arguments.worlds), "--threads", str(threads)]
    command += ["--call", arguments.call, "--repeats", str(arguments.repeats)]
    process = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return float(json.loads(process.stdout.strip().splitlines()[-1])["world_steps_per_second"])


if __name__ == "__main__":
    main()
