"""Small traps: what a first user writes wrong, or reads out of place."""

import csv
import io
import os
import time
import warnings

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse import randomization
from pluriverse.kernel_progress import KernelProgress

from .test_cli import invoke

CART = """
<mujoco model="cart">
  <worldbody><body name="box" pos="0 0 1"><joint name="slide" type="slide" axis="1 0 0"/><geom size=".1"/>
  <site name="s"/></body></worldbody>
  <sensor><gyro name="gyro" site="s"/></sensor>
</mujoco>
"""
URDF = (
    '<robot name="go1"><link name="trunk"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"\
 ixz="0" iyz="0"/></inertial></link></robot>'
)


def test_robots_of_one_name_in_a_world_get_numbers():
    """The second cart is cart_2, with all that belongs to it; in another world it is cart again."""
    builder = pv.ModelBuilder()
    for _ in range(2):
        builder.begin_world()
        for x in (0.0, 1.0):
            builder.add_mjcf(CART, xform=(x, 0, 0, 0, 0, 0, 1))
        for _ in range(3):
            builder.add_urdf(URDF, floating=True)
        builder.end_world()
    assert builder.articulation_label == ["cart", "cart_2", "go1", "go1_2", "go1_3"] * 2
    assert builder.body_label[:3] == ["cart/worldbody/box", "cart_2/worldbody/box", "go1/trunk"]
    with pv.Simulation(builder.finalize("cpu"), dt=0.01) as simulation:
        assert simulation.sensors.names == ("cart/gyro", "cart_2/gyro")
        with pytest.raises(KeyError, match="'gyro' could be any of cart/gyro, cart_2/gyro"):
            simulation.sensors["gyro"]


def test_a_pair_in_place_of_a_distribution_says_what_was_meant():
    """friction((0.4, 1.2)) names Uniform and Gaussian, friction(0.8) Constant."""
    with pytest.raises(TypeError, match=r"Write Uniform\(0\.4, 1\.2\) for anything between both, or"):
        randomization.friction((0.4, 1.2))
    with pytest.raises(TypeError, match=r"Write Constant\(0\.8\)"):
        randomization.friction(0.8)
    with pytest.raises(TypeError, match=r"InitialState.joint_position is \[0, 1\]"):
        randomization.InitialState(joint_position=[0, 1])


def test_a_step_of_seconds_is_warned_about():
    """dt=5 gets a hint that it may mean milliseconds; usual steps do not."""
    builder = pv.ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    model = builder.finalize("cpu")
    with pytest.warns(pv.warnings.TimeStepWarning, match=r"dt is 5 s.*dt=0\.005 is 5 ms"):
        pv.Simulation(model, dt=5).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pv.Simulation(model, dt=0.05).close()


def test_record_writes_the_table_that_its_name_says(tmp_path):
    """A .csv file is a table with a column per coordinate, velocity and contact count; others are refused."""
    robot, path = tmp_path / "cart.xml", tmp_path / "walk.csv"
    robot.write_text(CART)
    result = invoke("run", robot, "--frames", 5, "--worlds", 2, "--record", path)
    assert result.exit_code == 0, result.output
    assert f"in {path}" in result.stdout.replace("\n", "")
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["cart.xml", "walk.csv"]
    rows = list(csv.DictReader(path.open()))
    assert len(rows) == 6
    assert [float(row["time"]) for row in rows] == pytest.approx([0.002 * step for step in range(6)])
    names = [name for name in rows[0] if name.startswith("world 1: ")]
    assert len(names) == 3
    assert names[0].endswith(".q")
    assert names[1].endswith(".qd")
    refused = invoke("run", robot, "--frames", 5, "--record", tmp_path / "walk.txt")
    assert refused.exit_code == 1
    assert "ends on '.txt'" in refused.output.replace("\n", " ")


class _Terminal(io.StringIO):
    def __init__(self, is_terminal: bool):
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


class _Base:
    def __init__(self):
        self.heard = []

    def info(self, message):
        self.heard.append(message)

    debug = info


@pytest.mark.parametrize("is_terminal", [True, False])
def test_compiling_is_one_bar_and_the_cache_is_silent(is_terminal):
    """Lines of Warp about modules of the package become one line that grows; others are handed on."""
    base, stream = _Base(), _Terminal(is_terminal)
    progress = KernelProgress(base, stream)
    line = "Module pluriverse.{} 33cd4a7 load on device 'cpu' took 2.64 ms  ({})"
    with progress.loading(4):
        for name in "abc":
            progress.info(line.format(name, "cached"))
    assert stream.getvalue() == ""
    with progress.loading(4):
        for name in "abcd":
            progress.info(line.format(name, "compiled"))
        progress.info("Module somebody.else 1 load on device 'cpu' took 2 ms  (compiled)")
    assert base.heard == ["Module somebody.else 1 load on device 'cpu' took 2 ms  (compiled)"]
    shown = stream.getvalue()
    assert "compiled 4 modules in 0 s." in shown
    assert shown.count("\n") == (1 if is_terminal else 2)
    assert ("[########################] 4/4" in shown) == is_terminal


def test_a_bare_robot_runs_on_a_ground(tmp_path):
    """`pluriverse run go1.xml`: a free box stands on the ground that was added under it."""
    robot, record = tmp_path / "box.xml", tmp_path / "box.npz"
    robot.write_text(
        '<mujoco model="box"><worldbody><body pos="0 0 .2"><freejoint/>'
        '<geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>'
    )
    result = invoke("run", robot, "--duration", 1, "--record", record)
    assert result.exit_code == 0, result.output
    assert abs(np.load(record)["body_q"][-1, 0, 2] - 0.1) < 2e-3


@pytest.mark.parametrize(
    ("option", "arguments", "dt"),
    [('<option timestep="0.004"/>', (), 0.004), ("", (), 0.002), ("", ("--dt", 0.01), 0.01)],
)
def test_a_robot_file_runs_at_its_own_time_step(tmp_path, option, arguments, dt):
    """A box falls freely as the symplectic Euler method says at the step of the file, or that asked for."""
    robot, record = tmp_path / "box.xml", tmp_path / "box.npz"
    robot.write_text(
        f'<mujoco model="box">{option}<worldbody><body pos="0 0 9"><freejoint/>'
        '<geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>'
    )
    result = invoke("run", robot, "--frames", 10, "--record", record, *arguments)
    assert result.exit_code == 0, result.output
    recorded = np.load(record)
    assert recorded["dt"] == pytest.approx(dt)
    # v after k steps is -g k dt, so the box has fallen by g dt^2 (1 + ... + 10).
    fallen = 9.0 - recorded["body_q"][-1, 0, 2]
    rounding = 10 * float(np.spacing(np.float32(9.0)))  # one of the height in each step
    assert fallen == pytest.approx(9.81 * dt**2 * 55, abs=rounding)


def test_a_robot_of_another_engine_runs_without_further_options(tmp_path):
    """A parameter that only MuJoCo knows is listed under the robot's file; `--strict` refuses it."""
    robot = tmp_path / "ball.xml"
    robot.write_text(
        '<mujoco><worldbody><body pos="0 0 .2"><freejoint/><geom name="ball" size=".1" priority="1"/></body>'
        "</worldbody></mujoco>"
    )
    for command in (["run", robot, "--frames", 1], ["info", robot]):
        result = invoke(*command)
        assert result.exit_code == 0, result.output
        shown = " ".join(result.stdout.split())
        assert f"{robot}: priority (ball)" in shown
        assert "scene.yaml" not in shown
    refused = invoke("run", robot, "--frames", 1, "--strict")
    assert refused.exit_code == 1
    assert "priority (ball)" in refused.stderr


def test_the_bar_goes_on_while_a_module_is_compiled(monkeypatch):
    """The seconds of the bar are drawn anew though no module is ready, and a line of text replaces it."""
    monkeypatch.setattr(wp.config, "log_level", wp.LOG_INFO)
    monkeypatch.setattr("pluriverse.kernel_progress.PATIENCE", 0.0)
    monkeypatch.setattr("pluriverse.kernel_progress.TICK_TIME", 0.01)
    stream = _Terminal(True)
    progress = KernelProgress(_Base(), stream)
    with progress.loading(2):
        for _ in range(30_000):
            if stream.getvalue().count("\r") > 2:
                break
            time.sleep(0.01)
        progress.info("Module pluriverse.a 33cd4a7 load on device 'cpu' took 2.64 ms  (compiled)")
    shown = stream.getvalue()
    assert shown.count("] 0/2, ") > 2
    assert shown.rstrip().endswith("compiled 1 modules in 0 s.")
    monkeypatch.setattr("pluriverse.kernel_progress.PATIENCE", 60.0)
    with progress.loading(2):
        pass  # all of them from the cache
    assert stream.getvalue() == shown


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_a_bar_of_its_own():
    """A process that is forked while another thread draws the bar does not wait for that thread."""
    progress = KernelProgress(_Base(), _Terminal(True))
    with progress._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if progress._lock.acquire(timeout=120.0) else 1)
    assert os.waitpid(child, 0)[1] == 0
