"""Scripts in Newton's interface: right by themselves, and the same on Newton with the imports changed.

The tests of this package's side always run, those of Newton's where it can be imported. They compare results
that do not depend on the model of contact: free motion, heights and angles of rest.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

PORTED = Path(__file__).resolve().parents[2] / "examples" / "ported"
ROBOT = Path(__file__).resolve().parents[2] / "pluriverse" / "scenes" / "robots" / "puli.xml"
G = 9.81  # m/s²
SOLVERS = {"cartpole": "SolverMuJoCo", "quadruped": "SolverMuJoCo", "arms_and_boxes": "SolverFeatherstone"}


def load(name, path):
    spec = importlib.util.spec_from_file_location(f"ported_{path.stem}_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def ours(name):
    return load("pluriverse", PORTED / f"{name}.py")


def theirs(name, folder):
    """Return the script with nothing but its lines of imports changed."""
    pytest.importorskip("newton", reason="Newton is not installed: its side of the comparison cannot run")
    if SOLVERS[name] == "SolverMuJoCo":
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed, which SolverMuJoCo needs")
    text = (PORTED / f"{name}.py").read_text()
    changes = {
        "import pluriverse as newton": "import newton",
        "from pluriverse import SolverSAP as Solver": f"from newton.solvers import {SOLVERS[name]} as Solver",
        "from pluriverse.selection import": "from newton.selection import",
    }
    lines = []
    for line in text.splitlines():
        for old, new in changes.items():
            if line.startswith(old):
                line = line.replace(old, new)
        lines.append(line)
    if name == "quadruped":  # the file of the robot ships with this package
        lines = [f"ROBOT = Path({str(ROBOT)!r})" if line.startswith("ROBOT = ") else line for line in lines]
    changed = folder / f"{name}.py"
    changed.write_text("\n".join(lines) + "\n")
    return load("newton", changed)


@pytest.fixture(scope="module")
def cartpole_samples():
    return ours("cartpole").simulate(1000)


@pytest.fixture(scope="module")
def quadruped_result():
    return ours("quadruped").simulate(1000)


@pytest.fixture(scope="module")
def arms_and_boxes_result():
    return ours("arms_and_boxes").simulate(1000)


def test_cartpoles_follow_the_equations_of_motion(cartpole_samples):
    """Position and angle agree with a reference of high order, up to the error of the time step."""
    script = ours("cartpole")
    radius, half = 0.03, script.HALF_LENGTH
    cart = 200.0 * 8 * 0.2 * 0.1 * 0.05
    tube, ball = 200.0 * np.pi * radius**2 * 2 * half, 200.0 * 4 / 3 * np.pi * radius**3
    pole, moving = tube + ball, cart + tube + ball + 0.1  # the rail's armature moves along
    inertia = tube * (radius**2 / 4 + half**2 / 3)
    inertia += ball * (2 / 5 * radius**2 + half**2 + 3 / 4 * half * radius)
    inertia += pole * half**2

    def motion(_, y, gravity):
        _, angle, speed, rate = y
        mass = [[moving, pole * half * np.cos(angle)], [pole * half * np.cos(angle), inertia]]
        force = [pole * half * np.sin(angle) * rate**2, -pole * gravity * half * np.sin(angle)]
        return np.r_[speed, rate, np.linalg.solve(mass, force)]

    times = script.DT * 100 * np.arange(1, 11)
    for world, gravity in enumerate(script.GRAVITY):
        start = [0.0, script.ANGLE, 0.0, 0.0]
        exact = solve_ivp(motion, (0, 1), start, t_eval=times, args=(gravity,), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(cartpole_samples[:, world], exact.y[:2].T, atol=5e-3)
    assert np.ptp(cartpole_samples[-1, :, 1]) > 3.0  # worlds differ


def test_quadruped_stands_on_its_feet(quadruped_result):
    """The trunk is as high as bent legs are long, less what a quarter of the weight bends the knees."""
    height, upright, touching = quadruped_result
    bend, thigh, foot, stiffness, weight = 0.8, 0.2, 0.023, 90.0, 12.0 * G
    lever = thigh * np.sin(bend)
    expected = 2 * thigh * np.cos(bend) + foot - lever**2 * weight / 4 / stiffness
    assert height == pytest.approx(expected, abs=2e-3)
    assert upright > 0.9999
    feet = {f"{end}_{side}_foot" for end in ("front", "rear") for side in ("left", "right")}
    assert touching == feet | {"ground_plane"}


def test_arms_and_boxes_rest_in_equilibrium(arms_and_boxes_result):
    """Drives balance the weight of the links, and each face of a stack gives way as its load tells."""
    script = ours("arms_and_boxes")
    angles, heights = arms_and_boxes_result
    length, radius, gain = script.LENGTH, 0.03, 100.0
    link = 1000.0 * np.pi * radius**2 * (length - 2 * radius + 4 / 3 * radius)
    upper, lower = angles[:, 0], angles[:, 0] + angles[:, 1]
    elbow = link * G * 0.5 * length * np.sin(lower)
    shoulder = elbow + 1.5 * link * G * length * np.sin(upper)
    droop = angles - script.TARGETS
    np.testing.assert_allclose(gain * droop, np.stack([shoulder, elbow], axis=1), atol=5e-3)

    box = 1000.0 * (2 * script.HALF_SIZE) ** 3
    face = 4 * 0.5e5  # N/m: four corners, at each of them two surfaces of 1e5 N/m in series
    for count, height in zip(script.BOX_COUNTS, heights, strict=True):
        load = box * G * np.arange(count, 0, -1)
        expected = (2 * np.arange(count) + 1) * script.HALF_SIZE - np.cumsum(load / face)
        np.testing.assert_allclose(height, expected, atol=2e-5)


def test_cartpoles_move_as_on_newton(cartpole_samples, tmp_path):
    """The integrator of SolverMuJoCo is of first order: 5.6e-3 rad apart at 1 ms, 2.8e-3 rad at 0.5 ms."""
    other = theirs("cartpole", tmp_path).simulate(1000)
    np.testing.assert_allclose(cartpole_samples, other, atol=7e-3)


def test_quadruped_stands_as_on_newton(quadruped_result, tmp_path):
    """Height to a millimetre, and the same shapes on the ground."""
    height, upright, touching = theirs("quadruped", tmp_path).simulate(1000)
    assert quadruped_result[0] == pytest.approx(height, abs=1e-3)
    assert quadruped_result[1] == pytest.approx(upright, abs=1e-4)
    assert quadruped_result[2] == touching


def test_arms_and_boxes_rest_as_on_newton(arms_and_boxes_result, tmp_path):
    """Angles to a milliradian; heights to what the softer contact of two surfaces in series makes."""
    angles, heights = theirs("arms_and_boxes", tmp_path).simulate(1000)
    np.testing.assert_allclose(arms_and_boxes_result[0], angles, atol=1e-3)
    for height, other in zip(arms_and_boxes_result[1], heights, strict=True):
        np.testing.assert_allclose(height, other, atol=1.5e-3)
