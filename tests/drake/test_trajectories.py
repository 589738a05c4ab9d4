"""Trajectories of Pluriverse and Drake: the same scenes, the same discrete problem, two solvers.

All scenes are worlds of one batch here and one plant each there.
"""

import numpy as np
import pytest

pytest.importorskip("pydrake", reason="Drake is not installed")

from tests.drake import drake_engine
from tests.drake.pluriverse_engine import Worlds
from tests.drake.scenes import all_scenes

DT = 0.005
SCENES = all_scenes()


@pytest.fixture(scope="module")
def trajectories():
    """Trajectories in Pluriverse by scene name."""
    worlds = Worlds(SCENES, DT)
    poses = worlds.simulate(max(scene.duration for scene in SCENES))
    return {scene.name: poses[world] for world, scene in enumerate(SCENES)}


def angle_between(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Angle [rad] of the rotation between quaternions xyzw, shape [..., 4]."""
    first = first / np.linalg.norm(first, axis=-1, keepdims=True)
    second = second / np.linalg.norm(second, axis=-1, keepdims=True)
    # The chord keeps full precision at small angles, unlike the arc cosine of the scalar product.
    chord = np.minimum(np.linalg.norm(first - second, axis=-1), np.linalg.norm(first + second, axis=-1))
    return 4.0 * np.arcsin(np.clip(0.5 * chord, 0.0, 1.0))


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_trajectory_agrees_with_drake(scene, trajectories):
    expected = drake_engine.simulate(scene, DT)
    if scene.check is not None:
        scene.check(expected)
    actual = trajectories[scene.name][: len(expected)]
    position_error = np.linalg.norm(actual[..., :3] - expected[..., :3], axis=-1)
    angle_error = angle_between(actual[..., 3:], expected[..., 3:])
    assert position_error.max() < scene.tolerance
    assert angle_error.max() < scene.tolerance
