"""How long a user waits: import, and the first step with an empty and with a filled kernel cache.

`python -m benchmarks.startup [SCENE]` runs each in a process of its own, several times, and prints medians.
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("scene", nargs="?", default="mixed", help="scene that is run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cold-repeats", type=int, default=1)
    arguments = parser.parse_args()
    run = ["-m", "pluriverse.cli", "run", arguments.scene, "--frames", "1"]

    with tempfile.TemporaryDirectory() as cache:
        warp_time = _median(arguments.repeats, ["-c", IMPORT_WARP])
        both_time = _median(arguments.repeats, ["-c", IMPORT_PLURIVERSE])
        print(f"import warp:                 {warp_time:6.2f} s")
        print(f"import pluriverse, beyond:   {both_time - warp_time:6.2f} s")
        cold = []
        for index in range(arguments.cold_repeats):
            cold.append(_duration(run, os.path.join(cache, str(index))))
        print(
            f"{arguments.scene}, empty cache:  {statistics.median(cold):6.2f} s to the end of the first step"
        )
        warm = _median(arguments.repeats, run, os.path.join(cache, "0"))
        print(f"{arguments.scene}, filled cache: {warm:6.2f} s to the end of the first step")


def _median(repeats: int, arguments: list[str], cache: str | None = None) -> float:
    return statistics.median(_duration(arguments, cache) for _ in range(repeats))


def _duration(arguments: list[str], cache: str | None = None) -> float:
    """Return how long Python takes for so much [s]."""
    environment = dict(os.environ)
    if cache is not None:
        environment["WARP_CACHE_PATH"] = cache
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
