"""A tighter tolerance of `SolverSAP` keeps to the same solution where Coulomb's law has several."""

import pytest

from benchmarks.motion import Ours
from benchmarks.motion_scenes import Motion, write_motion
from benchmarks.scenes import ASSETS

WORLD_COUNT = 8
# Of the change of velocity: ten times the default `optimality_rel_tol`.
AGREEMENT = 1e-5


@pytest.mark.skipif(not ASSETS.exists(), reason=f"needs robots in {ASSETS}")
@pytest.mark.parametrize(
    ("robot", "motion", "control_steps"),
    [
        ("arm", Motion.RANDOM, 2),  # a finger and a cube slide, or the finger sticks
        ("hand", Motion.RANDOM, 4),  # iterations from the solution did not find it again
        ("anymal", Motion.FALLING, 2),  # a deep contact is solved again four times, for less each time
    ],
)
def test_a_tolerance_of_1e_10_changes_no_solution(robot, motion, control_steps, tmp_path):
    """Velocities after one more step differ by 1e-5 of their change, or less."""
    run = Ours("sap", write_motion(robot, motion, WORLD_COUNT, tmp_path), WORLD_COUNT, threads=1)
    run.advance(control_steps)
    assert run.error() < AGREEMENT
    run.close()
