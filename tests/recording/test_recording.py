"""Recordings: what is in the file is what happened, whatever ended the program that wrote it."""

import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import zipfile

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.recording import RecordedRun
from pluriverse.recording.moment import contacts_of
from tests.recording.variant_run import record_variant_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The mixed scene for half a second, worlds 0, 3 and 7 recorded, with what it was after each frame."""
    path = tmp_path_factory.mktemp("run") / "run.pvr"
    seen = []
    with pv.load_scene("mixed").simulation(threads=1) as simulation:

        class Watch:
            def steps_to_next(self):
                return 10

            def observe(self):
                worlds = np.array([0, 3, 7])
                seen.append((simulation.state.body_q.numpy().copy(), contacts_of(simulation, worlds)))

        with simulation.record(path, worlds=[7, 0, 3], fps=20) as writer:
            simulation.add_observer(Watch())
            simulation.step(100)
        assert writer.frame_count == 11
        pictures = [
            pv.draw(simulation, worlds=[7, 0], size=(96, 64), samples=2),
            pv.draw(simulation, worlds=[3], size=(96, 64), samples=2, geometry="collision"),
        ]
        yield path, simulation, seen, pictures


def test_frames_hold_the_bits_of_the_state(run):
    path, simulation, seen, _ = run
    model = simulation.model
    bodies = np.flatnonzero(np.isin(model.body_world.numpy(), [0, 3, 7]))
    with RecordedRun(path) as recording:
        assert recording.is_complete
        assert recording.frame_count == 11
        assert recording.model.world_count == model.world_count
        np.testing.assert_allclose(recording.time, 0.05 * np.arange(11), atol=1e-12)
        for frame, (body_q, contacts) in enumerate(seen, start=1):
            moment = recording.moment(frame)
            np.testing.assert_array_equal(moment.body_q, body_q[bodies])
            recorded = recording.contacts(frame)
            np.testing.assert_array_equal(recorded.world, contacts.world)
            np.testing.assert_allclose(recorded.force, contacts.force, rtol=1e-6)
        assert recording.array("joint_q").shape == (11, recording.model.joint_coord_count)
        assert recording.report["step_count"] == 100
        labels = [model.body_label[body] for body in bodies]
        assert recording.model.body_label == labels


def test_a_closed_recording_is_an_ordinary_archive(run):
    with np.load(run[0]) as archive:
        assert float(archive["frame/00000004"]["time"]) == pytest.approx(0.2)


def test_pictures_of_a_recording_are_those_of_the_simulation(run):
    path, _, _, pictures = run
    with RecordedRun(path) as recording:
        recording.show_frame(-1)
        again = pv.draw(recording.model, worlds=[7, 0], size=(96, 64), samples=2)
        np.testing.assert_array_equal(again, pictures[0])
        again = pv.draw(recording.model, worlds=[3], size=(96, 64), samples=2, geometry="collision")
        np.testing.assert_array_equal(again, pictures[1])


def test_a_recording_cut_anywhere_has_the_frames_before(run, tmp_path):
    """Whatever byte a file ends at, each frame whose bytes are all there is read, and no other."""
    data = run[0].read_bytes()
    ends = []
    with zipfile.ZipFile(run[0]) as archive:
        for entry in archive.infolist():
            if entry.filename.startswith("frame/"):
                begin = entry.header_offset + 30 + len(entry.filename)
                ends.append(begin + entry.file_size)
    path = tmp_path / "cut.pvr"
    cuts = [
        *ends,
        *(end - 1 for end in ends[1:]),
        *np.linspace(ends[0], len(data) - 30, 9, dtype=int).tolist(),
    ]
    for cut in cuts:
        path.write_bytes(data[:cut])
        with RecordedRun(path) as recording:
            assert recording.frame_count == sum(end <= cut for end in ends)
            assert not recording.is_complete
            recording.moment(-1)
    path.write_bytes(data[: ends[0] - 1])
    with pytest.raises(ValueError, match="ends before its first frame"):
        RecordedRun(path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_program_leaves_its_frames(tmp_path):
    path = tmp_path / "killed.pvr"
    program = f"""
        import os, signal
        import pluriverse as pv
        builder = pv.ModelBuilder()
        builder.add_shape_sphere(builder.add_body(xform=(0, 0, 5, 0, 0, 0, 1)), radius=0.1)
        simulation = pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1)
        with simulation.record({str(path)!r}, fps=50):
            simulation.step(20)
            os.kill(os.getpid(), signal.SIGKILL)
    """
    code = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False).returncode
    assert code == -signal.SIGKILL
    with RecordedRun(path) as recording:
        assert recording.frame_count == 11
        assert recording.report is None
        fallen = 5.0 - recording.moment(-1).body_q[0, 2]
        assert fallen == pytest.approx(0.5 * 9.81 * 0.01**2 * 20 * 21, rel=1e-4)


def write_with(path, source, **changes):
    """Write a copy of a recording with other entries."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.infolist():
            name = entry.filename.removesuffix(".npy")
            data = old.read(entry)
            if name in changes:
                buffer = io.BytesIO()
                np.save(buffer, changes[name])
                data = buffer.getvalue()
            new.writestr(entry.filename, data)


def text(value):
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def test_other_files_are_refused(run, tmp_path):
    path = tmp_path / "other.pvr"
    with pytest.raises(FileNotFoundError):
        RecordedRun(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="is not a recording of a simulation"):
        RecordedRun(path)
    path.write_text("<robot name='none'/>")
    with pytest.raises(ValueError, match="is not a recording of a simulation: it begins with other bytes"):
        RecordedRun(path)
    np.savez(path.open("wb"), a=np.zeros(3))
    with pytest.raises(ValueError, match="is not a recording of a simulation: it has no 'header'"):
        RecordedRun(path)
    write_with(path, run[0], header=text({"kind": "pluriverse recording", "version": 99, "program": "9.9"}))
    with pytest.raises(ValueError, match="version 99 of the format, written by pluriverse 9"):
        RecordedRun(path)
    write_with(path, run[0], header=text({"kind": "pluriverse recording", "version": 1}))
    with pytest.raises(ValueError, match="is not a recording of a simulation: 'dt'"):
        RecordedRun(path)


def test_damage_is_found_by_its_checksum(run, tmp_path):
    data = bytearray(run[0].read_bytes())
    with zipfile.ZipFile(run[0]) as archive:
        entry = archive.getinfo("frame/00000005.npy")
    data[entry.header_offset + entry.file_size] ^= 0xFF
    path = tmp_path / "damaged.pvr"
    path.write_bytes(data)
    with RecordedRun(path) as recording:
        recording.moment(4)
        with pytest.raises(ValueError, match="'frame/00000005' is damaged"):
            recording.moment(5)


def test_arrays_that_do_not_fit_are_refused(run, tmp_path):
    path = tmp_path / "misfit.pvr"
    for name in ("model/shape_scale", "model/body_count", "model/joint_parent"):
        write_with(path, run[0], **{name: np.zeros(2, dtype=np.int32)})
        with pytest.raises(ValueError, match="is not a recording of a simulation"):
            RecordedRun(path)


def test_wrong_arguments_are_refused(run, tmp_path):
    path, simulation, _, _ = run
    with pytest.raises(IndexError, match="world 99 does not exist"):
        simulation.record(tmp_path / "a.pvr", worlds=[99])
    with pytest.raises(ValueError, match="fps is 0"):
        simulation.record(tmp_path / "a.pvr", fps=0)
    with pytest.raises(FileNotFoundError):
        simulation.record(tmp_path / "none" / "a.pvr")
    with pytest.raises(
        ValueError, match=r"a\.mp4' ends in '\.mp4', but the name of a recording ends in \.pvr"
    ):
        simulation.record(tmp_path / "a.mp4")
    assert not (tmp_path / "a.mp4").exists()
    with RecordedRun(path) as recording:
        with pytest.raises(IndexError, match="frame 11 does not exist"):
            recording.moment(11)
        with pytest.raises(IndexError, match=r"world 4 was not recorded; .* has 0, 3, 7"):
            recording.film([4])
        with pytest.raises(AttributeError, match="keeps what can be looked at"):
            _ = recording.model.body_flags
    writer = simulation.record(tmp_path / "b.pvr", worlds=0)
    writer.close(with_report=False)
    with pytest.raises(ValueError, match="was closed"):
        writer.capture()


def test_looks_and_meshes_come_along(tmp_path):
    """Textures, opacity, meshes and height fields look as before, also after they changed half way."""
    from pluriverse import Appearance, Heightfield, Mesh, Texture

    checker = Texture(np.kron([[0, 255], [255, 0]], np.ones((4, 4))).astype(np.uint8))
    builder = pv.ModelBuilder()
    body = builder.add_body(xform=(0.0, 0.0, 0.6, 0.0, 0.0, 0.0, 1.0))
    box = builder.add_shape_box(body, hx=0.2, hy=0.2, hz=0.2, color=(1.0, 0.5, 0.2))
    builder.set_appearance(box, Appearance(texture=checker, alpha=0.5))
    ring = builder.add_body(xform=(0.6, 0.0, 0.6, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_mesh(ring, mesh=Mesh.create_box(0.1, 0.2, 0.1), color=(0.2, 0.2, 0.9))
    hills = Heightfield(np.random.default_rng(0).uniform(size=(8, 8)), 8, 8, 2.0, 2.0, 0.0, 0.2)
    builder.add_shape_heightfield(heightfield=hills)
    with pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1) as simulation:
        pictures = []
        with simulation.record(tmp_path / "a.pvr", fps=10) as _:
            simulation.step(10)
            pictures.append(pv.draw(simulation, size=(64, 48), samples=1))
            colors = simulation.model.shape_color.numpy().copy()
            colors[1] = (0.0, 1.0, 0.0)
            simulation.model.shape_color.assign(colors)
            simulation.step(10)
            pictures.append(pv.draw(simulation, size=(64, 48), samples=1))
    assert (pictures[0] != pictures[1]).any()
    with RecordedRun(tmp_path / "a.pvr") as recording:
        for frame, picture in zip((1, 2), pictures, strict=True):
            recording.show_frame(frame)
            np.testing.assert_array_equal(pv.draw(recording.model, size=(64, 48), samples=1), picture)


def test_environments_are_recorded_in_the_worlds_that_they_are_in(tmp_path):
    """An environment that changes its variant shows the other world from then on."""
    last, now = record_variant_run(tmp_path / "a.pvr")
    with RecordedRun(tmp_path / "a.pvr") as recording:
        before, after = recording.worlds_of(0), recording.worlds_of(-1)
        np.testing.assert_array_equal(after, last)
        assert before[0] == after[0]
        assert before[1] != after[1]
        bodies = recording.model.body_world.numpy() == after[1]
        assert bodies.sum() == 1
        assert (recording.model.body_world.numpy() == before[1]).sum() == 2
        np.testing.assert_array_equal(recording.moment(-1).body_q[bodies], now)


def test_time_that_goes_back_is_recorded_on(tmp_path):
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1)
    with simulation.record(tmp_path / "a.pvr", fps=10):
        simulation.step(20)
        simulation.reset()
        simulation.step(20)
    with RecordedRun(tmp_path / "a.pvr") as recording:
        np.testing.assert_allclose(recording.time, [0.0, 0.1, 0.2, 0.1, 0.2], atol=1e-9)


def test_a_recording_without_a_block_runs_from_its_call_until_it_is_closed(tmp_path):
    """Its file held no frame, and said so only when it was read."""
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1)
    writer = simulation.record(tmp_path / "a.pvr", fps=10)
    simulation.step(20)
    writer.stop()
    simulation.step(20)
    writer.start()
    simulation.step(10)
    writer.close()
    simulation.step(20)
    with RecordedRun(tmp_path / "a.pvr") as recording:
        np.testing.assert_allclose(recording.time, [0.0, 0.1, 0.2, 0.4, 0.5], atol=1e-9)
        assert recording.is_complete


def test_recording_changes_no_bits(tmp_path):
    states = []
    for is_recorded in (False, True):
        with pv.load_scene("quadruped").simulation(threads=1) as simulation:
            if is_recorded:
                with simulation.record(tmp_path / "a.pvr", fps=60):
                    simulation.step(100)
            else:
                simulation.step(100)
            states.append(simulation.state.joint_q.numpy().copy())
    np.testing.assert_array_equal(*states)


def test_a_file_that_is_still_written_can_be_read(tmp_path):
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1)
    with simulation.record(tmp_path / "a.pvr", fps=10):
        simulation.step(30)
        with RecordedRun(tmp_path / "a.pvr") as recording:
            assert recording.frame_count == 4
            assert not recording.is_complete


def test_a_full_disk_is_an_error_that_costs_no_frame(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1)
    full = tmp_path / "full.pvr"
    full.symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"[Nn]o space"):
        simulation.record(full)


def test_several_threads_read_frames_at_once(run):
    """A viewer reads in a thread while a program reads too: all get the frames that they ask for."""
    from concurrent.futures import ThreadPoolExecutor

    with RecordedRun(run[0]) as recording:
        expected = [recording.moment(frame).body_q for frame in range(11)]
        frames = [frame for _ in range(60) for frame in range(11)]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda frame: recording.moment(frame).body_q, frames))
    for frame, body_q in zip(frames, found, strict=True):
        np.testing.assert_array_equal(body_q, expected[frame])
