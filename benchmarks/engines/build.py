"""Building: how long an engine takes to make many worlds of some robots, and the memory it holds after.

Run by `benchmarks.building` with the interpreter of the engine: `pluriverse` or `newton`, whose builders have
the same names.
"""

import argparse
import contextlib
import ctypes
import gc
import io
import json
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import warp as wp


def resident_bytes() -> int:
    """Return the memory that this process holds now [B], without what it has freed."""
    gc.collect()
    # The C library keeps freed memory for later; without this it would count as held.
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def payload_bytes(model: Any) -> int:
    """Return the size of all arrays of a model [B]."""
    arrays = {id(value): value for value in vars(model).values() if isinstance(value, wp.array)}
    return sum(int(array.capacity) for array in arrays.values())


def main() -> None:
    """Build, and print figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines.build")
    parser.add_argument("engine", choices=["pluriverse", "newton"])
    parser.add_argument("robots", nargs="+", type=Path)
    parser.add_argument("--worlds", type=int, required=True, help="worlds of each robot")
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    warnings.simplefilter("ignore")  # what the importers cannot represent is not the subject here
    if arguments.engine == "newton":
        import newton as engine
    else:
        import pluriverse as engine
    assets = next(parent for path in arguments.robots for parent in path.parents if parent.name == "assets")
    engine.ModelBuilder().finalize("cpu")  # loads what the first use loads
    robots = []
    begin = time.perf_counter()
    for path in arguments.robots:
        robot = engine.ModelBuilder()
        with contextlib.redirect_stdout(io.StringIO()):
            if path.suffix == ".urdf":
                robot.add_urdf(_resolved(path, assets))
            else:
                robot.add_mjcf(str(path))
        robots.append(robot)
    imported = time.perf_counter()
    before = resident_bytes()
    builder = engine.ModelBuilder()
    replicated = time.perf_counter()
    for robot in robots:
        builder.replicate(robot, arguments.worlds)
    finalizing = time.perf_counter()
    model = builder.finalize("cpu")
    done = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    del builder
    print(
        json.dumps(
            {
                "version": engine.__version__,
                "import_s": imported - begin,
                "replicate_s": finalizing - replicated,
                "finalize_s": done - finalizing,
                "payload_bytes": payload_bytes(model),
                "held_bytes": resident_bytes() - before,
                "peak_bytes": peak - before,
                "bodies": model.body_count,
                "worlds": model.world_count,
            }
        )
    )


def _resolved(path: Path, assets: Path) -> str:
    """Return the text of a URDF file with absolute names of its meshes, without what is only seen."""
    from xml.etree import ElementTree

    root = ElementTree.parse(path).getroot()
    for link in root.iter("link"):
        for visual in link.findall("visual"):
            link.remove(visual)
    for mesh in root.iter("mesh"):
        name = mesh.get("filename", "")
        if name.startswith("package://"):
            mesh.set("filename", name.replace("package:/", str(assets)))
        else:
            mesh.set("filename", str((path.parent / name).resolve()))
    return ElementTree.tostring(root, encoding="unicode")


if __name__ == "__main__":
    main()
