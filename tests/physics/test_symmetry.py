"""Physics has no preferred place, direction or handedness: neither has a step.

A box is thrown onto the ground, once as it is and once moved, turned or mirrored as a whole. What comes out
is the same motion, moved, turned or mirrored.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import warp as wp

from pluriverse import ShapeConfig
from tests.oracles.multibody_dense import rotation_matrix
from tests.physics.laboratory import Experiment, run

DT = 0.005
DURATION = 0.8  # s, long enough for two impacts and sliding
TOLERANCE = 1e-4
"""Of positions [m] and entries of rotations: single precision, times 1e3 for the two impacts."""

POSITION = np.array([0.1, -0.2, 0.4])
ROTATION = np.array([0.2, 0.3, -0.1, 0.9]) / np.linalg.norm([0.2, 0.3, -0.1, 0.9])
VELOCITY = np.array([1.0, 0.4, 0.0])
OMEGA = np.array([2.0, -3.0, 1.0])
MATERIAL = ShapeConfig(ke=1e5, tau=0.01, mu=0.5, gap=0.01)


def thrown_box(position, rotation, velocity, omega) -> Experiment:
    def build(builder):
        builder.add_ground_plane(cfg=MATERIAL)
        body = builder.add_body(xform=wp.transform(position, rotation))
        builder.add_shape_box(body, hx=0.1, hy=0.15, hz=0.2, cfg=MATERIAL)

    return Experiment(build, joint_qd=(*velocity, *omega))


def quaternion_product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    vector = p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3])
    return np.array([*vector, p[3] * q[3] - p[:3] @ q[:3]])


@dataclass(frozen=True)
class Change:
    """x -> matrix x + shift; `turn` is the rotation as a quaternion, or None for a reflection."""

    matrix: np.ndarray
    shift: np.ndarray
    turn: np.ndarray | None

    def experiment(self) -> Experiment:
        position = self.matrix @ POSITION + self.shift
        if self.turn is not None:
            rotation = quaternion_product(self.turn, ROTATION)
            return thrown_box(position, rotation, self.matrix @ VELOCITY, self.matrix @ OMEGA)
        # Reflection in y: the box is its own mirror image, and rotations are axial vectors.
        axial = -self.matrix
        rotation = np.array([*(axial @ ROTATION[:3]), ROTATION[3]])
        return thrown_box(position, rotation, self.matrix @ VELOCITY, axial @ OMEGA)

    def apply(self, rotation: np.ndarray) -> np.ndarray:
        if self.turn is not None:
            return self.matrix @ rotation
        return self.matrix @ rotation @ self.matrix


def turn_about_vertical(angle: float) -> tuple[np.ndarray, np.ndarray]:
    quaternion = np.array([0.0, 0.0, np.sin(0.5 * angle), np.cos(0.5 * angle)])
    return rotation_matrix(quaternion), quaternion


ZERO = np.zeros(3)
CHANGES = {
    "moved": Change(np.eye(3), np.array([3.0, -2.0, 0.0]), np.array([0.0, 0.0, 0.0, 1.0])),
    "quarter_turn": Change(turn_about_vertical(0.5 * np.pi)[0], ZERO, turn_about_vertical(0.5 * np.pi)[1]),
    "turned": Change(turn_about_vertical(0.7)[0], ZERO, turn_about_vertical(0.7)[1]),
    "mirrored": Change(np.diag((1.0, -1.0, 1.0)), ZERO, None),
}


@pytest.fixture(scope="module", params=["drake", "approx32"])
def records(request):
    experiments = {"plain": thrown_box(POSITION, ROTATION, VELOCITY, OMEGA)}
    experiments |= {name: change.experiment() for name, change in CHANGES.items()}
    return run(experiments, dt=DT, duration=DURATION, contact_preset_variant=request.param)


@pytest.mark.parametrize("name", CHANGES)
def test_changed_scene_gives_the_changed_motion(records, name):
    change = CHANGES[name]
    plain, changed = records["plain"].body_q[:, 0], records[name].body_q[:, 0]
    expected = plain[:, :3] @ change.matrix.T + change.shift
    np.testing.assert_allclose(changed[:, :3], expected, atol=TOLERANCE)
    rotations = [change.apply(rotation_matrix(q)) for q in plain[:, 3:]]
    np.testing.assert_allclose([rotation_matrix(q) for q in changed[:, 3:]], rotations, atol=TOLERANCE)
    assert np.ptp(plain[:, 2]) > 0.1, "it falls and lands"
