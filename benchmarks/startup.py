"""How long a user waits: import, and the first step with an empty and with a filled kernel cache.

`python -m benchmarks.startup [SCENE]` runs each in a process of its own, several times, and prints medians.
Python keeps its bytecode meanwhile, as it does where nothing forbids that and as pip makes it: where
`PYTHONDONTWRITEBYTECODE` is set, each start compiles all sources of Python anew.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

IMPORT_WARP = "import warp; warp.init()"
IMPORT_PLURIVERSE = "import warp; warp.init(); import pluriverse; pluriverse.ModelBuilder"

#: Prints what lies between a model and the end of its first steps: solver, kernels, recording [s].
FIRST_STEPS = """
import sys, time
import pluriverse as pv
loaded = pv.load_scene(sys.argv[1], device="cpu")
begin = time.perf_counter()
simulation = pv.Simulation(loaded.model, dt=0.005)
simulation.reset()
simulation.step(4)
print(time.perf_counter() - begin)
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("scene", nargs="?", default="mixed", help="scene that is run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cold-repeats", type=int, default=1)
    arguments = parser.parse_args()
    scene, repeats = arguments.scene, arguments.repeats
    run = ["-m", "pluriverse.cli", "run", scene, "--frames", "1"]

    with tempfile.TemporaryDirectory() as folder:
        caches = [os.path.join(folder, str(index)) for index in range(arguments.cold_repeats)]
        bytecode = os.path.join(folder, "bytecode")
        # The bytecode of what the command imports; its kernels go to a cache that is not used again.
        _duration(run, os.path.join(folder, "unused"), bytecode)

        warp_time = _median(repeats, ["-c", IMPORT_WARP], caches[0], bytecode)
        both_time = _median(repeats, ["-c", IMPORT_PLURIVERSE], caches[0], bytecode)
        print(f"import warp:                 {warp_time:6.2f} s")
        print(f"import pluriverse, beyond:   {both_time - warp_time:6.2f} s")
        cold = statistics.median(_duration(run, cache, bytecode) for cache in caches)
        print(f"{scene}, empty cache:  {cold:6.2f} s to the end of the first step")
        warm = _median(repeats, run, caches[0], bytecode)
        print(f"{scene}, filled cache: {warm:6.2f} s to the end of the first step")
        first_steps = ["-c", FIRST_STEPS, scene]
        # Steps of a script need kernels that one frame of the command does not.
        _output(first_steps, caches[0], bytecode)
        own = statistics.median(float(_output(first_steps, caches[0], bytecode)) for _ in range(repeats))
        print(f"{scene}, filled cache: {own:6.2f} s of it from a model to the end of its first steps")


def _median(repeats: int, arguments: list[str], cache: str, bytecode: str) -> float:
    return statistics.median(_duration(arguments, cache, bytecode) for _ in range(repeats))


def _duration(arguments: list[str], cache: str, bytecode: str) -> float:
    """Return how long Python takes for so much [s]."""
    begin = time.perf_counter()
    _output(arguments, cache, bytecode)
    return time.perf_counter() - begin


def _output(arguments: list[str], cache: str, bytecode: str) -> str:
    """Return what Python prints."""
    environment = dict(os.environ, WARP_CACHE_PATH=cache, PYTHONPYCACHEPREFIX=bytecode)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    # Warp prints about itself first.
    return done.stdout.splitlines()[-1] if done.stdout else ""


if __name__ == "__main__":
    main()
