"""A Franka arm with its hand, from its URDF with nothing set but drives, picks up a cube of 45 mm."""

import functools
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import least_squares

import pluriverse as pv
from pluriverse.dynamics import eval_fk

URDF = "franka_description/urdfs/fr3_franka_hand.urdf"
HALF = 0.0225  # m, of the cube
PLACE = (0.45, 0.0)  # m
HAND = 0.125  # m, height of the hand above the ground with the fingertips 10 mm below the centre of the cube
HOME = (0.0, -0.3, 0.0, -2.2, 0.0, 2.0, 0.785)
LIFT = 0.2  # m

pytestmark = pytest.mark.filterwarnings("ignore")  # visual meshes are left out of the asset


@pytest.fixture(scope="module")
def arms(robot_assets):
    """Return a function that makes the scene for a contact stiffness [N/m]."""
    return functools.cache(functools.partial(make_scene, robot_assets))


def make_scene(robot_assets: Path, stiffness: float | None) -> tuple[pv.Model, np.ndarray]:
    """Return the model and the joint angles of the arm above, at and over the cube, shape [3, 7]."""
    builder = pv.ModelBuilder()
    builder.default_shape_cfg.ke = stiffness
    builder.add_urdf(robot_assets / URDF, enable_self_collisions=False)
    builder.joint_q[:9] = [*HOME, 0.04, 0.04]
    builder.joint_target_mode[:9] = int(pv.JointTargetMode.POSITION)
    builder.joint_target_ke[:9] = [4000.0] * 7 + [1000.0] * 2
    builder.joint_target_kd[:9] = [200.0] * 7 + [50.0] * 2
    cube = builder.add_body(xform=((*PLACE, HALF), (0.0, 0.0, 0.0, 1.0)), label="cube")
    builder.add_shape_box(cube, hx=HALF, hy=HALF, hz=HALF)
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    hand = next(index for index, label in enumerate(model.body_label) if label.endswith("fr3_hand"))
    state = model.state()
    joint_q = state.joint_q.numpy().copy()

    def miss(angles: np.ndarray, height: float) -> np.ndarray:
        """Return how far the hand is from pointing down at a height, fingers along y."""
        joint_q[:7] = angles
        state.joint_q.assign(joint_q)
        eval_fk(model, state.joint_q, state.joint_qd, state)
        pose = state.body_q.numpy()[hand].astype(float)
        aim = np.array([1.0, 0.0, 0.0, 0.0])
        quat = pose[3:] * np.sign(pose[3:] @ aim)
        return np.concatenate([pose[:3] - (*PLACE, height), 0.3 * (quat - aim)])

    limits = [getattr(model, f"joint_limit_{end}").numpy()[:7].astype(float) for end in ("lower", "upper")]
    limits = limits[0] + 0.1, limits[1] - 0.1
    poses: list[np.ndarray] = []
    for height in (HAND + 0.15, HAND, HAND + LIFT):
        begin = poses[-1] if poses else HOME
        found = least_squares(miss, begin, args=(height,), diff_step=1e-3, bounds=limits)
        assert np.abs(found.fun).max() < 2e-3
        poses.append(found.x)
    return model, np.array(poses)


@pytest.mark.parametrize(
    ("solver", "dt", "stiffness"),
    [
        (pv.SolverSAP, 0.002, None),
        (pv.SolverSAP, 0.005, None),
        (pv.SolverSAP, 0.01, None),
        (pv.SolverSAP, 0.005, 1e5),
        # MuJoCo's own contacts give by 9 mm under 14 N on a cube of 90 g, and let it out of the fingers.
        (pv.SolverMuJoCo, 0.002, 1e5),
    ],
)
def test_the_cube_is_carried(arms, solver, dt, stiffness):
    """It rises with the hand, and stays in it."""
    model, (above, at, over) = arms(stiffness)
    with pv.Simulation(model, solver(model), dt=dt, threads=1) as simulation:

        def go(begin: np.ndarray, end: np.ndarray, fingers: float, duration: float) -> None:
            steps = round(duration / dt)
            for step in range(steps):
                target = simulation.control.joint_target_pos.numpy()
                target[:7] = begin + (end - begin) * (step + 1) / steps
                target[7:9] = fingers
                simulation.control.joint_target_pos.assign(target)
                simulation.step()

        def height() -> float:
            return float(simulation.state.body_q.numpy()[-1, 2])

        go(np.array(HOME), above, 0.04, 0.5)
        go(above, at, 0.04, 0.7)
        assert height() == pytest.approx(HALF, abs=1e-3)
        go(at, at, 0.0, 0.4)
        go(at, over, 0.0, 0.8)
        go(over, over, 0.0, 0.3)
        go(over, over, 0.0, 0.5)
        assert height() > HALF + LIFT - 0.01
