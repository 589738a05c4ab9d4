"""Loops of one's own with viewers that write files and make pictures."""

import numpy as np
import pytest

import pluriverse as newton
from pluriverse.recording import RecordedRun


@pytest.fixture(scope="module")
def model():
    ball = newton.ModelBuilder()
    ball.add_shape_sphere(ball.add_body(label="ball"), radius=0.1)
    ball.joint_q[:3] = (0.0, 0.0, 1.0)
    builder = newton.ModelBuilder()
    builder.add_ground_plane()
    builder.replicate(ball, 2, spacing=(1.0, 0.0, 0.0))
    return builder.finalize("cpu")


def run(viewer, model, frame_count, with_contacts=False):
    """Fall for some frames of 1/60 s, as scripts have the loop."""
    viewer.set_model(model)
    viewer.set_camera((4.0, 0.0, 2.0), -15.0, 180.0)
    solver, pipeline = newton.solvers.SolverSAP(model), newton.CollisionPipeline(model)
    contacts, control = pipeline.contacts(), model.control()
    state_0, state_1 = model.state(), model.state()
    for frame in range(frame_count):
        if not viewer.is_running():
            break
        for _ in range(2):
            state_0.clear_forces()
            viewer.apply_forces(state_0)
            pipeline.collide(state_0, contacts)
            solver.step(state_0, state_1, control, contacts, 1.0 / 120.0)
            state_0, state_1 = state_1, state_0
        viewer.begin_frame((frame + 1) / 60.0)
        viewer.log_state(state_0)
        if with_contacts:
            viewer.log_contacts(contacts, state_0)
        viewer.end_frame()
    return state_0


def test_a_loop_is_recorded_and_read_back(model, tmp_path):
    viewer = newton.viewer.ViewerFile(str(tmp_path / "run.pvr"))
    last = run(viewer, model, 30, with_contacts=True)
    viewer.save_recording(tmp_path / "copy.pvr")
    assert viewer.get_frame_count() == 30
    with RecordedRun(tmp_path / "copy.pvr") as recording:
        np.testing.assert_allclose(recording.time, np.arange(1, 31) / 60.0)
        assert recording.contacts(29).point.shape[1] == 3
    reader = newton.viewer.ViewerFile(tmp_path / "run.pvr")
    reader.load_recording()
    state = model.state()
    reader.load_state(state, 29)
    assert (state.body_q.numpy() == last.body_q.numpy()).all()
    assert state.body_q.numpy()[0, 2] < 0.9  # it fell
    with pytest.raises(IndexError, match="frame 30 does not exist; there are 30"):
        reader.load_state(state, 30)


def test_a_loop_becomes_a_stage(model, tmp_path):
    usd = pytest.importorskip("pxr.Usd")
    viewer = newton.viewer.ViewerUSD(output_path=str(tmp_path / "run.usda"), fps=60, num_frames=10)
    run(viewer, model, 100)
    viewer.close()
    stage = usd.Stage.Open(str(tmp_path / "run.usda"))
    assert (stage.GetTimeCodesPerSecond(), stage.GetEndTimeCode()) == (60.0, 9.0)
    assert sum("ball" in prim.GetName() for prim in stage.Traverse()) >= 2


def test_pictures_of_a_loop_follow_it(model):
    viewer = newton.viewer.ViewerGL(width=96, height=64, headless=True)
    with pytest.raises(RuntimeError, match="no state was logged"):
        viewer.get_frame()
    run(viewer, model, 1)
    first = viewer.get_frame().numpy()
    run(viewer, model, 20)
    assert first.shape == (64, 96, 3)
    assert (viewer.get_frame(target_image=None).numpy() != first).any()


def test_what_viewers_cannot_do_is_said(model, tmp_path):
    with pytest.raises(RuntimeError, match=r"no window to draw in.*Pass headless=True"):
        newton.viewer.ViewerGL()
    with pytest.raises(ValueError, match=r"scaling is 100\.0, but lengths of the stage are in metres"):
        newton.viewer.ViewerUSD(tmp_path / "run.usd", scaling=100.0)
    with pytest.raises(RuntimeError, match=r"ViewerUSD: no model was set. Call set_model\(model\) first"):
        newton.viewer.ViewerUSD(tmp_path / "run.usd").log_state(model.state())


def test_a_loop_is_shown_in_the_browser(model):
    pytest.importorskip("viser")
    viewer = newton.viewer.ViewerViser(num_frames=90, verbose=False)
    solver, pipeline = newton.solvers.SolverSAP(model), newton.CollisionPipeline(model)
    contacts, control = pipeline.contacts(), model.control()
    state_0, state_1 = model.state(), model.state()
    viewer.set_model(model)
    viewer.set_camera((4.0, 0.0, 2.0), -15.0, 180.0)
    viewer.set_visible_worlds([0])
    frames = 0
    while viewer.is_running():
        if viewer.should_step():
            state_0.clear_forces()
            viewer.apply_forces(state_0)
            pipeline.collide(state_0, contacts)
            solver.step(state_0, state_1, control, contacts, 1.0 / 60.0)
            state_0, state_1 = state_1, state_0
            frames += 1
        viewer.begin_frame(frames / 300.0)  # shown five times as fast
        viewer.log_state(state_0)
        viewer.log_contacts(contacts, state_0)
        viewer.log_lines("line", [(0, 0, 0)], [(0, 0, 1)], colors=(1.0, 0.0, 0.0))
        viewer.log_points("point", [(0, 0, 0)], radii=0.02)
        viewer.log_lines("line", None, None)
        viewer.end_frame()
        if frames == 1:
            assert viewer.url.startswith("http://localhost:")
            np.testing.assert_allclose(viewer.window.server.initial_camera.position, (4.0, 0.0, 2.0))
            viewer.window.pull_body(0)
            viewer.window.pull.target = np.array([0.0, 0.0, 2.0])
        if frames == 40:
            assert viewer.window.source.moment().body_q.shape == (2, 7)
            viewer.window.is_playing = False
            assert viewer.is_paused()
            assert not viewer.should_step()
            viewer.window.step_once()
            assert viewer.should_step()
            assert not viewer.should_step()
            viewer.window.is_playing = True
    heights = state_0.body_q.numpy()[:, 2]
    assert heights[0] > 1.2  # pulled up
    assert heights[1] == pytest.approx(0.1, abs=1e-3)  # fallen
    with pytest.warns(newton.warnings.PluriverseWarning, match="'cloth' is not drawn"):
        viewer.log_mesh("cloth", None)
    viewer.close()
    assert not viewer.is_running()
