"""How long it takes to build many worlds, and the memory they hold: `python -m benchmarks.building`.

A peer is measured, too, where its interpreter is given (`--newton-python`).
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.scenes import ASSETS

REPOSITORY = Path(__file__).resolve().parent.parent
ROBOTS = (
    "unitree_go1/go1.xml",
    "unitree_g1/g1.xml",
    "franka_description/urdfs/fr3_franka_hand.urdf",
    "anymal_c_simple_description/urdf/anymal.urdf",
    "allegro_hand_description/allegro_hand_description_right.urdf",
    "newton_examples/nv_ant.xml",
    "newton_examples/nv_humanoid.xml",
    "newton_examples/quadruped.urdf",
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.building", description=__doc__)
    parser.add_argument("--worlds", type=int, default=16384, help="worlds in all")
    parser.add_argument("--newton-python", help="interpreter with newton[sim]")
    arguments = parser.parse_args()
    engines = [("pluriverse", sys.executable)]
    if arguments.newton_python:
        engines.append(("newton", arguments.newton_python))
    for title, robots in (("Go1", ROBOTS[:1]), ("8 robots", ROBOTS)):
        for engine, interpreter in engines:
            command = [interpreter, "-m", "benchmarks.engines.build", engine]
            command += [str(ASSETS / robot) for robot in robots]
            command += ["--worlds", str(arguments.worlds // len(robots))]
            process = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
            if process.returncode != 0:
                print(f"{title}, {engine}: {process.stderr.strip().splitlines()[-1]}")
                continue
            figures = json.loads(process.stdout.strip().splitlines()[-1])
            arrays, held, peak = (figures[f"{name}_bytes"] / 2**20 for name in ("payload", "held", "peak"))
            print(
                f"{title}, {figures['worlds']:,} worlds, {engine} {figures['version']}: "
                f"import {figures['import_s']:.2f} s, replicate {figures['replicate_s']:.2f} s, "
                f"finalize {figures['finalize_s']:.2f} s; "
                f"arrays {arrays:,.0f} MiB, held {held:,.0f} MiB, at most {peak:,.0f} MiB"
            )


if __name__ == "__main__":
    main()
