"""Files that a simulation writes and reads: killed while writing, damaged, and forged."""

import contextlib
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pluriverse import Simulation
from pluriverse.files import replace_file
from pluriverse.solvers import SolverMuJoCo
from tests.reliability.scenes import make_boxes

# Saves the first content, says so, then saves another one for ever: to be killed at any time.
WRITER = """
import sys, numpy as np
from pluriverse.model.archive import write_arrays
number = 0
while True:
    write_arrays(sys.argv[1], {"value": np.full(300_000, number)})
    number += 1
    if number == 1:
        print("ready", flush=True)
"""


def test_a_program_that_is_killed_while_saving_leaves_a_whole_file(tmp_path: Path):
    """At whatever time a program dies, the file is an earlier or a later content, all of it."""
    path = tmp_path / "snapshot.npz"
    for attempt in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
        )
        assert process.stdout is not None
        process.stdout.readline()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.003 * attempt)
        process.kill()
        process.communicate()
        with np.load(path) as archive:
            value = archive["value"]
        assert value.shape == (300_000,)
        assert (value == value[0]).all()


def test_a_file_stays_as_it_is_when_writing_fails(tmp_path: Path):
    """An exception while writing leaves the old content and no other file; links and modes stay."""
    target, link = tmp_path / "real.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    with pytest.raises(FileNotFoundError), replace_file(link) as part:
        part.write_text("half" + Path(tmp_path / "missing").read_text())
    assert target.read_text() == "old"
    with replace_file(link) as part:
        part.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link.txt", "real.txt"]


def test_a_snapshot_of_another_structure_is_refused_by_reset():
    """A model of as many bodies and coordinates in other worlds is another structure."""
    one = Simulation(make_boxes(1, box_count=3), dt=0.01, threads=1)
    three = Simulation(make_boxes(3), dt=0.01, threads=1)
    before = three.state.joint_q.numpy().copy()
    for worlds in (None, [0]):
        with pytest.raises(ValueError, match="another structure"):
            three.reset(worlds, state=one.save())
        with pytest.raises(ValueError, match="another model"):
            three.reset(worlds, state=one.state)
        with pytest.raises(TypeError, match="state"):
            three.reset(worlds, state=before)
    np.testing.assert_array_equal(three.state.joint_q.numpy(), before)


def saved_arrays(simulation: Simulation, path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a saved snapshot."""
    simulation.save(path)
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


FORGERIES: dict[str, Any] = {
    "negative": np.array(-5),
    "list": np.array([1, 2]),
    "text": np.array("step"),
    "six axes": np.zeros((1, 1, 1, 1, 1, 1)),
    "empty": np.zeros(0),
    "complex": np.array(1j),
    "bytes": np.array(b"step"),
    "structured": np.zeros(3, dtype=[("a", "i4")]),
    "date": np.array("2020-01-01", dtype="M8[D]"),
    "huge": np.array(2**64 - 1, dtype=np.uint64),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_every_array_of_a_snapshot_may_be_forged(tmp_path: Path, name: str):
    """Whatever stands in for any array of a snapshot is a ValueError, and changes nothing."""
    model = make_boxes(1)
    simulation = Simulation(model, SolverMuJoCo(model), dt=0.01, threads=1)
    path = tmp_path / "snapshot.npz"
    arrays = saved_arrays(simulation, path)
    before = simulation.state.joint_q.numpy().copy()
    for key in ("version", "structure", "step_count", "world_frozen", "state/joint_q", "model/body_mass"):
        np.savez(path, **{**arrays, key: FORGERIES[name]})
        if key == "step_count" and name == "huge":
            continue
        with pytest.raises(ValueError, match="snapshot"):
            simulation.restore(path)
    np.testing.assert_array_equal(simulation.state.joint_q.numpy(), before)
    np.savez(path, **{**arrays, "solver/qpos": FORGERIES[name]})
    try:
        simulation.restore(path)  # of another kind of solver: left out
    except ValueError as error:
        assert "snapshot" in str(error)  # noqa: PT017
    simulation.step()
    assert np.isfinite(simulation.state.joint_q.numpy()).all()


def header(shape: str, descr: str = "'<f8'") -> bytes:
    """Return the beginning of an array in a file that claims a shape and type."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


CONTENTS = {
    "shape of a petabyte": header(f"({2**50},)"),
    "negative shape": header("(-1,)"),
    "shape beyond 64 bits": header(f"({2**80},)"),
    "shape of texts": header("('a',)"),
    "empty": b"",
    "cut short": header("(4,)") + b"\0" * 8,
    "objects": header("(1,)", "'|O'") + b"\x80\x04N.",
    "code": header("__import__('os').system('true')"),
    "nested": header("(" * 500 + ")" * 500),
    "unknown type": header("(1,)", "'<q99'"),
    "unknown format": b"\x93NUMPY\x09\x00" + b"\0" * 100,
}


@pytest.mark.parametrize("name", CONTENTS)
def test_an_archive_is_believed_only_as_far_as_it_has_bytes(tmp_path: Path, name: str):
    """Forged headers cost no memory and raise a ValueError; so do states."""
    model = make_boxes(1)
    path = tmp_path / "snapshot.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("version.npy", CONTENTS[name])
    with pytest.raises(ValueError, match="is not a"):
        Simulation(model, dt=0.01, threads=1).restore(path)
    with pytest.raises(ValueError, match="is not a"):
        model.state().load(path)


def test_a_compressed_archive_is_refused_before_it_grows(tmp_path: Path):
    """A gigabyte of zeros takes a megabyte of a compressed file."""
    data = io.BytesIO()
    np.lib.format.write_array(data, np.zeros(10_000_000))
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("version.npy", data.getvalue())
    with pytest.raises(ValueError, match="compressed"):
        Simulation(make_boxes(1), dt=0.01, threads=1).restore(path)
