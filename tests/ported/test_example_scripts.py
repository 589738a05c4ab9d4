"""Scripts with a class `Example`, as Newton's examples are written, with the import changed."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import warp as wp

import pluriverse as newton
import pluriverse.examples


class Example:
    """A ball that falls onto the ground."""

    def __init__(self, viewer, args):
        self.viewer, self.sim_time, self.frame_dt = viewer, 0.0, 1.0 / 60.0
        builder = newton.ModelBuilder()
        builder.add_ground_plane()
        ball = builder.add_body(xform=wp.transform((0.0, 0.0, 1.0), wp.quat_identity()), label="ball")
        builder.add_shape_sphere(ball, radius=0.1)
        self.model = builder.finalize("cpu")
        self.solver = newton.solvers.SolverSAP(self.model)
        self.pipeline = newton.examples.create_collision_pipeline(self.model, args)
        self.contacts, self.control = self.pipeline.contacts(), self.model.control()
        self.state_0, self.state_1 = self.model.state(), self.model.state()
        self.viewer.set_model(self.model)
        self.step_count = 0

    def step(self):
        self.state_0.clear_forces()
        self.viewer.apply_forces(self.state_0)
        self.pipeline.collide(self.state_0, self.contacts)
        self.solver.step(self.state_0, self.state_1, self.control, self.contacts, self.frame_dt)
        self.state_0, self.state_1 = self.state_1, self.state_0
        self.sim_time += self.frame_dt
        self.step_count += 1

    def test_final(self):
        newton.examples.test_body_state(
            self.model, self.state_0, "ball above the ground", lambda q, qd: q[2] > 0.05 and q[2] < 1.0
        )

    def render(self):
        self.viewer.begin_frame(self.sim_time)
        self.viewer.log_state(self.state_0)
        self.viewer.end_frame()


def start(monkeypatch, *arguments, add=None):
    monkeypatch.setattr(sys, "argv", ["script.py", *arguments])
    parser = newton.examples.create_parser()
    if add is not None:
        add(parser)
    return newton.examples.init(parser)


def test_a_script_runs_and_tests_itself(monkeypatch):
    viewer, args = start(monkeypatch, "--viewer", "null", "--num-frames", "12", "--test")
    example = Example(viewer, args)
    newton.examples.run(example, args)
    assert example.step_count == 12
    assert example.state_0.body_q.numpy()[0, 2] < 1.0


def test_a_broken_state_fails_the_test(monkeypatch):
    viewer, args = start(monkeypatch, "--viewer", "null", "--num-frames", "1", "--test")
    example = Example(viewer, args)
    example.test_final = lambda: example.state_1.body_q.fill_(
        wp.transform((np.nan, 0, 0), wp.quat_identity())
    )
    with pytest.raises(ValueError, match=r"state_1\.body_q holds NaN"):
        newton.examples.run(example, args)


def test_a_test_run_of_an_example_without_a_test_says_what_to_do(monkeypatch):
    viewer, args = start(monkeypatch, "--viewer", "null", "--num-frames", "1", "--test")
    example = SimpleNamespace(viewer=viewer, step=lambda: None, render=lambda: None)
    with pytest.raises(NotImplementedError, match=r"has neither 'test_post_step' .* without --test\."):
        newton.examples.run(example, args)


def test_bodies_that_fail_a_condition_are_named(monkeypatch):
    viewer, args = start(monkeypatch, "--viewer", "null")
    example = Example(viewer, args)
    with pytest.raises(ValueError, match=r"'in the sky' is not true of ball at \[0\.0, 0\.0, 1\.0"):
        newton.examples.test_body_state(
            example.model, example.state_0, "in the sky", lambda q, qd: q[2] > 5.0, show_body_q=True
        )
    with pytest.raises(ValueError, match="names body 7, but the model has 1"):
        newton.examples.test_body_state(
            example.model, example.state_0, "none", lambda q, qd: q[2] > 5.0, indices=[7]
        )


def test_a_benchmark_prints_the_rate(monkeypatch, capsys):
    viewer, args = start(monkeypatch, "--benchmark", "--num-frames", "8")
    newton.examples.run(Example(viewer, args), args)
    assert "frames/s (5 frames in" in capsys.readouterr().out


def test_a_benchmark_ends_after_its_time(monkeypatch):
    viewer, args = start(monkeypatch, "--benchmark", "0.05", "--num-frames", "100000000")
    newton.examples.run(Example(viewer, args), args)
    assert 0 < viewer.benchmark_result()["frames"] < 100000000


@pytest.mark.parametrize(("kind", "file"), [("usd", "run.usda"), ("file", "run.pvr")])
def test_frames_are_written_to_files(monkeypatch, tmp_path, kind, file):
    if kind == "usd":
        pytest.importorskip("pxr")
    path = tmp_path / file
    viewer, args = start(monkeypatch, "--viewer", kind, "--output-path", str(path), "--num-frames", "3")
    newton.examples.run(Example(viewer, args), args)
    assert path.stat().st_size > 0


def test_arguments_of_scripts_are_parsed(monkeypatch):
    def add(parser):
        newton.examples.add_world_count_arg(parser)
        newton.examples.add_max_worlds_arg(parser)
        newton.examples.add_broad_phase_arg(parser)
        newton.examples.add_mujoco_contacts_arg(parser)

    _, args = start(monkeypatch, "--viewer", "null", "--world-count", "5", "--use-mujoco-contacts", add=add)
    assert (args.world_count, args.max_worlds, args.use_mujoco_contacts) == (5, None, True)
    assert newton.examples.default_args().num_frames == 100


def test_wrong_arguments_say_what_is_possible(monkeypatch, capsys):
    for arguments, text in (
        (("--viewer", "window"), "invalid choice: 'window'"),
        (("--viewer", "null", "--device", "gpu"), "Devices of this machine: cpu"),
        (("--viewer", "null", "--num-frames", "-1"), "must not be negative"),
        (("--viewer", "null", "--warp-config", "speed=1"), "write NAME=VALUE"),
    ):
        with pytest.raises(SystemExit):
            start(monkeypatch, *arguments)
        assert text in capsys.readouterr().err


def test_assets_are_found_below_named_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("PLURIVERSE_ASSETS", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"'ant\.xml' was not found in '.*PLURIVERSE_ASSETS"):
        newton.examples.get_asset("ant.xml")
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots" / "ant.xml").write_text("<mujoco/>")
    assert newton.examples.get_asset("ant.xml") == str(tmp_path / "robots" / "ant.xml")


def test_what_lacks_a_method_is_refused(monkeypatch):
    viewer, args = start(monkeypatch, "--viewer", "null")

    class Still:
        def __init__(self):
            self.viewer = viewer

    with pytest.raises(AttributeError, match="a Still has no 'step'"):
        newton.examples.run(Still(), args)


@pytest.mark.parametrize(
    ("arguments", "count"), [((), np.inf), (("--num-frames", "7"), 7), (("--test",), 100)]
)
def test_the_browser_shows_a_loop_until_its_frames_are_over(monkeypatch, arguments, count):
    """Without a number it has no end; one that is given holds, whether or not it is the usual one."""
    viewer, args = start(monkeypatch, *arguments)
    assert isinstance(viewer, newton.viewer.ViewerViser)
    assert viewer.num_frames == count
    assert args.num_frames == (7 if "--num-frames" in arguments else 100)


def test_wrong_numbers_name_the_viewer():
    with pytest.raises(ValueError, match="ViewerViser: num_frames is -1"):
        newton.viewer.ViewerViser(num_frames=-1)
