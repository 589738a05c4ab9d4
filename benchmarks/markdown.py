"""Writes the results of `python -m benchmarks --json FILE` as tables of Markdown, one per number of worlds.

`python -m benchmarks.markdown FILE`
"""

import json
import sys
from pathlib import Path
from typing import Any

# Order and headings of the columns: engine, threads, steps in a call.
COLUMNS = {
    ("pluriverse", 1, "many"): "Pluriverse",
    ("mujoco", 1, "many"): "MuJoCo",
    ("newton", 1, "many"): "Newton",
    ("physx", 1, "many"): "PhysX",
    ("pluriverse", 4, "many"): "Pluriverse, 4 threads",
    ("mujoco", 4, "many"): "MuJoCo, 4 threads",
    ("pluriverse", 4, "single"): "Pluriverse, 4 threads, single steps",
    ("mujoco", 4, "single"): "MuJoCo, 4 threads, single steps",
}


def main() -> None:
    """Read the file named on the command line and print."""
    document = json.loads(Path(sys.argv[1]).read_text())
    rates: dict[tuple[str, int], dict[tuple[str, int, str], float | None]] = {}
    for result in document["results"]:
        way = result["configuration"]
        column = (way["engine"], way["threads"], way["call"])
        rates.setdefault((result["scene"], result["worlds"]), {})[column] = result["rate"]
    for worlds in sorted({key[1] for key in rates}):
        rows = {scene: row for (scene, count), row in rates.items() if count == worlds}
        columns = [column for column in COLUMNS if any(column in row for row in rows.values())]
        print(f"### {worlds} world{'s' if worlds > 1 else ''}\n")
        print("| scene | " + " | ".join(COLUMNS[column] for column in columns) + " |")
        print("| --- |" + " ---: |" * len(columns))
        for scene, row in rows.items():
            print(f"| {scene} | " + " | ".join(_cell(row, column) for column in columns) + " |")
        print()


def _cell(row: dict[tuple[str, int, str], float | None], column: Any) -> str:
    """Return a rate with three digits that mean something, or why there is none."""
    if column not in row:
        return ""
    rate = row[column]
    if rate is None:
        return "-"
    digits = max(0, len(str(int(rate))) - 3)
    return f"{round(rate / 10**digits) * 10**digits:,}"


if __name__ == "__main__":
    main()
