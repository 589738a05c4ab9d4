"""The viewer of recordings without a browser: playing, scrubbing, what is drawn."""

from types import SimpleNamespace

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.recording import RecordedRun
from pluriverse.viewer import RecordingViewer
from pluriverse.viewer.overlays import Overlay
from tests.recording.variant_run import record_variant_run
from tests.viewer.waiting import wait_until

pytest.importorskip("viser", reason="the extra 'view' is not installed")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.pvr"
    with (
        pv.load_scene("mixed").simulation(threads=1) as simulation,
        simulation.record(path, worlds=[0, 3, 7]),
    ):
        simulation.step(100)
    return path


def test_scrubbing_shows_the_frames(path):
    """Each frame that is asked for is drawn with the poses that it holds."""
    with pv.view(path, verbose=False) as viewer:
        viewer.is_playing = False
        assert viewer.stage.environments.tolist() == [0, 3, 7]
        with viewer.changing() as stage:
            for overlay in Overlay:
                stage.show(overlay, is_shown=True)
        for frame in (9, 2, viewer.recording.frame_count - 1):
            viewer.frame = frame
            body_q = viewer.recording.moment(frame).body_q

            def is_drawn(body_q=body_q):
                with viewer.changing() as stage:
                    return all(
                        np.allclose(
                            handle.batched_positions,
                            stage.view.visual.poses(body_q, each.shapes)[:, :3] + stage.offsets[each.slot],
                            atol=1e-5,
                        )
                        for each in stage.view._drawn
                        for handle, _ in each.handles
                    )

            wait_until(is_drawn)
            wait_until(lambda frame=frame: viewer.panel._slider.value == frame)
            assert f"step {viewer.recording.moment(frame).step_count}" in viewer.panel._status.content
        with pytest.raises(IndexError, match="frame 99 does not exist"):
            viewer.frame = 99


def test_it_plays_and_begins_again(path):
    with pv.view(path, verbose=False) as viewer:
        viewer.speed = 4.0
        seen = set()
        wait_until(lambda: seen.add(viewer.frame) or (max(seen) > 8 and viewer.frame < max(seen) - 3))
        viewer.is_repeating = False
        wait_until(lambda: not viewer.is_playing)
        assert viewer.frame == viewer.recording.frame_count - 1


def test_repeating_is_looked_at_once_at_the_end():
    """Whoever ends it at that moment must not find a recording that stands still at its beginning."""
    answers = iter([True, False])

    class Changed:
        is_repeating = property(lambda self: next(answers))
        recording, _position, is_playing = SimpleNamespace(duration=1.0), 0.9, True

    viewer = Changed()
    RecordingViewer._advance(viewer, 0.5)
    assert (viewer._position, viewer.is_playing) == (0.0, True)


def test_wrong_recordings_and_worlds_are_refused(path, tmp_path):
    with pytest.raises(IndexError, match="world 4 does not exist; there are worlds 0, 3, 7"):
        pv.view(path, worlds=[4])
    with pytest.raises(FileNotFoundError):
        pv.view(tmp_path / "none.pvr")
    with pytest.raises(ValueError, match=r"Show scenes and robot files by `pluriverse view robot\.urdf`"):
        pv.view("robot.urdf")
    with RecordedRun(path) as recording:
        with pv.view(recording, worlds=3, verbose=False) as viewer:
            assert viewer.stage.worlds.tolist() == [3]
        recording.moment(0)  # stays open


def test_variants_of_a_recording_are_drawn_as_they_were(tmp_path):
    record_variant_run(tmp_path / "a.pvr")
    with pv.view(tmp_path / "a.pvr", verbose=False) as viewer:
        viewer.is_playing = False
        for frame, count in ((0, 3), (viewer.recording.frame_count - 1, 2), (0, 3)):
            viewer.frame = frame

            def shape_count():
                with viewer.changing() as stage:
                    return stage.view.instance_count

            wait_until(lambda count=count: shape_count() == count)


def test_other_worlds_are_drawn_where_they_were_while_paused(path):
    """Worlds that are chosen while the recording stands still are put where the frame has them at once."""
    with pv.view(path, verbose=False) as viewer:
        viewer.is_playing = False
        viewer.frame = 9
        wait_until(lambda: viewer.source.frame == 9)
        viewer.show([3])
        body_q = viewer.recording.moment(9).body_q

        def is_drawn():
            with viewer.changing() as stage:
                return stage.worlds.tolist() == [3] and all(
                    np.allclose(
                        handle.batched_positions,
                        stage.view.visual.poses(body_q, each.shapes)[:, :3],
                        atol=1e-5,
                    )
                    for each in stage.view._drawn
                    for handle, _ in each.handles
                )

        wait_until(is_drawn)
