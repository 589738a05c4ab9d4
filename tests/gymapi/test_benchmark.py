"""The benchmark of the tensor path runs."""

import re
import subprocess
import sys
from pathlib import Path


def test_benchmark_prints_the_overhead():
    command = [sys.executable, "-m", "benchmarks.gymapi", "--envs", "4", "--frames", "2", "--repeats", "1"]
    folder = Path(__file__).resolve().parents[2]
    process = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=300)
    assert re.search(r"tensor path: +\d+\.\d+ ms a frame\noverhead: +-?\d+\.\d+ %", process.stdout)
